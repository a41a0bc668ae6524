//! Random cases for schedulers: graphs with much to move and much to break.
//!
//! # General strategy
//!
//! 1. A world of four ranks with four groups that overlap in all ways: pairs, crossing pairs, everybody.
//! 2. Steps, each a node or two: computation on what is there, writes in place on what others have read, views, random
//!    draws, effects, launches and waits. With messages there are two graphs, one for even and one for odd ranks, that
//!    differ only in which end of a message they have.
//! 3. What is in flight at the end is waited for; what nobody read becomes output.
//! 4. Ordering edges between earlier and later nodes, clusters of neighbours, estimate tables and budgets of each rank.
//!
//! Every graph is one that finishes on all ranks, so whatever hangs afterwards the scheduler has done.
//!
//! # What is never generated
//!
//! Symbolic sizes, several devices, batches of messages, coalesced collectives, bodies of higher-order operators.

use crate::case::{Case, PassConfig, Program, Setting};
use crate::generate::{Seeded, Source, Without};
use crate::graph::{Cluster, Dtype, Graph, Group, NodeId, Op, OrderingEdge, Out, Str, Value, World};
use crate::passes::schedule::Pass;
use crate::simulate::Estimates;

/// A case for a scheduler.
#[derive(Clone, Debug)]
pub struct ScheduleCase {
    /// The graph of all ranks, or that of the even ones and that of the odd ones.
    pub graphs: Vec<Graph>,
    /// For each rank its graph.
    pub of_rank: Vec<usize>,
    /// The estimates of each rank.
    pub estimates: Vec<Estimates>,
    /// The memory budget of each rank.
    pub budgets: Vec<f64>,
    /// Whether exposed time is weighed.
    pub runtime_mode: bool,
}

const RANKS: u32 = 4;

/// Case number `index` of the campaign `seed`.
pub fn case(seed: u64, index: u64) -> Case {
    case_without(seed, index, &[])
}

/// The same with none of what is named.
pub fn case_without(seed: u64, index: u64, without: &[Without]) -> Case {
    let mut source = Seeded::case(seed, index);
    let pass = source.one_of(Pass::ALL);
    without_some(&mut source, 30, without).into_case(pass)
}

impl ScheduleCase {
    /// The case for one of the passes, with the estimates and budgets of each rank, and the graphs of odd ranks.
    pub fn into_case(self, pass: Pass) -> Case {
        let budgets = self.budgets.iter().map(|budget| Setting::Text(budget.to_string()));
        let budget = match self.budgets[..] {
            [budget] => Setting::Text(budget.to_string()),
            _ => Setting::List(budgets.collect()),
        };
        let mut config = PassConfig::new("schedule").with("method", pass.name());
        config.options.push(("budget".to_string(), budget));
        config = config.with("runtime_mode", if self.runtime_mode { "true" } else { "false" });
        let is_shared = self.estimates.len() == 1;
        let rank = |rank: usize| (!is_shared).then_some(rank as u32);
        config.estimates =
            self.estimates.iter().enumerate().map(|(i, table)| table.as_table(rank(i))).collect();
        let mut graphs = self.graphs.into_iter();
        let graph = graphs.next().unwrap_or_default();
        let ranks_of = |wanted: usize| {
            let ranks = self.of_rank.iter().enumerate().filter(move |(_, of)| **of == wanted);
            ranks.map(|(rank, _)| rank as u32).collect()
        };
        let programs = graphs.enumerate().map(|(i, graph)| Program { ranks: ranks_of(i + 1), graph });
        Case { pass: Some(config), programs: programs.collect(), ..Case::of_graph(graph) }
    }
}

/// A case from the choices of `source`, with at most about `steps` steps.
pub fn schedule_case(source: &mut impl Source, steps: u32) -> ScheduleCase {
    without_some(source, steps, &[])
}

