//! `rewrite/values`: what both graphs compute, by whichever evaluators apply.
//!
//! There are three (see [`semantics`](crate::semantics)): concrete values and provenance, executed on every rank, and
//! symbolic values. Each gives its own answer, and a difference found by any of them is a finding. An evaluator that does
//! not apply says why; only where none applies is the rule undecided. Equal concrete values acquit by themselves only
//! where they could have differed (see [`semantics`](crate::semantics)`::trials`). Where they could have and did not, what
//! the symbolic evaluator takes for another value is the same one, computed in another way: then neither convicts nor
//! acquits.

use super::correspondence::Rewire;
use super::executed::Clear;
use super::folded::Folded;
use super::proved::Evaluated;
use super::{Checked, Code, Evidence, RankOutcome, Reason, Stage, executed, proved};
use crate::semantics::Question;
use crate::words;
use rustc_hash::FxHashSet;
use std::fmt;

/// An evaluator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ValueMethod {
    /// Numbers, executed on every rank.
    Concrete,
    /// Where each element comes from, executed on every rank.
    Provenance,
    /// Proved symbolically, at full size.
    Symbolic,
}

impl fmt::Display for ValueMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ValueMethod::Concrete => "concrete values",
            ValueMethod::Provenance => "provenance",
            ValueMethod::Symbolic => "symbolic values",
        })
    }
}

/// What a difference is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum About {
    /// What came out.
    Values,
    /// The dtype or the shape of what came out.
    Types,
    /// Memory that a node must not touch, or a graph that does not come to its end.
    Execution,
    /// The same where ranks have graphs of their own: in that of another rank than the first, or between them.
    OtherRank,
    /// An operator that does not take what it is given.
    Arguments,
}

/// Who sees a difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Observed {
    /// Who takes the results, or waits for them.
    Outputs,
    /// Who reads an input or a constant afterwards.
    State,
    /// Who sees effects: assertions, prints, barriers.
    Effects,
}

/// One difference between what the two graphs compute.
#[derive(Clone, PartialEq, Debug)]
pub struct ValueDifference {
    /// One line.
    pub title: String,
    /// Names of the nodes concerned, the most important first.
    pub nodes: Vec<String>,
    /// What the graph before gives.
    pub expected: String,
    /// What the graph after gives.
    pub found: String,
    /// What it is about.
    pub about: About,
    /// Who sees it.
    pub observed: Observed,
    /// Whether this is where values first part.
    pub is_cause: bool,
}

/// What one evaluator says.
#[derive(Clone, PartialEq, Debug)]
pub enum ValueResult {
    /// Everything is equal; what was compared, in words.
    Equal(String),
    /// These differ.
    Different(Vec<ValueDifference>),
    /// It cannot tell, and why.
    Unknown(Reason),
}

impl ValueResult {
    /// Differences of values do not count; what else was found stands.
    pub(super) fn excuse_values(&mut self, why: Reason) {
        if let ValueResult::Different(differences) = self {
            differences.retain(|difference| difference.about != About::Values);
            if differences.is_empty() {
                *self = ValueResult::Unknown(why);
            }
        }
    }
}

/// What both graphs compute.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ValueEvidence {
    /// The answer of each way that was asked.
    pub results: Vec<(ValueMethod, ValueResult)>,
    /// Why none was asked.
    pub not_requested: Option<String>,
    /// What is proved of rewired references.
    pub rewires: Rewires,
    /// What the numbers of execution are worth.
    pub clear: Clear,
}

/// What is proved of rewired references.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Rewires {
    /// Those whose contents certainly differ, and how.
    pub wrong: Vec<(Rewire, String)>,
    /// Those whose readers make the same of them as before: operands that changed places, say.
    pub harmless: FxHashSet<Rewire>,
}

impl ValueEvidence {
    /// No values.
    pub fn none(why: &str) -> ValueEvidence {
        ValueEvidence { not_requested: Some(why.to_string()), ..ValueEvidence::default() }
    }

    /// What the proof says; `evaluated`: both graphs, where they have been evaluated already.
    pub(super) fn prove(
        evidence: &Evidence,
        evaluators: Evaluators,
        evaluated: Option<Evaluated>,
    ) -> ValueEvidence {
        if !evaluators.prove && !evaluators.execute {
            return ValueEvidence::none(
                "values were not asked for, or the list before is not in an executable order",
            );
        }
        let mut this = ValueEvidence::default();
        if evaluators.prove {
            let evaluated =
                evaluated.unwrap_or_else(|| Evaluated::new(&evidence.before, &evidence.after, &evidence.own));
            let (result, rewires) = proved::prove(evidence, evaluated);
            this.results.push(result);
            this.rewires = rewires;
        }
        this
    }

    /// Adds what execution says of all graphs together, the first of which holds the answers.
    pub(super) fn execute(all: &mut [Evidence], evaluators: Evaluators) {
        let is_known = all.iter().all(|evidence| {
            let mut results = evidence.values.results.iter();
            results.any(|(_, result)| !matches!(result, ValueResult::Unknown(_)))
        });
        let several = all.iter().map(|evidence| evidence.own_ranks.len()).sum::<usize>() > 1;
        let mut ranks: Vec<RankOutcome> =
            all.iter().filter(|_| several).flat_map(Evidence::outcomes).collect();
        ranks.sort_by_key(|outcome| outcome.rank);
        let Some((first, others)) = all.split_first_mut() else { return };
        first.ranks = ranks;
        if evaluators.execute && !(evaluators.only_in_doubt && is_known) {
            let is_equal =
                |evidence: &Evidence| matches!(evidence.values.proof(), Some(ValueResult::Equal(_)));
            let open = !is_equal(first) || !others.iter().all(is_equal);
            let reals = first.policies.reassociation;
            let question = Question { open, both: evaluators.both, agree: evaluators.agree, reals };
            let (results, clear) = executed::execute(first, evaluators.element_limit, question);
            // All ranks were executed, each with its own graph.
            let equal = || results.iter().filter(|(_, result)| matches!(result, ValueResult::Equal(_)));
            for other in others {
                other.values.clear = clear;
                other.values.results.extend(equal().cloned());
            }
            first.values.clear = clear;
            first.values.results.extend(results);
        }
        if !evaluators.agree {
            for evidence in all {
                if let Some(folded) = Folded::new(evidence) {
                    evidence.values.results.iter_mut().for_each(|(_, result)| folded.excuse(result));
                }
            }
        }
    }

