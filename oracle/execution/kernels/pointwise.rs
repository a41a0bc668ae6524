//! Functions of corresponding elements: operands are broadcast, promoted to a common dtype, and computed with.

use super::super::block::Block;
use super::super::concrete::rounded;
use super::super::domain::{Domain, Operand, Outcome, Pointwise, Rounding, raise, refuse};
use super::super::hash::mix;
use super::super::layout::{self, Dims, Window};
use super::super::number::{Number, range};
use super::super::program::{Step, stated};
use super::super::promote::{Participant, promote_types, result_type};
use super::super::rank::{Item, Rank};
use crate::graph::{Dtype, DtypeClass, NodeId, Tensor, Value};
use crate::ops::{Binary, Kind, Unary};

/// An operand as it is given.
#[derive(Clone, Copy)]
pub(super) enum Given {
    Tensor(Window),
    Number(Number),
}

impl Given {
    fn dtype(self) -> Dtype {
        match self {
            Given::Tensor(window) => window.dtype,
            Given::Number(number) => number.dtype(),
        }
    }

    fn participant(self) -> Participant {
        match self {
            Given::Tensor(window) => Participant::Tensor(window.dtype, window.shape.len()),
            Given::Number(number) => Participant::Number(number),
        }
    }
}

/// An operand made ready.
pub(super) struct Ready {
    cells: Vec<u64>,
    poison: Vec<bool>,
    number: Option<Number>,
}

impl Ready {
    pub fn operand(&self) -> Operand<'_> {
        match self.number {
            Some(number) => Operand::Number(number),
            None => Operand::Cells(&self.cells),
        }
    }

    pub fn poison(&self) -> &[bool] {
        &self.poison
    }

    /// Whether some integer of it is known to be 0.
    fn holds_zero(&self, domain: &dyn Domain, dtype: Dtype) -> bool {
        if let Some(number) = self.number {
            return number.is(0);
        }
        let numbers = domain.indices(&self.cells, dtype).unwrap_or_default();
        let is_known = |at: usize| self.poison.get(at) != Some(&true);
        numbers.iter().enumerate().any(|(at, &(number, _))| number == 0 && is_known(at))
    }
}

/// Which elements are poison in any operand.
fn spread(operands: &[Ready], count: usize) -> Vec<bool> {
    let mut all = Vec::new();
    for operand in operands.iter().filter(|o| !o.poison.is_empty()) {
        all.resize(count, false);
        for (bad, &poison) in all.iter_mut().zip(&operand.poison) {
            *bad |= poison;
        }
    }
    all
}

