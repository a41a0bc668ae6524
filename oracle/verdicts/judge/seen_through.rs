//! Graphs as they are compared where operators have bodies, and verdicts that rest on bodies.
//!
//! Bodies that are run once stand in the places of their calls; of the others it is asked, before anything else, which
//! are the same ([`bodies`]). Where that is not known, two bodies are taken for one, and the verdict says so.

use super::candidate::Outcome;
use super::{
    Judgement, Options, Verdict, bodies, functionalized, input_faults, judge_pair, recorded_calls, verdict,
    written_lists,
};
use crate::analysis::validate::{Fault, validate};
use crate::analysis::{functional, fused, plain};
use crate::case::{PassConfig, Setting};
use crate::family::Gives;
use crate::graph::Graph;
use crate::rules::{Code, Finding, PassKind, Reason, RuleStatus};

/// Graphs with the bodies of higher-order operators in their places, and told apart.
pub(super) struct SeenThrough {
    pub(super) before: Graph,
    pub(super) outcomes: Vec<(Option<u32>, Outcome)>,
    /// Bodies that were taken to do the same.
    pub(super) assumed: Vec<bodies::Assumed>,
    /// Whether the graphs call other operators with bodies, or with other bodies.
    pub(super) calls_differ: bool,
    /// A call of a graph after of which something is recorded that is not what it gives.
    pub(super) misrecorded: Option<String>,
}

/// Rules that ask nothing of what a body does.
const WITHOUT_BODIES: [&str; 6] = [
    "rewrite/well-formed",
    "rewrite/collectives",
    "rewrite/payloads",
    "rewrite/in-flight",
    "order/acyclic",
    "order/list-topological",
];

/// A judgement of graphs of which `call` is recorded to give something else than it does.
pub(super) fn resting_on_a_record(mut judgement: Judgement, call: &str) -> Judgement {
    if judgement.verdict == Verdict::Sound {
        let why = Code::NotRecorded.because(format!("what is recorded of {call} is not what it gives"));
        for (_, status) in judgement.rules.iter_mut().filter(|(id, _)| *id == "rewrite/metadata") {
            *status = RuleStatus::Undecided(why.clone());
        }
        judgement.verdict = Verdict::Undecided(vec![why]);
    }
    judgement
}

/// A judgement that took bodies for the same of which that is not known, or on graphs whose calls of operators with
/// bodies differ: what these compute is drawn, so a difference of values behind them says nothing.
pub(super) fn resting_on_bodies(
    mut judgement: Judgement,
    assumed: &[bodies::Assumed],
    config: &PassConfig,
    options: &Options,
) -> Judgement {
    let allowed: Vec<_> = config.options.iter().filter(|(name, _)| name == "allow").cloned().collect();
    let is_sound = judgement.verdict == Verdict::Sound;
    if assumed.is_empty() && is_sound {
        return judgement;
    }
    let called_otherwise = || {
        Code::BodiesDiffer.because("operators with bodies are called otherwise, and bodies are not followed")
    };
    if let Verdict::Violated(findings) = &mut judgement.verdict {
        // What is said to follow from a finding that says nothing stands by itself.
        let asks_no_body = |finding: &Finding| WITHOUT_BODIES.contains(&finding.rule);
        let kept = std::mem::take(findings).into_iter().flat_map(|finding| match asks_no_body(&finding) {
            true => vec![finding],
            false => finding.consequences,
        });
        *findings = kept.filter(asks_no_body).collect();
        if !findings.is_empty() {
            let told = judgement.violated_rules();
            for (_, status) in judgement.rules.iter_mut().filter(|(id, _)| !told.contains(id)) {
                if matches!(status, RuleStatus::Violated(_)) {
                    *status = RuleStatus::Undecided(called_otherwise());
                }
            }
            return judgement;
        }
    }
    let (mut findings, mut open) = (Vec::new(), Vec::new());
    if assumed.is_empty() {
        open.push(called_otherwise());
    }
    for bodies::Assumed { attribute, before, after } in assumed {
        let judged = before.as_ref().and_then(|before| as_rewrite(before, after, &allowed, options));
        match judged.map(|judgement| judgement.verdict) {
            // What a body's results share is a question to the graph that calls it.
            Some(Verdict::Violated(of_body))
                if is_sound && of_body.iter().any(|finding| finding.rule != "rewrite/aliases") =>
            {
                findings.extend(of_body.into_iter().map(|mut finding| {
                    finding.title = format!("in the body {attribute}: {}", finding.title);
                    finding
                }));
            }
            Some(Verdict::Undecided(reasons)) => {
                let why: Vec<String> = reasons.iter().map(ToString::to_string).collect();
                open.push(Code::BodiesDiffer.because(format!(
                    "the bodies {attribute} are not known to do the same: {}",
                    why.join("; ")
                )));
            }
            _ => {
                let why = match before {
                    Some(_) => format!("the bodies {attribute} differ, and so does what is made of them"),
                    None => format!("the graph before has no body for {attribute}, which is not followed"),
                };
                open.push(Code::BodiesDiffer.because(why));
            }
        }
    }
    let status = match findings.is_empty() {
        false => RuleStatus::Violated(findings.len()),
        true => RuleStatus::Undecided(Reason::joined(&open)),
    };
    for (id, of_rule) in &mut judgement.rules {
        let is_violated = matches!(of_rule, RuleStatus::Violated(_));
        if is_violated && !WITHOUT_BODIES.contains(id) || *id == "rewrite/values" {
            *of_rule = status.clone();
        }
    }
    judgement.verdict = verdict(findings, open);
    judgement
}

