//! Movement by indices that are themselves tensors.
//!
//! Where a domain does not know its integers (Terms), the operator is an uninterpreted function of its inputs. One that
//! knows them, and for which they might have been others, chooses among all elements that they might select
//! ([`Domain::by_index`](super::super::domain::Domain::by_index)).
//! An index outside its dimension is taken modulo the size: PyTorch would raise, but the oracle's inputs are
//! arbitrary, and what matters is that the same index selects the same element before and after a pass. Where the index
//! is computed from constants alone, it raises here too.

use super::super::block::{Block, Mark, joined, whole};
use super::super::domain::{Domain, Operand, Outcome, Pointwise, Rounding, raise};
use super::super::layout::{self, Dims, Window};
use super::super::number::Number;
use super::super::program::{Program, Step};
use super::super::rank::{Item, Rank, too_many};
use super::dim;
use super::moves::pick;
use crate::graph::{Dtype, NodeId, Value};
use crate::ops::{Binary, Move};

/// Elements that open indices may select, at most.
const MOST_ALTERNATIVES: usize = 1 << 13;

/// The same of places that they may write to, times those that are kept then: each of these is one of two elements.
const MOST_KEPT: usize = 1 << 17;

/// Integers of an index tensor, with its poison.
struct Indices {
    at: Vec<i64>,
    /// The cells of those that might be others; empty where none might.
    open: Vec<Option<u64>>,
    poison: Vec<bool>,
    /// The node that gives them; `None` for the places of a mask.
    node: Option<NodeId>,
}

/// What negative indices mean.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Negative {
    /// They count from the end.
    FromEnd,
    /// Nothing: the operator raises.
    Outside,
}

impl Indices {
    /// The index `k` of a dimension, where it might be another one.
    fn open(&self, k: usize, size: i64, stride: usize, negative: Negative) -> Option<Open> {
        let index = self.open.get(k).copied().flatten()?;
        Some(Open { index, at: wrap(self.at[k], size), size: usize::try_from(size).ok()?, stride, negative })
    }

    /// Raises where an index that is computed from constants lies outside a dimension. Where another one does, gives the
    /// node that it comes from.
    fn check(&self, program: &Program, negative: Negative, size: i64) -> Outcome<Option<NodeId>> {
        let least = if negative == Negative::FromEnd { -size } else { 0 };
        let is_open = |k: usize| self.open.get(k).is_some_and(Option::is_some);
        let is_known = |&(k, _): &(usize, &i64)| self.poison.get(k) != Some(&true) && !is_open(k);
        let mut known = self.at.iter().enumerate().filter(is_known);
        match known.find(|&(_, &index)| index < least || index >= size) {
            Some((_, index)) if self.node.is_some_and(|node| program.is_constant(node)) => {
                Err(raise!("index {index} is outside a dimension of size {size}"))
            }
            found => Ok(self.node.filter(|_| found.is_some())),
        }
    }
}

/// An index tensor, and the node that gives it.
#[derive(Clone, Copy)]
struct Given {
    window: Window,
    node: Option<NodeId>,
}

/// An index that might be another one, and what that would change.
#[derive(Clone, Copy)]
struct Open {
    index: u64,
    /// The position in its dimension.
    at: usize,
    /// The dimension's size, and the elements from one position to the next.
    size: usize,
    stride: usize,
    negative: Negative,
}

/// Which element of the source each element of a result is, and which of them follow from a poison index.
struct Choice {
    positions: Vec<usize>,
    /// For each of these the indices that might be others; empty where none might.
    open: Vec<Vec<Open>>,
    poison: Vec<bool>,
    shape: Dims,
}

