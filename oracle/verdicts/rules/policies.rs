//! What a pass promises beyond being right, read from its options.
//!
//! The reference keeps all promises of the selection that it is asked for. Of anybody else only what the options
//! state is demanded: `promises=[cap adjacency]` names policies; caps, spans and budgets are stated by giving them.

use super::allowed::Allowed;
use super::budget::{Budget, budget};
use super::demanded::Demanded;
use super::exposure::CostModel;
use crate::case::{PassConfig, Setting};
use crate::words;

/// Caps on the bytes of buckets.
#[derive(Clone, PartialEq, Debug)]
pub struct Caps {
    /// By bucket index; the last one holds for all further buckets.
    pub by_index: Vec<i64>,
    /// Whether the index counts. Inductor asks for index 0 only.
    pub per_index: bool,
}

impl Caps {
    /// The most that bucket `index` of a run, or a later one, may hold. Buckets that were dropped count in the
    /// pass's index but are not seen from outside, so the largest cap from `index` on is what can be promised.
    pub fn at(&self, index: usize) -> i64 {
        let last = self.by_index.len().saturating_sub(1);
        match self.per_index {
            true => self
                .by_index
                .get(index.min(last)..)
                .and_then(|caps| caps.iter().copied().max())
                .unwrap_or(i64::MAX),
            false => self.by_index.first().copied().unwrap_or(i64::MAX),
        }
    }
}

/// What the pass promises beyond being right.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Policies {
    /// Caps on buckets.
    pub caps: Option<Caps>,
    /// At least two members.
    pub min_size: bool,
    /// Members are neighbours in wait order.
    pub adjacency: bool,
    /// The list distance of members.
    pub max_topo_span: Option<u64>,
    /// Nothing that could join is left out.
    pub maximal: bool,
    /// Gathers of different dtypes may share a bucket.
    pub multidtype: bool,
    /// Peak memory, bytes.
    pub peak_memory: Option<Budget>,
    /// Exposed communication, seconds.
    pub exposed_time: Option<Budget>,
    /// The model behind exposed time.
    pub cost: CostModel,
    /// The repaired order is exactly the stable sort's.
    pub exact_order: bool,
    /// Whether nothing is known of the pass but that it keeps what a graph means: a launch may be waited for more than
    /// once, as values allow, and it is said what else would have to be allowed.
    pub any_rewrite: bool,
    /// What a rewrite may do beyond keeping every bit.
    pub allowed: Allowed,
    /// What is demanded of a rewrite beyond being right.
    pub demanded: Demanded,
    /// Whether draws of one kind were matched in list order, and may be matched otherwise.
    pub are_draws_ambiguous: bool,
    /// Whether the options state the promises: what is stated and cannot be checked is undecided.
    pub stated: bool,
}

/// Options that concern the judge and not the pass.
pub const JUDGE_OPTIONS: &[&str] = &["promises", "peak_budget", "exposed_budget"];

/// Options of a rewrite: what it may do beyond keeping every bit, and what is demanded of it beyond being right.
pub const REWRITE_OPTIONS: &[&str] = &["allow", "demand", "contracts"];

/// Names that `promises=` takes.
const PROMISES: &[&str] = &["all", "cap", "min_size", "adjacency", "topo_span", "maximal", "order"];

/// Inductor's cap, bytes. Source: `torch._inductor.fx_passes.bucketing`, `bucket_cap_mb_by_bucket_idx_default`.
const DEFAULT_CAP: i64 = 2000 << 20;

/// AutoParallel's span.
const DEFAULT_SPAN: u64 = 1500;

