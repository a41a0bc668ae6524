//! The memory of one rank: storages, and what reading and writing them does.
//!
//! # The idea
//!
//! A storage is a row of 64-bit cells, each of which stands for `grain` bytes, and a mark per cell. An element of
//! a window is one cell where its size equals the grain, and several adjacent cells where memory has been looked
//! at under a smaller element size: then the storage has been *refined*, once and for all, and what was written
//! in small parts can be read back in small parts. Whole elements are joined from their parts when an operator
//! computes with them; movement copies parts as they are.
//!
//! # Marks
//!
//! A cell without a known value is *poison*: fresh memory, freed memory, everything computed from poison. A cell
//! that an asynchronous collective will write is *in flight* from the collective's start to its wait. Reading it
//! gives poison; writing it, or writing what the collective still reads, is a race. Both are recorded as hazards
//! of the node that does it.

use super::block::Mark::{self, InFlight, Known, Poison, Raced};
use super::block::{Block, Elements, joined, whole, worst};
use super::domain::{Domain, Operand, Outcome, Pointwise, refuse};
use super::hazard::HazardKind;
use super::layout::{self, Dims, StorageRef, Window};
use super::observe::{Touch, Watch};
use super::rank::computed;
use crate::graph::{Dtype, NodeId};
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use std::borrow::Cow;
use std::collections::VecDeque;

#[derive(Clone, Debug, Default)]
struct Storage {
    cells: Vec<u64>,
    /// Parallel to `cells`, or empty where all are known.
    marks: Vec<Mark>,
    /// How many cells are not known.
    marked: usize,
    grain: u8,
    written: bool,
    /// The bytes that it was left, where it was resized: what is written past them is lost.
    room: Option<u64>,
    /// An operator of which nothing is known took it or made it: other results may show the same memory.
    shown_elsewhere: bool,
    /// Collectives in flight that read or write it.
    flights: u32,
    /// The launches of those with an output in it, in order.
    landing: Vec<u32>,
}

impl Storage {
    fn scale(&self, dtype: Dtype) -> usize {
        dtype.itemsize() as usize / usize::from(self.grain.max(1))
    }

    /// Forgets what was written past the end of its memory.
    fn lose_what_has_no_room(&mut self) {
        let Some(room) = self.room else { return };
        let kept = usize::try_from(room / u64::from(self.grain.max(1))).unwrap_or(usize::MAX);
        if kept < self.cells.len() {
            self.marks.resize(self.cells.len(), Known);
            for mark in self.marks[kept..].iter_mut().filter(|mark| **mark == Known) {
                *mark = Poison;
                self.marked += 1;
            }
        }
    }
}

/// A collective between its start and its wait, as its rank's memory knows it.
#[derive(Clone, Debug)]
pub struct Flight {
    /// The node that started it.
    pub node: NodeId,
    /// Its number among the launches of this rank.
    pub launch: u32,
    /// What it reads.
    pub inputs: Vec<Window>,
    /// Whether input *i* is sent for output *i* alone, and so free again when that has arrived.
    pub piecewise: bool,
    /// Whether it has copied its inputs, so that others need not leave them alone.
    pub copied: bool,
    /// What it will write and has not been waited for: which of its outputs, and where.
    pub outputs: Vec<(usize, Window)>,
}

impl Flight {
    /// What it reads, and what it will write.
    fn windows(&self) -> impl Iterator<Item = &Window> {
        self.inputs.iter().chain(self.outputs.iter().map(|(_, output)| output))
    }
}

/// An input of a collective that was overwritten while the collective was in flight: the element has two possible
/// values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Taint {
    /// The launch of this rank.
    pub launch: u32,
    /// Which of its inputs.
    pub input: usize,
    /// Which element of that.
    pub element: usize,
}

/// Hazards of nodes, each once, in order.
pub type Hazards = IndexSet<(NodeId, HazardKind), FxBuildHasher>;

/// The memory of one rank.
#[derive(Clone, Debug)]
pub struct Memory {
    storages: Vec<Storage>,
    /// In order of their launches.
    flights: VecDeque<Flight>,
    /// The node that is being executed.
    pub node: NodeId,
    /// What went wrong, in order.
    pub hazards: Hazards,
    /// Overwritten inputs of collectives, to be told to the other ranks.
    pub taints: Vec<Taint>,
    /// What the nodes touch, if somebody wants to know.
    pub watch: Option<Box<Watch>>,
    /// Cells that may still be allocated.
    left: u64,
    limit: u64,
}

