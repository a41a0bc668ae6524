//! `bucket/policy-*`: what a bucketing promises beyond being right. Each rule names the budget it compared with.

use super::{AnalyzedGraph, Checked, Code, Evidence, Merge, Stage};
use crate::analysis::GroupName;
use crate::analysis::collectives::bucket_bytes;
use crate::analysis::contraction::check_contraction;
use crate::analysis::contradictions::{contradiction, gives_what_was_recorded};
use crate::graph::{Dtype, NodeId, Op, Str};
use crate::ops::Collective;
use fixedbitset::FixedBitSet;
use rustc_hash::{FxHashMap, FxHashSet};

fn not_requested(what: &str) -> Checked {
    Checked::NotChecked(format!("{what} was not asked for"))
}

/// A promise that was made and cannot be looked at.
fn unchecked(evidence: &Evidence, why: String) -> Checked {
    match evidence.policies.stated {
        true => Checked::undecided(Code::SeveralKinds, why),
        false => Checked::NotChecked(why),
    }
}

/// Buckets stay within the cap.
///
/// Buckets of one run are numbered in wait order; where caps are given per index, that number counts. A bucket may
/// reach its cap.
pub(super) fn cap(evidence: &Evidence) -> Checked {
    let Some(caps) = &evidence.policies.caps else { return not_requested("a cap") };
    let before = &evidence.before;
    let is_ordered = several_kinds(evidence).is_none();
    let mut findings = Vec::new();
    for run in runs(evidence) {
        let mut index = 0;
        let mut seen: FxHashSet<usize> = FxHashSet::default();
        for &launch in &run {
            let Some(merge) = evidence.correspondence.merge_of(launch) else { continue };
            if !seen.insert(merge) {
                continue;
            }
            let Merge { members, certain, .. } = &evidence.correspondence.merges[merge];
            let number = index;
            let limit = caps.at(if is_ordered { number } else { 0 });
            index += 1;
            if members.len() < 2 || !certain {
                continue;
            }
            let size = |&member: &usize| {
                let call = &before.collectives.calls[member];
                bucket_bytes(before.graph, call)
                    .ok_or_else(|| format!("the size of {} is not known", before.graph.name(call.node)))
            };
            let sizes = match members.iter().map(size).collect::<Result<Vec<i64>, String>>() {
                Ok(sizes) => sizes,
                Err(why) => return Checked::undecided(Code::SizeNotKnown, why),
            };
            let sum = sizes.iter().fold(0i64, |a, &b| a.saturating_add(b));
            if sum <= limit {
                continue;
            }
            let bucket = evidence.after.collectives.calls[evidence.correspondence.merges[merge].launch].node;
            findings.push(
                evidence
                    .finding(
                        "bucket/policy-cap",
                        Stage::After,
                        format!("bucket {} holds {sum} bytes", evidence.after.graph.name(bucket)),
                    )
                    .after_nodes(evidence, [bucket])
                    .before_nodes(evidence, members.iter().map(|&m| before.collectives.calls[m].node))
                    .fact(format!(
                        "it replaces {} ({} bytes)",
                        evidence.member_names(&evidence.correspondence.merges[merge]),
                        sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(" + ")
                    ))
                    .expected(match is_ordered {
                        true => format!("the cap for bucket {number} of its run is {limit} bytes"),
                        false => format!("no cap of its run is larger than {limit} bytes"),
                    })
                    .observed(format!("the bucket exceeds it by {}", sum - limit)),
            );
        }
    }
    Checked::Findings(findings)
}

/// Buckets have at least two members.
pub(super) fn min_size(evidence: &Evidence) -> Checked {
    if !evidence.policies.min_size {
        return not_requested("a least number of members");
    }
    let mut findings = Vec::new();
    for merge in evidence.correspondence.merges.iter().filter(|m| m.members.len() == 1 && m.certain) {
        let bucket = evidence.after.collectives.calls[merge.launch].node;
        let title = format!("bucket {} has one member", evidence.after.graph.name(bucket));
        findings.push(
            evidence
                .finding("bucket/policy-min-size", Stage::After, title)
                .after_nodes(evidence, [bucket])
                .expected("a bucket merges at least 2 collectives")
                .observed(format!("this one replaces {} alone", evidence.member_names(merge))),
        );
    }
    Checked::Findings(findings)
}

