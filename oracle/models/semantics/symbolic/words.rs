//! Sources in the words of a person: by the names of inputs and nodes.

use super::arena::Arena;
use super::key::{Tag, payload, tag, target, tokens};
use super::place::PlaceId;
use super::run::Piece;
use super::source::{KeyId, Source, SourceId, Symbol, ValueId};
use std::ops::Range;

/// Sources inside sources that are spelled out.
const DEPTH: u32 = 8;

impl Arena {
    /// A source, for example `bfloat16 cast of primals_3`.
    pub(super) fn source_words(&self, id: SourceId) -> String {
        self.words_of(id, 0)
    }

    fn words_of(&self, id: SourceId, depth: u32) -> String {
        if depth > DEPTH {
            return String::from("...");
        }
        let inner = |source| self.words_of(source, depth + 1);
        match self.get(id) {
            Source::Poison => String::from("unwritten memory"),
            Source::InFlight { .. } => String::from("memory that a collective in flight will write"),
            Source::Placeholder { position } => {
                self.origin(id).map_or_else(|| format!("input {position}"), str::to_string)
            }
            Source::Beyond { position } => format!("the storage of input {position}"),
            Source::Attribute { name } => self.text(name).to_string(),
            Source::Constant { dtype, key } => {
                format!("the {} number {}", dtype.name(), self.number_words(key))
            }
            Source::Opaque { key, output } => {
                let call = target(self.words(key)).map_or("a call", |symbol| self.text(symbol));
                match (self.origin(id), output) {
                    (Some(name), 0) => format!("{name} ({call})"),
                    (Some(name), n) if n < 1 << 31 => format!("result {n} of {name} ({call})"),
                    (Some(name), _) => format!("what {name} writes ({call})"),
                    (None, _) => format!("a result of {call}"),
                }
            }
            Source::Cast { source, to, .. } => format!("{} cast of {}", to.name(), inner(source)),
            Source::Bits { source, to, .. } => format!("bits as {} of {}", to.name(), inner(source)),
            Source::Reduced { op, group, source, place } => {
                let (op, group) = (self.text(op), self.group_name(group));
                format!("{op} over group {group} of {}{}", inner(source), self.place_words(place))
            }
            Source::Elsewhere { source, place } => format!("{}{}", inner(source), self.place_words(place)),
            Source::Select { group, table } => {
                let words = |piece: &Piece| inner(piece.source) + &self.place_words(piece.place);
                match self.table(table) {
                    [first, .., last] => format!(
                        "{} or {}, by the own index in group {}",
                        words(first),
                        words(last),
                        self.group_name(group)
                    ),
                    pieces => pieces.first().map_or(String::from("nothing"), words),
                }
            }
            Source::Window { content, .. } => {
                let runs = self.runs(content);
                match runs {
                    [run] => {
                        format!("{} in another order{}", inner(run.source), self.place_words(run.place()))
                    }
                    [first, ..] => format!("{} and others in another order", inner(first.source)),
                    [] => String::from("nothing"),
                }
            }
        }
    }

    fn number_words(&self, key: KeyId) -> String {
        match tokens(self.words(key)).next() {
            Some((word, &[bits])) if tag(word) == Some(Tag::Int) => (bits as i64).to_string(),
            Some((word, &[bits])) if tag(word) == Some(Tag::Float) => format!("{:?}", f64::from_bits(bits)),
            Some((word, _)) if tag(word) == Some(Tag::Symbolic) => {
                self.text(Symbol(payload(word))).to_string()
            }
            _ => String::from("of the call"),
        }
    }

    /// A place, for example ` of rank 2 of group 0`; empty for the own rank.
    pub(super) fn place_words(&self, id: PlaceId) -> String {
        let place = self.places.get(id);
        let mut words = String::new();
        for &(group, index) in &place.moves {
            words += &format!(" of rank {index} of group {}", self.group_name(group));
        }
        for &(group, scale) in &place.scales {
            words += &format!(" ({scale} further for each rank of group {})", self.group_name(group));
        }
        words
    }

    /// A piece, with the number of its first element where `numbered`.
    pub(super) fn piece_words(&self, piece: Piece, numbered: bool) -> String {
        let mut words = self.source_words(piece.source);
        words += &self.place_words(piece.place);
        if numbered && !self.is_uniform(piece.source) {
            words += &format!(", from its element {} on", piece.offset);
        }
        words
    }

    /// Two pieces that differ, found and expected, so that the difference shows.
    pub(super) fn difference_words(&self, found: Piece, expected: Piece) -> (String, String) {
        let plain = (self.piece_words(found, false), self.piece_words(expected, false));
        if plain.0 != plain.1 {
            return plain;
        }
        let numbered = (self.piece_words(found, true), self.piece_words(expected, true));
        if numbered.0 != numbered.1 {
            return numbered;
        }
        // One node, computed from different arguments.
        (plain.0 + " of other arguments", plain.1)
    }

    /// A value in words: its first few stretches.
    pub fn describe(&self, value: ValueId) -> String {
        const SHOWN: usize = 4;
        let mut start = 0i64;
        let mut words = Vec::new();
        for run in self.runs(value).iter().take(SHOWN) {
            let piece = Piece {
                len: run.end - start,
                offset: run.offset,
                source: run.source,
                place: run.place(),
                step: run.step(),
            };
            words.push(format!("{} from {}", range_words(&(start..run.end)), self.piece_words(piece, true)));
            start = run.end;
        }
        let more = self.runs(value).len().saturating_sub(SHOWN);
        if more > 0 {
            words.push(format!("and {more} more stretches"));
        }
        if words.is_empty() { String::from("no elements") } else { words.join("; ") }
    }
}

/// `element 3`, or `elements 4096..8192`.
pub(super) fn range_words(range: &Range<i64>) -> String {
    if range.end - range.start == 1 {
        format!("element {}", range.start)
    } else {
        format!("elements {}..{}", range.start, range.end)
    }
}

/// `element 3 comes from ..., expected ...`; `of` stands behind the element.
pub(super) fn parting_words(range: &Range<i64>, of: &str, found: &str, expected: &str) -> String {
    let verb = if range.end - range.start == 1 { "comes" } else { "come" };
    format!("{}{of} {verb} from {found}, expected {expected}", range_words(range))
}
