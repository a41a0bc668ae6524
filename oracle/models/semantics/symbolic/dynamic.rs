//! Tensors of symbolic sizes.
//!
//! Such a tensor has one element that stands for all of it. A view of one is named by its window where that is known in
//! the symbols of the graph, and else by the views that lead to it from its storage; the window of the whole storage has
//! no name. What a view shows is a function of that name and of what the storage holds. Equal functions of equal contents
//! are equal; anything else proves nothing, so all of this is marked as assumed.

use super::arena::Arena;
use super::arguments::Call;
use super::evaluation::{Produced, Tensor};
use super::key::{Tag, Words};
use super::machine::Machine;
use super::source::{KeyId, ValueId};
use crate::expression::{spelled, spelled_stride, symbols_of};
use crate::graph::{Dim, DimsId, ExprId, NodeId, Op, Value};
use crate::ops::shape::{self, Given, NoWindow, Size, Sizes, Viewed, Window};
use crate::ops::{Kind, View};
use smallvec::smallvec;

/// The value of a tensor of symbolic sizes, or of a symbolic view, over `content`.
pub(super) fn shown(arena: &mut Arena, tensor: Tensor, content: ValueId) -> ValueId {
    let Some(path) = tensor.path else { return content };
    let mut words = Words::default();
    let name = arena.symbol("view");
    words.symbol(Tag::Target, name);
    words.put(Tag::Number, path.0);
    words.token(content, tensor.dtype);
    arena.opaque_movement(&words, 1, &[content])
}

/// The content of a storage after `value` has been written through `tensor`.
pub(super) fn written(arena: &mut Arena, tensor: Tensor, content: ValueId, value: ValueId) -> ValueId {
    let len = arena.len(content);
    match tensor.path {
        None if len == arena.len(value) => value,
        path => {
            let mut words = Words::default();
            let name = arena.symbol("write");
            words.symbol(Tag::Target, name);
            if let Some(path) = path {
                words.put(Tag::Number, path.0);
            }
            words.token(content, tensor.dtype);
            words.token(value, tensor.dtype);
            arena.opaque_movement(&words, len, &[content, value])
        }
    }
}

/// The numbers that a call gives, in the symbols of the graph.
struct Symbols<'n, 'm, 'g, 'c> {
    machine: &'n Machine<'m, 'g>,
    call: &'n Call<'c>,
}

impl Symbols<'_, '_, '_, '_> {
    fn size(&self, value: Value) -> Option<Size> {
        let machine = self.machine;
        match value {
            Value::Symbolic(expr) => Some(machine.size_of(expr)),
            Value::Node(node) if matches!(machine.eval.result(node, 0), Produced::Number(_)) => {
                // What is recorded of a number that a call computes may be out of date.
                machine.sums.first(&machine.sum(value)?).map(Size::Symbol)
            }
            value => machine.int_value(value).ok().map(Size::Known),
        }
    }
}

impl Given for Symbols<'_, '_, '_, '_> {
    type Stop = ();

    fn number(&self, index: usize) -> Result<Option<Size>, ()> {
        match self.call.bound.given(index) {
            Some(Value::None) => Ok(None),
            Some(value) => self.size(value).map(Some).ok_or(()),
            None => Ok(self.call.bound.default_int(index).map(Size::Known)),
        }
    }

    fn numbers(&self, index: usize) -> Result<Option<Sizes>, ()> {
        match self.call.bound.given(index) {
            Some(Value::List(span)) => {
                let sizes = self.machine.graph.values(span).iter().map(|&value| self.size(value));
                sizes.collect::<Option<Sizes>>().map(Some).ok_or(())
            }
            _ => Ok(self.number(index)?.map(|number| smallvec![number])),
        }
    }

    fn stop(&self, _: NoWindow) {}
}

/// All that makes a window.
fn sizes_of(window: &Window) -> impl Iterator<Item = Size> {
    window.shape.iter().chain(&window.strides).copied().chain([window.offset])
}

impl Machine<'_, '_> {
    /// A symbolic size. Expressions of one sum are one.
    fn size_of(&self, expr: ExprId) -> Size {
        Size::Symbol(self.sums.first(&self.sums.text(expr)).unwrap_or(expr))
    }

    /// What `sym_size` gives.
    pub(super) fn size_asked_for(&self, node: NodeId) -> Option<Size> {
        let &[Value::Node(of), Value::Int(dim)] = self.graph.args(node) else { return None };
        if self.ops.call(self.graph, node)?.kind != Kind::SymSize {
            return None;
        }
        let dims = self.graph.dims(self.graph.tensor_of(of)?.shape);
        match Size::from(*dims.get(shape::dimension(dim, dims.len()).ok()?)?) {
            Size::Symbol(expr) => Some(self.size_of(expr)),
            size => Some(size),
        }
    }

