//! Which collectives form a bucket.
//!
//! Candidates come in the order of their *waits*. They form runs, and each run is cut into buckets greedily: a
//! member that something connects with the open bucket is left out for good; a member that would exceed the
//! limit closes the bucket and begins the next one, even if it alone exceeds it; buckets of one are dropped.
//! Equality with the limit fits. Source: `greedy_bucket_collective_by_mb` in
//! `torch._inductor.fx_passes.bucketing`; the spanning selection replaces it in AutoParallel
//! (`autoparallel/graph_passes/auto_bucketing.py`).

use super::config::{Config, Mode, Selection};
use super::facts::Facts;
use super::key::Key;
use super::legality::Legality;
use super::member::Member;
use super::plan::{Declined, Reason, Refusal};
use super::policy::{AfterConflict, Context, Policy, Run};
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

/// Why a member of the right key cannot share a bucket: another group size or device (PyTorch 2.15 asserts
/// both, the device for reductions only); or, where dtypes are mixed, pieces that do not start at a multiple
/// of their element size (a view that PyTorch's packing operator cannot take).
pub fn mismatch(cx: &Context, bucket: &[Member], member: &Member) -> Option<Reason> {
    let first = bucket.first()?;
    if first.group_size != member.group_size {
        return Some(Reason::GroupSize);
    }
    if first.device != member.device {
        return Some(Reason::Device);
    }
    if member.kind == Collective::AllGather && cx.config.mode == Mode::CustomOpsMultidtype {
        let graph = cx.editor.graph();
        let mut at = 0i64;
        let mut largest = 1;
        for member in bucket.iter().chain([member]) {
            let size = i64::from(member.dtype.itemsize());
            let numel = graph.tensor_of(member.input).and_then(|tensor| graph.numel(tensor))?;
            if at % size != 0 {
                return Some(Reason::Misaligned);
            }
            at = at.checked_add(numel.checked_mul(size)?)?;
            largest = largest.max(size);
        }
        // The slots of the ranks follow one another.
        if member.group_size != Some(1) && at % largest != 0 {
            return Some(Reason::Misaligned);
        }
    }
    None
}

/// Cuts one run into buckets.
pub fn cut(
    cx: &Context,
    policy: &dyn Policy,
    legality: &mut Legality,
    places: &Places<'_>,
    run: &[Member],
    declined: &mut Vec<Declined>,
) -> Result<Vec<Chosen>, Refusal> {
    let graph = cx.editor.graph();
    let name = |id: NodeId| graph.name(id).to_string();
    let mut chosen: Vec<Chosen> = Vec::new();
    let mut open: Vec<Member> = Vec::new();
    let (mut sum, mut index) = (0i64, 0);
    let group_size = places.group_size.or(run.first().and_then(|m| m.group_size)).unwrap_or(1);
    let mut limit = policy.limit(cx, group_size, 0);
    let mut close = |open: &mut Vec<Member>, sum: i64, legality: &mut Legality| {
        if let [first, _, ..] = &open[..] {
            policy.decided(legality, open);
            chosen.push(Chosen { key: policy.key(cx, first), members: std::mem::take(open), bytes: sum });
        }
        open.clear();
        legality.open();
    };
    legality.open();
    for member in run {
        let mut decline = |reason| declined.push(Declined { node: name(member.start), reason });
        if let Some(reason) = policy.fault(cx, places.facts, member) {
            decline(reason);
            continue;
        }
        if let Some(on) = policy.conflict(cx, legality, &open, member) {
            decline(Reason::Dependent { member: name(on) });
            match policy.after_conflict() {
                AfterConflict::Skip => continue,
                AfterConflict::Stop => break,
            }
        }
        let bytes = policy.bytes(cx, member).ok_or_else(|| Refusal::NoHint { node: name(member.start) })?;
        let full = sum.saturating_add(bytes) > limit;
        let far = places.spans_too_far(cx.config.selection, open.first(), member);
        if !open.is_empty() && (full || far) {
            close(&mut open, sum, legality);
            (sum, index) = (0, index + 1);
            limit = policy.limit(cx, group_size, index);
        }
        if let Some(reason) = policy.mismatch(cx, &open, member) {
            decline(reason);
            continue;
        }
        legality.add(member.start, member.wait);
        sum = sum.saturating_add(bytes);
        open.push(member.clone());
    }
    close(&mut open, sum, legality);
    Ok(chosen)
}

/// What selection knows besides the members.
pub struct Places<'a> {
    /// Facts about the graph as it came in.
    pub facts: &'a Facts,
    /// List positions when this kind's turn came, by node; empty where they are not needed.
    pub position: Vec<u32>,
    /// The group size that an automatic limit is for, where it is not the run's own.
    pub group_size: Option<i64>,
}

impl Places<'_> {
    /// Whether a member is too far behind the first one of the open bucket.
    fn spans_too_far(&self, selection: Selection, first: Option<&Member>, member: &Member) -> bool {
        let Selection::Spanning { max_topo_span: Some(most) } = selection else { return false };
        let at = |m: &Member| self.position.get(m.start.index()).copied().unwrap_or(0);
        first.is_some_and(|first| u64::from(at(member)) > u64::from(at(first)).saturating_add(most))
    }
}