fn without_some(source: &mut impl Source, steps: u32, without: &[Without]) -> ScheduleCase {
    source.step();
    let takes = |what| !without.contains(&what);
    let has_messages = source.percent(35) && takes(Without::Messages);
    let features = Features {
        messages: has_messages,
        effects: source.percent(40),
        mutation: source.percent(60) && takes(Without::Writes),
        random: source.percent(30) && takes(Without::RandomDraws),
        ordering: source.percent(50) && takes(Without::OrderingEdges),
        clusters: source.percent(25),
        fsdp: source.percent(25),
    };
    let count = source.length(4, steps.max(4));
    let mut maker = Maker::new(features);
    for _ in 0..count {
        if !source.step() {
            break;
        }
        maker.step(source);
    }
    maker.end(source);
    let estimates = estimates(source, &maker.graphs[0]);
    let budgets: Vec<f64> = match source.percent(30) {
        true => (0..RANKS).map(|_| f64::from(source.below(5)) * 0.1).collect(),
        false => vec![source.one_of(&[0.0, 0.05, 0.2, 1.0])],
    };
    let runtime_mode = source.percent(50);
    let mut graphs = maker.graphs.to_vec();
    graphs.truncate(if has_messages { 2 } else { 1 });
    let of_rank = (0..RANKS as usize).map(|rank| rank % graphs.len()).collect();
    ScheduleCase { graphs, of_rank, estimates, budgets, runtime_mode }
}

/// Tables that agree or differ a little from rank to rank.
fn estimates(source: &mut impl Source, graph: &Graph) -> Vec<Estimates> {
    source.step();
    let base: Vec<(String, f64)> = graph
        .ids()
        .filter(|&id| graph.node(id).op == Op::Call)
        .map(|id| (graph.name(id).to_string(), f64::from(source.below(20)) * 1e-6))
        .collect();
    let ranks = if source.percent(50) { RANKS } else { 1 };
    let mut tables = Vec::new();
    for rank in 0..ranks {
        let mut table = Estimates::default();
        for (name, seconds) in &base {
            // Ten to forty percent of noise; the first rank's figures are the base.
            let noise = if rank == 0 { 0 } else { source.below(41) };
            let sign = if source.percent(50) { 1.0 } else { -1.0 };
            table.seconds.insert(name.clone(), seconds * (1.0 + sign * f64::from(noise) / 100.0));
        }
        tables.push(table);
    }
    tables
}

#[derive(Clone, Copy)]
struct Features {
    messages: bool,
    effects: bool,
    mutation: bool,
    random: bool,
    ordering: bool,
    clusters: bool,
    fsdp: bool,
}

/// A tensor that can be used.
#[derive(Clone, Copy)]
struct Held {
    node: NodeId,
    numel: i64,
    uses: u32,
    /// Whether the graph may write to it.
    owned: bool,
    /// In flight: its memory is not to be touched.
    busy: bool,
}

/// A launch that nobody has waited for.
struct Flight {
    node: NodeId,
    /// Elements of its result.
    numel: i64,
    /// Which held tensors are busy until the wait.
    busy: Vec<usize>,
    /// Whether FSDP copies the result out after the wait.
    copied_out: bool,
}

/// The two graphs, node for node alike.
struct Maker {
    graphs: [Graph; 2],
    features: Features,
    held: Vec<Held>,
    flying: Vec<Flight>,
    device: [Str; 2],
}

impl Maker {
    fn new(features: Features) -> Maker {
        let group = |name: &str, instances: &[&[u32]]| Group {
            name: name.to_string(),
            size: instances[0].len() as u32,
            recorded_rank: None,
            instances: instances.iter().map(|ranks| ranks.to_vec()).collect(),
        };
        let groups = vec![
            group("dp", &[&[0, 1], &[2, 3]]),
            group("tp", &[&[0, 2], &[1, 3]]),
            group("all", &[&[0, 1, 2, 3]]),
            group("pp", &[&[0, 1], &[2, 3]]),
        ];
        let mut graphs = [Graph::new("schedule"), Graph::new("schedule")];
        for graph in &mut graphs {
            graph.world = World { ranks: Some(RANKS), groups: groups.clone() };
        }
        let device = [graphs[0].intern("cuda:0"), graphs[1].intern("cuda:0")];
        let mut maker = Maker { graphs, features, held: Vec::new(), flying: Vec::new(), device };
        for (i, numel) in [16i64, 64].into_iter().enumerate() {
            let node =
                maker.push(&format!("arg{i}_1"), Op::Placeholder, &format!("arg{i}_1"), &[], Some(numel));
            maker.hold(node, numel, false);
        }
        let node = maker.push("given", Op::Placeholder, "given", &[], Some(256));
        maker.hold(node, 256, false);
        maker
    }

