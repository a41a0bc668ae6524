//! The mutants: the reference with one ingredient broken, each after a bug that has happened.
//!
//! They measure the oracle. A mutant that no rule convicts within some thousand random cases shows a rule that sleeps
//! or a generator that never makes the graph that matters; docs/score.md has the figures. Reference code knows
//! nothing of them: a mutant replaces a method of the bucketing [`Strategy`], changes the options that the pass sees,
//! or edits what the reference gave.
//!
//! They come from a benchmark of historic bugs (`numbers`). Of its classes these have no
//! counterpart in one graph: keys by gather dimension (functional collectives gather on dimension 0 only) and by
//! forward or backward (a partitioner's business).

mod body;
mod edges;
mod key;
mod legality;
mod outcome;
mod place;

use super::reference::{run_bucketing, run_repair};
use super::{Answer, Candidate, Capabilities, Outcome, Refusal, Request};
use crate::family::Planted;
use crate::graph::Graph;
use crate::passes::bucketing::{Config, Reference, Strategy};
use crate::rules::PassKind;

/// What is broken.
enum Broken {
    /// An ingredient of bucketing.
    Strategy(&'static (dyn Strategy + Sync)),
    /// What bucketing is asked for.
    Config(fn(&mut Config)),
    /// The graph that bucketing gives.
    Bucketed(fn(&Graph) -> Graph),
    /// The repair.
    Repair(fn(&Graph) -> Result<Graph, crate::passes::repair::Cycle>),
}

/// One mutant.
struct Mutant {
    name: &'static str,
    about: &'static str,
    origin: &'static str,
    broken: Broken,
}

/// The mutants, as they are scored.
pub(crate) fn planted() -> impl Iterator<Item = Planted> {
    let planted =
        |mutant: Mutant| Planted { about: mutant.about, origin: mutant.origin, candidate: Box::new(mutant) };
    all().into_iter().map(planted)
}

/// All mutants.
fn all() -> Vec<Mutant> {
    let mutant = |name, about, origin, broken| Mutant { name, about, origin, broken };
    vec![
        mutant(
            "bucket-direct-dependence",
            "members are checked for direct dependence only, not along paths",
            "#160967",
            Broken::Strategy(&legality::DirectOnly),
        ),
        mutant(
            "bucket-first-member-only",
            "a candidate is checked against the first member of the bucket only",
            "#160967",
            Broken::Strategy(&legality::FirstMemberOnly),
        ),
        mutant(
            "bucket-no-key",
            "buckets have no key but the kind of their members",
            "#175812, #175150",
            Broken::Strategy(&key::NoKey),
        ),
        mutant(
            "bucket-key-without-kind",
            "the key lacks the kind: reduce-scatters and all-reduces share a bucket",
            "#175812",
            Broken::Strategy(&key::WithoutKind),
        ),
        mutant(
            "bucket-key-without-reduction",
            "the key lacks the reduction",
            "#175812",
            Broken::Strategy(&key::WithoutReduction),
        ),
        mutant(
            "bucket-key-without-group",
            "the key lacks the process group",
            "#175812",
            Broken::Strategy(&key::WithoutGroup),
        ),
        mutant(
            "bucket-key-without-dtype",
            "the key lacks the dtype",
            "#175150",
            Broken::Strategy(&key::WithoutDtype),
        ),
        mutant(
            "bucket-no-padding",
            "members are not padded to a multiple of the group size",
            "#175812",
            Broken::Strategy(&body::WithoutPadding),
        ),
        mutant(
            "bucket-local-offsets",
            "results are split off at rank-local offsets, not at gathered ones",
            "#175812",
            Broken::Strategy(&body::LocalOffsets),
        ),
        mutant(
            "bucket-at-first-member",
            "the bucket stands where its first member stood, and the list is not sorted",
            "#184710",
            Broken::Strategy(&place::AT_FIRST_MEMBER),
        ),
        mutant(
            "bucket-at-first-packed",
            "the bucket stands at its first member in packing order, and the list is not sorted",
            "#187341",
            Broken::Strategy(&place::AT_FIRST_PACKED),
        ),
        mutant(
            "bucket-wait-too-early",
            "the merged wait stands at the earliest old wait, and the list is not sorted",
            "#184710",
            Broken::Strategy(&place::AT_EARLIEST_WAIT),
        ),
        mutant(
            "bucket-lost-ordering",
            "ordering edges of members are left on the erased nodes",
            "#177688, #182419",
            Broken::Strategy(&edges::NotRemapped),
        ),
        mutant(
            "bucket-inner-ordering",
            "ordering edges of members are united without those inside the bucket being removed",
            "#177688",
            Broken::Strategy(&edges::SelfEdges),
        ),
        mutant(
            "repair-data-edges-only",
            "the repair follows data edges only",
            "#182419",
            Broken::Repair(edges::sort_without_ordering),
        ),
        mutant(
            "bucket-stale-reachability",
            "reachability is computed once, before the first merge",
            "#182955",
            Broken::Strategy(&legality::Stale),
        ),
        mutant(
            "bucket-module-reachability",
            "reachability is computed inside the candidate's module only",
            "torchtitan#4107",
            Broken::Strategy(&legality::Scoped),
        ),
        mutant(
            "bucket-dead-collectives",
            "collectives count as pure: those that nobody uses are removed",
            "#130918, DeepSpeed#8357",
            Broken::Bucketed(outcome::without_dead_collectives),
        ),
        mutant(
            "bucket-lost-waits",
            "bucketing one process group removes the waits of the others",
            "lightning-thunder#1981",
            Broken::Bucketed(outcome::without_waits_of_other_groups),
        ),
        mutant(
            "bucket-first-group-of-size",
            "all collectives are put on the first process group of their size",
            "torchtitan, spmd 2-D meshes",
            Broken::Bucketed(outcome::on_the_first_group),
        ),
        mutant(
            "bucket-unlimited-span",
            "buckets span the whole graph, however far their members are apart",
            "autoparallel#481, torchtitan#3419",
            Broken::Config(place::without_span),
        ),
        mutant(
            "bucket-stops-at-conflict",
            "a conflict ends the run instead of passing over one candidate",
            "xla#39517",
            Broken::Strategy(&legality::StopsAtConflict),
        ),
    ]
}

impl Candidate for Mutant {
    fn name(&self) -> &str {
        self.name
    }

    fn capabilities(&self) -> Capabilities {
        let pass = match self.broken {
            Broken::Repair(_) => PassKind::Repair,
            _ => PassKind::Bucketing,
        };
        // A mutant promises what the reference promises.
        Capabilities { bakes_rank: true, keeps_promises: true, ..Capabilities::of(&[pass]) }
    }

    fn run(&self, request: &Request) -> Result<Vec<Answer>, Refusal> {
        match &self.broken {
            Broken::Strategy(strategy) => run_bucketing(request, *strategy, &|_| {}),
            Broken::Config(change) => run_bucketing(request, &Reference, change),
            Broken::Bucketed(edit) => {
                let edited = |answer| match answer {
                    Answer::Graph(outcome) => {
                        let unrepaired = outcome.unrepaired.as_ref().map(edit);
                        Outcome { unrepaired, repaired: edit(&outcome.repaired) }.into()
                    }
                    other => other,
                };
                let answers = run_bucketing(request, &Reference, &|_| {})?;
                Ok(answers.into_iter().map(edited).collect())
            }
            Broken::Repair(sort) => request.once(|_| run_repair(request.graph, *sort)),
        }
    }
}
