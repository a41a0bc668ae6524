//! What can be done to values: slices, moves to other ranks, casts, reductions.
//!
//! Every function takes and gives values in canonical form, and costs no more than the runs that it touches.

use super::GroupId;
use super::arena::{Arena, NOTHING};
use super::cast::{is_one, keeps_of, stand_in};
use super::key::{Tag, Words};
use super::place::{HERE, PlaceError};
use super::reason::Reason;
use super::run::{Piece, RunList, pieces};
use super::source::{POISON, Source, SourceId, Symbol, Traits, ValueId};
use crate::graph::Dtype;

impl Arena {
    /// Elements `start .. start + len`. The caller has made sure that they exist.
    pub(super) fn slice(&mut self, value: ValueId, start: i64, len: i64) -> ValueId {
        if len <= 0 {
            return NOTHING;
        }
        if start == 0 && len == self.len(value) {
            return value;
        }
        if let Some(&known) = self.slices.get(&(value, start, len)) {
            return known;
        }
        let mut list = self.list();
        self.append(&mut list, value, start, len);
        let slice = self.value(list);
        self.slices.insert((value, start, len), slice);
        slice
    }

    /// `value` with the elements from `start` on replaced by those of `new`.
    pub(super) fn splice(&mut self, value: ValueId, start: i64, new: ValueId) -> ValueId {
        let (len, count) = (self.len(value), self.len(new));
        if start == 0 && count == len {
            return new;
        }
        let mut list = self.list();
        self.append(&mut list, value, 0, start);
        self.append(&mut list, new, 0, count);
        self.append(&mut list, value, start + count, len - start - count);
        self.value(list)
    }

    /// The values one after the other. The caller has made sure that the lengths together fit 64 bits.
    pub(super) fn join(&mut self, values: &[ValueId]) -> Result<ValueId, Reason> {
        self.room(values.iter().map(|&v| self.runs(v).len() as i64).sum())?;
        let mut list = self.list();
        for &value in values {
            self.append(&mut list, value, 0, self.len(value));
        }
        Ok(self.value(list))
    }

    /// A piece as the rank that `group := index` leads to holds it.
    fn move_piece(&mut self, piece: Piece, group: GroupId, index: u32) -> Result<Piece, Reason> {
        if self.is_uniform(piece.source) {
            return Ok(piece);
        }
        let place = self.places.get(piece.place);
        if place.moves.is_empty()
            && let Source::Select { group: over, table } = self.get(piece.source)
            && over == group
            && let Some(&chosen) = self.table(table).get(index as usize)
        {
            // The move says which piece it is.
            if place.scales.is_empty() {
                return self.move_piece(chosen_piece(piece, chosen)?, group, index);
            }
        }
        match self.places.moved(piece.place, group, index) {
            Ok((moved, added)) => {
                let offset = piece.offset.checked_add(added).ok_or(Reason::Overflow)?;
                let stays =
                    self.places.get(piece.place).moves.is_empty() && self.is_shared(piece.source, group);
                let place = if stays { self.places.without_moves(moved) } else { moved };
                Ok(Piece { offset, place, ..piece })
            }
            Err(PlaceError::Overflow) => Err(Reason::Overflow),
            Err(PlaceError::Entangled) => {
                let source = self.source(Source::Elsewhere { source: piece.source, place: piece.place });
                let (place, _) = self.places.moved(HERE, group, index).map_err(|_| Reason::Overflow)?;
                Ok(Piece { source, place, ..piece })
            }
        }
    }

    /// Whether a source is the same on all ranks of a group: what has been reduced over it is.
    fn is_shared(&mut self, source: SourceId, group: GroupId) -> bool {
        match self.get(source) {
            Source::Reduced { group: over, .. } => self.places.inside(group, over),
            Source::Cast { source, .. } | Source::Bits { source, .. } => self.is_shared(source, group),
            _ => false,
        }
    }

    /// The value that the rank to which `group := index` leads holds.
    pub(super) fn moved(&mut self, value: ValueId, group: GroupId, index: u32) -> Result<ValueId, Reason> {
        let mut list = self.list();
        let result = self.push_moved(&mut list, value, group, index);
        self.finish(list, result)
    }

