//! The forward region: steps that compute values, and a tape of what they did, from which backward is written.

use super::writer::{Region, Var};
use super::{Joint, Second};
use crate::generate::Source;
use crate::graph::{Dim, Dtype, NodeId, Out, Value};

/// What a step did.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// An elementwise operator of one value.
    Unary { target: &'static str, x: Var, y: Var },
    /// A sum.
    Add { a: Var, b: Var, y: Var },
    /// A product, element by element.
    Mul { a: Var, b: Var, y: Var },
    /// A product with a parameter.
    Product { x: Var, weight: usize, y: Var },
    /// A dropout and its mask.
    Dropout { x: Var, y: Var, mask: NodeId },
    /// A product with a mask made by hand.
    Masked { x: Var, y: Var, mask: NodeId },
    /// Items of a split, put together in this order; how many there are, and how wide each is.
    Items { x: Var, y: Var, order: Vec<usize>, count: usize, width: i64 },
    /// A sum over ranks: its gradient passes as it is.
    Passed { x: Var, y: Var },
    /// A product with a row, or a number, that gets no gradient.
    Scaled { x: Var, row: NodeId, y: Var },
}

/// How a gathered parameter is brought into shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Chain {
    /// Not gathered.
    Whole,
    /// Gathered as it is.
    Plain,
    /// Cast, gathered, cast back.
    Cast,
    /// Gathered, then viewed twice.
    Views,
    /// Gathered, split, and put together along the other dimension.
    Reassembled,
    /// Gathered, and cut to size.
    Cut,
}

/// A parameter.
#[derive(Clone, Debug)]
pub(super) struct Weight {
    pub primal: NodeId,
    pub chain: Chain,
    /// Its whole value.
    pub whole: Var,
    /// Every node from the cast before the gather to the whole value.
    pub nodes: Vec<NodeId>,
    /// The gather and its wait among them.
    pub communication: Vec<NodeId>,
}

/// Elementwise operators of one value that backward knows the derivative of.
const UNARY: [&str; 5] =
    ["aten.exp.default", "aten.sin.default", "aten.relu.default", "aten.tanh.default", "aten.neg.default"];

