//! A distinct finding: a rule, the method that breaks it and the reduced shape on which it does.

use super::store::free;
use crate::candidates::{Candidate, CandidateExt, Reference};
use crate::case::{Case, Expectation, Expected, Subject};
use crate::files;
use crate::graph::{Graph, Op};
use crate::judge::{self, Options, Verdict};
use crate::reduce::Pin;
use crate::report;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A finding that differs from the others by its rule or its shape.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Distinct {
    /// The rule.
    pub rule: String,
    /// Its kind, where findings of the rule have one: the exception that an implementation raises, for example.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The option `method` of the pass, where the case has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The shape: operators in list order with the distances of their operands; names and sizes left out.
    pub shape: String,
    /// The case of the campaign that showed it first.
    pub number: u64,
    /// Nodes of the reduced case.
    pub nodes: usize,
    /// What is wrong, with names and numbers blanked; empty in records of before there was one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub way: String,
    /// The violation of the rule alone, explained; empty in records of before there was one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The reduced case, as a runnable text case.
    pub case: String,
    /// The explanation.
    pub report: String,
}

impl Distinct {
    /// Describes a reduced case.
    pub fn new(
        pin: &Pin,
        number: u64,
        case: &Case,
        candidate: &dyn Candidate,
        options: &Options,
    ) -> Distinct {
        let (mut way, mut why) = (String::new(), String::new());
        let report = match judge::judge(case, candidate, options) {
            Ok(judgement) => {
                if let Some(finding) = pin.finding(&judgement) {
                    (way, why) = (finding.blanked(&case.graph), report::finding(finding));
                }
                report::text(&judgement, &format!("case {number} by {}", candidate.name()), None, false)
            }
            Err(error) => error.to_string(),
        };
        // So that the case says what was promised to whoever reads it without the candidate.
        let promised = Case { pass: case.pass.as_ref().map(|pass| candidate.promised(pass)), ..case.clone() };
        let case_text = expecting(pin.rule, &promised, candidate, options).to_string();
        Distinct { way, why, ..Distinct::with_report(pin, number, case, case_text, report) }
    }

    /// Describes a case that is not reduced, without judging it again.
    pub(super) fn unreduced(
        pin: &Pin,
        number: u64,
        case: &Case,
        candidate: &dyn Candidate,
        report: String,
    ) -> Distinct {
        let case_text = breaking(pin.rule, case, candidate.name()).to_string();
        Distinct::with_report(pin, number, case, case_text, report)
    }

    fn with_report(pin: &Pin, number: u64, case: &Case, case_text: String, report: String) -> Distinct {
        Distinct {
            rule: pin.rule.to_string(),
            kind: pin.kind.clone(),
            method: super::method_of(case).map(String::from),
            shape: shape(&case.graph),
            number,
            nodes: case.graph.len(),
            way: String::new(),
            why: String::new(),
            case: case_text,
            report,
        }
    }

    /// Whether it is the same finding.
    pub fn is_same(&self, other: &Distinct) -> bool {
        self.rule == other.rule
            && self.kind == other.kind
            && self.method == other.method
            && self.shape == other.shape
    }

    /// The file that holds the reduced case, in a folder of a campaign or of reproductions; `None` where there is none.
    pub fn file_in(&self, folder: &Path) -> Option<PathBuf> {
        let is_ours = |path: &Path| files::holds(path, &self.case);
        let name = self.file_name();
        let beside = free(folder, &name, is_ours);
        let inside = free(folder, name.trim_end_matches(".graph"), |path| is_ours(&path.join("case.graph")));
        [folder.join(beside), folder.join(inside).join("case.graph")].into_iter().find(|path| path.exists())
    }

    /// A file name for the reduced case.
    pub fn file_name(&self) -> String {
        format!("{}-{}.graph", self.rule.replace('/', "-"), self.number)
    }
}

/// A case that expects the reference to be sound, if it is, and the candidate to violate the rule.
pub fn expecting(rule: &str, case: &Case, candidate: &dyn Candidate, options: &Options) -> Case {
    let mut case = breaking(rule, case, candidate.name());
    if candidate.name() != Reference.name()
        && judge::judge(&case, &Reference, options).is_ok_and(|j| j.verdict == Verdict::Sound)
    {
        let sound = Expectation::Verdict { of: Subject::Reference, is: Expected::Sound };
        case.expectations.insert(0, sound);
    }
    case
}

/// A case that expects a candidate to violate the rule. Nothing is judged.
pub fn breaking(rule: &str, case: &Case, candidate: &str) -> Case {
    let of = match candidate {
        name if name == Reference.name() => Subject::Reference,
        name => Subject::Candidate(name.to_string()),
    };
    let is = Expected::Violates(vec![rule.to_string()]);
    Case { expectations: vec![Expectation::Verdict { of, is }], ..case.clone() }
}

/// The shape of a graph.
fn shape(graph: &Graph) -> String {
    let mut text = String::new();
    for id in graph.ids() {
        text += match graph.node(id).op {
            Op::Call => graph.target(id).rsplit('.').nth(1).unwrap_or("call"),
            op => op.name(),
        };
        graph.for_each_input(id, &mut |input| text += &format!(" {}", i64::from(id.0) - i64::from(input.0)));
        text.push(';');
    }
    text
}
