//! `rewrite/values`: what both graphs compute, by whichever evaluators apply.
//!
//! There are three (see [`semantics`](crate::semantics)): concrete values and fingerprints, executed on every rank, and
//! symbolic values. A proof acquits: equal terms are equal. A run convicts: inputs for which both graphs differ. Terms
//! that differ convict nobody; where the runs part, they say where what is there comes from ([`cause`](super::cause)). What
//! each of them finds of races, unwritten memory and graphs that do not run is a fact of structure, and convicts by itself.
//!
//! An evaluator that does not apply says why; only where none applies is the rule undecided. What equal numbers are worth
//! is said in [`semantics`](crate::semantics)`::trials`.

use super::allowed::{Allowed, TOLERANCE};
use super::cause::Parted;
use super::correspondence::Rewire;
use super::executed::Asked;
use super::folded::Folded;
use super::proved::Evaluated;
use super::{
    AnalyzedGraph, Checked, Code, Evidence, MovedGroup, RankOutcome, Reason, Stage, evidence, executed,
    groups, layout, local, proved, recorded,
};
use crate::definitions::Rounded;
use crate::graph::{NodeId, Op, Value};
use crate::ops::Kind;
use crate::semantics::{Alike, Numerics, Question};
use crate::words;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::fmt;

/// An evaluator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ValueMethod {
    /// Numbers, executed on every rank.
    Concrete,
    /// What each element is by the laws of a level, executed on every rank.
    Fingerprints,
    /// Proved symbolically, at full size.
    Symbolic,
}

impl fmt::Display for ValueMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ValueMethod::Concrete => "concrete values",
            ValueMethod::Fingerprints => "fingerprints",
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

