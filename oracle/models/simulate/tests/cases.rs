use super::*;
use crate::format::text;

/// The lines of what is told.
fn told(report: &Report) -> Vec<String> {
    report.to_string().lines().map(str::to_string).collect()
}

const PAIR: &[(&str, &[&[u32]])] = &[("dp", &[&[0, 1]])];

#[test]
fn a_different_order_on_one_group_is_a_mismatch() {
    let mut a = program("g dp; wait g");
    a.operations[0].numel_in = Some(4);
    let mut b = a.clone();
    b.operations[0].numel_in = Some(8);
    let report = simulate(&programs(world(2, PAIR), vec![a, b]), Options::default());
    assert_eq!(
        told(&report),
        [
            "launch 0 on dp: rank 0 launches g (all_reduce, 4 elements), however rank 1 launches g (all_reduce, 8 elements): \
          the two are taken for one collective, or wait for ever"
        ]
    );
    let report = run(world(2, PAIR), &["g dp; h dp; wait h", "g dp"], Options::default());
    assert!(told(&report)[0].contains("however rank 1 launches nothing more"), "{report}");
}

#[test]
fn two_groups_waited_for_crosswise() {
    let groups: &[(&str, &[&[u32]])] = &[("dp", &[&[0, 1]]), ("tp", &[&[0, 1]])];
    let report = run(
        world(2, groups),
        &["g dp; wait g; h tp; wait h", "h tp; wait h; g dp; wait g"],
        Options::default(),
    );
    assert_eq!(
        told(&report),
        [
            "rank 0 waits at wait_g for g on dp: rank 1, at wait_h, has not launched g (launch 0 on dp)",
            "rank 1 waits at wait_h for h on tp: rank 0, at wait_g, has not launched h (launch 0 on tp)",
            "neither can go on",
        ]
    );
    // Launched before either is waited for, they pass each other on streams of their own, but not on one.
    let crossed = ["g dp; h tp; wait g; wait h", "h tp; g dp; wait g; wait h"];
    let apart = run(world(2, groups), &crossed, Options::default());
    assert_eq!(apart.finishes(), Some(true), "{apart}");
    let one = Options { streams: Streams::One, ..Options::default() };
    let report = run(world(2, groups), &crossed, one);
    assert_eq!(
        told(&report),
        [
            "rank 0 waits at wait_g for g on dp: rank 1 has g behind h on tp in its stream",
            "rank 1 waits at wait_g for h on tp: rank 0 has h behind g on dp in its stream",
            "neither can go on",
        ]
    );
}

#[test]
fn on_one_stream_messages_and_collectives_hold_each_other_up() {
    let one = Options { streams: Streams::One, ..Options::default() };
    let crossed = ["send s 1 dp; g dp; wait s; wait g", "g dp; recv r 0 dp; wait r; wait g"];
    assert_eq!(run(world(2, PAIR), &crossed, Options::default()).finishes(), Some(true));
    assert_eq!(
        told(&run(world(2, PAIR), &crossed, one)),
        [
            "rank 0 waits at wait_s for s on dp: rank 1 has r behind g on dp in its stream",
            "rank 1 waits at wait_r for g on dp: rank 0 has g behind s on dp in its stream",
            "neither can go on",
        ]
    );
    let alike = ["send s 1 dp; g dp; wait s; wait g", "recv r 0 dp; g dp; wait r; wait g"];
    assert_eq!(run(world(2, PAIR), &alike, one).finishes(), Some(true));
    // In a ring all send first: messages do not hold each other up.
    let ring: &[(&str, &[&[u32]])] = &[("pp", &[&[0, 1, 2]])];
    let ring_of =
        |to: u32, from: u32| format!("send s {to} pp; recv r {from} pp; wait s; wait r; g pp; wait g");
    let texts = [ring_of(1, 2), ring_of(2, 0), ring_of(0, 1)];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    assert_eq!(run(world(3, ring), &texts, one).finishes(), Some(true));
}

