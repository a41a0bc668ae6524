//! The graphs of all ranks together: what a pass does otherwise on one rank may be right there and wrong beside the
//! others.
//!
//! # The idea
//!
//! Where all ranks gave a pass the same text, and it made different ones of it, these are judged as one outcome for
//! each rank: launches that trade places, groups that wait for one another in a circle, members of a bucket in another
//! order. Where all made the same of it, a rank agrees with itself, and nothing is left to ask.
//!
//! # What it does not do
//!
//! Ranks whose texts differed before the pass are compared by their launches alone (`ranks`), and so are those of a
//! folder that is watched.

use super::Options;
use super::cache::Key;
use super::row::{Outcome, Row};
use super::verdict::verdict;
use crate::graph::Graph;
use crate::judge::{self, Values, Verdict};
use ir::format::fx::Printed;
use ir::format::torch_trace::CompileId;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The graphs of a row.
pub(super) struct Kept {
    /// The row, by its number in the report.
    pub(super) row: usize,
    pub(super) before: (Key, Arc<Printed>),
    pub(super) after: (Key, Arc<Printed>),
}

/// What was found.
#[derive(Default)]
pub(super) struct Together {
    pub(super) findings: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// Judges the ranks of each pass together.
pub(super) fn judge(rows: &[Row], kept: &[Kept], options: &Options) -> Together {
    let mut passes: BTreeMap<(&CompileId, &str, usize), Vec<(u32, &Kept)>> = BTreeMap::new();
    let mut runs: FxHashMap<(&CompileId, &str, &str), usize> = FxHashMap::default();
    for kept in kept {
        let row = &rows[kept.row];
        let run = runs.entry((&row.id, &row.pass, &row.file)).or_default();
        if let Some(rank) = row.rank {
            passes.entry((&row.id, &row.pass, *run)).or_default().push((rank, kept));
        }
        *run += 1;
    }
    // A proof follows one program for all ranks, so that what differs between them shows in an execution.
    let judge = judge::Options { values: Values::Auto, ..options.judge.clone() };
    let options = &Options { judge, ..options.clone() };
    let mut found = Together::default();
    for ((id, pass, _), mut ranks) in passes {
        ranks.sort_by_key(|(rank, _)| *rank);
        let Some(&(_, first)) = ranks.first() else { continue };
        let is_one_text = ranks.iter().all(|(_, kept)| kept.before.0 == first.before.0);
        let is_one_result = ranks.iter().all(|(_, kept)| kept.after.0 == first.after.0);
        if !is_one_text || is_one_result {
            continue;
        }
        let count = ranks.len() as u32;
        let are_all = ranks.iter().map(|(rank, _)| *rank).eq(0..count);
        if !are_all || options.world.ranks.is_some_and(|ranks| ranks != count) {
            let why = format!(
                "{pass} of {id}: its graphs differ between ranks, and not all ranks are here: they are judged one by one"
            );
            found.notes.push(why);
            continue;
        }
        let graphs: Vec<Graph> =
            ranks.iter().map(|(_, kept)| in_world(&kept.after.1.graph, count, true)).collect();
        let after: Vec<(Option<u32>, &Graph)> = (0..count).map(Some).zip(&graphs).collect();
        let before = in_world(&first.before.1.graph, count, false);
        let judgement = match verdict(pass, &before, &after, options).outcome {
            Outcome::Judged(judgement) => judgement,
            Outcome::NotJudged(why) => {
                found.notes.push(format!("{pass} of {id}: the ranks are not judged together: {why}"));
                continue;
            }
            Outcome::Unchanged => continue,
        };
        match &judgement.verdict {
            Verdict::Sound => {}
            Verdict::Violated(findings) => {
                let lines = findings
                    .iter()
                    .map(|finding| format!("{pass} of {id}: {}: {}", finding.rule, finding.title));
                found.findings.extend(lines);
            }
            Verdict::Undecided(why) => {
                let why: Vec<String> = why.iter().map(ToString::to_string).collect();
                found
                    .notes
                    .push(format!("{pass} of {id}: the ranks together are undecided: {}", why.join("; ")));
            }
            Verdict::Refused(why) => found.notes.push(format!("{pass} of {id}: {why}")),
        }
    }
    found
}

/// A graph in a world of so many ranks; with its rank's own place in groups, or without.
fn in_world(graph: &Graph, ranks: u32, with_own: bool) -> Graph {
    let mut graph = graph.clone();
    graph.world.ranks.get_or_insert(ranks);
    for group in graph.world.groups.iter_mut().filter(|_| !with_own) {
        group.recorded_rank = None;
    }
    graph
}
