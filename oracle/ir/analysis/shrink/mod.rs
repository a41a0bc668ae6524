//! Graphs that are compared, at small sizes: so that they can be executed, and what is found holds for the recorded ones.
//!
//! # The idea
//!
//! Not numbers are shrunk but *dimensions*. What must change when one size changes is found by unification: the rule of each
//! operator says which dimensions of its tensors are the same, which are products or sums of others, and which arguments
//! are sizes or positions (`structure`, `rules`). What is left free are *sorts*; they are given small sizes
//! (`sizes`), and shapes and arguments are rebuilt. Node for node the graphs stay what they were.
//!
//! # The statement
//!
//! The small graphs are an instance of the same programs at other sizes; the recorded graphs are the instance at the
//! recorded ones. Nothing is approximated. So
//!
//! - a difference at small sizes convicts the programs as functions of their sizes, and the recorded ones where nothing is
//!   in doubt ([`Shrinking::doubts`]) and [`Shrinking::is_free_of_sizes`] holds;
//! - an equality at each of the assignments of [`Shrinking::proof`] proves the recorded graphs equal (`uniform` has the
//!   conditions and the reason).
//!
//! Recorded sizes up to 3 stay; equal ones become equal ones, different ones different ones; none becomes a size that stays. What
//! has no rule, or does not fit, keeps its dimensions, all that is linked to them, and every dimension of the same recorded
//! sizes; it is named. Process groups keep their sizes.
//!
//! Shapes recomputed by the operators' shape rules are the shapes assigned, always: else there is no small graph.
//!
//! # What it does not do
//!
//! No symbolic sizes, no bodies of higher-order operators, no equations between structures without common refinement. It does
//! not shrink groups, and does not follow what a write does to other views.

#[cfg(test)]
mod algebra;
mod call;
mod moves;
mod numbers;
mod positions;
mod read;
mod rebuild;
mod rules;
mod scalars;
mod sizes;
mod structure;
#[cfg(test)]
mod tests;
mod uniform;
mod values;

use crate::graph::{Graph, MOST_RANKS, NodeId, Op};
use crate::ops::Ops;
use call::State;
use read::{Inputs, Read, outputs, read, same_shape};
use scalars::{Choice, choices, count, reading};
use sizes::{Classes, MOST_ASSIGNMENTS, SHIFTS, STAYS, Sizes};
use std::collections::{BTreeMap, BTreeSet};
use structure::Leaf;
use values::Value;

/// How often dimensions are kept for a proof: keeping some may show others.
const KEPT_ROUNDS: usize = 3;
/// Nodes of all readings together at most.
const MOST_NODES: usize = 1 << 20;

/// Graphs that are compared, at other sizes: node for node as given.
#[derive(Clone, Debug)]
pub struct Small {
    /// In the order in which they were given.
    pub graphs: Vec<Graph>,
    /// Recorded and small sizes.
    pub sizes: Vec<(i64, i64)>,
}

/// Graphs that are compared, and which of their sizes are free. The first is that before, the others are what it became, on one
/// rank each where there are several: inputs and outputs correspond by place.
///
/// Numbers that may be counts have several *readings*, which are numbered. The first takes all numbers as constants.
pub struct Shrinking<'g> {
    graphs: &'g [&'g Graph],
    ops: Vec<Ops>,
    /// Calls that are kept as recorded, because there is no rule for them: `name (target)`.
    pub kept: Vec<String>,
    /// How many readings there are.
    pub readings: usize,
    /// Whether dimensions are kept that would shrink, but for a proof.
    pub is_kept_for_proof: bool,
    reads: Vec<Read>,
    state: State,
    classes: Classes,
    choices: Vec<Choice>,
    found: uniform::Found,
}

