//! `graph-oracle score`: how soon the mutants are convicted.

use super::{CouldNotRun, Status, print};
use crate::campaign::score;
use crate::candidates::{self, Candidate, mutants, partition, pr158663::Pr158663};
use crate::judge::Options;
use clap::Args;
use std::io::Write;

#[derive(Args, Debug)]
pub(super) struct Score {
    /// Candidates to score; default: all mutants of bucketing, repair and partitioning, and the historic algorithm.
    names: Vec<String>,
    /// How many seeds.
    #[arg(long, value_name = "N", default_value_t = 20)]
    seeds: u64,
    /// Cases of a seed at most.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    cases: u64,
}

impl Score {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        let bucketing = mutants::all();
        let mut all: Vec<Planted> =
            bucketing.iter().map(|m| (m.label(), m.about(), m.origin(), m as &dyn Candidate)).collect();
        all.push(("pr158663", "the historic algorithm, five defects", "#158663", &Pr158663));
        let cutting: Vec<_> = partition::mutants().collect();
        all.extend(cutting.iter().map(|m| (m.name, m.about, m.origin, m as &dyn Candidate)));
        let others: Vec<Box<dyn Candidate>> = self
            .names
            .iter()
            .filter(|name| !all.iter().any(|planted| planted.0 == **name))
            .map(|name| candidates::find(name))
            .collect::<Result<_, _>>()
            .map_err(CouldNotRun::new)?;
        let wanted = |name: &str| self.names.is_empty() || self.names.iter().any(|other| other == name);
        let options = Options::default();
        let mut convicted = true;
        print(
            out,
            "| mutant | what is wrong | after | median | most | convicted by |\n|---|---|---|--:|--:|---|\n",
        )?;
        for (name, about, origin, candidate) in all.into_iter().filter(|planted| wanted(planted.0)) {
            let score = score(candidate, self.seeds, self.cases, &options);
            convicted &= score.worst().is_some();
            print(out, &row(name, about, origin, &score))?;
        }
        for candidate in others {
            let score = score(candidate.as_ref(), self.seeds, self.cases, &options);
            convicted &= score.worst().is_some();
            let passes = candidate.capabilities().passes;
            let passes: Vec<&str> = passes.iter().map(|pass| pass.name()).collect();
            print(out, &row(candidate.name(), &passes.join(", "), "", &score))?;
        }
        Ok(if convicted { Status::Sound } else { Status::Violated })
    }
}

/// Name, what is wrong, after which reports, and who does it.
type Planted<'a> = (&'a str, &'a str, &'a str, &'a dyn Candidate);

fn row(name: &str, about: &str, origin: &str, score: &crate::campaign::Score) -> String {
    let number = |n: Option<u64>| n.map_or("none".to_string(), |n| n.to_string());
    let mut rules: Vec<(&str, u64)> = score.rules.iter().map(|(&rule, &count)| (rule, count)).collect();
    rules.sort_by_key(|&(rule, count)| (std::cmp::Reverse(count), rule));
    let rules: Vec<String> = rules.iter().take(3).map(|(rule, count)| format!("{rule} ({count})")).collect();
    format!(
        "| {name} | {about} | {origin} | {} | {} | {} |\n",
        number(score.median()),
        number(score.worst()),
        rules.join(", ")
    )
}
