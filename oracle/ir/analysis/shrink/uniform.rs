//! What small sizes prove about the recorded ones.
//!
//! # The statement
//!
//! Let each element of an observable be a sum, over indices of the sizes that shrink, of products of inputs, their
//! functions and numbers. Let no term hold more than `d` indices of one size, its own included, and let the coefficients be
//! rational functions of the sizes, with numerators and denominators whose degrees in each size `s` add up to at most `t(s)`.
//! Then two programs that are equal, as such expressions, at all combinations of `t(s) + 1` values of each size, none below
//! `d`, are equal at all sizes.
//!
//! *Why:* everything here moves whole digits and pieces, so both programs are symmetric under permutations of the positions
//! within each; a term names at most `d` positions of a size, and which of these coincide is a pattern that occurs at size `d`
//! already. Places that are compared in order take away the permutations: what is left is the order of the positions that a term
//! names, and each of those occurs at size `d` too, as long as no sum counts the places before one. What is left of their difference is a polynomial of degree at most `t(s)` in each size, and it vanishes on a grid
//! that is wider than that. Where a number is read as a root of a size, the root takes the place of the size: of what is of degree
//! `t` in `s` it is of degree `2t` in the square root.
//!
//! # How it is established
//!
//! One pass over each graph bounds, for each value and each size that shrinks, how many indices a term has summed over
//! ([`Live::bound`]) and the degrees of coefficients. An index is *named* if it occurs in every term; a sum over one that is not
//! gives a factor of the size. What lies in a storage that was written is what it was, or what was written. Whatever is not
//! listed is a doubt: operators of order, what the table of operators gives no meaning, positions as numbers, integers that are
//! written, writes of what is not handed back.
//!
//! # What it presumes
//!
//! That the two programs were equal *as expressions*, not by chance: where a value chooses (`relu`, `where`, a maximum) each
//! outcome was seen, or cannot occur. Bounds of sums at small sizes are no reason that it cannot; a choice between a sum and a
//! constant is a doubt here.

use super::call::State;
use super::positions::Law;
use super::read::Read;
use super::rules::{is_order, reduced_dims};
use super::scalars::Form;
use super::sizes::Need;
use super::structure::{Leaf, Structure};
use super::values::{Shape, Value};
use crate::analysis::collectives::Collectives;
use crate::analysis::edges::Edges;
use crate::analysis::storages::{Mode, StorageIndex, Storages};
use crate::graph::{Dtype, DtypeClass, Graph, NodeId, Op, Value as Argument};
use crate::ops::{
    Binary, Bound, Collective, Fill, Kind, Matmul, Move, OpInfo, Ops, Random, Reduce, Unary, View,
};
use std::collections::{BTreeMap, BTreeSet};

/// Reasons that are named.
const MOST_DOUBTS: usize = 16;

/// A number for each size that shrinks.
type Powers = BTreeMap<i64, u32>;

fn most(a: &mut Powers, b: &Powers) {
    for (&class, &n) in b {
        let of_a = a.entry(class).or_default();
        *of_a = n.max(*of_a);
    }
}

fn plus(a: &mut Powers, b: &Powers) {
    for (&class, &n) in b {
        let of_a = a.entry(class).or_default();
        *of_a = of_a.saturating_add(n);
    }
}

/// What is known of a value's elements.
#[derive(Clone, Default)]
struct Live {
    /// Indices that are summed over.
    bound: Powers,
    /// Degrees of coefficients, above and under the fraction bar.
    up: Powers,
    down: Powers,
    /// For each dimension whether its index occurs in every term.
    named: Vec<bool>,
    /// For each dimension whether its index occurs in some term for certain: that nothing takes away.
    varies: Vec<bool>,
    /// Whether it is not 0 for certain.
    is_present: bool,
    /// Whether no term is a number.
    is_pure: bool,
    /// Whether it is made of a logarithm: then a sum is a product.
    is_log: bool,
    /// Whether it is a quotient, or another function of a sum: a sum of them has all their denominators.
    is_ratio: bool,
}

impl Live {
    fn input(rank: usize) -> Live {
        Live {
            named: vec![true; rank],
            varies: vec![true; rank],
            is_present: true,
            is_pure: true,
            ..Live::default()
        }
    }

    /// Of whose dimensions nothing is known.
    fn forget(&mut self, rank: usize) {
        (self.named, self.varies, self.is_present) = (vec![false; rank], vec![false; rank], false);
    }

    fn is_summed(&self) -> bool {
        !(self.bound.is_empty() && self.up.is_empty() && self.down.is_empty())
    }

    /// As one of both, or as their product.
    fn join(&mut self, other: &Live, is_product: bool) {
        let join = if is_product { plus } else { most };
        join(&mut self.bound, &other.bound);
        join(&mut self.up, &other.up);
        join(&mut self.down, &other.down);
        self.is_log |= other.is_log;
        self.is_ratio |= other.is_ratio;
    }

    /// As it was, or as what was written over some of it.
    fn overwrite(&mut self, new: &Live) {
        self.join(new, false);
        self.is_pure &= new.is_pure;
        if self.named.iter().chain(&new.named).any(|named| !named) {
            self.named.iter_mut().for_each(|named| *named = false);
        }
        self.varies.iter_mut().for_each(|varies| *varies = false);
        self.is_present = false;
    }

    /// Whether terms of a sum with another one multiply.
    fn mixes(&self, other: &Live) -> bool {
        [self, other].iter().any(|live| live.is_log || live.is_ratio)
    }
}

