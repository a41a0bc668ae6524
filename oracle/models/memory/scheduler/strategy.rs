//! The ingredients of the scheduler's memory model that another implementation might choose differently, one
//! method each. The defaults are the reference; whoever wants a broken one replaces a method.

/// The choices of a memory model.
pub trait Strategy {
    /// Whether the readers of a mutation's new name keep the buffer alive that it is a name of.
    fn merges_renames(&self) -> bool {
        true
    }

    /// Whether the readers of an alias keep its owner alive.
    fn merges_aliases(&self) -> bool {
        true
    }

    /// Whether whoever owns the memory of an output is kept like the output.
    fn keeps_owners_of_outputs(&self) -> bool {
        true
    }

    /// Whether a mutation's new name counts as memory of its own.
    fn counts_renames(&self) -> bool {
        false
    }

    /// Whether an alias counts as memory of its own.
    fn counts_aliases(&self) -> bool {
        false
    }
}

/// The reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reference;

impl Strategy for Reference {}
