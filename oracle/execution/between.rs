//! Which operators stand between the inputs of a graph and what it gives: what an equality or a difference of numbers
//! rests on.
//!
//! Everything here may take too much for being on the way, never too little: whoever writes to memory is on the way of
//! everybody who reads it, before or after.

use super::compare::{Place, output_node};
use super::hash::{self, mix, words};
use super::program::{Action, Program, Step, stated};
use super::run::{Digest, RankRun};
use crate::definitions::held;
use crate::graph::{Dim, NodeId, Tensor, Value};
use crate::ops::{Collective, Kind, OpInfo, Random};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// What leads where in one graph.
pub(super) struct Ways<'p, 'g> {
    program: &'p Program<'g>,
    /// For each node one that stands for all with which it may share memory.
    memory: Vec<u32>,
    writers: FxHashMap<u32, Vec<NodeId>>,
    /// Which values are made of what is drawn.
    drawn: Vec<bool>,
    /// The calls of which nothing is known, so that each may depend on those before it.
    unknown: Vec<NodeId>,
}

/// A call by its operator, by its operator with its constants, and by the values of its tensors.
type Given = (u64, u64, Vec<u64>);

/// Whether numbers draw what a step gives, since the oracle does not compute it. What is drawn at random is no such
/// function where the draw is an input.
fn is_drawn(step: &Step) -> bool {
    let is_view = step.info.is_some_and(|info| info.is_view() || info.is_given_its_draw());
    match step.action {
        Action::Call(
            Kind::Opaque
            | Kind::Unknown
            | Kind::Pointwise
            | Kind::Random(Random::Like | Random::Opaque | Random::Attention),
        ) => !is_view,
        Action::Communicate(Collective::Other, _) => true,
        _ => false,
    }
}

/// Whether a step may have thresholds that random numbers do not meet.
fn has_thresholds(step: &Step) -> bool {
    match step.action {
        Action::Call(kind) => !kind.is_polynomial() || is_drawn(step),
        _ => is_drawn(step),
    }
}

impl<'p, 'g> Ways<'p, 'g> {
    pub(super) fn new(program: &'p Program<'g>) -> Ways<'p, 'g> {
        let graph = program.graph;
        let count = graph.len();
        let mut this = Ways {
            program,
            memory: (0..count as u32).collect(),
            writers: FxHashMap::default(),
            drawn: vec![false; count],
            unknown: Vec::new(),
        };
        let mut inputs: FxHashMap<u32, NodeId> = FxHashMap::default();
        for node in graph.ids() {
            let Some(step) = program.steps.get(node.index()) else { continue };
            if let Action::Input(index) = step.action {
                let first = *inputs.entry(index).or_insert(node);
                this.join(first, node);
            }
            let Some(info) = step.info else { continue };
            if matches!(info.kind, Kind::GetItem | Kind::Wait) {
                graph.for_each_input(node, &mut |input| this.join(input, node));
            }
            let declared = info.schema.iter().flat_map(|schema| schema.aliases());
            for (_, param) in declared.chain(info.undeclared_aliases().iter().copied()) {
                this.given(node, info, param).into_iter().for_each(|input| this.join(input, node));
            }
        }
        for node in graph.ids() {
            let Some(step) = program.steps.get(node.index()) else { continue };
            let Some(info) = step.info else { continue };
            this.unknown.extend((info.kind == Kind::Unknown).then_some(node));
            let mut is_drawn = is_drawn(step);
            graph.for_each_input(node, &mut |input| is_drawn |= this.is_drawn(input));
            this.drawn[node.index()] |= is_drawn;
            for param in info.written(graph, node) {
                for written in this.given(node, info, param) {
                    let root = this.root(written);
                    this.writers.entry(root).or_default().push(node);
                    this.drawn[root as usize] |= is_drawn;
                }
            }
        }
        this
    }

