//! `graph-oracle score --edits`: what the oracle says of small edits of a right outcome.

use super::files::{self, Input};
use super::idle::settings::{self, Reader};
use super::numbers::within;
use super::{CouldNotRun, PassOptions, ReportFormat, Status, TextOrJson, print};
use crate::candidates::{Candidate, CandidateExt, Outcome, Reference, judging};
use crate::case::Case;
use crate::edits::{self, Edited, Given, Ranks};
use crate::family::Gives;
use crate::graph::Graph;
use crate::judge::{self, Options};
use crate::limits::Limits;
use crate::rules::PassKind;
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// Which edits are listed one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Show {
    /// Those that slept, and wolves.
    Slept,
    /// These, and those that were undecided or cut off.
    Undecided,
    /// All.
    All,
}

#[derive(Args, Debug)]
pub(super) struct Sweep {
    /// Judge small edits of a right outcome instead of planted bugs. The files are BEFORE and AFTER: several AFTERs
    /// where the implementation bakes the rank in, in rank order; JOINT FORWARD BACKWARD of a partition. Without AFTER
    /// the outcome that BEFORE records is edited, or else what the reference makes.
    #[arg(long)]
    pub(super) edits: bool,
    /// The pass: rewrite, bucketing, repair, partition or schedule.
    #[arg(long, default_value = "bucketing", requires = "edits")]
    pass: String,
    #[command(flatten)]
    options: PassOptions,
    /// Decides which places are tried where there are more.
    #[arg(long, default_value_t = 0, requires = "edits")]
    seed: u64,
    /// Places of one edit in one graph at most.
    #[arg(long, value_name = "N", default_value_t = 8, requires = "edits", value_parser = within::<usize>(0, u64::MAX))]
    per_edit: usize,
    /// After how many seconds a verdict is no longer waited for.
    #[arg(long, value_name = "S", default_value_t = 60.0, requires = "edits")]
    seconds: f64,
    /// Edit the graph of this rank only. Without AFTER the reference makes one for each rank, up to 64.
    #[arg(long, value_name = "R", requires = "edits", conflicts_with = "all_ranks")]
    one_rank: Option<u32>,
    /// Edit the graphs of all ranks in the same place, which is the default.
    #[arg(long, requires = "edits")]
    all_ranks: bool,
    /// Only this edit (repeatable).
    #[arg(long, value_name = "EDIT", requires = "edits")]
    edit: Vec<String>,
    /// Not this edit (repeatable).
    #[arg(long, value_name = "EDIT", requires = "edits")]
    without: Vec<String>,
    /// Verdicts at the same time. Times mean most with one.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "edits", value_parser = within::<usize>(0, u64::MAX))]
    jobs: usize,
    /// Which edits are listed one by one.
    #[arg(long, value_enum, default_value_t = Show::Slept, requires = "edits")]
    show: Show,
    /// A folder for the edited graphs that slept or were wolves.
    #[arg(long, value_name = "DIR", requires = "edits")]
    keep: Option<PathBuf>,
    /// The format of the report.
    #[arg(long, value_parser = TextOrJson, default_value = "text", requires = "edits")]
    format: ReportFormat,
}

/// Ranks whose graphs the reference makes, at most.
const MOST_RANKS: u32 = 64;

impl Sweep {
    pub(super) fn run(
        &self,
        files: &[String],
        limits: &Limits,
        out: &mut dyn Write,
    ) -> Result<Status, CouldNotRun> {
        let Some((before, after)) = files.split_first() else {
            return Err(CouldNotRun::new("--edits needs the graph before the pass"));
        };
        let given = self.given(Path::new(before), after, limits)?;
        if !self.seconds.is_finite() || self.seconds <= 0.0 {
            return Err(CouldNotRun::new("--seconds is a positive number"));
        }
        let bounds = edits::Limits {
            seed: self.seed,
            per_edit: self.per_edit,
            time: Duration::try_from_secs_f64(self.seconds).map_err(CouldNotRun::new)?,
            jobs: self.jobs,
            ranks: self.one_rank.map_or(Ranks::All, Ranks::One),
            only: self.edit.clone(),
            without: self.without.clone(),
        };
        if let Some(folder) = &self.keep {
            std::fs::create_dir_all(folder)
                .map_err(|error| CouldNotRun::new(format_args!("{}: {error}", folder.display())))?;
        }
        let failed: Mutex<Option<CouldNotRun>> = Mutex::new(None);
        let catalogue = edits::catalogue();
        let keep = |number: usize, one: &Edited, outcomes: &[(Option<u32>, Outcome)]| {
            let (Some(folder), Some((_, outcome))) = (&self.keep, outcomes.get(one.graph)) else { return };
            let name = format!("{number}_{}.json.gz", catalogue[one.edit].name);
            if let Err(error) = files::write_graph_inside(&outcome.repaired, folder, &name)
                && let Ok(mut failed) = failed.lock()
            {
                failed.get_or_insert(error);
            }
        };
        let options = Options { element_limit: limits.get(crate::limits::Limit::Elements), ..judging() };
        let sweep = edits::sweep(&given, &options, &bounds, &keep)
            .map_err(|error| CouldNotRun::judging(Path::new(before), error))?;
        if let Some(error) = failed.into_inner().ok().flatten() {
            return Err(error);
        }
        if sweep.edited.is_empty() {
            return Err(CouldNotRun::new(format_args!("{before}: there is no place for any edit")));
        }
        let text = self.format.render(
            || {
                let lines = edits::lines(&sweep, self.show == Show::Undecided, self.show == Show::All);
                let space = if lines.is_empty() { "" } else { "\n" };
                format!("{lines}{space}{}", edits::text(&sweep))
            },
            || edits::json(&sweep),
        )?;
        print(out, &text)?;
        let bad = |one: &Edited| one.slept(&catalogue) || one.is_wolf(&catalogue);
        Ok(if sweep.edited.iter().any(bad) { Status::Violated } else { Status::Sound })
    }

