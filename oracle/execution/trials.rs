//! Two graphs executed with numbers, in one trial after another: what an equality is worth.
//!
//! # The rule
//!
//! Numbers convict: a trial in which something differs is a witness. They acquit nobody: an element cannot show a difference
//! where it is NaN or infinite, nor where it is the same whatever the inputs are (saturated, masked, multiplied by 0), and what
//! has thresholds may act where no trial came. What acquits are terms, at full size or as fingerprints ([`Pair::likeness`]).
//! So one trial is a second opinion on a proof, and where there is none, more are made to find a witness.
//!
//! Nor does an equality say anything of memory that nobody is known to have written, or, where sizes are symbolic, of other
//! sizes ([`Pair::reserved`]).
//!
//! # Functions without kernel
//!
//! Numbers draw them, so numbers that differ behind one say nothing of `lerp` and its expansion. They convict where
//! both graphs make the same calls on the way there (operator, constants and sizes, each as often), so that what they
//! are given differs, or what is added and multiplied afterwards; or the same but for constants and operands that both
//! graphs have; or where one graph computes the value, and an input moves it on which the other one does not depend.
//! Elsewhere the difference is no evidence. A function with thresholds of drawn values counts as drawn: it
//! may do nothing to what the operator really gives. Nor are numbers that differ any evidence where one random operator
//! draws in place of another: which numbers of one are which of the other nobody knows.
//!
//! # Roundings
//!
//! `sum(sum(x, 0))` for `sum(x)` is another number, and no defect: a sum in another order. So numbers convict nobody
//! where all elements that differ are the same sums, products and quotients of the same calls
//! ([`Fingerprints::but_for_roundings`]). Where one side rounds what the other does not, or computes in another dtype, they do.
//!
//! A trial draws all inputs anew, and functions without kernel too. The first has large numbers, which tell roundings
//! and orders of additions apart; the others have numbers that stay finite through deep chains
//! (see [`Concrete::of_trial`]). In the last ones every other element lies at a number that a call is given, or at 0
//! or 1, where comparisons turn; signs of zeros do not count there.
//!
//! # What it does not do
//!
//! Trials sample: what differs for few inputs may be equal in all of them.

use super::between::Ways;
use super::compare::{Aspect, Difference, Place, compare};
use super::concrete::{Concrete, is_finite};
use super::differing::differing;
use super::domain::Domain;
use super::fingerprint::{Fingerprints, part};
use super::program::{Action, Input, Program};
use super::retyped::Retyped;
use super::run::{Failure, Given, Leaf, Options, RankRun, Run, TensorValue, inputs, run};
use super::smooth::views_by_record;
use crate::graph::{Graph, NodeId, Op, Out, World};
use crate::ops::{Kind, Ops};
use crate::words;
use std::collections::BTreeSet;

/// Trials that are made with random inputs where nothing is proved.
const TRIALS: u32 = 6;

/// What floats may be beside numbers, with numbers between them.
const SPECIAL: [f64; 5] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0, -1.0];

/// Trials with inputs at the numbers that calls are given, where graphs have [few elements](FEW_ELEMENTS); elsewhere one
/// has enough of them.
const MARKED_TRIALS: u32 = 16;

/// Elements of all values of a graph up to which they are few.
const FEW_ELEMENTS: u128 = 1 << 12;

/// Two graphs to execute: one program for all ranks, or one per rank.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    /// The programs of the graph before.
    pub before: &'a [Program<'a>],
    /// The programs of the graph after.
    pub after: &'a [Program<'a>],
    /// The ranks.
    pub world: &'a World,
    /// How to run.
    pub options: &'a Options,
}

/// Why one of two graphs has no run.
#[derive(Clone, PartialEq, Debug)]
pub enum Stopped {
    /// The graph before.
    Before(Failure),
    /// The graph after.
    After(Failure),
}

/// What is asked of execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Question {
    /// Whether no proof says that the graphs are equal, or that they differ.
    pub open: bool,
    /// Whether each answer is to be held against the others, so that a second trial is worth its time.
    pub agree: bool,
    /// Whether numbers that differ by roundings alone differ.
    pub to_the_bit: bool,
}

/// What execution says.
pub struct Answers {
    /// The runs before and after with numbers, of the first trial or of the one that shows a difference.
    pub numbers: Result<(Run, Run), Stopped>,
    /// How many trials were made.
    pub trials: u32,
    /// Places at which numbers differ and that says nothing.
    pub excused: Vec<Excuse>,
}

