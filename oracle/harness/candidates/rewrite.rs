//! Rewrites of no particular pass: some small edits that keep the meaning, and for a mutant one that does not.
//!
//! # The idea
//!
//! Any pass is a chain of small changes. The [`structural`] edits have changes that are right by
//! construction and others that are wrong by construction; the reference composes right ones, and each mutant ends with
//! a wrong one of one kind. Some end with an edit that is right where something is allowed beside keeping every bit, or
//! with one that looks like it; these say what is allowed, as a promise. Which, and where, follows from the graph
//! alone: the same graph is always rewritten in the same way.
//!
//! # What it does not do
//!
//! Bugs that need a whole algorithm to go wrong. A graph in which a wrong edit has no place is refused.

use super::{Answer, Candidate, Capabilities, Outcome, Refusal, Request};
use crate::case::Setting;
use crate::edits::{Edit, Part, Reading, loosening, structural};
use crate::family::Planted;
use crate::format::json;
use crate::generate::{Seeded, Source};
use crate::graph::Graph;
use crate::judge::{Offer, OfferedPromise};
use crate::rules::{Code, PassKind};

/// Right edits that are composed at most.
const MOST_EDITS: u32 = 4;

/// Rewrites a graph by edits that keep its meaning.
pub(crate) fn rewrite(graph: &Graph) -> Outcome {
    Outcome { unrepaired: None, repaired: edited(graph, &mut choices(graph)) }
}

/// The mutants: one for each kind of wrong edit.
pub fn mutants() -> impl Iterator<Item = Mutant> {
    let edits = of_rewrites(false).into_iter().map(|edit| (edit, None));
    edits.chain(loosened(false)).map(|(edit, allow)| Mutant::new(edit, allow))
}

/// The mutants, as they are scored.
pub(crate) fn planted() -> Vec<Planted> {
    let planted = |mutant: Mutant| Planted { about: mutant.about(), origin: "", candidate: Box::new(mutant) };
    mutants().map(planted).collect()
}

/// Those that end with an edit that is right where something is allowed.
pub fn loose() -> impl Iterator<Item = Mutant> {
    loosened(true).map(|(edit, allow)| Mutant::new(edit, allow))
}

/// The edits where something is allowed, those that are right by that or the others, each with what is allowed.
fn loosened(keeps: bool) -> impl Iterator<Item = (Edit, Option<&'static str>)> {
    let all = loosening().into_iter().filter(move |row| row.edit.keeps == keeps);
    all.map(|row| (row.edit, Some(row.allow)))
}

/// A rewrite that ends with one edit of a kind.
pub struct Mutant {
    name: String,
    edit: Edit,
    /// What is allowed beside keeping every bit.
    offer: Option<Offer>,
}

impl Mutant {
    fn new(edit: Edit, allow: Option<&'static str>) -> Mutant {
        let promise = |allow: &str| OfferedPromise {
            options: vec![("allow".to_string(), Setting::Text(allow.to_string()))],
            ..OfferedPromise::default()
        };
        let offer = allow.map(|allow| Offer { promises: vec![promise(allow)], ..Offer::default() });
        Mutant { name: format!("rewrite-{}", edit.name), edit, offer }
    }

    /// What it does, in one line.
    pub fn about(&self) -> &'static str {
        self.edit.about
    }
}

impl Candidate for Mutant {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of(&[PassKind::Rewrite])
    }

    fn offer(&self, _: PassKind) -> Option<&Offer> {
        self.offer.as_ref()
    }

    fn run(&self, request: &Request) -> Result<Vec<Answer>, Refusal> {
        let graph = request.graph;
        let mut source = choices(graph);
        let rewritten = edited(graph, &mut source);
        let repaired =
            [&rewritten, graph].into_iter().find_map(|of| once(graph, of, &self.edit, &mut source));
        let no_place = || {
            Refusal::of(Code::NoPlace, format!("there is no place in the graph where {}", self.edit.about))
        };
        Ok(vec![repaired.ok_or_else(no_place)?.into()])
    }
}

/// The edits of rewrites that keep the meaning, or that change it.
fn of_rewrites(keeps: bool) -> Vec<Edit> {
    let mut edits = structural();
    edits.retain(|edit| edit.keeps == keeps && edit.passes.contains(&PassKind::Rewrite));
    edits
}

/// Choices that follow from a graph (FNV-1a of its exchange form).
fn choices(graph: &Graph) -> Seeded {
    let mut bytes = Vec::new();
    // A list of bytes takes whatever is written.
    let _ = json::write(graph, &mut bytes);
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    Seeded::case(bytes.iter().fold(0xcbf2_9ce4_8422_2325, step), 0)
}

/// The graph after some right edits.
fn edited(graph: &Graph, source: &mut Seeded) -> Graph {
    let edits = of_rewrites(true);
    let mut now = graph.clone();
    for _ in 0..=source.below(MOST_EDITS) {
        let edit = &edits[source.below(edits.len() as u32) as usize];
        now = once(graph, &now, edit, source).unwrap_or(now);
    }
    now
}

/// The graph with one edit at some place; `None` where there is no place for it.
fn once(before: &Graph, graph: &Graph, edit: &Edit, source: &mut Seeded) -> Option<Graph> {
    let places = edit.places(&Reading::new(before, graph, Part::Whole, false)).found;
    let count = u32::try_from(places.len()).ok().filter(|&count| count > 0)?;
    Some((places.get(source.below(count) as usize)?.change)(graph))
}
