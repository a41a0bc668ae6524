//! Edits that keep the meaning, by laws that hold exactly.

use super::insert::{insert_cast, insert_copy};
use super::reading::Reading;
use super::{Change, Place, Places};
use crate::analysis::dependences::{Dependences, Options};
use crate::generate::{Seeded, Source};
use crate::graph::{Dtype, DtypeClass, Editor, Graph, NodeId, Op, Out, Tensor, Value, contiguous_strides};
use crate::ops::{Binary, Kind};
use rustc_hash::FxHashMap;

/// One place: the graph as a whole.
fn whole(reading: &Reading, what: &str, change: impl Fn(&Graph) -> Graph + Send + Sync + 'static) -> Places {
    let change: Change = Box::new(change);
    let node = reading.graph.ids().next();
    let found = node.map(|node| Place { node, what: what.to_string(), change });
    Places { found: found.into_iter().collect(), left_out: 0 }
}

/// All calls have other names.
pub(super) fn renamed(reading: &Reading) -> Places {
    whole(reading, "all calls", |graph| {
        graph.with_names(|id| match graph.node(id).op {
            Op::Call => format!("call_{}", id.0),
            _ => graph.name(id).to_string(),
        })
    })
}

/// Calls have one another's names: each that of the call before it.
pub(super) fn permuted(reading: &Reading) -> Places {
    whole(reading, "all calls, by one", |graph| {
        let calls: Vec<NodeId> = graph.ids().filter(|&id| graph.node(id).op == Op::Call).collect();
        let mut other: Vec<NodeId> = graph.ids().collect();
        for (at, call) in calls.iter().enumerate() {
            other[call.index()] = calls[(at + 1) % calls.len()];
        }
        graph.with_names(|id| graph.name(other[id.index()]).to_string())
    })
}

/// All inputs have other names.
pub(super) fn inputs_renamed(reading: &Reading) -> Places {
    whole(reading, "all inputs", |graph| {
        graph.with_names(|id| match graph.node(id).op {
            Op::Placeholder => format!("input_{}", id.0),
            _ => graph.name(id).to_string(),
        })
    })
}

fn dependences(reading: &Reading) -> Dependences {
    let options = Options { uncertain: true, communication_order: true };
    Dependences::new(
        reading.graph,
        &reading.ops,
        &reading.edges,
        &reading.storages,
        &reading.collectives,
        options,
    )
}

/// Whether a node starts or ends communication. Their order stays: other ranks follow it.
fn communicates(reading: &Reading, id: NodeId) -> bool {
    reading.collectives.launch_at(id).is_some()
        || reading.call(id).is_some_and(|info| info.kind == Kind::Wait)
}

/// Orders made of one graph.
const ORDERS: u64 = 4;

/// Random linear extensions of what depends on what.
pub(super) fn reordered(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    let (dependences, Some(output)) = (dependences(reading), graph.output()) else { return places };
    let chain: Vec<NodeId> = graph.ids().filter(|&id| communicates(reading, id)).collect();
    for seed in 0..ORDERS {
        let list = extension(graph, &dependences, &chain, &mut Seeded::new(seed));
        if list.len() + 1 != graph.len() {
            places.left_out += 1;
            continue;
        }
        let change = move |graph: &Graph| {
            let mut editor = Editor::new(graph);
            list.iter().for_each(|&id| editor.move_before(None, id));
            editor.move_before(None, output);
            editor.finish()
        };
        let what = format!("order {seed}");
        places.found.push(Place { node: output, what, change: Box::new(change) });
    }
    places
}

/// A random order of all nodes but the output that keeps dependences and the order of `chain`.
fn extension(
    graph: &Graph,
    dependences: &Dependences,
    chain: &[NodeId],
    source: &mut impl Source,
) -> Vec<NodeId> {
    let mut waiting: Vec<usize> = graph.ids().map(|id| dependences.before(id).len()).collect();
    let mut follows: Vec<Option<NodeId>> = vec![None; graph.len()];
    for pair in chain.windows(2) {
        follows[pair[0].index()] = Some(pair[1]);
        waiting[pair[1].index()] += 1;
    }
    let is_call = |id: NodeId| graph.node(id).op == Op::Call;
    let mut list: Vec<NodeId> =
        graph.ids().filter(|&id| !matches!(graph.node(id).op, Op::Call | Op::Output)).collect();
    let mut ready: Vec<NodeId> = graph.ids().filter(|&id| is_call(id) && waiting[id.index()] == 0).collect();
    let mut at = 0;
    loop {
        while let Some(&done) = list.get(at) {
            at += 1;
            for &after in dependences.after(done).iter().chain(&follows[done.index()]) {
                waiting[after.index()] -= 1;
                if waiting[after.index()] == 0 && is_call(after) {
                    ready.push(after);
                }
            }
        }
        if ready.is_empty() {
            return list;
        }
        list.push(ready.swap_remove(source.below(ready.len() as u32) as usize));
    }
}

/// Two calls side by side that do not depend on one another trade places.
pub(super) fn neighbours(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    let dependences = dependences(reading);
    for second in graph.ids().skip(1) {
        let first = NodeId(second.0 - 1);
        let calls = [first, second].iter().all(|&id| graph.node(id).op == Op::Call);
        let bound = dependences.before(second).any(|(before, _)| before == first);
        if !calls || bound || communicates(reading, first) && communicates(reading, second) {
            continue;
        }
        let what = format!("{} and {} trade places", graph.name(first), graph.name(second));
        places.add(second, what, move |editor| editor.move_before(Some(first), second));
    }
    places
}

