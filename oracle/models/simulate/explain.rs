//! A deadlock in words: the shortest chain of ranks that wait for each other.
//!
//! Where the machine stands still, every rank that is not done has an *obstacle*: the operation at the head of the
//! stream that it needs. The obstacle lacks some ranks: those that have not launched it, or have other operations in
//! front of it. So each stuck rank points at ranks, and following them either comes back (a circle: nobody can go
//! on), or to a rank that has ended without launching what is lacking.

use super::Step;
use super::machine::{Channel, Entry, Machine};
use std::collections::VecDeque;
use std::fmt;

/// Searches for a shorter chain begin at no more than so many ranks, and look at no more than so many links in all.
const SEARCHES: usize = 512;
const LOOKS: usize = 1 << 22;

/// Of the ranks that a collective lacks, no more than so many are followed.
const LACKING: usize = 16;

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
    let lackers: Vec<Vec<usize>> =
        (0..machine.network.channels.len()).map(|channel| lackers(machine, channel)).collect();
    let links: Vec<Vec<(usize, Reason)>> =
        (0..machine.ranks.len()).map(|class| links(machine, &lackers, class)).collect();
    let stuck = links.iter().filter(|links| !links.is_empty()).count();
    let mut best: Option<Vec<(usize, usize)>> = None;
    let mut looks = LOOKS;
    for start in (0..links.len()).filter(|&class| !links[class].is_empty()).take(SEARCHES) {
        let limit = best.as_ref().map_or(usize::MAX, Vec::len);
        if let Some(found) = circle(&links, start, limit, &mut looks) {
            best = Some(found);
        }
    }
    let chain_end = || {
        // Without a circle, some chain ends at a rank that has no obstacle.
        let start =
            (0..links.len()).find(|&class| links[class].iter().any(|(to, _)| links[*to].is_empty()))?;
        let at = links[start].iter().position(|(to, _)| links[*to].is_empty())?;
        Some(vec![(start, at)])
    };
    let (path, is_circle) = match best {
        Some(circle) => (circle, true),
        None => match chain_end() {
            Some(chain) => (chain, false),
            // All searches have given up. Whoever follows the links comes back to where it was.
            None => (some_circle(&links)?, true),
        },
    };
    let describe = |(class, at): (usize, usize)| {
        let (lacks, reason) = links[class][at];
        reason.link(machine, class, lacks)
    };
    Some(Deadlock { chain: path.into_iter().map(describe).collect(), is_circle, stuck })
}

/// Why a rank waits for another one.
#[derive(Clone, Copy)]
enum Reason {
    /// That one is not ready for the operation at the head of the stream of a channel.
    Head { channel: usize, operation: usize },
    /// It launches the operation only after its wait.
    Unlaunched(usize),
    /// The other one has not sent the message.
    Unsent(usize),
}

impl Reason {
    fn link(self, machine: &Machine, class: usize, lacks: usize) -> Link {
        let program = machine.program(class);
        let (needs, because) = match self {
            Reason::Head { channel, operation } => {
                (operation, lacking(machine, channel, class, operation, lacks))
            }
            Reason::Unlaunched(needed) => {
                (needed, Some(format!("it launches {} only after that", program.operations[needed].name)))
            }
            Reason::Unsent(needed) => (needed, Some(standing(machine, lacks, "has not sent it"))),
        };
        let rank = &machine.ranks[class];
        let at = rank.waits_for.and_then(|_| match program.steps.get(rank.at)? {
            Step::Wait { name, .. } | Step::Compute { name, .. } => Some(name.clone()),
            &Step::Launch(operation) => Some(program.operations[operation].name.clone()),
        });
        let operation = &program.operations[needs];
        Link {
            rank: machine.classes.first[class],
            at,
            needs: operation.name.clone(),
            group: operation.group.clone(),
            lacks: machine.classes.first[lacks],
            because: because.unwrap_or_default(),
        }
    }
}

/// The first ends of a channel that are not ready for its next operation.
fn lackers(machine: &Machine, channel: usize) -> Vec<usize> {
    let is_ready = |&(class, _): &(usize, u32)| {
        let head = machine.queue(channel, class).and_then(VecDeque::front);
        head.is_some_and(|head| machine.is_in_turn(class, head))
    };
    let ends = machine.network.channels[channel].ends().iter();
    ends.filter(|end| !is_ready(end)).map(|end| end.0).take(LACKING).collect()
}

/// A circle that is reached by taking the first link of each rank.
fn some_circle(links: &[Vec<(usize, Reason)>]) -> Option<Vec<(usize, usize)>> {
    let mut at = links.iter().position(|links| !links.is_empty())?;
    let mut seen = vec![usize::MAX; links.len()];
    let mut path: Vec<(usize, usize)> = Vec::new();
    while seen[at] == usize::MAX {
        seen[at] = path.len();
        path.push((at, 0));
        at = links[at].first()?.0;
    }
    Some(path.split_off(seen[at]))
}

