//! What judging costs. Printed, and asserted with a wide margin only: a machine under load is no judge.

use graph_oracle::candidates::judging;
use graph_oracle::generate::joint::{Config, forward_outputs, generate, naive};
use graph_oracle::generate::{Longest, Seeded};
use graph_oracle::judge::partition::judge_partition;
use graph_oracle::judge::{Options, Values, Verdict};
use graph_oracle::rules::partition::PartitionConfig;
use std::time::{Duration, Instant};

/// The time to judge a triple of about so many joint nodes, without values; the best of some runs.
fn time_to_judge(steps: u32) -> (usize, Duration) {
    let plain = Config {
        steps,
        replay: 0,
        reshard: 0,
        checkpoint: 0,
        loose_tag: 0,
        long_chain: 0,
        ..Config::default()
    };
    let case = generate(&mut Longest(Seeded::case(1, 1)), &plain);
    let nf = forward_outputs(&case).unwrap();
    let (forward, backward) = naive::partition(&case.graph, nf, &|_| false);
    // The naive partition keeps no budget.
    let config = PartitionConfig::from_pass(case.pass.as_ref().unwrap()).unwrap();
    let config = PartitionConfig { budget: None, ..config };
    let options = Options { values: Values::Off, ..judging() };
    let best = (0..3).map(|_| {
        let start = Instant::now();
        let judgement = judge_partition(&case.graph, &forward, &backward, &config, &options).unwrap();
        assert_eq!(judgement.verdict, Verdict::Sound);
        start.elapsed()
    });
    (case.graph.len(), best.min().unwrap())
}

#[test]
fn judging_takes_little_time_and_grows_with_the_graph() {
    let (small, large) = (time_to_judge(600), time_to_judge(6000));
    println!("{small:?} {large:?}");
    let per_node = |(nodes, time): (usize, Duration)| time.as_secs_f64() / nodes as f64;
    assert!(per_node(large) < 5.0 * per_node(small), "{small:?} {large:?}");
}
