//! What a scheduling pass is asked to do.

use crate::case::{PassConfig, SettingError};
use crate::simulate::Estimates;

/// The passes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Pass {
    /// Waits as late as possible.
    SinkWaits,
    /// Collectives, and what they need, as early as possible.
    RaiseComms,
    /// Both, and as much computation behind each collective as it takes.
    ReorderComputeForOverlap,
    /// Collectives earlier, within a budget of memory.
    ReorderCommunicationPreservingPeakMemory,
    /// Waits later, within a budget of memory.
    SinkWaitsIterative,
    /// Collectives earlier and waits later by plain swaps, without more memory.
    SimpleOverlap,
    /// One all-gather and one reduce-scatter of FSDP in flight.
    Fsdp,
}

impl Pass {
    /// All of them.
    pub const ALL: &'static [Pass] = &[
        Pass::SinkWaits,
        Pass::RaiseComms,
        Pass::ReorderComputeForOverlap,
        Pass::ReorderCommunicationPreservingPeakMemory,
        Pass::SinkWaitsIterative,
        Pass::SimpleOverlap,
        Pass::Fsdp,
    ];

    /// PyTorch's name.
    pub fn name(self) -> &'static str {
        match self {
            Pass::SinkWaits => "sink_waits",
            Pass::RaiseComms => "raise_comms",
            Pass::ReorderComputeForOverlap => "reorder_compute_for_overlap",
            Pass::ReorderCommunicationPreservingPeakMemory => "reorder_communication_preserving_peak_memory",
            Pass::SinkWaitsIterative => "sink_waits_iterative",
            Pass::SimpleOverlap => "simple_overlap",
            Pass::Fsdp => "enforce_comm_ordering_for_fsdp",
        }
    }

    /// The pass with this name.
    pub fn parse(name: &str) -> Option<Pass> {
        Pass::ALL.iter().copied().find(|pass| pass.name() == name)
    }

    /// Whether it promises to keep the peak of memory within the budget.
    pub fn keeps_peak(self) -> bool {
        matches!(
            self,
            Pass::ReorderCommunicationPreservingPeakMemory | Pass::SinkWaitsIterative | Pass::SimpleOverlap
        )
    }
}

/// The options of a pass in a case.
const OPTIONS: &[&str] = &["method", "budget", "runtime_mode"];

/// What is asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// The pass.
    pub pass: Pass,
    /// How long nodes take, as each rank estimates it; a single table serves all ranks.
    pub estimates: Vec<Estimates>,
    /// By how much the peak of memory may grow, as a share of it, as each rank has it; a single one serves all ranks.
    pub budgets: Vec<f64>,
    /// Whether the iterative passes weigh exposed time.
    pub runtime_mode: bool,
}

impl Config {
    /// A pass with one empty estimate table, PyTorch's budget of 20 % and without runtime mode.
    pub fn new(pass: Pass) -> Config {
        Config { pass, estimates: vec![Estimates::default()], budgets: vec![0.2], runtime_mode: false }
    }

    /// What a pass of a case asks for: the options `method` (a pass by PyTorch's name), `budget` (a share of the peak,
    /// or a list with that of each rank) and `runtime_mode`, and its estimates.
    pub fn from_pass(pass: &PassConfig) -> Result<Config, String> {
        let text = |error: SettingError| error.to_string();
        let names = || Pass::ALL.iter().map(|pass| pass.name()).collect::<Vec<_>>().join(", ");
        if let Some(key) = pass.unknown(OPTIONS).first() {
            return Err(super::unknown_key(
                "schedule",
                key,
                &format!(" {}", OPTIONS.join(", ")),
                OPTIONS.iter().copied(),
            ));
        }
        let mut config = match pass.word("method").map_err(text)? {
            None => Config::new(Pass::SinkWaits),
            Some(name) => Config::new(
                Pass::parse(name)
                    .ok_or_else(|| format!("method cannot be {name:?}; it can be {}", names()))?,
            ),
        };
        if let Some(budgets) = pass.numbers("budget").map_err(text)? {
            if budgets.is_empty() || budgets.iter().any(|budget| *budget < 0.0) {
                return Err("option budget of pass schedule is a share of the peak, not negative".to_string());
            }
            config.budgets = budgets;
        }
        config.estimates = Estimates::of_ranks(&pass.estimates).map_err(|error| error.to_string())?;
        config.runtime_mode = pass.bool("runtime_mode").map_err(text)?.unwrap_or(false);
        Ok(config)
    }

    /// The budget of the pass: that of the configuration where it has one, else none at all.
    pub fn budget(&self) -> f64 {
        match self.pass {
            Pass::SimpleOverlap => 0.0,
            _ => self.budgets.iter().copied().fold(f64::INFINITY, f64::min),
        }
    }
}