    /// The window of the whole of a storage of symbolic sizes, which the argument `node` shows.
    fn whole(&self, node: NodeId) -> Option<Window> {
        let tensor = self.graph.tensor_of(node)?;
        let sizes = |dims| -> Sizes {
            let size = |&dim| match Size::from(dim) {
                Size::Symbol(expr) => self.size_of(expr),
                size => size,
            };
            self.graph.dims(dims).iter().map(size).collect()
        };
        let (shape, strides) = (sizes(tensor.shape), sizes(tensor.stride));
        let offset = Size::Known(tensor.offset);
        (shape.len() == strides.len()).then_some(Window { shape, strides, offset })
    }

    /// An input of symbolic sizes that may leave gaps in its storage, or that shares it: what the storage holds is not what
    /// it holds, so it is a view of it.
    pub(super) fn as_part(&mut self, tensor: Tensor, is_shared: bool) -> Tensor {
        let is_part = |window: &Window| is_shared || !self.is_dense(window);
        let Some(window) = self.whole(self.node).filter(is_part) else { return tensor };
        let nowhere = Window { shape: Sizes::new(), strides: Sizes::new(), offset: Size::Known(-1) };
        let name = self.key_of_window(&nowhere, &window);
        self.windows.insert((tensor.storage, None), nowhere);
        self.windows.insert((tensor.storage, Some(name)), window);
        Tensor { path: Some(name), ..tensor }
    }

    /// Whether a window certainly shows all of a storage, each element once.
    fn is_dense(&self, window: &Window) -> bool {
        let mut left: Vec<usize> = (0..window.shape.len()).collect();
        left.retain(|&dim| window.shape[dim] != Size::Known(1));
        let mut step = self.size_text(Size::Known(1));
        while !left.is_empty() {
            let is_next = |&dim: &usize| self.stride_text(window.strides[dim]) == step;
            let Some(at) = left.iter().position(is_next) else { return false };
            step = self.product(&step, window.shape[left.swap_remove(at)]);
        }
        window.offset == Size::Known(0)
    }

    /// Whether the sizes of the current node's result certainly show the elements of a tensor as they lie.
    pub(super) fn is_shown_as_it_lies(&self, node: NodeId, tensor: Tensor) -> bool {
        let known = self.windows.get(&(tensor.storage, tensor.path)).cloned();
        let window = known.or_else(|| self.whole(node).filter(|_| tensor.path.is_none()));
        let (Some(window), Some(result)) = (window, self.whole(self.node)) else { return false };
        self.strides_of_view(&window, &result.shape).is_some()
    }

    /// The strides with which sizes show what a window shows, in normal form; `None` where it is not known that there are some.
    fn strides_of_view(&self, window: &Window, shape: &[Size]) -> Option<Vec<String>> {
        if sizes_of(window).chain(shape.iter().copied()).any(|size| size == Size::Unknown) {
            return None;
        }
        let texts = |sizes: &[Size]| sizes.iter().map(|&size| self.size_text(size)).collect::<Vec<String>>();
        let strides: Vec<String> = window.strides.iter().map(|&stride| self.stride_text(stride)).collect();
        shape::strides_of_symbolic_view(&texts(&window.shape), &strides, &texts(shape))
    }

    /// A size in normal form.
    fn size_text(&self, size: Size) -> String {
        match size {
            Size::Known(n) => n.to_string(),
            Size::Symbol(expr) => self.sums.text(expr).to_string(),
            Size::Unknown => String::new(),
        }
    }

    /// A stride in normal form.
    fn stride_text(&self, size: Size) -> String {
        spelled_stride(&self.size_text(size))
    }

    /// A product in normal form.
    fn product(&self, step: &str, size: Size) -> String {
        spelled(&format!("({step})*({})", self.size_text(size)))
    }

    /// Whether the recorded sizes of a node follow from a rule and from sizes of inputs: those of an operator without a
    /// rule, and those that depend on data, nobody checks.
    pub(super) fn is_sized_by_rule(&self, node: NodeId) -> bool {
        let mut node = node;
        loop {
            if self.graph.node(node).op == Op::Placeholder {
                break;
            }
            match self.ops.call(self.graph, node).map(|info| info.kind) {
                Some(Kind::GetItem) => match self.graph.arg(node, 0) {
                    Some(Value::Node(before)) if before < node => node = before,
                    _ => return false,
                },
                None | Some(Kind::Unknown | Kind::Opaque | Kind::Number(_)) => return false,
                Some(_) => break,
            }
        }
        let is_known = |expr: ExprId| {
            let text = self.sums.text(expr);
            let unbacked = |name: &str| self.graph.symbols.iter().any(|s| s.unbacked && s.name == name);
            !symbols_of(&text).any(unbacked)
        };
        self.graph.tensor_of(node).is_some_and(|tensor| {
            self.graph.dims(tensor.shape).iter().all(|&dim| match dim {
                Dim::Static(_) => true,
                Dim::Symbolic(expr) => is_known(expr),
            })
        })
    }

