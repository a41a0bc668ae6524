//! Some consecutive calls of a graph as the body of one: what `invoke_subgraph` runs, the operator that regional
//! compilation makes (`torch/_higher_order_ops/invoke_subgraph.py`).
//!
//! The body takes what the calls read from outside and returns what is read outside of them. Now and then it is called a
//! second time, with its inputs in another order, and the graph returns that call's first result besides.
//!
//! What the operator does not take is not made: bodies that write, return memory of what they are given, or return one
//! storage twice. Nor are bodies that draw or communicate.

use super::edits::is_settled;
use super::source::Source;
use super::window::Cut;
use crate::analysis::{Collectives, Edges, Storages, storages::Mode};
use crate::graph::{Graph, Node, NodeId, Op, Out, Transcriber, Value};
use crate::ops::{Kind, Ops};
use std::collections::BTreeSet;
use std::sync::Arc;

const INVOKE: &str = "higher_order.invoke_subgraph";
/// The attribute that holds the body.
const BODY: &str = "region";
/// Places that are tried.
const TRIES: u32 = 8;

/// The calls that become a body, what they are given, and what is taken out of them.
struct Region {
    calls: Vec<NodeId>,
    inputs: Vec<NodeId>,
    outputs: Vec<NodeId>,
}

/// The graph with some of its calls in a body; `None` where the places tried allow none.
pub fn with_region<S: Source>(source: &mut S, graph: &Graph) -> Option<Graph> {
    if !graph.renames.is_empty() || !graph.clusters.is_empty() || graph.find(BODY).is_some() {
        return None;
    }
    let ops = Ops::of(graph);
    let (edges, collectives) = (Edges::new(graph), Collectives::new(graph, &ops));
    let storages = Storages::new(graph, &ops, &edges, &collectives, Mode::Physical);
    let region = (0..TRIES).find_map(|_| {
        let start = source.below(graph.len() as u32) as usize;
        let length = source.between(2, 8) as usize;
        region(graph, &ops, &edges, &storages, start, length)
    })?;
    let again = source.percent(40).then(|| exchanged(source, graph, &region.inputs));
    Some(called(graph, &region, again))
}

fn region(
    graph: &Graph,
    ops: &Ops,
    edges: &Edges,
    storages: &Storages,
    start: usize,
    length: usize,
) -> Option<Region> {
    let ordered: BTreeSet<NodeId> =
        graph.ordering.iter().flat_map(|edge| [edge.before, edge.after]).collect();
    let may_be_inside = |id: &NodeId| {
        let Some(info) = ops.call(graph, *id) else { return false };
        let acts = info.effect || info.writes() || ops.draws(graph, *id);
        let is_plain =
            !acts && info.collective().is_none() && ![Kind::Wait, Kind::Unknown].contains(&info.kind);
        is_plain && is_settled(graph, ops, *id) && !ordered.contains(id)
    };
    let calls: Vec<NodeId> = graph.ids().skip(start).take_while(may_be_inside).take(length).collect();
    let is_inside = |id: &NodeId| calls.contains(id);
    let mut inputs: Vec<NodeId> = Vec::new();
    for input in calls.iter().flat_map(|&id| edges.inputs(id)).filter(|input| !is_inside(input)) {
        if !inputs.contains(input) {
            inputs.push(*input);
        }
    }
    let is_read_outside = |id: &NodeId| edges.users(*id).iter().any(|user| !is_inside(user));
    let outputs: Vec<NodeId> = calls.iter().copied().filter(is_read_outside).collect();
    let is_tensor = |id: &NodeId| graph.tensor_of(*id).is_some();
    let is_given = |id: &NodeId| is_tensor(id) && is_settled(graph, ops, *id);
    let mut taken: BTreeSet<_> = inputs.iter().map(|&input| storages.storage_of(input)).collect();
    let is_own = |id: &NodeId| {
        let storage = storages.storage_of(*id);
        storage.is_some() && taken.insert(storage)
    };
    let fits = !outputs.is_empty()
        && inputs.iter().all(is_given)
        && outputs.iter().all(is_tensor)
        && outputs.iter().all(is_own);
    fits.then_some(Region { calls, inputs, outputs })
}

/// The inputs with two of one type in each other's place, where there are two.
fn exchanged<S: Source>(source: &mut S, graph: &Graph, inputs: &[NodeId]) -> Vec<NodeId> {
    let mut inputs = inputs.to_vec();
    let types = |id: NodeId| {
        graph.tensor_of(id).map(|t| (t.shape, t.stride, t.dtype, t.offset, graph.text(t.device).to_string()))
    };
    if inputs.len() > 1 {
        let [a, b] = [(); 2].map(|()| source.below(inputs.len() as u32) as usize);
        if types(inputs[a]) == types(inputs[b]) {
            inputs.swap(a, b);
        }
    }
    inputs
}

