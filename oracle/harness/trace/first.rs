//! What each rank runs as it was traced: the first graphs of its compilations, and whether the ranks launch the same.
//!
//! # The idea
//!
//! A frame is compiled when it runs for the first time, so a rank's compilations, in the order of its file, are the
//! order in which it first runs them. Its *program* is the first graphs of its frames, one after the other: joint
//! graphs, or forward and backward, or what inference traced. On each process group the programs of its members must
//! launch the same, in one order. Where two of them differ, most ranks define the common order, and the others leave it.
//! Where they do not differ, and all ranks are here, they are simulated together: messages must meet, and collectives
//! of several groups must not wait for each other in a circle.
//!
//! # Which ranks a group has
//!
//! A name is one group: those of subgroups are counted or hashed over the whole job. So whoever uses a name is a member;
//! a group as large as the world has all ranks; others have the members that are listed (`--groups`, hashed names).
//! A pipeline's stages use other groups, and are not compared.
//!
//! # What stays open
//!
//! A log may end, or a graph may come from a cache, so that a rank that launches less may launch the rest later: this
//! is a doubt, unless that rank compiled the same frame. What a frame is compiled for a second time depends on the
//! inputs of a rank, so a difference there is a doubt too. And of a rank whose log holds no graph nothing is known, which
//! is a doubt where a group that others use may have it.

use super::Options;
use super::cache::Key;
use crate::graph::{Graph, Group, NodeId, World};
use crate::simulate::{self, Estimates, Operation, Program, Programs, Step};
use ir::format::fx::Printed;
use ir::format::torch_trace::CompileId;
use ir::words::count;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

/// A graph of a file, as it was read.
#[derive(Clone, Debug)]
pub struct ReadGraph {
    /// Whose it is, where that is known.
    pub rank: Option<u32>,
    /// The compilation.
    pub id: CompileId,
    /// The artifact, such as `aot_joint_graph`.
    pub name: String,
    /// The graph, or why it cannot be read.
    pub graph: Result<Arc<Printed>, String>,
    pub(super) file: String,
    /// Of its text, and of all that was known when it was read.
    pub(super) key: Key,
}

/// A log of a rank that holds no graph.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EmptyLog {
    pub(super) rank: u32,
    pub(super) file: String,
}

/// What comparing the programs of the ranks found, a line each.
#[derive(Default)]
pub(super) struct Compared {
    /// Ranks that leave the common order, and programs that do not finish.
    pub(super) findings: Vec<String>,
    /// Differences that another part of the job may explain.
    pub(super) doubts: Vec<String>,
    pub(super) notes: Vec<String>,
}

/// What a rank runs.
struct RankProgram {
    rank: u32,
    /// An index into the distinct programs.
    program: usize,
    /// The compilations that it has, with the graphs of each.
    ids: BTreeSet<CompileId>,
    /// Whether it may go on in a way that is not known: a graph that cannot be read, or comes from a cache.
    is_cut: bool,
}

/// The distinct programs of all ranks, and where their operations stand.
#[derive(Default)]
struct Ranks {
    programs: Vec<Program>,
    /// For each program and operation: the compilation, and its place in words.
    places: Vec<Vec<(CompileId, String)>>,
    of_rank: Vec<RankProgram>,
    groups: BTreeMap<String, Group>,
    notes: Vec<String>,
}

