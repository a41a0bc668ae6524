//! Values by execution: both graphs run on every rank, with numbers and, where nothing is proved, as fingerprints.
//! What an equality of numbers is worth is said in [`semantics`]`::trials`.

use super::cause::Parted;
use super::correspondence::Calls;
use super::evidence::same_evidence;
use super::sizes::{Sized, Sizes};
use super::values::{self, About, Observed, ValueDifference, ValueMethod, ValueResult};
use super::{AnalyzedGraph, Code, Evidence, RankGraph, Reason, cause, loosened, own_index};
use crate::analysis::shrink::{Shrinking, Small};
use crate::definitions::{Rounded, written_out};
use crate::graph::{Graph, NodeId, Out, Value, World};
use crate::limits::Limit;
use crate::ops::Kind;
use crate::semantics::symbolic::{Sight, new_sights};
use crate::semantics::{
    self, Alike, Answers, Aspect, Bounds, Concrete, Difference, Failure, Hazard, HazardKind, Likeness,
    Numerics, Open, Options, Pair, Place, Program, Question, Run, Stopped,
};
use crate::words;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};

/// Ranks that are executed at most: beyond it a world is not small.
const MOST_RANKS: u32 = Limit::Executed.standard() as u32;

/// Nodes of a graph that is made smaller at most, which takes time for each of its sizes.
const MOST_NODES: usize = 4_000;

/// The least small size, of two attempts to show a difference.
const STARTS: [i64; 2] = [3, 4];

/// Tensors of one list at most.
const MOST_PIECES: usize = 128;

/// Elements from which on graphs are looked at at small sizes first.
const MANY_ELEMENTS: u64 = 1 << 14;

/// Elements at most of graphs some dimensions of which are kept for a proof.
const MOST_KEPT_ELEMENTS: u64 = 1 << 16;

/// How far graphs may part as they are that are the same but for roundings, relative to the largest element: far less than a
/// wrong constant makes, in the dtypes with the fewest bits too.
pub(super) const MOST_ROUNDING: f64 = 0.05;

/// Readings of numbers at most of which each is executed.
const MOST_READINGS: usize = 16;

/// Differences told at most.
const SHOWN: usize = 8;

/// How both graphs are run: with inputs with which the graphs before do.
fn options(evidence: &Evidence, limit: u64) -> Options {
    let bounds = befores(evidence).into_iter().flat_map(|before| {
        let storages = before.storages();
        Bounds::of(before.graph, &before.ops, &|input| storages.shows_written(input))
    });
    let bounds = bounds.collect();
    Options { max_elements: limit, bounds, ..Options::default() }
}

/// The distinct graphs before of all ranks.
fn befores<'e, 'a>(evidence: &'e Evidence<'a>) -> Vec<&'e AnalyzedGraph<'a>> {
    let mut all = vec![&*evidence.before];
    for outcome in &evidence.ranks {
        if !all.iter().any(|known| std::ptr::eq(*known, &*outcome.before)) {
            all.push(&outcome.before);
        }
    }
    all
}

/// What executions of both graphs say.
#[derive(Default)]
pub(super) struct Found {
    /// The answer of each domain.
    pub results: Vec<(ValueMethod, ValueResult)>,
    /// The runs with numbers, where they differ.
    pub runs: Option<(Run, Run)>,
    /// What was taken for granted, as the end of a sentence.
    premise: &'static str,
}

impl Found {
    /// Where values part, for each of the graphs after of which `all` tells; `at` was executed, at their sizes or at others.
    pub(super) fn parted(&self, at: &Evidence, all: &[&Evidence]) -> Vec<Parted> {
        let differences = self.results.iter().filter_map(|(_, result)| match result {
            ValueResult::Different(all) => all.iter().find(|one| one.about == About::Values),
            _ => None,
        });
        let Some((first, runs)) = differences.into_iter().next().zip(self.runs.as_ref()) else {
            return Vec::new();
        };
        let each = all.iter().map(|own| {
            // A graph that is proved to be right only shows what those of other ranks did.
            if matches!(own.values.proof(), Some(ValueResult::Equal(_))) {
                return Parted::default();
            }
            let outcome = at.ranks.iter().find(|outcome| own.own_ranks.contains(&outcome.rank));
            let (before, after) = outcome.map_or((&at.before, &at.after), |one| (&one.before, &one.side));
            let (ranks, own) = (own.own_ranks.clone(), own.own.clone());
            let graph = RankGraph { ranks, own, unrepaired: None, after: after.clone() };
            let own = Evidence::of_ranks(before.clone(), graph, at.policies.clone());
            let mut parted = cause::parted(&own, runs, first.observed);
            parted.cause.iter_mut().for_each(|cause| cause.title += self.premise);
            parted
        });
        let mut each: Vec<Parted> = each.collect();
        // Where a rank goes wrong by itself, what others receive of it follows from that.
        if each.iter().any(|one| one.cause.is_some() && !one.is_received) {
            each.iter_mut().filter(|one| one.is_received).for_each(|one| one.cause = None);
        }
        each
    }
}