/// Storages.
impl Memory {
    /// Empty memory with room for `limit` cells.
    pub fn new(limit: u64) -> Memory {
        Memory {
            storages: Vec::new(),
            flights: VecDeque::new(),
            node: NodeId(0),
            hazards: Hazards::default(),
            taints: Vec::new(),
            watch: None,
            left: limit,
            limit,
        }
    }

    /// `count`, if there is room for so many cells.
    pub fn room(&self, count: usize) -> Outcome<usize> {
        if count as u64 <= self.left {
            return Ok(count);
        }
        let (used, limit) = (self.limit - self.left, self.limit);
        Err(refuse!("needs {count} elements after {used} others, the limit is {limit} per rank"))
    }

    /// A storage that holds these cells.
    pub fn allocate(&mut self, block: Block) -> StorageRef {
        self.left = self.left.saturating_sub(block.cells.len() as u64);
        let marked = block.marks.iter().filter(|&&m| m != Known).count();
        let marks = if marked == 0 { Vec::new() } else { block.marks };
        self.storages.push(Storage {
            cells: block.cells,
            marks,
            marked,
            grain: block.grain,
            ..Storage::default()
        });
        StorageRef(self.storages.len() as u32 - 1)
    }

    /// A fresh tensor of these sizes, dense in memory in the order that `strides` gives.
    pub fn fresh(&mut self, shape: Dims, strides: Dims, dtype: Dtype, block: Block) -> Window {
        let mut window = Window { storage: StorageRef(0), dtype, conj: false, offset: 0, shape, strides };
        if window.is_contiguous() {
            window.storage = self.allocate(block);
            self.saw(Touch::Write, &window);
            return window;
        }
        let per = block.per_element(dtype);
        let mut placed =
            Block { cells: vec![0; block.cells.len()], marks: vec![Known; block.marks.len()], ..block };
        let mut next = 0;
        layout::for_each_row(&shape, &strides, 0, |start, count, stride| {
            for i in 0..count {
                let at = start.wrapping_add_signed(i as isize * stride) * per;
                placed.cells[at..at + per].copy_from_slice(&block.cells[next..next + per]);
                if !block.marks.is_empty() {
                    placed.marks[at..at + per].copy_from_slice(&block.marks[next..next + per]);
                }
                next += per;
            }
        });
        window.storage = self.allocate(placed);
        self.saw(Touch::Write, &window);
        window
    }

    /// Tells whoever watches what the present node touches.
    fn saw(&mut self, touch: Touch, window: &Window) {
        if let Some(watch) = &mut self.watch {
            watch.saw(self.node, touch, *window);
        }
    }

    /// The bytes of a storage, and whether each is known.
    pub fn raw(&self, storage: StorageRef) -> (Vec<u8>, Vec<bool>) {
        let storage = &self.storages[storage.index()];
        let grain = usize::from(storage.grain);
        let bytes =
            storage.cells.iter().flat_map(|cell| cell.to_le_bytes().into_iter().take(grain)).collect();
        let known = (0..storage.cells.len())
            .map(|at| storage.marks.get(at).is_none_or(|&mark| mark == Known))
            .flat_map(|known| std::iter::repeat_n(known, grain))
            .collect();
        (bytes, known)
    }

    /// How many storages there are.
    pub fn count(&self) -> usize {
        self.storages.len()
    }

    /// Forgets the storages from number `count` on.
    pub fn truncate(&mut self, count: usize) {
        for storage in self.storages.drain(count.min(self.storages.len())..) {
            self.left = self.left.saturating_add(storage.cells.len() as u64);
        }
    }

    /// Ends every flight, and takes what every storage holds for known.
    pub fn calm(&mut self) {
        self.flights.clear();
        for storage in &mut self.storages {
            (storage.flights, storage.marked) = (0, 0);
            storage.marks = Vec::new();
            storage.landing.clear();
        }
    }

    /// Makes a storage hold at least `cells` cells of `grain` bytes; new ones are poison.
    pub fn grow(&mut self, storage: StorageRef, cells: usize, grain: u8) {
        let storage = &mut self.storages[storage.index()];
        let wanted = cells * usize::from(grain) / usize::from(storage.grain.max(1));
        if let Some(more) = wanted.checked_sub(storage.cells.len()) {
            storage.marks.resize(storage.cells.len(), Known);
            storage.cells.resize(wanted, 0);
            storage.marks.resize(wanted, Poison);
            storage.marked += more;
            self.left = self.left.saturating_sub(more as u64);
        }
    }

