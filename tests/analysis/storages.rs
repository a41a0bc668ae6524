//! Storages, conflicts and dependences against the model.

use super::model::differences;
use super::programs::{Program, build, plan};
use graph_oracle::analysis::bytes::ByteSet;
use graph_oracle::analysis::bytes::Overlap;
use graph_oracle::analysis::conflicts::conflicts;
use graph_oracle::analysis::dependences::{Dependences, Options};
use graph_oracle::analysis::storages::Mode;
use graph_oracle::analysis::{Collectives, Edges, Origin, Storages};
use graph_oracle::graph::NodeId;
use graph_oracle::ops::Ops;
use proptest::prelude::*;
use std::collections::BTreeSet;

struct Derived {
    ops: Ops,
    edges: Edges,
    storages: Storages,
}

fn derive(program: &Program) -> Derived {
    let ops = Ops::of(&program.graph);
    let edges = Edges::new(&program.graph);
    let collectives = Collectives::new(&program.graph, &ops);
    let storages = Storages::new(&program.graph, &ops, &edges, &collectives, Mode::Physical);
    Derived { ops, edges, storages }
}

/// The elements that a set of bytes may have, and those that it certainly has.
fn elements(bytes: ByteSet, of: usize) -> (BTreeSet<usize>, BTreeSet<usize>) {
    let overlap = |e: &usize| bytes.overlap(ByteSet::range(4 * *e as i64, 4 * *e as i64 + 4));
    let maybe = (0..of).filter(|e| overlap(e) != Overlap::No).collect();
    (maybe, (0..of).filter(|e| overlap(e) == Overlap::Yes).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_place_shows_what_the_model_shows(plan in plan()) {
        let program = build(&plan);
        let Derived { storages, .. } = derive(&program);
        let model = &program.model;
        let of = |storage| {
            let info = storages.storage(storage);
            let at = |s: &&(NodeId, usize, usize)| (s.0, s.1) == (info.by, info.place as usize);
            model.storages.iter().position(|s| at(&s))
        };
        for id in program.graph.ids() {
            for (place, expected) in model.shown[id.index()].iter().enumerate() {
                let parts = storages.parts(id, place);
                prop_assert_eq!(parts.len(), expected.len(), "{:?}", id);
                for expected in expected {
                    let part = parts.iter().find(|p| of(p.storage) == Some(expected.storage));
                    let part = part.ok_or_else(|| TestCaseError::fail(format!("{id:?} lacks a part")))?;
                    prop_assert_eq!(part.certain, expected.certain);
                    let (maybe, certain) = elements(part.bytes, model.storages[expected.storage].2);
                    let shown: BTreeSet<usize> = expected.elements.iter().copied().collect();
                    prop_assert!(shown.is_subset(&maybe), "{:?}: {:?} {:?}", id, shown, maybe);
                    if expected.exact {
                        prop_assert_eq!(&certain, &shown, "{:?}: {:?}", id, part.bytes);
                    }
                }
            }
        }
    }

    #[test]
    fn every_access_is_the_models_with_its_version(plan in plan()) {
        let program = build(&plan);
        let Derived { storages, .. } = derive(&program);
        let model = &program.model;
        let by = |node: NodeId, place: usize| model.storages.iter().position(|s| (s.0, s.1) == (node, place));
        let mut told: Vec<_> = storages.accesses().iter().filter(|a| !a.part.bytes.is_empty()).map(|a| {
            let info = storages.storage(a.part.storage);
            (a.node, a.touch, by(info.by, info.place as usize).unwrap(), a.version)
        }).collect();
        let mut expected: Vec<_> = model.accesses.iter().filter(|a| !a.elements.is_empty())
            .map(|a| (a.node, a.touch, a.storage, a.version)).collect();
        told.sort();
        told.dedup();
        expected.sort();
        expected.dedup();
        prop_assert_eq!(told, expected);
    }

    #[test]
    fn told_conflicts_have_the_closure_of_all_conflicts(plan in plan()) {
        let program = build(&plan);
        let Derived { storages, .. } = derive(&program);
        let (certain, maybe) = program.model.conflicts();
        let all: BTreeSet<_> = certain.union(&maybe).copied().collect();
        let told = conflicts(&storages);
        let pairs = |only: bool| -> BTreeSet<(u32, u32)> {
            told.iter().filter(|c| c.certain || !only).map(|c| (c.before.0, c.after.0)).collect()
        };
        prop_assert!(pairs(true).is_subset(&certain), "{:?} not in {:?}", pairs(true), certain);
        prop_assert!(pairs(false).is_subset(&all), "{:?} not in {:?}", pairs(false), all);
        let n = program.graph.len();
        prop_assert_eq!(differences(n, &pairs(true), &certain), []);
        prop_assert_eq!(differences(n, &pairs(false), &all), []);
    }

    #[test]
    fn dependences_have_the_closure_of_all_reasons(plan in plan()) {
        let program = build(&plan);
        let Derived { ops, edges, storages } = derive(&program);
        let model = &program.model;
        let collectives = Collectives::new(&program.graph, &ops);
        let n = program.graph.len();
        let (certain, maybe) = model.conflicts();
        for uncertain in [false, true] {
            let mut reasons = certain.clone();
            for id in program.graph.ids() {
                reasons.extend(model.inputs[id.index()].iter().map(|input| (input.0, id.0)));
            }
            // Every two of a kind, in list order; assertions only against what is none.
            let mut chain = |nodes: &[(NodeId, bool, bool)]| {
                for (i, &(b, b_certain, b_looks)) in nodes.iter().enumerate() {
                    for &(a, a_certain, a_looks) in &nodes[..i] {
                        if (uncertain || (a_certain && b_certain)) && !(a_looks && b_looks) {
                            reasons.insert((a.0, b.0));
                        }
                    }
                }
            };
            chain(&model.random.iter().map(|&(id, certain)| (id, certain, false)).collect::<Vec<_>>());
            let mut effects: Vec<_> = model.effects.iter().map(|&(id, certain)| (id, certain, false)).collect();
            effects.extend(model.asserts.iter().map(|&id| (id, true, true)));
            effects.sort();
            chain(&effects);
            if uncertain {
                reasons.extend(&maybe);
            }
            let options = Options { uncertain, ..Options::default() };
            let told = Dependences::new(&program.graph, &ops, &edges, &storages, &collectives, options);
            let pairs: BTreeSet<(u32, u32)> = program
                .graph
                .ids()
                .flat_map(|id| told.before(id).map(move |(before, _)| (before.0, id.0)))
                .collect();
            prop_assert_eq!(told.count(), pairs.len());
            prop_assert_eq!(differences(n, &pairs, &reasons), []);
            for id in program.graph.ids() {
                for (before, origin) in told.before(id) {
                    prop_assert_eq!(origin == Origin::Data, edges.inputs(id).contains(&before));
                    prop_assert!(told.after(before).contains(&id));
                    prop_assert!(uncertain || origin.certain());
                }
            }
        }
    }
}
