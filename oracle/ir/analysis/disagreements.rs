//! Where recorded storages contradict the schemas.
//!
//! A file records for each tensor which storage the tracer saw it on. That is a second witness of aliasing: the
//! analyses follow the schemas, and this module tells where the two differ. Where a tracer lost the connection
//! between a view and its base, only the first view that lost it is told, not what is built on it.

use super::storages::{StorageIndex, Storages};
use crate::graph::{Dim, Graph, NodeId, Op, StorageId, Tensor};
use crate::ops::{Kind, Move, Ops};
use rustc_hash::FxHashMap;

/// A tensor whose recorded storage is not what its operator's schema says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Disagreement {
    /// The node.
    pub node: NodeId,
    /// Which tensor of it.
    pub place: usize,
    /// What the schema says that it shares storage with, or what it was recorded to share storage with: a node
    /// and a tensor of it.
    pub with: (NodeId, usize),
    /// Whether the schema says that they share storage; else the recording does.
    pub by_schema: bool,
}

impl Disagreement {
    /// In words.
    pub fn describe(&self, graph: &Graph) -> String {
        let (node, with) = (graph.name(self.node), graph.name(self.with.0));
        let target = graph.target(self.node);
        match self.by_schema {
            true => format!(
                "{node} shares the storage of {with} by the schema of {target}, but was recorded on another one"
            ),
            false => format!(
                "{node} is fresh by the schema of {target}, but was recorded on the storage of {with}"
            ),
        }
    }
}

/// All disagreements, in list order. `storages` are those of [`Mode::Logical`](super::storages::Mode).
pub fn disagreements(graph: &Graph, storages: &Storages) -> Vec<Disagreement> {
    let recorded = |node: NodeId, place: usize| graph.tensor(storages.tensor(node, place)?).storage;
    let mut found = Vec::new();
    let mut first: FxHashMap<StorageId, (NodeId, usize)> = FxHashMap::default();
    for node in graph.ids() {
        for place in 0..storages.places(node) {
            let Some(storage) = recorded(node, place) else { continue };
            let earlier = *first.entry(storage).or_insert((node, place));
            if graph.node(node).op != Op::Call {
                continue;
            }
            let certain = storages.parts(node, place).iter().all(|part| part.certain);
            match storages.base(node, place) {
                Some(base) if recorded(base.0, base.1).is_some_and(|s| s != storage) => {
                    found.push(Disagreement { node, place, with: base, by_schema: true });
                }
                None if certain && earlier != (node, place) => {
                    found.push(Disagreement { node, place, with: earlier, by_schema: false });
                }
                _ => {}
            }
        }
    }
    found
}

/// The memory that a result's record confuses with its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Elsewhere {
    /// The node that was recorded there first.
    pub other: NodeId,
    /// Which tensor of the result, and which of the other node.
    pub places: [usize; 2],
    /// The storage of the result, and that of the other node.
    pub storages: [StorageIndex; 2],
}

/// Views that are recorded in another storage than what they are certainly views of, with that, in list order.
pub fn views_elsewhere(graph: &Graph, ops: &Ops, storages: &Storages) -> Vec<(NodeId, NodeId)> {
    let recorded = |(node, place)| graph.tensor(storages.tensor(node, place)?).storage;
    let view = |node: NodeId| ops.call(graph, node).is_some_and(|info| matches!(info.kind, Kind::View(_)));
    let base = |node: NodeId| {
        let base = storages.base(node, 0)?;
        let is_certain = storages.parts(node, 0).iter().all(|part| part.certain);
        (is_certain && recorded(base)? != recorded((node, 0))?).then_some((node, base.0))
    };
    graph.ids().filter(|&node| view(node)).filter_map(base).collect()
}