/// Members of a bucket are neighbours among the collectives of their kind, in wait order.
pub(super) fn adjacency(evidence: &Evidence) -> Checked {
    if !evidence.policies.adjacency {
        return not_requested("adjacency");
    }
    if let Some(why) = several_kinds(evidence) {
        return unchecked(evidence, why);
    }
    let before = &evidence.before;
    let runs = runs(evidence);
    let run_of = |launch: usize| runs.iter().position(|run| run.contains(&launch));
    let mut findings = Vec::new();
    for merge in evidence.correspondence.merges.iter().filter(|merge| merge.certain) {
        let apart = merge.members.windows(2).find(|pair| run_of(pair[0]) != run_of(pair[1]));
        let Some(&[a, b]) = apart.and_then(|pair| pair.first_chunk::<2>()) else { continue };
        let order = wait_order(evidence, before.collectives.calls[a].kind);
        let place = |launch: usize| order.iter().position(|&l| l == launch).unwrap_or(0);
        // By one account members may stand in another order than their waits.
        let (first, last) = (place(a).min(place(b)), place(a).max(place(b)));
        let between = order[first..last].iter().copied().find(|&l| key(evidence, l) != key(evidence, a));
        let (a, b) = (before.collectives.calls[a].node, before.collectives.calls[b].node);
        let bucket = evidence.after.collectives.calls[merge.launch].node;
        let mut finding = evidence
            .finding(
                "bucket/policy-adjacency",
                Stage::Before,
                format!(
                    "{} and {} are merged across another key",
                    before.graph.name(a),
                    before.graph.name(b)
                ),
            )
            .before_nodes(evidence, [a, b])
            .after_nodes(evidence, [bucket])
            .expected("members of a bucket are neighbours in wait order among the collectives of their kind");
        finding = match between {
            Some(l) => finding.observed(format!(
                "the wait of {} ({}) comes between them",
                before.graph.name(before.collectives.calls[l].node),
                super::comm::describe(before.graph, &before.collectives.calls[l])
            )),
            None => finding.observed("their keys differ"),
        };
        findings.push(finding);
    }
    Checked::Findings(findings)
}

/// First and last member are near each other in the list.
pub(super) fn topo_span(evidence: &Evidence) -> Checked {
    let Some(limit) = evidence.policies.max_topo_span else { return not_requested("a span") };
    if let Some(why) = several_kinds(evidence) {
        // The span of the second kind is measured in a graph that the first merge has changed.
        return unchecked(evidence, why);
    }
    let before = &evidence.before;
    // Waits for what has been waited for are folded before anything is measured, and what gives a false record is no node
    // of the pass's input.
    let is_folded =
        |&id: &NodeId| before.collectives.first_wait(id) != id || gives_what_was_recorded(before.graph, id);
    let folded: Vec<NodeId> = before.graph.ids().filter(is_folded).collect();
    let mut findings = Vec::new();
    for merge in evidence.correspondence.merges.iter().filter(|merge| merge.certain) {
        // From the first member in wait order on: one that starts before it is not limited.
        let mut nodes = merge.members.iter().map(|&m| before.collectives.calls[m].node);
        let Some(first) = nodes.next() else { continue };
        let last = nodes.max().unwrap_or(first).max(first);
        let between = folded.iter().filter(|&&wait| first < wait && wait < last).count() as u64;
        let span = u64::from(last.0 - first.0) - between;
        if span <= limit {
            continue;
        }
        let (a, b) = (before.graph.name(first), before.graph.name(last));
        findings.push(
            evidence
                .finding(
                    "bucket/policy-topo-span",
                    Stage::Before,
                    format!("{a} and {b} are {span} nodes apart"),
                )
                .before_nodes(evidence, [first, last])
                .expected(format!("members of a bucket are at most {limit} nodes apart"))
                .observed(format!("#{} and #{} share a bucket", first.0, last.0)),
        );
    }
    Checked::Findings(findings)
}

