use super::*;
use serde_json::Value;

fn ints(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u32).collect()
}

fn longs(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|v| v.as_i64().unwrap()).collect()
}

fn pairs(value: &Value) -> Vec<(i64, i64)> {
    let pair = |v: &Value| (v[0].as_i64().unwrap(), v[1].as_i64().unwrap());
    value.as_array().unwrap().iter().map(pair).collect()
}

/// The program of a line: buffers, then inputs.
fn read(case: &Value) -> Program {
    let declared = case["buffers"].as_array().unwrap();
    let mut buffers: Vec<Buffer> = declared
        .iter()
        .map(|b| {
            let (layout, parent) = match b[1].as_str().unwrap() {
                "none" => (Layout::Nothing, None),
                "parent" => (Layout::MultiOutput, None),
                "nested" => (Layout::MultiOutput, b[2].as_u64()),
                "child" => (Layout::Owned, b[2].as_u64()),
                _ => (Layout::Owned, None),
            };
            let parent = parent.map(|p| p as u32);
            Buffer { bytes: b[0].as_i64().unwrap(), layout, parent, ..Buffer::default() }
        })
        .collect();
    let kind = |fake: i64| if fake == 1 { Kind::Fake } else { Kind::Real };
    let mut nodes = Vec::new();
    for (i, row) in case["nodes"].as_array().unwrap().iter().enumerate() {
        let outputs = ints(&row["outs"]);
        outputs.iter().for_each(|&b| buffers[b as usize].by = Some(i as u32));
        let mut unmet: Vec<Dependency> = Vec::new();
        for (buffer, fake) in pairs(&row["deps"]) {
            let dependency = Dependency { buffer: buffer as u32, kind: kind(fake) };
            if !unmet.contains(&dependency) {
                unmet.push(dependency);
            }
        }
        nodes.push(Node { name: format!("n{i}"), outputs, unmet, of_inputs: Vec::new() });
    }
    for b in ints(&case["outputs"]) {
        buffers[b as usize].output = true;
    }
    for input in case["inputs"].as_array().unwrap() {
        let buffer = buffers.len() as u32;
        for (node, fake) in pairs(&input[1]) {
            nodes[node as usize].of_inputs.push(Dependency { buffer, kind: kind(fake) });
        }
        buffers.push(Buffer { bytes: input[0].as_i64().unwrap(), ..Buffer::default() });
    }
    buffers.iter_mut().enumerate().for_each(|(i, b)| b.name = format!("b{i}"));
    let real = pairs(&case["real"]).iter().map(|&(m, root)| (m as u32, root as u32)).collect();
    Program::from_dependencies(nodes, buffers, real).unwrap()
}

#[test]
fn plans_and_orders_are_those_of_pytorch() {
    // Other recordings of the same script may be named.
    let text = match std::env::var("MEMORY_ORDERS") {
        Ok(path) => std::fs::read_to_string(path).unwrap(),
        Err(_) => FIXTURE.to_string(),
    };
    let mut cases = 0;
    for (line, text) in text.lines().enumerate() {
        let case: Value = serde_json::from_str(text).unwrap();
        let p = read(&case);
        let planning = Planning::new(&p).unwrap();
        let made = case["buffers"].as_array().unwrap().len();
        let sizes: Vec<_> = planning.sizes[..made].iter().map(|s| (s.alloc, s.free)).collect();
        assert_eq!(sizes, pairs(&case["sizes"]), "sizes of case {line}");
        for b in 0..made {
            assert_eq!(planning.life.of(b as u32), ints(&case["life"][b]), "life of b{b} in case {line}");
            assert_eq!(planning.order.of(b as u32), ints(&case["order"][b]), "order of b{b} in case {line}");
        }
        let given: Vec<u32> = (0..p.nodes.len() as u32).collect();
        let timeline = Timeline::new(&p, &planning, &given).unwrap();
        let (peak, slots) = timeline.estimate().unwrap();
        assert_eq!((peak, slots), (case["peak"].as_i64().unwrap(), longs(&case["slots"])), "case {line}");
        assert_eq!(timeline.phases().unwrap().peak, peak, "case {line}");
        assert_eq!(timeline.live_before_steps().unwrap(), longs(&case["before"]), "case {line}");
        let threshold = case["threshold"].as_i64().unwrap();
        for (name, order) in [
            ("lpmf", lpmf(&p, &planning, threshold).unwrap()),
            ("bfs", bfs(&planning)),
            ("dfs", dfs(&planning)),
        ] {
            assert_eq!(order, ints(&case[name][0]), "{name} of case {line}");
            let (peak, _) = Timeline::new(&p, &planning, &order).unwrap().estimate().unwrap();
            assert_eq!(peak, case[name][1].as_i64().unwrap(), "{name} of case {line}");
        }
        let choice = reorder_for_peak_memory(&p, &planning, threshold).unwrap();
        assert_eq!(choice.order, ints(&case["best"]), "case {line}");
        windows(&p, &planning, &timeline);
        cases += 1;
    }
    assert!(cases >= 20, "only {cases} cases");
}

/// A window estimated by itself gives what the whole timeline gives.
fn windows(p: &Program, planning: &Planning, timeline: &Timeline) {
    let (before, phases) = (timeline.live_before_steps().unwrap(), timeline.phases().unwrap());
    let n = p.nodes.len() as u32;
    for start in (0..n).step_by(5) {
        let end = (start + 6).min(n - 1);
        let window: Vec<u32> = (start..=end).collect();
        let live = before[start as usize];
        let region = estimate_region(p, planning, &window, (start, end), &|node| node, live).unwrap();
        assert_eq!(region.before, before[start as usize..=end as usize + 1]);
        let after: Vec<i64> =
            phases.steps[start as usize..=end as usize].iter().map(|s| s.post_alloc).collect();
        assert_eq!(region.after, after);
        assert_eq!(region.peak, after.into_iter().max().unwrap().max(live));
    }
}

const FIXTURE: &str = include_str!("../../../../../tests/peer/memory_orders.jsonl");
