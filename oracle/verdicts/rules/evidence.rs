//! What rules see: the graphs, and what follows from them, computed once and shared.

use super::ranks::RankGraph;
use super::values::ValueEvidence;
use super::{AnalyzedGraph, AsGiven, Correspondence, Finding, Merge, NodeMention, Policies, Stage};
use crate::analysis::fault::{Fault, FaultKind};
use crate::analysis::origin::Origin;
use crate::graph::{Graph, NodeId};
use crate::semantics::symbolic::Start;
use std::sync::Arc;

/// The outcome on one rank.
pub struct RankOutcome<'a> {
    /// The global rank.
    pub rank: u32,
    /// Its graph before. Ranks with the same graph share it.
    pub before: Arc<AnalyzedGraph<'a>>,
    /// Its graph after repair. Ranks with the same graph share it.
    pub side: Arc<AnalyzedGraph<'a>>,
    /// What became of what on this rank.
    pub correspondence: Arc<Correspondence>,
}

/// Everything that rules see.
pub struct Evidence<'a> {
    /// The graph before.
    pub before: Arc<AnalyzedGraph<'a>>,
    /// The graph after the pass, not yet repaired, where it is known and another one than `after`.
    pub unrepaired: Option<AnalyzedGraph<'a>>,
    /// Whether it is known that there was nothing to repair.
    pub needed_no_repair: bool,
    /// The graph after repair, on the first rank.
    pub after: Arc<AnalyzedGraph<'a>>,
    /// What became of what.
    pub correspondence: Arc<Correspondence>,
    /// The global ranks whose graph `after` is; none where it is for all.
    pub own_ranks: Vec<u32>,
    /// The index of these ranks in process groups, by name, where it is known.
    pub own: Vec<(String, u32)>,
    /// The outcome on each rank, where several are known: for the rules that compare ranks, and for execution.
    pub ranks: Vec<RankOutcome<'a>>,
    /// Whether other ranks have graphs of their own, and this is not the first.
    pub is_one_of_several: bool,
    /// What the pass promises.
    pub policies: Policies,
    /// What both graphs compute.
    pub values: ValueEvidence,
    /// The candidate's result on its own result.
    pub again: Option<Graph>,
    /// The order that the stable topological sort gives: node names.
    pub expected_order: Option<Vec<&'a str>>,
    /// The buckets (names of members, in the names of the graph before) that the candidate chose when nodes were
    /// renamed and independent inputs permuted.
    pub renamed_plan: Option<Vec<Vec<String>>>,
    /// The candidate's reason, if it refused.
    pub refused: Option<String>,
    /// What is to be said of the graphs as they were given.
    pub as_given: AsGiven,
}

