//! What a partitioner is asked to do.

use crate::case::{PassConfig, Setting, covered};
use crate::graph::Graph;

/// Which partitioner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Method {
    /// By the position of the nodes: `default_partition`.
    #[default]
    Default,
    /// By a minimum cut: `min_cut_rematerialization_partition`.
    MinCut,
    /// As a first partition was tagged: AutoParallel's `_ReplaySavesPartitioner`.
    Replay,
}

impl Method {
    /// All of them with their names.
    pub const ALL: &'static [(&'static str, Method)] =
        &[("default", Method::Default), ("min-cut", Method::MinCut), ("replay", Method::Replay)];

    /// Its name.
    pub fn name(self) -> &'static str {
        Method::ALL.iter().find(|(_, method)| *method == self).map_or("", |(name, _)| name)
    }

    /// The method with this name.
    pub fn parse(name: &str) -> Option<Method> {
        Method::ALL.iter().find(|(known, _)| *known == name).map(|(_, method)| *method)
    }
}

/// What keeps the min-cut partitioner from computing a forward value again in backward.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bans {
    /// A value used both near and, behind something that cannot be fused, far away.
    pub far_apart: bool,
    /// Every hundredth value of a chain that could be fused.
    pub long_chains: bool,
    /// A value that backward needs in memory.
    pub materialized_backward: bool,
    /// What is not on the list of cheap operators; else only what is known to be expensive.
    pub not_in_allow_list: bool,
    /// A value less than a quarter as large as its inputs.
    pub reductions: bool,
}

impl Bans {
    /// PyTorch's defaults: all.
    pub const ALL: Bans = Bans {
        far_apart: true,
        long_chains: true,
        materialized_backward: true,
        not_in_allow_list: true,
        reductions: true,
    };
}

/// How the memory budget is spent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Solver {
    /// Dynamic programming on memories in ten-thousandths.
    #[default]
    Dp,
    /// By runtime per memory.
    Greedy,
    /// The exact optimum, on at most `EXACT_LIMIT` items.
    Ilp,
    /// As `dp`, in linear memory.
    Hirschberg,
}

/// What computing a value again is taken to cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Runtime {
    /// Floating-point operations of products, convolutions and attention; 1 for all else.
    #[default]
    Flops,
    /// 1 for everything.
    Testing,
}

/// The inputs that live for the whole program: parameters and buffers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum StaticInputs {
    /// What the graph's file says (`static_lifetime_input_indices`), else none.
    #[default]
    Recorded,
    /// All primals.
    All,
    /// By position among the primals: first and last of each range.
    At(Vec<(usize, usize)>),
}

impl StaticInputs {
    /// Which of `count` primals of `joint` are static.
    pub fn of(&self, joint: &Graph, count: usize) -> Vec<bool> {
        let recorded = || recorded_static_inputs(joint).into_iter().map(|i| (i, i)).collect();
        let ranges: Vec<(usize, usize)> = match self {
            StaticInputs::Recorded => recorded(),
            StaticInputs::All => vec![(0, count)],
            StaticInputs::At(ranges) => ranges.clone(),
        };
        covered(ranges, count)
    }
}

/// The configuration of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct PartitionConfig {
    /// Which partitioner.
    pub method: Method,
    /// Activation checkpointing before the joint graph is cut, with the size of its stages; `None`: no such pass.
    pub checkpoint: Option<Stage>,
    /// How many of the outputs are forward outputs; `None`: what the graph's file says (`num_fwd_outputs`).
    pub num_forward_outputs: Option<usize>,
    /// Parameters and buffers.
    pub static_inputs: StaticInputs,
    /// Whether a graph without tangents is refused. PyTorch gives it to the default partitioner.
    pub needs_tangents: bool,
    /// Whether dead-code elimination keeps draws of random numbers that nobody reads.
    pub impure_random: bool,
    /// Whether `wait_tensor` counts as pure; `None`: while replaying, as AutoParallel has it.
    pub suppressed_waits: Option<bool>,
    /// Whether equal nodes are merged first (min-cut, replay).
    pub cse: bool,
    /// Whether collectives that nobody tagged may be computed again
    /// (`unsafe_allow_optimization_of_collectives`).
    pub optimizes_collectives: bool,
    /// The bans of the min-cut partitioner.
    pub bans: Bans,
    /// Clears all bans but that of reductions.
    pub aggressive: bool,
    /// Values farther from backward than this, and nearer than 1000 nodes, are not computed again.
    pub max_distance: i64,
    /// Whether saving a static input costs nothing.
    pub free_parameters: bool,
    /// Whether views are never saved.
    pub recompute_views: bool,
    /// The part of the activation memory that may be used, from 0 to 1.
    pub budget: f64,
    /// How the budget is spent.
    pub solver: Solver,
    /// What computing again costs.
    pub runtime: Runtime,
    /// Whether a region that is annotated with a budget must hold the whole forward part.
    pub budget_needs_coverage: bool,
    /// Whether the state of random generators is passed as a generator (CUDA) and not as a tensor.
    pub graph_safe_random: bool,
}

