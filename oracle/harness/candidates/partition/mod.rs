//! Mutants of the partitioners: the reference with one ingredient replaced, from outside.
//!
//! Each replaces methods of [`Strategy`]. Most cut as the reference does otherwise, wherever they are asked. Some
//! decide differently on one rank, or when they are asked again, or lose tags on the way to the second partition; `Way`
//! says which. The judge asks on several ranks and more than once, with several budgets, and for two partitions one
//! after the other where a case says so; nothing here is told to it.
//!
//! Sources: K10 to K17, K21, K23, K27 and K32 of the bug benchmark.

mod budget;
mod cut;
mod effects;
mod merging;
mod network;
mod tags;
#[cfg(test)]
mod tests;

use super::{Answer, Candidate, Capabilities, Place, Refusal, Request};
use crate::candidates::refusals::{bad_options, refusal};
use crate::case::TracedAgain;
use crate::family::Planted;
use crate::graph::Graph;
use crate::judge::options::partition_config;
use crate::passes::partition::two_stages::trace_again_with;
use crate::passes::partition::{self, Partition, PartitionConfig, PartitionError, Reference, Strategy};
use crate::rules::PassKind;
use budget::*;
use cut::*;
use effects::*;
use merging::*;
pub(super) use network::cut_network;
use tags::*;

/// A mutant of the partitioners.
pub struct PartitionMutant {
    /// Its name.
    pub name: &'static str,
    /// What it gets wrong.
    pub about: &'static str,
    /// The reports that it is derived from; a bare number is of pytorch/pytorch.
    pub origin: &'static str,
    /// The rules of which one must convict it.
    pub convicted_by: &'static [&'static str],
    strategy: &'static (dyn Strategy + Sync),
    way: Way,
}

/// Where the strategy of a mutant acts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// In the partitioner.
    Cut,
    /// In the partitioner, on every rank but the first.
    OtherRanks,
    /// In the partitioner, whenever it is asked again.
    LaterTurns,
    /// In the pass that tags gathers of parameters: what it does not reach loses its tag.
    Marked,
    /// Where tags are carried to the second joint graph.
    Carried,
}

const RANDOM: &[&str] =
    &["partition/rng-paired", "partition/semantics-equal", "partition/recompute-terms-equal"];
const WRITTEN: &[&str] = &[
    "partition/saved-alias-is-current",
    "partition/no-recompute-after-mutation",
    "partition/semantics-equal",
];
const EFFECTS: &[&str] = &["partition/effects-once-in-order", "partition/semantics-equal"];
const REPEATED: &[&str] = &["partition/no-saved-gather-exposed"];
const MERGED: &[&str] = &["partition/semantics-equal", "partition/outputs-preserved"];
const SPMD: &[&str] = &["comm/spmd-same-decision"];

/// A line of the table.
macro_rules! mutants {
    ($($name:literal, $about:literal, $origin:literal, $rules:expr, $strategy:expr, $way:ident;)*) => {
        /// All of them.
        pub static PARTITION_MUTANTS: &[PartitionMutant] = &[$(PartitionMutant {
            name: $name, about: $about, origin: $origin, convicted_by: $rules, strategy: &$strategy, way: Way::$way,
        }),*];
    };
}