    fn finish(&mut self, list: RunList, result: Result<(), Reason>) -> Result<ValueId, Reason> {
        match result {
            Ok(()) => Ok(self.value(list)),
            Err(reason) => {
                self.drop_list(list);
                Err(reason)
            }
        }
    }

    fn push_moved(
        &mut self,
        list: &mut RunList,
        value: ValueId,
        group: GroupId,
        index: u32,
    ) -> Result<(), Reason> {
        for i in 0..self.runs(value).len() {
            let piece = self.nth(value, i);
            let piece = self.move_piece(piece, group, index)?;
            list.push(piece);
        }
        Ok(())
    }

    /// The `i`-th run of a value.
    fn nth(&self, value: ValueId, i: usize) -> Piece {
        let runs = self.runs(value);
        let begin = if i == 0 { 0 } else { runs[i - 1].end };
        let run = &runs[i];
        Piece {
            len: run.end - begin,
            offset: run.offset,
            source: run.source,
            place: run.place(),
            step: run.step(),
        }
    }

    /// The value through a sequence of moves, the first of which is carried out first.
    pub(super) fn moved_along(
        &mut self,
        value: ValueId,
        moves: &[(GroupId, u32)],
    ) -> Result<ValueId, Reason> {
        moves.iter().rev().try_fold(value, |value, &(group, index)| self.moved(value, group, index))
    }

    /// What `size` ranks of `group` hold, one after the other.
    pub(super) fn gathered(&mut self, value: ValueId, group: GroupId, size: u32) -> Result<ValueId, Reason> {
        let len = self.len(value);
        if size == 0 {
            return Err(Reason::Group { ranks: 0, elements: len });
        }
        if size == 1 || len == 0 {
            return Ok(value);
        }
        len.checked_mul(i64::from(size)).ok_or(Reason::Overflow)?;
        self.room((self.runs(value).len() as i64).saturating_mul(i64::from(size)))?;
        let mut list = self.list();
        let result = (0..size).try_for_each(|j| self.push_moved(&mut list, value, group, j));
        self.finish(list, result)
    }

    /// `op` over the ranks of `group`, element by element.
    pub(super) fn reduced(
        &mut self,
        value: ValueId,
        op: Symbol,
        group: GroupId,
        size: u32,
    ) -> Result<ValueId, Reason> {
        if size == 0 {
            return Err(Reason::Group { ranks: 0, elements: self.len(value) });
        }
        if size == 1 {
            return Ok(value);
        }
        self.room(self.runs(value).len() as i64)?;
        let mut list = self.list();
        for i in 0..self.runs(value).len() {
            let piece = self.nth(value, i);
            let piece = self.reduce_piece(piece, op, group);
            list.push(piece);
        }
        Ok(self.value(list))
    }

    fn reduce_piece(&mut self, piece: Piece, op: Symbol, group: GroupId) -> Piece {
        if matches!(self.get(piece.source), Source::Poison | Source::InFlight { .. }) {
            return piece;
        }
        let source = self.source(Source::Reduced { op, group, source: piece.source, place: piece.place });
        Piece { source, place: HERE, ..piece }
    }

    /// The own part of a value that is cut into `size` equal parts, one for each rank of `group`: stretches, in
    /// order. `None` where they would be too many.
    fn own_part(&self, value: ValueId, size: u32) -> Option<Vec<Stretch>> {
        let part = self.len(value) / i64::from(size);
        if let Some(piece) = self.single(value) {
            return Some(vec![Stretch::Even(Piece { len: part, ..piece }, part * piece.step)]);
        }
        // The stretches end where any part's runs do.
        let mut ends: Vec<i64> = self.runs(value).iter().map(|run| (run.end - 1) % part + 1).collect();
        ends.push(part);
        ends.sort_unstable();
        ends.dedup();
        if (ends.len() as i64).saturating_mul(i64::from(size)) > self.limits.runs.min(1 << 22) as i64 {
            return None;
        }
        let mut stretches: Vec<Vec<Piece>> = vec![Vec::with_capacity(size as usize); ends.len()];
        let mut all = pieces(self.runs(value), 0, self.len(value));
        let mut rest: Option<Piece> = None;
        for _ in 0..size {
            let mut start = 0;
            for (stretch, &end) in stretches.iter_mut().zip(&ends) {
                let piece = rest.take().or_else(|| all.next())?;
                let len = end - start;
                stretch.push(Piece { len, ..piece });
                if piece.len > len {
                    let offset = piece.offset + len * piece.step;
                    rest = Some(Piece { len: piece.len - len, offset, ..piece });
                }
                start = end;
            }
        }
        Some(stretches.into_iter().map(Stretch::of).collect())
    }

