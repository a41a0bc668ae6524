//! `comm/*` of one rank: memory in flight.

use super::super::Checked;
use super::evidence::{Evidence, Explain};
use crate::analysis::in_flight::in_flight;
use crate::rules::Code;
use std::collections::BTreeSet;

/// Nobody touches what is in flight, who did not before.
pub(super) fn in_flight_untouched(evidence: &Evidence) -> Checked {
    let (mut findings, mut doubts) = (Vec::new(), Vec::new());
    for outcome in &evidence.outcomes {
        let (before, after) = (evidence.before(outcome), &outcome.after);
        let of = |side: &super::super::AnalyzedGraph| {
            let found = in_flight(side.graph, &side.ops, side.storages(), &side.collectives);
            found
                .into_iter()
                .map(|f| {
                    let launch = side.collectives.calls[f.launch].node;
                    let key =
                        (side.graph.name(f.node).to_string(), side.graph.name(launch).to_string(), f.what);
                    (key, f.describe(side.graph, &side.collectives), f.certain)
                })
                .collect::<Vec<_>>()
        };
        let was: BTreeSet<_> = of(before).into_iter().map(|(key, _, _)| key).collect();
        // Of a launch that nobody waits for only the first node is told; whatever follows it is inside as well. A wait
        // that seems to end nothing may be its own, through memory that is not followed.
        let all_end = before.collectives.idle_waits.is_empty()
            && before.graph.ids().all(|id| before.collectives.first_wait(id) == id);
        let followed = |node: &str, start: &str| {
            let (node, start) = (before.graph.find(node), before.graph.find(start));
            let is_endless = |start| {
                let launch = before.collectives.launch_at(start);
                launch.is_some_and(|launch| before.collectives.waits[launch].is_empty())
            };
            all_end && start.is_some_and(|start| node > Some(start) && is_endless(start))
        };
        for (key, told, certain) in of(after) {
            if was.contains(&key) || followed(&key.0, &key.1) {
                continue;
            }
            if !certain {
                doubts.push(told);
                continue;
            }
            let nodes: Vec<_> =
                [&key.0, &key.1].into_iter().filter_map(|name| before.graph.find(name)).collect();
            let (node, start) = (key.0, key.1);
            findings.push(
                evidence
                    .finding("comm/in-flight-untouched", outcome, told)
                    .with_nodes(evidence, outcome, &nodes)
                    .contrast(
                        format!("until {start} is waited for, its memory belongs to it"),
                        format!("before, {node} stood outside the flight of {start}; after, it is inside"),
                    ),
            );
        }
    }
    Checked::found(findings, doubts.first().map(|doubt| Code::UncertainDependence.because(doubt)))
}