impl Default for PartitionConfig {
    /// PyTorch 2.15's defaults, within a compilation.
    fn default() -> PartitionConfig {
        PartitionConfig {
            method: Method::Default,
            checkpoint: None,
            num_forward_outputs: None,
            static_inputs: StaticInputs::Recorded,
            needs_tangents: true,
            impure_random: false,
            suppressed_waits: None,
            cse: true,
            optimizes_collectives: false,
            bans: Bans::ALL,
            aggressive: false,
            max_distance: 1000,
            free_parameters: true,
            recompute_views: false,
            budget: 1.0,
            solver: Solver::Dp,
            runtime: Runtime::Flops,
            budget_needs_coverage: true,
            graph_safe_random: false,
        }
    }
}

const KEYS: &[(&str, &str)] = &[
    ("method", "default, min-cut, replay"),
    (
        "checkpoint",
        "activation checkpointing first: no, auto, operators (no stages), or the GiB that a stage holds",
    ),
    ("num_fwd_outputs", "how many outputs are forward outputs; without it, what the file says"),
    (
        "static_inputs",
        "positions among the primals, such as 0,2-5, or none, all; without it, what the file says",
    ),
    ("needs_tangents", "whether a graph without tangents is refused: yes, no"),
    ("impure_random", "whether unread draws of random numbers stay: yes, no"),
    (
        "suppressed_waits",
        "whether a wait has no effect of its own: yes, no; without it, only while replaying",
    ),
    ("cse", "whether equal nodes are merged first: yes, no"),
    ("optimizes_collectives", "whether untagged collectives may be computed again: yes, no"),
    (
        "bans",
        "all, none, or a list of far_apart, long_chains, materialized_backward, not_in_allow_list, reductions",
    ),
    ("aggressive", "whether only reductions are banned: yes, no"),
    ("max_distance", "a number of nodes"),
    ("free_parameters", "whether static inputs are saved at no cost: yes, no"),
    ("recompute_views", "whether views are never saved: yes, no"),
    ("budget", "the part of activation memory to use, from 0 to 1"),
    ("solver", "dp, greedy, ilp, hirschberg"),
    ("runtime", "flops, testing"),
    ("budget_needs_coverage", "whether an annotated budget must cover the whole forward part: yes, no"),
    ("graph_safe_random", "whether random state is passed as a generator: yes, no"),
];

impl PartitionConfig {
    /// A method with the defaults.
    pub fn of(method: Method) -> PartitionConfig {
        PartitionConfig { method, ..PartitionConfig::default() }
    }

    /// Whether `wait_tensor` counts as pure.
    pub fn suppresses_waits(&self) -> bool {
        self.suppressed_waits.unwrap_or(self.method == Method::Replay)
    }

    /// The bans in force.
    pub fn bans(&self) -> Bans {
        match self.aggressive {
            true => Bans {
                far_apart: false,
                long_chains: false,
                materialized_backward: false,
                not_in_allow_list: false,
                ..self.bans
            },
            false => self.bans,
        }
    }

    /// The configuration that a case's pass gives.
    pub fn from_pass(pass: &PassConfig) -> Result<PartitionConfig, String> {
        let text = |setting: &Setting| match setting {
            Setting::Text(text) => text.clone(),
            Setting::List(list) => list.iter().map(Setting::to_string).collect::<Vec<_>>().join(","),
        };
        let options: Vec<_> =
            pass.options.iter().map(|(key, setting)| (key.clone(), text(setting))).collect();
        PartitionConfig::from_options(&options)
    }

