//! Edits that are right where something is allowed beside keeping every bit, and edits that look like them and are
//! wrong.

use super::kept::{fresh, operands};
use super::reading::Reading;
use super::{Edit, Find, Places};
use crate::graph::{Dtype, DtypeClass, Editor, NodeId, Tensor, Value};
use crate::ops::{Binary, Kind, OpInfo, Random};
use crate::rules::PassKind;

/// An edit of a rewrite that may do more than keep every bit.
pub struct Loosening {
    /// The edit; it keeps the meaning in the sense of what is allowed, or not in any.
    pub edit: Edit,
    /// What is allowed, as `allow=` takes it.
    pub allow: &'static str,
}

const REWRITE: &[PassKind] = &[PassKind::Rewrite];

/// All of them.
pub fn loosening() -> Vec<Loosening> {
    let row = |allow, keeps, name, about, places: fn(&Reading) -> Places| Loosening {
        edit: Edit { name, about, keeps, passes: REWRITE, places: Find::Graph(places) },
        allow,
    };
    vec![
        row("zero-sign", true, "zero-added", "a reader takes a value plus 0", zero_added),
        row("zero-sign", false, "one-added", "a reader takes a value plus 1", one_added),
        row("reassociation", true, "regrouped", "a sum of three is grouped in another way", regrouped),
        row("reassociation", false, "regrouped-twice", "a sum of three has one term twice", regrouped_twice),
        row("restreamed", true, "restreamed", "draws come from seeds of their own", restreamed),
        row("restreamed", false, "one-seed", "two draws come from one seed", one_seed),
    ]
}

/// Whether a call adds two tensors, or a tensor and a number.
fn is_sum(reading: &Reading, id: NodeId) -> bool {
    let is_sum = |info: &OpInfo| info.kind == Kind::Binary(Binary::Add);
    reading.is_arithmetic(id) && reading.call(id).is_some_and(is_sum)
}

fn added(reading: &Reading, number: i64) -> Places {
    let graph = reading.graph;
    let mut places = Places::default();
    for (id, operand, tensor) in operands(reading) {
        let is_empty = graph.sizes(tensor.shape).is_none_or(|sizes| sizes.contains(&0));
        if tensor.dtype.class() != DtypeClass::Float || is_empty {
            continue;
        }
        let what = format!("{} takes {} plus {number}", graph.name(id), graph.name(operand));
        places.add(id, what, move |editor| {
            let out = fresh(editor, tensor);
            let args = [Value::Node(operand), Value::Int(number)];
            let sum = editor.insert_before(Some(id), "edited", "aten.add.Tensor", &args, &[], out);
            editor.replace_input(id, operand, sum);
        });
    }
    places
}

fn zero_added(reading: &Reading) -> Places {
    added(reading, 0)
}

fn one_added(reading: &Reading) -> Places {
    let mut places = added(reading, 1);
    // Whether it reaches an output or a write is known of what is read by one of these alone.
    let graph = reading.graph;
    places.found.retain(|place| {
        let users = reading.edges.users(place.node);
        graph.output().is_some_and(|output| users.contains(&output)) && is_sum(reading, place.node)
    });
    places
}

/// Sums of three tensors of one shape, whose inner sum nobody else reads: the outer one, and the three.
fn sums(reading: &Reading) -> Vec<(NodeId, [NodeId; 3], Tensor)> {
    let graph = reading.graph;
    let two = |id: NodeId| match *graph.args(id) {
        [Value::Node(a), Value::Node(b)] if is_sum(reading, id) && graph.kwargs(id).len() == 0 => {
            Some((a, b))
        }
        _ => None,
    };
    let shape = |id: NodeId| graph.tensor_of(id).map(|tensor| (tensor.dtype, tensor.shape));
    let of = |id: NodeId| {
        let (inner, c) = two(id)?;
        let (a, b) = two(inner)?;
        let tensor = *graph.tensor_of(id).filter(|tensor| tensor.dtype.class() == DtypeClass::Float)?;
        let is_alike = [a, b, c, inner].iter().all(|&one| shape(one) == shape(id));
        let is_settled = [a, b, c].iter().all(|&one| reading.is_settled(one));
        (is_alike && is_settled && reading.edges.users(inner) == [id]).then_some((id, [a, b, c], tensor))
    };
    graph.ids().filter_map(of).collect()
}

fn regrouped(reading: &Reading) -> Places {
    let mut places = Places::default();
    for (id, [a, b, c], tensor) in sums(reading) {
        let name = |id| reading.graph.name(id);
        let what = format!("{} is {} plus the sum of {} and {}", name(id), name(a), name(b), name(c));
        places.add(id, what, move |editor| {
            let out = fresh(editor, tensor);
            let args = [Value::Node(b), Value::Node(c)];
            let sum = editor.insert_before(Some(id), "edited", "aten.add.Tensor", &args, &[], out);
            editor.set_args(id, &[Value::Node(a), Value::Node(sum)]);
        });
    }
    places
}

