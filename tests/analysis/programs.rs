//! Random programs with views, writes, collectives and unknown operators, as a graph and as a slow model of what
//! each node does to which elements of which storage.

use super::model::{Model, Shown};
use graph_oracle::graph::{Dtype, Graph, NodeId, Op, Out, Value};
use proptest::prelude::*;

/// One step of a plan. Numbers choose among what there is by then.
#[derive(Clone, Debug)]
pub enum Step {
    Input,
    Empty(usize),
    Relu(usize),
    Add(usize, usize),
    Slice(usize, bool, usize, usize),
    Select(usize, bool, usize),
    Transpose(usize),
    Flatten(usize),
    Split(usize, bool, usize),
    Copy(usize, usize),
    AddInPlace(usize, usize),
    Zero(usize),
    ForeachCopy(usize, usize),
    Gather(usize),
    ReduceInPlace(usize),
    Wait(usize),
    Unknown(usize, usize),
    Rand(usize),
    Assert,
    Both(usize, usize),
}

pub fn plan() -> impl Strategy<Value = Vec<Step>> {
    use Step::*;
    let n = 0usize..64;
    let step = prop_oneof![
        1 => Just(Input),
        1 => n.clone().prop_map(Empty),
        2 => n.clone().prop_map(Relu),
        2 => (n.clone(), n.clone()).prop_map(|(a, b)| Add(a, b)),
        3 => (n.clone(), any::<bool>(), 0usize..4, 1usize..4).prop_map(|(a, d, s, l)| Slice(a, d, s, l)),
        1 => (n.clone(), any::<bool>(), 0usize..4).prop_map(|(a, d, i)| Select(a, d, i)),
        1 => n.clone().prop_map(Transpose),
        2 => n.clone().prop_map(Flatten),
        2 => (n.clone(), any::<bool>(), 1usize..3).prop_map(|(a, d, k)| Split(a, d, k)),
        4 => (n.clone(), n.clone()).prop_map(|(a, b)| Copy(a, b)),
        2 => (n.clone(), n.clone()).prop_map(|(a, b)| AddInPlace(a, b)),
        2 => n.clone().prop_map(Zero),
        1 => (n.clone(), n.clone()).prop_map(|(a, b)| ForeachCopy(a, b)),
        2 => n.clone().prop_map(Gather),
        1 => n.clone().prop_map(ReduceInPlace),
        3 => n.clone().prop_map(Wait),
        1 => (n.clone(), n.clone()).prop_map(|(a, b)| Unknown(a, b)),
        1 => n.clone().prop_map(Rand),
        1 => Just(Assert),
        1 => (n.clone(), n).prop_map(|(a, b)| Both(a, b)),
    ];
    prop::collection::vec(step, 1..28)
}

/// What a plan becomes.
pub struct Program {
    pub graph: Graph,
    pub model: Model,
}

struct Builder {
    graph: Graph,
    model: Model,
    /// Tensors of one place: (node, sizes, strides).
    tensors: Vec<(NodeId, Vec<i64>, Vec<i64>)>,
    /// Collectives and what waits for them showed.
    launches: Vec<NodeId>,
}

pub fn build(plan: &[Step]) -> Program {
    let mut builder = Builder {
        graph: Graph::new("program"),
        model: Model::default(),
        tensors: Vec::new(),
        launches: Vec::new(),
    };
    builder.input(&[4, 4]);
    builder.input(&[4, 4]);
    plan.iter().for_each(|step| builder.step(step));
    let all: Vec<Value> = builder.tensors.iter().step_by(3).map(|t| Value::Node(t.0)).collect();
    let nodes: Vec<NodeId> = builder.tensors.iter().step_by(3).map(|t| t.0).collect();
    let output = builder.graph.push("output", Op::Output, "output");
    let list = builder.graph.list(&all);
    builder.graph.node_mut(output).args = builder.graph.push_values(&[list]);
    builder.model.node(output, &nodes);
    nodes.iter().for_each(|&node| builder.model.read(output, node));
    Program { graph: builder.graph, model: builder.model }
}

fn row_major(sizes: &[i64]) -> Vec<i64> {
    graph_oracle::graph::contiguous_strides(sizes)
}

fn numel(sizes: &[i64]) -> usize {
    sizes.iter().product::<i64>() as usize
}

impl Builder {
    fn name(&self) -> String {
        format!("n{}", self.graph.len())
    }

