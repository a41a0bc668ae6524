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
//! Where two matchings account for everything, it takes the one that fills the new launches in list order.

use super::{AnalyzedGraph, Correspondence};
use crate::analysis::collectives::CollectiveCall;
use crate::analysis::storages::StorageIndex;
use crate::graph::NodeId;
use crate::ops::{Kind, Move};
use fixedbitset::FixedBitSet;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Dead ends of one search for a matching: beyond them a worse one is taken.
const DEAD_ENDS: u32 = 20_000;

/// Launches with the merges that carry them.
type Carried = [(usize, Vec<usize>)];

/// Finds the places of unread members.
pub(super) struct Unread<'c, 'a> {
    correspondence: &'c Correspondence,
    before: &'c AnalyzedGraph<'a>,
    after: &'c AnalyzedGraph<'a>,
    launches: &'c [usize],
    packed: Vec<Packed>,
    /// The merges that pack a node.
    packing: FxHashMap<NodeId, Vec<usize>>,
    /// The merges that pack the result of each merge.
    packing_result: Vec<Vec<usize>>,
    /// The bytes that each launch before sends.
    sent: Vec<i64>,
    /// The place of each erased launch among all of them.
    index: FxHashMap<usize, usize>,
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
    /// The first and the last of the members before it that nothing tells apart from it: a matching fills the merges with
    /// such members in order.
    twin: Option<(usize, usize)>,
}

