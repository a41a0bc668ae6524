//! Equal values found by structure: a number for each node, equal where the same operator takes equal values.
//!
//! The numbers of several graphs can be compared: inputs with one name are equal, a call is known by its target, its
//! arguments and, where it reads memory that is written, by who wrote it last. Random draws are known by a key that
//! the caller gives, effects by the name of their node. This is value numbering; it costs what the graphs take to
//! read once. Equal numbers mean equal values. Different numbers mean nothing: two expressions may be equal for
//! reasons that structure does not show.

use super::super::AnalyzedGraph;
use crate::analysis::bytes::{ByteSet, Overlap};
use crate::analysis::storages::{StorageIndex, Touch};
use crate::graph::{NodeId, Op, Value};
use crate::ops::{Kind, Word, spelled};
use rustc_hash::FxHashMap;

/// A class of equal values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Term(u32);

/// Terms of any number of graphs.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms {
    known: FxHashMap<Box<[u64]>, Term>,
    texts: FxHashMap<String, u64>,
}

/// The terms of one graph.
#[derive(Clone, Debug)]
pub(super) struct TermsOf {
    /// By node.
    pub(super) of: Vec<Term>,
    /// What each input's storage was written by, in order: name of the input, terms of the writers.
    pub(super) written: Vec<(String, Vec<Term>)>,
    /// The term and the last writer of each returned value, at the end.
    pub(super) returned: Vec<(Value, Option<Term>, u64)>,
}

impl Terms {
    fn text(&mut self, text: &str) -> u64 {
        if let Some(&id) = self.texts.get(text) {
            return id;
        }
        let id = self.texts.len() as u64;
        self.texts.insert(text.to_string(), id);
        id
    }

    fn intern(&mut self, key: &[u64]) -> Term {
        if let Some(&term) = self.known.get(key) {
            return term;
        }
        let term = Term(self.known.len() as u32);
        self.known.insert(key.into(), term);
        term
    }

    /// The terms of a graph whose list is in order. `draw` names the draw of a random node.
    pub(super) fn number(
        &mut self,
        side: &AnalyzedGraph,
        draw: &dyn Fn(NodeId) -> Option<String>,
    ) -> TermsOf {
        let graph = side.graph;
        let versions = Versions::new(side);
        let mut of: Vec<Term> = Vec::with_capacity(graph.len());
        let mut key: Vec<u64> = Vec::new();
        for id in graph.ids() {
            key.clear();
            let node = graph.node(id);
            match node.op {
                Op::Placeholder => {
                    key.extend([1, self.text(graph.name(id))]);
                }
                Op::GetAttr => {
                    key.extend([2, self.text(graph.target(id))]);
                }
                Op::Output => key.extend([3]),
                Op::Call => {
                    key.extend([4, self.text(graph.target(id))]);
                    for word in spelled(graph, &side.ops, id) {
                        self.word(word, &of, &mut key);
                    }
                    if let Some(name) = draw(id) {
                        key.extend([u64::MAX, 1, self.text(&name)]);
                    } else if let Some(info) = side.ops.call(graph, id)
                        && (info.kind == Kind::Unknown || info.effect)
                        && info.kind != Kind::Assert
                    {
                        key.extend([u64::MAX, 2, self.text(graph.name(id))]);
                    }
                    for (storage, writer) in versions.read_by(side, id) {
                        let writer = of.get(writer.index()).map_or(u64::MAX, |term| u64::from(term.0));
                        key.extend([u64::MAX - 1, storage, writer]);
                    }
                }
            }
            of.push(self.intern(&key));
        }
        let written = versions.inputs.iter().map(|(name, writers)| {
            (name.clone(), writers.iter().filter_map(|w| of.get(w.index()).copied()).collect())
        });
        let written = written.collect();
        let returned = super::compose::returned(graph).into_iter().map(|value| match value {
            Value::Node(node) => {
                let last = versions.last_on(side, node, NodeId(graph.len() as u32));
                let version = last.and_then(|w| of.get(w.index())).map_or(u64::MAX, |term| u64::from(term.0));
                (value, of.get(node.index()).copied(), version)
            }
            value => (value, None, 0),
        });
        TermsOf { returned: returned.collect(), written, of }
    }

