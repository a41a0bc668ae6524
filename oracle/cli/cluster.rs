//! `fuzz --cluster ray`: a campaign in shards on a cluster.
//!
//! The Python package does it (python/graph_oracle/campaign.py): it is started with the arguments that the program was
//! given, and what it prints and its exit status are the program's own. Here is only what finds it.

use super::numbers::within;
use super::python::{self, NAMED as PYTHON};
use super::{CouldNotRun, Status};
use crate::stop::Stop;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Where a campaign runs that is too long for one machine.
#[derive(Args, Debug)]
pub(super) struct ClusterOptions {
    /// Run the campaign in shards on a cluster. The Python package does that: pip install 'graph-oracle[ray]', in the
    /// Python that GRAPH_ORACLE_PYTHON names or that is in PATH.
    #[arg(long, value_enum, value_name = "KIND", requires = "out")]
    #[arg(conflicts_with_all = ["shard", "seconds", "against"])]
    cluster: Option<ClusterArgument>,
    /// Where the cluster is; default: where Ray finds one, or a new one of this machine.
    #[arg(long, value_name = "ADDR", requires = "cluster")]
    cluster_address: Option<String>,
    /// A file that the worker's command names, to send to the machines of the cluster (repeatable).
    #[arg(long = "cluster-file", value_name = "FILE", requires = "cluster")]
    cluster_files: Vec<PathBuf>,
    /// Of how many parts the campaign on the cluster is; default: four for each processor.
    #[arg(long, value_name = "N", requires = "cluster", value_parser = within::<u64>(1, u64::MAX))]
    shards: Option<u64>,
}

/// A kind of cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ClusterArgument {
    /// Ray: as tasks.
    Ray,
}

impl ClusterOptions {
    /// Whether the campaign is to run on a cluster.
    pub(super) fn is_wanted(&self) -> bool {
        self.cluster.is_some()
    }
}

/// Runs the campaign that the arguments (the program's name first) ask for.
pub(super) fn run(arguments: &[OsString], stop: &Stop) -> Result<Status, CouldNotRun> {
    let python = python::found_python().map_err(|why| CouldNotRun::new(format_args!("--cluster: {why}")))?;
    let name = python.to_string_lossy();
    let command = |rest: &[&str]| {
        let mut command = Command::new(&python);
        // What lies in the current folder is not the package.
        command.env("PYTHONSAFEPATH", "1").args(rest);
        command
    };
    let cannot_start =
        |error| CouldNotRun::new(format_args!("--cluster: {name}: {error}; {PYTHON} names another Python"));
    let mut import = command(&["-c", "import graph_oracle.campaign"]);
    let import = import.stdin(Stdio::null()).output().map_err(cannot_start)?;
    if !import.status.success() {
        let why =
            String::from_utf8_lossy(&import.stderr).trim_end().lines().next_back().unwrap_or("").to_string();
        return Err(CouldNotRun::new(format_args!(
            "--cluster: {name} cannot import graph_oracle.campaign ({why}): pip install 'graph-oracle[ray]' there, or \
             name another Python in {PYTHON}"
        )));
    }
    let mut campaign = command(&["-m", "graph_oracle.campaign"]);
    campaign.args(arguments.iter().skip(1));
    // The same program judges the shards on this machine. Inside Python the running program is Python's.
    let own = std::env::current_exe()
        .ok()
        .filter(|path| path.file_stem().is_some_and(|stem| stem == "graph-oracle"));
    if let (Some(own), None) = (own, std::env::var_os("GRAPH_ORACLE")) {
        campaign.env("GRAPH_ORACLE", own);
    }
    let child = campaign.spawn().map_err(cannot_start)?;
    let ended = wait(child, stop).map_err(cannot_start)?;
    match ended.code() {
        Some(0) => Ok(Status::Sound),
        Some(1) => Ok(Status::Violated),
        Some(3) => Ok(Status::Undecided),
        Some(130) => Ok(Status::Interrupted),
        Some(143) => Ok(Status::Terminated),
        // It has said why.
        Some(2) => Ok(Status::CouldNotRun),
        _ => Err(CouldNotRun::new(format_args!("--cluster: {name} ended with {ended}"))),
    }
}

/// Waits for the end of a campaign. Ctrl-C reaches it from the terminal as it reaches the program; SIGTERM is handed on.
fn wait(mut child: Child, stop: &Stop) -> std::io::Result<ExitStatus> {
    let mut told = false;
    loop {
        if let Some(ended) = child.try_wait()? {
            return Ok(ended);
        }
        if !told && stop.signal().is_some_and(|signal| super::signals::status(signal) == Status::Terminated) {
            told = true;
            terminate(&child);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(unix)]
fn terminate(child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    // One that has ended by itself needs no signal.
    let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM));
}

#[cfg(not(unix))]
fn terminate(_: &Child) {}
