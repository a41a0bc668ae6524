//! The metadata of one tensor with known sizes, and what views make of it.

use crate::graph::layout::{is_contiguous, view_strides};
use crate::graph::{Dtype, Graph, NodeId, Out, Str, Tensor, contiguous_strides};
use crate::ops::View;
use crate::ops::shape::{Window, known};

/// More elements than any tensor has.
pub const MOST: i64 = 1 << 48;

/// Sizes, strides and offset in elements; dtype; device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Sizes.
    pub shape: Vec<i64>,
    /// Strides.
    pub stride: Vec<i64>,
    /// Offset into the storage.
    pub offset: i64,
    /// Element type.
    pub dtype: Dtype,
    /// Device.
    pub device: Str,
}

impl Layout {
    /// What is recorded about a node's tensor; `None` where there is none, a size is symbolic, or a number is out
    /// of bounds: so far from the limits of 64 bits that no arithmetic of a merged body overflows.
    pub fn of(graph: &Graph, id: NodeId) -> Option<Layout> {
        let tensor = graph.tensor_of(id)?;
        let &Tensor { shape, stride, offset, dtype, device, .. } = tensor;
        let layout =
            Layout { shape: graph.sizes(shape)?, stride: graph.sizes(stride)?, offset, dtype, device };
        let fits = |n: &i64| (0..=MOST).contains(n);
        let all = layout.shape.iter().chain(&layout.stride).chain([&layout.offset]);
        let numel = graph.numel(tensor);
        let same_rank = layout.shape.len() == layout.stride.len();
        (all.into_iter().all(fits) && numel.as_ref().is_some_and(fits) && same_rank).then_some(layout)
    }

    /// A fresh contiguous tensor.
    pub fn fresh(shape: &[i64], dtype: Dtype, device: Str) -> Layout {
        Layout { shape: shape.to_vec(), stride: contiguous_strides(shape), offset: 0, dtype, device }
    }

    /// Number of elements.
    pub fn numel(&self) -> i64 {
        self.shape.iter().product()
    }

    /// Stores it as what a node returns.
    pub fn store(&self, graph: &mut Graph) -> Out {
        let tensor = Tensor {
            shape: graph.intern_sizes(&self.shape),
            stride: graph.intern_sizes(&self.stride),
            dtype: self.dtype,
            requires_grad: None,
            device: self.device,
            storage: None,
            offset: self.offset,
            storage_bytes: None,
            is_guessed: false,
        };
        Out::Tensor(graph.push_tensor(tensor))
    }

    /// Whether the elements lie in row-major order without gaps; dimensions of size 1 do not count, and a
    /// tensor without elements is contiguous.
    pub fn is_contiguous(&self) -> bool {
        is_contiguous(&self.shape, &self.stride)
    }

    /// This tensor seen with other sizes, of the same number of elements; `None` where only a copy can show it so.
    pub fn viewed(&self, shape: &[i64]) -> Option<Layout> {
        let stride = view_strides(&self.shape, &self.stride, shape)?.into_vec();
        Some(Layout { shape: shape.to_vec(), stride, ..self.clone() })
    }

    /// The elements `start..start + size` along a dimension.
    pub fn narrowed(&self, dim: usize, start: i64, size: i64) -> Layout {
        let mut narrow = self.clone();
        narrow.shape[dim] = size;
        narrow.offset += start * self.stride[dim];
        narrow
    }

