//! Answers to `run` as they travel: the keys of docs/protocol.md for a graph, two parts, a claim, and an execution.

use super::bits::Bits;
use super::claim::ClaimText;
use super::graph_text::{append_graph, graph, optional_graph};
use super::message::Message;
use crate::candidates::{Answer, Outcome};
use crate::family::Gives;
use crate::graph::Graph;
use crate::ops::shape::complete;
use crate::semantics::{ExecutedRank, TensorValue};
use std::collections::BTreeMap;

/// The keys of an answer, each with its value as JSON.
pub(super) fn write(answer: &Answer) -> Vec<(&'static str, Vec<u8>)> {
    let graph = |key, graph: &Graph| {
        let mut bytes = Vec::new();
        append_graph(&mut bytes, graph);
        (key, bytes)
    };
    // Values whose keys are strings can always be written.
    match answer {
        Answer::Graph(outcome) => {
            let Outcome { unrepaired, repaired } = &**outcome;
            let unrepaired = unrepaired.as_ref().map(|unrepaired| graph("unrepaired", unrepaired));
            [graph("repaired", repaired)].into_iter().chain(unrepaired).collect()
        }
        Answer::Parts(parts) => vec![graph("forward", &parts.0), graph("backward", &parts.1)],
        Answer::Claim(claim) => {
            let claim = ClaimText::of((**claim).clone());
            vec![("claim", serde_json::to_vec(&claim).unwrap_or_default())]
        }
        Answer::Executed(executed) => {
            let bits = |tensor: &Option<TensorValue>| tensor.as_ref().map(Bits::of);
            let outputs = |rank: &ExecutedRank| rank.outputs.iter().map(bits).collect::<Vec<_>>();
            let inputs = |rank: &ExecutedRank| {
                let tensors = rank.inputs.iter().map(|(name, tensor)| (name.clone(), Bits::of(tensor)));
                tensors.collect::<BTreeMap<_, _>>()
            };
            let results: Vec<_> = executed.ranks.iter().map(outputs).collect();
            let inputs: Vec<_> = executed.ranks.iter().map(inputs).collect();
            vec![
                ("results", serde_json::to_vec(&results).unwrap_or_default()),
                ("inputs", serde_json::to_vec(&inputs).unwrap_or_default()),
            ]
        }
    }
}

/// The answer in a message, where a pass gives this.
pub(super) fn read(message: &mut Message, gives: Gives) -> Result<Answer, String> {
    let part = |key, text| graph(key, text).map(|graph| complete(&graph).unwrap_or(graph));
    Ok(match gives {
        Gives::Graph => {
            let unrepaired = optional_graph("unrepaired", message.unrepaired)?;
            let outcome = Outcome { unrepaired, repaired: graph("repaired", message.repaired)? };
            outcome.completed().unwrap_or(outcome).into()
        }
        Gives::Parts => {
            let forward = part("forward", message.forward)?;
            Answer::Parts(Box::new((forward, part("backward", message.backward)?)))
        }
        Gives::Claim => {
            let claim = message.claim.take().ok_or("the key claim is missing")?;
            Answer::Claim(Box::new(claim.read()?))
        }
        Gives::Executed => Answer::Executed(message.executed()?),
    })
}

/// How much there is, in a few words.
pub(super) fn brief(answer: &Answer) -> String {
    match answer {
        Answer::Graph(outcome) => format!("{} nodes", outcome.repaired.len()),
        Answer::Parts(parts) => format!("{} nodes", parts.0.len() + parts.1.len()),
        Answer::Claim(_) => "a claim".into(),
        Answer::Executed(executed) => format!("results of {} ranks", executed.ranks.len()),
    }
}
