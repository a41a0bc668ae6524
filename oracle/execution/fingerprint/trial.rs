//! Two graphs, held against each other by the fingerprints of what they give.

use super::super::concrete::Concrete;
use super::super::numerics::Numerics;
use super::super::program::Program;
use super::super::retyped::Retyped;
use super::super::run::{Leaf, Run, TensorValue, run};
use super::super::trials::Pair;
use super::cases::{self, Cases, Found};
use super::cell::{Cell, Table};
use super::worlds::Worlds;
use super::{Field, Fingerprints, Inputs, Laws, number_of};
use crate::graph::{Dtype, DtypeClass, Graph, Value};
use crate::ops::{Kind, Ops, Unary};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// Elements of all ranks at most: a cell of a fingerprint is as large as a dozen numbers.
const MOST_ELEMENTS: u64 = 1 << 20;

/// More points are tried, at most, where the fields lack a root at some.
const MORE_POINTS: u32 = 24;

/// More points are tried, at most, where a partial function was not given what it is not defined for.
const MOST_TURNS: u32 = 96;

/// Elements of inputs from which on fewer points are tried.
const MANY_ELEMENTS: usize = 1 << 12;

/// Points at which cases are tried.
const CASE_POINTS: usize = 2;

/// Cells that are computed for the cases of one point, at most.
const MOST_CASE_CELLS: usize = 1 << 16;

/// Runs with other answers at one point, at most.
const MOST_CASE_RUNS: usize = 256;

/// Runs in the dtypes of the graphs.
const OWN_RUNS: u32 = 4;

/// What fingerprints say of two graphs.
#[derive(Clone, PartialEq, Debug)]
pub enum Alike {
    /// They give the same, wherever both are defined and nothing overflows, and are defined in the same places.
    Same,
    /// Their numbers in double precision are apart.
    Apart,
    /// Neither is known, and why.
    Open(String),
}

/// How alike two graphs are.
#[derive(Clone, PartialEq, Debug)]
pub struct Likeness {
    /// What fingerprints say.
    pub alike: Alike,
    /// At so many points.
    pub points: u32,
    /// The largest distance of numbers in double precision, relative to the largest element of a tensor; infinite where
    /// one of them is finite and the other one is not.
    pub in_doubles: f64,
    /// The same in the dtypes of the graphs.
    pub in_own: f64,
}

/// The distance of the numbers of two tensors.
#[derive(Clone, Copy, Default)]
struct Distance {
    largest: f64,
    scale: f64,
}

impl Distance {
    fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Distance {
        pairs.fold(Distance::default(), |Distance { largest, scale }, (x, y)| {
            match x == y || x.is_nan() && y.is_nan() {
                true => Distance { largest, scale: if x.is_finite() { scale.max(x.abs()) } else { scale } },
                false if x.is_finite() && y.is_finite() => {
                    Distance { largest: largest.max((x - y).abs()), scale: scale.max(x.abs()).max(y.abs()) }
                }
                false => Distance { largest: f64::INFINITY, scale },
            }
        })
    }

    fn relative(self) -> f64 {
        if self.largest == 0.0 { 0.0 } else { self.largest / self.scale.max(f64::MIN_POSITIVE) }
    }
}

