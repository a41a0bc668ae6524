//! The ingredients of the pass that another algorithm would choose differently, one method each. The defaults are
//! the reference; whoever wants another algorithm, or a broken one, replaces a method.

use super::facts::Facts;
use super::key::Key;
use super::legality::Legality;
use super::member::{self, Member, Targets};
use super::merge::{self, Body};
use super::plan::{Reason, Refusal};
use super::select::Open;
use crate::config::bucketing::{Config, Mode};
use crate::graph::{Editor, Graph, NodeId, OrderingEdge};
use crate::ops::Collective;
use crate::passes::repair;

/// What a decision may look at.
pub struct Context<'a> {
    /// The graph as it stands.
    pub editor: &'a Editor,
    /// What is asked for.
    pub config: &'a Config,
    /// The targets of the graph.
    pub targets: &'a Targets,
    /// Facts about the graph as it came in.
    pub facts: &'a Facts,
    /// Whether nothing is taken off in front of a collective that something else must follow.
    pub careful: bool,
}

/// What becomes of a run when a member does not fit the open bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AfterConflict {
    /// It is left out for good, and the next one is looked at.
    Skip,
    /// The run ends, and with it the open bucket.
    Stop,
}

/// The members of one run, which buckets are cut from.
pub type Run = Vec<Member>;

/// The choices of a bucketing algorithm.
pub trait Strategy {
    /// Whether waits are deduplicated first.
    fn deduplicates_waits(&self) -> bool {
        true
    }

    /// Which candidates of a kind there are, in wait order, before filters.
    fn candidates(&self, cx: &Context, kind: Collective) -> Result<Vec<Member>, Refusal> {
        member::in_wait_order(cx, kind)
    }

    /// What the members of a bucket have in common.
    fn key(&self, cx: &Context, member: &Member) -> Key {
        Key::of(member, cx.config.mode)
    }

    /// The bytes of a member that count for the limit; `None` where they cannot be told.
    fn bytes(&self, cx: &Context, member: &Member) -> Option<i64> {
        member::bytes(cx.editor.graph(), member)
    }

    /// The runs that candidates in wait order form.
    fn runs(&self, cx: &Context, candidates: Vec<(Key, Member)>) -> Vec<Run> {
        super::select::runs(cx.config.selection, candidates)
    }

    /// The limit, in bytes, of the bucket with an index of its run.
    fn limit(&self, cx: &Context, group_size: i64, index: usize) -> i64 {
        super::select::limit(cx.config, group_size, index)
    }

    /// What tells whether collectives are independent; `waits` are the waits that may be merged. By default every
    /// dependence counts: data and ordering edges, conflicting accesses of storage, random draws, effects.
    fn legality(&self, facts: &Facts, waits: &[NodeId]) -> Legality {
        Legality::new(&facts.dependences, waits)
    }

    /// What the final order must keep, beyond the edges of the graph.
    fn hazards(&self, facts: &Facts) -> Vec<OrderingEdge> {
        facts.hazards()
    }

    /// Why a member cannot be in any bucket.
    fn fault(&self, cx: &Context, member: &Member) -> Option<Reason> {
        member::fault(cx, member)
    }

    /// Why a member cannot join a bucket that it has the key of.
    fn mismatch(&self, cx: &Context, open: &Open, member: &Member) -> Option<Reason> {
        super::select::mismatch(cx, open, member)
    }

    /// The start or wait of a member of the open bucket that is connected with a candidate. `legality` holds the
    /// open bucket.
    fn conflict(&self, cx: &Context, legality: &mut Legality, open: &Open, m: &Member) -> Option<NodeId> {
        let _ = (cx, open);
        legality.conflict(m.start, m.wait)
    }

    /// What happens after a conflict.
    fn after_conflict(&self) -> AfterConflict {
        AfterConflict::Skip
    }

    /// A bucket is decided: later decisions see it as one node.
    fn decided(&self, legality: &mut Legality, bucket: &[Member]) {
        let starts: Vec<NodeId> = bucket.iter().map(|m| m.start).collect();
        let waits: Vec<NodeId> = bucket.iter().map(|m| m.wait).collect();
        legality.contract(&starts, &waits);
    }

    /// The cast in front of a gather that is folded into the packing, and what it casts.
    fn foldable(&self, cx: &Context, member: &Member) -> Option<(NodeId, NodeId)> {
        merge::foldable(cx, member.input, member.start)
    }

    /// Whether inputs of several dtypes keep their values when packed for results of one dtype; if not, no cast
    /// of the bucket is folded.
    fn packs_exactly(&self, mode: Mode, inputs: &[merge::Piece], to: crate::graph::Dtype) -> bool {
        merge::packs_exactly(mode, inputs, to)
    }

    /// The merged body.
    fn body(&self, kind: Collective, mode: Mode) -> Body {
        merge::body(kind, mode)
    }

    /// The node that the merged body goes before; `None`: the end of the list. By default the node after the last
    /// member in wait order.
    fn anchor(&self, cx: &Context, bucket: &[Member]) -> Option<NodeId> {
        cx.editor.next(bucket.last()?.start)
    }

    /// The node that everything from the first new wait on goes before, if it is to be moved.
    fn wait_anchor(&self, cx: &Context, bucket: &[Member]) -> Option<NodeId> {
        let _ = (cx, bucket);
        None
    }

    /// Whether the region around each merge is sorted.
    fn sorts_regions(&self) -> bool {
        true
    }

    /// Whether new nodes carry the members' metadata, and replaced values' users have theirs renewed.
    fn keeps_metadata(&self) -> bool {
        true
    }

    /// The order of the final list. By default PyTorch's, unless it breaks an ordering edge or a hazard.
    fn final_order(&self, graph: &Graph, hazards: &[OrderingEdge]) -> Result<Vec<NodeId>, repair::Cycle> {
        super::order(graph, hazards)
    }

    /// Where an ordering edge leads once the nodes at its ends have been merged; `None`: it is dropped.
    fn moved_edge(&self, moved: &merge::Moved, edge: OrderingEdge) -> Option<OrderingEdge> {
        moved.edge(edge)
    }
}

/// The reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reference;

impl Strategy for Reference {}