    /// A node in both graphs, with the same arguments.
    fn push(&mut self, name: &str, op: Op, target: &str, args: &[Arg], numel: Option<i64>) -> NodeId {
        self.push_each(name, op, [target; 2], [args, args], numel)
    }

    fn push_each(
        &mut self,
        name: &str,
        op: Op,
        targets: [&str; 2],
        args: [&[Arg]; 2],
        numel: Option<i64>,
    ) -> NodeId {
        let mut id = NodeId(0);
        for (i, graph) in self.graphs.iter_mut().enumerate() {
            id = graph.push(name, op, targets[i]);
            let values: Vec<Value> = args[i].iter().map(|arg| arg.value(graph)).collect();
            let out = numel.map_or(Out::Absent, |n| graph.contiguous(&[n], Dtype::F32, self.device[i]));
            let args = graph.push_values(&values);
            let node = graph.node_mut(id);
            (node.args, node.out) = (args, out);
        }
        id
    }

    fn hold(&mut self, node: NodeId, numel: i64, owned: bool) {
        self.held.push(Held { node, numel, uses: 0, owned, busy: false });
    }

    fn name(&self, base: &str) -> String {
        format!("{base}{}", self.graphs[0].len())
    }

    /// A tensor that is at hand, recent ones rather.
    fn pick(&mut self, source: &mut impl Source) -> Option<usize> {
        let free: Vec<usize> = (0..self.held.len()).rev().filter(|&i| !self.held[i].busy).collect();
        let most = free.len().min(if source.percent(70) { 4 } else { 64 });
        let &at = free.get(source.below(most as u32) as usize)?;
        self.held[at].uses += 1;
        Some(at)
    }

    fn step(&mut self, source: &mut impl Source) {
        let f = self.features;
        let on = |enabled: bool, weight: u32| if enabled { weight } else { 0 };
        let weights = [
            24,
            on(f.mutation, 7),
            5,
            on(f.random, 3),
            on(f.effects, 5),
            16,
            12,
            on(f.messages, 10),
            on(f.messages, 2),
            on(f.fsdp, 8),
            on(f.fsdp, 6),
        ];
        match source.weighted(&weights) {
            0 => self.compute(source),
            1 => self.write(source),
            2 => self.view(source),
            3 => {
                let numel = source.one_of(&[16i64, 64, 256]);
                let name = self.name("rand");
                let node =
                    self.push(&name, Op::Call, "aten.rand.default", &[Arg::Ints(vec![numel])], Some(numel));
                self.hold(node, numel, true);
            }
            4 => self.effect(source),
            5 => self.launch(source),
            6 => self.land(source),
            7 => self.message(source),
            8 => self.barrier(source),
            9 => self.gather_parameter(source),
            _ => self.scatter_gradient(source),
        }
    }

    fn compute(&mut self, source: &mut impl Source) {
        let Some(a) = self.pick(source) else { return };
        let numel = self.held[a].numel;
        let other = self.held.iter().rposition(|held| held.numel == numel && !held.busy);
        let name = self.name("c");
        let node = match other.filter(|_| source.percent(50)) {
            Some(b) => {
                self.held[b].uses += 1;
                let args = [Arg::Node(self.held[a].node), Arg::Node(self.held[b].node)];
                self.push(&name, Op::Call, "aten.add.Tensor", &args, Some(numel))
            }
            None => {
                self.push(&name, Op::Call, "aten.relu.default", &[Arg::Node(self.held[a].node)], Some(numel))
            }
        };
        self.hold(node, numel, true);
    }

    /// A write in place: whoever read the tensor before must stay before it.
    fn write(&mut self, source: &mut impl Source) {
        let owned: Vec<usize> =
            (0..self.held.len()).filter(|&i| self.held[i].owned && !self.held[i].busy).collect();
        let Some(&at) = owned.get(source.below(owned.len() as u32) as usize) else { return };
        let (name, numel) = (self.name("w"), self.held[at].numel);
        self.held[at].uses += 1;
        let base = self.held[at].node;
        let node = self.push(&name, Op::Call, "aten.relu_.default", &[Arg::Node(base)], Some(numel));
        if source.percent(50) {
            self.held[at].node = node;
        }
    }

