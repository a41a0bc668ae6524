//! Keys: a call written as words, so that equal calls on equal values are equal slices.
//!
//! A key is a sequence of tokens. The highest byte of a token's first word says what it is, the rest is payload, and
//! the number of further words follows from the two. Tensors stand there as values: dtype, sizes and the id of the
//! logical value; neither node names nor strides nor storages.

use super::same::Pair;
use super::source::{KeyId, Symbol, ValueId};
use crate::graph::Dtype;

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Tag {
    /// The operator: a symbol.
    Target = 1,
    /// The argument that follows is the one with this number.
    Argument,
    /// The argument that follows has this name, a symbol.
    Named,
    None,
    Bool,
    /// One word follows.
    Int,
    /// One word follows: the bits.
    Float,
    /// A symbol.
    Text,
    Dtype,
    /// A symbol.
    Device,
    /// A symbol.
    MemoryFormat,
    /// A symbol.
    Layout,
    /// A symbolic expression: a symbol.
    Symbolic,
    /// A symbol.
    Function,
    /// An attribute of the module: a symbol.
    Attribute,
    /// So many values follow.
    List,
    /// So many values follow, keys and values in turn.
    Dict,
    /// Three values follow.
    Slice,
    /// Two values follow.
    Complex,
    /// A number that is not known: a key.
    Number,
    /// Dtype and number of dimensions; a value and the sizes follow.
    Tensor,
    /// A tensor of symbolic sizes: its dtype; a value follows.
    Token,
    /// The number of a random draw.
    Draw,
    /// The number of an effect.
    Effect,
    /// A process group.
    Group,
}

const TAGS: [Tag; 25] = [
    Tag::Target,
    Tag::Argument,
    Tag::Named,
    Tag::None,
    Tag::Bool,
    Tag::Int,
    Tag::Float,
    Tag::Text,
    Tag::Dtype,
    Tag::Device,
    Tag::MemoryFormat,
    Tag::Layout,
    Tag::Symbolic,
    Tag::Function,
    Tag::Attribute,
    Tag::List,
    Tag::Dict,
    Tag::Slice,
    Tag::Complex,
    Tag::Number,
    Tag::Tensor,
    Tag::Token,
    Tag::Draw,
    Tag::Effect,
    Tag::Group,
];

/// A key under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Words(pub(super) Vec<u64>);

impl Words {
    /// A token without further words.
    pub(super) fn put(&mut self, tag: Tag, payload: u32) {
        self.0.push(((tag as u64) << 56) | u64::from(payload));
    }

    pub(super) fn symbol(&mut self, tag: Tag, symbol: Symbol) {
        self.put(tag, symbol.0);
    }

    pub(super) fn int(&mut self, n: i64) {
        self.put(Tag::Int, 0);
        self.0.push(n as u64);
    }

    pub(super) fn float(&mut self, x: f64) {
        self.put(Tag::Float, 0);
        self.0.push(x.to_bits());
    }

    pub(super) fn dtype(&mut self, dtype: Dtype) {
        self.put(Tag::Dtype, dtype as u32);
    }

    pub(super) fn tensor(&mut self, value: ValueId, dtype: Dtype, sizes: &[i64]) {
        self.put(Tag::Tensor, ((dtype as u32) << 16) | (sizes.len() as u32).min(0xffff));
        self.0.push(u64::from(value.0));
        self.0.extend(sizes.iter().map(|&n| n as u64));
    }

    pub(super) fn token(&mut self, value: ValueId, dtype: Dtype) {
        self.put(Tag::Token, dtype as u32);
        self.0.push(u64::from(value.0));
    }
}

/// The tag of a token.
pub(super) fn tag(word: u64) -> Option<Tag> {
    TAGS.get(((word >> 56) as usize).checked_sub(1)?).copied()
}

/// The payload of a token.
pub(super) fn payload(word: u64) -> u32 {
    word as u32
}

