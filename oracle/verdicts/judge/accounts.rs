//! Several accounts of what a pass did.
//!
//! A pass may call its nodes as it likes, and of equal calls any may stand for any. So an outcome is right if there is
//! an account of it, which says what node before each node after is, by which no rule is violated. The likeliest account
//! is looked at first; where it convicts of nothing that would hold under any names, others are tried.

use super::{Judgement, Verdict};
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

/// A judgement by the likeliest account, or by another one that does not convict.
pub(super) fn by_any_account<E>(
    mut judge: impl FnMut(Account) -> Result<Judgement, E>,
) -> Result<Judgement, E> {
    let likeliest = judge(Account::Likeliest)?;
    // What follows from another finding may go with it.
    let stands = match &likeliest.verdict {
        Verdict::Violated(findings) => findings.iter().any(|finding| OF_ANY_NAMES.contains(&finding.rule)),
        _ => true,
    };
    if stands {
        return Ok(likeliest);
    }
    let others = Account::OTHERS.into_iter().filter_map(|account| judge(account).ok());
    Ok(others.into_iter().find(|other| !is_convicted(other)).unwrap_or(likeliest))
}

fn is_convicted(judgement: &Judgement) -> bool {
    matches!(judgement.verdict, Verdict::Violated(_))
}
