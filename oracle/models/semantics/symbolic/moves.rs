//! Movement of elements: runs are copied, nothing is computed.

use super::arena::NOTHING;
use super::arguments::Call;
use super::evaluation::{Produced, Tensor};
use super::layout;
use super::machine::{Machine, Reading, Stop};
use super::reason::Reason;
use super::run::RunList;
use super::source::ValueId;
use super::views::{Numbers, dimension};
use crate::graph::layout as numbers;
use crate::graph::{Dtype, Value, contiguous_strides};
use crate::ops::shape::{self, Given, Packing, Size, Window, promote};
use crate::ops::{Move, Schema, View, dtype_of_bucketing_id};

/// A logical value with its shape.
pub(super) struct Moved {
    pub(super) value: ValueId,
    pub(super) sizes: Vec<i64>,
    pub(super) dtype: Dtype,
}

fn bad(text: &str) -> Stop {
    Stop::Unknown(Reason::arguments(text))
}

/// The arguments that a schema says are written, by parameter.
fn written(schema: &Schema) -> Option<usize> {
    schema.mutated().next()
}

impl Machine<'_, '_> {
    /// Executes a movement.
    pub(super) fn movement(&mut self, call: &Call<'_>, kind: Move) -> Result<Produced, Stop> {
        let moved = match kind {
            Move::Clone => return self.cloned(call),
            Move::ForeachCopy => return self.foreach_copy(call),
            Move::SplitWithSizesCopy => return self.split_copy(call),
            Move::AllGatherCopyIn => return self.copy_in(call),
            Move::Cat => self.concatenated(call)?,
            Move::Stack => self.stacked(call)?,
            Move::Copy => {
                let (to, from) = (self.tensor(call.node(0)?)?, self.tensor(call.node(1)?)?);
                if let Some(copied) = self.copied_symbolic(call, to, from)? {
                    return Ok(copied);
                }
                if self.shows_twice(to) && written(call.schema).is_some() {
                    return Err(Stop::NotFollowed);
                }
                let value = self.broadcast(from, to)?;
                Moved { value, sizes: self.sizes(to)?, dtype: to.dtype }
            }
            Move::SliceScatter | Move::SelectScatter | Move::AsStridedScatter | Move::DiagonalScatter => {
                self.scattered(call, kind)?
            }
            Move::Pad => self.padded(call)?,
            Move::Repeat => self.repeated(call)?,
            Move::ChunkCat => {
                let tensors = self.tensors(call, 0)?;
                let (dim, chunks) = (self.int(call, 1)?, self.int(call, 2)?);
                self.chunk_cat(&tensors, dim, chunks)?
            }
            Move::PreBucketAllGather => self.pre_bucket_all_gather(call)?,
            Move::PreBucketReduceScatter => self.pre_bucket_reduce_scatter(call)?,
            Move::Roll => self.rolled(call)?,
            Move::Flip
            | Move::Index
            | Move::IndexSelect
            | Move::IndexPut
            | Move::Gather
            | Move::Scatter
            | Move::ScatterAdd
            | Move::Embedding => {
                // Which elements are moved is not known: a difference in an input may not be seen.
                return Ok(self.opaque(call.info, Some(call))?);
            }
        };
        self.deliver(call, moved)
    }

    /// Hands a result over: into the argument that the schema says is written, else as a new tensor.
    pub(super) fn deliver(&mut self, call: &Call<'_>, moved: Moved) -> Result<Produced, Stop> {
        let Some(param) = written(call.schema) else {
            let fresh = self.fresh_result(0, moved.value, &moved.sizes, moved.dtype)?;
            return Ok(self.done(fresh));
        };
        let target = self.tensor(call.node(param)?)?;
        if self.sizes(target)? != moved.sizes {
            let (have, need) = (self.sizes(target)?, moved.sizes);
            return Err(
                Reason::arguments(format!("a result of sizes {need:?} for a buffer of {have:?}")).into()
            );
        }
        let value = self.arena.cast(moved.value, moved.dtype, target.dtype);
        self.write(target, value)?;
        Ok(if call.schema.returns.is_empty() { Produced::Nothing } else { self.done(target) })
    }

