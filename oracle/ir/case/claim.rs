//! What an implementation states about memory: data only. Every part may be missing.

use crate::graph::Graph;

/// The life of a storage or buffer, as claimed. Steps count the calls of the list, from 0.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClaimedLife {
    /// The node whose result it is; `NODE.2` for the third tensor of a tuple.
    pub name: String,
    /// Its bytes.
    pub bytes: i64,
    /// The step that allocates it; `None`: it is there before.
    pub alloc: Option<u32>,
    /// The steps at whose ends it is freed; none: it is never freed.
    pub frees: Vec<u32>,
}

/// The state of an incremental tracker after a swap.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Increment {
    /// The calls in their order after the swap.
    pub order: Vec<String>,
    /// Live bytes after the allocations and after the frees of each step.
    pub steps: Vec<(i64, i64)>,
    /// The nodes that changed places, and the peak over their steps that was foreseen.
    pub potential: Option<(Vec<String>, i64)>,
}

/// Where a storage is placed in an arena.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Offset {
    /// The storage, as in [`ClaimedLife::name`].
    pub name: String,
    /// Its first byte.
    pub offset: i64,
    /// The storage whose memory it takes over in its first step.
    pub in_place_of: Option<String>,
}

/// What an implementation states about the memory of a graph.
#[derive(Clone, Debug, Default)]
pub struct Claim {
    /// The calls in the order to run them in; the list's, otherwise.
    pub order: Option<Vec<String>>,
    /// The peak in bytes.
    pub peak: Option<i64>,
    /// Live bytes before the first step.
    pub before: Option<i64>,
    /// Live bytes after the allocations and after the frees of each step.
    pub steps: Option<Vec<(i64, i64)>>,
    /// The lives of all storages that count.
    pub lives: Option<Vec<ClaimedLife>>,
    /// Peaks of the same order by several estimators: (name, bytes).
    pub estimates: Vec<(String, i64)>,
    /// An incremental tracker, swap by swap.
    pub increments: Option<Vec<Increment>>,
    /// Offsets in one arena.
    pub offsets: Option<Vec<Offset>>,
    /// The graph that replaces the one that is judged.
    pub after: Option<Graph>,
    /// What a verifier said of one and the same run, time after time, other runs in between.
    pub verifier_runs: Option<Vec<Vec<String>>>,
}

/// Two claims are equal if they say the same: graphs by [`Graph::difference`].
impl PartialEq for Claim {
    fn eq(&self, other: &Claim) -> bool {
        let after = match (&self.after, &other.after) {
            (Some(a), Some(b)) => a.difference(b).is_none(),
            (a, b) => a.is_none() && b.is_none(),
        };
        after
            && (&self.order, self.peak, self.before, &self.steps)
                == (&other.order, other.peak, other.before, &other.steps)
            && (&self.lives, &self.estimates) == (&other.lives, &other.estimates)
            && (&self.increments, &self.offsets) == (&other.increments, &other.offsets)
            && self.verifier_runs == other.verifier_runs
    }
}
