//! Kernels against PyTorch's eager results, bit for bit, or within the units of the last place that a case states.
//!
//! Runs where GRAPH_ORACLE_PYTHON names a Python with torch: `GRAPH_ORACLE_PYTHON=python cargo test --lib peer`.
//! Elsewhere a line says what was skipped.

use super::*;
use crate::semantics::hash::mix;

/// Numbers from one seed.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = mix(self.0, 1);
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n.max(1)
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// A value that shows rounding, signs and special cases.
    fn float(&mut self) -> f64 {
        match self.below(12) {
            0 => self.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0]),
            1 => (self.below(2000) as f64 - 1000.0) * 37.3,
            _ => (self.below(1 << 20) as f64 / (1 << 17) as f64) - 4.0,
        }
    }

    fn int(&mut self) -> f64 {
        self.below(13) as f64 - 6.0
    }
}

/// Cases under construction.
struct Cases {
    chance: Chance,
    json: Vec<String>,
}

const FLOATS: [Dtype; 4] = [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16];
const INTS: [Dtype; 5] = [Dtype::I64, Dtype::I32, Dtype::I16, Dtype::I8, Dtype::U8];

fn everything() -> Vec<Dtype> {
    FLOATS.into_iter().chain(INTS).chain([Dtype::Bool]).collect()
}

impl Cases {
    /// Adds an input of random layout and contents.
    fn input(&mut self, s: &mut Sketch, dtype: Dtype, shape: &[i64], ints: bool) -> NodeId {
        let name = format!("x{}", s.graph.len());
        let strides = match self.chance.below(3) {
            0 => layout::contiguous(Dims::new(shape).unwrap()).to_vec(),
            1 => {
                // Dimensions in another order, with gaps.
                let mut order: Vec<usize> = (0..shape.len()).collect();
                (0..shape.len()).for_each(|i| order.swap(i, self.chance.below(shape.len())));
                let mut strides = vec![0; shape.len()];
                let mut step = 1 + self.chance.below(2) as i64;
                for i in order {
                    strides[i] = step;
                    step *= shape[i].max(1);
                }
                strides
            }
            _ => {
                let mut strides = layout::contiguous(Dims::new(shape).unwrap()).to_vec();
                if !strides.is_empty() {
                    let at = self.chance.below(strides.len());
                    strides[at] = 0;
                }
                strides
            }
        };
        let id = s.strided(&name, dtype, shape, &strides);
        let count: i64 = shape.iter().product();
        let values: Vec<f64> =
            (0..count).map(|_| if ints { self.chance.int() } else { self.chance.float() }).collect();
        s.give(&name, 0, dtype, &values);
        id
    }

    /// Ends a case: what the interpreter makes of it, ready to be compared.
    fn done(&mut self, name: String, s: Sketch, outputs: &[NodeId], ulps: u32) {
        self.near(name, s, outputs, ulps, 0.0);
    }

    /// Like [`Cases::done`]; a difference of up to `absolute` is allowed as well.
    fn near(&mut self, name: String, mut s: Sketch, outputs: &[NodeId], ulps: u32, absolute: f64) {
        s.output(outputs);
        let domain = Numbers::default();
        let mut text = Vec::new();
        crate::format::json::write(&s.graph, &mut text).unwrap();
        let graph = String::from_utf8(text).unwrap();
        let ops = Ops::of(&s.graph);
        let options = Options { given: s.given.clone(), ..Options::default() };
        let list = |cells: Vec<String>| format!("[{}]", cells.join(","));
        let result = Program::new(&s.graph, &ops, &s.world).and_then(|program| {
            let inputs = inputs(&program, 0, &domain, &options)?;
            Ok((inputs, run(&[program], &s.world, &domain, &options)?))
        });
        let (inputs, rest) = match result {
            Err(failure) => (Vec::new(), format!("\"failure\":{:?},\"outputs\":[]", failure.to_string())),
            Ok((inputs, run)) => {
                let outputs = run.ranks[0].outputs.iter().map(|(_, leaf)| match leaf {
                    Leaf::Tensor(tensor) => {
                        let cell = |(i, c): (usize, &u64)| match tensor.poison.get(i) {
                            Some(true) => "null".to_string(),
                            _ => c.to_string(),
                        };
                        let cells = tensor.cells.iter().enumerate().map(cell).collect();
                        format!(
                            "{{\"dtype\":{:?},\"shape\":{:?},\"cells\":{}}}",
                            tensor.dtype.name(),
                            tensor.shape,
                            list(cells)
                        )
                    }
                    _ => "null".to_string(),
                });
                (inputs, format!("\"outputs\":{}", list(outputs.collect())))
            }
        };
        let inputs = inputs.iter().filter_map(|input| match &input.value {
            Leaf::Tensor(t) => {
                let cells = t.cells.iter().map(u64::to_string).collect();
                Some(format!("{{\"name\":{:?},\"cells\":{}}}", input.name, list(cells)))
            }
            _ => None,
        });
        self.json.push(format!(
            "{{\"name\":{name:?},\"ulps\":{ulps},\"absolute\":{absolute:?},\"inputs\":{},\"graph\":{graph},{rest}}}",
            list(inputs.collect())
        ));
    }