    fn view(&mut self, source: &mut impl Source) {
        let Some(at) = self.pick(source) else { return };
        let numel = self.held[at].numel;
        let name = self.name("v");
        let args = [Arg::Node(self.held[at].node), Arg::Ints(vec![numel])];
        let node = self.push(&name, Op::Call, "aten.view.default", &args, Some(numel));
        // A write through the base would be seen here; such views are not written themselves.
        let name = self.name("c");
        let copy = self.push(&name, Op::Call, "aten.relu.default", &[Arg::Node(node)], Some(numel));
        self.hold(copy, numel, true);
    }

    fn effect(&mut self, source: &mut impl Source) {
        let name = self.name("e");
        match source.below(3) {
            0 => {
                self.push(&name, Op::Call, "streams.synchronize_stream.default", &[Arg::Int(0)], None);
            }
            1 => {
                self.push(&name, Op::Call, "streams.record_event.default", &[Arg::Int(0), Arg::Int(0)], None);
            }
            _ => {
                let Some(at) = self.pick(source) else { return };
                self.push(&name, Op::Call, "mylib.log.default", &[Arg::Node(self.held[at].node)], None);
            }
        }
    }

    fn launch(&mut self, source: &mut impl Source) {
        let Some(at) = self.pick(source) else { return };
        let (input, numel) = (self.held[at].node, self.held[at].numel);
        let (group, size) = source.one_of(&[("dp", 2i64), ("tp", 2), ("all", 4), ("dp", 2)]);
        let mut busy = Vec::new();
        let (node, result) = match source.below(4) {
            0 | 1 => {
                let result = if numel >= 1024 { numel } else { numel * size };
                if result == numel {
                    return self.reduce(source, at, group);
                }
                let args = [Arg::Node(input), Arg::Int(size), Arg::Text(group)];
                let name = self.name("g");
                let target = "_c10d_functional.all_gather_into_tensor.default";
                (self.push(&name, Op::Call, target, &args, Some(result)), result)
            }
            2 => {
                let result = numel / size;
                let args = [Arg::Node(input), Arg::Text("sum"), Arg::Int(size), Arg::Text(group)];
                let name = self.name("s");
                let target = "_c10d_functional.reduce_scatter_tensor.default";
                (self.push(&name, Op::Call, target, &args, Some(result)), result)
            }
            _ => return self.reduce(source, at, group),
        };
        // Nobody writes what is being sent.
        self.held[at].busy |= self.held[at].owned;
        busy.push(at);
        self.flying.push(Flight { node, numel: result, busy, copied_out: false });
    }

    fn reduce(&mut self, source: &mut impl Source, at: usize, group: &'static str) {
        let (input, numel) = (self.held[at].node, self.held[at].numel);
        let in_place = self.held[at].owned && source.percent(30);
        let target = match in_place {
            true => "_c10d_functional.all_reduce_.default",
            false => "_c10d_functional.all_reduce.default",
        };
        let name = self.name("r");
        let node = self.push(
            &name,
            Op::Call,
            target,
            &[Arg::Node(input), Arg::Text("sum"), Arg::Text(group)],
            Some(numel),
        );
        self.held[at].busy = in_place || self.held[at].owned;
        self.flying.push(Flight { node, numel, busy: vec![at], copied_out: false });
    }

