//! A graph executed by a candidate, held against the interpreter: who is judged here is graph-oracle.
//!
//! The graph is made [comparable](semantics::comparable()) first, both execute it on the same inputs, and
//! [`rules::eager`] compares. What the interpreter cannot compute is undecided.

use super::{CannotJudge, Judgement, declined, left_open};
use crate::family::Run;
use crate::judge::candidate::CandidateExt;
use crate::ops::Ops;
use crate::rules::Code;
use crate::rules::eager::{self, Executions};
use crate::semantics::{self, Concrete, ExecutionInputs, Failure, Leaf, Program};

/// Has `candidate` execute the graph of a case, and compares.
pub(crate) fn judge_candidate(run: &Run) -> Result<Judgement, CannotJudge> {
    let &Run { case, config, candidate, options, .. } = run;
    let comparable = match semantics::comparable(&case.graph, &Ops::of(&case.graph)) {
        Ok(comparable) => comparable,
        Err(why) => return Ok(left_open(Code::NotComparable.because(why))),
    };
    let graph = &comparable.graph;
    let ops = Ops::of(graph);
    let Some(world) = graph.world.assume_mesh() else {
        return Ok(left_open(Code::TooManyRanks.because("the world has too many ranks")));
    };
    let program = match Program::new(graph, &ops, &world) {
        Ok(program) => program,
        Err(failure) => return Ok(does_not_run(&failure)),
    };
    let domain = Concrete::default();
    let run_options = semantics::Options { max_elements: options.element_limit, ..Default::default() };
    let inputs: Result<Vec<ExecutionInputs>, Failure> = (0..world.ranks.unwrap_or(1))
        .map(|rank| {
            let all = semantics::inputs(&program, rank, &domain, &run_options)?;
            let tensor = |input: semantics::FinalInput| match input.value {
                Leaf::Tensor(tensor) if !input.attribute => Some((input.name, tensor)),
                _ => None,
            };
            Ok(all.into_iter().filter_map(tensor).collect())
        })
        .collect();
    let ours = semantics::run(std::slice::from_ref(&program), &world, &domain, &run_options);
    let (inputs, node) = match (inputs, &ours) {
        (Ok(inputs), Ok(_)) => (inputs, None),
        (Ok(inputs), Err(Failure::Raises { node, .. })) => (inputs, Some(*node)),
        (Err(failure), _) => return Ok(does_not_run(&failure)),
        (_, Err(failure)) => return Ok(does_not_run(failure)),
    };
    let theirs = match candidate.execute(graph, config, &inputs) {
        Ok(theirs) => theirs,
        Err(refusal) => return Ok(declined(refusal)),
    };
    let (findings, rules, note) = match &ours {
        Ok(ours) => {
            let executions = Executions { graph, rounded: &comparable.rounded, ours, theirs: &theirs };
            let (findings, rules, compared) = eager::check(&executions);
            let note = format!(
                "{compared} elements of {} ranks were compared, {} results within a distance",
                ours.ranks.len(),
                comparable.rounded.len()
            );
            (findings, rules, note)
        }
        Err(failure) => {
            let (finding, rules) = eager::raises(graph, node, &failure.to_string());
            (vec![finding], rules, String::new())
        }
    };
    let acted = theirs.ranks.iter().any(|rank| rank.outputs.iter().any(Option::is_some));
    Ok(Judgement { verdict: super::verdict(findings, Vec::new()), rules, notes: vec![note], acted })
}

fn does_not_run(failure: &Failure) -> Judgement {
    left_open(Code::from(failure).because(failure.to_string()))
}