/// Why execution leaves a question open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Open {
    /// The kind of reason.
    pub kind: OpenKind,
    /// The reason, in words.
    pub why: String,
}

/// The kinds of reasons for which execution leaves a question open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenKind {
    /// Sizes are symbolic, and were executed at their hints.
    SymbolicSize,
    /// A view without a rule was executed as it is recorded.
    ViewByRecord,
    /// An operator of which nothing is known may write what it takes.
    UnknownWrite,
    /// Results hold memory that nobody is known to have written.
    UnwrittenMemory,
    /// Numbers differ by roundings alone.
    Rounding,
    /// Numbers differ behind operators whose results are drawn.
    Drawn,
}

/// Why numbers that differ say nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Excuse {
    /// On which rank.
    pub rank: u32,
    /// Where.
    pub place: Place,
    /// Why, in words.
    pub why: String,
    /// Whether roundings alone differ.
    pub by_rounding: bool,
}

impl Answers {
    /// The numbers of one trial, of which nothing else is known.
    pub(super) fn of(numbers: Result<(Run, Run), Stopped>) -> Answers {
        Answers { numbers, trials: 1, excused: Vec::new() }
    }

    /// Whether no number differs.
    pub fn are_equal(&self) -> bool {
        self.numbers.as_ref().is_ok_and(|(before, after)| compare(before, after).is_empty())
    }

    /// Why a difference of numbers says nothing.
    fn excuse(&self, difference: &Difference) -> Option<&Excuse> {
        let mut excused = self.excused.iter();
        let of = excused.find(|excuse| (excuse.rank, &excuse.place) == (difference.rank, &difference.place));
        of.filter(|_| matches!(difference.aspect, Aspect::Value { .. }))
    }

    /// The differences that count, and why one does not where some do not.
    pub fn counted(&self, all: Vec<Difference>) -> (Vec<Difference>, Option<Open>) {
        let why = all.iter().find_map(|difference| self.excuse(difference)).map(|excuse| Open {
            kind: if excuse.by_rounding { OpenKind::Rounding } else { OpenKind::Drawn },
            why: excuse.why.clone(),
        });
        (all.into_iter().filter(|difference| self.excuse(difference).is_none()).collect(), why)
    }

    /// What was executed and is equal.
    pub fn words(&self, run: &Run) -> String {
        let degenerate = match degenerate(run) {
            (bad, of) if self.trials == 1 && bad > 0 => {
                format!("; {bad} of {of} hold numbers that are not finite, whose equality says nothing")
            }
            _ => String::new(),
        };
        // Ranks with graphs of their own may have more than the first.
        let most = |of: fn(&RankRun) -> usize| run.ranks.iter().map(of).max().unwrap_or(0);
        let equal = words::counts(&[
            (most(|rank| rank.outputs.len()), "output"),
            (most(|rank| rank.inputs.len()), "input"),
            (most(|rank| rank.effects.len()), "effect"),
        ]);
        let trials = if self.trials > 1 { format!(" in {} trials", self.trials) } else { String::new() };
        format!(
            "executed on {}{trials}: {equal} are equal{degenerate}",
            words::count(run.ranks.len(), "rank")
        )
    }
}

/// Takes those that are roundings out of the differences.
fn roundings(
    differences: &mut Vec<Difference>,
    why: &str,
    is_rounding: impl Fn(&Difference) -> bool,
) -> Vec<Excuse> {
    let taken = differences.extract_if(.., |one| is_rounding(one));
    let excuse = |one: Difference| Excuse {
        rank: one.rank,
        place: one.place,
        why: why.to_string(),
        by_rounding: true,
    };
    taken.map(excuse).collect()
}

impl<'a> Pair<'a> {
    /// Runs both in one domain.
    ///
    /// # Errors
    /// [`Stopped`] says which has no run, and why.
    pub fn run(&self, domain: &dyn Domain) -> Result<(Run, Run), Stopped> {
        let retyped = Retyped::new(domain);
        let domain = retyped.for_programs(self.before.iter().chain(self.after));
        let before = run(self.before, self.world, domain, self.options).map_err(Stopped::Before)?;
        if let Some((rank, node)) = before.failed_assertion() {
            let reason = "what it asserts is not so with the numbers that were tried".to_string();
            return Err(Stopped::Before(Failure::Refused { rank, node, reason }));
        }
        let after = run(self.after, self.world, domain, self.options).map_err(Stopped::After)?;
        // Where the graph before raises, another one may give what it likes.
        if let Some((rank, node)) = before.outside()
            && !compare(&before, &after).is_empty()
        {
            let reason = "with the numbers that were tried it gives an index outside its dimension, or divides an integer by 0"
                .to_string();
            return Err(Stopped::Before(Failure::Refused { rank, node, reason }));
        }
        Ok((before, after))
    }