/// Nodes with results that are recorded in a storage in which other memory was recorded before, in list order.
/// `storages` are those at run time. Views are [looked at otherwise](views_elsewhere).
pub fn recorded_elsewhere(graph: &Graph, storages: &Storages) -> Vec<(NodeId, Elsewhere)> {
    let mut first: FxHashMap<StorageId, (StorageIndex, NodeId, usize)> = FxHashMap::default();
    let mut found = Vec::new();
    for node in graph.ids() {
        for place in 0..storages.places(node) {
            let tensor = storages.tensor(node, place).map(|tensor| graph.tensor(tensor));
            let Some(recorded) = tensor.and_then(|tensor| tensor.storage) else { continue };
            let &[part] = storages.parts(node, place) else { continue };
            if !part.certain {
                continue;
            }
            let (storage, other, at) = *first.entry(recorded).or_insert((part.storage, node, place));
            if storage != part.storage {
                let elsewhere = Elsewhere { other, places: [place, at], storages: [part.storage, storage] };
                found.push((node, elsewhere));
            }
        }
    }
    found.dedup_by_key(|(node, _)| *node);
    found
}

/// Results whose recorded storage has another size than follows, or begins elsewhere in it, in list order, each with
/// what is wrong. A fresh result fills its storage from the first byte on; a view has the storage of what it is a view
/// of. What is not computed, and copies with the layout of their first argument and its gaps, may lie anywhere.
pub fn resized(graph: &Graph, ops: &Ops, storages: &Storages) -> Vec<(NodeId, String)> {
    let mut found = Vec::new();
    for node in graph.ids() {
        let Some(info) = ops.call(graph, node) else { continue };
        let places = storages.places(node);
        let tensor = |(node, place)| storages.tensor(node, place).map(|tensor| graph.tensor(tensor));
        let fault = (0..places).find_map(|place| {
            let own = tensor((node, place))?;
            let bytes = own.storage_bytes.and_then(Dim::known)?;
            match storages.base(node, place) {
                Some(base) => {
                    let of = tensor(base).filter(|of| of.storage == own.storage && own.storage.is_some())?;
                    let whole = of.storage_bytes.and_then(Dim::known).filter(|&whole| whole != bytes)?;
                    let name = graph.name(base.0);
                    Some(format!("its storage is recorded with {bytes} bytes, that of {name} with {whole}"))
                }
                None => {
                    let [part] = storages.parts(node, place) else { return None };
                    let may_lie_anywhere = matches!(
                        info.kind,
                        Kind::View(_)
                            | Kind::Opaque
                            | Kind::Unknown
                            | Kind::Effect
                            | Kind::Resize
                            | Kind::Sync(_)
                            | Kind::GetItem
                            | Kind::Wait
                    ) || matches!(
                        info.kind,
                        Kind::Move(
                            Move::Copy
                                | Move::SliceScatter
                                | Move::SelectScatter
                                | Move::DiagonalScatter
                                | Move::AsStridedScatter
                        )
                    );
                    if may_lie_anywhere || !part.certain || storages.storage(part.storage).by != node {
                        return None;
                    }
                    let end = end_of(graph, own).filter(|&end| end != bytes || own.offset != 0)?;
                    Some(match own.offset {
                        0 => format!(
                            "its storage is recorded with {bytes} bytes, and it is fresh and takes {end}"
                        ),
                        offset => format!("it is fresh, and recorded at element {offset} of its storage"),
                    })
                }
            }
        });
        found.extend(fault.map(|fault| (node, fault)));
    }
    found
}

/// The end of a tensor in its storage, in bytes; `None` where sizes are not known.
fn end_of(graph: &Graph, tensor: &Tensor) -> Option<i64> {
    let (sizes, strides) = (graph.sizes(tensor.shape)?, graph.sizes(tensor.stride)?);
    if sizes.contains(&0) {
        return Some(0);
    }
    let last = sizes.iter().zip(&strides).try_fold(tensor.offset, |last, (&size, &stride)| {
        last.checked_add((size - 1).checked_mul(stride)?)
    })?;
    last.checked_add(1)?.checked_mul(i64::from(tensor.dtype.itemsize()))
}
