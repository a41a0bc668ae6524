//! Changing a graph: insert, move, erase, rewire; ids stay stable until [`Editor::finish`].
//!
//! The list is doubly linked, as in FX, so that each operation costs what it touches. Users are indexed once
//! and kept up to date.

use super::{Graph, Node, NodeId, Op, Out, Span, Value};
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

const NONE: u32 = u32::MAX;

/// References of one node by what they refer to, as places in the value arena.
type Places = FxHashMap<NodeId, Vec<u32>>;

/// References from which on a node's places are indexed.
const WIDE: usize = 64;

/// A graph under change.
#[derive(Clone, Debug)]
pub struct Editor {
    graph: Graph,
    next: Vec<u32>,
    prev: Vec<u32>,
    first: u32,
    last: u32,
    erased: Vec<bool>,
    /// Distinct users, in order of registration.
    users: Vec<Vec<NodeId>>,
    /// Where nodes with very many references refer to what.
    wide: FxHashMap<NodeId, Places>,
    /// Last suffix tried for a base name.
    suffix: FxHashMap<String, u32>,
    /// Names that no new node gets, beside those of the graph.
    taken: FxHashSet<String>,
}

impl Editor {
    /// Begins to change a copy of `graph`.
    pub fn new(graph: &Graph) -> Editor {
        Editor::from_owned(graph.clone())
    }

    /// Begins to change `graph`.
    pub fn from_owned(graph: Graph) -> Editor {
        let n = graph.len();
        let link = |i: usize| if i < n { i as u32 } else { NONE };
        let mut users = vec![Vec::new(); n];
        for id in graph.ids() {
            graph.for_each_input(id, &mut |input: NodeId| add_user(&mut users, input, id));
        }
        Editor {
            next: (1..=n).map(link).collect(),
            prev: (0..n).map(|i| i.checked_sub(1).map_or(NONE, |p| p as u32)).collect(),
            first: link(0),
            last: n.checked_sub(1).map_or(NONE, |i| i as u32),
            erased: vec![false; n],
            users,
            wide: FxHashMap::default(),
            suffix: FxHashMap::default(),
            taken: FxHashSet::default(),
            graph,
        }
    }

    /// The graph's arenas. Its `ids()` are those of this editor, erased nodes included, *not* in list order.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The graph's arenas, to store values, shapes and tensors in.
    pub fn graph_mut(&mut self) -> &mut Graph {
        &mut self.graph
    }

    /// The first node of the list.
    pub fn first(&self) -> Option<NodeId> {
        (self.first != NONE).then_some(NodeId(self.first))
    }

    /// The node after `id`.
    pub fn next(&self, id: NodeId) -> Option<NodeId> {
        let next = self.next[id.index()];
        (next != NONE).then_some(NodeId(next))
    }

    /// The node before `id`.
    pub fn prev(&self, id: NodeId) -> Option<NodeId> {
        let prev = self.prev[id.index()];
        (prev != NONE).then_some(NodeId(prev))
    }

    /// All nodes in list order.
    pub fn list(&self) -> Vec<NodeId> {
        std::iter::successors(self.first(), |&id| self.next(id)).collect()
    }

    /// The distinct nodes that refer to `id`.
    pub fn users(&self, id: NodeId) -> &[NodeId] {
        &self.users[id.index()]
    }

    /// Whether `id` has been erased.
    pub fn is_erased(&self, id: NodeId) -> bool {
        self.erased[id.index()]
    }

    /// Keeps new nodes from getting these names. (FX never gives a name twice, not even that of an erased node.)
    pub fn avoid(&mut self, names: impl IntoIterator<Item = String>) {
        self.taken.extend(names);
    }

    fn is_free(&self, name: &str) -> bool {
        self.graph.find(name).is_none() && !self.taken.contains(name)
    }

    /// A name that no node has or had: `base`, or `base_1`, `base_2`, ...
    pub fn fresh_name(&mut self, base: &str) -> String {
        if self.is_free(base) {
            return base.to_string();
        }
        let mut count = self.suffix.get(base).copied().unwrap_or(0);
        let name = loop {
            count += 1;
            let name = format!("{base}_{count}");
            if self.is_free(&name) {
                break name;
            }
        };
        match self.suffix.get_mut(base) {
            Some(last) => *last = count,
            None => {
                self.suffix.insert(base.to_string(), count);
            }
        }
        name
    }

