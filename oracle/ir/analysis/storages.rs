//! Storages: which values share memory, and who reads and writes which version of it.
//!
//! # The idea
//!
//! A *place* is one tensor of what a node returns: a node that returns a tuple or list has several, counted
//! through all levels. Each place shows *parts* of storages: one certain part, as a rule; several uncertain ones
//! where it may or may not be a view (a `reshape` of unknown strides) or where an unknown operator may have
//! returned anything it took. Parts follow from the schemas: a result is a fresh storage, a window on an
//! argument's, or an argument handed back. What a file recorded is not believed, except for inputs and
//! constants, where nothing else says that two of them share memory; [`disagreements`](super::disagreements)
//! compares the rest.
//!
//! An *access* is a node that reads or writes a part. Accesses are kept in list order. A storage begins at
//! version 0, made by the node that allocates it; each node that writes to it makes the next version.
//!
//! # Physical and logical
//!
//! Some schemas keep quiet about what happens at run time: `wait_tensor` returns the tensor that it waits for,
//! `_unsafe_view` is a view, `irecv` fills and returns its argument, `fsdp.all_gather_copy_in` fills a slot of
//! the buffer that it returns. [`Mode::Physical`] follows the run time, [`Mode::Logical`] the schemas.
//!
//! # What it does not do
//!
//! Byte ranges of symbolic sizes are not computed: such a view shows some part of its base, not known which.
//! Bodies of higher-order operators are not looked into.

use super::bytes::{ByteSet, Overlap};
use crate::graph::{Graph, NodeId, TensorId};
use fixedbitset::FixedBitSet;
use smallvec::SmallVec;

/// A storage of one graph. Numbered by allocation, not by what a file recorded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StorageIndex(pub u32);

impl StorageIndex {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is known about one storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Storage {
    /// The node whose result it first is.
    pub by: NodeId,
    /// Which place of that node.
    pub place: u32,
    /// Its size, if known: recorded, or to the end of the first tensor on it.
    pub bytes: Option<i64>,
    /// Whether it exists outside the graph: an input or a constant. Writes to it are seen by the caller.
    pub external: bool,
    /// How often it is written, certainly or maybe: the number of its last version.
    pub versions: u32,
}

/// Part of a storage that a place shows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Part {
    /// The storage.
    pub storage: StorageIndex,
    /// Which bytes of it.
    pub bytes: ByteSet,
    /// Whether the place certainly shows it.
    pub certain: bool,
}

/// What a node does to a part.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Touch {
    /// Reads it.
    Read,
    /// Writes it. An asynchronous collective begins its write here.
    Write,
    /// A wait: until here a collective was reading it.
    Release,
    /// A wait: here the write that a collective began is complete.
    Land,
}

impl Touch {
    /// Whether the bytes may differ before and after.
    pub fn writes(self) -> bool {
        matches!(self, Touch::Write | Touch::Land)
    }
}

/// A read or write of a part by a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Who.
    pub node: NodeId,
    /// What.
    pub touch: Touch,
    /// Of which part.
    pub part: Part,
    /// For a write the version that it makes, else the version that it finds.
    pub version: u32,
}

/// What to follow where a schema does not tell all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Mode {
    /// The run time (see the module).
    #[default]
    Physical,
    /// The schemas alone, as a tracer records a graph.
    Logical,
}

/// Whether two values share memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// Never.
    No,
    /// Maybe.
    May,
    /// Always.
    Must,
}

/// A place: its parts, and what is recorded about its tensor.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    pub(super) first: u32,
    pub(super) len: u32,
    pub(super) tensor: Option<TensorId>,
    /// The place that it is a view of, or that it is handed back from.
    pub(super) base: Option<u32>,
}

/// The storages of one graph.
#[derive(Clone, Debug, Default)]
pub struct Storages {
    pub(super) first_place: Vec<u32>,
    pub(super) places: Vec<Place>,
    pub(super) parts: Vec<Part>,
    pub(super) storages: Vec<Storage>,
    /// Nodes that allocate, certainly or maybe.
    pub(super) allocates: FixedBitSet,
    pub(super) accesses: Vec<Access>,
    pub(super) kept: Vec<Access>,
    /// Accesses of each node: a range of `accesses`, which are in list order.
    pub(super) of_node: Vec<u32>,
    /// Accesses of each storage, in list order.
    pub(super) of_storage: Vec<u32>,
    pub(super) in_storage: Vec<u32>,
    /// The writes among them.
    pub(super) first_write: Vec<u32>,
    pub(super) writes: Vec<u32>,
}

impl Storages {
    /// Number of storages.
    pub fn len(&self) -> usize {
        self.storages.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.storages.is_empty()
    }

