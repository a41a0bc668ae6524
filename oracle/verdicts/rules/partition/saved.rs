//! How much is saved: bytes by storage, what no partition can do without, cuts and budgets.

use super::super::Checked;
use super::config::Method;
use super::evidence::{
    BackwardInput, CutNetwork, PartitionEvidence, Saved, ValueClass, class_of, is_backward_only,
};
use super::flow::{Network, UNLIMITED};
use crate::analysis::storages::StorageIndex;
use crate::case::covered;
use crate::graph::{NodeId, Op, Value};
use crate::rules::{AnalyzedGraph, Code};
use rustc_hash::{FxHashMap, FxHashSet};

/// What is saved, in bytes of distinct storages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SavedBytes {
    /// Number of saved values.
    pub values: usize,
    /// Number of distinct storages behind them, static inputs left out.
    pub storages: usize,
    /// Their bytes. A view keeps its whole storage.
    pub bytes: i64,
    /// Bytes of static inputs, which live anyway.
    pub static_bytes: i64,
    /// Bytes that no partition can do without, however much it recomputes; `None` where sizes are not known.
    pub least: Option<i64>,
}

/// The primals that live for the whole program, as nodes of the joint graph.
pub(super) fn static_inputs(evidence: &PartitionEvidence) -> FxHashSet<NodeId> {
    let graph = evidence.joint.graph;
    let primals: Vec<NodeId> = graph
        .ids()
        .filter(|&id| {
            let target = graph.target(id);
            let is_seed = ["bwd_seed", "bwd_base_offset", "fwd_seed", "fwd_base_offset"];
            graph.node(id).op == Op::Placeholder
                && !super::evidence::is_tangent(target)
                && !is_seed.iter().any(|seed| target.contains(seed))
        })
        .collect();
    let ranges = evidence.config.static_inputs.iter().map(|range| (*range.start(), *range.end()));
    let is_static = covered(ranges.collect(), primals.len());
    primals.into_iter().zip(is_static).filter_map(|(id, is_static)| is_static.then_some(id)).collect()
}

/// The bytes of a storage; where they are not known, by the hints of symbolic sizes those of the value that it was made
/// for and of the values saved of it, of which the largest counts.
fn bytes_of(side: &AnalyzedGraph, storage: StorageIndex, shown: &[NodeId]) -> Option<i64> {
    let info = side.storages().storage(storage);
    let hinted = |&id: &NodeId| side.graph.bytes(side.graph.tensor_of(id)?);
    info.bytes.or_else(|| shown.iter().chain([&info.by]).map(hinted).max().flatten())
}

/// What is saved; `None` where a size is not known.
pub fn saved_bytes(evidence: &PartitionEvidence) -> Option<SavedBytes> {
    let side = &evidence.joint;
    let fixed = static_inputs(evidence);
    let mut shown: FxHashMap<StorageIndex, Vec<NodeId>> = FxHashMap::default();
    let mut order = Vec::new();
    for saved in evidence.saved.iter().filter(|saved| saved.class == ValueClass::Tensor) {
        let Some(id) = saved.joint else { continue };
        for part in side.storages().all_parts(id) {
            let nodes = shown.entry(part.storage).or_insert_with(|| {
                order.push(part.storage);
                Vec::new()
            });
            nodes.push(id);
        }
    }
    let mut total = SavedBytes { values: evidence.saved.len(), ..SavedBytes::default() };
    // What the joint graph does not have is memory of forward's own, unless it shows what is counted already.
    let forward = &evidence.forward;
    let tensors = || evidence.saved.iter().filter(|saved| saved.class == ValueClass::Tensor);
    let known = tensors().filter(|saved| saved.joint.is_some());
    let mut counted: FxHashSet<StorageIndex> = known
        .flat_map(|saved| forward.storages().all_parts(saved.forward))
        .map(|part| part.storage)
        .collect();
    for saved in tensors().filter(|saved| saved.joint.is_none()) {
        for part in forward.storages().all_parts(saved.forward) {
            if counted.insert(part.storage) {
                total.storages += 1;
                total.bytes = total.bytes.checked_add(bytes_of(forward, part.storage, &[saved.forward])?)?;
            }
        }
    }
    for storage in order {
        let bytes = bytes_of(side, storage, &shown[&storage])?;
        if fixed.contains(&side.storages().storage(storage).by) {
            total.static_bytes = total.static_bytes.checked_add(bytes)?;
        } else {
            total.storages += 1;
            total.bytes = total.bytes.checked_add(bytes)?;
        }
    }
    total.least = least_bytes(evidence, &fixed);
    Some(total)
}

