//! What a graph's file says about its operators.
//!
//! A file states schema facts per target ([`Graph::facts`]). The table of operators wins for the targets that it
//! knows; [`facts_disagreements`] says where the file contradicts it. For other targets the facts give an
//! [`OpInfo`]: what is read, written and aliased is known, what is computed is not.
//!
//! The text of a schema lacks what PyTorch adds from elsewhere (the aliases of list results, for example), so
//! the other fields of the facts complete it. Their format is `ops[target]` of fxjson/1.

use super::schema::{Param, Schema};
use super::{Collective, Kind, OpInfo, Random, by_target, schemas};
use crate::graph::Graph;
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::fmt;

/// `ops[target]` of a file.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Facts {
    schema: Option<String>,
    args: Vec<Argument>,
    returns: Vec<Result>,
    is_mutable: bool,
    mutated_args: Option<Vec<usize>>,
    ret_aliases_arg: Option<Vec<(usize, usize)>>,
    tags: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Argument {
    name: String,
    alias: Option<Alias>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Result {
    alias: Option<Alias>,
    elem_alias: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Alias {
    before: Vec<String>,
    write: bool,
}

/// The facts of one graph, by target.
pub(super) struct FactsOf<'a>(FxHashMap<&'a str, &'a str>);

impl<'a> FactsOf<'a> {
    pub(super) fn new(graph: &'a Graph) -> FactsOf<'a> {
        FactsOf(graph.facts.iter().map(|(target, text)| (target.as_str(), text.as_str())).collect())
    }

    /// What the facts say about `target`, else PyTorch's own schema of it: unknown where there is neither.
    pub(super) fn info(&self, target: &str) -> OpInfo {
        let facts = self.0.get(target).and_then(|text| serde_json::from_str::<Facts>(text).ok());
        facts
            .and_then(|facts| facts.info(target))
            .or_else(|| of_pytorch(target))
            .unwrap_or_else(|| OpInfo::unknown(target))
    }
}

/// What PyTorch's own schema of a target says.
fn of_pytorch(target: &str) -> Option<OpInfo> {
    let (schema, draws) = schemas::of(target)?;
    info_of_schema(target, schema, draws)
}

/// What follows from a schema, and from whether the operator draws random numbers.
fn info_of_schema(target: &str, schema: &str, draws: bool) -> Option<OpInfo> {
    let tags = if draws { vec!["nondeterministic_seeded".to_string()] } else { Vec::new() };
    Facts { schema: Some(schema.to_string()), tags, ..Facts::default() }.info(target)
}

/// The same operator as one that is not computed: the name of a target, with `mark`, and the facts that a graph states
/// about it.
pub(crate) fn uncomputed(info: &OpInfo, mark: &str) -> Option<(String, String)> {
    let schema = info.schema.as_ref()?.to_string();
    let tags: &[&str] = if info.is_random() { &["nondeterministic_seeded"] } else { &[] };
    let facts = serde_json::json!({ "schema": schema, "is_mutable": info.effect, "tags": tags });
    Some((format!("{} ({mark})", info.target), facts.to_string()))
}

/// The kind of an operator that writes in place what another one gives element by element: `aten.elu.default` for
/// `aten.elu_.default`. Both are one function.
fn kind_of_functional(target: &str) -> Option<Kind> {
    let (name, overload) = target.strip_prefix("aten.")?.rsplit_once('.')?;
    let functional = by_target(&format!("aten.{}.{overload}", name.strip_suffix('_')?))?;
    (functional.kind == Kind::Pointwise).then_some(Kind::Pointwise)
}

impl Facts {
    fn info(&self, target: &str) -> Option<OpInfo> {
        let mut schema = Schema::parse(self.schema.as_deref()?).ok()?;
        self.complete(&mut schema);
        let communicates = schema.params.iter().any(names_group);
        let kind = if communicates {
            Kind::Collective(Collective::Other)
        } else if self.has_tag("nondeterministic_seeded") {
            Kind::Random(Random::Opaque)
        } else {
            kind_of_functional(target).unwrap_or(Kind::Opaque)
        };
        let writes = schema.mutated().next().is_some();
        let effect = (!writes && (self.is_mutable || schema.returns.is_empty()))
            || schema.returns.iter().any(|r| r.ty.ends_with("Work"))
            || self.has_tag("maybe_aliasing_or_mutating");
        Some(OpInfo { target: target.to_string(), short: "", schema: Some(schema), kind, effect })
    }

    fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|t| t == tag)
    }

    /// Adds to the schema what only the other fields say.
    fn complete(&self, schema: &mut Schema) {
        let set = |alias: &Option<Alias>| alias.as_ref().and_then(|a| letter(&a.before));
        for argument in &self.args {
            let Some(param) = schema.params.iter_mut().find(|p| p.name == argument.name) else { continue };
            param.alias = param.alias.or(set(&argument.alias));
            param.write |= argument.alias.as_ref().is_some_and(|a| a.write);
        }
        for (result, fact) in schema.returns.iter_mut().zip(&self.returns) {
            result.alias = result.alias.or(set(&fact.alias)).or(letter(&fact.elem_alias));
            result.write |= fact.alias.as_ref().is_some_and(|a| a.write);
        }
        for &index in self.mutated_args.iter().flatten() {
            let fresh = unused_letter(schema);
            if let Some(param) = schema.params.get_mut(index) {
                param.write = true;
                param.alias = param.alias.or(fresh);
            }
        }
        for &(result, param) in self.ret_aliases_arg.iter().flatten() {
            join(schema, result, param);
        }
        if may_hand_back(schema) {
            join(schema, 0, 0);
        }
    }
}

/// Whether an operator gives a view where strides allow it, and else a copy of the elements in the order of their
/// indices.
pub fn views_where_strides_allow(schema: &Schema) -> bool {
    const ATEN: [&str; 4] = ["flatten", "ravel", "reshape", "reshape_as"];
    schema.namespace == "aten" && ATEN.contains(&schema.name.as_str())
}

/// Whether an operator may hand back its first argument, or a window of it, although its schema says that the result
/// is new: a cast to what it is, dimensions added to none. PyTorch makes these of other operators
/// (`CompositeImplicitAutograd` in `aten/src/ATen/native/native_functions.yaml`). Dropouts are left out: in training
/// they draw.
pub fn may_hand_back(schema: &Schema) -> bool {
    const ATEN: [&str; 16] = [
        "type_as",
        "atleast_1d",
        "atleast_2d",
        "atleast_3d",
        "broadcast_tensors",
        "meshgrid",
        "data",
        "sum_to_size",
        "_cast_Byte",
        "_cast_Char",
        "_cast_Double",
        "_cast_Float",
        "_cast_Half",
        "_cast_Int",
        "_cast_Long",
        "_cast_Short",
    ];
    let is_one = match schema.namespace.as_str() {
        "aten" => ATEN.contains(&schema.name.as_str()),
        "inductor" => schema.name == "_reinterpret_tensor",
        _ => false,
    };
    is_one && schema.returns.len() == 1 && !schema.params.is_empty()
}

/// Makes a result and a parameter share their alias set.
fn join(schema: &mut Schema, result: usize, param: usize) {
    let fresh = unused_letter(schema);
    let (Some(of_result), Some(of_param)) =
        (schema.returns.get(result).map(|r| r.alias), schema.params.get(param).map(|p| p.alias))
    else {
        return;
    };
    let Some(set) = of_param.or(of_result).or(fresh) else { return };
    let replaced = of_result.filter(|&old| old != set);
    for alias in
        schema.params.iter_mut().map(|p| &mut p.alias).chain(schema.returns.iter_mut().map(|r| &mut r.alias))
    {
        if replaced.is_some() && *alias == replaced {
            *alias = Some(set);
        }
    }
    schema.returns[result].alias = Some(set);
    schema.params[param].alias = Some(set);
}

fn letter(sets: &[String]) -> Option<char> {
    sets.iter().flat_map(|s| s.chars()).find(char::is_ascii_lowercase)
}

/// A letter that no alias set has, if one of the 26 is left.
fn unused_letter(schema: &Schema) -> Option<char> {
    let used = |c: char| {
        schema.params.iter().any(|p| p.alias == Some(c)) || schema.returns.iter().any(|r| r.alias == Some(c))
    };
    ('a'..='z').find(|&c| !used(c))
}

/// Whether a parameter names a process group: then the operator communicates.
fn names_group(param: &Param) -> bool {
    match param.name.as_str() {
        "group_name" | "process_group" | "pg" => true,
        "group" => matches!(param.ty.as_str(), "str" | "Any"),
        _ => param.ty.ends_with("ProcessGroup"),
    }
}

/// Where the facts of a file contradict the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FactsDisagreement {
    /// The target.
    pub target: String,
    /// About what.
    pub about: FactsAbout,
}