impl Pair<'_> {
    /// Whether both graphs compute the same by the laws of a level; `None` where one of them cannot be run, or gives other
    /// things than the other, and where their numbers part by more than `most`. Unless `is_asked`, it ends where they are not
    /// known to be the same. Numbers are apart as far as double precision confirms (`stable.rs`): where sums of large
    /// numbers cancel, a rounding is as large as any difference.
    pub fn likeness(&self, level: Numerics, is_asked: bool, most: f64) -> Option<Likeness> {
        let mut found = self.looked_at(level, is_asked, most)?;
        let is_open = matches!(found.alike, Alike::Open(_)) && level < Numerics::Approximate;
        if is_open && self.is_same_by_cases(level) {
            found.alike = Alike::Same;
        }
        if level == Numerics::Approximate && found.in_doubles.is_finite() {
            let stable = self.stable_distance(None).max(found.in_own);
            found.in_doubles = found.in_doubles.min(stable);
        }
        if found.alike == Alike::Apart
            && found.in_doubles.is_finite()
            && self.stable_distance(Some(0.0)) == 0.0
        {
            let why = "double precision does not confirm that numbers differ";
            found.alike = Alike::Open(why.to_string());
        }
        Some(found)
    }

    /// The same, as the points say.
    fn looked_at(&self, level: Numerics, is_asked: bool, most: f64) -> Option<Likeness> {
        // A few numbers are less work than fingerprints.
        let (in_own, elements) = self.own_distance(level)?;
        if in_own > most {
            return None;
        }
        let is_real = level >= Numerics::Reassociation;
        let marks = self.marks();
        let mut graphs = self.before.iter().chain(self.after).map(|program| program.graph);
        let field = Field::of(graphs.any(turns));
        let mut domain = Worlds::new(Fingerprints { field, ..Fingerprints::new(Laws::of(level)) });
        let mut found = Likeness { alike: Alike::Same, points: 0, in_doubles: 0.0, in_own };
        let mut seen = Seen::default();
        // One point tells most differences, and whether there is room for any.
        self.look(&mut domain, level, &mut found, &mut seen)?;
        let is_over = |found: &Likeness| match found.alike {
            Alike::Same => false,
            Alike::Open(_) => !is_asked || !is_real,
            Alike::Apart => true,
        };
        if is_over(&found) {
            return Some(found);
        }
        let is_large = elements > MANY_ELEMENTS;
        let times = match is_real {
            // What holds of bits holds wherever inputs lie.
            false => [1, 0, 0, 0, 0],
            true if is_large => [0, 1, 1, 2, 4],
            true => [1, 2, 8, 8, 8],
        };
        let kinds = [
            Inputs::OfTrial,
            Inputs::Wide,
            Inputs::Marked(marks.clone()),
            Inputs::Flat(marks.clone()),
            Inputs::At(0.0),
        ];
        for (times, inputs) in times.into_iter().zip(kinds) {
            domain.each(|domain| domain.inputs = inputs.clone());
            for _ in 0..times {
                if is_over(&found) {
                    return Some(found);
                }
                self.look(&mut domain, level, &mut found, &mut seen)?;
            }
        }
        // What is added to an input may make it 0, of which there is no inverse.
        let turns = marks.iter().flat_map(|&mark| [mark, -mark]).cycle();
        for mark in turns.take(if is_large { MORE_POINTS } else { MOST_TURNS } as usize) {
            if found.alike != Alike::Same || domain.table().uncovered(seen.in_second).is_none() {
                break;
            }
            domain.each(|domain| domain.inputs = Inputs::At(mark));
            self.look(&mut domain, level, &mut found, &mut seen)?;
        }
        // What is no number wherever it was looked at shows nothing.
        let sides = [Some(true), Some(false), None, None];
        for (&mark, side) in marks.iter().flat_map(|mark| sides.map(|side| (mark, side))) {
            if found.alike != Alike::Same || !is_real || seen.is_defined() {
                break;
            }
            domain.each(|domain| domain.inputs = Inputs::Beside(mark, side));
            self.look(&mut domain, level, &mut found, &mut seen)?;
        }
        if found.alike == Alike::Same && is_real && !seen.is_defined() {
            found.alike = Alike::Open("some elements were no numbers at every point".to_string());
        }
        domain.each(|domain| domain.inputs = Inputs::OfTrial);
        let last = found.points + MORE_POINTS;
        while found.alike == Alike::Same && !seen.is_complete() && found.points < last {
            self.look(&mut domain, level, &mut found, &mut seen)?;
        }
        if found.alike == Alike::Same && !seen.is_complete() {
            found.alike = Alike::Open("the fields lack roots of what is computed".to_string());
        }
        if found.alike == Alike::Same {
            let uncovered = domain.table().uncovered(seen.in_second);
            if let Some((side, node, partial, _)) = uncovered {
                let programs = if side == 0 { self.before } else { self.after };
                let name =
                    programs.first().zip(node).map_or("a call", |(program, node)| program.graph.name(node));
                let why = format!("{name} takes the {} of what no point made undefined", partial.words());
                found.alike = Alike::Open(why);
            }
        }
        Some(found)
    }

    /// Whether both are the same case by case, by the laws of a level.
    fn is_same_by_cases(&self, level: Numerics) -> bool {
        let mut graphs = self.before.iter().chain(self.after).map(|program| program.graph);
        let field = Field::of(graphs.any(turns));
        let mut covered = 0;
        for point in 1..=MORE_POINTS {
            let found = self.cases_at(level, field, point);
            covered += usize::from(found == Some(Found::Covered));
            if covered == CASE_POINTS || found.is_none_or(|found| found == Found::Apart) {
                break;
            }
        }
        covered == CASE_POINTS
    }

    /// What all cases say at one point; `None` where one of both cannot be run.
    fn cases_at(&self, level: Numerics, field: &'static Field, point: u32) -> Option<Found> {
        let fingerprints =
            Fingerprints { field, numbers: Concrete::of_trial(point), ..Fingerprints::new(Laws::of(level)) };
        let domain = Worlds::new(fingerprints);
        let mut elements = FxHashMap::default();
        let mut cases = Cases::new(level);
        let mut room = MOST_CASE_CELLS;
        while room > 0 {
            *domain.table() = Table::of_cases(cases);
            domain.forget();
            let (before, after) = self.at_a_point(&domain)?;
            let mut pairs = Vec::new();
            for (at, (a, b)) in tensors(&before, &after)?.into_iter().enumerate() {
                pairs.extend(
                    known(a).map(|i| ((at, i), [a.cells[i], b.cells[i]].map(|key| domain.of(key)[0]))),
                );
            }
            let table = &mut *domain.table();
            room = room.saturating_sub(table.size().max(MOST_CASE_CELLS / MOST_CASE_RUNS));
            if table.is_narrower() {
                return Some(Found::Apart);
            }
            match cases::look(table, field, level, &pairs, &mut elements) {
                Found::More => cases = table.cases.take()?,
                found => return Some(found),
            }
        }
        Some(Found::Apart)
    }

    /// The numbers that calls are given, with 0 and 1 of either sign; the ends of integers; where there are several dtypes,
    /// the first integer that a float rounds, and one past its range.
    pub(in super::super) fn marks(&self) -> Vec<f64> {
        let mut marks = vec![0.0, 1.0, -1.0];
        let mut dtypes = BTreeSet::new();
        for graph in self.before.iter().chain(self.after).map(|program| program.graph) {
            constants(graph, &mut marks);
            let outs = graph.ids().flat_map(|id| graph.tensors_of(graph.node(id).out));
            dtypes.extend(outs.map(|tensor| graph.tensor(tensor).dtype));
        }
        for dtype in &dtypes {
            let (bits, range) = dtype.precision();
            let end = 2f64.powi(range as i32);
            match dtype.class() {
                DtypeClass::Int => marks.extend([-end, end - 1.0]),
                DtypeClass::Float if dtypes.len() > 1 => {
                    marks.push((1u64 << bits) as f64 + 1.0);
                    marks.extend((range < i64::BITS).then_some(2.0 * end));
                }
                _ => {}
            }
        }
        marks.sort_by(f64::total_cmp);
        marks.dedup();
        marks
    }

    /// Looks at one more point.
    fn look(
        &self,
        domain: &mut Worlds,
        level: Numerics,
        found: &mut Likeness,
        seen: &mut Seen,
    ) -> Option<()> {
        found.points += 1;
        domain.each(|domain| domain.numbers = Concrete::of_trial(found.points));
        let (before, after) = self.at_a_point(domain)?;
        let is_random = matches!(domain.inputs(), Inputs::OfTrial | Inputs::Wide | Inputs::Beside(..));
        let (mut alike, apart) = compare(&before, &after, domain, is_random.then_some(seen))?;
        // For what the graph before raises, the other one may give what it likes.
        if alike == Alike::Apart && before.outside().is_some() {
            domain.end_trial(is_random);
            return Some(());
        }
        found.in_doubles = found.in_doubles.max(apart);
        let is_narrower = domain.table().is_narrower();
        if alike == Alike::Same && is_narrower {
            alike =
                Alike::Open("the graph after may raise for an index that the graph before takes".to_string());
        }
        match alike {
            // What is approximate is told by the distance alone.
            Alike::Apart if level < Numerics::Reassociation => {
                found.alike = Alike::Open("no law of bits makes their terms equal".to_string());
            }
            Alike::Apart if level < Numerics::Approximate => found.alike = alike,
            Alike::Open(_) if found.alike == Alike::Same => found.alike = alike,
            _ => {}
        }
        domain.end_trial(is_random);
        Some(())
    }

    /// Both graphs at one point.
    fn at_a_point(&self, domain: &Worlds) -> Option<(Run, Run)> {
        let mut options = self.options.clone();
        options.max_elements = options.max_elements.min(MOST_ELEMENTS);
        let retyped = Retyped::new(domain);
        let known = retyped.for_programs(self.before.iter().chain(self.after));
        let ran = |side: usize, programs: &[Program]| {
            domain.table().side = side;
            run(programs, self.world, known, &options).ok()
        };
        Some((ran(0, self.before)?, ran(1, self.after)?))
    }

    /// How far both are apart in their own dtypes, relative to the largest element of a tensor, and how many elements their
    /// inputs have. `None` where one of them cannot be run.
    fn own_distance(&self, level: Numerics) -> Option<(f64, usize)> {
        // The numbers of the first trial are large, so that exponentials overflow.
        let first = u32::from(level >= Numerics::Reassociation);
        let (mut largest, mut elements) = (0.0, 0);
        for trial in first..first + OWN_RUNS {
            let (before, after) = self.run(&Concrete::of_trial(trial)).ok()?;
            elements =
                before.ranks.iter().flat_map(|rank| &rank.inputs).map(|input| cells_of(&input.value)).sum();
            for (a, b) in tensors(&before, &after)? {
                if a.dtype.class() == DtypeClass::Float {
                    let number = |tensor: &TensorValue, i: usize| number_of(tensor.cells[i], tensor.dtype);
                    let apart = Distance::of(known(a).map(|i| (number(a, i), number(b, i)))).relative();
                    largest = f64::max(largest, apart);
                }
            }
        }
        Some((largest, elements))
    }
}

