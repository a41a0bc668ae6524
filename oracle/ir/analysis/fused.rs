//! Products fused with their communication, as the operators that they stand for.
//!
//! `fused_all_gather_matmul` gathers the shards of a matrix and multiplies them by others; `fused_matmul_reduce_scatter`
//! scatters the sum of products. On a device both are done in pieces, so sums may be taken in another order. They run on
//! the stream of their caller, and so does what they are written as. Source:
//! `torch/distributed/_symmetric_memory/__init__.py` (`_fused_all_gather_matmul_fallback`,
//! `_fused_matmul_reduce_scatter_fallback`).
//!
//! # What it does not do
//!
//! A call stays as it is where its sizes or its group are not known, or its results are taken as a whole; so do the forms
//! with scales.

use super::edges::Edges;
use crate::graph::{Editor, Graph, NodeId, Op, Out, Tags, TensorId, Value};
use crate::ops::Ops;
use crate::ops::shape::{check, complete};

const GATHER: &str = "symm_mem.fused_all_gather_matmul.default";
const SCATTER: &str = "symm_mem.fused_matmul_reduce_scatter.default";

fn is_fused(graph: &Graph, id: NodeId) -> bool {
    graph.node(id).op == Op::Call && [GATHER, SCATTER].contains(&graph.target(id))
}

/// Whether a graph has such calls.
pub fn has_calls(graph: &Graph) -> bool {
    graph.ids().any(|id| is_fused(graph, id))
}

/// The graph with such calls written out; `None` where there are none. A call whose record, or an item of it, does not fit
/// stays, so that the fault is found.
pub fn written_out(graph: &Graph) -> Option<Graph> {
    if !has_calls(graph) {
        return None;
    }
    let (ops, edges) = (Ops::of(graph), Edges::new(graph));
    let fits = |&id: &NodeId| {
        std::iter::once(&id).chain(edges.users(id)).all(|&id| check(graph, &ops, id).is_empty())
    };
    let calls: Vec<NodeId> = graph.ids().filter(|&id| is_fused(graph, id)).filter(fits).collect();
    let mut fused = Fused { ops, editor: Editor::new(graph) };
    let mut is_changed = false;
    for id in calls {
        let first = fused.editor.graph().len();
        let written = match graph.target(id) {
            GATHER => fused.gather(id),
            _ => fused.scatter(id),
        };
        // All of it runs on the stream of the call.
        let custom = graph.tags(id).and_then(|tags| tags.custom);
        let tags = fused.editor.graph_mut().intern_tags(Tags { custom, ..Tags::default() });
        for new in (first..fused.editor.graph().len()).map(|at| NodeId(at as u32)) {
            fused.editor.graph_mut().node_mut(new).tags = tags;
        }
        is_changed |= written.is_some();
    }
    let written = is_changed.then(|| fused.editor.finish())?;
    Some(complete(&written).unwrap_or(written))
}

struct Fused {
    ops: Ops,
    editor: Editor,
}

/// A fused call: the sizes of its first matrix, the dimension along which shards lie, and the ranks of its group.
struct Sharded {
    sizes: Vec<i64>,
    dim: usize,
    ranks: i64,
}

impl Fused {
    fn given(&self, id: NodeId, name: &str) -> Option<Value> {
        let graph = self.editor.graph();
        let schema = self.ops.get(graph, id).schema.as_ref()?;
        graph.argument(id, schema.param(name)?, name)
    }

    fn sharded(&self, id: NodeId, dim: &str) -> Option<Sharded> {
        let graph = self.editor.graph();
        let (Value::Node(matrix), Value::Int(dim)) = (self.given(id, "A")?, self.given(id, dim)?) else {
            return None;
        };
        let Value::Str(group) = self.given(id, "group_name")? else { return None };
        let sizes = graph.sizes(graph.tensor_of(matrix)?.shape)?;
        let ranks = i64::from(graph.world.group(graph.text(group))?.size);
        let dim = if dim < 0 { dim.checked_add(sizes.len() as i64)? } else { dim };
        let dim = usize::try_from(dim).ok().filter(|&dim| dim < sizes.len())?;
        (sizes.len() >= 2 && ranks > 0).then_some(Sharded { sizes, dim, ranks })
    }

    /// A call before `id`, of which nothing is recorded yet.
    fn call(&mut self, id: NodeId, target: &str, args: &[Value]) -> Value {
        let base = format!("{}_{}", self.editor.graph().name(id), target.split('.').nth(1).unwrap_or("part"));
        Value::Node(self.editor.insert_before(Some(id), &base, target, args, &[], Out::Absent))
    }

    /// The equal parts of a tensor along one dimension, put together along another.
    fn regrouped(&mut self, id: NodeId, of: Value, part: i64, [from, to]: [usize; 2], ranks: i64) -> Value {
        let parts = self.call(id, "aten.split.Tensor", &[of, Value::Int(part), Value::Int(from as i64)]);
        let items: Vec<Value> =
            (0..ranks).map(|rank| self.call(id, "operator.getitem", &[parts, Value::Int(rank)])).collect();
        let items = Value::List(self.editor.graph_mut().push_values(&items));
        self.call(id, "aten.cat.default", &[items, Value::Int(to as i64)])
    }