/// The title of a graph after that no rank runs to its end.
pub(super) const CANNOT_BE_EXECUTED: &str = "the graph after cannot be executed";

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
    /// The rewired references whose readers are proved to make the same of them: operands that changed places, say.
    pub harmless: FxHashSet<Rewire>,
    /// Those that read another value in a run that shows a difference, and make another one of it; how it differs.
    pub wrong: Vec<(Rewire, String)>,
    /// Whether a run of both graphs shows another value, on any rank; `None` where they were not run.
    pub witness: Option<bool>,
    /// What would have to be allowed for a proof, by the laws of that level.
    pub would: Option<Numerics>,
    /// Why both graphs are taken for equal that are not proved so as they are: by a level that is allowed, or by
    /// groups.
    pub taken_for_equal: Option<Reason>,
    /// Why nothing that is equal is believed.
    pub doubt: Option<Reason>,
    /// Groups that must have the ranks of those they stand for.
    pub moved_groups: Option<Vec<MovedGroup>>,
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
            let evaluated = evaluated
                .unwrap_or_else(|| Evaluated::new(&evidence.before, &evidence.after, &evidence.start()));
            let proof = proved::prove(evidence, evaluated);
            let mut result = proof.result;
            (this.harmless, this.doubt) = (proof.harmless, proof.doubt);
            let is_open = !matches!(result, ValueResult::Equal(_)) && !evaluators.agree;
            if is_open
                && evidence.policies.any_rewrite
                && let Some((level, places)) =
                    local::prove(evidence, evaluators.element_limit, evidence.policies.allowed.numerics)
            {
                let places = words::count(places, "place");
                let by = match level {
                    Numerics::Exact => "equal".to_string(),
                    level => format!("equal by {level}, and not bit for bit, where nothing tells that apart"),
                };
                let words =
                    format!("{by}: computed otherwise at {places}, and the same there by fingerprints");
                this.take_for_equal(&mut result, Code::Rounding.because(words));
            } else if is_open
                && evidence.policies.any_rewrite
                && let Some(moved) = groups::prove(evidence)
            {
                let open = groups::open(&moved);
                let (word, of) = if open.is_empty() { ("since", &moved) } else { ("if", &open) };
                let words = format!("equal {word} {}", groups::condition(of));
                this.take_for_equal(&mut result, Code::GroupNotKnown.because(words));
                this.moved_groups = (!open.is_empty()).then_some(open);
            }
            let (before, after) = (&evidence.before, &evidence.after);
            if matches!(result, ValueResult::Equal(_))
                && !evaluators.agree
                && let Some(why) = recorded::doubt((before.graph, &before.ops), (after.graph, &after.ops))
            {
                result = ValueResult::Unknown(Code::DynamicSizes.because(why));
            }
            if matches!(result, ValueResult::Unknown(_))
                && !evaluators.agree
                && evidence::same_evidence(before.graph, after.graph)
            {
                result = ValueResult::Equal("both graphs are the same, node for node".to_string());
            }
            this.results.push((ValueMethod::Symbolic, result));
        }
        this
    }

    /// Takes a proof that does not know whether both graphs are equal for one that they are.
    fn take_for_equal(&mut self, result: &mut ValueResult, why: Reason) {
        if matches!(result, ValueResult::Unknown(_)) {
            *result = ValueResult::Equal(why.message.clone());
        }
        self.taken_for_equal = Some(why);
    }

    /// Adds what execution says of all graphs together, the first of which holds the answers.
    pub(super) fn execute(all: &mut [Evidence], evaluators: Evaluators) {
        // What a proof takes for different need not differ: an execution is asked too.
        let is_known = all.iter().all(|evidence| {
            let mut results = evidence.values.results.iter();
            results.any(|(_, result)| matches!(result, ValueResult::Equal(_)))
        });
        let several = all.iter().map(|evidence| evidence.own_ranks.len()).sum::<usize>() > 1;
        let mut ranks: Vec<RankOutcome> =
            all.iter().filter(|_| several).flat_map(Evidence::outcomes).collect();
        ranks.sort_by_key(|outcome| outcome.rank);
        let Some((first, others)) = all.split_first_mut() else { return };
        first.ranks = ranks;
        others.iter_mut().for_each(|other| other.is_one_of_several = true);
        if evaluators.execute && !(evaluators.only_in_doubt && is_known) {
            let is_equal =
                |evidence: &Evidence| matches!(evidence.values.proof(), Some(ValueResult::Equal(_)));
            let open = !is_equal(first) || !others.iter().all(is_equal);
            let numerics = first.policies.allowed.numerics;
            let to_the_bit = first.policies.any_rewrite && !evaluators.agree && numerics == Numerics::Exact;
            let question = Question { open, agree: evaluators.agree, to_the_bit };
            let of_all: Vec<&Evidence> = std::iter::once(&*first).chain(others.iter()).collect();
            let limit = evaluators.element_limit;
            let mut found = executed::execute(first, limit, question);
            let is_open = |(_, result): &(_, ValueResult)| matches!(result, ValueResult::Unknown(_));
            if !evaluators.agree && open && found.results.iter().all(is_open) {
                let all = executed::differences_by_definitions(first, limit);
                found.results.extend(all.map(|all| (ValueMethod::Concrete, ValueResult::Different(all))));
            }
            let mut parted = found.parted(first, &of_all);
            let mut results = found.results;
            let is_different = |(_, result): &(_, ValueResult)| matches!(result, ValueResult::Different(_));
            let of_others = others.iter().find_map(|other| other.values.taken_for_equal.clone());
            let taken_for_equal = first.values.taken_for_equal.clone().or(of_others);
            if let Some(excuse) = &taken_for_equal {
                results.iter_mut().for_each(|(_, result)| result.excuse_values(excuse.clone()));
            }
            first.values.results.extend(results);
            let mut excuse =
                if evaluators.agree { None } else { first.by_functions(evaluators.element_limit, open) };
            let of_all: Vec<&Evidence> = std::iter::once(&*first).chain(others.iter()).collect();
            if !evaluators.agree
                && taken_for_equal.is_none()
                && !first.values.of_execution().any(is_different)
                && let Some((result, of_sizes)) = executed::execute_at_sizes(&of_all, limit, question)
            {
                first.values.results.push(result);
                (parted, excuse) = (of_sizes, None);
            }
            let layout = match open && !evaluators.agree {
                true => groups::depends_on_layout(first, evaluators.element_limit, question),
                false => None,
            };
            if let Some(why) = &layout {
                let executed =
                    first.values.results.iter_mut().filter(|(method, _)| *method != ValueMethod::Symbolic);
                executed.for_each(|(_, result)| *result = ValueResult::Unknown(why.clone()));
            }
            // All ranks were executed, each with its own graph.
            let equal =
                first.values.of_execution().filter(|(_, result)| matches!(result, ValueResult::Equal(_)));
            let equal: Vec<(ValueMethod, ValueResult)> = equal.cloned().collect();
            for other in others.iter_mut() {
                if let Some(excuse) = &excuse {
                    other.values.excuse(excuse);
                }
                other.values.results.extend(equal.iter().cloned());
            }
            if !evaluators.agree
                && open
                && first.values.of_execution().all(is_open)
                && excuse.is_none()
                && layout.is_none()
                && let Some((differences, of_sizes)) = executed::differences_at_small_sizes(
                    &std::iter::once(&*first).chain(others.iter()).collect::<Vec<_>>(),
                    evaluators.element_limit,
                    question,
                )
            {
                parted = of_sizes;
                first.values.results.push((ValueMethod::Concrete, ValueResult::Different(differences)));
            }
            let witness = first.values.found_by_execution();
            all.iter_mut().for_each(|evidence| evidence.values.witness = witness);
            if witness == Some(true) {
                all.iter_mut().zip(parted).for_each(|(evidence, parted)| evidence.values.explain(parted));
            }
        }
        if !evaluators.agree {
            for evidence in all {
                if let Some(why) = evidence.values.doubt.take().or_else(|| layout::doubt(evidence)) {
                    let equal = |result: &&mut ValueResult| matches!(result, ValueResult::Equal(_));
                    let results = evidence.values.results.iter_mut().map(|(_, result)| result).filter(equal);
                    results.for_each(|result| *result = ValueResult::Unknown(why.clone()));
                }
                if let Some(folded) = Folded::new(evidence) {
                    evidence.values.results.iter_mut().for_each(|(_, result)| folded.excuse(result));
                    evidence.values.witness = evidence.values.found_by_execution();
                    evidence.values.wrong.retain(|_| evidence.values.witness == Some(true));
                }
            }
        }
    }

    /// Adds where values part.
    fn explain(&mut self, parted: Parted) {
        self.wrong = parted.wrong;
        let differences = self.results.iter_mut().find_map(|(_, result)| match result {
            ValueResult::Different(all) => all.iter().any(|one| one.about == About::Values).then_some(all),
            _ => None,
        });
        match (differences, parted.cause) {
            (Some(all), _) if all.iter().any(|one| one.is_cause) => {}
            (Some(all), cause) => all.splice(0..0, cause).for_each(drop),
            // What differs is told of the first graph.
            (None, Some(cause)) => {
                self.results.push((ValueMethod::Concrete, ValueResult::Different(vec![cause])))
            }
            (None, None) => {}
        }
    }

    /// Differences of values do not count, by whomever they were found.
    fn excuse(&mut self, why: &Reason) {
        self.results.iter_mut().for_each(|(_, result)| result.excuse_values(why.clone()));
    }

    /// What execution says, by each domain.
    pub(super) fn of_execution(&self) -> impl Iterator<Item = &(ValueMethod, ValueResult)> {
        self.results.iter().filter(|(method, _)| *method != ValueMethod::Symbolic)
    }

    /// Whether an execution found another value; `None` where none came to its end.
    fn found_by_execution(&self) -> Option<bool> {
        let known = self.of_execution().filter_map(|(_, result)| match result {
            ValueResult::Equal(_) => Some(false),
            ValueResult::Different(all) => all.iter().any(|one| one.about == About::Values).then_some(true),
            ValueResult::Unknown(_) => None,
        });
        known.max()
    }

    /// What the proof says.
    pub(super) fn proof(&self) -> Option<&ValueResult> {
        self.results.iter().find(|(method, _)| *method == ValueMethod::Symbolic).map(|(_, result)| result)
    }

    /// A line for each evaluator but the symbolic one: what it compared, or why it did not.
    pub(super) fn notes_of_execution(&self) -> impl Iterator<Item = String> {
        self.of_execution().map(|(method, result)| match result {
            ValueResult::Equal(what) => format!("{method}: {what}"),
            ValueResult::Different(all) => format!("{method}: {}", words::count(all.len(), "difference")),
            ValueResult::Unknown(why) => format!("{method}: not known: {why}"),
        })
    }
}

