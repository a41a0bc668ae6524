//! `fx_graph_runnable.py`: what stands around its graph.
//!
//! `load_args` makes the inputs: `buf0 = reader.storage(None, 32*s17)` and `reader.tensor(buf0, (s17, 8), (8, 1),
//! storage_offset=4)  # primals_2`. No other text says which inputs share memory, where they begin in it, what symbols
//! were when the graph was traced, and which rank of its groups this one is.
//!
//! Source: `torch/_dynamo/debug_utils.py` (`InputReader`, `InputWriter`) and `torch/_dynamo/repro/after_aot.py` of
//! PyTorch 2.15.

use super::FxError;
use super::python::{Call, Py, Reader};
use crate::graph::{Dtype, Group, Symbol};
use rustc_hash::FxHashMap;

/// What a runnable says besides its graph.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Runnable {
    /// Inputs by name, in order.
    inputs: Vec<(String, Given)>,
    by_name: FxHashMap<String, usize>,
    /// Symbols with their values when the graph was traced.
    hints: Vec<(String, i64)>,
    /// Process groups, with the index in each of the rank that wrote it.
    pub groups: Vec<Group>,
}

/// An input.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Given {
    Tensor(GivenTensor),
    /// A number: its value when the graph was traced, and the expression that it is; older texts have none.
    Number(Option<i64>, Option<String>),
    /// An object of which nothing more is said.
    Object,
}

/// An input that is a tensor. Sizes are texts: numbers or expressions.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct GivenTensor {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<String>,
    /// Row-major where it is left out.
    pub(super) stride: Option<Vec<String>>,
    pub(super) offset: String,
    pub(super) device: String,
    pub(super) requires_grad: Option<bool>,
    /// The number of its storage among those of the inputs, and how many bytes it has.
    pub(super) storage: u32,
    pub(super) storage_bytes: String,
}

/// A storage, as `reader.storage` makes it.
struct Storage<'t> {
    name: &'t str,
    bytes: String,
    device: String,
}

impl Runnable {
    /// What a text says besides its graph; `None` where it makes no inputs: it is no runnable.
    ///
    /// # Errors
    /// `load_args` is damaged, or makes inputs in a way that is not known here.
    pub fn read(text: &str) -> Result<Option<Runnable>, FxError> {
        const DEF: &str = "\ndef load_args(reader):";
        let Some(at) = text.find(DEF) else { return Ok(None) };
        let mut reader = Reader::new(text);
        reader.at = at + DEF.len();
        reader.line();
        let mut this = Runnable { hints: hints(&text[..at]), groups: groups(text), ..Runnable::default() };
        let mut storages = Vec::new();
        while !reader.is_at_end() {
            reader.at += 1;
            let from = reader.at;
            reader.blanks();
            let rest = &text[reader.at..];
            if rest.is_empty() || rest.starts_with(['\n', '#']) {
                reader.line();
                continue;
            }
            if reader.at == from {
                break;
            }
            // What is in an input that cannot be made.
            if let Some(block) = rest.strip_prefix("\"\"\"") {
                let end = block.find("\"\"\"").ok_or_else(|| reader.error("a block that does not end"))?;
                reader.at += end + 6;
                reader.line();
                continue;
            }
            this.statement(&mut reader, &mut storages)?;
        }
        Ok(Some(this))
    }

    /// `buf0 = reader.storage(...)`, or `reader.tensor(...)  # NAME`.
    fn statement<'t>(
        &mut self,
        reader: &mut Reader<'t>,
        storages: &mut Vec<Storage<'t>>,
    ) -> Result<(), FxError> {
        let start = reader.clone();
        let word = reader.word();
        let made = if reader.takes("=") { Some(word) } else { None };
        if made.is_none() {
            *reader = start.clone();
        }
        let wrong = |message: &str| Err(start.error(message));
        let Py::Call(call) = reader.expression()? else { return wrong("load_args: expected a call") };
        let comment = reader.line().trim().trim_start_matches('#').trim();
        let name = comment.split(',').next().unwrap_or("").trim().to_string();
        let given = match (call.function, made) {
            ("reader.storage", Some(name)) => {
                let bytes = call.args.get(1).or(call.kwarg("nbytes")).and_then(expression);
                let Some(bytes) = bytes else { return wrong("load_args: a storage without a size") };
                let device = match call.kwarg("device") {
                    Some(Py::Call(device)) => device.device(),
                    _ => None,
                };
                let device = device.unwrap_or_else(|| super::DEVICE.to_string());
                storages.push(Storage { name, bytes, device });
                return Ok(());
            }
            ("reader.tensor", _) => match tensor(&call, storages) {
                Some(tensor) => Given::Tensor(tensor),
                None => return wrong("load_args: a tensor of which this is not known"),
            },
            ("reader.symint", _) => {
                let hint = call.args.first().and_then(|value| match value {
                    Py::Int(n) => Some(*n),
                    _ => None,
                });
                let expr = call.kwarg("expr").and_then(|value| match value {
                    Py::Str(text) => Some(text.clone()),
                    _ => None,
                });
                if let (Some(hint), Some(expr)) = (hint, &expr)
                    && is_symbol(expr)
                {
                    self.hints.push((expr.clone(), hint));
                }
                Given::Number(hint, expr)
            }
            (function, _) if function.starts_with("reader.") => Given::Object,
            _ => return wrong("load_args: expected a call of the reader"),
        };
        let name = match call.args.first() {
            Some(Py::Str(name)) if matches!(call.function, "reader.unsupported" | "reader.const") => {
                name.clone()
            }
            _ => name,
        };
        self.by_name.insert(name.clone(), self.inputs.len());
        self.inputs.push((name, given));
        Ok(())
    }

    /// The names of the inputs, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.inputs.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn input(&self, name: &str) -> Option<&Given> {
        self.by_name.get(name).map(|&at| &self.inputs[at].1)
    }

    /// Symbols with what is known of them, and the values that they had.
    pub(super) fn with_hints(&self, mut symbols: Vec<Symbol>) -> Vec<Symbol> {
        for (name, hint) in &self.hints {
            match symbols.iter_mut().find(|symbol| symbol.name == *name) {
                Some(symbol) => symbol.hint = symbol.hint.or(Some(*hint)),
                None => symbols.push(Symbol {
                    name: name.clone(),
                    hint: Some(*hint),
                    range: ("-int_oo".to_string(), "int_oo".to_string()),
                    unbacked: name.starts_with('u'),
                }),
            }
        }
        symbols
    }
}

