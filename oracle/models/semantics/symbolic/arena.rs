//! The arena that two evaluations share: everything in it is hash-consed, so equality is equality of ids.

use super::intern::Slices;
use super::key::Words;
use super::place::{HERE, Places};
use super::reason::Reason;
use super::run::{Piece, Run, RunList, pieces};
use super::same::Pair;
use super::source::{KeyId, LayoutId, POISON, Source, SourceId, Symbol, TableId, Traits, ValueId};
use super::topology::Topology;
use crate::graph::World;
use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};

/// Bounds on the work of an evaluation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Runs that all values of an arena may have together (24 bytes each).
    pub runs: usize,
    /// Stretches up to which a window on several runs, in the order of memory, is written out as runs. Above it, it
    /// stays a window.
    pub flatten: i64,
    /// The same for a window in another order, and for one on a single run.
    pub flatten_other: i64,
}

impl Limits {
    /// 16 million runs (400 MB), 65,536 stretches, 256 stretches.
    pub const DEFAULT: Limits = Limits { runs: 1 << 24, flatten: 1 << 16, flatten_other: 1 << 8 };
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

/// Values of any number of graphs over one world.
#[derive(Clone, Debug)]
pub struct Arena {
    pub(super) limits: Limits,
    symbols: IndexSet<Box<str>, FxBuildHasher>,
    pub(super) places: Places,
    sources: IndexSet<Source, FxBuildHasher>,
    source_traits: Vec<Traits>,
    /// Who made a source first: the name of a node.
    origins: Vec<Option<Symbol>>,
    keys: Slices<u64>,
    layouts: Slices<(i64, i64)>,
    tables: Slices<Piece>,
    runs: Slices<Run>,
    value_traits: Vec<Traits>,
    pub(super) slices: FxHashMap<(ValueId, i64, i64), ValueId>,
    pub(super) windows: FxHashMap<(ValueId, i64, LayoutId), ValueId>,
    pub(super) casts: FxHashMap<(ValueId, u16), ValueId>,
    spare: Vec<RunList>,
    /// Pairs of which it is known whether they are the same.
    pub(super) settled: FxHashMap<Pair, bool>,
}

/// The value of a tensor without elements.
pub(super) const NOTHING: ValueId = ValueId(0);

impl Arena {
    /// An empty arena over the process groups of `world`.
    pub fn new(world: &World, limits: Limits) -> Arena {
        let mut arena = Arena {
            limits,
            symbols: IndexSet::default(),
            places: Places::new(Topology::new(world)),
            sources: IndexSet::default(),
            source_traits: Vec::new(),
            origins: Vec::new(),
            keys: Slices::default(),
            layouts: Slices::default(),
            tables: Slices::default(),
            runs: Slices::default(),
            value_traits: Vec::new(),
            slices: FxHashMap::default(),
            windows: FxHashMap::default(),
            casts: FxHashMap::default(),
            spare: Vec::new(),
            settled: FxHashMap::default(),
        };
        for group in &world.groups {
            arena.places.group(&group.name);
        }
        arena.source(Source::Poison);
        let empty = arena.list();
        arena.value(empty);
        arena
    }

    /// The id of a text.
    pub(super) fn symbol(&mut self, text: &str) -> Symbol {
        if let Some(index) = self.symbols.get_index_of(text) {
            return Symbol(index as u32);
        }
        Symbol(self.symbols.insert_full(text.into()).0 as u32)
    }

    /// The text of a symbol.
    pub fn text(&self, symbol: Symbol) -> &str {
        self.symbols.get_index(symbol.0 as usize).map_or("", |text| text)
    }

    /// The name of a process group.
    pub fn group_name(&self, group: super::GroupId) -> &str {
        self.places.group_name(group)
    }

    /// Distinct values that are stored.
    pub fn stored_values(&self) -> usize {
        self.runs.len()
    }

    pub(super) fn key(&mut self, words: &Words) -> KeyId {
        KeyId(self.keys.intern(&words.0))
    }

    pub(super) fn has_key(&self, words: &Words) -> bool {
        self.keys.find(&words.0).is_some()
    }

    pub(super) fn words(&self, key: KeyId) -> &[u64] {
        self.keys.get(key.0)
    }

    pub(super) fn layout_id(&mut self, dims: &[(i64, i64)]) -> LayoutId {
        LayoutId(self.layouts.intern(dims))
    }

    pub(super) fn layout(&self, id: LayoutId) -> &[(i64, i64)] {
        self.layouts.get(id.0)
    }

    pub(super) fn table_id(&mut self, pieces: &[Piece]) -> TableId {
        TableId(self.tables.intern(pieces))
    }

    pub(super) fn table(&self, id: TableId) -> &[Piece] {
        self.tables.get(id.0)
    }

    /// The id of a source.
    pub(super) fn source(&mut self, source: Source) -> SourceId {
        self.source_with(source, None, Traits::default())
    }

    /// The id of a source; if it is new, `origin` is the node where it comes from.
    pub(super) fn source_of(&mut self, source: Source, origin: Symbol) -> SourceId {
        self.source_with(source, Some(origin), Traits::default())
    }

