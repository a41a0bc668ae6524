//! Orders of the nodes that need little memory, and the driver that picks one.
//!
//! Source: `torch._inductor.memory` of PyTorch 2.15 (`reorder_for_peak_memory`). All of them are iterative: the depth
//! of a graph is not bounded.

mod bfs;
mod dfs;
mod least;
mod lpmf;

pub use bfs::bfs;
pub use dfs::dfs;
pub use lpmf::lpmf;

use super::planning::Planning;
use super::program::{NodeIndex, Program, ProgramFault};
use super::timeline::Timeline;
use rustc_hash::FxHashSet;

/// A way to order nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// As given.
    Baseline,
    /// Least peak memory first.
    Lpmf,
    /// Whose predecessors ran earliest.
    Bfs,
    /// Cheapest first, with what it needs before it.
    Dfs,
}

impl Method {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Method::Baseline => "baseline",
            Method::Lpmf => "lpmf",
            Method::Bfs => "bfs",
            Method::Dfs => "dfs",
        }
    }
}

/// What the driver chose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The method.
    pub method: Method,
    /// The order.
    pub order: Vec<NodeIndex>,
    /// The peak of each method, in bytes.
    pub peaks: Vec<(Method, i64)>,
}

/// Orders the nodes by each method and takes the first of those with the lowest peak; the given order wins ties.
/// `size_threshold` is that of [`lpmf`]; 0 is off.
pub fn reorder_for_peak_memory(
    program: &Program,
    planning: &Planning,
    size_threshold: i64,
) -> Result<Choice, ProgramFault> {
    if let Some(circle) = planning.cycle() {
        let name = |&n: &NodeIndex| program.nodes[n as usize].name.clone();
        return Err(ProgramFault::Cycle(circle.iter().map(name).collect()));
    }
    unique_names(program, planning)?;
    let nodes = program.nodes.len() as u32;
    let mut best: Option<(Method, Vec<NodeIndex>, i64)> = None;
    let mut peaks = Vec::with_capacity(4);
    for method in [Method::Baseline, Method::Lpmf, Method::Bfs, Method::Dfs] {
        let order = match method {
            Method::Baseline => (0..nodes).collect(),
            Method::Lpmf => lpmf(program, planning, size_threshold)?,
            Method::Bfs => bfs(planning),
            Method::Dfs => dfs(planning),
        };
        let too_large = || ProgramFault::Bytes("the timeline".to_string());
        let (peak, _) = Timeline::new(program, planning, &order)?.estimate().ok_or_else(too_large)?;
        peaks.push((method, peak));
        if best.as_ref().is_none_or(|(_, _, least)| peak < *least) {
            best = Some((method, order, peak));
        }
    }
    let (method, order, _) = best.unwrap_or((Method::Baseline, (0..nodes).collect(), 0));
    Ok(Choice { method, order, peaks })
}

/// Every buffer of a node has a name of its own, which is no freeable input's.
fn unique_names(program: &Program, planning: &Planning) -> Result<(), ProgramFault> {
    let inputs = planning.freeable.iter().copied();
    let made = program.nodes.iter().flat_map(|node| node.outputs.iter().copied());
    let mut seen = FxHashSet::default();
    for buffer in inputs.chain(made) {
        let name = program.buffers[buffer as usize].name.as_str();
        if !seen.insert(name) {
            return Err(ProgramFault::SameName(name.to_string()));
        }
    }
    Ok(())
}
