//! The floors: a crate depends on those below it only, and the lower floors on nothing that a browser does not have.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The crates from the lowest floor up; those of one floor do not know each other.
const FLOORS: &[&[&str]] = &[
    &["ir"],
    &["execution"],
    &["models"],
    &["references", "verdicts"],
    &["harness", "pages"],
    &["smoke", "fuzzing"],
    &["graph-oracle"],
];

/// The floors that use no threads, processes, files, clock or allocator of their own.
const ANYWHERE: &[&str] = &["ir", "execution", "models", "references", "verdicts", "pages"];

/// Crates of others that do not either. (Those of flate2 and serde that read and write are given what they read from.)
const HARMLESS: &[&str] = &[
    "fixedbitset",
    "flate2",
    "half",
    "indexmap",
    "maud",
    "memchr",
    "petgraph",
    "rustc-hash",
    "serde",
    "serde_json",
    "sha1",
    "smallvec",
    "string-interner",
    "strsim",
    "thiserror",
];

/// What only a machine with an operating system has.
const NOT_ANYWHERE: &[&str] = &[
    "std::fs",
    "std::process",
    "std::thread",
    "std::time",
    "std::env",
    "std::net",
    "Instant",
    "SystemTime",
    "println!",
    "stdin()",
    "stdout()",
    "stderr()",
    "thread_local!",
    "static mut",
    "global_allocator",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn folder(name: &str) -> PathBuf {
    if name == "graph-oracle" { root().to_path_buf() } else { root().join("oracle").join(name) }
}

/// The dependencies of a crate, each with the rest of its line.
fn dependencies(name: &str) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(folder(name).join("Cargo.toml")).unwrap();
    let (_, rest) = text.split_once("\n[dependencies]\n").unwrap();
    let section = rest.split("\n[").next().unwrap();
    let lines = section.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (name, rest) = line.split_once(['.', ' ']).unwrap();
            (name.to_string(), rest.to_string())
        })
        .collect()
}

/// The sources of a crate without its tests.
fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            sources(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let text = std::fs::read_to_string(&path).unwrap();
            let mut modules = text.match_indices("#[cfg(test)]\nmod ");
            let tests = modules.find(|(at, of)| text[at + of.len()..].lines().next().unwrap().ends_with('{'));
            let text = text[..tests.map_or(text.len(), |(at, _)| at)].to_string();
            found.push((path, text));
        }
    }
}

#[test]
fn no_crate_depends_on_one_above() {
    let floor = |name: &str| FLOORS.iter().position(|floor| floor.contains(&name));
    let mut arrows = 0;
    for &name in FLOORS.iter().copied().flatten() {
        for below in dependencies(name).keys().filter(|other| floor(other).is_some()) {
            arrows += 1;
            assert!(floor(below) < floor(name), "{name} depends on {below}");
        }
    }
    assert!(arrows > FLOORS.len(), "{arrows} arrows were seen");
    // No floor is left out.
    let mut members: Vec<String> = std::fs::read_dir(root().join("oracle"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("Cargo.toml").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    members.sort();
    let mut named: Vec<&str> =
        FLOORS.iter().copied().flatten().copied().filter(|name| *name != "graph-oracle").collect();
    named.sort_unstable();
    assert_eq!(members, named);
}

#[test]
fn the_lower_floors_need_no_operating_system() {
    for &name in ANYWHERE {
        for (other, how) in dependencies(name) {
            let is_known = ANYWHERE.contains(&other.as_str()) || HARMLESS.contains(&other.as_str());
            // Threads are handed in from above.
            let is_handed_in = other == "rayon" && how.contains("optional = true");
            assert!(is_known || is_handed_in, "{name} depends on {other}");
        }
        let mut found = Vec::new();
        sources(&folder(name), &mut found);
        assert!(found.len() > 10, "{name}: {} sources", found.len());
        for (path, text) in found {
            for (number, line) in
                text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"))
            {
                let place = || format!("{}:{}: {line}", path.display(), number + 1);
                assert!(!NOT_ANYWHERE.iter().any(|word| line.contains(word)), "{}", place());
                assert!(!line.contains("rayon::") || path.ends_with("ir/threads.rs"), "{}", place());
            }
        }
    }
}

/// What opens or writes a file.
const OPENS: &[&str] = &[
    "File::",
    "OpenOptions",
    "fs::read(",
    "fs::read_to_string",
    "fs::write",
    "fs::copy",
    "fs::rename",
    "fs::hard_link",
    "fs::symlink",
    "generate_to",
    "use std::fs::{",
];

/// Only regular files are read, and only whole ones are written: by one module, which everything else uses.
#[test]
fn files_are_opened_in_one_place() {
    let mut found = Vec::new();
    for folder in ["oracle", "python/src"] {
        sources(&root().join(folder), &mut found);
    }
    let mut opened = 0;
    for (path, text) in &found {
        for (number, line) in text.lines().enumerate() {
            let opens = OPENS.iter().any(|word| line.contains(word)) && !line.trim_start().starts_with("//");
            let is_allowed = path.ends_with("harness/files.rs")
                // A lock is a method of a file, and names types of its module.
                || line == "use std::fs::{File, TryLockError};"
                || line == "use std::fs::{File, Metadata};";
            assert!(!opens || is_allowed, "{}:{}: {line}", path.display(), number + 1);
            opened += usize::from(opens);
        }
    }
    assert!(opened > 3, "{opened} places were seen");
}
