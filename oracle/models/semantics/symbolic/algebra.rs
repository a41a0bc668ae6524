//! Calls that are written differently and may still compute the same.
//!
//! A whole number is one whether it is written 2 or 2.0, calls that give back what they take are no calls
//! ([`is_neutral`](crate::semantics::is_neutral)), and floats commute under addition and multiplication, bit for bit up to
//! the payload of a NaN: such a call is written as it was before. What a call does that the same call undoes (`-(-x)`)
//! is left out, the larger of `x` and 0 is `relu(x)`, of zeros of either sign and of NaN too, and `x * 2` is `x + x`
//! and `x * -1` is `-x`: of floats that is exact, infinities and zeros of either sign too, and integers wrap alike. All
//! other laws hold of numbers and not of their bits, or only for some numbers (`addmm` for `mm` and `add`, a sum in
//! another order, `x * 3` for an `x` of zeros): what is written by them is open here.

use super::arena::Arena;
use super::key::{Tag, Words, inputs_that_differ, payload, tag, target, tensors, tokens};
use super::place::HERE;
use super::same::Pair;
use super::source::{KeyId, Source, ValueId};
use crate::graph::{Dtype, DtypeClass};
use crate::semantics::Number;

/// The operands of a call that may be exchanged.
const OPERANDS: usize = 2;

/// Whether two tensors, which are all that an operator is given, may be exchanged.
fn commutes(target: &str) -> bool {
    let Some((name, "Tensor" | "default")) = target.strip_prefix("aten.").and_then(|t| t.split_once('.'))
    else {
        return false;
    };
    let sums = ["add", "mul", "eq", "ne"];
    let bits = ["bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor"];
    sums.contains(&name) || bits.contains(&name) || is_choice(target)
}

/// Whether an operator gives one of two operands. Of floats these may be zeros of either sign, or two NaNs: there it
/// does not commute exactly.
fn is_choice(target: &str) -> bool {
    ["aten.maximum.default", "aten.minimum.default"].contains(&target)
}

/// The dtype of a tensor of a call.
fn dtype_of(word: u64) -> Option<Dtype> {
    let dtype = match tag(word)? {
        Tag::Tensor => payload(word) >> 16,
        Tag::Token => payload(word),
        _ => return None,
    };
    Dtype::ALL.iter().copied().find(|&one| one as u32 == dtype)
}

/// Whether some tensor of a call holds floats or complex numbers.
fn has_floats(words: &[u64]) -> bool {
    tokens(words).any(|(word, _)| dtype_of(word).is_some_and(|dtype| dtype.class() >= DtypeClass::Float))
}

/// Whether a kernel reads two operands alike, whichever comes first. Beside 16 bits it may take one without dimensions
/// as it is, and round the other one.
fn are_read_alike(a: u64, b: u64) -> bool {
    let is_short = |dtype| matches!(dtype, Some(Dtype::F16 | Dtype::BF16));
    let [a, b] = [a, b].map(dtype_of);
    a == b || !is_short(a) && !is_short(b)
}

/// The first words of the operands of a call of two tensors, and nothing else.
fn operands(words: &[u64]) -> Option<[usize; OPERANDS]> {
    let mut at = 0;
    let mut found = Vec::with_capacity(OPERANDS);
    for (word, rest) in tokens(words) {
        match tag(word)? {
            Tag::Target | Tag::Argument => {}
            Tag::Tensor | Tag::Token => found.push(at),
            _ => return None,
        }
        at += 1 + rest.len();
    }
    <[usize; OPERANDS]>::try_from(found).ok()
}

/// Comparisons: their results are booleans, whatever they are given.
const COMPARISONS: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];

