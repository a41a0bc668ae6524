//! Calls that run a body once: which body, and what it is given.
//!
//! The call conventions of PyTorch's higher-order operators (`torch/_higher_order_ops`): `invoke_subgraph(body, name, *given)`,
//! `control_deps(after, body, *given)`, and `wrap` and `tag_activation_checkpoint(body, *given)`.
//!
//! # What it does not do
//!
//! Operators that choose a body, or run one several times (`cond`, `while_loop`, `scan`), are not among them.

use crate::graph::{Graph, NodeId, Op, Value};
use crate::ops::ArityError;
use std::sync::Arc;

/// The operator whose calls run one body once, and may share it.
pub const INVOKE: &str = "higher_order.invoke_subgraph";

/// The operator that marks a body as a checkpoint.
const CHECKPOINT: &str = "higher_order.tag_activation_checkpoint";

/// A call that runs a body once.
pub struct Called<'g> {
    /// The body.
    pub body: &'g Arc<Graph>,
    /// What comes before all of the body.
    pub after: &'g [Value],
    /// What the body is given, an input each.
    pub given: &'g [Value],
    /// A keyword that the operator does not take.
    pub keyword: Option<&'g str>,
}

/// The body that a value holds; `None` where it holds none, or nobody recorded it.
pub fn body(graph: &Graph, value: Value) -> Option<&Arc<Graph>> {
    match value {
        Value::Node(module) if module.index() < graph.len() && graph.node(module).op == Op::GetAttr => {
            graph.subgraph(graph.target(module))
        }
        _ => None,
    }
}

/// The body that a call runs once; `None` where there is none, or nobody recorded it.
pub fn called(graph: &Graph, id: NodeId) -> Option<Called<'_>> {
    let (body, after, given) = match (graph.target(id), graph.args(id)) {
        (INVOKE, [module, _, given @ ..]) => (body(graph, *module)?, &[][..], given),
        ("higher_order.wrap" | CHECKPOINT, [module, given @ ..]) => (body(graph, *module)?, &[][..], given),
        ("higher_order.control_deps", [Value::List(after), module, given @ ..]) => {
            (body(graph, *module)?, graph.values(*after), given)
        }
        _ => return None,
    };
    // Older versions hand over one tuple.
    let given = match given {
        [Value::List(span)] => graph.values(*span),
        given => given,
    };
    let mut keyword = None;
    match (graph.target(id), graph.kwargs(id).next()) {
        // Those of a checkpoint say how it is taken.
        (CHECKPOINT, _) | (_, None) => {}
        (INVOKE, Some((name, _))) => keyword = Some(name),
        // Others hand them on to the body.
        _ => return None,
    }
    Some(Called { body, after, given, keyword })
}

impl Called<'_> {
    /// Why the body does not take what it is given; `None` where it does.
    pub fn misfit(&self) -> Option<ArityError> {
        if let Some(name) = self.keyword {
            return Some(ArityError::Unknown { name: name.to_string() });
        }
        let mut inputs = self.body.ids().filter(|&id| self.body.node(id).op == Op::Placeholder);
        let taken = inputs.by_ref().take(self.given.len()).count();
        match inputs.next() {
            Some(input) => Some(ArityError::Missing { name: self.body.name(input).to_string() }),
            None if taken < self.given.len() => {
                Some(ArityError::TooMany { takes: taken, got: self.given.len() })
            }
            None => None,
        }
    }
}
