//! Graphs of symbolic sizes at sizes that are numbers.
//!
//! # The idea
//!
//! What is recorded of symbols can be held against an operator only where both are numbers: `4*s0` may or may not be what
//! a view gives. So graphs are looked at where each symbol has a value: its hint, and two others. A record that is not
//! true at sizes at which the graph may run is not true.
//!
//! Symbols have values in their ranges with which all guards of all graphs hold, and with which everything that is
//! recorded of the graph before is true: it was recorded of sizes that it runs with. Where a graph after is recorded to
//! take inputs of other sizes, it is not for these: a compiler may have found out meanwhile that the symbol is a number,
//! and has a guard on it. The values differ from symbol to symbol
//! beyond the hints, so that one symbol does not pass for another; a multiple of the hint satisfies most guards on
//! remainders, and a prime satisfies nothing by accident.
//!
//! # What it does not do
//!
//! Where no such values are found, nothing is looked at. What holds at three sizes need not hold at all.

use crate::expression::holds;
use crate::graph::{Graph, Node, NodeId, Op, Out, Symbol, bound_of};
use crate::ops::{Ops, shape};

/// Values that are tried beside hints and their multiples.
const PRIMES: [i64; 8] = [5, 7, 11, 13, 17, 19, 23, 29];

/// The value of each symbol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Sizes(Vec<(String, i64)>);

/// A pair at sizes that are numbers.
pub(super) struct Sized {
    pub sizes: Sizes,
    pub before: Graph,
    /// The graphs after of all ranks.
    pub after: Vec<Graph>,
}

impl Sizes {
    /// The pair at sizes at which it is looked at, the hints first if there are any. `unbacked`: whether symbols that
    /// stand for data have values too. None for graphs without symbols.
    pub(super) fn tried<'g>(
        (before, ops): (&'g Graph, &Ops),
        after: impl Iterator<Item = &'g Graph> + Clone,
        unbacked: bool,
    ) -> impl Iterator<Item = Sized> {
        let values = Sizes::candidates(std::iter::once(before).chain(after.clone()), unbacked);
        values.into_iter().filter_map(move |sizes| {
            let sized = Sized {
                before: sizes.graph(before),
                after: after.clone().map(|graph| sizes.graph(graph)).collect(),
                sizes,
            };
            let is_for = sized.after.iter().all(|graph| takes_the_same(&sized.before, graph));
            (is_for && misfits(&sized.before, ops).next().is_none()).then_some(sized)
        })
    }

    fn candidates<'g>(graphs: impl Iterator<Item = &'g Graph> + Clone, unbacked: bool) -> Vec<Sizes> {
        let mut symbols: Vec<&Symbol> = Vec::new();
        for symbol in graphs.clone().flat_map(|graph| &graph.symbols) {
            if (unbacked || !symbol.unbacked) && !symbols.iter().any(|known| known.name == symbol.name) {
                symbols.push(symbol);
            }
        }
        if symbols.is_empty() {
            return Vec::new();
        }
        let prime = |at: usize| PRIMES[at % PRIMES.len()];
        let multiple = |at: usize, symbol: &Symbol| symbol.hint?.checked_mul(at as i64 + 2);
        let mut tried: Vec<Sizes> = Vec::new();
        for kind in 0..3 {
            let value = |(at, symbol): (usize, &&Symbol)| {
                let wanted = match kind {
                    0 => symbol.hint.or_else(|| symbol.unbacked.then(|| prime(at)))?,
                    1 => multiple(at, symbol).unwrap_or(prime(at) + 1),
                    _ => prime(at),
                };
                Some((symbol.name.clone(), within(symbol, wanted)?))
            };
            let Some(values) = symbols.iter().enumerate().map(value).collect() else { continue };
            let sizes = Sizes(values);
            let mut guards = graphs.clone().flat_map(|graph| &graph.guards);
            if !tried.contains(&sizes)
                && guards.all(|guard| holds(guard, &|name| sizes.of(name)) == Some(true))
            {
                tried.push(sizes);
            }
        }
        tried
    }

    /// The value of a symbol.
    fn of(&self, symbol: &str) -> Option<i64> {
        self.0.iter().find(|(name, _)| name == symbol).map(|&(_, value)| value)
    }

    /// A graph at these sizes.
    fn graph(&self, graph: &Graph) -> Graph {
        graph.at_sizes(&|name| self.of(name))
    }

    /// `s0 = 12, s1 = 18`.
    pub(super) fn words(&self) -> String {
        let all: Vec<String> = self.0.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        all.join(", ")
    }
}

/// Whether the inputs of both graphs, as far as they have the same, are recorded with the same sizes.
fn takes_the_same(before: &Graph, after: &Graph) -> bool {
    let sizes = |graph: &Graph, id: NodeId| match graph.node(id) {
        Node { op: Op::Placeholder, out: Out::Tensor(tensor), .. } => {
            graph.sizes(graph.tensor(*tensor).shape)
        }
        Node { op: Op::Placeholder, out: Out::Int(n), .. } => Some(vec![*n]),
        _ => None,
    };
    after.ids().all(|id| {
        let twin = before.find(after.name(id)).and_then(|twin| sizes(before, twin));
        let pair = twin.zip(sizes(after, id));
        pair.is_none_or(|(old, new)| old == new)
    })
}

/// The nodes of a graph, at sizes that are numbers, whose records are not true, and why.
pub(super) fn misfits(graph: &Graph, ops: &Ops) -> impl Iterator<Item = (NodeId, String)> {
    graph.ids().filter_map(|id| Some((id, shape::check(graph, ops, id).first()?.to_string())))
}

/// The value in the range of a symbol that comes nearest to the one that is wanted.
fn within(symbol: &Symbol, wanted: i64) -> Option<i64> {
    let (low, high) = (bound_of(&symbol.range.0)?, bound_of(&symbol.range.1)?);
    i64::try_from(i128::from(wanted).min(high).max(low)).ok()
}