/// Executes both graphs, which may touch so many elements. What differs that is drawn is no witness where definitions agree.
pub(super) fn execute(evidence: &Evidence, limit: u64, question: Question) -> Found {
    let mut found = run_both(evidence, limit, question);
    let mut results = found.results.iter();
    let differs = results.any(|(_, result)| matches!(result, ValueResult::Different(_)));
    if !question.agree && differs && agree_by_definitions(evidence, limit) {
        let why = "values that no kernel computes differ, and by the definitions of these calls nothing does";
        found.results.iter_mut().for_each(|(_, result)| result.excuse_values(Code::Rounding.because(why)));
        found.runs = None;
    }
    found
}

fn run_both(evidence: &Evidence, limit: u64, question: Question) -> Found {
    let world = evidence.before.graph.world.assume_mesh();
    let is_small = |world: &World| (2..=MOST_RANKS).contains(&world.ranks.unwrap_or(1));
    let is_alone = evidence.ranks.len() < 2 && world.as_ref().is_some_and(is_small);
    let others = world.filter(|_| is_alone && question.open && own_index::is_held(evidence));
    let others = others.and_then(|world| own_index::on_each_rank(&evidence.before, &evidence.after, &world));
    if let Some((graphs, own)) = others {
        return on_ranks_not_given(evidence.on_ranks(&graphs), &own, limit, question);
    }
    let prepared = match Prepared::new(evidence) {
        Ok(prepared) => prepared,
        Err(why) => {
            let results = vec![(ValueMethod::Concrete, ValueResult::Unknown(why))];
            return Found { results, ..Found::default() };
        }
    };
    let options = options(evidence, limit);
    let Prepared { before, after, world } = &prepared;
    let pair = Pair { before, after, world, options: &options };
    let mut answers = pair.ask(question);
    let mut numbers = prepared.answer(evidence, &answers);
    let mut results = Vec::new();
    if question.open && (question.agree || !matches!(numbers, ValueResult::Different(_))) {
        let reserved = pair.reserved(&answers.numbers);
        let same = if reserved.is_some() { None } else { same_in_bits(evidence, limit) };
        if same.is_none() && !question.agree && answers.are_equal() {
            pair.search(&mut answers, question);
            numbers = match (prepared.answer(evidence, &answers), reserved) {
                (ValueResult::Equal(_), Some(open)) => ValueResult::Unknown(open.into()),
                (ValueResult::Equal(what), None) => {
                    let why = format!("{what}, and no law is known by which they are so everywhere");
                    ValueResult::Unknown(Code::TrialsNoProof.because(why))
                }
                (numbers, _) => numbers,
            };
        }
        results.extend(same.map(|words| (ValueMethod::Fingerprints, ValueResult::Equal(words))));
    }
    results.insert(0, (ValueMethod::Concrete, numbers));
    if !question.agree
        && let Some(operator) = recorded_on_one_side(evidence)
    {
        let why = format!("what {operator} gives is recorded in one graph and not in the other");
        let why = Code::NotRecorded.because(why);
        results.iter_mut().for_each(|(_, result)| result.excuse_values(why.clone()));
    }
    let differ = |runs: &(Run, Run)| !semantics::compare(&runs.0, &runs.1).is_empty();
    Found { results, runs: answers.numbers.ok().filter(differ), premise: "" }
}

/// What executions say where all ranks run the graph of one with their own index.
fn on_ranks_not_given(evidence: Evidence, own: &[u32], limit: u64, question: Question) -> Found {
    let mut found = execute(&evidence, limit, question);
    // What else follows from the own index is right on the own rank alone.
    let differs_here = found.runs.as_ref().is_none_or(|(before, after)| {
        semantics::compare(before, after).iter().any(|difference| own.contains(&difference.rank))
    });
    found.premise = " where the other ranks run this graph with their own index";
    for (_, result) in &mut found.results {
        match result {
            ValueResult::Different(_) if !differs_here => {
                let why = "the graphs of the other ranks were not given, and on its own rank nothing differs";
                *result = ValueResult::Unknown(Code::RanksNotGiven.because(why));
            }
            ValueResult::Different(all) => all.iter_mut().for_each(|one| one.title += found.premise),
            ValueResult::Equal(what) => {
                let why = format!(
                    "the graphs of the other ranks were not given; with this one on all of them, {what}"
                );
                *result = ValueResult::Unknown(Code::RanksNotGiven.because(why));
            }
            ValueResult::Unknown(_) => {}
        }
    }
    found
}

/// The graph before of all ranks, and the graphs after; `None` where ranks had different ones before.
fn graphs<'e>(evidence: &'e Evidence) -> Option<Vec<&'e Graph>> {
    let befores = befores(evidence);
    let all = || befores.iter().copied().chain(evidence.afters()).map(|side| side.graph).collect();
    (befores.len() == 1).then(all)
}

