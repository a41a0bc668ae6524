//! The pass of a case: which one, and how it is configured.

use super::builder::Candidate;
use super::config::Config;
use super::source::Source;
use crate::case::{PassConfig, Setting};
use crate::ops::Collective;

/// A pass with its options.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pass {
    /// Bucketing of collectives.
    Bucketing(Bucketing),
    /// Topological repair.
    Repair,
}

/// Options of bucketing. An absent option is left to the pass's default.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bucketing {
    /// One kind; `None`: all of them.
    pub kind: Option<Collective>,
    /// Packing: the name that the pass knows it by.
    pub mode: &'static str,
    /// Size limits in bytes by bucket index (the last one holds for all further buckets).
    pub cap: Vec<u64>,
    /// How candidates come together.
    pub selection: Selection,
}

/// How candidates come together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Selection {
    /// Adjacent waits of one key: PyTorch's passes.
    Inductor,
    /// All waits of one key, within a span of the list: AutoParallel.
    AutoParallel {
        /// The span in nodes; `None`: any.
        max_topo_span: Option<u32>,
    },
}

impl Pass {
    /// As a case has it.
    pub fn config(&self) -> PassConfig {
        let Pass::Bucketing(bucketing) = self else { return PassConfig::new("repair") };
        let mut config = PassConfig::new("bucketing")
            .with("kind", bucketing.kind.map_or("all", Collective::name))
            .with("mode", bucketing.mode);
        let sizes = || bucketing.cap.iter().map(|bytes| Setting::Text(format!("{bytes}B")));
        match bucketing.cap.len() {
            0 => {}
            1 => config.options.extend(sizes().map(|size| ("cap".to_string(), size))),
            _ => config.options.push(("cap".to_string(), Setting::List(sizes().collect()))),
        }
        match bucketing.selection {
            Selection::Inductor => config = config.with("selection", "inductor"),
            Selection::AutoParallel { max_topo_span } => {
                let span = max_topo_span.map_or("off".to_string(), |span| span.to_string());
                config = config.with("selection", "autoparallel").with("max_topo_span", span);
            }
        }
        config
    }

    /// Whether the pass is to bucket collectives of this kind.
    pub fn buckets(&self, kind: Collective) -> bool {
        let bucketable =
            matches!(kind, Collective::AllGather | Collective::ReduceScatter | Collective::AllReduce);
        match self {
            Pass::Bucketing(bucketing) => bucketable && bucketing.kind.is_none_or(|only| only == kind),
            Pass::Repair => false,
        }
    }
}

/// How a cap is to be chosen once the collectives are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CapPlan {
    Default,
    /// The sum of the first few candidates, plus some bytes.
    Sum {
        first: u32,
        plus: i64,
    },
    /// A byte less than the largest candidate.
    BelowOne,
    /// Several sums.
    ByIndex {
        first: [u32; 2],
    },
}

/// What is drawn at the beginning of a case about its pass.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pass: Pass,
    cap: CapPlan,
}

impl Plan {
    pub fn draw(source: &mut impl Source, config: &Config) -> Plan {
        if source.percent(config.repair) {
            return Plan { pass: Pass::Repair, cap: CapPlan::Default };
        }
        let kinds = [Collective::AllGather, Collective::ReduceScatter, Collective::AllReduce];
        // A kind that the graph will hardly have would leave nothing to do.
        let weights = [5, config.scatter.min(3), config.reduce.min(2)];
        let kind = source.percent(config.one_kind).then(|| kinds[source.weighted(&weights)]);
        let mode = if source.percent(config.other_mode) {
            match kind {
                // Only gathers mix dtypes: asking for reduce-scatters too is refused.
                Some(Collective::AllGather) => {
                    source.one_of(&["custom_ops", "custom_ops_multidtype", "coalesced"])
                }
                _ => source.one_of(&["custom_ops", "coalesced"]),
            }
        } else {
            "default"
        };
        let selection = if source.percent(config.spanning) {
            let span = source.percent(60).then(|| source.between(2, 40));
            Selection::AutoParallel { max_topo_span: span }
        } else {
            Selection::Inductor
        };
        let cap = if !source.percent(config.tight_cap) {
            CapPlan::Default
        } else if source.percent(config.cap_by_index) {
            CapPlan::ByIndex { first: [source.between(1, 3), source.between(2, 6)] }
        } else {
            match source.below(6) {
                0 | 1 => CapPlan::Sum { first: source.between(2, 4), plus: 0 },
                2 | 3 => CapPlan::Sum { first: source.between(2, 4), plus: -1 },
                4 => CapPlan::Sum { first: source.between(3, 6), plus: source.between(1, 16).into() },
                _ => CapPlan::BelowOne,
            }
        };
        Plan { pass: Pass::Bucketing(Bucketing { kind, mode, cap: Vec::new(), selection }), cap }
    }