impl<'a> Evidence<'a> {
    /// Evidence from a pair of graphs; further evidence may be filled in.
    pub fn new(
        before: &'a Graph,
        unrepaired: Option<&'a Graph>,
        after: &'a Graph,
        policies: Policies,
    ) -> Evidence<'a> {
        let after = Arc::new(AnalyzedGraph::new(after));
        let graph = RankGraph { ranks: Vec::new(), own: Vec::new(), unrepaired, after };
        Evidence::of_ranks(Arc::new(AnalyzedGraph::new(before)), graph, policies)
    }

    /// The same of the graph that some ranks have.
    pub fn of_ranks(
        before: Arc<AnalyzedGraph<'a>>,
        graph: RankGraph<'a>,
        policies: Policies,
    ) -> Evidence<'a> {
        let RankGraph { ranks, own, unrepaired, after } = graph;
        let correspondence = Correspondence::new(&before, &after);
        let needed_no_repair = unrepaired.is_some_and(|graph| same_evidence(graph, after.graph));
        Evidence {
            before,
            unrepaired: unrepaired.filter(|_| !needed_no_repair).map(AnalyzedGraph::new),
            needed_no_repair,
            after,
            correspondence: Arc::new(correspondence),
            own_ranks: ranks,
            own,
            ranks: Vec::new(),
            is_one_of_several: false,
            policies,
            values: ValueEvidence::none("no values were compared"),
            again: None,
            expected_order: None,
            renamed_plan: None,
            refused: None,
            as_given: AsGiven::default(),
        }
    }

    /// What an evaluation of both graphs begins with.
    pub fn start(&self) -> Start {
        Start { own: self.own.clone(), ..Start::default() }
    }

    /// What is known of the graph after on each of its ranks.
    pub fn outcomes(&self) -> impl Iterator<Item = RankOutcome<'a>> {
        let outcome = |&rank: &u32| RankOutcome {
            rank,
            before: self.before.clone(),
            side: self.after.clone(),
            correspondence: self.correspondence.clone(),
        };
        self.own_ranks.iter().map(outcome)
    }

    /// The graph after of each rank that has one of its own, or the only one.
    pub(super) fn afters(&self) -> Vec<&AnalyzedGraph<'a>> {
        match self.ranks.as_slice() {
            [] | [_] => vec![&*self.after],
            ranks => ranks.iter().map(|outcome| &*outcome.side).collect(),
        }
    }

    /// The same question about other graphs: that before, and those after in the order of [`afters`](Evidence::afters).
    pub(super) fn of_graphs<'g>(&self, before: &'g Graph, afters: &'g [Graph]) -> Option<Evidence<'g>> {
        let known = self.ranks.iter().map(|outcome| (outcome.rank, outcome.correspondence.clone()));
        Some(self.about(before, afters.first()?, known.zip(afters)))
    }

    /// The same question where each rank has a graph after of its own, by rank.
    pub(super) fn on_ranks<'g>(&'g self, afters: &'g [Graph]) -> Evidence<'g> {
        let known = (0..).map(|rank| (rank, self.correspondence.clone()));
        self.about(self.before.graph, self.after.graph, known.zip(afters))
    }

    fn about<'g>(
        &self,
        before: &'g Graph,
        after: &'g Graph,
        afters: impl Iterator<Item = ((u32, Arc<Correspondence>), &'g Graph)>,
    ) -> Evidence<'g> {
        let mut other = Evidence::new(before, None, after, self.policies.clone());
        (other.own, other.own_ranks) = (self.own.clone(), self.own_ranks.clone());
        let (before, side) = (&other.before, |graph| Arc::new(AnalyzedGraph::new(graph)));
        let outcome = |((rank, correspondence), graph)| RankOutcome {
            rank,
            before: before.clone(),
            side: side(graph),
            correspondence,
        };
        other.ranks = afters.map(outcome).collect();
        other
    }

    /// The distinct graphs after the pass: unrepaired, if known, then repaired.
    pub(super) fn stages(&self) -> impl Iterator<Item = (&AnalyzedGraph<'a>, Stage)> {
        let unrepaired = self.unrepaired.iter().map(|side| (side, Stage::Unrepaired));
        let after = if self.needed_no_repair { Stage::Unrepaired } else { Stage::After };
        unrepaired.chain([(&*self.after, after)])
    }

    /// All faults of one of these graphs.
    pub(super) fn faults_of<'s>(&'s self, side: &'s AnalyzedGraph<'a>) -> &'s [Fault] {
        let of_after = self.after.faults_given(&self.before, &self.correspondence);
        if std::ptr::eq(side, &*self.after) {
            return of_after;
        }
        side.faults_given(&self.after, &Correspondence::of_nodes(self.after.graph, side.graph))
    }

    /// The nodes of the graph after whose arguments or recorded results do not fit their operators, in list order.
    /// All nodes where that could not be found out.
    pub(super) fn misfits_after(&self) -> Vec<NodeId> {
        let faults = self.faults_of(&self.after);
        if faults.iter().any(|fault| matches!(fault.kind, FaultKind::Outside { .. })) {
            return self.after.graph.ids().collect();
        }
        misfits(faults)
    }

    /// Whether a node of a graph after the pass was there before.
    pub(super) fn is_survivor(&self, side: &AnalyzedGraph, id: NodeId) -> bool {
        let twin = self.before.graph.find(side.graph.name(id));
        twin.is_some_and(|old| self.before.graph.target(old) == side.graph.target(id))
    }

    /// Whether a node of the graph before conflicted there with a node that is gone, or that now reads something else,
    /// in an order that the list alone gave.
    pub(super) fn was_left_to_the_list(&self, name: &str) -> bool {
        let before = &self.before;
        let Some(node) = before.graph.find(name) else { return false };
        let twins = &self.correspondence.before_of;
        let is_gone = |id: NodeId| {
            self.correspondence.after_of[id.index()].is_none_or(|twin| {
                let now = self.after.graph.inputs(twin).into_iter().map(|input| twins[input.index()]);
                !now.eq(before.graph.inputs(id).into_iter().map(Some))
            })
        };
        let storages = before.storages();
        storages.accesses_by(node).iter().any(|own| {
            storages.accesses_of(own.part.storage).any(|other| {
                (own.touch.writes() || other.touch.writes())
                    && is_gone(other.node)
                    && !before.has_path(other.node, node)
                    && !before.has_path(node, other.node)
            })
        })
    }

    /// Kept nodes that conflict and have changed places, and why they conflict.
    pub(super) fn reversed_conflicts(&self) -> Vec<(NodeId, NodeId, Origin)> {
        let of = &self.correspondence;
        // Where no two survivors have changed places, no two that conflict have.
        if of.survivors().map(|(_, twin)| twin).is_sorted() {
            return Vec::new();
        }
        let twin = |id: NodeId| of.after_of[id.index()];
        let mut conflicts = self.before.conflicts_among(&|id| twin(id).is_some());
        conflicts.retain(|&(first, second, _)| {
            twin(first).zip(twin(second)).is_some_and(|(first, second)| first >= second)
        });
        conflicts
    }

    /// What stands for a node of the graph before as the end of an ordering edge: itself, the collective of its bucket,
    /// or the waits of that collective. Nothing where it is gone, or where it is in doubt which bucket it is in.
    pub(super) fn stands_for(&self, id: NodeId) -> Vec<NodeId> {
        if let Some(twin) = self.correspondence.after_of[id.index()] {
            return vec![twin];
        }
        // A wait for what has been waited for is what it waits for.
        let first = self.before.collectives.first_wait(id);
        if first != id {
            return self.stands_for(first);
        }
        let calls = &self.before.collectives;
        let merge = |launch: usize| {
            let merge = &self.correspondence.merges[self.correspondence.merge_of(launch)?];
            merge.certain.then_some(merge.launch)
        };
        if let Some(launch) = calls.launch_at(id) {
            return merge(launch).map(|new| self.after.collectives.calls[new].node).into_iter().collect();
        }
        let waited =
            self.before.graph.inputs(id).into_iter().filter_map(|input| calls.launch_of_value(input));
        let first = waited.into_iter().find(|&launch| calls.waits[launch].first() == Some(&id));
        match first.and_then(merge) {
            Some(new) => self.after.collectives.waits[new].clone(),
            None => Vec::new(),
        }
    }

    /// A finding without nodes and explanation.
    pub(super) fn finding(&self, rule: &'static str, stage: Stage, title: String) -> Finding {
        let severity = super::severity_in(super::CATALOGUE, rule);
        Finding { ranks: self.own_ranks.clone(), ..Finding::new(rule, severity, stage, title) }
    }

    /// A node by its name: of two that give different kinds of results, that after.
    pub(super) fn mention(&self, name: &str) -> NodeMention {
        let (before, after) = (self.before.graph, self.after.graph);
        let (old, new) = (before.find(name), after.find(name));
        let is_same = |old: &NodeId| {
            new.is_none_or(|new| {
                self.correspondence.before_of[new.index()] == Some(*old)
                    || after.same_result(new, before, *old)
            })
        };
        NodeMention {
            name: name.to_string(),
            before: old.filter(is_same).map(|n| n.0),
            after: new.map(|n| n.0),
        }
    }

    /// The names of a bucket's members.
    pub(super) fn member_names(&self, merge: &Merge) -> String {
        let node = |&m: &usize| self.before.collectives.calls[m].node;
        let names: Vec<&str> = merge.members.iter().map(|m| self.before.graph.name(node(m))).collect();
        names.join(", ")
    }

    /// The groups of nodes that buckets contract: the members' issues to one node, and their waits to another.
    pub(super) fn groups_of(&self, merges: &[Merge]) -> Vec<Vec<NodeId>> {
        let mut groups = Vec::new();
        for merge in merges.iter().filter(|merge| merge.members.len() > 1 && merge.certain) {
            groups.push(merge.members.iter().map(|&m| self.before.collectives.calls[m].node).collect());
            let waits: Vec<NodeId> = merge
                .members
                .iter()
                .filter_map(|&m| self.before.collectives.waits[m].first().copied())
                .collect();
            if waits.len() > 1 {
                groups.push(waits);
            }
        }
        groups
    }

    pub(super) fn contracted_groups(&self) -> Vec<Vec<NodeId>> {
        self.groups_of(&self.correspondence.merges)
    }

    /// The buckets that have members, or waits of members, among `nodes`.
    pub(super) fn buckets_of(&self, nodes: &[NodeId]) -> impl Iterator<Item = &Merge> {
        self.correspondence.merges.iter().filter(|merge| {
            merge.members.iter().any(|&m| {
                let call = self.before.collectives.calls[m].node;
                nodes.contains(&call) || self.before.collectives.waits[m].iter().any(|w| nodes.contains(w))
            })
        })
    }

    /// One sentence for each bucket that some of `nodes` belong to.
    pub(super) fn describe_buckets(&self, nodes: &[NodeId]) -> Vec<String> {
        let describe = |merge: &Merge| {
            let bucket = self.after.collectives.calls[merge.launch].node;
            format!("bucket {} replaces {}", self.after.graph.name(bucket), self.member_names(merge))
        };
        self.buckets_of(nodes).map(describe).collect()
    }
}

