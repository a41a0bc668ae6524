//! The line of a node: call, type, tags and what follows them.

use super::words::{self, Groups, node_name, quote, raw_or_quoted, word_or_quoted};
use crate::graph::{Dim, DimsId, ExprId, Graph, NodeId, Op, Out, Span, Tags, Tensor, Value};
use crate::ops;
use crate::ops::shape::row_major_strides;
use rustc_hash::FxHashMap;
use std::fmt::Write;

/// The line of one node in parts.
pub(super) struct Row {
    /// Left of `=`; `None` for the statement `output`.
    pub(super) name: Option<String>,
    /// Right of `=`.
    pub(super) call: String,
    /// Behind the colon; empty where nothing is written.
    pub(super) ty: String,
    /// Tags and what follows them, with a space before each.
    rest: String,
}

impl Row {
    /// The line, with the name and the call padded to these widths.
    pub(super) fn text(&self, name_width: usize, call_width: usize) -> String {
        let mut line = match &self.name {
            Some(name) => format!("{name:name_width$} = {}", self.call),
            None => self.call.clone(),
        };
        if !self.ty.is_empty() {
            let gap =
                if self.name.is_none() { 0 } else { call_width.saturating_sub(self.call.chars().count()) };
            line.extend(std::iter::repeat_n(' ', gap));
            line.push_str(": ");
            line.push_str(&self.ty);
        }
        line.push_str(&self.rest);
        line
    }

    /// The line without alignment.
    pub(super) fn plain(&self) -> String {
        self.text(0, self.call.chars().count())
    }
}

