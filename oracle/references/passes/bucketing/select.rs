//! Which collectives form a bucket.
//!
//! Candidates come in the order of their *waits*. They form runs, and each run is cut into buckets greedily: a
//! member that something connects with the open bucket is left out for good; a member that would exceed the
//! limit closes the bucket and begins the next one, even if it alone exceeds it; buckets of one are dropped.
//! Equality with the limit fits. Source: `greedy_bucket_collective_by_mb` in
//! `torch._inductor.fx_passes.bucketing`; the spanning selection replaces it in AutoParallel
//! (`autoparallel/graph_passes/auto_bucketing.py`).

use super::key::Key;
use super::legality::Legality;
use super::member::Member;
use super::merge::MOST;
use super::plan::{Declined, Reason, Refusal};
use super::strategy::{AfterConflict, Context, Run, Strategy};
use crate::config::bucketing::{Config, Mode, Selection};
use crate::graph::NodeId;
use crate::ops::Collective;
use rustc_hash::FxHashMap;

/// A decided bucket.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The key of its members.
    pub key: Key,
    /// At least two, in wait order.
    pub members: Vec<Member>,
    /// Their sizes together.
    pub bytes: i64,
}

/// The runs of candidates in wait order. Adjacent: a run ends where the key changes; other nodes, other kinds
/// and filtered candidates do not end it. Spanning: one run per key, in order of first appearance.
pub fn runs(selection: Selection, candidates: Vec<(Key, Member)>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut by_key: FxHashMap<Key, usize> = FxHashMap::default();
    let mut last = None;
    for (key, member) in candidates {
        let open = match selection {
            Selection::Adjacent => runs.len().checked_sub(1).filter(|_| last == Some(key)),
            Selection::Spanning { .. } => by_key.get(&key).copied(),
        };
        match open {
            Some(run) => runs[run].push(member),
            None => {
                by_key.insert(key, runs.len());
                runs.push(vec![member]);
            }
        }
        last = Some(key);
    }
    runs.retain(|run| run.len() > 1);
    runs
}

/// The limit in bytes. In adjacent runs it is that of the first bucket for all; spanning runs follow the index.
pub fn limit(config: &Config, group_size: i64, index: usize) -> i64 {
    match config.selection {
        Selection::Adjacent => config.cap().limit(0, group_size),
        Selection::Spanning { .. } => config.cap().limit(index, group_size),
    }
}

/// A bucket that is being filled.
#[derive(Clone, Debug, Default)]
pub struct Open {
    /// Its members so far, in wait order.
    pub members: Vec<Member>,
    /// The sum of their sizes as the limit counts them.
    pub bytes: i64,
    /// The bytes of one rank's slot: the members' inputs in the dtypes of their results.
    slot: i64,
    /// The largest element among those dtypes, in bytes.
    element: i64,
}

impl Open {
    /// Whether every piece of every rank's slot starts at a multiple of its own element size once a member is
    /// added. The slots of the ranks follow one another; the stride between them counts even where
    /// there is one rank.
    fn is_aligned_with(&self, cx: &Context, member: &Member) -> bool {
        let starts = self.slot % i64::from(member.dtype.itemsize()) == 0;
        let slots = |(slot, element): (i64, i64)| slot % element == 0;
        starts && self.slot_with(cx, member).is_some_and(slots)
    }

    /// The slot and its largest element once a member is added.
    fn slot_with(&self, cx: &Context, member: &Member) -> Option<(i64, i64)> {
        let graph = cx.editor.graph();
        let size = i64::from(member.dtype.itemsize());
        let numel = graph.tensor_of(member.input).and_then(|tensor| graph.numel(tensor))?;
        Some((self.slot.checked_add(numel.checked_mul(size)?)?, self.element.max(size)))
    }

    fn push(&mut self, cx: &Context, member: Member, bytes: i64) {
        (self.slot, self.element) = self.slot_with(cx, &member).unwrap_or((self.slot, self.element));
        self.bytes = self.bytes.saturating_add(bytes);
        self.members.push(member);
    }
}

