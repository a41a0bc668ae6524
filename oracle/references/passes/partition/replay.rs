//! The replay partitioner: what a first partition saved is tagged, and the second saves the same.
//!
//! There is no cut and no cost: the tags decide, node by node, and what is needed and untagged is computed
//! again from the inputs. What cannot be computed again is saved. Source:
//! `autoparallel.compile._ReplaySavesPartitioner` (`_SaveAllPartitioner` in AutoParallel PR 485).

use super::classes::Classes;
use super::joint::{Joint, Role, Sort};
use super::marks::Recompute;
use super::modules::Saved;
use super::strategy::Strategy;
use crate::graph::{NodeId, Value};

/// What becomes of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// It is computed again where it is needed.
    Recompute,
    /// It is handed over as a symbolic number.
    Symbol,
    /// It is handed over as an object.
    Object,
    /// It is saved.
    Save,
    /// It has several results, of which these are saved.
    Results(Vec<NodeId>),
}

/// The reference's decision, by the first rule that matches.
pub fn decide(joint: &Joint, id: NodeId) -> Decision {
    let tags = joint.tags(id);
    if tags.recompute == Some(Recompute::MustRecompute) {
        Decision::Recompute
    } else if joint.symbolic(id) {
        if joint.asserted_only(id) { Decision::Recompute } else { Decision::Symbol }
    } else if joint.sort(id) == Sort::Tuple || joint.read_by_index(id) {
        Decision::Results(results(joint, id))
    } else if joint.opaque(id) {
        Decision::Object
    } else if matches!(joint.role(id), Role::Primal | Role::ForwardSeed)
        || tags.must_save()
        || (joint.marks.custom(id).must_save && !listed_by_parent(joint, id))
    {
        Decision::Save
    } else {
        Decision::Recompute
    }
}

/// Whether `id` takes a result of a node that is tagged: then that node's list decides alone. The tag of the
/// getitem is a copy, made by the retrace.
fn listed_by_parent(joint: &Joint, id: NodeId) -> bool {
    match joint.graph.arg(id, 0) {
        Some(Value::Node(parent)) => joint.target(id).getitem && joint.marks.custom(parent).must_save,
        _ => false,
    }
}

/// The results of `id` that are saved: all of them under `MUST_SAVE`, else those whose index is listed.
fn results(joint: &Joint, id: NodeId) -> Vec<NodeId> {
    let custom = joint.marks.custom(id);
    let all = joint.tags(id).must_save() || (custom.must_save && custom.indices.is_none());
    let listed = |getitem: NodeId| {
        let indices = custom.indices.as_deref().unwrap_or_default();
        custom.must_save && joint.index(getitem).is_some_and(|index| indices.contains(&index))
    };
    let again = |getitem: NodeId| joint.tags(getitem).recompute == Some(Recompute::MustRecompute);
    joint.getitems(id).filter(|&getitem| (all || listed(getitem)) && !again(getitem)).collect()
}

/// What forward hands over, before what backward does not read is dropped.
pub fn saved(joint: &Joint, classes: &Classes, strategy: &dyn Strategy) -> Saved {
    let mut saved = Saved::default();
    for &id in classes.in_order.iter().chain(&classes.unclaimed) {
        match strategy.replayed(joint, id) {
            Decision::Recompute => {}
            Decision::Symbol => saved.symbols.push(id),
            Decision::Object => saved.objects.push(id),
            Decision::Save => saved.values.push(id),
            Decision::Results(results) => {
                for id in results {
                    match () {
                        () if joint.symbolic(id) => saved.symbols.push(id),
                        () if joint.opaque(id) => saved.objects.push(id),
                        () if joint.sort(id) != Sort::Tuple => saved.values.push(id),
                        () => {}
                    }
                }
            }
        }
    }
    saved.deduplicate();
    saved
}
