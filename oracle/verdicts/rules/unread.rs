//! Which new launch carries a merged launch whose value nobody reads.
//!
//! # The idea
//!
//! Nothing leads from a reader to the new launch, so the member is found by what it sends: going back from a new launch
//! through new nodes one arrives at the tensors that it packs. Several members may send the same tensor, or nothing at
//! all (no elements), so who is where is a matching. One is looked for that accounts for every byte and puts no two
//! launches together of which one needs the other; only where there is none, as after a pass that lost or doubled
//! something, the members are placed as far as they fit.
//!
//! # What it does not do
//!
//! Where two matchings account for everything, it takes the one that fills the new launches in wait order.

use super::{AnalyzedGraph, Correspondence};
use crate::analysis::GroupName;
use crate::analysis::collectives::CollectiveCall;
use crate::analysis::storages::StorageIndex;
use crate::graph::NodeId;
use crate::ops::{Kind, Move};
use rustc_hash::FxHashSet;

/// Steps of one search for a matching: beyond it a worse one is taken.
const STEPS: u32 = 20_000;

/// Launches with the merges that carry them.
type Carried = [(usize, Vec<usize>)];

/// Finds the places of unread members.
pub(super) struct Unread<'c, 'a> {
    correspondence: &'c Correspondence,
    before: &'c AnalyzedGraph<'a>,
    after: &'c AnalyzedGraph<'a>,
    launches: &'c [usize],
    packed: Vec<Packed>,
    /// The bytes that each launch before sends.
    sent: Vec<i64>,
}

/// What a new launch packs.
struct Packed {
    /// Surviving nodes.
    nodes: Vec<NodeId>,
    /// Merges whose results it packs.
    merges: Vec<usize>,
    /// Members that it can have: the elements of the longest list among the nodes that pack, or of all that are joined one
    /// into the other.
    slots: usize,
    /// Bytes that it sends.
    bytes: i64,
}

/// A member to be placed.
struct Member {
    /// Its place among all erased launches.
    index: usize,
    launch: usize,
    bytes: i64,
    /// What it sends, in the nodes after.
    nodes: Vec<NodeId>,
    /// The erased launches whose value it sends.
    from: Vec<usize>,
}

/// What is demanded of a matching.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Demand {
    /// All bytes and all places are accounted for, and every member has the dtype of its launch.
    Full,
    /// All bytes are accounted for.
    Bytes,
    /// No launch has more members than places.
    Places,
}

impl<'c, 'a> Unread<'c, 'a> {
    /// Looks at what each new launch packs.
    pub(super) fn new(
        correspondence: &'c Correspondence,
        before: &'c AnalyzedGraph<'a>,
        after: &'c AnalyzedGraph<'a>,
        launches: &'c [usize],
        is_new: &dyn Fn(NodeId) -> bool,
    ) -> Unread<'c, 'a> {
        let packed = launches.iter().map(|&launch| packed_by(after, launch, launches, is_new)).collect();
        let sent = (0..before.collectives.calls.len()).map(|launch| sent_bytes(before, launch)).collect();
        Unread { correspondence, before, after, launches, packed, sent }
    }

    /// Fills in the merges of launches that have none yet, and returns the merges that they might be in instead.
    /// `carried` is in wait order.
    pub(super) fn find(&self, carried: &mut Carried) -> Vec<usize> {
        let unread = carried.iter().enumerate().filter(|(_, (_, merges))| merges.is_empty());
        let members: Vec<Member> = unread.map(|(index, &(launch, _))| self.member(index, launch)).collect();
        let placed = [Demand::Full, Demand::Bytes].into_iter().any(|demand| {
            let mut steps = STEPS;
            self.place(&members, carried, demand, &mut steps)
        });
        // As far as they fit, leaving out whoever fits nowhere.
        for member in members.iter().filter(|_| !placed) {
            if let Some(&merge) = self.merges_of(member, carried, Demand::Places).first() {
                carried[member.index].1 = vec![merge];
            }
        }
        let mut doubtful = Vec::new();
        for member in &members {
            let possible: Vec<usize> =
                (0..self.launches.len()).filter(|&merge| self.may_be_in(member, merge, carried)).collect();
            if possible.len() > 1 {
                doubtful.extend(possible);
            }
        }
        doubtful.sort_unstable();
        doubtful.dedup();
        doubtful
    }

    /// Whether a launch packs what a member sends, or the member has nothing to send.
    fn may_be_in(&self, member: &Member, merge: usize, carried: &Carried) -> bool {
        let (old, new) = self.calls(member, merge);
        let same_call = new.kind == old.kind && has_one_name(new.group, old.group);
        same_call && (member.bytes == 0 || self.sends(member, merge, carried))
    }

