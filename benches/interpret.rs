//! What executing a graph costs: `cargo bench --bench interpret`.
//!
//! A graph of 50 nodes on 4 ranks, as a fuzzing campaign makes them: elementwise operators, views, casts, a matrix
//! product, gathers, reductions and their waits over small tensors. Making the graph ready and running it are
//! measured apart, and together as a case needs them (two graphs, both run, results compared).

use criterion::{Criterion, criterion_group, criterion_main};
use graph_oracle::graph::{Dtype, Graph, Group, NodeId, Op, Value, World};
use graph_oracle::ops::Ops;
use graph_oracle::semantics::{Concrete, Domain, Fingerprints, Options, Program, compare, run};
use std::hint::black_box;

const RANKS: u32 = 4;

struct Builder(Graph);

impl Builder {
    fn input(&mut self, name: &str, dtype: Dtype, shape: &[i64]) -> NodeId {
        let id = self.0.push(name, Op::Placeholder, name);
        let device = self.0.intern("cpu");
        let out = self.0.contiguous(shape, dtype, device);
        self.0.node_mut(id).out = out;
        id
    }

    fn call(&mut self, target: &str, args: &[Value]) -> NodeId {
        let name = format!("n{}", self.0.len());
        let id = self.0.push(&name, Op::Call, target);
        let args = self.0.push_values(args);
        self.0.node_mut(id).args = args;
        id
    }

    fn collective(&mut self, target: &str, before: &[Value]) -> NodeId {
        let group = Value::Str(self.0.intern("dp"));
        let args = [before, &[group]].concat();
        let start = self.call(target, &args);
        self.call("_c10d_functional.wait_tensor.default", &[Value::Node(start)])
    }
}

/// 50 nodes: three layers of a sharded network, forwards, with reduced gradients at the end.
fn graph() -> Graph {
    let mut b = Builder(Graph::new("fifty"));
    let node = Value::Node;
    let x = b.input("x", Dtype::F32, &[4, 8]);
    let weights: Vec<NodeId> = (0..3).map(|i| b.input(&format!("w{i}"), Dtype::F32, &[2, 8])).collect();
    let sum = Value::Str(b.0.intern("sum"));
    let ranks = Value::Int(i64::from(RANKS));
    let mut at = b.call("prims.convert_element_type.default", &[node(x), Value::Dtype(Dtype::BF16)]);
    let mut grads = Vec::new();
    for &weight in &weights {
        let half = b.call("prims.convert_element_type.default", &[node(weight), Value::Dtype(Dtype::BF16)]);
        let full = b.collective("_c10d_functional.all_gather_into_tensor.default", &[node(half), ranks]);
        let turned = b.call("aten.t.default", &[node(full)]);
        let product = b.call("aten.mm.default", &[node(at), node(turned)]);
        let added = b.call("aten.add.Tensor", &[node(product), node(at)]);
        let (split, flat) = (sizes(&mut b.0, &[2, 2, 8]), sizes(&mut b.0, &[4, 8]));
        let shown = b.call("aten.view.default", &[node(added), split]);
        let kept = b.call("aten.relu.default", &[node(shown)]);
        let scaled = b.call("aten.mul.Tensor", &[node(kept), Value::Float(0.5)]);
        at = b.call("aten.view.default", &[node(scaled), flat]);
        let grad = b.call("aten.mm.default", &[node(turned), node(full)]);
        grads.push(b.call("prims.convert_element_type.default", &[node(grad), Value::Dtype(Dtype::F32)]));
    }
    let mut outs = vec![node(at)];
    for grad in grads {
        let reduced =
            b.collective("_c10d_functional.reduce_scatter_tensor.default", &[node(grad), sum, ranks]);
        outs.push(node(reduced));
    }
    let all = b.collective("_c10d_functional.all_reduce.default", &[node(at), sum]);
    outs.push(node(all));
    let output = b.0.push("output", Op::Output, "output");
    let list = b.0.list(&outs);
    let args = b.0.push_values(&[list]);
    b.0.node_mut(output).args = args;
    b.0
}

fn sizes(graph: &mut Graph, ints: &[i64]) -> Value {
    graph.int_list(ints)
}

fn measure<D: Domain>(c: &mut Criterion, domain: &D) {
    let graph = graph();
    assert_eq!(graph.len(), 50);
    let group =
        Group { name: "dp".into(), size: RANKS, recorded_rank: None, instances: vec![(0..RANKS).collect()] };
    let world = World { ranks: Some(RANKS), groups: vec![group] };
    let options = Options::default();
    let ops = Ops::of(&graph);
    let program = Program::new(&graph, &ops, &world).expect("the graph is well formed");
    let once = || run(std::slice::from_ref(&program), &world, domain, &options).expect("the graph runs");
    assert!(once().hazards.is_empty());
    let mut bench = c.benchmark_group(format!("interpret/50 nodes on 4 ranks/{}", domain.name()));
    bench.bench_function("run", |b| b.iter(|| black_box(once())));
    bench.bench_function("make ready", |b| {
        b.iter(|| {
            let ops = Ops::of(&graph);
            black_box(Program::new(&graph, &ops, &world).is_ok())
        });
    });
    bench.bench_function("two graphs made ready, run and compared", |b| {
        b.iter(|| {
            let side = || {
                let ops = Ops::of(&graph);
                let program = Program::new(&graph, &ops, &world).expect("well formed");
                run(&[program], &world, domain, &options).expect("runs")
            };
            black_box(compare(&side(), &side()).len())
        });
    });
    bench.finish();
}

fn interpret(c: &mut Criterion) {
    measure(c, &Concrete::default());
    measure(c, &Fingerprints::in_bits());
}

criterion_group!(benches, interpret);
criterion_main!(benches);
