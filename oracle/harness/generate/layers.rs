//! Large graphs of known shape: a model of identical layers, trained step by step as data-parallel and tensor-parallel
//! systems do. Deterministic, and linear in the number of layers; for benches and scaling tests.

use super::blocks::{Saved, Sharded};
use super::builder::{Builder, Prefix};
use super::config::Config;
use super::keys::Key;
use super::pass::Plan;
use super::pool::Var;
use super::source::Source;
use super::target::Target;
use super::types::Type;
use super::world::blocks;
use crate::graph::{Dtype, Graph, Group, Out, Value, World};
use crate::ops::Collective;

/// A model of identical layers on a mesh of data-parallel, tensor-parallel and pipeline ranks.
///
/// A layer is a chain of pairs of products. The first weight of a pair is cut over the tensor ranks by its rows, the
/// second by its columns, and the result is summed over them. Every rank's part of a weight is sharded over the data
/// ranks: gathered one product ahead, its gradient reduce-scattered. At the end of each stage the activation is
/// broadcast. All ranks have one program: the layers of all stages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layers {
    /// How many.
    pub layers: usize,
    /// Ranks over which parameters are sharded (`dp`).
    pub data: u32,
    /// Ranks over which products are cut (`tp`).
    pub tensor: u32,
    /// Stages (`pp`).
    pub stages: u32,
    /// Columns of the activation: a multiple of `data`.
    pub width: u32,
    /// Columns between the two products of each pair: multiples of `data * tensor`.
    pub inner: Vec<u32>,
    /// Whether parameters are kept in float32 and gathered in bfloat16.
    pub mixed_precision: bool,
    /// Whether there is a backward pass.
    pub backward: bool,
}

impl Default for Layers {
    /// 32 layers of one pair of width 4096, sharded over 8 ranks, in mixed precision, with a backward pass.
    fn default() -> Layers {
        Layers {
            layers: 32,
            data: 8,
            tensor: 1,
            stages: 1,
            width: 4096,
            inner: vec![4096],
            mixed_precision: true,
            backward: true,
        }
    }
}

/// Rows of the activations.
const BATCH: i64 = 128;

/// Always the plain choice.
struct Plain;

impl Source for Plain {
    fn below(&mut self, _n: u32) -> u32 {
        0
    }

    fn step(&mut self) -> bool {
        true
    }

    fn length(&mut self, low: u32, _high: u32) -> u32 {
        low
    }
}

impl Layers {
    /// As many layers as make at least `nodes` nodes.
    pub fn with_nodes(self, nodes: usize) -> Layers {
        let of = |layers| Layers { layers, ..self.clone() }.graph().len();
        let (few, many) = (of(2), of(4));
        let per_layer = ((many - few) / 2).max(1);
        let layers = 2 + nodes.saturating_sub(few).div_ceil(per_layer);
        Layers { layers, ..self }
    }

    /// The graph.
    pub fn graph(&self) -> Graph {
        let (config, mut source) = (Config { epilogue: 0, ..Config::default() }, Plain);
        let size = self.layers.saturating_mul(24);
        let mut builder = Builder::new(&mut source, &config, self.world(), size);
        self.build(&mut builder);
        let mut graph = builder.end(&Plan::draw(&mut Plain, &config)).graph;
        graph.name = format!("{} layers", self.layers);
        graph
    }

    /// The parameters of Llama-3 405B but for its embeddings: 126 layers with weights of 16384 x 16384 (queries and
    /// output), 1024 x 16384 (keys and values) and 53248 x 16384 (three, one of them in two halves), on 16,384 ranks.
    pub fn llama3_405b() -> Layers {
        Layers {
            layers: 126,
            data: 128,
            tensor: 8,
            stages: 16,
            width: 16384,
            inner: vec![16384, 1024, 53248, 26624],
            ..Layers::default()
        }
    }

    fn world(&self) -> World {
        let (data, tensor, stages) = (self.data.max(1), self.tensor.max(1), self.stages.max(1));
        let ranks = data * tensor * stages;
        let axes = [("dp", data, tensor), ("tp", tensor, 1), ("pp", stages, data * tensor)];
        let group = |(name, size, stride): (&str, u32, u32)| Group {
            name: name.to_string(),
            size,
            recorded_rank: None,
            instances: blocks(ranks, size, stride),
        };
        World { ranks: Some(ranks), groups: axes.map(group).into() }
    }