/// An operator that is not computed and of which one graph records what it gives more often than another one: what is not
/// recorded has no numbers, and what is has.
fn recorded_on_one_side<'e>(evidence: &'e Evidence) -> Option<&'e str> {
    let open = |side: &'e AnalyzedGraph| {
        let mut found: BTreeMap<&str, usize> = BTreeMap::new();
        let is_open = |id: &NodeId| {
            let is_absent = match side.graph.node(*id).out {
                Out::Tuple(span) => side.graph.outs(span).contains(&Out::Absent),
                out => out == Out::Absent,
            };
            let kind = side.ops.call(side.graph, *id).map(|info| info.kind);
            let is_drawn = matches!(kind, Some(Kind::Opaque | Kind::Unknown | Kind::Random(_)));
            is_absent && is_drawn && !side.edges.users(*id).is_empty()
        };
        side.graph.ids().filter(is_open).for_each(|id| *found.entry(side.graph.target(id)).or_default() += 1);
        found
    };
    let first = open(&evidence.before);
    let mut others = befores(evidence).into_iter().chain(evidence.afters()).map(open);
    others.find_map(|other| {
        let mut all = first.keys().chain(other.keys());
        all.find(|of| first.get(*of) != other.get(*of)).copied()
    })
}

/// The same question about other graphs, in the order of [`graphs`].
fn of_graphs<'g>(evidence: &Evidence, graphs: &'g [Graph]) -> Option<Evidence<'g>> {
    let (before, afters) = graphs.split_first()?;
    evidence.of_graphs(before, afters)
}

/// The same with the calls written out that are defined.
pub(super) fn written(evidence: &Evidence, most: Rounded) -> Option<Vec<Graph>> {
    written_out(&graphs(evidence)?, most)
}

/// Whether graphs have more nodes, or name more tensors at once, than are followed when sizes change.
fn are_unrolled(graphs: &[&Graph]) -> bool {
    let longest = |graph: &Graph, id: NodeId| {
        let lists = graph.args(id).iter().filter_map(|value| match value {
            Value::List(span) => Some(span.len()),
            _ => None,
        });
        let results = match graph.node(id).out {
            Out::Tuple(span) => span.len(),
            _ => 0,
        };
        lists.fold(results, usize::max)
    };
    let nodes: usize = graphs.iter().map(|graph| graph.len()).sum();
    nodes > 2 * MOST_NODES
        || graphs.iter().any(|graph| graph.ids().any(|id| longest(graph, id) > MOST_PIECES))
}

/// What differs at small sizes, at two assignments of them and under each reading of numbers that may be counts: the same
/// programs, run at other sizes. Where sizes are coefficients, numbers may make up for them at the recorded ones alone.
pub(super) fn differences_at_small_sizes(
    all: &[&Evidence],
    limit: u64,
    question: Question,
) -> Option<(Vec<ValueDifference>, Vec<Parted>)> {
    let [evidence, ..] = all else { return None };
    let graphs = graphs(evidence).filter(|graphs| !are_unrolled(graphs))?;
    let shrinking = Shrinking::new(&graphs).ok().filter(|found| found.readings <= MOST_READINGS)?;
    let is_of_sizes = |at: usize| !(shrinking.is_free_of_sizes() && shrinking.doubts(at).is_empty());
    if (0..shrinking.readings).any(is_of_sizes) && shrinking.may_make_up_for_sizes() {
        return None;
    }
    let differences = |small: Small| {
        if small.sizes.is_empty() {
            return None;
        }
        let mut at = of_graphs(evidence, &small.graphs)?;
        let (mut found, mut parted) = match differences_by_definitions(&at, limit) {
            Some(found) => (found, Vec::new()),
            None => {
                let found = execute(&at, limit, question);
                let parted = found.parted(&at, all);
                if is_excused(&mut at, &found, limit) {
                    return None;
                }
                (found.results.into_iter().find_map(|(_, result)| values_of(result))?, parted)
            }
        };
        let sizes: Vec<String> = small.sizes.iter().map(|(from, to)| format!("{to} for {from}")).collect();
        let causes = parted.iter_mut().filter_map(|one| one.cause.as_mut());
        let told = found.iter_mut().chain(causes);
        told.for_each(|one| one.title += &format!(" with smaller sizes ({})", sizes.join(", ")));
        Some((found, parted))
    };
    let differences_from = |start: i64| {
        let readings = (0..shrinking.readings).map(|at| differences(shrinking.small(at, start).ok()?));
        readings.collect::<Option<Vec<_>>>()?.into_iter().next()
    };
    differences_from(STARTS[0]).filter(|_| differences_from(STARTS[1]).is_some())
}

/// What is said of a pair with the calls written out that are defined; `None` where none is, or one cannot be run.
fn by_definitions<T>(
    evidence: &Evidence,
    limit: u64,
    look: impl FnOnce(&Evidence, &Prepared, &Pair) -> Option<T>,
) -> Option<T> {
    // What a rounding decides, double precision does not confirm.
    let graphs = written(evidence, Rounded::Otherwise)?;
    let written = of_graphs(evidence, &graphs)?;
    let prepared = Prepared::new(&written).ok()?;
    let Prepared { before, after, world } = &prepared;
    look(&written, &prepared, &Pair { before, after, world, options: &options(&written, limit) })
}

