//! Figures that are kept up to date against figures that are computed anew, after random swaps of neighbours.

use super::*;
use graph_oracle::generate::schedule::schedule_case;
use graph_oracle::generate::{Seeded, Source};
use graph_oracle::simulate::Estimates;

#[test]
fn tracked_memory_is_recomputed_memory() {
    let mut swaps = 0;
    for index in 0..400 {
        let mut source = Seeded::case(3, index);
        let case = schedule_case(&mut source, 30);
        let facts = Facts::new(&case.graphs[0]);
        let Ok(steps) = Steps::new(&facts, &Estimates::default(), &Reference, &[], &[]) else { continue };
        let buffers = Buffers::of(&case.graphs[0]);
        let (mut list, mut memory) = (List::new(steps.len()), Tracker::new(&steps, &buffers));
        for _ in 0..40 {
            let order = list.order();
            if order.len() < 3 {
                break;
            }
            // A group of neighbours, and the neighbour before or after it.
            let length = 1 + source.below(3.min(order.len() as u32 - 1)) as usize;
            let from = source.below((order.len() - length) as u32) as usize;
            let raises = source.percent(50);
            let group = if raises { &order[from + 1..=from + length] } else { &order[from..from + length] };
            let candidate = if raises { order[from] } else { order[from + length] };
            let is_ordered = |a: u32, b: u32| steps.after(a).iter().any(|&(next, _)| next == b);
            if group.iter().any(|&step| is_ordered(candidate, step) || is_ordered(step, candidate)) {
                continue;
            }
            let (head, tail) = (group[0], group[group.len() - 1]);
            let plan = if raises {
                let plan = memory.raise(&list, head, tail, candidate, &|step| group.contains(&step));
                list.move_after(tail, candidate);
                plan
            } else {
                let plan = memory.sink(&list, head, tail, candidate);
                list.move_before(head, candidate);
                plan
            };
            memory.apply(&plan);
            swaps += 1;
            let order = list.order();
            let anew = Tracker::of_order(&steps, &buffers, &order);
            assert_eq!(memory.difference(&anew), None, "case {index}");
            let moved = group.iter().chain([&candidate]).map(|&step| anew.post_allocs()[step as usize]).max();
            assert_eq!(Some(plan.potential), moved, "case {index}");
            // And against the timeline that knows nothing of trackers.
            let mut step_of = vec![None; case.graphs[0].len()];
            for (place, &step) in order.iter().enumerate() {
                steps.nodes[step as usize].iter().for_each(|id| step_of[id.index()] = Some(place));
            }
            assert_eq!(memory.peak(), buffers.peak(&step_of, order.len()).bytes, "case {index}");
        }
    }
    assert!(swaps > 3000, "{swaps}");
}

/// Ten thousand steps, by every pass: all nodes are there again, each once.
#[test]
fn large_graphs_are_scheduled() {
    let mut source = Seeded::new(5);
    let case = schedule_case(&mut source, 40);
    let mut largest = case.graphs[0].clone();
    for index in 0..200 {
        let graph = schedule_case(&mut Seeded::case(6, index), 12_000).graphs.swap_remove(0);
        if graph.len() > largest.len() {
            largest = graph;
        }
        if largest.len() > 10_000 {
            break;
        }
    }
    assert!(largest.len() > 5_000, "{}", largest.len());
    for &pass in Pass::ALL {
        let scheduled = schedule(&largest, &Config::new(pass));
        let mut order = scheduled.unwrap_or_else(|refusal| panic!("{}: {refusal:?}", pass.name())).order;
        order.sort_unstable();
        assert!(order.into_iter().eq(largest.ids()), "{}", pass.name());
    }
}
