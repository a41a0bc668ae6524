//! Writing documents: one node per line, keys in the order of the recorded graphs, always the same bytes.

use super::outcome::{Outcome, RankOutcome};
use super::read::OUTCOME;
use super::{Document, FXJSON, GRAPH_ORACLE, facts};
use crate::graph::{Dim, ExprId, Graph, Holder, NodeId, Op, Out, Span, Str, Tags, Tensor, TensorId, Value};
use crate::ops;
use crate::words;
use rustc_hash::FxHashSet;
use std::io::{self, Write};

/// Text is handed on in pieces of about this size.
const CHUNK: usize = 1 << 16;

/// Keys of [`Graph::extra`] that stand before the process groups, where recorded graphs have them.
const FIRST: [&str; 2] = ["source", "torch"];

/// Writes a graph, as [`FXJSON`] if that version can hold it, else as [`GRAPH_ORACLE`]. Targets without facts
/// get those of the table of operators. Process groups, symbols, keywords and unknown keys must have distinct
/// names, otherwise the result cannot be read again.
pub fn write(graph: &Graph, to: impl Write) -> io::Result<()> {
    let mut json = Json::new(to);
    json.graph(graph)?;
    json.raw("\n");
    json.finish()
}

/// Writes an outcome.
pub fn write_outcome(outcome: &Outcome, to: impl Write) -> io::Result<()> {
    let mut json = Json::new(to);
    json.outcome(outcome)?;
    json.raw("\n");
    json.finish()
}

/// Writes a document.
pub fn write_document(document: &Document, to: impl Write) -> io::Result<()> {
    match document {
        Document::Graph(graph) => write(graph, to),
        Document::Outcome(outcome) => write_outcome(outcome, to),
    }
}

/// Whether a graph holds something that [`FXJSON`] has no place for.
fn needs_own_version(graph: &Graph) -> bool {
    let group = |g: &crate::graph::Group| g.recorded_rank.is_none() || !g.instances.is_empty();
    graph.world.ranks.is_some()
        || graph.world.groups.iter().any(group)
        || !graph.guards.is_empty()
        || !graph.ordering.is_empty()
        || !graph.renames.is_empty()
        || !graph.clusters.is_empty()
        || graph.ids().any(|id| lacks_storage(graph, graph.node(id).out))
        || graph.subgraphs.iter().any(|(_, body)| !body.subgraphs.is_empty() || needs_own_version(body))
}

fn lacks_storage(graph: &Graph, out: Out) -> bool {
    match out {
        Out::Tensor(tensor) => {
            let tensor = graph.tensor(tensor);
            tensor.storage.is_none() || tensor.storage_bytes.is_none()
        }
        Out::Tuple(span) | Out::Dict(span) => graph.outs(span).iter().any(|&out| lacks_storage(graph, out)),
        _ => false,
    }
}

/// JSON text on its way out.
struct Json<W> {
    to: W,
    text: Vec<u8>,
}

impl<W: Write> Json<W> {
    fn new(to: W) -> Json<W> {
        Json { to, text: Vec::with_capacity(CHUNK + CHUNK / 4) }
    }

