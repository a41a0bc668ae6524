//! Symbolic values.

mod algebra;
mod arena;
mod arguments;
mod cast;
mod communication;
mod compare;
mod dependence;
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
mod parts;
mod payload;
mod pieces;
mod place;
mod reason;
mod rewired;
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
pub use compare::{
    Comparison, Counts, Difference, Differences, Divergence, Read, What, compare, compare_read,
};
pub use evaluate::{Input, Start, evaluate, evaluate_from};
pub use evaluation::{
    Effect, Evaluation, Launch, Mutation, NumberId, Output, OutputValue, Payload, TensorValue,
};
pub use hazard::{Hazard, HazardKind};
pub use payload::{Member, PayloadIndex, Payloads, payload_members};
pub use place::GroupId;
pub use reason::Reason;
pub use rewired::{Reader, RemovedWait, rewired};
pub use same::Verdict;
pub use source::{Symbol, ValueId};
