//! The smoke runner on the host: clean plans are clean, planted faults are found.

use super::device::{Device, FREED, GUARD, Placement, UNWRITTEN};
use super::host::Host;
use super::inject::Fault;
use super::passes::{Case, How, Options, inspect, preflight, replay, smoke, with_plan};
use super::plan::{Action, Fnv};
use super::report::{CaseReport, Kind, Report};
use super::suite;
use crate::generate;

fn built_in() -> Vec<Case> {
    suite::built_in().unwrap_or_else(|reason| panic!("{reason}"))
}

fn quick() -> Options {
    Options { interleavings: 4, repetitions: 2, ..Options::default() }
}

fn run(case: &Case, options: &Options) -> CaseReport {
    smoke(case, options, None).unwrap_or_else(|trouble| panic!("{}: {trouble}", case.name))
}

fn told(case: CaseReport) -> String {
    Report { cases: vec![case], ..Report::default() }.text(true)
}

#[test]
fn the_suite_is_clean_and_needs_no_kernel_of_the_host() {
    let mut compared = 0;
    for case in built_in() {
        let report = run(&case, &quick());
        assert_eq!(report.refused, None, "{}", case.name);
        assert!(!report.is_violated(), "{}", told(report));
        assert_eq!(report.host_only, Vec::<String>::new(), "{}", case.name);
        let table = report.passes.iter().find(|pass| pass.number == 3).map(|pass| &pass.rows);
        compared += table.map_or(0, |rows| rows.iter().filter(|row| row.hash.is_some() && row.right).count());
    }
    assert!(compared > 100, "{compared} steps with values");
}

/// What the first case of a text gives.
fn of_text(text: &str) -> CaseReport {
    let parsed = crate::format::text::parse(text).unwrap_or_else(|errors| panic!("{errors}"));
    run(&Case { name: "case".into(), file: None, graphs: vec![parsed.graph] }, &quick())
}

#[test]
fn a_reduction_without_kernel_stays_on_the_host() {
    let text = "world 2 ranks, groups dp = [0 1]\nx = input: f32[2]\n";
    let with =
        |op: &str| format!("{text}a = all_reduce(x, {op:?}, dp): f32[2]\nw = wait(a): f32[2]\noutput (w)\n");
    assert_eq!(of_text(&with("sum")).host_only, Vec::<String>::new());
    assert_eq!(of_text(&with("max")).host_only, ["_c10d_functional.all_reduce.default"]);
}

#[test]
fn a_graph_that_resizes_a_storage_is_not_replayed() {
    let text =
        "world 1 rank\nx = input: f32[2]\nf = inductor.resize_storage_bytes_.default(x, 0)\noutput ()\n";
    let refused = of_text(text).refused;
    assert_eq!(refused.as_deref(), Some("f resizes a storage, which is not replayed"));
}