    /// Sets the cells of a window to what they are at the start of a run.
    pub fn fill(&mut self, window: &Window, block: &Block) {
        let storage = &mut self.storages[window.storage.index()];
        let per = storage.scale(window.dtype);
        scatter(&block.cells, window, per, &mut storage.cells);
        storage.fill_marks(window, per, Known);
    }

    /// Number of cells and their size.
    pub fn size(&self, storage: StorageRef) -> (usize, u8) {
        let storage = &self.storages[storage.index()];
        (storage.cells.len(), storage.grain)
    }

    /// How many elements of `dtype` fit in a storage.
    pub fn capacity(&self, storage: StorageRef, dtype: Dtype) -> i64 {
        let (cells, grain) = self.size(storage);
        (cells * usize::from(grain)) as i64 / i64::from(dtype.itemsize())
    }

    /// Makes a storage readable in cells of at most `grain` bytes.
    pub fn refine(&mut self, domain: &dyn Domain, storage: StorageRef, grain: u8) {
        let storage = &mut self.storages[storage.index()];
        if storage.grain <= grain {
            return;
        }
        let cells = std::mem::take(&mut storage.cells);
        let marks = std::mem::take(&mut storage.marks);
        let mut block = Block { cells, marks, grain: storage.grain };
        block.refine(domain, grain);
        storage.marked *= usize::from(storage.grain / block.grain.max(1));
        (storage.cells, storage.marks, storage.grain) = (block.cells, block.marks, block.grain);
    }

    /// Gives a storage back: what it held is poison, and its memory is returned.
    pub fn free(&mut self, storage: StorageRef) {
        let storage = &mut self.storages[storage.index()];
        let cells = storage.cells.len();
        (storage.marks, storage.marked) = (vec![Poison; cells], cells);
    }

    /// Whether anything but its creator has written a storage.
    pub fn is_written(&self, storage: StorageRef) -> bool {
        self.storages[storage.index()].written
    }

    /// Whether a collective in flight reads or writes a storage.
    pub fn is_busy(&self, storage: StorageRef) -> bool {
        self.storages[storage.index()].flights > 0
    }
}

/// Reading.
impl Memory {
    /// The elements of a window, to compute with.
    pub fn elements(&mut self, domain: &dyn Domain, window: &Window) -> Outcome<Elements<'_>> {
        computed(window.dtype)?;
        self.saw(Touch::Read, window);
        self.note_read(window);
        let storage = &self.storages[window.storage.index()];
        let grain = whole(window.dtype);
        if storage.marked == 0 && storage.grain == grain && !window.conj && window.is_contiguous() {
            // A window of no elements may lie anywhere.
            let start = if window.numel() == 0 { 0 } else { window.offset as usize };
            return Ok(Elements {
                cells: Cow::Borrowed(&storage.cells[start..start + window.numel()]),
                poison: Vec::new(),
            });
        }
        let block = self.peek(domain, window)?;
        let poison = match block.marks.is_empty() {
            true => Vec::new(),
            false => {
                let per = block.per_element(window.dtype).max(1);
                block.marks.chunks(per).map(|marks| marks.iter().any(|&m| m != Known)).collect()
            }
        };
        Ok(Elements { cells: Cow::Owned(joined(domain, block.cells, block.grain, grain)), poison })
    }

    /// The cells of a window, to be moved.
    pub fn cells(&mut self, domain: &dyn Domain, window: &Window) -> Outcome<Block> {
        self.saw(Touch::Read, window);
        self.note_read(window);
        let mut block = self.peek(domain, window)?;
        for mark in &mut block.marks {
            if *mark != Known {
                *mark = Poison;
            }
        }
        Ok(block)
    }

    /// The cells of a window as they are, with their marks; no hazard is recorded.
    pub fn peek(&self, domain: &dyn Domain, window: &Window) -> Outcome<Block> {
        self.room(window.numel())?;
        let storage = &self.storages[window.storage.index()];
        let per = storage.scale(window.dtype);
        let mut cells = Vec::with_capacity(window.numel() * per);
        gather(&storage.cells, window, per, &mut cells);
        let mut marks = Vec::new();
        if storage.marked > 0 {
            gather(&storage.marks, window, per, &mut marks);
            if marks.iter().all(|&m| m == Known) {
                marks.clear();
            }
        }
        let mut block = Block { cells, marks, grain: storage.grain };
        if window.conj {
            let whole_grain = whole(window.dtype);
            let elements = joined(domain, block.cells, block.grain, whole_grain);
            let count = elements.len();
            let cells =
                domain.pointwise(Pointwise::Conj, window.dtype, &[Operand::Cells(&elements)], count)?;
            block.marks = block.marks.chunks(per.max(1)).map(worst).collect();
            block = Block { cells, grain: whole_grain, ..block };
        }
        Ok(block)
    }

    /// Records a hazard of the present node.
    pub fn note(&mut self, kind: HazardKind) {
        self.hazards.insert((self.node, kind));
    }

    /// Records that the present node reads what is in flight.
    fn note_read(&mut self, window: &Window) {
        let storage = &self.storages[window.storage.index()];
        if storage.marked == 0 || storage.flights == 0 {
            return;
        }
        let mut marks = Vec::new();
        gather(&storage.marks, window, storage.scale(window.dtype), &mut marks);
        if !marks.iter().any(|m| matches!(m, InFlight | Raced)) {
            return;
        }
        let node = self.node;
        for flight in &self.flights {
            if flight.outputs.iter().any(|(_, output)| overlap(output, window)) {
                self.hazards.insert((node, HazardKind::ReadInFlight { collective: flight.node }));
            }
        }
    }
}

