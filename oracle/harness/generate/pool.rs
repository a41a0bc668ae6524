//! The values at hand, and what may be done with them.
//!
//! A value may be read unless a collective is still to write its storage or nothing has written it yet. It may be
//! written unless a collective in flight reads or writes its storage. These two rules make every generated graph
//! free of races and of reads of uninitialised memory, in list order.

use super::source::Source;
use super::types::Type;
use crate::graph::NodeId;

/// A value at hand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Var(pub u32);

/// A storage: values with the same one are aliases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StorageId(pub u32);

/// A value: a node and what is known about its result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub node: NodeId,
    pub ty: Type,
    pub storage: StorageId,
    /// References to it so far.
    pub uses: u32,
    /// Whether it becomes an output if nothing uses it, and if something does.
    pub output: (bool, bool),
    /// Whether it is what a wait gave.
    pub waited: bool,
}

/// A storage and what goes on with it.
#[derive(Clone, Copy, Default, Debug)]
struct Storage {
    /// Collectives in flight that read it.
    reads: u32,
    /// Whether a collective in flight writes it.
    in_flight: bool,
    /// Whether it has parts that nothing has written.
    fresh: bool,
    /// Whether it belongs to a graph input.
    input: bool,
}

/// How far back operands are looked for: constant work per operand, and layers that hang together.
const REACH: u32 = 48;

#[derive(Debug)]
pub(super) struct Pool {
    values: Vec<Held>,
    storages: Vec<Storage>,
}

impl Pool {
    /// For as many values without growing.
    pub fn with_capacity(values: usize) -> Pool {
        Pool { values: Vec::with_capacity(values), storages: Vec::with_capacity(values) }
    }

    pub fn get(&self, var: Var) -> &Held {
        &self.values[var.0 as usize]
    }

    pub fn get_mut(&mut self, var: Var) -> &mut Held {
        &mut self.values[var.0 as usize]
    }

    pub fn ty(&self, var: Var) -> Type {
        self.get(var).ty
    }

    pub fn vars(&self) -> impl DoubleEndedIterator<Item = Var> + use<> {
        (0..self.values.len() as u32).map(Var)
    }

    pub fn add(&mut self, held: Held) -> Var {
        self.values.push(held);
        Var(self.values.len() as u32 - 1)
    }

    /// A new storage.
    pub fn storage(&mut self) -> StorageId {
        self.storages.push(Storage::default());
        StorageId(self.storages.len() as u32 - 1)
    }

    fn of(&self, storage: StorageId) -> &Storage {
        &self.storages[storage.0 as usize]
    }

    fn of_mut(&mut self, storage: StorageId) -> &mut Storage {
        &mut self.storages[storage.0 as usize]
    }

    pub fn mark_input(&mut self, storage: StorageId) {
        self.of_mut(storage).input = true;
    }

    pub fn is_input(&self, storage: StorageId) -> bool {
        self.of(storage).input
    }

    /// Nothing has written the storage yet (or everything has been).
    pub fn set_fresh(&mut self, storage: StorageId, fresh: bool) {
        self.of_mut(storage).fresh = fresh;
    }

    /// A collective begins to read `storage`.
    pub fn begin_read(&mut self, storage: StorageId) {
        self.of_mut(storage).reads += 1;
    }

    pub fn end_read(&mut self, storage: StorageId) {
        let reads = &mut self.of_mut(storage).reads;
        *reads = reads.saturating_sub(1);
    }

    /// A collective begins to write `storage`.
    pub fn begin_write(&mut self, storage: StorageId) {
        self.of_mut(storage).in_flight = true;
    }

    /// The collective that writes `storage` is waited for.
    pub fn end_write(&mut self, storage: StorageId) {
        let storage = self.of_mut(storage);
        (storage.in_flight, storage.fresh) = (false, false);
    }

    /// Whether the whole storage can be read now.
    pub fn is_readable(&self, storage: StorageId) -> bool {
        let storage = self.of(storage);
        !storage.in_flight && !storage.fresh
    }

    /// Whether a value may be overwritten now.
    pub fn is_writable(&self, var: Var) -> bool {
        let held = self.get(var);
        let storage = self.of(held.storage);
        !storage.in_flight && storage.reads == 0 && !held.ty.overlaps()
    }

    /// A value that can be read and that `fits`, with a preference for recent ones.
    pub fn find(&self, source: &mut impl Source, fits: impl Fn(&Held) -> bool) -> Option<Var> {
        let count = self.values.len() as u32;
        let reach = count.min(REACH);
        let start = source.below(reach).min(source.below(reach));
        (0..reach)
            .map(|i| Var(count - 1 - (start + i) % reach))
            .find(|&var| fits(self.get(var)) && self.is_readable(self.get(var).storage))
    }

    /// The same among values that may be overwritten.
    pub fn find_writable(&self, source: &mut impl Source, fits: impl Fn(&Held) -> bool) -> Option<Var> {
        let count = self.values.len() as u32;
        let reach = count.min(REACH);
        let start = source.below(reach);
        (0..reach).map(|i| Var(count - 1 - (start + i) % reach)).find(|&var| {
            fits(self.get(var)) && self.is_readable(self.get(var).storage) && self.is_writable(var)
        })
    }
}
