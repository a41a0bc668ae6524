//! Evaluating a body: what is known without running (sizes, arguments, dtypes, loops) is computed, operators on tensors
//! become calls of the graph.

use super::Rounded;
use super::syntax::{Definitions, Expr, Statement, dtype_called};
use crate::graph::{Dtype, DtypeClass, Editor, NodeId, Op, Out, Str, Tensor, Value, contiguous_strides};
use crate::limits::Limit;
use crate::ops::shape::record;
use crate::ops::{Bound, Default, Ops, Param, Schema};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// A value of a body.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Item {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Dtype(Dtype),
    List(Vec<Item>),
    Tensor(NodeId),
}

/// A value, or why a call cannot be written out.
pub(super) type Made<T = Item> = Result<T, String>;

/// The variables of a body.
type Names = FxHashMap<String, Item>;

/// Helpers that call each other, at most.
const MOST_NESTED: usize = 64;

/// How many times the elements of the largest tensor that a call takes or gives one of its term may have. Sorting compares
/// each element with each.
const MOST_TIMES: i64 = 64;

/// Writes calls out.
pub(super) struct Writer<'f> {
    pub editor: Editor,
    ops: Ops,
    file: &'f Definitions,
    /// The call that is written out.
    of: NodeId,
    device: Option<Str>,
    /// Nodes that it may still become, and the elements that one of them may have.
    left: u64,
    most_elements: i64,
    nested: usize,
    /// How the term may be rounded otherwise.
    most: Rounded,
    /// How it is, by what it computes with.
    least: Rounded,
    may_be_exact: bool,
    to_the_bit: bool,
    /// What arguments hold afterwards.
    writes: Vec<(&'f str, Item)>,
}

