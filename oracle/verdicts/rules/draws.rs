//! `rewrite/draws`: which random numbers are drawn.
//!
//! A generator is moved on by each draw, read or not, so a draw that is dropped, merged with another or made anew
//! changes what is drawn later, in this graph and behind it. What each value is used for, `rewrite/values` compares.
//! An operator of which nothing is known may draw: whether a draw may pass it is not known either. Nor is how many
//! numbers a draw takes, which may depend on its arguments: those of a draw that is read are compared with its value,
//! and where a draw that nobody reads has others, the rule is undecided. What is read must have the same draws before
//! it, of each generator and in any order.

use super::partition::live;
use super::{AnalyzedGraph, Checked, Code, Evidence, Restreamed, Stage};
use crate::analysis::origin::Origin;
use crate::analysis::{Draws, drawn_tensor};
use crate::expression::spelled;
use crate::graph::{Dtype, Graph, NodeId, Op, Out, Tensor, Value};
use crate::ops::{Default, Kind};
use std::collections::{BTreeMap, BTreeSet};

/// As many draws of each operator as before, of as many numbers of the same kind, from the same generators.
pub(super) fn draws_kept(evidence: &Evidence) -> Checked {
    let (old, new) = (drawn(&evidence.before), drawn(&evidence.after));
    if old.is_empty() && new.is_empty() {
        return Checked::Findings(Vec::new());
    }
    let targets: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let lists = |target: &String| [&old, &new].map(|of| of.get(target).map_or(&[][..], Vec::as_slice));
    let kinds = |list: &[Drawn]| list.iter().map(|drawn| drawn.what.clone()).collect::<Vec<_>>();
    let changed = |target: &&String| {
        let [before, after] = lists(target);
        kinds(before) != kinds(after)
    };
    let changed: Vec<&String> = targets.into_iter().filter(changed).collect();
    let has = |more: fn(usize, usize) -> bool| {
        changed.iter().any(|target| {
            let [before, after] = lists(target);
            more(after.len(), before.len())
        })
    };
    // Where some operators draw less and others more, these may draw from another generator in their place.
    if has(|after, before| after > before) && has(|after, before| after < before) {
        let option = match are_restreamed(evidence) {
            true => "; with --allow draws=restreamed they are matched one to one",
            false => "",
        };
        let names: Vec<&str> = changed.iter().map(|target| target.as_str()).collect();
        let why = format!("{} draw in place of one another{option}", names.join(" and "));
        return Checked::undecided(Code::DrawsReplaced, why);
    }
    let is_open = |side: &AnalyzedGraph, drawn: &Drawn| side.graph.node(drawn.node).out == Out::Absent;
    let open = |target: &&&String| {
        let [before, after] = lists(target);
        before.iter().any(|drawn| is_open(&evidence.before, drawn))
            || after.iter().any(|drawn| is_open(&evidence.after, drawn))
    };
    if let Some(target) = changed.iter().find(open) {
        let why = format!("nothing is recorded of what {target} draws");
        return Checked::undecided(Code::NotRecorded, why);
    }
    let of = &evidence.correspondence;
    let finding = |target: &&String| {
        let [before, after] = lists(target);
        let gone = before.iter().map(|drawn| drawn.node).filter(|id| of.after_of[id.index()].is_none());
        let made = after.iter().map(|drawn| drawn.node).filter(|id| of.before_of[id.index()].is_none());
        let words = |list: &[Drawn]| {
            let known: Option<i64> = list.iter().map(|drawn| drawn.what.0).sum();
            let numbers = known.map_or(String::new(), |numbers| format!(", {numbers} numbers in all"));
            let of: BTreeSet<&str> = list.iter().map(|drawn| drawn.what.1.as_str()).collect();
            let of: Vec<&str> = of.into_iter().filter(|name| !name.is_empty()).collect();
            let from = if of.is_empty() { String::new() } else { format!(", from {}", of.join(" and ")) };
            format!("{} draws by {target}{numbers}{from}", list.len())
        };
        evidence
            .finding("rewrite/draws", Stage::After, format!("other random numbers are drawn by {target}"))
            .before_nodes(evidence, gone)
            .after_nodes(evidence, made)
            .expected(format!("before, there are {}", words(before)))
            .observed(format!("after, there are {}", words(after)))
    };
    if !changed.is_empty() {
        return Checked::Findings(changed.iter().map(finding).collect());
    }
    let moved = moved(evidence, [&old, &new]);
    if let Some(moved) = moved.iter().find(|moved| moved.is_certain) {
        return Checked::Findings(vec![moved.finding(evidence)]);
    }
    let why = moved.first().map(|moved| moved.why(evidence));
    let why = why.or_else(|| passes_unknown(evidence)).or_else(|| draws_otherwise(evidence, &old, &new));
    why.map_or(Checked::Findings(Vec::new()), |why| Checked::undecided(Code::UncertainDependence, why))
}