    /// The same bytes under another dtype; `None` where sizes, strides or offset do not divide.
    pub fn retyped(&self, dtype: Dtype) -> Option<Layout> {
        let window = Window::known(&self.shape, &self.stride, self.offset);
        let (window, dtype) = window.retyped(View::Dtype, self.dtype, Some(dtype)).ok()?;
        Some(Layout {
            shape: known(&window.shape)?.into_vec(),
            stride: known(&window.strides)?.into_vec(),
            offset: window.offset.known()?,
            dtype,
            device: self.device,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn device() -> Str {
        Graph::new("g").intern("cpu")
    }

    /// The storage element behind each element, in row-major order.
    fn addresses(layout: &Layout) -> Vec<i64> {
        let mut all = vec![layout.offset];
        for (&size, &stride) in layout.shape.iter().zip(&layout.stride) {
            all = all.iter().flat_map(|&at| (0..size).map(move |i| at + i * stride)).collect();
        }
        all
    }

    /// Strides that show these elements under a shape, if there are any.
    fn strides_by_search(elements: &[i64], shape: &[i64]) -> Option<Vec<i64>> {
        let rows = contiguous_strides(shape);
        let probe = |(&size, &step): (&i64, &i64)| match size {
            1 => Some(0),
            _ => Some(elements.get(step as usize)? - elements.first()?),
        };
        let stride: Option<Vec<i64>> = shape.iter().zip(&rows).map(probe).collect();
        let tried = Layout {
            shape: shape.to_vec(),
            stride: stride?,
            offset: elements[0],
            dtype: Dtype::F32,
            device: device(),
        };
        (addresses(&tried) == elements).then_some(tried.stride)
    }

    /// A permuted, narrowed, or repeated window, and another shape of as many elements.
    fn windows() -> impl Strategy<Value = (Layout, Vec<i64>)> {
        let sizes = prop::collection::vec(1i64..4, 0..4);
        (sizes, any::<prop::sample::Index>(), 0i64..3, 0i64..3, prop::collection::vec(any::<bool>(), 6))
            .prop_map(|(sizes, pick, gap, offset, split)| {
                let wide: Vec<i64> = sizes.iter().map(|n| n + gap % 2).collect();
                let mut stride = contiguous_strides(&wide);
                let mut shape = sizes.clone();
                if !shape.is_empty() {
                    let by = pick.index(shape.len());
                    shape.rotate_left(by);
                    stride.rotate_left(by);
                }
                // Prime factors in order, joined again at random, with sizes of 1 in between.
                let numel: i64 = shape.iter().product();
                let (mut factors, mut rest) = (vec![1], numel);
                for p in [2, 3] {
                    while rest % p == 0 {
                        factors.push(p);
                        rest /= p;
                    }
                }
                let by = offset as usize % factors.len();
                factors.rotate_left(by);
                let mut new: Vec<i64> = Vec::new();
                for (i, factor) in factors.into_iter().enumerate() {
                    match new.last_mut() {
                        Some(last) if split[i % split.len()] => *last *= factor,
                        _ => new.push(factor),
                    }
                }
                (Layout { shape, stride, offset, dtype: Dtype::F32, device: device() }, new)
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn a_view_shows_the_same_elements((old, shape) in windows()) {
            let elements = addresses(&old);
            let view = old.viewed(&shape);
            prop_assert_eq!(view.is_some(), strides_by_search(&elements, &shape).is_some());
            if let Some(view) = view {
                prop_assert_eq!(addresses(&view), elements.clone());
            }
            let rows: Vec<i64> = (old.offset..).take(elements.len()).collect();
            prop_assert_eq!(old.is_contiguous(), elements == rows);
        }
    }

    #[test]
    fn views_of_nothing_and_of_one_element() {
        let empty = Layout::fresh(&[0, 3], Dtype::F32, device());
        assert_eq!(empty.viewed(&[3, 0]).map(|v| v.shape), Some(vec![3, 0]));
        let one = Layout::fresh(&[], Dtype::F32, device());
        assert_eq!(one.viewed(&[1, 1]).map(|v| v.stride), Some(vec![1, 1]));
    }

    #[test]
    fn other_dtypes() {
        let floats = Layout { offset: 4, ..Layout::fresh(&[2, 4], Dtype::F32, device()) };
        let halves = floats.retyped(Dtype::BF16).unwrap();
        assert_eq!(
            (halves.shape.as_slice(), halves.stride.as_slice(), halves.offset),
            (&[2, 8][..], &[8, 1][..], 8)
        );
        assert_eq!(halves.retyped(Dtype::F32), Some(floats.clone()));
        assert_eq!(Layout { offset: 3, ..halves.clone() }.retyped(Dtype::F32), None);
        assert_eq!(Layout { stride: vec![1, 2], ..halves }.retyped(Dtype::F32), None);
    }
}
