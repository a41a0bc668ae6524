//! Several accounts of what a pass did.
//!
//! A pass may call its nodes as it likes, and of equal calls any may stand for any. So an outcome is right if there is
//! an account of it, which says what node before each node after is, by which no rule is violated. The likeliest account
//! is looked at first; where it convicts of nothing that would hold under any names, others are tried. None may lose
//! nodes that the likeliest one finds again: who is gone has no obligations.

use super::{Judgement, Verdict};
use crate::graph::{Graph, NodeId};
use crate::rules::Account;

/// Rules that know no node by its name: what they find stands in every account.
const OF_ANY_NAMES: &[&str] = &[
    "rewrite/values",
    "rewrite/state",
    "rewrite/well-formed",
    "order/acyclic",
    "order/list-topological",
    "partition/semantics-equal",
    "comm/all-ranks-finish",
];

/// A judgement by the likeliest account, or by another one that does not convict. `given` are the graphs after as they
/// are, each behind its graph before, and `named` gives them their names by an account, where they have others. What is said of
/// nodes that are new calls them as they are called in the graphs that were given.
pub(super) fn by_any_account<E>(
    given: &[(&Graph, &Graph)],
    named: impl Fn(Account) -> Vec<Option<Graph>>,
    mut judge: impl FnMut(Vec<Option<Graph>>) -> Result<Judgement, E>,
) -> Result<Judgement, E> {
    let mut judge = |graphs: Vec<Option<Graph>>| {
        let own = own_names(given, &graphs);
        let mut judgement = judge(graphs)?;
        if !own.is_empty() {
            judgement.each_text(&mut |text| {
                for (made, own) in &own {
                    if text.contains(made) {
                        *text = text.replace(made, own);
                    }
                }
            });
        }
        Ok(judgement)
    };
    let likeliest = judge(named(Account::Likeliest))?;
    // What follows from another finding may go with it.
    let stands = match &likeliest.verdict {
        Verdict::Violated(findings) => findings.iter().any(|finding| OF_ANY_NAMES.contains(&finding.rule)),
        _ => true,
    };
    if stands {
        return Ok(likeliest);
    }
    let first = named(Account::Likeliest);
    let (kept, mut tried) = (survivors(given, &first), vec![names(given, &first)]);
    for account in Account::OTHERS {
        let other = named(account);
        let names = names(given, &other);
        if tried.contains(&names) || survivors(given, &other) < kept {
            continue;
        }
        if let Ok(judgement) = judge(other)
            && !matches!(judgement.verdict, Verdict::Violated(_))
        {
            return Ok(judgement);
        }
        tried.push(names);
    }
    Ok(likeliest)
}

fn each<'g>(
    given: &'g [(&'g Graph, &'g Graph)],
    named: &'g [Option<Graph>],
) -> impl Iterator<Item = (&'g Graph, &'g Graph)> {
    given.iter().zip(named).map(|(&(before, given), named)| (before, named.as_ref().unwrap_or(given)))
}

/// The names of all nodes after.
fn names(given: &[(&Graph, &Graph)], named: &[Option<Graph>]) -> Vec<String> {
    each(given, named).flat_map(|(_, graph)| graph.ids().map(|id| graph.name(id).to_string())).collect()
}

/// The names that were made for nodes after, so that they are not those of nodes before, and those that they have; longer ones
/// first.
fn own_names(given: &[(&Graph, &Graph)], named: &[Option<Graph>]) -> Vec<(String, String)> {
    let pairs = given
        .iter()
        .zip(named)
        .filter_map(|(&(before, after), named)| Some((before, after, named.as_ref()?)));
    let made = pairs.flat_map(|(before, after, named)| {
        let pairs = named.ids().map(|id| (named.name(id), after.name(id)));
        pairs.filter(|(made, own)| made != own && before.find(made).is_none() && after.find(made).is_none())
    });
    let mut made: Vec<(String, String)> =
        made.map(|(made, own)| (made.to_string(), own.to_string())).collect();
    made.sort_by(|a, b| (std::cmp::Reverse(a.0.len()), a).cmp(&(std::cmp::Reverse(b.0.len()), b)));
    made.dedup();
    made
}

/// How many nodes after are nodes before.
fn survivors(given: &[(&Graph, &Graph)], named: &[Option<Graph>]) -> usize {
    let of_graph = |(before, after): (&Graph, &Graph)| {
        let survives = |id: &NodeId| {
            before.find(after.name(*id)).is_some_and(|old| {
                before.node(old).op == after.node(*id).op && before.target(old) == after.target(*id)
            })
        };
        after.ids().filter(survives).count()
    };
    each(given, named).map(of_graph).sum()
}
