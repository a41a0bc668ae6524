//! All faults of a graph.
//!
//! A graph can hold states that make no sense, because readers and passes produce them. [`validate`] finds all of
//! them, not only the first, in a fixed order: those of the graph as a whole, then those of each node in list
//! order. Linear in the size of the graph.
//!
//! A *fatal* fault leaves nothing to judge: what the graph means is not determined. Everything else is a finding
//! about the graph.

pub use super::fault::{Fault, FaultKind, Severity, Subject};

use super::bodies::called;
use super::collectives::{Collectives, GroupName};
use super::cycle::shortest_cycle_of;
use super::edges::{EdgeKind, Edges, Rows};
use super::topological::{Violation, violations};
use crate::graph::{Dim, ExprId, Graph, Group, NodeId, Op, Out, Span, Tensor, Value, bound_of};
use crate::limits::Limit;
use crate::ops::shape::{ShapeError, ShapeFault, check};
use crate::ops::{Kind, Ops};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// All faults of `graph`.
pub fn validate(graph: &Graph) -> Vec<Fault> {
    let ops = Ops::of(graph);
    validate_with(graph, &ops, &Edges::new(graph), &Collectives::new(graph, &ops), &|_| false)
}

/// The same from what is known of `graph` already: operators, edges, communication, and nodes whose arguments and
/// recorded results certainly fit their operators.
pub fn validate_with(
    graph: &Graph,
    ops: &Ops,
    edges: &Edges,
    collectives: &Collectives,
    fits: &dyn Fn(NodeId) -> bool,
) -> Vec<Fault> {
    let mut faults = Faults { graph, list: Vec::new() };
    for fault in graph.world.faults() {
        faults.add(None, FaultKind::World(fault));
    }
    structure(&mut faults, edges, &mut FxHashSet::default());
    tensors(&mut faults);
    symbols(&mut faults);
    members(&mut faults);
    // What is behind a reference past the end of the list cannot be asked.
    let whole = !faults.list.iter().any(|fault| matches!(fault.kind, FaultKind::Outside { .. }));
    if whole {
        communication(&mut faults, ops, collectives);
    }
    for id in graph.ids().filter(|_| whole && !graph.subgraphs.is_empty()) {
        if let Some(misfit) = called(graph, id).and_then(|called| called.misfit()) {
            faults.add(Some(id), FaultKind::Arguments(misfit));
        }
    }
    for id in graph.ids().filter(|&id| whole && !fits(id)) {
        for fault in check(graph, ops, id) {
            match fault {
                ShapeFault::Refused(ShapeError::Arguments(error)) => {
                    faults.add(Some(id), FaultKind::Arguments(error));
                }
                fault => faults.add(Some(id), FaultKind::Shape { fault }),
            }
        }
    }
    faults.sorted()
}

struct Faults<'a> {
    graph: &'a Graph,
    list: Vec<Fault>,
}

impl Faults<'_> {
    fn add(&mut self, node: Option<NodeId>, kind: FaultKind) {
        let name = node.map_or_else(String::new, |node| self.graph.name(node).to_string());
        self.list.push(Fault { kind, node, name });
    }

    fn sorted(mut self) -> Vec<Fault> {
        let place = |fault: &Fault| fault.node.map_or(0, |node| u64::from(node.0) + 1);
        self.list.sort_by_key(|fault| (place(fault), fault.kind.rank().0));
        self.list
    }
}

/// What `fx.Graph.lint` looks at, of the graph and of its bodies: names, references and order. `seen` are the bodies
/// that were looked at, since one body may belong to many graphs.
fn structure<'g>(faults: &mut Faults<'g>, edges: &Edges, seen: &mut FxHashSet<*const Graph>) {
    outputs(faults);
    names(faults);
    references(faults);
    order(faults, edges);
    let graph: &'g Graph = faults.graph;
    for (attribute, body) in &graph.subgraphs {
        if !seen.insert(Arc::as_ptr(body)) {
            continue;
        }
        let mut inner = Faults { graph: body, list: Vec::new() };
        structure(&mut inner, &Edges::new(body), seen);
        for fault in inner.sorted() {
            faults.add(None, FaultKind::Body { attribute: attribute.clone(), fault: Box::new(fault) });
        }
    }
}

fn outputs(faults: &mut Faults) {
    if faults.graph.is_empty() {
        return faults.add(None, FaultKind::Empty);
    }
    let count = faults.graph.nodes().iter().filter(|node| node.op == Op::Output).count();
    if count != 1 {
        faults.add(None, FaultKind::Outputs { count });
    }
}

