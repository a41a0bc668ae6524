//! Two graphs compared node for node: position, operator, arguments, keywords, and dtype, shape, stride and offset
//! of results. Names are not compared, except those of inputs.

use graph_oracle::graph::{Dim, Graph, NodeId, Op, Out, Span, Tensor, Value};

/// The first difference.
pub fn difference(ours: &Graph, theirs: &Graph) -> Option<String> {
    for (a, b) in ours.ids().zip(theirs.ids()) {
        if let Some(what) = node_difference(ours, theirs, a, b) {
            return Some(format!(
                "at {}: {what}\n  ours:   {}\n  theirs: {}",
                a.0,
                show(ours, a),
                show(theirs, b)
            ));
        }
    }
    (ours.len() != theirs.len()).then(|| format!("{} nodes against {}", ours.len(), theirs.len()))
}

fn node_difference(ours: &Graph, theirs: &Graph, a: NodeId, b: NodeId) -> Option<String> {
    let (x, y) = (ours.node(a), theirs.node(b));
    if x.op != y.op {
        return Some("another kind of node".into());
    }
    match x.op {
        Op::Placeholder | Op::GetAttr if ours.name(a) != theirs.name(b) => return Some("another input".into()),
        Op::Call if ours.target(a) != theirs.target(b) => return Some("another operator".into()),
        _ => {}
    }
    if !same_lists(ours, theirs, ours.args(a), theirs.args(b)) {
        return Some("other arguments".into());
    }
    let sorted = |graph: &Graph, id| {
        let mut pairs: Vec<(String, Value)> = graph.kwargs(id).map(|(k, v)| (k.to_string(), v)).collect();
        pairs.sort_by(|p, q| p.0.cmp(&q.0));
        pairs
    };
    let (p, q) = (sorted(ours, a), sorted(theirs, b));
    let same = p.len() == q.len()
        && p.iter().zip(&q).all(|(p, q)| p.0 == q.0 && same_values(ours, theirs, p.1, q.1));
    if !same {
        return Some("other keywords".into());
    }
    (x.op == Op::Call && !same_outs(ours, theirs, x.out, y.out)).then(|| "another result".into())
}

fn same_lists(ours: &Graph, theirs: &Graph, a: &[Value], b: &[Value]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(&x, &y)| same_values(ours, theirs, x, y))
}

fn same_values(ours: &Graph, theirs: &Graph, a: Value, b: Value) -> bool {
    let inner = |x: Span, y: Span| same_lists(ours, theirs, ours.values(x), theirs.values(y));
    match (a, b) {
        (Value::Str(x), Value::Str(y))
        | (Value::Device(x), Value::Device(y))
        | (Value::MemoryFormat(x), Value::MemoryFormat(y))
        | (Value::Layout(x), Value::Layout(y))
        | (Value::Function(x), Value::Function(y)) => ours.text(x) == theirs.text(y),
        (Value::List(x), Value::List(y))
        | (Value::Dict(x), Value::Dict(y))
        | (Value::Slice(x), Value::Slice(y))
        | (Value::Complex(x), Value::Complex(y)) => inner(x, y),
        (Value::Symbolic(x), Value::Symbolic(y)) => {
            ours.text(ours.expr(x).text) == theirs.text(theirs.expr(y).text)
        }
        (x, y) => x == y,
    }
}

fn same_outs(ours: &Graph, theirs: &Graph, a: Out, b: Out) -> bool {
    match (a, b) {
        (Out::Tensor(x), Out::Tensor(y)) => same_tensors(ours, theirs, ours.tensor(x), theirs.tensor(y)),
        (Out::Tuple(x), Out::Tuple(y)) => {
            x.len() == y.len()
                && ours.outs(x).iter().zip(theirs.outs(y)).all(|(&x, &y)| same_outs(ours, theirs, x, y))
        }
        (Out::Absent | Out::None, Out::Absent | Out::None) => true,
        (Out::Tensor(_) | Out::Tuple(_) | Out::Absent | Out::None, _) => false,
        _ => true,
    }
}

fn same_tensors(ours: &Graph, theirs: &Graph, a: &Tensor, b: &Tensor) -> bool {
    let (shape, other) = (ours.dims(a.shape), theirs.dims(b.shape));
    let matter = |i: usize| shape[i] != Dim::Static(1) && !shape.contains(&Dim::Static(0));
    a.dtype == b.dtype
        && ours.text(a.device) == theirs.text(b.device)
        && shape == other
        && a.offset == b.offset
        && (0..shape.len()).all(|i| !matter(i) || ours.dims(a.stride)[i] == theirs.dims(b.stride)[i])
}

/// A node in one line.
pub fn show(graph: &Graph, id: NodeId) -> String {
    let args: Vec<String> = graph.args(id).iter().map(|&v| value(graph, v)).collect();
    let kwargs: Vec<String> = graph.kwargs(id).map(|(k, v)| format!("{k}={}", value(graph, v))).collect();
    let out = match graph.node(id).out {
        Out::Tensor(t) => tensor(graph, graph.tensor(t)),
        Out::Tuple(span) => graph
            .outs(span)
            .iter()
            .map(|&o| match o {
                Out::Tensor(t) => tensor(graph, graph.tensor(t)),
                o => format!("{o:?}"),
            })
            .collect::<Vec<_>>()
            .join(" "),
        out => format!("{out:?}"),
    };
    format!("{} = {}({} {}): {out}", graph.name(id), graph.target(id), args.join(", "), kwargs.join(", "))
}

fn tensor(graph: &Graph, t: &Tensor) -> String {
    let dims = |id| {
        let dims = graph.dims(id).iter().map(|d| d.known().map_or("?".into(), |n| n.to_string()));
        dims.collect::<Vec<_>>().join(",")
    };
    format!("{}[{}]/({})+{}", t.dtype.name(), dims(t.shape), dims(t.stride), t.offset)
}

fn value(graph: &Graph, v: Value) -> String {
    match v {
        Value::Node(id) => format!("{}@{}", graph.name(id), id.0),
        Value::List(span) => {
            let inner: Vec<String> = graph.values(span).iter().map(|&v| value(graph, v)).collect();
            format!("[{}]", inner.join(", "))
        }
        Value::Str(s) | Value::Device(s) | Value::MemoryFormat(s) => graph.text(s).to_string(),
        other => format!("{other:?}"),
    }
}
