//! Padded packing in front of reduce-scatters: a tensor cut into one row block per rank, the last blocks
//! filled up with zeros. The custom packing operator does the same, so it can take the tensor itself.
//!
//! An input matches if it is `aten.cat` of exactly one block per rank, made by one `aten.split` of the source;
//! each block is a piece, or a piece padded at its end to the common size, or, past the last piece,
//! `constant_pad_nd` of an empty `new_zeros`. Everything is contiguous, of one dtype and device, and of known
//! sizes; the source feeds nothing but the split, and the concatenation nothing but the collective. Source:
//! `_match_dim0_padded_cat` in `torch._inductor.fx_passes.bucketing`.

use super::layout::Layout;
use crate::graph::{Editor, Graph, NodeId, Op, Value};

/// A match: the source, and the nodes that pack it.
pub struct Packing {
    /// What is packed.
    pub source: NodeId,
    /// The packing nodes, the concatenation and the split among them.
    pub nodes: Vec<NodeId>,
}

/// A block of the concatenation.
struct Block {
    /// The node in the concatenation's list.
    node: NodeId,
    /// What is padded, or the node itself.
    piece: NodeId,
    /// Padding, as given.
    padding: Option<Vec<i64>>,
}

fn calls(graph: &Graph, id: NodeId, target: &str) -> bool {
    graph.node(id).op == Op::Call && graph.target(id) == target
}

fn ints(graph: &Graph, value: Value) -> Option<Vec<i64>> {
    let Value::List(span) = value else { return None };
    let int = |value: &Value| match value {
        Value::Int(n) => Some(*n),
        _ => None,
    };
    graph.values(span).iter().map(int).collect()
}

/// Whether a dimension argument means the first of `rank` dimensions.
fn is_first(dim: Option<Value>, rank: usize) -> bool {
    match dim {
        None => true,
        Some(Value::Int(dim)) => dim == 0 || dim == -(rank as i64),
        Some(_) => false,
    }
}

/// What `input`, the input of a reduce-scatter among `ranks`, packs.
pub fn find(editor: &Editor, input: NodeId, ranks: i64) -> Option<Packing> {
    let graph = editor.graph();
    if !calls(graph, input, "aten.cat.default") || editor.users(input).len() != 1 {
        return None;
    }
    let Some(Value::List(list)) = graph.argument(input, 0, "tensors") else { return None };
    if graph.values(list).len() as i64 != ranks {
        return None;
    }
    let blocks = graph.values(list).iter().map(|&block| read(graph, block)).collect::<Option<Vec<_>>>()?;
    let split = origin(graph, blocks.first()?.piece)?;
    if !blocks.iter().all(|block| origin(graph, block.piece) == Some(split)) {
        return None;
    }
    if !calls(graph, split, "aten.split.Tensor") {
        return None;
    }
    let (Some(Value::Node(source)), Some(Value::Int(size))) = (graph.arg(split, 0), graph.arg(split, 1))
    else {
        return None;
    };
    let (from, whole) = (Layout::of(graph, source)?, Layout::of(graph, input)?);
    let (&rows, rest) = from.shape.split_first()?;
    let alike = |layout: &Layout| {
        layout.dtype == from.dtype && layout.device == from.device && layout.is_contiguous()
    };
    let sound = rows > 0
        && size > 0
        && size == (rows + ranks - 1) / ranks
        && is_first(graph.argument(input, 1, "dim"), whole.shape.len())
        && is_first(graph.argument(split, 2, "dim"), from.shape.len())
        && from.is_contiguous()
        && alike(&whole)
        && whole.shape == with_rows(size.checked_mul(ranks)?, rest)
        && editor.users(source) == [split];
    if !sound {
        return None;
    }
    let pieces = (rows + size - 1) / size;
    let first_piece = blocks.first()?.piece;
    let mut nodes = vec![input, split];
    for (index, block) in (0..).zip(&blocks) {
        let layout = Layout::of(graph, block.node)?;
        if layout.shape != with_rows(size, rest) || !alike(&layout) {
            return None;
        }
        let padding = |rows: i64| {
            let mut padding = vec![0; 2 * from.shape.len()];
            padding[2 * from.shape.len() - 1] = rows;
            padding
        };
        if index < pieces {
            let missing = padding(size - size.min(rows - index * size));
            let given = block.padding.clone().unwrap_or_else(|| vec![0; missing.len()]);
            let is_piece = calls(graph, block.piece, "operator.getitem")
                && graph.args(block.piece) == [Value::Node(split), Value::Int(index)];
            if !is_piece || given != missing {
                return None;
            }
        } else if block.padding != Some(padding(size))
            || !is_zeros(graph, block.piece, first_piece, &from, rest)
        {
            return None;
        }
        nodes.push(block.piece);
        if block.padding.is_some() {
            nodes.push(block.node);
        }
    }
    Some(Packing { source, nodes })
}

fn with_rows(rows: i64, rest: &[i64]) -> Vec<i64> {
    std::iter::once(rows).chain(rest.iter().copied()).collect()
}

/// A block with its padding, which must be zeros.
fn read(graph: &Graph, block: Value) -> Option<Block> {
    let Value::Node(node) = block else { return None };
    if !calls(graph, node, "aten.constant_pad_nd.default") {
        return Some(Block { node, piece: node, padding: None });
    }
    let Some(Value::Node(piece)) = graph.argument(node, 0, "self") else { return None };
    let padding = ints(graph, graph.argument(node, 1, "pad")?)?;
    match graph.argument(node, 2, "value") {
        None | Some(Value::Int(0)) => {}
        Some(Value::Float(0.0)) => {}
        Some(_) => return None,
    }
    Some(Block { node, piece, padding: Some(padding) })
}

/// The split that a piece, or the piece that an empty block was made like, comes from.
fn origin(graph: &Graph, piece: NodeId) -> Option<NodeId> {
    let getitem = if calls(graph, piece, "aten.new_zeros.default") {
        match graph.arg(piece, 0) {
            Some(Value::Node(like)) => like,
            _ => return None,
        }
    } else {
        piece
    };
    match graph.arg(getitem, 0) {
        Some(Value::Node(split)) if calls(graph, getitem, "operator.getitem") => Some(split),
        _ => None,
    }
}

/// Whether a node is `new_zeros(first piece, (0, rest))` of the source's dtype and device.
fn is_zeros(graph: &Graph, id: NodeId, first_piece: NodeId, from: &Layout, rest: &[i64]) -> bool {
    let Some(layout) = Layout::of(graph, id) else { return false };
    let shape = graph.arg(id, 1).and_then(|shape| ints(graph, shape));
    calls(graph, id, "aten.new_zeros.default")
        && graph.arg(id, 0) == Some(Value::Node(first_piece))
        && shape == Some(with_rows(0, rest))
        && (layout.dtype, layout.device) == (from.dtype, from.device)
        && graph.kwargs(id).all(|(key, value)| match (key, value) {
            ("dtype" | "layout" | "device" | "pin_memory", Value::None) => true,
            ("dtype", Value::Dtype(dtype)) => dtype == from.dtype,
            ("layout", Value::Layout(layout)) => graph.text(layout) == "strided",
            ("device", Value::Device(device)) => device == from.device,
            ("pin_memory", Value::Bool(pin)) => !pin,
            _ => false,
        })
}
