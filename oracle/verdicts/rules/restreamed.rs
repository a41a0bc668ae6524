//! Draws from another stream: both graphs with their draws written in one way, so that they can be compared.
//!
//! # The idea
//!
//! Inductor replaces `aten.rand` by `inductor_random` of a seed that `inductor_seeds` draws. The numbers are others,
//! the distribution is not. Where that is allowed, what is drawn from a seed of its own is written as the `rand` or
//! `randn` that it stands for, draws that nobody reads are left out, and the draws of constant size stand at the head
//! of the list, those of one kind together. So what is left is the question that is asked of any rewrite: are there as
//! many draws of each kind, and is each used for what it was used for?
//!
//! # What it does not do
//!
//! Draws of one kind are matched in list order. Where there are several, another matching may be the right one, and a
//! difference of values convicts nobody ([`Restreamed::is_ambiguous`]). Two draws from one seed are one draw if they
//! are of one kind; of different kinds they depend on one another, and nothing is restreamed. Random integers, and
//! draws whose size follows from data, keep their stream.

use crate::graph::{Dtype, Editor, Graph, NodeId, Op, Span, Value};
use crate::ops::{Kind, Ops, Random, shape};
use std::collections::{BTreeMap, BTreeSet};

const RANDOM: &str = "prims.inductor_random.default";
const LOOKUP: &str = "prims.inductor_lookup_seed.default";
const SEEDS: &str = "prims.inductor_seeds.default";
const SEED: &str = "prims.inductor_seed.default";
const DRAWS: [(&str, &str); 2] = [("rand", "aten.rand.default"), ("randn", "aten.randn.default")];

/// What draws are told apart by: target, sizes, device.
type DrawKind = (String, Vec<i64>, String);

/// A graph whose draws are written in one way.
pub(crate) struct Restreamed {
    /// The graph.
    pub(crate) graph: Graph,
    /// Whether there are several draws of one kind.
    pub(crate) is_ambiguous: bool,
}

impl Restreamed {
    /// `None` where draws of different kinds come from one seed, where one is recorded as what its call does not give,
    /// or where a seed is not there.
    pub(crate) fn new(graph: &Graph) -> Option<Restreamed> {
        if !draws_are_as_recorded(graph) {
            return None;
        }
        // What is drawn like a tensor reads its shape alone, so it is written with its sizes before unread draws go.
        let graph = at_the_head(without_seeds(graph)?).graph;
        Some(at_the_head(without_unread_draws(&graph)))
    }
}

/// The graph without draws that nobody reads, and without what is computed of them alone.
fn without_unread_draws(graph: &Graph) -> Graph {
    let ops = Ops::of(graph);
    let acts = |id: NodeId| match ops.call(graph, id) {
        None => true,
        Some(info) => {
            let writes = info.written(graph, id).next().is_some();
            let draws = ops.draws(graph, id);
            let has_effect = info.effect && !draws;
            writes
                || has_effect
                || info.collective().is_some()
                || matches!(
                    info.kind,
                    Kind::Wait | Kind::Unknown | Kind::Assert | Kind::Effect | Kind::Sync(_)
                )
        }
    };
    let mut live = vec![false; graph.len()];
    let mut open: Vec<NodeId> = graph.ids().filter(|&id| acts(id)).collect();
    while let Some(id) = open.pop() {
        if !std::mem::replace(&mut live[id.index()], true) {
            open.extend(graph.inputs(id));
        }
    }
    // Only what hangs on an unread draw goes: everything else is the pass's own business.
    let mut of_draws = vec![false; graph.len()];
    let mut gone = Vec::new();
    for id in graph.ids().filter(|id| !live[id.index()]) {
        let hangs = graph.inputs(id).iter().any(|input| of_draws[input.index()]);
        if hangs || ops.draws(graph, id) {
            of_draws[id.index()] = true;
            gone.push(id);
        }
    }
    let mut editor = Editor::new(graph);
    editor.erase_all(&gone);
    editor.finish()
}