fn regrouped_twice(reading: &Reading) -> Places {
    let mut places = Places::default();
    let graph = reading.graph;
    let is_returned =
        |id: NodeId| graph.output().is_some_and(|output| reading.edges.users(id).contains(&output));
    for (id, [a, b, c], tensor) in sums(reading) {
        if !is_returned(id) || a == c || b == c {
            continue;
        }
        let name = |id| reading.graph.name(id);
        let what = format!("{} is {} plus twice {}, without {}", name(id), name(a), name(b), name(c));
        places.add(id, what, move |editor| {
            let out = fresh(editor, tensor);
            let args = [Value::Node(b), Value::Node(b)];
            let sum = editor.insert_before(Some(id), "edited", "aten.add.Tensor", &args, &[], out);
            editor.set_args(id, &[Value::Node(a), Value::Node(sum)]);
        });
    }
    places
}

/// Draws of float32 of known size, with their sizes and how Inductor calls the distribution.
fn draws(reading: &Reading) -> Vec<(NodeId, Vec<i64>, &'static str)> {
    let graph = reading.graph;
    let of = |(id, info): (NodeId, &OpInfo)| {
        let mode = match info.kind {
            Kind::Random(Random::Rand) => "rand",
            Kind::Random(Random::Randn) => "randn",
            _ => return None,
        };
        let tensor = graph.tensor_of(id).filter(|tensor| tensor.dtype == Dtype::F32)?;
        let is_new = !info.writes();
        let sizes = graph.sizes(tensor.shape).filter(|sizes| is_new && !sizes.contains(&0))?;
        Some((id, sizes, mode))
    };
    reading.calls().filter_map(of).collect()
}

/// All draws from seeds; `of` says which seed each has, by its place.
fn seeded(reading: &Reading, what: &str, of: fn(usize) -> usize) -> Places {
    let mut places = Places::default();
    let all = draws(reading);
    let Some(&(first, ..)) = all.first() else { return places };
    let device = reading.graph.tensor_of(first).map(|tensor| tensor.device);
    let Some(device) = device else { return places };
    places.add(first, what, move |editor| {
        let record = editor.graph().tensor_of(first).copied();
        let Some(record) = record else { return };
        let integers = |editor: &mut Editor, sizes: &[i64]| {
            let graph = editor.graph_mut();
            let strides: Vec<i64> = sizes.iter().map(|_| 1).collect();
            let (shape, stride) = (graph.intern_sizes(sizes), graph.intern_sizes(&strides));
            fresh(editor, Tensor { dtype: Dtype::I64, shape, stride, ..record })
        };
        let out = integers(editor, &[all.len() as i64]);
        let args = [Value::Int(all.len() as i64), Value::Device(device)];
        let seeds =
            editor.insert_before(Some(first), "edited", "prims.inductor_seeds.default", &args, &[], out);
        for (place, (id, sizes, mode)) in all.iter().enumerate() {
            let out = integers(editor, &[]);
            let args = [Value::Node(seeds), Value::Int(of(place) as i64)];
            let target = "prims.inductor_lookup_seed.default";
            let seed = editor.insert_before(Some(*id), "edited", target, &args, &[], out);
            let sizes: Vec<Value> = sizes.iter().copied().map(Value::Int).collect();
            let graph = editor.graph_mut();
            let (sizes, mode) = (graph.push_values(&sizes), graph.intern(mode));
            editor.set_args(*id, &[Value::List(sizes), Value::Node(seed), Value::Str(mode)]);
            let graph = editor.graph_mut();
            let target = graph.intern_target("prims.inductor_random.default");
            let node = graph.node_mut(*id);
            (node.target, node.kwargs) = (target, Default::default());
        }
    });
    places
}

fn restreamed(reading: &Reading) -> Places {
    seeded(reading, "all draws come from seeds", |place| place)
}

fn one_seed(reading: &Reading) -> Places {
    let all = draws(reading);
    let graph = reading.graph;
    let is_read = |id: NodeId| graph.output().is_some_and(|output| reading.edges.users(id).contains(&output));
    // Two draws of one kind, of which both are returned.
    match all.as_slice() {
        [(a, sizes, mode), (b, others, other), ..]
            if sizes == others && mode == other && is_read(*a) && is_read(*b) =>
        {
            seeded(reading, "all draws come from one seed", |_| 0)
        }
        _ => Places::default(),
    }
}
