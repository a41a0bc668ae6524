//! Wrong edits of the mathematics of one call: another function, number, axis or branch.
//!
//! Each row of [`EDITS`] looks at one call and proposes another one in its place. The edit is certain to be wrong where
//! the call only computes, its operands depend on inputs, its result reaches an output, and not all of its readers may
//! absorb the difference: a comparison absorbs a scale, a softmax a shift, a square a sign.
//!
//! Wrong means another function of the inputs. Two functions may still agree on most inputs: `x < y` and `x <= y`
//! differ in ties only.

use super::insert::insert_after;
use super::reading::Reading;
use super::{Places, operands};
use crate::graph::{DtypeClass, NodeId, Value};
use crate::ops::{Binary, Bound, Kind, Matmul, Move, Reduce, Unary};

/// An edit of single calls.
pub(super) struct MathEdit {
    /// Its name.
    pub name: &'static str,
    /// What it changes, in one line.
    pub about: &'static str,
    /// What takes the place of a call, where the edit applies.
    change: fn(&Call) -> Option<New>,
}

/// What takes the place of a call.
enum New {
    /// Another operator with the same arguments.
    Target(&'static str),
    /// The same operator with another argument.
    Argument(&'static str, Value),
    /// The same operator with another word as an argument.
    Text(&'static str, &'static str),
    /// The same operator with two positional arguments exchanged.
    Exchanged(usize, usize),
    /// The value that this node has.
    Instead(NodeId),
    /// A call of this operator, of the result and these further arguments.
    Then(&'static str, Vec<Value>),
    /// The operator of the call, of the first operand of its operand, and then a number added.
    AddedAfterwards(NodeId, f64),
}

/// A call that an edit may change.
struct Call<'r, 'g> {
    reading: &'r Reading<'g>,
    id: NodeId,
    kind: Kind,
}

/// All edits, in the order of the documentation.
pub(super) const EDITS: &[MathEdit] = &[
    // Another function of one element.
    edit("rsqrt-as-reciprocal", "rsqrt is reciprocal", |call| call.swapped(&[("rsqrt", "reciprocal")])),
    edit("rsqrt-as-sqrt", "rsqrt is sqrt", |call| call.swapped(&[("rsqrt", "sqrt")])),
    edit("sqrt-as-rsqrt", "sqrt is rsqrt", |call| call.swapped(&[("sqrt", "rsqrt")])),
    edit("reciprocal-as-rsqrt", "reciprocal is rsqrt", |call| call.swapped(&[("reciprocal", "rsqrt")])),
    edit("exp-as-exp2", "exp is exp2", |call| call.swapped(&[("exp", "exp2"), ("exp2", "exp")])),
    edit("exp-as-expm1", "exp is expm1", |call| call.swapped(&[("exp", "expm1"), ("expm1", "exp")])),
    edit("log-as-log2", "log is log2", |call| call.swapped(&[("log", "log2"), ("log2", "log")])),
    edit("log1p-as-log", "log1p is log", |call| call.swapped(&[("log1p", "log"), ("log", "log1p")])),
    edit("sine-as-cosine", "sin is cos, or cos is sin", |call| {
        call.swapped(&[("sin", "cos"), ("cos", "sin")])
    }),
    edit("sigmoid-as-tanh", "sigmoid is tanh", |call| call.swapped(&[("sigmoid", "tanh")])),
    edit("tanh-as-sigmoid", "tanh is sigmoid", |call| call.swapped(&[("tanh", "sigmoid")])),
    edit("silu-as-sigmoid", "silu is sigmoid", |call| call.swapped(&[("silu", "sigmoid")])),
    edit("silu-as-relu", "silu is relu", |call| call.swapped(&[("silu", "relu")])),
    edit("gelu-as-silu", "gelu is silu", |call| {
        call.swapped(&[("gelu", "silu")]).filter(|_| call.is_short())
    }),
    edit("gelu-approximation", "gelu is computed by the other formula", |call| {
        let bound = call.bound("approximate", &["gelu", "gelu_backward"])?;
        let other = if bound.text("approximate") == Some("tanh") { "none" } else { "tanh" };
        Some(New::Text("approximate", other))
    }),
    edit("relu-as-abs", "relu is abs", |call| call.swapped(&[("relu", "abs")])),
    edit("abs-as-relu", "abs is relu", |call| call.swapped(&[("abs", "relu")])),
    edit("square-as-abs", "square is abs", |call| call.swapped(&[("square", "abs")])),
    edit("floor-as-ceil", "floor is ceil, or ceil is floor", |call| {
        call.swapped(&[("floor", "ceil"), ("ceil", "floor")])
    }),
    edit("round-as-trunc", "round is trunc, or trunc is round", |call| {
        call.swapped(&[("round", "trunc"), ("trunc", "round")])
    }),
    edit("activation-dropped", "an activation is left out", |call| {
        let unary = [Unary::Relu, Unary::Gelu, Unary::Silu, Unary::Sigmoid, Unary::Tanh];
        call.left_out(unary.iter().any(|&unary| call.kind == Kind::Unary(unary)))
    }),
    edit("negation-dropped", "a negation is left out", |call| {
        call.left_out(call.kind == Kind::Unary(Unary::Neg))
    }),
    edit("exp-dropped", "an exponential is left out", |call| {
        call.left_out(call.kind == Kind::Unary(Unary::Exp))
    }),
    // Another function of two.
    edit("add-as-sub", "a sum is a difference", |call| call.swapped(&[("add", "sub")])),
    edit("sub-as-add", "a difference is a sum", |call| call.swapped(&[("sub", "add")])),
    edit("mul-as-add", "a product is a sum", |call| call.swapped(&[("mul", "add")])),
    edit("mul-as-div", "a product is a quotient", |call| {
        call.swapped(&[("mul", "div")]).filter(|_| call.is_float() && !call.is_by_one())
    }),
    edit("div-as-mul", "a quotient is a product", |call| {
        call.swapped(&[("div", "mul")]).filter(|_| call.is_short() && !call.is_by_one())
    }),
    edit("maximum-as-minimum", "a maximum is a minimum, or the other way round", |call| {
        call.swapped(&[("maximum", "minimum"), ("minimum", "maximum")])
    }),
    edit("clamp-other-side", "a lower bound is an upper one, or the other way round", |call| {
        call.swapped(&[("clamp_min", "clamp_max"), ("clamp_max", "clamp_min")])
    }),
    edit("comparison-negated", "a comparison is its negation", |call| {
        call.swapped(&[("lt", "ge"), ("ge", "lt"), ("gt", "le"), ("le", "gt"), ("eq", "ne"), ("ne", "eq")])
    }),
    edit("comparison-reversed", "a comparison is the other way round", |call| {
        call.swapped(&[("lt", "gt"), ("gt", "lt"), ("ge", "le"), ("le", "ge")])
    }),
    edit("comparison-of-ties", "a comparison takes ties otherwise", |call| {
        call.swapped(&[("lt", "le"), ("le", "lt"), ("gt", "ge"), ("ge", "gt")])
    }),
    edit("and-as-or", "a conjunction is a disjunction, or the other way round", |call| {
        call.swapped(&[
            ("bitwise_and", "bitwise_or"),
            ("bitwise_or", "bitwise_and"),
            ("logical_and", "logical_or"),
            ("logical_or", "logical_and"),
        ])
    }),
    edit("or-as-xor", "a disjunction is exclusive", |call| {
        call.swapped(&[("bitwise_or", "bitwise_xor"), ("logical_or", "logical_xor")])
    }),
    edit("not-dropped", "a logical negation is left out", |call| {
        call.left_out(matches!(call.kind, Kind::Unary(Unary::LogicalNot | Unary::BitwiseNot)))
    }),
    // Reductions, orderings, triangles.
    edit("mean-as-sum", "a mean is a sum", |call| {
        call.retargeted(&[
            ("aten.mean.dim", "aten.sum.dim_IntList"),
            ("aten.mean.default", "aten.sum.default"),
        ])
    }),
    edit("sum-as-mean", "a sum is a mean", |call| {
        call.retargeted(&[
            ("aten.sum.dim_IntList", "aten.mean.dim"),
            ("aten.sum.default", "aten.mean.default"),
        ])
    }),
    edit("sum-as-maximum", "a sum is a maximum", |call| {
        call.retargeted(&[("aten.sum.dim_IntList", "aten.amax.default")]).filter(|_| call.is_short())
    }),
    edit("amax-as-amin", "a largest element is the smallest, or the other way round", |call| {
        call.retargeted(&[
            ("aten.amax.default", "aten.amin.default"),
            ("aten.amin.default", "aten.amax.default"),
        ])
    }),
    edit("any-as-all", "any is all, or all is any", |call| call.swapped(&[("any", "all"), ("all", "any")])),
    edit("averaged-twice", "a mean is divided by the number of elements once more", |call| {
        let count = call.reduced().filter(|_| call.kind == Kind::Reduce(Reduce::Mean))?;
        Some(New::Then("aten.div.Tensor", vec![Value::Int(count)]))
    }),
    edit("mean-of-one-more", "a mean is over one element more", |call| {
        let count = call.reduced().filter(|_| call.kind == Kind::Reduce(Reduce::Mean))? as f64;
        Some(New::Then("aten.mul.Tensor", vec![Value::Float(count / (count + 1.0))]))
    }),
    edit("cumsum-as-cumprod", "a running sum is a running product", |call| {
        call.swapped(&[("cumsum", "cumprod")])
    }),
    edit("argmax-as-argmin", "argmax is argmin, or the other way round", |call| {
        call.swapped(&[("argmax", "argmin"), ("argmin", "argmax")])
    }),
    edit("softmax-as-log-softmax", "a softmax is a log-softmax, or the other way round", |call| {
        call.swapped(&[("_softmax", "_log_softmax"), ("_log_softmax", "_softmax")])
    }),
    edit("axis", "a reduction runs along another dimension of the same size", |call| call.other_axis()),
    edit("norm-order", "a norm is of another order", |call| {
        call.number("ord", &["linalg_vector_norm"], |order| order + 1.0)
    }),
    edit("variance-correction", "a variance has another correction", |call| {
        let correction = call.bound("correction", &["var", "var_mean", "std", "std_mean"])?;
        let instead = if correction.float("correction") == Some(0.0) { 1 } else { 0 };
        Some(New::Argument("correction", Value::Int(instead)))
    }),
    edit("other-triangle", "triu is tril, or the other way round", |call| {
        call.swapped(&[("triu", "tril"), ("tril", "triu")])
    }),
    edit("triangle-shifted", "a triangle begins at another diagonal", |call| {
        call.number("diagonal", &["triu", "tril"], |diagonal| diagonal + 1.0)
    }),
    edit("smallest-for-largest", "topk takes the other end", |call| call.flipped("largest", &["topk"])),
    edit("sorted-other-way", "a sort runs the other way", |call| {
        call.flipped("descending", &["sort", "argsort"])
    }),
    // Numbers.
    edit("number-negated", "a number of add, mul, ... has the other sign", |call| {
        let (kind, number) = call.constant()?;
        let changes = number != 0.0 && !matches!(kind, Binary::Pow);
        changes.then_some(New::Argument("other", Value::Float(-number)))
    }),
    edit("number-inverted", "a factor is its inverse", |call| {
        let (kind, number) = call.constant()?;
        let changes = number.abs() != 1.0 && number != 0.0 && matches!(kind, Binary::Mul | Binary::Div);
        (changes && call.is_float()).then(|| New::Argument("other", Value::Float(1.0 / number)))
    }),
    edit("number-twice", "a number is added, multiplied, ... twice", |call| {
        let (kind, number) = call.constant()?;
        let target = match kind {
            Binary::Mul if number.abs() != 1.0 => "aten.mul.Tensor",
            Binary::Div if number.abs() != 1.0 => "aten.div.Tensor",
            Binary::Add if number != 0.0 => "aten.add.Tensor",
            Binary::Sub if number != 0.0 => "aten.sub.Tensor",
            _ => return None,
        };
        Some(New::Then(target, vec![Value::Float(number)]))
    }),
    edit("number-dropped", "an addition of a number, or a product with one, is left out", |call| {
        let (kind, number) = call.constant()?;
        let idle = if matches!(kind, Binary::Mul | Binary::Div) { 1.0 } else { 0.0 };
        call.left_out(number != idle && !matches!(kind, Binary::Pow | Binary::Rsub))
    }),
    edit("power", "a power is the next even or odd one", |call| {
        let (kind, number) = call.constant()?;
        (kind == Binary::Pow).then_some(New::Argument("exponent", Value::Float(number + 1.0)))
    }),
    edit("epsilon-dropped", "an epsilon is left out", |call| {
        let epsilon = call.epsilon()?;
        call.left_out(epsilon > 0.0)
    }),
    edit("epsilon-tenfold", "an epsilon is ten times as large", |call| {
        call.epsilon().map(|epsilon| New::Argument("other", Value::Float(epsilon * 10.0)))
    }),
    edit("epsilon-outside", "an epsilon is added behind the root", |call| {
        let root = matches!(call.kind, Kind::Unary(Unary::Rsqrt | Unary::Sqrt));
        let inside = Call::of(call.reading, *call.operands().first()?).filter(|_| root)?;
        Some(New::AddedAfterwards(*inside.operands().first()?, inside.epsilon()?))
    }),
    edit("norm-epsilon", "a normalisation has another epsilon", |call| {
        let norms = ["native_layer_norm", "native_group_norm", "native_batch_norm", "_fused_rms_norm"];
        call.number("eps", &norms, |eps| eps * 10.0 + 1e-3)
    }),
    edit("alpha", "what is added has another factor", |call| {
        call.number("alpha", &["add", "sub", "addmm", "baddbmm"], |alpha| alpha * 2.0)
    }),
    edit("bias-dropped", "the first operand of addmm counts nothing", |call| {
        let adds = matches!(call.kind, Kind::Matmul(Matmul::Addmm | Matmul::Baddbmm));
        adds.then_some(New::Argument("beta", Value::Int(0)))
    }),
    edit("slope", "the slope of a leaky relu is another one", |call| {
        call.number("negative_slope", &["leaky_relu", "leaky_relu_backward"], |slope| slope + 0.25)
    }),
    edit("clamp-bound", "a bound of a clamp is another one", |call| {
        let of_input = call.reading.is_varied(*call.operands().first()?);
        call.number("min", &["clamp", "clamp_min"], |bound| bound - 0.25)
            .or_else(|| call.number("max", &["clamp", "clamp_max"], |bound| bound + 0.25))
            .filter(|_| of_input)
    }),
    edit("threshold", "the threshold of a gradient is another one", |call| {
        call.number("threshold", &["threshold_backward"], |threshold| threshold + 0.25)
    }),
    edit("rounding-dropped", "a reader takes what was rounded to 16 bits as it was before", |call| {
        let narrow = Call::of(call.reading, *call.operands().first()?)?;
        let wide = *narrow.operands().first()?;
        let casts = call.kind == Kind::Cast && narrow.kind == Kind::Cast;
        let dtype = |id: NodeId| call.reading.graph.tensor_of(id).map(|tensor| tensor.dtype);
        let rounds = dtype(wide) == dtype(call.id) && dtype(narrow.id)?.itemsize() < dtype(wide)?.itemsize();
        // What was 16 bits wide before loses nothing.
        let has_digits = matches!(Call::of(call.reading, wide)?.kind, Kind::Matmul(_) | Kind::Reduce(_));
        (casts && rounds && has_digits && call.is_float()).then_some(New::Instead(wide))
    }),
    // Branches, masks, attention, losses.
    edit("branches-exchanged", "where takes each branch in the place of the other", |call| {
        call.branches().map(|_| New::Exchanged(1, 2))
    }),
    edit("mask-dropped", "where takes its first branch everywhere", |call| {
        call.branches().map(|(first, _)| New::Instead(first))
    }),
    edit("causal", "an attention that was causal is not, or the other way round", |call| {
        let graph = call.reading.graph;
        let is_attention = graph.target(call.id).contains("_scaled_dot_product");
        let length = call.operands().first().and_then(|&query| call.reading.sizes(query))?;
        let several = length.iter().rev().nth(1).is_some_and(|&rows| rows > 1);
        (is_attention && several).then(|| call.flip("is_causal"))?
    }),
    edit("loss-summed", "the mean of a loss is a sum", |call| {
        let bound =
            call.bound("reduction", &["nll_loss_forward", "mse_loss", "smooth_l1_loss", "huber_loss"])?;
        let several = call.reading.sizes(*call.operands().first()?)?.first().is_some_and(|&rows| rows > 1);
        (bound.int("reduction") == Some(1) && several).then_some(New::Argument("reduction", Value::Int(2)))
    }),
    edit("overwritten", "an index_put that adds overwrites, or the other way round", |call| {
        call.flipped("accumulate", &["index_put"])
    }),
    // Calls that are added.
    edit("negated", "readers take the negative of a value", |call| call.then("aten.neg.default", &[])),
    edit("doubled", "readers take twice a value", |call| call.then("aten.mul.Tensor", &[Value::Float(2.0)])),
    edit("clipped", "readers take the positive part of a value", |call| {
        let is_taken = call.is_absorbed(call.id, 8, |kind| kind == Kind::Unary(Unary::Relu));
        (matches!(call.kind, Kind::Matmul(_)) && !is_taken).then(|| call.then("aten.relu.default", &[]))?
    }),
];

/// Whether a call may give the same for a value that is scaled, shifted or negated.
fn takes_no_scale(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Binary(
            Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge | Binary::Pow
        ) | Kind::Unary(Unary::Abs | Unary::Square | Unary::Cos | Unary::Sign | Unary::Isnan | Unary::Isinf)
    )
}

const fn edit(name: &'static str, about: &'static str, change: fn(&Call) -> Option<New>) -> MathEdit {
    MathEdit { name, about, change }
}

impl MathEdit {
    /// Where the edit can be made in a graph.
    pub(super) fn places(&self, reading: &Reading) -> Places {
        let mut places = Places::default();
        for (id, _) in reading.calls() {
            let Some(call) = Call::of(reading, id) else { continue };
            if !reading.is_pure(id) || !reading.is_live(id) || reading.record(id).is_none() {
                continue;
            }
            let Some(new) = (self.change)(&call) else { continue };
            match call.is_certain() {
                true => call.add(&mut places, self.name, new),
                false => places.left_out += 1,
            }
        }
        places
    }
}

impl<'r, 'g> Call<'r, 'g> {
    fn of(reading: &'r Reading<'g>, id: NodeId) -> Option<Call<'r, 'g>> {
        Some(Call { reading, id, kind: reading.call(id)?.kind })
    }

    fn operands(&self) -> Vec<NodeId> {
        self.reading.operands(self.id)
    }

    /// `rsqrt` of `aten.rsqrt.default`.
    fn name(&self) -> Option<(&'g str, &'g str)> {
        self.reading.graph.target(self.id).strip_prefix("aten.")?.split_once('.')
    }

    fn is_float(&self) -> bool {
        let tensor = self.reading.graph.tensor_of(self.id);
        tensor.is_some_and(|tensor| tensor.dtype.class() == DtypeClass::Float)
    }

    /// Whether it has no keyword arguments, which another operator may not know.
    fn is_short(&self) -> bool {
        self.reading.graph.kwargs(self.id).len() == 0
    }

    /// Whether a change of its result is a change of what the graph computes.
    fn is_certain(&self) -> bool {
        let settled = |operand: &NodeId| self.reading.is_settled(*operand);
        let operands = self.operands();
        let of_inputs = operands.iter().any(|&operand| !self.reading.sources.certain(operand).is_clear());
        of_inputs && operands.iter().all(settled) && !self.is_absorbed(self.id, 8, takes_no_scale)
    }

    /// Whether all readers may give the same for a value that was changed, since `takes_none` of that.
    fn is_absorbed(&self, id: NodeId, depth: usize, takes_none: fn(Kind) -> bool) -> bool {
        let absorbs = |&reader: &NodeId| {
            let Some(kind) = self.reading.call(reader).map(|info| info.kind) else { return false };
            match kind {
                Kind::View(_) | Kind::Cast | Kind::Move(Move::Clone) => {
                    depth == 0 || self.is_absorbed(reader, depth - 1, takes_none)
                }
                Kind::Opaque => true,
                kind if takes_none(kind) => true,
                _ => self.reading.graph.inputs(reader).iter().filter(|&&input| input == id).count() > 1,
            }
        };
        self.reading.edges.users(id).iter().all(absorbs)
    }

    /// Another operator of the same overload.
    fn swapped(&self, pairs: &[(&'static str, &'static str)]) -> Option<New> {
        let (name, overload) = self.name()?;
        let (_, to) = pairs.iter().find(|(from, _)| *from == name)?;
        known(&format!("aten.{to}.{overload}")).map(New::Target)
    }

    /// Another operator; of a reduction that has more than one element to reduce.
    fn retargeted(&self, pairs: &[(&'static str, &'static str)]) -> Option<New> {
        let target = self.reading.graph.target(self.id);
        let (_, to) = pairs.iter().find(|(from, _)| *from == target)?;
        (self.is_float() && self.reduced().is_some()).then_some(New::Target(to))
    }

    /// How many elements become one, if more than one does.
    fn reduced(&self) -> Option<i64> {
        let count = |id: NodeId| self.reading.graph.numel(self.reading.graph.tensor_of(id)?);
        let (from, to) = (count(*self.operands().first()?)?, count(self.id)?);
        (to > 0 && from > to).then(|| from / to)
    }

    /// Its arguments, if it is one of these operators and has this parameter.
    fn bound(&self, parameter: &str, names: &[&str]) -> Option<Bound<'r>> {
        let schema = self.reading.call(self.id)?.schema.as_ref()?;
        let is_named = names.contains(&self.name()?.0) && schema.param(parameter).is_some();
        Bound::new(self.reading.graph, self.id, schema).ok().filter(|_| is_named)
    }

    /// Another number for a parameter of one of these operators.
    fn number(&self, parameter: &'static str, names: &[&str], other: fn(f64) -> f64) -> Option<New> {
        let bound = self.bound(parameter, names)?;
        let (now, is_int) = (bound.float(parameter)?, bound.int(parameter).is_some());
        let new = other(now);
        let new = if is_int && new.fract() == 0.0 { Value::Int(new as i64) } else { Value::Float(new) };
        now.is_finite().then_some(New::Argument(parameter, new))
    }

    fn flipped(&self, parameter: &'static str, names: &[&str]) -> Option<New> {
        self.bound(parameter, names)?;
        self.flip(parameter)
    }

    fn flip(&self, parameter: &'static str) -> Option<New> {
        let schema = self.reading.call(self.id)?.schema.as_ref()?;
        let now = Bound::new(self.reading.graph, self.id, schema).ok()?.bool(parameter)?;
        Some(New::Argument(parameter, Value::Bool(!now)))
    }

    /// The number that a tensor meets in a binary operator.
    fn constant(&self) -> Option<(Binary, f64)> {
        let Kind::Binary(
            kind @ (Binary::Add | Binary::Sub | Binary::Rsub | Binary::Mul | Binary::Div | Binary::Pow),
        ) = self.kind
        else {
            return None;
        };
        let number = match self.reading.graph.arg(self.id, 1)? {
            Value::Float(x) => x,
            Value::Int(n) => n as f64,
            _ => return None,
        };
        (number.is_finite() && self.is_short() && self.is_float()).then_some((kind, number))
    }

    fn is_by_one(&self) -> bool {
        self.constant().is_some_and(|(_, number)| number.abs() == 1.0)
    }

    fn epsilon(&self) -> Option<f64> {
        let (kind, number) = self.constant()?;
        (kind == Binary::Add && number > 0.0 && number <= 1e-3).then_some(number)
    }

    /// Its operand, of the same record, in its place.
    fn left_out(&self, applies: bool) -> Option<New> {
        let operand = *self.operands().first().filter(|_| applies)?;
        (self.reading.record(operand) == self.reading.record(self.id)).then_some(New::Instead(operand))
    }

    fn then(&self, target: &'static str, further: &[Value]) -> Option<New> {
        let computes =
            matches!(self.kind, Kind::Matmul(_) | Kind::Binary(_) | Kind::Reduce(_) | Kind::Unary(_));
        (computes && self.is_float()).then(|| New::Then(target, further.to_vec()))
    }

    /// The branches of a `where` that are different functions of the inputs.
    fn branches(&self) -> Option<(NodeId, NodeId)> {
        let [Value::Node(_), Value::Node(one), Value::Node(other)] = *self.reading.graph.args(self.id) else {
            return None;
        };
        let record = |id| self.reading.record(id);
        let alike = record(one) == record(other) && record(one) == record(self.id);
        (self.kind == Kind::Where && alike && self.reading.sources.differ(one, other)).then_some((one, other))
    }

    /// Another dimension of the same size for the one along which a call runs.
    fn other_axis(&self) -> Option<New> {
        let names = ["sum", "mean", "amax", "amin", "cumsum", "_softmax", "_log_softmax", "logsumexp"];
        let bound = self.bound("dim", &names)?;
        let operand = *self.operands().first()?;
        let sizes = self.reading.sizes(operand).filter(|_| self.reading.is_varied(operand))?;
        let dims = bound.ints("dim")?;
        let [dim] = dims[..] else { return None };
        let now = dim.rem_euclid(i64::try_from(sizes.len()).ok()?.max(1));
        let size = *sizes.get(usize::try_from(now).ok()?)?;
        let other = (0..sizes.len() as i64).find(|&other| other != now && sizes[other as usize] == size)?;
        (size > 1).then_some(New::Argument("dim", Value::Int(other)))
    }

    fn add(&self, places: &mut Places, edit: &str, new: New) {
        let (graph, id) = (self.reading.graph, self.id);
        let what = format!("{}: {edit}", graph.name(id));
        match new {
            New::Target(target) => places.add(id, what, move |editor| {
                let target = editor.graph_mut().intern_target(target);
                editor.graph_mut().node_mut(id).target = target;
            }),
            New::Argument(parameter, value) => {
                let Some(schema) = self.reading.call(id).and_then(|info| info.schema.as_ref()) else {
                    return;
                };
                // A number is called `other` by the operators that add it, and `exponent` by powers.
                let at = schema.param(parameter).or(Some(1).filter(|_| parameter == "other"));
                let is_list = at.is_some_and(|at| schema.params[at].ty.ends_with(']'));
                places.add(id, what, move |editor| {
                    let value = match value {
                        Value::Int(n) if is_list => editor.graph_mut().int_list(&[n]),
                        value => value,
                    };
                    operands::state(editor, id, at, parameter, value);
                });
            }
            New::Text(parameter, word) => places.add(id, what, move |editor| {
                let word = Value::Str(editor.graph_mut().intern(word));
                operands::state(editor, id, None, parameter, word);
            }),
            New::Exchanged(one, other) => places.add(id, what, move |editor| {
                let mut args = editor.graph().args(id).to_vec();
                args.swap(one, other);
                editor.set_args(id, &args);
            }),
            New::Instead(operand) => places.add(id, what, move |editor| editor.replace_uses(id, operand)),
            New::Then(target, further) => places.add(id, what, move |editor| {
                insert_after(editor, id, target, &further);
            }),
            New::AddedAfterwards(operand, number) => places.add(id, what, move |editor| {
                operands::set_argument(editor, id, 0, Value::Node(operand));
                insert_after(editor, id, "aten.add.Tensor", &[Value::Float(number)]);
            }),
        }
    }
}

/// The target as the table has it, if it does.
fn known(target: &str) -> Option<&'static str> {
    crate::ops::by_target(target).map(|info| info.target.as_str())
}

#[cfg(test)]
mod tests {
    use super::EDITS;

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<&str> = EDITS.iter().map(|edit| edit.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(count >= 60, "{count}");
    }
}