/// The graphs with the bodies of higher-order operators in their places, and told apart; `None` where there are none.
pub(super) fn seen_through(
    pass: PassKind,
    before: &Graph,
    outcomes: &[(Option<u32>, Outcome)],
    options: &Options,
    is_of_all: bool,
) -> Option<SeenThrough> {
    let row = pass.row();
    let has_graphs = matches!(row.gives, Gives::Graph | Gives::Parts);
    if !has_graphs {
        return None;
    }
    let all = || std::iter::once(before).chain(outcomes.iter().map(|(_, outcome)| &outcome.repaired));
    // Partitions and schedules are compared call by call.
    let is_rewrite = row.gives == Gives::Graph && row.compares_values;
    let is_written_otherwise =
        |graph: &Graph| bodies::has_bodies(graph) || fused::has_calls(graph) || plain::has_calls(graph);
    if all().any(is_written_otherwise)
        && (!input_faults(before, pass).is_empty()
            || outcomes.iter().any(|(_, outcome)| is_malformed(&outcome.repaired)))
    {
        // Their faults are reported as they stand; what else is found of calls with bodies says nothing.
        let (before, outcomes) = (before.clone(), outcomes.to_vec());
        return Some(SeenThrough {
            before,
            outcomes,
            assumed: Vec::new(),
            calls_differ: true,
            misrecorded: None,
        });
    }
    let written = |graph: &Graph| {
        let fused = (pass == PassKind::Rewrite).then(|| fused::written_out(graph)).flatten();
        let graph = fused.as_ref().unwrap_or(graph);
        let plain = is_rewrite.then(|| plain::written_out(graph)).flatten();
        let graph = plain.as_ref().unwrap_or(graph);
        let functional = is_rewrite.then(|| functionalized::written_out(graph)).flatten();
        written_lists::with_items(functional.as_ref().unwrap_or(graph)).or(functional).or(plain).or(fused)
    };
    let written: Vec<Option<Graph>> = all().map(written).collect();
    if written.iter().all(Option::is_none) && !all().any(bodies::has_bodies) {
        return None;
    }
    let misrecorded = is_rewrite.then(|| {
        let known = recorded_calls::misrecorded(before, &[]);
        let of =
            |(_, outcome): &(Option<u32>, Outcome)| recorded_calls::misrecorded(&outcome.repaired, &known);
        outcomes.iter().flat_map(of).next()
    });
    let misrecorded = misrecorded.flatten();
    let inlined = |(graph, written): (&Graph, &Option<Graph>)| {
        let own = bodies::with_own_constants(written.as_ref().unwrap_or(graph));
        if is_rewrite { bodies::inlined(&own).unwrap_or(own) } else { own }
    };
    let mut graphs: Vec<Graph> = all().zip(&written).map(inlined).collect();
    if is_rewrite {
        let mut described = functional::described(&all().collect::<Vec<_>>());
        // What other ranks call an operator with is not seen here.
        described.values_mut().filter(|_| !is_of_all).for_each(|facts| *facts = None);
        functional::describe(&mut graphs, &described);
    }
    // Where calls are compared and not values, a body that differs is a call that differs.
    let assumed = bodies::named(&mut graphs, is_rewrite, &|one, other| {
        // What is the same but for roundings is not the same function.
        as_rewrite(one, other, &[], options).is_some_and(|judgement| judgement.verdict == Verdict::Sound)
    });
    let calls: Vec<_> = graphs.iter().map(bodies::calls).collect();
    let calls_differ = is_rewrite && calls.windows(2).any(|pair| pair[0] != pair[1]);
    let mut graphs = graphs.into_iter();
    let before = graphs.next()?;
    let outcomes =
        outcomes.iter().zip(graphs).zip(&written[1..]).map(|(((rank, outcome), repaired), written)| {
            // What was not yet repaired is compared with the result, so it is left out where that is written otherwise.
            let is_as_it_was = written.is_none() && !bodies::has_bodies(&outcome.repaired);
            (*rank, Outcome { unrepaired: outcome.unrepaired.clone().filter(|_| is_as_it_was), repaired })
        });
    let outcomes = outcomes.collect();
    Some(SeenThrough { before, outcomes, assumed, calls_differ, misrecorded })
}

