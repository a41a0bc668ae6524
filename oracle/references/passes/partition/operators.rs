//! The sets of operators that the min-cut partitioner decides by. Overloads are ignored: a set holds packets
//! (`aten.add` for `aten.add.Tensor`) and Python functions by their target.
//!
//! Source: `torch._functorch.partitioners.get_default_op_list` and `pointwise_ops` of PyTorch 2.15.

use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// What the min-cut partitioner calls a view.
const VIEWS: &[&str] = &[
    "aten.squeeze",
    "aten.unsqueeze",
    "aten.alias",
    "aten.view",
    "aten.slice",
    "aten.t",
    "prims.broadcast_in_dim",
    "aten.expand",
    "aten.as_strided",
    "aten.permute",
    "aten.select",
    "aten.split",
];

const COMPUTE_INTENSIVE: &str = "mm convolution convolution_backward bmm addmm _scaled_dot_product_flash_attention \
    _scaled_dot_product_efficient_attention _flash_attention_forward _efficient_attention_forward \
    upsample_bilinear2d _scaled_mm";

const RANDOM: &str = "native_dropout rand_like randn_like";

/// Packets of `aten` that are cheap enough to be computed again.
const RECOMPUTABLE: &str = "add sub div atan2 mul max min pow remainder fmod __and__ __or__ __xor__ __lshift__ __rshift__ eq ne \
    ge gt le lt abs bitwise_not ceil floor frac neg relu round silu trunc log log10 log1p log2 lgamma \
    exp expm1 erf erfc cos acos cosh sin asin sinh tan atan tanh atanh sqrt rsqrt reciprocal sigmoid \
    softplus threshold threshold_backward clamp where lerp addcmul gelu gelu_backward rsub maximum isinf \
    sum mean _grad_sum_to_size sum_to_size amax var std var_mean any argmax to type_as _to_copy clone \
    lift_fresh_copy full full_like ones zeros zeros_like new_zeros empty empty_like arange scalar_tensor \
    reshape _unsafe_view broadcast_tensors triu index gather";

const RECOMPUTABLE_PRIMS: &str =
    "var sum prepare_softmax_online convert_element_type div iota _low_memory_max_pool_offsets_to_indices";

/// Packets of `aten` with the tag `pointwise`.
const POINTWISE: &str = "__ilshift__ __ixor__ __lshift__ __rshift__ __xor__ abs angle clone copysign eq equal fmax fmin frexp \
    gcd ge gelu gelu_backward gt hardshrink heaviside isfinite isinf isnan isneginf isposinf lcm le \
    logaddexp logaddexp2 logit_backward lt masked_fill max maximum min minimum mish \
    native_dropout_backward ne positive relu6 rrelu rsub sigmoid_backward signbit silu_backward softplus \
    softshrink special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 \
    special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v \
    special_chebyshev_polynomial_w special_entr special_erfcx special_hermite_polynomial_h \
    special_hermite_polynomial_he special_i0e special_i1 special_i1e special_laguerre_polynomial_l \
    special_legendre_polynomial_p special_log_ndtr special_modified_bessel_i0 special_modified_bessel_i1 \
    special_modified_bessel_k0 special_modified_bessel_k1 special_ndtri \
    special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 \
    special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u \
    special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w \
    special_spherical_bessel_j0 special_xlog1py special_zeta tanh_backward threshold threshold_backward \
    true_divide where";

/// Packets of `aten` with the tag `pointwise` whose in-place variant has it too.
const POINTWISE_AND_IN_PLACE: &str = "acos acosh add addcdiv addcmul asin asinh atan atan2 atanh bitwise_and bitwise_left_shift \
    bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp clamp_max clamp_min clip \
    conj_physical cos cosh deg2rad digamma div elu erf erfc erfinv exp exp2 expm1 float_power floor fmod \
    frac hardsigmoid hardtanh hypot i0 igamma igammac ldexp leaky_relu lerp lgamma log log10 log1p log2 \
    logical_and logical_not logical_or logical_xor logit mul mvlgamma nan_to_num neg nextafter polygamma \
    pow rad2deg reciprocal relu remainder round rsqrt selu sgn sigmoid sign silu sin sinc sinh sqrt \
    square sub tan tanh trunc xlogy";

