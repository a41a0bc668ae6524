//! A graph made ready to run: operators looked up, arguments in their places, groups resolved.
//!
//! Everything that does not depend on values is decided here, once per graph, so that a run looks up no name and
//! parses no schema. A [`Program`] is the same for all ranks: what a group name stands for is looked up by rank
//! in the world when a collective starts.

use super::between::Ways;
use super::hash;
use super::run::Failure;
use crate::analysis::{Draws, redundant_assertions};
use crate::graph::{Graph, NodeId, Op, Out, Strings, Value, World};
use crate::ops::{
    Bound, Collective, Default as Constant, Fill, Kind, Matmul, Move, OpInfo, Ops, Schema, View,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::OnceLock;

/// How many argument places a step has.
pub(crate) const PLACES: usize = 7;

/// A node made ready.
#[derive(Clone, Debug)]
pub(crate) struct Step<'o> {
    pub action: Action,
    /// The arguments in the order that [`places`] gives for the operator, defaults filled in, absent ones `None`.
    pub args: [Value; PLACES],
    /// The argument that receives the result: `out=`, or the tensor that an in-place operator writes.
    pub into: Option<Value>,
    pub info: Option<&'o OpInfo>,
    /// Stands for the operator in terms: the hash of its target without the mark of an in-place variant.
    pub key: u64,
}

/// What a step does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Action {
    /// Takes a graph input.
    Input(u32),
    /// An attribute without a tensor: the body of a higher-order operator.
    Object,
    Call(Kind),
    /// Communication on a group of the world.
    Communicate(Collective, GroupUse),
    Output,
}

/// The process group of a collective.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum GroupUse {
    /// An index into the groups of the world.
    Known(u32),
    /// An index into the program's reasons.
    Unknown(u32),
}

/// A graph input: a placeholder, or an attribute that holds a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Input {
    /// The node; of several nodes that get one attribute, the first.
    pub node: NodeId,
    /// Its name: the placeholder's, or the attribute's.
    pub name: String,
    /// Whether it is an attribute.
    pub attribute: bool,
}

/// A graph made ready to run in one world.
#[derive(Clone, Debug)]
pub struct Program<'g> {
    pub(crate) graph: &'g Graph,
    pub(crate) steps: Vec<Step<'g>>,
    /// The inputs, in list order.
    pub inputs: Vec<Input>,
    pub(crate) reasons: Vec<String>,
    /// For each node the last node in list order that refers to it (itself if none does).
    pub(crate) last_use: Vec<NodeId>,
    /// What each draw gets.
    pub(crate) draws: Draws,
    /// Assertions that stop no run which the others let through.
    pub(crate) redundant_assertions: FxHashSet<NodeId>,
    /// Elements of all recorded results.
    pub(crate) recorded_elements: u128,
    /// Whether it shows elements under another dtype.
    pub(crate) retypes: bool,
    /// For each node whether it is computed from constants alone, once that has been asked.
    constants: OnceLock<Vec<bool>>,
}

/// A world, and its groups by name.
struct Groups<'w> {
    world: &'w World,
    names: FxHashMap<&'w str, usize>,
}

/// Where a step's arguments come from, for one target.
struct Signature<'g> {
    kind: Kind,
    schema: Option<&'g Schema>,
    places: [Option<(usize, Value)>; PLACES],
    into: Option<usize>,
    group: Option<usize>,
    key: u64,
}

