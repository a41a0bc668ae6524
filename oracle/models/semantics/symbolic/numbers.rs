//! Python numbers: computed where they are known, functions of their inputs elsewhere.

use super::arguments::Call;
use super::evaluation::Produced;
use super::key::Tag;
use super::machine::{Machine, Stop};
use super::reason::Reason;
use super::source::KeyId;
use super::source::Source;
use super::views::dimension;
use crate::expression::{normal_form, spelled, symbols_of};
use crate::graph::{ExprId, Graph, NodeId, Out, Value};
use crate::ops::shape::Size;
use crate::ops::{Kind, Number, OpInfo};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The numbers of a graph that are sums of products of symbols. Equal sums may be written in several ways, and
/// expressions of one text may have different hints.
pub(super) struct Sums {
    /// By expression its normal form, or its text where it has none.
    texts: Vec<Arc<str>>,
    /// The first expression of each sum.
    first: FxHashMap<Arc<str>, ExprId>,
    /// The first node that gives each symbol that stands for data as a number.
    binders: BTreeMap<String, NodeId>,
    /// What numbers are that have been computed.
    of_number: FxHashMap<KeyId, Arc<str>>,
}

impl Sums {
    pub fn new(graph: &Graph) -> Sums {
        let texts: Vec<Arc<str>> = graph.exprs().map(|expr| spelled(graph.text(expr.text)).into()).collect();
        let mut first = FxHashMap::default();
        for (id, text) in (0u32..).map(ExprId).zip(&texts) {
            first.entry(text.clone()).or_insert(id);
        }
        let mut binders = BTreeMap::new();
        let unbacked: BTreeSet<&str> = graph
            .symbols
            .iter()
            .filter(|symbol| symbol.unbacked)
            .map(|symbol| symbol.name.as_str())
            .collect();
        for id in graph.ids().filter(|_| !unbacked.is_empty()) {
            if let Out::SymInt(expr) = graph.node(id).out {
                let text = graph.text(graph.expr(expr).text);
                if unbacked.contains(text) {
                    binders.entry(text.to_string()).or_insert(id);
                }
            }
        }
        Sums { texts, first, binders, of_number: FxHashMap::default() }
    }

    /// The nodes that give the symbols of an expression that stand for data.
    pub fn binders(&self, text: &str) -> Vec<NodeId> {
        let names: BTreeSet<&str> =
            symbols_of(text).filter(|word| self.binders.contains_key(*word)).collect();
        names.into_iter().filter_map(|name| self.binders.get(name).copied()).collect()
    }

    /// An expression of this graph as it is written where it is a sum.
    pub fn text(&self, expr: ExprId) -> Arc<str> {
        self.texts[expr.0 as usize].clone()
    }

    /// The first expression that is the same sum.
    pub fn first(&self, sum: &str) -> Option<ExprId> {
        self.first.get(sum).copied()
    }
}

impl Machine<'_, '_> {
    /// Executes arithmetic on numbers.
    pub(super) fn number(&mut self, info: &OpInfo, op: Number) -> Result<Produced, Reason> {
        // The same Python functions take tensors.
        if matches!(self.graph.node(self.node).out, Out::Tensor(_)) {
            return self.opaque(info, None);
        }
        let graph = self.graph;
        let mut known = Vec::new();
        for &value in graph.args(self.node) {
            match value {
                Value::List(span) => {
                    known.extend(graph.values(span).iter().map(|&v| self.int_value(v).ok()));
                }
                value => known.push(self.int_value(value).ok()),
            }
        }
        let known: Option<Vec<i64>> = known.into_iter().collect();
        if let Some(result) = known.and_then(|known| op.compute(&known)) {
            return Ok(Produced::Int(result));
        }
        if let Some(sum) = self.sum_of(op) {
            return Ok(self.symbolic_number(&sum));
        }
        let target = self.target_symbol();
        self.words.0.clear();
        self.words.symbol(Tag::Target, target);
        self.encode_raw(self.node)?;
        Ok(Produced::Number(self.take_key()))
    }

    /// The number that a sum of symbols stands for: the same in all graphs of an arena.
    pub(super) fn symbolic_number(&mut self, sum: &Arc<str>) -> Produced {
        if let Ok(number) = sum.parse() {
            return Produced::Int(number);
        }
        let (name, symbol) = (self.arena.symbol("symbol"), self.arena.symbol(sum));
        let outer = std::mem::take(&mut self.words.0);
        self.words.symbol(Tag::Target, name);
        self.words.symbol(Tag::Symbolic, symbol);
        let key = self.take_key();
        self.words.0 = outer;
        self.sums.of_number.insert(key, sum.clone());
        Produced::Number(key)
    }

    /// What an argument is in symbols.
    pub(super) fn sum(&self, value: Value) -> Option<Arc<str>> {
        match value {
            Value::Symbolic(expr) => Some(self.sums.text(expr)),
            Value::Node(node) => match self.produced(node).ok()? {
                Produced::Number(key) => self.sums.of_number.get(&key).cloned(),
                Produced::Int(n) => Some(n.to_string().into()),
                _ => None,
            },
            value => self.int_value(value).ok().map(|n| n.to_string().into()),
        }
    }

