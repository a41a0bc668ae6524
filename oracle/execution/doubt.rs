//! Elements of which it is in doubt whether two graphs give the same: where they are, and which of them have moved from
//! one trial to another.

use super::compare::{Place, output};
use super::concrete::{Scalar, decode, is_finite};
use super::run::{FinalInput, Leaf, Run};
use crate::graph::Dtype;
use std::borrow::Cow;

/// Elements that were the same in all trials, or not finite.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unmoved {
    /// Where.
    pub place: Place,
    /// How many elements of how many in doubt, over all ranks.
    pub elements: (usize, usize),
}

/// Elements whose values are in doubt.
pub(super) struct Doubt<'r> {
    pub(super) places: Vec<Doubtful>,
    /// The runs with terms, where that is why.
    pub(super) terms: Option<(&'r Run, &'r Run)>,
}

/// The elements in doubt of one output, input or effect of one rank.
pub(super) struct Doubtful {
    pub(super) rank: usize,
    pub(super) place: Place,
    /// Its position among the outputs, inputs or effects of the first graph.
    pub(super) position: usize,
    pub(super) count: usize,
    /// Those that have not moved, each with a finite value that it had.
    pub(super) open: Vec<(usize, Option<u64>)>,
}

impl<'r> Doubt<'r> {
    /// Everything whose terms differ.
    pub(super) fn of_terms(before: &'r Run, after: &'r Run) -> Doubt<'r> {
        Doubt::where_differ(before, Some(after))
    }

    /// Everything that a graph gives.
    pub(super) fn of_everything(before: &Run) -> Doubt<'_> {
        Doubt::where_differ(before, None)
    }

    pub(super) fn where_differ(before: &'r Run, after: Option<&'r Run>) -> Doubt<'r> {
        let mut places = Vec::new();
        for (rank, run) in before.ranks.iter().enumerate() {
            let outputs = run.outputs.iter().map(|(path, _)| Place::Output(path.clone())).enumerate();
            let inputs = run.inputs.iter().map(|input| Place::Input(input.name.clone())).enumerate();
            let effects = (0..run.effects.len()).map(Place::Effect).enumerate();
            for (position, place) in outputs.chain(inputs).chain(effects) {
                let mut doubtful = Doubtful { rank, place, position, count: 0, open: Vec::new() };
                let Some(one) = Cells::at(before, &doubtful) else { continue };
                let other = after.map(|after| Cells::at(after, &doubtful));
                let differs = |i: &usize| match &other {
                    None => true,
                    Some(Some(other)) => one.get(*i) != other.get(*i),
                    Some(None) => true,
                };
                let open: Vec<_> = (0..one.cells.len())
                    .filter(|i| !one.is_poison(*i))
                    .filter(differs)
                    .map(|i| (i, None))
                    .collect();
                if !open.is_empty() {
                    (doubtful.count, doubtful.open) = (open.len(), open);
                    places.push(doubtful);
                }
            }
        }
        Doubt { places, terms: after.map(|after| (before, after)) }
    }

    /// Leaves out what is equal in these runs.
    pub(super) fn keep_where_differ(&mut self, before: &Run, after: &Run) {
        for doubtful in &mut self.places {
            let sides = [before, after].map(|run| Cells::at(run, doubtful));
            let [Some(one), Some(other)] = sides else { continue };
            doubtful.open.retain(|(i, _)| one.get(*i) != other.get(*i));
        }
    }

    pub(super) fn open(&self) -> usize {
        self.places.iter().map(|place| place.open.len()).sum()
    }

    /// Takes note of the values of another trial.
    pub(super) fn watch(&mut self, run: &Run) {
        for doubtful in &mut self.places {
            let Some(cells) = Cells::at(run, doubtful) else { continue };
            doubtful.open.retain_mut(|(i, known)| match cells.finite(*i) {
                Some(value) => *known.get_or_insert(value) == value,
                None => true,
            });
        }
    }

    /// Elements whose terms are the same for other inputs hold one value.
    pub(super) fn settle_constants(&mut self, before: (&Run, &Run), after: (&Run, &Run)) {
        for doubtful in &mut self.places {
            let cells = |run| Cells::at(run, doubtful);
            let sides = [before, after].map(|(one, other)| Some((cells(one)?, cells(other)?)));
            let is_constant =
                |side: &Option<(Cells, Cells)>, i| side.as_ref().is_some_and(|(a, b)| a.get(i) == b.get(i));
            doubtful.open.retain(|(i, _)| !sides.iter().all(|side| is_constant(side, *i)));
        }
    }

    pub(super) fn unmoved(&self) -> Vec<Unmoved> {
        let mut told: Vec<Unmoved> = Vec::new();
        for doubtful in &self.places {
            let here = (doubtful.open.len(), doubtful.count);
            match told.iter_mut().find(|unmoved| unmoved.place == doubtful.place) {
                Some(Unmoved { elements: (open, count), .. }) => {
                    (*open, *count) = (*open + here.0, *count + here.1)
                }
                None => told.push(Unmoved { place: doubtful.place.clone(), elements: here }),
            }
        }
        told.retain(|unmoved| unmoved.elements.0 > 0);
        told
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
    pub(super) fn at(run: &'r Run, of: &Doubtful) -> Option<Cells<'r>> {
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

    /// Whether a cell is finite, and whether it is no number.
    pub(super) fn kind(&self, i: usize) -> (bool, bool) {
        let is_nan = |(cell, dtype)| match decode(cell, dtype) {
            Scalar::Float(x) => x.is_nan(),
            Scalar::Int(_) => false,
            Scalar::Complex(re, im) => re.is_nan() || im.is_nan(),
        };
        let is_finite = self.get(i).is_none() || self.finite(i).is_some();
        (is_finite, self.get(i).zip(self.dtype).is_some_and(is_nan))
    }

    /// A cell that is a finite number.
    pub(super) fn finite(&self, i: usize) -> Option<u64> {
        self.get(i).filter(|&cell| self.dtype.is_none_or(|dtype| is_finite(cell, dtype)))
    }
}
