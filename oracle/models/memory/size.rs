//! How many bytes a storage has.
//!
//! A recorded byte count counts as it is; without one, a storage reaches to the end of the first tensor on it. A
//! symbolic count has its hint. Where it has none, an unbacked symbol (a number that only the data tells) counts
//! as what the caller assumes: PyTorch takes 8192 for each symbol at the level of FX graphs
//! (`ShapeEnv.optimization_hint`) and 0 for a whole count in the scheduler. Nothing is assumed silently: who asks
//! learns whether a size rests on an assumption, and without one it has no size.

use crate::expression::evaluate;
use crate::graph::{Dim, Graph, Tensor};
use rustc_hash::FxHashMap;

/// What PyTorch takes for a symbol without a hint: `torch._dynamo.config.unbacked_symint_fallback`.
pub const PYTORCH_UNBACKED: i64 = 8192;

/// A number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bytes {
    /// How many.
    pub count: i64,
    /// Whether a symbol without a hint had to be assumed.
    pub assumed: bool,
}

/// Why a storage has no size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoSize {
    /// A symbol has no hint, and nothing is assumed.
    NoHint,
    /// It is negative.
    Negative,
    /// It does not fit 64 bits.
    TooLarge,
}

impl std::fmt::Display for NoSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            NoSize::NoHint => "its size depends on a symbol without a hint",
            NoSize::Negative => "its size is negative",
            NoSize::TooLarge => "its size does not fit 64 bits",
        })
    }
}

/// Sizes of one graph.
pub struct Sizes<'a> {
    graph: &'a Graph,
    hints: FxHashMap<&'a str, i64>,
    unbacked: Option<i64>,
}

impl<'a> Sizes<'a> {
    /// Sizes of `graph`, a symbol without a hint counting as `unbacked`.
    pub fn new(graph: &'a Graph, unbacked: Option<i64>) -> Sizes<'a> {
        let hint = |symbol: &'a crate::graph::Symbol| Some((symbol.name.as_str(), symbol.hint?));
        Sizes { graph, hints: graph.symbols.iter().filter_map(hint).collect(), unbacked }
    }

    /// The value of a size, stride or byte count.
    pub fn dim(&self, dim: Dim) -> Result<Bytes, NoSize> {
        let expr = match dim {
            Dim::Static(n) if n < 0 => return Err(NoSize::Negative),
            Dim::Static(n) => return Ok(Bytes { count: n, assumed: false }),
            Dim::Symbolic(expr) => self.graph.expr(expr),
        };
        let (count, assumed) = match (expr.hint, self.unbacked) {
            (Some(hint), _) => (hint, false),
            (None, unbacked) => {
                let text = self.graph.text(expr.text);
                let known = |name: &str| self.hints.get(name).copied();
                match (evaluate(text, &known), unbacked) {
                    (Some(count), _) => (count, false),
                    (None, None) => return Err(NoSize::NoHint),
                    (None, Some(n)) => {
                        let count = evaluate(text, &|name| known(name).or(Some(n)));
                        (count.ok_or(NoSize::TooLarge)?, true)
                    }
                }
            }
        };
        if count < 0 { Err(NoSize::Negative) } else { Ok(Bytes { count, assumed }) }
    }

    /// The bytes of the storage that `tensor` is the first one on.
    pub fn storage(&self, tensor: &Tensor) -> Result<Bytes, NoSize> {
        match tensor.storage_bytes {
            Some(bytes) => self.dim(bytes),
            None => self.end(tensor),
        }
    }

    /// The end of a tensor's window, in bytes from the start of its storage.
    pub fn end(&self, tensor: &Tensor) -> Result<Bytes, NoSize> {
        let (shape, stride) = (self.graph.dims(tensor.shape), self.graph.dims(tensor.stride));
        let mut assumed = false;
        let mut last = tensor.offset;
        if last < 0 {
            return Err(NoSize::Negative);
        }
        let mut empty = false;
        for (&size, &stride) in shape.iter().zip(stride) {
            let (size, stride) = (self.dim(size)?, self.dim(stride)?);
            assumed |= size.assumed || stride.assumed;
            empty |= size.count == 0;
            if size.count > 0 {
                let reach = (size.count - 1).checked_mul(stride.count);
                last = reach.and_then(|reach| last.checked_add(reach)).ok_or(NoSize::TooLarge)?;
            }
        }
        if empty {
            return Ok(Bytes { count: 0, assumed });
        }
        let end = last.checked_add(1).and_then(|end| end.checked_mul(i64::from(tensor.dtype.itemsize())));
        end.map(|count| Bytes { count, assumed }).ok_or(NoSize::TooLarge)
    }
}
