//! What is known of passes by their names: what they may do beyond keeping every bit, and what they promise.
//!
//! A pass is judged bit for bit first. Where that leaves it open, or convicts it, it is judged once more with what
//! passes of its name are made to do, and the row says that the verdict rests on that. A promise is demanded from the
//! beginning.
//!
//! Sources: `torch/_inductor/fx_passes/{joint_graph,post_grad,fuse_attention,replace_random}.py` of PyTorch 2.15;
//! `torchtitan/experiments/graph_trainer` of TorchTitan 0.3.

use crate::case::{PassConfig, Setting};

/// A row: passes, and what is known of them.
struct Contract {
    /// Whether a name, as the first column of the report has it, is meant.
    is_of: fn(&str) -> bool,
    allow: &'static [&'static str],
    demand: &'static [&'static str],
}

const CONTRACTS: &[Contract] = &[
    // Patterns of attention and softmax, random numbers from seeds, folded constants. They run before a partition too.
    Contract {
        is_of: |pass| ["joint_graph", "partition"].contains(&pass),
        allow: &["numerics=contraction", "draws=restreamed"],
        demand: &[],
    },
    // `addmm` for a product and a sum, groups of products as one.
    Contract { is_of: |pass| pass == "post_grad", allow: &["numerics=reassociation"], demand: &[] },
    // They write down what others will read.
    Contract {
        is_of: |pass| pass == "tag_with_memory_policy_pass" || pass.starts_with("annotate_"),
        allow: &[],
        demand: &["unchanged"],
    },
];

/// How a pass is judged.
pub(super) struct Judging {
    /// With nothing allowed but what the user allows.
    pub(super) strict: PassConfig,
    /// With what passes of its name may do, where that is more.
    pub(super) loose: Option<PassConfig>,
    /// What that is, in words.
    pub(super) allowed: String,
}

/// How the pass of this name is judged, where the user allows `allow` of every pass and demands `demand`.
pub(super) fn judging(pass: &str, allow: &[String], demand: &[String]) -> Judging {
    let known = CONTRACTS.iter().find(|contract| (contract.is_of)(pass));
    let with = |mut config: PassConfig, key: &str, items: Vec<String>| {
        if !items.is_empty() {
            config.set(key.to_string(), Setting::List(items.into_iter().map(Setting::Text).collect()));
        }
        config
    };
    let own = |of: fn(&Contract) -> &'static [&'static str]| {
        known.map_or(&[][..], of).iter().map(|item| (*item).to_string())
    };
    let promised = own(|contract| contract.demand).filter(|item| !demand.contains(item));
    let demanded: Vec<String> = demand.iter().cloned().chain(promised).collect();
    let base = with(PassConfig::new("rewrite"), "demand", demanded);
    let strict = with(base.clone(), "allow", allow.to_vec());
    // What the user says counts instead.
    let allowed: Vec<String> =
        if allow.is_empty() { own(|contract| contract.allow).collect() } else { Vec::new() };
    let words = allowed.join(",");
    let loose = (!allowed.is_empty()).then(|| with(base, "allow", allowed));
    Judging { strict, loose, allowed: words }
}