    fn raw(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    fn hand_on(&mut self) -> io::Result<()> {
        if self.text.len() >= CHUNK {
            self.to.write_all(&self.text)?;
            self.text.clear();
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.to.write_all(&self.text)?;
        self.to.flush()
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        Ok(serde_json::to_writer(&mut self.text, &*words::released(text))?)
    }

    fn int(&mut self, n: i64) -> io::Result<()> {
        Ok(serde_json::to_writer(&mut self.text, &n)?)
    }

    fn bool(&mut self, value: bool) {
        self.raw(if value { "true" } else { "false" });
    }

    /// `"key":`, with a comma before it unless it is the first of its object.
    fn key(&mut self, key: &str, first: &mut bool) -> io::Result<()> {
        if !std::mem::take(first) {
            self.raw(",");
        }
        self.text(key)?;
        self.raw(":");
        Ok(())
    }

    /// The fields of a JSON object that was kept as text.
    fn kept_fields(&mut self, object: &str, first: &mut bool) {
        let fields = object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or("");
        if !fields.is_empty() {
            if !std::mem::take(first) {
                self.raw(",");
            }
            self.raw(fields);
        }
    }

    /// Lines `"key":value,`.
    fn extra_lines<'a>(&mut self, extra: impl Iterator<Item = &'a (String, String)>) -> io::Result<()> {
        for (key, value) in extra {
            self.text(key)?;
            self.raw(":");
            self.raw(value);
            self.raw(",\n");
        }
        Ok(())
    }

    fn outcome(&mut self, outcome: &Outcome) -> io::Result<()> {
        self.raw("{\n\"schema_version\":");
        self.text(GRAPH_ORACLE)?;
        if !outcome.name.is_empty() {
            self.raw(",\n\"name\":");
            self.text(&outcome.name)?;
        }
        self.raw(",\n\"kind\":");
        self.text(OUTCOME)?;
        self.raw(",\n\"pass\":");
        self.text(&outcome.pass)?;
        self.raw(",\n");
        self.extra_lines(outcome.extra.iter())?;
        match &outcome.result {
            Err(reason) => {
                self.raw("\"refused\":");
                self.text(reason)?;
            }
            Ok(ranks) => {
                self.raw("\"ranks\":[");
                for (i, rank) in ranks.iter().enumerate() {
                    self.raw(if i > 0 { ",\n" } else { "\n" });
                    self.rank(rank)?;
                }
                self.raw("\n]");
            }
        }
        self.raw("\n}");
        Ok(())
    }

    fn rank(&mut self, rank: &RankOutcome) -> io::Result<()> {
        self.raw("{\"rank\":");
        self.int(rank.rank.into())?;
        for (key, value) in &rank.extra {
            self.key(key, &mut false)?;
            self.raw(value);
        }
        if let Some(unrepaired) = &rank.unrepaired {
            self.raw(",\"unrepaired\":");
            self.graph(unrepaired)?;
        }
        self.raw(",\"repaired\":");
        self.graph(&rank.repaired)?;
        self.raw("}");
        Ok(())
    }

    fn graph(&mut self, graph: &Graph) -> io::Result<()> {
        self.raw("{\n\"schema_version\":");
        self.text(if needs_own_version(graph) { GRAPH_ORACLE } else { FXJSON })?;
        self.raw(",\n\"name\":");
        self.text(&graph.name)?;
        self.raw(",\n\"kind\":");
        self.text(&graph.kind)?;
        self.raw(",\n");
        self.extra_lines(graph.extra.iter().filter(|(key, _)| FIRST.contains(&key.as_str())))?;
        self.world(graph)?;
        self.symbols(graph)?;
        self.raw("\"num_nodes\":");
        self.int(graph.len() as i64)?;
        self.raw(",\n");
        self.extra_lines(graph.extra.iter().filter(|(key, _)| !FIRST.contains(&key.as_str())))?;
        self.renames_and_clusters(graph)?;
        self.facts(graph)?;
        self.raw("\"nodes\":");
        self.nodes(graph, true)?;
        self.subgraphs(graph)?;
        self.raw("\n}");
        Ok(())
    }

    fn world(&mut self, graph: &Graph) -> io::Result<()> {
        if let Some(ranks) = graph.world.ranks {
            self.raw("\"world\":{\"ranks\":");
            self.int(ranks.into())?;
            self.raw("},\n");
        }
        self.raw("\"groups\":{");
        let mut first = true;
        for group in &graph.world.groups {
            self.key(&group.name, &mut first)?;
            self.raw("{\"size\":");
            self.int(group.size.into())?;
            if let Some(rank) = group.recorded_rank {
                self.raw(",\"rank\":");
                self.int(rank.into())?;
            }
            if !group.instances.is_empty() {
                self.raw(",\"ranks\":");
                serde_json::to_writer(&mut self.text, &group.instances)?;
            }
            self.named_fields(graph, &group.name, Holder::Group);
            self.raw("}");
        }
        self.raw("},\n");
        Ok(())
    }

    fn symbols(&mut self, graph: &Graph) -> io::Result<()> {
        self.raw("\"symbols\":{");
        let mut first = true;
        for symbol in &graph.symbols {
            self.key(&symbol.name, &mut first)?;
            self.raw("{\"hint\":");
            self.hint(symbol.hint)?;
            self.raw(",\"range\":");
            serde_json::to_writer(&mut self.text, &symbol.range)?;
            self.raw(",\"unbacked\":");
            self.bool(symbol.unbacked);
            self.named_fields(graph, &symbol.name, Holder::Symbol);
            self.raw("}");
        }
        self.raw("},\n");
        if !graph.guards.is_empty() {
            self.raw("\"guards\":");
            serde_json::to_writer(&mut self.text, &graph.guards)?;
            self.raw(",\n");
        }
        Ok(())
    }

    /// The unknown fields of a group or symbol.
    fn named_fields(&mut self, graph: &Graph, name: &str, holder: fn(Str) -> Holder) {
        let name = graph.strings().find(name);
        if let Some(fields) = name.and_then(|name| graph.unknown_fields(holder(name))) {
            self.kept_fields(fields, &mut false);
        }
    }

    fn renames_and_clusters(&mut self, graph: &Graph) -> io::Result<()> {
        if !graph.renames.is_empty() {
            self.raw("\"renames\":[");
            for (i, rename) in graph.renames.iter().enumerate() {
                self.raw(if i > 0 { ",{\"by\":" } else { "{\"by\":" });
                self.text(graph.name(rename.by))?;
                self.raw(",\"of\":");
                self.text(graph.name(rename.of))?;
                self.raw("}");
            }
            self.raw("],\n");
        }
        if !graph.clusters.is_empty() {
            self.raw("\"clusters\":[\n");
            for (i, cluster) in graph.clusters.iter().enumerate() {
                self.raw(if i > 0 { ",\n{\"name\":" } else { "{\"name\":" });
                self.text(&cluster.name)?;
                self.raw(",\"members\":");
                let members: Vec<&str> = cluster.members.iter().map(|&member| graph.name(member)).collect();
                serde_json::to_writer(&mut self.text, &members)?;
                self.raw("}");
            }
            self.raw("\n],\n");
        }
        Ok(())
    }

    fn facts(&mut self, graph: &Graph) -> io::Result<()> {
        let mut stated: FxHashSet<&str> = graph.facts.iter().map(|(target, _)| target.as_str()).collect();
        let mut lines = graph.facts.clone();
        for id in graph.ids().filter(|&id| graph.node(id).op == Op::Call) {
            let target = graph.target(id);
            if stated.insert(target)
                && let Some(info) = ops::by_target(target)
            {
                lines.push((target.to_string(), facts::of(info)?));
            }
        }
        self.raw("\"ops\":{");
        for (i, (target, facts)) in lines.iter().enumerate() {
            self.raw(if i > 0 { ",\n" } else { "\n" });
            self.text(target)?;
            self.raw(":");
            self.raw(facts);
        }
        self.raw(if lines.is_empty() { "},\n" } else { "\n},\n" });
        Ok(())
    }

    /// The nodes, each on a line of its own (`lines`), or all on one.
    fn nodes(&mut self, graph: &Graph, lines: bool) -> io::Result<()> {
        // Ordering edges by the node that they hold back, in their order.
        let mut ordering: Vec<(NodeId, NodeId)> =
            graph.ordering.iter().map(|e| (e.after, e.before)).collect();
        ordering.sort_by_key(|&(after, _)| after);
        let mut rest = ordering.as_slice();
        let end = if lines { "\n" } else { "" };
        self.raw("[");
        self.raw(end);
        for id in graph.ids() {
            let count = rest.partition_point(|&(after, _)| after <= id);
            let (after, later) = rest.split_at(count);
            rest = later;
            self.node(graph, id, after)?;
            self.raw(if id.index() + 1 < graph.len() { "," } else { "" });
            self.raw(end);
            self.hand_on()?;
        }
        self.raw("]");
        Ok(())
    }

    /// The bodies of higher-order operators, each on a line of its own.
    fn subgraphs(&mut self, graph: &Graph) -> io::Result<()> {
        if graph.subgraphs.is_empty() {
            return Ok(());
        }
        self.raw(",\n\"subgraphs\":{\n");
        for (index, (name, body)) in graph.subgraphs.iter().enumerate() {
            self.raw(if index > 0 { ",\n" } else { "" });
            self.key(name, &mut true)?;
            if body.subgraphs.is_empty() {
                self.nodes(body, false)?;
                continue;
            }
            self.raw("{\"nodes\":");
            self.nodes(body, false)?;
            self.subgraphs(body)?;
            self.raw("}");
        }
        self.raw("\n}");
        Ok(())
    }

    fn node(&mut self, graph: &Graph, id: NodeId, after: &[(NodeId, NodeId)]) -> io::Result<()> {
        let node = graph.node(id);
        self.raw("{\"name\":");
        self.text(graph.name(id))?;
        self.raw(",\"op\":");
        self.text(node.op.name())?;
        self.raw(",\"target\":");
        self.text(graph.target(id))?;
        if !node.args.is_empty() || matches!(node.op, Op::Call | Op::Output) {
            self.raw(",\"args\":");
            self.list(graph, node.args)?;
        }
        if !node.kwargs.is_empty() {
            self.raw(",\"kwargs\":{");
            let mut first = true;
            for (key, value) in graph.kwargs(id) {
                self.key(key, &mut first)?;
                self.value(graph, value)?;
            }
            self.raw("}");
        }
        if node.out != Out::Absent {
            self.raw(",\"out\":");
            self.out(graph, node.out)?;
        }
        if let Some(tags) = graph.tags(id) {
            self.raw(",\"tags\":{");
            self.tags(graph, tags)?;
            self.raw("}");
        }
        for (key, text) in [("stack", node.stack), ("module", node.module), ("desc", node.desc)] {
            if let Some(text) = text {
                self.key(key, &mut false)?;
                self.text(graph.text(text))?;
            }
        }
        if !after.is_empty() {
            self.raw(",\"after\":");
            let names: Vec<&str> = after.iter().map(|&(_, before)| graph.name(before)).collect();
            serde_json::to_writer(&mut self.text, &names)?;
        }
        if let Some(extra) = node.extra {
            self.kept_fields(graph.text(extra), &mut false);
        }
        self.raw("}");
        Ok(())
    }

    fn tags(&mut self, graph: &Graph, tags: &Tags) -> io::Result<()> {
        let mut first = true;
        let texts = |json: &mut Self, key, text: Option<Str>, first: &mut bool| match text {
            Some(text) => json.key(key, first).and_then(|()| json.text(graph.text(text))),
            None => Ok(()),
        };
        let ints = |json: &mut Self, key, n: Option<i64>, first: &mut bool| match n {
            Some(n) => json.key(key, first).and_then(|()| json.int(n)),
            None => Ok(()),
        };
        let bools = |json: &mut Self, key, yes: Option<bool>, first: &mut bool| match yes {
            Some(yes) => json.key(key, first).map(|()| json.bool(yes)),
            None => Ok(()),
        };
        texts(self, "recompute", tags.recompute, &mut first)?;
        ints(self, "ac_graph_id", tags.ac_graph_id, &mut first)?;
        texts(self, "partitioner_tag", tags.partitioner_tag, &mut first)?;
        ints(self, "seq_nr", tags.seq_nr, &mut first)?;
        bools(self, "is_gradient_acc", tags.is_gradient_acc, &mut first)?;
        bools(self, "autograd_backward", tags.autograd_backward, &mut first)?;
        if let Some(custom) = tags.custom {
            self.key("custom", &mut first)?;
            self.raw(graph.text(custom));
        }
        if let Some(extra) = tags.extra {
            self.kept_fields(graph.text(extra), &mut first);
        }
        Ok(())
    }

    fn list(&mut self, graph: &Graph, span: Span) -> io::Result<()> {
        self.raw("[");
        for (i, &value) in graph.values(span).iter().enumerate() {
            if i > 0 {
                self.raw(",");
            }
            self.value(graph, value)?;
        }
        self.raw("]");
        Ok(())
    }

    /// `{"key":"text"}`.
    fn tagged(&mut self, key: &str, text: &str) -> io::Result<()> {
        self.raw("{");
        self.key(key, &mut true)?;
        self.text(text)?;
        self.raw("}");
        Ok(())
    }

    fn value(&mut self, graph: &Graph, value: Value) -> io::Result<()> {
        match value {
            Value::None => self.raw("null"),
            Value::Bool(value) => self.bool(value),
            Value::Int(n) => self.int(n)?,
            Value::Float(x) => self.float(x)?,
            Value::Str(text) => self.text(graph.text(text))?,
            Value::Node(node) => self.tagged("ref", graph.name(node))?,
            Value::Dangling(name) => self.tagged("ref", graph.text(name))?,
            Value::List(span) => self.list(graph, span)?,
            Value::Dtype(dtype) => self.tagged("dtype", dtype.name())?,
            Value::Device(text) => self.tagged("device", graph.text(text))?,
            Value::MemoryFormat(text) => self.tagged("memory_format", graph.text(text))?,
            Value::Layout(text) => self.tagged("layout", graph.text(text))?,
            Value::Function(text) => self.tagged("fn", graph.text(text))?,
            Value::Complex(span) => {
                self.raw("{\"complex\":");
                self.list(graph, span)?;
                self.raw("}");
            }
            Value::Slice(span) => {
                self.raw("{\"slice\":");
                self.list(graph, span)?;
                self.raw("}");
            }
            Value::Symbolic(expr) => {
                self.raw("{");
                self.expr(graph, expr)?;
                self.raw("}");
            }
            Value::Dict(span) => {
                self.raw("{\"dict\":[");
                for (i, pair) in graph.values(span).chunks(2).enumerate() {
                    self.raw(if i > 0 { ",[" } else { "[" });
                    for (k, &part) in pair.iter().enumerate() {
                        if k > 0 {
                            self.raw(",");
                        }
                        self.value(graph, part)?;
                    }
                    self.raw("]");
                }
                self.raw("]}");
            }
        }
        Ok(())
    }

    /// A float that stays one, spelled as Python spells it: recorded graphs come back byte for byte.
    fn float(&mut self, x: f64) -> io::Result<()> {
        if !x.is_finite() {
            return self.tagged(
                "float",
                if x.is_nan() {
                    "nan"
                } else if x > 0.0 {
                    "inf"
                } else {
                    "-inf"
                },
            );
        }
        let scientific = format!("{x:e}");
        let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        match exponent.parse::<i32>() {
            Ok(power) if !(-4..16).contains(&power) => {
                let sign = if power < 0 { '-' } else { '+' };
                self.raw(&format!("{digits}e{sign}{:02}", power.abs()));
            }
            _ => self.raw(&format!("{x:?}")),
        }
        Ok(())
    }

    fn hint(&mut self, hint: Option<i64>) -> io::Result<()> {
        match hint {
            Some(n) => self.int(n),
            None => {
                self.raw("null");
                Ok(())
            }
        }
    }

    /// `"sym":text,"hint":number`.
    fn expr(&mut self, graph: &Graph, expr: ExprId) -> io::Result<()> {
        let expr = graph.expr(expr);
        self.raw("\"sym\":");
        self.text(graph.text(expr.text))?;
        self.raw(",\"hint\":");
        self.hint(expr.hint)
    }

    fn out(&mut self, graph: &Graph, out: Out) -> io::Result<()> {
        match out {
            Out::Absent | Out::None => self.raw("null"),
            Out::Tensor(tensor) => self.tensor(graph, tensor)?,
            Out::Int(n) => {
                self.raw("{\"t\":\"int\",\"value\":");
                self.int(n)?;
                self.raw("}");
            }
            Out::SymInt(expr) => {
                self.raw("{\"t\":\"symint\",");
                self.expr(graph, expr)?;
                self.raw("}");
            }
            Out::SymBool(expr) => {
                self.raw("{\"t\":\"symbool\",");
                self.expr(graph, expr)?;
                self.raw("}");
            }
            Out::Other(ty) => {
                self.raw("{\"t\":\"other\",\"type\":");
                self.text(graph.text(ty))?;
                self.raw("}");
            }
            Out::Key(key) => self.text(graph.text(key))?,
            Out::Tuple(span) => {
                self.raw("[");
                for (i, &out) in graph.outs(span).iter().enumerate() {
                    if i > 0 {
                        self.raw(",");
                    }
                    self.out(graph, out)?;
                }
                self.raw("]");
            }
            Out::Dict(span) => {
                self.raw("{\"dict\":[");
                for (i, &out) in graph.outs(span).iter().enumerate() {
                    self.raw(match (i, i % 2) {
                        (0, _) => "[",
                        (_, 0) => "],[",
                        _ => ",",
                    });
                    self.out(graph, out)?;
                }
                self.raw(if span.is_empty() { "]}" } else { "]]}" });
            }
        }
        Ok(())
    }

    fn tensor(&mut self, graph: &Graph, id: TensorId) -> io::Result<()> {
        let &Tensor {
            shape,
            stride,
            dtype,
            requires_grad,
            device,
            storage,
            offset,
            storage_bytes,
            is_guessed: _,
        } = graph.tensor(id);
        self.raw("{\"t\":\"tensor\",\"shape\":");
        self.dims(graph, graph.dims(shape))?;
        self.raw(",\"dtype\":");
        self.text(dtype.name())?;
        self.raw(",\"device\":");
        self.text(graph.text(device))?;
        self.raw(",\"stride\":");
        self.dims(graph, graph.dims(stride))?;
        if let Some(storage) = storage {
            self.raw(",\"storage\":");
            self.int(storage.0.into())?;
        }
        // Left out, it would be what follows from the operator.
        self.raw(",\"offset\":");
        self.int(offset)?;
        if let Some(bytes) = storage_bytes {
            self.raw(",\"storage_bytes\":");
            self.dim(graph, bytes)?;
        }
        if let Some(requires_grad) = requires_grad {
            self.raw(",\"requires_grad\":");
            self.bool(requires_grad);
        }
        if let Some(fields) = graph.unknown_fields(Holder::Tensor(id)) {
            self.kept_fields(fields, &mut false);
        }
        self.raw("}");
        Ok(())
    }

    fn dims(&mut self, graph: &Graph, dims: &[Dim]) -> io::Result<()> {
        self.raw("[");
        for (i, &dim) in dims.iter().enumerate() {
            if i > 0 {
                self.raw(",");
            }
            self.dim(graph, dim)?;
        }
        self.raw("]");
        Ok(())
    }

    fn dim(&mut self, graph: &Graph, dim: Dim) -> io::Result<()> {
        match dim {
            Dim::Static(n) => self.int(n),
            Dim::Symbolic(expr) => {
                self.raw("{");
                self.expr(graph, expr)?;
                self.raw("}");
                Ok(())
            }
        }
    }
}