    /// Runs both with the numbers of the first trial; where answers are held against each other, or those of the first trial
    /// show little, of a second one too.
    pub fn ask(&self, question: Question) -> Answers {
        let mut answers = Answers::of(self.shown(&Concrete::of_trial(0)));
        // A proof speaks of one rank's graph.
        let shows_little = |(_, after): &(Run, Run)| self.after.len() > 1 && degenerate(after).0 > 0;
        if (question.agree || answers.numbers.as_ref().is_ok_and(shows_little))
            && answers.are_equal()
            && let Ok(second) = self.shown(&Concrete::of_trial(1))
            && !compare(&second.0, &second.1).is_empty()
        {
            (answers.numbers, answers.trials) = (Ok(second), 2);
        }
        answers.excused = self.excused(&answers.numbers, question);
        answers
    }

    /// Looks for a witness in further trials, of graphs that are equal in the first one.
    pub fn search(&self, answers: &mut Answers, question: Question) {
        let random = (1..TRIALS).map(|trial| (trial, None));
        let marked = self.marked_trials().map(|(trial, marks)| (trial, Some(marks)));
        let special = self.marked_trials().map(|(trial, _)| (trial, Some(SPECIAL.to_vec())));
        for (trial, marks) in random.chain(marked).chain(special) {
            let is_random = marks.is_none();
            let options = Options { marks: marks.unwrap_or_default(), ..self.options.clone() };
            let found = Pair { options: &options, ..*self }.shown(&Concrete::of_trial(trial));
            let is_witness = |(before, after): &(Run, Run)| {
                !compare(before, after).is_empty() && (is_random || part(before, after))
            };
            match found {
                Ok(runs) if is_witness(&runs) => {
                    let differences = compare(&runs.0, &runs.1);
                    answers.numbers = Ok(runs);
                    answers.excused = self.excused(&answers.numbers, question);
                    if !answers.counted(differences).0.is_empty() {
                        return;
                    }
                }
                // Special numbers may lead outside of what a graph takes.
                Err(stopped) if is_random => {
                    answers.numbers = Err(stopped);
                    return;
                }
                _ => answers.trials += u32::from(is_random),
            }
        }
    }

    /// Trials with inputs at the numbers that calls are given, and these numbers.
    pub(super) fn marked_trials(&self) -> impl Iterator<Item = (u32, Vec<f64>)> {
        let is_small = self.before.iter().all(|program| program.recorded_elements <= FEW_ELEMENTS);
        let times = if is_small { MARKED_TRIALS } else { 1 };
        let marks = self.marks();
        (0..times).map(move |more| (TRIALS + more, marks.clone()))
    }

