//! Python numbers: computed where they are known, functions of their inputs elsewhere.

use super::arguments::Call;
use super::evaluation::Produced;
use super::key::Tag;
use super::machine::{Machine, Stop};
use super::reason::Reason;
use super::source::{Source, Traits};
use super::views::dimension;
use crate::graph::{Out, Value};
use crate::ops::{Kind, Number, OpInfo};

impl Machine<'_, '_> {
    /// Executes arithmetic on numbers.
    pub(super) fn number(&mut self, info: &OpInfo, op: Number) -> Result<Produced, Reason> {
        // The same Python functions take tensors.
        if matches!(self.graph.node(self.node).out, Out::Tensor(_)) {
            return self.opaque(info, None, Traits::default());
        }
        let graph = self.graph;
        let mut known = Vec::new();
        for &value in graph.args(self.node) {
            match value {
                Value::List(span) => {
                    known.extend(graph.values(span).iter().map(|&v| self.int_value(v).ok()));
                }
                value => known.push(self.int_value(value).ok()),
            }
        }
        let known: Option<Vec<i64>> = known.into_iter().collect();
        if let Some(result) = known.and_then(|known| compute(op, &known)) {
            return Ok(Produced::Int(result));
        }
        let target = self.target_symbol();
        self.words.0.clear();
        self.words.symbol(Tag::Target, target);
        self.encode_raw(self.node)?;
        Ok(Produced::Number(self.take_key()))
    }

    /// Executes `sym_size`, `sym_numel`, `sym_stride`, `item`.
    pub(super) fn number_of_tensor(&mut self, info: &OpInfo, call: &Call<'_>) -> Result<Produced, Stop> {
        let tensor = self.tensor(call.node(0)?)?;
        if info.kind != Kind::Item && !self.is_symbolic(tensor) {
            let (sizes, strides) = (self.eval.sizes(tensor), self.eval.strides(tensor));
            let pick = |list: &[i64], dim| list.get(dim).copied().ok_or(Reason::arguments("no dimension"));
            return Ok(Produced::Int(match info.kind {
                Kind::SymSize => pick(sizes, dimension(self.int(call, 1)?, sizes.len())?)?,
                Kind::SymStride => pick(strides, dimension(self.int(call, 1)?, sizes.len())?)?,
                _ => super::layout::numel(sizes).ok_or(Reason::Overflow)?,
            }));
        }
        let target = self.target_symbol();
        if info.kind == Kind::Item {
            self.words.0.clear();
            self.words.symbol(Tag::Target, target);
            self.encode_bound(call, info.kind)?;
            return Ok(Produced::Number(self.take_key()));
        }
        // The size of a symbolic tensor is a function of what the tensor is made of, not of what it holds; the
        // value names both. Reading it is not reading memory, so no hazard is noted; and it is the same before a wait
        // as behind it.
        let value = self.eval.shown(self.arena, tensor, self.content(tensor))?;
        let value = match self.arena.single(value).map(|piece| self.arena.get(piece.source)) {
            Some(Source::InFlight { result }) => result,
            _ => value,
        };
        self.words.0.clear();
        self.words.symbol(Tag::Target, target);
        if let Some(index) = call.index("dim") {
            let dim = self.int(call, index)?;
            self.words.int(dim);
        }
        self.words.token(value, tensor.dtype);
        Ok(Produced::Number(self.take_key()))
    }

    /// Executes `operator.getitem`.
    pub(super) fn item(&mut self, info: &OpInfo) -> Result<Produced, Reason> {
        let graph = self.graph;
        let (Some(Value::Node(from)), Some(index)) = (graph.arg(self.node, 0), graph.arg(self.node, 1))
        else {
            return Err(Reason::arguments("no item of a node"));
        };
        let (start, len) = match self.produced(from)? {
            Produced::List(start, len) => (start, len),
            // Of what is not known to be there, nothing tells one item from another.
            Produced::Nothing => return Err(Reason::Input(graph.name(from).to_string())),
            _ => return self.opaque(info, None, Traits::ASSUMED),
        };
        let index = match index {
            Value::Str(key) => match graph.node(from).out {
                Out::Dict(span) => graph.outs(span).chunks_exact(2).position(|pair| pair[0] == Out::Key(key)),
                _ => None,
            },
            value => match self.int_value(value) {
                Ok(n) if n < 0 => n.checked_add(i64::from(len)).and_then(|n| usize::try_from(n).ok()),
                Ok(n) => usize::try_from(n).ok(),
                Err(_) => None,
            },
        };
        match index.filter(|&i| i < len as usize) {
            Some(index) => Ok(match self.eval.items[start as usize + index] {
                Produced::Tensor(tensor, _) => self.done(tensor),
                Produced::Unknown(_) => return Err(Reason::Input(graph.name(from).to_string())),
                item => item,
            }),
            None => Err(Reason::arguments(format!("{} has {len} results", graph.name(from)))),
        }
    }
}

/// Python's arithmetic on integers; `None` where the result is none that fits, or not known here.
fn compute(op: Number, args: &[i64]) -> Option<i64> {
    let truth = |b: bool| Some(i64::from(b));
    match (op, args) {
        (Number::Sum, _) => args.iter().try_fold(0i64, |sum, &n| sum.checked_add(n)),
        (Number::Max, _) => args.iter().copied().max(),
        (Number::Min, _) => args.iter().copied().min(),
        (Number::Neg, &[a]) => a.checked_neg(),
        (Number::Not, &[a]) => truth(a == 0),
        (Number::Add, &[a, b]) => a.checked_add(b),
        (Number::Sub, &[a, b]) => a.checked_sub(b),
        (Number::Mul, &[a, b]) => a.checked_mul(b),
        (Number::FloorDiv, &[a, b]) => floor(a, b).map(|(quotient, _)| quotient),
        (Number::Mod, &[a, b]) => floor(a, b).map(|(_, rest)| rest),
        (Number::Pow, &[a, b]) => a.checked_pow(u32::try_from(b).ok()?),
        (Number::Eq, &[a, b]) => truth(a == b),
        (Number::Ne, &[a, b]) => truth(a != b),
        (Number::Lt, &[a, b]) => truth(a < b),
        (Number::Le, &[a, b]) => truth(a <= b),
        (Number::Gt, &[a, b]) => truth(a > b),
        (Number::Ge, &[a, b]) => truth(a >= b),
        // On bools; on other integers these are bitwise, and `and` of bools is the same.
        (Number::And, &[a, b]) => Some(a & b),
        (Number::Or, &[a, b]) => Some(a | b),
        _ => None,
    }
}

/// Quotient rounded down, and the rest, which has the sign of the divisor.
fn floor(a: i64, b: i64) -> Option<(i64, i64)> {
    let (quotient, rest) = (a.checked_div(b)?, a.checked_rem(b)?);
    if rest != 0 && (rest < 0) != (b < 0) {
        Some((quotient.checked_sub(1)?, rest + b))
    } else {
        Some((quotient, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_rounds_down() {
        for (a, b, quotient, rest) in [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1)] {
            assert_eq!(compute(Number::FloorDiv, &[a, b]), Some(quotient));
            assert_eq!(compute(Number::Mod, &[a, b]), Some(rest));
        }
        assert_eq!(compute(Number::FloorDiv, &[1, 0]), None);
        assert_eq!(compute(Number::FloorDiv, &[i64::MIN, -1]), None);
        assert_eq!(compute(Number::Add, &[i64::MAX, 1]), None);
        assert_eq!(compute(Number::Pow, &[2, -1]), None);
    }
}