/// What differs by more than roundings where calls that are defined are written out.
pub(super) fn differences_by_definitions(evidence: &Evidence, limit: u64) -> Option<Vec<ValueDifference>> {
    let allowed = &evidence.policies.allowed;
    let tolerance = allowed.tolerance.filter(|_| allowed.numerics == Numerics::Approximate);
    by_definitions(evidence, limit, |written, prepared, pair| {
        let answers = pair.stable_differences(tolerance.unwrap_or(0.0))?;
        if allowed.numerics >= Numerics::Reassociation && !is_apart(written, limit) {
            return None;
        }
        let mut found = values_of(prepared.answer(written, &answers))?;
        // A call that a definition makes has no name in the graphs that were given.
        let sides = [evidence.before.graph, evidence.after.graph];
        let is_given = |name: &String| sides.iter().any(|graph| graph.find(name).is_some());
        let observed = found.first().map_or(Observed::Outputs, |one| one.observed);
        let parted = answers.numbers.iter().filter_map(|runs| cause::parted(written, runs, observed).cause);
        let parted = parted.filter(|cause| cause.nodes.iter().all(is_given));
        found.splice(0..0, parted.collect::<Vec<_>>());
        found.iter_mut().for_each(|one| one.title += " where calls are written out by their definitions");
        Some(found)
    })
}

/// Whether nothing differs where calls that are defined are written out: then what is drawn for their values says nothing, unless
/// a call is given another number than its twin.
fn agree_by_definitions(evidence: &Evidence, limit: u64) -> bool {
    let (before, after) = (&evidence.before, &evidence.after);
    let calls = Calls::new(before.graph, after.graph);
    let mut twins = std::iter::zip(&evidence.correspondence.before_of, after.graph.ids());
    twins.all(|(twin, id)| twin.is_none_or(|twin| calls.same_constants(twin, id)))
        && by_definitions(evidence, limit, |written, _, pair| {
            let runs = pair.run(&Concrete::of_trial(0)).is_ok();
            Some(runs && pair.stable_differences(0.0).is_none() && !is_apart(written, limit))
        }) == Some(true)
}

/// Whether both graphs are apart by the laws of the level that is allowed. What the laws of real functions tell apart none of
/// sums, products and quotients makes equal.
pub(super) fn is_apart(evidence: &Evidence, limit: u64) -> bool {
    let level = evidence.policies.allowed.numerics.max(Numerics::Contraction);
    likeness(evidence, limit, level, Asked::Answer).is_some_and(|(found, _)| found.alike == Alike::Apart)
}

/// The values that differ.
fn values_of(result: ValueResult) -> Option<Vec<ValueDifference>> {
    let ValueResult::Different(mut found) = result else { return None };
    found.retain(|difference| difference.about == About::Values);
    (!found.is_empty()).then_some(found)
}

/// That both graphs are the same bit for bit, in words: node for node, or by fingerprints.
fn same_in_bits(evidence: &Evidence, limit: u64) -> Option<String> {
    if evidence.ranks.len() < 2 && same_evidence(evidence.before.graph, evidence.after.graph) {
        return Some("both graphs are the same, node for node".to_string());
    }
    let (found, reserved) = likeness(evidence, limit, Numerics::Exact, Asked::Answer)?;
    (found.alike == Alike::Same && reserved.is_none())
        .then(|| format!("the same bit for bit, at {}", words::count(found.points as usize, "point")))
}

/// What executions find where sizes are symbolic and these have other values than their hints: differences that the level
/// that is allowed does not excuse at those sizes, and nothing else. Of data nothing is assumed, so symbols that stand for
/// it have no values.
pub(super) fn execute_at_sizes(
    all: &[&Evidence],
    limit: u64,
    question: Question,
) -> Option<((ValueMethod, ValueResult), Vec<Parted>)> {
    let [evidence, ..] = all else { return None };
    // Symbols of one name may have other values on ranks that ran other graphs.
    if befores(evidence).len() > 1 {
        return None;
    }
    let sides = evidence.afters();
    let graphs = sides.iter().map(|side| side.graph);
    let before = &evidence.before;
    Sizes::tried((before.graph, &before.ops), graphs, false).find_map(|Sized { sizes, before, after }| {
        let mut sized = evidence.of_graphs(&before, &after)?;
        let mut found = execute(&sized, limit, question);
        let mut parted = found.parted(&sized, all);
        let at = found.results.iter().position(|(_, result)| matches!(result, ValueResult::Different(_)))?;
        if is_excused(&mut sized, &found, limit) {
            return None;
        }
        let (method, mut result) = found.results.swap_remove(at);
        if let ValueResult::Different(differences) = &mut result {
            let causes = parted.iter_mut().filter_map(|one| one.cause.as_mut());
            let told = differences.iter_mut().chain(causes);
            told.for_each(|one| one.title += &format!(" where {}", sizes.words()));
        }
        Some(((method, result), parted))
    })
}

