//! The memory orders keep every dependency, both estimators agree on each, and the driver never makes it worse.

use crate::format::text;
use crate::generate::Bytes;
use crate::generate::memory::MemoryCases;
use crate::graph::Graph;
use crate::memory::Devices;
use crate::memory::replay::Facts;
use crate::memory::scheduler::orders::{bfs, dfs, lpmf};
use crate::memory::scheduler::{
    Method, Planning, Program, Timeline, estimate_region, lower, reorder_for_peak_memory, steps_of,
};

/// Nodes of a graph that is ordered: a bound on the cost of one execution.
const MOST_NODES: usize = 300;

/// On a case in text.
pub fn check(data: &[u8]) {
    if let Ok(case) = text::parse(data)
        && case.graph.len() <= MOST_NODES
    {
        orders_are_right(&case.graph);
    }
}

/// On a case made from choices.
pub fn check_choices(data: &[u8]) {
    if let Some(graph) = MemoryCases::default().graph(Bytes::new(data)) {
        orders_are_right(&graph);
    }
}

fn orders_are_right(graph: &Graph) {
    if crate::analysis::validate::validate(graph).iter().any(|fault| fault.is_fatal()) {
        return;
    }
    let kept = |name: &str| name.len().is_multiple_of(2);
    let Ok(lowered) = lower(&Facts::new(graph), Devices::All, Some(8), &kept) else { return };
    let program = &lowered.program;
    let Ok(planning) = Planning::new(program) else { return };
    for threshold in [0, 24] {
        let Ok(choice) = reorder_for_peak_memory(program, &planning, threshold) else { return };
        let least = choice.peaks.iter().map(|&(_, peak)| peak).min();
        let of_choice =
            choice.peaks.iter().find(|&&(method, _)| method == choice.method).map(|&(_, peak)| peak);
        assert_eq!(of_choice, least);
        assert!(choice.method == Method::Baseline || least < choice.peaks.first().map(|&(_, peak)| peak));
        let Ok(order) = lpmf(program, &planning, threshold) else { return };
        for order in [order, bfs(&planning), dfs(&planning), choice.order] {
            is_right(program, &planning, &order);
        }
    }
}

fn is_right(program: &Program, planning: &Planning, order: &[u32]) {
    let step = steps_of(program.nodes.len(), order).unwrap_or_else(|fault| panic!("{fault}"));
    for node in 0..program.nodes.len() as u32 {
        for &before in planning.before.of(node) {
            assert!(step[before as usize] < step[node as usize], "{before} must come before {node}");
        }
    }
    let timeline = Timeline::new(program, planning, order).unwrap_or_else(|fault| panic!("{fault}"));
    let (Some((peak, _)), Some(phases)) = (timeline.estimate(), timeline.phases()) else { return };
    assert_eq!(peak, phases.peak);
    let Some(before) = timeline.live_before_steps() else { return };
    let last = order.len() as u32;
    for start in (0..last).step_by(7) {
        let end = (start + 9).min(last - 1);
        let window = &order[start as usize..=end as usize];
        let live = before[start as usize];
        let region = estimate_region(program, planning, window, (start, end), &|n| step[n as usize], live);
        let Some(region) = region else { return };
        assert_eq!(region.before, before[start as usize..=end as usize + 1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Config, Seeded, generate};

    #[test]
    fn smoke() {
        for case in 0..120 {
            let mut source = Seeded::case(6, case);
            let config = Config::default().swarmed(&mut source);
            check(generate(&mut source, &config).into_case().to_string().as_bytes());
            check(MemoryCases::default().text(Seeded::case(7, case)).as_bytes());
        }
        check_choices(&[9; 300]);
    }
}
