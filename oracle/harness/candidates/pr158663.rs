//! The historic algorithm: bucketing as PyTorch's PR 158663 first proposed it, with all that was wrong with it.
//!
//! It is a candidate, not a reference: the rules must convict it. Built from the reference's parts by replacing
//! ingredients:
//!
//! - *H1*: the gather reads the slot itself while `_foreach_copy_` fills views of it; no edge orders the two.
//! - *H2*: every collective looks independent of every other.
//! - *H3*: the limit is that of bucket index 0 for every bucket.
//! - *H4*: collectives of one key are grouped over the whole graph, however far apart their waits are.
//! - *H5*: only output bytes count, so a reduce-scatter is taken for its group size too small.
//!
//! All-gather buckets stand right after their first member, reduce-scatter buckets after their last; one
//! topological sort follows. All-reduces are left alone, and only `convert_element_type` is folded.

use super::reference::run_bucketing;
use super::{Answer, Candidate, Capabilities, Refusal, Request};
use crate::graph::{Dtype, Graph, NodeId, OrderingEdge, Out, Value};
use crate::ops::Collective;
use crate::passes::bucketing::merge::{self, Body, Emitter, Merged, Parcel, Piece};
use crate::passes::bucketing::{
    self, Context, Facts, Key, Legality, Member, Mode, Open, Reason, Run, Selection, Strategy, Targets,
    member, select,
};
use crate::passes::repair;
use crate::rules::PassKind;

/// The candidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pr158663;

impl Candidate for Pr158663 {
    fn name(&self) -> &str {
        "pr158663"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { bakes_rank: true, ..Capabilities::of(&[PassKind::Bucketing]) }
    }

    fn run(&self, request: &Request) -> Result<Vec<Answer>, Refusal> {
        run_bucketing(request, &Historic, &|_| {})
    }
}

/// The ingredients that differ from the reference's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Historic;

impl Strategy for Historic {
    fn deduplicates_waits(&self) -> bool {
        false
    }

    fn candidates(&self, cx: &Context, kind: Collective) -> Result<Vec<Member>, bucketing::Refusal> {
        match kind {
            Collective::AllReduce => Ok(Vec::new()),
            kind => {
                let mut members = member::in_wait_order(cx, kind)?;
                // Gathers with `out=` are no candidates.
                members.retain(|member| member.out.is_none());
                Ok(members)
            }
        }
    }

    fn key(&self, _: &Context, member: &Member) -> Key {
        Key::of(member, Mode::Default)
    }

    fn bytes(&self, cx: &Context, member: &Member) -> Option<i64> {
        let graph = cx.editor.graph();
        graph.bytes(graph.tensor_of(member.start)?)
    }

    fn runs(&self, _: &Context, candidates: Vec<(Key, Member)>) -> Vec<Run> {
        select::runs(Selection::Spanning { max_topo_span: None }, candidates)
    }

    fn limit(&self, cx: &Context, group_size: i64, _: usize) -> i64 {
        cx.config.cap().limit(0, group_size)
    }

    fn hazards(&self, _: &Facts) -> Vec<OrderingEdge> {
        Vec::new()
    }

    fn mismatch(&self, _: &Context, _: &Open, _: &Member) -> Option<Reason> {
        None
    }

    fn conflict(&self, _: &Context, _: &mut Legality, _: &Open, _: &Member) -> Option<NodeId> {
        None
    }

    fn decided(&self, _: &mut Legality, _: &[Member]) {}

    fn foldable(&self, cx: &Context, member: &Member) -> Option<(NodeId, NodeId)> {
        let graph = cx.editor.graph();
        let is_cast = Targets::calls(graph, member.input, &[cx.targets.convert]);
        match graph.arg(member.input, 0) {
            Some(Value::Node(from)) if is_cast && cx.editor.users(member.input) == [member.start] => {
                Some((member.input, from))
            }
            _ => None,
        }
    }

    fn packs_exactly(&self, _: Mode, _: &[Piece], _: Dtype) -> bool {
        // Each piece is converted on its own.
        true
    }

    fn body(&self, kind: Collective, mode: Mode) -> Body {
        match kind {
            Collective::AllGather => gather_without_edge,
            Collective::ReduceScatter => reduce_scatter,
            kind => merge::body(kind, mode),
        }
    }

