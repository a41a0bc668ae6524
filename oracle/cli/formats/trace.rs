//! What a folder of traces came to, for the tools of others: a test for each pair, and one for the ranks.

use super::words::notice;
use crate::judge::Verdict;
use crate::report::results::{self, Level, Located, Notice, Place, Results, Test};
use crate::trace::{Outcome, Row, TraceReport};
use std::path::Path;

/// The results; `headline` and `notes` as in the report for people.
pub(in crate::cli) fn trace(
    report: &TraceReport,
    folder: &Path,
    headline: String,
    notes: Vec<String>,
) -> Results {
    let mut tests: Vec<Test> = report.rows.iter().map(|row| of_row(row, folder)).collect();
    if !report.rank_findings.is_empty() {
        let place = Some(Place::file(folder));
        let told = |line: &String| notice("trace/ranks-agree", Level::Error, line, place.clone());
        let notices = report.rank_findings.iter().map(told).collect();
        tests.push(Test {
            rule: Some("trace/ranks-agree".to_string()),
            notices,
            ..Test::new("ranks launch the same collectives", results::Outcome::Failed)
        });
    }
    if !report.rank_doubts.is_empty() {
        let place = Some(Place::file(folder));
        let notices = report
            .rank_doubts
            .iter()
            .map(|line| notice("trace/ranks-agree", Level::Note, line, place.clone()));
        tests.push(Test {
            rule: Some("trace/ranks-agree".to_string()),
            notices: notices.collect(),
            ..Test::new("ranks may launch other collectives", results::Outcome::Undecided)
        });
    }
    if tests.is_empty() {
        let notices =
            vec![notice("trace/judged", Level::Note, "there is nothing to judge", Some(Place::file(folder)))];
        tests.push(Test { notices, ..Test::new("pairs of graphs", results::Outcome::Undecided) });
    }
    Results { command: "trace".to_string(), headline, notes, replay: None, tests }
}

fn of_row(row: &Row, folder: &Path) -> Test {
    let rank = row.rank.map_or("?".to_string(), |rank| rank.to_string());
    let line = row.lines.1.unwrap_or(row.lines.0);
    let name = format!("{} {} rank {rank} ({}:{line})", row.pass, row.id, row.file);
    let file = if folder.is_dir() { folder.join(&row.file) } else { folder.to_path_buf() };
    let located = Located {
        place: Some(Place::line(&file, line)),
        related: match row.lines.1 {
            Some(_) => vec![(Place::line(&file, row.lines.0), "the graph before".to_string())],
            None => Vec::new(),
        },
    };
    let mut test = match &row.outcome {
        Outcome::Unchanged => Test::new(name, results::Outcome::Passed),
        Outcome::NotJudged(why) => {
            let notices =
                vec![Notice { located: located.clone(), ..notice("trace/judged", Level::Note, why, None) }];
            Test { notices, ..Test::new(name, results::Outcome::Undecided) }
        }
        Outcome::Judged(judgement) => {
            let notices = |reasons: Vec<&crate::rules::Reason>| {
                let told = |reason: &crate::rules::Reason| Notice {
                    located: located.clone(),
                    ..Notice::new(reason.code(), Level::Note, reason.to_string())
                };
                reasons.into_iter().map(told).collect::<Vec<_>>()
            };
            let (outcome, notices) = match &judgement.verdict {
                Verdict::Sound => (results::Outcome::Passed, Vec::new()),
                Verdict::Violated(findings) => {
                    let notices = results::notices_of(findings, &|_| located.clone());
                    (results::Outcome::Failed, notices)
                }
                Verdict::Refused(reason) => (results::Outcome::Undecided, notices(vec![reason])),
                Verdict::Undecided(reasons) => {
                    (results::Outcome::Undecided, notices(reasons.iter().collect()))
                }
            };
            Test { notices, ..Test::new(name, outcome) }
        }
    };
    test.seconds = Some(row.time.as_secs_f64());
    // What the verdict rests on is part of what is to be told.
    let allowed =
        row.allowed.iter().map(|allowed| format!("with --allow {allowed}, which passes of this name do"));
    let allowed: Vec<String> = allowed.collect();
    test.notices.iter_mut().for_each(|notice| notice.body.extend(allowed.iter().cloned()));
    test
}
