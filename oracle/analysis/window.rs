//! The window that a view shows: offset, sizes and strides, from those of its base.
//!
//! Follows from the operator, not from what a file recorded, so that it holds where a recording lost the
//! connection between a view and its base. Sources: `aten/src/ATen/native/TensorShape.cpp`, and `computeStride`
//! of `aten/src/ATen/TensorUtils.cpp`.
//!
//! `None` stands for a window that is not known: a symbolic size, an argument that does not fit.

use crate::graph::{Graph, Tensor, Value};
use crate::ops::{Bound, View};

/// A strided window on a storage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    /// First element, in elements from the start of the storage.
    pub offset: i64,
    /// Sizes, in elements.
    pub sizes: Vec<i64>,
    /// Strides, in elements.
    pub strides: Vec<i64>,
    /// Bytes of an element.
    pub itemsize: i64,
}

impl Window {
    /// The window that a file recorded for a tensor.
    pub fn recorded(graph: &Graph, tensor: &Tensor) -> Option<Window> {
        let window = Window {
            offset: tensor.offset,
            sizes: graph.sizes(tensor.shape)?,
            strides: graph.sizes(tensor.stride)?,
            itemsize: i64::from(tensor.dtype.itemsize()),
        };
        (window.sizes.len() == window.strides.len()).then_some(window)
    }

    /// Whether the elements lie row-major without gaps.
    pub fn is_contiguous(&self) -> bool {
        let mut next = 1i64;
        for (&size, &stride) in self.sizes.iter().zip(&self.strides).rev() {
            if size != 1 && stride != next {
                return self.sizes.contains(&0);
            }
            next = next.saturating_mul(size);
        }
        true
    }

