//! What an id of a notice stands for: a rule, a code of a reason, or a check of a command that judges no pass.

use super::results::Level;
use crate::rules::{self, Code, Severity};

/// What a notice names by its id: a rule, a code, or a check that is neither.
pub(super) struct Described {
    pub(super) statement: String,
    pub(super) reason: String,
    pub(super) level: Level,
}

/// Checks of commands that judge no pass: id, statement, reason.
const CHECKS: &[(&str, &str, &str)] = &[
    (
        "trace/ranks-agree",
        "Ranks that launched the same collectives before a pass launch the same ones after it.",
        "A rank that launches another collective than its peers waits for ever.",
    ),
    (
        "trace/judged",
        "Every pair of graphs that a pass wrote is judged.",
        "Of a pass whose graphs cannot be read or paired nothing is known.",
    ),
    (
        "fuzz/no-panic",
        "Neither the candidate nor the oracle panics on a case.",
        "A panic is no answer, and hides what comes after it.",
    ),
    (
        "fuzz/no-regression",
        "The new implementation breaks no rule that the old one keeps on the same cases.",
        "It is what a comparison of two versions asks.",
    ),
    (
        "fuzz/judged",
        "Some case was judged in which the candidate did something.",
        "A campaign in which a pass did nothing says nothing about it.",
    ),
    (
        "lifecycle/events",
        "Memory is allocated before it is used, freed once, and allocated and freed as predicted.",
        "What an executor does with memory that is not its own is anybody's value.",
    ),
    (
        "snapshot/events",
        "Events of a memory snapshot fit each other.",
        "A free of what was never allocated says that the snapshot, or the allocator, is wrong.",
    ),
    ("simulate/finishes", "All ranks finish.", "Ranks that wait for each other wait for ever."),
    (
        "flight/in-order",
        "All ranks launched the same collectives, and none waits for one that another rank never launched.",
        "A rank that waits for such a collective hangs until a watchdog ends it.",
    ),
];

/// What an id stands for.
pub(super) fn describe(id: &str) -> Described {
    if let Some(rule) = rules::statement(id) {
        let level = match rule.severity {
            Severity::Soundness => Level::Error,
            Severity::Policy => Level::Warning,
        };
        return Described { statement: rule.statement.into(), reason: rule.reason.into(), level };
    }
    if let Some((_, statement, reason)) = CHECKS.iter().find(|(known, ..)| *known == id) {
        let (statement, reason) = (statement.to_string(), reason.to_string());
        return Described { statement, reason, level: Level::Error };
    }
    // A code, or the word that a worker put behind one.
    let is_it = |code: &&Code| {
        let code = code.to_string();
        id == code || id.strip_prefix(&code).is_some_and(|rest| rest.starts_with('/'))
    };
    let statement = Code::ALL.iter().find(is_it).map_or("", |code| code.statement());
    let reason = "Where this is so, nothing is said for or against the pass.".to_string();
    Described { statement: statement.to_string(), reason, level: Level::Note }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_described() {
        assert_eq!(describe("bucket/members-independent").level, Level::Error);
        assert_eq!(
            describe("refused/by-worker/too-large").statement,
            "A worker declined, in words of its own."
        );
        assert_eq!(describe("simulate/finishes").statement, "All ranks finish.");
        assert_eq!(describe("values/rounding").level, Level::Note);
    }
}
