//! What lives at the peak, by kind of value and by module of the model: a row each, the largest first.
//!
//! A kind follows from who made the storage and who holds it; the module is that of the node that allocates it, as the
//! graph records it.

use super::MemoryReport;
use crate::analysis::Collectives;
use crate::graph::{NodeId, Op};
use crate::memory::Held;
use crate::ops::Ops;

/// Storages that belong together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// What they are.
    pub name: String,
    /// How many.
    pub storages: usize,
    /// Their bytes.
    pub bytes: i64,
}

impl MemoryReport<'_> {
    /// The storages at the replay's peak, by kind.
    pub fn by_kind(&self) -> Vec<Group> {
        let collectives = Collectives::new(self.graph, &Ops::of(self.graph));
        self.grouped(|of, held| {
            let kind = match (self.graph.node(of).op, held) {
                (Op::Placeholder, _) => "inputs",
                (_, Held::InFlight { .. } | Held::NeverWaited(_)) => "sent by communication in flight",
                _ if collectives.launch_at(of).is_some() => "received from communication",
                (_, Held::Output(_)) => "returned",
                _ => "intermediate values",
            };
            kind.to_string()
        })
    }

    /// The same by module; empty where no node has one.
    pub fn by_module(&self) -> Vec<Group> {
        let named = |of: NodeId| self.graph.node(of).module.map(|module| self.graph.text(module));
        if self.graph.ids().all(|id| named(id).is_none()) {
            return Vec::new();
        }
        self.grouped(|of, _| named(of).unwrap_or("no module").to_string())
    }

    fn grouped(&self, name: impl Fn(NodeId, Held) -> String) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for i in self.replay.contents(self.replay.steps.peak().1) {
            let life = self.replay.lives[i];
            let name = name(life.by, self.replay.held[i]);
            let at = groups.iter().position(|group| group.name == name).unwrap_or_else(|| {
                groups.push(Group { name, storages: 0, bytes: 0 });
                groups.len() - 1
            });
            groups[at].storages += 1;
            groups[at].bytes = groups[at].bytes.saturating_add(life.bytes);
        }
        groups.sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
        groups
    }
}
