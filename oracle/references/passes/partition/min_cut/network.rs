//! The flow network of a joint graph, and its minimum cut.
//!
//! Vertex 0 is the source, 1 the sink; node `i` enters at `2 + 2i` and leaves at `3 + 2i`.

use super::super::error::{Origin, PartitionError, Problem};
use super::super::joint::Role;
use super::super::max_flow::{INFINITE, Network};
use super::super::result::{Certificate, Proof};
use super::bans::Ban;
use super::context::{Context, Weight};
use super::heuristics;
use crate::config::partition::Bans;
use crate::graph::NodeId;
use fixedbitset::FixedBitSet;

const SOURCE: u32 = 0;
const SINK: u32 = 1;

fn entry(id: NodeId) -> u32 {
    2 + 2 * id.0
}

fn exit(id: NodeId) -> u32 {
    3 + 2 * id.0
}

/// A minimum cut of a joint graph.
#[derive(Clone, Debug)]
pub struct Cut {
    /// The values that it saves, in graph order.
    pub saved: Vec<NodeId>,
    /// What it does not compute again, in the order of the bans.
    pub banned: Vec<NodeId>,
    /// The proof that it is minimal.
    pub proof: Proof,
}

/// The bans of one solve.
pub struct Banned<'a> {
    cx: &'a Context<'a>,
    lifted: &'a FixedBitSet,
    bans: Vec<Option<Ban>>,
    order: Vec<NodeId>,
}

impl Banned<'_> {
    /// Bans `id`, unless it is a view, tagged to be computed again, a symbolic float, or lifted.
    pub fn ban(&mut self, id: NodeId, ban: Ban) {
        let joint = self.cx.joint;
        let target = joint.target(id);
        let protected = target.collective && !self.cx.config.optimizes_collectives;
        let lifted = self.lifted.contains(id.index()) && !protected;
        let float = joint.sort(id) == super::super::joint::Sort::SymFloat;
        if target.sets.view || lifted || self.cx.recomputes(id) || float {
            return;
        }
        if self.bans[id.index()].is_none() {
            self.bans[id.index()] = Some(ban);
            self.order.push(id);
        }
    }

    /// Whether `id` is banned.
    pub fn contains(&self, id: NodeId) -> bool {
        self.bans[id.index()].is_some()
    }
}

/// Why a node drains into the sink.
#[derive(Clone, Copy)]
enum Drain {
    /// Backward computes it.
    Closure,
    /// It is a backward output.
    Output,
    /// It is tagged to be computed again.
    Tagged,
}

impl Drain {
    fn reason(self) -> (Origin, &'static str) {
        match self {
            Drain::Closure => (Origin::DataDependence, "must be computed in backward"),
            Drain::Output => (Origin::DataDependence, "must be available in backward: it is returned there"),
            Drain::Tagged => (Origin::Annotation, "must be computed again, says its tag"),
        }
    }
}

