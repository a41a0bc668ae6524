use graph_oracle::format::json;
use graph_oracle::ops::Ops;
use graph_oracle::semantics::extents::*;
use std::time::Instant;
fn main() {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let graphs: Vec<_> = paths.iter().map(|p| json::read_path(p).unwrap().into_graph().unwrap()).collect();
    let ops: Vec<_> = graphs.iter().map(Ops::of).collect();
    for round in 0..3 {
        let t = Instant::now();
        let mut arena = Arena::new(&graphs[0].world, Limits::DEFAULT);
        let mut evals = Vec::new();
        for (g, o) in graphs.iter().zip(&ops) {
            let t = Instant::now();
            evals.push(evaluate(&mut arena, g, o));
            println!("  eval {:?}", t.elapsed());
        }
        println!(
            "all {:?} stored runs {} values {}",
            t.elapsed(),
            arena.stored_runs(),
            arena.stored_values()
        );
        if round == 0 {
            for (e, p) in evals.iter().zip(&paths) {
                println!(
                    "{p}: outputs {} mutations {} (changed {}) effects {} launches {} hazards {} runs {} broken {:?}",
                    e.outputs.len(),
                    e.mutations.len(),
                    e.mutations.iter().filter(|m| !m.unchanged).count(),
                    e.effects.len(),
                    e.launches.len(),
                    e.hazards.len(),
                    e.runs,
                    e.broken
                );
                for (n, r) in e.unknowns().take(10) {
                    println!("   unknown {} {}: {r}", e.graph.name(n), e.graph.target(n));
                }
                for h in e.hazards.iter().take(5) {
                    println!("   hazard {} {:?}", e.graph.name(h.node), h.kind);
                }
            }
            if evals.len() == 2 {
                let same = evals[0]
                    .outputs
                    .iter()
                    .zip(&evals[1].outputs)
                    .filter(|(a, b)| a.value == b.value)
                    .count();
                println!("outputs equal {same} of {} / {}", evals[0].outputs.len(), evals[1].outputs.len());
            }
        }
    }
}
