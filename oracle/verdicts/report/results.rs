//! What a run came to, in the shape that the formats of other tools share: tests, and notices with places.
//!
//! # The idea
//!
//! SARIF lists results, JUnit lists test cases, GitHub shows annotations. All three are written from one value: a test
//! for each rule, pair or candidate that was judged, with notices (what is to be told, at what level, and where).
//! [`of_judgement`] makes it from what the report for machines ([`json`](super::json)) is made of.
//!
//! # What it does not do
//!
//! It reads no files. Where a node stands in a file, and which line of the user's program made it, is asked of whoever
//! reports ([`Locate`]).

use crate::judge::{Judgement, Verdict};
use crate::rules::{Finding, Reason, RuleStatus, Severity};
use sha1::{Digest, Sha1};
use std::path::PathBuf;

/// How much a notice matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// A rule of soundness is violated, or something came to no end.
    Error,
    /// A rule of policy is violated.
    Warning,
    /// Not decided.
    Note,
}

/// A place in a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// The file, as it was named.
    pub file: PathBuf,
    /// Line and column, from 1, where they are known. Columns count Unicode characters.
    pub at: Option<(usize, Option<usize>)>,
}

impl Place {
    /// The whole of a file.
    pub fn file(file: impl Into<PathBuf>) -> Place {
        Place { file: file.into(), at: None }
    }

    /// A line of a file.
    pub fn line(file: impl Into<PathBuf>, line: usize) -> Place {
        Place { file: file.into(), at: Some((line, None)) }
    }
}

/// Where a notice is, and what else is to be looked at.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Located {
    /// Where it is.
    pub place: Option<Place>,
    /// Other places, each with what is there.
    pub related: Vec<(Place, String)>,
}

/// Says where a finding is; `None` asks for what is said of the whole.
pub type Locate<'a> = &'a dyn Fn(Option<&Finding>) -> Located;

/// Something to be told.
#[derive(Clone, PartialEq, Debug)]
pub struct Notice {
    /// The id of the rule, or the code of the reason.
    pub rule: String,
    /// How much it matters.
    pub level: Level,
    /// One line.
    pub title: String,
    /// What it rests on, a line each.
    pub body: Vec<String>,
    /// The nodes that it names.
    pub nodes: Vec<String>,
    /// Where it is.
    pub located: Located,
}

/// What became of a test.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// What was asked holds.
    Passed,
    /// It does not.
    Failed,
    /// Whether it holds is not known.
    Undecided,
    /// It was not asked; why.
    Skipped(String),
}

/// One thing that was asked.
#[derive(Clone, PartialEq, Debug)]
pub struct Test {
    /// Its name.
    pub name: String,
    /// The rule that it is about, where it is about one.
    pub rule: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// How long it took, where that is known.
    pub seconds: Option<f64>,
    /// What is to be told of it.
    pub notices: Vec<Notice>,
}

/// What a run came to.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Results {
    /// The command in words, such as `check bucketing`.
    pub command: String,
    /// The verdict and what was judged, in one line.
    pub headline: String,
    /// Lines for people.
    pub notes: Vec<String>,
    /// The command that repeats it.
    pub replay: Option<String>,
    /// What was asked.
    pub tests: Vec<Test>,
}

impl Results {
    /// All notices: errors first, then warnings, then notes.
    pub fn notices(&self) -> Vec<&Notice> {
        let mut all: Vec<&Notice> = self.tests.iter().flat_map(|test| &test.notices).collect();
        all.sort_by_key(|notice| notice.level);
        all
    }

    /// How many tests passed, failed, are undecided and were left out.
    pub fn counts(&self) -> [usize; 4] {
        let mut counts = [0; 4];
        for test in &self.tests {
            let count = match test.outcome {
                Outcome::Passed => 0,
                Outcome::Failed => 1,
                Outcome::Undecided => 2,
                Outcome::Skipped(_) => 3,
            };
            counts[count] += 1;
        }
        counts
    }
}

impl Test {
    /// A test about which nothing is to be told.
    pub fn new(name: impl Into<String>, outcome: Outcome) -> Test {
        Test { name: name.into(), rule: None, outcome, seconds: None, notices: Vec::new() }
    }
}

impl Notice {
    /// A notice without explanation.
    pub fn new(rule: impl Into<String>, level: Level, title: impl Into<String>) -> Notice {
        Notice {
            rule: rule.into(),
            level,
            title: title.into(),
            body: Vec::new(),
            nodes: Vec::new(),
            located: Located::default(),
        }
    }

    fn of_finding(finding: &Finding, cause: Option<&Finding>, locate: Locate) -> Notice {
        let level = match finding.severity {
            Severity::Soundness => Level::Error,
            Severity::Policy => Level::Warning,
        };
        let sides = [("expected", &finding.expected), ("observed", &finding.observed)];
        let sides = sides.iter().filter_map(|(word, side)| Some(format!("{word}: {}", side.as_ref()?)));
        let cause = cause.map(|cause| format!("follows from {}: {}", cause.rule, cause.title));
        Notice {
            body: finding.facts.iter().cloned().chain(sides).chain(cause).collect(),
            nodes: finding.nodes.iter().map(|node| node.name.clone()).collect(),
            located: locate(Some(finding)),
            ..Notice::new(finding.rule, level, super::text::titled(finding))
        }
    }

    fn of_reason(rule: &str, reason: &Reason, locate: Locate) -> Notice {
        let title = format!("{reason} [{}]", reason.code());
        Notice { located: locate(None), ..Notice::new(rule, Level::Note, title) }
    }

