//! Partitioning of a joint graph into forward and backward: the partitioners of PyTorch 2.15 and AutoParallel.
//!
//! # The idea
//!
//! A joint graph holds a forward computation, then the backward one that takes tangents. A partitioner decides
//! which values forward saves; the rest follows: both sides are cut out of the joint graph ([`extract`]), what
//! backward does not get it computes again, and signatures and order are put right ([`modules`], [`order`],
//! [`random`]). Three partitioners decide: by position in the list ([`default`]), by a minimum cut
//! ([`min_cut`]), or as a first partition was tagged ([`replay`]). Around them stand the passes that set tags:
//! [`fsdp`], [`activation_checkpointing`], [`tagging`], [`retrace`].
//!
//! The steps are PyTorch's, node for node, except where its result would not be right:
//!
//! - a value that forward overwrites after it was read is not saved ([`hazards`]);
//! - nothing is saved while it is in flight: its wait is, or both are repeated ([`recompute_tags`]);
//! - backward reads memory before it overwrites it, and a replay saves what it could compute only from memory that
//!   forward overwrites ([`order`], [`hazards`]);
//! - what is held keeps within the memory budget ([`within_budget`]);
//! - a random draw that nobody tagged, or an effect, is not computed again, whatever the budget or the tags;
//! - backward keeps every effect that stands before the first reader of a tangent ([`order`]);
//! - in a replay, the tags of merged copies are joined ([`common_subexpressions`]), and the index list of a
//!   node with several results decides alone which are saved ([`replay`]);
//! - contradictions are errors that list the constraints involved ([`error`]).
//!
//! # What it does not do
//!
//! Activation offloading and quantization, synchronising decisions across ranks, BackwardState, bodies of
//! higher-order operators, `control_deps`.

pub mod activation_checkpointing;
pub mod build;
pub mod classes;
pub mod common_subexpressions;
pub mod dead_code;
pub mod default;
pub mod error;
pub mod extract;
pub mod fsdp;
pub mod hazards;
pub mod joint;
pub mod knapsack;
pub mod marks;
pub mod max_flow;
pub mod min_cut;
pub mod modules;
pub mod operators;
pub mod order;
pub mod random;
pub mod recompute_tags;
pub mod replay;
pub mod result;
pub mod retrace;
pub mod storage;
pub mod strategy;
pub mod tagging;
pub mod targets;
pub mod two_stages;
pub mod within_budget;

pub use crate::config::partition::{Bans, Method, PartitionConfig, Runtime, Solver, Stage, StaticInputs};
pub use error::{Constraint, PartitionError, Problem};
pub use joint::Joint;
pub use result::{Certificate, Partition, Proof, SavedValue};
pub use strategy::{Reference, Strategy};

use crate::graph::{Graph, NodeId, Value};
use classes::Classes;
use error::Origin;
use extract::Piece;
use hazards::Hazards;
use modules::{Modules, Saved, extract_modules};

/// Cuts a joint graph by the reference. The graph is not changed.
pub fn run(joint: &Graph, config: &PartitionConfig) -> Result<Partition, PartitionError> {
    run_with(joint, config, &Reference)
}

/// Cuts a joint graph by another strategy.
pub fn run_with(
    graph: &Graph,
    config: &PartitionConfig,
    strategy: &dyn Strategy,
) -> Result<Partition, PartitionError> {
    let checkpointed = match config.checkpoint {
        Some(stage) => Some(activation_checkpointing::checkpoint_with(graph, stage, strategy)?),
        None => None,
    };
    let graph = checkpointed.as_ref().unwrap_or(graph);
    let partition = cut(graph, config, strategy)?;
    let limits = partition.method == Method::MinCut && 0.0 < config.budget && config.budget < 1.0;
    match limits && strategy.keeps_budget() {
        true => within_budget::within_budget(graph, config, partition, |config| cut(graph, config, strategy)),
        false => Ok(partition),
    }
}