/// What no partition can do without: a minimum cut between the inputs and what backward reads, where keeping a storage
/// costs its bytes. Everything else may be recomputed, random draws too (from a generator's state, which no count
/// includes), which is more than any partition does; so this is a bound from below.
fn least_bytes(evidence: &PartitionEvidence, fixed: &FxHashSet<NodeId>) -> Option<i64> {
    let side = &evidence.joint;
    let (graph, storages) = (side.graph, side.storages());
    let n = storages.len();
    // A storage is two vertices: it is there, and it is there in backward.
    let (source, sink) = (2 * n, 2 * n + 1);
    let mut network = Network::new(2 * n + 2);
    let needed_in_backward = |id: NodeId| evidence.needs_tangent[id.index()];
    for storage in storages.ids() {
        let info = storages.storage(storage);
        let by = info.by;
        if needed_in_backward(by) {
            continue;
        }
        let bytes = info.bytes.unwrap_or(0);
        let capacity = if fixed.contains(&by) { 0 } else { u64::try_from(bytes).unwrap_or(0) };
        network.edge(2 * storage.index(), 2 * storage.index() + 1, capacity);
        if info.external {
            network.edge(source, 2 * storage.index(), UNLIMITED);
        }
    }
    let mut inputs: Vec<StorageIndex> = Vec::new();
    for id in graph.ids().filter(|id| evidence.live_joint[id.index()]) {
        let node = graph.node(id);
        if node.op == Op::Placeholder {
            continue;
        }
        inputs.clear();
        if node.op == Op::Output {
            let of_backward = evidence.joint_returns.iter().skip(evidence.forward_outputs);
            for value in of_backward {
                if let Value::Node(id) = *value {
                    inputs.extend(storages.all_parts(id).map(|part| part.storage));
                }
            }
        } else {
            let own = side.edges.inputs(id).iter();
            inputs.extend(own.flat_map(|&input| storages.all_parts(input)).map(|part| part.storage));
        }
        inputs.sort_unstable();
        inputs.dedup();
        inputs.retain(|&storage| !needed_in_backward(storages.storage(storage).by));
        if needed_in_backward(id) || node.op == Op::Output {
            inputs.iter().for_each(|input| network.edge(2 * input.index() + 1, sink, UNLIMITED));
            continue;
        }
        let mut made: Vec<StorageIndex> = storages.all_parts(id).map(|part| part.storage).collect();
        made.sort_unstable();
        made.dedup();
        for storage in made {
            for input in inputs.iter().filter(|input| **input != storage) {
                network.edge(2 * input.index() + 1, 2 * storage.index(), UNLIMITED);
            }
        }
    }
    network.max_flow(source, sink).value.and_then(|flow| i64::try_from(flow).ok())
}

/// Which nodes of the joint graph backward can compute: from what is saved, or equal to it, and from what it is given.
fn computable_in_backward(evidence: &PartitionEvidence) -> Vec<bool> {
    let graph = evidence.joint.graph;
    let mut computable = vec![false; graph.len()];
    let saved = evidence.saved.iter().filter_map(|saved| saved.joint);
    saved.flat_map(|id| evidence.equal_nodes(id)).for_each(|id| computable[id.index()] = true);
    for id in graph.ids() {
        computable[id.index()] |= match graph.node(id).op {
            Op::Placeholder => is_backward_only(graph, id),
            _ => evidence.joint.edges.inputs(id).iter().all(|input| computable[input.index()]),
        };
    }
    computable
}