/// What a new launch has left besides the members that it has.
#[derive(Clone)]
struct Left {
    slots: isize,
    bytes: i128,
    members: FixedBitSet,
    /// The launches that its members need.
    needs: FixedBitSet,
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
        let merge_at = launches.iter().enumerate().map(|(merge, &launch)| (launch, merge)).collect();
        let packed: Vec<Packed> =
            launches.iter().map(|&launch| packed_by(after, launch, &merge_at, is_new)).collect();
        let mut packing: FxHashMap<NodeId, Vec<usize>> = FxHashMap::default();
        let mut packing_result = vec![Vec::new(); launches.len()];
        for (merge, packed) in packed.iter().enumerate() {
            packed.nodes.iter().for_each(|&node| packing.entry(node).or_default().push(merge));
            packed.merges.iter().for_each(|&other| packing_result[other].push(merge));
        }
        let sent = (0..before.collectives.calls.len()).map(|launch| sent_bytes(before, launch)).collect();
        let index = FxHashMap::default();
        Unread { correspondence, before, after, launches, packed, packing, packing_result, sent, index }
    }

    /// Fills in the merges of launches that have none yet, and returns the merges that they might be in instead.
    /// `carried` is in wait order.
    pub(super) fn find(&mut self, carried: &mut Carried) -> Vec<usize> {
        self.index = carried.iter().enumerate().map(|(index, &(launch, _))| (launch, index)).collect();
        let unread = carried.iter().enumerate().filter(|(_, (_, merges))| merges.is_empty());
        let mut members: Vec<Member> =
            unread.map(|(index, &(launch, _))| self.member(index, launch)).collect();
        self.find_twins(&mut members);
        let placed =
            [Demand::Full, Demand::Bytes].into_iter().any(|demand| self.place(&members, carried, demand));
        if !placed {
            // As far as they fit, leaving out whoever fits nowhere.
            let mut left = self.left(carried);
            for member in &members {
                let mut merges = self.merges_of(member, carried, Demand::Places).into_iter();
                if let Some(merge) = merges.find(|&merge| left[merge].slots > 0) {
                    left[merge].slots -= 1;
                    carried[member.index].1 = vec![merge];
                }
            }
        }
        let mut doubtful = Vec::new();
        for member in members.iter().filter(|member| member.twin.is_none()) {
            let possible = self.merges_of(member, carried, Demand::Places);
            if possible.len() > 1 {
                doubtful.extend(possible);
            }
        }
        doubtful.sort_unstable();
        doubtful.dedup();
        doubtful
    }

    fn member(&self, index: usize, launch: usize) -> Member {
        let (nodes, from) = self.payload(launch);
        Member { index, launch, bytes: self.sent[launch], nodes, from, twin: None }
    }

    /// Finds members that send the same by the same call, and that no launch needs nor they any. What they send the value
    /// of is placed before them.
    fn find_twins(&self, members: &mut [Member]) {
        let joined = self.before.launch_reachability().ok().map(|reachability| {
            let mut joined = FixedBitSet::with_capacity(reachability.marks().len());
            for (launch, needs) in (0..).map_while(|launch| Some((launch, reachability.ancestors(launch)?))) {
                joined.union_with(needs);
                joined.set(launch, joined[launch] || !needs.is_clear());
            }
            joined
        });
        let mut last: FxHashMap<_, (usize, usize)> = FxHashMap::default();
        for at in 0..members.len() {
            let Member { launch, bytes, ref nodes, ref from, .. } = members[at];
            let own = joined.as_ref().is_some_and(|joined| joined[launch]).then_some(launch);
            let call = &self.before.collectives.calls[launch];
            let dtype = self.before.graph.tensor_of(call.node).map(|tensor| tensor.dtype);
            let what = (
                call.kind,
                call.group.to_string(),
                call.reduce_op,
                dtype,
                bytes,
                nodes.clone(),
                from.clone(),
            );
            let of_later =
                |from: &usize| self.index.get(from).is_some_and(|&index| index > members[at].index);
            let own = own.or_else(|| from.iter().any(of_later).then_some(launch));
            let (first, last) = last.entry((own, what)).or_insert((at, at));
            if at > *first {
                members[at].twin = Some((*first, std::mem::replace(last, at)));
            }
        }
    }

    /// What each new launch has left.
    fn left(&self, carried: &Carried) -> Vec<Left> {
        let left = |packed: &Packed| Left {
            slots: packed.slots as isize,
            bytes: packed.bytes.into(),
            members: FixedBitSet::new(),
            needs: FixedBitSet::new(),
        };
        let mut left: Vec<Left> = self.packed.iter().map(left).collect();
        for (launch, merges) in carried {
            merges.iter().for_each(|&merge| drop(self.put(&mut left[merge], *launch)));
        }
        left
    }

    /// Puts a member into a merge; gives what the others needed, where that was less.
    fn put(&self, left: &mut Left, launch: usize) -> Option<FixedBitSet> {
        left.slots -= 1;
        left.bytes -= i128::from(self.sent[launch]);
        left.members.grow_and_insert(launch);
        let needs = self.before.launch_reachability().ok().and_then(|all| all.ancestors(launch));
        needs.filter(|needs| !needs.is_clear()).map(|needs| {
            let before = left.needs.clone();
            left.needs.union_with(needs);
            before
        })
    }

    /// Places the members one after another, taking back what leads nowhere.
    fn place(&self, members: &[Member], carried: &mut Carried, demand: Demand) -> bool {
        let mut left = self.left(carried);
        let to_send: i128 = members.iter().map(|member| i128::from(member.bytes)).sum();
        if left.iter().map(|left| left.bytes).sum::<i128>() != to_send {
            return false;
        }
        // For each member that has a place or is given one: where it may be, which twins share, and the choice among these.
        let mut merges: Vec<Rc<[usize]>> = Vec::new();
        let mut chosen: Vec<(usize, Option<FixedBitSet>)> = Vec::new();
        let (mut next, mut dead_ends) = (0, 0);
        loop {
            let at = chosen.len();
            let found = members.get(at).and_then(|member| {
                if merges.len() == at {
                    let of_twin = member.twin.map(|(first, last)| {
                        next = chosen[last].0;
                        merges[first].clone()
                    });
                    merges.push(of_twin.unwrap_or_else(|| self.merges_of(member, carried, demand).into()));
                }
                let fits = |&choice: &usize| self.fits(member, &left[merges[at][choice]]);
                (next..merges[at].len()).find(fits)
            });
            if let Some(choice) = found {
                let (member, merge) = (&members[at], merges[at][choice]);
                chosen.push((choice, self.put(&mut left[merge], member.launch)));
                carried[member.index].1 = vec![merge];
                next = 0;
                continue;
            }
            let is_full = |left: &Left| left.bytes == 0 && (demand != Demand::Full || left.slots == 0);
            if at == members.len() && left.iter().all(is_full) {
                return true;
            }
            dead_ends += 1;
            merges.truncate(at);
            while let Some((choice, needs)) = chosen.pop() {
                let (member, left) = (&members[chosen.len()], &mut left[merges[chosen.len()][choice]]);
                left.slots += 1;
                left.bytes += i128::from(member.bytes);
                left.members.set(member.launch, false);
                left.needs = needs.unwrap_or_else(|| std::mem::take(&mut left.needs));
                carried[member.index].1.clear();
                next = choice + 1;
                if dead_ends < DEAD_ENDS {
                    break;
                }
            }
            if at == 0 || dead_ends >= DEAD_ENDS {
                return false;
            }
        }
    }

    /// The merges that a member may be in if they have room: those that pack what it sends, or any if it has nothing to
    /// send.
    fn merges_of(&self, member: &Member, carried: &Carried, demand: Demand) -> Vec<usize> {
        let old = &self.before.collectives.calls[member.launch];
        let group = old.group.to_string();
        let dtype = |side: &AnalyzedGraph, node| Some(side.graph.tensor_of(node)?.dtype);
        // What has no elements may come from a buffer that nothing connects with the launch it was gathered by, so
        // that it is not seen to be sent.
        let mut merges: Vec<usize> = match member.bytes == 0 && demand != Demand::Full {
            true => (0..self.launches.len()).collect(),
            false => {
                let of_nodes = member.nodes.iter().filter_map(|node| self.packing.get(node)).flatten();
                let sent = member.from.iter().filter_map(|launch| self.index.get(launch));
                let merges = sent.flat_map(|&index| &carried[index].1);
                of_nodes.chain(merges.flat_map(|&merge| &self.packing_result[merge])).copied().collect()
            }
        };
        merges.sort_unstable();
        merges.dedup();
        merges.retain(|&merge| {
            let new: &CollectiveCall = &self.after.collectives.calls[self.launches[merge]];
            new.kind == old.kind
                && new.group.to_string() == group
                && (demand == Demand::Places || new.reduce_op == old.reduce_op)
                && (demand != Demand::Full || dtype(self.before, old.node) == dtype(self.after, new.node))
        });
        merges
    }

    /// Whether a merge has a place and bytes for a member, which needs none of those that it has already, nor they it.
    fn fits(&self, member: &Member, left: &Left) -> bool {
        let needs = self.before.launch_reachability().ok().and_then(|all| all.ancestors(member.launch));
        left.slots > 0
            && left.bytes >= member.bytes.into()
            && !left.needs.contains(member.launch)
            && needs.is_none_or(|needs| needs.is_disjoint(&left.members))
    }

    /// What a launch sends, in the nodes after: its input, what a cast before it converts, or what erased nodes before
    /// it were made from; and the erased launches whose value it sends.
    fn payload(&self, launch: usize) -> (Vec<NodeId>, Vec<usize>) {
        let (before, after_of) = (self.before, &self.correspondence.after_of);
        let (mut nodes, mut launches) = (Vec::new(), Vec::new());
        let Some(&input) = before.collectives.calls[launch].inputs.first() else { return (nodes, launches) };
        let kind = |id| before.ops.call(before.graph, id).map(|info| info.kind);
        let mut queue = vec![input];
        let mut waited = FxHashSet::default();
        if kind(input) == Some(Kind::Cast) {
            queue.extend(before.edges.inputs(input).first());
        }
        let mut seen: FxHashSet<NodeId> = queue.iter().copied().collect();
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
                let values = values.filter(|&value| waited.insert(value));
                let users = values.flat_map(|value| before.edges.users(value));
                found.extend(users.filter(|&&user| kind(user) == Some(Kind::Wait)));
            }
            queue.extend(found.into_iter().filter(|&next| seen.insert(next)));
        }
        (nodes, launches)
    }
}