    /// Inserts a call before `anchor` (at the end if `None`), under a fresh name made from `base`.
    pub fn insert_before(
        &mut self,
        anchor: Option<NodeId>,
        base: &str,
        target: &str,
        args: &[Value],
        kwargs: &[(&str, Value)],
        out: Out,
    ) -> NodeId {
        let name = self.fresh_name(base);
        let id = self.graph.push(&name, Op::Call, target);
        let args = self.graph.push_values(args);
        let mut pairs = Vec::with_capacity(2 * kwargs.len());
        for &(key, value) in kwargs {
            let key = self.graph.intern(key);
            pairs.extend([Value::Str(key), value]);
        }
        let kwargs = self.graph.push_values(&pairs);
        let node = self.graph.node_mut(id);
        (node.args, node.kwargs, node.out) = (args, kwargs, out);
        self.next.push(NONE);
        self.prev.push(NONE);
        self.erased.push(false);
        self.users.push(Vec::new());
        self.link(anchor, id);
        let (graph, users) = (&self.graph, &mut self.users);
        graph.for_each_input(id, &mut |input: NodeId| add_user(users, input, id));
        id
    }

    fn link(&mut self, anchor: Option<NodeId>, id: NodeId) {
        let next = anchor.map_or(NONE, |a| a.0);
        let prev = anchor.map_or(self.last, |a| self.prev[a.index()]);
        self.next[id.index()] = next;
        self.prev[id.index()] = prev;
        if prev == NONE {
            self.first = id.0
        } else {
            self.next[prev as usize] = id.0
        }
        if next == NONE { self.last = id.0 } else { self.prev[next as usize] = id.0 }
    }

    fn unlink(&mut self, id: NodeId) {
        let (prev, next) = (self.prev[id.index()], self.next[id.index()]);
        if prev == NONE {
            self.first = next
        } else {
            self.next[prev as usize] = next
        }
        if next == NONE { self.last = prev } else { self.prev[next as usize] = prev }
    }

    /// Moves `id` to right before `anchor` (to the end if `None`).
    pub fn move_before(&mut self, anchor: Option<NodeId>, id: NodeId) {
        if anchor == Some(id) {
            return;
        }
        self.unlink(id);
        self.link(anchor, id);
    }

    /// Moves `id` to right after `anchor`.
    pub fn move_after(&mut self, anchor: NodeId, id: NodeId) {
        if anchor != id && self.next(anchor) != Some(id) {
            self.move_before(self.next(anchor), id);
        }
    }

    /// Removes `id` from the list. References to it become dangling when the graph is finished.
    pub fn erase(&mut self, id: NodeId) {
        if self.erased[id.index()] {
            return;
        }
        self.unlink(id);
        self.erased[id.index()] = true;
        let mut inputs = Vec::new();
        self.graph.for_each_input(id, &mut |input| inputs.push(input));
        for input in inputs {
            self.users[input.index()].retain(|&user| user != id);
        }
    }

    /// Removes several nodes at once, at the cost of one pass over the users of each of their inputs.
    pub fn erase_all(&mut self, ids: &[NodeId]) {
        let mut inputs = Vec::new();
        for &id in ids {
            if !self.erased[id.index()] {
                self.unlink(id);
                self.erased[id.index()] = true;
                self.graph.for_each_input(id, &mut |input| inputs.push(input));
            }
        }
        inputs.sort_unstable();
        inputs.dedup();
        let erased = &self.erased;
        for input in inputs {
            self.users[input.index()].retain(|user| !erased[user.index()]);
        }
    }

    /// Makes every user of `old` refer to `new` instead.
    pub fn replace_uses(&mut self, old: NodeId, new: NodeId) {
        self.replace_all(&[(old, new)]);
    }