impl Evidence<'_> {
    /// Where both graphs are not known to be equal: whether they compute the same by fingerprints, at the level that is
    /// allowed; why differences of values do not count, then. Where no level is allowed, whether one would do.
    ///
    /// `open`: whether no proof says that the graphs are equal, on each rank.
    pub(super) fn by_functions(&mut self, limit: u64, open: bool) -> Option<Reason> {
        let allowed = &self.policies.allowed;
        let values = &self.values;
        let is_different = |result: &ValueResult| matches!(result, ValueResult::Different(_));
        let is_equal =
            !open || values.of_execution().any(|(_, result)| matches!(result, ValueResult::Equal(_)));
        let is_denied = values.of_execution().any(|(_, result)| is_different(result));
        if allowed.numerics == Numerics::ZeroSign
            && !is_equal
            && let Some((found, reserved)) = executed::likeness(self, limit, allowed.numerics, Asked::Answer)
        {
            let is_known = reserved.is_none() && found.alike == Alike::Same;
            if is_known || is_denied {
                let why = match &found.alike {
                    Alike::Open(why) => format!("values differ, perhaps in signs of zeros alone: {why}"),
                    _ => "values are the same but for signs of zeros".to_string(),
                };
                let excuse = Code::Rounding.because(why);
                self.values.excuse(&excuse);
                if is_known {
                    let words = format!("the same but for signs of zeros, at {} points", found.points);
                    self.values.results.push((ValueMethod::Fingerprints, ValueResult::Equal(words)));
                }
                return Some(excuse);
            }
        }
        let is_asked = allowed.numerics >= Numerics::Reassociation;
        let differs = values.results.iter().any(|(_, result)| is_different(result));
        if !self.policies.any_rewrite || is_equal && !differs {
            return None;
        }
        if !is_asked {
            let mut levels = [Numerics::Reassociation, Numerics::Contraction].into_iter();
            self.values.would = match differs {
                true => levels.find(|&level| self.holds_by(limit, level)),
                false => local::prove(self, limit, Numerics::Contraction).map(|(level, _)| level),
            }
            .filter(|&level| level > Numerics::Exact);
            return None;
        }
        let level = allowed.numerics;
        let tolerance = allowed.tolerance.unwrap_or(TOLERANCE);
        let Some((found, reserved)) = executed::likeness(self, limit, level, Asked::Answer) else {
            if level < Numerics::Precision {
                return None;
            }
            let excuse = Code::TooLarge.because("how far values are apart is not known");
            self.values.excuse(&excuse);
            return Some(excuse);
        };
        let points = found.points;
        let by_fingerprints = format!(
            "the same {}, at {points} points, where nothing overflows and constants are what they are \
             recognised as",
            if level == Numerics::Reassociation { "sums, products and quotients" } else { "real functions" }
        );
        let own = format!("within {:.1e} as they are (at most {tolerance:e} is allowed)", found.in_own);
        let (code, is_known, words) = match (level, &found.alike) {
            (Numerics::Approximate, _) if found.in_doubles <= tolerance => {
                let words = format!(
                    "the graphs agree within {:.1e} at {points} points, in double precision and relative to the largest \
                     element (at most {tolerance:e} is allowed); that is a test, and what is approximate is never called sound",
                    found.in_doubles
                );
                (Code::Approximate, false, words)
            }
            (Numerics::Approximate, _) | (_, Alike::Apart) => return None,
            // What another level allows this one does not.
            (Numerics::Reassociation, Alike::Open(why)) if self.holds_by(limit, Numerics::Contraction) => {
                self.values.would = Some(Numerics::Contraction);
                // What is defined in real numbers alone has no numbers here that differ.
                executed::written(self, Rounded::Otherwise)?;
                (Code::Rounding, false, format!("values differ, and {why}"))
            }
            (Numerics::Reassociation, Alike::Open(_))
                if self.holds_by(limit, Numerics::Precision) || executed::is_apart(self, limit) =>
            {
                return None;
            }
            (Numerics::Precision, _) if found.in_own > tolerance => return None,
            (_, Alike::Open(why)) => (Code::Rounding, false, format!("values differ, and {why}")),
            (_, Alike::Same) if !found.in_own.is_finite() => (
                Code::Rounding,
                false,
                format!("{by_fingerprints}, but for ordinary inputs one of them overflows"),
            ),
            (_, Alike::Same) if level < Numerics::Precision && found.in_own > executed::MOST_ROUNDING => (
                Code::Rounding,
                false,
                format!("{by_fingerprints}, but as they are they part by {:.1e}", found.in_own),
            ),
            (_, Alike::Same) => match reserved {
                Some(open) => (Code::Rounding, false, format!("{by_fingerprints}; but {}", open.why)),
                None if level == Numerics::Precision => {
                    (Code::Rounding, true, format!("casts aside {by_fingerprints}, and {own}"))
                }
                None => (Code::Rounding, true, by_fingerprints),
            },
        };
        let excuse = code.because("values differ, by no more than is allowed");
        self.values.excuse(&excuse);
        self.values.results.push((
            ValueMethod::Fingerprints,
            match is_known {
                true => ValueResult::Equal(words),
                false => ValueResult::Unknown(code.because(words)),
            },
        ));
        Some(excuse)
    }

    /// Whether both graphs are known to be equal by a level.
    fn holds_by(&self, limit: u64, level: Numerics) -> bool {
        executed::likeness(self, limit, level, Asked::Hint).is_some_and(|(found, open)| {
            found.alike == Alike::Same && open.is_none() && found.in_own <= executed::MOST_ROUNDING
        })
    }
}