    /// `op` over the ranks of `group` of the own one of `size` equal parts.
    pub(super) fn reduce_scattered(
        &mut self,
        value: ValueId,
        op: Symbol,
        group: GroupId,
        size: u32,
    ) -> Result<ValueId, Reason> {
        let len = self.check_parts(value, size)?;
        if size == 1 || len == 0 {
            return Ok(value);
        }
        let Some(stretches) = self.own_part(value, size) else {
            let words = self.movement("reduce_scatter", value, group, size, Some(op));
            return Ok(self.opaque_movement(&words, len / i64::from(size), &[value]));
        };
        let mut list = self.list();
        for stretch in stretches {
            let piece = match stretch {
                Stretch::Even(piece, scale) => {
                    let reduced = self.reduce_piece(piece, op, group);
                    self.scaled(reduced, group, scale)
                }
                Stretch::Uneven(mut pieces) => {
                    for piece in &mut pieces {
                        *piece = self.reduce_piece(*piece, op, group);
                    }
                    self.selected(group, &pieces)
                }
            };
            list.push(piece);
        }
        Ok(self.value(list))
    }

    /// The own one of `size` equal parts of what each rank of `group` holds, one after the other.
    pub(super) fn exchanged(&mut self, value: ValueId, group: GroupId, size: u32) -> Result<ValueId, Reason> {
        let len = self.check_parts(value, size)?;
        if size == 1 || len == 0 {
            return Ok(value);
        }
        let Some(stretches) = self.own_part(value, size) else {
            let words = self.movement("all_to_all", value, group, size, None);
            return Ok(self.opaque_movement(&words, len, &[value]));
        };
        self.room((stretches.len() as i64).saturating_mul(i64::from(size)))?;
        let mut list = self.list();
        for j in 0..size {
            let result = stretches.iter().try_for_each(|stretch| {
                let piece = match stretch {
                    Stretch::Even(piece, scale) => {
                        let moved = self.move_piece(*piece, group, j)?;
                        self.scaled(moved, group, *scale)
                    }
                    Stretch::Uneven(pieces) => {
                        let moved: Result<Vec<Piece>, Reason> =
                            pieces.iter().map(|&piece| self.move_piece(piece, group, j)).collect();
                        self.selected(group, &moved?)
                    }
                };
                list.push(piece);
                Ok(())
            });
            if let Err(reason) = result {
                self.drop_list(list);
                return Err(reason);
            }
        }
        Ok(self.value(list))
    }

    /// A piece whose offset grows by `scale` for each step in a group.
    fn scaled(&mut self, piece: Piece, group: GroupId, scale: i64) -> Piece {
        if self.is_uniform(piece.source) {
            return piece;
        }
        Piece { place: self.places.with_scale(piece.place, group, scale), ..piece }
    }

    /// The piece that is the `k`-th of `pieces` on the `k`-th rank of a group.
    fn selected(&mut self, group: GroupId, pieces: &[Piece]) -> Piece {
        // Element numbers are those of the first piece that goes on, so that they do not depend on where the
        // stretch begins.
        let base = pieces.iter().find(|p| p.step != 0).map_or(0, |p| p.offset);
        let step = if pieces.iter().any(|p| p.step != 0) { 1 } else { 0 };
        let len = pieces.first().map_or(0, |p| p.len);
        let shift = |p: &Piece| {
            let offset = if p.step == 0 { p.offset } else { p.offset.wrapping_sub(base) };
            Piece { len: 1, offset, ..*p }
        };
        let shifted: Vec<Piece> = pieces.iter().map(shift).collect();
        let table = self.table_id(&shifted);
        let source = self.source(Source::Select { group, table });
        Piece { len, offset: base, source, place: HERE, step }
    }

