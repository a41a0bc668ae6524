//! A distinct finding: a rule and the reduced shape that breaks it.

use crate::candidates::Candidate;
use crate::case::{Case, Expectation, Expected, Subject};
use crate::graph::Graph;
use crate::judge::{self, Options};
use crate::report;
use serde::{Deserialize, Serialize};

/// A finding that differs from the others by its rule or its shape.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Distinct {
    /// The rule.
    pub rule: String,
    /// The shape: operators in list order with the distances of their operands, names and sizes left out.
    pub shape: String,
    /// The case of the campaign that showed it first.
    pub number: u64,
    /// Nodes of the reduced case.
    pub nodes: usize,
    /// The reduced case, as a runnable text case.
    pub case: String,
    /// The explanation.
    pub report: String,
}

impl Distinct {
    /// Describes a reduced case.
    pub fn new(
        rule: &'static str,
        number: u64,
        case: &Case,
        candidate: &dyn Candidate,
        options: &Options,
    ) -> Distinct {
        let report = match judge::judge(case, candidate, options) {
            Ok(judgement) => report::text(&judgement, &format!("case {number} by {}", candidate.name()), None, false),
            Err(error) => error.to_string(),
        };
        let expectation = Expectation::Verdict {
            of: match candidate.name() {
                "reference" => Subject::Reference,
                name => Subject::Candidate(name.to_string()),
            },
            is: Expected::Violates(vec![rule.to_string()]),
        };
        let text = Case { expectations: vec![expectation], ..case.clone() }.to_string();
        Distinct { rule: rule.to_string(), shape: shape(&case.graph), number, nodes: case.graph.len(), case: text, report }
    }

    /// A file name for the reduced case.
    pub fn file_name(&self) -> String {
        format!("{}-{}.graph", self.rule.replace('/', "-"), self.number)
    }
}

/// The shape of a graph.
fn shape(graph: &Graph) -> String {
    let mut text = String::new();
    for id in graph.ids() {
        let mut word = match graph.node(id).op {
            crate::graph::Op::Call => graph.target(id).rsplit('.').nth(1).unwrap_or("call").to_string(),
            op => op.name().to_string(),
        };
        graph.for_each_input(id, &mut |input| word += &format!(" {}", i64::from(id.0) - i64::from(input.0)));
        text += &word;
        text.push(';');
    }
    text
}
