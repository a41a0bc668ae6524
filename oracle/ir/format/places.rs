//! Where the parts of a graph stand in the text that it was read from: a side table from names to places.
//!
//! Graphs do not know where they came from, and judges do not ask. Whoever reports about a file looks up here what a
//! message is about; the file is read once more for that, and only where there is something to say. In a text case the
//! graph before the pass is looked at; in exchange JSON a graph, not an outcome, which holds several; of what PyTorch
//! prints the first graph, without its sub-modules.

use super::fx;
use super::json::Position;
use super::text;
use crate::case::{Part, Place};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// What a message is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Spot {
    /// The file as a whole.
    File,
    /// A node, by name.
    Node(String),
    /// A node that only a graph after has, by name: in a file of both it stands among those of that graph.
    After(String),
    /// A symbol, by name.
    Symbol(String),
    /// A table of estimates, by index.
    Estimates(usize),
    /// The line with the pass.
    Pass,
    /// Where these words first stand.
    Words(String),
}

/// The places of a file.
#[derive(Clone, Debug, Default)]
pub struct Places {
    text: String,
    /// Where lines start, in bytes.
    lines: Vec<usize>,
    /// Characters before each block of [`BLOCK`] bytes: a file may be one line.
    characters: Vec<usize>,
    nodes: FxHashMap<String, usize>,
    /// Nodes of graphs after, in a file that holds them beside the graph before.
    after: FxHashMap<String, usize>,
    symbols: BTreeMap<String, usize>,
    estimates: Vec<usize>,
    pass: Option<usize>,
}

/// Bytes whose characters are counted together.
const BLOCK: usize = 1 << 10;

/// A document as far as places are concerned.
#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow, default)]
    nodes: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    symbols: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

impl Places {
    /// The places of what a file holds, decompressed: exchange JSON, a graph as PyTorch prints it, or else a text case.
    /// Of what cannot be read there are none.
    pub fn of(text: String) -> Places {
        let mut places = Places::default();
        match text.trim_start().starts_with(['{', '[']) {
            true => places.read_json(&text),
            false if fx::is_printed(&text) => places.nodes.extend(fx::places(&text)),
            false => places.read_text(&text),
        }
        let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        places.lines = std::iter::once(0).chain(ends.map(|(end, _)| end + 1)).collect();
        places.characters = text
            .as_bytes()
            .chunks(BLOCK)
            .scan(0, |sum, block| {
                let before = *sum;
                *sum += characters(block);
                Some(before)
            })
            .collect();
        Places { text, ..places }
    }

    fn read_text(&mut self, text: &str) {
        // A name that graphs of several ranks give to different calls says nothing of where one is.
        let mut several: FxHashSet<String> = FxHashSet::default();
        let line = |at: usize| text[at..].lines().next();
        let mut add = |table: &mut FxHashMap<String, usize>, name: String, at: usize| {
            let first = *table.entry(name.clone()).or_insert(at);
            several.extend((line(first) != line(at)).then_some(name));
        };
        for (mark, at) in text::marks(text) {
            match mark {
                text::Mark::Symbol(name) => drop(self.symbols.insert(name, at)),
                text::Mark::Place(Place::Node(Part::Before, name)) => drop(self.nodes.insert(name, at)),
                text::Mark::Place(Place::Node(Part::Program(_), name)) => add(&mut self.nodes, name, at),
                text::Mark::Place(Place::Node(_, name)) => add(&mut self.after, name, at),
                text::Mark::Place(Place::Estimates(_)) => self.estimates.push(at),
                text::Mark::Place(Place::Pass) => self.pass = Some(at),
                text::Mark::Place(_) => {}
            }
        }
        self.nodes.retain(|name, _| !several.contains(name));
        self.after.retain(|name, _| !several.contains(name));
    }

    fn read_json(&mut self, text: &str) {
        let Ok(document) = serde_json::from_str::<Document>(text) else { return };
        let at = |value: &RawValue| (value.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
        for node in document.nodes {
            if let Ok(Named { name }) = serde_json::from_str(node.get()) {
                self.nodes.insert(name.into_owned(), at(node));
            }
        }
        let symbols = document.symbols.into_iter();
        self.symbols = symbols.map(|(name, value)| (name.into_owned(), at(value))).collect();
    }

    /// Where a spot is; `None` where that is not known, or it is the whole file. Of nodes with one name it is the last.
    pub fn find(&self, spot: &Spot) -> Option<Position> {
        let at = self.at(spot)?;
        let line = self.lines.partition_point(|&start| start <= at);
        let start = *self.lines.get(line.checked_sub(1)?)?;
        Some(Position { line, column: self.characters_before(at)? - self.characters_before(start)? + 1 })
    }

    /// The byte at which a spot begins.
    fn at(&self, spot: &Spot) -> Option<usize> {
        match spot {
            Spot::File => None,
            Spot::Node(name) => self.nodes.get(name).copied(),
            Spot::After(name) => self.after.get(name).or_else(|| self.nodes.get(name)).copied(),
            Spot::Symbol(name) => self.symbols.get(name).copied(),
            Spot::Estimates(index) => self.estimates.get(*index).copied(),
            Spot::Pass => self.pass,
            Spot::Words(words) => self.text.find(words),
        }
    }

    fn characters_before(&self, at: usize) -> Option<usize> {
        let block = at / BLOCK;
        let before = self.characters.get(block).copied().unwrap_or(0);
        Some(before + characters(self.text.as_bytes().get(block * BLOCK..at)?))
    }

    /// The text itself.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The bytes of the text in which a node is named where it is made.
    pub fn span(&self, node: &Spot) -> Option<Range<usize>> {
        let at = self.at(node)?;
        let named = self.text.get(at..)?;
        let end = named.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(named.len());
        (end > 0).then(|| at..at + end)
    }

    /// Where the spot is that a fault in words is about: `NAME (position N): ...`, or what names a symbol.
    pub fn of_fault(&self, fault: &str) -> Option<Position> {
        let node = fault
            .match_indices(" (position ")
            .find_map(|(end, _)| self.find(&Spot::Node(fault[..end].to_string())));
        node.or_else(|| {
            let (_, rest) = fault.split_once(" symbol ")?;
            let names = rest.match_indices(',').map(|(end, _)| Spot::Symbol(rest[..end].to_string()));
            names.into_iter().find_map(|spot| self.find(&spot))
        })
    }
}

/// Characters that begin in these bytes of a text.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| !matches!(byte, 0x80..0xC0)).count()
}
