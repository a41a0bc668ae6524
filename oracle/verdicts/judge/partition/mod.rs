//! Judging a partition: a joint graph, and the forward and backward graphs that somebody made of it.

mod candidate;
mod failure;
mod replay;

use candidate::judge_given;
pub(crate) use candidate::{judge_candidate, judge_pairs};
pub use replay::{StageGraphs, forward_outputs, judge_replay, stages, trace_again};

use super::accounts::by_any_account;
use super::seen_through::told_apart;
use super::{CannotJudge, Judgement, Options, References, Values, evaluators, undecided, verdict};
use crate::case::Case;
use crate::case::PassConfig;
use crate::graph::Graph;
use crate::ops::shape::complete;
use crate::rules::partition::{
    self, CutNetwork, Further, PartitionConfig, PartitionEvidence, compose, returned_keys, with_flat_output,
};
use crate::rules::{self, AnalyzedGraph, OnRanks};

/// What the options of a pass say to the judge.
pub(super) fn config(pass: &PassConfig) -> Result<PartitionConfig, CannotJudge> {
    PartitionConfig::from_pass(pass).map_err(CannotJudge::Pass)
}

/// Judges the parts that are recorded in a case.
///
/// # Errors
/// As [`judge_partition`]; and where the case names another pass, or records no parts.
pub fn judge_recorded_parts(case: &Case, options: &Options) -> Result<Judgement, CannotJudge> {
    let pass = case.pass.as_ref().filter(|pass| pass.name == "partition");
    let pass = pass.ok_or_else(|| CannotJudge::Pass("the case does not name the pass partition".into()))?;
    let config = PartitionConfig::from_pass(pass).map_err(CannotJudge::Pass)?;
    let Some(parts) = &case.parts else {
        return Err(CannotJudge::Pass("the case records no forward and backward".into()));
    };
    let mut further = Further::default();
    if config.promises.minimum_cut {
        further.network = Some(network(&case.graph, pass, options.references)?);
    }
    if options.run_again && config.method == crate::rules::partition::Method::Replay {
        further.again = replay::next_round(
            &case.graph,
            &parts.forward,
            &parts.backward,
            pass,
            (options.references, options.references),
        );
    }
    let parts = (parts.forward.clone(), parts.backward.clone());
    judge_given(&case.graph, &parts, pass, further, options)
}

/// The network that the cut of a joint graph is judged by.
fn network(joint: &Graph, pass: &PassConfig, references: &dyn References) -> Result<CutNetwork, CannotJudge> {
    let network = references.cut_network(joint, pass);
    network
        .map_err(|refusal| CannotJudge::Pass(refusal.reason.message))?
        .ok_or_else(|| CannotJudge::Pass("the joint graph has no network: there is nothing to cut".into()))
}

/// Judges one triple.
///
/// # Errors
/// The joint graph cannot be judged as an input, or it does not say how many of its outputs are forward's.
pub fn judge_partition(
    joint: &Graph,
    forward: &Graph,
    backward: &Graph,
    config: &PartitionConfig,
    options: &Options,
) -> Result<Judgement, CannotJudge> {
    judge_partition_with(joint, forward, backward, config, Further::default(), options)
}

/// The same with what is known beyond the triple: other ranks, an earlier partition, the network that was cut.
///
/// # Errors
/// As [`judge_partition`].
pub fn judge_partition_with(
    joint: &Graph,
    forward: &Graph,
    backward: &Graph,
    config: &PartitionConfig,
    further: Further,
    options: &Options,
) -> Result<Judgement, CannotJudge> {
    let of_ranks = further.ranks.iter().flat_map(|&(_, forward, backward)| [forward, backward]);
    let all: Vec<&Graph> = [joint, forward, backward].into_iter().chain(of_ranks).collect();
    let Some(apart) = told_apart(&all, Some(options)) else {
        return judge_parts(joint, forward, backward, config, further, options);
    };
    let [joint, forward, backward, of_ranks @ ..] = &apart[..] else {
        return judge_parts(joint, forward, backward, config, further, options);
    };
    let ranks = further.ranks.iter().zip(of_ranks.chunks_exact(2));
    let ranks = ranks.map(|(&(rank, ..), parts)| (rank, &parts[0], &parts[1])).collect();
    judge_parts(joint, forward, backward, config, Further { ranks, ..further }, options)
}

