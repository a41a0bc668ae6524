//! Every generated case is valid, by analyses that know nothing of the generator.

use super::*;
use crate::analysis::topological::violations;
use crate::analysis::in_flight::in_flight;
use crate::analysis::{Collectives, Edges, Storages, storages::Mode};
use crate::ops::{Ops, shape};

fn case(seed: u64, index: u64) -> Generated {
    let mut source = Seeded::case(seed, index);
    let config = Config::swarm(&mut source);
    generate(&mut source, &config)
}

/// Everything that is wrong with a graph, in words. `sorted`: whether its list should be in order.
pub(super) fn graph_faults(graph: &Graph, sorted: bool) -> Vec<String> {
    let (ops, edges) = (Ops::of(graph), Edges::new(graph));
    let mut faults: Vec<String> = graph.world.faults().iter().map(ToString::to_string).collect();
    for id in graph.ids() {
        for fault in shape::check(graph, &ops, id) {
            faults.push(format!("{}: {fault}", graph.name(id)));
        }
        if graph.find(graph.name(id)) != Some(id) {
            faults.push(format!("{} is the name of two nodes", graph.name(id)));
        }
    }
    if sorted {
        faults.extend(violations(graph, &edges).into_iter().map(|violation| violation.tell(graph)));
        let collectives = Collectives::new(graph, &ops);
        let storages = Storages::new(graph, &ops, &edges, &collectives, Mode::Physical);
        for intrusion in in_flight(graph, &ops, &storages, &collectives) {
            faults.push(intrusion.tell(graph, &collectives));
        }
        for (call, waits) in collectives.calls.iter().zip(&collectives.waits) {
            if waits.is_empty() && call.kind != crate::ops::Collective::Barrier {
                faults.push(format!("{} is never waited for", graph.name(call.node)));
            }
        }
    }
    faults.extend(crate::analysis::validate::validate(graph).iter().filter(|f| f.is_fatal() && !f.concerns_order()).map(ToString::to_string));
    faults
}

#[test]
fn every_case_is_valid() {
    for index in 0..3000 {
        let generated = case(1, index);
        let faults = graph_faults(&generated.graph, generated.pass != Pass::Repair);
        assert!(faults.is_empty(), "case {index}:\n{}\n{}", faults.join("\n"), generated.into_case());
    }
}


#[test]
fn distribution() {
    let cases = 20_000u64;
    let threads = 2;
    let counted = std::thread::scope(|scope| {
        let count = |from: u64| {
            let mut counts = vec![0u64; Feature::ALL.len()];
            let (mut useless, mut eligible, mut nodes) = (0u64, Vec::new(), 0);
            for index in (from..cases).step_by(threads) {
                let generated = case(2, index);
                let survey = generated.survey();
                survey.features.iter().for_each(|feature| counts[feature as usize] += 1);
                useless += u64::from(!survey.useful);
                eligible.push(survey.eligible_buckets);
                nodes += generated.graph.len();
            }
            (counts, useless, eligible, nodes)
        };
        let handles: Vec<_> = (0..threads as u64).map(|from| scope.spawn(move || count(from))).collect();
        handles.into_iter().map(|h| h.join().unwrap()).collect::<Vec<_>>()
    });
    let mut eligible: Vec<usize> = counted.iter().flat_map(|c| c.2.iter().copied()).collect();
    eligible.sort();
    println!("useless {}%", counted.iter().map(|c| c.1).sum::<u64>() as f64 * 100.0 / cases as f64);
    println!("median eligible {}, nodes {}", eligible[eligible.len() / 2], counted.iter().map(|c| c.3).sum::<usize>() / cases as usize);
    for &feature in Feature::ALL {
        let count: u64 = counted.iter().map(|c| c.0[feature as usize]).sum();
        println!("{:5.1}% {}", count as f64 * 100.0 / cases as f64, feature.name());
    }
}
