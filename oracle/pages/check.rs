//! The page of a check: the verdict, the figures, the findings, the graphs side by side, and both over time.

use crate::figures;
use crate::finding::findings;
use crate::judge::{Judgement, Verdict};
use crate::page::{Page, replay};
use crate::simulation::Estimates;
use crate::timelines::over_time;
use crate::verdict;
use crate::view::{Shown, Table, View};
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
    /// How long nodes take.
    pub estimates: Estimates,
    /// Whether time and memory are what the pass is about: they stand open.
    pub is_about_timelines: bool,
}

impl Check<'_> {
    /// The page.
    pub fn page(&self) -> String {
        let table = Table::new(&self.views);
        let found = match &self.judgement.verdict {
            Verdict::Violated(findings) => &findings[..],
            _ => &[],
        };
        let mut data = vec![("graph-data".to_string(), table.data(found))];
        let over_time = over_time(self.seen_first(), &self.estimates, self.is_about_timelines);
        data.extend(over_time.1);
        let body = html! {
            (verdict::heading(self.judgement, self.subject))
            main {
                (figures::table(&self.figures()))
                (findings(found, &table))
                (table.frame())
                (over_time.0)
                (verdict::rules(self.judgement))
                @if self.judgement.verdict != Verdict::Sound && !self.judgement.notes.is_empty() {
                    section #notes { h2 { "Notes" } (verdict::notes(self.judgement)) }
                }
                @if let Some(command) = self.replay { (replay(command)) }
            }
        };
        let title = format!("{}: {}", verdict::word(&self.judgement.verdict).to_uppercase(), self.subject);
        Page { title, body, data }.render()
    }

    /// The figures of the graphs that are seen first.
    fn figures(&self) -> Vec<figures::Column> {
        self.seen_first().map(|shown| figures::column(shown, &self.estimates)).collect()
    }

    fn seen_first(&self) -> impl Iterator<Item = &Shown<'_>> {
        self.views.iter().take(1).flat_map(|view| view.before.iter().chain(&view.after))
    }
}