/// The same of graphs whose bodies are told apart.
fn judge_parts(
    joint: &Graph,
    forward: &Graph,
    backward: &Graph,
    config: &PartitionConfig,
    further: Further,
    options: &Options,
) -> Result<Judgement, CannotJudge> {
    let mut keys = returned_keys(forward);
    keys.extend(returned_keys(backward));
    if returned_keys(joint) != keys {
        let why = "the parts return mappings with other keys than the joint graph";
        return Err(CannotJudge::Pass(why.into()));
    }
    // Passes often leave their new nodes without recorded results, and may return them in other lists.
    let is_nested = with_flat_output(joint, usize::MAX).is_some();
    let own = config.clone().or_from_file(joint).forward_outputs.unwrap_or(usize::MAX);
    let given = |graph: &Graph, own: usize| {
        let completed = complete(graph);
        // Where the joint graph returns one list, lists in it are another result. What is saved stands in no list of
        // its own.
        let flat = is_nested.then(|| with_flat_output(completed.as_ref().unwrap_or(graph), own)).flatten();
        flat.or(completed)
    };
    let of_joint = given(joint, usize::MAX);
    let joint = of_joint.as_ref().unwrap_or(joint);
    let (of_forward, of_backward) = (given(forward, own), given(backward, usize::MAX));
    let forward = of_forward.as_ref().unwrap_or(forward);
    let backward = of_backward.as_ref().unwrap_or(backward);
    let of_ranks = further.ranks.iter();
    let others: Vec<_> = of_ranks.map(|&(_, f, b)| (given(f, own), given(b, usize::MAX))).collect();
    let ranks = further.ranks.iter().zip(&others);
    let ranks = ranks.map(|(&(rank, f, b), (changed_f, changed_b))| {
        (rank, changed_f.as_ref().unwrap_or(f), changed_b.as_ref().unwrap_or(b))
    });
    let further = Further { ranks: ranks.collect(), ..further };
    let config = config.clone().or_from_file(joint);
    let pairs = distinct((forward, backward), &further.ranks);
    let graphs: Vec<&Graph> = pairs.iter().flat_map(|&(_, forward, backward)| [forward, backward]).collect();
    let named = |account| {
        let count = config.forward_outputs.unwrap_or(usize::MAX);
        let parts = graphs.chunks_exact(2);
        let named = parts.map(|parts| partition::parts_named_as(joint, parts[0], parts[1], count, account));
        named.flat_map(|(forward, backward)| [forward, backward]).collect()
    };
    let given: Vec<_> = graphs.iter().map(|part| (joint, *part)).collect();
    by_any_account(&given, named, |named| {
        let known = graphs.iter().zip(&named).map(|(given, named)| named.as_ref().unwrap_or(given));
        let known: Vec<&Graph> = known.collect();
        let parts = pairs.iter().zip(known.chunks_exact(2));
        let pairs = parts.map(|((ranks, ..), parts)| (ranks.clone(), parts[0], parts[1])).collect();
        judge_named(joint, pairs, &config, further.clone(), options)
    })
}

