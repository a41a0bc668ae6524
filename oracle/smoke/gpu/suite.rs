//! What is run where no case is named, and what a file of a case stands for.

use super::passes::Case;
use crate::candidates::{CandidateExt, Place, Reference};
use crate::case;
use crate::family::Gives;
use crate::format::text;
use crate::limits::Limit;
use crate::rules::PassKind;

/// The built-in cases: small, and made of operators that every device has kernels for.
const BUILT_IN: &[(&str, &str)] = &[
    ("bucketed_gather", include_str!("../../../gpu/cases/bucketed_gather.graph")),
    ("bucketed_scatter", include_str!("../../../gpu/cases/bucketed_scatter.graph")),
    ("replayed_partition", include_str!("../../../gpu/cases/replayed_partition.graph")),
    ("memory_schedule", include_str!("../../../gpu/cases/memory_schedule.graph")),
    ("reordered_overlap", include_str!("../../../gpu/cases/reordered_overlap.graph")),
];

/// The built-in suite: each graph as it stands, and what its pass makes of it.
///
/// # Errors
/// A reason, where a case cannot be read or its pass refuses it.
pub fn built_in() -> Result<Vec<Case>, String> {
    let mut all = Vec::new();
    for (name, source) in BUILT_IN {
        let case = text::parse(source).map_err(|errors| errors.render(Some(name)))?;
        let made = cases(name, Some(name), &case, Limit::SmokeRanks.standard())?;
        if made.len() < 2 {
            return Err(format!("{name}: its pass makes nothing of it"));
        }
        all.extend(made);
    }
    Ok(all)
}

/// The built-in cases of this name.
///
/// # Errors
/// As [`built_in`].
pub fn named(name: &str) -> Result<Vec<Case>, String> {
    Ok(built_in()?.into_iter().filter(|case| case.name.split(' ').next() == Some(name)).collect())
}

/// The graph of a case as it stands, and what the reference of its pass makes of it; where that refuses, the graph
/// alone.
///
/// # Errors
/// A reason, for a pass that does not exist or options that it does not have.
pub fn cases(
    name: &str,
    file: Option<&str>,
    case: &case::Case,
    most_ranks: u64,
) -> Result<Vec<Case>, String> {
    let make = |suffix: &str, graphs| Case {
        name: format!("{name}{suffix}"),
        file: file.map(str::to_string),
        graphs,
    };
    let mut all = vec![make("", vec![case.graph.clone()])];
    let Some(pass) = &case.pass else { return Ok(all) };
    let kind = PassKind::named(&pass.name)?;
    Reference.check_options(pass)?;
    match kind.row().gives {
        Gives::Graph => {
            let world = case.graph.world.assume_mesh();
            let ranks = world.and_then(|world| world.ranks).unwrap_or(1);
            // The case itself is refused with the reason.
            if u64::from(ranks) > most_ranks {
                return Ok(all);
            }
            let ranks: Vec<u32> = (0..ranks).collect();
            if let Ok(outcomes) = Reference.rewrite_on(&case.graph, pass, &ranks) {
                let graphs = outcomes.into_iter().map(|outcome| outcome.repaired).collect();
                all.push(make(&format!(" after {}", pass.name), graphs));
            }
        }
        Gives::Parts => {
            if let Ok((forward, backward)) = Reference.partition(&case.graph, pass, Place::default()) {
                all.push(make(" forward", vec![forward]));
                all.push(make(" backward", vec![backward]));
            }
        }
        Gives::Claim | Gives::Executed => {}
    }
    Ok(all)
}
