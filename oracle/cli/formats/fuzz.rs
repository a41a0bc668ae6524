//! What campaigns came to, for the tools of others: a test for each candidate and family.

use super::words::notice;
use crate::campaign::{Change, Diff, Distinct, Ending, Summary};
use crate::report::results::{Level, Outcome, Place, Results, Test};

/// Where the case of a finding was written, where it was.
pub(in crate::cli) type Written<'a> = &'a dyn Fn(usize, &Distinct) -> Option<Place>;

/// The results of campaigns; `written` says where a finding of the campaign with this number lies.
pub(in crate::cli) fn campaigns(summaries: &[Summary], written: Written) -> Results {
    let mut tests = Vec::new();
    for (number, summary) in summaries.iter().enumerate() {
        of_summary(summary, &|finding| written(number, finding), &mut tests);
    }
    let violated: u64 = summaries.iter().map(|summary| summary.total.violated).sum();
    let cases: u64 = summaries.iter().map(|summary| summary.total.cases).sum();
    Results {
        command: "fuzz".to_string(),
        headline: format!("{violated} of {cases} cases violated"),
        notes: summaries.iter().filter_map(|summary| stopped(&summary.ending)).collect(),
        replay: None,
        tests,
    }
}

fn stopped(ending: &Ending) -> Option<String> {
    match ending {
        Ending::Whole => None,
        Ending::Stopped(signal) => Some(format!("stopped by signal {signal}")),
        Ending::Failed(why) => Some(why.clone()),
    }
}

fn of_summary(summary: &Summary, written: &dyn Fn(&Distinct) -> Option<Place>, tests: &mut Vec<Test>) {
    let (title, total) = (&summary.title, &summary.total);
    let idle: Vec<&str> = summary.idle().into_iter().map(|(pass, _)| pass).collect();
    let mut left: Vec<&Distinct> = total.found.iter().collect();
    for (pass, (cases, acted)) in &total.acts {
        let (own, others): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|finding| total.acts.len() == 1 || pass_of(finding) == Some(pass));
        left = others;
        let mut test = Test::new(format!("{pass}: {title}"), Outcome::Passed);
        test.notices = own.iter().map(|finding| of_finding(finding, written(finding))).collect();
        if !own.is_empty() {
            test.outcome = Outcome::Failed;
        } else if idle.contains(&pass.as_str()) {
            let why = format!("the candidate did something in {acted} of {cases} cases");
            test.notices.push(notice("fuzz/judged", Level::Note, &why, None));
            test.outcome = Outcome::Undecided;
        }
        tests.push(test);
    }
    if total.acts.is_empty() {
        let why = "no case was judged";
        let notices = vec![notice("fuzz/judged", Level::Note, why, None)];
        tests.push(Test { notices, ..Test::new(title.as_str(), Outcome::Undecided) });
    }
    if let Some(why) = stopped(&summary.ending) {
        let notices = vec![notice("fuzz/judged", Level::Note, &format!("not done to its end: {why}"), None)];
        tests.push(Test { notices, ..Test::new(format!("the whole campaign: {title}"), Outcome::Undecided) });
    }
    for finding in left {
        let notices = vec![of_finding(finding, written(finding))];
        tests.push(Test { notices, ..Test::new(format!("{}: {title}", finding.rule), Outcome::Failed) });
    }
    if total.crashed > 0 {
        let first = total.first_crash.as_deref().unwrap_or("");
        let words = format!("{} cases panicked; the first: {first}", total.crashed);
        tests.push(Test {
            rule: Some("fuzz/no-panic".to_string()),
            notices: vec![notice("fuzz/no-panic", Level::Error, &words, None)],
            ..Test::new(format!("no panic: {title}"), Outcome::Failed)
        });
    }
    if total.invalid > 0 {
        let first = total.first_invalid.as_deref().unwrap_or("");
        let words = format!("{} cases could not be judged; the first: {first}", total.invalid);
        let notices = vec![notice("fuzz/judged", Level::Note, &words, None)];
        tests.push(Test {
            notices,
            ..Test::new(format!("all cases are judged: {title}"), Outcome::Undecided)
        });
    }
}

/// The pass of a finding, as its case says.
fn pass_of(finding: &Distinct) -> Option<&str> {
    let line = finding.case.lines().find_map(|line| line.strip_prefix("pass "))?;
    line.split_whitespace().next()
}

fn of_finding(finding: &Distinct, place: Option<Place>) -> crate::report::results::Notice {
    let kind = finding.kind.as_ref().map_or(String::new(), |kind| format!(": {kind}"));
    let words = format!(
        "{}{kind} (case {}, reduced to {} nodes)\n{}\n{}",
        finding.rule,
        finding.number,
        finding.nodes,
        finding.report.trim_end(),
        finding.case.trim_end()
    );
    let level = match crate::rules::statement(&finding.rule).map(|rule| rule.severity) {
        Some(crate::rules::Severity::Policy) => Level::Warning,
        _ => Level::Error,
    };
    notice(&finding.rule, level, &words, place)
}

/// The results of comparisons of two implementations.
pub(in crate::cli) fn diffs(diffs: &[Diff]) -> Results {
    let changes = |of: fn(&Diff) -> &Vec<Change>| diffs.iter().map(|diff| of(diff).len()).sum::<usize>();
    let (worse, better) = (changes(|diff| &diff.worse), changes(|diff| &diff.better));
    Results {
        command: "fuzz --against".to_string(),
        headline: format!("worse in {worse} ways, better in {better}"),
        notes: Vec::new(),
        replay: None,
        tests: diffs.iter().map(of_diff).collect(),
    }
}

fn of_diff(diff: &Diff) -> Test {
    let (new, old) = &diff.names;
    let mut test = Test::new(format!("{new} against {old}, {} cases", diff.cases), Outcome::Passed);
    test.rule = Some("fuzz/no-regression".to_string());
    test.notices = diff.worse.iter().map(of_change).collect();
    if !diff.worse.is_empty() {
        test.outcome = Outcome::Failed;
    } else if diff.acted.0 == 0 {
        let why = format!("{new} did nothing in any of {} cases", diff.cases);
        test.notices.push(notice("fuzz/judged", Level::Note, &why, None));
        test.outcome = Outcome::Undecided;
    }
    test
}

fn of_change(change: &Change) -> crate::report::results::Notice {
    let words = format!("worse: {} in {} cases, first in case {}", change.what, change.cases, change.first);
    let mut told = notice("fuzz/no-regression", Level::Error, &words, None);
    if let Some(reduced) = &change.reduced {
        told.body = of_finding(reduced, None).body;
    }
    told
}
