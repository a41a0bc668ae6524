//! The machine that runs one rank of every class.

use super::classes::Classes;
use super::mismatch::Mismatch;
use super::timeline::{Flight, Timeline, Track};
use super::{Messages, Operation, Options, Part, Program, Programs, Step, Streams};
use std::collections::{BTreeMap, VecDeque};

/// Where ranks meet.
pub(super) enum Channel {
    /// All ranks of a group.
    Group {
        /// Index of the group.
        group: usize,
        /// The classes of its ranks, each with the first rank of it.
        ranks: Vec<(usize, u32)>,
    },
    /// Two ranks of a group that exchange messages: (class, rank) of each, the lower rank first.
    Pair {
        /// Index of the group.
        group: usize,
        /// The two ends.
        ends: [(usize, u32); 2],
    },
}

impl Channel {
    /// The classes that meet here.
    pub(super) fn ends(&self) -> &[(usize, u32)] {
        match self {
            Channel::Group { ranks, .. } => ranks,
            Channel::Pair { ends, .. } => ends,
        }
    }

    /// Which end a class is. A group lists its classes in order.
    fn end_of(&self, class: usize) -> Option<usize> {
        match self {
            Channel::Group { ranks, .. } => ranks.binary_search_by_key(&class, |end| end.0).ok(),
            Channel::Pair { ends, .. } => ends.iter().position(|end| end.0 == class),
        }
    }
}

/// All channels, and who launches what on them.
pub(super) struct Network {
    pub(super) channels: Vec<Channel>,
    /// For each channel and end the operations launched there, in order.
    launches: Vec<Vec<Vec<usize>>>,
    /// For each class and operation the channels that it goes over.
    routes: Vec<Vec<Vec<usize>>>,
    /// The channel of each group by the classes of its members, in order.
    by_classes: BTreeMap<(usize, Vec<usize>), usize>,
}

impl Network {
    pub(super) fn new(programs: &Programs, classes: &Classes) -> Network {
        let groups = &programs.world.groups;
        let mut channels: Vec<Channel> = Vec::new();
        let mut launches: Vec<Vec<Vec<usize>>> = Vec::new();
        let mut routes = Vec::with_capacity(classes.len());
        let mut of_instance: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let mut by_classes: BTreeMap<(usize, Vec<usize>), usize> = BTreeMap::new();
        let mut by_pair: BTreeMap<(usize, u32, u32), usize> = BTreeMap::new();
        for class in 0..classes.len() {
            let rank = classes.first[class];
            let program = &programs.programs[programs.of_rank[rank as usize]];
            let mut of_class = Vec::with_capacity(program.operations.len());
            for (index, operation) in program.operations.iter().enumerate() {
                let mut route = Vec::new();
                let group = classes.places.group(&operation.group);
                let place = group.and_then(|g| Some((g, classes.places.instance_of(g, rank)?.0)));
                let Some((g, instance)) = place else {
                    of_class.push(route);
                    continue;
                };
                let members = &groups[g].instances[instance];
                if operation.is_message() {
                    for part in &operation.parts {
                        let peer =
                            usize::try_from(part.peer).ok().and_then(|peer| members.get(peer).copied());
                        let Some(peer) = peer.filter(|&peer| programs.is_known(peer)) else { continue };
                        let (low, high) = (rank.min(peer), rank.max(peer));
                        let channel = *by_pair.entry((g, low, high)).or_insert_with(|| {
                            let ends = [low, high].map(|r| (classes.of_rank[r as usize], r));
                            channels.push(Channel::Pair { group: g, ends });
                            launches.push(vec![Vec::new(); 2]);
                            channels.len() - 1
                        });
                        if !route.contains(&channel) {
                            route.push(channel);
                        }
                    }
                } else {
                    let channel = *of_instance.entry((g, instance)).or_insert_with(|| {
                        // The classes of the members, each with its first rank.
                        let known = members.iter().copied().filter(|&rank| programs.is_known(rank));
                        let mut met: Vec<(usize, u32)> =
                            known.map(|r| (classes.of_rank[r as usize], r)).collect();
                        met.sort_by_key(|member| member.0);
                        let key = (g, met.iter().map(|member| member.0).collect());
                        *by_classes.entry(key).or_insert_with(|| {
                            met.dedup_by_key(|member| member.0);
                            launches.push(vec![Vec::new(); met.len()]);
                            channels.push(Channel::Group { group: g, ranks: met });
                            channels.len() - 1
                        })
                    });
                    route.push(channel);
                }
                for &channel in &route {
                    if let Some(end) = channels[channel].end_of(class) {
                        launches[channel][end].push(index);
                    }
                }
                of_class.push(route);
            }
            routes.push(of_class);
        }
        Network { channels, launches, routes, by_classes }
    }

