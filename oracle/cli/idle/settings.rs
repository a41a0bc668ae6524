//! What `--set` states that nobody would read: an option of a pass whose result is given, or one that counts only
//! beside others.
//!
//! A line `pass` of a case says how its result was made, and is no question: only what the command line states is
//! refused.

use crate::candidates::{CandidateExt, Reference};
use crate::case::{PassConfig, Setting};
use crate::cli::CouldNotRun;
use crate::passes::schedule::Pass;
use crate::rules::PassKind;

/// Who reads the options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::cli) enum Reader {
    /// The judge alone, of a result that is given; `again`: which also asks the reference for a further round.
    Judge { again: bool },
    /// The pass, and then the judge.
    Both { worker: bool },
    /// The pass alone.
    Pass,
}

/// Options of a pass, and when they are read.
struct Row {
    pass: PassKind,
    keys: &'static [&'static str],
    /// Whether somebody reads them beside the others.
    read: fn(&PassConfig, Reader) -> bool,
    /// Why not, and what to use.
    why: &'static str,
}

const ALWAYS: fn(&PassConfig, Reader) -> bool = |_, _| true;

/// What the judge reads of a result that is given, beside its own options. No other option is read.
const JUDGED: &[Row] = &[
    Row {
        pass: PassKind::Bucketing,
        keys: &["cap"],
        read: |pass, _| word(pass, "cap") != "auto",
        why: "the pass works that cap out itself: state a size",
    },
    Row {
        pass: PassKind::Bucketing,
        keys: &["selection"],
        read: |pass, _| ["cap", "max_topo_span", "promises"].iter().any(|key| pass.get(key).is_some()),
        why: "it promises nothing by itself: state cap, max_topo_span or promises with it",
    },
    Row {
        pass: PassKind::Bucketing,
        keys: &["max_topo_span"],
        read: |pass, _| !["none", "off"].contains(&word(pass, "max_topo_span")) || promises(pass, &["all"]),
        why: "no span is promised: state a number of nodes, or leave it out",
    },
    Row {
        pass: PassKind::Bucketing,
        keys: &["filter"],
        read: |pass, _| promises(pass, &["all"]),
        why: "it says which of promises=[all] can be demanded: state it with these, or leave it out",
    },
    Row {
        pass: PassKind::Bucketing,
        keys: &["mode"],
        read: |pass, _| word(pass, "mode").contains("multidtype"),
        why: "buckets are judged by what they do, whatever they are made of; only custom_ops_multidtype lets them hold more",
    },
    Row {
        pass: PassKind::Partition,
        keys: &["method", "budget", "num_fwd_outputs", "static_inputs", "checkpoint"],
        read: ALWAYS,
        why: "",
    },
    Row {
        pass: PassKind::Partition,
        keys: &[
            "needs_tangents",
            "impure_random",
            "suppressed_waits",
            "cse",
            "optimizes_collectives",
            "bans",
            "aggressive",
            "max_distance",
            "free_parameters",
            "recompute_views",
            "solver",
            "runtime",
            "budget_needs_coverage",
            "graph_safe_random",
        ],
        read: |pass, reader| match word(pass, "method") {
            "min-cut" => pass.get("budget").is_some() || promises(pass, &["all", "minimum_cut"]),
            "replay" => reader == Reader::Judge { again: true },
            _ => false,
        },
        why: "it counts for the network of method=min-cut, which promises=[minimum_cut] or a budget asks for",
    },
    Row {
        pass: PassKind::Schedule,
        keys: &["budget"],
        read: |pass, _| pass.get("method").is_none() || has_budget(pass),
        why: NO_BUDGET,
    },
    Row {
        pass: PassKind::Schedule,
        keys: &["method"],
        read: |pass, _| pass.get("budget").is_some() || pass.get("promises").is_some(),
        why: "it promises nothing by itself: state a budget or promises with it",
    },
    Row {
        pass: PassKind::Schedule,
        keys: &["runtime_mode"],
        read: |pass, _| promises(pass, &["all", "order"]),
        why: "it counts for promises=[order] and promises=[all] only",
    },
];

