use crate::common::recorded::{beside, read};
use graph_oracle::format::text;
use graph_oracle::generate::{Seeded, memory::MemoryCases};
use graph_oracle::graph::{Editor, Graph, NodeId, Op};
use graph_oracle::lifecycle::{Mode, Prediction, Verifier, events_of_replay};
use graph_oracle::memory::difference::first_difference;
use graph_oracle::memory::profile::{not_placeholder, not_primals, profile_of, recorded_ledger};
use graph_oracle::memory::replay::{Facts, Options, replay_facts};
use graph_oracle::memory::*;

fn named_as(wanted: impl Fn(&str) -> bool) -> Vec<(String, Graph)> {
    let name =
        |path: &std::path::Path| Some(path.file_name()?.to_str()?.strip_suffix(".json.gz")?.to_string());
    let files = beside().into_iter().filter_map(|path| Some((name(&path)?, path)));
    let files = files.filter(|(name, _)| wanted(name));
    files.map(|(name, path)| (name, read(&path))).collect()
}

/// The recorded graphs whose names begin so.
fn named(prefix: &str) -> Vec<(String, Graph)> {
    named_as(|name| name.starts_with(prefix))
}

/// One recorded graph.
fn real(name: &str) -> Option<Graph> {
    named_as(|found| found == name).pop().map(|(_, graph)| graph)
}

fn graph(lines: &str) -> Graph {
    text::parse(lines).unwrap_or_else(|e| panic!("{}", e.render(None))).graph
}

#[test]
fn peaks_are_those_of_pytorch() {
    for (name, kept, default, physical) in [
        ("llama3_8b_fw_64_1d", 35_086_222_080, 35_086_222_080, 35_086_222_080),
        ("llama3_8b_fw_256_2d", 5_106_639_872, 5_106_639_872, 5_106_639_872),
        ("llama3_8b_bw_64_1d", 38_975_734_784, 37_020_517_120, 38_975_734_784),
        ("llama3_8b_bw_64_1d_after_bucket_ag_rs", 55_656_522_752, 45_727_152_096, 54_784_025_600),
        ("dsv3_fw_64", 55_756_508_704, 55_756_502_048, 55_756_508_704),
    ] {
        let Some(graph) = real(name) else { continue };
        assert_eq!(profile(&graph, &not_placeholder).unwrap().steps.peak().0, kept, "{name}");
        assert_eq!(profile(&graph, &not_primals).unwrap().steps.peak().0, default, "{name}");
        let facts = Facts::new(&graph);
        let options = Options { unbacked: Some(PYTORCH_UNBACKED), ..Options::default() };
        let truth = replay_facts(&facts, options).unwrap();
        assert_eq!(truth.steps.peak().0, physical, "{name}");
        // The graph's own run breaks no rule of memory safety and does what is predicted.
        let prediction = Prediction::of_replay(&graph, &truth);
        let summary = Verifier::new(prediction, Mode::Log).judge(events_of_replay(&facts, &truth));
        assert_eq!(summary.faults, [], "{name}");
        assert_eq!(summary.peak, physical, "{name}");
        // The tracker tells the profile in the order of the list.
        follows(&graph);
    }
}

/// The tracker in list order against the profile, entry by entry.
fn follows(graph: &Graph) {
    let ledger = recorded_ledger(graph);
    let expected = profile_of(graph, &ledger, Devices::All, &not_primals).unwrap();
    let mut tracker = Tracker::new(graph, &ledger, Devices::All, &not_primals).unwrap();
    assert_eq!(tracker.current(), expected.steps.before);
    let mut steps = expected.steps.steps.iter();
    for id in graph.ids() {
        tracker.schedule(id).unwrap();
        if graph.node(id).op == Op::Call {
            let step = steps.next().unwrap();
            assert_eq!(
                (tracker.last_peak(), tracker.current()),
                (step.peak, step.after),
                "{}",
                graph.name(id)
            );
        }
    }
    assert_eq!(tracker.peak(), expected.steps.peak().0);
}

#[test]
fn small_graphs_have_the_same_tracker_and_profile() {
    named("small_").iter().for_each(|(_, graph)| follows(graph));
}