    /// The same, with traits that a new one has beside those of what it is made of.
    pub(super) fn source_with(&mut self, source: Source, origin: Option<Symbol>, more: Traits) -> SourceId {
        if let Some(index) = self.sources.get_index_of(&source) {
            return SourceId(index as u32);
        }
        let inherited = |inner: SourceId| self.source_traits(inner);
        let traits = match source {
            Source::Poison => Traits::POISON.and(Traits::UNIFORM),
            Source::InFlight { .. } => Traits::IN_FLIGHT.and(Traits::UNIFORM),
            Source::Constant { .. } => Traits::UNIFORM,
            Source::Placeholder { .. }
            | Source::Beyond { .. }
            | Source::Attribute { .. }
            | Source::Opaque { .. } => Traits::default(),
            Source::Cast { source, .. }
            | Source::Bits { source, .. }
            | Source::Reduced { source, .. }
            | Source::Elsewhere { source, .. } => inherited(source),
            Source::Select { table, .. } => {
                let held = Traits::POISON.and(Traits::IN_FLIGHT).and(Traits::WINDOW);
                let all = self.table(table).iter().map(|piece| inherited(piece.source));
                all.fold(Traits::default(), Traits::and).shared(held)
            }
            Source::Window { content, .. } => {
                let held = Traits::POISON.and(Traits::IN_FLIGHT);
                self.traits(content).shared(held).and(Traits::WINDOW)
            }
        };
        self.source_traits.push(traits.and(more));
        self.origins.push(origin);
        SourceId(self.sources.insert_full(source).0 as u32)
    }

    pub(super) fn get(&self, id: SourceId) -> Source {
        self.sources.get_index(id.0 as usize).copied().unwrap_or(Source::Poison)
    }

    pub(super) fn source_traits(&self, id: SourceId) -> Traits {
        self.source_traits.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// Whether every element of a source is the same on every rank.
    pub(super) fn is_uniform(&self, id: SourceId) -> bool {
        self.source_traits(id).has(Traits::UNIFORM)
    }

    pub(super) fn origin(&self, id: SourceId) -> Option<&str> {
        self.origins.get(id.0 as usize).copied().flatten().map(|symbol| self.text(symbol))
    }

    /// An empty list to build a value in; [`Arena::value`] takes it back.
    pub(super) fn list(&mut self) -> RunList {
        self.spare.pop().unwrap_or_default()
    }

    /// The value that a list holds.
    pub(super) fn value(&mut self, mut list: RunList) -> ValueId {
        let id = ValueId(self.runs.intern(list.runs()));
        if id.0 as usize == self.value_traits.len() {
            let traits = list.runs().iter().map(|run| self.source_traits(run.source));
            self.value_traits.push(traits.fold(Traits::default(), Traits::and));
        }
        list.clear();
        self.spare.push(list);
        id
    }

    /// Gives a list back whose building was broken off.
    pub(super) fn drop_list(&mut self, mut list: RunList) {
        list.clear();
        self.spare.push(list);
    }

    /// What the elements of a value have between them ([`Traits::UNIFORM`] says nothing here).
    pub(super) fn traits(&self, id: ValueId) -> Traits {
        self.value_traits.get(id.0 as usize).copied().unwrap_or_default()
    }

    pub(super) fn runs(&self, id: ValueId) -> &[Run] {
        self.runs.get(id.0)
    }

    /// Number of elements of a value. A tensor of symbolic sizes counts as one element.
    pub fn len(&self, id: ValueId) -> i64 {
        self.runs(id).last().map_or(0, |run| run.end)
    }

    /// Number of runs of a value.
    pub fn run_count(&self, id: ValueId) -> usize {
        self.runs(id).len()
    }

    /// Whether no value has been stored.
    pub fn is_empty(&self) -> bool {
        self.stored_values() <= 1
    }

    /// Makes sure that `more` runs may be stored.
    pub(super) fn room(&self, more: i64) -> Result<(), Reason> {
        let limit = self.limits.runs.min(u32::MAX as usize);
        let left = limit.saturating_sub(self.runs.items());
        if more >= 0 && (more as u64) <= left as u64 {
            Ok(())
        } else {
            Err(Reason::TooManyRuns { limit: self.limits.runs })
        }
    }

    /// Appends elements `start .. start + len` of a value to a list.
    pub(super) fn append(&self, list: &mut RunList, value: ValueId, start: i64, len: i64) {
        for piece in pieces(self.runs(value), start, len) {
            list.push(piece);
        }
    }

    /// A piece of one source on the own rank.
    pub(super) fn whole(&self, source: SourceId, len: i64) -> Piece {
        let step = if self.is_uniform(source) { 0 } else { 1 };
        Piece { len, offset: 0, source, place: HERE, step }
    }

    /// `len` elements of one source.
    pub(super) fn all_of(&mut self, source: SourceId, len: i64) -> ValueId {
        let mut list = self.list();
        list.push(self.whole(source, len));
        self.value(list)
    }

    /// `len` elements of unwritten memory.
    pub(super) fn poison(&mut self, len: i64) -> ValueId {
        self.all_of(POISON, len)
    }

    /// The run that a value consists of, if it is a single one.
    pub(super) fn single(&self, value: ValueId) -> Option<Piece> {
        match self.runs(value) {
            [run] => Some(Piece {
                len: run.end,
                offset: run.offset,
                source: run.source,
                place: run.place(),
                step: run.step(),
            }),
            _ => None,
        }
    }

    /// One piece as a value.
    pub(super) fn piece(&mut self, piece: Piece) -> ValueId {
        let mut list = self.list();
        list.push(piece);
        self.value(list)
    }
}