mutants! {
    "partition-other-side", "takes the minimum cut on the other side on one rank", "#147561", SPMD, SourceSide, OtherRanks;
    "partition-own-weights", "weighs values by measurements of the rank", "#147561", SPMD, NoisyWeight, OtherRanks;
    "partition-own-budget", "has another budget on one rank", "#147561", SPMD, HalfBudget, OtherRanks;
    "partition-saves-inputs-only", "saves the inputs only under a budget of 0, and draws again", "#190758", RANDOM, InputsOnly, Cut;
    "partition-unbans-draws", "takes bans of draws back for the budget", "#190758", RANDOM, UnbansDraws, Cut;
    "partition-repeats-draws", "draws again like any other operator", "#190758", RANDOM, RepeatsDraws, Cut;
    "partition-unpaired-draws", "draws again from another state", "#190758", RANDOM, UnpairedDraws, Cut;
    "partition-ignores-writes", "saves or recomputes what forward has overwritten", "#197039", WRITTEN, IgnoresWrites, Cut;
    "partition-writes-by-operands", "moves a write of backward to where its operands are", "#127561", EFFECTS, WritesByOperands, Cut;
    "partition-tangents-only", "loses what backward does before the first tangent", "#155353", EFFECTS, TangentsOnly, Cut;
    "partition-saves-tuples", "saves the inputs and what is tagged, tuples too", "#188014",
        &["partition/saved-kinds", "partition/signature-match"], InputsAndTagged, Cut;
    "partition-unbans-tagged", "takes bans of MUST_SAVE back for the budget", "#188014, #141684",
        &["partition/must-save-honoured"], UnbansTagged, Cut;
    "partition-saves-tagged", "saves what is tagged although backward does not read it", "#149652",
        &["partition/no-dead-saved"], SavesTagged, Cut;
    "partition-replays-backward", "replays the tag on nodes of backward", "autoparallel#531",
        &["partition/replay-saves-match"], SavesBackward, Cut;
    "partition-repeats-slices", "repeats slices of a gathered parameter, no other views", "autoparallel#410, autoparallel#469",
        REPEATED, SlicesOnly, Marked;
    "partition-repeats-waits", "repeats a gather and its wait, no views", "autoparallel#469", REPEATED, WaitOnly, Marked;
    "partition-loses-annotations", "loses annotations when traced again", "autoparallel#531, torchtitan#3530",
        &["partition/replay-saves-match", "partition/replay-index-fidelity"], LosesCustom, Carried;
    "partition-loses-recompute", "loses recompute tags when traced again", "autoparallel#480, #177396",
        &["partition/no-saved-gather-exposed", "partition/must-save-honoured"], LosesRecompute, Carried;
    "partition-loses-sides", "loses the side when traced again", "autoparallel#295", EFFECTS, LosesPlacement, Carried;
    "partition-loses-merged-tags", "loses the tags of merged copies", "autoparallel#480",
        &["partition/cse-tag-merge", "partition/replay-saves-match", "partition/replay-index-fidelity"],
        LosesMerged, Cut;
    "partition-shares-tags", "writes the tags of forward on the other graphs too", "#177396",
        &["partition/tag-locality", "partition/replay-saves-match"], SharesTags, Cut;
    "partition-merges-written", "merges what shares memory with an output or is written", "#188280", MERGED, MergesReturned, Cut;
    "partition-merges-numbers", "merges 1 and 1.0", "#119567", MERGED, NumbersByValue, Cut;
    "partition-merges-sides", "merges what backward computes for itself with what only forward needs", "#188280",
        &["partition/cut-certificate"], MergesSides, Cut;
    "partition-merges-groups", "merges communication of different groups", "thunder#2203", MERGED, AnyGroup, Cut;
    "partition-merges-draws", "merges draws", "thunder#2203", &["partition/semantics-equal", "partition/rng-paired"],
        MergesDraws, Cut;
    "partition-splits-budget", "gives all of the budget to each half", "#197871", &["partition/budget-respected"], SplitBudget,
        Cut;
    "partition-counts-twice", "counts the memory of a predecessor twice", "#196914", &["partition/budget-respected"], CountsTwice,
        Cut;
    "partition-binds-no-symbols", "takes symbols as replaced, and binds none", "#185473",
        &["partition/symbols-bound", "partition/signature-match"], BindsNothing, Cut;
    "partition-tangent-outputs-only", "leaves outputs without a tangent out of backward", "#96653",
        &["partition/total", "partition/outputs-preserved", "partition/bw-closed", "partition/semantics-equal"],
        TangentOutputs, Cut;
    "partition-counts-on", "counts products over all layers", "torchtitan#3397", &["partition/metamorphic-stable"], CountsOn,
        LaterTurns;
}

/// The mutants, as they are scored.
pub(crate) fn planted() -> Vec<Planted> {
    let planted = |mutant: &'static PartitionMutant| Planted {
        about: mutant.about,
        origin: mutant.origin,
        candidate: Box::new(mutant),
    };
    PARTITION_MUTANTS.iter().map(planted).collect()
}

impl PartitionMutant {
    /// The mutant with this name.
    pub fn named(name: &str) -> Option<&'static PartitionMutant> {
        PARTITION_MUTANTS.iter().find(|mutant| mutant.name == name)
    }

    /// The parts that it makes of a joint graph.
    fn cut(
        &self,
        joint: &Graph,
        config: &PartitionConfig,
        place: Place,
    ) -> Result<Partition, PartitionError> {
        match self.way {
            Way::OtherRanks if place.rank == 0 => partition::run(joint, config),
            Way::LaterTurns if place.turn == 0 => partition::run(joint, config),
            Way::Cut | Way::OtherRanks | Way::LaterTurns => partition::run_with(joint, config, self.strategy),
            Way::Marked => partition::run(&marked(joint, self.strategy)?, config),
            Way::Carried => partition::run(&carried(joint, self.strategy), config),
        }
    }
}

impl Candidate for &'static PartitionMutant {
    fn name(&self) -> &str {
        self.name
    }

    fn capabilities(&self) -> Capabilities {
        let bakes_rank = self.way == Way::OtherRanks;
        Capabilities { bakes_rank, keeps_promises: true, ..Capabilities::of(&[PassKind::Partition]) }
    }

    fn run(&self, request: &Request) -> Result<Vec<Answer>, Refusal> {
        let config = partition_config(request.pass).map_err(bad_options)?;
        let cut = |place| {
            let parts = self.cut(request.graph, &config, place).map_err(refusal)?;
            Ok(Answer::Parts(Box::new((parts.forward, parts.backward))))
        };
        match self.way {
            Way::OtherRanks | Way::LaterTurns => request.at_each(cut),
            Way::Cut | Way::Marked | Way::Carried => request.once(cut),
        }
    }

    fn trace_again(
        &self,
        joint: &Graph,
        forward: &Graph,
        backward: &Graph,
        forward_outputs: usize,
    ) -> Option<Result<TracedAgain, Refusal>> {
        let strategy: &dyn Strategy = if self.way == Way::Cut { self.strategy } else { &Reference };
        let traced = trace_again_with(joint, forward, backward, forward_outputs, strategy);
        Some(traced.map_err(refusal))
    }
}