/// Cuts a joint graph in the steps of the method.
fn cut(
    graph: &Graph,
    config: &PartitionConfig,
    strategy: &dyn Strategy,
) -> Result<Partition, PartitionError> {
    let mut joint = Joint::new(graph.clone(), config)?;
    result::needs_tangents(&joint, config)?;
    let checkpoints = |joint: &Joint| joint.ids().any(|id| joint.tags(id).recomputes());
    let mut method = config.method;
    if method == Method::Default && checkpoints(&joint) && !default::is_functional(&joint) {
        // The default partitioner does not checkpoint graphs that write; PyTorch hands them on.
        method = Method::MinCut;
    }
    let mut classes = None;
    if method != Method::Default {
        if let Some(graph) = dead_code::eliminate(&joint) {
            joint = Joint::new(graph, config)?;
        }
        if config.cse
            && let Some(graph) = merged(&joint, method, strategy)
        {
            joint = Joint::new(graph, config)?;
        }
        let tagged = checkpoints(&joint);
        prepare(&mut joint, config, tagged, false)?;
        let found = Classes::of(&joint, config, strategy)?;
        match found.backward.is_clear() {
            true => method = Method::Default,
            false => classes = Some(found),
        }
    }
    let classes = match classes {
        Some(classes) => classes,
        None => {
            let tagged = checkpoints(&joint);
            prepare(&mut joint, config, tagged, true)?;
            Classes::of(&joint, config, strategy)?
        }
    };
    let mut run = Run { graph, joint, config, strategy, method, classes };
    let hazards = Hazards::of(&run.joint, strategy);
    run.cut(hazards)
}

/// Cleans the tags up, where there are any, and saves by force.
fn prepare(
    joint: &mut Joint,
    config: &PartitionConfig,
    tagged: bool,
    is_default: bool,
) -> Result<(), PartitionError> {
    if tagged {
        recompute_tags::clean_up(joint, is_default);
    }
    recompute_tags::force_saves(joint, config)
}

/// The joint graph with equal nodes merged; `None` if there are none.
fn merged(joint: &Joint, method: Method, strategy: &dyn Strategy) -> Option<Graph> {
    let mut needed = fixedbitset::FixedBitSet::with_capacity(joint.graph.len());
    if strategy.separates_backward(method) {
        joint::nodes_of(&joint.backward_outputs).for_each(|id| needed.insert(id.index()));
        for id in joint.ids().rev().filter(|&id| joint.role(id) != joint::Role::Output) {
            if needed.contains(id.index()) {
                joint.edges.inputs(id).iter().for_each(|input| needed.insert(input.index()));
            }
        }
    }
    let joins = strategy.joins_tags(method);
    common_subexpressions::merge(joint, strategy, |id| needed.contains(id.index()), joins)
}

/// One run, once the joint graph is prepared.
struct Run<'a> {
    graph: &'a Graph,
    joint: Joint,
    config: &'a PartitionConfig,
    strategy: &'a dyn Strategy,
    method: Method,
    classes: Classes,
}

