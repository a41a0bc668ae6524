//! A cycle, told as a chain: each edge with its two nodes and where it comes from.

use crate::graph::{Graph, NodeId, OrderingEdge, Span, Value};
use std::fmt;

/// Why one node must precede another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The later node refers to the earlier one, here: `args[0][2]`, `kwargs.out`.
    Data {
        /// The first place of the reference.
        path: String,
    },
    /// An ordering edge of the graph.
    Ordering,
    /// An extra edge given to the sort.
    Extra,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Data { path } => f.write_str(path),
            Origin::Ordering => f.write_str("an ordering edge"),
            Origin::Extra => f.write_str("an extra edge"),
        }
    }
}

/// One edge: `from` must precede `to`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CycleEdge {
    /// Must run first.
    pub from: NodeId,
    /// Must run later.
    pub to: NodeId,
    /// Name of `from`.
    pub from_name: String,
    /// Name of `to`.
    pub to_name: String,
    /// Why.
    pub origin: Origin,
}

impl CycleEdge {
    /// The edge between two nodes with its origin: a data edge where there is one, else an ordering edge, else
    /// one of `extra`.
    pub fn named(graph: &Graph, from: NodeId, to: NodeId, extra: &[OrderingEdge]) -> CycleEdge {
        let is = |e: &&OrderingEdge| e.before == from && e.after == to;
        let origin = match reference_path(graph, from, to) {
            Some(path) => Origin::Data { path },
            None if extra.iter().any(|e| is(&e)) && !graph.ordering.iter().any(|e| is(&e)) => Origin::Extra,
            None => Origin::Ordering,
        };
        let (from_name, to_name) = (graph.name(from).to_string(), graph.name(to).to_string());
        CycleEdge { from, to, from_name, to_name, origin }
    }
}

impl fmt::Display for CycleEdge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Data { path } => write!(f, "{} uses {} ({path})", self.to_name, self.from_name),
            origin => write!(f, "{} must follow {} ({origin})", self.to_name, self.from_name),
        }
    }
}

/// A cycle of a graph: no list order satisfies its edges.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct Cycle {
    /// Its edges; the target of each is the source of the next, and that of the last the source of the first.
    pub edges: Vec<CycleEdge>,
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no order exists: ")?;
        for (i, edge) in self.edges.iter().enumerate() {
            write!(f, "{}{edge}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl Cycle {
    /// The shortest cycle among `nodes`, which hold at least one; the earliest in list order where several are
    /// equally short.
    ///
    /// Exact, by a breadth-first search from each node that is still on a cycle, bounded by the best found so
    /// far; each node searched from is removed afterwards, with everything that is then on no cycle. After
    /// 2^26 edge visits the shortest cycle found until then is returned.
    pub fn shortest(graph: &Graph, nodes: &[NodeId], extra: &[OrderingEdge]) -> Cycle {
        let nodes = Search::new(graph, nodes, extra).run();
        let edges = (0..nodes.len())
            .map(|i| CycleEdge::named(graph, nodes[i], nodes[(i + 1) % nodes.len()], extra))
            .collect();
        Cycle { edges }
    }
}

const NONE: u32 = u32::MAX;
const BUDGET: usize = 1 << 26;

struct Search<'a> {
    nodes: &'a [NodeId],
    /// Successors and predecessors of each node, as positions in `nodes`.
    after: Vec<Vec<u32>>,
    before: Vec<Vec<u32>>,
    alive: Vec<bool>,
    /// Live edges in and out of each node.
    degree: Vec<[u32; 2]>,
    visits: usize,
}

