//! Values of symbolic sizes beside those of a graph: an input whose first size is `s0`, and calls on what comes of it.
//!
//! One size of each value is a number of times `s0`, and a number more; the others are numbers. Values are row-major or
//! transposed. Calls are such as passes look for: views and slices that show everything, sums with zeros, constants of
//! symbolic size, joined pieces, casts to and fro, products, collectives. Sizes are given as the input that holds the
//! symbol, as what `sym_size` says, or as what is computed of either.
//!
//! Not made: several symbols, sizes that are products of two symbols, guards, and values of symbolic sizes in anything
//! else that the generator makes.

use super::source::Source;
use crate::graph::{Dim, Dtype, Editor, Expr, Graph, NodeId, Op, Out, Symbol, Tensor, Value};

const SYMBOL: &str = "s0";
/// Calls at most, but for those that compute sizes.
const MOST: u32 = 14;

/// So many times `s0`, and so much more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Size {
    times: i64,
    more: i64,
}

impl Size {
    const fn known(n: i64) -> Size {
        Size { times: 0, more: n }
    }

    fn scaled(self, by: i64) -> Size {
        Size { times: self.times * by, more: self.more * by }
    }

    fn plus(self, other: Size) -> Size {
        Size { times: self.times + other.times, more: self.more + other.more }
    }

    /// As sympy prints it.
    fn text(self) -> String {
        let times = match self.times {
            1 => SYMBOL.to_string(),
            times => format!("{times}*{SYMBOL}"),
        };
        match self.more {
            0 => times,
            more if more < 0 => format!("{times} - {}", -more),
            more => format!("{times} + {more}"),
        }
    }
}

/// A value: sizes, of which one is symbolic; strides; where it begins in its memory; a dtype.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Type {
    shape: Vec<Size>,
    stride: Vec<Size>,
    offset: i64,
    dtype: Dtype,
}

impl Type {
    fn row_major(shape: Vec<Size>, dtype: Dtype) -> Type {
        let mut stride = vec![Size::known(1); shape.len()];
        for at in (1..shape.len()).rev() {
            stride[at - 1] = match (shape[at], stride[at]) {
                (size, Size { times: 0, more }) => size.scaled(more),
                (size, stride) => stride.scaled(size.more),
            };
        }
        Type { shape, stride, offset: 0, dtype }
    }

    fn is_row_major(&self) -> bool {
        self.stride == Type::row_major(self.shape.clone(), self.dtype).stride
    }

    /// Of two sizes, both known to be more than one, the first of which is symbolic.
    fn is_table(&self) -> bool {
        self.shape.len() == 2 && self.shape[0].times > 0 && self.shape[1].more > 1 && self.is_row_major()
    }
}

#[derive(Clone, Debug)]
struct Var {
    node: NodeId,
    ty: Type,
}

struct Writer<'s, S> {
    source: &'s mut S,
    editor: Editor,
    hint: i64,
    device: &'static str,
    /// What calls are written before.
    anchor: NodeId,
    /// The input that holds the symbol.
    symbol: NodeId,
    /// A process group and how many ranks it has, if there is one.
    group: Option<(String, i64)>,
    values: Vec<Var>,
}

/// The graph with values of symbolic sizes beside its own; `None` where it has symbols that they would be mixed up with.
pub fn with_symbol<S: Source>(source: &mut S, graph: &Graph) -> Option<Graph> {
    let output = graph.output()?;
    let Some(Value::List(returned)) = graph.arg(output, 0) else { return None };
    if graph.symbols.iter().any(|symbol| symbol.name == SYMBOL) || graph.find("n").is_some() {
        return None;
    }
    let mut returned = graph.values(returned).to_vec();
    let first = graph.ids().find(|&id| graph.node(id).op != Op::Placeholder)?;
    let inner = source.between(first.0, output.0);
    let groups: Vec<(String, i64)> =
        graph.world.groups.iter().map(|group| (group.name.clone(), i64::from(group.size))).collect();
    let group = (!groups.is_empty()).then(|| groups[source.below(groups.len() as u32) as usize].clone());
    let mut editor = Editor::new(graph);
    let hint = i64::from(source.between(2, 6));
    let device = source.one_of(&["cuda:0", "cuda:0", "cpu"]);
    let range = ("2".to_string(), "int_oo".to_string());
    let name = SYMBOL.to_string();
    editor.graph_mut().symbols.push(Symbol { name, hint: Some(hint), range, unbacked: false });
    let mut writer =
        Writer { source, editor, hint, device, anchor: first, symbol: NodeId(0), group, values: Vec::new() };
    writer.inputs();
    writer.anchor = NodeId(inner);
    for _ in 0..writer.source.between(3, MOST) {
        writer.step();
    }
    for var in &writer.values {
        let is_read = !writer.editor.users(var.node).is_empty();
        let is_input = writer.editor.graph().node(var.node).op == Op::Placeholder;
        let share = if is_input {
            3
        } else if is_read {
            15
        } else {
            85
        };
        if writer.source.percent(share) {
            returned.push(Value::Node(var.node));
        }
    }
    let list = writer.editor.graph_mut().list(&returned);
    writer.editor.set_args(output, &[list]);
    Some(writer.editor.finish())
}

