//! Graphs of printed modules: nodes with their arguments, as the text has them.

use super::annotation::{self, Annotation};
use super::comment;
use super::module::{Class, Statement};
use super::python::{Call, Py};
use super::symbols::Hints;
use super::{FxError, Known, Runnable};
use crate::graph::{Dtype, Graph, Node, NodeId, Op, OrderingEdge, Out, Symbol, Tensor, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// A graph whose results are as far recorded as the text says.
pub(super) struct Built<'t, 'c> {
    pub(super) graph: Graph,
    /// By node what its annotation says, where it is a tensor's.
    pub(super) annotations: Vec<Option<Annotation>>,
    /// Calls of sub-modules with what these say of their results.
    pub(super) returned: FxHashMap<NodeId, Vec<Option<Annotation>>>,
    /// The sub-modules that nodes get, by attribute.
    pub(super) bodies: Vec<(&'t str, &'c Class<'t>)>,
    /// Inputs whose strides are taken to be row-major.
    pub(super) guessed: Vec<NodeId>,
    /// Inputs of which it is not known where they begin in their storage.
    pub(super) unplaced: Vec<NodeId>,
    /// Whether inputs that may have been symbols are numbers.
    pub(super) has_fixed_numbers: bool,
    pub(super) hints: Hints,
}

/// Builds the graph of a class. `classes` are those that its attributes may name, of two with one name the first one;
/// `runnable` is what one says of the same graph.
pub(super) fn build<'t, 'c>(
    text: &'t str,
    (class, classes): (&'c Class<'t>, impl DoubleEndedIterator<Item = &'c Class<'t>>),
    known: &'c Known,
    runnable: Option<&'c Runnable>,
    symbols: &[Symbol],
) -> Result<Built<'t, 'c>, FxError> {
    let mut graph = Graph::with_capacity(class.inputs.len() + class.statements.len() + 1);
    graph.name.clone_from(&known.name);
    graph.kind.clone_from(&known.kind);
    let modules = classes.rev().map(|class| (class.name, class)).collect();
    let mut builder = Builder {
        text,
        graph,
        annotations: Vec::new(),
        hints: Hints::new(symbols),
        modules,
        attributes: FxHashMap::default(),
        boxed: FxHashMap::default(),
        freed: FxHashSet::default(),
        after: Vec::new(),
        returned: FxHashMap::default(),
        bodies: Vec::new(),
        at: class.at,
        known,
        runnable,
        guessed: Vec::new(),
        unplaced: Vec::new(),
        has_fixed_numbers: false,
    };
    builder.inputs(class)?;
    let mut comment = (None, comment::Said::default());
    for statement in &class.statements {
        if comment.0 != statement.comment {
            let said = statement.comment.map(|text| comment::read(&mut builder.graph, text));
            comment = (statement.comment, said.unwrap_or_default());
        }
        builder.statement(statement, comment.1)?;
    }
    builder.output(class)?;
    Ok(builder.finish())
}

pub(super) struct Builder<'t, 'c> {
    text: &'t str,
    pub(super) known: &'c Known,
    pub(super) runnable: Option<&'c Runnable>,
    pub(super) graph: Graph,
    pub(super) annotations: Vec<Option<Annotation>>,
    pub(super) guessed: Vec<NodeId>,
    pub(super) unplaced: Vec<NodeId>,
    pub(super) has_fixed_numbers: bool,
    pub(super) hints: Hints,
    modules: FxHashMap<&'t str, &'c Class<'t>>,
    /// Attributes of the module that are sub-modules, by the names of the nodes that get them, with the statement.
    attributes: FxHashMap<&'t str, (&'t str, &'c Class<'t>)>,
    /// Lists that stand for an argument under a name of their own.
    boxed: FxHashMap<&'t str, &'c Py<'t>>,
    /// Names that have been deleted.
    freed: FxHashSet<&'t str>,
    /// Nodes with the names of those that an ordering edge puts before them.
    after: Vec<(NodeId, &'t str)>,
    returned: FxHashMap<NodeId, Vec<Option<Annotation>>>,
    bodies: Vec<(&'t str, &'c Class<'t>)>,
    /// Where what is built stands.
    pub(super) at: usize,
}

impl<'t, 'c> Builder<'t, 'c> {
    pub(super) fn error(&self, message: impl Into<String>) -> FxError {
        FxError::at(self.text, self.at, message)
    }

    /// Appends a node.
    pub(super) fn push(&mut self, node: Node, annotation: Option<&str>) -> Result<NodeId, FxError> {
        let id = self.graph.push_node(node);
        let annotation = match annotation {
            Some(text) => match annotation::read(&mut self.graph, &self.hints, text) {
                Some(annotation) => Some(annotation),
                None => return Err(self.error(format!("the dtype of {text:?} is not known"))),
            },
            None => None,
        };
        if let Some(Annotation::Other(out)) = annotation {
            self.graph.node_mut(id).out = out;
        }
        self.annotations.push(annotation);
        Ok(id)
    }

    fn statement(&mut self, statement: &'c Statement<'t>, said: comment::Said) -> Result<(), FxError> {
        self.at = statement.at;
        let is_boxed = statement.name.contains("_boxed_arg_") && matches!(statement.value, Py::List(_));
        if is_boxed {
            self.boxed.insert(statement.name, &statement.value);
            return Ok(());
        }
        match &statement.value {
            Py::Name(path) if path.starts_with("self.") => self.attribute(statement, &path[5..], said)?,
            Py::Call(call) if call.function == "getattr" => self.attribute(statement, call.text, said)?,
            Py::Call(call) if call.function == "torch.ops.higher_order.control_deps" => {
                self.control_deps(statement, call, said)?;
            }
            value => {
                let id = self.call(statement, value, said)?;
                self.note_returned(id, value);
            }
        }
        self.freed.extend(&statement.last_uses);
        Ok(())
    }

    /// A `get_attr`. Of a sub-module the node is made only when something needs it as a value.
    fn attribute(
        &mut self,
        statement: &'c Statement<'t>,
        path: &'t str,
        said: comment::Said,
    ) -> Result<(), FxError> {
        let class = self.modules.get(path).or_else(|| self.modules.get(path.replace('.', "_").as_str()));
        if let Some(&class) = class {
            self.attributes.insert(statement.name, (path, class));
            if is_carrier(class) {
                return Ok(());
            }
            if !self.bodies.iter().any(|&(attribute, _)| attribute == path) {
                self.bodies.push((path, class));
            }
        }
        let (name, target) = (self.graph.intern(statement.name), self.graph.intern_target(path));
        let is_module = class.is_some();
        let node = Node { tags: said.tags, stack: said.stack, ..Node::new(name, Op::GetAttr, target) };
        let id = self.push(node, statement.annotation.as_deref())?;
        if is_module {
            self.graph.node_mut(id).out = Out::Other(self.graph.intern("GraphModule"));
        }
        Ok(())
    }

    fn call(
        &mut self,
        statement: &'c Statement<'t>,
        value: &Py<'t>,
        said: comment::Said,
    ) -> Result<NodeId, FxError> {
        let (target, args, kwargs): (String, &[Py<'t>], &[(&'t str, Py<'t>)]) = match value {
            Py::Call(call) if call.function.starts_with("self.") => {
                return Err(self.error("a call of a module: this is no graph of ATen operators"));
            }
            Py::Call(call) => {
                let target = call.function.strip_prefix("torch.ops.").unwrap_or(call.function);
                (target.to_string(), &call.args, &call.kwargs)
            }
            Py::Item(of) => {
                let args = [self.value(&of.0)?, self.value(&of.1)?];
                return self.node(statement, "operator.getitem", &args, &[], said);
            }
            Py::Operator(name, operands) => (format!("operator.{name}"), operands, &[]),
            _ => return Err(self.error("expected a call")),
        };
        let args = args.iter().map(|arg| self.value(arg)).collect::<Result<Vec<Value>, FxError>>()?;
        let mut named = Vec::with_capacity(2 * kwargs.len());
        for (key, value) in kwargs {
            let value = self.value(value)?;
            named.extend([Value::Str(self.graph.intern(key)), value]);
        }
        self.node(statement, &target, &args, &named, said)
    }

    fn node(
        &mut self,
        statement: &'c Statement<'t>,
        target: &str,
        args: &[Value],
        kwargs: &[Value],
        said: comment::Said,
    ) -> Result<NodeId, FxError> {
        let (name, target) = (self.graph.intern(statement.name), self.graph.intern_target(target));
        let (args, kwargs) = (self.graph.push_values(args), self.graph.push_values(kwargs));
        let node =
            Node { args, kwargs, tags: said.tags, stack: said.stack, ..Node::new(name, Op::Call, target) };
        self.push(node, statement.annotation.as_deref())
    }

    /// `control_deps((a, b), subgraph, ...)` runs the one operator of its sub-graph after `a` and `b`.
    fn control_deps(
        &mut self,
        statement: &'c Statement<'t>,
        call: &'c Call<'t>,
        said: comment::Said,
    ) -> Result<(), FxError> {
        let carried = match call.args.as_slice() {
            [Py::List(after), Py::Name(module), given @ ..] => {
                let class = self.attributes.get(module).map(|&(_, class)| class);
                class.filter(|class| is_carrier(class)).map(|class| (after, class, given))
            }
            _ => None,
        };
        let Some((after, class, given)) = carried else {
            self.call(statement, &statement.value, said)?;
            return Ok(());
        };
        if class.inputs.len() != given.len() {
            let message = format!("{} takes {} values, not {}", class.name, class.inputs.len(), given.len());
            return Err(self.error(message));
        }
        let given: FxHashMap<&str, &Py<'t>> =
            class.inputs.iter().map(|input| input.name).zip(given).collect();
        let id = self.call(statement, &replaced(&class.statements[0].value, &given), said)?;
        for dep in after {
            match dep {
                Py::Name(name) => self.after.push((id, name)),
                _ => return Err(self.error("an ordering edge comes from something that is no node")),
            }
        }
        Ok(())
    }

    /// Notes what the sub-module that a call takes says of its results.
    fn note_returned(&mut self, id: NodeId, value: &Py<'t>) {
        let Py::Call(call) = value else { return };
        let module = call.args.iter().find_map(|arg| match arg {
            Py::Name(name) => self.attributes.get(name).map(|&(_, class)| class),
            _ => None,
        });
        let Some((class, Some(Py::List(items)))) = module.map(|class| (class, &class.output)) else { return };
        let annotation = |name: &str| {
            let node = class.statements.iter().find(|statement| statement.name == name);
            let input = class.inputs.iter().find(|input| input.name == name);
            node.map_or(input.and_then(|input| input.annotation.as_ref()), |node| node.annotation.as_ref())
        };
        let texts: Vec<Option<&String>> = items
            .iter()
            .map(|item| if let Py::Name(name) = item { annotation(name) } else { None })
            .collect();
        let returned = texts.into_iter().map(|text| annotation::read(&mut self.graph, &self.hints, text?));
        self.returned.insert(id, returned.collect());
    }

    fn output(&mut self, class: &'c Class<'t>) -> Result<(), FxError> {
        let Some(value) = &class.output else {
            self.at = self.text.len();
            return Err(self.error(format!("class {} does not return: the text is cut off", class.name)));
        };
        let value = self.value(value)?;
        let (name, target) = (self.graph.intern("output"), self.graph.intern_target("output"));
        let args = self.graph.push_values(&[value]);
        self.push(Node { args, ..Node::new(name, Op::Output, target) }, None)?;
        Ok(())
    }

    /// An argument.
    fn value(&mut self, value: &Py<'t>) -> Result<Value, FxError> {
        Ok(match value {
            Py::None => Value::None,
            Py::Bool(b) => Value::Bool(*b),
            Py::Int(n) => Value::Int(*n),
            Py::Float(x) => Value::Float(*x),
            Py::Complex(re, im) => {
                Value::Complex(self.graph.push_values(&[Value::Float(*re), Value::Float(*im)]))
            }
            Py::Str(text) => Value::Str(self.graph.intern(text)),
            Py::Name(name) => return self.name(name),
            Py::List(items) => {
                let items = self.values(items)?;
                Value::List(self.graph.push_values(&items))
            }
            Py::Dict(pairs) => {
                let mut items = Vec::with_capacity(2 * pairs.len());
                for (key, value) in pairs {
                    items.extend([self.value(key)?, self.value(value)?]);
                }
                Value::Dict(self.graph.push_values(&items))
            }
            Py::Call(call) => self.made(call)?,
            Py::Text(text) => Value::Function(self.graph.intern(text)),
            Py::Item(_) | Py::Operator(..) => return Err(self.error("an argument that is computed in place")),
        })
    }

    fn values(&mut self, items: &[Py<'t>]) -> Result<Vec<Value>, FxError> {
        items.iter().map(|item| self.value(item)).collect()
    }

    fn name(&mut self, name: &'t str) -> Result<Value, FxError> {
        if let Some(&list) = self.boxed.get(name) {
            return self.value(list);
        }
        if self.freed.contains(name) {
            let message = format!("{name} is used after its last use: the text is damaged");
            return Err(self.error(message));
        }
        let text = self.graph.intern(name);
        if let Some(node) = self.graph.named(text) {
            return Ok(Value::Node(node));
        }
        let Some((space, constant)) = name.rsplit_once('.') else {
            return Ok(match name {
                "inf" => Value::Float(f64::INFINITY),
                "nan" => Value::Float(f64::NAN),
                _ => Value::Dangling(text),
            });
        };
        let constant_text = self.graph.intern(constant);
        Ok(match (space, constant) {
            ("torch", "strided" | "jagged") => Value::Layout(constant_text),
            ("torch", layout) if layout.starts_with("sparse_") => Value::Layout(constant_text),
            ("torch", "contiguous_format" | "preserve_format" | "channels_last" | "channels_last_3d") => {
                Value::MemoryFormat(constant_text)
            }
            ("torch", dtype) => Dtype::parse(dtype).map_or(Value::Function(text), Value::Dtype),
            // Operators are named as those of calls are.
            _ => match name.strip_prefix("torch.ops.") {
                Some(operator) => Value::Function(self.graph.intern(operator)),
                None => Value::Function(text),
            },
        })
    }

    /// A value that is written as a call.
    fn made(&mut self, call: &Call<'t>) -> Result<Value, FxError> {
        Ok(match (call.function, call.args.as_slice()) {
            ("device", []) => match call.device() {
                Some(text) => Value::Device(self.graph.intern(&text)),
                None => return Err(self.error("a device without a type")),
            },
            ("slice", bounds @ [_, _, _]) => {
                let bounds = self.values(bounds)?;
                Value::Slice(self.graph.push_values(&bounds))
            }
            ("complex", parts @ [_, _]) => {
                let parts = self.values(parts)?;
                let parts = parts.into_iter().map(|part| match part {
                    Value::Int(n) => Value::Float(n as f64),
                    part => part,
                });
                let parts: Vec<Value> = parts.collect();
                Value::Complex(self.graph.push_values(&parts))
            }
            _ => Value::Function(self.graph.intern(call.text)),
        })
    }

    fn finish(mut self) -> Built<'t, 'c> {
        self.graph.resolve_references();
        for (after, name) in self.after {
            // A name that no node has is a sub-module's, or nothing's: there is nothing to wait for.
            if let Some(before) = self.graph.find(name) {
                self.graph.ordering.push(OrderingEdge { before, after });
            }
        }
        Built {
            graph: self.graph,
            annotations: self.annotations,
            returned: self.returned,
            bodies: self.bodies,
            guessed: self.guessed,
            unplaced: self.unplaced,
            has_fixed_numbers: self.has_fixed_numbers,
            hints: self.hints,
        }
    }
}

/// A tensor without a recorded storage.
pub(super) fn tensor(
    graph: &mut Graph,
    dtype: Dtype,
    shape: &[crate::graph::Dim],
    stride: &[crate::graph::Dim],
    device: &str,
    offset: i64,
) -> Out {
    let tensor = Tensor {
        shape: graph.intern_dims(shape),
        stride: graph.intern_dims(stride),
        dtype,
        requires_grad: None,
        device: graph.intern(device),
        storage: None,
        offset,
        storage_bytes: None,
        is_guessed: false,
    };
    Out::Tensor(graph.push_tensor(tensor))
}

/// Whether a sub-graph only carries one operator for `control_deps`: its inputs are called `arg_0`, `arg_1`, ..., and
/// it returns what the operator returns.
fn is_carrier(class: &Class<'_>) -> bool {
    let [only] = class.statements.as_slice() else { return false };
    let is_returned = match &class.output {
        Some(Py::Name(name)) => *name == only.name,
        _ => false,
    };
    let is_call = matches!(only.value, Py::Call(_) | Py::Item(_) | Py::Operator(..));
    is_returned && is_call && class.inputs.iter().all(|input| input.name.starts_with("arg_"))
}

/// The expression with values in the places of names.
fn replaced<'t>(value: &Py<'t>, given: &FxHashMap<&str, &Py<'t>>) -> Py<'t> {
    let all = |values: &[Py<'t>]| values.iter().map(|value| replaced(value, given)).collect::<Vec<_>>();
    match value {
        Py::Name(name) => given.get(name).map_or_else(|| value.clone(), |&value| value.clone()),
        Py::List(items) => Py::List(all(items)),
        Py::Operator(name, operands) => Py::Operator(name, all(operands)),
        Py::Item(of) => Py::Item(Box::new((replaced(&of.0, given), replaced(&of.1, given)))),
        Py::Dict(pairs) => Py::Dict(
            pairs.iter().map(|(key, value)| (replaced(key, given), replaced(value, given))).collect(),
        ),
        Py::Call(call) => Py::Call(Box::new(Call {
            function: call.function,
            text: call.text,
            args: all(&call.args),
            kwargs: call.kwargs.iter().map(|(key, value)| (*key, replaced(value, given))).collect(),
        })),
        other => other.clone(),
    }
}