impl<'f> Writer<'f> {
    pub fn new(editor: Editor, file: &'f Definitions) -> Writer<'f> {
        let ops = Ops::of(editor.graph());
        Writer {
            editor,
            ops,
            file,
            of: NodeId(0),
            device: None,
            left: 0,
            most_elements: 0,
            nested: 0,
            most: Rounded::Alike,
            least: Rounded::Alike,
            may_be_exact: false,
            to_the_bit: false,
            writes: Vec::new(),
        }
    }

    /// Writes a call out, whose term may be rounded so; or in any way, where what it calls exact may be and is true.
    /// `to_the_bit`: results have to be those of its kernel. After an error the nodes that were added are of no use.
    pub fn write(&mut self, id: NodeId, most: Rounded, may_be_exact: bool, to_the_bit: bool) -> Made<()> {
        let graph = self.editor.graph();
        let info = self.ops.get(graph, id);
        let schema = info.schema.clone().ok_or("it has no schema")?;
        let (file, target) = (self.file, graph.target(id));
        let is_in_place = !file.operators.contains_key(target);
        // What is not given is not written.
        let is_given = |param: &usize| {
            let known = schema.params.get(*param);
            known.and_then(|known| graph.argument(id, *param, &known.name)) != Some(Value::None)
        };
        let written: Vec<usize> = info.written(graph, id).filter(is_given).collect();
        let views = schema.returns.iter().any(|of| of.alias.is_some());
        if if is_in_place { written != [0] } else { views } {
            return Err("it writes another argument, or returns a view".into());
        }
        let definition = file.of(target).ok_or("it is not defined")?;
        if self.ops.draws(graph, id) {
            return Err("it draws".into());
        }
        let mut names = self.arguments(id, &schema)?;
        let results = if is_in_place { None } else { Some(self.results(id, &schema)?) };
        let elements = |of: &Tensor| graph.sizes(of.shape).and_then(|sizes| numel(&sizes)).unwrap_or(0);
        let shown = graph.inputs(id).into_iter().chain([id]);
        let shown = shown.flat_map(|id| graph.tensors_of(graph.node(id).out)).map(|at| graph.tensor(at));
        let (mut largest, mut device) = (1, None);
        for tensor in shown {
            (largest, device) = (elements(tensor).max(largest), Some(tensor.device));
        }
        (self.of, self.device, self.nested) = (id, device, 0);
        (self.most, self.least, self.may_be_exact) = (most, Rounded::Regrouped, may_be_exact);
        self.to_the_bit = to_the_bit;
        self.writes.clear();
        self.left = Limit::Definition.standard();
        self.most_elements = largest.saturating_mul(MOST_TIMES);
        let body = &file.bodies[definition.body];
        let Some(results) = results else { return self.write_in_place(id, body, names) };
        let value = self.term(body, &mut names)?.ok_or("its body returns nothing")?;
        let values = match value {
            Item::List(items) if results.is_list => items,
            value => vec![value],
        };
        // All are looked at before any is put in its place.
        let mut places = Vec::with_capacity(results.nodes.len());
        for &(node, at) in &results.nodes {
            let tensor = match values.get(at) {
                Some(&Item::Tensor(tensor)) => tensor,
                Some(Item::None) if self.editor.users(node).is_empty() => {
                    self.editor.erase(node);
                    continue;
                }
                _ => return Err(format!("it has no result {at}")),
            };
            let (tensor, format) = self.laid_out(node, tensor)?;
            places.push((node, tensor, format));
        }
        for (node, tensor, format) in places {
            let target = self.editor.graph_mut().intern_target("aten.clone.default");
            self.editor.set_args(node, &[Value::Node(tensor)]);
            let graph = self.editor.graph_mut();
            let mut pairs = Vec::new();
            if let Some(format) = format {
                let (key, format) = (graph.intern("memory_format"), graph.intern(format));
                pairs.extend([Value::Str(key), Value::MemoryFormat(format)]);
            }
            let kwargs = graph.push_values(&pairs);
            let node = graph.node_mut(node);
            (node.target, node.kwargs) = (target, kwargs);
        }
        let writes = std::mem::take(&mut self.writes);
        let is_said = |at: usize| {
            writes.iter().any(|(name, _)| schema.params.get(at).is_some_and(|of| of.name == *name))
        };
        if !written.into_iter().all(is_said) {
            return Err("it writes what is not said".into());
        }
        for (name, value) in writes {
            match (names.get(name), value) {
                (_, Item::None) => {}
                (Some(&Item::Tensor(to)), Item::Tensor(value)) => {
                    self.call("aten.copy_.default", &[Value::Node(to), Value::Node(value)], &[])?;
                }
                _ => return Err("it writes what is no tensor".into()),
            }
        }
        if results.is_list {
            self.editor.erase(id);
        }
        self.ops.update(self.editor.graph());
        Ok(())
    }

    /// Whether a call is given tensors of dtypes with which its definition was held against PyTorch: one for all but those
    /// that its definition names, a float where it rounds, and nothing complex.
    pub fn is_of_its_dtypes(&self, id: NodeId) -> bool {
        let (graph, info) = (self.editor.graph(), self.ops.get(self.editor.graph(), id));
        let Some((schema, definition)) = info.schema.as_ref().zip(self.file.of(graph.target(id))) else {
            return false;
        };
        let Ok(bound) = Bound::new(graph, id, schema) else { return false };
        let of = |name: &str| {
            let nodes = bound.nodes(name).into_iter().filter(|node| node.index() < graph.len());
            nodes.filter_map(|node| graph.tensor_of(node)).map(|tensor| tensor.dtype).collect::<Vec<_>>()
        };
        let own = |param: &Param| definition.takes.iter().find(|(name, _)| *name == param.name);
        let (named, others): (Vec<&Param>, Vec<&Param>) =
            schema.params.iter().partition(|param| own(param).is_some());
        let mut values = others.into_iter().flat_map(|param| of(&param.name));
        let first = values.next();
        let is_float = |dtype: Dtype| dtype.class() == DtypeClass::Float;
        let are_values = values.all(|dtype| Some(dtype) == first)
            && first.is_none_or(|dtype| {
                is_float(dtype) || !definition.rounds && dtype.class() < DtypeClass::Float
            });
        let is_own = |param: &&Param| {
            own(param).is_some_and(|&(_, dtype)| {
                let is_one = |found| found == dtype || is_float(dtype) && Some(found) == first;
                of(&param.name).into_iter().all(is_one)
            })
        };
        are_values && named.iter().all(is_own)
    }

    /// Puts copies into the first argument, a tensor or a list of tensors, in the place of a call that works in place: into one
    /// tensor of a list after the other, as PyTorch does on the CPU, so that each is computed of what the last ones left.
    fn write_in_place(&mut self, id: NodeId, body: &'f [Statement], names: Names) -> Made<()> {
        let given = self.editor.graph().arg(id, 0).ok_or("it is given nothing to write to")?;
        let takes_number = names.values().any(|item| matches!(item, Item::Float(_)));
        let (tensors, is_list) = match self.item(given)? {
            Item::List(tensors) if self.editor.users(id).is_empty() => (tensors, true),
            tensor @ Item::Tensor(_) => (vec![tensor], false),
            _ => return Err("what it writes to is not known".into()),
        };
        for (at, tensor) in tensors.iter().enumerate() {
            let mut own = names.clone();
            for item in own.values_mut().filter(|_| is_list) {
                match item {
                    Item::List(all) if all.len() == tensors.len() => *all = vec![all[at].clone()],
                    _ => {}
                }
            }
            let value = match (self.term(body, &mut own)?, is_list) {
                (Some(Item::List(mut values)), true) if values.len() == 1 => values.pop(),
                (value, _) => value,
            };
            let (&Item::Tensor(tensor), Some(Item::Tensor(value))) = (tensor, value) else {
                return Err("it writes what is no tensor".into());
            };
            if self.sizes(tensor)? != self.sizes(value)? {
                return Err("it writes other sizes".into());
            }
            // `_foreach_mul_.Scalar` does.
            if takes_number && matches!(self.tensor(tensor)?.dtype, Dtype::F16 | Dtype::BF16) {
                return Err("in place it may round a number before it computes".into());
            }
            let args = [Value::Node(tensor), Value::Node(value)];
            if is_list {
                self.call("aten.copy_.default", &args, &[])?;
            } else {
                let target = self.editor.graph_mut().intern_target("aten.copy_.default");
                self.editor.set_args(id, &args);
                let kwargs = self.editor.graph_mut().push_values(&[]);
                let node = self.editor.graph_mut().node_mut(id);
                (node.target, node.kwargs) = (target, kwargs);
            }
        }
        if is_list {
            self.editor.erase(id);
        }
        self.ops.update(self.editor.graph());
        Ok(())
    }

    /// Who has the results of a call: the call itself, or those who take its items.
    fn results(&self, id: NodeId, schema: &Schema) -> Made<Results> {
        let graph = self.editor.graph();
        if let ([only], Out::Tensor(_)) = (schema.returns.as_slice(), graph.node(id).out)
            && only.ty == "Tensor"
        {
            return Ok(Results { nodes: vec![(id, 0)], is_list: false });
        }
        let item = |&user: &NodeId| match (graph.target(user), graph.args(user)) {
            ("operator.getitem", &[Value::Node(of), Value::Int(at)])
                if of == id && graph.node(user).op == Op::Call && graph.tensor_of(user).is_some() =>
            {
                usize::try_from(at).map(|at| (user, at)).map_err(|_| "an item from behind".to_string())
            }
            _ => Err("a result is taken as a whole".to_string()),
        };
        let nodes = self.editor.users(id).iter().map(item).collect::<Made<Vec<_>>>()?;
        Ok(Results { nodes, is_list: true })
    }

    /// A tensor with the values of `tensor`, a copy of which in its own memory format, or in the one that is named, is what
    /// `node` records.
    fn laid_out(&mut self, node: NodeId, tensor: NodeId) -> Made<(NodeId, Option<&'static str>)> {
        let graph = self.editor.graph();
        let (wanted, found) = (self.tensor(node)?, self.tensor(tensor)?);
        if wanted.dtype != found.dtype || wanted.shape != found.shape {
            return Err("its record is not that of the term".into());
        }
        let sizes = self.sizes(node)?;
        let strides = graph.sizes(wanted.stride).ok_or("its strides are not known")?;
        let is = |other: &[i64]| is_same_layout(&sizes, Some(&strides), Some(other));
        if graph.sizes(found.stride).is_some_and(|found| is(&found)) {
            return Ok((tensor, None));
        }
        if is(&contiguous_strides(&sizes)) {
            return Ok((tensor, Some("contiguous_format")));
        }
        // Dimensions in the order in which elements lie in memory.
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|&dim| Reverse(strides.get(dim).copied()));
        let dense = contiguous_strides(&order.iter().map(|&dim| sizes[dim]).collect::<Vec<_>>());
        let place = |dim: usize| order.iter().position(|&at| at == dim).unwrap_or_default();
        let places: Vec<usize> = (0..sizes.len()).map(place).collect();
        if !is(&places.iter().map(|&at| dense[at]).collect::<Vec<_>>()) {
            return Err("its strides are not those of the term".into());
        }
        let format = Value::MemoryFormat(self.editor.graph_mut().intern("contiguous_format"));
        let turned = self.permuted(tensor, &order)?;
        let copy = self.call("aten.clone.default", &[Value::Node(turned)], &[("memory_format", format)])?;
        let Item::Tensor(copy) = copy else { return Err("a copy is no tensor".into()) };
        Ok((self.permuted(copy, &places)?, None))
    }

