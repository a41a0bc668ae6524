//! Workers on the command line: `--worker` and its limits, `graph-oracle worker`, `graph-oracle worker-test`.

use super::numbers::size;
use super::python;
use super::{CouldNotRun, Status, print};
use crate::candidates::worker::{Limits, Worker, conformance, serve};
use crate::candidates::{self, Candidate};
use crate::limits::Limit;
use crate::stop::Stop;
use clap::Args;
use std::io::Write;
use std::time::Duration;

/// An implementation in another process.
#[derive(Args, Clone, Debug)]
pub(super) struct WorkerOptions {
    /// The implementation to judge, a command for a shell that speaks the worker protocol (docs/protocol.md), instead
    /// of a candidate.
    #[arg(long, value_name = "CMD", conflicts_with = "candidate")]
    worker: Option<String>,
    /// The implementation to judge, a function of yours: FILE.py:FUNCTION or MODULE:FUNCTION. It is run by the Python
    /// that GRAPH_ORACLE_PYTHON names, else by python3 or python, which needs torch and the package graph-oracle.
    #[arg(long, value_name = "FILE.py:FUNCTION", conflicts_with_all = ["candidate", "worker"], value_parser = python::function)]
    python: Option<String>,
    #[command(flatten)]
    limits: LimitOptions,
}

/// What a worker may use.
#[derive(Args, Clone, Debug)]
pub(super) struct LimitOptions {
    /// Seconds that a worker may take for an answer.
    #[arg(long, value_name = "S", default_value_t = 30.0, value_parser = seconds)]
    worker_seconds: f64,
    /// Seconds that a worker may take to start.
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = seconds)]
    worker_start: f64,
    /// The address space of each process of a worker, such as 32GiB; default: any. Torch maps tens of gigabytes.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    worker_memory: Option<u64>,
    /// The largest answer of a worker: the same as --limit answer=SIZE; default: 64MiB.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    worker_answer: Option<u64>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|&s: &f64| s > 0.0 && s <= 1e6);
    seconds.ok_or_else(|| "expected seconds, more than 0 and at most a million".to_string())
}

impl LimitOptions {
    fn limits(&self, limits: &crate::limits::Limits, stop: &Stop) -> Limits {
        let answer = self.worker_answer.unwrap_or(limits.get(Limit::Answer));
        Limits {
            stop: stop.clone(),
            request: Duration::from_secs_f64(self.worker_seconds),
            answer: usize::try_from(answer).unwrap_or(usize::MAX),
            start: Duration::from_secs_f64(self.worker_start),
            memory: self.worker_memory,
        }
    }
}

impl WorkerOptions {
    /// Whether a worker is to be judged.
    pub(super) fn is_given(&self) -> bool {
        self.worker.is_some() || self.python.is_some()
    }

    /// The worker for a pass, if one is given. It is not waited for when a stop was asked for.
    pub(super) fn start(
        &self,
        pass: &str,
        limits: &crate::limits::Limits,
        stop: &Stop,
    ) -> Result<Option<Worker>, CouldNotRun> {
        let limits = self.limits.limits(limits, stop);
        match (&self.worker, &self.python) {
            (Some(command), _) => Worker::start(command, limits).map_err(CouldNotRun::new).map(Some),
            (None, Some(function)) => python::start(function, pass, limits).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// The worker for a pass, or else the candidate with this name.
    pub(super) fn or_named(
        &self,
        pass: &str,
        limits: &crate::limits::Limits,
        name: impl FnOnce() -> String,
    ) -> Result<Box<dyn Candidate>, CouldNotRun> {
        self.or_named_until(pass, limits, &Stop::default(), name)
    }

    /// The same, until a stop is asked for.
    pub(super) fn or_named_until(
        &self,
        pass: &str,
        limits: &crate::limits::Limits,
        stop: &Stop,
        name: impl FnOnce() -> String,
    ) -> Result<Box<dyn Candidate>, CouldNotRun> {
        match self.start(pass, limits, stop)? {
            Some(worker) => Ok(Box::new(worker)),
            None => candidates::find(&name()).map_err(CouldNotRun::new),
        }
    }

    /// The candidate with this name, or else the worker that this command starts.
    pub(super) fn named_or_command(
        &self,
        text: &str,
        limits: &crate::limits::Limits,
        stop: &Stop,
    ) -> Result<Box<dyn Candidate>, CouldNotRun> {
        match candidates::find(text) {
            Ok(candidate) => Ok(candidate),
            Err(_) => {
                let worker =
                    Worker::start(text, self.limits.limits(limits, stop)).map_err(CouldNotRun::new)?;
                Ok(Box::new(worker))
            }
        }
    }
}

#[derive(Args, Debug)]
pub(super) struct Serve {
    /// Who answers.
    #[arg(long, default_value = "reference")]
    candidate: String,
}

impl Serve {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        let candidate = candidates::find(&self.candidate).map_err(CouldNotRun::new)?;
        match serve(candidate.as_ref(), &mut std::io::stdin().lock(), out) {
            // The driver has gone away.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(CouldNotRun::new(error)),
            _ => Ok(Status::Sound),
        }
    }
}

#[derive(Args, Debug)]
pub(super) struct Test {
    /// The worker, a command for a shell.
    command: String,
    #[command(flatten)]
    limits: LimitOptions,
}

impl Test {
    pub(super) fn run(
        &self,
        limits: &crate::limits::Limits,
        out: &mut dyn Write,
    ) -> Result<Status, CouldNotRun> {
        let mut unprinted = None;
        let mut told = |check: &conformance::Check| {
            unprinted = unprinted.take().or(print(out, &format!("{check}\n")).err());
        };
        let checks =
            conformance::test(&self.command, &self.limits.limits(limits, &Stop::default()), &mut told);
        if let Some(error) = unprinted {
            return Err(error);
        }
        let failed = checks.iter().filter(|check| check.result.is_err()).count();
        print(out, &format!("{} checks, {failed} failed\n", checks.len()))?;
        Ok(if failed == 0 { Status::Sound } else { Status::Violated })
    }
}
