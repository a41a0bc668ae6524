//! Reading and writing flat memory through a layout.
//!
//! Reading gives the *logical value* of a window: its elements in row-major order, as runs. Where that would take too
//! many runs it is one run of a [`Source::Window`], which keeps the elements that the window covers and the layout.
//! A window on a window is composed into one, so that different routes to the same elements meet again.

use super::arena::{Arena, NOTHING};
use super::key::{Tag, Words};
use super::layout::{self, Dims};
use super::place::HERE;
use super::reason::Reason;
use super::run::{Piece, pieces};
use super::source::{Source, ValueId};
use crate::graph::Dtype;

impl Arena {
    /// The `count` elements of `content` that a layout in normal form shows from `offset` on.
    pub(super) fn read(
        &mut self,
        content: ValueId,
        offset: i64,
        dims: &[(i64, i64)],
        count: i64,
    ) -> Result<ValueId, Reason> {
        if count <= 0 {
            return Ok(NOTHING);
        }
        let extent = self.extent_inside(content, offset, dims)?;
        match dims {
            [] => return Ok(self.slice(content, offset, 1)),
            &[(n, 1)] => return Ok(self.slice(content, offset, n)),
            _ => {}
        }
        let memo = (content, offset, self.layout_id(dims));
        if let Some(&known) = self.windows.get(&memo) {
            return Ok(known);
        }
        let first = pieces(self.runs(content), offset, extent + 1).next();
        let value = match first {
            Some(piece) if piece.len == extent + 1 => self.read_run(piece, dims, count)?,
            _ if layout::blocks(dims) <= self.most_blocks(dims) => self.flatten(content, offset, dims)?,
            // A piece of a larger buffer shows what a copy of it shows: the gaps are left out first.
            _ => match layout::packed(dims) {
                Some((in_memory, shown))
                    if extent + 1 > count && layout::blocks(&in_memory) <= self.limits.flatten =>
                {
                    let packed = self.read(content, offset, &in_memory, count)?;
                    self.read(packed, 0, &shown, count)?
                }
                _ => {
                    let covered = self.slice(content, offset, extent + 1);
                    self.window(covered, dims, count)
                }
            },
        };
        self.windows.insert(memo, value);
        Ok(value)
    }

    /// Stretches up to which a layout on several runs is written out. In the order of memory the runs of a bucket's
    /// piece come out as those of the tensor alone; a permutation tears them apart.
    fn most_blocks(&self, dims: &[(i64, i64)]) -> i64 {
        match dims.is_sorted_by(|outer, inner| outer.1 >= inner.1) {
            true => self.limits.flatten,
            false => self.limits.flatten_other,
        }
    }

    /// The elements of a single run, which is what the layout covers.
    fn read_run(&mut self, piece: Piece, dims: &[(i64, i64)], count: i64) -> Result<ValueId, Reason> {
        if piece.step == 0 || matches!(dims, [(_, 0)]) {
            return Ok(self.piece(Piece { len: count, step: 0, ..piece }));
        }
        let unscaled = self.places.get(piece.place).scales.is_empty();
        if let Source::Window { content, layout } = self.get(piece.source)
            && unscaled
            && let Some((base, inner)) = layout::compose(dims, piece.offset, self.layout(layout))
        {
            let value = self.read(content, base, &inner, count)?;
            let moves = self.places.get(piece.place).moves.clone();
            return self.moved_along(value, &moves);
        }
        if layout::blocks(dims) <= self.limits.flatten_other {
            let covered = self.piece(piece);
            return self.flatten(covered, 0, dims);
        }
        // The moves go outside, so that the own elements and those of another rank share one window.
        if unscaled {
            let own = self.piece(Piece { place: HERE, ..piece });
            let window = self.window(own, dims, count);
            let moves = self.places.get(piece.place).moves.clone();
            return self.moved_along(window, &moves);
        }
        let covered = self.piece(piece);
        Ok(self.window(covered, dims, count))
    }

    /// A run of the source that shows `content` through a layout.
    fn window(&mut self, content: ValueId, dims: &[(i64, i64)], count: i64) -> ValueId {
        let layout = self.layout_id(dims);
        let source = self.source(Source::Window { content, layout });
        self.all_of(source, count)
    }