impl<'a> Rank<'a> {
    pub(super) fn indexed(&mut self, node: NodeId, step: &Step<'a>, movement: Move) -> Outcome<Item> {
        let result = match movement {
            Move::Index | Move::IndexSelect | Move::Gather | Move::Embedding => {
                let x = self.tensor(step.args[0])?;
                let choice = match movement {
                    Move::Index => self.advanced(step.args[1], &x)?,
                    Move::Gather => self.along(step.args[1], step.args[2], &x, None)?,
                    Move::IndexSelect => {
                        let index = self.given_index(step.args[2])?;
                        self.selected(step.args[1], index, &x)?
                    }
                    _ => {
                        let index = self.given_index(step.args[1])?;
                        self.rows(Value::Int(0), index, &x)?
                    }
                };
                match choice {
                    Some(choice) if self.is_choosable(&x, &choice, false)? => {
                        Some(self.take(node, step, &x, &choice)?)
                    }
                    _ => None,
                }
            }
            _ => self.placed(node, step, movement)?,
        };
        match result {
            Some(item) => Ok(item),
            None => self.opaque(node, step),
        }
    }

    fn take(&mut self, node: NodeId, step: &Step, x: &Window, choice: &Choice) -> Outcome<Item> {
        let block = self.moved(x, x.dtype)?;
        let per = block.per_element(x.dtype);
        let mut block = match choice.open.is_empty() {
            true => pick(&block, per, &choice.positions),
            false => {
                let cells = joined(self.domain, block.cells, block.grain, whole(x.dtype));
                let each = choice.positions.iter().zip(&choice.open);
                let cells = each.map(|(&at, open)| self.chosen(x.dtype, at, open, &|at| cells[at])).collect();
                Block { cells, marks: Vec::new(), grain: whole(x.dtype) }
            }
        };
        poison_elements(&mut block, per, &choice.poison);
        self.deliver(node, step, choice.shape, None, x.dtype, block)
    }

    /// The element at a position, or at another one where an index is open.
    fn chosen(&self, dtype: Dtype, position: usize, open: &[Open], cell: &dyn Fn(usize) -> u64) -> u64 {
        let Some((first, rest)) = open.split_first() else { return cell(position) };
        let start = position - first.at * first.stride;
        let others: Vec<u64> =
            (0..first.size).map(|j| self.chosen(dtype, start + j * first.stride, rest, cell)).collect();
        self.domain.by_index(first.index, first.negative == Negative::FromEnd, dtype, &others)
    }

    /// Replaces the element that open indices name, wherever that may be.
    fn spread(
        &self,
        cells: &mut [u64],
        position: usize,
        open: &[Open],
        new: &mut dyn FnMut(&dyn Domain, u64) -> Outcome<u64>,
        dtype: Dtype,
    ) -> Outcome<()> {
        let places = open.iter().map(|open| open.size).product::<usize>();
        for place in 0..places {
            // The place as a position along each dimension.
            let mut rest = place;
            let digit = |open: &Open| {
                let digit = rest % open.size;
                rest /= open.size;
                digit
            };
            let digits: Vec<usize> = open.iter().map(digit).collect();
            let each = || open.iter().zip(&digits);
            let start = position - open.iter().map(|open| open.at * open.stride).sum::<usize>();
            let to = start + each().map(|(open, digit)| digit * open.stride).sum::<usize>();
            let old = cells[to];
            let replaced = new(self.domain, old)?;
            cells[to] = each().rev().fold(replaced, |replaced, (open, &digit)| {
                let others: Vec<u64> =
                    (0..open.size).map(|j| if j == digit { replaced } else { old }).collect();
                self.domain.by_index(open.index, open.negative == Negative::FromEnd, dtype, &others)
            });
        }
        Ok(())
    }

    /// Whether there is room for all elements that open indices may select, each of which is one known cell; `is_place`: for
    /// the places that they may write to.
    fn is_choosable(&mut self, x: &Window, choice: &Choice, is_place: bool) -> Outcome<bool> {
        let (power, most) = if is_place { (2, MOST_KEPT) } else { (1, MOST_ALTERNATIVES) };
        let alternatives =
            |open: &Vec<Open>| open.iter().map(|open| open.size).product::<usize>().saturating_pow(power);
        let all = choice.open.iter().map(alternatives).fold(0, usize::saturating_add);
        let is_known = self.memory.cells(self.domain, x)?.marks.iter().all(|&mark| mark == Mark::Known);
        let is_one_cell = x.dtype.itemsize() <= 8;
        Ok(all == 0 || all <= most && is_known && is_one_cell)
    }