/// The shortest circle through a rank with fewer than `limit` links: (rank, which of its links). `None` too where there
/// are no more `looks`.
fn circle(
    links: &[Vec<(usize, Reason)>],
    start: usize,
    limit: usize,
    looks: &mut usize,
) -> Option<Vec<(usize, usize)>> {
    // Before a search looks at anything, it makes room for every rank.
    *looks = looks.checked_sub(links.len())?;
    let mut came: Vec<Option<(usize, usize)>> = vec![None; links.len()];
    let mut queue = VecDeque::from([(start, 1)]);
    while let Some((at, depth)) = queue.pop_front() {
        if depth >= limit {
            return None;
        }
        *looks = looks.checked_sub(links[at].len())?;
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
fn links(machine: &Machine, lackers: &[Vec<usize>], class: usize) -> Vec<(usize, Reason)> {
    let rank = &machine.ranks[class];
    if rank.waits_for.is_none() && !machine.is_at_end(class) {
        return Vec::new();
    }
    // The operations at the heads of the streams that this rank needs.
    let mut obstacles: Vec<(usize, usize)> = Vec::new();
    let queues = machine.network.channels_of(class);
    let queues = || queues.iter().filter_map(|&channel| Some((channel, machine.queue(channel, class)?)));
    let is_for = |needed: usize| move |entry: &&Entry| entry.operation == needed;
    let is_held = rank.waits_for.is_some_and(|needed| {
        let mut entries = queues().flat_map(|(_, queue)| queue.iter().filter(is_for(needed)));
        entries.any(|entry| !machine.is_in_turn(class, entry))
    });
    for (channel, queue) in queues() {
        let Some(head) = queue.front().filter(|head| machine.is_in_turn(class, head)) else { continue };
        let is_needed = match rank.waits_for {
            None => true,
            Some(needed) => is_held || queue.iter().find(is_for(needed)).is_some(),
        };
        if is_needed {
            obstacles.push((channel, head.operation));
        }
    }
    let mut found = Vec::new();
    if let (Some(needed), true) = (rank.waits_for, obstacles.is_empty()) {
        // A wait in front of its own launch, or a buffered message that nobody sends.
        match rank.open[needed] {
            None => found.push((class, Reason::Unlaunched(needed))),
            Some(_) => {
                found.extend(unsent(machine, class, needed).map(|peer| (peer, Reason::Unsent(needed))))
            }
        }
        return found;
    }
    for (channel, operation) in obstacles {
        let reason = Reason::Head { channel, operation };
        match &machine.network.channels[channel] {
            Channel::Group { .. } => {
                found.extend(
                    lackers[channel].iter().filter(|&&other| other != class).map(|&other| (other, reason)),
                );
            }
            Channel::Pair { ends, .. } => {
                let others = ends.iter().map(|end| end.0).filter(|&other| other != class);
                let lacks = |&other: &usize| lacking(machine, channel, class, operation, other).is_some();
                found.extend(others.filter(lacks).map(|other| (other, reason)));
            }
        }
    }
    found
}

/// Why the operation at the head of a stream of `class` cannot go on for want of `other`; `None` if that is ready.
fn lacking(
    machine: &Machine,
    channel: usize,
    class: usize,
    operation: usize,
    other: usize,
) -> Option<String> {
    let theirs = machine.program(other);
    let head = machine.queue(channel, other)?.front();
    let rank = machine.classes.first[other];
    let what = &machine.program(class).operations[operation];
    if let Some(head) = head
        && let Some(first) = machine.holds(other, head)
    {
        let [name, first] = [head.operation, first].map(|at| &theirs.operations[at]);
        return Some(format!(
            "rank {rank} has {} behind {} on {} in its stream",
            name.name, first.name, first.group
        ));
    }
    match &machine.network.channels[channel] {
        Channel::Group { .. } if head.is_some() => None,
        Channel::Group { .. } => {
            let number = machine.completed(channel);
            let meets = machine.network.launches(channel, other).get(number);
            let name = meets.map_or(what.name.as_str(), |&at| theirs.operations[at].name.as_str());
            Some(standing(
                machine,
                other,
                &format!("has not launched {name} (launch {number} on {})", what.group),
            ))
        }
        Channel::Pair { .. } => {
            let mine = machine.queue(channel, class)?.front()?;
            let [verb, doing] = if mine.sends > 0 { ["receive", "sends"] } else { ["send", "receives"] };
            Some(match head {
                Some(head) => {
                    let first = &theirs.operations[head.operation].name;
                    format!("rank {rank} does not {verb}, it first {doing} {first}")
                }
                None => standing(machine, other, &format!("has not come to {verb}")),
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
    let places = &machine.classes.places;
    let group = places.group(&what.group)?;
    let (instance, _) = places.instance_of(group, own)?;
    let receive = what.parts.iter().find(|part| !part.sends)?;
    let peer =
        machine.programs.world.groups[group].instances[instance].get(usize::try_from(receive.peer).ok()?)?;
    machine.classes.of_rank.get(*peer as usize).copied()
}
