//! Numbers that may come of a count: the 4096 of a mean over 4096 elements.
//!
//! # The idea
//!
//! A number `c` that a call takes is read as a constant, or as `(n + m)^p` where `n` is a product of dimensions that something
//! is reduced over, or of neighbouring dimensions of an operand; `m` is 0, 1 or -1, `p` one of 1, -1, 1/2, -1/2, 1/4, -1/4. Each
//! number chooses for itself. At the recorded sizes all readings are one program. Only calls that compute the same of the same
//! inputs read their numbers alike. Exponents, probabilities and what keeps a quotient finite are constants.
//!
//! What is offered, and in which order, depends on recorded sizes alone, so that readings at several small sizes correspond.

use super::call::State;
use super::read::Read;
use super::rebuild::Scalar;
use super::sizes::Sizes;
use super::structure::{Leaf, Structure};
use super::values::Value;
use crate::graph::{DtypeClass, Graph, NodeId, Op, Value as Argument};
use crate::ops::{Bound, Ops, Param};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Readings at most.
pub const MOST_READINGS: usize = 256;

/// A number as a function of a count.
#[derive(Clone, Debug)]
pub struct Form {
    /// Whose sizes multiply up to the count.
    pub axes: Vec<Leaf>,
    more: i64,
    power: f64,
}

impl Form {
    /// Which root of the count it is: 1, 2 or 4.
    pub fn root(&self) -> u32 {
        (1.0 / self.power.abs()).round() as u32
    }

    fn value(&self, structure: &Structure, sizes: &Sizes) -> Result<f64, String> {
        let count = sizes.product(structure, &self.axes)?;
        Ok((count.saturating_add(self.more) as f64).powf(self.power))
    }
}

/// Numbers that are read alike.
#[derive(Debug)]
pub struct Choice {
    /// The graph, the call and the parameter of each.
    places: Vec<(usize, NodeId, usize)>,
    value: Argument,
    /// What it may be beside a constant.
    pub forms: Vec<Form>,
    /// Whether a call of these takes nothing that depends on an input: floats round what it gives, and more of larger sizes.
    pub is_alone: bool,
}

/// All numbers that may come of a count, and how each may be read.
pub fn choices(
    graphs: &[&Graph],
    ops: &[Ops],
    reads: &[Read],
    state: &State,
    shrinks: &BTreeSet<i64>,
) -> Vec<Choice> {
    let counts = Counts::new(state, shrinks);
    let (mut choices, mut by_key): (Vec<Choice>, FxHashMap<(u64, usize), usize>) = Default::default();
    for (at, (graph, read)) in graphs.iter().zip(reads).enumerate() {
        let edited: BTreeSet<(NodeId, usize)> =
            read.edits.iter().map(|edit| (edit.node, edit.param)).collect();
        let keys = keys(graph, graphs.len() == 2);
        let Some(ops) = ops.get(at) else { continue };
        let constant = constants(graph, ops);
        for (id, key) in graph.ids().zip(keys) {
            let Some(schema) = ops.call(graph, id).and_then(|info| info.schema.as_ref()) else { continue };
            let is_alone = is_constant(graph, ops, &constant, id);
            let Ok(bound) = Bound::new(graph, id, schema) else { continue };
            for (param, known) in schema.params.iter().enumerate() {
                let Some(value) = bound.given(param).filter(|_| is_factor(known)) else { continue };
                let Some(number) = number(value).filter(|_| !edited.contains(&(id, param))) else { continue };
                if let Some(&known) = by_key.get(&(key, param)) {
                    choices[known].places.push((at, id, param));
                    choices[known].is_alone |= is_alone;
                    continue;
                }
                let forms = counts.forms(
                    number,
                    is_float(graph, id),
                    matches!(value, Argument::Int(_)),
                    &operands(graph, read, id),
                );
                if !forms.is_empty() {
                    by_key.insert((key, param), choices.len());
                    choices.push(Choice { places: vec![(at, id, param)], value, forms, is_alone });
                }
            }
        }
    }
    choices
}

/// The nodes that depend on no input.
pub fn constants(graph: &Graph, ops: &Ops) -> Vec<bool> {
    let mut constant = vec![false; graph.len()];
    for id in graph.ids().filter(|&id| graph.node(id).op == Op::Call) {
        constant[id.index()] = !ops.draws(graph, id) && is_constant(graph, ops, &constant, id);
    }
    constant
}