impl<S: Source> Joint<'_, S> {
    /// A value at hand, most likely a recent one.
    pub(super) fn pick(&mut self) -> Var {
        let n = self.pool.len() as u32;
        let back = if self.source.percent(60) { self.source.below(n.min(2)) } else { self.source.below(n) };
        self.pool[(n - 1 - back.min(n - 1)) as usize]
    }

    /// One forward step.
    pub(super) fn step(&mut self) {
        let c = &self.config;
        let weights = [
            c.unary,
            c.binary,
            c.product,
            c.gathered,
            c.dropout,
            c.mask,
            c.items,
            c.reduced,
            c.write,
            c.buffer,
            c.long_chain,
            c.constant,
            c.dead,
            if self.symbol.is_some() { c.scalar } else { 0 },
            c.narrow,
            c.counted,
        ];
        let x = self.pick();
        match self.source.weighted(&weights) {
            0 => {
                let target = self.source.one_of(&UNARY);
                self.unary(target, x);
                if self.twin() {
                    self.unary(target, x);
                }
            }
            1 => self.binary(x),
            2 => self.product(x, false),
            3 => self.product(x, true),
            4 => self.dropout(x),
            5 => self.mask(x),
            6 => {
                self.items(x);
                if self.twin() {
                    self.items(x);
                }
            }
            7 => self.reduced(x),
            8 => self.written(x),
            9 => self.scaled(x, true),
            10 => {
                let length = self.source.between(102, 130);
                (0..length).fold(x, |x, _| self.unary_of(x));
            }
            11 => self.scaled(x, false),
            12 => self.dead(x),
            13 => self.scalar(x),
            14 => self.narrow(x),
            _ => self.counted(x),
        }
    }

    fn did(&mut self, step: Step, y: Var) {
        self.tape.push(step);
        self.keep(y);
    }

    fn unary_of(&mut self, x: Var) -> Var {
        let target = self.source.one_of(&UNARY);
        self.unary(target, x)
    }

    /// Whether equal nodes are written.
    pub(super) fn twin(&mut self) -> bool {
        self.source.percent(self.config.twin)
    }

    fn unary(&mut self, target: &'static str, x: Var) -> Var {
        let y = self.writer.like(target, &[Value::Node(x.node)], x);
        self.did(Step::Unary { target, x, y }, y);
        y
    }

    fn binary(&mut self, a: Var) {
        let others = self.pool_of.of(&(a.rows, a.cols));
        let b = others[self.source.below(others.len() as u32) as usize];
        let operands = [Value::Node(a.node), Value::Node(b.node)];
        if self.source.percent(50) {
            let y = self.writer.like("aten.add.Tensor", &operands, a);
            self.did(Step::Add { a, b, y }, y);
        } else {
            let y = self.writer.like("aten.mul.Tensor", &operands, a);
            self.did(Step::Mul { a, b, y }, y);
        }
    }

    fn product(&mut self, x: Var, gathered: bool) {
        let known = self.weights_of.of(&(Dim::Static(x.cols), gathered));
        let weight = if !known.is_empty() && self.source.percent(self.config.shared) {
            let index = known[self.source.below(known.len() as u32) as usize];
            self.another_view(index)
        } else {
            self.parameter(x.cols, gathered)
        };
        let whole = self.weights[weight].whole;
        let operands = [Value::Node(x.node), Value::Node(whole.node)];
        let y = self.writer.matrix("aten.mm.default", &operands, x.rows, whole.cols);
        self.did(Step::Product { x, weight, y }, y);
    }

    /// The same parameter through one more view: the gathered value fans out.
    fn another_view(&mut self, weight: usize) -> usize {
        let mut seen = self.weights[weight].clone();
        if self.source.percent(50) {
            seen.whole = self.writer.like("aten.alias.default", &[Value::Node(seen.whole.node)], seen.whole);
            seen.nodes.push(seen.whole.node);
        }
        self.keep_weight(seen)
    }

    fn parameter(&mut self, rows: i64, gathered: bool) -> usize {
        let cols = self.source.one_of(&[4i64, 8]);
        let chain = match gathered {
            false => Chain::Whole,
            true => {
                self.source.one_of(&[Chain::Plain, Chain::Views, Chain::Cast, Chain::Reassembled, Chain::Cut])
            }
        };
        let ranks = self.ranks;
        let shape = match chain {
            Chain::Whole => [rows, cols],
            Chain::Plain | Chain::Views | Chain::Cast => [rows / ranks, cols],
            Chain::Reassembled => [rows, cols / ranks],
            Chain::Cut => [rows / ranks + 1, cols],
        };
        let out = self.writer.tensor(&shape.map(Dim::Static), Dtype::F32);
        let primal = self.writer.primal(out);
        let weight = self.gathered(primal, chain, rows, cols);
        self.keep_weight(weight)
    }

    /// Where the parameter is kept.
    pub(super) fn keep_weight(&mut self, weight: Weight) -> usize {
        let place = self.weights.len();
        self.weights_of.push((weight.whole.rows, weight.chain != Chain::Whole), place);
        self.weights.push(weight);
        place
    }

    /// The whole value of a parameter.
    pub(super) fn gathered(&mut self, primal: NodeId, chain: Chain, rows: i64, cols: i64) -> Weight {
        let ranks = self.ranks;
        let size = Dim::Static;
        let mut weight = Weight {
            primal,
            chain,
            whole: Var { node: primal, rows: size(rows), cols },
            nodes: Vec::new(),
            communication: Vec::new(),
        };
        let (shard_rows, shard_cols) = match chain {
            Chain::Whole => return weight,
            Chain::Reassembled => (rows, cols / ranks),
            Chain::Cut => (rows / ranks + 1, cols),
            _ => (rows / ranks, cols),
        };
        let (mut shard, mut dtype) = (primal, Dtype::F32);
        if chain == Chain::Cast {
            dtype = Dtype::BF16;
            shard = self.writer.cast(shard, shard_rows, shard_cols, dtype);
            weight.nodes.push(shard);
        }
        let full = shard_rows * ranks;
        let out = self.writer.tensor(&[size(full), size(shard_cols)], dtype);
        let group = Value::Str(self.writer.graph.intern("dp"));
        let gather = self.writer.call(
            "_c10d_functional.all_gather_into_tensor.default",
            &[Value::Node(shard), Value::Int(ranks), group],
            out,
        );
        let wait = self.writer.wait(gather, size(full), shard_cols, dtype);
        weight.communication = vec![gather, wait];
        weight.nodes.extend([gather, wait]);
        let w = &mut self.writer;
        let node = match chain {
            Chain::Whole | Chain::Plain => wait,
            Chain::Cast => w.cast(wait, rows, cols, Dtype::F32),
            Chain::Views => {
                let turned = w.transposed(Var { node: wait, rows: size(rows), cols });
                weight.nodes.push(turned);
                let out = w.tensor(&[size(rows), size(cols)], Dtype::F32);
                let order = w.graph.int_list(&[1, 0]);
                w.call("aten.permute.default", &[Value::Node(turned), order], out)
            }
            Chain::Reassembled => {
                let outs: Vec<Out> = (0..ranks)
                    .map(|i| {
                        let dims = [size(rows), size(shard_cols)];
                        w.strided(&dims, &[size(shard_cols), size(1)], i * rows * shard_cols, dtype)
                    })
                    .collect();
                let tuple = Out::Tuple(w.graph.push_outs(&outs));
                let split = w.call("aten.split.Tensor", &[Value::Node(wait), Value::Int(rows)], tuple);
                let items: Vec<NodeId> =
                    outs.iter().zip(0..).map(|(&out, i)| w.item(split, i, out)).collect();
                weight.nodes.push(split);
                weight.nodes.extend(&items);
                let pieces: Vec<Value> = items.iter().map(|&id| Value::Node(id)).collect();
                let list = w.graph.list(&pieces);
                w.matrix("aten.cat.default", &[list, Value::Int(1)], size(rows), cols).node
            }
            Chain::Cut => {
                let out = w.tensor(&[size(rows), size(cols)], Dtype::F32);
                let args = [Value::Node(wait), Value::Int(0), Value::Int(0), Value::Int(rows)];
                w.call("aten.slice.Tensor", &args, out)
            }
        };
        if node != wait {
            weight.nodes.push(node);
        }
        weight.whole = Var { node, rows: size(rows), cols };
        weight
    }

    fn dropout(&mut self, x: Var) {
        let w = &mut self.writer;
        let dims = super::writer::Writer::dims(x);
        let outs = [w.tensor(&dims, Dtype::F32), w.tensor(&dims, Dtype::Bool)];
        let tuple = Out::Tuple(w.graph.push_outs(&outs));
        let args = [Value::Node(x.node), Value::Float(0.5), Value::Bool(true)];
        let both = w.call("aten.native_dropout.default", &args, tuple);
        let y = Var { node: w.item(both, 0, outs[0]), ..x };
        let mask = w.item(both, 1, outs[1]);
        self.did(Step::Dropout { x, y, mask }, y);
    }

    fn mask(&mut self, x: Var) {
        let random = self.writer.like("aten.rand_like.default", &[Value::Node(x.node)], x);
        let out = self.writer.tensor(&super::writer::Writer::dims(x), Dtype::Bool);
        let mask = self.writer.call("aten.gt.Scalar", &[Value::Node(random.node), Value::Float(0.5)], out);
        let y = self.writer.like("aten.mul.Tensor", &[Value::Node(x.node), Value::Node(mask)], x);
        self.did(Step::Masked { x, y, mask }, y);
    }

    fn items(&mut self, x: Var) {
        let count = if x.cols % 4 == 0 && self.source.percent(50) { 4 } else { 2usize };
        let width = x.cols / count as i64;
        let w = &mut self.writer;
        let outs: Vec<Out> = (0..count as i64)
            .map(|i| {
                let dims = [x.rows, Dim::Static(width)];
                w.strided(&dims, &[Dim::Static(x.cols), Dim::Static(1)], i * width, Dtype::F32)
            })
            .collect();
        let tuple = Out::Tuple(w.graph.push_outs(&outs));
        let args = [Value::Node(x.node), Value::Int(width), Value::Int(1)];
        let split = w.call("aten.split.Tensor", &args, tuple);
        // As many columns as before, so that a product fits; some items twice, some not at all.
        let order: Vec<usize> = (0..count).map(|_| self.source.below(count as u32) as usize).collect();
        let mut of: Vec<Option<NodeId>> = vec![None; count];
        let mut pieces = Vec::new();
        for &index in &order {
            let item = match of[index] {
                Some(item) => item,
                None => self.writer.item(split, index as i64, outs[index]),
            };
            of[index] = Some(item);
            pieces.push(Value::Node(item));
        }
        let list = self.writer.graph.list(&pieces);
        let y = self.writer.like("aten.cat.default", &[list, Value::Int(1)], x);
        self.did(Step::Items { x, y, order, count, width }, y);
    }

    /// A sum over the ranks of a group.
    pub(super) fn summed(&mut self, x: Var) -> Var {
        let second = self.second != Second::None && self.source.percent(50);
        self.summed_on(x, if second { "tp" } else { "dp" })
    }

    fn summed_on(&mut self, x: Var, group: &str) -> Var {
        let sum = Value::Str(self.writer.graph.intern("sum"));
        let group = Value::Str(self.writer.graph.intern(group));
        let target = "_c10d_functional.all_reduce.default";
        let started = self.writer.like(target, &[Value::Node(x.node), sum, group], x);
        Var { node: self.writer.wait(started.node, x.rows, x.cols, Dtype::F32), ..x }
    }

    fn reduced(&mut self, x: Var) {
        let y = self.summed(x);
        self.did(Step::Passed { x, y }, y);
        if self.twin() {
            for group in ["dp", "tp"].into_iter().take(if self.second == Second::None { 1 } else { 2 }) {
                let y = self.summed_on(x, group);
                self.did(Step::Passed { x, y }, y);
            }
        }
    }

    /// A product with a number that is computed from the symbol.
    fn scalar(&mut self, x: Var) {
        let Some(symbol) = self.symbol else { return };
        let number = if self.source.percent(50) {
            let out = match self.writer.symbol("2*s0", 2 * self.rows_hint()) {
                Dim::Symbolic(expr) => Out::SymInt(expr),
                Dim::Static(_) => return,
            };
            self.writer.call("operator.mul", &[Value::Node(symbol), Value::Int(2)], out)
        } else {
            let out = Out::Other(self.writer.graph.intern("SymFloat"));
            self.writer.call("operator.truediv", &[Value::Node(symbol), Value::Int(2)], out)
        };
        self.untaggable.push(number);
        let y = self.writer.like("aten.mul.Tensor", &[Value::Node(x.node), Value::Node(number)], x);
        self.did(Step::Scaled { x, row: number, y }, y);
    }

    /// What the symbol stands for.
    fn rows_hint(&self) -> i64 {
        self.inputs.first().map_or(1, |input| self.writer.graph.hint(input.rows).unwrap_or(1))
    }

    /// A product with the sum over its rows: a reduction to as many elements as there are columns.
    fn narrow(&mut self, x: Var) {
        let out = self.writer.tensor(&[Dim::Static(x.cols)], Dtype::F32);
        let rows = self.writer.graph.int_list(&[0]);
        let row = self.writer.call("aten.sum.dim_IntList", &[Value::Node(x.node), rows], out);
        let y = self.writer.like("aten.mul.Tensor", &[Value::Node(x.node), Value::Node(row)], x);
        self.did(Step::Scaled { x, row, y }, y);
    }

    /// Integers plus 1 and plus 1.0: equal numbers of different types. One of the sums scales, the other is returned.
    fn counted(&mut self, x: Var) {
        let dims = [Dim::Static(x.cols)];
        let out = self.writer.tensor(&dims, Dtype::I64);
        let input = self.writer.primal(out);
        let whole = self.writer.call("aten.add.Tensor", &[Value::Node(input), Value::Int(1)], out);
        let out = self.writer.tensor(&dims, Dtype::F32);
        let row = self.writer.call("aten.add.Tensor", &[Value::Node(input), Value::Float(1.0)], out);
        let out = self.writer.tensor(&dims, Dtype::I64);
        let count = self.writer.call("aten.neg.default", &[Value::Node(whole)], out);
        self.counts.push(count);
        let y = self.writer.like("aten.mul.Tensor", &[Value::Node(x.node), Value::Node(row)], x);
        self.did(Step::Scaled { x, row, y }, y);
    }

    /// A copy that is written in place; only what the write returns is used.
    fn written(&mut self, x: Var) {
        let copy = self.writer.like("aten.clone.default", &[Value::Node(x.node)], x);
        if self.twin() {
            let other = self.writer.like("aten.clone.default", &[Value::Node(x.node)], x);
            self.did(Step::Passed { x, y: other }, other);
        }
        let y = self.writer.like("aten.add_.Tensor", &[Value::Node(copy.node), Value::Node(x.node)], x);
        self.untaggable.extend([copy.node, y.node]);
        self.did(Step::Add { a: x, b: x, y }, y);
    }

    /// A product with a row: a buffer seen through a function, or a constant of the module.
    fn scaled(&mut self, x: Var, buffer: bool) {
        let dims = [Dim::Static(x.cols)];
        let out = self.writer.tensor(&dims, Dtype::F32);
        let row = if buffer {
            let primal = self.writer.primal(out);
            self.buffers.push((primal, x.cols));
            let out = self.writer.tensor(&dims, Dtype::F32);
            let row = self.writer.call("aten.sin.default", &[Value::Node(primal)], out);
            self.untaggable.push(row);
            row
        } else {
            self.writer.constant(out)
        };
        let y = self.writer.like("aten.mul.Tensor", &[Value::Node(x.node), Value::Node(row)], x);
        self.did(Step::Scaled { x, row, y }, y);
    }

    fn dead(&mut self, x: Var) {
        self.writer.like("aten.cos.default", &[Value::Node(x.node)], x);
    }

    /// Writes to buffers at the end of forward.
    pub(super) fn epilogue(&mut self) {
        for (buffer, cols) in self.buffers.clone() {
            if !self.source.percent(self.config.epilogue) {
                continue;
            }
            self.writer.region = Region::Forward;
            let out = self.writer.tensor(&[Dim::Static(cols)], Dtype::F32);
            let next = self.writer.call("aten.add.Tensor", &[Value::Node(buffer), Value::Float(1.0)], out);
            self.untaggable.push(next);
            self.forward_writes.push((buffer, next, cols));
        }
    }
}