/// What is found.
struct Survey<'s> {
    graph: &'s Graph,
    ops: &'s Ops,
    read: &'s Read,
    state: &'s State,
    structure: &'s Structure,
    free: &'s BTreeSet<i64>,
    doubts: BTreeSet<String>,
    in_doubt: BTreeSet<Leaf>,
    up: Powers,
    down: Powers,
    /// The dimensions whose places are told apart by their order.
    ordered: Vec<Leaf>,
}

/// The degrees of coefficients, and why an equality may not carry over.
#[derive(Default)]
pub struct Found {
    /// Why not.
    pub doubts: BTreeSet<String>,
    /// The dimensions without which there would be none of some.
    pub in_doubt: BTreeSet<Leaf>,
    up: Powers,
    down: Powers,
    /// The indices of its own dimensions that each node has, and the most that a term of it has summed over.
    needs: Vec<(Powers, Powers)>,
    has_ratio: bool,
}

impl Found {
    /// Adds what one graph shows.
    pub fn add(&mut self, graph: &Graph, ops: &Ops, read: &Read, state: &State, free: &BTreeSet<i64>) {
        let structure = &state.structure;
        let (up, down, doubts, in_doubt, ordered) = Default::default();
        let mut survey =
            Survey { graph, ops, read, state, structure, free, doubts, in_doubt, up, down, ordered };
        let lives = survey.walk();
        survey.positions();
        survey.counted_places();
        most(&mut self.up, &survey.up);
        most(&mut self.down, &survey.down);
        self.has_ratio |= lives.iter().any(|live| live.is_ratio);
        for (id, live) in graph.ids().zip(lives) {
            let mut own = Powers::new();
            survey.shapes(id).iter().for_each(|shape| most(&mut own, &survey.of_axes(&shape.axes)));
            if !(own.is_empty() && live.bound.is_empty()) {
                self.needs.push((own, live.bound));
            }
        }
        self.doubts.append(&mut survey.doubts);
        self.in_doubt.append(&mut survey.in_doubt);
    }

    /// Whether no coefficient depends on a size: nothing is averaged, and no sum counts what it adds.
    pub fn is_free_of_sizes(&self) -> bool {
        self.up.values().chain(self.down.values()).all(|&degree| degree == 0)
    }

    /// What a proof needs of each size, with numbers that are read as counts. A size must have room for all indices of a term; where
    /// quotients are compared, the terms of one side are multiplied by denominators of the other.
    ///
    /// # Errors
    /// Why there is no proof.
    pub fn needs<'f>(
        &self,
        structure: &Structure,
        free: &[i64],
        forms: impl Iterator<Item = &'f Form>,
    ) -> Result<BTreeMap<i64, Need>, Vec<String>> {
        if !self.doubts.is_empty() {
            return Err(self.doubts.iter().take(MOST_DOUBTS).cloned().collect());
        }
        let free = free.iter().copied().collect();
        let mut indices = Powers::new();
        for (own, bound) in &self.needs {
            let mut all = own.clone();
            (0..=u32::from(self.has_ratio)).for_each(|_| plus(&mut all, bound));
            most(&mut indices, &all);
        }
        let (mut degrees, mut roots) = (self.up.clone(), Powers::new());
        plus(&mut degrees, &self.down);
        // A number may multiply what is divided by one, or another one of them.
        for form in forms {
            let mut powers = Powers::new();
            form.axes.iter().for_each(|&axis| plus(&mut powers, &classes(structure, &free, axis, 0)));
            plus(&mut degrees, &powers);
            most(&mut roots, &powers.into_keys().map(|class| (class, form.root())).collect());
        }
        let of = |&class: &i64| {
            let degree = degrees.get(&class).copied().unwrap_or(0);
            let degree = degree.saturating_mul(roots.get(&class).copied().unwrap_or(1)) as usize;
            (class, Need { least: i64::from(indices.get(&class).copied().unwrap_or(0)), degree })
        };
        Ok(free.iter().map(of).collect())
    }
}

/// How many indices of each size that shrinks one position of a dimension is made of.
fn classes(structure: &Structure, free: &BTreeSet<i64>, leaf: Leaf, depth: u32) -> Powers {
    let mut all = Powers::new();
    for piece in structure.pieces(leaf).unwrap_or_default() {
        let mut of_piece = Powers::new();
        for digit in piece {
            if structure.is_free(digit) {
                let size = structure.size(digit);
                if free.contains(&size) {
                    *of_piece.entry(size).or_default() += 1;
                }
            } else if depth < 50 {
                plus(&mut of_piece, &classes(structure, free, digit, depth + 1));
            }
        }
        most(&mut all, &of_piece);
    }
    all
}

