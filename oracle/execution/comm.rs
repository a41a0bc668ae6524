//! Collectives in progress, for all ranks.
//!
//! A *channel* is one instance of a process group, or one direction between two of its members for sends and
//! receives. Its *rounds* are the collectives of its members' sequences: round n holds what each member starts as
//! its n-th collective there, with a copy of the inputs as they were at that moment. A round is complete when all
//! members have started it; then each of them can have its result.

use super::block::{Block, Mark, joined, whole};
use super::domain::{Domain, Outcome, RankReduce, Trouble, raise};
use super::layout::{self, Dims};
use super::memory::Memory;
use super::run::LaunchNote;
use crate::graph::{Dtype, NodeId, World};
use crate::ops::Collective;
use rustc_hash::FxHashMap;
use std::fmt;

/// What a collective is, as far as all members have to agree.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// Its kind.
    pub kind: Collective,
    /// Whether it is done when its call is.
    pub at_once: bool,
    /// The reduction.
    pub op: Option<RankReduce>,
    /// The source of a broadcast, by its position in the group.
    pub root: Option<i64>,
    /// The dimensions that `shard_dim_alltoall` gathers and splits.
    pub dims: Option<(usize, usize)>,
    /// The tag of a message.
    pub tag: i64,
    /// Element type and number of elements of each input.
    pub tensors: Vec<(Dtype, usize)>,
}

impl Launch {
    /// Whether two members start the same.
    fn meets(&self, other: &Launch) -> bool {
        let terms = |l: &Launch| (l.at_once, l.op, l.root, l.tag, l.dims, l.tensors.len());
        let dtypes = |l: &Launch| l.tensors.iter().map(|t| t.0).collect::<Vec<_>>();
        let is_message = self.kind.is_message() && other.kind.is_message();
        (self.kind == other.kind || is_message)
            && terms(self) == terms(other)
            && (self.kind.is_unmodelled()
                || self.tensors == other.tensors
                || self.kind == Collective::AllToAll && dtypes(self) == dtypes(other))
    }
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.name())?;
        if let Some(op) = self.op {
            write!(f, " {}", op.name())?;
        }
        if let Some(root) = self.root {
            write!(f, " from {root}")?;
        }
        for (i, (dtype, numel)) in self.tensors.iter().enumerate() {
            write!(f, "{} {}[{numel}]", if i == 0 { " of" } else { "," }, dtype.short())?;
        }
        Ok(())
    }
}

/// Where a launch sits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub channel: usize,
    pub round: usize,
    /// Position in the group.
    pub position: usize,
}

/// One member's part in a round.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub rank: u32,
    pub node: NodeId,
    pub what: Launch,
    /// The inputs as they were when the collective started, with the shapes they had.
    pub inputs: Vec<(Block, Dims)>,
    /// Rows sent to and received from each member (all_to_all).
    pub splits: (Vec<i64>, Vec<i64>),
    /// A hash of all arguments, for a kind that is not modelled.
    pub digest: u64,
}

#[derive(Clone, Debug)]
struct Round {
    sent: Vec<Option<Sent>>,
    present: usize,
}

#[derive(Clone, Debug)]
struct Channel {
    group: usize,
    members: Vec<u32>,
    /// How many rounds each member has started.
    started: Vec<usize>,
    rounds: Vec<Round>,
}

/// All communication of a run.
#[derive(Clone, Debug)]
pub(crate) struct Comm<'w> {
    world: &'w World,
    channels: Vec<Channel>,
    /// The channel of the first instance of each group.
    first: Vec<usize>,
    /// (group, instance, source, destination) to channel: how messages meet is said in `analysis/messages.rs`.
    pairs: FxHashMap<(u32, u32, usize, usize), usize>,
}

