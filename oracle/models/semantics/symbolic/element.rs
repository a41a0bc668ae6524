//! Two elements: what they are to each other.
//!
//! Elements of one source are the same, or others of it. Those of one operator are the same if its inputs are. What
//! differs for certain is said of elements that come from different places, and of calls that depend on different
//! inputs.

use super::GroupId;
use super::algebra::Family;
use super::arena::Arena;
use super::key::{self, KeyDifference, Tag, difference};
use super::place::{GroupSet, HERE, PlaceId};
use super::same::{Judge, Pair, Relation};
use super::source::{KeyId, Source, SourceId, Symbol, Traits, ValueId};
use crate::ops::{self, Default};

/// One element, which may stand for those that follow it in its source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Element {
    pub(super) source: SourceId,
    pub(super) place: PlaceId,
    pub(super) offset: i64,
    /// How many it stands for, itself included.
    pub(super) len: i64,
}

impl Judge<'_> {
    pub(super) fn compare_elements(&mut self, a: Element, b: Element) -> Relation {
        match self.compare_on_each_rank(a, b) {
            // What depends on the own index in another way may still be told apart index by index, where that may be any.
            Relation::Unknown
                if self.arena.places.scales_differ(a.place, b.place) && self.arena.places.own.is_empty() =>
            {
                match self.index_group(a).or_else(|| self.index_group(b)) {
                    Some(group) => self.compare_by_index(a, b, group),
                    None => Relation::Unknown,
                }
            }
            relation => relation,
        }
    }

    pub(super) fn compare_on_each_rank(&mut self, a: Element, b: Element) -> Relation {
        if a == b {
            return Relation::Same;
        }
        let traits = self.arena.source_traits(a.source).and(self.arena.source_traits(b.source));
        // What one rank has not written makes a reduction unwritten, whatever the other ranks hold.
        let reduces =
            |at: Element| !matches!(self.arena.get(at.source), Source::Poison | Source::Select { .. });
        let holds = |at: Element| self.arena.source_traits(at.source).has(Traits::POISON);
        let both_unwritten = holds(a) && holds(b) && (reduces(a) || reduces(b));
        let assumed = traits.has(Traits::ASSUMED) || both_unwritten;
        let different = || if assumed { Relation::Unknown } else { Relation::Different };
        // What rests on an assumption is known to depend on nothing; but on what it is not known to depend, it does
        // not.
        if self.arena.depend_on_others(a.source, b.source) {
            return Relation::Different;
        }
        let alike = a.place == b.place && a.offset == b.offset;
        if !alike && a.place != b.place && self.arena.places.may_be_equal(a.place, b.place) {
            return Relation::Unknown;
        }
        let is_elsewhere = a.offset != b.offset || self.arena.places.scales_differ(a.place, b.place);
        // In the graph of one rank, what the own rank holds is what it gets of itself.
        let at_home = |at: Element| self.arena.places.at_home(at.place, at.offset);
        if a.source == b.source && at_home(a).is_some_and(|offset| at_home(b) == Some(offset)) {
            return Relation::Unknown;
        }
        match (self.arena.get(a.source), self.arena.get(b.source)) {
            _ if self.holds_window(a.source) || self.holds_window(b.source) => {
                match (self.resolve(a, 0), self.resolve(b, 0)) {
                    (Some(x), Some(y)) if (x, y) != (a, b) => Relation::IfSame(vec![Pair::Elements(x, y)]),
                    _ => match self.index_group(a).or_else(|| self.index_group(b)) {
                        Some(group) => self.compare_by_index(a, b, group),
                        None => Relation::Unknown,
                    },
                }
            }
            _ if a.source == b.source
                && self.tells_elements_apart(a.source)
                && (!is_elsewhere || !self.is_elementwise(a.source)) =>
            {
                // The same element on two ranks may be one value, unless it differs along what parts them.
                let groups = self.arena.varies(a.source);
                let moves = |place| &self.arena.places.get(place).moves;
                let parted = a.offset != b.offset
                    || moves(a.place) == moves(b.place)
                    || self.arena.places.part_along(a.place, b.place, groups);
                if parted { different() } else { Relation::Unknown }
            }
            (Source::Cast { source: s, from: f, to: t }, Source::Cast { source: r, from: g, to: u })
                if (f, t) == (g, u) =>
            {
                Relation::IfSame(vec![Pair::Elements(Element { source: s, ..a }, Element { source: r, ..b })])
            }
            (Source::Bits { source: s, from: f, to: t }, Source::Bits { source: r, from: g, to: u })
                if (f, t) == (g, u) && f.itemsize() == t.itemsize() =>
            {
                Relation::IfSame(vec![Pair::Elements(Element { source: s, ..a }, Element { source: r, ..b })])
            }
            (
                Source::Reduced { op: o, group: g, source: s, place: p },
                Source::Reduced { op: n, group: h, source: r, place: q },
            ) if (o, g) == (n, h) && a.place == b.place => {
                let pair = Pair::Elements(
                    Element { source: s, place: p, ..a },
                    Element { source: r, place: q, ..b },
                );
                if both_unwritten { Relation::Perhaps(vec![pair]) } else { Relation::IfSame(vec![pair]) }
            }
            (Source::Opaque { key: k, output: n }, Source::Opaque { key: l, output: m })
                if alike && n == m =>
            {
                match self.compare_keys(k, l) {
                    Relation::Different if assumed => Relation::Unknown,
                    Relation::Different => self.compare_functions(a, b),
                    Relation::IfSame(pairs) if assumed => Relation::Perhaps(pairs),
                    Relation::IfSame(_) if let Some(relation) = self.compare_exchangeable((k, a), (l, b)) => {
                        relation
                    }
                    Relation::IfSame(whole)
                        if whole.len() > 1 && (self.arena.has_exchange(k) || self.may_make_up(&whole)) =>
                    {
                        Relation::Perhaps(whole)
                    }
                    Relation::IfSame(whole) => match self.made_of((k, a), (l, b)) {
                        Some(mut made_of) => {
                            made_of.extend(whole.iter().filter(|pair| matches!(pair, Pair::Keys(..))));
                            Relation::Made { whole, made_of }
                        }
                        None => Relation::IfSame(whole),
                    },
                    relation => relation,
                }
            }
            (Source::Opaque { key: k, output: n }, Source::Opaque { key: l, output: m })
                if a.offset != b.offset
                    && n == m
                    && difference(self.arena.words(k), self.arena.words(l)) != KeyDifference::Call
                    && self.is_elementwise(a.source) =>
            {
                match self.made_of((k, a), (l, b)) {
                    Some(made_of) if !assumed && !self.arena.has_exchange(k) => {
                        self.compare_exchangeable((k, a), (l, b)).unwrap_or(Relation::Apart(made_of))
                    }
                    _ => Relation::Unknown,
                }
            }
            // The same call on another rank may have the same inputs there.
            (Source::Opaque { key: k, output: n }, Source::Opaque { key: l, output: m })
                if a.offset == b.offset && n == m =>
            {
                match difference(self.arena.words(k), self.arena.words(l)) {
                    KeyDifference::Call if assumed => Relation::Unknown,
                    KeyDifference::Call => self.compare_functions(a, b),
                    KeyDifference::Shapes | KeyDifference::Inputs(..) => Relation::Unknown,
                }
            }
            (
                Source::Reduced { op: o, group: g, source: s, place: p },
                Source::Reduced { op: n, group: h, source: r, place: q },
            ) if o != n && alike && (g, s, p) == (h, r, q) => {
                match !assumed && self.reduced_otherwise((o, n), g, (s, p)) {
                    true => Relation::Different,
                    false => Relation::Unknown,
                }
            }
            (
                Source::Reduced { op: o, group: g, source: s, place: p },
                Source::Reduced { op: n, group: h, source: r, place: q },
            ) if o == n => {
                let one = self.arena.varies(s).and(self.arena.places.follows(p));
                let other = self.arena.varies(r).and(self.arena.places.follows(q));
                let elsewhere = a.offset != b.offset && a.place == b.place
                    || self.arena.places.scales_differ(a.place, b.place);
                let other_elements = elsewhere
                    && s == r
                    && self.tells_elements_apart(s)
                    && !self.is_elementwise(s)
                    && one != GroupSet::NONE;
                let other_ranks = g != h && self.reduced_apart((a.place, g, one), (b.place, h, other));
                if other_elements || other_ranks { different() } else { Relation::Unknown }
            }
            (Source::Select { group, .. }, _) | (_, Source::Select { group, .. }) => {
                self.compare_by_index(a, b, group)
            }
            (Source::Elsewhere { .. } | Source::Bits { .. }, _)
            | (_, Source::Elsewhere { .. } | Source::Bits { .. }) => Relation::Unknown,
            _ if assumed => Relation::Unknown,
            _ => self.compare_functions(a, b),
        }
    }

    /// Whether operands that are made by other calls than before may make up for one another, as those of `x - y` and
    /// of `-y - -x` do. Operands that only traded places do not, nor those that are the same calls of other elements.
    fn may_make_up(&self, pairs: &[Pair]) -> bool {
        let values = pairs.iter().filter_map(|pair| match *pair {
            Pair::Values(a, b) => Some((a, b)),
            _ => None,
        });
        let (mut one, mut other): (Vec<ValueId>, Vec<ValueId>) = values.clone().unzip();
        one.sort_unstable();
        other.sort_unstable();
        one != other
            && values
                .filter_map(|(a, b)| Some((self.arena.element(a, 0)?, self.arena.element(b, 0)?)))
                .any(|(a, b)| !self.are_made_alike(a.source, b.source))
    }

    /// Whether two sources are made by calls of one operator, or both by none.
    fn are_made_alike(&self, a: SourceId, b: SourceId) -> bool {
        let (mut a, mut b) = (self.arena.uncast(a), self.arena.uncast(b));
        while let (Source::Reduced { op, source, .. }, Source::Reduced { op: other_op, source: other, .. }) =
            (self.arena.get(a), self.arena.get(b))
            && op == other_op
        {
            (a, b) = (self.arena.uncast(source), self.arena.uncast(other));
        }
        let operator = |source| match self.arena.get(source) {
            Source::Opaque { key, .. } => Some(key::target(self.arena.words(key))),
            Source::Reduced { op, .. } => Some(Some(op)),
            _ => None,
        };
        operator(a) == operator(b)
    }

    /// Whether two calls take the same tensors.
    fn take_the_same(&self, a: SourceId, b: SourceId) -> bool {
        match (self.arena.get(a), self.arena.get(b)) {
            (Source::Opaque { key: k, .. }, Source::Opaque { key: l, .. }) => {
                let (one, other) = (self.arena.words(k), self.arena.words(l));
                key::tensors(one).eq(key::tensors(other))
            }
            _ => false,
        }
    }

    /// Whether one of two calls of an operator says what the other leaves open: what is meant there may be what is said
    /// here.
    fn leaves_open(&self, a: SourceId, b: SourceId) -> bool {
        let (Source::Opaque { key: k, .. }, Source::Opaque { key: l, .. }) =
            (self.arena.get(self.arena.uncast(a)), self.arena.get(self.arena.uncast(b)))
        else {
            return false;
        };
        let stated = |key| -> Vec<u32> {
            let all = key::tokens(self.arena.words(key));
            let arguments = all.filter(|(word, _)| key::tag(*word) == Some(Tag::Argument));
            arguments.map(|(word, _)| key::payload(word)).collect()
        };
        let (one, other) = (stated(k), stated(l));
        let text = key::target(self.arena.words(k)).map(|target| self.arena.text(target));
        let schema = text.and_then(ops::by_target).and_then(|info| info.schema.as_ref());
        let is_open = |index: &u32| {
            let param = schema.and_then(|schema| schema.params.get(*index as usize));
            param.is_some_and(|param| param.default == Some(Default::None))
        };
        let apart = |index: &&u32| one.contains(index) != other.contains(index);
        one.iter().chain(&other).filter(apart).any(is_open)
    }

    /// Whether two reductions of the same elements over one group give other values: a sum of what is not 0 is no
    /// average and no maximum of it. The largest, the least and the average of what all ranks share are one value.
    fn reduced_otherwise(
        &mut self,
        (o, n): (Symbol, Symbol),
        group: GroupId,
        (source, place): (SourceId, PlaceId),
    ) -> bool {
        let grows = |op| ["sum", "product"].contains(&self.arena.text(op));
        let grows = grows(o) || grows(n);
        let varies = self.arena.varies(source).and(self.arena.places.follows(place)).has(group);
        let has_ranks = self.arena.places.group_size(group).is_some_and(|size| size > 1);
        has_ranks && (grows || varies) && self.arena.depends_on_inputs(source)
    }

    /// Elements of sources that are made by other calls, or by none.
    pub(super) fn compare_functions(&mut self, a: Element, b: Element) -> Relation {
        let operator = |arena: &Arena, source| match arena.get(source) {
            Source::Opaque { key, .. } => key::target(arena.words(key)),
            _ => None,
        };
        let (one, other) = (operator(self.arena, a.source), operator(self.arena, b.source));
        // Operators that draw may draw the same: `rand`, and `uniform_` of what is empty.
        let is_drawn = |arena: &Arena, source| match arena.get(source) {
            Source::Opaque { key, .. } => {
                key::tokens(arena.words(key)).any(|(word, _)| key::tag(word) == Some(Tag::Draw))
            }
            _ => false,
        };
        if one != other && [a, b].iter().all(|at| is_drawn(self.arena, at.source)) {
            return Relation::Unknown;
        }
        // Another cast.
        if self.arena.uncast(a.source) == self.arena.uncast(b.source) {
            return Relation::Different;
        }
        // Another constant. On other operands it may come to the same: `(x * 2) * 3` and `x * 6`.
        let is_same_operator = one.is_some() && one == other;
        if is_same_operator
            && self.take_the_same(a.source, b.source)
            && !self.is_fixed(a.source)
            && !self.leaves_open(a.source, b.source)
        {
            return Relation::Different;
        }
        // Of no other call it is known that it does not give back what it takes, or what another one makes of it.
        if self.may_be_any(a.source) || self.may_be_any(b.source) {
            return Relation::Unknown;
        }
        match (self.arena.family(a.source), self.arena.family(b.source)) {
            (Family::Smooth, Family::Smooth) | (Family::Broken, Family::Broken) => Relation::Unknown,
            (Family::Other, Family::Other) => Relation::Different,
            // Constants may be computed of constants.
            _ if ![a, b].iter().any(|at| self.arena.depends_on_inputs(at.source)) => Relation::Unknown,
            // A product of matrices may be a part of the other.
            _ if self.is_elementwise(a.source) && self.is_elementwise(b.source) => self.compare_leaves(a, b),
            // One may be what the other one is made of: times 1, or the larger of what is positive and 0.
            _ => self.compare_with_parts(a, b),
        }
    }

    /// Whether a call that is not computed takes no tensors and draws nothing: another one may give the same numbers,
    /// as `iota` and `arange` do.
    fn is_fixed(&self, source: SourceId) -> bool {
        match self.arena.get(self.arena.uncast(source)) {
            Source::Opaque { key, .. } => {
                let takes = |(word, _)| {
                    matches!(key::tag(word), Some(Tag::Tensor | Tag::Token | Tag::Draw | Tag::Number))
                };
                !key::tokens(self.arena.words(key)).any(takes)
            }
            _ => false,
        }
    }

    /// Whether a source is a call of which no more is known than what it depends on.
    fn may_be_any(&self, source: SourceId) -> bool {
        let source = self.arena.uncast(source);
        match self.arena.get(source) {
            Source::Opaque { key, .. } => {
                let is_tensor = |(word, _)| matches!(key::tag(word), Some(Tag::Tensor | Tag::Token));
                let takes_tensors = key::tokens(self.arena.words(key)).any(is_tensor);
                self.arena.family(source) == Family::Other && (takes_tensors || self.is_fixed(source))
            }
            _ => false,
        }
    }

    /// Whether reductions over two groups certainly differ: where each is, its group, and along which groups what it
    /// reduces varies. What is the same all along gives the same, whatever the ranks that it is reduced over.
    pub(super) fn reduced_apart(
        &mut self,
        (a, g, one): (PlaceId, super::GroupId, GroupSet),
        (b, h, other): (PlaceId, super::GroupId, GroupSet),
    ) -> bool {
        let places = &mut self.arena.places;
        if one == GroupSet::ALL && other == GroupSet::ALL && a == HERE && b == HERE {
            // The elements tell which ranks they come from.
            return !(places.inside(g, h) && places.inside(h, g));
        }
        places.are_axes(&[a, b], &[g, h]) && (one.has(g) || other.has(h))
    }

    /// Two elements of calls whose operands may be exchanged: the relation of their operands.
    pub(super) fn compare_exchangeable(
        &mut self,
        (k, a): (KeyId, Element),
        (l, b): (KeyId, Element),
    ) -> Option<Relation> {
        let ([p, q], [r, s]) = (self.arena.exchangeable(k)?, self.arena.exchangeable(l)?);
        // A tensor's dtype and sizes, whatever it holds.
        fn kinds(words: &[u64]) -> impl Iterator<Item = (u64, Option<&[u64]>)> {
            let tensors = key::tokens(words).filter(|(word, _)| key::tag(*word) == Some(key::Tag::Tensor));
            tensors.map(|(word, rest)| (word, rest.get(1..)))
        }
        let (one, other) = (self.arena.words(k), self.arena.words(l));
        if !kinds(one).eq(kinds(other)) || kinds(one).next() != kinds(one).last() {
            return None;
        }
        let mut pair = |x, y| Some(Pair::Values(self.shown(x, a)?, self.shown(y, b)?));
        let mut pairs = || Some([pair(p, r)?, pair(q, s)?, pair(p, s)?, pair(q, r)?]);
        Some(match pairs() {
            Some(operands) => Relation::Exchanged { operands: Box::new(operands), of: Box::new((a, b)) },
            None => Relation::Perhaps(vec![Pair::Values(p, r), Pair::Values(q, s)]),
        })
    }

    /// Of two calls of a function of corresponding elements: elements of the inputs that the elements `a` of the one
    /// and `b` of the other are made of. `None` for other calls.
    pub(super) fn made_of(
        &mut self,
        (k, a): (KeyId, Element),
        (l, b): (KeyId, Element),
    ) -> Option<Vec<Pair>> {
        if !self.is_elementwise(a.source) {
            return None;
        }
        let inputs = |words: &[u64], of: Element| -> Option<Vec<(ValueId, [Element; 2])>> {
            let sizes = key::broadcast(words)?;
            Some(key::tensors(words).map(|(value, own)| (value, read_by(own, &sizes, of))).collect())
        };
        let one = inputs(self.arena.words(k), a)?;
        let other = inputs(self.arena.words(l), b)?;
        let mut pairs = Vec::with_capacity(one.len());
        for ((x, [all_x, first_x]), (y, [all_y, first_y])) in one.into_iter().zip(other) {
            let (p, q) = if all_x.len == all_y.len { (all_x, all_y) } else { (first_x, first_y) };
            pairs.push(Pair::Values(self.shown(x, p)?, self.shown(y, q)?));
        }
        Some(pairs)
    }

    /// The part of a value that lies where elements do: their offsets, on their rank.
    pub(super) fn shown(&mut self, value: ValueId, at: Element) -> Option<ValueId> {
        let place = self.arena.places.get(at.place);
        if !place.scales.is_empty() || at.offset < 0 || at.offset.checked_add(at.len)? > self.arena.len(value)
        {
            return None;
        }
        let moves = place.moves.clone();
        let part = self.arena.slice(value, at.offset, at.len);
        self.arena.moved_along(part, &moves).ok()
    }

    /// Whether a source is the result of a function of corresponding elements, be it cast or reduced over ranks.
    pub(super) fn is_elementwise(&self, source: SourceId) -> bool {
        self.holds(source, |one| match one {
            Source::Opaque { key, .. } => {
                self.arena.operator(key).is_some_and(|operator| operator.is_elementwise)
            }
            _ => false,
        })
    }

    /// Whether a source shows a window, at whatever depth, be it on some ranks only.
    pub(super) fn holds_window(&self, source: SourceId) -> bool {
        self.arena.source_traits(source).has(Traits::WINDOW)
    }

    /// Whether two offsets are two elements: a window may show one element twice, and so may a choice by index.
    pub(super) fn tells_elements_apart(&self, source: SourceId) -> bool {
        !self.holds(source, |one| matches!(one, Source::Window { .. } | Source::Select { .. }))
    }

    pub(super) fn holds(&self, mut source: SourceId, what: impl Fn(Source) -> bool) -> bool {
        loop {
            match self.arena.get(source) {
                one if what(one) => return true,
                Source::Cast { source: inner, .. }
                | Source::Bits { source: inner, .. }
                | Source::Reduced { source: inner, .. }
                | Source::Elsewhere { source: inner, .. } => source = inner,
                _ => return false,
            }
        }
    }
}