/// Which nodes of the joint graph lead to communication in backward whose result nobody needs, themselves or as one of
/// equal values of which one is left for all. PyTorch's partitions keep a wait that nobody reads, of whatever it waits
/// for, or drop it when the signature stands already; so do they with communication of forward that backward can run
/// too. What reads another saved value is no use of this one.
fn leads_to_dead_communication(evidence: &PartitionEvidence) -> Vec<bool> {
    let joint = &evidence.joint;
    let mut passes_on = computable_in_backward(evidence);
    evidence.saved.iter().filter_map(|saved| saved.joint).for_each(|id| passes_on[id.index()] = false);
    let communicates = |id: NodeId| joint.collectives.launch_at(id).is_some() || joint.is_wait(id);
    let is_dead = |id: &NodeId| communicates(*id) && !evidence.runs_in_backward(*id);
    let mut stack: Vec<NodeId> =
        joint.graph.ids().filter(|id| passes_on[id.index()]).filter(is_dead).collect();
    let mut leads = vec![false; joint.graph.len()];
    while let Some(at) = stack.pop() {
        for &input in joint.edges.inputs(at) {
            if leads[input.index()] {
                continue;
            }
            for &twin in evidence.equal_nodes(input) {
                leads[twin.index()] = true;
                if passes_on[twin.index()] {
                    stack.push(twin);
                }
            }
        }
    }
    leads
}

/// No tensor is saved in vain: a result or an effect of backward depends on it. What only communication reads that is
/// itself in vain is left to `comm/no-dead-collective`. Numbers take no memory.
pub(super) fn no_dead_saved(evidence: &PartitionEvidence) -> Checked {
    let excused = match evidence.config.promises.no_dead_collectives {
        true => vec![false; evidence.joint.graph.len()],
        false => leads_to_dead_communication(evidence),
    };
    let mut findings = Vec::new();
    for saved in evidence.saved.iter().filter(|saved| saved.class != ValueClass::Symbol) {
        let Some(input) = saved.backward.filter(|input| !evidence.live_backward[input.index()]) else {
            continue;
        };
        if saved.joint.is_some_and(|id| excused[id.index()]) {
            continue;
        }
        let name = saved.name.as_str();
        let users: Vec<&str> =
            evidence.backward.edges.users(input).iter().map(|&id| evidence.backward.graph.name(id)).collect();
        let read = match users.is_empty() {
            true => "nobody there reads it".to_string(),
            false => {
                format!("{} read it, and nothing that backward returns or does needs them", users.join(", "))
            }
        };
        findings.push(
            evidence
                .finding("partition/no-dead-saved", format!("{name} is saved for nothing"))
                .nodes(evidence, [name])
                .contrast(format!("{name} is kept for backward"), read),
        );
    }
    Checked::Findings(findings)
}

/// Nothing is saved twice.
pub(super) fn distinct(evidence: &PartitionEvidence) -> Checked {
    const RULE: &str = "partition/saved-distinct";
    if !evidence.config.promises.distinct {
        return Checked::NotChecked("distinct is not promised".into());
    }
    let forward = &evidence.forward;
    let mut findings = Vec::new();
    let mut by_memory: FxHashMap<(StorageIndex, i64), &str> = FxHashMap::default();
    let mut by_term: FxHashMap<super::terms::Term, &str> = FxHashMap::default();
    let terms = evidence.terms();
    for saved in evidence.saved.iter().filter(|saved| saved.class == ValueClass::Tensor) {
        let whole = || evidence.shown(saved).filter(|(_, is_whole)| *is_whole);
        let Some(id) = saved.joint.or_else(|| Some(whole()?.0)) else { continue };
        let name = saved.name.as_str();
        let bytes = forward.graph.tensor_of(saved.forward).and_then(|tensor| forward.graph.bytes(tensor));
        let storage = forward.storages().storage_of(saved.forward);
        let memory = storage.zip(bytes).and_then(|key| by_memory.insert(key, name));
        let term = terms.and_then(|(joint, _)| by_term.insert(joint.of[id.index()], name));
        let (twin, why) = match (memory, term) {
            (Some(twin), _) => (twin, "they are the same memory"),
            (None, Some(twin)) => (twin, "they are equal"),
            (None, None) => continue,
        };
        if twin != name {
            findings.push(
                evidence
                    .finding(RULE, format!("{name} and {twin} are both saved"))
                    .nodes(evidence, [name, twin])
                    .contrast("one of them would do", why),
            );
        }
    }
    Checked::Findings(findings)
}

