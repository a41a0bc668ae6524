//! The backward region: the tape of forward, read backwards, as autograd would write it.

use super::Joint;
use super::forward::{Chain, Step};
use super::writer::{Region, Var, Writer};
use crate::generate::Source;
use crate::graph::{Dim, Dtype, NodeId, Out, Value};
use std::collections::{BTreeMap, BTreeSet};

impl<S: Source> Joint<'_, S> {
    /// Writes the backward region from the gradients of some values. Gradients of inputs stay in `self.gradients`.
    pub(super) fn backward(&mut self, seeds: &[(Var, NodeId)]) {
        self.writer.region = Region::Backward;
        let mut of: BTreeMap<NodeId, Var> = BTreeMap::new();
        for &(var, tangent) in seeds {
            self.accumulate(&mut of, var, Var { node: tangent, ..var });
        }
        for step in std::mem::take(&mut self.tape).into_iter().rev() {
            self.undo(&mut of, step);
        }
        for input in self.inputs.clone() {
            if let Some(gradient) = of.get(&input.node) {
                self.gradients.insert(input.node, gradient.node);
            }
        }
    }

    fn accumulate(&mut self, of: &mut BTreeMap<NodeId, Var>, var: Var, gradient: Var) {
        let sum = match of.get(&var.node) {
            Some(known) => {
                let operands = [Value::Node(known.node), Value::Node(gradient.node)];
                self.writer.like("aten.add.Tensor", &operands, gradient)
            }
            None => gradient,
        };
        of.insert(var.node, sum);
    }

    fn undo(&mut self, of: &mut BTreeMap<NodeId, Var>, step: Step) {
        let y = match &step {
            Step::Unary { y, .. }
            | Step::Add { y, .. }
            | Step::Mul { y, .. }
            | Step::Product { y, .. }
            | Step::Dropout { y, .. }
            | Step::Masked { y, .. }
            | Step::Items { y, .. }
            | Step::Passed { y, .. }
            | Step::Scaled { y, .. } => *y,
        };
        let Some(&g) = of.get(&y.node) else { return };
        let times = |this: &mut Self, a: NodeId, b: NodeId, like: Var| {
            this.writer.like("aten.mul.Tensor", &[Value::Node(a), Value::Node(b)], like)
        };
        match step {
            Step::Unary { target, x, y } => {
                // What forward has may be computed anew.
                let y = match self.twin() {
                    true => self.writer.like(target, &[Value::Node(x.node)], x),
                    false => y,
                };
                let gradient = match target {
                    "aten.exp.default" => times(self, g.node, y.node, x),
                    "aten.sin.default" => {
                        // Depends on no tangent, and stands in the backward region.
                        let slope = self.writer.like("aten.cos.default", &[Value::Node(x.node)], x);
                        times(self, g.node, slope.node, x)
                    }
                    "aten.relu.default" => {
                        let args = [Value::Node(g.node), Value::Node(y.node), Value::Int(0)];
                        self.writer.like("aten.threshold_backward.default", &args, x)
                    }
                    "aten.tanh.default" => {
                        let square = times(self, y.node, y.node, x);
                        times(self, g.node, square.node, x)
                    }
                    _ => self.writer.like("aten.neg.default", &[Value::Node(g.node)], x),
                };
                self.accumulate(of, x, gradient);
            }
            Step::Add { a, b, .. } => {
                self.accumulate(of, a, Var { node: g.node, ..a });
                self.accumulate(of, b, Var { node: g.node, ..b });
            }
            Step::Mul { a, b, .. } => {
                let to_a = times(self, g.node, b.node, a);
                self.accumulate(of, a, to_a);
                let to_b = times(self, g.node, a.node, b);
                self.accumulate(of, b, to_b);
            }
            Step::Product { x, weight, .. } => self.undo_product(of, x, weight, g),
            Step::Dropout { x, mask, .. } => {
                let args = [Value::Node(g.node), Value::Node(mask), Value::Float(2.0)];
                let gradient = self.writer.like("aten.native_dropout_backward.default", &args, x);
                self.accumulate(of, x, gradient);
            }
            Step::Masked { x, mask, .. } => {
                let gradient = times(self, g.node, mask, x);
                self.accumulate(of, x, gradient);
            }
            Step::Scaled { x, row, .. } => {
                let gradient = times(self, g.node, row, x);
                self.accumulate(of, x, gradient);
            }
            Step::Passed { x, .. } => self.accumulate(of, x, Var { node: g.node, ..x }),
            Step::Items { x, order, count, width, .. } => {
                let gradient = self.undo_items(x, &order, count, width, g);
                self.accumulate(of, x, gradient);
            }
        }
    }

    fn undo_product(&mut self, of: &mut BTreeMap<NodeId, Var>, x: Var, weight: usize, g: Var) {
        let weight = self.weights[weight].clone();
        let rows = weight.whole.rows.known().unwrap_or(1);
        let again = weight.chain != Chain::Whole && self.source.percent(self.config.duplicate);
        let whole = match again {
            true => {
                let again = self.gathered(weight.primal, weight.chain, rows, weight.whole.cols);
                let whole = again.whole;
                self.keep_weight(again);
                whole
            }
            false => weight.whole,
        };
        let turned = self.writer.transposed(whole);
        let to_x = self.writer.matrix(
            "aten.mm.default",
            &[Value::Node(g.node), Value::Node(turned)],
            x.rows,
            x.cols,
        );
        self.accumulate(of, x, to_x);
        let turned = self.writer.transposed(x);
        let to_weight = self.writer.matrix(
            "aten.mm.default",
            &[Value::Node(turned), Value::Node(g.node)],
            Dim::Static(x.cols),
            g.cols,
        );
        // The gradient of the shard: of each use by itself, then summed.
        let gradient = self.scattered(to_weight, weight.chain);
        let sum = match self.gradients.get(&weight.primal).copied() {
            None => gradient.node,
            Some(known) => {
                let operands = [Value::Node(known), Value::Node(gradient.node)];
                self.writer.like("aten.add.Tensor", &operands, gradient).node
            }
        };
        self.gradients.insert(weight.primal, sum);
    }

    /// The gradient of a parameter's shard from that of the whole.
    fn scattered(&mut self, whole: Var, chain: Chain) -> Var {
        let ranks = self.ranks;
        let rows = whole.rows.known().unwrap_or(1);
        let size = Dim::Static;
        let (mut full, mut dtype) = (whole, Dtype::F32);
        match chain {
            Chain::Whole => {
                return if self.source.percent(30) { self.summed(whole) } else { whole };
            }
            Chain::Plain | Chain::Views => {}
            Chain::Cast => {
                dtype = Dtype::BF16;
                full.node = self.writer.cast(whole.node, rows, whole.cols, dtype);
            }
            Chain::Reassembled => {
                let width = whole.cols / ranks;
                let w = &mut self.writer;
                let outs: Vec<Out> = (0..ranks)
                    .map(|i| {
                        let dims = [size(rows), size(width)];
                        w.strided(&dims, &[size(whole.cols), size(1)], i * width, dtype)
                    })
                    .collect();
                let tuple = Out::Tuple(w.graph.push_outs(&outs));
                let args = [Value::Node(whole.node), Value::Int(width), Value::Int(1)];
                let split = w.call("aten.split.Tensor", &args, tuple);
                let pieces: Vec<Value> =
                    outs.iter().zip(0..).map(|(&out, i)| Value::Node(w.item(split, i, out))).collect();
                let list = w.graph.list(&pieces);
                full = w.matrix("aten.cat.default", &[list], size(rows * ranks), width);
            }
            Chain::Cut => {
                let args = [Value::Node(whole.node)];
                let rest = self.writer.like("aten.zeros_like.default", &args, whole);
                let missing = ranks;
                let out = self.writer.tensor(&[size(missing), size(whole.cols)], dtype);
                let args = [Value::Node(rest.node), Value::Int(0), Value::Int(0), Value::Int(missing)];
                let padding = self.writer.call("aten.slice.Tensor", &args, out);
                let list = self.writer.graph.list(&[Value::Node(whole.node), Value::Node(padding)]);
                full = self.writer.matrix("aten.cat.default", &[list], size(rows + missing), whole.cols);
            }
        }
        let shard_rows = full.rows.known().unwrap_or(1) / ranks;
        let sum = Value::Str(self.writer.graph.intern("sum"));
        let group = Value::Str(self.writer.graph.intern("dp"));
        let out = self.writer.tensor(&[size(shard_rows), size(full.cols)], dtype);
        let args = [Value::Node(full.node), sum, Value::Int(ranks), group];
        let started = self.writer.call("_c10d_functional.reduce_scatter_tensor.default", &args, out);
        let mut node = self.writer.wait(started, size(shard_rows), full.cols, dtype);
        if dtype != Dtype::F32 {
            node = self.writer.cast(node, shard_rows, full.cols, Dtype::F32);
        }
        Var { node, rows: size(shard_rows), cols: full.cols }
    }

    fn undo_items(&mut self, x: Var, order: &[usize], count: usize, width: i64, g: Var) -> Var {
        let mut of: Vec<Option<Var>> = vec![None; count];
        let dims = [x.rows, Dim::Static(width)];
        let strides = [Dim::Static(x.cols), Dim::Static(1)];
        for (place, &index) in order.iter().enumerate() {
            let start = place as i64 * width;
            let out = self.writer.strided(&dims, &strides, start, Dtype::F32);
            let args = [Value::Node(g.node), Value::Int(1), Value::Int(start), Value::Int(start + width)];
            let piece = self.writer.call("aten.slice.Tensor", &args, out);
            let piece = Var { node: piece, rows: x.rows, cols: width };
            of[index] = Some(match of[index] {
                None => piece,
                Some(known) => {
                    let operands = [Value::Node(known.node), Value::Node(piece.node)];
                    self.writer.like("aten.add.Tensor", &operands, piece)
                }
            });
        }
        let zeros = of.iter().any(Option::is_none).then(|| {
            let all = self.writer.like("aten.zeros_like.default", &[Value::Node(g.node)], g);
            let out = self.writer.strided(&dims, &strides, 0, Dtype::F32);
            let args = [Value::Node(all.node), Value::Int(1), Value::Int(0), Value::Int(width)];
            self.writer.call("aten.slice.Tensor", &args, out)
        });
        let pieces: Vec<Value> =
            of.iter().filter_map(|piece| piece.map(|var| var.node).or(zeros)).map(Value::Node).collect();
        let list = self.writer.graph.list(&pieces);
        self.writer.like("aten.cat.default", &[list, Value::Int(1)], x)
    }

    /// Clears buffers before backward begins: they depend on no tangent, and nobody in backward reads them.
    pub(super) fn clear_early(&mut self) {
        let written = self.written_by_forward();
        for (buffer, cols) in self.buffers.clone() {
            if written.contains(&buffer) || !self.source.percent(self.config.early_clear) {
                continue;
            }
            self.writer.region = Region::Backward;
            let out = self.writer.tensor(&[Dim::Static(cols)], Dtype::F32);
            self.writer.call("aten.zero_.default", &[Value::Node(buffer)], out);
            self.cleared.insert(buffer);
        }
    }

    /// Writes to buffers, forward's and backward's.
    pub(super) fn writes(&mut self) {
        let copy = |writer: &mut Writer, region, buffer: NodeId, from: NodeId, cols: i64| {
            writer.region = region;
            let out = writer.tensor(&[Dim::Static(cols)], Dtype::F32);
            writer.call("aten.copy_.default", &[Value::Node(buffer), Value::Node(from)], out)
        };
        for (buffer, next, cols) in self.forward_writes.clone() {
            let node = copy(&mut self.writer, Region::MustForward, buffer, next, cols);
            self.untaggable.push(node);
        }
        let written = self.written_by_forward();
        for (buffer, cols) in self.buffers.clone() {
            let percent = if written.contains(&buffer) { self.config.both_write } else { 100 };
            if self.cleared.contains(&buffer) {
                continue;
            }
            if !self.source.percent(self.config.backward_write) || !self.source.percent(percent) {
                continue;
            }
            if self.source.percent(self.config.cleared) {
                self.writer.region = Region::Backward;
                let out = self.writer.tensor(&[Dim::Static(cols)], Dtype::F32);
                self.writer.call("aten.zero_.default", &[Value::Node(buffer)], out);
                continue;
            }
            // The gradient of some value with as many columns, summed over its rows.
            let Some(g) = self.gradient_with(cols) else { continue };
            self.writer.region = Region::Backward;
            let out = self.writer.tensor(&[Dim::Static(cols)], Dtype::F32);
            let rows = self.writer.graph.int_list(&[0]);
            let sum = self.writer.call("aten.sum.dim_IntList", &[Value::Node(g), rows], out);
            let node = copy(&mut self.writer, Region::MustBackward, buffer, sum, cols);
            self.untaggable.extend([sum, node]);
        }
    }

    fn written_by_forward(&self) -> BTreeSet<NodeId> {
        self.forward_writes.iter().map(|write| write.0).collect()
    }

    /// The gradient of an input with this many columns.
    fn gradient_with(&self, cols: i64) -> Option<NodeId> {
        let inputs = self.inputs.iter().filter(|input| input.cols == cols);
        inputs.filter_map(|input| self.gradients.get(&input.node)).copied().next()
    }
}
