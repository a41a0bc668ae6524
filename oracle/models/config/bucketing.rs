//! What a bucketing pass is asked to do.

use super::cap::{Cap, Interconnect};
use crate::ops::Collective;
use std::collections::BTreeMap;

/// How a bucket is packed and unpacked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Concatenation and views.
    Default,
    /// As the default, but a gather's slot is the concatenation itself; no node writes in place except the
    /// gather. Not used by PyTorch's passes.
    Functional {
        /// Whether `fsdp.all_gather_copy_in` fills the slot.
        copy_in: bool,
    },
    /// PyTorch's custom packing operators.
    CustomOps,
    /// The same, and gathers of different dtypes share a bucket.
    CustomOpsMultidtype,
    /// Reduce-scatters become one coalesced launch; gathers are packed as by default.
    Coalesced,
}

impl Mode {
    /// All of them with their names.
    pub const ALL: &'static [(&'static str, Mode)] = &[
        ("default", Mode::Default),
        ("functional", Mode::Functional { copy_in: false }),
        ("functional_copy_in", Mode::Functional { copy_in: true }),
        ("custom_ops", Mode::CustomOps),
        ("custom_ops_multidtype", Mode::CustomOpsMultidtype),
        ("coalesced", Mode::Coalesced),
    ];

    /// PyTorch's name of the mode (the functional ones have none there).
    pub fn name(self) -> &'static str {
        Mode::ALL.iter().find(|(_, mode)| *mode == self).map_or("", |(name, _)| name)
    }

    /// Whether packing operators are used.
    pub fn is_custom(self) -> bool {
        matches!(self, Mode::CustomOps | Mode::CustomOpsMultidtype)
    }
}

/// How collectives come together in runs, from which buckets are cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Selection {
    /// Adjacent waits of one key form a run; one limit for the whole run. PyTorch 2.15.
    Adjacent,
    /// All waits of one key form a run; the limit follows the bucket index, and a bucket is closed before it
    /// spans too far. AutoParallel.
    Spanning {
        /// The largest distance in the list between a bucket's first collective and a later one.
        max_topo_span: Option<u64>,
    },
}

/// Which collectives are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Filter {
    /// All.
    None,
    /// Those that shard and gather parameters, found by their surroundings.
    Fsdp,
}

/// The rank that the result is for, as an index in each group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ranks {
    /// For every group that is not named below; `None`: the rank that the graph was recorded on, else 0.
    pub all: Option<u32>,
    /// For single groups.
    pub by_group: BTreeMap<String, u32>,
}

/// The configuration of one run.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// The kinds to bucket, in this order; empty: all, in the order that the filter's pass uses.
    pub kinds: Vec<Collective>,
    /// Packing.
    pub mode: Mode,
    /// Size limit of a bucket; `None`: 2000 MB, or for all kinds under the FSDP filter what saturates the group.
    pub cap: Option<Cap>,
    /// Grouping.
    pub selection: Selection,
    /// Candidates.
    pub filter: Filter,
    /// Only collectives on these groups; `None`: on any.
    pub groups: Option<Vec<String>>,
    /// The rank.
    pub rank: Ranks,
}

impl Default for Config {
    /// All kinds as in PyTorch's `post_grad` passes: 2000 MB, adjacent runs, no filter.
    fn default() -> Config {
        Config {
            kinds: Vec::new(),
            mode: Mode::Default,
            cap: None,
            selection: Selection::Adjacent,
            filter: Filter::None,
            groups: None,
            rank: Ranks::default(),
        }
    }
}

/// Default of AutoParallel.
const MAX_TOPO_SPAN: u64 = 1500;

const KEYS: &[(&str, &str)] = &[
    ("kind", "all, or a list of all_gather, reduce_scatter, all_reduce in the order of the passes"),
    ("mode", "default, functional, functional_copy_in, custom_ops, custom_ops_multidtype, coalesced"),
    ("cap", "size limit by bucket index, such as 64MiB or 10,2000 (MB = MiB); auto: from the interconnect"),
    (
        "interconnect",
        "with cap=auto: nvlink_v100, nvlink_a100, nvlink_h100, nvlink_b200, ib_hdr, ib_ndr, pcie",
    ),
    ("multiplier", "with cap=auto: factor of the saturating size"),
    ("selection", "adjacent (inductor), spanning (autoparallel)"),
    ("max_topo_span", "with selection=spanning: a number of nodes, or none"),
    ("filter", "none, fsdp"),
    ("groups", "process groups to bucket on"),
    ("rank", "index in every group; rank.NAME for one group"),
];

impl Config {
    /// The order of the passes. `post_grad` runs reduce-scatters, all-reduces, all-gathers;
    /// `pre_bucket_fsdp_collectives` runs all-gathers first.
    pub fn passes(&self) -> Vec<Collective> {
        use Collective::{AllGather, AllReduce, ReduceScatter};
        match (self.kinds.is_empty(), self.filter) {
            (false, _) => self.kinds.clone(),
            (true, Filter::None) => vec![ReduceScatter, AllReduce, AllGather],
            (true, Filter::Fsdp) => vec![AllGather, ReduceScatter, AllReduce],
        }
    }

    /// The size limit. `pre_bucket_fsdp_collectives` computes one from the group; the single passes have 2000 MB.
    pub fn cap(&self) -> Cap {
        match (&self.cap, self.filter) {
            (Some(cap), _) => cap.clone(),
            (None, Filter::Fsdp) if self.kinds.is_empty() => {
                Cap::Saturation { interconnect: None, multiplier: 1.0 }
            }
            (None, _) => Cap::default(),
        }
    }

