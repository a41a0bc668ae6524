//! Where findings are: lines of the files that were given, and of the program that the graphs were made of.
//!
//! A finding names nodes. Each is looked up by name in the files of the graph that the finding shows in; a file is read
//! once more for that, and only where there is a finding. The user's own line is what the graph records of a node's
//! stack.

use super::super::files;
use crate::format::Places;
use crate::graph::Graph;
use crate::report::results::{Located, Place};
use crate::rules::{Finding, NodeMention, Stage};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Places beside the first one.
const RELATED: usize = 16;

/// A file with graphs.
struct Source {
    path: PathBuf,
    /// Read when the first finding asks.
    places: OnceCell<Places>,
    /// By name what the graph records of where a node comes from.
    stacks: BTreeMap<String, String>,
}

/// The files before a pass and after it.
#[derive(Default)]
pub(in crate::cli) struct Sources {
    before: Vec<Source>,
    after: Vec<Source>,
}

impl Source {
    fn new<'g>(path: &Path, graphs: impl IntoIterator<Item = &'g Graph>) -> Source {
        let mut stacks = BTreeMap::new();
        for graph in graphs {
            for id in graph.ids() {
                if let Some(stack) = graph.node(id).stack {
                    stacks.entry(graph.name(id).to_string()).or_insert_with(|| graph.text(stack).to_string());
                }
            }
        }
        Source { path: path.to_path_buf(), places: OnceCell::new(), stacks }
    }

    fn place_of(&self, node: &NodeMention) -> Option<Place> {
        let places = self.places.get_or_init(|| files::places(&self.path));
        let at = places.find(&node.spot())?;
        Some(Place { file: self.path.clone(), at: Some((at.line, Some(at.column))) })
    }
}

impl Sources {
    /// Adds a file with graphs before the pass.
    pub(in crate::cli) fn add_before<'g>(
        &mut self,
        path: &Path,
        graphs: impl IntoIterator<Item = &'g Graph>,
    ) {
        self.before.push(Source::new(path, graphs));
    }

    /// Adds a file with graphs after the pass; those of several ranks in the order of these.
    pub(in crate::cli) fn add_after<'g>(&mut self, path: &Path, graphs: impl IntoIterator<Item = &'g Graph>) {
        self.after.push(Source::new(path, graphs));
    }

    /// Where a finding is; of the whole, the first file.
    pub(in crate::cli) fn locate(&self, finding: Option<&Finding>) -> Located {
        let Some(finding) = finding else {
            let first = self.before.first().map(|source| Place::file(&source.path));
            return Located { place: first, related: Vec::new() };
        };
        let order = self.order(finding);
        let place = |node: &NodeMention| order.iter().find_map(|source| source.place_of(node));
        let (mut found, mut related) = (None, Vec::new());
        for node in &finding.nodes {
            if related.len() >= RELATED {
                break;
            }
            match place(node) {
                Some(place) if found.is_none() => found = Some(place),
                Some(place) => related.push((place, node.name.clone())),
                None => {}
            }
        }
        for node in &finding.nodes {
            let stack = order.iter().find_map(|source| source.stacks.get(&node.name));
            if let Some((stack, place)) = stack.and_then(|stack| Some((stack, line_of(stack)?)))
                && related.len() < RELATED
                && !related.iter().any(|(known, _)| *known == place)
            {
                related.push((place, format!("{} was made here: {stack}", node.name)));
            }
        }
        let first = order.first().map(|source| Place::file(&source.path));
        Located { place: found.or(first), related }
    }

    /// The files in the order in which they are looked into.
    fn order(&self, finding: &Finding) -> Vec<&Source> {
        // Where there is a file for each rank, that of a rank that shows it comes first.
        let rank = finding.ranks.first().and_then(|&rank| self.after.get(usize::try_from(rank).ok()?));
        let after = rank.into_iter().chain(&self.after);
        match finding.stage {
            Stage::Before => self.before.iter().chain(after).collect(),
            Stage::Unrepaired | Stage::After => after.chain(&self.before).collect(),
        }
    }
}

/// The line that a stack ends with: `FILE line N, in FUNCTION`, or `FILE:N in FUNCTION, code: ...`.
fn line_of(stack: &str) -> Option<Place> {
    let last = stack.lines().rev().find(|line| !line.trim().is_empty())?.trim();
    let number = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let line: usize = text.get(..end)?.parse().ok().filter(|&line| line > 0)?;
        let rest = text.get(end..)?;
        (rest.is_empty() || rest.starts_with([',', ' '])).then_some(line)
    };
    let (file, line) = [" line ", ":"].iter().find_map(|mark| {
        last.match_indices(mark).find_map(|(at, _)| {
            let line = number(last.get(at + mark.len()..)?)?;
            Some((last.get(..at)?, line))
        })
    })?;
    let file = file.trim_end_matches(',').trim_matches('"');
    (!file.is_empty()).then(|| Place::line(file, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_names_a_line() {
        let line = |file: &str, line| Some(Place::line(file, line));
        assert_eq!(line_of("train.py line 88, in forward"), line("train.py", 88));
        assert_eq!(line_of("/src/a.py:21 in forward, code: x[1:2] = y"), line("/src/a.py", 21));
        assert_eq!(line_of("a.py line 1, in f\nC:\\b.py:7 in g\n"), line("C:\\b.py", 7));
        for none in ["", "somewhere", ":3 in f", "a.py:0 in f", "a.py:12x", "a.py:99999999999999999999 in f"]
        {
            assert_eq!(line_of(none), None, "{none}");
        }
    }
}
