//! What values share: the pairs among many that share a byte, and small questions behind [`Storages`], as far as an
//! operator's kind and its schema say.

use super::bytes::{ByteSet, Overlap, meeting};
use super::storages::{Part, Sharing, StorageIndex, Storages};
use crate::graph::{Graph, NodeId, Value};
use crate::ops::{Collective, Kind, OpInfo, Schema};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// What two of many share, the smaller number first; pairs that are not listed share nothing.
pub type Shared = BTreeMap<(usize, usize), Sharing>;

/// What those share who show these parts; `None` where more than `most` pairs of parts are close to each other.
pub fn shared_by(shown: &[(usize, Part)], most: usize) -> Option<Shared> {
    let mut by_storage: BTreeMap<StorageIndex, Vec<(usize, Part)>> = BTreeMap::new();
    for &(who, part) in shown {
        by_storage.entry(part.storage).or_default().push((who, part));
    }
    let (mut shared, mut left) = (Shared::new(), most);
    for shown in by_storage.values() {
        let sets: Vec<ByteSet> = shown.iter().map(|(_, part)| part.bytes).collect();
        meeting(&sets, &mut |i, j| {
            left = left.checked_sub(1)?;
            let ((a, one), (b, other)) = (shown[i], shown[j]);
            let sharing = match one.bytes.overlap(other.bytes) {
                Overlap::No => return Some(()),
                Overlap::Yes if one.certain && other.certain => Sharing::Must,
                _ => Sharing::May,
            };
            let known = shared.entry((a.min(b), a.max(b))).or_insert(sharing);
            if sharing == Sharing::Must {
                *known = sharing;
            }
            Some(())
        })?;
    }
    Some(shared)
}

/// What `copy_` copied: the bytes, by the storage that was written and the one that was read.
pub struct Copies(BTreeMap<(StorageIndex, StorageIndex), FxHashSet<ByteSet>>);

impl Copies {
    /// All copies of a graph.
    pub fn of(graph: &Graph, storages: &Storages) -> Copies {
        let mut copies = Copies(BTreeMap::new());
        for copy in graph.ids().filter(|&id| graph.target(id) == "aten.copy_.default") {
            let [into, from] = &graph.inputs(copy)[..] else { continue };
            for into in storages.all_parts(*into) {
                for from in storages.all_parts(*from) {
                    copies.0.entry((into.storage, from.storage)).or_default().insert(from.bytes);
                }
            }
        }
        copies
    }

    /// Whether all that one of the parts `from` shows was copied to where one of the parts `into` lies.
    pub fn lead(&self, into: &[Part], from: &[Part]) -> bool {
        let pairs = into.iter().flat_map(|into| from.iter().map(move |from| (into, from)));
        pairs.into_iter().any(|(into, from)| {
            let copied = self.0.get(&(into.storage, from.storage));
            copied.is_some_and(|copied| copied.iter().any(|bytes| bytes.covers(from.bytes)))
        })
    }
}

/// Whether the run time shares storage where the schema does not say so.
pub(super) fn is_quiet(info: &OpInfo, schema: &Schema) -> bool {
    !info.undeclared_aliases().is_empty()
        || matches!(info.kind, Kind::Collective(Collective::PointToPoint))
        || (matches!(info.kind, Kind::View(_)) && schema.name == "_unsafe_view")
}

/// Whether what the schema calls a view is the argument itself, where it is no copy.
pub(super) fn hands_back(schema: &Schema) -> bool {
    matches!(schema.name.as_str(), "contiguous" | "to" | "type_as" | "resolve_conj" | "resolve_neg")
}

/// Whether element `element` of a `batch_p2p_ops` receives.
pub(super) fn receives(graph: &Graph, id: NodeId, schema: &Schema, element: usize) -> bool {
    let ops = schema.param("op_list").and_then(|param| argument(graph, id, schema, param));
    match ops {
        Some(Value::List(span)) => match graph.values(span).get(element) {
            Some(Value::Str(op)) => Collective::message(graph.text(*op)) == Some(Collective::Recv),
            _ => false,
        },
        _ => false,
    }
}

/// The argument for a parameter, by position or by keyword; `None` where the default holds.
pub(super) fn argument(graph: &Graph, id: NodeId, schema: &Schema, param: usize) -> Option<Value> {
    graph.argument(id, param, &schema.params.get(param)?.name)
}

/// Whether results of this operator can be tensors.
pub(super) fn holds_tensors(info: &OpInfo) -> bool {
    let number = matches!(
        info.kind,
        Kind::Number(_) | Kind::SymSize | Kind::SymNumel | Kind::SymStride | Kind::Item | Kind::Assert
    );
    !number && info.schema.as_ref().is_none_or(|s| s.returns.iter().any(|r| r.ty.starts_with("Tensor")))
}
