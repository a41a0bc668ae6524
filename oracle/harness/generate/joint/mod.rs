//! Joint graphs: forward and backward of one training step in one graph, valid by construction.
//!
//! # General strategy
//!
//! 1. The [`Config`] says what may occur; a swarm switches features on and off for each case.
//! 2. Forward steps compute on matrices at hand and write down, on a tape, what they did: elementwise operators,
//!    products with parameters (whole, or gathered through one of several chains), dropout, splits with gaps, sums
//!    over ranks, writes, buffers.
//! 3. Some values become outputs, with a tangent each. The tape is read backwards, as autograd does: so backward reads
//!    what a real backward reads, and has its chains that depend on inputs only.
//! 4. Buffers are written at the end, on either side.
//! 5. Tags are added: gathers that are to be repeated, regions of checkpointing, single tags, tags of an earlier
//!    partition. Then the method and its options are drawn.
//!
//! Choices come from a [`Source`]; the same choices give the same case on every machine.
//!
//! *Valid* means: some partition of the graph is right. So what reads a buffer that is written later, and what takes
//! part in a write, is never tagged to be recomputed; and backward reads no buffer that forward writes.
//!
//! # What it does not make
//!
//! Effect tokens, higher-order operators, unbacked symbols, objects. [`graft`](fn@graft) takes what real joint graphs
//! have.

mod backward;
mod by_kind;
mod config;
mod features;
mod forward;
mod graft;
pub mod naive;
mod tags;
#[cfg(test)]
mod tests;
mod writer;

pub use config::Config;
pub use features::Feature;
pub use graft::graft;
pub use tags::untag;

use crate::case::{Case, PassConfig, Setting};
use crate::generate::{Seeded, Source};
use crate::graph::{Dim, Dtype, Graph, Group, NodeId, Out, Value, World};
use by_kind::ByKind;
use forward::{Step, Weight};
use std::collections::{BTreeMap, BTreeSet};
use writer::{Region, Var, Writer};

/// Case number `index` of the campaign `seed`: a swarm of `config`.
pub fn case(config: &Config, seed: u64, index: u64) -> Case {
    let mut source = Seeded::case(seed, index);
    let config = config.clone().swarmed(&mut source);
    generate(&mut source, &config)
}

/// A case from the choices of `source`. Knobs out of their range count as the nearest value in it.
pub fn generate(source: &mut impl Source, config: &Config) -> Case {
    let config = config.clamped();
    source.step();
    let ranks = [2i64, 4].into_iter().rfind(|&n| n <= i64::from(config.ranks) && source.percent(60));
    let ranks = ranks.unwrap_or(2);
    let second = match source.percent(config.second_group) {
        true if ranks == 2 && source.percent(40) => Second::Mesh,
        true => Second::Alone,
        false => Second::None,
    };
    let mut joint = Joint::new(source, config, ranks, second);
    joint.begin();
    let steps = joint.source.length(joint.config.steps.min(3), joint.config.steps);
    for _ in 0..steps {
        if !joint.source.step() {
            break;
        }
        joint.step();
    }
    joint.end()
}

/// The second process group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Second {
    /// There is none.
    None,
    /// Every rank is alone in it.
    Alone,
    /// The other axis of a mesh: there are twice as many ranks as in the first group.
    Mesh,
}

/// The process groups, `dp` and maybe `tp`. `size` ranks are in an instance of the first.
fn world(size: i64, second: Second) -> World {
    let group = |name: &str, instances: Vec<Vec<u32>>| Group {
        name: name.into(),
        size: instances.first().map_or(0, |instance| instance.len() as u32),
        instances,
        recorded_rank: None,
    };
    let size = size as u32;
    let row = |first: u32| (first..first + size).collect::<Vec<u32>>();
    match second {
        Second::None => World { ranks: Some(size), groups: vec![group("dp", vec![row(0)])] },
        Second::Alone => {
            let alone = (0..size).map(|rank| vec![rank]).collect();
            World { ranks: Some(size), groups: vec![group("dp", vec![row(0)]), group("tp", alone)] }
        }
        Second::Mesh => {
            let columns = (0..size).map(|rank| vec![rank, rank + size]).collect();
            let groups = vec![group("dp", vec![row(0), row(size)]), group("tp", columns)];
            World { ranks: Some(2 * size), groups }
        }
    }
}

