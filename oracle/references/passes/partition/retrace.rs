//! The second joint graph: forward, then backward, as tracing the compiled first partition again gives it.
//!
//! Nodes keep their tags, so what the first partition did travels on: each node of the second joint graph
//! carries the tags of the operator that was traced, and the results of one with several carry its tags, not
//! their own. What backward computes again is a second copy under a new name. Source: `torch.compile` over
//! AutoParallel's first partition, with `torch.fx.traceback.preserve_node_meta`.
//!
//! # What it does not do
//!
//! Nothing is decomposed, so an operator stays one node: which operators are is for the compiler's table to say, not
//! for the partition, and of what AutoParallel's recorded first partition holds only `reshape` is, to `view`
//! (`tests/two_stages.rs`). The pieces would carry the tags of the whole, as results do. A second joint graph that was
//! decomposed is judged where it is given (`check partition --replay FIRST SECOND`). Inputs are not unwrapped.

use super::error::{Origin, PartitionError, Problem};
use super::marks::Placement;
use super::strategy::{Reference, Strategy};
use crate::graph::{
    Dim, DimsId, Expr, ExprId, Graph, Node, NodeId, Op, Out, Span, StorageId, Str, Tags, Value,
};
use rustc_hash::{FxHashMap, FxHashSet};

pub use super::joint::Side;

/// A second joint graph and where its nodes come from.
#[derive(Clone, Debug)]
pub struct Retraced {
    /// The joint graph; its file states the number of forward outputs.
    pub joint: Graph,
    /// For each of its nodes the node of the first partition that it is; `None` for the output.
    pub origins: Vec<Option<(Side, NodeId)>>,
}

/// Traces a first partition again. `forward` is tagged ([`super::tagging::tag_forward`]); of its outputs the first
/// `num_forward_outputs` are the program's.
pub fn retrace(
    forward: &Graph,
    backward: &Graph,
    num_forward_outputs: usize,
) -> Result<Retraced, PartitionError> {
    retrace_with(forward, backward, num_forward_outputs, &Reference)
}

/// [`retrace`] by another strategy.
pub fn retrace_with(
    forward: &Graph,
    backward: &Graph,
    num_forward_outputs: usize,
    strategy: &dyn Strategy,
) -> Result<Retraced, PartitionError> {
    let returned = outputs(forward);
    if num_forward_outputs > returned.len() {
        return Err(PartitionError::new(Problem::Malformed, "forward returns less than its own outputs"));
    }
    let mut tracer = Tracer {
        joint: Graph::new(format!("{}_retraced", forward.name)),
        origins: Vec::new(),
        suffixes: FxHashMap::default(),
        strategy,
    };
    tracer.joint.kind = "joint".to_string();
    tracer.joint.world = forward.world.clone();
    tracer.joint.symbols = forward.symbols.clone();
    tracer.joint.facts = forward.facts.clone();
    for fact in &backward.facts {
        if !tracer.joint.facts.iter().any(|(target, _)| *target == fact.0) {
            tracer.joint.facts.push(fact.clone());
        }
    }
    tracer.joint.extra.push(("num_fwd_outputs".to_string(), num_forward_outputs.to_string()));

    let above = last_storage(forward).map_or(0, |last| last.saturating_add(1));
    let mut first = Copier::new(forward, Side::Forward, None);
    let mut second = Copier::new(backward, Side::Backward, Some((kept_by_inputs(backward), above)));
    let inputs = |graph: &Graph| -> Vec<NodeId> {
        graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder).collect()
    };
    let handed = handed_over(forward, backward, &returned[num_forward_outputs..]);
    inputs(forward).into_iter().for_each(|id| tracer.copy(&mut first, id));
    for id in inputs(backward) {
        if handed[id.index()].is_none() {
            let name = backward.name(id);
            if !["tangents", "bwd_seed", "bwd_base_offset"]
                .iter()
                .any(|word| backward.target(id).contains(word))
            {
                let error = PartitionError::new(
                    Problem::Malformed,
                    format!("nobody gives backward its input {name}"),
                );
                return Err(error.with(name, Origin::DataDependence, "is no output of forward"));
            }
            tracer.copy(&mut second, id);
        }
    }
    for id in forward.ids().filter(|&id| !matches!(forward.node(id).op, Op::Placeholder | Op::Output)) {
        tracer.copy(&mut first, id);
    }
    for (input, value) in handed.iter().enumerate() {
        if let Some(value) = value {
            second.position[input] = first.position[value.index()];
        }
    }
    for id in backward.ids().filter(|&id| !matches!(backward.node(id).op, Op::Placeholder | Op::Output)) {
        tracer.copy(&mut second, id);
    }
    let mut results: Vec<Value> = Vec::new();
    for &value in &returned[..num_forward_outputs] {
        results.push(first.value(&mut tracer.joint, value));
    }
    for value in outputs(backward) {
        results.push(second.value(&mut tracer.joint, value));
    }
    let output = tracer.joint.push("output", Op::Output, "output");
    let list = tracer.joint.list(&results);
    let args = tracer.joint.push_values(&[list]);
    tracer.joint.node_mut(output).args = args;
    tracer.origins.push(None);
    Ok(Retraced { joint: tracer.joint, origins: tracer.origins })
}

