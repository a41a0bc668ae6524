//! One graph and what follows from it, as rules ask for it.

use super::Correspondence;
use crate::analysis::conflicts::{Conflict, conflicts_among, conflicts_around};
use crate::analysis::dependences::{self, Dependences};
use crate::analysis::draws::{Draws, draws_nothing};
use crate::analysis::fault::{Fault, FaultKind};
use crate::analysis::origin::{Hazard, Origin, Origins};
use crate::analysis::reachability::{Reachability, within};
use crate::analysis::storages::{Mode, StorageIndex, Storages, Touch};
use crate::analysis::validate::validate_with;
use crate::analysis::{Collectives, Edges, TopologicalOrder};
use crate::graph::{Graph, NodeId, Op, TargetId, Value};
use crate::ops::{Kind, OpInfo, Ops};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};
use std::sync::OnceLock;

/// One graph and what follows from it.
pub struct AnalyzedGraph<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// Its operators.
    pub ops: Ops,
    /// Its edges.
    pub edges: Edges,
    /// Its communication.
    pub collectives: Collectives<'a>,
    faults: OnceLock<Vec<Fault>>,
    storages: OnceLock<Storages>,
    dependences: OnceLock<Dependences>,
    reachability: OnceLock<Result<Reachability, String>>,
    shown_by: OnceLock<ShownBy>,
    fillers: OnceLock<FxHashMap<StorageIndex, Vec<NodeId>>>,
}