    /// The operations that a class launches on a channel, in order.
    pub(super) fn launches(&self, channel: usize, class: usize) -> &[usize] {
        let end = self.channels[channel].end_of(class);
        end.map_or(&[], |end| &self.launches[channel][end])
    }

    /// The channel of a class's operations, each once, in order.
    pub(super) fn channels_of(&self, class: usize) -> Vec<usize> {
        let mut channels: Vec<usize> = self.routes[class].iter().flatten().copied().collect();
        channels.sort_unstable();
        channels.dedup();
        channels
    }

    /// The channel of a group with these members, if a collective is launched on it.
    pub(super) fn channel_of(&self, classes: &Classes, group: usize, members: &[u32]) -> Option<usize> {
        let mut met: Vec<usize> = members.iter().map(|&rank| classes.of_rank[rank as usize]).collect();
        met.sort_unstable();
        self.by_classes.get(&(group, met)).copied()
    }

    /// The messages of an operation of rank `own` whose other end is rank `peer`.
    pub(super) fn parts_on<'a>(
        &self,
        programs: &'a Programs,
        classes: &Classes,
        own: u32,
        peer: u32,
        operation: &'a Operation,
    ) -> impl Iterator<Item = &'a Part> + use<'a> {
        let places = &classes.places;
        let members = places.group(&operation.group).and_then(|group| {
            let (instance, _) = places.instance_of(group, own)?;
            programs.world.groups[group].instances.get(instance)
        });
        operation.parts.iter().filter(move |part| {
            let index = usize::try_from(part.peer).ok();
            index.and_then(|index| members?.get(index)) == Some(&peer)
        })
    }
}

/// A launched operation in a queue.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The operation.
    pub(super) operation: usize,
    /// Its sends and receives over the channel that are still open.
    pub(super) sends: u32,
    pub(super) receives: u32,
    /// The block of its rank that it belongs to.
    block: usize,
    ready: u64,
}

/// Launches of a rank that need not wait for each other where it has one stream: a collective, or the messages between
/// two collectives.
#[derive(Clone, Debug)]
struct Block {
    number: usize,
    /// How many of its entries are still in queues.
    left: usize,
    /// The channels of its entries.
    channels: Vec<usize>,
}

/// A rank, for all of its class.
#[derive(Default)]
pub(super) struct Rank {
    /// Its next step.
    pub(super) at: usize,
    /// The operation that it stands at until that is complete.
    pub(super) waits_for: Option<usize>,
    /// For each operation how many entries or messages are still open; `None` before its launch.
    pub(super) open: Vec<Option<u32>>,
    now: u64,
    /// The blocks that are not complete; only the first of them can go on. None where each channel has its own stream.
    blocks: VecDeque<Block>,
    /// The block of the last launch, and whether that was a collective.
    block: (usize, bool),
    /// Until when the blocks that are complete took, and until when all entries that are.
    busy: u64,
    latest: u64,
}

impl Rank {
    /// The block of the next launch.
    fn next_block(&mut self, is_collective: bool) -> usize {
        self.block = (self.block.0 + usize::from(is_collective || self.block.1), is_collective);
        self.block.0
    }

    /// Adds an operation that goes over these channels to a block.
    fn queue_in(&mut self, number: usize, route: &[usize]) {
        match self.blocks.back_mut().filter(|block| block.number == number) {
            Some(block) => {
                block.left += route.len();
                block.channels.extend(route);
            }
            None => {
                self.blocks.push_back(Block { number, left: route.len(), channels: route.to_vec() });
            }
        }
    }
}

