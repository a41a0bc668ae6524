//! One bucket becomes one collective.
//!
//! # The procedure
//!
//! 1. The inputs are the members' inputs; casts in front of gathers and padded packing in front of
//!    reduce-scatters are taken off where the packing does the same.
//! 2. The body is written right after the last member in wait order, inputs in bucket order.
//! 3. Users of each old wait read the member's result instead; metadata behind changed layouts is renewed.
//! 4. The new nodes are marked with where they come from.
//! 5. Waits, collectives and folded casts are erased.
//! 6. The region between the body and its farthest input is sorted; what the packing has left without users
//!    is erased.
//!
//! Source: `process_collective_bucket` in `torch._inductor.fx_passes.bucketing`, PyTorch 2.15.

mod all_gather;
mod all_reduce;
mod body;
mod cast;
mod emit;
mod layout;
mod metadata;
mod moved;
mod padding;
mod propagate;
mod reduce_scatter;

pub use body::{Body, Merged, Parcel, fewer_rows, more_rows};
pub use cast::{foldable, packs_exactly, promoted};
pub use emit::{Emitter, Piece};
pub use layout::{Layout, MOST};
pub use moved::Moved;

use super::facts::Facts;
use super::member::{Group, Member, Targets};
use super::plan::{Bucket, Refusal};
use super::positions::Positions;
use super::select::Chosen;
use super::strategy::{Context, Strategy};
use crate::config::bucketing::{Config, Mode};
use crate::graph::{Editor, Graph, NodeId, Op, OrderingEdge, Tensor, Value};
use crate::ops::{Collective, Ops};
use crate::passes::repair::{self, Sorter};
use propagate::Replaced;

/// The body of a kind in a mode.
pub fn body(kind: Collective, mode: Mode) -> Body {
    match (kind, mode) {
        (Collective::AllReduce, _) => all_reduce::default,
        (Collective::ReduceScatter, Mode::Coalesced) => reduce_scatter::coalesced,
        (Collective::ReduceScatter, mode) if mode.is_custom() => reduce_scatter::custom,
        (Collective::ReduceScatter, _) => reduce_scatter::default,
        (_, Mode::Functional { .. }) => all_gather::functional,
        (_, mode) if mode.is_custom() => all_gather::custom,
        _ => all_gather::default,
    }
}

/// A node that fills the buffers behind some results without an edge to them.
#[derive(Clone, Debug)]
pub struct Filler {
    /// The node.
    pub node: NodeId,
    /// The results.
    pub results: Vec<NodeId>,
}

/// A graph on which buckets are being merged.
pub struct Merging<'a> {
    /// The graph.
    pub editor: Editor,
    /// What is asked for.
    pub config: &'a Config,
    /// Its targets.
    pub targets: Targets,
    /// Where the erased nodes' edges lead.
    pub moved: Moved,
    /// Nodes whose effect on results no edge shows.
    pub fillers: Vec<Filler>,
    /// Whether something was taken off in front of a collective that something else must follow. Then a hazard
    /// that was harmless may have closed a cycle.
    pub risky: bool,
    careful: bool,
    ops: Ops,
    facts: &'a Facts,
    positions: Positions,
    sorter: Sorter,
    last_placeholder: Option<NodeId>,
    output: Option<NodeId>,
}