impl<'a> AnalyzedGraph<'a> {
    /// Looks at a graph. What is costly is computed when first asked for.
    pub fn new(graph: &'a Graph) -> AnalyzedGraph<'a> {
        let ops = Ops::of(graph);
        let collectives = Collectives::new(graph, &ops);
        AnalyzedGraph {
            graph,
            edges: Edges::new(graph),
            ops,
            collectives,
            faults: OnceLock::new(),
            storages: OnceLock::new(),
            dependences: OnceLock::new(),
            reachability: OnceLock::new(),
            shown_by: OnceLock::new(),
            fillers: OnceLock::new(),
        }
    }

    /// All faults of the graph.
    pub fn faults(&self) -> &[Fault] {
        self.faults.get_or_init(|| self.validate(&|_| false))
    }

    /// The same, for a graph made from `base`, whose faults are known: calls that are as they were there, with the
    /// same results, are not looked at again. `nodes` says what became of the nodes of `base`.
    pub(crate) fn faults_given(&self, base: &AnalyzedGraph, nodes: &Correspondence) -> &[Fault] {
        self.faults.get_or_init(|| {
            let fits = self.fitting_as_in(base, nodes);
            self.validate(&|id| fits[id.index()])
        })
    }

    fn validate(&self, fits: &dyn Fn(NodeId) -> bool) -> Vec<Fault> {
        validate_with(self.graph, &self.ops, &self.edges, &self.collectives, fits)
    }

    /// Nodes that `base` has too, with the same arguments and the same recorded inputs and results, and that fit
    /// their operator there.
    fn fitting_as_in(&self, base: &AnalyzedGraph, nodes: &Correspondence) -> Vec<bool> {
        let (graph, old) = (self.graph, base.graph);
        // Where references lead nowhere, too little is known of the calls.
        let is_loose =
            |fault: &Fault| matches!(fault.kind, FaultKind::Outside { .. } | FaultKind::Dangling { .. });
        if base.faults().iter().any(is_loose) {
            return vec![false; graph.len()];
        }
        let known: Vec<Option<TargetId>> = (0..)
            .map(TargetId)
            .zip(graph.targets())
            .map(|(id, text)| old.find_target(text).filter(|&twin| self.ops.same(id, &base.ops, twin)))
            .collect();
        let mut is_other = vec![false; old.len()];
        let faulty = base.faults().iter().filter_map(|fault| fault.node);
        let rewired = nodes.rewires.iter().map(|rewire| rewire.user);
        for node in faulty.chain(rewired).chain(nodes.changed.iter().copied()) {
            is_other[node.index()] = true;
        }
        let twin = |id: NodeId| nodes.before_of[id.index()];
        let same: Vec<bool> =
            graph.ids().map(|id| twin(id).is_some_and(|twin| graph.same_result(id, old, twin))).collect();
        let fits = |id: NodeId| {
            twin(id).is_some_and(|twin| {
                same[id.index()]
                    && !is_other[twin.index()]
                    && known[graph.node(id).target.0 as usize] == Some(old.node(twin).target)
                    && self.edges.inputs(id).iter().all(|input| same[input.index()])
            })
        };
        graph.ids().map(fits).collect()
    }

    /// The storages, by run-time aliasing.
    pub fn storages(&self) -> &Storages {
        self.storages.get_or_init(|| {
            Storages::new(self.graph, &self.ops, &self.edges, &self.collectives, Mode::Physical)
        })
    }

    /// All reasons why one node must come before another.
    pub fn dependences(&self) -> &Dependences {
        self.dependences.get_or_init(|| {
            let options = dependences::Options::default();
            Dependences::new(self.graph, &self.ops, &self.edges, self.storages(), &self.collectives, options)
        })
    }

    /// Who of the launches reaches whom, through every kind of dependence; mark `i` is launch `i`.
    pub fn launch_reachability(&self) -> Result<&Reachability, String> {
        let new = || {
            let nodes: Vec<NodeId> = self.collectives.calls.iter().map(|call| call.node).collect();
            Reachability::new(self.dependences(), &nodes)
                .map_err(|cycle| format!("the graph before has a cycle: {}", cycle.chain(self.graph)))
        };
        self.reachability.get_or_init(new).as_ref().map_err(Clone::clone)
    }

    /// The nodes that show part of a storage, in list order.
    pub(super) fn shown_by(&self, storage: StorageIndex) -> &[NodeId] {
        let shown = self.shown_by.get_or_init(|| ShownBy::new(self.graph, self.storages()));
        let range = shown.start[storage.index()] as usize..shown.start[storage.index() + 1] as usize;
        &shown.nodes[range]
    }

    /// The nodes that show a storage that `id` writes. Buffers that a collective fills are left out: what such a
    /// buffer shows afterwards is the collective's.
    pub(super) fn showing_writes_of(&self, id: NodeId) -> Vec<NodeId> {
        let shown = self.written_by(id).flat_map(|storage| self.shown_by(storage));
        shown.copied().filter(|&n| n != id).collect()
    }

    /// The storages that `id` writes and no collective fills.
    pub(super) fn written_by(&self, id: NodeId) -> impl Iterator<Item = StorageIndex> {
        let accesses = if self.may_write(id) { self.storages().accesses_by(id) } else { &[] };
        let written = accesses.iter().filter(|access| access.touch == Touch::Write);
        written.map(|access| access.part.storage).filter(|&storage| self.fillers(storage).is_empty())
    }

    /// Whether a node may write to an argument.
    fn may_write(&self, id: NodeId) -> bool {
        let writes =
            |info: &OpInfo| info.kind == Kind::Unknown || info.written(self.graph, id).next().is_some();
        self.ops.call(self.graph, id).is_some_and(writes)
    }

    /// The launches that write a storage.
    pub(super) fn fillers(&self, storage: StorageIndex) -> &[NodeId] {
        let all = self.fillers.get_or_init(|| {
            let mut all: FxHashMap<StorageIndex, Vec<NodeId>> = FxHashMap::default();
            let accesses =
                self.collectives.calls.iter().flat_map(|call| self.storages().accesses_by(call.node));
            for access in accesses.filter(|access| access.touch.writes()) {
                all.entry(access.part.storage).or_default().push(access.node);
            }
            all
        });
        all.get(&storage).map_or(&[], Vec::as_slice)
    }

    /// Whether a node draws random numbers, at least one.
    pub(super) fn draws(&self, id: NodeId) -> bool {
        self.ops.draws(self.graph, id) && !draws_nothing(self.graph, &self.ops, id)
    }

    /// What follows a wait that stands for an earlier one: who reads what it gives, what ordering edges put after it, and
    /// what follows those of them that are such waits.
    pub(super) fn followers_of_wait(&self, id: NodeId) -> Vec<NodeId> {
        let (mut followers, mut open, mut seen) = (Vec::new(), vec![id], FxHashSet::default());
        while let Some(wait) = open.pop() {
            for next in self.edges.successors(wait).filter(|&next| next > wait) {
                if !seen.insert(next) {
                    continue;
                }
                if self.collectives.first_wait(next) != next {
                    open.push(next);
                } else {
                    followers.push(next);
                }
            }
        }
        followers
    }

    /// Whether a node is a wait, of whatever it waits for.
    pub(super) fn is_wait(&self, id: NodeId) -> bool {
        self.ops.call(self.graph, id).is_some_and(|info| info.kind == Kind::Wait)
    }

    /// The values that are waited for, each with its waits in list order.
    pub(super) fn waits_by_value(&self) -> BTreeMap<NodeId, Vec<NodeId>> {
        let mut waits: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
        for id in self.graph.ids() {
            if let (true, Some(Value::Node(value))) = (self.is_wait(id), self.graph.argument(id, 0, "tensor"))
            {
                waits.entry(value).or_default().push(id);
            }
        }
        waits
    }

    /// The nodes, launches aside, that write a storage that `id` shows.
    pub(super) fn writers_of(&self, id: NodeId) -> Vec<NodeId> {
        let shown = self.storages().all_parts(id);
        let mut writers: Vec<NodeId> =
            shown.flat_map(|part| self.writers(part.storage)).filter(|&writer| writer != id).collect();
        writers.dedup();
        writers
    }

    /// The nodes, launches aside, that write a storage.
    pub(super) fn writers(&self, storage: StorageIndex) -> impl Iterator<Item = NodeId> {
        let writes = self.storages().writes_of(storage, None).filter(|access| access.touch == Touch::Write);
        writes.map(|access| access.node).filter(|&node| self.collectives.launch_at(node).is_none())
    }

    /// Why the dependence of `second` on `first` is not certain, in words; `None` if it is certain.
    pub(super) fn doubt(&self, first: NodeId, second: NodeId) -> Option<String> {
        let origin = self.dependences().origin(first, second)?;
        (!origin.certain()).then(|| origin.describe(self.graph, first, second))
    }

    /// How `to` depends on `from`: the reason of each step, along a shortest path of certain dependences. Where
    /// there is none, a path with uncertain ones, and the first doubt.
    pub(super) fn explain_path(&self, from: NodeId, to: NodeId) -> (Vec<String>, Option<String>) {
        let certain = self.path(from, to, true);
        let path = certain.clone().or_else(|| self.path(from, to, false)).unwrap_or_default();
        let dependences = self.dependences();
        let reasons = path.windows(2).map(|step| dependences.reason(self.graph, step[0], step[1])).collect();
        let doubt = match certain {
            Some(_) => None,
            None => path.windows(2).find_map(|step| self.doubt(step[0], step[1])),
        };
        (reasons, doubt)
    }

    fn path(&self, from: NodeId, to: NodeId, certain_only: bool) -> Option<Vec<NodeId>> {
        let dependences = self.dependences();
        let usable =
            |a: NodeId, b: NodeId| !certain_only || dependences.origin(a, b).is_none_or(Origin::certain);
        search(self.graph.len(), from, to, |id| {
            dependences.after(id).iter().copied().filter(move |&next| usable(id, next))
        })
    }

    /// A shortest path over arguments and ordering edges that does without the ordering edge between its ends.
    pub(super) fn path_besides(&self, from: NodeId, to: NodeId) -> Option<Vec<NodeId>> {
        if self.edges.users(from).binary_search(&to).is_ok() {
            return Some(vec![from, to]);
        }
        search(self.graph.len(), from, to, |id| {
            self.edges.successors(id).filter(move |&next| (id, next) != (from, to))
        })
    }

    /// Whether something that a node needs, by arguments and ordering edges, stands behind it in the list.
    pub(super) fn is_displaced(&self, id: NodeId) -> bool {
        let mut seen = vec![false; self.graph.len()];
        let mut stack = vec![id];
        while let Some(next) = stack.pop() {
            if std::mem::replace(&mut seen[next.index()], true) {
                continue;
            }
            if next > id {
                return true;
            }
            stack.extend(self.edges.predecessors(next));
        }
        false
    }

    /// Whether arguments and ordering edges lead from `from` to `to`.
    pub(super) fn has_path(&self, from: NodeId, to: NodeId) -> bool {
        self.edges.users(from).binary_search(&to).is_ok()
            || search(self.graph.len(), from, to, |id| self.edges.successors(id)).is_some()
    }

    /// The same for many pairs at once.
    pub(super) fn have_paths(&self, pairs: &[(NodeId, NodeId)]) -> Vec<bool> {
        let mut found = self.have_edges(pairs);
        self.find_short_paths(pairs, &mut found);
        let open: Vec<usize> = (0..pairs.len()).filter(|&i| !found[i]).collect();
        if open.is_empty() {
            return found;
        }
        match TopologicalOrder::new(&self.edges) {
            Ok(order) => {
                let sets: Vec<Vec<NodeId>> = open.iter().map(|&i| vec![pairs[i].0, pairs[i].1]).collect();
                for (i, paths) in open.into_iter().zip(within(&self.edges, &order, &sets)) {
                    found[i] = paths.contains(&(0, 1));
                }
            }
            Err(_) => open.into_iter().for_each(|i| found[i] = self.has_path(pairs[i].0, pairs[i].1)),
        }
        found
    }

    /// Notes the pairs whose path a search of few steps finds. Most paths that are asked for are short, however far
    /// apart their ends stand in the list: a gradient is written early and returned by the output. All pairs that begin
    /// at one node are one search, of so many more steps: what a bucket's wait hands out goes through a split of
    /// hundreds.
    fn find_short_paths(&self, pairs: &[(NodeId, NodeId)], found: &mut [bool]) {
        const MOST_STEPS: usize = 64;
        let mut open: Vec<usize> = (0..pairs.len()).filter(|&i| !found[i]).collect();
        open.sort_unstable_by_key(|&i| pairs[i]);
        for of_one in open.chunk_by(|&a, &b| pairs[a].0 == pairs[b].0) {
            let from = pairs[of_one[0]].0;
            let mut seen = FxHashSet::default();
            let mut queue = VecDeque::from([from]);
            let mut left = MOST_STEPS * of_one.len();
            while let Some(node) = queue.pop_front() {
                for next in self.edges.successors(node).take(left) {
                    left -= 1;
                    if seen.insert(next) {
                        queue.push_back(next);
                    }
                }
            }
            of_one.iter().for_each(|&i| found[i] = seen.contains(&pairs[i].1));
        }
    }

    /// Which pairs an edge joins. The inputs of a reader are looked at once, in however many pairs it is: an output may
    /// have a hundred thousand.
    fn have_edges(&self, pairs: &[(NodeId, NodeId)]) -> Vec<bool> {
        let mut found = vec![false; pairs.len()];
        let mut by_reader: Vec<usize> = (0..pairs.len()).collect();
        by_reader.sort_unstable_by_key(|&i| pairs[i].1);
        let mut last_reader = vec![None; if pairs.is_empty() { 0 } else { self.graph.len() }];
        for of_one in by_reader.chunk_by(|&a, &b| pairs[a].1 == pairs[b].1) {
            let reader = pairs[of_one[0]].1;
            for input in self.edges.inputs(reader) {
                last_reader[input.index()] = Some(reader);
            }
            for &i in of_one {
                found[i] = last_reader[pairs[i].0.index()] == Some(reader);
            }
        }
        found
    }

    /// For each set of launches, the pairs of positions in it of which the first must be issued before the second.
    pub(super) fn launch_paths(&self, sets: &[&[usize]]) -> Result<Vec<Vec<(usize, usize)>>, String> {
        let dependences = self.dependences();
        let order = TopologicalOrder::new(dependences)
            .map_err(|cycle| format!("the graph before has a cycle: {}", cycle.chain(self.graph)))?;
        let nodes = |set: &&[usize]| set.iter().map(|&launch| self.collectives.calls[launch].node).collect();
        let sets: Vec<Vec<NodeId>> = sets.iter().map(nodes).collect();
        Ok(within(dependences, &order, &sets))
    }

    /// Pairs that certainly touch the same bytes, one of them writing and one of them new, in list order; enough of
    /// them that every other such pair follows.
    pub(super) fn certain_conflicts_of(&self, is_new: &dyn Fn(NodeId) -> bool) -> Vec<Conflict> {
        let mut conflicts = conflicts_around(self.storages(), is_new);
        conflicts.retain(|c| c.certain && (is_new(c.before) || is_new(c.after)));
        conflicts
    }

    /// Pairs of kept nodes that conflict (one storage and at least one write, random draws, effects), in list
    /// order; enough of them that every other such pair follows.
    pub(super) fn conflicts_among(&self, keep: &dyn Fn(NodeId) -> bool) -> Vec<(NodeId, NodeId, Origin)> {
        let storages = self.storages();
        let mut on_storage = conflicts_among(storages, keep);
        // Of all that an access conflicts with, the nearest is told first.
        let access = |c: &Conflict| (c.storage, c.after, c.hazard == Hazard::ReadAfterWrite);
        on_storage.chunk_by_mut(|a, b| access(a) == access(b)).for_each(<[Conflict]>::reverse);
        let origins = on_storage.iter().map(|c| (c.before, c.after, c.origin(storages)));
        let mut conflicts: Vec<(NodeId, NodeId, Origin)> = origins.collect();
        let draws = Draws::new(self.graph, &self.ops);
        let mut random: Vec<Option<NodeId>> = vec![None; draws.generators()];
        let (mut effect, mut unknown): (Option<NodeId>, Option<NodeId>) = (None, None);
        let mut assertions: Vec<NodeId> = Vec::new();
        for id in self.graph.ids().filter(|&id| keep(id)) {
            let Some(info) = self.ops.call(self.graph, id) else { continue };
            let certain = !matches!(info.kind, Kind::Unknown);
            // An unknown operator may draw from any generator.
            if info.kind == Kind::Unknown {
                let drawn =
                    random.iter().flatten().map(|&before| (before, id, Origin::Random { certain: false }));
                conflicts.extend(drawn);
                unknown = Some(id);
            } else if let Some(draw) = draws.of(id) {
                let last = random.get_mut(draw.generator as usize).and_then(|last| last.replace(id));
                conflicts.extend(last.map(|before| (before, id, Origin::Random { certain })));
                conflicts.extend(unknown.map(|before| (before, id, Origin::Random { certain: false })));
            }
            // Assertions among themselves may change places: they only stop the program.
            if matches!(info.kind, Kind::Assert) {
                conflicts.extend(effect.map(|before| (before, id, Origin::Effect { certain })));
                assertions.push(id);
            } else if info.acts() {
                let before = assertions.drain(..).chain(effect.replace(id));
                conflicts.extend(before.map(|before| (before, id, Origin::Effect { certain })));
            }
        }
        conflicts
    }

    /// Whether running a node has an effect of its own, beyond its results and the order of streams.
    pub(super) fn has_own_effect(&self, id: NodeId) -> bool {
        self.ops.call(self.graph, id).is_some_and(OpInfo::acts) || self.ops.draws(self.graph, id)
    }

    /// Whether a call gives what it computes of its arguments, and does nothing else: no write, communication, draw or
    /// other effect.
    pub(super) fn only_computes(&self, id: NodeId) -> bool {
        let info = self.ops.call(self.graph, id);
        info.is_some_and(|info| !info.effect && !info.writes() && info.collective().is_none())
            && !self.draws(id)
    }

    /// The most bytes of storage that are live at once, and where.
    ///
    /// A storage lives from its first node to the last use of any node that shows it. Inputs and constants live
    /// throughout, what the output returns to the end.
    ///
    /// # Errors
    /// A size that is not known, with its node, or more bytes than can be counted.
    pub(super) fn peak_bytes(&self) -> Result<Peak, String> {
        let too_many = || "more bytes are live than can be counted".to_string();
        let storages = self.storages();
        let n = self.graph.len();
        let mut change = vec![0i64; n + 1];
        let mut live = 0i64;
        for storage in storages.ids() {
            let nodes = self.shown_by(storage);
            let info = storages.storage(storage);
            let bytes =
                info.bytes.ok_or_else(|| format!("the size of {} is not known", self.graph.name(info.by)))?;
            if info.external {
                live = live.checked_add(bytes).ok_or_else(too_many)?;
                continue;
            }
            let last_use = |&id: &NodeId| {
                let users = self.edges.users(id).iter();
                users.map(|u| if self.graph.node(*u).op == Op::Output { n } else { u.index() }).max()
            };
            let last =
                nodes.iter().filter_map(last_use).max().unwrap_or(info.by.index()).max(info.by.index());
            change[info.by.index()] = change[info.by.index()].checked_add(bytes).ok_or_else(too_many)?;
            if last < n {
                change[last + 1] = change[last + 1].checked_sub(bytes).ok_or_else(too_many)?;
            }
        }
        let mut peak = Peak { bytes: live, at: NodeId(0) };
        for id in self.graph.ids() {
            live = live.checked_add(change[id.index()]).ok_or_else(too_many)?;
            if live > peak.bytes {
                peak = Peak { bytes: live, at: id };
            }
        }
        Ok(peak)
    }
}

/// For each storage the nodes that show part of it, in list order, in one array.
struct ShownBy {
    start: Vec<u32>,
    nodes: Vec<NodeId>,
}

impl ShownBy {
    fn new(graph: &Graph, storages: &Storages) -> ShownBy {
        let mut last = vec![None; storages.len()];
        let mut pairs = Vec::with_capacity(graph.len());
        let mut start = vec![0u32; storages.len() + 1];
        for id in graph.ids() {
            for part in storages.all_parts(id) {
                if last[part.storage.index()].replace(id) != Some(id) {
                    start[part.storage.index() + 1] += 1;
                    pairs.push((part.storage, id));
                }
            }
        }
        for i in 1..start.len() {
            start[i] += start[i - 1];
        }
        let mut at = start.clone();
        let mut nodes = vec![NodeId(0); pairs.len()];
        for (storage, id) in pairs {
            nodes[at[storage.index()] as usize] = id;
            at[storage.index()] += 1;
        }
        ShownBy { start, nodes }
    }
}

/// The most bytes that are live at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Peak {
    /// Bytes.
    pub(super) bytes: i64,
    /// The first node at which they are live.
    pub(super) at: NodeId,
}

