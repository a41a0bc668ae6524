//! Running a program on every rank of a world, in lock step as far as communication demands it.
//!
//! # The idea
//!
//! List order is execution order. Each rank runs its own list until it needs the result of a collective that
//! another member of the group has not started yet; then another rank goes on. If no rank can go on, the run is
//! [`Failure::Stuck`]: that is a deadlock, told rank by rank. Collectives are matched per group instance by their
//! position in each member's sequence; members that disagree on what the collective is end the run with
//! [`Failure::Mismatch`].
//!
//! # What it does not do
//!
//! It is no model of time: streams, and the order in which independent collectives complete, do not exist here.
//! A collective's value is the one it has when all members have started it; whatever could make it another value
//! (a write to its input or output before the wait) is a hazard, and the elements concerned are poison.

use super::bounds::Bounds;
use super::comm::{Comm, Launch, Place};
use super::concrete::Concrete;
use super::domain::Domain;
use super::hazard::{Hazard, HazardKind};
use super::layout::Dims;
use super::number::Number;
use super::program::Program;
use super::rank::{Rank, State};
use super::retyped::Retyped;
use crate::graph::{Dtype, NodeId, World};

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How often the graph is executed; inputs keep what the previous execution wrote.
    pub repeats: u32,
    /// Whether to keep digests of what each node reads and gives.
    pub trace: bool,
    /// Whether a storage becomes poison when the last use of its last alias has passed.
    pub free_after_last_use: bool,
    /// The most elements that all ranks together may allocate.
    pub max_elements: u64,
    /// Contents of inputs that are not to be the domain's own.
    pub given: Vec<Given>,
    /// Inputs whose numbers the domain draws within bounds.
    pub bounds: Vec<Bounds>,
    /// Numbers at or beside which every other element of an input lies that is no index.
    pub marks: Vec<f64>,
}

/// What an input holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Given {
    /// The input's name.
    pub name: String,
    /// The rank; `None` for all.
    pub rank: Option<u32>,
    /// Elements in row-major order (two cells per element of complex128).
    pub cells: Vec<u64>,
}

impl Default for Options {
    /// One execution, without trace, at most 16 Mi elements (128 MiB of cells).
    fn default() -> Options {
        Options {
            repeats: 1,
            trace: false,
            free_after_last_use: false,
            max_elements: 1 << 24,
            given: Vec::new(),
            bounds: Vec::new(),
            marks: Vec::new(),
        }
    }
}

/// What a run found.
#[derive(Clone, Debug)]
pub struct Run {
    /// The domain's name.
    pub domain: &'static str,
    /// By rank.
    pub ranks: Vec<RankRun>,
    /// Races and the like, by rank, in order of execution.
    pub hazards: Vec<Hazard>,
}

impl Run {
    /// The first assertion that does not hold, with its rank: the graph does not run with these numbers.
    pub(super) fn failed_assertion(&self) -> Option<(u32, NodeId)> {
        let fails = |effect: &&Effect| match effect.asserted {
            Some(Number::Float(number)) => number == 0.0,
            number => matches!(number, Some(Number::Bool(false) | Number::Int(0))),
        };
        let first = |(rank, of): (u32, &RankRun)| Some((rank, of.effects.iter().find(fails)?.node));
        (0..).zip(&self.ranks).find_map(first)
    }

    /// The first [node whose numbers PyTorch does not take](RankRun::outside), with its rank.
    pub(super) fn outside(&self) -> Option<(u32, NodeId)> {
        (0..).zip(&self.ranks).find_map(|(rank, of)| Some((rank, of.outside?)))
    }
}

/// What a run found on one rank.
#[derive(Clone, Debug, Default)]
pub struct RankRun {
    /// What the graph returns, flattened: a path into the output's nested lists, and the value there. Of several
    /// executions the last.
    pub outputs: Vec<(Vec<u32>, Leaf)>,
    /// What each input holds at the end.
    pub inputs: Vec<FinalInput>,
    /// Effects in order.
    pub effects: Vec<Effect>,
    /// The first node with numbers for which PyTorch raises: it gave an index outside its dimension, which was taken modulo
    /// the size, or divided an integer by 0, which gave 0.
    pub outside: Option<NodeId>,
    /// Collectives in the order in which this rank starts them.
    pub launches: Vec<LaunchNote>,
    /// What each node gives, if asked for; of several executions the last.
    pub trace: Vec<Digest>,
    /// What each node reads when it runs, by reference in argument order, if asked for.
    pub reads: Vec<Vec<Digest>>,
}

