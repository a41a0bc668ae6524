//! Every generated case is valid, by analyses that know nothing of the generator; and there is enough of everything.

mod windows;

use super::*;
use crate::analysis::in_flight::in_flight;
use crate::analysis::topological::violations;
use crate::analysis::validate::validate;
use crate::analysis::{Collectives, Edges, Storages, storages::Mode};
use crate::ops::{Collective, Ops, shape};
use crate::semantics::{self, Concrete, Failure, Fingerprints, Leaf, Program};

fn case(seed: u64, index: u64) -> Generated {
    super::case(&Config::default(), seed, index)
}

/// A debug build does a part of what a release build does.
fn cases(release: u64) -> u64 {
    if cfg!(debug_assertions) { release / 10 } else { release }
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
    let collectives = Collectives::new(graph, &ops);
    for (call, waits) in collectives.calls.iter().zip(&collectives.waits) {
        if waits.is_empty() && call.kind != Collective::Barrier {
            faults.push(format!("{} is never waited for", graph.name(call.node)));
        }
    }
    if sorted {
        faults.extend(violations(graph, &edges).into_iter().map(|violation| violation.describe(graph)));
        let storages = Storages::new(graph, &ops, &edges, &collectives, Mode::Physical);
        for intrusion in in_flight(graph, &ops, &storages, &collectives) {
            faults.push(intrusion.describe(graph, &collectives));
        }
    }
    let fatal =
        validate(graph).into_iter().filter(|fault| fault.is_fatal() && (sorted || !fault.concerns_order()));
    faults.extend(fatal.map(|fault| fault.to_string()));
    faults
}

/// What goes wrong when a graph runs on every rank: refusals, deadlocks, races, and reads of what nothing has written.
/// With numbers, else (an operator that the oracle does not compute) with terms. Large graphs are not run.
pub(super) fn execution_faults(graph: &Graph) -> Vec<String> {
    let (ops, world) = (Ops::of(graph), graph.world.assume_mesh().unwrap_or_else(|| graph.world.clone()));
    let program = match Program::new(graph, &ops, &world) {
        Ok(program) => program,
        Err(failure) => return vec![failure.to_string()],
    };
    let programs = std::slice::from_ref(&program);
    let options = semantics::Options { max_elements: 1 << 20, ..semantics::Options::default() };
    let run = match semantics::run(programs, &world, &Concrete::default(), &options) {
        Err(Failure::Refused { .. }) => semantics::run(programs, &world, &Fingerprints::in_bits(), &options),
        other => other,
    };
    let run = match run {
        Ok(run) => run,
        Err(Failure::TooLarge { .. }) => return Vec::new(),
        Err(failure) => return vec![failure.to_string()],
    };
    let mut faults: Vec<String> = run.hazards.iter().map(|h| h.describe(|id| graph.name(id))).collect();
    for (rank, found) in run.ranks.iter().enumerate() {
        let outputs = found.outputs.iter().map(|(path, leaf)| (format!("output {path:?}"), leaf));
        let inputs = found.inputs.iter().map(|input| (format!("input {}", input.name), &input.value));
        for (what, leaf) in outputs.chain(inputs) {
            if matches!(leaf, Leaf::Tensor(tensor) if tensor.poison.contains(&true)) {
                faults.push(format!("rank {rank}: {what} has elements that nothing has written"));
            }
        }
    }
    faults
}