/// The nodes whose arguments or recorded results do not fit their operators, in list order.
pub(super) fn misfits(faults: &[Fault]) -> Vec<NodeId> {
    let misfit = |fault: &&Fault| matches!(fault.kind, FaultKind::Shape { .. } | FaultKind::Arguments(_));
    let mut nodes: Vec<NodeId> = faults.iter().filter(misfit).filter_map(|fault| fault.node).collect();
    nodes.dedup();
    nodes
}

/// Whether two graphs are the same to every rule.
pub(crate) fn same_evidence(a: &Graph, b: &Graph) -> bool {
    std::ptr::eq(a, b) || (a.facts == b.facts && a.difference(b).is_none())
}

/// Filling in a finding.
impl Finding {
    pub(super) fn fact(mut self, fact: impl Into<String>) -> Finding {
        self.facts.push(fact.into());
        self
    }

    pub(super) fn facts(mut self, facts: Vec<String>) -> Finding {
        self.facts.extend(facts);
        self
    }

    /// A finding that holds several ranks against each other, and says of which it speaks.
    pub(in crate::rules) fn across_ranks(self) -> Finding {
        Finding { ranks: Vec::new(), ..self }
    }

    pub(super) fn expected(mut self, expected: impl Into<String>) -> Finding {
        self.expected = Some(expected.into());
        self
    }