    /// For each node whether it is computed from constants alone: its values are the same in every run.
    pub(super) fn constants(&self) -> Vec<bool> {
        let graph = self.program.graph;
        let mut constant = vec![false; graph.len()];
        for node in graph.ids() {
            let Some(step) = self.program.steps.get(node.index()) else { continue };
            let (Action::Call(kind), Some(info)) = (step.action, step.info) else { continue };
            let is_computed = !is_drawn(step)
                && !matches!(
                    kind,
                    Kind::Random(_) | Kind::Effect | Kind::Resize | Kind::Sync(_) | Kind::Wait
                )
                && !self.writers.contains_key(&self.root(node));
            let inputs = self.inputs(node);
            let is_shape = info.schema.as_ref().is_some_and(|schema| kind.only_shape_of_first(schema));
            let is_constant = |input: &NodeId| constant.get(input.index()) == Some(&true);
            constant[node.index()] =
                is_computed && inputs[usize::from(is_shape).min(inputs.len())..].iter().all(is_constant);
        }
        constant
    }

    /// The nodes given for a parameter.
    fn given(&self, node: NodeId, info: &OpInfo, param: usize) -> Vec<NodeId> {
        let graph = self.program.graph;
        let name = info.schema.as_ref().and_then(|schema| schema.params.get(param)).map(|param| &param.name);
        let value = graph.argument(node, param, name.map_or("", String::as_str));
        match value {
            Some(Value::Node(node)) => vec![node],
            Some(Value::List(span)) => {
                let nodes = graph.values(span).iter().filter_map(|value| match value {
                    Value::Node(node) => Some(*node),
                    _ => None,
                });
                nodes.collect()
            }
            _ => Vec::new(),
        }
    }

    fn root(&self, node: NodeId) -> u32 {
        let mut at = node.0;
        while let Some(&next) = self.memory.get(at as usize).filter(|&&next| next != at) {
            at = next;
        }
        at
    }

    fn join(&mut self, a: NodeId, b: NodeId) {
        let (a, b) = (self.root(a), self.root(b));
        if let Some(of) = self.memory.get_mut(a.max(b) as usize) {
            *of = a.min(b);
        }
    }

    fn is_drawn(&self, node: NodeId) -> bool {
        let is_drawn = |at: u32| self.drawn.get(at as usize).copied().unwrap_or(false);
        is_drawn(node.0) || is_drawn(self.root(node))
    }

    /// Whether anything is drawn.
    pub(super) fn draws(&self) -> bool {
        self.drawn.contains(&true)
    }

    /// All nodes on the way to what lies at a place, in list order.
    pub(super) fn to(&self, place: &Place) -> Vec<NodeId> {
        let graph = self.program.graph;
        let open: Vec<NodeId> = match place {
            Place::Output(path) => output_node(graph, path).into_iter().collect(),
            Place::Input(name) => self
                .program
                .inputs
                .iter()
                .filter(|input| input.name == *name)
                .map(|input| input.node)
                .collect(),
            Place::Effect(_) | Place::World => graph.ids().collect(),
        };
        self.behind(open)
    }

    /// The inputs that what lies at a place may depend on, by their position.
    pub(super) fn inputs_to(&self, place: &Place) -> BTreeSet<u32> {
        let input = |node: NodeId| match self.program.steps.get(node.index())?.action {
            Action::Input(index) => Some(index),
            _ => None,
        };
        self.to(place).into_iter().filter_map(input).collect()
    }

    /// Whether everything on the way to a place is computed.
    pub(super) fn computes(&self, place: &Place) -> bool {
        self.uncertain(&self.to(place), &[]).is_empty()
    }

    /// Whether random numbers are drawn on the way to a place. Which draw of one graph is which of the other is another
    /// matter.
    pub(super) fn draws_at_random(&self, place: &Place) -> bool {
        let is_random = |node: &NodeId| {
            let info = self.program.steps.get(node.index()).and_then(|step| step.info);
            info.is_some_and(|info| info.is_random() || info.is_given_its_draw())
        };
        self.to(place).iter().any(is_random)
    }

