//! What collectives carry, and what the users of removed waits read.

use super::support::graph;
use graph_oracle::graph::Graph;
use graph_oracle::ops::Ops;
use graph_oracle::passes::bucketing::{Config, bucket};
use graph_oracle::semantics::symbolic::{
    Arena, Limits, PayloadIndex, Payloads, Verdict, evaluate, payload_members, rewired,
};

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

#[test]
fn users_of_removed_waits() {
    let before = graph(BEFORE);
    let after = bucketed(&before, "default");
    let (old, new) = (Ops::of(&before), Ops::of(&after));
    let mut arena = Arena::new(&before.world, Limits::DEFAULT);
    let one = evaluate(&mut arena, &before, &old);
    let other = evaluate(&mut arena, &after, &new);
    let removed = rewired(&mut arena, &one, &other, &old);
    let names: Vec<&str> = removed.iter().map(|r| before.name(r.wait)).collect();
    assert_eq!(names, ["w0", "w1", "w2", "w3"]);
    for wait in &removed {
        assert_eq!(wait.readers.len(), 1);
        assert!(wait.readers.iter().all(|r| r.verdict == Verdict::Same), "{wait:?}");
    }
    // A user that reads another piece.
    let y1 = after.find("y1").unwrap();
    let y0_input = after.inputs(after.find("y0").unwrap())[0];
    let mut editor = graph_oracle::graph::Editor::new(&after);
    editor.replace_input(y1, after.inputs(y1)[0], y0_input);
    let wrong = editor.finish();
    let new = Ops::of(&wrong);
    let other = evaluate(&mut arena, &wrong, &new);
    let removed = rewired(&mut arena, &one, &other, &old);
    let bad: Vec<_> =
        removed.iter().flat_map(|r| &r.readers).filter(|r| r.verdict != Verdict::Same).collect();
    assert_eq!(bad.len(), 1);
    assert_eq!((before.name(bad[0].before), bad[0].verdict), ("y1", Verdict::Different));
    assert_eq!(bad[0].text, "float32[8], expected float32[4]");
}