/// Arithmetic on symbolic sizes.
const SYMBOLIC: &str = "operator.add operator.sub operator.mul operator.truediv operator.floordiv operator.mod operator.pow \
    operator.neg operator.pos operator.abs operator.and_ operator.or_ operator.xor operator.lshift \
    operator.rshift operator.eq operator.ne operator.lt operator.le operator.gt operator.ge math.ceil \
    math.floor math.trunc round builtins.round torch.sym_float torch.sym_ite torch.sym_max torch.sym_min \
    torch.sym_not torch._sym_sqrt torch._sym_cos torch._sym_cosh torch._sym_sin torch._sym_sinh \
    torch._sym_tan torch._sym_tanh torch._sym_asin torch._sym_acos torch._sym_atan torch._sym_log2";

/// Random packets that common-subexpression elimination never merges.
const NEVER_MERGED: &str = "dropout _fused_dropout _standard_gamma bernoulli multinomial native_dropout normal poisson binomial \
    rrelu rand_like rand randint randn randperm empty";

/// The membership of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Membership {
    /// A view.
    pub view: bool,
    /// Expensive.
    pub compute_intensive: bool,
    /// Draws random numbers, as far as fusion is concerned.
    pub random: bool,
    /// Cheap to compute again.
    pub recomputable: bool,
    /// Never merged with an equal node.
    pub never_merged: bool,
}

/// All packets that belong to some set.
static SETS: LazyLock<FxHashMap<String, Membership>> = LazyLock::new(|| {
    let mut sets: FxHashMap<String, Membership> = FxHashMap::default();
    let mut add = |prefix: &str, words: &str, suffix: &str, set: fn(&mut Membership)| {
        for word in words.split_ascii_whitespace() {
            set(sets.entry(format!("{prefix}{word}{suffix}")).or_default());
        }
    };
    let recomputable: fn(&mut Membership) = |of| of.recomputable = true;
    for view in VIEWS {
        add("", view, "", |of| (of.view, of.recomputable) = (true, true));
    }
    for words in [RECOMPUTABLE, POINTWISE, POINTWISE_AND_IN_PLACE] {
        add("aten.", words, "", recomputable);
    }
    add("aten.", POINTWISE_AND_IN_PLACE, "_", recomputable);
    add("prims.", RECOMPUTABLE_PRIMS, "", recomputable);
    add("", SYMBOLIC, "", recomputable);
    add("", "operator.getitem", "", recomputable);
    add("aten.", COMPUTE_INTENSIVE, "", |of| of.compute_intensive = true);
    add("aten.", RANDOM, "", |of| of.random = true);
    add("aten.", NEVER_MERGED, "", |of| of.never_merged = true);
    sets
});

impl Membership {
    /// What `packet` belongs to.
    pub fn of(packet: &str) -> Membership {
        SETS.get(packet).copied().unwrap_or_default()
    }

    /// Whether it can be fused with its neighbours.
    pub fn fusible(self) -> bool {
        self.recomputable || self.random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members() {
        for (packet, view, recomputable) in [
            ("aten.view", true, true),
            ("aten.reshape", false, true),
            ("aten.transpose", false, false),
            ("aten.add_", false, true),
            ("aten.hardtanh_", false, true),
            ("aten.masked_fill_", false, false),
            ("aten.__and__", false, true),
            ("aten.cat", false, false),
            ("aten._softmax", false, false),
            ("prims.convert_element_type", false, true),
            ("prims.broadcast_in_dim", true, true),
            ("operator.getitem", false, true),
            ("operator.floordiv", false, true),
            ("torch.sym_sum", false, false),
            ("aten.sym_size", false, false),
            ("_c10d_functional.wait_tensor", false, false),
        ] {
            let membership = Membership::of(packet);
            assert_eq!((membership.view, membership.recomputable), (view, recomputable), "{packet}");
        }
        assert!(Membership::of("aten.native_dropout").fusible());
        assert!(Membership::of("aten.bmm").compute_intensive && !Membership::of("aten.bmm").fusible());
    }
}
