//! Which version of memory is read.
//!
//! A saved view is no snapshot, and a recomputed node reads memory as it is in backward. For each read of memory that
//! anybody writes, the last write before it is looked up in the joint graph and in the composed one: they have to be
//! the same write.

use super::super::Checked;
use super::compose::Origin;
use super::evidence::PartitionEvidence;
use super::terms::Versions;
use crate::analysis::bytes::Overlap;
use crate::analysis::storages::Part;
use crate::graph::{NodeId, Op};
use crate::ops::Kind;
use crate::rules::AnalyzedGraph;

/// A read of another version than in the joint graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Misread {
    /// Who reads.
    pub(super) reader: String,
    /// The reader in the joint graph.
    pub(super) twin: NodeId,
    /// Where the reader runs.
    pub(super) origin: Origin,
    /// Whose memory it is.
    pub(super) memory: String,
    /// Who wrote it last before the read, in the joint graph.
    pub(super) expected: Option<String>,
    /// Who wrote it last before the read, in the parts.
    pub(super) found: Option<String>,
}

impl Misread {
    /// The nodes concerned.
    pub(super) fn names(&self) -> Vec<&str> {
        let writer = self.found.as_deref().or(self.expected.as_deref());
        std::iter::once(self.reader.as_str()).chain(writer).chain([self.memory.as_str()]).collect()
    }

    /// What the joint graph does.
    pub(super) fn describe_joint(&self) -> String {
        self.describe("in the joint graph", &self.expected)
    }

    /// What the parts do.
    pub(super) fn describe_composed(&self, part: &str) -> String {
        self.describe(&format!("in {part}"), &self.found)
    }

    fn describe(&self, place: &str, writer: &Option<String>) -> String {
        let Misread { reader, memory, .. } = self;
        match writer {
            Some(writer) => format!("{place}, {reader} reads {memory} as {writer} left it"),
            None => format!("{place}, {reader} reads {memory} before anybody wrote to it"),
        }
    }
}

/// All reads of another version, each reader once.
pub(super) fn misreads(evidence: &PartitionEvidence) -> Vec<Misread> {
    let (Ok(composition), Some(composed)) = (evidence.composition.as_ref(), evidence.composed.as_ref())
    else {
        return Vec::new();
    };
    let joint = &evidence.joint;
    let (before, after) = (Versions::new(joint), Versions::new(composed));
    let mut found = Vec::new();
    if !before.any() && !after.any() {
        return found;
    }
    for id in composed.graph.ids() {
        let origin = composition.origin[id.index()];
        let Some(twin) = composition.twin[id.index()] else { continue };
        // The output reads at the very end, on both sides.
        if composed.graph.node(id).op != Op::Call || joint.graph.target(twin) != composed.graph.target(id) {
            continue;
        }
        let old = joint.storages().accesses_by(twin);
        let new = composed.storages().accesses_by(id);
        if old.len() != new.len() {
            continue;
        }
        for (a, b) in old.iter().zip(new) {
            let expected = before.last_write(a.part.storage, a.part.bytes, twin);
            let last = after.last_write(b.part.storage, b.part.bytes, id);
            let twin_of = |writer: NodeId| composition.twin[writer.index()];
            if expected == last.and_then(twin_of) && expected.is_some() == last.is_some() {
                continue;
            }
            // An operator of which nothing is known may have written nothing.
            let is_unknown = |side: &AnalyzedGraph, id: Option<NodeId>| {
                let info = id.and_then(|id| side.ops.call(side.graph, id));
                info.is_some_and(|info| info.kind == Kind::Unknown)
            };
            if is_unknown(joint, expected) || is_unknown(composed, last) {
                continue;
            }
            let memory = composed.storages().storage(b.part.storage).by;
            // A buffer that a part makes for itself has no version in the joint graph: values say what it holds.
            let is_new = composition.twin[memory.index()]
                .is_none_or(|twin| joint.graph.target(twin) != composed.graph.target(memory));
            // Nor has other memory than the joint graph's: what an operator leaves in place of its argument is read
            // through it.
            let made = joint.storages().storage(a.part.storage).by;
            let is_other = composition.twin[memory.index()] != Some(made);
            if (is_new || is_other) && !composed.storages().storage(b.part.storage).external {
                continue;
            }
            let name = |side: &AnalyzedGraph, id: NodeId| side.graph.name(id).to_string();
            found.push(Misread {
                reader: joint.graph.name(twin).to_string(),
                twin,
                origin,
                memory: composition.twin[memory.index()]
                    .map_or_else(|| name(composed, memory), |twin| name(joint, twin)),
                expected: expected.map(|writer| name(joint, writer)),
                found: last.map(|writer| {
                    twin_of(writer).map_or_else(|| name(composed, writer), |twin| name(joint, twin))
                }),
            });
            break;
        }
    }
    found
}

/// No recomputation reads what was written since.
pub(super) fn no_recompute_after_mutation(evidence: &PartitionEvidence) -> Checked {
    let of = |misread: &&Misread| {
        misread.origin == Origin::Backward && !evidence.needs_tangent[misread.twin.index()]
    };
    let all = misreads(evidence);
    let told = all.iter().filter(of).map(|misread| {
        evidence
            .finding(
                "partition/no-recompute-after-mutation",
                format!("{} is recomputed from memory that was written since", misread.reader),
            )
            .nodes(evidence, misread.names())
            .contrast(misread.describe_joint(), misread.describe_composed("backward"))
    });
    Checked::Findings(told.collect())
}

/// A saved alias of memory that forward writes shows what backward is to see.
pub(super) fn saved_alias_is_current(evidence: &PartitionEvidence) -> Checked {
    const RULE: &str = "partition/saved-alias-is-current";
    let of = |misread: &&Misread| {
        misread.origin == Origin::Backward && evidence.needs_tangent[misread.twin.index()]
    };
    let all = misreads(evidence);
    let told = all.iter().filter(of).map(|misread| {
        evidence
            .finding(RULE, format!("{} reads another version of {}", misread.reader, misread.memory))
            .nodes(evidence, misread.names())
            .contrast(misread.describe_joint(), misread.describe_composed("backward"))
    });
    let mut findings: Vec<_> = told.collect();
    let (joint, storages) = (evidence.joint.graph, evidence.joint.storages());
    let written = joint.ids().filter(|id| evidence.tags[id.index()].written_by_runtime);
    let written: Vec<&Part> = written.flat_map(|id| storages.all_parts(id)).collect();
    for id in evidence.saved.iter().filter_map(|saved| saved.joint) {
        let is_written = |part: &Part| {
            let meets =
                |of: &&Part| of.storage == part.storage && of.bytes.overlap(part.bytes) == Overlap::Yes;
            part.certain && written.iter().any(meets)
        };
        if !storages.all_parts(id).any(is_written) {
            continue;
        }
        let name = joint.name(id);
        findings.push(
            evidence
                .finding(RULE, format!("{name} is saved, and the runtime writes it after forward"))
                .nodes(evidence, [name])
                .contrast("backward is to see it as forward did", "it sees what was written since"),
        );
    }
    Checked::Findings(findings)
}
