//! The string table of one graph.
//!
//! Every name, target, device and string argument of a graph is stored once and referred to by a 4-byte
//! [`Str`]. Ids are given in order of first appearance, so they never depend on hashing.

use rustc_hash::FxBuildHasher;
use string_interner::{StringInterner, Symbol, backend::StringBackend, symbol::SymbolU32};

/// A string of one graph's table. Meaningless in another graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Str(SymbolU32);

impl Str {
    /// The position of the string in its table: dense, from 0, in order of first appearance.
    pub fn index(self) -> usize {
        self.0.to_usize()
    }
}

impl std::fmt::Debug for Str {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Str({})", self.index())
    }
}

/// The strings of one graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Strings(StringInterner<StringBackend<SymbolU32>, FxBuildHasher>);

impl Default for Strings {
    fn default() -> Self {
        Strings(StringInterner::with_hasher(FxBuildHasher))
    }
}

impl Strings {
    /// An empty table with room for `count` strings.
    pub fn with_capacity(count: usize) -> Self {
        Strings(StringInterner::with_capacity_and_hasher(count, FxBuildHasher))
    }

    /// The id of `text`, which is added if it is new.
    pub fn intern(&mut self, text: &str) -> Str {
        Str(self.0.get_or_intern(text))
    }

    /// The id of `text` if it is in the table.
    pub fn find(&self, text: &str) -> Option<Str> {
        self.0.get(text).map(Str)
    }

    /// The text of `id`; empty for an id of another table.
    pub fn text(&self, id: Str) -> &str {
        self.0.resolve(id.0).unwrap_or("")
    }

    /// All strings, in order of their ids.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, text)| text)
    }

    /// Bytes held: text, ends and hash table (an estimate).
    pub fn text_bytes(&self) -> usize {
        let text: usize = self.0.iter().map(|(_, text)| text.len()).sum();
        text + self.0.len() * 16
    }

    /// Gives back what the table holds in reserve.
    pub fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no string.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
