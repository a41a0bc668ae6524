//! What an order is worth, for people and for machines: exposed communication and the peak of memory, before and after.
//!
//! Time is simulated by the estimates of the case ([`simulate`](crate::simulate)), all ranks against each other; memory
//! is the scheduler's model ([`Buffers`]), a node a step. Figures, no judgement: whether a pass keeps its promises the
//! rules say.

use crate::graph::Graph;
use crate::simulate::{Buffers, Estimates, Options, Peak, Programs, Report, simulate};
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
    /// Of the graph that the ranks with program number `number` run.
    fn new(graph: &Graph, programs: &Programs, report: &Report, number: usize) -> Side {
        let finishes = report.finishes() == Some(true);
        // A track stands for ranks that do the same, so for ranks of one program.
        let of_program = |rank: u32| programs.of_rank.get(rank as usize) == Some(&number);
        let tracks = || report.timeline.tracks.iter().filter(|track| of_program(track.rank));
        let order: Vec<_> = graph.ids().collect();
        let peak = Buffers::of(graph).peak_of_order(&order);
        let at = order.get(peak.step).map_or("?".to_string(), |&id| graph.name(id).to_string());
        Side {
            exposed: finishes.then(|| tracks().map(|track| track.exposed()).max().unwrap_or(0)),
            end: finishes.then(|| tracks().map(|track| track.end).max().unwrap_or(0)),
            peak,
            at,
        }
    }

    /// The worst of both.
    fn worse(&self, other: &Side) -> Side {
        let most = |a: Option<u64>, b: Option<u64>| Some(a?.max(b?));
        let higher = if other.peak.bytes > self.peak.bytes { other } else { self };
        let (exposed, end) = (most(self.exposed, other.exposed), most(self.end, other.end));
        Side { exposed, end, ..higher.clone() }
    }
}

/// What an order was worth, and what it is, on ranks that have the same.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Worth {
    /// The ranks; none: all of them.
    ranks: Vec<u32>,
    before: Side,
    after: Side,
    /// Nodes whose place in the list is another.
    moved: usize,
    nodes: usize,
}

impl Worth {
    fn rows(&self, indent: &str, text: &mut String) {
        let time = |nanoseconds: Option<u64>| match nanoseconds {
            Some(n) => format!("{:.3} ms", n as f64 / 1e6),
            None => "not finished".to_string(),
        };
        let mut row = |what: &str, before: String, after: String| {
            let _ = writeln!(text, "{:24}{before:>22}{after:>22}", format!("{indent}{what}"));
        };
        let (before, after) = (&self.before, &self.after);
        row("exposed communication", time(before.exposed), time(after.exposed));
        row("the last rank ends", time(before.end), time(after.end));
        row("peak of memory", format!("{} bytes", before.peak.bytes), format!("{} bytes", after.peak.bytes));
        row("  at", before.at.clone(), after.at.clone());
        let _ = writeln!(text, "{indent}{} of {} nodes stand in another place", self.moved, self.nodes);
    }

    fn json(&self) -> Value {
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

/// What the orders of all ranks were worth, and what they are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleReport {
    /// By distinct orders; at least one.
    worth: Vec<Worth>,
}

impl ScheduleReport {
    /// Of the graphs that ranks run (none named: all ranks), before and after, by estimates that all ranks share. Near
    /// linear.
    pub fn new(ranks: &[(Vec<u32>, &Graph, &Graph)], estimates: &Estimates) -> ScheduleReport {
        let mut distinct: Vec<(Vec<u32>, &Graph, &Graph)> = Vec::new();
        for (numbers, before, after) in ranks {
            let is_same = |known: &&mut (Vec<u32>, &Graph, &Graph)| {
                std::ptr::eq(known.1, *before) && is_same_order(known.2, after)
            };
            match distinct.iter_mut().find(is_same) {
                Some(known) => known.0.extend(numbers),
                None => distinct.push((numbers.clone(), before, after)),
            }
        }
        distinct.iter_mut().for_each(|(numbers, _, _)| numbers.sort_unstable());
        let graphs = distinct.iter().map(|&(_, before, _)| before).collect::<Vec<_>>();
        let of_rank = of_rank(&distinct);
        let before = Programs::per_rank(&graphs, &of_rank, estimates);
        let graphs = distinct.iter().map(|&(_, _, after)| after).collect::<Vec<_>>();
        let after = Programs::per_rank(&graphs, &of_rank, estimates);
        let reports = [&before, &after].map(|programs| simulate(programs, Options::default()));
        let worth = distinct.iter().enumerate().map(|(number, (ranks, was, is))| {
            let same = |(a, b): (_, _)| was.name(a) == is.name(b);
            let kept = was.ids().zip(is.ids()).filter(|&pair| same(pair)).count();
            Worth {
                ranks: ranks.clone(),
                before: Side::new(was, &before, &reports[0], number),
                after: Side::new(is, &after, &reports[1], number),
                moved: was.len().saturating_sub(kept),
                nodes: was.len(),
            }
        });
        ScheduleReport { worth: worth.collect() }
    }

