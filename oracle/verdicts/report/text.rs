//! The report for people: verdict first, then each finding with its explanation, then what was and was not
//! checked, and last the command that repeats it.

use crate::judge::{Judgement, Verdict};
use crate::rules::{Finding, RuleStatus, Severity, name_ranks};
use crate::words;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Findings told in full before the rest is only listed, unless asked for.
const IN_FULL: usize = 20;

/// Findings of which at least the title is told, unless more is asked for.
const TITLES: usize = 60;

/// Consequences of one finding told in full before the rest is only listed, unless asked for.
const CONSEQUENCES: usize = 3;

/// The report. `subject` says what was judged, `replay` is the command that repeats it.
pub fn text(judgement: &Judgement, subject: &str, replay: Option<&str>, verbose: bool) -> String {
    text_pointing(judgement, subject, replay, verbose, &|_| String::new())
}

/// The same, with the lines that `points` gives below each finding that is told in full.
pub fn text_pointing(
    judgement: &Judgement,
    subject: &str,
    replay: Option<&str>,
    verbose: bool,
    points: &dyn Fn(&Finding) -> String,
) -> String {
    let mut out = String::new();
    headline(&mut out, judgement, subject);
    if let Verdict::Violated(findings) = &judgement.verdict {
        for (i, finding) in findings.iter().enumerate() {
            if i < IN_FULL || verbose {
                out.push('\n');
                write_finding(&mut out, finding, i + 1, 0, verbose, &points(finding));
            } else if i < TITLES {
                let _ = writeln!(out, "{}. {}: {}", i + 1, finding.rule, titled(finding));
            }
        }
        if !verbose {
            let mut more: BTreeMap<&str, usize> = BTreeMap::new();
            findings.iter().skip(TITLES).for_each(|finding| *more.entry(finding.rule).or_default() += 1);
            for (rule, count) in more {
                let _ = writeln!(out, "and {count} more of {rule}");
            }
        }
        if findings.len() > IN_FULL && !verbose {
            let _ =
                writeln!(out, "({IN_FULL} of {} findings told in full; --verbose tells all)", findings.len());
        }
    }
    out.push('\n');
    for line in &judgement.notes {
        let _ = writeln!(out, "{line}");
    }
    summary(&mut out, judgement, verbose);
    if let Some(replay) = replay {
        let _ = writeln!(out, "repeat with: {replay}");
    }
    out
}

fn headline(out: &mut String, judgement: &Judgement, subject: &str) {
    let _ = match &judgement.verdict {
        Verdict::Sound => writeln!(out, "SOUND: {subject}"),
        Verdict::Violated(findings) => {
            let rules = judgement.violated_rules();
            let all: usize = findings.iter().map(|f| f.all().len()).sum();
            writeln!(out, "VIOLATED {}: {subject} ({})", rules.join(", "), words::count(all, "finding"))
        }
        Verdict::Refused(reason) => {
            writeln!(out, "REFUSED: {subject}\n  the candidate declined: {reason} [{}]", reason.code())
        }
        Verdict::Undecided(reasons) => {
            let _ = writeln!(out, "UNDECIDED: {subject}");
            reasons.iter().try_for_each(|reason| writeln!(out, "  {reason} [{}]", reason.code()))
        }
    };
}

/// One finding, without what follows from it: what is wrong, and the three parts of its explanation.
pub fn finding(finding: &Finding) -> String {
    let mut out = String::new();
    write_title(&mut out, finding);
    write_reasons(&mut out, finding, "");
    out
}

/// The title, with the ranks that it is about where others have graphs without it.
pub(super) fn titled(finding: &Finding) -> String {
    match &finding.ranks[..] {
        [] => finding.title.clone(),
        ranks => format!("on {}: {}", name_ranks(ranks), finding.title),
    }
}

