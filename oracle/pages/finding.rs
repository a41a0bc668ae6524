//! Findings: what is wrong, by which rule and why there is one, and the facts that show it. A name of a node leads to
//! the node in the graphs.

use crate::rules::{Finding, NodeMention, Severity, name_ranks, statement};
use crate::view::Table;
use crate::words::{line, visible};
use ir::words::count;
use maud::{Markup, html};

/// Findings told in full; of the rest the page has the titles.
const IN_FULL: usize = 100;

/// Consequences of a finding told in full.
const CONSEQUENCES: usize = 20;

/// Nodes of a finding that are named.
const NAMED: usize = 40;

/// A section of all findings.
pub(crate) fn findings(all: &[Finding], table: &Table) -> Markup {
    html! {
        @if !all.is_empty() { section #findings { h2 { (count(all.len(), "finding")) } (list(all, table, "finding")) } }
    }
}

/// Findings one below the other; `prefix` begins their ids.
pub(crate) fn list(all: &[Finding], table: &Table, prefix: &str) -> Markup {
    html! {
        @for (number, finding) in (1..).zip(all) {
            @if number <= IN_FULL {
                article.finding id={ (prefix) "-" (number) } {
                    h3 { span.index { (number) } " " (titled(finding)) }
                    (told(finding, table))
                }
            } @else {
                p.finding { span.index { (number) } " " code { (finding.rule) } " " (titled(finding)) }
            }
        }
    }
}

/// The title, with the ranks that it is about where others have graphs without it.
fn titled(finding: &Finding) -> String {
    match &finding.ranks[..] {
        [] => visible(&finding.title),
        ranks => format!("on {}: {}", name_ranks(ranks), visible(&finding.title)),
    }
}

fn told(finding: &Finding, table: &Table) -> Markup {
    let words = |text: &str| linked(text, finding, table);
    let statement = statement(finding.rule);
    // A side that stands alone contradicts the title.
    let (then, however) = match (&finding.expected, &finding.observed) {
        (Some(expected), None) => (None, Some(expected)),
        (expected, observed) => (expected.as_ref(), observed.as_ref()),
    };
    html! {
        p.rule {
            code { (finding.rule) }
            @if finding.severity == Severity::Policy { span.tag { "policy" } }
            @if let Some(statement) = &statement { " " (statement.statement) " " span.quiet { (statement.reason) } }
        }
        @if !finding.nodes.is_empty() {
            p.where { span.label { "Where" }
                @for node in finding.nodes.iter().take(NAMED) { (mention(node, table)) }
                @if finding.nodes.len() > NAMED { span.quiet { "and " (finding.nodes.len() - NAMED) " more" } }
            }
        }
        @if !finding.facts.is_empty() || then.is_some() || however.is_some() {
            dl.argument {
                @if !finding.facts.is_empty() {
                    dt { "Facts" }
                    dd { ul { @for fact in &finding.facts { li { (words(fact)) } } } }
                }
                @if let Some(then) = then { dt { "Expected" } dd.text { (words(then)) } }
                @if let Some(however) = however { dt { "Observed" } dd.text.observed { (words(however)) } }
            }
        }
        @if !finding.consequences.is_empty() { (consequences(&finding.consequences, table)) }
    }
}

fn consequences(of: &[Finding], table: &Table) -> Markup {
    html! {
        details.consequences {
            summary { (count(of.len(), "consequence")) }
            @for (number, finding) in of.iter().enumerate() {
                @if number < CONSEQUENCES {
                    div.finding { h4 { (titled(finding)) } (told(finding, table)) }
                } @else {
                    p { code { (finding.rule) } " " (titled(finding)) }
                }
            }
        }
    }
}

/// A node, with its places.
fn mention(node: &NodeMention, table: &Table) -> Markup {
    let place = match (node.before, node.after) {
        (Some(b), Some(a)) if a == b => format!("#{b}"),
        (Some(b), Some(a)) => format!("#{b} before, #{a} after"),
        (Some(b), None) => format!("#{b} before"),
        (None, Some(a)) => format!("#{a} after"),
        (None, None) => String::new(),
    };
    html! { span.mention { (name(&node.name, table)) @if !place.is_empty() { span.quiet { (place) } } } " " }
}

/// A name that leads to its node, where a graph of the page has it.
fn name(name: &str, table: &Table) -> Markup {
    html! {
        @match table.name(name) {
            Some(index) => { a.node href="#graphs" data-node=(index) { (line(name)) } }
            None => { code { (line(name)) } }
        }
    }
}

/// Text in which the nodes of a finding lead to the graphs.
fn linked(text: &str, finding: &Finding, table: &Table) -> Markup {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    // A name of one letter is more often a word.
    let is_node = |word: &str| word.len() > 1 && finding.nodes.iter().any(|node| node.name == word);
    let mut parts: Vec<(bool, &str)> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let inside = is_word(first);
        let end = rest.find(|c| is_word(c) != inside).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        // A full stop ends a sentence.
        let word = part.trim_end_matches('.');
        match inside && is_node(word) {
            true => parts.extend([(true, word), (false, &part[word.len()..])]),
            false => parts.push((false, part)),
        }
        rest = after;
    }
    html! { @for (is_node, part) in parts { @if is_node { (name(part, table)) } @else { (visible(part)) } } }
}
