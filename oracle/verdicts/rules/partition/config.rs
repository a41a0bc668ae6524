//! How a partition was asked for, and what is promised beyond being right.

use crate::case::PassConfig;
pub use crate::config::partition::Method;
use crate::graph::Graph;
use crate::words;
use std::ops::RangeInclusive;

/// What is promised beyond being right. A promise that was not made cannot be broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Promises {
    /// Every collective runs once, unless its recomputation is asked for.
    pub collectives_once: bool,
    /// No collective, and no wait, whose result nobody reads.
    pub no_dead_collectives: bool,
    /// No storage and no value is saved twice.
    pub distinct: bool,
    /// Every `getitem` stands behind its parent.
    pub getitems_raised: bool,
    /// What is compared for equality is not computed again for it.
    pub compared_saved: bool,
    /// The saved values are the minimum cut of PyTorch's network that is closest to the sink.
    pub minimum_cut: bool,
}

/// The names that `promises=` takes.
const PROMISES: [&str; 7] = [
    "all",
    "collectives_once",
    "no_dead_collectives",
    "distinct",
    "getitems_raised",
    "compared_saved",
    "minimum_cut",
];

/// Options of a case that concern the judge and not the pass.
pub const JUDGE_OPTIONS: &[&str] = &["reshard_after_forward", "promises", "first"];

/// How a partition was asked for.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PartitionConfig {
    /// How saved values are chosen.
    pub method: Method,
    /// Leading outputs of the joint graph that belong to the forward part; by default what the graph's file says.
    pub forward_outputs: Option<usize>,
    /// Positions among the primals of those that live for the whole program (parameters and buffers): saving them
    /// costs nothing.
    pub static_inputs: Vec<RangeInclusive<usize>>,
    /// How a first partition chose, where the joint graph is to be cut twice: by this method, then, tagged and traced
    /// again, by the replay.
    pub first: Option<Method>,
    /// The activation memory budget, 0 to 1.
    pub budget: Option<f64>,
    /// Whether a budget that regions are annotated with may leave out part of forward.
    pub partial_budget: bool,
    /// Whether every parameter gathered in the forward part is to be gathered again, tagged or not.
    pub reshard_after_forward: bool,
    /// What is promised.
    pub promises: Promises,
}

impl PartitionConfig {
    /// A method, and nothing else said.
    pub fn new(method: Method) -> PartitionConfig {
        PartitionConfig { method, ..PartitionConfig::default() }
    }

    /// What the options of a case say to the judge. Options that only the pass reads are left to it.
    ///
    /// # Errors
    /// An option that cannot have its value, in words.
    pub fn from_pass(config: &PassConfig) -> Result<PartitionConfig, String> {
        let text = |error: crate::case::SettingError| error.to_string();
        let method = match config.word("method").map_err(text)? {
            None => Method::Default,
            Some(name) => Method::parse(name).ok_or_else(|| {
                let names = words::choices(name, &["default", "min-cut", "replay"]);
                format!("unknown method {name:?}{names}")
            })?,
        };
        let first = match config.word("first").map_err(text)? {
            None => None,
            Some(_) if method != Method::Replay => {
                return Err("first: only a replay has a partition before it (method=replay)".to_string());
            }
            Some("default") => Some(Method::Default),
            Some("min-cut") => Some(Method::MinCut),
            Some(name) => return Err(format!("first cannot be {name:?}; it can be default, min-cut")),
        };
        let names = config.words("promises").map_err(text)?.unwrap_or_default();
        if let Some(unknown) = names.iter().find(|name| !PROMISES.contains(name)) {
            return Err(format!("unknown promise {unknown:?}{}", words::choices(unknown, &PROMISES)));
        }
        if names.contains(&"minimum_cut") && method != Method::MinCut {
            return Err("promises: minimum_cut needs method=min-cut".to_string());
        }
        let stated = |name: &str| names.contains(&name);
        let promised = |name: &str| stated(name) || stated("all");
        let budget = config.number("budget").map_err(text)?;
        if budget.is_some_and(|budget| !(0.0..=1.0).contains(&budget)) {
            return Err("option budget should be between 0 and 1".to_string());
        }
        let position = |n: i64| usize::try_from(n).map_err(|_| "a position is not negative".to_string());
        let static_inputs = config.words("static_inputs").map_err(text)?.unwrap_or_default();
        let static_inputs = static_inputs.iter().flat_map(|words| words.split(',')).map(str::trim);
        Ok(PartitionConfig {
            method,
            first,
            forward_outputs: config.int("num_fwd_outputs").map_err(text)?.map(position).transpose()?,
            static_inputs: static_inputs
                .filter(|word| *word != "none")
                .map(positions)
                .collect::<Result<_, _>>()?,
            budget,
            partial_budget: config.word("budget_needs_coverage").map_err(text)? == Some("no"),
            reshard_after_forward: config.bool("reshard_after_forward").map_err(text)?.unwrap_or(false),
            promises: Promises {
                collectives_once: promised("collectives_once"),
                no_dead_collectives: promised("no_dead_collectives"),
                distinct: promised("distinct"),
                getitems_raised: promised("getitems_raised"),
                // A minimum cut promises the opposite.
                compared_saved: stated("compared_saved"),
                minimum_cut: promised("minimum_cut") && method == Method::MinCut,
            },
        })
    }

    /// Fills in what the joint graph's file says: the number of forward outputs and the static inputs.
    pub fn or_from_file(mut self, joint: &Graph) -> PartitionConfig {
        let field = |key: &str| joint.extra.iter().find(|(k, _)| k == key).map(|(_, text)| text.as_str());
        self.forward_outputs = self
            .forward_outputs
            .or_else(|| field("num_fwd_outputs").and_then(|text| serde_json::from_str(text).ok()));
        if self.static_inputs.is_empty() {
            let recorded = field("static_lifetime_input_indices");
            let recorded: Option<Vec<usize>> = recorded.and_then(|text| serde_json::from_str(text).ok());
            self.static_inputs = recorded.into_iter().flatten().map(|index| index..=index).collect();
        }
        self
    }
}

/// A position, a range of them such as `2-5`, or `all`.
fn positions(word: &str) -> Result<RangeInclusive<usize>, String> {
    let number = |text: &str| {
        text.trim()
            .parse()
            .map_err(|_| format!("static_inputs needs positions such as 0 or 2-5, not {word:?}"))
    };
    match word.split_once('-') {
        _ if word == "all" => Ok(0..=usize::MAX),
        Some((first, last)) => Ok(number(first)?..=number(last)?),
        None => number(word).map(|index| index..=index),
    }
}
