//! Views: other windows on the storage of an argument.

use super::Row;
use crate::ops::kind::Kind;
use crate::ops::shape::{Shown, dimension, misfit};
use smallvec::SmallVec;

/// Windows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum View {
    /// `view`, `reshape`, `_unsafe_view`: the same elements in row-major order under another shape.
    Sizes,
    /// `view.dtype`: the same bytes under another dtype.
    Dtype,
    Permute,
    Transpose,
    /// `t`: transpose of at most 2 dimensions.
    T,
    Unsqueeze,
    Squeeze,
    Expand,
    Slice,
    Select,
    /// `split.Tensor`: pieces of one size.
    Split,
    SplitWithSizes,
    /// `chunk`: at most the given number of pieces, all but the last of one size.
    Chunk,
    /// `narrow(x, dim, start, length)`.
    Narrow,
    Unbind,
    AsStrided,
    Diagonal,
    /// `unfold(x, dimension, size, step)`: pieces that may overlap, each in a new last dimension.
    Unfold,
    /// `alias`, `detach`, `lift_fresh`: the same window.
    Alias,
    /// Pairs of floats as complex numbers.
    AsComplex,
    /// Complex numbers as pairs of floats.
    AsReal,
    /// Lazily conjugated view. Shares storage, shows other values.
    Conj,
}

/// Dimensions in another order.
pub type Order = SmallVec<[usize; 6]>;

impl View {
    /// Whether it shows a list of windows.
    pub fn is_list(self) -> bool {
        matches!(self, View::Split | View::SplitWithSizes | View::Chunk | View::Unbind)
    }

    /// Whether it may show an element several times.
    pub fn repeats(self) -> bool {
        matches!(self, View::Expand | View::AsStrided | View::Unfold)
    }

