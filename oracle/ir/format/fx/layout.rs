//! Strides that a text leaves out: those of another text of the same compilation, or row-major ones.

use super::annotation::dim;
use super::symbols::Hints;
use crate::expression::symbols_of;
use crate::graph::{Dim, Dtype, Graph, NodeId};
use crate::limits::Limit;

/// The strides of a contiguous tensor; `None` where it has more dimensions than any tensor.
///
/// As PyTorch has them: a size that may be 0 counts as at least 1, and one that Dynamo has seen is more than that.
pub(super) fn row_major(graph: &mut Graph, hints: &Hints, shape: &[Dim]) -> Option<Vec<Dim>> {
    if shape.len() as u64 > Limit::Dimensions.standard() {
        return None;
    }
    let mut strides = vec![Dim::Static(1); shape.len()];
    for at in (1..shape.len()).rev() {
        strides[at - 1] = match (strides[at], shape[at]) {
            (Dim::Static(stride), Dim::Static(size)) => Dim::Static(stride.saturating_mul(size.max(1))),
            (stride, size) => {
                let (stride, size) = (dim_text(graph, stride), dim_text(graph, size));
                let may_be_0 = symbols_of(&size).any(|name| name.starts_with('u'));
                let least = if may_be_0 { "Max(1, " } else { "(" };
                dim(graph, hints, &format!("({stride})*{least}{size})"))
            }
        };
    }
    Some(strides)
}

/// Strides and device of the node of the other graph that has the name, the dtype and the sizes of a node.
pub(super) fn twin(
    graph: &mut Graph,
    hints: &Hints,
    like: &Graph,
    id: NodeId,
    dtype: Dtype,
    shape: &[Dim],
) -> Option<(Vec<Dim>, String)> {
    let tensor = like.tensor_of(like.find(graph.name(id))?)?;
    let is_same = tensor.dtype == dtype && text_of(like, like.dims(tensor.shape)) == text_of(graph, shape);
    let strides = text_of(like, like.dims(tensor.stride));
    let strides = is_same.then(|| strides.iter().map(|text| dim(graph, hints, text)).collect())?;
    Some((strides, like.text(tensor.device).to_string()))
}

/// Sizes in words. Those of two texts are equal where the sizes are: expressions are read into normal form.
pub(super) fn text_of(graph: &Graph, dims: &[Dim]) -> Vec<String> {
    dims.iter().map(|&dim| dim_text(graph, dim)).collect()
}

fn dim_text(graph: &Graph, dim: Dim) -> String {
    match dim {
        Dim::Static(number) => number.to_string(),
        Dim::Symbolic(expr) => graph.text(graph.expr(expr).text).to_string(),
    }
}