/// Whether the level that is allowed may excuse what differs at some sizes.
fn is_excused(at: &mut Evidence, found: &Found, limit: u64) -> bool {
    at.values.results.clone_from(&found.results);
    match at.policies.allowed.numerics {
        Numerics::Exact => false,
        Numerics::ZeroSign => at.by_functions(limit, true).is_some(),
        _ => !is_apart(at, limit) || at.by_functions(limit, true).is_some(),
    }
}

/// What is asked of the likeness of two graphs.
#[derive(Clone, Copy)]
pub(super) enum Asked<'s> {
    /// Whether they are the same, and part by no more than [`MOST_ROUNDING`] as they are.
    Hint,
    /// All that can be said.
    Answer,
    /// Whether they are the same at all values of their symbols, where these are the pairs at some others.
    AllSizes(&'s [[Graph; 2]]),
}

/// How alike both graphs are by the laws of a level. With why that says nothing, where sizes are symbolic, say. Graphs of
/// many elements are looked at at small sizes first, and at their own if that says nothing and more than a hint is asked for.
pub(super) fn likeness(
    evidence: &Evidence,
    limit: u64,
    level: Numerics,
    asked: Asked,
) -> Option<(Likeness, Option<Open>)> {
    let is_hint = matches!(asked, Asked::Hint);
    let ask = |evidence: &Evidence| ask(evidence, limit, level, !is_hint);
    let written = |evidence: &Evidence| match level {
        Numerics::Exact => None,
        level => loosened::written(evidence, level),
    };
    let graphs = written(evidence);
    let own = graphs.as_ref().and_then(|graphs| of_graphs(evidence, graphs));
    let evidence = own.as_ref().unwrap_or(evidence);
    // Roundings add up with sizes.
    let is_shrunk = level < Numerics::Precision && elements(evidence) > MANY_ELEMENTS;
    let small = match asked {
        Asked::AllSizes(others) => {
            let others = others.iter().map(|[before, after]| {
                let at = Evidence::new(before, None, after, evidence.policies.clone());
                written(&at).unwrap_or_else(|| vec![before.clone(), after.clone()])
            });
            smaller_likeness(evidence, level, &others.collect::<Vec<_>>(), ask)
        }
        _ if is_shrunk => smaller_likeness(evidence, level, &[], ask),
        _ => None,
    };
    let is_last = matches!(asked, Asked::AllSizes(_)) || is_hint && is_shrunk;
    small.or_else(|| if is_last { None } else { ask(evidence) })
}

/// The same at the sizes that both graphs have.
fn ask(evidence: &Evidence, limit: u64, level: Numerics, is_asked: bool) -> Option<(Likeness, Option<Open>)> {
    let written = if level == Numerics::Exact { written(evidence, Rounded::Alike) } else { None };
    let own = written.as_ref().and_then(|graphs| of_graphs(evidence, graphs));
    let evidence = own.as_ref().unwrap_or(evidence);
    let options = options(evidence, limit);
    let prepared = Prepared::new(evidence).ok()?;
    let Prepared { before, after, world } = &prepared;
    let pair = Pair { before, after, world, options: &options };
    // Zeros of both signs are one number.
    let most = match level {
        level if level < Numerics::Reassociation => 0.0,
        _ if is_asked => f64::INFINITY,
        _ => MOST_ROUNDING,
    };
    let reserved = pair.reserved(&pair.run(&Concrete::of_trial(0)));
    if reserved.is_some() && (!is_asked || level == Numerics::Exact) {
        return None;
    }
    let mut found = pair.likeness(level, is_asked, most)?;
    if level == Numerics::ZeroSign && found.alike == Alike::Same && loosened::reads_signs_of_zeros(evidence) {
        found.alike = Alike::Open("something reads the sign of a zero".to_string());
    }
    if level >= Numerics::Reassociation && found.alike == Alike::Same && loosened::reads_bits(evidence) {
        found.alike = Alike::Open("something reads the bits of a float that is computed".to_string());
    }
    Some((found, reserved))
}

/// Whether two graphs are the same by the laws of a level: at their own sizes, or, where `others` are the same graphs at other
/// values of their symbols, at all of them.
pub(super) fn are_same(
    [before, after]: [&Graph; 2],
    evidence: &Evidence,
    limit: u64,
    level: Numerics,
    others: &[[Graph; 2]],
) -> bool {
    let at = Evidence::new(before, None, after, evidence.policies.clone());
    let asked = if others.is_empty() { Asked::Answer } else { Asked::AllSizes(others) };
    likeness(&at, limit, level, asked).is_some_and(|(found, open)| {
        found.alike == Alike::Same && open.is_none() && found.in_own <= MOST_ROUNDING
    })
}