/// Writes the numbers of a function of corresponding elements as integers where they are whole: `x * 2.0` is `x * 2`.
/// Only where some tensor holds floats, as elsewhere a float makes the result one; or where integers are compared: with a
/// float that takes place in float32, which rounds monotonically and has all whole numbers below 2^24, with an integer in
/// the dtype of the tensor, where the number wraps unless the dtype holds it.
pub(super) fn write_whole_numbers(words: &mut Words, target: &str) {
    let is_comparison = target.split('.').nth(1).is_some_and(|name| COMPARISONS.contains(&name));
    let is_float = has_floats(&words.0);
    if !is_float && !is_comparison {
        return;
    }
    let limit = if is_float { 1u64 << 53 } else { 1u64 << 24 } as f64;
    let given: Vec<Dtype> = tokens(&words.0).filter_map(|(word, _)| dtype_of(word)).collect();
    let is_held = |x: f64| is_float || !given.iter().any(|&dtype| Number::Float(x).overflows(dtype));
    let mut whole = Vec::new();
    let mut at = 0;
    for (word, rest) in tokens(&words.0) {
        if let (Some(Tag::Float), &[bits]) = (tag(word), rest) {
            let x = f64::from_bits(bits);
            let is_whole = x.fract() == 0.0 && x.abs() < limit && (x != 0.0 || x.is_sign_positive());
            whole.extend((is_whole && is_held(x)).then_some((at, x as i64)));
        }
        at += 1 + rest.len();
    }
    for (at, n) in whole {
        let mut number = Words::default();
        number.int(n);
        words.0.splice(at..at + 2, number.0);
    }
}

/// What may be written as the larger of an element and a number.
const CLAMPS: [&str; 2] = ["aten.clamp_min.default", "aten.clamp.default"];

/// The larger of an element and 0.
const RELU: &str = "aten.relu.default";

/// A product, and what it is written as where the number is 2 or -1.
const PRODUCT: &str = "aten.mul.Tensor";
const SUM: &str = "aten.add.Tensor";
const NEGATION: &str = "aten.neg.default";

/// Calls that give back what the same call was given.
const INVOLUTIONS: [&str; 2] = ["aten.neg.default", "aten.flip.default"];

/// Whether a dtype is that of floats or integers.
fn is_real(dtype: Dtype) -> bool {
    matches!(dtype.class(), DtypeClass::Float | DtypeClass::Int)
}

impl Arena {
    /// Writes a call that commutes as it was written before, be it with exchanged operands.
    pub(super) fn order_operands(&self, words: &mut Words) {
        let commutes = target(&words.0).is_some_and(|target| commutes(self.text(target)));
        if !commutes || self.chooses_floats(&words.0) || self.has_key(words) {
            return;
        }
        let Some([first, second]) = operands(&words.0) else { return };
        if !are_read_alike(words.0[first], words.0[second]) {
            return;
        }
        let (one, other) = (&words.0[first..second - 1], &words.0[second..]);
        let exchanged = Words([&words.0[..first], other, &words.0[second - 1..second], one].concat());
        if self.has_key(&exchanged) {
            *words = exchanged;
        }
    }

    /// Writes `clamp_min(x, 0)` as `relu(x)`.
    pub(super) fn write_relu(&mut self, words: &mut Words) {
        if !target(&words.0).is_some_and(|target| CLAMPS.contains(&self.text(target))) {
            return;
        }
        let all: Vec<(u64, usize)> = tokens(&words.0).map(|(word, rest)| (word, 1 + rest.len())).collect();
        let [_, (first, _), (x, of_x), (second, _), (n, of_n)] = all[..] else { return };
        let is_zero = tag(n) == Some(Tag::Int) && of_n == 2 && words.0.last() == Some(&0);
        let is_of_two = [first, second].map(|word| (tag(word), payload(word)))
            == [(Some(Tag::Argument), 0), (Some(Tag::Argument), 1)];
        if is_zero && is_of_two && tag(x) == Some(Tag::Tensor) {
            words.0.truncate(2 + of_x);
            let mut relu = Words::default();
            let name = self.symbol(RELU);
            relu.symbol(Tag::Target, name);
            words.0.splice(..1, relu.0);
        }
    }

    /// Writes `x * 2` as `x + x`, and `x * -1` as `-x`: of floats and integers, but not of complex numbers, whose other
    /// part is multiplied by 0.
    pub(super) fn write_multiple(&mut self, words: &mut Words) {
        if target(&words.0).is_none_or(|target| self.text(target) != PRODUCT) {
            return;
        }
        let all: Vec<(u64, usize)> = tokens(&words.0).map(|(word, rest)| (word, 1 + rest.len())).collect();
        let [_, (first, _), (x, of_x), (second, _), (n, of_n)] = all[..] else { return };
        let is_of_two = [first, second].map(|word| (tag(word), payload(word)))
            == [(Some(Tag::Argument), 0), (Some(Tag::Argument), 1)];
        let is_whole = tag(n) == Some(Tag::Int) && of_n == 2;
        let is_real = tag(x) == Some(Tag::Tensor) && dtype_of(x).is_some_and(is_real);
        let number = words.0.last().map(|&number| number as i64).filter(|_| is_of_two && is_whole && is_real);
        let mut target = Words::default();
        let at = 2 + of_x;
        match number {
            Some(2) => {
                let operand = words.0[2..at].to_vec();
                words.0.splice(at + 1.., operand);
                let name = self.symbol(SUM);
                target.symbol(Tag::Target, name);
            }
            Some(-1) => {
                words.0.truncate(at);
                let name = self.symbol(NEGATION);
                target.symbol(Tag::Target, name);
            }
            _ => return,
        }
        words.0.splice(..1, target.0);
    }

