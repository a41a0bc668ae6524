//! Proofs where an option lets floats part: both graphs with what may be written otherwise written in one way.
//!
//! # The idea
//!
//! What a level of [`Numerics`] allows is often one law at one place: `addmm` is a product and a sum, `x + 0.0` is `x`.
//! So the law is applied to both graphs, and the graphs that come out are proved equal bit for bit, at full size and
//! for sizes that are not known. That acquits under the option, and convicts nobody.
//!
//! What a law makes otherwise is *loose*, and all that is computed of it. Nothing loose may reach a call that tells
//! such differences apart: of roundings a comparison, an index, a cast to an integer; of the sign of a zero a quotient,
//! a function that is not known to take both zeros for one, or a look at the bits. There the law is no law, and nothing
//! is proved.
//!
//! # What it does not do
//!
//! Laws of several calls at once: sums in another order, distribution. These are tested by execution, where that is
//! possible (`semantics::trials`).

use super::proved::Evaluated;
use super::{AnalyzedGraph, Evidence};
use crate::definitions::{defined_calls, written_out};
use crate::graph::{DtypeClass, Editor, Graph, NodeId, Out, Tensor, TensorId, Value};
use crate::ops::{Binary, Kind, Matmul, OpInfo, Unary};
use crate::semantics::{Numerics, tells_roundings_apart};

/// The levels that have laws here, each with what it may write otherwise, in words.
const LEVELS: [(Numerics, &str); 3] = [
    (Numerics::ZeroSign, "x + 0 as x"),
    (Numerics::Reassociation, "addmm as a product and a sum, x + 0 as x"),
    (Numerics::Contraction, "fused functions as those that they are made of"),
];

/// The least level by whose laws both graphs are proved equal, with the laws, in words.
pub(super) fn prove(evidence: &Evidence) -> Option<(Numerics, &'static str)> {
    let (before, after) = (&evidence.before, &evidence.after);
    LEVELS.into_iter().find(|&(level, _)| {
        // Where ranks have graphs of their own, that of another one may be loose where this one is not.
        let given = !evidence.own_ranks.is_empty();
        let sides = [before, after].map(|side| Loosened::new(side, level));
        if sides.iter().all(|side| side.loose.is_empty()) {
            return false;
        }
        let graphs = sides.map(|side| side.holds(level, given).then_some(side.graph));
        let [Some(old), Some(new)] = &graphs else { return false };
        let (old, new) = (AnalyzedGraph::new(old), AnalyzedGraph::new(new));
        Evaluated::new(&old, &new, &evidence.own).proves_equal()
    })
}

/// Both graphs with the calls written out that are defined; `None` where none are, or where something tells the roundings of
/// such a call from those of its definition.
pub(super) fn written(evidence: &Evidence) -> Option<[Graph; 2]> {
    let sides = [&evidence.before, &evidence.after];
    let rounds = !sides.iter().any(|side| decides_by_roundings(side.graph));
    let written = written_out(&sides.map(|side| (side.graph, "")), rounds)?;
    <[Graph; 2]>::try_from(written).ok()
}

/// Whether something is decided by what a term may round otherwise than its call.
pub(crate) fn decides_by_roundings(graph: &Graph) -> bool {
    let rounded = defined_calls(graph).into_iter().filter(|(_, is_exact)| !is_exact);
    let rounded: Vec<NodeId> = rounded.map(|(id, _)| id).collect();
    tells(graph, &rounded, Numerics::Contraction, false)
}

/// A graph by the laws of a level.
struct Loosened {
    graph: Graph,
    /// The nodes that a law made otherwise.
    loose: Vec<NodeId>,
}

