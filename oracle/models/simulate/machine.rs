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
    /// The channels that it goes over from this queue, each with its sends and receives that are still open.
    pub(super) open: Vec<(usize, u32, u32)>,
    ready: u64,
}

/// A rank, for all of its class.
pub(super) struct Rank {
    /// Its next step.
    pub(super) at: usize,
    /// The operation that it stands at until that is complete.
    pub(super) waits_for: Option<usize>,
    /// For each operation how many entries or messages are still open; `None` before its launch.
    pub(super) open: Vec<Option<u32>>,
    now: u64,
}

pub(super) struct Machine<'a> {
    pub(super) programs: &'a Programs,
    pub(super) classes: &'a Classes,
    pub(super) network: &'a Network,
    pub(super) options: Options,
    pub(super) ranks: Vec<Rank>,
    /// All queues; see `queue_of`.
    pub(super) queues: Vec<VecDeque<Entry>>,
    /// Until when each queue's stream is busy.
    busy: Vec<u64>,
    /// For each channel the queue of each end.
    queue_of: Vec<Vec<usize>>,
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
        let mut queues = if options.streams == Streams::One { classes.len() } else { 0 };
        let queue_of: Vec<Vec<usize>> = network
            .channels
            .iter()
            .map(|channel| {
                let of_end = |end: &(usize, u32)| match options.streams {
                    Streams::One => end.0,
                    Streams::PerGroup => {
                        queues += 1;
                        queues - 1
                    }
                };
                channel.ends().iter().map(of_end).collect()
            })
            .collect();
        let mut limit = vec![usize::MAX; n];
        for mismatch in mismatches.iter().filter(|mismatch| !mismatch.is_message) {
            limit[mismatch.channel] = mismatch.index;
        }
        let mut timeline = Timeline::default();
        let mut ranks = Vec::with_capacity(classes.len());
        for class in 0..classes.len() {
            let program = &programs.programs[programs.of_rank[classes.first[class] as usize]];
            ranks.push(Rank { at: 0, waits_for: None, open: vec![None; program.operations.len()], now: 0 });
            let flights = program.operations.iter().map(Flight::of).collect();
            timeline.tracks.push(Track { rank: classes.first[class], flights, ..Track::default() });
        }
        Machine {
            programs,
            classes,
            network,
            options,
            ranks,
            queues: vec![VecDeque::new(); queues],
            busy: vec![0; queues],
            queue_of,
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
    pub(super) fn queue(&self, channel: usize, class: usize) -> Option<usize> {
        let end = self.network.channels[channel].end_of(class)?;
        Some(self.queue_of[channel][end])
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
        (0..self.ranks.len()).all(|class| self.is_at_end(class)) && self.queues.iter().all(VecDeque::is_empty)
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
        let mut open = Vec::with_capacity(route.len());
        for &channel in route {
            let (mut sends, mut receives) = (0, 0);
            if let Channel::Pair { ends, .. } = &self.network.channels[channel] {
                let peer = ends.iter().find(|end| end.1 != own).map_or(own, |end| end.1);
                for part in self.network.parts_on(self.programs, self.classes, own, peer, what) {
                    *(if part.sends { &mut sends } else { &mut receives }) += 1;
                }
            }
            open.push((channel, sends, receives));
        }
        let entries: Vec<Vec<(usize, u32, u32)>> = match self.options.streams {
            Streams::One => vec![open],
            Streams::PerGroup => open.into_iter().map(|one| vec![one]).collect(),
        };
        self.ranks[class].open[operation] = Some(entries.len() as u32);
        for open in entries {
            let Some(queue) = open.first().and_then(|one| self.queue(one.0, class)) else { continue };
            self.queues[queue].push_back(Entry { operation, open, ready: now });
        }
        route.iter().for_each(|&channel| self.meet(channel));
    }

    /// Completes what is at the heads of the queues of a channel, and what comes to the heads then.
    fn meet(&mut self, channel: usize) {
        let mut look = vec![channel];
        while let Some(channel) = look.pop() {
            let heads = match &self.network.channels[channel] {
                Channel::Group { .. } => self.complete_collective(channel),
                Channel::Pair { .. } => self.complete_messages(channel),
            };
            for queue in heads {
                if let Some(head) = self.queues[queue].front() {
                    look.extend(head.open.iter().map(|open| open.0));
                }
            }
        }
    }

    /// Takes a collective off its queues, if it is at the head of all of them; the queues that it left.
    fn complete_collective(&mut self, channel: usize) -> Vec<usize> {
        let is_ready = |queue: &usize| {
            self.queues[*queue].front().is_some_and(|entry| entry.open.iter().any(|open| open.0 == channel))
        };
        if self.complete[channel] >= self.limit[channel] {
            return Vec::new();
        }
        let unknown = &self.queue_of[channel][self.ready[channel]..];
        match unknown.iter().position(|queue| !is_ready(queue)) {
            Some(more) => {
                self.ready[channel] += more;
                return Vec::new();
            }
            None => self.ready[channel] = 0,
        }
        let network = self.network;
        let queues = self.queue_of[channel].clone();
        let entries: Vec<Entry> = queues.iter().filter_map(|&queue| self.queues[queue].pop_front()).collect();
        let start =
            entries.iter().zip(&queues).map(|(entry, &queue)| entry.ready.max(self.busy[queue])).max();
        let ends = network.channels[channel].ends();
        let length =
            entries.iter().zip(ends).map(|(e, end)| self.program(end.0).operations[e.operation].nanoseconds);
        let (start, length) = (start.unwrap_or(0), length.max().unwrap_or(0));
        self.complete[channel] += 1;
        for ((entry, end), &queue) in entries.iter().zip(ends).zip(&queues) {
            self.busy[queue] = start + length;
            self.close(end.0, entry.operation, start, start + length);
        }
        queues
    }

    /// Matches sends and receives at the two heads of a pair; the queues that moved on.
    fn complete_messages(&mut self, channel: usize) -> Vec<usize> {
        let &[a, b] = &self.queue_of[channel][..] else { return Vec::new() };
        let network = self.network;
        let ends = network.channels[channel].ends();
        let mut left = Vec::new();
        let open = |entry: &Entry| entry.open.iter().position(|open| open.0 == channel);
        let heads = self.queues[a].front().zip(self.queues[b].front());
        let Some((x, y)) = heads else { return left };
        let (Some(i), Some(j)) = (open(x), open(y)) else { return left };
        let start = x.ready.max(y.ready).max(self.busy[a]).max(self.busy[b]);
        let length =
            |end: usize, entry: &Entry| self.program(ends[end].0).operations[entry.operation].nanoseconds;
        let end = start + length(0, x).max(length(1, y));
        let forth = x.open[i].1.min(y.open[j].2);
        let back = x.open[i].2.min(y.open[j].1);
        if forth + back == 0 {
            return left;
        }
        for (queue, place, (sent, received), class) in
            [(a, i, (forth, back), ends[0].0), (b, j, (back, forth), ends[1].0)]
        {
            let Some(entry) = self.queues[queue].front_mut() else { continue };
            entry.open[place].1 -= sent;
            entry.open[place].2 -= received;
            if entry.open.iter().all(|open| open.1 + open.2 == 0) {
                let operation = entry.operation;
                self.queues[queue].pop_front();
                self.busy[queue] = end;
                self.close(class, operation, start, end);
                left.push(queue);
            }
        }
        left
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
