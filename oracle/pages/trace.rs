//! The page of a trace: a row for each pass on each rank, and below those that are not sound why.

use crate::finding::list;
use crate::judge::{Judgement, Verdict};
use crate::page::Page;
use crate::report::cost::Cost;
use crate::verdict;
use crate::view::Table;
use crate::words::{line, visible};
use ir::words::{bytes, duration};
use maud::{Markup, html};

/// A pass on one graph of one rank.
pub struct Row<'a> {
    /// The pass.
    pub pass: String,
    /// The compilation.
    pub frame: String,
    /// The rank; `None` where nobody knows.
    pub rank: Option<u32>,
    /// Where its graphs stand.
    pub place: String,
    /// The verdict in a word: `sound`, `unchanged`, `not judged`, ...
    pub verdict: &'static str,
    /// Why it is not sound, a line each.
    pub why: Vec<String>,
    /// The judgement, where there is one.
    pub judgement: Option<&'a Judgement>,
    /// What passes of its name may do, where the verdict rests on that.
    pub allowed: Option<&'a str>,
    /// Figures before and after.
    pub cost: Option<(Cost, Cost)>,
    /// What is to be said of how the texts were read.
    pub notes: &'a [String],
}

/// What a page of a trace shows.
pub struct Trace<'a> {
    /// What was judged.
    pub subject: &'a str,
    /// How many rows there are of each verdict, in words.
    pub summary: &'a str,
    /// The rows.
    pub rows: Vec<Row<'a>>,
    /// Where ranks part, a line each.
    pub rank_findings: &'a [String],
    /// Where they may part, a line each.
    pub rank_doubts: &'a [String],
    /// What is to be said of the whole.
    pub notes: &'a [String],
}

impl Trace<'_> {
    /// The page.
    pub fn page(&self) -> String {
        let has = |word: &str| self.rows.iter().any(|row| row.verdict == word);
        let (class, word) = match () {
            () if has("violated") || !self.rank_findings.is_empty() => ("violated", "VIOLATED"),
            () if has("undecided") || has("refused") || has("not judged") || !self.rank_doubts.is_empty() => {
                ("undecided", "UNDECIDED")
            }
            () if self.rows.is_empty() => ("undecided", "NOTHING TO JUDGE"),
            () => ("sound", "SOUND"),
        };
        let body = html! {
            header class={ "verdict " (class) } {
                h1 { span.word { (word) } " " span.subject { (line(self.subject)) } }
                p { (visible(self.summary)) }
                @if !self.rank_findings.is_empty() {
                    p { "Ranks differ:" }
                    ul { @for finding in self.rank_findings { li { (visible(finding)) } } }
                }
                @if !self.rank_doubts.is_empty() {
                    p { "Ranks may differ:" }
                    ul { @for doubt in self.rank_doubts { li { (visible(doubt)) } } }
                }
            }
            main {
                section #passes { (self.table()) }
                @if !self.notes.is_empty() {
                    section #notes { h2 { "Notes" } ul.notes { @for note in self.notes { li { (visible(note)) } } } }
                }
            }
        };
        Page { title: format!("{word}: {}", self.subject), body, data: Vec::new() }.render()
    }

    fn table(&self) -> Markup {
        html! {
            div.scroll { table data-filter="verdict pass rank rule" {
                thead { tr {
                    th { "pass" } th { "frame" } th.number { "rank" } th { "verdict" }
                    th.number { "collectives" } th.number { "peak" } th.number { "exposed" } th.number { "nodes" }
                } }
                @for (number, row) in self.rows.iter().enumerate() { (row.body(number)) }
            } }
        }
    }
}

impl Row<'_> {
    /// The row and what stands below it, as a body of the table.
    fn body(&self, number: usize) -> Markup {
        let rank = self.rank.map_or("?".to_string(), |rank| rank.to_string());
        let rules = self.judgement.map_or(Vec::new(), Judgement::violated_rules).join("\n");
        let class = self.verdict.replace(' ', "-");
        html! {
            tbody data-verdict=(self.verdict) data-pass=(line(&self.pass)) data-rank=(rank) data-rule=(rules) {
                tr.row {
                    td.name { (line(&self.pass)) }
                    td { (line(&self.frame)) }
                    td.number { (rank) }
                    td class=(class) { b { (self.verdict) } }
                    td.number { (self.change(|cost| Some(cost.collectives.to_string()))) }
                    td.number { (self.change(|cost| cost.peak.map(bytes))) }
                    td.number { (self.change(|cost| cost.exposed.map(duration))) }
                    td.number { (self.change(|cost| Some(cost.nodes.to_string()))) }
                }
                tr.more { td colspan="8" { (self.more(number)) } }
            }
        }
    }

    /// A figure before and after; once where it is the same.
    fn change(&self, of: impl Fn(&Cost) -> Option<String>) -> Markup {
        let words = |cost: &Cost| of(cost).unwrap_or_else(|| "?".to_string());
        let figures = self.cost.as_ref().map(|(before, after)| (words(before), words(after)));
        html! {
            @match figures {
                None => {}
                Some((before, after)) if before == after => { (before) }
                Some((before, after)) => { (before) " → " b { (after) } }
            }
        }
    }

    /// Why it is not sound, in full where it is violated; else what the verdict rests on, folded.
    fn more(&self, number: usize) -> Markup {
        let findings = match self.judgement.map(|judgement| &judgement.verdict) {
            Some(Verdict::Violated(findings)) => &findings[..],
            _ => &[],
        };
        html! {
            @if findings.is_empty() { @for why in &self.why { p { (visible(why)) } } }
            @if !findings.is_empty() {
                details open { summary { "findings" }
                    (list(findings, &Table::default(), &format!("row-{}", number + 1)))
                }
            }
            details {
                summary.quiet { (line(&self.place)) }
                @if let Some(allowed) = self.allowed {
                    p { "With " code { "--allow " (line(allowed)) } ", which passes of this name do." }
                }
                @if let Some(judgement) = self.judgement { (verdict::notes(judgement)) }
                @if !self.notes.is_empty() { ul.notes { @for note in self.notes { li { (visible(note)) } } } }
            }
        }
    }
}
