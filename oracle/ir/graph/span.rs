//! Slices of the arenas that a graph keeps its values and results in.

/// A slice of one of the graph's arenas.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Span {
    /// The empty slice.
    pub const EMPTY: Span = Span { start: 0, len: 0 };

    /// A slice by its indices. There is one empty slice, wherever it was taken.
    pub(super) fn of(range: std::ops::Range<usize>) -> Span {
        if range.is_empty() {
            return Span::EMPTY;
        }
        Span { start: range.start as u32, len: range.len() as u32 }
    }

    /// Number of elements.
    pub fn len(self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}
