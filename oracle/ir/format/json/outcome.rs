//! What a pass returned, as a document.

use crate::graph::Graph;

/// What a pass returned.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Name of the document; may be empty.
    pub name: String,
    /// The pass, for example `bucketing`.
    pub pass: String,
    /// The graphs, or the reason why the implementation declined.
    pub result: Result<Vec<RankOutcome>, String>,
    /// Keys of the file that this version does not know, with their JSON text.
    pub extra: Vec<(String, String)>,
}

/// What a pass returned for one rank. An implementation that does not bake the rank into its graph returns one.
#[derive(Clone, Debug)]
pub struct RankOutcome {
    /// The rank.
    pub rank: u32,
    /// The graph before topological repair, where the implementation shows it.
    pub unrepaired: Option<Graph>,
    /// The graph that the pass hands on.
    pub repaired: Graph,
    /// Keys of the file that this version does not know, with their JSON text.
    pub extra: Vec<(String, String)>,
}
