//! The steps that are scheduled, and which of them must come before which.

use super::Refusal;
use super::strategy::Strategy;
use crate::analysis::dependences::{Dependences, Options};
use crate::analysis::origin::{Hazard, Origin, Origins};
use crate::analysis::storages::Storages;
use crate::analysis::{Collectives, Edges};
use crate::graph::{Graph, NodeId, Op};
use crate::ops::{self, Ops, Random};
use crate::simulate::Estimates;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A graph and what follows from it.
pub struct Facts<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Its operators.
    pub ops: Ops,
    /// Its edges.
    pub edges: Edges,
    /// Its communication.
    pub collectives: Collectives<'a>,
    /// Its storages.
    pub storages: Storages,
    /// Its dependences, certain or not.
    pub dependences: Dependences,
}

impl<'a> Facts<'a> {
    /// Gathers them. Near linear.
    pub fn new(graph: &'a Graph) -> Facts<'a> {
        let ops = Ops::of(graph);
        let edges = Edges::new(graph);
        let collectives = Collectives::new(graph, &ops);
        let storages = Storages::new(graph, &ops, &edges, &collectives, Default::default());
        let dependences = Dependences::new(graph, &ops, &edges, &storages, &collectives, Options::default());
        Facts { graph, ops, edges, collectives, storages, dependences }
    }
}

/// What a node is to the scheduler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// It computes.
    Compute {
        /// Whether it is a matrix product, a convolution or attention: worth hiding communication behind, and not to be
        /// dragged along by it.
        gemm: bool,
    },
    /// It starts communication that somebody waits for later.
    Launch,
    /// It communicates and returns when that is done.
    Synchronous,
    /// It waits.
    Wait,
}

impl Kind {
    /// What a node is.
    pub fn of(facts: &Facts, node: NodeId) -> Kind {
        if let Some(launch) = facts.collectives.launch_at(node) {
            return match facts.collectives.calls[launch].is_done_at_once {
                true => Kind::Synchronous,
                false => Kind::Launch,
            };
        }
        match facts.ops.call(facts.graph, node).map(|info| (info.kind, info.target.as_str())) {
            Some((ops::Kind::Wait, _)) => Kind::Wait,
            Some((ops::Kind::Matmul(_) | ops::Kind::Random(Random::Attention), _)) => {
                Kind::Compute { gemm: true }
            }
            Some((_, target)) => Kind::Compute { gemm: target.starts_with("aten.convolution") },
            None => Kind::Compute { gemm: false },
        }
    }

    fn communicates(self) -> bool {
        matches!(self, Kind::Launch | Kind::Synchronous)
    }
}

/// The steps of a graph. A step is known by its place in the list before, so the numbers are a legal order.
pub struct Steps {
    /// The nodes of each step, in order.
    pub nodes: Vec<Vec<NodeId>>,
    /// How long each takes, seconds.
    pub seconds: Vec<f64>,
    /// Whether it holds communication.
    pub communicates: Vec<bool>,
    /// Whether it holds communication that is waited for in another step.
    pub launches: Vec<bool>,
    /// Whether it holds a wait.
    pub waits: Vec<bool>,
    /// Whether it holds a matrix product or the like.
    pub gemm: Vec<bool>,
    /// For each node its step; `None` for inputs and outputs.
    pub step_of: Vec<Option<u32>>,
    before: Table,
    after: Table,
    inputs: Vec<NodeId>,
    outputs: Vec<NodeId>,
}

/// Neighbours of each step, with whether the edge is real.
struct Table {
    start: Vec<u32>,
    entries: Vec<(u32, bool)>,
}

impl Table {
    fn build(n: usize, edges: &[(u32, u32, bool)]) -> Table {
        let mut start = vec![0u32; n + 1];
        for edge in edges {
            start[edge.0 as usize + 1] += 1;
        }
        for i in 0..n {
            start[i + 1] += start[i];
        }
        let mut at = start.clone();
        let mut entries = vec![(0, false); edges.len()];
        for &(from, to, real) in edges {
            entries[at[from as usize] as usize] = (to, real);
            at[from as usize] += 1;
        }
        Table { start, entries }
    }

    fn of(&self, step: u32) -> &[(u32, bool)] {
        &self.entries[self.start[step as usize] as usize..self.start[step as usize + 1] as usize]
    }
}

/// Whether the later node of a dependence needs what the earlier one made.
pub fn is_real(origin: Origin) -> bool {
    match origin {
        Origin::Data => true,
        Origin::Storage { hazard, .. } => hazard != Hazard::WriteAfterRead,
        Origin::Ordering | Origin::Random { .. } | Origin::Effect { .. } | Origin::Communication => false,
    }
}

