//! Annotations: what a text says of a result.
//!
//! `f32[8, s17][s17, 1]cuda:0` is a tensor; strides and device may be left out. `Sym(s17 + 1)` is a number, `Sym(u0 <=
//! 16)` a truth value. Anything else (`DTensor(...)`, a type's name) is kept as a text.

use super::symbols::{self, Hints};
use crate::expression::normal_form;
use crate::graph::{Dim, Dtype, Expr, Graph, Out};

/// What an annotation says.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Annotation {
    Tensor { dtype: Dtype, shape: Vec<Dim>, stride: Option<Vec<Dim>>, device: Option<String> },
    Other(Out),
}

/// The short names of dtypes. Source: `torch.utils._dtype_abbrs`.
const SHORT: &[(&str, Dtype)] = &[("b8", Dtype::Bool), ("f8e4m3fn", Dtype::F8E4M3)];

fn dtype(name: &str) -> Option<Dtype> {
    let listed = SHORT.iter().find(|(short, _)| *short == name).map(|&(_, dtype)| dtype);
    listed.or_else(|| Dtype::parse_short(name).filter(|&dtype| dtype != Dtype::Bool))
}

/// Reads an annotation. `None` where it is that of a tensor and its dtype is not known here.
pub(super) fn read(graph: &mut Graph, hints: &Hints, text: &str) -> Option<Annotation> {
    if let Some(inner) = text.strip_prefix("Sym(").and_then(|rest| rest.strip_suffix(')')) {
        return Some(Annotation::Other(symbolic(graph, hints, inner)));
    }
    let Some(tensor) = Parts::of(text) else {
        return Some(Annotation::Other(Out::Other(graph.intern(text))));
    };
    let dtype = dtype(tensor.dtype)?;
    let dims = |graph: &mut Graph, text: &str| dims(graph, hints, text);
    let shape = dims(graph, tensor.shape);
    let stride = tensor.stride.map(|stride| dims(graph, stride));
    Some(Annotation::Tensor { dtype, shape, stride, device: tensor.device.map(str::to_string) })
}

/// The parts of the annotation of a tensor.
struct Parts<'t> {
    dtype: &'t str,
    shape: &'t str,
    stride: Option<&'t str>,
    device: Option<&'t str>,
}

impl<'t> Parts<'t> {
    fn of(text: &'t str) -> Option<Parts<'t>> {
        let (dtype, rest) = text.split_once('[')?;
        let is_word = !dtype.is_empty() && dtype.bytes().all(|b| b.is_ascii_alphanumeric());
        let (shape, rest) = rest.split_once(']').filter(|_| is_word)?;
        let (stride, device) = match rest.strip_prefix('[') {
            Some(rest) => rest.split_once(']').map(|(stride, device)| (Some(stride), device))?,
            None => (None, rest),
        };
        Some(Parts { dtype, shape, stride, device: (!device.is_empty()).then_some(device) })
    }
}

/// Sizes or strides, separated by commas outside parentheses.
fn dims(graph: &mut Graph, hints: &Hints, text: &str) -> Vec<Dim> {
    symbols::split(text).into_iter().map(|part| dim(graph, hints, part)).collect()
}

/// A size: a number, or an expression.
pub(super) fn dim(graph: &mut Graph, hints: &Hints, text: &str) -> Dim {
    // Texts of one graph spell one expression in several ways.
    let form = normal_form(text);
    let text = form.as_deref().unwrap_or(text);
    match text.parse::<i64>() {
        Ok(number) => Dim::Static(number),
        Err(_) => {
            let expr = Expr { text: graph.intern(text), hint: hints.value(text) };
            Dim::Symbolic(graph.intern_expr(expr))
        }
    }
}

/// A symbolic number or truth value.
fn symbolic(graph: &mut Graph, hints: &Hints, text: &str) -> Out {
    let is_truth = ["<", ">", "==", "!=", "Eq(", "Ne(", "Lt(", "Le(", "Gt(", "Ge("].iter();
    if is_truth.clone().any(|mark| text.contains(mark)) || matches!(text, "True" | "False") {
        let expr = Expr { text: graph.intern(text), hint: None };
        return Out::SymBool(graph.intern_expr(expr));
    }
    match dim(graph, hints, text) {
        Dim::Static(number) => Out::Int(number),
        Dim::Symbolic(expr) => Out::SymInt(expr),
    }
}
