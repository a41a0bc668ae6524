//! A graph at given sizes: every symbolic size is the number that it has where its symbols have theirs.

use super::{Dim, DimsId, ExprId, Graph, Op, Out, Value};
use crate::expression::{evaluate, spelled, symbols_of};
use indexmap::IndexSet;
use std::sync::Arc;

impl Graph {
    /// The symbols that inputs are recorded with: who calls the graph chooses their values.
    pub fn given_symbols(&self) -> impl Iterator<Item = &str> {
        let inputs = self.ids().map(|id| self.node(id)).filter(|node| node.op == Op::Placeholder);
        let exprs = inputs.flat_map(|node| self.exprs_of(node.out));
        exprs.flat_map(|expr| symbols_of(self.text(self.expr(expr).text)))
    }

    /// Sizes or strides in normal form.
    pub fn spelled(&self, dims: DimsId) -> Vec<String> {
        let text = |&dim: &Dim| match dim {
            Dim::Static(n) => n.to_string(),
            Dim::Symbolic(expr) => spelled(self.text(self.expr(expr).text)),
        };
        self.dims(dims).iter().map(text).collect()
    }

    /// This graph where each symbol has the value that `symbol` gives it. Expressions that have no value then stay as
    /// they are.
    pub fn at_sizes(&self, symbol: &dyn Fn(&str) -> Option<i64>) -> Graph {
        let mut graph = self.clone();
        let numbers: Vec<Option<i64>> =
            self.exprs().map(|expr| evaluate(self.text(expr.text), symbol)).collect();
        let number = |expr: ExprId| numbers.get(expr.0 as usize).copied().flatten();
        let sized = |dim: Dim| match dim {
            Dim::Symbolic(expr) => number(expr).map_or(dim, Dim::Static),
            Dim::Static(_) => dim,
        };
        graph.dims = IndexSet::default();
        let lists: Vec<DimsId> = self
            .dims
            .iter()
            .map(|dims| graph.intern_dims(&dims.iter().map(|&dim| sized(dim)).collect::<Vec<Dim>>()))
            .collect();
        for tensor in &mut graph.tensors {
            tensor.shape = lists[tensor.shape.0 as usize];
            tensor.stride = lists[tensor.stride.0 as usize];
            tensor.storage_bytes = tensor.storage_bytes.map(sized);
        }
        for value in &mut graph.values {
            if let Value::Symbolic(expr) = *value
                && let Some(n) = number(expr)
            {
                *value = Value::Int(n);
            }
        }
        let outs = graph.outs.iter_mut().chain(graph.nodes.iter_mut().map(|node| &mut node.out));
        for out in outs {
            if let Out::SymInt(expr) = *out
                && let Some(n) = number(expr)
            {
                *out = Out::Int(n);
            }
        }
        for (_, body) in &mut graph.subgraphs {
            *body = Arc::new(body.at_sizes(symbol));
        }
        graph
    }
}
