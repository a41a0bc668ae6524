//! What a graph means: every rank's values, memory and communication, executed.
//!
//! [`Program::new`] makes a graph ready, [`run`] executes it on every rank of a world over a [`Domain`] of values,
//! and [`compare`] says where two runs differ. Two domains are here: [`Concrete`], the bits of real dtypes, and
//! [`Fingerprints`], hashes of how each element came to be. The symbolic evaluator, for graphs too large to execute, needs
//! no cells and so is no [`Domain`]: it is a model of its own, a floor above.
//!
//! # What is modelled
//!
//! Storages are real: views are windows, writes are visible through every alias, fresh and freed memory is poison.
//! An asynchronous collective takes its inputs when it starts and gives its result at the wait; until then the
//! result is in flight. Random operators draw afresh at each execution. Effects are recorded in order.
//!
//! # What is not
//!
//! Time, streams, and devices. Errors that depend on inputs (an index out of range, a failed assertion) do not
//! happen: an index is taken modulo the size, an assertion is an effect with the asserted value. Inputs that are
//! indices can be kept within their [`Bounds`]. Symbolic sizes
//! are run at their hints; a size without hint is refused unless it follows from the inputs.

#![deny(unsafe_code)]
#![warn(missing_docs)]

mod arguments;
mod between;
mod block;
mod bounds;
mod comm;
mod comparable;
mod compare;
mod concrete;
mod differing;
mod domain;
mod fingerprint;
mod float8;
mod hash;
mod hazard;
mod identity;
mod kernels;
mod layout;
mod memory;
mod number;
mod numerics;
pub mod observe;
mod ports;
mod program;
mod promote;
mod rank;
mod retyped;
mod run;
mod smooth;
mod stable;
mod trials;

pub use bounds::Bounds;
pub use comm::Launch;
pub use comparable::{Comparable, Inexact, Rounded, comparable};
pub use compare::{
    Aspect, Difference, Divergence, Place, UNKNOWN_EFFECTS, compare, differ_in_unknown_effects,
    first_divergence, output_node,
};
pub use concrete::Concrete;
pub use domain::{
    Addend, Domain, Draw, MatmulSize, Operand, Outcome, Pointwise, RankReduce, Rounding, Trouble,
};
pub use fingerprint::{Alike, Fingerprints, Likeness};
pub use float8::{E4M3FN, E5M2, Float8};
pub use hazard::{Hazard, HazardKind};
pub use identity::is_neutral;
pub use layout::{Dims, MAX_DIMS, StorageRef, Window, for_each_row, is_injective};
pub use number::Number;
pub use numerics::Numerics;
pub use program::{Input, Program};
pub use promote::{Participant, result_type};
pub use run::{
    Digest, Effect, Executed, ExecutedRank, ExecutionInputs, Failure, FinalInput, Given, LaunchNote, Leaf,
    Options, RankRun, Run, TensorValue, inputs, run,
};
pub use smooth::tells_roundings_apart;
pub use trials::{Answers, Open, OpenKind, Pair, Question, Stopped};

#[cfg(test)]
#[path = "../../tests/common/recorded.rs"]
mod recorded;
#[cfg(test)]
mod tests;

#[cfg(test)]
use ir::format;
use ir::{analysis, definitions, graph, ops, words};
