//! How long each node takes: an explicit input of whoever schedules or simulates, never measured in passing.
//!
//! Ranks that measure get different figures, and ranks that schedule by different figures order their collectives
//! differently and hang (pytorch#164226). So the tables of all ranks are made one before anything is decided by them:
//! [`Estimates::agreed`] takes the largest figure for each node, which every rank finds for itself from the same
//! tables, whatever their order.

use crate::analysis::Collectives;
use crate::case::EstimateTable;
use crate::graph::{Graph, NodeId, Op};
use crate::ops::{Kind, Ops, View};
use std::collections::BTreeMap;

/// Seconds by node name, with a model for nodes that are not in the table.
#[derive(Clone, PartialEq, Debug)]
pub struct Estimates {
    /// Seconds by node name.
    pub seconds: BTreeMap<String, f64>,
    /// Bytes per second of memory: what a node takes that is not in the table.
    pub memory: f64,
    /// Bytes per second of a link: what a collective takes beyond its latency.
    pub link: f64,
    /// Seconds to start a collective.
    pub latency: f64,
}

/// A table that cannot be used.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum EstimateError {
    /// No duration.
    #[error("the estimate for {node} is {seconds} seconds: a duration is finite and not negative")]
    NoDuration {
        /// The node.
        node: String,
        /// What the table says.
        seconds: f64,
    },
    /// No table at all.
    #[error("there is no estimate table")]
    Empty,
    /// Ranks are left out.
    #[error("rank {0} has no estimates, but a rank above it has")]
    Missing(u32),
    /// A rate that nothing can move at.
    #[error(
        "the estimated {what} is {figure}: rates are finite and positive, a latency is finite and not negative"
    )]
    NoRate {
        /// `memory`, `link` or `latency`.
        what: &'static str,
        /// What the table says.
        figure: f64,
    },
}

impl Default for Estimates {
    /// An empty table over round figures of a present-day accelerator: 3 TB/s, 100 GB/s, 10 us.
    fn default() -> Estimates {
        Estimates { seconds: BTreeMap::new(), memory: 3e12, link: 1e11, latency: 1e-5 }
    }
}