    fn check_parts(&self, value: ValueId, size: u32) -> Result<i64, Reason> {
        let len = self.len(value);
        if size == 0 || len % i64::from(size) != 0 {
            return Err(Reason::Group { ranks: i64::from(size), elements: len });
        }
        Ok(len)
    }

    fn movement(
        &mut self,
        name: &str,
        value: ValueId,
        group: GroupId,
        size: u32,
        op: Option<Symbol>,
    ) -> Words {
        let mut words = Words::default();
        let name = self.symbol(name);
        words.symbol(Tag::Target, name);
        words.put(Tag::Group, group.0);
        words.int(i64::from(size));
        if let Some(op) = op {
            words.symbol(Tag::Text, op);
        }
        words.tensor(value, Dtype::U8, &[]);
        words
    }

    /// Whether a value has unwritten elements and others.
    pub(super) fn is_partly_unwritten(&self, value: ValueId) -> bool {
        self.traits(value).has(Traits::POISON) && self.runs(value).iter().any(|run| run.source != POISON)
    }

    /// What other ranks hold, each by a graph of its own, where this one holds `value`: nothing is known of it.
    pub(super) fn of_another_graph(&mut self, value: ValueId) -> ValueId {
        let mut words = Words::default();
        let name = self.symbol("another graph");
        words.symbol(Tag::Target, name);
        words.tensor(value, Dtype::U8, &[]);
        self.opaque_movement(&words, self.len(value), &[value])
    }

    /// A result that is only known to be a function of its key, though it is made of elements of `inputs`.
    pub(super) fn opaque_movement(&mut self, words: &Words, len: i64, inputs: &[ValueId]) -> ValueId {
        let key = self.key(words);
        let held = Traits::POISON.and(Traits::IN_FLIGHT);
        let held = inputs.iter().fold(Traits::default(), |t, &v| t.and(self.traits(v).shared(held)));
        let source = self.source_with(Source::Opaque { key, output: 0 }, None, held);
        self.all_of(source, len)
    }

    /// The elements cast from one dtype to another.
    pub(super) fn cast(&mut self, value: ValueId, from: Dtype, to: Dtype) -> ValueId {
        if from == to {
            return value;
        }
        let memo = (value, ((from as u16) << 8) | to as u16);
        if let Some(&known) = self.casts.get(&memo) {
            return known;
        }
        let mut list = self.list();
        for i in 0..self.runs(value).len() {
            let piece = self.nth(value, i);
            let source = self.cast_source(piece.source, from, to);
            list.push(Piece { source, ..piece });
        }
        let cast = self.value(list);
        self.casts.insert(memo, cast);
        cast
    }

    pub(super) fn cast_source(&mut self, source: SourceId, from: Dtype, to: Dtype) -> SourceId {
        match self.get(source) {
            _ if from == to => source,
            Source::Poison | Source::InFlight { .. } => source,
            Source::Cast { source: inner, from: first, to: middle }
                if middle == from && is_one(first, from, to) =>
            {
                self.cast_source(inner, first, to)
            }
            Source::Cast { source: inner, from: integer, to: middle }
                if middle == from && self.is_kept(inner, integer, from) =>
            {
                self.cast_source(inner, integer, to)
            }
            Source::Cast { source: inner, from: integer, to: middle }
                if middle == from && stand_in(integer, from, to) != from =>
            {
                let float = stand_in(integer, from, to);
                let kept = self.cast_source(inner, integer, float);
                self.cast_source(kept, float, to)
            }
            // A cast of the own choice is the choice of casts.
            Source::Select { group, table } => {
                let mut pieces = self.table(table).to_vec();
                for piece in &mut pieces {
                    piece.source = self.cast_source(piece.source, from, to);
                }
                let table = self.table_id(&pieces);
                self.source(Source::Select { group, table })
            }
            _ => self.source(Source::Cast { source, from, to }),
        }
    }

    /// Whether a cast from the dtype `from` of `source` to `to` keeps it exactly, since it was made of a float of few
    /// bits.
    fn is_kept(&self, source: SourceId, from: Dtype, to: Dtype) -> bool {
        match self.get(source) {
            Source::Cast { from: first, to: made, .. } => made == from && keeps_of(first, from, to),
            _ => false,
        }
    }

