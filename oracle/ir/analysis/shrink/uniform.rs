//! Whether equality at two small assignments proves equality at the recorded sizes.
//!
//! # The statement
//!
//! Let each element of an observable be a sum, over indices of the sizes that shrink, of products of inputs, their
//! functions and numbers. Let no term hold more than `d` indices of one size, its own included, and let the coefficients be
//! rational functions of one size, whose numerators and denominators have degrees that add up to at most one. Then two programs
//! that are equal, as such expressions, at two assignments of sizes that are at least `d` are equal at all.
//!
//! *Why:* everything here moves whole digits and pieces, so both programs are symmetric under permutations of the positions
//! within each; a term names at most `d` positions of a size, and which of these coincide is a pattern that occurs at size `d`
//! already. What is left of their difference is a polynomial in one size, of degree one, with two zeros. With coefficients
//! in two sizes two assignments are not enough: `s - t + 1` vanishes at both.
//!
//! # How it is established
//!
//! One pass over each graph bounds, for each value and each size that shrinks, how many indices a term has summed over
//! ([`Live::bound`]) and the degrees of coefficients. An index is *named* if it occurs in every term; a sum over one that is not
//! gives a factor of the size. Whatever is not listed is a doubt: operators of order, what the table of operators gives no meaning,
//! positions as numbers, writes (their effects on other views are not followed).
//!
//! # What it presumes
//!
//! That the two programs were equal *as expressions*, not by chance: where a value chooses (`relu`, `where`, a maximum) each
//! outcome was seen, or cannot occur. Bounds of sums at small sizes are no reason that it cannot; a choice between a sum and a
//! constant is a doubt here.

use super::call::State;
use super::positions::Law;
use super::read::Read;
use super::rules::reduced_dims;
use super::scalars::Form;
use super::sizes::Sizes;
use super::structure::{Leaf, Structure};
use super::values::{Shape, Value};
use crate::graph::{Dtype, DtypeClass, Graph, NodeId, Op, Value as Argument};
use crate::ops::{
    Binary, Bound, Collective, Fill, Kind, Matmul, Move, OpInfo, Ops, Random, Reduce, Unary, View,
};
use std::collections::{BTreeMap, BTreeSet};

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
    /// Whether no term is a number.
    is_pure: bool,
    /// Whether it is made of a logarithm: then a sum is a product.
    is_log: bool,
    /// Whether it is a quotient, or another function of a sum: a sum of them has all their denominators.
    is_ratio: bool,
}

impl Live {
    fn input(rank: usize) -> Live {
        Live { named: vec![true; rank], is_pure: true, ..Live::default() }
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
    sizes: &'s Sizes,
    doubts: BTreeSet<String>,
    up: Powers,
    down: Powers,
}

/// The degrees of coefficients, and why an equality may not carry over.
#[derive(Default)]
pub struct Found {
    /// Why not.
    pub doubts: BTreeSet<String>,
    up: Powers,
    down: Powers,
    /// The most indices of a size that a term of each node has summed over, and those of its own dimensions.
    needs: Vec<(String, Powers, Powers)>,
    has_ratio: bool,
}

impl Found {
    /// Adds what one graph shows.
    pub fn add(&mut self, graph: &Graph, ops: &Ops, read: &Read, state: &State, sizes: &Sizes) {
        let structure = &state.structure;
        let (up, down, doubts) = Default::default();
        let mut survey = Survey { graph, ops, read, state, structure, sizes, doubts, up, down };
        let lives = survey.walk();
        survey.positions();
        most(&mut self.up, &survey.up);
        most(&mut self.down, &survey.down);
        self.has_ratio |= lives.iter().any(|live| live.is_ratio);
        for (id, live) in graph.ids().zip(lives) {
            let mut own = Powers::new();
            survey.shapes(id).iter().for_each(|shape| most(&mut own, &survey.of_axes(&shape.axes)));
            if !(own.is_empty() && live.bound.is_empty()) {
                self.needs.push((format!("{} ({})", graph.name(id), graph.target(id)), own, live.bound));
            }
        }
        self.doubts.append(&mut survey.doubts);
    }

