//! Views, fresh tensors, and the operators that write into an argument.

use super::*;
use crate::graph::Editor;

impl Cases {
    /// One case for each result, with the nodes that it needs. Nothing is written.
    pub(super) fn each(&mut self, name: &str, s: &Sketch, outs: Vec<NodeId>) {
        for (i, out) in outs.into_iter().enumerate() {
            let mut needed = vec![false; s.graph.len()];
            needed[out.index()] = true;
            for id in s.graph.ids().rev() {
                if needed[id.index()] {
                    s.graph.for_each_input(id, &mut |input| needed[input.index()] = true);
                }
            }
            let mut editor = Editor::new(&s.graph);
            editor.erase_all(&s.graph.ids().filter(|id| !needed[id.index()]).collect::<Vec<_>>());
            let (graph, place) = editor.finish_with_map();
            let target = s.graph.target(out);
            let out = place[out.index()].unwrap();
            self.done(format!("{name} {i} {target}"), Sketch { graph, ..s.clone() }, &[out], 0);
        }
    }

    pub(super) fn creation(&mut self) {
        let mut s = Sketch::new(1);
        let mut outs = vec![
            s.call("aten.arange.start_step", list![7, -3, -2]),
            s.call("aten.arange.start_step", list![0.5, 3, 0.75]),
            s.call("aten.arange.start", list![2, 6]),
            s.call("aten.arange.default", list![2.5]),
            s.call("aten.arange.default", list![0]),
            s.call("aten.full.default", list![[2, 3], 2.5]),
            s.call("aten.full.default", list![[2], 3]),
            s.call("aten.full.default", list![[2], true]),
            s.call("aten.full.default", list![[0, 2], 1]),
            s.call("aten.full.default", list![Vec::<i64>::new(), 1]),
            s.call("aten.scalar_tensor.default", list![3]),
            s.call("aten.zeros.default", list![[2, 0]]),
        ];
        for dtype in everything().into_iter().chain(FLOAT8).chain([Dtype::C64, Dtype::C128]) {
            let of = [("dtype", dtype.into())];
            for number in
                [Arg::Int(3), Arg::Int(-2), Arg::Int(300), Arg::Float(2.5), Arg::Float(1e6), Arg::Bool(true)]
            {
                outs.push(s.call_with("aten.full.default", &[Arg::from([2]), number.clone()], &of));
                outs.push(s.call_with("aten.scalar_tensor.default", &[number], &of));
            }
            outs.push(s.call_with("aten.ones.default", list![[3]], &of));
            outs.push(s.call_with("aten.zeros.default", list![[3, 2]], &of));
            outs.push(s.call_with("aten.arange.default", list![5], &of));
        }
        self.each("create", &s, outs);
        for dtype in everything().into_iter().chain(FLOAT8) {
            for shape in [&[3, 4][..], &[], &[0, 2]] {
                let mut s = Sketch::new(1);
                let x = self.input(&mut s, dtype, shape, true);
                let other = self.chance.pick(&everything());
                let one = self.input(&mut s, other, &[], true);
                let outs = vec![
                    s.call("aten.zeros_like.default", list![x]),
                    s.call("aten.ones_like.default", list![x]),
                    s.call("aten.full_like.default", list![x, 3]),
                    s.call_with("aten.full_like.default", list![x, 2.5], &[("dtype", Dtype::F32.into())]),
                    s.call("aten.zero.default", list![x]),
                    s.call("aten.fill.Scalar", list![x, 2]),
                    s.call("aten.fill.Tensor", list![x, one]),
                    s.call("aten.new_zeros.default", list![x, [2, 1]]),
                    s.call("aten.new_ones.default", list![x, [2, 1]]),
                    s.call("aten.new_full.default", list![x, [2], 5]),
                ];
                self.each(&format!("like {dtype:?} {shape:?}"), &s, outs);
                // Memory without value: only what is written to it counts.
                let mut s = Sketch::new(1);
                let x = self.input(&mut s, dtype, &[3, 4], true);
                let of = [("dtype", dtype.into())];
                let empty = vec![
                    s.call_with("aten.empty.memory_format", list![[3, 4]], &of),
                    s.call_with("aten.empty_strided.default", list![[3, 4], [1, 4]], &of),
                    s.call("aten.empty_like.default", list![x]),
                    s.call("aten.new_empty.default", list![x, [3, 4]]),
                    s.call("aten.new_empty_strided.default", list![x, [3, 4], [1, 3]]),
                ];
                for (i, e) in empty.into_iter().enumerate() {
                    let mut s = s.clone();
                    let y = s.call("aten.copy_.default", list![e, x]);
                    self.done(format!("empty {i} {dtype:?}"), s, &[y, e], 0);
                }
            }
        }
    }

