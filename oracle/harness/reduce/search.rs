//! The search: which edit is tried next, and which is kept.

use super::edits;
use crate::analysis::validate::validate;
use crate::case::{self, Case, PassConfig};
use crate::generate::intrusions;
use crate::graph::{Graph, NodeId, Op};
use crate::ops::Ops;
use crate::semantics::{self, Concrete, Fingerprints, Program};
use rustc_hash::FxHashSet;
use std::hash::BuildHasher;
use std::time::{Duration, Instant};

/// Limits of a reduction.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Questions asked at most.
    pub questions: usize,
    /// Time at most. Which edits are tried does not depend on it.
    pub time: Duration,
}

impl Default for Budget {
    /// 10,000 questions, 20 seconds: a case of a campaign takes a few hundred in well under a second.
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
    let best = Case {
        outcome: None,
        parts: None,
        claim: None,
        comments: Vec::new(),
        expectations: Vec::new(),
        ..case.clone()
    };
    // The guards ask too, and count.
    let started = Instant::now();
    if !shows(&best) {
        return Err(Guard::NotShown);
    }
    if shows(&emptied(&best)) {
        return Err(Guard::EmptyShows);
    }
    let mut search = Search {
        validity: Validity::of(&best.graph),
        size: total(&best.graph, &best.programs),
        best,
        seen: FxHashSet::default(),
        questions: 2,
        budget,
        started,
        shows,
        progress,
    };
    let finished = search.run();
    Ok(Reduced { case: search.best, questions: search.questions, finished })
}

/// The case with no node left.
pub(crate) fn emptied(case: &Case) -> Case {
    let mut empty = Graph::new("empty");
    empty.world.clone_from(&case.graph.world);
    Case {
        graph: empty,
        programs: Vec::new(),
        outcome: None,
        comments: Vec::new(),
        expectations: Vec::new(),
        ..case.clone()
    }
}

/// The first fatal fault that is not about order: unsorted lists are legal inputs of a repair.
fn fatal(graph: &Graph) -> Option<String> {
    validate(graph).into_iter().find(|f| f.is_fatal() && !f.concerns_order()).map(|f| f.to_string())
}

/// What a smaller graph must not have more of than the first one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validity {
    unsorted: bool,
    intrusions: usize,
    executes: bool,
}

impl Validity {
    /// Of the graph that a reduction begins with.
    pub fn of(graph: &Graph) -> Validity {
        Validity { unsorted: !is_sorted(graph), intrusions: intrusions(graph), executes: executes(graph) }
    }

    /// Whether a smaller graph is as valid.
    pub fn holds(&self, graph: &Graph) -> bool {
        (self.unsorted || is_sorted(graph))
            && fatal(graph).is_none()
            && (self.unsorted || intrusions(graph) <= self.intrusions)
            && (!self.executes || executes(graph))
    }
}

fn is_sorted(graph: &Graph) -> bool {
    crate::passes::repair::first_violation(graph).is_none()
}

/// Elements that an execution may touch: a reduction executes very often.
const MOST_ELEMENTS: u64 = 1 << 18;

/// Whether the graph runs to its end on every rank: on some numbers, which cost little, or by fingerprints, which no
/// index leads out of a table.
fn executes(graph: &Graph) -> bool {
    let Some(world) = graph.world.assume_mesh() else { return false };
    let ops = Ops::of(graph);
    let Ok(program) = Program::new(graph, &ops, &world) else { return false };
    let options = semantics::Options { max_elements: MOST_ELEMENTS, ..semantics::Options::default() };
    let programs = [program];
    semantics::run(&programs, &world, &Concrete::of_trial(0), &options).is_ok()
        || semantics::run(&programs, &world, &Fingerprints::in_bits(), &options).is_ok()
}

