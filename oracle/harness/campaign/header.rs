//! What a campaign is, in the first line of its store.

use super::RankPlan;
use crate::family::row;
use crate::rules::PassKind;
use serde::{Deserialize, Serialize};

/// A graph by its contents.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphId {
    /// What its file is called.
    pub name: String,
    /// The digest of what it holds.
    pub digest: String,
}

/// What a campaign is: where anything of it differs, another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The version of the program that judges.
    pub program: String,
    /// The pass.
    pub pass: String,
    /// The candidate.
    pub candidate: String,
    /// What is run: a worker's command and limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<String>,
    /// The seed.
    pub seed: u64,
    /// Which shard of how many.
    pub shard: (u64, u64),
    /// How values are compared.
    pub values: String,
    /// The most elements that an execution may touch.
    pub element_limit: u64,
    /// The version of the generator.
    pub generator: u32,
    /// The real graphs that cases are windows or grafts of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graphs: Vec<GraphId>,
    /// As which ranks the candidate ran.
    #[serde(default)]
    pub ranks: RankPlan,
    /// Cases in a batch.
    pub batch: u64,
    /// What the candidate does not take, and is not generated.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// The options that every case gives its pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// The digest of the list of known findings, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<String>,
    /// Whether its store is of the version before, which counts reasons by their words.
    #[serde(skip)]
    pub is_old: bool,
}

impl Header {
    /// In words.
    pub(super) fn title(&self) -> String {
        let shard = match self.shard {
            (_, 1) => String::new(),
            (i, n) => format!(", shard {i}/{n}"),
        };
        let graphs = match &self.graphs[..] {
            [] => String::new(),
            graphs => {
                let what =
                    PassKind::parse(&self.pass).and_then(|pass| row(pass).of_graphs).unwrap_or("windows");
                let named = |graph: &GraphId| format!("{} ({:.8})", graph.name, graph.digest);
                format!(", {what} of {}", graphs.iter().map(named).collect::<Vec<_>>().join(" and "))
            }
        };
        let ranks = match self.ranks {
            RankPlan::All => String::new(),
            plan => format!(", {}", plan.title()),
        };
        let set = match &self.set[..] {
            [] => String::new(),
            set => format!(" with {}", set.join(" ")),
        };
        let Header { pass, candidate, seed, values, generator, .. } = self;
        format!(
            "{pass} by {candidate}{graphs}{set}, seed {seed}, values {values}, generator {generator}{ranks}{shard}"
        )
    }
}
