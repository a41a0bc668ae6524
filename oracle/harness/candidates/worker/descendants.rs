//! The processes that a worker started, whichever group or session they are in.
//!
//! # The idea
//!
//! A process that leaves the group (`setsid`) is still found, in two ways: by its parents, as long as they live, and by
//! a variable in its environment that the worker was started with, which children inherit. Linux shows both in /proc.
//!
//! # What it does not do
//!
//! A process whose parent has ended and that was started with another environment is not found. Without /proc nothing
//! but the group is known.

use crate::files;
use rustc_hash::FxHashMap;
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The variable that marks the processes of a worker.
pub(super) const MARK: &str = "GRAPH_ORACLE_WORKER_MARK";

/// How often the processes are looked through: one that is found may have started another.
const ROUNDS: usize = 100;

/// The most that is read of a process's environment.
const ENVIRONMENT: u64 = 8 << 20;

/// A mark that no other worker has.
pub(super) fn new_mark() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    format!("{}-{}-{time}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Kills the processes that carry a worker's mark or descend from it, where it has not been waited for; but not the
/// worker itself. They are stopped first: a shell whose child has ended goes on with its next command.
pub(super) fn kill(worker: Option<Pid>, mark: &str) {
    for _ in 0..ROUNDS {
        let found = find(worker, mark);
        if found.is_empty() {
            return;
        }
        for signal in [Signal::STOP, Signal::KILL] {
            for &process in &found {
                let _ = kill_process(process, signal);
            }
        }
    }
}

fn find(worker: Option<Pid>, mark: &str) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let folders: FxHashMap<Pid, PathBuf> = entries
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            Some((Pid::from_raw(number)?, entry.path()))
        })
        .collect();
    // Of a process that has ended nothing is left but its number.
    let parents: FxHashMap<Pid, Pid> =
        folders.iter().filter_map(|(&process, folder)| Some((process, parent(folder)?))).collect();
    let mark = format!("{MARK}={mark}");
    let descends = |process: Pid| {
        // Numbers may go round while they are read.
        let line = std::iter::successors(Some(process), |process| parents.get(process).copied());
        line.take(parents.len() + 1).skip(1).any(|above| Some(above) == worker)
    };
    let is_marked = |process: Pid| {
        let environment = folders.get(&process).map(|folder| folder.join("environ"));
        let environment = environment.and_then(|path| files::read_bytes(&path, ENVIRONMENT).ok());
        environment.is_some_and(|text| text.split(|&byte| byte == 0).any(|set| set == mark.as_bytes()))
    };
    let others = parents.keys().copied().filter(|&process| Some(process) != worker);
    others.filter(|&process| descends(process) || is_marked(process)).collect()
}

/// The parent of a process that has not ended: the second field behind its name, which may hold anything.
fn parent(folder: &Path) -> Option<Pid> {
    let text = files::read_bytes(&folder.join("stat"), 1 << 16).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let has_ended = matches!(fields.next()?, "Z" | "X");
    let parent = Pid::from_raw(fields.next()?.parse().ok()?)?;
    (!has_ended).then_some(parent)
}
