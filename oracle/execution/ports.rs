//! What enters and leaves a rank: the values of graph inputs, what the graph returns, and digests of values.

use super::block::{Block, Mark, joined, whole};
use super::bounds::Bounds;
use super::domain::{Outcome, refuse};
use super::hash::{self, mix};
use super::layout::{self, Dims, StorageRef, Window};
use super::number::Number;
use super::rank::{Item, Rank, too_many};
use super::run::{Digest, Given, Leaf, Options, TensorValue};
use crate::graph::{Dim, Dtype, DtypeClass, NodeId, Out, Value};
use rustc_hash::FxHashMap;

/// What is known of graph inputs, by their names, and the storages that the file says they share.
#[derive(Default)]
pub struct Known<'o> {
    given: FxHashMap<&'o str, &'o Given>,
    bounds: FxHashMap<&'o str, Vec<&'o Bounds>>,
    shared: FxHashMap<u32, StorageRef>,
}

impl<'o> Known<'o> {
    pub fn of(options: &'o Options, rank: u32) -> Known<'o> {
        let mut known = Known::default();
        for value in options.given.iter().filter(|value| value.rank.is_none_or(|r| r == rank)) {
            known.given.entry(&value.name).or_insert(value);
        }
        options.bounds.iter().for_each(|one| known.bounds.entry(&one.name).or_default().push(one));
        known
    }
}

impl Rank<'_> {
    /// Makes the value of a graph input.
    pub fn input(&mut self, index: usize, inputs: &mut Known) -> Outcome<Item> {
        let input = &self.program.inputs[index];
        let graph = self.program.graph;
        let name = hash::text(&input.name);
        let tensor = match graph.node(input.node).out {
            Out::Tensor(tensor) => graph.tensor(tensor),
            Out::Int(n) => return Ok(Item::Number(Number::Int(n))),
            Out::SymInt(expr) => {
                let hint = graph.expr(expr).hint;
                return hint
                    .map(|n| Item::Number(Number::Int(n)))
                    .ok_or_else(|| refuse!("a size without hint"));
            }
            Out::None => return Ok(Item::None),
            // A process group, a mesh: the same on every rank.
            _ => return Ok(Item::Object(name)),
        };
        let (shape, strides, dtype) = (
            self.recorded(graph.dims(tensor.shape))?,
            self.recorded(graph.dims(tensor.stride))?,
            tensor.dtype,
        );
        if strides.len() != shape.len() {
            return Err(refuse!("{} sizes but {} strides are recorded", shape.len(), strides.len()));
        }
        let mut window =
            Window { storage: StorageRef(0), dtype, conj: false, offset: tensor.offset, shape, strides };
        let extent = layout::numel(&shape).and(window.extent());
        let (_, end) =
            extent.ok_or_else(|| refuse!("shape {shape:?} with strides {strides:?} is impossible"))?;
        let grain = whole(dtype);
        let cells = usize::try_from(end).ok().and_then(|end| end.checked_mul(self.cells_per(dtype)));
        let cells = self.memory.room(cells.unwrap_or(usize::MAX))?;
        let known = tensor.storage.and_then(|storage| inputs.shared.get(&storage.0).copied());
        window.storage = match known {
            Some(storage) => {
                self.memory.refine(self.domain, storage, grain);
                self.memory.grow(storage, cells, grain);
                storage
            }
            None => self.memory.allocate(Block::poison(cells, grain)),
        };
        if let Some(id) = tensor.storage {
            inputs.shared.insert(id.0, window.storage);
        }
        // What an earlier input of this storage has filled stays.
        let mut block = self.memory.peek(self.domain, &window)?;
        let per = block.per_element(dtype).max(1);
        let key = mix(name, u64::from(self.rank));
        let given = inputs.given.get(input.name.as_str());
        let each = self.cells_per(dtype);
        if let Some(given) = given
            && given.cells.len() != window.numel() * each
        {
            return Err(refuse!("{} cells are given for {} elements", given.cells.len(), window.numel()));
        }
        let domain = self.domain;
        let bounds = inputs.bounds.get(input.name.as_str()).map_or(&[][..], Vec::as_slice);
        let marks = &self.options.marks;
        let marked = |element: usize, part: usize| {
            if marks.is_empty() {
                return None;
            }
            let (key, element) = (mix(key, part as u64), element as u64);
            let hash = mix(mix(key, element), domain.input(key, element, Dtype::I64));
            let mark = *marks.get((hash >> 8) as usize % (2 * marks.len()))?;
            let beside = [0, 0, 1, -1][(hash >> 56) as usize % 4];
            match dtype.class() {
                DtypeClass::Bool => None,
                DtypeClass::Int if !mark.is_finite() => None,
                DtypeClass::Int => Some(Number::Int((mark as i64).saturating_add(beside))),
                _ => Some(Number::Float(mark + 0.25 * beside as f64)),
            }
        };
        let drawn = |element: usize, part: usize| {
            let cell = domain.input(mix(key, part as u64), element as u64, dtype);
            let cell = match marked(element, part).filter(|_| bounds.iter().all(|bounds| bounds.divide)) {
                Some(number) => domain.constant(number, dtype),
                None => cell,
            };
            if bounds.is_empty() {
                return cell;
            }
            let place = window.place(element);
            let own = bounds.iter().copied().filter(|bounds| bounds.hold_for(place));
            // Domains that know no integers draw no number.
            let numbers = own.clone().next().and_then(|_| domain.integers(&[cell], dtype));
            match numbers.as_deref() {
                Some(&[number]) => domain.constant(Number::Int(Bounds::within(own, number)), dtype),
                _ => cell,
            }
        };
        let cell = |element: usize, part: usize| match given {
            Some(given) => given.cells[element * each + part],
            None => drawn(element, part),
        };
        for element in 0..window.numel() {
            let range = element * per..(element + 1) * per;
            if !block.marks.get(range.clone()).is_some_and(|marks| marks.contains(&Mark::Poison)) {
                continue;
            }
            // As a rule nobody has asked for smaller cells, and there are as many as `each`.
            if block.grain == grain {
                (0..each).for_each(|part| block.cells[element * each + part] = cell(element, part));
            } else {
                let cells = (0..each).map(|part| cell(element, part)).collect();
                let mut one = Block { cells, marks: Vec::new(), grain };
                one.refine(domain, block.grain);
                block.cells[range.clone()].copy_from_slice(&one.cells);
            }
            block.marks[range].fill(Mark::Known);
        }
        self.memory.fill(&window, &block);
        Ok(Item::Tensor(window))
    }

