//! Judging two partitions one after the other: a joint graph is cut, what is saved is written on forward, both parts
//! are traced again as a second joint graph, and that is cut as the tags say.
//!
//! Each partition is judged by itself; and the second has to save what the first did, whichever of the graphs were
//! given and whichever a candidate made. Where the second joint graph is given, what it has of the first is told by
//! what its values are and how many there are of each; where it is traced here, by name.
//!
//! # What it does not do
//!
//! Nothing is decomposed by tracing.

use super::super::{CannotJudge, Judgement, Options, References, Verdict};
use super::candidate::Cut;
use super::config;
use crate::case::{PassConfig, TracedAgain};
use crate::graph::Graph;
use crate::judge::candidate::{Candidate, CandidateExt, Place, Refusal};
use crate::rules::RuleStatus;
use crate::rules::partition::{Earlier, Further, Method, PartitionConfig, returned_names};
use rustc_hash::FxHashMap;

/// A joint graph, and what was made of it where that is known.
#[derive(Clone, Debug)]
pub struct StageGraphs {
    /// The joint graph.
    pub joint: Graph,
    /// Forward and backward.
    pub parts: Option<(Graph, Graph)>,
}

/// Judges both partitions. `pass` asks for a replay; `first=` says how the first partition chose. What is not given,
/// the candidate makes.
///
/// # Errors
/// A joint graph that cannot be judged as an input, options that make no sense, a joint graph that does not say how
/// many of its outputs are forward's, or a first partition that the candidate refuses.
pub fn judge_replay(
    first: &StageGraphs,
    second: Option<&StageGraphs>,
    candidate: &dyn Candidate,
    pass: &PassConfig,
    options: &Options,
) -> Result<Judgement, CannotJudge> {
    let replayed = config(pass)?;
    if replayed.method != Method::Replay {
        return Err(CannotJudge::Pass("the second partition is a replay (method=replay)".into()));
    }
    let passes = Passes::of(pass, replayed.first.unwrap_or_default());
    let config = config(&passes.first)?.or_from_file(&first.joint);
    let outputs = forward_outputs(&first.joint, &passes.first).map_err(CannotJudge::Pass)?;
    let cut = match &first.parts {
        Some(parts) => Cut::given(&first.joint, parts),
        None => Cut::by(&first.joint, &passes.first, candidate, options.references)?,
    };
    let judge_first = |further| cut.judge(&passes.first, candidate, &config, further, options);
    let Some((forward, backward)) = cut.parts() else {
        // What was refused is not tagged.
        return judge_first(Further::default());
    };
    let traced =
        match trace_again((candidate, options.references), &first.joint, (forward, backward), outputs) {
            Ok(traced) => traced,
            Err(refusal) => {
                let one = judge_first(Further::default())?;
                // Parts that do not fit cannot be traced; the judgement of the first says why.
                return match one.verdict {
                    Verdict::Violated(_) => Ok(one),
                    _ => Err(CannotJudge::Pass(refusal.reason.message)),
                };
            }
        };
    let after_tagging = Some((&traced.joint, &traced.backward));
    let one = judge_first(Further { after_tagging, ..Further::default() })?;
    let earlier = Earlier {
        joint: &first.joint,
        forward,
        forward_outputs: outputs,
        provenance: if second.is_some() { Vec::new() } else { traced.names.clone() },
    };
    let two = Pipeline { candidate, passes: &passes, options, traced: &traced }.second(second, earlier)?;
    Ok(together(one, two))
}

/// Both parts of a first partition as one joint graph: as the candidate traces them, or else as the reference does.
pub fn trace_again(
    (candidate, references): (&dyn Candidate, &dyn References),
    joint: &Graph,
    (forward, backward): (&Graph, &Graph),
    forward_outputs: usize,
) -> Result<TracedAgain, Refusal> {
    let own = candidate.trace_again(joint, forward, backward, forward_outputs);
    own.unwrap_or_else(|| references.traced_again(joint, forward, backward, forward_outputs))
}

/// The options of the first and of the second partition, where `pass` asks for two; `None` where it asks for one.
///
/// # Errors
/// Options that make no sense, in words.
pub fn stages(pass: &PassConfig) -> Result<Option<(PassConfig, PassConfig)>, String> {
    let first = PartitionConfig::from_pass(pass)?.first;
    let passes = first.map(|first| Passes::of(pass, first));
    Ok(passes.map(|passes| (passes.first, passes.second)))
}

/// How many of a joint graph's outputs are forward's, by its options or its file.
///
/// # Errors
/// Neither says so, or options make no sense.
pub fn forward_outputs(joint: &Graph, pass: &PassConfig) -> Result<usize, String> {
    let outputs = PartitionConfig::from_pass(pass)?.or_from_file(joint).forward_outputs;
    outputs
        .ok_or_else(|| "the number of forward outputs is not known; --set num_fwd_outputs=N says it".into())
}

