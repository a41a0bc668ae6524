//! The graphs of several ranks: which of them differ, and what is found in each of them as one answer.
//!
//! # The idea
//!
//! An implementation may bake the rank into its graph: a slot of a buffer, a slice of its own. Then the graph of one
//! rank says nothing of another's. So every distinct graph is evidence of its own, and equal graphs are looked at once,
//! unless they gather into a slot: the slot that is right on one rank is wrong on another. What is found in the same
//! way on several ranks is one finding that names them.

use super::evidence::same_evidence;
use super::{AnalyzedGraph, Finding, Reason, RuleStatus, by_weight};
use crate::analysis::GroupName;
use crate::graph::{Graph, Group, World};
use crate::ops::Collective;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// What a pass made for one rank, or for all ranks alike.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// The global rank; `None` where one graph is for all.
    pub rank: Option<u32>,
    /// The graph before its repair, where it is known.
    pub unrepaired: Option<&'a Graph>,
    /// The graph after repair.
    pub after: &'a Graph,
}

/// A graph, and the ranks that have it.
pub struct RankGraph<'a> {
    /// The global ranks, as they were given; none where the graph is for all.
    pub ranks: Vec<u32>,
    /// The index of these ranks in process groups, by name, where it is known.
    pub own: Vec<(String, u32)>,
    /// The graph before its repair, where it is known.
    pub unrepaired: Option<&'a Graph>,
    /// The graph after repair.
    pub after: Arc<AnalyzedGraph<'a>>,
}

/// The distinct graphs among those that were given, in the order given; `first` is what is known of the first one. Near
/// linear in all nodes.
pub fn distinct<'a>(given: &[Given<'a>], first: Arc<AnalyzedGraph<'a>>) -> Vec<RankGraph<'a>> {
    let world = given.first().and_then(|one| one.after.world.assume_mesh());
    // What files record of the rank counts where it tells the graphs apart, or where there is one only.
    let is_recorded = given.len() == 1 || given.windows(2).any(|pair| records_differ(pair[0], pair[1]));
    let by_name = world.as_ref().map(World::by_name);
    let own = |one: &Given| indices(by_name.as_ref(), one, is_recorded);
    let mut all: Vec<RankGraph> = Vec::new();
    let mut by_print: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
    for one in given {
        let own = own(one);
        let same_print = by_print.entry(one.after.fingerprint()).or_default();
        let is_same = |known: &RankGraph| {
            let unrepaired = match (known.unrepaired, one.unrepaired) {
                (None, None) => true,
                (Some(a), Some(b)) => same_evidence(a, b),
                _ => false,
            };
            unrepaired && same_evidence(known.after.graph, one.after)
        };
        let equal: Vec<usize> = same_print.iter().copied().filter(|&i| is_same(&all[i])).collect();
        let same_slots = |&&i: &&usize| slots(&all[i].after, &all[i].own) == slots(&all[i].after, &own);
        if let Some(&known) = equal.iter().find(same_slots) {
            all[known].ranks.extend(one.rank);
            continue;
        }
        let after = match equal.first() {
            Some(&known) => all[known].after.clone(),
            None if all.is_empty() => first.clone(),
            None => Arc::new(AnalyzedGraph::new(one.after)),
        };
        same_print.push(all.len());
        let ranks = one.rank.into_iter().collect();
        all.push(RankGraph { ranks, own, unrepaired: one.unrepaired, after });
    }
    all
}

fn records_differ(a: Given, b: Given) -> bool {
    let recorded = |group: &Group| group.recorded_rank;
    let others = b.after.world.by_name();
    let mut groups = a.after.world.groups.iter();
    groups.any(|group| others.get(group.name.as_str()).is_some_and(|b| recorded(b) != recorded(group)))
}

/// The index of a rank in each process group of its graph's world. Where the file does not list the ranks of a group,
/// and its record of the rank does not count, by the layout that is assumed.
fn indices(world: Option<&FxHashMap<&str, &Group>>, one: &Given, is_recorded: bool) -> Vec<(String, u32)> {
    let index = |group: &Group| {
        let recorded = group.recorded_rank.filter(|_| is_recorded && group.instances.is_empty());
        recorded.or_else(|| Some(world?.get(group.name.as_str())?.instance_of(one.rank?)?.1 as u32))
    };
    let groups = one.after.world.groups.iter();
    groups.filter_map(|group| Some((group.name.clone(), index(group)?))).collect()
}

/// The own indices on which a graph depends: those in groups that it gathers in into a buffer, which may hold its
/// input.
fn slots<'o>(side: &AnalyzedGraph, own: &'o [(String, u32)]) -> Vec<&'o (String, u32)> {
    let calls = side.collectives.calls.iter();
    let gathers =
        calls.filter(|call| call.kind == Collective::AllGather && (call.out.is_some() || call.in_place));
    let groups: FxHashSet<GroupName> = gathers.map(|call| call.group).collect();
    own.iter().filter(|(name, _)| groups.contains(&GroupName::Text(name))).collect()
}

