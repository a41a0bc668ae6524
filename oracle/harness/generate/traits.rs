//! How collectives of one graph depend on each other, and sequences that repeat.
//!
//! One sweep in list order carries for each value a set of marks: which kinds and groups it has waited for, and by
//! which sorts of edges their values came. A storage carries the marks of what was written into it.

use super::features::{Feature, Features};
use crate::analysis::{Collectives, Edges, GroupName};
use crate::graph::{Graph, NodeId, Op, Span, Value};
use crate::ops::{Collective, Kind, Matmul, Ops};

const WAITED: u32 = 1;
const COMPUTED: u32 = 1 << 1;
const LIST: u32 = 1 << 2;
const KEYWORD: u32 = 1 << 3;
const VIEW: u32 = 1 << 4;
const ORDERING: u32 = 1 << 5;
const GATHERED_PRODUCT: u32 = 1 << 6;
const PRODUCT: u32 = 1 << 7;
const GATHERED: u32 = 1 << 8;
/// Three bits for kinds.
const KINDS: u32 = 9;
/// The rest for groups.
const GROUPS: u32 = 12;

/// Operators in a repeated sequence, at least and at most.
const PERIODS: std::ops::Range<usize> = 4..16;

pub(super) struct Traits<'a> {
    graph: &'a Graph,
    ops: &'a Ops,
    edges: &'a Edges,
    collectives: &'a Collectives<'a>,
    /// Marks by node.
    marks: Vec<u32>,
    /// The first node on the same storage.
    root: Vec<NodeId>,
    /// Marks of what was written into a storage, by first node.
    written: Vec<u32>,
    found: Features,
}

