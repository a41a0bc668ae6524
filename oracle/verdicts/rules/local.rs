//! Values by local proofs: what is computed otherwise at one place is compared there.
//!
//! # The idea
//!
//! The proof by terms follows what graphs move and call at any size, and knows no law; fingerprints know laws, and have to
//! execute. So where a node has another term than its twin before, the calls between it and the values that both graphs have in
//! common are taken out as two small graphs, which are functions of these values. If they are the same function, the node has the
//! value of its twin, and the proof by terms goes on with that.
//!
//! # The statement
//!
//! Values with one term are equal on every rank. Functions that are equal for all arguments are equal for those. The laws of
//! bits hold for infinities and for what is no number, so nothing is assumed of the values. The laws of real numbers are asked
//! where a level of [`Numerics`] is, and the values are finite where inputs are and nothing overflows. What is the same by them
//! alone may be rounded otherwise: nothing that comes of it may [tell](loosened::tells) that.
//!
//! Where sizes are symbolic, the functions are compared at sizes that are numbers, which occur nowhere else. What is shown for
//! small sizes in their place holds for all sizes of the same structure ([`crate::analysis::shrink`]). That both graphs have that
//! structure at all values of their symbols is seen at [`OTHERS`] others: sizes are polynomials, or they have no structure.
//!
//! # What it does not do
//!
//! It takes no calls out that write, draw, communicate or have an effect, or that look at strides. Which node is whose twin
//! the correspondence says; another choice would prove other places.