    /// Whether two nodes are recorded with the same sizes.
    pub(super) fn have_one_size(&self, one: NodeId, other: NodeId) -> bool {
        let sizes = |node| self.whole(node).map(|window| window.shape);
        sizes(one).is_some() && sizes(one) == sizes(other)
    }

    /// The name of the window that result `index` of a view shows of `base`, `Some(None)` for that of the whole
    /// storage; `None` where the window is not known.
    pub(super) fn window_name(
        &mut self,
        call: &Call<'_>,
        view: View,
        base: Tensor,
        index: usize,
    ) -> Option<Option<KeyId>> {
        let known = self.windows.get(&(base.storage, base.path)).cloned();
        let of = match (known, base.path) {
            (Some(window), _) => window,
            (None, None) => {
                let whole = self.whole(call.node(0).ok()?)?;
                self.windows.insert((base.storage, None), whole.clone());
                whole
            }
            (None, Some(_)) => return None,
        };
        let given = Symbols { machine: self, call };
        let window = match view {
            View::Dtype | View::AsComplex | View::AsReal | View::Conj => return None,
            View::Sizes => {
                let sizes = given.numbers(1).ok()??;
                match of.viewed(&sizes).ok()? {
                    Viewed::Window(window) if !sizes_of(&window).any(|size| size == Size::Unknown) => window,
                    Viewed::Copy(_) => return None,
                    // A size that is left open is as recorded.
                    _ => {
                        let recorded = self.whole(self.node)?;
                        let strides = self.strides_of_view(&of, &recorded.shape)?;
                        let fits = |(given, recorded): (&Size, &Size)| {
                            *given == Size::Known(-1) || given == recorded
                        };
                        let lies_so = |((size, stride), own): ((&Size, &Size), &String)| {
                            *size == Size::Known(1) || self.stride_text(*stride) == *own
                        };
                        let is_such = sizes.len() == recorded.shape.len()
                            && sizes.iter().zip(&recorded.shape).all(fits)
                            && recorded.shape.iter().zip(&recorded.strides).zip(&strides).all(lies_so);
                        Some(Window { offset: of.offset, ..recorded }).filter(|_| is_such)?
                    }
                }
            }
            _ => {
                // The results of one call are asked for one after another.
                let key = (self.node, base.storage, base.path);
                if self.pieces.as_ref().is_none_or(|(known, _)| *known != key) {
                    self.pieces = Some((key, shape::windows(view, of, &given, 1).ok()?));
                }
                self.pieces.as_ref()?.1.get(index)?.clone()
            }
        };
        if sizes_of(&window).any(|size| size == Size::Unknown) {
            return None;
        }
        let whole = self.windows.get(&(base.storage, None)).cloned()?;
        let name = (whole != window).then(|| self.key_of_window(&whole, &window));
        self.windows.insert((base.storage, name), window);
        Some(name)
    }

    /// The name of a window on a storage. What the storage holds is named by the elements of the `whole`, so where they
    /// lie is part of the name.
    fn key_of_window(&mut self, whole: &Window, window: &Window) -> KeyId {
        let name = self.arena.symbol("window");
        self.words.0.clear();
        self.words.symbol(Tag::Target, name);
        self.put_window(whole);
        self.put_window(window);
        self.take_key()
    }

    /// Sizes or strides as they are recorded.
    pub(super) fn put_dims(&mut self, dims: DimsId) {
        let sizes = self.graph.dims(dims).iter().map(|&dim| Size::from(dim)).collect();
        self.put_window(&Window { shape: sizes, strides: Sizes::new(), offset: Size::Known(0) });
    }

    pub(super) fn put_window(&mut self, window: &Window) {
        self.words.int(window.shape.len() as i64);
        for size in sizes_of(window) {
            match size {
                Size::Known(size) => self.words.int(size),
                Size::Symbol(expr) => {
                    let symbol = self.arena.symbol(&self.sums.text(expr));
                    self.words.symbol(Tag::Symbolic, symbol);
                }
                Size::Unknown => {}
            }
        }
    }
}