    fn out(&mut self, sizes: &[i64], strides: &[i64]) -> Out {
        let device = self.graph.intern("cpu");
        let out = self.graph.contiguous(sizes, Dtype::F32, device);
        if let Out::Tensor(tensor) = out {
            let stride = self.graph.intern_sizes(strides);
            self.graph.tensor_mut(tensor).stride = stride;
        }
        out
    }

    fn input(&mut self, sizes: &[i64]) {
        let name = self.name();
        let id = self.graph.push(&name, Op::Placeholder, &name);
        let out = self.out(sizes, &row_major(sizes));
        self.graph.node_mut(id).out = out;
        self.model.node(id, &[]);
        self.model.fresh(id, numel(sizes));
        self.tensors.push((id, sizes.to_vec(), row_major(sizes)));
    }

    fn call(
        &mut self,
        target: &str,
        args: &[Value],
        inputs: &[NodeId],
        out: Option<(&[i64], &[i64])>,
    ) -> NodeId {
        let name = self.name();
        let id = self.graph.push(&name, Op::Call, target);
        let args = self.graph.push_values(args);
        let out = match out {
            Some((sizes, strides)) => self.out(sizes, strides),
            None => Out::None,
        };
        let node = self.graph.node_mut(id);
        (node.args, node.out) = (args, out);
        self.model.node(id, inputs);
        id
    }

    fn pick(&self, choice: usize) -> (NodeId, Vec<i64>, Vec<i64>) {
        self.tensors[choice % self.tensors.len()].clone()
    }

    /// A tensor of the same sizes as `like`, `like` itself if there is no other.
    fn fitting(&self, choice: usize, like: &(NodeId, Vec<i64>, Vec<i64>)) -> NodeId {
        let same: Vec<NodeId> = self.tensors.iter().filter(|t| t.1 == like.1).map(|t| t.0).collect();
        same[choice % same.len()]
    }

    fn fresh(&mut self, target: &str, args: &[Value], reads: &[NodeId], sizes: &[i64]) -> NodeId {
        let strides = row_major(sizes);
        let id = self.call(target, args, reads, Some((sizes, &strides)));
        reads.iter().for_each(|&input| self.model.read(id, input));
        self.model.fresh(id, numel(sizes));
        self.tensors.push((id, sizes.to_vec(), strides));
        id
    }

