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

/// Each seed with each of its numbers made huge, there alone and wherever it stands: by one number of [`NUMBERS`] in turn,
/// or by each of them with `HUGE_NUMBERS=all` in the environment.
fn texts() -> Vec<String> {
    let all_numbers = std::env::var("HUGE_NUMBERS").is_ok_and(|value| value == "all");
    let mut all = Vec::new();
    let mut turn = 0;
    for file in seeds() {
        let text = std::fs::read_to_string(&file).unwrap();
        for place in numbers(&text) {
            for everywhere in [false, true] {
                turn += 1;
                let some = if all_numbers { NUMBERS } else { &NUMBERS[turn % NUMBERS.len()..][..1] };
                all.extend(some.iter().map(|&number| with_number(&text, &place, number, everywhere)));
            }
        }
    }
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
            println!("{time:?}, {}:\n{text}", if panicked { "a panic" } else { "too long" });
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
