//! Graphs of `torch.fx`, read as they stand in memory.
//!
//! # The idea
//!
//! Nodes, arguments and the metadata of fake tensors are read attribute by attribute; what is met again is not read
//! again: a fake tensor that stands in the graph before and in the one after is one object, and so are its sizes here.
//! What is seldom, or takes knowledge of torch, is asked of `knowledge`, a Python object
//! (`graph_oracle/pytorch/knowledge.py`): the name and facts of a target, symbolic sizes, process groups, ordering
//! edges.
//!
//! # What it does not do
//!
//! It does not check the graph: that is for the judge. It changes nothing in what it reads.

use crate::graph::Graph as PyGraph;
use crate::objects::{cannot, guarded, kept};
use graph_oracle::graph::{
    Dim, DimsId, Dtype, Expr, Graph, Group, Node, NodeId, Op, OrderingEdge, Out, Span, StorageId, Str,
    Symbol, Tags, Tensor, Value,
};
use graph_oracle::limits::Limit;
use graph_oracle::words::{held, released};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyFloat, PyInt, PyList, PySlice, PyString, PyTuple, PyType};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::hash_map::Entry;

/// Reads graphs of one pair: what they share is read once. It holds on to the objects it has read.
#[pyclass(module = "graph_oracle._oracle")]
pub struct Reader {
    node_type: Py<PyType>,
    tensor_type: Py<PyType>,
    tensors: FxHashMap<usize, Shown>,
    targets: FxHashMap<usize, Target>,
    texts: FxHashMap<usize, String>,
    /// Arguments that only torch knows: kind, text and hint.
    constants: FxHashMap<usize, (String, String, Option<i64>)>,
    kept: Vec<Py<PyAny>>,
}

/// What a fake tensor shows.
struct Shown {
    shape: Vec<Size>,
    stride: Vec<Size>,
    offset: Size,
    storage_bytes: Size,
    dtype: Dtype,
    device: String,
    storage: usize,
    requires_grad: bool,
}

/// A size: a number, or an expression with its hint.
enum Size {
    Known(i64),
    Symbolic(String, Option<i64>),
}

/// What is called.
struct Target {
    name: String,
    facts: String,
    /// Whether a call of it may stand for another operator with ordering edges.
    is_carrier: bool,
    /// What tells it from another function of its name; empty where the name says it all.
    mark: String,
}

#[pymethods]
impl Reader {
    /// `node_type`, `tensor_type`: `torch.fx.Node` and `torch.Tensor`.
    #[new]
    fn new(node_type: Py<PyType>, tensor_type: Py<PyType>) -> Reader {
        Reader {
            node_type,
            tensor_type,
            tensors: FxHashMap::default(),
            targets: FxHashMap::default(),
            texts: FxHashMap::default(),
            constants: FxHashMap::default(),
            kept: Vec::new(),
        }
    }

    /// The graph of a `torch.fx.Graph`. `owner` is the module that has its attributes, or None; `knowledge` is asked
    /// about torch.
    fn read<'py>(
        &mut self,
        py: Python<'py>,
        graph: &Bound<'py, PyAny>,
        owner: &Bound<'py, PyAny>,
        knowledge: &Bound<'py, PyAny>,
        name: &str,
        kind: &str,
    ) -> PyResult<PyGraph> {
        let read = || self.read_graph(graph, owner, knowledge, name, kind);
        guarded(py, || kept(py, &graph.str()?.to_string()), read)
    }
}