impl<'g> Shrinking<'g> {
    /// Finds what must change when one size does.
    ///
    /// # Errors
    /// Why the graphs cannot be shrunk.
    pub fn new(graphs: &'g [&'g Graph]) -> Result<Self, String> {
        let ops: Vec<Ops> = graphs.iter().map(|graph| Ops::of(graph)).collect();
        if graphs.iter().zip(&ops).any(|(graph, ops)| shares_what_it_writes(graph, ops)) {
            return Err("inputs share memory, and something is written".to_string());
        }
        let mut state = State::default();
        let mut reads = read_all(&mut state, graphs, &ops)?;
        for _ in 0..2 {
            for (read, graph) in reads.iter_mut().zip(graphs) {
                read.settle(&mut state, graph);
            }
        }
        let kept = kept(graphs, &reads);
        let (readings, is_kept_for_proof, classes, choices, found) = Default::default();
        let mut all = Shrinking {
            graphs,
            ops,
            kept,
            readings,
            is_kept_for_proof,
            reads,
            state,
            classes,
            choices,
            found,
        };
        all.assign()?;
        Ok(all)
    }

    /// The same for a proof: what is no symmetric function of a dimension is one of all others, so that this one is kept.
    ///
    /// # Errors
    /// Why the graphs cannot be shrunk.
    pub fn for_proof(graphs: &'g [&'g Graph]) -> Result<Self, String> {
        let mut all = Self::new(graphs)?;
        for _ in 0..KEPT_ROUNDS {
            let in_doubt = std::mem::take(&mut all.found.in_doubt);
            if in_doubt.is_empty() {
                break;
            }
            in_doubt.into_iter().for_each(|leaf| all.state.structure.keep(leaf));
            all.is_kept_for_proof = true;
            all.assign()?;
        }
        Ok(all)
    }

    /// Finds which sizes shrink, which numbers may be counts, and what that means for a proof.
    fn assign(&mut self) -> Result<(), String> {
        self.classes = Classes::new(&self.state, &self.reads);
        let free: BTreeSet<i64> = self.classes.free.iter().copied().collect();
        self.choices = choices(self.graphs, &self.ops, &self.reads, &self.state, &free);
        self.readings =
            count(&self.choices).ok_or_else(|| format!("more than {} readings", scalars::MOST_READINGS))?;
        let nodes: usize = self.graphs.iter().map(|graph| graph.len()).sum();
        if self.readings.saturating_mul(nodes) > MOST_NODES {
            return Err(format!("{} readings of {nodes} nodes", self.readings));
        }
        self.found = uniform::Found::default();
        for ((graph, ops), read) in self.graphs.iter().zip(&self.ops).zip(&self.reads) {
            self.found.add(graph, ops, read, &self.state, &free);
        }
        Ok(())
    }

    /// Whether no coefficient depends on a size. Then a difference at other sizes is one at the recorded sizes; else a number
    /// may stand for what only they give: 2 / 4096, say.
    pub fn is_free_of_sizes(&self) -> bool {
        self.found.is_free_of_sizes()
    }

    /// Whether numbers may make up for sizes at the recorded ones alone (`numbers`).
    pub fn may_make_up_for_sizes(&self) -> bool {
        numbers::may_make_up_for_sizes(self.graphs, &self.ops, &self.reads)
    }

    /// Why equality at other sizes proves nothing under a reading, in words: some of the reasons.
    pub fn doubts(&self, at: usize) -> Vec<String> {
        self.assignments(at).err().unwrap_or_default()
    }

    /// The graphs at the sizes from `start` on, 3 or more, at which counts that differ as recorded differ if there are such.
    ///
    /// # Errors
    /// Why there are none.
    pub fn small(&self, at: usize, start: i64) -> Result<Small, String> {
        let mut all = (0..SHIFTS).map(|shift| Sizes::from(&self.classes, start.max(STAYS) + shift));
        let first = all.next().ok_or("no sizes were tried")?;
        let is_apart = |sizes: &Sizes| collide(&self.state, sizes, &self.choices) == Ok(false);
        let sizes = if is_apart(&first) { first } else { all.find(is_apart).unwrap_or(first) };
        coincidence(&self.state, &sizes)?;
        self.at(at, &sizes)
    }

    /// The graphs at the assignments of sizes that together prove an equality, one after the other. `rounds`: it is one of floats
    /// as they are rounded, so that a count is none of the numbers that are computed before any input is.
    ///
    /// # Errors
    /// Why there are none ([`Shrinking::doubts`]).
    pub fn proof(
        &self,
        at: usize,
        rounds: bool,
    ) -> Result<impl Iterator<Item = Result<Small, String>>, Vec<String>> {
        let read = reading(&self.choices, at).into_iter().zip(&self.choices);
        if rounds && read.into_iter().any(|(form, choice)| form.is_some() && choice.is_alone) {
            return Err(vec!["a number that is computed of a count is rounded".to_string()]);
        }
        Ok(self.assignments(at)?.into_iter().map(move |sizes| self.at(at, &sizes)))
    }

    /// Whether `others`, the same graphs at other values of their symbols, are what is found here at other sizes, under a reading.
    pub fn follows(&self, at: usize, others: &[&Graph]) -> bool {
        let mut sizes = BTreeMap::new();
        for (read, other) in self.reads.iter().zip(others) {
            for (id, value) in other.ids().zip(&read.values) {
                let tensors = other.tensors_of(other.node(id).out);
                for (shape, tensor) in value.tensors().into_iter().zip(tensors) {
                    let of_other = other.sizes(other.tensor(tensor).shape).unwrap_or_default();
                    let structure = &self.state.structure;
                    for (axis, small) in shape.axes.iter().zip(of_other) {
                        let size = structure.size(*axis);
                        if structure.is_free(*axis) && self.classes.free.contains(&size) {
                            sizes.insert(size, small);
                        }
                    }
                }
            }
        }
        let same = |(small, other): (&Graph, &&Graph)| small.has_calls_of(other);
        self.at(at, &Sizes::given(sizes)).is_ok_and(|small| small.graphs.iter().zip(others).all(same))
    }

    fn assignments(&self, at: usize) -> Result<Vec<Sizes>, Vec<String>> {
        let forms = reading(&self.choices, at).into_iter().flatten();
        let needs = self.found.needs(&self.state.structure, &self.classes.free, forms)?;
        let sizes = Sizes::all(&self.classes, &needs);
        sizes.ok_or_else(|| vec![format!("more than {MOST_ASSIGNMENTS} assignments of sizes")])
    }

    fn at(&self, at: usize, sizes: &Sizes) -> Result<Small, String> {
        let (structure, reading) = (&self.state.structure, reading(&self.choices, at));
        let each = self.graphs.iter().zip(&self.reads).enumerate().map(|(at, (graph, read))| {
            let scalars = scalars::values(&self.choices, &reading, at, structure, sizes)?;
            rebuild::rebuilt(graph, read, structure, sizes, &scalars)
        });
        Ok(Small { graphs: each.collect::<Result<_, _>>()?, sizes: sizes.pairs().collect() })
    }
}

