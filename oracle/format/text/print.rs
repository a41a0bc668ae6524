//! The printer: one canonical text per case. Parsing it gives the case back.

use super::words::{self, node_name, quote, raw_or_quoted, word_or_quoted};
use crate::case::{Case, Comment, Expectation, Expected, Part, PassConfig, Place, Setting, Subject};
use crate::graph::{Dim, DimsId, ExprId, Graph, Group, NodeId, Op, Out, Span, Tags, Tensor, Value, World};
use crate::ops;
use rustc_hash::FxHashMap;
use std::fmt::{self, Write};

/// Names and calls longer than this do not push the columns of the other lines apart.
const NAME_COLUMN: usize = 24;
const CALL_COLUMN: usize = 60;

/// Runs of consecutive ranks longer than this are written `first to last`.
const LONG_RUN: usize = 4;

pub(super) fn print(case: &Case) -> String {
    let mut comments: FxHashMap<&Place, Vec<&Comment>> = FxHashMap::default();
    for comment in &case.comments {
        comments.entry(&comment.place).or_default().push(comment);
    }
    let device = common_device(case);
    let mut printer = Printer { text: String::new(), comments, device };
    printer.above(&Place::Head);
    printer.part(&case.graph, None, case.pass.as_ref(), Part::Before);
    for (index, expectation) in case.expectations.iter().enumerate() {
        printer.line(&Place::Expectation(index), &format!("expect {expectation}"));
    }
    for (rank, graphs) in case.outcome.iter().flat_map(|outcome| outcome.entries()) {
        let of = rank.map(|r| format!(" rank {r}")).unwrap_or_default();
        if let Some(unrepaired) = &graphs.unrepaired {
            printer.section(&case.graph, unrepaired, &format!("--- unrepaired{of}"), Part::Unrepaired(rank));
        }
        printer.section(&case.graph, &graphs.repaired, &format!("--- after{of}"), Part::After(rank));
    }
    printer.above(&Place::End);
    if printer.text.lines().all(|line| line.starts_with('#')) {
        printer.text.push_str("graph \"\"\n");
    }
    printer.text
}

/// The most frequent device of the case's tensors, the first of several.
fn common_device(case: &Case) -> String {
    let outcome = case.outcome.iter().flat_map(|o| o.entries());
    let recorded = outcome.flat_map(|(_, graphs)| graphs.unrepaired.iter().chain([&graphs.repaired]));
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for graph in std::iter::once(&case.graph).chain(recorded) {
        for node in graph.nodes() {
            for_each_tensor(graph, node.out, &mut |tensor| {
                let device = graph.text(tensor.device);
                match counts.iter_mut().find(|(d, _)| *d == device) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((device, 1)),
                }
            });
        }
    }
    let most = counts.iter().map(|&(_, count)| count).max();
    let device = counts.iter().find(|&&(_, count)| Some(count) == most).map(|&(device, _)| device);
    device.unwrap_or(super::DEFAULT_DEVICE).to_string()
}

fn for_each_tensor(graph: &Graph, out: Out, visit: &mut impl FnMut(&Tensor)) {
    match out {
        Out::Tensor(tensor) => visit(graph.tensor(tensor)),
        Out::Tuple(span) | Out::Dict(span) => {
            for &part in graph.outs(span) {
                for_each_tensor(graph, part, visit);
            }
        }
        _ => {}
    }
}

struct Printer<'a> {
    text: String,
    comments: FxHashMap<&'a Place, Vec<&'a Comment>>,
    device: String,
}