impl Steps {
    /// The steps of a graph: its clusters and `groups` are one step each. `extra` are further edges between nodes.
    pub fn new(
        facts: &Facts,
        estimates: &Estimates,
        strategy: &dyn Strategy,
        groups: &[Vec<NodeId>],
        extra: &[(NodeId, NodeId)],
    ) -> Result<Steps, Refusal> {
        let graph = facts.graph;
        let kinds: Vec<Kind> = graph.ids().map(|id| strategy.kind(facts, id)).collect();
        let mut edges: Vec<(NodeId, NodeId, bool)> = Vec::with_capacity(3 * graph.len());
        let is_outside = |id: &NodeId| id.index() >= graph.len();
        if let Some(edge) =
            graph.ordering.iter().find(|edge| is_outside(&edge.before) || is_outside(&edge.after))
        {
            let (before, after) = (edge.before.0, edge.after.0);
            let n = graph.len();
            return Err(Refusal::Input(format!(
                "an ordering edge leads from node {before} to node {after}, but there are {n} nodes"
            )));
        }
        for after in graph.ids() {
            for (before, origin) in facts.dependences.before(after) {
                if before >= after {
                    let name = |id| graph.name(id).to_string();
                    return Err(Refusal::Unsorted { before: name(before), after: name(after) });
                }
                if let Some((before, after)) = strategy.edge(facts, before, after, origin) {
                    edges.push((before, after, is_real(origin)));
                }
            }
        }
        let launches: Vec<NodeId> = graph.ids().filter(|id| kinds[id.index()].communicates()).collect();
        let order_only = strategy.chain(facts, &launches).into_iter().chain(extra.iter().copied());
        edges.extend(order_only.map(|(before, after)| (before, after, false)));
        let contracted = Contracted::new(graph, groups)?;
        let mut steps = contracted.order(facts, &edges)?;
        let mut seconds = estimates.of(graph, &facts.ops, &facts.collectives);
        seconds.iter_mut().for_each(|s| *s = s.max(0.0));
        for nodes in &steps.nodes {
            let any = |wanted: &dyn Fn(Kind) -> bool| nodes.iter().any(|id| wanted(kinds[id.index()]));
            steps.seconds.push(nodes.iter().map(|id| seconds[id.index()]).sum());
            steps.communicates.push(any(&Kind::communicates));
            steps.waits.push(any(&|kind| kind == Kind::Wait));
            steps.gemm.push(any(&|kind| kind == Kind::Compute { gemm: true }));
            let waited_inside = |id: &NodeId| {
                let launch = facts.collectives.launch_at(*id);
                launch.is_some_and(|launch| {
                    facts.collectives.waits[launch].iter().any(|wait| nodes.contains(wait))
                })
            };
            let leaves = |id: &NodeId| kinds[id.index()] == Kind::Launch && !waited_inside(id);
            steps.launches.push(nodes.iter().any(leaves));
        }
        Ok(steps)
    }

    /// Number of steps.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// What must come before a step, and whether it needs what that made. A step may be listed twice.
    pub fn before(&self, step: u32) -> &[(u32, bool)] {
        self.before.of(step)
    }

    /// What must come after a step, likewise.
    pub fn after(&self, step: u32) -> &[(u32, bool)] {
        self.after.of(step)
    }

    /// The nodes in the order of steps, inputs first, outputs last.
    pub fn unpacked(&self, order: &[u32]) -> Vec<NodeId> {
        let steps = order.iter().flat_map(|&step| &self.nodes[step as usize]);
        self.inputs.iter().chain(steps).chain(&self.outputs).copied().collect()
    }
}

/// Which nodes are one step.
struct Contracted<'a> {
    graph: &'a Graph,
    /// For each node its group: a cluster of the graph, or one of those given.
    group_of: Vec<Option<usize>>,
    names: Vec<String>,
}