    /// The window of a view that has one result. `result` is what the file recorded for it.
    pub fn view(&self, view: View, args: &Bound, graph: &Graph, result: Option<&Tensor>) -> Option<Window> {
        let mut window = self.clone();
        match view {
            View::Alias | View::Conj => {}
            View::Sizes => {
                let given = args.ints("size").or_else(|| args.ints("shape"));
                let recorded = || result.and_then(|r| graph.sizes(r.shape));
                let sizes = given.and_then(|sizes| resolve(&sizes, &self.sizes)).or_else(recorded)?;
                window.strides = match args.ints("stride") {
                    Some(strides) => strides,
                    None => strides_of_view(&self.sizes, &self.strides, &sizes)?,
                };
                window.sizes = sizes;
            }
            View::Dtype => {
                let dtype = args.dtype("dtype").or(result.map(|r| r.dtype))?;
                return self.retyped(i64::from(dtype.itemsize()));
            }
            View::Permute => {
                let dims = args.ints("dims").or_else(|| args.ints("permutation"))?;
                if dims.len() != self.rank() {
                    return None;
                }
                for (i, &dim) in dims.iter().enumerate() {
                    let from = self.dim(dim)?;
                    (window.sizes[i], window.strides[i]) = (self.sizes[from], self.strides[from]);
                }
            }
            View::Transpose => {
                let (a, b) = (args.int("dim0")?, args.int("dim1")?);
                if self.rank() > 0 {
                    let (a, b) = (self.dim(a)?, self.dim(b)?);
                    window.sizes.swap(a, b);
                    window.strides.swap(a, b);
                }
            }
            View::T => {
                window.sizes.reverse();
                window.strides.reverse();
            }
            View::Unsqueeze => {
                let dim = wrap(args.int("dim")?, self.rank() + 1)?;
                let stride = match self.sizes.get(dim) {
                    Some(size) => size.checked_mul(self.strides[dim])?,
                    None => 1,
                };
                window.sizes.insert(dim, 1);
                window.strides.insert(dim, stride);
            }
            View::Squeeze => {
                let named = match args.named("dim") {
                    Some(_) => Some(args.ints("dim")?),
                    None => None,
                };
                let wanted = named.map(|dims| dims.iter().map(|&d| self.dim(d)).collect::<Option<Vec<_>>>());
                let wanted = wanted.map_or(Some(None), |dims| dims.map(Some))?;
                let goes =
                    |i: usize| self.sizes[i] == 1 && wanted.as_ref().is_none_or(|dims| dims.contains(&i));
                let kept: Vec<usize> = (0..self.rank()).filter(|&i| !goes(i)).collect();
                window.sizes = kept.iter().map(|&i| self.sizes[i]).collect();
                window.strides = kept.iter().map(|&i| self.strides[i]).collect();
            }
            View::Expand => {
                let wanted = args.ints("size")?;
                let added = wanted.len().checked_sub(self.rank())?;
                window.sizes = wanted.clone();
                window.strides = vec![0; added];
                for (i, (&size, &stride)) in self.sizes.iter().zip(&self.strides).enumerate() {
                    let same = matches!(wanted[added + i], -1) || wanted[added + i] == size;
                    window.sizes[added + i] = if same { size } else { wanted[added + i] };
                    window.strides.push(if same { stride } else { 0 });
                }
            }
            View::Slice => {
                let dim = self.dim(args.int("dim")?)?;
                let size = self.sizes[dim];
                let bound = |name: &str, default: i64| match args.named(name) {
                    None | Some(Value::None) => Some(default),
                    Some(Value::Int(n)) => Some(if n < 0 { n.saturating_add(size) } else { n }.clamp(0, size)),
                    Some(_) => None,
                };
                let (start, step) = (bound("start", 0)?, args.int("step")?);
                let end = bound("end", size)?.max(start);
                if step < 1 {
                    return None;
                }
                window.take(dim, start, (end - start).div_euclid(step) + i64::from((end - start) % step != 0))?;
                window.strides[dim] = self.strides[dim].checked_mul(step)?;
            }
            View::Narrow => {
                let dim = self.dim(args.int("dim")?)?;
                let start = args.int("start")?;
                let start = if start < 0 { start.checked_add(self.sizes[dim])? } else { start };
                window.take(dim, start, args.int("length")?)?;
            }
            View::Select => {
                let dim = self.dim(args.int("dim")?)?;
                let index = args.int("index")?;
                let index = if index < 0 { index.checked_add(self.sizes[dim])? } else { index };
                window.take(dim, index, 1)?;
                window.sizes.remove(dim);
                window.strides.remove(dim);
            }
            View::AsStrided => {
                (window.sizes, window.strides) = (args.ints("size")?, args.ints("stride")?);
                window.offset = match args.named("storage_offset") {
                    None | Some(Value::None) => self.offset,
                    Some(_) => args.int("storage_offset")?,
                };
                if window.sizes.len() != window.strides.len() || window.offset < 0 {
                    return None;
                }
            }
            View::Diagonal => {
                let (a, b) = (self.dim(args.int("dim1")?)?, self.dim(args.int("dim2")?)?);
                let shift = args.int("offset")?;
                let (skip_a, skip_b) = (shift.checked_neg()?.max(0), shift.max(0));
                let size = (self.sizes[a].checked_sub(skip_a)?).min(self.sizes[b].checked_sub(skip_b)?).max(0);
                if a == b {
                    return None;
                }
                if size > 0 {
                    let skipped =
                        skip_a.checked_mul(self.strides[a])?.checked_add(skip_b.checked_mul(self.strides[b])?)?;
                    window.offset = self.offset.checked_add(skipped)?;
                }
                for dim in [a.max(b), a.min(b)] {
                    window.sizes.remove(dim);
                    window.strides.remove(dim);
                }
                window.sizes.push(size);
                window.strides.push(self.strides[a].checked_add(self.strides[b])?);
            }
            View::AsComplex => {
                let last = self.rank().checked_sub(1)?;
                if self.sizes[last] != 2 || self.strides[last] != 1 {
                    return None;
                }
                window.offset = half(self.offset)?;
                window.sizes.truncate(last);
                window.strides = self.strides[..last].iter().map(|&s| half(s)).collect::<Option<_>>()?;
                window.itemsize = self.itemsize.checked_mul(2)?;
            }
            View::AsReal => {
                window.offset = self.offset.checked_mul(2)?;
                window.sizes.push(2);
                window.strides = self.strides.iter().map(|s| s.checked_mul(2)).collect::<Option<_>>()?;
                window.strides.push(1);
                window.itemsize = half(self.itemsize)?;
            }
            View::Split | View::SplitWithSizes | View::Chunk | View::Unbind => return None,
        }
        Some(window)
    }