    /// The ways of one rank's two graphs.
    fn ways(&self, rank: usize) -> Option<[Ways<'_, 'a>; 2]> {
        let of = |programs: &'a [Program<'a>]| {
            programs.get(if programs.len() > 1 { rank } else { 0 }).map(Ways::new)
        };
        Some([of(self.before)?, of(self.after)?])
    }

    /// Both runs, with what each node gives.
    fn traced(&self, domain: &dyn Domain) -> Result<(Run, Run), Stopped> {
        let options = Options { trace: true, ..self.options.clone() };
        Pair { options: &options, ..*self }.run(domain)
    }

    /// Both runs, with what each node gives where they differ.
    pub(super) fn shown(&self, domain: &dyn Domain) -> Result<(Run, Run), Stopped> {
        let runs = self.run(domain)?;
        match compare(&runs.0, &runs.1).is_empty() {
            true => Ok(runs),
            false => self.traced(domain).or(Ok(runs)),
        }
    }

    /// Where numbers differ and that says nothing: by roundings alone, or behind calls that are drawn and not the same
    /// in both graphs.
    pub(super) fn excused(&self, numbers: &Result<(Run, Run), Stopped>, question: Question) -> Vec<Excuse> {
        let Ok((before, after)) = numbers else { return Vec::new() };
        let is_value = |one: &Difference| matches!(one.aspect, Aspect::Value { .. });
        let mut differences: Vec<Difference> = compare(before, after).into_iter().filter(is_value).collect();
        let mut excused = Vec::new();
        if !question.to_the_bit {
            excused.extend(self.excused_by_rounding(before, after, &mut differences));
        }
        let (mut traced, mut ways) = (None, None);
        for Difference { rank, place, aspect } in differences {
            if !matches!(aspect, Aspect::Value { .. }) {
                continue;
            }
            let at = rank as usize;
            if ways.as_ref().is_none_or(|(of, _)| *of != at) {
                ways = self.ways(at).map(|ways| (at, ways));
            }
            let Some((_, [one, other])) = &ways else { continue };
            if let Some(why) = Ways::replaced_draws([one, other], &place) {
                excused.push(Excuse { rank, place, why, by_rounding: false });
                continue;
            }
            if !one.draws() && !other.draws() {
                continue;
            }
            let runs = traced.get_or_insert_with(|| self.traced(&Concrete::of_trial(0)).ok());
            let runs = match runs {
                Some((one, other)) => [one.ranks.get(at), other.ranks.get(at)],
                None => [None, None],
            };
            if let Some(why) = Ways::excuse([one, other], runs, &place, question.open)
                && !self.depends_on_another_input(rank, &place, [one, other])
            {
                excused.push(Excuse { rank, place, why, by_rounding: false });
            }
        }
        excused
    }

    /// Whether one graph computes what lies at a place, and makes it of an input on which the other graph's value there does
    /// not depend: drawn anew, that input moves it. So they differ whatever the calls give that are not computed.
    fn depends_on_another_input(&self, rank: u32, place: &Place, ways: [&Ways; 2]) -> bool {
        let programs = [self.before, self.after];
        let domain = Concrete::of_trial(0);
        let is_known = |program: &Program| {
            !program.steps.iter().any(|step| matches!(step.action, Action::Call(Kind::Unknown)))
        };
        let [[before], [after]] = programs else { return false };
        if ![before, after].into_iter().all(is_known) {
            return false;
        }
        let moves = |side: usize| {
            let program = &programs[side][0];
            let base = run(programs[side], self.world, &domain, self.options).ok()?;
            let names = |side: usize| -> BTreeSet<&str> {
                let inputs = ways[side].inputs_to(place);
                inputs.iter().map(|&index| &*programs[side][0].inputs[index as usize].name).collect()
            };
            let of_other = names(1 - side);
            let others = inputs(program, rank, &Concrete::of_trial(1), self.options).ok()?;
            names(side).into_iter().filter(|name| !of_other.contains(name)).find(|name| {
                let other = others.iter().find(|input| input.name == **name);
                let Some(Leaf::Tensor(TensorValue { cells, .. })) = other.map(|input| &input.value) else {
                    return false;
                };
                if [before, after].into_iter().any(|program| shares_memory(program, name)) {
                    return false;
                }
                let given = Given { name: name.to_string(), rank: Some(rank), cells: cells.clone() };
                let options = Options { given: vec![given], ..self.options.clone() };
                let moved = run(programs[side], self.world, &domain, &options);
                moved.is_ok_and(|moved| {
                    let all = compare(&base, &moved);
                    all.iter().any(|one| (one.rank, &one.place) == (rank, place))
                })
            })
        };
        ways.iter().all(|way| !way.draws_at_random(place))
            && (0..2).any(|side| ways[side].computes(place) && moves(side).is_some())
    }

    /// Why an equality of numbers or terms says nothing.
    pub fn reserved(&self, numbers: &Result<(Run, Run), Stopped>) -> Option<Open> {
        let open = |kind, why| Some(Open { kind, why });
        if let Some(name) =
            self.before.iter().chain(self.after).find_map(|program| sized_by_symbol(program.graph))
        {
            let why = format!("the size of {name} is symbolic, and graphs are executed for its hint alone");
            return open(OpenKind::SymbolicSize, why);
        }
        // What such a call says is not looked at, so both graphs have to say the same.
        let views: Vec<_> =
            self.before.iter().chain(self.after).map(|program| views_by_record(program.graph)).collect();
        let differ = views.iter().find(|of| views.first() != Some(of));
        if let Some(view) = differ.and_then(|of| of.keys().chain(views.first()?.keys()).next().cloned()) {
            let why = format!("a view without a rule ({view}) was executed as it is recorded");
            return open(OpenKind::ViewByRecord, why);
        }
        // Execution takes it that such a call writes nothing.
        if let Some(name) = self.before.iter().chain(self.after).find_map(|program| may_write(program.graph))
        {
            let why = format!("nothing is known of {name}, which may write what it takes");
            return open(OpenKind::UnknownWrite, why);
        }
        let (before, _) = numbers.as_ref().ok()?;
        let unwritten = |leaf: &Leaf| matches!(leaf, Leaf::Tensor(tensor) if tensor.poison.contains(&true));
        let leaves = before.ranks.iter().flat_map(|rank| {
            rank.outputs.iter().map(|(_, leaf)| leaf).chain(rank.inputs.iter().map(|input| &input.value))
        });
        let count = leaves.filter(|leaf| unwritten(leaf)).count();
        let why = format!(
            "{count} results hold memory that nobody is known to have written, in both graphs; that says nothing"
        );
        open(OpenKind::UnwrittenMemory, why).filter(|_| count > 0)
    }

    /// Where all elements that differ are the same but for roundings: those are taken out of the differences.
    fn excused_by_rounding(
        &self,
        before: &Run,
        after: &Run,
        differences: &mut Vec<Difference>,
    ) -> Vec<Excuse> {
        if differences.is_empty() {
            return Vec::new();
        }
        let Ok((one, other)) = self.run(&Fingerprints::but_for_roundings()) else { return Vec::new() };
        let places = differing(before, after);
        let why = "the concrete values differ by roundings alone: they are the same sums and products of the same calls";
        roundings(differences, why, |difference| {
            let of = (difference.rank as usize, &difference.place);
            let mut here = places.iter().filter(|place| (place.rank, &place.place) == of);
            here.next().is_some_and(|place| place.are_equal_in(&one, &other))
        })
    }
}
/// Whether an input shares its storage with another one.
fn shares_memory(program: &Program, name: &str) -> bool {
    let storage = |input: &Input| program.graph.tensor_of(input.node).and_then(|tensor| tensor.storage);
    let own = program.inputs.iter().find(|input| input.name == name).and_then(storage);
    own.is_some() && program.inputs.iter().any(|input| input.name != name && storage(input) == own)
}

