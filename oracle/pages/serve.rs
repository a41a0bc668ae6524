//! The pages of a server that are no report: the form for two graphs, a folder, and a refusal.

use crate::page::Page;
use crate::words::{line, visible};
use maud::{Markup, html};

/// What the form is filled in with.
#[derive(Default)]
pub struct Form {
    /// The graph before, as text.
    pub before: String,
    /// The graph after it.
    pub after: String,
    /// The pass.
    pub pass: String,
    /// Who is run where there is no graph after.
    pub candidate: String,
}

/// A file or folder.
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its path in the folder that is served.
    pub path: String,
    /// Its address.
    pub link: String,
    /// As what it can be shown: `graph`, `check`, `trace`, ...
    pub ways: Vec<&'static str>,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Whether it may be a graph.
    pub is_graph: bool,
}

/// A folder.
pub struct Folder {
    /// Its path in the folder that is served; empty for that itself.
    pub path: String,
    /// The address of the folder that it is in.
    pub above: Option<String>,
    /// What is in it.
    pub entries: Vec<Entry>,
}

/// The form, and a folder where one is served.
pub fn home(form: &Form, folder: Option<&Folder>, passes: &[&str], candidates: &[String]) -> String {
    let path = folder.map_or("", |folder| &folder.path);
    let title = if path.is_empty() { "graph-oracle".to_string() } else { path.to_string() };
    let body = html! {
        header.verdict {
            h1 { span.subject { (line(&title)) } }
            p { "Was a pass over a graph right, and if not, why?" }
        }
        main {
            section {
                h2 { "Judge what you have at hand" }
                (judge(form, passes, candidates))
            }
            @if let Some(folder) = folder { (folder.section(passes)) }
        }
    };
    Page { title, body, data: Vec::new() }.render()
}

/// A page that says why there is no other one.
pub fn refusal(why: &str) -> String {
    let body = html! {
        header.verdict.refused { h1 { span.word { "NOT SHOWN" } } pre.report { (visible(why)) } }
        main { p { a href="/" { "back to the beginning" } } }
    };
    Page { title: "Not shown".to_string(), body, data: Vec::new() }.render()
}

fn judge(form: &Form, passes: &[&str], candidates: &[String]) -> Markup {
    html! {
        form.judge method="post" action="/judge" data-short="12000" {
            div.two {
                (graph("before", "Before", "paste a graph or a text case, or drop a file here", &form.before))
                (graph("after", "After", "what the pass made of it; empty: the candidate is run", &form.after))
            }
            p.choices {
                (pass(&form.pass, passes))
                label { "Candidate " input name="candidate" list="candidates" value=(line(&form.candidate))
                    placeholder="reference"; }
                datalist #candidates { @for name in candidates { option value=(name) {} } }
                button { "Judge" }
            }
            p.quiet { "Text cases, exchange JSON (gzip too) and graphs as PyTorch prints them. Nothing is kept; a "
                "small case stands in the address of its page, which can be sent on." }
        }
    }
}

fn graph(name: &str, title: &str, hint: &str, text: &str) -> Markup {
    html! {
        label.graph { span { (title) }
            textarea name=(name) rows="9" spellcheck="false" placeholder=(hint) data-drop { (text) }
        }
    }
}

fn pass(chosen: &str, passes: &[&str]) -> Markup {
    html! {
        label { "Pass " select name="pass" {
            option value="" { "that of the case, or any rewrite" }
            @for pass in passes { option value=(pass) selected[*pass == chosen] { (pass) } }
        } }
    }
}

impl Folder {
    fn section(&self, passes: &[&str]) -> Markup {
        let graphs: Vec<&Entry> = self.entries.iter().filter(|entry| entry.is_graph).collect();
        let choice = |name: &str| {
            html! {
                label { (name) " " select name=(name) {
                    @for entry in &graphs { option value=(entry.path) { (line(&entry.name)) } }
                } }
            }
        };
        html! {
            section {
                h2 { "What is in the folder" }
                @if let Some(above) = &self.above { p { a href=(above) { "the folder above" } } }
                @if self.entries.is_empty() { p.quiet { "The folder is empty." } }
                @if graphs.len() > 1 {
                    form.choices method="get" action="/pair" {
                        (choice("before")) (choice("after")) (pass("", passes)) button { "Judge the pair" }
                    }
                }
                div.scroll { table.entries { tbody { @for entry in &self.entries { (entry.row()) } } } }
            }
        }
    }
}

impl Entry {
    fn row(&self) -> Markup {
        html! {
            tr {
                td.name { a href=(self.link) { (line(&self.name)) @if self.is_folder { "/" } } }
                td { @for way in &self.ways { a href={ (self.link) "?as=" (way) } { (way) } " " } }
            }
        }
    }
}
