//! What rules about schedules see.

use super::super::{AnalyzedGraph, Budget, Finding, NodeMention, Stage};
use crate::graph::{Graph, NodeId};
use crate::simulate::{Buffers, Estimates, Messages, Options, Programs, Report, simulate};
use std::cell::OnceCell;

/// What a pass promises beyond being right, and the figures to judge it by.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Promises {
    /// The share of the peak before by which the peak may grow on all ranks.
    pub peak: Option<f64>,
    /// The same of each rank, where they differ; ranks beyond these have them in turn.
    pub peaks: Vec<f64>,
    /// Exposed time, seconds.
    pub exposed: Option<Budget>,
    /// For how long a single all-gather may be exposed, seconds.
    pub exposed_gather: Option<f64>,
    /// The share of nodes that may be taken out of their order.
    pub displacement: Option<f64>,
    /// How many all-gathers, and how many reduce-scatters, may be in flight.
    pub in_flight: Option<usize>,
    /// The same for those alone that FSDP's copies surround.
    pub fsdp_in_flight: Option<usize>,
    /// Whether every wait has been moved as far as it is worth.
    pub progress: bool,
    /// Whether all ranks give one order of all nodes, whatever each of them estimates.
    pub one_order: bool,
    /// Whether the order is exactly the reference's.
    pub exact: bool,
    /// Whether the outcomes were given, so that a promise which they do not show leaves the question open.
    pub of_given: bool,
    /// How long nodes take.
    pub estimates: Estimates,
}

/// The graph after, on the ranks that have it.
pub struct Outcome<'a> {
    /// The ranks; empty: all of them.
    pub ranks: Vec<u32>,
    /// The graph before on these ranks: an index into [`Evidence::before`].
    pub before: usize,
    /// The graph after.
    pub after: AnalyzedGraph<'a>,
    /// For each node before its place after.
    pub(super) place: Vec<Option<u32>>,
}

/// Everything that rules about schedules see.
pub struct Evidence<'a> {
    /// The distinct graphs before.
    pub before: Vec<AnalyzedGraph<'a>>,
    /// The distinct outcomes.
    pub outcomes: Vec<Outcome<'a>>,
    /// What the pass promises.
    pub promises: Promises,
    /// What the pass gave when it was run again on the same input (`again`), under other names, ...: a word for how,
    /// and the names of the nodes in their order.
    pub again: Vec<(String, Vec<String>)>,
    /// What the pass gave on other ranks, each with estimates and limits of its own: the order of names.
    pub noisy: Vec<(u32, Vec<String>)>,
    /// The reference's order of each graph before; empty where it is not asked for or not known.
    pub expected_orders: Vec<Vec<String>>,
    buffers: OnceCell<Vec<Buffers>>,
    reports: OnceCell<Vec<(Options, Report, Report)>>,
}

