//! Sums and products.

use super::*;

impl Cases {
    pub(super) fn reductions(&mut self) {
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
            for (name, dims) in [("any", vec![0, 1]), ("all", vec![-1]), ("any", vec![]), ("all", vec![])] {
                for shape in [&[3, 4][..], &[0, 4]] {
                    let mut s = Sketch::new(1);
                    let x = self.input(&mut s, dtype, shape, true);
                    let y = s.call(&format!("aten.{name}.dims"), list![x, dims.clone(), true]);
                    self.done(format!("{name}.dims {dtype:?} {shape:?} {dims:?}"), s, &[y], 0);
                }
            }
            for name in ["sum.default", "mean.default", "prod.default", "any.default", "all.default"] {
                for shape in [&[][..], &[0], &[2, 0, 3]] {
                    let mut s = Sketch::new(1);
                    let x = self.input(&mut s, dtype, shape, true);
                    let y = s.call(&format!("aten.{name}"), list![x]);
                    self.done(format!("{name} {dtype:?} {shape:?}"), s, &[y], 0);
                }
            }
            let mut s = Sketch::new(1);
            let x = self.input(&mut s, dtype, &[3, 0, 2], true);
            let y = s.call("aten.sum.dim_IntList", list![x, [1]]);
            let z = s.call("aten.cumsum.default", list![x, 1]);
            self.done(format!("of nothing {dtype:?}"), s, &[y, z], 0);
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

    pub(super) fn products(&mut self) {
        for dtype in FLOATS {
            let mut s = Sketch::new(1);
            let x = self.input(&mut s, dtype, &[3, 5], true);
            let y = self.input(&mut s, dtype, &[5, 4], true);
            let out = self.target(&mut s, dtype, &[3, 4], true);
            s.call_with("aten.mm.out", list![x, y], &[("out", out.into())]);
            let (a, b) = (
                s.call("aten.unsqueeze.default", list![x, 0]),
                s.call("aten.unsqueeze.default", list![y, 0]),
            );
            let stack = self.target(&mut s, dtype, &[1, 3, 4], true);
            s.call_with("aten.bmm.out", list![a, b], &[("out", stack.into())]);
            self.done(format!("mm.out {dtype:?}"), s, &[out, stack], 0);
        }
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
                let (a, b) = (
                    s.call("aten.unsqueeze.default", list![x, 0]),
                    s.call("aten.unsqueeze.default", list![y, 0]),
                );
                let batched = s.call_with("aten.baddbmm.default", list![bias, a, b], &factors);
                let out = self.target(&mut s, dtype, &[3, 4], true);
                let with = [factors.to_vec(), vec![("out", out.into())]].concat();
                s.call_with("aten.addmm.out", list![bias, x, y], &with);
                let own = self.target(&mut s, dtype, &[3, 4], true);
                s.call_with("aten.addmm_.default", list![own, x, y], &factors);
                self.done(format!("addmm {dtype:?} {beta} {alpha}"), s, &[z, batched, out, own], 0);
            }
        }
    }
}
