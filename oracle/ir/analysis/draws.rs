//! Which random numbers each draw gets: from which generator, and how many draws from it come before.
//!
//! An operator draws from the default generator of its device, or from the one that it is handed (`generator=`, and
//! `rng_state=` of `graphsafe_run_with_rng_state`). Draws from different generators may trade places; draws from one may
//! not. Source: `get_generator_or_default` in `aten/src/ATen/core/Generator.h`, `torch._prims.rng_prims`.
//!
//! Of a generator that an operator of the graph makes, or of a device that is not recorded, it is not known which it is:
//! then all draws of the graph are taken to be from one.

use crate::graph::{Graph, NodeId, Op, Out, Value};
use crate::ops::Ops;

/// One draw of at least one number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Draw {
    /// The node that draws.
    pub node: NodeId,
    /// An index into the generators.
    pub generator: u32,
    /// How many draws from it come before.
    pub position: u32,
}

/// The draws of a graph, in list order.
#[derive(Clone, Debug, Default)]
pub struct Draws {
    draws: Vec<Draw>,
    /// What two graphs call one generator, if they have the same inputs.
    generators: Vec<String>,
}

impl Draws {
    /// Finds them.
    pub fn new(graph: &Graph, ops: &Ops) -> Draws {
        let is_empty = |id: NodeId| graph.tensor_of(id).is_some_and(|tensor| graph.numel(tensor) == Some(0));
        let nodes: Vec<NodeId> = graph.ids().filter(|&id| ops.draws(graph, id) && !is_empty(id)).collect();
        let names: Vec<Option<String>> = nodes.iter().map(|&id| generator(graph, id)).collect();
        let is_known = names.iter().all(Option::is_some);
        let mut this = Draws::default();
        let mut counts: Vec<u32> = Vec::new();
        for (node, name) in nodes.into_iter().zip(names) {
            let name = name.filter(|_| is_known).unwrap_or_default();
            let index = this.generators.iter().position(|known| *known == name).unwrap_or_else(|| {
                this.generators.push(name);
                counts.push(0);
                counts.len() - 1
            });
            this.draws.push(Draw { node, generator: index as u32, position: counts[index] });
            counts[index] += 1;
        }
        this
    }

    /// The draw that a node makes, if it makes one.
    pub fn of(&self, node: NodeId) -> Option<Draw> {
        let at = self.draws.binary_search_by_key(&node, |draw| draw.node).ok()?;
        self.draws.get(at).copied()
    }

    /// The name of a draw's generator: the same in graphs with the same inputs.
    pub fn generator(&self, draw: Draw) -> &str {
        self.generators.get(draw.generator as usize).map_or("", String::as_str)
    }

    /// How many generators are drawn from.
    pub fn generators(&self) -> usize {
        self.generators.len()
    }
}

/// What a node draws from; `None` where that is not known.
fn generator(graph: &Graph, id: NodeId) -> Option<String> {
    let given = ["generator", "rng_state"].into_iter().find_map(|name| graph.kwarg(id, name));
    match given {
        None | Some(Value::None) => device(graph, graph.node(id).out),
        Some(Value::Node(from)) if from.index() < graph.len() => match graph.node(from).op {
            Op::Placeholder => {
                let inputs = graph.ids().take_while(|&input| input < from);
                let place = inputs.filter(|&input| graph.node(input).op == Op::Placeholder).count();
                Some(format!("input {place}"))
            }
            Op::GetAttr => Some(format!("attribute {}", graph.target(from))),
            _ => None,
        },
        Some(_) => None,
    }
}

/// The device of the first tensor of a result. One without a number is the first of its kind.
fn device(graph: &Graph, out: Out) -> Option<String> {
    match out {
        Out::Tensor(tensor) => {
            let device = graph.text(graph.tensor(tensor).device);
            Some(if device.contains(':') { device.to_string() } else { format!("{device}:0") })
        }
        Out::Tuple(span) => graph.outs(span).iter().find_map(|&out| device(graph, out)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(text: &str) -> Vec<(String, u32)> {
        let graph = crate::format::text::parse(text).unwrap().graph;
        let draws = Draws::new(&graph, &Ops::of(&graph));
        let all = graph.ids().filter_map(|id| draws.of(id));
        all.map(|draw| (draws.generator(draw).to_string(), draw.position)).collect()
    }

    #[test]
    fn each_generator_is_drawn_from_by_itself() {
        let found = draws(
            "g = input : other(Generator)\n\
             a = aten.rand.default([4]) : f32[4]\n\
             b = aten.rand.default([4], device=@cpu) : f32[4] @cpu\n\
             c = aten.rand.generator([4], generator=g) : f32[4]\n\
             d = aten.rand.default([0]) : f32[0]\n\
             e = aten.rand.default([4]) : f32[4] @cuda\n\
             output (a, b, c, d, e)\n",
        );
        let expected = [("cuda:0", 0), ("cpu:0", 0), ("input 0", 0), ("cuda:0", 1)];
        assert_eq!(found, expected.map(|(name, position)| (name.to_string(), position)));
    }

    #[test]
    fn of_one_that_is_not_known_all_are_one() {
        let found = draws(
            "a = aten.rand.default([4]) : ?\n\
             b = aten.rand.default([4], device=@cpu) : f32[4] @cpu\n\
             output (a, b)\n",
        );
        assert_eq!(found, [(String::new(), 0), (String::new(), 1)]);
    }
}
