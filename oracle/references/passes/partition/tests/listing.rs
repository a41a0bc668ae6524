//! Graphs as lines that can be compared.

use crate::graph::{Graph, NodeId, Op, Value};

/// A value as text, references as `name` tells them.
fn text(graph: &Graph, value: Value, name: &dyn Fn(NodeId) -> String) -> String {
    let list =
        |span| graph.values(span).iter().map(|&value| text(graph, value, name)).collect::<Vec<_>>().join(" ");
    match value {
        Value::Node(id) => format!("%{}", name(id)),
        Value::List(span) => format!("[{}]", list(span)),
        Value::Dict(span) => format!("{{{}}}", list(span)),
        Value::Slice(span) | Value::Complex(span) => format!("<{}>", list(span)),
        Value::Str(s) | Value::Function(s) | Value::Device(s) | Value::MemoryFormat(s) | Value::Layout(s) => {
            graph.text(s).to_string()
        }
        Value::Symbolic(expr) => graph.text(graph.expr(expr).text).to_string(),
        other => format!("{other:?}"),
    }
}

/// The listing of a graph: names, targets, arguments, what is returned, `recompute` tags.
pub fn listing(graph: &Graph) -> Vec<String> {
    lines(graph, &|id| graph.name(id).to_string())
}

/// A listing in which nodes go by their position, placeholders excepted, and without tags.
pub fn structure(graph: &Graph) -> Vec<String> {
    let name = |id: NodeId| match graph.node(id).op {
        Op::Placeholder => graph.name(id).to_string(),
        _ => id.0.to_string(),
    };
    let untagged = |line: String| line.rsplit_once(' ').map_or(line.clone(), |(line, _)| line.to_string());
    lines(graph, &name)
        .into_iter()
        .map(|line| if line.starts_with("return") { line } else { untagged(line) })
        .collect()
}

fn lines(graph: &Graph, name: &dyn Fn(NodeId) -> String) -> Vec<String> {
    let line = |id| {
        let args: Vec<String> = graph.args(id).iter().map(|&value| text(graph, value, name)).collect();
        let kwargs = graph.kwargs(id).map(|(key, value)| format!("{key}={}", text(graph, value, name)));
        let (args, kwargs) = (args.join(" "), kwargs.collect::<Vec<_>>().join(" "));
        let tag = graph.tags(id).and_then(|tags| tags.recompute).map_or("", |tag| graph.text(tag));
        match graph.node(id).op {
            Op::Placeholder => format!("{} placeholder {tag}", name(id)),
            Op::Output => format!("return {}", args.replace(['[', ']'], "")),
            _ => format!("{} = {}({args}; {kwargs}) {tag}", name(id), graph.target(id)),
        }
    };
    graph.ids().map(line).collect()
}
