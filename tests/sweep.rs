//! The edits of `score --edits`, held against execution: what is called wrong shows when all ranks run, what is called
//! right does not. The judge, which the sweep measures, has no part in it.

use crate::common::scale::scaled;
use graph_oracle::candidates::{CandidateExt, Reference};
use graph_oracle::case::Case;
use graph_oracle::edits::{Edit, Part, Place, Reading, catalogue};
use graph_oracle::format::text;
use graph_oracle::generate::{self, Config};
use graph_oracle::graph::{Graph, World};
use graph_oracle::ops::Ops;
use graph_oracle::semantics::{Concrete, Domain, Fingerprints, Options, Program, Run, compare, run};
use std::collections::BTreeMap;
use std::process::Command;

/// Edits of what values do not show: records, waits and launches that are idle, memory that is shared; and those of
/// inputs, which execution binds by name.
const UNSEEN: &[&str] = &[
    "record-shape",
    "record-stride",
    "record-dtype",
    "record-storage",
    "record-offset",
    "wait-bypassed",
    "launched-twice",
    "write-doubled",
    "output-is-input",
    "inputs-exchanged",
    "ordering-dropped",
    "inputs-renamed",
];

fn executed<D: Domain>(graphs: &[Graph], world: &World, domain: &D) -> Option<Run> {
    let ops: Vec<Ops> = graphs.iter().map(Ops::of).collect();
    let programs = graphs.iter().zip(&ops).map(|(graph, ops)| Program::new(graph, ops, world).ok());
    let programs: Vec<Program> = programs.collect::<Option<_>>()?;
    run(&programs, world, domain, &Options { max_elements: 1 << 22, ..Options::default() }).ok()
}

/// The same change on every rank; `None` where their graphs are not alike.
fn edited(outcomes: &[Graph], place: &Place) -> Option<Vec<Graph>> {
    let first = outcomes.first()?;
    let alike =
        |graph: &Graph| graph.len() == first.len() && graph.ids().all(|id| graph.name(id) == first.name(id));
    outcomes.iter().all(alike).then(|| outcomes.iter().map(|graph| (place.change)(graph)).collect())
}

/// What the words of a wrong edit are at a place where it changes nothing: a choice between a value and itself, say.
const IDLE: &str = "nothing differs";

/// What execution says against an edit, if anything.
fn objection(edit: &Edit, before: &[Graph], after: &[Graph], world: &World) -> Option<String> {
    if edit.keeps {
        let numbers = executed(before, world, &Concrete::default())?;
        return match executed(after, world, &Concrete::default()) {
            None => Some("cannot be executed".to_string()),
            Some(run) => compare(&numbers, &run).first().map(|difference| difference.to_string()),
        };
    }
    let terms = executed(before, world, &Fingerprints::in_bits())?;
    // What can no longer be executed is wrong, too.
    let run = executed(after, world, &Fingerprints::in_bits())?;
    let seen = !compare(&terms, &run).is_empty() || run.hazards.len() > terms.hazards.len();
    let numbers = [before, after].map(|graphs| executed(graphs, world, &Concrete::of_trial(1)));
    let [Some(one), Some(other)] = numbers else { return (!seen).then(|| IDLE.to_string()) };
    let words = || match compare(&one, &other).first() {
        Some(difference) => format!("fingerprints are equal, and {difference}"),
        None => IDLE.to_string(),
    };
    (!seen).then(words)
}

