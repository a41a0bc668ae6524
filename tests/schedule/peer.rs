//! The orders against those of PyTorch's own functions on nodes that stand for ours.
//!
//! Runs where GRAPH_ORACLE_PYTHON names a Python with torch: `GRAPH_ORACLE_PYTHON=python cargo test --lib schedule`.
//! Elsewhere a line says what was skipped. The iterative passes are compared where PyTorch respects all edges: on
//! graphs without edges that only order, communication's aside, with a budget that never binds. peer.py says where
//! PyTorch does not do what it means to, and puts that right first.

use super::*;
use graph_oracle::generate::Seeded;
use graph_oracle::generate::schedule::schedule_case;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

fn described(facts: &Facts, steps: &Steps, pass: Pass, runtime_mode: bool) -> Value {
    let step = |id: &NodeId| steps.step_of[id.index()];
    let kind = |i: usize| match (steps.launches[i], steps.communicates[i], steps.waits[i], steps.gemm[i]) {
        (true, ..) => "launch",
        (_, true, ..) => "synchronous",
        (_, _, true, _) => "wait",
        (.., true) => "gemm",
        _ => "compute",
    };
    let node = |i: usize| {
        // A buffer that one needs and that also only orders is needed.
        let mut before: Vec<(u32, bool)> = steps.before(i as u32).to_vec();
        before.sort_unstable_by_key(|&(step, real)| (step, !real));
        before.dedup_by_key(|edge| edge.0);
        json!({ "before": before, "kind": kind(i), "seconds": steps.seconds[i] })
    };
    let buffers =
        Buffers::new(facts.graph, &facts.edges, &facts.storages).buffers.into_iter().map(|buffer| {
            let by = buffer.by.as_ref().and_then(step);
            let users: Vec<u32> =
                buffer.users.iter().filter_map(step).filter(|&user| Some(user) != by).collect();
            json!({ "by": by, "bytes": buffer.alloc, "stays": buffer.stays, "users": users })
        });
    json!({
        "pass": pass.name(),
        "runtime": runtime_mode,
        "nodes": (0..steps.len()).map(node).collect::<Vec<_>>(),
        "buffers": buffers.collect::<Vec<_>>(),
    })
}

#[test]
fn orders_are_pytorchs() {
    let Ok(python) = std::env::var("GRAPH_ORACLE_PYTHON") else {
        println!("skipped: GRAPH_ORACLE_PYTHON names no Python with torch");
        return;
    };
    let (mut cases, mut ours) = (Vec::new(), Vec::new());
    for index in 0..300 {
        let case = schedule_case(&mut Seeded::case(21, index), 30);
        let graph = &case.graphs[0];
        if !graph.clusters.is_empty() {
            continue;
        }
        let facts = Facts::new(graph);
        let orders = |id: NodeId| facts.dependences.before(id).any(|(_, origin)| !is_real(origin));
        let only_data = !graph.ids().any(orders);
        for &pass in Pass::ALL {
            let iterative =
                matches!(pass, Pass::SinkWaitsIterative | Pass::ReorderCommunicationPreservingPeakMemory);
            if pass == Pass::Fsdp || (iterative && !only_data) {
                continue;
            }
            for runtime_mode in [false, true] {
                if runtime_mode && !iterative {
                    continue;
                }
                let config = Config {
                    runtime_mode,
                    estimates: case.estimates.clone(),
                    budgets: vec![1e9],
                    ..Config::new(pass)
                };
                let estimates = Reference.estimates(&config, 0).unwrap();
                let steps = Steps::new(&facts, &estimates, &Reference, &[], &[]).unwrap();
                let scheduled = schedule(graph, &config).unwrap();
                let order: Vec<u32> =
                    scheduled.order.iter().filter_map(|id| steps.step_of[id.index()]).collect();
                cases.push(described(&facts, &steps, pass, runtime_mode));
                ours.push((index, pass, order, runtime_mode));
            }
        }
    }
    let mut child = Command::new(python)
        .args(["-P", "-c", include_str!("peer.py")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(Value::Array(cases).to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let theirs: Vec<Vec<u32>> = serde_json::from_slice(&output.stdout).unwrap();
    let mut counts = std::collections::BTreeMap::new();
    for ((index, pass, order, runtime_mode), theirs) in ours.iter().zip(&theirs) {
        let mode = if *runtime_mode { "runtime" } else { "" };
        assert_eq!(order, theirs, "case {index}, {} {mode}", pass.name());
        *counts.entry((pass.name(), mode)).or_insert(0) += 1;
    }
    assert_eq!(ours.len(), theirs.len());
    println!("agree: {counts:?}");
}