/// Elements of all tensors of both graphs on all ranks.
fn elements(evidence: &Evidence) -> u64 {
    let of = |side: &AnalyzedGraph| {
        let graph = side.graph;
        let outs = graph.ids().flat_map(|id| graph.tensors_of(graph.node(id).out));
        let elements = outs.map(|tensor| graph.numel(graph.tensor(tensor)).map_or(0, i64::unsigned_abs));
        elements.fold(0, u64::saturating_add)
    };
    let ranks = u64::from(evidence.before.graph.world.ranks.unwrap_or(1));
    of(&evidence.before).saturating_add(of(&evidence.after)).saturating_mul(ranks)
}

/// The same at small sizes ([`shrink`](crate::analysis::shrink)). Equal at all that prove it, under one reading of the numbers
/// that may be counts; or apart under all of them, where no size is a coefficient. `others` are the same graphs at other values
/// of their symbols: a reading under which they are not what is found here is none.
fn smaller_likeness(
    evidence: &Evidence,
    level: Numerics,
    others: &[Vec<Graph>],
    ask: impl Fn(&Evidence) -> Option<(Likeness, Option<Open>)>,
) -> Option<(Likeness, Option<Open>)> {
    let graphs = graphs(evidence).filter(|graphs| !are_unrolled(graphs))?;
    let shrinking = Shrinking::for_proof(&graphs).ok()?;
    let at = |small: Result<Small, String>| {
        let small = small.ok()?;
        let at = of_graphs(evidence, &small.graphs)?;
        let is_large = shrinking.is_kept_for_proof && elements(&at) > MOST_KEPT_ELEMENTS;
        if is_large { None } else { ask(&at) }
    };
    let (mut apart, mut open) = (None, None);
    let mut are_all_apart = shrinking.readings <= MOST_READINGS && shrinking.is_free_of_sizes();
    let rounds = level < Numerics::Reassociation;
    let follows = |reading: usize| {
        others.iter().all(|other| shrinking.follows(reading, &other.iter().collect::<Vec<_>>()))
    };
    for reading in (0..shrinking.readings).filter(|&reading| follows(reading)) {
        let mut all = shrinking.proof(reading, rounds).ok().into_iter().flatten().map(at);
        let Some((mut found, mut why)) = all.next().flatten() else {
            are_all_apart = false;
            continue;
        };
        if found.alike == Alike::Same {
            are_all_apart = false;
            let is_same = all.all(|next| {
                let Some((next, other)) = next.filter(|(next, _)| next.alike == Alike::Same) else {
                    return false;
                };
                found.points += next.points;
                found.in_own = found.in_own.max(next.in_own);
                why = why.take().or(other);
                true
            });
            if is_same {
                return Some((found, why));
            }
        } else if found.alike == Alike::Apart {
            apart = Some((found, why));
        } else {
            are_all_apart = false;
            open = open.or(Some((found, why)));
        }
    }
    // What no law of bits makes equal at small sizes none does at others.
    if are_all_apart { apart } else { open.filter(|_| level < Numerics::Reassociation) }
}

struct Prepared<'e> {
    world: World,
    before: Vec<Program<'e>>,
    after: Vec<Program<'e>>,
}

