//! What functional calls say of operators that nobody described.
//!
//! `auto_functionalized_v2(op, NAME=value, ..., _NAME_base_index=0, _all_bases=[...])` names the parameters of an operator
//! and says which of them it writes, and PyTorch writes functional calls only of operators that do nothing else
//! (`torch._higher_order_ops.auto_functionalize`, `can_auto_functionalize`). That is a schema but for the order of its
//! parameters. Parameters that are written keep their order, and so do the others; how they lie between each other is told by
//! the types of what calls of the graph before give by position. A graph after is not asked: a pass may have exchanged them.
//!
//! # What it does not do
//!
//! Where several orders fit, or a call leaves an argument out, which argument is which is not known: calls by name are another
//! operator than calls by position then, of which nothing is known.

use crate::graph::{Graph, NodeId, Op, Out, Value};
use crate::ops::by_target;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// The operator of functional calls.
const FUNCTIONAL: &str = "higher_order.auto_functionalized_v2";

/// Parameters of an operator at most for which an order is looked for.
const MOST: usize = 12;

/// What is known of an operator: the facts of a schema, or `None` where several orders of its parameters fit.
pub type Described = BTreeMap<String, Option<String>>;

/// The type of an argument: as schemas write it, and what else tells it from others, where that is known.
type Type = (&'static str, Option<String>);

/// A parameter: its name, whether it is written, and its type.
type Parameter = (String, bool, Type);

/// The operators that some graphs, the first of them that before a pass, call in a functional way and that are not known
/// otherwise.
pub fn described(graphs: &[&Graph]) -> Described {
    let mut named: BTreeMap<String, (Vec<Parameter>, bool)> = BTreeMap::new();
    for graph in graphs {
        let calls = graph.ids().filter(|&id| graph.node(id).op == Op::Call && graph.target(id) == FUNCTIONAL);
        for (target, parameters, returns) in calls.filter_map(|id| named_by(graph, id)) {
            let is_known = by_target(&target).is_some()
                || graphs.iter().any(|graph| graph.facts.iter().any(|(known, _)| *known == target));
            if !is_known {
                let (first, is_other) = named.entry(target).or_insert((parameters.clone(), false));
                let names = |all: &[Parameter]| all.iter().map(|(name, ..)| name.clone()).collect::<Vec<_>>();
                *is_other |= returns || names(first) != names(&parameters);
            }
        }
    }
    // Who leaves arguments out gives fewer than are named.
    for graph in graphs {
        for id in graph.ids().filter(|&id| graph.node(id).op == Op::Call) {
            if let Some((parameters, is_other)) = named.get_mut(graph.target(id)) {
                let given = graph.args(id).len() + graph.kwargs(id).len();
                let is_named = |name: &str| parameters.iter().any(|(own, ..)| own == name);
                *is_other |= given != parameters.len() || !graph.kwargs(id).all(|(name, _)| is_named(name));
            }
        }
    }
    let mut by_position: FxHashMap<&str, Vec<Vec<Type>>> = FxHashMap::default();
    for graph in graphs.iter().take(1) {
        for id in graph.ids().filter(|&id| graph.node(id).op == Op::Call && !graph.args(id).is_empty()) {
            if named.contains_key(graph.target(id)) {
                let types = graph.args(id).iter().map(|&value| type_of(graph, value));
                by_position.entry(graph.target(id)).or_default().push(types.collect());
            }
        }
    }
    let each = named.iter().map(|(target, (parameters, is_other))| {
        let given = by_position.get(target.as_str()).map_or(&[][..], Vec::as_slice);
        let facts = if *is_other { None } else { schema(target, parameters, given) };
        (target.clone(), facts)
    });
    each.collect()
}

/// Makes graphs say what is known of operators.
pub fn describe(graphs: &mut [Graph], described: &Described) {
    for graph in graphs {
        for (target, facts) in described {
            match facts {
                Some(facts) => graph.facts.push((target.clone(), facts.clone())),
                None => {
                    let is_by_name = |id: &NodeId| graph.target(*id) == target && graph.args(*id).is_empty();
                    for id in graph.ids().filter(is_by_name).collect::<Vec<_>>() {
                        let names: BTreeSet<&str> = graph.kwargs(id).map(|(name, _)| name).collect();
                        let names = names.into_iter().collect::<Vec<_>>().join(", ");
                        graph.node_mut(id).target =
                            graph.intern_target(&format!("{target} (by name: {names})"));
                    }
                }
            }
        }
    }
}

/// The operator of a functional call, its parameters, and whether it returns something that is used.
fn named_by(graph: &Graph, id: NodeId) -> Option<(String, Vec<Parameter>, bool)> {
    let &[Value::Function(target)] = graph.args(id) else { return None };
    let given: BTreeMap<&str, Value> = graph.kwargs(id).collect();
    let Value::List(bases) = *given.get("_all_bases")? else { return None };
    let bases = graph.values(bases);
    let (mut parameters, mut written) = (Vec::new(), Vec::new());
    for (name, value) in graph.kwargs(id) {
        match name.strip_prefix('_') {
            None => parameters.push((name.to_string(), false, type_of(graph, value))),
            Some(rest) => {
                let Some(name) = rest.strip_suffix("_base_index") else { continue };
                // Of a view of a base no type is recorded.
                let is_view = given.keys().any(|key| {
                    let said = key.strip_prefix('_').and_then(|key| key.strip_prefix(name));
                    said.is_some_and(|said| matches!(said, "_alias" | "_size" | "_slice_dim"))
                });
                let base = match value {
                    Value::Int(at) => bases.get(usize::try_from(at).ok()?).copied(),
                    _ => None,
                };
                let (word, more) = base.map_or(("Tensor", None), |base| type_of(graph, base));
                written.push((name.to_string(), true, (word, more.filter(|_| !is_view))));
            }
        }
    }
    let written_names: Vec<String> = written.iter().map(|(name, ..): &Parameter| name.clone()).collect();
    parameters.extend(written);
    let Out::Tuple(outs) = graph.node(id).out else { return None };
    let results = graph.outs(outs).len().checked_sub(bases.len())?;
    // A name of the operator's own may begin so too.
    let is_own = |key: &str| {
        let rest = key.strip_prefix('_').filter(|rest| *rest != "all_bases");
        rest.is_some_and(|rest| !written_names.iter().any(|name| rest.starts_with(&format!("{name}_"))))
    };
    let is_own = given.keys().any(|key| is_own(key));
    let returns =
        is_own || graph.outs(outs)[..results].iter().any(|out| !matches!(out, Out::Absent | Out::None));
    Some((graph.text(target).to_string(), parameters, returns))
}

fn type_of(graph: &Graph, value: Value) -> Type {
    match value {
        Value::Node(node) => match graph.node(node).out {
            Out::Tensor(tensor) => {
                let tensor = graph.tensor(tensor);
                let sizes = graph.dims(tensor.shape).iter().map(|dim| dim.known());
                ("Tensor", Some(format!("{:?}{:?}", tensor.dtype, sizes.collect::<Vec<_>>())))
            }
            Out::Absent => ("Tensor", None),
            _ => ("SymInt", Some("number".to_string())),
        },
        Value::Bool(_) => ("bool", Some("bool".to_string())),
        Value::Int(_) | Value::Symbolic(_) => ("SymInt", Some("number".to_string())),
        Value::Float(_) => ("float", Some("number".to_string())),
        Value::Str(_) => ("str", Some("str".to_string())),
        Value::List(span) => match graph.values(span).first() {
            Some(Value::Node(_)) => ("Tensor[]", Some("list".to_string())),
            _ => ("SymInt[]", Some("list".to_string())),
        },
        _ => ("Tensor?", None),
    }
}

/// The facts of a schema that all calls by position fit; `None` where several orders do, or none.
fn schema(target: &str, parameters: &[Parameter], given: &[Vec<Type>]) -> Option<String> {
    let fits = |parameter: &Parameter, place: usize| {
        given.iter().all(|types| {
            let more = types.get(place).and_then(|(_, more)| more.as_ref());
            more.zip(parameter.2.1.as_ref()).is_none_or(|(one, other)| one == other)
        })
    };
    if parameters.len() > MOST || given.iter().any(|types| types.len() != parameters.len()) {
        return None;
    }
    let written: Vec<&Parameter> = parameters.iter().filter(|(_, is_written, _)| *is_written).collect();
    let others: Vec<&Parameter> = parameters.iter().filter(|(_, is_written, _)| !is_written).collect();
    // An order: for each place whether what is written stands there.
    let orders = (0..1u32 << parameters.len()).filter(|set| set.count_ones() as usize == written.len());
    let laid = orders.map(|set| {
        let (mut written, mut others) = (written.iter(), others.iter());
        let of_place = |place: usize| if set >> place & 1 == 1 { written.next() } else { others.next() };
        (0..parameters.len()).filter_map(of_place).copied().collect::<Vec<&Parameter>>()
    });
    let mut fitting =
        laid.filter(|laid| laid.iter().enumerate().all(|(place, parameter)| fits(parameter, place)));
    let order = fitting.next()?;
    if fitting.next().is_some() {
        return None;
    }
    let mark = |at: usize| char::from(b'a' + at as u8);
    let words = order.iter().enumerate().map(|(at, (name, is_written, (word, _)))| match is_written {
        true => format!("Tensor({}!){} {name}", mark(at), word.trim_start_matches("Tensor")),
        false => format!("{word} {name}"),
    });
    let name = target.strip_suffix(".default").unwrap_or(target).replacen('.', "::", 1);
    let schema = format!("{name}({}) -> ()", words.collect::<Vec<_>>().join(", "));
    Some(serde_json::json!({ "schema": schema }).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(name: &str, is_written: bool, more: &str) -> Parameter {
        (name.to_string(), is_written, ("Tensor", Some(more.to_string())))
    }

    #[test]
    fn an_order_is_told_by_types_or_not_at_all() {
        let parameters = [parameter("i", false, "i64[2]"), parameter("x", true, "f32[4]")];
        let given = |types: [&str; 2]| vec![types.map(|more| ("Tensor", Some(more.to_string()))).to_vec()];
        let of = |given: &[Vec<Type>]| schema("my.fill.default", &parameters, given);
        let told = of(&given(["f32[4]", "i64[2]"])).unwrap();
        assert!(told.contains("my::fill(Tensor(a!) x, Tensor i) -> ()"), "{told}");
        assert!(of(&given(["f32[4]", "f32[4]"])).is_none());
        let alike = [parameter("y", false, "f32[4]"), parameter("x", true, "f32[4]")];
        assert!(schema("my.fill.default", &alike, &given(["f32[4]", "f32[4]"])).is_none());
        assert!(schema("my.fill.default", &alike, &[]).is_none());
        assert!(schema("my.fill.default", &alike[1..], &[]).is_some());
    }
}
