//! The families of passes: a row each.
//!
//! # The idea
//!
//! A row says what a pass is called, what a candidate gives for it, which options it has, which rules there are, and
//! who judges. The judge, the command line, workers and campaigns read the rows, so a new family is a folder and a row
//! here, and a row in the table of generators (`harness/generate/family.rs`).
//!
//! The folders of a family know it by its [`PassKind`] and the row names their functions: that is the one circle here.

use crate::case::{Case, PassConfig, Program};
use crate::graph::Graph;
use crate::judge::candidate::{Candidate, Outcome};
use crate::judge::options::{self, bucketing_config, partition_config, schedule_config};
use crate::judge::{self, CannotJudge, Judgement, Options};
use crate::rules::{self, AnalyzedGraph, Statement};
use crate::words;
use std::sync::Arc;

/// The passes that rules speak about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PassKind {
    /// Any pass that keeps what a graph means, of which nothing else is known.
    Rewrite,
    /// Bucketing of collectives, with or without its repair.
    Bucketing,
    /// Topological repair alone.
    Repair,
    /// Cutting a joint graph into forward and backward.
    Partition,
    /// Reordering a graph so that communication overlaps with computation.
    Schedule,
    /// What is stated about the memory of a graph.
    Memory,
    /// Executing a graph: no pass, but what the oracle's own interpreter is judged by.
    Execute,
}

/// What a candidate gives for a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Gives {
    /// A graph.
    Graph,
    /// A forward and a backward graph.
    Parts,
    /// What is stated about memory.
    Claim,
    /// What executing the graph gave.
    Executed,
}

/// All that the rest of the program knows of a family.
pub struct FamilyRow {
    /// The name on the command line.
    pub name: &'static str,
    /// What a candidate gives.
    pub gives: Gives,
    /// Whether it repairs the order: it takes a list that is out of order, refuses a cycle, and sorts as every rank
    /// alike.
    pub sorts: bool,
    /// Whether ranks may have graphs of their own before the pass.
    pub takes_programs: bool,
    /// Whether values are compared, so that there is a choice of evaluators.
    pub compares_values: bool,
    /// The options of a case that state what is promised, or how to judge. The pass itself is not given them.
    pub judge_options: &'static [&'static str],
    /// Whether all other options can be understood; `None`: there are no others.
    pub(crate) own_options: Option<fn(&PassConfig) -> Result<(), String>>,
    /// The rules of its relation and of its contracts.
    pub(crate) statements: fn() -> Vec<Statement>,
    /// Judges what a candidate makes of a case.
    pub(crate) judge: fn(&Run) -> Result<Judgement, CannotJudge>,
    /// Judges graphs that are given.
    pub(crate) judge_given: fn(&Given) -> Result<Judgement, CannotJudge>,
    /// Judges what a case records.
    pub(crate) judge_recorded: fn(&Case, &PassConfig, &Options) -> Result<Judgement, CannotJudge>,
}

/// A candidate on a case.
pub(crate) struct Run<'a> {
    /// The case.
    pub case: &'a Case,
    /// What follows from its graph.
    pub before: &'a Arc<AnalyzedGraph<'a>>,
    /// The pass with what the candidate promises by itself.
    pub config: &'a PassConfig,
    /// The family of the pass.
    pub pass: PassKind,
    /// Who is judged.
    pub candidate: &'a dyn Candidate,
    /// How.
    pub options: &'a Options,
}

/// A graph and what came after it.
pub(crate) struct Given<'a> {
    /// The graph before.
    pub before: &'a Graph,
    /// Those of ranks that had another one.
    pub programs: &'a [Program],
    /// The pass.
    pub config: &'a PassConfig,
    /// The family of the pass.
    pub pass: PassKind,
    /// One graph for all ranks (`None`), or one per rank.
    pub outcomes: &'a [(Option<u32>, Outcome)],
    /// How to judge.
    pub options: &'a Options,
}

