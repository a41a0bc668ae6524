//! What a worker process may not do (docs/protocol.md), and what becomes of it when it does.
//!
//! # The idea
//!
//! A candidate in another process can fail in ways that no graph shows: it ends, it hangs, it says what cannot be read.
//! Each is a [`Failure`] about the case at hand and becomes a finding of a rule here, which is reduced like any other.
//! Two failures of one rule may have nothing in common, so they also have a *kind*: the title, in which the names of
//! nodes and all numbers are blanks. A reduction keeps the kind, and two findings of different kinds are two.
//!
//! # What it does not do
//!
//! It starts and watches no process: `candidates::worker` does.

use super::{Finding, Promise, RuleStatus, Severity, Stage};
use crate::graph::Graph;

/// How a worker failed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Class {
    /// The process ended.
    Crash,
    /// It did not answer in time.
    Hang,
    /// It said what is no message.
    Garbage,
    /// It answered another request.
    WrongId,
    /// It said too much.
    Oversized,
    /// Its implementation raised an exception.
    Error,
}

/// The rules, in the order of [`Class`].
pub static CATALOGUE: &[Promise] = &[
    Promise {
        id: "worker/crash",
        statement: "The process of an implementation stays alive.",
        reason: "A compiler that dies takes the program with it.",
    },
    Promise {
        id: "worker/hang",
        statement: "An implementation answers within the time limit.",
        reason: "A compiler that does not come to an end is of no use.",
    },
    Promise {
        id: "worker/garbage",
        statement: "A worker writes messages that can be read to its standard output, and nothing else.",
        reason: "What cannot be read cannot be judged.",
    },
    Promise {
        id: "worker/wrong-id",
        statement: "Each request is answered once, with its own id.",
        reason: "An answer to another request says nothing about this one.",
    },
    Promise {
        id: "worker/oversized",
        statement: "An answer keeps within the size limit.",
        reason: "A pass does not make a graph much larger.",
    },
    Promise {
        id: "worker/error",
        statement: "An implementation raises no exception on a graph that it should take.",
        reason: "The compilation of the user's program fails.",
    },
];

/// How a worker failed on a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The class.
    pub class: Class,
    /// One line, the same for all failures of one kind: see [`blanked`].
    pub title: String,
    /// What else is known, a line each: the message, the traceback, the end of standard error.
    pub facts: Vec<String>,
}

impl Failure {
    /// The rule that it violates.
    pub fn rule(&self) -> &'static str {
        CATALOGUE.get(self.class as usize).map_or("worker/error", |rule| rule.id)
    }

    /// As a finding, with what became of the rules.
    pub fn finding(&self) -> (Finding, Vec<(&'static str, RuleStatus)>) {
        let rule = self.rule();
        let finding = Finding::new(rule, Severity::Soundness, Stage::Before, self.title.clone());
        (finding.facts(self.facts.clone()), vec![(rule, RuleStatus::Violated(1))])
    }
}

/// The kind of a finding; `None` where findings of a rule have none.
pub fn kind(finding: &Finding) -> Option<&str> {
    CATALOGUE.iter().any(|rule| rule.id == finding.rule).then_some(finding.title.as_str())
}

/// Characters of a line that are looked at.
const MOST: usize = 300;

/// The first line of a message with `#` for the names of nodes, for numbers and for addresses, so that one message
/// about two graphs is one text.
pub fn blanked(message: &str, graph: &Graph) -> String {
    blanked_of(message, |word| graph.find(word).is_some())
}

/// The same, where words for which `is_name` holds are names.
pub(super) fn blanked_of(message: &str, is_name: impl Fn(&str) -> bool) -> String {
    let line: String = message
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("")
        .chars()
        .take(MOST)
        .collect();
    let is_inner = |c: char| c.is_alphanumeric() || c == '_';
    let mut text = String::with_capacity(line.len());
    let mut rest = line.as_str();
    while let Some(first) = rest.chars().next() {
        let end = match is_inner(first) {
            true => rest.find(|c| !is_inner(c)).unwrap_or(rest.len()),
            false => first.len_utf8(),
        };
        let (word, after) = rest.split_at(end);
        let is_address = word.strip_prefix("0x").is_some_and(|w| w.bytes().all(|b| b.is_ascii_hexdigit()));
        if is_address || (is_inner(first) && is_name(word)) {
            text.push('#');
        } else {
            for c in word.chars() {
                match c.is_ascii_digit() {
                    true if text.ends_with('#') => {}
                    true => text.push('#'),
                    false => text.push(c),
                }
            }
        }
        rest = after;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_about_two_graphs_are_one_text() {
        let graph = |name: &str| {
            let text = format!("%\"{name}\" = input : f32[4]\noutput (%\"{name}\")\n");
            crate::format::text::parse(text.as_bytes()).unwrap().graph
        };
        let message = |name: &str, n: u32| {
            format!(
                "\n  node {name} at 0x7f{n:x} has 1{n} users: view_{n} of float32, torch.Size([{n}, 4])\nmore"
            )
        };
        let one = blanked(&message("relu", 3), &graph("relu"));
        assert_eq!(one, blanked(&message("größe", 455), &graph("größe")));
        assert_eq!(one, "node # at # has # users: view_# of float#, torch.Size([#, #])");
        // Another name is another text.
        assert_ne!(one, blanked(&message("mm", 3), &graph("relu")));
        assert_eq!(blanked("", &graph("x")), "");
    }

    #[test]
    fn each_class_has_its_rule() {
        let classes =
            [Class::Crash, Class::Hang, Class::Garbage, Class::WrongId, Class::Oversized, Class::Error];
        let rule = |class| Failure { class, title: "t".into(), facts: Vec::new() }.rule();
        let rules: Vec<&str> = classes.into_iter().map(rule).collect();
        assert_eq!(rules, CATALOGUE.iter().map(|rule| rule.id).collect::<Vec<_>>());
        let failure = Failure { class: Class::Hang, title: "no answer".into(), facts: Vec::new() };
        assert_eq!(kind(&failure.finding().0), Some("no answer"));
    }
}