/// What a graph returns.
fn outputs(graph: &Graph) -> Vec<Value> {
    let Some(output) = graph.output() else { return Vec::new() };
    match graph.args(output) {
        [Value::List(span)] => graph.values(*span).to_vec(),
        args => args.to_vec(),
    }
}

/// Backward's inputs and the forward values that they are: by name, and the states of random generators, which
/// are new in both, one after the other.
fn handed_over(forward: &Graph, backward: &Graph, saved: &[Value]) -> Vec<Option<NodeId>> {
    let saved: Vec<NodeId> = super::joint::nodes_of(saved).collect();
    let by_name: FxHashMap<&str, NodeId> = saved.iter().map(|&id| (forward.name(id), id)).collect();
    let mut states = saved.iter().copied().filter(|&id| {
        let parent = match forward.arg(id, 0) {
            Some(Value::Node(parent)) => forward.target(parent),
            _ => "",
        };
        parent.ends_with("run_and_save_rng_state")
    });
    let mut handed = vec![None; backward.len()];
    for id in backward.ids().filter(|&id| backward.node(id).op == Op::Placeholder) {
        let name = backward.name(id);
        handed[id.index()] = match name.starts_with("rng_state_output_") {
            true => states.next(),
            false => by_name.get(name).copied(),
        };
    }
    handed
}

/// The largest recorded storage of a graph.
fn last_storage(graph: &Graph) -> Option<u32> {
    let mut stack: Vec<Out> = graph.nodes().iter().map(|node| node.out).collect();
    let mut last = None;
    while let Some(out) = stack.pop() {
        match out {
            Out::Tensor(tensor) => last = last.max(graph.tensor(tensor).storage.map(|storage| storage.0)),
            Out::Tuple(span) | Out::Dict(span) => stack.extend(graph.outs(span)),
            _ => {}
        }
    }
    last
}

/// The storages that backward is given: they are forward's. The others are new ones.
fn kept_by_inputs(graph: &Graph) -> FxHashSet<u32> {
    let inputs = graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder);
    inputs.filter_map(|id| Some(graph.tensor_of(id)?.storage?.0)).collect()
}

struct Tracer<'a> {
    joint: Graph,
    origins: Vec<Option<(Side, NodeId)>>,
    suffixes: FxHashMap<String, u32>,
    strategy: &'a dyn Strategy,
}

impl Tracer<'_> {
    /// Appends a copy of a node.
    fn copy(&mut self, from: &mut Copier, id: NodeId) {
        let node = *from.graph.node(id);
        let name = self.fresh(from.graph.name(id));
        let target = match node.op {
            Op::Placeholder => name.clone(),
            _ => from.graph.target(id).to_string(),
        };
        let new = self.joint.push(&name, node.op, &target);
        let joint = &mut self.joint;
        let (args, kwargs) = (from.span(joint, node.args), from.span(joint, node.kwargs));
        let out = from.out(joint, node.out);
        let text =
            |joint: &mut Graph, field: Option<Str>| field.map(|text| joint.intern(from.graph.text(text)));
        let (stack, module, desc) =
            (text(joint, node.stack), text(joint, node.module), text(joint, node.desc));
        let mut tags = self.strategy.carried(&from.tags(joint, id));
        if node.op == Op::Call && tags.partitioner_tag.is_none() {
            let placement = match from.side {
                Side::Forward => Placement::Forward,
                Side::Backward => Placement::Backward,
            };
            tags.partitioner_tag = placement.name().map(|name| joint.intern(name));
        }
        let tags = joint.intern_tags(tags);
        *joint.node_mut(new) = Node { args, kwargs, out, tags, stack, module, desc, ..*joint.node(new) };
        from.position[id.index()] = Some(new);
        self.origins.push(Some((from.side, id)));
    }

    /// A name that no node has.
    fn fresh(&mut self, base: &str) -> String {
        if self.joint.find(base).is_none() {
            return base.to_string();
        }
        let count = self.suffixes.entry(base.to_string()).or_insert(0);
        loop {
            *count += 1;
            let name = format!("{base}_again_{count}");
            if self.joint.find(&name).is_none() {
                return name;
            }
        }
    }
}

/// Takes nodes over from one graph.
struct Copier<'a> {
    graph: &'a Graph,
    side: Side,
    position: Vec<Option<NodeId>>,
    /// The storages that stay, and the number that is added to the others.
    storages: Option<(FxHashSet<u32>, u32)>,
}