    pub(super) fn views(&mut self) {
        for dtype in everything().into_iter().chain(FLOAT8).chain([Dtype::C64]) {
            let mut s = Sketch::new(1);
            let x = self.input(&mut s, dtype, &[4, 1, 6], true);
            let z = self.input(&mut s, dtype, &[0, 3], true);
            let d = self.input(&mut s, dtype, &[], true);
            let flat = s.input("flat", dtype, &[4, 6]);
            let m = s.call("aten.select.int", list![x, 1, 0]);
            let mut outs = Vec::new();
            for copy in ["", "_copy"] {
                let mut call = |name: &str, overload: &str, args: &[Arg]| {
                    let target = format!("aten.{name}{copy}.{overload}");
                    outs.push(s.call(&target, args));
                };
                call("view", "default", list![flat, [3, -1]]);
                call("view", "default", list![d, [1, 1]]);
                call("permute", "default", list![x, [2, 0, 1]]);
                call("transpose", "int", list![x, 0, -1]);
                call("t", "default", list![m]);
                call("t", "default", list![z]);
                call("unsqueeze", "default", list![m, -1]);
                call("unsqueeze", "default", list![d, 0]);
                call("squeeze", "dim", list![x, 1]);
                call("squeeze", "dim", list![x, 0]);
                call("squeeze", "default", list![x]);
                call("squeeze", "dims", list![x, [0, 1]]);
                call("expand", "default", list![x, [2, -1, 3, 6]]);
                call("expand", "default", list![d, [2, 2]]);
                call("slice", "Tensor", list![x, 0, -3, 100, 2]);
                call("slice", "Tensor", list![x, 2, 4, 2]);
                call("select", "int", list![x, 2, -2]);
                call("as_strided", "default", list![flat, [2, 3], [7, 2], 1]);
                call("diagonal", "default", list![m, -1]);
                call("diagonal", "default", list![x, 1, 0, 2]);
                call("unfold", "default", list![x, -1, 4, 1]);
                call("unfold", "default", list![m, 0, 2, 3]);
                call("unfold", "default", list![d, 0, 1, 1]);
                call("alias", "default", list![x]);
                call("detach", "default", list![x]);
            }
            outs.extend([
                s.call("aten.reshape.default", list![x, [3, 8]]),
                s.call("aten.reshape.default", list![z, [0]]),
                s.call("aten._unsafe_view.default", list![flat, [24]]),
                s.call("aten._reshape_alias.default", list![flat, [8, 3], [3, 1]]),
                s.call("aten.narrow.default", list![x, 2, 1, 4]),
                s.call("aten.lift_fresh.default", list![x]),
                s.call("aten.lift_fresh_copy.default", list![x]),
                s.call("prims.view_of.default", list![x]),
                s.call("prims.transpose.default", list![x, [1, 2, 0]]),
                s.call("aten.clone.default", list![x]),
                s.call("prims.clone.default", list![x]),
                s.call_with(
                    "prims.clone.default",
                    list![x],
                    &[("memory_format", Arg::Format("contiguous_format"))],
                ),
                s.call("aten.contiguous.default", list![x]),
                s.call("aten.resolve_conj.default", list![x]),
                s.call("prims.device_put.default", list![x, Arg::Device("cpu")]),
                s.call("aten.to.dtype", list![x, Dtype::F32]),
                s.call("aten.to.dtype", list![x, dtype, false, true]),
                s.call_with("aten._to_copy.default", list![x], &[("dtype", Dtype::F64.into())]),
                s.call("aten._to_copy.default", list![x]),
            ]);
            for (target, args) in [
                ("aten.split.Tensor", list![x, 4, 2]),
                ("aten.split_copy.Tensor", list![x, 4, 2]),
                ("aten.split_with_sizes.default", list![x, [1, 0, 3]]),
                ("aten.split_with_sizes_copy.default", list![x, [1, 0, 3]]),
                ("aten.chunk.default", list![x, 3, 2]),
                ("aten.chunk.default", list![x, 3]),
                ("aten.unsafe_split.Tensor", list![x, 4, 2]),
                ("aten.unsafe_split_with_sizes.default", list![x, [1, 0, 3]]),
                ("aten.unsafe_chunk.default", list![x, 3, 2]),
                ("aten.unbind.int", list![x, 0]),
                ("aten.unbind_copy.int", list![x, 2]),
            ] {
                let all = s.call(target, args);
                outs.extend((0..2).map(|i| s.call("operator.getitem", list![all, i])));
            }
            self.each(&format!("view {dtype:?}"), &s, outs);
        }
        let mut s = Sketch::new(1);
        let x = self.target(&mut s, Dtype::F32, &[3, 1], true);
        let pairs = s.call("aten.cat.default", list![[x, x], 1]);
        let complex = s.call("aten.view_as_complex_copy.default", list![pairs]);
        let real = s.call("aten.view_as_real_copy.default", list![complex]);
        self.each("complex copy", &s, vec![complex, real]);
    }