/// The options of both partitions.
struct Passes {
    first: PassConfig,
    second: PassConfig,
}

impl Passes {
    fn of(pass: &PassConfig, first: Method) -> Passes {
        let without = |keys: &[&str]| {
            let mut pass = pass.clone();
            pass.options.retain(|(key, _)| !keys.contains(&key.as_str()));
            pass
        };
        Passes {
            first: without(&["first", "method", "checkpoint"]).with("method", first.name()),
            second: without(&["first", "budget"]),
        }
    }
}

struct Pipeline<'a> {
    candidate: &'a dyn Candidate,
    passes: &'a Passes,
    options: &'a Options,
    traced: &'a TracedAgain,
}

impl Pipeline<'_> {
    /// The judgement of the second partition, which is to repeat `earlier`.
    fn second(&self, given: Option<&StageGraphs>, earlier: Earlier) -> Result<Judgement, CannotJudge> {
        let joint = given.map_or(&self.traced.second, |stage| &stage.joint);
        let pass = &self.passes.second;
        let config = config(pass)?.or_from_file(joint);
        let cut = match given.and_then(|stage| stage.parts.as_ref()) {
            Some(parts) => Cut::given(joint, parts),
            None => Cut::by(joint, pass, self.candidate, self.options.references)?,
        };
        let again = cut.parts().and_then(|(forward, backward)| {
            next_round(joint, forward, backward, pass, (self.candidate, self.options.references))
        });
        let further = Further { earlier: Some(earlier), again, ..Further::default() };
        cut.judge(pass, self.candidate, &config, further, self.options)
    }
}

/// What a further round saves, by the names of this one; `None` where there is none. Tracing gives what both parts
/// compute two names.
pub(super) fn next_round(
    joint: &Graph,
    forward: &Graph,
    backward: &Graph,
    pass: &PassConfig,
    (candidate, references): (&dyn Candidate, &dyn References),
) -> Option<Vec<String>> {
    let outputs = forward_outputs(joint, pass).ok()?;
    let mut pass = pass.clone();
    // What is checkpointed is tagged already.
    pass.options.retain(|(key, _)| key != "checkpoint");
    let traced = trace_again((candidate, references), joint, (forward, backward), outputs).ok()?;
    let next = candidate.partition(&traced.second, &pass, Place::default()).ok()?;
    let both = traced.names.iter().chain(&traced.backward_names);
    let own: FxHashMap<&str, &str> = both.map(|(own, next)| (next.as_str(), own.as_str())).collect();
    let saved = returned_names(&next.0, outputs).into_iter();
    Some(saved.map(|name| own.get(name.as_str()).map_or(name.clone(), ToString::to_string)).collect())
}

/// Both judgements as one; what is about the first partition says so.
fn together(one: Judgement, two: Judgement) -> Judgement {
    const FIRST: &str = "in the first partition: ";
    let mut rules = two.rules;
    for (id, status) in one.rules {
        let Some((_, known)) = rules.iter_mut().find(|(other, _)| *other == id) else {
            rules.push((id, status));
            continue;
        };
        *known = match (status, known.clone()) {
            (RuleStatus::Violated(a), RuleStatus::Violated(b)) => RuleStatus::Violated(a + b),
            (violated @ RuleStatus::Violated(_), _) | (_, violated @ RuleStatus::Violated(_)) => violated,
            (undecided @ RuleStatus::Undecided(_), _) | (_, undecided @ RuleStatus::Undecided(_)) => {
                undecided
            }
            (RuleStatus::Holds, _) | (_, RuleStatus::Holds) => RuleStatus::Holds,
            (_, why) => why,
        };
    }
    let verdict = match (one.verdict, two.verdict) {
        (Verdict::Violated(mut findings), other) => {
            findings.iter_mut().for_each(|finding| finding.title.insert_str(0, FIRST));
            if let Verdict::Violated(more) = other {
                findings.extend(more);
            }
            Verdict::Violated(findings)
        }
        (_, violated @ Verdict::Violated(_)) => violated,
        (Verdict::Sound, other) => other,
        (Verdict::Refused(why), _) => Verdict::Refused(why.behind(FIRST)),
        (Verdict::Undecided(why), Verdict::Undecided(more)) => {
            let of_first = why.into_iter().map(|why| why.behind(FIRST));
            Verdict::Undecided(of_first.chain(more).collect())
        }
        (Verdict::Undecided(why), _) => {
            Verdict::Undecided(why.into_iter().map(|why| why.behind(FIRST)).collect())
        }
    };
    let of_first = one.notes.into_iter().map(|note| format!("{FIRST}{note}"));
    let notes = of_first.chain(two.notes).collect();
    Judgement { verdict, rules, notes, acted: one.acted || two.acted }
}
