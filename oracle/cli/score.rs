//! `graph-oracle score`: how soon the mutants are convicted, and how small and how fast their cases are reduced.

use super::html::Html;
use super::numbers::{count, within};
use super::{CouldNotRun, Status, print};
use crate::campaign::{Reduction, reductions, score};
use crate::candidates::{self, Candidate, judging};
use crate::family::{FAMILIES, Planted};
use crate::judge::Options;
use crate::limits::{Limit, Limits};
use clap::Args;
use std::io::Write;

#[derive(Args, Debug)]
pub(super) struct Score {
    /// Candidates to score; default: all mutants of bucketing, repair and partitioning, and the historic algorithm.
    /// With --edits: the files BEFORE AFTER...
    names: Vec<String>,
    /// How many seeds.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = within::<u64>(0, Limit::Seeds.standard()))]
    seeds: u64,
    /// Cases of a seed at most.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = count)]
    cases: u64,
    /// Reduce the first case of each seed that convicts, and print how small it became and how long that took. The
    /// least of a rule's reductions is what the others are held against.
    #[arg(long, conflicts_with = "edits")]
    reductions: bool,
    #[command(flatten)]
    sweep: super::sweep::Sweep,
    #[command(flatten)]
    html: Html,
}

impl Score {
    pub(super) fn run(&self, limits: &Limits, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        if self.sweep.edits {
            return self.sweep.run(&self.names, limits, out);
        }
        let is_chosen = |planted: &Planted, is_scored: bool| match self.names.is_empty() {
            true => is_scored,
            false => self.names.iter().any(|name| name == planted.candidate.name()),
        };
        let planted =
            FAMILIES.iter().flat_map(|row| row.planted().into_iter().map(|one| (one, row.is_scored)));
        let planted = planted.filter(|(one, is_scored)| is_chosen(one, *is_scored)).map(|(one, _)| one);
        let planted: Vec<Planted> = planted.collect();
        let others: Vec<Box<dyn Candidate>> = self
            .names
            .iter()
            .filter(|name| !planted.iter().any(|planted| planted.candidate.name() == *name))
            .map(|name| candidates::find(name))
            .collect::<Result<_, _>>()
            .map_err(CouldNotRun::new)?;
        let options = Options { element_limit: limits.get(Limit::Elements), ..judging() };
        if self.reductions {
            let chosen = planted.iter().map(|planted| &*planted.candidate);
            let chosen: Vec<&dyn Candidate> = chosen.chain(others.iter().map(|other| &**other)).collect();
            return self.reduce(&chosen, &options, out);
        }
        let (mut convicted, mut idle, mut scored) = (true, Vec::new(), Vec::new());
        let mut nowhere = std::io::sink();
        let table = self.html.beside(out, &mut nowhere);
        print(
            table,
            "| mutant | what is wrong | after | median | most | convicted by |\n|---|---|---|--:|--:|---|\n",
        )?;
        for Planted { about, origin, candidate } in &planted {
            let (name, candidate) = (candidate.name(), candidate.as_ref());
            let score = score(candidate, self.seeds, self.cases, &options);
            convicted &= score.worst().is_some();
            idle.extend(Some(name.to_string()).filter(|_| did_nothing(&score)));
            print(table, &row(name, about, origin, &score))?;
            scored.push(page_row(name, about, origin, &score));
        }
        for candidate in others {
            let score = score(candidate.as_ref(), self.seeds, self.cases, &options);
            convicted &= score.worst().is_some();
            idle.extend(Some(candidate.name().to_string()).filter(|_| did_nothing(&score)));
            let passes = candidate.capabilities().passes;
            let passes: Vec<&str> = passes.iter().map(|pass| pass.name()).collect();
            print(table, &row(candidate.name(), &passes.join(", "), "", &score))?;
            scored.push(page_row(candidate.name(), &passes.join(", "), "", &score));
        }
        self.html.write(out, || pages::score::page(&scored, self.seeds))?;
        if !idle.is_empty() {
            let who = idle.join(", ");
            self.html
                .print(out, &format!("\nnothing was judged of {who}: nothing was done in any case\n"))?;
            return Ok(Status::Undecided);
        }
        Ok(if convicted { Status::Sound } else { Status::Violated })
    }

