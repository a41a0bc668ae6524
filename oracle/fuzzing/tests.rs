//! The bodies of the fuzz targets on the committed corpora, without a fuzzer: every file of `corpus/<target>/`.

use crate::{TARGETS, target};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn corpus(name: &str) -> Vec<PathBuf> {
    let folder = root().join("corpus").join(name);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn replay(name: &str) {
    let files = corpus(name);
    assert!(!files.is_empty(), "corpus/{name} is empty");
    let check = target(name).unwrap();
    for file in files {
        // Which file it was, should the body panic.
        println!("{}", file.display());
        check(&std::fs::read(&file).unwrap());
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        #[test]
        fn every_target_is_replayed() {
            let here = [$(stringify!($name)),*];
            let all: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(here[..], all[..]);
        }
    };
}

targets! {
    text_format json_format bucketing bucketing_choices repair repair_choices rewrite rewrite_choices
    interpreter_domains interpreter_domains_choices reducer reducer_choices schedule_scored schedule_scored_choices schedule_iterative
    schedule_iterative_choices schedule_fsdp schedule_fsdp_choices deadlock memory_estimate memory_estimate_choices
    memory_orders memory_orders_choices lifecycle dumps partition_default partition_default_choices partition_min_cut
    partition_min_cut_choices partition_replay partition_replay_choices cse cse_choices huge_numbers printed_graphs
    repetition
}

/// Nonsense of every kind: no body panics on it.
#[test]
fn nonsense() {
    let deep = "[".repeat(100_000);
    let inputs: [&[u8]; 6] = [b"", b"\xff\xfe\0", b"world", b"{", deep.as_bytes(), &[0x1f, 0x8b, 8, 0]];
    for (_, check) in TARGETS {
        inputs.iter().for_each(|input| check(input));
    }
}

/// The first column of the table in docs/fuzzing.md names each target once.
#[test]
fn every_target_is_documented() {
    let text = std::fs::read_to_string(root().join("docs/fuzzing.md")).unwrap();
    let rows = text.split("| target | what holds on every input |\n").nth(1).unwrap().lines();
    let first = rows.take_while(|row| row.starts_with('|')).filter_map(|row| row.split('|').nth(1));
    let mut documented: Vec<&str> = first.flat_map(|names| names.split('`').skip(1).step_by(2)).collect();
    let mut all: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    documented.sort_unstable();
    all.sort_unstable();
    assert_eq!(documented, all);
}

/// CI runs each target a number of times that takes about 20 seconds.
#[test]
fn every_target_has_a_number_of_runs() {
    let text = std::fs::read_to_string(root().join("fuzz/runs")).unwrap();
    let rows: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    let named: Vec<&str> = rows.iter().map(|&(name, _)| name).collect();
    let all: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert_eq!(named, all);
    assert!(rows.iter().all(|(_, runs)| runs.parse::<u32>().is_ok_and(|runs| runs > 0)), "{text}");
}

/// The graph targets have one file of each in fuzz/.
#[test]
fn every_target_has_its_glue() {
    let manifest = std::fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    for (name, _) in TARGETS {
        assert!(root().join(format!("fuzz/fuzz_targets/{name}.rs")).exists(), "{name} has no file");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is not in fuzz/Cargo.toml");
    }
}