impl Loosened {
    fn new(side: &AnalyzedGraph, level: Numerics) -> Loosened {
        let written =
            if level >= Numerics::Contraction { written_out(&[(side.graph, "")], true) } else { None };
        let written = written.and_then(|graphs| graphs.into_iter().next());
        // A call that is written out has its name, or those of its items.
        let mut loose: Vec<NodeId> = Vec::new();
        if let Some(written) = &written {
            let rounded = defined_calls(side.graph).into_iter().filter(|(_, is_exact)| !is_exact);
            let shown =
                rounded.flat_map(|(id, _)| std::iter::once(id).chain(side.edges.users(id).iter().copied()));
            loose.extend(shown.filter_map(|id| written.find(side.graph.name(id))));
        }
        let own = written.as_ref().map(AnalyzedGraph::new);
        let side = own.as_ref().unwrap_or(side);
        let mut editor = Editor::new(side.graph);
        for id in side.graph.ids() {
            let Some(info) = side.ops.call(side.graph, id) else { continue };
            let Out::Tensor(out) = side.graph.node(id).out else { continue };
            if info.writes() || side.graph.tensor(out).dtype.class() != DtypeClass::Float {
                continue;
            }
            let call = LawCall { graph: side.graph, id, info, out };
            let is_other = call.without_zero(&mut editor)
                || level >= Numerics::Reassociation && call.without_addend(&mut editor)
                || level >= Numerics::Contraction && call.without_fusion(&mut editor);
            if is_other {
                loose.push(id);
            }
        }
        let (graph, map) = editor.finish_with_map();
        let loose = loose.into_iter().filter_map(|id| map[id.index()]).collect();
        Loosened { graph, loose }
    }

    /// Whether nothing loose reaches a call that tells what a level lets part. `on_ranks`: whatever comes from other
    /// ranks may be loose.
    fn holds(&self, level: Numerics, on_ranks: bool) -> bool {
        !tells(&self.graph, &self.loose, level, on_ranks)
    }
}

/// Whether something loose reaches a call that tells what a level lets part. `on_ranks`: whatever comes from other ranks
/// may be loose.
pub(crate) fn tells(graph: &Graph, loose: &[NodeId], level: Numerics, on_ranks: bool) -> bool {
    let side = AnalyzedGraph::new(graph);
    let mut is_loose = vec![false; graph.len()];
    loose.iter().for_each(|id| is_loose[id.index()] = true);
    let ids = || graph.ids();
    if on_ranks {
        ids()
            .filter(|&id| side.collectives.launch_at(id).is_some())
            .for_each(|id| is_loose[id.index()] = true);
    }
    loop {
        let mut grows = false;
        for id in ids() {
            let inputs = side.graph.inputs(id);
            if !is_loose[id.index()] && !inputs.iter().any(|input| is_loose[input.index()]) {
                continue;
            }
            grows |= !std::mem::replace(&mut is_loose[id.index()], true);
            let written = side.storages().accesses_by(id).iter().filter(|access| access.touch.writes());
            for access in written {
                for &shows in side.shown_by(access.part.storage) {
                    grows |= !std::mem::replace(&mut is_loose[shows.index()], true);
                }
            }
        }
        if !grows {
            break;
        }
    }
    let tells = |id: NodeId| match side.ops.call(graph, id) {
        None => false,
        Some(OpInfo { kind: Kind::Unknown | Kind::Item | Kind::Assert | Kind::Effect, .. }) => true,
        Some(info) if level == Numerics::ZeroSign => !takes_zeros_for_one(graph, id, info),
        Some(info) => tells_roundings_apart(graph, id, info),
    };
    ids().filter(|id| is_loose[id.index()]).any(tells)
}

/// Whether a call gives the same, but for the signs of zeros, whatever signs the zeros have that it is given.
fn takes_zeros_for_one(graph: &Graph, id: NodeId, info: &OpInfo) -> bool {
    use Binary::{Add, Eq, Ge, Gt, Le, Lt, Maximum, Minimum, Mul, Ne, Rsub, Sub};
    match info.kind {
        Kind::View(_) => !graph.target(id).ends_with(".dtype"),
        Kind::Binary(op) => {
            matches!(op, Add | Sub | Rsub | Mul | Maximum | Minimum | Eq | Ne | Lt | Le | Gt | Ge)
        }
        Kind::Unary(op) => matches!(
            op,
            Unary::Relu
                | Unary::Neg
                | Unary::Abs
                | Unary::Exp
                | Unary::Exp2
                | Unary::Sqrt
                | Unary::Sigmoid
                | Unary::Silu
                | Unary::Tanh
                | Unary::Sin
                | Unary::Cos
                | Unary::Square
        ),
        Kind::Reduce(_) | Kind::Cumsum | Kind::Matmul(_) | Kind::Where | Kind::Fma | Kind::Clamp => true,
        // A cast to another float, or of the bits to an integer, keeps what a zero is.
        Kind::Move(_) | Kind::Cast | Kind::Wait | Kind::GetItem | Kind::MaskedFill => true,
        Kind::Collective(collective) => !collective.is_unmodelled(),
        _ => false,
    }
}

/// A call of floats that a law may write otherwise.
struct LawCall<'g> {
    graph: &'g Graph,
    id: NodeId,
    info: &'g OpInfo,
    out: TensorId,
}

