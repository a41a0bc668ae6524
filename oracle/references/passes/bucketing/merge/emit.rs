//! Writing the nodes of a merged body into the list, with the metadata that a tracer would record.
//!
//! The nodes are those that `make_fx` gives under fake tensors in PyTorch 2.15. Every helper puts its nodes
//! right before one place in the list, in the order of the calls.

use super::layout::Layout;
use crate::graph::{Dtype, Editor, NodeId, Out, Str, Value};

/// A node of the body with its metadata.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The node.
    pub id: NodeId,
    /// What it returns.
    pub layout: Layout,
}

/// A body under construction.
pub struct Emitter<'a> {
    editor: &'a mut Editor,
    before: Option<NodeId>,
    nodes: Vec<NodeId>,
}

impl<'a> Emitter<'a> {
    /// Begins a body right before a node (at the end of the list if `None`).
    pub fn new(editor: &'a mut Editor, before: Option<NodeId>) -> Emitter<'a> {
        Emitter { editor, before, nodes: Vec::new() }
    }

    /// The editor, to look things up.
    pub fn editor(&self) -> &Editor {
        self.editor
    }

    /// The nodes so far.
    pub fn into_nodes(self) -> Vec<NodeId> {
        self.nodes
    }

    /// A list argument.
    pub fn list(&mut self, pieces: &[Piece]) -> Value {
        let values: Vec<Value> = pieces.iter().map(|p| Value::Node(p.id)).collect();
        self.editor.graph_mut().list(&values)
    }

    /// A list of numbers as an argument.
    pub fn ints(&mut self, ints: &[i64]) -> Value {
        self.editor.graph_mut().int_list(ints)
    }

    /// A call with any result.
    pub fn node(&mut self, target: &str, args: &[Value], kwargs: &[(&str, Value)], out: Out) -> NodeId {
        // FX names a node after its operator.
        let base = target.split('.').nth(1).unwrap_or(target);
        let id = self.editor.insert_before(self.before, base, target, args, kwargs, out);
        self.nodes.push(id);
        id
    }

    /// A call that returns one tensor.
    pub fn call(&mut self, target: &str, args: &[Value], kwargs: &[(&str, Value)], layout: Layout) -> Piece {
        let out = layout.store(self.editor.graph_mut());
        Piece { id: self.node(target, args, kwargs, out), layout }
    }

    /// A call that returns several tensors.
    pub fn calls(&mut self, target: &str, args: &[Value], layouts: &[Layout]) -> NodeId {
        let graph = self.editor.graph_mut();
        let outs: Vec<Out> = layouts.iter().map(|layout| layout.store(graph)).collect();
        let out = Out::Tuple(graph.push_outs(&outs));
        self.node(target, args, &[], out)
    }

    /// One result of several.
    pub fn getitem(&mut self, of: NodeId, index: usize, layout: &Layout) -> Piece {
        self.call("operator.getitem", &[Value::Node(of), Value::Int(index as i64)], &[], layout.clone())
    }

    /// `torch.empty` of some sizes.
    pub fn empty(&mut self, sizes: &[i64], dtype: Dtype, device: Str) -> Piece {
        let size = self.ints(sizes);
        let kwargs = [
            ("dtype", Value::Dtype(dtype)),
            ("device", Value::Device(device)),
            ("pin_memory", Value::Bool(false)),
        ];
        self.call("aten.empty.memory_format", &[size], &kwargs, Layout::fresh(sizes, dtype, device))
    }

    /// `x.narrow(0, start, size)`.
    pub fn slice(&mut self, x: &Piece, start: i64, size: i64) -> Piece {
        let args = [Value::Node(x.id), Value::Int(0), Value::Int(start), Value::Int(start + size)];
        self.call("aten.slice.Tensor", &args, &[], x.layout.narrowed(0, start, size))
    }

    /// `torch.cat`; dimension 0 is not written as an argument. `dtype` is the inputs' promoted dtype.
    pub fn cat(&mut self, pieces: &[Piece], dim: usize, dtype: Dtype) -> Piece {
        let list = self.list(pieces);
        let mut shape = pieces[0].layout.shape.clone();
        shape[dim] = pieces.iter().map(|p| p.layout.shape[dim]).sum();
        let layout = Layout::fresh(&shape, dtype, pieces[0].layout.device);
        match dim {
            0 => self.call("aten.cat.default", &[list], &[], layout),
            _ => self.call("aten.cat.default", &[list, Value::Int(dim as i64)], &[], layout),
        }
    }

    /// `aten.view`, with the sizes as given (a -1 stays) and the sizes they mean.
    fn view(&mut self, x: &Piece, given: &[i64], layout: Layout) -> Piece {
        let sizes = self.ints(given);
        self.call("aten.view.default", &[Value::Node(x.id), sizes], &[], layout)
    }

    /// `x.reshape(sizes)`; one size may be -1. A view of contiguous input keeps the sizes as given; a view of
    /// other input has them resolved; what no view can show is cloned first.
    pub fn reshape(&mut self, x: &Piece, given: &[i64]) -> Piece {
        let known: i64 = given.iter().filter(|&&n| n != -1).product();
        let rest = x.layout.numel().checked_div(known).unwrap_or(0);
        let sizes: Vec<i64> = given.iter().map(|&n| if n == -1 { rest } else { n }).collect();
        match x.layout.viewed(&sizes) {
            Some(layout) if x.layout.is_contiguous() => self.view(x, given, layout),
            Some(layout) => self.view(x, &sizes, layout),
            None => {
                let fresh = |shape: &[i64]| Layout::fresh(shape, x.layout.dtype, x.layout.device);
                let copy = self.contiguous(x);
                let size = self.ints(&sizes);
                self.call("aten._unsafe_view.default", &[Value::Node(copy.id), size], &[], fresh(&sizes))
            }
        }
    }

    /// `x.clone(memory_format=contiguous_format)`.
    pub fn contiguous(&mut self, x: &Piece) -> Piece {
        let format = self.editor.graph_mut().intern("contiguous_format");
        let format = [("memory_format", Value::MemoryFormat(format))];
        let layout = Layout::fresh(&x.layout.shape, x.layout.dtype, x.layout.device);
        self.call("aten.clone.default", &[Value::Node(x.id)], &format, layout)
    }

    /// `x.view(dtype)`: two nodes, even where the dtype is the same. `None` where it cannot be.
    pub fn retype(&mut self, x: &Piece, dtype: Dtype) -> Option<Piece> {
        let layout = x.layout.retyped(dtype)?;
        let view = [Value::Node(x.id), Value::Dtype(dtype)];
        let view = self.call("aten.view.dtype", &view, &[], layout.clone());
        Some(self.call("aten.alias.default", &[Value::Node(view.id)], &[], layout))
    }

    /// `split_with_sizes` along a dimension, and its results; dimension 0 is not written as an argument.
    pub fn split(&mut self, x: &Piece, sizes: &[i64], dim: usize) -> Vec<Piece> {
        let mut start = 0;
        let layouts: Vec<Layout> = sizes
            .iter()
            .map(|&size| {
                start += size;
                x.layout.narrowed(dim, start - size, size)
            })
            .collect();
        let mut args = vec![Value::Node(x.id), self.ints(sizes)];
        if dim != 0 {
            args.push(Value::Int(dim as i64));
        }
        let split = self.calls("aten.split_with_sizes.default", &args, &layouts);
        layouts.iter().enumerate().map(|(i, layout)| self.getitem(split, i, layout)).collect()
    }

    /// `wait_tensor`.
    pub fn wait(&mut self, x: &Piece) -> Piece {
        let layout = Layout::fresh(&x.layout.shape, x.layout.dtype, x.layout.device);
        self.call("_c10d_functional.wait_tensor.default", &[Value::Node(x.id)], &[], layout)
    }
}
