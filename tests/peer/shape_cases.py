"""Records what PyTorch says of the results of many small random calls, as one graph.

    python tests/peer/shape_cases.py tests/ops/shape_cases.json.gz [CALLS PER OPERATOR]
    python tests/peer/shape_cases.py tests/ops/slip_cases.json.gz 6 slips
    python tests/peer/shape_cases.py tests/ops/view_cases.json.gz 0 views

Each call is run on real CPU tensors and on fake ones. The graph holds a node per answer: `eager_*` and, where it
differs, `fake_*`; a call that eager PyTorch refuses has no result and the module path `refused`. `tests/ops` holds
the shape rules against the file, so that no test needs PyTorch. The script is deterministic.

With `slips`, arguments are spoilt: another dtype, rank, size or number, one too few or too many. What only the kernels
of a CPU refuse is no statement about the operator and left out, and so is what `UNJUDGED` names.

With `views`, nothing is random: each operator that shows a window, on windows of every kind (offset, empty, repeated,
without dimensions), with arguments at and past every edge.
"""

import gzip
import itertools
import json
import logging
import random
import sys
import warnings
from copy import copy as twin

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

logging.disable(logging.CRITICAL)
warnings.filterwarnings("ignore")
import torch._inductor.inductor_prims  # noqa: E402,F401

RNG = random.Random(0)
PER_TARGET = int(sys.argv[2]) if len(sys.argv) > 2 else 12
SLIPS = sys.argv[3:] == ["slips"]
VIEWS = sys.argv[3:] == ["views"]
# The rules do not ask all that networks do, nor after the values of numbers.
UNJUDGED = [
    "convolution", "native_layer_norm", "nll_loss", "attention", "gelu_backward", "logsumexp", "expects p",
    "representable range",
]
F = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
I = [torch.int64, torch.int32, torch.int8, torch.uint8]
ANY = F + I + [torch.bool]


class T:
    """A tensor argument: its storage, and a window on it."""

    def __init__(self, shape, dtype=torch.float32, layout=None, fill=1):
        self.shape, self.dtype, self.fill = tuple(shape), dtype, fill
        self.layout = RNG.choice(["plain", "plain", "permuted", "sliced", "expanded"]) if layout is None else layout
        self.seed = RNG.randrange(1 << 30)

    def make(self):
        rng = random.Random(self.seed)
        shape = list(self.shape)
        rank = len(shape)
        def fresh(sizes):
            return torch.full(sizes, self.fill, dtype=self.dtype)
        if self.layout == "permuted" and rank > 1:
            order = list(range(rank))
            rng.shuffle(order)
            tensor = fresh([shape[d] for d in order])
            return tensor.permute([order.index(d) for d in range(rank)])
        if self.layout == "sliced" and rank > 0:
            dim = rng.randrange(rank)
            wide = shape[:]
            wide[dim] = wide[dim] * 2 + 1
            return fresh(wide).narrow(dim, 1, wide[dim] - 1)[(slice(None),) * dim + (slice(None, None, 2),)]
        if self.layout == "expanded" and rank > 0:
            dim = rng.randrange(rank)
            narrow = shape[:]
            narrow[dim] = 1
            return fresh(narrow).expand(shape)
        return fresh(shape)


def shape(low=0, high=4, sizes=(0, 1, 2, 3, 4, 6)):
    weights = [1, 4, 6, 6, 6, 3][: len(sizes)]
    return [RNG.choices(sizes, weights)[0] for _ in range(RNG.randint(low, high))]


def dense(low=1, high=4):
    return [RNG.choice([1, 2, 3, 4, 6]) for _ in range(RNG.randint(low, high))]


def broadcastable(of, slips=0.08):
    """A shape that broadcasts to `of`, or (rarely) does not."""
    result = [1 if RNG.random() < 0.25 else s for s in of]
    result = result[RNG.randint(0, len(result)) if RNG.random() < 0.4 else 0 :]
    if result and RNG.random() < slips:
        result[RNG.randrange(len(result))] += 1
    return result


def dim(rank, slips=0.05):
    n = max(rank, 1)
    return RNG.randint(-n, n - 1) if RNG.random() >= slips else RNG.choice([n, -n - 1])


def number():
    return RNG.choice([2, 1, 0.5, True, 3.0])


def pair(dtypes=ANY):
    big = shape()
    a, b = broadcastable(big), big
    if RNG.random() < 0.5:
        a, b = b, a
    return T(a, RNG.choice(dtypes)), T(b, RNG.choice(dtypes))


def positions(shape, dtype=torch.int64):
    """A tensor of indices that every dimension has."""
    return T(shape, dtype, fill=0)


CASES = {}


def case(*targets):
    def register(make):
        for target in targets:
            CASES[target] = make
        return make
    return register


@case(*[f"aten.{n}.default" for n in "relu neg abs sign exp exp2 expm1 log log2 log1p sqrt rsqrt reciprocal sigmoid silu gelu tanh sin cos square floor ceil round trunc logical_not bitwise_not isnan isinf".split()])
def unary():
    return [T(shape(), RNG.choice(ANY))], {}


