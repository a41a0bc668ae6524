//! What values depend on: which inputs of the graph, and the own index in which groups.
//!
//! # The idea
//!
//! A value that is made of an input cannot be one that is not: vary the input, and only the first changes. This tells
//! values apart whose calls cannot be compared call by call, as at both ends of a long chain of functions of elements.
//! Of every source two sets of inputs are kept: those that each of its elements depends on, and those that any of them
//! may. A function of elements, a reduction and a product of matrices depend on all their inputs, as everywhere here;
//! what rests on an assumption depends on none for certain, nor does the result of any other operator, which may have
//! elements, or be one of several results, that are made of some inputs only.
//!
//! The other question is asked for one index of the own rank in a group at a time: whether what is found for the
//! generic rank holds for it too. It does where the own index is not looked at again below.
//!
//! Found on demand, for all sources at once: sources are made of older ones.

use super::arena::Arena;
use super::key::{Tag, payload, tag, tokens};
use super::place::{GroupSet, PlaceId};
use super::run::Run;
use super::source::{KeyId, Source, SourceId, Traits, ValueId};
use indexmap::IndexSet;
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::{BuildHasherDefault, DefaultHasher};

/// Inputs that are told apart (2 KiB for a set of all of them). Nothing depends for certain on those behind them.
const INPUTS: usize = 1 << 14;
/// Numbers computed of numbers that are followed.
const DEPTH: u32 = 64;

/// A bit for each input, up to the last word that is not 0.
type Bits = Box<[u64]>;

/// A set of inputs: equal sets have equal ids.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct Inputs(u32);

const NO_INPUTS: Inputs = Inputs(0);
/// Any inputs, known or not: a set of its own, whose bits are never looked at.
const ALL_INPUTS: Inputs = Inputs(1);

/// What a source or a value depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Dependence {
    /// The inputs that each element depends on.
    certain: Inputs,
    /// The inputs that some element may depend on.
    possible: Inputs,
    /// The groups in which the own index may matter.
    own: GroupSet,
    /// The groups that are met anywhere.
    met: GroupSet,
}

const NOTHING: Dependence =
    Dependence { certain: NO_INPUTS, possible: NO_INPUTS, own: GroupSet::NONE, met: GroupSet::NONE };
const ANYTHING: Dependence =
    Dependence { certain: NO_INPUTS, possible: ALL_INPUTS, own: GroupSet::ALL, met: GroupSet::ALL };

/// What is known of the dependences of an arena.
#[derive(Clone, Debug)]
pub(super) struct Dependences {
    /// Bits far up in a word would all fall together under a hash that only multiplies.
    sets: IndexSet<Bits, BuildHasherDefault<DefaultHasher>>,
    unions: FxHashMap<(Inputs, Inputs), Inputs>,
    intersections: FxHashMap<(Inputs, Inputs), Inputs>,
    sources: Vec<Dependence>,
    values: FxHashMap<ValueId, Dependence>,
}

impl Default for Dependences {
    fn default() -> Dependences {
        let mut sets = IndexSet::default();
        sets.insert(Bits::default());
        sets.insert(Box::new([0]));
        let (unions, intersections) = (FxHashMap::default(), FxHashMap::default());
        Dependences { sets, unions, intersections, sources: Vec::new(), values: FxHashMap::default() }
    }
}

impl Dependences {
    fn bits(&self, set: Inputs) -> &[u64] {
        &self.sets[set.0 as usize]
    }

    fn intern(&mut self, mut bits: Vec<u64>) -> Inputs {
        while bits.last() == Some(&0) {
            bits.pop();
        }
        Inputs(self.sets.insert_full(bits.into()).0 as u32)
    }

    /// The set of one input; `None` for one that is not told apart from others.
    fn one(&mut self, position: u32) -> Option<Inputs> {
        let at = position as usize;
        let mut bits = vec![0; (at < INPUTS).then_some(at / 64 + 1)?];
        bits[at / 64] = 1 << (at % 64);
        Some(self.intern(bits))
    }