/// Outputs are equal.
pub(super) fn outputs_equal(evidence: &Evidence) -> Checked {
    equal(evidence, "rewrite/values", Some(Observed::Outputs), BEFORE_AND_AFTER)
}

/// What inputs and constants hold in the end is equal.
pub(super) fn state_equal(evidence: &Evidence) -> Checked {
    let mut findings = constants_written_once_more_or_less(evidence);
    findings.extend(resized(evidence));
    match findings.is_empty() {
        true => equal(evidence, "rewrite/state", Some(Observed::State), BEFORE_AND_AFTER),
        false => Checked::Findings(findings),
    }
}

/// Constants that one graph certainly writes and the other leaves as they were. Where no node reads them any more, no
/// value tells.
fn constants_written_once_more_or_less(evidence: &Evidence) -> Vec<super::Finding> {
    let sides = [&evidence.before, &evidence.after];
    let writers = sides.map(|side| writers_of_constants(side));
    let mut findings = Vec::new();
    for (side, stage) in [(0, Stage::Before), (1, Stage::After)] {
        for (constant, writer) in &writers[side] {
            let Some(writer) = writer.filter(|_| !writers[1 - side].contains_key(constant)) else { continue };
            let name = sides[side].graph.name(writer);
            let finding = evidence.finding(
                "rewrite/state",
                stage,
                format!("what constant {constant} holds in the end differs"),
            );
            findings.push(if side == 0 {
                let before = finding.before_nodes(evidence, [writer]);
                before.expected(format!("{name} writes to it")).observed("after, nothing does")
            } else {
                let after = finding.after_nodes(evidence, [writer]);
                after.expected("nothing writes to it, as before").observed(format!("after, {name} does"))
            });
        }
    }
    findings
}

