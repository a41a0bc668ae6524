//! Mutants of the merging of equal nodes.

use crate::graph::{NodeId, Value};
use crate::passes::partition::common_subexpressions::{self, Distinct, Key};
use crate::passes::partition::joint::Role;
use crate::passes::partition::{Joint, Method, Strategy};

/// Whatever is a call and has no effect is merged.
pub(super) struct MergesReturned;
impl Strategy for MergesReturned {
    fn mergeable(&self, joint: &Joint, _: &Distinct, id: NodeId) -> bool {
        joint.role(id) == Role::Call && !joint.impure(id, true)
    }
}

/// Whether backward needs a value does not matter: what it computes for itself becomes what forward computed, and that
/// is kept.
pub(super) struct MergesSides;
impl Strategy for MergesSides {
    fn separates_backward(&self, _: Method) -> bool {
        false
    }
}

/// Draws are merged.
pub(super) struct MergesDraws;
impl Strategy for MergesDraws {
    fn mergeable(&self, joint: &Joint, _: &Distinct, id: NodeId) -> bool {
        joint.role(id) == Role::Call && !joint.impure(id, false)
    }
}

/// Numbers are recognised by their value, and values of arguments by a rule of the mutant.
fn loose_key(joint: &Joint, representative: &[NodeId], id: NodeId, word: impl Fn(Value) -> u64) -> Key {
    let graph = &joint.graph;
    let mut key = vec![u64::from(graph.node(id).target.0)];
    let node = graph.node(id);
    // Lists are opened as they come.
    let mut open: Vec<Value> =
        graph.values(node.args).iter().chain(graph.values(node.kwargs)).copied().rev().collect();
    while let Some(value) = open.pop() {
        match value {
            Value::List(inner) | Value::Complex(inner) | Value::Slice(inner) | Value::Dict(inner) => {
                key.push(u64::from(inner.len() as u32));
                open.extend(graph.values(inner).iter().rev());
            }
            Value::Node(input) => key.push(u64::from(representative[input.index()].0)),
            value => key.push(word(value)),
        }
    }
    key
}

/// An integer and a float of one value are one key.
pub(super) struct NumbersByValue;
impl Strategy for NumbersByValue {
    fn merge_key(&self, joint: &Joint, representative: &[NodeId], id: NodeId) -> Key {
        loose_key(joint, representative, id, |value| match value {
            Value::Int(value) => (value as f64).to_bits(),
            Value::Float(value) => value.to_bits(),
            Value::Bool(value) => f64::from(u8::from(value)).to_bits(),
            Value::Str(text) => u64::MAX - text.index() as u64,
            _ => 0,
        })
    }
}

/// Texts, the group of communication among them, are not part of the key.
pub(super) struct AnyGroup;
impl Strategy for AnyGroup {
    fn merge_key(&self, joint: &Joint, representative: &[NodeId], id: NodeId) -> Key {
        if !joint.target(id).collective {
            return common_subexpressions::key(joint, representative, id);
        }
        loose_key(joint, representative, id, |value| match value {
            Value::Int(value) => value as u64,
            _ => 0,
        })
    }
}
