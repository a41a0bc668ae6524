//! The simulator against a search through all interleavings of tiny programs. The search knows nothing of classes,
//! sequences or time: a state is what each rank has done and what lies in each queue.

use crate::generate::{Bytes, Source};
use crate::graph::{Group, World};
use crate::ops::Collective;
use crate::simulate::{Messages, Operation, Options, Part, Program, Programs, Step, Streams, simulate};
use std::collections::HashSet;

/// What a comparison came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compared {
    /// Whether the programs finish.
    pub finish: bool,
    /// How many states there are.
    pub states: usize,
}

/// On programs made from choices.
pub fn check(data: &[u8]) {
    check_source(&mut Bytes::new(data));
}

/// Panics unless the simulator and the search say the same of programs made from the choices of `source`, all
/// interleavings end alike, and what is stuck is told.
pub fn check_source(source: &mut impl Source) -> Compared {
    let programs = if source.percent(30) { shared(source) } else { tiny(source) };
    let streams = source.one_of(&[Streams::PerGroup, Streams::One]);
    let messages = source.one_of(&[Messages::Rendezvous, Messages::Blocking, Messages::Buffered]);
    let options = Options { streams, messages };
    let report = simulate(&programs, options);
    assert!(report.faults.is_empty(), "{report}");
    let (all, none, states) = search(&programs, options);
    assert!(all || none, "it depends on the interleaving: {programs:#?}");
    assert_eq!(report.finishes(), Some(all), "{options:?}: {report}{programs:#?}");
    let is_told = !report.mismatches.is_empty() || report.deadlock.is_some_and(|d| !d.chain.is_empty());
    assert!(all || is_told, "{options:?}: nothing is told of {programs:#?}");
    Compared { finish: all, states }
}

/// A launched operation: its rank, its number in the program, and its messages that are still open, each with the
/// sending and the receiving rank.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Entry {
    operation: usize,
    messages: Vec<(u32, u32)>,
    /// How many changes from collectives or to collectives the launches of its rank have seen, itself included.
    block: usize,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    at: Vec<usize>,
    /// For each rank its queues, in the order of `Search::streams`.
    queues: Vec<Vec<Vec<Entry>>>,
    /// Messages on their way.
    sent: Vec<(u32, u32)>,
    complete: Vec<Vec<bool>>,
}

/// Where an operation queues.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Stream {
    Group(String),
    Pair(u32, u32),
}

struct Search<'a> {
    programs: &'a Programs,
    options: Options,
    streams: Vec<Stream>,
}