/// Inputs and constants that both graphs give other sizes in memory last. Where one of them resizes nothing, how large it
/// was is not known.
fn resized(evidence: &Evidence) -> Vec<super::Finding> {
    let [before, after] = [&evidence.before, &evidence.after].map(|side| last_sizes(side));
    let differs = |(place, &(old, size)): (&(bool, usize), &(NodeId, i64))| {
        let &(new, now) = after.get(place)?;
        (now != size).then_some((old, size, new, now))
    };
    let found = before.iter().filter_map(differs).map(|(old, size, new, now)| {
        let name =
            evidence.before.graph.name(evidence.before.graph.inputs(old).first().copied().unwrap_or(old));
        evidence
            .finding("rewrite/state", Stage::After, format!("{name} has other memory in the end"))
            .before_nodes(evidence, [old])
            .after_nodes(evidence, [new])
            .expected(format!("the storage of {name} has {size} bytes in the end"))
            .observed(format!("after, it has {now}"))
    });
    found.collect()
}

/// For each input (true) and constant (false), by its place among those, the call that resizes its storage last, with
/// the bytes.
fn last_sizes(side: &AnalyzedGraph) -> BTreeMap<(bool, usize), (NodeId, i64)> {
    let (graph, storages) = (side.graph, side.storages());
    let mut sizes = BTreeMap::new();
    let resizes = |id: NodeId| side.ops.call(graph, id).is_some_and(|info| info.kind == Kind::Resize);
    if !graph.ids().any(resizes) {
        return sizes;
    }
    for op in [Op::Placeholder, Op::GetAttr] {
        for (place, input) in graph.ids().filter(|&id| graph.node(id).op == op).enumerate() {
            let Some(storage) = storages.storage_of(input) else { continue };
            let last = storages.accesses_of(storage).filter(|access| resizes(access.node)).last();
            if let Some(access) = last.filter(|access| access.part.certain)
                && let Some(Value::Int(bytes)) = graph.argument(access.node, 1, "new_size")
            {
                sizes.insert((op == Op::Placeholder, place), (access.node, bytes));
            }
        }
    }
    sizes
}