impl Printer<'_> {
    /// The comments above a line.
    fn above(&mut self, place: &Place) {
        let Some(comments) = self.comments.get(place) else { return };
        for comment in comments.iter().filter(|c| !c.beside) {
            for line in comment.text.split('\n') {
                self.text.push_str(if line.is_empty() { "#" } else { "# " });
                self.text.push_str(line);
                self.text.push('\n');
            }
        }
    }

    /// A line with its comments.
    fn line(&mut self, place: &Place, line: &str) {
        self.above(place);
        self.text.push_str(line);
        if let Some(comments) = self.comments.get(place) {
            for comment in comments.iter().filter(|c| c.beside) {
                self.text.push_str(if comment.text.is_empty() { "  #" } else { "  # " });
                self.text.push_str(&comment.text.replace('\n', " "));
            }
        }
        self.text.push('\n');
    }

    fn section(&mut self, before: &Graph, graph: &Graph, line: &str, part: Part) {
        self.text.push('\n');
        self.line(&Place::Section(part), line);
        self.part(graph, Some(before), None, part);
    }

    /// One graph. What it shares with `before` is not repeated.
    fn part(&mut self, graph: &Graph, before: Option<&Graph>, pass: Option<&PassConfig>, part: Part) {
        let plain = Graph::default();
        let base = before.unwrap_or(&plain);
        if (&graph.name, &graph.kind) != (&base.name, &base.kind) {
            let kind = if graph.kind.is_empty() {
                String::new()
            } else {
                format!(" {}", word_or_quoted(&graph.kind))
            };
            let _ = writeln!(self.text, "graph {}{kind}", word_or_quoted(&graph.name));
        }
        if before.is_none() && graph.world != base.world {
            self.line(&Place::World, &world(&graph.world));
        } else if graph.world != base.world {
            let _ = writeln!(self.text, "{}", world(&graph.world));
        }
        if before.is_none() && self.device != super::DEFAULT_DEVICE {
            let _ = writeln!(self.text, "device {}", raw_or_quoted(&self.device));
        }
        if graph.symbols != base.symbols {
            self.symbols(graph);
        }
        for (target, json) in carried_facts(graph) {
            if before.is_none_or(|before| !carried_facts(before).any(|f| f == (target, json))) {
                let _ = writeln!(self.text, "facts {} {}", raw_or_quoted(target), quote(json));
            }
        }
        if let Some(pass) = pass {
            self.line(&Place::Pass, &format!("pass {pass}"));
        }
        self.nodes(graph, part);
        for cluster in &graph.clusters {
            let members: Vec<String> =
                cluster.members.iter().map(|&m| node_name(&graph.world.groups, graph.name(m))).collect();
            let line = format!("cluster {} = [{}]", word_or_quoted(&cluster.name), members.join(", "));
            self.line(&Place::Cluster(part, cluster.name.clone()), &line);
        }
    }

    fn symbols(&mut self, graph: &Graph) {
        if graph.symbols.is_empty() {
            self.text.push_str("symbol none\n");
        }
        for symbol in &graph.symbols {
            let name = if symbol.name == "none" { quote("none") } else { word_or_quoted(&symbol.name) };
            let _ = write!(self.text, "symbol {name}");
            if let Some(hint) = symbol.hint {
                let _ = write!(self.text, " = {hint}");
            }
            if symbol.range != super::default_range() {
                let (low, high) = &symbol.range;
                let _ = write!(self.text, " in {} to {}", raw_or_quoted(low), raw_or_quoted(high));
            }
            self.text.push_str(if symbol.unbacked { " unbacked\n" } else { "\n" });
        }
    }

    fn nodes(&mut self, graph: &Graph, part: Part) {
        let lines = Lines::new(graph, &self.device);
        let mut rows = Vec::with_capacity(graph.len());
        let (mut name_width, mut call_width) = (0, 0);
        for id in graph.ids() {
            let row = lines.row(id);
            if let Some(name) = &row.name {
                let (name, call) = (name.chars().count(), row.call.chars().count());
                name_width = name_width.max(if name <= NAME_COLUMN { name } else { 0 });
                call_width = call_width.max(if call <= CALL_COLUMN && !row.ty.is_empty() { call } else { 0 });
            }
            rows.push(row);
        }
        for (id, row) in graph.ids().zip(rows) {
            let line = row.text(name_width, call_width);
            // The text of the place is made only where a comment may ask for it.
            if self.comments.is_empty() {
                self.text.push_str(&line);
                self.text.push('\n');
            } else {
                self.line(&Place::Node(part, graph.name(id).to_string()), &line);
            }
        }
    }
}

/// The schema facts that a text carries: of targets that the graph uses and the table of operators lacks.
fn carried_facts(graph: &Graph) -> impl Iterator<Item = (&str, &str)> {
    let facts = graph.facts.iter().filter(|(target, _)| ops::by_target(target).is_none());
    let used = facts.filter(|(target, _)| graph.targets().any(|t| t == target));
    used.map(|(target, json)| (target.as_str(), json.as_str()))
}

fn world(world: &World) -> String {
    let groups: Vec<String> = world.groups.iter().map(group).collect();
    let groups = groups.join(", ");
    match (world.ranks, groups.is_empty()) {
        (None, true) => "world none".to_string(),
        (None, false) => format!("groups {groups}"),
        (Some(1), true) => "world 1 rank".to_string(),
        (Some(ranks), true) => format!("world {ranks} ranks"),
        (Some(1), false) => format!("world 1 rank, groups {groups}"),
        (Some(ranks), false) => format!("world {ranks} ranks, groups {groups}"),
    }
}

