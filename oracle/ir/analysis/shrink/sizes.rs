//! Which small size each size becomes, and where boundaries stand then.
//!
//! Recorded sizes of free leaves are mapped to small ones as numbers: equal ones to equal ones, different ones to different
//! ones. A recorded size up to 3 stays, and so does one that any kept leaf has. No small size is one that stays.
//!
//! The `k`-th size from `start` is the `k`-th number that is free to be taken, counted from 3, after `start - 3` others. So two
//! starts that are at least [`SHIFTS`] apart give each size that shrinks two different small ones.
//!
//! For a proof each size takes several values in a row, which no other size takes, and they are combined in all ways: as many as
//! the degree of coefficients in it, and one more ([`Need`]).

use super::structure::{Leaf, Product, Structure};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// Sizes up to this stay.
pub const STAYS: i64 = 3;
/// How much higher sizes may begin to keep counts apart.
pub const SHIFTS: i64 = 4;
/// Assignments of sizes for a proof at most.
pub const MOST_ASSIGNMENTS: usize = 64;
/// Structures inside one another at most.
const MOST_DEPTH: u32 = 200;

/// Recorded sizes of leaves.
#[derive(Debug, Default)]
pub struct Classes {
    /// Those that shrink, the most frequent first.
    pub free: Vec<i64>,
    /// Those that stay.
    pub stay: BTreeSet<i64>,
}

/// What a proof needs of a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// The least small size: as many as there are indices in a term.
    pub least: i64,
    /// The degree of coefficients.
    pub degree: usize,
}

/// Small sizes.
#[derive(Debug, Default)]
pub struct Sizes {
    /// By recorded size.
    map: BTreeMap<i64, i64>,
    known: RefCell<BTreeMap<Leaf, i64>>,
}

impl Sizes {
    /// These sizes for the recorded ones.
    pub fn given(map: BTreeMap<i64, i64>) -> Sizes {
        Sizes { map, known: RefCell::default() }
    }

    /// Small sizes from `start` on.
    pub fn from(classes: &Classes, start: i64) -> Sizes {
        let skipped = usize::try_from(start.saturating_sub(STAYS)).unwrap_or(0);
        let free = (STAYS..).filter(|size| !classes.stay.contains(size)).skip(skipped);
        Sizes::given(classes.free.iter().copied().zip(free).collect())
    }

    /// All combinations of as many values as a proof needs of each size, at least two; `None` where they are too many. Where no
    /// coefficient depends on a size it takes its two values in turn.
    pub fn all(classes: &Classes, needs: &BTreeMap<i64, Need>) -> Option<Vec<Sizes>> {
        let mut taken = classes.stay.clone();
        let mut number = 1usize;
        let mut values: Vec<(i64, Vec<i64>, usize)> = Vec::new();
        for &class in &classes.free {
            let Need { least, degree } = needs.get(&class).copied().unwrap_or(Need { least: 0, degree: 0 });
            let each = number;
            number = number.checked_mul(degree + 1).filter(|&number| number <= MOST_ASSIGNMENTS)?;
            let free = (least.max(STAYS)..).filter(|size| !taken.contains(size));
            let of_class: Vec<i64> = free.take((degree + 1).max(2)).collect();
            taken.extend(&of_class);
            values.push((class, of_class, each));
        }
        let is_in_turn = |class: &i64| needs.get(class).is_none_or(|need| need.degree == 0);
        let of = |at: usize| {
            let small = values.iter().filter_map(|(class, values, each)| {
                let place = if is_in_turn(class) { at } else { at / each };
                Some((*class, *values.get(place % values.len())?))
            });
            Sizes::given(small.collect())
        };
        Some((0..number.max(2)).map(of).collect())
    }

    /// Recorded and small sizes.
    pub fn pairs(&self) -> impl Iterator<Item = (i64, i64)> {
        self.map.iter().map(|(&old, &new)| (old, new))
    }

    /// The small size of a dimension.
    pub fn size(&self, structure: &Structure, leaf: Leaf) -> Result<i64, String> {
        self.sized(structure, leaf, 0)
    }

    fn sized(&self, structure: &Structure, leaf: Leaf, depth: u32) -> Result<i64, String> {
        let leaf = structure.root(leaf);
        let size = structure.size(leaf);
        if structure.is_free(leaf) {
            return Ok(self.map.get(&size).copied().unwrap_or(size));
        }
        if let Some(&known) = self.known.borrow().get(&leaf) {
            return Ok(known);
        }
        if depth > MOST_DEPTH {
            return Err(format!("the structure of a dimension of {size} is too deep"));
        }
        let mut sum = 0i64;
        for piece in structure.pieces(leaf).map_err(|misfit| misfit.0.to_string())? {
            let product = self.times(structure, &piece, depth + 1)?;
            sum = sum.checked_add(product).ok_or_else(overflow)?;
        }
        self.known.borrow_mut().insert(leaf, sum);
        Ok(sum)
    }

    fn times(&self, structure: &Structure, digits: &[Leaf], depth: u32) -> Result<i64, String> {
        let each = digits.iter().map(|&digit| self.sized(structure, digit, depth));
        each.reduce(|a, b| a?.checked_mul(b?).ok_or_else(overflow)).unwrap_or(Ok(1))
    }

    /// The small size of a product.
    pub fn product(&self, structure: &Structure, digits: &[Leaf]) -> Result<i64, String> {
        self.times(structure, digits, 0)
    }

    /// Where a boundary of a dimension stands.
    pub fn position(&self, structure: &Structure, leaf: Leaf, at: i64) -> Result<i64, String> {
        self.within(structure, vec![leaf], at, 0)
    }

    fn within(
        &self,
        structure: &Structure,
        product: Product,
        mut at: i64,
        depth: u32,
    ) -> Result<i64, String> {
        let fail = |misfit: super::structure::Misfit| misfit.0.to_string();
        let mut place = 0i64;
        for piece in structure.flatten(vec![product]).map_err(fail)? {
            let size = structure.total(&piece).map_err(fail)?;
            if at <= 0 {
                break;
            }
            let more = if at >= size {
                self.times(structure, &piece, depth)?
            } else {
                self.inside(structure, &piece, at, depth)?
            };
            place = place.checked_add(more).ok_or_else(overflow)?;
            at -= size;
        }
        Ok(place)
    }

    /// The same inside a product whose outermost digit has no structure.
    fn inside(&self, structure: &Structure, piece: &[Leaf], at: i64, depth: u32) -> Result<i64, String> {
        let Some((&outer, rest)) = piece.split_first() else { return Ok(0) };
        let width = structure.total(rest).map_err(|misfit| misfit.0.to_string())?.max(1);
        let (row, column) = (at / width, at % width);
        if row > 0 && self.sized(structure, outer, depth)? != structure.size(outer) || depth > MOST_DEPTH {
            return Err(format!("position {at} is inside of a dimension of {}", structure.size(outer)));
        }
        let rows = row.checked_mul(self.times(structure, rest, depth)?).ok_or_else(overflow)?;
        let columns = if column > 0 { self.within(structure, rest.to_vec(), column, depth + 1)? } else { 0 };
        rows.checked_add(columns).ok_or_else(overflow)
    }
}

fn overflow() -> String {
    "small sizes are too large".to_string()
}