    /// The one kind that the pass is to bucket, if it is one.
    pub fn focus(&self) -> Option<Collective> {
        match &self.pass {
            Pass::Bucketing(bucketing) => bucketing.kind,
            Pass::Repair => None,
        }
    }

    /// Whether the list is to be unsorted.
    pub fn is_repair(&self) -> bool {
        self.pass == Pass::Repair
    }

    /// The pass, with its caps by the sizes of the candidates in wait order.
    pub fn finish(mut self, candidates: &[Candidate]) -> Pass {
        let sizes = |count: u32| -> i64 {
            let own = candidates.iter().filter(|c| self.pass.buckets(c.kind)).map(|c| c.bytes);
            own.filter(|&bytes| bytes > 0).take(count as usize).sum()
        };
        let largest = candidates.iter().filter(|c| self.pass.buckets(c.kind)).map(|c| c.bytes).max();
        let caps: Vec<i64> = match self.cap {
            CapPlan::Default => Vec::new(),
            CapPlan::Sum { first, plus } => vec![sizes(first) + plus],
            CapPlan::BelowOne => vec![largest.unwrap_or(1) - 1],
            CapPlan::ByIndex { first: [a, b] } => vec![sizes(a), sizes(b)],
        };
        if let Pass::Bucketing(bucketing) = &mut self.pass {
            bucketing.cap = caps.into_iter().map(|bytes| bytes.max(0) as u64).collect();
        }
        self.pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_their_names() {
        let pass = |kind, cap: &[u64], selection| {
            Pass::Bucketing(Bucketing { kind, mode: "custom_ops", cap: cap.to_vec(), selection }).config()
        };
        let text = |config: &PassConfig| {
            let options: Vec<String> = config.options.iter().map(|(k, v)| format!("{k}={v}")).collect();
            format!("{} {}", config.name, options.join(" "))
        };
        let config = pass(Some(Collective::AllGather), &[130], Selection::Inductor);
        assert_eq!(text(&config), "bucketing kind=all_gather mode=custom_ops cap=130B selection=inductor");
        let config = pass(None, &[8, 64], Selection::AutoParallel { max_topo_span: None });
        assert_eq!(config.sizes("cap"), Ok(Some(vec![8, 64])));
        assert!(text(&config).ends_with("selection=autoparallel max_topo_span=off"));
        assert_eq!(text(&Pass::Repair.config()), "repair ");
    }

    #[test]
    fn caps_follow_the_candidates() {
        let candidate = |kind, bytes| Candidate { kind, bytes };
        let candidates = [
            candidate(Collective::AllReduce, 1000),
            candidate(Collective::AllGather, 0),
            candidate(Collective::AllGather, 32),
            candidate(Collective::AllGather, 16),
        ];
        let caps = |cap| {
            let selection = Selection::Inductor;
            let kind = Some(Collective::AllGather);
            let pass = Pass::Bucketing(Bucketing { kind, mode: "default", cap: Vec::new(), selection });
            match (Plan { pass, cap }).finish(&candidates) {
                Pass::Bucketing(bucketing) => bucketing.cap,
                Pass::Repair => Vec::new(),
            }
        };
        assert_eq!(caps(CapPlan::Sum { first: 2, plus: -1 }), [47]);
        assert_eq!(caps(CapPlan::BelowOne), [31]);
        assert_eq!(caps(CapPlan::ByIndex { first: [1, 2] }), [32, 48]);
        assert_eq!(caps(CapPlan::Default), [0u64; 0]);
    }
}