    fn permuted(&mut self, tensor: NodeId, order: &[usize]) -> Made<NodeId> {
        let order: Vec<Value> = order.iter().map(|&dim| Value::Int(dim as i64)).collect();
        let order = self.list(&order);
        match self.call("aten.permute.default", &[Value::Node(tensor), order], &[])? {
            Item::Tensor(turned) => Ok(turned),
            _ => Err("a view is no tensor".into()),
        }
    }

    /// The arguments of a call by name.
    fn arguments(&self, id: NodeId, schema: &Schema) -> Made<Names> {
        let mut names = Names::default();
        for (at, param) in schema.params.iter().enumerate() {
            let positional = if param.keyword_only { None } else { self.editor.graph().arg(id, at) };
            let given = positional.or_else(|| self.editor.graph().kwarg(id, &param.name));
            let item = match (given, &param.default) {
                (Some(value), _) => self.item(value)?,
                (None, Some(default)) => of_default(default, &param.ty),
                (None, None) if param.ty.ends_with('?') => Item::None,
                (None, None) => return Err(format!("it is given no {}", param.name)),
            };
            names.insert(param.name.clone(), item);
        }
        Ok(names)
    }

    fn item(&self, value: Value) -> Made {
        let graph = self.editor.graph();
        Ok(match value {
            Value::None | Value::Device(_) | Value::Layout(_) => Item::None,
            Value::Bool(b) => Item::Bool(b),
            Value::Int(n) => Item::Int(n),
            Value::Float(x) => Item::Float(x),
            Value::Str(text) => Item::Text(graph.text(text).to_string()),
            Value::Dtype(dtype) => Item::Dtype(dtype),
            Value::Node(node) => {
                self.sizes(node)?;
                Item::Tensor(node)
            }
            Value::List(span) => {
                Item::List(graph.values(span).iter().map(|&value| self.item(value)).collect::<Made<_>>()?)
            }
            _ => return Err("an argument is not known".into()),
        })
    }

