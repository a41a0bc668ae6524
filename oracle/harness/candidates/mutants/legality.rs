//! Mutants that see too few dependences.

use crate::analysis::EdgeSource;
use crate::graph::{NodeId, Str};
use crate::passes::bucketing::{AfterConflict, Context, Facts, Legality, Member, Open, Strategy};
use petgraph::graphmap::DiGraphMap;
use rustc_hash::FxBuildHasher;

/// Looks at arguments, not at paths.
pub(super) struct DirectOnly;

impl Strategy for DirectOnly {
    fn conflict(&self, cx: &Context, _: &mut Legality, open: &Open, m: &Member) -> Option<NodeId> {
        let graph = cx.editor.graph();
        let takes = |user: &Member, of: &Member| {
            let inputs = graph.inputs(user.start);
            inputs.contains(&of.start) || inputs.contains(&of.wait)
        };
        let member = open.members.iter().find(|member| takes(m, member) || takes(member, m))?;
        Some(member.start)
    }
}

/// Looks at the first member, not at those that joined it.
pub(super) struct FirstMemberOnly;

impl Strategy for FirstMemberOnly {
    fn conflict(&self, _: &Context, legality: &mut Legality, open: &Open, m: &Member) -> Option<NodeId> {
        let first = open.members.first()?;
        legality.open();
        legality.add(first.start, first.wait);
        legality.conflict(m.start, m.wait)
    }
}

/// Does not see decided buckets as one node.
pub(super) struct Stale;

impl Strategy for Stale {
    fn decided(&self, _: &mut Legality, _: &[Member]) {}
}

/// Does not see paths that leave a module.
pub(super) struct Scoped;

impl Strategy for Scoped {
    fn conflict(&self, cx: &Context, _: &mut Legality, open: &Open, m: &Member) -> Option<NodeId> {
        let graph = cx.editor.graph();
        let dependences = &cx.facts.dependences;
        let module = |id: NodeId| -> Option<Str> { graph.node(id).module };
        let mut scope: DiGraphMap<NodeId, (), FxBuildHasher> =
            DiGraphMap::with_capacity(dependences.len(), 0);
        for id in (0..dependences.len() as u32).map(NodeId) {
            scope.add_node(id);
            for next in EdgeSource::after(dependences, id).filter(|&next| module(next) == module(id)) {
                scope.add_edge(id, next, ());
            }
        }
        let waits: Vec<NodeId> = open.members.iter().map(|member| member.wait).chain([m.wait]).collect();
        let mut legality = Legality::new(&scope, &waits);
        legality.open();
        open.members.iter().for_each(|member| legality.add(member.start, member.wait));
        legality.conflict(m.start, m.wait)
    }

    /// What it does not see it does not order either.
    fn legality(&self, facts: &Facts, waits: &[NodeId]) -> Legality {
        Legality::new(&facts.edges, waits)
    }
}

/// Gives up a run at the first conflict.
pub(super) struct StopsAtConflict;

impl Strategy for StopsAtConflict {
    fn after_conflict(&self) -> AfterConflict {
        AfterConflict::Stop
    }
}