    /// A tensor given as an index.
    fn given_index(&mut self, value: Value) -> Outcome<Given> {
        let node = if let Value::Node(node) = value { Some(node) } else { None };
        Ok(Given { window: self.tensor(value)?, node })
    }

    /// The integers of an index tensor; `None` where the domain does not know them.
    fn integers(&mut self, index: &Given) -> Outcome<Option<Indices>> {
        let domain = self.domain;
        let elements = self.elements(&index.window)?;
        let Some(at) = domain.indices(&elements.cells, index.window.dtype) else { return Ok(None) };
        let is_open = at.iter().any(|(_, is_open)| *is_open);
        let cells = at.iter().zip(elements.cells.iter());
        let open = cells.filter(|_| is_open).map(|((_, is_open), &cell)| is_open.then_some(cell)).collect();
        let at = at.into_iter().map(|(at, _)| at).collect();
        Ok(Some(Indices { at, open, poison: elements.poison, node: index.node }))
    }

    /// `index_select`: the index is a vector or one number, and a tensor without dimensions has one element.
    fn selected(&mut self, along: Value, mut given: Given, x: &Window) -> Outcome<Option<Choice>> {
        let index = &mut given.window;
        if index.shape.len() > 1 {
            return Err(raise!("an index of shape {:?} is no vector", index.shape));
        }
        let vector = |n| Dims::default().with_pushed(n).unwrap_or_default();
        if !x.shape.is_empty() {
            if index.shape.is_empty() {
                (index.shape, index.strides) = (vector(1), vector(1));
            }
            return self.rows(along, given, x);
        }
        let count = index.numel();
        dim(self.int(along)?, 0)?;
        if count != 1 {
            return Err(raise!("{count} elements of a tensor without dimensions"));
        }
        let Some(indices) = self.integers(&given)? else { return Ok(None) };
        Ok(Some(Choice { positions: vec![0], open: Vec::new(), poison: indices.poison, shape: x.shape }))
    }

    /// `embedding`, and `index_select` of a vector: whole slices along a dimension, one per index.
    fn rows(&mut self, along: Value, index: Given, x: &Window) -> Outcome<Option<Choice>> {
        let at = dim(self.int(along)?, x.shape.len())?;
        let Some(indices) = self.integers(&index)? else { return Ok(None) };
        let index = index.window;
        let size = *x.shape.get(at).ok_or_else(|| raise!("a tensor without dimensions cannot be indexed"))?;
        let outside = indices.check(self.program, Negative::Outside, size)?;
        self.outside = self.outside.or(outside);
        let shape = x.shape[..at].iter().chain(&index.shape[..]).chain(&x.shape[at + 1..]).copied();
        let shape = Dims::collect(shape).ok_or_else(|| too_many(x.shape.len() + index.shape.len()))?;
        let count = self.room(&shape)?;
        if size == 0 && count > 0 {
            return Err(raise!("an index into a dimension of size 0"));
        }
        let outer = layout::numel(&x.shape[..at]).unwrap_or(0);
        let inner = layout::numel(&x.shape[at + 1..]).unwrap_or(0);
        let mut choice = Choice::with_capacity(count, shape);
        for row in 0..outer {
            for (k, &i) in indices.at.iter().enumerate() {
                let start = (row * size as usize + wrap(i, size)) * inner;
                choice.positions.extend(start..start + inner);
                if !indices.open.is_empty() {
                    let open = indices.open(k, size, inner, Negative::Outside);
                    choice.open.extend(std::iter::repeat_n(Vec::from_iter(open), inner));
                }
                if !indices.poison.is_empty() {
                    choice.poison.extend(std::iter::repeat_n(indices.poison[k], inner));
                }
            }
        }
        Ok(Some(choice))
    }

