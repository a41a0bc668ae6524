//! How long communication is not hidden behind computation: a simulation of one rank with a compute stream and one
//! communication stream per process group.
//!
//! The list is executed in order. A launch is queued on its group's stream and takes latency plus bytes over the
//! link; a wait stalls the compute stream until the launch is done: the stall is exposed time. Everything else
//! takes its bytes over the memory bandwidth; views take nothing.
//!
//! It is a yardstick for comparing two orders of one graph, not a prediction: no flops, no contention, one rank.

use super::AnalyzedGraph;
use crate::analysis::GroupName;
use crate::ops::{Kind, View};
use std::collections::BTreeMap;
use std::fmt;

/// Seconds and bytes per second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CostModel {
    /// Bytes per second of memory.
    pub memory: f64,
    /// Bytes per second of a link.
    pub link: f64,
    /// Seconds to start a collective.
    pub latency: f64,
}

impl Default for CostModel {
    /// Round figures of a present-day accelerator: 3 TB/s, 100 GB/s, 10 us.
    fn default() -> CostModel {
        CostModel { memory: 3e12, link: 1e11, latency: 1e-5 }
    }
}

impl fmt::Display for CostModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "memory {:.0} GB/s, link {:.0} GB/s, latency {:.1} us",
            self.memory / 1e9,
            self.link / 1e9,
            self.latency * 1e6
        )
    }
}

impl AnalyzedGraph<'_> {
    /// Seconds for which the compute stream stalls at waits.
    ///
    /// # Errors
    /// A size that is not known, with its node.
    pub(super) fn exposed_seconds(&self, model: &CostModel) -> Result<f64, String> {
        let bytes_of = |id| {
            let bytes = self.graph.tensor_of(id).map_or(Some(0), |t| self.graph.bytes(t));
            bytes.ok_or_else(|| format!("the size of {} is not known", self.graph.name(id)))
        };
        let (mut now, mut exposed) = (0.0f64, 0.0f64);
        let mut stream_free: BTreeMap<GroupName, f64> = BTreeMap::new();
        let mut done = vec![0.0f64; self.collectives.calls.len()];
        let mut launch_of_wait = BTreeMap::new();
        for (launch, waits) in self.collectives.waits.iter().enumerate() {
            for &wait in waits {
                launch_of_wait.entry(wait).or_insert(launch);
            }
        }
        for id in self.graph.ids() {
            if let Some(launch) = self.collectives.launch_at(id) {
                let call = &self.collectives.calls[launch];
                let mut bytes = bytes_of(id)?;
                for &input in &call.inputs {
                    bytes = bytes.max(bytes_of(input)?);
                }
                let free = stream_free.entry(call.group).or_insert(0.0);
                let start = now.max(*free);
                *free = start + model.latency + bytes as f64 / model.link;
                done[launch] = *free;
            } else if let Some(&launch) = launch_of_wait.get(&id) {
                exposed += (done[launch] - now).max(0.0);
                now = now.max(done[launch]);
            } else if let Some(info) = self.ops.call(self.graph, id) {
                let free = matches!(info.kind, Kind::GetItem | Kind::Number(_) | Kind::SymSize)
                    || matches!(info.kind, Kind::View(view) if view != View::Conj);
                if free {
                    continue;
                }
                let mut bytes = bytes_of(id)?;
                for &input in self.edges.inputs(id) {
                    bytes += bytes_of(input)?;
                }
                now += bytes as f64 / model.memory;
            }
        }
        Ok(exposed)
    }
}