impl Estimates {
    /// A table of names and seconds.
    pub fn table<'a>(entries: impl IntoIterator<Item = (&'a str, f64)>) -> Estimates {
        let seconds = entries.into_iter().map(|(name, seconds)| (name.to_string(), seconds)).collect();
        Estimates { seconds, ..Estimates::default() }
    }

    /// The tables of a case, rank by rank: what a rank does not state is what is stated for all ranks. One table where
    /// no rank has its own.
    pub fn of_ranks(tables: &[EstimateTable]) -> Result<Vec<Estimates>, EstimateError> {
        let mut base = Estimates::default();
        let common = tables.iter().find(|table| table.rank.is_none());
        common.map_or(Ok(()), |table| base.state(table))?;
        let mut own: Vec<(u32, &EstimateTable)> =
            tables.iter().filter_map(|table| Some((table.rank?, table))).collect();
        own.sort_unstable_by_key(|&(rank, _)| rank);
        if own.is_empty() {
            return Ok(vec![base]);
        }
        let mut ranks = Vec::new();
        // Where all ranks have figures the first rank need not have any of its own.
        if common.is_some() && own.first().is_some_and(|&(rank, _)| rank == 1) {
            ranks.push(base.clone());
        }
        for (rank, table) in own {
            if rank as usize != ranks.len() {
                return Err(EstimateError::Missing(ranks.len() as u32));
            }
            let mut estimates = base.clone();
            estimates.state(table)?;
            ranks.push(estimates);
        }
        Ok(ranks)
    }

    /// Takes over what a table states.
    fn state(&mut self, table: &EstimateTable) -> Result<(), EstimateError> {
        let rate = |what, figure: Option<f64>, slot: &mut f64, least: f64| match figure {
            None => Ok(()),
            Some(figure) if figure.is_finite() && figure >= least => {
                *slot = figure;
                Ok(())
            }
            Some(figure) => Err(EstimateError::NoRate { what, figure }),
        };
        rate("memory", table.memory, &mut self.memory, f64::MIN_POSITIVE)?;
        rate("link", table.link, &mut self.link, f64::MIN_POSITIVE)?;
        rate("latency", table.latency, &mut self.latency, 0.0)?;
        for (node, seconds) in &table.seconds {
            if !(seconds.is_finite() && *seconds >= 0.0) {
                return Err(EstimateError::NoDuration { node: node.clone(), seconds: *seconds });
            }
            self.seconds.insert(node.clone(), *seconds);
        }
        Ok(())
    }

    /// As a table of a case.
    pub fn as_table(&self, rank: Option<u32>) -> EstimateTable {
        let plain = Estimates::default();
        let other = |figure: f64, plain: f64| Some(figure).filter(|_| figure != plain);
        EstimateTable {
            rank,
            memory: other(self.memory, plain.memory),
            link: other(self.link, plain.link),
            latency: other(self.latency, plain.latency),
            seconds: self.seconds.iter().map(|(name, seconds)| (name.clone(), *seconds)).collect(),
        }
    }

    /// One table from those of all ranks: for each node and figure the one that takes longest. It does not depend on
    /// the order of the tables.
    pub fn agreed(tables: &[Estimates]) -> Result<Estimates, EstimateError> {
        let mut agreed = tables.first().cloned().ok_or(EstimateError::Empty)?;
        for table in tables {
            for (node, &seconds) in &table.seconds {
                if !(seconds.is_finite() && seconds >= 0.0) {
                    return Err(EstimateError::NoDuration { node: node.clone(), seconds });
                }
                let entry = agreed.seconds.entry(node.clone()).or_insert(seconds);
                *entry = entry.max(seconds);
            }
            agreed.memory = agreed.memory.min(table.memory);
            agreed.link = agreed.link.min(table.link);
            agreed.latency = agreed.latency.max(table.latency);
        }
        Ok(agreed)
    }

    /// Seconds of every node of a graph, in list order. Waits take none, whatever the table says: that time is the
    /// collective's. Of what is not in the table views, inputs and what has no size take none.
    pub fn of(&self, graph: &Graph, ops: &Ops, collectives: &Collectives) -> Vec<f64> {
        graph.ids().map(|id| self.node(graph, ops, collectives, id)).collect()
    }

    fn node(&self, graph: &Graph, ops: &Ops, collectives: &Collectives, id: NodeId) -> f64 {
        if graph.node(id).op != Op::Call || ops.get(graph, id).kind == Kind::Wait {
            return 0.0;
        }
        if let Some(&seconds) = self.seconds.get(graph.name(id)) {
            return if seconds.is_finite() { seconds.max(0.0) } else { 0.0 };
        }
        let bytes = |id: NodeId| graph.tensor_of(id).and_then(|t| graph.bytes(t)).unwrap_or(0).max(0) as f64;
        if let Some(launch) = collectives.launch_at(id) {
            let inputs: f64 = collectives.calls[launch].inputs.iter().map(|&input| bytes(input)).sum();
            return self.latency + bytes(id).max(inputs) / self.link.max(1.0);
        }
        let kind = ops.get(graph, id).kind;
        let is_free = matches!(kind, Kind::GetItem | Kind::Number(_) | Kind::SymSize)
            || matches!(kind, Kind::View(view) if view != View::Conj);
        if is_free {
            return 0.0;
        }
        let mut moved = bytes(id);
        graph.for_each_input(id, &mut |input| {
            if input.index() < graph.len() {
                moved += bytes(input);
            }
        });
        moved / self.memory.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agreed_table_does_not_depend_on_the_order_of_ranks() {
        let a = Estimates::table([("x", 1.0), ("y", 5.0)]);
        let b = Estimates { latency: 1.0, ..Estimates::table([("x", 2.0), ("z", 1.0)]) };
        let agreed = Estimates::agreed(&[a.clone(), b.clone()]).unwrap();
        assert_eq!(agreed, Estimates::agreed(&[b, a.clone()]).unwrap());
        assert_eq!(agreed.seconds.values().copied().collect::<Vec<_>>(), [2.0, 5.0, 1.0]);
        assert_eq!(agreed.latency, 1.0);
        let bad = Estimates::agreed(&[a, Estimates::table([("x", f64::NAN)])]).unwrap_err();
        assert!(bad.to_string().starts_with("the estimate for x is NaN seconds"));
    }
}
