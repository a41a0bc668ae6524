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
use std::sync::Arc;

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
        let field = Arc::new(Field::new(graphs.any(turns)));
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
        let field = Arc::new(Field::new(graphs.any(turns)));
        let mut covered = 0;
        for point in 1..=MORE_POINTS {
            let found = self.cases_at(level, &field, point);
            covered += usize::from(found == Some(Found::Covered));
            if covered == CASE_POINTS || found.is_none_or(|found| found == Found::Apart) {
                break;
            }
        }
        covered == CASE_POINTS
    }

    /// What all cases say at one point; `None` where one of both cannot be run.
    fn cases_at(&self, level: Numerics, field: &Arc<Field>, point: u32) -> Option<Found> {
        let fingerprints = Fingerprints {
            field: Arc::clone(field),
            numbers: Concrete::of_trial(point),
            ..Fingerprints::new(Laws::of(level))
        };
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
mod tests {
    use super::super::super::bounds::Bounds;
    use super::super::super::run::Options;
    use super::*;

    fn alike(level: Numerics, inputs: &str, before: &str, after: &str) -> Alike {
        let graph = |body: &str| {
            let text = format!("{inputs}\n{}\noutput (r)\n", body.replace("; ", "\n"));
            crate::format::text::parse(text.as_bytes()).unwrap().graph
        };
        let graphs = [graph(before), graph(after)];
        let ops = [Ops::of(&graphs[0]), Ops::of(&graphs[1])];
        let world = graphs[0].world.assume_mesh().unwrap();
        let [one, other] = [0, 1].map(|i| [Program::new(&graphs[i], &ops[i], &world).unwrap()]);
        let bounds = Bounds::of(&graphs[0], &ops[0], &|_| false);
        let options = Options { bounds, ..Options::default() };
        Pair { before: &one, after: &other, world: &world, options: &options }
            .likeness(level, true, f64::INFINITY)
            .unwrap_or_else(|| panic!("{before} / {after}"))
            .alike
    }

    const XYZ: &str = "x = input : f32[3,4]\ny = input : f32[3,4]\nz = input : f32[3,4]";

    #[test]
    fn right_laws_are_proved() {
        for (level, before, after) in [
            (
                Numerics::Exact,
                "r = clamp_min(x, -1.0)",
                "p = lt_scalar(x, -1.0); m = full([], -1.0) : f32[]; r = where(p, m, x)",
            ),
            (
                Numerics::Exact,
                "c = clamp_min(x, -1.0); r = clamp_max(c, 1.0)",
                "p = lt_scalar(x, -1.0); m = full([], -1.0) : f32[]; q = where(p, m, x); o = full([], 1.0) : f32[]; \
                 t = gt_scalar(q, 1.0); r = where(t, o, q)",
            ),
            (
                Numerics::Exact,
                "c = gt(x, y); d = eq(x, y); e = logical_or(c, d); r = where(e, x, y)",
                "c = ge(x, y); r = where(c, x, y)",
            ),
            (Numerics::ZeroSign, "r = clamp_min(x, 0.5)", "h = full([], 0.5) : f32[]; r = maximum(x, h)"),
            (Numerics::Reassociation, "c = gt(x, y); r = where(c, x, y)", "r = maximum(x, y)"),
            (
                Numerics::Reassociation,
                "s = add(x, y); t = add(s, z); c = gt(t, y); r = where(c, t, y)",
                "s = add(y, z); t = add(x, s); r = maximum(t, y)",
            ),
            (Numerics::Reassociation, "r = abs(x)", "n = neg(x); c = lt_scalar(x, 0); r = where(c, n, x)"),
            (Numerics::Reassociation, "r = abs(x)", "s = sign(x); r = mul(s, x)"),
            (Numerics::Reassociation, "r = relu(x)", "c = gt_scalar(x, 0); r = mul(c, x)"),
            (
                Numerics::Reassociation,
                "c = gt_scalar(x, 0); m = mul(x, 0.01);  r = where(c, x, m)",
                "m = mul(x, 0.01); r = maximum(x, m)",
            ),
            // What decides is given the same bits.
            (
                Numerics::Reassociation,
                "c = gt(x, y); p = add(x, y); q = add(p, z); r = where(c, q, x)",
                "c = gt(x, y); p = add(y, z); q = add(x, p); r = where(c, q, x)",
            ),
            (Numerics::Reassociation, "n = add(x, y); r = add(n, z)", "n = add(y, z); r = add(x, n)"),
            (Numerics::Reassociation, "n = div(x, y); r = div(n, z)", "n = mul(y, z); r = div(x, n)"),
            (Numerics::Reassociation, "r = mean(x, [1])", "n = sum(x, [1]); r = div(n, 4)"),
            (Numerics::Contraction, "n = add(x, y); r = exp(n)", "p = exp(x); q = exp(y); r = mul(p, q)"),
            (Numerics::Contraction, "e = exp(x); r = log(e)", "r = clone(x)"),
            (
                Numerics::Contraction,
                "e = exp(x); s = add(e, 1.0); l = log(s); r = exp(l)",
                "e = exp(x); r = add(e, 1.0)",
            ),
            (Numerics::Contraction, "s = sigmoid(x); p = sqrt(s); r = mul(p, p)", "r = sigmoid(x)"),
            (
                Numerics::Contraction,
                "s = sigmoid(x); t = sigmoid(y); n = mul(s, t); r = sqrt(n)",
                "s = sigmoid(x); t = sigmoid(y); p = sqrt(s); q = sqrt(t); r = mul(p, q)",
            ),
            (Numerics::Contraction, "n = neg(x); r = sigmoid(n)", "s = sigmoid(x); r = rsub_scalar(s, 1.0)"),
            (Numerics::Contraction, "r = pow(x, 3)", "q = mul(x, x); r = mul(q, x)"),
            (Numerics::Contraction, "r = div(x, 3.0)", "r = mul(x, 0.3333333333333333)"),
            (Numerics::Contraction, "q = mul(x, x); r = sqrt(q)", "r = abs(x)"),
            (Numerics::Contraction, "p = relu(x); r = mul(p, 2.0)", "p = mul(x, 2.0); r = relu(p)"),
            (
                Numerics::Reassociation,
                "p = neg(x); q = neg(y); m = maximum(p, q); r = neg(m)",
                "r = minimum(x, y)",
            ),
            (Numerics::Reassociation, "p = maximum(x, y); q = minimum(x, y); r = add(p, q)", "r = add(x, y)"),
            (
                Numerics::Reassociation,
                "m = maximum(x, y); r = add(m, z)",
                "p = add(x, z); q = add(y, z); r = maximum(p, q)",
            ),
            (
                Numerics::Contraction,
                "m = maximum(x, y); r = exp(m)",
                "p = exp(x); q = exp(y); r = maximum(p, q)",
            ),
            (
                Numerics::Contraction,
                "p = exp(x); q = exp(y); n = mul(p, q); r = exp(n)",
                "n = add(x, y); m = exp(n); r = exp(m)",
            ),
            (
                Numerics::Contraction,
                "n = clamp_min(x, 0.0); r = clamp_max(n, 6.0)",
                "m = relu(x); n = clamp_max(m, 6.0); r = relu(n)",
            ),
            (
                Numerics::Contraction,
                "c = cos(x); s = sin(x); p = mul(c, c); q = mul(s, s); r = add(p, q)",
                "r = full([3, 4], 1.0)",
            ),
            (
                Numerics::Contraction,
                "m = amax(x, [1], True); d = sub(x, m); e = exp(d); s = sum(e, [1], True); r = div(e, s)",
                "e = exp(x); s = sum(e, [1], True); r = div(e, s)",
            ),
            (
                Numerics::Contraction,
                "q = mul(x, x); m = mean(q, [1], True); e = add(m, 1e-05); s = rsqrt(e); r = mul(x, s)",
                "q = pow(x, 2); m = mean(q, [1], True); e = add(m, 1e-05); s = sqrt(e); r = div(x, s)",
            ),
        ] {
            assert_eq!(alike(level, XYZ, before, after), Alike::Same, "{before} / {after}");
        }
    }

    #[test]
    fn wrong_laws_are_not() {
        for (before, after) in [
            ("q = mul(x, x); r = log(q)", "l = log(x); r = mul(l, 2.0)"),
            ("s = sqrt(x); r = mul(s, s)", "r = clone(x)"),
            ("q = div(x, y); r = log(q)", "p = log(x); q = log(y); r = sub(p, q)"),
            ("y0 = relu(x); q = mul(y0, y0); r = div(q, y0)", "r = relu(x)"),
            ("n = mul(x, y); r = div(n, y)", "r = clone(x)"),
            ("e = exp(x); f = exp(y); r = add(e, f)", "n = add(x, y); r = exp(n)"),
            ("r = gelu(x)", "r = gelu(x, approximate=\"tanh\")"),
            ("r = clamp(x, 0.0, 6.0)", "r = clamp(x, 0.0, 6.5)"),
            ("r = cos(x)", "n = neg(x); p = exp(x); q = exp(n); s = add(p, q); r = mul(s, 0.5)"),
            ("r = maximum(x, y)", "r = minimum(x, y)"),
            ("m = mean(x, [1]); r = mul(m, 1.0)", "s = sum(x, [1]); r = div(s, 3)"),
        ] {
            let found = alike(Numerics::Contraction, XYZ, before, after);
            assert_eq!(found, Alike::Apart, "{before} / {after}");
        }
    }

    #[test]
    fn laws_of_bits() {
        let inputs = "x = input : f32[3,4]\ny = input : f32[3,4]\nz = input : f32[3,4]\ni = input : i64[4]\nj = input : i64[4]\n\
            a = input : bool[3,4]\nb = input : bool[3,4]\nc = input : bool[3,4]";
        for (before, after, holds) in [
            ("r = add(x, y)", "r = add(y, x)", true),
            ("r = sub(x, y)", "n = neg(y); r = add(x, n)", true),
            ("p = neg(x); q = neg(y); r = mul(p, q)", "r = mul(x, y)", true),
            ("r = div(x, 2.0)", "r = mul(x, 0.5)", true),
            ("r = div(x, 3.0)", "r = mul(x, 0.3333333333333333)", false),
            ("n = add(x, y); r = add(n, z)", "n = add(y, z); r = add(x, n)", false),
            ("r = add(x, 0.0)", "r = clone(x)", false),
            ("r = mul(x, 1.0)", "r = clone(x)", true),
            ("r = maximum(x, y)", "r = maximum(y, x)", false),
            ("n = add(i, j); r = sub(n, j)", "r = clone(i)", true),
            ("n = add(i, j); r = mul(n, 3)", "p = mul(i, 3); q = mul(j, 3); r = add(p, q)", true),
            ("r = bitwise_not(i)", "n = neg(i); r = sub_scalar(n, 1)", true),
            ("n = lt(i, j); r = logical_not(n)", "r = ge(i, j)", true),
            ("n = lt(x, y); r = logical_not(n)", "r = ge(x, y)", false),
            ("r = lt(x, y)", "r = gt(y, x)", true),
            ("n = logical_or(a, b); r = logical_and(a, n)", "r = clone(a)", true),
            (
                "n = logical_or(b, c); r = logical_and(a, n)",
                "p = logical_and(a, b); q = logical_and(a, c); r = logical_or(p, q)",
                true,
            ),
            ("r = logical_and(a, b)", "r = logical_or(a, b)", false),
            ("w = where(a, x, y); r = where(a, w, z)", "r = where(a, x, z)", true),
            ("w = where(b, x, y); r = where(a, w, y)", "n = logical_and(a, b); r = where(n, x, y)", true),
            ("w = where(a, x, y); r = exp(w)", "p = exp(x); q = exp(y); r = where(a, p, q)", true),
            ("w = where(a, x, y); r = add(w, z)", "p = add(x, z); q = add(y, z); r = where(a, p, q)", true),
            ("r = where(a, x, y)", "r = where(a, y, x)", false),
            (
                "r = aten.ceil.default(x) : f32[3,4]",
                "n = neg(x); f = aten.floor.default(n) : f32[3,4]; r = neg(f)",
                true,
            ),
            (
                "r = aten.ceil.default(x) : f32[3,4]",
                "f = aten.floor.default(x) : f32[3,4]; r = add_scalar(f, 1)",
                false,
            ),
            (
                "f = aten.ceil.default(x) : f32[3,4]; r = aten.floor.default(f) : f32[3,4]",
                "r = aten.ceil.default(x) : f32[3,4]",
                true,
            ),
            (
                "f = aten.ceil.default(x) : f32[3,4]; r = aten.floor.default(f) : f32[3,4]",
                "r = aten.floor.default(x) : f32[3,4]",
                false,
            ),
        ] {
            let found = alike(Numerics::Exact, inputs, before, after);
            assert_eq!(found == Alike::Same, holds, "{before} / {after}: {found:?}");
        }
        let found = alike(Numerics::ZeroSign, inputs, "r = maximum(x, y)", "r = maximum(y, x)");
        assert_eq!(found, Alike::Same);
    }

    #[test]
    fn laws_of_integers() {
        let inputs = "i = input : i64[4]\nj = input : i64[4]\nk = input : i32[4]\nb = input : u8[4]\nc = input : i8[4]\n\
            a = input : bool[4,3]\nl = input : bool[4,12]";
        for (before, after, holds) in [
            ("r = remainder_scalar(i, 8)", "r = bitwise_and_scalar(i, 7)", true),
            ("r = remainder_scalar(k, 16)", "r = bitwise_and_scalar(k, 15)", true),
            ("r = remainder_scalar(i, 8)", "r = bitwise_and_scalar(i, 8)", false),
            ("r = remainder_scalar(i, 8)", "r = bitwise_and_scalar(i, 15)", false),
            ("r = remainder_scalar(i, 8)", "r = aten.fmod.Scalar(i, 8) : i64[4]", false),
            ("r = remainder_scalar(b, 8)", "r = aten.fmod.Scalar(b, 8) : u8[4]", true),
            (
                "p = floor_divide_scalar(i, 5); q = mul_scalar(p, 5); r = sub(i, q)",
                "r = remainder_scalar(i, 5)",
                true,
            ),
            (
                "p = floor_divide_scalar(i, 5); q = mul_scalar(p, 5); r = sub(i, q)",
                "r = remainder_scalar(i, 6)",
                false,
            ),
            (
                "p = floor_divide_scalar(i, 4); r = floor_divide_scalar(p, 2)",
                "r = floor_divide_scalar(i, 8)",
                true,
            ),
            (
                "p = floor_divide_scalar(i, 4); r = floor_divide_scalar(p, 2)",
                "r = floor_divide_scalar(i, 16)",
                false,
            ),
            ("p = remainder_scalar(i, 8); r = remainder_scalar(p, 4)", "r = remainder_scalar(i, 4)", true),
            (
                "p = add_scalar(i, 8); r = floor_divide_scalar(p, 8)",
                "q = floor_divide_scalar(i, 8); r = add_scalar(q, 1)",
                false,
            ),
            ("p = bitwise_xor(i, j); q = bitwise_and(i, j); r = add(p, q)", "r = bitwise_or(i, j)", true),
            ("p = bitwise_xor(i, j); q = bitwise_and(i, j); r = add(p, q)", "r = add(i, j)", false),
            (
                "p = bitwise_xor(i, j); q = bitwise_and(i, j); s = mul_scalar(q, 2); r = add(p, s)",
                "r = add(i, j)",
                true,
            ),
            (
                "p = bitwise_and(i, j); r = bitwise_not(p)",
                "p = bitwise_not(i); q = bitwise_not(j); r = bitwise_or(p, q)",
                true,
            ),
            (
                "p = bitwise_and(i, j); r = bitwise_not(p)",
                "p = bitwise_not(i); q = bitwise_not(j); r = bitwise_and(p, q)",
                false,
            ),
            ("r = bitwise_xor(i, i)", "r = sub(i, i)", true),
            (
                "p = bitwise_and_scalar(b, 15); q = floor_divide_scalar(b, 16); s = mul_scalar(q, 16); r = add(s, p)",
                "r = clone(b)",
                true,
            ),
            (
                "p = bitwise_and_scalar(b, 15); q = floor_divide_scalar(b, 8); s = mul_scalar(q, 16); r = add(s, p)",
                "r = clone(b)",
                false,
            ),
            (
                "p = bitwise_and_scalar(i, 12); q = bitwise_and_scalar(i, 3); r = bitwise_or(p, q)",
                "r = bitwise_and_scalar(i, 15)",
                true,
            ),
            (
                "r = floor_divide_scalar(b, 16)",
                "w = aten._to_copy.default(b, dtype=i64) : i64[4]; q = floor_divide_scalar(w, 16); r = aten._to_copy.default(q, dtype=u8) : u8[4]",
                true,
            ),
            (
                "r = floor_divide_scalar(c, 16)",
                "w = aten._to_copy.default(c, dtype=u8) : u8[4]; q = floor_divide_scalar(w, 16); r = aten._to_copy.default(q, dtype=i8) : i8[4]",
                false,
            ),
            ("r = abs(c)", "n = neg(c); r = maximum(c, n)", true),
            ("r = abs(c)", "n = neg(c); r = minimum(c, n)", false),
            ("r = any(a, 1)", "s = sum(a, [1]); r = gt_scalar(s, 0)", true),
            ("r = any(l, 1)", "s = sum(l, [1]); r = gt_scalar(s, 0)", true),
            ("r = any(l, 1)", "s = sum(l, [1]); r = gt_scalar(s, 1)", false),
            ("r = all(a, 1)", "s = sum(a, [1]); r = eq_scalar(s, 3)", true),
            ("r = all(a, 1)", "s = sum(a, [1]); r = ge_scalar(s, 2)", false),
            (
                "r = any(a, 1)",
                "s = aten._to_copy.default(a, dtype=u8) : u8[4,3]; m = amax(s, [1]); r = ne_scalar(m, 0)",
                true,
            ),
            (
                "r = any(a, 1)",
                "s = aten._to_copy.default(a, dtype=u8) : u8[4,3]; m = amin(s, [1]); r = ne_scalar(m, 0)",
                false,
            ),
            (
                "p = remainder_scalar(i, 7); f = aten._to_copy.default(p, dtype=f32) : f32[4]; r = aten._to_copy.default(f, dtype=i64) : i64[4]",
                "r = remainder_scalar(i, 7)",
                true,
            ),
            (
                "f = aten._to_copy.default(i, dtype=f32) : f32[4]; r = aten._to_copy.default(f, dtype=i64) : i64[4]",
                "r = clone(i)",
                false,
            ),
        ] {
            for level in [Numerics::Exact, Numerics::Contraction] {
                let found = alike(level, inputs, before, after);
                assert_eq!(found == Alike::Same, holds, "{level}: {before} / {after}: {found:?}");
            }
        }
    }

    #[test]
    fn choices_that_differ_somewhere_are_not_the_same() {
        for (level, before, after) in [
            // What is no number is given on by a maximum alone.
            (Numerics::ZeroSign, "c = gt(x, y); r = where(c, x, y)", "r = maximum(x, y)"),
            (Numerics::Exact, "r = abs(x)", "n = neg(x); c = lt_scalar(x, 0); r = where(c, n, x)"),
            (Numerics::Exact, "c = gt(x, y); r = where(c, x, y)", "c = le(x, y); r = where(c, y, x)"),
            (Numerics::Reassociation, "c = gt(x, y); r = where(c, x, y)", "r = minimum(x, y)"),
            (Numerics::Reassociation, "c = gt(x, y); r = where(c, x, y)", "c = gt(x, z); r = where(c, x, y)"),
            (
                Numerics::Reassociation,
                "c = gt_scalar(x, 0); m = mul(x, 1.01);  r = where(c, x, m)",
                "m = mul(x, 1.01); r = maximum(x, m)",
            ),
            // A rounding may decide otherwise.
            (
                Numerics::Contraction,
                "p = add(x, y); q = add(p, z); c = gt_scalar(q, 0); r = where(c, x, y)",
                "p = add(y, z); q = add(x, p); c = gt_scalar(q, 0); r = where(c, x, y)",
            ),
            (
                Numerics::Contraction,
                "p = add(x, y); q = add(p, z); r = floor(q)",
                "p = add(y, z); q = add(x, p); r = floor(q)",
            ),
        ] {
            assert_ne!(alike(level, XYZ, before, after), Alike::Same, "{level}: {before} / {after}");
        }
    }

    #[test]
    fn indices_choose_among_all_that_they_may_select() {
        let inputs = "x = input : f32[5,3]\ny = input : f32[5,3]\ni = input : i64[4]\nj = input : i64[4]";
        for (level, before, after) in [
            (Numerics::Exact, "r = index_select(x, 0, i)", "r = embedding(x, i)"),
            (Numerics::Exact, "r = index_select(x, 0, i)", "r = aten.index.Tensor(x, [i]) : f32[4,3]"),
            (
                Numerics::Exact,
                "r = index_select(x, 0, i)",
                "u = unsqueeze(i, 1); e = expand(u, [4, 3]); r = gather(x, 0, e)",
            ),
            (
                Numerics::Reassociation,
                "s = add(x, y); r = index_select(s, 0, i)",
                "p = index_select(x, 0, i); q = index_select(y, 0, i); r = add(p, q)",
            ),
            (
                Numerics::Reassociation,
                "p = index_select(x, 0, i); m = mul(p, 2.0); r = sum(m, [1])",
                "s = sum(x, [1]); t = index_select(s, 0, i); r = mul(t, 2.0)",
            ),
        ] {
            assert_eq!(alike(level, inputs, before, after), Alike::Same, "{level}: {before} / {after}");
        }
        for (before, after) in [
            ("r = index_select(x, 0, i)", "r = index_select(x, 0, j)"),
            ("r = index_select(x, 0, i)", "r = index_select(y, 0, i)"),
            ("r = aten.index.Tensor(x, [i]) : f32[4,3]", "r = index_select(x, 0, i)"),
            ("r = index_select(x, 0, i)", "k = clamp_max(i, 3); r = index_select(x, 0, k)"),
        ] {
            assert_ne!(
                alike(Numerics::Contraction, inputs, before, after),
                Alike::Same,
                "{before} / {after}"
            );
        }
        let inputs = "x = input : f32[2]\ni = input : i64[3]";
        let chosen = "a = slice(x, 0, 0, 1); b = slice(x, 0, 1, 2); c = eq_scalar(i, 1); r = where(c, b, a)";
        let first = "a = slice(x, 0, 0, 1); b = slice(x, 0, 1, 2); c = eq_scalar(i, 0); r = where(c, a, b)";
        for (before, after) in [
            ("r = index_select(x, 0, i)", chosen),
            ("r = index_select(x, 0, i)", first),
            (
                "r = index_select(x, 0, i)",
                "y = cat([x, x]) : f32[4]; k = add_scalar(i, 2) : i64[3]; r = index_select(y, 0, k)",
            ),
        ] {
            assert_eq!(alike(Numerics::Exact, inputs, before, after), Alike::Same, "{before} / {after}");
        }
        // What is out of range raises in the one and chooses something in the other, and what is negative something else.
        for (before, after) in [
            (chosen, "r = index_select(x, 0, i)"),
            ("r = aten.index.Tensor(x, [i]) : f32[3]", chosen),
            (chosen, "r = aten.index.Tensor(x, [i]) : f32[3]"),
            (
                "y = cat([x, x]) : f32[4]; k = add_scalar(i, 2) : i64[3]; r = index_select(y, 0, k)",
                "r = index_select(x, 0, i)",
            ),
        ] {
            assert_ne!(
                alike(Numerics::Contraction, inputs, before, after),
                Alike::Same,
                "{before} / {after}"
            );
        }
    }

    #[test]
    fn what_is_chosen_is_the_same_case_by_case() {
        use Numerics::{Contraction, Exact, Reassociation, ZeroSign};
        let inputs = format!(
            "{XYZ}\na = input : bool[3,4]\nb = input : bool[3,4]\ni = input : i64[3,4]\nj = input : i64[3,4]"
        );
        for (level, before, after, holds) in [
            (Exact, "n = neg(x); r = abs(n)", "r = abs(x)", true),
            (Exact, "p = abs(x); q = abs(y); r = mul(p, q)", "p = mul(x, y); r = abs(p)", true),
            (Exact, "p = abs(x); q = abs(y); r = mul(p, q)", "r = mul(x, y)", false),
            (Exact, "p = abs(x); q = abs(y); r = add(p, q)", "p = add(x, y); r = abs(p)", false),
            (Exact, "n = sub(x, y); r = abs(n)", "n = sub(y, x); r = abs(n)", true),
            (Exact, "r = abs(x)", "n = neg(x); r = maximum(x, n)", false),
            (ZeroSign, "r = abs(x)", "n = neg(x); r = maximum(x, n)", true),
            (Exact, "n = clamp(x, -2.0, 2.0); r = clamp(n, -1.0, 1.0)", "r = clamp(x, -1.0, 1.0)", true),
            (Exact, "n = clamp(x, -2.0, 0.5); r = clamp(n, -1.0, 1.0)", "r = clamp(x, -1.0, 1.0)", false),
            (Exact, "p = mul(x, 3.0); r = relu(p)", "p = relu(x); r = mul(p, 3.0)", true),
            // What is too small is rounded to a zero of either sign.
            (Exact, "p = mul(x, 0.3); r = relu(p)", "p = relu(x); r = mul(p, 0.3)", false),
            (Exact, "p = mul(x, -3.0); r = relu(p)", "p = relu(x); r = mul(p, -3.0)", false),
            (Exact, "w = where(a, x, y); r = abs(w)", "p = abs(x); q = abs(y); r = where(a, p, q)", true),
            (Exact, "w = where(a, x, y); r = abs(w)", "p = abs(x); q = abs(y); r = where(b, p, q)", false),
            (Exact, "p = neg(x); q = neg(y); r = lt(p, q)", "r = gt(x, y)", true),
            (Exact, "p = neg(x); q = neg(y); r = lt(p, q)", "r = ge(x, y)", false),
            (Exact, "r = lt(x, y)", "p = ge(x, y); r = logical_not(p)", false),
            // Twice as much may be infinite.
            (Exact, "p = mul(x, 2.0); q = mul(y, 2.0); r = lt(p, q)", "r = lt(x, y)", false),
            (
                Exact,
                "p = any(a, 1); q = any(b, 1); r = logical_or(p, q)",
                "o = logical_or(a, b); r = any(o, 1)",
                true,
            ),
            (
                Exact,
                "p = any(a, 1); q = any(b, 1); r = logical_or(p, q)",
                "o = logical_and(a, b); r = any(o, 1)",
                false,
            ),
            (Exact, "n = neg(i); r = abs(n)", "r = abs(i)", true),
            (Exact, "m = minimum(i, j); r = maximum(i, m)", "r = clone(i)", true),
            (Exact, "m = minimum(i, j); r = maximum(i, m)", "r = clone(j)", false),
            (
                Exact,
                "k = add_scalar(j, 0); m = minimum(j, k); r = maximum(i, m)",
                "p = maximum(i, j); q = maximum(i, j); r = minimum(p, q)",
                true,
            ),
            (Exact, "p = minimum(i, j); q = maximum(i, j); r = add(p, q)", "r = add(i, j)", true),
            (Exact, "p = add_scalar(i, 1); r = gt(p, i)", "r = ge(i, i)", false),
            (
                Exact,
                "c = full([3, 4], 9007199254740993) : i64[3,4]; d = full([3, 4], 9007199254740992) : i64[3,4]; e = eq(c, d); r = where(e, i, j)",
                "r = clone(i)",
                false,
            ),
            (
                Exact,
                "c = ge_scalar(i, 0); d = ge_scalar(j, 0); p = aten._to_copy.default(c, dtype=i64) : i64[3,4]; q = aten._to_copy.default(d, dtype=i64) : i64[3,4]; s = add(p, q); r = floor_divide_scalar(s, 2)",
                "c = ge_scalar(i, 0); d = ge_scalar(j, 0); e = logical_and(c, d); r = aten._to_copy.default(e, dtype=i64) : i64[3,4]",
                true,
            ),
            (
                Exact,
                "c = ge_scalar(i, 0); d = ge_scalar(j, 0); p = aten._to_copy.default(c, dtype=i64) : i64[3,4]; q = aten._to_copy.default(d, dtype=i64) : i64[3,4]; s = add(p, q); r = floor_divide_scalar(s, 2)",
                "r = full([3, 4], 0) : i64[3,4]",
                false,
            ),
            (Exact, "t = sign(i); u = add_scalar(t, 1); r = gt_scalar(u, 0)", "r = ge_scalar(i, 0)", true),
            (Exact, "t = sign(i); u = add_scalar(t, 1); r = gt_scalar(u, 0)", "r = ge_scalar(j, 0)", false),
            (ZeroSign, "p = minimum(x, y); q = maximum(x, y); r = add(p, q)", "r = add(x, y)", true),
            (ZeroSign, "p = minimum(x, y); q = maximum(x, y); r = sub(p, q)", "r = sub(x, y)", false),
            (ZeroSign, "p = relu(x); n = neg(x); q = relu(n); r = add(p, q)", "r = abs(x)", true),
            (ZeroSign, "p = relu(x); n = neg(x); q = relu(n); r = add(p, q)", "r = clone(x)", false),
            (ZeroSign, "s = sign(x); m = abs(x); r = mul(s, m)", "r = clone(x)", true),
            // What is no number is given on by a maximum alone.
            (ZeroSign, "m = maximum(x, y); r = minimum(x, m)", "r = clone(x)", false),
            (Reassociation, "m = maximum(x, y); r = minimum(x, m)", "r = clone(x)", true),
            (
                ZeroSign,
                "m = mul(x, 0.1); r = maximum(x, m)",
                "c = gt_scalar(x, 0.0); m = mul(x, 0.1); r = where(c, x, m)",
                true,
            ),
            (
                ZeroSign,
                "m = mul(x, 1.1); r = maximum(x, m)",
                "c = gt_scalar(x, 0.0); m = mul(x, 1.1); r = where(c, x, m)",
                false,
            ),
            (
                ZeroSign,
                "m = minimum(y, z); r = maximum(x, m)",
                "p = maximum(x, y); q = maximum(x, z); r = minimum(p, q)",
                true,
            ),
            (
                ZeroSign,
                "m = minimum(y, z); r = maximum(x, m)",
                "p = maximum(x, y); q = maximum(x, z); r = maximum(p, q)",
                false,
            ),
            // Where two values are equal, and what is computed of them there.
            (
                Contraction,
                "c = eq(x, y); p = mul(x, x); q = mul(x, y); r = where(c, p, q)",
                "r = mul(x, y)",
                true,
            ),
            (
                Contraction,
                "c = eq(x, y); p = mul(x, x); q = mul(x, z); r = where(c, p, q)",
                "r = mul(x, z)",
                false,
            ),
            (
                Contraction,
                "c = eq_scalar(x, 0.0); e = exp(x); o = mul(e, 0.0); p = add(o, 1.0); r = where(c, p, e)",
                "r = exp(x)",
                true,
            ),
            (
                Contraction,
                "c = eq_scalar(x, 0.0); e = exp(x); o = mul(e, 0.0); r = where(c, o, e)",
                "r = exp(x)",
                false,
            ),
            (
                Contraction,
                "c = gt_scalar(x, 0.0); e = expm1(x); r = where(c, x, e)",
                "p = relu(x); m = clamp_max(x, 0.0); e = expm1(m); r = add(p, e)",
                true,
            ),
            (
                Contraction,
                "c = gt_scalar(x, 0.5); e = expm1(x); r = where(c, x, e)",
                "p = relu(x); m = clamp_max(x, 0.0); e = expm1(m); r = add(p, e)",
                false,
            ),
            // What is not defined is no number.
            (Contraction, "p = mul(x, x); r = log(p)", "m = abs(x); l = log(m); r = mul(l, 2.0)", true),
            (Contraction, "p = mul(x, x); r = log(p)", "l = log(x); r = mul(l, 2.0)", false),
            (
                Contraction,
                "d = div(x, y); c = gt_scalar(d, 0.0); r = where(c, x, y)",
                "d = div(x, y); c = le_scalar(d, 0.0); r = where(c, y, x)",
                false,
            ),
            (
                Contraction,
                "d = div(x, y); r = relu(d)",
                "d = div(x, y); c = gt_scalar(d, 0.0); z0 = full([], 0.0) : f32[]; r = where(c, d, z0)",
                false,
            ),
            (
                Contraction,
                "d = div(x, y); m = abs(d); r = log(m)",
                "p = abs(x); q = abs(y); s = log(p); t = log(q); r = sub(s, t)",
                false,
            ),
            (
                Contraction,
                "n = neg(x); p = aten.atan.default(n) : f32[3,4]; r = neg(p)",
                "r = aten.atan.default(x) : f32[3,4]",
                true,
            ),
            (
                Contraction,
                "d = sub(x, y); m = abs(d); l = aten.lgamma.default(m) : f32[3,4]; p = mul(l, 0.0); c = eq(x, y); r = where(c, p, z)",
                "c = eq(x, y); z0 = full([], 0.0) : f32[]; r = where(c, z0, z)",
                false,
            ),
            // What is masked with an infinity.
            (
                Exact,
                "k = full([3, 4], -inf) : f32[3,4]; r = where(a, x, k)",
                "k = full([3, 4], -inf) : f32[3,4]; r = where(b, y, k)",
                false,
            ),
            (
                Contraction,
                "k = full([3, 4], -inf) : f32[3,4]; r = where(a, x, k)",
                "k = full([3, 4], -inf) : f32[3,4]; r = where(b, y, k)",
                false,
            ),
            (
                Exact,
                "k = full([3, 4], nan) : f32[3,4]; r = where(a, x, k)",
                "k = full([3, 4], nan) : f32[3,4]; r = where(b, y, k)",
                false,
            ),
            (
                Contraction,
                "k = full([3, 4], -inf) : f32[3,4]; w = where(a, x, k); e = exp(w); r = sum(e, [1])",
                "e = exp(x); z0 = full([], 0.0) : f32[]; w = where(a, e, z0); r = sum(w, [1])",
                true,
            ),
            (
                Contraction,
                "k = full([3, 4], -inf) : f32[3,4]; w = where(a, x, k); e = exp(w); r = sum(e, [1])",
                "e = exp(x); z0 = full([], 0.0) : f32[]; w = where(b, e, z0); r = sum(w, [1])",
                false,
            ),
            (
                Contraction,
                "k = full([3, 4], -inf) : f32[3,4]; w = where(a, x, k); m = amax(w, [1], True); s = sub(w, m); e = exp(s); t = sum(e, [1], True); r = div(e, t)",
                "k = full([3, 4], -inf) : f32[3,4]; n = logical_not(a); w = where(n, k, x); m = amax(w, [1], True); s = sub(w, m); e = exp(s); t = sum(e, [1], True); q = reciprocal(t); r = mul(e, q)",
                true,
            ),
            // Three values of which two pairs are equal, where the third pair is not compared.
            (
                Exact,
                "c = eq(x, y); d = eq(y, z); e = logical_and(c, d); q = sub(x, z); m = abs(q); p = mul(m, 5.0); p1 = add(p, 1.0); p2 = add(p, 2.0); r = where(e, p1, p2)",
                "c = eq(x, y); d = eq(y, z); e = logical_and(c, d); q = sub(x, z); m = abs(q); p = mul(m, 5.0); p1 = add(p, 3.0); p2 = add(p, 2.0); r = where(e, p1, p2)",
                false,
            ),
            (
                Exact,
                "m = clamp_min(i, 0); c = lt_scalar(i, 1); d = gt_scalar(i, -1); e = logical_and(c, d); p = add_scalar(m, 5); q = add_scalar(m, 6); r = where(e, p, q)",
                "m = clamp_min(i, 0); c = lt_scalar(i, 1); d = gt_scalar(i, -1); e = logical_and(c, d); p = add_scalar(m, 7); q = add_scalar(m, 6); r = where(e, p, q)",
                false,
            ),
            (Exact, "d = div(x, x); r = isnan(d)", "r = isnan(x)", false),
            (Exact, "d = sub(x, x); r = isnan(d)", "r = isnan(x)", false),
            (Exact, "d = add(x, 1.0); r = isnan(d)", "r = isnan(x)", true),
            (
                Contraction,
                "d = sub(x, y); m = abs(d); l = log(m); p = mul(l, 0.0); r = add(p, y)",
                "r = clone(y)",
                false,
            ),
            (
                Reassociation,
                "d = sub(x, y); m = abs(d); l = log(m); r = mul(l, d)",
                "d = sub(x, y); m = abs(d); l = log(m); p = mul(l, d); c = eq(x, y); z0 = full([], 0.0) : f32[]; r = where(c, z0, p)",
                false,
            ),
            (
                Contraction,
                "d = mul(x, 0.01); e = add(d, 2.0); l = log(e); k = full([3, 4], inf) : f32[3,4]; r = maximum(l, k)",
                "r = full([3, 4], inf) : f32[3,4]",
                false,
            ),
            (
                Contraction,
                "f = mul(x, 0.01); t = aten.acosh.default(f) : f32[3,4]; g = mul(t, 0.0); r = add(g, y)",
                "r = clone(y)",
                false,
            ),
            (
                Contraction,
                "c = eq_scalar(x, 0.0); q = div(y, x); r = where(c, q, z)",
                "c = eq_scalar(x, 0.0); q = div(z, x); r = where(c, q, z)",
                false,
            ),
            (
                Contraction,
                "d = sub(x, y); q = div(z, d); g = tanh(q); c = eq(x, y); r = where(c, g, z)",
                "d = sub(x, y); q = div(x, d); g = tanh(q); c = eq(x, y); r = where(c, g, z)",
                false,
            ),
            (
                Exact,
                "p = mul(x, 3.0); e = eq_scalar(p, 0.0); m = abs(x); p1 = add(m, 1.0); p2 = add(m, 2.0); r = where(e, p1, p2)",
                "p = mul(x, 3.0); e = eq_scalar(p, 0.0); m = abs(x); p1 = add(m, 3.0); p2 = add(m, 2.0); r = where(e, p1, p2)",
                false,
            ),
            (
                Exact,
                "o = full([3, 4], 5.0) : f32[3,4]; q = div(o, y); e = eq_scalar(q, 0.0); g = gt_scalar(y, 0.0); h = logical_and(e, g); r = where(h, x, z)",
                "r = clone(z)",
                false,
            ),
            (
                Exact,
                "o = full([3, 4], 1.0) : f32[3,4]; q = div(o, x); e = gt_scalar(q, 0.0); r = where(e, y, z)",
                "c = gt_scalar(x, 0.0); r = where(c, y, z)",
                false,
            ),
            (
                ZeroSign,
                "c = eq(x, y); p = reciprocal(x); r = where(c, p, z)",
                "c = eq(x, y); p = reciprocal(y); r = where(c, p, z)",
                false,
            ),
            (
                ZeroSign,
                "c = eq_scalar(x, 0.0); p = reciprocal(x); r = where(c, p, y)",
                "c = eq_scalar(x, 0.0); p = full([3, 4], inf) : f32[3,4]; r = where(c, p, y)",
                false,
            ),
            (Exact, "m = abs(x); c = eq(m, x); r = where(c, x, m)", "r = abs(x)", false),
            (
                Exact,
                "m = mul(x, 0.0); n = abs(m); g = gt_scalar(x, 0.0); c = eq(y, z); d = logical_and(c, g); p = add(n, 5.0); q = add(n, 6.0); r = where(d, p, q)",
                "m = mul(x, 0.0); n = abs(m); g = gt_scalar(x, 0.0); c = eq(y, z); d = logical_and(c, g); p = add(n, 7.0); q = add(n, 6.0); r = where(d, p, q)",
                false,
            ),
            (
                Exact,
                "c = gt_scalar(x, 0.0); f = aten._to_copy.default(c, dtype=f32) : f32[3,4]; m = mul(x, f); k = clamp_min(m, 1.0); r = abs(k)",
                "m = relu(x); k = clamp_min(m, 1.0); r = abs(k)",
                false,
            ),
            (ZeroSign, "s = sign(x); m = maximum(s, x); r = minimum(s, m)", "r = sign(x)", false),
            (
                Contraction,
                "k = full([3, 4], -1.0) : f32[3,4]; l = sqrt(k); c = ge(l, y); d = eq(y, z); e = logical_and(c, d); r = where(e, x, y)",
                "k = full([3, 4], -1.0) : f32[3,4]; l = sqrt(k); g = lt(l, y); c = logical_not(g); d = eq(y, z); e = logical_and(c, d); r = where(e, x, y)",
                false,
            ),
            // A sum of numbers is rounded, so its parts are not tried apart.
            (
                Exact,
                "n = full([3, 4], 0.0) : f32[3,4]; k = full([3, 4], 16777216.0) : f32[3,4]; h = full([3, 4], 3.0) : f32[3,4]; p = where(a, k, n); q = where(b, h, n); s = add(p, q); r = mul(s, 3.0)",
                "n = full([3, 4], 0.0) : f32[3,4]; k = full([3, 4], 16777216.0) : f32[3,4]; h = full([3, 4], 3.0) : f32[3,4]; p = where(a, k, n); q = where(b, h, n); p3 = mul(p, 3.0); q3 = mul(q, 3.0); r = add(p3, q3)",
                false,
            ),
            // What is no number is none for most functions.
            (
                Exact,
                "d = sub(x, y); p = aten.pow.Tensor_Scalar(d, 0.0) : f32[3,4]; c = isnan(d); r = where(c, p, x)",
                "d = sub(x, y); c = isnan(d); r = where(c, d, x)",
                false,
            ),
            (
                Exact,
                "d = sub(x, y); p = sign(d); c = isnan(d); r = where(c, p, x)",
                "d = sub(x, y); c = isnan(d); r = where(c, d, x)",
                false,
            ),
            (
                Exact,
                "d = sub(x, y); p = exp(d); c = isnan(d); r = where(c, p, x)",
                "d = sub(x, y); c = isnan(d); r = where(c, d, x)",
                true,
            ),
            (
                Contraction,
                "d = mul(x, 0.01); e = add(d, 2.0); t = aten.acosh.default(d) : f32[3,4]; m = maximum(t, y); r = minimum(y, m)",
                "r = clone(y)",
                false,
            ),
            (Reassociation, "l = log(x); m = maximum(l, y); r = minimum(y, m)", "r = clone(y)", false),
            (
                Contraction,
                "m = abs(x); d = div(y, x); e = sub(d, d); r = add(m, e)",
                "n = neg(x); r = abs(n)",
                false,
            ),
            (
                Contraction,
                "m = abs(x); d = div(y, x); r = mul(m, d)",
                "n = neg(x); m = abs(n); d = reciprocal(x); e = mul(y, d); r = mul(m, e)",
                true,
            ),
            (Exact, "n = floor(x); r = round(n)", "r = floor(x)", true),
            (
                Exact,
                "n = sub(x, y); p = neg(n); q = trunc(p); r = neg(q)",
                "n = sub(x, y); r = trunc(n)",
                true,
            ),
            (Exact, "n = sub(x, y); q = trunc(n); r = neg(q)", "n = sub(x, y); r = trunc(n)", false),
            (Exact, "n = sub(y, x); q = trunc(n); r = neg(q)", "n = sub(x, y); r = trunc(n)", false),
            (
                Exact,
                "p = neg(x); q = aten.fmod.Scalar(p, 3.0) : f32[3,4]; r = neg(q)",
                "r = aten.fmod.Scalar(x, 3.0) : f32[3,4]",
                true,
            ),
            (
                Exact,
                "p = neg(x); r = aten.fmod.Scalar(p, 3.0) : f32[3,4]",
                "r = aten.fmod.Scalar(x, 3.0) : f32[3,4]",
                false,
            ),
            (ZeroSign, "s = slice(x, 1, 0, 1); r = sum(s, [1], True)", "r = slice(x, 1, 0, 1)", true),
            (Exact, "s = slice(x, 1, 0, 1); r = sum(s, [1], True)", "r = slice(x, 1, 0, 1)", false),
            (Exact, "n = round(x); r = floor(n)", "r = floor(x)", false),
            (
                Contraction,
                "l = log(x); c = gt_scalar(l, 0.0); r = where(c, y, z)",
                "c = gt_scalar(x, 1.0); r = where(c, y, z)",
                false,
            ),
            (
                Contraction,
                "l = log(x); c = gt_scalar(l, 0.0); r = where(c, y, z)",
                "l = log(x); c = le_scalar(l, 0.0); r = where(c, z, y)",
                false,
            ),
        ] {
            let found = alike(level, &inputs, before, after);
            assert_eq!(found == Alike::Same, holds, "{level}: {before} / {after}: {found:?}");
        }
    }

    #[test]
    fn what_is_not_covered_is_open() {
        let (before, after) = ("r = aten.erf.default(x) : f32[3,4]", "r = aten.lgamma.default(x) : f32[3,4]");
        let found = alike(Numerics::Contraction, XYZ, before, after);
        assert!(matches!(found, Alike::Open(_)), "{before} / {after}: {found:?}");
    }

    #[test]
    fn roundings_are_seen() {
        let small = "x = input : bf16[4]\ny = input : bf16[4]\nz = input : bf16[4]";
        let sums = alike(
            Numerics::Reassociation,
            small,
            "n = add(x, y); r = add(n, z)",
            "n = add(y, z); r = add(x, n)",
        );
        assert_eq!(sums, Alike::Same);
        let wider = "p = aten._to_copy.default(x, dtype=f32) : f32[4]; q = aten._to_copy.default(y, dtype=f32) : f32[4]; n = add(p, q); r = aten._to_copy.default(n, dtype=bf16) : bf16[4]";
        let cast = alike(Numerics::Contraction, small, "n = add(x, y); r = mul(n, 1.0)", wider);
        assert!(matches!(cast, Alike::Open(_)), "{cast:?}");
        // A sum of small integers wraps before it is cast.
        let bytes = "x = input : i8[4]\ny = input : i8[4]";
        let found = alike(
            Numerics::Contraction,
            bytes,
            "n = add(x, y); r = aten._to_copy.default(n, dtype=f32) : f32[4]",
            "p = aten._to_copy.default(x, dtype=f32) : f32[4]; q = aten._to_copy.default(y, dtype=f32) : f32[4]; r = add(p, q)",
        );
        assert_ne!(found, Alike::Same);
    }
}
