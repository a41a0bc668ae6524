//! The symbolic evaluator: what a graph computes, at full size, for one generic rank.
//!
//! # The idea
//!
//! Two graphs are evaluated in one [`Arena`], in which equal values have equal ids. A value is not a tensor of numbers
//! but a description of where each of its elements comes from. Movement is followed exactly: a view, a copy, a gather,
//! a write through an alias leave elements as they are and only say which of them stand where. Computation is not
//! followed at all: the result of an operator is a new *source*, named by the operator, its constants and the values
//! that it was given. So the cost depends on how often a layout changes, not on how large the tensors are, and one
//! evaluation speaks for all ranks.
//!
//! # Values
//!
//! A **source** (`source.rs`) is a function of a rank and an element number: an input, a constant, a result of a call,
//! a reduction over the ranks of a group, the piece that the own index in a group selects.
//!
//! A **run** (`run.rs`) is a stretch of consecutive elements of one source, or one element repeated, on the rank that a
//! **place** (`place.rs`) reaches from the own one: "the member with index 3 of my group `dp`". A **value** is a list
//! of runs in a canonical form: one sequence of elements is written in one way, whatever pieces it was put together
//! from.
//!
//! A **storage** holds a value, its bytes; a **tensor** is a dtype and a window (offset, sizes, strides) on a storage.
//! Reading goes through the window (`window.rs`), and a write changes the value of the storage, so every alias sees it.
//! A window that would take too many runs stays a source of its own, and windows on windows are composed.
//!
//! Sources, keys, places and values are hash-consed: looked up by content, not by hash alone, so two ids are equal if
//! and only if the descriptions are.
//!
//! # What equality means
//!
//! A pair of values is proved to be the same, or open. Same: on every rank, for every content of the inputs, both have the
//! same elements. Equal ids are the same. Where ids differ, the pair is taken apart into pairs of older values, until all
//! that it rests on is the same (`same.rs`). A few laws are known beyond that, each exact in every bit but those of a NaN:
//! operands of a sum or a product may be exchanged, a negation undoes a negation, a cast that loses nothing may be left
//! out (`algebra.rs`, `cast.rs`). Everything else is open: there is no proof of difference, since what is written otherwise
//! may be equal by a law that is not known here.
//!
//! # Soundness
//!
//! Let two graphs have the same inputs. If [`compare`] answers [`Comparison::Equal`], then for all contents of the
//! inputs and on all ranks of the world: the outputs are equal, the storages of the inputs hold the same in the end,
//! and the same effects happen in the same order (but assertions, which have none); and the second graph reads no
//! memory that is unwritten or in flight unless the first one does. It holds on these premises:
//!
//! 1. an operator is a function of its arguments, and a random one of these, of its generator and of how many draws
//!    from it were made before;
//! 2. what the table of operators says is true: what an operator writes, what its result is a window on, what it moves;
//! 3. dtypes and sizes that are recorded of results that are not computed here are right (`rewrite/metadata` checks
//!    them);
//! 4. all ranks run this graph, or one that differs only in the own index in its groups, and meet in the same
//!    collectives (`rewrite/collectives` and the simulator check that);
//! 5. process groups that come without lists of ranks lie as `topology.rs` says.
//!
//! The argument is an induction over the nodes in the order of the list. Each step keeps: what is known of a tensor,
//! instantiated for a rank by the formulas of `source.rs`, is what that rank's tensor holds. `model.rs` (a test) states
//! these formulas once more, element by element on each rank of a small world, and holds random programs against them.
//!
//! # What it does not do
//!
//! It computes no arithmetic on elements, knows no numbers but Python's own, and follows no control flow. It does not
//! ask whether an operator takes what it is given. It does not look for deadlocks.

mod algebra;
mod arena;
mod arguments;
mod cast;
mod communication;
mod compare;
mod dynamic;
mod element;
mod evaluate;
mod evaluation;
mod fills;
mod hazard;
mod identity;
mod indices;
mod intern;
mod key;
mod layout;
mod machine;
#[cfg(test)]
mod model;
mod moves;
mod numbers;
mod opaque;
mod payload;
mod pieces;
mod place;
mod reason;
mod run;
mod same;
mod seen;
mod source;
mod topology;
mod value;
mod views;
mod window;
mod words;

pub use arena::{Arena, Limits};
pub use compare::{Comparison, Counts, Difference, Divergence, What, are_results_equal, compare, divergence};
pub use evaluate::{Input, Known, Start, evaluate, evaluate_from, evaluate_knowing};
pub use evaluation::{
    Effect, Evaluation, Launch, Mutation, NumberId, Output, OutputValue, Payload, TensorValue,
};
pub use hazard::{Hazard, HazardKind, Sight, new_hazards, new_sights};
pub use payload::{Member, PayloadIndex, Payloads, payload_members};
pub use place::GroupId;
pub use reason::Reason;
pub use source::{Symbol, ValueId};
