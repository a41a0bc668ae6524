//! Findings in a text case, with its lines and a caret under each node that a finding names.
//!
//! Of other files it says nothing: lines of JSON show nobody what a graph does.

use super::files;
use crate::format::Places;
use crate::rules::Finding;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::path::Path;

/// Nodes of one finding that are pointed at: further ones make a snippet longer than the case.
const NODES: usize = 4;

/// The lines of a text case.
pub(super) struct Pointed {
    path: String,
    places: Places,
}

impl Pointed {
    /// The case in a file; `None` where the file holds none.
    pub(super) fn of(path: &Path) -> Option<Pointed> {
        let is_case = path.extension().is_some_and(|ending| ending == "graph");
        is_case.then(|| Pointed { path: path.display().to_string(), places: files::places(path) })
    }

    /// The lines that a finding is about; empty where none of its nodes stands in the file.
    pub(super) fn lines(&self, finding: &Finding) -> String {
        let spans = finding.nodes.iter().filter_map(|node| self.places.span(&node.spot())).take(NODES);
        let annotations: Vec<_> = spans
            .enumerate()
            .map(|(i, span)| match i {
                0 => AnnotationKind::Primary.span(span),
                _ => AnnotationKind::Context.span(span),
            })
            .collect();
        if annotations.is_empty() {
            return String::new();
        }
        let snippet = Snippet::source(self.places.text()).path(&self.path[..]).annotations(annotations);
        let text = Renderer::plain().render(&[Group::with_level(Level::ERROR).element(snippet)]);
        text.lines().map(|line| format!("   {line}").trim_end().to_string() + "\n").collect()
    }
}