impl<'a> Copier<'a> {
    fn new(graph: &'a Graph, side: Side, storages: Option<(FxHashSet<u32>, u32)>) -> Copier<'a> {
        Copier { graph, side, position: vec![None; graph.len()], storages }
    }

    fn text(&self, joint: &mut Graph, text: Str) -> Str {
        joint.intern(self.graph.text(text))
    }

    fn value(&self, joint: &mut Graph, value: Value) -> Value {
        match value {
            Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Dtype(_) => value,
            Value::Node(id) => match self.position.get(id.index()).copied().flatten() {
                Some(id) => Value::Node(id),
                None => Value::Dangling(self.text(joint, self.graph.node(id).name)),
            },
            Value::Str(text) => Value::Str(self.text(joint, text)),
            Value::Dangling(text) => Value::Dangling(self.text(joint, text)),
            Value::Device(text) => Value::Device(self.text(joint, text)),
            Value::MemoryFormat(text) => Value::MemoryFormat(self.text(joint, text)),
            Value::Layout(text) => Value::Layout(self.text(joint, text)),
            Value::Function(text) => Value::Function(self.text(joint, text)),
            Value::Symbolic(expr) => Value::Symbolic(self.expr(joint, expr)),
            Value::List(span) => Value::List(self.span(joint, span)),
            Value::Complex(span) => Value::Complex(self.span(joint, span)),
            Value::Slice(span) => Value::Slice(self.span(joint, span)),
            Value::Dict(span) => Value::Dict(self.span(joint, span)),
        }
    }

    fn span(&self, joint: &mut Graph, span: Span) -> Span {
        let values: Vec<Value> =
            self.graph.values(span).iter().map(|&value| self.value(joint, value)).collect();
        joint.push_values(&values)
    }

    fn expr(&self, joint: &mut Graph, expr: ExprId) -> ExprId {
        let Expr { text, hint } = self.graph.expr(expr);
        let text = self.text(joint, text);
        joint.intern_expr(Expr { text, hint })
    }

    fn dims(&self, joint: &mut Graph, dims: DimsId) -> DimsId {
        let dims: Vec<Dim> = self.graph.dims(dims).iter().map(|&dim| self.dim(joint, dim)).collect();
        joint.intern_dims(&dims)
    }

    fn dim(&self, joint: &mut Graph, dim: Dim) -> Dim {
        match dim {
            Dim::Static(_) => dim,
            Dim::Symbolic(expr) => Dim::Symbolic(self.expr(joint, expr)),
        }
    }

    fn out(&self, joint: &mut Graph, out: Out) -> Out {
        match out {
            Out::Absent | Out::None | Out::Int(_) => out,
            Out::SymInt(expr) => Out::SymInt(self.expr(joint, expr)),
            Out::SymBool(expr) => Out::SymBool(self.expr(joint, expr)),
            Out::Other(text) => Out::Other(self.text(joint, text)),
            Out::Key(text) => Out::Key(self.text(joint, text)),
            Out::Tuple(span) => Out::Tuple(self.outs(joint, span)),
            Out::Dict(span) => Out::Dict(self.outs(joint, span)),
            Out::Tensor(tensor) => {
                let mut tensor = *self.graph.tensor(tensor);
                tensor.shape = self.dims(joint, tensor.shape);
                tensor.stride = self.dims(joint, tensor.stride);
                tensor.device = self.text(joint, tensor.device);
                tensor.storage_bytes = tensor.storage_bytes.map(|bytes| self.dim(joint, bytes));
                if let (Some(StorageId(id)), Some((kept, above))) = (tensor.storage, &self.storages)
                    && !kept.contains(&id)
                {
                    tensor.storage = Some(StorageId(id.saturating_add(*above)));
                }
                Out::Tensor(joint.push_tensor(tensor))
            }
        }
    }

    fn outs(&self, joint: &mut Graph, span: Span) -> Span {
        let outs: Vec<Out> = self.graph.outs(span).iter().map(|&out| self.out(joint, out)).collect();
        joint.push_outs(&outs)
    }

    /// The tags that `id` is traced with: of a result those of the operator that gives it.
    fn tags(&self, joint: &mut Graph, id: NodeId) -> Tags {
        let mut at = id;
        while let (true, Some(Value::Node(parent))) = (self.is_getitem(at), self.graph.arg(at, 0))
            && self.graph.node(parent).op == Op::Call
            && parent < at
        {
            at = parent;
        }
        let mut tags = self.graph.tags(at).cloned().unwrap_or_default();
        for field in [&mut tags.recompute, &mut tags.partitioner_tag, &mut tags.custom, &mut tags.extra] {
            *field = field.map(|text| joint.intern(self.graph.text(text)));
        }
        tags
    }

    fn is_getitem(&self, id: NodeId) -> bool {
        self.graph.node(id).op == Op::Call
            && matches!(self.graph.target(id), "operator.getitem" | "_operator.getitem")
    }
}