    /// A size must have room for all indices of a term. Where quotients are compared, the terms of one side are multiplied by
    /// denominators of the other.
    pub fn close(&mut self, sizes: &Sizes) {
        for (node, own, bound) in std::mem::take(&mut self.needs) {
            let mut indices = own;
            (0..=u32::from(self.has_ratio)).for_each(|_| plus(&mut indices, &bound));
            for (class, needs) in indices {
                let size = sizes.of_class(class).unwrap_or(class);
                if i64::from(needs) > size {
                    let words = format!("{node} holds {needs} indices of {class}, which becomes {size}");
                    self.doubts.insert(words);
                }
            }
        }
    }

    /// Whether no coefficient depends on a size: nothing is averaged, and no sum counts what it adds.
    pub fn is_free_of_sizes(&self) -> bool {
        self.up.values().chain(self.down.values()).all(|&degree| degree == 0)
    }

    /// Why not, with numbers that are read as counts.
    pub fn with<'f>(
        &self,
        structure: &Structure,
        sizes: &Sizes,
        forms: impl Iterator<Item = &'f Form>,
    ) -> Vec<String> {
        let (mut up, mut down, mut doubts) = (self.up.clone(), self.down.clone(), self.doubts.clone());
        for form in forms {
            if !form.is_rational() {
                doubts.insert("a root of a size is a coefficient".to_string());
            }
            let mut powers = Powers::new();
            for &axis in &form.axes {
                plus(&mut powers, &classes(structure, sizes, axis, 0));
            }
            // It may multiply what is divided by one, or another one of them.
            plus(if form.divides() { &mut down } else { &mut up }, &powers);
        }
        plus(&mut up, &down);
        let degree: u64 = up.values().map(|&n| u64::from(n)).sum();
        if degree > 1 {
            let classes: Vec<String> = up.keys().map(i64::to_string).collect();
            doubts.insert(format!("coefficients of degree {degree} in the sizes {}", classes.join(", ")));
        }
        doubts.into_iter().collect()
    }
}

/// How many indices of each size that shrinks one position of a dimension is made of.
fn classes(structure: &Structure, sizes: &Sizes, leaf: Leaf, depth: u32) -> Powers {
    let mut all = Powers::new();
    for piece in structure.pieces(leaf).unwrap_or_default() {
        let mut of_piece = Powers::new();
        for digit in piece {
            if structure.is_free(digit) {
                let size = structure.size(digit);
                if sizes.of_class(size).is_some() {
                    *of_piece.entry(size).or_default() += 1;
                }
            } else if depth < 50 {
                plus(&mut of_piece, &classes(structure, sizes, digit, depth + 1));
            }
        }
        most(&mut all, &of_piece);
    }
    all
}