/// The minimum cut of a network that is closest to the sink, and its value.
struct Closest<'a> {
    flow: u64,
    /// The names of what it saves.
    saves: FxHashSet<&'a str>,
}

impl<'a> Closest<'a> {
    /// `None` where no cut is finite.
    fn of(given: &'a CutNetwork) -> Option<Closest<'a>> {
        let mut network = Network::new(given.vertices);
        for edge in &given.edges {
            network.edge(edge.from, edge.to, edge.capacity.unwrap_or(UNLIMITED));
        }
        let found = network.max_flow(given.source, given.sink);
        let (flow, sink_side) = (found.value?, found.reaches(given.sink));
        let on_sink_side = |vertex: usize| sink_side.get(vertex).copied().unwrap_or(false);
        let cut = given.edges.iter().filter(|edge| !on_sink_side(edge.from) && on_sink_side(edge.to));
        Some(Closest { flow, saves: cut.filter_map(|edge| edge.saves.as_deref()).collect() })
    }
}

/// What is saved for its own sake, by name. Symbols are left out: those that sizes need are saved whatever the cut
/// says; and states of generators, which no cut chooses, and whose names may be those of other nodes of the joint
/// graph. Where the cut saves communication, which is handed over only when it has been waited for, its wait stands for
/// it.
fn saved_values<'a>(evidence: &'a PartitionEvidence, closest: &Closest) -> FxHashSet<&'a str> {
    let chosen = |class: ValueClass| !matches!(class, ValueClass::Symbol | ValueClass::Generator);
    // The launch that forward waits for: of equal launches in the joint graph one may be left.
    let forward = &evidence.forward;
    let launch = |saved: &'a Saved| {
        let wait = evidence.in_forward[saved.joint?.index()].filter(|&id| forward.is_wait(id))?;
        let Value::Node(launch) = forward.graph.argument(wait, 0, "tensor")? else { return None };
        forward.collectives.launch_at(launch)?;
        let name = forward.graph.name(launch);
        (closest.saves.contains(name) && !closest.saves.contains(saved.name.as_str())).then_some(name)
    };
    let own = evidence.saved.iter().filter(|saved| chosen(saved.class));
    own.map(|saved| launch(saved).unwrap_or(saved.name.as_str())).collect()
}

/// Whether a value that a cut saves is for backward to have: it computes it, so it should have been given it. What
/// backward does not have at all is dropped when the parts are made, though the network asks for it.
fn is_computed_instead(evidence: &PartitionEvidence, name: &str) -> bool {
    let id = evidence.joint.graph.find(name);
    id.is_some_and(|id| {
        evidence.in_backward[id.index()].is_some() && class_of(evidence.joint.graph, id) != ValueClass::Symbol
    })
}

fn unknown_network(evidence: &PartitionEvidence) -> Checked {
    match evidence.config.promises.minimum_cut {
        true => {
            Checked::undecided(Code::NoNetwork, "minimum_cut is promised, and PyTorch's network is not known")
        }
        false => Checked::NotChecked("the network that was cut is not known".into()),
    }
}

/// Why a network does not tell what is saved costs: forward saves a tensor that the joint graph does not have.
fn added_to_saved(evidence: &PartitionEvidence) -> Option<String> {
    let is_added = |saved: &&Saved| saved.joint.is_none() && saved.class == ValueClass::Tensor;
    let added = evidence.saved.iter().find(is_added)?;
    Some(format!(
        "forward saves {}, which the joint graph does not have: the network that is cut does not weigh it",
        added.name
    ))
}

