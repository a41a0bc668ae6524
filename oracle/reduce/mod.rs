//! The reducer: the smallest case that still shows the same thing.
//!
//! # The idea
//!
//! A case is made smaller by edits of its graph, never of the bytes that it was generated from: nodes go together
//! with their uses, or are replaced by an operand; sizes, ranks and groups shrink; operators become simpler; features
//! are dropped. Each edit that leaves a valid graph is put to the caller's question ("is the same rule still
//! violated?"); what passes is kept, and the edits start from there. Large edits come first, so that the number of
//! questions grows with the logarithm of what can go rather than with its size.
//!
//! Guards come before work: the case must be valid and must show the thing, and the empty graph must not (a question
//! that everything answers with yes reduces everything to nothing).
//!
//! It ends when no edit is left, or when the budget of time or questions is used up; the best case so far is the
//! result, and `progress` is told of each.
//!
//! # What it does not do
//!
//! It promises no global minimum, and it does not touch a recorded outcome: what is reduced is what a candidate is
//! run on.

mod edits;
mod propagate;

use crate::analysis::validate::validate;
use crate::case::Case;
use crate::graph::Graph;
use rustc_hash::FxHashSet;
use std::time::{Duration, Instant};

/// Limits of a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Questions asked at most.
    pub questions: usize,
    /// Time at most. Only a bound: which edits are tried does not depend on it.
    pub time: Duration,
}

impl Default for Budget {
    /// 10,000 questions, 20 seconds: a campaign case takes a few hundred in well under a second.
    fn default() -> Budget {
        Budget { questions: 10_000, time: Duration::from_secs(20) }
    }
}

/// What a reduction came to.
#[derive(Clone, Debug)]
pub struct Reduced {
    /// The smallest case found.
    pub case: Case,
    /// Questions asked.
    pub questions: usize,
    /// Whether no edit was left; otherwise the budget ran out.
    pub finished: bool,
}

/// Why a case is not reduced.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Guard {
    /// The case is not valid.
    #[error("the case is not valid: {0}")]
    Invalid(String),
    /// The case does not show the thing.
    #[error("the case does not show what is to be kept")]
    NotShown,
    /// The empty graph shows it too.
    #[error("even the empty graph shows what is to be kept: the question is wrong")]
    EmptyShows,
}

/// Reduces `case` while `shows` holds. `progress` is called with each better case.
pub fn reduce(
    case: &Case,
    budget: Budget,
    shows: &mut dyn FnMut(&Case) -> bool,
    progress: &mut dyn FnMut(&Case),
) -> Result<Reduced, Guard> {
    if let Some(fault) = fatal(&case.graph) {
        return Err(Guard::Invalid(fault));
    }
    let best = Case { outcome: None, comments: Vec::new(), expectations: Vec::new(), ..case.clone() };
    if !shows(&best) {
        return Err(Guard::NotShown);
    }
    let empty = Case { graph: Graph { world: best.graph.world.clone(), ..Graph::new("empty") }, ..best.clone() };
    if shows(&empty) {
        return Err(Guard::EmptyShows);
    }
    let mut search = Search {
        best,
        seen: FxHashSet::default(),
        questions: 2,
        budget,
        started: Instant::now(),
        shows,
        progress,
    };
    let finished = search.run();
    Ok(Reduced { case: search.best, questions: search.questions, finished })
}

/// The first fatal fault that is not about order: unsorted lists are legal inputs of a repair.
fn fatal(graph: &Graph) -> Option<String> {
    validate(graph).into_iter().find(|f| f.is_fatal() && !f.concerns_order()).map(|f| f.to_string())
}

struct Search<'a> {
    best: Case,
    /// Texts that were tried, so that no case is asked about twice.
    seen: FxHashSet<u64>,
    questions: usize,
    budget: Budget,
    started: Instant,
    shows: &'a mut dyn FnMut(&Case) -> bool,
    progress: &'a mut dyn FnMut(&Case),
}

impl Search<'_> {
    /// Tries all families of edits until none makes the case smaller; whether it came to that.
    fn run(&mut self) -> bool {
        loop {
            let before = size(&self.best);
            for family in edits::FAMILIES {
                // An edit that is accepted changes what follows, so the family is asked again for edit `next`.
                let mut next = 0;
                while let Some(candidate) = family(&self.best, next) {
                    if self.spent() {
                        return false;
                    }
                    match candidate {
                        Some(candidate) if self.accepts(&candidate) => {
                            (self.progress)(&candidate);
                            self.best = candidate;
                        }
                        _ => next += 1,
                    }
                }
            }
            if size(&self.best) >= before {
                return true;
            }
        }
    }

    fn spent(&self) -> bool {
        self.questions >= self.budget.questions || self.started.elapsed() >= self.budget.time
    }

    fn accepts(&mut self, candidate: &Case) -> bool {
        if size(candidate) >= size(&self.best) || fatal(&candidate.graph).is_some() {
            return false;
        }
        let hash = {
            use std::hash::{BuildHasher, Hash, Hasher};
            let mut hasher = rustc_hash::FxBuildHasher.build_hasher();
            candidate.to_string().hash(&mut hasher);
            hasher.finish()
        };
        if !self.seen.insert(hash) {
            return false;
        }
        self.questions += 1;
        (self.shows)(candidate)
    }
}

/// What makes a case small, most important first: nodes, ranks, references, elements, and what else is written.
fn size(case: &Case) -> (usize, u64, usize, i64, usize) {
    let graph = &case.graph;
    let mut references = 0;
    let mut elements = 0i64;
    for id in graph.ids() {
        graph.for_each_input(id, &mut |_| references += 1);
        let tensor = graph.tensor_of(id).and_then(|t| graph.numel(t)).unwrap_or(0);
        elements = elements.saturating_add(tensor);
    }
    let world = &graph.world;
    let ranks = u64::from(world.ranks.unwrap_or(0)) + world.groups.len() as u64;
    (graph.len(), ranks, references, elements, case.to_string().len())
}
