//! `rewrite/groups`: collectives on another process group than before.
//!
//! A second group of the same ranks in the same order carries the same values; passes make one so that gathers need not
//! queue behind reductions. Where both groups list their ranks, `rewrite/values` knows. Where a list is missing, the
//! graph after is proved with the old group in the place of the new one: then the result is right if the two have the
//! same ranks in the same order, and the rule states that condition. That is never a violation. Where both lists are known
//! and differ, the group is the cause of other values only if these are equal with the group before in its place.

use super::executed::{self, Asked};
use super::proved::Evaluated;
use super::values::{ValueMethod, ValueResult};
use super::{AnalyzedGraph, Checked, Code, Evidence, Finding, Reason, Stage};
use crate::analysis::GroupName;
use crate::graph::{Editor, Graph, NodeId, Value, World};
use crate::ops::Collective;
use crate::semantics::{Alike, Numerics, Question};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};

/// A group of the graph after, the one that it stands for, and how many ranks both have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MovedGroup {
    /// The group after.
    pub after: String,
    /// The group before.
    pub before: String,
    /// How many ranks each has.
    pub size: i64,
    /// Whether both list the same ranks in the same order.
    pub is_known: bool,
}

/// The groups that collectives have moved to; `None` where there is none, where one stands for two, or where ranks or
/// their number are known to differ.
fn moved(evidence: &Evidence) -> Option<Vec<MovedGroup>> {
    let (before, after) = (&evidence.before, &evidence.after);
    let mut moved: BTreeMap<&str, MovedGroup> = BTreeMap::new();
    let mut stays: Vec<&str> = Vec::new();
    for (old, new) in launches(evidence) {
        let (a, b) = (&before.collectives.calls[old], &after.collectives.calls[new]);
        let (GroupName::Text(was), GroupName::Text(is)) = (a.group, b.group) else { continue };
        if was == is {
            stays.push(is);
            continue;
        }
        let size = a.group_size.filter(|size| b.group_size == Some(*size))?;
        let is_known = match (ranks(evidence, was), ranks(evidence, is)) {
            (Some(known), Some(others)) if known != others => return None,
            (known, others) => known.is_some() && others.is_some(),
        };
        let own = MovedGroup { after: is.to_string(), before: was.to_string(), size, is_known };
        if *moved.entry(is).or_insert_with(|| own.clone()) != own {
            return None;
        }
    }
    // A group that keeps its collectives is itself, and no other one.
    if stays.iter().any(|group| moved.contains_key(group)) {
        return None;
    }
    let moved: Vec<MovedGroup> = moved.into_values().collect();
    (!moved.is_empty()).then_some(moved)
}

/// Launches before and after: those that survive, and those that are left of one kind, in list order. What is taken for the same
/// launch here is a premise of a proof, and no more.
fn launches(evidence: &Evidence) -> Vec<(usize, usize)> {
    let (before, after) = (&evidence.before.collectives, &evidence.after.collectives);
    let of = evidence.correspondence.survivors();
    let mut pairs: Vec<(usize, usize)> =
        of.filter_map(|(old, new)| Some((before.launch_at(old)?, after.launch_at(new)?))).collect();
    let (old, new): (FxHashSet<usize>, FxHashSet<usize>) = pairs.iter().copied().unzip();
    let mut left: FxHashMap<Collective, VecDeque<usize>> = FxHashMap::default();
    for launch in (0..after.calls.len()).filter(|launch| !new.contains(launch)) {
        left.entry(after.calls[launch].kind).or_default().push_back(launch);
    }
    for launch in (0..before.calls.len()).filter(|launch| !old.contains(launch)) {
        let of_kind = left.get_mut(&before.calls[launch].kind);
        pairs.extend(of_kind.and_then(VecDeque::pop_front).map(|other| (launch, other)));
    }
    pairs
}

/// The groups that must have the ranks of those they stand for, for both graphs to be equal.
pub(super) fn prove(evidence: &Evidence) -> Option<Vec<MovedGroup>> {
    let moved = moved(evidence)?;
    let names = moved.iter().map(|group| (group.after.as_str(), group.before.as_str()));
    is_equal_on(evidence, names).then_some(moved)
}

/// Whether both graphs are proved equal with other groups in the graph after.
fn is_equal_on<'n>(evidence: &Evidence, groups: impl Iterator<Item = (&'n str, &'n str)>) -> bool {
    let graph = renamed(&evidence.after, groups);
    let after = AnalyzedGraph::new(&graph);
    Evaluated::new(&evidence.before, &after, &evidence.start()).proves_equal()
}

/// The graph with other groups in the places of some: each of these, and what takes its place.
fn renamed<'n>(side: &AnalyzedGraph, groups: impl Iterator<Item = (&'n str, &'n str)>) -> Graph {
    let groups: BTreeMap<&str, &str> = groups.collect();
    let mut editor = Editor::new(side.graph);
    let calls: Vec<NodeId> = side.collectives.calls.iter().map(|call| call.node).collect();
    for id in calls {
        let name = |editor: &mut Editor, value: Value| match value {
            Value::Str(text) => {
                let own = side.graph.text(text);
                groups.get(own).map_or(value, |name| Value::Str(editor.graph_mut().intern(name)))
            }
            other => other,
        };
        let args: Vec<Value> = side.graph.args(id).to_vec();
        let args: Vec<Value> = args.into_iter().map(|value| name(&mut editor, value)).collect();
        editor.set_args(id, &args);
        let kwargs: Vec<(String, Value)> =
            side.graph.kwargs(id).map(|(key, value)| (key.to_string(), value)).collect();
        let mut pairs = Vec::with_capacity(2 * kwargs.len());
        for (key, value) in kwargs {
            let value = name(&mut editor, value);
            pairs.extend([Value::Str(editor.graph_mut().intern(&key)), value]);
        }
        let graph = editor.graph_mut();
        let kwargs = graph.push_values(&pairs);
        graph.node_mut(id).kwargs = kwargs;
    }
    editor.finish()
}