    /// A wait for something in flight.
    fn land(&mut self, source: &mut impl Source) {
        if self.flying.is_empty() {
            return self.compute(source);
        }
        let at = source.below(self.flying.len() as u32) as usize;
        let Flight { node, numel, busy, copied_out } = self.flying.remove(at);
        let name = self.name("wait");
        let wait = self.push(
            &name,
            Op::Call,
            "_c10d_functional.wait_tensor.default",
            &[Arg::Node(node)],
            Some(numel),
        );
        let in_place = self.graphs[0].target(node).ends_with("all_reduce_.default");
        for index in busy {
            let is_busy = self.flying.iter().any(|other| other.busy.contains(&index));
            self.held[index].busy = is_busy;
            // The buffer itself is the result.
            if in_place && !is_busy {
                self.held[index].node = wait;
                self.held[index].uses += 1;
                return;
            }
        }
        if copied_out {
            let out = self.empty(numel);
            let args = [Arg::Node(wait), Arg::Ints(vec![numel]), Arg::Int(0)];
            self.push_out(
                "copy_out",
                "fsdp.split_with_sizes_copy.default",
                &args,
                Arg::Nodes(vec![Arg::Node(out)]),
                None,
            );
            return self.hold(out, numel, true);
        }
        self.hold(wait, numel, true);
    }

    fn empty(&mut self, numel: i64) -> NodeId {
        let name = self.name("b");
        self.push(&name, Op::Call, "aten.empty.memory_format", &[Arg::Ints(vec![numel])], Some(numel))
    }

    /// A call that writes into what is given as `out`.
    fn push_out(&mut self, base: &str, target: &str, args: &[Arg], out: Arg, numel: Option<i64>) -> NodeId {
        let name = self.name(base);
        let node = self.push(&name, Op::Call, target, args, numel);
        for graph in &mut self.graphs {
            let (key, value) = (Value::Str(graph.intern("out")), out.value(graph));
            graph.node_mut(node).kwargs = graph.push_values(&[key, value]);
        }
        node
    }

    /// FSDP's gather of a parameter: copied into a buffer, gathered there, copied out after the wait.
    fn gather_parameter(&mut self, source: &mut impl Source) {
        let numel = source.one_of(&[16i64, 64]);
        let parameter = NodeId(if numel == 16 { 0 } else { 1 });
        let buffer = self.empty(4 * numel);
        let name = self.name("copy_in");
        let args = [
            Arg::Nodes(vec![Arg::Node(parameter)]),
            Arg::Node(buffer),
            Arg::Ints(vec![numel]),
            Arg::Int(numel),
            Arg::Int(0),
        ];
        let packed = self.push(&name, Op::Call, "fsdp.all_gather_copy_in.default", &args, None);
        for (i, graph) in self.graphs.iter_mut().enumerate() {
            let parts = [
                graph.contiguous(&[numel], Dtype::F32, self.device[i]),
                graph.contiguous(&[4 * numel], Dtype::F32, self.device[i]),
            ];
            graph.node_mut(packed).out = Out::Tuple(graph.push_outs(&parts));
        }
        let name = self.name("v");
        let own =
            self.push(&name, Op::Call, "operator.getitem", &[Arg::Node(packed), Arg::Int(0)], Some(numel));
        let name = self.name("v");
        let all = self.push(
            &name,
            Op::Call,
            "operator.getitem",
            &[Arg::Node(packed), Arg::Int(1)],
            Some(4 * numel),
        );
        let args = [Arg::Node(own), Arg::Int(4), Arg::Text("all")];
        let target = "_c10d_functional.all_gather_into_tensor_out.default";
        let node = self.push_out("g", target, &args, Arg::Node(all), Some(4 * numel));
        self.flying.push(Flight { node, numel: 4 * numel, busy: Vec::new(), copied_out: true });
    }

    /// FSDP's scatter of a gradient: packed into a buffer and scattered from there.
    fn scatter_gradient(&mut self, source: &mut impl Source) {
        let Some(at) = self.pick(source) else { return };
        let (gradient, numel) = (self.held[at].node, self.held[at].numel.clamp(4, 1024));
        let buffer = self.empty(numel);
        let args = [Arg::Nodes(vec![Arg::Node(gradient)]), Arg::Int(0), Arg::Int(4)];
        self.push_out("chunk_cat", "fsdp.chunk_cat.default", &args, Arg::Node(buffer), None);
        let args = [Arg::Node(buffer), Arg::Text("sum"), Arg::Int(4), Arg::Text("all")];
        let name = self.name("s");
        let target = "_c10d_functional.reduce_scatter_tensor.default";
        let node = self.push(&name, Op::Call, target, &args, Some(numel / 4));
        self.flying.push(Flight { node, numel: numel / 4, busy: Vec::new(), copied_out: false });
    }

