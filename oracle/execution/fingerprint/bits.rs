//! Integers as their bits.
//!
//! A function of the bits at one position of some integers is a sum of products of those bits, so what it gives is a sum of
//! conjunctions of the integers, each over some positions, with whole factors: `a | b = a + b - (a & b)`. A conjunction is a
//! drawn value, and so are its bits but the highest one, which is what remains of it. Equal functions have equal sums, then,
//! whatever the width is, and a quotient by a power of two is what remains without the lowest bits.

use super::super::hash::{text, words};
use super::cell::{Algebra, Cell};
use super::field::{self, R};
use crate::graph::{Dtype, DtypeClass};

/// Integers of whose bits a function is kept.
const MOST_ATOMS: usize = 4;

/// An integer, shifted to the right by so many positions.
type Atom = (Cell, u32);

/// What the bits of an integer are: at each position a function of the bits of some integers.
#[derive(Clone, Debug)]
pub(super) struct Word {
    atoms: Vec<Atom>,
    /// Entry `i` holds the bits where those of atom `k` are as bit `k` of `i` says.
    table: Vec<u64>,
}

/// The bits of a dtype of integers, and whether the highest one is a sign.
fn bits(dtype: Dtype) -> (u32, bool) {
    let is_signed = !matches!(dtype, Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64);
    (8 * dtype.itemsize(), is_signed)
}

/// All bits that a dtype has; with copies of the sign.
fn all(dtype: Dtype) -> u64 {
    let (width, is_signed) = bits(dtype);
    if is_signed || width == u64::BITS { u64::MAX } else { (1 << width) - 1 }
}

/// The narrowest dtype that holds some integers, none of which is negative; else `dtype`. What is the same in a wider one has
/// the same bits, then.
fn narrowed(dtype: Dtype, of: &[Atom]) -> Dtype {
    let narrow = [Dtype::U8, Dtype::U16, Dtype::U32].into_iter();
    let mut narrow = narrow.filter(|narrow| narrow.itemsize() <= dtype.itemsize());
    narrow.find(|narrow| of.iter().all(|(cell, _)| holds(*narrow, cell))).unwrap_or(dtype)
}

impl Word {
    /// The same function of more integers.
    fn widened(&self, atoms: &[Atom]) -> Vec<u64> {
        let place = |own: &Atom| atoms.iter().position(|atom| is_same(atom, own)).unwrap_or(0);
        let places: Vec<usize> = self.atoms.iter().map(place).collect();
        let own =
            |at: usize| places.iter().enumerate().map(|(k, place)| (at >> place & 1) << k).sum::<usize>();
        (0..1usize << atoms.len()).map(|at| self.table[own(at)]).collect()
    }

    /// Without the integers that make no difference.
    fn reduced(mut self) -> Word {
        for k in (0..self.atoms.len()).rev() {
            if (0..self.table.len()).all(|at| self.table[at] == self.table[at & !(1 << k)]) {
                self.atoms.remove(k);
                let kept = |(at, bits): (usize, u64)| (at >> k & 1 == 0).then_some(bits);
                self.table = self.table.into_iter().enumerate().filter_map(kept).collect();
            }
        }
        self
    }
}

fn is_same(one: &Atom, other: &Atom) -> bool {
    one.0.is(&other.0) && one.1 == other.1
}