    /// Cells per element of a fresh tensor: 2 for complex128.
    fn cells_per(&self, dtype: Dtype) -> usize {
        dtype.itemsize() as usize / usize::from(whole(dtype))
    }

    /// Recorded sizes, symbolic ones by their hints.
    pub fn recorded(&self, dims: &[Dim]) -> Outcome<Dims> {
        let graph = self.program.graph;
        let sizes: Option<Vec<i64>> = dims.iter().map(|&d| graph.hint(d)).collect();
        let sizes = sizes.ok_or_else(|| refuse!("a size is symbolic and has no hint"))?;
        Dims::new(&sizes).ok_or_else(|| too_many(sizes.len()))
    }

    pub fn collect_outputs(&mut self, node: NodeId) -> Outcome<()> {
        let mut found = Vec::new();
        let args = self.program.graph.args(node);
        for (i, &arg) in args.iter().enumerate() {
            // The usual single argument adds no level to the paths.
            let mut path = if args.len() == 1 { Vec::new() } else { vec![i as u32] };
            self.collect_value(arg, &mut path, &mut found)?;
        }
        self.outputs = found;
        Ok(())
    }

    fn collect_value(
        &mut self,
        value: Value,
        path: &mut Vec<u32>,
        found: &mut Vec<(Vec<u32>, Leaf)>,
    ) -> Outcome<()> {
        if let Value::List(span) = value {
            for (i, &inner) in self.program.graph.values(span).iter().enumerate() {
                path.push(i as u32);
                self.collect_value(inner, path, found)?;
                path.pop();
            }
            return Ok(());
        }
        let item = self.item(value)?;
        self.collect_item(&item, path, found)
    }