    fn anchor(&self, cx: &Context, bucket: &[Member]) -> Option<NodeId> {
        let first = bucket.first()?;
        match first.kind {
            Collective::AllGather => cx.editor.next(first.start),
            _ => cx.editor.next(bucket.last()?.start),
        }
    }

    fn sorts_regions(&self) -> bool {
        false
    }

    fn keeps_metadata(&self) -> bool {
        false
    }

    fn final_order(&self, graph: &Graph, _: &[OrderingEdge]) -> Result<Vec<NodeId>, repair::Cycle> {
        repair::stable_data_order(graph)
    }
}

/// The merged all-gather: the inputs are copied into views of the slot, and the gather reads the slot.
fn gather_without_edge(emit: &mut Emitter, parcel: &Parcel) -> Option<Merged> {
    let numels = parcel.numels();
    let numel: i64 = numels.iter().sum();
    let dtype = *parcel.dtypes.first()?;
    let device = parcel.inputs.first()?.layout.device;
    let buffer = emit.empty(&[numel * parcel.group_size], dtype, device);
    let slot = emit.slice(&buffer, parcel.rank * numel, numel);
    let views = emit.split(&slot, &numels, 0);
    let flat: Vec<Piece> = parcel.inputs.iter().map(|input| emit.reshape(input, &[-1])).collect();
    let (into, from) = (emit.list(&views), emit.list(&flat));
    let copy = emit.node("aten._foreach_copy_.default", &[into, from], &[], Out::Absent);
    let args = [Value::Node(slot.id), Value::Int(parcel.group_size), parcel.group];
    let out = [("out", Value::Node(buffer.id))];
    let target = "_c10d_functional.all_gather_into_tensor_out.default";
    let start = emit.call(target, &args, &out, buffer.layout.clone());
    let wait = emit.wait(&start);
    let rows = emit.reshape(&wait, &[parcel.group_size, -1]);
    let columns = emit.split(&rows, &numels, 1);
    let outs: Vec<Piece> = columns
        .iter()
        .zip(&parcel.inputs)
        .map(|(column, input)| {
            emit.reshape(column, &merge::more_rows(&input.layout.shape, parcel.group_size))
        })
        .collect();
    Some(Merged {
        start: start.id,
        waits: vec![wait.id],
        outs,
        packers: vec![copy; parcel.inputs.len()],
        filler: None,
    })
}

/// The merged reduce-scatter: the parts for each rank, cut out one by one and put together again. The inputs must be
/// contiguous.
fn reduce_scatter(emit: &mut Emitter, parcel: &Parcel) -> Option<Merged> {
    let ranks = parcel.group_size;
    if !parcel.inputs.iter().all(|input| input.layout.is_contiguous()) {
        return None;
    }
    let flat: Vec<Piece> = parcel.inputs.iter().map(|input| emit.reshape(input, &[-1])).collect();
    let parts: Vec<Vec<Piece>> = flat
        .iter()
        .map(|x| {
            let sizes = (0..ranks).map(|_| x.layout.numel() / ranks).collect::<Vec<_>>();
            emit.split(x, &sizes, 0)
        })
        .collect();
    let by_rank: Vec<Piece> = (0..usize::try_from(ranks).ok()?)
        .flat_map(|rank| parts.iter().map(move |p| p[rank].clone()))
        .collect();
    let packed = emit.cat(&by_rank, 0, flat.first()?.layout.dtype);
    let args = [Value::Node(packed.id), parcel.reduce_op, Value::Int(ranks), parcel.group];
    let mut layout = packed.layout.clone();
    layout.shape[0] /= ranks;
    let start = emit.call("_c10d_functional.reduce_scatter_tensor.default", &args, &[], layout);
    let wait = emit.wait(&start);
    let mut at = 0;
    let mut outs = Vec::with_capacity(parcel.shapes.len());
    for shape in &parcel.shapes {
        let shape = merge::fewer_rows(shape, ranks);
        let numel: i64 = shape.iter().product();
        let piece = emit.slice(&wait, at, numel);
        outs.push(emit.reshape(&piece, &shape));
        at += numel;
    }
    let packers = flat.iter().map(|x| x.id).collect();
    Some(Merged { start: start.id, waits: vec![wait.id], outs, packers, filler: None })
}