/// Makes up to `most` edits of each kind to what the reference makes of a case; counts them by name.
fn hold_against_execution(
    case: &Case,
    most: usize,
    made: &mut BTreeMap<&'static str, usize>,
    idle: &mut usize,
    failed: &mut Vec<String>,
) {
    let (Some(pass), world) = (&case.pass, &case.graph.world) else { return };
    let Some(count) = world.ranks.filter(|&ranks| ranks <= 4) else { return };
    let ranks: Vec<u32> = (0..count).collect();
    let Ok(outcomes) = Reference.rewrite_on(&case.graph, pass, &ranks) else { return };
    let graphs: Vec<Graph> = outcomes.into_iter().map(|outcome| outcome.repaired).collect();
    if executed(&graphs, world, &Concrete::default()).is_none() {
        return;
    }
    let reading = Reading::new(&case.graph, &graphs[0], Part::Whole, false);
    for edit in catalogue().iter().filter(|edit| !UNSEEN.contains(&edit.name)) {
        for place in edit.places(&reading).found.iter().take(most) {
            let Some(after) = edited(&graphs, place) else { continue };
            *made.entry(edit.name).or_insert(0) += 1;
            let why = objection(edit, &graphs, &after, world);
            *idle += usize::from(why.as_deref() == Some(IDLE));
            if let Some(why) = why.filter(|why| why != IDLE) {
                let graph = text::print_graph(&graphs[0]);
                failed.push(format!("{}: {}: {why}\n{graph}", edit.name, place.what));
            }
        }
    }
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn what_is_called_wrong_is_wrong_and_what_is_called_right_is_right() {
    let (mut made, mut idle, mut failed) = (BTreeMap::new(), 0, Vec::new());
    for number in 0..scaled(120) {
        let case = generate::case(&Config::default(), 27, number).into_case();
        hold_against_execution(&case, 2, &mut made, &mut idle, &mut failed);
    }
    for name in ["corpus/all_gather_pair.graph", "corpus/reduce_scatter_pair.graph"] {
        let case = text::parse(std::fs::read(name).unwrap()).unwrap();
        hold_against_execution(&case, 4, &mut made, &mut idle, &mut failed);
    }
    println!("{made:?}");
    let all: usize = made.values().sum();
    assert!(idle * 20 < all, "{idle} of {all} wrong edits change nothing");
    assert!(failed.is_empty(), "{} edits are not what they are called:\n{}", failed.len(), failed.join("\n"));
    for name in ["operand", "wait-dropped", "members-exchanged", "reduction", "cloned", "reordered"] {
        assert!(made.contains_key(name), "{name} was made nowhere: {made:?}");
    }
}

#[test]
fn names_are_distinct() {
    let mut names: Vec<&str> = catalogue().iter().map(|edit| edit.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn every_edit_is_in_the_docs() {
    let docs = std::fs::read_to_string("docs/score.md").unwrap();
    for edit in catalogue() {
        let row = format!("| {} | {} |", edit.name, edit.about);
        assert!(docs.contains(&row), "docs/score.md lacks {row:?}");
    }
}

fn score(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_graph-oracle"))
        .args(["score", "--edits"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_command_prints_a_row_for_each_edit_and_each_rule() {
    let (status, out, complaint) =
        score(&["corpus/reduce_scatter_pair.graph", "--edit", "reduction", "--edit", "cloned"]);
    assert_eq!((status, complaint.as_str()), (0, ""), "{out}");
    assert!(out.contains("| reduction | 1 | 0 | 1 | 1 | 0 | 0 | 0 |"), "{out}");
    assert!(out.contains("| cloned |"), "{out}");
    assert!(out.contains("1 of 1 wrong edits convicted (100.0%), 0 slept"), "{out}");
    let (_, json, _) =
        score(&["corpus/reduce_scatter_pair.graph", "--edit", "reduction", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["made"][0]["said"], "violated");
    assert_eq!(json["edits"][0]["convicted"], 1);
}

#[test]
fn what_cannot_be_swept_is_said_so() {
    for (arguments, words) in [
        (&[][..], "--edits needs the graph before the pass"),
        (&["corpus/reduce_scatter_pair.graph", "--edit", "nope"][..], "there is no edit \"nope\""),
        (&["corpus/reduce_scatter_pair.graph", "--seconds", "0"][..], "--seconds is a positive number"),
        (
            &["corpus/reduce_scatter_pair.graph", "--edit", "ordering-dropped"][..],
            "there is no place for any edit",
        ),
        (&["corpus/nope.graph"][..], "nope.graph"),
    ] {
        let (status, out, complaint) = score(arguments);
        assert_eq!((status, out.as_str()), (2, ""), "{arguments:?}");
        assert!(complaint.contains(words), "{arguments:?}: {complaint}");
    }
    // An outcome that is not right cannot be measured by its edits.
    let (status, _, complaint) = score(&["corpus/historic_h1_missing_edge.graph", "corpus/out_buffer.graph"]);
    assert_eq!(status, 2, "{complaint}");
}