fn group(group: &Group) -> String {
    let mut text = format!("{} = ", word_or_quoted(&group.name));
    match group.instances.first() {
        None => {
            let _ = write!(text, "{} ranks", group.size);
        }
        Some(first) => {
            let instances: Vec<String> = group.instances.iter().map(|i| ranks(i)).collect();
            let _ = write!(text, "[{}]", instances.join(" | "));
            if first.len() as u64 != u64::from(group.size) {
                let _ = write!(text, " of {}", group.size);
            }
        }
    }
    if let Some(rank) = group.recorded_rank {
        let _ = write!(text, " at {rank}");
    }
    text
}

fn ranks(ranks: &[u32]) -> String {
    let mut parts = Vec::new();
    for run in ranks.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
        match run {
            [first, .., last] if run.len() > LONG_RUN => parts.push(format!("{first} to {last}")),
            _ => parts.extend(run.iter().map(u32::to_string)),
        }
    }
    parts.join(" ")
}

impl fmt::Display for PassConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", raw_or_quoted(&self.name))?;
        self.options.iter().try_for_each(|(key, setting)| write!(f, " {}={setting}", word_or_quoted(key)))
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Text(text) => write!(f, "{}", raw_or_quoted(text)),
            Setting::List(items) => {
                write!(f, "[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { ", " } else { "" })?;
                }
                write!(f, "]")
            }
        }
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expectation::Fault(kind) => write!(f, "fault {}", raw_or_quoted(kind)),
            Expectation::Verdict { of: Subject::Reference, is } => write!(f, "{is}"),
            Expectation::Verdict { of: Subject::Outcome, is } => write!(f, "outcome {is}"),
            Expectation::Verdict { of: Subject::Candidate(name), is } => match name.as_str() {
                "sound" | "violates" | "refused" | "undecided" | "fault" | "outcome" => {
                    write!(f, "{} {is}", quote(name))
                }
                _ => write!(f, "{} {is}", raw_or_quoted(name)),
            },
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Sound => write!(f, "sound"),
            Expected::Refused => write!(f, "refused"),
            Expected::Undecided => write!(f, "undecided"),
            Expected::Violates(rules) => {
                write!(f, "violates")?;
                rules.iter().try_for_each(|rule| write!(f, " {}", raw_or_quoted(rule)))
            }
        }
    }
}

/// The line of one node in parts.
pub(super) struct Row {
    /// Left of `=`; `None` for the statement `output`.
    name: Option<String>,
    /// Right of `=`.
    call: String,
    /// Behind the colon; empty where nothing is written.
    ty: String,
    /// Tags and what follows them, with a space before each.
    rest: String,
}

impl Row {
    fn text(&self, name_width: usize, call_width: usize) -> String {
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
    device: &'a str,
    /// (node, runs after), by node.
    after: Vec<(NodeId, NodeId)>,
    /// (node, renames), by node.
    renames: Vec<(NodeId, NodeId)>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(graph: &'a Graph, device: &'a str) -> Lines<'a> {
        let mut after: Vec<_> = graph.ordering.iter().map(|edge| (edge.after, edge.before)).collect();
        let mut renames: Vec<_> = graph.renames.iter().map(|rename| (rename.by, rename.of)).collect();
        after.sort_unstable();
        after.dedup();
        renames.sort_unstable();
        renames.dedup();
        Lines { graph, device, after, renames }
    }

    fn name(&self, id: NodeId) -> String {
        node_name(&self.graph.world.groups, self.graph.name(id))
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
        let world = &self.graph.world;
        let name = self.graph.text(group);
        words::is_bare_group(&world.groups, name)
            && world.group(name).is_some_and(|g| i64::from(g.size) == size)
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
        let groups = &graph.world.groups;
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
            Value::Node(node) => write!(text, "{}", node_name(groups, graph.name(node))),
            Value::Dangling(name) => write!(text, "{}", node_name(groups, graph.text(name))),
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
        let declared = self.graph.symbols.iter().find(|s| s.name == text);
        match expr.hint {
            hint if words::is_word(text) && declared.is_some_and(|s| s.hint == hint) => text.to_string(),
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
        if super::default_strides(shape).as_deref() != Some(graph.dims(tensor.stride)) {
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
