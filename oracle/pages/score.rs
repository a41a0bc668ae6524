//! The page of a score: how soon each planted bug is convicted.

use crate::page::{Page, bar};
use crate::words::{line, visible};
use ir::words::count;
use maud::html;

/// A planted bug, and how soon it was convicted.
pub struct Row {
    /// The mutant.
    pub name: String,
    /// What is wrong with it.
    pub about: String,
    /// What it was made after.
    pub origin: String,
    /// Cases until it was convicted: the median over the seeds; `None`: it was not.
    pub median: Option<u64>,
    /// The most over the seeds.
    pub most: Option<u64>,
    /// The rules that convicted it, with the seeds.
    pub rules: Vec<(String, u64)>,
}

/// A page about a score.
pub fn page(rows: &[Row], seeds: u64) -> String {
    let convicted = rows.iter().filter(|row| row.most.is_some()).count();
    let (class, word) = match convicted == rows.len() {
        true => ("sound", "ALL CONVICTED"),
        false => ("violated", "NOT ALL CONVICTED"),
    };
    let longest = rows.iter().filter_map(|row| row.median).max().unwrap_or(1);
    let body = html! {
        header class={ "verdict " (class) } {
            h1 { span.word { (word) } " " span.subject { (convicted) " of " (count(rows.len(), "mutant")) } }
            p { "Cases until a mutant is convicted, over " (count(seeds as usize, "seed"))
                "; the bar is the median, on a logarithmic scale." }
        }
        main { div.scroll { table.bars {
            thead { tr {
                th { "mutant" } th { "what is wrong" } th.number { "median" } th {} th.number { "most" }
                th { "convicted by" }
            } }
            tbody { @for row in rows { tr {
                td.name { (line(&row.name)) }
                td { (visible(&row.about)) @if !row.origin.is_empty() { span.tag { (visible(&row.origin)) } } }
                td.number { (number(row.median)) }
                td { @if let Some(median) = row.median { (bar(length(median), length(longest))) } }
                td.number { (number(row.most)) }
                td { @for (rule, seeds) in &row.rules { code { (line(rule)) } " " span.quiet { (seeds) } " " } }
            } } }
        } } }
    };
    Page { title: format!("{word}: score"), body, data: Vec::new() }.render()
}

fn number(cases: Option<u64>) -> String {
    cases.map_or("none".to_string(), |cases| cases.to_string())
}

/// The length of a bar: thousandths of the logarithm, so that 1 and 10,000 can both be seen.
fn length(cases: u64) -> u64 {
    ((cases.max(1) as f64 + 1.0).ln() * 1000.0) as u64
}