    /// All storages, in order of allocation.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = StorageIndex> + use<> {
        (0..self.storages.len() as u32).map(StorageIndex)
    }

    /// A storage.
    pub fn storage(&self, id: StorageIndex) -> &Storage {
        &self.storages[id.index()]
    }

    /// Whether memory that a node shows is written, certainly or maybe, by any node.
    pub fn shows_written(&self, node: NodeId) -> bool {
        self.all_parts(node).any(|part| self.is_written(part.storage))
    }

    /// Whether a storage is written, certainly or maybe, by any node.
    pub fn is_written(&self, storage: StorageIndex) -> bool {
        self.storage(storage).versions > 0
    }

    /// Number of places of a node.
    pub fn places(&self, node: NodeId) -> usize {
        self.place_range(node).len()
    }

    fn place_range(&self, node: NodeId) -> std::ops::Range<usize> {
        self.first_place[node.index()] as usize..self.first_place[node.index() + 1] as usize
    }

    /// The tensor recorded for a place.
    pub fn tensor(&self, node: NodeId, place: usize) -> Option<TensorId> {
        self.places[self.place_range(node)].get(place)?.tensor
    }

    /// The parts that a place shows; none where it holds no tensor.
    pub fn parts(&self, node: NodeId, place: usize) -> &[Part] {
        self.places[self.place_range(node)].get(place).map_or(&[], |p| self.parts_of(*p))
    }

    pub(super) fn parts_of(&self, place: Place) -> &[Part] {
        &self.parts[place.first as usize..(place.first + place.len) as usize]
    }

    /// What a place is a view of, or is handed back from, if that is certain: (node, place).
    pub fn base(&self, node: NodeId, place: usize) -> Option<(NodeId, usize)> {
        let base = self.places[self.place_range(node)].get(place)?.base?;
        Some(self.owner(base))
    }

    /// The node of a place, and its number there.
    pub(super) fn owner(&self, place: u32) -> (NodeId, usize) {
        let node = self.first_place.partition_point(|&first| first <= place) - 1;
        (NodeId(node as u32), (place - self.first_place[node]) as usize)
    }

    /// The parts that any place of a node shows.
    pub fn all_parts(&self, node: NodeId) -> impl Iterator<Item = &Part> {
        self.places[self.place_range(node)].iter().flat_map(|p| self.parts_of(*p))
    }

    /// The storage of a node that returns one tensor, if it is certain.
    pub fn storage_of(&self, node: NodeId) -> Option<StorageIndex> {
        match (self.places(node), self.parts(node, 0)) {
            (1, [part]) if part.certain => Some(part.storage),
            _ => None,
        }
    }

    /// Waits that end a flight whose input was read at once, with what was kept alive until then. No order follows from
    /// these: they are no accesses.
    pub fn kept(&self) -> &[Access] {
        &self.kept
    }

    /// The same of one wait.
    pub fn kept_by(&self, wait: NodeId) -> impl Iterator<Item = &Access> {
        let first = self.kept.partition_point(|access| access.node < wait);
        self.kept[first..].iter().take_while(move |access| access.node == wait)
    }

    /// All accesses, in list order.
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// What a node reads and writes.
    pub fn accesses_by(&self, node: NodeId) -> &[Access] {
        &self.accesses[self.of_node[node.index()] as usize..self.of_node[node.index() + 1] as usize]
    }

    /// For each node the storages that its results show, each once.
    pub fn shown(&self, graph: &Graph) -> Vec<SmallVec<[StorageIndex; 1]>> {
        let shown = |id| {
            let mut shown: SmallVec<[StorageIndex; 1]> =
                self.all_parts(id).map(|part| part.storage).collect();
            shown.sort_unstable();
            shown.dedup();
            shown
        };
        graph.ids().map(shown).collect()
    }

    /// Who reads and writes a storage, in list order.
    pub fn accesses_of(&self, storage: StorageIndex) -> impl ExactSizeIterator<Item = &Access> + Clone {
        self.in_storage[self.storage_range(storage)].iter().map(|&i| &self.accesses[i as usize])
    }

    /// Those of them that come after `node`.
    pub fn accesses_after(
        &self,
        storage: StorageIndex,
        node: NodeId,
    ) -> impl ExactSizeIterator<Item = &Access> + Clone {
        let all = &self.in_storage[self.storage_range(storage)];
        let later = all.partition_point(|&i| self.accesses[i as usize].node <= node);
        all[later..].iter().map(|&i| &self.accesses[i as usize])
    }

    /// Those of them that write, after `node` where one is given.
    pub fn writes_of(
        &self,
        storage: StorageIndex,
        after: Option<NodeId>,
    ) -> impl ExactSizeIterator<Item = &Access> + Clone {
        let index = storage.index();
        let all = &self.writes[self.first_write[index] as usize..self.first_write[index + 1] as usize];
        let later = after.map_or(0, |node| all.partition_point(|&i| self.accesses[i as usize].node <= node));
        all[later..].iter().map(|&i| &self.accesses[i as usize])
    }

    /// Those of them that come before `node`, the last one first.
    pub fn accesses_before(&self, storage: StorageIndex, node: NodeId) -> impl Iterator<Item = &Access> {
        let all = &self.in_storage[self.storage_range(storage)];
        let earlier = all.partition_point(|&i| self.accesses[i as usize].node < node);
        all[..earlier].iter().rev().map(|&i| &self.accesses[i as usize])
    }

    fn storage_range(&self, storage: StorageIndex) -> std::ops::Range<usize> {
        self.of_storage[storage.index()] as usize..self.of_storage[storage.index() + 1] as usize
    }

    /// Whether the values of two nodes share a byte.
    pub fn alias(&self, a: NodeId, b: NodeId) -> Sharing {
        let mut found = Sharing::No;
        for x in self.all_parts(a) {
            for y in self.all_parts(b).filter(|y| y.storage == x.storage) {
                match x.bytes.overlap(y.bytes) {
                    Overlap::No => {}
                    Overlap::Yes if x.certain && y.certain => return Sharing::Must,
                    _ => found = Sharing::May,
                }
            }
        }
        found
    }
}