impl Search<'_> {
    fn program(&self, rank: usize) -> &Program {
        &self.programs.programs[self.programs.of_rank[rank]]
    }

    fn members(&self, group: &str, rank: usize) -> Vec<u32> {
        let group = self.programs.world.group(group).unwrap();
        group.instances[group.instance_of(rank as u32).unwrap().0].clone()
    }

    /// The messages of an operation of `rank`, as (from, to).
    fn messages(&self, rank: usize, operation: &Operation) -> Vec<(u32, u32)> {
        let members = self.members(&operation.group, rank);
        let ends = |part: &Part| match (rank as u32, members[part.peer as usize]) {
            (own, peer) if part.sends => (own, peer),
            (own, peer) => (peer, own),
        };
        operation.parts.iter().map(ends).collect()
    }

    /// The queues that an operation goes to, with its share of messages.
    fn entries(&self, rank: usize, number: usize) -> Vec<(usize, Entry)> {
        let operation = &self.program(rank).operations[number];
        let find = |stream: &Stream| self.streams.iter().position(|s| s == stream).unwrap();
        let messages = self.messages(rank, operation);
        let collectives = self.program(rank).operations[..number].iter().filter(|o| !o.is_message()).count();
        let block = 2 * collectives + usize::from(!operation.is_message());
        if !operation.is_message() {
            return vec![(
                find(&Stream::Group(operation.group.clone())),
                Entry { operation: number, messages, block },
            )];
        }
        let mut entries: Vec<(usize, Entry)> = Vec::new();
        for (from, to) in messages {
            let queue = find(&Stream::Pair(from.min(to), from.max(to)));
            match entries.iter_mut().find(|entry| entry.0 == queue) {
                Some(entry) => entry.1.messages.push((from, to)),
                None => entries.push((queue, Entry { operation: number, messages: vec![(from, to)], block })),
            }
        }
        entries
    }

    /// All states that can follow.
    fn next(&self, state: &State) -> Vec<State> {
        let mut next = Vec::new();
        let ranks = self.programs.of_rank.len();
        for rank in 0..ranks {
            let program = self.program(rank);
            let Some(step) = program.steps.get(state.at[rank]) else { continue };
            let mut after = state.clone();
            match step {
                Step::Compute { .. } => after.at[rank] += 1,
                Step::Wait { operation, .. } if state.complete[rank][*operation] => after.at[rank] += 1,
                Step::Wait { .. } => continue,
                Step::Launch(number) => {
                    let operation = &program.operations[*number];
                    let stands = operation.is_message() && self.options.messages != Messages::Rendezvous;
                    let is_buffered = operation.is_message() && self.options.messages == Messages::Buffered;
                    if is_buffered {
                        // One message at a time is all that the programs here have.
                        let (from, to) = self.messages(rank, operation)[0];
                        if from == rank as u32 {
                            after.sent.push((from, to));
                        } else {
                            let Some(at) = after.sent.iter().position(|&m| m == (from, to)) else { continue };
                            after.sent.remove(at);
                        }
                        after.complete[rank][*number] = true;
                        after.sent.sort_unstable();
                        after.at[rank] += 1;
                    } else if self.is_launched(state, rank, *number) {
                        if !state.complete[rank][*number] {
                            continue;
                        }
                        after.at[rank] += 1;
                    } else {
                        for (queue, entry) in self.entries(rank, *number) {
                            after.queues[rank][queue].push(entry);
                        }
                        after.at[rank] += usize::from(!stands);
                    }
                }
            }
            next.push(after);
        }
        for (queue, stream) in self.streams.iter().enumerate() {
            next.extend(self.completions(state, queue, stream));
        }
        next
    }

    fn is_launched(&self, state: &State, rank: usize, number: usize) -> bool {
        state.complete[rank][number]
            || state.queues[rank].iter().flatten().any(|entry| entry.operation == number)
    }

    /// The head of a queue, unless its rank has one stream and something in it before.
    fn head<'s>(&self, state: &'s State, rank: usize, queue: usize) -> Option<&'s Entry> {
        let earliest = state.queues[rank].iter().flatten().map(|entry| entry.block).min();
        let is_free = |entry: &&Entry| self.options.streams != Streams::One || Some(entry.block) == earliest;
        state.queues[rank][queue].first().filter(is_free)
    }

    fn completions(&self, state: &State, queue: usize, _: &Stream) -> Vec<State> {
        let mut next = Vec::new();
        let ranks = self.programs.of_rank.len();
        for rank in 0..ranks {
            let Some(head) = self.head(state, rank, queue) else { continue };
            let operation = &self.program(rank).operations[head.operation];
            if !operation.is_message() {
                let members = self.members(&operation.group, rank);
                let is_here = |&other: &u32| {
                    self.head(state, other as usize, queue).is_some_and(|entry| {
                        let theirs = &self.program(other as usize).operations[entry.operation];
                        !theirs.is_message() && theirs.group == operation.group && theirs.meets(operation)
                    })
                };
                if members[0] == rank as u32 && members.iter().all(is_here) {
                    let mut after = state.clone();
                    for &other in &members {
                        self.pop(&mut after, other as usize, queue);
                    }
                    next.push(after);
                }
                continue;
            }
            for &(from, to) in head.messages.iter().filter(|m| m.0 == rank as u32) {
                let meets = |entry: &&Entry| entry.messages.contains(&(from, to));
                if self.head(state, to as usize, queue).filter(meets).is_none() {
                    continue;
                }
                let mut after = state.clone();
                for end in [from, to] {
                    let messages = &mut after.queues[end as usize][queue][0].messages;
                    let at = messages.iter().position(|&m| m == (from, to)).unwrap();
                    messages.remove(at);
                    if messages.is_empty() {
                        self.pop(&mut after, end as usize, queue);
                    }
                }
                next.push(after);
            }
        }
        next
    }

    fn pop(&self, state: &mut State, rank: usize, queue: usize) {
        let entry = state.queues[rank][queue].remove(0);
        let is_left = state.queues[rank].iter().flatten().any(|other| other.operation == entry.operation);
        state.complete[rank][entry.operation] = !is_left;
    }

    fn is_done(&self, state: &State) -> bool {
        let at_end = |rank: usize| state.at[rank] == self.program(rank).steps.len();
        (0..state.at.len()).all(at_end) && state.queues.iter().flatten().all(Vec::is_empty)
    }
}