/// Graphs that are compared call by call, with different bodies under different names, and calls whose bodies act as
/// operators of which nothing is known; `None` where none has bodies. Without options only bodies that are equal node
/// for node are one.
pub(super) fn told_apart(graphs: &[&Graph], options: Option<&Options>) -> Option<Vec<Graph>> {
    if !graphs.iter().any(|graph| bodies::has_bodies(graph)) || graphs.iter().any(|graph| is_malformed(graph))
    {
        return None;
    }
    let apart = graphs.iter().map(|graph| bodies::with_items_of_inputs(bodies::with_own_constants(graph)));
    let mut apart: Vec<Graph> = apart.collect();
    let is_sound = |judgement: Judgement| judgement.verdict == Verdict::Sound;
    bodies::named(&mut apart, false, &|one, other| {
        options.and_then(|options| as_rewrite(one, other, &[], options)).is_some_and(is_sound)
    });
    Some(apart)
}

/// A judgement of graphs that were judged without their bodies: left open where calls are not what they seem, since a
/// body does more than give new values, or nobody recorded it, or one attribute holds different bodies.
pub(super) fn without_bodies(judgement: Judgement, graphs: &[&Graph], what: &str) -> Judgement {
    let differs =
        |(graph, apart): (&&Graph, &Graph)| graph.ids().any(|id| graph.target(id) != apart.target(id));
    let rests_on_bodies =
        || told_apart(graphs, None).is_some_and(|apart| graphs.iter().zip(&apart).any(differs));
    if judgement.verdict != Verdict::Sound || !rests_on_bodies() {
        return judgement;
    }
    let why = format!(
        "a body writes, draws, acts or shares memory, or is another one, and {what} judged without bodies"
    );
    Judgement { verdict: verdict(Vec::new(), vec![Code::BodiesDiffer.because(why)]), ..judgement }
}

/// Whether a graph cannot be executed as it is given. Then it is not written otherwise: inlining bodies would put calls in
/// order, and lose what they name.
pub(super) fn is_malformed(graph: &Graph) -> bool {
    validate(graph).iter().any(Fault::is_fatal)
}

/// What is judged of a body as a rewrite of another one.
fn as_rewrite(
    before: &Graph,
    after: &Graph,
    allowed: &[(String, Setting)],
    options: &Options,
) -> Option<Judgement> {
    let config = PassConfig { options: allowed.to_vec(), ..PassConfig::new(PassKind::Rewrite.name()) };
    let outcome = Outcome { unrepaired: None, repaired: after.clone() };
    judge_pair(before, &config, &[(None, outcome)], options).ok()
}