/// Whether all that a call computes with is constant; what only has the shape of an input does not depend on it.
fn is_constant(graph: &Graph, ops: &Ops, constant: &[bool], id: NodeId) -> bool {
    let is_shape = ops
        .call(graph, id)
        .is_some_and(|info| info.schema.as_ref().is_some_and(|schema| info.kind.only_shape_of_first(schema)));
    let mut inputs = graph.inputs(id).into_iter().skip(usize::from(is_shape));
    inputs.all(|of| constant.get(of.index()) == Some(&true))
}

/// Whether a parameter may hold a number that something is multiplied or compared with.
pub fn is_factor(param: &Param) -> bool {
    const OTHERS: [&str; 5] = ["exponent", "p", "dropout_p", "momentum", "eps"];
    ["Scalar", "float", "Tensor"].contains(&param.ty.trim_end_matches('?'))
        && !OTHERS.contains(&param.name.as_str())
}

pub fn number(value: Argument) -> Option<f64> {
    match value {
        Argument::Int(n) => Some(n as f64),
        Argument::Float(x) => Some(x),
        _ => None,
    }
    .filter(|x| x.is_finite() && *x != 0.0 && x.abs() != 1.0)
}

fn is_float(graph: &Graph, id: NodeId) -> bool {
    graph.tensor_at(id, 0).is_some_and(|tensor| tensor.dtype.class() >= DtypeClass::Float)
}

/// The dimensions of the tensors that a call takes and gives.
fn operands(graph: &Graph, read: &Read, id: NodeId) -> Vec<Vec<Leaf>> {
    let mut nodes = graph.inputs(id);
    nodes.push(id);
    let values = nodes.into_iter().filter_map(|node| read.values.get(node.index()));
    values.flat_map(Value::tensors).map(|shape| shape.axes.clone()).collect()
}

/// Products of dimensions by what they multiply up to.
struct Counts<'s> {
    structure: &'s Structure,
    shrinks: &'s BTreeSet<i64>,
    reduced: BTreeMap<i64, Vec<Vec<Leaf>>>,
}

impl<'s> Counts<'s> {
    fn new(state: &'s State, shrinks: &'s BTreeSet<i64>) -> Counts<'s> {
        let mut counts = Counts { structure: &state.structure, shrinks, reduced: BTreeMap::new() };
        let mut seen = BTreeSet::new();
        for axes in &state.reduced {
            let Ok(total) = state.structure.total(axes) else { continue };
            if seen.insert((total, counts.print(axes))) {
                counts.reduced.entry(total).or_default().push(axes.clone());
            }
        }
        counts
    }

    /// A number that two products share only if they are the same function of sizes.
    fn print(&self, axes: &[Leaf]) -> u64 {
        axes.iter().fold(1, |product, &axis| product.wrapping_mul(self.print_of(axis, 0)))
    }

    fn print_of(&self, leaf: Leaf, depth: u32) -> u64 {
        let leaf = self.structure.root(leaf);
        let size = self.structure.size(leaf);
        if self.structure.is_free(leaf) {
            return if self.shrinks.contains(&size) { mixed(size as u64) | 1 } else { size as u64 };
        }
        let pieces = self.structure.pieces(leaf).unwrap_or_default();
        if depth > 50 {
            return mixed(size as u64);
        }
        let product = |piece: &[Leaf]| {
            piece.iter().fold(1u64, |n, &digit| n.wrapping_mul(self.print_of(digit, depth + 1)))
        };
        pieces.iter().fold(0, |sum, piece| sum.wrapping_add(product(piece)))
    }

    fn forms(&self, number: f64, is_float: bool, is_integer: bool, operands: &[Vec<Leaf>]) -> Vec<Form> {
        let (mut forms, mut seen) = (Vec::new(), BTreeSet::new());
        for power in [1.0, -1.0, 0.5, -0.5, 0.25, -0.25f64] {
            // Integers stay integers.
            if power != 1.0 && is_integer && !is_float {
                continue;
            }
            let whole = number.abs().powf(1.0 / power);
            let rounded = whole.round();
            if !(rounded.is_finite() && rounded < (1i64 << 40) as f64)
                || (whole - rounded).abs() >= 3e-6 * whole
            {
                continue;
            }
            for more in if power.abs() == 1.0 { &[0, 1, -1][..] } else { &[0] } {
                let count = rounded as i64 - more;
                if count <= super::sizes::STAYS {
                    continue;
                }
                for axes in self.products(count, operands) {
                    let print = self.print(&axes);
                    // What does not shrink is the constant.
                    if print != count as u64 && seen.insert((print, *more, power.to_bits())) {
                        forms.push(Form { axes, more: *more, power });
                    }
                }
            }
        }
        forms
    }

    /// The products of neighbouring dimensions, and of reduced ones, that are so large.
    fn products(&self, count: i64, operands: &[Vec<Leaf>]) -> Vec<Vec<Leaf>> {
        let mut found = Vec::new();
        for axes in operands {
            for start in 0..axes.len() {
                let mut product = 1i64;
                for (end, &axis) in axes.iter().enumerate().skip(start) {
                    product = product.saturating_mul(self.structure.size(axis));
                    if product == count {
                        found.push(axes[start..=end].to_vec());
                    }
                }
            }
        }
        found.extend(self.reduced.get(&count).into_iter().flatten().cloned());
        found
    }
}

