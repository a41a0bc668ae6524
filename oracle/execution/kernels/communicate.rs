//! Collectives and waits.
//!
//! Starting a collective copies its inputs and puts its outputs in flight; a wait on a tensor lets every collective
//! with an output in that tensor's storage arrive, as PyTorch's registry of works does, and returns the tensor
//! itself. Waits of what has arrived do nothing. What is done when its call is (barriers, `shard_dim_alltoall`, what goes
//! through symmetric memory, and what is not modelled) is seen through by the node that starts it. A barrier is an effect besides: another rank may see it though
//! nothing in the graph does.
//!
//! Sources: `torch/csrc/distributed/c10d/Functional.cpp`; peers of sends, receives and broadcasts are positions
//! in the group; a send returns an empty tensor, a receive the tensor it writes.

use super::super::block::Mark;
use super::super::comm::{Comm, Launch, Sent};
use super::super::domain::{Outcome, RankReduce, raise, refuse};
use super::super::hash::mix;
use super::super::hazard::HazardKind;
use super::super::layout::{self, Dims, Window};
use super::super::memory::{Flight, overlap};
use super::super::program::{GroupUse, Step};
use super::super::rank::{Item, Progress, Rank};
use super::super::run::LaunchNote;
use super::dim;
use crate::graph::{Dtype, DtypeClass, NodeId, Value};
use crate::ops::{Collective, OpInfo};

/// One instance of a process group, seen by one member.
#[derive(Clone, Copy)]
struct Member {
    group: u32,
    instance: u32,
    position: usize,
    ranks: usize,
}

impl<'a> Rank<'a> {
    pub(crate) fn communicate(
        &mut self,
        node: NodeId,
        step: &Step<'a>,
        kind: Collective,
        group: GroupUse,
        comm: &mut Comm,
    ) -> Outcome<Progress> {
        if let Some(&launch) = self.blocking.first() {
            return self.see_through(node, step, kind, launch, comm);
        }
        let group = match group {
            GroupUse::Known(group) => group,
            GroupUse::Unknown(reason) => return Err(refuse!("{}", self.program.reasons[reason as usize])),
        };
        let (instance, position, members) = comm.membership(group, self.rank)?;
        let me = Member { group, instance, position, ranks: members.len() };
        if let Some(stated) = self.maybe_int(step.args[2])?
            && stated != me.ranks as i64
        {
            return Err(raise!("states a group of {stated} ranks, the group has {}", me.ranks));
        }
        if step.info.is_some_and(|info| info.effect) && !kind.is_message() {
            let arguments = self.arguments(node, step.key)?;
            self.note_effect(node, arguments, None);
        }
        match kind {
            Collective::Send | Collective::Recv => {
                let peer = self.int(step.args[4])?;
                let tag = self.maybe_int(step.args[5])?.unwrap_or(0);
                let window = self.tensor(step.args[0])?;
                self.point_to_point(node, kind, me, peer, tag, window, comm).map(Progress::Value)
            }
            Collective::PointToPoint => self.batch(node, step, me, comm).map(Progress::Value),
            Collective::Barrier | Collective::ShardDimAllToAll | Collective::Other => {
                self.start_blocking(node, step, kind, me, comm)
            }
            _ => {
                let started = self.start(node, step, kind, me, comm)?;
                if !step.info.is_some_and(OpInfo::is_done_at_once) {
                    return Ok(Progress::Value(started));
                }
                let launch = self.launches.len() as u32 - 1;
                self.blocking.push(launch);
                self.see_through(node, step, kind, launch, comm)
            }
        }
    }