/// Whether a graph takes sines or cosines.
fn turns(graph: &Graph) -> bool {
    let ops = Ops::of(graph);
    let is_turn = |kind| matches!(kind, Kind::Unary(Unary::Sin | Unary::Cos));
    graph.ids().any(|id| ops.call(graph, id).is_some_and(|info| is_turn(info.kind)))
}

/// The numbers that calls are given.
fn constants(graph: &Graph, found: &mut Vec<f64>) {
    for id in graph.ids() {
        let values = graph.args(id).iter().copied().chain(graph.kwargs(id).map(|(_, value)| value));
        found.extend(values.filter_map(|value| match value {
            Value::Float(x) if x.is_finite() => Some(x),
            Value::Int(n) => Some(n as f64),
            _ => None,
        }));
    }
}

fn cells_of(leaf: &Leaf) -> usize {
    match leaf {
        Leaf::Tensor(tensor) => tensor.cells.len(),
        _ => 0,
    }
}

/// Whether two runs part by more than signs of zeros.
pub(in super::super) fn part(before: &Run, after: &Run) -> bool {
    let differs = |(a, b): &(&TensorValue, &TensorValue)| {
        known(a).any(|i| {
            let [x, y] = [a, b].map(|tensor| number_of(tensor.cells[i], tensor.dtype));
            let is_zero = x == y && x == 0.0;
            a.cells[i] != b.cells[i] && !is_zero && !(x.is_nan() && y.is_nan())
        })
    };
    tensors(before, after).is_none_or(|pairs| pairs.iter().any(differs))
}