    /// What the proof says.
    pub(super) fn proof(&self) -> Option<&ValueResult> {
        self.results.iter().find(|(method, _)| *method == ValueMethod::Symbolic).map(|(_, result)| result)
    }

    /// A line for each evaluator but the symbolic one: what it compared, or why it did not.
    pub(super) fn notes_of_execution(&self) -> impl Iterator<Item = String> {
        let executed = self.results.iter().filter(|(method, _)| *method != ValueMethod::Symbolic);
        executed.map(|(method, result)| match result {
            ValueResult::Equal(what) => format!("{method}: {what}"),
            ValueResult::Different(all) => format!("{method}: {}", words::count(all.len(), "difference")),
            ValueResult::Unknown(why) => format!("{method}: not known: {why}"),
        })
    }

    /// Whether the reader of a rewired reference is proved to make the same of it.
    pub(super) fn is_harmless(&self, rewire: &Rewire) -> bool {
        self.rewires.harmless.contains(rewire)
    }

    /// What is wrong with the contents that a rewired reference reads.
    pub(super) fn rewired_contents(&self, rewire: &Rewire) -> Option<String> {
        self.rewires.wrong.iter().find(|(r, _)| r == rewire).map(|(_, what)| what.clone())
    }
}

/// Outputs are equal.
pub(super) fn outputs_equal(evidence: &Evidence) -> Checked {
    equal(evidence, "rewrite/values", Observed::Outputs)
}

/// What inputs and constants hold in the end is equal.
pub(super) fn state_equal(evidence: &Evidence) -> Checked {
    equal(evidence, "rewrite/state", Observed::State)
}

/// Effects are equal, in their order.
pub(super) fn effects_equal(evidence: &Evidence) -> Checked {
    equal(evidence, "rewrite/effects", Observed::Effects)
}

fn equal(evidence: &Evidence, rule: &'static str, observed: Observed) -> Checked {
    let values = &evidence.values;
    if let Some(why) = &values.not_requested {
        return Checked::NotChecked(why.clone());
    }
    let mut findings: Vec<super::Finding> = Vec::new();
    let mut unknown = Vec::new();
    let (mut equal, mut doubt, mut elsewhere) = (false, false, false);
    for (method, result) in &values.results {
        match result {
            ValueResult::Equal(_) => equal = true,
            ValueResult::Unknown(why) => unknown.push(why.clone().behind(format!("{method}: "))),
            ValueResult::Different(differences) => {
                let own = || differences.iter().filter(|difference| difference.observed == observed);
                elsewhere |= own().count() < differences.len();
                let is_vetoed = |difference: &&ValueDifference| {
                    let is_proof = *method == ValueMethod::Symbolic && difference.about == About::Values;
                    (values.clear.believed || values.clear.equal) && is_proof
                };
                if let Some(vetoed) = own().find(is_vetoed).filter(|_| !values.clear.as_reals) {
                    doubt = true;
                    let why = format!(
                        "{method}: {}, but the concrete values are equal in all trials",
                        vetoed.found
                    );
                    unknown.push(Code::ProofAgainstTrials.because(why));
                }
                for difference in own().filter(|difference| !is_vetoed(difference)) {
                    let mut finding = evidence
                        .finding(rule, Stage::After, difference.title.clone())
                        .expected(format!("before, {}", difference.expected))
                        .observed(format!("after, {} (seen in {method})", difference.found));
                    if *method != ValueMethod::Symbolic {
                        finding = finding.across_ranks();
                    }
                    finding.is_cause = difference.is_cause;
                    finding.nodes = difference.nodes.iter().map(|name| evidence.mention(name)).collect();
                    if !findings.iter().any(|f| f.title == finding.title) {
                        findings.push(finding);
                    }
                }
            }
        }
    }
    match findings.is_empty() && (doubt || !equal) {
        false => Checked::Findings(findings),
        // An evaluator looks at everything together.
        true if elsewhere && !doubt => Checked::NotChecked("the graphs differ in something else".into()),
        true if observed != Observed::Outputs => {
            Checked::NotChecked("it is not known what the graphs compute; see rewrite/values".into())
        }
        true => Checked::Undecided(Reason::joined(&unknown)),
    }
}

/// The evaluators that compare values, beside structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Evaluators {
    /// The symbolic one, at full size.
    pub prove: bool,
    /// Execution on every rank.
    pub execute: bool,
    /// Execution only where the proof cannot tell.
    pub only_in_doubt: bool,
    /// Concrete values and provenance, rather than provenance only where concrete values cannot tell.
    pub both: bool,
    /// Whether each answer is wanted as it is, so that they can be held against each other.
    pub agree: bool,
    /// The most elements that execution may touch, over all ranks.
    pub element_limit: u64,
}