    /// Replaces several nodes at once, each `(old, new)`: as one after the other, where no `new` is an `old` of
    /// another pair. Costs the arguments of each user once; those of a user with very many, such as the output,
    /// are indexed the first time.
    pub fn replace_all(&mut self, pairs: &[(NodeId, NodeId)]) {
        // What each user has replaced; users in order of registration.
        let mut users: IndexMap<NodeId, Vec<(NodeId, NodeId)>, FxBuildHasher> = IndexMap::default();
        for &(old, new) in pairs {
            if old != new {
                for user in std::mem::take(&mut self.users[old.index()]) {
                    users.entry(user).or_default().push((old, new));
                }
            }
        }
        for (user, pairs) in users {
            for new in self.replace_in_node(user, &pairs) {
                self.users[new.index()].push(user);
            }
        }
    }

    /// Makes `user` refer to `new` wherever it refers to `old`.
    pub fn replace_input(&mut self, user: NodeId, old: NodeId, new: NodeId) {
        let count = self.users[old.index()].len();
        if old == new {
            return;
        }
        self.users[old.index()].retain(|&u| u != user);
        if self.users[old.index()].len() == count {
            return;
        }
        for new in self.replace_in_node(user, &[(old, new)]) {
            self.users[new.index()].push(user);
        }
    }

    /// Replaces references of one node. Returns the new nodes that it did not refer to before.
    fn replace_in_node(&mut self, user: NodeId, pairs: &[(NodeId, NodeId)]) -> Vec<NodeId> {
        let node = *self.graph.node(user);
        if !self.wide.contains_key(&user) {
            let mut count = 0;
            self.graph.for_each_input(user, &mut |_| count += 1);
            if count > WIDE {
                let mut places = Places::default();
                for span in [node.args, node.kwargs] {
                    index_places(&self.graph.values, span, &mut places);
                }
                self.wide.insert(user, places);
            }
        }
        let mut found = Vec::new();
        if let Some(places) = self.wide.get_mut(&user) {
            for &(old, new) in pairs {
                let Some(moved) = places.remove(&old) else { continue };
                for &place in &moved {
                    self.graph.values[place as usize] = Value::Node(new);
                }
                let all = places.entry(new).or_insert_with(|| {
                    found.push(new);
                    Vec::new()
                });
                all.extend(moved);
            }
            return found;
        }
        for &(_, new) in pairs {
            let mut had = found.contains(&new);
            self.graph.for_each_input(user, &mut |input| had |= input == new);
            if !had {
                found.push(new);
            }
        }
        for span in [node.args, node.kwargs] {
            replace_in(&mut self.graph.values, span, pairs);
        }
        found
    }

    /// Replaces the arguments of a node.
    pub fn set_args(&mut self, id: NodeId, args: &[Value]) {
        self.wide.remove(&id);
        let mut inputs = Vec::new();
        self.graph.for_each_input(id, &mut |input| inputs.push(input));
        for input in inputs {
            self.users[input.index()].retain(|&user| user != id);
        }
        let span = self.graph.push_values(args);
        self.graph.node_mut(id).args = span;
        let (graph, users) = (&self.graph, &mut self.users);
        graph.for_each_input(id, &mut |input: NodeId| add_user(users, input, id));
    }

    /// Ends the change: a compact graph whose ids are list positions. What the erased nodes left in the arenas
    /// is dropped; a reference to one of them becomes dangling; ordering edges, renames and cluster members
    /// that name one of them are dropped.
    pub fn finish(self) -> Graph {
        self.finish_with_map().0
    }

    /// [`Editor::finish`], and the new id of each old one.
    pub fn finish_with_map(self) -> (Graph, Vec<Option<NodeId>>) {
        let list = self.list();
        compact(self.graph, &list)
    }
}

impl Graph {
    /// The graph with its nodes in the order of `list`. Nodes that `list` leaves out are dropped, and
    /// references to them become dangling.
    pub fn reordered(self, list: &[NodeId]) -> Graph {
        if list.len() == self.len() && list.is_sorted_by(|a, b| a < b) {
            return self;
        }
        compact(self, list).0
    }
}