/// What a pass reads only beside others. Every other option is read.
const MADE: &[Row] = &[
    Row {
        pass: PassKind::Bucketing,
        keys: &["interconnect", "multiplier"],
        read: |pass, _| match word(pass, "cap") {
            "auto" => true,
            "" => word(pass, "filter") == "fsdp" && ["", "all"].contains(&word(pass, "kind")),
            _ => false,
        },
        why: "it counts where the pass works the cap out: with cap=auto, or filter=fsdp for all kinds",
    },
    Row {
        pass: PassKind::Bucketing,
        keys: &["max_topo_span"],
        read: |pass, _| ["autoparallel", "spanning"].contains(&word(pass, "selection")),
        why: "option max_topo_span needs selection=autoparallel",
    },
    Row {
        pass: PassKind::Schedule,
        keys: &["budget"],
        read: |pass, reader| has_budget(pass) || (reader != Reader::Pass && promises(pass, &["peak"])),
        why: NO_BUDGET,
    },
    Row {
        pass: PassKind::Schedule,
        keys: &["runtime_mode"],
        read: |pass, _| has_budget(pass),
        why: "only reorder_communication_preserving_peak_memory and sink_waits_iterative weigh run times: name one as method",
    },
    Row {
        pass: PassKind::Memory,
        keys: &["method"],
        read: |_, reader| reader == Reader::Both { worker: true },
        why: "whoever runs here states the same whatever the method: it is for a worker, --worker CMD",
    },
];

const NO_BUDGET: &str = "this method looks at no budget; reorder_communication_preserving_peak_memory and sink_waits_iterative do";

fn word<'a>(pass: &'a PassConfig, key: &str) -> &'a str {
    pass.get(key).and_then(Setting::word).unwrap_or("")
}

/// Whether one of these is promised.
fn promises(pass: &PassConfig, names: &[&str]) -> bool {
    let promised = pass.words("promises").ok().flatten().unwrap_or_default();
    promised.iter().any(|name| names.contains(name))
}

/// Whether a method of scheduling keeps the peak within a budget that can be stated.
fn has_budget(pass: &PassConfig) -> bool {
    let method = Pass::parse(word(pass, "method"));
    method.is_some_and(|method| method.keeps_peak() && method != Pass::SimpleOverlap)
}

/// The first of the options that the command line states which nobody reads, with the reason. `pass` has all options,
/// those of a case too. What is no option at all is told by whoever knows the options.
pub(in crate::cli) fn refuse(
    pass: &PassConfig,
    stated: &[(String, Setting)],
    reader: Reader,
) -> Result<(), CouldNotRun> {
    let Some(kind) = PassKind::parse(&pass.name) else { return Ok(()) };
    if matches!(reader, Reader::Judge { .. }) {
        Reference.check_options(pass).map_err(CouldNotRun::new)?;
    }
    for (key, value) in stated {
        if let Some(why) = unread(kind, pass, key, reader) {
            return Err(CouldNotRun::new(format_args!("--set {key}={value}: {why}")));
        }
    }
    Ok(())
}

/// What is to be said of the options that a case states for whoever makes its result, and that nobody reads.
pub(in crate::cli) fn remarks(
    pass: &PassConfig,
    of_case: Option<&PassConfig>,
    reader: Reader,
) -> Vec<String> {
    let Some(kind) = PassKind::parse(&pass.name) else { return Vec::new() };
    let of_case = of_case.filter(|case| case.name == pass.name && matches!(reader, Reader::Both { .. }));
    let stated =
        of_case.iter().flat_map(|case| &case.options).filter(|(key, value)| pass.get(key) == Some(value));
    let why = |(key, value): &(String, Setting)| {
        Some(format!("option {key}={value} counts for nothing: {}", unread(kind, pass, key, reader)?))
    };
    stated.filter_map(why).collect()
}

/// Why nobody reads an option, and what to use; `None` where somebody does.
fn unread(kind: PassKind, pass: &PassConfig, key: &str, reader: Reader) -> Option<&'static str> {
    let row = |table: &'static [Row]| table.iter().find(|row| row.pass == kind && row.keys.contains(&key));
    let unread = |row: &'static Row| (!(row.read)(pass, reader)).then_some(row.why);
    match reader {
        Reader::Judge { .. } => match row(JUDGED) {
            Some(row) => unread(row),
            None if kind.row().judge_options.contains(&key) && key != "first" => None,
            None => Some("the result is given, and no rule looks at this option: leave it out"),
        },
        Reader::Pass if kind.row().judge_options.contains(&key) && key != "first" => {
            Some("it is for the judge, and nothing is judged here: check takes it")
        }
        Reader::Pass | Reader::Both { .. } => row(MADE).and_then(unread),
    }
}
