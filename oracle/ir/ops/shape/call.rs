//! One call as a rule sees it: operands with shape, strides and dtype, and the other arguments by name.

use super::layout::{elementwise, is_contiguous};
use super::size::{Size, Sizes, contiguous, text};
use super::window::{Given, NoWindow, Shown, Window, dimension, distinct_dimensions};
use super::{Output, ShapeError, TensorMeta};
use crate::graph::{Dtype, DtypeClass, Graph, NodeId, Out, Span, Tensor, Value};
use crate::ops::{Bound, Kind, OpInfo, Param, Schema};
use smallvec::smallvec;

/// Why a rule ends early.
pub(super) enum Stop {
    /// The rule cannot say.
    Undecided,
    /// The operator cannot take these arguments.
    Fault(ShapeError),
}

/// The result of a rule or of a part of it.
pub(super) type Rule<T> = Result<T, Stop>;

/// Ends a rule with a statement of what is wrong.
pub(super) fn fault<T>(statement: String) -> Rule<T> {
    Err(Stop::Fault(ShapeError::Statement(statement)))
}

/// An argument where a tensor or a Python number may stand.
pub(super) enum Operand {
    Tensor(TensorMeta),
    Number(DtypeClass),
    Absent,
}

/// Operators of which PyTorch takes a Python number where their schema wants a tensor. Source:
/// `should_allow_numbers_as_tensors` in `torch/csrc/utils/python_arg_parser.cpp`.
const TAKE_NUMBERS: &[&str] =
    &["add", "sub", "mul", "div", "floor_divide", "to", "_to_copy", "copy", "_conj"];

fn takes_numbers(schema: &Schema) -> bool {
    // Prims are called with numbers for tensors (torch._prims).
    schema.namespace == "prims" || TAKE_NUMBERS.contains(&schema.name.trim_end_matches('_'))
}

/// Whether a parameter of type `ty` takes `value`. Types that are not named here take anything, and so do nodes whose
/// result is not recorded as something else.
fn takes(graph: &Graph, schema: &Schema, ty: &str, value: Value) -> bool {
    let (ty, optional) = ty.strip_suffix('?').map_or((ty, false), |ty| (ty, true));
    if let Some((element, _)) = ty.strip_suffix(']').and_then(|ty| ty.rsplit_once('[')) {
        let takes = |value| takes(graph, schema, element, value);
        return match value {
            Value::None => optional,
            Value::List(span) => graph.values(span).iter().all(|&value| takes(value)),
            Value::Node(_) | Value::Dangling(_) => true,
            // One number counts as a list of it.
            value => !element.starts_with("Tensor") && takes(value),
        };
    }
    let is_real = matches!(
        value,
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Symbolic(_) | Value::Node(_)
    );
    match (ty, value) {
        (_, Value::Dangling(_)) => true,
        ("Tensor" | "int" | "SymInt" | "float" | "Scalar" | "str" | "ScalarType", Value::None) => optional,
        ("Tensor", Value::Node(node)) if node.index() < graph.len() => match graph.node(node).out {
            Out::Int(_) | Out::SymInt(_) | Out::SymBool(_) => takes_numbers(schema),
            Out::Tuple(_) => false,
            Out::None => optional,
            _ => true,
        },
        ("Tensor", Value::Node(_)) => true,
        ("Tensor", value) => takes_numbers(schema) && (is_real || matches!(value, Value::Complex(_))),
        ("Scalar", Value::Node(node)) => {
            node.index() >= graph.len() || !matches!(graph.node(node).out, Out::Tensor(_) | Out::Tuple(_))
        }
        ("Scalar", value) => is_real || matches!(value, Value::Complex(_)),
        ("float", _) => is_real,
        ("int" | "SymInt", value) => is_real && !matches!(value, Value::Float(_)),
        ("ScalarType", value) => matches!(value, Value::Dtype(_) | Value::Int(_) | Value::Node(_)),
        ("str", value) => matches!(value, Value::Str(_) | Value::Node(_)),
        _ => true,
    }
}

/// In words, that a parameter does not take a value.
fn misfit(param: &Param, value: Value) -> String {
    let ty = param.ty.trim_end_matches('?');
    let (element, is_list) = ty.split_once('[').map_or((ty, false), |(element, _)| (element, true));
    let wanted = match element.trim_end_matches('?') {
        "Tensor" => "tensor",
        "int" | "SymInt" => "integer",
        "float" | "Scalar" => "number",
        "ScalarType" => "dtype",
        "str" => "string",
        other => other,
    };
    if is_list {
        return format!("{} is not a list of {wanted}s", param.name);
    }
    let found = match value {
        Value::None => "None",
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Complex(_) | Value::Symbolic(_) => {
            "a number"
        }
        Value::List(_) => "a list",
        Value::Str(_) => "a string",
        _ => "something else",
    };
    let article = if wanted == "integer" { "an" } else { "a" };
    format!("{} is {found}, not {article} {wanted}", param.name)
}