/// A value that a graph returns.
#[derive(Clone, PartialEq, Debug)]
pub enum Leaf {
    /// `None`.
    None,
    /// A Python number.
    Number(Number),
    /// A string or object, by its hash.
    Object(u64),
    /// A tensor.
    Tensor(TensorValue),
}

/// The value of a tensor.
#[derive(Clone, PartialEq, Debug)]
pub struct TensorValue {
    /// Element type.
    pub dtype: Dtype,
    /// Sizes.
    pub shape: Dims,
    /// Elements in row-major order (two cells per element of complex128).
    pub cells: Vec<u64>,
    /// Whether each cell is poison; empty where none is.
    pub poison: Vec<bool>,
    /// The input whose storage it shares, by its position among the inputs.
    pub alias_of: Option<u32>,
}

/// The tensors of one rank's placeholders, by name.
pub type ExecutionInputs = Vec<(String, TensorValue)>;

/// What somebody else found who executed a graph, by rank.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Executed {
    /// One for each rank.
    pub ranks: Vec<ExecutedRank>,
}

/// What an execution gave on one rank.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ExecutedRank {
    /// What the graph returns, flattened; `None` for what is no tensor.
    pub outputs: Vec<Option<TensorValue>>,
    /// What the placeholders hold afterwards, as far as that is told.
    pub inputs: ExecutionInputs,
}

/// An input after the run.
#[derive(Clone, PartialEq, Debug)]
pub struct FinalInput {
    /// Its name.
    pub name: String,
    /// Whether it is an attribute of the module rather than a placeholder.
    pub attribute: bool,
    /// Whether its storage was written.
    pub written: bool,
    /// What it holds.
    pub value: Leaf,
}

/// Something that happened besides values.
#[derive(Clone, PartialEq, Debug)]
pub struct Effect {
    /// The node.
    pub node: NodeId,
    /// What it calls.
    pub target: String,
    /// A hash of its arguments' values.
    pub arguments: u64,
    /// The number asserted, for an assertion.
    pub asserted: Option<Number>,
    /// Of an operator of which nothing is known a hash of what it is given, in any order: it may have no effect, or take
    /// its operands so.
    pub unknown: Option<u64>,
}

/// A collective that was started.
#[derive(Clone, PartialEq, Debug)]
pub struct LaunchNote {
    /// The node.
    pub node: NodeId,
    /// The group, by its position in the world.
    pub group: u32,
    /// The instance of the group.
    pub instance: u32,
    /// What all members have to agree on.
    pub what: Launch,
    pub(crate) place: Place,
}

impl LaunchNote {
    /// Its place in the group's sequence of collectives, from 0 (of a message: among those between the two).
    pub fn sequence(&self) -> usize {
        self.place.round
    }
}

/// The value of a node, in short.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Digest {
    /// A hash of type, sizes, elements and poison. Strides do not count.
    pub hash: u64,
    /// How many cells are poison or in flight.
    pub poisoned: u32,
}

/// Why a run has no result.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Failure {
    /// The oracle cannot execute a node.
    #[error("refused: node {} on rank {rank}: {reason}", node.0)]
    Refused {
        /// The rank.
        rank: u32,
        /// The node.
        node: NodeId,
        /// Why.
        reason: String,
    },
    /// The whole graph is too large.
    #[error("refused: the graph needs {needs} elements, the limit is {limit}")]
    TooLarge {
        /// Elements of all ranks.
        needs: u128,
        /// The limit.
        limit: u64,
    },
    /// The world does not say what the run has to know.
    #[error("refused: {reason}")]
    World {
        /// What.
        reason: String,
    },
    /// A node would raise an error.
    #[error("node {} raises: {reason}", node.0)]
    Raises {
        /// The rank; `None` where it holds for every rank.
        rank: Option<u32>,
        /// The node.
        node: NodeId,
        /// The error.
        reason: String,
    },
    /// A node takes a value that is not there yet, or that no node gives.
    #[error("node {} on rank {rank} takes a value that does not exist yet", node.0)]
    Undefined {
        /// The rank.
        rank: u32,
        /// The node.
        node: NodeId,
        /// The node whose value it takes; `None` for a name that no node has.
        input: Option<NodeId>,
    },
    /// Ranks do not meet: no rank can go on, or members of a group start different collectives where they would.
    #[error("ranks do not meet: {0}")]
    Apart(String),
}

