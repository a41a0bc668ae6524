//! Graphs side by side: the table that the script draws rows of, and the frame that it draws them in.
//!
//! # The idea
//!
//! A row is a node in words: name, call, result, module, source, and the names of its operands. Nodes that say the same
//! are one row, in whatever graph they stand: what a pass left alone is written once, and the script tells it by its
//! number. Names, calls and results are numbered too. So a graph of ten thousand nodes takes some hundred kilobytes.

use crate::analysis::Collectives;
use crate::call::{call, result};
use crate::graph::{Graph, NodeId, Op};
use crate::ops::{Kind, Ops};
use crate::rules::{Finding, name_ranks};
use crate::words::{line, visible};
use indexmap::IndexSet;
use ir::limits::Limit;
use maud::{Markup, html};
use rustc_hash::FxBuildHasher;
use serde_json::{Value, json};

/// A graph with its title.
pub struct Shown<'g> {
    /// What it is: `before`, `forward`, ...
    pub title: String,
    /// The graph.
    pub graph: &'g Graph,
}

/// Graphs that are looked at side by side: those before and those after, as on one rank.
pub struct View<'g> {
    /// Which ranks it is of; none: all of them.
    pub ranks: Vec<u32>,
    /// What is to be said of the graphs after; empty where they are what the pass gave.
    pub stage: &'static str,
    /// On the left.
    pub before: Vec<Shown<'g>>,
    /// On the right.
    pub after: Vec<Shown<'g>>,
}

impl View<'_> {
    fn title(&self) -> String {
        let ranks = name_ranks(&self.ranks);
        match self.stage {
            "" => ranks,
            stage => format!("{ranks}, {stage}"),
        }
    }
}

type Words = IndexSet<String, FxBuildHasher>;

/// All graphs of a page.
#[derive(Default)]
pub(crate) struct Table {
    names: Words,
    calls: Words,
    results: IndexSet<(String, String), FxBuildHasher>,
    modules: Words,
    sources: Words,
    rows: IndexSet<Vec<i64>, FxBuildHasher>,
    graphs: Vec<Value>,
    views: Vec<Value>,
    /// Views for which there was no room.
    left_out: usize,
}

impl Table {
    pub(crate) fn new(views: &[View]) -> Table {
        let mut table = Table::default();
        let mut known: Vec<&Graph> = Vec::new();
        for view in views {
            let graphs: Vec<&Shown> = view.before.iter().chain(&view.after).collect();
            let is_new = |shown: &&&Shown| !known.iter().any(|graph| std::ptr::eq(*graph, shown.graph));
            let added: usize = graphs.iter().filter(is_new).map(|shown| shown.graph.len()).sum();
            let there: usize = known.iter().map(|graph| graph.len()).sum();
            if (there + added) as u64 > Limit::Shown.standard() {
                table.left_out += 1;
                continue;
            }
            let mut side = |side: &[Shown<'_>]| -> Vec<Value> {
                let mut numbered = Vec::with_capacity(side.len());
                for shown in side {
                    let at = known.iter().position(|graph| std::ptr::eq(*graph, shown.graph));
                    let at = at.unwrap_or_else(|| {
                        table.add(shown.graph);
                        table.graphs.len() - 1
                    });
                    numbered.push(json!([at, line(&shown.title)]));
                }
                numbered
            };
            let (before, after) = (side(&view.before), side(&view.after));
            for shown in graphs {
                if !known.iter().any(|graph| std::ptr::eq(*graph, shown.graph)) {
                    known.push(shown.graph);
                }
            }
            table.views.push(json!({ "title": view.title(), "before": before, "after": after }));
        }
        table
    }

    /// The number of a name, where a graph of the page has a node or an operand that is called so.
    pub(crate) fn name(&self, name: &str) -> Option<usize> {
        self.names.get_index_of(name)
    }

    fn add(&mut self, graph: &Graph) {
        let ops = Ops::of(graph);
        let collectives = Collectives::new(graph, &ops);
        let rows: Vec<usize> = graph.ids().map(|id| self.row(graph, &ops, &collectives, id)).collect();
        let order: Vec<[u32; 2]> = graph.ordering.iter().map(|edge| [edge.before.0, edge.after.0]).collect();
        self.graphs.push(json!({ "rows": rows, "order": order }));
    }