/// No collective was left out that could have joined when it was its turn.
///
/// Its turn: a bucket is open from its first member on, in wait order, until a collective comes that does not fit
/// under the cap or belongs to a later bucket. Whoever comes while it is open, fits, and depends on no member (nor
/// they on it), and keeps the contracted graph acyclic, could have joined.
pub(super) fn maximal(evidence: &Evidence) -> Checked {
    if !evidence.policies.maximal {
        return not_requested("maximality");
    }
    if evidence.correspondence.merges.is_empty() {
        return Checked::Findings(Vec::new());
    }
    if let Some(why) = several_kinds(evidence) {
        return unchecked(evidence, why);
    }
    let before = &evidence.before;
    let reachability = match before.launch_reachability() {
        Ok(reachability) => reachability,
        Err(why) => return Checked::undecided(Code::CycleBefore, why),
    };
    let limit = evidence.policies.caps.as_ref().map_or(i64::MAX, |caps| caps.at(0));
    let mut findings = Vec::new();
    for run in runs(evidence) {
        for (i, &first) in run.iter().enumerate() {
            let Some(merge) = evidence.correspondence.merge_of(first) else { continue };
            let Merge { members, certain, .. } = &evidence.correspondence.merges[merge];
            if members.first() != Some(&first) || !certain {
                continue;
            }
            let sizes = |launches: &[usize]| {
                launches.iter().try_fold(0i64, |sum, &l| {
                    sum.checked_add(bucket_bytes(before.graph, &before.collectives.calls[l])?)
                })
            };
            let Some(sum) = sizes(members) else { continue };
            let placements: FxHashSet<_> =
                members.iter().map(|&member| placement(evidence, member)).collect();
            let mut held = FixedBitSet::with_capacity(before.collectives.calls.len());
            let mut needs = held.clone();
            for &member in members {
                held.insert(member);
                reachability.ancestors(member).into_iter().for_each(|needed| needs.union_with(needed));
            }
            for &other in &run[i + 1..] {
                if held[other] || cannot_be_bucketed(evidence, other) {
                    continue;
                }
                let fits = sizes(&[other]).is_some_and(|size| sum.saturating_add(size) <= limit);
                if !fits || evidence.correspondence.merge_of(other).is_some() {
                    break;
                }
                if placements.len() > 1 || !placements.contains(&placement(evidence, other)) {
                    continue;
                }
                let needed = reachability.ancestors(other);
                let free = !needs[other] && needed.is_none_or(|needed| needed.is_disjoint(&held));
                if !free || !stays_acyclic(evidence, merge, other) {
                    continue;
                }
                let node = before.collectives.calls[other].node;
                let bucket =
                    evidence.after.collectives.calls[evidence.correspondence.merges[merge].launch].node;
                let (name, into) = (before.graph.name(node), evidence.after.graph.name(bucket));
                findings.push(
                    evidence
                        .finding("bucket/policy-maximal", Stage::After, format!("{name} could have joined bucket {into}"))
                        .before_nodes(evidence, [node])
                        .after_nodes(evidence, [bucket])
                        .fact(format!("{into} replaces {}", evidence.member_names(&evidence.correspondence.merges[merge])))
                        .expected(format!("{name} has their key, its wait comes while the bucket is open, it fits under the cap and depends on none of them"))
                        .observed("it was left alone"),
                );
            }
        }
    }
    Checked::Findings(findings)
}

fn stays_acyclic(evidence: &Evidence, merge: usize, other: usize) -> bool {
    let before = &evidence.before;
    let mut merges: Vec<Merge> = evidence.correspondence.merges.clone();
    merges[merge].members.push(other);
    let mut groups = evidence.groups_of(&merges);
    // A second wait for one value is folded into the first, and what must follow it with it.
    let bucketed = merges.iter().filter(|merge| merge.members.len() > 1).flat_map(|merge| &merge.members);
    let bucketed: Vec<NodeId> = bucketed.map(|&member| before.collectives.calls[member].node).collect();
    let is_gone = |wait: &NodeId| evidence.correspondence.after_of[wait.index()].is_none();
    for (value, mut waits) in before.waits_by_value() {
        if waits.len() > 1 && (bucketed.contains(&value) || waits.iter().any(is_gone)) {
            let touches = |group: &Vec<NodeId>| group.iter().any(|node| waits.contains(node));
            let (joined, apart): (Vec<_>, Vec<_>) = groups.into_iter().partition(touches);
            waits.extend(joined.into_iter().flatten());
            waits.sort_unstable();
            waits.dedup();
            groups = apart;
            groups.push(waits);
        }
    }
    check_contraction(before.dependences(), &groups).is_ok()
}

