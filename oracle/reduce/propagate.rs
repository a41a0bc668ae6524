//! Recorded results made true again after an edit.

use crate::graph::{Dim, Dtype, Graph, NodeId, Op, Out, Str, Tensor, contiguous_strides};
use crate::ops::Ops;
use crate::ops::shape::{self, Inferred, Output, Size, TensorMeta};

/// Recomputes, in list order, the recorded results of all calls from their operators' rules. `None` where an
/// operator refuses its arguments, or has no rule and stands behind something that changed.
pub(super) fn propagate(mut graph: Graph) -> Option<Graph> {
    let ops = Ops::of(&graph);
    let mut changed = vec![false; graph.len()];
    for id in graph.ids() {
        if graph.node(id).op != Op::Call {
            continue;
        }
        let made = match shape::infer(&graph, &ops, id).ok()? {
            Inferred::Nothing => continue,
            Inferred::Undecided => None,
            Inferred::One(output) => record(&mut graph, id, &output, graph_device(&graph, id)),
            Inferred::Many(outputs) => {
                let device = graph_device(&graph, id);
                let outs: Option<Vec<Out>> =
                    outputs.iter().map(|output| record(&mut graph, id, output, device)).collect();
                outs.map(|outs| Out::Tuple(graph.push_outs(&outs)))
            }
        };
        match made {
            Some(out) => {
                changed[id.index()] = !same(&graph, graph.node(id).out, out);
                graph.node_mut(id).out = out;
            }
            None => {
                let mut stale = false;
                graph.for_each_input(id, &mut |input: NodeId| stale |= changed[input.index()]);
                if stale {
                    return None;
                }
            }
        }
    }
    Some(graph)
}

/// The device of a node's results: as recorded, else that of its first tensor input.
fn graph_device(graph: &Graph, id: NodeId) -> Option<Str> {
    let own = graph.tensor_of(id).or_else(|| graph.tensor_at(id, 0)).map(|t| t.device);
    own.or_else(|| graph.inputs(id).into_iter().find_map(|input| graph.tensor_of(input)).map(|t| t.device))
}

fn record(graph: &mut Graph, id: NodeId, output: &Output, device: Option<Str>) -> Option<Out> {
    match output {
        Output::Undecided => None,
        Output::None => Some(Out::None),
        Output::Number(Size::Known(n)) => Some(Out::Int(*n)),
        Output::Number(_) => None,
        Output::Tensor(meta) => {
            let tensor = tensor(graph, id, meta, device?)?;
            Some(Out::Tensor(graph.push_tensor(tensor)))
        }
    }
}

fn tensor(graph: &mut Graph, id: NodeId, meta: &TensorMeta, device: Str) -> Option<Tensor> {
    let known = |sizes: &[Size]| sizes.iter().map(|size| size.known()).collect::<Option<Vec<i64>>>();
    let sizes = known(&meta.shape)?;
    let strides = match &meta.stride {
        Some(strides) => known(strides)?,
        None => contiguous_strides(&sizes),
    };
    let dtype: Dtype = meta.dtype.or_else(|| graph.tensor_of(id).map(|t| t.dtype))?;
    Some(Tensor {
        shape: graph.intern_sizes(&sizes),
        stride: graph.intern_sizes(&strides),
        dtype,
        requires_grad: None,
        device,
        storage: None,
        offset: meta.offset.known()?,
        storage_bytes: None,
    })
}

fn same(graph: &Graph, a: Out, b: Out) -> bool {
    match (a, b) {
        (Out::Tensor(x), Out::Tensor(y)) => {
            let (x, y) = (graph.tensor(x), graph.tensor(y));
            x.shape == y.shape && x.dtype == y.dtype
        }
        (Out::Tuple(x), Out::Tuple(y)) => {
            let (x, y) = (graph.outs(x), graph.outs(y));
            x.len() == y.len() && x.iter().zip(y).all(|(&x, &y)| same(graph, x, y))
        }
        (a, b) => a == b,
    }
}

/// Replaces every size `from` by `to`: in the inputs' shapes and in integer lists of arguments. Split sizes and the
/// like follow where they are equal to the size.
pub(super) fn resize(graph: &Graph, from: i64, to: i64) -> Option<Graph> {
    let mut graph = graph.clone();
    for id in graph.ids() {
        if graph.node(id).op == Op::Call {
            graph.map_constants(id, &mut |value, in_list| (in_list && value == from).then_some(to));
            continue;
        }
        let Out::Tensor(tensor) = graph.node(id).out else { continue };
        let sizes = graph.sizes(graph.tensor(tensor).shape)?;
        if sizes.contains(&from) {
            let sizes: Vec<i64> = sizes.into_iter().map(|n| if n == from { to } else { n }).collect();
            let dims: Vec<Dim> = sizes.iter().map(|&n| Dim::Static(n)).collect();
            let shape = graph.intern_dims(&dims);
            let stride = graph.intern_sizes(&contiguous_strides(&sizes));
            let tensor = graph.tensor_mut(tensor);
            (tensor.shape, tensor.stride, tensor.offset, tensor.storage_bytes) = (shape, stride, 0, None);
        }
    }
    propagate(graph)
}