#[test]
fn sizes_without_a_hint_are_told_not_guessed() {
    let Some(graph) = real("dsv3_fw_64") else { return };
    let fault = replay(&graph, Options::default()).unwrap_err();
    let MemoryFault::Unsized(storages) = &fault else { panic!("{fault}") };
    assert_eq!(storages.len(), 468);
    assert!(fault.to_string().contains("its size depends on a symbol without a hint"), "{fault}");
    assert_eq!(profile(&graph, &not_placeholder).unwrap().assumed.len(), 520);
}

#[test]
fn the_worked_example_of_the_profile() {
    let graph = graph(
        "primals_1 = input : f32[2] storage 0\ny = relu(primals_1) : f32[2] storage 1\n\
         v = view(y, [2]) : f32[2] storage 1\nz = add(v, v) : f32[2] storage 2\noutput z\n",
    );
    assert_eq!(profile(&graph, &not_primals).unwrap().entries(), [8, 16, 16, 16, 16, 24, 16]);
}

/// Lists from `build_memory_profile` of PyTorch 2.15 on fake CUDA tensors, for both predicates.
#[test]
fn small_profiles_are_those_of_pytorch() {
    let pieces = "x = input : f32[8]\ny = relu(x)\ns = split(y, 4)\na = s[0]\nn = neg(a)\nb = s[1]\nm = neg(b)\n\
                  output (n, m)\n";
    let views = "x = input : f32[2]\ny = relu(x)\nv = view(y, [2])\nz = add(v, v)\noutput z\n";
    let entries = |lines: &str, releasable| profile(&graph(lines), releasable).unwrap().entries();
    assert_eq!(entries(views, &not_primals), [8, 16, 8, 8, 8, 16, 8]);
    assert_eq!(entries(views, &not_placeholder), [8, 16, 16, 16, 16, 24, 16]);
    assert_eq!(entries(pieces, &not_primals), [32, 64, 32, 32, 32, 32, 32, 48, 48, 48, 48, 64, 32]);
    assert_eq!(entries(pieces, &not_placeholder), [32, 64, 64, 64, 64, 64, 64, 80, 80, 80, 80, 96, 64]);
}

#[test]
fn rules_of_the_profile_beyond_pytorch() {
    // A result that nobody reads dies at once; a storage of two inputs goes only if both may.
    let graph = graph(
        "x = input : f32[2] storage 0\nprimals_1 = input : f32[2] storage 0\ny = relu(x) : f32[4] storage 1\n\
         z = neg(x) : f32[2] storage 2\noutput z\n",
    );
    assert_eq!(profile(&graph, &not_primals).unwrap().entries(), [8, 24, 8, 16, 16]);
}

#[test]
fn a_replay_knows_what_is_one_memory() {
    let of = |lines: &str| {
        let graph = graph(lines);
        let replay = replay(&graph, Options::default()).unwrap();
        replay.steps.steps.iter().map(|step| (step.peak, step.after)).collect::<Vec<_>>()
    };
    // A wait is its collective's result; what is sent lives until the wait.
    assert_eq!(
        of("world 2 ranks, groups dp = [0 1]\nx = input : f32[2]\na = relu(x)\ng = all_gather(a, dp)\n\
            b = neg(x)\nw = wait(g)\noutput (w, b)\n"),
        [(16, 16), (32, 32), (40, 40), (40, 32)]
    );
    // Nobody waits: it is never done.
    assert_eq!(
        of(
            "world 2 ranks, groups dp = [0 1]\nx = input : f32[2]\na = relu(x)\ng = all_gather(a, dp)\noutput x\n"
        ),
        [(16, 16), (32, 32)]
    );
    // Written in place, viewed, returned through a view.
    assert_eq!(
        of("x = input : f32[4]\na = relu(x)\nb = add_(a, 1)\nv = view(b, [2, 2])\ns = slice(v, 0, 0, 1)\n\
            c = neg(x)\noutput s\n"),
        [(32, 32), (32, 32), (32, 32), (32, 32), (48, 32)]
    );
    // A tuple keeps all of its elements until the last one is taken.
    assert_eq!(
        of(
            "x = input : f32[4]\nt = native_dropout(x, 0.5, True)\na = t[0]\nn = neg(a)\nm = t[1]\noutput n\n"
        ),
        [(36, 36), (36, 36), (52, 52), (52, 32)]
    );
}

