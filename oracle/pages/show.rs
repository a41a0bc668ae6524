//! The page of a graph by itself.

use crate::figures;
use crate::page::Page;
use crate::simulation::Estimates;
use crate::view::{Shown, Table, View};
use crate::words::line;
use ir::graph::Graph;
use maud::html;

/// A page that shows a graph.
pub fn page(graph: &Graph) -> String {
    let title = if graph.name.is_empty() { "A graph".to_string() } else { graph.name.clone() };
    let before = vec![Shown { title: "nodes".to_string(), graph }];
    let figures = vec![figures::column(&Shown { title: title.clone(), graph }, &Estimates::default())];
    let table = Table::new(&[View { ranks: Vec::new(), stage: "", before, after: Vec::new() }]);
    let body = html! {
        header.verdict { h1 { span.subject { (line(&title)) } } }
        main { (figures::table(&figures)) (table.frame()) }
    };
    Page { title, body, data: vec![("graph-data".to_string(), table.data(&[]))] }.render()
}