    /// Of all ranks together: the longest times, the highest peak, all nodes.
    fn total(&self) -> Option<Worth> {
        let mut each = self.worth.iter().cloned();
        let first = each.next()?;
        Some(each.fold(first, |all, one| Worth {
            ranks: Vec::new(),
            before: all.before.worse(&one.before),
            after: all.after.worse(&one.after),
            moved: all.moved + one.moved,
            nodes: all.nodes + one.nodes,
        }))
    }

    /// For people: of all ranks, and of each order where ranks have several.
    pub fn text(&self) -> String {
        let mut text = format!("{:24}{:>22}{:>22}\n", "", "before", "after");
        if let Some(total) = self.total() {
            total.rows("", &mut text);
        }
        for worth in self.worth.iter().filter(|_| self.worth.len() > 1) {
            let _ = writeln!(text, "{}", named(&worth.ranks));
            worth.rows("  ", &mut text);
        }
        text
    }

    /// For machines: nanoseconds and bytes; `ranks` where they have several orders.
    pub fn json(&self) -> Value {
        let mut value = self.total().map_or(Value::Null, |total| total.json());
        if let (Some(object), true) = (value.as_object_mut(), self.worth.len() > 1) {
            let of_ranks = self.worth.iter().map(|worth| {
                let mut one = worth.json();
                if let Some(one) = one.as_object_mut() {
                    one.insert("ranks".to_string(), json!(worth.ranks));
                }
                one
            });
            object.insert("ranks".to_string(), of_ranks.collect());
        }
        value
    }
}

/// Whether two graphs are one list of nodes.
fn is_same_order(a: &Graph, b: &Graph) -> bool {
    std::ptr::eq(a, b) || (a.len() == b.len() && a.difference_in_program(b).is_none())
}

/// For each rank which of the orders it has; ranks that nobody names have the first.
fn of_rank(distinct: &[(Vec<u32>, &Graph, &Graph)]) -> Vec<usize> {
    let world = distinct.first().and_then(|(_, graph, _)| graph.world.assume_mesh()?.ranks).unwrap_or(1);
    let mut of_rank = vec![0; world as usize];
    for (number, (ranks, _, _)) in distinct.iter().enumerate() {
        for &rank in ranks {
            if let Some(of) = of_rank.get_mut(rank as usize) {
                *of = number;
            }
        }
    }
    of_rank
}

/// "ranks 0 to 3, 6": the ranks of an order, in ascending order.
fn named(ranks: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(rank) => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let runs: Vec<String> = runs
        .iter()
        .map(|&(first, last)| match last - first {
            0 => format!("{first}"),
            1 => format!("{first}, {last}"),
            _ => format!("{first} to {last}"),
        })
        .collect();
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{noun} {}", runs.join(", "))
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
        let report = ScheduleReport::new(&[(Vec::new(), &early, &late)], &estimates).json();
        assert_eq!(report["exposed_nanoseconds"], serde_json::json!({"before": 10_000, "after": 6_000}));
        assert_eq!(report["end_nanoseconds"], serde_json::json!({"before": 14_000, "after": 10_000}));
        assert_eq!(report["peak_bytes"], serde_json::json!({"before": 128, "after": 128}));
        assert_eq!(report["moved_nodes"], 2);
    }

    #[test]
    fn ranks_with_programs_of_their_own_are_told_apart() {
        let head = "world 4 ranks, groups pp = [0 1 | 2 3]\nx = input : f32[8]\n";
        let graph = |rest: &str| text::parse(format!("{head}{rest}output (w, c)\n")).unwrap().graph;
        let send = "s = send(x, 1, 0, pp) : f32[8]\n";
        let (early, late) = ("w = wait(s)\nc = neg(x)\n", "c = neg(x)\nw = wait(s)\n");
        let sends = [early, late].map(|rest| graph(&format!("{send}{rest}")));
        let receives = graph(
            "b = zeros([8], dtype=f32) : f32[8]\nr = recv(b, 0, 0, pp) : f32[8]\nw = wait(r)\nc = neg(w)\n",
        );
        let estimates = Estimates::table([("s", 1e-5), ("r", 1e-5), ("b", 0.0), ("c", 4e-6)]);
        let ranks = [(vec![0], 0), (vec![1, 3], 1), (vec![2], 0)];
        let ranks = ranks.map(|(ranks, receiver)| match receiver {
            0 => (ranks, &sends[0], &sends[1]),
            _ => (ranks, &receives, &receives),
        });
        let report = ScheduleReport::new(&ranks, &estimates);
        let json = report.json();
        assert_eq!(json["exposed_nanoseconds"], serde_json::json!({"before": 10_000, "after": 10_000}));
        assert_eq!((&json["moved_nodes"], json["ranks"].as_array().unwrap().len()), (&2.into(), 2));
        assert_eq!(json["ranks"][0]["ranks"], serde_json::json!([0, 2]));
        assert_eq!(
            json["ranks"][0]["exposed_nanoseconds"],
            serde_json::json!({"before": 10_000, "after": 6_000})
        );
        assert_eq!(json["ranks"][1]["moved_nodes"], 0);
        assert!(report.text().contains("\nranks 0, 2\n  exposed communication"), "{}", report.text());
    }
}