@case(*[f"aten.{n}_.default" for n in "relu neg abs exp sqrt sigmoid floor logical_not".split()])
def unary_():
    return [T(shape(), RNG.choice(ANY), "plain")], {}


@case(*[f"aten.{n}.Tensor" for n in "add sub rsub mul div remainder fmod eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor clamp_min clamp_max".split()], *[f"aten.{n}.default" for n in "maximum minimum floor_divide logical_and logical_or logical_xor atan2".split()], "aten.pow.Tensor_Tensor")
def binary():
    return list(pair()), {}


@case(*[f"aten.{n}.Scalar" for n in "add sub rsub mul div remainder fmod eq ne lt le gt ge bitwise_and floor_divide".split()], "aten.clamp_min.default", "aten.clamp_max.default", "aten.add.Tensor ", "aten.mul.Tensor ")
def binary_scalar():
    return [T(shape(), RNG.choice(ANY)), number()], {}


@case("aten.pow.Tensor_Scalar", "aten.pow_.Scalar")
def pow_tensor_scalar():
    return [T(shape(), RNG.choice(ANY), RNG.choice(["plain", "permuted"])), RNG.choice([2, 0.5, True, 3.0])], {}


@case("aten.pow.Scalar")
def pow_scalar():
    return [RNG.choice([2, 0.5, 3.0]), T(shape(), RNG.choice(ANY))], {}


@case("aten.div.Tensor_mode")
def div_mode():
    return list(pair()), {"rounding_mode": RNG.choice([None, "floor", "trunc"])}


@case("aten.div.Scalar_mode")
def div_scalar_mode():
    return [T(shape(), RNG.choice(ANY)), number()], {"rounding_mode": RNG.choice([None, "floor", "trunc"])}


@case("aten.add.Tensor  ", "aten.sub.Tensor  ")
def alpha():
    return list(pair()), {"alpha": RNG.choice([2, 0.5])}


@case(*[f"aten.{n}.Tensor" for n in "add_ sub_ mul_ div_ eq_ lt_ bitwise_and_ remainder_".split()], "aten.floor_divide_.Tensor", "aten.pow_.Tensor", "aten.clamp_min_.Tensor")
def binary_():
    big = shape()
    if RNG.random() < 0.1:
        return [T(broadcastable(big), RNG.choice(ANY), "plain"), T(big, RNG.choice(ANY))], {}
    return [T(big, RNG.choice(ANY), RNG.choice(["plain", "permuted"])), T(broadcastable(big), RNG.choice(ANY))], {}


@case(*[f"aten.{n}.Scalar" for n in "add_ sub_ mul_ div_ eq_".split()])
def binary_scalar_():
    return [T(shape(), RNG.choice(ANY), "plain"), number()], {}


@case("aten.where.self")
def where():
    big = shape()
    return [T(broadcastable(big), RNG.choice([torch.bool, torch.bool, torch.bool, torch.uint8, torch.float32])), T(broadcastable(big), RNG.choice(ANY)), T(big, RNG.choice(ANY))], {}


@case("aten.where.ScalarOther")
def where_other():
    big = shape()
    return [T(broadcastable(big), torch.bool), T(big, RNG.choice(ANY)), number()], {}


@case("aten.where.ScalarSelf")
def where_self():
    big = shape()
    return [T(broadcastable(big), torch.bool), number(), T(big, RNG.choice(ANY))], {}


@case("aten.where.Scalar")
def where_scalar():
    return [T(shape(), torch.bool), number(), number()], {}


@case("aten.masked_fill.Scalar", "aten.masked_fill_.Scalar")
def masked_fill():
    big = shape()
    return [T(big, RNG.choice(ANY), "plain"), T(broadcastable(big), torch.bool), RNG.choice([1, 0.0, True])], {}


@case("aten.clamp.default")
def clamp():
    return [T(shape(), RNG.choice(F + I)), RNG.choice([None, 0, 0.5]), RNG.choice([1, 1.5])], {}


@case("aten.clamp.Tensor")
def clamp_tensor():
    big = shape()
    return [T(big, RNG.choice(F + I)), T(broadcastable(big), RNG.choice(F + I)), RNG.choice([None, T(broadcastable(big))])], {}


@case("aten.threshold_backward.default")
def threshold_backward():
    s, d = shape(), RNG.choice(F)
    return [T(s, d), T(s, d), 0], {}


@case("aten.gelu_backward.default", "aten.silu_backward.default", "aten.sigmoid_backward.default", "aten.tanh_backward.default")
def backward():
    s, d = shape(), RNG.choice(F)
    return [T(s, d), T(s, d)], {}


@case("aten.addcmul.default", "aten.addcdiv.default")
def addcmul():
    big = shape()
    d = RNG.choice(F)
    return [T(big, d), T(broadcastable(big), d), T(broadcastable(big), d)], {"value": 0.5}


@case("aten.lerp.Scalar")
def lerp():
    big = shape()
    d = RNG.choice(F)
    return [T(big, d), T(broadcastable(big), d), 0.5], {}