    /// The order in which a permutation shows `rank` dimensions; `given` are the numbers after the tensor.
    ///
    /// # Errors
    /// There is none.
    pub fn order(self, rank: usize, given: &[i64]) -> Shown<Order> {
        let dims = given.iter().map(|&dim| dimension(dim, rank)).collect::<Shown<Order>>()?;
        let mut order: Order = (0..rank).collect();
        match (self, &dims[..]) {
            (View::T, _) if rank > 2 => {
                return misfit(format!("t takes at most 2 dimensions, got {rank}"), &[]);
            }
            (View::T, _) => order.reverse(),
            (View::Transpose, &[a, b]) if rank > 0 => order.swap(a, b),
            (View::Transpose, _) => {}
            _ if dims.len() != rank || order.iter().any(|dim| !dims.contains(dim)) => {
                return misfit(format!("{given:?} does not permute {rank} dimensions"), &[]);
            }
            _ => order = dims,
        }
        Ok(order)
    }
}

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    // Windows on the argument's storage.
    ("view",                 Kind::View(View::Sizes),          "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)"),
    ("reshape",              Kind::View(View::Sizes),          "aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)"),
    ("unsafe_view",          Kind::View(View::Sizes),          "aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor"),
    ("",                     Kind::View(View::AsStrided),      "aten::_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)"),
    ("view_dtype",           Kind::View(View::Dtype),          "aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)"),
    ("permute",              Kind::View(View::Permute),        "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)"),
    ("transpose",            Kind::View(View::Transpose),      "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"),
    ("t",                    Kind::View(View::T),              "aten::t(Tensor(a) self) -> Tensor(a)"),
    ("unsqueeze",            Kind::View(View::Unsqueeze),      "aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)"),
    ("squeeze",              Kind::View(View::Squeeze),        "aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)"),
    ("squeeze_all",          Kind::View(View::Squeeze),        "aten::squeeze(Tensor(a) self) -> Tensor(a)"),
    ("squeeze_dims",         Kind::View(View::Squeeze),        "aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)"),
    ("expand",               Kind::View(View::Expand),         "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)"),
    ("slice",                Kind::View(View::Slice),          "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)"),
    ("narrow",               Kind::View(View::Narrow),         "aten::narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)"),
    ("select",               Kind::View(View::Select),         "aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)"),
    ("split",                Kind::View(View::Split),          "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]"),
    ("split_with_sizes",     Kind::View(View::SplitWithSizes), "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]"),
    ("chunk",                Kind::View(View::Chunk),          "aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]"),
    // Views at run time, whatever PyTorch's schemas say.
    ("",                     Kind::View(View::Split),          "aten::unsafe_split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]"),
    ("",                     Kind::View(View::SplitWithSizes), "aten::unsafe_split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]"),
    ("",                     Kind::View(View::Chunk),          "aten::unsafe_chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]"),
    ("unbind",               Kind::View(View::Unbind),         "aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]"),
    ("as_strided",           Kind::View(View::AsStrided),      "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)"),
    ("diagonal",             Kind::View(View::Diagonal),       "aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)"),
    ("unfold",               Kind::View(View::Unfold),         "aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)"),
    ("alias",                Kind::View(View::Alias),          "aten::alias(Tensor(a) self) -> Tensor(a)"),
    ("detach",               Kind::View(View::Alias),          "aten::detach(Tensor(a) self) -> Tensor(a)"),
    ("lift_fresh",           Kind::View(View::Alias),          "aten::lift_fresh(Tensor(a) self) -> Tensor(a)"),
    ("view_as_complex",      Kind::View(View::AsComplex),      "aten::view_as_complex(Tensor(a) self) -> Tensor(a)"),
    ("view_as_real",         Kind::View(View::AsReal),         "aten::view_as_real(Tensor(a) self) -> Tensor(a)"),
    ("conj",                 Kind::View(View::Conj),           "aten::_conj(Tensor(a) self) -> Tensor(a)"),
    ("",                     Kind::View(View::Alias),          "prims::view_of(Tensor(a) a) -> Tensor(a)"),
    ("",                     Kind::View(View::Permute),        "prims::transpose(Tensor(a) a, int[] permutation) -> Tensor(a)"),
    // The same elements, copied.
    ("view_copy",            Kind::View(View::Sizes),          "aten::view_copy(Tensor self, SymInt[] size) -> Tensor"),
    ("permute_copy",         Kind::View(View::Permute),        "aten::permute_copy(Tensor self, int[] dims) -> Tensor"),
    ("transpose_copy",       Kind::View(View::Transpose),      "aten::transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor"),
    ("t_copy",               Kind::View(View::T),              "aten::t_copy(Tensor self) -> Tensor"),
    ("unsqueeze_copy",       Kind::View(View::Unsqueeze),      "aten::unsqueeze_copy(Tensor self, int dim) -> Tensor"),
    ("squeeze_copy",         Kind::View(View::Squeeze),        "aten::squeeze_copy.dim(Tensor self, int dim) -> Tensor"),
    ("squeeze_all_copy",     Kind::View(View::Squeeze),        "aten::squeeze_copy(Tensor self) -> Tensor"),
    ("squeeze_dims_copy",    Kind::View(View::Squeeze),        "aten::squeeze_copy.dims(Tensor self, int[] dim) -> Tensor"),
    ("expand_copy",          Kind::View(View::Expand),         "aten::expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor"),
    ("slice_copy",           Kind::View(View::Slice),          "aten::slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor"),
    ("select_copy",          Kind::View(View::Select),         "aten::select_copy.int(Tensor self, int dim, SymInt index) -> Tensor"),
    ("split_copy",           Kind::View(View::Split),          "aten::split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]"),
    ("unbind_copy",          Kind::View(View::Unbind),         "aten::unbind_copy.int(Tensor self, int dim=0) -> Tensor[]"),
    ("as_strided_copy",      Kind::View(View::AsStrided),      "aten::as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor"),
    ("diagonal_copy",        Kind::View(View::Diagonal),       "aten::diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor"),
    ("unfold_copy",          Kind::View(View::Unfold),         "aten::unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor"),
    ("alias_copy",           Kind::View(View::Alias),          "aten::alias_copy(Tensor self) -> Tensor"),
    ("detach_copy",          Kind::View(View::Alias),          "aten::detach_copy(Tensor self) -> Tensor"),
    ("view_as_complex_copy", Kind::View(View::AsComplex),      "aten::view_as_complex_copy(Tensor self) -> Tensor"),
    ("view_as_real_copy",    Kind::View(View::AsReal),         "aten::view_as_real_copy(Tensor self) -> Tensor"),
    // Views that the oracle does not compute.
    ("real",                 Kind::Opaque,                     "aten::real(Tensor(a) self) -> Tensor(a)"),
    ("imag",                 Kind::Opaque,                     "aten::imag(Tensor(a) self) -> Tensor(a)"),
    ("movedim",              Kind::Opaque,                     "aten::movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)"),
    ("flatten",              Kind::Opaque,                     "aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)"),
    ("unflatten",            Kind::Opaque,                     "aten::unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)"),
    ("expand_as",            Kind::Opaque,                     "aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)"),
    ("view_as",              Kind::Opaque,                     "aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)"),
    ("broadcast_in_dim",     Kind::Opaque,                     "prims::broadcast_in_dim(Tensor(a) a, SymInt[] shape, int[] broadcast_dimensions) -> Tensor(a)"),
];