    /// `gather` and `scatter`: the element whose index along one dimension is given, and elsewhere its own.
    /// `limit` is the shape of the source of a scatter, which has to cover the index.
    fn along(
        &mut self,
        along: Value,
        index: Value,
        x: &Window,
        limit: Option<Dims>,
    ) -> Outcome<Option<Choice>> {
        let at = dim(self.int(along)?, x.shape.len())?;
        let index = self.given_index(index)?;
        let Some(indices) = self.integers(&index)? else { return Ok(None) };
        let shape = index.window.shape;
        let covers = |big: &[i64], but: Option<usize>| {
            big.len() == shape.len() && (0..shape.len()).all(|i| Some(i) == but || shape[i] <= big[i])
        };
        if shape.contains(&0) {
            return Ok(Some(Choice::with_capacity(0, shape)));
        }
        // A tensor without dimensions counts as one of a single element.
        let scalar = x.shape.is_empty() && shape.is_empty();
        if !scalar && (!covers(&x.shape, Some(at)) || x.shape[at] == 0) {
            return Err(raise!("index of shape {shape:?} into {:?} along dimension {at}", x.shape));
        }
        if limit.is_some_and(|limit| !covers(&limit, None)) {
            return Err(raise!("index of shape {shape:?} exceeds its source"));
        }
        let size = x.shape.get(at).copied().unwrap_or(1);
        let outside = indices.check(self.program, Negative::Outside, size)?;
        self.outside = self.outside.or(outside);
        let strides = layout::contiguous(x.shape);
        let mut choice = Choice::with_capacity(indices.at.len(), shape);
        for_each_index(shape, |k, position| {
            let mut from = 0i64;
            for (i, (&p, &stride)) in position.iter().zip(&strides[..]).enumerate() {
                from += stride * if i == at { wrap(indices.at[k], x.shape[at]) as i64 } else { p };
            }
            choice.positions.push(from as usize);
            if !indices.open.is_empty() {
                let stride = strides.get(at).map_or(0, |&stride| stride as usize);
                choice.open.push(Vec::from_iter(indices.open(k, size, stride, Negative::Outside)));
            }
        });
        choice.poison = indices.poison;
        Ok(Some(choice))
    }