/// Whether a call writes to an argument.
fn writes(graph: &Graph, ops: &Ops, id: NodeId) -> bool {
    ops.call(graph, id).is_some_and(|info| info.written(graph, id).next().is_some())
}

/// Whether two inputs are recorded to lie in one storage, and a call writes: where they lie in a smaller one is not known.
fn shares_what_it_writes(graph: &Graph, ops: &Ops) -> bool {
    if !graph.ids().any(|id| writes(graph, ops, id)) {
        return false;
    }
    let mut seen = BTreeSet::new();
    let inputs = graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder);
    let mut storages = inputs.filter_map(|id| graph.tensor_of(id)?.storage);
    storages.any(|storage| !seen.insert(storage))
}

/// Reads all graphs, with what they share.
fn read_all(state: &mut State, graphs: &[&Graph], ops: &[Ops]) -> Result<Vec<Read>, String> {
    for group in graphs.iter().flat_map(|graph| &graph.world.groups) {
        if group.size == 0 || group.size > MOST_RANKS {
            return Err(format!("group {} has {} ranks", group.name, group.size));
        }
        let leaf = state.structure.kept(i64::from(group.size));
        let &mut first = state.groups.entry(group.name.clone()).or_insert(leaf);
        if state.structure.size(first) != i64::from(group.size) {
            return Err(format!("group {} has two sizes", group.name));
        }
    }
    let mut inputs = Inputs::default();
    let mut reads: Vec<Read> = Vec::with_capacity(graphs.len());
    for (graph, ops) in graphs.iter().zip(ops) {
        let before: Vec<(&Graph, &Read)> = graphs.iter().copied().zip(&reads).collect();
        let next = read(state, graph, ops, &mut inputs, &before)?;
        reads.push(next);
    }
    let all: Vec<_> = graphs.iter().zip(&reads).map(|(graph, read)| outputs(graph, read)).collect();
    let (before, afters) =
        all.split_first().map_or((&[][..], &[][..]), |(before, afters)| (&before[..], afters));
    let pairs = afters.iter().flat_map(|after| before.iter().zip(after));
    for (a, b) in pairs {
        // What their integers count may differ: then the graphs do.
        if let (Some(Value::Tensor(a)), Some(Value::Tensor(b))) = (a, b) {
            same_shape(state, a, b);
        }
    }
    Ok(reads)
}