    /// The tensors in a list parameter.
    fn tensors(&self, call: &Call<'_>, index: usize) -> Result<Vec<Tensor>, Reason> {
        self.nodes(call, index)?.into_iter().map(|node| self.tensor(node)).collect()
    }

    fn cloned(&mut self, call: &Call<'_>) -> Result<Produced, Stop> {
        let tensor = self.tensor(call.node(0)?)?;
        let may_alias = call.schema.returns.first().is_some_and(|r| r.alias.is_some());
        if self.is_symbolic(tensor) {
            if may_alias {
                return Err(bad("it is not known whether the result is a copy"));
            }
            let value = self.read(tensor, None, Reading::Moving)?;
            let fresh = self.fresh_symbolic(value, tensor.dtype);
            return Ok(self.done(fresh));
        }
        let format = call.bound.memory_format().unwrap_or("contiguous_format");
        let lies_so = || numbers::lies_in(format, self.eval.sizes(tensor), self.eval.strides(tensor));
        if may_alias && lies_so().ok_or_else(|| bad("no such memory format"))? {
            return Ok(self.done(tensor));
        }
        let value = self.read(tensor, None, Reading::Moving)?;
        let sizes = self.sizes(tensor)?;
        let fresh = self.fresh_result(0, value, &sizes, tensor.dtype)?;
        Ok(self.done(fresh))
    }

    /// Executes a cast. It keeps sizes, and is the identity on its own dtype.
    pub(super) fn cast(&mut self, call: &Call<'_>) -> Result<Produced, Stop> {
        let tensor = self.tensor(call.node(0)?)?;
        let dtype = match call.bound.named("dtype") {
            Some(Value::Dtype(dtype)) => dtype,
            None | Some(Value::None) => tensor.dtype,
            Some(_) => return Err(bad("no dtype")),
        };
        let may_alias = call.schema.returns.first().is_some_and(|r| r.alias.is_some());
        if may_alias && dtype == tensor.dtype && call.bound.bool("copy") != Some(true) {
            let is_as_asked = match call.bound.memory_format() {
                None => true,
                Some(_) if self.is_symbolic(tensor) => {
                    return Err(bad("it is not known whether the result is a copy"));
                }
                Some(format) => {
                    numbers::format_of(self.eval.sizes(tensor), self.eval.strides(tensor)) == format
                }
            };
            if is_as_asked {
                return Ok(self.done(tensor));
            }
        }
        let value = self.read(tensor, None, Reading::Moving)?;
        let value = self.arena.cast(value, tensor.dtype, dtype);
        let fresh = if self.is_symbolic(tensor) {
            self.fresh_symbolic(value, dtype)
        } else {
            let sizes = self.sizes(tensor)?;
            self.fresh_result(0, value, &sizes, dtype)?
        };
        Ok(self.done(fresh))
    }

    /// The elements of `from`, broadcast and cast to the shape and dtype of `to`.
    fn broadcast(&mut self, from: Tensor, to: Tensor) -> Result<ValueId, Stop> {
        let window = self.window_of(from)?.expanded(&self.window_of(to)?.shape)?;
        let expanded = self.on(from, &window)?;
        let value = self.read(expanded, None, Reading::Moving)?;
        Ok(self.arena.cast(value, from.dtype, to.dtype))
    }

    /// A copy between tensors of symbolic sizes, which PyTorch allows for equal sizes: the value moves as it is.
    fn copied_symbolic(
        &mut self,
        call: &Call<'_>,
        to: Tensor,
        from: Tensor,
    ) -> Result<Option<Produced>, Stop> {
        let have_one_size = || match (call.node(0), call.node(1)) {
            (Ok(to), Ok(from)) => self.have_one_size(to, from),
            _ => false,
        };
        if !(self.is_symbolic(to) && self.is_symbolic(from) && have_one_size()) {
            return Ok(None);
        }
        let value = self.read(from, None, Reading::Moving)?;
        let value = self.arena.cast(value, from.dtype, to.dtype);
        if written(call.schema).is_none() {
            let fresh = self.fresh_symbolic(value, to.dtype);
            return Ok(Some(self.done(fresh)));
        }
        self.write(to, value)?;
        let nothing = call.schema.returns.is_empty();
        Ok(Some(if nothing { Produced::Nothing } else { self.done(to) }))
    }