    /// `index`, `index_put`: index tensors for some dimensions, broadcast together; masks count as the indices
    /// of their true elements.
    fn advanced(&mut self, list: Value, x: &Window) -> Outcome<Option<Choice>> {
        let values = match list {
            Value::List(span) => self.program.graph.values(span).to_vec(),
            _ => return Err(raise!("expects a list of indices")),
        };
        // For each dimension of `x` the index tensor that selects in it.
        let mut by_dim: Vec<Option<(Indices, Dims)>> = Vec::new();
        for value in values {
            if value == Value::None {
                by_dim.push(None);
                continue;
            }
            let given = self.given_index(value)?;
            let Some(indices) = self.integers(&given)? else { return Ok(None) };
            let index = given.window;
            if !matches!(index.dtype, Dtype::Bool | Dtype::U8) {
                by_dim.push(Some((indices, index.shape)));
                continue;
            }
            if indices.poison.contains(&true) {
                return Err(raise!("a mask without value decides on a size"));
            }
            let mut found: Vec<Vec<i64>> = vec![Vec::new(); index.shape.len()];
            for_each_index(index.shape, |k, position| {
                if indices.at[k] != 0 {
                    found.iter_mut().zip(position).for_each(|(list, &p)| list.push(p));
                }
            });
            for at in found {
                let shape = Dims::default().with_pushed(at.len() as i64).unwrap_or_default();
                by_dim.push(Some((Indices { at, open: Vec::new(), poison: Vec::new(), node: None }, shape)));
            }
        }
        if by_dim.len() > x.shape.len() {
            return Err(raise!("{} indices for {} dimensions", by_dim.len(), x.shape.len()));
        }
        by_dim.resize_with(x.shape.len(), || None);
        let used: Vec<usize> = (0..by_dim.len()).filter(|&i| by_dim[i].is_some()).collect();
        let shapes = by_dim.iter().flatten().map(|(_, shape)| *shape);
        let common = shapes.clone().try_fold(Dims::default(), layout::broadcast);
        let common =
            common.ok_or_else(|| raise!("index shapes {:?} do not broadcast", shapes.collect::<Vec<_>>()))?;
        // The common shape stands in the place of the indexed dimensions if these are adjacent, else in front.
        let adjacent = used.windows(2).all(|pair| pair[1] == pair[0] + 1);
        let place = if adjacent { used.first().copied().unwrap_or(0) } else { 0 };
        let rest: Vec<usize> = (0..x.shape.len()).filter(|i| !used.contains(i)).collect();
        let sizes = |dims: &[usize]| dims.iter().map(|&i| x.shape[i]).collect::<Vec<_>>();
        let (before, after) = rest.split_at(place.min(rest.len()));
        let shape = sizes(before).into_iter().chain(common.iter().copied()).chain(sizes(after));
        let shape = Dims::collect(shape).ok_or_else(|| too_many(rest.len() + common.len()))?;
        let count = self.room(&shape)?;
        if count > 0 && used.iter().any(|&i| x.shape[i] == 0) {
            return Err(raise!("an index into a dimension of size 0"));
        }
        for &i in used.iter().filter(|_| count > 0) {
            if let Some((indices, _)) = &by_dim[i] {
                let outside = indices.check(self.program, Negative::FromEnd, x.shape[i])?;
                self.outside = self.outside.or(outside);
            }
        }
        let strides = layout::contiguous(x.shape);
        let shown: Vec<(usize, &Indices, Dims)> = used
            .iter()
            .filter_map(|&i| {
                let (indices, shape) = by_dim[i].as_ref()?;
                Some((i, indices, layout::broadcast_strides(shape, &layout::contiguous(*shape), common)?))
            })
            .collect();
        let mut choice = Choice::with_capacity(count, shape);
        let is_open = shown.iter().any(|(_, indices, _)| !indices.open.is_empty());
        if shown.iter().any(|(_, indices, _)| !indices.poison.is_empty()) {
            choice.poison = vec![false; count];
        }
        for_each_index(shape, |k, position| {
            let inner = &position[before.len()..before.len() + common.len()];
            let mut from = 0i64;
            let mut open = Vec::new();
            for (i, indices, steps) in &shown {
                let at = inner.iter().zip(&steps[..]).map(|(p, s)| p * s).sum::<i64>() as usize;
                from += strides[*i] * wrap(indices.at[at], x.shape[*i]) as i64;
                open.extend(indices.open(at, x.shape[*i], strides[*i] as usize, Negative::FromEnd));
                if indices.poison.get(at) == Some(&true) {
                    choice.poison[k] = true;
                }
            }
            for (j, &i) in rest.iter().enumerate() {
                let p = if j < before.len() { position[j] } else { position[j + common.len()] };
                from += strides[i] * p;
            }
            choice.positions.push(from as usize);
            choice.open.extend(is_open.then_some(open));
        });
        Ok(Some(choice))
    }