    /// In-place and `out=` forms; the argument is looked at afterwards, also through a view of it.
    pub(super) fn writes(&mut self) {
        for dtype in [Dtype::F32, Dtype::F64, Dtype::BF16, Dtype::F16, Dtype::I64, Dtype::U8, Dtype::Bool] {
            let other = self.chance.pick(&everything());
            type Call = fn(&mut Sketch, [NodeId; 6]) -> NodeId;
            // x, y of its shape, z of another dtype, an index, a row for it, a number.
            let calls: [(&str, Call); 16] = [
                ("copy_", |s, [x, _, z, ..]| s.call("aten.copy_.default", list![x, z])),
                ("fsdp copy_", |s, [x, y, ..]| s.call("fsdp.copy_.default", list![x, y])),
                ("zero_", |s, [x, ..]| s.call("aten.zero_.default", list![x])),
                ("fill_", |s, [x, ..]| s.call("aten.fill_.Scalar", list![x, 3])),
                ("fill_ tensor", |s, [x, _, _, _, _, n]| s.call("aten.fill_.Tensor", list![x, n])),
                ("cumsum_", |s, [x, ..]| s.call("aten.cumsum_.default", list![x, 1])),
                ("index_put_", |s, [x, _, _, i, row, _]| {
                    s.call("aten.index_put_.default", list![x, vec![Arg::None, i.into()], row])
                }),
                ("index_put_ accumulate", |s, [x, _, _, i, row, _]| {
                    s.call("aten.index_put_.default", list![x, vec![Arg::None, i.into()], row, true])
                }),
                ("scatter_", |s, [x, y, _, i, ..]| {
                    let rows = s.call("aten.unsqueeze.default", list![i, 0]);
                    s.call("aten.scatter_.src", list![x, 1, rows, y])
                }),
                ("scatter_ value", |s, [x, _, _, i, ..]| {
                    let rows = s.call("aten.unsqueeze.default", list![i, 0]);
                    s.call("aten.scatter_.value", list![x, 1, rows, 2])
                }),
                ("scatter_add_", |s, [x, y, _, i, ..]| {
                    let rows = s.call("aten.unsqueeze.default", list![i, 0]);
                    s.call("aten.scatter_add_.default", list![x, 1, rows, y])
                }),
                ("foreach_copy_", |s, [x, _, z, ..]| s.call("aten._foreach_copy_.default", list![[x], [z]])),
                ("cat.out", |s, [x, y, ..]| {
                    let one = s.call("aten.slice.Tensor", list![y, 0, 0, 1]);
                    let rest = s.call("aten.slice.Tensor", list![y, 0, 1, 3]);
                    s.call_with("aten.cat.out", list![[rest, one]], &[("out", x.into())])
                }),
                ("stack.out", |s, [x, y, ..]| {
                    let rows = (0..3).map(|i| s.call("aten.select.int", list![y, 0, i])).collect::<Vec<_>>();
                    s.call_with("aten.stack.out", list![rows], &[("out", x.into())])
                }),
                ("index_select.out", |s, [x, y, _, i, ..]| {
                    let j = s.call("aten.cat.default", list![[i, i]]);
                    s.call_with("aten.index_select.out", list![y, 1, j], &[("out", x.into())])
                }),
                ("sum.out", |s, [x, y, ..]| {
                    let cube = s.call("aten.unsqueeze.default", list![y, 0]);
                    s.call_with(
                        "aten.sum.IntList_out",
                        list![cube, [0]],
                        &[("dtype", Arg::DtypeOf(x)), ("out", x.into())],
                    )
                }),
            ];
            for (name, call) in calls {
                let mut s = Sketch::new(1);
                let x = self.target(&mut s, dtype, &[3, 4], true);
                let seen = s.call("aten.t.default", list![x]);
                let y = self.target(&mut s, dtype, &[3, 4], true);
                let z = self.input(&mut s, other, &[4], true);
                let z = s.call("aten.expand.default", list![z, [3, 4]]);
                let i = s.input("i", Dtype::I64, &[2]);
                s.give("i", 0, Dtype::I64, &[3.0, 1.0]);
                let row = self.input(&mut s, dtype, &[2], true);
                let number = self.input(&mut s, dtype, &[], true);
                call(&mut s, [x, y, z, i, row, number]);
                self.done(format!("{name} {dtype:?}"), s, &[x, seen], 0);
            }
            // Operators that fill several buffers.
            for (name, target) in [
                ("split_with_sizes_copy.out", "aten.split_with_sizes_copy.out"),
                ("fsdp split_with_sizes_copy", "fsdp.split_with_sizes_copy.default"),
            ] {
                let mut s = Sketch::new(1);
                let x = self.input(&mut s, dtype, &[3, 4], true);
                let a = self.target(&mut s, dtype, &[3, 1], true);
                let b = self.target(&mut s, dtype, &[3, 3], true);
                s.call_with(target, list![x, [1, 3], 1], &[("out", Arg::from([a, b]))]);
                self.done(format!("{name} {dtype:?}"), s, &[a, b], 0);
            }
            for (name, target) in
                [("chunk_cat.out", "aten._chunk_cat.out"), ("fsdp chunk_cat", "fsdp.chunk_cat.default")]
            {
                let mut s = Sketch::new(1);
                let x = s.input("x0", dtype, &[3, 2]);
                let y = s.input("x1", dtype, &[4]);
                let out = s.input("x2", dtype, &[2, 6]);
                s.call_with(target, list![[x, y], 0, 2], &[("out", out.into())]);
                self.done(format!("{name} {dtype:?}"), s, &[out], 0);
            }
            let mut s = Sketch::new(1);
            let x = s.input("x0", dtype, &[3]);
            let y = s.input("x1", dtype, &[2]);
            let buffer = s.input("x2", dtype, &[10]);
            let all = s.call("fsdp.all_gather_copy_in.default", list![[x, y], buffer, [3, 2], 5, 1]);
            let slot = s.call("operator.getitem", list![all, 0]);
            self.done(format!("all_gather_copy_in {dtype:?}"), s, &[slot, buffer], 0);
            let mut s = Sketch::new(1);
            let x = self.target(&mut s, dtype, &[3, 4], true);
            let y = self.input(&mut s, other, &[4], true);
            let all = s.call("aten._foreach_copy.default", list![[x], [y]]);
            let copy = s.call("operator.getitem", list![all, 0]);
            self.done(format!("foreach_copy {dtype:?}"), s, &[copy, x], 0);
            let mut s = Sketch::new(1);
            let x = self.target(&mut s, dtype, &[3, 4], true);
            let row = self.input(&mut s, dtype, &[4], true);
            let y = s.call("aten.select_scatter.default", list![x, row, 0, -1]);
            self.done(format!("select_scatter {dtype:?}"), s, &[y, x], 0);
            let mut s = Sketch::new(1);
            let x = self.input(&mut s, dtype, &[3, 4], false);
            let row = self.input(&mut s, dtype, &[3], true);
            let of_rows = s.call("aten.slice.Tensor", list![x, 0, 1]);
            let outs = vec![
                s.call("aten.as_strided_scatter.default", list![x, row, [3], [3], 2]),
                s.call("aten.as_strided_scatter.default", list![x, row, [3], [4]]),
                s.call("aten.as_strided_scatter.default", list![of_rows, row, [3], [2], 5]),
                s.call("aten.diagonal_scatter.default", list![x, row, 1]),
                s.call("aten.diagonal_scatter.default", list![x, row, 0, 1, 0]),
            ];
            self.each(&format!("scatter {dtype:?}"), &s, outs);
        }
    }
}
