//! What operators mean, as data: softmax, norms, losses, pooling and attention written with simpler operators.
//!
//! # The idea
//!
//! An operator is a function of its arguments. `operators.txt` says which one, in terms over operators that every
//! evaluator knows, so a definition is written once and no evaluator learns anything new: [`written_out`] puts the term in
//! the place of the call. Sizes, arguments and dtypes are known there, so loops over dimensions are unrolled.
//!
//! # What is exact
//!
//! A definition was held against PyTorch 2.15 on a CPU. It is *exact* if eager gave the same bits in every sample (f64,
//! f32, bf16, f16, NaN, infinities, denormals; all 16-bit values where the operator is pointwise). Otherwise it is the same
//! function to 1e-9 in float64, and its kernel rounds elsewhere: such calls are written out only where results may be
//! [rounded otherwise](Rounded). Some are exact for some arguments, which the definition states. Exact rests on a premise:
//! an operator gives the same bits for the same element wherever it lies in memory. Kernels that treat the tail of a loop
//! in another way break it (gelu, atan2, softplus, pow and some others).
//!
//! # What it does not do
//!
//! A call stays as it is where a size is symbolic, where it writes or returns views, where a result is taken as a whole, or
//! where its record is not that of the term. Operators of which several results are right (the index of one of several
//! equal elements) have no definition.

mod core;
mod evaluate;
mod syntax;

use crate::graph::{DtypeClass, Editor, Graph, NodeId, Op, Out, Tags, TensorId, Transcriber, Value};
use crate::ops::kind_of_device;
use evaluate::Writer;
use rustc_hash::FxHashSet;
use std::sync::LazyLock;
use syntax::Definitions;

static DEFINITIONS: LazyLock<Definitions> =
    LazyLock::new(|| Definitions::parse(include_str!("operators.txt")).unwrap_or_default());

/// How a term may be rounded otherwise than its call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Rounded {
    /// Not at all.
    Alike,
    /// In the signs of zeros.
    Zeros,
    /// In the order of sums, products and quotients: where the term computes with nothing else.
    Regrouped,
    /// In how a function of real numbers is written.
    Otherwise,
}

/// Graphs with the calls written out that are defined; `None` where there are none. `most`: how results may be rounded.
/// An operator is written out in all graphs or in none.
pub fn written_out(graphs: &[&Graph], most: Rounded) -> Option<Vec<Graph>> {
    let mut left_out: FxHashSet<String> = FxHashSet::default();
    loop {
        let known = left_out.len();
        let written: Vec<Option<Graph>> =
            graphs.iter().map(|graph| one_written_out(graph, most, &mut left_out)).collect();
        if left_out.len() > known {
            continue;
        }
        if written.iter().all(Option::is_none) {
            return None;
        }
        let each = written.into_iter().zip(graphs);
        return Some(each.map(|(written, graph)| written.unwrap_or_else(|| (*graph).clone())).collect());
    }
}

/// The calls that are defined, each with how its kernel rounds otherwise than its definition.
pub fn defined_calls(graph: &Graph) -> Vec<(NodeId, Rounded)> {
    let calls = graph.ids().filter(|&id| graph.node(id).op == Op::Call);
    calls.filter_map(|id| Some((id, rounded(graph, id)?.0))).collect()
}