/// The witness of K7: even ranks barrier, send, receive; odd ranks barrier, receive, send. Moving the receive over
/// the send on even ranks makes everybody wait to receive first.
#[test]
fn messages_moved_over_messages() {
    let groups: &[(&str, &[&[u32]])] = &[("pp", &[&[0, 1]])];
    let odd = "barrier b pp; recv r 0 pp; wait r; send s 0 pp; wait s";
    let right = "barrier b pp; send s 1 pp; wait s; recv r 1 pp; wait r";
    let wrong = "barrier b pp; recv r 1 pp; wait r; send s 1 pp; wait s";
    for messages in [Messages::Rendezvous, Messages::Blocking, Messages::Buffered] {
        let options = Options { messages, ..Options::default() };
        assert_eq!(run(world(2, groups), &[right, odd], options).finishes(), Some(true));
        let report = run(world(2, groups), &[wrong, odd], options);
        assert_eq!(report.finishes(), Some(false), "{messages:?}");
        assert_eq!(
            report.deadlock.as_ref().map(|d| (d.is_circle, d.chain.len())),
            Some((true, 2)),
            "{report}"
        );
    }
    let report = run(world(2, groups), &[wrong, odd], Options::default());
    assert_eq!(
        told(&report),
        [
            "rank 0 waits at wait_r for r on pp: rank 1 does not send, it first receives r",
            "rank 1 waits at wait_r for r on pp: rank 0 does not send, it first receives r",
            "neither can go on",
        ]
    );
}

#[test]
fn what_is_wrong_with_the_input_is_named() {
    let report = run(world(2, &[("dp", &[&[0, 5]])]), &["g dp", "g dp"], Options::default());
    assert_eq!(told(&report), ["process group \"dp\" lists rank 5, but the world has ranks 0 to 1"]);
    let report = run(world(2, PAIR), &["send s 7 dp; wait s", "send s 1 dp"], Options::default());
    assert_eq!(
        told(&report),
        [
            "the peer of s on rank 0 is 7, but process group \"dp\" has 2 ranks",
            "the peer of s on rank 1 is that rank itself",
        ]
    );
    let report = run(world(2, PAIR), &["send s 1 dp; wait s", ""], Options::default());
    assert_eq!(
        told(&report),
        [
            "rank 0 sends s to rank 1 on dp, which has no receive for it: message 0 from 0 to 1 has no other end"
        ]
    );
    let report = run(world(3, &[("dp", &[&[0, 1]])]), &["g dp", "g dp", "g dp"], Options::default());
    assert_eq!(told(&report), ["rank 2 launches g on process group \"dp\", which it does not belong to"]);
}

/// A pipeline of 4 stages, 2 replicas of each, one forward and one backward at a time (1F1B) over `micro`
/// microbatches. In the steady state a stage sends its activation on and the next one sends its gradient back: if
/// both send first (`naive`), neither receives. Megatron batches the two into one call (`batched`).
fn pipeline(micro: usize, batched: bool) -> Programs {
    let stages = 4usize;
    let world =
        world(8, &[("pp", &[&[0, 2, 4, 6], &[1, 3, 5, 7]]), ("dp", &[&[0, 1], &[2, 3], &[4, 5], &[6, 7]])]);
    let of_stage = |stage: usize| {
        let mut p = Program::default();
        let compute = |p: &mut Program, name: String, nanoseconds: u64| {
            p.steps.push(Step::Compute { name, nanoseconds });
        };
        let message = |p: &mut Program, sends: bool, name: String, peer: usize| {
            let at = p.launch(Operation::message(&name, "pp", sends, peer as i64));
            p.wait(&format!("wait_{name}"), at);
        };
        let both = |p: &mut Program, sent: String, received: String, peer: usize| {
            if batched {
                let part = |sends| Part { sends, peer: peer as i64, dtype: None, numel: None, tag: 0 };
                let name = format!("{sent}_{received}");
                let batch = Operation {
                    parts: vec![part(true), part(false)],
                    ..Operation::collective(&name, "pp", Collective::PointToPoint)
                };
                let at = p.launch(batch);
                p.wait(&format!("wait_{name}"), at);
            } else {
                message(p, true, sent, peer);
                message(p, false, received, peer);
            }
        };
        let (first, last) = (stage == 0, stage == stages - 1);
        let warmup = (stages - 1 - stage).min(micro);
        let steady = micro - warmup;
        for m in 0..warmup {
            if !first {
                message(&mut p, false, format!("recv_activation_{m}"), stage - 1);
            }
            compute(&mut p, format!("forward_{m}"), 1000);
            message(&mut p, true, format!("send_activation_{m}"), stage + 1);
        }
        if steady > 0 && !first {
            message(&mut p, false, format!("recv_activation_{warmup}"), stage - 1);
        }
        for i in 0..steady {
            let m = warmup + i;
            compute(&mut p, format!("forward_{m}"), 1000);
            if !last {
                both(&mut p, format!("send_activation_{m}"), format!("recv_gradient_{i}"), stage + 1);
            }
            compute(&mut p, format!("backward_{i}"), 2000);
            match (first, i + 1 == steady) {
                (true, _) => {}
                (false, true) => message(&mut p, true, format!("send_gradient_{i}"), stage - 1),
                (false, false) => {
                    both(
                        &mut p,
                        format!("send_gradient_{i}"),
                        format!("recv_activation_{}", m + 1),
                        stage - 1,
                    );
                }
            }
        }
        for i in steady..micro {
            if !last {
                message(&mut p, false, format!("recv_gradient_{i}"), stage + 1);
            }
            compute(&mut p, format!("backward_{i}"), 2000);
            if !first {
                message(&mut p, true, format!("send_gradient_{i}"), stage - 1);
            }
        }
        let at = p.launch(Operation::collective("reduce_gradients", "dp", Collective::AllReduce));
        p.wait("wait_reduce_gradients", at);
        p
    };
    Programs {
        programs: (0..stages).map(of_stage).collect(),
        of_rank: (0..8).map(|rank| rank / 2).collect(),
        world,
    }
}

