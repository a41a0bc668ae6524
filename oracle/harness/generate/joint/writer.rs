//! Writing the nodes of a joint graph. Results are stated by whoever writes; tests check them against the operators'
//! shape rules.

use crate::graph::{
    Dim, Dtype, Expr, Graph, Node, NodeId, Op, Out, Str, Tags, TagsId, Tensor, Value, World,
    contiguous_strides,
};

/// A tensor that steps work with: two-dimensional and contiguous.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Var {
    pub node: NodeId,
    pub rows: Dim,
    pub cols: i64,
}

/// Which region nodes are tagged with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Region {
    Forward,
    Backward,
    MustForward,
    MustBackward,
}

pub(super) struct Writer {
    pub graph: Graph,
    pub region: Region,
    /// Primals, in order.
    pub primals: Vec<NodeId>,
    /// Tangents, in order.
    pub tangents: Vec<NodeId>,
    /// All other nodes, in order.
    pub calls: Vec<NodeId>,
    device: Str,
    count: u32,
}

/// The text of a dtype constant's tensor meta: strides of a contiguous shape whose sizes but the first are known.
fn contiguous(dims: &[Dim]) -> Vec<Dim> {
    let sizes: Vec<i64> = dims.iter().map(|dim| dim.known().unwrap_or(1)).collect();
    contiguous_strides(&sizes).into_iter().map(Dim::Static).collect()
}

impl Writer {
    pub fn new(world: World) -> Writer {
        let mut graph = Graph::new("joint");
        graph.kind = "joint".into();
        graph.world = world;
        let device = graph.intern("cuda:0");
        Writer {
            graph,
            region: Region::Forward,
            primals: Vec::new(),
            tangents: Vec::new(),
            calls: Vec::new(),
            device,
            count: 0,
        }
    }

    /// A tensor result with these strides.
    pub fn strided(&mut self, dims: &[Dim], strides: &[Dim], offset: i64, dtype: Dtype) -> Out {
        let (shape, stride) = (self.graph.intern_dims(dims), self.graph.intern_dims(strides));
        let tensor = Tensor {
            shape,
            stride,
            dtype,
            requires_grad: None,
            device: self.device,
            storage: None,
            offset,
            storage_bytes: None,
            is_guessed: false,
        };
        Out::Tensor(self.graph.push_tensor(tensor))
    }

    /// A contiguous tensor result.
    pub fn tensor(&mut self, dims: &[Dim], dtype: Dtype) -> Out {
        self.strided(dims, &contiguous(dims), 0, dtype)
    }

    /// A symbol as a size.
    pub fn symbol(&mut self, name: &str, hint: i64) -> Dim {
        let text = self.graph.intern(name);
        Dim::Symbolic(self.graph.intern_expr(Expr { text, hint: Some(hint) }))
    }

    fn input(&mut self, name: &str, out: Out) -> NodeId {
        let id = self.graph.push(name, Op::Placeholder, name);
        self.graph.node_mut(id).out = out;
        id
    }

    pub fn primal(&mut self, out: Out) -> NodeId {
        let name = format!("primals_{}", self.primals.len() + 1);
        let id = self.input(&name, out);
        self.primals.push(id);
        id
    }

    pub fn tangent(&mut self, out: Out) -> NodeId {
        let name = format!("tangents_{}", self.tangents.len() + 1);
        let id = self.input(&name, out);
        self.tangents.push(id);
        id
    }

    pub fn constant(&mut self, out: Out) -> NodeId {
        let name = format!("constant_{}", self.count);
        self.count += 1;
        let id = self.graph.push(&name, Op::GetAttr, &name);
        self.graph.node_mut(id).out = out;
        self.calls.push(id);
        id
    }

    /// Appends a call; its name is made from the operator's.
    pub fn call(&mut self, target: &str, args: &[Value], out: Out) -> NodeId {
        self.call_with(target, args, &[], out)
    }

