//! The schemas of PyTorch's own operators that the table does not list (`schemas.txt`, written by benches/schemas.py).
//!
//! A printed graph says nothing of its operators. With the schema it is known what an operator reads, writes and shares
//! with its results; what it computes is not.

use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// By target the line of its schema.
static LINES: LazyLock<FxHashMap<String, &'static str>> =
    LazyLock::new(|| include_str!("schemas.txt").lines().map(|line| (target_of(line), line)).collect());

/// `aten::add.out(...)` is `aten.add.out`, `aten::relu6(...)` is `aten.relu6.default`.
fn target_of(line: &str) -> String {
    let name = line.split('(').next().unwrap_or(line);
    let dot = if name.contains('.') { "" } else { ".default" };
    format!("{}{dot}", name.replacen("::", ".", 1))
}

/// The schema of a target, and whether the operator draws random numbers.
pub(super) fn of(target: &str) -> Option<(&'static str, bool)> {
    let line = LINES.get(target)?;
    Some(match line.split_once('\t') {
        Some((schema, tag)) => (schema, tag == "draws"),
        None => (*line, false),
    })
}

/// By name without an overload its only target that takes tensors, if it has one. Left out are those that write into
/// `out`, that name dimensions, and that ask for a dtype besides.
static ONLY: LazyLock<FxHashMap<&'static str, Option<&'static str>>> = LazyLock::new(|| {
    let takes_tensors = |parameters: &str| parameters.split(") ->").next().unwrap_or("").contains("Tensor");
    let rows = super::table::rows().iter().filter_map(|row| {
        let schema = row.schema.as_ref()?;
        Some((row.target.as_str(), schema.params.iter().any(|param| param.ty.contains("Tensor"))))
    });
    let lines = LINES.iter().map(|(target, line)| (target.as_str(), takes_tensors(line)));
    let mut only = FxHashMap::default();
    for (target, takes_tensors) in rows.chain(lines) {
        let Some((name, overload)) = target.rsplit_once('.') else { continue };
        let is_special = overload.ends_with("out")
            || overload == "dtype"
            || ["names", "Dimname"].iter().any(|word| overload.contains(word));
        if name.contains('.') && takes_tensors && !is_special {
            only.entry(name).and_modify(|known| *known = None).or_insert(Some(target));
        }
    }
    only
});

/// What a target means that names no overload, as `torch.ops.aten.reshape` does: the only one.
pub(super) fn only_overload(target: &str) -> Option<&'static str> {
    let name = target.strip_prefix("torch._ops.").unwrap_or(target);
    // Most targets name one, and need no look at all others.
    if name.matches('.').count() != 1 { None } else { ONLY.get(name).copied().flatten() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Schema;

    #[test]
    fn every_line_is_a_schema_that_the_table_does_not_have() {
        for (target, line) in LINES.iter() {
            assert!(crate::ops::by_target(target).is_none(), "{target} is in the table");
            let schema = Schema::parse(line.split('\t').next().unwrap());
            assert_eq!(schema.map(|schema| schema.target()).as_ref(), Ok(target), "{line}");
        }
    }

    #[test]
    fn targets_without_an_overload_mean_the_only_one() {
        assert_eq!(only_overload("aten.reshape"), Some("aten.reshape.default"));
        assert_eq!(only_overload("torch._ops.aten.unsqueeze"), Some("aten.unsqueeze.default"));
        assert_eq!(only_overload("aten.neg"), Some("aten.neg.default"));
        assert_eq!(only_overload("aten.mm"), Some("aten.mm.default"));
        assert_eq!(only_overload("aten.sum"), None);
        assert_eq!(only_overload("operator.add"), None);
    }
}
