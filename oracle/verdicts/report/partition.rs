//! What a partition hands from forward to backward: names, bytes, distinct storages.

use crate::analysis::{Collectives, Edges, StorageIndex, Storages};
use crate::case::PassConfig;
use crate::graph::Graph;
use crate::ops::Ops;
use crate::rules::partition::{PartitionConfig, PartitionEvidence, ValueClass, compose};
use std::fmt::Write;

/// A saved value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SavedValue {
    /// Its name.
    pub name: String,
    /// What it is, in a word.
    pub class: &'static str,
    /// Its bytes; `None` where it is no tensor, or its size is not known.
    pub bytes: Option<i64>,
    /// The storage that it shows, in the forward graph.
    storage: Option<StorageIndex>,
}

/// Everything that is saved, in the order of the backward graph's inputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SavedSet(pub Vec<SavedValue>);

/// What the forward graph hands to the backward graph.
///
/// # Errors
/// Options that make no sense, or a joint graph that does not say how many of its outputs are forward's.
pub fn saved(
    joint: &Graph,
    forward: &Graph,
    backward: &Graph,
    pass: &PassConfig,
) -> Result<SavedSet, String> {
    let config = PartitionConfig::from_pass(pass)?.or_from_file(joint);
    let outputs = config.forward_outputs.ok_or(
        "the joint graph does not say how many of its outputs are forward's; --set num_fwd_outputs=N does",
    )?;
    let composition = compose(joint, forward, backward, outputs);
    let evidence = PartitionEvidence::new(joint, forward, backward, &composition, config);
    let ops = Ops::of(forward);
    let (edges, collectives) = (Edges::new(forward), Collectives::new(forward, &ops));
    let storages = Storages::new(forward, &ops, &edges, &collectives, Default::default());
    let value = |saved: &crate::rules::partition::Saved| SavedValue {
        name: saved.name.clone(),
        class: match saved.class {
            ValueClass::Tensor => "tensor",
            ValueClass::Symbol => "symbol",
            ValueClass::Opaque => "object",
            ValueClass::Generator => "generator state",
            ValueClass::Tuple => "tuple",
            ValueClass::Nothing => "nothing",
        },
        bytes: forward.tensor_of(saved.forward).and_then(|tensor| forward.bytes(tensor)),
        storage: storages.all_parts(saved.forward).next().map(|part| part.storage),
    };
    Ok(SavedSet(evidence.saved.iter().map(value).collect()))
}

impl SavedSet {
    /// The sum of the bytes that are known.
    pub fn bytes(&self) -> i64 {
        self.0.iter().filter_map(|value| value.bytes).fold(0, i64::saturating_add)
    }

    /// How many storages the saved tensors show.
    pub fn storages(&self) -> usize {
        let mut all: Vec<StorageIndex> = self.0.iter().filter_map(|value| value.storage).collect();
        all.sort_unstable();
        all.dedup();
        all.len()
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} values saved, {} bytes in {} storages\n",
            self.0.len(),
            self.bytes(),
            self.storages()
        );
        for value in &self.0 {
            let bytes = value.bytes.map_or("?".to_string(), |bytes| bytes.to_string());
            let _ = writeln!(text, "  {bytes:>16}  {} ({})", value.name, value.class);
        }
        text
    }

    /// For machines.
    pub fn json(&self) -> serde_json::Value {
        let values: Vec<serde_json::Value> = self
            .0
            .iter()
            .map(
                |value| serde_json::json!({ "name": value.name, "class": value.class, "bytes": value.bytes }),
            )
            .collect();
        serde_json::json!({
            "saved_version": "graph-oracle-saved/1",
            "saved": values,
            "bytes": self.bytes(),
            "storages": self.storages(),
        })
    }
}