fn write_finding(
    out: &mut String,
    finding: &Finding,
    number: usize,
    depth: usize,
    verbose: bool,
    lines: &str,
) {
    let pad = "  ".repeat(depth);
    let _ = write!(out, "{pad}{number}. ");
    write_title(out, finding);
    write_place(out, finding, &pad);
    write_reasons(out, finding, &pad);
    out.push_str(lines);
    if !finding.consequences.is_empty() {
        let _ = writeln!(out, "{pad}   It follows that:");
        for (i, consequence) in finding.consequences.iter().enumerate() {
            if i < CONSEQUENCES || verbose {
                write_finding(out, consequence, i + 1, depth + 2, verbose, "");
            } else {
                let _ = writeln!(out, "{pad}    {}. {}: {}", i + 1, consequence.rule, titled(consequence));
            }
        }
    }
}

fn write_title(out: &mut String, finding: &Finding) {
    let severity = match finding.severity {
        Severity::Soundness => "",
        Severity::Policy => " (policy)",
    };
    let _ = writeln!(out, "{}{severity}: {}", finding.rule, titled(finding));
}

/// Where it is.
fn write_place(out: &mut String, finding: &Finding, pad: &str) {
    if !finding.nodes.is_empty() {
        const SHOWN: usize = 8;
        let mut nodes: Vec<String> = finding.nodes.iter().take(SHOWN).map(ToString::to_string).collect();
        if finding.nodes.len() > SHOWN {
            nodes.push(format!("and {} more", finding.nodes.len() - SHOWN));
        }
        let _ = writeln!(out, "{pad}   where:   {}", nodes.join(", "));
    }
}

/// The three parts of its explanation.
fn write_reasons(out: &mut String, finding: &Finding, pad: &str) {
    for (i, fact) in finding.facts.iter().enumerate() {
        let _ = writeln!(out, "{pad}   {:8} {fact}", if i == 0 { "let:" } else { "" });
    }
    // A side that stands alone contradicts the title.
    let (then, however) = match (&finding.expected, &finding.observed) {
        (Some(expected), None) => (None, Some(expected)),
        (expected, observed) => (expected.as_ref(), observed.as_ref()),
    };
    if let Some(then) = then {
        let _ = writeln!(out, "{pad}   then:    {then}.");
    }
    if let Some(however) = however {
        let mut lines = however.lines();
        let first = lines.next().unwrap_or("");
        let rest: Vec<&str> = lines.collect();
        let end = if rest.is_empty() && then.is_some() { ": a contradiction." } else { "" };
        let _ = writeln!(out, "{pad}   however: {first}{end}");
        for (i, line) in rest.iter().enumerate() {
            let end = if i + 1 == rest.len() && then.is_some() { ": a contradiction." } else { "" };
            let _ = writeln!(out, "{pad}            {line}{end}");
        }
    }
}

fn summary(out: &mut String, judgement: &Judgement, verbose: bool) {
    let count = |wanted: fn(&RuleStatus) -> bool| judgement.rules.iter().filter(|(_, s)| wanted(s)).count();
    let holds = count(|s| matches!(s, RuleStatus::Holds));
    let violated = count(|s| matches!(s, RuleStatus::Violated(_)));
    let undecided = count(|s| matches!(s, RuleStatus::Undecided(_)));
    let skipped = count(|s| matches!(s, RuleStatus::NotChecked(_)));
    let _ = writeln!(
        out,
        "{} rules: {holds} hold, {violated} violated, {undecided} undecided, {skipped} not checked{}",
        judgement.rules.len(),
        if skipped > 0 && !verbose { " (--verbose says why)" } else { "" }
    );
    for (id, status) in &judgement.rules {
        let _ = match status {
            RuleStatus::NotChecked(why) if verbose => writeln!(out, "  not checked  {id}: {why}"),
            RuleStatus::Undecided(why) => writeln!(out, "  undecided    {id}: {why} [{}]", why.code()),
            RuleStatus::Holds if verbose => writeln!(out, "  holds        {id}"),
            RuleStatus::Violated(n) if verbose => writeln!(out, "  violated     {id}: {n}"),
            _ => Ok(()),
        };
    }
}
