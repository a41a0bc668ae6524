//! What collectives carry, and what the users of removed waits read.

use super::support::graph;
use graph_oracle::graph::Graph;
use graph_oracle::ops::Ops;
use graph_oracle::passes::bucketing::{Config, bucket};
use graph_oracle::semantics::symbolic::{Arena, Limits, PayloadIndex, Payloads, evaluate, payload_members};

fn payloads(before: &Graph, after: &Graph) -> Payloads {
    let mut arena = Arena::new(&before.world, Limits::DEFAULT);
    let (old, new) = (Ops::of(before), Ops::of(after));
    let before = evaluate(&mut arena, before, &old);
    let after = evaluate(&mut arena, after, &new);
    payload_members(&mut arena, &before, &after)
}

fn at(launch: usize) -> PayloadIndex {
    PayloadIndex { launch, payload: 0 }
}

const BEFORE: &str = "x0 = input: f32[4]\nx1 = input: f32[2]\nx2 = input: f32[6]
    c1 = cast(x1, f32): f32[2]
    g0 = all_gather(x0, g): f32[8]\nw0 = wait(g0): f32[8]
    g1 = all_gather(c1, g): f32[4]\nw1 = wait(g1): f32[4]
    r2 = reduce_scatter(x2, \"sum\", g): f32[3]\nw2 = wait(r2): f32[3]
    r3 = reduce_scatter(x0, \"sum\", g): f32[2]\nw3 = wait(r3): f32[2]
    y0 = relu(w0): f32[8]\ny1 = relu(w1): f32[4]\noutput (y0, y1, w2, w3)";

fn bucketed(before: &Graph, mode: &str) -> Graph {
    let options = [("mode".to_string(), mode.to_string())];
    bucket(before, &Config::from_options(&options).unwrap()).unwrap().graph
}

#[test]
fn every_collective_is_found_in_its_bucket() {
    let before = graph(BEFORE);
    for mode in ["default", "functional", "custom_ops", "coalesced"] {
        let after = bucketed(&before, mode);
        let found = payloads(&before, &after);
        assert_eq!(found.not_once().count(), 0, "{mode}: {found:?}");
        assert_eq!(found.extra, [], "{mode}");
        let mut places: Vec<(usize, usize, i64, i64)> = found
            .members
            .iter()
            .flatten()
            .map(|m| (m.before.launch, m.after.payload, m.elements.start, m.elements.end))
            .collect();
        places.sort();
        let scatters =
            if mode == "coalesced" { [(2, 0, 0, 3), (3, 1, 0, 2)] } else { [(2, 0, 0, 3), (3, 0, 3, 5)] };
        assert_eq!(places, [&[(0, 0, 0, 4), (1, 0, 4, 6)][..], &scatters[..]].concat(), "{mode}");
    }
}

#[test]
fn what_is_lost_or_doubled_is_counted() {
    let before = graph(BEFORE);
    let lost = graph(
        &BEFORE
            .replace("g1 = all_gather(c1, g): f32[4]\nw1 = wait(g1): f32[4]\n", "")
            .replace("relu(w1): f32[4]", "relu(c1): f32[2]"),
    );
    let found = payloads(&before, &lost);
    assert_eq!(found.not_once().collect::<Vec<_>>(), [(at(1), 0)]);
    let doubled = graph(&BEFORE.replace(
        "g1 = all_gather(c1, g): f32[4]\n",
        "g1 = all_gather(c1, g): f32[4]\n d = all_gather(x0, g): f32[8]\n",
    ));
    assert_eq!(payloads(&before, &doubled).not_once().collect::<Vec<_>>(), [(at(0), 2)]);
    // Elements that were not sent before.
    let other = graph(
        &BEFORE
            .replace("all_gather(c1, g): f32[4]", "all_gather(x2, g): f32[12]")
            .replace("wait(g1): f32[4]", "wait(g1): f32[12]"),
    );
    let found = payloads(&before, &other);
    assert_eq!(found.not_once().collect::<Vec<_>>(), [(at(1), 0)]);
    assert_eq!(found.extra, [(at(1), 0..6)]);
}

/// Two equal collectives need two places.
#[test]
fn equal_collectives_are_told_apart() {
    let twice = "x = input: f32[4]\na = all_gather(x, g): f32[8]\nv = wait(a): f32[8]
        b = all_gather(x, g): f32[8]\nw = wait(b): f32[8]\noutput (v, w)";
    let once = "x = input: f32[4]\na = all_gather(x, g): f32[8]\nv = wait(a): f32[8]\noutput (v, v)";
    let (twice, once) = (graph(twice), graph(once));
    assert_eq!(payloads(&twice, &twice).not_once().count(), 0);
    assert_eq!(payloads(&twice, &once).not_once().collect::<Vec<_>>(), [(at(1), 0)]);
    assert_eq!(payloads(&once, &twice).not_once().collect::<Vec<_>>(), [(at(0), 2)]);
}
