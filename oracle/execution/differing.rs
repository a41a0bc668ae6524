//! Elements in which two runs differ: where they are, and what lies there.

use super::compare::{Place, output};
use super::run::{FinalInput, Leaf, Run};
use crate::graph::Dtype;
use std::borrow::Cow;

/// The elements that differ of one output, input or effect of one rank.
pub(super) struct Differing {
    pub(super) rank: usize,
    pub(super) place: Place,
    /// Its position among the outputs, inputs or effects of the first graph.
    position: usize,
    pub(super) elements: Vec<usize>,
}

/// Everything in which two runs differ, poison aside.
pub(super) fn differing(before: &Run, after: &Run) -> Vec<Differing> {
    let mut places = Vec::new();
    for (rank, run) in before.ranks.iter().enumerate() {
        let outputs = run.outputs.iter().map(|(path, _)| Place::Output(path.clone())).enumerate();
        let inputs = run.inputs.iter().map(|input| Place::Input(input.name.clone())).enumerate();
        let effects = (0..run.effects.len()).map(Place::Effect).enumerate();
        for (position, place) in outputs.chain(inputs).chain(effects) {
            let mut here = Differing { rank, place, position, elements: Vec::new() };
            let Some(one) = Cells::at(before, &here) else { continue };
            let other = Cells::at(after, &here);
            let differs = |i: &usize| {
                !one.is_poison(*i) && other.as_ref().is_none_or(|other| one.get(*i) != other.get(*i))
            };
            here.elements = (0..one.cells.len()).filter(differs).collect();
            if !here.elements.is_empty() {
                places.push(here);
            }
        }
    }
    places
}

impl Differing {
    /// Whether none of them differs in these runs.
    pub(super) fn are_equal_in(&self, before: &Run, after: &Run) -> bool {
        match [before, after].map(|run| Cells::at(run, self)) {
            [Some(one), Some(other)] => self.elements.iter().all(|&i| one.get(i) == other.get(i)),
            _ => false,
        }
    }
}

/// The cells at one place of a run.
pub(super) struct Cells<'r> {
    pub(super) cells: Cow<'r, [u64]>,
    poison: &'r [bool],
    /// That of a tensor.
    pub(super) dtype: Option<Dtype>,
}

impl<'r> Cells<'r> {
    pub(super) fn at(run: &'r Run, of: &Differing) -> Option<Cells<'r>> {
        let rank = run.ranks.get(of.rank)?;
        let leaf = match &of.place {
            Place::Output(path) => output(&rank.outputs, of.position, path)?,
            Place::Input(name) => {
                let is_same = |input: &&FinalInput| input.name == *name;
                let here = rank.inputs.get(of.position).filter(is_same);
                &here.or_else(|| rank.inputs.iter().find(is_same))?.value
            }
            Place::Effect(i) => return rank.effects.get(*i).map(|effect| Cells::one(effect.arguments)),
            Place::World => return None,
        };
        match leaf {
            Leaf::Tensor(tensor) => Some(Cells {
                cells: Cow::Borrowed(&tensor.cells),
                poison: &tensor.poison,
                dtype: Some(tensor.dtype),
            }),
            Leaf::Number(number) => Some(Cells::one(number.key())),
            Leaf::Object(key) => Some(Cells::one(*key)),
            Leaf::None => None,
        }
    }

    fn one(key: u64) -> Cells<'r> {
        Cells { cells: Cow::Owned(vec![key]), poison: &[], dtype: None }
    }

    fn is_poison(&self, i: usize) -> bool {
        self.poison.get(i).copied().unwrap_or(false)
    }

    /// A cell; `None` where it is poison.
    pub(super) fn get(&self, i: usize) -> Option<u64> {
        self.cells.get(i).copied().filter(|_| !self.is_poison(i))
    }
}