/// The constants that a graph writes to or may write to, each with the first node that certainly does.
fn writers_of_constants<'s>(side: &'s AnalyzedGraph) -> BTreeMap<&'s str, Option<NodeId>> {
    let graph = side.graph;
    let storages = side.storages();
    let mut writers: BTreeMap<&str, Option<NodeId>> = BTreeMap::new();
    for id in graph.ids().filter(|&id| graph.node(id).op == Op::GetAttr) {
        let Some(storage) = storages.storage_of(id) else { continue };
        for access in storages.writes_of(storage, None) {
            let first = writers.entry(graph.target(id)).or_default();
            *first = first.or(access.part.certain.then_some(access.node));
        }
    }
    writers
}

/// Effects are equal, in their order.
pub(super) fn effects_equal(evidence: &Evidence) -> Checked {
    equal(evidence, "rewrite/effects", Some(Observed::Effects), BEFORE_AND_AFTER)
}

/// What both graphs are called.
pub(super) const BEFORE_AND_AFTER: [&str; 2] = ["before", "after"];

/// What is found of what is observed, or of everything; `graphs`: what both are called.
pub(super) fn equal(
    evidence: &Evidence,
    rule: &'static str,
    observed: Option<Observed>,
    graphs: [&str; 2],
) -> Checked {
    let values = &evidence.values;
    if let Some(why) = &values.not_requested {
        return Checked::NotChecked(why.clone());
    }
    let mut findings: Vec<super::Finding> = Vec::new();
    let would = values.would.map(Allowed::option);
    let mut unknown = Vec::new();
    let (mut equal, mut elsewhere, mut only_values) = (false, false, true);
    for (method, result) in &values.results {
        match result {
            ValueResult::Equal(_) => equal = true,
            ValueResult::Unknown(why) => unknown.push(why.clone().behind(format!("{method}: "))),
            ValueResult::Different(differences) => {
                let own = || {
                    differences
                        .iter()
                        .filter(|difference| observed.is_none_or(|who| difference.observed == who))
                };
                elsewhere |= own().count() < differences.len();
                for difference in own() {
                    let mut finding = evidence
                        .finding(rule, Stage::After, difference.title.clone())
                        .expected(format!("{}, {}", graphs[0], difference.expected))
                        .observed(format!("{}, {} (seen in {method})", graphs[1], difference.found));
                    if *method != ValueMethod::Symbolic && !difference.is_cause {
                        finding = finding.across_ranks();
                    }
                    only_values &= difference.about == About::Values;
                    if let (Some(option), About::Values) = (&would, difference.about) {
                        finding = finding.fact(format!("bits differ; equal with {option}"));
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
    if evidence.policies.are_draws_ambiguous && !findings.is_empty() && only_values {
        let why = "draws of one kind and size are matched in list order, and by that values differ; another matching may be right";
        return Checked::undecided(Code::DrawsReplaced, why);
    }
    match findings.is_empty() && !equal {
        false => Checked::Findings(findings),
        // An evaluator looks at everything together.
        true if elsewhere => Checked::NotChecked("the graphs differ in something else".into()),
        true if matches!(observed, Some(Observed::State | Observed::Effects)) => {
            Checked::NotChecked("it is not known what the graphs compute; see rewrite/values".into())
        }
        true => {
            let mut why = Reason::joined(&unknown);
            if let Some(option) = would {
                why.message += &format!("; bits may differ, equal with {option}");
            }
            Checked::Undecided(why)
        }
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
    /// Whether each answer is wanted as it is, so that they can be held against each other.
    pub agree: bool,
    /// The most elements that execution may touch, over all ranks.
    pub element_limit: u64,
}