/// Compares the programs of all ranks, and simulates them.
pub(super) fn compare(
    graphs: &[ReadGraph],
    empty: &[EmptyLog],
    is_folder: bool,
    options: &Options,
) -> Compared {
    let mut compared = Compared::default();
    let ranks = Ranks::new(graphs, &|id| id.compile.unwrap_or(0) == 0, options);
    let communicators = ranks.communicators(options);
    compared.doubts.extend(ranks.not_compared(graphs, empty, &communicators));
    // One file of a job is asked about by itself.
    if is_folder || ranks.of_rank.len() > 1 {
        compared.doubts.extend(ranks.absent(graphs, empty, &communicators, options));
    }
    if ranks.of_rank.len() < 2 {
        return compared;
    }
    compared.notes.extend(ranks.notes.iter().cloned());
    let disputes = ranks.disputes(&communicators);
    for communicator in &communicators {
        match ranks.difference(communicator, &disputes) {
            Some(Difference { line, is_certain: true }) => compared.findings.push(line),
            Some(Difference { line, is_certain: false }) => compared.doubts.push(line),
            None => {}
        }
    }
    let again: BTreeSet<&CompileId> =
        graphs.iter().map(|read| &read.id).filter(|id| id.compile.unwrap_or(0) > 0).collect();
    for id in again {
        let ranks = Ranks::new(graphs, &|other| other == id, options);
        let communicators = ranks.communicators(options);
        let disputes = ranks.disputes(&communicators);
        let differences = communicators.iter().filter_map(|one| ranks.difference(one, &disputes));
        // A rank that was compiled anew for other inputs has another graph by right.
        compared.doubts.extend(differences.filter(|found| found.is_certain).map(|found| found.line));
    }
    if compared.findings.is_empty() && compared.doubts.is_empty() && ranks.differ() {
        match ranks.world(&communicators, options) {
            Err(why) => compared.notes.push(format!("the ranks are not simulated together: {why}")),
            Ok(programs) => {
                let report = simulate::simulate(&programs, simulate::Options::default());
                compared.findings.extend(report.hangs.iter().cloned());
                compared.findings.extend(report.mismatches.iter().map(ToString::to_string));
                let deadlock =
                    report.deadlock.iter().map(|deadlock| deadlock.to_string().replace('\n', "; "));
                compared.findings.extend(deadlock);
                compared.notes.extend(
                    report
                        .faults
                        .iter()
                        .chain(&report.unmodelled)
                        .map(|why| format!("the ranks are not simulated together: {why}")),
                );
            }
        }
    }
    compared
}

/// The programs of all ranks of a trace, for the simulator, and what is to be said of them.
///
/// # Errors
/// Why they cannot be simulated.
pub fn programs(graphs: &[ReadGraph], options: &Options) -> Result<(Programs, Vec<String>), String> {
    let ranks = Ranks::new(graphs, &|id| id.compile.unwrap_or(0) == 0, options);
    if ranks.of_rank.is_empty() {
        return Err("no graph of a rank is there".to_string());
    }
    let programs = ranks.world(&ranks.communicators(options), options)?;
    Ok((programs, ranks.notes))
}

/// The members of a group.
struct Communicator {
    name: String,
    /// Those whose graphs are here.
    members: Vec<u32>,
    /// The others that are known.
    missing: Vec<u32>,
    /// Whether these are all.
    is_known: bool,
}

impl Communicator {
    /// Whether the graphs of all members are here.
    fn is_complete(&self) -> bool {
        self.is_known && self.missing.is_empty()
    }

    /// Whether a rank whose graphs are not here may be a member.
    fn may_have(&self, rank: u32) -> bool {
        !self.is_known || self.missing.contains(&rank)
    }
}

/// Ranks that launch the same at one place of a communicator, or nothing.
struct Class<'r> {
    /// That of the first of them: its program, and which operation it is there.
    launch: Option<(&'r RankProgram, usize)>,
    ranks: Vec<u32>,
}

/// Where the members of a communicator part.
struct Difference {
    line: String,
    is_certain: bool,
}