impl LawCall<'_> {
    fn argument(&self, index: usize, name: &str) -> Option<Value> {
        self.graph.argument(self.id, index, name)
    }

    /// A tensor argument of the dtype of the result.
    fn operand(&self, index: usize, name: &str) -> Option<NodeId> {
        let Some(Value::Node(node)) = self.argument(index, name) else { return None };
        let dtype = self.graph.tensor(self.out).dtype;
        self.graph.tensor_of(node).is_some_and(|tensor| tensor.dtype == dtype).then_some(node)
    }

    fn is_number(&self, name: &str, number: f64) -> bool {
        match self.graph.kwarg(self.id, name) {
            None => true,
            Some(Value::Int(n)) => n as f64 == number,
            Some(Value::Float(x)) => x == number,
            _ => false,
        }
    }

    /// Whether it runs `target`, and nothing but its arguments.
    fn is(&self, target: &str) -> bool {
        self.graph.target(self.id) == target
    }

    /// `x + 0` as a copy of `x`, and `0 - x` as `-x`.
    fn without_zero(&self, editor: &mut Editor) -> bool {
        let is_zero = |value| {
            matches!(value, Some(Value::Int(0))) || matches!(value, Some(Value::Float(x)) if x == 0.0)
        };
        let Some(x) = self.operand(0, "self").filter(|_| is_zero(self.argument(1, "other"))) else {
            return false;
        };
        let is_whole = self.graph.tensor_of(x).map(|x| x.shape) == Some(self.graph.tensor(self.out).shape);
        let target = match self.info.kind {
            Kind::Binary(Binary::Add) if self.is_number("alpha", 1.0) => "aten.clone.default",
            Kind::Binary(Binary::Rsub) if self.is_number("alpha", 1.0) => "aten.neg.default",
            _ => return false,
        };
        if is_whole {
            self.become_call(editor, target, &[Value::Node(x)]);
        }
        is_whole
    }

    /// `addmm(c, a, b)` as `mm(a, b) + c`.
    fn without_addend(&self, editor: &mut Editor) -> bool {
        let (product, names) = match self.info.kind {
            Kind::Matmul(Matmul::Addmm) if self.is("aten.addmm.default") => {
                ("aten.mm.default", ["mat1", "mat2"])
            }
            Kind::Matmul(Matmul::Baddbmm) if self.is("aten.baddbmm.default") => {
                ("aten.bmm.default", ["batch1", "batch2"])
            }
            _ => return false,
        };
        let (a, b) = (self.operand(1, names[0]), self.operand(2, names[1]));
        let (Some(c), Some(a), Some(b)) = (self.operand(0, "self"), a, b) else { return false };
        let plain = self.is_number("beta", 1.0) && self.is_number("alpha", 1.0);
        if plain {
            let product = self.insert(editor, product, &[Value::Node(a), Value::Node(b)], self.fresh());
            self.become_call(editor, "aten.add.Tensor", &[Value::Node(product), Value::Node(c)]);
        }
        plain
    }

    /// `fma(a, b, c)` as `a * b + c`.
    fn without_fusion(&self, editor: &mut Editor) -> bool {
        let [a, b, c] = [0, 1, 2].map(|at| self.graph.arg(self.id, at));
        let (Kind::Fma, Some(a @ Value::Node(_)), Some(b @ Value::Node(_)), Some(c)) =
            (self.info.kind, a, b, c)
        else {
            return false;
        };
        let product = self.insert(editor, "aten.mul.Tensor", &[a, b], self.fresh());
        self.become_call(editor, "aten.add.Tensor", &[Value::Node(product), c]);
        true
    }

    /// The record of a new tensor like the result.
    fn fresh(&self) -> Tensor {
        Tensor { storage: None, storage_bytes: None, offset: 0, ..*self.graph.tensor(self.out) }
    }

    fn insert(&self, editor: &mut Editor, target: &str, args: &[Value], out: Tensor) -> NodeId {
        let out = Out::Tensor(editor.graph_mut().push_tensor(out));
        editor.insert_before(Some(self.id), "loosened", target, args, &[], out)
    }

    fn become_call(&self, editor: &mut Editor, target: &str, args: &[Value]) {
        editor.set_args(self.id, args);
        let graph = editor.graph_mut();
        let target = graph.intern_target(target);
        let node = graph.node_mut(self.id);
        (node.target, node.kwargs) = (target, Default::default());
    }
}
