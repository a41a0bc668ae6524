//! Which random numbers each draw gets: from which generator, and how many draws from it come before.
//!
//! An operator draws from the default generator of its device, or from the one that it is handed (`generator=`, and
//! `rng_state=` of `graphsafe_run_with_rng_state`). Draws from different generators may trade places; draws from one
//! may not. Source: `get_generator_or_default` in `aten/src/ATen/core/Generator.h`, `torch._prims.rng_prims`.
//!
//! Numbers are drawn in the order in which elements lie in memory, so what is drawn for a tensor depends on its
//! strides.
//!
//! Of a generator that an operator of the graph makes, of a device that is not recorded, and of an operator whose draws
//! nobody has described, it is not known which it is: then all draws of the graph are taken to be from one. Generators
//! that are inputs are taken to be different ones, and none of them a default one.

use crate::graph::{Graph, NodeId, Out, Tensor, Value};
use crate::ops::{Kind, OpInfo, Ops, Random, kind_of_device};

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
        let nodes: Vec<NodeId> =
            graph.ids().filter(|&id| ops.draws(graph, id) && !draws_nothing(graph, ops, id)).collect();
        let mut names: Vec<Option<String>> = nodes.iter().map(|&id| generator(graph, ops, id)).collect();
        // A device without a number is the present one, which may be any of its kind.
        let without: Vec<String> =
            names.iter().flatten().filter_map(|name| name.strip_suffix(":?")).map(String::from).collect();
        for name in names.iter_mut().flatten() {
            let of_kind =
                |kind: &&String| name.strip_prefix(kind.as_str()).is_some_and(|rest| rest.starts_with(':'));
            if let Some(kind) = without.iter().find(of_kind) {
                name.clone_from(kind);
            }
        }
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

/// The order in which a draw fills its result, where that is not row by row: the dimensions of several elements, the
/// outermost in memory first. Numbers are drawn as elements lie in memory; gaps between them make no difference.
pub fn order_of_filling(graph: &Graph, id: NodeId) -> Option<Vec<usize>> {
    let tensor = drawn_tensor(graph, id)?;
    let (sizes, strides) = graph.sizes(tensor.shape).zip(graph.sizes(tensor.stride))?;
    let strides: Vec<i64> = strides.into_iter().zip(sizes).filter(|&(_, n)| n > 1).map(|(s, _)| s).collect();
    let mut order: Vec<usize> = (0..strides.len()).collect();
    order.sort_by_key(|&dim| std::cmp::Reverse(strides[dim]));
    (!order.is_sorted()).then_some(order)
}

/// Whether a draw gives no number. What an operator that nobody has described draws need not be what it gives.
pub fn draws_nothing(graph: &Graph, ops: &Ops, id: NodeId) -> bool {
    ops.get(graph, id).kind != Kind::Random(Random::Opaque)
        && drawn_tensor(graph, id).is_some_and(|tensor| graph.numel(tensor) == Some(0))
}

/// What a node draws from; `None` where that is not known.
fn generator(graph: &Graph, ops: &Ops, id: NodeId) -> Option<String> {
    let info = ops.get(graph, id);
    let place = |name: &str| info.schema.as_ref().and_then(|schema| schema.param(name)).unwrap_or(usize::MAX);
    let names = ["generator", "gen", "rng_state"];
    match names.into_iter().find_map(|name| graph.argument(id, place(name), name)) {
        None | Some(Value::None) => device(graph, info, id),
        Some(Value::Node(from)) if from.index() < graph.len() => graph.given_name(from),
        Some(_) => None,
    }
}

/// The device whose generator a node draws from: that of its result, else of what it is given.
fn device(graph: &Graph, info: &OpInfo, id: NodeId) -> Option<String> {
    let tensor = match info.kind {
        // Nobody has said where a custom operator draws.
        Kind::Random(Random::Opaque) if !info.target.starts_with("aten.") && info.target != SAVING => None,
        _ => drawn_tensor(graph, id)
            .or_else(|| graph.inputs(id).into_iter().find_map(|input| graph.tensor_of(input))),
    };
    let device = graph.text(tensor?.device);
    Some(match kind_of_device(device) {
        // There is one, whatever it is called.
        "cpu" => "cpu".to_string(),
        _ if device.contains(':') => device.to_string(),
        kind => format!("{kind}:?"),
    })
}

const SAVING: &str = "higher_order.run_and_save_rng_state";

/// Whether a result of a node is the state of a generator: bytes that are not drawn, on the host, and as many as the
/// runtime takes for it, whatever is recorded.
pub fn is_state(graph: &Graph, id: NodeId, result: usize) -> bool {
    result == 0 && graph.target(id) == SAVING
}

/// Whether a node hands on [such a state](is_state).
pub fn shows_state(graph: &Graph, id: NodeId) -> bool {
    match (graph.target(id), graph.args(id)) {
        ("operator.getitem", &[Value::Node(of), Value::Int(result)]) => {
            of < id && usize::try_from(result).is_ok_and(|result| is_state(graph, of, result))
        }
        _ => false,
    }
}

/// The tensor that a node draws: the first one of several, states aside.
pub fn drawn_tensor(graph: &Graph, id: NodeId) -> Option<&Tensor> {
    match graph.node(id).out {
        Out::Tuple(span) => {
            let outs = graph.outs(span).iter().enumerate();
            let drawn = outs.filter(|&(result, _)| !is_state(graph, id, result));
            drawn.map(|(_, &out)| out).find_map(|out| first_tensor(graph, out))
        }
        out => first_tensor(graph, out),
    }
}

fn first_tensor(graph: &Graph, out: Out) -> Option<&Tensor> {
    match out {
        Out::Tensor(tensor) => Some(graph.tensor(tensor)),
        Out::Tuple(span) => graph.outs(span).iter().find_map(|&out| first_tensor(graph, out)),
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
             e = aten.rand.default([4]) : f32[4] @cuda:0\n\
             f = aten.poisson.default(a, g) : f32[4]\n\
             s = higher_order.run_and_save_rng_state(fn(aten.rand.default), [4]) : (u8[16] @cpu, f32[4])\n\
             output (a, b, c, d, e, f)\n",
        );
        let expected =
            [("cuda:0", 0), ("cpu", 0), ("input 0", 0), ("cuda:0", 1), ("input 0", 1), ("cuda:0", 2)];
        assert_eq!(found, expected.map(|(name, position)| (name.to_string(), position)));
    }

    #[test]
    fn a_device_without_a_number_may_be_any() {
        let found = draws(
            "a = aten.rand.default([4]) : f32[4] @cuda\n\
             b = aten.rand.default([4]) : f32[4] @cuda:1\n\
             output (a, b)\n",
        );
        assert_eq!(found, [("cuda".to_string(), 0), ("cuda".to_string(), 1)]);
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
