//! Both sides from the values that are to be saved: what backward does not read is dropped, symbols are bound, and
//! the signatures are put in the order that the runtime slices by.
//!
//! - forward takes primals and forward seeds, and returns its outputs, the saved tensors (those whose version
//!   counter is checked first), objects, and symbolic sizes last;
//! - backward takes symbolic sizes first, then tensors, objects, tangents, backward seeds; it returns the backward
//!   outputs.
//!
//! Source: `torch._functorch.partitioners._extract_fwd_bwd_modules` of PyTorch 2.15.

use super::error::PartitionError;
use super::extract::{Piece, extract};
use super::joint::{Joint, Role, Side, Sort};
use super::marks::Recompute;
use super::strategy::Strategy;
use crate::graph::{NodeId, Op, Out, Value};
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// What is handed from forward to backward, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Saved {
    /// Tensors.
    pub values: Vec<NodeId>,
    /// Symbolic numbers.
    pub symbols: Vec<NodeId>,
    /// Objects.
    pub objects: Vec<NodeId>,
}

impl Saved {
    /// Sorts a list of values into tensors, symbolic numbers and objects.
    pub fn sorted(joint: &Joint, list: &[NodeId]) -> Saved {
        let mut saved = Saved::default();
        for &id in list {
            if joint.symbolic(id) {
                if !joint.asserted_only(id) {
                    saved.symbols.push(id);
                }
            } else if joint.opaque(id) {
                saved.objects.push(id);
            } else {
                saved.values.push(id);
            }
        }
        saved
    }

    /// Puts the waits for what is still in flight in its place, unless one of them must be computed again.
    pub fn wait(&mut self, joint: &Joint) {
        let again = |wait: &NodeId| joint.tags(*wait).recompute == Some(Recompute::MustRecompute);
        let landed = |&id: &NodeId| match joint.waits(id) {
            waits if waits.is_empty() || waits.iter().any(again) => vec![id],
            waits => waits.to_vec(),
        };
        self.values = self.values.iter().flat_map(landed).collect();
    }

    /// Keeps the first occurrence of each.
    pub fn deduplicate(&mut self) {
        for list in [&mut self.values, &mut self.symbols, &mut self.objects] {
            let mut seen = FxHashSet::default();
            list.retain(|id| seen.insert(*id));
        }
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.values.iter().chain(&self.objects).chain(&self.symbols).copied()
    }

    fn retain(&mut self, keep: impl Fn(NodeId) -> bool) {
        for list in [&mut self.values, &mut self.symbols, &mut self.objects] {
            list.retain(|id| keep(*id));
        }
    }
}

/// Both sides.
#[derive(Clone, PartialEq, Debug)]
pub struct Modules {
    /// Forward.
    pub forward: Piece,
    /// Backward.
    pub backward: Piece,
    /// What is handed over.
    pub saved: Saved,
}

/// Cuts `joint` at the saved values.
pub fn extract_modules(
    joint: &Joint,
    strategy: &dyn Strategy,
    mut saved: Saved,
) -> Result<Modules, PartitionError> {
    let tangents = joint.with_role(Role::Tangent);
    let seeds = joint.with_role(Role::BackwardSeed);
    let lists = |order: [&[NodeId]; 3]| -> Vec<NodeId> {
        order.iter().copied().chain([&tangents[..], &seeds[..]]).flatten().copied().collect()
    };
    let inputs = lists([&saved.symbols, &saved.objects, &saved.values]);
    let trial = extract(joint, strategy, inputs, &joint.backward_outputs, Side::Backward)?;
    drop_unread(joint, strategy, &trial, &mut saved);
    bind_symbols(joint, strategy, &mut saved, &tangents);
    let scripts =
        saved.values.iter().filter(|&&id| joint.sort(id) == Sort::Script).copied().collect::<Vec<_>>();
    saved.values.retain(|&id| joint.sort(id) != Sort::Script);
    saved.values.sort_by_key(|&id| joint.tags(id).unchecked);
    saved.objects = scripts.into_iter().chain(std::mem::take(&mut saved.objects)).collect();

    let mut inputs = joint.with_role(Role::Primal);
    inputs.extend(joint.with_role(Role::ForwardSeed));
    let mut outputs = joint.forward_outputs.clone();
    outputs.extend(saved.all().map(Value::Node));
    let forward = extract(joint, strategy, inputs, &outputs, Side::Forward)?;
    let inputs = lists([&saved.symbols, &saved.values, &saved.objects]);
    let backward = extract(joint, strategy, inputs, &joint.backward_outputs, Side::Backward)?;
    Ok(Modules { forward, backward, saved })
}

