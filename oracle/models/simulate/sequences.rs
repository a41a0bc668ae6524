//! What the ranks of a communicator launch on it, one after the other: the same everywhere, or there is no telling
//! what meets what.

use super::classes::Classes;
use super::machine::{Channel, Network};
use super::mismatch::Mismatch;
use super::{Operation, Program, Programs, exchange};
use crate::analysis::sequences::unequal_parts;
use crate::graph::Places;
use crate::ops::Collective;
use std::collections::BTreeMap;

/// What is wrong with the input.
pub(super) fn faults(programs: &Programs) -> Vec<String> {
    let world = &programs.world;
    let mut faults: Vec<String> = world.faults().iter().map(ToString::to_string).collect();
    for (rank, &program) in programs.of_rank.iter().enumerate() {
        if program >= programs.programs.len() {
            faults.push(format!("rank {rank} runs program {program}, which does not exist"));
        }
    }
    if !faults.is_empty() {
        return faults;
    }
    // Of ranks that run one program the first is told.
    let mut seen = std::collections::BTreeSet::new();
    let used: Vec<Vec<Use>> = programs.programs.iter().map(Use::all).collect();
    let places = Places::new(world, programs.of_rank.len());
    let mut has_steps_checked = vec![false; programs.programs.len()];
    for (rank, &index) in programs.of_rank.iter().enumerate() {
        let program = &programs.programs[index];
        for Use { group: name, first, messages } in &used[index] {
            let first = &program.operations[*first].name;
            let Some(group) = places.group(name) else {
                if seen.insert((index, first.clone())) {
                    faults.push(format!("{first} is on process group {name:?}, which does not exist"));
                }
                continue;
            };
            let Some((instance, own)) = places.instance_of(group, rank as u32) else {
                if seen.insert((index, first.clone())) {
                    faults.push(format!(
                        "rank {rank} launches {first} on process group {name:?}, which it does not belong to"
                    ));
                }
                continue;
            };
            let size = world.groups[group].instances[instance].len();
            for operation in messages.iter().map(|&at| &program.operations[at]) {
                for part in &operation.parts {
                    let is_own = part.peer == own as i64;
                    let is_outside = usize::try_from(part.peer).map_or(true, |peer| peer >= size);
                    if (is_own || is_outside) && seen.insert((index, operation.name.clone())) {
                        faults.push(match is_own {
                            true => format!("the peer of {} on rank {rank} is that rank itself", operation.name),
                            false => format!(
                                "the peer of {} on rank {rank} is {}, but process group {name:?} has {size} ranks",
                                operation.name, part.peer
                            ),
                        });
                    }
                }
            }
        }
        if std::mem::replace(&mut has_steps_checked[index], true) {
            continue;
        }
        for step in &program.steps {
            let (super::Step::Launch(operation) | super::Step::Wait { operation, .. }) = step else {
                continue;
            };
            if *operation >= program.operations.len() && seen.insert((index, format!("#{operation}"))) {
                faults.push(format!(
                    "rank {rank} names operation {operation}, which its program does not have"
                ));
            }
        }
    }
    faults
}

/// What a program uses a group for.
struct Use<'a> {
    group: &'a str,
    /// Its first operation on the group.
    first: usize,
    /// Its messages on the group.
    messages: Vec<usize>,
}

