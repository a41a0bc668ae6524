//! The order of lists: unsorted ones for the repair, cycles on request, and other orders that mean the same.

use super::source::Source;
use crate::analysis::storages::Mode;
use crate::analysis::{Collectives, Dependences, Edges, Storages, dependences};
use crate::graph::{Editor, Graph, NodeId, Op, Value};
use crate::ops::Ops;

/// The same graph as another list: a random linear extension of what depends on what, through data, ordering edges,
/// memory, random draws and effects. What is no call stays in front, the output at the end. A list that is not
/// topological stays as it is.
pub fn reordered(source: &mut impl Source, graph: &Graph) -> Graph {
    let (ops, edges) = (Ops::of(graph), Edges::new(graph));
    let collectives = Collectives::new(graph, &ops);
    let storages = Storages::new(graph, &ops, &edges, &collectives, Mode::Physical);
    let options = dependences::Options::default();
    let dependences = Dependences::new(graph, &ops, &edges, &storages, &collectives, options);
    if graph.ids().any(|id| edges.predecessors(id).any(|before| before >= id)) {
        return graph.clone();
    }
    let mut waiting: Vec<usize> = graph.ids().map(|id| dependences.before(id).len()).collect();
    let is_call = |id: NodeId| graph.node(id).op == Op::Call;
    let mut list: Vec<NodeId> =
        graph.ids().filter(|&id| !matches!(graph.node(id).op, Op::Call | Op::Output)).collect();
    let mut ready: Vec<NodeId> = graph.ids().filter(|&id| is_call(id) && waiting[id.index()] == 0).collect();
    let mut at = 0;
    loop {
        while let Some(&done) = list.get(at) {
            at += 1;
            for &after in dependences.after(done) {
                waiting[after.index()] -= 1;
                if waiting[after.index()] == 0 && is_call(after) {
                    ready.push(after);
                }
            }
        }
        if ready.is_empty() {
            break;
        }
        list.push(ready.swap_remove(source.below(ready.len() as u32) as usize));
    }
    list.extend(graph.output());
    if list.len() < graph.len() {
        return graph.clone();
    }
    let mut editor = Editor::new(graph);
    list.into_iter().for_each(|id| editor.move_before(None, id));
    editor.finish()
}

/// Positions for `inputs` inputs and `others` other nodes: inputs stay in front, in their order.
pub(super) fn shuffled(source: &mut impl Source, inputs: usize, others: usize) -> Vec<u32> {
    let mut list: Vec<u32> = (inputs as u32..(inputs + others) as u32).collect();
    if others > 1 {
        match source.below(4) {
            // A few nodes somewhere else, as a pass leaves them.
            0 | 1 => {
                for _ in 0..source.between(2, 8) {
                    let (from, to) = (source.below(others as u32), source.below(others as u32));
                    let node = list.remove(from as usize);
                    list.insert(to as usize, node);
                }
            }
            // A run of nodes somewhere else.
            2 => {
                let from = source.below(others as u32) as usize;
                let length = 1 + source.below((others - from).min(8) as u32) as usize;
                let run: Vec<u32> = list.drain(from..from + length).collect();
                let to = source.below(list.len() as u32 + 1) as usize;
                list.splice(to..to, run);
            }
            _ => {
                for i in (1..others).rev() {
                    let other = source.below(i as u32 + 1) as usize;
                    list.swap(i, other);
                }
            }
        }
    }
    let mut positions: Vec<u32> = (0..(inputs + others) as u32).collect();
    for (place, node) in list.into_iter().enumerate() {
        positions[node as usize] = (inputs + place) as u32;
    }
    positions
}

/// Makes some node take a value that depends on it. Whether one was found that can.
pub(super) fn add_cycle(source: &mut impl Source, graph: &mut Graph) -> bool {
    let count = graph.len() as u32;
    let start = source.below(count);
    let length = source.between(0, 3);
    for i in 0..count {
        let late = NodeId((start + i) % count);
        if graph.node(late).op != Op::Call {
            continue;
        }
        let mut early = late;
        for _ in 0..length {
            let calls = graph.inputs(early).into_iter().find(|&input| graph.node(input).op == Op::Call);
            early = calls.unwrap_or(early);
        }
        let mut args = graph.args(early).to_vec();
        let Some(operand) = args.iter_mut().find(|value| matches!(value, Value::Node(_))) else { continue };
        *operand = Value::Node(late);
        let args = graph.push_values(&args);
        graph.node_mut(early).args = args;
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::source::Seeded;
    use super::*;

    #[test]
    fn positions_are_a_permutation() {
        let mut source = Seeded::new(3);
        for others in 0..40 {
            let mut positions = shuffled(&mut source, 5, others);
            assert_eq!(positions[..5], [0, 1, 2, 3, 4]);
            positions.sort();
            assert!(positions.iter().copied().eq(0..(5 + others) as u32));
        }
    }
}