/// A draw that is read, with other draws before it than before.
struct Moved<'d> {
    old: NodeId,
    new: NodeId,
    generator: &'d str,
    /// Whether other numbers are drawn before it, and each moves the generator on, as on the host: elsewhere a kernel
    /// takes them by the block.
    is_certain: bool,
}

impl Moved<'_> {
    fn finding(&self, evidence: &Evidence) -> super::Finding {
        let name = evidence.after.graph.name(self.new);
        evidence
            .finding("rewrite/draws", Stage::After, format!("{name} draws behind other draws than before"))
            .before_nodes(evidence, [self.old])
            .after_nodes(evidence, [self.new])
            .fact(format!("each number that is drawn moves the generator of {} on", self.generator))
            .expected("before it, as many numbers are drawn of each kind as before")
            .observed("they are others")
    }

    fn why(&self, evidence: &Evidence) -> String {
        let name = evidence.after.graph.name(self.new);
        format!("{name} draws behind other draws than before: how far they move the generator is not known")
    }
}

/// The nodes whose elements come to be in a result, without passing through memory that is written.
fn seen(side: &AnalyzedGraph) -> Vec<bool> {
    let graph = side.graph;
    let mut seen = vec![false; graph.len()];
    for id in graph.ids().rev() {
        let info = side.ops.call(graph, id);
        // These take shapes only.
        let passes_on =
            info.is_none_or(|info| !matches!(info.kind, Kind::Fill(_) | Kind::Random(_) | Kind::Where));
        if graph.node(id).op == Op::Output || (seen[id.index()] && passes_on) {
            graph.for_each_input(id, &mut |input| {
                if let Some(slot) = seen.get_mut(input.index()) {
                    *slot = true;
                }
            });
        }
    }
    seen
}

/// How many more draws of each kind there are on one side than on the other, where the numbers differ.
#[derive(Default)]
struct Excess<'d>(BTreeMap<(&'d String, &'d What, String), i64>);

impl<'d> Excess<'d> {
    fn add(&mut self, kind: (&'d String, &'d What, String), by: i64) {
        let count = self.0.entry(kind.clone()).or_insert(0);
        *count += by;
        if *count == 0 {
            self.0.remove(&kind);
        }
    }
}

/// The draws that are read and have others before them, in the order of generators.
fn moved<'d>(evidence: &Evidence, [old, new]: [&'d BTreeMap<String, Vec<Drawn>>; 2]) -> Vec<Moved<'d>> {
    let sides = [&evidence.before, &evidence.after];
    let (is_read, is_seen) = (sides.map(|side| live(side)), sides.map(|side| seen(side)));
    let [old, new] = [old, new].map(|of| {
        let mut lists: BTreeMap<&str, Vec<(NodeId, (&String, &Drawn))>> = BTreeMap::new();
        for (operator, drawn) in
            of.iter().flat_map(|(name, list)| list.iter().map(move |drawn| (name, drawn)))
        {
            lists.entry(&drawn.what.1).or_default().push((drawn.node, (operator, drawn)));
        }
        lists.values_mut().for_each(|list| list.sort_by_key(|(node, _)| *node));
        lists
    });
    let mut moved = Vec::new();
    for (generator, list) in new {
        let Some(before) = old.get(generator) else { continue };
        // How many more of each kind stand before this place after than before, with the arguments and without.
        let (mut called, mut drawn) = (Excess::default(), Excess::default());
        for (&(old, (left, gone)), &(new, (right, come))) in before.iter().zip(&list) {
            if !called.0.is_empty() && (is_read[0][old.index()] || is_read[1][new.index()]) {
                let is_returned = is_seen[0][old.index()] && is_seen[1][new.index()];
                let is_certain = generator == "cpu" && !drawn.0.is_empty() && is_returned;
                moved.push(Moved { old, new, generator, is_certain });
                break;
            }
            let kinds = [(0, left, gone, -1), (1, right, come, 1)];
            for (side, operator, one, by) in kinds {
                let arguments = format!("{:?}", numbers(sides[side], one.node));
                called.add((operator, &one.what, arguments), by);
                drawn.add((operator, &one.what, String::new()), by);
            }
        }
    }
    moved
}

/// A draw that changed places with an operator of which nothing is known.
fn passes_unknown(evidence: &Evidence) -> Option<String> {
    let graph = evidence.before.graph;
    let is_unknown = |id| evidence.before.ops.call(graph, id).is_some_and(|info| info.kind == Kind::Unknown);
    if !graph.ids().any(is_unknown) {
        return None;
    }
    let open = Origin::Random { certain: false };
    let reversed = evidence.reversed_conflicts().into_iter().find(|(_, _, origin)| *origin == open);
    reversed.map(|(first, second, origin)| {
        format!("{}; after, their order is reversed", origin.describe(graph, first, second))
    })
}