/// Arithmetic calls with an operand that is a contiguous tensor, and that tensor.
pub(super) fn operands<'r>(reading: &'r Reading) -> impl Iterator<Item = (NodeId, NodeId, Tensor)> + 'r {
    let graph = reading.graph;
    let of = move |id: NodeId| match reading.is_arithmetic(id) {
        true => graph.inputs(id),
        false => Vec::new(),
    };
    graph.ids().flat_map(move |id| of(id).into_iter().map(move |operand| (id, operand))).filter_map(
        move |(id, operand)| {
            let tensor = *graph.tensor_of(operand)?;
            let (sizes, strides) = (graph.sizes(tensor.shape)?, graph.sizes(tensor.stride)?);
            let settled = reading.collectives.launch_of_value(operand).is_none();
            (settled && strides == contiguous_strides(&sizes)).then_some((id, operand, tensor))
        },
    )
}

/// The result of a new call, like `tensor` and on no recorded storage.
pub(super) fn fresh(editor: &mut Editor, tensor: Tensor) -> Out {
    let tensor = Tensor { storage: None, storage_bytes: None, offset: 0, ..tensor };
    Out::Tensor(editor.graph_mut().push_tensor(tensor))
}

/// A reader takes a clone.
pub(super) fn cloned(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, operand, tensor) in operands(reading) {
        let what = format!("{} takes a clone of {}", graph.name(id), graph.name(operand));
        places.add(id, what, move |editor| {
            let out = fresh(editor, tensor);
            let target = "aten.clone.default";
            let clone = editor.insert_before(Some(id), "edited", target, &[Value::Node(operand)], &[], out);
            editor.replace_input(id, operand, clone);
        });
    }
    places
}

/// A reader takes a value that was cast to a wider dtype and back.
pub(super) fn cast(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, operand, tensor) in operands(reading) {
        let wider = match tensor.dtype {
            Dtype::BF16 | Dtype::F16 => Dtype::F32,
            Dtype::F32 => Dtype::F64,
            _ => continue,
        };
        let what = format!("{} takes {} by way of {}", graph.name(id), graph.name(operand), wider.name());
        places.add(id, what, move |editor| {
            let wide = insert_cast(editor, id, operand, tensor, wider);
            let back = insert_cast(editor, id, wide, tensor, tensor.dtype);
            editor.replace_input(id, operand, back);
        });
    }
    places
}

/// A clone that nobody reads is added.
pub(super) fn dead(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, operand, tensor) in operands(reading) {
        let what = format!("a clone of {} that nobody reads, before {}", graph.name(operand), graph.name(id));
        places.add(id, what, move |editor| {
            let out = fresh(editor, tensor);
            editor.insert_before(Some(id), "edited", "aten.clone.default", &[Value::Node(operand)], &[], out);
        });
    }
    places
}

/// The operands of a sum or product trade places.
pub(super) fn commuted(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, info) in reading.calls() {
        let commutes =
            matches!(info.kind, Kind::Binary(Binary::Add | Binary::Mul)) && reading.is_arithmetic(id);
        let [Value::Node(a), Value::Node(b)] = *graph.args(id) else { continue };
        if !commutes || a == b || graph.kwargs(id).len() > 0 {
            continue;
        }
        let what = format!("{}: {} and {} trade places", graph.name(id), graph.name(a), graph.name(b));
        places.add(id, what, move |editor| editor.set_args(id, &[Value::Node(b), Value::Node(a)]));
    }
    places
}

/// A reader takes a value times 1.
pub(super) fn times_one(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, operand, tensor) in operands(reading) {
        if tensor.dtype.class() != DtypeClass::Float {
            continue;
        }
        let what = format!("{} takes {} times 1", graph.name(id), graph.name(operand));
        places.add(id, what, move |editor| {
            let out = fresh(editor, tensor);
            let args = [Value::Node(operand), Value::Float(1.0)];
            let product = editor.insert_before(Some(id), "edited", "aten.mul.Tensor", &args, &[], out);
            editor.replace_input(id, operand, product);
        });
    }
    places
}

/// A reader takes a second call of the same operator with the same arguments, which nobody writes to in between.
pub(super) fn twice(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, operand, _) in operands(reading) {
        let settled = reading.is_arithmetic(operand)
            && graph.inputs(operand).iter().all(|&input| reading.is_settled(input));
        if !settled || !reading.is_settled(operand) {
            continue;
        }
        let what = format!("{} takes a second {}", graph.name(id), graph.name(operand));
        places.add(id, what, move |editor| {
            let second = insert_copy(editor, operand, id);
            editor.replace_input(id, operand, second);
        });
    }
    places
}

/// Of two calls with the same arguments, only read by arithmetic, the readers of the second take the first.
pub(super) fn merged(reading: &Reading) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    let mut seen: FxHashMap<_, Vec<NodeId>> = FxHashMap::default();
    for id in graph.ids().filter(|&id| reading.is_arithmetic(id)) {
        let settled =
            reading.is_settled(id) && graph.inputs(id).iter().all(|&input| reading.is_settled(input));
        let users = reading.edges.users(id);
        let plain = !users.is_empty() && users.iter().all(|&user| reading.is_arithmetic(user));
        if !settled || !plain {
            continue;
        }
        let alike = seen.entry((graph.node(id).target, graph.inputs(id))).or_default();
        let same = |&&first: &&NodeId| {
            graph.args(first) == graph.args(id)
                && graph.kwargs(first).eq(graph.kwargs(id))
                && reading.record(first) == reading.record(id)
                && !graph.args(id).iter().any(|value| matches!(value, Value::List(_)))
        };
        if let Some(&first) = alike.iter().find(same) {
            let what = format!("{} is {}", graph.name(id), graph.name(first));
            places.add(id, what, move |editor| {
                editor.replace_uses(id, first);
                editor.erase(id);
            });
        }
        alike.push(id);
    }
    places
}
