//! Every number of a small text, made huge: no panic, no abort, little memory, and an answer soon (docs/limits.md).

#![cfg(unix)]
#![allow(missing_docs)]

use graph_oracle::fuzzing::huge_numbers::{NUMBERS, check, numbers, with_number};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The address space of the process that judges, in KiB. A thread of the test alone maps 64 MiB.
const MEMORY: u64 = 2_000_000;

/// How long one text may take, in a build without optimisation, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the process that judges says what it is at, so that an abort can be told.
const LAST: &str = "HUGE_NUMBERS_LAST";

fn seeds() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/huge_numbers");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Each seed with each of its numbers made huge, there alone and wherever it stands.
fn texts() -> Vec<String> {
    let only = std::env::var("HUGE_NUMBERS_ONLY").ok();
    let mut all = Vec::new();
    for file in seeds() {
        if only.as_ref().is_some_and(|only| !file.to_string_lossy().contains(only)) {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        for place in numbers(&text) {
            for &number in NUMBERS {
                all.extend([false, true].map(|everywhere| with_number(&text, &place, number, everywhere)));
            }
        }
    }
    all.sort();
    all.dedup();
    all
}

/// Runs in a process of its own, with little memory.
#[test]
#[ignore = "run by huge_numbers_are_answered, with little memory"]
fn sweep() {
    let Ok(last) = std::env::var(LAST) else { return };
    let texts = texts();
    let mut bad = std::collections::BTreeMap::new();
    for text in &texts {
        std::fs::write(&last, text).unwrap();
        let start = Instant::now();
        let panicked = std::panic::catch_unwind(|| check(text.as_bytes())).is_err();
        let time = start.elapsed();
        if panicked || time > PATIENCE {
            *bad.entry(panicked).or_insert(0) += 1;
            println!("{time:?} {panicked}:\n{text}");
        }
    }
    println!("{} texts", texts.len());
    assert!(bad.is_empty(), "{bad:?}");
}

#[test]
fn huge_numbers_are_answered() {
    let last = std::env::temp_dir().join(format!("graph-oracle-{}-last.graph", std::process::id()));
    let output = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MEMORY}; exec \"$@\""), "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["sweep", "--exact", "--ignored", "--nocapture"])
        .env(LAST, &last)
        .output()
        .unwrap();
    let text = std::fs::read_to_string(&last).unwrap_or_default();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complained}\nthe last one:\n{text}");
    let _ = std::fs::remove_file(&last);
}
