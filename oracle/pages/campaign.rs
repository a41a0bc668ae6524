//! The page of campaigns: what was tried, what came of it, and each cause of findings with its smallest case.

use crate::page::{Page, bar};
use crate::words::{line, visible};
use ir::format::{svg, text};
use ir::words::count;
use maud::{Markup, PreEscaped, html};

/// Findings of one cause, told by the smallest.
pub struct Found<'a> {
    /// The rule.
    pub rule: &'a str,
    /// The rule's kind, where it has one.
    pub kind: Option<&'a str>,
    /// In how many cases it shows, in words.
    pub counted: String,
    /// Why the smallest is wrong.
    pub why: &'a str,
    /// The file of the case: in the folder of the campaign, where that is kept.
    pub file: String,
    /// The smallest case, as text.
    pub case: &'a str,
    /// The explanation.
    pub report: &'a str,
    /// The command that judges the case again, once it is in that file.
    pub command: String,
    /// The other findings: their files, and their cases.
    pub others: Vec<(String, &'a str)>,
}

/// A campaign.
pub struct Campaign<'a> {
    /// What was asked, in words.
    pub title: &'a str,
    /// The summary for people, as the command line prints it.
    pub summary: String,
    /// How many cases came to what: `sound`, `violated`, ...
    pub outcomes: Vec<(&'static str, u64)>,
    /// Why nothing can be said of what was not found, where that is so.
    pub open: Option<String>,
    /// Cases by rule.
    pub rules: Vec<(&'a str, u64)>,
    /// What was found.
    pub found: Vec<Found<'a>>,
}

/// A page about some campaigns.
pub fn page(campaigns: &[Campaign]) -> String {
    let found: usize = campaigns.iter().map(|campaign| campaign.found.len()).sum();
    let open = campaigns.iter().find_map(|campaign| campaign.open.as_ref());
    let (class, word) = match (found, open) {
        (0, None) if !campaigns.is_empty() => ("sound", "NOTHING FOUND".to_string()),
        (0, _) => ("undecided", "UNDECIDED".to_string()),
        (n, _) => ("violated", count(n, "CAUSE").to_uppercase()),
    };
    let title = match campaigns {
        [one] => one.title.to_string(),
        all => count(all.len(), "campaign"),
    };
    let body = html! {
        header class={ "verdict " (class) } { h1 { span.word { (word) } " " span.subject { (line(&title)) } }
            @if let Some(why) = open { p { (line(why)) } }
        }
        main { @for (number, campaign) in (1..).zip(campaigns) { (campaign.section(number, campaigns.len() > 1)) } }
    };
    Page { title: format!("{word}: {title}"), body, data: Vec::new() }.render()
}

impl Campaign<'_> {
    fn section(&self, number: usize, is_one_of_several: bool) -> Markup {
        html! {
            section {
                @if is_one_of_several { h2 { (line(self.title)) } }
                div.side-by-side {
                    (bars("outcome", &self.outcomes))
                    @if !self.rules.is_empty() { (bars("broken rule", &self.rules)) }
                }
                details { summary { "the summary in words" } pre.report { (visible(&self.summary)) } }
            }
            @if !self.found.is_empty() {
                section {
                    h2 { (count(self.found.len(), "cause")) }
                    @for (at, found) in (1..).zip(&self.found) {
                        (found.article(&format!("finding-{number}-{at}"), at))
                    }
                }
            }
        }
    }
}

/// Counts as a table with bars.
fn bars(what: &str, rows: &[(&str, u64)]) -> Markup {
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(0);
    html! {
        div.scroll { table.bars {
            thead { tr { th { (what) } th.number { "cases" } th {} } }
            tbody { @for (name, count) in rows { tr {
                td { (line(name)) } td.number { (count) } td { (bar(*count, most)) }
            } } }
        } }
    }
}

impl Found<'_> {
    fn article(&self, id: &str, at: usize) -> Markup {
        // Pictures and cases of others: a case that cannot be read is shown as text alone.
        let graph = text::parse(self.case).ok().map(|case| case.graph);
        let picture = graph.and_then(|graph| svg::svg(&graph).ok());
        let picture = picture.map(|svg| placed(&svg, id));
        html! {
            article.finding id=(id) {
                h3 { span.index { (at) } " " code { (line(self.rule)) }
                    @if let Some(kind) = self.kind { ": " (visible(kind)) }
                }
                p.quiet { (line(&self.counted)) }
                @if !self.why.is_empty() { pre.report { (visible(self.why)) } }
                div.case-and-picture {
                    div { pre.case tabindex="0" { (visible(self.case)) } p.quiet { (line(&self.file)) } }
                    @if let Some(picture) = picture { div.picture.paper tabindex="0" { (PreEscaped(picture)) } }
                }
                pre.command { code { (line(&self.command)) } }
                details { summary { "the whole report" } pre.report { (visible(self.report)) } }
                @if !self.others.is_empty() {
                    details {
                        summary { (self.others.len()) " more like it" }
                        @for (file, case) in &self.others { p.quiet { (line(file)) } pre.case { (visible(case)) } }
                    }
                }
            }
        }
    }
}

/// A picture as it stands in a page beside others: without its name space, and with names of its own for what it refers
/// to. (Quotes are escaped in texts of others, so that only attributes are met.)
fn placed(svg: &str, id: &str) -> String {
    let own = visible(svg).replacen(" xmlns=\"http://www.w3.org/2000/svg\"", "", 1);
    own.replace(" id=\"", &format!(" id=\"{id}-")).replace("=\"url(#", &format!("=\"url(#{id}-"))
}