    /// The title and what it rests on, in lines.
    pub fn message(&self) -> String {
        self.body.iter().fold(self.title.clone(), |text, line| text + "\n" + line)
    }

    /// What stays the same from run to run: the rule, and the title without names of nodes and numbers.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha1::new();
        for part in [&self.rule, &blanked(&self.title, &self.nodes)] {
            hash.update(part);
            hash.update([0]);
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A text in which names and words with digits are `#`.
fn blanked(text: &str, names: &[String]) -> String {
    let is_inner = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut blanked = String::new();
    for piece in text.split_inclusive(|c| !is_inner(c)) {
        let word = piece.trim_end_matches(|c| !is_inner(c));
        let is_name = names.iter().any(|name| name == word || name == word.trim_end_matches('.'));
        match is_name || word.contains(|c: char| c.is_ascii_digit()) {
            true => blanked += "#",
            false => blanked += word,
        }
        blanked += piece.get(word.len()..).unwrap_or("");
    }
    blanked
}

/// The tests of a judgement: one for each rule, in the order of the report, and one for what is no rule's.
pub fn of_judgement(judgement: &Judgement, locate: Locate) -> Vec<Test> {
    let mut notices = match &judgement.verdict {
        Verdict::Violated(findings) => notices_of(findings, locate),
        Verdict::Sound | Verdict::Refused(_) | Verdict::Undecided(_) => Vec::new(),
    };
    let mut tests = Vec::new();
    for (id, status) in &judgement.rules {
        let (own, others) = notices.into_iter().partition(|notice| notice.rule == *id);
        notices = others;
        let mut test = Test { notices: own, ..Test::new(*id, Outcome::Passed) };
        test.rule = Some(id.to_string());
        test.outcome = match status {
            RuleStatus::Holds => Outcome::Passed,
            RuleStatus::Violated(_) => Outcome::Failed,
            RuleStatus::NotChecked(why) => Outcome::Skipped(why.to_string()),
            RuleStatus::Undecided(reason) => {
                test.notices.push(Notice::of_reason(id, reason, locate));
                Outcome::Undecided
            }
        };
        tests.push(test);
    }
    // Of rules that the table of the judgement does not list.
    for notice in notices {
        let rule = Some(notice.rule.clone());
        tests.push(Test {
            rule,
            notices: vec![notice],
            ..Test::new("not in the list of rules", Outcome::Failed)
        });
    }
    tests.extend(of_verdict(judgement, locate));
    tests
}

/// What a verdict says that no rule does: a refusal, or a reason that is no rule's.
fn of_verdict(judgement: &Judgement, locate: Locate) -> Option<Test> {
    // A verdict repeats the reasons of rules, behind their ids.
    let told = |reason: &&Reason| {
        let is_it = |of: &Reason| of.code() == reason.code() && reason.message.ends_with(&of.message);
        judgement.rules.iter().any(|(_, status)| matches!(status, RuleStatus::Undecided(of) if is_it(of)))
    };
    let (name, reasons): (&str, Vec<&Reason>) = match &judgement.verdict {
        Verdict::Refused(reason) => ("the candidate gives a result", vec![reason]),
        Verdict::Undecided(reasons) => {
            ("the verdict is known", reasons.iter().filter(|reason| !told(reason)).collect())
        }
        Verdict::Sound | Verdict::Violated(_) => return None,
    };
    if reasons.is_empty() {
        return None;
    }
    let notices = reasons.into_iter().map(|reason| Notice::of_reason(&reason.code(), reason, locate));
    Some(Test { notices: notices.collect(), ..Test::new(name, Outcome::Undecided) })
}

/// The notices of findings and of what follows from them.
pub fn notices_of(findings: &[Finding], locate: Locate) -> Vec<Notice> {
    fn add(findings: &[Finding], cause: Option<&Finding>, locate: Locate, notices: &mut Vec<Notice>) {
        for finding in findings {
            notices.push(Notice::of_finding(finding, cause, locate));
            add(&finding.consequences, Some(finding), locate, notices);
        }
    }
    let mut notices = Vec::new();
    add(findings, None, locate, &mut notices);
    notices
}

/// The verdict and what was judged, in one line.
pub fn headline(judgement: &Judgement, subject: &str) -> String {
    match &judgement.verdict {
        Verdict::Sound => format!("SOUND: {subject}"),
        Verdict::Violated(_) => format!("VIOLATED {}: {subject}", judgement.violated_rules().join(", ")),
        Verdict::Refused(_) => format!("REFUSED: {subject}"),
        Verdict::Undecided(_) => format!("UNDECIDED: {subject}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_blanked() {
        let names = ["wait_3".to_string(), "x".to_string()];
        assert_eq!(
            blanked("wait_3 reads x, [4, 8] of y before it: 2.5 ms.", &names),
            "# reads #, [#, #] of y before it: # ms."
        );
        assert_eq!(blanked("é→é", &[]), "é→é");
        assert_eq!(blanked("", &[]), "");
    }

    #[test]
    fn a_fingerprint_is_of_rule_and_title() {
        let notice = |rule: &str, name: &str| Notice {
            nodes: vec![name.to_string()],
            ..Notice::new(rule, Level::Error, format!("{name} is gone"))
        };
        let one = notice("rewrite/values", "a").fingerprint();
        assert_eq!(one, notice("rewrite/values", "another").fingerprint());
        assert_ne!(one, notice("rewrite/aliases", "a").fingerprint());
        assert_eq!(one.len(), 40);
    }
}