/// Why a member of the right key cannot share a bucket: another group size or device (PyTorch 2.15 asserts
/// both, the device for reductions only); or, where dtypes are mixed, pieces that do not start at a multiple
/// of their element size (a view that PyTorch's packing operator cannot take).
pub fn mismatch(cx: &Context, open: &Open, member: &Member) -> Option<Reason> {
    let first = open.members.first()?;
    let mixed = member.kind == Collective::AllGather && cx.config.mode == Mode::CustomOpsMultidtype;
    let slot = open.slot_with(cx, member).map(|(slot, _)| slot);
    if slot.and_then(|slot| slot.checked_mul(member.group_size.unwrap_or(1))).is_none_or(|n| n > MOST) {
        Some(Reason::AbsurdSize)
    } else if first.group_size != member.group_size {
        Some(Reason::GroupSize)
    } else if first.device != member.device {
        Some(Reason::Device)
    } else if mixed && !open.is_aligned_with(cx, member) {
        Some(Reason::Misaligned)
    } else {
        None
    }
}

/// Cuts one run into buckets.
pub fn cut(
    cx: &Context,
    strategy: &dyn Strategy,
    legality: &mut Legality,
    places: &Places,
    run: &[Member],
    declined: &mut Vec<Declined>,
) -> Result<Vec<Chosen>, Refusal> {
    let graph = cx.editor.graph();
    let name = |id: NodeId| graph.name(id).to_string();
    let mut chosen: Vec<Chosen> = Vec::new();
    let mut open = Open::default();
    let mut index = 0;
    let group_size = places.group_size.or(run.first().and_then(|m| m.group_size)).unwrap_or(1);
    let mut limit = strategy.limit(cx, group_size, 0);
    let mut close = |open: &mut Open, legality: &mut Legality| {
        let Open { members, bytes, .. } = std::mem::take(open);
        if let [first, _, ..] = &members[..] {
            strategy.decided(legality, &members);
            chosen.push(Chosen { key: strategy.key(cx, first), members, bytes });
        }
        legality.open();
    };
    legality.open();
    for member in run {
        let mut decline = |reason| declined.push(Declined { node: name(member.start), reason });
        if let Some(reason) = strategy.fault(cx, member) {
            decline(reason);
            continue;
        }
        if let Some(on) = strategy.conflict(cx, legality, &open, member) {
            decline(Reason::Dependent { member: name(on) });
            match strategy.after_conflict() {
                AfterConflict::Skip => continue,
                AfterConflict::Stop => break,
            }
        }
        let bytes = strategy.bytes(cx, member).ok_or_else(|| Refusal::NoHint { node: name(member.start) })?;
        let full = open.bytes.saturating_add(bytes) > limit;
        let far = places.spans_too_far(cx.config.selection, open.members.first(), member);
        if !open.members.is_empty() && (full || far) {
            close(&mut open, legality);
            index += 1;
            limit = strategy.limit(cx, group_size, index);
        }
        if let Some(reason) = strategy.mismatch(cx, &open, member) {
            decline(reason);
            continue;
        }
        legality.add(member.start, member.wait);
        open.push(cx, member.clone(), bytes);
    }
    close(&mut open, legality);
    Ok(chosen)
}

/// What selection knows besides the members.
pub struct Places {
    /// List positions when this kind's turn came, by node; empty where they are not needed.
    pub position: Vec<u32>,
    /// The group size that an automatic limit is for, where it is not the run's own.
    pub group_size: Option<i64>,
}

impl Places {
    /// Whether a member is too far behind the first one of the open bucket.
    fn spans_too_far(&self, selection: Selection, first: Option<&Member>, member: &Member) -> bool {
        let Selection::Spanning { max_topo_span: Some(most) } = selection else { return false };
        let at = |m: &Member| self.position.get(m.start.index()).copied().unwrap_or(0);
        first.is_some_and(|first| u64::from(at(member)) > u64::from(at(first)).saturating_add(most))
    }
}
