//! The operators and keywords that the generator writes. Their texts are interned when first used in a graph.

macro_rules! words {
    ($(#[doc = $doc:literal])* $name:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum $name { $($variant),* }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            pub fn text(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }
        }
    };
}

words! {
    /// An operator.
    Target {
        Output = "output",
        AllGather = "_c10d_functional.all_gather_into_tensor.default",
        AllGatherOut = "_c10d_functional.all_gather_into_tensor_out.default",
        AllGatherCoalesced = "_c10d_functional.all_gather_into_tensor_coalesced.default",
        ReduceScatter = "_c10d_functional.reduce_scatter_tensor.default",
        ReduceScatterCoalesced = "_c10d_functional.reduce_scatter_tensor_coalesced.default",
        AllReduce = "_c10d_functional.all_reduce.default",
        AllReduceInPlace = "_c10d_functional.all_reduce_.default",
        AllReduceCoalesced = "_c10d_functional.all_reduce_coalesced.default",
        AllToAll = "_c10d_functional.all_to_all_single.default",
        Broadcast = "_c10d_functional.broadcast.default",
        Wait = "_c10d_functional.wait_tensor.default",
        Barrier = "c10d.barrier.default",
        GetItem = "operator.getitem",
        Relu = "aten.relu.default",
        Neg = "aten.neg.default",
        Abs = "aten.abs.default",
        Sign = "aten.sign.default",
        LogicalNot = "aten.logical_not.default",
        Add = "aten.add.Tensor",
        Sub = "aten.sub.Tensor",
        Mul = "aten.mul.Tensor",
        Maximum = "aten.maximum.default",
        Minimum = "aten.minimum.default",
        LogicalOr = "aten.logical_or.default",
        BitwiseAnd = "aten.bitwise_and.Scalar",
        Gt = "aten.gt.Scalar",
        Where = "aten.where.self",
        AddInPlace = "aten.add_.Tensor",
        MulInPlace = "aten.mul_.Tensor",
        ReluInPlace = "aten.relu_.default",
        NegInPlace = "aten.neg_.default",
        ZeroInPlace = "aten.zero_.default",
        FillInPlace = "aten.fill_.Scalar",
        Copy = "aten.copy_.default",
        ForeachCopy = "aten._foreach_copy_.default",
        Clone = "aten.clone.default",
        Cat = "aten.cat.default",
        Stack = "aten.stack.default",
        Pad = "aten.constant_pad_nd.default",
        Cast = "prims.convert_element_type.default",
        ToCopy = "aten._to_copy.default",
        Empty = "aten.empty.memory_format",
        Zeros = "aten.zeros.default",
        Ones = "aten.ones.default",
        Full = "aten.full.default",
        NewZeros = "aten.new_zeros.default",
        Sum = "aten.sum.dim_IntList",
        SumAll = "aten.sum.default",
        Amax = "aten.amax.default",
        Mm = "aten.mm.default",
        View = "aten.view.default",
        Reshape = "aten.reshape.default",
        Permute = "aten.permute.default",
        Transpose = "aten.transpose.int",
        T = "aten.t.default",
        Unsqueeze = "aten.unsqueeze.default",
        Squeeze = "aten.squeeze.dim",
        Expand = "aten.expand.default",
        Slice = "aten.slice.Tensor",
        Select = "aten.select.int",
        Alias = "aten.alias.default",
        Detach = "aten.detach.default",
        Split = "aten.split.Tensor",
        SplitWithSizes = "aten.split_with_sizes.default",
        Chunk = "aten.chunk.default",
        Unbind = "aten.unbind.int",
        Dropout = "aten.native_dropout.default",
        RandLike = "aten.rand_like.default",
        Bernoulli = "aten.bernoulli.p",
        BernoulliInPlace = "aten.bernoulli_.float",
        Item = "aten._local_scalar_dense.default",
        SymGe = "operator.ge",
        AssertScalar = "aten._assert_scalar.default",
        Softmax = "aten._softmax.default",
        Cumprod = "aten.cumprod.default",
    }
}

words! {
    /// A keyword.
    Keyword {
        Other = "other",
        Out = "out",
        Dtype = "dtype",
        Device = "device",
        PinMemory = "pin_memory",
        Alpha = "alpha",
        Keepdim = "keepdim",
        Dim = "dim",
        MemoryFormat = "memory_format",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops;

    #[test]
    fn every_operator_has_a_row() {
        for &target in Target::ALL.iter().filter(|&&t| t != Target::Output) {
            assert!(ops::by_target(target.text()).is_some(), "{}", target.text());
        }
    }
}
