//! The frame of every page: its head with style and script, a heading, what stands below it, and data for the script.

use crate::words::{json_for_script, line};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = concat!(include_str!("model.js"), include_str!("graphs.js"), include_str!("page.js"));

/// Nothing is loaded, from anywhere; a form goes back to where the page came from.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      form-action 'self'; base-uri 'none'";

/// A page.
pub(crate) struct Page {
    /// The title, as the window shows it.
    pub(crate) title: String,
    /// What the page shows.
    pub(crate) body: Markup,
    /// What the script draws, by the id of its element.
    pub(crate) data: Vec<(String, Value)>,
}

impl Page {
    pub(crate) fn render(self) -> String {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="color-scheme" content="light dark";
                    title { (line(&self.title)) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    (self.body)
                    footer {
                        "Made by graph-oracle " (env!("CARGO_PKG_VERSION")) ". The page needs nothing but itself."
                    }
                    @for (id, data) in &self.data {
                        script type="application/json" id=(id) { (json_for_script(data)) }
                    }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        };
        page.into_string()
    }
}

/// The command that repeats what a page shows.
pub(crate) fn replay(command: &str) -> Markup {
    html! {
        section {
            h2 { "Repeat" }
            pre.command { code { (line(command)) } }
        }
    }
}

/// A bar that is as long as a share of the longest one.
pub(crate) fn bar(of: u64, longest: u64) -> Markup {
    let percent = 100.0 * of as f64 / longest.max(1) as f64;
    html! { span.bar-of { span style=(format!("width:{percent:.1}%")) {} } }
}