impl Rank<'_> {
    /// A tensor or a number.
    pub(super) fn given(&self, value: Value) -> Outcome<Given> {
        match self.maybe_tensor(value)? {
            Some(window) => Ok(Given::Tensor(window)),
            None => Ok(Given::Number(self.number(value)?)),
        }
    }

    /// The shape that operands broadcast to.
    pub(super) fn common_shape(&self, operands: &[Given]) -> Outcome<Dims> {
        operands.iter().try_fold(Dims::default(), |shape, operand| match operand {
            Given::Number(_) => Ok(shape),
            Given::Tensor(window) => layout::broadcast(shape, window.shape)
                .ok_or_else(|| raise!("shapes {shape:?} and {:?} do not broadcast", window.shape)),
        })
    }

    /// The strides of a fresh result of pointwise operands. An operand of another dtype is cast first, and its cast
    /// lies densely.
    fn common_strides(&self, shape: Dims, operands: &[Given], dtype: Dtype) -> Dims {
        let mut layouts = Vec::with_capacity(operands.len());
        for operand in operands {
            if let Given::Tensor(window) = operand {
                let strides = match window.dtype == dtype {
                    true => window.strides,
                    false => self.preserved_strides(window, Value::None),
                };
                layouts.push((window.shape, strides));
            }
        }
        layout::pointwise_strides(shape, &layouts)
    }

    /// The elements of an operand under the common shape and dtype. A number stays one.
    pub(super) fn ready(&mut self, given: Given, shape: Dims, dtype: Dtype) -> Outcome<Ready> {
        let window = match given {
            Given::Number(number) => {
                return Ok(Ready { cells: Vec::new(), poison: Vec::new(), number: Some(number) });
            }
            Given::Tensor(window) => window,
        };
        let strides = layout::broadcast_strides(&window.shape, &window.strides, shape)
            .ok_or_else(|| raise!("shape {:?} does not broadcast to {shape:?}", window.shape))?;
        let shown = Window { shape, strides, ..window };
        let domain = self.domain;
        let elements = self.elements(&shown)?;
        let poison = elements.poison;
        let cells = match window.dtype == dtype {
            true => elements.cells.into_owned(),
            false => domain.cast(&elements.cells, window.dtype, dtype)?,
        };
        Ok(Ready { cells, poison, number: None })
    }

    /// Computes a pointwise function and delivers the result.
    fn compute(
        &mut self,
        node: NodeId,
        step: &Step,
        function: Pointwise,
        operands: &[Given],
        dtype: Dtype,
        out: Dtype,
    ) -> Outcome<Item> {
        let shape = self.common_shape(operands)?;
        let block = self.computed(node, function, operands, shape, dtype, out)?;
        let mut strides = self.common_strides(shape, operands, dtype);
        // A power of a number has its own allocation in PyTorch.
        if matches!((function, operands), (Pointwise::Binary(Binary::Pow, ..), [Given::Number(_), _])) {
            strides = layout::contiguous(shape);
        }
        self.hand_over(node, step, shape, strides, out, block)
    }

    /// The elements of a pointwise function.
    fn computed(
        &mut self,
        node: NodeId,
        function: Pointwise,
        operands: &[Given],
        shape: Dims,
        dtype: Dtype,
        out: Dtype,
    ) -> Outcome<Block> {
        let count = self.room(&shape)?;
        let ready: Vec<Ready> =
            operands.iter().map(|&operand| self.ready(operand, shape, dtype)).collect::<Outcome<_>>()?;
        let list: Vec<Operand> = ready.iter().map(Ready::operand).collect();
        let cells = self.domain.pointwise(function, dtype, &list, count)?;
        if let (Pointwise::Binary(Binary::Div | Binary::Remainder | Binary::Fmod, ..), [_, divisor]) =
            (function, &ready[..])
            && out.class() < DtypeClass::Float
            && divisor.holds_zero(self.domain, dtype)
        {
            self.outside = self.outside.or(Some(node));
        }
        Ok(Block::of_elements(cells, spread(&ready, count), out))
    }

    /// Delivers a pointwise result. A destination has to be of the result's kind of number or a higher one.
    fn hand_over(
        &mut self,
        node: NodeId,
        step: &Step,
        shape: Dims,
        strides: Dims,
        out: Dtype,
        block: Block,
    ) -> Outcome<Item> {
        if let Some(into) = step.into {
            let to = self.tensor(into)?.dtype;
            let (from, target) = (out.class(), to.class());
            // Integers of all widths are one kind, and so are floats.
            if from > target {
                return Err(raise!("a result of {} cannot be stored as {}", out.name(), to.name()));
            }
        }
        self.deliver(node, step, shape, Some(strides), out, block)
    }

    pub(super) fn unary(&mut self, node: NodeId, step: &Step, op: Unary) -> Outcome<Item> {
        let window = self.tensor(step.args[0])?;
        let class = window.dtype.class();
        let (dtype, out) = match op {
            Unary::Isnan | Unary::Isinf | Unary::LogicalNot => (window.dtype, Dtype::Bool),
            Unary::Relu | Unary::Neg | Unary::Abs | Unary::Sign | Unary::BitwiseNot => {
                let bitwise = op == Unary::BitwiseNot;
                if (bitwise && class >= DtypeClass::Float)
                    || (class == DtypeClass::Bool && matches!(op, Unary::Neg | Unary::Abs | Unary::Relu))
                {
                    return Err(raise!("{op:?} does not take {}", window.dtype.name()));
                }
                let magnitude = op == Unary::Abs && window.dtype == Dtype::C64;
                (window.dtype, if magnitude { Dtype::F32 } else { window.dtype })
            }
            Unary::Square if class == DtypeClass::Bool => (Dtype::I64, Dtype::I64),
            Unary::Square | Unary::Floor | Unary::Ceil | Unary::Round | Unary::Trunc => {
                (window.dtype, window.dtype)
            }
            // Everything else gives a float.
            _ if class < DtypeClass::Float => (Dtype::F32, Dtype::F32),
            _ => (window.dtype, window.dtype),
        };
        let tanh = self.text(step.args[1]) == Some("tanh");
        self.compute(node, step, Pointwise::Unary(op, tanh), &[Given::Tensor(window)], dtype, out)
    }

    /// Whether an operand is read in a wider type than the one that both are promoted to: a tensor of the host without
    /// dimensions beside 16 bits, which hold a byte as it is. Sources: `opmath_symmetric_gpu_kernel_with_scalars`
    /// (aten/src/ATen/native/cuda/Loops.cuh), `iter.original_scalar_value` (aten/src/ATen/native/cpu/BinaryOpsKernel.cpp).
    fn is_taken_unrounded(&self, operand: Value, all: [Value; 2], common: Dtype, op: Binary) -> bool {
        let graph = self.program.graph;
        let tensor = |value: Value| match value {
            Value::Node(id) => graph.tensor_of(id),
            _ => None,
        };
        let is_such = |own: &Tensor| {
            graph.dims(own.shape).is_empty()
                && graph.text(own.device) == "cpu"
                && own.dtype != common
                && own.dtype.itemsize() > 1
        };
        matches!(common, Dtype::F16 | Dtype::BF16)
            && tensor(operand).is_some_and(is_such)
            && (matches!(op, Binary::Mul | Binary::Div)
                || matches!(op, Binary::Add | Binary::Sub) && self.is_on_a_device(all))
    }

    /// Whether a tensor among some operands is not on the host.
    fn is_on_a_device(&self, all: [Value; 2]) -> bool {
        let graph = self.program.graph;
        let is_there = |value: Value| match value {
            Value::Node(id) => graph.tensor_of(id).is_some_and(|tensor| graph.text(tensor.device) != "cpu"),
            _ => false,
        };
        all.into_iter().any(is_there)
    }

    pub(super) fn binary(&mut self, node: NodeId, step: &Step, op: Binary) -> Outcome<Item> {
        let [first, second, third, fourth, ..] = step.args;
        let mut a = self.given(first)?;
        let mut b = self.given(second)?;
        let mut alpha = Number::Int(1);
        let mut rounding = Rounding::True;
        let asked = op;
        let mut op = op;
        match op {
            Binary::ThresholdBackward => alpha = self.number(third)?,
            _ if third != Value::None => alpha = self.number(third)?,
            _ => {}
        }
        match op {
            Binary::Rsub => (a, b, op) = (b, a, Binary::Sub),
            Binary::Rmul => (a, b, op) = (b, a, Binary::Mul),
            Binary::ClampMin | Binary::ClampMax => op = clamping(op, b),
            Binary::FloorDivide => (op, rounding) = (Binary::Div, Rounding::Floor),
            Binary::Div => {
                rounding = match self.text(fourth) {
                    None => Rounding::True,
                    Some("floor") => Rounding::Floor,
                    Some("trunc") => Rounding::Trunc,
                    Some(other) => return Err(raise!("rounding mode {other:?}")),
                }
            }
            _ => {}
        }
        let mut dtype = result_type(&[a.participant(), b.participant()])?;
        if [first, second]
            .into_iter()
            .any(|operand| self.is_taken_unrounded(operand, [first, second], dtype, op))
        {
            return Err(refuse!("a number on the host is not rounded to {} before {op:?}", dtype.name()));
        }
        let class = dtype.class();
        let mut out = dtype;
        match op {
            Binary::Eq | Binary::Ne | Binary::Lt | Binary::Le | Binary::Gt | Binary::Ge => out = Dtype::Bool,
            Binary::LogicalAnd | Binary::LogicalOr | Binary::LogicalXor => {
                (dtype, out) = (Dtype::Bool, Dtype::Bool);
            }
            Binary::BitwiseAnd | Binary::BitwiseOr | Binary::BitwiseXor if class >= DtypeClass::Float => {
                return Err(raise!("{op:?} does not take {}", dtype.name()));
            }
            Binary::Div if rounding == Rounding::True && class < DtypeClass::Float => {
                (dtype, out) = (Dtype::F32, Dtype::F32);
            }
            Binary::Sub if [a, b].iter().any(|g| g.dtype() == Dtype::Bool) => {
                return Err(raise!("sub does not take bool"));
            }
            // Of two bools PyTorch raises one to the power of the other only where the exponent is a number.
            Binary::Pow if class == DtypeClass::Bool && !matches!(b, Given::Number(_)) => {
                return Err(raise!("pow of bool tensors"));
            }
            _ => {}
        }
        if let Binary::ClampMin | Binary::ClampMax = asked {
            b = bounding(b, dtype, op)?;
        }
        let steps = matches!(dtype, Dtype::F16 | Dtype::BF16)
            && matches!(b, Given::Tensor(window) if window.numel() != 1);
        rounding = match rounding {
            Rounding::Floor if steps => Rounding::FloorSteps,
            Rounding::Trunc if steps => Rounding::TruncSteps,
            other => other,
        };
        let whole = class < DtypeClass::Float && matches!(op, Binary::Add | Binary::Sub);
        if whole && matches!(alpha, Number::Float(_)) {
            return Err(raise!("an alpha of {alpha:?} for {}", dtype.name()));
        }
        // PyTorch keeps the precision of a number that comes second in products and quotients, and on other devices than
        // the CPU of one that comes first in products too, and rounds it to the operands' dtype in everything else
        // (ATen/native/cpu/BinaryOpsKernel.cpp, ATen/native/cuda/BinaryMulKernel.cu).
        let keeps = match (a, b) {
            (_, Given::Number(_)) => matches!(op, Binary::Mul | Binary::Div),
            (Given::Number(_), _) => op == Binary::Mul && self.is_on_a_device([first, second]),
            _ => false,
        };
        let function = Pointwise::Binary(op, alpha, rounding);
        // Some exponents ask for a root or a quotient, but for halves on a CPU (ATen/native/cpu/PowKernel.cpp).
        let root = match b {
            Given::Number(Number::Float(0.5)) => Some(Unary::Sqrt),
            Given::Number(Number::Float(-0.5)) => Some(Unary::Rsqrt),
            Given::Number(Number::Float(-1.0) | Number::Int(-1)) => Some(Unary::Reciprocal),
            _ => None,
        };
        if let Some(root) =
            root.filter(|_| op == Binary::Pow && class == DtypeClass::Float && dtype != Dtype::F16)
        {
            return self.compute(node, step, Pointwise::Unary(root, false), &[a], dtype, out);
        }
        if keeps {
            return self.compute(node, step, function, &[a, b], dtype, out);
        }
        self.compute_rounded(node, step, function, &[a, b], dtype, out)
    }

    /// Like [`Rank::compute`], with numbers rounded to the operands' dtype first.
    fn compute_rounded(
        &mut self,
        node: NodeId,
        step: &Step,
        function: Pointwise,
        operands: &[Given],
        dtype: Dtype,
        out: Dtype,
    ) -> Outcome<Item> {
        let rounded: Vec<Given> = operands.iter().map(|&operand| self.rounded(operand, dtype)).collect();
        self.compute(node, step, function, &rounded, dtype, out)
    }

    /// A number as the dtype of at most 16 bits that it is computed with has it.
    fn rounded(&self, given: Given, dtype: Dtype) -> Given {
        let low = matches!(dtype, Dtype::F16 | Dtype::BF16 | Dtype::F8E4M3 | Dtype::F8E5M2);
        match given {
            Given::Number(n @ (Number::Int(_) | Number::Float(_))) if low => Given::Number(rounded(n, dtype)),
            other => other,
        }
    }

    pub(super) fn fma(&mut self, node: NodeId, step: &Step) -> Outcome<Item> {
        let operands = [self.given(step.args[0])?, self.given(step.args[1])?, self.given(step.args[2])?];
        let dtype = result_type(&operands.map(Given::participant))?;
        self.compute_rounded(node, step, Pointwise::Fma, &operands, dtype, dtype)
    }

    pub(super) fn clamp(&mut self, node: NodeId, step: &Step) -> Outcome<Item> {
        let window = self.tensor(step.args[0])?;
        let mut participants = vec![Given::Tensor(window).participant()];
        let mut bounds = Vec::new();
        for (value, op) in [(step.args[1], Binary::ClampMin), (step.args[2], Binary::ClampMax)] {
            if value != Value::None {
                let bound = self.given(value)?;
                participants.push(bound.participant());
                bounds.push((bound, clamping(op, bound)));
            }
        }
        if bounds.is_empty() {
            return Err(raise!("clamp needs a bound"));
        }
        let dtype = result_type(&participants)?;
        let mut operands = vec![Given::Tensor(window)];
        operands.extend(bounds.iter().map(|&(bound, _)| bound));
        let shape = self.common_shape(&operands)?;
        let mut cells = None;
        let mut poison = Vec::new();
        for (bound, op) in bounds {
            let function = Pointwise::Binary(op, Number::Int(1), Rounding::True);
            let count = self.room(&shape)?;
            let bound = self.rounded(bounding(bound, dtype, op)?, dtype);
            let bound = self.ready(bound, shape, dtype)?;
            let at = match cells {
                Some(cells) => Ready { cells, poison, number: None },
                None => self.ready(Given::Tensor(window), shape, dtype)?,
            };
            cells = Some(self.domain.pointwise(function, dtype, &[at.operand(), bound.operand()], count)?);
            poison = spread(&[at, bound], count);
        }
        let strides = self.common_strides(shape, &operands, dtype);
        let block = Block::of_elements(cells.unwrap_or_default(), poison, dtype);
        self.hand_over(node, step, shape, strides, dtype, block)
    }

    /// `where` and `masked_fill`: an element that is not chosen does not matter, poison or not.
    pub(super) fn choose(&mut self, node: NodeId, step: &Step, kind: Kind) -> Outcome<Item> {
        let (condition, yes, no) = match kind {
            Kind::Where => (step.args[0], step.args[1], step.args[2]),
            _ => (step.args[1], step.args[2], step.args[0]),
        };
        let condition = self.tensor(condition)?;
        if !matches!(condition.dtype, Dtype::Bool | Dtype::U8) {
            return Err(raise!("the condition is {}, not bool", condition.dtype.name()));
        }
        let (yes, no) = (self.given(yes)?, self.given(no)?);
        let dtype = match (kind, no) {
            (Kind::MaskedFill, Given::Tensor(window)) => window.dtype,
            _ => result_type(&[yes.participant(), no.participant()])?,
        };
        if let (Kind::MaskedFill, Given::Tensor(value)) = (kind, yes)
            && !value.shape.is_empty()
        {
            return Err(raise!("masked_fill with a value of shape {:?}", value.shape));
        }
        if let (Kind::MaskedFill, Given::Number(value)) = (kind, yes)
            && value.overflows(dtype)
        {
            return Err(raise!("{value:?} cannot be converted to {} without overflow", dtype.name()));
        }
        let operands = [Given::Tensor(condition), yes, no];
        let shape = self.common_shape(&operands)?;
        let count = self.room(&shape)?;
        let ready = [
            self.ready(operands[0], shape, Dtype::Bool)?,
            self.ready(yes, shape, dtype)?,
            self.ready(no, shape, dtype)?,
        ];
        let list: Vec<Operand> = ready.iter().map(Ready::operand).collect();
        let cells = self.domain.pointwise(Pointwise::Where, dtype, &list, count)?;
        let mut poison = spread(&ready, count);
        if !poison.is_empty()
            && let Some(truth) = self.domain.integers(&ready[0].cells, Dtype::Bool)
        {
            let bad = |ready: &Ready, i: usize| ready.poison.get(i).copied().unwrap_or(false);
            for (i, poison) in poison.iter_mut().enumerate() {
                let chosen = if truth[i] != 0 { &ready[1] } else { &ready[2] };
                *poison = bad(&ready[0], i) || bad(chosen, i);
            }
        }
        let layouts = operands.map(|operand| match operand {
            // The condition keeps its dtype.
            Given::Tensor(window) if window.dtype == condition.dtype => {
                Given::Tensor(Window { dtype, ..window })
            }
            other => other,
        });
        let strides = self.common_strides(shape, &layouts, dtype);
        let block = Block::of_elements(cells, poison, dtype);
        self.hand_over(node, step, shape, strides, dtype, block)
    }

    /// A pointwise operator without kernel: every tensor argument is an operand, every other one part of what the
    /// function is. The result has the recorded dtype, else the promoted one made a float.
    pub(super) fn elementwise(&mut self, node: NodeId, step: &Step) -> Outcome<Item> {
        if !self.domain.interprets_everything() {
            return Err(refuse!("{} has no kernel", self.program.graph.target(node)));
        }
        let graph = self.program.graph;
        let (mut operands, mut key) = (Vec::new(), step.key);
        for (param, value) in stated(graph, node, step.info) {
            key = mix(key, param);
            match self.maybe_tensor(value)? {
                Some(window) => operands.push(Given::Tensor(window)),
                None => key = mix(key, self.digest(&self.item(value)?)?.hash),
            }
        }
        let participants: Vec<Participant> = operands.iter().map(|o| o.participant()).collect();
        let promoted = result_type(&participants)?;
        let float = if promoted.class() < DtypeClass::Float { Dtype::F32 } else { promoted };
        let out = graph.tensor_of(node).map_or(float, |t| t.dtype);
        self.compute(node, step, Pointwise::Opaque(key, out), &operands, promoted, out)
    }

    pub(super) fn cast(&mut self, node: NodeId, step: &Step) -> Outcome<Item> {
        let window = self.tensor(step.args[0])?;
        let dtype = self.dtype(step.args[1]).unwrap_or(window.dtype);
        let returns_itself = step
            .info
            .and_then(|i| i.schema.as_ref())
            .is_some_and(|s| s.returns.first().is_some_and(|r| r.alias.is_some()));
        let format = self.format(step.args[2]);
        let is_as_asked =
            format.is_none_or(|format| layout::format_of(&window.shape, &window.strides) == format);
        if returns_itself && dtype == window.dtype && !self.flag(step.args[3])? && is_as_asked {
            return Ok(Item::Tensor(window));
        }
        self.room(&window.shape)?;
        let block = self.memory.cells(self.domain, &window)?;
        let block = self.cast_block(block, window.dtype, dtype)?;
        let strides = self.preserved_strides(&window, step.args[2]);
        self.deliver(node, step, window.shape, Some(strides), dtype, block)
    }

    /// The memory format that a value names; `None` for the one that there is.
    pub(super) fn format(&self, value: Value) -> Option<&str> {
        match value {
            Value::Int(0) => Some("contiguous_format"),
            value => layout::named_format(self.text(value)?),
        }
    }

    /// The strides of a copy: those of the original where it is dense, unless a memory format says otherwise.
    pub(super) fn preserved_strides(&self, window: &Window, format: Value) -> Dims {
        let asked = self.format(format).and_then(|format| layout::strides_in(format, &window.shape));
        if let Some(strides) = asked.and_then(|strides| Dims::new(&strides)) {
            strides
        } else if layout::is_dense(&window.shape, &window.strides) {
            window.strides
        } else {
            layout::pointwise_strides(window.shape, &[(window.shape, window.strides)])
        }
    }

    /// The dtype of a list of tensors of possibly different dtypes.
    pub(super) fn promoted(&self, windows: &[Window]) -> Outcome<Dtype> {
        let first = windows.first().ok_or_else(|| raise!("an empty list of tensors"))?;
        windows.iter().try_fold(first.dtype, |dtype, window| promote_types(dtype, window.dtype))
    }
}