    /// What is recorded of a node that is a tensor.
    pub fn tensor(&self, id: NodeId) -> Made<&Tensor> {
        let graph = self.editor.graph();
        if id.index() >= graph.len() {
            return Err("an argument is missing".into());
        }
        graph.tensor_of(id).ok_or_else(|| format!("{} is no tensor that is known", graph.name(id)))
    }

    pub fn sizes(&self, id: NodeId) -> Made<Vec<i64>> {
        let shape = self.tensor(id)?.shape;
        self.editor.graph().sizes(shape).ok_or_else(|| "a size is symbolic".to_string())
    }

    /// Adds a call before the one that is written out.
    pub fn call(&mut self, target: &str, args: &[Value], kwargs: &[(&str, Value)]) -> Made {
        self.left = self.left.checked_sub(1).ok_or("its term is too long")?;
        let word = target.split('.').nth(1).unwrap_or("part");
        let base = format!("{}_{word}", self.editor.graph().name(self.of));
        let id = self.editor.insert_before(Some(self.of), &base, target, args, kwargs, Out::Absent);
        self.ops.update(self.editor.graph());
        let out =
            record(self.editor.graph_mut(), &self.ops, id, self.device).map_err(|error| error.to_string())?;
        self.editor.graph_mut().node_mut(id).out =
            out.ok_or_else(|| format!("nothing is known of {target}"))?;
        if !self.ops.get(self.editor.graph(), id).kind.is_rational() {
            self.least = Rounded::Otherwise;
        }
        match numel(&self.sizes(id)?) {
            Some(elements) if elements <= self.most_elements => Ok(Item::Tensor(id)),
            _ => Err("its term is too large".into()),
        }
    }