/// A joint graph being made.
struct Joint<'a, S> {
    source: &'a mut S,
    config: Config,
    /// Ranks in an instance of the first group.
    ranks: i64,
    second: Second,
    writer: Writer,
    /// Values at hand.
    pool: Vec<Var>,
    /// The same by rows and columns.
    pool_of: ByKind<(Dim, i64), Var>,
    tape: Vec<Step>,
    weights: Vec<Weight>,
    /// The places of weights by rows of the whole value, and whether it is gathered.
    weights_of: ByKind<(Dim, bool), usize>,
    /// Inputs that are no parameters.
    inputs: Vec<Var>,
    /// Buffers, with their number of elements.
    buffers: Vec<(NodeId, i64)>,
    /// Buffers that forward writes at its end, with what, and the number of elements.
    forward_writes: Vec<(NodeId, NodeId, i64)>,
    /// Buffers that backward clears before it begins.
    cleared: BTreeSet<NodeId>,
    /// Values that get no gradient and are returned.
    counts: Vec<NodeId>,
    /// The symbol, as an input.
    symbol: Option<NodeId>,
    /// Gradients of inputs and parameters.
    gradients: BTreeMap<NodeId, NodeId>,
    /// Nodes that must not be recomputed.
    untaggable: Vec<NodeId>,
}

