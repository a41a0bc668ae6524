//! One row of the report: a pass on one graph of one rank, and what became of it.

use crate::judge::Judgement;
pub use crate::report::cost::Cost;
use ir::format::torch_trace::CompileId;
use std::sync::Arc;
use std::time::Duration;

/// What became of a pair.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// The pass changed nothing: both texts are the same.
    Unchanged,
    /// It was judged.
    Judged(Arc<Judgement>),
    /// It was not judged; why.
    NotJudged(String),
}

/// A row.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The pass.
    pub pass: String,
    /// The compilation.
    pub id: CompileId,
    /// The rank; `None` where nobody knows.
    pub rank: Option<u32>,
    /// The name of the file.
    pub file: String,
    /// The lines at which the records of both graphs begin.
    pub lines: (usize, Option<usize>),
    /// What became of it.
    pub outcome: Outcome,
    /// How long judging took.
    pub time: Duration,
    /// Figures before and after.
    pub cost: Option<(Cost, Cost)>,
    /// The launches of the graph before and of the one after, in order, in words.
    pub launches: Option<(Vec<String>, Vec<String>)>,
    /// What passes of its name may do beyond keeping every bit, where the verdict rests on that; as `--allow` takes it.
    pub allowed: Option<String>,
    /// What is to be said of how the texts were read.
    pub notes: Vec<String>,
}