impl Ranks {
    /// The programs of the compilations that are wanted.
    fn new(graphs: &[ReadGraph], is_wanted: &dyn Fn(&CompileId) -> bool, options: &Options) -> Ranks {
        let mut ranks = Ranks::default();
        for group in &options.world.groups {
            ranks.groups.insert(group.name.clone(), group.clone());
        }
        let mut of_rank: BTreeMap<u32, Vec<&ReadGraph>> = BTreeMap::new();
        let mut files: BTreeMap<u32, &str> = BTreeMap::new();
        for read in graphs {
            let Some(rank) = read.rank else { continue };
            if *files.entry(rank).or_insert(&read.file) != read.file {
                ranks.notes =
                    vec![format!("rank {rank} has several files: ranks are compared pass by pass only")];
                return ranks;
            }
            of_rank.entry(rank).or_default().push(read);
        }
        let firsts: BTreeMap<u32, Vec<&ReadGraph>> =
            of_rank.into_iter().map(|(rank, all)| (rank, firsts(&all, is_wanted))).collect();
        let others = otherwise(&firsts);
        let mut known: BTreeMap<Vec<Key>, usize> = BTreeMap::new();
        for (rank, firsts) in firsts {
            let is_known = |read: &&&ReadGraph| read.graph.is_ok() && !others.contains(&read.id);
            let program: Vec<&ReadGraph> = firsts.iter().take_while(is_known).copied().collect();
            let is_cut = program.len() < firsts.len();
            if let Some(read) = firsts.get(program.len()) {
                let why = match &read.graph {
                    Err(why) => why.clone(),
                    Ok(_) => {
                        "other ranks have no graph of that kind, as where it comes from a cache".to_string()
                    }
                };
                ranks.notes.push(format!(
                    "rank {rank} is compared with others up to {} of {}: {why}",
                    read.name, read.id
                ));
            }
            for read in &program {
                for group in read.graph.iter().flat_map(|printed| &printed.graph.world.groups) {
                    ranks.groups.entry(group.name.clone()).or_insert_with(|| group.clone());
                }
            }
            let keys = program.iter().map(|read| read.key).collect();
            let index = *known.entry(keys).or_insert_with(|| {
                let (program, places) = joined(&program);
                ranks.programs.push(program);
                ranks.places.push(places);
                ranks.programs.len() - 1
            });
            let ids = program.iter().map(|read| read.id.clone()).collect();
            ranks.of_rank.push(RankProgram { rank, program: index, ids, is_cut });
        }
        ranks
    }

    /// The ranks of which no log holds a graph, where others may meet them, a line each.
    fn not_compared(
        &self,
        graphs: &[ReadGraph],
        empty: &[EmptyLog],
        communicators: &[Communicator],
    ) -> Vec<String> {
        let with_graphs: BTreeSet<u32> = graphs.iter().filter_map(|read| read.rank).collect();
        let mut files: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        for log in empty.iter().filter(|log| !with_graphs.contains(&log.rank)) {
            files.entry(log.rank).or_default().push(&log.file);
        }
        // Without a program of any rank nothing says what they use.
        let may_meet = |rank| self.of_rank.is_empty() || communicators.iter().any(|one| one.may_have(rank));
        let silent = files.into_iter().filter(|&(rank, _)| may_meet(rank));
        let line = |(rank, files): (u32, Vec<&str>)| {
            let hold = if files.len() == 1 { "holds" } else { "hold" };
            format!("rank {rank} is not compared with the others: {} {hold} no graph", files.join(", "))
        };
        silent.map(line).collect()
    }

    /// The ranks of the job without a log: those that the options state, and other members of the groups in use.
    fn absent(
        &self,
        graphs: &[ReadGraph],
        empty: &[EmptyLog],
        communicators: &[Communicator],
        options: &Options,
    ) -> Option<String> {
        let World { ranks, groups } = &options.world;
        let listed = groups.iter().flat_map(|group| &group.instances).flatten();
        let missing = communicators.iter().flat_map(|one| &one.missing);
        let mut absent: BTreeSet<u32> = listed.chain(missing).copied().chain(0..ranks.unwrap_or(0)).collect();
        let here = graphs.iter().filter_map(|read| read.rank).chain(empty.iter().map(|log| log.rank));
        for rank in here {
            absent.remove(&rank);
        }
        let absent: Vec<u32> = absent.into_iter().collect();
        let (is, of) = if absent.len() == 1 { ("is", "it") } else { ("are", "them") };
        let names = ranks_words(&absent);
        (!absent.is_empty()).then(|| {
            format!("{names} {is} not compared with the others: no log of {of} is here, and the job has {of}")
        })
    }

    /// Whether some rank runs another program than the first.
    fn differ(&self) -> bool {
        self.of_rank.windows(2).any(|pair| pair[0].program != pair[1].program)
    }

    fn of(&self, rank: u32) -> Option<&RankProgram> {
        let at = self.of_rank.binary_search_by_key(&rank, |of| of.rank).ok()?;
        self.of_rank.get(at)
    }

    /// How many ranks the job has, where that is known: the default group, `0`, has all of them.
    fn world_size(&self, options: &Options) -> Option<u32> {
        options.world.ranks.or_else(|| Some(self.groups.get("0")?.size))
    }

