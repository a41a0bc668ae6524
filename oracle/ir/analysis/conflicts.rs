//! Accesses whose order matters: two to the same bytes, at least one of them a write.
//!
//! # The idea
//!
//! The accesses of a storage are taken in list order. The storage is kept as segments, each with the last write
//! that covers it, later writes that cover it only in part or perhaps not at all, and the reads since. A read
//! depends on these writes; a write depends on them and on the reads, and then takes the place of whatever it
//! covers. So each conflicting pair is told directly or follows from a chain of told pairs, and there are about
//! as many told pairs as accesses.
//!
//! Formally: let C be the pairs of accesses that conflict for certain (both parts certain, exact byte sets that
//! meet) and M those that may (byte sets that may meet). The certain pairs told have the same transitive closure
//! as C, all pairs told the same as C and M together; and every pair told is in C or M.
//!
//! # What it does not do
//!
//! Pieces can make the smallest such relation quadratic: n writers of pieces, each read by n readers of the
//! whole. A storage that takes more than [`TESTS`] comparisons an access is told without regard to bytes, all
//! pairs uncertain. The order of an unsorted list is taken as it is.

use super::bytes::{ByteSet, Overlap};
use super::origin::{Hazard, Origin};
use super::storages::{Access, StorageIndex, Storages, Touch};
use crate::graph::NodeId;
use std::collections::BTreeMap;

/// Comparisons per access after which a storage is told coarsely.
pub const TESTS: usize = 64;

/// Two nodes whose order matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// First in the list.
    pub before: NodeId,
    /// Later in the list.
    pub after: NodeId,
    /// In which storage.
    pub storage: StorageIndex,
    /// How.
    pub hazard: Hazard,
    /// Whether `before` is a wait that ends a collective's hold on the bytes.
    pub landed: bool,
    /// Whether they certainly conflict.
    pub certain: bool,
}

impl Conflict {
    /// The reason in words, as an origin of an edge.
    pub fn origin(&self, storages: &Storages) -> Origin {
        let of = storages.storage(self.storage).by;
        Origin::Storage { hazard: self.hazard, of, landed: self.landed, certain: self.certain }
    }
}

/// The conflicts in all storages, by storage, then in list order of `after`.
pub fn conflicts(storages: &Storages) -> Vec<Conflict> {
    conflicts_among(storages, &|_| true)
}

/// The conflicts between the nodes that `keep` names, as if no other node accessed anything.
pub fn conflicts_among(storages: &Storages, keep: &dyn Fn(NodeId) -> bool) -> Vec<Conflict> {
    let (mut found, mut accesses) = (Vec::new(), Vec::new());
    for storage in storages.ids() {
        accesses.clear();
        accesses.extend(storages.accesses_of(storage).filter(|access| keep(access.node)));
        conflicts_in(&accesses, storage, &mut found);
    }
    found
}

/// The conflicts in all storages that a node of those that `among` names accesses.
pub fn conflicts_around(storages: &Storages, among: &dyn Fn(NodeId) -> bool) -> Vec<Conflict> {
    let (mut found, mut accesses) = (Vec::new(), Vec::new());
    for storage in storages.ids() {
        if storages.accesses_of(storage).any(|access| among(access.node)) {
            accesses.clear();
            accesses.extend(storages.accesses_of(storage));
            conflicts_in(&accesses, storage, &mut found);
        }
    }
    found
}

/// The conflicts in one storage, of which these are the accesses in list order.
fn conflicts_in(accesses: &[&Access], storage: StorageIndex, found: &mut Vec<Conflict>) {
    if accesses.len() < 2 || !accesses.iter().any(|access| access.touch.writes()) {
        return;
    }
    if let Some(first) = accesses.first().map(|access| access.part.bytes)
        && first.is_interval()
        && !first.is_empty()
        && accesses.iter().all(|access| access.part.certain && access.part.bytes == first)
    {
        return whole(accesses, storage, true, found);
    }
    let begin = found.len();
    let mut sweep = Sweep::new(accesses);
    for i in 0..accesses.len() {
        sweep.access(i, storage, found);
        if sweep.tests > TESTS * (accesses.len() + TESTS) {
            found.truncate(begin);
            return whole(accesses, storage, false, found);
        }
    }
}

/// A stretch of a storage.
#[derive(Clone, Default)]
struct Segment {
    end: i64,
    /// The last write that covers it.
    write: Option<u32>,
    /// Later writes that do not cover it for certain.
    partial: Vec<u32>,
    /// Reads since `write`.
    reads: Vec<u32>,
    /// How many of `reads` a write that may cover the whole segment has already met.
    met: usize,
}

struct Sweep<'a> {
    accesses: &'a [&'a Access],
    /// By start; they tile everything.
    segments: BTreeMap<i64, Segment>,
    tests: usize,
    /// Of the current access: earlier access, and whether they conflict for certain.
    pairs: Vec<(u32, bool)>,
}

