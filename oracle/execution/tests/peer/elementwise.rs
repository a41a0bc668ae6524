//! One element in, one element out.

use super::*;
use crate::graph::DtypeClass;
use crate::ops::{Binary, OpInfo, Unary};

impl Cases {
    /// Every operator of this kind in the table, in place and into a buffer too.
    pub(super) fn by_schema(&mut self) {
        let shapes: [(&[i64], &[i64]); 6] = [
            (&[3, 4], &[3, 4]),
            (&[2, 1, 4], &[3, 1]),
            (&[5], &[]),
            (&[], &[]),
            (&[0, 3], &[3]),
            (&[2, 3, 2], &[1, 2]),
        ];
        let dtypes: Vec<Dtype> = everything().into_iter().chain(FLOAT8).collect();
        for info in rows() {
            let elementwise = matches!(
                info.kind,
                Kind::Unary(_) | Kind::Binary(_) | Kind::Where | Kind::MaskedFill | Kind::Clamp | Kind::Fma
            );
            if !elementwise {
                continue;
            }
            for &dtype in &dtypes {
                let (left, right) = self.chance.pick(&shapes);
                self.call_by_schema(info, dtype, left, right);
                // A value to fill with has no dimensions.
                let fills = info.kind == Kind::MaskedFill;
                self.call_by_schema(info, dtype, &[3, 4], if fills { &[] } else { &[3, 4] });
            }
        }
    }

    fn call_by_schema(&mut self, info: &OpInfo, dtype: Dtype, left: &[i64], right: &[i64]) {
        let Some(schema) = &info.schema else { return };
        let divides = matches!(
            info.kind,
            Kind::Binary(Binary::Div | Binary::FloorDivide | Binary::Remainder | Binary::Fmod)
        );
        let exact = match info.kind {
            Kind::Unary(op) => !matches!(
                op,
                Unary::Exp
                    | Unary::Exp2
                    | Unary::Expm1
                    | Unary::Log
                    | Unary::Log2
                    | Unary::Log1p
                    | Unary::Sqrt
                    | Unary::Rsqrt
                    | Unary::Sigmoid
                    | Unary::Silu
                    | Unary::Gelu
                    | Unary::Tanh
                    | Unary::Sin
                    | Unary::Cos
            ),
            kind => kind != Kind::Binary(Binary::Pow),
        };
        let mut s = Sketch::new(1);
        let (mut args, mut kwargs, mut outs) = (Vec::new(), Vec::new(), Vec::new());
        let mut tensors = 0;
        for param in &schema.params {
            let number = |this: &mut Cases| {
                this.chance.pick(&[
                    Arg::Int(3),
                    Arg::Int(2),
                    Arg::Float(0.5),
                    Arg::Float(2.0),
                    Arg::Bool(true),
                ])
            };
            let arg = match &param.ty[..] {
                "Tensor" | "Tensor?" if param.write => {
                    let ints = self.chance.below(2) == 0;
                    let id = self.target(&mut s, dtype, left, ints);
                    outs.push(id);
                    Arg::from(id)
                }
                "Tensor" | "Tensor?" => {
                    let values = match tensors {
                        1.. if divides && dtype.class() < DtypeClass::Float => Values::NotZero,
                        // Fused, it rounds once; run eagerly in PyTorch, twice.
                        _ if info.kind == Kind::Fma => Values::Ints,
                        _ if self.chance.below(2) == 0 => Values::Ints,
                        _ => Values::Any,
                    };
                    let mask = matches!(&param.name[..], "condition" | "mask");
                    let of = if mask { Dtype::Bool } else { dtype };
                    let shape = if tensors == 0 { left } else { right };
                    Arg::from(self.with_values(&mut s, of, shape, values, true))
                }
                "Scalar" | "Scalar?" if !param.keyword_only && param.name != "alpha" => number(self),
                "str?" => Arg::from(self.chance.pick(&["floor", "trunc"])),
                _ => continue,
            };
            tensors += usize::from(param.ty.starts_with("Tensor"));
            if param.keyword_only {
                kwargs.push((&param.name[..], arg));
            } else {
                args.push(arg);
            }
        }
        let y = s.call_with(&info.target, &args, &kwargs);
        outs.push(y);
        // PyTorch loses digits in 1 + erf(x).
        let absolute = if info.kind == Kind::Unary(Unary::Gelu) { 5e-7 } else { 0.0 };
        let name = format!("{} {dtype:?} {left:?} {right:?}", info.target);
        self.near(name, s, &outs, if exact { 0 } else { 2 }, absolute);
    }

    pub(super) fn binary(&mut self) {
        for dtype in FLOATS {
            let mut s = Sketch::new(1);
            let x = self.input(&mut s, dtype, &[20], false);
            let y = s.call_with("aten.gelu.default", list![x], &[("approximate", "tanh".into())]);
            self.near(format!("gelu tanh {dtype:?}"), s, &[y], 2, 5e-7);
        }
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
                    let divisor = ["remainder", "fmod", "floor_divide"].iter().any(|n| target.contains(n));
                    let y = if divisor && other.class() < DtypeClass::Float {
                        self.with_values(&mut s, other, right, Values::NotZero, true)
                    } else {
                        self.input(&mut s, other, right, ints)
                    };
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
                let whole = dtype.class() < DtypeClass::Float;
                let values = if whole { Values::NotZero } else { Values::Any };
                let y = self.with_values(&mut s, dtype, &[4, 6], values, true);
                let z = s.call_with("aten.div.Tensor_mode", list![x, y], &[("rounding_mode", mode.into())]);
                self.done(format!("div {mode} {dtype:?}"), s, &[z], 0);
            }
            for exponent in [
                Arg::Int(2),
                Arg::Int(3),
                Arg::Float(0.5),
                Arg::Float(-0.5),
                Arg::Float(-1.0),
                Arg::Float(-2.0),
                Arg::Int(0),
            ] {
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
            let x = self.target(&mut s, dtype, &[3, 4], true);
            let other = self.chance.pick(&all);
            let y = self.input(&mut s, other, &[4], true);
            let z = s.call("aten.add_.Tensor", list![x, y]);
            self.done(format!("add_ {dtype:?}"), s, &[z, x], 0);
        }
    }

    pub(super) fn ternary(&mut self) {
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

    pub(super) fn casts(&mut self) {
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
}