impl<'a, S: Source> Joint<'a, S> {
    fn new(source: &'a mut S, config: Config, ranks: i64, second: Second) -> Joint<'a, S> {
        Joint {
            source,
            config,
            ranks,
            second,
            writer: Writer::new(world(ranks, second)),
            pool: Vec::new(),
            pool_of: ByKind::new(),
            tape: Vec::new(),
            weights: Vec::new(),
            weights_of: ByKind::new(),
            inputs: Vec::new(),
            buffers: Vec::new(),
            forward_writes: Vec::new(),
            cleared: BTreeSet::new(),
            counts: Vec::new(),
            symbol: None,
            gradients: BTreeMap::new(),
            untaggable: Vec::new(),
        }
    }

    /// A value is at hand.
    fn keep(&mut self, value: Var) {
        self.pool.push(value);
        self.pool_of.push((value.rows, value.cols), value);
    }

    /// The first inputs.
    fn begin(&mut self) {
        let mut rows = Dim::Static(self.source.one_of(&[4i64, 2]));
        if self.source.percent(self.config.symbolic) {
            let hint = rows.known().unwrap_or(4);
            rows = self.writer.symbol("s0", hint);
            let range = ("2".to_string(), "int_oo".to_string());
            self.writer.graph.symbols.push(crate::graph::Symbol {
                name: "s0".into(),
                hint: Some(hint),
                range,
                unbacked: false,
            });
            if let Dim::Symbolic(expr) = rows {
                let symbol = self.writer.primal(Out::SymInt(expr));
                self.symbol = Some(symbol);
                if self.source.percent(self.config.assertion) {
                    self.assertion(symbol, hint);
                }
            }
        }
        for _ in 0..self.source.between(1, 2) {
            let cols = self.source.one_of(&[4i64, 8]);
            let out = self.writer.tensor(&[rows, Dim::Static(cols)], Dtype::F32);
            let input = Var { node: self.writer.primal(out), rows, cols };
            self.inputs.push(input);
            self.keep(input);
        }
        if self.source.percent(self.config.unused_input) {
            let out = self.writer.tensor(&[Dim::Static(4)], Dtype::F32);
            self.writer.primal(out);
        }
    }

    fn assertion(&mut self, symbol: NodeId, hint: i64) {
        let text = self.writer.graph.intern("s0 >= 2");
        let condition =
            self.writer.graph.intern_expr(crate::graph::Expr { text, hint: Some(i64::from(hint >= 2)) });
        let args = [Value::Node(symbol), Value::Int(2)];
        let condition = self.writer.call("operator.ge", &args, Out::SymBool(condition));
        let message = Value::Str(self.writer.graph.intern("the batch has two rows at least"));
        let args = [Value::Node(condition), message];
        let checked = self.writer.call("aten._assert_scalar.default", &args, Out::Absent);
        self.untaggable.extend([condition, checked]);
    }

    /// Outputs, backward, writes, tags, options.
    fn end(mut self) -> Case {
        self.source.step();
        self.epilogue();
        let no_tangent = self.source.percent(self.config.no_tangent);
        let towers = self.source.between(1, self.config.towers) as usize;
        let mut returned: Vec<Var> = Vec::new();
        // The last value, so that most of what was computed is differentiated.
        for tower in 0..towers {
            let var = if tower == 0 { self.pool[self.pool.len() - 1] } else { self.pick() };
            if !returned.iter().any(|known| known.node == var.node) {
                returned.push(var);
            }
        }
        let mut outputs: Vec<Value> = returned.iter().map(|var| Value::Node(var.node)).collect();
        let also: Vec<Var> = self.pool.clone();
        for var in also {
            let known = outputs.contains(&Value::Node(var.node)) || self.inputs.contains(&var);
            if !known && outputs.len() < 6 && self.source.percent(self.config.also_returned / 3) {
                outputs.push(Value::Node(var.node));
            }
        }
        outputs.extend(self.counts.iter().map(|&id| Value::Node(id)));
        if self.source.percent(self.config.returned_view) {
            let input = self.inputs[0];
            outputs.push(Value::Node(self.writer.transposed(input)));
        }
        let forward_outputs = outputs.len();
        if !no_tangent {
            self.clear_early();
            self.differentiate(&returned);
        }
        self.writes();
        let gradients = self.returned_gradients(no_tangent);
        outputs.extend(gradients);
        let config = self.options(forward_outputs);
        tags::add(&mut self, &config);
        let graph = self.writer.finish(&outputs);
        Case { pass: Some(config), ..Case::of_graph(graph) }
    }

    fn differentiate(&mut self, returned: &[Var]) {
        let mut seeds = Vec::new();
        for &var in returned {
            let out = self.writer.tensor(&Writer::dims(var), Dtype::F32);
            seeds.push((var, self.writer.tangent(out)));
        }
        if self.source.percent(self.config.unused_tangent) {
            let out = self.writer.tensor(&[Dim::Static(4)], Dtype::F32);
            self.writer.tangent(out);
        }
        self.backward(&seeds);
        self.writer.region = Region::Backward;
    }

    /// What backward returns: a gradient for each primal, some odd ones among them.
    fn returned_gradients(&mut self, none: bool) -> Vec<Value> {
        if none {
            return vec![Value::None; self.writer.primals.len()];
        }
        let mut values = Vec::new();
        let buffers: BTreeSet<NodeId> = self.buffers.iter().map(|buffer| buffer.0).collect();
        for primal in self.writer.primals.clone() {
            let own = self.gradients.get(&primal).copied();
            let odd = self.source.percent(self.config.odd_gradient);
            // Memory that is written at the end is another value by then.
            let is_buffer = buffers.contains(&primal);
            values.push(match own {
                Some(gradient) if !odd => Value::Node(gradient),
                _ if odd && !is_buffer && Some(primal) != self.symbol => match self.source.below(3) {
                    0 => Value::None,
                    1 => Value::Node(primal),
                    _ => Value::Node(self.pool[self.pool.len() / 2].node),
                },
                _ => Value::None,
            });
        }
        values
    }

    /// The method and its options.
    fn options(&mut self, forward_outputs: usize) -> PassConfig {
        let replay = self.source.percent(self.config.replay);
        let method = match replay {
            true => "replay",
            false if self.source.percent(self.config.default_method) => "default",
            false => "min-cut",
        };
        let mut config = PassConfig::new("partition")
            .with("method", method)
            .with("num_fwd_outputs", forward_outputs.to_string());
        if replay && self.source.percent(self.config.two_stages) {
            config = config.with("first", self.source.one_of(&["default", "min-cut"]));
        }
        // What reads or writes memory that is written must not be computed again, and the pass does not know it.
        if self.untaggable.is_empty() && self.source.percent(self.config.checkpoint_pass) {
            config = config.with("checkpoint", self.source.one_of(&["auto", "operators", "0.000001"]));
        }
        if self.source.percent(self.config.static_inputs) {
            let weights = self.weights.iter().map(|weight| weight.primal);
            let lasting: BTreeSet<NodeId> =
                weights.chain(self.buffers.iter().map(|buffer| buffer.0)).collect();
            let positions = self.writer.primals.iter().enumerate().filter(|(_, id)| lasting.contains(id));
            let positions: Vec<Setting> =
                positions.map(|(index, _)| Setting::Text(index.to_string())).collect();
            if !positions.is_empty() {
                config.options.push(("static_inputs".into(), Setting::List(positions)));
            }
        }
        if method == "min-cut" && self.source.percent(self.config.budget) {
            config = config.with("budget", self.source.one_of(&["0", "0.1", "0.5", "0.9"]));
        }
        config
    }
}

/// The number of forward outputs that a case states.
pub fn forward_outputs(case: &Case) -> Option<usize> {
    let stated = case.pass.as_ref()?.int("num_fwd_outputs").ok()??;
    usize::try_from(stated).ok()
}

/// The values that a joint graph returns.
fn returned(graph: &Graph) -> Vec<Value> {
    let Some(output) = graph.output() else { return Vec::new() };
    let flat = |&value: &Value| match value {
        Value::List(span) => graph.values(span).to_vec(),
        value => vec![value],
    };
    graph.args(output).iter().flat_map(flat).collect()
}