    /// The elements that a layout shows, stretch by stretch.
    fn flatten(&mut self, content: ValueId, offset: i64, dims: &[(i64, i64)]) -> Result<ValueId, Reason> {
        let most = self.limits.runs as i64;
        self.room(layout::blocks(dims))?;
        let mut list = self.list();
        let this = &*self;
        let runs = this.runs(content);
        let mut full = false;
        layout::for_each_block(dims, &mut |at, len, step| {
            full |= list.runs().len() as i64 > most;
            if full {
                return;
            }
            if step == 1 {
                for piece in pieces(runs, offset + at, len) {
                    list.push(piece);
                }
            } else if let Some(piece) = pieces(runs, offset + at, 1).next() {
                list.push(Piece { len, step: 0, ..piece });
            }
        });
        let room = self.room(list.runs().len() as i64);
        if full || room.is_err() {
            self.drop_list(list);
            return Err(Reason::TooManyRuns { limit: self.limits.runs });
        }
        Ok(self.value(list))
    }

    /// The extent of a layout that from `offset` on stays within `content`.
    fn extent_inside(&self, content: ValueId, offset: i64, dims: &[(i64, i64)]) -> Result<i64, Reason> {
        let extent = layout::extent(dims).ok_or(Reason::Overflow)?;
        let end = offset.checked_add(extent).and_then(|e| e.checked_add(1)).ok_or(Reason::Overflow)?;
        let len = self.len(content);
        if offset < 0 || end > len {
            return Err(Reason::Outside { end, len });
        }
        Ok(extent)
    }

    /// `content` after `value` has been written through a layout in normal form from `offset` on.
    pub(super) fn write(
        &mut self,
        content: ValueId,
        offset: i64,
        dims: &[(i64, i64)],
        value: ValueId,
    ) -> Result<ValueId, Reason> {
        let count = self.len(value);
        if count == 0 {
            return Ok(content);
        }
        let extent = self.extent_inside(content, offset, dims)?;
        // What is written to piece by piece is stored anew each time.
        self.room(self.runs(content).len() as i64 + self.runs(value).len() as i64)?;
        if matches!(dims, [] | [(_, 1)]) {
            return Ok(self.splice(content, offset, value));
        }
        if dims.iter().any(|&(_, stride)| stride == 0) {
            return Err(Reason::arguments("a write to elements that lie on each other"));
        }
        // A permutation of a stretch: what is written there is the value in the other order.
        if extent + 1 == count
            && let Some(back) = layout::inverse(dims)
        {
            let permuted = self.read(value, 0, &back, count)?;
            return Ok(self.splice(content, offset, permuted));
        }
        if layout::blocks(dims) > self.limits.flatten {
            return self.opaque_write(content, offset, dims, value);
        }
        // Stretches: place in the content, length, place in the value.
        let mut stretches: Vec<(i64, i64, i64)> = Vec::new();
        let mut from = 0i64;
        layout::for_each_block(dims, &mut |at, len, _| {
            stretches.push((offset + at, len, from));
            from += len;
        });
        stretches.sort_unstable();
        if stretches.windows(2).any(|pair| pair[0].0 + pair[0].1 > pair[1].0) {
            return Err(Reason::arguments("a write to elements that lie on each other"));
        }
        self.room(2 * stretches.len() as i64 + self.runs(content).len() as i64)?;
        let mut list = self.list();
        let mut done = 0i64;
        for (at, len, from) in stretches {
            self.append(&mut list, content, done, at - done);
            self.append(&mut list, value, from, len);
            done = at + len;
        }
        self.append(&mut list, content, done, self.len(content) - done);
        Ok(self.value(list))
    }