/// Another order means the same: it is valid, and every rank computes the same terms.
#[test]
fn other_orders_mean_the_same() {
    let mut source = Seeded::new(12);
    let mut others = 0;
    for index in 0..cases(1500) {
        let generated = case(12, index);
        if generated.pass == Pass::Repair {
            continue;
        }
        let (graph, other) = (&generated.graph, reordered(&mut source, &generated.graph));
        let faults = graph_faults(&other, true);
        assert!(faults.is_empty(), "case {index}: {}", faults.join("\n"));
        others += u64::from(graph.ids().any(|id| graph.name(id) != other.name(id)));
        let run = |graph: &Graph| {
            let (ops, world) = (Ops::of(graph), graph.world.clone());
            let program = Program::new(graph, &ops, &world).unwrap();
            semantics::run(&[program], &world, &Fingerprints::in_bits(), &semantics::Options::default())
                .unwrap()
        };
        let differences = semantics::compare(&run(graph), &run(&other));
        assert!(differences.is_empty(), "case {index}: {differences:?}\n{}", generated.clone().into_case());
    }
    assert!(others * 10 > cases(1500) * 8, "{others}");
}

fn assert_valid(generated: &Generated, what: &str) {
    let sorted = generated.pass != Pass::Repair;
    let mut faults = graph_faults(&generated.graph, sorted);
    if sorted && faults.is_empty() {
        faults = execution_faults(&generated.graph);
    }
    assert!(faults.is_empty(), "{what}:\n{}\n{}", faults.join("\n"), generated.clone().into_case());
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn every_case_is_valid() {
    for index in 0..cases(20_000) {
        assert_valid(&case(1, index), &format!("case {index}"));
    }
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn cases_of_other_sizes_are_valid() {
    let mut source = Seeded::new(2);
    for round in 0..cases(3000) {
        let config = Config {
            min_nodes: 5,
            max_nodes: [5, 12, 150, 400][round as usize % 4],
            min_ranks: 1,
            max_ranks: 8,
            max_groups: 6,
            elements: [1, 16, 300, 5000][round as usize / 4 % 4],
            ..Config::swarm(&mut source)
        };
        assert_valid(&generate(&mut source, &config), &format!("{config:?}"));
    }
}

/// Every knob alone, at its largest: nothing hangs, nothing panics, everything is valid.
#[test]
fn extreme_knobs_are_valid() {
    let off = Config::KNOBS.iter().filter(|knob| knob.swarm != Swarm::Keep);
    let mut bare = Config::default();
    off.for_each(|knob| *bare.knob_mut(knob.name).unwrap() = 0);
    for knob in Config::KNOBS.iter().filter(|knob| !knob.name.ends_with("_nodes") && knob.name != "elements")
    {
        for value in [knob.range.0, knob.range.1] {
            let mut config = bare.clone();
            *config.knob_mut(knob.name).unwrap() = value;
            config.max_ranks = config.max_ranks.max(config.min_ranks);
            for seed in 0..2 {
                let generated = generate(&mut Seeded::case(3, seed), &config);
                if !generated.survey().features.has(Feature::Cyclic) {
                    assert_valid(&generated, &format!("{} = {value}", knob.name));
                }
            }
        }
    }
    let mut nothing = bare;
    for knob in Config::KNOBS.iter().filter(|knob| knob.range.0 == 0) {
        *nothing.knob_mut(knob.name).unwrap() = 0;
    }
    assert_valid(&generate(&mut Seeded::new(1), &nothing), "nothing");
}

#[test]
fn the_same_choices_give_the_same_case() {
    for index in 0..20 {
        let text = |generated: Generated| generated.into_case().to_string();
        let here = text(case(4, index));
        let there = std::thread::spawn(move || text(case(4, index))).join().unwrap();
        assert_eq!(here, there);
    }
    assert_ne!(case(4, 0).into_case().to_string(), case(5, 0).into_case().to_string());
}

/// Two small cases: what they look like, and that a seed keeps its meaning within a version of the generator.
#[test]
fn a_seed_keeps_its_meaning() {
    let config = Config { min_nodes: 12, max_nodes: 16, ..Config::default() };
    let texts = (0..2).map(|index| generate(&mut Seeded::case(6, index), &config).into_case().to_string());
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/../../snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        insta::assert_snapshot!(format!("generated_version_{VERSION}"), texts.collect::<Vec<_>>().join("\n"));
    });
}

