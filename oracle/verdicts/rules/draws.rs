//! `rewrite/draws`: which random numbers are drawn.
//!
//! A generator is moved on by each draw, read or not, so a draw that is dropped, merged with another or made anew
//! changes what is drawn later, in this graph and behind it. What each value is used for, `rewrite/values` compares.

use super::{AnalyzedGraph, Checked, Code, Evidence, Restreamed, Stage};
use crate::graph::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// As many draws of each operator as before, of as many numbers.
pub(super) fn draws_kept(evidence: &Evidence) -> Checked {
    let (old, new) = (drawn(&evidence.before), drawn(&evidence.after));
    let targets: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
    let lists = |target: &str| [&old, &new].map(|of| of.get(target).map_or(&[][..], Vec::as_slice));
    let sizes = |list: &[(Option<i64>, NodeId)]| list.iter().map(|(size, _)| *size).collect::<Vec<_>>();
    let changed = |target: &&str| {
        let [before, after] = lists(target);
        sizes(before) != sizes(after)
    };
    let changed: Vec<&str> = targets.into_iter().filter(changed).collect();
    let has = |more: fn(usize, usize) -> bool| {
        changed.iter().any(|target| {
            let [before, after] = lists(target);
            more(after.len(), before.len())
        })
    };
    // Where some operators draw less and others more, these may draw from another generator in their place.
    if has(|after, before| after > before) && has(|after, before| after < before) {
        let option = match are_restreamed(evidence) {
            true => "; with --allow draws=restreamed they are matched one to one",
            false => "",
        };
        let why = format!("{} draw in place of one another{option}", changed.join(" and "));
        return Checked::undecided(Code::DrawsReplaced, why);
    }
    let of = &evidence.correspondence;
    let finding = |target: &&str| {
        let [before, after] = lists(target);
        let gone = before.iter().map(|(_, id)| *id).filter(|id| of.after_of[id.index()].is_none());
        let made = after.iter().map(|(_, id)| *id).filter(|id| of.before_of[id.index()].is_none());
        let words = |list: &[(Option<i64>, NodeId)]| {
            let known: Option<i64> = list.iter().map(|(size, _)| *size).sum();
            let numbers = known.map_or(String::new(), |numbers| format!(", {numbers} numbers in all"));
            format!("{} draws by {target}{numbers}", list.len())
        };
        evidence
            .finding("rewrite/draws", Stage::After, format!("other random numbers are drawn by {target}"))
            .before_nodes(evidence, gone)
            .after_nodes(evidence, made)
            .expected(format!("before, there are {}", words(before)))
            .observed(format!("after, there are {}", words(after)))
    };
    Checked::Findings(changed.iter().map(finding).collect())
}

/// Whether both graphs draw the same numbers of each kind, streams aside.
fn are_restreamed(evidence: &Evidence) -> bool {
    let graphs = [&evidence.before, &evidence.after].map(|side| Restreamed::new(side.graph));
    let [Some(before), Some(after)] = &graphs else { return false };
    let sizes = |of: &Restreamed| {
        let side = AnalyzedGraph::new(&of.graph);
        let sizes = drawn(&side).into_iter().map(|(target, list)| {
            (target.to_string(), list.into_iter().map(|(size, _)| size).collect::<Vec<_>>())
        });
        sizes.collect::<Vec<_>>()
    };
    sizes(before) == sizes(after)
}

/// The draws of a graph that give at least one number, by operator, each with how many it gives, in increasing order.
fn drawn<'s>(side: &'s AnalyzedGraph) -> BTreeMap<&'s str, Vec<(Option<i64>, NodeId)>> {
    let graph = side.graph;
    let mut drawn: BTreeMap<&str, Vec<(Option<i64>, NodeId)>> = BTreeMap::new();
    for id in graph.ids().filter(|&id| side.draws(id)) {
        let size = graph.tensor_of(id).and_then(|tensor| graph.numel(tensor));
        drawn.entry(graph.target(id)).or_default().push((size, id));
    }
    drawn.values_mut().for_each(|list| list.sort_unstable());
    drawn
}
