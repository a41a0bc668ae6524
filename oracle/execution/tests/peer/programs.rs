//! Programs of views and writes through them.

use super::*;

impl Cases {
    /// Random programs of views, copies and writes through them; everything is returned in the end.
    pub(super) fn aliases(&mut self) {
        for number in 0..300 {
            let mut s = Sketch::new(1);
            let a = self.target(&mut s, Dtype::F32, &[4, 6], true);
            let b = self.target(&mut s, Dtype::F32, &[6, 4], true);
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