/// Finds the minimum cut of the joint graph of `cx` under `bans`; the bans of the nodes in `lifted` are taken
/// back.
pub fn solve(cx: &Context, bans: Bans, lifted: &FixedBitSet) -> Result<Cut, PartitionError> {
    let joint = cx.joint;
    let n = joint.graph.len();
    let mut banned = Banned { cx, lifted, bans: vec![None; n], order: Vec::new() };
    let mut network = Network::new(2 + 2 * n);
    let mut drains: Vec<Option<Drain>> = vec![None; n];
    let mut weights: Vec<Option<Weight>> = vec![None; n];
    for id in joint.ids().filter(|&id| joint.role(id) != Role::Output) {
        if cx.classes.tangents_closure.contains(id.index()) {
            drains[id.index()] = Some(Drain::Closure);
            network.add(entry(id), SINK, INFINITE);
            continue;
        }
        // Who reads memory after forward's last write to it finds it as it is handed over, at no cost.
        let spoiled = cx.hazards.overwritten(id);
        if cx.classes.backward.contains(id.index()) && !spoiled {
            drains[id.index()] = Some(Drain::Output);
            network.add(exit(id), SINK, INFINITE);
        }
        if cx.recomputes(id) {
            drains[id.index()] = Some(Drain::Tagged);
            network.add(entry(id), SINK, INFINITE);
            continue;
        }
        if matches!(joint.role(id), Role::Primal | Role::ForwardSeed) {
            banned.ban(id, Ban::Input);
        }
        if cx.hazards.is_forbidden(id) {
            banned.ban(id, Ban::Draw);
        }
        if cx.classes.needs_forward(id)
            && let Some(ban) = cx.strategy.should_ban(cx, bans, id)?
        {
            banned.ban(id, ban);
        }
        let weight = cx.strategy.weight(cx, id)?;
        weights[id.index()] = Some(weight);
        network.add(entry(id), exit(id), weight.capacity());
        // The output is a dead end.
        let reads = |user: &&NodeId| {
            joint.role(**user) != Role::Output && (!spoiled || cx.hazards.reads_before(id, **user))
        };
        for &user in joint.users(id).iter().filter(reads) {
            network.add(exit(id), entry(user), INFINITE);
        }
    }
    if bans.far_apart {
        heuristics::ban_far_apart(cx, &mut banned);
    }
    if bans.long_chains {
        heuristics::ban_long_chains(cx, &mut banned);
    }
    banned.order.iter().for_each(|&id| network.add(SOURCE, entry(id), INFINITE));
    if let Some(path) = network.unbounded_path(SOURCE, SINK) {
        return Err(contradiction(cx, &path, &banned, &drains, &weights));
    }
    let cut = network.minimum_cut(SOURCE, SINK, cx.strategy.cut_side());
    let across = |id: &NodeId| {
        weights[id.index()].is_some()
            && !cut.sink_side[entry(*id) as usize]
            && cut.sink_side[exit(*id) as usize]
    };
    let saved: Vec<NodeId> = joint.ids().filter(across).collect();
    let weight = |id: &NodeId| weights[id.index()].map_or(0, Weight::capacity);
    let certificate = Certificate { flow: cut.flow, cut: saved.iter().map(weight).sum() };
    let names = saved.iter().map(|&id| joint.name(id).to_string()).collect();
    Ok(Cut { saved, banned: banned.order, proof: Proof { certificate, network, saved: names } })
}

/// What stands against one another along a path that no cut can break.
fn contradiction(
    cx: &Context,
    path: &[u32],
    banned: &Banned,
    drains: &[Option<Drain>],
    weights: &[Option<Weight>],
) -> PartitionError {
    let joint = cx.joint;
    let node = |vertex: u32| vertex.checked_sub(2).map(|v| NodeId(v / 2));
    let mut constraints = Vec::new();
    for step in path.windows(2) {
        match (node(step[0]), node(step[1])) {
            (None, Some(id)) => {
                let (origin, text) =
                    banned.bans[id.index()].map_or((Origin::Heuristic, "is banned"), Ban::reason);
                constraints.push((id, origin, format!("cannot be computed again: {text}")));
            }
            (Some(id), None) => {
                let (origin, text) =
                    drains[id.index()].map_or((Origin::DataDependence, "is needed"), Drain::reason);
                constraints.push((id, origin, text.to_string()));
            }
            (Some(id), Some(next)) if id == next => {
                let why = match weights[id.index()] {
                    Some(Weight::Never(why)) => why,
                    _ => "costs too much",
                };
                constraints.push((id, Origin::DataDependence, format!("cannot be saved: {why}")));
            }
            (Some(id), Some(next)) => {
                constraints.push((next, Origin::DataDependence, format!("depends on {}", joint.name(id))));
            }
            (None, None) => {}
        }
    }
    let blamed = path.iter().find_map(|&vertex| node(vertex)).map_or("a value", |id| joint.name(id));
    let message = format!("backward needs {blamed}, which can be neither saved nor computed again");
    let error = PartitionError::new(Problem::NeitherSavedNorRecomputed, message);
    constraints.into_iter().fold(error, |error, (id, origin, text)| error.with(joint.name(id), origin, text))
}