impl<'e> Prepared<'e> {
    fn new(evidence: &'e Evidence) -> Result<Prepared<'e>, Reason> {
        let world = evidence
            .before
            .graph
            .world
            .assume_mesh()
            .ok_or_else(|| Code::TooManyRanks.because("the world has too many ranks"))?;
        let ranks = world.ranks.unwrap_or(1);
        if ranks > MOST_RANKS {
            let why = format!("{ranks} ranks; at most {MOST_RANKS} are executed");
            return Err(Code::TooManyRanks.because(why));
        }
        let (befores, sides): (Vec<&AnalyzedGraph>, Vec<&AnalyzedGraph>) = match evidence.ranks.len() {
            0 | 1 => (vec![&*evidence.before], vec![&*evidence.after]),
            _ => (0..ranks)
                .map(|rank| {
                    let outcome = evidence.ranks.iter().find(|r| r.rank == rank);
                    let missing =
                        || Code::RanksNotGiven.because(format!("the graph of rank {rank} was not given"));
                    outcome.map(|r| (&*r.before, &*r.side)).ok_or_else(missing)
                })
                .collect::<Result<_, _>>()?,
        };
        if sides.len() == 1 && ranks > 1 && own_index::is_held(evidence) {
            let why = "the graph after holds a rank's own index, and those of the other ranks were not given";
            return Err(Code::RanksNotGiven.because(why));
        }
        let program = |side: &'e AnalyzedGraph| {
            Program::new(side.graph, &side.ops, &world)
                .map_err(|failure| Code::from(&failure).because(describe_failure(&|_| side.graph, &failure)))
        };
        // One program serves ranks that run one graph.
        let programs = |sides: Vec<&'e AnalyzedGraph>| match sides.split_first() {
            Some((&first, others)) if others.iter().all(|&side| std::ptr::eq(side, first)) => {
                program(first).map(|only| vec![only])
            }
            _ => sides.into_iter().map(program).collect(),
        };
        let (before, after) = (programs(befores)?, programs(sides)?);
        Ok(Prepared { before, after, world })
    }

    fn answer(&self, evidence: &Evidence, answers: &Answers) -> ValueResult {
        let after_of = |rank: u32| graph_on(evidence, rank);
        let (before, after) = match &answers.numbers {
            Ok(runs) => runs,
            Err(Stopped::Before(failure)) => {
                let why =
                    format!("before: {}", describe_failure(&|rank| graph_before(evidence, rank), failure));
                return ValueResult::Unknown(Code::from(failure).because(why));
            }
            Err(Stopped::After(failure)) => return failed(&after_of, failure),
        };
        let mut differences: Vec<ValueDifference> = new_hazards(evidence, before, after);
        // One difference for each place, on the first rank that shows it.
        let (mut places, mut known) = (Vec::<(&Difference, usize)>::new(), FxHashMap::default());
        let (all, excused) = answers.counted(semantics::compare(before, after));
        if let (Some(why), true) = (excused, all.is_empty() && differences.is_empty()) {
            return ValueResult::Unknown(why.into());
        }
        if differences.is_empty() && semantics::differ_in_unknown_effects(before, after, &all) {
            return ValueResult::Unknown(Code::UnknownEffects.because(semantics::UNKNOWN_EFFECTS));
        }
        for difference in &all {
            let at = *known.entry(&difference.place).or_insert(places.len());
            match places.get_mut(at) {
                Some((_, ranks)) => *ranks += 1,
                None => places.push((difference, 1)),
            }
        }
        differences.extend(places.iter().take(SHOWN).map(|&(d, ranks)| {
            let graphs = [after_of(d.rank), evidence.before.graph];
            describe(graphs, d, ranks)
        }));
        if differences.is_empty() {
            return ValueResult::Equal(answers.words(after));
        }
        ValueResult::Different(differences)
    }
}

/// The graph after that a rank runs.
fn graph_on<'a>(evidence: &Evidence<'a>, rank: u32) -> &'a Graph {
    let own = evidence.ranks.iter().find(|outcome| outcome.rank == rank);
    own.map_or(evidence.after.graph, |outcome| outcome.side.graph)
}

/// The graph before that a rank ran.
fn graph_before<'a>(evidence: &Evidence<'a>, rank: u32) -> &'a Graph {
    let own = evidence.ranks.iter().find(|outcome| outcome.rank == rank);
    own.map_or(evidence.before.graph, |outcome| outcome.before.graph)
}

/// The graph of a rank.
type GraphOf<'f, 'g> = &'f dyn Fn(u32) -> &'g Graph;

/// A graph after that cannot be executed: our limits are no fault of it, and of ranks that do not meet the simulator
/// speaks (`rewrite/collectives`).
fn failed(after: GraphOf, failure: &Failure) -> ValueResult {
    let (rank, node) = match failure {
        Failure::Raises { rank, node, .. } => (rank.unwrap_or(0), *node),
        Failure::Undefined { rank, node, .. } => (*rank, *node),
        _ => {
            let why = format!("after: {}", describe_failure(after, failure));
            return ValueResult::Unknown(Code::from(failure).because(why));
        }
    };
    let graph = after(rank);
    let name = (node.index() < graph.len()).then(|| graph.name(node).to_string());
    ValueResult::Different(vec![ValueDifference {
        title: values::CANNOT_BE_EXECUTED.to_string(),
        nodes: name.into_iter().collect(),
        expected: "the graph runs to its end on every rank".to_string(),
        found: describe_failure(after, failure),
        about: match failure {
            Failure::Raises { .. } => About::Arguments,
            _ => About::Execution,
        },
        observed: Observed::Outputs,
        is_cause: false,
    }])
}

/// A failure with the names of nodes.
fn describe_failure(graph: GraphOf, failure: &Failure) -> String {
    let name =
        |rank: u32, id: NodeId| if id.index() < graph(rank).len() { graph(rank).name(id) } else { "?" };
    match failure {
        Failure::Refused { rank, node, reason } => format!("{} on rank {rank}: {reason}", name(*rank, *node)),
        Failure::Raises { rank, node, reason } => {
            format!("{} raises an error: {reason}", name(rank.unwrap_or(0), *node))
        }
        Failure::Undefined { rank, node, input } => {
            let what = input.map_or("a value that no node gives".to_string(), |i| {
                format!("{} before it exists", name(*rank, i))
            });
            format!("{} on rank {rank} takes {what}", name(*rank, *node))
        }
        Failure::TooLarge { .. } | Failure::World { .. } | Failure::Apart(_) => failure.to_string(),
    }
}

