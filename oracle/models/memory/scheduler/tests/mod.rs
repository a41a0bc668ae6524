use super::orders::{bfs, dfs, lpmf};
use super::*;

/// Nodes with one buffer each: (name, bytes, reads).
fn program(nodes: &[(&str, i64, &[&str])], outputs: &[&str]) -> Program {
    let mut buffers = Vec::new();
    let mut declared = Vec::new();
    for (i, (name, bytes, reads)) in nodes.iter().enumerate() {
        let find = |of: &&str| buffers.iter().position(|b: &Buffer| b.name == *of).unwrap() as u32;
        let reads = reads.iter().map(find).collect();
        declared.push(Declared {
            name: name.to_string(),
            outputs: vec![i as u32],
            reads,
            ..Declared::default()
        });
        buffers.push(Buffer {
            name: name.to_string(),
            bytes: *bytes,
            by: Some(i as u32),
            output: outputs.contains(name),
            ..Buffer::default()
        });
    }
    Program::new(buffers, declared).unwrap()
}

fn names(program: &Program, order: &[u32]) -> String {
    order.iter().map(|&n| program.nodes[n as usize].name.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_worked_example() {
    let p = program(
        &[("a", 10, &[]), ("b", 30, &[]), ("c", 5, &["a"]), ("d", 5, &["b"]), ("e", 5, &["c", "d"])],
        &["e"],
    );
    let planning = Planning::new(&p).unwrap();
    let timeline = Timeline::new(&p, &planning, &[0, 1, 2, 3, 4]).unwrap();
    assert_eq!(timeline.estimate(), Some((45, vec![10, 40, 45, 40, 15, 5])));
    let phases = timeline.phases().unwrap();
    assert_eq!(phases.peak, 45);
    let steps: Vec<_> = phases.steps.iter().map(|s| (s.alloc, s.post_alloc, s.free, s.post_free)).collect();
    assert_eq!(steps, [(10, 10, 0, 10), (30, 40, 0, 40), (5, 45, 10, 35), (5, 40, 30, 10), (5, 15, 10, 5)]);
    assert_eq!(timeline.live_before_steps(), Some(vec![0, 10, 40, 35, 10, 5]));
    assert_eq!(names(&p, &lpmf(&p, &planning, 0).unwrap()), "a c b d e");
    assert_eq!(names(&p, &bfs(&planning)), "a b c d e");
    assert_eq!(names(&p, &dfs(&planning)), "a c b d e");
    let choice = reorder_for_peak_memory(&p, &planning, 0).unwrap();
    assert_eq!(choice.method, Method::Lpmf);
    assert_eq!(choice.peaks.iter().map(|p| p.1).collect::<Vec<_>>(), [45, 40, 45, 40]);
}

/// buf0 = op0(); buf1 = mutation_op_(buf0); buf2 = op2(buf1).
fn renamed() -> Program {
    let buffer =
        |name: &str, bytes, by| Buffer { name: name.into(), bytes, by: Some(by), ..Buffer::default() };
    let buffers = vec![
        buffer("buf0", 100, 0),
        Buffer { mutates: Some(0), layout: Layout::Nothing, ..buffer("buf1", 100, 1) },
        Buffer { output: true, ..buffer("buf2", 40, 2) },
    ];
    let node = |name: &str, output, reads: &[u32]| Declared {
        name: name.into(),
        outputs: vec![output],
        reads: reads.to_vec(),
        ..Declared::default()
    };
    // op2 reads buf0 by its old name: it gets the new one.
    Program::new(buffers, vec![node("op0", 0, &[]), node("op1", 1, &[]), node("op2", 2, &[0])]).unwrap()
}

#[test]
fn a_mutation_renames_at_no_cost() {
    let p = renamed();
    assert_eq!(p.nodes[2].unmet, [Dependency { buffer: 1, kind: Kind::Real }]);
    assert_eq!(p.real, [(1, 0)]);
    let planning = Planning::new(&p).unwrap();
    let sizes: Vec<_> = planning.sizes.iter().map(|s| (s.alloc, s.free)).collect();
    assert_eq!(sizes, [(100, 100), (0, 0), (40, 40)]);
    assert_eq!((planning.life.of(0), planning.life.of(1)), (&[1u32, 2][..], &[2u32][..]));
    let timeline = Timeline::new(&p, &planning, &[0, 1, 2]).unwrap();
    let lives: Vec<_> = timeline.records.iter().map(|r| (r.start, r.end)).collect();
    assert_eq!(lives, [(0, Some(2)), (1, Some(2)), (2, None)]);
    let phases = timeline.phases().unwrap();
    assert_eq!(phases.steps.iter().map(|s| s.post_alloc).collect::<Vec<_>>(), [100, 100, 140]);
    assert_eq!((phases.peak, phases.steps[2].post_free), (140, 40));
}

#[test]
fn a_mutation_waits_for_readers_and_keeps_views_alive() {
    let buffer = |name: &str, by| Buffer { name: name.into(), bytes: 8, by: Some(by), ..Buffer::default() };
    let buffers = vec![
        buffer("x", 0),
        Buffer { layout: Layout::Alias, aliases: vec![0], ..buffer("view", 1) },
        buffer("copy", 2),
        Buffer { layout: Layout::Nothing, mutates: Some(0), ..buffer("x2", 3) },
    ];
    let node = |name: &str, output, reads: &[u32]| Declared {
        name: name.into(),
        outputs: vec![output],
        reads: reads.to_vec(),
        ..Declared::default()
    };
    let declared =
        vec![node("x", 0, &[]), node("view", 1, &[0]), node("copy", 2, &[0]), node("write", 3, &[])];
    let p = Program::new(buffers, declared).unwrap();
    let kinds: Vec<_> = p.nodes[3].unmet.iter().map(|d| (d.buffer, d.kind)).collect();
    assert_eq!(kinds, [(0, Kind::Real), (1, Kind::Real), (2, Kind::Fake)]);
}

#[test]
fn a_multi_output_kernel_allocates_at_once_and_frees_one_by_one() {
    let buffer =
        |name: &str, bytes, by| Buffer { name: name.into(), bytes, by: Some(by), ..Buffer::default() };
    let buffers = vec![
        Buffer { layout: Layout::MultiOutput, ..buffer("buf0", 0, 0) },
        Buffer { parent: Some(0), ..buffer("buf1", 10, 1) },
        Buffer { parent: Some(0), ..buffer("buf2", 20, 2) },
    ];
    let declared = (0..3)
        .map(|i| Declared {
            name: format!("op{i}"),
            outputs: vec![i],
            reads: if i > 0 { vec![0] } else { vec![] },
            ..Declared::default()
        })
        .collect();
    let p = Program::new(buffers, declared).unwrap();
    let sizes: Vec<_> = Planning::new(&p).unwrap().sizes.iter().map(|s| (s.alloc, s.free)).collect();
    assert_eq!(sizes, [(30, 0), (0, 10), (0, 20)]);
}

#[test]
fn a_freeable_input_dies_after_the_last_reader_of_any_of_its_names() {
    let buffers = vec![
        Buffer { name: "x".into(), bytes: 64, ..Buffer::default() },
        Buffer { name: "arg0_1".into(), bytes: 64, protected: true, ..Buffer::default() },
        Buffer {
            name: "m".into(),
            by: Some(0),
            layout: Layout::Nothing,
            mutates: Some(0),
            ..Buffer::default()
        },
        Buffer { name: "y".into(), bytes: 4, by: Some(1), output: true, ..Buffer::default() },
    ];
    let declared = vec![
        Declared { name: "write".into(), outputs: vec![2], ..Declared::default() },
        Declared { name: "read".into(), outputs: vec![3], reads: vec![0, 1], ..Declared::default() },
    ];
    let p = Program::new(buffers, declared).unwrap();
    let planning = Planning::new(&p).unwrap();
    assert_eq!(planning.freeable, [0]);
    assert_eq!(planning.life.of(0), [0, 1]);
    let timeline = Timeline::new(&p, &planning, &[0, 1]).unwrap();
    assert_eq!(timeline.estimate(), Some((68, vec![64, 68, 4])));
    assert_eq!(timeline.phases().unwrap().peak, 68);
}

#[test]
fn names_protect_inputs() {
    for (name, subgraph, kept) in [
        ("primals_3", None, true),
        ("arg0_1", None, true),
        ("tangents_1", None, true),
        ("x", None, false),
        ("body_arg0", None, false),
        ("body_arg0", Some("body"), true),
        ("body_x", Some("body"), false),
        ("other_arg0", Some("body"), false),
    ] {
        assert_eq!(lower::is_protected(name, subgraph), kept, "{name} in {subgraph:?}");
    }
}

#[test]
fn a_chain_of_very_many_nodes() {
    // Seconds without optimisation.
    const N: u32 = if cfg!(debug_assertions) { 200_000 } else { 1_000_000 };
    let buffer = |i| Buffer { name: String::new(), bytes: 1, by: Some(i), ..Buffer::default() };
    let dependency = |i: u32| Dependency { buffer: i - 1, kind: Kind::Real };
    let nodes = (0..N).map(|i| Node {
        outputs: vec![i],
        unmet: if i == 0 { vec![] } else { vec![dependency(i)] },
        ..Node::default()
    });
    let p = Program::from_dependencies(nodes.collect(), (0..N).map(buffer).collect(), vec![]).unwrap();
    let planning = Planning::new(&p).unwrap();
    assert_eq!(planning.cycle(), None);
    for order in [lpmf(&p, &planning, 0).unwrap(), bfs(&planning), dfs(&planning)] {
        assert!(order.into_iter().eq(0..N));
    }
}

/// Nodes of one buffer or two that need some of those just before them, the same for the same seed.
fn random_program(seed: u64, most_bytes: u32) -> Program {
    let mut state = seed;
    let mut below = |n: u32| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 33) as u32) % n.max(1)
    };
    let (mut nodes, mut buffers) = (Vec::new(), Vec::new());
    for i in 0..1 + below(60) {
        let made = buffers.len() as u32;
        let mut unmet: Vec<Dependency> = Vec::new();
        for _ in 0..below(4).min(made) {
            let kind = if below(5) == 0 { Kind::Fake } else { Kind::Real };
            let dependency = Dependency { buffer: made - 1 - below(made.min(12)), kind };
            if !unmet.contains(&dependency) {
                unmet.push(dependency);
            }
        }
        let outputs: Vec<u32> = (made..=made + below(2)).collect();
        for &b in &outputs {
            let (bytes, output) = (i64::from(below(most_bytes)), below(8) == 0);
            buffers.push(Buffer { name: format!("b{b}"), bytes, by: Some(i), output, ..Buffer::default() });
        }
        nodes.push(Node { name: format!("n{i}"), outputs, unmet, ..Node::default() });
    }
    Program::from_dependencies(nodes, buffers, Vec::new()).unwrap()
}

