//! Several accounts of what a pass did.
//!
//! A pass may call its nodes as it likes, and of equal calls any may stand for any. So an outcome is right if there is
//! an account of it, which says what node before each node after is, by which no rule is violated. The likeliest account
//! is looked at first; where it convicts of nothing that would hold under any names, others are tried.

use super::{Judgement, Verdict};
use crate::graph::Graph;
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

/// A judgement by the likeliest account, or by another one that does not convict. `named` gives each graph after its
/// names by an account, where it has others, and `given` those graphs as they are.
pub(super) fn by_any_account<E>(
    given: &[&Graph],
    named: impl Fn(Account) -> Vec<Option<Graph>>,
    mut judge: impl FnMut(Vec<Option<Graph>>) -> Result<Judgement, E>,
) -> Result<Judgement, E> {
    let likeliest = judge(named(Account::Likeliest))?;
    // What follows from another finding may go with it.
    let stands = match &likeliest.verdict {
        Verdict::Violated(findings) => findings.iter().any(|finding| OF_ANY_NAMES.contains(&finding.rule)),
        _ => true,
    };
    if stands {
        return Ok(likeliest);
    }
    let mut tried = vec![names(given, &named(Account::Likeliest))];
    for account in Account::OTHERS {
        let other = named(account);
        let names = names(given, &other);
        if tried.contains(&names) {
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

/// The names of all nodes after.
fn names(given: &[&Graph], named: &[Option<Graph>]) -> Vec<String> {
    let graphs = given.iter().zip(named).map(|(given, named)| named.as_ref().unwrap_or(given));
    graphs.flat_map(|graph| graph.ids().map(|id| graph.name(id).to_string())).collect()
}