#[test]
fn a_storage_may_change_its_size() {
    let graph = graph(
        "facts inductor.resize_storage_bytes_.default '{\"kind\":\"op\",\"namespace\":\"inductor\",\"schema\":\
         \"inductor::resize_storage_bytes_(Tensor variable, SymInt new_size) -> ()\",\"is_mutable\":false,\
         \"mutated_args\":[],\"ret_aliases_arg\":[],\"is_view\":false}'\n\
         x = input : f32[4]\na = relu(x)\nr = inductor.resize_storage_bytes_.default(a, 0) : None\nb = neg(x)\n\
         s = inductor.resize_storage_bytes_.default(a, 32) : None\nc = add(a, b)\noutput c\n",
    );
    let replay = replay(&graph, Options::default()).unwrap();
    let steps: Vec<_> = replay.steps.steps.iter().map(|step| (step.peak, step.after)).collect();
    assert_eq!(steps, [(32, 32), (32, 16), (32, 32), (64, 64), (80, 32)]);
}

#[test]
fn a_donated_input_is_freed() {
    let graph = graph("x = input : f32[4]\ny = input : f32[4]\na = add(x, y)\nb = neg(a)\noutput b\n");
    let donated = |graph: &Graph, id: NodeId| graph.name(id) == "x";
    let replay = replay(&graph, Options { donated: &donated, ..Options::default() }).unwrap();
    let steps: Vec<_> = replay.steps.steps.iter().map(|step| (step.peak, step.after)).collect();
    assert_eq!(steps, [(48, 32), (48, 32)]);
}

#[test]
fn sizes_past_64_bits_are_told() {
    let huge =
        "x = input : f32[2]\na = expand(x, [2]) : f64[4611686018427387904, 4]\nb = relu(a)\noutput b\n";
    assert!(matches!(replay(&graph(huge), Options::default()), Err(MemoryFault::Unsized(_))));
    let sum = "x = input : i8[9223372036854775807]\ny = input : i8[9223372036854775807]\noutput (x, y)\n";
    assert_eq!(replay(&graph(sum), Options::default()).unwrap_err(), MemoryFault::TooLarge("y".into()));
}

/// Live bytes of every step, found by asking for every storage and step whether anybody can still reach it.
fn slowly(graph: &Graph) -> Vec<(i64, i64)> {
    let facts = Facts::new(graph);
    let calls: Vec<NodeId> = graph.ids().filter(|&id| graph.node(id).op == Op::Call).collect();
    let shows = |id: NodeId, s: u32| facts.storages.all_parts(id).any(|part| part.storage.0 == s);
    let needed_after = |s: u32, at: NodeId| {
        let info = facts.storages.storage(graph_oracle::analysis::StorageIndex(s));
        if info.external {
            return true;
        }
        let used = graph.ids().filter(|&id| id > at).any(|id| graph.inputs(id).iter().any(|&i| shows(i, s)));
        let in_flight = facts.collectives.calls.iter().zip(&facts.collectives.waits).any(|(call, waits)| {
            call.node <= at
                && waits.last().is_none_or(|&wait| wait > at)
                && (shows(call.node, s) || call.inputs.iter().any(|&input| shows(input, s)))
        });
        used || in_flight
    };
    let bytes = |s: u32| facts.storages.storage(graph_oracle::analysis::StorageIndex(s)).bytes.unwrap();
    let all = || 0..facts.storages.len() as u32;
    let mut steps = Vec::new();
    let info = |s: u32| *facts.storages.storage(graph_oracle::analysis::StorageIndex(s));
    let mut live: Vec<u32> = all().filter(|&s| info(s).external).collect();
    for &at in &calls {
        live.extend(all().filter(|&s| info(s).by == at));
        let peak = live.iter().map(|&s| bytes(s)).sum();
        live.retain(|&s| needed_after(s, at));
        steps.push((peak, live.iter().map(|&s| bytes(s)).sum()));
    }
    steps
}

