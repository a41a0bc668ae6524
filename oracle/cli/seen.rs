//! The graphs of a check, as its page shows them: what was given or recorded, or what the candidate answered.
//!
//! The judge does not hand out what a candidate gave, so the candidate is listened to while it is judged. What it is
//! asked again is not kept.

use crate::candidates::{Candidate, Outcome};
use crate::case::{Case, TracedAgain};
use crate::graph::Graph;
use crate::judge::candidate::{Answer, Capabilities, Origin, Refusal, Reproduce, Request};
use crate::judge::partition::StageGraphs;
use crate::judge::{Judgement, Offer, Verdict, recorded_outcomes};
use crate::rules::PassKind;
use pages::{Shown, View};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// What a candidate answered, by rank: the first answer for each.
#[derive(Default)]
pub(super) struct Answers(Mutex<Vec<(u32, Answer)>>);

impl Answers {
    fn keep(&self, request: &Request, answers: &[Answer]) {
        let Ok(mut kept) = self.0.lock() else { return };
        // A second round, on another graph or in another turn, begins with a rank that was there.
        let is_first = |rank: u32| kept.iter().all(|(known, _)| *known != rank);
        if !request.places.iter().all(|place| place.turn > 0 || is_first(place.rank)) {
            return;
        }
        for (place, answer) in request.places.iter().zip(answers).filter(|(place, _)| place.turn == 0) {
            kept.push((place.rank, answer.clone()));
        }
    }
}

/// A candidate whose answers are kept.
pub(super) struct Heard<'a> {
    pub(super) candidate: &'a dyn Candidate,
    pub(super) answers: &'a Answers,
}

impl Candidate for Heard<'_> {
    fn name(&self) -> &str {
        self.candidate.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.candidate.capabilities()
    }

    fn origin(&self) -> Origin {
        self.candidate.origin()
    }

    fn run(&self, request: &Request) -> Result<Vec<Answer>, Refusal> {
        let answers = self.candidate.run(request)?;
        self.answers.keep(request, &answers);
        Ok(answers)
    }

    fn offer(&self, pass: PassKind) -> Option<&Offer> {
        self.candidate.offer(pass)
    }

    fn reproduction(&self, finding: &Reproduce) -> Result<BTreeMap<String, String>, Refusal> {
        self.candidate.reproduction(finding)
    }

    fn trace_again(
        &self,
        joint: &Graph,
        forward: &Graph,
        backward: &Graph,
        forward_outputs: usize,
    ) -> Option<Result<TracedAgain, Refusal>> {
        self.candidate.trace_again(joint, forward, backward, forward_outputs)
    }

    fn renew(&self) {
        self.candidate.renew();
    }

    fn notes(&self) -> Vec<String> {
        self.candidate.notes()
    }
}

/// The graphs after a pass, of one rank or of all.
struct After {
    rank: Option<u32>,
    stage: &'static str,
    graphs: Vec<(&'static str, Graph)>,
}

/// What stands on the page of a check.
pub(super) struct Seen {
    case: Case,
    after: Vec<After>,
}

impl Seen {
    /// The graph before, and nothing after it yet.
    pub(super) fn new(case: &Case) -> Seen {
        Seen { case: case.clone(), after: Vec::new() }
    }

    /// What was given: of a partition two graphs for each rank.
    pub(super) fn given(&mut self, given: &[(Option<u32>, Outcome)], are_parts: bool) {
        if !are_parts {
            return given.iter().for_each(|(rank, outcome)| self.outcome(*rank, outcome));
        }
        for (number, pair) in given.chunks(2).enumerate() {
            let rank = (given.len() > 2).then_some(number as u32);
            let graphs = ["forward", "backward"].into_iter().zip(pair);
            let graphs = graphs.map(|(name, (_, part))| (name, part.repaired.clone())).collect();
            self.after.push(After { rank, stage: "", graphs });
        }
    }

