//! Bodies of the fuzz targets: bytes in, a panic if the oracle contradicts itself.
//!
//! The crate depends on the judge, the references and the generator, so that a fuzz build compiles nothing else. The
//! targets in fuzz/ are glue; the plain tests feed every file of `corpus/<target>/` to the same bodies. A target
//! reads text (`.graph` cases, changed by [`mutate`], so that a corpus survives a change of the generator) or, as
//! `*_choices`, decodes choices through `arbitrary`.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod bucketing;
pub mod deadlock;
pub mod dumps;
pub mod huge_numbers;
pub mod interpreter_domains;
pub mod json_format;
pub mod lifecycle;
pub mod memory_estimate;
pub mod memory_orders;
pub mod mutate;
pub mod partition;
pub mod printed_graphs;
pub mod reducer;
pub mod repair;
pub mod repetition;
pub mod rewrite;
pub mod schedule;
#[cfg(test)]
mod tests;
pub mod text_format;

use harness::{candidates, generate, reduce};
use ir::{analysis, case, format, graph, ops};
use models::{memory, semantics, simulate};
use references::passes;
use verdicts::{judge, report, rules};

use crate::candidates::Reference;
use crate::case::{Case, PassConfig};
use crate::format::text;
use crate::judge::{Options, Values, Verdict, input_faults, judge};
use crate::rules::PassKind;

/// Nodes of a case that is judged or executed: a bound on the cost of one execution.
const MOST_NODES: usize = 300;

/// Elements that an execution may touch.
const MOST_ELEMENTS: u64 = 1 << 16;

/// A body, by the name of its target.
pub type Body = fn(&[u8]);

/// All targets.
pub const TARGETS: &[(&str, Body)] = &[
    ("text_format", text_format::check),
    ("json_format", json_format::check),
    ("bucketing", bucketing::check),
    ("bucketing_choices", bucketing::check_choices),
    ("repair", repair::check),
    ("repair_choices", repair::check_choices),
    ("rewrite", rewrite::check),
    ("rewrite_choices", rewrite::check_choices),
    ("interpreter_domains", interpreter_domains::check),
    ("interpreter_domains_choices", interpreter_domains::check_choices),
    ("reducer", reducer::check),
    ("reducer_choices", reducer::check_choices),
    ("schedule_scored", schedule::check_scored),
    ("schedule_scored_choices", schedule::check_scored_choices),
    ("schedule_iterative", schedule::check_iterative),
    ("schedule_iterative_choices", schedule::check_iterative_choices),
    ("schedule_fsdp", schedule::check_fsdp),
    ("schedule_fsdp_choices", schedule::check_fsdp_choices),
    ("deadlock", deadlock::check),
    ("memory_estimate", memory_estimate::check),
    ("memory_estimate_choices", memory_estimate::check_choices),
    ("memory_orders", memory_orders::check),
    ("memory_orders_choices", memory_orders::check_choices),
    ("lifecycle", lifecycle::check),
    ("dumps", dumps::check),
    ("partition_default", partition::check_default),
    ("partition_default_choices", partition::check_default_choices),
    ("partition_min_cut", partition::check_min_cut),
    ("partition_min_cut_choices", partition::check_min_cut_choices),
    ("partition_replay", partition::check_replay),
    ("partition_replay_choices", partition::check_replay_choices),
    ("cse", partition::check_cse),
    ("cse_choices", partition::check_cse_choices),
    ("huge_numbers", huge_numbers::check),
    ("printed_graphs", printed_graphs::check),
    ("repetition", repetition::check),
];

/// The body of a target.
pub fn target(name: &str) -> Option<Body> {
    TARGETS.iter().find(|(other, _)| *other == name).map(|&(_, body)| body)
}

/// A case that `pass` can be run on, from its text; `None` for anything else.
fn case_of_text(data: &[u8], pass: PassKind) -> Option<Case> {
    let case = text::parse(data).ok()?;
    let small = case.graph.len() <= MOST_NODES && case.graph.world.ranks.unwrap_or(1) <= 8;
    (small && input_faults(&case.graph, pass).is_empty()).then_some(case)
}

/// Whether nothing touches the memory of a collective in flight. What such a graph computes is open, and so is what a
/// pass may make of it.
fn is_race_free(graph: &crate::graph::Graph) -> bool {
    crate::generate::intrusions(graph) == 0
}

/// A case from choices, with so many repairs in a hundred.
fn case_of_choices(data: &[u8], repair: u8) -> Case {
    use crate::generate::{Bytes, Config, generate};
    let mut source = Bytes::new(data);
    let config = Config { repair: repair.into(), ..Config::default() }.swarmed(&mut source);
    generate(&mut source, &config).into_case()
}

/// How an input is judged, as in a campaign: values are proved, and executed where a proof leaves them open; in one input
/// of eight they are executed besides.
fn judging(data: &[u8]) -> Options {
    let sum = data.iter().fold(0u8, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte));
    let values = if sum.is_multiple_of(8) { Values::Auto } else { Values::ProofFirst };
    Options { element_limit: MOST_ELEMENTS, values, ..candidates::judging() }
}

/// Panics unless the reference is right on a case. That it declines, or that values cannot be told, is an answer.
fn reference_is_right(case: &Case, pass: PassKind, options: &Options) {
    let config = case.pass.clone().filter(|config| config.name == pass.name());
    let config = config.unwrap_or_else(|| PassConfig::new(pass.name()));
    let case = Case { pass: Some(config), outcome: None, ..case.clone() };
    let Ok(judgement) = judge(&case, &Reference, options) else { return };
    if let Verdict::Violated(_) = judgement.verdict {
        panic!("{}", crate::report::text(&judgement, &format!("\n{case}"), None, false));
    }
}