impl<'g> Program<'g> {
    /// Makes `graph` ready to run in `world`, whose groups list their ranks. `ops` are the operators of `graph`.
    ///
    /// # Errors
    /// [`Failure::Raises`] for a node whose arguments do not fit its schema; [`Failure::World`] for a world that
    /// does not say which ranks there are.
    pub fn new(graph: &'g Graph, ops: &'g Ops, world: &World) -> Result<Program<'g>, Failure> {
        check_world(world)?;
        let mut this = Program {
            graph,
            steps: Vec::with_capacity(graph.len()),
            inputs: Vec::new(),
            reasons: Vec::new(),
            last_use: graph.ids().collect(),
            draws: Draws::new(graph, ops),
            redundant_assertions: redundant_assertions(graph, ops),
            recorded_elements: 0,
            retypes: false,
            constants: OnceLock::new(),
        };
        let mut names: FxHashMap<&str, usize> = FxHashMap::default();
        for (i, group) in world.groups.iter().enumerate() {
            names.entry(&group.name).or_insert(i);
        }
        let groups = Groups { world, names };
        let mut signatures: Vec<Option<Signature>> = (0..graph.targets().len()).map(|_| None).collect();
        for id in graph.ids() {
            let node = graph.node(id);
            this.recorded_elements += recorded(graph, node.out);
            let last_use = &mut this.last_use;
            graph.for_each_input(id, &mut |input: NodeId| {
                let last = &mut last_use[input.index()];
                *last = (*last).max(id);
            });
            let step = match node.op {
                Op::Placeholder => Step::plain(Action::Input(this.input(id, false))),
                Op::GetAttr if matches!(node.out, Out::Tensor(_)) => {
                    Step::plain(Action::Input(this.input(id, true)))
                }
                Op::GetAttr => Step { key: hash::text(graph.target(id)), ..Step::plain(Action::Object) },
                Op::Output => Step::plain(Action::Output),
                Op::Call => {
                    this.retypes |= matches!(ops.get(graph, id).kind, Kind::View(View::Dtype));
                    let signature = signatures[node.target.0 as usize]
                        .get_or_insert_with(|| Signature::new(ops.get(graph, id), graph.strings()));
                    this.call(id, signature, ops.get(graph, id), &groups)?
                }
            };
            this.steps.push(step);
        }
        Ok(this)
    }

    /// The graph.
    pub fn graph(&self) -> &'g Graph {
        self.graph
    }

    /// Whether a node is computed from constants alone: its values are the same in every run.
    pub(crate) fn is_constant(&self, node: NodeId) -> bool {
        let constants = self.constants.get_or_init(|| Ways::new(self).constants());
        constants.get(node.index()).copied().unwrap_or(false)
    }

    /// How many elements its recorded results have together.
    pub fn elements(&self) -> u128 {
        self.recorded_elements
    }

    fn input(&mut self, node: NodeId, attribute: bool) -> u32 {
        let name = if attribute { self.graph.target(node) } else { self.graph.name(node) };
        // Nodes that get one attribute share its storage.
        let known =
            attribute.then(|| self.inputs.iter().position(|i| i.attribute && i.name == name)).flatten();
        known.unwrap_or_else(|| {
            self.inputs.push(Input { node, name: name.to_string(), attribute });
            self.inputs.len() - 1
        }) as u32
    }

    fn call(
        &mut self,
        id: NodeId,
        signature: &Signature,
        info: &'g OpInfo,
        groups: &Groups,
    ) -> Result<Step<'g>, Failure> {
        let graph = self.graph;
        let args = graph.args(id);
        let mut step = Step {
            action: Action::Call(signature.kind),
            args: [Value::None; PLACES],
            into: None,
            info: Some(info),
            key: signature.key,
        };
        let Some(schema) = signature.schema else {
            for (place, &arg) in step.args.iter_mut().zip(args) {
                *place = arg;
            }
            return Ok(step);
        };
        let fail = |reason: String| Failure::Raises { rank: None, node: id, reason };
        let positional = schema.params.iter().filter(|p| !p.keyword_only).count();
        if args.len() > positional {
            return Err(fail(format!("takes {positional} positional arguments, got {}", args.len())));
        }
        for (key, _) in graph.kwargs(id) {
            match schema.param(key) {
                None => return Err(fail(format!("has no parameter {key:?}"))),
                Some(p) if p < args.len() => {
                    return Err(fail(format!("got two values for parameter {key:?}")));
                }
                _ => {}
            }
        }
        let given = |param: usize| -> Option<Value> {
            args.get(param).copied().or_else(|| graph.kwarg(id, &schema.params[param].name))
        };
        for (index, param) in schema.params.iter().enumerate() {
            if param.default.is_none() && given(index).is_none() {
                return Err(fail(format!("lacks a value for parameter {:?}", param.name)));
            }
        }
        for (place, source) in step.args.iter_mut().zip(&signature.places) {
            if let Some((param, default)) = *source {
                *place = given(param).unwrap_or(default);
            }
        }
        step.into = signature.into.and_then(given);
        if let Kind::Collective(kind) = signature.kind {
            let use_of = self.group(id, schema, signature.group.and_then(given), &given, groups);
            step.action = Action::Communicate(kind, use_of);
        }
        Ok(step)
    }

    /// The group of the world that a collective communicates on.
    fn group(
        &mut self,
        id: NodeId,
        schema: &Schema,
        name: Option<Value>,
        given: &impl Fn(usize) -> Option<Value>,
        Groups { world, names }: &Groups,
    ) -> GroupUse {
        let graph = self.graph;
        let find = |name: &str| names.get(name).copied();
        let found = match (name, schema.param("ranks").and_then(given)) {
            // The legacy namespace lists ranks.
            (_, Some(Value::List(span))) => {
                let ranks: Vec<i64> = graph.values(span).iter().filter_map(|v| int(*v)).collect();
                world
                    .groups
                    .iter()
                    .position(|g| {
                        !g.instances.is_empty()
                            && g.instances.iter().flatten().map(|&r| i64::from(r)).eq(ranks.iter().copied())
                    })
                    .ok_or_else(|| format!("no process group of the world has the ranks {ranks:?}"))
            }
            (Some(Value::Str(name)), _) => {
                let name = graph.text(name);
                find(name).ok_or_else(|| format!("the world has no process group {name:?}"))
            }
            (Some(Value::Node(node)), _) => {
                let size = schema.param("group_size").and_then(given).and_then(int);
                graph.group_of(world, node, size).and_then(|group| find(&group.name)).ok_or_else(|| {
                    format!("which process group {} stands for is not recorded", graph.name(node))
                })
            }
            _ => Err(format!("{} does not name its process group", graph.target(id))),
        };
        match found {
            Ok(index) => GroupUse::Known(index as u32),
            Err(reason) => {
                self.reasons.push(reason);
                GroupUse::Unknown(self.reasons.len() as u32 - 1)
            }
        }
    }
}