impl Reader {
    fn read_graph<'py>(
        &mut self,
        graph: &Bound<'py, PyAny>,
        owner: &Bound<'py, PyAny>,
        knowledge: &Bound<'py, PyAny>,
        name: &str,
        kind: &str,
    ) -> PyResult<PyGraph> {
        let py = graph.py();
        let mut reading = Reading {
            py,
            reader: self,
            owner: owner.clone(),
            knowledge: knowledge.clone(),
            graph: Graph::new(name),
            ids: FxHashMap::default(),
            storages: FxHashMap::default(),
            dims: FxHashMap::default(),
            mentioned: Vec::new(),
            after: Vec::new(),
            facts: Vec::new(),
            strings: Vec::new(),
            source: graph.clone(),
            marks: Vec::new(),
            depth: 0,
        };
        reading.graph.kind = kind.to_string();
        let nodes = graph.getattr(intern!(py, "nodes"))?.try_iter()?;
        let nodes: Vec<Bound<PyAny>> = nodes.collect::<PyResult<_>>()?;
        // Inputs are bound in their own order, whatever stands between them: effect tokens do.
        let is_input = |node: &Bound<PyAny>| -> PyResult<bool> {
            node.getattr(intern!(py, "op"))?.eq(Op::Placeholder.name())
        };
        let of_inputs: Vec<bool> = nodes.iter().map(is_input).collect::<PyResult<_>>()?;
        for wanted in [true, false] {
            let read = nodes.iter().zip(&of_inputs).filter(|(_, is_input)| **is_input == wanted);
            for (node, _) in read {
                reading.node(node)?;
            }
        }
        let marks = std::mem::take(&mut reading.marks);
        Ok(PyGraph { marks, ..PyGraph::of(reading.finish()?) })
    }
}

/// One graph while it is read.
struct Reading<'r, 'py> {
    py: Python<'py>,
    reader: &'r mut Reader,
    owner: Bound<'py, PyAny>,
    knowledge: Bound<'py, PyAny>,
    graph: Graph,
    ids: FxHashMap<usize, NodeId>,
    /// Storages in order of their first use.
    storages: FxHashMap<usize, StorageId>,
    /// Sizes of tensors that were written before, by the tensor.
    dims: FxHashMap<usize, Tensor>,
    /// Nodes that are used before they are read, by the name they are mentioned under.
    mentioned: Vec<Str>,
    after: Vec<(Bound<'py, PyAny>, NodeId)>,
    facts: Vec<usize>,
    /// Texts among the arguments: names of process groups are among them.
    strings: Vec<Str>,
    /// The graph of torch.
    source: Bound<'py, PyAny>,
    /// By target, what tells it from another of the same name: the values of an attribute, which function it is.
    marks: Vec<(String, String)>,
    /// Lists that are open.
    depth: usize,
}

/// Lists inside each other, as in exchange JSON.
const DEEPEST: usize = Limit::Json.standard() as usize;

impl<'py> Reading<'_, 'py> {
    fn ask(&self, method: &str, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.knowledge.call_method1(method, arguments)
    }