pub(super) struct Call<'a> {
    pub graph: &'a Graph,
    pub info: &'a OpInfo,
    pub schema: &'a Schema,
    bound: Bound<'a>,
}

impl<'a> Call<'a> {
    pub fn new(graph: &'a Graph, node: NodeId, info: &'a OpInfo, schema: &'a Schema) -> Rule<Call<'a>> {
        let bound =
            Bound::new(graph, node, schema).map_err(|error| Stop::Fault(ShapeError::Arguments(error)))?;
        // Kernels of some of these take None where a tensor is asked for.
        let open = matches!(info.kind, Kind::Opaque | Kind::Random(_) | Kind::Unknown);
        for (index, param) in schema.params.iter().enumerate() {
            if let Some(value) = bound.given(index)
                && !(open && param.ty == "Tensor" && value == Value::None)
                && !takes(graph, schema, &param.ty, value)
            {
                return fault(misfit(param, value));
            }
        }
        Ok(Call { graph, info, schema, bound })
    }

    /// The operator's name without namespace and overload, for statements.
    pub fn name(&self) -> &'a str {
        &self.schema.name
    }

    /// `[4, u0, 3]`.
    pub fn text(&self, sizes: &[Size]) -> String {
        text(self.graph, sizes)
    }

    /// The name of the parameter at `index`; empty past the end.
    pub fn param(&self, index: usize) -> &'a str {
        self.schema.params.get(index).map_or("", |p| p.name.as_str())
    }

    pub fn value(&self, name: &str) -> Option<Value> {
        self.bound.named(name)
    }

    /// Whether the argument is given and is not `None`.
    pub fn has(&self, name: &str) -> bool {
        !matches!(self.value(name), None | Some(Value::None))
    }

    pub fn operand(&self, name: &str) -> Rule<Operand> {
        self.operand_of(name, self.value(name).unwrap_or(Value::None))
    }

    fn operand_of(&self, name: &str, value: Value) -> Rule<Operand> {
        Ok(match value {
            Value::None => Operand::Absent,
            Value::Bool(_) => Operand::Number(DtypeClass::Bool),
            Value::Int(_) | Value::Symbolic(_) => Operand::Number(DtypeClass::Int),
            Value::Float(_) => Operand::Number(DtypeClass::Float),
            Value::Complex(_) => Operand::Number(DtypeClass::Complex),
            Value::Node(node) => match self.graph.node(node).out {
                Out::Tensor(tensor) => {
                    Operand::Tensor(TensorMeta::recorded(self.graph, self.graph.tensor(tensor)))
                }
                Out::Int(_) | Out::SymInt(_) => Operand::Number(DtypeClass::Int),
                Out::SymBool(_) => Operand::Number(DtypeClass::Bool),
                Out::Tuple(_) => {
                    return fault(format!("{name} is a tuple, {}, not a tensor", self.graph.name(node)));
                }
                _ => return Err(Stop::Undecided),
            },
            Value::Dangling(_) => return Err(Stop::Undecided),
            _ => return fault(format!("{name} is neither a tensor nor a number")),
        })
    }

    pub fn tensor(&self, name: &str) -> Rule<TensorMeta> {
        match self.operand(name)? {
            Operand::Tensor(tensor) => Ok(tensor),
            Operand::Number(_) if takes_numbers(self.schema) => Err(Stop::Undecided),
            Operand::Number(_) => fault(format!("{name} is a number, not a tensor")),
            Operand::Absent if self.schema.param(name).is_none() => Err(Stop::Undecided),
            Operand::Absent => fault(format!("{name} is None, not a tensor")),
        }
    }

    /// A tensor that may be absent.
    pub fn optional_tensor(&self, name: &str) -> Rule<Option<TensorMeta>> {
        if self.has(name) { self.tensor(name).map(Some) } else { Ok(None) }
    }

    /// The elements of a list argument, `None` where the list has a `None`.
    pub fn optional_tensors(&self, name: &str) -> Rule<Vec<Option<TensorMeta>>> {
        let span = match self.value(name) {
            Some(Value::List(span)) => span,
            // The list result of another node, such as the results of a coalesced collective.
            Some(Value::Node(node)) => {
                return match self.graph.node(node).out {
                    Out::Tuple(span) => self.outs(span).into_iter().map(|o| o.tensor().map(Some)).collect(),
                    _ => Err(Stop::Undecided),
                };
            }
            _ => return fault(format!("{name} is not a list of tensors")),
        };
        let one = |&value: &Value| match self.operand_of(name, value)? {
            Operand::Tensor(tensor) => Ok(Some(tensor)),
            Operand::Absent => Ok(None),
            Operand::Number(_) => fault(format!("{name} has a number where a tensor should be")),
        };
        self.graph.values(span).iter().map(one).collect()
    }

    pub fn tensors(&self, name: &str) -> Rule<Vec<TensorMeta>> {
        let none = || Stop::Fault(ShapeError::Statement(format!("{name} has None where a tensor should be")));
        self.optional_tensors(name)?.into_iter().map(|t| t.ok_or_else(none)).collect()
    }

    fn outs(&self, span: Span) -> Vec<Output> {
        self.graph.outs(span).iter().map(|&out| Output::recorded(self.graph, out)).collect()
    }

    /// A number that must be known, or is the default.
    pub fn int(&self, name: &str) -> Rule<i64> {
        match self.value(name) {
            Some(Value::Symbolic(_) | Value::Node(_) | Value::Dangling(_)) => {
                self.size(name)?.known().ok_or(Stop::Undecided)
            }
            _ => match self.bound.int(name) {
                Some(n) => Ok(n),
                None => fault(format!("{name} is not an integer")),
            },
        }
    }

    /// An integer that may be symbolic.
    pub fn size(&self, name: &str) -> Rule<Size> {
        match self.value(name) {
            Some(value) => self.size_of(name, value),
            None => Ok(self.bound.int(name).into()),
        }
    }

    fn size_of(&self, name: &str, value: Value) -> Rule<Size> {
        Ok(match value {
            Value::Int(n) => Size::Known(n),
            Value::Bool(b) => Size::Known(i64::from(b)),
            Value::Symbolic(expr) => Size::Symbol(expr),
            Value::Node(node) => match self.graph.node(node).out {
                Out::Int(n) => Size::Known(n),
                Out::SymInt(expr) => Size::Symbol(expr),
                _ => Size::Unknown,
            },
            Value::Dangling(_) => Size::Unknown,
            _ => return fault(format!("{name} has something else than an integer")),
        })
    }

    /// A list of sizes; a single integer counts as a list of one, a default counts.
    pub fn sizes(&self, name: &str) -> Rule<Sizes> {
        match self.value(name) {
            Some(Value::List(span)) => {
                self.graph.values(span).iter().map(|&v| self.size_of(name, v)).collect()
            }
            Some(value) => Ok(smallvec![self.size_of(name, value)?]),
            None => match self.bound.ints(name) {
                Some(ints) => Ok(ints.into_iter().map(Size::Known).collect()),
                None => fault(format!("{name} is not given")),
            },
        }
    }

    /// A list of known integers.
    pub fn ints(&self, name: &str) -> Rule<Vec<i64>> {
        self.sizes(name)?.into_iter().map(|s| s.known().ok_or(Stop::Undecided)).collect()
    }

    pub fn flag(&self, name: &str) -> bool {
        self.bound.bool(name).unwrap_or(false)
    }

    pub fn word(&self, name: &str) -> Option<&'a str> {
        self.bound.text(name)
    }

    /// The memory format that is asked for.
    pub fn memory_format(&self) -> Option<&'a str> {
        self.bound.memory_format()
    }

    /// The dtype argument, if one is given.
    pub fn dtype(&self, name: &str) -> Option<Dtype> {
        self.bound.dtype(name)
    }

    /// A window or a dimension, or the statement why there is none.
    pub fn shown<T>(&self, shown: Shown<T>) -> Rule<T> {
        shown.map_err(|why| self.stop(why))
    }

    /// Dimensions of a tensor of `rank` dimensions, none of them twice.
    pub fn distinct_dims(&self, given: &[i64], rank: usize) -> Rule<Vec<usize>> {
        self.shown(distinct_dimensions(given, rank))
    }

    /// The argument `name` as a dimension.
    pub fn dim(&self, name: &str, rank: usize) -> Rule<usize> {
        self.shown(dimension(self.int(name)?, rank))
    }

    /// `shapes` broadcast together.
    pub fn broadcast(&self, shapes: &[&[Size]]) -> Rule<Sizes> {
        let rank = shapes.iter().map(|s| s.len()).max().unwrap_or(0);
        let mut result = Sizes::from_elem(Size::Known(1), rank);
        for shape in shapes {
            let missing = rank - shape.len();
            for (slot, &size) in result[missing..].iter_mut().zip(*shape) {
                *slot = match (*slot, size) {
                    (x, Size::Known(1)) | (Size::Known(1), x) => x,
                    (a, b) => match a.same(b) {
                        Some(true) => a,
                        // A symbol that meets a number other than 1 is 1 or that number.
                        None if a.known().is_some() => a,
                        None if b.known().is_some() => b,
                        None => Size::Unknown,
                        Some(false) => {
                            let all: Vec<String> = shapes.iter().map(|s| self.text(s)).collect();
                            return fault(format!("cannot broadcast {} together", all.join(" and ")));
                        }
                    },
                };
            }
        }
        Ok(result)
    }
}

