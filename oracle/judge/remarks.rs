//! What a graph and its pass say that nothing heeds: a tag of no known value, times of nodes that are not there. The
//! judgement is not about it, and says so: whoever wrote it believes that it counts.

use super::Judgement;
use crate::case::PassConfig;
use crate::graph::{Expr, Graph, bound_of};
use crate::passes::memory::expression::evaluate;
use crate::rules::partition::RECOMPUTE_TAGS;

/// Names that one line lists at most.
const SHOWN: usize = 3;

/// The judgement with what is said of `before` and of `pass`, each line once. `others` are the further graphs of the case.
pub(super) fn remarked(
    mut judgement: Judgement,
    before: &Graph,
    pass: Option<&PassConfig>,
    others: &[&Graph],
) -> Judgement {
    let lines =
        [output(before), estimates(before, pass, others), recompute(before), symbols(before), sizes(before)];
    for line in lines.into_iter().flatten() {
        if !judgement.notes.contains(&line) {
            judgement.notes.push(line);
        }
    }
    judgement
}

fn output(graph: &Graph) -> Option<String> {
    graph.output().is_none().then(|| "the graph has no output: no value is asked for".to_string())
}

/// Times of nodes that no graph of the case has.
fn estimates(before: &Graph, pass: Option<&PassConfig>, others: &[&Graph]) -> Option<String> {
    let is_known =
        |name: &str| before.find(name).is_some() || others.iter().any(|graph| graph.find(name).is_some());
    let tables = pass.map_or(&[][..], |pass| &pass.estimates);
    let names = tables.iter().flat_map(|table| &table.seconds).map(|(name, _)| name.as_str());
    let unknown = names.filter(|name| !is_known(name)).map(|name| format!("{name:?}"));
    listed("estimates of nodes that are not there are not used", unknown)
}

fn recompute(graph: &Graph) -> Option<String> {
    let odd = graph.ids().filter_map(|id| {
        let value = graph.text(graph.tags(id)?.recompute?);
        (!RECOMPUTE_TAGS.contains(&value)).then(|| format!("{value:?} of {}", graph.name(id)))
    });
    let known = RECOMPUTE_TAGS.join(", ");
    listed(&format!("the tag recompute is none of {known}, and counts as absent"), odd)
}

/// Bounds that are no numbers, and hints outside their bounds.
fn symbols(graph: &Graph) -> Option<String> {
    let odd = graph.symbols.iter().filter_map(|symbol| {
        let (low, high) = (&symbol.range.0, &symbol.range.1);
        let name = &symbol.name;
        for bound in [low, high] {
            if bound_of(bound).is_none() {
                return Some(format!("the bound {bound:?} of {name} is no number"));
            }
        }
        let hint = symbol.hint.map(i128::from)?;
        let outside = hint < bound_of(low)? || hint > bound_of(high)?;
        outside.then(|| format!("{name} was {hint}, outside {low} to {high}"))
    });
    listed("symbols", odd)
}

/// Sizes that no number can be told from, whatever their symbols are.
fn sizes(graph: &Graph) -> Option<String> {
    // Values under which a well-formed size may be told, should another divide by zero.
    const TRIED: [i64; 3] = [2, 7, 64];
    let is_understood =
        |expr: &Expr| TRIED.iter().any(|&value| evaluate(graph.text(expr.text), &|_| Some(value)).is_some());
    let odd =
        graph.exprs().filter(|expr| !is_understood(expr)).map(|expr| format!("{:?}", graph.text(expr.text)));
    listed("symbolic expressions that are not understood stand for nothing but themselves", odd)
}

/// `WHAT: A, B, C, and 5 more`; `None` without any.
fn listed(what: &str, all: impl Iterator<Item = String>) -> Option<String> {
    let (mut shown, mut more) = (Vec::new(), 0);
    for one in all {
        if shown.len() < SHOWN {
            shown.push(one);
        } else {
            more += 1;
        }
    }
    let rest = if more > 0 { format!(", and {more} more") } else { String::new() };
    (!shown.is_empty()).then(|| format!("{what}: {}{rest}", shown.join(", ")))
}