fn names(faults: &mut Faults) {
    let graph = faults.graph;
    let mut first: Vec<Option<NodeId>> = vec![None; graph.strings().len()];
    for id in graph.ids() {
        match &mut first[graph.node(id).name.index()] {
            Some(first) => {
                let first = *first;
                faults.add(Some(id), FaultKind::DuplicateName { first });
            }
            slot => *slot = Some(id),
        }
    }
}

/// References to what is not there.
fn references(faults: &mut Faults) {
    fn walk(faults: &mut Faults, id: NodeId, span: Span) {
        let graph = faults.graph;
        for &value in graph.values(span) {
            match value {
                Value::Node(to) if to.index() >= graph.len() => {
                    faults.add(Some(id), FaultKind::Outside { to: to.0 });
                }
                Value::Dangling(to) => {
                    faults.add(Some(id), FaultKind::Dangling { to: graph.text(to).to_string() });
                }
                Value::List(inner) | Value::Slice(inner) | Value::Dict(inner) => walk(faults, id, inner),
                _ => {}
            }
        }
    }
    for id in faults.graph.ids() {
        let node = faults.graph.node(id);
        walk(faults, id, node.args);
        walk(faults, id, node.kwargs);
    }
}

/// The order of the list, and cycles of more than one node.
fn order(faults: &mut Faults, edges: &Edges) {
    let graph = faults.graph;
    let mut late = false;
    for violation in violations(graph, edges) {
        let node = violation.node();
        let kind = match violation {
            Violation::UseBeforeDefinition { needs, kind, .. } if needs == node => match kind {
                EdgeKind::Data => FaultKind::SelfReference,
                EdgeKind::Ordering => FaultKind::OrderedAfterItself,
            },
            Violation::UseBeforeDefinition { needs, kind, .. } => {
                late = true;
                FaultKind::ForwardReference { to: needs, name: graph.name(needs).to_string(), kind }
            }
            Violation::LatePlaceholder { .. } => {
                FaultKind::Position { statement: "a placeholder that stands after a node that is none" }
            }
            Violation::AfterOutput { .. } => FaultKind::Position { statement: "stands after the output" },
        };
        faults.add(Some(node), kind);
    }
    if !late {
        return;
    }
    let mut pairs = Vec::new();
    for id in graph.ids() {
        pairs.extend(edges.successors(id).filter(|&next| next != id).map(|next| (id, next)));
    }
    if let Some(cycle) = shortest_cycle_of(&Rows::build(graph.len(), &pairs)) {
        let kind = FaultKind::Cycle {
            chain: cycle.chain(graph),
            reasons: cycle.reasons(graph, edges),
            shortest: cycle.shortest,
            nodes: cycle.nodes.clone(),
        };
        faults.add(cycle.nodes.first().copied(), kind);
    }
}

fn communication(faults: &mut Faults, ops: &Ops, collectives: &Collectives) {
    let graph = faults.graph;
    let mut groups: FxHashMap<&str, &Group> = FxHashMap::default();
    graph.world.groups.iter().for_each(|group| {
        groups.entry(&group.name).or_insert(group);
    });
    for call in &collectives.calls {
        // The empty name is the tag of the old functional collectives, which list their ranks.
        let GroupName::Text(name) = call.group else { continue };
        let node = Some(call.node);
        match (groups.get(name), call.group_size) {
            (None, _) if !name.is_empty() => {
                faults.add(node, FaultKind::UnknownGroup { group: name.to_string() });
            }
            (Some(group), Some(stated)) if stated != i64::from(group.size) => {
                let (group, size) = (name.to_string(), group.size);
                faults.add(node, FaultKind::GroupSize { group, stated, size });
            }
            _ => {}
        }
    }
    let waited =
        if collectives.idle_waits.is_empty() { Vec::new() } else { of_collectives(graph, ops, collectives) };
    for &wait in &collectives.idle_waits {
        if !waited[wait.index()] {
            let mut values = Vec::new();
            graph.for_each_input(wait, &mut |value| values.push(graph.name(value)));
            let value = if values.is_empty() { "nothing".to_string() } else { values.join(", ") };
            faults.add(Some(wait), FaultKind::IdleWait { value });
        }
    }
}

