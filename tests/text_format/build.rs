//! From a plan to the graph that it describes.

use super::cases::{PlainValue, PlanDim, PlanExpr, PlanGraph, PlanOut, PlanTensor, PlanValue};
use graph_oracle::graph::*;

/// Builds the graph of a plan.
struct Builder<'a> {
    graph: Graph,
    names: Vec<&'a str>,
}

impl Builder<'_> {
    /// A reference to the `index`-th name: text cannot tell nodes of one name apart, so the first one is meant.
    fn node(&self, index: usize) -> Option<NodeId> {
        let name = self.names.get(index.checked_rem(self.names.len())?)?;
        self.names.iter().position(|n| n == name).map(|i| NodeId(i as u32))
    }

    fn value(&mut self, plan: &PlanValue) -> Value {
        match plan {
            PlanValue::Plain(plain) => self.plain(plain),
            PlanValue::Node(index) => self.node(*index).map_or(Value::None, Value::Node),
            PlanValue::Dangling(name) => match self.names.iter().position(|n| n == name) {
                Some(i) => Value::Node(NodeId(i as u32)),
                None => Value::Dangling(self.graph.intern(name)),
            },
            PlanValue::List(items) => {
                let items = self.values(items);
                Value::List(self.graph.push_values(&items))
            }
            PlanValue::Slice(items) => {
                let items = self.values(items);
                Value::Slice(self.graph.push_values(&items))
            }
            PlanValue::Dict(pairs) => {
                let items: Vec<Value> =
                    pairs.iter().flat_map(|(k, v)| [self.value(k), self.value(v)]).collect();
                Value::Dict(self.graph.push_values(&items))
            }
            PlanValue::Symbolic(expr) => Value::Symbolic(self.expr(expr)),
        }
    }

    fn values(&mut self, plans: &[PlanValue]) -> Vec<Value> {
        plans.iter().map(|plan| self.value(plan)).collect()
    }

    fn plain(&mut self, plain: &PlainValue) -> Value {
        match plain {
            PlainValue::None => Value::None,
            PlainValue::Bool(b) => Value::Bool(*b),
            PlainValue::Int(n) => Value::Int(*n),
            PlainValue::Float(x) => Value::Float(*x),
            PlainValue::Complex(a, b) => {
                Value::Complex(self.graph.push_values(&[Value::Float(*a), Value::Float(*b)]))
            }
            PlainValue::Str(text) => Value::Str(self.graph.intern(text)),
            PlainValue::Dtype(dtype) => Value::Dtype(*dtype),
            PlainValue::Device(text) => Value::Device(self.graph.intern(text)),
            PlainValue::MemoryFormat(text) => Value::MemoryFormat(self.graph.intern(text)),
            PlainValue::Layout(text) => Value::Layout(self.graph.intern(text)),
            PlainValue::Function(text) => Value::Function(self.graph.intern(text)),
        }
    }

    fn expr(&mut self, (text, hint): &PlanExpr) -> ExprId {
        let text = self.graph.intern(text);
        self.graph.intern_expr(Expr { text, hint: *hint })
    }

    fn dim(&mut self, dim: &PlanDim) -> Dim {
        match dim {
            Ok(n) => Dim::Static(*n),
            Err(expr) => Dim::Symbolic(self.expr(expr)),
        }
    }

    fn tensor(&mut self, plan: &PlanTensor) -> Tensor {
        let shape: Vec<Dim> = plan.shape.iter().map(|d| self.dim(d)).collect();
        let sizes: Option<Vec<i64>> = plan.shape.iter().map(|d| d.as_ref().ok().copied()).collect();
        let stride: Vec<Dim> = match (&plan.stride, sizes) {
            (Some(stride), _) => stride[..shape.len()].iter().map(|d| self.dim(d)).collect(),
            (None, Some(sizes)) => contiguous_strides(&sizes).into_iter().map(Dim::Static).collect(),
            (None, None) => shape.clone(),
        };
        let known = sizes_bytes(&plan.shape, plan.dtype);
        let storage_bytes = match &plan.bytes {
            Some(bytes) => bytes.as_ref().map(|d| self.dim(d)),
            None => plan.storage.and(known).map(Dim::Static),
        };
        Tensor {
            shape: self.graph.intern_dims(&shape),
            stride: self.graph.intern_dims(&stride),
            dtype: plan.dtype,
            requires_grad: plan.grad,
            device: self.graph.intern(&plan.device),
            storage: plan.storage.map(StorageId),
            offset: plan.offset,
            storage_bytes,
            is_guessed: false,
        }
    }

    fn out(&mut self, plan: &PlanOut) -> Out {
        match plan {
            PlanOut::Absent => Out::Absent,
            PlanOut::None => Out::None,
            PlanOut::Tensor(tensor) => {
                let tensor = self.tensor(tensor);
                Out::Tensor(self.graph.push_tensor(tensor))
            }
            PlanOut::Int(n) => Out::Int(*n),
            PlanOut::SymInt(expr) => Out::SymInt(self.expr(expr)),
            PlanOut::SymBool(expr) => Out::SymBool(self.expr(expr)),
            PlanOut::Other(name) => Out::Other(self.graph.intern(name)),
            PlanOut::Tuple(parts) => {
                let parts: Vec<Out> = parts.iter().map(|part| self.out(part)).collect();
                Out::Tuple(self.graph.push_outs(&parts))
            }
            PlanOut::Dict(pairs) => {
                let parts: Vec<Out> =
                    pairs.iter().flat_map(|(k, v)| [Out::Key(self.graph.intern(k)), self.out(v)]).collect();
                Out::Dict(self.graph.push_outs(&parts))
            }
        }
    }

    fn text(&mut self, text: &Option<String>) -> Option<Str> {
        text.as_ref().map(|text| self.graph.intern(text))
    }
}