/// Runs one program on all ranks of `world`, or one program per rank.
///
/// # Errors
/// [`Failure`] says why there is no result. Hazards are no failures: they are part of the result.
pub fn run(
    programs: &[Program],
    world: &World,
    domain: &dyn Domain,
    options: &Options,
) -> Result<Run, Failure> {
    let retyped = Retyped::new(domain);
    let domain = retyped.for_programs(programs.iter());
    let mut all = all_ranks(programs, world, domain, options)?;
    let mut comm = Comm::new(world);
    for repeat in 0..options.repeats.max(1) {
        for rank in &mut all {
            rank.begin(repeat)?;
        }
        execute(&mut all, &mut comm)?;
    }
    let mut run = Run { domain: domain.name(), ranks: Vec::with_capacity(all.len()), hazards: Vec::new() };
    for mut rank in all {
        let stray: Vec<NodeId> = rank.memory.flights().map(|flight| flight.node).collect();
        for node in stray {
            rank.memory.hazards.insert((node, HazardKind::NeverWaited));
        }
        let number = rank.rank;
        let hazards = std::mem::take(&mut rank.memory.hazards);
        run.hazards.extend(hazards.into_iter().map(|(node, kind)| Hazard { rank: number, node, kind }));
        run.ranks.push(rank.finish()?);
    }
    Ok(run)
}

/// Every rank before its first node.
pub(super) fn all_ranks<'a>(
    programs: &'a [Program],
    world: &World,
    domain: &'a dyn Domain,
    options: &'a Options,
) -> Result<Vec<Rank<'a>>, Failure> {
    let ranks = world.ranks.unwrap_or_else(|| {
        let all = world.groups.iter().flat_map(|g| g.instances.iter().flatten());
        all.copied().max().map_or(programs.len().max(1) as u32, |r| r.saturating_add(1))
    });
    if programs.is_empty() || (programs.len() > 1 && programs.len() != ranks as usize) {
        let reason = format!("{} graphs were given for {ranks} ranks", programs.len());
        return Err(Failure::World { reason });
    }
    let program = |rank: u32| if programs.len() == 1 { &programs[0] } else { &programs[rank as usize] };
    let needs: u128 = match programs {
        [one] => one.recorded_elements.saturating_mul(u128::from(ranks)),
        many => many.iter().map(|p| p.recorded_elements).fold(0, u128::saturating_add),
    };
    if needs > u128::from(options.max_elements) {
        return Err(Failure::TooLarge { needs, limit: options.max_elements });
    }
    let share = options.max_elements / u64::from(ranks.max(1));
    Ok((0..ranks).map(|rank| Rank::new(rank, program(rank), domain, options, share)).collect())
}

/// What the inputs of one rank hold when a run begins, by the order of the program's inputs.
///
/// # Errors
/// [`Failure::Refused`] for an input whose size is not known or too large.
pub fn inputs(
    program: &Program,
    rank: u32,
    domain: &Concrete,
    options: &Options,
) -> Result<Vec<FinalInput>, Failure> {
    let mut rank = Rank::new(rank, program, domain, options, options.max_elements);
    rank.begin(0)?;
    Ok(rank.finish()?.inputs)
}

fn execute(ranks: &mut [Rank], comm: &mut Comm) -> Result<(), Failure> {
    loop {
        let (mut progress, mut open) = (false, false);
        for rank in ranks.iter_mut().filter(|rank| rank.state != State::Done) {
            progress |= rank.advance(comm)?;
            open |= rank.state != State::Done;
        }
        if !open {
            return Ok(());
        }
        if !progress {
            return Err(stuck(ranks));
        }
    }
}

/// Why no rank can go on.
pub(super) fn stuck(ranks: &[Rank]) -> Failure {
    let is_blocked = |rank: &&Rank| matches!(rank.state, State::Blocked(_));
    let blocked: Vec<u32> = ranks.iter().filter(is_blocked).map(|rank| rank.rank).collect();
    Failure::Apart(format!("ranks {blocked:?} wait for collectives that others have not started"))
}
