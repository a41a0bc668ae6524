//! The order of a claim: applied to its graph, and held against its dependences.

use super::evidence::{Found, MemoryEvidence, not_claimed};
use crate::analysis::topological::violations;
use crate::analysis::{Collectives, Dependences, Edges, Origin};
use crate::graph::{Editor, Graph, NodeId, Op};
use crate::memory::replay::Facts;
use crate::rules::{Checked, Code};
use rustc_hash::FxHashMap;

/// Whatever depends on something else still comes after it. Values and ordering edges are looked at in the claimed order
/// (`memory/alloc-before-use`); the rest follows from the order of the list, where that is one.
pub(super) fn dependences_kept(evidence: &MemoryEvidence) -> Checked {
    if evidence.claim.order.is_none() {
        return not_claimed("an order");
    }
    let (given, edges) = (evidence.given, Edges::new(evidence.given));
    if !violations(given, &edges).is_empty() {
        return Checked::NotChecked("the list itself is in no order that can run".into());
    }
    let Facts { ops, storages, .. } = &Facts::new(given);
    let collectives = Collectives::new(given, ops);
    let dependences = Dependences::new(given, ops, &edges, storages, &collectives, Default::default());
    let mut place: FxHashMap<&str, NodeId> = FxHashMap::default();
    place.extend(evidence.graph.ids().map(|id| (evidence.graph.name(id), id)));
    let mut found = Found::default();
    for id in given.ids() {
        for (first, origin) in dependences.before(id) {
            let [a, b] = [first, id].map(|id| given.name(id));
            let [Some(&first_place), Some(&own)] = [a, b].map(|name| place.get(name)) else { continue };
            if matches!(origin, Origin::Data | Origin::Ordering) || first_place < own {
                continue;
            }
            let reason = origin.describe(given, first, id);
            if !origin.certain() {
                let why =
                    || Code::UncertainDependence.because(format!("{reason}; the claim turns them round"));
                found.doubt.get_or_insert_with(why);
                continue;
            }
            let title = format!("{b} runs before {a} in the claimed order");
            let mut finding = evidence.finding("memory/dependences-kept", title, [own, first_place]);
            finding.facts = vec![reason];
            finding.expected = Some(format!("{a} stays before {b}"));
            finding.observed =
                Some(format!("in the claimed order {b} is at #{} and {a} at #{}", own.0, first_place.0));
            found.add(true, finding);
        }
    }
    found.checked()
}

/// The graph with its calls in another order; inputs and constants stay first, the output last.
pub fn reordered(graph: &Graph, order: &[String]) -> Result<Graph, String> {
    let calls: FxHashMap<&str, NodeId> =
        graph.ids().filter(|&id| graph.node(id).op == Op::Call).map(|id| (graph.name(id), id)).collect();
    let mut seen = vec![false; graph.len()];
    let mut editor = Editor::new(graph);
    let output = graph.output();
    for name in order {
        let &id =
            calls.get(name.as_str()).ok_or_else(|| format!("the order names {name}, which is no call"))?;
        if std::mem::replace(&mut seen[id.index()], true) {
            return Err(format!("the order names {name} twice"));
        }
        editor.move_before(output, id);
    }
    if order.len() != calls.len() {
        return Err(format!("the order has {} calls, the graph {}", order.len(), calls.len()));
    }
    Ok(editor.finish())
}
