//! The table of operators. Schemas are PyTorch 2.15's, as `torch._C._get_schema` prints them;
//! `tests/peer/ops_schemas.py` compares every row with an installed PyTorch.
//!
//! One file per family. A row is the short name of the text case format (empty where the full target is
//! written), the meaning, and the schema; Python functions and higher-order operators have no schema, and their
//! target stands in its place.

mod binary;
pub(super) mod communication;
mod create;
mod moves;
mod numbers;
mod opaque;
mod reduce;
mod ternary;
pub(super) mod unary;
pub(super) mod views;

use super::kind::{Collective, Kind};
use super::{OpInfo, Schema};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// Short name, meaning, schema or target.
type Row = (&'static str, Kind, &'static str);

const FAMILIES: &[&[Row]] = &[
    unary::ROWS,
    binary::ROWS,
    ternary::ROWS,
    views::ROWS,
    moves::ROWS,
    create::ROWS,
    reduce::ROWS,
    communication::ROWS,
    numbers::ROWS,
    opaque::ROWS,
];

/// Whether an operator of this meaning acts beyond its results and the arguments that its schema says it writes.
/// A message sent is seen by another rank, and nothing in this graph depends on it: it must stay, though what it does is
/// judged together with its other end (`analysis/messages.rs`).
fn has_effect(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Assert
            | Kind::Effect
            | Kind::Resize
            | Kind::Sync(_)
            | Kind::Unknown
            | Kind::Collective(Collective::Send | Collective::PointToPoint | Collective::Barrier)
    )
}

struct Table {
    rows: Vec<OpInfo>,
    by_target: FxHashMap<&'static str, usize>,
    by_short_name: FxHashMap<&'static str, usize>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table =
        Table { rows: Vec::new(), by_target: FxHashMap::default(), by_short_name: FxHashMap::default() };
    for &(short, kind, text) in FAMILIES.iter().copied().flatten() {
        let schema = Schema::parse(text).ok();
        let target = schema.as_ref().map_or_else(|| text.to_string(), Schema::target);
        let index = table.rows.len();
        table.by_target.insert(Box::leak(target.clone().into_boxed_str()), index);
        if !short.is_empty() {
            table.by_short_name.insert(short, index);
        }
        table.rows.push(OpInfo { target, short, schema, kind, effect: has_effect(kind) });
    }
    table
});

/// All rows, in table order.
pub fn rows() -> &'static [OpInfo] {
    &TABLE.rows
}

/// The row of an FX target.
pub fn by_target(target: &str) -> Option<&'static OpInfo> {
    TABLE.by_target.get(target).map(|&i| &TABLE.rows[i])
}

/// The row with a short name.
pub fn by_short_name(short: &str) -> Option<&'static OpInfo> {
    TABLE.by_short_name.get(short).map(|&i| &TABLE.rows[i])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_is_parsed_and_found() {
        let (mut targets, mut shorts) = (BTreeSet::new(), BTreeSet::new());
        for row in rows() {
            assert!(targets.insert(&row.target), "{} twice", row.target);
            assert!(row.short.is_empty() || shorts.insert(row.short), "{} twice", row.short);
            let modules = ["builtins.", "math.", "operator.", "torch.", "higher_order."];
            let python = modules.iter().any(|p| row.target.starts_with(p));
            assert_eq!(row.schema.is_none(), python, "{}", row.target);
            assert_eq!(by_target(&row.target), Some(row));
            if !row.short.is_empty() {
                assert_eq!(by_short_name(row.short), Some(row));
                let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
                assert!(row.short.chars().all(word), "{}", row.short);
            }
        }
        assert_eq!(by_target("aten.no_such_operator.default"), None);
    }

    #[test]
    fn schemas_survive_printing() {
        for schema in rows().iter().filter_map(|row| row.schema.as_ref()) {
            assert_eq!(Schema::parse(&schema.to_string()).as_ref(), Ok(schema));
        }
    }

    #[test]
    fn list_views_alias_their_argument() {
        for target in
            ["aten.split.Tensor", "aten.split_with_sizes.default", "aten.chunk.default", "aten.unbind.int"]
        {
            let schema = by_target(target).unwrap().schema.as_ref().unwrap();
            assert_eq!(schema.aliases().collect::<Vec<_>>(), [(0, 0)], "{target}");
        }
    }
}