/// The graph of the nodes in `list`, in that order, and the new id of each old one.
fn compact(mut old: Graph, list: &[NodeId]) -> (Graph, Vec<Option<NodeId>>) {
    let mut position: Vec<Option<NodeId>> = vec![None; old.len()];
    for (i, &id) in list.iter().enumerate() {
        position[id.index()] = Some(NodeId(i as u32));
    }
    let mut graph = Graph {
        name: std::mem::take(&mut old.name),
        kind: std::mem::take(&mut old.kind),
        world: std::mem::take(&mut old.world),
        symbols: std::mem::take(&mut old.symbols),
        guards: std::mem::take(&mut old.guards),
        subgraphs: std::mem::take(&mut old.subgraphs),
        facts: std::mem::take(&mut old.facts),
        extra: std::mem::take(&mut old.extra),
        strings: std::mem::take(&mut old.strings),
        targets: std::mem::take(&mut old.targets),
        target_of: std::mem::take(&mut old.target_of),
        tensors: std::mem::take(&mut old.tensors),
        outs: std::mem::take(&mut old.outs),
        dims: std::mem::take(&mut old.dims),
        exprs: std::mem::take(&mut old.exprs),
        tags: std::mem::take(&mut old.tags),
        unknown: std::mem::take(&mut old.unknown),
        nodes: Vec::with_capacity(list.len()),
        values: Vec::with_capacity(old.values.len()),
        by_name: vec![None; old.by_name.len()],
        ..Graph::default()
    };
    for &id in list {
        let mut node: Node = old.nodes[id.index()];
        node.args = copy_values(&old, &position, node.args, &mut graph.values);
        node.kwargs = copy_values(&old, &position, node.kwargs, &mut graph.values);
        graph.push_node(node);
    }
    for edge in &old.ordering {
        if let (Some(before), Some(after)) = (position[edge.before.index()], position[edge.after.index()]) {
            graph.ordering.push(super::OrderingEdge { before, after });
        }
    }
    for rename in &old.renames {
        if let (Some(by), Some(of)) = (position[rename.by.index()], position[rename.of.index()]) {
            graph.renames.push(super::Rename { by, of });
        }
    }
    for mut cluster in old.clusters {
        cluster.members = cluster.members.iter().filter_map(|m| position[m.index()]).collect();
        graph.clusters.push(cluster);
    }
    (graph, position)
}

fn add_user(users: &mut [Vec<NodeId>], input: NodeId, user: NodeId) {
    let list = &mut users[input.index()];
    // A node's references are registered together, so a repeated one is at the end.
    if list.last() != Some(&user) {
        list.push(user);
    }
}

fn replace_in(values: &mut [Value], span: Span, pairs: &[(NodeId, NodeId)]) {
    for i in span.range() {
        match values[i] {
            Value::Node(node) => {
                if let Some(&(_, new)) = pairs.iter().find(|(old, _)| *old == node) {
                    values[i] = Value::Node(new);
                }
            }
            Value::List(inner) | Value::Slice(inner) | Value::Dict(inner) => replace_in(values, inner, pairs),
            _ => {}
        }
    }
}

fn index_places(values: &[Value], span: Span, places: &mut Places) {
    for i in span.range() {
        match values[i] {
            Value::Node(node) => places.entry(node).or_default().push(i as u32),
            Value::List(inner) | Value::Slice(inner) | Value::Dict(inner) => {
                index_places(values, inner, places);
            }
            _ => {}
        }
    }
}

fn copy_values(old: &Graph, position: &[Option<NodeId>], span: Span, into: &mut Vec<Value>) -> Span {
    let mut copied = Vec::with_capacity(span.len());
    for &value in old.values(span) {
        copied.push(match value {
            Value::Node(node) => match position[node.index()] {
                Some(node) => Value::Node(node),
                None => Value::Dangling(old.nodes[node.index()].name),
            },
            Value::List(inner) => Value::List(copy_values(old, position, inner, into)),
            Value::Slice(inner) => Value::Slice(copy_values(old, position, inner, into)),
            Value::Dict(inner) => Value::Dict(copy_values(old, position, inner, into)),
            Value::Complex(inner) => Value::Complex(copy_values(old, position, inner, into)),
            other => other,
        });
    }
    let start = into.len();
    into.extend_from_slice(&copied);
    Span::of(start..into.len())
}
