//! `rewrite/unwritten`: reads of memory that nobody has written.
//!
//! # The idea
//!
//! What `empty` and its like allocate holds whatever lay there, and memory that was taken away is none. Of each such
//! storage the writes are followed in list order; a call that reads bytes which no write before it can have reached reads
//! anything. `rewrite/values` sees such a read in what the graph returns; here every call counts, those whose result
//! nobody uses too.
//!
//! # What it does not do
//!
//! A call that writes part of what it reads (`index_put_`, `slice_scatter`) may leave the rest as it was, and is no read,
//! nor is what it left told of later readers. The same holds of copies and clones, of what is sent by one rank alone
//! (`broadcast`) or in pieces (`all_to_all`), and of unknown operators. Memory that `aten.resize_` gives or takes is not
//! followed; what `inductor.resize_storage_bytes_` takes is nobody's until it is written. Where the bytes are not known
//! exactly, only a read before every write is told; of one that nobody uses it is said that it was not decided.

use super::{AnalyzedGraph, Checked, Code, Evidence, Stage};
use crate::analysis::bytes::{ByteSet, Overlap};
use crate::analysis::storages::{Access, StorageIndex, Touch};
use crate::graph::{NodeId, Op, Value};
use crate::ops::{Collective, Fill, Kind, Move};
use std::collections::BTreeMap;

/// How much of what a call reads was written before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Written {
    Perhaps,
    InPart,
    Nowhere,
}

/// The calls that read what nobody may have written, each with what allocated it, or took its memory, in list order.
fn reads(side: &AnalyzedGraph) -> BTreeMap<(NodeId, NodeId), Written> {
    let storages = side.storages();
    let kind = |id: NodeId| side.ops.call(side.graph, id).map(|info| info.kind);
    let mut found = BTreeMap::new();
    for storage in storages.ids() {
        let allocated = storages.storage(storage).by;
        let mut owner = Some(allocated).filter(|&id| kind(id) == Some(Kind::Fill(Fill::Empty)));
        let mut writes: Vec<&Access> = Vec::new();
        for access in storages.accesses_of(storage) {
            let by = access.node;
            if kind(by) == Some(Kind::Resize) {
                // What more memory adds is not followed.
                if side.graph.argument(by, 1, "new_size") == Some(Value::Int(0)) && access.part.certain {
                    writes.clear();
                    owner = Some(by);
                }
                continue;
            }
            let Some(owner) = owner else { continue };
            if access.touch.writes() {
                writes.push(access);
            } else if access.touch == Touch::Read
                && !access.part.bytes.is_empty()
                && reads_all(side, by, storage)
                && let Some(written) = written(&writes, access)
            {
                let known = found.entry((by, owner)).or_insert(written);
                *known = written.max(*known);
            }
        }
    }
    found
}

/// Whether a call needs all that it reads of a storage.
fn reads_all(side: &AnalyzedGraph, id: NodeId, storage: StorageIndex) -> bool {
    if side.graph.node(id).op != Op::Call {
        return false;
    }
    let is_write = |access: &Access| access.touch.writes() && access.part.storage == storage;
    let writes_it = || side.storages().accesses_by(id).iter().any(is_write);
    let info = side.ops.get(side.graph, id);
    let name = info.schema.as_ref().map_or("", |schema| schema.name.as_str());
    let is_zero = |value| matches!(value, Some(Value::Int(0))) || value == Some(Value::Float(0.0));
    match info.kind {
        Kind::Unknown | Kind::MaskedFill => false,
        // They concern the allocator, and what a tensor is.
        Kind::Sync(_) => false,
        Kind::Effect if name.contains("metadata") => false,
        // What was there stays where nothing is put.
        Kind::Move(
            Move::Clone | Move::IndexPut | Move::Scatter | Move::ScatterAdd | Move::Copy | Move::ForeachCopy,
        ) => false,
        Kind::Move(movement) if movement.scatters().is_some() => false,
        // With beta = 0 the first operand is not looked at.
        Kind::Matmul(_) => {
            let lies_there = |value: &Value| match *value {
                Value::Node(node) => side.storages().all_parts(node).any(|part| part.storage == storage),
                _ => false,
            };
            !is_zero(side.graph.kwarg(id, "beta")) || side.graph.args(id).iter().skip(1).any(lies_there)
        }
        Kind::Cumsum => true,
        Kind::Opaque if name.starts_with("_foreach_") => name != "_foreach_zero_",
        Kind::Collective(Collective::AllGather | Collective::ReduceScatter | Collective::AllReduce) => true,
        Kind::Collective(_) => false,
        kind => kind.is_elementwise() || !writes_it(),
    }
}

/// How much of what a call reads was written; nothing where all of it was.
fn written(writes: &[&Access], read: &Access) -> Option<Written> {
    let bytes = read.part.bytes;
    let reaches = |write: &&&Access| write.part.bytes.overlap(bytes) != Overlap::No;
    let reaching: Vec<&Access> = writes.iter().filter(reaches).copied().collect();
    if reaching.iter().any(|write| write.part.certain && write.part.bytes.covers(bytes)) {
        return None;
    }
    let certain = read.part.certain;
    if reaching.is_empty() {
        return Some(if certain { Written::Nowhere } else { Written::Perhaps });
    }
    let covered = |sets: &mut dyn Iterator<Item = ByteSet>| bytes.may_be_covered(sets);
    let exactly = reaching.iter().filter(|write| write.part.certain && write.part.bytes.is_exact());
    match covered(&mut exactly.map(|write| write.part.bytes)) {
        Some(true) => None,
        _ => match covered(&mut reaching.iter().map(|write| write.part.bytes)) {
            Some(false) if certain && bytes.is_exact() => Some(Written::InPart),
            _ => Some(Written::Perhaps),
        },
    }
}

/// No call reads memory that nobody has written, where none did before.
pub(super) fn written_before_read(evidence: &Evidence) -> Checked {
    let (before, after) = (&evidence.before, &evidence.after);
    let new = reads(after);
    if new.is_empty() {
        return Checked::Findings(Vec::new());
    }
    let old = reads(before);
    let live = super::partition::live(after);
    let twin = |id: NodeId| evidence.correspondence.before_of[id.index()];
    let name = |id: NodeId| after.graph.name(id);
    let (mut findings, mut doubt) = (Vec::new(), None);
    for ((reader, owner), written) in new {
        let was = twin(reader)
            .and_then(|reader| old.range((reader, NodeId(0))..=(reader, NodeId(u32::MAX))).next());
        // What is live and not certain the comparison of values decides.
        if was.is_some() || (written == Written::Perhaps && live[reader.index()]) {
            continue;
        }
        if written == Written::Perhaps || (twin(reader).is_none() && !old.is_empty()) {
            let why = format!("{} may read memory of {} that nobody has written", name(reader), name(owner));
            doubt.get_or_insert(Code::MayBeUnwritten.because(why));
            continue;
        }
        let title = format!("{} reads memory that nobody has written", name(reader));
        let observed = match written {
            Written::Nowhere => "nothing is written to what it reads before",
            _ => "part of what it reads is not written before",
        };
        findings.push(
            evidence
                .finding("rewrite/unwritten", Stage::After, title)
                .after_nodes(evidence, [reader, owner])
                .fact(format!("{} allocates the memory and leaves in it what lay there", name(owner)))
                .expected(format!("all that {} reads is written before it", name(reader)))
                .observed(observed),
        );
    }
    Checked::found(findings, doubt)
}
