//! Calls as their operators understand them, however they are written.
//!
//! `permute(x, [1, 0])`, `permute(x, [-1, -2])` and `permute(x, dims=[1, 0])` are one call, and so are `add(x, y)` and
//! `add(x, y, alpha=1)`. A call is spelled out in words: parameter by parameter in the order of the schema, with
//! defaults filled in, dimensions and places counted from the front, and sizes that are left to be found (`-1`) found
//! in what is recorded of the tensor. What is not known stays as it is written. Equal words mean one call, as far as
//! the records are true; different ones mean nothing.
//!
//! Operators of the table, and PyTorch's others by their schemas, count dimensions in a known way; of all else the schema
//! says what stands where.

use super::{Bound, Default, Kind, Move, OpInfo, Ops, Param, Schema, View, by_target};
use crate::graph::{Dtype, Graph, NodeId, Span, Value};

/// A piece of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Word<'g> {
    None,
    Bool(bool),
    Int(i64),
    /// The bits.
    Float(u64),
    Text(&'g str),
    Dtype(Dtype),
    /// An expression, and its hint.
    Symbolic(&'g str, Option<i64>),
    Function(&'g str),
    /// So many values follow.
    List(usize),
    Slice(usize),
    Complex(usize),
    Dict(usize),
    /// The argument that follows has this name, in a call whose schema is not known.
    Named(&'g str),
    Node(NodeId),
    /// A reference to a name that no node has.
    Dangling(&'g str),
}

impl Word<'_> {
    /// Whether it refers to a node, or means to.
    pub fn is_reference(self) -> bool {
        matches!(self, Word::Node(_) | Word::Dangling(_))
    }
}

/// The words of a call, its target aside.
pub fn spelled<'g>(graph: &'g Graph, ops: &'g Ops, node: NodeId) -> Vec<Word<'g>> {
    let mut words = Vec::new();
    let info = ops.call(graph, node);
    let schema = info.and_then(|info| info.schema.as_ref());
    let bound = schema.and_then(|schema| Bound::new(graph, node, schema).ok());
    let (Some(info), Some(schema), Some(bound)) = (info, schema, bound) else {
        graph.args(node).iter().for_each(|&value| put(graph, value, &mut words));
        let mut named: Vec<(&str, Value)> = graph.kwargs(node).collect();
        named.sort_by(|a, b| a.0.cmp(b.0));
        for (name, value) in named {
            words.push(Word::Named(name));
            put(graph, value, &mut words);
        }
        return words;
    };
    let counts = Counts::new(graph, info, &bound);
    let mut window: Vec<Word> = Vec::new();
    for (index, param) in schema.params.iter().enumerate() {
        let start = words.len();
        match (bound.given(index), &param.default) {
            (Some(value), _) => put(graph, value, &mut words),
            (None, Some(default)) => put_default(default, &mut words),
            (None, None) => {}
        }
        put_recorded(graph, node, &param.name, &mut words[start..]);
        counts.unify(param, start, &mut words);
        // Pooling that names no stride steps from window to window.
        match (param.name.as_str(), &words[start..]) {
            ("kernel_size", given) => window = given.to_vec(),
            ("stride", [Word::List(0)]) if !window.is_empty() => {
                words.splice(start.., window.iter().copied()).for_each(drop)
            }
            _ => {}
        }
    }
    words
}

/// Writes what an operator takes in the place of what is left open: the dtype and the device that are recorded of the result,
/// a strided layout, memory that is not pinned.
fn put_recorded<'g>(graph: &'g Graph, node: NodeId, name: &str, words: &mut [Word<'g>]) {
    let (Some(result), [word]) = (graph.tensor_of(node), words) else { return };
    match (name, &*word) {
        ("dtype", Word::None) => *word = Word::Dtype(result.dtype),
        ("device", Word::None) => *word = Word::Text(kind_of_device(graph.text(result.device))),
        ("layout", Word::None) => *word = Word::Text("strided"),
        ("pin_memory", Word::None) => *word = Word::Bool(false),
        _ => {}
    }
}

/// A device without its number: which of them it is says the rank.
pub fn kind_of_device(device: &str) -> &str {
    device.split_once(':').map_or(device, |(kind, _)| kind)
}

fn put<'g>(graph: &'g Graph, value: Value, words: &mut Vec<Word<'g>>) {
    let mut list = |word: fn(usize) -> Word<'g>, span: Span| {
        words.push(word(span.len()));
        graph.values(span).iter().for_each(|&value| put(graph, value, words));
    };
    let word = match value {
        Value::List(span) => return list(Word::List, span),
        Value::Slice(span) => return list(Word::Slice, span),
        Value::Complex(span) => return list(Word::Complex, span),
        Value::Dict(span) => return list(Word::Dict, span),
        Value::None => Word::None,
        Value::Bool(b) => Word::Bool(b),
        Value::Int(n) => Word::Int(n),
        Value::Float(x) => Word::Float(x.to_bits()),
        Value::Device(text) => Word::Text(kind_of_device(graph.text(text))),
        Value::Str(text) | Value::MemoryFormat(text) | Value::Layout(text) => Word::Text(graph.text(text)),
        Value::Function(text) => Word::Function(graph.text(text)),
        Value::Dtype(dtype) => Word::Dtype(dtype),
        Value::Symbolic(expr) => Word::Symbolic(graph.text(graph.expr(expr).text), graph.expr(expr).hint),
        Value::Node(node) => Word::Node(node),
        Value::Dangling(text) => Word::Dangling(graph.text(text)),
    };
    words.push(word);
}

fn put_default<'g>(default: &'g Default, words: &mut Vec<Word<'g>>) {
    match default {
        Default::None => words.push(Word::None),
        Default::Bool(b) => words.push(Word::Bool(*b)),
        Default::Int(n) => words.push(Word::Int(*n)),
        Default::Float(x) => words.push(Word::Float(x.to_bits())),
        Default::Text(text) => words.push(Word::Text(text)),
        Default::Ints(ints) => {
            words.push(Word::List(ints.len()));
            words.extend(ints.iter().map(|&n| Word::Int(n)));
        }
    }
}

