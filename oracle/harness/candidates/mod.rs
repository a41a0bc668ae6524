//! Who is judged: the reference, mutants, and workers in other processes.

pub mod by_name;
pub mod memory;
pub(crate) mod mutants;
mod numbers;
pub mod partition;
pub mod pr158663;
pub(crate) mod reference;
mod refusals;
pub mod rewrite;
pub mod schedule;
pub mod worker;

use crate::family::FAMILIES;
pub use crate::judge::candidate::{
    Answer, Candidate, CandidateExt, Capabilities, Origin, Outcome, Place, Refusal, Reproduce, Request,
};
use crate::words;
pub use reference::{Reference, judging};

/// The candidates that run in process.
pub fn all() -> Vec<Box<dyn Candidate>> {
    let planted = FAMILIES.iter().flat_map(|row| row.planted()).map(|planted| planted.candidate);
    let others: [Box<dyn Candidate>; 2] = [Box::new(Reference), Box::new(by_name::ByName)];
    let loose = rewrite::loose().map(|candidate| Box::new(candidate) as Box<dyn Candidate>);
    others.into_iter().chain(planted).chain(loose).collect()
}

/// The candidate called `name`, or whose number in the benchmark of bugs it is; the names that exist, otherwise.
pub fn find(name: &str) -> Result<Box<dyn Candidate>, String> {
    let mut all = all();
    let wanted = numbers::named(name);
    match all.iter().position(|candidate| candidate.name() == wanted) {
        Some(i) => Ok(all.swap_remove(i)),
        None => {
            let names: Vec<&str> = all.iter().map(|candidate| candidate.name()).collect();
            Err(format!("unknown candidate {name:?}{}", words::choices(name, &names)))
        }
    }
}