/// The tensors that two runs give, in pairs; `None` where they give other things.
fn tensors<'r>(before: &'r Run, after: &'r Run) -> Option<Vec<(&'r TensorValue, &'r TensorValue)>> {
    let mut pairs = Vec::new();
    let is_same = before.ranks.len() == after.ranks.len();
    for (one, other) in before.ranks.iter().zip(&after.ranks).filter(|_| is_same) {
        let are_alike = one.outputs.len() == other.outputs.len()
            && one.inputs.len() == other.inputs.len()
            && one.outputs.iter().zip(&other.outputs).all(|(a, b)| a.0 == b.0)
            && one.effects.len() == other.effects.len()
            && one.effects.iter().zip(&other.effects).all(|(a, b)| a.arguments == b.arguments);
        let outputs = one.outputs.iter().zip(&other.outputs).map(|(a, b)| (&a.1, &b.1));
        let inputs = one.inputs.iter().zip(&other.inputs).map(|(a, b)| (&a.value, &b.value));
        for pair in outputs.chain(inputs).filter(|_| are_alike) {
            match pair {
                (Leaf::Tensor(a), Leaf::Tensor(b))
                    if a.dtype == b.dtype
                        && a.shape == b.shape
                        && a.poison == b.poison
                        && a.cells.len() == b.cells.len() =>
                {
                    pairs.push((a, b))
                }
                (a, b) if a == b => {}
                _ => return None,
            }
        }
        if !are_alike {
            return None;
        }
    }
    is_same.then_some(pairs)
}

