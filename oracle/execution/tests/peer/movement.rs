//! Elements and bytes that move.

use super::*;

impl Cases {
    pub(super) fn indices(&mut self) {
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

    pub(super) fn moves(&mut self) {
        let contiguous = Arg::Format("contiguous_format");
        let more = FLOAT8.into_iter().chain([Dtype::C64]);
        for dtype in everything().into_iter().chain(more) {
            for round in 0..3 {
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
                self.each(&format!("move {dtype:?} {round}"), &s, outs);
            }
        }
    }

    /// Bytes under another dtype, and the packing of buckets.
    pub(super) fn bytes(&mut self) {
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
}