/// What was found in the graph of some ranks, and what became of each rule.
pub struct OnRanks {
    /// The global ranks; none where the graph is for all.
    pub ranks: Vec<u32>,
    /// The findings, arranged.
    pub findings: Vec<Finding>,
    /// The status of each rule, in catalogue order.
    pub rules: Vec<(&'static str, RuleStatus)>,
}

/// Joins what was found in the distinct graphs of all ranks, the first of which decides which rules apply.
pub fn join(parts: Vec<OnRanks>) -> (Vec<Finding>, Vec<(&'static str, RuleStatus)>) {
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else { return Default::default() };
    let rest: Vec<OnRanks> = parts.collect();
    let everywhere = first.ranks.len() + rest.iter().map(|part| part.ranks.len()).sum::<usize>();
    let (mut findings, mut rules) = (first.findings, first.rules);
    if rest.is_empty() {
        findings.iter_mut().for_each(|finding| finding.forget_ranks(everywhere));
        return (findings, rules);
    }
    for (place, (_, status)) in rules.iter_mut().enumerate() {
        if let RuleStatus::NotChecked(_) = status {
            continue;
        }
        let others = rest.iter().filter_map(|part| Some((&part.ranks, part.rules.get(place)?.1.clone())));
        let all: Vec<(&Vec<u32>, RuleStatus)> =
            std::iter::once((&first.ranks, status.clone())).chain(others).collect();
        *status = join_statuses(&all, everywhere);
    }
    for part in rest {
        for finding in part.findings {
            add(&mut findings, finding);
        }
    }
    findings.iter_mut().for_each(|finding| finding.forget_ranks(everywhere));
    for (id, status) in &mut rules {
        if let RuleStatus::Violated(n) = status {
            *n = findings.iter().flat_map(Finding::all).filter(|finding| finding.rule == *id).count();
        }
    }
    // The rules come in catalogue order in each part; joined they do again.
    by_weight(&mut findings);
    (findings, rules)
}

/// What becomes of a rule, from what became of it on ranks: a violation before a doubt.
fn join_statuses(all: &[(&Vec<u32>, RuleStatus)], everywhere: usize) -> RuleStatus {
    if let Some((_, violated)) = all.iter().find(|(_, status)| matches!(status, RuleStatus::Violated(_))) {
        return violated.clone();
    }
    let doubts = all.iter().filter_map(|(ranks, status)| match status {
        RuleStatus::Undecided(why) => Some((*ranks, why)),
        _ => None,
    });
    let doubts: Vec<(&Vec<u32>, &Reason)> = doubts.collect();
    let Some((_, why)) = doubts.first() else { return RuleStatus::Holds };
    let mut ranks: Vec<u32> = doubts.iter().flat_map(|(ranks, _)| ranks.iter().copied()).collect();
    ranks.sort_unstable();
    match ranks.len() == everywhere {
        true => RuleStatus::Undecided((*why).clone()),
        false => RuleStatus::Undecided((*why).clone().behind(format!("on {}: ", name_ranks(&ranks)))),
    }
}

/// Adds a finding, or its ranks to the same one of other ranks.
fn add(all: &mut Vec<Finding>, finding: Finding) {
    let elsewhere = |known: &Finding| !known.ranks.iter().any(|rank| finding.ranks.contains(rank));
    match all.iter_mut().find(|known| is_same(known, &finding) && elsewhere(known)) {
        None => all.push(finding),
        Some(known) => {
            known.ranks.extend(finding.ranks);
            finding.consequences.into_iter().for_each(|one| add(&mut known.consequences, one));
        }
    }
}

/// Whether two findings say the same, numbers aside: what is wrong on each rank may differ in a rank's own offset.
fn is_same(a: &Finding, b: &Finding) -> bool {
    let words = |finding: &Finding| finding.title.split(|c: char| c.is_ascii_digit()).collect::<String>();
    let names = |finding: &Finding| finding.nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>();
    a.rule == b.rule && a.stage == b.stage && names(a) == names(b) && words(a) == words(b)
}

impl Finding {
    /// Sorts the ranks, and drops them where they are all that there are.
    fn forget_ranks(&mut self, all: usize) {
        self.ranks.sort_unstable();
        if self.ranks.len() == all {
            self.ranks.clear();
        }
        self.consequences.iter_mut().for_each(|finding| finding.forget_ranks(all));
    }
}

/// Ranks in words: three by number, more by how many there are.
pub fn name_ranks(ranks: &[u32]) -> String {
    let list = |ranks: &[u32]| ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    match ranks {
        [] => "every rank".to_string(),
        [one] => format!("rank {one}"),
        [first @ .., last] if first.len() < 3 => format!("ranks {} and {last}", list(first)),
        [a, b, rest @ ..] => format!("ranks {a}, {b} and {} others", rest.len()),
    }
}
