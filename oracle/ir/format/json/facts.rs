//! Schema facts of operators, spelled as the recorded graphs spell them.
//!
//! They are made from the table of operators for targets that come without facts, so that a graph from another
//! source, or one that a pass has changed, is complete for readers that know no operators. What the table does
//! not hold (PyTorch's operator tags, `torch_is_view`) is left out.

use crate::ops::{Default, OpInfo, Param, Return, Schema};
use serde::Serialize;
use serde_json::Value;

/// What has no schema.
#[derive(Serialize)]
struct Opaque {
    kind: &'static str,
    schema: (),
}

#[derive(Serialize)]
struct Facts<'a> {
    kind: &'static str,
    namespace: &'a str,
    schema: String,
    args: Vec<Arg<'a>>,
    returns: Vec<Ret>,
    is_mutable: bool,
    mutated_args: Vec<usize>,
    ret_aliases_arg: Vec<(usize, usize)>,
    is_view: bool,
}

#[derive(Serialize)]
struct Arg<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    ty: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    kwarg_only: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alias: Option<Alias>,
}

#[derive(Serialize)]
struct Ret {
    #[serde(rename = "type")]
    ty: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    alias: Option<Alias>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    elem_alias: Vec<char>,
}

/// `torch._C._AliasInfo`.
#[derive(Serialize)]
struct Alias {
    before: Vec<char>,
    after: Vec<char>,
    write: bool,
}

/// The facts of an operator as JSON text.
pub(super) fn of(info: &OpInfo) -> serde_json::Result<String> {
    let Some(schema) = &info.schema else {
        let kind = if info.target.starts_with("higher_order.") { "higher_order" } else { "python" };
        return serde_json::to_string(&Opaque { kind, schema: () });
    };
    let mutated_args: Vec<usize> = schema.mutated().collect();
    serde_json::to_string(&Facts {
        kind: "op",
        namespace: &schema.namespace,
        schema: schema.to_string(),
        args: schema.params.iter().map(|param| arg(schema, param)).collect(),
        returns: schema.returns.iter().map(ret).collect(),
        is_mutable: !mutated_args.is_empty(),
        mutated_args,
        ret_aliases_arg: schema.aliases().collect(),
        is_view: info.is_view(),
    })
}

fn arg<'a>(schema: &Schema, param: &'a Param) -> Arg<'a> {
    Arg {
        name: &param.name,
        ty: python_type(&param.ty),
        kwarg_only: param.keyword_only,
        default: param.default.as_ref().map(|value| default(&param.ty, value)),
        alias: param.alias.map(|set| {
            let becomes_list = |r: &Return| r.alias == Some(set) && is_list(&r.ty);
            if is_list(&param.ty) {
                // PyTorch keeps the set with the elements, where its Python objects do not show it.
                Alias { before: vec![], after: vec![], write: param.write }
            } else if !param.write && schema.returns.iter().any(becomes_list) {
                Alias { before: vec![set], after: vec!['*'], write: false }
            } else {
                Alias { before: vec![set], after: vec![set], write: param.write }
            }
        }),
    }
}

fn ret(result: &Return) -> Ret {
    let (alias, elem_alias) = match result.alias {
        None => (None, vec![]),
        Some(set) if is_list(&result.ty) => {
            (Some(Alias { before: vec![], after: vec![], write: result.write }), vec![set])
        }
        Some(set) => (Some(Alias { before: vec![set], after: vec![set], write: result.write }), vec![]),
    };
    Ret { ty: python_type(&result.ty), alias, elem_alias }
}

fn is_list(ty: &str) -> bool {
    ty.contains('[')
}

/// A default as Python holds it: a number for a list of known length is that list.
fn default(ty: &str, default: &Default) -> Value {
    if let Default::Int(n) = default
        && let Some(length) = ty.split_once('[').and_then(|(_, rest)| rest.strip_suffix(']')?.parse().ok())
    {
        return Value::from(vec![*n; length]);
    }
    match default {
        Default::None => Value::Null,
        Default::Bool(b) => Value::from(*b),
        Default::Int(n) => Value::from(*n),
        Default::Float(x) => Value::from(*x),
        Default::Ints(ints) => Value::from(ints.as_slice()),
        Default::Text(text) => Value::from(text.as_str()),
    }
}

/// The type as `str(argument.type)` gives it in Python: `SymInt[]?` is `Optional[List[int]]`.
fn python_type(ty: &str) -> String {
    if let Some(inner) = ty.strip_suffix('?') {
        return format!("Optional[{}]", python_type(inner));
    }
    if let Some(open) = ty.strip_suffix(']').and_then(|ty| ty.rfind('[')) {
        return format!("List[{}]", python_type(&ty[..open]));
    }
    match ty {
        "SymInt" | "ScalarType" | "MemoryFormat" | "Layout" => "int",
        "Scalar" => "number",
        other => other,
    }
    .to_string()
}