#[test]
fn one_forward_one_backward() {
    for micro in [1, 2, 4, 8, 16] {
        let report = simulate(&pipeline(micro, true), Options::default());
        assert_eq!(report.finishes(), Some(true), "{micro} microbatches: {report}");
    }
    let report = simulate(&pipeline(8, false), Options::default());
    assert_eq!(report.finishes(), Some(false));
    assert_eq!(
        told(&report),
        [
            "rank 4 waits at wait_send_activation_1 for send_activation_1 on pp: rank 6 does not receive, it first sends \
             send_gradient_0",
            "rank 6 waits at wait_send_gradient_0 for send_gradient_0 on pp: rank 4 does not receive, it first sends \
             send_activation_1",
            "neither can go on",
        ]
    );
    // Buffered, it happens to work.
    let buffered = Options { messages: Messages::Buffered, ..Options::default() };
    assert_eq!(simulate(&pipeline(8, false), buffered).finishes(), Some(true));
}

#[test]
fn exposed_is_what_computation_does_not_hide() {
    let mut p = program("g dp; compute a 300; wait g; h dp; compute b 2000; wait h");
    p.operations.iter_mut().for_each(|operation| operation.nanoseconds = 1000);
    let programs = Programs { programs: vec![p], of_rank: vec![0, 0], world: world(2, PAIR) };
    let report = simulate(&programs, Options::default());
    let track = &report.timeline.tracks[0];
    let flights: Vec<_> = track.flights.iter().map(|f| (f.started, f.ended, f.exposed, f.hiding())).collect();
    assert_eq!(flights, [(0, 1000, 700, Some(0..300)), (1000, 2000, 0, Some(1000..3000))]);
    assert_eq!((report.timeline.exposed(), report.timeline.end()), (700, 3000));
    let trace = trace(&programs, &report.timeline);
    let events = trace["traceEvents"].as_array().unwrap();
    let waits: Vec<_> = events.iter().filter(|event| event["cat"] == "exposed").collect();
    assert_eq!(waits.len(), 1);
    assert_eq!(
        (waits[0]["name"].as_str(), waits[0]["ts"].as_f64(), waits[0]["dur"].as_f64()),
        (Some("wait for g"), Some(0.3), Some(0.7))
    );
    assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 5);
}

/// A rank waits for one that is slower.
#[test]
fn a_collective_starts_when_the_last_rank_comes() {
    let report = run(world(2, PAIR), &["g dp; wait g", "compute late 50; g dp; wait g"], Options::default());
    let exposed: Vec<u64> = report.timeline.tracks.iter().map(Track::exposed).collect();
    assert_eq!(exposed, [50, 0]);
}