/// Whether each draw says the sizes, the dtype and the device that are recorded of it, since draws are written by their
/// records; and each seed is one of those that there are.
fn draws_are_as_recorded(graph: &Graph) -> bool {
    let ops = Ops::of(graph);
    let sizes = |value: Option<Value>| match value {
        Some(Value::List(span)) => {
            let size = |value: &Value| if let Value::Int(n) = *value { Some(n) } else { None };
            graph.values(span).iter().map(size).collect::<Option<Vec<i64>>>()
        }
        _ => None,
    };
    let is_said = |id: NodeId| {
        let Some(tensor) = graph.tensor_of(id) else { return true };
        let recorded = graph.sizes(tensor.shape);
        let device = match graph.kwarg(id, "device") {
            Some(Value::Device(device)) => graph.text(device) == graph.text(tensor.device),
            _ => true,
        };
        let dtype = match graph.kwarg(id, "dtype") {
            Some(Value::Dtype(dtype)) => dtype == tensor.dtype,
            _ => true,
        };
        let given = sizes(graph.arg(id, 0));
        let shape = given.is_none_or(|given| recorded == Some(given));
        let seeded = graph.arg(id, 1).and_then(|seed| match seed {
            Value::Node(seed) => graph.tensor_of(seed).map(|seed| graph.text(seed.device)),
            _ => None,
        });
        let on_its_device = seeded.is_none_or(|seeds| seeds == graph.text(tensor.device));
        device && dtype && shape && on_its_device && shape::check(graph, &ops, id).is_empty()
    };
    graph.ids().filter(|&id| graph.node(id).op == Op::Call).all(|id| match graph.target(id) {
        RANDOM => is_said(id) && (seed_of(graph, id).is_some() || graph.arg(id, 1).is_none()),
        SEEDS | SEED | LOOKUP => {
            let is_there = match graph.target(id) {
                SEEDS => graph.tensor_of(id).is_none_or(|tensor| {
                    let count = match graph.arg(id, 0) {
                        Some(Value::Int(count)) => Some(vec![count]),
                        _ => None,
                    };
                    count.is_none() || graph.sizes(tensor.shape) == count
                }),
                _ => true,
            };
            is_there && shape::check(graph, &ops, id).is_empty()
        }
        _ if ops.draws(graph, id) => is_said(id),
        _ => true,
    })
}

/// The seed that a call draws from: the node that gives it, and its place there; `None` where there is no such place.
fn seed_of(graph: &Graph, id: NodeId) -> Option<(NodeId, i64)> {
    let Some(Value::Node(seed)) = graph.arg(id, 1) else { return None };
    match (graph.target(seed), graph.arg(seed, 0), graph.arg(seed, 1)) {
        (SEED, ..) => Some((seed, 0)),
        (LOOKUP, Some(Value::Node(seeds)), Some(Value::Int(index))) if graph.target(seeds) == SEEDS => {
            let Some(Value::Int(count)) = graph.arg(seeds, 0) else { return None };
            let place = if index < 0 { index + count } else { index };
            (0..count).contains(&place).then_some((seeds, place))
        }
        _ => None,
    }
}

