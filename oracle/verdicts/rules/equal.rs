//! Equal calls: what tells them apart, and which may stand for one another.
//!
//! Two calls of one operator on the same arguments are told apart by what they find in memory ([`last_writers`]) and by
//! what uses them ([`uses`]). Those that compute alone, of memory that nobody writes, give the same wherever they stand
//! ([`first_of_equal`]).

use super::AnalyzedGraph;
use super::correspondence::same_words;
use crate::analysis::{Access, Part, Touch};
use crate::graph::{NodeId, TargetId};
use crate::ops::Word;
use rustc_hash::{FxHashMap, FxHasher};
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

/// Chains of users, as numbers, in increasing order.
pub(super) type Uses = Vec<u64>;

/// How many users in a row are looked at.
const LONGEST_CHAIN: usize = 3;

/// How many chains of one node are looked at.
const MOST_CHAINS: usize = 8;

/// What a node is, its arguments and its name aside, as a number.
pub(super) fn kind_of(target: TargetId, words: &[Word]) -> u64 {
    let mut state = FxHasher::default();
    target.0.hash(&mut state);
    for word in words {
        match word.is_reference() {
            true => 0u8.hash(&mut state),
            false => word.hash(&mut state),
        }
    }
    state.finish()
}

/// For each node the first pure call that is the same, itself if there is none: of settled memory, so that it gives the
/// same wherever it stands.
pub(super) fn first_of_equal<'w>(
    side: &AnalyzedGraph,
    arguments: &dyn Fn(NodeId) -> &'w [NodeId],
    words: &dyn Fn(NodeId) -> Vec<Word<'w>>,
) -> Vec<NodeId> {
    let storages = side.storages();
    let is_unwritten = |part: &Part| !storages.is_written(part.storage);
    let is_pure = |id: NodeId| {
        side.only_computes(id)
            && storages.all_parts(id).all(is_unwritten)
            && storages.accesses_by(id).iter().all(|access| is_unwritten(&access.part))
    };
    let mut known: FxHashMap<(u64, Vec<NodeId>), NodeId> = FxHashMap::default();
    let mut first: Vec<NodeId> = side.graph.ids().collect();
    for id in side.graph.ids().filter(|&id| is_pure(id)) {
        let arguments = arguments(id).iter().map(|&a| first.get(a.index()).copied().unwrap_or(a)).collect();
        let own = words(id);
        let target = side.graph.node(id).target;
        let other = *known.entry((kind_of(target, &own), arguments)).or_insert(id);
        if side.graph.node(other).target == target && same_words(&words(other), &own) {
            first[id.index()] = other;
        }
    }
    first
}

/// For each storage that a node reads the last write before it, by the name that `known` gives it; where it gives none,
/// the write before that.
pub(super) fn last_writers(
    graph: &AnalyzedGraph,
    node: NodeId,
    known: &dyn Fn(NodeId) -> Option<NodeId>,
) -> BTreeSet<NodeId> {
    let storages = graph.storages();
    let is_written = |access: &&Access| storages.is_written(access.part.storage);
    let reads = storages.accesses_by(node).iter().filter(|access| access.touch == Touch::Read);
    let last = |access: &Access| {
        let earlier = storages.accesses_before(access.part.storage, node);
        earlier.filter(|other| other.touch == Touch::Write).find_map(|other| known(other.node))
    };
    reads.filter(is_written).filter_map(last).collect()
}

/// For each node the chains of users that begin at it, by target, as numbers; of many the least.
pub(super) fn uses(graph: &AnalyzedGraph, target: &dyn Fn(NodeId) -> Option<TargetId>) -> Vec<Uses> {
    let mut uses: Vec<Uses> = vec![Uses::new(); graph.graph.len()];
    for _ in 0..LONGEST_CHAIN {
        let longer = |id: NodeId| {
            let mut chains = BTreeSet::new();
            for &user in graph.edges.users(id) {
                let mut first = FxHasher::default();
                target(user).map(|target| target.0).hash(&mut first);
                let chain = |rest: &u64| {
                    let mut state = first.clone();
                    rest.hash(&mut state);
                    state.finish()
                };
                chains.insert(first.finish());
                chains.extend(uses[user.index()].iter().map(chain));
            }
            chains.into_iter().take(MOST_CHAINS).collect()
        };
        uses = graph.graph.ids().map(longer).collect();
    }
    uses
}
