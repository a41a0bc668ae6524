//! Why the passes of this program decline, as refusals with codes: their errors have types of their own.

use super::Refusal;
use crate::passes::{bucketing, partition, schedule};
use crate::rules::Code;
use std::fmt::Display;

/// An error of a pass, of a kind that has a code.
pub(super) trait Coded: Display {
    /// The code.
    fn code(&self) -> Code;
}

/// An error as a refusal.
pub(super) fn refusal(error: impl Coded) -> Refusal {
    Refusal::of(error.code(), error.to_string())
}

/// Options that make no sense.
pub(super) fn bad_options(why: String) -> Refusal {
    Refusal::of(Code::Options, why)
}

/// A pass that a candidate does not have.
pub(super) fn not_implemented(why: String) -> Refusal {
    Refusal::of(Code::NotImplemented, why)
}

impl Coded for bucketing::Refusal {
    fn code(&self) -> Code {
        use bucketing::Refusal;
        match self {
            Refusal::MultidtypeReduceScatter | Refusal::Kind { .. } => Code::Unsupported,
            Refusal::Rank { .. } => Code::RankOutside,
            Refusal::Unsorted(_) | Refusal::Dangling { .. } | Refusal::Malformed { .. } => Code::Input,
            Refusal::NoHint { .. } => Code::UnknownSize,
            Refusal::Body { .. } => Code::NoMergedBody,
            Refusal::Cycle(_) => Code::Cycle,
        }
    }
}

impl Coded for schedule::Refusal {
    fn code(&self) -> Code {
        use schedule::Refusal;
        match self {
            Refusal::Unsorted { .. } | Refusal::Input(_) => Code::Input,
            Refusal::Shared { .. } | Refusal::NotConvex { .. } => Code::NoSchedule,
            Refusal::Estimates(_) | Refusal::Budget(_) => Code::Estimates,
        }
    }
}

impl Coded for partition::PartitionError {
    fn code(&self) -> Code {
        use partition::Problem;
        match self.problem {
            Problem::Malformed => Code::Input,
            Problem::NoTangents => Code::NoTangents,
            Problem::ContradictoryTags => Code::ContradictoryTags,
            Problem::NeitherSavedNorRecomputed => Code::NeitherSavedNorRecomputed,
            Problem::MisplacedOutput => Code::MisplacedOutput,
            Problem::UnknownSize => Code::UnknownSize,
            Problem::Unsupported => Code::Unsupported,
        }
    }
}
