//! What events, snapshots and simulations came to, for the tools of others.

use super::words::notice;
use crate::lifecycle::Summary;
use crate::report::memory::Measured;
use crate::report::results::{Level, Notice, Outcome, Place, Results, Test};
use crate::simulate::Report;
use std::path::Path;

/// A run that asks one thing.
pub(in crate::cli) fn one(
    command: &str,
    name: &str,
    rule: &str,
    holds: Option<bool>,
    told: Vec<Notice>,
) -> Results {
    let (outcome, word) = match holds {
        Some(true) => (Outcome::Passed, "yes"),
        Some(false) => (Outcome::Failed, "no"),
        None => (Outcome::Undecided, "not known"),
    };
    let mut test = Test { rule: Some(rule.to_string()), notices: told, ..Test::new(name, outcome) };
    // Whoever reads notices alone is told that it failed.
    if test.notices.is_empty() && test.outcome != Outcome::Passed {
        let level = if test.outcome == Outcome::Failed { Level::Error } else { Level::Note };
        test.notices.push(notice(rule, level, &format!("{name}: {word}"), None));
    }
    Results {
        command: command.to_string(),
        headline: format!("{name}: {word}"),
        tests: vec![test],
        ..Results::default()
    }
}

/// Events of an executor, which stand in a file a line each.
pub(in crate::cli) fn lifecycle(summary: &Summary, notes: &[String], path: &Path, text: &[u8]) -> Results {
    let lines = text.split(|&byte| byte == b'\n').zip(1..);
    let lines: Vec<usize> = lines
        .filter(|(line, _)| !line.iter().all(u8::is_ascii_whitespace))
        .map(|(_, number)| number)
        .collect();
    let told = summary.faults.iter().map(|fault| {
        let event = fault.event.and_then(|event| usize::try_from(event).ok()?.checked_sub(1));
        let line = event.and_then(|event| lines.get(event));
        let place = line.map_or_else(|| Place::file(path), |&line| Place::line(path, line));
        notice("lifecycle/events", Level::Error, &fault.to_string(), Some(place))
    });
    let told: Vec<Notice> = told.collect();
    let name = format!("{} events in {} steps are right", summary.events, summary.steps);
    let is_right = (summary.events > 0 || !told.is_empty()).then_some(told.is_empty());
    let results = one("lifecycle", &name, "lifecycle/events", is_right, told);
    Results { notes: notes.to_vec(), ..results }
}

/// A memory snapshot: a test for each device.
pub(in crate::cli) fn snapshot(measured: &Measured, path: &Path) -> Results {
    let place = || Some(Place::file(path));
    let tests = measured.devices.iter().enumerate().map(|(number, device)| {
        let failed = device.out_of_memory.iter().map(|&event| measured.ran_out_at(number, event));
        let told = device.faults.iter().map(ToString::to_string).chain(failed);
        let mut notices: Vec<Notice> =
            told.map(|words| notice("snapshot/events", Level::Error, &words, place())).collect();
        let outcome = match (notices.is_empty(), device.events) {
            (false, _) => Outcome::Failed,
            (true, 0) => {
                let why = format!("device {} has no events", device.device);
                notices.push(notice("snapshot/events", Level::Note, &why, place()));
                Outcome::Undecided
            }
            (true, _) => Outcome::Passed,
        };
        let name = format!("device {}: {} events fit each other", device.device, device.events);
        Test { rule: Some("snapshot/events".to_string()), notices, ..Test::new(name, outcome) }
    });
    let faults = measured.faults();
    let ran_out = if measured.ran_out() { "; an allocation failed: out of memory" } else { "" };
    Results {
        command: "lifecycle".to_string(),
        headline: format!("{}: {faults} events cannot be right{ran_out}", path.display()),
        notes: measured.devices.iter().flat_map(|device| device.notes.clone()).collect(),
        replay: None,
        tests: tests.collect(),
    }
}

/// A simulation.
pub(in crate::cli) fn simulation(report: &Report, path: Option<&Path>) -> Results {
    let rule = "simulate/finishes";
    let told = |level: Level, words: String| notice(rule, level, &words, path.map(Place::file));
    let faults = report.faults.iter().chain(&report.hangs).cloned();
    let mismatches = report.mismatches.iter().map(ToString::to_string);
    let deadlock = report.deadlock.iter().map(ToString::to_string);
    let errors = faults.chain(mismatches).chain(deadlock).map(|words| told(Level::Error, words));
    let unmodelled = report.unmodelled.iter().map(|why| told(Level::Note, format!("not modelled: {why}")));
    let warnings = report.warnings.iter().map(|why| told(Level::Warning, why.clone()));
    let told = errors.chain(unmodelled).chain(warnings).collect();
    one("simulate", "all ranks finish", rule, report.finishes(), told)
}