    fn node(&mut self, node: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = self.py;
        let op = node.getattr(intern!(py, "op"))?;
        let name = node.getattr(intern!(py, "name"))?;
        let (op, name) = (op.cast::<PyString>()?.to_str()?, name.cast::<PyString>()?.to_str()?);
        let op =
            [Op::Placeholder, Op::Call, Op::GetAttr, Op::Output].into_iter().find(|known| known.name() == op);
        let op = op.ok_or_else(|| {
            cannot(format_args!(
                "{name} is a call of a module or a method: trace the model down to operators first (torch.export, \
                 make_fx or torch.compile)"
            ))
        })?;
        if op == Op::GetAttr && self.ask("is_body", (node,))?.is_truthy()? {
            return Ok(());
        }
        let target = node.getattr(intern!(py, "target"))?;
        let mut args = node.getattr(intern!(py, "args"))?;
        let mut kwargs = node.getattr(intern!(py, "kwargs"))?;
        let mut before = None;
        let target = match op {
            Op::Call => {
                let mut key = self.target(&target)?;
                if self.reader.targets.get(&key).is_some_and(|target| target.is_carrier) {
                    let carried = self.ask("carried", (node,))?;
                    if !carried.is_none() {
                        key = self.target(&carried.getattr("target")?)?;
                        args = carried.getattr("args")?;
                        kwargs = carried.getattr("kwargs")?;
                        before = Some(carried.getattr("before")?);
                    }
                }
                let name = self.reader.targets.get(&key).map_or("", |target| &target.name);
                self.graph.intern_target(name)
            }
            _ => self.graph.intern_target(&held(target.cast::<PyString>()?.to_str()?)),
        };
        let name = self.graph.intern(name);
        let mut new = Node::new(name, op, target);
        new.args = self.values(&args)?;
        new.kwargs = self.keywords(&kwargs)?;
        let meta = node.getattr(intern!(py, "meta"))?;
        let meta = meta.cast::<PyDict>()?;
        if op != Op::Output {
            new.out = self.result_of(node, op, meta)?;
        }
        let tags = self.tags(meta)?;
        new.tags = self.graph.intern_tags(tags);
        new.module = self.module(meta)?;
        if op == Op::Placeholder
            && let Some(desc) = meta.get_item(intern!(py, "desc"))?.filter(|desc| !desc.is_none())
        {
            new.desc = Some(self.graph.intern(desc.str()?.to_str()?));
        }
        let id = self.graph.push_node(new);
        self.ids.insert(node.as_ptr() as usize, id);
        for before in before.iter().flat_map(|before| before.try_iter()).flatten() {
            self.after.push((before?, id));
        }
        Ok(())
    }

    /// The key of a target.
    fn target(&mut self, target: &Bound<'py, PyAny>) -> PyResult<usize> {
        let key = target.as_ptr() as usize;
        if !self.reader.targets.contains_key(&key) {
            let (name, facts, is_carrier, mark) = self.ask("target", (target,))?.extract()?;
            self.reader.targets.insert(key, Target { name, facts, is_carrier, mark });
            self.reader.kept.push(target.clone().unbind());
        }
        if !self.facts.contains(&key) {
            self.facts.push(key);
            if let Some(target) = self.reader.targets.get(&key).filter(|target| !target.mark.is_empty()) {
                self.marks.push((target.name.clone(), target.mark.clone()));
            }
        }
        Ok(key)
    }

    fn values(&mut self, list: &Bound<'py, PyAny>) -> PyResult<Span> {
        self.deeper(|this| this.values_in(list))
    }