    /// Why numbers that differ at a place convict nobody where random operators draw in place of others on the way there:
    /// nobody knows which numbers of one are which of the other.
    pub(super) fn replaced_draws(sides: [&Ways; 2], place: &Place) -> Option<String> {
        let drawn = sides.map(|side| {
            let mut drawn: BTreeMap<u64, Vec<NodeId>> = BTreeMap::new();
            for node in side.to(place) {
                let is_draw = side.program.draws.of(node).is_some();
                let Some(step) = side.program.steps.get(node.index()).filter(|_| is_draw) else { continue };
                let operator = match step.action {
                    Action::Call(Kind::Random(random)) if !is_drawn(step) => random as u64,
                    _ => mix(1, step.key),
                };
                drawn.entry(operator).or_default().push(node);
            }
            drawn
        });
        let more = |side: usize| {
            let others = |operator: &u64| drawn[1 - side].get(operator).map_or(0, Vec::len);
            let more = drawn[side].iter().find(|(operator, nodes)| nodes.len() > others(operator));
            more.and_then(|(_, nodes)| nodes.first()).map(|&node| sides[side].words(node))
        };
        Some(format!("concrete values differ where {} draws in place of {}", more(1)?, more(0)?))
    }

    /// Some nodes and all that they depend on, in list order.
    fn behind(&self, mut open: Vec<NodeId>) -> Vec<NodeId> {
        let graph = self.program.graph;
        let mut seen: FxHashSet<NodeId> = open.iter().copied().collect();
        while let Some(node) = open.pop() {
            let mut add = |node: NodeId| {
                if node.index() < graph.len() && seen.insert(node) {
                    open.push(node);
                }
            };
            graph.for_each_input(node, &mut add);
            self.writers.get(&self.root(node)).into_iter().flatten().for_each(|&writer| add(writer));
            if let Ok(at @ 1..) = self.unknown.binary_search(&node) {
                add(self.unknown[at - 1]);
            }
        }
        let mut all: Vec<NodeId> = seen.into_iter().collect();
        all.sort_unstable();
        all
    }

    /// The calls among some nodes of which numbers show nothing but what they are given: those that are drawn, and
    /// those with thresholds that are made of drawn values. Each kind of call (operator, constants, sizes of its
    /// inputs) with its nodes; of calls that give one value, the first.
    fn uncertain(&self, nodes: &[NodeId], trace: &[Digest]) -> FxHashMap<u64, Vec<NodeId>> {
        let mut all: FxHashMap<u64, Vec<NodeId>> = FxHashMap::default();
        let mut seen = FxHashSet::default();
        for &node in nodes {
            let Some(step) = self.program.steps.get(node.index()) else { continue };
            let is_uncertain = is_drawn(step) || has_thresholds(step) && self.is_drawn(node);
            if !is_uncertain {
                continue;
            }
            let call = self.call(node, step);
            let value = trace.get(node.index()).map(|digest| digest.hash);
            if value.is_none_or(|value| seen.insert((call, value))) {
                all.entry(call).or_default().push(node);
            }
        }
        all
    }

    /// A hash of a call without the values of its tensors.
    fn call(&self, node: NodeId, step: &Step) -> u64 {
        let graph = self.program.graph;
        let rank = match step.info.and_then(OpInfo::whole) {
            Some(whole) => match graph.argument(node, whole, "input_sizes") {
                Some(Value::List(span)) => Some(span.len()),
                _ => None,
            },
            None => match graph.arg(node, 0) {
                Some(Value::Node(first)) => {
                    graph.tensor_of(first).map(|tensor| graph.dims(tensor.shape).len())
                }
                _ => None,
            },
        };
        let rank = rank.map(|rank| rank as i64);
        let mut key = step.key;
        for (param, value) in stated(graph, node, step.info) {
            let counted = step.info.zip(rank).filter(|(info, _)| info.counts_dims(param as usize));
            key = match (counted, self.ints(value)) {
                (Some((info, rank)), Some(dims)) => match info.dims_counted(param as usize, dims, rank) {
                    Some(dims) => words(mix(key, param), dims.into_iter().map(|dim| dim as u64)),
                    None => key,
                },
                _ => mix(mix(key, param), self.value(value)),
            };
        }
        key
    }