#[test]
fn graphs_are_lowered() {
    let source = "world 4 ranks, groups dp = [0 1 | 2 3], pp = [0 2 | 1 3]
x = input : f32[4]
g = all_gather(x, dp)
b = barrier(x, pp, [0]) : ?
s = send(x, 1, 0, pp)
w = wait(g)
ws = wait(s)
output (w, ws)";
    let mut graph = text::parse(source).unwrap_or_else(|e| panic!("{}", e.render(None))).graph;
    let sender = Program::of(&graph, &Estimates::default());
    let steps: Vec<String> = sender
        .steps
        .iter()
        .map(|step| match step {
            Step::Launch(at) => sender.operations[*at].to_string(),
            Step::Wait { name, .. } => name.clone(),
            Step::Compute { name, .. } => name.clone(),
        })
        .collect();
    assert_eq!(
        steps,
        [
            "g (all_gather of float32, 4 to 8 elements)",
            "b (barrier of float32, 4 elements)",
            "b",
            "s (send of float32, 4 elements)",
            "w",
            "ws",
        ]
    );
    let receiver = source.replace("s = send(x, 1, 0, pp)", "s = recv(x, 0, 0, pp)");
    let other = text::parse(&receiver).unwrap_or_else(|e| panic!("{}", e.render(None))).graph;
    let report = simulate(
        &Programs::per_rank(&[&graph, &other], &[0, 0, 1, 1], &Estimates::default()),
        Options::default(),
    );
    assert_eq!(report.finishes(), Some(true), "{report}");
    graph.world.ranks = Some(3);
    let report = simulate(&Programs::spmd(&graph, &Estimates::default()), Options::default());
    assert_eq!(report.finishes(), Some(false), "{report}");
}

#[test]
fn real_graphs_finish() {
    for (name, ranks) in [("llama3_8b_bw_64_1d", 64), ("llama3_8b_fw_256_2d", 256), ("dsv3_fw_64", 64)] {
        let Some(graph) = crate::recorded::graph(name) else { continue };
        let programs = Programs::spmd(&graph, &Estimates::default());
        assert_eq!(programs.of_rank.len(), ranks, "{name}");
        let start = std::time::Instant::now();
        let report = simulate(&programs, Options::default());
        println!(
            "{name}: {ranks} ranks in {} classes, {} launches, exposed {} us of {} us, simulated in {:?}",
            report.timeline.tracks.len(),
            programs.programs[0].operations.len(),
            report.timeline.exposed() / 1000,
            report.timeline.end() / 1000,
            start.elapsed()
        );
        assert_eq!(report.finishes(), Some(true), "{name}: {report}");
        assert_eq!(report.timeline.tracks.len(), 1, "{name}");
    }
}

/// 10,000 nodes on 64 ranks, and 8 distinct programs of 10,000 nodes: `cargo test -- --nocapture` shows the times.
#[test]
fn large_programs() {
    let mut source = String::from("world 64 ranks, groups dp = [");
    (0..64).for_each(|rank| source += &format!("{rank} "));
    source += "]\nx0 = input : f32[64]\n";
    let mut last = "x0".to_string();
    for layer in 0..1250 {
        source += &format!("in{layer} = relu({last})\ngather{layer} = all_reduce(in{layer}, 'sum', dp)\n");
        for step in 0..4 {
            let before = if step == 0 { format!("in{layer}") } else { format!("step{layer}_{}", step - 1) };
            source += &format!("step{layer}_{step} = neg({before})\n");
        }
        source +=
            &format!("wait{layer} = wait(gather{layer})\nsum{layer} = add(wait{layer}, step{layer}_3)\n");
        last = format!("sum{layer}");
    }
    source += &format!("output {last}");
    let graph = text::parse(&source).unwrap_or_else(|e| panic!("{}", e.render(None))).graph;
    let start = std::time::Instant::now();
    let programs = Programs::spmd(&graph, &Estimates::default());
    let lowered = start.elapsed();
    let report = simulate(&programs, Options::default());
    println!("{} nodes on 64 ranks: lowered in {lowered:?}, all in {:?}", graph.len(), start.elapsed());
    assert_eq!(report.finishes(), Some(true));
    assert_eq!(report.timeline.tracks.len(), 1);

    let micro = 1650;
    let pipeline = pipeline(micro, true);
    let mut programs =
        Programs { programs: Vec::new(), of_rank: (0..8).collect(), world: pipeline.world.clone() };
    programs.programs = pipeline.of_rank.iter().map(|&stage| pipeline.programs[stage].clone()).collect();
    let start = std::time::Instant::now();
    let report = simulate(&programs, Options::default());
    let steps: Vec<usize> = programs.programs.iter().map(|program| program.steps.len()).collect();
    println!("8 programs of {steps:?} steps: {:?}", start.elapsed());
    assert_eq!(report.finishes(), Some(true));
    assert_eq!(report.timeline.tracks.len(), 8);
}

