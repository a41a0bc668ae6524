//! What an element is made of, through sums and products of many operands.
//!
//! Two sums may be one in another order. They differ for certain if one has an operand that differs from each of the other's.

use super::algebra::Family;
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
    /// The operands of two sums (or products) of many, those of sums among them taken apart: each of the one that both do not
    /// share, against each of the other.
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
        if left.len().max(right.len()) > TERMS {
            return Relation::Unknown;
        }
        let row = |term: &Element| right.iter().map(|&other| Pair::Elements(*term, other)).collect();
        Relation::Unmatched(left.iter().map(row).collect())
    }

    /// The elements that an element is made of, in order: by sums (or products) of `operator`, or by functions of its own
    /// [`Family`]. `None` where they are too many, or not known.
    pub(super) fn parts(&mut self, of: Element, operator: Option<Symbol>) -> Option<Arc<[Element]>> {
        let of = Element { source: self.arena.uncast(of.source), len: 1, ..of };
        if let Some(known) = self.arena.parts.get(&(of, operator)) {
            return known.clone();
        }
        let found = self.find_parts(of, operator).map(Arc::from);
        self.arena.parts.insert((of, operator), found.clone());
        found
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

    /// A function of elements and another element: they differ if that is none of those that the function is made of.
    pub(super) fn compare_with_parts(&mut self, function: Element, other: Element) -> Relation {
        let start = Element { source: self.arena.uncast(function.source), len: 1, ..function };
        let mut parts = match self.parts(function, None) {
            // A product, or a sum over ranks.
            Some(parts) if *parts == [start] => match self.arena.family(other.source) {
                Family::Broken => return self.compare_with_parts(other, function),
                _ => return Relation::Different,
            },
            Some(parts) => parts.to_vec(),
            None => return Relation::Unknown,
        };
        let mut seen = FxHashSet::default();
        parts.retain(|&part| seen.insert(part));
        if parts.len() > TERMS {
            return Relation::Unknown;
        }
        let other = Element { source: self.arena.uncast(other.source), len: 1, ..other };
        Relation::Unmatched(vec![parts.iter().map(|&part| Pair::Elements(part, other)).collect()])
    }
}