/// Races that the graph before had not, each kind of each node once, on the first rank that shows it.
fn new_hazards(evidence: &Evidence, before: &Run, after: &Run) -> Vec<ValueDifference> {
    // Strides that nobody recorded may allow the view.
    let counts = |graph: &Graph, hazard: &Hazard| {
        hazard.node.index() < graph.len()
            && !(hazard.kind == HazardKind::ViewNeedsCopy && graph.guess_behind(hazard.node).is_some())
    };
    let words = |graph: &Graph, hazard: &Hazard| {
        let hazard = Hazard { rank: 0, ..*hazard };
        hazard.describe(|id| graph.name(id)).trim_start_matches("rank 0: ").to_string()
    };
    let once = |all: Vec<(&'_ Graph, Hazard)>| {
        let mut seen: FxHashSet<String> = FxHashSet::default();
        let counted = all.into_iter().filter(|(graph, hazard)| counts(graph, hazard));
        let told = counted
            .map(|(graph, hazard)| (words(graph, &hazard), graph.target(hazard.node).to_string(), hazard));
        told.filter(|(what, ..)| seen.insert(what.clone())).collect::<Vec<_>>()
    };
    let known = once(before.hazards.iter().map(|h| (graph_before(evidence, h.rank), *h)).collect());
    let found = once(after.hazards.iter().map(|h| (graph_on(evidence, h.rank), *h)).collect());
    fn sights(all: &[(String, String, Hazard)]) -> Vec<Sight<'_, Discriminant<HazardKind>>> {
        all.iter().map(|(what, target, h)| (&**what, &**target, discriminant(&h.kind))).collect()
    }
    let mut told: Vec<ValueDifference> = Vec::new();
    let is_new = new_sights(&sights(&known), &sights(&found));
    for ((what, _, hazard), _) in found.iter().zip(is_new).filter(|(_, is_new)| *is_new) {
        let name = graph_on(evidence, hazard.rank).name(hazard.node);
        told.push(ValueDifference {
            title: what.clone(),
            nodes: vec![name.to_string()],
            expected: "no node races with communication in this way".to_string(),
            found: format!("on rank {}, {what}", hazard.rank),
            about: match (hazard.kind, evidence.ranks.as_slice()) {
                (_, [first, _, ..]) if first.rank != hazard.rank => About::OtherRank,
                (HazardKind::ViewNeedsCopy, _) => About::Arguments,
                _ => About::Execution,
            },
            observed: Observed::Outputs,
            is_cause: false,
        });
    }
    told
}

/// What lies at a place, in words, and the names of the nodes concerned. Where the graph after returns no node there, that
/// before names the output.
fn subject(graphs: [&Graph; 2], place: &Place) -> (String, Vec<String>) {
    match place {
        Place::Output(path) => {
            let name =
                |graph: &Graph| semantics::output_node(graph, path).map(|node| graph.name(node).to_string());
            match graphs.into_iter().find_map(name) {
                Some(name) => (format!("output {name}"), vec![name]),
                None if path.is_empty() => ("the output".to_string(), Vec::new()),
                None => {
                    let path: Vec<String> = path.iter().map(u32::to_string).collect();
                    (format!("output {}", path.join(".")), Vec::new())
                }
            }
        }
        Place::Input(name) => (format!("the final contents of input {name}"), vec![name.clone()]),
        Place::Effect(n) => (format!("effect {n}"), Vec::new()),
        Place::World => ("the number of ranks".to_string(), Vec::new()),
    }
}

fn describe(graphs: [&Graph; 2], difference: &Difference, ranks: usize) -> ValueDifference {
    let (what, nodes) = subject(graphs, &difference.place);
    let or_nothing = |side: &Option<String>| side.clone().unwrap_or_else(|| "there is nothing".to_string());
    let (expected, found) = match &difference.aspect {
        Aspect::Existence { before, after } => (or_nothing(before), or_nothing(after)),
        Aspect::Dtype { before, after } => (before.name().to_string(), after.name().to_string()),
        Aspect::Shape { before, after } => {
            (format!("its shape is {before:?}"), format!("its shape is {after:?}"))
        }
        Aspect::Value { index, before, after, count } => {
            let place = if index.is_empty() { "it".to_string() } else { format!("element {index:?}") };
            let more = if *count > 1 { format!(" ({count} elements differ)") } else { String::new() };
            (format!("{place} is {before}"), format!("{place} is {after}{more}"))
        }
    };
    let others = match ranks {
        1 => String::new(),
        2 => " and 1 other".to_string(),
        n => format!(" and {} others", n - 1),
    };
    let title = format!("{what} differs on rank {}{others}", difference.rank);
    let about = match &difference.aspect {
        Aspect::Dtype { .. } | Aspect::Shape { .. } => About::Types,
        Aspect::Existence { .. } | Aspect::Value { .. } => About::Values,
    };
    let observed = match &difference.place {
        Place::Input(_) => Observed::State,
        Place::Effect(_) => Observed::Effects,
        Place::Output(_) | Place::World => Observed::Outputs,
    };
    ValueDifference { title, nodes, expected, found, about, observed, is_cause: false }
}
