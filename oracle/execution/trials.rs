//! Two graphs executed with numbers, in one trial after another: what an equality is worth.
//!
//! # The rule
//!
//! Numbers convict: a trial in which something differs is a witness. Terms acquit: elements with equal terms are equal.
//! Different terms may be equal values (`a + b` and `b + a`), and equal numbers may be no evidence: an element cannot
//! show a difference where it is NaN or infinite, nor where it is the same whatever the inputs are (saturated, masked,
//! multiplied by 0). So
//!
//! 1. where a proof says that the graphs are equal, one trial is a second opinion;
//! 2. elsewhere terms are asked. Elements with different terms are in [`Doubt`];
//! 3. these are equal by numbers if they are equal in every trial, and each of them *moved*: it had two different finite
//!    values in two trials, or its terms do not depend on inputs;
//! 4. where some have not moved after the last trial, or numbers cannot be run, the question is open, and it is said why;
//! 5. nor are numbers believed that are equal in trials and not at the ends of what dtypes hold: among very small and very
//!    large numbers, and zeros of both signs, where `(x + 1) - 1`, `x * 2 / 2` and `1 / (x + 0)` show what they are;
//! 6. equal numbers are believed where they are sums and products of the same calls (see [`Fingerprints`]), or depend on no
//!    input: what has thresholds (a clamp, a comparison, a mask) may act where no trial came.
//!
//! Even numbers that are believed prove nothing: few values show a rounding or an overflow. So elements that depend on
//! inputs and whose terms differ are not known to be equal. Nor does an equality say anything of memory that nobody is
//! known to have written, or, where sizes are symbolic, of other sizes.
//!
//! # Functions without kernel
//!
//! Numbers draw them, so numbers that differ behind one say nothing of `lerp` and its expansion. They convict where
//! both graphs make the same calls on the way there (operator, constants and sizes, each as often), so that what they
//! are given differs, or what is added and multiplied afterwards; or the same but for constants and operands that both
//! graphs have; or where one graph computes the value, and an input moves it on which the other one does not depend.
//! Elsewhere the difference is no evidence. A function with thresholds of drawn values counts as drawn: it
//! may do nothing to what the operator really gives.
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
use super::domain::Domain;
use super::doubt::{Cells, Doubt, Doubtful, Unmoved};
use super::fingerprint::{Alike, Fingerprints, part};
use super::numerics::Numerics;
use super::program::{Action, Input, Program};
use super::provenance::Provenance;
use super::run::{Failure, Given, Leaf, Options, Run, TensorValue, inputs, run};
use super::smooth::views_by_record;
use crate::graph::{Graph, NodeId, Op, Out, World};
use crate::ops::{Kind, Ops};
use crate::words;
use std::collections::BTreeSet;

/// Trials made at most.
const MOST_TRIALS: u32 = 12;

/// Trials that are made in any case.
const LEAST_TRIALS: u32 = 3;

/// What floats may be beside numbers, with numbers between them.
const SPECIAL: [f64; 5] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.0, -1.0];

/// Trials with inputs at the numbers that calls are given, where graphs have [few elements](FEW_ELEMENTS); elsewhere one
/// has enough of them.
const MARKED_TRIALS: u32 = 16;

/// Elements of all values of a graph up to which they are few.
const FEW_ELEMENTS: u128 = 1 << 12;

/// Places named at most.
const MOST_NAMED: usize = 4;