/// How many words follow the first word of a token.
fn further(word: u64) -> usize {
    match tag(word) {
        Some(Tag::Int | Tag::Float | Tag::Token) => 1,
        Some(Tag::Tensor) => 1 + (payload(word) & 0xffff) as usize,
        _ => 0,
    }
}

/// The tokens of a key: position of the first word, the word, and the words that follow it.
pub(super) fn tokens(words: &[u64]) -> impl Iterator<Item = (u64, &[u64])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let &word = words.get(at)?;
        let end = (at + 1 + further(word)).min(words.len());
        let rest = &words[at + 1..end];
        at = end;
        Some((word, rest))
    })
}

/// The tensors and numbers in which two calls differ, if they are one call on other values.
pub(super) fn inputs_that_differ(a: &[u64], b: &[u64]) -> Option<Vec<Pair>> {
    let mut pairs = Vec::new();
    let (mut left, mut right) = (tokens(a), tokens(b));
    loop {
        let ((one, rest), (other, others)) = match (left.next(), right.next()) {
            (Some(x), Some(y)) if x == y => continue,
            (Some(x), Some(y)) => (x, y),
            (None, None) => return Some(pairs),
            _ => return None,
        };
        pairs.push(match (tag(one)?, tag(other)?) {
            (Tag::Token, Tag::Token) | (Tag::Tensor, Tag::Tensor)
                if one == other && rest[1..] == others[1..] =>
            {
                Pair::Values(ValueId(rest[0] as u32), ValueId(others[0] as u32))
            }
            (Tag::Number, Tag::Number) => Pair::Keys(KeyId(payload(one)), KeyId(payload(other))),
            _ => return None,
        });
    }
}

/// The operator of a key.
pub(super) fn target(words: &[u64]) -> Option<Symbol> {
    let &word = words.first()?;
    (tag(word) == Some(Tag::Target)).then(|| Symbol(payload(word)))
}

/// The tensors of a key, each with its sizes.
pub(super) fn tensors(words: &[u64]) -> impl Iterator<Item = (ValueId, &[u64])> {
    let tensors = tokens(words).filter(|&(word, _)| tag(word) == Some(Tag::Tensor));
    tensors.map(|(_, rest)| (ValueId(rest[0] as u32), &rest[1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(target: u32, n: i64, value: u32, sizes: &[i64]) -> Vec<u64> {
        let mut words = Words::default();
        words.put(Tag::Target, target);
        words.int(n);
        words.tensor(ValueId(value), Dtype::BF16, sizes);
        words.put(Tag::Number, 7);
        words.0
    }

    #[test]
    fn tags_survive() {
        for (i, &tag_) in TAGS.iter().enumerate() {
            let mut words = Words::default();
            words.put(tag_, u32::MAX);
            assert_eq!((tag_ as usize, tag(words.0[0]), payload(words.0[0])), (i + 1, Some(tag_), u32::MAX));
        }
        assert_eq!(tag(0), None);
    }

    #[test]
    fn differences_of_inputs_are_told_from_those_of_calls() {
        let a = call(1, -5, 3, &[2, 3]);
        assert_eq!(tokens(&a).count(), 4);
        assert_eq!(inputs_that_differ(&a, &a), Some(vec![]));
        let pair = vec![Pair::Values(ValueId(3), ValueId(4))];
        assert_eq!(inputs_that_differ(&a, &call(1, -5, 4, &[2, 3])), Some(pair));
        let of_another_call = [call(2, -5, 3, &[2, 3]), call(1, 5, 3, &[2, 3])];
        let of_other_sizes = [call(1, -5, 3, &[3, 2]), call(1, -5, 3, &[6]), call(1, -5, 4, &[6])];
        for other in of_another_call.iter().chain(&of_other_sizes) {
            assert_eq!(inputs_that_differ(&a, other), None);
        }
        assert_eq!(target(&a), Some(Symbol(1)));
    }
}
