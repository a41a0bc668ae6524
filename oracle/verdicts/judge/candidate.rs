//! Who is judged: anything that turns a case into an outcome, and what it gives.

use super::Offer;
use super::options::{check_options, has_option};
use crate::case::{PassConfig, TracedAgain};
use crate::graph::Graph;
use crate::ops::shape::{complete, complete_inputs};
use crate::rules::memory::Claim;
use crate::rules::worker::Failure;
use crate::rules::{Code, PassKind, Reason};
use crate::semantics::{Executed, ExecutionInputs};
use std::collections::BTreeMap;

/// What a candidate can do. "Cannot" is an answer, not a failure.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    /// The passes it implements.
    pub passes: Vec<PassKind>,
    /// Whether it bakes the rank into its graph, and so must be asked for each rank's.
    pub bakes_rank: bool,
    /// Whether it keeps every promise of the selection that it is asked for. Of others only the promises that the
    /// options state are demanded.
    pub keeps_promises: bool,
    /// Whether it may decline any case: it cannot take every graph, and says so.
    pub may_decline: bool,
    /// What is run, where the name and the version of this program do not say that: a command, and its limits.
    pub command: Option<String>,
}

/// Where an implementation is, for whoever wants to run it again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// In this program, under its name.
    Here,
    /// A worker: a command for a shell.
    Command(String),
    /// A function of Python: FILE.py:FUNCTION or MODULE:FUNCTION.
    Function(String),
}

impl Capabilities {
    /// These passes, and nothing beside them.
    pub fn of(passes: &[PassKind]) -> Capabilities {
        Capabilities { passes: passes.to_vec(), ..Capabilities::default() }
    }
}

/// What a candidate gives for one case on one rank.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The graph before its topological repair, where the candidate shows it.
    pub unrepaired: Option<Graph>,
    /// The final graph.
    pub repaired: Graph,
}

impl Outcome {
    /// The same with results for calls that record none, where their operators' rules give them; `None` if that adds
    /// nothing.
    pub fn completed(&self) -> Option<Outcome> {
        let unrepaired = self.unrepaired.as_ref().and_then(complete);
        let repaired = complete(&self.repaired);
        (unrepaired.is_some() || repaired.is_some()).then(|| Outcome {
            unrepaired: unrepaired.or_else(|| self.unrepaired.clone()),
            repaired: repaired.unwrap_or_else(|| self.repaired.clone()),
        })
    }

    /// The same, with the records of inputs taken from the graph before the pass.
    pub(super) fn completed_from(&self, before: &Graph) -> Option<Outcome> {
        match complete_inputs(&self.repaired, before) {
            Some(repaired) => {
                let known = Outcome { unrepaired: self.unrepaired.clone(), repaired };
                Some(known.completed().unwrap_or(known))
            }
            None => self.completed(),
        }
    }
}

/// Why a candidate gives no outcome.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Its reason.
    pub reason: Reason,
    /// The graph that it leaves behind, where that can be seen: it must be the one that it was given.
    pub left_behind: Option<Box<Graph>>,
    /// How it failed, where that is no refusal but a finding.
    pub failure: Option<Box<Failure>>,
}

impl Refusal {
    /// A refusal by a candidate that cannot touch its input, in words of its own.
    pub fn new(reason: impl Into<String>) -> Refusal {
        Refusal::of(Code::ByCandidate, reason)
    }

    /// A refusal of this kind by a candidate that cannot touch its input.
    pub fn of(code: Code, reason: impl Into<String>) -> Refusal {
        Refusal { reason: code.because(reason), left_behind: None, failure: None }
    }

    /// No refusal: the candidate failed.
    pub fn failed(failure: Failure) -> Refusal {
        Refusal {
            reason: Code::ByCandidate.because(failure.title.clone()),
            left_behind: None,
            failure: Some(Box::new(failure)),
        }
    }
}

/// The file of a reproduction that is run.
pub const SCRIPT: &str = "repro.py";

/// What a reproduction is to show.
pub struct Reproduce<'a> {
    /// The graph before the pass.
    pub graph: &'a Graph,
    /// The pass.
    pub pass: &'a PassConfig,
    /// The global rank that it ran as.
    pub rank: u32,
    /// The rule that broke.
    pub rule: &'a str,
    /// One line about how.
    pub title: &'a str,
}