    /// The groups that programs use, each with its members that are here.
    fn communicators(&self, options: &Options) -> Vec<Communicator> {
        let world = self.world_size(options);
        let mut users: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for of in &self.of_rank {
            for operation in &self.programs[of.program].operations {
                users.entry(&operation.group).or_default().insert(of.rank);
            }
        }
        let mut found = Vec::new();
        for (name, users) in users {
            let group = self.groups.get(name);
            let listed = group.map_or(&[][..], |group| &group.instances);
            let mut add = |all: Vec<u32>, is_known: bool| {
                let (members, missing) = all.into_iter().partition(|&rank| self.of(rank).is_some());
                found.push(Communicator { name: name.to_string(), members, missing, is_known });
            };
            match (group.map(|group| group.size), world) {
                _ if !listed.is_empty() => listed
                    .iter()
                    .filter(|instance| instance.iter().any(|rank| users.contains(rank)))
                    .for_each(|instance| add(instance.clone(), true)),
                (Some(size), Some(world)) if size == world => add((0..world).collect(), true),
                (size, _) => {
                    let is_all = size.is_some_and(|size| size as usize == users.len());
                    add(users.into_iter().collect(), is_all);
                }
            }
        }
        found
    }

    /// The members of a communicator by what they launch there first that is not the same for all: the place, and the classes.
    fn parting(&self, communicator: &Communicator) -> Option<(usize, Vec<Class<'_>>)> {
        let of = |rank: &u32| self.of(*rank);
        let mut members: Vec<(&RankProgram, Vec<usize>)> = Vec::new();
        let mut launches: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for member in communicator.members.iter().filter_map(of) {
            let own = launches.entry(member.program).or_insert_with(|| {
                let operations = self.programs[member.program].operations.iter().enumerate();
                let on_group =
                    operations.filter(|(_, one)| one.group == communicator.name && !one.is_message());
                on_group.map(|(at, _)| at).collect()
            });
            members.push((member, own.clone()));
        }
        if launches.len() < 2 {
            return None;
        }
        let longest = launches.values().map(Vec::len).max().unwrap_or(0);
        let mut all = (0..longest).map(|index| (index, self.classes(&members, index)));
        all.find(|(_, classes)| classes.len() > 1)
    }

    /// For each rank on how many communicators it does not launch what all others do.
    fn disputes(&self, communicators: &[Communicator]) -> BTreeMap<u32, usize> {
        let mut disputes = BTreeMap::new();
        for (_, classes) in communicators.iter().filter_map(|one| self.parting(one)) {
            for rank in classes.into_iter().flat_map(|class| class.ranks) {
                *disputes.entry(rank).or_insert(0) += 1;
            }
        }
        disputes
    }

    fn operation(&self, of: &RankProgram, at: usize) -> &Operation {
        &self.programs[of.program].operations[at]
    }

