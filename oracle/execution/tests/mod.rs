//! Tests of the interpreter, by subject. [`Sketch`] writes graphs down.

mod bucketing;
mod collectives;
mod domains;
mod hazards;
mod movement;
mod peer;
mod pointwise;
mod real;
mod reductions;
mod running;

use super::*;
use crate::graph::{Dtype, Graph, Group, NodeId, Op, Out, Value, World};
use crate::ops::Ops;

/// A graph under construction, with its world and the contents of its inputs.
#[derive(Clone, Debug)]
pub struct Sketch {
    pub graph: Graph,
    pub world: World,
    pub given: Vec<Given>,
    pub options: Options,
}

/// An argument.
#[derive(Clone, Debug)]
pub enum Arg {
    None,
    Node(NodeId),
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(&'static str),
    Dtype(Dtype),
    Ints(Vec<i64>),
    Nodes(Vec<NodeId>),
    List(Vec<Arg>),
    Format(&'static str),
    Device(&'static str),
    /// The dtype of a node's recorded tensor.
    DtypeOf(NodeId),
}

macro_rules! args {
    ($($type:ty => $variant:ident),* $(,)?) => {$(
        impl From<$type> for Arg {
            fn from(value: $type) -> Arg {
                Arg::$variant(value)
            }
        }
    )*};
}

args! { NodeId => Node, i64 => Int, f64 => Float, bool => Bool, &'static str => Text, Dtype => Dtype,
Vec<i64> => Ints, Vec<NodeId> => Nodes, Vec<Arg> => List }

impl<const N: usize> From<[i64; N]> for Arg {
    fn from(value: [i64; N]) -> Arg {
        Arg::Ints(value.to_vec())
    }
}

impl<const N: usize> From<[NodeId; N]> for Arg {
    fn from(value: [NodeId; N]) -> Arg {
        Arg::Nodes(value.to_vec())
    }
}

/// A list of arguments of any type.
macro_rules! list {
    ($($arg:expr),* $(,)?) => { &[$($crate::tests::Arg::from($arg)),*][..] };
}
pub(crate) use list;

impl Sketch {
    /// An empty graph on `ranks` ranks, with the group `dp` of all of them.
    pub fn new(ranks: u32) -> Sketch {
        let group = Group {
            name: "dp".to_string(),
            size: ranks,
            recorded_rank: None,
            instances: vec![(0..ranks).collect()],
        };
        let world = World { ranks: Some(ranks), groups: vec![group] };
        Sketch { graph: Graph::new("sketch"), world, given: Vec::new(), options: Options::default() }
    }

    /// Adds a group.
    pub fn group(&mut self, name: &str, instances: &[&[u32]]) {
        self.world.groups.push(Group {
            name: name.to_string(),
            size: instances[0].len() as u32,
            recorded_rank: None,
            instances: instances.iter().map(|i| i.to_vec()).collect(),
        });
    }

    pub fn input(&mut self, name: &str, dtype: Dtype, shape: &[i64]) -> NodeId {
        let id = self.graph.push(name, Op::Placeholder, name);
        let device = self.graph.intern("cpu");
        let out = self.graph.contiguous(shape, dtype, device);
        self.graph.node_mut(id).out = out;
        id
    }

    /// An input with strides.
    pub fn strided(&mut self, name: &str, dtype: Dtype, shape: &[i64], strides: &[i64]) -> NodeId {
        let id = self.input(name, dtype, shape);
        let strides = self.graph.intern_sizes(strides);
        if let Out::Tensor(tensor) = self.graph.node(id).out {
            self.graph.tensor_mut(tensor).stride = strides;
        }
        id
    }

    /// Sets what an input holds on a rank.
    pub fn give(&mut self, name: &str, rank: u32, dtype: Dtype, values: &[f64]) {
        let cells = values.iter().map(|&x| Concrete::default().constant(Number::Float(x), dtype)).collect();
        self.given.push(Given { name: name.to_string(), rank: Some(rank), cells });
    }

    pub fn value(&mut self, arg: &Arg) -> Value {
        match arg {
            Arg::None => Value::None,
            Arg::Node(id) => Value::Node(*id),
            Arg::Int(n) => Value::Int(*n),
            Arg::Float(x) => Value::Float(*x),
            Arg::Bool(b) => Value::Bool(*b),
            Arg::Text(text) => Value::Str(self.graph.intern(text)),
            Arg::Format(text) => Value::MemoryFormat(self.graph.intern(text)),
            Arg::Device(text) => Value::Device(self.graph.intern(text)),
            Arg::DtypeOf(id) => self.graph.tensor_of(*id).map_or(Value::None, |t| Value::Dtype(t.dtype)),
            Arg::Dtype(dtype) => Value::Dtype(*dtype),
            Arg::Ints(ints) => self.graph.int_list(ints),
            Arg::Nodes(ids) => {
                let values: Vec<Value> = ids.iter().map(|&id| Value::Node(id)).collect();
                self.graph.list(&values)
            }
            Arg::List(args) => {
                let values: Vec<Value> = args.iter().map(|arg| self.value(arg)).collect();
                self.graph.list(&values)
            }
        }
    }

    pub fn call(&mut self, target: &str, args: &[Arg]) -> NodeId {
        self.call_with(target, args, &[])
    }

    pub fn call_with(&mut self, target: &str, args: &[Arg], kwargs: &[(&str, Arg)]) -> NodeId {
        let name = format!("n{}", self.graph.len());
        let id = self.graph.push(&name, Op::Call, target);
        let args: Vec<Value> = args.iter().map(|arg| self.value(arg)).collect();
        let span = self.graph.push_values(&args);
        let mut pairs = Vec::new();
        for (key, arg) in kwargs {
            let key = Value::Str(self.graph.intern(key));
            pairs.extend([key, self.value(arg)]);
        }
        let pairs = self.graph.push_values(&pairs);
        let node = self.graph.node_mut(id);
        (node.args, node.kwargs) = (span, pairs);
        id
    }

    /// Records what a node returns.
    pub fn record(&mut self, id: NodeId, dtype: Dtype, shape: &[i64]) {
        let device = self.graph.intern("cpu");
        let out = self.graph.contiguous(shape, dtype, device);
        self.graph.node_mut(id).out = out;
    }

    pub fn wait(&mut self, id: NodeId) -> NodeId {
        self.call("_c10d_functional.wait_tensor.default", list![id])
    }

    pub fn output(&mut self, nodes: &[NodeId]) {
        let id = self.graph.push("output", Op::Output, "output");
        let list = self.value(&Arg::Nodes(nodes.to_vec()));
        let span = self.graph.push_values(&[list]);
        self.graph.node_mut(id).args = span;
    }

    pub fn run(&self, domain: &dyn Domain) -> Result<Run, Failure> {
        let ops = Ops::of(&self.graph);
        let program = Program::new(&self.graph, &ops, &self.world)?;
        let options = Options { given: self.given.clone(), ..self.options.clone() };
        run(&[program], &self.world, domain, &options)
    }

    /// Runs over Numbers without large inputs.
    pub fn numbers(&self) -> Run {
        self.run(&Concrete { large_every: 0, ..Concrete::default() }).unwrap_or_else(|e| panic!("{e}"))
    }

    pub fn terms(&self) -> Run {
        self.run(&Fingerprints::in_bits()).unwrap_or_else(|e| panic!("{e}"))
    }
}

/// An output tensor.
pub fn tensor(run: &Run, rank: usize, output: usize) -> &TensorValue {
    match &run.ranks[rank].outputs[output].1 {
        Leaf::Tensor(tensor) => tensor,
        other => panic!("{other:?}"),
    }
}

/// The elements of an output as numbers; NaN for poison.
pub fn values(run: &Run, rank: usize, output: usize) -> Vec<f64> {
    floats(tensor(run, rank, output))
}

pub fn floats(tensor: &TensorValue) -> Vec<f64> {
    let poison = |i: usize| tensor.poison.get(i).copied().unwrap_or(false);
    let number = |cell| Concrete::default().number(cell, tensor.dtype).float();
    tensor.cells.iter().enumerate().map(|(i, &c)| if poison(i) { f64::NAN } else { number(c) }).collect()
}