/// Where and when a candidate is asked: nothing of it should matter, but for the rank where that is baked in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// The global rank.
    pub rank: u32,
    /// How often it was asked for the same graph before.
    pub turn: u32,
}

/// What is requested of a candidate: a pass over a graph.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The graph before the pass.
    pub graph: &'a Graph,
    /// The pass.
    pub pass: &'a PassConfig,
    /// Where: an answer for each place, or a single one where it is known to be the same at all of them.
    pub places: &'a [Place],
    /// The tensors of the placeholders of each rank, where the graph is executed.
    pub inputs: &'a [ExecutionInputs],
}

impl Request<'_> {
    /// An answer at each place.
    ///
    /// # Errors
    /// The first refusal.
    pub fn at_each(&self, answer: impl Fn(Place) -> Result<Answer, Refusal>) -> Result<Vec<Answer>, Refusal> {
        self.places.iter().map(|&place| answer(place)).collect()
    }

    /// An answer at the first place: it is the same elsewhere, or others are not asked for.
    ///
    /// # Errors
    /// The refusal.
    pub fn once(&self, answer: impl Fn(Place) -> Result<Answer, Refusal>) -> Result<Vec<Answer>, Refusal> {
        Request { places: self.places.get(..1).unwrap_or_default(), ..*self }.at_each(answer)
    }
}

/// What a candidate gives at one place; [`Gives`](crate::family::Gives) says which of these a pass asks for.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A graph.
    Graph(Box<Outcome>),
    /// The forward and the backward graph of a joint one.
    Parts(Box<(Graph, Graph)>),
    /// What it states about the memory of the graph.
    Claim(Box<Claim>),
    /// What executing the graph gave, on all ranks at once.
    Executed(Executed),
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Answer {
        Answer::Graph(Box::new(outcome))
    }
}

impl From<Graph> for Answer {
    fn from(repaired: Graph) -> Answer {
        Outcome { unrepaired: None, repaired }.into()
    }
}

/// An implementation of one or more passes.
pub trait Candidate: Sync {
    /// Its name on the command line and in expectations.
    fn name(&self) -> &str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Where it is.
    fn origin(&self) -> Origin {
        Origin::Here
    }

    /// Runs a pass on a graph.
    ///
    /// # Errors
    /// It declines, or fails.
    fn run(&self, request: &Request) -> Result<Vec<Answer>, Refusal>;

    /// On which terms it takes a pass, where it does not take all that there is.
    fn offer(&self, pass: PassKind) -> Option<&Offer> {
        let _ = pass;
        None
    }

    /// A program that shows a finding by itself, without graph-oracle: files by name, [`SCRIPT`] and what it shares with
    /// others, which lies in its folder or in the one above.
    fn reproduction(&self, finding: &Reproduce) -> Result<BTreeMap<String, String>, Refusal> {
        let _ = finding;
        Err(Refusal::of(Code::NotImplemented, format!("{} makes no reproductions", self.name())))
    }

    /// Writes on the forward graph what it saves, and traces both parts again as one joint graph for a second
    /// partition. `forward_outputs` of forward's outputs are the program's. `None`: as the reference does.
    fn trace_again(
        &self,
        joint: &Graph,
        forward: &Graph,
        backward: &Graph,
        forward_outputs: usize,
    ) -> Option<Result<TracedAgain, Refusal>> {
        let _ = (joint, forward, backward, forward_outputs);
        None
    }

    /// Forgets what it may keep between requests, where it can: whatever it is asked next is asked first.
    fn renew(&self) {}

    /// How it ran so far, in lines for people.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Requests whose answer is of one kind, of any candidate. It may decline each of them, or fail.
pub trait CandidateExt: Candidate {
    /// The graph that it makes of another one, as global rank `rank`.
    fn rewrite(&self, graph: &Graph, pass: &PassConfig, rank: u32) -> Result<Outcome, Refusal> {
        first(self, self.rewrite_on(graph, pass, &[rank])?)
    }