#[test]
fn memory_is_not_compared_where_records_contradict_operators() {
    let of_relu = |elements: u32| {
        let text = format!("world 1 rank\nx = input: f32[2]\ny = relu(x): f32[{elements}]\noutput (y)\n");
        told(of_text(&text))
    };
    assert!(of_relu(2).contains("peak 16 bytes, predicted 16"), "{}", of_relu(2));
    let note = "memory is not compared: the recorded size of y is not what its operator gives";
    assert!(of_relu(7).contains(note), "{}", of_relu(7));
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn every_planted_fault_is_found_wherever_it_is_planted() {
    for fault in Fault::ALL {
        let mut planted = 0;
        for case in built_in() {
            let places = with_plan(&case, &quick(), |plan, _| fault.places(&plan)).unwrap_or(0);
            // Each place that the seed can pick, up to some.
            for seed in 0..places.min(3) as u64 {
                let report = run(&case, &Options { inject: Some(fault), seed, ..quick() });
                let Some(what) = report.injected.clone() else { continue };
                planted += 1;
                assert!(report.is_violated(), "{} in {}: {what}", fault.name(), case.name);
            }
        }
        assert!(planted >= 5, "{} was planted {planted} times", fault.name());
    }
}

#[test]
fn what_is_found_is_what_was_planted() {
    let expected = [
        (Fault::UseAfterFree, Kind::UseAfterFree),
        (Fault::MissingWait, Kind::Race),
        (Fault::OutOfBounds, Kind::OutOfBounds),
        (Fault::Leak, Kind::Leak),
        (Fault::EarlyReuse, Kind::Overlap),
    ];
    for (fault, kind) in expected {
        let mut found = 0;
        for case in built_in() {
            let report = run(&case, &Options { inject: Some(fault), ..quick() });
            if report.injected.is_some() {
                let kinds: Vec<Kind> =
                    report.passes.iter().flat_map(|pass| pass.findings.iter().map(|f| f.kind)).collect();
                assert!(kinds.contains(&kind), "{} in {}: {kinds:?}", fault.name(), case.name);
                found += 1;
            }
        }
        assert!(found > 0, "{}", fault.name());
    }
}

#[test]
fn a_missing_wait_is_convicted_in_every_interleaving() {
    for case in built_in().iter().filter(|case| case.name.ends_with(" after bucketing")) {
        let convicted = with_plan(case, &quick(), |plan, observed| {
            let injected = Fault::MissingWait.plant(plan, 0)?;
            let mut races = 0;
            for seed in 0..300 {
                let mut host = Host::new(&injected.plan, observed, Some(seed));
                let replayed = replay(&injected.plan, &mut host, &Placement::Guarded, How::default())
                    .map_err(|trouble| trouble.to_string())?;
                races += u32::from(replayed.findings.iter().any(|finding| finding.kind == Kind::Race));
            }
            Ok::<_, String>(races)
        });
        assert_eq!(convicted.and_then(|inner| inner), Ok(300), "{}", case.name);
    }
}

/// The caller may go on as soon as the compute stream has: an output that is still in flight is a race, and so is an
/// input that is still sent.
#[test]
fn an_output_is_waited_for() {
    let case = built_in().into_iter().find(|case| case.name == "bucketed_scatter");
    let case = case.unwrap_or_else(|| panic!("there is no such case"));
    let found = with_plan(&case, &quick(), |mut plan, _| {
        let clean = inspect(&plan).len();
        let of_wait = |command: &super::plan::Command| {
            plan.steps[command.step as usize].name == "w2" && matches!(command.action, Action::Wait(_))
        };
        let at = plan.commands.iter().position(of_wait).ok_or("there is no such wait")?;
        plan.commands.remove(at);
        Ok::<_, &str>((clean, inspect(&plan).iter().map(|finding| finding.kind).collect::<Vec<_>>()))
    });
    assert_eq!(found, Ok(Ok((0, vec![Kind::Race, Kind::Race]))));
}

/// Every wait of a plan is either made up for by others, or its removal is a race.
#[test]
fn no_wait_is_removed_unseen() {
    for case in built_in() {
        let result = with_plan(&case, &quick(), |plan, _| {
            for seed in 0..Fault::MissingWait.places(&plan) as u64 {
                let injected = Fault::MissingWait.plant(plan.clone(), seed)?;
                let kinds: Vec<Kind> = inspect(&injected.plan).iter().map(|finding| finding.kind).collect();
                if !kinds.contains(&Kind::Race) {
                    return Err(format!("{}: {} is not seen", case.name, injected.what));
                }
            }
            Ok(())
        });
        assert_eq!(result.and_then(|inner| inner), Ok(()));
    }
}

fn clean_plans(range: std::ops::Range<u64>) -> (u32, u32, Vec<String>) {
    let (mut clean, mut refused, mut alarms) = (0, 0, Vec::new());
    for index in range {
        let graph = generate::case(&generate::Config::default(), 9, index).graph;
        let case = Case { name: format!("generated {index}"), file: None, graphs: vec![graph] };
        let report = run(&case, &Options { interleavings: 2, repetitions: 1, ..Options::default() });
        match () {
            () if report.refused.is_some() => refused += 1,
            () if report.is_violated() => alarms.push(told(report)),
            () => clean += 1,
        }
    }
    (clean, refused, alarms)
}

/// Of 40 generated graphs; docs/gpu.md has a longer run.
#[test]
fn no_false_alarm_on_generated_plans() {
    let (clean, refused, alarms) = clean_plans(0..crate::scale::scaled(40));
    println!("{clean} clean plans, {refused} graphs that the interpreter refuses");
    assert_eq!(alarms, Vec::<String>::new());
    assert!(clean > refused, "{clean} clean, {refused} refused");
}

#[test]
fn the_host_passes_its_own_preflight() {
    let case = &built_in()[0];
    let pass = with_plan(case, &quick(), |plan, observed| preflight(&mut Host::new(&plan, observed, None)));
    let pass = pass.map(|result| result.map(|pass| pass.findings));
    assert_eq!(pass, Ok(Ok(Vec::new())));
}

#[test]
fn poison_is_no_number_wherever_it_is_read() {
    for word in [FREED, UNWRITTEN, GUARD] {
        let bytes: Vec<u8> = word.to_le_bytes().repeat(4);
        for at in 0..4 {
            if at % 2 == 0 {
                let half = [bytes[at], bytes[at + 1]];
                assert!(half::f16::from_le_bytes(half).is_nan() && half::bf16::from_le_bytes(half).is_nan());
            }
        }
        let mut wide = [0; 8];
        wide.copy_from_slice(&bytes[..8]);
        assert!(f32::from_bits(word).is_nan() && f64::from_le_bytes(wide).is_nan());
    }
}

#[test]
fn a_plan_is_the_same_each_time_and_changes_with_the_schedule() {
    let hash = |case: &Case| with_plan(case, &quick(), |plan, _| plan.hash());
    let all: Vec<_> = built_in().iter().map(hash).collect();
    assert_eq!(all, built_in().iter().map(hash).collect::<Vec<_>>());
    let mut distinct: Vec<_> = all.iter().flatten().collect();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), all.len(), "a pass that changes nothing smokes nothing");
}