/// A figure of the graph before and of the graph after, or why one of them is not known.
fn on_both<T>(
    evidence: &Evidence,
    figure: impl Fn(&AnalyzedGraph) -> Result<T, String>,
) -> Result<(T, T), String> {
    let before = figure(&evidence.before).map_err(|why| format!("before, {why}"))?;
    let after = figure(&evidence.after).map_err(|why| format!("after, {why}"))?;
    Ok((before, after))
}

/// The peak of live storage bytes stays within the budget.
pub(super) fn peak_memory(evidence: &Evidence) -> Checked {
    let Some(budget) = evidence.policies.peak_memory else { return not_requested("a memory budget") };
    let (before, after) = match on_both(evidence, |side| side.peak_bytes()) {
        Ok(both) => both,
        Err(why) => return Checked::undecided(Code::SizeNotKnown, why),
    };
    let limit = budget.limit(before.bytes);
    if after.bytes <= limit {
        return Checked::Findings(Vec::new());
    }
    let name = evidence.after.graph.name(after.at);
    let finding = evidence
        .finding("bucket/policy-peak-memory", Stage::After, format!("peak memory is {} bytes", after.bytes))
        .after_nodes(evidence, [after.at])
        .fact(format!(
            "before, the peak is {} bytes, at {}",
            before.bytes,
            evidence.before.graph.name(before.at)
        ))
        .expected(format!("the budget is {limit} bytes"))
        .observed(format!("after, {} bytes are live at {name}", after.bytes));
    Checked::Findings(vec![finding])
}

/// Exposed communication does not grow beyond the budget.
pub(super) fn exposed_time(evidence: &Evidence) -> Checked {
    let Some(budget) = evidence.policies.exposed_time else {
        return not_requested("a budget for exposed time");
    };
    let model = evidence.policies.cost;
    let (before, after) = match on_both(evidence, |side| side.exposed_seconds(&model)) {
        Ok(both) => both,
        Err(why) => return Checked::undecided(Code::SizeNotKnown, why),
    };
    let limit = budget.limit(before);
    if after <= limit {
        return Checked::Findings(Vec::new());
    }
    let finding = evidence
        .finding(
            "bucket/policy-exposed-time",
            Stage::After,
            format!("{:.1} us of communication are exposed", after * 1e6),
        )
        .fact(format!("by the cost model {model}"))
        .fact(format!("before, {:.1} us are exposed", before * 1e6))
        .expected(format!("the budget is {:.1} us", limit * 1e6))
        .observed(format!("after, {:.1} us are exposed", after * 1e6));
    Checked::Findings(vec![finding])
}