impl Algebra<'_> {
    /// The bits of an integer that its dtype holds.
    fn word(&self, a: &Cell, dtype: Dtype) -> Word {
        if let Some(known) = a.known_integer() {
            return Word { atoms: Vec::new(), table: vec![known as u64 & all(dtype)] };
        }
        let own = || Word { atoms: vec![(*a, 0)], table: vec![0, all(narrowed(dtype, &[(*a, 0)]))] };
        self.table.words.get(&a.key()).cloned().unwrap_or_else(own)
    }

    /// A function of the bits of two integers at each position.
    pub(super) fn bitwise(
        &mut self,
        dtype: Dtype,
        [a, b]: [Cell; 2],
        function: impl Fn(u64, u64) -> u64,
    ) -> Option<Cell> {
        let [one, other] = [self.word(&a, dtype), self.word(&b, dtype)];
        let mut atoms = one.atoms.clone();
        let new = |atom: &Atom| !one.atoms.iter().any(|known| is_same(known, atom));
        atoms.extend(other.atoms.iter().filter(|atom| new(atom)));
        if atoms.len() > MOST_ATOMS {
            return None;
        }
        let pairs = one.widened(&atoms).into_iter().zip(other.widened(&atoms));
        let table = pairs.map(|(a, b)| function(a, b) & all(dtype)).collect();
        Some(self.of_word(dtype, Word { atoms, table }))
    }

    /// The quotient by a power of two, rounded down.
    pub(super) fn shifted_right(&mut self, dtype: Dtype, a: Cell, by: u32) -> Cell {
        let Word { atoms, table } = self.word(&a, dtype);
        let (width, is_signed) = bits(dtype);
        let by = by.min(width - 1);
        let atoms = atoms.into_iter().map(|(cell, own)| (cell, (own + by).min(width))).collect();
        let shifted = |bits: u64| if is_signed { (bits as i64 >> by) as u64 } else { bits >> by };
        let table = table.into_iter().map(shifted).collect();
        self.of_word(dtype, Word { atoms, table })
    }

    /// The integer that has these bits.
    fn of_word(&mut self, dtype: Dtype, word: Word) -> Cell {
        let word = word.reduced();
        let (width, is_signed) = bits(dtype);
        let top = width - 1;
        let mut sum = self.integer(0);
        for chosen in 0..word.table.len() {
            let atoms: Vec<Atom> =
                (0..word.atoms.len()).filter(|k| chosen >> k & 1 == 1).map(|k| word.atoms[k]).collect();
            // The factor of this product of bits, by inclusion and exclusion.
            let factor = |position: u32| -> i128 {
                let parts = (0..=chosen).filter(|part| part & chosen == *part);
                let signed = |part: usize| {
                    let bit = i128::from(word.table[part] >> position & 1);
                    if (chosen ^ part).count_ones() % 2 == 1 { -bit } else { bit }
                };
                parts.map(signed).sum()
            };
            if atoms.is_empty() {
                let weight = |position: u32| {
                    if is_signed && position == top { -(1i128 << position) } else { 1 << position }
                };
                let constant: i128 = (0..width).map(|position| factor(position) * weight(position)).sum();
                sum = self.add(sum, self.integer(constant));
                continue;
            }
            // Bits above those that the integers have are 0, whatever their factors are.
            let dtype = narrowed(dtype, &atoms);
            let top = bits(dtype).0 - 1;
            let of_all = factor(top);
            let mut part = self.integer(0);
            if of_all != 0 {
                part = self.mul(self.integer(of_all), self.conjunction(dtype, &atoms));
            }
            for position in 0..top {
                let times = (factor(position) - of_all) << position;
                if times != 0 {
                    let bit = self.bit(dtype, &atoms, position);
                    part = self.add(part, self.mul(self.integer(times), bit));
                }
            }
            sum = self.add(sum, part);
        }
        // Bits that are 0 bound what the others make.
        let any = word.table.iter().fold(0, |any, bits| any | bits);
        let is_negative = is_signed && any >> top & 1 == 1;
        let cell = Cell {
            low: if is_negative { f64::NEG_INFINITY } else { 0.0 },
            high: if is_negative { f64::INFINITY } else { any as f64 },
            is_constant: word.atoms.iter().all(|(cell, _)| cell.is_constant),
            ..sum
        };
        let key = self.table.keep(cell);
        self.table.exact.insert((key, dtype));
        if cell.known_integer().is_none() {
            self.table.words.insert(key, word);
        }
        cell
    }

    /// Integers and the least of their shifts, which all have in common.
    fn without_shift(atoms: &[Atom]) -> (Vec<Atom>, u32) {
        let by = atoms.iter().map(|atom| atom.1).min().unwrap_or(0);
        (atoms.iter().map(|(cell, own)| (*cell, own - by)).collect(), by)
    }

    /// The conjunction of some integers.
    fn conjunction(&self, dtype: Dtype, atoms: &[Atom]) -> Cell {
        let (atoms, by) = Self::without_shift(atoms);
        let whole = match atoms.as_slice() {
            [(only, _)] => *only,
            _ => self.drawn_of_all("conjunction", &atoms, 0),
        };
        if by == 0 {
            return whole;
        }
        let lowest = (0..by.min(bits(dtype).0)).fold(self.integer(0), |sum, position| {
            self.add(sum, self.mul(self.integer(1 << position), self.bit(dtype, &atoms, position)))
        });
        self.over_power(self.add(whole, self.neg(lowest)), by)
    }

    /// A bit of the conjunction of some integers.
    fn bit(&self, dtype: Dtype, atoms: &[Atom], position: u32) -> Cell {
        let (atoms, by) = Self::without_shift(atoms);
        let (width, is_signed) = bits(dtype);
        let position = position + by;
        if position < width - 1 {
            return self.drawn_of_all("bit", &atoms, position);
        }
        if !is_signed && position >= width {
            return self.integer(0);
        }
        let top = width - 1;
        let others = (0..top).fold(self.integer(0), |sum, position| {
            let bit = self.drawn_of_all("bit", &atoms, position);
            self.add(sum, self.mul(self.integer(1 << position), bit))
        });
        let whole = self.conjunction(dtype, &atoms);
        let rest = self.over_power(self.add(whole, self.neg(others)), top);
        if is_signed { self.neg(rest) } else { rest }
    }

    /// The quotient of an integer by a power of two that divides it.
    fn over_power(&self, a: Cell, by: u32) -> Cell {
        self.over(a, 1 << by).unwrap_or(a)
    }

    /// The quotient of an integer by one that divides it; `None` where a field has none.
    pub(super) fn over(&self, a: Cell, divisor: u64) -> Option<Cell> {
        let part =
            |a: u64, modulus: u64| Some(field::mul(a, field::inverse(divisor % modulus, modulus)?, modulus));
        let (u, v) = (part(a.u, R)?, part(a.v, self.field.p)?);
        let [low, high] = [a.low, a.high].map(|bound| bound / divisor as f64);
        Some(Cell { u, v, low, high, exponential: 0, ..a })
    }

    fn drawn_of_all(&self, what: &str, atoms: &[Atom], position: u32) -> Cell {
        let cells: Vec<Cell> = atoms.iter().map(|atom| atom.0).collect();
        if atoms.iter().all(|atom| atom.1 == 0) {
            return self.unordered(words(text(what), [u64::from(position)]), &cells);
        }
        let mut ordered = atoms.to_vec();
        ordered.sort_unstable_by_key(|(cell, shift)| (cell.u, cell.v, *shift));
        let shifts = ordered.iter().map(|atom| u64::from(atom.1));
        let cells: Vec<Cell> = ordered.iter().map(|atom| atom.0).collect();
        self.opaque(words(text(what), shifts.chain([u64::from(position)])), &cells)
    }
}

/// The least and the largest integer of a dtype, if doubles hold them.
pub(super) fn range(dtype: Dtype) -> Option<(f64, f64)> {
    if dtype.class() != DtypeClass::Int {
        return None;
    }
    let (width, is_signed) = bits(dtype);
    let held = if is_signed { width - 1 } else { width };
    let end = 2f64.powi(held as i32);
    (held < f64::MANTISSA_DIGITS).then_some((if is_signed { -end } else { 0.0 }, end - 1.0))
}

/// Whether a dtype holds whatever lies between the bounds of an integer.
pub(super) fn holds(dtype: Dtype, cell: &Cell) -> bool {
    let exact = 2f64.powi(f64::MANTISSA_DIGITS as i32);
    let (_, is_signed) = bits(dtype);
    let (low, high) = range(dtype).unwrap_or((if is_signed { -exact } else { 0.0 }, exact));
    dtype.class() == DtypeClass::Int && cell.low >= low && cell.high <= high
}
