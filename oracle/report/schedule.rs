//! What an order is worth, for people and for machines: exposed communication and the peak of memory, before and after.
//!
//! Time is simulated by the estimates of the case ([`simulate`](crate::simulate)), all ranks against each other; memory is
//! the scheduler's model ([`Buffers`]), a node a step. Figures, no judgement: whether a pass keeps its promises the rules
//! say.

use crate::graph::Graph;
use crate::simulate::{Buffers, Estimates, Options, Peak, Programs, simulate};
use serde_json::{Value, json};
use std::fmt::Write;

/// The worth of one order.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Side {
    /// The longest time for which a rank stands still at waits, nanoseconds; `None` where the ranks do not finish.
    exposed: Option<u64>,
    /// When the last rank is done, nanoseconds.
    end: Option<u64>,
    /// The peak.
    peak: Peak,
    /// Where it is.
    at: String,
}

impl Side {
    fn new(graph: &Graph, estimates: &Estimates) -> Side {
        let report = simulate(&Programs::spmd(graph, estimates), Options::default());
        let finishes = report.finishes() == Some(true);
        let order: Vec<_> = graph.ids().collect();
        let peak = Buffers::of(graph).peak_of_order(&order);
        let at = order.get(peak.step).map_or("?".to_string(), |&id| graph.name(id).to_string());
        Side {
            exposed: finishes.then(|| report.timeline.exposed()),
            end: finishes.then(|| report.timeline.end()),
            peak,
            at,
        }
    }
}

/// What an order was worth, and what it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleReport {
    before: Side,
    after: Side,
    /// Nodes whose place in the list is another.
    moved: usize,
    nodes: usize,
}

impl ScheduleReport {
    /// Of the graph that all ranks run, before and after, by estimates that all ranks share. Near linear.
    pub fn new(before: &Graph, after: &Graph, estimates: &Estimates) -> ScheduleReport {
        let same = |(a, b): (_, _)| before.name(a) == after.name(b);
        let kept = before.ids().zip(after.ids()).filter(|&pair| same(pair)).count();
        ScheduleReport {
            before: Side::new(before, estimates),
            after: Side::new(after, estimates),
            moved: before.len().saturating_sub(kept),
            nodes: before.len(),
        }
    }

    /// For people.
    pub fn text(&self) -> String {
        let time = |nanoseconds: Option<u64>| match nanoseconds {
            Some(n) => format!("{:.3} ms", n as f64 / 1e6),
            None => "not finished".to_string(),
        };
        let mut text = format!("{:22}{:>22}{:>22}\n", "", "before", "after");
        let mut row = |what: &str, before: String, after: String| {
            let _ = writeln!(text, "{what:22}{before:>22}{after:>22}");
        };
        let (before, after) = (&self.before, &self.after);
        row("exposed communication", time(before.exposed), time(after.exposed));
        row("the last rank ends", time(before.end), time(after.end));
        row("peak of memory", format!("{} bytes", before.peak.bytes), format!("{} bytes", after.peak.bytes));
        row("  at", before.at.clone(), after.at.clone());
        let _ = writeln!(text, "{} of {} nodes stand in another place", self.moved, self.nodes);
        text
    }

    /// For machines: nanoseconds and bytes.
    pub fn json(&self) -> Value {
        let pair =
            |of: &dyn Fn(&Side) -> Value| json!({"before": of(&self.before), "after": of(&self.after)});
        json!({
            "exposed_nanoseconds": pair(&|side| json!(side.exposed)),
            "end_nanoseconds": pair(&|side| json!(side.end)),
            "peak_bytes": pair(&|side| json!(side.peak.bytes)),
            "peak_at": pair(&|side| json!(side.at)),
            "moved_nodes": self.moved,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text;

    #[test]
    fn what_is_hidden_is_no_longer_exposed() {
        let head = "world 2 ranks, groups dp = [0 1]\nx = input : f32[8]\ng = all_gather(x, dp)\n";
        let graph = |rest: &str| text::parse(format!("{head}{rest}output (w, c)\n")).unwrap().graph;
        let (early, late) = (graph("w = wait(g)\nc = neg(x)\n"), graph("c = neg(x)\nw = wait(g)\n"));
        let estimates = Estimates::table([("g", 1e-5), ("c", 4e-6)]);
        let report = ScheduleReport::new(&early, &late, &estimates).json();
        assert_eq!(report["exposed_nanoseconds"], serde_json::json!({"before": 10_000, "after": 6_000}));
        assert_eq!(report["end_nanoseconds"], serde_json::json!({"before": 14_000, "after": 10_000}));
        assert_eq!(report["peak_bytes"], serde_json::json!({"before": 128, "after": 128}));
        assert_eq!(report["moved_nodes"], 2);
    }
}