/// Drops the values that the trial backward does not read, or only waits for without reading the wait.
fn drop_unread(joint: &Joint, strategy: &dyn Strategy, trial: &Piece, saved: &mut Saved) {
    let computed = trial.computed(joint);
    let mut returned = FixedBitSet::with_capacity(joint.graph.len());
    super::joint::nodes_of(&trial.outputs).for_each(|id| returned.insert(id.index()));
    let has_users = |id: NodeId| {
        returned.contains(id.index()) || joint.users(id).iter().any(|user| computed.contains(user.index()))
    };
    saved.retain(|id| {
        let dead_waits = || {
            let mut users = joint.users(id).iter().filter(|user| computed.contains(user.index()));
            !returned.contains(id.index()) && users.all(|&user| joint.target(user).wait && !has_users(user))
        };
        !strategy.drops_unread(joint, id) || (has_users(id) && !dead_waits())
    });
}

/// Passes every symbol that the sizes of backward's inputs speak of, whether or not a node reads it: bindings
/// first, then what is derived from them.
fn bind_symbols(joint: &Joint, strategy: &dyn Strategy, saved: &mut Saved, tangents: &[NodeId]) {
    if !joint.graph.has_expressions() {
        return;
    }
    let mut binders: BTreeMap<&str, NodeId> = BTreeMap::new();
    for id in joint.ids() {
        if let Some(symbol) = strategy.bound_symbol(joint, id) {
            binders.entry(symbol).or_insert(id);
        }
    }
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    let (mut bindings, mut derived) = (Vec::new(), Vec::new());
    for &id in &saved.symbols {
        match strategy.bound_symbol(joint, id) {
            Some(symbol) => {
                seen.insert(symbol);
                bindings.push(id);
            }
            None => derived.push(id),
        }
    }
    for &id in derived.iter().chain(&saved.values).chain(tangents) {
        let mut symbols = free_symbols(joint, id);
        symbols.sort_unstable();
        symbols.dedup();
        for symbol in symbols {
            if seen.insert(symbol) {
                bindings.extend(binders.get(symbol).copied());
            }
        }
    }
    bindings.extend(derived);
    saved.symbols = bindings;
}

/// The symbol that `id` gives its value to: an input that is exactly a symbol, or the operator that makes an
/// unbacked one. A size that equals a symbol does not bind it.
pub fn bound_symbol(joint: &Joint, id: NodeId) -> Option<&str> {
    let graph = &joint.graph;
    let (Out::SymInt(expr) | Out::SymBool(expr)) = graph.node(id).out else { return None };
    let text = graph.expr(expr).text;
    let symbol = joint.symbol(text)?;
    let binds = match graph.node(id).op {
        Op::Placeholder => true,
        Op::Call => {
            symbol.unbacked && joint.ops.call(graph, id).is_some_and(|op| op.kind == crate::ops::Kind::Item)
        }
        _ => false,
    };
    binds.then(|| graph.text(text))
}

/// The symbols that the value of `id` speaks of: of a tensor its sizes and strides.
fn free_symbols(joint: &Joint, id: NodeId) -> Vec<&str> {
    let graph = &joint.graph;
    let mut symbols = Vec::new();
    for expr in graph.exprs_of(graph.node(id).out) {
        let text = graph.text(graph.expr(expr).text);
        for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
            if graph.strings().find(word).is_some_and(|word| joint.symbol(word).is_some()) {
                symbols.push(word);
            }
        }
    }
    symbols
}