    /// Reads what is inside a list, a dict or a slice: these may hold each other, and a list even itself.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> PyResult<T>) -> PyResult<T> {
        if self.depth >= DEEPEST {
            return Err(cannot(format_args!("there are more than {DEEPEST} lists inside each other")));
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    fn values_in(&mut self, list: &Bound<'py, PyAny>) -> PyResult<Span> {
        let mut values = Vec::new();
        if let Ok(tuple) = list.cast::<PyTuple>() {
            for value in tuple.iter() {
                values.push(self.value(&value)?);
            }
        } else {
            for value in list.try_iter()? {
                values.push(self.value(&value?)?);
            }
        }
        Ok(self.graph.push_values(&values))
    }

    fn keywords(&mut self, kwargs: &Bound<'py, PyAny>) -> PyResult<Span> {
        let kwargs = kwargs.cast::<PyDict>()?;
        if kwargs.is_empty() {
            return Ok(Span::EMPTY);
        }
        let mut values = Vec::new();
        for (key, value) in kwargs.iter() {
            let key = self.graph.intern(&held(key.cast::<PyString>()?.to_str()?));
            values.push(Value::Str(key));
            let value = self.value(&value)?;
            values.push(value);
        }
        Ok(self.graph.push_values(&values))
    }

    /// An argument.
    fn value(&mut self, value: &Bound<'py, PyAny>) -> PyResult<Value> {
        if value.is_exact_instance(self.reader.node_type.bind(self.py)) {
            return self.reference(value);
        }
        if value.is_none() {
            return Ok(Value::None);
        }
        if let Ok(yes) = value.cast::<PyBool>() {
            return Ok(Value::Bool(yes.is_true()));
        }
        if let Ok(number) = value.cast_exact::<PyInt>() {
            return match number.extract::<i64>() {
                Ok(number) => Ok(Value::Int(number)),
                Err(_) => {
                    Err(cannot(format_args!("the number {number} among the arguments has more than 64 bits")))
                }
            };
        }
        if let Ok(text) = value.cast::<PyString>() {
            let text = self.graph.intern(&held(text.to_str()?));
            self.strings.push(text);
            return Ok(Value::Str(text));
        }
        if value.cast::<PyList>().is_ok() || value.cast::<PyTuple>().is_ok() {
            return self.values(value).map(Value::List);
        }
        if let Ok(number) = value.cast_exact::<PyFloat>() {
            return Ok(Value::Float(number.value()));
        }
        self.deeper(|this| this.rare(value))
    }

    /// An argument of a kind that is seldom, or torch's own.
    fn rare(&mut self, value: &Bound<'py, PyAny>) -> PyResult<Value> {
        if let Ok(number) = value.cast::<PyComplex>() {
            let parts = [Value::Float(number.real()), Value::Float(number.imag())];
            return Ok(Value::Complex(self.graph.push_values(&parts)));
        }
        if value.cast::<PySlice>().is_ok() {
            let mut parts = [Value::None; 3];
            for (part, name) in parts.iter_mut().zip(["start", "stop", "step"]) {
                *part = self.value(&value.getattr(name)?)?;
            }
            return Ok(Value::Slice(self.graph.push_values(&parts)));
        }
        if let Ok(entries) = value.cast::<PyDict>() {
            let mut entries: Vec<_> = entries.iter().collect();
            // The order of its keys says nothing of a dict.
            if entries.iter().all(|(key, _)| key.is_exact_instance_of::<PyString>()) {
                entries.sort_by_cached_key(|(key, _)| key.to_string());
            }
            let mut values = Vec::new();
            for (key, value) in entries {
                values.push(self.value(&key)?);
                let value = self.value(&value)?;
                values.push(value);
            }
            return Ok(Value::Dict(self.graph.push_values(&values)));
        }
        let key = value.as_ptr() as usize;
        if !self.reader.constants.contains_key(&key) {
            let constant = self.ask("constant", (value,))?.extract()?;
            self.reader.constants.insert(key, constant);
            self.reader.kept.push(value.clone().unbind());
        }
        let Some((kind, text, hint)) = self.reader.constants.get(&key) else { return Ok(Value::None) };
        let (text_id, hint) = (self.graph.intern(text), *hint);
        Ok(match kind.as_str() {
            "dtype" => Value::Dtype(dtype(text)?),
            "device" => Value::Device(text_id),
            "memory_format" => Value::MemoryFormat(text_id),
            "layout" => Value::Layout(text_id),
            "int" => Value::Int(hint.unwrap_or(0)),
            "sym" => Value::Symbolic(self.graph.intern_expr(Expr { text: text_id, hint })),
            _ => Value::Function(text_id),
        })
    }

    fn reference(&mut self, node: &Bound<'py, PyAny>) -> PyResult<Value> {
        match self.ids.get(&(node.as_ptr() as usize)) {
            Some(&id) => Ok(Value::Node(id)),
            // A later node, or one of another graph: the judge says so, by its name.
            None => {
                let name = node.getattr(intern!(self.py, "name"))?;
                let name = name.cast::<PyString>()?.to_str()?;
                let is_own = node.getattr(intern!(self.py, "graph"))?.is(&self.source)
                    && !node.getattr(intern!(self.py, "_erased"))?.is_truthy()?;
                // Under a name that no node has.
                let foreign = format!("{name} (a node that is not in this graph)");
                let name = self.graph.intern(if is_own { name } else { &foreign });
                self.mentioned.push(name);
                Ok(Value::Dangling(name))
            }
        }
    }

    /// What a node returns: by its metadata, or of an attribute by the attribute itself.
    fn result_of(&mut self, node: &Bound<'py, PyAny>, op: Op, meta: &Bound<'py, PyDict>) -> PyResult<Out> {
        let recorded = match meta.get_item(intern!(self.py, "val"))? {
            Some(value) => Some(value),
            None => meta.get_item(intern!(self.py, "example_value"))?,
        };
        if op != Op::GetAttr {
            return recorded.map_or(Ok(Out::Absent), |value| self.out(&value));
        }
        let value = self.ask("attribute", (&self.owner, node))?;
        let shown = self.attribute(node, &value)?;
        match recorded {
            Some(recorded) if !recorded.is_none() && !matches!(shown, Out::Other(_)) => self.out(&recorded),
            _ => Ok(shown),
        }
    }

    /// An attribute of the module: a tensor, or the body of a higher-order operator.
    fn attribute(&mut self, node: &Bound<'py, PyAny>, value: &Bound<'py, PyAny>) -> PyResult<Out> {
        let mark: String = self.ask("mark", (value,))?.extract()?;
        if !mark.is_empty() {
            let target = node.getattr(intern!(self.py, "target"))?.str()?;
            self.marks.push((target.to_str()?.to_string(), mark));
        }
        let body = self.ask("body", (value,))?;
        if !body.is_none() {
            let target = node.getattr(intern!(self.py, "target"))?;
            let name = target.cast::<PyString>()?.to_str()?;
            if self.graph.subgraph(name).is_none() {
                let body = self.reader.read(self.py, &body, value, &self.knowledge, name, "")?;
                self.marks.extend(body.marks);
                self.graph.subgraphs.push((name.to_string(), std::sync::Arc::new(body.inner.graph)));
            }
        }
        self.out(value)
    }

    fn out(&mut self, value: &Bound<'py, PyAny>) -> PyResult<Out> {
        if self.reader.tensors.contains_key(&(value.as_ptr() as usize))
            || value.is_instance(self.reader.tensor_type.bind(self.py))?
        {
            return self.tensor(value);
        }
        if value.is_none() {
            return Ok(Out::None);
        }
        if value.cast::<PyList>().is_ok() || value.cast::<PyTuple>().is_ok() {
            return self.deeper(|this| {
                let mut outs = Vec::new();
                for part in value.try_iter()? {
                    outs.push(this.out(&part?)?);
                }
                Ok(Out::Tuple(this.graph.push_outs(&outs)))
            });
        }
        if let Ok(number) = value.cast_exact::<PyInt>() {
            return Ok(number.extract().map_or(Out::Absent, Out::Int));
        }
        let (kind, text, hint): (String, String, Option<i64>) = self.ask("result", (value,))?.extract()?;
        let text = self.graph.intern(&text);
        Ok(match kind.as_str() {
            "int" => Out::Int(hint.unwrap_or(0)),
            "sym" => Out::SymInt(self.graph.intern_expr(Expr { text, hint })),
            "symbool" => Out::SymBool(self.graph.intern_expr(Expr { text, hint })),
            _ => Out::Other(text),
        })
    }

    fn tensor(&mut self, value: &Bound<'py, PyAny>) -> PyResult<Out> {
        let key = value.as_ptr() as usize;
        if let Some(&tensor) = self.dims.get(&key) {
            return Ok(Out::Tensor(self.graph.push_tensor(tensor)));
        }
        if !self.reader.tensors.contains_key(&key) {
            let shown = self.shown(value)?;
            self.reader.tensors.insert(key, shown);
            self.reader.kept.push(value.clone().unbind());
        }
        let Some(shown) = self.reader.tensors.get(&key) else { return Ok(Out::Absent) };
        let graph = &mut self.graph;
        let fresh = StorageId(self.storages.len() as u32);
        // The format has no symbolic offsets: where there is one, nothing is said of the storage.
        let (offset, storage, storage_bytes) = match shown.offset {
            Size::Known(offset) => {
                let storage = *self.storages.entry(shown.storage).or_insert(fresh);
                (offset, Some(storage), Some(shown.storage_bytes.written(graph)))
            }
            Size::Symbolic(..) => (0, None, None),
        };
        let tensor = Tensor {
            shape: written(&shown.shape, graph),
            stride: written(&shown.stride, graph),
            dtype: shown.dtype,
            requires_grad: shown.requires_grad.then_some(true),
            device: graph.intern(&shown.device),
            storage,
            offset,
            storage_bytes,
            is_guessed: false,
        };
        self.dims.insert(key, tensor);
        Ok(Out::Tensor(self.graph.push_tensor(tensor)))
    }

    /// What a fake tensor shows.
    fn shown(&mut self, value: &Bound<'py, PyAny>) -> PyResult<Shown> {
        let py = self.py;
        let storage = value.call_method0(intern!(py, "untyped_storage"))?;
        let dtype_object = value.getattr(intern!(py, "dtype"))?;
        let dtype = dtype(self.text(&dtype_object)?)?;
        let device = value.getattr(intern!(py, "device"))?.str()?.to_str()?.to_string();
        Ok(Shown {
            shape: self.read_sizes(&value.getattr(intern!(py, "shape"))?)?,
            stride: self.read_sizes(&value.call_method0(intern!(py, "stride"))?)?,
            offset: self.read_size(&value.call_method0(intern!(py, "storage_offset"))?)?,
            storage_bytes: self.read_size(&storage.call_method0(intern!(py, "nbytes"))?)?,
            dtype,
            device,
            storage: storage.getattr(intern!(py, "_cdata"))?.extract()?,
            requires_grad: value.getattr(intern!(py, "requires_grad"))?.is_truthy()?,
        })
    }

    /// The text of a constant of torch, which lives as long as torch, without "torch.".
    fn text(&mut self, constant: &Bound<'py, PyAny>) -> PyResult<&str> {
        match self.reader.texts.entry(constant.as_ptr() as usize) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => {
                self.reader.kept.push(constant.clone().unbind());
                Ok(new.insert(constant.str()?.to_str()?.trim_start_matches("torch.").to_string()))
            }
        }
    }