@case("aten.erf.default", "aten.tan.default", "aten.atan.default", "aten.log10.default")
def other_unary():
    return [T(shape(), RNG.choice(F + I))], {}


def factor(total, parts):
    """Sizes whose product is `total`."""
    result = [1] * parts
    for p in (2, 3, 5, 7):
        while total % p == 0 and total > 0 and parts:
            total //= p
            result[RNG.randrange(parts)] *= p
    return result


def new_sizes(of):
    total = 1
    for s in of:
        total *= s
    sizes = factor(total, RNG.randint(0 if total == 1 else 1, 4)) if total else [0, 3]
    if RNG.random() < 0.3 and sizes:
        sizes[RNG.randrange(len(sizes))] = -1
    if RNG.random() < 0.08:
        sizes.append(5)
    if RNG.random() < 0.03:
        sizes += [-1, -1]
    return sizes


@case("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default", "aten.view_copy.default")
def view():
    s = dense() if RNG.random() < 0.9 else shape()
    return [T(s), new_sizes(s)], {}


@case("aten.view.dtype")
def view_dtype():
    return [T(shape(0, 3), RNG.choice(ANY)), RNG.choice([torch.int8, torch.float16, torch.int32, torch.float64])], {}


@case("aten.permute.default", "aten.permute_copy.default")
def permute():
    s = shape()
    order = list(range(len(s)))
    RNG.shuffle(order)
    if order and RNG.random() < 0.3:
        order[0] -= len(s)
    if order and RNG.random() < 0.05:
        order[0] = order[-1]
    return [T(s), order], {}


@case("aten.transpose.int")
def transpose():
    s = shape()
    return [T(s), dim(len(s)), dim(len(s))], {}


@case("aten.t.default")
def t():
    return [T(shape(0, 3))], {}


@case("aten.unsqueeze.default")
def unsqueeze():
    s = shape()
    return [T(s), dim(len(s) + 1)], {}


@case("aten.squeeze.dim")
def squeeze():
    s = shape()
    return [T(s), dim(len(s))], {}


@case("aten.squeeze.default", "aten.alias.default", "aten.detach.default", "aten._conj.default", "aten.lift_fresh.default")
def whole():
    return [T(shape(), RNG.choice(ANY))], {}


@case("aten.squeeze.dims")
def squeeze_dims():
    s = shape()
    return [T(s), [d for d in range(len(s)) if RNG.random() < 0.5]], {}


@case("aten.expand.default", "aten.expand_copy.default")
def expand():
    big = shape()
    if RNG.random() < 0.3:
        return [T(broadcastable(big)), [RNG.choice([-1, s]) for s in big]], {}
    return [T(broadcastable(big)), big], {}


def bound():
    return RNG.choice([None, RNG.randint(-8, 8), RNG.randint(0, 4), 2**63 - 1])