impl Policies {
    /// The promises of a pass with these options; `all`: every one that its selection makes.
    pub fn from_pass(config: &PassConfig, all: bool) -> Result<Policies, String> {
        let text = |error: crate::case::SettingError| error.to_string();
        let promises = config.words("promises").map_err(text)?.unwrap_or_default();
        if let Some(unknown) = promises.iter().find(|name| !PROMISES.contains(name)) {
            return Err(format!("unknown promise {unknown:?}{}", words::choices(unknown, PROMISES)));
        }
        let (allowed, demanded) = (Allowed::from_pass(config)?, Demanded::from_pass(config)?);
        let stated = |key: &str| config.get(key).is_some();
        // Whoever keeps all promises keeps a span as one of them.
        let is_stated = !promises.is_empty() || (stated("max_topo_span") && !all);
        let all = all || promises.contains(&"all");
        let promised = |name: &str| all || promises.contains(&name);
        let autoparallel =
            matches!(config.word("selection").map_err(text)?, Some("autoparallel" | "spanning"));
        // Which launches a filter leaves out is not seen from outside, so neighbours are not known.
        let filtered = config.word("filter").map_err(text)?.is_some_and(|filter| filter != "none");
        let caps = caps(config)?;
        let span = match config.word("max_topo_span").map_err(text)? {
            Some("off" | "none") => None,
            Some(_) => config.int("max_topo_span").map_err(text)?.and_then(|n| u64::try_from(n).ok()),
            None => Some(DEFAULT_SPAN),
        };
        if config.get("max_topo_span").is_some() && !autoparallel {
            return Err("option max_topo_span needs selection=autoparallel".to_string());
        }
        for &name in &promises {
            let needs =
                match name {
                    "all" => None,
                    "order" => (config.name != "repair").then_some("the pass repair"),
                    _ if config.name == "repair" => Some("the pass bucketing"),
                    "topo_span" => (!autoparallel || span.is_none())
                        .then_some("selection=autoparallel and a max_topo_span"),
                    "adjacency" | "maximal" => (autoparallel || filtered)
                        .then_some("a selection other than autoparallel, and no filter"),
                    _ => None,
                };
            if let Some(needs) = needs {
                return Err(format!("promises: {name} needs {needs}"));
            }
        }
        if let Some(key) = ["peak_budget", "exposed_budget"].iter().find(|key| stated(key))
            && config.name == "repair"
        {
            return Err(format!("option {key} needs the pass bucketing"));
        }
        let mode = config.word("mode").map_err(text)?.unwrap_or("default");
        Ok(Policies {
            caps: caps
                .filter(|_| promised("cap") || stated("cap"))
                .map(|by_index| Caps { by_index, per_index: autoparallel }),
            min_size: promised("min_size"),
            adjacency: promised("adjacency") && !autoparallel && !filtered,
            max_topo_span: span
                .filter(|_| (promised("topo_span") || stated("max_topo_span")) && autoparallel),
            maximal: promised("maximal") && !filtered && !autoparallel,
            multidtype: mode.contains("multidtype"),
            peak_memory: demanded.peak.or(budget(config, "peak_budget")?),
            exposed_time: demanded.exposed.or(budget(config, "exposed_budget")?),
            cost: CostModel::default(),
            exact_order: promised("order"),
            any_rewrite: config.name == "rewrite",
            allowed,
            demanded,
            are_draws_ambiguous: false,
            stated: is_stated,
        })
    }
}

/// The caps in bytes. A number without a unit counts MB = 1024 * 1024 bytes, as PyTorch's cap functions do. `None`
/// where the pass works out its own.
fn caps(config: &PassConfig) -> Result<Option<Vec<i64>>, String> {
    let Some(setting) = config.get("cap") else { return Ok(Some(vec![DEFAULT_CAP])) };
    if setting.word() == Some("auto") {
        return Ok(None);
    }
    let cap = |setting: &Setting| {
        let bytes = match setting.number() {
            Some(megabytes) => (megabytes * f64::from(1 << 20)) as i64,
            None => i64::try_from(setting.size()?).unwrap_or(i64::MAX),
        };
        Some(bytes)
    };
    let caps: Option<Vec<i64>> = setting.items().iter().map(cap).collect();
    caps.map(Some).ok_or_else(|| format!("option cap should be sizes such as 64MiB or 1.5GiB, not {setting}"))
}