    /// Starts a collective of the whole group.
    fn start(
        &mut self,
        node: NodeId,
        step: &Step,
        kind: Collective,
        me: Member,
        comm: &mut Comm,
    ) -> Outcome<Item> {
        let inputs = self.tensors(step.args[0])?;
        let coalesced =
            matches!(step.args[0], Value::List(_)) || matches!(self.held(step.args[0])?, Some(Item::List(_)));
        let op = match kind {
            Collective::ReduceScatter | Collective::AllReduce => {
                Some(self.rank_reduce(step.args[3], &inputs)?)
            }
            _ => None,
        };
        let root = match kind {
            Collective::Broadcast => {
                let root = self.int(step.args[4])?;
                if root < 0 || root >= me.ranks as i64 {
                    return Err(raise!("a broadcast from {root} in a group of {}", me.ranks));
                }
                Some(root)
            }
            _ => None,
        };
        let mut splits = (Vec::new(), Vec::new());
        if kind == Collective::AllToAll {
            splits = self.splits(step, &inputs, me.ranks)?;
        }
        // Where the results go: into `out=`, into the inputs themselves, or into fresh memory.
        let given = match step.into {
            Some(into) => Some(self.tensors(into)?),
            None => None,
        };
        let mut outputs = Vec::with_capacity(inputs.len());
        for (i, input) in inputs.iter().enumerate() {
            let shape = result_shape(kind, input, me.ranks, &splits.1)?;
            let output = match &given {
                Some(windows) => {
                    let window = *windows.get(i).ok_or_else(|| raise!("no destination for input {i}"))?;
                    let needs = layout::numel(&shape).unwrap_or(usize::MAX);
                    if window.numel() != needs || window.dtype != input.dtype {
                        return Err(raise!(
                            "the result has {needs} elements of {}, its destination {} of {}",
                            input.dtype.name(),
                            window.numel(),
                            window.dtype.name()
                        ));
                    }
                    window
                }
                None => self.blank(shape, input.dtype)?,
            };
            outputs.push(output);
        }
        let mut sent = self.sent(node, kind, &inputs, op, root, None, splits)?;
        if step.into.is_some_and(|into| into != step.args[0]) {
            for (i, (input, output)) in inputs.iter().zip(&outputs).enumerate() {
                if overlap(input, output) && !own_part(kind, me.position, input, output) {
                    // What is sent depends on how much of it has been received over.
                    self.memory.note(HazardKind::InputUnderOutput);
                    let block = &mut sent.inputs[i].0;
                    block.marks = vec![Mark::Poison; block.cells.len()];
                }
            }
        }
        let channel = comm.channel(me.group, me.instance);
        let launch = self.launch(me, channel, me.position, sent, comm)?;
        // An input that the collective itself overwrites is no input that others must leave alone.
        let inputs = if step.into.is_some_and(|into| into == step.args[0]) { Vec::new() } else { inputs };
        self.memory.depart(Flight {
            node,
            launch,
            piecewise: outputs.len() > 1 && inputs.len() == outputs.len(),
            copied: kind.sends_a_copy(),
            inputs,
            outputs: outputs.iter().copied().enumerate().collect(),
        });
        let items: Vec<Item> = outputs.into_iter().map(Item::Tensor).collect();
        Ok(match (&items[..], coalesced) {
            ([item], false) => item.clone(),
            _ => Item::List(items),
        })
    }

    /// Memory for a result that is still to come.
    fn blank(&mut self, shape: Dims, dtype: Dtype) -> Outcome<Window> {
        self.empty(shape, None, dtype)
    }

    #[allow(clippy::too_many_arguments)]
    fn sent(
        &mut self,
        node: NodeId,
        kind: Collective,
        inputs: &[Window],
        op: Option<RankReduce>,
        root: Option<i64>,
        dims: Option<(usize, usize)>,
        splits: (Vec<i64>, Vec<i64>),
    ) -> Outcome<Sent> {
        let tensors = inputs.iter().map(|w| (w.dtype, w.numel())).collect();
        let mut blocks = Vec::with_capacity(inputs.len());
        for input in inputs {
            blocks.push((self.memory.cells(self.domain, input)?, input.shape));
        }
        let at_once = self.program.steps[node.index()].info.is_some_and(OpInfo::is_done_at_once);
        let what = Launch { kind, at_once, op, root, dims, tag: 0, tensors };
        Ok(Sent { rank: self.rank, node, what, inputs: blocks, splits, digest: 0 })
    }

    /// Takes the next place of a channel; the number of the launch.
    fn launch(&mut self, me: Member, channel: usize, at: usize, sent: Sent, comm: &mut Comm) -> Outcome<u32> {
        let (node, what) = (sent.node, sent.what.clone());
        let place = comm.start(channel, at, sent)?;
        self.launches.push(LaunchNote { node, group: me.group, instance: me.instance, what, place });
        Ok(self.launches.len() as u32 - 1)
    }

    fn rank_reduce(&self, value: Value, inputs: &[Window]) -> Outcome<RankReduce> {
        let name = self.text(value).ok_or_else(|| refuse!("a reduction that is not given by its name"))?;
        let op = RankReduce::parse(name).ok_or_else(|| refuse!("the reduction {name:?}"))?;
        let bitwise = matches!(op, RankReduce::Band | RankReduce::Bor | RankReduce::Bxor);
        for input in inputs {
            let float = input.dtype.class() >= DtypeClass::Float;
            if bitwise && float {
                return Err(raise!("{name} of {}", input.dtype.name()));
            }
            // Some back ends round, others refuse.
            if op == RankReduce::Avg && !float {
                return Err(refuse!("{name} of {}", input.dtype.name()));
            }
        }
        Ok(op)
    }