/// What a clamp does with a bound: with a tensor what a maximum or a minimum does.
fn clamping(op: Binary, bound: Given) -> Binary {
    match (op, bound) {
        (_, Given::Number(_)) => op,
        (Binary::ClampMin, _) => Binary::Maximum,
        _ => Binary::Minimum,
    }
}

/// A bound of `clamp` in the dtype that it bounds. An integer bound beyond the far end excludes everything, which
/// PyTorch refuses; beyond the near end it bounds nothing.
fn bounding(bound: Given, dtype: Dtype, op: Binary) -> Outcome<Given> {
    let Given::Number(number) = bound else { return Ok(bound) };
    let Some((low, high)) = range(dtype) else { return Ok(bound) };
    let refused = || raise!("the bound {number:?} is outside the range of {}", dtype.name());
    if dtype.class() >= DtypeClass::Float {
        return if number.overflows(dtype) { Err(refused()) } else { Ok(bound) };
    }
    let x = number.float();
    match op {
        _ if (low..=high).contains(&x) || matches!(number, Number::Term(_)) => Ok(bound),
        Binary::Maximum | Binary::ClampMin if x < low => Ok(Given::Number(Number::Int(low as i64))),
        Binary::Minimum | Binary::ClampMax if x > high => Ok(Given::Number(Number::Int(high as i64))),
        _ => Err(refused()),
    }
}