    /// A line for each candidate, and one for all reductions together.
    fn reduce(
        &self,
        candidates: &[&dyn Candidate],
        options: &Options,
        out: &mut dyn Write,
    ) -> Result<Status, CouldNotRun> {
        print(
            out,
            "| mutant | reductions | nodes before | nodes after | above the least of the rule | most above | seconds | most |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|\n",
        )?;
        let mut all: Vec<(Reduction, usize)> = Vec::new();
        for candidate in candidates {
            let found = reductions(*candidate, self.seeds, self.cases, options);
            let least = |rule: &str| found.iter().filter(|one| one.rule == rule).map(|one| one.after).min();
            let found: Vec<(Reduction, usize)> = found
                .iter()
                .map(|one| (one.clone(), one.after - least(one.rule).unwrap_or(one.after)))
                .collect();
            print(out, &reduced_row(candidate.name(), &found))?;
            all.extend(found);
        }
        print(out, &reduced_row("all", &all))?;
        Ok(Status::Sound)
    }
}

/// Medians over reductions, each with the nodes that it has above the least of its rule.
fn reduced_row(name: &str, found: &[(Reduction, usize)]) -> String {
    fn sorted<T: PartialOrd>(mut values: Vec<T>) -> Vec<T> {
        values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
        values
    }
    fn middle<T: Copy + ToString>(values: &[T]) -> String {
        values.get(values.len() / 2).map_or("none".to_string(), |value| value.to_string())
    }
    let before = sorted(found.iter().map(|(one, _)| one.before).collect());
    let after = sorted(found.iter().map(|(one, _)| one.after).collect());
    let above = sorted(found.iter().map(|(_, above)| *above).collect());
    let millis = sorted(found.iter().map(|(one, _)| one.time.as_millis()).collect());
    let seconds =
        |millis: Option<&u128>| millis.map_or("none".to_string(), |&n| format!("{:.2}", n as f64 / 1e3));
    format!(
        "| {name} | {} | {} | {} | {} | {} | {} | {} |\n",
        found.len(),
        middle(&before),
        middle(&after),
        middle(&above),
        above.last().map_or("none".to_string(), usize::to_string),
        seconds(millis.get(millis.len() / 2)),
        seconds(millis.last()),
    )
}

/// Whether there was nothing to convict the candidate of.
fn did_nothing(score: &crate::campaign::Score) -> bool {
    score.rules.is_empty() && score.acted == 0
}

/// The rules that convict, those of most seeds first.
fn convicting(score: &crate::campaign::Score) -> Vec<(&'static str, u64)> {
    let mut rules: Vec<(&'static str, u64)> =
        score.rules.iter().map(|(&rule, &count)| (rule, count)).collect();
    rules.sort_by_key(|&(rule, count)| (std::cmp::Reverse(count), rule));
    rules.truncate(3);
    rules
}

fn page_row(name: &str, about: &str, origin: &str, score: &crate::campaign::Score) -> pages::score::Row {
    let rules = convicting(score).into_iter().map(|(rule, seeds)| (rule.to_string(), seeds)).collect();
    let (name, about, origin) = (name.to_string(), about.to_string(), origin.to_string());
    pages::score::Row { name, about, origin, median: score.median(), most: score.worst(), rules }
}

fn row(name: &str, about: &str, origin: &str, score: &crate::campaign::Score) -> String {
    let number = |n: Option<u64>| n.map_or("none".to_string(), |n| n.to_string());
    let rules: Vec<String> =
        convicting(score).iter().map(|(rule, count)| format!("{rule} ({count})")).collect();
    format!(
        "| {name} | {about} | {origin} | {} | {} | {} |\n",
        number(score.median()),
        number(score.worst()),
        rules.join(", ")
    )
}
