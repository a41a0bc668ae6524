//! Graphs in memory, judged as `graph-oracle check` judges files: for callers that are programs, such as the Python
//! package. The options are those of the command line, so that there is one list of them.

use super::check::Outcomes;
use super::files::{self, Input};
use super::{Arguments, Command, CouldNotRun};
use crate::candidates::Outcome;
use crate::case::Case;
use crate::graph::Graph;
use crate::judge::Judgement;
use crate::limits::Limits;
use clap::Parser;
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
    pub fn judge(&self) -> Result<(Judgement, String), CouldNotRun> {
        let (_, command) = self.command(&[])?;
        let Command::Check(check) = command else { return Err(CouldNotRun::new("no check")) };
        check.judge_in_memory(self.before.clone(), self.outcomes(), &Limits::default())
    }

    /// The report as a page for a browser.
    pub fn page(&self) -> Result<String, CouldNotRun> {
        let (all, command) = self.command(&["--html", "-"])?;
        let Command::Check(check) = command else { return Err(CouldNotRun::new("no check")) };
        let mut page = Vec::new();
        let before = Ok(Input::Case(Box::new(self.before.clone())));
        check.run_on(before, self.outcomes().map(Ok), &all, &Limits::default(), &mut page)?;
        Ok(String::from_utf8_lossy(&page).into_owned())
    }

    fn command(&self, more: &[&str]) -> Result<(Vec<OsString>, Command), CouldNotRun> {
        let (kind, options) =
            self.arguments.split_first().ok_or_else(|| CouldNotRun::new("no kind of pass"))?;
        let mut all: Vec<OsString> =
            ["graph-oracle".into(), "check".into(), kind.clone(), "before".into()].into();
        all.extend((0..self.after.len()).map(|number| OsString::from(format!("after-{number}"))));
        all.extend(options.iter().cloned());
        all.extend(more.iter().map(OsString::from));
        let parsed = Arguments::try_parse_from(&all).map_err(CouldNotRun::new)?;
        Ok((all, parsed.command))
    }

    fn outcomes(&self) -> Option<Outcomes> {
        let ranks = |index: usize| (self.after.len() > 1).then_some(index as u32);
        let outcome = |(index, graph): (usize, &Graph)| {
            let unrepaired = self.unrepaired.clone().filter(|_| index == 0);
            (ranks(index), Outcome { unrepaired, repaired: graph.clone() })
        };
        (!self.after.is_empty()).then(|| self.after.iter().enumerate().map(outcome).collect())
    }
}
