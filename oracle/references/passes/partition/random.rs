//! Random draws that both sides make: forward saves the state of the generator, backward draws from it.
//!
//! Forward: the draw becomes `run_and_save_rng_state(op, ...)`, whose results are the state and the value; the
//! states are returned in front of the symbolic sizes. Backward: `run_with_rng_state(state, op, ...)`, with
//! placeholders for the states in front of the first tangent. Where states are passed as generators (CUDA),
//! both sides take one as their last input and nothing is returned. The names of new nodes, placeholders apart,
//! are this module's own.
//!
//! Source: `torch._functorch.partitioners.functionalize_rng_ops` of PyTorch 2.15.

use super::error::{Origin, PartitionError, Problem};
use crate::graph::{Dtype, Editor, Graph, NodeId, Op, Out, Value};

/// Bytes of a generator's state.
const CPU_STATE: i64 = 5056;
const CUDA_STATE: i64 = 16;

/// Pairs the draws called `names`, which both graphs hold. `symbols`: how many of forward's last outputs are
/// symbolic sizes.
pub fn pair(
    forward: Graph,
    backward: Graph,
    names: &[String],
    symbols: usize,
    graph_safe: bool,
) -> Result<(Graph, Graph), PartitionError> {
    if names.is_empty() {
        return Ok((forward, backward));
    }
    let (mut forward, mut backward) = (Editor::from_owned(forward), Editor::from_owned(backward));
    let placeholders = |editor: &Editor| -> Vec<NodeId> {
        editor.list().into_iter().filter(|&id| editor.graph().node(id).op == Op::Placeholder).collect()
    };
    let inputs = placeholders(&backward);
    let tangent = inputs.iter().copied().find(|&id| backward.graph().name(id).contains("tangent"));
    let Some(tangent) = tangent else {
        let error =
            PartitionError::new(Problem::NoTangents, "a paired random draw needs a tangent in backward");
        return Err(names.iter().fold(error, |error, name| {
            error.with(name, Origin::Annotation, "draws random numbers and is tagged to be computed again")
        }));
    };
    let after = |editor: &Editor, inputs: &[NodeId]| match inputs.last() {
        Some(&last) => editor.next(last),
        None => editor.first(),
    };
    let ends = (after(&forward, &placeholders(&forward)), after(&backward, &inputs));
    let mut states = Vec::new();
    for (k, name) in names.iter().enumerate() {
        let (Some(first), Some(second)) = (forward.graph().find(name), backward.graph().find(name)) else {
            continue;
        };
        if graph_safe {
            for (editor, op, prefix, end) in
                [(&mut forward, first, "fwd", ends.0), (&mut backward, second, "bwd", ends.1)]
            {
                let generator = Out::Other(editor.graph_mut().intern("Generator"));
                let state = placeholder(editor, end, &format!("{prefix}_rng_state_{k}"), generator);
                let out = editor.graph().node(op).out;
                let call = Call { target: "graphsafe_run_with_rng_state", before: None, state: Some(state) };
                replace(editor, op, &call, out);
            }
            continue;
        }
        let value = forward.graph().node(first).out;
        let state = state_of(&mut forward, first);
        let results = Out::Tuple(forward.graph_mut().push_outs(&[state, value]));
        let call = Call { target: "run_and_save_rng_state", before: None, state: None };
        let run = insert(&mut forward, first, &call, results);
        let getitem = |editor: &mut Editor, index: i64, out: Out| {
            let args = [Value::Node(run), Value::Int(index)];
            editor.insert_before(Some(first), "getitem", "operator.getitem", &args, &[], out)
        };
        states.push(getitem(&mut forward, 0, state));
        let drawn = getitem(&mut forward, 1, value);
        forward.graph_mut().node_mut(drawn).tags = forward.graph().node(first).tags;
        forward.replace_uses(first, drawn);
        forward.erase(first);

        let state = state_of(&mut backward, second);
        let state = placeholder(&mut backward, Some(tangent), &format!("rng_state_output_{k}"), state);
        let out = backward.graph().node(second).out;
        let call = Call { target: "run_with_rng_state", before: Some(state), state: None };
        replace(&mut backward, second, &call, out);
    }
    if let Some(output) = forward.list().last().copied()
        && let Some(Value::List(span)) = forward.graph().arg(output, 0)
    {
        let mut outputs = forward.graph().values(span).to_vec();
        let at = outputs.len().saturating_sub(symbols);
        outputs.splice(at..at, states.into_iter().map(Value::Node));
        let list = forward.graph_mut().list(&outputs);
        forward.set_args(output, &[list]);
    }
    Ok((forward.finish(), backward.finish()))
}

/// A higher-order call that stands for a draw.
struct Call {
    target: &'static str,
    /// The state, as the first argument.
    before: Option<NodeId>,
    /// The state, as the keyword argument `rng_state`.
    state: Option<NodeId>,
}

/// The state of the generator of the device that `op` draws on.
fn state_of(editor: &mut Editor, op: NodeId) -> Out {
    let graph = editor.graph_mut();
    let device = graph.tensor_at(op, 0).map(|tensor| tensor.device);
    let cuda = device.is_some_and(|device| graph.text(device).starts_with("cuda"));
    let cpu = graph.intern("cpu");
    graph.contiguous(&[if cuda { CUDA_STATE } else { CPU_STATE }], Dtype::U8, cpu)
}

fn placeholder(editor: &mut Editor, before: Option<NodeId>, name: &str, out: Out) -> NodeId {
    let id = editor.insert_before(before, name, name, &[], &[], out);
    let graph = editor.graph_mut();
    let name = graph.name(id).to_string();
    let target = graph.intern_target(&name);
    let node = graph.node_mut(id);
    (node.op, node.target) = (Op::Placeholder, target);
    id
}

/// Inserts the call in front of `op`.
fn insert(editor: &mut Editor, op: NodeId, call: &Call, out: Out) -> NodeId {
    let graph = editor.graph_mut();
    let target = graph.target(op).to_string();
    let function = Value::Function(graph.intern(&target));
    let mut args: Vec<Value> = call.before.map(Value::Node).into_iter().chain([function]).collect();
    args.extend_from_slice(graph.args(op));
    let mut kwargs: Vec<(String, Value)> =
        graph.kwargs(op).map(|(key, value)| (key.to_string(), value)).collect();
    kwargs.extend(call.state.map(|state| ("rng_state".to_string(), Value::Node(state))));
    let kwargs: Vec<(&str, Value)> = kwargs.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    editor.insert_before(Some(op), call.target, &format!("higher_order.{}", call.target), &args, &kwargs, out)
}

/// Puts the call in the place of `op`, with its tags.
fn replace(editor: &mut Editor, op: NodeId, call: &Call, out: Out) {
    let new = insert(editor, op, call, out);
    editor.graph_mut().node_mut(new).tags = editor.graph().node(op).tags;
    editor.replace_uses(op, new);
    editor.erase(op);
}