    fn ints(&self, value: Value) -> Option<Vec<i64>> {
        match value {
            Value::None => Some(Vec::new()),
            Value::Int(n) => Some(vec![n]),
            Value::List(span) => {
                let ints = self.program.graph.values(span).iter().map(|value| match value {
                    Value::Int(n) => Some(*n),
                    _ => None,
                });
                ints.collect()
            }
            _ => None,
        }
    }

    /// A hash of an argument: of a tensor its dtype and sizes.
    fn value(&self, value: Value) -> u64 {
        let graph = self.program.graph;
        let tensor = |tensor: &Tensor| {
            let sizes = graph.dims(tensor.shape).iter().map(|dim: &Dim| dim.known().map_or(0, |n| n as u64));
            words(mix(1, tensor.dtype as u64), sizes)
        };
        match value {
            Value::Node(node) => graph.tensor_of(node).map_or(2, tensor),
            Value::List(span) | Value::Dict(span) | Value::Slice(span) | Value::Complex(span) => {
                let values = graph.values(span);
                words(mix(3, values.len() as u64), values.iter().map(|&value| self.value(value)))
            }
            Value::Bool(b) => mix(4, u64::from(b)),
            Value::Int(n) => mix(5, n as u64),
            Value::Float(x) => mix(6, x.to_bits()),
            Value::Str(text) | Value::Function(text) | Value::MemoryFormat(text) | Value::Layout(text) => {
                mix(7, hash::text(graph.text(text)))
            }
            Value::Dtype(dtype) => mix(8, dtype as u64),
            Value::Symbolic(expr) => mix(9, hash::text(graph.text(graph.expr(expr).text))),
            Value::None | Value::Dangling(_) | Value::Device(_) => 10,
        }
    }

    /// A node with its operator.
    pub(super) fn words(&self, node: NodeId) -> String {
        let graph = self.program.graph;
        format!("{} ({})", graph.name(node), graph.target(node))
    }

    /// Whether anything writes to an input; `None` for another place, and where that is not known.
    fn writes_to(&self, place: &Place) -> Option<bool> {
        let Place::Input(name) = place else { return None };
        let input = self.program.inputs.iter().find(|input| input.name == *name)?;
        let root = self.root(input.node);
        let graph = self.program.graph;
        let may_write = |step: usize| {
            let is_unknown = matches!(self.program.steps[step].action, Action::Call(Kind::Unknown));
            let mut takes = false;
            graph.for_each_input(NodeId(step as u32), &mut |input| takes |= self.root(input) == root);
            is_unknown && takes
        };
        match self.writers.contains_key(&root) {
            true => Some(true),
            false => (!(0..self.program.steps.len()).any(may_write)).then_some(false),
        }
    }

    /// What is done at a place, or rather before it, that the oracle does not compute, where both graphs do not do it
    /// alike: why numbers that differ there convict nobody. `open`: whether no proof says that both are equal.
    pub(super) fn excuse(
        sides: [&Ways; 2],
        runs: [Option<&RankRun>; 2],
        place: &Place,
        open: bool,
    ) -> Option<String> {
        // Whatever an operator writes, one graph writes to the input and the other leaves it as it was.
        let [one, other] = sides.map(|side| side.writes_to(place));
        if one.zip(other).is_some_and(|(one, other)| one != other) {
            return None;
        }
        let trace = |side: usize| runs[side].map_or(&[][..], |run| &run.trace);
        let calls = [0, 1].map(|side| sides[side].uncertain(&sides[side].to(place), trace(side)));
        if open && Ways::part_at_calls(sides, runs, &calls) {
            return None;
        }
        let count = |side: usize, call: &u64| calls[side].get(call).map_or(0, Vec::len);
        // First what the graph after does: it is the one that is asked about.
        let unlike = [1, 0].into_iter().find_map(|side| {
            let unlike = calls[side].iter().filter(|(call, _)| count(0, call) != count(1, call));
            unlike.filter_map(|(_, nodes)| nodes.first()).min().map(|&node| (side, node))
        });
        let Some((side, node)) = unlike else { return Ways::may_be_a_law(sides, runs, place) };
        let (ways, which) = (sides[side], ["before", "after"][side]);
        let is_drawn = ways.program.steps.get(node.index()).is_some_and(is_drawn);
        let what = match is_drawn {
            true => "which the oracle does not compute",
            false => "which takes what the oracle does not compute",
        };
        let other = match count(1 - side, &ways.call(node, ways.program.steps.get(node.index())?)) {
            0 => "and which the other graph does not call so",
            _ => "and which the other graph calls another number of times",
        };
        Some(format!(
            "concrete values differ behind {} of the graph {which}, {what}, {other}",
            ways.words(node)
        ))
    }

