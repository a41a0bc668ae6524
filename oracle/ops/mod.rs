//! The operators: one table from which everything else is read.
//!
//! # The idea
//!
//! A row is a schema in PyTorch's notation, a short name for the text format and a [`Kind`]. Aliasing, mutation
//! and arity follow from the schema; shape rule, kernel, randomness and communication from the kind. A target
//! that is not in the table takes its schema from the facts in the file; without facts it is unknown, and an
//! unknown operator has an effect.
//!
//! # What it does not do
//!
//! It does not say what a value is ([`semantics`](crate::semantics)), only what an operator may touch.

mod kind;
mod schema;
mod table;

pub use kind::{Binary, Collective, Fill, Kind, Matmul, Move, Number, Random, Reduce, Unary, View};
pub use schema::{ArityError, Bound, Default, Param, Return, Schema, SchemaError};
pub use table::{by_short_name, by_target, rows};

use crate::graph::{Graph, NodeId, Op};
use std::borrow::Cow;

/// What is known about one target.
#[derive(Clone, PartialEq, Debug)]
pub struct OpInfo {
    /// FX's target, for example `aten.slice.Tensor`.
    pub target: String,
    /// The name in the text case format; empty where there is none and the full target is written.
    pub short: &'static str,
    /// The schema; `None` for Python functions, higher-order operators and unknown targets.
    pub schema: Option<Schema>,
    /// What it does.
    pub kind: Kind,
    /// Whether running it has an effect beyond its results and the arguments that the schema says it writes.
    pub effect: bool,
}

impl OpInfo {
    /// What is known of a target without a row and without facts.
    pub fn unknown(target: &str) -> OpInfo {
        OpInfo { target: target.to_string(), short: "", schema: None, kind: Kind::Unknown, effect: true }
    }

    /// Whether it draws random numbers.
    pub fn is_random(&self) -> bool {
        matches!(self.kind, Kind::Random(_))
    }

    /// The kind of communication it starts.
    pub fn collective(&self) -> Option<Collective> {
        match self.kind {
            Kind::Collective(collective) => Some(collective),
            _ => None,
        }
    }

    /// Whether a result shares storage with an argument that is not written.
    pub fn is_view(&self) -> bool {
        self.schema.as_ref().is_some_and(|s| s.returns.iter().any(|r| r.alias.is_some() && !r.write))
    }

    /// The parameters it writes to.
    pub fn mutated(&self) -> impl Iterator<Item = usize> {
        self.schema.iter().flat_map(|s| s.mutated())
    }
}

/// The operators of one graph, by [`TargetId`](crate::graph::TargetId).
#[derive(Clone, Debug)]
pub struct Ops(Vec<Cow<'static, OpInfo>>);

impl Ops {
    /// Looks up every target of `graph`: in the table, else in the facts of its file.
    pub fn of(graph: &Graph) -> Ops {
        let find = |target: &str| match by_target(target) {
            Some(info) => Cow::Borrowed(info),
            None => Cow::Owned(table::from_facts(graph, target)),
        };
        Ops(graph.targets().map(find).collect())
    }

    /// What `node` calls; meaningless for other nodes than calls.
    pub fn get(&self, graph: &Graph, node: NodeId) -> &OpInfo {
        &self.0[graph.node(node).target.0 as usize]
    }

    /// What `node` calls, if it is a call.
    pub fn call(&self, graph: &Graph, node: NodeId) -> Option<&OpInfo> {
        (graph.node(node).op == Op::Call).then(|| self.get(graph, node))
    }
}