pub(super) struct Machine<'a> {
    pub(super) programs: &'a Programs,
    pub(super) classes: &'a Classes,
    pub(super) network: &'a Network,
    pub(super) options: Options,
    pub(super) ranks: Vec<Rank>,
    /// The queue of each end of each channel.
    queues: Vec<Vec<VecDeque<Entry>>>,
    /// Until when each of them is busy.
    busy: Vec<Vec<u64>>,
    /// For each channel how many collectives are complete, and how many can be.
    complete: Vec<usize>,
    limit: Vec<usize>,
    /// For each channel how many of its first ends are known to be ready for the next collective. What is at the head
    /// of a queue stays there until the collective is complete.
    ready: Vec<usize>,
    /// Of messages that are buffered: for each channel and sending end, when each was sent, and who waits for it.
    sent: Vec<[VecDeque<u64>; 2]>,
    awaited: Vec<[VecDeque<(usize, usize, u64)>; 2]>,
    runnable: Vec<usize>,
    timeline: Timeline,
}

impl<'a> Machine<'a> {
    pub(super) fn new(
        programs: &'a Programs,
        classes: &'a Classes,
        network: &'a Network,
        mismatches: &[Mismatch],
        options: Options,
    ) -> Machine<'a> {
        let n = network.channels.len();
        let ends = network.channels.iter().map(|channel| channel.ends().len());
        let queues = ends.clone().map(|ends| vec![VecDeque::new(); ends]).collect();
        let busy = ends.map(|ends| vec![0; ends]).collect();
        let mut limit = vec![usize::MAX; n];
        for mismatch in mismatches.iter().filter(|mismatch| !mismatch.is_message) {
            limit[mismatch.channel] = mismatch.index;
        }
        let mut timeline = Timeline::default();
        let mut ranks = Vec::with_capacity(classes.len());
        for class in 0..classes.len() {
            let program = &programs.programs[programs.of_rank[classes.first[class] as usize]];
            ranks.push(Rank { open: vec![None; program.operations.len()], ..Rank::default() });
            let flights = program.operations.iter().map(Flight::of).collect();
            timeline.tracks.push(Track { rank: classes.first[class], flights, ..Track::default() });
        }
        Machine {
            programs,
            classes,
            network,
            options,
            ranks,
            queues,
            busy,
            complete: vec![0; n],
            ready: vec![0; n],
            limit,
            sent: vec![Default::default(); n],
            awaited: vec![Default::default(); n],
            runnable: (0..classes.len()).rev().collect(),
            timeline,
        }
    }

    /// The program of a class.
    pub(super) fn program(&self, class: usize) -> &'a Program {
        &self.programs.programs[self.programs.of_rank[self.classes.first[class] as usize]]
    }

    /// The queue of a class on a channel.
    pub(super) fn queue(&self, channel: usize, class: usize) -> Option<&VecDeque<Entry>> {
        self.queues[channel].get(self.network.channels[channel].end_of(class)?)
    }

    /// Whether what a class launched before an entry lets it go on.
    pub(super) fn is_in_turn(&self, class: usize, entry: &Entry) -> bool {
        self.ranks[class].blocks.front().is_none_or(|block| block.number == entry.block)
    }

    /// What can go on at the head of the queue of an end of a channel.
    fn head(&self, channel: usize, end: usize) -> Option<&Entry> {
        let class = self.network.channels[channel].ends()[end].0;
        self.queues[channel][end].front().filter(|entry| self.is_in_turn(class, entry))
    }

    /// An operation that an entry of a class stands behind, if it cannot go on.
    pub(super) fn holds(&self, class: usize, entry: &Entry) -> Option<usize> {
        let first = self.ranks[class].blocks.front().filter(|block| block.number != entry.block)?;
        let heads = first.channels.iter().filter_map(|&channel| self.queue(channel, class)?.front());
        heads.filter(|head| head.block == first.number).map(|head| head.operation).min()
    }

    /// How many collectives of a channel are complete.
    pub(super) fn completed(&self, channel: usize) -> usize {
        self.complete[channel]
    }

    /// Whether an operation of a class is complete.
    pub(super) fn is_complete(&self, class: usize, operation: usize) -> bool {
        self.ranks[class].open[operation] == Some(0)
    }

    /// Whether every rank is at its end and every queue empty.
    pub(super) fn is_finished(&self) -> bool {
        (0..self.ranks.len()).all(|class| self.is_at_end(class))
            && self.queues.iter().flatten().all(VecDeque::is_empty)
    }

    /// Whether a class is at the end of its program.
    pub(super) fn is_at_end(&self, class: usize) -> bool {
        self.ranks[class].at >= self.program(class).steps.len()
    }

    pub(super) fn into_timeline(self) -> Timeline {
        self.timeline
    }

    /// Runs until nothing can happen.
    pub(super) fn run(&mut self) {
        while let Some(class) = self.runnable.pop() {
            self.advance(class);
        }
        for (class, rank) in self.ranks.iter().enumerate() {
            let ends = self.timeline.tracks[class].flights.iter().map(|flight| flight.ended);
            self.timeline.tracks[class].end = ends.max().unwrap_or(0).max(rank.now);
        }
    }

    /// Lets a rank go on until it stands still.
    fn advance(&mut self, class: usize) {
        let program = self.program(class);
        while let Some(step) = program.steps.get(self.ranks[class].at) {
            if let Some(operation) = self.ranks[class].waits_for {
                if !self.is_complete(class, operation) {
                    return;
                }
                let flight = &mut self.timeline.tracks[class].flights[operation];
                let rank = &mut self.ranks[class];
                if flight.waited.is_none() {
                    flight.waited = Some(rank.now);
                    flight.exposed = flight.ended.saturating_sub(rank.now);
                }
                rank.now = rank.now.max(flight.ended);
                (rank.waits_for, rank.at) = (None, rank.at + 1);
                continue;
            }
            match step {
                Step::Compute { nanoseconds, .. } => {
                    let rank = &mut self.ranks[class];
                    self.timeline.tracks[class].computed.push((rank.at, rank.now));
                    rank.now += nanoseconds;
                    rank.at += 1;
                }
                &Step::Launch(operation) => {
                    self.launch(class, operation);
                    let is_blocking = program.operations[operation].is_message()
                        && match self.options.messages {
                            Messages::Rendezvous => false,
                            Messages::Blocking | Messages::Buffered => true,
                        };
                    match is_blocking {
                        true => self.ranks[class].waits_for = Some(operation),
                        false => self.ranks[class].at += 1,
                    }
                }
                &Step::Wait { operation, .. } => self.ranks[class].waits_for = Some(operation),
            }
        }
    }

    fn launch(&mut self, class: usize, operation: usize) {
        let program = self.program(class);
        let what = &program.operations[operation];
        let now = self.ranks[class].now;
        self.timeline.tracks[class].flights[operation].launched = now;
        let route = &self.network.routes[class][operation];
        let own = self.classes.first[class];
        if what.is_message() && self.options.messages == Messages::Buffered {
            self.ranks[class].open[operation] = Some(what.parts.len() as u32);
            return route.iter().for_each(|&channel| self.exchange(class, operation, channel));
        }
        self.ranks[class].open[operation] = Some(route.len() as u32);
        let block = self.ranks[class].next_block(!what.is_message());
        if self.options.streams == Streams::One && !route.is_empty() {
            self.ranks[class].queue_in(block, route);
        }
        for &channel in route {
            let (mut sends, mut receives) = (0, 0);
            if let Channel::Pair { ends, .. } = &self.network.channels[channel] {
                let peer = ends.iter().find(|end| end.1 != own).map_or(own, |end| end.1);
                for part in self.network.parts_on(self.programs, self.classes, own, peer, what) {
                    *(if part.sends { &mut sends } else { &mut receives }) += 1;
                }
            }
            let Some(end) = self.network.channels[channel].end_of(class) else { continue };
            let entry = Entry { operation, sends, receives, block, ready: now };
            self.queues[channel][end].push_back(entry);
        }
        route.iter().for_each(|&channel| self.meet(channel));
    }

    /// Completes what is at the heads of the queues of a channel, and what can go on then.
    fn meet(&mut self, channel: usize) {
        let mut look = vec![channel];
        while let Some(channel) = look.pop() {
            match &self.network.channels[channel] {
                Channel::Group { .. } => self.complete_collective(channel, &mut look),
                Channel::Pair { .. } => self.complete_messages(channel, &mut look),
            }
        }
    }

    /// Takes a collective off its queues, if it is at the head of all of them.
    fn complete_collective(&mut self, channel: usize, look: &mut Vec<usize>) {
        if self.complete[channel] >= self.limit[channel] {
            return;
        }
        let network = self.network;
        let ends = network.channels[channel].ends();
        let ready = self.ready[channel];
        if let Some(more) = (ready..ends.len()).position(|end| self.head(channel, end).is_none()) {
            self.ready[channel] += more;
            return;
        }
        self.ready[channel] = 0;
        let start = (0..ends.len()).map(|end| self.earliest(channel, end)).max().unwrap_or(0);
        let length = |end: usize| {
            let entry = self.head(channel, end)?;
            Some(self.program(ends[end].0).operations[entry.operation].nanoseconds)
        };
        let length = (0..ends.len()).filter_map(length).max().unwrap_or(0);
        self.complete[channel] += 1;
        (0..ends.len()).for_each(|end| self.take(channel, end, start, start + length, look));
        look.push(channel);
    }

    /// Matches sends and receives at the two heads of a pair.
    fn complete_messages(&mut self, channel: usize, look: &mut Vec<usize>) {
        let ends = self.network.channels[channel].ends();
        let (Some(x), Some(y)) = (self.head(channel, 0), self.head(channel, 1)) else { return };
        let (forth, back) = (x.sends.min(y.receives), x.receives.min(y.sends));
        if forth + back == 0 {
            return;
        }
        let length =
            |end: usize, entry: &Entry| self.program(ends[end].0).operations[entry.operation].nanoseconds;
        let start = self.earliest(channel, 0).max(self.earliest(channel, 1));
        let until = start + length(0, x).max(length(1, y));
        for (end, (sent, received)) in [(forth, back), (back, forth)].into_iter().enumerate() {
            let Some(entry) = self.queues[channel][end].front_mut() else { continue };
            entry.sends -= sent;
            entry.receives -= received;
            if entry.sends + entry.receives == 0 {
                self.take(channel, end, start, until, look);
                look.push(channel);
            }
        }
    }

    /// When what is at the head of a queue can start, for all that its own rank does.
    fn earliest(&self, channel: usize, end: usize) -> u64 {
        let ready = self.queues[channel][end].front().map_or(0, |entry| entry.ready);
        let class = self.network.channels[channel].ends()[end].0;
        ready.max(self.busy[channel][end]).max(self.ranks[class].busy)
    }

    /// Takes a complete entry off its queue. What its block held back can go on on the channels to `look` at.
    fn take(&mut self, channel: usize, end: usize, start: u64, until: u64, look: &mut Vec<usize>) {
        let class = self.network.channels[channel].ends()[end].0;
        let Some(entry) = self.queues[channel][end].pop_front() else { return };
        self.busy[channel][end] = until;
        self.close(class, entry.operation, start, until);
        let rank = &mut self.ranks[class];
        rank.latest = rank.latest.max(until);
        let Some(block) = rank.blocks.front_mut() else { return };
        block.left -= 1;
        if block.left == 0 {
            rank.blocks.pop_front();
            rank.busy = rank.latest;
            look.extend(rank.blocks.front().into_iter().flat_map(|block| block.channels.iter().copied()));
        }
    }

    /// Sends and receives of an operation over a channel, buffered.
    fn exchange(&mut self, class: usize, operation: usize, channel: usize) {
        let network = self.network;
        let what = &self.program(class).operations[operation];
        let ends = network.channels[channel].ends();
        let own = self.classes.first[class];
        let Some(end) = ends.iter().position(|end| end.1 == own) else { return };
        let now = self.ranks[class].now;
        for part in network.parts_on(self.programs, self.classes, own, ends[1 - end].1, what) {
            if part.sends {
                let sent = now + what.nanoseconds;
                self.close(class, operation, now, now);
                match self.awaited[channel][end].pop_front() {
                    Some((receiver, receive, ready)) => {
                        self.close(receiver, receive, ready.min(sent), sent.max(ready))
                    }
                    None => self.sent[channel][end].push_back(sent),
                }
            } else {
                match self.sent[channel][1 - end].pop_front() {
                    Some(sent) => self.close(class, operation, now, sent.max(now)),
                    None => self.awaited[channel][1 - end].push_back((class, operation, now)),
                }
            }
        }
    }

    /// One entry or message of an operation is complete.
    fn close(&mut self, class: usize, operation: usize, start: u64, end: u64) {
        let flight = &mut self.timeline.tracks[class].flights[operation];
        flight.started = flight.started.max(start);
        flight.ended = flight.ended.max(end);
        let rank = &mut self.ranks[class];
        if let Some(open) = &mut rank.open[operation] {
            *open = open.saturating_sub(1);
            if *open == 0 && rank.waits_for == Some(operation) {
                self.runnable.push(class);
            }
        }
    }
}