/// Prints the nodes of one graph.
pub(super) struct Lines<'a> {
    graph: &'a Graph,
    groups: Groups,
    device: &'a str,
    /// (node, runs after), by node.
    after: Vec<(NodeId, NodeId)>,
    /// (node, renames), by node.
    renames: Vec<(NodeId, NodeId)>,
    /// The values that symbols had.
    hints: FxHashMap<&'a str, Option<i64>>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(graph: &'a Graph, device: &'a str) -> Lines<'a> {
        let mut after: Vec<_> = graph.ordering.iter().map(|edge| (edge.after, edge.before)).collect();
        let mut renames: Vec<_> = graph.renames.iter().map(|rename| (rename.by, rename.of)).collect();
        after.sort_unstable();
        after.dedup();
        renames.sort_unstable();
        renames.dedup();
        let mut hints = FxHashMap::default();
        for symbol in &graph.symbols {
            hints.entry(symbol.name.as_str()).or_insert(symbol.hint);
        }
        Lines { graph, groups: Groups::of(&graph.world), device, after, renames, hints }
    }

    fn name(&self, id: NodeId) -> String {
        node_name(&self.groups, self.graph.name(id))
    }

    pub(super) fn row(&self, id: NodeId) -> Row {
        let graph = self.graph;
        let node = graph.node(id);
        let plain_output = node.op == Op::Output
            && (graph.name(id), graph.target(id)) == ("output", "output")
            && node.args.len() == 1
            && node.kwargs.is_empty();
        let ty = match (node.op, node.out) {
            (Op::Output | Op::GetAttr, Out::Absent) => String::new(),
            (_, out) => self.ty(out),
        };
        let mut rest = String::new();
        if let Some(tags) = graph.tags(id) {
            let _ = write!(rest, " {{{}}}", self.tags(tags));
        }
        for (what, links) in [(" after ", &self.after), (" renames ", &self.renames)] {
            let start = links.partition_point(|(node, _)| *node < id);
            let names: Vec<String> = links[start..]
                .iter()
                .take_while(|(node, _)| *node == id)
                .map(|(_, other)| self.name(*other))
                .collect();
            if !names.is_empty() {
                rest.push_str(what);
                rest.push_str(&names.join(", "));
            }
        }
        for (what, text) in [(" module ", node.module), (" desc ", node.desc)] {
            if let Some(text) = text {
                rest.push_str(what);
                rest.push_str(&quote(graph.text(text)));
            }
        }
        if plain_output {
            let mut call = String::from("output ");
            match graph.args(id)[0] {
                Value::List(span) => self.list(&mut call, span, ['(', ')']),
                value => self.value(&mut call, value, true),
            }
            return Row { name: None, call, ty, rest };
        }
        let (name, call) = (Some(self.name(id)), self.call(id));
        Row { name, call, ty, rest }
    }

    fn call(&self, id: NodeId) -> String {
        let (graph, node) = (self.graph, self.graph.node(id));
        let target = graph.target(id);
        let args = graph.args(id);
        let mut call = match node.op {
            Op::Placeholder if target == graph.name(id) => "input".to_string(),
            Op::Placeholder => format!("input {}", quote(target)),
            Op::GetAttr => format!("attr {}", word_or_quoted(target)),
            Op::Output if target == "output" => "output".to_string(),
            Op::Output => format!("output {}", quote(target)),
            Op::Call => match args {
                [of @ (Value::Node(_) | Value::Dangling(_)), index @ Value::Int(_)]
                    if target == "operator.getitem" && node.kwargs.is_empty() =>
                {
                    let mut item = String::new();
                    self.value(&mut item, *of, true);
                    item.push('[');
                    self.value(&mut item, *index, true);
                    item.push(']');
                    return item;
                }
                _ => operator(target),
            },
        };
        if node.op != Op::Call && args.is_empty() && node.kwargs.is_empty() {
            return call;
        }
        call.push('(');
        let size_at = if node.op == Op::Call { super::group_size_position(target) } else { None };
        let mut first = true;
        let mut separate = |call: &mut String| {
            call.push_str(if first { "" } else { ", " });
            first = false;
        };
        for (index, &arg) in args.iter().enumerate() {
            if size_at == Some(index) && self.size_follows(arg, args.get(index + 1)) {
                continue;
            }
            separate(&mut call);
            self.value(&mut call, arg, size_at != Some(index));
        }
        for (key, value) in graph.kwargs(id) {
            separate(&mut call);
            call.push_str(&word_or_quoted(key));
            call.push('=');
            self.value(&mut call, value, true);
        }
        call.push(')');
        call
    }

    /// Whether a group's size before the group need not be written.
    fn size_follows(&self, size: Value, group: Option<&Value>) -> bool {
        let (Value::Int(size), Some(&Value::Str(group))) = (size, group) else { return false };
        let name = self.graph.text(group);
        words::is_bare_group(&self.groups, name)
            && self.groups.size(name).is_some_and(|n| i64::from(n) == size)
    }

    fn list(&self, text: &mut String, span: Span, [open, close]: [char; 2]) {
        text.push(open);
        for (i, &value) in self.graph.values(span).iter().enumerate() {
            text.push_str(if i > 0 { ", " } else { "" });
            self.value(text, value, true);
        }
        text.push(close);
    }

    /// A value. `bare_groups`: whether the name of a group may stand without quotes.
    fn value(&self, text: &mut String, value: Value, bare_groups: bool) {
        let graph = self.graph;
        let groups = &self.groups;
        let constructed = |text: &mut String, what: &str, name: &str| {
            let _ = write!(text, "{what}({})", word_or_quoted(name));
        };
        let _ = match value {
            Value::None => write!(text, "None"),
            Value::Bool(true) => write!(text, "True"),
            Value::Bool(false) => write!(text, "False"),
            Value::Int(i64::MAX) => write!(text, "end"),
            Value::Int(n) => write!(text, "{n}"),
            Value::Float(x) if x.is_nan() => write!(text, "nan"),
            Value::Float(x) => write!(text, "{x:?}"),
            Value::Dtype(dtype) => write!(text, "{}", dtype.short()),
            Value::Node(node) => {
                words::push_node_name(text, groups, graph.name(node));
                Ok(())
            }
            Value::Dangling(name) => {
                words::push_node_name(text, groups, graph.text(name));
                Ok(())
            }
            Value::Device(name) => write!(text, "@{}", raw_or_quoted(graph.text(name))),
            Value::Str(name) => {
                let name = graph.text(name);
                if bare_groups && words::is_bare_group(groups, name) {
                    write!(text, "{name}")
                } else {
                    write!(text, "{}", quote(name))
                }
            }
            Value::MemoryFormat(name) => {
                let name = graph.text(name);
                if words::is_memory_format(name) {
                    text.push_str(name)
                } else {
                    constructed(text, "memory_format", name)
                }
                Ok(())
            }
            Value::Layout(name) => {
                let name = graph.text(name);
                if words::is_layout(name) {
                    text.push_str(name)
                } else {
                    constructed(text, "layout", name)
                }
                Ok(())
            }
            Value::Function(name) => {
                constructed(text, "fn", graph.text(name));
                Ok(())
            }
            Value::Symbolic(expr) => write!(text, "sym({})", self.expr(expr)),
            Value::List(span) => {
                self.list(text, span, ['[', ']']);
                Ok(())
            }
            Value::Complex(span) => {
                text.push_str("complex");
                self.list(text, span, ['(', ')']);
                Ok(())
            }
            Value::Slice(span) => {
                text.push_str("slice");
                self.list(text, span, ['(', ')']);
                Ok(())
            }
            Value::Dict(span) => {
                text.push('{');
                for (i, pair) in graph.values(span).chunks_exact(2).enumerate() {
                    text.push_str(if i > 0 { ", " } else { "" });
                    self.value(text, pair[0], true);
                    text.push_str(": ");
                    self.value(text, pair[1], true);
                }
                text.push('}');
                Ok(())
            }
        };
    }

    /// Inside `sym( )`: a declared symbol, or text and hint.
    fn expr(&self, expr: ExprId) -> String {
        let expr = self.graph.expr(expr);
        let text = self.graph.text(expr.text);
        match expr.hint {
            hint if words::is_word(text) && self.hints.get(text) == Some(&hint) => text.to_string(),
            Some(hint) => format!("{}, {hint}", quote(text)),
            None => quote(text),
        }
    }

    fn dim(&self, dim: Dim) -> String {
        match dim {
            Dim::Static(n) => n.to_string(),
            Dim::Symbolic(expr) => {
                let text = self.expr(expr);
                if words::is_word(&text) { text } else { format!("sym({text})") }
            }
        }
    }

    fn dims(&self, dims: DimsId) -> String {
        let dims: Vec<String> = self.graph.dims(dims).iter().map(|&d| self.dim(d)).collect();
        format!("[{}]", dims.join(", "))
    }

    fn ty(&self, out: Out) -> String {
        let graph = self.graph;
        match out {
            Out::Absent => "?".to_string(),
            Out::None => "None".to_string(),
            Out::Tensor(tensor) => self.tensor(graph.tensor(tensor)),
            Out::Int(n) => format!("int({n})"),
            Out::SymInt(expr) => format!("symint({})", self.expr(expr)),
            Out::SymBool(expr) => format!("symbool({})", self.expr(expr)),
            Out::Other(name) => format!("other({})", word_or_quoted(graph.text(name))),
            Out::Tuple(span) => {
                let parts: Vec<String> = graph.outs(span).iter().map(|&part| self.ty(part)).collect();
                format!("({})", parts.join(", "))
            }
            Out::Dict(span) => {
                let pairs = graph.outs(span).chunks_exact(2).map(|pair| {
                    let key = if let Out::Key(key) = pair[0] { graph.text(key) } else { "" };
                    format!("{}: {}", quote(key), self.ty(pair[1]))
                });
                format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
            }
            // A key stands only in a mapping.
            Out::Key(_) => "?".to_string(),
        }
    }

    fn tensor(&self, tensor: &Tensor) -> String {
        let graph = self.graph;
        let shape = graph.dims(tensor.shape);
        let mut text = format!("{}{}", tensor.dtype.short(), self.dims(tensor.shape));
        if row_major_strides(shape).as_deref() != Some(graph.dims(tensor.stride)) {
            let _ = write!(text, " strides {}", self.dims(tensor.stride));
        }
        let device = graph.text(tensor.device);
        if device != self.device {
            let _ = write!(text, " @{}", raw_or_quoted(device));
        }
        if let Some(storage) = tensor.storage {
            let _ = write!(text, " storage {}", storage.0);
        }
        if tensor.offset != 0 {
            let _ = write!(text, " offset {}", tensor.offset);
        }
        if tensor.storage_bytes != super::default_bytes(tensor.storage, shape, tensor.dtype) {
            let bytes = tensor.storage_bytes.map_or("?".to_string(), |bytes| self.dim(bytes));
            let _ = write!(text, " bytes {bytes}");
        }
        match tensor.requires_grad {
            Some(true) => text.push_str(" grad"),
            Some(false) => text.push_str(" nograd"),
            None => {}
        }
        text
    }

    fn tags(&self, tags: &Tags) -> String {
        let mut parts = Vec::new();
        let texts = [
            ("recompute", tags.recompute),
            ("partitioner_tag", tags.partitioner_tag),
            ("custom", tags.custom),
            ("extra", tags.extra),
        ];
        for (key, text) in texts {
            parts.extend(text.map(|text| format!("{key}: {}", word_or_quoted(self.graph.text(text)))));
        }
        for (key, int) in [("ac_graph_id", tags.ac_graph_id), ("seq_nr", tags.seq_nr)] {
            parts.extend(int.map(|n| format!("{key}: {n}")));
        }
        let flags =
            [("autograd_backward", tags.autograd_backward), ("is_gradient_acc", tags.is_gradient_acc)];
        for (key, flag) in flags {
            parts.extend(flag.map(|flag| format!("{key}: {}", if flag { "True" } else { "False" })));
        }
        parts.join(", ")
    }
}

/// The operator of a call: its short name, or its target in full.
fn operator(target: &str) -> String {
    let short = ops::by_target(target).map_or("", |info| info.short);
    if ops::by_short_name(short).is_some_and(|info| info.target == target) {
        short.to_string()
    } else if words::is_word(target) && target.contains('.') && ops::by_short_name(target).is_none() {
        target.to_string()
    } else {
        quote(target)
    }
}