    /// The bits of a value of one dtype read as another. `Err` where the bytes do not divide.
    pub(super) fn retyped(&mut self, value: ValueId, from: Dtype, to: Dtype) -> Result<ValueId, Reason> {
        if from == to {
            return Ok(value);
        }
        let (old, new) = (i64::from(from.itemsize()), i64::from(to.itemsize()));
        let bytes = self.len(value).checked_mul(old).ok_or(Reason::Overflow)?;
        if bytes % new != 0 {
            return Err(Reason::arguments(format!("{bytes} bytes are no whole number of {}", to.name())));
        }
        let mut list = self.list();
        for i in 0..self.runs(value).len() {
            let piece = self.nth(value, i);
            match self.retype_piece(piece, from, to) {
                Some(piece) => list.push(piece),
                None => {
                    self.drop_list(list);
                    let mut words = Words::default();
                    let name = self.symbol("view.dtype");
                    words.symbol(Tag::Target, name);
                    words.dtype(to);
                    words.tensor(value, from, &[]);
                    return Ok(self.opaque_movement(&words, bytes / new, &[value]));
                }
            }
        }
        Ok(self.value(list))
    }

    fn retype_piece(&mut self, piece: Piece, from: Dtype, to: Dtype) -> Option<Piece> {
        let (old, new) = (i64::from(from.itemsize()), i64::from(to.itemsize()));
        let scale = |n: i64| {
            let bytes = n.checked_mul(old)?;
            (bytes % new == 0).then_some(bytes / new)
        };
        let len = scale(piece.len)?;
        match self.get(piece.source) {
            Source::Poison | Source::InFlight { .. } => return Some(Piece { len, ..piece }),
            // The bytes of one repeated element make one repeated element only at equal size.
            _ if piece.step == 0 && piece.len > 1 && old != new => return None,
            Source::Select { .. } if old != new => return None,
            Source::Select { group, table } => {
                let mut pieces = self.table(table).to_vec();
                for piece in &mut pieces {
                    *piece = self.retype_piece(*piece, from, to)?;
                }
                let table = self.table_id(&pieces);
                return Some(Piece { source: self.source(Source::Select { group, table }), ..piece });
            }
            _ => {}
        }
        let (source, from) = match self.get(piece.source) {
            Source::Bits { source, from: first, to: middle } if middle == from => (source, first),
            _ => (piece.source, from),
        };
        let source = if from == to { source } else { self.source(Source::Bits { source, from, to }) };
        let place = self.places.rescaled(piece.place, old, new)?;
        Some(Piece { len, offset: scale(piece.offset)?, source, place, step: piece.step })
    }
}

/// A stretch of the own part of a value that is cut into parts.
enum Stretch {
    /// The stretch of the first part, and what is added to its offset for each further part.
    Even(Piece, i64),
    /// The stretch of each part.
    Uneven(Vec<Piece>),
}

impl Stretch {
    fn of(pieces: Vec<Piece>) -> Stretch {
        let [first, second, ..] = pieces[..] else { return Stretch::Uneven(pieces) };
        let scale = second.offset.wrapping_sub(first.offset);
        let even = pieces.iter().enumerate().all(|(k, &piece)| {
            let shift = scale.checked_mul(k as i64).and_then(|s| s.checked_add(first.offset));
            let same_step = piece.step == first.step || piece.len == 1;
            Some(piece.offset) == shift
                && piece.source == first.source
                && piece.place == first.place
                && same_step
        });
        if even { Stretch::Even(first, scale) } else { Stretch::Uneven(pieces) }
    }
}

/// The elements of `piece`, of a table's source, when `chosen` is the table's piece.
pub(super) fn chosen_piece(piece: Piece, chosen: Piece) -> Result<Piece, Reason> {
    let offset = if chosen.step == 0 { Some(chosen.offset) } else { chosen.offset.checked_add(piece.offset) };
    let step = if chosen.step == 0 { 0 } else { piece.step };
    Ok(Piece { len: piece.len, offset: offset.ok_or(Reason::Overflow)?, step, ..chosen })
}
