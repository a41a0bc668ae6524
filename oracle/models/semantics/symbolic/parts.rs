//! What an element is made of, through sums and products of many operands.
//!
//! Two sums may be one in another order. They differ for certain if one has an operand that differs from each of the
//! other's, and from all that those are made of: `x * y` may stand there as the negative of a negative.

use super::element::{Element, read_by};
use super::key;
use super::same::{Judge, Pair, Relation};
use super::source::{Source, Symbol};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Elements that are looked at to find what one is made of.
const PARTS: usize = 256;
/// Terms of a sum that are compared with those of another.
const TERMS: usize = 16;
/// Elements of two sums that are taken apart.
const TRIES: u32 = 16;

impl Judge<'_> {
    /// The operands of two sums (or products) of many, those of sums among them taken apart: each of the one that both
    /// do not share, against each of the other.
    pub(super) fn unmatched(&mut self, a: Element, b: Element) -> Relation {
        let Source::Opaque { key, .. } = self.arena.get(a.source) else { return Relation::Unknown };
        let tried = self.arena.tried.entry((a.source, b.source)).or_default();
        *tried += 1;
        if *tried > TRIES {
            return Relation::Unknown;
        }
        let operator = key::target(self.arena.words(key));
        let (Some(left), Some(right)) = (self.parts(a, operator), self.parts(b, operator)) else {
            return Relation::Unknown;
        };
        let mut right = right.to_vec();
        let is_left = |term: &&Element| match right.iter().position(|other| other == *term) {
            Some(at) => {
                right.swap_remove(at);
                false
            }
            None => true,
        };
        let mut left: Vec<Element> = left.iter().filter(is_left).copied().collect();
        // What is a function of elements itself may be a multiple of others.
        left.retain(|term| !self.is_elementwise(term.source));
        for at in 0..right.len() {
            let Some(leaves) = self.leaves(right[at]) else { return Relation::Unknown };
            right.extend(leaves);
        }
        let mut seen = FxHashSet::default();
        right.retain(|&term| seen.insert(term));
        if left.len().max(right.len()) > TERMS {
            return Relation::Unknown;
        }
        let row = |term: &Element| right.iter().map(|&other| Pair::Elements(*term, other)).collect();
        Relation::Unmatched(left.iter().map(row).collect())
    }

    /// The elements that an element is made of, in order: by sums (or products) of `operator`, or by functions of its
    /// own [`Family`]. `None` where they are too many, or not known.
    pub(super) fn parts(&mut self, of: Element, operator: Option<Symbol>) -> Option<Arc<[Element]>> {
        let of = Element { source: self.arena.uncast(of.source), len: 1, ..of };
        if let Some(known) = self.arena.parts.get(&(of, operator)) {
            return known.clone();
        }
        let found = self.find_parts(of, operator).map(Arc::from);
        self.arena.parts.insert((of, operator), found.clone());
        found
    }

    /// What an element is made of through functions of elements of all families, those functions left out. `None` where
    /// that is too much, or not known.
    fn leaves(&mut self, of: Element) -> Option<Vec<Element>> {
        let (mut open, mut leaves) = (vec![of], Vec::new());
        let mut seen = FxHashSet::default();
        while let Some(at) = open.pop() {
            if seen.len() > PARTS {
                return None;
            }
            let at = Element { source: self.arena.uncast(at.source), len: 1, ..at };
            if !seen.insert(at) {
                continue;
            }
            match self.is_elementwise(at.source) {
                true => open.extend(self.parts(at, None)?.iter().filter(|&&part| part != at)),
                false => leaves.push(at),
            }
        }
        Some(leaves)
    }

    pub(super) fn find_parts(&mut self, of: Element, operator: Option<Symbol>) -> Option<Vec<Element>> {
        let family = self.arena.family(of.source);
        let mut open = vec![of];
        let mut found = Vec::new();
        let mut steps = 0;
        while let Some(mut at) = open.pop() {
            steps += 1;
            if steps.max(found.len()) > PARTS {
                return None;
            }
            at.source = self.arena.uncast(at.source);
            let Source::Opaque { key, .. } = self.arena.get(at.source) else {
                found.push(at);
                continue;
            };
            let words = self.arena.words(key);
            let is_part = match operator {
                None => self.arena.family(at.source) != family || !self.is_elementwise(at.source),
                some => key::target(words) != some || self.arena.exchangeable(key).is_none(),
            };
            if is_part {
                found.push(at);
                continue;
            }
            // It need not be made of anything.
            if operator.is_none() && self.arena.may_be_constant(words) {
                return None;
            }
            // What an older sum is made of is known from when it was looked at.
            let known = if at == of { None } else { self.arena.parts.get(&(at, operator)) };
            if let Some(known) = known {
                found.extend_from_slice(known.as_deref()?);
                continue;
            }
            let sizes = key::broadcast(words)?;
            let read: Vec<_> = key::tensors(words).map(|(v, own)| (v, read_by(own, &sizes, at)[1])).collect();
            for (value, of) in read {
                let shown = self.shown(value, of)?;
                let part = self.arena.element(shown, 0)?;
                open.push(self.resolve(part, 0)?);
            }
        }
        Some(found)
    }

    /// Two functions of elements of different families: they may be one in another way of writing (`m * x + (1 - m) *
    /// y` is `where(m, x, y)`, and of booleans `*` is `and`) where they are made of the same elements. They differ if
    /// one is made of an element that is none of the other's.
    pub(super) fn compare_leaves(&mut self, a: Element, b: Element) -> Relation {
        let (Some(left), Some(right)) = (self.leaves(a), self.leaves(b)) else { return Relation::Unknown };
        if left.len().max(right.len()) > TERMS {
            return Relation::Unknown;
        }
        let row = |of: Element, all: &[Element]| all.iter().map(|&other| Pair::Elements(of, other)).collect();
        let mut rows = Vec::new();
        for (all, others) in [(&left, &right), (&right, &left)] {
            // Constants may be written into a call.
            let varied = all.iter().filter(|of| self.arena.depends_on_inputs(of.source));
            rows.extend(varied.map(|&of| row(of, others)));
        }
        Relation::Unmatched(rows)
    }

    /// A function of elements and another element: they differ if that is none of those that the function is made of,
    /// nor the function one of those that it is made of itself.
    pub(super) fn compare_with_parts(&mut self, a: Element, b: Element) -> Relation {
        let mut row = Vec::new();
        for (function, other) in [(a, b), (b, a)] {
            let start = Element { source: self.arena.uncast(function.source), len: 1, ..function };
            let other = Element { source: self.arena.uncast(other.source), len: 1, ..other };
            let Some(parts) = self.parts(function, None) else { return Relation::Unknown };
            // A product, a sum over ranks, or no function at all is looked at as a whole.
            let parts = parts.iter().filter(|&&part| part != start);
            row.extend(parts.map(|&part| Pair::Elements(part, other)));
        }
        let mut seen = FxHashSet::default();
        row.retain(|&pair| seen.insert(pair));
        match row.len() {
            0 => Relation::Different,
            count if count > TERMS => Relation::Unknown,
            _ => Relation::Unmatched(vec![row]),
        }
    }
}
