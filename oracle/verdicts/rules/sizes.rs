//! Graphs of symbolic sizes at sizes that are numbers.
//!
//! # The idea
//!
//! What is recorded of symbols can be held against an operator only where both are numbers: `4*s0` may or may not be
//! what a view gives. So graphs are looked at where each symbol has a value: its hint, and some others. A record that
//! is not true at sizes at which the graph may run is not true.
//!
//! Symbols have values in their ranges with which all guards of all graphs hold, and with which everything that is
//! recorded of the graph before is true: it was recorded of sizes that it runs with. Where a graph after is recorded
//! to take inputs of other sizes, it is not for these: a compiler may have found out meanwhile that the symbol is a
//! number, and has a guard on it. What no input has, an operator gives (the size of a generator's state): that is not free.
//! Beyond the hints, values differ from symbol to symbol, so that one symbol does not pass for another; multiples of the
//! hints satisfy most guards, and large numbers show what was cut off.
//!
//! A proof takes records for true. Where they could not be looked at, it proves nothing (`recorded.rs`).
//!
//! # What it does not do
//!
//! What holds at a few sizes need not hold at all.

use crate::analysis::asserted_conditions;
use crate::expression::{evaluate, holds, symbols_of};
use crate::graph::{Graph, Node, NodeId, Op, Out, Symbol, bound_of};
use crate::ops::Ops;
use crate::ops::shape::{self, ShapeFault};
use std::collections::{BTreeMap, BTreeSet};

/// The value of each symbol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Sizes(BTreeMap<String, i64>);

/// A pair at sizes that are numbers.
pub(super) struct Sized {
    pub sizes: Sizes,
    pub before: Graph,
    /// The graphs after of all ranks.
    pub after: Vec<Graph>,
}

impl Sizes {
    /// The pair at sizes at which it is looked at, the hints first if there are any. Where the graph before runs with no others
    /// of them, since it has one symbol for a number, say, each symbol is moved alone. `unbacked`: whether symbols that stand
    /// for data have values too. None for graphs without symbols.
    pub(super) fn tried<'g>(
        (before, ops): (&'g Graph, &Ops),
        after: impl Iterator<Item = &'g Graph> + Clone,
        unbacked: bool,
    ) -> impl Iterator<Item = Sized> {
        let (together, alone) = Sizes::all(std::iter::once(before).chain(after.clone()), unbacked);
        let (mut open, mut alone) = (together.into_iter(), Some(alone));
        let mut found = 0;
        std::iter::from_fn(move || {
            loop {
                let Some(sizes) = open.next() else {
                    open = alone.take().filter(|_| found < 2)?.into_iter();
                    continue;
                };
                let sized = Sized {
                    before: sizes.graph(before),
                    after: after.clone().map(|graph| sizes.graph(graph)).collect(),
                    sizes,
                };
                let is_for = sized.after.iter().all(|graph| takes_the_same(&sized.before, graph));
                if is_for && misfits(&sized.before, ops).next().is_none() {
                    found += 1;
                    return Some(sized);
                }
            }
        })
    }