/// Writing.
impl Memory {
    /// Says that a storage may show what others show.
    pub fn set_shown_elsewhere(&mut self, storage: StorageRef) {
        self.storages[storage.index()].shown_elsewhere = true;
    }

    /// How many bytes a storage has from now on; `None`: as many as it shows.
    pub fn set_room(&mut self, storage: StorageRef, bytes: Option<u64>) {
        self.storages[storage.index()].room = bytes;
    }

    /// Writes cells into a window of as many elements, in row-major order.
    pub fn write(&mut self, domain: &dyn Domain, window: &Window, mut block: Block) -> Outcome<()> {
        if window.conj {
            return Err(refuse!("writing through a conjugated view"));
        }
        self.saw(Touch::Write, window);
        self.refine(domain, window.storage, block.grain);
        block.refine(domain, self.storages[window.storage.index()].grain);
        let busy = self.storages[window.storage.index()].flights > 0;
        let read_by = if busy { self.snapshots(domain, window.storage)? } else { Vec::new() };

        let storage = &mut self.storages[window.storage.index()];
        storage.written = true;
        if storage.room == Some(0) {
            return Ok(());
        }
        if storage.shown_elsewhere {
            return Err(refuse!(
                "what is written may be shown by the result of an operator of which nothing is known"
            ));
        }
        let per = storage.scale(window.dtype);
        scatter(&block.cells, window, per, &mut storage.cells);
        if storage.marked > 0 || !block.marks.is_empty() {
            storage.mark(window, per, &block.marks);
        }
        storage.lose_what_has_no_room();
        if busy {
            self.note_write(domain, window, &read_by)?;
        }
        Ok(())
    }

    /// The inputs of flights that read `storage`: (flight, input, cells now).
    fn snapshots(&self, domain: &dyn Domain, storage: StorageRef) -> Outcome<Vec<(usize, usize, Block)>> {
        let mut all = Vec::new();
        for (f, flight) in self.flights.iter().enumerate() {
            for (i, input) in flight.inputs.iter().enumerate() {
                let is_done = flight.piecewise && flight.outputs.iter().all(|&(output, _)| output != i);
                if input.storage == storage && !is_done {
                    all.push((f, i, self.peek(domain, input)?));
                }
            }
        }
        Ok(all)
    }