/// The saved set is a minimum cut of the network that it is said to cut.
pub(super) fn cut_certificate(evidence: &PartitionEvidence) -> Checked {
    const RULE: &str = "partition/cut-certificate";
    let Some(given) = &evidence.further.network else {
        return unknown_network(evidence);
    };
    let Some(closest) = Closest::of(given) else {
        return Checked::undecided(Code::NoNetwork, "the network has no finite cut");
    };
    if let Some(added) = added_to_saved(evidence) {
        return Checked::undecided(Code::AddedValueSaved, added);
    }
    let saved = saved_values(evidence, &closest);
    let is_taken = |name: &str| {
        saved.contains(name) || (closest.saves.contains(name) && !is_computed_instead(evidence, name))
    };
    let mut without = Network::new(given.vertices);
    let mut cost = 0u64;
    for edge in &given.edges {
        match edge.saves.as_deref().is_some_and(is_taken) {
            // What no cut may save and is saved all the same, such as memory after forward's last write to it, costs
            // nothing.
            true => cost = cost.saturating_add(edge.capacity.unwrap_or(0)),
            false => without.edge(edge.from, edge.to, edge.capacity.unwrap_or(UNLIMITED)),
        }
    }
    let flow = closest.flow;
    let mut findings = Vec::new();
    if without.max_flow(given.source, given.sink).value != Some(0) {
        let title = "what is saved does not separate backward from what cannot be recomputed";
        findings.push(evidence.finding(RULE, title).contrast(
            "a cut leaves no path from the source to the sink",
            "without the saved values a path is left",
        ));
    } else if cost != flow {
        findings.push(evidence.finding(RULE, format!("the cut costs {cost}, and {flow} would do")).contrast(
            format!("a flow of {flow} shows that no cut costs less, and one costs that"),
            format!("the saved values weigh {cost}"),
        ));
    }
    Checked::Findings(findings)
}

/// Of all minimum cuts it is the one closest to the sink.
pub(super) fn cut_sink_closest(evidence: &PartitionEvidence) -> Checked {
    const RULE: &str = "partition/cut-sink-closest";
    let Some(given) = &evidence.further.network else {
        return unknown_network(evidence);
    };
    let Some(closest) = Closest::of(given) else {
        return Checked::undecided(Code::NoNetwork, "the network has no finite cut");
    };
    let can_be_cut: FxHashSet<&str> = given
        .edges
        .iter()
        .filter(|edge| edge.capacity.is_some())
        .filter_map(|edge| edge.saves.as_deref())
        .collect();
    let saved = saved_values(evidence, &closest);
    let mut findings = Vec::new();
    for name in evidence.saved.iter().map(|saved| saved.name.as_str()) {
        if saved.contains(name) && can_be_cut.contains(name) && !closest.saves.contains(name) {
            findings.push(
                evidence
                    .finding(RULE, format!("{name} is saved"))
                    .nodes(evidence, [name])
                    .contrast("the cut closest to the sink is the choice", "it does not save this value"),
            );
        }
    }
    let is_missing = |name: &&str| !saved.contains(*name) && is_computed_instead(evidence, name);
    let mut missing: Vec<&str> = closest.saves.iter().copied().filter(is_missing).collect();
    missing.sort_unstable();
    for name in missing {
        findings.push(
            evidence
                .finding(RULE, format!("{name} is not saved"))
                .nodes(evidence, [name])
                .contrast("the cut closest to the sink saves it", "here it is recomputed"),
        );
    }
    Checked::Findings(findings)
}

/// What several memory budgets save.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BudgetUse {
    /// Saved bytes by budget: (budget, bytes).
    pub budgets: Vec<(f64, i64)>,
    /// The least bytes, which a budget of 0 stands for, and those with a budget of 1.
    pub range: Option<(i64, i64)>,
}

impl BudgetUse {
    /// Where a smaller budget saves more than a larger one: a title, what the larger saves, and what the smaller.
    pub fn reversals(&self) -> Vec<[String; 3]> {
        let mut budgets = self.budgets.clone();
        budgets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let reversed = budgets.windows(2).filter(|pair| pair[0].1 > pair[1].1);
        let saves = |(budget, bytes): (f64, i64)| format!("budget {budget} saves {bytes} bytes");
        let fault = |pair: &[(f64, i64)]| {
            let title = format!("budget {} saves more than budget {}", pair[0].0, pair[1].0);
            [title, saves(pair[1]), saves(pair[0])]
        };
        reversed.map(fault).collect()
    }