/// Which elements of an input of these sizes some elements of a result are made of, and the first of them. Of an input
/// that is broadcast, where that is not a stretch, the first alone.
pub(super) fn read_by(own: &[u64], sizes: &[u64], of: Element) -> [Element; 2] {
    let (mut left, mut index, mut weight) = (of.offset, 0i64, 1i64);
    for (&size, own) in sizes.iter().rev().zip(own.iter().rev().map(Some).chain(std::iter::repeat(None))) {
        let size = (size as i64).max(1);
        if let Some(&own) = own.filter(|own| **own > 1) {
            index = index.saturating_add((left % size).saturating_mul(weight));
            weight = weight.saturating_mul(own as i64);
        }
        left /= size;
    }
    let first = Element { offset: index, len: 1, ..of };
    let count = |sizes: &[u64]| sizes.iter().fold(1i64, |count, &size| count.saturating_mul(size as i64));
    let inner = sizes.len().saturating_sub(own.len());
    let all = if count(own) == count(sizes) {
        of
    } else if count(own) == count(&sizes[inner..])
        && of.len >= count(own)
        && of.offset % count(own).max(1) == 0
    {
        // Its elements are shown over and over.
        Element { offset: 0, len: count(own), ..of }
    } else {
        first
    };
    [all, first]
}