/// What a call is given, each with what stands for its parameter: spelled in one way only, where there is a schema.
pub(crate) fn stated(graph: &Graph, node: NodeId, info: Option<&OpInfo>) -> Vec<(u64, Value)> {
    let schema = info.and_then(|info| info.schema.as_ref());
    match schema.and_then(|schema| Bound::new(graph, node, schema).ok()) {
        Some(bound) => bound.stated().map(|(index, value)| (index as u64, value)).collect(),
        None => {
            let args = graph.args(node).iter().enumerate().map(|(index, &value)| (index as u64, value));
            args.chain(graph.kwargs(node).map(|(name, value)| (hash::text(name), value))).collect()
        }
    }
}

fn int(value: Value) -> Option<i64> {
    match value {
        Value::Int(n) => Some(n),
        _ => None,
    }
}

impl Step<'_> {
    fn plain(action: Action) -> Self {
        Step { action, args: [Value::None; PLACES], into: None, info: None, key: 0 }
    }
}

fn check_world(world: &World) -> Result<(), Failure> {
    if let Some(fault) = world.faults().first() {
        return Err(Failure::World { reason: fault.to_string() });
    }
    if let Some(group) = world.groups.iter().find(|g| g.instances.is_empty()) {
        let reason = format!("process group {:?} does not list its ranks", group.name);
        return Err(Failure::World { reason });
    }
    Ok(())
}

fn recorded(graph: &Graph, out: Out) -> u128 {
    match out {
        Out::Tensor(tensor) => {
            graph.numel(graph.tensor(tensor)).and_then(|n| u128::try_from(n).ok()).unwrap_or(0)
        }
        Out::Tuple(span) | Out::Dict(span) => graph.outs(span).iter().map(|&o| recorded(graph, o)).sum(),
        _ => 0,
    }
}

