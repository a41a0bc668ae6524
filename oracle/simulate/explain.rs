//! A deadlock in words: the shortest chain of ranks that wait for each other.
//!
//! Where the machine stands still, every rank that is not done has an *obstacle*: the operation at the head of the
//! stream that it needs. The obstacle lacks some ranks: those that have not launched it, or have other operations in
//! front of it. So each stuck rank points at ranks, and following them either comes back (a circle: nobody can go
//! on), or to a rank that has ended without launching what is lacking.

use super::Step;
use super::machine::{Channel, Machine};
use std::collections::VecDeque;
use std::fmt;

/// Searches for a shorter chain begin at no more than so many ranks.
const SEARCHES: usize = 512;

/// Why one rank cannot go on: a link of a chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// The rank.
    pub rank: u32,
    /// The node at which it stands; `None` if it is at its end and only its streams are not.
    pub at: Option<String>,
    /// The operation that it needs.
    pub needs: String,
    /// The group of that operation.
    pub group: String,
    /// The rank that keeps it from being complete.
    pub lacks: u32,
    /// What keeps that rank, in words.
    pub because: String,
}

/// Ranks that wait for each other for ever.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deadlock {
    /// The shortest chain: each rank lacks the next one, and the last one the first, if it is a circle.
    pub chain: Vec<Link>,
    /// Whether the chain is a circle; else it ends at a rank that has ended.
    pub is_circle: bool,
    /// How many of the ranks that were run stand still (a rank stands for all that do the same).
    pub stuck: usize,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Link { rank, needs, group, because, .. } = self;
        match &self.at {
            Some(at) if at == needs => write!(f, "rank {rank} waits at {at} on {group}: {because}"),
            Some(at) => write!(f, "rank {rank} waits at {at} for {needs} on {group}: {because}"),
            None => write!(f, "rank {rank} has {needs} on {group} in flight: {because}"),
        }
    }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for link in &self.chain {
            writeln!(f, "{link}")?;
        }
        match (self.is_circle, self.chain.len()) {
            (true, 2) => write!(f, "neither can go on"),
            (true, _) => write!(f, "none of them can go on"),
            (false, _) => write!(f, "it never will"),
        }
    }
}

/// The deadlock in which a machine has come to stand, if it has.
pub(super) fn deadlock(machine: &Machine) -> Option<Deadlock> {
    if machine.is_finished() {
        return None;
    }
    let links: Vec<Vec<(usize, Link)>> =
        (0..machine.ranks.len()).map(|class| links(machine, class)).collect();
    let stuck = links.iter().filter(|links| !links.is_empty()).count();
    let mut best: Option<Vec<(usize, usize)>> = None;
    for start in (0..links.len()).filter(|&class| !links[class].is_empty()).take(SEARCHES) {
        let limit = best.as_ref().map_or(usize::MAX, Vec::len);
        if let Some(found) = circle(&links, start, limit) {
            best = Some(found);
        }
    }
    let is_circle = best.is_some();
    // Without a circle, some chain ends at a rank that has no obstacle.
    let path = best.or_else(|| {
        let start =
            (0..links.len()).find(|&class| links[class].iter().any(|(to, _)| links[*to].is_empty()))?;
        let at = links[start].iter().position(|(to, _)| links[*to].is_empty())?;
        Some(vec![(start, at)])
    });
    let chain = path?.into_iter().map(|(class, link)| links[class][link].1.clone()).collect();
    Some(Deadlock { chain, is_circle, stuck })
}

/// The shortest circle through a rank with fewer than `limit` links: (rank, which of its links).
fn circle(links: &[Vec<(usize, Link)>], start: usize, limit: usize) -> Option<Vec<(usize, usize)>> {
    let mut came: Vec<Option<(usize, usize)>> = vec![None; links.len()];
    let mut queue = VecDeque::from([(start, 1)]);
    while let Some((at, depth)) = queue.pop_front() {
        if depth >= limit {
            return None;
        }
        for (i, (to, _)) in links[at].iter().enumerate() {
            if *to == start {
                let mut path = vec![(at, i)];
                while let Some(&(last, _)) = path.last().filter(|last| last.0 != start) {
                    path.push(came[last]?);
                }
                path.reverse();
                return Some(path);
            }
            if came[*to].is_none() {
                came[*to] = Some((at, i));
                queue.push_back((*to, depth + 1));
            }
        }
    }
    None
}