    /// Members by what they launch at a place, those aside of which that is not known.
    fn classes<'r>(&'r self, members: &[(&'r RankProgram, Vec<usize>)], index: usize) -> Vec<Class<'r>> {
        let mut classes: Vec<Class> = Vec::new();
        for (member, launches) in members {
            let launch = launches.get(index).map(|&at| (*member, at));
            if launch.is_none() && member.is_cut {
                continue;
            }
            let meets = |known: &Class| match (known.launch, launch) {
                (Some((of, at)), Some((own, own_at))) => {
                    self.operation(of, at).meets(self.operation(own, own_at))
                }
                (None, None) => true,
                _ => false,
            };
            match classes.iter_mut().find(|known| meets(known)) {
                Some(known) => known.ranks.push(member.rank),
                None => classes.push(Class { launch, ranks: vec![member.rank] }),
            }
        }
        classes
    }

    /// The first place at which members of a communicator launch different collectives.
    fn difference(&self, communicator: &Communicator, disputes: &BTreeMap<u32, usize>) -> Option<Difference> {
        let (index, mut classes) = self.parting(communicator)?;
        let launched: Vec<&CompileId> = classes.iter().filter_map(|class| self.id_of(class.launch)).collect();
        let ended = || {
            let ended = classes.iter().filter(|class| class.launch.is_none()).flat_map(|class| &class.ranks);
            ended.filter_map(|&rank| self.of(rank))
        };
        // Whoever compiled the frame of the launch has launched all that it launches there.
        let is_certain =
            launched.len() > 1 || ended().any(|of| launched.iter().any(|id| of.ids.contains(id)));
        // The most ranks launch what is right; of equally many, those that part from others on the fewest groups, and of
        // these those with the lowest.
        let weight = |at: usize| {
            let disputed: usize = classes[at].ranks.iter().filter_map(|rank| disputes.get(rank)).sum();
            (classes[at].ranks.len(), std::cmp::Reverse(disputed), std::cmp::Reverse(at))
        };
        let common = (0..classes.len()).max_by_key(|&at| weight(at))?;
        let Class { launch: expected, ranks: of_common } = classes.remove(common);
        let mut line = String::new();
        for Class { launch, ranks } in &classes {
            let (ranks, leave) = (ranks_words(ranks), if ranks.len() == 1 { "leaves" } else { "leave" });
            let part = self.launch_words(*launch, ranks.starts_with("rank "));
            let name = &communicator.name;
            let _ = match line.is_empty() {
                true => {
                    write!(line, "{ranks} {leave} the common order at launch {index} on group {name}: {part}")
                }
                false => write!(line, "; {ranks} too: {part}"),
            };
        }
        let ranks = ranks_words(&of_common);
        let part = self.launch_words(expected, ranks.starts_with("rank "));
        let _ = write!(line, "; {ranks} {}", part.trim_start_matches("it ").trim_start_matches("they "));
        Some(Difference { line, is_certain })
    }

    fn id_of(&self, launch: Option<(&RankProgram, usize)>) -> Option<&CompileId> {
        launch.and_then(|(of, at)| self.places[of.program].get(at)).map(|(id, _)| id)
    }

    fn launch_words(&self, launch: Option<(&RankProgram, usize)>, is_one: bool) -> String {
        let (who, verb) = if is_one { ("it", "launches") } else { ("they", "launch") };
        match launch {
            None => format!("{who} {verb} nothing more"),
            Some((of, at)) => {
                let place = self.places[of.program].get(at).map_or("", |(_, place)| place);
                format!("{who} {verb} {}{place}", self.operation(of, at))
            }
        }
    }

    /// All ranks, for the simulator.
    fn world(&self, communicators: &[Communicator], options: &Options) -> Result<Programs, String> {
        if let Some(of) = self.of_rank.iter().find(|of| of.is_cut) {
            return Err(format!("not all that rank {} runs is known", of.rank));
        }
        if let Some(open) = communicators.iter().find(|one| !one.is_complete()) {
            return Err(format!("not all ranks of group {} are known", open.name));
        }
        let last = self.of_rank.last().map_or(0, |of| of.rank.saturating_add(1));
        let ranks = self.world_size(options).unwrap_or(last);
        if self.of_rank.len() != ranks as usize || last != ranks {
            return Err(format!("{} of {ranks} ranks are here", self.of_rank.len()));
        }
        let mut groups: BTreeMap<&str, Group> = BTreeMap::new();
        for Communicator { name, members, .. } in communicators {
            let group = groups.entry(name).or_insert_with(|| Group {
                name: name.clone(),
                size: members.len() as u32,
                recorded_rank: None,
                instances: Vec::new(),
            });
            group.instances.push(members.clone());
        }
        Ok(Programs {
            programs: self.programs.clone(),
            of_rank: self.of_rank.iter().map(|of| of.program).collect(),
            world: World { ranks: Some(ranks), groups: groups.into_values().collect() },
        })
    }
}

/// The first graphs of the compilations that are wanted, of the last attempt of each.
fn firsts<'r>(all: &[&'r ReadGraph], is_wanted: &dyn Fn(&CompileId) -> bool) -> Vec<&'r ReadGraph> {
    let mut first: BTreeMap<&CompileId, &str> = BTreeMap::new();
    let mut attempts: BTreeMap<CompileId, Option<i64>> = BTreeMap::new();
    for read in all {
        first.entry(&read.id).or_insert(&read.name);
        let last = attempts.entry(CompileId { attempt: None, ..read.id.clone() }).or_default();
        *last = (*last).max(read.id.attempt);
    }
    let is_first = |read: &&&ReadGraph| {
        let name = first.get(&read.id).copied().unwrap_or_default();
        let is_last = attempts.get(&CompileId { attempt: None, ..read.id.clone() }) == Some(&read.id.attempt);
        is_wanted(&read.id) && is_last && kind(name) == kind(&read.name)
    };
    all.iter().filter(is_first).copied().collect()
}