impl<'a> Sweep<'a> {
    fn new(accesses: &'a [&'a Access]) -> Sweep<'a> {
        let all = Segment { end: i64::MAX, ..Segment::default() };
        Sweep { accesses, segments: BTreeMap::from([(0, all)]), tests: 0, pairs: Vec::new() }
    }

    fn access(&mut self, i: usize, storage: StorageIndex, found: &mut Vec<Conflict>) {
        let access = self.accesses[i];
        let bytes = access.part.bytes;
        if bytes.is_empty() {
            return;
        }
        let (start, end) = bytes.span();
        let first = self.segments.range(..=start).next_back().map_or(0, |(&at, _)| at);
        let touched: Vec<i64> = self.segments.range(first..end).map(|(&at, _)| at).collect();
        for at in touched {
            self.segment(i, at);
        }
        self.pairs.sort_unstable_by_key(|&(before, certain)| (before, !certain));
        self.pairs.dedup_by_key(|pair| pair.0);
        for (before, certain) in self.pairs.drain(..) {
            found.extend(pair(self.accesses[before as usize], access, storage, certain));
        }
    }

    /// Meets what is in the segment at `at`, and takes its place there.
    fn segment(&mut self, i: usize, at: i64) {
        let Some(mut segment) = self.segments.remove(&at) else { return };
        let access = self.accesses[i];
        let Access { touch, part, .. } = *access;
        if let Some(write) = segment.write {
            // The covering write has every byte of the segment.
            self.meet(write, part.bytes.overlap(ByteSet::range(at, segment.end)), part.certain);
        }
        for &write in &segment.partial {
            self.meet_access(write, access);
        }
        if !touch.writes() {
            segment.reads.push(i as u32);
            self.segments.insert(at, segment);
            return;
        }
        let here = ByteSet::range(at, segment.end);
        let known = part.certain && part.bytes.is_exact();
        let may_cover_all = part.bytes.may_cover(here);
        let unmet = if may_cover_all && !known { segment.met } else { 0 };
        for &read in &segment.reads[unmet..] {
            self.meet_access(read, access);
        }
        if known && (may_cover_all || part.bytes.is_interval()) {
            let (start, end) = if may_cover_all { (at, segment.end) } else { part.bytes.span() };
            for (from, to) in [(at, start.min(segment.end)), (end.max(at), segment.end)] {
                if from < to {
                    let rest = self.cut(&segment, from, to);
                    self.segments.insert(from, rest);
                }
            }
            let (from, to) = (start.max(at), end.min(segment.end));
            self.segments.insert(from, Segment { end: to, write: Some(i as u32), ..Segment::default() });
            return;
        }
        if may_cover_all {
            segment.met = segment.reads.len();
        }
        let accesses = self.accesses;
        segment.partial.retain(|&earlier| !supersedes(access, accesses[earlier as usize]));
        segment.partial.push(i as u32);
        self.segments.insert(at, segment);
    }

    /// The part of a segment from `from` to `to`.
    fn cut(&mut self, segment: &Segment, from: i64, to: i64) -> Segment {
        let range = ByteSet::range(from, to);
        self.tests += segment.partial.len() + segment.reads.len();
        let inside = |&i: &u32| self.accesses[i as usize].part.bytes.overlap(range) != Overlap::No;
        let keep = |list: &[u32]| list.iter().copied().filter(inside).collect::<Vec<u32>>();
        let met = segment.reads[..segment.met].iter().filter(|i| inside(i)).count();
        Segment {
            end: to,
            write: segment.write,
            partial: keep(&segment.partial),
            reads: keep(&segment.reads),
            met,
        }
    }

    fn meet_access(&mut self, before: u32, after: &Access) {
        let overlap = self.accesses[before as usize].part.bytes.overlap(after.part.bytes);
        self.meet(before, overlap, after.part.certain);
    }

    fn meet(&mut self, before: u32, overlap: Overlap, certain: bool) {
        self.tests += 1;
        if overlap != Overlap::No {
            let certain = certain && self.accesses[before as usize].part.certain && overlap == Overlap::Yes;
            self.pairs.push((before, certain));
        }
    }
}

/// Whether a later write that does not cover for certain makes `earlier` needless: everything that conflicts
/// with `earlier` conflicts with `later`, too, at least as certainly.
fn supersedes(later: &Access, earlier: &Access) -> bool {
    let (later, earlier) = (later.part, earlier.part);
    if later.certain && later.bytes.is_exact() {
        return later.bytes.covers(earlier.bytes);
    }
    later.bytes.may_cover(earlier.bytes) && !(earlier.certain && earlier.bytes.is_exact())
}

fn pair(before: &Access, after: &Access, storage: StorageIndex, certain: bool) -> Option<Conflict> {
    let hazard = match (before.touch.writes(), after.touch.writes()) {
        (true, false) => Hazard::ReadAfterWrite,
        (false, true) => Hazard::WriteAfterRead,
        (true, true) => Hazard::WriteAfterWrite,
        (false, false) => return None,
    };
    let landed = matches!(before.touch, Touch::Release | Touch::Land);
    let (before, after) = (before.node, after.node);
    (before != after).then_some(Conflict { before, after, storage, hazard, landed, certain })
}

/// The conflicts without regard to bytes: certain where all accesses are to the same bytes.
fn whole(accesses: &[&Access], storage: StorageIndex, certain: bool, found: &mut Vec<Conflict>) {
    let (mut write, mut reads): (Option<&Access>, Vec<&Access>) = (None, Vec::new());
    for access in accesses {
        found.extend(write.and_then(|write| pair(write, access, storage, certain)));
        if access.touch.writes() {
            found.extend(reads.drain(..).filter_map(|read| pair(read, access, storage, certain)));
            write = Some(access);
        } else {
            reads.push(access);
        }
    }
}