/// A node whose size is symbolic, or an input that is a symbolic number.
fn sized_by_symbol(graph: &Graph) -> Option<&str> {
    let is_symbolic = |id: &NodeId| {
        let is_number =
            graph.node(*id).op == Op::Placeholder && matches!(graph.node(*id).out, Out::SymInt(_));
        is_number || graph.tensor_of(*id).is_some_and(|tensor| graph.sizes(tensor.shape).is_none())
    };
    graph.ids().find(is_symbolic).map(|id| graph.name(id))
}

/// A call of which nothing is known, and that takes what is no number: a tensor, or what may hold some.
fn may_write(graph: &Graph) -> Option<&str> {
    let ops = Ops::of(graph);
    let is_number = |input: NodeId| {
        matches!(graph.node(input).out, Out::Int(_) | Out::SymInt(_) | Out::SymBool(_) | Out::None)
    };
    let takes_tensors = |id: NodeId| graph.inputs(id).into_iter().any(|input| !is_number(input));
    let is_unknown = |id: &NodeId| ops.call(graph, *id).is_some_and(|info| info.kind == Kind::Unknown);
    graph.ids().find(|id| is_unknown(id) && takes_tensors(*id)).map(|id| graph.name(id))
}

/// How many of the outputs and written inputs of a run hold numbers that are not finite, and how many there are.
fn degenerate(run: &Run) -> (usize, usize) {
    let leaves = |rank: usize| {
        let outputs = run.ranks[rank].outputs.iter().map(|(_, leaf)| leaf);
        outputs.chain(run.ranks[rank].inputs.iter().filter(|input| input.written).map(|input| &input.value))
    };
    let all = (0..run.ranks.len()).flat_map(leaves);
    let (mut bad, mut count) = (0, 0);
    for leaf in all {
        let Leaf::Tensor(tensor) = leaf else { continue };
        count += 1;
        let poison = |i: usize| tensor.poison.get(i).copied().unwrap_or(false);
        let is_bad = |(i, &cell): (usize, &u64)| !is_finite(cell, tensor.dtype) && !poison(i);
        bad += usize::from(tensor.cells.iter().enumerate().any(is_bad));
    }
    (bad, count)
}
