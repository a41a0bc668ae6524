//! Which collectives of `after` carry which collectives of `before`.
//!
//! # The idea
//!
//! A collective that was put into a bucket is still there as a stretch of the bucket's elements. What is looked for is
//! what a collective does for one rank: what the rank gives to a gather, an all-reduce or a broadcast; what it gets
//! from a reduce-scatter, which is one stretch of the bucket's result, while what it gives is spread over the ranks'
//! parts. The longest are looked for first, each takes its stretch for itself, and two equal ones need two stretches.
//!
//! Casts need no special care: a gather of a cast and a bucket whose slot casts on the way in carry the same
//! elements. In a bucket of another dtype (bytes packed together) a stretch is counted in the bucket's elements.

use super::arena::Arena;
use super::evaluation::{Evaluation, Launch};
use super::run::{Piece, pieces};
use super::source::{SourceId, ValueId};
use super::{GroupId, Symbol};
use crate::graph::Dtype;
use crate::ops::Collective;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// A tensor of a collective: indices into [`Evaluation::launches`] and [`Launch::payloads`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PayloadIndex {
    /// The launch.
    pub launch: usize,
    /// The tensor.
    pub payload: usize,
}

/// A tensor of `before` found in one of `after`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    /// The tensor in `before`.
    pub before: PayloadIndex,
    /// The tensor in `after` that carries it.
    pub after: PayloadIndex,
    /// Where it lies: elements of what one rank gives (of what one rank gets, for a reduce-scatter).
    pub elements: Range<i64>,
}

/// What carries what.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Payloads {
    /// For each launch of `after` what it carries, in order of elements.
    pub members: Vec<Vec<Member>>,
    /// For each launch of `before`, and each of its tensors, how often it is carried. A tensor without elements
    /// counts as carried once.
    pub times: Vec<Vec<u32>>,
    /// Elements of `after` that carry nothing of `before`.
    pub extra: Vec<(PayloadIndex, Range<i64>)>,
    /// Which of `extra` are padding: constants and unwritten memory, which say nothing.
    pub padding: Vec<bool>,
}

impl Payloads {
    /// The tensors of `before` that are not carried exactly once, with how often they are.
    pub fn not_once(&self) -> impl Iterator<Item = (PayloadIndex, u32)> {
        self.times.iter().enumerate().flat_map(|(launch, times)| {
            times
                .iter()
                .enumerate()
                .filter(|&(_, &times)| times != 1)
                .map(move |(payload, &times)| (PayloadIndex { launch, payload }, times))
        })
    }
}

/// What makes two launches the same kind of communication.
type Kind = (Collective, GroupId, Option<Symbol>, Option<i64>);

fn kind_of(launch: &Launch) -> Kind {
    (launch.kind, launch.group, launch.reduce_op, launch.peer)
}

/// The elements that stand for one tensor of a launch; see the module.
fn unit(launch: &Launch, payload: usize) -> ValueId {
    let payload = &launch.payloads[payload];
    match (launch.kind, payload.result) {
        (Collective::ReduceScatter, Some(result)) => result,
        _ => payload.value,
    }
}

/// Where elements of a source lie in what `after` carries.
struct Stretch {
    after: PayloadIndex,
    begin: i64,
    piece: Piece,
}

/// Maps the communication of `after` to that of `before`.
pub fn payload_members(arena: &mut Arena, before: &Evaluation<'_>, after: &Evaluation<'_>) -> Payloads {
    let mut search = Search::new(arena, before, after);
    let mut units: Vec<(PayloadIndex, i64)> = Vec::new();
    for (launch, about) in before.launches.iter().enumerate() {
        for payload in 0..about.payloads.len() {
            let len = search.arena.len(unit(about, payload));
            units.push((PayloadIndex { launch, payload }, len));
        }
    }
    units.sort_by_key(|&(index, len)| (std::cmp::Reverse(len), index));
    // Each once, then whatever is left once more and so on.
    let mut open: Vec<PayloadIndex> = units.into_iter().map(|(index, _)| index).collect();
    while !open.is_empty() {
        open.retain(|&index| search.place(index));
    }
    search.finish()
}

struct Search<'a, 'g> {
    arena: &'a mut Arena,
    before: &'a Evaluation<'g>,
    after: &'a Evaluation<'g>,
    stretches: FxHashMap<(Kind, SourceId), Vec<Stretch>>,
    /// The dtypes of the tensors of `after`, by kind, each once.
    dtypes: FxHashMap<Kind, Vec<Dtype>>,
    /// For elements that were looked for: how many of the stretches of their source are no place for them any more.
    passed: FxHashMap<(Kind, Dtype, ValueId), usize>,
    /// For each tensor of `after`, by launch: what is taken, the end of each stretch by its start. No two meet.
    taken: Vec<Vec<BTreeMap<i64, i64>>>,
    result: Payloads,
}