    /// The same as each of several global ranks: an outcome for each, or a single one where it is known to be the same
    /// on all of them.
    fn rewrite_on(&self, graph: &Graph, pass: &PassConfig, ranks: &[u32]) -> Result<Vec<Outcome>, Refusal> {
        let places: Vec<Place> = ranks.iter().map(|&rank| Place { rank, turn: 0 }).collect();
        let of = |answer| if let Answer::Graph(outcome) = answer { Some(*outcome) } else { None };
        answers(self, &Request { graph, pass, places: &places, inputs: &[] }, of)
    }

    /// A joint graph cut as `pass` says: the forward and the backward graph.
    fn partition(&self, joint: &Graph, pass: &PassConfig, place: Place) -> Result<(Graph, Graph), Refusal> {
        first(self, self.partition_at(joint, pass, &[place])?)
    }

    /// The same at each of several places: the parts for each, or a single pair where the others are not known.
    fn partition_at(
        &self,
        joint: &Graph,
        pass: &PassConfig,
        places: &[Place],
    ) -> Result<Vec<(Graph, Graph)>, Refusal> {
        let of = |answer| if let Answer::Parts(parts) = answer { Some(*parts) } else { None };
        answers(self, &Request { graph: joint, pass, places, inputs: &[] }, of)
    }

    /// What it states about the memory of a graph.
    fn claim(&self, graph: &Graph, pass: &PassConfig) -> Result<Claim, Refusal> {
        let of = |answer| if let Answer::Claim(claim) = answer { Some(*claim) } else { None };
        let request = Request { graph, pass, places: &[Place::default()], inputs: &[] };
        first(self, answers(self, &request, of)?)
    }

    /// What executing a graph gives as all ranks at once, on the given tensors of the placeholders of each rank.
    fn execute(
        &self,
        graph: &Graph,
        pass: &PassConfig,
        inputs: &[ExecutionInputs],
    ) -> Result<Executed, Refusal> {
        let of = |answer| if let Answer::Executed(executed) = answer { Some(executed) } else { None };
        let request = Request { graph, pass, places: &[Place::default()], inputs };
        first(self, answers(self, &request, of)?)
    }

    /// The pass with what the candidate promises by itself, as options of the judge. What the pass states already
    /// stays.
    fn promised(&self, pass: &PassConfig) -> PassConfig {
        match offer(self, pass) {
            Some(offer) => offer.promised(pass.clone()),
            None => pass.clone(),
        }
    }

    /// The pass without the options that are the candidate's own: those that it lists, and the pass here does not have.
    fn known(&self, pass: &PassConfig) -> PassConfig {
        let mut known = pass.clone();
        if let Some(offer) = offer(self, pass) {
            known.options.retain(|(key, _)| !offer.options.contains_key(key) || has_option(&pass.name, key));
        }
        known
    }

    /// Whether it understands the options of a pass: those that it lists are its own business, others are those that
    /// there are.
    ///
    /// # Errors
    /// The option, and what exists.
    fn check_options(&self, pass: &PassConfig) -> Result<(), String> {
        match offer(self, pass) {
            Some(offer) => check_options(&offer.of_others(pass)),
            None => check_options(pass),
        }
    }
}

impl<C: Candidate + ?Sized> CandidateExt for C {}

fn offer<'c, C: Candidate + ?Sized>(candidate: &'c C, pass: &PassConfig) -> Option<&'c Offer> {
    candidate.offer(PassKind::parse(&pass.name)?)
}

/// The answers to a request, all of the kind that is wanted.
fn answers<C: Candidate + ?Sized, T>(
    candidate: &C,
    request: &Request,
    of: impl Fn(Answer) -> Option<T>,
) -> Result<Vec<T>, Refusal> {
    let wanted = |answer| {
        let why = || format!("{} gives something else for {}", candidate.name(), request.pass.name);
        of(answer).ok_or_else(|| Refusal::of(Code::NotImplemented, why()))
    };
    candidate.run(request)?.into_iter().map(wanted).collect()
}

fn first<C: Candidate + ?Sized, T>(candidate: &C, answers: Vec<T>) -> Result<T, Refusal> {
    let none = || Refusal::of(Code::NoOutcome, format!("{} gave no outcome", candidate.name()));
    answers.into_iter().next().ok_or_else(none)
}