    fn foreach_copy(&mut self, call: &Call<'_>) -> Result<Produced, Stop> {
        let (to, from) = (self.tensors(call, 0)?, self.tensors(call, 1)?);
        if to.len() != from.len() {
            return Err(bad("lists of different lengths"));
        }
        let in_place = written(call.schema).is_some();
        let mut items = Vec::new();
        for (index, (to, from)) in to.into_iter().zip(from).enumerate() {
            let value = self.broadcast(from, to)?;
            if in_place {
                self.write(to, value)?;
            } else {
                let sizes = self.sizes(to)?;
                let fresh = self.fresh_result(index, value, &sizes, to.dtype)?;
                items.push(self.done(fresh));
            }
        }
        Ok(if in_place { Produced::Nothing } else { self.list(&items) })
    }

    /// Reads the tensors of a list as values.
    fn values(&mut self, tensors: &[Tensor]) -> Result<Vec<ValueId>, Reason> {
        tensors.iter().map(|&tensor| self.read(tensor, None, Reading::Moving)).collect()
    }

    /// The dtype of a concatenation: the one that all promote to.
    fn common_dtype(&self, tensors: &[Tensor]) -> Result<Dtype, Stop> {
        let mut dtypes = tensors.iter().map(|t| t.dtype);
        let first = dtypes.next().ok_or_else(|| bad("an empty list"))?;
        dtypes.try_fold(first, promote).ok_or_else(|| bad("dtypes that do not promote to one"))
    }

    /// `outer` times one piece of each value: of `i` the elements `o * lens[i] .. (o + 1) * lens[i]`.
    fn interleaved(&mut self, outer: i64, values: &[ValueId], lens: &[i64]) -> Result<ValueId, Stop> {
        if outer == 1 {
            return Ok(self.arena.join(values)?);
        }
        let stretches = outer.saturating_mul(values.len() as i64);
        if stretches > self.arena.limits.flatten {
            return Err(Stop::NotFollowed);
        }
        let runs: i64 = values.iter().map(|&v| self.arena.run_count(v) as i64).sum();
        self.arena.room(runs.saturating_add(stretches))?;
        let mut list = self.arena.list();
        for o in 0..outer {
            for (&value, &len) in values.iter().zip(lens) {
                self.arena.append(&mut list, value, o * len, len);
            }
        }
        Ok(self.arena.value(list))
    }

    fn concatenated(&mut self, call: &Call<'_>) -> Result<Moved, Stop> {
        let mut tensors = self.tensors(call, 0)?;
        let dtype = self.common_dtype(&tensors)?;
        let mut shapes = Vec::new();
        for &tensor in &tensors {
            shapes.push(self.sizes(tensor)?);
        }
        // PyTorch passes over tensors of the one shape [0], whatever the others are.
        if shapes.iter().any(|s| s[..] != [0]) {
            let keep: Vec<bool> = shapes.iter().map(|s| s[..] != [0]).collect();
            let mut kept = keep.iter();
            tensors.retain(|_| kept.next() == Some(&true));
            shapes.retain(|s| s[..] != [0]);
        }
        let first = shapes.first().ok_or_else(|| bad("an empty list"))?.clone();
        let dim = dimension(self.int(call, 1)?, first.len())?;
        let mut total = 0i64;
        for shape in &shapes {
            let fits = shape.len() == first.len()
                && !shape.is_empty()
                && shape.iter().zip(&first).enumerate().all(|(i, (a, b))| i == dim || a == b);
            if !fits {
                return Err(bad("tensors that do not fit together"));
            }
            total = total.checked_add(shape[dim]).ok_or(Reason::Overflow)?;
        }
        let mut sizes = first;
        sizes[dim] = total;
        self.joined(&tensors, dtype, sizes, dim)
    }

