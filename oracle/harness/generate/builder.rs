//! Writes nodes straight into a graph's arenas, and keeps account of values, storages and collectives in flight.
//!
//! Inputs are made when they are asked for, but stand first in the list. So nodes are numbered provisionally, inputs
//! and others apart, and [`Builder::finish`] gives them their positions.

use super::config::Config;
use super::keys::Keys;
use super::pool::{Held, Pool, StorageId, Var};
use super::source::{Seeded, Source};
use super::target::{Keyword, Target};
use super::types::Type;
use crate::graph::{
    Dim, Dtype, Expr, Graph, Node, NodeId, Op, OrderingEdge, Out, Span, Str, Symbol, TagsId, TargetId,
    Tensor, TensorId, Value, World,
};
use crate::ops::Collective;

/// The device of every tensor: the one that the text format leaves out.
const DEVICE: &str = "cuda:0";

/// Provisional numbers from here on are of nodes that are no inputs.
const BODY: u32 = 1 << 31;

/// Whether a provisional number is that of an input.
pub(super) fn is_input(node: NodeId) -> bool {
    node.0 < BODY
}

/// First letters of names, which say what a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Prefix {
    /// `x`: an input.
    Input,
    /// `t`: a computed value.
    Temporary,
    /// `v`: a view or an item of a tuple.
    View,
    /// `b`: a buffer.
    Buffer,
    /// `m`: a node that writes to an argument.
    Mutation,
    /// `g`: an all-gather.
    Gather,
    /// `s`: a reduce-scatter.
    Scatter,
    /// `r`: an all-reduce.
    Reduce,
    /// `c`: other communication.
    Communication,
    /// `w`: a wait.
    Wait,
}

const LETTERS: [u8; 10] = *b"xtvbmgsrcw";

/// Names that passes make themselves, constants of the text format, names that are none in Python, and long ones.
pub(super) const ODD_NAMES: [&str; 28] = [
    "cat",
    "cat_1",
    "empty",
    "empty_1",
    "slice_1",
    "slice_2",
    "view",
    "view_1",
    "copy_",
    "clone",
    "getitem",
    "getitem_1",
    "split_with_sizes",
    "wait_tensor",
    "wait_tensor_1",
    "all_gather_into_tensor_out",
    "reduce_scatter_tensor",
    "all_reduce",
    "_pre_bucket_all_gather",
    "output_1",
    "None",
    "end",
    "dp",
    "f32",
    "bucketing_all_gather_default_sources",
    "größe_名前",
    "a name with spaces, \"quotes\" and %signs",
    "an_extremely_long_name_as_tracing_makes_them_from_module_paths_layers_17_attention_wq_weight_all_gather_into_\
     tensor_out_default_wait_tensor_split_with_sizes_getitem_reshape_view_convert_element_type_1234567890",
];

/// A collective in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    /// What a wait takes: the collective, or an item of it.
    pub value: NodeId,
    pub ty: Type,
    pub storage: StorageId,
    /// The launch, which may have several values.
    pub launch: u32,
    /// Whether a pass may bucket it, and its size for that.
    pub candidate: Option<Candidate>,
}

/// A collective that a pass may bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Candidate {
    pub kind: Collective,
    pub bytes: i64,
}

/// One launch and what it reads.
#[derive(Clone, Debug)]
struct Launch {
    reads: [Option<StorageId>; 4],
    /// Values not yet waited for.
    open: u32,
}

/// What nodes say about where they come from.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Origin {
    pub module: Option<Str>,
    pub stack: Option<Str>,
    pub tags: Option<TagsId>,
}