/// What a file and the table say differently about an operator.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum FactsAbout {
    /// The file's facts are not in the format.
    Unreadable(String),
    /// The names of the parameters.
    Params { table: Vec<String>, file: Vec<String> },
    /// The number of results.
    Results { table: usize, file: usize },
    /// The positions of the parameters that are written.
    Written { table: Vec<usize>, file: Vec<usize> },
    /// (result, parameter) pairs that share storage.
    Aliases { table: Vec<(usize, usize)>, file: Vec<(usize, usize)> },
}

impl fmt::Display for FactsDisagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = &self.target;
        match &self.about {
            FactsAbout::Unreadable(reason) => {
                write!(f, "the file's facts about {target} cannot be read: {reason}")
            }
            FactsAbout::Params { table, file } => write!(
                f,
                "the file says that {target} has the parameters ({}); PyTorch 2.15 has ({})",
                file.join(", "),
                table.join(", ")
            ),
            FactsAbout::Results { table, file } => {
                write!(f, "the file says that {target} has {file} results; PyTorch 2.15 has {table}")
            }
            FactsAbout::Written { table, file } => {
                write!(
                    f,
                    "the file says that {target} writes its parameters {file:?}; PyTorch 2.15 writes {table:?}"
                )
            }
            FactsAbout::Aliases { table, file } => write!(
                f,
                "the file says that (result, parameter) of {target} share storage at {file:?}; PyTorch 2.15 says at \
                 {table:?}"
            ),
        }
    }
}