    /// At most [`MOST`] that the guards of all graphs allow, as far as these speak of symbols that have values.
    pub(super) fn candidates<'g>(
        graphs: impl Iterator<Item = &'g Graph> + Clone,
        unbacked: bool,
    ) -> Vec<Sizes> {
        Sizes::all(graphs, unbacked).0
    }

    /// The same, and as many at which one symbol has another value than its hint.
    fn all<'g>(graphs: impl Iterator<Item = &'g Graph> + Clone, unbacked: bool) -> (Vec<Sizes>, Vec<Sizes>) {
        let (mut symbols, mut place_of, mut left_out) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        let given: BTreeSet<&str> = graphs.clone().flat_map(|graph| graph.given_symbols()).collect();
        for symbol in graphs.clone().flat_map(|graph| &graph.symbols) {
            let name = symbol.name.as_str();
            if !(if symbol.unbacked { unbacked } else { given.contains(name) }) {
                left_out.insert(name);
            } else if !place_of.contains_key(name) {
                place_of.insert(name, symbols.len());
                symbols.push(symbol);
            }
        }
        if symbols.is_empty() {
            return Default::default();
        }
        let asserted = graphs.clone().take(1).flat_map(asserted_conditions);
        let unknown = |guard: &String| symbols_of(guard).any(|name| left_out.contains(name));
        let guards = graphs.clone().flat_map(|graph| graph.guards.clone()).chain(asserted);
        let guards: Vec<String> = guards.filter(|guard| !unknown(guard)).collect();
        // Symbols that a guard says are equal have one value.
        let mut places: Vec<usize> = (0..symbols.len()).collect();
        for guard in &guards {
            let pair = guard.strip_prefix("Eq(").and_then(|rest| rest.strip_suffix(')')?.split_once(", "));
            let place = |name: &str| Some(places[*place_of.get(name)?]);
            if let Some((a, b)) = pair.and_then(|(a, b)| Some((place(a)?, place(b)?))) {
                places.iter_mut().filter(|place| **place == a.max(b)).for_each(|place| *place = a.min(b));
            }
        }
        let (mut tried, mut alone): (Vec<Sizes>, Vec<Sizes>) = Default::default();
        let add = |all: &mut Vec<Sizes>, way: &dyn Fn(usize) -> Way| {
            let value = |(at, symbol): (usize, &&Symbol)| {
                let at = places[at];
                Some((symbol.name.clone(), way(at).value(at as i64, symbols[at])?))
            };
            let Some(values) = symbols.iter().enumerate().map(value).collect() else { return };
            let sizes = Sizes(values);
            if all.len() < MOST
                && !all.contains(&sizes)
                && guards.iter().all(|guard| holds(guard, &|name| sizes.of(name)) == Some(true))
            {
                all.push(sizes);
            }
        };
        WAYS.into_iter().for_each(|way| add(&mut tried, &|_| way));
        for one in (0..symbols.len()).filter(|&at| places[at] == at).take(MOST_ALONE) {
            if alone.len() == MOST {
                break;
            }
            add(&mut alone, &|at| if at == one { Way::Multiples } else { Way::Hints });
        }
        // Where no way that is one for all symbols fits the guards, each symbol goes its own.
        if tried.len() < 2 {
            let classes = Classes { symbols: &symbols, places: &places, place_of: &place_of };
            tried.extend(classes.searched(&guards).filter(|sizes| !tried.contains(sizes)));
        }
        (tried, alone)
    }

    /// The value of a symbol.
    pub(super) fn of(&self, symbol: &str) -> Option<i64> {
        self.0.get(symbol).copied()
    }

    /// The value of an expression.
    pub(super) fn value(&self, text: &str) -> Option<i64> {
        evaluate(text, &|name| self.of(name))
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

/// Symbols, in classes of those that a guard says are equal.
struct Classes<'a> {
    symbols: &'a [&'a Symbol],
    /// For each symbol the first of its class.
    places: &'a [usize],
    /// The symbol of a name.
    place_of: &'a BTreeMap<&'a str, usize>,
}

impl Classes<'_> {
    /// Values with which all guards hold, others than the hints where there are such; found in at most [`STEPS`] steps.
    fn searched(&self, guards: &[String]) -> Option<Sizes> {
        let firsts: Vec<usize> = (0..self.symbols.len()).filter(|&at| self.places[at] == at).collect();
        let class_of = |name: &str| firsts.binary_search(&self.places[*self.place_of.get(name)?]).ok();
        let values: Vec<Vec<i64>> = firsts.iter().map(|&at| values_of(at, self.symbols[at])).collect();
        // A guard is asked as soon as all its symbols have values.
        let mut due: Vec<Vec<&String>> = vec![Vec::new(); firsts.len()];
        for guard in guards {
            due[symbols_of(guard).filter_map(class_of).max().unwrap_or(0)].push(guard);
        }
        let mut chosen: Vec<usize> = vec![0];
        for _ in 0..STEPS {
            let (last, known) = (chosen.len() - 1, chosen.as_slice());
            let value = |class: usize| Some(*values[class].get(*known.get(class)?)?);
            if value(last).is_none() {
                chosen.pop();
                *chosen.last_mut()? += 1;
                continue;
            }
            if due[last].iter().any(|guard| holds(guard, &|name| value(class_of(name)?)) != Some(true)) {
                chosen[last] += 1;
                continue;
            }
            if chosen.len() == firsts.len() {
                let named = |symbol: &&Symbol| Some((symbol.name.clone(), value(class_of(&symbol.name)?)?));
                return Some(Sizes(self.symbols.iter().filter_map(named).collect()));
            }
            chosen.push(0);
        }
        None
    }
}