    /// The configuration that options give; later options win. The error names the key or value and lists what
    /// exists.
    pub fn from_options(options: &[(String, String)]) -> Result<PartitionConfig, String> {
        let mut config = PartitionConfig::default();
        for (key, value) in options {
            let (key, value) = (key.as_str(), value.trim());
            match key {
                "method" => config.method = choose(key, value, Method::ALL)?,
                "checkpoint" => config.checkpoint = checkpoint(value)?,
                "num_fwd_outputs" => config.num_forward_outputs = Some(number(key, value)?),
                "static_inputs" => config.static_inputs = positions(key, value)?,
                "needs_tangents" => config.needs_tangents = yes(key, value)?,
                "impure_random" => config.impure_random = yes(key, value)?,
                "suppressed_waits" => config.suppressed_waits = Some(yes(key, value)?),
                "cse" => config.cse = yes(key, value)?,
                "optimizes_collectives" => config.optimizes_collectives = yes(key, value)?,
                "bans" => config.bans = bans(value)?,
                "aggressive" => config.aggressive = yes(key, value)?,
                "max_distance" => config.max_distance = number(key, value)?,
                "free_parameters" => config.free_parameters = yes(key, value)?,
                "recompute_views" => config.recompute_views = yes(key, value)?,
                "budget" => config.budget = budget(value)?,
                "solver" => config.solver = choose(key, value, SOLVERS)?,
                "runtime" => {
                    let names = [("flops", Runtime::Flops), ("testing", Runtime::Testing)];
                    config.runtime = choose(key, value, &names)?;
                }
                "budget_needs_coverage" => config.budget_needs_coverage = yes(key, value)?,
                "graph_safe_random" => config.graph_safe_random = yes(key, value)?,
                _ => return Err(unknown_key(key)),
            }
        }
        Ok(config)
    }
}

const SOLVERS: &[(&str, Solver)] = &[
    ("dp", Solver::Dp),
    ("greedy", Solver::Greedy),
    ("ilp", Solver::Ilp),
    ("hirschberg", Solver::Hirschberg),
    ("dp_knapsack_sliding_hirschberg", Solver::Hirschberg),
];

fn unknown_key(key: &str) -> String {
    let keys: Vec<String> = KEYS.iter().map(|(key, what)| format!("  {key}: {what}")).collect();
    super::unknown_key("partition", key, &format!("\n{}", keys.join("\n")), KEYS.iter().map(|(key, _)| *key))
}

/// One of several names.
fn choose<T: Copy>(key: &str, value: &str, names: &[(&str, T)]) -> Result<T, String> {
    let found = names.iter().find(|(name, _)| *name == value);
    found.map(|&(_, value)| value).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        format!("{key} cannot be {value:?}; it can be {}", names.join(", "))
    })
}

fn yes(key: &str, value: &str) -> Result<bool, String> {
    choose(key, value, &[("yes", true), ("no", false), ("true", true), ("false", false)])
}

fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{key} needs a number, not {value:?}"))
}

fn budget(value: &str) -> Result<f64, String> {
    let budget: f64 = number("budget", value)?;
    match (0.0..=1.0).contains(&budget) {
        true => Ok(budget),
        false => Err(format!("budget needs a number from 0 to 1, not {value:?}")),
    }
}

fn checkpoint(value: &str) -> Result<Option<Stage>, String> {
    Ok(match value {
        "no" => None,
        "auto" => Some(Stage::Auto),
        "operators" => Some(Stage::None),
        _ => match value.parse() {
            Ok(gib) if gib > 0.0 => Some(Stage::Gib(gib)),
            _ => {
                return Err(format!(
                    "checkpoint cannot be {value:?}; it can be no, auto, operators, or a number of GiB"
                ));
            }
        },
    })
}