    fn word(&mut self, word: Word, of: &[Term], key: &mut Vec<u64>) {
        key.extend(match word {
            Word::None => [5, 0],
            Word::Bool(b) => [6, u64::from(b)],
            Word::Int(n) => [7, n as u64],
            Word::Float(bits) => [8, bits],
            Word::Text(text) => [9, self.text(text)],
            // A reference to a later node has no term yet: it stands for nothing else.
            Word::Node(node) => match of.get(node.index()) {
                Some(term) => [10, u64::from(term.0)],
                None => [11, u64::from(node.0)],
            },
            Word::Dangling(text) => [12, self.text(text)],
            Word::Dtype(dtype) => [13, dtype as u64],
            Word::Function(text) => [17, self.text(text)],
            Word::Symbolic(text, _) => [18, self.text(text)],
            Word::Named(text) => [19, self.text(text)],
            Word::List(len) => [20, len as u64],
            Word::Slice(len) => [21, len as u64],
            Word::Complex(len) => [22, len as u64],
            Word::Dict(len) => [23, len as u64],
        });
    }
}

/// Who writes memory, in list order. Storages that nobody writes are left out, and so are buffers that only
/// communication fills.
pub(super) struct Versions {
    /// By storage: its writes, in list order.
    writes: FxHashMap<StorageIndex, Vec<(NodeId, ByteSet)>>,
    /// Inputs that are written, by name, with the writers.
    pub(super) inputs: Vec<(String, Vec<NodeId>)>,
}

impl Versions {
    pub(super) fn new(side: &AnalyzedGraph) -> Versions {
        let storages = side.storages();
        let mut writes: FxHashMap<StorageIndex, Vec<(NodeId, ByteSet)>> = FxHashMap::default();
        let mut inputs = Vec::new();
        for access in storages.accesses().iter().filter(|access| access.touch == Touch::Write) {
            writes.entry(access.part.storage).or_default().push((access.node, access.part.bytes));
        }
        for storage in storages.ids().filter(|&storage| storages.storage(storage).external) {
            let Some(writes) = writes.get(&storage) else { continue };
            let by = storages.storage(storage).by;
            let name = match side.graph.node(by).op {
                Op::GetAttr => side.graph.target(by),
                _ => side.graph.name(by),
            };
            inputs.push((name.to_string(), writes.iter().map(|write| write.0).collect()));
        }
        inputs.sort();
        Versions { writes, inputs }
    }

    /// What a node reads after a write: the place of the read among the node's accesses, and who wrote last.
    fn read_by(&self, side: &AnalyzedGraph, id: NodeId) -> Vec<(u64, NodeId)> {
        if !self.any() {
            return Vec::new();
        }
        let accesses = side.storages().accesses_by(id).iter().enumerate();
        let read = accesses.filter_map(|(index, access)| {
            Some((index as u64, self.last_write(access.part.storage, access.part.bytes, id)?))
        });
        read.collect()
    }

    /// The last node before `end` that wrote memory that `id` shows.
    pub(super) fn last_on(&self, side: &AnalyzedGraph, id: NodeId, end: NodeId) -> Option<NodeId> {
        if !self.any() {
            return None;
        }
        let parts = side.storages().all_parts(id);
        parts.filter_map(|part| self.last_write(part.storage, part.bytes, end)).max()
    }

    /// The last node before `end` that wrote some of these bytes.
    pub(super) fn last_write(&self, storage: StorageIndex, bytes: ByteSet, end: NodeId) -> Option<NodeId> {
        let writes = self.writes.get(&storage)?;
        let earlier = &writes[..writes.partition_point(|write| write.0 < end)];
        earlier.iter().rev().find(|write| write.1.overlap(bytes) != Overlap::No).map(|write| write.0)
    }

    /// Whether anything is written.
    pub(super) fn any(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Whether this storage is written.
    pub(super) fn is_written(&self, storage: StorageIndex) -> bool {
        self.writes.contains_key(&storage)
    }
}