    fn stacked(&mut self, call: &Call<'_>) -> Result<Moved, Stop> {
        let tensors = self.tensors(call, 0)?;
        let dtype = self.common_dtype(&tensors)?;
        let first = self.sizes(*tensors.first().ok_or_else(|| bad("an empty list"))?)?;
        for &tensor in &tensors {
            if self.sizes(tensor)? != first {
                return Err(bad("tensors of different shapes"));
            }
        }
        let dim = dimension(self.int(call, 1)?, first.len() + 1)?;
        let mut sizes = first;
        sizes.insert(dim, tensors.len() as i64);
        self.joined(&tensors, dtype, sizes, dim)
    }

    /// Tensors cast to `dtype` and put together along a dimension, which gives `sizes`.
    fn joined(
        &mut self,
        tensors: &[Tensor],
        dtype: Dtype,
        sizes: Vec<i64>,
        dim: usize,
    ) -> Result<Moved, Stop> {
        let count = layout::numel(&sizes).ok_or(Reason::Overflow)?;
        let mut values = self.values(tensors)?;
        for (value, tensor) in values.iter_mut().zip(tensors) {
            *value = self.arena.cast(*value, tensor.dtype, dtype);
        }
        let outer = layout::numel(&sizes[..dim]).ok_or(Reason::Overflow)?;
        let lens: Vec<i64> = values.iter().map(|&v| self.arena.len(v) / outer.max(1)).collect();
        let value = if count == 0 { NOTHING } else { self.interleaved(outer, &values, &lens)? };
        Ok(Moved { value, sizes, dtype })
    }

    /// `value` with `new` written through a window on it.
    fn written_into(&mut self, value: ValueId, window: Tensor, new: ValueId) -> Result<ValueId, Reason> {
        if self.arena.len(new) == 0 {
            return Ok(value);
        }
        let dims = layout::normal(self.eval.sizes(window), self.eval.strides(window));
        self.arena.write(value, window.offset, &dims, new)
    }

    fn scattered(&mut self, call: &Call<'_>, kind: Move) -> Result<Moved, Stop> {
        let (base, source) = (self.tensor(call.node(0)?)?, self.tensor(call.node(1)?)?);
        let value = self.read(base, None, Reading::Moving)?;
        let sizes = self.sizes(base)?;
        let view = kind.scatters().ok_or(Stop::NotFollowed)?;
        // Strides are those of the storage, which is the tensor itself if it is contiguous.
        if view == View::AsStrided && !layout::is_contiguous(&sizes, self.eval.strides(base)) {
            return Err(Stop::NotFollowed);
        }
        // Offsets are those of the storage; the copy begins where the tensor does.
        let mut all = Window::contiguous(self.window_of(base)?.shape);
        all.offset = Size::Known(base.offset);
        let part = shape::window(view, all, &Numbers { machine: self, call }, 2)?;
        let shown = self.window_of(source)?.expanded(&part.shape)?;
        let shown = self.on(source, &shown)?;
        let new = self.read(shown, None, Reading::Moving)?;
        let new = self.arena.cast(new, source.dtype, base.dtype);
        let part = self.on(base, &part)?;
        if self.shows_twice(part) {
            return Err(Stop::NotFollowed);
        }
        let offset = part.offset.saturating_sub(base.offset);
        let value = self.written_into(value, Tensor { offset, ..part }, new)?;
        Ok(Moved { value, sizes, dtype: base.dtype })
    }

    fn padded(&mut self, call: &Call<'_>) -> Result<Moved, Stop> {
        let tensor = self.tensor(call.node(0)?)?;
        let pad = self.ints(call, 1)?;
        let mut kept = self.window_of(tensor)?;
        let rank = kept.shape.len();
        if pad.len() % 2 != 0 || pad.len() / 2 > rank {
            return Err(bad("a padding that does not fit the dimensions"));
        }
        let mut sizes = self.sizes(tensor)?;
        let mut starts = vec![0i64; rank];
        // The pairs begin at the last dimension. A negative entry cuts.
        for (i, pair) in pad.chunks_exact(2).enumerate() {
            let (dim, low, high) = (rank - 1 - i, pair[0], pair[1]);
            let cut = |n: i64| if n < 0 { n.saturating_neg() } else { 0 };
            let len = sizes[dim].saturating_sub(cut(low)).saturating_sub(cut(high));
            kept = kept.narrowed(dim as i64, Size::Known(cut(low)), Size::Known(len))?;
            starts[dim] = low.max(0);
            let size = len.checked_add(low.max(0)).and_then(|n| n.checked_add(high.max(0)));
            sizes[dim] = size.ok_or(Reason::Overflow)?;
        }
        let count = layout::numel(&sizes).ok_or(Reason::Overflow)?;
        let number = call.bound.named("value").unwrap_or(Value::Int(0));
        let filled = self.constant(tensor.dtype, number, count)?;
        let shown = self.on(tensor, &kept)?;
        let value = self.read(shown, None, Reading::Moving)?;
        let mut window = Window::contiguous(sizes.iter().map(|&size| Size::Known(size)).collect());
        for (dim, start) in starts.into_iter().enumerate() {
            window = window.narrowed(dim as i64, Size::Known(start), kept.shape[dim])?;
        }
        let window = self.on(tensor, &window)?;
        let value = self.written_into(filled, window, value)?;
        Ok(Moved { value, sizes, dtype: tensor.dtype })
    }