/// Those of some calls that a definition holds for: their operators take what they are given, and give what is recorded.
pub fn held(graph: &Graph, calls: &[NodeId]) -> FxHashSet<NodeId> {
    // Each stands alone, behind what it is given, and all its results are taken.
    let mut alone = Graph::new("calls");
    let mut map = vec![None; graph.len()];
    let mut copies = Vec::with_capacity(calls.len());
    for &id in calls {
        for input in graph.inputs(id).into_iter().filter(|input| input.index() < graph.len()) {
            if map[input.index()].is_none() {
                let mut copier = Transcriber { from: graph, to: &mut alone, map: &mut map };
                let out = copier.out(graph.node(input).out, true);
                let name = graph.name(input);
                let copy = alone.push(name, Op::Placeholder, name);
                alone.node_mut(copy).out = out;
                map[input.index()] = Some(copy);
            }
        }
    }
    for &id in calls {
        let copy = Transcriber { from: graph, to: &mut alone, map: &mut map }.node(id, graph.name(id));
        copies.push((id, copy));
        let Out::Tuple(span) = alone.node(copy).out else { continue };
        let outs: Vec<(usize, Out)> = alone.outs(span).iter().copied().enumerate().collect();
        for (at, out) in outs.into_iter().filter(|(_, out)| matches!(out, Out::Tensor(_))) {
            let args = alone.push_values(&[Value::Node(copy), Value::Int(at as i64)]);
            let item = alone.push(&format!("{}_{at}", graph.name(id)), Op::Call, "operator.getitem");
            let node = alone.node_mut(item);
            (node.args, node.out) = (args, out);
        }
    }
    let mut writer = Writer::new(Editor::new(&alone), &DEFINITIONS);
    let mut holds =
        |copy| writer.is_of_its_dtypes(copy) && writer.write(copy, Rounded::Otherwise, false, false).is_ok();
    copies.into_iter().filter(|&(_, copy)| holds(copy)).map(|(id, _)| id).collect()
}

/// How a call rounds otherwise than its definition, and whether it does not for some arguments; `None` where it has none.
/// Other devices than the CPU were not asked: there only what is moved, chosen, an integer or one operation of another
/// operator is the same.
fn rounded(graph: &Graph, id: NodeId) -> Option<(Rounded, bool)> {
    let definition = DEFINITIONS.of(graph.target(id))?;
    let may_round = |&tensor: &TensorId| {
        let tensor = graph.tensor(tensor);
        let on_cpu = kind_of_device(graph.text(tensor.device)) == "cpu";
        !on_cpu && tensor.dtype.class() >= DtypeClass::Float
    };
    let mut shown = graph.inputs(id).into_iter().chain([id]);
    let rounds =
        definition.rounds && shown.any(|id| graph.tensors_of(graph.node(id).out).iter().any(may_round));
    Some(if rounds { (Rounded::Otherwise, false) } else { (definition.rounded, definition.may_be_exact) })
}