    fn read_sizes(&self, sizes: &Bound<'py, PyAny>) -> PyResult<Vec<Size>> {
        sizes.cast::<PyTuple>()?.iter().map(|size| self.read_size(&size)).collect()
    }

    fn read_size(&self, size: &Bound<'py, PyAny>) -> PyResult<Size> {
        if let Ok(number) = size.cast_exact::<PyInt>() {
            return Ok(Size::Known(number.extract()?));
        }
        let (kind, text, hint): (String, String, Option<i64>) = self.ask("size", (size,))?.extract()?;
        Ok(match (kind.as_str(), hint) {
            ("int", Some(n)) => Size::Known(n),
            _ => Size::Symbolic(text, hint),
        })
    }

    fn tags(&mut self, meta: &Bound<'py, PyDict>) -> PyResult<Tags> {
        let py = self.py;
        let mut tags = Tags::default();
        if let Some(value) = meta.get_item(intern!(py, "recompute"))? {
            let text = match value.getattr_opt(intern!(py, "name"))? {
                Some(name) => name.str()?,
                None => value.str()?,
            };
            tags.recompute = Some(self.graph.intern(text.to_str()?));
        }
        if let Some(value) = meta.get_item(intern!(py, "partitioner_tag"))?
            && let Ok(text) = value.cast::<PyString>()
        {
            tags.partitioner_tag = Some(self.graph.intern(text.to_str()?));
        }
        let number = |key| Ok::<_, PyErr>(meta.get_item(key)?.and_then(|value| value.extract::<i64>().ok()));
        tags.ac_graph_id = number(intern!(py, "ac_graph_id"))?;
        tags.seq_nr = number(intern!(py, "seq_nr"))?;
        let yes = |key| Ok::<_, PyErr>(meta.get_item(key)?.and_then(|value| value.extract::<bool>().ok()));
        tags.autograd_backward = yes(intern!(py, "autograd_backward"))?;
        tags.is_gradient_acc = yes(intern!(py, "is_gradient_acc"))?;
        if let Some(value) = meta.get_item(intern!(py, "custom"))? {
            // Mostly empty, on all that a pass has made.
            let text = match value.cast::<PyDict>() {
                Ok(empty) if empty.is_empty() => intern!(py, "{}").clone().into_any(),
                _ => self.ask("json", (value,))?,
            };
            if let Ok(text) = text.cast::<PyString>() {
                tags.custom = Some(self.graph.intern(text.to_str()?));
            }
        }
        Ok(tags)
    }