impl<'a> Traits<'a> {
    pub fn new(
        graph: &'a Graph,
        ops: &'a Ops,
        edges: &'a Edges,
        collectives: &'a Collectives<'a>,
    ) -> Traits<'a> {
        let n = graph.len();
        let mut traits = Traits {
            graph,
            ops,
            edges,
            collectives,
            marks: vec![0; n],
            root: graph.ids().collect(),
            written: vec![0; n],
            found: Features::default(),
        };
        for id in graph.ids() {
            traits.node(id);
        }
        traits.repeated();
        let mut aliases = vec![0u32; n];
        // A wait hands on what its collective gave.
        let holds = |&id: &NodeId| !matches!(traits.kind(id), Some(Kind::Collective(_)));
        for id in graph.ids().filter(holds) {
            aliases[traits.root[id.index()].index()] += 1;
        }
        traits.found.add_if(Feature::Aliases, aliases.iter().any(|&count| count >= 3));
        traits
    }

    pub fn report(self, features: &mut Features) {
        self.found.iter().for_each(|feature| features.add(feature));
    }

    fn kind(&self, id: NodeId) -> Option<Kind> {
        self.ops.call(self.graph, id).map(|info| info.kind)
    }

    fn node(&mut self, id: NodeId) {
        let mut marks = 0;
        for &input in self.edges.inputs(id).iter().filter(|&&input| input < id) {
            marks |= self.marks[input.index()];
        }
        let node = self.graph.node(id);
        if marks & WAITED != 0 {
            marks |= self.in_lists(node.args) | self.in_lists(node.kwargs);
            if !node.kwargs.is_empty() && self.in_keywords(id) {
                marks |= KEYWORD;
            }
        }
        for &before in self.edges.ordered_before(id).iter().filter(|&&before| before < id) {
            if self.marks[before.index()] & WAITED != 0 {
                marks |= self.marks[before.index()] | ORDERING;
            }
        }
        let Some(info) = self.ops.call(self.graph, id) else { return };
        match info.kind {
            Kind::View(_) | Kind::GetItem => {
                marks |= VIEW;
                if (info.is_view() || info.kind == Kind::GetItem)
                    && let Some(&base) = self.edges.inputs(id).first()
                {
                    self.root[id.index()] = self.root[base.index()];
                }
            }
            Kind::Wait => {
                self.waited(id);
                return;
            }
            Kind::Collective(kind) => {
                self.collective(id, kind, marks);
                return;
            }
            Kind::Matmul(Matmul::Mm) => {
                marks |= PRODUCT | COMPUTED;
                self.found_product(marks);
            }
            _ => marks |= COMPUTED,
        }
        if info.writes() {
            // What is written comes last, what is written to first.
            let mut targets = Vec::new();
            self.targets(self.graph.node(id).args, &mut targets);
            for &target in &targets {
                let root = self.root[target.index()];
                self.written[root.index()] |= marks;
                if info.schema.as_ref().is_some_and(|schema| !schema.returns.is_empty()) {
                    self.root[id.index()] = root;
                }
            }
        }
        self.marks[id.index()] = marks;
    }

    /// The nodes of the first argument.
    fn targets(&self, args: Span, into: &mut Vec<NodeId>) {
        match self.graph.values(args).first() {
            Some(&Value::Node(node)) => into.push(node),
            Some(&Value::List(list)) => {
                into.extend(self.graph.values(list).iter().filter_map(|value| match value {
                    Value::Node(node) => Some(*node),
                    _ => None,
                }));
            }
            _ => {}
        }
    }

    fn in_lists(&self, span: Span) -> u32 {
        let marked = self.graph.values(span).iter().any(|&value| match value {
            Value::List(list) => self.graph.values(list).iter().any(|&value| self.is_waited(value)),
            _ => false,
        });
        if marked { LIST } else { 0 }
    }

    fn in_keywords(&self, id: NodeId) -> bool {
        self.graph.kwargs(id).any(|(_, value)| self.is_waited(value))
    }

    fn is_waited(&self, value: Value) -> bool {
        matches!(value, Value::Node(node) if self.marks[node.index()] & WAITED != 0)
    }

    fn waited(&mut self, id: NodeId) {
        let Some(&of) = self.edges.inputs(id).first() else { return };
        self.root[id.index()] = self.root[of.index()];
        let mut marks = WAITED;
        if let Some(launch) = self.collectives.launch_of_value(of) {
            let call = &self.collectives.calls[launch];
            marks |= match call.kind {
                Collective::AllGather => GATHERED | 1 << KINDS,
                Collective::ReduceScatter => 1 << (KINDS + 1),
                Collective::AllReduce => 1 << (KINDS + 2),
                _ => 0,
            };
            marks |= self.group_bit(call.group);
        }
        self.marks[id.index()] = marks;
    }

    fn group_bit(&self, group: GroupName) -> u32 {
        let GroupName::Text(name) = group else { return 0 };
        let index = self.graph.world.groups.iter().position(|g| g.name == name);
        index.map_or(0, |index| 1u32.checked_shl(GROUPS + index as u32).unwrap_or(0))
    }

    fn found_product(&mut self, marks: u32) {
        if marks & GATHERED != 0 {
            // Kept for all later products: a graph that has both is one of sharded layers.
            self.written.iter_mut().take(1).for_each(|w| *w |= GATHERED_PRODUCT);
        }
    }

    fn collective(&mut self, id: NodeId, kind: Collective, marks: u32) {
        let Some(launch) = self.collectives.launch_at(id) else { return };
        let call = &self.collectives.calls[launch];
        if let Some(out) = call.out.or(if call.in_place { call.inputs.first().copied() } else { None }) {
            self.root[id.index()] = self.root[out.index()];
        }
        let candidate =
            matches!(kind, Collective::AllGather | Collective::ReduceScatter | Collective::AllReduce);
        if !candidate || call.coalesced || call.in_place {
            return;
        }
        let found = &mut self.found;
        if marks & WAITED != 0 {
            found.add_if(Feature::Dependent, marks & COMPUTED != 0);
            found.add_if(Feature::DirectlyDependent, marks & (COMPUTED | VIEW) == 0);
            found.add_if(Feature::ThroughList, marks & LIST != 0);
            found.add_if(Feature::ThroughKeyword, marks & KEYWORD != 0);
            found.add_if(Feature::ThroughView, marks & VIEW != 0);
            found.add_if(Feature::ThroughOrdering, marks & ORDERING != 0);
            let own = match kind {
                Collective::ReduceScatter => 1 << (KINDS + 1),
                Collective::AllReduce => 1 << (KINDS + 2),
                _ => 1 << KINDS,
            };
            let kinds = 7 << KINDS;
            found.add_if(Feature::AcrossKinds, marks & kinds & !own != 0);
        }
        let own = self.group_bit(call.group);
        let groups = !0u32 << GROUPS;
        self.found.add_if(Feature::AcrossGroups, marks & WAITED != 0 && marks & groups & !own != 0);
        if let Some(&input) = call.inputs.first() {
            let written = self.written[self.root[input.index()].index()];
            self.found.add_if(Feature::ThroughMemory, written & WAITED != 0 && marks & WAITED == 0);
        }
        let products = kind == Collective::ReduceScatter && marks & PRODUCT != 0;
        let sharded = products && self.written.first().is_some_and(|w| w & GATHERED_PRODUCT != 0);
        self.found.add_if(Feature::ShardedLayers, sharded);
    }

    /// Sequences of operators that occur twice in a row.
    fn repeated(&mut self) {
        let calls: Vec<NodeId> = self.graph.ids().filter(|&id| self.graph.node(id).op == Op::Call).collect();
        for period in PERIODS {
            let mut same = 0;
            for i in period..calls.len() {
                let (a, b) = (self.graph.node(calls[i - period]), self.graph.node(calls[i]));
                same = if a.target == b.target { same + 1 } else { 0 };
                if same >= period {
                    let collective = |&id: &NodeId| matches!(self.kind(id), Some(Kind::Collective(_)));
                    let layer = &calls[i + 1 - period..=i];
                    let kinds = layer.iter().any(|&id| self.graph.node(id).target != a.target);
                    if layer.iter().any(collective) && kinds {
                        self.found.add(Feature::IdenticalLayers);
                        return;
                    }
                }
            }
        }
    }
}
