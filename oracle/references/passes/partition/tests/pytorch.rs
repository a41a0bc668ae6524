//! Random joint graphs: both sides are as PyTorch 2.15 cuts them, or both refuse. `tests/peer/partition.py`
//! made the cases.
//!
//! Where a random draw is paired, nodes are compared by position, since their names are PyTorch's own.

use super::listing::listing;
use super::*;
use crate::format::json;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::Read;

#[derive(Deserialize)]
struct Case<'a> {
    seed: u32,
    options: String,
    #[serde(borrow)]
    joint: &'a RawValue,
    #[serde(default)]
    forward: Vec<String>,
    #[serde(default)]
    backward: Vec<String>,
    refused: Option<String>,
}

/// A listing of PyTorch's with nodes by position, placeholders excepted, and without tags.
fn by_position(lines: &[String]) -> Vec<String> {
    let mut positions: Vec<(String, String)> = Vec::new();
    for (position, line) in lines.iter().enumerate() {
        if let Some((name, _)) = line.split_once(" = ") {
            positions.push((name.to_string(), position.to_string()));
        }
    }
    let rename = |word: &str| {
        let name = word.trim_start_matches(['[', '(', '%']).trim_end_matches([']', ')', ';', ',']);
        match positions.iter().find(|(other, _)| other == name) {
            Some((_, position)) if word.contains('%') => {
                word.replace(&format!("%{name}"), &format!("%{position}"))
            }
            _ => word.to_string(),
        }
    };
    let line = |(position, line): (usize, &String)| {
        let (head, rest) = match line.split_once(" = ") {
            Some((_, rest)) => (format!("{position} = "), rest),
            None => (String::new(), line.as_str()),
        };
        // A space in front of every reference, for words.
        let spaced = rest.replace('(', "( ").replace('[', "[ ");
        let words: Vec<String> = spaced.split(' ').map(rename).collect();
        let text = head + &words.join(" ").replace("( ", "(").replace("[ ", "[");
        match text.starts_with("return") {
            true => text,
            false => text.rsplit_once(' ').map_or(text.clone(), |(text, _)| text.to_string()),
        }
    };
    lines.iter().enumerate().map(line).collect()
}

/// Whether a value that nobody waited for is handed to backward.
fn hands_over_in_flight(forward: &[String], backward: &[String]) -> bool {
    let placeholder = |line: &String| Some(line.split_once(" placeholder")?.0.to_string());
    let inputs: Vec<String> = backward.iter().filter_map(placeholder).collect();
    let launches = |line: &String, input: &str| {
        let call = line.strip_prefix(input).and_then(|rest| rest.strip_prefix(" = _c10d_functional."));
        call.is_some_and(|call| !call.starts_with("wait_tensor"))
    };
    inputs.iter().any(|input| forward.iter().any(|line| launches(line, input)))
}

fn lines() -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(&include_bytes!("pytorch.jsonl.gz")[..]).read_to_string(&mut text).unwrap();
    text
}

/// The joint graphs of all cases.
pub fn joints() -> Vec<Graph> {
    let joint = |line: &str| {
        let case: Case = serde_json::from_str(line).unwrap();
        json::read(case.joint.get().as_bytes()).unwrap().into_graph().unwrap()
    };
    lines().lines().map(joint).collect()
}

/// PyTorch's steps, without the comparison of what is held with the budget that the reference ends with.
struct Steps;
impl Strategy for Steps {
    fn keeps_budget(&self) -> bool {
        false
    }
}

#[test]
fn both_sides_are_as_pytorch_cuts_them() {
    let text = lines();
    let (mut agree, mut refuse, mut in_flight, mut faults) = (0, 0, 0, Vec::new());
    for line in text.lines() {
        let case: Case = serde_json::from_str(line).unwrap();
        let joint = json::read(case.joint.get().as_bytes()).unwrap().into_graph().unwrap();
        let words = &case.options;
        let mut fault = |text: String| faults.push(format!("{} {words}: {text}", case.seed));
        match (run_with(&joint, &config(words), &Steps), &case.refused) {
            (Err(_), Some(_)) => refuse += 1,
            // PyTorch saves what is not waited for, where the wait is tagged to be computed again and what it waits
            // for is not.
            (Ok(partition), None) if hands_over_in_flight(&case.forward, &case.backward) => {
                in_flight += 1;
                let (forward, backward) = (listing(&partition.forward), listing(&partition.backward));
                assert!(!hands_over_in_flight(&forward, &backward), "{words}");
            }
            (Err(error), None) => fault(error.to_string()),
            (Ok(_), Some(refused)) => fault(format!("PyTorch refuses: {refused}")),
            (Ok(partition), None) => {
                let paired = case.backward.iter().any(|line| line.starts_with("rng_state_output"));
                let mut same = true;
                for (ours, theirs) in
                    [(&partition.forward, &case.forward), (&partition.backward, &case.backward)]
                {
                    let (ours, theirs) = match paired {
                        true => (super::listing::structure(ours), by_position(theirs)),
                        false => (listing(ours), theirs.clone()),
                    };
                    if ours != theirs && same {
                        same = false;
                        let first = ours.iter().zip(&theirs).find(|(a, b)| a != b);
                        fault(format!("{} and {} lines; {first:?}", ours.len(), theirs.len()));
                    }
                }
                agree += u32::from(same);
            }
        }
    }
    println!("{agree} partitions agree, {refuse} are refused by both, PyTorch saves {in_flight} in flight");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    assert!(in_flight <= 4);
    assert!(agree >= 150);
}
