//! What operators ask of their arguments, against what PyTorch refused: `tests/peer/refusals.py` made the file.

use super::{calls, describe, read};
use graph_oracle::definitions::held;
use graph_oracle::graph::{NodeId, Value};
use graph_oracle::ops::{Kind, Ops, shape};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Refused calls that are taken for ones that run, as of today. Their operators are named in the output.
const MOST_TAKEN: [usize; 2] = [424, 319];

#[test]
fn calls_that_pytorch_refuses_are_not_known_to_run() {
    let graph = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ops/refusal_cases.json.gz"));
    let ops = Ops::of(&graph);
    let uncomputed: Vec<NodeId> =
        calls(&graph).filter(|&id| ops.get(&graph, id).kind == Kind::Opaque).collect();
    // Each call stands alone; few at once, since what is written out of one is in the way of the next.
    let held: BTreeSet<NodeId> = uncomputed.chunks(64).flat_map(|some| held(&graph, some)).collect();
    let (mut alarms, mut taken) = (Vec::new(), [0; 2]);
    let mut open: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for id in calls(&graph) {
        let refusal = graph.node(id).module.map(|module| graph.text(module));
        let answer = shape::infer(&graph, &ops, id);
        let is_known = match (&answer, ops.get(&graph, id).kind) {
            (_, Kind::Opaque) => held.contains(&id),
            (answer, _) => !matches!(answer, Ok(shape::Inferred::Undecided)),
        };
        match (refusal, answer) {
            (None, Err(error)) => {
                let inputs: Vec<String> = graph.inputs(id).iter().map(|&i| describe(&graph, i)).collect();
                let rest: Vec<_> = graph.args(id).iter().filter(|a| !matches!(a, Value::Node(_))).collect();
                alarms.push(format!("{} of {} {rest:?}: {error}", graph.target(id), inputs.join(", ")));
            }
            (Some(refusal), Ok(_)) if is_known => {
                let at = usize::from(refusal == "refused here");
                taken[at] += 1;
                open.entry(graph.target(id)).or_default()[at] += 1;
            }
            _ => {}
        }
    }
    println!("taken though refused, by PyTorch and by the CPU alone: {taken:?}: {open:#?}");
    assert!(alarms.is_empty(), "{} calls refused that run:\n{}", alarms.len(), alarms.join("\n"));
    assert!(taken[0] <= MOST_TAKEN[0] && taken[1] <= MOST_TAKEN[1], "{taken:?}");
}
