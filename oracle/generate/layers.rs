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

/// How the layers are spread over ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parallelism {
    /// Parameters sharded over all ranks (`dp`), gathered one layer ahead, gradients reduce-scattered.
    Sharded,
    /// Weights cut over all ranks (`tp`), partial products all-reduced.
    Tensor,
    /// Both, on a mesh: `tp` inside, `dp` across.
    ShardedTensor,
    /// Sharded within stages; activations broadcast from stage to stage (`pp`).
    Pipeline,
}

/// A model of identical layers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layers {
    /// How many.
    pub layers: usize,
    /// How they are spread.
    pub parallelism: Parallelism,
    /// Ranks of the world: a power of two from 2 on.
    pub ranks: u32,
    /// Rows and columns of each weight: a multiple of the number of ranks.
    pub width: u32,
    /// Whether parameters are kept in float32 and gathered in bfloat16.
    pub mixed_precision: bool,
    /// Whether there is a backward pass.
    pub backward: bool,
}

impl Default for Layers {
    /// 32 sharded layers of width 4096 on 8 ranks, in mixed precision, with a backward pass.
    fn default() -> Layers {
        Layers {
            layers: 32,
            parallelism: Parallelism::Sharded,
            ranks: 8,
            width: 4096,
            mixed_precision: true,
            backward: true,
        }
    }
}

/// Stages of a pipeline.
const STAGES: usize = 2;

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

    fn world(&self) -> World {
        let ranks = self.ranks.max(2).next_power_of_two();
        let group = |name: &str, instances: Vec<Vec<u32>>| Group {
            name: name.to_string(),
            size: instances.first().map_or(0, |ranks| ranks.len() as u32),
            recorded_rank: None,
            instances,
        };
        let half = ranks / 2;
        let groups = match self.parallelism {
            Parallelism::Sharded => vec![group("dp", blocks(ranks, ranks, 1))],
            Parallelism::Tensor => vec![group("tp", blocks(ranks, ranks, 1))],
            Parallelism::ShardedTensor => {
                vec![group("dp", blocks(ranks, half, 2)), group("tp", blocks(ranks, 2, 1))]
            }
            Parallelism::Pipeline => {
                vec![group("dp", blocks(ranks, half, 1)), group("pp", blocks(ranks, 2, half))]
            }
        };
        World { ranks: Some(ranks), groups }
    }

    fn build<S: Source>(&self, builder: &mut Builder<S>) {
        let dtype = if self.mixed_precision { Dtype::BF16 } else { Dtype::F32 };
        let group = builder.keys.groups[0];
        let width = i64::from(self.width.clamp(1, 1 << 20).next_multiple_of(group.size as u32));
        let spec = Sharded { group, dtype, master: Dtype::F32, width, batch: BATCH };
        let other = builder.keys.groups.get(1).map(|&second| builder.keys.sum(second, dtype));
        let activation = builder.input(Type::new(dtype, &[BATCH, width]));
        let parameters: Vec<Var> = match self.parallelism {
            Parallelism::Tensor => Vec::new(),
            _ => (0..self.layers).map(|_| builder.input(spec.shard())).collect(),
        };
        let mut saved: Vec<Saved> = Vec::with_capacity(parameters.len());
        let mut activation = activation;
        if let Some(&first) = parameters.first() {
            builder.gather_weight(&spec, first);
        }
        for layer in 0..self.layers {
            let Some(&parameter) = parameters.get(layer) else {
                let key = builder.keys.sum(group, dtype);
                activation = builder.parallel_layer(&key, activation, [width, width]);
                continue;
            };
            let mut back = 1;
            if let Some(&next) = parameters.get(layer + 1) {
                builder.gather_weight(&spec, next);
                back = 2;
            }
            let weight = builder.land(builder.flights.len() - back);
            saved.push(Saved { input: activation, parameter });
            activation = builder.forward(activation, weight);
            activation = match (self.parallelism, &other) {
                (Parallelism::ShardedTensor, Some(key)) => {
                    builder.communicate(Collective::AllReduce, key, activation)
                }
                (Parallelism::Pipeline, Some(key)) if (layer + 1) % self.layers.div_ceil(STAGES) == 0 => {
                    hand_over(builder, key, activation)
                }
                _ => activation,
            };
        }
        if !self.backward {
            return;
        }
        // The scatter of one layer is waited for when the next one has started its own.
        let mut gradient = builder.input(Type::new(dtype, &[BATCH, width]));
        for saved in saved.into_iter().rev() {
            gradient = builder.backward(&spec, saved, gradient, true);
            if let Some(index) = builder.flights.len().checked_sub(2) {
                builder.land(index);
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

    const ALL: [Parallelism; 4] =
        [Parallelism::Sharded, Parallelism::Tensor, Parallelism::ShardedTensor, Parallelism::Pipeline];

    #[test]
    fn layers_are_valid() {
        for parallelism in ALL {
            for layers in [0, 1, 2, 5] {
                for (mixed_precision, backward) in [(true, true), (false, false)] {
                    let spec = Layers { layers, parallelism, ranks: 4, width: 16, mixed_precision, backward };
                    let graph = spec.graph();
                    let faults = graph_faults(&graph, true);
                    assert!(faults.is_empty(), "{spec:?}: {}", faults.join("\n"));
                }
            }
        }
    }

    #[test]
    fn as_many_nodes_as_asked_for() {
        for parallelism in ALL {
            let spec = Layers { parallelism, ..Layers::default() }.with_nodes(5000);
            let nodes = spec.graph().len();
            assert!((5000..5100).contains(&nodes), "{parallelism:?} {nodes}");
        }
    }
}