    /// What the case records.
    pub(super) fn recorded(&mut self) {
        let outcomes = self.case.outcome.as_ref().map_or(Vec::new(), recorded_outcomes);
        outcomes.iter().for_each(|(rank, outcome)| self.outcome(*rank, outcome));
        if let Some(parts) = &self.case.parts {
            let graphs = vec![("forward", parts.forward.clone()), ("backward", parts.backward.clone())];
            self.after.push(After { rank: None, stage: "", graphs });
        }
    }

    /// What the candidate answered.
    pub(super) fn answered(&mut self, answers: Answers) {
        let answers = answers.0.into_inner().unwrap_or_default();
        let is_one = answers.len() == 1;
        for (rank, answer) in answers {
            let rank = Some(rank).filter(|_| !is_one);
            match answer {
                Answer::Graph(outcome) => self.outcome(rank, &outcome),
                Answer::Parts(parts) => {
                    let graphs = vec![("forward", parts.0), ("backward", parts.1)];
                    self.after.push(After { rank, stage: "", graphs });
                }
                Answer::Claim(_) | Answer::Executed(_) => {}
            }
        }
    }

    fn outcome(&mut self, rank: Option<u32>, outcome: &Outcome) {
        let graphs = vec![("after", outcome.repaired.clone())];
        self.after.push(After { rank, stage: "", graphs });
        if let Some(unrepaired) = &outcome.unrepaired {
            let graphs = vec![("after, not yet repaired", unrepaired.clone())];
            self.after.push(After { rank, stage: "before its repair", graphs });
        }
    }

    /// The graphs side by side; ranks with equal ones together, and those first that the first finding is about.
    pub(super) fn views(&self, judgement: &Judgement) -> Vec<View<'_>> {
        let mut views: Vec<View> = Vec::new();
        for after in &self.after {
            let before = self.before(after.rank);
            let is_same = |view: &&mut View| {
                let mut pairs = view.after.iter().zip(&after.graphs);
                view.stage == after.stage
                    && view.before.iter().all(|shown| std::ptr::eq(shown.graph, before))
                    && view.after.len() == after.graphs.len()
                    && pairs.all(|(shown, (_, graph))| shown.graph.difference(graph).is_none())
            };
            match views.iter_mut().find(is_same) {
                Some(view) => view.ranks.extend(after.rank),
                None => views.push(View {
                    ranks: after.rank.into_iter().collect(),
                    stage: after.stage,
                    before: vec![Shown { title: "before".to_string(), graph: before }],
                    after: after.graphs.iter().map(|(title, graph)| shown(title, graph)).collect(),
                }),
            }
        }
        if views.is_empty() {
            let before = vec![shown("before", &self.case.graph)];
            views.push(View { ranks: Vec::new(), stage: "", before, after: Vec::new() });
        }
        let first = match &judgement.verdict {
            Verdict::Violated(findings) => findings.first().and_then(|finding| finding.ranks.first()),
            _ => None,
        };
        if let Some(rank) = first {
            views.sort_by_key(|view| !view.ranks.contains(rank));
        }
        views
    }

    /// The graph before, as a rank runs it.
    fn before(&self, rank: Option<u32>) -> &Graph {
        let of_rank =
            self.case.programs.iter().find(|program| rank.is_some_and(|rank| program.ranks.contains(&rank)));
        of_rank.map_or(&self.case.graph, |program| &program.graph)
    }
}

/// The graphs of a stage side by side.
pub(super) fn stage_view(stage: &StageGraphs) -> View<'_> {
    let parts = stage
        .parts
        .iter()
        .flat_map(|(forward, backward)| [shown("forward", forward), shown("backward", backward)]);
    View { ranks: Vec::new(), stage: "", before: vec![shown("joint", &stage.joint)], after: parts.collect() }
}

fn shown<'g>(title: &str, graph: &'g Graph) -> Shown<'g> {
    Shown { title: title.to_string(), graph }
}
