//! The page of a check: the verdict, the figures, the findings, and the graphs side by side.

use crate::figures;
use crate::finding::findings;
use crate::judge::{Judgement, Verdict};
use crate::page::{Page, replay};
use crate::verdict;
use crate::view::{Table, View};
use maud::html;

/// What a page of a check shows.
pub struct Check<'a> {
    /// What was found.
    pub judgement: &'a Judgement,
    /// What was judged.
    pub subject: &'a str,
    /// The command that judges it again.
    pub replay: Option<&'a str>,
    /// The graphs, as on one rank or on all; the first view is the first that is shown.
    pub views: Vec<View<'a>>,
}

impl Check<'_> {
    /// The page.
    pub fn page(&self) -> String {
        let table = Table::new(&self.views);
        let found = match &self.judgement.verdict {
            Verdict::Violated(findings) => &findings[..],
            _ => &[],
        };
        let body = html! {
            (verdict::heading(self.judgement, self.subject))
            main {
                (figures::table(&self.figures()))
                (findings(found, &table))
                (table.frame())
                (verdict::rules(self.judgement))
                @if self.judgement.verdict != Verdict::Sound && !self.judgement.notes.is_empty() {
                    section #notes { h2 { "Notes" } (verdict::notes(self.judgement)) }
                }
                @if let Some(command) = self.replay { (replay(command)) }
            }
        };
        let title = format!("{}: {}", verdict::word(&self.judgement.verdict).to_uppercase(), self.subject);
        Page { title, body, data: vec![("graph-data", table.data(found))] }.render()
    }

    /// The figures of the graphs that are seen first.
    fn figures(&self) -> Vec<figures::Column> {
        let graphs = self.views.iter().take(1).flat_map(|view| view.before.iter().chain(&view.after));
        graphs.map(figures::column).collect()
    }
}