    pub fn list(&mut self, values: &[Value]) -> Value {
        Value::List(self.editor.graph_mut().push_values(values))
    }

    /// What a body returns, if it does, where that may be rounded as it is.
    fn term(&mut self, body: &'f [Statement], names: &mut Names) -> Made<Option<Item>> {
        let value = self.run(body, names)?;
        if self.least > self.most { Err("its kernel rounds elsewhere".into()) } else { Ok(value) }
    }

    /// Runs statements; what they return, if they do.
    fn run(&mut self, body: &'f [Statement], names: &mut Names) -> Made<Option<Item>> {
        for statement in body {
            match statement {
                Statement::Let(name, value) => {
                    let value = self.value(value, names)?;
                    names.insert(name.clone(), value);
                }
                Statement::For(name, list, body) => {
                    for item in elements(self.value(list, names)?)? {
                        names.insert(name.clone(), item);
                        if let Some(value) = self.run(body, names)? {
                            return Ok(Some(value));
                        }
                    }
                }
                Statement::Only(condition) => {
                    if !is_true(&self.value(condition, names)?)? {
                        return Err("its definition does not hold for these arguments".into());
                    }
                }
                Statement::Exact(condition) => {
                    if self.may_be_exact && is_true(&self.value(condition, names)?)? {
                        self.most = Rounded::Otherwise;
                    }
                }
                Statement::Writes(name, value) => {
                    let value = self.value(value, names)?;
                    self.writes.push((name, value));
                }
                Statement::Return(value) => return self.value(value, names).map(Some),
            }
        }
        Ok(None)
    }

    fn values(&mut self, all: &'f [Expr], names: &Names) -> Made<Vec<Item>> {
        all.iter().map(|one| self.value(one, names)).collect()
    }

    fn value(&mut self, expr: &'f Expr, names: &Names) -> Made {
        Ok(match expr {
            Expr::Int(n) => Item::Int(*n),
            Expr::Float(x) => Item::Float(*x),
            Expr::Text(text) => Item::Text(text.clone()),
            Expr::Name(name) => match names.get(name) {
                Some(item) => item.clone(),
                None if name == "to_the_bit" => Item::Bool(self.to_the_bit),
                None => constant(name).ok_or_else(|| format!("{name} is not defined"))?,
            },
            Expr::List(all) => Item::List(self.values(all, names)?),
            Expr::Each(element, name, list, condition) => {
                let (mut inner, mut all) = (names.clone(), Vec::new());
                for item in elements(self.value(list, names)?)? {
                    inner.insert(name.clone(), item);
                    let is_wanted = match condition {
                        Some(condition) => is_true(&self.value(condition, &inner)?)?,
                        None => true,
                    };
                    if is_wanted {
                        all.push(self.value(element, &inner)?);
                    }
                }
                Item::List(all)
            }
            Expr::Item(list, at) => {
                let (list, at) = (elements(self.value(list, names)?)?, self.value(at, names)?);
                let at = match at {
                    Item::Int(at) if at < 0 => at + list.len() as i64,
                    Item::Int(at) => at,
                    _ => return Err("an index is no number".into()),
                };
                let item = usize::try_from(at).ok().and_then(|at| list.get(at));
                item.cloned().ok_or("an index is out of range")?
            }
            Expr::Part(list, from, to) => {
                let list = elements(self.value(list, names)?)?;
                let mut bound = |at: &'f Option<Box<Expr>>, default: usize| match at {
                    Some(at) => Ok(place(&self.value(at, names)?, list.len())?.min(list.len())),
                    None => Ok::<usize, String>(default),
                };
                let (from, to) = (bound(from, 0)?, bound(to, list.len())?);
                Item::List(list.get(from..to.max(from)).unwrap_or_default().to_vec())
            }
            Expr::If(condition, then, other) => match is_true(&self.value(condition, names)?)? {
                true => self.value(then, names)?,
                false => self.value(other, names)?,
            },
            Expr::Unary(sign, value) => {
                let value = self.value(value, names)?;
                self.unary(sign, value)?
            }
            Expr::Binary(sign @ ("and" | "or"), left, right) => {
                let left = self.value(left, names)?;
                if is_true(&left)? == (*sign == "or") { left } else { self.value(right, names)? }
            }
            Expr::Binary(sign, left, right) => {
                let (left, right) = (self.value(left, names)?, self.value(right, names)?);
                self.binary(sign, left, right)?
            }
            Expr::Call(name, args) => {
                let args = self.values(args, names)?;
                let Some(function) = self.file.functions.get(name) else { return self.apply(name, &args) };
                if function.params.len() != args.len() || self.nested == MOST_NESTED {
                    return Err(format!("{name} is called with {} arguments", args.len()));
                }
                self.nested += 1;
                let mut inner: Names = function.params.iter().cloned().zip(args).collect();
                let value = self.run(&function.body, &mut inner)?;
                self.nested -= 1;
                value.ok_or_else(|| format!("{name} returns nothing"))?
            }
        })
    }
}