fn sizes_bytes(shape: &[PlanDim], dtype: Dtype) -> Option<i64> {
    let size = i64::from(dtype.itemsize());
    shape.iter().try_fold(size, |n, d| n.checked_mul(*d.as_ref().ok()?))
}

/// The graph of `plan`.
pub fn build(plan: &PlanGraph) -> Graph {
    let names = plan.nodes.iter().map(|n| n.name.as_str()).collect();
    let mut builder = Builder { graph: Graph::new(plan.name.clone()), names };
    builder.graph.kind = plan.kind.clone();
    builder.graph.world = plan.world.clone();
    builder.graph.symbols = plan.symbols.clone();
    for node in &plan.nodes {
        let args = builder.values(&node.args);
        let mut kwargs = Vec::new();
        for (key, value) in &node.kwargs {
            kwargs.extend([Value::Str(builder.graph.intern(key)), builder.value(value)]);
        }
        let args = builder.graph.push_values(&args);
        let kwargs = builder.graph.push_values(&kwargs);
        let out = builder.out(&node.out);
        let default = if node.op == Op::Output { "output" } else { &node.name };
        let target = node.target.as_deref().unwrap_or(default);
        let id = builder.graph.push(&node.name, node.op, target);
        let tags = node.tags.as_ref().and_then(|(texts, numbers)| {
            let tags = Tags {
                recompute: builder.text(&texts.0),
                partitioner_tag: builder.text(&texts.1),
                custom: builder.text(&texts.2),
                extra: builder.text(&texts.3),
                ac_graph_id: numbers.0,
                seq_nr: numbers.1,
                autograd_backward: numbers.2,
                is_gradient_acc: numbers.3,
            };
            builder.graph.intern_tags(tags)
        });
        let (module, desc) = (builder.text(&node.module), builder.text(&node.desc));
        let node = builder.graph.node_mut(id);
        (node.args, node.kwargs, node.out, node.tags) = (args, kwargs, out, tags);
        (node.module, node.desc) = (module, desc);
    }
    let count = plan.nodes.len();
    if count > 0 {
        for &(before, after) in &plan.ordering {
            let after = NodeId((after % count) as u32);
            let before = builder.node(before).unwrap();
            builder.graph.ordering.push(OrderingEdge { before, after });
        }
        for &(by, of) in &plan.renames {
            let (by, of) = (NodeId((by % count) as u32), builder.node(of).unwrap());
            builder.graph.renames.push(Rename { by, of });
        }
    }
    for (name, members) in &plan.clusters {
        let members = members.iter().filter_map(|&m| builder.node(m)).collect();
        builder.graph.clusters.push(Cluster { name: name.clone(), members });
    }
    builder.graph
}