@case("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_():
    s = shape(0 if RNG.random() < 0.1 else 1)
    return [T(s), dim(len(s)), bound(), bound(), RNG.choice([1, 1, 2, 3, 0])], {}


@case("aten.narrow.default")
def narrow():
    s = shape(1)
    return [T(s), dim(len(s)), RNG.randint(-4, 4), RNG.randint(0, 4)], {}


@case("aten.select.int", "aten.select_copy.int")
def select():
    s = shape(0 if RNG.random() < 0.1 else 1)
    return [T(s), dim(len(s)), RNG.randint(-4, 3)], {}


@case("aten.split.Tensor", "aten.chunk.default")
def split():
    s = shape(1)
    return [T(s), RNG.randint(0 if RNG.random() < 0.1 else 1, 5), dim(len(s))], {}


@case("aten.split_with_sizes.default", "aten.split_with_sizes_copy.default")
def split_with_sizes():
    s = shape(1)
    d = RNG.randrange(len(s))
    left, sizes = s[d], []
    while left > 0:
        sizes.append(RNG.randint(0, left))
        left -= sizes[-1]
    if RNG.random() < 0.1:
        sizes.append(2)
    return [T(s), sizes, d - RNG.choice([0, len(s)])], {}


@case("aten.unbind.int")
def unbind():
    s = shape(0 if RNG.random() < 0.1 else 1)
    return [T(s), dim(len(s))], {}


@case("aten.as_strided.default")
def as_strided():
    return [T([64], layout="plain"), [2, 3], [RNG.randint(0, 6), RNG.randint(0, 6)], RNG.choice([None, 0, 5])], {}


@case("aten.diagonal.default")
def diagonal():
    s = shape(1, 3)
    return [T(s), RNG.randint(-4, 4), dim(len(s)), dim(len(s))], {}


@case("aten.view_as_complex.default")
def view_as_complex():
    s = shape(0, 3) + ([2] if RNG.random() < 0.9 else [])
    return [T(s, RNG.choice([torch.float32, torch.float64, torch.int32]), RNG.choice(["plain", "sliced", "permuted"]))], {}


@case("aten.view_as_real.default")
def view_as_real():
    return [T(shape(0, 3), RNG.choice([torch.complex64, torch.complex128, torch.float32]))], {}


@case("aten.clone.default")
def clone():
    return [T(shape(), RNG.choice(ANY))], RNG.choice([{}, {"memory_format": torch.contiguous_format}, {"memory_format": torch.preserve_format}])


@case("aten.contiguous.default")
def contiguous():
    return [T(shape())], {}


@case("aten.cat.default")
def cat():
    s = shape(1)
    d = RNG.randrange(len(s))
    tensors = []
    for _ in range(RNG.randint(1, 4)):
        other = list(s)
        other[d] = RNG.randint(0, 3)
        if RNG.random() < 0.04:
            other[RNG.randrange(len(s))] += 1
        if RNG.random() < 0.1:
            other = [0]
        tensors.append(T(other, RNG.choice(RNG.choice([F[:1], ANY]))))
    return [tensors, d - RNG.choice([0, len(s)])], {}


@case("aten.stack.default")
def stack():
    s = shape()
    tensors = [T(s, RNG.choice(RNG.choice([F[:1], ANY]))) for _ in range(RNG.randint(1, 3))]
    if RNG.random() < 0.05:
        tensors.append(T(s + [2]))
    return [tensors, dim(len(s) + 1)], {}


@case("aten.copy_.default")
def copy_():
    big = shape()
    return [T(big, RNG.choice(ANY), RNG.choice(["plain", "permuted"])), T(broadcastable(big), RNG.choice(ANY))], {}


@case("aten.copy.default")
def copy():
    big = shape()
    return [T(big, RNG.choice(ANY)), T(broadcastable(big), RNG.choice(ANY))], {}


@case("aten.slice_scatter.default")
def slice_scatter():
    s = shape(1)
    d = RNG.randrange(len(s))
    start, end, step = RNG.randint(0, 2), RNG.choice([None, 2, 4, -1]), RNG.choice([1, 2])
    src = list(torch.empty(s)[(slice(None),) * d + (slice(start, end, step),)].shape)
    if RNG.random() < 0.05:
        src[d] += 1
    return [T(s), T(src), d, start, end, step], {}


@case("aten.select_scatter.default")
def select_scatter():
    s = shape(1)
    d = RNG.randrange(len(s))
    src = s[:d] + s[d + 1 :]
    return [T(s), T(src), d, RNG.randint(-3, 3)], {}


@case("aten.constant_pad_nd.default")
def pad():
    s = shape()
    return [T(s), [RNG.choice([0, 1, 2, -1]) for _ in range(2 * RNG.randint(0, len(s)))], 0], {}


@case("aten.repeat.default")
def repeat():
    s = shape(0, 3)
    return [T(s), [RNG.randint(0, 3) for _ in range(len(s) + RNG.choice([0, 0, 1, -1 if s else 0]))]], {}


@case("aten.flip.default")
def flip():
    s = shape()
    return [T(s), [d for d in range(len(s)) if RNG.random() < 0.5]], {}


@case("aten.roll.default")
def roll():
    s = shape(1)
    return [T(s), [1], [RNG.randrange(len(s))]], {}


@case("aten.index.Tensor")
def index():
    s = dense()
    # Indices are all with dimensions, or all without: fake tensors lose the dimensions of mixed ones.
    common = RNG.choice([[2], [3], [2, 3], []])
    indices = []
    for _ in range(RNG.randint(1, len(s) + (RNG.random() < 0.05))):
        indices.append(None if RNG.random() < 0.4 else positions(broadcastable(common, 0.03) or common))
    if all(i is None for i in indices):
        indices[0] = positions([2])
    return [T(s, RNG.choice(ANY)), indices], {}


@case("aten.index_put.default", "aten.index_put_.default")
def index_put():
    s = dense()
    indices = [positions([2])]
    values = [2] + s[1:]
    return [T(s, layout="plain"), indices, T(broadcastable(values, 0.1))], {}


@case("aten.index_select.default")
def index_select():
    s = dense(0, 4)
    return [T(s), dim(len(s)), positions(RNG.choice([[2], [], [2, 2]]))], {}


@case("aten.gather.default")
def gather():
    s = dense()
    index = [RNG.randint(1, n) for n in s] + ([1] if RNG.random() < 0.05 else [])
    return [T(s), RNG.randrange(len(s)), positions(index)], {}


@case("aten.scatter_add.default", "aten.scatter.src", "aten.scatter_add_.default", "aten.scatter_.src")
def scatter():
    s = dense()
    index = [RNG.randint(1, n) for n in s]
    return [T(s, layout="plain"), RNG.randrange(len(s)), positions(index), T(index)], {}


@case("aten.embedding.default")
def embedding():
    return [T([4, 3], RNG.choice(F)), positions(shape(0, 3), RNG.choice([torch.int64, torch.int32]))], {}


@case("aten._chunk_cat.default")
def chunk_cat():
    s = dense(2, 3)
    d = RNG.randrange(len(s))
    return [[T(s[:d] + dense(1, 2)) for _ in range(RNG.randint(1, 3))], d, RNG.randint(1, 4)], {}


@case("prims.convert_element_type.default", "aten.to.dtype")
def cast():
    return [T(shape(), RNG.choice(ANY)), RNG.choice(ANY)], {}


@case("aten._to_copy.default")
def to_copy():
    return [T(shape(), RNG.choice(ANY))], RNG.choice([{}, {"dtype": RNG.choice(ANY)}, {"memory_format": torch.contiguous_format}])


@case("aten.empty.memory_format", "aten.zeros.default", "aten.ones.default", "aten.rand.default", "aten.randn.default")
def create():
    return [shape()], RNG.choice([{}, {"dtype": RNG.choice(F)}])


@case("aten.full.default")
def full():
    return [shape(), number()], RNG.choice([{}, {"dtype": RNG.choice(ANY)}])


@case("aten.zeros_like.default", "aten.ones_like.default", "aten.empty_like.default", "aten.rand_like.default")
def like():
    return [T(shape(), RNG.choice(F))], RNG.choice([{}, {"dtype": RNG.choice(F)}, {"memory_format": torch.contiguous_format}])


@case("aten.full_like.default")
def full_like():
    return [T(shape(), RNG.choice(ANY)), number()], {}


@case("aten.new_zeros.default", "aten.new_empty.default", "aten.new_ones.default")
def new():
    return [T(shape(), RNG.choice(ANY)), shape()], RNG.choice([{}, {"dtype": RNG.choice(ANY)}])


@case("aten.new_full.default")
def new_full():
    return [T(shape(), RNG.choice(ANY)), shape(), number()], {}


@case("aten.new_empty_strided.default")
def new_empty_strided():
    return [T(shape()), [2, 3], [1, 2]], {}


@case("aten.scalar_tensor.default")
def scalar_tensor():
    return [number()], RNG.choice([{}, {"dtype": RNG.choice(ANY)}])


@case("aten.fill.Scalar", "aten.fill_.Scalar")
def fill():
    return [T(shape(), RNG.choice(ANY), "plain"), number()], {}


@case("aten.zero.default", "aten.zero_.default")
def zero():
    return [T(shape(), RNG.choice(ANY), "plain")], {}


@case("aten.arange.default")
def arange():
    return [RNG.choice([0, 5, 5.0, -2, 3.5])], RNG.choice([{}, {"dtype": torch.float32}])


@case("aten.arange.start")
def arange_start():
    return [RNG.randint(-3, 3), RNG.randint(-3, 8)], {}


@case("aten.arange.start_step")
def arange_step():
    return [RNG.randint(-3, 8), RNG.randint(-3, 8), RNG.choice([1, 2, 3, -1, -2, 0])], {}


@case("aten.native_dropout.default")
def dropout():
    return [T(shape(), RNG.choice(F)), 0.5, True], {}


@case("aten.bernoulli.p", "aten.bernoulli_.float")
def bernoulli():
    return [T(shape(), RNG.choice(F), "plain"), 0.5], {}


def dims(rank):
    picked = [d for d in range(rank) if RNG.random() < 0.5]
    if picked and RNG.random() < 0.05:
        picked.append(picked[0])
    return [d - RNG.choice([0, rank]) for d in picked]


@case("aten.sum.dim_IntList", "aten.mean.dim")
def sum_dim():
    s = shape()
    return [T(s, RNG.choice(ANY)), RNG.choice([None, dims(len(s)), dims(len(s))]), RNG.random() < 0.5], RNG.choice([{}, {}, {"dtype": torch.float64}])


@case("aten.sum.default", "aten.mean.default", "aten.prod.default")
def sum_all():
    return [T(shape(), RNG.choice(ANY))], RNG.choice([{}, {}, {"dtype": torch.float64}])


@case("aten.amax.default", "aten.amin.default", "aten.any.dims", "aten.all.dims")
def amax():
    s = shape()
    return [T(s, RNG.choice(ANY)), dims(len(s)), RNG.random() < 0.5], {}


@case("aten.any.default", "aten.all.default", "aten.max.default", "aten.min.default")
def any_all():
    return [T(dense(), RNG.choice(ANY))], {}


@case("aten.any.dim", "aten.all.dim", "aten.prod.dim_int", "aten.max.dim", "aten.min.dim")
def any_dim():
    s = dense()
    return [T(s, RNG.choice(ANY)), dim(len(s)), RNG.random() < 0.5], {}


@case("aten.argmax.default")
def argmax():
    s = dense()
    return [T(s, RNG.choice(F + I)), dim(len(s)), RNG.random() < 0.5], {}


@case("aten.cumsum.default")
def cumsum():
    s = shape()
    return [T(s, RNG.choice(ANY)), dim(len(s))], RNG.choice([{}, {"dtype": torch.float32}])


@case("aten._softmax.default", "aten._log_softmax.default")
def softmax():
    s = shape()
    return [T(s, RNG.choice(F)), dim(len(s)), False], {}


@case("aten.topk.default")
def topk():
    s = dense()
    return [T(s), RNG.randint(0, 4), dim(len(s))], {}


@case("aten.sort.default")
def sort():
    s = shape()
    return [T(s), dim(len(s))], {}


@case("aten.var.correction", "aten.var_mean.correction")
def var():
    s = dense()
    return [T(s, RNG.choice(F)), RNG.choice([None, dims(len(s))])], {"keepdim": RNG.random() < 0.5}


@case("aten.logsumexp.default")
def logsumexp():
    s = dense()
    return [T(s, RNG.choice(F)), [dim(len(s))], RNG.random() < 0.5], {}


@case("aten.linalg_vector_norm.default")
def vector_norm():
    s = dense()
    return [T(s, RNG.choice(F)), 2, RNG.choice([None, [dim(len(s))]]), RNG.random() < 0.5], {}


def inner():
    return RNG.choice([0, 1, 2, 3, 4])


@case("aten.mm.default")
def mm():
    k, d = inner(), RNG.choice(F)
    return [T([inner(), k], d), T([k + (RNG.random() < 0.1), inner()], RNG.choice([d] * 9 + F))], {}


@case("aten.bmm.default")
def bmm():
    b, k, d = inner(), inner(), RNG.choice(F)
    return [T([b, inner(), k], d), T([b + (RNG.random() < 0.1), k + (RNG.random() < 0.1), inner()], d)], {}


@case("aten.addmm.default")
def addmm():
    n, k, m, d = inner(), inner(), inner(), RNG.choice(F)
    return [T(broadcastable([n, m]), d), T([n, k], d), T([k, m], d)], {}


@case("aten.baddbmm.default")
def baddbmm():
    b, n, k, m, d = inner(), inner(), inner(), inner(), RNG.choice(F)
    return [T(broadcastable([b, n, m]), d), T([b, n, k], d), T([b, k, m], d)], {}


@case("aten.mv.default")
def mv():
    k = inner()
    return [T([inner(), k]), T([k + (RNG.random() < 0.1)])], {}


@case("aten.dot.default")
def dot():
    k = inner()
    return [T([k]), T([k + (RNG.random() < 0.1)])], {}


@case("aten.matmul.default")
def matmul():
    k, batch = inner(), dense(0, 2)
    a = T(RNG.choice([[k], broadcastable(batch) + [inner(), k]]))
    b = T(RNG.choice([[k], batch + [k + (RNG.random() < 0.1), inner()]]))
    return [a, b], {}


@case("aten.einsum.default")
def einsum():
    equation, shapes = RNG.choice([("ij,jk->ik", ([2, 3], [3, 4])), ("bi,bj->bij", ([2, 3], [2, 4])), ("bij->bi", ([2, 3, 4],)), ("ij,jk->ik", ([2, 3], [4, 4]))])
    return [equation, [T(s) for s in shapes]], {}


@case("aten.native_layer_norm.default")
def layer_norm():
    s = dense(2, 4)
    over = s[RNG.randint(1, len(s) - 1) :]
    if RNG.random() < 0.05:
        over = [over[0] + 1] + over[1:]
    return [T(s), over, T(over), T(over), 1e-5], {}


@case("aten.convolution.default")
def convolution():
    return [T([2, 3, 8, 8], layout="plain"), T([4, 3, RNG.randint(1, 4), 3], layout="plain"), RNG.choice([None, T([4])]), [RNG.randint(1, 3)] * 2, [RNG.randint(0, 2)] * 2, [RNG.randint(1, 2)] * 2, False, [0, 0], 1], {}


@case("aten.embedding_dense_backward.default")
def embedding_dense_backward():
    s = dense(1, 2)
    return [T(s + [3]), positions(s), 5, -1, False], {}


@case("aten.nll_loss_forward.default")
def nll_loss():
    return [T([4, 3]), positions([4]), None, RNG.choice([0, 1, 2]), -100], {}


@case("aten.linear.default")
def linear():
    k = inner() + 1
    return [T(dense(0, 2) + [k]), T([3, k + (RNG.random() < 0.1)]), RNG.choice([None, T([3])])], {}


@case("aten._scaled_dot_product_flash_attention_for_cpu.default")
def attention():
    return [T([2, 2, 4, 8]), T([2, 2, 6, 8]), T([2, 2, 6, 8])], {}


class Recorder:
    def __init__(self):
        self.nodes = []
        self.count = 0

    def placeholder(self, tensor):
        name = f"x{self.count}"
        self.count += 1
        self.nodes.append({"name": name, "op": "placeholder", "target": name, "out": self.out(tensor)})
        return {"ref": name}

    def value(self, arg, tensors):
        if isinstance(arg, T):
            return self.placeholder(tensors[id(arg)])
        if isinstance(arg, (list, tuple)):
            return [self.value(a, tensors) for a in arg]
        if isinstance(arg, torch.dtype):
            return {"dtype": str(arg)[6:]}
        if isinstance(arg, torch.memory_format):
            return {"memory_format": str(arg)[6:]}
        return arg

    def out(self, result):
        if isinstance(result, (list, tuple)):
            return [self.out(r) for r in result]
        if result is None:
            return None
        return {
            "t": "tensor", "shape": list(result.shape), "stride": list(result.stride()), "dtype": str(result.dtype)[6:],
            "device": "cpu", "storage": 0, "offset": result.storage_offset(), "storage_bytes": 0,
        }

    def call(self, name, target, args, kwargs, tensors, result):
        node = {
            "name": name, "op": "call_function", "target": target,
            "args": [self.value(a, tensors) for a in args],
            "kwargs": {k: self.value(v, tensors) for k, v in kwargs.items()},
        }
        if result is None:
            node["module"] = "refused"
        else:
            node["out"] = self.out(result)
        self.nodes.append(node)


def materialise(arg, tensors, wrap):
    if isinstance(arg, T):
        if id(arg) not in tensors:
            tensors[id(arg)] = wrap(arg.make())
        return tensors[id(arg)]
    if isinstance(arg, list):
        return [materialise(a, tensors, wrap) for a in arg]
    return arg


def run(op, args, kwargs, wrap):
    tensors = {}
    real = [materialise(a, tensors, wrap) for a in args]
    result = op(*real, **{k: materialise(v, tensors, wrap) for k, v in kwargs.items()})
    # In-place calls must not change what is recorded of the arguments.
    return result, tensors


def spoilt_tensor(tensor):
    tensor = twin(tensor)
    sizes = list(tensor.shape)
    kind = RNG.random()
    if kind < 0.4:
        tensor.dtype = RNG.choice([*ANY, torch.complex64, torch.int16])
    elif kind < 0.55 and sizes:
        del sizes[RNG.randrange(len(sizes))]
    elif kind < 0.7:
        sizes.insert(RNG.randint(0, len(sizes)), RNG.choice([1, 2, 3]))
    elif sizes:
        at = RNG.randrange(len(sizes))
        sizes[at] = max(0, sizes[at] + RNG.choice([-1, 1, 2]))
    tensor.shape = tuple(sizes)
    return tensor


def spoilt(arg):
    if isinstance(arg, T):
        return spoilt_tensor(arg) if RNG.random() < 0.93 else RNG.choice([None, 3, "a", [arg]])
    if isinstance(arg, bool) or arg is None:
        return RNG.choice([True, False, None, 1, 2])
    if isinstance(arg, int):
        return RNG.randint(-5, 7) if RNG.random() < 0.9 else RNG.choice([0.5, None, "a"])
    if isinstance(arg, float):
        return RNG.choice([-1.0, 0.0, 1.5, 2, True])
    if isinstance(arg, str):
        return RNG.choice(["bogus", 3])
    if isinstance(arg, list) and arg:
        arg = list(arg)
        kind, at = RNG.random(), RNG.randrange(len(arg))
        if kind < 0.25:
            del arg[at]
        elif kind < 0.5:
            arg.insert(at, twin(arg[at]))
        else:
            arg[at] = spoilt(arg[at])
    return arg


def slip(args, kwargs):
    args, kind = list(args), RNG.random()
    if kind < 0.03 and args:
        args.pop()
    elif kind < 0.05:
        args.append(RNG.choice([0, None]))
    elif kind < 0.06:
        kwargs = {**kwargs, "bogus": 1}
    elif args:
        at = RNG.randrange(len(args))
        args[at] = spoilt(args[at])
    return args, kwargs


EDGES = [-9, -1, 0, 1, 9]
SHAPES = [
    ([], "plain"), ([3], "sliced"), ([1], "plain"), ([0], "plain"), ([2, 0], "plain"), ([3, 4], "plain"),
    ([4, 3], "permuted"), ([2, 4], "sliced"), ([1, 3], "sliced"), ([3, 2], "expanded"), ([2, 1, 4], "sliced"),
    ([0, 3, 2], "sliced"), ([2, 3, 4], "permuted"),
]
COPIES = ["permute", "transpose", "unsqueeze", "squeeze", "expand", "slice", "select", "split", "unbind", "diagonal"]


def dims_of(rank):
    return sorted({-rank - 1, -rank, -1, 0, rank - 1, rank})


def view_arguments(s):
    """What follows the tensor, for each operator that shows a window of one of these sizes."""
    rank = len(s)
    every, one = list(range(rank)), dims_of(rank)
    nested = [[d] for d in one] + [[], every, every[::-1], [d - rank for d in every], every[:1] * 2]
    sizes = [s, [-1] * rank, [2, *s], [-1, *s], s[1:], [5 if n == 1 else -1 for n in s], [5] * rank, [3, 0, *s]]
    count = 1
    for n in s:
        count *= n
    shapes = [[-1], [count], [1, count, 1], [-1, 2], [2, -1], [0, -1], [-1, -1], s[::-1], [*s, 1], [0, 3]]
    lengths = [[1, 2], [0, 3], [3], [2, 2], [1, 1, 1, 1], [-1, 4], []]
    windows = [([2], [1]), ([2, 2], [1, 0]), ([], []), ([0, 9], [1, 1]), ([2], [1, 1]), ([-1], [1]), ([1], [-1])]
    yield "aten.view.default", ([n] for n in shapes)
    yield "aten.reshape.default", ([n] for n in shapes)
    yield "aten.permute.default", ([n] for n in nested)
    yield "aten.transpose.int", itertools.product(one, one)
    yield "aten.t.default", [[]]
    yield "aten.unsqueeze.default", ([d] for d in dims_of(rank + 1))
    yield "aten.squeeze.default", [[]]
    yield "aten.squeeze.dim", ([d] for d in one)
    yield "aten.squeeze.dims", ([n] for n in nested)
    yield "aten.expand.default", ([n] for n in sizes)
    yield "aten.slice.Tensor", ([d, *cut, 1] for d in one for cut in itertools.product([None, *EDGES], [None, *EDGES]))
    yield "aten.slice.Tensor", ([0, *cut] for cut in itertools.product([None, 1], [None, 9], [-1, 0, 2, 7]))
    yield "aten.narrow.default", itertools.product([-1, 0], EDGES, [-1, 0, 1, 3])
    yield "aten.select.int", itertools.product(one, EDGES)
    yield "aten.split.Tensor", itertools.product([-1, 0, 1, 2, 9], [-1, 0])
    yield "aten.split_with_sizes.default", itertools.product(lengths, [-1, 0])
    yield "aten.chunk.default", itertools.product([-1, 0, 1, 2, 3, 9], [-1, 0])
    yield "aten.unbind.int", ([d] for d in one)
    yield "aten.as_strided.default", ([*window, offset] for window in windows for offset in [None, 0, 1, -1])
    yield "aten.diagonal.default", ([shift, *two] for shift in EDGES for two in [(0, 1), (-1, 0), (1, -1), (0, 0)])
    yield "aten.unfold.default", itertools.product(one, [-1, 0, 1, 2, 9], [0, 1, 2, 3])


def view_calls():
    for sizes, layout in SHAPES:
        for target, given in view_arguments(sizes):
            for arguments in given:
                yield target, [T(sizes, torch.float32, layout), *arguments], {}
                name, rest = target.removeprefix("aten.").split(".")
                if name in COPIES and RNG.random() < 0.1:
                    yield f"aten.{name}_copy.{rest}", [T(sizes, torch.float32, layout), *arguments], {}
        for dtype in [torch.int8, torch.float16, torch.float32, torch.float64, torch.complex64]:
            yield "aten.view.dtype", [T(sizes, torch.float32, layout), dtype], {}
        for dtype in [torch.float32, torch.float64, torch.int32, torch.complex64]:
            yield "aten.view_as_complex.default", [T([*sizes, 2], dtype, layout)], {}
            yield "aten.view_as_real.default", [T(sizes, dtype, layout)], {}


def operator(target):
    namespace, name, overload = target.split(".")
    return getattr(getattr(getattr(torch.ops, namespace), name), overload)


def random_calls():
    for target, make in CASES.items():
        for _ in range(PER_TARGET):
            args, kwargs = make()
            yield target.strip(), *(slip(args, kwargs) if SLIPS else (args, kwargs))


def main():
    recorder = Recorder()
    counts = {"eager": 0, "fake": 0, "refused": 0, "unsupported": 0}
    for target, args, kwargs in view_calls() if VIEWS else random_calls():
        op = operator(target)
        label = f"{'_'.join(target.split('.')[1:])}_{len(recorder.nodes)}"
        eager = fake = None
        tensors = {}
        try:
            [materialise(a, tensors, lambda t: t) for a in list(args) + list(kwargs.values())]
        except (RuntimeError, TypeError):
            continue
        try:
            eager, tensors = run(op, args, kwargs, lambda t: t)
        except (AssertionError, RuntimeError, IndexError, ValueError, TypeError) as error:
            reason = f"{target}: {error}"
            beyond = VIEWS and "out of bounds for storage" in reason
            if "not implemented for" in reason or beyond or (SLIPS and any(w in reason for w in ["CPU", *UNJUDGED])):
                # No kernel on this device, or how large a storage is: no statement about shapes.
                counts["unsupported"] += 1
                continue
        mode = FakeTensorMode()
        try:
            with mode:
                fake, _ = run(op, args, kwargs, mode.from_tensor)
        except Exception:
            pass
        if "complex32" in str(eager):
            continue
        if eager is None:
            recorder.call(f"refused_{label}", target, args, kwargs, tensors, None)
            counts["refused"] += 1
            continue
        recorder.call(f"eager_{label}", target, args, kwargs, tensors, eager)
        counts["eager"] += 1
        if fake is not None and not SLIPS and recorder.out(fake) != recorder.out(eager):
            recorder.call(f"fake_{label}", target, args, kwargs, tensors, fake)
            counts["fake"] += 1
    graph = {
        "schema_version": "fxjson/1", "name": "shape_cases", "source": "tests/peer/shape_cases.py",
        "torch": torch.__version__, "kind": "inference", "groups": {}, "symbols": {},
        "num_nodes": len(recorder.nodes), "ops": {}, "nodes": recorder.nodes,
    }
    text = json.dumps(graph, separators=(",", ":")).replace('{"name"', '\n{"name"')
    with open(sys.argv[1], "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0, filename="") as packed:
        packed.write(text.encode())
    print(len(recorder.nodes), "nodes", counts)


if __name__ == "__main__":
    main()