#[test]
fn the_replay_is_what_asking_slowly_gives() {
    for (name, graph) in named("small_") {
        let replay = replay(&graph, Options { devices: Devices::All, ..Options::default() }).unwrap();
        let steps: Vec<_> = replay.steps.steps.iter().map(|step| (step.peak, step.after)).collect();
        if replay.uncertain.is_empty() {
            assert_eq!(steps, slowly(&graph), "{name}");
        }
    }
}

#[test]
fn a_prediction_that_is_the_replay_never_parts() {
    let graph = graph("x = input : f32[4]\na = relu(x)\nb = neg(a)\noutput b\n");
    let replay = replay(&graph, Options::default()).unwrap();
    assert_eq!(first_difference(&graph, &replay.steps, None, &replay), None);
    let mut other = replay.steps.clone();
    other.steps[1].after += 4;
    let told = first_difference(&graph, &other, None, &replay).unwrap().describe(&graph);
    assert_eq!(told, "after the frees of step 1 (b): 36 bytes predicted, 32 bytes live (too many by 4)");
}

#[test]
fn the_tracker_follows_other_orders() {
    let before = graph(
        "x = input : f32[4]\na = relu(x)\nb = neg(x)\nc = neg(a)\nd = add(b, b)\ne = add(c, d)\noutput e\n",
    );
    let ledger = recorded_ledger(&before);
    let order = ["b", "d", "a", "c", "e"];
    let mut editor = Editor::new(&before);
    for name in order {
        editor.move_before(before.output(), before.find(name).unwrap());
    }
    let after = editor.finish();
    let expected = profile(&after, &not_primals).unwrap();
    let mut tracker = Tracker::new(&before, &ledger, Devices::All, &not_primals).unwrap();
    for (name, step) in order.iter().zip(&expected.steps.steps) {
        tracker.schedule(before.find(name).unwrap()).unwrap();
        assert_eq!((tracker.last_peak(), tracker.current()), (step.peak, step.after), "{name}");
    }
    let again = tracker.schedule(before.find("e").unwrap()).unwrap_err();
    assert_eq!(again, TrackerFault::Twice("e".into()));
    let mut tracker = Tracker::new(&before, &ledger, Devices::All, &not_primals).unwrap();
    let early = tracker.schedule(before.find("c").unwrap()).unwrap_err();
    assert_eq!(early.to_string(), "c uses a storage of a, which is not live");
}

/// Whether the scheduler's model of a graph and the replay count the same, inputs apart.
fn scheduled_like_replayed(facts: &Facts, truth: &Replay) {
    use graph_oracle::memory::scheduler::{Planning, Timeline, lower};
    let lowered = lower(facts, Devices::All, None, &|_| true).unwrap();
    let planning = Planning::new(&lowered.program).unwrap();
    let order: Vec<u32> = (0..lowered.nodes.len() as u32).collect();
    let timeline = Timeline::new(&lowered.program, &planning, &order).unwrap();
    let phases = timeline.phases().unwrap();
    assert_eq!(timeline.estimate().unwrap().0, phases.peak);
    assert_eq!(planning.cycle(), None);
    for (step, phase) in truth.steps.steps.iter().zip(&phases.steps) {
        let (peak, after) = (step.peak - truth.steps.before, step.after - truth.steps.before);
        let name = facts.graph.name(step.node);
        assert_eq!((phase.post_alloc, phase.post_free), (peak, after), "{name} of {}", facts.graph.name);
    }
}

#[test]
fn the_scheduler_model_counts_what_the_replay_counts() {
    let mut compared = 0;
    let graphs = ["small_", "ap_", "llama3_8b_fw_64"].into_iter().flat_map(named);
    for (_, graph) in graphs {
        let facts = Facts::new(&graph);
        let truth = replay_facts(&facts, Options { devices: Devices::All, ..Options::default() }).unwrap();
        if truth.uncertain.is_empty() {
            scheduled_like_replayed(&facts, &truth);
            compared += 1;
        }
    }
    assert!(compared > 10 || beside().is_empty(), "only {compared} graphs");
}

