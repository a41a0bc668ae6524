//! What was found, first of all: the verdict, of what, and what it rests on.

use crate::judge::{Judgement, Verdict};
use crate::rules::{Reason, RuleStatus};
use crate::words::{line, visible};
use ir::words::count;
use maud::{Markup, html};

/// The verdict in a word, as it stands on a page and in its classes of style.
pub(crate) fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Sound => "sound",
        Verdict::Violated(_) => "violated",
        Verdict::Refused(_) => "refused",
        Verdict::Undecided(_) => "undecided",
    }
}

/// The heading of a page about a judgement.
pub(crate) fn heading(judgement: &Judgement, subject: &str) -> Markup {
    let word = word(&judgement.verdict);
    html! {
        header class={ "verdict " (word) } {
            h1 { span.word { (word.to_uppercase()) } " " span.subject { (line(subject)) } }
            @match &judgement.verdict {
                Verdict::Sound => { p { "Every rule that was applied holds. What that rests on:" } }
                Verdict::Violated(findings) => {
                    @let all = findings.iter().map(|finding| finding.all().len()).sum();
                    p { (count(all, "finding")) ", by the rules "
                        @for (i, rule) in judgement.violated_rules().iter().enumerate() {
                            @if i > 0 { ", " }
                            code { (rule) }
                        }
                    }
                }
                Verdict::Refused(reason) => { p { "The candidate declined: " (because(reason)) } }
                Verdict::Undecided(reasons) => {
                    p { "The oracle could not tell:" }
                    ul { @for reason in reasons { li { (because(reason)) } } }
                }
            }
            @if judgement.verdict == Verdict::Sound { (notes(judgement)) }
        }
    }
}

fn because(reason: &Reason) -> Markup {
    html! { (visible(&reason.to_string())) " " code.quiet { (reason.code()) } }
}

/// Sizes, and how values were compared.
pub(crate) fn notes(judgement: &Judgement) -> Markup {
    html! {
        @if !judgement.notes.is_empty() {
            ul.notes { @for note in &judgement.notes { li { (visible(note)) } } }
        }
    }
}

/// What became of each rule, folded; those that could not be decided stand open.
pub(crate) fn rules(judgement: &Judgement) -> Markup {
    let is =
        |wanted: fn(&RuleStatus) -> bool| judgement.rules.iter().filter(|(_, status)| wanted(status)).count();
    let holds = is(|status| matches!(status, RuleStatus::Holds));
    let violated = is(|status| matches!(status, RuleStatus::Violated(_)));
    let undecided = is(|status| matches!(status, RuleStatus::Undecided(_)));
    let skipped = is(|status| matches!(status, RuleStatus::NotChecked(_)));
    html! {
        @if !judgement.rules.is_empty() {
            section #rules {
                details open[undecided > 0] {
                    summary {
                        h2 { (count(judgement.rules.len(), "rule")) }
                        " " (holds) " hold, " (violated) " violated, " (undecided) " undecided, " (skipped)
                        " not checked"
                    }
                    div.scroll { table.rules {
                        thead { tr { th { "rule" } th { "status" } th { "why" } } }
                        tbody { @for (id, status) in &judgement.rules { (rule(id, status)) } }
                    } }
                }
            }
        }
    }
}

fn rule(id: &str, status: &RuleStatus) -> Markup {
    let (class, words, why) = match status {
        RuleStatus::Holds => ("sound", "holds", String::new()),
        RuleStatus::Violated(n) => ("violated", "violated", count(*n, "finding")),
        RuleStatus::Undecided(why) => ("undecided", "undecided", visible(&why.to_string())),
        RuleStatus::NotChecked(why) => ("quiet", "not checked", visible(why)),
    };
    html! { tr { td { code { (id) } } td class=(class) { (words) } td { (why) } } }
}