/// Whether all interleavings finish, and whether none does; and how many states there are.
fn search(programs: &Programs, options: Options) -> (bool, bool, usize) {
    let ranks = programs.of_rank.len();
    let mut streams = Vec::new();
    for group in &programs.world.groups {
        streams.push(Stream::Group(group.name.clone()));
    }
    for a in 0..ranks as u32 {
        streams.extend((a + 1..ranks as u32).map(|b| Stream::Pair(a, b)));
    }
    let search = Search { programs, options, streams };
    let start = State {
        at: vec![0; ranks],
        queues: vec![vec![Vec::new(); search.streams.len()]; ranks],
        sent: Vec::new(),
        complete: (0..ranks).map(|rank| vec![false; search.program(rank).operations.len()]).collect(),
    };
    let mut seen = HashSet::from([start.clone()]);
    let mut stack = vec![start];
    let (mut all, mut none) = (true, true);
    while let Some(state) = stack.pop() {
        let next = search.next(&state);
        if next.is_empty() {
            // A buffered message that nobody receives is an end that is missing.
            let finished = search.is_done(&state) && state.sent.is_empty();
            all &= finished;
            none &= !finished;
        }
        for state in next {
            if seen.insert(state.clone()) {
                stack.push(state);
            }
        }
    }
    (all, none, seen.len())
}

/// Four ranks that share two or three programs, on groups with several instances: ranks that run one program meet
/// others that may or may not. Each program makes the same launches, up to two of them in another order, and waits
/// somewhere.
fn shared(source: &mut impl Source) -> Programs {
    let group = |name: &str, instances: &[&[u32]]| Group {
        name: name.to_string(),
        size: instances[0].len() as u32,
        recorded_rank: None,
        instances: instances.iter().map(|ranks| ranks.to_vec()).collect(),
    };
    let groups = vec![
        group("a", &[&[0, 1], &[2, 3]]),
        group("b", &[&[0, 2], &[1, 3]]),
        group("all", &[&[0, 1, 2, 3]]),
    ];
    let names: Vec<&str> = (0..source.between(1, 3)).map(|_| source.one_of(&["a", "b", "all"])).collect();
    let mut all = Vec::new();
    for _ in 0..source.between(2, 3) {
        let mut order: Vec<usize> = (0..names.len()).collect();
        if order.len() > 1 && source.percent(50) {
            let at = source.below(order.len() as u32 - 1) as usize;
            order.swap(at, at + 1);
        }
        let mut program = Program::default();
        let mut waits = Vec::new();
        for launch in order {
            let name = format!("g{launch}");
            let at = program.launch(Operation::collective(&name, names[launch], Collective::AllReduce));
            waits.push(at);
            while source.percent(50) && !waits.is_empty() {
                let wait = waits.remove(source.below(waits.len() as u32) as usize);
                program.wait(&format!("wait_{}", program.operations[wait].name.clone()), wait);
            }
        }
        all.push(program);
    }
    let of_rank = (0..4).map(|_| source.below(all.len() as u32) as usize).collect();
    Programs { programs: all, of_rank, world: World { ranks: Some(4), groups } }
}