impl<'a, 'g> Search<'a, 'g> {
    fn new(arena: &'a mut Arena, before: &'a Evaluation<'g>, after: &'a Evaluation<'g>) -> Self {
        let mut stretches: FxHashMap<(Kind, SourceId), Vec<Stretch>> = FxHashMap::default();
        let mut dtypes: FxHashMap<Kind, Vec<Dtype>> = FxHashMap::default();
        for (launch, about) in after.launches.iter().enumerate() {
            let known = dtypes.entry(kind_of(about)).or_default();
            for payload in 0..about.payloads.len() {
                let dtype = about.payloads[payload].dtype;
                if !known.contains(&dtype) {
                    known.push(dtype);
                }
                let mut begin = 0;
                let value = unit(about, payload);
                for piece in pieces(arena.runs(value), 0, arena.len(value)) {
                    let after = PayloadIndex { launch, payload };
                    let stretch = Stretch { after, begin, piece };
                    stretches.entry((kind_of(about), piece.source)).or_default().push(stretch);
                    begin += piece.len;
                }
            }
        }
        let times = before.launches.iter().map(|l| vec![0; l.payloads.len()]).collect();
        let members = after.launches.iter().map(|_| Vec::new()).collect();
        let taken = after.launches.iter().map(|l| vec![BTreeMap::new(); l.payloads.len()]).collect();
        let result = Payloads { members, times, extra: Vec::new(), padding: Vec::new() };
        Search { arena, before, after, stretches, dtypes, passed: FxHashMap::default(), taken, result }
    }

    /// Finds a place for a tensor of `before`; false if there is none any more.
    fn place(&mut self, index: PayloadIndex) -> bool {
        let about = &self.before.launches[index.launch];
        let (value, dtype) = (unit(about, index.payload), about.payloads[index.payload].dtype);
        let times = &mut self.result.times[index.launch][index.payload];
        if self.arena.len(value) == 0 {
            *times = 1;
            return false;
        }
        // In a bucket of another dtype the elements are the same bytes.
        let mut shapes = vec![(dtype, value)];
        for &other in self.dtypes.get(&kind_of(about)).into_iter().flatten().filter(|&&other| other != dtype)
        {
            if let Ok(bytes) = self.arena.retyped(value, dtype, other) {
                shapes.push((other, bytes));
            }
        }
        for (dtype, value) in shapes {
            if let Some((after, elements)) = self.find(kind_of(about), dtype, value) {
                self.taken[after.launch][after.payload].insert(elements.start, elements.end);
                self.result.members[after.launch].push(Member { before: index, after, elements });
                self.result.times[index.launch][index.payload] += 1;
                return true;
            }
        }
        false
    }

    fn find(&mut self, kind: Kind, dtype: Dtype, value: ValueId) -> Option<(PayloadIndex, Range<i64>)> {
        let len = self.arena.len(value);
        let first = pieces(self.arena.runs(value), 0, len).next()?;
        let stretches = self.stretches.get(&(kind, first.source))?;
        let passed = self.passed.entry((kind, dtype, value)).or_default();
        // What is taken stays taken. Only among repeated elements there is another place each time.
        let moves = |stretch: &Stretch| stretch.piece.step == 0;
        let mut fixed = true;
        for (i, stretch) in stretches.iter().enumerate().skip(*passed) {
            fixed &= !moves(stretch);
            if fixed {
                *passed = i;
            }
            let piece = stretch.piece;
            let launch = &self.after.launches[stretch.after.launch];
            if piece.place != first.place || launch.payloads[stretch.after.payload].dtype != dtype {
                continue;
            }
            let taken = &self.taken[stretch.after.launch][stretch.after.payload];
            let start = if piece.step == 0 {
                // A repeated element: the first place that is free.
                let end = taken.last_key_value().map_or(stretch.begin, |(_, &end)| end);
                Some(end.max(stretch.begin)).filter(|_| piece.offset == first.offset)
            } else {
                let into = first.offset.checked_sub(piece.offset)?;
                (0..piece.len).contains(&into).then_some(stretch.begin + into)
            };
            let Some(start) = start else { continue };
            let elements = start..start.checked_add(len)?;
            let all = unit(launch, stretch.after.payload);
            if elements.end > self.arena.len(all)
                || taken.range(..elements.end).next_back().is_some_and(|(_, &end)| elements.start < end)
            {
                continue;
            }
            if self.arena.slice(all, start, len) == value {
                return Some((stretch.after, elements));
            }
        }
        None
    }

    /// Whether elements are the same whatever the inputs are.
    fn is_padding(&self, value: ValueId, range: Range<i64>) -> bool {
        pieces(self.arena.runs(value), range.start, range.end - range.start)
            .all(|piece| self.arena.is_uniform(piece.source))
    }

    fn finish(mut self) -> Payloads {
        for members in &mut self.result.members {
            members.sort_by_key(|m| (m.after, m.elements.start));
        }
        for (launch, about) in self.after.launches.iter().enumerate() {
            for payload in 0..about.payloads.len() {
                let taken = std::mem::take(&mut self.taken[launch][payload]);
                let taken = taken.into_iter().map(|(start, end)| start..end);
                let mut done = 0;
                let len = self.arena.len(unit(about, payload));
                for next in taken.chain(std::iter::once(len..len)) {
                    if next.start > done {
                        self.result.extra.push((PayloadIndex { launch, payload }, done..next.start));
                        let is_padding = self.is_padding(unit(about, payload), done..next.start);
                        self.result.padding.push(is_padding);
                    }
                    done = next.end;
                }
            }
        }
        self.result
    }
}
