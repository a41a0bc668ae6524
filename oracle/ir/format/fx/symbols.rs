//! Symbols: their values when the graph was traced, and expressions over them.

use crate::expression::evaluate;
use crate::graph::Symbol;
use rustc_hash::FxHashMap;

/// The value of each symbol when the graph was traced, where it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Hints(FxHashMap<String, i64>);

impl Hints {
    pub(super) fn new(symbols: &[Symbol]) -> Hints {
        Hints(symbols.iter().filter_map(|symbol| Some((symbol.name.clone(), symbol.hint?))).collect())
    }

    /// The value of an expression.
    pub(super) fn value(&self, text: &str) -> Option<i64> {
        evaluate(text, &|name| self.0.get(name).copied())
    }
}

/// The parts of a list, split at commas outside parentheses; none of an empty one.
pub(super) fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0u32, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    let last = text[from..].trim();
    if !last.is_empty() {
        parts.push(last);
    }
    parts
}
