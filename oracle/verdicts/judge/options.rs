//! The options of a pass: which of them are the pass's own and which its judge's, and whether all of them can be
//! understood.

use crate::case::{PassConfig, Setting};
use crate::config::{bucketing, partition, schedule, unknown_key};
use crate::graph::Graph;
use crate::memory::METHODS;
use crate::rules::{self, JUDGE_OPTIONS, PassKind};
use crate::words;

/// Whether a pass has these options, and they may have these values: those of the pass and of its judge are all that
/// there are.
pub fn check_options(pass: &PassConfig) -> Result<(), String> {
    let Some(kind) = PassKind::parse(&pass.name) else { return Ok(()) };
    let of_judge = kind.row().judge_options;
    let Some(check) = kind.row().own_options else { return no_options(pass, of_judge) };
    check(pass).map_err(|why| {
        let mut keys = pass.options.iter().map(|(key, _)| key.as_str());
        let Some(key) = keys.find(|key| says_it_lacks(&why, key)).filter(|_| !of_judge.is_empty()) else {
            return why;
        };
        let all = of_judge.join(", ");
        let why = match words::near(key, of_judge.iter().copied()) {
            Some(name) => why.replacen("; it has", &format!(": did you mean {name:?}? It has"), 1),
            None => why,
        };
        format!("{why}\nand, for the judge: {all}")
    })
}

/// Whether a pass, or its judge, has an option of this name.
pub(crate) fn has_option(pass: &str, key: &str) -> bool {
    let of_judge = PassKind::parse(pass).map_or(&[][..], |kind| kind.row().judge_options);
    let checked = check_options(&PassConfig::new(pass).with(key, ""));
    of_judge.contains(&key) || !checked.is_err_and(|why| says_it_lacks(&why, key))
}

/// Whether an error is that there is no option of this name.
fn says_it_lacks(why: &str, key: &str) -> bool {
    why.contains(&format!("has no option {key:?}"))
}

/// A pass without options, but for those in `known`.
pub(crate) fn no_options(pass: &PassConfig, known: &[&str]) -> Result<(), String> {
    match pass.unknown(known).first() {
        None => Ok(()),
        Some(key) if known.is_empty() => Err(format!("{} has no option {key:?}, nor any other", pass.name)),
        Some(key) => {
            let all = format!(" {}", known.join(", "));
            Err(unknown_key(&pass.name, key, &all, known.iter().copied()))
        }
    }
}

/// What is stated about memory is the same for every method: all of it.
pub fn check_memory_options(pass: &PassConfig) -> Result<(), String> {
    match pass.word("method").map_err(|error| error.to_string())? {
        Some(method) if !METHODS.contains(&method) => {
            Err(format!("memory has no method {method:?}{}", words::choices(method, METHODS)))
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