    fn row(&mut self, graph: &Graph, ops: &Ops, collectives: &Collectives, id: NodeId) -> usize {
        let node = graph.node(id);
        let (call, operands) = call(graph, ops, id);
        let number = |words: &mut Words, text: String| words.insert_full(text).0 as i64;
        let optional = |words: &mut Words, text: Option<String>| text.map_or(-1, |text| number(words, text));
        let source = node.stack.map(|stack| source(graph.text(stack)));
        let storage = graph.tensor_at(id, 0).and_then(|tensor| tensor.storage);
        let mut row = vec![
            number(&mut self.names, graph.name(id).to_string()),
            number(&mut self.calls, call),
            self.results.insert_full(result(graph, node.out)).0 as i64,
            optional(&mut self.modules, node.module.map(|module| line(graph.text(module)))),
            optional(&mut self.sources, source),
            part(graph, ops, collectives, id),
            storage.map_or(-1, |storage| i64::from(storage.0)),
        ];
        row.extend(operands.into_iter().map(|name| number(&mut self.names, name)));
        self.rows.insert_full(row).0
    }

    /// Everything, for the script.
    pub(crate) fn data(&self, findings: &[Finding]) -> Value {
        let results: Vec<[&str; 2]> = self.results.iter().map(|(short, full)| [&**short, &**full]).collect();
        let marks: Vec<Value> = findings
            .iter()
            .enumerate()
            .flat_map(|(number, finding)| {
                finding
                    .all()
                    .into_iter()
                    .flat_map(move |one| one.nodes.iter().map(move |node| (number, one, node)))
            })
            .filter_map(|(number, one, node)| {
                Some(json!([self.name(&node.name)?, number, one.rule, line(&one.title)]))
            })
            .collect();
        json!({
            "names": self.names.iter().map(|name| line(name)).collect::<Vec<_>>(),
            "calls": self.calls.as_slice().iter().collect::<Vec<_>>(),
            "results": results,
            "modules": self.modules.as_slice().iter().collect::<Vec<_>>(),
            "sources": self.sources.as_slice().iter().collect::<Vec<_>>(),
            "rows": self.rows.as_slice().iter().collect::<Vec<_>>(),
            "graphs": self.graphs,
            "views": self.views,
            "marks": marks,
        })
    }

    /// The frame; empty without graphs.
    pub(crate) fn frame(&self) -> Markup {
        html! {
            @if !self.views.is_empty() {
                section #graphs.graphs {
                    h2 { "Graphs" }
                    noscript { p { "The graphs are drawn by the script of this page, which is switched off." } }
                    div #viewer {}
                }
            }
            @if self.left_out > 0 {
                p.quiet {
                    (ir::words::count(self.left_out, "view")) " of graphs left out: a page shows at most "
                    (Limit::Shown.standard()) " nodes. graph-oracle show GRAPH --around NODE shows a part."
                }
            }
        }
    }
}

/// The part that a node plays, as a number that the script has a style for.
fn part(graph: &Graph, ops: &Ops, collectives: &Collectives, id: NodeId) -> i64 {
    match graph.node(id).op {
        Op::Placeholder => return 1,
        Op::GetAttr => return 2,
        Op::Output => return 3,
        Op::Call => {}
    }
    if collectives.launch_at(id).is_some() {
        return 4;
    }
    let info = ops.get(graph, id);
    match info.kind {
        Kind::Wait => 5,
        _ if info.writes() => 7,
        Kind::GetItem => 6,
        _ if info.is_view() => 6,
        _ => 0,
    }
}

/// The innermost lines of a stack: those that say where in the model a node comes from.
fn source(stack: &str) -> String {
    const LINES: usize = 12;
    let lines: Vec<&str> = stack.lines().filter(|line| !line.trim().is_empty()).collect();
    visible(&lines[lines.len().saturating_sub(LINES)..].join("\n"))
}
