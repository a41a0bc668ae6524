//! Who is judged: anything that turns a case into an outcome, and what it gives.

use super::Without;
use crate::case::{Case, PassConfig, TracedAgain};
use crate::graph::Graph;
use crate::ops::shape::complete;
use crate::rules::memory::Claim;
use crate::rules::worker::Failure;
use crate::rules::{Code, PassKind, Reason};
use crate::semantics::{Executed, ExecutionInputs};

/// What a candidate can do. "Cannot" is an answer, not a failure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// The passes it implements.
    pub passes: Vec<PassKind>,
    /// Whether it bakes the rank into its graph, and so must be asked for each rank's.
    pub bakes_rank: bool,
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

/// Where and when a candidate is asked to cut a joint graph: nothing of it should matter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// The global rank.
    pub rank: u32,
    /// How often it was asked for the same graph before.
    pub turn: u32,
}

/// An implementation of one or more passes.
pub trait Candidate: Sync {
    /// Its name on the command line and in expectations.
    fn name(&self) -> &str;

    /// What is run, where the name and the version of this program do not say that: a command, and its limits.
    fn runs(&self) -> Option<String> {
        None
    }

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Whether it keeps every promise of the selection that it is asked for. Of others only the promises that the
    /// options state are demanded.
    fn keeps_promises(&self) -> bool {
        false
    }

    /// The pass with what it promises by itself, as options of the judge. What the pass states already stays.
    fn promised(&self, pass: &PassConfig) -> PassConfig {
        pass.clone()
    }

    /// Whether it may decline any case: it cannot take every graph, and says so.
    fn may_decline(&self) -> bool {
        false
    }

    /// Whether it understands the options of a pass; the error names the option and what exists.
    fn check_options(&self, pass: &PassConfig) -> Result<(), String> {
        let _ = pass;
        Ok(())
    }

    /// A generated case made one that it takes: options that it does not know have values that it does. `number` is
    /// that of the case in its campaign, and decides.
    fn narrowed(&self, case: Case, number: u64) -> Case {
        let _ = number;
        case
    }

    /// Whether it takes an option of a pass with this value.
    fn takes_option(&self, pass: PassKind, key: &str, value: &str) -> bool {
        let _ = (pass, key, value);
        true
    }

    /// The largest world that it takes for a pass; `None`: any.
    fn max_ranks(&self, pass: PassKind) -> Option<u32> {
        let _ = pass;
        None
    }

    /// What it does not take in the graph for a pass, so that it need not be made.
    fn without(&self, pass: PassKind) -> Vec<Without> {
        let _ = pass;
        Vec::new()
    }

    /// A program that shows a finding by itself, without graph-oracle.
    fn reproduction(&self, finding: &Reproduce) -> Result<String, Refusal> {
        let _ = finding;
        Err(Refusal::of(Code::NotImplemented, format!("{} makes no reproductions", self.name())))
    }

    /// Forgets what it may keep between requests, where it can: whatever it is asked next is asked first.
    fn renew(&self) {}

    /// How it ran so far, in lines for people.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Runs `pass` on `graph` as global rank `rank`.
    fn run(&self, graph: &Graph, pass: &PassConfig, rank: u32) -> Result<Outcome, Refusal>;

    /// Cuts a joint graph as `pass` says: the forward and the backward graph.
    fn partition(&self, joint: &Graph, pass: &PassConfig, place: Place) -> Result<(Graph, Graph), Refusal> {
        let _ = (joint, pass, place);
        Err(Refusal::of(Code::NotImplemented, format!("{} cuts no joint graphs", self.name())))
    }

    /// Cuts a joint graph at each of several places: the parts for each, or a single pair where they are known to be the
    /// same everywhere.
    fn partition_at(
        &self,
        joint: &Graph,
        pass: &PassConfig,
        places: &[Place],
    ) -> Result<Vec<(Graph, Graph)>, Refusal> {
        places.iter().take(1).map(|&place| self.partition(joint, pass, place)).collect()
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

    /// What it states about the memory of a graph.
    fn claim(&self, graph: &Graph, pass: &PassConfig) -> Result<Claim, Refusal> {
        let _ = (graph, pass);
        Err(Refusal::of(Code::NotImplemented, format!("{} states nothing about memory", self.name())))
    }

    /// Executes a graph as all ranks at once, on the given tensors of the placeholders of each rank.
    fn execute(
        &self,
        graph: &Graph,
        pass: &PassConfig,
        inputs: &[ExecutionInputs],
    ) -> Result<Executed, Refusal> {
        let _ = (graph, pass, inputs);
        Err(Refusal::of(Code::NotImplemented, format!("{} executes no graphs", self.name())))
    }

    /// Runs `pass` on `graph` as each of several global ranks: an outcome for each, or a single one where it is
    /// known to be the same on all of them.
    fn run_on(&self, graph: &Graph, pass: &PassConfig, ranks: &[u32]) -> Result<Vec<Outcome>, Refusal> {
        ranks.iter().map(|&rank| self.run(graph, pass, rank)).collect()
    }
}
