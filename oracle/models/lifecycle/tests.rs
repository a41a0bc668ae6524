use super::*;
use crate::format::text;
use crate::graph::Graph;
use crate::memory::replay::{Facts, Options, replay_facts};

fn graph(lines: &str) -> Graph {
    text::parse(lines).unwrap_or_else(|e| panic!("{}", e.render(None))).graph
}

const PROGRAM: &str = "\
world 2 ranks, groups dp = [0 1]
x = input : f32[8]
a = relu(x)
v = view(a, [2, 4])
g = all_gather(a, dp)
b = neg(v)
w = wait(g)
n = add_(b, 1)
c = add(n, n)
output (c, w)
";

fn own_run(graph: &Graph) -> (Prediction, Vec<Event>) {
    let facts = Facts::new(graph);
    let replay = replay_facts(&facts, Options::default()).unwrap();
    (Prediction::of_replay(graph, &replay), events_of_replay(&facts, &replay))
}

fn kinds(summary: &Summary) -> Vec<FaultKind> {
    summary.faults.iter().map(|fault| fault.kind).collect()
}

fn alloc(storage: &str, bytes: i64) -> Event {
    Event::Alloc { storage: storage.into(), bytes }
}

fn free(storage: &str) -> Event {
    Event::Free { storage: storage.into() }
}

fn touch(storage: &str, range: (i64, i64)) -> Touched {
    Touched { storage: storage.into(), bytes: Some(Range { start: range.0, end: range.1 }) }
}

#[test]
fn the_replay_of_a_graph_is_what_it_predicts() {
    let graph = graph(PROGRAM);
    let (prediction, events) = own_run(&graph);
    let summary = Verifier::new(prediction, Mode::Log).judge(events.clone());
    assert_eq!(summary.faults, []);
    // x, a, b and g of 32, 32, 32 and 64 bytes.
    assert_eq!((summary.peak, summary.peak_step, summary.live), (160, 3, 128));
    assert_eq!(read_events(write_events(&events).as_bytes()), Ok(events));
}

#[test]
fn every_change_of_a_run_is_a_fault() {
    let graph = graph(PROGRAM);
    let (prediction, events) = own_run(&graph);
    let verifier = Verifier::new(prediction, Mode::Log);
    for i in 0..events.len() {
        let mut without = events.clone();
        let gone = without.remove(i);
        // Nothing notices a read or write that did not happen.
        let silent = matches!(gone, Event::Read(_) | Event::Write(_));
        assert_eq!(verifier.judge(without).faults.is_empty(), silent, "without {gone:?}");
        let mut twice = events.clone();
        twice.insert(i, events[i].clone());
        assert_eq!(verifier.judge(twice).faults.is_empty(), silent, "twice {gone:?}");
    }
    // None of these runs left a trace.
    assert_eq!(verifier.judge(events).faults, []);
}

/// What a collective in flight reads may not be written, whatever the name of the device.
#[test]
fn a_fault_does_not_depend_on_the_device() {
    let of = |device: &str| {
        let graph = graph(&format!("device {device}\n{PROGRAM}"));
        let (prediction, mut events) = own_run(&graph);
        let launch = events.iter().position(|event| matches!(event, Event::Launch { .. })).unwrap();
        events.insert(launch + 1, Event::Write(touch("a", (0, 32))));
        Verifier::new(prediction, Mode::Log).judge(events)
    };
    let (host, accelerator) = (of("cpu"), of("cuda:0"));
    assert_eq!(kinds(&host), [FaultKind::InFlight]);
    assert_eq!(host, accelerator);
}

/// Of a result of which nothing is recorded the size is not known. That makes it no storage without bytes.
#[test]
fn what_is_not_recorded_may_be_in_flight() {
    let graph = graph(
        "world 2 ranks, groups dp = [0 1]\nx = input : ?\ng = all_gather(x, dp) : ?\nw = wait(g) : ?\noutput w\n",
    );
    let (prediction, mut events) = own_run(&graph);
    let verifier = Verifier::new(prediction, Mode::Log);
    assert_eq!(verifier.judge(events.clone()).faults, []);
    let launch = events.iter().position(|event| matches!(event, Event::Launch { .. })).unwrap();
    events.insert(launch + 1, Event::Write(Touched { storage: "x".into(), bytes: None }));
    assert_eq!(kinds(&verifier.judge(events)), [FaultKind::InFlight]);
}

