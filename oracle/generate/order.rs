//! Unsorted lists for the repair: shuffles, and cycles on request.

use super::source::Source;
use crate::graph::{Graph, NodeId, Op, Value};

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