/// The condition, in words.
pub(super) fn condition(moved: &[MovedGroup]) -> String {
    let one = |MovedGroup { after, before, size, .. }: &MovedGroup| {
        format!("group {after} has the ranks of group {before}, in the same order (each has {size})")
    };
    moved.iter().map(one).collect::<Vec<_>>().join(", and ")
}

/// The groups of which it is not known whether they have the ranks of those that they stand for.
pub(super) fn open(moved: &[MovedGroup]) -> Vec<MovedGroup> {
    moved.iter().filter(|group| !group.is_known).cloned().collect()
}

/// Why executions say nothing: they took groups whose ranks are not recorded for a mesh, and laid out otherwise, as they may be,
/// the graphs compare otherwise.
pub(super) fn depends_on_layout(evidence: &Evidence, limit: u64, question: Question) -> Option<Reason> {
    let is_equal = |(_, result): &(ValueMethod, ValueResult)| matches!(result, ValueResult::Equal(_));
    let is_different = |(_, result): &(ValueMethod, ValueResult)| matches!(result, ValueResult::Different(_));
    let was_equal = evidence.values.of_execution().any(is_equal);
    if evidence.ranks.len() > 1 || was_equal == evidence.values.of_execution().any(is_different) {
        return None;
    }
    let level = evidence.policies.allowed.numerics;
    let compares_otherwise = |world: &World| {
        let [before, after] = [evidence.before.graph, evidence.after.graph].map(|graph| {
            let mut graph = graph.clone();
            graph.world = world.clone();
            graph
        });
        let at = evidence.of_graphs(&before, std::slice::from_ref(&after))?;
        let results = executed::execute(&at, limit, question).results;
        let alike = || executed::likeness(&at, limit, level, Asked::Answer).map(|(found, _)| found.alike);
        let is_apart = results.iter().any(is_different);
        let is_same = results.iter().any(is_equal) || level > Numerics::Exact && alike() == Some(Alike::Same);
        Some(if was_equal { is_apart && !is_same } else { is_same })
    };
    let worlds = evidence.before.graph.world.other_layouts();
    worlds.iter().any(|world| compares_otherwise(world) == Some(true)).then(|| {
        let (is, was) = if was_equal { ("differ", "equal") } else { ("are equal", "different") };
        Code::GroupNotKnown.because(format!(
            "which ranks the groups have is not recorded: as assumed the graphs are {was}, laid out otherwise they {is}"
        ))
    })
}

/// A collective on another group has the same ranks in the same order, where its values depend on that. Other ranks alone
/// are no fault: a pass may gather over one large group what it gathered over two small ones. They are one where values
/// differ and would be equal on the group before.
pub(super) fn groups_kept(evidence: &Evidence) -> Checked {
    if let Some(moved) = &evidence.values.moved_groups {
        return Checked::undecided(Code::GroupNotKnown, format!("it holds if {}", condition(moved)));
    }
    let (before, after) = (&evidence.before, &evidence.after);
    let mut results = evidence.values.results.iter();
    if !results.any(|(_, result)| matches!(result, ValueResult::Different(_))) {
        return Checked::Findings(Vec::new());
    }
    let pairs = launches(evidence)
        .into_iter()
        .map(|(old, new)| (&before.collectives.calls[old], &after.collectives.calls[new]));
    let moved = pairs.filter_map(|(old, new)| {
        let (GroupName::Text(was), GroupName::Text(is)) = (old.group, new.group) else { return None };
        let (known, others) = (ranks(evidence, was)?, ranks(evidence, is)?);
        (known != others).then_some((new.node, (was, known), (is, others)))
    });
    let moved: Vec<_> = moved.collect();
    if moved.is_empty() || !is_equal_on(evidence, moved.iter().map(|(_, (was, _), (is, _))| (*is, *was))) {
        return Checked::Findings(Vec::new());
    }
    let finding = |(node, (was, known), (is, others))| {
        let title = format!("{} meets other ranks than before", after.graph.name(node));
        let finding = evidence
            .finding("rewrite/groups", Stage::After, title)
            .after_nodes(evidence, [node])
            .expected(format!("before, it is on group {was}, which has ranks {known:?}"))
            .observed(format!("after, it is on group {is}, which has ranks {others:?}"));
        Finding { is_cause: true, ..finding }
    };
    Checked::Findings(moved.into_iter().map(finding).collect())
}

/// The ranks of a group, one list for each instance, where they are known.
fn ranks(evidence: &Evidence, name: &str) -> Option<Vec<Vec<u32>>> {
    let mut worlds = [&evidence.before.graph.world, &evidence.after.graph.world].into_iter();
    let group = worlds.find_map(|world| world.group(name).filter(|group| !group.instances.is_empty()))?;
    let mut instances = group.instances.clone();
    instances.sort();
    Some(instances)
}