    /// The windows of a view that returns a list.
    pub fn pieces(&self, view: View, args: &Bound) -> Option<Vec<Window>> {
        let dim = self.dim(args.int("dim")?)?;
        let size = self.sizes[dim];
        let even = |piece: i64| -> Option<Vec<i64>> {
            // A piece of size 0 divides only nothing.
            let count = if piece > 0 { size.div_euclid(piece) + i64::from(size % piece != 0) } else { 1 }.max(1);
            if count > PIECES || (piece == 0 && size != 0) || piece < 0 {
                return None;
            }
            Some((0..count).map(|i| piece.min(size - i * piece)).collect())
        };
        let lengths = match view {
            View::Split => even(args.int("split_size")?)?,
            View::SplitWithSizes => args.ints("split_sizes")?,
            View::Chunk => {
                let chunks = args.int("chunks").filter(|&n| n > 0)?;
                even(size.div_euclid(chunks) + i64::from(size % chunks != 0))?
            }
            View::Unbind => even(1).filter(|_| size > 0)?,
            _ => return None,
        };
        let mut start = 0i64;
        let mut pieces = Vec::with_capacity(lengths.len());
        for length in lengths {
            let mut piece = self.clone();
            piece.take(dim, start, length)?;
            if view == View::Unbind {
                piece.sizes.remove(dim);
                piece.strides.remove(dim);
            }
            pieces.push(piece);
            start = start.checked_add(length)?;
        }
        Some(pieces)
    }

    /// `length` elements of a dimension, from `start` on.
    pub fn narrow(mut self, dim: i64, start: i64, length: i64) -> Option<Window> {
        let dim = self.dim(dim)?;
        self.take(dim, start, length)?;
        Some(self)
    }

    /// Python's `x[index]`.
    pub fn index(mut self, index: i64) -> Option<Window> {
        let index = if index < 0 { index.checked_add(*self.sizes.first()?)? } else { index };
        self.dim(0)?;
        self.take(0, index, 1)?;
        self.sizes.remove(0);
        self.strides.remove(0);
        Some(self)
    }

    fn rank(&self) -> usize {
        self.sizes.len()
    }

    fn dim(&self, dim: i64) -> Option<usize> {
        wrap(dim, self.rank())
    }

    /// Keeps `length` elements of a dimension, from `start` on.
    fn take(&mut self, dim: usize, start: i64, length: i64) -> Option<()> {
        if start < 0 || length < 0 || start.checked_add(length)? > self.sizes[dim] {
            return None;
        }
        self.offset = self.offset.checked_add(start.checked_mul(self.strides[dim])?)?;
        self.sizes[dim] = length;
        Some(())
    }

    /// The same bytes as elements of another size. The last dimension takes up the difference.
    fn retyped(&self, itemsize: i64) -> Option<Window> {
        let mut window = Window { itemsize, ..self.clone() };
        if itemsize == self.itemsize {
            return Some(window);
        }
        let last = self.rank().checked_sub(1)?;
        let rescale = |n: i64| {
            let bytes = n.checked_mul(self.itemsize)?;
            (bytes % itemsize == 0).then_some(bytes / itemsize)
        };
        if self.strides[last] != 1 {
            return None;
        }
        window.offset = rescale(self.offset)?;
        window.sizes[last] = rescale(self.sizes[last])?;
        for stride in &mut window.strides[..last] {
            *stride = rescale(*stride)?;
        }
        Some(window)
    }
}

/// More pieces than any tensor of a real graph is cut into; a bound on what a number in a file can make us do.
const PIECES: i64 = 1 << 20;

fn half(n: i64) -> Option<i64> {
    (n % 2 == 0).then_some(n / 2)
}

fn wrap(dim: i64, rank: usize) -> Option<usize> {
    let rank = rank as i64;
    let dim = if dim < 0 { dim.checked_add(rank)? } else { dim };
    (0..rank).contains(&dim).then_some(dim as usize)
}

/// Sizes with a -1 replaced by what the number of elements leaves for it.
fn resolve(sizes: &[i64], old: &[i64]) -> Option<Vec<i64>> {
    let product = |sizes: &[i64]| sizes.iter().try_fold(1i64, |n, &s| n.checked_mul(s));
    let numel = product(old)?;
    let mut resolved = sizes.to_vec();
    if let Some(open) = sizes.iter().position(|&s| s == -1) {
        resolved[open] = 1;
        resolved[open] = numel.checked_div(product(&resolved)?)?;
    }
    (product(&resolved) == Some(numel)).then_some(resolved)
}