/// The graph with `rand` and `randn` for what is drawn from seeds of its own.
fn without_seeds(graph: &Graph) -> Option<Graph> {
    let mut drawn: BTreeMap<(NodeId, i64), (NodeId, DrawKind)> = BTreeMap::new();
    let mut editor = Editor::new(graph);
    let calls = |target: &str| {
        let is_it = |id: &NodeId| graph.node(*id).op == Op::Call && graph.target(*id) == target;
        graph.ids().filter(is_it).collect::<Vec<_>>()
    };
    for id in calls(RANDOM) {
        // Numbers that are made as those of another dtype have another distribution.
        let aligned = graph.kwarg(id, "align_dtype").or(graph.arg(id, 3));
        if aligned.is_some_and(|dtype| dtype != Value::None) {
            continue;
        }
        // Of PyTorch 2.8: other numbers from the same seed.
        if graph.kwarg(id, "offset").is_some_and(|offset| offset != Value::Int(0)) {
            return None;
        }
        let mode = match graph.arg(id, 2) {
            Some(Value::Str(mode)) => graph.text(mode),
            _ => continue,
        };
        let target = DRAWS.iter().find(|(name, _)| *name == mode).map(|(_, target)| *target);
        let kind = target.and_then(|target| kind(graph, id, target));
        let (Some(target), Some(kind), Some(seed)) = (target, kind, seed_of(graph, id)) else { continue };
        match drawn.get(&seed) {
            // One seed gives the same numbers again.
            Some((first, other)) if *other == kind => {
                editor.replace_uses(id, *first);
                editor.erase(id);
            }
            Some(_) => return None,
            None => {
                drawn.insert(seed, (id, kind));
                let size = graph.arg(id, 0)?;
                editor.set_args(id, &[size]);
                let target = editor.graph_mut().intern_target(target);
                editor.graph_mut().node_mut(id).target = target;
            }
        }
    }
    for target in [LOOKUP, SEEDS, SEED] {
        for id in calls(target) {
            if !drawn.is_empty() && editor.users(id).is_empty() {
                editor.erase(id);
            }
        }
    }
    Some(editor.finish())
}

/// What tells a draw of float32 of constant size, written as `target`, apart from others.
fn kind(graph: &Graph, id: NodeId, target: &str) -> Option<DrawKind> {
    let tensor = graph.tensor_of(id).filter(|tensor| tensor.dtype == Dtype::F32)?;
    Some((target.to_string(), graph.sizes(tensor.shape)?, graph.text(tensor.device).to_string()))
}

/// The graph with its draws of float32 of constant size at the head of the list, those of one kind in their order.
fn at_the_head(graph: Graph) -> Restreamed {
    let ops = Ops::of(&graph);
    let mut kinds: BTreeMap<DrawKind, Vec<NodeId>> = BTreeMap::new();
    for id in graph.ids() {
        let target = match ops.call(&graph, id).map(|info| info.kind) {
            Some(Kind::Random(Random::Rand)) => DRAWS[0].1,
            Some(Kind::Random(Random::Randn)) => DRAWS[1].1,
            _ => continue,
        };
        let is_known = [target, &target.replace(".default", "_like.default")].contains(&graph.target(id));
        if is_known
            && !graph.kwargs(id).any(|(key, _)| key == "generator")
            && let Some(kind) = kind(&graph, id, target)
        {
            kinds.entry(kind).or_default().push(id);
        }
    }
    let is_ambiguous = kinds.values().any(|draws| draws.len() > 1);
    let inputs: BTreeSet<NodeId> = graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder).collect();
    let draws: Vec<(NodeId, DrawKind)> =
        kinds.into_iter().flat_map(|(kind, ids)| ids.into_iter().map(move |id| (id, kind.clone()))).collect();
    let moved: BTreeSet<NodeId> = draws.iter().map(|(id, _)| *id).collect();
    let mut editor = Editor::from_owned(graph);
    let anchor = editor.list().into_iter().find(|id| !inputs.contains(id) && !moved.contains(id));
    for (id, (target, sizes, _)) in draws {
        // What they say of dtype and device, the record says too.
        let sizes: Vec<Value> = sizes.into_iter().map(Value::Int).collect();
        let sizes = editor.graph_mut().push_values(&sizes);
        editor.set_args(id, &[Value::List(sizes)]);
        let target = editor.graph_mut().intern_target(&target);
        let node = editor.graph_mut().node_mut(id);
        (node.target, node.kwargs) = (target, Span::default());
        editor.move_before(anchor, id);
    }
    Restreamed { graph: editor.finish(), is_ambiguous }
}
