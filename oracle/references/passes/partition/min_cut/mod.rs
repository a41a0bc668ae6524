//! The min-cut rematerialization partitioner: what forward saves is a minimum cut between what cannot be
//! computed again and what backward needs.
//!
//! # The idea
//!
//! Every node is an edge of a flow network whose capacity is what saving it costs; values flow along edges that
//! cannot be cut. The source feeds what must not be computed again ([`bans`]), the sink drains what backward
//! computes. The saved values are the edges of the minimum cut that is closest to the sink, which is one cut,
//! whatever the solver.
//!
//! Source: `torch._functorch.partitioners.solve_min_cut` of PyTorch 2.15. It differs from that where PyTorch's
//! result would not be right:
//!
//! - *random draws* that nobody tagged, *effects* and *writes* of forward are never computed again, whatever the
//!   options and the budget;
//! - what the user tags `MUST_SAVE` is kept where it is a view or an item, too: its memory, or the item;
//! - a value is not saved whose storage is overwritten before backward reads it ([`super::hazards`]).
//!
//! # What it does not do
//!
//! Decisions are not synchronised across ranks; operators outside PyTorch get no treatment of their own.

pub mod bans;
pub mod budget;
pub mod context;
pub mod fusion;
pub mod heuristics;
pub mod network;

pub use bans::Ban;
pub use context::Context;
pub use network::{Cut, solve};