    /// Along each dimension the last elements come first; without dimensions, of all elements in row-major order.
    fn rolled(&mut self, call: &Call<'_>) -> Result<Moved, Stop> {
        let tensor = self.tensor(call.node(0)?)?;
        let (shifts, dims) = (self.ints(call, 1)?, self.ints(call, 2)?);
        let sizes = self.sizes(tensor)?;
        let mut value = self.read(tensor, None, Reading::Moving)?;
        let count = self.arena.len(value);
        let mut turn = |this: &mut Self, size: i64, below: i64, shift: i64| {
            let shift = shift.rem_euclid(size.max(1));
            if shift == 0 || count == 0 {
                return Ok(value);
            }
            let (row, last) = (size * below, shift * below);
            let outer = count / row;
            let whole = (0..outer).flat_map(|o| [(o * row + row - last, last), (o * row, row - last)]);
            value = this.stretches(value, 2 * outer, whole)?;
            Ok::<ValueId, Stop>(value)
        };
        if dims.is_empty() {
            let &[shift] = &shifts[..] else { return Err(bad("one shift is needed for all elements")) };
            turn(self, count, 1, shift)?;
        } else if dims.len() != shifts.len() {
            return Err(bad("as many shifts as dimensions are needed"));
        }
        for (&dim, &shift) in dims.iter().zip(&shifts) {
            let dim = dimension(dim, sizes.len())?;
            let (Some(&size), Some(below)) = (sizes.get(dim), sizes.get(dim + 1..).and_then(layout::numel))
            else {
                return Err(bad("no such dimension"));
            };
            turn(self, size, below, shift)?;
        }
        Ok(Moved { value, sizes, dtype: tensor.dtype })
    }

    /// Stretches of a value, each from an element on and so many, one after the other.
    fn stretches(
        &mut self,
        value: ValueId,
        count: i64,
        stretches: impl Iterator<Item = (i64, i64)>,
    ) -> Result<ValueId, Stop> {
        if count > self.arena.limits.flatten {
            return Err(Stop::NotFollowed);
        }
        self.arena.room(count.saturating_add(self.arena.run_count(value) as i64))?;
        let mut list = self.arena.list();
        stretches.for_each(|(start, len)| self.arena.append(&mut list, value, start, len));
        Ok(self.arena.value(list))
    }