/// A draw that nobody reads, with numbers that no draw before has, or of another tensor: how far it moves its generator
/// may depend on them.
fn draws_otherwise(
    evidence: &Evidence,
    old: &BTreeMap<String, Vec<Drawn>>,
    new: &BTreeMap<String, Vec<Drawn>>,
) -> Option<String> {
    let (before, after) = (&evidence.before, &evidence.after);
    let is_read = live(after);
    let of = &evidence.correspondence;
    let twin = |argument: &NodeId| of.before_of.get(argument.index()).copied().flatten();
    let is_new = |target: &String, drawn: &&Drawn| {
        let own = numbers(after, drawn.node);
        let takes_more = TAKE_BY_VALUE.iter().any(|name| target.starts_with(name));
        let arguments: Vec<_> = after.edges.inputs(drawn.node).iter().map(twin).collect();
        let is_of_same = |other: NodeId| {
            !takes_more
                || before.edges.inputs(other).iter().map(|&input| Some(input)).eq(arguments.iter().copied())
        };
        let same = |other: &Drawn| {
            other.what == drawn.what && numbers(before, other.node) == own && is_of_same(other.node)
        };
        !is_read[drawn.node.index()] && !old.get(target).is_some_and(|list| list.iter().any(same))
    };
    let found = new.iter().find_map(|(target, list)| list.iter().find(|drawn| is_new(target, drawn)));
    found.map(|drawn| {
        let name = after.graph.name(drawn.node);
        format!("nobody reads {name}, and its arguments are others: how many numbers it takes may be too")
    })
}

/// Operators that take as many numbers from the generator as the tensors that they are given ask for. Source:
/// `aten/src/ATen/native/Distributions.cpp`.
const TAKE_BY_VALUE: [&str; 5] =
    ["aten.multinomial", "aten.poisson", "aten.binomial", "aten._standard_gamma", "aten._sample_dirichlet"];

/// The numbers that a call is given, by parameter where these are known.
fn numbers(side: &AnalyzedGraph, id: NodeId) -> Vec<(String, Value)> {
    let graph = side.graph;
    let mut numbers = Vec::new();
    let mut add = |name: String, value: Value| {
        if matches!(value, Value::Bool(_) | Value::Int(_) | Value::Float(_)) {
            numbers.push((name, value));
        }
    };
    match side.ops.call(graph, id).and_then(|info| info.schema.as_ref()) {
        Some(schema) => {
            for (place, param) in schema.params.iter().enumerate() {
                let default = || match param.default {
                    Some(Default::Bool(value)) => Value::Bool(value),
                    Some(Default::Int(value)) => Value::Int(value),
                    Some(Default::Float(value)) => Value::Float(value),
                    _ => Value::None,
                };
                add(param.name.clone(), graph.argument(id, place, &param.name).unwrap_or_else(default));
            }
        }
        None => {
            graph.args(id).iter().enumerate().for_each(|(place, &value)| add(place.to_string(), value));
        }
    }
    numbers
}

/// Whether both graphs draw the same numbers of each kind, streams aside.
fn are_restreamed(evidence: &Evidence) -> bool {
    let graphs = [&evidence.before, &evidence.after].map(|side| Restreamed::new(side.graph));
    let [Some(before), Some(after)] = &graphs else { return false };
    let sizes = |of: &Restreamed| {
        let side = AnalyzedGraph::new(&of.graph);
        let kinds = drawn(&side)
            .into_iter()
            .map(|(target, list)| (target, list.into_iter().map(|drawn| drawn.what.0).collect::<Vec<_>>()));
        kinds.collect::<Vec<_>>()
    };
    sizes(before) == sizes(after)
}

/// One draw.
struct Drawn {
    what: What,
    node: NodeId,
}

/// How many numbers, from which generator, of which dtype, and of which symbolic sizes.
type What = (Option<i64>, String, Option<Dtype>, Vec<String>);

/// The sizes of a tensor that are symbolic, each in its normal form.
fn symbolic_sizes(graph: &Graph, tensor: &Tensor) -> Vec<String> {
    graph.exprs_in(tensor.shape).map(|expr| spelled(graph.text(graph.expr(expr).text))).collect()
}

/// The draws of a graph that give at least one number, by operator (and by the one that it wraps), in increasing order.
fn drawn(side: &AnalyzedGraph) -> BTreeMap<String, Vec<Drawn>> {
    let graph = side.graph;
    let draws = Draws::new(graph, &side.ops);
    let mut drawn: BTreeMap<String, Vec<Drawn>> = BTreeMap::new();
    for id in graph.ids() {
        let Some(draw) = draws.of(id) else { continue };
        let tensor = drawn_tensor(graph, id);
        let what = (
            tensor.and_then(|tensor| graph.numel(tensor)),
            draws.generator(draw).to_string(),
            tensor.map(|tensor| tensor.dtype),
            tensor.map_or(Vec::new(), |tensor| symbolic_sizes(graph, tensor)),
        );
        let operator = match graph.arg(id, 0) {
            Some(Value::Function(wrapped)) => format!("{} of {}", graph.target(id), graph.text(wrapped)),
            _ => graph.target(id).to_string(),
        };
        drawn.entry(operator).or_default().push(Drawn { what, node: id });
    }
    drawn.values_mut().for_each(|list| list.sort_by(|a, b| a.what.cmp(&b.what).then(a.node.cmp(&b.node))));
    drawn
}
