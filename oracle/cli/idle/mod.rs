//! Options that would change nothing of what is asked: each is refused in one line, which says why and what to use.
//!
//! Whoever states an option believes that it counts. One table has a row for each flag that counts only beside other
//! arguments; a flag without a row always counts. What `--set` says is in [`settings`], since it hangs on the pass and
//! on whether its result is given. What only the contents of a file decide, the command refuses itself.

pub(super) mod settings;

use crate::limits::Limit;
use clap::ArgMatches;
use clap::parser::ValueSource;

/// A flag, and when it counts for nothing.
struct Row {
    /// The commands that have it.
    commands: &'static [&'static str],
    /// The flags, as fields are called.
    flags: &'static [&'static str],
    /// Whether they count for nothing.
    idle: fn(&GivenArguments) -> bool,
    /// Why, and what to use.
    why: &'static str,
}

/// What was asked for: a command and its arguments.
struct GivenArguments<'a>(&'a ArgMatches);

impl GivenArguments<'_> {
    /// Whether an argument stands on the command line; one that the command does not have does not.
    fn has(&self, id: &str) -> bool {
        matches!(self.0.try_contains_id(id), Ok(true))
            && self.0.value_source(id) == Some(ValueSource::CommandLine)
    }

    /// The first word of an argument, given or by default.
    fn word(&self, id: &str) -> &str {
        let words = self.0.try_get_raw(id).ok().flatten();
        words.and_then(|mut words| words.next()?.to_str()).unwrap_or("")
    }

    /// How many words an argument has.
    fn count(&self, id: &str) -> usize {
        self.0.try_get_raw(id).ok().flatten().map_or(0, Iterator::count)
    }

    fn passes(&self, names: &[&str]) -> bool {
        names.contains(&self.word("pass"))
    }

    /// Whether the pass is one that is known, and none of these.
    fn passes_other_than(&self, names: &[&str]) -> bool {
        crate::rules::PassKind::parse(self.word("pass")).is_some() && !self.passes(names)
    }

    /// Whether somebody in another process is judged.
    fn runs_worker(&self) -> bool {
        self.has("worker") || self.has("python")
    }

    /// Whether the report is not for people.
    fn is_for_machines(&self) -> bool {
        !["", "text"].contains(&self.word("format"))
    }
}

const WORKER_LIMITS: &[&str] = &["worker_seconds", "worker_start", "worker_memory", "worker_answer"];

