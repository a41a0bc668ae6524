//! Ranks against each other: for one pass of one compilation all must launch the same, in one order.
//!
//! The groups of ranks of one axis have different names, so launches are compared by what they do and how much they
//! move. Ranks that differed before a pass differ after it, and that is no fault of the pass.

use super::row::Row;
use ir::format::torch_trace::CompileId;
use std::collections::BTreeMap;

/// Where ranks that launched the same before a pass launch something else after it, a line each.
pub(super) fn differences<'r>(rows: impl Iterator<Item = &'r Row>) -> Vec<String> {
    let mut passes: BTreeMap<(&CompileId, &str, usize), Vec<&Row>> = BTreeMap::new();
    let mut seen: BTreeMap<(&CompileId, &str, &str), usize> = BTreeMap::new();
    for row in rows.filter(|row| row.rank.is_some() && row.launches.is_some()) {
        // A pass may run twice: its first run on one rank is compared with its first run on another.
        let run = seen.entry((&row.id, &row.pass, &row.file)).or_default();
        passes.entry((&row.id, &row.pass, *run)).or_default().push(row);
        *run += 1;
    }
    let mut found = Vec::new();
    for ((id, pass, _), rows) in passes {
        let Some((first, others)) = rows.split_first() else { continue };
        let Some((before, after)) = &first.launches else { continue };
        for row in others {
            let Some((its_before, its_after)) = &row.launches else { continue };
            if its_before != before || its_after == after {
                continue;
            }
            let at = after.iter().zip(its_after).take_while(|(a, b)| a == b).count();
            let launch = |list: &[String]| list.get(at).map_or("nothing more".to_string(), String::clone);
            let rank = |row: &Row| row.rank.unwrap_or_default();
            found.push(format!(
                "{pass} of {id}: launch {at} is {} on rank {}, and {} on rank {}; before the pass both launched the same",
                launch(after),
                rank(first),
                launch(its_after),
                rank(row)
            ));
        }
    }
    found
}