    /// A write that is not followed: all of the content becomes a function of what was there and what is written.
    fn opaque_write(
        &mut self,
        content: ValueId,
        offset: i64,
        dims: &[(i64, i64)],
        value: ValueId,
    ) -> Result<ValueId, Reason> {
        let mut words = Words::default();
        let name = self.symbol("write");
        words.symbol(Tag::Target, name);
        words.int(offset);
        let flat: Dims = dims.to_vec();
        flat.iter().for_each(|&(size, stride)| {
            words.int(size);
            words.int(stride);
        });
        words.tensor(content, Dtype::U8, &[]);
        words.tensor(value, Dtype::U8, &[]);
        let len = self.len(content);
        Ok(self.opaque_movement(&words, len, &[content, value]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Limits;
    use super::super::source::{Source, SourceId};
    use super::*;
    use crate::graph::World;
    use proptest::prelude::*;

    /// Elements one by one, windows looked through: (source, offset, moves).
    fn elements(arena: &mut Arena, value: ValueId) -> Vec<(SourceId, i64, Vec<(u32, u32)>)> {
        let mut all = Vec::new();
        for t in 0..arena.len(value) {
            let (mut value, mut t, mut moves) = (value, t, Vec::new());
            loop {
                let piece = pieces(arena.runs(value), t, 1).next().unwrap();
                moves.extend(arena.places.get(piece.place).moves.iter().map(|&(g, j)| (g.0, j)));
                match arena.get(piece.source) {
                    Source::Window { content, layout } => {
                        t = layout::position(arena.layout(layout), piece.offset);
                        value = content;
                    }
                    _ => break all.push((piece.source, piece.offset, moves)),
                }
            }
        }
        all
    }

    fn arena(flatten: i64) -> Arena {
        Arena::new(&World::default(), Limits { flatten, flatten_other: flatten, ..Limits::DEFAULT })
    }

    /// A value of `n` elements: one source, or one after the other of two ranks.
    fn memory(arena: &mut Arena, n: i64, gathered: bool) -> ValueId {
        let source = arena.source(Source::Placeholder { position: 0 });
        if gathered {
            let half = arena.all_of(source, n / 2);
            let group = arena.places.group("g");
            arena.gathered(half, group, 2).unwrap()
        } else {
            arena.all_of(source, n)
        }
    }

    fn any_layout() -> impl Strategy<Value = (i64, Vec<(i64, i64)>)> {
        (0i64..4, prop::collection::vec((1i64..5, 0i64..5), 0..4))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// A window shows the elements that its layout names, however many windows it is seen through.
        #[test]
        fn windows_show_their_elements(
            layouts in prop::collection::vec(any_layout(), 1..4),
            gathered in any::<bool>(), flatten in 0i64..20,
        ) {
            let mut arena = arena(flatten);
            let mut value = memory(&mut arena, 60, gathered);
            let mut expected = elements(&mut arena, value);
            for (offset, dims) in layouts {
                let (sizes, strides): (Vec<i64>, Vec<i64>) = dims.iter().copied().unzip();
                let count: i64 = sizes.iter().product();
                let normal = layout::normal(&sizes, &strides);
                match arena.read(value, offset, &normal, count) {
                    Ok(read) => value = read,
                    Err(Reason::Outside { .. }) => continue,
                    Err(reason) => return Err(TestCaseError::fail(reason.to_string())),
                }
                expected = (0..count)
                    .map(|t| expected[(offset + layout::position(&dims, t)) as usize].clone())
                    .collect();
                prop_assert_eq!(arena.len(value), count);
                prop_assert_eq!(&elements(&mut arena, value), &expected);
            }
        }

        /// Where everything may be flattened, values are equal exactly if their elements are.
        #[test]
        fn flattened_windows_are_canonical(a in any_layout(), b in any_layout(), gathered in any::<bool>()) {
            let mut arena = arena(1 << 20);
            let memory = memory(&mut arena, 60, gathered);
            let mut values = Vec::new();
            for (offset, dims) in [a, b] {
                let (sizes, strides): (Vec<i64>, Vec<i64>) = dims.iter().copied().unzip();
                let normal = layout::normal(&sizes, &strides);
                let count = sizes.iter().product();
                match arena.read(memory, offset, &normal, count) {
                    Ok(value) => values.push(value),
                    Err(_) => return Ok(()),
                }
            }
            let same = elements(&mut arena, values[0]) == elements(&mut arena, values[1]);
            prop_assert_eq!(values[0] == values[1], same);
        }

        /// A write changes the elements that its layout names, and no others.
        #[test]
        fn writes_change_their_elements((offset, dims) in any_layout(), flatten in 0i64..20) {
            let mut arena = arena(flatten);
            let content = memory(&mut arena, 60, true);
            let (sizes, strides): (Vec<i64>, Vec<i64>) = dims.iter().copied().unzip();
            let count: i64 = sizes.iter().product();
            let positions: Vec<i64> = (0..count).map(|t| offset + layout::position(&dims, t)).collect();
            let mut distinct = positions.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let is_opaque = |arena: &Arena, value| {
                arena.runs(value).iter().any(|run| matches!(arena.get(run.source), Source::Opaque { .. }))
            };
            let source = arena.source(Source::Placeholder { position: 1 });
            let value = arena.all_of(source, count);
            let mut expected = elements(&mut arena, content);
            for (&at, element) in positions.iter().zip(elements(&mut arena, value)) {
                if let Some(slot) = expected.get_mut(at as usize) {
                    *slot = element;
                }
            }
            match arena.write(content, offset, &layout::normal(&sizes, &strides), value) {
                Ok(written) if is_opaque(&arena, written) => {
                    prop_assert!(layout::blocks(&layout::normal(&sizes, &strides)) > flatten);
                }
                Ok(written) => prop_assert_eq!(elements(&mut arena, written), expected),
                Err(Reason::Outside { .. }) => prop_assert!(positions.iter().any(|&p| p >= 60)),
                Err(_) => prop_assert!(distinct.len() < positions.len()),
            }
        }
    }

    #[test]
    fn a_transpose_of_a_transpose_is_the_tensor() {
        let mut arena = arena(4);
        for gathered in [false, true] {
            let content = memory(&mut arena, 60, gathered);
            let there = arena.read(content, 0, &[(10, 1), (6, 10)], 60).unwrap();
            assert_eq!(arena.run_count(there), 1);
            let back = arena.read(there, 0, &[(6, 1), (10, 6)], 60).unwrap();
            assert_eq!(back, content);
        }
    }

    #[test]
    fn a_window_of_another_rank_is_the_window_moved() {
        let mut arena = arena(4);
        let group = arena.places.group("g");
        let own = memory(&mut arena, 60, false);
        let dims = [(10, 1), (6, 10)];
        let window = arena.read(own, 0, &dims, 60).unwrap();
        let gathered_window = arena.gathered(window, group, 2).unwrap();
        let gathered = arena.gathered(own, group, 2).unwrap();
        let second = arena.read(gathered, 60, &dims, 60).unwrap();
        assert_eq!(arena.slice(gathered_window, 60, 60), second);
    }

    #[test]
    fn a_transposed_piece_of_a_bucket_is_the_transposed_tensor() {
        let mut arena = arena(8);
        let group = arena.places.group("g");
        let (own, other) = (memory(&mut arena, 6, false), {
            let source = arena.source(Source::Placeholder { position: 1 });
            arena.all_of(source, 6)
        });
        let gathered = arena.gathered(own, group, 4).unwrap();
        let alone = arena.read(gathered, 0, &[(6, 1), (4, 6)], 24).unwrap();
        let pair = arena.join(&[other, own]).unwrap();
        let bucket = arena.gathered(pair, group, 4).unwrap();
        assert_eq!(arena.read(bucket, 6, &[(6, 1), (4, 12)], 24).unwrap(), alone);
        assert_ne!(arena.read(bucket, 0, &[(6, 1), (4, 12)], 24).unwrap(), alone);
    }

    #[test]
    fn limits_refuse() {
        let limits = Limits { runs: 40, flatten: 1 << 16, flatten_other: 1 << 16 };
        let mut arena = Arena::new(&World::default(), limits);
        let source = arena.source(Source::Placeholder { position: 0 });
        let content = arena.all_of(source, 10_000);
        let many = arena.read(content, 0, &[(100, 1), (100, 100)], 10_000);
        assert_eq!(many, Err(Reason::TooManyRuns { limit: 40 }));
        let group = arena.places.group("g");
        assert!(matches!(arena.gathered(content, group, u32::MAX), Err(Reason::TooManyRuns { .. })));
        assert!(matches!(arena.gathered(content, group, 0), Err(Reason::Group { .. })));
        assert_eq!(
            arena.read(content, 9_999, &[(2, 1)], 2),
            Err(Reason::Outside { end: 10_001, len: 10_000 })
        );
        assert_eq!(arena.read(content, i64::MAX, &[(2, 1)], 2), Err(Reason::Overflow));
    }
}