impl Run<'_> {
    /// Decides what is saved, and cuts. Where both sides would do what can be done only once, decides again.
    fn cut(&mut self, mut hazards: Hazards) -> Result<Partition, PartitionError> {
        let mut extra: Vec<NodeId> = Vec::new();
        let tagged = self.joint.ids().any(|id| self.joint.tags(id).recomputes());
        loop {
            let (mut saved, proof) = self.decide(&hazards, tagged)?;
            let more = Saved::sorted(&self.joint, &extra);
            saved.values.extend(more.values);
            saved.objects.extend(more.objects);
            if self.strategy.waits_before_saving() {
                saved.wait(&self.joint);
            }
            saved.deduplicate();
            if self.method == Method::Default {
                saved.values.sort_unstable();
            }
            if self.method != Method::MinCut {
                self.save_what_is_missing(&mut saved);
            }
            let saved = self.strategy.adjust(&self.joint, &self.classes, saved);
            let mut modules = extract_modules(&self.joint, self.strategy, saved)?;
            if self.strategy.waits_before_saving() && self.lands(&modules) {
                continue;
            }
            let mut repeated = self.repeated(&modules, &hazards);
            repeated.extend(self.misread(&modules, &hazards));
            let known = extra.len();
            for id in repeated {
                match self.method {
                    Method::MinCut => {
                        if !hazards.is_forbidden(id) {
                            hazards.forbid(id);
                            extra.push(id);
                        }
                    }
                    _ if self.joint.sort(id) == joint::Sort::Tuple => {
                        recompute_tags::results(&self.joint, id, &mut extra);
                    }
                    _ => extra.push(id),
                }
            }
            extra.sort_unstable();
            extra.dedup();
            if extra.len() == known {
                self.check(&modules, &hazards)?;
                self.drop_dead_readers(&mut modules.backward, &hazards);
                return self.finish(modules, tagged, proof);
            }
            if self.method == Method::MinCut {
                // The cut chooses what is saved instead.
                extra.clear();
            }
        }
    }

    fn decide(&self, hazards: &Hazards, tagged: bool) -> Result<(Saved, Option<Proof>), PartitionError> {
        let joint = &self.joint;
        match self.method {
            Method::Default => Ok((default::saved(joint, tagged)?, None)),
            Method::Replay => Ok((replay::saved(joint, &self.classes, self.strategy), None)),
            Method::MinCut => {
                let cx = min_cut::Context::new(joint, self.config, &self.classes, self.strategy, hazards);
                let budget = min_cut::budget::budget(&cx)?;
                let choice = min_cut::budget::choose(&cx, budget)?;
                let mut list = choice.saved;
                list.extend(joint.ids().filter(|&id| self.is_read_after(hazards, id)));
                list.sort_unstable();
                Ok((Saved::sorted(joint, &list), choice.proof))
            }
        }
    }

    /// Whether forward overwrites `id`, and somebody outside forward may read it as it is afterwards.
    fn is_read_after(&self, hazards: &Hazards, id: NodeId) -> bool {
        let joint = &self.joint;
        let returned = || self.classes.backward.contains(id.index());
        let late = |&user: &NodeId| {
            joint.role(user) == joint::Role::Call
                && !hazards.reads_before(id, user)
                && !self.strategy.must_be_forward(joint, user)
        };
        hazards.overwritten(id) && (returned() || joint.users(id).iter().any(late))
    }

    /// What backward computes for its outputs and effects. A wait that nobody reads is dropped in the end.
    fn read_in_backward(&self, modules: &Modules) -> fixedbitset::FixedBitSet {
        let mut backward = modules.backward.clone();
        self.drop_dead(&mut backward);
        backward.computed(&self.joint)
    }

    /// Drops what nobody reads, waits among it.
    fn drop_dead(&self, piece: &mut Piece) {
        let joint = &self.joint;
        piece.eliminate(joint, |id| joint.survives(id) && !joint.target(id).wait);
    }

    /// Drops what nobody reads, if some of it reads memory that forward overwrites. (PyTorch keeps what only a dead
    /// collective read.)
    fn drop_dead_readers(&self, backward: &mut Piece, hazards: &Hazards) {
        let joint = &self.joint;
        let misreads =
            |id: NodeId| joint.edges.inputs(id).iter().any(|&input| hazards.reads_before(input, id));
        let computed = backward.computed(joint);
        if joint.ids().any(|id| computed.contains(id.index()) && misreads(id)) {
            self.drop_dead(backward);
        }
    }

    /// What backward has of forward: what is saved, and constants, which both graphs hold.
    fn handed<'m>(&'m self, modules: &'m Modules) -> impl Iterator<Item = NodeId> + 'm {
        let is_constant = |&id: &NodeId| self.joint.role(id) == joint::Role::Constant;
        modules.saved.values.iter().copied().chain(self.joint.ids().filter(is_constant))
    }

    /// Values that backward would compute from memory that forward overwrites meanwhile, and that can be saved.
    fn misread(&self, modules: &Modules, hazards: &Hazards) -> Vec<NodeId> {
        let joint = &self.joint;
        let backward = self.read_in_backward(modules);
        let again = |id: NodeId| match self.method {
            Method::Replay => joint.tags(id).recompute == Some(marks::Recompute::MustRecompute),
            _ => joint.tags(id).recomputes(),
        };
        let mut found = Vec::new();
        for id in self.handed(modules) {
            found.extend(joint.users(id).iter().copied().filter(|&user| {
                backward.contains(user.index())
                    && hazards.reads_before(id, user)
                    && !self.classes.tangents_closure.contains(user.index())
                    && !again(user)
            }));
        }
        found
    }

    /// Changes the tags of what would be saved in flight. Gives whether it did.
    fn lands(&mut self, modules: &Modules) -> bool {
        let mut changed = false;
        for &id in &modules.saved.values {
            changed |= recompute_tags::join_waits(&mut self.joint, id);
        }
        if changed && self.method == Method::Default {
            recompute_tags::clean_up(&mut self.joint, true);
        }
        changed
    }

    /// Saves what backward needs and only forward has: inputs, and results of forward's writes and effects. Without
    /// it a gradient could not be computed, and an effect of backward would be lost.
    fn save_what_is_missing(&self, saved: &mut Saved) {
        let joint = &self.joint;
        let mut known = fixedbitset::FixedBitSet::with_capacity(joint.graph.len());
        saved.all().for_each(|id| known.insert(id.index()));
        let effects = joint.ids().filter(|&id| self.strategy.must_be_backward(joint, id));
        let mut stack: Vec<NodeId> = joint::nodes_of(&joint.backward_outputs).chain(effects).collect();
        let mut missing = Vec::new();
        while let Some(id) = stack.pop() {
            if known.put(id.index()) {
                continue;
            }
            let forward = |id: NodeId| match joint.role(id) {
                joint::Role::Primal | joint::Role::ForwardSeed => true,
                joint::Role::Call => {
                    self.strategy.must_be_forward(joint, id) && joint.sort(id) != joint::Sort::Nothing
                }
                _ => false,
            };
            let item = match joint.graph.arg(id, 0) {
                Some(Value::Node(parent)) if joint.target(id).getitem => forward(parent),
                _ => false,
            };
            if item || (forward(id) && joint.sort(id) != joint::Sort::Tuple) {
                missing.push(id);
            } else {
                stack.extend_from_slice(joint.edges.inputs(id));
            }
        }
        missing.sort_unstable();
        let missing = Saved::sorted(joint, &missing);
        saved.values.extend(missing.values);
        saved.symbols.extend(missing.symbols);
        saved.objects.extend(missing.objects);
    }

    /// What both sides compute and only one may.
    fn repeated(&self, modules: &Modules, hazards: &Hazards) -> Vec<NodeId> {
        let backward = modules.backward.computed(&self.joint);
        let forward = modules.forward.computed(&self.joint);
        forward
            .intersection(&backward)
            .map(|index| NodeId(index as u32))
            .filter(|&id| hazards.unrepeatable(id).is_some() && self.joint.role(id) == joint::Role::Call)
            .collect()
    }

    /// Refuses to save what forward overwrites and backward reads as it was before. The minimum cut never does.
    fn check(&self, modules: &Modules, hazards: &Hazards) -> Result<(), PartitionError> {
        let joint = &self.joint;
        let backward = self.read_in_backward(modules);
        let readers = |id: NodeId| {
            let users = joint.users(id).iter().copied().filter(|user| backward.contains(user.index()));
            users.filter(move |&user| hazards.reads_before(id, user))
        };
        let Some(id) = self.handed(modules).find(|&id| readers(id).next().is_some()) else {
            return Ok(());
        };
        let name = joint.name(id);
        let error = PartitionError::new(
            Problem::NeitherSavedNorRecomputed,
            format!("backward needs {name}, which forward overwrites after it was read"),
        )
        .with(name, Origin::DataDependence, "is overwritten in forward, so it cannot be saved");
        Err(readers(id).fold(error, |error, user| {
            let error =
                error.with(joint.name(user), Origin::DataDependence, format!("reads {name} in backward"));
            match joint.tags(user).recomputes() {
                true => {
                    let text = "must be computed again, says its tag";
                    error.with(joint.name(user), Origin::Annotation, text)
                }
                false => error,
            }
        }))
    }

    fn finish(
        &self,
        mut modules: Modules,
        tagged: bool,
        proof: Option<Proof>,
    ) -> Result<Partition, PartitionError> {
        let joint = &self.joint;
        if self.method == Method::Default {
            dead_code::eliminate_collectives(joint, &mut modules.forward);
            dead_code::eliminate_collectives(joint, &mut modules.backward);
        }
        if tagged || self.method != Method::Default {
            order::mimic_autograd(joint, self.strategy, &mut modules.backward);
        }
        order::raise_getitems(joint, &mut modules.forward);
        order::raise_getitems(joint, &mut modules.backward);
        modules.forward = self.strategy.finish(joint, modules.forward);
        modules.backward = self.strategy.finish(joint, modules.backward);
        let drawn = self.drawn_twice(&modules);
        let symbols = modules.saved.symbols.len();
        let (forward, backward) = (modules.forward.build(joint), modules.backward.build(joint));
        let graphs = random::pair(forward, backward, &drawn, symbols, self.config.graph_safe_random)?;
        Partition::new(self.graph, joint, &modules, graphs, self.method, proof)
    }

    /// The draws that are tagged to be computed again, and are.
    fn drawn_twice(&self, modules: &Modules) -> Vec<String> {
        let joint = &self.joint;
        let (forward, backward) = (modules.forward.computed(joint), modules.backward.computed(joint));
        let both = forward.intersection(&backward).map(|index| NodeId(index as u32));
        let paired = |&id: &NodeId| joint.target(id).seeded && joint.draws(id) && joint.tags(id).recomputes();
        let draws = both.filter(|id| paired(id) && self.strategy.pairs_draws());
        draws.map(|id| joint.name(id).to_string()).collect()
    }
}

#[cfg(test)]
mod tests;