/// The same buckets under other names and another order of inputs.
pub(super) fn deterministic(evidence: &Evidence) -> Checked {
    let Some(other) = &evidence.renamed_plan else {
        return Checked::NotChecked("the candidate was not run on a renamed graph".into());
    };
    let before = &evidence.before;
    let calls = &before.collectives.calls;
    // Which of equal launches is in a bucket, nobody can tell: the first one stands for them.
    let mut first: FxHashMap<String, NodeId> = FxHashMap::default();
    let firsts = calls.iter().map(|call| {
        let sent: Vec<NodeId> =
            call.inputs.iter().map(|&input| before.collectives.first_wait(input)).collect();
        let key =
            format!("{} {:?} {:?} {sent:?}", before.graph.target(call.node), call.group, call.reduce_op);
        (before.graph.name(call.node), before.graph.name(*first.entry(key).or_insert(call.node)))
    });
    let firsts: FxHashMap<&str, &str> = firsts.collect();
    let sorted = |plan: Vec<Vec<&str>>| {
        let bucket = |names: Vec<&str>| -> Vec<String> {
            names.into_iter().map(|name| (*firsts.get(name).unwrap_or(&name)).to_string()).collect()
        };
        let mut plan: Vec<Vec<String>> = plan.into_iter().map(bucket).collect();
        plan.sort();
        plan
    };
    let named = |&m: &usize| before.graph.name(calls[m].node);
    let merges = evidence.correspondence.merges.iter();
    let plan = sorted(merges.map(|merge| merge.members.iter().map(named).collect()).collect());
    let other = sorted(other.iter().map(|bucket| bucket.iter().map(String::as_str).collect()).collect());
    if plan == other {
        return Checked::Findings(Vec::new());
    }
    let only = |a: &[Vec<String>], b: &[Vec<String>]| {
        a.iter()
            .find(|x| !b.contains(x))
            .map_or("no bucket of its own".to_string(), |x| format!("bucket {{{}}}", x.join(", ")))
    };
    let nodes: Vec<NodeId> = plan
        .iter()
        .filter(|bucket| !other.contains(bucket))
        .flatten()
        .filter_map(|name| before.graph.find(name))
        .collect();
    let finding = evidence
        .finding(
            "bucket/policy-deterministic",
            Stage::After,
            "the choice of buckets depends on names or input order".into(),
        )
        .before_nodes(evidence, nodes)
        .expected(format!("with the names as given: {}", only(&plan, &other)))
        .observed(format!("with nodes renamed and independent inputs permuted: {}", only(&other, &plan)));
    Checked::Findings(vec![finding])
}

/// Kinds are merged one after another, and merging one may move the waits of the next: then the wait order that
/// counted for the later kinds is not known from outside.
fn several_kinds(evidence: &Evidence) -> Option<String> {
    let calls = &evidence.after.collectives.calls;
    let mut kinds: Vec<Collective> =
        evidence.correspondence.merges.iter().map(|m| calls[m.launch].kind).collect();
    kinds.sort();
    kinds.dedup();
    (kinds.len() > 1).then(|| "several kinds of collectives were merged one after another".to_string())
}

/// The key under which launches may be merged (spec: bucketing, 2.1).
fn key<'e>(
    evidence: &'e Evidence,
    launch: usize,
) -> (GroupName<'e>, Option<&'e str>, Option<crate::graph::Dtype>) {
    let before = &evidence.before;
    let call = &before.collectives.calls[launch];
    // The pass goes by the record, false or not.
    let ends = before.collectives.waits[launch].iter().chain([&call.node]);
    let mut readers = ends.flat_map(|&end| before.edges.users(end));
    let record = readers.find(|&&reader| gives_what_was_recorded(before.graph, reader));
    let shown = record.unwrap_or(&call.node);
    let dtype = before.graph.tensor_of(*shown).map(|t| t.dtype);
    let mixes = evidence.policies.multidtype && call.kind == Collective::AllGather;
    (call.group, call.reduce_op, if mixes { None } else { dtype })
}

/// The launches of one kind that may be bucketed, in the order of their waits.
fn wait_order(evidence: &Evidence, kind: Collective) -> Vec<usize> {
    let before = &evidence.before;
    let mut waits: Vec<(NodeId, usize)> = Vec::new();
    for (launch, call) in before.collectives.calls.iter().enumerate() {
        let eligible =
            call.kind == kind && !call.coalesced && !call.in_place && before.is_inductor_candidate(call.node);
        if eligible && let Some(&wait) = before.collectives.waits[launch].first() {
            waits.push((wait, launch));
        }
    }
    waits.sort();
    waits.into_iter().map(|(_, launch)| launch).collect()
}