    /// Whether uncertain calls are the same on both sides, but for those that are given what both sides have, and these
    /// are of the same operators: with other constants, or with other ones of these tensors. A function of which nothing is
    /// known depends on both; but it may take its operands in any order. Of one that is defined the definition says that.
    fn part_at_calls(
        sides: [&Ways; 2],
        runs: [Option<&RankRun>; 2],
        calls: &[FxHashMap<u64, Vec<NodeId>>; 2],
    ) -> bool {
        let (Some(before), Some(after)) = (runs[0], runs[1]) else { return false };
        let traces = [&before.trace, &after.trace];
        let values = traces.map(|trace| trace.iter().map(|digest| digest.hash).collect::<FxHashSet<u64>>());
        // Calls that are given what the other side has, by operator, constants and tensors in their order; how often each
        // other call is made.
        let mut given: [BTreeMap<Given, NodeId>; 2] = Default::default();
        let mut unlike: [BTreeMap<u64, i64>; 2] = Default::default();
        for side in [0, 1] {
            for (&call, nodes) in &calls[side] {
                for &node in nodes {
                    let Some(step) = sides[side].program.steps.get(node.index()) else { return false };
                    let graph = sides[side].program.graph;
                    let hash = |of: &NodeId| Some(traces[side].get(of.index())?.hash);
                    // What is no tensor, such as a body, is a constant.
                    let (tensors, others): (Vec<_>, Vec<_>) =
                        sides[side].inputs(node).into_iter().partition(|&of| graph.tensor_of(of).is_some());
                    let constants = words(call, others.iter().filter_map(hash));
                    let tensors: Option<Vec<u64>> = tensors.iter().map(hash).collect();
                    let is_known =
                        |tensors: &Vec<u64>| tensors.iter().all(|of| values[1 - side].contains(of));
                    match tensors.filter(is_known) {
                        Some(tensors) => {
                            given[side].entry((step.key, constants, tensors)).or_insert(node);
                        }
                        None => *unlike[side].entry(call).or_default() += 1,
                    }
                }
            }
        }
        let alone = [0, 1].map(|side| -> Vec<&Given> {
            given[side].keys().filter(|call| !given[1 - side].contains_key(*call)).collect()
        });
        let operators =
            alone.each_ref().map(|calls| -> Vec<u64> { calls.iter().map(|call| call.0).collect() });
        if unlike[0] != unlike[1] || operators[0] != operators[1] {
            return false;
        }
        let sorted = |call: &&Given| {
            let mut tensors = call.2.clone();
            tensors.sort_unstable();
            (call.0, tensors)
        };
        let before: FxHashSet<_> = alone[0].iter().map(sorted).collect();
        let is_given_the_same = |call: &&Given| alone[0].iter().any(|of| (of.0, &of.2) == (call.0, &call.2));
        let new: Vec<NodeId> = alone[1].iter().filter_map(|call| given[1].get(call).copied()).collect();
        let defined = held(sides[1].program.graph, &new);
        let is_defined = |call: &&Given| given[1].get(call).is_some_and(|node| defined.contains(node));
        let may_be_equal =
            |call: &&Given| is_defined(call) || before.contains(&sorted(call)) && !is_given_the_same(call);
        !alone[1].iter().all(may_be_equal)
    }

    /// The nodes that a call is given.
    fn inputs(&self, node: NodeId) -> Vec<NodeId> {
        let mut inputs = Vec::new();
        self.program.graph.for_each_input(node, &mut |input| inputs.push(input));
        inputs
    }

