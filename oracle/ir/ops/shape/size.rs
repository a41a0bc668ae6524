//! Sizes as a rule speaks of them: known, symbolic, or not decided.
//!
//! A rule never guesses: arithmetic on a symbol, or past 64 bits, gives [`Size::Unknown`], and a comparison with
//! it gives no answer.

use crate::graph::layout::Numbers;
use crate::graph::{Dim, ExprId, Graph};
use smallvec::SmallVec;

/// A short list of sizes, strides or other numbers.
pub type Sizes = SmallVec<[Size; 4]>;

/// A size, stride or offset in elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Size {
    /// A number.
    Known(i64),
    /// An expression of the graph, unchanged from an input.
    Symbol(ExprId),
    /// The rule does not decide it.
    Unknown,
}

impl From<Dim> for Size {
    fn from(dim: Dim) -> Size {
        match dim {
            Dim::Static(n) => Size::Known(n),
            Dim::Symbolic(expr) => Size::Symbol(expr),
        }
    }
}

impl From<Option<i64>> for Size {
    fn from(n: Option<i64>) -> Size {
        n.map_or(Size::Unknown, Size::Known)
    }
}

impl Size {
    /// The number, if it is one.
    pub fn known(self) -> Option<i64> {
        match self {
            Size::Known(n) => Some(n),
            _ => None,
        }
    }

    /// Whether it equals `other`; `None` where that is not decided.
    pub fn same(self, other: Size) -> Option<bool> {
        match (self, other) {
            (Size::Known(a), Size::Known(b)) => Some(a == b),
            (Size::Symbol(a), Size::Symbol(b)) if a == b => Some(true),
            _ => None,
        }
    }

    /// Whether it is surely different from `other`.
    pub fn differs(self, other: Size) -> bool {
        self.same(other) == Some(false)
    }

    /// Product.
    pub fn times(self, other: Size) -> Size {
        match (self, other) {
            (Size::Known(a), Size::Known(b)) => a.checked_mul(b).into(),
            (Size::Known(1), x) | (x, Size::Known(1)) => x,
            (Size::Known(0), _) | (_, Size::Known(0)) => Size::Known(0),
            _ => Size::Unknown,
        }
    }

    /// Sum.
    pub fn plus(self, other: Size) -> Size {
        match (self, other) {
            (Size::Known(a), Size::Known(b)) => a.checked_add(b).into(),
            (Size::Known(0), x) | (x, Size::Known(0)) => x,
            _ => Size::Unknown,
        }
    }

    /// Product with a number.
    pub fn scaled(self, factor: i64) -> Size {
        self.times(Size::Known(factor))
    }
}

/// All of them as numbers, if they are.
pub fn known(sizes: &[Size]) -> Option<Numbers> {
    sizes.iter().map(|s| s.known()).collect()
}

/// The number of elements.
pub fn numel(sizes: &[Size]) -> Size {
    // A size of 0 decides, whatever the others are.
    if sizes.contains(&Size::Known(0)) {
        return Size::Known(0);
    }
    sizes.iter().fold(Size::Known(1), |n, &s| n.times(s))
}

/// Row-major strides.
pub fn contiguous(sizes: &[Size]) -> Sizes {
    let mut strides = Sizes::from_elem(Size::Known(1), sizes.len());
    for i in (1..sizes.len()).rev() {
        let at_least_one = match sizes[i] {
            Size::Known(n) => Size::Known(n.max(1)),
            other => other,
        };
        strides[i - 1] = strides[i].times(at_least_one);
    }
    strides
}

/// `[4, u0, 3]`; `?` where not decided.
pub fn text(graph: &Graph, sizes: &[Size]) -> String {
    text_by(sizes, |expr| graph.text(graph.expr(expr).text).to_string())
}

/// The same; `symbol` says how an expression is written.
pub fn text_by(sizes: &[Size], symbol: impl Fn(ExprId) -> String) -> String {
    let one = |s: &Size| match *s {
        Size::Known(n) => n.to_string(),
        Size::Symbol(expr) => symbol(expr),
        Size::Unknown => "?".to_string(),
    };
    format!("[{}]", sizes.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// a / b rounded up, for b > 0.
pub(super) fn ceil(a: i64, b: i64) -> i64 {
    a / b + i64::from(a % b > 0)
}