#[test]
fn four_ways_of_counting_agree_on_random_graphs() {
    let mut resized = 0;
    for case in 0..150 {
        let cases = MemoryCases { steps: 40, never_waited: 0 };
        let text = cases.text(Seeded::case(29, case));
        let graph = graph(&text);
        let facts = Facts::new(&graph);
        let truth = replay_facts(&facts, Options { devices: Devices::All, ..Options::default() }).unwrap();
        assert!(truth.uncertain.is_empty(), "{text}");
        let verifier = Verifier::new(Prediction::of_replay(&graph, &truth), Mode::Log);
        assert_eq!(verifier.judge(events_of_replay(&facts, &truth)).faults, [], "{text}");
        if !truth.ledger.resizes.is_empty() {
            resized += 1;
            continue;
        }
        let steps: Vec<_> = truth.steps.steps.iter().map(|step| (step.peak, step.after)).collect();
        assert_eq!(steps, slowly(&graph), "{text}");
        scheduled_like_replayed(&facts, &truth);
        follows(&graph);
    }
    assert!(resized < 110, "{resized} graphs are resized");
}

/// PyTorch's tracker word for word, with sets: a storage goes once every node that uses it is scheduled.
fn by_sets(graph: &Graph, ledger: &Ledger, order: &[NodeId]) -> Vec<i64> {
    use std::collections::BTreeSet;
    let uses = |id: NodeId| -> BTreeSet<u32> {
        graph.inputs(id).iter().flat_map(|&input| ledger.shown(input).iter().copied()).collect()
    };
    let users: Vec<BTreeSet<NodeId>> = (0..ledger.entries.len() as u32)
        .map(|s| graph.ids().filter(|&id| uses(id).contains(&s)).collect())
        .collect();
    let bytes = |s: u32| ledger.entries[s as usize].bytes.unwrap().count;
    let all = 0..ledger.entries.len() as u32;
    let mut live: BTreeSet<u32> = all.filter(|&s| ledger.entries[s as usize].external).collect();
    let mut scheduled = BTreeSet::new();
    let mut values = Vec::new();
    for &id in order {
        scheduled.insert(id);
        live.extend(ledger.shown(id).iter().filter(|&&s| ledger.entries[s as usize].by == id));
        // The rule of the reference: what nobody reads dies where it is made.
        let unread = ledger.shown(id).iter().filter(|&&s| users[s as usize].is_empty()).copied();
        for s in uses(id).into_iter().chain(unread) {
            let keeps = graph.name(ledger.entries[s as usize].by).starts_with("primals");
            if !keeps && users[s as usize].is_subset(&scheduled) {
                live.remove(&s);
            }
        }
        values.push(live.iter().map(|&s| bytes(s)).sum());
    }
    values
}

#[test]
fn the_tracker_is_pytorchs_on_any_order() {
    let mut compared = 0;
    for (name, graph) in named("small_m") {
        let ledger = recorded_ledger(&graph);
        for seed in 0..3u64 {
            // A topological order in which what could run next is drawn.
            let mut state = seed;
            let mut left: Vec<NodeId> = graph.ids().filter(|&id| graph.node(id).op == Op::Call).collect();
            let mut order: Vec<NodeId> = Vec::new();
            while !left.is_empty() {
                let free: Vec<usize> = (0..left.len())
                    .filter(|&i| graph.inputs(left[i]).iter().all(|input| !left.contains(input)))
                    .collect();
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                order.push(left.remove(free[(state >> 33) as usize % free.len()]));
            }
            let mut tracker = Tracker::new(&graph, &ledger, Devices::All, &not_primals).unwrap();
            let mut values = Vec::new();
            for &id in &order {
                tracker.schedule(id).unwrap();
                values.push(tracker.current());
            }
            assert_eq!(values, by_sets(&graph, &ledger, &order), "{name}");
            compared += 1;
        }
    }
    assert!(compared > 20 || beside().is_empty(), "only {compared} orders");
}