    /// Records races of the write that has just been made to `window`.
    fn note_write(
        &mut self,
        domain: &dyn Domain,
        window: &Window,
        before: &[(usize, usize, Block)],
    ) -> Outcome<()> {
        let node = self.node;
        for (f, i, old) in before {
            let input = self.flights[*f].inputs[*i];
            let now = self.peek(domain, &input)?;
            let per = old.per_element(input.dtype).max(1);
            let changed = |k: &usize| {
                let mark = |block: &Block| block.marks.get(*k).copied().unwrap_or(Known);
                old.cells[*k] != now.cells[*k] || mark(old) != mark(&now)
            };
            let mut elements: Vec<usize> = (0..old.cells.len()).filter(changed).map(|k| k / per).collect();
            elements.dedup();
            if elements.is_empty() {
                continue;
            }
            let flight = &self.flights[*f];
            // An in-place collective owns these cells: that is the race on its output, reported below.
            if flight.outputs.iter().any(|(_, output)| overlap(output, &input)) {
                continue;
            }
            self.hazards.insert((node, HazardKind::InputOverwritten { collective: flight.node }));
            let launch = flight.launch;
            self.taints.extend(elements.into_iter().map(|element| Taint { launch, input: *i, element }));
        }
        let storage = &self.storages[window.storage.index()];
        if storage.marked > 0 {
            let mut marks = Vec::new();
            gather(&storage.marks, window, storage.scale(window.dtype), &mut marks);
            if marks.contains(&Raced) {
                note_outputs(&mut self.hazards, node, &self.flights, window);
            }
        }
        Ok(())
    }
}

/// Collectives in flight.
impl Memory {
    /// A collective starts: from now on its outputs are in flight.
    pub fn depart(&mut self, mut flight: Flight) {
        if let Some(watch) = &mut self.watch {
            watch.departed(flight.clone());
        }
        if flight.copied {
            flight.inputs.clear();
        }
        if flight.outputs.is_empty() {
            return;
        }
        for (_, output) in &flight.outputs {
            let storage = &mut self.storages[output.storage.index()];
            storage.flights += 1;
            if storage.landing.last() != Some(&flight.launch) {
                storage.landing.push(flight.launch);
            }
            let per = storage.scale(output.dtype);
            let mut marks = Vec::new();
            // Nobody else is in flight there, mostly.
            if storage.flights > 1 {
                gather(&storage.marks, output, per, &mut marks);
            }
            if !marks.iter().any(|mark| matches!(mark, InFlight | Raced)) {
                storage.fill_marks(output, per, InFlight);
                continue;
            }
            // Another collective will write there, too.
            marks.fill(InFlight);
            storage.mark(output, per, &marks);
            note_outputs(&mut self.hazards, self.node, &self.flights, output);
        }
        for input in &flight.inputs {
            self.storages[input.storage.index()].flights += 1;
        }
        self.flights.push_back(flight);
    }

    /// The place of a launch among the flights.
    fn place_of(&self, launch: u32) -> Option<usize> {
        self.flights.binary_search_by_key(&launch, |flight| flight.launch).ok()
    }

    /// The collectives that a wait on a tensor waits for: those with an output in its storage.
    pub fn awaited(&self, storage: StorageRef) -> impl Iterator<Item = &Flight> {
        let landing = self.storages[storage.index()].landing.iter();
        landing.filter_map(|&launch| self.flights.get(self.place_of(launch)?))
    }

    /// The collectives in flight.
    pub fn flights(&self) -> impl Iterator<Item = &Flight> {
        self.flights.iter()
    }

    /// One output of a collective arrives. A collective without outputs left is no longer in flight.
    pub fn arrive(
        &mut self,
        domain: &dyn Domain,
        launch: u32,
        output: &Window,
        mut block: Block,
    ) -> Outcome<()> {
        self.saw(Touch::Land(launch), output);
        self.refine(domain, output.storage, block.grain);
        let at = self.place_of(launch);
        let own =
            at.map_or(0, |at| self.flights[at].windows().filter(|w| w.storage == output.storage).count());
        let mut read_by = match self.storages[output.storage.index()].flights as usize > own {
            true => self.snapshots(domain, output.storage)?,
            false => Vec::new(),
        };
        read_by.retain(|&(flight, ..)| self.flights[flight].launch != launch);
        let storage = &mut self.storages[output.storage.index()];
        block.refine(domain, storage.grain);
        let per = storage.scale(output.dtype);
        let mut marks = Vec::new();
        gather(&storage.marks, output, per, &mut marks);
        let raced = marks.contains(&Raced);
        if raced {
            block.marks.resize(block.cells.len(), Known);
            for (mark, before) in block.marks.iter_mut().zip(&marks) {
                if *before == Raced {
                    *mark = Poison;
                }
            }
        }
        scatter(&block.cells, output, per, &mut storage.cells);
        storage.fill_marks(output, per, Known);
        if !block.marks.is_empty() {
            storage.mark(output, per, &block.marks);
        }
        storage.written = true;
        storage.flights = storage.flights.saturating_sub(1);
        self.note_write(domain, output, &read_by)?;
        let Some(at) = at else { return Ok(()) };
        self.flights[at].outputs.retain(|(_, o)| o != output);
        if self.flights[at].outputs.iter().all(|(_, o)| o.storage != output.storage) {
            self.storages[output.storage.index()].landing.retain(|&other| other != launch);
        }
        if self.flights[at].outputs.is_empty() {
            self.land(at);
        }
        Ok(())
    }

