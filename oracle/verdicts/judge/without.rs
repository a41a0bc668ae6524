//! What is left out of generated cases, because who is judged does not take it.
//!
//! A refusal says nothing about a pass, so what a candidate is known to refuse is not made in the first place.

/// Something that a candidate may not take.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Without {
    /// Barriers between ranks.
    Barriers,
    /// Bodies of higher-order operators.
    Bodies,
    /// Messages from rank to rank, and what else gives ranks different graphs.
    Messages,
    /// Ordering edges.
    OrderingEdges,
    /// Ordering edges from a launch, or to a wait.
    OrderingEdgesInFlight,
    /// Random draws.
    RandomDraws,
    /// Several streams, and what orders them.
    Streams,
    /// Sizes that are symbols.
    SymbolicSizes,
    /// Operators that the oracle does not compute.
    Uninterpreted,
    /// Joint graphs that do not say which nodes are of forward and which of backward.
    Untagged,
    /// Operators that write to an argument, but for copies into inputs at the end.
    Writes,
}

impl Without {
    /// All of them, by name.
    pub const ALL: &'static [Without] = &[
        Without::Barriers,
        Without::Bodies,
        Without::Messages,
        Without::OrderingEdges,
        Without::OrderingEdgesInFlight,
        Without::RandomDraws,
        Without::Streams,
        Without::SymbolicSizes,
        Without::Uninterpreted,
        Without::Untagged,
        Without::Writes,
    ];

    /// The name, as workers say it (docs/protocol.md).
    pub fn name(self) -> &'static str {
        match self {
            Without::Barriers => "barriers",
            Without::Bodies => "bodies",
            Without::Messages => "messages",
            Without::OrderingEdges => "ordering-edges",
            Without::OrderingEdgesInFlight => "ordering-edges-in-flight",
            Without::RandomDraws => "random-draws",
            Without::Streams => "streams",
            Without::SymbolicSizes => "symbolic-sizes",
            Without::Uninterpreted => "uninterpreted",
            Without::Untagged => "untagged",
            Without::Writes => "writes",
        }
    }

    /// The inverse of [`Without::name`].
    pub fn parse(name: &str) -> Option<Without> {
        Without::ALL.iter().copied().find(|one| one.name() == name)
    }
}