/// What one rank sends must be what the other expects; which of them it is does not matter.
#[test]
fn all_to_all_parts_fit_each_other() {
    let graph = |sent: &str, expected: &str, rows: usize| {
        let source = format!(
            "world 2 ranks, groups ep = [0 1]\nx = input : f32[4, 2]\na = all_to_all(x, {expected}, {sent}, ep) : \
             f32[{rows}, 2]\nw = wait(a)\noutput w"
        );
        text::parse(&source).unwrap_or_else(|e| panic!("{}", e.render(None))).graph
    };
    let told = |second: &Graph| {
        let first = graph("[1, 3]", "[1, 1]", 2);
        let programs = Programs::per_rank(&[&first, second], &[0, 1], &Estimates::default());
        simulate(&programs, Options::default()).to_string()
    };
    assert_eq!(told(&graph("[1, 3]", "[3, 3]", 6)), "all ranks finish\n");
    assert_eq!(
        told(&graph("[1, 3]", "[2, 3]", 5)),
        "launch 0 on ep: rank 0 sends rank 1 6 elements in a, however rank 1 expects 4 from rank 0 in a\n"
    );
    // A graph for all ranks has the sizes of the rank that it was recorded on.
    let alone = graph("[1, 3]", "[2, 2]", 4);
    let report = simulate(&Programs::spmd(&alone, &Estimates::default()), Options::default());
    assert_eq!(report.finishes(), Some(true));
}

/// Two collectives that differ in what they compute meet unseen: same kind, dtype and number of elements.
#[test]
fn equal_sizes_are_not_the_same_collective() {
    let graph = |lines: &[&str]| {
        let body = lines.join("\n");
        let source = format!(
            "world 2 ranks, groups dp = [0 1]\nx = input : f32[64, 14]\ny = input : f32[224, 4]\n{body}\noutput (v, w)"
        );
        text::parse(&source).unwrap_or_else(|e| panic!("{}", e.render(None))).graph
    };
    let told = |first: &Graph, second: &Graph| {
        let programs = Programs::per_rank(&[first, second], &[0, 1], &Estimates::default());
        simulate(&programs, Options::default()).to_string()
    };
    let r = "r = reduce_scatter(x, \"sum\", dp)";
    let s = "s = reduce_scatter(y, \"sum\", dp)";
    let waits = "v = wait(r)\nw = wait(s)";
    let (right, wrong) = (graph(&[r, s, waits]), graph(&[s, r, waits]));
    assert_eq!(told(&right, &right.clone()), "all ranks finish\n");
    assert_eq!(
        told(&right, &wrong),
        "launch 0 on dp: rank 0 launches r (reduce_scatter sum of float32, 896 to 448 elements), however rank 1 launches s \
         (reduce_scatter sum of float32, 896 to 448 elements) there, and r as launch 1: the two meet, and their data are \
         mixed up\n"
    );
    // Names that trade places do not matter while the collectives stand where they belong.
    let renamed = wrong.with_names(|id| match wrong.name(id) {
        "r" => "s".to_string(),
        "s" => "r".to_string(),
        name => name.to_string(),
    });
    assert!(told(&wrong, &renamed).starts_with("all ranks finish"), "{}", told(&wrong, &renamed));
    // Also where each rank has numbers of its own, and where nothing but names and shapes agrees.
    let (r, s) = (&r.replace('x', "a"), &s.replace('y', "b"));
    let numbered = |n: i64, lines: [&str; 2]| {
        graph(&[&format!("a = mul(x, {n})\nb = neg(y)"), lines[0], lines[1], waits])
    };
    assert_eq!(told(&numbered(1, [r, s]), &numbered(2, [r, s])), "all ranks finish\n");
    assert!(told(&numbered(1, [r, s]), &numbered(2, [s, r])).contains("data are mixed up"));
    // Numbers alone that trade places may be those of each rank.
    let of_rank = |m: i64, n: i64| graph(&[&format!("a = mul(x, {m})\nb = mul(x, {n})"), r, s, waits]);
    assert!(told(&of_rank(1, 2), &of_rank(2, 1)).starts_with("warning: launch 0 on dp"));
    let other = graph(&["a = relu(x)\nb = relu(y)", s, r, waits]);
    assert!(told(&right, &other).contains("data are mixed up"));
}