impl Survey<'_> {
    fn classes(&self, leaf: Leaf) -> Powers {
        classes(self.structure, self.sizes, leaf, 0)
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

    fn doubt(&mut self, id: NodeId, why: &str) {
        let (name, target) = (self.graph.name(id), self.graph.target(id));
        self.doubts.insert(format!("{name} ({target}) {why}"));
    }

    fn walk(&mut self) -> Vec<Live> {
        let mut lives: Vec<Live> = Vec::with_capacity(self.graph.len());
        for id in self.graph.ids() {
            let live = match self.graph.node(id).op {
                Op::Placeholder | Op::GetAttr => Live::input(self.rank(id)),
                Op::Output => Live::default(),
                Op::Call => self.called(id, &lives),
            };
            most(&mut self.up, &live.up);
            most(&mut self.down, &live.down);
            lives.push(live);
        }
        lives
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
        let writes = info.writes() || !info.undeclared_writes().is_empty();
        if writes && (is_small || inputs.iter().any(|input| input.is_summed())) {
            self.doubt(id, "writes to a tensor that shrinks, or what was summed over one");
        }
        let made = self.live(id, info, &inputs, lives);
        let Some(mut live) = made else {
            // A function of corresponding elements is one at all sizes, whatever it is.
            let is_elementwise = info.kind.is_elementwise() || info.kind == Kind::Cast;
            if is_small && !is_elementwise || inputs.iter().any(|input| input.is_summed()) {
                self.doubt(id, "is no symmetric function of a dimension that shrinks");
            }
            return function(&inputs, rank, true);
        };
        live.named.resize(rank, false);
        live
    }

    /// What is known of the result of a call whose meaning is.
    fn live(&mut self, id: NodeId, info: &OpInfo, inputs: &[&Live], lives: &[Live]) -> Option<Live> {
        let rank = self.rank(id);
        match info.kind {
            // Which elements lie on it depends on two dimensions at once.
            Kind::View(View::Diagonal) => None,
            Kind::View(view) => Some(self.shown(id, view, inputs)),
            Kind::Move(movement) => self.moved(id, info, movement, inputs),
            Kind::Cast => {
                let from = self.graph.inputs(id).first().and_then(|&input| self.graph.tensor_at(input, 0));
                let (from, to) = (from?.dtype, self.graph.tensor_at(id, 0)?.dtype);
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
                Some(Live { named: vec![is_zero; rank], is_pure: is_zero, ..Live::default() })
            }
            Kind::Random(Random::Rand | Random::Randn) => Some(Live::input(rank)),
            // Places of a dimension, each its own.
            Kind::Arange | Kind::Opaque if self.counts_places(id) => {
                self.are_places(id).then(|| Live { is_pure: false, ..Live::input(rank) })
            }
            Kind::Unary(op) => self.unary(id, op, inputs.first()?),
            Kind::Binary(op) => self.binary(id, info, op, lives),
            Kind::Where | Kind::Clamp | Kind::MaskedFill | Kind::Pointwise => {
                // What decides is a comparison before it.
                if info.kind == Kind::Clamp {
                    self.choice(id, inputs);
                }
                Some(function(inputs, rank, true))
            }
            Kind::Fma => {
                let [a, b, c] = inputs[..] else { return None };
                let mut live = function(&[a, b], rank, !(a.is_pure || b.is_pure));
                live.named = either(self.named(id, 0, a), self.named(id, 1, b), true);
                live.named = either(live.named, self.named(id, 2, c), false);
                live.join(c, live.mixes(c));
                live.is_pure &= c.is_pure;
                Some(live)
            }
            Kind::Reduce(kind) => self.reduced(id, info, kind, inputs.first()?),
            Kind::Matmul(kind) => self.multiplied(id, info, kind, lives),
            _ => None,
        }
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
                Kind::Binary(Binary::Eq | Binary::Ne) => true,
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
            for (at, (named, &axis)) in live.named.iter_mut().zip(&to.axes).enumerate() {
                let same = at.checked_sub(added).and_then(|at| from.axes.get(at));
                *named &= same.is_some_and(|&same| self.structure.size(same) == self.structure.size(axis));
            }
        }
        live
    }

    fn moved(&mut self, id: NodeId, info: &OpInfo, movement: Move, inputs: &[&Live]) -> Option<Live> {
        let rank = self.rank(id);
        match movement {
            Move::Clone
            | Move::Flip
            | Move::Roll
            | Move::Cat
            | Move::Stack
            | Move::SliceScatter
            | Move::SelectScatter
            | Move::SplitWithSizesCopy => Some(moved(inputs, rank)),
            Move::Copy => {
                // The first one only has the shape.
                let from = *inputs.last()?;
                Some(Live { named: vec![false; rank], ..from.clone() })
            }
            Move::Pad => {
                let bound = Bound::new(self.graph, id, info.schema.as_ref()?).ok()?;
                let mut live = moved(inputs, rank);
                if bound.float("value") != Some(0.0) {
                    live.named = vec![false; rank];
                    live.is_pure = false;
                }
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
                live.named = vec![false; rank];
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
                live.named = vec![false; input.named.len()];
                live.is_pure = false;
                live.is_log |= matches!(op, Unary::Log | Unary::Log2);
            }
        }
        // A function of a quotient of sizes is none of a polynomial in them.
        if !matches!(op, Unary::Neg | Unary::Square) {
            plus(&mut live.up, &input.down);
            plus(&mut live.down, &input.up);
            live.is_ratio |= input.is_summed();
        }
        Some(live)
    }

    /// The named dimensions of an operand as those of the result that it is broadcast to.
    fn named(&self, id: NodeId, place: usize, live: &Live) -> Vec<bool> {
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
            Some(same && *live.named.get(place)?)
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
        let number = Live { named: Vec::new(), ..Live::default() };
        let (a, b) = (left.unwrap_or(&number), right.unwrap_or(&number));
        // Places among the tensors that the call takes.
        let of_a = left.map_or(Vec::new(), |live| self.named(id, 0, live));
        let of_b = right.map_or(Vec::new(), |live| self.named(id, usize::from(left.is_some()), live));
        let pad = |mut named: Vec<bool>| {
            named.resize(rank, false);
            named
        };
        let (of_a, of_b) = (pad(of_a), pad(of_b));
        let tensors: Vec<&Live> = [left, right].into_iter().flatten().collect();
        let mut live = a.clone();
        match op {
            Binary::Add | Binary::Sub | Binary::Rsub => {
                live.join(b, a.mixes(b));
                live.named = either(of_a, of_b, false);
                live.is_pure = a.is_pure && b.is_pure;
            }
            Binary::Mul => {
                live.join(b, true);
                live.named = either(of_a, of_b, true);
                live.is_pure = a.is_pure || b.is_pure;
            }
            Binary::Div if bound.text("rounding_mode").is_none() => {
                plus(&mut live.bound, &b.bound);
                plus(&mut live.up, &b.down);
                plus(&mut live.down, &b.up);
                live.named = of_a;
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
            }
            Binary::ThresholdBackward => {
                self.choice(id, &tensors);
                live.join(b, true);
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
            self.doubt(id, "chooses between a sum over a dimension that shrinks and a constant");
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
            Reduce::Amax | Reduce::Amin => self.choice(id, &[input]),
            Reduce::Prod | Reduce::Any | Reduce::All if over.is_empty() => {
                return Some(function(&[input], self.rank(id), true));
            }
            _ => return None,
        }
        // A sum of logarithms is a product of as many factors.
        if input.is_log && !over.is_empty() && kind != Reduce::Amax && kind != Reduce::Amin {
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
        let left = input.named.iter().enumerate().filter(|(at, _)| keeps || !dims.contains(at));
        live.named = left.map(|(_, &named)| named).collect();
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
            all &= self.named(id, 0, bias).iter().all(|&named| named);
            live.is_pure &= bias.is_pure;
        }
        live.named = vec![all; rank];
        Some(live)
    }

    /// Positions of a dimension that shrinks are uniform as indices, and where they are compared with a boundary, or are the
    /// same as others of it.
    fn positions(&mut self) {
        let state = self.state;
        for one in &self.read.arithmetic {
            let (leaves, from) = one.leaves(state);
            let shrinks = |leaf: &Leaf| !self.classes(*leaf).is_empty();
            let is_boundary = one.law == Law::Compare && one.sources.len() == 1 && from.is_empty();
            let is_equality =
                matches!(self.ops.get(self.graph, one.node).kind, Kind::Binary(Binary::Eq | Binary::Ne));
            let is_coincidence = is_equality
                && one.sources.len() == 2
                && one
                    .sources
                    .iter()
                    .all(|source| source.is_some_and(|count| state.counts.leaf(count).is_some()))
                && leaves.len() == 1
                && from.is_empty();
            if leaves.iter().chain(&from).any(shrinks) && !is_boundary && !is_coincidence {
                self.doubt(one.node, "computes with positions of a dimension that shrinks");
            }
        }
    }
}

fn either(a: Vec<bool>, b: Vec<bool>, is_or: bool) -> Vec<bool> {
    a.into_iter().zip(b).map(|(a, b)| if is_or { a || b } else { a && b }).collect()
}

/// Elements of the inputs, moved: named only where all of theirs are.
fn moved(inputs: &[&Live], rank: usize) -> Live {
    let mut live = Live::input(rank);
    for input in inputs {
        live.join(input, false);
        live.is_pure &= input.is_pure;
        if input.named.iter().any(|&named| !named) {
            live.named = vec![false; rank];
        }
    }
    live
}

/// Some function of the inputs.
fn function(inputs: &[&Live], rank: usize, is_number: bool) -> Live {
    let mut live = Live { named: vec![false; rank], is_pure: !is_number, ..Live::default() };
    inputs.iter().for_each(|input| live.join(input, true));
    live.is_ratio |= live.is_summed();
    live
}