impl Given for Call<'_> {
    type Stop = Stop;

    fn number(&self, index: usize) -> Rule<Option<Size>> {
        match self.bound.given(index) {
            Some(Value::None) => Ok(None),
            Some(value) => self.size_of(self.param(index), value).map(Some),
            None => Ok(self.bound.default_int(index).map(Size::Known)),
        }
    }

    fn numbers(&self, index: usize) -> Rule<Option<Sizes>> {
        match self.bound.given(index) {
            Some(Value::List(span)) => {
                let one = |&value: &Value| self.size_of(self.param(index), value);
                self.graph.values(span).iter().map(one).collect::<Rule<Sizes>>().map(Some)
            }
            _ => Ok(self.number(index)?.map(|size| smallvec![size])),
        }
    }

    fn stop(&self, why: NoWindow) -> Stop {
        match why {
            NoWindow::Undecided | NoWindow::Pieces(_) => Stop::Undecided,
            why => Stop::Fault(ShapeError::Statement(why.statement(|sizes| self.text(sizes)))),
        }
    }
}

impl TensorMeta {
    /// What a graph records about a tensor.
    pub(super) fn recorded(graph: &Graph, tensor: &Tensor) -> TensorMeta {
        let sizes = |id| graph.dims(id).iter().map(|&d| Size::from(d)).collect::<Sizes>();
        TensorMeta {
            shape: sizes(tensor.shape),
            stride: Some(sizes(tensor.stride)),
            offset: Size::Known(tensor.offset),
            dtype: Some(tensor.dtype),
        }
    }