/// The strides under which a window of `sizes` and `strides` shows its elements, in row-major order, as `new`
/// sizes; `None` where only a copy can.
pub fn strides_of_view(sizes: &[i64], strides: &[i64], new: &[i64]) -> Option<Vec<i64>> {
    if sizes.contains(&0) {
        let same = sizes == new;
        return Some(if same { strides.to_vec() } else { crate::graph::contiguous_strides(new) });
    }
    let mut result = vec![1i64; new.len()];
    let mut at = new.len();
    // Runs of old dimensions that follow one another in memory; each must be a run of new dimensions.
    let (mut base, mut run, mut taken) = (strides.last().copied().unwrap_or(1), 1i64, 1i64);
    for i in (0..sizes.len()).rev() {
        run = run.checked_mul(sizes[i])?;
        let goes_on = i > 0 && (sizes[i - 1] == 1 || Some(strides[i - 1]) == run.checked_mul(base));
        if goes_on {
            continue;
        }
        while at > 0 && (taken < run || new[at - 1] == 1) {
            at -= 1;
            result[at] = taken.checked_mul(base)?;
            taken = taken.checked_mul(new[at])?;
        }
        if taken != run {
            return None;
        }
        if i > 0 {
            (base, run, taken) = (strides[i - 1], 1, 1);
        }
    }
    // What is left can only be ones.
    new[..at].iter().all(|&s| s == 1).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Op, contiguous_strides};
    use crate::ops::by_target;
    use proptest::prelude::*;

    fn base(sizes: &[i64]) -> Window {
        Window { offset: 0, sizes: sizes.to_vec(), strides: contiguous_strides(sizes), itemsize: 4 }
    }

    /// The windows that `target` shows of `base`, given further arguments.
    fn show(base: &Window, target: &str, args: &[&[i64]]) -> Vec<Window> {
        let info = by_target(target).unwrap();
        let schema = info.schema.as_ref().unwrap();
        let mut graph = Graph::new("w");
        let x = graph.push("x", Op::Placeholder, "x");
        let y = graph.push("y", Op::Call, target);
        let mut values = vec![Value::Node(x)];
        for (param, ints) in schema.params[1..].iter().zip(args) {
            let value = if param.ty.contains("[]") { graph.int_list(ints) } else { Value::Int(ints[0]) };
            values.push(value);
        }
        graph.node_mut(y).args = graph.push_values(&values);
        let bound = Bound::new(&graph, y, schema).unwrap();
        let crate::ops::Kind::View(view) = info.kind else { panic!("{target} is no view") };
        match base.view(view, &bound, &graph, None) {
            Some(window) => vec![window],
            None => base.pieces(view, &bound).unwrap_or_default(),
        }
    }

    /// Positions in the storage of the elements of a window, in row-major order.
    fn elements(window: &Window) -> Vec<i64> {
        let mut places = vec![window.offset];
        for (&size, &stride) in window.sizes.iter().zip(&window.strides) {
            places = places.iter().flat_map(|&p| (0..size).map(move |i| p + i * stride)).collect();
        }
        places
    }

    #[test]
    fn each_view_shows_the_elements_that_it_should() {
        let x = base(&[2, 3, 4]);
        let one = |target: &str, args: &[&[i64]]| {
            let shown = show(&x, target, args);
            assert_eq!(shown.len(), 1, "{target}");
            (shown[0].sizes.clone(), elements(&shown[0]))
        };
        let (sizes, shown) = one("aten.permute.default", &[&[2, 0, -2]]);
        assert_eq!((sizes, &shown[..5]), (vec![4, 2, 3], &[0, 4, 8, 12, 16][..]));
        assert_eq!(one("aten.select.int", &[&[1], &[-1]]), (vec![2, 4], vec![8, 9, 10, 11, 20, 21, 22, 23]));
        assert_eq!(
            one("aten.slice.Tensor", &[&[2], &[1], &[i64::MAX], &[2]]),
            (vec![2, 3, 2], vec![1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23])
        );
        assert_eq!(one("aten.narrow.default", &[&[0], &[1], &[1]]), (vec![1, 3, 4], (12..24).collect()));
        assert_eq!(one("aten.view.default", &[&[-1, 6]]), (vec![4, 6], (0..24).collect()));
        assert_eq!(one("aten.unsqueeze.default", &[&[-1]]).0, [2, 3, 4, 1]);
        let (sizes, shown) = one("aten.diagonal.default", &[&[1], &[1], &[2]]);
        assert_eq!((sizes, shown), (vec![2, 3], vec![1, 6, 11, 13, 18, 23]));
        let (sizes, shown) = one("aten.as_strided.default", &[&[2, 2], &[1, 5], &[3]]);
        assert_eq!((sizes, shown), (vec![2, 2], vec![3, 8, 4, 9]));
        let thin = base(&[2, 1, 3]);
        assert_eq!(show(&thin, "aten.squeeze.dim", &[&[1]])[0].sizes, [2, 3]);
        assert_eq!(show(&thin, "aten.squeeze.dim", &[&[0]])[0].sizes, [2, 1, 3]);
        assert_eq!(elements(&show(&thin, "aten.expand.default", &[&[2, 2, -1]])[0])[..6], [0, 1, 2, 0, 1, 2]);
        assert_eq!(show(&base(&[3, 5]), "aten.t.default", &[])[0].strides, [1, 5]);
    }

    #[test]
    fn complex_and_other_dtypes_keep_the_bytes() {
        let mut x = base(&[3, 4, 2]);
        x.offset = 6;
        let complex = show(&x, "aten.view_as_complex.default", &[]).remove(0);
        assert_eq!((complex.offset, &complex.strides[..], complex.itemsize), (3, &[4, 1][..], 8));
        assert_eq!(show(&complex, "aten.view_as_real.default", &[]), [x.clone()]);
        assert_eq!(x.retyped(2).unwrap().sizes, [3, 4, 4]);
        assert_eq!(x.retyped(2).unwrap().retyped(4), Some(x.clone()));
        assert_eq!(x.retyped(16), None);
    }

    #[test]
    fn pieces_lie_side_by_side() {
        let x = base(&[5, 4]);
        let offsets =
            |target, args: &[&[i64]]| show(&x, target, args).iter().map(|p| p.offset).collect::<Vec<_>>();
        assert_eq!(offsets("aten.split.Tensor", &[&[2], &[0]]), [0, 8, 16]);
        assert_eq!(offsets("aten.split_with_sizes.default", &[&[1, 0, 3], &[1]]), [0, 1, 1]);
        assert_eq!(offsets("aten.chunk.default", &[&[2], &[0]]), [0, 12]);
        assert_eq!(offsets("aten.unbind.int", &[&[1]]), [0, 1, 2, 3]);
        assert_eq!(offsets("aten.split.Tensor", &[&[-1], &[0]]), [0i64; 0]);
        assert_eq!(offsets("aten.split_with_sizes.default", &[&[9], &[1]]), [0i64; 0]);
    }

    proptest! {
        #[test]
        fn a_view_keeps_the_row_major_order(
            dims in prop::collection::vec(1i64..5, 0..4),
            order in any::<u64>(),
            cut in prop::collection::vec(1i64..5, 0..4),
        ) {
            let permutation = super::super::testing::permutation(dims.len(), order);
            let plain = base(&dims);
            let x = Window {
                sizes: permutation.iter().map(|&i| plain.sizes[i as usize]).collect(),
                strides: permutation.iter().map(|&i| plain.strides[i as usize]).collect(),
                ..plain
            };
            // New sizes: divisors taken off as they fit.
            let mut left: i64 = dims.iter().product();
            let mut new = Vec::new();
            for size in cut {
                if left % size == 0 {
                    new.push(size);
                    left /= size;
                }
            }
            new.push(left);
            let seen = elements(&x);
            // Any strides that show these elements: read them off the elements.
            let mut wanted = Vec::new();
            let mut step = seen.len();
            for &size in &new {
                step /= size as usize;
                wanted.push(if size > 1 { seen[step] - seen[0] } else { 0 });
            }
            let guess = Window { sizes: new.clone(), strides: wanted, ..x.clone() };
            match strides_of_view(&x.sizes, &x.strides, &new) {
                Some(strides) => {
                    prop_assert_eq!(elements(&Window { sizes: new, strides, ..x.clone() }), seen);
                }
                None => prop_assert_ne!(elements(&guess), seen),
            }
        }
    }
}