/// The graph with a call in place of the region, and one more with the inputs of `again`.
fn called(graph: &Graph, region: &Region, again: Option<Vec<NodeId>>) -> Graph {
    let mut cut = Cut::new(graph);
    // Each of them is a tensor, so that none is refused.
    region.inputs.iter().for_each(|&input| _ = cut.input(input));
    region.calls.iter().for_each(|&call| cut.call(call));
    let mut body = cut.finish(&region.outputs);
    (body.name, body.kind, body.world) = Default::default();
    (body.symbols, body.facts) = Default::default();

    let mut to = Graph::with_capacity(graph.len() + 8);
    (to.name, to.kind, to.world) = (graph.name.clone(), graph.kind.clone(), graph.world.clone());
    (to.symbols, to.facts) = (graph.symbols.clone(), graph.facts.clone());
    to.subgraphs.clone_from(&graph.subgraphs);
    let mut map = vec![None; graph.len()];
    let mut more = None;
    for id in graph.ids() {
        if region.calls.last() == Some(&id) {
            let names = region.outputs.iter().map(|&output| graph.name(output).to_string()).collect();
            for (&output, result) in
                region.outputs.iter().zip(call(graph, &mut to, &map, region, &region.inputs, names))
            {
                map[output.index()] = Some(result);
            }
            let inputs = again.as_deref().into_iter();
            more = inputs
                .flat_map(|inputs| call(graph, &mut to, &map, region, inputs, vec!["again".into()]))
                .next();
        } else if !region.calls.contains(&id) {
            let new = Transcriber { from: graph, to: &mut to, map: &mut map }.node(id, graph.name(id));
            let old = graph.node(id);
            let desc = old.desc.map(|text| to.intern(graph.text(text)));
            to.node_mut(new).desc = desc;
            map[id.index()] = Some(new);
        }
    }
    to.resolve_references();
    for edge in &graph.ordering {
        if let (Some(before), Some(after)) = (map[edge.before.index()], map[edge.after.index()]) {
            to.ordering.push(crate::graph::OrderingEdge { before, after });
        }
    }
    to.subgraphs.push((BODY.to_string(), Arc::new(body)));
    let output = to.output();
    if let (Some(more), Some(output)) = (more, output)
        && let [Value::List(returned)] = *to.args(output)
    {
        let returned: Vec<Value> = to.values(returned).iter().copied().chain([Value::Node(more)]).collect();
        let list = to.list(&returned);
        let args = to.push_values(&[list]);
        to.node_mut(output).args = args;
    }
    to
}

/// Appends a call of the body, and takes its first results by these names.
fn call(
    graph: &Graph,
    to: &mut Graph,
    map: &[Option<NodeId>],
    region: &Region,
    inputs: &[NodeId],
    names: Vec<String>,
) -> Vec<NodeId> {
    let free = |to: &Graph, name: &str| {
        let taken = |name: &str| to.find(name).is_some() || graph.find(name).is_some();
        let mut names = std::iter::once(name.to_string()).chain((1..).map(|n| format!("{name}_{n}")));
        names.find(|name| !taken(name)).unwrap_or_default()
    };
    let name = free(to, BODY);
    let module = to.push(&name, Op::GetAttr, BODY);
    let kind = to.intern("GraphModule");
    to.node_mut(module).out = Out::Other(kind);
    let mut args = vec![Value::Node(module), Value::Str(to.intern(BODY))];
    args.extend(inputs.iter().filter_map(|input| map[input.index()]).map(Value::Node));
    let args = to.push_values(&args);
    // Results have memory of their own.
    let mut nowhere = vec![None; graph.len()];
    let mut transcriber = Transcriber { from: graph, to, map: &mut nowhere };
    let outs: Vec<Out> =
        region.outputs.iter().map(|&output| transcriber.out(graph.node(output).out, false)).collect();
    let tuple = to.push_outs(&outs);
    let name = free(to, "run");
    let run = to.push(&name, Op::Call, INVOKE);
    let node = to.node_mut(run);
    *node = Node { args, out: Out::Tuple(tuple), ..*node };
    let mut results = Vec::new();
    for (index, (name, out)) in names.into_iter().zip(outs).enumerate() {
        let name = if to.find(&name).is_some() { free(to, &name) } else { name };
        let args = to.push_values(&[Value::Node(run), Value::Int(index as i64)]);
        let item = to.push(&name, Op::Call, "operator.getitem");
        let node = to.node_mut(item);
        *node = Node { args, out, ..*node };
        results.push(item);
    }
    results
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Seeded, case};
    use super::*;
    use crate::analysis::validate::validate;
    use crate::judge::bodies::inlined;

    /// Bodies occur, graphs with them are valid, and seen through they have as many calls as before.
    #[test]
    fn regions_are_valid_and_occur() {
        let (mut made, mut twice) = (0, 0);
        for number in 0..300 {
            let graph = case(&Config { repair: 0, ..Config::default() }, 5, number).graph;
            let Some(with) = with_region(&mut Seeded::case(9, number), &graph) else { continue };
            assert_eq!(validate(&with), validate(&graph), "case {number}");
            made += 1;
            twice += u32::from(with.find("again").is_some());
            let seen = inlined(&with).expect("has a body");
            if with.find("again").is_none() {
                assert_eq!(seen.len(), graph.len(), "case {number}");
            }
        }
        assert!(made > 100 && twice > 30, "{made}, {twice}");
    }
}