/// The ranks that a rank waits for, with the reasons; none if it is done.
fn links(machine: &Machine, class: usize) -> Vec<(usize, Link)> {
    let program = machine.program(class);
    let rank = &machine.ranks[class];
    let name_at = |at: usize| match program.steps.get(at) {
        Some(Step::Wait { name, .. } | Step::Compute { name, .. }) => Some(name.clone()),
        Some(&Step::Launch(operation)) => Some(program.operations[operation].name.clone()),
        None => None,
    };
    let at = rank.waits_for.and_then(|_| name_at(rank.at));
    // The operations at the heads of the streams that this rank needs.
    let mut obstacles: Vec<(usize, usize)> = Vec::new();
    for channel in 0..machine.network.channels.len() {
        let Some(queue) = machine.queue(channel, class) else { continue };
        let Some(head) = machine.queues[queue].front() else { continue };
        let is_needed = match rank.waits_for {
            None => machine.is_at_end(class),
            Some(needed) => machine.queues[queue].iter().any(|entry| entry.operation == needed),
        };
        let is_open = head.open.iter().any(|open| {
            open.0 == channel
                && (open.1 + open.2 > 0 || matches!(machine.network.channels[channel], Channel::Group { .. }))
        });
        if is_needed && is_open {
            obstacles.push((channel, head.operation));
        }
    }
    let mut found = Vec::new();
    if let (Some(needed), true) = (rank.waits_for, obstacles.is_empty()) {
        // A wait in front of its own launch, or a buffered message that nobody sends.
        let operation = &program.operations[needed];
        let (lacks, because) = match rank.open[needed] {
            None => (class, format!("it launches {} only after that", operation.name)),
            Some(_) => match unsent(machine, class, needed) {
                Some(peer) => (peer, standing(machine, peer, "has not sent it")),
                None => return found,
            },
        };
        found.push((lacks, link(machine, class, at, needed, lacks, because)));
        return found;
    }
    for (channel, operation) in obstacles {
        for &(other, _) in machine.network.channels[channel].ends() {
            if other == class {
                continue;
            }
            if let Some(because) = lacking(machine, channel, class, operation, other) {
                found.push((other, link(machine, class, at.clone(), operation, other, because)));
            }
        }
    }
    found
}

fn link(
    machine: &Machine,
    class: usize,
    at: Option<String>,
    operation: usize,
    lacks: usize,
    because: String,
) -> Link {
    let operation = &machine.program(class).operations[operation];
    Link {
        rank: machine.classes.first[class],
        at,
        needs: operation.name.clone(),
        group: operation.group.clone(),
        lacks: machine.classes.first[lacks],
        because,
    }
}

/// Why the operation at the head of a stream of `class` cannot go on for want of `other`; `None` if that is ready.
fn lacking(
    machine: &Machine,
    channel: usize,
    class: usize,
    operation: usize,
    other: usize,
) -> Option<String> {
    let queue = machine.queue(channel, other)?;
    let theirs = machine.program(other);
    let head = machine.queues[queue].front();
    let is_here = head.is_some_and(|head| head.open.iter().any(|open| open.0 == channel));
    let what = &machine.program(class).operations[operation];
    match &machine.network.channels[channel] {
        Channel::Group { .. } => {
            if is_here {
                return None;
            }
            let number = machine.completed(channel);
            let meets = machine.network.launches(channel, other).get(number);
            let name = meets.map_or(what.name.as_str(), |&at| theirs.operations[at].name.as_str());
            let is_launched = meets.is_some_and(|&at| machine.ranks[other].open[at].is_some());
            Some(match (head, is_launched) {
                (Some(head), true) => {
                    let first = &theirs.operations[head.operation];
                    let rank = machine.classes.first[other];
                    format!("rank {rank} has {name} behind {} on {} in its stream", first.name, first.group)
                }
                _ => standing(
                    machine,
                    other,
                    &format!("has not launched {name} (launch {number} on {})", what.group),
                ),
            })
        }
        Channel::Pair { .. } => {
            let mine = machine.queues[machine.queue(channel, class)?].front()?;
            let open = mine.open.iter().find(|open| open.0 == channel)?;
            let verb = if open.1 > 0 { "receive" } else { "send" };
            let rank = machine.classes.first[other];
            Some(match (head, is_here) {
                (Some(head), true) => {
                    let doing = if open.1 > 0 { "sends" } else { "receives" };
                    let first = &theirs.operations[head.operation];
                    format!("rank {rank} does not {verb}, it first {doing} {}", first.name)
                }
                (Some(head), false) => {
                    let first = &theirs.operations[head.operation];
                    format!("rank {rank} has {} on {} in front in its stream", first.name, first.group)
                }
                (None, _) => standing(machine, other, &format!("has not come to {verb}")),
            })
        }
    }
}

/// What a rank has not done, and where it stands.
fn standing(machine: &Machine, class: usize, lacks: &str) -> String {
    let rank = machine.classes.first[class];
    let state = &machine.ranks[class];
    match machine.program(class).steps.get(state.at) {
        Some(Step::Wait { name, .. } | Step::Compute { name, .. }) => {
            format!("rank {rank}, at {name}, {lacks}")
        }
        Some(&Step::Launch(operation)) => {
            format!("rank {rank}, at {}, {lacks}", machine.program(class).operations[operation].name)
        }
        None => format!("rank {rank} has ended and {lacks}"),
    }
}

/// The class whose buffered message a receive waits for.
fn unsent(machine: &Machine, class: usize, operation: usize) -> Option<usize> {
    let own = machine.classes.first[class];
    let what = &machine.program(class).operations[operation];
    let group = machine.programs.world.group(&what.group)?;
    let (instance, _) = group.instance_of(own)?;
    let receive = what.parts.iter().find(|part| !part.sends)?;
    let peer = group.instances[instance].get(usize::try_from(receive.peer).ok()?)?;
    machine.classes.of_rank.get(*peer as usize).copied()
}