/// Where the facts of the graph's file contradict the table, in the order of the file.
pub fn facts_disagreements(graph: &Graph) -> Vec<FactsDisagreement> {
    let mut found = Vec::new();
    for (target, text) in &graph.facts {
        let Some(schema) = by_target(target).and_then(|row| row.schema.as_ref()) else { continue };
        let mut add = |about| found.push(FactsDisagreement { target: target.clone(), about });
        let facts = match serde_json::from_str::<Facts>(text) {
            Ok(facts) => facts,
            Err(error) => {
                add(FactsAbout::Unreadable(error.to_string()));
                continue;
            }
        };
        let parsed = match facts.schema.as_deref().map(Schema::parse) {
            Some(Ok(parsed)) => parsed,
            Some(Err(error)) => {
                add(FactsAbout::Unreadable(error.to_string()));
                continue;
            }
            None => continue,
        };
        compare(schema, &parsed, &facts, &mut add);
    }
    found
}

fn compare(table: &Schema, parsed: &Schema, facts: &Facts, add: &mut impl FnMut(FactsAbout)) {
    let names = |params: &[Param]| params.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
    if names(&table.params) != names(&parsed.params) {
        add(FactsAbout::Params { table: names(&table.params), file: names(&parsed.params) });
        return;
    }
    if table.returns.len() != parsed.returns.len() {
        add(FactsAbout::Results { table: table.returns.len(), file: parsed.returns.len() });
        return;
    }
    // The stated sets where the file has them, else what its schema says once completed.
    let mut completed = parsed.clone();
    facts.complete(&mut completed);
    let sorted = |mut pairs: Vec<(usize, usize)>| {
        pairs.sort_unstable();
        pairs
    };
    let written: Vec<usize> = table.mutated().collect();
    let mut file_written = facts.mutated_args.clone().unwrap_or_else(|| completed.mutated().collect());
    file_written.sort_unstable();
    if written != file_written {
        add(FactsAbout::Written { table: written, file: file_written });
    }
    let aliases = sorted(table.aliases().collect());
    let stated = facts.ret_aliases_arg.clone().unwrap_or_else(|| completed.aliases().collect());
    let file_aliases = sorted(stated);
    if aliases != file_aliases {
        add(FactsAbout::Aliases { table: aliases, file: file_aliases });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_operators_of_pytorch_write_and_draw_is_known() {
        let qr = of_pytorch("aten.linalg_qr.default").unwrap();
        assert_eq!((qr.kind, qr.effect, qr.mutated().count()), (Kind::Opaque, false, 0));
        assert_eq!(of_pytorch("aten.linalg_qr.out").unwrap().mutated().collect::<Vec<_>>(), [2, 3]);
        assert_eq!(of_pytorch("aten.poisson.default").unwrap().kind, Kind::Random(Random::Opaque));
        assert!(of_pytorch("mylib.linalg_qr.default").is_none());
    }
}