    /// A fresh tensor in row-major order.
    pub(super) fn fresh(shape: impl Into<Sizes>, dtype: Option<Dtype>) -> TensorMeta {
        let shape = shape.into();
        let stride = Some(contiguous(&shape));
        TensorMeta { shape, stride, offset: Size::Known(0), dtype }
    }

    /// A fresh tensor whose strides the rule does not fix.
    pub(super) fn loose(shape: impl Into<Sizes>, dtype: Option<Dtype>) -> TensorMeta {
        TensorMeta { shape: shape.into(), stride: None, offset: Size::Unknown, dtype }
    }

    /// A fresh tensor whose strides follow those of `operands`.
    pub(super) fn like(operands: &[TensorMeta], shape: Sizes, dtype: Option<Dtype>) -> TensorMeta {
        let parts: Option<Vec<(&[Size], &[Size])>> =
            operands.iter().map(|t| Some((t.shape.as_slice(), t.strides().ok()?))).collect();
        let stride = parts.and_then(|parts| elementwise(&shape, &parts));
        TensorMeta { shape, stride, offset: Size::Known(0), dtype }
    }

    /// A copy that is contiguous if the original is; else PyTorch's implementations differ in the strides.
    pub(super) fn packed(&self) -> TensorMeta {
        let contiguous = self.stride.as_ref().and_then(|s| is_contiguous(&self.shape, s));
        match contiguous {
            Some(true) => TensorMeta::fresh(self.shape.clone(), self.dtype),
            _ => TensorMeta::loose(self.shape.clone(), self.dtype),
        }
    }

    /// What a window shows.
    pub(super) fn shown(window: Window, dtype: Option<Dtype>) -> TensorMeta {
        TensorMeta { shape: window.shape, stride: Some(window.strides), offset: window.offset, dtype }
    }

    /// The window; undecided where the strides are not known.
    pub(super) fn window(self) -> Rule<Window> {
        self.strides()?;
        let TensorMeta { shape, stride, offset, .. } = self;
        Ok(Window { shape, strides: stride.ok_or(Stop::Undecided)?, offset })
    }

    /// The strides; undecided where they are not known.
    pub(super) fn strides(&self) -> Rule<&[Size]> {
        self.stride.as_deref().filter(|s| s.len() == self.shape.len()).ok_or(Stop::Undecided)
    }
}

impl Output {
    pub(crate) fn recorded(graph: &Graph, out: Out) -> Output {
        match out {
            Out::Tensor(tensor) => Output::Tensor(TensorMeta::recorded(graph, graph.tensor(tensor))),
            Out::Int(n) => Output::Number(Size::Known(n)),
            Out::SymInt(expr) => Output::Number(Size::Symbol(expr)),
            Out::None => Output::None,
            _ => Output::Undecided,
        }
    }

    fn tensor(self) -> Rule<TensorMeta> {
        match self {
            Output::Tensor(tensor) => Ok(tensor),
            _ => Err(Stop::Undecided),
        }
    }
}
