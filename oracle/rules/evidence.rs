//! What rules see: the graphs, and what follows from them, computed once and shared.

use super::values::ValueEvidence;
use super::{Correspondence, Finding, Merge, NodeMention, Policies, Severity, Side, Stage};
use crate::graph::{Graph, NodeId};

/// The outcome on one rank.
pub struct RankOutcome<'a> {
    /// The global rank.
    pub rank: u32,
    /// Its graph after repair.
    pub side: Side<'a>,
    /// What became of what on this rank.
    pub correspondence: Correspondence,
}

/// Everything that rules see.
pub struct Evidence<'a> {
    /// The graph before.
    pub before: Side<'a>,
    /// The graph after the pass, not yet repaired, where it is known.
    pub unrepaired: Option<Side<'a>>,
    /// The graph after repair, on the first rank.
    pub after: Side<'a>,
    /// What became of what.
    pub correspondence: Correspondence,
    /// The outcome on each rank, where several are known.
    pub ranks: Vec<RankOutcome<'a>>,
    /// What the pass promises.
    pub policies: Policies,
    /// What both graphs compute.
    pub values: ValueEvidence,
    /// The candidate's result on its own result.
    pub again: Option<Graph>,
    /// The order that the stable topological sort gives: node names.
    pub expected_order: Option<Vec<String>>,
    /// The buckets (names of members, in the names of the graph before) that the candidate chose when nodes were
    /// renamed and independent inputs permuted.
    pub renamed_plan: Option<Vec<Vec<String>>>,
    /// The candidate's reason, if it refused.
    pub refused: Option<String>,
}

impl<'a> Evidence<'a> {
    /// Evidence from a pair of graphs; further evidence may be filled in.
    pub fn new(
        before: &'a Graph,
        unrepaired: Option<&'a Graph>,
        after: &'a Graph,
        policies: Policies,
    ) -> Evidence<'a> {
        Evidence::from_side(Side::new(before), unrepaired, after, policies)
    }

    /// The same from what is known of the graph before.
    pub fn from_side(
        before: Side<'a>,
        unrepaired: Option<&'a Graph>,
        after: &'a Graph,
        policies: Policies,
    ) -> Evidence<'a> {
        let after = Side::new(after);
        let correspondence = Correspondence::new(&before, &after);
        Evidence {
            before,
            unrepaired: unrepaired.map(Side::new),
            after,
            correspondence,
            ranks: Vec::new(),
            policies,
            values: ValueEvidence::none("no values were compared"),
            again: None,
            expected_order: None,
            renamed_plan: None,
            refused: None,
        }
    }

    /// The graphs after the pass: unrepaired, if known, then repaired.
    pub(super) fn stages(&self) -> Vec<(&Side<'a>, Stage)> {
        let unrepaired = self.unrepaired.iter().map(|side| (side, Stage::Unrepaired));
        unrepaired.chain([(&self.after, Stage::After)]).collect()
    }

    /// Whether a node of a graph after the pass was there before.
    pub(super) fn is_survivor(&self, side: &Side, id: NodeId) -> bool {
        let twin = self.before.graph.find(side.graph.name(id));
        twin.is_some_and(|old| self.before.graph.target(old) == side.graph.target(id))
    }

    /// Whether a node of the graph before conflicted there with a node that is gone, in an order that the list alone
    /// gave.
    pub(super) fn was_left_to_the_list(&self, name: &str) -> bool {
        let before = &self.before;
        let Some(node) = before.graph.find(name) else { return false };
        let is_gone = |id: NodeId| self.correspondence.after_of[id.index()].is_none();
        let storages = before.storages();
        storages.accesses_by(node).iter().any(|own| {
            storages.accesses_of(own.part.storage).any(|other| {
                is_gone(other.node)
                    && (own.touch.writes() || other.touch.writes())
                    && !before.has_path(other.node, node)
                    && !before.has_path(node, other.node)
            })
        })
    }

    /// A finding without nodes and explanation.
    pub(super) fn finding(&self, rule: &'static str, stage: Stage, title: String) -> Finding {
        let severity = super::find(rule).map_or(Severity::Soundness, |rule| rule.severity);
        Finding {
            rule,
            severity,
            stage,
            title,
            nodes: Vec::new(),
            facts: Vec::new(),
            then: None,
            however: None,
            consequences: Vec::new(),
        }
    }

    pub(super) fn mention(&self, name: &str) -> NodeMention {
        NodeMention {
            name: name.to_string(),
            before: self.before.graph.find(name).map(|n| n.0),
            after: self.after.graph.find(name).map(|n| n.0),
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
        for merge in merges.iter().filter(|merge| merge.members.len() > 1) {
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

    /// One sentence for each bucket that some of `nodes` belong to.
    pub(super) fn tell_buckets(&self, nodes: &[NodeId]) -> Vec<String> {
        let concerned = |merge: &&Merge| {
            merge.members.iter().any(|&m| {
                let call = self.before.collectives.calls[m].node;
                nodes.contains(&call) || self.before.collectives.waits[m].iter().any(|w| nodes.contains(w))
            })
        };
        self.correspondence
            .merges
            .iter()
            .filter(concerned)
            .map(|merge| {
                let bucket = self.after.collectives.calls[merge.launch].node;
                format!("bucket {} replaces {}", self.after.graph.name(bucket), self.member_names(merge))
            })
            .collect()
    }
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

    pub(super) fn then(mut self, then: impl Into<String>) -> Finding {
        self.then = Some(then.into());
        self
    }

    pub(super) fn however(mut self, however: impl Into<String>) -> Finding {
        self.however = Some(however.into());
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
        side: &Side,
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
