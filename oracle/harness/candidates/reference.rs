//! The reference implementations, as a candidate.

use super::partition::cut_network;
use super::schedule::run_options;
use super::{Answer, Candidate, Capabilities, Outcome, Refusal, Request};
use crate::candidates::refusals::{bad_options, not_implemented, refusal};
use crate::case::{PassConfig, TracedAgain};
use crate::config::partition::Stage;
use crate::config::schedule::Config as ScheduleConfig;
use crate::family::row;
use crate::graph::{Graph, NodeId};
use crate::judge::options::{bucketing_config, partition_config};
use crate::judge::{self, References};
use crate::ops::{Collective, Ops};
use crate::passes::bucketing::{self, Config};
use crate::passes::partition::activation_checkpointing::checkpoint;
use crate::passes::partition::two_stages::trace_again;
use crate::passes::{partition, repair, schedule};
use crate::rules::partition::CutNetwork;
use crate::rules::{Code, PassKind};
use crate::semantics::{
    self, Concrete, Executed, ExecutedRank, ExecutionInputs, Given, Leaf, Program, TensorValue,
};

/// The reference of every pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reference;

impl Candidate for Reference {
    fn name(&self) -> &str {
        "reference"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { bakes_rank: true, keeps_promises: true, ..Capabilities::of(PassKind::ALL) }
    }

    fn run(&self, request: &Request) -> Result<Vec<Answer>, Refusal> {
        let pass = PassKind::named(&request.pass.name).map_err(not_implemented)?;
        (row(pass).reference)(request)
    }
}

/// Buckets collectives.
pub(crate) fn bucketing(request: &Request) -> Result<Vec<Answer>, Refusal> {
    run_bucketing(request, &bucketing::Reference, &|_| {})
}

/// Repairs the order of a list.
pub(crate) fn repair(request: &Request) -> Result<Vec<Answer>, Refusal> {
    request.once(|_| run_repair(request.graph, repair::stable_topological_sort))
}

/// Cuts a joint graph.
pub(crate) fn partition(request: &Request) -> Result<Vec<Answer>, Refusal> {
    request.once(|_| {
        let config = partition_config(request.pass).map_err(bad_options)?;
        let parts = partition::run(request.graph, &config).map_err(refusal)?;
        Ok(Answer::Parts(Box::new((parts.forward, parts.backward))))
    })
}

/// Puts a graph in another order.
pub(crate) fn schedule(request: &Request) -> Result<Vec<Answer>, Refusal> {
    request.once(|place| run_options(request.graph, request.pass, place.rank, &schedule::Reference))
}

/// Executes a graph with the interpreter.
pub(crate) fn execute(request: &Request) -> Result<Vec<Answer>, Refusal> {
    request.once(|_| {
        let executed = interpreted(request.graph, request.inputs);
        Ok(Answer::Executed(executed.map_err(|why| Refusal::of(Code::CannotExecute, why))?))
    })
}

impl References for Reference {
    fn stable_order(&self, graph: &Graph) -> Option<Vec<NodeId>> {
        repair::stable_order(graph).ok()
    }

    fn scheduled(&self, graph: &Graph, config: &ScheduleConfig) -> Option<Graph> {
        Some(schedule::schedule(graph, config).ok()?.graph)
    }

    fn checkpointed(&self, joint: &Graph, stage: Stage) -> Result<Graph, Refusal> {
        checkpoint(joint, stage).map_err(refusal)
    }

    fn cut_network(&self, joint: &Graph, pass: &PassConfig) -> Result<Option<CutNetwork>, Refusal> {
        let config = partition_config(pass).map_err(bad_options)?;
        let parts = partition::run(joint, &config).map_err(refusal)?;
        Ok(cut_network(&parts))
    }

    fn traced_again(
        &self,
        joint: &Graph,
        forward: &Graph,
        backward: &Graph,
        forward_outputs: usize,
    ) -> Result<TracedAgain, Refusal> {
        trace_again(joint, forward, backward, forward_outputs).map_err(refusal)
    }
}

/// How to judge, where nothing else is asked: as [`judge::Options::new`] says, by these references.
pub fn judging() -> judge::Options {
    judge::Options::new(&Reference)
}

/// What the interpreter says of all ranks.
fn interpreted(graph: &Graph, inputs: &[ExecutionInputs]) -> Result<Executed, String> {
    let ops = Ops::of(graph);
    let world = graph.world.assume_mesh().ok_or("the world has too many ranks")?;
    let program = Program::new(graph, &ops, &world).map_err(|failure| failure.to_string())?;
    let given = (0..).zip(inputs).flat_map(|(rank, inputs)| {
        let given = move |(name, tensor): &(String, TensorValue)| Given {
            name: name.clone(),
            rank: Some(rank),
            cells: tensor.cells.clone(),
        };
        inputs.iter().map(given)
    });
    let options = semantics::Options { given: given.collect(), ..semantics::Options::default() };
    let run = semantics::run(&[program], &world, &Concrete::default(), &options);
    let tensor = |leaf: Leaf| match leaf {
        Leaf::Tensor(tensor) => Some(tensor),
        _ => None,
    };
    let ranks = run.map_err(|failure| failure.to_string())?.ranks.into_iter().map(|rank| {
        let inputs = rank.inputs.into_iter().filter(|input| !input.attribute);
        ExecutedRank {
            outputs: rank.outputs.into_iter().map(|(_, leaf)| tensor(leaf)).collect(),
            inputs: inputs.filter_map(|input| Some((input.name, tensor(input.value)?))).collect(),
        }
    });
    Ok(Executed { ranks: ranks.collect() })
}

/// Runs a bucketing algorithm at each place, with changed options; once where no body names the rank.
pub(super) fn run_bucketing(
    request: &Request,
    strategy: &dyn bucketing::Strategy,
    change: &dyn Fn(&mut Config),
) -> Result<Vec<Answer>, Refusal> {
    let mut answers = Vec::with_capacity(request.places.len());
    for place in request.places {
        let (outcome, names_rank) = bucketed(request.graph, request.pass, place.rank, strategy, change)?;
        answers.push(outcome.into());
        if !names_rank {
            break;
        }
    }
    Ok(answers)
}

/// The outcome, and whether it may depend on the rank: only the bodies of gathers do.
fn bucketed(
    graph: &Graph,
    pass: &PassConfig,
    rank: u32,
    strategy: &dyn bucketing::Strategy,
    change: &dyn Fn(&mut Config),
) -> Result<(Outcome, bool), Refusal> {
    let mut config = bucketing_config(pass, Some((graph, rank))).map_err(bad_options)?;
    change(&mut config);
    let bucketed = bucketing::bucket_with(graph, &config, strategy).map_err(refusal)?;
    let names_rank = bucketed.plan.iter().any(|bucket| bucket.kind == Collective::AllGather);
    Ok((Outcome { unrepaired: Some(bucketed.unrepaired), repaired: bucketed.graph }, names_rank))
}

/// Repairs a graph by sorting it.
pub(super) fn run_repair(
    graph: &Graph,
    sort: fn(&Graph) -> Result<Graph, repair::Cycle>,
) -> Result<Answer, Refusal> {
    match sort(graph) {
        Ok(repaired) => Ok(repaired.into()),
        Err(cycle) => Err(Refusal::of(Code::Cycle, format!("the graph has a cycle: {cycle}"))),
    }
}