    pub(super) fn observed(mut self, observed: impl Into<String>) -> Finding {
        self.observed = Some(observed.into());
        self
    }

    pub(super) fn before_nodes(
        self,
        evidence: &Evidence,
        nodes: impl IntoIterator<Item = NodeId>,
    ) -> Finding {
        self.side_nodes(evidence, &evidence.before, nodes)
    }

    pub(super) fn after_nodes(self, evidence: &Evidence, nodes: impl IntoIterator<Item = NodeId>) -> Finding {
        self.side_nodes(evidence, &evidence.after, nodes)
    }

    pub(super) fn side_nodes(
        mut self,
        evidence: &Evidence,
        side: &AnalyzedGraph,
        nodes: impl IntoIterator<Item = NodeId>,
    ) -> Finding {
        for node in nodes {
            let mention = evidence.mention(side.graph.name(node));
            if !self.nodes.contains(&mention) {
                self.nodes.push(mention);
            }
        }
        self
    }
}

impl Correspondence {
    /// Nodes that survive: (before, after).
    pub(super) fn survivors(&self) -> impl Iterator<Item = (NodeId, NodeId)> {
        self.after_of.iter().enumerate().filter_map(|(i, twin)| twin.map(|twin| (NodeId(i as u32), twin)))
    }
}
