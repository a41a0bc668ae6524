//! The schemas of PyTorch's own operators that the table does not list (`schemas.txt`, written by benches/schemas.py).
//!
//! A printed graph says nothing of its operators. With the schema it is known what an operator reads, writes and shares
//! with its results; what it computes is not.

use super::OpInfo;
use super::facts::info_of_schema;
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

/// What is known of a target.
pub(super) fn by_target(target: &str) -> Option<OpInfo> {
    let line = LINES.get(target)?;
    let (schema, draws) = match line.split_once('\t') {
        Some((schema, tag)) => (schema, tag == "draws"),
        None => (*line, false),
    };
    info_of_schema(target, schema, draws)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::{Kind, Random, Schema};

    #[test]
    fn every_line_is_a_schema_that_the_table_does_not_have() {
        for (target, line) in LINES.iter() {
            assert!(crate::ops::by_target(target).is_none(), "{target} is in the table");
            let schema = Schema::parse(line.split('\t').next().unwrap());
            assert_eq!(schema.map(|schema| schema.target()).as_ref(), Ok(target), "{line}");
        }
    }

    #[test]
    fn what_they_write_and_draw_is_known() {
        let qr = by_target("aten.linalg_qr.default").unwrap();
        assert_eq!((qr.kind, qr.effect, qr.mutated().count()), (Kind::Opaque, false, 0));
        assert_eq!(by_target("aten.linalg_qr.out").unwrap().mutated().collect::<Vec<_>>(), [2, 3]);
        assert_eq!(by_target("aten.poisson.default").unwrap().kind, Kind::Random(Random::Opaque));
        assert!(by_target("mylib.linalg_qr.default").is_none());
    }
}