/// What any rewrite has; those of which more is known say so.
const REWRITE: FamilyRow = FamilyRow {
    name: "rewrite",
    gives: Gives::Graph,
    sorts: false,
    takes_programs: true,
    compares_values: true,
    judge_options: rules::REWRITE_OPTIONS,
    own_options: None,
    statements: || rules::statements_in(rules::CATALOGUE),
    judge: judge::judge_run,
    judge_given: judge::judge_given,
    judge_recorded: judge::judge_recorded_graphs,
};

const BUCKETING: FamilyRow = FamilyRow {
    name: "bucketing",
    takes_programs: false,
    judge_options: rules::JUDGE_OPTIONS,
    own_options: Some(|pass| bucketing_config(pass, None).map(|_| ())),
    ..REWRITE
};

const REPAIR: FamilyRow = FamilyRow {
    name: "repair",
    sorts: true,
    takes_programs: false,
    judge_options: rules::JUDGE_OPTIONS,
    ..REWRITE
};

const PARTITION: FamilyRow = FamilyRow {
    name: "partition",
    takes_programs: false,
    gives: Gives::Parts,
    judge_options: rules::partition::JUDGE_OPTIONS,
    own_options: Some(|pass| partition_config(pass).map(|_| ())),
    statements: || rules::statements_in(rules::partition::CATALOGUE),
    judge: judge::partition::judge_candidate,
    judge_given: judge::partition::judge_pairs,
    judge_recorded: |case, _, options| judge::partition::judge_recorded_parts(case, options),
    ..REWRITE
};

const SCHEDULE: FamilyRow = FamilyRow {
    name: "schedule",
    compares_values: false,
    judge_options: rules::schedule::JUDGE_OPTIONS,
    own_options: Some(|pass| schedule_config(pass).map(|_| ())),
    statements: || rules::statements_in(rules::schedule::CATALOGUE),
    judge: judge::schedule::judge_candidate,
    judge_given: judge::schedule::judge_given,
    ..REWRITE
};

const MEMORY: FamilyRow = FamilyRow {
    name: "memory",
    takes_programs: false,
    gives: Gives::Claim,
    compares_values: false,
    judge_options: &[],
    own_options: Some(options::check_memory_options),
    statements: || rules::statements_in(rules::memory::CATALOGUE),
    judge: judge::memory::judge_candidate,
    judge_given: |_| Err(CannotJudge::Pass("what is claimed about memory is no graph".into())),
    judge_recorded: judge::memory::judge_recorded_claim,
    ..REWRITE
};

const EXECUTE: FamilyRow = FamilyRow {
    name: "execute",
    takes_programs: false,
    gives: Gives::Executed,
    judge_options: &[],
    statements: || rules::promises_in(rules::eager::CATALOGUE, &[PassKind::Execute]),
    judge: judge::execute::judge_candidate,
    judge_given: |_| Err(CannotJudge::Pass("what an execution gives is no graph".into())),
    ..REWRITE
};

impl PassKind {
    /// All of them.
    pub const ALL: &'static [PassKind] = &[
        PassKind::Rewrite,
        PassKind::Bucketing,
        PassKind::Repair,
        PassKind::Partition,
        PassKind::Schedule,
        PassKind::Memory,
        PassKind::Execute,
    ];

    /// Its row.
    pub fn row(self) -> &'static FamilyRow {
        match self {
            PassKind::Rewrite => &REWRITE,
            PassKind::Bucketing => &BUCKETING,
            PassKind::Repair => &REPAIR,
            PassKind::Partition => &PARTITION,
            PassKind::Schedule => &SCHEDULE,
            PassKind::Memory => &MEMORY,
            PassKind::Execute => &EXECUTE,
        }
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The pass with this name; the names that exist, otherwise.
    pub fn named(name: &str) -> Result<PassKind, String> {
        PassKind::parse(name).ok_or_else(|| {
            let names: Vec<&str> = PassKind::ALL.iter().map(|pass| pass.name()).collect();
            format!("unknown pass {name:?}{}", words::choices(name, &names))
        })
    }

    /// The pass with this name.
    pub fn parse(name: &str) -> Option<PassKind> {
        PassKind::ALL.iter().copied().find(|p| p.name() == name)
    }
}