/// The elements of a tensor that hold something.
fn known(tensor: &TensorValue) -> impl Iterator<Item = usize> {
    (0..tensor.cells.len()).filter(|&i| !tensor.poison.get(i).copied().unwrap_or(false))
}

/// How far numbers of a dtype are apart, relative to the largest of their tensor, that differ in more than the last digits of
/// constants, where sums take away seven more.
pub(in super::super) fn least_apart(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::BF16 | Dtype::F8E4M3 | Dtype::F8E5M2 => 0.25,
        Dtype::F16 => 0.05,
        _ => 1e-5,
    }
}

/// Elements that were equal at some point, and those that were not where the fields lacked a root.
#[derive(Default)]
struct Seen {
    equal: FxHashSet<(usize, usize)>,
    irregular: FxHashSet<(usize, usize)>,
    /// Whether some are equal in the second field alone, in which a maximum is taken by numbers.
    in_second: bool,
    /// Those that were numbers at no point, and those that were at some.
    undefined: FxHashSet<(usize, usize)>,
    defined: FxHashSet<(usize, usize)>,
}

impl Seen {
    fn is_complete(&self) -> bool {
        self.irregular.is_subset(&self.equal)
    }

    fn is_defined(&self) -> bool {
        self.undefined.is_empty()
    }

    /// Notes that elements are equal, and what they are.
    fn note(&mut self, at: (usize, usize), cell: Option<Cell>) {
        self.equal.insert(at);
        if cell.is_some_and(|cell| !cell.is_lost && cell.number.is_nan() || cell.is_pole) {
            if !self.defined.contains(&at) {
                self.undefined.insert(at);
            }
        } else if self.defined.insert(at) {
            self.undefined.remove(&at);
        }
    }
}

/// What the cells of two runs say, and how far their numbers are apart. `None` where they give other things.
fn compare(before: &Run, after: &Run, domain: &Worlds, seen: Option<&mut Seen>) -> Option<(Alike, f64)> {
    let (mut alike, mut apart) = (Alike::Same, 0f64);
    // Where inputs are special, so is what is equal and what is not; but not what is defined.
    let is_random = seen.is_some();
    let mut ignored = Seen::default();
    let seen = seen.unwrap_or(&mut ignored);
    for (at, (a, b)) in tensors(before, after)?.into_iter().enumerate() {
        // What is equal counts for the largest element; where inputs are special all may be small.
        let cells = known(a).filter_map(|i| domain.cell(a.cells[i])).filter(|cell| !cell.is_lost);
        let least = if is_random { f64::MIN_POSITIVE } else { 1.0 };
        let scale = cells.map(|cell| cell.number.abs()).filter(|x| x.is_finite()).fold(least, f64::max);
        for i in known(a) {
            if a.cells[i] == b.cells[i] {
                seen.note((at, i), domain.cell(a.cells[i]));
                continue;
            }
            let (Some(one), Some(other)) = (domain.cell(a.cells[i]), domain.cell(b.cells[i])) else {
                alike = Alike::Open("parts of elements have other terms".to_string());
                continue;
            };
            if one.u == other.u || one.v == other.v || one.is_pole && other.is_pole {
                seen.note((at, i), Some(one));
                seen.in_second |= one.u != other.u;
                continue;
            }
            if !one.is_lost && !other.is_lost && a.dtype.class() <= DtypeClass::Float {
                let distance = match (one.number - other.number).abs() {
                    _ if one.number.is_nan() && other.number.is_nan() => 0.0,
                    _ if one.number == other.number => 0.0,
                    distance if distance.is_finite() => distance / scale.max(other.number.abs()),
                    _ => f64::INFINITY,
                };
                apart = apart.max(distance);
                if distance > least_apart(a.dtype) {
                    alike = Alike::Apart;
                }
            }
            if !is_random && one.is_special() == other.is_special() {
                continue;
            }
            if alike == Alike::Same && (one.is_irregular || other.is_irregular) {
                seen.irregular.insert((at, i));
            } else if alike == Alike::Same {
                alike = Alike::Open("no law makes their terms equal".to_string());
            }
        }
    }
    Some((alike, apart))
}

#[cfg(test)]
mod tests;