/// What a new launch packs: backward through new nodes, and to the new writers of what is read, up to surviving nodes
/// and other launches.
fn packed_by(
    after: &AnalyzedGraph,
    launch: usize,
    merge_at: &FxHashMap<usize, usize>,
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
    let own: FxHashSet<StorageIndex> = call.inputs.iter().flat_map(|&input| storages_of(input)).collect();
    // Whoever fills memory of its own for what is packed here makes no places here.
    let mut stack: Vec<(NodeId, bool)> = call.inputs.iter().map(|&input| (input, true)).collect();
    let mut seen = FxHashSet::from_iter([(call.node, true)]);
    let mut seen_storages = FxHashSet::default();
    let mut joined = 1;
    while let Some((id, packs)) = stack.pop() {
        if !is_new(id) {
            packed.nodes.push(id);
            continue;
        }
        if seen.contains(&(id, true)) || !seen.insert((id, packs)) {
            continue;
        }
        if let Some(other) = after.collectives.launch_at(id) {
            packed.merges.extend(merge_at.get(&other));
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
        let mut fillers = storages_of(id).flat_map(|storage| after.fillers(storage));
        if !fillers.any(|&filler| is_new(filler) && filler != call.node) {
            let packs = packs && storages_of(id).any(|storage| own.contains(&storage));
            let storages = storages_of(id).filter(|&storage| seen_storages.insert((storage, packs)));
            let writers =
                storages.flat_map(|storage| after.writers(storage)).filter(|&writer| is_new(writer));
            stack.extend(writers.map(|writer| (writer, packs)));
        }
    }
    packed.nodes.sort_unstable();
    packed.nodes.dedup();
    packed.merges.sort_unstable();
    packed.merges.dedup();
    packed.slots = packed.slots.max(joined);
    packed
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
