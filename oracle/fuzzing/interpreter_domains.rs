//! Numbers agree with terms: elements with one term have one value.
//!
//! Both domains execute the same graph. A term says how an element came to be, so whatever has the same term, on
//! whatever rank and in whatever tensor, must hold the same number. What is poison or a race as a number is so as a term; a
//! write to memory in flight that leaves a number as it was changes the term alone.

use super::{MOST_ELEMENTS, case_of_choices, case_of_text};
use crate::case::Case;
use crate::graph::{Dtype, Editor, Graph, NodeId, Op, Value};
use crate::ops::Ops;
use crate::rules::PassKind;
use crate::semantics::{self, Concrete, Fingerprints, Leaf, Options, Program, Run};
use rustc_hash::FxHashMap;

/// On a case in text.
pub fn check(data: &[u8]) {
    if let Some(case) = case_of_text(data, PassKind::Bucketing) {
        agree(&case);
    }
}

/// On a case made from choices.
pub fn check_choices(data: &[u8]) {
    agree(&case_of_choices(data, 0));
}

fn agree(case: &Case) {
    let graph = returning_everything(&case.graph);
    let Some(world) = graph.world.assume_mesh() else { return };
    let ops = Ops::of(&graph);
    let Ok(program) = Program::new(&graph, &ops, &world) else { return };
    let programs = std::slice::from_ref(&program);
    let options = Options { max_elements: MOST_ELEMENTS, ..Options::default() };
    let Ok(numbers) = semantics::run(programs, &world, &Concrete::of_trial(0), &options) else { return };
    let terms = match semantics::run(programs, &world, &Fingerprints::in_bits(), &options) {
        Ok(terms) => terms,
        Err(failure) => panic!("numbers run, terms do not: {failure}\n{case}"),
    };
    let unknown = numbers.hazards.iter().find(|hazard| !terms.hazards.contains(hazard));
    assert_eq!(unknown, None, "a hazard of numbers only\n{case}");
    let mut value_of: FxHashMap<(Dtype, u64), (u64, Place)> = FxHashMap::default();
    for (place, (dtype, term, number)) in elements(&terms, &numbers) {
        let (known, first) = *value_of.entry((dtype, term)).or_insert((number, place));
        let at =
            |(rank, output, element): Place| format!("element {element} of output {output} on rank {rank}");
        let (first, place) = (at(first), at(place));
        assert_eq!(known, number, "one term, two values: {first}, {place} ({})\n{case}", dtype.name());
    }
}

/// The graph with every value returned, so that everything is compared.
fn returning_everything(graph: &Graph) -> Graph {
    let Some(output) = graph.output() else { return graph.clone() };
    let ops = Ops::of(graph);
    let launches = crate::analysis::Collectives::new(graph, &ops);
    let shown = |id: &NodeId| {
        graph.node(*id).op != Op::Output
            && graph.tensor_of(*id).is_some()
            && launches.launch_of_value(*id).is_none()
            && *id < output
    };
    let all: Vec<Value> = graph.ids().filter(shown).map(Value::Node).collect();
    let mut editor = Editor::new(graph);
    let list = editor.graph_mut().list(&all);
    editor.set_args(output, &[list]);
    editor.finish()
}

type Element = (Dtype, u64, u64);

/// Rank, output, element.
type Place = (usize, usize, usize);

/// Every element of every output: dtype, term, number.
fn elements<'r>(terms: &'r Run, numbers: &'r Run) -> impl Iterator<Item = (Place, Element)> + 'r {
    let ranks = terms.ranks.iter().zip(&numbers.ranks).enumerate();
    ranks.flat_map(|(rank, (terms, numbers))| {
        let leaves = terms.outputs.iter().zip(&numbers.outputs).enumerate();
        leaves.flat_map(move |(output, ((_, term), (_, number)))| {
            let mut found = Vec::new();
            if let (Leaf::Tensor(term), Leaf::Tensor(number)) = (term, number) {
                let is_poison = |poison: &[bool], i: usize| poison.get(i) == Some(&true);
                for (i, (&t, &n)) in term.cells.iter().zip(&number.cells).enumerate() {
                    let (a, b) = (is_poison(&term.poison, i), is_poison(&number.poison, i));
                    assert!(a || !b, "poison of numbers only");
                    // Two cells make one element of complex128.
                    if !a && term.dtype != Dtype::C128 {
                        found.push(((rank, output, i), (term.dtype, t, n)));
                    }
                }
            }
            found
        })
    })
}
