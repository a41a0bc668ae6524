//! Why a value is not known.

use crate::limits::Limit;
use thiserror::Error;

/// Why the value of a node is not known, or why an evaluation cannot answer a question.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Reason {
    /// A size, an offset or a number of elements.
    #[error("a size that does not fit 64 bits")]
    Overflow,
    /// See [`Limits::runs`](super::Limits::runs).
    #[error("more than {limit} runs of elements")]
    TooManyRuns {
        /// The limit.
        limit: usize,
    },
    /// More results of one call than are listed.
    #[error("{0} pieces of one tensor: at most {most} are listed", most = Limit::Pieces.standard())]
    Pieces(i64),
    /// The arguments do not fit the schema, or make no sense together.
    #[error("{0}")]
    Arguments(String),
    /// A view that no strides can show.
    #[error("no view of this shape exists")]
    NoSuchView,
    /// A window that reaches beyond its storage.
    #[error("elements up to {end} of a storage of {len}")]
    Outside {
        /// One past the last element that is needed.
        end: i64,
        /// Elements of the storage.
        len: i64,
    },
    /// Nothing is recorded about the result.
    #[error("no shape and dtype are recorded")]
    NoMetadata,
    /// An input whose value is not known.
    #[error("the value of {0} is not known")]
    Input(String),
    /// A reference to a name that no node has.
    #[error("there is no node {0}")]
    Dangling(String),
    /// A reference to a node that comes later in the list.
    #[error("{0} has not been computed yet")]
    TooEarly(String),
    /// A group that has no ranks, or sizes that do not divide by its size.
    #[error("a group of {ranks} ranks for {elements} elements")]
    Group {
        /// Ranks of the group.
        ranks: i64,
        /// Elements of the input.
        elements: i64,
    },
}

impl Reason {
    /// Whether what the graph records contradicts itself: arguments whose sizes do not fit each other. Sizes that
    /// depend on data are often recorded so, as hints. The call is then a function of its inputs of which nothing else
    /// is known.
    pub(super) fn is_contradiction(&self) -> bool {
        matches!(
            self,
            Reason::Arguments(_) | Reason::NoSuchView | Reason::Outside { .. } | Reason::Group { .. }
        )
    }

    pub(super) fn arguments(text: impl Into<String>) -> Reason {
        Reason::Arguments(text.into())
    }
}
