//! The metadata of one tensor with known sizes, and what views make of it.

use crate::graph::{Dtype, Graph, NodeId, Out, Str, Tensor, contiguous_strides};

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
    /// What is recorded about a node's tensor; `None` where there is none or a size is symbolic.
    pub fn of(graph: &Graph, id: NodeId) -> Option<Layout> {
        let &Tensor { shape, stride, offset, dtype, device, .. } = graph.tensor_of(id)?;
        Some(Layout { shape: graph.sizes(shape)?, stride: graph.sizes(stride)?, offset, dtype, device })
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
        };
        Out::Tensor(graph.push_tensor(tensor))
    }

    /// Whether the elements lie in row-major order without gaps; dimensions of size 1 do not count, and a
    /// tensor without elements is contiguous.
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        self.numel() == 0
            || self.shape.iter().zip(&self.stride).rev().all(|(&size, &stride)| {
                let fits = size == 1 || stride == expected;
                expected *= size;
                fits
            })
    }

    /// This tensor seen with other sizes, of the same number of elements; `None` where only a copy can show it
    /// so. Source: `computeStride` in `aten/src/ATen/TensorUtils.cpp`.
    pub fn viewed(&self, shape: &[i64]) -> Option<Layout> {
        let view = |stride: Vec<i64>| Layout { shape: shape.to_vec(), stride, ..self.clone() };
        if self.numel() == 0 {
            return Some(view(if shape == self.shape {
                self.stride.clone()
            } else {
                contiguous_strides(shape)
            }));
        }
        if self.shape.is_empty() {
            return Some(view(vec![1; shape.len()]));
        }
        let mut stride = vec![0; shape.len()];
        let mut left = shape.len();
        // Chunks of old dimensions, from the innermost, that are contiguous among themselves.
        let (mut base, mut chunk, mut covered) = (self.stride[self.stride.len() - 1], 1, 1);
        for old in (0..self.shape.len()).rev() {
            chunk *= self.shape[old];
            let ends = old == 0 || (self.shape[old - 1] != 1 && self.stride[old - 1] != chunk * base);
            if !ends {
                continue;
            }
            while left > 0 && (covered < chunk || shape[left - 1] == 1) {
                left -= 1;
                stride[left] = covered * base;
                covered *= shape[left];
            }
            if covered != chunk {
                return None;
            }
            if old > 0 {
                (base, chunk, covered) = (self.stride[old - 1], 1, 1);
            }
        }
        (left == 0).then(|| view(stride))
    }

    /// The elements `start..start + size` along a dimension.
    pub fn narrowed(&self, dim: usize, start: i64, size: i64) -> Layout {
        let mut narrow = self.clone();
        narrow.shape[dim] = size;
        narrow.offset += start * self.stride[dim];
        narrow
    }

    /// The same bytes under another dtype; `None` where sizes, strides or offset do not divide. Source:
    /// `aten::view.dtype`.
    pub fn retyped(&self, dtype: Dtype) -> Option<Layout> {
        let (old, new) = (i64::from(self.dtype.itemsize()), i64::from(dtype.itemsize()));
        let mut retyped = Layout { dtype, ..self.clone() };
        if old == new {
            return Some(retyped);
        }
        let inner = self.shape.len().checked_sub(1)?;
        if self.stride[inner] != 1 {
            return None;
        }
        if old > new {
            let ratio = old / new;
            retyped.shape[inner] *= ratio;
            retyped.offset *= ratio;
            retyped.stride[..inner].iter_mut().for_each(|s| *s *= ratio);
        } else {
            let ratio = new / old;
            let whole = |n: i64| (n % ratio == 0).then_some(n / ratio);
            retyped.shape[inner] = whole(self.shape[inner])?;
            retyped.offset = whole(self.offset)?;
            for (dim, stride) in retyped.stride[..inner].iter_mut().enumerate() {
                *stride = if self.shape[dim] == 1 { *stride / ratio } else { whole(*stride)? };
            }
        }
        Some(retyped)
    }
}
