//! Figures of a graph, for a table of before and after: nodes, launches, the peak of memory, exposed communication.
//!
//! Figures, no judgement. Memory is the scheduler's model ([`Buffers`]), a node a step; time is simulated by the default
//! estimates or those of a case, one graph on all ranks.

use crate::analysis::Collectives;
use crate::graph::Graph;
use crate::ops::Ops;
use crate::simulate::{Buffers, Estimates, Options, Programs, simulate};
use ir::words;

/// Figures of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Nodes.
    pub nodes: usize,
    /// Launches of collectives.
    pub collectives: usize,
    /// The most bytes that live at one time in the scheduler's model ([`Buffers`]): inputs that the caller keeps do not
    /// count, others do until their last use. `None` where sizes are not known.
    pub peak: Option<i64>,
    /// Nanoseconds of communication that no computation hides, by the estimates; `None` where that is not known.
    pub exposed: Option<u64>,
}

impl Cost {
    /// Of a graph that all ranks run, by the default estimates. Near linear.
    pub fn of(graph: &Graph) -> Cost {
        Cost::by(graph, &Estimates::default())
    }

    /// What a pass made of it, in one line.
    pub fn change(&self, after: &[Cost]) -> String {
        let list = |of: &dyn Fn(&Cost) -> Option<String>| {
            let known = |cost: &Cost| of(cost).unwrap_or("not known".to_string());
            let after: Vec<String> = after.iter().map(known).collect();
            format!("{} before, {} after", known(self), after.join(" and "))
        };
        format!(
            "collectives: {}; peak memory in the scheduler's model: {}; exposed communication by estimates: {}",
            list(&|cost| Some(cost.collectives.to_string())),
            list(&|cost| cost.peak.map(words::bytes)),
            list(&|cost| cost.exposed.map(words::duration)),
        )
    }

    /// The same by other estimates.
    pub fn by(graph: &Graph, estimates: &Estimates) -> Cost {
        let order: Vec<_> = graph.ids().collect();
        let peak = Buffers::of(graph).peak_of_order(&order).bytes;
        let programs = Programs::spmd(graph, estimates);
        let report = simulate(&programs, Options::default());
        let finishes = report.finishes() == Some(true);
        let exposed = report.timeline.tracks.iter().map(|track| track.exposed()).max().unwrap_or(0);
        let collectives = Collectives::new(graph, &Ops::of(graph)).calls.len();
        Cost { nodes: graph.len(), collectives, peak: Some(peak), exposed: finishes.then_some(exposed) }
    }
}
