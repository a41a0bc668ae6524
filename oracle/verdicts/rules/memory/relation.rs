//! The alias relation of a graph's outputs and inputs, before and after a pass.

use super::evidence::{MemoryEvidence, not_claimed};
use crate::analysis::Touch;
use crate::graph::{Op, Value};
use crate::memory::replay::Facts;
use crate::rules::partition::returned;
use crate::rules::{Checked, Code, Finding};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// What an output shares memory with.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Shares {
    /// Nothing that came before.
    Fresh,
    /// This input.
    Input(String),
    /// This earlier output.
    Output(usize),
    /// It is no tensor.
    NoTensor,
    /// It is not known.
    Unknown,
}

impl Shares {
    fn describe(&self) -> String {
        match self {
            Shares::Fresh => "memory of its own".to_string(),
            Shares::Input(name) => format!("the memory of input {name}"),
            Shares::Output(index) => format!("the memory of output {index}"),
            Shares::NoTensor => "no tensor".to_string(),
            Shares::Unknown => "memory that is not known".to_string(),
        }
    }
}

fn relation(facts: &Facts) -> (Vec<Shares>, BTreeSet<String>, bool) {
    let graph = facts.graph;
    let mut input: FxHashMap<u32, String> = FxHashMap::default();
    for id in graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder) {
        for part in facts.storages.all_parts(id) {
            input.entry(part.storage.0).or_insert_with(|| graph.name(id).to_string());
        }
    }
    let mut first: FxHashMap<u32, usize> = FxHashMap::default();
    let mut shares = Vec::new();
    for (i, value) in returned(graph).into_iter().enumerate() {
        let Value::Node(node) = value else {
            shares.push(Shares::NoTensor);
            continue;
        };
        let mut parts = facts.storages.all_parts(node);
        shares.push(match (parts.next(), parts.next()) {
            (None, _) => Shares::NoTensor,
            (Some(part), None) if part.certain => match input.get(&part.storage.0) {
                Some(name) => Shares::Input(name.clone()),
                None => match *first.entry(part.storage.0).or_insert(i) {
                    earlier if earlier < i => Shares::Output(earlier),
                    _ => Shares::Fresh,
                },
            },
            _ => Shares::Unknown,
        });
    }
    let mut written = BTreeSet::new();
    let mut doubt = false;
    for access in facts.storages.accesses().iter().filter(|access| access.touch == Touch::Write) {
        if let Some(name) = input.get(&access.part.storage.0) {
            match access.part.certain {
                true => {
                    written.insert(name.clone());
                }
                false => doubt = true,
            }
        }
    }
    (shares, written, doubt)
}

/// The relation is the same before and after.
pub(super) fn alias_relation(evidence: &MemoryEvidence) -> Checked {
    const RULE: &str = "memory/alias-relation";
    let Some(after) = &evidence.claim.after else {
        return not_claimed("the outputs and inputs of a graph after");
    };
    let (before_shares, before_written, before_doubt) = relation(&evidence.facts);
    let (after_shares, after_written, after_doubt) = relation(&Facts::new(after));
    let finding = |title: String| -> Finding { evidence.finding(RULE, title, []) };
    if before_shares.len() != after_shares.len() {
        let title =
            format!("there are {} outputs after, and {} before", after_shares.len(), before_shares.len());
        return Checked::Findings(vec![finding(title)]);
    }
    let (mut findings, mut unknown) = (Vec::new(), before_doubt || after_doubt);
    for (i, (before, after)) in before_shares.iter().zip(&after_shares).enumerate() {
        if before == after {
            continue;
        }
        if [before, after].contains(&&Shares::Unknown) {
            unknown = true;
            continue;
        }
        let mut found = finding(format!("output {i} shares memory with something else than before"));
        found.expected = Some(format!("before, output {i} is {}", before.describe()));
        found.observed = Some(format!("after, it is {}", after.describe()));
        findings.push(found);
    }
    if !(before_doubt || after_doubt) {
        for name in after_written.difference(&before_written) {
            findings.push(finding(format!("input {name} is written after, and is not before")));
        }
        for name in before_written.difference(&after_written) {
            findings.push(finding(format!("input {name} is written before, and is not after")));
        }
    }
    let doubt = || Code::MayShareMemory.because("an operator may return or write what it takes");
    Checked::found(findings, unknown.then(doubt))
}