/// A shortest path, both ends included.
fn search<I: Iterator<Item = NodeId>>(
    nodes: usize,
    from: NodeId,
    to: NodeId,
    successors: impl Fn(NodeId) -> I,
) -> Option<Vec<NodeId>> {
    let mut came_from: Vec<Option<NodeId>> = vec![None; nodes];
    let mut queue = VecDeque::from([from]);
    while let Some(id) = queue.pop_front() {
        for next in successors(id) {
            if came_from[next.index()].is_some() {
                continue;
            }
            came_from[next.index()] = Some(id);
            if next == to {
                let mut path = vec![to];
                while let Some(&last) = path.last()
                    && (last != from || path.len() == 1)
                {
                    path.push(came_from[last.index()]?);
                }
                path.reverse();
                return Some(path);
            }
            queue.push_back(next);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{dag_pairs, graph_of};
    use proptest::prelude::*;

    proptest! {
        /// Large enough that the short search gives up on some of them.
        #[test]
        fn paths_of_many_pairs_are_those_of_each(
            (n, edges) in dag_pairs(60, 300),
            pairs in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..20),
        ) {
            let graph = graph_of(n, &edges);
            let side = AnalyzedGraph::new(&graph);
            let node = |index: &prop::sample::Index| NodeId(index.index(n) as u32);
            let pairs: Vec<(NodeId, NodeId)> = pairs.iter().map(|(a, b)| (node(a), node(b))).collect();
            let each: Vec<bool> = pairs.iter().map(|&(a, b)| side.has_path(a, b)).collect();
            prop_assert_eq!(side.have_paths(&pairs), each);
        }
    }
}
