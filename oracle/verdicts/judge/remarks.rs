//! What a graph and its pass say that nothing heeds: a tag of no known value, times of nodes that are not there. The
//! judgement is not about it, and says so: whoever wrote it believes that it counts.

use super::{Judgement, Verdict};
use crate::case::{Case, PassConfig};
use crate::expression::evaluate;
use crate::format::Spot;
use crate::graph::{Expr, Graph, bound_of};
use crate::rules::partition::RECOMPUTE_TAGS;
use crate::rules::{Finding, Reason, RuleStatus};
use crate::words;
use std::fmt;

/// What one line lists at most.
const SHOWN: usize = 3;

/// A line about what is not heeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remark {
    /// What is said of all that is listed.
    what: String,
    /// What it is about, and where that stands in the file; empty where it is the graph as a whole.
    about: Vec<(String, Spot)>,
    /// How many more there are.
    more: usize,
}

impl Remark {
    /// The line, each place named as `at` says.
    pub fn line(&self, at: impl Fn(&Spot) -> Option<String>) -> String {
        if self.about.is_empty() {
            return match at(&Spot::File) {
                Some(place) => format!("{place}: {}", self.what),
                None => self.what.clone(),
            };
        }
        let shown = self.about.iter().map(|(words, spot)| match at(spot) {
            Some(place) => format!("{words} ({place})"),
            None => words.clone(),
        });
        let rest = if self.more > 0 { format!(", and {} more", self.more) } else { String::new() };
        format!("{}: {}{rest}", self.what, shown.collect::<Vec<_>>().join(", "))
    }
}

/// `WHAT: A, B, C, and 5 more`
impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line(|_| None))
    }
}

/// What is to be said of a case.
pub fn remarks(case: &Case) -> Vec<Remark> {
    of(&case.graph, case.pass.as_ref(), &super::graphs_of(case))
}

/// What is to be said of `before` and of `pass`. `others` are the further graphs of the case.
fn of(before: &Graph, pass: Option<&PassConfig>, others: &[&Graph]) -> Vec<Remark> {
    let all =
        [output(before), estimates(before, pass, others), recompute(before), symbols(before), sizes(before)];
    all.into_iter().flatten().collect()
}

/// The judgement with what is said of `before` and of `pass`, each line once; long statements are cut.
pub(super) fn remarked(
    mut judgement: Judgement,
    before: &Graph,
    pass: Option<&PassConfig>,
    others: &[&Graph],
) -> Judgement {
    for remark in of(before, pass, others) {
        let line = remark.to_string();
        if !judgement.notes.contains(&line) {
            judgement.notes.push(line);
        }
    }
    judgement.notes.iter_mut().for_each(words::cut);
    for (_, status) in &mut judgement.rules {
        if let RuleStatus::NotChecked(why) | RuleStatus::Undecided(Reason { message: why, .. }) = status {
            words::cut(why);
        }
    }
    match &mut judgement.verdict {
        Verdict::Violated(findings) => findings.iter_mut().for_each(Finding::cut),
        Verdict::Undecided(reasons) => reasons.iter_mut().for_each(|reason| words::cut(&mut reason.message)),
        Verdict::Refused(reason) => words::cut(&mut reason.message),
        Verdict::Sound => {}
    }
    judgement
}

fn output(graph: &Graph) -> Option<Remark> {
    let what = "the graph has no output: no value is asked for".to_string();
    graph.output().is_none().then(|| Remark { what, about: Vec::new(), more: 0 })
}

/// Times of nodes that no graph of the case has.
fn estimates(before: &Graph, pass: Option<&PassConfig>, others: &[&Graph]) -> Option<Remark> {
    let is_known =
        |name: &str| before.find(name).is_some() || others.iter().any(|graph| graph.find(name).is_some());
    let tables = pass.map_or(&[][..], |pass| &pass.estimates);
    let names = tables
        .iter()
        .enumerate()
        .flat_map(|(index, table)| table.seconds.iter().map(move |(name, _)| (name, Spot::Estimates(index))));
    let unknown = names.filter(|(name, _)| !is_known(name)).map(|(name, spot)| (format!("{name:?}"), spot));
    listed("estimates of nodes that are not there are not used", unknown)
}

fn recompute(graph: &Graph) -> Option<Remark> {
    let odd = graph.ids().filter_map(|id| {
        let value = graph.text(graph.tags(id)?.recompute?);
        let name = graph.name(id);
        let is_odd = !RECOMPUTE_TAGS.contains(&value);
        is_odd.then(|| (format!("{value:?} of {name}"), Spot::Node(name.to_string())))
    });
    let known = RECOMPUTE_TAGS.join(", ");
    listed(&format!("the tag recompute is none of {known}, and counts as absent"), odd)
}

/// Bounds that are no numbers, and hints outside their bounds.
fn symbols(graph: &Graph) -> Option<Remark> {
    let odd = graph.symbols.iter().filter_map(|symbol| {
        let (low, high) = (&symbol.range.0, &symbol.range.1);
        let name = &symbol.name;
        let spot = Spot::Symbol(name.clone());
        for bound in [low, high] {
            if bound_of(bound).is_none() {
                return Some((format!("the bound {bound:?} of {name} is no number"), spot));
            }
        }
        let hint = symbol.hint.map(i128::from)?;
        let outside = hint < bound_of(low)? || hint > bound_of(high)?;
        outside.then(|| (format!("{name} was {hint}, outside {low} to {high}"), spot))
    });
    listed("symbols", odd)
}

/// Sizes that no number can be told from, whatever their symbols are.
fn sizes(graph: &Graph) -> Option<Remark> {
    // Values under which a well-formed size may be told, should another divide by zero.
    const TRIED: [i64; 3] = [2, 7, 64];
    let is_understood =
        |expr: &Expr| TRIED.iter().any(|&value| evaluate(graph.text(expr.text), &|_| Some(value)).is_some());
    let odd = graph.exprs().filter(|expr| !is_understood(expr)).map(|expr| {
        let words = format!("{:?}", graph.text(expr.text));
        (words.clone(), Spot::Words(words))
    });
    listed("symbolic expressions that are not understood stand for nothing but themselves", odd)
}

/// A line about what `all` gives; `None` without any.
fn listed(what: &str, all: impl Iterator<Item = (String, Spot)>) -> Option<Remark> {
    let mut about: Vec<(String, Spot)> = Vec::new();
    let mut more = 0;
    for one in all {
        match about.len() < SHOWN {
            true => about.push(one),
            false => more += 1,
        }
    }
    (!about.is_empty()).then(|| Remark { what: what.to_string(), about, more })
}