/// The same of distinct pairs of parts, each with the ranks that have it, that have the names of the joint graph.
fn judge_named(
    joint: &Graph,
    pairs: Vec<(Vec<u32>, &Graph, &Graph)>,
    config: &PartitionConfig,
    further: Further,
    options: &Options,
) -> Result<Judgement, CannotJudge> {
    let joint = AnalyzedGraph::new(joint);
    let unfit: Vec<String> =
        joint.faults().iter().filter(|fault| fault.is_fatal()).map(ToString::to_string).collect();
    if !unfit.is_empty() {
        return Err(CannotJudge::Input(unfit));
    }
    let Some(forward_outputs) = config.forward_outputs else {
        let missing = "the joint graph does not say how many of its outputs are forward's (num_fwd_outputs)";
        return Err(CannotJudge::Pass(missing.into()));
    };
    let graph = joint.graph;
    // What is known beyond one pair is held against that of the first rank.
    let of_ranks = pairs.iter().flat_map(|(ranks, f, b)| ranks.iter().map(|&rank| (rank, *f, *b)));
    let further = Further { ranks: of_ranks.filter(|(rank, ..)| *rank > 0).collect(), ..further };
    let mut first = Some((joint, further));
    let mut judged = Vec::new();
    for (ranks, forward, backward) in pairs {
        let (joint, further) =
            first.take().unwrap_or_else(|| (AnalyzedGraph::new(graph), Further::default()));
        let composition = compose(joint.graph, forward, backward, forward_outputs);
        let mut evidence =
            PartitionEvidence::of_joint(joint, forward, backward, &composition, config.clone());
        evidence.further = further;
        evidence.own_ranks = ranks;
        partition::compare_values(&mut evidence, evaluators(options));
        let acted = !evidence.saved.is_empty();
        let notes = partition::notes(&evidence);
        if options.values == Values::Agree {
            let (findings, unknown) = rules::contradictions_of_partition(&evidence);
            return Ok(Judgement { verdict: verdict(findings, unknown), rules: Vec::new(), notes, acted });
        }
        let (findings, rules) = partition::check_all(&evidence);
        judged.push((OnRanks { ranks: evidence.own_ranks, findings, rules }, notes, acted));
    }
    Ok(joined(judged, graph.world.assume_mesh().and_then(|world| world.ranks)))
}

/// The distinct pairs among those of the first rank and of the others, each with the ranks that have it, in rank order.
fn distinct<'a>(
    first: (&'a Graph, &'a Graph),
    others: &[(u32, &'a Graph, &'a Graph)],
) -> Vec<(Vec<u32>, &'a Graph, &'a Graph)> {
    let mut pairs = vec![(if others.is_empty() { vec![] } else { vec![0] }, first.0, first.1)];
    for &(rank, forward, backward) in others {
        let is_same = |(_, f, b): &&mut (Vec<u32>, &Graph, &Graph)| {
            rules::same_evidence(f, forward) && rules::same_evidence(b, backward)
        };
        match pairs.iter_mut().find(is_same) {
            Some((ranks, ..)) => ranks.push(rank),
            None => pairs.push((vec![rank], forward, backward)),
        }
    }
    pairs
}

/// What was found in the distinct pairs as one judgement. Notes say whose pair they are about where there are several,
/// and which ranks were asked where that is not all of the world.
fn joined(judged: Vec<(OnRanks, Vec<String>, bool)>, world: Option<u32>) -> Judgement {
    let acted = judged.iter().any(|(_, _, acted)| *acted);
    let mut ranks_judged: Vec<u32> = judged.iter().flat_map(|(one, ..)| one.ranks.iter().copied()).collect();
    ranks_judged.sort_unstable();
    let several = judged.len() > 1;
    let mut notes = Vec::new();
    let mut all = Vec::new();
    for (one, own, _) in judged {
        let of = |note| format!("on {}: {note}", rules::name_ranks(&one.ranks));
        notes.extend(own.into_iter().map(|note| if several { of(note) } else { note }));
        all.push(one);
    }
    if let Some(world) =
        world.filter(|&world| !ranks_judged.is_empty() && ranks_judged.len() < world as usize)
    {
        let whose = rules::name_ranks(&ranks_judged);
        notes.push(format!("these are the parts of {whose} of {world}; those of other ranks are not known"));
    }
    let (findings, rules) = rules::join(all);
    let undecided = undecided(&rules);
    Judgement { verdict: verdict(findings, undecided), rules, notes, acted }
}