/// Every flag that counts only beside other arguments.
const ROWS: &[Row] = &[
    Row {
        commands: &["check", "run", "reduce"],
        flags: WORKER_LIMITS,
        idle: |given| !given.runs_worker(),
        why: "it is a limit of a worker, and none is asked for: give --worker CMD or --python FILE.py:FUNCTION",
    },
    Row {
        commands: &["fuzz"],
        flags: WORKER_LIMITS,
        idle: |given| !given.runs_worker() && !given.has("against"),
        why: "it is a limit of a worker, and none is asked for: give --worker CMD or --python FILE.py:FUNCTION",
    },
    Row {
        commands: &["score"],
        flags: &["html"],
        idle: |given| given.has("edits") || given.has("reductions"),
        why: "there is a page of how soon mutants are convicted, and of nothing else: leave it out",
    },
    Row {
        commands: &["fuzz"],
        flags: &["html"],
        idle: |given| given.has("against"),
        why: "there is a page of campaigns, and none of two that are compared: leave it out",
    },
    Row {
        commands: &["simulate"],
        flags: &["html"],
        idle: |given| given.has("flight"),
        why: "with --flight nothing is simulated, so that there is nothing to draw: leave it out",
    },
    Row {
        commands: &["check", "simulate", "trace", "fuzz", "results"],
        flags: &["format"],
        idle: |given| given.word("html") == "-",
        why: "--html - prints the page in the place of the report: leave it out",
    },
    Row {
        commands: &["show"],
        flags: &["format", "output"],
        idle: |given| given.has("html"),
        why: "--html writes a page and prints nothing: leave it out",
    },
    Row {
        commands: &["check"],
        flags: &["worker", "python"],
        idle: |given| given.has("after") && !given.has("replay"),
        why: "a worker is run where there is no AFTER; give one or the other",
    },
    Row {
        commands: &["check"],
        flags: &["candidate"],
        idle: |given| given.has("after") && !given.has("replay"),
        why: "a candidate is run where there is no AFTER; give one or the other",
    },
    Row {
        commands: &["check", "reduce", "fuzz"],
        flags: &["values", "element_limit"],
        idle: |given| given.passes(&["schedule", "memory"]),
        why: NO_VALUES,
    },
    Row {
        commands: &["check", "reduce", "fuzz"],
        flags: &["values"],
        idle: |given| given.passes(&["execute"]),
        why: "an execution is compared element by element, and in no other way: leave it out",
    },
    Row {
        commands: &["check"],
        flags: &["element_limit"],
        idle: |given| given.has("values") && ["symbolic", "extents", "off"].contains(&given.word("values")),
        why: "with these --values nothing is executed: leave one of them out",
    },
    Row {
        commands: &["check"],
        flags: &["unrepaired"],
        idle: |given| given.passes_other_than(&["bucketing"]),
        why: "only bucketing ends with a repair that has a graph before it: leave it out",
    },
    Row {
        commands: &["check"],
        flags: &["unrepaired"],
        idle: |given| !given.has("after"),
        why: "it needs AFTER, the graph after its repair",
    },
    Row {
        commands: &["check"],
        flags: &["unrepaired"],
        idle: |given| given.count("after") > 1,
        why: "it belongs to one AFTER, and there are several: give one",
    },
    Row {
        commands: &["check"],
        flags: &["allow", "demand", "second"],
        idle: |given| given.passes_other_than(&["rewrite"]),
        why: "it is for passes of which nothing else is known: check rewrite takes it",
    },
    Row {
        commands: &["check"],
        flags: &["order"],
        idle: |given| given.passes_other_than(&["memory"]),
        why: "it is the order in which memory is counted: check memory takes it",
    },
    Row {
        commands: &["check"],
        flags: &["from", "groups"],
        idle: |given| given.has("replay"),
        why: "it completes one graph, and there are several: give the graphs as exchange JSON",
    },
    Row {
        commands: &["check"],
        flags: &["snapshot"],
        idle: |given| given.passes_other_than(&["memory"]),
        why: "it is put beside the counts of memory: check memory takes it",
    },
    Row {
        commands: &["check"],
        flags: &["verbose"],
        idle: |given| given.is_for_machines(),
        why: "this format tells everything: leave it out",
    },
    Row {
        commands: &["run"],
        flags: &["unrepaired"],
        idle: |given| given.passes_other_than(&["bucketing"]),
        why: "only bucketing ends with a repair that has a graph before it: leave it out",
    },
    Row {
        commands: &["run"],
        flags: &["rank"],
        idle: |given| given.passes(&["partition"]),
        why: "every rank cuts a joint graph alike: leave it out",
    },
    Row {
        commands: &["run"],
        flags: &["rank"],
        idle: |given| given.passes(&["repair"]) && !given.runs_worker(),
        why: "every rank sorts alike: leave it out",
    },
    Row {
        commands: &["run"],
        flags: &["format"],
        idle: |given| given.passes_other_than(&["partition"]),
        why: "it is the format of the saved values of a partition; the ending of --output says how a graph is written",
    },
    Row {
        commands: &["fuzz"],
        flags: &["ranks"],
        idle: |given| given.passes(&["repair", "schedule", "memory", "execute"]),
        why: "the rank is baked into buckets and partitions only: leave it out",
    },
    Row {
        commands: &["score"],
        flags: &["seeds", "cases"],
        idle: |given| given.has("edits"),
        why: "--edits judges one outcome and makes no cases: --per-edit says how many places are tried",
    },
    Row {
        commands: &["score"],
        flags: &["show"],
        idle: |given| given.is_for_machines(),
        why: "JSON lists every edit: leave it out",
    },
    Row {
        commands: &["smoke"],
        flags: &["skip_without_gpu"],
        idle: |given| given.word("device") == "host",
        why: "the host needs no GPU: give --device cuda",
    },
    Row {
        commands: &["smoke"],
        flags: &["table"],
        idle: |given| given.is_for_machines(),
        why: "JSON has the table: leave it out",
    },
    Row {
        commands: &["lifecycle"],
        flags: &["assert", "format"],
        idle: |given| !given.has("events"),
        why: "without EVENTS those of the graph's own run are printed, and nothing is judged: give EVENTS",
    },
    Row {
        commands: &["simulate"],
        flags: &["messages", "one_stream", "trace"],
        idle: |given| given.has("flight"),
        why: "beside --flight nothing is simulated: give one or the other",
    },
    Row {
        commands: &["simulate"],
        flags: &["ranks"],
        idle: |given| given.count("graphs") == 0,
        why: "it says which rank runs which graph, and there is none: give GRAPH...",
    },
    Row {
        commands: &["simulate"],
        flags: &["ranks"],
        idle: |given| given.count("graphs") == 1,
        why: "one file says itself which rank runs which graph: give it without, or several graphs",
    },
];

/// Why values count for nothing where a pass has none.
pub(super) const NO_VALUES: &str =
    "a schedule is judged by its order and memory by what is claimed, no values are compared: leave it out";

/// The commands that read files, and the last of them logs alone.
const FILES: &[&str] = &[
    "check",
    "run",
    "reduce",
    "keep",
    "fuzz",
    "score",
    "simulate",
    "smoke",
    "lifecycle",
    "show",
    "convert",
    "serve",
    "trace",
];

/// By limit, the commands that look at it. The others are fixed, and cannot be asked for.
const LIMITS: &[(Limit, &[&str])] = &[
    (Limit::Text, FILES),
    (Limit::Parts, FILES),
    (Limit::Objects, &["check", "simulate", "lifecycle", "serve"]),
    (Limit::Elements, &["check", "reduce", "fuzz", "score", "serve"]),
    (Limit::Smoke, &["smoke"]),
    (Limit::SmokeRanks, &["smoke"]),
    (Limit::SmokeClocks, &["smoke"]),
    (Limit::Request, &["serve"]),
    (Limit::Answer, &["check", "run", "reduce", "fuzz", "worker-test"]),
];

/// The first option on the command line that counts for nothing, with the reason.
pub(super) fn refuse(arguments: &ArgMatches, limits: &[(Limit, u64)]) -> Result<(), String> {
    let Some((command, matches)) = arguments.subcommand() else { return Ok(()) };
    let given = GivenArguments(matches);
    for row in ROWS.iter().filter(|row| row.commands.contains(&command)) {
        let flag = row.flags.iter().find(|flag| given.has(flag));
        if let Some(flag) = flag.filter(|_| (row.idle)(&given)) {
            return Err(format!("--{}: {}", flag.replace('_', "-"), row.why));
        }
    }
    let is_read = |limit: Limit| LIMITS.iter().any(|(known, by)| *known == limit && by.contains(&command));
    match limits.iter().find(|(limit, _)| !is_read(*limit)) {
        Some((limit, _)) => {
            let readers = LIMITS.iter().find(|(known, _)| known == limit).map_or(&[][..], |(_, by)| by);
            Err(format!(
                "--limit {}: {command} looks at no such limit; these do: {}",
                limit.name(),
                readers.join(", ")
            ))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
