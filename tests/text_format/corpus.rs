//! The files of corpus/ are canonical text, and graphs captured from PyTorch survive the way through text.

use graph_oracle::format::{json, text};
use graph_oracle::graph::Graph;
use graph_oracle::ops::Ops;
use std::path::{Path, PathBuf};

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    files.retain(|path| path.to_string_lossy().ends_with(ending));
    files.sort();
    files
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Text and name of each case of the corpus.
fn cases() -> Vec<(String, String)> {
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    files(&root().join("corpus"), ".graph")
        .iter()
        .map(|path| (std::fs::read_to_string(path).unwrap(), name(path)))
        .collect()
}

#[test]
fn corpus_is_canonical() {
    let cases = cases();
    assert!(cases.len() >= 12, "only {} cases", cases.len());
    for (source, name) in cases {
        let case = text::parse(&source).unwrap_or_else(|e| panic!("{}", e.render(Some(&name))));
        assert_eq!(text::print(&case), source, "{name}");
        assert!(source.starts_with("# "), "{name}: says nothing about itself");
        assert!(!case.expectations.is_empty(), "{name}: expects nothing");
    }
}

/// What the documentation shows can be read.
#[test]
fn examples_of_the_documentation_parse() {
    let page = std::fs::read_to_string(root().join("docs/case_format.md")).unwrap();
    let blocks: Vec<&str> =
        page.split("```\n").skip(1).step_by(2).filter(|b| !b.starts_with("---")).collect();
    assert!(blocks.len() >= 2);
    for block in blocks {
        text::parse(block).unwrap_or_else(|e| panic!("{}", e.render(Some("docs/case_format.md"))));
    }
}

/// A type that the operator's rule can tell need not be written.
#[test]
fn types_can_be_left_out() {
    let (mut left_out, mut whole) = (0, 0);
    for (source, name) in cases() {
        let mut short = String::new();
        for line in source.lines() {
            let bare = match line.split_once(": ") {
                Some((call, _)) if call.contains('(') && call.contains(" = ") => call,
                _ => line,
            };
            left_out += usize::from(bare != line);
            short.push_str(bare);
            short.push('\n');
        }
        let case = text::parse(&source).unwrap();
        match text::parse(&short) {
            Ok(inferred) => assert_eq!(inferred, case, "{name}"),
            // Only an unsorted list has calls whose inputs are not known yet.
            Err(errors) => assert!(name.starts_with("repair"), "{}", errors.render(Some(&name))),
        }
        whole += usize::from(text::parse(&short).is_ok());
    }
    assert!(left_out > 100 && whole >= 12, "{left_out} types of {whole} cases");
}

fn survives(path: &Path) -> Graph {
    let name = path.display();
    let bytes = std::fs::read(path).unwrap();
    let graph = json::read(&bytes).unwrap_or_else(|e| panic!("{name}: {e}")).into_graph().unwrap();
    let printed = text::print_graph(&graph);
    let case = text::parse(&printed).unwrap_or_else(|e| panic!("{}", e.render(Some(&name.to_string()))));
    if let Some(difference) = graph.difference(&case.graph) {
        panic!("{name}: {difference}");
    }
    assert!(text::print(&case) == printed, "{name}: the text changes");
    // What the oracle knows of the operators is the same, although most facts are not carried.
    let (before, after) = (Ops::of(&graph), Ops::of(&case.graph));
    for id in graph.ids() {
        assert_eq!(before.call(&graph, id), after.call(&case.graph, id), "{name}: {}", graph.name(id));
    }
    graph
}

#[test]
fn captured_graphs_survive_text() {
    let files = files(&root().join("corpus/real"), ".json.gz");
    assert!(!files.is_empty());
    for path in files {
        survives(&path);
    }
}

#[test]
fn recorded_graphs_survive_text() {
    // Beside the project, or beside the folder of a further working tree.
    let mut folders = root().ancestors().skip(1).take(2).map(|f| f.join("shared/graphs")).collect::<Vec<_>>();
    folders.retain(|folder| folder.is_dir());
    let Some(folder) = folders.first() else {
        println!("skipped: 1 test, ../shared/graphs is absent");
        return;
    };
    let files = files(folder, ".json.gz");
    let nodes: usize = files.iter().map(|path| survives(path).len()).sum();
    println!("{} graphs, {nodes} nodes", files.len());
}
