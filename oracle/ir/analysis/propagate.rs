//! Recorded results made true again after sizes, dtypes or arguments have changed.
//!
//! Results are recomputed in list order by the operators' shape rules. Where a rule does not decide (an operator that
//! the oracle does not compute), the recorded result is kept if nothing changed before it, else the caller's guess is
//! asked for.

use crate::graph::{Dim, Graph, NodeId, Op, Out, Str, Tensor};
use crate::ops::Ops;
use crate::ops::shape::{self, Inferred, Output, Size, TensorMeta};

/// Why results cannot be made true.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The operator refuses its arguments, in words.
    Refused(NodeId, String),
    /// No rule decides the result, and there is no guess.
    Undecided(NodeId),
}

/// The graph with the results of all calls recomputed; what no rule decides stays as recorded. `None` where an
/// operator refuses its arguments.
pub fn propagated(mut graph: Graph) -> Option<Graph> {
    propagate(&mut graph, &mut |sizes| Some(sizes.to_vec())).ok()?;
    Some(graph)
}

/// Recomputes the results of all calls. `guess` gives the sizes of a result that no rule decides, from those that are
/// recorded (shape, then strides); `None` refuses.
pub fn propagate(
    graph: &mut Graph,
    guess: &mut impl FnMut(&[i64]) -> Option<Vec<i64>>,
) -> Result<(), Refusal> {
    let ops = Ops::of(graph);
    let mut changed = vec![false; graph.len()];
    for id in graph.ids() {
        match graph.node(id).op {
            Op::Call => {}
            // What stands first may have been changed by the caller.
            Op::Placeholder | Op::GetAttr => {
                changed[id.index()] = true;
                continue;
            }
            Op::Output => continue,
        }
        let mut stale = false;
        graph.for_each_input(id, &mut |input: NodeId| stale |= changed[input.index()]);
        let inferred = match shape::infer(graph, &ops, id) {
            Ok(inferred) => inferred,
            Err(error) => return Err(Refusal::Refused(id, error.to_string())),
        };
        let device = device(graph, id);
        let old = graph.node(id).out;
        let new = match inferred {
            Inferred::Nothing => continue,
            Inferred::Undecided => {
                changed[id.index()] = stale;
                if stale {
                    let guessed = guessed(graph, old, guess).ok_or(Refusal::Undecided(id))?;
                    graph.node_mut(id).out = guessed;
                }
                continue;
            }
            Inferred::One(output) => made(graph, old, &output, device),
            Inferred::Many(outputs) => {
                let parts: Vec<Out> = match old {
                    Out::Tuple(span) => graph.outs(span).to_vec(),
                    _ => Vec::new(),
                };
                let mut outs = Vec::with_capacity(outputs.len());
                for (i, output) in outputs.iter().enumerate() {
                    let part = parts.get(i).copied().unwrap_or(Out::Absent);
                    let made = match made(graph, part, output, device) {
                        Some(made) => made,
                        None if !stale => part,
                        None => guessed(graph, part, guess).ok_or(Refusal::Undecided(id))?,
                    };
                    outs.push(made);
                }
                Some(Out::Tuple(graph.push_outs(&outs)))
            }
        };
        let new = match new {
            Some(new) => new,
            None if !stale => continue,
            None => guessed(graph, old, guess).ok_or(Refusal::Undecided(id))?,
        };
        changed[id.index()] = !same(graph, old, new);
        graph.node_mut(id).out = new;
    }
    Ok(())
}

/// The device of a node's results: as recorded, else that of its first tensor input.
fn device(graph: &Graph, id: NodeId) -> Option<Str> {
    let own = graph.tensor_at(id, 0).map(|tensor| tensor.device);
    own.or_else(|| graph.inputs(id).into_iter().find_map(|input| graph.tensor_of(input)).map(|t| t.device))
}

fn made(graph: &mut Graph, old: Out, output: &Output, device: Option<Str>) -> Option<Out> {
    match output {
        Output::Undecided => None,
        Output::None => Some(Out::None),
        Output::Number(Size::Known(n)) => Some(Out::Int(*n)),
        Output::Number(_) => Some(old),
        Output::Tensor(meta) => {
            let old = match old {
                Out::Tensor(tensor) => Some(*graph.tensor(tensor)),
                _ => None,
            };
            let tensor = tensor(graph, meta, old, device?)?;
            Some(Out::Tensor(graph.push_tensor(tensor)))
        }
    }
}

/// A tensor by its rule. What the rule leaves open stays as recorded, strides only where the shape is as recorded.
fn tensor(graph: &mut Graph, meta: &TensorMeta, old: Option<Tensor>, device: Str) -> Option<Tensor> {
    let known = |sizes: &[Size]| sizes.iter().map(|size| size.known()).collect::<Option<Vec<i64>>>();
    let sizes = known(&meta.shape)?;
    let shape = graph.intern_sizes(&sizes);
    let stride = match (&meta.stride, old) {
        (Some(strides), _) => {
            let strides = known(strides)?;
            graph.intern_sizes(&strides)
        }
        (None, Some(old)) if old.shape == shape => old.stride,
        (None, _) => {
            let strides = crate::graph::contiguous_strides(&sizes);
            graph.intern_sizes(&strides)
        }
    };
    Some(Tensor {
        shape,
        stride,
        dtype: meta.dtype.or(old.map(|old| old.dtype))?,
        requires_grad: old.and_then(|old| old.requires_grad),
        device,
        storage: None,
        offset: meta.offset.known().unwrap_or(0),
        storage_bytes: None,
        is_guessed: false,
    })
}

/// A recorded result with other sizes, contiguous.
fn guessed(graph: &mut Graph, old: Out, guess: &mut impl FnMut(&[i64]) -> Option<Vec<i64>>) -> Option<Out> {
    match old {
        Out::Tensor(id) => {
            let old = *graph.tensor(id);
            let sizes = guess(&graph.sizes(old.shape)?)?;
            let dims: Vec<Dim> = sizes.iter().map(|&n| Dim::Static(n)).collect();
            let shape = graph.intern_dims(&dims);
            let stride = if shape == old.shape {
                old.stride
            } else {
                graph.intern_sizes(&crate::graph::contiguous_strides(&sizes))
            };
            let new = Tensor { shape, stride, offset: 0, storage: None, storage_bytes: None, ..old };
            Some(Out::Tensor(graph.push_tensor(new)))
        }
        Out::Tuple(span) => {
            let parts = graph.outs(span).to_vec();
            let parts: Option<Vec<Out>> = parts.into_iter().map(|part| guessed(graph, part, guess)).collect();
            let parts = parts?;
            Some(Out::Tuple(graph.push_outs(&parts)))
        }
        other => Some(other),
    }
}

/// Whether two results have the same types.
fn same(graph: &Graph, a: Out, b: Out) -> bool {
    match (a, b) {
        (Out::Tensor(x), Out::Tensor(y)) => {
            let (x, y) = (graph.tensor(x), graph.tensor(y));
            x.shape == y.shape && x.stride == y.stride && x.dtype == y.dtype
        }
        (Out::Tuple(x), Out::Tuple(y)) => {
            let (x, y) = (graph.outs(x), graph.outs(y));
            x.len() == y.len() && x.iter().zip(y).all(|(&x, &y)| same(graph, x, y))
        }
        (a, b) => a == b,
    }
}