    fn union(&mut self, a: Inputs, b: Inputs) -> Inputs {
        if a == b || b == NO_INPUTS {
            return a;
        }
        if a == NO_INPUTS {
            return b;
        }
        if a == ALL_INPUTS || b == ALL_INPUTS {
            return ALL_INPUTS;
        }
        let pair = (a.min(b), a.max(b));
        if let Some(&known) = self.unions.get(&pair) {
            return known;
        }
        let (one, other) = (self.bits(a), self.bits(b));
        let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
        let mut bits = long.to_vec();
        bits.iter_mut().zip(short).for_each(|(bit, more)| *bit |= more);
        let union = self.intern(bits);
        self.unions.insert(pair, union);
        union
    }

    fn shared(&mut self, a: Inputs, b: Inputs) -> Inputs {
        if a == b || b == ALL_INPUTS {
            return a;
        }
        if a == ALL_INPUTS {
            return b;
        }
        if a == NO_INPUTS || b == NO_INPUTS {
            return NO_INPUTS;
        }
        let pair = (a.min(b), a.max(b));
        if let Some(&known) = self.intersections.get(&pair) {
            return known;
        }
        let bits = self.bits(a).iter().zip(self.bits(b)).map(|(one, other)| one & other).collect();
        let both = self.intern(bits);
        self.intersections.insert(pair, both);
        both
    }

    /// Both together, as the inputs of a call.
    fn both(&mut self, a: Dependence, b: Dependence) -> Dependence {
        Dependence { certain: self.union(a.certain, b.certain), ..self.either(a, b) }
    }

    /// One of both, as the elements of a value.
    fn either(&mut self, a: Dependence, b: Dependence) -> Dependence {
        Dependence {
            certain: self.shared(a.certain, b.certain),
            possible: self.union(a.possible, b.possible),
            own: a.own.or(b.own),
            met: a.met.or(b.met),
        }
    }

    /// Whether one depends for certain on an input on which the other does not.
    fn are_apart(&self, a: Dependence, b: Dependence) -> bool {
        let has_more = |certain, possible| {
            let (certain, possible) = (self.bits(certain), self.bits(possible));
            let possible = possible.iter().chain(std::iter::repeat(&0));
            certain.iter().zip(possible).any(|(one, other)| one & !other != 0)
        };
        let has_more = |certain, possible| possible != ALL_INPUTS && has_more(certain, possible);
        has_more(a.certain, b.possible) || has_more(b.certain, a.possible)
    }
}

impl Arena {
    /// Whether each element of one source differs for certain from each of the other: it depends on another input.
    pub(super) fn depend_on_others(&mut self, a: SourceId, b: SourceId) -> bool {
        let (a, b) = (self.dependence(a), self.dependence(b));
        self.dependences.are_apart(a, b)
    }

    /// Whether each element of a source depends for certain on some input.
    pub(super) fn depends_on_inputs(&mut self, source: SourceId) -> bool {
        self.dependence(source).certain != NO_INPUTS
    }

    /// Whether what is found of two sources for the generic rank holds for each index of the own rank in `group`.
    pub(super) fn hold_for_each_index(&mut self, a: SourceId, b: SourceId, group: super::GroupId) -> bool {
        let (a, b) = (self.dependence(a), self.dependence(b));
        let own = GroupSet::at_most(group);
        if own == GroupSet::ALL {
            return false;
        }
        let axes = self.places.beside(group).or(own);
        a.own.or(b.own).and(own) == GroupSet::NONE && a.met.or(b.met).and(axes) == a.met.or(b.met)
    }

    fn dependence(&mut self, id: SourceId) -> Dependence {
        while self.dependences.sources.len() <= id.0 as usize {
            let next = SourceId(self.dependences.sources.len() as u32);
            let found = self.find_dependence(next);
            self.dependences.sources.push(found);
        }
        self.dependences.sources[id.0 as usize]
    }

