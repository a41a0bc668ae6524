//! Forward and backward as one graph in which what backward draws again is the draw of forward.
//!
//! # The idea
//!
//! A draw that backward runs again is handed the state of its generator: forward returns the states behind its own
//! results, and backward takes them in that order (`run_and_save_rng_state`, `run_with_rng_state`); or the runtime
//! gives both parts a generator in the same state, one after the other (`graphsafe_run_with_rng_state`). With one state
//! the same call draws the same numbers, so the second is the first. Source:
//! `torch._functorch.partitioners.functionalize_rng_ops`.
//!
//! # What it does not do
//!
//! A replay from a state that is not there, or of another call, stays a draw of its own.

use super::compose::{Composition, Wrapper, item_of_added, returned_nodes};
use super::placement::{inputs_named, with_states};
use crate::graph::{Editor, Graph, NodeId};
use crate::rules::correspondence::same_constants;

/// The composition of `forward`, of which the first `own` results are the joint graph's, and `backward`, with each
/// replay in the place of the draw that it repeats.
pub fn with_replays(
    joint: &Graph,
    [forward, backward]: [&Graph; 2],
    own: usize,
    composed: Composition,
) -> Graph {
    let saved = returned_nodes(forward, own).into_iter().filter_map(|id| item_of_added(joint, forward, id));
    let saved = saved.filter(|&(_, item)| item == 0).map(|(save, _)| Some(save)).collect();
    let drawn = [saved, drawn_from(joint, forward, Wrapper::Generator, "fwd_rng_state_")];
    let replayed = [
        drawn_from(joint, backward, Wrapper::Replay, "rng_state_output_"),
        drawn_from(joint, backward, Wrapper::Generator, "bwd_rng_state_"),
    ];
    let graph = composed.graph;
    let node = |map: &[Option<NodeId>], id: NodeId| map.get(id.index()).copied().flatten();
    let pairs = drawn.iter().zip(&replayed).flat_map(|(first, again)| first.iter().zip(again));
    let same: Vec<(NodeId, NodeId)> = pairs
        .filter_map(|(&first, &again)| {
            Some((node(&composed.of_backward, again?)?, node(&composed.of_forward, first?)?))
        })
        .filter(|&(again, first)| is_one_call(&graph, again, first))
        .collect();
    let mut editor = Editor::from_owned(graph);
    for (again, first) in same {
        editor.replace_uses(again, first);
        editor.erase(again);
    }
    editor.finish()
}

/// The draws from the inputs of a name, in the order of these; `None` for an input that nobody or several draw from.
fn drawn_from(joint: &Graph, part: &Graph, kind: Wrapper, name: &str) -> Vec<Option<NodeId>> {
    let draws = with_states(joint, part, kind);
    let of = |input: NodeId| {
        let mut of_input = draws.iter().filter(|(state, _)| *state == input).map(|(_, draw)| *draw);
        of_input.next().filter(|_| of_input.next().is_none())
    };
    inputs_named(part, &[name]).into_iter().map(of).collect()
}

/// Whether two calls are of one operator with the same arguments.
fn is_one_call(graph: &Graph, one: NodeId, other: NodeId) -> bool {
    graph.target(one) == graph.target(other)
        && graph.inputs(one) == graph.inputs(other)
        && same_constants(graph, one, graph, other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::partition::compose;

    fn graph(text: &str) -> Graph {
        crate::format::text::parse(text.as_bytes()).unwrap().graph
    }

    /// What backward's products read of two draws that it makes again, with the states returned in this order, and the
    /// second replay of this size.
    fn read(states: [&str; 2], size: i64) -> [String; 2] {
        let joint = graph(
            "x = input : f32[4]\ntangents_1 = input : f32[4]\nu = rand([4]) : f32[4]\nv = rand([4]) : f32[4]\n\
             y = mul(x, u) : f32[4]\nz = mul(y, v) : f32[4]\ng = mul(tangents_1, u) : f32[4]\nh = mul(g, v) : f32[4]\noutput (z, h)\n",
        );
        let save = |name: &str, item: &str| {
            format!(
                "{name} = higher_order.run_and_save_rng_state(fn(aten.rand.default), [4]) : (u8[16], f32[4])\n\
                 {name}s = {name}[0] : u8[16]\n{item} = {name}[1] : f32[4]\n"
            )
        };
        let forward = graph(&format!(
            "x = input : f32[4]\n{}{}y = mul(x, u) : f32[4]\nz = mul(y, v) : f32[4]\noutput (z, {}, {})\n",
            save("a", "u"),
            save("b", "v"),
            states[0],
            states[1],
        ));
        let replay = |name: &str, state: &str, size: i64| {
            format!(
                "{name} = higher_order.run_with_rng_state({state}, fn(aten.rand.default), [{size}]) : f32[{size}]\n"
            )
        };
        let backward = graph(&format!(
            "rng_state_output_0 = input : u8[16]\nrng_state_output_1 = input : u8[16]\ntangents_1 = input : f32[4]\n{}{}\
             g = mul(tangents_1, c) : f32[4]\nh = mul(g, d) : f32[4]\noutput (h)\n",
            replay("c", "rng_state_output_0", 4),
            replay("d", "rng_state_output_1", size),
        ));
        let composed = compose(&joint, &forward, &backward, 1).unwrap();
        let graph = with_replays(&joint, [&forward, &backward], 1, composed);
        ["g", "h"].map(|product| {
            let product = graph.find(product).unwrap();
            graph.name(graph.inputs(product)[1]).to_string()
        })
    }

    #[test]
    fn a_replay_is_the_draw_whose_state_it_takes() {
        assert_eq!(read(["as", "bs"], 4), ["a", "b"]);
        // By its position the first state is that of b.
        assert_eq!(read(["bs", "as"], 4), ["b", "a"]);
        // Another call from that state draws other numbers.
        assert_eq!(read(["as", "bs"], 1), ["a", "d"]);
    }
}