/// Stages of a pipeline run graphs of their own. That shapes or names differ between them is no error.
#[test]
fn stages_with_graphs_of_their_own_are_warned_about_at_most() {
    let graph = |shape: &str, op: &str| {
        let source = format!(
            "world 2 ranks, groups dp = [0 1]\nx = input : {shape}\na = {op}(x)\nr = all_reduce(a, \"sum\", dp)\n\
             w = wait(r)\noutput w"
        );
        text::parse(&source).unwrap_or_else(|e| panic!("{}", e.render(None))).graph
    };
    let report = |first: &Graph, second: &Graph| {
        let programs = Programs::per_rank(&[first, second], &[0, 1], &Estimates::default());
        simulate(&programs, Options::default())
    };
    let first = graph("f32[8]", "relu");
    assert_eq!(report(&first, &graph("f32[8]", "neg")).warnings, [""; 0]);
    let other = report(&first, &graph("f32[2, 4]", "neg"));
    assert_eq!(other.finishes(), Some(true));
    assert_eq!(
        other.to_string().lines().next(),
        Some(
            "warning: launch 0 on dp: r of rank 0 meets r of rank 1; it is [8] to [8] there, and [2, 4] to [2, 4] here: the \
             two may be different collectives, whose data are mixed up"
        )
    );
}

/// The report on a graph that both ranks of a group run.
fn of_both(body: &str) -> Report {
    let source = format!(
        "world 2 ranks, groups tp = [0 1]\nx = input : f32[4]\ny = input : f32[4]\n{body}output (x, y)"
    );
    let graph = text::parse(&source).unwrap_or_else(|e| panic!("{}", e.render(None))).graph;
    simulate(&Programs::spmd(&graph, &Estimates::default()), Options::default())
}

#[test]
fn two_collectives_of_one_group_spin_at_once() {
    let sums = |order: &str| {
        of_both(&format!(
            "f = streams.wait_stream.default(1, 0)\n\
             a = symm_mem.two_shot_all_reduce_.default(x, \"sum\", tp) : f32[4]\n{order}\
             b = symm_mem.two_shot_all_reduce_.default(y, \"sum\", tp) : f32[4] {{custom: '{{\"stream\": 1}}'}}\n\
             j = streams.wait_stream.default(0, 1)\n"
        ))
    };
    let report = sums("");
    assert_eq!(report.finishes(), Some(false), "{report}");
    assert!(report.hangs[0].starts_with("b may start while a spins"), "{report}");
    assert_eq!(sums("g = streams.wait_stream.default(1, 0)\n").finishes(), Some(true));
}

#[test]
fn messages_of_other_tags_do_not_meet() {
    let pair = |tag: i64| {
        let mut receive = Operation::message("r", "pp", false, 0);
        receive.parts[0].tag = tag;
        let (mut first, mut second) = (Program::default(), Program::default());
        first.launch(Operation::message("s", "pp", true, 1));
        second.launch(receive);
        simulate(&programs(world(2, &[("pp", &[&[0, 1]])]), vec![first, second]), Options::default())
    };
    assert_eq!(pair(0).finishes(), Some(true));
    assert_eq!(
        told(&pair(5)),
        ["message 0 from rank 0 to rank 1 on pp is sent as s (send) and received as r (recv, tag 5)"]
    );
}