struct Search<'a> {
    best: Case,
    size: Size,
    validity: Validity,
    /// Cases that were tried, so that none is asked about twice.
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
            let before = self.size;
            self.drop_programs();
            for &family in edits::FAMILIES {
                // The graph, then those of ranks that have their own.
                for target in 0..=self.best.programs.len() {
                    // An edit that is kept changes what follows, so the next one has the same number.
                    let mut next = 0;
                    while let Some(edited) = family(self.target(target), next) {
                        if self.is_spent() {
                            return false;
                        }
                        let kept = edited.is_some_and(|graph| match target.checked_sub(1) {
                            None => self.take_on_all_ranks(graph, family, next),
                            Some(program) => self.take_program(program, graph),
                        });
                        next += usize::from(!kept);
                    }
                }
            }
            self.drop_options();
            self.drop_estimates();
            if self.size >= before {
                self.rename();
                return true;
            }
        }
    }

    /// The graph (0), or that of ranks that have their own.
    fn target(&self, number: usize) -> &Graph {
        let program = number.checked_sub(1).and_then(|number| self.best.programs.get(number));
        program.map_or(&self.best.graph, |program| &program.graph)
    }

    /// One graph for all ranks, if one of them will do.
    fn drop_programs(&mut self) {
        let graphs = self.best.programs.iter().map(|program| &program.graph);
        let mut graphs: Vec<Graph> = graphs.chain([&self.best.graph]).cloned().collect();
        while let Some(graph) = graphs.pop().filter(|_| !self.best.programs.is_empty() && !self.is_spent()) {
            let case = Case { graph, programs: Vec::new(), ..self.best.clone() };
            if self.asks(&case) {
                (self.progress)(&case);
                (self.size, self.validity) = (size(&case.graph), Validity::of(&case.graph));
                self.best = case;
            }
        }
    }

    /// Leaves options of the pass to their defaults.
    fn drop_options(&mut self) {
        let mut next = 0;
        while self.best.pass.as_ref().is_some_and(|pass| next < pass.options.len()) {
            let kept = self.simplify(|pass| drop(pass.options.remove(next)));
            next += usize::from(!kept);
        }
    }

    /// Leaves estimates to their defaults, table by table and figure by figure.
    fn drop_estimates(&mut self) {
        let count = self.best.pass.as_ref().map_or(0, |pass| pass.estimates.len());
        // The last table goes first: ranks are numbered from 0.
        for table in (0..count).rev() {
            if self.simplify(|pass| drop(pass.estimates.remove(table))) {
                continue;
            }
            let mut figure = 0;
            while let Some(pass) = &self.best.pass
                && figure < pass.estimates[table].seconds.len()
            {
                let kept = self.simplify(|pass| drop(pass.estimates[table].seconds.remove(figure)));
                figure += usize::from(!kept);
            }
        }
    }

    /// Keeps a change of the pass if the case still shows the thing.
    fn simplify(&mut self, change: impl FnOnce(&mut PassConfig)) -> bool {
        let mut case = self.best.clone();
        if let Some(pass) = &mut case.pass {
            change(pass);
        }
        let is_kept = !self.is_spent() && self.asks(&case);
        if is_kept {
            (self.progress)(&case);
            self.best = case;
        }
        is_kept
    }

    /// Gives short names where there are long or odd ones, unless it is the names that matter.
    fn rename(&mut self) {
        let graph = &self.best.graph;
        let is_short = |name: &str| name.len() <= 6 && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_inner = |id: &NodeId| graph.node(*id).op != Op::Output;
        if self.is_spent() || graph.ids().filter(is_inner).all(|id| is_short(graph.name(id))) {
            return;
        }
        let renamed = graph.with_names(|id| match graph.node(id).op {
            Op::Output => graph.name(id).to_string(),
            Op::Placeholder => format!("x{}", id.0),
            _ => format!("n{}", id.0),
        });
        let case = Case { graph: renamed, ..self.best.clone() };
        if self.asks(&case) {
            (self.progress)(&case);
            self.best = case;
        }
    }

    fn is_spent(&self) -> bool {
        self.questions >= self.budget.questions || self.started.elapsed() >= self.budget.time
    }

    /// Keeps a graph; where ranks have graphs of their own, first with the same edit of theirs.
    fn take_on_all_ranks(&mut self, graph: Graph, family: edits::Family, number: usize) -> bool {
        let edited = |program: &case::Program| {
            let graph = family(&program.graph, number)??;
            Some(case::Program { graph, ranks: program.ranks.clone() })
        };
        let programs: Option<Vec<case::Program>> = self.best.programs.iter().map(edited).collect();
        if let Some(programs) = programs.filter(|programs| !programs.is_empty())
            && self.take(graph.clone(), programs)
        {
            return true;
        }
        self.take(graph, self.best.programs.clone())
    }

    /// Keeps a graph of ranks that have their own. Whether it fits those of the others the question says.
    fn take_program(&mut self, number: usize, graph: Graph) -> bool {
        let mut programs = self.best.programs.clone();
        programs[number].graph = graph;
        self.take(self.best.graph.clone(), programs)
    }

    /// Keeps graphs if they are smaller, valid and still show the thing.
    fn take(&mut self, graph: Graph, programs: Vec<case::Program>) -> bool {
        let size = total(&graph, &programs);
        if size >= self.size || !self.validity.holds(&graph) || self.is_spent() {
            return false;
        }
        let case = Case { graph, programs, ..self.best.clone() };
        if !self.asks(&case) {
            return false;
        }
        (self.progress)(&case);
        (self.best, self.size) = (case, size);
        true
    }

    fn asks(&mut self, case: &Case) -> bool {
        if !self.seen.insert(rustc_hash::FxBuildHasher.hash_one(case.to_string())) {
            return false;
        }
        self.questions += 1;
        (self.shows)(case)
    }
}

/// What makes a graph small, most important first: nodes; ranks and groups; references; what is written beside them;
/// elements.
pub(super) type Size = (usize, u64, usize, usize, i64);

fn total(graph: &Graph, programs: &[case::Program]) -> Size {
    programs.iter().fold(size(graph), |a, program| {
        let b = size(&program.graph);
        (a.0 + b.0, a.1 + b.1, a.2 + b.2, a.3 + b.3, a.4.saturating_add(b.4))
    })
}

/// Of one graph.
pub(super) fn size(graph: &Graph) -> Size {
    let (mut references, mut written, mut elements) = (0, graph.ordering.len(), 0i64);
    for id in graph.ids() {
        graph.for_each_input(id, &mut |_| references += 1);
        let node = graph.node(id);
        written += graph.args(id).len() + graph.kwargs(id).count();
        written += usize::from(node.tags.is_some() || node.module.is_some() || node.stack.is_some());
        written += usize::from(graph.target(id) != edits::SIMPLEST);
        let tensor = graph.tensor_of(id).and_then(|t| graph.numel(t)).unwrap_or(0);
        elements = elements.saturating_add(tensor);
    }
    let ranks = u64::from(graph.world.ranks.unwrap_or(0)) + graph.world.groups.len() as u64;
    (graph.len(), ranks, references, written, elements)
}
