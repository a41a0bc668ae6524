//! The steps of a graph: each writes a few nodes, chosen by weight.

use super::builder::{Builder, Origin};
use super::config::Config;
use super::source::Source;
use crate::graph::Tags;
use crate::ops::Collective;

/// One kind of step. The first one is the plain choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Gather,
    Pointwise,
    Wait,
    Scatter,
    Reduce,
    Burst,
    Chain,
    View,
    Pieces,
    Join,
    Cast,
    Product,
    Write,
    Buffer,
    ThroughMemory,
    Random,
    Assertion,
    SecondWait,
    Neighbour,
    Barrier,
    Layers,
    Padded,
    Dead,
    Uninterpreted,
}

const STEPS: usize = 24;

fn weights(config: &Config) -> [(Step, u32); STEPS] {
    [
        (Step::Gather, config.gather),
        (Step::Pointwise, config.pointwise),
        (Step::Wait, config.wait),
        (Step::Scatter, config.scatter),
        (Step::Reduce, config.reduce),
        (Step::Burst, config.burst),
        (Step::Chain, config.chain),
        (Step::View, config.view),
        (Step::Pieces, config.pieces),
        (Step::Join, config.join),
        (Step::Cast, config.cast),
        (Step::Product, config.product),
        (Step::Write, config.write),
        (Step::Buffer, config.buffer),
        (Step::ThroughMemory, config.through_memory),
        (Step::Random, config.random),
        (Step::Assertion, config.assertion),
        (Step::SecondWait, config.second_wait),
        (Step::Neighbour, config.neighbour),
        (Step::Barrier, config.barrier),
        (Step::Layers, config.layers),
        (Step::Padded, config.padded),
        (Step::Dead, config.dead),
        (Step::Uninterpreted, config.uninterpreted),
    ]
}

impl<S: Source> Builder<'_, S> {
    /// Takes steps until there are `nodes` nodes or the source ends.
    pub fn steps(&mut self, nodes: usize) {
        let steps = weights(self.config);
        let weights = steps.map(|(_, weight)| weight);
        let annotated = self.source.percent(self.config.annotated);
        // A step may find nothing to do, but not again and again.
        for count in 0..4 * nodes {
            if self.len() >= nodes || !self.source.step() {
                break;
            }
            let step = steps[self.source.weighted(&weights)].0;
            self.output =
                (self.source.percent(self.config.output), self.source.percent(self.config.used_output));
            self.odd_names = self.source.percent(self.config.odd_name);
            if annotated {
                self.annotate(count);
            }
            self.take_step(step);
            if self.source.percent(self.config.ordering) {
                if self.source.percent(50) {
                    self.order_after_wait();
                } else {
                    self.add_ordering();
                }
            }
        }
        (self.output, self.odd_names) = ((true, false), false);
    }

    fn take_step(&mut self, step: Step) {
        let done = match step {
            Step::Wait => self.step_wait(),
            Step::View => self.step_view(),
            Step::Pieces => self.step_pieces(),
            Step::Join => self.step_join(),
            Step::Cast => self.step_cast(),
            Step::Write => self.step_write(),
            Step::SecondWait => self.step_second_wait(),
            _ => {
                match step {
                    Step::Scatter => self.step_collective(Collective::ReduceScatter),
                    Step::Reduce => self.step_collective(Collective::AllReduce),
                    Step::Burst => self.step_burst(),
                    Step::Chain => self.step_chain(),
                    Step::Product => self.step_product(),
                    Step::Buffer => self.step_buffer(),
                    Step::ThroughMemory => self.step_through_memory(),
                    Step::Random => self.step_random(),
                    Step::Assertion => self.step_assertion(),
                    Step::Neighbour => self.step_neighbour(),
                    Step::Barrier => self.step_barrier(),
                    Step::Layers => self.step_layers(),
                    Step::Padded => self.step_padded(),
                    Step::Dead => self.step_dead(),
                    Step::Uninterpreted => self.step_uninterpreted(),
                    Step::Pointwise => self.step_pointwise(),
                    _ => self.step_collective(Collective::AllGather),
                }
                true
            }
        };
        if !done {
            self.step_pointwise();
        }
    }

    /// Gives further nodes a module, a stack trace and tags, by the number of the step.
    fn annotate(&mut self, count: usize) {
        let stack =
            ["File \"train.py\", line 10, in forward", "File \"train.py\", line 20, in forward"][count % 2];
        let custom = ["{\"scope\": \"a\"}", "{\"scope\": \"b\"}"][(count / 3) % 2];
        let (stack, custom) = (self.graph.intern(stack), self.graph.intern(custom));
        let tags = Tags { custom: Some(custom), ..Tags::default() };
        self.origin = Origin { stack: Some(stack), tags: self.graph.intern_tags(tags), ..self.origin };
        self.enter_layer(count / 4 % 4);
    }
}
