//! The nodes of a large document, read by several threads.
//!
//! # The idea
//!
//! Documents are written with one node a line, and no JSON string holds a raw line end. So the text of the nodes is
//! cut into *blocks* where a line ends in a comma and the next one begins an object. Each block is read as a list of
//! nodes of its own, and the graphs of the blocks are appended in order. The document around the nodes is read as
//! ever, with `null` in their place: a hole.
//!
//! Where to cut is a guess, and reading proves it. If each block is a list of nodes, then so are all of them with the
//! commas between them; and the hole counts only where it is itself the value of the document's own key `nodes`. All
//! else in the text is read unchanged. So what comes out is, id for id, what reading from the first byte to the last
//! gives.
//!
//! # What it does not do
//!
//! It reports no errors. Whatever is wrong or only unusual (nodes on one line, an outcome, which holds several
//! graphs), it returns nothing, and the caller reads the whole text by one thread, which says what is wrong and where.

use super::Document;
use super::read::{BYTES_PER_NODE, Builder, parse};
use super::read_node::NodesSeed;
use crate::threads;
use memchr::memmem;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;

/// The least size of a block, in bytes. Smaller blocks repeat more strings; larger ones are held longer.
pub(super) const LEAST: usize = 1 << 16;

/// How the nodes begin, how they end, and what stands between two of them.
const FIRST: &str = "\"nodes\":[\n{";
const LAST: &str = "}\n]";
const BETWEEN: &str = "},\n{";

/// Reads a document whose nodes stand on lines of their own, in blocks of at least `least` bytes. `None` if that does
/// not work, for whatever reason.
pub(super) fn document(text: &str, least: usize) -> Option<Document> {
    let find =
        |from: usize, what: &str| Some(from + memmem::find(&text.as_bytes()[from..], what.as_bytes())?);
    // From the bracket before the nodes to the one after them.
    let open = find(0, FIRST)? + FIRST.len() - "[\n{".len();
    let close = find(open, LAST)? + LAST.len() - "]".len();
    // Where the rest is the larger part, little is gained, and it is not cheap to copy.
    let rest = text.len() - (close - open);
    if rest > LEAST && rest > close - open {
        return None;
    }
    let blocks = blocks(&text[open + "[\n".len()..close - "\n".len()], least);
    let around = [&text[..open], "null", &text[close + "]".len()..]].concat();
    let hole = Hole { at: open, blocks };
    // In an outcome nobody has looked at the hole.
    match parse(&around, text.len() / BYTES_PER_NODE, Some(&hole)) {
        Ok(document @ Document::Graph(_)) => Some(document),
        Ok(Document::Outcome(_)) | Err(_) => None,
    }
}

/// Cuts the text of nodes.
fn blocks(nodes: &str, least: usize) -> Vec<&str> {
    let mut blocks = Vec::new();
    let mut rest = nodes;
    while let Some(later) = rest.as_bytes().get(least..)
        && let Some(place) = memmem::find(later, BETWEEN.as_bytes())
    {
        let end = least + place + "}".len();
        blocks.push(&rest[..end]);
        rest = &rest[end + ",\n".len()..];
    }
    blocks.push(rest);
    blocks
}

/// The place in a document from which the nodes were taken, and their text.
pub(super) struct Hole<'t> {
    /// The offset of the `null` that stands there instead.
    at: usize,
    blocks: Vec<&'t str>,
}

impl Hole<'_> {
    /// Reads the nodes, if the value that comes next in `map` is the hole.
    pub(super) fn read<'de, A: MapAccess<'de>>(
        &self,
        builder: &mut Builder<'_>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let value = map.next_value::<&RawValue>()?.get();
        let at = (value.as_ptr() as usize).checked_sub(builder.input.as_ptr() as usize);
        if at != Some(self.at) {
            return Err(A::Error::custom("other nodes than those that were taken out"));
        }
        self.append_to(builder).map_err(A::Error::custom)
    }

    /// Reads the nodes. Each thread takes the next block as soon as it has read one, and only this one appends: nobody
    /// ever waits for another, which on a busy machine would cost more than is saved.
    fn append_to(&self, builder: &mut Builder<'_>) -> Result<(), &'static str> {
        let next = AtomicUsize::new(0);
        let read_next = || {
            let index = next.fetch_add(1, Relaxed);
            let read = read_block(self.blocks.get(index)?);
            if read.is_err() {
                // Nobody needs the others.
                next.store(self.blocks.len(), Relaxed);
            }
            Some((index, read.ok()?))
        };
        let (finished, others) = mpsc::channel();
        let mut queue = Queue { builder, next: 0, waiting: BTreeMap::new() };
        let helpers = threads::count().min(self.blocks.len()).saturating_sub(1);
        let help = || {
            let (read_next, finished) = (&read_next, finished.clone());
            move || while read_next().is_some_and(|block| finished.send(block).is_ok()) {}
        };
        threads::helped(helpers, help, || {
            while let Some(block) = read_next() {
                queue.add(block);
                others.try_iter().for_each(|block| queue.add(block));
            }
        });
        others.try_iter().for_each(|block| queue.add(block));
        if queue.next == self.blocks.len() { Ok(()) } else { Err("a block is not a list of nodes") }
    }
}

/// Blocks that were read in some order and are appended in their own.
struct Queue<'q, 'i> {
    builder: &'q mut Builder<'i>,
    /// The first block that is missing.
    next: usize,
    /// Those after it, by index.
    waiting: BTreeMap<usize, Builder<'static>>,
}

impl Queue<'_, '_> {
    fn add(&mut self, (index, block): (usize, Builder<'static>)) {
        self.waiting.insert(index, block);
        while let Some(block) = self.waiting.remove(&self.next) {
            self.builder.append(&block);
            self.next += 1;
        }
    }
}

/// Reads one block. Places in the text are not known here.
fn read_block(block: &str) -> serde_json::Result<Builder<'static>> {
    // In the document the nodes are two brackets deep, and nesting has a limit.
    let text = ["[[", block, "]]"].concat();
    let mut builder = Builder::new(&[], block.len() / BYTES_PER_NODE);
    let mut deserializer = serde_json::Deserializer::from_str(&text);
    BlockSeed(&mut builder).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(builder)
}

/// A list that holds one list of nodes.
struct BlockSeed<'b, 'i>(&'b mut Builder<'i>);

impl<'de> DeserializeSeed<'de> for BlockSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for BlockSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of nodes in a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        match seq.next_element_seed(NodesSeed(self.0))? {
            Some(()) => Ok(()),
            None => Err(A::Error::custom("no list of nodes")),
        }
    }
}