    /// Where `bytes` are more than `budget` allows: a title, what is allowed, and what is used.
    fn overrun(&self, budget: f64, bytes: i64) -> Option<[String; 3]> {
        let (low, high) = self.range.filter(|(low, high)| high > low)?;
        let allowed = low as f64 + budget * (high - low) as f64;
        (bytes as f64 > allowed).then(|| {
            [
                format!("{bytes} bytes are saved, which is more than the budget"),
                format!(
                    "budget {budget} of the range from {low} to {high} bytes is {} bytes",
                    allowed.floor()
                ),
                format!("{} bytes more are saved", bytes as f64 - allowed.floor()),
            ]
        })
    }
}

/// The budget holds, and a smaller one never saves more.
pub(super) fn budget_respected(evidence: &PartitionEvidence) -> Checked {
    let used = &evidence.further.budgets;
    let own = evidence.config.budget.and_then(|budget| Some((budget, saved_bytes(evidence)?.bytes)));
    if used.budgets.len() < 2 && (own.is_none() || used.range.is_none_or(|(low, high)| high <= low)) {
        return without_range(evidence, own.map(|(_, bytes)| bytes));
    }
    let overrun = own.and_then(|(budget, bytes)| used.overrun(budget, bytes));
    let finding = |[title, expected, observed]: [String; 3]| {
        evidence.finding("partition/budget-respected", title).contrast(expected, observed)
    };
    Checked::Findings(used.reversals().into_iter().chain(overrun).map(finding).collect())
}

/// What is said of a budget where there is no range of bytes that it is a share of; `bytes` are saved.
fn without_range(evidence: &PartitionEvidence, bytes: Option<i64>) -> Checked {
    let asked = evidence.config.budget.filter(|&budget| budget < 1.0 && evidence.further.refused.is_none());
    let Some(budget) = asked else {
        return Checked::NotChecked("what other budgets save is not known".into());
    };
    let method = evidence.config.method;
    if method != Method::MinCut {
        return Checked::undecided(
            Code::NoBudgetRange,
            format!("budget={budget} is stated, and method={} has no budget", method.name()),
        );
    }
    match bytes.zip(evidence.further.budgets.range) {
        // A range of one amount: every budget allows that.
        Some((bytes, (low, high))) if bytes <= low.max(high) => Checked::Findings(Vec::new()),
        Some((bytes, (low, high))) => Checked::undecided(
            Code::NoBudgetRange,
            format!(
                "budget={budget} is stated, and is a share of no range: {bytes} bytes are saved, and the reference saves {low} \
             with budget=0 and {high} with budget=1"
            ),
        ),
        None => Checked::undecided(
            Code::NoBudgetRange,
            format!("budget={budget} is stated, and what budgets of 0 and 1 save is not known"),
        ),
    }
}

/// Lines for people: what is saved.
pub(super) fn notes(evidence: &PartitionEvidence) -> Vec<String> {
    let recomputed = evidence.recomputed().count();
    let taken = evidence.backward_inputs.iter().filter(|(_, input)| *input == BackwardInput::Saved).count();
    let must = evidence.tags.iter().filter(|tags| tags.must_be_recomputed()).count();
    let mut notes = vec![format!(
        "{} values are saved, {taken} of backward's inputs; {recomputed} nodes run in both parts; {must} are to be \
         recomputed",
        evidence.saved.len()
    )];
    notes.push(match saved_bytes(evidence) {
        Some(saved) => {
            let least = saved.least.map_or(String::new(), |least| {
                format!("; by maximum flow no partition can do with less than {least} bytes")
            });
            format!(
                "saved: {} bytes in {} storages, and {} bytes that live anyway{least}",
                saved.bytes, saved.storages, saved.static_bytes
            )
        }
        None => "saved bytes are not known: a size is not".to_string(),
    });
    notes
}