    /// What a call gives back that was given to the same call before it: `x` of `-(-x)`, the elements in order.
    pub(super) fn undone(&self, words: &[u64]) -> Option<ValueId> {
        target(words).filter(|&target| INVOLUTIONS.contains(&self.text(target)))?;
        let (taken, sizes) = tensors(words).next()?;
        let piece = self.single(taken).filter(|piece| piece.offset == 0 && piece.place == HERE)?;
        let Source::Opaque { key, output: 0 } = self.get(piece.source) else { return None };
        let inner = self.words(key);
        let (given, of) = tensors(inner).next()?;
        let is_whole = self.len(given) == self.len(taken) && (piece.step == 1 || piece.len == 1);
        let is_same_call = inputs_that_differ(inner, words) == Some(vec![Pair::Values(given, taken)]);
        (is_whole && of == sizes && is_same_call).then_some(given)
    }

    /// The operands of two calls of one operator that commutes, all of one dtype and of the same sizes.
    pub(super) fn exchangeable(&self, a: KeyId, b: KeyId) -> Option<[[ValueId; OPERANDS]; 2]> {
        let (one, other) = (self.words(a), self.words(b));
        let is_one_operator = target(one) == target(other);
        let commutes = target(one).is_some_and(|target| commutes(self.text(target)));
        if !is_one_operator || !commutes || self.chooses_floats(one) {
            return None;
        }
        let kind = |(word, rest): (u64, &'_ [u64])| (word, rest.get(1..).map(<[u64]>::to_vec));
        let values = |words: &[u64]| {
            let found = operands(words)?;
            let each = found.map(|at| tokens(&words[at..]).next().map(kind));
            Some((each, tensors(words).map(|(value, _)| value).collect::<Vec<_>>().try_into().ok()?))
        };
        let (([p, q], one), ([r, s], other)) = (values(one)?, values(other)?);
        (p == q && q == r && r == s).then_some([one, other])
    }

    fn chooses_floats(&self, words: &[u64]) -> bool {
        target(words).is_some_and(|target| is_choice(self.text(target))) && has_floats(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Dtype, World};
    use crate::semantics::symbolic::Limits;

    #[test]
    fn operands_are_written_as_before() {
        let mut arena = Arena::new(&World::default(), Limits::DEFAULT);
        let mut call = |name: &str, values: [u32; 2], alpha: bool| {
            let mut words = Words::default();
            let name = arena.symbol(name);
            words.symbol(Tag::Target, name);
            for (index, value) in values.into_iter().enumerate() {
                words.put(Tag::Argument, index as u32);
                words.tensor(ValueId(value), Dtype::F32, &[2; 8][..value as usize]);
            }
            if alpha {
                words.put(Tag::Argument, 2);
                words.int(2);
            }
            arena.order_operands(&mut words);
            arena.key(&words);
            let sizes: Vec<(u32, usize)> = tensors(&words.0).map(|(v, sizes)| (v.0, sizes.len())).collect();
            assert_eq!(tokens(&words.0).count(), 5 + 2 * usize::from(alpha));
            sizes
        };
        for name in ["aten.add.Tensor", "aten.mul.Tensor"] {
            assert_eq!(call(name, [4, 3], false), [(4, 4), (3, 3)]);
            assert_eq!(call(name, [3, 4], false), [(4, 4), (3, 3)]);
            assert_eq!(call(name, [3, 5], false), [(3, 3), (5, 5)]);
        }
        for (name, alpha) in [("aten.sub.Tensor", false), ("aten.add.Tensor", true)] {
            assert_eq!(call(name, [4, 3], alpha), [(4, 4), (3, 3)]);
            assert_eq!(call(name, [3, 4], alpha), [(3, 3), (4, 4)]);
        }
    }
}