/// For each node whether it takes the value of a collective, waited for already, or a view of it.
fn of_collectives(graph: &Graph, ops: &Ops, collectives: &Collectives) -> Vec<bool> {
    let mut found = vec![false; graph.len()];
    for id in graph.ids() {
        // Each step goes back in the list, or a cycle would never end.
        let Some(&value) = graph.inputs(id).first().filter(|&&value| value < id) else { continue };
        let shows = || match ops.call(graph, value).map(|info| info.kind) {
            Some(Kind::Wait | Kind::GetItem | Kind::View(_)) => found[value.index()],
            _ => false,
        };
        found[id.index()] = collectives.launch_of_value(value).is_some() || shows();
    }
    found
}

fn tensors(faults: &mut Faults) {
    fn walk(faults: &mut Faults, id: NodeId, out: Out) {
        let graph = faults.graph;
        match out {
            Out::Tensor(tensor) => tensor_faults(graph, graph.tensor(tensor), &mut |kind| {
                faults.add(Some(id), kind);
            }),
            Out::Tuple(span) | Out::Dict(span) => {
                graph.outs(span).iter().for_each(|&part| walk(faults, id, part));
            }
            _ => {}
        }
    }
    for id in faults.graph.ids() {
        walk(faults, id, faults.graph.node(id).out);
    }
}

fn tensor_faults(graph: &Graph, tensor: &Tensor, add: &mut dyn FnMut(FaultKind)) {
    let (shape, strides) = (graph.dims(tensor.shape), graph.dims(tensor.stride));
    let mut sound = true;
    let mut count = |what, dim: Dim| {
        if let Some(value) = graph.hint(dim).filter(|&value| value < 0) {
            add(FaultKind::NegativeSize { what, value });
            sound = false;
        }
    };
    shape.iter().for_each(|&dim| count("size", dim));
    strides.iter().for_each(|&dim| count("stride", dim));
    count("offset", Dim::Static(tensor.offset));
    tensor.storage_bytes.into_iter().for_each(|bytes| count("storage size", bytes));
    if shape.len() != strides.len() {
        add(FaultKind::Rank { shape: shape.len(), strides: strides.len() });
        sound = false;
    }
    if !sound {
        return;
    }
    if shape.len() as u64 > Limit::Dimensions.standard() {
        return add(FaultKind::Dimensions { count: shape.len() });
    }
    let itemsize = i64::from(tensor.dtype.itemsize());
    // A size without a hint counts 1; a tensor without elements takes no room, whatever its other sizes.
    let sizes = || shape.iter().map(|&dim| graph.hint(dim).unwrap_or(1));
    let bytes = match sizes().any(|size| size == 0) {
        true => Some(0),
        false => sizes().try_fold(itemsize, |bytes, size| bytes.checked_mul(size)),
    };
    let within = |bytes: i64| bytes as u64 <= Limit::Tensor.standard();
    // How far the elements reach, and, where there are none, what the record states all the same.
    let strides_of = strides.iter().map(|&dim| graph.hint(dim).unwrap_or(1));
    let reach = sizes().zip(strides_of.clone()).try_fold(tensor.offset, |reach, (size, stride)| {
        reach.checked_add((size - 1).max(0).checked_mul(stride)?)
    });
    let reach = reach.and_then(|reach| reach.checked_mul(itemsize));
    let numbers =
        sizes().chain(strides_of).chain([tensor.offset]).chain(tensor.storage_bytes.and_then(Dim::known));
    if !bytes.is_some_and(within) || !reach.is_some_and(within) || !numbers.into_iter().all(within) {
        let text: Vec<String> = sizes().map(|size| size.to_string()).collect();
        return add(FaultKind::TooLarge { shape: format!("{}[{}]", tensor.dtype.name(), text.join(", ")) });
    }
    let storage = tensor.storage_bytes.and_then(Dim::known);
    let known = shape.iter().chain(strides).all(|dim| dim.known().is_some());
    if let Some(storage) = storage.filter(|_| known && bytes != Some(0)) {
        let last = shape.iter().zip(strides).try_fold(tensor.offset, |last, (size, stride)| {
            last.checked_add((size.known()? - 1).checked_mul(stride.known()?)?)
        });
        let needs = last.and_then(|last| last.checked_add(1)?.checked_mul(itemsize)).unwrap_or(i64::MAX);
        if needs > storage {
            add(FaultKind::OutsideStorage { needs, bytes: storage });
        }
    }
}

