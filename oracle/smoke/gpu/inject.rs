//! Faults that are planted in a plan, so that a run can show that it would see them.
//!
//! What is planted is chosen from what the plan holds, without asking the checks: a wait, for example, whose event
//! nothing else orders, before a kernel that reads what the event stands for.

use super::passes::arena::earliest;
use super::plan::{Action, Command, Launch, Part, Plan};

/// A kind of fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A buffer is freed before its last use.
    UseAfterFree,
    /// A stream does not wait for an event.
    MissingWait,
    /// A kernel writes one element past the end of a buffer.
    OutOfBounds,
    /// A buffer is not freed.
    Leak,
    /// A buffer is placed on the bytes of another one that is still needed.
    EarlyReuse,
}

/// A plan with a fault.
#[derive(Clone, Debug)]
pub struct Injected {
    /// The plan.
    pub plan: Plan,
    /// Offsets in the arena, where they are what is at fault.
    pub offsets: Option<Vec<u64>>,
    /// What was planted.
    pub what: String,
}

impl Fault {
    /// All faults.
    pub const ALL: [Fault; 5] =
        [Fault::UseAfterFree, Fault::MissingWait, Fault::OutOfBounds, Fault::Leak, Fault::EarlyReuse];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Fault::UseAfterFree => "use-after-free",
            Fault::MissingWait => "missing-wait",
            Fault::OutOfBounds => "out-of-bounds",
            Fault::Leak => "leak",
            Fault::EarlyReuse => "early-reuse",
        }
    }

    /// The inverse of [`Fault::name`].
    pub fn parse(name: &str) -> Option<Fault> {
        Fault::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// How many places of a plan there are for the fault.
    pub fn places(self, plan: &Plan) -> usize {
        self.candidates(plan).len()
    }

    /// Plants the fault in the place that the seed picks.
    ///
    /// # Errors
    /// For a plan that has no place for it.
    pub fn plant(self, plan: Plan, seed: u64) -> Result<Injected, String> {
        let candidates = self.candidates(&plan);
        match candidates.get((seed % candidates.len().max(1) as u64) as usize) {
            Some(&(at, other)) => Ok(self.apply(plan, at, other)),
            None => Err(format!("the plan has no place for {}", self.name())),
        }
    }

    /// A command and what else the fault needs: another command, or for early reuse two buffers.
    fn candidates(self, plan: &Plan) -> Vec<(usize, usize)> {
        match self {
            Fault::UseAfterFree => frees(plan)
                .filter_map(|(at, buffer)| {
                    let stream = plan.commands[at].stream;
                    let uses = |c: &Command| touches(&c.action, buffer);
                    let last = plan.commands[..at].iter().rposition(uses)?;
                    (plan.commands[last].stream == stream).then_some((at, last))
                })
                .collect(),
            Fault::MissingWait => {
                (0..plan.commands.len()).filter(|&at| matters(plan, at)).map(|at| (at, 0)).collect()
            }
            Fault::OutOfBounds => {
                let mut all = Vec::new();
                for (at, launch) in launches(plan) {
                    let past_end = |part: &Part| {
                        part.view.end() == plan.buffers[part.buffer as usize].bytes && part.view.size() >= 4
                    };
                    all.extend(launch.writes.iter().position(past_end).map(|write| (at, write)));
                }
                all
            }
            Fault::Leak => frees(plan).map(|(at, _)| (at, 0)).collect(),
            Fault::EarlyReuse => {
                let mut all = Vec::new();
                let frees: Vec<(usize, u32)> = frees(plan).collect();
                for (made, command) in plan.commands.iter().enumerate() {
                    let Action::Alloc(newer) = command.action else { continue };
                    let writes = |launch: &Launch| launch.writes.iter().any(|part| part.buffer == newer);
                    let Some((write, _)) = launches(plan).find(|(at, l)| *at > made && writes(l)) else {
                        continue;
                    };
                    for &(freed, older) in &frees {
                        let reads = |c: &Command| match &c.action {
                            Action::Launch(launch) => launch.reads.iter().any(|part| part.buffer == older),
                            _ => false,
                        };
                        let same = plan.buffers[older as usize].rank == plan.buffers[newer as usize].rank;
                        let made_before =
                            plan.commands[..made].iter().any(|c| c.action == Action::Alloc(older));
                        if same
                            && older != newer
                            && freed > write
                            && made_before
                            && plan.commands[write + 1..freed].iter().any(reads)
                        {
                            all.push((newer as usize, older as usize));
                        }
                    }
                }
                all
            }
        }
    }

    fn apply(self, mut plan: Plan, at: usize, other: usize) -> Injected {
        let mut offsets = None;
        let what = match self {
            Fault::UseAfterFree => {
                let mut free = plan.commands.remove(at);
                free.step = plan.commands[other].step;
                let what = format!("{}, before {}", describe_free(&plan, &free.action), plan.describe(other));
                plan.commands.insert(other, free);
                what
            }
            Fault::MissingWait | Fault::Leak => {
                let what = format!("without: {}", plan.describe(at));
                plan.commands.remove(at);
                what
            }
            Fault::OutOfBounds => {
                let what = format!("one element further: {}", plan.describe(at));
                if let Action::Launch(launch) = &mut plan.commands[at].action
                    && let Some(write) = launch.writes.get_mut(other)
                {
                    write.view.offset += 1;
                }
                what
            }
            Fault::EarlyReuse => {
                let mut at_once = earliest(&plan);
                at_once[at] = at_once[other];
                offsets = Some(at_once);
                format!("{} on the bytes of {}, which is still read", plan.buffers[at], plan.buffers[other])
            }
        };
        Injected { plan, offsets, what }
    }
}