fn bans(value: &str) -> Result<Bans, String> {
    let none = Bans {
        far_apart: false,
        long_chains: false,
        materialized_backward: false,
        not_in_allow_list: false,
        reductions: false,
    };
    let mut bans = none;
    match value {
        "all" => return Ok(Bans::ALL),
        "none" => return Ok(none),
        _ => {}
    }
    for name in value.split(',') {
        match name.trim() {
            "far_apart" => bans.far_apart = true,
            "long_chains" => bans.long_chains = true,
            "materialized_backward" => bans.materialized_backward = true,
            "not_in_allow_list" => bans.not_in_allow_list = true,
            "reductions" => bans.reductions = true,
            other => {
                return Err(format!(
                    "bans cannot hold {other:?}; it can hold far_apart, long_chains, materialized_backward, \
                     not_in_allow_list, reductions, or be all or none"
                ));
            }
        }
    }
    Ok(bans)
}

/// `none`, `all`, or positions and ranges of them.
fn positions(key: &str, value: &str) -> Result<StaticInputs, String> {
    match value {
        "none" | "" => return Ok(StaticInputs::At(Vec::new())),
        "all" => return Ok(StaticInputs::All),
        _ => {}
    }
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Ok((number(key, first.trim())?, number(key, last.trim())?))
    };
    value.split(',').map(|part| range(part.trim())).collect::<Result<_, String>>().map(StaticInputs::At)
}

/// The positions of static inputs that the graph's file states.
fn recorded_static_inputs(graph: &Graph) -> Vec<usize> {
    let text = graph.extra.iter().find(|(key, _)| key == "static_lifetime_input_indices");
    text.and_then(|(_, text)| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// How much memory a stage holds before its cheapest place is saved.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Stage {
    /// No stages and no tags but those of expensive operators.
    None,
    /// The square root of all of it, counted in GiB.
    Auto,
    /// So many GiB.
    Gib(f64),
}

impl Default for Stage {
    fn default() -> Stage {
        Stage::Gib(2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PartitionConfig, String> {
        let options: Vec<(String, String)> = text
            .split_whitespace()
            .filter_map(|option| option.split_once('='))
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        PartitionConfig::from_options(&options)
    }

    #[test]
    fn options_give_a_configuration() {
        assert_eq!(parse(""), Ok(PartitionConfig::default()));
        let config = parse(
            "method=min-cut static_inputs=0,2-4 bans=far_apart,reductions budget=0.25 solver=ilp cse=no",
        );
        let config = config.unwrap();
        assert_eq!((config.method, config.solver, config.cse), (Method::MinCut, Solver::Ilp, false));
        assert_eq!(config.static_inputs, StaticInputs::At(vec![(0, 0), (2, 4)]));
        assert!(config.bans.far_apart && config.bans.reductions && !config.bans.long_chains);
        assert_eq!(config.budget, 0.25);
        assert!(parse("method=replay").unwrap().suppresses_waits());
        assert!(!parse("method=replay suppressed_waits=no").unwrap().suppresses_waits());
    }

    #[test]
    fn a_pass_gives_a_configuration() {
        let list = Setting::List(vec![Setting::Text("0".to_string()), Setting::Text("2-4".to_string())]);
        let mut pass = PassConfig::new("partition").with("method", "replay");
        pass.options.push(("static_inputs".to_string(), list));
        let config = PartitionConfig::from_pass(&pass).unwrap();
        assert_eq!(
            (config.method, config.static_inputs),
            (Method::Replay, StaticInputs::At(vec![(0, 0), (2, 4)]))
        );
    }

    #[test]
    fn faults_are_named() {
        assert!(
            parse("metod=replay")
                .unwrap_err()
                .contains("has no option \"metod\": did you mean \"method\"? It has\n  method:")
        );
        assert!(parse("method=first").unwrap_err().contains("it can be default, min-cut, replay"));
        assert!(parse("budget=1.5").unwrap_err().contains("from 0 to 1"));
        assert!(parse("bans=far").unwrap_err().contains("cannot hold \"far\""));
        assert!(parse("static_inputs=1-x").unwrap_err().contains("static_inputs"));
    }

    #[test]
    fn every_key_is_read() {
        for (key, _) in KEYS {
            let unknown = parse(&format!("{key}=?")).unwrap_err();
            assert!(!unknown.contains("has no option"), "{key}");
        }
    }
}