    /// The same, where both graphs make the same calls, and give something else to one that the oracle does not
    /// compute: whether that may be a law of this one. A factor moves through a convolution, a turn through a function
    /// of rows, operands change places. So what it is given is made of the same inputs, or of more or fewer, and both
    /// graphs make everything by the same operators with the same constants, whatever the sizes and the order, the one
    /// after as often at least.
    fn may_be_a_law(sides: [&Ways; 2], runs: [Option<&RankRun>; 2], place: &Place) -> Option<String> {
        let [one, other] = [runs[0]?, runs[1]?];
        let nodes = [0, 1].map(|side| sides[side].to(place));
        // Those that give what no node of the other graph gives.
        let changed = |side: usize, own: &RankRun, other: &RankRun| -> Vec<NodeId> {
            let values: FxHashSet<u64> = other.trace.iter().map(|digest| digest.hash).collect();
            let is_new = |node: &NodeId| {
                let digest = own.trace.get(node.index());
                digest.is_some_and(|digest| !values.contains(&digest.hash))
            };
            let is_drawn = |node: &NodeId| sides[side].program.steps.get(node.index()).is_some_and(is_drawn);
            nodes[side].iter().copied().filter(|node| is_drawn(node) && is_new(node)).collect()
        };
        let (old, new) = (changed(0, one, other), changed(1, other, one));
        let first = *new.first()?;
        let leaves = |side: usize, of: &[NodeId]| -> BTreeSet<BTreeSet<u64>> {
            of.iter().map(|&node| sides[side].leaves(node)).collect()
        };
        let [before, after] = [0, 1].map(|side| sides[side].computed(&nodes[side]));
        // What moves through a call takes what it is made of along.
        let (was, is) = (leaves(0, &old), leaves(1, &new));
        let pair_up = |of: &BTreeSet<BTreeSet<u64>>, with: &BTreeSet<BTreeSet<u64>>| {
            of.iter().all(|one| with.iter().any(|other| one.is_subset(other) || other.is_subset(one)))
        };
        // A factor of a sum becomes one of each of its parts: none is lost.
        let none_is_lost =
            before.keys().eq(after.keys()) && before.values().zip(after.values()).all(|(was, is)| was <= is);
        (pair_up(&was, &is) && pair_up(&is, &was) && none_is_lost).then(|| {
            format!(
                "concrete values differ behind {} of the graph after, which the oracle does not compute and which is given \
                 the same inputs in another order or at another place: that may come to the same",
                sides[1].words(first)
            )
        })
    }

    /// The inputs and draws that a node depends on.
    fn leaves(&self, node: NodeId) -> BTreeSet<u64> {
        let leaf = |node: &NodeId| match self.program.steps.get(node.index())?.action {
            Action::Input(index) => Some(u64::from(index)),
            Action::Call(_) => {
                let draws = &self.program.draws;
                let draw = draws.of(*node)?;
                Some(mix(hash::text(draws.generator(draw)), u64::from(draw.position)))
            }
            _ => None,
        };
        self.behind(vec![node]).iter().filter_map(leaf).collect()
    }

    /// How often some nodes make each call that computes, moves or sends values, by operator and constants.
    fn computed(&self, nodes: &[NodeId]) -> BTreeMap<u64, usize> {
        let mut all = BTreeMap::default();
        for &node in nodes {
            let Some(step) = self.program.steps.get(node.index()) else { continue };
            let computes = match step.action {
                Action::Communicate(..) => true,
                Action::Call(kind) => {
                    !is_drawn(step) && !matches!(kind, Kind::View(_) | Kind::GetItem | Kind::Fill(_))
                }
                _ => false,
            };
            if computes {
                let stated = stated(self.program.graph, node, step.info);
                let constants = stated.into_iter().filter(|(_, value)| !self.holds_tensors(*value));
                let call =
                    constants.fold(step.key, |key, (param, value)| mix(mix(key, param), self.value(value)));
                *all.entry(call).or_default() += 1;
            }
        }
        all
    }

    fn holds_tensors(&self, value: Value) -> bool {
        match value {
            Value::Node(_) => true,
            Value::List(span) => {
                self.program.graph.values(span).iter().any(|&value| self.holds_tensors(value))
            }
            _ => false,
        }
    }
}
