//! `graph-oracle-fuzzing RUNS CORPUS [SEED]`: every fuzz target that the file RUNS names, as often as it says, on two
//! threads. The inputs are those of CORPUS and what small changes make of them.
//!
//! Nothing is instrumented, so no coverage leads to new inputs; therefore this is built with the program, and runs in CI.
//! libFuzzer (fuzz/) is for campaigns. The same seed gives the same inputs on every machine.

#![deny(unsafe_code)]

use graph_oracle_fuzzing::{Body, mutate, target};
use harness::files::{read_bytes, write_inside};
use harness::generate::{Seeded, Source};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

/// Threads, each with a target of its own.
const THREADS: usize = 2;

/// Bytes of an input at most.
const MOST_BYTES: usize = 1 << 14;

/// Bytes of a file at most.
const MOST_READ: u64 = 1 << 24;

/// What to run.
struct Target {
    name: String,
    body: Body,
    runs: u64,
    seeds: Vec<Vec<u8>>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

/// Runs all targets; whether none failed.
fn run(arguments: &[String]) -> Result<bool, String> {
    let (runs, corpus, seed) = match arguments {
        [runs, corpus] => (runs, corpus, 1),
        [runs, corpus, seed] => {
            (runs, corpus, seed.parse().map_err(|error| format!("seed {seed}: {error}"))?)
        }
        _ => return Err("usage: graph-oracle-fuzzing RUNS CORPUS [SEED]".to_string()),
    };
    let text = read_bytes(Path::new(runs), MOST_READ).map_err(|error| format!("{runs}: {error}"))?;
    let text = String::from_utf8_lossy(&text);
    let mut targets: Vec<Target> =
        text.lines().map(|line| parse(line, Path::new(corpus))).collect::<Result<_, _>>()?;
    targets.reverse();
    let (queue, all_right) = (Mutex::new(targets), Mutex::new(true));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(target) = queue.lock().ok().and_then(|mut queue| queue.pop()) {
                    let start = Instant::now();
                    let found = fuzz(&target, seed);
                    let seconds = start.elapsed().as_secs_f64();
                    match found {
                        Ok(()) => println!("{}: {} runs in {seconds:.0} s", target.name, target.runs),
                        Err(why) => {
                            println!("{}: {why}", target.name);
                            all_right.lock().iter_mut().for_each(|all_right| **all_right = false);
                        }
                    }
                }
            });
        }
    });
    Ok(all_right.into_inner().unwrap_or(false))
}

/// A line `name runs`, with the files of the target's corpus in the order of their names.
fn parse(line: &str, corpus: &Path) -> Result<Target, String> {
    let (name, runs) =
        line.split_once(' ').ok_or_else(|| format!("{line:?} is no target and a number of runs"))?;
    let body = target(name).ok_or_else(|| format!("there is no target {name}"))?;
    let runs = runs.parse().map_err(|error| format!("{line:?}: {error}"))?;
    let folder = corpus.join(name);
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let seeds: Vec<Vec<u8>> = files.iter().filter_map(|file| read_bytes(file, MOST_READ).ok()).collect();
    match seeds.is_empty() {
        true => Err(format!("{} holds no input", folder.display())),
        false => Ok(Target { name: name.to_string(), body, runs, seeds }),
    }
}

/// Runs one target; an input on which it panics is kept.
fn fuzz(target: &Target, seed: u64) -> Result<(), String> {
    for run in 0..target.runs {
        let mut source = Seeded::new(seed << 32 | run);
        let input = match target.seeds.get(run as usize) {
            Some(seed) => seed.clone(),
            None => changed(&target.seeds, &mut source),
        };
        if catch_unwind(AssertUnwindSafe(|| (target.body)(&input))).is_err() {
            let folder = Path::new("fuzz/artifacts").join(&target.name);
            let name = format!("run-{seed}-{run}");
            let kept = std::fs::create_dir_all(&folder).and_then(|()| write_inside(&folder, &name, &input));
            return Err(match kept {
                Ok(()) => format!("failed in run {run}: {}", folder.join(name).display()),
                Err(error) => format!("failed in run {run}, and its input cannot be kept: {error}"),
            });
        }
    }
    Ok(())
}

/// Another input near one of the seeds: an edited graph where it is one, or other bytes.
fn changed(seeds: &[Vec<u8>], source: &mut Seeded) -> Vec<u8> {
    let pick = |source: &mut Seeded, count: usize| source.below(count.max(1) as u32) as usize;
    let mut input = seeds[pick(source, seeds.len())].clone();
    let is_text = std::str::from_utf8(&input).is_ok_and(|text| text.contains(" = input : "));
    if is_text && source.below(8) > 0 {
        for _ in 0..=source.below(3) {
            input = mutate::mutate(&input, source.below(u32::MAX));
        }
        return input;
    }
    for _ in 0..=source.below(8) {
        let at = pick(source, input.len());
        let byte = source.below(256) as u8;
        match source.below(5) {
            0 if input.len() < MOST_BYTES => input.insert(at, byte),
            1 if !input.is_empty() => drop(input.remove(at)),
            2 => {
                let other = &seeds[pick(source, seeds.len())];
                let from = pick(source, other.len());
                input.truncate(at);
                input.extend(other[from..].iter().take(MOST_BYTES - at.min(MOST_BYTES)));
            }
            3 => input.iter_mut().skip(at).take(1).for_each(|old| *old ^= 1 << (byte % 8)),
            _ => input.iter_mut().skip(at).take(1).for_each(|old| *old = byte),
        }
    }
    input
}