#[test]
fn safety_needs_no_prediction() {
    use FaultKind::*;
    let launch = Event::Launch {
        flight: "g".into(),
        reads: vec![touch("x", (0, 8))],
        writes: vec![touch("y", (0, 16))],
    };
    let wait = || Event::Wait { flight: "g".into() };
    for (what, events, expected) in [
        ("fine", vec![alloc("x", 8), Event::Read(touch("x", (0, 8))), free("x")], vec![]),
        ("use before", vec![Event::Read(touch("x", (0, 8)))], vec![Unknown]),
        ("free before", vec![free("x")], vec![Unknown]),
        ("twice", vec![alloc("x", 8), free("x"), free("x")], vec![FreedTwice]),
        ("after", vec![alloc("x", 8), free("x"), Event::Write(touch("x", (0, 1)))], vec![UseAfterFree]),
        ("past the end", vec![alloc("x", 8), Event::Write(touch("x", (4, 9)))], vec![Bounds]),
        ("empty", vec![alloc("x", 0), Event::Write(touch("x", (0, 0)))], vec![]),
        ("negative", vec![alloc("x", -8)], vec![Bounds]),
        ("again", vec![alloc("x", 8), alloc("x", 8)], vec![AllocatedTwice]),
        ("again, later", vec![alloc("x", 8), free("x"), alloc("x", 4), free("x")], vec![]),
        ("too much", vec![alloc("x", i64::MAX), alloc("y", 1)], vec![Bounds]),
        ("steps", vec![Event::Step { step: 0 }, Event::Step { step: 2 }], vec![StepOrder]),
        ("idle wait", vec![wait()], vec![Flight]),
        ("no wait", vec![alloc("x", 8), alloc("y", 16), launch.clone()], vec![Flight]),
        (
            "reading what is sent",
            vec![alloc("x", 8), alloc("y", 16), launch.clone(), Event::Read(touch("x", (0, 8))), wait()],
            vec![],
        ),
        (
            "writing what is sent",
            vec![alloc("x", 8), alloc("y", 16), launch.clone(), Event::Write(touch("x", (7, 8))), wait()],
            vec![InFlight],
        ),
        (
            "reading what is received",
            vec![alloc("x", 8), alloc("y", 16), launch.clone(), Event::Read(touch("y", (0, 1))), wait()],
            vec![InFlight],
        ),
        (
            "freeing what is sent",
            vec![alloc("x", 8), alloc("y", 16), launch.clone(), free("x"), wait()],
            vec![InFlight],
        ),
    ] {
        assert_eq!(kinds(&Verifier::of_safety(Mode::Log).judge(events)), expected, "{what}");
    }
}

#[test]
fn a_fault_names_its_event() {
    let verifier = Verifier::of_safety(Mode::Assert);
    let run = verifier.run();
    run.record(alloc("x", 8)).unwrap();
    let fault = run.record(free("y")).unwrap_err();
    assert_eq!(fault.to_string(), "event 2 (step 0): y is freed, but was never allocated");
    // Nothing is judged after a fault, and the next run is a new one.
    run.record(free("z")).unwrap();
    assert_eq!(run.finish().faults, [fault]);
    assert_eq!(verifier.judge([alloc("x", 8), free("x")]).faults, []);
}

#[test]
fn faults_against_a_prediction_say_what_pytorch_says() {
    let expected = |allocated: &[(&str, i64)], freed: &[(&str, i64)]| {
        let map = |of: &[(&str, i64)]| of.iter().map(|&(name, bytes)| (name.to_string(), bytes)).collect();
        Expected { allocated: map(allocated), freed: map(freed) }
    };
    let prediction = Prediction {
        steps: vec![expected(&[("a", 8)], &[]), expected(&[("b", 4)], &[("a", 8)])],
        kept: ["b".to_string()].into(),
        ..Prediction::default()
    };
    let step = |step| Event::Step { step };
    let verifier = Verifier::new(prediction, Mode::Log);
    let judge = |events: Vec<Event>| kinds(&verifier.judge(events));
    use FaultKind::*;
    assert_eq!(judge(vec![alloc("a", 8), step(0), alloc("b", 4), free("a"), step(1)]), []);
    assert_eq!(judge(vec![alloc("a", 8), step(0), alloc("b", 4), step(1)]), [MissingFree, Leak]);
    assert_eq!(
        judge(vec![alloc("a", 8), free("a"), step(0), alloc("b", 4), step(1)]),
        [UnexpectedFree, MissingFree]
    );
    assert_eq!(
        judge(vec![alloc("a", 9), alloc("c", 1), step(0), free("a"), free("c"), step(1)]),
        [WrongSize, UnexpectedAlloc, UnexpectedFree, MissingAlloc, Lost]
    );
    assert_eq!(judge(vec![alloc("a", 8), step(0)]), [Truncated]);
}

#[test]
fn several_threads_may_tell_events_of_one_run() {
    let verifier = Verifier::of_safety(Mode::Log);
    let run = verifier.run();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let run = &run;
            scope.spawn(move || {
                for i in 0..200 {
                    let name = format!("t{thread}.{i}");
                    run.record(alloc(&name, 16)).unwrap();
                    run.record(Event::Write(touch(&name, (0, 16)))).unwrap();
                    run.record(free(&name)).unwrap();
                }
            });
        }
    });
    let summary = run.finish();
    assert_eq!((summary.faults.len(), summary.events, summary.live), (0, 2400, 0));
}

