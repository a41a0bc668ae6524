//! What somebody has to offer who makes failing cases smaller: for proptest's strategies, and for Hypothesis in Python.

use crate::case::Case;

/// Proposes smaller cases. A reducer implements this.
pub trait Shrink: Clone {
    /// Where the proposals stand. Each round begins with the default.
    type Place: Default;

    /// The next case smaller than `case`, from `place` on, which is moved past it; `None` when there is none left.
    /// It need not fail as `case` does: it is tried. If it fails, it becomes the `case` of the next call, with
    /// `place` as it was left; when a round in which one failed is over, another round begins.
    ///
    /// Smaller means that no chain of proposals goes on for ever.
    fn smaller(&self, case: &Case, place: &mut Self::Place) -> Option<Case>;
}