/// Graphs of one kind make up a compilation: a frame that is cut at graph breaks has several.
fn kind(name: &str) -> &str {
    match name {
        "aot_joint_graph" | "aot_inference_graph" => "traced",
        "aot_forward_graph" | "aot_backward_graph" => "cut",
        other => other,
    }
}

/// The compilations whose first graphs are of another kind on one rank than on another.
fn otherwise(firsts: &BTreeMap<u32, Vec<&ReadGraph>>) -> BTreeSet<CompileId> {
    let mut kinds: BTreeMap<&CompileId, BTreeSet<&str>> = BTreeMap::new();
    for read in firsts.values().flatten() {
        kinds.entry(&read.id).or_default().insert(kind(&read.name));
    }
    kinds.into_iter().filter(|(_, kinds)| kinds.len() > 1).map(|(id, _)| id.clone()).collect()
}

/// Graphs as one program, with the compilation and the place of each operation.
fn joined(graphs: &[&ReadGraph]) -> (Program, Vec<(CompileId, String)>) {
    let (mut all, mut places) = (Program::default(), Vec::new());
    for read in graphs {
        let Ok(printed) = &read.graph else { continue };
        let mut program = Program::of(&printed.graph, &Estimates::default());
        program.identify(&printed.graph);
        let before = all.operations.len();
        places.extend(program.operations.iter().map(|operation| {
            let source = printed.graph.find(&operation.name).and_then(|node| source(&printed.graph, node));
            let source = source.map_or(String::new(), |source| format!(", {source}"));
            (read.id.clone(), format!(" [{} {}{source}]", read.id, read.name))
        }));
        all.operations.extend(program.operations);
        all.unmodelled.extend(program.unmodelled);
        all.steps.extend(program.steps.into_iter().map(|step| match step {
            Step::Launch(at) => Step::Launch(before + at),
            Step::Wait { name, operation } => Step::Wait { name, operation: before + operation },
            compute @ Step::Compute { .. } => compute,
        }));
    }
    (all, places)
}

/// The line of the program that launches a collective: its own, or where that is in PyTorch's wrapper, the last one
/// before it in the graph, or else the first one behind it.
fn source(graph: &Graph, node: NodeId) -> Option<String> {
    let stack = |id: NodeId| graph.node(id).stack.map(|text| graph.text(text));
    let is_wrapper =
        |text: &str| text.contains("/torch/distributed/") || text.starts_with("torch/distributed/");
    let first = |text: &str| text.split(", code: ").next().unwrap_or(text).to_string();
    if let Some(own) = stack(node).filter(|own| !is_wrapper(own)) {
        return Some(first(own));
    }
    let known = |id: NodeId| stack(id).filter(|text| !is_wrapper(text)).map(first);
    let last = graph.ids().filter(|&id| id < node).rev().find_map(known).map(|line| format!("after {line}"));
    last.or_else(|| Some(format!("before {}", graph.ids().filter(|&id| id > node).find_map(known)?)))
}

/// `rank 1`, `ranks 0, 2 and 3`, `ranks 0, 1, 2 and 61 others`.
fn ranks_words(ranks: &[u32]) -> String {
    const SHOWN: usize = 4;
    let numbers: Vec<String> = ranks.iter().take(SHOWN).map(u32::to_string).collect();
    match (ranks.len(), numbers.split_last()) {
        (1, _) => format!("rank {}", numbers.join("")),
        (2..=SHOWN, Some((last, first))) => format!("ranks {} and {last}", first.join(", ")),
        (more, _) => format!("ranks {} and {}", numbers.join(", "), count(more - SHOWN.min(more), "other")),
    }
}