/// What the numbers of a call count.
struct Counts<'g> {
    info: &'g OpInfo,
    /// Dimensions that numbers of dimensions count.
    rank: Option<i64>,
    /// The sizes of the first tensor.
    sizes: Option<Vec<i64>>,
    /// The dimension that places are counted in.
    dim: Option<i64>,
}

impl<'g> Counts<'g> {
    fn new(graph: &Graph, info: &'g OpInfo, bound: &Bound) -> Counts<'g> {
        let schema = info.schema.as_ref();
        let first = schema.and_then(|s| s.params.iter().find(|p| p.ty.starts_with("Tensor")));
        let node = first.and_then(|param| bound.nodes(&param.name).first().copied());
        let tensor = node.filter(|node| node.index() < graph.len()).and_then(|node| graph.tensor_of(node));
        let rank = tensor.map(|tensor| graph.dims(tensor.shape).len() as i64);
        let made = i64::from(matches!(info.kind, Kind::View(View::Unsqueeze) | Kind::Move(Move::Stack)));
        // The gradient of a piece says how large the whole was.
        let of_whole = bound.named("input_sizes").map(|value| match value {
            Value::List(span) => Some(span.len() as i64),
            _ => None,
        });
        let rank = of_whole.unwrap_or(rank.map(|rank| rank + made)).map(|rank| rank.max(1));
        let sizes = tensor.filter(|_| of_whole.is_none()).and_then(|tensor| graph.sizes(tensor.shape));
        let dim = bound.int("dim").zip(rank).map(|(dim, rank)| from_front(dim, rank));
        Counts { info, rank, sizes, dim }
    }

    /// Writes the argument from `start` on in the one way.
    fn unify(&self, param: &Param, start: usize, words: &mut Vec<Word>) {
        let name = param.name.as_str();
        match (words[start..].first(), param.ty.trim_end_matches('?')) {
            // What factories take where nothing is said.
            (Some(Word::Bool(false)), _) if name == "pin_memory" => words[start] = Word::None,
            (Some(Word::Text("strided")), _) if name == "layout" => words[start] = Word::None,
            (Some(&Word::Int(n)), "float") => words[start] = Word::Float((n as f64).to_bits()),
            (Some(Word::Int(_) | Word::Symbolic(..) | Word::Node(_)), ty)
                if ty.ends_with("[]") && !ty.starts_with("Tensor") || ty.ends_with("[1]") =>
            {
                words.insert(start, Word::List(1));
            }
            _ => {}
        }
        if let Some(rank) = self.rank.filter(|_| counts_dimensions(self.info, param)) {
            each_int(&mut words[start..], |n| from_front(n, rank));
            // A reduction goes over a set.
            if matches!(self.info.kind, Kind::Reduce(_)) && words[start..].iter().all(is_count) {
                words[start + 1..].sort_unstable_by_key(|word| if let Word::Int(n) = word { *n } else { 0 });
            }
        }
        let Some(sizes) = &self.sizes else { return };
        match (self.info.kind, name) {
            (Kind::View(View::Sizes), "size" | "shape") => find_size(sizes, &mut words[start..]),
            (Kind::View(View::Expand), "size") => {
                let given = words[start..].len().saturating_sub(1);
                let Some(missing) = given.checked_sub(sizes.len()) else { return };
                for (word, &size) in words[start + 1..].iter_mut().skip(missing).zip(sizes) {
                    each_int(std::slice::from_mut(word), |n| if n == -1 { size } else { n });
                }
            }
            (Kind::View(View::Select) | Kind::Move(Move::SelectScatter), "index")
            | (Kind::View(View::Narrow), "start") => {
                if let Some(size) = self.size() {
                    each_int(&mut words[start..], |n| from_front(n, size));
                }
            }
            (Kind::View(View::Slice) | Kind::Move(Move::SliceScatter), "start" | "end") => {
                let Some(size) = self.size() else { return };
                if let Some(word @ Word::None) = words.get_mut(start) {
                    *word = Word::Int(if name == "start" { 0 } else { size });
                }
                let from_front = |n: i64| if n < 0 { n.saturating_add(size) } else { n };
                each_int(&mut words[start..], |n| from_front(n).min(size).max(0));
            }
            _ => {}
        }
    }

    /// The size of the dimension that places are counted in.
    fn size(&self) -> Option<i64> {
        let sizes = self.sizes.as_ref()?;
        sizes.get(usize::try_from(self.dim?).ok()?).copied()
    }
}

/// Operators outside the table that count dimensions of something else than the first tensor: of the result, or of what
/// it is broadcast to.
const COUNT_OTHERS: [&str; 7] = [
    "cosine_similarity",
    "cross",
    "diag_embed",
    "linalg_cross",
    "linalg_vecdot",
    "pairwise_distance",
    "value_selecting_reduction_backward",
];

/// Whether a parameter names dimensions of the first tensor, from the front or from the back: the table says so, and
/// the schemas of PyTorch's other operators.
pub fn counts_dimensions(info: &OpInfo, param: &Param) -> bool {
    const NAMES: [&str; 8] = ["dim", "dims", "dim0", "dim1", "dim2", "dimension", "source", "destination"];
    let name = param.name.as_str();
    let is_counted = || {
        let of_first =
            |schema: &Schema| schema.namespace == "aten" && !COUNT_OTHERS.contains(&schema.name.as_str());
        by_target(&info.target).is_some() || info.schema.as_ref().is_some_and(of_first)
    };
    param.ty.starts_with("int") && (NAMES.contains(&name) || name.ends_with("_dim")) && is_counted()
}

/// `n` of `count`, counted from the front.
fn from_front(n: i64, count: i64) -> i64 {
    n.checked_add(count).filter(|&m| n < 0 && m >= 0).unwrap_or(n)
}

fn is_count(word: &Word) -> bool {
    matches!(word, Word::Int(_) | Word::List(_))
}

fn each_int(words: &mut [Word], change: impl Fn(i64) -> i64) {
    for word in words {
        if let Word::Int(n) = word {
            *n = change(*n);
        }
    }
}

/// The size that is left to be found, of a tensor with these sizes.
fn find_size(sizes: &[i64], words: &mut [Word]) {
    let all = sizes.iter().try_fold(1i64, |product, &n| product.checked_mul(n));
    let known = words.iter().try_fold(1i64, |product, word| match word {
        Word::List(_) | Word::Int(-1) => Some(product),
        Word::Int(n) => product.checked_mul(*n),
        _ => None,
    });
    let found = all.zip(known).and_then(|(all, known)| all.checked_div(known).filter(|n| n * known == all));
    if let Some(found) = found {
        each_int(words, |n| if n == -1 { found } else { n });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text;

    fn words(call: &str) -> String {
        let source = format!("x = input : f32[2, 8]\nc = {call} : ?\noutput c\n");
        let graph = text::parse(source.as_bytes()).unwrap().graph;
        let ops = Ops::of(&graph);
        let node = graph.find("c").unwrap();
        format!("{} {:?}", graph.target(node), spelled(&graph, &ops, node))
    }

    #[test]
    fn one_call_in_several_spellings() {
        for (a, b) in [
            ("permute(x, [1, 0])", "permute(x, dims=[-1, -2])"),
            ("view(x, [4, 4])", "view(x, [4, -1])"),
            ("expand(x, [3, 2, 8])", "expand(x, [3, -1, 8])"),
            ("add(x, x)", "add(other=x, self=x, alpha=1)"),
            ("sum(x, [0, 1])", "sum(x, [-1, -2], False)"),
            ("unsqueeze(x, 2)", "unsqueeze(x, -1)"),
            ("stack([x, x], 2)", "stack([x, x], -1)"),
            ("cat([x, x])", "cat([x, x], -2)"),
            ("slice(x, 1, 4, 8)", "slice(x, -1, -4, end)"),
            ("slice(x)", "slice(x, 0, 0, 2, 1)"),
            ("select(x, 1, 7)", "select(x, -1, -1)"),
            ("topk(x, 2)", "topk(x, 2, 1, sorted=True)"),
            ("aten.avg_pool2d.default(x, [2, 3], [2, 3])", "aten.avg_pool2d.default(x, [2, 3], padding=0)"),
            ("softmax(x, 1, False)", "softmax(x, dim=-1, half_to_float=False)"),
            ("full([2], 1.0)", "full([2], 1.0, layout=strided, pin_memory=False)"),
            (
                "aten.select_backward.default(x, [2, 8, 3], 2, 0)",
                "aten.select_backward.default(x, [2, 8, 3], -1, 0)",
            ),
            ("aten.no_such.default(x, a=1, b=2)", "aten.no_such.default(x, b=2, a=1)"),
        ] {
            assert_eq!(words(a), words(b));
        }
    }

    #[test]
    fn other_calls() {
        for (a, b) in [
            ("permute(x, [1, 0])", "permute(x, [-2, -1])"),
            ("view(x, [4, 4])", "view(x, [-1, 2])"),
            ("view(x, [4, -1])", "view(x, [3, -1])"),
            ("add(x, x)", "add(x, x, alpha=2)"),
            ("add_scalar(x, 1)", "add_scalar(x, 1.0)"),
            ("unsqueeze(x, 1)", "unsqueeze(x, -1)"),
            ("slice(x, 1, 4, 8)", "slice(x, 1, 4, 7)"),
            ("select(x, 1, 7)", "select(x, 1, -2)"),
            ("select(x, 5, 7)", "select(x, -1, 7)"),
            ("topk(x, 2)", "topk(x, 2, 0)"),
            ("aten.avg_pool2d.default(x, [2, 2], [1, 1])", "aten.avg_pool2d.default(x, [2, 2])"),
            ("flip(x, [0, 1])", "flip(x, [1, 1])"),
            ("aten.no_such.default(x, 1)", "aten.no_such.default(x, a=1)"),
        ] {
            assert_ne!(words(a), words(b));
        }
    }
}