/// Symbols that are used and not declared, at the first node that uses the expression.
fn symbols(faults: &mut Faults) {
    let graph = faults.graph;
    for symbol in &graph.symbols {
        if let (Some(low), Some(high)) = (bound_of(&symbol.range.0), bound_of(&symbol.range.1))
            && low > high
        {
            let (symbol, range) = (symbol.name.clone(), symbol.range.clone());
            faults.add(None, FaultKind::SymbolRange { symbol, range });
        }
    }
    if !graph.has_expressions() {
        return;
    }
    let declared: FxHashSet<&str> = graph.symbols.iter().map(|symbol| symbol.name.as_str()).collect();
    let mut seen = FxHashSet::default();
    let mut undeclared = FxHashSet::default();
    for id in graph.ids() {
        let mut visit = |expr: ExprId| {
            if !seen.insert(expr) {
                return;
            }
            for symbol in symbols_of(graph.text(graph.expr(expr).text)) {
                if !declared.contains(symbol) && undeclared.insert(symbol) {
                    faults.add(Some(id), FaultKind::UndeclaredSymbol { symbol: symbol.to_string() });
                }
            }
        };
        let node = graph.node(id);
        exprs_of_values(graph, node.args, &mut visit);
        exprs_of_values(graph, node.kwargs, &mut visit);
        exprs_of_out(graph, node.out, &mut visit);
    }
}

fn exprs_of_values(graph: &Graph, span: Span, visit: &mut impl FnMut(ExprId)) {
    for &value in graph.values(span) {
        match value {
            Value::Symbolic(expr) => visit(expr),
            Value::List(inner) | Value::Slice(inner) | Value::Dict(inner) => {
                exprs_of_values(graph, inner, visit);
            }
            _ => {}
        }
    }
}

fn exprs_of_out(graph: &Graph, out: Out, visit: &mut impl FnMut(ExprId)) {
    match out {
        Out::SymInt(expr) | Out::SymBool(expr) => visit(expr),
        Out::Tuple(span) | Out::Dict(span) => {
            graph.outs(span).iter().for_each(|&part| exprs_of_out(graph, part, visit));
        }
        Out::Tensor(tensor) => {
            let tensor = graph.tensor(tensor);
            let dims = graph.dims(tensor.shape).iter().chain(graph.dims(tensor.stride));
            for dim in dims.copied().chain(tensor.storage_bytes) {
                if let Dim::Symbolic(expr) = dim {
                    visit(expr);
                }
            }
        }
        _ => {}
    }
}

/// The names in a symbolic expression that stand for symbols: not functions, not constants of Python or SymPy.
fn symbols_of(text: &str) -> impl Iterator<Item = &str> {
    const WORDS: [&str; 11] =
        ["and", "or", "not", "if", "else", "True", "False", "None", "oo", "int_oo", "zoo"];
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(is_word)?;
            let length = rest[start..].find(|c| !is_word(c)).unwrap_or(rest.len() - start);
            let word = &rest[start..start + length];
            rest = &rest[start + length..];
            let named = word.starts_with(|c: char| c.is_alphabetic() || c == '_');
            if named && !rest.trim_start().starts_with('(') && !WORDS.contains(&word) {
                return Some(word);
            }
        }
    })
}

/// Renames and clusters.
fn members(faults: &mut Faults) {
    let graph = faults.graph;
    let inside = |id: NodeId| id.index() < graph.len();
    let mut statements: Vec<(Option<NodeId>, String)> = Vec::new();
    for edge in &graph.ordering {
        for end in [edge.before, edge.after].into_iter().filter(|&end| !inside(end)) {
            statements
                .push((None, format!("an ordering edge names position {}, past the end of the list", end.0)));
        }
    }
    for rename in &graph.renames {
        for end in [rename.by, rename.of].into_iter().filter(|&end| !inside(end)) {
            statements.push((None, format!("a rename names position {}, past the end of the list", end.0)));
        }
        if rename.by == rename.of && inside(rename.by) {
            statements.push((Some(rename.by), "renames its own buffer".to_string()));
        }
    }
    let clustered = if graph.clusters.is_empty() { 0 } else { graph.len() };
    let mut cluster_of: Vec<Option<usize>> = vec![None; clustered];
    for (i, cluster) in graph.clusters.iter().enumerate() {
        for &member in &cluster.members {
            let Some(slot) = cluster_of.get_mut(member.index()) else {
                let statement =
                    format!("cluster {} names position {}, past the end of the list", cluster.name, member.0);
                statements.push((None, statement));
                continue;
            };
            match slot.replace(i).map(|other| &graph.clusters[other].name) {
                Some(other) if *other == cluster.name => {
                    statements.push((Some(member), format!("stands twice in cluster {other}")));
                }
                Some(other) => statements
                    .push((Some(member), format!("stands in the clusters {other} and {}", cluster.name))),
                None => {}
            }
        }
    }
    for (node, statement) in statements {
        faults.add(node, FaultKind::Member { statement });
    }
}