    /// Rows sent to and received from each member. Without splits all parts are equal.
    fn splits(&self, step: &Step, inputs: &[Window], ranks: usize) -> Outcome<(Vec<i64>, Vec<i64>)> {
        let rows = inputs.first().and_then(|w| w.shape.first().copied());
        let rows = rows.ok_or_else(|| raise!("all_to_all of a tensor without dimensions"))?;
        let given = |value: Value| -> Outcome<Vec<i64>> {
            let list = self.ints(value)?;
            if !list.is_empty() {
                return Ok(list);
            }
            if rows % ranks as i64 != 0 {
                return Err(raise!("{rows} rows in {ranks} equal parts"));
            }
            Ok(vec![rows / ranks as i64; ranks])
        };
        let (received, sent) = (given(step.args[4])?, given(step.args[5])?);
        let sum = |list: &[i64]| list.iter().try_fold(0i64, |sum, &n| sum.checked_add(n).filter(|_| n >= 0));
        if received.len() != ranks
            || sent.len() != ranks
            || sum(&sent) != Some(rows)
            || sum(&received).is_none()
        {
            return Err(raise!("splits {sent:?} and {received:?} of {rows} rows over {ranks} ranks"));
        }
        Ok((sent, received))
    }

    #[allow(clippy::too_many_arguments)]
    fn point_to_point(
        &mut self,
        node: NodeId,
        kind: Collective,
        me: Member,
        peer: i64,
        tag: i64,
        window: Window,
        comm: &mut Comm,
    ) -> Outcome<Item> {
        let peer = usize::try_from(peer).ok().filter(|&p| p < me.ranks && p != me.position);
        let peer = peer.ok_or_else(|| raise!("a message to or from itself or outside the group"))?;
        let sends = kind == Collective::Send;
        let (from, to) = if sends { (me.position, peer) } else { (peer, me.position) };
        let channel = comm.pair(me.group, me.instance, from, to);
        let mut sent = self.sent(node, kind, &[], None, None, None, Default::default())?;
        (sent.what.tensors, sent.what.tag) = (vec![(window.dtype, window.numel())], tag);
        let (inputs, output) = if sends {
            sent.inputs = vec![(self.memory.cells(self.domain, &window)?, window.shape)];
            (vec![window], self.blank(Dims::default().with_pushed(0).unwrap_or_default(), window.dtype)?)
        } else {
            (Vec::new(), window)
        };
        let launch = self.launch(me, channel, usize::from(!sends), sent, comm)?;
        self.memory.depart(Flight {
            node,
            launch,
            inputs,
            piecewise: false,
            copied: false,
            outputs: vec![(0, output)],
        });
        Ok(Item::Tensor(output))
    }

    fn batch(&mut self, node: NodeId, step: &Step, me: Member, comm: &mut Comm) -> Outcome<Item> {
        let windows = self.tensors(step.args[0])?;
        let (peers, tags) = (self.ints(step.args[4])?, self.ints(step.args[5])?);
        let Value::List(span) = step.args[6] else { return Err(raise!("expects a list of operations")) };
        let names = self.program.graph.values(span).to_vec();
        if [peers.len(), tags.len(), names.len()] != [windows.len(); 3] {
            return Err(raise!("lists of different lengths"));
        }
        let mut items = Vec::with_capacity(windows.len());
        for (i, window) in windows.into_iter().enumerate() {
            let kind = self.text(names[i]).and_then(Collective::message);
            let kind = kind.ok_or_else(|| raise!("operation {i} is no send or receive"))?;
            items.push(self.point_to_point(node, kind, me, peers[i], tags[i], window, comm)?);
        }
        Ok(Item::List(items))
    }

    /// Starts what the node itself sees through.
    fn start_blocking(
        &mut self,
        node: NodeId,
        step: &Step<'a>,
        kind: Collective,
        me: Member,
        comm: &mut Comm,
    ) -> Outcome<Progress> {
        let mut inputs = Vec::new();
        let mut dims = None;
        match kind {
            Collective::ShardDimAllToAll => {
                let x = self.tensor(step.args[0])?;
                let pair = (
                    dim(self.int(step.args[4])?, x.shape.len())?,
                    dim(self.int(step.args[5])?, x.shape.len())?,
                );
                if x.shape.is_empty() || x.shape[pair.1] % me.ranks as i64 != 0 {
                    return Err(raise!("{:?} in {} parts along dimension {}", x.shape, me.ranks, pair.1));
                }
                (inputs, dims) = (vec![x], Some(pair));
            }
            Collective::Other if !self.domain.interprets_everything() => {
                return Err(refuse!("{} is not modelled", self.program.graph.target(node)));
            }
            _ => {}
        }
        let mut sent = self.sent(node, kind, &inputs, None, None, dims, Default::default())?;
        if kind.is_unmodelled() {
            sent.digest = self.arguments(node, step.key)?;
        }
        let channel = comm.channel(me.group, me.instance);
        let launch = self.launch(me, channel, me.position, sent, comm)?;
        self.blocking.push(launch);
        self.see_through(node, step, kind, launch, comm)
    }