fn kept(graphs: &[&Graph], reads: &[Read]) -> Vec<String> {
    let mut names = Vec::new();
    for (graph, read) in graphs.iter().zip(reads) {
        let each = read.kept.iter().map(|&id| format!("{} ({})", graph.name(id), graph.target(id)));
        names.extend(each.filter(|name| !names.contains(name)).collect::<Vec<String>>());
    }
    names
}

impl Classes {
    fn new(state: &State, reads: &[Read]) -> Classes {
        let mut stay = BTreeSet::new();
        let mut all = BTreeSet::new();
        for atom in state.structure.all_atoms() {
            let size = state.structure.size(atom);
            all.insert(size);
            if size <= STAYS || state.structure.is_kept(atom) {
                stay.insert(size);
            }
        }
        let weights = weights(state, reads);
        let mut free: Vec<i64> = all.difference(&stay).copied().collect();
        free.sort_by_key(|size| (std::cmp::Reverse(weights.get(size).copied().unwrap_or(0)), *size));
        Classes { free, stay }
    }
}

/// In how many tensors each size occurs.
fn weights(state: &State, reads: &[Read]) -> BTreeMap<i64, u64> {
    let mut of_leaf: BTreeMap<Leaf, u64> = BTreeMap::new();
    for value in reads.iter().flat_map(|read| &read.values) {
        for axis in value.tensors().into_iter().flat_map(|shape| &shape.axes) {
            *of_leaf.entry(state.structure.root(*axis)).or_default() += 1;
        }
    }
    let mut weights = BTreeMap::new();
    for (leaf, times) in of_leaf {
        for atom in state.structure.atoms(leaf) {
            *weights.entry(state.structure.size(atom)).or_default() += times;
        }
    }
    weights
}

/// Whether two counts that are different as recorded are the same when small: a mean by the wrong one would not be seen.
fn collide(state: &State, sizes: &Sizes, choices: &[Choice]) -> Result<bool, String> {
    let groups: Vec<Vec<Leaf>> = state.groups.values().map(|&group| vec![group]).collect();
    let forms = choices.iter().flat_map(|choice| &choice.forms).map(|form| &form.axes);
    let mut seen: BTreeMap<i64, i64> = BTreeMap::new();
    for axes in state.averaged.iter().chain(&state.reduced).chain(forms).chain(&groups) {
        let Ok(recorded) = state.structure.total(axes) else { continue };
        let small = sizes.product(&state.structure, axes)?;
        if *seen.entry(small).or_insert(recorded) != recorded {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Counts that are the same as recorded must be the same when small: else what is equal there would be convicted here.
fn coincidence(state: &State, sizes: &Sizes) -> Result<(), String> {
    let mut seen: BTreeMap<i64, i64> = BTreeMap::new();
    for axes in &state.averaged {
        let Ok(recorded) = state.structure.total(axes) else { continue };
        let small = sizes.product(&state.structure, axes)?;
        let known = *seen.entry(recorded).or_insert(small);
        if known != small {
            return Err(format!("two counts of {recorded} become {known} and {small}"));
        }
    }
    Ok(())
}