    fn calls(&self, member: &Member, merge: usize) -> (&CollectiveCall<'a>, &CollectiveCall<'a>) {
        (&self.before.collectives.calls[member.launch], &self.after.collectives.calls[self.launches[merge]])
    }

    fn sends(&self, member: &Member, merge: usize, carried: &Carried) -> bool {
        let packed = &self.packed[merge];
        let mut sources =
            carried.iter().filter(|(l, _)| member.from.contains(l)).flat_map(|(_, merges)| merges);
        member.nodes.iter().any(|node| packed.nodes.contains(node))
            || sources.any(|merge| packed.merges.contains(merge))
    }

    fn member(&self, index: usize, launch: usize) -> Member {
        let (nodes, from) = self.payload(launch);
        Member { index, launch, bytes: self.sent[launch], nodes, from }
    }

    /// Places the members one after another, taking back what leads nowhere.
    fn place(&self, members: &[Member], carried: &mut Carried, demand: Demand, steps: &mut u32) -> bool {
        let Some((member, rest)) = members.split_first() else {
            return (0..self.launches.len()).all(|merge| {
                let (slots, bytes) = self.left(merge, carried);
                bytes == 0 && (demand != Demand::Full || slots == Some(0))
            });
        };
        for merge in self.merges_of(member, carried, demand) {
            if *steps == 0 {
                break;
            }
            *steps -= 1;
            carried[member.index].1 = vec![merge];
            if self.place(rest, carried, demand, steps) {
                return true;
            }
            carried[member.index].1.clear();
        }
        false
    }

    /// Places and bytes that a new launch has left; no places where it has too many members already.
    fn left(&self, merge: usize, carried: &Carried) -> (Option<usize>, i64) {
        let packed = &self.packed[merge];
        let members = carried.iter().filter(|(_, merges)| merges.contains(&merge));
        members.fold((Some(packed.slots), packed.bytes), |(slots, bytes), (launch, _)| {
            (slots.and_then(|n| n.checked_sub(1)), bytes.saturating_sub(self.sent[*launch]))
        })
    }

    /// The merges that a member may be in, those that have members already first, in wait order.
    fn merges_of(&self, member: &Member, carried: &Carried, demand: Demand) -> Vec<usize> {
        let mut seen = FxHashSet::default();
        let filled = carried.iter().flat_map(|(_, merges)| merges.iter().copied());
        let merges = filled.chain(0..self.launches.len()).filter(|&merge| seen.insert(merge));
        merges.filter(|&merge| self.fits(member, merge, carried, demand)).collect()
    }

    fn fits(&self, member: &Member, merge: usize, carried: &Carried, demand: Demand) -> bool {
        let (slots, bytes) = self.left(merge, carried);
        if slots.is_none_or(|slots| slots == 0) || !self.may_be_in(member, merge, carried) {
            return false;
        }
        let (old, new) = self.calls(member, merge);
        let dtype =
            |side: &AnalyzedGraph, node: NodeId| side.graph.tensor_of(node).map(|tensor| tensor.dtype);
        // What has no elements may come from a buffer that nothing connects with the launch it was gathered by, so
        // that it is not seen to be sent.
        let plain =
            dtype(self.before, old.node) == dtype(self.after, new.node) && self.sends(member, merge, carried);
        match demand {
            Demand::Places => true,
            Demand::Full if !plain => false,
            _ => {
                new.reduce_op == old.reduce_op
                    && bytes >= member.bytes
                    && self.is_independent(member, merge, carried)
            }
        }
    }

    /// Whether a member needs none of those that a merge has already, nor they it.
    fn is_independent(&self, member: &Member, merge: usize, carried: &Carried) -> bool {
        let Ok(reachability) = self.before.launch_reachability() else { return true };
        let mut others = carried.iter().filter(|(_, merges)| merges.contains(&merge));
        others.all(|&(other, _)| {
            !reachability.reaches(other, member.launch) && !reachability.reaches(member.launch, other)
        })
    }