    fn land(&mut self, at: usize) {
        let Some(flight) = self.flights.remove(at) else { return };
        for window in flight.windows() {
            let storage = &mut self.storages[window.storage.index()];
            storage.flights = storage.flights.saturating_sub(1);
        }
    }
}

impl Storage {
    /// Sets the marks of a written window. What is in flight becomes raced.
    fn mark(&mut self, window: &Window, per: usize, marks: &[Mark]) {
        if self.marks.is_empty() {
            self.marks = vec![Known; self.cells.len()];
        }
        let (all, marked) = (&mut self.marks, &mut self.marked);
        let mut next = 0;
        layout::for_each_row(&window.shape, &window.strides, window.offset, |start, count, stride| {
            for i in 0..count {
                let at = start.wrapping_add_signed(i as isize * stride) * per;
                for mark in &mut all[at..at + per] {
                    let new = match *mark {
                        InFlight | Raced => Raced,
                        _ => marks.get(next).copied().unwrap_or(Known),
                    };
                    *marked = *marked + usize::from(new != Known) - usize::from(*mark != Known);
                    *mark = new;
                    next += 1;
                }
            }
        });
    }

    fn fill_marks(&mut self, window: &Window, per: usize, to: Mark) {
        if self.marks.is_empty() {
            if to == Known {
                return;
            }
            self.marks = vec![Known; self.cells.len()];
        }
        let (all, marked) = (&mut self.marks, &mut self.marked);
        layout::for_each_row(&window.shape, &window.strides, window.offset, |start, count, stride| {
            for i in 0..count {
                let at = start.wrapping_add_signed(i as isize * stride) * per;
                for mark in &mut all[at..at + per] {
                    *marked = *marked + usize::from(to != Known) - usize::from(*mark != Known);
                    *mark = to;
                }
            }
        });
    }
}

fn gather<T: Copy>(from: &[T], window: &Window, per: usize, into: &mut Vec<T>) {
    if from.is_empty() {
        return;
    }
    layout::for_each_row(&window.shape, &window.strides, window.offset, |start, count, stride| {
        if stride == 1 {
            into.extend_from_slice(&from[start * per..(start + count) * per]);
        } else {
            for i in 0..count {
                let at = start.wrapping_add_signed(i as isize * stride) * per;
                into.extend_from_slice(&from[at..at + per]);
            }
        }
    });
}

fn scatter(from: &[u64], window: &Window, per: usize, into: &mut [u64]) {
    let mut next = 0;
    layout::for_each_row(&window.shape, &window.strides, window.offset, |start, count, stride| {
        if stride == 1 {
            let cells = count * per;
            into[start * per..start * per + cells].copy_from_slice(&from[next..next + cells]);
            next += cells;
        } else {
            for i in 0..count {
                let at = start.wrapping_add_signed(i as isize * stride) * per;
                into[at..at + per].copy_from_slice(&from[next..next + per]);
                next += per;
            }
        }
    });
}

/// Whether two windows may share bytes, judged by their extents.
pub fn overlap(a: &Window, b: &Window) -> bool {
    let bytes = |w: &Window| {
        if w.numel() == 0 {
            return Some((0, 0));
        }
        let size = i64::from(w.dtype.itemsize());
        w.extent().map(|(from, to)| (from * size, to * size))
    };
    match (bytes(a), bytes(b)) {
        (Some((a0, a1)), Some((b0, b1))) => a.storage == b.storage && a0 < b1 && b0 < a1,
        _ => a.storage == b.storage,
    }
}

/// Notes the flights that will write where `node` writes.
fn note_outputs(hazards: &mut Hazards, node: NodeId, flights: &VecDeque<Flight>, window: &Window) {
    for flight in flights {
        if flight.outputs.iter().any(|(_, output)| overlap(output, window)) {
            hazards.insert((node, HazardKind::OutputOverwritten { collective: flight.node }));
        }
    }
}
