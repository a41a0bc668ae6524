//! The table of operators. Schemas are PyTorch 2.15's, as `torch._C._get_schema` prints them.

use super::kind::*;
use super::{OpInfo, Schema};
use crate::graph::Graph;
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// A row of the table: schema (or target, for what has no schema), short name, meaning.
type Row = (&'static str, &'static str, Kind);

const ROWS: &[Row] = &[
    ("aten::relu(Tensor self) -> Tensor", "relu", Kind::Unary(Unary::Relu)),
    (
        "_c10d_functional::all_gather_into_tensor(Tensor input, int group_size, Any group_name) -> Tensor",
        "all_gather",
        Kind::Collective(Collective::AllGather),
    ),
    ("_c10d_functional::wait_tensor(Tensor tensor) -> Tensor", "wait", Kind::Wait),
    ("operator.getitem", "getitem", Kind::GetItem),
];

struct Table {
    rows: Vec<OpInfo>,
    by_target: FxHashMap<&'static str, usize>,
    by_short_name: FxHashMap<&'static str, usize>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table =
        Table { rows: Vec::new(), by_target: FxHashMap::default(), by_short_name: FxHashMap::default() };
    for &(text, short, kind) in ROWS {
        let schema = Schema::parse(text).ok();
        let target = schema.as_ref().map_or_else(|| text.to_string(), Schema::target);
        let effect = matches!(kind, Kind::AssertScalar | Kind::Unknown);
        let index = table.rows.len();
        table.by_target.insert(Box::leak(target.clone().into_boxed_str()), index);
        if !short.is_empty() {
            table.by_short_name.insert(short, index);
        }
        table.rows.push(OpInfo { target, short, schema, kind, effect });
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

/// What the facts of the graph's file say about a target.
pub(super) fn from_facts(graph: &Graph, target: &str) -> OpInfo {
    let _ = graph;
    OpInfo::unknown(target)
}