/// Trials in a row in which nothing else moved, after which no more are made.
const IDLE_TRIALS: u32 = 4;

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
    /// Whether terms are wanted in any case.
    pub both: bool,
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
    /// Elements in doubt that were equal in all trials and never moved: the question is open.
    pub unmoved: Vec<Unmoved>,
    /// Why the question is open although all elements in doubt moved and were equal.
    pub apart: Option<String>,
    /// A place that differs for some numbers at the ends of what its dtype holds, and what these are called.
    pub ends: Option<(Place, &'static str)>,
    /// Places at which numbers differ and that says nothing.
    pub excused: Vec<Excuse>,
    /// Why an equality says nothing, of numbers and terms alike: memory that nobody is known to write, or sizes at one
    /// value each.
    pub reserved: Option<Open>,
    /// Why numbers that are equal and believed are no proof.
    pub unproved: Option<String>,
    /// The runs with terms, where they were asked.
    pub terms: Option<Result<(Run, Run), Stopped>>,
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
    /// Elements were the same whatever the inputs were, or not finite.
    Unmoved,
    /// Numbers at the ends of what a dtype holds differ.
    Ends,
    /// Numbers that are equal in all trials are no evidence.
    NoEvidence,
    /// Numbers are equal and believed, and may still be rounded otherwise.
    NoProof,
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

/// What trials say of elements in doubt.
#[derive(Debug)]
enum Found {
    /// A trial shows a difference: the runs before and after.
    Witness(Box<(Run, Run)>),
    /// All are equal in so many trials, and could have differed.
    Equal(u32),
    /// All are equal in so many trials, but these never moved.
    Unmoved(u32, Vec<Unmoved>),
    /// A trial could not be run.
    Stopped(Stopped),
}

impl Stopped {
    /// Whether our limits are why, and no fault of the graph.
    pub fn is_ours(&self) -> bool {
        let (Stopped::Before(failure) | Stopped::After(failure)) = self;
        matches!(failure, Failure::Refused { .. } | Failure::TooLarge { .. } | Failure::World { .. })
    }
}

impl Answers {
    /// The numbers of one trial, of which nothing else is known.
    pub(super) fn of(numbers: Result<(Run, Run), Stopped>) -> Answers {
        Answers {
            numbers,
            trials: 1,
            unmoved: Vec::new(),
            apart: None,
            ends: None,
            excused: Vec::new(),
            reserved: None,
            unproved: None,
            terms: None,
        }
    }

    /// Whether no number differs.
    fn is_equal(&self) -> bool {
        self.numbers.as_ref().is_ok_and(|(before, after)| compare(before, after).is_empty())
    }

    /// Why a difference of numbers says nothing.
    fn excuse(&self, difference: &Difference) -> Option<&Excuse> {
        let mut excused = self.excused.iter();
        let of = excused.find(|excuse| (excuse.rank, &excuse.place) == (difference.rank, &difference.place));
        of.filter(|_| matches!(difference.aspect, Aspect::Value { .. }))
    }

    /// The differences of a run of `domain` that count, and why one does not where some do not.
    pub fn counted(&self, domain: &str, all: Vec<Difference>) -> (Vec<Difference>, Option<Open>) {
        if domain != "concrete values" {
            return (all, None);
        }
        let why = all.iter().find_map(|difference| self.excuse(difference)).map(|excuse| Open {
            kind: if excuse.by_rounding { OpenKind::Rounding } else { OpenKind::Drawn },
            why: excuse.why.clone(),
        });
        (all.into_iter().filter(|difference| self.excuse(difference).is_none()).collect(), why)
    }

    /// Why the question is open although all numbers are equal; `name` names a place.
    pub fn doubt(&self, name: impl Fn(&Place) -> String) -> Option<Open> {
        let mut all: Vec<String> = Vec::with_capacity(self.unmoved.len().min(MOST_NAMED + 1));
        for Unmoved { place, elements: (unmoved, of), .. } in self.unmoved.iter().take(MOST_NAMED) {
            all.push(format!("{unmoved} of {of} elements of {}", name(place)));
        }
        if self.unmoved.len() > MOST_NAMED {
            all.push(format!("{} more", self.unmoved.len() - MOST_NAMED));
        }
        let why = format!(
            "provenance differs, and concrete values that are equal in {} trials say nothing of {}, which are the same whatever the \
             inputs are, or not finite",
            self.trials,
            all.join(", ")
        );
        if let Some(why) = &self.reserved {
            return Some(why.clone());
        }
        let open = |kind| move |why| Open { kind, why };
        if !self.unmoved.is_empty() {
            return Some(open(OpenKind::Unmoved)(why));
        }
        let at_the_ends = |(place, numbers): &(Place, &str)| {
            format!("provenance differs, and {} differs for {numbers} numbers", name(place))
        };
        let ends = self.ends.as_ref().map(at_the_ends).map(open(OpenKind::Ends));
        ends.or_else(|| self.apart.clone().map(open(OpenKind::NoEvidence)))
            .or_else(|| self.unproved.clone().map(open(OpenKind::NoProof)))
    }

    /// What was executed and is equal.
    pub fn words(&self, run: &Run) -> String {
        let first = run.ranks.first();
        let is_numbers = run.domain == "concrete values";
        let trials =
            if is_numbers && self.trials > 1 { format!(" in {} trials", self.trials) } else { String::new() };
        let degenerate = match degenerate(run) {
            (bad, of) if is_numbers && self.trials == 1 && bad > 0 => {
                format!("; {bad} of {of} hold numbers that are not finite, whose equality says nothing")
            }
            _ => String::new(),
        };
        let equal = words::counts(&[
            (first.map_or(0, |rank| rank.outputs.len()), "output"),
            (first.map_or(0, |rank| rank.inputs.len()), "input"),
            (first.map_or(0, |rank| rank.effects.len()), "effect"),
        ]);
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
            let reason = "an index that it gives is outside its dimension with the numbers that were tried"
                .to_string();
            return Err(Stopped::Before(Failure::Refused { rank, node, reason }));
        }
        Ok((before, after))
    }

    /// Runs both with numbers, and with terms as far as that is needed (see the module).
    pub fn ask(&self, question: Question) -> Answers {
        let mut answers = Answers::of(self.shown(&Concrete::of_trial(0)));
        if question.open {
            answers.reserved = self.reserved(&answers.numbers);
        }
        if question.agree
            && answers.is_equal()
            && let Ok(second) = self.shown(&Concrete::of_trial(1))
            && !compare(&second.0, &second.1).is_empty()
        {
            (answers.numbers, answers.trials) = (Ok(second), 2);
        }
        // A proof speaks of one rank's graph.
        let unproved = |(_, after): &(Run, Run)| self.after.len() > 1 && degenerate(after).0 > 0;
        let open = question.open || answers.numbers.as_ref().is_ok_and(unproved);
        if !question.both && answers.numbers.is_ok() && !(open && answers.is_equal()) {
            answers.excused = self.excused(&answers.numbers, question);
            return answers;
        }
        let terms = self.run(&Provenance::default());
        let found = match (&answers.numbers, &terms) {
            _ if !open || !answers.is_equal() => None,
            (Ok((first, _)), Ok((before, after))) => match compare(before, after).is_empty() {
                true => None,
                false => Some(self.resolve(first, Doubt::of_terms(before, after))),
            },
            (Ok((first, _)), Err(stopped)) if stopped.is_ours() => {
                Some(self.resolve(first, Doubt::of_everything(first)))
            }
            _ => None,
        };
        if let Some(Found::Equal(trials)) = found {
            answers.apart = self.apart(trials);
            if let (None, Ok((before, after))) = (&answers.apart, &terms) {
                answers.ends = self.part_at_the_ends(before, after);
                if answers.ends.is_none() {
                    answers.unproved = self.unproved(trials, (before, after));
                }
            }
        }
        answers.terms = Some(terms);
        match found {
            Some(Found::Witness(runs)) => answers.numbers = Ok(*runs),
            Some(Found::Equal(trials)) => answers.trials = trials,
            Some(Found::Unmoved(trials, unmoved)) => (answers.trials, answers.unmoved) = (trials, unmoved),
            Some(Found::Stopped(stopped)) => answers.numbers = Err(stopped),
            None => {}
        }
        answers.excused = self.excused(&answers.numbers, question);
        answers
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

    /// Why equal numbers are no proof: elements whose terms differ and that depend on inputs.
    fn unproved(&self, trials: u32, (before, after): (&Run, &Run)) -> Option<String> {
        let mut doubt = Doubt::of_terms(before, after);
        let is_in_doubt = |one: &Difference| {
            doubt.places.iter().any(|at| (at.rank, &at.place) == (one.rank as usize, &one.place))
        };
        if compare(before, after).iter().any(|one| !is_in_doubt(one)) {
            let why = format!(
                "provenance differs in what is asserted or no tensor, of which numbers that are equal in {trials} trials say \
                 nothing"
            );
            return Some(why);
        }
        if let Ok(others) = self.run(&Provenance { seed: 1 }) {
            doubt.settle_constants((before, &others.0), (after, &others.1));
        }
        (doubt.open() > 0).then(|| {
            format!(
                "provenance differs, and concrete values that are equal in {trials} trials are no proof: the same sums and products may \
                 be rounded or overflow otherwise"
            )
        })
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
        let mut doubt = Doubt::where_differ(before, Some(after));
        doubt.keep_where_differ(&one, &other);
        let why = "the concrete values differ by roundings alone: they are the same sums and products of the same calls";
        roundings(differences, why, |one| {
            let of = (one.rank as usize, &one.place);
            let mut here = doubt.places.iter().filter(|place| (place.rank, &place.place) == of);
            here.next().is_some_and(|place| place.open.is_empty())
        })
    }

    /// Why elements whose terms differ may differ although they are equal in all trials: they are not the same sums and
    /// products of the same calls.
    fn apart(&self, trials: u32) -> Option<String> {
        let found = self.likeness(Numerics::Reassociation, false, f64::INFINITY);
        let why = match found.map(|likeness| likeness.alike) {
            Some(Alike::Same) => return None,
            Some(Alike::Open(why)) => why,
            Some(Alike::Apart) => "they are not the same sums and products".to_string(),
            None => "they have no fingerprints".to_string(),
        };
        Some(format!(
            "provenance differs, and concrete values that are equal in {trials} trials are no evidence: {why}"
        ))
    }

    /// Where elements whose terms differ are not bit for bit the same for numbers at the ends of what dtypes hold.
    /// Where both are not finite, one of them no number, it says nothing.
    fn part_at_the_ends(&self, before: &Run, after: &Run) -> Option<(Place, &'static str)> {
        Concrete::at_the_ends().into_iter().find_map(|(numbers, what)| {
            let (one, other) = self.run(&numbers).ok()?;
            let mut doubt = Doubt::where_differ(&one, Some(&other));
            doubt.keep_where_differ(before, after);
            let differs = |doubtful: &&Doubtful| {
                let cells = |run| Cells::at(run, doubtful);
                let (one, other) = (cells(&one), cells(&other));
                let kind = |side: &Option<Cells>, i| side.as_ref().map_or((true, false), |side| side.kind(i));
                doubtful.open.iter().any(|&(i, _)| match (kind(&one, i), kind(&other, i)) {
                    ((false, is_nan), (false, is_other_nan)) => !is_nan && !is_other_nan,
                    _ => true,
                })
            };
            doubt.places.iter().find(differs).map(|doubtful| (doubtful.place.clone(), what))
        })
    }

    /// Makes trials after the first one, of which `first` is the run before, until everything in doubt has moved.
    fn resolve(&self, first: &Run, mut doubt: Doubt<'_>) -> Found {
        doubt.watch(first);
        let (mut trials, mut idle) = (1, 0);
        while trials < LEAST_TRIALS || (doubt.open() > 0 && trials < MOST_TRIALS && idle < IDLE_TRIALS) {
            let (before, after) = match self.shown(&Concrete::of_trial(trials)) {
                Ok(runs) => runs,
                Err(stopped) => return Found::Stopped(stopped),
            };
            trials += 1;
            if !compare(&before, &after).is_empty() {
                return Found::Witness(Box::new((before, after)));
            }
            let open = doubt.open();
            doubt.watch(&before);
            idle = if doubt.open() < open { 0 } else { idle + 1 };
        }
        let is_small = self.before.iter().all(|program| program.recorded_elements <= FEW_ELEMENTS);
        let times = if is_small { MARKED_TRIALS } else { 1 };
        for (marks, times) in [(self.marks(), times), (SPECIAL.to_vec(), 1)] {
            let options = Options { marks, ..self.options.clone() };
            let marked = Pair { options: &options, ..*self };
            for more in 0..times {
                if let Ok((before, after)) = marked.shown(&Concrete::of_trial(trials + more))
                    && !compare(&before, &after).is_empty()
                    && part(&before, &after)
                {
                    return Found::Witness(Box::new((before, after)));
                }
            }
        }
        if doubt.open() > 0
            && let Some((before, after)) = doubt.terms
            && let Ok(others) = self.run(&Provenance { seed: 1 })
        {
            doubt.settle_constants((before, &others.0), (after, &others.1));
        }
        match doubt.open() {
            0 => Found::Equal(trials),
            _ => Found::Unmoved(trials, doubt.unmoved()),
        }
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

/// A call of which nothing is known, and that takes a tensor.
fn may_write(graph: &Graph) -> Option<&str> {
    let ops = Ops::of(graph);
    let takes_tensors =
        |id: NodeId| graph.inputs(id).into_iter().any(|input| graph.tensor_of(input).is_some());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(before: &str, after: &str) -> Found {
        let graph = |text: &str| crate::format::text::parse(text.as_bytes()).unwrap().graph;
        let graphs: [Graph; 2] = [graph(before), graph(after)];
        let ops = [Ops::of(&graphs[0]), Ops::of(&graphs[1])];
        let world = graphs[0].world.assume_mesh().unwrap();
        let program = |i: usize| Program::new(&graphs[i], &ops[i], &world).unwrap();
        let (one, other, options) = ([program(0)], [program(1)], Options::default());
        let pair = Pair { before: &one, after: &other, world: &world, options: &options };
        let (first, same) = pair.run(&Concrete::of_trial(0)).unwrap();
        assert_eq!(compare(&first, &same), []);
        let (before, after) = pair.run(&Provenance::default()).unwrap();
        pair.resolve(&first, Doubt::of_terms(&before, &after))
    }

    #[test]
    fn what_could_have_differed_is_equal() {
        let text = |sum: &str| format!("x = input : f32[4]\ny = input : f32[4]\nz = {sum}\noutput (z)\n");
        let found = resolve(&text("add(x, y)"), &text("add(y, x)"));
        assert!(matches!(found, Found::Equal(LEAST_TRIALS)), "{found:?}");
    }

    #[test]
    fn what_overflows_with_large_numbers_is_told_apart_by_small_ones() {
        let text =
            |last: &str| format!("x = input : f32[4]\ny = mul(x, x)\nw = exp(y)\nz = {last}\noutput (z)\n");
        let found = resolve(&text("clone(w)"), &text("flip(w, [0])"));
        assert!(matches!(found, Found::Witness(..)), "{found:?}");
    }

    #[test]
    fn what_is_the_same_for_all_inputs_says_nothing() {
        let text = |flip: &str| {
            format!(
                "x = input : f32[4]\ninf = full([4], inf)\ny = add(x, inf)\nw = abs(y)\n{flip}output (z)\n"
            )
        };
        let found = resolve(&text("z = clone(w)\n"), &text("z = flip(w, [0])\n"));
        let Found::Unmoved(_, unmoved) = found else { panic!("{found:?}") };
        assert_eq!(unmoved, [Unmoved { place: Place::Output(vec![0]), elements: (4, 4) }]);
    }

    #[test]
    fn what_depends_on_no_input_need_not_move() {
        let text =
            |two: &str| format!("x = input : f32[4]\none = full([4], 1.0)\ny = {two}\noutput (x, y)\n");
        let found = resolve(&text("add(one, one)"), &text("mul(one, 2.0)"));
        assert!(matches!(found, Found::Equal(_)), "{found:?}");
    }
}
