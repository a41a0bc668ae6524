//! Calls that do less than their schemas say, in the form that says what they do.
//!
//! `squeeze_`, `unsqueeze_`, `transpose_`, `t_` and `as_strided_` write no element: they give a tensor another shape, and
//! return it. Who takes that tensor afterwards, by whichever name, sees the new shape. Views that were made of it before
//! keep theirs. So such a call is the view of the same name without the underscore, and later users of the tensor take the
//! view.
//!
//! `_native_batch_norm_legit` writes running statistics in training only. Outside training it is
//! `_native_batch_norm_legit_no_training`, which PyTorch's CPU gives the same bits.
//!
//! # What it does not do
//!
//! A call stays as it is where it gives an input or a constant another shape: the caller sees that.

use crate::graph::{Editor, Graph, NodeId, Op, Value};
use crate::ops::{Bound, Ops};

/// Operators that give a tensor another shape in place, and the views that they stand for.
const RESHAPES: [(&str, &str); 9] = [
    ("aten.squeeze_.default", "aten.squeeze.default"),
    ("aten.squeeze_.dim", "aten.squeeze.dim"),
    ("aten.squeeze_.dims", "aten.squeeze.dims"),
    ("aten.unsqueeze_.default", "aten.unsqueeze.default"),
    ("aten.transpose_.default", "aten.transpose.int"),
    ("aten.swapaxes_.default", "aten.swapaxes.default"),
    ("aten.swapdims_.default", "aten.swapdims.default"),
    ("aten.t_.default", "aten.t.default"),
    ("aten.as_strided_.default", "aten.as_strided.default"),
];

const NORM: &str = "aten._native_batch_norm_legit.default";

fn calls(graph: &Graph) -> impl Iterator<Item = NodeId> {
    graph.ids().filter(|&id| graph.node(id).op == Op::Call && form(graph, id).is_some())
}

/// Whether a graph has such calls.
pub fn has_calls(graph: &Graph) -> bool {
    calls(graph).next().is_some()
}

/// The graph with such calls in their plain form; `None` where there are none.
pub fn written_out(graph: &Graph) -> Option<Graph> {
    let calls: Vec<NodeId> = calls(graph).collect();
    if calls.is_empty() {
        return None;
    }
    let (mut editor, mut ops) = (Editor::new(graph), Ops::of(graph));
    let mut is_changed = false;
    for id in calls {
        let plain = match graph.target(id) {
            NORM => norm_outside_training(&mut editor, &ops, id),
            _ => reshape(&mut editor, &ops, id),
        };
        is_changed |= plain.is_some();
        ops.update(editor.graph());
    }
    is_changed.then(|| editor.finish())
}

/// The target of the plain form of a call.
fn form(graph: &Graph, id: NodeId) -> Option<&'static str> {
    let target = graph.target(id);
    let view = RESHAPES.iter().find(|(name, _)| *name == target).map(|(_, view)| *view);
    view.or((target == NORM).then_some("aten._native_batch_norm_legit_no_training.default"))
}

fn norm_outside_training(editor: &mut Editor, ops: &Ops, id: NodeId) -> Option<()> {
    let graph = editor.graph();
    let bound = Bound::new(graph, id, ops.get(graph, id).schema.as_ref()?).ok()?;
    if bound.bool("training") != Some(false) {
        return None;
    }
    let others = [0, 1, 2, 3, 4, 6, 7].into_iter().map(|at| bound.given(at));
    let args: Vec<Value> = others.collect::<Option<_>>()?;
    editor.set_args(id, &args);
    let kwargs = editor.graph_mut().push_values(&[]);
    editor.graph_mut().node_mut(id).kwargs = kwargs;
    put_form(editor, id)
}

fn reshape(editor: &mut Editor, ops: &Ops, id: NodeId) -> Option<()> {
    let graph = editor.graph();
    let Some(Value::Node(tensor)) = graph.arg(id, 0) else { return None };
    let own = object(graph, ops, tensor)?;
    let earlier = graph.ids().take_while(|&name| name < id);
    let names: Vec<NodeId> = earlier.filter(|&name| object(graph, ops, name) == Some(own)).collect();
    put_form(editor, id)?;
    for name in names {
        let later: Vec<NodeId> = editor.users(name).iter().copied().filter(|&user| user > id).collect();
        later.into_iter().for_each(|user| editor.replace_input(user, name, id));
    }
    Some(())
}

/// The node that made a tensor, which others return after they wrote to it; `None` where it came from outside.
fn object(graph: &Graph, ops: &Ops, mut node: NodeId) -> Option<NodeId> {
    while let Some(info) = ops.call(graph, node) {
        let returns_its_first =
            info.schema.as_ref().is_some_and(|schema| match (&schema.returns[..], &schema.params[..]) {
                ([result], [first, ..]) => result.write && first.write && result.alias == first.alias,
                _ => false,
            });
        match graph.arg(node, 0) {
            Some(Value::Node(of)) if returns_its_first && of < node => node = of,
            _ => return Some(node),
        }
    }
    None
}

fn put_form(editor: &mut Editor, id: NodeId) -> Option<()> {
    let target = form(editor.graph(), id)?;
    let target = editor.graph_mut().intern_target(target);
    editor.graph_mut().node_mut(id).target = target;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text;

    fn plain(text: &str) -> Option<String> {
        let graph = text::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}")).graph;
        written_out(&graph).map(|graph| text::print_graph(&graph))
    }

    #[test]
    fn later_users_take_the_new_shape() {
        let found = plain(
            "x = input : f32[1, 4]\na = neg(x) : f32[1, 4]\nb = aten.relu_.default(a) : f32[1, 4]\n\
             v = view(a, [4]) : f32[4]\ny = aten.squeeze_.dim(b, 0) : f32[4]\nz = exp(a) : f32[4]\noutput (z, b, v)\n",
        );
        let found = found.unwrap();
        assert!(found.contains("squeeze(b, 0)") && found.contains("exp(y)"), "{found}");
        assert!(found.contains("view(a, [4])") && found.contains("output (z, y, v)"), "{found}");
    }

    #[test]
    fn an_input_keeps_its_shape() {
        assert_eq!(plain("x = input : f32[1, 4]\ny = aten.squeeze_.dim(x, 0) : f32[4]\noutput y\n"), None);
    }

    #[test]
    fn a_norm_outside_training_writes_nothing() {
        let norm = |training: &str| {
            let inputs = "x = input : f32[2, 3]\nm = input : f32[3]\n";
            let args = format!("x, None, None, m, m, {training}, 0.1, 1e-05");
            let call =
                format!("n = aten._native_batch_norm_legit.default({args}) : (f32[2, 3], f32[0], f32[0])\n");
            plain(&format!("{inputs}{call}y = n[0] : f32[2, 3]\noutput y\n"))
        };
        assert_eq!(norm("True"), None);
        let found = norm("False").unwrap();
        assert!(found.contains("native_batch_norm_no_training(x, None, None, m, m, 0.1, 1e-5)"), "{found}");
    }
}
