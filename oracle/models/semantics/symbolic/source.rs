//! Where elements come from.
//!
//! A source is a function of a rank and an element number. Sources are built bottom up and hash-consed: two sources
//! with one id are the same function, whatever graph they came from.

use super::place::{GroupId, PlaceId};
use crate::graph::Dtype;

/// A source of an arena.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct SourceId(pub(super) u32);

/// A value: an interned list of runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ValueId(pub(super) u32);

/// A text of an arena: the same in all graphs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Symbol(pub(super) u32);

/// An interned description of a call; see [`key`](super::key).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct KeyId(pub(super) u32);

/// An interned list of (size, stride) pairs; see [`layout`](super::layout).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct LayoutId(pub(super) u32);

/// An interned list of pieces, one for each rank of a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct TableId(pub(super) u32);

/// Memory that nothing has been written to.
pub(super) const POISON: SourceId = SourceId(0);

/// Where elements come from. In the formulas `S(r, t)` is element `t` of source `S` on rank `r`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Source {
    /// Unwritten memory. All its elements count as equal.
    Poison,
    /// An input of the graph, in row-major order.
    Placeholder { position: u32 },
    /// The part of an input's storage that the input does not show, by place in the storage.
    Beyond { position: u32 },
    /// A constant of the module, in row-major order.
    Attribute { name: Symbol },
    /// One number; `key` is its value.
    Constant { dtype: Dtype, key: KeyId },
    /// Memory that a collective in flight will write, and what will lie there. All its elements count as equal.
    InFlight { result: ValueId },
    /// A result of a call that is not computed, in row-major order.
    Opaque { key: KeyId, output: u32 },
    /// `cast(S(r, t))`.
    Cast { source: SourceId, from: Dtype, to: Dtype },
    /// The bits of `S(r, ..)` read as another type. Element numbers count elements of the new type.
    Bits { source: SourceId, from: Dtype, to: Dtype },
    /// `op` over the members `j` of `group` of `S(place(r with group := j), t)`.
    Reduced { op: Symbol, group: GroupId, source: SourceId, place: PlaceId },
    /// `S_k(place_k(r), t + shift_k)`, where `k` is the index of `r` in `group`: the k-th of a table of pieces.
    Select { group: GroupId, table: TableId },
    /// `S(place(r), t)`: for a place whose offset a move would change in an unknown way.
    Elsewhere { source: SourceId, place: PlaceId },
    /// Element `layout(t)` of `content`, on rank `r`: what a window shows that no few runs can say.
    Window { content: ValueId, layout: LayoutId },
}

/// Facts about a source or a value, as a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Traits(u8);

impl Traits {
    /// Holds unwritten memory.
    pub(super) const POISON: Traits = Traits(1);
    /// Holds memory that a collective in flight will write.
    pub(super) const IN_FLIGHT: Traits = Traits(2);
    /// Every element on every rank is the same.
    pub(super) const UNIFORM: Traits = Traits(4);
    /// Shows a window, at whatever depth, be it on some ranks only.
    pub(super) const WINDOW: Traits = Traits(8);

    /// Whether it has all of `other`.
    pub(super) fn has(self, other: Traits) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets together.
    pub(super) fn and(self, other: Traits) -> Traits {
        Traits(self.0 | other.0)
    }

    /// What the two sets share.
    pub(super) fn shared(self, other: Traits) -> Traits {
        Traits(self.0 & other.0)
    }
}