    /// The configuration that options give; later options win. The error names the key or value and lists what
    /// exists.
    pub fn from_options(options: &[(String, String)]) -> Result<Config, String> {
        let mut config = Config::default();
        let mut auto: (Option<Interconnect>, f64) = (None, 1.0);
        let (mut span, mut spanning) = (Some(MAX_TOPO_SPAN), false);
        for (key, value) in options {
            match key.as_str() {
                "kind" | "kinds" => config.kinds = parse_kinds(value)?,
                "mode" => config.mode = choose("mode", value, Mode::ALL)?,
                "cap" => config.cap = Some(Cap::parse(value)?),
                "interconnect" => auto.0 = Some(choose("interconnect", value, Interconnect::ALL)?),
                "multiplier" => auto.1 = parse_number(key, value)?,
                "selection" => {
                    let names = [
                        ("adjacent", false),
                        ("inductor", false),
                        ("spanning", true),
                        ("autoparallel", true),
                    ];
                    spanning = choose("selection", value, &names)?;
                }
                "max_topo_span" if matches!(value.as_str(), "none" | "off") => span = None,
                "max_topo_span" => span = Some(parse_number(key, value)?),
                "filter" => {
                    config.filter =
                        choose("filter", value, &[("none", Filter::None), ("fsdp", Filter::Fsdp)])?;
                }
                "group" | "groups" => {
                    config.groups = Some(value.split(',').map(|name| name.trim().to_string()).collect());
                }
                "rank" => config.rank.all = Some(parse_number(key, value)?),
                _ => match key.strip_prefix("rank.") {
                    Some(group) => {
                        let rank = parse_number(key, value)?;
                        config.rank.by_group.insert(group.to_string(), rank);
                    }
                    None => return Err(unknown_key(key)),
                },
            }
        }
        if spanning {
            config.selection = Selection::Spanning { max_topo_span: span };
        }
        if matches!(config.cap(), Cap::Saturation { .. }) {
            config.cap = Some(Cap::Saturation { interconnect: auto.0, multiplier: auto.1 });
        }
        Ok(config)
    }
}

fn unknown_key(key: &str) -> String {
    let keys: Vec<String> = KEYS.iter().map(|(key, what)| format!("  {key}: {what}")).collect();
    super::unknown_key("bucketing", key, &format!("\n{}", keys.join("\n")), KEYS.iter().map(|(key, _)| *key))
}

fn parse_kinds(value: &str) -> Result<Vec<Collective>, String> {
    if value.trim() == "all" {
        return Ok(Vec::new());
    }
    let names = [Collective::AllGather, Collective::ReduceScatter, Collective::AllReduce]
        .map(|kind| (kind.name(), kind));
    value.split(',').map(|name| choose("kind", name.trim(), &names)).collect()
}

/// One of several names.
fn choose<T: Copy>(key: &str, value: &str, names: &[(&str, T)]) -> Result<T, String> {
    let found = names.iter().find(|(name, _)| *name == value.trim());
    found.map(|&(_, value)| value).ok_or_else(|| {
        let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        format!("{key} cannot be {value:?}; it can be {}", names.join(", "))
    })
}

fn parse_number<T: std::str::FromStr>(key: &str, value: &str) -> Result<T, String> {
    value.trim().parse().map_err(|_| format!("{key} needs a number, not {value:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, String> {
        let options: Vec<(String, String)> = text
            .split_whitespace()
            .map(|option| option.split_once('=').unwrap())
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        Config::from_options(&options)
    }

    #[test]
    fn options_give_a_configuration() {
        assert_eq!(parse("").unwrap(), Config::default());
        let config = parse(
            "kind=all_gather,all_reduce mode=coalesced cap=64MiB,2000 filter=fsdp groups=dp,tp rank=1 rank.tp=0",
        )
        .unwrap();
        assert_eq!(config.passes(), [Collective::AllGather, Collective::AllReduce]);
        assert_eq!(config.mode, Mode::Coalesced);
        assert_eq!(config.cap(), Cap::ByIndex(vec![64.0, 2000.0]));
        assert_eq!(config.filter, Filter::Fsdp);
        assert_eq!(config.groups.unwrap(), ["dp", "tp"]);
        assert_eq!(config.rank, Ranks { all: Some(1), by_group: BTreeMap::from([("tp".to_string(), 0)]) });
        let spanning = |max_topo_span| Selection::Spanning { max_topo_span };
        assert_eq!(parse("selection=autoparallel").unwrap().selection, spanning(Some(1500)));
        assert_eq!(parse("max_topo_span=none selection=spanning").unwrap().selection, spanning(None));
        let auto = Cap::Saturation { interconnect: Some(Interconnect::IbNdr), multiplier: 2.0 };
        assert_eq!(parse("cap=auto interconnect=ib_ndr multiplier=2").unwrap().cap(), auto);
        assert_eq!(parse("filter=fsdp interconnect=ib_ndr multiplier=2").unwrap().cap(), auto);
        assert_eq!(parse("filter=fsdp kind=all_gather").unwrap().cap(), Cap::default());
    }

    #[test]
    fn faults_are_named() {
        assert!(
            parse("caps=3")
                .unwrap_err()
                .contains("has no option \"caps\": did you mean \"cap\"? It has\n  kind:")
        );
        assert!(parse("mode=fast").unwrap_err().contains("it can be default, functional,"));
        assert!(parse("rank=x").unwrap_err().contains("rank needs a number, not \"x\""));
        assert!(parse("cap=-3").unwrap_err().contains("cap"));
    }

    #[test]
    fn pass_orders() {
        use Collective::{AllGather, AllReduce, ReduceScatter};
        assert_eq!(parse("").unwrap().passes(), [ReduceScatter, AllReduce, AllGather]);
        assert_eq!(parse("filter=fsdp kind=all").unwrap().passes(), [AllGather, ReduceScatter, AllReduce]);
    }
}