impl<'a> Evidence<'a> {
    /// One graph on all ranks, and one outcome of it.
    pub fn new(before: &'a Graph, after: &'a Graph, promises: Promises) -> Evidence<'a> {
        Evidence::per_rank(&[(Vec::new(), before, after)], promises)
    }

    /// Ranks with their graphs before and after. Graphs that are the same object are looked at once.
    pub fn per_rank(ranks: &[(Vec<u32>, &'a Graph, &'a Graph)], promises: Promises) -> Evidence<'a> {
        let mut this = Evidence {
            before: Vec::new(),
            outcomes: Vec::new(),
            promises,
            again: Vec::new(),
            noisy: Vec::new(),
            expected_orders: Vec::new(),
            buffers: OnceCell::new(),
            reports: OnceCell::new(),
        };
        for (ranks, before, after) in ranks {
            let known = this.before.iter().position(|side| std::ptr::eq(side.graph, *before));
            let index = known.unwrap_or_else(|| {
                this.before.push(AnalyzedGraph::new(before));
                this.before.len() - 1
            });
            let same = |outcome: &&mut Outcome| {
                outcome.before == index
                    && !outcome.ranks.is_empty()
                    && (std::ptr::eq(outcome.after.graph, *after) || same_order(outcome.after.graph, after))
            };
            match this.outcomes.iter_mut().find(same) {
                Some(outcome) => outcome.ranks.extend(ranks),
                None => {
                    let place = before.ids().map(|id| after.find(before.name(id)).map(|id| id.0)).collect();
                    let after = AnalyzedGraph::new(after);
                    this.outcomes.push(Outcome { ranks: ranks.clone(), before: index, after, place });
                }
            }
        }
        this
    }

    /// The graph before of an outcome.
    pub fn before(&self, outcome: &Outcome) -> &AnalyzedGraph<'a> {
        &self.before[outcome.before]
    }

    /// By how much the peak of an outcome may grow: what is promised of every rank that has it.
    pub(super) fn peak_of(&self, outcome: &Outcome) -> Option<f64> {
        let all = self.promises.peak?;
        let own = |rank: u32| self.promises.peaks.get(rank as usize % self.promises.peaks.len().max(1));
        let world = self.before(outcome).graph.world.assume_mesh().and_then(|world| world.ranks).unwrap_or(1);
        let ranks = match outcome.ranks.is_empty() {
            // More ranks than budgets have no other ones.
            true => (0..world.min(self.promises.peaks.len() as u32)).collect(),
            false => outcome.ranks.clone(),
        };
        Some(ranks.into_iter().filter_map(own).copied().min_by(f64::total_cmp).unwrap_or(all))
    }

    /// What an outcome's graph keeps in memory.
    pub(super) fn buffers(&self, outcome: &Outcome) -> &Buffers {
        let of = |side: &AnalyzedGraph| Buffers::new(side.graph, &side.edges, side.storages());
        &self.buffers.get_or_init(|| self.before.iter().map(of).collect())[outcome.before]
    }

    /// The simulation of all ranks, before and after, for each way to look at streams and messages.
    pub(super) fn reports(&self) -> &[(Options, Report, Report)] {
        self.reports.get_or_init(|| {
            let before = self.programs(&|outcome| self.before(outcome).graph);
            let after = self.programs(&|outcome| outcome.after.graph);
            let has_messages = after.programs.iter().any(|p| p.operations.iter().any(|o| o.is_message()));
            let mut ways = vec![Options::default()];
            if has_messages {
                ways.push(Options { messages: Messages::Blocking, ..Options::default() });
            }
            ways.push(Options { streams: crate::simulate::Streams::One, ..Options::default() });
            ways.into_iter().map(|way| (way, simulate(&before, way), simulate(&after, way))).collect()
        })
    }

    /// What keeps the programs before from finishing, whatever the pass does; `None` where they finish or it is not
    /// known. Unless those of all ranks are `given`, they may be other ones.
    pub(crate) fn unfinished(&self, are_given: bool) -> Option<Vec<String>> {
        let (_, before, _) = self.reports().first()?;
        let is_stuck = if are_given { before.finishes() == Some(false) } else { !before.hangs.is_empty() };
        is_stuck.then(|| before.to_string().lines().map(str::to_string).collect())
    }

    /// What may be wrong with how the launches of several ranks meet, and need not be.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.reports().first().map_or(Vec::new(), |(_, _, after)| after.warnings.clone())
    }

    /// How many ranks the world has; 1 where it does not say.
    pub(super) fn world_ranks(&self) -> u32 {
        self.before.first().and_then(|side| side.graph.world.assume_mesh()?.ranks).unwrap_or(1)
    }

    /// The programs of all ranks.
    pub(super) fn programs(&self, graph: &dyn Fn(&Outcome<'a>) -> &'a Graph) -> Programs {
        let graphs: Vec<&Graph> = self.outcomes.iter().map(graph).collect();
        // A rank that the world does not have is the business of whoever asks for a judgement.
        let mut of_rank = vec![0; self.world_ranks() as usize];
        for (i, outcome) in self.outcomes.iter().enumerate() {
            for &rank in &outcome.ranks {
                if let Some(of) = of_rank.get_mut(rank as usize) {
                    *of = i;
                }
            }
        }
        Programs::per_rank(&graphs, &of_rank, &self.promises.estimates)
    }

    /// A finding about an outcome, without nodes and explanation.
    pub(super) fn finding(&self, rule: &'static str, outcome: &Outcome, title: String) -> Finding {
        let severity = super::severity_in(super::CATALOGUE, rule);
        let facts = match (self.outcomes.len(), outcome.ranks.first()) {
            (0 | 1, _) | (_, None) => Vec::new(),
            (_, Some(rank)) => vec![format!("on rank {rank}")],
        };
        Finding::new(rule, severity, Stage::After, title).facts(facts)
    }

    /// A node of the graph before, as a finding mentions it.
    pub(super) fn mention(&self, outcome: &Outcome, node: NodeId) -> NodeMention {
        NodeMention {
            name: self.before(outcome).graph.name(node).to_string(),
            before: Some(node.0),
            after: outcome.place[node.index()],
        }
    }
}

impl Outcome<'_> {
    /// Whether the order of two nodes of the graph before has been turned round.
    pub(super) fn is_reversed(&self, before: NodeId, after: NodeId) -> bool {
        match (self.place[before.index()], self.place[after.index()]) {
            (Some(a), Some(b)) => a > b,
            _ => false,
        }
    }
}

/// Whether two graphs have the same names in the same order: permutations of one graph are the same then.
fn same_order(a: &Graph, b: &Graph) -> bool {
    a.len() == b.len() && a.ids().all(|id| a.name(id) == b.name(id)) && a.difference_in_program(b).is_none()
}

/// Filling in a finding.
pub(super) trait Explain {
    fn with_nodes(self, evidence: &Evidence, outcome: &Outcome, nodes: &[NodeId]) -> Self;
    fn with_fact(self, fact: impl Into<String>) -> Self;
    fn contrast(self, expected: impl Into<String>, observed: impl Into<String>) -> Self;
}

impl Explain for Finding {
    fn with_nodes(mut self, evidence: &Evidence, outcome: &Outcome, nodes: &[NodeId]) -> Finding {
        self.nodes.extend(nodes.iter().map(|&node| evidence.mention(outcome, node)));
        self
    }

    fn with_fact(mut self, fact: impl Into<String>) -> Finding {
        self.facts.push(fact.into());
        self
    }

    fn contrast(mut self, expected: impl Into<String>, observed: impl Into<String>) -> Finding {
        (self.expected, self.observed) = (Some(expected.into()), Some(observed.into()));
        self
    }
}