    pub fn call_with(&mut self, target: &str, args: &[Value], kwargs: &[(&str, Value)], out: Out) -> NodeId {
        let words: Vec<&str> = target.split('.').collect();
        let base = words.get(1).copied().unwrap_or("call").trim_end_matches('_');
        let name = format!("{base}_{}", self.count);
        self.count += 1;
        let args = self.graph.push_values(args);
        let mut pairs = Vec::new();
        for &(key, value) in kwargs {
            pairs.extend([Value::Str(self.graph.intern(key)), value]);
        }
        let kwargs = self.graph.push_values(&pairs);
        let (name, target) = (self.graph.intern(&name), self.graph.intern_target(target));
        let tags = self.region_tags();
        let id = self.graph.push_node(Node { args, kwargs, out, tags, ..Node::new(name, Op::Call, target) });
        self.calls.push(id);
        id
    }

    fn region_tags(&mut self) -> Option<TagsId> {
        let text = match self.region {
            Region::Forward => "is_forward",
            Region::Backward => "is_backward",
            Region::MustForward => "must_be_in_forward",
            Region::MustBackward => "must_be_in_backward",
        };
        let partitioner_tag = Some(self.graph.intern(text));
        self.graph.intern_tags(Tags { partitioner_tag, ..Tags::default() })
    }

    /// Changes the tags of a node.
    pub fn retag(&mut self, id: NodeId, change: impl FnOnce(&mut Graph, &mut Tags)) {
        let mut tags = self.graph.tags(id).cloned().unwrap_or_default();
        change(&mut self.graph, &mut tags);
        let tags = self.graph.intern_tags(tags);
        self.graph.node_mut(id).tags = tags;
    }

    pub fn dims(var: Var) -> [Dim; 2] {
        [var.rows, Dim::Static(var.cols)]
    }

    /// A call that gives a tensor like `like`.
    pub fn like(&mut self, target: &str, args: &[Value], like: Var) -> Var {
        let out = self.tensor(&Writer::dims(like), Dtype::F32);
        Var { node: self.call(target, args, out), ..like }
    }

    /// A call that gives a new contiguous matrix of floats.
    pub fn matrix(&mut self, target: &str, args: &[Value], rows: Dim, cols: i64) -> Var {
        let out = self.tensor(&[rows, Dim::Static(cols)], Dtype::F32);
        Var { node: self.call(target, args, out), rows, cols }
    }

    /// The transposed view of a matrix.
    pub fn transposed(&mut self, var: Var) -> NodeId {
        let out = self.strided(
            &[Dim::Static(var.cols), var.rows],
            &[Dim::Static(1), Dim::Static(var.cols)],
            0,
            Dtype::F32,
        );
        let order = self.graph.int_list(&[1, 0]);
        self.call("aten.permute.default", &[Value::Node(var.node), order], out)
    }

    pub fn wait(&mut self, node: NodeId, rows: Dim, cols: i64, dtype: Dtype) -> NodeId {
        let out = self.tensor(&[rows, Dim::Static(cols)], dtype);
        self.call("_c10d_functional.wait_tensor.default", &[Value::Node(node)], out)
    }

    pub fn cast(&mut self, node: NodeId, rows: i64, cols: i64, dtype: Dtype) -> NodeId {
        let out = self.tensor(&[Dim::Static(rows), Dim::Static(cols)], dtype);
        self.call("prims.convert_element_type.default", &[Value::Node(node), Value::Dtype(dtype)], out)
    }

    /// Item `index` of a tuple, the strided piece of `width` columns of a matrix.
    pub fn item(&mut self, tuple: NodeId, index: i64, out: Out) -> NodeId {
        self.call("operator.getitem", &[Value::Node(tuple), Value::Int(index)], out)
    }

    /// Ends the graph: primals, tangents, everything else, the output.
    pub fn finish(mut self, outputs: &[Value]) -> Graph {
        let list = self.graph.list(outputs);
        let args = self.graph.push_values(&[list]);
        let output = self.graph.push("output", Op::Output, "output");
        self.graph.node_mut(output).args = args;
        let order: Vec<NodeId> =
            self.primals.into_iter().chain(self.tangents).chain(self.calls).chain([output]).collect();
        self.graph.reordered(&order)
    }
}