impl<'w> Comm<'w> {
    pub fn new(world: &'w World) -> Comm<'w> {
        let mut this = Comm { world, channels: Vec::new(), first: Vec::new(), pairs: FxHashMap::default() };
        for (g, group) in world.groups.iter().enumerate() {
            this.first.push(this.channels.len());
            this.channels.extend(group.instances.iter().map(|members| Channel::new(g, members.clone())));
        }
        this
    }

    /// The instance of a group that a rank belongs to: (instance, position, members).
    pub fn membership(&self, group: u32, rank: u32) -> Outcome<(u32, usize, &[u32])> {
        let group = &self.world.groups[group as usize];
        let (instance, position) = group
            .instance_of(rank)
            .ok_or_else(|| raise!("rank {rank} is not in process group {:?}", group.name))?;
        Ok((instance as u32, position, &group.instances[instance]))
    }

    /// The channel of a group instance.
    pub fn channel(&self, group: u32, instance: u32) -> usize {
        self.first[group as usize] + instance as usize
    }

    /// The channel from one member of a group instance to another.
    pub fn pair(&mut self, group: u32, instance: u32, from: usize, to: usize) -> usize {
        let members = &self.world.groups[group as usize].instances[instance as usize];
        let channels = &mut self.channels;
        *self.pairs.entry((group, instance, from, to)).or_insert_with(|| {
            channels.push(Channel::new(group as usize, vec![members[from], members[to]]));
            channels.len() - 1
        })
    }

    /// A member starts its next collective on a channel.
    pub fn start(&mut self, channel: usize, position: usize, sent: Sent) -> Outcome<Place> {
        let name = |group: usize| self.world.groups[group].name.clone();
        let at = &mut self.channels[channel];
        let round = at.started[position];
        at.started[position] += 1;
        if at.rounds.len() <= round {
            at.rounds.push(Round { sent: vec![None; at.members.len()], present: 0 });
        }
        let slot = &mut at.rounds[round];
        if let Some(other) = slot.sent.iter().flatten().next().filter(|other| !other.what.meets(&sent.what)) {
            let (group, [one, two]) = (name(at.group), [other, &sent].map(|of| (of.rank, &of.what)));
            return Err(Trouble::Apart(format!(
                "number {round} on {group} is {} on rank {}, and {} on rank {}",
                one.1, one.0, two.1, two.0
            )));
        }
        slot.sent[position] = Some(sent);
        slot.present += 1;
        Ok(Place { channel, round, position })
    }

    /// Whether all members have started a round.
    pub fn complete(&self, place: Place) -> bool {
        let channel = &self.channels[place.channel];
        channel.rounds[place.round].present == channel.members.len()
    }

    /// Rows that a member sends to and receives from each member (all_to_all).
    pub fn splits(&self, place: Place) -> (Vec<i64>, Vec<i64>) {
        let round = &self.channels[place.channel].rounds[place.round];
        round.sent[place.position].as_ref().map(|sent| sent.splits.clone()).unwrap_or_default()
    }

    /// How many members take part.
    pub fn size(&self, place: Place) -> usize {
        self.channels[place.channel].members.len()
    }

    /// Elements of inputs that were overwritten in flight lose their value.
    pub fn taint(&mut self, memory: &mut Memory, launches: &[LaunchNote]) {
        for taint in memory.taints.drain(..) {
            let place = launches[taint.launch as usize].place;
            let round = &mut self.channels[place.channel].rounds[place.round];
            let Some(sent) = &mut round.sent[place.position] else { continue };
            let dtype = sent.what.tensors[taint.input].0;
            let block = &mut sent.inputs[taint.input].0;
            block.marks.resize(block.cells.len(), Mark::Known);
            let per = block.per_element(dtype).max(1);
            block.marks[taint.element * per..(taint.element + 1) * per].fill(Mark::Poison);
        }
    }

    /// What a member receives as output number `output` of a complete round.
    pub fn result(&self, domain: &dyn Domain, place: Place, output: usize) -> Outcome<Block> {
        let channel = &self.channels[place.channel];
        let sent: Vec<&Sent> = channel.rounds[place.round].sent.iter().flatten().collect();
        let (me, ranks) = (place.position, sent.len());
        let mine = sent[me];
        let input = |from: usize| &sent[from].inputs[output];
        let dtype = mine.what.tensors.get(output).map_or(Dtype::F32, |t| t.0);
        match mine.what.kind {
            Collective::AllGather => {
                Ok(concat(domain, sent.iter().map(|s| s.inputs[output].0.clone()).collect()))
            }
            Collective::AllReduce | Collective::ReduceScatter => {
                let count = mine.what.tensors[output].1;
                let range = match mine.what.kind {
                    Collective::AllReduce => 0..count,
                    _ => me * (count / ranks)..(me + 1) * (count / ranks),
                };
                let parts: Vec<&Block> = sent.iter().map(|s| &s.inputs[output].0).collect();
                reduce(domain, mine.what.op.unwrap_or(RankReduce::Sum), dtype, &parts, range)
            }
            Collective::AllToAll => {
                let mut pieces = Vec::with_capacity(ranks);
                for (from, other) in sent.iter().enumerate() {
                    if other.splits.0.get(me) != mine.splits.1.get(from) {
                        let (own, theirs) = (&mine.splits.1, &other.splits.0);
                        return Err(Trouble::Apart(format!(
                            "rank {} sends {theirs:?} rows and rank {} expects {own:?}",
                            other.rank, mine.rank
                        )));
                    }
                    let (block, shape) = input(from);
                    let rows = |upto: usize| other.splits.0[..upto].iter().sum::<i64>() as usize;
                    let row: usize = layout::numel(shape.get(1..).unwrap_or(&[])).unwrap_or(0);
                    let cells = row * block.per_element(dtype);
                    let piece = rows(me) * cells..rows(me + 1) * cells;
                    if piece.end > block.cells.len() {
                        let (rank, splits) = (other.rank, &other.splits.0);
                        return Err(raise!("rank {rank} sends less than its splits {splits:?} say"));
                    }
                    pieces.push(slice(block, piece));
                }
                Ok(concat(domain, pieces))
            }
            Collective::Broadcast => Ok(input(mine.what.root.unwrap_or(0) as usize).0.clone()),
            Collective::Recv => Ok(input(0).0.clone()),
            Collective::ShardDimAllToAll => {
                let (gather, shard) = mine.what.dims.unwrap_or((0, 0));
                let mut pieces = Vec::with_capacity(ranks);
                for from in 0..ranks {
                    let (block, shape) = input(from);
                    let size = shape[shard] / ranks as i64;
                    let strides = layout::contiguous(*shape);
                    let piece = shape.with(shard, size);
                    let per = block.per_element(dtype);
                    let offset = size * me as i64 * strides[shard];
                    let mut part = slice(block, 0..0);
                    layout::for_each_row(&piece, &strides, offset, |start, count, stride| {
                        for i in 0..count {
                            let at = start.wrapping_add_signed(i as isize * stride) * per;
                            part.cells.extend_from_slice(&block.cells[at..at + per]);
                            part.marks.extend_from_slice(block.marks.get(at..at + per).unwrap_or(&[]));
                        }
                    });
                    pieces.push((part, piece));
                }
                Ok(cat(domain, pieces, gather, dtype))
            }
            Collective::Send | Collective::PointToPoint | Collective::Barrier | Collective::Other => {
                Ok(Block { cells: Vec::new(), marks: Vec::new(), grain: whole(dtype) })
            }
        }
    }

    /// The hashes of all members' arguments.
    pub fn digests(&self, place: Place) -> impl Iterator<Item = u64> {
        self.channels[place.channel].rounds[place.round].sent.iter().flatten().map(|s| s.digest)
    }
}

impl Channel {
    fn new(group: usize, members: Vec<u32>) -> Channel {
        Channel { group, started: vec![0; members.len()], rounds: Vec::new(), members }
    }
}

fn slice(block: &Block, range: std::ops::Range<usize>) -> Block {
    Block {
        cells: block.cells[range.clone()].to_vec(),
        marks: block.marks.get(range).unwrap_or(&[]).to_vec(),
        grain: block.grain,
    }
}

/// Blocks one after the other, in the finest grain among them.
pub(crate) fn concat(domain: &dyn Domain, blocks: Vec<Block>) -> Block {
    let grain = blocks.iter().map(|b| b.grain).min().unwrap_or(1);
    let marked = blocks.iter().any(|b| !b.marks.is_empty());
    let cells = blocks.iter().map(|b| b.cells.len()).sum();
    let mut whole = Block { cells: Vec::with_capacity(cells), marks: Vec::new(), grain };
    for mut block in blocks {
        block.refine(domain, grain);
        whole.cells.append(&mut block.cells);
        if marked {
            whole.marks.append(&mut block.marks);
            whole.marks.resize(whole.cells.len(), Mark::Known);
        }
    }
    whole
}

/// Tensors of one dtype side by side along a dimension. All shapes are equal but for that dimension.
pub(crate) fn cat(domain: &dyn Domain, mut parts: Vec<(Block, Dims)>, dim: usize, dtype: Dtype) -> Block {
    let outer = parts.first().map_or(0, |(_, shape)| layout::numel(&shape[..dim]).unwrap_or(0));
    if outer == 1 {
        return concat(domain, parts.into_iter().map(|(block, _)| block).collect());
    }
    let grain = parts.iter().map(|(block, _)| block.grain).min().unwrap_or(1);
    let marked = parts.iter().any(|(block, _)| !block.marks.is_empty());
    let mut whole = Block { cells: Vec::new(), marks: Vec::new(), grain };
    for (block, _) in &mut parts {
        block.refine(domain, grain);
    }
    for row in 0..outer {
        for (block, shape) in &parts {
            let run = layout::numel(&shape[dim..]).unwrap_or(0) * block.per_element(dtype);
            whole.cells.extend_from_slice(&block.cells[row * run..(row + 1) * run]);
            if marked {
                whole.marks.extend_from_slice(block.marks.get(row * run..(row + 1) * run).unwrap_or(&[]));
                whole.marks.resize(whole.cells.len(), Mark::Known);
            }
        }
    }
    whole
}

/// Element-wise reduction of a range of elements over ranks.
fn reduce(
    domain: &dyn Domain,
    op: RankReduce,
    dtype: Dtype,
    parts: &[&Block],
    range: std::ops::Range<usize>,
) -> Outcome<Block> {
    let part = |block: &Block| {
        let per = block.per_element(dtype).max(1);
        slice(block, range.start * per..range.end * per)
    };
    if let [only] = parts {
        return Ok(part(only));
    }
    let mut poison = Vec::new();
    let mut elements = Vec::with_capacity(parts.len());
    for block in parts {
        let piece = part(block);
        let per = piece.per_element(dtype).max(1);
        if !piece.marks.is_empty() {
            poison.resize(range.len(), false);
            for (bad, marks) in poison.iter_mut().zip(piece.marks.chunks(per)) {
                *bad |= marks.iter().any(|&m| m != Mark::Known);
            }
        }
        elements.push(joined(domain, piece.cells, piece.grain, whole(dtype)));
    }
    let slices: Vec<&[u64]> = elements.iter().map(Vec::as_slice).collect();
    Ok(Block::of_elements(domain.across_ranks(op, dtype, &slices)?, poison, dtype))
}