    fn repeated(&mut self, call: &Call<'_>) -> Result<Moved, Stop> {
        let tensor = self.tensor(call.node(0)?)?;
        let repeats = self.ints(call, 1)?;
        let old = self.sizes(tensor)?;
        let more =
            repeats.len().checked_sub(old.len()).ok_or_else(|| bad("fewer repeats than dimensions"))?;
        let value = self.read(tensor, None, Reading::Moving)?;
        let flat = contiguous_strides(&old);
        let (mut sizes, mut nest, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        for (i, &times) in repeats.iter().enumerate() {
            let (size, stride) = i.checked_sub(more).map_or((1, 0), |k| (old[k], flat[k]));
            sizes.push(size.checked_mul(times).ok_or(Reason::Overflow)?);
            nest.extend([times, size]);
            steps.extend([0, stride]);
        }
        let count = layout::numel(&sizes).ok_or(Reason::Overflow)?;
        let value = if count == 0 {
            NOTHING
        } else {
            self.arena.read(value, 0, &layout::normal(&nest, &steps), count)?
        };
        Ok(Moved { value, sizes, dtype: tensor.dtype })
    }

    /// `torch._chunk_cat`: each tensor cut into `chunks` pieces along `dim`, the last ones padded with zeros, and
    /// the pieces of one number put side by side.
    fn chunk_cat(&mut self, tensors: &[Tensor], dim: i64, chunks: i64) -> Result<Moved, Stop> {
        let dtype = tensors.first().ok_or_else(|| bad("an empty list"))?.dtype;
        let leading = self.sizes(tensors[0])?;
        let dim = dimension(dim, leading.len())?;
        let leading = leading[..dim.min(leading.len())].to_vec();
        if chunks < 1 {
            return Err(bad("no pieces"));
        }
        let outer = layout::numel(&leading).ok_or(Reason::Overflow)?;
        // For each tensor: value, size along dim, elements below, rows of a piece.
        let mut parts = Vec::new();
        let mut width = 0i64;
        for &tensor in tensors {
            let sizes = self.sizes(tensor)?;
            if sizes.len() <= dim || sizes[..dim] != leading[..] || tensor.dtype != dtype {
                return Err(bad("tensors that do not fit together"));
            }
            let below = layout::numel(&sizes[dim + 1..]).ok_or(Reason::Overflow)?;
            let rows = sizes[dim] / chunks + i64::from(sizes[dim] % chunks != 0);
            let len = rows.checked_mul(below).ok_or(Reason::Overflow)?;
            width = width.checked_add(len).ok_or(Reason::Overflow)?;
            parts.push((self.read(tensor, None, Reading::Moving)?, sizes[dim], below, rows));
        }
        let mut sizes = leading;
        sizes.extend([chunks, width]);
        layout::numel(&sizes).ok_or(Reason::Overflow)?;
        let stretches = outer.saturating_mul(chunks).saturating_mul(parts.len() as i64);
        if stretches > self.arena.limits.flatten {
            return Err(Stop::NotFollowed);
        }
        let runs: i64 = parts.iter().map(|p| self.arena.run_count(p.0) as i64).sum();
        self.arena.room(runs.saturating_add(stretches.saturating_mul(2)))?;
        let zero = self.constant_source(dtype, Value::Int(0))?;
        let mut list: RunList = self.arena.list();
        for o in 0..outer {
            for k in 0..chunks {
                for &(value, size, below, rows) in &parts {
                    let (from, to) = ((k * rows).min(size), ((k + 1) * rows).min(size));
                    self.arena.append(&mut list, value, (o * size + from) * below, (to - from) * below);
                    list.push(self.arena.whole(zero, (rows - (to - from)) * below));
                }
            }
        }
        Ok(Moved { value: self.arena.value(list), sizes, dtype })
    }

    /// Source: `torch._inductor.fx_passes.bucketing._pre_bucket_reduce_scatter`.
    fn pre_bucket_reduce_scatter(&mut self, call: &Call<'_>) -> Result<Moved, Stop> {
        let tensors = self.tensors(call, 0)?;
        let chunks = self.int(call, 1)?;
        let dtype = tensors.first().ok_or_else(|| bad("an empty list"))?.dtype;
        let mut filled = Vec::new();
        for &tensor in &tensors {
            if layout::numel(&self.sizes(tensor)?).ok_or(Reason::Overflow)? != 0 {
                filled.push(tensor);
            }
        }
        if filled.is_empty() {
            return Ok(Moved { value: NOTHING, sizes: vec![0], dtype });
        }
        let moved = self.chunk_cat(&filled, 0, chunks)?;
        let count = self.arena.len(moved.value);
        Ok(Moved { sizes: vec![count], ..moved })
    }

    /// Source: `torch._inductor.fx_passes.bucketing._pre_bucket_all_gather`.
    fn pre_bucket_all_gather(&mut self, call: &Call<'_>) -> Result<Moved, Stop> {
        let tensors = self.tensors(call, 0)?;
        let size = self.named_int(call, "group_size")?;
        let rank = self.named_int(call, "rank")?;
        let Some(Value::Dtype(dtype)) = call.bound.named("dtype") else { return Err(bad("no dtype")) };
        let ids = match call.index("out_dtype_ints") {
            Some(index) => self.ints(call, index)?,
            None => return Err(bad("no dtypes")),
        };
        if ids.len() != tensors.len() {
            return Err(bad("lists of different lengths"));
        }
        let mut slots = Vec::new();
        let mut packing = Packing { pieces: Vec::new(), dtype };
        for (&tensor, &id) in tensors.iter().zip(&ids) {
            let to = dtype_of_bucketing_id(id).ok_or_else(|| bad("an unknown dtype number"))?;
            let count = layout::numel(&self.sizes(tensor)?).ok_or(Reason::Overflow)?;
            packing.pieces.push((count, to));
            let value = self.read(tensor, None, Reading::Moving)?;
            let value = self.arena.cast(value, tensor.dtype, to);
            slots.push(self.arena.retyped(value, to, dtype)?);
        }
        if packing.misplaced_anywhere(size).is_some() {
            return Err(bad("a piece at an offset that its dtype cannot be viewed at"));
        }
        let own = self.arena.join(&slots)?;
        let len = self.arena.len(own);
        let count = len.checked_mul(size).filter(|_| size > 0 && (0..size).contains(&rank));
        let count = count.ok_or_else(|| bad("a rank outside its group"))?;
        let empty = self.arena.poison(count);
        let value = if len == 0 { empty } else { self.arena.splice(empty, rank * len, own) };
        Ok(Moved { value, sizes: vec![count], dtype })
    }

    fn split_copy(&mut self, call: &Call<'_>) -> Result<Produced, Stop> {
        let base = self.tensor(call.node(0)?)?;
        let window = self.window_of(base)?;
        let pieces = shape::windows(View::SplitWithSizes, window, &Numbers { machine: self, call }, 1)?;
        let targets = match call.index("out") {
            Some(index) => Some(self.tensors(call, index)?),
            None => None,
        };
        if targets.as_ref().is_some_and(|t| t.len() != pieces.len()) {
            return Err(bad("as many buffers as pieces are needed"));
        }
        let mut items = Vec::new();
        for (index, piece) in pieces.iter().enumerate() {
            let shown = self.on(base, piece)?;
            match targets.as_ref().and_then(|t| t.get(index)) {
                Some(&target) => {
                    let value = self.read(shown, None, Reading::Moving)?;
                    if self.sizes(target)? != self.eval.sizes(shown) {
                        return Err(bad("a buffer of another shape than its piece"));
                    }
                    let value = self.arena.cast(value, base.dtype, target.dtype);
                    self.write(target, value)?;
                }
                None => {
                    let fresh = self.copied(index, shown)?;
                    items.push(self.done(fresh));
                }
            }
        }
        Ok(if targets.is_some() { Produced::Nothing } else { self.list(&items) })
    }

    /// `fsdp.all_gather_copy_in` writes its inputs into the own slot of the buffer, whatever its schema says, and
    /// returns slot and buffer. Source: `torch.distributed.fsdp._fully_shard._fsdp_collectives`.
    fn copy_in(&mut self, call: &Call<'_>) -> Result<Produced, Stop> {
        let tensors = self.tensors(call, 0)?;
        let buffer = self.tensor(call.node(1)?)?;
        let lens = Numbers { machine: self, call }.numbers(2)?.unwrap_or_default();
        let (count, rank) = (self.int(call, 3)?, self.int(call, 4)?);
        let start = count.checked_mul(rank).ok_or(Reason::Overflow)?;
        let slot = self.window_of(buffer)?.narrowed(0, Size::Known(start), Size::Known(count))?;
        let pieces = slot.split_with_sizes(0, &lens)?;
        if pieces.len() != tensors.len() {
            return Err(bad("lists of different lengths"));
        }
        for (&from, piece) in tensors.iter().zip(&pieces) {
            let to = self.on(buffer, piece)?;
            let value = self.broadcast(from, to)?;
            self.write(to, value)?;
        }
        let slot = self.on(buffer, &slot)?;
        let items = [self.done(slot), self.done(buffer)];
        Ok(self.list(&items))
    }
}