impl<'a> Use<'a> {
    fn all(program: &'a Program) -> Vec<Use<'a>> {
        let mut all: Vec<Use> = Vec::new();
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for (at, operation) in program.operations.iter().enumerate() {
            let group = operation.group.as_str();
            let known = *places.entry(group).or_insert_with(|| {
                all.push(Use { group, first: at, messages: Vec::new() });
                all.len() - 1
            });
            if operation.is_message() {
                all[known].messages.push(at);
            }
        }
        all
    }
}

/// The first place of every communicator at which two of its ranks part. Ranks of one class do not.
pub(super) fn mismatches(
    programs: &Programs,
    classes: &Classes,
    network: &Network,
) -> (Vec<Mismatch>, Vec<String>) {
    let program =
        |class: usize| -> &Program { &programs.programs[programs.of_rank[classes.first[class] as usize]] };
    let (mut found, mut warnings) = (Vec::new(), Vec::new());
    for (index, channel) in network.channels.iter().enumerate() {
        match channel {
            Channel::Group { group, ranks, .. } => {
                let Some((&(first, rank), others)) = ranks.split_first() else { continue };
                // One doubt about a communicator is enough.
                let mut is_first_doubt = true;
                for &(other, other_rank) in others {
                    let (a, b) = (network.launches(index, first), network.launches(index, other));
                    let of = |class: usize, at: Option<&usize>| {
                        at.map(|&at| program(class).operations[at].clone())
                    };
                    let meets = |i: &usize| match (a.get(*i), b.get(*i)) {
                        (Some(&x), Some(&y)) => {
                            program(first).operations[x].meets(&program(other).operations[y])
                        }
                        _ => false,
                    };
                    let (at, elsewhere) = match (0..a.len().max(b.len())).find(|i| !meets(i)) {
                        Some(at) => (at, None),
                        None => {
                            let operations = |class: usize, launches: &[usize]| -> Vec<&Operation> {
                                launches.iter().map(|&at| &program(class).operations[at]).collect()
                            };
                            let (x, y) = (operations(first, a), operations(other, b));
                            let name = &programs.world.groups[*group].name;
                            match exchange::difference(&x, &y) {
                                None => continue,
                                Some(exchange::Difference::Exchanged { at, elsewhere }) => {
                                    (at, Some(elsewhere))
                                }
                                Some(doubt) => {
                                    warnings.extend(
                                        is_first_doubt
                                            .then(|| doubt.describe(name, (rank, &x), (other_rank, &y))),
                                    );
                                    is_first_doubt = false;
                                    continue;
                                }
                            }
                        }
                    };
                    found.push(Mismatch {
                        group: programs.world.groups[*group].name.clone(),
                        ranks: (rank, other_rank),
                        index: at,
                        first: of(first, a.get(at)),
                        second: of(other, b.get(at)),
                        is_message: false,
                        parts: None,
                        elsewhere,
                        channel: index,
                    });
                    break;
                }
            }
            Channel::Pair { group, ends } => {
                for (from, to) in [(0, 1), (1, 0)] {
                    let side = |end: usize, sends: bool| {
                        let (class, _) = ends[end];
                        let operations = network.launches(index, class).iter();
                        let parts = operations.flat_map(move |&at| {
                            let operation = &program(class).operations[at];
                            let to_peer =
                                network.parts_on(programs, classes, ends[end].1, ends[1 - end].1, operation);
                            to_peer.filter(move |part| part.sends == sends).map(move |part| (operation, part))
                        });
                        parts.collect::<Vec<_>>()
                    };
                    let (sent, received) = (side(from, true), side(to, false));
                    let meets = |i: &usize| match (sent.get(*i), received.get(*i)) {
                        (Some((_, x)), Some((_, y))) => x.meets(y),
                        _ => false,
                    };
                    let Some(at) = (0..sent.len().max(received.len())).find(|i| !meets(i)) else {
                        let (from, to) = (ends[from].1, ends[to].1);
                        let other =
                            sent.iter().zip(&received).position(|(x, y)| exchange::other_message(x.0, y.0));
                        warnings.extend(other.map(|at| {
                            format!(
                                "message {at} from rank {from} to rank {to} on {} has another shape as it is sent by {} than \
                                 as it is received by {}",
                                programs.world.groups[*group].name, sent[at].0.name, received[at].0.name
                            )
                        }));
                        continue;
                    };
                    found.push(Mismatch {
                        group: programs.world.groups[*group].name.clone(),
                        ranks: (ends[from].1, ends[to].1),
                        index: at,
                        first: sent.get(at).map(|(operation, _)| (*operation).clone()),
                        second: received.get(at).map(|(operation, _)| (*operation).clone()),
                        is_message: true,
                        parts: None,
                        elsewhere: None,
                        channel: index,
                    });
                }
            }
        }
    }
    unequal_exchanges(programs, classes, network, &mut found);
    found.sort_by_key(|m| (m.index, m.channel));
    (found, warnings)
}

/// The first all-to-all of every communicator in which a rank sends another one what that does not expect. Ranks with
/// one program are not compared: its sizes are those of the rank that it was recorded on.
fn unequal_exchanges(programs: &Programs, classes: &Classes, network: &Network, found: &mut Vec<Mismatch>) {
    // Of each program and group the collectives in order: which of them is an all-to-all.
    let launched: Vec<BTreeMap<&str, Vec<Option<usize>>>> = programs
        .programs
        .iter()
        .map(|program| {
            let mut of_group: BTreeMap<&str, Vec<Option<usize>>> = BTreeMap::new();
            for (at, operation) in program.operations.iter().enumerate().filter(|(_, o)| !o.is_message()) {
                let is_exchange = operation.kind == Collective::AllToAll;
                of_group.entry(&operation.group).or_default().push(is_exchange.then_some(at));
            }
            of_group.retain(|_, launches| launches.iter().any(Option::is_some));
            of_group
        })
        .collect();
    for (g, group) in programs.world.groups.iter().enumerate() {
        if !launched.iter().any(|of_group| of_group.contains_key(group.name.as_str())) {
            continue;
        }
        let mut seen = std::collections::BTreeSet::new();
        for members in &group.instances {
            let of: Vec<usize> =
                members.iter().filter_map(|&rank| programs.of_rank.get(rank as usize).copied()).collect();
            // Instances whose members run the same programs in the same places are alike.
            if of.len() != members.len() || !seen.insert(of.clone()) {
                continue;
            }
            let mut running: BTreeMap<usize, usize> = BTreeMap::new();
            of.iter().for_each(|&program| *running.entry(program).or_default() += 1);
            // Ranks that all run one program are not compared.
            if running.len() == 1 && of.len() > 1 {
                continue;
            }
            let launches = |member: usize| -> &[Option<usize>] {
                launched[of[member]].get(group.name.as_str()).map_or(&[], Vec::as_slice)
            };
            let least = (0..of.len()).map(|member| launches(member).len()).min().unwrap_or(0);
            let Some(channel) = network.channel_of(classes, g, members) else { continue };
            let operation = |member: usize, index: usize| {
                launches(member)[index].map(|at| &programs.programs[of[member]].operations[at])
            };
            let compares = |a: usize, b: usize| of[a] != of[b] || (a == b && running[&of[a]] == 1);
            let wrong = (0..least).find_map(|index| {
                let splits: Vec<_> = (0..of.len())
                    .map(|member| operation(member, index).and_then(|o| o.splits.as_ref()))
                    .collect();
                unequal_parts(&splits, compares).map(|parts| (index, parts))
            });
            let Some((index, (from, to, sent, expected))) = wrong else { continue };
            // What does not meet at all before that is the cause.
            if found.iter().any(|m| m.channel == channel && !m.is_message && m.index <= index) {
                continue;
            }
            found.retain(|m| m.channel != channel || m.is_message);
            found.push(Mismatch {
                group: group.name.clone(),
                ranks: (members[from], members[to]),
                index,
                first: operation(from, index).cloned(),
                second: operation(to, index).cloned(),
                is_message: false,
                parts: Some((sent, expected)),
                elsewhere: None,
                channel,
            });
        }
    }
}