    /// What a launch sends, in the nodes after: its input, what a cast before it converts, or what erased nodes before
    /// it were made from; and the erased launches whose value it sends.
    fn payload(&self, launch: usize) -> (Vec<NodeId>, Vec<usize>) {
        let (before, after_of) = (self.before, &self.correspondence.after_of);
        let (mut nodes, mut launches) = (Vec::new(), Vec::new());
        let Some(&input) = before.collectives.calls[launch].inputs.first() else { return (nodes, launches) };
        let kind = |id| before.ops.call(before.graph, id).map(|info| info.kind);
        let mut queue = vec![input];
        if kind(input) == Some(Kind::Cast) {
            queue.extend(before.edges.inputs(input).first());
        }
        let mut at = 0;
        while let Some(&id) = queue.get(at) {
            at += 1;
            let mut found = Vec::new();
            match (after_of[id.index()], before.collectives.launch_at(id)) {
                (Some(twin), _) => {
                    nodes.push(twin);
                    // Packing that was taken apart may have other users, and stay.
                    if after_of[input.index()].is_none() && moves(before, id) {
                        found.extend_from_slice(before.edges.inputs(id));
                    }
                }
                (None, Some(launch)) => launches.push(launch),
                (None, None) => found.extend_from_slice(before.edges.inputs(id)),
            }
            // Of several waits for one value, or for one another, one stands for all.
            if kind(id) == Some(Kind::Wait) && after_of[id.index()].is_none() {
                let values = before.edges.inputs(id).iter().copied().chain([id]);
                let users = values.flat_map(|value| before.edges.users(value));
                found.extend(users.filter(|&&user| kind(user) == Some(Kind::Wait)));
            }
            for next in found {
                if !queue.contains(&next) {
                    queue.push(next);
                }
            }
        }
        (nodes, launches)
    }
}

/// What a new launch packs: backward through new nodes, and to the new writers of what is read, up to surviving nodes
/// and other launches.
fn packed_by(
    after: &AnalyzedGraph,
    launch: usize,
    launches: &[usize],
    is_new: &dyn Fn(NodeId) -> bool,
) -> Packed {
    let call = &after.collectives.calls[launch];
    let mut packed = Packed {
        nodes: Vec::new(),
        merges: Vec::new(),
        slots: call.inputs.len(),
        bytes: sent_bytes(after, launch),
    };
    let storages = after.storages();
    let storages_of = |id: NodeId| storages.all_parts(id).map(|part| part.storage);
    let own: Vec<StorageIndex> = call.inputs.iter().flat_map(|&input| storages_of(input)).collect();
    // Whoever fills memory of its own for what is packed here makes no places here.
    let mut seen = vec![None; after.graph.len()];
    let mut stack: Vec<(NodeId, bool)> = call.inputs.iter().map(|&input| (input, true)).collect();
    seen[call.node.index()] = Some(true);
    let mut joined = 1;
    while let Some((id, packs)) = stack.pop() {
        if !is_new(id) {
            packed.nodes.push(id);
            continue;
        }
        if seen[id.index()] >= Some(packs) {
            continue;
        }
        seen[id.index()] = Some(packs);
        if let Some(other) = after.collectives.launch_at(id) {
            let merge = launches.iter().position(|&l| l == other);
            packed.merges.extend(merge.filter(|merge| !packed.merges.contains(merge)));
            continue;
        }
        let mut inputs = 0;
        after.graph.for_each_input(id, &mut |input| {
            inputs += 1;
            stack.push((input, packs));
        });
        if packs {
            packed.slots = packed.slots.max(inputs);
            // A bucket may be packed into another one: each `cat` has the places of its list in place of one.
            let is_cat =
                after.ops.call(after.graph, id).is_some_and(|info| info.kind == Kind::Move(Move::Cat));
            joined += if is_cat { inputs.saturating_sub(1) } else { 0 };
        }
        // What another new launch has filled holds its result, whatever was packed there for it.
        if !after.fillers_of(id).any(|filler| is_new(filler) && filler != call.node) {
            let packs = packs && storages_of(id).any(|storage| own.contains(&storage));
            let writers = after.writers_of(id).into_iter().filter(|&writer| is_new(writer));
            stack.extend(writers.map(|writer| (writer, packs)));
        }
    }
    packed.slots = packed.slots.max(joined);
    packed
}

/// Whether two launches name their groups alike.
fn has_one_name(a: GroupName, b: GroupName) -> bool {
    match (a, b) {
        (GroupName::Text(a), GroupName::Text(b)) => a == b,
        _ => a.to_string() == b.to_string(),
    }
}

/// The bytes that a launch sends, all its inputs together.
fn sent_bytes(side: &AnalyzedGraph, launch: usize) -> i64 {
    let inputs = side.collectives.calls[launch].inputs.iter();
    let bytes = |&input: &NodeId| side.graph.bytes(side.graph.tensor_of(input)?);
    inputs.filter_map(bytes).fold(0, i64::saturating_add)
}

/// Whether a node only moves elements.
fn moves(side: &AnalyzedGraph, id: NodeId) -> bool {
    side.ops.call(side.graph, id).is_some_and(|info| {
        matches!(info.kind, Kind::View(_) | Kind::Move(_) | Kind::GetItem | Kind::Cast | Kind::Fill(_))
    })
}