    fn build<S: Source>(&self, builder: &mut Builder<S>) {
        let dtype = if self.mixed_precision { Dtype::BF16 } else { Dtype::F32 };
        let [group, tensor, stage] = builder.keys.groups[..] else { return };
        let (sum, next_stage) = (builder.keys.sum(tensor, dtype), builder.keys.sum(stage, dtype));
        let width = i64::from(self.width);
        let pairs = self.inner.iter().flat_map(|&inner| {
            let inner = i64::from(inner) / tensor.size;
            [[inner, width], [width, inner]]
        });
        let weights: Vec<Sharded> =
            pairs.map(|shape| Sharded { group, dtype, master: Dtype::F32, shape }).collect();
        let mut activation = builder.input(Type::new(dtype, &[BATCH, width]));
        let all = (0..self.layers).flat_map(|_| &weights);
        let parameters: Vec<(&Sharded, Var)> = all.map(|spec| (spec, builder.input(spec.shard()))).collect();
        if let Some(&(spec, first)) = parameters.first() {
            builder.gather_weight(spec, first);
        }
        let mut saved: Vec<(&Sharded, Saved)> = Vec::with_capacity(parameters.len());
        for (i, &(spec, parameter)) in parameters.iter().enumerate() {
            let weight = match parameters.get(i + 1) {
                None => builder.land(builder.flights.len() - 1),
                Some(&(spec, next)) => {
                    builder.gather_weight(spec, next);
                    builder.land(builder.flights.len() - 2)
                }
            };
            saved.push((spec, Saved { input: activation, parameter }));
            activation = builder.forward(activation, weight);
            if tensor.size > 1 && i % 2 == 1 {
                activation = builder.communicate(Collective::AllReduce, &sum, activation);
            }
            let layer = (i + 1) / weights.len();
            let ends_layer = (i + 1) % weights.len() == 0;
            if stage.size > 1 && ends_layer && layer.is_multiple_of(self.layers.div_ceil(stage.size as usize))
            {
                activation = hand_over(builder, &next_stage, activation);
            }
        }
        if !self.backward {
            return;
        }
        // The scatter of one gradient is waited for when the next one has been started.
        let mut gradient = builder.input(Type::new(dtype, &[BATCH, width]));
        for (i, (spec, saved)) in saved.into_iter().enumerate().rev() {
            gradient = builder.backward(spec, saved, gradient, true);
            if let Some(index) = builder.flights.len().checked_sub(2) {
                builder.land(index);
            }
            if tensor.size > 1 && i % 2 == 0 {
                gradient = builder.communicate(Collective::AllReduce, &sum, gradient);
            }
        }
    }
}

/// Broadcasts an activation to the next stage.
fn hand_over<S: Source>(builder: &mut Builder<S>, key: &Key, activation: Var) -> Var {
    let ty = builder.pool.ty(activation).packed(key.dtype);
    let args = [builder.take(activation), Value::Int(0), Value::Str(key.group.name)];
    let out = Out::Tensor(builder.tensor(&ty));
    let node = builder.call(Prefix::Communication, Target::Broadcast, &args, &[], out);
    let storage = builder.pool.storage();
    let launch = builder.launch(&[activation], 1);
    builder.fly(node, ty, storage, launch, None);
    builder.land(builder.flights.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::super::tests::graph_faults;
    use super::*;

    /// Each axis by itself, and all.
    fn meshes() -> [Layers; 4] {
        let of = |data, tensor, stages| Layers { data, tensor, stages, ..Layers::default() };
        [of(4, 1, 1), of(1, 4, 1), of(2, 1, 2), of(2, 2, 2)]
    }

    #[test]
    fn layers_are_valid() {
        for mesh in meshes() {
            for layers in [0, 1, 2, 5] {
                for (mixed_precision, backward) in [(true, true), (false, false)] {
                    let inner = vec![16, 32];
                    let spec = Layers { layers, width: 16, inner, mixed_precision, backward, ..mesh.clone() };
                    let graph = spec.graph();
                    let faults = graph_faults(&graph, true);
                    assert!(faults.is_empty(), "{spec:?}: {}", faults.join("\n"));
                }
            }
        }
    }

    #[test]
    fn as_many_nodes_as_asked_for() {
        for spec in meshes() {
            let spec = spec.with_nodes(5000);
            let nodes = spec.graph().len();
            assert!((5000..5100).contains(&nodes), "{spec:?} {nodes}");
        }
    }

    #[test]
    fn the_parameters_of_llama3_405b() {
        let spec = Layers::llama3_405b();
        assert_eq!(spec.data * spec.tensor * spec.stages, 16384);
        let weights: u64 = spec.inner.iter().map(|&inner| 2 * u64::from(inner) * u64::from(spec.width)).sum();
        // With two embeddings of 128256 x 16384, 405.8 billion.
        assert_eq!(126 * weights, 401_646_551_040);
    }
}
