//! Graphs in memory, judged as `graph-oracle check` judges files: for callers that are programs, such as the Python
//! package. The options are those of the command line, so that there is one list of them.

use super::check::{Check, Outcomes, recorded};
use super::files::{self, Input};
use super::{Command, CouldNotRun, parsed};
use crate::candidates::Outcome;
use crate::case::{Case, RecordedParts};
use crate::graph::Graph;
use crate::judge::Judgement;
use crate::limits::Limits;
use std::ffi::OsString;
use std::path::Path;

/// A graph or a case from a file, or from `bytes` that are called `path`.
pub fn read_graph(path: &Path, bytes: Option<&[u8]>) -> Result<Case, CouldNotRun> {
    let limits = Limits::default();
    let read = match bytes {
        Some(bytes) => files::read_bytes(path, bytes, &limits)?,
        None => files::read(path, &limits)?,
    };
    match read {
        Input::Case(case) => Ok(*case),
        other => Ok(Case::of_graph(other.into_graph(path)?)),
    }
}

/// What `check` is given.
pub struct Pair {
    /// The graph before the pass, or a case.
    pub before: Case,
    /// The graphs after it: one, one for each rank, or the parts of a partition.
    pub after: Vec<Graph>,
    /// The graph after the pass and before its repair sort, if it was kept.
    pub unrepaired: Option<Graph>,
    /// The kind of pass, then options as on the command line: `["bucketing", "--set", "cap=64MiB"]`.
    pub arguments: Vec<OsString>,
}

impl Pair {
    /// The verdict, and what it is about.
    pub fn judge(self) -> Result<(Judgement, String), CouldNotRun> {
        let (_, check) = self.check(&[])?;
        let (before, outcomes) = self.parts();
        check.judge_in_memory(before, outcomes, &Limits::default())
    }

    /// The report as a page for a browser.
    pub fn page(self) -> Result<String, CouldNotRun> {
        let (all, check) = self.check(&["--html", "-"])?;
        let (before, outcomes) = self.parts();
        let (before, mut page) = (Ok(Input::Case(Box::new(before))), Vec::new());
        check.run_on(before, outcomes.map(Ok), &all, &Limits::default(), &mut page)?;
        Ok(String::from_utf8_lossy(&page).into_owned())
    }

    /// The command that judges files of this shape, and its arguments.
    fn check(&self, more: &[&str]) -> Result<(Vec<OsString>, Check), CouldNotRun> {
        let (kind, options) =
            self.arguments.split_first().ok_or_else(|| CouldNotRun::new("no kind of pass"))?;
        let mut arguments: Vec<OsString> = vec!["check".into(), kind.clone(), "before".into()];
        arguments.extend((0..self.after.len()).map(|number| OsString::from(format!("after-{number}"))));
        arguments.extend(options.iter().cloned());
        arguments.extend(more.iter().map(OsString::from));
        match parsed(arguments)? {
            (all, Command::Check(check)) => Ok((all, check)),
            _ => Err(CouldNotRun::new("no check")),
        }
    }

    /// As one case, with its outcome recorded.
    pub fn case(self) -> Case {
        let is_partition = self.arguments.first().is_some_and(|kind| kind == "partition");
        if let (true, [forward, backward]) = (is_partition, &self.after[..]) {
            let parts = RecordedParts { forward: forward.clone(), backward: backward.clone() };
            return Case { parts: Some(Box::new(parts)), ..self.before };
        }
        let (before, outcomes) = self.parts();
        let outcome = outcomes.map(recorded);
        Case { outcome: outcome.or(before.outcome), ..before }
    }

    fn parts(self) -> (Case, Option<Outcomes>) {
        let is_one_a_rank = self.after.len() > 1;
        let mut unrepaired = self.unrepaired;
        let outcome = |(index, repaired)| {
            let outcome = Outcome { unrepaired: unrepaired.take(), repaired };
            (is_one_a_rank.then_some(index), outcome)
        };
        let outcomes: Outcomes = (0..).zip(self.after).map(outcome).collect();
        (self.before, (!outcomes.is_empty()).then_some(outcomes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text;

    #[test]
    fn a_pair_is_a_case_with_its_outcome() {
        let read = |text: &str| text::parse(text.as_bytes()).unwrap();
        let before = "world 2 ranks, groups dp = [0 1]\nx = input : f32[4]\ny = neg(x)\noutput y\n";
        let after = before.replace("neg", "abs");
        for outcomes in [1, 2] {
            let after: Vec<Graph> = (0..outcomes).map(|_| read(&after).graph).collect();
            let arguments = vec!["rewrite".into()];
            let pair = Pair { before: read(before), after, unrepaired: None, arguments };
            let case = read(&text::print(&pair.case()));
            let graphs: Vec<_> = case.outcome.iter().flat_map(|outcome| outcome.entries()).collect();
            assert_eq!(graphs.len(), outcomes);
            assert!(graphs.iter().all(|(_, of)| of.repaired.find_target("aten.abs.default").is_some()));
        }
    }
}