    fn see_through(
        &mut self,
        node: NodeId,
        step: &Step<'a>,
        kind: Collective,
        launch: u32,
        comm: &mut Comm,
    ) -> Outcome<Progress> {
        let place = self.launches[launch as usize].place;
        if !comm.complete(place) {
            return Ok(Progress::Blocked(launch));
        }
        self.blocking.clear();
        let item = match kind {
            Collective::ShardDimAllToAll => {
                let x = self.tensor(step.args[0])?;
                let (gather, shard) = self.launches[launch as usize].what.dims.unwrap_or((0, 0));
                let ranks = comm.digests(place).count() as i64;
                let shape = x.shape.with(shard, x.shape[shard] / ranks);
                let shape = shape.with(gather, shape[gather].saturating_mul(ranks));
                self.room(&shape)?;
                let block = comm.result(self.domain, place, 0)?;
                Item::Tensor(self.fresh(node, 0, shape, x.dtype, block))
            }
            Collective::Other => {
                let key = comm.digests(place).fold(mix(step.key, place.position as u64), mix);
                self.unmodelled(node, step, key)?
            }
            Collective::Barrier => Item::Object(0),
            _ => {
                let flight = self.memory.flights().find(|flight| flight.launch == launch);
                let outputs = flight.map_or(Vec::new(), |flight| flight.outputs.clone());
                for (output, window) in &outputs {
                    let block = comm.result(self.domain, place, *output)?;
                    self.memory.arrive(self.domain, launch, window, block)?;
                }
                outputs.first().map_or(Item::Object(0), |(_, window)| Item::Tensor(*window))
            }
        };
        Ok(Progress::Value(item))
    }

    pub(crate) fn wait(&mut self, step: &Step, comm: &mut Comm) -> Outcome<Progress> {
        // A barrier hands out an object, not a tensor; it is over.
        if let Some(item @ Item::Object(_)) = self.held(step.args[0])? {
            return Ok(Progress::Value(item.clone()));
        }
        let windows = self.tensors(step.args[0])?;
        let mut arrivals: Vec<(u32, usize, Window)> = Vec::new();
        for window in &windows {
            for flight in self.memory.awaited(window.storage) {
                let here = flight.outputs.iter().filter(|(_, output)| output.storage == window.storage);
                for &(output, at) in here {
                    if !arrivals.contains(&(flight.launch, output, at)) {
                        arrivals.push((flight.launch, output, at));
                    }
                }
            }
        }
        for &(launch, ..) in &arrivals {
            if !comm.complete(self.launches[launch as usize].place) {
                return Ok(Progress::Blocked(launch));
            }
        }
        for (launch, output, window) in arrivals {
            let block = comm.result(self.domain, self.launches[launch as usize].place, output)?;
            self.memory.arrive(self.domain, launch, &window, block)?;
        }
        self.item(step.args[0]).map(Progress::Value)
    }
}

/// Whether input and output of a collective in place lie as NCCL asks: the smaller one is this rank's part of the
/// larger one.
fn own_part(kind: Collective, position: usize, input: &Window, output: &Window) -> bool {
    let (part, all) = match kind {
        Collective::AllGather => (input, output),
        Collective::ReduceScatter => (output, input),
        _ => return input == output,
    };
    let start = all.offset.saturating_add((position * part.numel()) as i64);
    part.is_contiguous() && all.is_contiguous() && part.offset == start
}

/// The shape of what a member receives.
fn result_shape(kind: Collective, input: &Window, ranks: usize, received: &[i64]) -> Outcome<Dims> {
    let shape = input.shape;
    let rows =
        || shape.first().copied().ok_or_else(|| raise!("{} of a tensor without dimensions", kind.name()));
    Ok(match kind {
        // PyTorch gives one row per rank.
        Collective::AllGather if shape.is_empty() => Dims::new(&[ranks as i64]).unwrap_or(shape),
        Collective::AllGather => shape.with(0, rows()?.saturating_mul(ranks as i64)),
        Collective::ReduceScatter => {
            let rows = rows()?;
            if rows % ranks as i64 != 0 {
                return Err(raise!("{rows} rows in {ranks} equal parts"));
            }
            shape.with(0, rows / ranks as i64)
        }
        Collective::AllToAll => shape.with(0, received.iter().sum()),
        _ => shape,
    })
}