    fn unary(&mut self) {
        let exact =
            ["relu", "neg", "abs", "sign", "square", "floor", "ceil", "round", "trunc", "isnan", "isinf"];
        let exact = exact.into_iter().chain(["logical_not", "bitwise_not", "reciprocal"]);
        let rounded = ["exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "rsqrt", "sigmoid", "silu"];
        let rounded = rounded.into_iter().chain(["gelu", "tanh", "sin", "cos"]);
        for (name, ulps) in exact.map(|n| (n, 0)).chain(rounded.map(|n| (n, 2))) {
            for dtype in everything() {
                for shape in [&[3, 4][..], &[]] {
                    let mut s = Sketch::new(1);
                    let x = self.input(&mut s, dtype, shape, false);
                    let y = s.call(&format!("aten.{name}.default"), list![x]);
                    // PyTorch loses digits in 1 + erf(x), and in 1 + tanh(x) below.
                    let absolute = if name == "gelu" { 5e-7 } else { 0.0 };
                    self.near(format!("{name} {dtype:?} {shape:?}"), s, &[y], ulps, absolute);
                }
            }
        }
        for dtype in FLOATS {
            let mut s = Sketch::new(1);
            let x = self.input(&mut s, dtype, &[20], false);
            let y = s.call_with("aten.gelu.default", list![x], &[("approximate", "tanh".into())]);
            self.near(format!("gelu tanh {dtype:?}"), s, &[y], 2, 5e-7);
        }
    }

    fn binary(&mut self) {
        let arithmetic = ["add", "sub", "mul", "div", "remainder", "fmod"];
        let others = ["eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or", "bitwise_xor"];
        let plain = ["maximum", "minimum", "floor_divide", "logical_and", "logical_or", "logical_xor"];
        let targets = arithmetic.iter().chain(&others).map(|n| format!("aten.{n}.Tensor"));
        let targets: Vec<String> = targets.chain(plain.iter().map(|n| format!("aten.{n}.default"))).collect();
        let all = everything();
        for target in &targets {
            for &dtype in &all {
                let other = if self.chance.below(3) == 0 { self.chance.pick(&all) } else { dtype };
                for (left, right) in [(&[3, 4][..], &[3, 4][..]), (&[2, 1, 4], &[3, 1]), (&[5], &[])] {
                    if right.is_empty() && other != dtype {
                        continue;
                    }
                    let mut s = Sketch::new(1);
                    let ints = target.contains("bitwise") || target.contains("remainder");
                    let x = self.input(&mut s, dtype, left, ints);
                    let y = self.input(&mut s, other, right, ints);
                    let z = s.call(target, list![x, y]);
                    self.done(format!("{target} {dtype:?} {other:?} {left:?} {right:?}"), s, &[z], 0);
                }
            }
        }
        let scalars = arithmetic.iter().chain(&others).map(|n| format!("aten.{n}.Scalar"));
        for target in scalars.chain(["aten.clamp_min.default".into(), "aten.clamp_max.default".into()]) {
            for &dtype in &all {
                for number in [Arg::Int(3), Arg::Int(-2), Arg::Float(0.1), Arg::Float(-2.7), Arg::Bool(true)]
                {
                    let mut s = Sketch::new(1);
                    let x = self.input(&mut s, dtype, &[3, 5], false);
                    let y = s.call(&target, &[x.into(), number.clone()]);
                    self.done(format!("{target} {dtype:?} {number:?}"), s, &[y], 0);
                }
            }
        }
        for &dtype in &all {
            for alpha in [Arg::Int(2), Arg::Float(0.5), Arg::Float(0.1)] {
                for op in ["add", "sub"] {
                    let mut s = Sketch::new(1);
                    let x = self.input(&mut s, dtype, &[32], true);
                    let y = self.input(&mut s, dtype, &[32], true);
                    let z =
                        s.call_with(&format!("aten.{op}.Tensor"), list![x, y], &[("alpha", alpha.clone())]);
                    self.done(format!("{op} {dtype:?} alpha {alpha:?}"), s, &[z], 0);
                }
            }
            for mode in ["floor", "trunc"] {
                let mut s = Sketch::new(1);
                let x = self.input(&mut s, dtype, &[4, 6], false);
                let y = self.input(&mut s, dtype, &[4, 6], false);
                let z = s.call_with("aten.div.Tensor_mode", list![x, y], &[("rounding_mode", mode.into())]);
                self.done(format!("div {mode} {dtype:?}"), s, &[z], 0);
            }
            for exponent in [Arg::Int(2), Arg::Int(3), Arg::Float(0.5), Arg::Float(-1.0), Arg::Int(0)] {
                let mut s = Sketch::new(1);
                let x = self.input(&mut s, dtype, &[12], false);
                let y = s.call("aten.pow.Tensor_Scalar", &[x.into(), exponent.clone()]);
                self.done(format!("pow {dtype:?} {exponent:?}"), s, &[y], 1);
            }
            let mut s = Sketch::new(1);
            let x = self.input(&mut s, dtype, &[12], false);
            let y = self.input(&mut s, dtype, &[12], false);
            let z = s.call("aten.threshold_backward.default", list![x, y, 0]);
            self.done(format!("threshold_backward {dtype:?}"), s, &[z], 0);
            let mut s = Sketch::new(1);
            let x = self.input(&mut s, dtype, &[3, 4], true);
            let other = self.chance.pick(&all);
            let y = self.input(&mut s, other, &[4], true);
            let z = s.call("aten.add_.Tensor", list![x, y]);
            self.done(format!("add_ {dtype:?}"), s, &[z, x], 0);
        }
    }

    fn ternary(&mut self) {
        for dtype in everything() {
            let mut s = Sketch::new(1);
            let c = self.input(&mut s, Dtype::Bool, &[3, 1], true);
            let x = self.input(&mut s, dtype, &[3, 4], false);
            let y = self.input(&mut s, dtype, &[4], false);
            let a = s.call("aten.where.self", list![c, x, y]);
            let b = s.call("aten.where.ScalarOther", list![c, x, 2.5]);
            let d = s.call("aten.masked_fill.Scalar", list![x, c, -2.5]);
            let e = s.call("aten.clamp.default", list![x, -1, 2]);
            let f = s.call("aten.clamp.default", list![x, Arg::None, 1.5]);
            let g = s.call("aten.clamp.Tensor", list![x, y]);
            for (i, out) in [a, b, d, e, f, g].into_iter().enumerate() {
                self.done(format!("ternary {i} {dtype:?}"), s.clone(), &[out], 0);
            }
        }
    }

    fn casts(&mut self) {
        let all: Vec<Dtype> = everything()
            .into_iter()
            .chain([Dtype::F8E4M3, Dtype::F8E5M2, Dtype::C64, Dtype::U16, Dtype::U32, Dtype::U64])
            .collect();
        for &from in &all {
            for &to in &all {
                let mut s = Sketch::new(1);
                let name = "x0";
                let x = s.input(name, from, &[40]);
                let mut values: Vec<f64> = (0..40).map(|_| self.chance.float()).collect();
                if to.class() == crate::graph::DtypeClass::Int || to == Dtype::Bool {
                    // What does not fit an integer is undefined in C++, and differs with vectorisation.
                    values.iter_mut().for_each(|x| *x = if x.abs() < 100.0 { x.abs() } else { 7.0 });
                } else {
                    values[0] = 16777217.0;
                    values[1] = 464.0;
                    values[2] = 465.0;
                    values[3] = 70000.0;
                    values[4] = 2049.0 + 2f64.powi(-40);
                    values[5] = 257.0;
                    values[6] = 2f64.powi(-10);
                    values[7] = 1e-8;
                }
                s.give(name, 0, from, &values);
                let y = s.call("prims.convert_element_type.default", list![x, to]);
                self.done(format!("cast {from:?} {to:?}"), s, &[y], 0);
            }
        }
    }

    fn reductions(&mut self) {
        for dtype in everything() {
            for name in ["sum.dim_IntList", "mean.dim", "amax.default", "amin.default"] {
                for (dims, keep) in
                    [(vec![1], false), (vec![0, 2], true), (vec![], false), (vec![-1, -2, -3], false)]
                {
                    let mut s = Sketch::new(1);
                    let x = self.input(&mut s, dtype, &[3, 2, 4], true);
                    let y = s.call(&format!("aten.{name}"), list![x, dims.clone(), keep]);
                    self.done(format!("{name} {dtype:?} {dims:?} {keep}"), s, &[y], 0);
                }
            }
            for (name, args) in
                [("prod.dim_int", list![1]), ("any.dim", list![0]), ("all.dim", list![1, true])]
            {
                let mut s = Sketch::new(1);
                let x = self.input(&mut s, dtype, &[3, 4], true);
                let args: Vec<Arg> = [x.into()].into_iter().chain(args.iter().cloned()).collect();
                let y = s.call(&format!("aten.{name}"), &args);
                self.done(format!("{name} {dtype:?}"), s, &[y], 0);
            }
            for name in ["sum", "mean", "prod", "any", "all", "max", "min"] {
                let mut s = Sketch::new(1);
                let x = self.input(&mut s, dtype, &[3, 4], true);
                let y = s.call(&format!("aten.{name}.default"), list![x]);
                // PyTorch's vectorised product of 16-bit floats rounds on the way.
                let rounds = name == "prod" && dtype.itemsize() == 2;
                self.done(format!("{name} {dtype:?}"), s, &[y], if rounds { 4 } else { 0 });
            }
            let mut s = Sketch::new(1);
            let x = self.input(&mut s, dtype, &[3, 4], true);
            let y = s.call("aten.cumsum.default", list![x, 0]);
            let z = s.call_with("aten.sum.default", list![x], &[("dtype", Dtype::F32.into())]);
            self.done(format!("cumsum {dtype:?}"), s, &[y, z], 0);
        }
        // Sums that round: 16-bit floats accumulate in f32.
        for dtype in [Dtype::F16, Dtype::BF16] {
            let mut s = Sketch::new(1);
            let x = s.input("x0", dtype, &[64]);
            let values: Vec<f64> = (0..64).map(|i| 100.0 + f64::from(i)).collect();
            s.give("x0", 0, dtype, &values);
            let y = s.call("aten.sum.default", list![x]);
            let z = s.call("aten.mean.default", list![x]);
            let c = s.call("aten.cumsum.default", list![x, 0]);
            self.done(format!("rounding sums {dtype:?}"), s, &[y, z, c], 0);
        }
    }

    fn products(&mut self) {
        for dtype in FLOATS.into_iter().chain(INTS) {
            for (target, shapes) in [
                ("aten.mm.default", vec![vec![3, 5], vec![5, 4]]),
                ("aten.bmm.default", vec![vec![2, 3, 5], vec![2, 5, 4]]),
                ("aten.mv.default", vec![vec![3, 5], vec![5]]),
                ("aten.dot.default", vec![vec![5], vec![5]]),
                ("aten.matmul.default", vec![vec![2, 1, 3, 5], vec![4, 5, 2]]),
                ("aten.matmul.default", vec![vec![5], vec![3, 5, 2]]),
                ("aten.matmul.default", vec![vec![3, 5], vec![5]]),
                ("aten.mm.default", vec![vec![3, 0], vec![0, 4]]),
            ] {
                let mut s = Sketch::new(1);
                let x = self.input(&mut s, dtype, &shapes[0], true);
                let y = self.input(&mut s, dtype, &shapes[1], true);
                let z = s.call(target, list![x, y]);
                self.done(format!("{target} {dtype:?} {shapes:?}"), s, &[z], 0);
            }
            for (beta, alpha) in [(1i64, 1i64), (2, 3), (0, 1)] {
                let mut s = Sketch::new(1);
                let bias = self.input(&mut s, dtype, &[4], true);
                let x = self.input(&mut s, dtype, &[3, 5], true);
                let y = self.input(&mut s, dtype, &[5, 4], true);
                let factors = [("beta", beta.into()), ("alpha", alpha.into())];
                let z = s.call_with("aten.addmm.default", list![bias, x, y], &factors);
                self.done(format!("addmm {dtype:?} {beta} {alpha}"), s, &[z], 0);
            }
        }
    }

    fn indices(&mut self) {
        for dtype in [Dtype::F32, Dtype::BF16, Dtype::I64, Dtype::Bool] {
            let build = |this: &mut Cases| {
                let mut s = Sketch::new(1);
                let x = this.input(&mut s, dtype, &[4, 3, 5], true);
                let i = s.input("i", Dtype::I64, &[2, 2]);
                s.give("i", 0, Dtype::I64, &[0.0, 2.0, 1.0, -1.0]);
                let j = s.input("j", Dtype::I64, &[2]);
                s.give("j", 0, Dtype::I64, &[2.0, 0.0]);
                let m = s.input("m", Dtype::Bool, &[4]);
                s.give("m", 0, Dtype::Bool, &[1.0, 0.0, 1.0, 1.0]);
                let v = this.input(&mut s, dtype, &[1], true);
                (s, x, i, j, m, v)
            };
            let none = || Arg::None;
            let lists: Vec<fn(NodeId, NodeId, NodeId) -> Vec<Arg>> = vec![
                |i, _, _| vec![i.into()],
                |i, j, _| vec![i.into(), j.into()],
                |i, _, _| vec![Arg::None, i.into()],
                |i, j, _| vec![i.into(), Arg::None, j.into()],
                |_, j, _| vec![Arg::None, j.into(), j.into()],
                |_, _, m| vec![m.into()],
            ];
            for (k, make) in lists.iter().enumerate() {
                let (mut s, x, i, j, m, v) = build(self);
                let y = s.call("aten.index.Tensor", list![x, make(i, j, m)]);
                let z = s.call("aten.index_put.default", list![x, make(i, j, m), v]);
                self.done(format!("index {k} {dtype:?}"), s.clone(), &[y], 0);
                self.done(format!("index_put {k} {dtype:?}"), s.clone(), &[z], 0);
                let a = s.call("aten.index_put.default", list![x, make(i, j, m), v, true]);
                self.done(format!("index_put accumulate {k} {dtype:?}"), s, &[a], 0);
            }
            let _ = none;
            let (mut s, x, _, j, ..) = build(self);
            let y = s.call("aten.index_select.default", list![x, 1, j]);
            let w = s.call("aten.select.int", list![x, 0, 1]);
            let k = s.input("k", Dtype::I64, &[2, 4]);
            s.give("k", 0, Dtype::I64, &[0.0, 1.0, 2.0, 1.0, 2.0, 2.0, 0.0, 0.0]);
            let g = s.call("aten.gather.default", list![w, 0, k]);
            let src = self.input(&mut s, dtype, &[2, 4], true);
            let put = s.call("aten.scatter.src", list![w, 0, k, src]);
            let add = s.call("aten.scatter_add.default", list![w, 0, k, src]);
            let val = s.call("aten.scatter.value", list![w, 0, k, 3]);
            let e = s.call("aten.embedding.default", list![w, k]);
            for (name, out) in [
                ("index_select", y),
                ("gather", g),
                ("scatter", put),
                ("scatter_add", add),
                ("value", val),
                ("embedding", e),
            ] {
                self.done(format!("{name} {dtype:?}"), s.clone(), &[out], 0);
            }
        }
    }

    fn moves(&mut self) {
        let contiguous = Arg::Format("contiguous_format");
        for dtype in [Dtype::F32, Dtype::BF16, Dtype::I64] {
            for round in 0..4 {
                let mut s = Sketch::new(1);
                let x = self.input(&mut s, dtype, &[4, 6], true);
                let y = self.input(&mut s, dtype, &[4, 3], true);
                let z = self.input(&mut s, dtype, &[4, 6], true);
                let plain =
                    s.call_with("aten.clone.default", list![x], &[("memory_format", contiguous.clone())]);
                let outs = vec![
                    s.call("aten.cat.default", list![[x, y], 1]),
                    s.call("aten.stack.default", list![[x, z], -1]),
                    s.call("aten.constant_pad_nd.default", list![x, [1, -2, 0, 3], 7]),
                    s.call("aten.repeat.default", list![x, [2, 1, 3]]),
                    s.call("aten.flip.default", list![x, [1]]),
                    s.call("aten.roll.default", list![x, [2, -1], [1, 0]]),
                    s.call("aten.roll.default", list![x, [5]]),
                    s.call("aten.slice_scatter.default", list![x, y, 1, 0, 6, 2]),
                    s.call("aten.diagonal.default", list![x, 1, 0, 1]),
                    s.call("aten._chunk_cat.default", list![[x, y], 0, 3]),
                    s.call("aten._chunk_cat.default", list![[x, y], 1, 2]),
                    s.call("aten.copy.default", list![x, z]),
                    s.call("aten.as_strided_copy.default", list![plain, [2, 2], [1, 2], 1]),
                    s.call("aten.full_like.default", list![x, 3]),
                    s.call("aten.unsqueeze.default", list![x, 1]),
                ];
                for (i, out) in outs.into_iter().enumerate() {
                    self.done(format!("move {i} {dtype:?} {round}"), s.clone(), &[out], 0);
                }
            }
        }
        let mut s = Sketch::new(1);
        let outs = vec![
            s.call("aten.arange.start_step", list![7, -3, -2]),
            s.call("aten.arange.default", list![2.5]),
            s.call("aten.full.default", list![[2, 3], 2.5]),
            s.call("aten.full.default", list![[2], 3]),
            s.call("aten.full.default", list![[2], true]),
            s.call("aten.scalar_tensor.default", list![3]),
            s.call_with("aten.ones.default", list![[3]], &[("dtype", Dtype::F16.into())]),
        ];
        for (i, out) in outs.into_iter().enumerate() {
            self.done(format!("create {i}"), s.clone(), &[out], 0);
        }
    }

    /// Bytes under another dtype, and the packing of buckets.
    fn bytes(&mut self) {
        for (from, to) in [
            (Dtype::F32, Dtype::BF16),
            (Dtype::BF16, Dtype::F32),
            (Dtype::I64, Dtype::U8),
            (Dtype::F32, Dtype::I32),
        ] {
            let mut s = Sketch::new(1);
            let x = s.input("x0", from, &[3, 8]);
            let values: Vec<f64> = (0..24).map(|_| self.chance.float()).filter(|x| x.is_finite()).collect();
            let values: Vec<f64> = values.iter().copied().cycle().take(24).collect();
            s.give("x0", 0, from, &values);
            let y = s.call("aten.view.dtype", list![x, to]);
            let part = s.call("aten.slice.Tensor", list![y, 1, 2, 4]);
            let other = s.call("aten.slice.Tensor", list![y, 1, 0, 2]);
            let copy = s.call("aten.clone.default", list![other]);
            s.call("aten.copy_.default", list![part, copy]);
            let back = s.call("aten.view.dtype", list![y, from]);
            self.done(format!("bytes {from:?} {to:?}"), s, &[y, back, x], 0);
        }
        let mut s = Sketch::new(1);
        let x = self.input(&mut s, Dtype::F32, &[3], false);
        let y = self.input(&mut s, Dtype::F32, &[2, 2], false);
        let pre =
            s.call("bucketing._pre_bucket_all_gather.default", list![[x, y], 2, Dtype::BF16, [16, 1], 1]);
        let slot = s.call("aten.slice.Tensor", list![pre, 0, 10, 20]);
        self.done("pre_bucket_all_gather".into(), s, &[slot], 0);
        let mut s = Sketch::new(1);
        let x = self.input(&mut s, Dtype::F32, &[5, 2], false);
        let y = self.input(&mut s, Dtype::F32, &[3], false);
        let pre = s.call("bucketing._pre_bucket_reduce_scatter.default", list![[x, y], 3]);
        self.done("pre_bucket_reduce_scatter".into(), s, &[pre], 0);
        let mut s = Sketch::new(1);
        let x = s.input("x0", Dtype::F32, &[3, 2, 2]);
        let z = s.call("aten.view_as_complex.default", list![x]);
        let c = s.call("aten._conj.default", list![z]);
        let p = s.call("aten.mul.Tensor", list![z, c]);
        let q = s.call("aten.add.Tensor", list![c, p]);
        let r = s.call("aten.view_as_real.default", list![q]);
        let values: Vec<f64> = (0..12).map(|_| self.chance.int()).collect();
        s.give("x0", 0, Dtype::F32, &values);
        self.done("complex".into(), s, &[p, q, r], 0);
    }

    /// Random programs of views, copies and writes through them; everything is returned in the end.
    fn aliases(&mut self) {
        for number in 0..300 {
            let mut s = Sketch::new(1);
            let a = self.input(&mut s, Dtype::F32, &[4, 6], true);
            let b = self.input(&mut s, Dtype::F32, &[6, 4], true);
            let mut all: Vec<(NodeId, [i64; 2])> = vec![(a, [4, 6]), (b, [6, 4])];
            for _ in 0..10 {
                let (x, [r, c]) = self.chance.pick(&all);
                let (y, shape) = match self.chance.below(9) {
                    0 => (s.call("aten.t.default", list![x]), [c, r]),
                    1 if r > 1 => (s.call("aten.slice.Tensor", list![x, 0, 1, r]), [r - 1, c]),
                    2 if c > 2 => (s.call("aten.slice.Tensor", list![x, 1, 0, c, 2]), [r, (c + 1) / 2]),
                    3 => (s.call("aten.reshape.default", list![x, [c, r]]), [c, r]),
                    4 => (s.call("aten.clone.default", list![x]), [r, c]),
                    5 => (s.call("aten.add_.Scalar", list![x, 3]), [r, c]),
                    6 => (s.call("aten.mul_.Scalar", list![x, 2]), [r, c]),
                    7 => (s.call("aten.relu.default", list![x]), [r, c]),
                    _ => {
                        // A write of one window into another of the same shape.
                        let same: Vec<NodeId> = all
                            .iter()
                            .filter(|(y, shape)| *shape == [r, c] && *y != x)
                            .map(|p| p.0)
                            .collect();
                        if same.is_empty() {
                            continue;
                        }
                        let y = self.chance.pick(&same);
                        let copy = s.call("aten.clone.default", list![y]);
                        (s.call("aten.copy_.default", list![x, copy]), [r, c])
                    }
                };
                all.push((y, shape));
            }
            let outs: Vec<NodeId> = all.iter().map(|p| p.0).collect();
            self.done(format!("program {number}"), s, &outs, 0);
        }
    }
}

#[test]
fn kernels_give_what_pytorch_gives() {
    let mut cases = Cases { chance: Chance(7), json: Vec::new() };
    cases.unary();
    cases.binary();
    cases.ternary();
    cases.casts();
    cases.reductions();
    cases.products();
    cases.indices();
    cases.moves();
    cases.bytes();
    cases.aliases();
    let Some(python) = std::env::var_os("GRAPH_ORACLE_PYTHON") else {
        println!("skipped: {} cases need a Python with torch (GRAPH_ORACLE_PYTHON)", cases.json.len());
        return;
    };
    let file = std::env::temp_dir().join(format!("graph-oracle-kernels-{}.json", std::process::id()));
    std::fs::write(&file, format!("[{}]", cases.json.join(",\n"))).unwrap();
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peer/kernels.py");
    let output = std::process::Command::new(python).arg(script).arg(&file).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let _ = std::fs::remove_file(&file);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let differ: Vec<&str> =
        text.lines().filter(|line| line.contains("\"differ\"") && !line.contains("summary")).collect();
    let rest: Vec<&str> =
        text.lines().filter(|line| !line.contains("\"differ\"") && !line.contains("summary")).collect();
    println!("{}", rest.join("\n"));
    println!("{}", text.lines().last().unwrap_or(""));
    assert!(differ.is_empty(), "{} of {}:\n{}", differ.len(), cases.json.len(), differ.join("\n"));
}