/// `reader.tensor(buf0, (8, s17), (s17, 1), dtype=torch.int64, storage_offset=2)`.
fn tensor(call: &Call<'_>, storages: &[Storage<'_>]) -> Option<GivenTensor> {
    let arg = |at: usize, key: &str| call.args.get(at).or(call.kwarg(key));
    let Some(Py::Name(buffer)) = arg(0, "storage") else { return None };
    // A name may be made again; the last one counts.
    let at = storages.iter().rposition(|storage| storage.name == *buffer)?;
    let sizes = |value: &Py<'_>| match value {
        Py::List(items) => items.iter().map(expression).collect::<Option<Vec<String>>>(),
        _ => None,
    };
    let stride = match arg(2, "stride") {
        Some(Py::None) | None => None,
        Some(stride) => Some(sizes(stride)?),
    };
    let shape = sizes(arg(1, "shape")?)?;
    if stride.as_ref().is_some_and(|stride| stride.len() != shape.len()) {
        return None;
    }
    let dtype = match call.kwarg("dtype") {
        Some(Py::Name(name)) => Dtype::parse(name.strip_prefix("torch.")?)?,
        Some(_) => return None,
        None => Dtype::F32,
    };
    let offset = match call.kwarg("storage_offset") {
        Some(Py::None) | None => "0".to_string(),
        Some(offset) => expression(offset)?,
    };
    let requires_grad = match call.kwarg("requires_grad") {
        Some(Py::Bool(requires)) => Some(*requires),
        _ => None,
    };
    let (storage_bytes, device) = (storages[at].bytes.clone(), storages[at].device.clone());
    Some(GivenTensor {
        dtype,
        shape,
        stride,
        offset,
        device,
        requires_grad,
        storage: at as u32,
        storage_bytes,
    })
}

/// Lines before everything else: `s17 = 6`.
fn hints(text: &str) -> Vec<(String, i64)> {
    let hint = |line: &str| {
        let (name, value) = line.split_once(" = ")?;
        Some((name.to_string(), value.trim().parse().ok()?)).filter(|(name, _)| is_symbol(name))
    };
    text.lines().filter_map(hint).collect()
}

/// Whether an expression is one symbol.
fn is_symbol(text: &str) -> bool {
    text.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// A size as a text.
fn expression(value: &Py<'_>) -> Option<String> {
    Some(match value {
        Py::Int(n) => n.to_string(),
        Py::Name(name) => (*name).to_string(),
        Py::Call(call) => {
            let args: Option<Vec<String>> = call.args.iter().map(expression).collect();
            format!("{}({})", call.function, args?.join(", "))
        }
        Py::Operator("neg", operands) => format!("-({})", expression(operands.first()?)?),
        Py::Operator(name, operands) => {
            let mark = match *name {
                "add" => "+",
                "sub" => "-",
                "mul" => "*",
                "floordiv" => "//",
                "mod" => "%",
                "pow" => "**",
                _ => return None,
            };
            let [left, right] = operands.as_slice() else { return None };
            format!("({}) {mark} ({})", expression(left)?, expression(right)?)
        }
        _ => return None,
    })
}

/// The process groups at its end: `setup_fake_process_groups({'0': {'size': 4, 'rank': 0}})`.
fn groups(text: &str) -> Vec<Group> {
    const CALL: &str = "setup_fake_process_groups(";
    // What is imported has the name too.
    let Some(at) = text.find(&format!("{CALL}{{")) else { return Vec::new() };
    let Ok(Py::Dict(groups)) = Reader::new(&text[at + CALL.len()..]).expression() else { return Vec::new() };
    let group = |(name, fields): &(Py<'_>, Py<'_>)| {
        let (Py::Str(name), Py::Dict(fields)) = (name, fields) else { return None };
        let field = |key: &str| {
            fields.iter().find_map(|(name, value)| match (name, value) {
                (Py::Str(name), Py::Int(n)) if name == key => u32::try_from(*n).ok(),
                _ => None,
            })
        };
        let (name, size) = (name.clone(), field("size").filter(|&size| size > 0)?);
        let recorded_rank = field("rank").filter(|&rank| rank < size);
        Some(Group { name, size, recorded_rank, instances: Vec::new() })
    };
    groups.iter().filter_map(group).collect()
}