    /// A view that keeps the elements for which `keep` holds of their indices, in order.
    fn view(
        &mut self,
        target: &str,
        args: &[Value],
        of: NodeId,
        (sizes, strides): (&[i64], &[i64]),
        elements: impl Fn(&[usize]) -> Vec<usize>,
    ) {
        let id = self.call(target, args, &[of], Some((sizes, strides)));
        let shown = self.model.shown(of);
        self.model.show(id, shown.iter().map(|s| s.select(&elements)).collect());
        self.tensors.push((id, sizes.to_vec(), strides.to_vec()));
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Input => self.input(&[4, 4]),
            Step::Empty(k) => {
                let sizes = if k % 2 == 0 { vec![4, 4] } else { vec![2, 4] };
                let list = self.graph.int_list(&sizes);
                self.fresh("aten.empty.memory_format", &[list], &[], &sizes);
            }
            Step::Relu(a) => {
                let (a, sizes, _) = self.pick(a);
                self.fresh("aten.relu.default", &[Value::Node(a)], &[a], &sizes);
            }
            Step::Add(a, b) => {
                let of = self.pick(a);
                let b = self.fitting(b, &of);
                self.fresh(
                    "aten.add.Tensor",
                    &[Value::Node(of.0), Value::Node(b)],
                    &[of.0, b],
                    &of.1.clone(),
                );
            }
            Step::Slice(a, second, start, length) => {
                let (of, mut sizes, strides) = self.pick(a);
                let dim = usize::from(second && sizes.len() > 1);
                let size = sizes[dim] as usize;
                let (start, end) = (start.min(size), (start + length).min(size).max(start.min(size)));
                let old = sizes.clone();
                sizes[dim] = (end - start) as i64;
                let args = [
                    Value::Node(of),
                    Value::Int(dim as i64),
                    Value::Int(start as i64),
                    Value::Int(end as i64),
                ];
                self.view("aten.slice.Tensor", &args, of, (&sizes, &strides), |p| {
                    along(p, &old, dim, |i| i >= start && i < end)
                });
            }
            Step::Select(a, second, index) => {
                let (of, mut sizes, mut strides) = self.pick(a);
                let dim = usize::from(second && sizes.len() > 1);
                if sizes.len() < 2 || sizes[dim] == 0 {
                    return;
                }
                let index = index % sizes[dim] as usize;
                let old = sizes.clone();
                sizes.remove(dim);
                strides.remove(dim);
                let args = [Value::Node(of), Value::Int(dim as i64), Value::Int(index as i64)];
                self.view("aten.select.int", &args, of, (&sizes, &strides), |p| {
                    along(p, &old, dim, |i| i == index)
                });
            }
            Step::Transpose(a) => {
                let (of, sizes, strides) = self.pick(a);
                if let ([n, m], [s, t]) = (&sizes[..], &strides[..]) {
                    let (rows, columns) = (*n as usize, *m as usize);
                    self.view("aten.t.default", &[Value::Node(of)], of, (&[*m, *n], &[*t, *s]), |p| {
                        (0..columns)
                            .flat_map(|j| (0..rows).map(move |i| (i, j)))
                            .map(|(i, j)| p[i * columns + j])
                            .collect()
                    });
                }
            }
            Step::Flatten(a) => {
                let (of, sizes, strides) = self.pick(a);
                if sizes.len() != 2 || sizes.iter().any(|&n| n < 2) {
                    return;
                }
                let args = [Value::Node(of), self.graph.int_list(&[-1])];
                let n = numel(&sizes) as i64;
                if strides[0] == sizes[1] * strides[1] {
                    self.view("aten.reshape.default", &args, of, (&[n], &[strides[1]]), <[usize]>::to_vec);
                } else {
                    // Only a copy can show these in one row.
                    self.fresh("aten.reshape.default", &args, &[of], &[n]);
                }
            }
            Step::Split(a, second, piece) => self.split(a, second, piece),
            Step::Copy(a, b) => {
                let of = self.pick(a);
                let from = self.fitting(b, &of);
                self.in_place("aten.copy_.default", &of, &[from], false);
            }
            Step::AddInPlace(a, b) => {
                let of = self.pick(a);
                let with = self.fitting(b, &of);
                self.in_place("aten.add_.Tensor", &of, &[with], true);
            }
            Step::Zero(a) => {
                let of = self.pick(a);
                self.in_place("aten.zero_.default", &of, &[], false);
            }
            Step::ForeachCopy(a, b) => {
                let (x, y) = (self.pick(a), self.pick(b));
                let (from_x, from_y) = (self.fitting(b, &x), self.fitting(a, &y));
                let into = self.graph.list(&[Value::Node(x.0), Value::Node(y.0)]);
                let from = self.graph.list(&[Value::Node(from_x), Value::Node(from_y)]);
                let inputs = [x.0, y.0, from_x, from_y];
                let id = self.call("aten._foreach_copy_.default", &[into, from], &inputs, None);
                [from_x, from_y].iter().for_each(|&v| self.model.read(id, v));
                [x.0, y.0].iter().for_each(|&v| self.model.write(id, v, true));
            }
            Step::Gather(a) => {
                let (of, mut sizes, _) = self.pick(a);
                sizes[0] *= 2;
                let group = self.graph.intern("dp");
                let args = [Value::Node(of), Value::Int(2), Value::Str(group)];
                let id = self.fresh("_c10d_functional.all_gather_into_tensor.default", &args, &[of], &sizes);
                self.tensors.pop();
                self.model.launch(id, of);
                self.launches.push(id);
            }
            Step::ReduceInPlace(a) => {
                let of = self.pick(a);
                let (sum, group) = (self.graph.intern("sum"), self.graph.intern("dp"));
                let args = [Value::Node(of.0), Value::Str(sum), Value::Str(group)];
                let target = "_c10d_functional.all_reduce_.default";
                let id = self.call(target, &args, &[of.0], Some((&of.1, &of.2)));
                self.model.read(id, of.0);
                self.model.write(id, of.0, true);
                self.model.show(id, self.model.shown(of.0));
                self.model.launch(id, of.0);
                self.launches.push(id);
            }
            Step::Wait(a) => {
                let Some(&launch) = self.launches.get(a % self.launches.len().max(1)) else { return };
                let tensor = *self.graph.tensor_of(launch).unwrap();
                let sizes = self.graph.sizes(tensor.shape).unwrap();
                let strides = self.graph.sizes(tensor.stride).unwrap();
                let target = "_c10d_functional.wait_tensor.default";
                let id = self.call(target, &[Value::Node(launch)], &[launch], Some((&sizes, &strides)));
                self.model.wait(id, launch);
                self.model.show(id, self.model.shown(launch));
                self.tensors.push((id, sizes, strides));
            }
            Step::Unknown(a, b) => {
                let (x, y) = (self.pick(a), self.pick(b));
                let args = [Value::Node(x.0), Value::Node(y.0)];
                let strides = row_major(&x.1);
                let id = self.call("mystery.op.default", &args, &[x.0, y.0], Some((&x.1, &strides)));
                self.model.unknown(id, &[x.0, y.0], numel(&x.1));
                self.tensors.push((id, x.1, strides));
            }
            Step::Rand(a) => {
                let (of, sizes, _) = self.pick(a);
                let strides = row_major(&sizes);
                let id =
                    self.call("aten.rand_like.default", &[Value::Node(of)], &[of], Some((&sizes, &strides)));
                self.model.fresh(id, numel(&sizes));
                // No number is drawn for a tensor without elements.
                if numel(&sizes) > 0 {
                    self.model.random.push((id, true));
                }
                self.tensors.push((id, sizes, strides));
            }
            Step::Assert => {
                let message = self.graph.intern("message");
                let id = self.call(
                    "aten._assert_scalar.default",
                    &[Value::Bool(true), Value::Str(message)],
                    &[],
                    None,
                );
                self.model.asserts.push(id);
            }
            Step::Both(a, b) => {
                let (x, y) = (self.pick(a), self.pick(b));
                let list = self.graph.list(&[Value::Node(x.0), Value::Node(y.0)]);
                let target = "higher_order.flex_attention";
                let strides = row_major(&x.1);
                let id = self.call(target, &[list], &[x.0, y.0], Some((&x.1, &strides)));
                [x.0, y.0].iter().for_each(|&input| self.model.read(id, input));
                self.model.fresh(id, numel(&x.1));
                self.tensors.push((id, x.1, strides));
            }
        }
    }

    fn in_place(
        &mut self,
        target: &str,
        of: &(NodeId, Vec<i64>, Vec<i64>),
        reads: &[NodeId],
        reads_old: bool,
    ) {
        let mut args = vec![Value::Node(of.0)];
        args.extend(reads.iter().map(|&r| Value::Node(r)));
        let inputs: Vec<NodeId> = std::iter::once(of.0).chain(reads.iter().copied()).collect();
        let id = self.call(target, &args, &inputs, Some((&of.1, &of.2)));
        if reads_old {
            self.model.read(id, of.0);
        }
        reads.iter().for_each(|&r| self.model.read(id, r));
        self.model.write(id, of.0, true);
        self.model.show(id, self.model.shown(of.0));
        self.tensors.push((id, of.1.clone(), of.2.clone()));
    }

    fn split(&mut self, a: usize, second: bool, piece: usize) {
        let (of, sizes, strides) = self.pick(a);
        let dim = usize::from(second && sizes.len() > 1);
        let size = sizes[dim] as usize;
        if size == 0 {
            return;
        }
        let args = [Value::Node(of), Value::Int(piece as i64), Value::Int(dim as i64)];
        let id = self.call("aten.split.Tensor", &args, &[of], None);
        let count = size.div_ceil(piece);
        let bounds: Vec<(usize, usize)> =
            (0..count).map(|i| (i * piece, ((i + 1) * piece).min(size))).collect();
        let mut outs = Vec::new();
        let mut shown: Vec<Vec<Shown>> = Vec::new();
        for &(from, to) in &bounds {
            let mut part = sizes.clone();
            part[dim] = (to - from) as i64;
            outs.push(self.out(&part, &strides));
            let select = |p: &[usize]| along(p, &sizes, dim, |i| i >= from && i < to);
            shown.push(self.model.shown(of).iter().map(|s| s.select(&select)).collect());
        }
        self.graph.node_mut(id).out = Out::Tuple(self.graph.push_outs(&outs));
        self.model.show_many(id, shown.clone());
        for (i, (out, shown)) in outs.into_iter().zip(shown).enumerate() {
            let item = self.call("operator.getitem", &[Value::Node(id), Value::Int(i as i64)], &[id], None);
            self.graph.node_mut(item).out = out;
            self.model.show(item, shown);
            let mut part = sizes.clone();
            part[dim] = (bounds[i].1 - bounds[i].0) as i64;
            self.tensors.push((item, part, strides.clone()));
        }
    }
}

/// The elements of a row-major list of `sizes` whose index along `dim` is kept.
fn along(elements: &[usize], sizes: &[i64], dim: usize, keep: impl Fn(usize) -> bool) -> Vec<usize> {
    let inner: usize = numel(&sizes[dim + 1..]);
    let size = sizes[dim] as usize;
    let kept = elements.iter().enumerate().filter(|(i, _)| keep((i / inner.max(1)) % size.max(1)));
    kept.map(|(_, &e)| e).collect()
}
