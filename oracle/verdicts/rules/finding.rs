//! A finding: one way in which an outcome breaks a rule, explained the way a person would.
//!
//! The explanation has three parts, after Elle (Kingsbury and Alvaro, 2020): the facts, what is expected by them, and
//! what is observed: a contradiction. Reports for people say *let*, *then* and *however*.

use super::worker;
use crate::format::Spot;
use crate::graph::Graph;
use crate::words;
use std::fmt;

/// How much a rule's violation matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// Holds for every correct implementation: a violation is an error.
    Soundness,
    /// Holds where the pass promises it, within a budget.
    Policy,
}

/// Which graph a finding is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stage {
    /// The input.
    Before,
    /// The result before its topological repair.
    Unrepaired,
    /// The final result.
    After,
}

impl Stage {
    /// The word for people.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Before => "before",
            Stage::Unrepaired => "after, not yet repaired",
            Stage::After => "after",
        }
    }
}

/// A node that a finding names, with its list position in each graph that has it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NodeMention {
    /// Its name.
    pub name: String,
    /// Position in the graph before the pass.
    pub before: Option<u32>,
    /// Position in the graph after the pass.
    pub after: Option<u32>,
}

impl NodeMention {
    /// Where it is looked for in a file.
    pub fn spot(&self) -> Spot {
        match (self.before, self.after) {
            (None, Some(_)) => Spot::After(self.name.clone()),
            _ => Spot::Node(self.name.clone()),
        }
    }
}

impl fmt::Display for NodeMention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        match (self.before, self.after) {
            (Some(b), Some(a)) if a == b => write!(f, " (#{b})"),
            (Some(b), Some(a)) => write!(f, " (#{b} before, #{a} after)"),
            (Some(b), None) => write!(f, " (#{b} before)"),
            (None, Some(a)) => write!(f, " (#{a} after)"),
            (None, None) => Ok(()),
        }
    }
}

/// One violation of one rule.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// The rule's id.
    pub rule: &'static str,
    /// The rule's severity.
    pub severity: Severity,
    /// The graph in which it shows.
    pub stage: Stage,
    /// One line that says what is wrong.
    pub title: String,
    /// The nodes involved, the most important first.
    pub nodes: Vec<NodeMention>,
    /// The facts that the explanation builds on.
    pub facts: Vec<String>,
    /// What a right result has.
    pub expected: Option<String>,
    /// What this one has.
    pub observed: Option<String>,
    /// The global ranks whose graphs show it; none where all that are known do, or where there is one graph.
    pub ranks: Vec<u32>,
    /// Whether this is where values first part: the cause of what else differs.
    pub is_cause: bool,
    /// Findings that follow from this one.
    pub consequences: Vec<Finding>,
}

impl Finding {
    /// A finding without nodes and explanation.
    pub fn new(rule: &'static str, severity: Severity, stage: Stage, title: impl Into<String>) -> Finding {
        Finding {
            rule,
            severity,
            stage,
            title: title.into(),
            nodes: Vec::new(),
            facts: Vec::new(),
            expected: None,
            observed: None,
            ranks: Vec::new(),
            is_cause: false,
            consequences: Vec::new(),
        }
    }

    /// Cuts long statements, of those that follow from it too.
    pub fn cut(&mut self) {
        self.each_text(&mut words::cut);
    }

    /// Does something to every text, of those that follow from it too.
    pub fn each_text(&mut self, change: &mut dyn FnMut(&mut String)) {
        let rest = self.facts.iter_mut().chain(&mut self.expected).chain(&mut self.observed);
        let names = self.nodes.iter_mut().map(|node| &mut node.name);
        rest.chain(names).chain([&mut self.title]).for_each(&mut *change);
        self.consequences.iter_mut().for_each(|finding| finding.each_text(change));
    }

    /// This finding and all that follow from it.
    pub fn all(&self) -> Vec<&Finding> {
        let mut all = vec![self];
        all.extend(self.consequences.iter().flat_map(Finding::all));
        all
    }

    /// Its title with `#` for names of nodes and for numbers, so that one mistake in two graphs is one text.
    pub fn blanked(&self, graph: &Graph) -> String {
        let is_mentioned = |word: &str| self.nodes.iter().any(|node| node.name == word);
        worker::blanked_of(&self.title, |word| is_mentioned(word) || graph.find(word).is_some())
    }

    /// Everything that it says, in the order in which people are told.
    pub fn explanation(&self) -> String {
        let rest = self.facts.iter().chain(&self.expected).chain(&self.observed);
        rest.fold(self.title.clone(), |text, line| text + "\n" + line)
    }
}