use super::proved::Evaluated;
use super::{AnalyzedGraph, Evidence, executed, loosened};
use crate::expression::symbols_of;
use crate::graph::{Dim, Dtype, Graph, Node, NodeId, Op, Out, Transcriber, Value, bound_of};
use crate::semantics::Numerics;
use crate::semantics::symbolic::{Evaluation, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Calls that are taken out at most.
const MOST_CALLS: usize = 48;

/// Places that are not the same, at most, until the search ends.
const MOST_FAILURES: usize = 8;

/// Symbols of both graphs at most.
const MOST_SYMBOLS: usize = 8;

/// The least size that a symbol is given.
const LEAST: i64 = 1009;

/// Other values of symbols at which the structure of sizes is looked at.
const OTHERS: usize = 3;

/// The levels by whose laws both graphs may be equal.
const LEVELS: [Numerics; 4] =
    [Numerics::Exact, Numerics::ZeroSign, Numerics::Reassociation, Numerics::Contraction];

/// The least level, up to `most`, at which values are the same where they are computed otherwise, and both graphs are equal
/// then; with the number of these places.
pub(super) fn prove(evidence: &Evidence, limit: u64, most: Numerics) -> Option<(Numerics, usize)> {
    let (before, after) = (&evidence.before, &evidence.after);
    let symbols = Symbols::new([before.graph, after.graph]);
    let mut sides = [Side::new(before, &symbols), Side::new(after, &symbols)];
    let twins = twins(evidence);
    let mut names = FxHashMap::default();
    let (mut level, mut places, mut failures) = (Numerics::Exact, 0, 0);
    // The nodes before and after that may be rounded otherwise.
    let mut loose = [Vec::new(), Vec::new()];
    let evaluated = Evaluated::knowing(before, after, &evidence.start(), |arena, [old, new], id| {
        let mut value = |evaluation: &Evaluation, id| Some(evaluation.value(arena, id, 0)?.ok()?.value);
        if sides[0].values.is_empty() {
            for id in before.graph.ids() {
                let value = value(old, id);
                sides[0].note(value, id, &mut names);
            }
        }
        let found = value(new, id);
        sides[1].note(found, id, &mut names);
        let twin = twins[id.index()]?;
        let [of_twin, own] = [(0, twin), (1, id)].map(|(side, id)| sides[side].values[id.index()]);
        if failures == MOST_FAILURES || of_twin.is_none() || own.is_none() || of_twin == own {
            return None;
        }
        let is_same = |&level: &Numerics| symbols.are_same(&sides, [twin, id], evidence, limit, level);
        let Some(found) = LEVELS.into_iter().filter(|level| *level <= most).find(is_same) else {
            failures += 1;
            return None;
        };
        if found > Numerics::Exact {
            level = level.max(found);
            loose[0].push(twin);
            loose[1].push(id);
        }
        places += 1;
        sides[1].values.pop();
        let value = value(old, twin);
        sides[1].note(value, id, &mut names);
        value
    });
    // Where ranks have graphs of their own, that of another one may be loose where this one is not.
    let on_ranks = !evidence.own_ranks.is_empty();
    let tells = |(side, loose): (&Side, &Vec<NodeId>)| {
        !loose.is_empty() && loosened::tells(side.side.graph, loose, level, on_ranks)
    };
    let is_proved = places > 0 && evaluated.proves_equal() && !sides.iter().zip(&loose).any(tells);
    is_proved.then_some((level, places))
}

/// For each node after the one before that it is to be the same as: what is returned at the same place, or else what
/// became of it.
fn twins(evidence: &Evidence) -> Vec<Option<NodeId>> {
    let mut twins = evidence.correspondence.before_of.clone();
    let returned = |graph: &Graph| {
        let mut all = Vec::new();
        graph.output().into_iter().for_each(|id| graph.for_each_input(id, &mut |input| all.push(input)));
        all
    };
    let [old, new] = [&evidence.before, &evidence.after].map(|side| returned(side.graph));
    if old.len() == new.len() {
        std::iter::zip(old, new).for_each(|(old, new)| twins[new.index()] = Some(old));
    }
    twins
}

/// Numbers of values: those of equal values, as tensors of one dtype and shape, are equal.
type Names = FxHashMap<(ValueId, Dtype, Vec<String>), usize>;

/// Calls, and the common values that they are given.
#[derive(Default)]
struct Region {
    calls: BTreeSet<NodeId>,
    given: BTreeSet<NodeId>,
}

/// One of both graphs.
struct Side<'s, 'g> {
    side: &'s AnalyzedGraph<'g>,
    /// The same at sizes that are numbers, and at others where there are symbols.
    sized: Vec<Graph>,
    /// For each node that was evaluated the number of its value.
    values: Vec<Option<usize>>,
    /// All of them.
    known: FxHashSet<usize>,
    /// For each node whether it comes from numbers alone.
    is_constant: Vec<bool>,
    /// For each node whether it is finite where inputs are and nothing overflows.
    is_finite: Vec<bool>,
}

impl<'s, 'g> Side<'s, 'g> {
    fn new(side: &'s AnalyzedGraph<'g>, symbols: &Symbols) -> Side<'s, 'g> {
        let at = |values: usize| side.graph.at_sizes(&|name| symbols.value(name, values));
        let mut this = Side {
            side,
            values: Vec::new(),
            known: FxHashSet::default(),
            is_constant: vec![false; side.graph.len()],
            is_finite: vec![false; side.graph.len()],
            sized: (0..=symbols.others()).map(at).collect(),
        };
        for id in side.graph.ids() {
            let of = side.graph.inputs(id);
            let are_known = of.iter().all(|input| this.is_constant[input.index()]);
            this.is_constant[id.index()] = this.is_number(id) || this.is_function(id) && are_known;
            this.is_finite[id.index()] =
                this.keeps_finite(id) && of.iter().all(|of| this.is_finite[of.index()]);
        }
        this
    }

    /// Notes the value of the next node.
    fn note(&mut self, value: Option<ValueId>, id: NodeId, names: &mut Names) {
        let graph = self.side.graph;
        let name = value.zip(graph.tensor_of(id)).map(|(value, tensor)| {
            let sizes = graph.dims(tensor.shape).iter().map(|dim| match dim {
                Dim::Static(size) => size.to_string(),
                Dim::Symbolic(expr) => graph.text(graph.expr(*expr).text).to_string(),
            });
            let next = names.len();
            *names.entry((value, tensor.dtype, sizes.collect())).or_insert(next)
        });
        self.known.extend(name);
        self.values.push(name);
    }

    /// The value that a node has in common with the other graph.
    fn common(&self, id: NodeId, other: &Side) -> Option<usize> {
        self.values.get(id.index()).copied().flatten().filter(|value| other.known.contains(value))
    }

    /// The calls from which a node comes, behind common values. Those in `through` are computed too where they can be.
    fn region(&self, of: NodeId, other: &Side, level: Numerics, through: &BTreeSet<usize>) -> Option<Region> {
        let mut region = Region::default();
        let mut open = vec![of];
        while let Some(id) = open.pop() {
            if region.calls.contains(&id) || region.given.contains(&id) || self.is_number(id) {
                continue;
            }
            if self.side.storages().shows_written(id) {
                return None;
            }
            let can_be_computed = self.is_function(id) && region.calls.len() < MOST_CALLS;
            if id != of
                && self.is_given(id, level)
                && let Some(name) = self.common(id, other)
                && !(can_be_computed && through.contains(&name))
            {
                region.given.insert(id);
                continue;
            }
            if !can_be_computed {
                return None;
            }
            region.calls.insert(id);
            open.extend(self.side.graph.inputs(id));
        }
        Some(region)
    }

    /// The numbers of the values of some nodes.
    fn names(&self, of: &BTreeSet<NodeId>) -> BTreeSet<usize> {
        of.iter().filter_map(|id| self.values[id.index()]).collect()
    }

    fn is_number(&self, id: NodeId) -> bool {
        matches!(self.sized[0].node(id).out, Out::Int(_))
    }

    /// Whether a value is an argument: constants are known, and what a collective gives is there once it was waited for.
    fn is_given(&self, id: NodeId, level: Numerics) -> bool {
        let graph = self.side.graph;
        let is_launch = self.side.ops.call(graph, id).is_some_and(|info| info.collective().is_some());
        let has_sizes =
            self.sized[0].tensor_of(id).is_some_and(|tensor| self.sized[0].sizes(tensor.shape).is_some());
        let is_known = level < Numerics::Reassociation || self.is_finite[id.index()];
        has_sizes && !is_launch && is_known && !self.is_constant[id.index()]
    }

    /// Whether a node is finite where its operands are.
    fn keeps_finite(&self, id: NodeId) -> bool {
        let graph = self.side.graph;
        let Some(info) = self.side.ops.call(graph, id) else { return true };
        let second = match graph.arg(id, 1) {
            Some(Value::Float(x)) => x,
            Some(Value::Int(n)) => n as f64,
            _ => 0.0,
        };
        let is_finite = |value: &Value| !matches!(value, Value::Float(x) if !x.is_finite());
        info.kind.keeps_finite(second)
            && graph.args(id).iter().all(is_finite)
            && graph.kwargs(id).all(|(_, value)| is_finite(&value))
    }

    /// Whether a node is a function of the elements of its operands.
    fn is_function(&self, id: NodeId) -> bool {
        let graph = self.side.graph;
        let Some(info) = self.side.ops.call(graph, id) else { return false };
        info.kind.is_function() && !info.effect && !info.writes() && !self.side.ops.draws(graph, id)
    }

    /// The calls of a region at some sizes, as a graph of their own that takes these values.
    fn taken_out(&self, at: usize, region: &Region, given: &[(usize, NodeId, &Side)], of: NodeId) -> Graph {
        let own = &self.sized[at];
        let mut graph = Graph::with_capacity(region.calls.len() + given.len() + 1);
        let mut map: Vec<Option<NodeId>> = vec![None; own.len()];
        for (place, (name, example, side)) in given.iter().enumerate() {
            let from = &side.sized[at];
            let (Some(tensor), label) = (from.tensor_of(*example), format!("common {place}")) else {
                continue;
            };
            let device = graph.intern(from.text(tensor.device));
            let out = graph.contiguous(&from.sizes(tensor.shape).unwrap_or_default(), tensor.dtype, device);
            let input = graph.push(&label, Op::Placeholder, &label);
            graph.node_mut(input).out = out;
            for id in &region.given {
                if self.values[id.index()] == Some(*name) {
                    map[id.index()] = Some(input);
                }
            }
        }
        for &id in &region.calls {
            let mut copier = Transcriber { from: own, to: &mut graph, map: &mut map };
            let copied = copier.node(id, own.name(id));
            map[id.index()] = Some(copied);
        }
        let result = map[of.index()].map_or(Value::None, Value::Node);
        let args = graph.push_values(&[result]);
        let (name, target) = (graph.intern("output"), graph.intern_target("output"));
        graph.push_node(Node { args, ..Node::new(name, Op::Output, target) });
        graph.facts = own.facts.clone();
        graph
    }
}

/// The symbols of both graphs that are at least 1, each with sizes that no other number is.
struct Symbols {
    sizes: Vec<(String, [i64; 1 + OTHERS])>,
    /// Those that stand for data: of one name, and perhaps not of one value.
    of_data: Vec<String>,
}

impl Symbols {
    fn new(graphs: [&Graph; 2]) -> Symbols {
        let mut taken: BTreeSet<i64> = graphs.iter().flat_map(|graph| numbers(graph)).collect();
        let (mut sizes, mut of_data): (Vec<(String, _)>, Vec<String>) = Default::default();
        for symbol in graphs.iter().flat_map(|graph| &graph.symbols) {
            let is_size = bound_of(&symbol.range.0).is_some_and(|low| low >= 1);
            let is_known = sizes.iter().any(|(name, _)| *name == symbol.name);
            if is_size && !is_known && sizes.len() < MOST_SYMBOLS {
                let is_prime = |n: &i64| (2..).take_while(|d| d * d <= *n).all(|d| n % d != 0);
                let own = [(); 1 + OTHERS].map(|()| {
                    let free =
                        (LEAST..).find(|size| is_prime(size) && !taken.contains(size)).unwrap_or(LEAST);
                    taken.insert(free);
                    free
                });
                sizes.push((symbol.name.clone(), own));
            }
            of_data.extend(symbol.unbacked.then(|| symbol.name.clone()));
        }
        Symbols { sizes, of_data }
    }

    /// Values of all symbols beside the first.
    fn others(&self) -> usize {
        if self.sizes.is_empty() { 0 } else { OTHERS }
    }

    fn value(&self, name: &str, at: usize) -> Option<i64> {
        self.sizes.iter().find(|(own, _)| own == name).map(|(_, sizes)| sizes[at])
    }

    /// Whether two nodes are the same function of common values, by the laws of a level. Where they are not, as functions of
    /// those that are nearest, what only one of them is given is computed too.
    fn are_same(
        &self,
        sides: &[Side; 2],
        of: [NodeId; 2],
        evidence: &Evidence,
        limit: u64,
        level: Numerics,
    ) -> bool {
        let regions = |through: &BTreeSet<usize>| {
            let region = |own: usize| sides[own].region(of[own], &sides[1 - own], level, through);
            Some([region(0)?, region(1)?])
        };
        let mut through = BTreeSet::new();
        let Some(mut taken) = regions(&through) else { return false };
        if self.regions_are_same(sides, &taken, of, evidence, limit, level) {
            return true;
        }
        let calls = |taken: &[Region; 2]| taken.each_ref().map(|region| region.calls.len());
        let nearest = calls(&taken);
        loop {
            let [old, new] = [0, 1].map(|k| sides[k].names(&taken[k].given));
            let known = through.len();
            through.extend(old.symmetric_difference(&new));
            if through.len() == known {
                break;
            }
            let Some(next) = regions(&through) else { return false };
            taken = next;
        }
        calls(&taken) != nearest && self.regions_are_same(sides, &taken, of, evidence, limit, level)
    }

    /// Whether the results of two regions are the same function of what both are given.
    fn regions_are_same(
        &self,
        sides: &[Side; 2],
        regions: &[Region; 2],
        of: [NodeId; 2],
        evidence: &Evidence,
        limit: u64,
        level: Numerics,
    ) -> bool {
        let mut given: Vec<(usize, NodeId, &Side)> = Vec::new();
        for (side, region) in sides.iter().zip(regions) {
            for &id in &region.given {
                let Some(name) = side.values[id.index()] else { return false };
                if !given.iter().any(|(known, ..)| *known == name) {
                    given.push((name, id, side));
                }
            }
        }
        let mut is_symbolic = false;
        for (side, region) in sides.iter().zip(regions) {
            for &id in region.calls.iter().chain(&region.given) {
                let Some(of_node) = self.is_symbolic(side.side, id) else { return false };
                is_symbolic |= of_node;
            }
        }
        let pair = |at: usize| [0, 1].map(|k| sides[k].taken_out(at, &regions[k], &given, of[k]));
        let [before, after] = pair(0);
        let others = if is_symbolic { self.others() } else { 0 };
        let others: Vec<[Graph; 2]> = (1..=others).map(pair).collect();
        executed::are_same([&before, &after], evidence, limit, level, &others)
    }

    /// Whether a node has symbolic sizes, or is given some; `None` where these are of symbols without values, or where it
    /// is given some that stand for data.
    fn is_symbolic(&self, side: &AnalyzedGraph, id: NodeId) -> Option<bool> {
        let graph = side.graph;
        let text = |expr| graph.text(graph.expr(expr).text);
        let mut texts: Vec<&str> = Vec::new();
        for tensor in graph.tensors_of(graph.node(id).out) {
            texts.extend(graph.dims(graph.tensor(tensor).shape).iter().filter_map(|dim| match dim {
                Dim::Symbolic(expr) => Some(text(*expr)),
                Dim::Static(_) => None,
            }));
        }
        let mut open: Vec<Value> = graph.args(id).to_vec();
        open.extend(graph.kwargs(id).map(|(_, value)| value));
        while let Some(value) = open.pop() {
            let expr = match value {
                Value::List(span) => {
                    open.extend(graph.values(span));
                    continue;
                }
                Value::Symbolic(expr) => expr,
                Value::Node(node) => match graph.node(node).out {
                    Out::SymInt(expr) => expr,
                    Out::SymBool(_) | Out::Other(_) => return None,
                    _ => continue,
                },
                _ => continue,
            };
            let is_of_data = |name: &str| self.of_data.iter().any(|own| own == name);
            if symbols_of(text(expr)).any(is_of_data) {
                return None;
            }
            texts.push(text(expr));
        }
        let is_known = |name: &str| self.value(name, 0).is_some();
        texts.iter().flat_map(|text| symbols_of(text)).all(is_known).then_some(!texts.is_empty())
    }
}

/// The numbers that a graph names: static sizes, and what calls are given.
fn numbers(graph: &Graph) -> BTreeSet<i64> {
    let tensors = graph.ids().flat_map(|id| graph.tensors_of(graph.node(id).out));
    let dims = tensors.flat_map(|tensor| graph.dims(graph.tensor(tensor).shape).to_vec());
    let mut found: BTreeSet<i64> = dims.filter_map(|dim| dim.known()).collect();
    for id in graph.ids() {
        let mut open: Vec<Value> = graph.args(id).to_vec();
        open.extend(graph.kwargs(id).map(|(_, value)| value));
        while let Some(value) = open.pop() {
            match value {
                Value::List(span) => open.extend(graph.values(span)),
                Value::Int(n) => found.extend([n, n.saturating_abs()]),
                Value::Float(x) => found.extend([x as i64, x.abs() as i64]),
                _ => {}
            }
        }
    }
    found
}
