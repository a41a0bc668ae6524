//! All faults of a graph.

use crate::graph::{Graph, NodeId};
use std::fmt;

/// A fault.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// Where.
    pub node: Option<NodeId>,
    text: String,
}

/// Kinds of faults.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum FaultKind {
    ForwardReference {},
    SelfReference,
    Cycle {},
    Dangling {},
    Shape {},
    Position {},
    Other,
}

impl FaultKind {
    /// Its name.
    pub fn name(&self) -> &'static str {
        "other"
    }
}

impl Fault {
    /// Whether the graph cannot be judged.
    pub fn is_fatal(&self) -> bool {
        !matches!(self.kind, FaultKind::Shape { .. })
    }

    /// Whether it is about order.
    pub fn concerns_order(&self) -> bool {
        matches!(self.kind, FaultKind::ForwardReference { .. } | FaultKind::SelfReference | FaultKind::Cycle { .. } | FaultKind::Position { .. })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// All faults.
pub fn validate(graph: &Graph) -> Vec<Fault> {
    let mut faults = Vec::new();
    for id in graph.ids() {
        graph.for_each_dangling(id, &mut |name| {
            faults.push(Fault { kind: FaultKind::Dangling {}, node: Some(id), text: format!("{} refers to {name}", graph.name(id)) })
        });
    }
    faults
}