pub(super) struct Builder<'a, S> {
    pub source: &'a mut S,
    pub config: &'a Config,
    pub graph: Graph,
    pub pool: Pool,
    pub keys: Keys,
    pub flights: Vec<Flight>,
    /// Values that have been waited for: what was waited, and the value.
    pub landed: Vec<(NodeId, Var)>,
    /// Candidates in the order of their waits.
    pub candidates: Vec<Candidate>,
    pub origin: Origin,
    /// The one kind that the pass is to bucket, if it is one.
    pub focus: Option<Collective>,
    /// Choices for the end of the graph, when the source may be used up.
    pub late: Seeded,
    /// Whether values of this step become outputs, unused and used.
    pub output: (bool, bool),
    /// Whether nodes of this step get odd names.
    pub odd_names: bool,
    launches: Vec<Launch>,
    inputs: Vec<Node>,
    body: Vec<Node>,
    targets: [Option<TargetId>; Target::ALL.len()],
    keywords: [Option<Str>; Keyword::ALL.len()],
    device: Str,
    counts: [u32; LETTERS.len()],
    odd_names_used: u32,
    symbols: u32,
}

impl<'a, S: Source> Builder<'a, S> {
    pub fn new(source: &'a mut S, config: &'a Config, world: World, size: usize) -> Builder<'a, S> {
        let mut graph = Graph::with_capacity(size + size / 4);
        let device = graph.intern(DEVICE);
        let late = Seeded::new(u64::from(source.below(1 << 16)));
        let keys = Keys::new(source, config, &world, &mut graph);
        graph.world = world;
        Builder {
            source,
            config,
            graph,
            pool: Pool::with_capacity(size + size / 4),
            keys,
            flights: Vec::with_capacity(16),
            landed: Vec::with_capacity(32),
            candidates: Vec::with_capacity(32),
            origin: Origin::default(),
            focus: None,
            late,
            output: (true, false),
            odd_names: false,
            launches: Vec::with_capacity(32),
            inputs: Vec::with_capacity(size / 2),
            body: Vec::with_capacity(size + 16),
            targets: [None; Target::ALL.len()],
            keywords: [None; Keyword::ALL.len()],
            device,
            counts: [0; LETTERS.len()],
            odd_names_used: 0,
            symbols: 0,
        }
    }

    /// Nodes so far.
    pub fn len(&self) -> usize {
        self.inputs.len() + self.body.len()
    }

    /// Numbers of inputs and of other nodes.
    pub fn counts(&self) -> (usize, usize) {
        (self.inputs.len(), self.body.len())
    }

    fn name(&mut self, prefix: Prefix) -> Str {
        if self.odd_names {
            let index = self.source.below(ODD_NAMES.len() as u32);
            if self.odd_names_used & (1 << index) == 0 {
                self.odd_names_used |= 1 << index;
                return self.graph.intern(ODD_NAMES[index as usize]);
            }
        }
        let count = self.counts[prefix as usize];
        self.counts[prefix as usize] += 1;
        let mut text = [0u8; 12];
        text[0] = LETTERS[prefix as usize];
        let mut digits = 1;
        let mut rest = count / 10;
        while rest > 0 {
            digits += 1;
            rest /= 10;
        }
        rest = count;
        for place in text[1..=digits].iter_mut().rev() {
            *place = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        // Always ASCII.
        self.graph.intern(std::str::from_utf8(&text[..=digits]).unwrap_or_default())
    }

    fn target(&mut self, target: Target) -> TargetId {
        *self.targets[target as usize].get_or_insert_with(|| self.graph.intern_target(target.text()))
    }

    pub fn keyword(&mut self, keyword: Keyword) -> Value {
        Value::Str(*self.keywords[keyword as usize].get_or_insert_with(|| self.graph.intern(keyword.text())))
    }

    pub fn device(&self) -> Value {
        Value::Device(self.device)
    }

    /// A reference to a value; counts as a use.
    pub fn take(&mut self, var: Var) -> Value {
        let held = self.pool.get_mut(var);
        held.uses += 1;
        Value::Node(held.node)
    }

    /// References to values as a list; counts as uses.
    pub fn take_list(&mut self, vars: &[Var]) -> Value {
        let values: Vec<Value> = vars.iter().map(|&var| self.take(var)).collect();
        self.graph.list(&values)
    }

    /// Stores what is known about a tensor.
    pub fn tensor(&mut self, ty: &Type) -> TensorId {
        let rank = ty.rank();
        let mut dims = [Dim::Static(0); super::types::MAX_RANK];
        ty.shape().iter().zip(&mut dims).for_each(|(&size, dim)| *dim = Dim::Static(size));
        let shape = self.graph.intern_dims(&dims[..rank]);
        ty.stride().iter().zip(&mut dims).for_each(|(&size, dim)| *dim = Dim::Static(size));
        let stride = self.graph.intern_dims(&dims[..rank]);
        self.graph.push_tensor(Tensor {
            shape,
            stride,
            dtype: ty.dtype,
            requires_grad: None,
            device: self.device,
            storage: None,
            offset: ty.offset,
            storage_bytes: None,
            is_guessed: false,
        })
    }

    /// Appends a call. References must have been [taken](Builder::take).
    pub fn call(
        &mut self,
        prefix: Prefix,
        target: Target,
        args: &[Value],
        kwargs: &[(Keyword, Value)],
        out: Out,
    ) -> NodeId {
        let name = self.name(prefix);
        let target = self.target(target);
        let args = self.graph.push_values(args);
        let kwargs = if kwargs.is_empty() { Span::EMPTY } else { self.pairs(kwargs) };
        self.body.push(Node {
            args,
            kwargs,
            out,
            tags: self.origin.tags,
            stack: self.origin.stack,
            module: self.origin.module,
            ..Node::new(name, Op::Call, target)
        });
        NodeId(BODY + self.body.len() as u32 - 1)
    }

    fn pairs(&mut self, kwargs: &[(Keyword, Value)]) -> Span {
        let mut pairs = [Value::None; 8];
        for (i, &(key, value)) in kwargs.iter().enumerate() {
            (pairs[2 * i], pairs[2 * i + 1]) = (self.keyword(key), value);
        }
        self.graph.push_values(&pairs[..2 * kwargs.len()])
    }

    /// Makes a value of a node's result.
    pub fn hold(&mut self, node: NodeId, ty: Type, storage: StorageId) -> Var {
        self.pool.add(Held { node, ty, storage, uses: 0, output: self.output, waited: false })
    }

    /// A call with one tensor result in a storage of its own.
    pub fn fresh(
        &mut self,
        prefix: Prefix,
        target: Target,
        args: &[Value],
        kwargs: &[(Keyword, Value)],
        ty: Type,
    ) -> Var {
        let out = Out::Tensor(self.tensor(&ty));
        let node = self.call(prefix, target, args, kwargs, out);
        let storage = self.pool.storage();
        self.hold(node, ty, storage)
    }

    /// A call whose result shares the storage of `base`.
    pub fn alias(
        &mut self,
        prefix: Prefix,
        target: Target,
        args: &[Value],
        kwargs: &[(Keyword, Value)],
        ty: Type,
        base: Var,
    ) -> Var {
        let out = Out::Tensor(self.tensor(&ty));
        let node = self.call(prefix, target, args, kwargs, out);
        let storage = self.pool.get(base).storage;
        self.hold(node, ty, storage)
    }

    /// A new graph input.
    pub fn input(&mut self, ty: Type) -> Var {
        let name = self.name(Prefix::Input);
        let target = self.graph.target_named(name);
        let out = Out::Tensor(self.tensor(&ty));
        self.inputs.push(Node { out, ..Node::new(name, Op::Placeholder, target) });
        let node = NodeId(self.inputs.len() as u32 - 1);
        let storage = self.pool.storage();
        self.pool.mark_input(storage);
        self.pool.add(Held { node, ty, storage, uses: 0, output: (false, self.output.1), waited: false })
    }

    /// A new symbol for a number that comes out of a tensor.
    pub fn symbol(&mut self) -> Expr {
        let name = format!("u{}", self.symbols);
        self.symbols += 1;
        let text = self.graph.intern(&name);
        let range = ("-int_oo".to_string(), "int_oo".to_string());
        self.graph.symbols.push(Symbol { name, hint: None, range, unbacked: true });
        Expr { text, hint: None }
    }

    /// A launch of communication that reads `inputs` (4 at most) and has `values` values to wait for.
    pub fn launch(&mut self, inputs: &[Var], values: u32) -> u32 {
        let mut reads = [None; 4];
        for (slot, &input) in reads.iter_mut().zip(inputs) {
            let storage = self.pool.get(input).storage;
            self.pool.begin_read(storage);
            *slot = Some(storage);
        }
        self.launches.push(Launch { reads, open: values });
        self.launches.len() as u32 - 1
    }

    /// Puts a value of a launch in flight.
    pub fn fly(
        &mut self,
        value: NodeId,
        ty: Type,
        storage: StorageId,
        launch: u32,
        candidate: Option<Candidate>,
    ) {
        self.pool.begin_write(storage);
        self.flights.push(Flight { value, ty, storage, launch, candidate });
    }

    /// Waits for the flight with this index.
    pub fn land(&mut self, index: usize) -> Var {
        let flight = self.flights.remove(index);
        let ty = flight.ty.elementwise(&[], flight.ty.dtype);
        let out = Out::Tensor(self.tensor(&ty));
        let node = self.call(Prefix::Wait, Target::Wait, &[Value::Node(flight.value)], &[], out);
        self.pool.end_write(flight.storage);
        let launch = &mut self.launches[flight.launch as usize];
        launch.open -= 1;
        if launch.open == 0 {
            for storage in launch.reads.into_iter().flatten() {
                self.pool.end_read(storage);
            }
        }
        self.candidates.extend(flight.candidate);
        let var = self.hold(node, ty, flight.storage);
        self.pool.get_mut(var).waited = true;
        self.landed.push((flight.value, var));
        var
    }

    /// Orders two nodes without a data edge between them: `before` stands earlier in the list.
    pub fn order(&mut self, before: NodeId, after: NodeId) {
        let target = |node: NodeId| {
            let found = node.0.checked_sub(BODY).and_then(|index| self.body.get(index as usize));
            found.map_or("", |node| self.graph.target_text(node.target))
        };
        let (from, to, wait) = (target(before), target(after), Target::Wait.text());
        let in_flight = to == wait || (from.starts_with("_c10d_functional.") && from != wait);
        if in_flight && self.config.ordering_in_flight == 0 {
            return;
        }
        self.graph.ordering.push(OrderingEdge { before, after });
    }

    /// The node made `back` nodes ago, if it is no input.
    pub fn recent(&self, back: usize) -> Option<NodeId> {
        let index = self.body.len().checked_sub(back + 1)?;
        Some(NodeId(BODY + index as u32))
    }

    /// Ends the graph with an output of these values. `order` may give the position in the list of each node but the
    /// output, first of inputs and then of the others, in the order they were made.
    pub fn finish(mut self, outputs: &[Value], order: Option<&[u32]>) -> (Graph, Vec<Candidate>) {
        let list = self.graph.list(outputs);
        let args = self.graph.push_values(&[list]);
        let target = self.target(Target::Output);
        let name = self.graph.intern(Target::Output.text());
        let (inputs, count) = (self.inputs.len() as u32, self.len() as u32);
        let position = |id: NodeId| {
            let index = if is_input(id) { id.0 } else { id.0 - BODY + inputs };
            NodeId(order.map_or(index, |order| order[index as usize]))
        };
        let mut graph = self.graph;
        match order {
            None => self.inputs.into_iter().chain(self.body).for_each(|node| {
                graph.push_node(node);
            }),
            Some(order) => {
                let nodes: Vec<Node> = self.inputs.into_iter().chain(self.body).collect();
                let mut at = vec![0u32; count as usize];
                for (index, &position) in order.iter().enumerate() {
                    at[position as usize] = index as u32;
                }
                for index in at {
                    graph.push_node(nodes[index as usize]);
                }
            }
        }
        graph.push_node(Node { args, ..Node::new(name, Op::Output, target) });
        graph.map_references(position);
        (graph, self.candidates)
    }

    /// The dtypes that this case is about.
    pub fn dtype(&mut self) -> Dtype {
        self.keys.dtype(self.source, self.config)
    }
}