    /// A node that stays, with its name and what is recorded of it, as another call.
    fn becomes(&mut self, id: NodeId, target: &str, args: &[Value]) {
        let target = self.editor.graph_mut().intern_target(target);
        self.editor.set_args(id, args);
        let graph = self.editor.graph_mut();
        let kwargs = graph.push_values(&[]);
        let node = graph.node_mut(id);
        (node.target, node.kwargs) = (target, kwargs);
    }

    fn scatter(&mut self, id: NodeId) -> Option<()> {
        let Sharded { sizes, dim, ranks } = self.sharded(id, "scatter_dim")?;
        let (a, b) = (self.given(id, "A")?, self.given(id, "B")?);
        let (reduce_op, group) = (self.given(id, "reduce_op")?, self.given(id, "group_name")?);
        let Value::Node(other) = b else { return None };
        let graph = self.editor.graph();
        let others = graph.sizes(graph.tensor_of(other)?.shape).filter(|sizes| sizes.len() == 2)?;
        let scattered = if dim + 1 == sizes.len() { others[1] } else { sizes[dim] };
        if scattered % ranks != 0 || scattered == 0 {
            return None;
        }
        let mut product = self.call(id, product_of(sizes.len()), &[a, b]);
        if dim != 0 {
            product = self.regrouped(id, product, scattered / ranks, [dim, 0], ranks);
        }
        self.becomes(id, "symm_mem.reduce_scatter.default", &[product, reduce_op, group]);
        Some(())
    }

    fn gather(&mut self, id: NodeId) -> Option<()> {
        let Sharded { sizes, dim, ranks } = self.sharded(id, "gather_dim")?;
        let (a, group) = (self.given(id, "A")?, self.given(id, "group_name")?);
        let Value::List(others) = self.given(id, "Bs")? else { return None };
        let others = self.editor.graph().values(others).to_vec();
        let returned = self.items(id)?;
        let gathered = returned.iter().filter(|(_, at)| *at == 0).map(|(item, _)| *item).collect::<Vec<_>>();
        let lists = returned.iter().filter(|(_, at)| *at == 1).map(|(item, _)| *item).collect::<Vec<_>>();
        let products: Option<Vec<Vec<(NodeId, usize)>>> =
            lists.iter().map(|&list| self.items(list)).collect();
        let products: Vec<(NodeId, usize)> = products?.into_iter().flatten().collect();
        let is_last = dim + 1 == sizes.len();
        if products.iter().any(|&(_, at)| at >= others.len()) || sizes[0] == 0 || (dim != 0 && !is_last) {
            return None;
        }
        // What is recorded of the call and of its items must be what they are written as.
        let Value::Node(shard) = a else { return None };
        let graph = self.editor.graph();
        let dtype = graph.tensor_of(shard)?.dtype;
        let mut rows = sizes.clone();
        rows[dim] = rows[dim].checked_mul(ranks)?;
        let product = |other: &Value| {
            let Value::Node(other) = *other else { return None };
            let mut sizes = rows.clone();
            *sizes.last_mut()? = *graph.sizes(graph.tensor_of(other)?.shape)?.last()?;
            Some(sizes)
        };
        let of_products: Vec<Vec<i64>> = others.iter().map(product).collect::<Option<_>>()?;
        let of_all: Vec<Vec<i64>> = std::iter::once(rows).chain(of_products.iter().cloned()).collect();
        let fits = |id: NodeId, sizes: &[Vec<i64>]| {
            let recorded = graph.tensors_of(graph.node(id).out);
            let is_so = |(tensor, sizes): (&TensorId, &Vec<i64>)| {
                let tensor = graph.tensor(*tensor);
                tensor.dtype == dtype && graph.sizes(tensor.shape).as_ref() == Some(sizes)
            };
            recorded.is_empty() || (recorded.len() == sizes.len() && recorded.iter().zip(sizes).all(is_so))
        };
        if !fits(id, &of_all)
            || !gathered.iter().all(|&item| fits(item, &of_all[..1]))
            || !lists.iter().all(|&list| fits(list, &of_products))
        {
            return None;
        }
        let mut whole = self.call(id, "symm_mem.all_gather.default", &[a, group]);
        if dim != 0 {
            whole = self.regrouped(id, whole, sizes[0], [0, dim], ranks);
        }
        for &(item, at) in &products {
            self.becomes(item, product_of(sizes.len()), &[whole, others[at]]);
        }
        let Value::Node(whole) = whole else { return None };
        gathered.iter().for_each(|&item| self.editor.replace_uses(item, whole));
        gathered.iter().chain(&lists).for_each(|&item| self.editor.erase(item));
        self.editor.erase(id);
        Some(())
    }

    /// Who takes an item of a call, and which; `None` where something takes it as a whole.
    fn items(&self, id: NodeId) -> Option<Vec<(NodeId, usize)>> {
        let graph = self.editor.graph();
        let item = |&user: &NodeId| match (graph.target(user), graph.args(user)) {
            ("operator.getitem", &[Value::Node(of), Value::Int(at)]) if of == id => {
                Some((user, usize::try_from(at).ok()?))
            }
            _ => None,
        };
        self.editor.users(id).iter().map(item).collect()
    }
}

/// The operator that multiplies a matrix, or a batch of rows of so many dimensions, by a matrix.
fn product_of(dimensions: usize) -> &'static str {
    if dimensions == 2 { "aten.mm.default" } else { "aten.matmul.default" }
}
