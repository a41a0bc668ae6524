//! What an operator shares with its arguments, as far as its kind and its schema say: small questions behind
//! [`Storages`](super::storages::Storages).

use crate::graph::{Graph, NodeId, Value};
use crate::ops::{Collective, Kind, OpInfo, Schema};

/// Whether the run time shares storage where the schema does not say so.
pub(super) fn is_quiet(info: &OpInfo, schema: &Schema) -> bool {
    !info.undeclared_aliases().is_empty()
        || matches!(info.kind, Kind::Collective(Collective::PointToPoint))
        || (matches!(info.kind, Kind::View(_)) && schema.name == "_unsafe_view")
}

/// Whether what the schema calls a view is the argument itself, where it is no copy.
pub(super) fn hands_back(schema: &Schema) -> bool {
    matches!(schema.name.as_str(), "contiguous" | "to" | "type_as" | "resolve_conj" | "resolve_neg")
}

/// Whether element `element` of a `batch_p2p_ops` receives.
pub(super) fn receives(graph: &Graph, id: NodeId, schema: &Schema, element: usize) -> bool {
    let ops = schema.param("op_list").and_then(|param| argument(graph, id, schema, param));
    match ops {
        Some(Value::List(span)) => match graph.values(span).get(element) {
            Some(Value::Str(op)) => Collective::message(graph.text(*op)) == Some(Collective::Recv),
            _ => false,
        },
        _ => false,
    }
}

/// The argument for a parameter, by position or by keyword; `None` where the default holds.
pub(super) fn argument(graph: &Graph, id: NodeId, schema: &Schema, param: usize) -> Option<Value> {
    graph.argument(id, param, &schema.params.get(param)?.name)
}

/// Whether results of this operator can be tensors.
pub(super) fn holds_tensors(info: &OpInfo) -> bool {
    let number = matches!(
        info.kind,
        Kind::Number(_) | Kind::SymSize | Kind::SymNumel | Kind::SymStride | Kind::Item | Kind::Assert
    );
    !number && info.schema.as_ref().is_none_or(|s| s.returns.iter().any(|r| r.ty.starts_with("Tensor")))
}