    fn find_dependence(&mut self, id: SourceId) -> Dependence {
        let mut found = match self.get(id) {
            Source::Placeholder { position } => {
                let one = self.dependences.one(position);
                let (certain, possible) = one.map_or((NO_INPUTS, ALL_INPUTS), |one| (one, one));
                Dependence { certain, possible, ..NOTHING }
            }
            Source::Poison | Source::Beyond { .. } | Source::Attribute { .. } => NOTHING,
            Source::Constant { key, .. } | Source::Opaque { key, .. } => self.key_dependence(key, 0),
            Source::InFlight { result } => self.value_dependence(result),
            Source::Cast { source, .. } | Source::Bits { source, .. } => self.older(source, id),
            Source::Elsewhere { source, place } => {
                let inner = self.older(source, id);
                self.at_place(inner, place)
            }
            Source::Reduced { group, source, place, .. } => {
                let inner = self.older(source, id);
                let mut found = self.at_place(inner, place);
                // Inside, the ranks of the group are gone through: the own index in it does not matter.
                found.own = self.places.outside(found.own, group);
                found.met = found.met.or(GroupSet::at_most(group));
                found
            }
            Source::Select { group, table } => {
                let pieces = self.table(table).to_vec();
                let all = pieces.into_iter().map(|piece| {
                    let inner = self.older(piece.source, id);
                    self.at_place(inner, piece.place)
                });
                let all: Vec<Dependence> = all.collect();
                let mut found = self.either_of(all);
                found.own = found.own.or(GroupSet::at_most(group));
                found.met = found.met.or(GroupSet::at_most(group));
                found
            }
            Source::Window { content, .. } => self.value_dependence(content),
        };
        let traits = self.source_traits(id);
        if [Traits::ASSUMED, Traits::POISON, Traits::IN_FLIGHT].iter().any(|&held| traits.has(held)) {
            found.certain = NO_INPUTS;
        }
        found
    }

    /// The dependence of a source that another one is made of.
    fn older(&self, source: SourceId, than: SourceId) -> Dependence {
        let found = self.dependences.sources.get(source.0 as usize);
        if source < than { found.copied().unwrap_or(ANYTHING) } else { ANYTHING }
    }

    fn at_place(&self, mut found: Dependence, place: PlaceId) -> Dependence {
        let groups = self.places.groups_of(place);
        found.own = found.own.or(groups);
        found.met = found.met.or(groups);
        found
    }

    fn either_of(&mut self, all: Vec<Dependence>) -> Dependence {
        let all = all.into_iter().reduce(|one, other| self.dependences.either(one, other));
        all.unwrap_or(NOTHING)
    }

    /// The dependence of a value whose sources are known.
    fn value_dependence(&mut self, value: ValueId) -> Dependence {
        if let Some(&known) = self.dependences.values.get(&value) {
            return known;
        }
        let key = |run: &Run| (run.source, run.place());
        let mut seen = FxHashSet::default();
        let parts: Vec<_> = self.runs(value).iter().map(key).filter(|&part| seen.insert(part)).collect();
        let above = SourceId(self.dependences.sources.len() as u32);
        let all = parts.into_iter().map(|(source, place)| self.at_place(self.older(source, above), place));
        let all: Vec<Dependence> = all.collect();
        let found = self.either_of(all);
        self.dependences.values.insert(value, found);
        found
    }

    fn key_dependence(&mut self, key: KeyId, depth: u32) -> Dependence {
        if depth > DEPTH {
            return ANYTHING;
        }
        let words = self.words(key);
        let another = super::key::target(words).is_some_and(|target| self.text(target) == ANOTHER_GRAPH);
        let is_uncertain = self.may_be_constant(words) || !self.takes_all(words);
        let mut parts: Vec<(Tag, u64)> = Vec::new();
        for (word, rest) in tokens(words) {
            match (tag(word), rest.first()) {
                (Some(one @ (Tag::Tensor | Tag::Token)), Some(&value)) => parts.push((one, value)),
                (Some(one @ (Tag::Number | Tag::Group | Tag::Effect | Tag::Symbolic)), _) => {
                    parts.push((one, u64::from(payload(word))));
                }
                _ => {}
            }
        }
        let mut found = NOTHING;
        for (what, id) in parts {
            let part = match what {
                Tag::Number => self.key_dependence(KeyId(id as u32), depth + 1),
                Tag::Group => {
                    let group = GroupSet::at_most(super::GroupId(id as u32));
                    Dependence { own: group, met: group, ..NOTHING }
                }
                // Nothing is known of the operator, or of where the size comes from.
                Tag::Effect | Tag::Symbolic => ANYTHING,
                _ => self.value_dependence(ValueId(id as u32)),
            };
            found = self.dependences.both(found, part);
        }
        if is_uncertain {
            found.certain = NO_INPUTS;
        }
        if another { ANYTHING } else { found }
    }
}

/// The operator whose result is what ranks with other graphs hold.
pub(super) const ANOTHER_GRAPH: &str = "another graph";