    fn given(&self, before: &Path, after: &[String], limits: &Limits) -> Result<Given, CouldNotRun> {
        let case = files::read(before, limits)?.into_case();
        let case =
            case.ok_or_else(|| CouldNotRun::new(format_args!("{}: holds an outcome", before.display())))?;
        let pass = self.options.config(&self.pass, case.pass.as_ref())?;
        let reader = match after.is_empty() && case.outcome.is_none() && case.parts.is_none() {
            true => Reader::Both { worker: false },
            false => Reader::Judge { again: false },
        };
        settings::refuse(&pass, &self.options.settings()?, reader)?;
        let unrepaired =
            |(rank, outcome): (Option<u32>, Outcome)| (rank, Outcome { unrepaired: None, ..outcome });
        let outcomes = match (after, &case.outcome, &case.parts) {
            ([], Some(recorded), _) => {
                judge::recorded_outcomes(recorded).into_iter().map(unrepaired).collect()
            }
            ([], None, Some(parts)) => vec![whole(parts.forward.clone()), whole(parts.backward.clone())],
            ([], None, None) => self.made(&case, &pass)?,
            (after, ..) => read_outcomes(after, limits)?,
        };
        Ok(Given { before: case.graph, pass, outcomes })
    }

    /// What the reference makes of the graph.
    fn made(
        &self,
        case: &Case,
        pass: &crate::case::PassConfig,
    ) -> Result<Vec<(Option<u32>, Outcome)>, CouldNotRun> {
        let kind = PassKind::named(&pass.name).map_err(CouldNotRun::new)?;
        let declined = |refusal: crate::candidates::Refusal| CouldNotRun::new(refusal.reason);
        if kind.row().gives == Gives::Parts {
            let (forward, backward) =
                Reference.partition(&case.graph, pass, Default::default()).map_err(declined)?;
            return Ok(vec![whole(forward), whole(backward)]);
        }
        let world = case.graph.world.ranks.filter(|_| case.graph.world.is_explicit()).unwrap_or(1);
        let bakes = Reference.capabilities().bakes_rank && kind == PassKind::Bucketing;
        let ranks: Vec<u32> = match self.one_rank.is_some() {
            true => (0..world.min(MOST_RANKS)).collect(),
            false => vec![0],
        };
        let outcomes = Reference.rewrite_on(&case.graph, pass, &ranks).map_err(declined)?;
        let named = outcomes.len() > 1 || bakes;
        let named = ranks.iter().zip(outcomes).map(|(&rank, outcome)| (named.then_some(rank), outcome));
        Ok(named.map(|(rank, outcome)| (rank, Outcome { unrepaired: None, ..outcome })).collect())
    }
}

/// One graph for all ranks.
fn whole(repaired: Graph) -> (Option<u32>, Outcome) {
    (None, Outcome { unrepaired: None, repaired })
}

/// Outcomes as `check` reads them: one graph for all ranks, several in rank order.
fn read_outcomes(files: &[String], limits: &Limits) -> Result<Vec<(Option<u32>, Outcome)>, CouldNotRun> {
    let mut outcomes = Vec::new();
    for (index, path) in files.iter().enumerate() {
        let rank = (files.len() > 1).then_some(index as u32);
        match files::read(Path::new(path), limits)? {
            Input::Graph(repaired) => {
                outcomes.push((rank, Outcome { unrepaired: None, repaired: *repaired }))
            }
            Input::Case(case) => outcomes.push((rank, Outcome { unrepaired: None, repaired: case.graph })),
            Input::Outcomes(recorded) => outcomes.extend(recorded),
        }
    }
    Ok(outcomes)
}