impl<S: Source> Writer<'_, S> {
    fn dim(&mut self, size: Size) -> Dim {
        if size.times == 0 {
            return Dim::Static(size.more);
        }
        let hint = Some(size.times * self.hint + size.more);
        let graph = self.editor.graph_mut();
        let text = graph.intern(&size.text());
        Dim::Symbolic(graph.intern_expr(Expr { text, hint }))
    }

    fn number(&mut self, size: Size) -> Out {
        match self.dim(size) {
            Dim::Static(n) => Out::Int(n),
            Dim::Symbolic(expr) => Out::SymInt(expr),
        }
    }

    fn tensor(&mut self, ty: &Type) -> Out {
        let shape: Vec<Dim> = ty.shape.iter().map(|&size| self.dim(size)).collect();
        let stride: Vec<Dim> = ty.stride.iter().map(|&size| self.dim(size)).collect();
        let graph = self.editor.graph_mut();
        let (shape, stride) = (graph.intern_dims(&shape), graph.intern_dims(&stride));
        let device = graph.intern(self.device);
        Out::Tensor(graph.push_tensor(Tensor {
            shape,
            stride,
            dtype: ty.dtype,
            requires_grad: None,
            device,
            storage: None,
            offset: ty.offset,
            storage_bytes: None,
            is_guessed: false,
        }))
    }

    fn input(&mut self, name: &str, out: Out) -> NodeId {
        let node = self.editor.insert_before(Some(self.anchor), name, name, &[], &[], out);
        let name = self.editor.graph().name(node).to_string();
        let target = self.editor.graph_mut().intern_target(&name);
        let input = self.editor.graph_mut().node_mut(node);
        (input.op, input.target) = (Op::Placeholder, target);
        node
    }

    fn inputs(&mut self) {
        let out = self.number(Size { times: 1, more: 0 });
        self.symbol = self.input("n", out);
        for _ in 0..self.source.between(1, 2) {
            let columns = self.source.one_of(&[2, 4]);
            let ty = Type::row_major(vec![Size { times: 1, more: 0 }, Size::known(columns)], Dtype::F32);
            let out = self.tensor(&ty);
            let node = self.input("rows", out);
            self.values.push(Var { node, ty });
        }
    }

    fn call(&mut self, target: &str, args: &[Value], kwargs: &[(&str, Value)], ty: &Type) -> NodeId {
        let out = self.tensor(ty);
        self.editor.insert_before(Some(self.anchor), "sized", target, args, kwargs, out)
    }

    fn made(&mut self, target: &str, args: &[Value], kwargs: &[(&str, Value)], ty: Type) {
        let node = self.call(target, args, kwargs, &ty);
        self.values.push(Var { node, ty });
    }

    /// A size as an argument: the input, what `sym_size` says of a value, or what is computed.
    fn size(&mut self, size: Size) -> Value {
        if size.times == 0 {
            return Value::Int(size.more);
        }
        let mut node = self.symbol;
        let wanted = Size { times: 1, more: 0 };
        let tables: Vec<NodeId> =
            self.values.iter().filter(|var| var.ty.shape[0] == wanted).map(|var| var.node).collect();
        if !tables.is_empty() && self.source.percent(30) {
            let of = tables[self.source.below(tables.len() as u32) as usize];
            let out = self.number(wanted);
            let args = [Value::Node(of), Value::Int(0)];
            node = self.editor.insert_before(Some(self.anchor), "size", "aten.sym_size.int", &args, &[], out);
        }
        let product = Size { times: size.times, more: 0 };
        for (target, by, none, size) in
            [("operator.mul", size.times, 1, product), ("operator.add", size.more, 0, size)]
        {
            if by != none {
                let out = self.number(size);
                let args = [Value::Node(node), Value::Int(by)];
                node = self.editor.insert_before(Some(self.anchor), "size", target, &args, &[], out);
            }
        }
        Value::Node(node)
    }

    fn sizes(&mut self, sizes: &[Size]) -> Value {
        let values: Vec<Value> = sizes.iter().map(|&size| self.size(size)).collect();
        self.editor.graph_mut().list(&values)
    }

    fn some(&mut self, fits: impl Fn(&Var) -> bool) -> Option<Var> {
        let found: Vec<&Var> = self.values.iter().filter(|var| fits(var)).collect();
        let at = self.source.below((found.len() as u32).max(1)) as usize;
        found.get(at).map(|&var| var.clone())
    }

    fn step(&mut self) {
        let Some(x) = self.some(|_| true) else { return };
        let of = Value::Node(x.node);
        let Var { ty, .. } = x;
        match self.source.below(16) {
            0 | 1 => {
                let target = self.source.one_of(&[
                    "aten.relu.default",
                    "aten.neg.default",
                    "aten.sin.default",
                    "aten.tanh.default",
                ]);
                self.made(target, &[of], &[], ty);
            }
            2 => {
                let other = self.some(|var| var.ty == ty).map_or(of, |var| Value::Node(var.node));
                let target = self.source.one_of(&["aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor"]);
                self.made(target, &[of, other], &[], ty);
            }
            3 => {
                let target = self.source.one_of(&["aten.add.Tensor", "aten.mul.Tensor"]);
                let by = [Value::Int(0), Value::Int(1), Value::Float(2.0), Value::Node(self.symbol)];
                let by = self.source.one_of(&by);
                self.made(target, &[of, by], &[], ty);
            }
            4 if ty.is_row_major() => {
                let sizes = self.sizes(&ty.shape);
                let target = self.source.one_of(&["aten.view.default", "aten.expand.default"]);
                self.made(target, &[of, sizes], &[], ty);
            }
            5 if ty.is_table() => self.flat(of, &ty),
            6 if ty.shape.len() == 2 => {
                let dims = self.editor.graph_mut().int_list(&[1, 0]);
                let swap = |sizes: &[Size]| vec![sizes[1], sizes[0]];
                let ty = Type { shape: swap(&ty.shape), stride: swap(&ty.stride), ..ty };
                self.made("aten.permute.default", &[of, dims], &[], ty);
            }
            7 => {
                let end = Value::Int(i64::MAX);
                let zero = Value::Int(0);
                self.made("aten.slice.Tensor", &[of, zero, zero, end], &[], ty);
            }
            // Some row is left for every value of the symbol, and a tracer that sees one row takes it for a number.
            8 if ty.is_table()
                && 2 * ty.shape[0].times + ty.shape[0].more > 1
                && self.hint * ty.shape[0].times + ty.shape[0].more > 2 =>
            {
                let rows = ty.shape[0].plus(Size::known(-1));
                let part = Type::row_major(vec![rows, ty.shape[1]], ty.dtype);
                let args = [of, Value::Int(0), Value::Int(1), Value::Int(i64::MAX)];
                let rest = Type { offset: ty.shape[1].more, ..part.clone() };
                let rest = self.call("aten.slice.Tensor", &args, &[], &rest);
                self.made("aten.neg.default", &[Value::Node(rest)], &[], part);
            }
            // Constant folding makes such a constant, which on a device takes one.
            9 if self.device == "cpu" => {
                let sizes = self.sizes(&ty.shape);
                let value = self.source.one_of(&[Value::Int(0), Value::Int(1), Value::Float(0.5)]);
                let device = Value::Device(self.editor.graph_mut().intern(self.device));
                let kwargs = [
                    ("dtype", Value::Dtype(ty.dtype)),
                    ("device", device),
                    ("pin_memory", Value::Bool(false)),
                ];
                let full = Type::row_major(ty.shape, ty.dtype);
                self.made("aten.full.default", &[sizes, value], &kwargs, full);
            }
            10 if ty.is_table() && ty.shape[0].times < 4 => {
                let columns = ty.shape[1];
                let fits =
                    |var: &Var| var.ty.is_table() && var.ty.shape[1] == columns && var.ty.dtype == ty.dtype;
                let Some(other) = self.some(fits) else { return };
                let list = self.editor.graph_mut().list(&[of, Value::Node(other.node)]);
                let rows = ty.shape[0].plus(other.ty.shape[0]);
                self.made(
                    "aten.cat.default",
                    &[list, Value::Int(0)],
                    &[],
                    Type::row_major(vec![rows, columns], ty.dtype),
                );
            }
            11 if ty.is_table() => self.pieces(of, &ty),
            12 if ty.dtype == Dtype::F32 => {
                let dtype = self.source.one_of(&[Dtype::F16, Dtype::F64, Dtype::F32]);
                let copy = Type { dtype, ..ty.clone() };
                let there =
                    self.call("prims.convert_element_type.default", &[of, Value::Dtype(dtype)], &[], &copy);
                let back = [Value::Node(there), Value::Dtype(Dtype::F32)];
                self.made("prims.convert_element_type.default", &back, &[], ty);
            }
            13 => {
                let kept = self.source.percent(50);
                let format = self.editor.graph_mut().intern("contiguous_format");
                let contiguous = [("memory_format", Value::MemoryFormat(format))];
                let kwargs = if kept { &[][..] } else { &contiguous[..] };
                let ty = if kept { ty } else { Type::row_major(ty.shape, ty.dtype) };
                self.made("aten.clone.default", &[of], kwargs, ty);
            }
            14 if ty.is_table() && ty.dtype == Dtype::F32 => {
                let inner = ty.shape[1];
                let out = self.tensor(&Type::row_major(vec![inner, Size::known(4)], Dtype::F32));
                let anchor = std::mem::replace(&mut self.anchor, self.values[0].node);
                let weight = self.input("weight", out);
                self.anchor = anchor;
                let product = Type::row_major(vec![ty.shape[0], Size::known(4)], Dtype::F32);
                self.made("aten.mm.default", &[of, Value::Node(weight)], &[], product);
            }
            15 if ty.is_table() && ty.shape[0].times < 3 => self.communicate(of, &ty),
            _ => self.made("aten.relu.default", &[of], &[], ty),
        }
    }

    /// All elements in one row, and in a table again.
    fn flat(&mut self, of: Value, ty: &Type) {
        let all = ty.shape[0].scaled(ty.shape[1].more);
        let sizes = match self.source.percent(50) {
            true => self.editor.graph_mut().int_list(&[-1]),
            false => self.sizes(&[all]),
        };
        let row = Type::row_major(vec![all], ty.dtype);
        let flat = self.call("aten.view.default", &[of, sizes], &[], &row);
        let inner = self.source.one_of(&[1, 2]);
        let sizes = [ty.shape[0].scaled(inner), Size::known(ty.shape[1].more / inner)];
        let args = [Value::Node(flat), self.sizes(&sizes)];
        self.made("aten.view.default", &args, &[], Type::row_major(sizes.to_vec(), ty.dtype));
    }

    /// Two pieces of the columns, which are joined again, in their order or the other one.
    fn pieces(&mut self, of: Value, ty: &Type) {
        let half = Size::known(ty.shape[1].more / 2);
        let pieces =
            [0, half.more].map(|offset| Type { shape: vec![ty.shape[0], half], offset, ..ty.clone() });
        let outs = [self.tensor(&pieces[0]), self.tensor(&pieces[1])];
        let span = self.editor.graph_mut().push_outs(&outs);
        let args = [of, Value::Int(half.more), Value::Int(1)];
        let anchor = Some(self.anchor);
        let split =
            self.editor.insert_before(anchor, "sized", "aten.split.Tensor", &args, &[], Out::Tuple(span));
        let mut items = [0, 1].map(|index| {
            let args = [Value::Node(split), Value::Int(index)];
            Value::Node(self.call("operator.getitem", &args, &[], &pieces[index as usize]))
        });
        if self.source.percent(40) {
            items.swap(0, 1);
        }
        let list = self.editor.graph_mut().list(&items);
        self.made("aten.cat.default", &[list, Value::Int(1)], &[], ty.clone());
    }

    /// A collective and its wait.
    fn communicate(&mut self, of: Value, ty: &Type) {
        let Some((group, size)) = self.group.clone() else { return };
        let group = Value::Str(self.editor.graph_mut().intern(&group));
        let (flight, ty) = if self.source.percent(50) {
            let sum = Value::Str(self.editor.graph_mut().intern("sum"));
            (self.call("_c10d_functional.all_reduce.default", &[of, sum, group], &[], ty), ty.clone())
        } else {
            let all = Type::row_major(vec![ty.shape[0].scaled(size), ty.shape[1]], ty.dtype);
            let args = [of, Value::Int(size), group];
            (self.call("_c10d_functional.all_gather_into_tensor.default", &args, &[], &all), all)
        };
        self.made("_c10d_functional.wait_tensor.default", &[Value::Node(flight)], &[], ty);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Seeded, case};
    use super::*;
    use crate::analysis::validate::validate;
    use crate::ops::{Ops, shape};

    /// Such graphs are valid; at sizes that are numbers, what is recorded is true; and each call occurs.
    #[test]
    fn symbolic_values_are_valid_and_occur() {
        let mut targets = std::collections::BTreeMap::<String, u32>::new();
        for number in 0..300 {
            let graph = case(&Config { repair: 0, ..Config::default() }, 5, number).graph;
            let with = with_symbol(&mut Seeded::case(9, number), &graph).expect("there is no symbol");
            assert_eq!(validate(&with), validate(&graph), "case {number}");
            for size in [2, 7] {
                let sized = with.at_sizes(&|name| (name == SYMBOL).then_some(size));
                let ops = Ops::of(&sized);
                for id in sized.ids().filter(|&id| with.name(id).starts_with("size")) {
                    assert_eq!(shape::check(&sized, &ops, id), [], "case {number}: {}", with.name(id));
                    *targets.entry(with.target(id).to_string()).or_default() += 1;
                }
            }
        }
        assert!(targets.len() >= 24 && targets.values().all(|&count| count > 20), "{targets:?}");
    }
}
