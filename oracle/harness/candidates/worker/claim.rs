//! A claim about memory as it travels.

use super::graph_text::{append_graph, graph};
use crate::rules::memory::{Claim, ClaimedLife, Increment, Offset};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A claim, key by key as in docs/protocol.md.
#[derive(Serialize, Deserialize, Debug, Default)]
pub(super) struct ClaimText {
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<(i64, i64)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lives: Option<Vec<LifeText>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    estimates: BTreeMap<String, i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    increments: Option<Vec<IncrementText>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offsets: Option<Vec<OffsetText>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verifier_runs: Option<Vec<Vec<String>>>,
}

#[derive(Serialize, Deserialize, Debug)]
struct LifeText {
    name: String,
    bytes: i64,
    #[serde(default)]
    alloc: Option<u32>,
    #[serde(default)]
    frees: Vec<u32>,
}

#[derive(Serialize, Deserialize, Debug)]
struct IncrementText {
    order: Vec<String>,
    steps: Vec<(i64, i64)>,
    #[serde(default)]
    potential: Option<Potential>,
}

#[derive(Serialize, Deserialize, Debug)]
struct Potential {
    moved: Vec<String>,
    peak: i64,
}

#[derive(Serialize, Deserialize, Debug)]
struct OffsetText {
    name: String,
    offset: i64,
    #[serde(default)]
    in_place_of: Option<String>,
}

impl ClaimText {
    /// What is claimed.
    pub fn read(self) -> Result<Claim, String> {
        let life = |life: LifeText| ClaimedLife {
            name: life.name,
            bytes: life.bytes,
            alloc: life.alloc,
            frees: life.frees,
        };
        let increment = |increment: IncrementText| Increment {
            order: increment.order,
            steps: increment.steps,
            potential: increment.potential.map(|potential| (potential.moved, potential.peak)),
        };
        let offset = |offset: OffsetText| Offset {
            name: offset.name,
            offset: offset.offset,
            in_place_of: offset.in_place_of,
        };
        Ok(Claim {
            order: self.order,
            peak: self.peak,
            before: self.before,
            steps: self.steps,
            lives: self.lives.map(|lives| lives.into_iter().map(life).collect()),
            estimates: self.estimates.into_iter().collect(),
            increments: self.increments.map(|all| all.into_iter().map(increment).collect()),
            offsets: self.offsets.map(|all| all.into_iter().map(offset).collect()),
            after: self.after.as_deref().map(|text| graph("claim.after", Some(text))).transpose()?,
            verifier_runs: self.verifier_runs,
        })
    }

    /// As it is written.
    pub fn of(claim: Claim) -> ClaimText {
        let life = |life: ClaimedLife| LifeText {
            name: life.name,
            bytes: life.bytes,
            alloc: life.alloc,
            frees: life.frees,
        };
        let increment = |increment: Increment| IncrementText {
            order: increment.order,
            steps: increment.steps,
            potential: increment.potential.map(|(moved, peak)| Potential { moved, peak }),
        };
        let offset = |offset: Offset| OffsetText {
            name: offset.name,
            offset: offset.offset,
            in_place_of: offset.in_place_of,
        };
        let after = claim.after.and_then(|graph| {
            let mut bytes = Vec::new();
            append_graph(&mut bytes, &graph);
            RawValue::from_string(String::from_utf8(bytes).ok()?).ok()
        });
        ClaimText {
            order: claim.order,
            peak: claim.peak,
            before: claim.before,
            steps: claim.steps,
            lives: claim.lives.map(|lives| lives.into_iter().map(life).collect()),
            estimates: claim.estimates.into_iter().collect(),
            increments: claim.increments.map(|all| all.into_iter().map(increment).collect()),
            offsets: claim.offsets.map(|all| all.into_iter().map(offset).collect()),
            after,
            verifier_runs: claim.verifier_runs,
        }
    }
}