    /// What arithmetic on sums of symbols gives, where that is such a sum.
    fn sum_of(&self, op: Number) -> Option<Arc<str>> {
        let args: Option<Vec<Arc<str>>> =
            self.graph.args(self.node).iter().map(|&value| self.sum(value)).collect();
        let text = match (op, &args?[..]) {
            (Number::Neg, [a]) => format!("-({a})"),
            (Number::Add, [a, b]) => format!("({a}) + ({b})"),
            (Number::Sub, [a, b]) => format!("({a}) - ({b})"),
            (Number::Mul, [a, b]) => format!("({a})*({b})"),
            (Number::FloorDiv, [a, b]) => format!("({a})//({b})"),
            (Number::Mod, [a, b]) => format!("Mod({a}, {b})"),
            (Number::Max, [a, b]) => format!("Max({a}, {b})"),
            (Number::Min, [a, b]) => format!("Min({a}, {b})"),
            _ => return None,
        };
        normal_form(&text).map(Arc::from)
    }

    /// Executes `sym_size`, `sym_numel`, `sym_stride`, `item`.
    pub(super) fn number_of_tensor(&mut self, info: &OpInfo, call: &Call<'_>) -> Result<Produced, Stop> {
        let tensor = self.tensor(call.node(0)?)?;
        if info.kind != Kind::Item && !self.is_symbolic(tensor) {
            let (sizes, strides) = (self.eval.sizes(tensor), self.eval.strides(tensor));
            let pick = |list: &[i64], dim| list.get(dim).copied().ok_or(Reason::arguments("no dimension"));
            return Ok(Produced::Int(match info.kind {
                Kind::SymSize => pick(sizes, dimension(self.int(call, 1)?, sizes.len())?)?,
                Kind::SymStride => pick(strides, dimension(self.int(call, 1)?, sizes.len())?)?,
                _ => super::layout::numel(sizes).ok_or(Reason::Overflow)?,
            }));
        }
        if info.kind == Kind::SymSize
            && let Some(Value::Node(of)) = self.graph.arg(self.node, 0)
            && self.is_sized_by_rule(of)
            && let Some(Size::Symbol(expr)) = self.size_asked_for(self.node)
        {
            return Ok(self.symbolic_number(&self.sums.text(expr)));
        }
        let target = self.target_symbol();
        if info.kind == Kind::Item {
            self.words.0.clear();
            self.words.symbol(Tag::Target, target);
            self.encode_bound(call, info.kind)?;
            return Ok(Produced::Number(self.take_key()));
        }
        // The size of a symbolic tensor is a function of what the tensor is made of, not of what it holds; the
        // value names both. Reading it is not reading memory, so no hazard is noted; and it is the same before a wait
        // as behind it.
        let value = self.eval.shown(self.arena, tensor, self.content(tensor))?;
        let value = match self.arena.single(value).map(|piece| self.arena.get(piece.source)) {
            Some(Source::InFlight { result }) => result,
            _ => value,
        };
        self.words.0.clear();
        self.words.symbol(Tag::Target, target);
        if let Some(index) = call.index("dim") {
            let dim = self.int(call, index)?;
            self.words.int(dim);
        }
        self.words.token(value, tensor.dtype);
        if let Some(recorded) = self.graph.tensor_of(call.node(0)?) {
            match info.kind {
                Kind::SymStride => self.put_dims(recorded.stride),
                Kind::SymNumel => self.put_dims(recorded.shape),
                _ => {}
            }
        }
        Ok(Produced::Number(self.take_key()))
    }

    /// Executes `operator.getitem`.
    pub(super) fn item(&mut self, info: &OpInfo) -> Result<Produced, Reason> {
        let graph = self.graph;
        let (Some(Value::Node(from)), Some(index)) = (graph.arg(self.node, 0), graph.arg(self.node, 1))
        else {
            return Err(Reason::arguments("no item of a node"));
        };
        let (start, len) = match self.produced(from)? {
            Produced::List(start, len) => (start, len),
            // Of what is not known to be there, nothing tells one item from another.
            Produced::Nothing => return Err(Reason::Input(graph.name(from).to_string())),
            _ => return self.opaque(info, None),
        };
        let index = match index {
            Value::Str(key) => match graph.node(from).out {
                Out::Dict(span) => graph.outs(span).chunks_exact(2).position(|pair| pair[0] == Out::Key(key)),
                _ => None,
            },
            value => match self.int_value(value) {
                Ok(n) if n < 0 => n.checked_add(i64::from(len)).and_then(|n| usize::try_from(n).ok()),
                Ok(n) => usize::try_from(n).ok(),
                Err(_) => None,
            },
        };
        match index.filter(|&i| i < len as usize) {
            Some(index) => Ok(match self.eval.items[start as usize + index] {
                Produced::Tensor(tensor, _) => self.done(tensor),
                Produced::Unknown(_) => return Err(Reason::Input(graph.name(from).to_string())),
                item => item,
            }),
            None => Err(Reason::arguments(format!("{} has {len} results", graph.name(from)))),
        }
    }
}