    /// The innermost module that a node comes from.
    fn module(&mut self, meta: &Bound<'py, PyDict>) -> PyResult<Option<Str>> {
        let Some(stack) = meta.get_item(intern!(self.py, "nn_module_stack"))? else { return Ok(None) };
        let Ok(stack) = stack.cast::<PyDict>() else { return Ok(None) };
        let Some((_, last)) = stack.iter().last() else { return Ok(None) };
        let Ok(last) = last.cast::<PyTuple>() else { return Ok(None) };
        let Ok(path) = last.get_item(0) else { return Ok(None) };
        Ok(match path.cast::<PyString>() {
            Ok(path) => Some(self.graph.intern(path.to_str()?)),
            Err(_) => None,
        })
    }

    /// Names are resolved, and the world is asked for.
    fn finish(mut self) -> PyResult<Graph> {
        if !self.mentioned.is_empty() {
            self.graph.resolve_references();
        }
        for (before, after) in std::mem::take(&mut self.after) {
            if let Some(&before) = self.ids.get(&(before.as_ptr() as usize)) {
                self.graph.ordering.push(OrderingEdge { before, after });
            }
        }
        for key in &self.facts {
            if let Some(target) = self.reader.targets.get(key).filter(|target| !target.facts.is_empty()) {
                self.graph.facts.push((target.name.clone(), target.facts.clone()));
            }
        }
        self.strings.sort_by_key(|text| text.index());
        self.strings.dedup();
        let names: Vec<Cow<str>> = self.strings.iter().map(|&text| released(self.graph.text(text))).collect();
        let (ranks, groups): (Option<u32>, Vec<(String, u32, Option<u32>, Vec<Vec<u32>>)>) =
            self.ask("world", (names,))?.extract()?;
        self.graph.world.ranks = ranks;
        for (name, size, recorded_rank, instances) in groups {
            let name = held(&name).into_owned();
            self.graph.world.groups.push(Group { name, size, recorded_rank, instances });
        }
        let symbols: Vec<(String, Option<i64>, String, String, bool)> = self.ask("symbols", ())?.extract()?;
        for (name, hint, low, high, unbacked) in symbols {
            self.graph.symbols.push(Symbol { name, hint, range: (low, high), unbacked });
        }
        self.graph.guards = self.ask("guards", ())?.extract()?;
        self.graph.shrink_to_fit();
        Ok(self.graph)
    }
}

impl Size {
    fn written(&self, graph: &mut Graph) -> Dim {
        match self {
            Size::Known(n) => Dim::Static(*n),
            Size::Symbolic(text, hint) => {
                let text = graph.intern(text);
                Dim::Symbolic(graph.intern_expr(Expr { text, hint: *hint }))
            }
        }
    }
}

fn written(sizes: &[Size], graph: &mut Graph) -> DimsId {
    let dims: SmallVec<[Dim; 6]> = sizes.iter().map(|size| size.written(graph)).collect();
    graph.intern_dims(&dims)
}

fn dtype(name: &str) -> PyResult<Dtype> {
    Dtype::parse(name)
        .ok_or_else(|| cannot(format_args!("{name} is a type of elements that the oracle does not know")))
}