    /// `index_put`, `scatter`, `scatter_add`: a copy of the first argument with elements replaced or added to, in
    /// row-major order of the index.
    fn placed(&mut self, node: NodeId, step: &Step, movement: Move) -> Outcome<Option<Item>> {
        let [base, a, b, c, ..] = step.args;
        let x = self.tensor(base)?;
        let (source, accumulate) = match movement {
            Move::IndexPut => (b, self.flag(c)?),
            _ => (c, movement == Move::ScatterAdd),
        };
        let source_window = self.maybe_tensor(source)?;
        let choice = match movement {
            Move::IndexPut => self.advanced(a, &x)?,
            _ => self.along(a, b, &x, source_window.map(|w| w.shape))?,
        };
        let Some(mut choice) = choice else { return Ok(None) };
        // For each place that an index may name all others are kept.
        let places = choice.open.iter().flatten().map(|open| open.size).max().unwrap_or(1);
        if places == 1 {
            choice.open.clear();
        } else if !self.is_choosable(&x, &choice, true)? {
            return Ok(None);
        }
        let is_open = places > 1;
        let mut values = match source_window {
            None => self.filled(self.number(source)?, x.dtype, choice.positions.len())?,
            Some(window) if movement == Move::IndexPut => self.moved_to(&window, choice.shape, x.dtype)?,
            // Of a scatter's source only the part that the index covers is used.
            Some(window) => self.moved(&Window { shape: choice.shape, ..window }, x.dtype)?,
        };
        let mut target = self.moved(&x, x.dtype)?;
        let grain = if accumulate || is_open { whole(x.dtype) } else { target.grain.min(values.grain) };
        for block in [&mut target, &mut values] {
            if accumulate || is_open {
                let per = block.per_element(x.dtype).max(1);
                let marks = block.marks.chunks(per).map(|m| m.iter().copied().find(|&m| m != Mark::Known));
                block.marks = marks.map(|m| m.unwrap_or(Mark::Known)).collect();
                block.cells = joined(self.domain, std::mem::take(&mut block.cells), block.grain, grain);
                block.grain = grain;
            } else {
                block.refine(self.domain, grain);
            }
        }
        let per = target.per_element(x.dtype);
        if !(choice.poison.is_empty() && values.marks.is_empty() && target.marks.is_empty()) {
            values.marks.resize(values.cells.len(), Mark::Known);
            poison_elements(&mut values, per, &choice.poison);
            target.marks.resize(target.cells.len(), Mark::Known);
        }
        let add = Pointwise::Binary(Binary::Add, Number::Int(1), Rounding::True);
        for (k, &position) in choice.positions.iter().enumerate() {
            let (to, from) = (position * per..(position + 1) * per, k * per..(k + 1) * per);
            if let Some(open) = choice.open.get(k) {
                if values.marks.get(k).is_some_and(|&mark| mark != Mark::Known) {
                    return Ok(None);
                }
                self.spread(
                    &mut target.cells,
                    position,
                    open,
                    &mut |domain, old| match accumulate {
                        false => Ok(values.cells[k]),
                        true => {
                            let pair = [Operand::Cells(&[old]), Operand::Cells(&values.cells[k..=k])];
                            Ok(domain.pointwise(add, x.dtype, &pair, 1)?[0])
                        }
                    },
                    x.dtype,
                )?;
            } else if accumulate {
                let pair =
                    [Operand::Cells(&target.cells[to.clone()]), Operand::Cells(&values.cells[from.clone()])];
                let sum = self.domain.pointwise(add, x.dtype, &pair, 1)?;
                target.cells[to.clone()].copy_from_slice(&sum);
            } else {
                target.cells[to.clone()].copy_from_slice(&values.cells[from.clone()]);
            }
            if let Some(marks) = target.marks.get_mut(to) {
                for (mark, new) in marks.iter_mut().zip(values.marks.get(from).into_iter().flatten()) {
                    *mark = if accumulate && *mark != Mark::Known { *mark } else { *new };
                }
            }
        }
        // A poison index may have hit any element.
        if choice.poison.contains(&true) {
            target.marks.fill(Mark::Poison);
        }
        let strides = self.preserved_strides(&x, Value::None);
        self.deliver(node, step, x.shape, Some(strides), x.dtype, target).map(Some)
    }
}

impl Choice {
    fn with_capacity(count: usize, shape: Dims) -> Choice {
        Choice { positions: Vec::with_capacity(count), open: Vec::new(), poison: Vec::new(), shape }
    }
}

/// An index as a position in a dimension: from the end where it is negative, modulo the size where it is outside.
fn wrap(index: i64, size: i64) -> usize {
    index.rem_euclid(size.max(1)) as usize
}

fn poison_elements(block: &mut Block, per: usize, poison: &[bool]) {
    if poison.is_empty() {
        return;
    }
    block.marks.resize(block.cells.len(), Mark::Known);
    for (marks, &bad) in block.marks.chunks_mut(per.max(1)).zip(poison) {
        if bad {
            marks.fill(Mark::Poison);
        }
    }
}

/// Calls `visit` with the number and the index of every element, in row-major order.
fn for_each_index(shape: Dims, mut visit: impl FnMut(usize, &[i64])) {
    let mut index = [0i64; layout::MAX_DIMS];
    for k in 0..layout::numel(&shape).unwrap_or(0) {
        visit(k, &index[..shape.len()]);
        for i in (0..shape.len()).rev() {
            index[i] += 1;
            if index[i] < shape[i] {
                break;
            }
            index[i] = 0;
        }
    }
}