impl<'g> Signature<'g> {
    fn new(info: &'g OpInfo, strings: &Strings) -> Signature<'g> {
        let schema = info.schema.as_ref();
        let parameter = |at: usize| -> Option<(usize, Value)> {
            let default = match &schema?.params.get(at)?.default {
                Some(Constant::Bool(b)) => Value::Bool(*b),
                Some(Constant::Int(n)) => Value::Int(*n),
                Some(Constant::Float(x)) => Value::Float(*x),
                Some(Constant::Text(text)) => strings.find(text).map_or(Value::None, Value::Str),
                // The empty list means what `None` means for every operator with a kernel: all dimensions.
                Some(Constant::None | Constant::Ints(_)) | None => Value::None,
            };
            Some((at, default))
        };
        let find = |names: &str| parameter(names.split('|').find_map(|name| schema?.param(name))?);
        let mut at = [None; PLACES];
        for (index, place) in at.iter_mut().enumerate() {
            *place = match info.kind {
                // Their overloads list what a view takes in one order.
                Kind::View(_) => parameter(index),
                kind => places(kind).get(index).and_then(|names| find(names)),
            };
        }
        let stem = match schema {
            Some(s) => format!("{}.{}.{}", s.namespace, s.name.trim_end_matches('_'), s.overload),
            None => info.target.clone(),
        };
        Signature {
            kind: info.kind,
            schema,
            places: at,
            into: schema.and_then(|s| s.mutated().next()),
            group: find("group_name|process_group").map(|(index, _)| index),
            key: hash::text(&stem),
        }
    }
}

/// The parameters that fill a step's places, by name; `|` separates the names that overloads use.
fn places(kind: Kind) -> &'static [&'static str] {
    match kind {
        // All that there are, in the order of the schema.
        Kind::View(_) => &[],
        Kind::Move(movement) => match movement {
            Move::Clone => &["self|a", "memory_format"],
            Move::Cat | Move::Stack => &["tensors", "dim"],
            Move::Copy => &["self|tensor", "src|data"],
            Move::ForeachCopy => &["self", "src"],
            Move::SliceScatter => &["self", "src", "dim", "start", "end", "step"],
            Move::SelectScatter => &["self", "src", "dim", "index"],
            Move::AsStridedScatter => &["self", "src", "size", "stride", "storage_offset"],
            Move::DiagonalScatter => &["self", "src", "offset", "dim1", "dim2"],
            Move::Pad => &["self", "pad", "value"],
            Move::Repeat => &["self", "repeats"],
            Move::Flip => &["self", "dims"],
            Move::Roll => &["self", "shifts", "dims"],
            Move::Index => &["self", "indices"],
            Move::IndexSelect | Move::Gather => &["self", "dim", "index"],
            Move::IndexPut => &["self", "indices", "values", "accumulate"],
            Move::Scatter | Move::ScatterAdd => &["self", "dim", "index", "src|value"],
            Move::Embedding => &["weight", "indices"],
            Move::ChunkCat => &["tensors", "dim", "num_chunks"],
            Move::SplitWithSizesCopy => {
                &["self|all_gather_output", "split_sizes|all_gather_input_split_sizes", "dim"]
            }
            Move::PreBucketAllGather => &["ag_ins", "group_size", "dtype", "out_dtype_ints", "rank"],
            Move::PreBucketReduceScatter => &["rs_ins", "group_size"],
            Move::AllGatherCopyIn => &[
                "all_gather_inputs",
                "all_gather_output",
                "inp_split_sizes",
                "all_gather_input_numel",
                "rank",
            ],
        },
        Kind::Cast => &["self|a|x", "dtype", "memory_format", "copy"],
        Kind::Fill(Fill::Empty | Fill::Zeros | Fill::Ones | Fill::Full) => {
            &["self", "size", "stride|physical_layout", "fill_value|value|s", "dtype", "memory_format"]
        }
        Kind::Arange => &["start", "end", "step", "dtype"],
        Kind::Random(_) => &["self|input", "size", "p", "dtype", "train", "memory_format"],
        Kind::Unary(_) => &["self", "approximate"],
        Kind::Binary(crate::ops::Binary::ThresholdBackward) => &["grad_output", "self", "threshold"],
        Kind::Binary(_) => &["self", "other|exponent|min|max", "alpha", "rounding_mode"],
        Kind::Where => &["condition", "self", "other"],
        Kind::Fma => &["a", "b", "c"],
        Kind::Clamp => &["self", "min", "max"],
        Kind::MaskedFill => &["self", "mask", "value"],
        Kind::Reduce(_) => &["self", "dim", "keepdim", "dtype"],
        Kind::Cumsum => &["self", "dim", "dtype"],
        Kind::Matmul(Matmul::Addmm | Matmul::Baddbmm) => {
            &["mat1|batch1", "mat2|batch2", "self", "beta", "alpha"]
        }
        Kind::Matmul(_) => &["self", "mat2|vec|tensor|other", "", "", "", "out_dtype"],
        Kind::Collective(_) => &[
            "input|inputs|tensor|tensors|shard|self",
            "out|output",
            "group_size",
            "reduce_op|reduceOp",
            "output_split_sizes|gather_dim|src|root|dst|peer_list",
            "input_split_sizes|shard_dim|tag|tag_list",
            "op_list",
        ],
        Kind::Wait => &["tensor|tensors|self"],
        Kind::SymSize | Kind::SymStride => &["self", "dim"],
        Kind::SymNumel | Kind::Item => &["self"],
        Kind::Assert => &["self", "assert_msg"],
        Kind::Resize => &["variable", "new_size"],
        Kind::Pointwise
        | Kind::GetItem
        | Kind::Number(_)
        | Kind::Sync(_)
        | Kind::Effect
        | Kind::Opaque
        | Kind::Unknown => &[],
    }
}