/// Least peak memory first as it is stated: every choice looks at every node.
fn obvious_lpmf(p: &Program, planning: &Planning, threshold: i64) -> Vec<u32> {
    let n = p.nodes.len() as u32;
    let mut needed: Vec<usize> = (0..p.buffers.len())
        .map(|b| planning.life.of(b as u32).len() + usize::from(planning.kept[b]))
        .collect();
    let free = |b: u32| planning.sizes[b as usize].free;
    let kept = (0..p.buffers.len()).filter(|&b| planning.kept[b]).map(|b| free(b as u32));
    let (mut live, mut most, mut order, mut ready) = (0, kept.sum::<i64>(), Vec::<u32>::new(), Vec::new());
    loop {
        let comes = |&i: &u32| {
            !order.contains(&i)
                && !ready.contains(&i)
                && planning.before.of(i).iter().all(|before| order.contains(before))
        };
        // What becomes ready at once does so in the order of the followers of the node before.
        let last = order.last().map_or((0..n).collect(), |&last| planning.after.of(last).to_vec());
        let arrived: Vec<u32> = last.into_iter().filter(comes).collect();
        ready.extend(arrived);
        let to_free = |i: u32, needed: &[usize]| -> i64 {
            let needs = planning.needs.of(i).iter().filter(|&&b| needed[b as usize] == 1);
            let own = p.nodes[i as usize].outputs.iter().filter(|&&b| needed[b as usize] == 0);
            needs.chain(own).map(|&b| free(b)).sum()
        };
        let size = |i: u32| planning.size[i as usize];
        let chosen = match threshold > 0 && ready.iter().all(|&i| size(i) > threshold) {
            true => (0..ready.len())
                .min_by_key(|&at| planning.after.of(ready[at]).iter().min().copied().unwrap_or(n)),
            false => (0..ready.len()).min_by_key(|&at| {
                let i: u32 = ready[at];
                let above = if size(i) > most - live { size(i) } else { 0 };
                (above, size(i) - to_free(i, &needed), i)
            }),
        };
        let Some(at) = chosen else { return order };
        let i = ready.remove(at);
        live += size(i);
        most = most.max(live);
        live -= to_free(i, &needed);
        planning.needs.of(i).iter().for_each(|&b| needed[b as usize] -= 1);
        order.push(i);
    }
}

#[test]
fn lpmf_is_its_statement() {
    for seed in 0..600 {
        let p = random_program(seed, [2, 4, 100, 100_000][(seed % 4) as usize]);
        let planning = Planning::new(&p).unwrap();
        for threshold in [0, 2, 40] {
            let order = lpmf(&p, &planning, threshold).unwrap();
            assert_eq!(order, obvious_lpmf(&p, &planning, threshold), "seed {seed}, threshold {threshold}");
        }
    }
}

/// Random programs with what PyTorch 2.15 makes of them, recorded by tests/peer/memory_orders.py.
mod peer;
