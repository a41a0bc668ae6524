//! What a campaign found, for people, in a terminal or on a page: by cause, the summary last, and what to type next.
//!
//! Terminals scroll: what is printed last is what is read first. So the explanations come first, a few lines for each
//! cause, and the counts after them.

use crate::campaign::{Cause, Distinct, Summary};
use crate::candidates;
use crate::case::{Expectation, Expected, Subject};
use crate::rules::statement;
use crate::words;
use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// Lines of examples in a report that is to be read at once.
const LINES: usize = 8;

/// Lines of one explanation.
const REASONS: usize = 8;

/// How much is shown of what was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Show {
    /// Each cause, explained by its smallest example.
    Causes,
    /// The same, with that example as a case.
    Examples,
    /// Every finding in full, its case and the whole report.
    All,
}

/// The findings of all campaigns, then their summaries.
pub(super) fn text(summaries: &[Summary], show: Show) -> String {
    let mut text = String::new();
    let mut left = LINES;
    for summary in summaries {
        let found = match show {
            Show::All => summary.total.found.iter().enumerate().map(|(i, one)| in_full(i + 1, one)).collect(),
            _ => causes(summary, show == Show::Examples, &mut left),
        };
        text += &found;
    }
    for summary in summaries {
        text += &summary.text();
        if show == Show::All {
            text += &summary.by_rule();
        }
    }
    let findings: usize = summaries.iter().map(|summary| summary.total.found.len()).sum();
    if findings > 0 && show != Show::All {
        text += "more: --show examples, --show all; --out DIR keeps it, `graph-oracle results DIR` shows it again\n";
    }
    text
}

fn causes(summary: &Summary, examples: bool, left: &mut usize) -> String {
    let mut text = String::new();
    for (i, cause) in summary.causes().iter().enumerate() {
        let Some(smallest) = cause.findings.first() else { continue };
        text += &format!("{}. ", i + 1);
        text += &reasons(smallest);
        // What it expects is said above it.
        let lines = smallest.case.trim_end().lines().filter(|line| !line.starts_with("expect "));
        let lines: Vec<&str> = lines.collect();
        if examples || lines.len() <= *left {
            *left = left.saturating_sub(lines.len());
            lines.iter().for_each(|line| text += &format!("      {line}\n"));
        }
        text += &format!("   {}\n", counted(cause, smallest, summary.total.cases));
        if examples {
            for (way, count) in cause.ways.iter().filter(|_| cause.ways.len() > 1) {
                text += &format!("   {count:>4} x {way}\n");
            }
        }
        text.push('\n');
    }
    text
}

/// Why the smallest example is wrong.
fn reasons(smallest: &Distinct) -> String {
    let why = match (&smallest.why[..], &smallest.kind) {
        ("", Some(kind)) => format!("{}: {kind}\n", smallest.rule),
        // Not reduced, since a stop was asked for: all that is known is the rule.
        ("", None) => match statement(&smallest.rule) {
            Some(rule) => format!("{}: not looked into further; the rule: {}\n", rule.id, rule.statement),
            None => format!("{}\n", smallest.rule),
        },
        (why, _) => why.to_string(),
    };
    let mut text = String::new();
    for line in why.lines().take(REASONS) {
        text += line;
        text.push('\n');
    }
    if why.lines().count() > REASONS {
        text += "            ...\n";
    }
    text
}

fn counted(cause: &Cause, smallest: &Distinct, cases: u64) -> String {
    let more = match cause.findings.len() - 1 {
        0 => String::new(),
        more => format!(", and {more} more like it"),
    };
    let also = match &cause.rules[1..] {
        [] => String::new(),
        others => format!(" (also {})", others.join(", ")),
    };
    format!(
        "{} of {cases} cases{also}: case {}, reduced to {}{more}",
        cause.cases,
        smallest.number,
        words::count(smallest.nodes, "node"),
    )
}

/// One finding: its reduced case and the explanation.
fn in_full(number: usize, finding: &Distinct) -> String {
    let kind = finding.kind.as_ref().map_or(String::new(), |kind| format!(": {kind}"));
    let Distinct { rule, number: case, nodes, .. } = finding;
    let mut text = format!("finding {number}: {rule}{kind} (case {case}, reduced to {nodes} nodes)\n");
    for part in [&finding.case, &finding.report] {
        text.push('\n');
        for line in part.trim_end().lines() {
            text += format!("    {line}").trim_end();
            text.push('\n');
        }
    }
    text + "\n"
}

/// The summaries as a page; cases are in this folder, where they are kept.
pub(super) fn page(summaries: &[Summary], folder: Option<&Path>) -> String {
    let campaigns: Vec<pages::campaign::Campaign> = summaries
        .iter()
        .map(|summary| pages::campaign::Campaign {
            title: &summary.title,
            summary: summary.text(),
            open: summary.open(),
            outcomes: summary.outcomes().into_iter().filter(|(_, count)| *count > 0).collect(),
            rules: summary.total.rules.iter().map(|(rule, count)| (&**rule, *count)).collect(),
            found: summary.causes().iter().filter_map(|cause| on_page(cause, summary, folder)).collect(),
        })
        .collect();
    pages::campaign::page(&campaigns)
}

fn on_page<'s>(
    cause: &Cause<'s>,
    summary: &Summary,
    folder: Option<&Path>,
) -> Option<pages::campaign::Found<'s>> {
    let (smallest, others) = cause.findings.split_first()?;
    let file = folder.map_or(PathBuf::new(), Path::to_path_buf).join(smallest.file_name());
    Some(pages::campaign::Found {
        rule: &smallest.rule,
        kind: smallest.kind.as_deref(),
        counted: counted(cause, smallest, summary.total.cases),
        why: &smallest.why,
        command: again(&file, &smallest.case),
        file: file.display().to_string(),
        case: &smallest.case,
        report: &smallest.report,
        others: others.iter().map(|other| (other.file_name(), &*other.case)).collect(),
    })
}

/// The command that judges a case of a finding again: of whom it expects a violation, and in what pass.
fn again(file: &Path, text: &str) -> String {
    let Ok(case) = crate::format::text::parse(text) else { return String::new() };
    let pass = case.pass.as_ref().map_or("rewrite", |pass| &pass.name);
    let who = case.expectations.iter().find_map(|expectation| match expectation {
        Expectation::Verdict { of: Subject::Candidate(name), is: Expected::Violates(_) } => Some(name),
        _ => None,
    });
    let who = match who {
        None => String::new(),
        Some(name) if candidates::find(name).is_ok() => format!(" --candidate {name}"),
        // A function of the user's own is called FILE.py:FUNCTION.
        Some(name) if name.contains(':') => format!(" --python {name}"),
        Some(_) => " --worker CMD".to_string(),
    };
    format!("graph-oracle check {pass} {}{who} --html finding.html", file.display())
}

/// The causes as JSON.
pub(super) fn json(summary: &Summary) -> Vec<serde_json::Value> {
    let cause = |cause: &Cause| {
        serde_json::json!({
            "rules": cause.rules,
            "kind": cause.kind,
            "cases": cause.cases,
            "findings": cause.findings.len(),
            "smallest": cause.findings.first().map(|finding| finding.number),
            "ways": cause.ways.iter().map(|(way, count)| serde_json::json!({"what": way, "findings": count})).collect::<Vec<_>>(),
        })
    };
    summary.causes().iter().map(cause).collect()
}