/// The kernels that are embedded are those of the source beside them, and there is one for each that a plan can name.
#[test]
fn the_embedded_kernels_are_those_of_their_source() {
    let source = include_str!("../../../gpu/kernels/kernels.cu");
    let ptx = include_str!("../../../gpu/kernels/kernels.ptx");
    let stated = format!("fnv1a64 {:016x}", Fnv::of(source.as_bytes()));
    assert!(ptx.lines().next().is_some_and(|line| line.contains(&stated)), "run gpu/kernels/build.py");
    assert!(ptx.contains(".version 8.0") && ptx.contains(".target sm_75") && !ptx.contains("fma.rn"));
    for case in built_in() {
        let missing = with_plan(&case, &quick(), |plan, _| {
            let launches = plan.commands.iter().filter_map(|command| match &command.action {
                Action::Launch(launch) => Some(format!(".entry {}(", launch.kernel.name())),
                _ => None,
            });
            launches.filter(|entry| !ptx.contains(entry)).collect::<Vec<_>>()
        });
        assert_eq!(missing, Ok(Vec::new()), "{}", case.name);
    }
}

#[test]
fn a_report_says_how_to_do_it_again() {
    let case = &built_in()[1];
    let report = run(case, &Options { inject: Some(Fault::Leak), seed: 3, ..quick() });
    assert!(report.replay.contains("--seed 3 --inject leak"), "{}", report.replay);
    let json = Report { cases: vec![report], ..Report::default() }.json();
    assert_eq!(json["cases"][0]["passes"][0]["findings"][0]["kind"], "leak");
}

/// A device that is asked for a buffer that was freed gives what is there now: poison.
#[test]
fn freed_memory_reads_as_poison() {
    let case = &built_in()[1];
    let bytes = with_plan(case, &quick(), |plan, observed| {
        let mut host = Host::new(&plan, observed, None);
        let sizes: Vec<u64> = plan.buffers.iter().map(|buffer| buffer.bytes).collect();
        host.begin(plan.streams.len(), plan.events.len(), &sizes, &Placement::Guarded)?;
        host.alloc(0, 0, 0)?;
        host.free(0, 0, 0)?;
        host.synchronize()?;
        host.download(0)
    });
    let bytes = bytes.map(|result| result.map(|bytes| bytes[..4].to_vec()));
    assert_eq!(bytes, Ok(Ok(FREED.to_le_bytes().to_vec())));
}
