//! Captured graphs: every node that is executed has the type, sizes and strides that PyTorch recorded.

use super::super::comm::Comm;
use super::super::rank::{Item, Progress, Rank, State};
use super::*;
use crate::recorded::{beside, files, project, read};
use std::collections::BTreeMap;
use std::path::PathBuf;

fn captured() -> Vec<PathBuf> {
    files(&project().join("corpus/real"))
}

fn world(graph: &Graph) -> World {
    graph.world.assume_mesh().unwrap()
}

/// Nodes of one rank whose executed tensors are not as recorded.
fn disagreements(graph: &Graph) -> Result<Vec<String>, Failure> {
    let ops = Ops::of(graph);
    let world = world(graph);
    let program = Program::new(graph, &ops, &world)?;
    // Terms of the larger graphs take seconds without optimisation.
    let max_elements = if cfg!(debug_assertions) { 1 << 20 } else { 1 << 24 };
    let options = Options { max_elements, ..Options::default() };
    let domain = Fingerprints::in_bits();
    let ranks = world.ranks.unwrap_or(1);
    let share = options.max_elements / u64::from(ranks);
    if program.recorded_elements * u128::from(ranks) > u128::from(options.max_elements) {
        return Err(Failure::TooLarge { needs: program.recorded_elements, limit: options.max_elements });
    }
    let mut comm = Comm::new(&world);
    let mut all: Vec<Rank> = (0..ranks).map(|r| Rank::new(r, &program, &domain, &options, share)).collect();
    for rank in &mut all {
        rank.begin(0)?;
    }
    while all.iter().any(|rank| rank.state != State::Done) {
        for rank in &mut all {
            if rank.state != State::Done {
                rank.advance(&mut comm)?;
            }
        }
    }
    let nodes = graph.ids();
    Ok(nodes.filter_map(|id| disagreement(graph, id, &all[0].items[id.index()])).collect())
}

/// How a value is not as recorded.
fn disagreement(graph: &Graph, id: NodeId, item: &Item) -> Option<String> {
    let (Item::Tensor(window), Some(tensor)) = (item, graph.tensor_of(id)) else { return None };
    let shape = graph.sizes(tensor.shape)?;
    let strides = graph.sizes(tensor.stride)?;
    // Strides of dimensions of size 1, and of tensors without elements, are nobody's business.
    let visible = |strides: &[i64]| -> Vec<i64> {
        let empty = shape.contains(&0);
        shape.iter().zip(strides).filter(|(n, _)| !empty && **n > 1).map(|(_, &s)| s).collect()
    };
    let same = *window.shape == *shape
        && window.dtype == tensor.dtype
        && visible(&window.strides) == visible(&strides);
    (!same).then(|| {
        format!(
            "{} = {}: {:?} {:?} {:?}, recorded {shape:?} {strides:?} {:?}",
            graph.name(id),
            graph.target(id),
            window.shape,
            window.strides,
            window.dtype,
            tensor.dtype
        )
    })
}

/// Small random calls on contiguous, permuted, sliced and expanded tensors, with PyTorch's answers.
#[test]
fn single_calls_answer_as_pytorch_does() {
    let path = project().join("tests/ops/shape_cases.json.gz");
    let mut graph = read(&path);
    for id in graph.ids() {
        // All of the file's inputs claim one storage.
        let tensor = match graph.node(id).out {
            Out::Tensor(tensor) => tensor,
            _ => continue,
        };
        graph.tensor_mut(tensor).storage = None;
    }
    let ops = Ops::of(&graph);
    let world = World { ranks: Some(1), groups: Vec::new() };
    let options = Options { max_elements: 1 << 30, ..Options::default() };
    let domain = Concrete::default();
    let mut comm = Comm::new(&world);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    let program = Program::new(&graph, &ops, &world).unwrap();
    let mut rank = Rank::new(0, &program, &domain, &options, options.max_elements);
    rank.begin(0).unwrap();
    for (id, step) in graph.ids().zip(&program.steps) {
        let is_refused = graph.node(id).module.is_some_and(|m| graph.text(m) == "refused");
        let is_fake = graph.name(id).starts_with("fake_");
        rank.memory.node = id;
        match rank.step(id, step, &mut comm) {
            Ok(Progress::Value(item)) => {
                if graph.node(id).op == Op::Call {
                    *counts
                        .entry(if is_refused { "computed, refused by PyTorch" } else { "computed" })
                        .or_default() += 1;
                    if !is_refused && !is_fake {
                        wrong.extend(disagreement(&graph, id, &item));
                    }
                }
                rank.items[id.index()] = item;
            }
            Ok(Progress::Blocked(_)) => panic!("{} is blocked", graph.name(id)),
            Err(Trouble::Refuse(_)) => *counts.entry("refused").or_default() += 1,
            Err(Trouble::Raise(_)) if is_refused => *counts.entry("raised").or_default() += 1,
            Err(trouble) => wrong.push(format!("{} {}: {trouble:?}", graph.name(id), graph.target(id))),
        }
    }
    println!("{counts:?}");
    // Views that strides do not allow: the interpreter copies, and says so.
    let noted: Vec<&str> = rank.memory.hazards.iter().map(|&(id, _)| graph.name(id)).collect();
    assert_eq!(counts["computed, refused by PyTorch"], noted.len(), "{noted:?}");
    assert!(wrong.is_empty(), "{} of {counts:?}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn executed_tensors_are_as_recorded() {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for path in captured().into_iter().chain(beside()) {
        let graph = read(&path);
        if graph.len() > 1500 {
            continue;
        }
        match disagreements(&graph) {
            Ok(found) => {
                assert!(found.is_empty(), "{}:\n{}", path.display(), found.join("\n"));
                *kinds.entry("agree".to_string()).or_default() += 1;
            }
            Err(Failure::TooLarge { .. }) => *kinds.entry("too large".to_string()).or_default() += 1,
            Err(other) => panic!("{}: {other}", path.display()),
        }
    }
    println!("captured graphs: {kinds:?}");
    // Five of those in the corpus are small enough.
    let least = if beside().is_empty() { 5 } else { 6 };
    assert!(kinds.get("agree").copied().unwrap_or(0) >= least);
}

/// A graph means the same as itself, and not the same as itself with one constant changed.
#[test]
fn captured_graphs_equal_themselves() {
    for path in captured() {
        let graph = read(&path);
        let (ops, world) = (Ops::of(&graph), world(&graph));
        let program = Program::new(&graph, &ops, &world).unwrap();
        let go = || {
            run(std::slice::from_ref(&program), &world, &Fingerprints::in_bits(), &Options::default())
                .unwrap()
        };
        assert_eq!(compare(&go(), &go()), [], "{}", path.display());
    }
}