fn mixed(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) ^ (n >> 31)
}

/// What each node computes, as a number: the same for calls of one operator on the same inputs, which correspond by place or
/// by name.
fn keys(graph: &Graph, is_by_place: bool) -> Vec<u64> {
    let mut keys: Vec<u64> = Vec::with_capacity(graph.len());
    let mut place = 0u32;
    for id in graph.ids() {
        let mut hasher = DefaultHasher::new();
        graph.node(id).op.hash(&mut hasher);
        match graph.node(id).op {
            Op::Placeholder if is_by_place => place.hash(&mut hasher),
            Op::Placeholder => graph.name(id).hash(&mut hasher),
            _ => graph.target(id).hash(&mut hasher),
        }
        place += u32::from(graph.node(id).op == Op::Placeholder);
        if graph.node(id).op == Op::Call {
            graph.args(id).iter().for_each(|&value| hash(graph, value, &keys, &mut hasher));
            for (name, value) in graph.kwargs(id) {
                name.hash(&mut hasher);
                hash(graph, value, &keys, &mut hasher);
            }
        }
        keys.push(hasher.finish());
    }
    keys
}

fn hash(graph: &Graph, value: Argument, keys: &[u64], hasher: &mut DefaultHasher) {
    std::mem::discriminant(&value).hash(hasher);
    match value {
        Argument::Node(node) => keys.get(node.index()).hash(hasher),
        Argument::List(span) | Argument::Slice(span) | Argument::Dict(span) | Argument::Complex(span) => {
            span.range().len().hash(hasher);
            graph.values(span).iter().for_each(|&value| hash(graph, value, keys, hasher));
        }
        Argument::Int(n) => n.hash(hasher),
        Argument::Float(x) => x.to_bits().hash(hasher),
        Argument::Bool(b) => b.hash(hasher),
        Argument::Dtype(dtype) => dtype.hash(hasher),
        Argument::Str(s) | Argument::Dangling(s) | Argument::Function(s) => graph.text(s).hash(hasher),
        Argument::Device(s) | Argument::MemoryFormat(s) | Argument::Layout(s) => graph.text(s).hash(hasher),
        Argument::None | Argument::Symbolic(_) => {}
    }
}

/// How many readings there are; `None` where they are too many.
pub fn count(choices: &[Choice]) -> Option<usize> {
    let mut each = choices.iter().map(|choice| choice.forms.len() + 1);
    each.try_fold(1usize, |n, options| n.checked_mul(options)).filter(|&n| n <= MOST_READINGS)
}

/// What each number is in the reading `index`: `None` for a constant.
pub fn reading(choices: &[Choice], mut index: usize) -> Vec<Option<&Form>> {
    let mut read = Vec::with_capacity(choices.len());
    for choice in choices {
        let options = choice.forms.len() + 1;
        read.push((index % options).checked_sub(1).and_then(|form| choice.forms.get(form)));
        index /= options;
    }
    read
}

/// The numbers of graph `at` under a reading.
pub fn values(
    choices: &[Choice],
    reading: &[Option<&Form>],
    at: usize,
    structure: &Structure,
    sizes: &Sizes,
) -> Result<Vec<Scalar>, String> {
    let mut scalars = Vec::new();
    for (choice, form) in choices.iter().zip(reading) {
        let Some(form) = form else { continue };
        let sign = number(choice.value).map_or(1.0, f64::signum);
        let value = sign * form.value(structure, sizes)?;
        let value = match choice.value {
            Argument::Int(_) if value.fract() == 0.0 && value.abs() < 1e15 => Argument::Int(value as i64),
            _ => Argument::Float(value),
        };
        let here = choice.places.iter().filter(|place| place.0 == at);
        scalars.extend(here.map(|&(_, node, param)| Scalar { node, param, value }));
    }
    Ok(scalars)
}