/// The nodes that have the results of a call, each with the number of its result.
struct Results {
    nodes: Vec<(NodeId, usize)>,
    is_list: bool,
}

/// How many elements a tensor of these sizes has; `None` where 64 bits do not hold it.
pub(super) fn numel(sizes: &[i64]) -> Option<i64> {
    sizes.iter().try_fold(1i64, |product, &size| product.checked_mul(size))
}

/// Whether strides say the same of a tensor of these sizes: those of single elements mean nothing.
fn is_same_layout(sizes: &[i64], one: Option<&[i64]>, other: Option<&[i64]>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return false };
    let mut pairs = sizes.iter().zip(one.iter().zip(other));
    sizes.contains(&0) || pairs.all(|(&size, (one, other))| size == 1 || one == other)
}

fn of_default(default: &Default, ty: &str) -> Item {
    match default {
        Default::None => Item::None,
        Default::Bool(b) => Item::Bool(*b),
        Default::Int(n) if ty.contains("[]") => Item::List(vec![Item::Int(*n)]),
        Default::Int(n) => Item::Int(*n),
        Default::Float(x) => Item::Float(*x),
        Default::Ints(all) => Item::List(all.iter().map(|&n| Item::Int(n)).collect()),
        // An enumeration of losses, by its words.
        Default::Text(text) => match text.as_str() {
            "Mean" => Item::Int(1),
            "Sum" => Item::Int(2),
            text => Item::Text(text.to_string()),
        },
    }
}

fn constant(name: &str) -> Option<Item> {
    Some(match name {
        "None" => Item::None,
        "True" => Item::Bool(true),
        "False" => Item::Bool(false),
        "inf" => Item::Float(f64::INFINITY),
        "nan" => Item::Float(f64::NAN),
        "pi" => Item::Float(std::f64::consts::PI),
        name => Item::Dtype(dtype_called(name)?),
    })
}

/// The elements of a list.
pub(super) fn elements(item: Item) -> Made<Vec<Item>> {
    match item {
        Item::List(items) => Ok(items),
        Item::Text(text) => Ok(text.chars().map(|letter| Item::Text(letter.to_string())).collect()),
        other => Err(format!("{other:?} is no list")),
    }
}

/// An index, counted from behind where it is negative.
fn place(at: &Item, len: usize) -> Made<usize> {
    match *at {
        Item::Int(at) if at < 0 => Ok((at + len as i64).max(0) as usize),
        Item::Int(at) => Ok(at as usize),
        _ => Err("an index is no number".into()),
    }
}

/// What a condition comes to.
pub(super) fn is_true(item: &Item) -> Made<bool> {
    Ok(match item {
        Item::None => false,
        Item::Bool(b) => *b,
        Item::Int(n) => *n != 0,
        Item::Float(x) => *x != 0.0,
        Item::List(items) => !items.is_empty(),
        Item::Text(text) => !text.is_empty(),
        Item::Dtype(_) => true,
        Item::Tensor(_) => return Err("a condition looks at elements".into()),
    })
}