/// The values that a symbol may be given, the hint last.
fn values_of(at: usize, symbol: &Symbol) -> Vec<i64> {
    let near = |n: i64| within(symbol, symbol.hint?.checked_add(n)?);
    let half = symbol.hint.and_then(|hint| within(symbol, hint / 2));
    let ways = WAYS.iter().skip(1).map(|way| way.value(at as i64, symbol));
    let all = ways.chain([half, near(8), near(1), near(-1)]).flatten();
    let mut values: Vec<i64> = Vec::new();
    for value in all.filter(|&value| Some(value) != symbol.hint).chain(Way::Hints.value(at as i64, symbol)) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
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

/// The nodes of a graph, at sizes that are numbers, whose records are not true, and why. Offsets are recorded as
/// numbers alone, so nothing is said of them, and strides that nobody recorded may be others.
pub(super) fn misfits(graph: &Graph, ops: &Ops) -> impl Iterator<Item = (NodeId, String)> {
    graph.ids().filter_map(move |id| {
        let is_told = |fault: &&ShapeFault| {
            let is_guess = || fault.may_follow_from_strides() && graph.guess_behind(id).is_some();
            !matches!(fault, ShapeFault::Offset { .. }) && !is_guess()
        };
        let faults = shape::check(graph, ops, id);
        Some((id, faults.iter().find(is_told)?.to_string()))
    })
}

/// A way to choose the values of symbols.
#[derive(Clone, Copy)]
enum Way {
    /// What they were when traced.
    Hints,
    /// Multiples of the hints, one symbol's another than the next one's.
    Multiples,
    /// Small numbers, no two of which are equal, each larger than the last one's.
    Distinct,
    /// The same, each smaller than the last one's.
    Falling,
    /// Large ones.
    Large,
    /// The hints so many times.
    Times(i64),
    /// One number.
    Equal(i64),
}

/// They are tried in this order.
const WAYS: [Way; 10] = [
    Way::Hints,
    Way::Multiples,
    Way::Distinct,
    Way::Falling,
    Way::Large,
    Way::Times(2),
    Way::Times(3),
    Way::Equal(7),
    Way::Equal(8),
    Way::Equal(1009),
];

/// Sizes at which a pair is looked at, at most.
const MOST: usize = 6;

/// Symbols that are moved alone, at most.
const MOST_ALONE: usize = 256;

/// Steps of a search for values that fit the guards, at most.
const STEPS: usize = 4096;

impl Way {
    /// The value of the symbol with this number.
    fn value(self, at: i64, symbol: &Symbol) -> Option<i64> {
        let distinct = 5 + 2 * at + at / 3;
        let wanted = match self {
            Way::Hints => symbol.hint.or_else(|| symbol.unbacked.then_some(distinct))?,
            Way::Multiples => symbol.hint.map_or(Some(distinct + 1), |hint| hint.checked_mul(at + 2))?,
            Way::Distinct => distinct,
            Way::Falling => 61 - distinct,
            Way::Large => 1009 + 2 * distinct,
            Way::Times(times) => symbol.hint?.checked_mul(times)?,
            Way::Equal(value) => value,
        };
        within(symbol, wanted)
    }
}

/// The wanted value where the symbol may have it, and else one that it may have, another one for other wishes as far as
/// there are several.
fn within(symbol: &Symbol, wanted: i64) -> Option<i64> {
    // Bounds that are no numbers bound nothing.
    let within = |bound: i128| bound.clamp(i64::MIN.into(), i64::MAX.into());
    let low = within(bound_of(&symbol.range.0).unwrap_or(i128::MIN));
    let high = within(bound_of(&symbol.range.1).unwrap_or(i128::MAX));
    let wanted = i128::from(wanted);
    let value = match wanted {
        _ if low > high => return None,
        _ if (low..=high).contains(&wanted) => wanted,
        _ if wanted < low => (low + wanted.rem_euclid(8)).min(high),
        _ => low + (wanted - low).rem_euclid(high - low + 1),
    };
    i64::try_from(value).ok()
}