#[test]
fn bad_lines_are_told_with_their_number() {
    let good = "{\"event\":\"alloc\",\"storage\":\"x\",\"bytes\":8}\n\n";
    for (line, expected) in [
        ("{\"event\":\"free\"}\n", "event 2 (line 3): missing field `storage`"),
        ("{\"event\":\"free\",\"stor", "event 2 (line 3): the line is cut off: the file is truncated"),
        ("", "event 2 (line 3): the file ends without an end mark: it is truncated"),
        ("{\"event\":\"end\"}\n{}", "event 2 (line 4): there is something after the end mark"),
    ] {
        assert_eq!(read_events(format!("{good}{line}").as_bytes()).unwrap_err().to_string(), expected);
    }
    for line in ["[]", "{\"event\":\"jump\"}", "\u{7f}", "{\"event\":\"step\",\"step\":-1}", "{\"event\":1}"]
    {
        let error = read_events(format!("{good}{line}\n{{\"event\":\"end\"}}").as_bytes()).unwrap_err();
        assert_eq!((error.event, error.line), (2, 3), "{error}");
        assert!(!error.to_string().contains('\n'), "{error}");
    }
}

fn placed(name: &str, offset: i64, bytes: i64, start: u32, end: u32) -> Placement {
    Placement { name: name.into(), offset, bytes, start, end, in_place_of: None }
}

#[test]
fn lives_are_closed_at_both_ends() {
    let apart = [placed("a", 0, 8, 0, 1), placed("b", 0, 8, 2, 3)];
    assert_eq!(check_arena(&apart, Some(8)), []);
    let touching = [placed("a", 0, 8, 0, 2), placed("b", 4, 8, 2, 3)];
    assert_eq!(
        check_arena(&touching, None)[0].to_string(),
        "b [4, 12) is made in step 2 on bytes of a [0, 8), which lives until step 2"
    );
    // A definition without a use lives in its step.
    let unused = [placed("a", 0, 8, 1, 1), placed("b", 0, 8, 1, 3)];
    assert_eq!(check_arena(&unused, None).len(), 1);
    assert_eq!(check_arena(&[placed("a", 0, 0, 1, 1), placed("b", 0, 8, 1, 3)], None), []);
}

#[test]
fn exact_slices_may_be_taken_over_in_place() {
    let slice = |offset, bytes, start| Placement {
        in_place_of: Some(0),
        ..placed(&format!("s{offset}"), offset, bytes, start, start + 3)
    };
    let base = placed("a", 0, 8, 0, 2);
    assert_eq!(check_arena(&[base.clone(), slice(0, 4, 2), slice(4, 4, 2)], None), []);
    assert_eq!(check_arena(&[base.clone(), slice(0, 5, 2), slice(4, 4, 2)], None).len(), 1);
    assert_eq!(check_arena(&[base.clone(), slice(4, 5, 2)], None).len(), 1, "past its end");
    assert_eq!(check_arena(&[base.clone(), slice(0, 4, 1)], None).len(), 1, "too early");
    let after = placed("b", 0, 4, 4, 5);
    assert_eq!(check_arena(&[base, slice(0, 4, 2), after], None).len(), 1, "the heir lives on");
}

#[test]
fn nonsense_is_told() {
    for p in [placed("a", -1, 8, 0, 1), placed("a", 0, -8, 0, 1), placed("a", i64::MAX, 8, 0, 1)] {
        assert!(matches!(check_arena(&[p], None)[..], [ArenaFault::Nonsense { .. }]));
    }
    assert_eq!(check_arena(&[placed("a", 0, 9, 0, 1), placed("b", 0, 8, 3, 2)], Some(8)).len(), 2);
}

proptest::proptest! {
    /// Whether there is a fault at all is what comparing all pairs says.
    #[test]
    fn arenas_as_by_all_pairs(drawn in proptest::collection::vec((0i64..12, 0i64..5, 0u32..8, 0u32..4), 0..8)) {
        let all: Vec<Placement> = drawn.iter().enumerate()
            .map(|(i, &(offset, bytes, start, length))| placed(&format!("p{i}"), offset, bytes, start, start + length))
            .collect();
        let overlap = |a: &Placement, b: &Placement| {
            a.offset.max(b.offset) < (a.offset + a.bytes).min(b.offset + b.bytes)
                && a.start.max(b.start) <= a.end.min(b.end)
        };
        let any = all.iter().enumerate().any(|(i, a)| all[..i].iter().any(|b| overlap(a, b)));
        proptest::prop_assert_eq!(!check_arena(&all, None).is_empty(), any);
    }
}