/// Up to 4 ranks, at most 8 operations in all; mostly nearly right programs, since random ones hardly ever finish.
fn tiny(source: &mut impl Source) -> Programs {
    let ranks = source.between(2, 4);
    let mut groups: Vec<Group> = Vec::new();
    for name in ["a", "b", "c"].iter().take(source.between(1, 3) as usize) {
        let mut members: Vec<u32> = (0..ranks).filter(|_| source.percent(70)).collect();
        if members.len() < 2 {
            members = vec![0, 1];
        }
        let size = members.len() as u32;
        groups.push(Group { name: name.to_string(), size, recorded_rank: None, instances: vec![members] });
    }
    let everyone =
        Group { name: "all".into(), size: ranks, recorded_rank: None, instances: vec![(0..ranks).collect()] };
    groups.push(everyone);
    let mut all = vec![Program::default(); ranks as usize];
    let mut left = 8;
    let mut number = 0;
    let is_spmd = source.percent(15);
    while left > 0 {
        number += 1;
        if source.percent(45) && !is_spmd {
            let from = source.below(ranks);
            let to = (from + 1 + source.below(ranks - 1)) % ranks;
            let name = format!("m{number}");
            all[from as usize].launch(Operation::message(&format!("{name}s"), "all", true, i64::from(to)));
            all[to as usize].launch(Operation::message(&format!("{name}r"), "all", false, i64::from(from)));
            left -= 2;
        } else {
            let group = source.below(groups.len() as u32) as usize;
            let members = groups[group].instances[0].clone();
            let kind = source.one_of(&[
                Collective::AllReduce,
                Collective::AllReduce,
                Collective::Barrier,
                Collective::AllGather,
            ]);
            for &rank in &members {
                all[rank as usize].launch(Operation::collective(
                    &format!("g{number}"),
                    &groups[group].name,
                    kind,
                ));
            }
            left -= members.len() as i32;
        }
        if source.percent(20) {
            break;
        }
    }
    for program in &mut all {
        // Waits somewhere after their launches.
        for operation in 0..program.operations.len() {
            let launch = program.steps.iter().position(|step| *step == Step::Launch(operation)).unwrap_or(0);
            if source.percent(70) {
                let at = launch + 1 + source.below((program.steps.len() - launch) as u32) as usize;
                let name = format!("wait_{}", program.operations[operation].name);
                program.steps.insert(at.min(program.steps.len()), Step::Wait { name, operation });
            }
        }
        // A step moved by one place, or an operation lost.
        if source.percent(35) && program.steps.len() > 1 {
            let at = source.below(program.steps.len() as u32 - 1) as usize;
            program.steps.swap(at, at + 1);
        }
    }
    // The launches are numbered in their order.
    for program in &mut all {
        let order: Vec<usize> = program
            .steps
            .iter()
            .filter_map(|step| if let Step::Launch(operation) = step { Some(*operation) } else { None })
            .collect();
        let place = |old: usize| order.iter().position(|&o| o == old).unwrap();
        let operations = order.iter().map(|&old| program.operations[old].clone()).collect();
        for step in &mut program.steps {
            match step {
                Step::Launch(operation) | Step::Wait { operation, .. } => *operation = place(*operation),
                Step::Compute { .. } => {}
            }
        }
        program.operations = operations;
        if source.percent(6)
            && let Some(Step::Launch(last)) = program.steps.last()
            && *last + 1 == program.operations.len()
            && !program
                .steps
                .iter()
                .any(|step| matches!(step, Step::Wait { operation, .. } if operation == last))
        {
            program.steps.pop();
            program.operations.pop();
        }
    }
    let world = World { ranks: Some(ranks), groups };
    if is_spmd {
        let everyone = Program { steps: all[0].steps.clone(), ..all[0].clone() };
        let belongs = |group: &Group| group.instances[0].len() == ranks as usize;
        if everyone.operations.iter().all(|o| belongs(world.group(&o.group).unwrap())) {
            return Programs { programs: vec![everyone], of_rank: vec![0; ranks as usize], world };
        }
    }
    Programs { of_rank: (0..all.len()).collect(), programs: all, world }
}