    fn collect_item(
        &mut self,
        item: &Item,
        path: &mut Vec<u32>,
        found: &mut Vec<(Vec<u32>, Leaf)>,
    ) -> Outcome<()> {
        if let Some(leaf) = self.leaf(item)? {
            found.push((path.clone(), leaf));
            return Ok(());
        }
        let parts: Vec<&Item> = match item {
            Item::List(items) => items.iter().collect(),
            Item::Dict(items) => items.iter().map(|(_, item)| item).collect(),
            _ => Vec::new(),
        };
        for (i, part) in parts.into_iter().enumerate() {
            path.push(i as u32);
            self.collect_item(part, path, found)?;
            path.pop();
        }
        Ok(())
    }

    /// A value as a leaf; `None` for lists and mappings.
    pub fn leaf(&mut self, item: &Item) -> Outcome<Option<Leaf>> {
        Ok(Some(match item {
            Item::Unset | Item::None => Leaf::None,
            Item::Number(number) => Leaf::Number(*number),
            Item::Object(key) => Leaf::Object(*key),
            Item::List(_) | Item::Dict(_) => return Ok(None),
            Item::Tensor(window) => {
                let block = self.memory.cells(self.domain, window)?;
                let per = (usize::from(whole(window.dtype)) / usize::from(block.grain.max(1))).max(1);
                let poison = block.marks.chunks(per).map(|m| m.iter().any(|&m| m != Mark::Known)).collect();
                Leaf::Tensor(TensorValue {
                    dtype: window.dtype,
                    shape: window.shape,
                    cells: joined(self.domain, block.cells, block.grain, whole(window.dtype)),
                    poison,
                    alias_of: self.input_of.get(&window.storage.0).copied(),
                })
            }
        }))
    }

    /// A hash of a value as it is now.
    pub fn digest(&self, item: &Item) -> Outcome<Digest> {
        let mut digest = Digest { hash: 0, poisoned: 0 };
        self.digest_into(item, &mut digest)?;
        Ok(digest)
    }

    fn digest_into(&self, item: &Item, digest: &mut Digest) -> Outcome<()> {
        let hash = &mut digest.hash;
        match item {
            Item::Unset | Item::None => *hash = mix(*hash, 1),
            Item::Number(number) => *hash = mix(*hash, number.key()),
            Item::Object(key) => *hash = mix(mix(*hash, 2), *key),
            Item::List(items) => {
                *hash = mix(mix(*hash, 3), items.len() as u64);
                items.iter().try_for_each(|item| self.digest_into(item, digest))?;
            }
            Item::Dict(items) => {
                *hash = mix(mix(*hash, 4), items.len() as u64);
                for (key, item) in items {
                    digest.hash = mix(digest.hash, hash::text(self.program.graph.text(*key)));
                    self.digest_into(item, digest)?;
                }
            }
            Item::Tensor(window) => {
                let block = self.memory.peek(self.domain, window)?;
                let per = (usize::from(whole(window.dtype)) / usize::from(block.grain.max(1))).max(1);
                let cells = joined(self.domain, block.cells, block.grain, whole(window.dtype));
                *hash = mix(mix(*hash, 5), window.dtype as u64);
                *hash = hash::words(*hash, window.shape.iter().map(|&n| n as u64));
                for (i, &cell) in cells.iter().enumerate() {
                    let marks = block.marks.get(i * per..(i + 1) * per);
                    let poison = marks.is_some_and(|marks| marks.iter().any(|&m| m != Mark::Known));
                    digest.poisoned += u32::from(poison);
                    *hash = if poison { mix(*hash, 0x706F) } else { mix(*hash, cell) };
                }
            }
        }
        Ok(())
    }
}
