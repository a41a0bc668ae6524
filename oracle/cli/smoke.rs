//! `graph-oracle smoke`: schedules replayed on a device.

use super::files::{self, Input};
use super::numbers::{count, within};
use super::{CouldNotRun, ReportFormat, Status, TextOrJson, print};
use crate::gpu::inject::Fault;
use crate::gpu::passes::{Case, Options, preflight, smoke};
use crate::gpu::report::{CaseReport, Report};
use crate::gpu::{Device, Trouble, suite};
use crate::limits::{Limit, Limits};
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::PathBuf;

/// How a run begins that is left out because there is no GPU.
const SKIPPED: &str = "skipped";

/// Replays of a kind at most. A small plan takes a millisecond for each, so this is minutes; what a thousand did not
/// show is seldom shown by more.
const MOST_RUNS: u64 = 100_000;

#[derive(Args, Debug)]
pub(super) struct Smoke {
    /// Cases (.graph or exchange JSON), or names of built-in ones; none: the built-in suite.
    cases: Vec<PathBuf>,
    /// Where to run them.
    #[arg(long, value_enum, default_value_t = DeviceArgument::Host)]
    device: DeviceArgument,
    /// Plants a fault in every plan that has a place for it; it must be found.
    #[arg(long, value_name = "FAULT", value_parser = fault)]
    inject: Option<Fault>,
    /// Where values, interleavings, delays and the place of a fault are drawn from.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Interleavings of the replay on the host, from 1 to 100,000.
    #[arg(long, default_value_t = 20, value_parser = within::<u64>(1, MOST_RUNS))]
    interleavings: u64,
    /// Repetitions with delayed streams, from 1 to 100,000.
    #[arg(long, default_value_t = 10, value_parser = within::<u64>(1, MOST_RUNS))]
    repetitions: u64,
    /// The most elements that the ranks of a case may have together: the same as --limit smoke=N; default: 1048576.
    #[arg(long, value_name = "N", value_parser = count)]
    max_elements: Option<u64>,
    /// Prints the table of steps.
    #[arg(long)]
    table: bool,
    /// Exit status 77 rather than 2 where there is no GPU to run on.
    #[arg(long)]
    skip_without_gpu: bool,
    /// The format of the report.
    #[arg(long, value_parser = TextOrJson, default_value = "text")]
    format: ReportFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum DeviceArgument {
    /// Every legal order of the streams, on this machine's memory.
    Host,
    /// The first GPU.
    Cuda,
}

fn fault(name: &str) -> Result<Fault, String> {
    Fault::parse(name).ok_or_else(|| {
        let names: Vec<&str> = Fault::ALL.into_iter().map(Fault::name).collect();
        format!("unknown fault {name:?}{}", crate::words::choices(name, &names))
    })
}

impl Smoke {
    pub(super) fn run(&self, limits: &Limits, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        let cases = self.cases(limits)?;
        let options = Options {
            seed: self.seed,
            interleavings: self.interleavings,
            repetitions: self.repetitions,
            inject: self.inject,
            max_elements: self.max_elements.unwrap_or(limits.get(Limit::Smoke)),
            max_ranks: limits.get(Limit::SmokeRanks),
            max_clocks: limits.get(Limit::SmokeClocks),
            command: match self.device {
                DeviceArgument::Host => "graph-oracle smoke".to_string(),
                DeviceArgument::Cuda => "graph-oracle smoke --device cuda".to_string(),
            },
        };
        let mut device = match open(self.device) {
            Ok(device) => device,
            Err(Trouble::CannotRun(reason)) if self.skip_without_gpu => {
                print(out, &format!("{SKIPPED}: {reason}\n"))?;
                return Ok(Status::Skipped);
            }
            Err(trouble) => return Err(CouldNotRun::new(format_args!("smoke: {trouble}"))),
        };
        let mut report = Report { seed: self.seed, ..Report::default() };
        let failed = |trouble: Trouble| CouldNotRun::new(format_args!("smoke: {trouble}"));
        match device.as_deref_mut() {
            Some(device) => {
                report.device = device.describe();
                let pass = preflight(device).map_err(failed)?;
                let name = "the device itself".to_string();
                report.cases.push(CaseReport { name, passes: vec![pass], ..CaseReport::default() });
            }
            None => report.device = crate::gpu::host::description(),
        }
        let mut planted = false;
        for case in &cases {
            let device = device.as_deref_mut().map(|device| device as &mut dyn Device);
            let of_case = smoke(case, &options, device).map_err(failed)?;
            planted |= of_case.injected.is_some();
            report.cases.push(of_case);
        }
        let text = self.format.render(|| report.text(self.table), || report.json())?;
        print(out, &text)?;
        let violated = report.cases.iter().any(CaseReport::is_violated);
        if self.inject.is_some() && !planted {
            return Err(CouldNotRun::new("smoke: no plan has a place for this fault"));
        }
        Ok(match violated {
            true => Status::Violated,
            false if report.cases.iter().all(|case| case.refused.is_some()) => Status::Undecided,
            false => Status::Sound,
        })
    }

    fn cases(&self, limits: &Limits) -> Result<Vec<Case>, CouldNotRun> {
        if self.cases.is_empty() {
            return suite::built_in().map_err(CouldNotRun::new);
        }
        let mut all = Vec::new();
        for path in &self.cases {
            let argument = &path.display().to_string();
            if !path.exists() {
                let named = suite::named(argument).map_err(CouldNotRun::new)?;
                if !named.is_empty() {
                    all.extend(named);
                    continue;
                }
            }
            let in_file = |reason: String| CouldNotRun::new(format_args!("{argument}: {reason}"));
            match files::read(path, limits)? {
                Input::Case(case) => {
                    let most = limits.get(Limit::SmokeRanks);
                    all.extend(suite::cases(argument, Some(argument), &case, most).map_err(in_file)?)
                }
                Input::Graph(graph) => {
                    let file = Some(argument.clone());
                    all.push(Case { name: argument.clone(), file, graphs: vec![*graph] });
                }
                Input::Outcomes(outcomes) => {
                    let file = Some(argument.clone());
                    let graphs = outcomes.into_iter().map(|(_, outcome)| outcome.repaired).collect();
                    all.push(Case { name: argument.clone(), file, graphs });
                }
            }
        }
        Ok(all)
    }
}

/// The device; none for the host, which is made for each plan.
fn open(device: DeviceArgument) -> Result<Option<Box<dyn Device>>, Trouble> {
    match device {
        DeviceArgument::Host => Ok(None),
        #[cfg(feature = "cuda")]
        DeviceArgument::Cuda => Ok(Some(Box::new(crate::gpu::cuda::Cuda::new()?))),
        #[cfg(not(feature = "cuda"))]
        DeviceArgument::Cuda => Err(Trouble::CannotRun(
            "this program was built without CUDA; build it with --features cuda, or use --device host"
                .to_string(),
        )),
    }
}