impl<'a> Merging<'a> {
    /// Begins with a graph in which nothing has been merged.
    pub fn new(editor: Editor, ops: Ops, facts: &'a Facts, config: &'a Config, careful: bool) -> Merging<'a> {
        let graph = editor.graph();
        let last_placeholder = graph.ids().rev().find(|&id| graph.node(id).op == Op::Placeholder);
        Merging {
            targets: Targets::of(graph),
            positions: Positions::new(&editor),
            last_placeholder,
            output: graph.output(),
            moved: Moved::default(),
            fillers: Vec::new(),
            risky: false,
            careful,
            sorter: Sorter::default(),
            editor,
            ops,
            facts,
            config,
        }
    }

    /// What a strategy may look at.
    pub fn context(&self) -> Context<'_> {
        Context {
            editor: &self.editor,
            config: self.config,
            targets: &self.targets,
            facts: self.facts,
            careful: self.careful,
        }
    }

    /// This rank's index in a group.
    fn rank(&self, member: &Member) -> Result<i64, Refusal> {
        let graph = self.editor.graph();
        let group = match member.group {
            Group::Name(name) => graph.world.group(graph.text(name)),
            Group::Node(node) => graph.group_of(&graph.world, node, member.group_size),
        };
        let name = group.map_or(member.group.name(graph), |group| &group.name);
        let recorded = group.and_then(|group| group.recorded_rank);
        let ranks = &self.config.rank;
        let named = ranks.by_group.get(name).copied();
        let rank = named.or(ranks.all).or(recorded).unwrap_or(0);
        match member.group_size {
            Some(size) if i64::from(rank) >= size => {
                Err(Refusal::Rank { group: name.to_string(), rank, size })
            }
            _ => Ok(i64::from(rank)),
        }
    }

    /// Merges one bucket.
    pub fn merge(&mut self, strategy: &dyn Strategy, chosen: &Chosen) -> Result<Bucket, Refusal> {
        // An earlier bucket may have replaced what a member takes.
        let graph = self.editor.graph();
        let now = |member: &Member| Member { input: input_of(graph, member), ..member.clone() };
        let members: &[Member] = &chosen.members.iter().map(now).collect::<Vec<_>>();
        let Some(first) = members.first() else { return Err(self.impossible(chosen)) };
        let taken = self.take_inputs(strategy, members).ok_or_else(|| self.impossible(chosen))?;
        let parcel = Parcel {
            dtypes: members.iter().map(|m| m.dtype).collect(),
            group_size: first.group_size.unwrap_or(1),
            group: first.group.value(),
            reduce_op: first.reduce_op.map_or(Value::None, Value::Str),
            rank: if first.kind == Collective::AllGather { self.rank(first)? } else { 0 },
            mode: self.config.mode,
            inputs: taken.inputs,
            shapes: taken.shapes,
            unpadded: taken.unpadded,
        };
        let anchor = strategy.anchor(&self.context(), members);
        let wait_anchor = strategy.wait_anchor(&self.context(), members);
        let body = strategy.body(first.kind, self.config.mode);
        let mut emitter = Emitter::new(&mut self.editor, anchor);
        let merged = body(&mut emitter, &parcel);
        let mut nodes = emitter.into_nodes();
        let Some(mut merged) = merged.filter(|merged| merged.outs.len() == members.len()) else {
            return Err(self.impossible(chosen));
        };
        self.positions.inserted(&self.editor, &nodes);
        if self.redirect(strategy, members, &merged) {
            let copies = self.make_contiguous(&mut merged);
            self.positions.inserted(&self.editor, &copies);
            nodes.extend(copies);
        }
        if let Some(at) = wait_anchor {
            self.move_waits(&nodes, &merged, at);
        }
        let starts: Vec<NodeId> = members.iter().map(|m| m.start).collect();
        if strategy.keeps_metadata() {
            metadata::mark(&mut self.editor, &starts, &nodes, merged.start);
        }
        let graph = self.editor.graph();
        let name = |&id: &NodeId| graph.name(id).to_string();
        let bucket = Bucket {
            kind: first.kind,
            key: chosen.key.describe(graph),
            members: starts.iter().map(name).collect(),
            bytes: chosen.bytes,
            collective: name(&merged.start),
            waits: merged.waits.iter().map(name).collect(),
        };
        for (i, member) in members.iter().enumerate() {
            // Its own buffer is no argument any more, but what made the buffer may be what orders the packing.
            if let Some(out) = member.out.filter(|&out| !self.editor.graph().inputs(out).is_empty()) {
                let edge = OrderingEdge { before: out, after: merged.packer(i) };
                self.editor.graph_mut().ordering.push(edge);
            }
        }
        let mut gone: Vec<NodeId> = Vec::new();
        for (i, member) in members.iter().enumerate() {
            let wait = merged.waits.get(i).or(merged.waits.first()).copied().unwrap_or(merged.start);
            self.moved.wait(member.wait, wait);
            self.moved.start(member.start, merged.start, merged.packer(i));
            gone.extend([member.wait, member.start]);
        }
        for &(cast, member) in &taken.casts {
            self.risky |= self.facts.is_awaited(cast);
            self.moved.start(cast, merged.start, merged.packer(member));
            gone.push(cast);
        }
        self.editor.erase_all(&gone);
        if let Some(node) = merged.filler {
            let results = merged.outs.iter().map(|out| out.id).collect();
            self.fillers.push(Filler { node, results });
        }
        if strategy.sorts_regions() {
            let mut inputs: Vec<NodeId> = parcel.inputs.iter().map(|x| x.id).collect();
            if let Value::Node(group) = parcel.group {
                inputs.push(group);
            }
            self.sort_region(&nodes, &inputs);
        }
        self.erase_dead(taken.packing, &merged);
        Ok(bucket)
    }

    fn impossible(&self, chosen: &Chosen) -> Refusal {
        let graph = self.editor.graph();
        let names: Vec<&str> = chosen.members.iter().map(|m| graph.name(m.start)).collect();
        Refusal::Body { members: names.join(", ") }
    }

    /// What goes into the body.
    fn take_inputs(&self, strategy: &dyn Strategy, members: &[Member]) -> Option<Taken> {
        let (cx, graph) = (self.context(), self.editor.graph());
        let piece = |id: NodeId| Layout::of(graph, id).map(|layout| Piece { id, layout });
        let mut taken = Taken {
            inputs: members.iter().map(|m| piece(m.input)).collect::<Option<_>>()?,
            shapes: Vec::new(),
            casts: Vec::new(),
            unpadded: Vec::new(),
            packing: Vec::new(),
        };
        taken.shapes = taken.inputs.iter().map(|x| x.layout.shape.clone()).collect();
        let first = members.first()?;
        if first.kind == Collective::AllGather {
            let mut inputs = taken.inputs.clone();
            for (i, member) in members.iter().enumerate() {
                if let Some((cast, from)) = strategy.foldable(&cx, member)
                    && let Some(from) = piece(from)
                {
                    inputs[i] = from;
                    taken.casts.push((cast, i));
                }
            }
            let folds = !taken.casts.is_empty();
            if folds && strategy.packs_exactly(self.config.mode, &inputs, first.dtype) {
                taken.inputs = inputs;
            } else {
                taken.casts.clear();
            }
        } else if first.kind == Collective::ReduceScatter && self.config.mode.is_custom() {
            for (i, member) in members.iter().enumerate() {
                let found = padding::find(&self.editor, member.input, member.group_size?);
                if let Some(packing) = found.filter(|packing| self.can_unpack(packing, member.start))
                    && let Some(source) = piece(packing.source)
                {
                    taken.inputs[i] = source;
                    taken.unpadded.push(i);
                    taken.packing.extend(packing.nodes.iter().map(|&id| (id, i)));
                }
            }
        }
        Some(taken)
    }

    /// Copies results that are not contiguous, as those of one row per rank are not; users behind them view them in
    /// ways that only a contiguous tensor allows. (PyTorch 2.15 leaves such a view to fail.)
    fn make_contiguous(&mut self, merged: &mut Merged) -> Vec<NodeId> {
        let mut copies = Vec::new();
        let mut replaced = Vec::new();
        for out in merged.outs.iter_mut().filter(|out| !out.layout.is_contiguous()) {
            let after = self.editor.next(out.id);
            let mut emitter = Emitter::new(&mut self.editor, after);
            let copy = emitter.contiguous(out);
            copies.extend(emitter.into_nodes());
            self.editor.replace_uses(out.id, copy.id);
            // The copy alone goes on reading the result.
            self.editor.set_args(copy.id, &[Value::Node(out.id)]);
            if let Some(old) = self.editor.graph().tensor_of(out.id).copied() {
                replaced.push(Replaced { old, new: copy.id });
            }
            *out = copy;
        }
        propagate::propagate(&mut self.editor, &mut self.ops, &replaced);
        copies
    }

    /// Users of the old waits read the new results. Returns whether some node cannot take a result's layout.
    fn redirect(&mut self, strategy: &dyn Strategy, members: &[Member], merged: &Merged) -> bool {
        let old = |id: NodeId, editor: &Editor| -> Option<Tensor> { editor.graph().tensor_of(id).copied() };
        let mut replaced = Vec::new();
        for (member, out) in members.iter().zip(&merged.outs) {
            replaced.extend(old(member.wait, &self.editor).map(|old| Replaced { old, new: out.id }));
        }
        let pairs: Vec<(NodeId, NodeId)> =
            members.iter().zip(&merged.outs).map(|(member, out)| (member.wait, out.id)).collect();
        self.editor.replace_all(&pairs);
        strategy.keeps_metadata() && propagate::propagate(&mut self.editor, &mut self.ops, &replaced)
    }

    /// Moves everything from the first wait on to before a node.
    fn move_waits(&mut self, nodes: &[NodeId], merged: &Merged, at: NodeId) {
        let from = nodes.iter().position(|id| merged.waits.contains(id)).unwrap_or(nodes.len());
        for &id in &nodes[from..] {
            self.editor.move_before(Some(at), id);
        }
        self.positions.inserted(&self.editor, &nodes[from..]);
    }

    /// Sorts the smallest slice of the list that holds the new nodes and those of their inputs that lie behind the
    /// placeholders and before the output.
    fn sort_region(&mut self, nodes: &[NodeId], inputs: &[NodeId]) {
        let (Some(&head), Some(&tail)) = (nodes.first(), nodes.last()) else { return };
        let at = |id: NodeId| self.positions.of(id);
        let from = self.placeholder_before(at(head));
        let until = self.output.map_or(u64::MAX, at);
        let (mut first, mut last) = (head, tail);
        for &input in inputs {
            // New nodes have the highest ids.
            if self.editor.is_erased(input) || input >= head {
                continue;
            }
            if at(input) < at(first) && at(input) > from {
                first = input;
            } else if at(input) > at(last) && at(input) < until {
                last = input;
            }
        }
        if first == last {
            return;
        }
        let before = self.editor.prev(first);
        let end = at(last);
        let region: Vec<NodeId> = std::iter::successors(Some(first), |&id| self.editor.next(id))
            .take_while(|&id| at(id) <= end)
            .collect();
        // A cycle shows in the final sort.
        if repair::sort_region(&mut self.editor, &mut self.sorter, &region).is_ok() {
            let first = before.map_or(self.editor.first(), |id| self.editor.next(id));
            if let Some(first) = first {
                self.positions.permuted(&self.editor, first, region.len());
            }
        }
    }

    /// The position of the last placeholder before a position.
    fn placeholder_before(&self, position: u64) -> u64 {
        let at = |id: NodeId| self.positions.of(id);
        match self.last_placeholder {
            None => 0,
            Some(last) if at(last) < position => at(last),
            // Placeholders in the middle of the list.
            Some(_) => {
                let graph = self.editor.graph();
                let placeholders = graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder);
                placeholders.map(at).filter(|&p| p < position).max().unwrap_or(0)
            }
        }
    }

    /// Erases packing nodes that nothing uses any more, from the end of the list.
    fn erase_dead(&mut self, mut packing: Vec<(NodeId, usize)>, merged: &Merged) {
        packing.sort_unstable_by_key(|&(id, _)| std::cmp::Reverse(self.positions.of(id)));
        packing.dedup_by_key(|&mut (id, _)| id);
        for (id, member) in packing {
            if self.editor.users(id).is_empty() {
                self.risky |= self.facts.is_awaited(id);
                self.moved.start(id, merged.start, merged.packer(member));
                self.editor.erase(id);
            }
        }
    }

    /// Whether packing nodes may be passed over: what must come before or after them has to hold for the merged
    /// packing too, which it cannot if they stay for the sake of other users.
    fn can_unpack(&self, packing: &padding::Packing, start: NodeId) -> bool {
        packing.nodes.iter().all(|&id| {
            let inside = |user: &NodeId| *user == start || packing.nodes.contains(user);
            let stays = !self.editor.users(id).iter().all(inside);
            !(self.careful && self.facts.is_awaited(id) || stays && self.facts.has_hazards(id))
        })
    }
}

/// What a member sends, as the graph stands.
fn input_of(graph: &Graph, member: &Member) -> NodeId {
    match graph.argument(member.start, 0, "input") {
        Some(Value::Node(input)) => input,
        _ => member.input,
    }
}

/// What goes into one body, and what becomes superfluous.
struct Taken {
    inputs: Vec<Piece>,
    shapes: Vec<Vec<i64>>,
    /// Folded casts, with the member that each was in front of.
    casts: Vec<(NodeId, usize)>,
    unpadded: Vec<usize>,
    /// Packing nodes that may become superfluous, with the member that each is in front of.
    packing: Vec<(NodeId, usize)>,
}
