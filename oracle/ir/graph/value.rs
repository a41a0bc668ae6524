//! Argument values: what stands between a node's parentheses.
//!
//! Values live in one arena per graph. A list is a [`Span`] of that arena, so a node's arguments are a slice
//! and nothing is allocated per node. References may sit at any depth; all of them are edges.

use super::span::Span;
use super::strings::Str;
use super::tensor::{Dtype, ExprId};

/// A node of one graph. In a finished [`Graph`](super::Graph) the id is the position in list order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct NodeId(pub u32);

impl NodeId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One argument value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// Python's `None`.
    None,
    /// A bool.
    Bool(bool),
    /// An integer; `i64::MAX` is PyTorch's end-of-slice marker.
    Int(i64),
    /// A float, infinities and NaN included.
    Float(f64),
    /// A string.
    Str(Str),
    /// The value of another node.
    Node(NodeId),
    /// A reference to a name that no node has: a fault of the graph, kept so that it can be reported.
    Dangling(Str),
    /// A list or tuple.
    List(Span),
    /// A dtype constant.
    Dtype(Dtype),
    /// A device constant.
    Device(Str),
    /// A memory format constant.
    MemoryFormat(Str),
    /// A layout constant.
    Layout(Str),
    /// A complex constant: two floats in the arena.
    Complex(Span),
    /// `slice(a, b, c)`: three values in the arena.
    Slice(Span),
    /// A symbolic integer.
    Symbolic(ExprId),
    /// A mapping in order: key and value alternate in the arena.
    Dict(Span),
    /// A function by name.
    Function(Str),
}