    /// A message between even and odd ranks; the even ones send it or receive it.
    fn message(&mut self, source: &mut impl Source) {
        let Some(at) = self.pick(source) else { return };
        let numel = self.held[at].numel;
        let buffer = {
            let name = self.name("b");
            self.push(&name, Op::Call, "aten.zeros.default", &[Arg::Ints(vec![numel])], Some(numel))
        };
        let (send, receive) = ("_c10d_functional.isend.default", "_c10d_functional.irecv.default");
        let evens_send = source.percent(50);
        let targets = if evens_send { [send, receive] } else { [receive, send] };
        // Both ends have the buffer, so that the graphs are alike node for node.
        let args = |peer: i64, sends: bool| {
            let tensor = if sends { self.held[at].node } else { buffer };
            vec![Arg::Node(tensor), Arg::Int(peer), Arg::Int(0), Arg::Text("pp")]
        };
        let (even, odd) = (args(1, evens_send), args(0, !evens_send));
        let name = self.name("m");
        let node = self.push_each(&name, Op::Call, targets, [&even, &odd], Some(numel));
        let name = self.name("wait");
        let wait = self.push(
            &name,
            Op::Call,
            "_c10d_functional.wait_tensor.default",
            &[Arg::Node(node)],
            Some(numel),
        );
        let name = self.name("c");
        let copy = self.push(&name, Op::Call, "aten.relu.default", &[Arg::Node(wait)], Some(numel));
        self.hold(copy, numel, true);
    }

    fn barrier(&mut self, source: &mut impl Source) {
        let Some(at) = self.pick(source) else { return };
        let group = source.one_of(&["all", "dp"]);
        let args = [Arg::Node(self.held[at].node), Arg::Text(group), Arg::Ints(vec![0])];
        let name = self.name("barrier");
        self.push(&name, Op::Call, "c10d.barrier.default", &args, None);
    }

    fn end(&mut self, source: &mut impl Source) {
        source.step();
        while !self.flying.is_empty() {
            self.land(source);
        }
        let outputs: Vec<Arg> = self
            .held
            .iter()
            .filter(|held| held.owned && (held.uses == 0 || source.percent(10)))
            .map(|held| Arg::Node(held.node))
            .collect();
        let last = self.graphs[0].len() as u32;
        self.push("output", Op::Output, "output", &[Arg::Nodes(outputs)], None);
        let is_call = |graph: &Graph, id: u32| graph.node(NodeId(id)).op == Op::Call;
        if self.features.ordering && last > 4 {
            for _ in 0..=source.below(3) {
                let a = source.below(last - 1);
                let b = (a + 1 + source.below((last - a - 1).min(12))).min(last - 1);
                if a < b && is_call(&self.graphs[0], a) && is_call(&self.graphs[0], b) {
                    let edge = OrderingEdge { before: NodeId(a), after: NodeId(b) };
                    self.graphs.iter_mut().for_each(|graph| graph.ordering.push(edge));
                }
            }
        }
        if self.features.clusters && last > 8 {
            let from = 3 + source.below(last - 6);
            let to = (from + 2 + source.below(2)).min(last);
            let members: Vec<NodeId> = (from..to).map(NodeId).collect();
            for graph in &mut self.graphs {
                graph.clusters.push(Cluster { name: "group".into(), members: members.clone() });
            }
        }
    }
}

/// An argument, before it is a value of one of the graphs.
enum Arg {
    Node(NodeId),
    Nodes(Vec<Arg>),
    Int(i64),
    Ints(Vec<i64>),
    Text(&'static str),
}

impl Arg {
    fn value(&self, graph: &mut Graph) -> Value {
        match self {
            Arg::Node(node) => Value::Node(*node),
            Arg::Nodes(nodes) => {
                let values: Vec<Value> = nodes.iter().map(|node| node.value(graph)).collect();
                graph.list(&values)
            }
            Arg::Int(n) => Value::Int(*n),
            Arg::Ints(ints) => graph.int_list(ints),
            Arg::Text(text) => Value::Str(graph.intern(text)),
        }
    }
}