/// A graph with the calls written out that are defined. Operators of which one cannot be are added to `left_out`.
fn one_written_out(graph: &Graph, most: Rounded, left_out: &mut FxHashSet<String>) -> Option<Graph> {
    let with_rounding = |id: NodeId| {
        let (own, may_be_exact) = rounded(graph, id).filter(|_| graph.node(id).op == Op::Call)?;
        let to_the_bit = most == Rounded::Alike;
        let most = if own <= most { Rounded::Otherwise } else { most };
        let is_meant = may_be_exact || most >= Rounded::Regrouped;
        (is_meant && !left_out.contains(graph.target(id))).then_some((id, most, may_be_exact, to_the_bit))
    };
    let calls: Vec<_> = graph.ids().filter_map(with_rounding).collect();
    if calls.is_empty() {
        return None;
    }
    let known = left_out.len();
    let mut writer = Writer::new(Editor::new(graph), &DEFINITIONS);
    for (id, most, may_be_exact, to_the_bit) in calls {
        let first = writer.editor.graph().len();
        if left_out.contains(graph.target(id)) || writer.write(id, most, may_be_exact, to_the_bit).is_err() {
            left_out.insert(graph.target(id).to_string());
            continue;
        }
        // All of it runs on the stream of the call.
        let custom = graph.tags(id).and_then(|tags| tags.custom);
        let tags = writer.editor.graph_mut().intern_tags(Tags { custom, ..Tags::default() });
        for new in (first..writer.editor.graph().len()).map(|at| NodeId(at as u32)) {
            writer.editor.graph_mut().node_mut(new).tags = tags;
        }
    }
    (left_out.len() == known).then(|| writer.editor.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text;
    use crate::ops::Ops;

    #[test]
    fn the_file_can_be_read() {
        let file = Definitions::parse(include_str!("operators.txt")).unwrap();
        assert!(file.operators.len() > 270, "{}", file.operators.len());
        let names: Vec<&String> = file.operators.keys().collect();
        for target in names {
            let mut graph = Graph::default();
            graph.intern_target(target);
            let call = graph.push("y", Op::Call, target);
            let ops = Ops::of(&graph);
            assert!(ops.get(&graph, call).schema.is_some(), "{target} has no schema");
        }
    }

    /// A graph with its calls written out.
    fn written(text: &str, rounds: bool) -> String {
        written_by(text, if rounds { Rounded::Otherwise } else { Rounded::Alike })
    }

    fn written_by(text: &str, most: Rounded) -> String {
        let graph = text::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}")).graph;
        let written = written_out(&[&graph], most);
        written.map_or_else(|| "as it is".to_string(), |graphs| text::print_graph(&graphs[0]))
    }

    #[test]
    fn calls_become_terms() {
        let softmax = "x = input : f32[2, 4]\ny = softmax(x, -1, False)\noutput y\n";
        let term = "\
x      = input                : f32[2, 4]
y_amax = amax(x, [1], True)   : f32[2, 1]
y_sub  = sub(x, y_amax)       : f32[2, 4]
y_exp  = exp(y_sub)           : f32[2, 4]
y_sum  = sum(y_exp, [1], True): f32[2, 1]
y_div  = div(y_exp, y_sum)    : f32[2, 4]
y      = clone(y_div)         : f32[2, 4]
output y
";
        assert_eq!(written(softmax, true), term);
        // Its kernel rounds elsewhere.
        assert_eq!(written(softmax, false), "as it is");
        // Loops over dimensions are unrolled, and 16 bits are rounded where the kernel does so.
        let pad = "x = input : bf16[2, 4]\ny = aten.hardswish.default(x) : bf16[2, 4]\noutput y\n";
        let term = written(pad, true);
        assert!(
            term.contains("y_convert_element_type   = cast(x, f32)") && term.contains("= cast(y_div, bf16)"),
            "{term}"
        );
    }

    #[test]
    fn what_only_adds_and_multiplies_is_regrouped() {
        let norm = |ord: u32| {
            let call = format!("aten.linalg_vector_norm.default(x, {ord}, [1])");
            written_by(&format!("x = input : f32[2, 4]\ny = {call} : f32[2]\noutput y\n"), Rounded::Regrouped)
        };
        assert!(norm(1).contains("= abs(x)") && norm(1).contains("= sum("), "{}", norm(1));
        assert_eq!(norm(2), "as it is", "it takes a root");
    }

    #[test]
    fn items_of_a_result_become_terms() {
        let call = |item: &str| {
            let layer = "native_layer_norm(x, [4], None, None, 1e-05) : (f32[2, 4], f32[2, 1], f32[2, 1])";
            format!("x = input : f32[2, 4]\nl = {layer}\n{item}output y\n")
        };
        let mean = written(&call("y = l[1]\n"), true);
        assert!(mean.contains("= clone(l_div) "), "{mean}");
        assert!(!mean.contains("native_layer_norm"), "{mean}");
    }

    #[test]
    fn what_does_not_fit_stays() {
        for (call, why) in [
            ("y = softmax(x, -1, False) : f32[4, 2]", "another shape is recorded"),
            ("y = softmax(x, -1, False) : f64[2, 4]", "another dtype is recorded"),
            (
                "y = native_layer_norm(x, [4], None, None, 1e-05) : (f32[2, 4], f32[2, 1], f32[2, 1])",
                "the results are taken as a whole",
            ),
            ("y = aten.scaled_dot_product_attention.default(x, x, x, None, 0.5) : f32[2, 4]", "it draws"),
        ] {
            let text = format!("x = input : f32[2, 4]\n{call}\noutput y\n");
            assert_eq!(written(&text, true), "as it is", "{why}");
        }
        // One that stays keeps all others of its operator.
        let two = "x = input : f32[2, 4]\na = softmax(x, 1, False)\ny = softmax(a, 1, False) : f32[4, 2]\noutput y\n";
        assert_eq!(written(two, true), "as it is");
    }
}
