//! The options of a pass: which of them are the pass's own and which its judge's, and whether all of them can be
//! understood.

use crate::case::{PassConfig, Setting};
use crate::config::{bucketing, partition, schedule};
use crate::graph::Graph;
use crate::memory::METHODS;
use crate::rules::{self, JUDGE_OPTIONS, PassKind};

/// Whether a pass has these options, and they may have these values: those of the pass and of its judge are all that
/// there are.
pub fn check_options(pass: &PassConfig) -> Result<(), String> {
    let Some(kind) = PassKind::parse(&pass.name) else { return Ok(()) };
    let of_judge = kind.row().judge_options;
    let checked = match kind.row().own_options {
        Some(check) => check(pass),
        None => no_options(pass, of_judge),
    };
    checked.map_err(|why| {
        let is_unknown = |key: &str| why.contains(&format!("has no option {key:?}"));
        if of_judge.is_empty() || !pass.options.iter().any(|(key, _)| is_unknown(key)) {
            return why;
        }
        let of_judge = of_judge.join(", ");
        // A pass without options of its own lists none.
        match why.contains("; it has") {
            true => format!("{why}\nand, for the judge: {of_judge}"),
            false => format!("{why}; it has {of_judge}"),
        }
    })
}

/// A pass without options, but for those in `known`.
pub(crate) fn no_options(pass: &PassConfig, known: &[&str]) -> Result<(), String> {
    match pass.unknown(known).first() {
        None => Ok(()),
        Some(key) => Err(format!("{} has no option {key:?}", pass.name)),
    }
}

/// What is stated about memory is the same for every method: all of it.
pub fn check_memory_options(pass: &PassConfig) -> Result<(), String> {
    match pass.word("method").map_err(|error| error.to_string())? {
        Some(method) if !METHODS.contains(&method) => {
            Err(format!("memory has no method {method:?}; there are: {}", METHODS.join(", ")))
        }
        _ => no_options(pass, &["method"]),
    }
}

/// What a scheduling pass is asked to do; options for the judge are left out.
pub fn schedule_config(pass: &PassConfig) -> Result<schedule::Config, String> {
    schedule::Config::from_pass(&pass.clone().without(rules::schedule::JUDGE_OPTIONS))
}

/// What a partitioner is asked to do; options for the judge are left out.
pub fn partition_config(pass: &PassConfig) -> Result<partition::PartitionConfig, String> {
    partition::PartitionConfig::from_pass(&pass.clone().without(rules::partition::JUDGE_OPTIONS))
}

/// What a bucketing pass is asked to do; for a rank, with its index in each group whose ranks are known.
pub fn bucketing_config(pass: &PassConfig, rank: Option<(&Graph, u32)>) -> Result<bucketing::Config, String> {
    let mut options: Vec<(String, String)> = Vec::new();
    if let Some((graph, rank)) = rank {
        // Where files give sizes only, a rank other than the one that they were recorded on is found on the mesh that
        // the judge assumes too.
        let mesh = if rank > 0 { graph.world.assume_mesh() } else { None };
        for group in &mesh.as_ref().unwrap_or(&graph.world).groups {
            if let Some((_, index)) = group.instance_of(rank) {
                options.push((format!("rank.{}", group.name), index.to_string()));
            }
        }
    }
    for (key, setting) in &pass.options {
        if !JUDGE_OPTIONS.contains(&key.as_str()) {
            let words: Vec<&str> = setting.items().iter().filter_map(Setting::word).collect();
            options.push((key.clone(), words.join(",")));
        }
    }
    bucketing::Config::from_options(&options)
}