impl<'a> Search<'a> {
    fn new(graph: &Graph, nodes: &'a [NodeId], extra: &[OrderingEdge]) -> Search<'a> {
        let n = nodes.len();
        let mut slot = vec![NONE; graph.len()];
        for (i, id) in nodes.iter().enumerate() {
            slot[id.index()] = i as u32;
        }
        let (mut after, mut before) = (vec![Vec::new(); n], vec![Vec::new(); n]);
        for (i, &id) in nodes.iter().enumerate() {
            graph.for_each_input(id, &mut |input| before[i].push(slot[input.index()]));
        }
        for edge in graph.ordering.iter().chain(extra) {
            if slot[edge.after.index()] != NONE {
                before[slot[edge.after.index()] as usize].push(slot[edge.before.index()]);
            }
        }
        for (i, row) in before.iter_mut().enumerate() {
            row.retain(|&from| from != NONE);
            row.sort_unstable();
            row.dedup();
            for &from in row.iter() {
                after[from as usize].push(i as u32);
            }
        }
        let degree = (0..n).map(|i| [before[i].len() as u32, after[i].len() as u32]).collect();
        Search { nodes, after, before, alive: vec![true; n], degree, visits: 0 }
    }

    fn run(mut self) -> Vec<NodeId> {
        let n = self.nodes.len();
        let idle = (0..n as u32).filter(|&i| self.degree[i as usize].contains(&0)).collect();
        self.remove(idle);
        // Bounds the searches; not taken itself unless they run out of budget, since it need not be the earliest.
        let some = self.any();
        let mut best: Option<Vec<u32>> = None;
        let (mut from, mut seen) = (vec![NONE; n], vec![NONE; n]);
        for root in 0..n as u32 {
            let limit = best.as_ref().map_or(some.len() + 1, Vec::len);
            if limit <= 1 || self.visits > BUDGET {
                break;
            }
            if self.alive[root as usize] {
                if let Some(found) = self.through(root, limit, &mut from, &mut seen) {
                    best = Some(found);
                }
                self.remove(vec![root]);
            }
        }
        let best = best.unwrap_or(some);
        best.into_iter().map(|i| self.nodes[i as usize]).collect()
    }

    /// Removes nodes, and then whatever has no live edge in or none out.
    fn remove(&mut self, mut gone: Vec<u32>) {
        while let Some(i) = gone.pop() {
            if !std::mem::replace(&mut self.alive[i as usize], false) {
                continue;
            }
            for (side, other) in [(0, &self.after), (1, &self.before)] {
                for &j in &other[i as usize] {
                    self.degree[j as usize][side] -= 1;
                    if self.degree[j as usize][side] == 0 {
                        gone.push(j);
                    }
                }
            }
        }
    }

    /// Some cycle: walk backwards until a node comes again. Every live node has a live predecessor.
    fn any(&self) -> Vec<u32> {
        let Some(start) = self.alive.iter().position(|&alive| alive) else { return Vec::new() };
        let (mut at, mut path, mut place) = (start as u32, Vec::new(), vec![NONE; self.nodes.len()]);
        loop {
            if place[at as usize] != NONE {
                path.drain(..place[at as usize] as usize);
                path.reverse();
                return path;
            }
            place[at as usize] = path.len() as u32;
            path.push(at);
            match self.before[at as usize].iter().find(|&&i| self.alive[i as usize]) {
                Some(&i) => at = i,
                None => return Vec::new(),
            }
        }
    }

    /// The shortest cycle through `root`, if it is shorter than `limit`.
    fn through(&mut self, root: u32, limit: usize, from: &mut [u32], seen: &mut [u32]) -> Option<Vec<u32>> {
        let mut layer = vec![root];
        seen[root as usize] = root;
        for _ in 1..limit {
            let mut following = Vec::new();
            for &i in &layer {
                self.visits += self.after[i as usize].len();
                for &j in &self.after[i as usize] {
                    if j == root {
                        let mut path = vec![i];
                        while path[path.len() - 1] != root {
                            path.push(from[path[path.len() - 1] as usize]);
                        }
                        path.reverse();
                        return Some(path);
                    }
                    if self.alive[j as usize] && seen[j as usize] != root {
                        seen[j as usize] = root;
                        from[j as usize] = i;
                        following.push(j);
                    }
                }
            }
            layer = following;
        }
        None
    }
}

/// Where `to` first refers to `from`.
fn reference_path(graph: &Graph, from: NodeId, to: NodeId) -> Option<String> {
    for (i, &value) in graph.args(to).iter().enumerate() {
        if let Some(inner) = path_in(graph, value, from) {
            return Some(format!("args[{i}]{inner}"));
        }
    }
    graph
        .kwargs(to)
        .find_map(|(key, value)| path_in(graph, value, from).map(|inner| format!("kwargs.{key}{inner}")))
}

fn path_in(graph: &Graph, value: Value, node: NodeId) -> Option<String> {
    let inside = |span: Span, step: &dyn Fn(usize) -> String| {
        graph
            .values(span)
            .iter()
            .enumerate()
            .find_map(|(i, &inner)| path_in(graph, inner, node).map(|rest| step(i) + &rest))
    };
    match value {
        Value::Node(found) if found == node => Some(String::new()),
        Value::List(span) => inside(span, &|i| format!("[{i}]")),
        Value::Slice(span) => inside(span, &|i| format!(".{}", ["start", "stop", "step"][i.min(2)])),
        Value::Dict(span) => inside(span, &|i| match graph.values(span)[i & !1] {
            Value::Str(key) => format!(".{}", graph.text(key)),
            _ => format!("[{}]", i / 2),
        }),
        _ => None,
    }
}
