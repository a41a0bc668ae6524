//! What can be fused with its readers into one kernel, as far as the partitioner guesses.

use super::super::joint::Joint;
use super::super::targets::Wrapper;
use crate::graph::{NodeId, Value};
use fixedbitset::FixedBitSet;

/// Which nodes a kernel can hold.
pub struct Fusion {
    fusible: FixedBitSet,
}

impl Fusion {
    /// Looks at every node of `joint`.
    pub fn new(joint: &Joint) -> Fusion {
        let mut fusible = FixedBitSet::with_capacity(joint.graph.len());
        joint.ids().filter(|&id| joint.target(id).sets.fusible()).for_each(|id| fusible.insert(id.index()));
        Fusion { fusible }
    }

    /// Whether `reader` can be fused with its input `id`.
    pub fn fuses(&self, joint: &Joint, id: NodeId, reader: NodeId) -> bool {
        let target = joint.target(reader);
        if target.cat || (target.wrapper.is_some() && writes(joint, reader, id)) {
            return true;
        }
        if joint.target(id).getitem
            && let Some(Value::Node(parent)) = joint.graph.arg(id, 0)
            && joint.target(parent).wrapper == Some(Wrapper::Triton)
        {
            return false;
        }
        self.fusible.contains(id.index()) && self.fusible.contains(reader.index())
    }
}

/// Whether the functional wrapper of a kernel stands for one that writes to `id`.
pub fn writes(joint: &Joint, wrapper: NodeId, id: NodeId) -> bool {
    written(joint, wrapper).contains(&id)
}

/// What the kernel behind a functional wrapper writes to.
pub fn written(joint: &Joint, wrapper: NodeId) -> Vec<NodeId> {
    let graph = &joint.graph;
    let mut found = Vec::new();
    let mut collect = |value: Option<Value>| match value {
        Some(Value::Node(id)) => found.push(id),
        Some(Value::List(span)) => found.extend(super::super::joint::nodes_of(graph.values(span))),
        _ => {}
    };
    match joint.target(wrapper).wrapper {
        Some(Wrapper::Second) => collect(graph.kwarg(wrapper, "_all_bases")),
        Some(Wrapper::First) => {
            let info = match graph.arg(wrapper, 0) {
                Some(Value::Function(name) | Value::Str(name)) => crate::ops::by_target(graph.text(name)),
                _ => None,
            };
            let schema = info.and_then(|info| info.schema.as_ref());
            for param in schema.iter().flat_map(|schema| &schema.params).filter(|param| param.write) {
                collect(graph.kwarg(wrapper, &param.name));
            }
        }
        Some(Wrapper::Triton) => {
            let names = match graph.kwarg(wrapper, "tensors_to_clone") {
                Some(Value::List(span)) => graph.values(span),
                _ => &[],
            };
            let kwargs = match graph.kwarg(wrapper, "kwargs") {
                Some(Value::Dict(span)) => graph.values(span),
                _ => &[],
            };
            for name in names {
                collect(kwargs.chunks_exact(2).find(|pair| pair[0] == *name).map(|pair| pair[1]));
            }
        }
        None => {}
    }
    found
}
