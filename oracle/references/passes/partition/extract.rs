//! Cutting one side out of a joint graph: everything that can be computed from given inputs, less what nobody
//! needs.
//!
//! A side is held as a list of the joint graph's nodes until it is finished, so that cutting costs one sweep
//! and no copy. Source: `torch._functorch.partitioners._extract_graph_with_inputs_outputs`.
//!
//! # What it does not do
//!
//! `control_deps` is treated as any call: it is not rebuilt around those of its dependencies that one side lacks.

use super::error::{Origin, PartitionError, Problem};
use super::joint::{Joint, Role, Side};
use super::strategy::Strategy;
use super::targets::Wrapper;
use crate::graph::{NodeId, Value};
use fixedbitset::FixedBitSet;

/// One side of a joint graph, by nodes of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Piece {
    /// Which side.
    pub side: Side,
    /// Its placeholders in order; nodes of any kind.
    pub inputs: Vec<NodeId>,
    /// All its nodes but the output, in order, placeholders first.
    pub list: Vec<NodeId>,
    /// What it returns.
    pub outputs: Vec<Value>,
}

/// What a node is to one side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Invalid,
    Input,
    Computed,
}

/// Cuts out what computes `outputs` from `inputs`. An output that cannot be computed is an error.
pub fn extract(
    joint: &Joint,
    strategy: &dyn Strategy,
    inputs: Vec<NodeId>,
    outputs: &[Value],
    side: Side,
) -> Result<Piece, PartitionError> {
    let mut states = vec![State::Invalid; joint.graph.len()];
    inputs.iter().for_each(|id| states[id.index()] = State::Input);
    for id in joint.ids() {
        if states[id.index()] == State::Input {
            continue;
        }
        let elsewhere = match side {
            Side::Forward => strategy.must_be_backward(joint, id),
            Side::Backward => strategy.must_be_forward(joint, id),
        };
        let computable = match joint.role(id) {
            Role::Constant => true,
            Role::Call => joint.edges.inputs(id).iter().all(|input| states[input.index()] != State::Invalid),
            _ => false,
        };
        if computable && !elsewhere {
            states[id.index()] = State::Computed;
        }
    }
    let mut found = Vec::with_capacity(outputs.len());
    for &output in outputs {
        found.push(match output {
            Value::Node(id) if states[id.index()] == State::Invalid => {
                let original =
                    original(joint, strategy, id).filter(|id| states[id.index()] != State::Invalid);
                Value::Node(original.ok_or_else(|| misplaced(joint, strategy, id, &states, side))?)
            }
            other => other,
        });
    }
    let mut list = inputs.clone();
    list.extend(joint.ids().filter(|id| states[id.index()] == State::Computed));
    let mut piece = Piece { side, inputs, list, outputs: found };
    piece.eliminate(joint, |id| joint.survives(id));
    Ok(piece)
}

impl Piece {
    /// Drops what nobody reads, from the end to the start; placeholders stay, and what `keeps` holds.
    pub fn eliminate(&mut self, joint: &Joint, keeps: impl Fn(NodeId) -> bool) {
        let mut read = FixedBitSet::with_capacity(joint.graph.len());
        super::joint::nodes_of(&self.outputs).for_each(|id| read.insert(id.index()));
        let inputs = self.input_set(joint);
        let mut kept = Vec::with_capacity(self.list.len());
        for &id in self.list.iter().rev() {
            let input = inputs.contains(id.index());
            if input || read.contains(id.index()) || keeps(id) {
                kept.push(id);
                if !input {
                    joint.edges.inputs(id).iter().for_each(|input| read.insert(input.index()));
                }
            }
        }
        kept.reverse();
        self.list = kept;
    }

    /// The placeholders as a set.
    pub fn input_set(&self, joint: &Joint) -> FixedBitSet {
        let mut set = FixedBitSet::with_capacity(joint.graph.len());
        self.inputs.iter().for_each(|id| set.insert(id.index()));
        set
    }

    /// The nodes that are computed, as opposed to passed in.
    pub fn computed(&self, joint: &Joint) -> FixedBitSet {
        let mut set = FixedBitSet::with_capacity(joint.graph.len());
        self.list.iter().for_each(|id| set.insert(id.index()));
        self.inputs.iter().for_each(|id| set.set(id.index(), false));
        set
    }
}

/// The value that stands for an output which this side cannot compute: what a backward `copy_` writes to, or the
/// input of a functionalized kernel whose result backward alone has.
fn original(joint: &Joint, strategy: &dyn Strategy, id: NodeId) -> Option<NodeId> {
    let first = |id: NodeId| match joint.graph.arg(id, 0) {
        Some(Value::Node(input)) => Some(input),
        _ => None,
    };
    if joint.target(id).copy && strategy.must_be_backward(joint, id) {
        return first(id);
    }
    let mut at = id;
    while !joint.target(at).getitem {
        if !(joint.target(at).sets.view || joint.graph.target(at).starts_with("aten.reshape.")) {
            return None;
        }
        at = first(at)?;
    }
    let wrapper = first(at).filter(|&id| joint.target(id).wrapper == Some(Wrapper::Triton))?;
    let key = match joint.graph.arg(at, 1)? {
        Value::Str(key) => joint.graph.text(key),
        _ => return None,
    };
    let Some(Value::Dict(kwargs)) = joint.graph.kwarg(wrapper, "kwargs") else { return None };
    joint.graph.values(kwargs).chunks_exact(2).find_map(|pair| match pair {
        [Value::Str(name), Value::Node(input)] if joint.graph.text(*name) == key => Some(*input),
        _ => None,
    })
}

fn misplaced(
    joint: &Joint,
    strategy: &dyn Strategy,
    id: NodeId,
    states: &[State],
    side: Side,
) -> PartitionError {
    let (here, there) = match side {
        Side::Forward => ("forward", "backward"),
        Side::Backward => ("backward", "forward"),
    };
    let mut error = PartitionError::new(
        Problem::MisplacedOutput,
        format!("{} is an output of {here}, which cannot compute it", joint.name(id)),
    )
    .with(joint.name(id), Origin::DataDependence, format!("is returned by {here}"));
    let mut at = id;
    loop {
        let elsewhere = match side {
            Side::Forward => strategy.must_be_backward(joint, at),
            Side::Backward => strategy.must_be_forward(joint, at),
        };
        if elsewhere {
            return error.with(joint.name(at), Origin::Annotation, format!("must be in {there}"));
        }
        let inputs = joint.edges.inputs(at);
        let Some(&input) = inputs.iter().find(|input| states[input.index()] == State::Invalid) else {
            let text = format!("is an input that {here} does not have");
            return error.with(joint.name(at), Origin::DataDependence, text);
        };
        let text = format!("depends on {}", joint.name(input));
        error = error.with(joint.name(at), Origin::DataDependence, text);
        at = input;
    }
}