impl Survey<'_> {
    fn classes(&self, leaf: Leaf) -> Powers {
        classes(self.structure, self.free, leaf, 0)
    }

    fn of_axes<'a>(&self, axes: impl IntoIterator<Item = &'a Leaf>) -> Powers {
        let mut all = Powers::new();
        axes.into_iter().for_each(|&axis| plus(&mut all, &self.classes(axis)));
        all
    }

    fn shapes(&self, id: NodeId) -> Vec<&Shape> {
        self.read.values.get(id.index()).map(Value::tensors).unwrap_or_default()
    }

    fn shrinks(&self, id: NodeId) -> bool {
        let is_small = |id: NodeId| self.shapes(id).iter().any(|shape| !self.of_axes(&shape.axes).is_empty());
        is_small(id) || self.graph.inputs(id).into_iter().any(is_small)
    }

    fn doubt(&mut self, id: NodeId, why: &str, of: Vec<Leaf>) {
        self.in_doubt.extend(of);
        let (name, target) = (self.graph.name(id), self.graph.target(id));
        self.doubts.insert(format!("{name} ({target}) {why}"));
    }

    /// The dimensions that a call is about: those that it names, or else all; and whether it names some.
    fn along(&self, id: NodeId, info: &OpInfo) -> (Vec<Leaf>, bool) {
        let inputs = self.graph.inputs(id);
        let tensors = inputs.iter().flat_map(|&input| self.shapes(input)).chain(self.shapes(id));
        let bound = info.schema.as_ref().and_then(|schema| Bound::new(self.graph, id, schema).ok());
        let is_known = matches!(info.kind, Kind::Reduce(_) | Kind::Cumsum | Kind::Move(_) | Kind::Opaque);
        let params = info.schema.iter().flat_map(|schema| &schema.params).enumerate().filter(|_| is_known);
        let named = params.filter(|&(param, _)| info.counts_dims(param)).filter_map(|(param, known)| {
            bound.as_ref().filter(|bound| bound.given(param).is_some())?.ints(&known.name)
        });
        let named: Vec<i64> = named.flatten().collect();
        let of = |shape: &Shape| -> Vec<Leaf> {
            let at = |dim: i64| shape.axes.get(dim.rem_euclid(shape.axes.len().max(1) as i64) as usize);
            match named.is_empty() {
                true => shape.axes.clone(),
                false => named.iter().filter_map(|&dim| at(dim).copied()).collect(),
            }
        };
        (tensors.flat_map(of).collect(), !named.is_empty())
    }

    /// Whether any of some dimensions shrinks.
    fn shrink(&self, axes: &[Leaf]) -> bool {
        axes.iter().any(|&axis| !self.classes(axis).is_empty())
    }

    fn walk(&mut self) -> Vec<Live> {
        let mut lives: Vec<Live> = Vec::with_capacity(self.graph.len());
        let has_writes = self.graph.ids().any(|id| self.writes(id));
        let storages = has_writes.then(|| {
            let (graph, ops) = (self.graph, self.ops);
            Storages::new(graph, ops, &Edges::new(graph), &Collectives::new(graph, ops), Mode::Physical)
        });
        let mut written: BTreeMap<StorageIndex, Live> = BTreeMap::new();
        for id in self.graph.ids() {
            if let Some(storages) = &storages {
                self.graph.for_each_input(id, &mut |input| {
                    let parts = storages.all_parts(input).map(|part| part.storage);
                    let news: Vec<&Live> = parts.filter_map(|storage| written.get(&storage)).collect();
                    if let Some(live) = lives.get_mut(input.index()) {
                        news.into_iter().for_each(|new| live.overwrite(new));
                    }
                });
            }
            let live = match self.graph.node(id).op {
                Op::Placeholder | Op::GetAttr => Live::input(self.rank(id)),
                Op::Output => Live::default(),
                Op::Call => self.called(id, &lives),
            };
            most(&mut self.up, &live.up);
            most(&mut self.down, &live.down);
            if let Some(storages) = storages.as_ref().filter(|_| self.writes(id)) {
                let is_followed = self.is_handed_back(id, storages);
                let is_small = self.shrinks(id);
                if !is_followed && (is_small || live.is_summed()) {
                    let why =
                        "writes what is not followed to a tensor that shrinks, or what was summed over one";
                    self.doubt(id, why, Vec::new());
                }
                for access in storages.accesses_by(id).iter().filter(|access| access.touch.writes()) {
                    let entry = written.entry(access.part.storage);
                    entry.and_modify(|all| all.overwrite(&live)).or_insert_with(|| live.clone());
                }
            }
            lives.push(live);
        }
        lives
    }

    fn writes(&self, id: NodeId) -> bool {
        super::writes(self.graph, self.ops, id)
    }

    /// Whether a call writes to one argument alone and hands it back, and it holds no integers: these may be positions.
    fn is_handed_back(&self, id: NodeId, storages: &Storages) -> bool {
        let info = self.ops.get(self.graph, id);
        let bound = info.schema.as_ref().and_then(|schema| Bound::new(self.graph, id, schema).ok());
        let written: Vec<usize> = info.written(self.graph, id).collect();
        let given = match (bound, written.as_slice()) {
            (Some(bound), &[param]) => bound.given(param),
            _ => None,
        };
        let Some(Argument::Node(given)) = given else { return false };
        let is_float =
            self.graph.tensor_of(given).is_some_and(|tensor| tensor.dtype.class() >= DtypeClass::Float);
        is_float && storages.base(id, 0).is_some_and(|(base, _)| base == given)
    }

    fn rank(&self, id: NodeId) -> usize {
        self.shapes(id).first().map_or(0, |shape| shape.axes.len())
    }

    fn called(&mut self, id: NodeId, lives: &[Live]) -> Live {
        let info = self.ops.get(self.graph, id);
        let mut inputs: Vec<&Live> = Vec::new();
        self.graph.for_each_input(id, &mut |input| inputs.extend(lives.get(input.index())));
        let rank = self.rank(id);
        let is_small = self.shrinks(id);
        let made = self.live(id, info, &inputs, lives);
        let Some(mut live) = made else {
            // A function of corresponding elements is one at all sizes, whatever it is, and so is one along other dimensions.
            let is_elementwise = info.kind.is_elementwise() || info.kind == Kind::Cast;
            let is_summed = inputs.iter().any(|input| input.is_summed());
            let (along, is_named) = self.along(id, info);
            let is_along_others = is_named && !self.shrink(&along);
            if (is_small && !is_elementwise || is_summed) && !is_along_others {
                self.doubt(id, "is no symmetric function of a dimension that shrinks", along);
            }
            let mut live = function(&inputs, rank, true);
            let (up, down) = (live.up.clone(), live.down.clone());
            plus(&mut live.up, &down);
            plus(&mut live.down, &up);
            return live;
        };
        live.named.resize(rank, false);
        live.varies.resize(rank, false);
        live
    }

    /// What is known of the result of a call whose meaning is.
    fn live(&mut self, id: NodeId, info: &OpInfo, inputs: &[&Live], lives: &[Live]) -> Option<Live> {
        let rank = self.rank(id);
        match info.kind {
            // Of two dimensions that are one it is what they have in common.
            Kind::View(View::Diagonal) if !self.is_of_a_square(id, info) => None,
            Kind::View(view) => Some(self.shown(id, view, inputs)),
            Kind::Move(movement) => self.moved(id, info, movement, inputs),
            Kind::Cast => {
                let from = self.graph.inputs(id).first().and_then(|&input| self.graph.tensor_at(input, 0));
                let (from, to) = (from?.dtype, self.graph.tensor_at(id, 0)?.dtype);
                // A condition is whether it is 0.
                if to == Dtype::Bool {
                    self.choice(id, inputs);
                    return Some(function(inputs, rank, true));
                }
                // What an integer has wrapped depends on how much was summed.
                let wraps = |dtype: Dtype| dtype.class() == DtypeClass::Int && dtype.itemsize() < 8;
                let is_wrapped = from != to
                    && from.class() == DtypeClass::Int
                    && (wraps(from) || wraps(to))
                    && inputs.iter().any(|input| input.is_summed());
                (from.class() <= to.class() && !is_wrapped).then(|| moved(inputs, rank))
            }
            Kind::Wait | Kind::GetItem => Some(moved(inputs, rank)),
            Kind::Collective(kind) => self.sent(id, info, kind, inputs),
            Kind::Fill(fill) => {
                let is_zero = fill == Fill::Zeros;
                let is_present = !is_zero;
                Some(Live { named: vec![is_zero; rank], is_present, is_pure: is_zero, ..Live::default() })
            }
            Kind::Random(Random::Rand | Random::Randn) => Some(Live::input(rank)),
            // Places of a dimension, each its own.
            Kind::Arange | Kind::Opaque if self.counts_places(id) => {
                self.are_places(id).then(|| Live { is_pure: false, ..Live::input(rank) })
            }
            // Places of both dimensions that are the same.
            Kind::Opaque if info.schema.as_ref().is_some_and(|schema| schema.name == "eye") => {
                Some(function(&[], rank, true))
            }
            Kind::Opaque if matches!(info.short, "tril" | "triu") => self.triangle(id, info, inputs.first()?),
            Kind::Unary(op) => self.unary(id, op, inputs.first()?),
            Kind::Binary(op) => self.binary(id, info, op, lives),
            Kind::Where | Kind::Clamp | Kind::MaskedFill | Kind::Pointwise => {
                // What decides is a comparison before it.
                if info.kind == Kind::Clamp {
                    self.choice(id, inputs);
                }
                let mut live = function(inputs, rank, true);
                // What is chosen among has an index that all have, whatever decides.
                if let (Kind::Where, &[_, yes, no]) = (info.kind, inputs) {
                    let [yes, no] = [(1, yes), (2, no)].map(|(at, of)| self.broadcast(id, at, &of.named));
                    live.named = either(yes, no, false);
                }
                Some(live)
            }
            Kind::Fma => {
                let [a, b, c] = inputs[..] else { return None };
                let mut live = function(&[a, b], rank, !(a.is_pure || b.is_pure));
                live.named = either(self.broadcast(id, 0, &a.named), self.broadcast(id, 1, &b.named), true);
                live.named = either(live.named, self.broadcast(id, 2, &c.named), false);
                live.join(c, live.mixes(c));
                live.is_pure &= c.is_pure;
                Some(live)
            }
            Kind::Reduce(kind) => self.reduced(id, info, kind, inputs.first()?),
            Kind::Cumsum => self.summed_up_to(id, info, inputs.first()?),
            Kind::Matmul(kind) => self.multiplied(id, info, kind, lives),
            _ => None,
        }
    }

    /// Whether a diagonal is the main one, of one dimension taken twice.
    fn is_of_a_square(&self, id: NodeId, info: &OpInfo) -> bool {
        let bound = info.schema.as_ref().and_then(|schema| Bound::new(self.graph, id, schema).ok());
        let source = self.graph.inputs(id).first().and_then(|&source| self.shapes(source).first().copied());
        let (Some(bound), Some(source)) = (bound, source) else { return false };
        let axis = |name: &str| {
            let dim = bound.int(name)?.rem_euclid(source.axes.len().max(1) as i64);
            source.axes.get(dim as usize).map(|&axis| self.structure.root(axis))
        };
        bound.int("offset") == Some(0) && axis("dim1").is_some() && axis("dim1") == axis("dim2")
    }

    /// Whether a call gives the places of a dimension, in order; as integers that hold them all.
    fn counts_places(&self, id: NodeId) -> bool {
        let is_range =
            matches!(self.ops.get(self.graph, id).short, "arange" | "arange_start" | "arange_step" | "iota");
        is_range && self.graph.tensor_of(id).is_some_and(|tensor| tensor.dtype == Dtype::I64)
    }

    /// Whether a node shows what such a call gives.
    fn shows_places(&self, id: NodeId) -> bool {
        let moves = self
            .ops
            .call(self.graph, id)
            .is_some_and(|info| matches!(info.kind, Kind::View(_) | Kind::Move(Move::Clone)));
        let of = self.graph.inputs(id);
        self.graph.node(id).op == Op::Call && self.counts_places(id)
            || moves && of.first().is_some_and(|&of| self.shows_places(of))
    }

    /// Whether places are used as indices alone, and to be held against others.
    fn are_places(&self, id: NodeId) -> bool {
        let users = self.graph.ids().filter(|&user| self.graph.inputs(user).contains(&id));
        users.into_iter().all(|user| {
            let Some(info) = self.ops.call(self.graph, user) else { return false };
            match info.kind {
                Kind::View(_) | Kind::Move(Move::Clone) => self.are_places(user),
                Kind::Binary(op) if compares(op) => true,
                Kind::Move(movement) if movement.selects_by_data() => {
                    let bound = info.schema.as_ref().and_then(|s| Bound::new(self.graph, user, s).ok());
                    bound.is_some_and(|bound| {
                        ["self", "weight", "src", "source"].iter().all(|name| bound.node(name) != Some(id))
                    })
                }
                _ => false,
            }
        })
    }

    /// A view moves digits. What an expansion adds is not named.
    fn shown(&self, id: NodeId, view: View, inputs: &[&Live]) -> Live {
        let rank = self.rank(id);
        let mut live = moved(inputs, rank);
        if view == View::Expand
            && let (Some(from), Some(to)) = (self.graph.inputs(id).first(), self.shapes(id).first())
            && let Some(from) = self.shapes(*from).first()
        {
            let added = to.axes.len().saturating_sub(from.axes.len());
            for (at, &axis) in to.axes.iter().enumerate() {
                let same = at.checked_sub(added).and_then(|at| from.axes.get(at));
                if same.is_none_or(|&same| self.structure.size(same) != self.structure.size(axis)) {
                    live.named[at] = false;
                    live.varies[at] = false;
                }
            }
        }
        live
    }

    fn moved(&mut self, id: NodeId, info: &OpInfo, movement: Move, inputs: &[&Live]) -> Option<Live> {
        let rank = self.rank(id);
        match movement {
            Move::Clone
            | Move::Roll
            | Move::Repeat
            | Move::Cat
            | Move::Stack
            | Move::SliceScatter
            | Move::SelectScatter
            | Move::SplitWithSizesCopy => Some(moved(inputs, rank)),
            Move::Copy => {
                // The first one only has the shape.
                let from = *inputs.last()?;
                let mut live = from.clone();
                live.forget(rank);
                Some(live)
            }
            Move::Pad => {
                let bound = Bound::new(self.graph, id, info.schema.as_ref()?).ok()?;
                let mut live = moved(inputs, rank);
                let is_zero = bound.float("value") == Some(0.0);
                let named = if is_zero { live.named.clone() } else { vec![false; rank] };
                live.forget(rank);
                live.named = named;
                live.is_pure &= is_zero;
                Some(live)
            }
            // An index is a sum over the indexed dimension of one place or none. Of several that name one place the last one
            // counts, so places are written to by as many as are recorded.
            Move::Embedding | Move::IndexSelect | Move::Index | Move::Gather | Move::Scatter => {
                if movement == Move::Scatter && !self.is_written_by_few(id, info)? {
                    return None;
                }
                let mut live = moved(inputs, rank);
                live.bound = Powers::new();
                inputs.iter().for_each(|input| plus(&mut live.bound, &input.bound));
                let source = *self.graph.inputs(id).first()?;
                let axes = self.shapes(source).first().map(|shape| shape.axes.clone())?;
                plus(&mut live.bound, &self.of_axes(&axes));
                // One element may be taken again and again.
                live.forget(rank);
                Some(live)
            }
            _ => None,
        }
    }

    /// Whether the dimension along which an index says where to write does not shrink.
    fn is_written_by_few(&self, id: NodeId, info: &OpInfo) -> Option<bool> {
        let bound = Bound::new(self.graph, id, info.schema.as_ref()?).ok()?;
        let index = *self.shapes(bound.node("index")?).first()?;
        let dim = bound.int("dim")?.rem_euclid(index.axes.len().max(1) as i64) as usize;
        Some(self.classes(*index.axes.get(dim)?).is_empty())
    }

    fn sent(&self, id: NodeId, info: &OpInfo, kind: Collective, inputs: &[&Live]) -> Option<Live> {
        let bound = Bound::new(self.graph, id, info.schema.as_ref()?).ok()?;
        let is_sum =
            || ["reduce_op", "reduceOp"].iter().any(|name| matches!(bound.text(name), Some("sum" | "avg")));
        match kind {
            Collective::AllReduce | Collective::ReduceScatter if !is_sum() => None,
            Collective::AllGather
            | Collective::ReduceScatter
            | Collective::AllReduce
            | Collective::AllToAll
            | Collective::ShardDimAllToAll
            | Collective::Broadcast => Some(moved(inputs, self.rank(id))),
            _ => None,
        }
    }

    fn unary(&mut self, id: NodeId, op: Unary, input: &Live) -> Option<Live> {
        let mut live = input.clone();
        match op {
            Unary::Neg => {}
            Unary::Square => live.join(input, true),
            Unary::Relu
            | Unary::Abs
            | Unary::Sign
            | Unary::Floor
            | Unary::Ceil
            | Unary::Round
            | Unary::Trunc => {
                self.choice(id, &[input]);
            }
            Unary::Silu
            | Unary::Gelu
            | Unary::Tanh
            | Unary::Sin
            | Unary::Sqrt
            | Unary::Expm1
            | Unary::Log1p => {
                live.is_log |= op == Unary::Log1p;
            }
            Unary::Exp | Unary::Exp2 if input.is_log && input.is_summed() => return None,
            _ => {
                // Of 0 it may be another number.
                live.named = vec![false; input.named.len()];
                live.is_pure = false;
                live.is_log |= matches!(op, Unary::Log | Unary::Log2);
            }
        }
        // A function of what has an index has it, whatever its terms are.
        if !matches!(op, Unary::Neg | Unary::Square) {
            live.named.iter_mut().zip(&live.varies).for_each(|(named, varies)| *named |= varies);
            live.is_present = matches!(op, Unary::Exp | Unary::Exp2) || live.varies.contains(&true);
        }
        // A function of a quotient of sizes is none of a polynomial in them.
        if !matches!(op, Unary::Neg | Unary::Square) {
            plus(&mut live.up, &input.down);
            plus(&mut live.down, &input.up);
            live.is_ratio |= input.is_summed();
        }
        Some(live)
    }

    /// What is said of the dimensions of an operand as those of the result that it is broadcast to.
    fn broadcast(&self, id: NodeId, place: usize, dims: &[bool]) -> Vec<bool> {
        let rank = self.rank(id);
        let result: Vec<Leaf> = self.shapes(id).first().map(|shape| shape.axes.clone()).unwrap_or_default();
        let mut inputs = Vec::new();
        self.graph.for_each_input(id, &mut |input| inputs.push(input));
        let own =
            inputs.get(place).and_then(|&input| self.shapes(input).first().map(|shape| shape.axes.clone()));
        let own = own.unwrap_or_default();
        let added = rank.saturating_sub(own.len());
        let is_named = |at: usize| {
            let place = at.checked_sub(added)?;
            let same = self.structure.size(*own.get(place)?) == self.structure.size(*result.get(at)?);
            Some(same && *dims.get(place)?)
        };
        (0..rank).map(|at| is_named(at).unwrap_or(false)).collect()
    }

    fn binary(&mut self, id: NodeId, info: &OpInfo, op: Binary, lives: &[Live]) -> Option<Live> {
        let rank = self.rank(id);
        let bound = Bound::new(self.graph, id, info.schema.as_ref()?).ok()?;
        let operand = |param: usize| match bound.given(param)? {
            Argument::Node(node) => lives.get(node.index()),
            _ => None,
        };
        let (left, right) = (operand(0), operand(1));
        let is_zero = |param: usize| {
            matches!(bound.given(param), Some(Argument::Int(0)))
                || matches!(bound.given(param), Some(Argument::Float(x)) if x == 0.0)
        };
        let number = Live { is_present: !is_zero(0) && !is_zero(1), ..Live::default() };
        let (a, b) = (left.unwrap_or(&number), right.unwrap_or(&number));
        // Places among the tensors that the call takes.
        let place_of_b = usize::from(left.is_some());
        let dims = |live: Option<&Live>, place: usize, dims: fn(&Live) -> Vec<bool>| {
            let mut dims = live.map_or(Vec::new(), |live| self.broadcast(id, place, &dims(live)));
            dims.resize(rank, false);
            dims
        };
        let named = |live: &Live| live.named.clone();
        let (of_a, of_b) = (dims(left, 0, named), dims(right, place_of_b, named));
        let varies = |live: &Live| live.varies.clone();
        let (vary_a, vary_b) = (dims(left, 0, varies), dims(right, place_of_b, varies));
        let all = |live: &Live| vec![true; live.named.len()];
        let (has_a, has_b) = (dims(left, 0, all), dims(right, place_of_b, all));
        let tensors: Vec<&Live> = [left, right].into_iter().flatten().collect();
        let mut live = a.clone();
        match op {
            Binary::Add | Binary::Sub | Binary::Rsub => {
                live.join(b, a.mixes(b));
                live.named = either(of_a, of_b, false);
                live.is_pure = a.is_pure && b.is_pure;
                // What one of both alone has the other one does not take away.
                let alone = |varies: Vec<bool>, other: Vec<bool>| {
                    varies.into_iter().zip(other).map(|(varies, other)| varies && !other).collect()
                };
                live.varies = either(alone(vary_a, has_b), alone(vary_b, has_a), true);
                if [bound.float("alpha"), bound.int("alpha").map(|n| n as f64)].contains(&Some(0.0)) {
                    live.varies = vec![false; rank];
                }
                live.is_present = live.varies.contains(&true);
            }
            Binary::Mul | Binary::Rmul => {
                live.join(b, true);
                live.named = either(of_a, of_b, true);
                live.is_pure = a.is_pure || b.is_pure;
                live.varies = either(vary_a, vary_b, true);
                live.is_present = a.is_present && b.is_present;
                if !live.is_present {
                    live.varies = vec![false; rank];
                }
            }
            Binary::Div if bound.text("rounding_mode").is_none() => {
                plus(&mut live.bound, &b.bound);
                plus(&mut live.up, &b.down);
                plus(&mut live.down, &b.up);
                live.named = of_a;
                live.varies = vec![false; rank];
                live.is_log |= b.is_log;
                live.is_ratio |= b.is_ratio || right.is_some();
            }
            Binary::Pow => {
                let exponent = match bound.given(1) {
                    Some(Argument::Int(n)) => Some(n as f64),
                    Some(Argument::Float(x)) => Some(x),
                    _ => None,
                }?;
                if exponent.fract() != 0.0 || !(1.0..=8.0).contains(&exponent) {
                    let mut live = function(&[a], rank, true);
                    plus(&mut live.up, &a.down);
                    plus(&mut live.down, &a.up);
                    // A power of at most 8 in size, of a sum in size.
                    (0..8.min(exponent.abs().ceil() as u32).saturating_sub(1))
                        .for_each(|_| live.join(a, true));
                    return (exponent.abs() <= 8.0).then_some(live);
                }
                (1..exponent as u32).for_each(|_| live.join(a, true));
                live.named = of_a;
                live.varies = vary_a;
            }
            Binary::ThresholdBackward => {
                self.choice(id, &tensors);
                live.join(b, true);
                live.forget(rank);
                live.named = of_a;
            }
            Binary::Maximum
            | Binary::Minimum
            | Binary::ClampMin
            | Binary::ClampMax
            | Binary::Eq
            | Binary::Ne
            | Binary::Lt
            | Binary::Le
            | Binary::Gt
            | Binary::Ge => {
                self.choice(id, &tensors);
                live = function(&[a, b], rank, true);
                // What is held against places is an index of their dimension.
                for operand in
                    self.graph.inputs(id).into_iter().filter(|&operand| !self.shows_places(operand))
                {
                    let count = self.shapes(operand).first().and_then(|shape| shape.count);
                    if let Some(leaf) = count.and_then(|count| self.state.counts.leaf(count)) {
                        plus(&mut live.bound, &self.classes(leaf));
                    }
                }
            }
            Binary::LogicalAnd | Binary::LogicalOr | Binary::LogicalXor => {
                live = function(&[a, b], rank, true)
            }
            _ => return None,
        }
        Some(live)
    }

    /// A choice between a sum over what shrinks and a constant: its outcome may change with the size.
    fn choice(&mut self, id: NodeId, inputs: &[&Live]) {
        let is_summed = inputs.iter().any(|live| live.is_summed());
        let is_trivial = |value: &Argument| match *value {
            Argument::Int(n) => n == 0,
            Argument::Float(x) => x == 0.0 || x.is_infinite(),
            _ => true,
        };
        let mut are_trivial = self.graph.args(id).iter().all(is_trivial);
        are_trivial &= self.graph.kwargs(id).all(|(_, value)| is_trivial(&value));
        let are_pure = inputs.iter().all(|live| live.is_pure);
        if is_summed && !(are_trivial && are_pure) {
            let why = "chooses between a sum over a dimension that shrinks and a constant";
            self.doubt(id, why, Vec::new());
        }
    }

    fn reduced(&mut self, id: NodeId, info: &OpInfo, kind: Reduce, input: &Live) -> Option<Live> {
        let source = *self.graph.inputs(id).first()?;
        let axes = self.shapes(source).first()?.axes.clone();
        let bound = Bound::new(self.graph, id, info.schema.as_ref()?).ok()?;
        let dims = reduced_dims(&bound, axes.len())?;
        let gone: Vec<Leaf> = dims.iter().filter_map(|&dim| axes.get(dim).copied()).collect();
        let over = self.of_axes(&gone);
        let mut live = input.clone();
        match kind {
            Reduce::Sum | Reduce::Mean => {}
            Reduce::Amax | Reduce::Amin | Reduce::Any | Reduce::All => self.choice(id, &[input]),
            Reduce::Prod if over.is_empty() => {
                return Some(function(&[input], self.rank(id), true));
            }
            _ => return None,
        }
        // A sum of logarithms is a product of as many factors.
        if input.is_log && !over.is_empty() && matches!(kind, Reduce::Sum | Reduce::Mean) {
            plus(&mut live.up, &over);
        }
        plus(&mut live.bound, &over);
        for &dim in &dims {
            if !input.named.get(dim).copied().unwrap_or(false) {
                plus(&mut live.up, &self.classes(*axes.get(dim)?));
            }
        }
        if kind == Reduce::Mean {
            plus(&mut live.down, &over);
        }
        let keeps = bound.bool("keepdim").unwrap_or(false);
        let left = |of: &[bool]| -> Vec<bool> {
            let left = of.iter().enumerate().filter(|(at, _)| keeps || !dims.contains(at));
            left.map(|(_, &of)| of).collect()
        };
        (live.named, live.varies) = (left(&input.named), left(&input.varies));
        // Terms that have no index of the sum may take one another away.
        if !dims.iter().all(|&dim| input.named.get(dim) == Some(&true)) {
            live.varies.iter_mut().for_each(|varies| *varies = false);
            live.is_present = false;
        }
        Some(live)
    }

    /// What lies on one side of the diagonal of a square.
    fn triangle(&mut self, id: NodeId, info: &OpInfo, input: &Live) -> Option<Live> {
        let bound = Bound::new(self.graph, id, info.schema.as_ref()?).ok()?;
        let [.., rows, columns] = self.shapes(id).first()?.axes[..] else { return None };
        let [rows, columns] = [rows, columns].map(|axis| self.structure.root(axis));
        if rows != columns || !is_order(info.short, bound.int("diagonal")?) {
            return None;
        }
        self.ordered.push(rows);
        Some(Live { varies: vec![false; input.varies.len()], is_present: false, ..input.clone() })
    }

    /// A sum over all places up to its own.
    fn summed_up_to(&mut self, id: NodeId, info: &OpInfo, input: &Live) -> Option<Live> {
        let source = *self.graph.inputs(id).first()?;
        let axes = self.shapes(source).first()?.axes.clone();
        let bound = Bound::new(self.graph, id, info.schema.as_ref()?).ok()?;
        let dim = bound.int("dim")?.rem_euclid(axes.len().max(1) as i64) as usize;
        let axis = *axes.get(dim)?;
        let over = self.classes(axis);
        let mut live = input.clone();
        plus(&mut live.bound, &over);
        if input.is_log || input.named.get(dim) != Some(&true) {
            plus(&mut live.up, &over);
        }
        if !over.is_empty() {
            self.ordered.push(axis);
            live.named = input.named.iter().enumerate().map(|(at, named)| *named && at != dim).collect();
            live.varies = vec![false; axes.len()];
            live.is_present = false;
        }
        Some(live)
    }

    fn multiplied(&mut self, id: NodeId, info: &OpInfo, kind: Matmul, lives: &[Live]) -> Option<Live> {
        let rank = self.rank(id);
        let bound = Bound::new(self.graph, id, info.schema.as_ref()?).ok()?;
        let first = usize::from(matches!(kind, Matmul::Addmm | Matmul::Baddbmm));
        let node = |param: usize| match bound.given(param)? {
            Argument::Node(node) => Some(node),
            _ => None,
        };
        let (left, right) = (node(first)?, node(first + 1)?);
        let (a, b) = (lives.get(left.index())?, lives.get(right.index())?);
        let inner = *self.shapes(left).first()?.axes.last()?;
        let over = self.classes(inner);
        let mut live = a.clone();
        live.join(b, true);
        plus(&mut live.bound, &over);
        let place = b.named.len().checked_sub(if b.named.len() > 1 { 2 } else { 1 });
        let is_named = a.named.last() == Some(&true) || place.and_then(|at| b.named.get(at)) == Some(&true);
        if !is_named {
            plus(&mut live.up, &over);
        }
        let mut all = a.named.iter().chain(&b.named).all(|&named| named);
        live.is_pure = a.is_pure || b.is_pure;
        if first == 1 {
            let bias = lives.get(node(0)?.index())?;
            live.join(bias, live.mixes(bias));
            all &= self.broadcast(id, 0, &bias.named).iter().all(|&named| named);
            live.is_pure &= bias.is_pure;
        }
        live.forget(rank);
        live.named = vec![all; rank];
        Some(live)
    }

    /// A sum that counts places whose order matters depends on where it ends.
    fn counted_places(&mut self) {
        for leaf in std::mem::take(&mut self.ordered) {
            let counted =
                self.classes(leaf).into_keys().find(|class| self.up.get(class).is_some_and(|n| *n > 0));
            if let Some(size) = counted {
                self.in_doubt.insert(leaf);
                self.doubts
                    .insert(format!("places of a dimension of {size} are compared in order, and counted"));
            }
        }
    }

    /// Positions of a dimension that shrinks are uniform as indices, and where they are compared with a boundary or with others
    /// of it.
    fn positions(&mut self) {
        let state = self.state;
        for one in &self.read.arithmetic {
            let (leaves, from) = one.leaves(state);
            let is_boundary = one.law == Law::Compare && one.sources.len() == 1 && from.is_empty();
            let op = match self.ops.get(self.graph, one.node).kind {
                Kind::Binary(op) if compares(op) => Some(op),
                _ => None,
            };
            let are_places = op.is_some()
                && one.sources.len() == 2
                && one
                    .sources
                    .iter()
                    .all(|source| source.is_some_and(|count| state.counts.leaf(count).is_some()))
                && leaves.len() == 1
                && from.is_empty();
            if are_places && !matches!(op, Some(Binary::Eq | Binary::Ne)) {
                self.ordered.extend(&leaves);
            }
            let leaves: Vec<Leaf> = leaves.into_iter().chain(from).collect();
            if self.shrink(&leaves) && !is_boundary && !are_places {
                self.doubt(one.node, "computes with positions of a dimension that shrinks", leaves);
            }
        }
    }
}

fn compares(op: Binary) -> bool {
    matches!(op, Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge)
}

fn either(a: Vec<bool>, b: Vec<bool>, is_or: bool) -> Vec<bool> {
    a.into_iter().zip(b).map(|(a, b)| if is_or { a || b } else { a && b }).collect()
}

/// Elements of the inputs, moved: what holds of all dimensions of all of them holds of those of the result.
fn moved(inputs: &[&Live], rank: usize) -> Live {
    let mut live = Live::input(rank);
    for input in inputs {
        live.join(input, false);
        live.is_pure &= input.is_pure;
        live.is_present &= input.is_present;
        if input.named.contains(&false) {
            live.named = vec![false; rank];
        }
        if input.varies.contains(&false) || !input.is_present {
            live.varies = vec![false; rank];
        }
    }
    live
}

/// Some function of the inputs.
fn function(inputs: &[&Live], rank: usize, is_number: bool) -> Live {
    let mut live = Live { is_pure: !is_number, ..Live::default() };
    live.forget(rank);
    inputs.iter().for_each(|input| live.join(input, true));
    live.is_ratio |= live.is_summed();
    live
}