/// Whether a launch cannot be in any bucket: it has no rows; somebody else uses its value before the wait, or its
/// `out=` buffer, which the merged launch would not write; its rows do not divide among the ranks; what is recorded of it or
/// of its wait contradicts its operator, so that it is opaque.
fn cannot_be_bucketed(evidence: &Evidence, launch: usize) -> bool {
    let before = &evidence.before;
    let graph = before.graph;
    let call = &before.collectives.calls[launch];
    let tensor = |node: NodeId| graph.tensor_of(node);
    let Some(input) = call.inputs.first().and_then(|&input| tensor(input)) else { return true };
    let Some(sizes) = graph.sizes(input.shape) else { return true };
    let lacks_rows = match (call.kind, sizes.first(), call.group_size) {
        (Collective::AllReduce, ..) => false,
        (Collective::ReduceScatter, Some(rows), Some(ranks)) => ranks > 0 && rows % ranks != 0,
        (_, rows, _) => rows.is_none(),
    };
    if lacks_rows {
        return true;
    }
    let waits = &before.collectives.waits[launch];
    let is_contradicted = |&id: &NodeId| contradiction(graph, &before.ops, id).is_some();
    let readers = waits.iter().flat_map(|&wait| before.edges.users(wait));
    if before.edges.users(call.node).iter().any(|user| !waits.contains(user))
        || is_contradicted(&call.node)
        || readers.copied().any(|reader| gives_what_was_recorded(graph, reader))
    {
        return true;
    }
    call.out.is_some_and(|out| shows_elsewhere(before, launch, out))
}

/// What launches of one key need to have in common to go together whatever their sizes: the device; and, where dtypes
/// mix, the dtype, since a piece might not be aligned.
fn placement(evidence: &Evidence, launch: usize) -> Option<(Str, Option<Dtype>)> {
    let before = &evidence.before;
    let tensor = before.graph.tensor_of(before.collectives.calls[launch].node)?;
    Some((tensor.device, evidence.policies.multidtype.then_some(tensor.dtype)))
}

/// Whether the buffer that a launch writes is touched later through another name than the launch's result.
fn shows_elsewhere(side: &AnalyzedGraph, launch: usize, out: NodeId) -> bool {
    let storages = side.storages();
    let node = side.collectives.calls[launch].node;
    storages.all_parts(out).any(|part| {
        if storages.storage(part.storage).external {
            return true;
        }
        let showing = side.shown_by(part.storage);
        // Names of the result: reached from the launch through nodes that show the buffer.
        let mut names = vec![node];
        for &id in showing {
            if side.edges.inputs(id).iter().any(|input| names.contains(input)) {
                names.push(id);
            }
        }
        let others = showing.iter().filter(|id| !names.contains(id));
        others.flat_map(|&id| side.edges.users(id)).any(|&user| {
            let touches = side.graph.node(user).op == Op::Output || !storages.accesses_by(user).is_empty();
            user > node && touches
        })
    })
}

/// Runs of launches with one key, in wait order, for each kind; none where nothing was merged.
fn runs(evidence: &Evidence) -> Vec<Vec<usize>> {
    let mut runs: Vec<Vec<usize>> = Vec::new();
    if evidence.correspondence.merges.is_empty() {
        return runs;
    }
    for kind in [Collective::AllGather, Collective::ReduceScatter, Collective::AllReduce] {
        let order = wait_order(evidence, kind);
        if evidence.policies.adjacency {
            for (i, &launch) in order.iter().enumerate() {
                match i > 0 && key(evidence, order[i - 1]) == key(evidence, launch) {
                    true => runs.last_mut().into_iter().for_each(|run| run.push(launch)),
                    false => runs.push(vec![launch]),
                }
            }
        } else {
            let mut by_key: Vec<(_, Vec<usize>)> = Vec::new();
            for launch in order {
                let key = key(evidence, launch);
                match by_key.iter_mut().find(|(k, _)| *k == key) {
                    Some((_, run)) => run.push(launch),
                    None => by_key.push((key, vec![launch])),
                }
            }
            runs.extend(by_key.into_iter().map(|(_, run)| run));
        }
    }
    runs
}

impl AnalyzedGraph<'_> {
    /// Whether Inductor's bucketing looks at this launch: the plain functional forms, and gathers with `out=`.
    fn is_inductor_candidate(&self, launch: NodeId) -> bool {
        matches!(
            self.graph.target(launch),
            "_c10d_functional.all_gather_into_tensor.default"
                | "_c10d_functional.all_gather_into_tensor_out.default"
                | "_c10d_functional.reduce_scatter_tensor.default"
                | "_c10d_functional.all_reduce.default"
        )
    }
}