fn from_bytes(data: &[u8]) -> Generated {
    let mut source = Bytes::new(data);
    let config = Config { max_nodes: 400, ..Config::default() }.swarmed(&mut source);
    generate(&mut source, &config)
}

/// Bytes that are as good as random.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut source = Seeded::new(seed);
    (0..length).map(|_| source.below(256) as u8).collect()
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config {
        failure_persistence: None,
        ..proptest::test_runner::Config::with_cases(64)
    })]

    #[test]
    fn any_bytes_are_a_valid_case(data in proptest::collection::vec(proptest::num::u8::ANY, 0..1500)) {
        assert_valid(&from_bytes(&data), "bytes");
    }
}

#[test]
fn more_data_makes_larger_graphs() {
    let size = |frames: usize| -> usize {
        (0..20).map(|seed| from_bytes(&noise(seed, frames * FRAME)).graph.len()).sum::<usize>() / 20
    };
    let sizes = [3, 10, 30, 60].map(size);
    assert!(sizes.is_sorted() && sizes[0] < 8 && sizes[3] > 100, "{sizes:?}");
}

/// A changed, removed or added frame changes the graph by about a step.
#[test]
fn small_changes_of_data_make_small_changes_of_graphs() {
    let (mut changes, mut worst) = (Vec::new(), 0);
    for seed in 0..60 {
        let data = noise(seed, 30 * FRAME);
        let before = from_bytes(&data).graph.len();
        for at in [8, 15, 22] {
            let (mut changed, mut removed) = (data.clone(), data.clone());
            changed[at * FRAME] ^= 0x55;
            removed.drain(at * FRAME..(at + 1) * FRAME);
            for after in [from_bytes(&changed), from_bytes(&removed)] {
                changes.push(after.graph.len().abs_diff(before));
                worst = worst.max(after.graph.len().abs_diff(before));
            }
        }
    }
    changes.sort();
    let median = changes[changes.len() / 2];
    assert!(median <= 4 && worst <= 40, "median {median}, worst {worst}");
}

#[test]
fn cycles_come_on_request() {
    let config = Config { repair: 100, cycle: 100, ..Config::default() };
    let cyclic = (0..100)
        .map(|index| generate(&mut Seeded::case(7, index), &config))
        .filter(|generated| generated.survey().features.has(Feature::Cyclic))
        .count();
    assert!(cyclic > 80, "{cyclic}");
}

/// The gates of docs/generator.md.
#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn there_is_enough_of_everything() {
    let (cases, threads) = (cases(20_000).max(4000), 2);
    let count = |from: u64| {
        let mut counts = vec![0u64; Feature::ALL.len()];
        let (mut useless, mut eligible) = (0u64, Vec::new());
        for index in (from..cases).step_by(threads) {
            let survey = case(8, index).survey();
            survey.features.iter().for_each(|feature| counts[feature as usize] += 1);
            useless += u64::from(!survey.useful);
            eligible.push(survey.eligible_buckets);
        }
        (counts, useless, eligible)
    };
    let parts: Vec<_> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads as u64).map(|from| scope.spawn(move || count(from))).collect();
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    let percent = |count: u64| count as f64 * 100.0 / cases as f64;
    let useless = percent(parts.iter().map(|part| part.1).sum());
    let mut eligible: Vec<usize> = parts.iter().flat_map(|part| part.2.iter().copied()).collect();
    eligible.sort();
    let median = eligible[eligible.len() / 2];
    println!("useless {useless:.1}%, median of eligible buckets {median}");
    let mut rare = Vec::new();
    for &feature in Feature::ALL {
        let share = percent(parts.iter().map(|part| part.0[feature as usize]).sum());
        println!("{share:5.1}% {}", feature.name());
        if share < 1.0 && feature != Feature::Cyclic {
            rare.push(feature.name());
        }
    }
    assert!(rare.is_empty(), "in less than 1% of cases: {rare:?}");
    assert!(useless < 10.0, "{useless}% of cases are useless");
    assert!(median >= 2, "the median case has {median} eligible buckets");
}