fn describe_free(plan: &Plan, action: &Action) -> String {
    match action {
        Action::Free(buffer) => format!("frees {}", plan.buffers[*buffer as usize]),
        _ => String::new(),
    }
}

fn frees(plan: &Plan) -> impl Iterator<Item = (usize, u32)> {
    plan.commands.iter().enumerate().filter_map(|(at, command)| match command.action {
        Action::Free(buffer) => Some((at, buffer)),
        _ => None,
    })
}

fn launches(plan: &Plan) -> impl Iterator<Item = (usize, &Launch)> {
    plan.commands.iter().enumerate().filter_map(|(at, command)| match &command.action {
        Action::Launch(launch) => Some((at, launch)),
        _ => None,
    })
}

fn touches(action: &Action, buffer: u32) -> bool {
    match action {
        Action::Launch(launch) => launch.reads.iter().chain(&launch.writes).any(|part| part.buffer == buffer),
        _ => false,
    }
}

/// Whether a command is a wait of a compute stream that nothing else makes up for, before a kernel on that stream that
/// reads what the stream of the event has written.
fn matters(plan: &Plan, at: usize) -> bool {
    let command = &plan.commands[at];
    let Action::Wait(event) = command.action else { return false };
    if plan.streams[command.stream as usize].communicates() {
        return false;
    }
    let Some(record) = plan.commands.iter().position(|c| c.action == Action::Record(event)) else {
        return false;
    };
    let from = plan.commands[record].stream;
    // What the stream of the event has written until then.
    let written: Vec<(usize, &Part)> = launches(plan)
        .filter(|&(other, _)| other < record && plan.commands[other].stream == from)
        .flat_map(|(other, launch)| launch.writes.iter().map(move |part| (other, part)))
        .collect();
    let meets = |read: &Part, write: &Part| {
        let (a, b) = (read.view.ranges(), write.view.ranges());
        read.buffer == write.buffer && a.iter().any(|a| b.iter().any(|b| a.start < b.end && b.start < a.end))
    };
    let unordered = |reader: usize, read: &Part| {
        written
            .iter()
            .any(|&(writer, write)| meets(read, write) && !ordered_without(plan, writer, reader, at))
    };
    let later = |&(other, _): &(usize, &Launch)| other > at && plan.commands[other].stream == command.stream;
    launches(plan)
        .filter(later)
        .any(|(reader, launch)| launch.reads.iter().any(|read| unordered(reader, read)))
}

/// Whether `writer` comes before `reader` even without `wait`: backwards along streams and events.
fn ordered_without(plan: &Plan, writer: usize, reader: usize, wait: usize) -> bool {
    let mut reached: Vec<usize> = vec![0; plan.streams.len()];
    let mut open = vec![(plan.commands[reader].stream, reader)];
    while let Some((stream, before)) = open.pop() {
        let known = reached[stream as usize];
        for at in known..before {
            let command = &plan.commands[at];
            if command.stream != stream || at == wait {
                continue;
            }
            if at == writer {
                return true;
            }
            if let Action::Wait(event) = command.action
                && let Some(other) = plan.commands.iter().position(|c| c.action == Action::Record(event))
            {
                open.push((plan.commands[other].stream, other + 1));
            }
        }
        reached[stream as usize] = known.max(before);
    }
    false
}
