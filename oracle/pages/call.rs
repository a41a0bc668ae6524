//! A node in words: what it calls, with a mark where an operand stands, and what it returns.

use crate::graph::{Dim, DimsId, Graph, NodeId, Op, Out, Span, Tensor, Value};
use crate::ops::Ops;
use crate::words::line;
use ir::words::bytes;
use std::fmt::Write;

/// Stands in a call for an operand, in order. No word of others holds it: they are made visible.
pub(crate) const SLOT: char = '\u{1}';

/// The call of a node, and its operands in the order of their marks; an operand is a node or a name that none has.
pub(crate) fn call(graph: &Graph, ops: &Ops, id: NodeId) -> (String, Vec<String>) {
    let node = graph.node(id);
    let mut words = Call { graph, text: String::new(), operands: Vec::new() };
    let target = line(graph.target(id));
    match node.op {
        Op::Placeholder => {
            words.text.push_str("input");
            if let Some(desc) = node.desc {
                let _ = write!(words.text, " {}", line(graph.text(desc)));
            }
            return (words.text, words.operands);
        }
        Op::GetAttr => return (format!("attribute {target}"), words.operands),
        Op::Output => words.text.push_str("output"),
        Op::Call => {
            let short = ops.get(graph, id).short;
            words.text.push_str(if short.is_empty() { &target } else { short });
        }
    }
    words.text.push('(');
    words.list(graph.args(id));
    for (place, (key, value)) in graph.kwargs(id).enumerate() {
        let comma = if place > 0 || !graph.args(id).is_empty() { ", " } else { "" };
        let _ = write!(words.text, "{comma}{}=", line(key));
        words.value(value);
    }
    words.text.push(')');
    (words.text, words.operands)
}

struct Call<'g> {
    graph: &'g Graph,
    text: String,
    operands: Vec<String>,
}

impl Call<'_> {
    fn list(&mut self, values: &[Value]) {
        for (place, &value) in values.iter().enumerate() {
            self.text.push_str(if place > 0 { ", " } else { "" });
            self.value(value);
        }
    }

    fn operand(&mut self, name: &str) {
        self.text.push(SLOT);
        self.operands.push(name.to_string());
    }

    fn value(&mut self, value: Value) {
        let graph = self.graph;
        let text = &mut self.text;
        let _ = match value {
            Value::Node(node) if node.index() < graph.len() => return self.operand(graph.name(node)),
            Value::Node(node) => write!(text, "node {}", node.0),
            Value::Dangling(name) => return self.operand(graph.text(name)),
            Value::List(span) => return self.between('[', span, ']'),
            Value::Slice(span) | Value::Complex(span) => return self.between('(', span, ')'),
            Value::Dict(span) => return self.between('{', span, '}'),
            Value::None => write!(text, "None"),
            Value::Bool(true) => write!(text, "True"),
            Value::Bool(false) => write!(text, "False"),
            Value::Int(i64::MAX) => write!(text, "end"),
            Value::Int(n) => write!(text, "{n}"),
            Value::Float(x) => write!(text, "{x:?}"),
            Value::Str(id) => write!(text, "'{}'", line(graph.text(id))),
            Value::Dtype(dtype) => write!(text, "{}", dtype.short()),
            Value::Device(id) | Value::MemoryFormat(id) | Value::Layout(id) | Value::Function(id) => {
                write!(text, "{}", line(graph.text(id)))
            }
            Value::Symbolic(id) => write!(text, "{}", line(graph.text(graph.expr(id).text))),
        };
    }

    fn between(&mut self, open: char, span: Span, close: char) {
        self.text.push(open);
        self.list(self.graph.values(span));
        self.text.push(close);
    }
}

/// What a node returns: short, and with all that is recorded of its tensors.
pub(crate) fn result(graph: &Graph, out: Out) -> (String, String) {
    match out {
        Out::Absent | Out::Key(_) => (String::new(), String::new()),
        Out::None => both("None".to_string()),
        Out::Tensor(id) => {
            let tensor = graph.tensor(id);
            let short = format!("{}{}", tensor.dtype.short(), dims(graph, tensor.shape));
            (short, tensor_in_full(graph, tensor))
        }
        Out::Int(n) => both(format!("int {n}")),
        Out::SymInt(id) | Out::SymBool(id) => both(line(graph.text(graph.expr(id).text))),
        Out::Other(name) => both(line(graph.text(name))),
        Out::Tuple(span) | Out::Dict(span) => {
            let parts = graph.outs(span).iter().filter(|part| !matches!(part, Out::Key(_)));
            let (short, full): (Vec<String>, Vec<String>) = parts.map(|&part| result(graph, part)).unzip();
            let is_alike = short.len() > 1 && short.iter().all(|part| *part == short[0]);
            let short = match is_alike {
                true => format!("{} × {}", short.len(), short[0]),
                false => format!("({})", short.join(", ")),
            };
            (short, full.join("\n"))
        }
    }
}

fn both(text: String) -> (String, String) {
    (text.clone(), text)
}

/// Type, sizes, strides, device, and what is recorded of the storage.
fn tensor_in_full(graph: &Graph, tensor: &Tensor) -> String {
    let mut text = format!("{} {}", tensor.dtype.name(), dims(graph, tensor.shape));
    let _ = write!(text, ", strides {}", dims(graph, tensor.stride));
    let _ = write!(text, ", on {}", line(graph.text(tensor.device)));
    if let Some(count) = graph.bytes(tensor) {
        let _ = write!(text, ", {}", bytes(count));
    }
    if tensor.offset != 0 {
        let _ = write!(text, ", offset {}", tensor.offset);
    }
    if let Some(Dim::Static(count)) = tensor.storage_bytes
        && graph.bytes(tensor) != Some(count)
    {
        let _ = write!(text, " of a storage of {}", bytes(count));
    }
    if tensor.requires_grad == Some(true) {
        text.push_str(", requires grad");
    }
    text
}

fn dims(graph: &Graph, id: DimsId) -> String {
    let dims = graph.dims(id).iter().map(|dim| match dim {
        Dim::Static(n) => n.to_string(),
        Dim::Symbolic(expr) => line(graph.text(graph.expr(*expr).text)),
    });
    format!("[{}]", dims.collect::<Vec<_>>().join(", "))
}