impl<'a> Contracted<'a> {
    fn new(graph: &'a Graph, groups: &[Vec<NodeId>]) -> Result<Contracted<'a>, Refusal> {
        let clusters = graph.clusters.iter().map(|cluster| (cluster.name.clone(), &cluster.members));
        let named = groups.iter().enumerate().map(|(i, group)| (format!("group {i}"), group));
        let mut this = Contracted { graph, group_of: vec![None; graph.len()], names: Vec::new() };
        for (index, (name, members)) in clusters.chain(named).enumerate() {
            for &member in members {
                if member.index() >= graph.len() || !matches!(graph.node(member).op, Op::Call | Op::GetAttr) {
                    return Err(Refusal::Input(format!("cluster {name} has a member that is no operation")));
                }
                if let Some(other) = this.group_of[member.index()].replace(index)
                    && other != index
                {
                    let (node, first) = (graph.name(member).to_string(), this.names[other].clone());
                    return Err(Refusal::Shared { node, first, second: name });
                }
            }
            this.names.push(name);
        }
        Ok(this)
    }

    /// The steps in the order of their first nodes, or the nearest legal one.
    fn order(self, facts: &Facts, edges: &[(NodeId, NodeId, bool)]) -> Result<Steps, Refusal> {
        let graph = self.graph;
        let mut first: Vec<Option<u32>> = vec![None; self.names.len()];
        let mut step_of: Vec<Option<u32>> = vec![None; graph.len()];
        let mut nodes: Vec<Vec<NodeId>> = Vec::with_capacity(graph.len());
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for id in graph.ids() {
            match graph.node(id).op {
                Op::Placeholder => inputs.push(id),
                Op::Output => outputs.push(id),
                Op::Call | Op::GetAttr => {
                    let fresh = nodes.len() as u32;
                    let step = match self.group_of[id.index()] {
                        Some(group) => *first[group].get_or_insert(fresh),
                        None => fresh,
                    };
                    if step == fresh {
                        nodes.push(Vec::new());
                    }
                    nodes[step as usize].push(id);
                    step_of[id.index()] = Some(step);
                }
            }
        }
        let mut between: Vec<(u32, u32, bool)> = Vec::with_capacity(edges.len());
        for &(before, after, real) in edges {
            if let (Some(a), Some(b)) = (step_of[before.index()], step_of[after.index()])
                && a != b
            {
                between.push((a, b, real));
            }
        }
        let n = nodes.len();
        if !between.iter().all(|edge| edge.0 < edge.1) {
            let order = sorted(n, &between).map_err(|stuck| self.not_convex(facts, &nodes, &stuck))?;
            let mut place = vec![0u32; n];
            for (i, &step) in order.iter().enumerate() {
                place[step as usize] = i as u32;
            }
            nodes = order.iter().map(|&step| std::mem::take(&mut nodes[step as usize])).collect();
            step_of.iter_mut().flatten().for_each(|step| *step = place[*step as usize]);
            between
                .iter_mut()
                .for_each(|edge| *edge = (place[edge.0 as usize], place[edge.1 as usize], edge.2));
        }
        let turned: Vec<(u32, u32, bool)> = between.iter().map(|&(a, b, real)| (b, a, real)).collect();
        Ok(Steps {
            seconds: Vec::with_capacity(n),
            communicates: Vec::with_capacity(n),
            launches: Vec::with_capacity(n),
            waits: Vec::with_capacity(n),
            gemm: Vec::with_capacity(n),
            step_of,
            before: Table::build(n, &turned),
            after: Table::build(n, &between),
            inputs,
            outputs,
            nodes,
        })
    }

    /// Which group has somebody between its members.
    fn not_convex(&self, facts: &Facts, nodes: &[Vec<NodeId>], stuck: &[bool]) -> Refusal {
        let name = |id: NodeId| self.graph.name(id).to_string();
        let is_stuck = |step: &usize| stuck[*step] && nodes[*step].len() > 1;
        let Some(step) = (0..nodes.len()).find(is_stuck) else {
            return Refusal::Input("what must come before what forms a cycle".to_string());
        };
        let group = nodes[step].first().and_then(|id| self.group_of[id.index()]);
        let cluster = group.map_or(String::new(), |group| self.names[group].clone());
        // Somebody outside who comes after one member and before another.
        let mut reached: Vec<Option<NodeId>> = vec![None; self.graph.len()];
        for &member in &nodes[step] {
            reached[member.index()] = Some(member);
        }
        for id in self.graph.ids() {
            for (before, _) in facts.dependences.before(id) {
                let from = reached[before.index()];
                let (Some(from), is_member) = (from, nodes[step].contains(&id)) else { continue };
                if is_member && !nodes[step].contains(&before) {
                    let path = format!(
                        "{} must come after its member {} and before its member {} ({})",
                        name(before),
                        name(from),
                        name(id),
                        facts.dependences.reason(self.graph, before, id)
                    );
                    return Refusal::NotConvex { cluster, path };
                }
                if !is_member && reached[id.index()].is_none() {
                    reached[id.index()] = Some(from);
                }
            }
        }
        let others: Vec<String> = (0..nodes.len())
            .filter(is_stuck)
            .filter_map(|step| nodes[step].first().copied())
            .map(name)
            .collect();
        let path = format!(
            "its members and those of the clusters of {} must come between each other",
            others.join(", ")
        );
        Refusal::NotConvex { cluster, path }
    }
}

/// Of the steps that are ready always the lowest; which steps are left over, if any.
fn sorted(n: usize, edges: &[(u32, u32, bool)]) -> Result<Vec<u32>, Vec<bool>> {
    let after = Table::build(n, edges);
    let mut blockers = vec![0u32; n];
    edges.iter().for_each(|edge| blockers[edge.1 as usize] += 1);
    let free = (0..n as u32).filter(|&step| blockers[step as usize] == 0);
    let mut ready: BinaryHeap<Reverse<u32>> = free.map(Reverse).collect();
    let mut order = Vec::with_capacity(n);
    while let Some(Reverse(step)) = ready.pop() {
        order.push(step);
        for &(next, _) in after.of(step) {
            blockers[next as usize] -= 1;
            if blockers[next as usize] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    if order.len() == n { Ok(order) } else { Err(blockers.iter().map(|&left| left > 0).collect()) }
}
