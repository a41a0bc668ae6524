//! Cells on the move between storages, kernels and ranks.
//!
//! A cell stands for a few bytes (its *grain*), and carries a mark that says whether its value is known. See
//! [`memory`](super::memory) for what the marks mean.

use super::domain::Domain;
use crate::graph::Dtype;
use std::borrow::Cow;

/// What is known of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Mark {
    /// Its value.
    Known,
    /// Nothing.
    Poison,
    /// A collective will write it.
    InFlight,
    /// A collective will write it, and someone else has.
    Raced,
}

use Mark::{Known, Poison};

/// Cells on the move, in row-major order of their window.
#[derive(Clone, PartialEq, Debug)]
pub struct Block {
    /// The cells; several per element where `grain` is smaller than the element.
    pub cells: Vec<u64>,
    /// A mark per cell; empty where all are known.
    pub marks: Vec<Mark>,
    /// Bytes per cell.
    pub grain: u8,
}

impl Block {
    /// Whole elements, one cell each.
    pub fn of_elements(cells: Vec<u64>, poison: Vec<bool>, dtype: Dtype) -> Block {
        let marks = poison.into_iter().map(|p| if p { Poison } else { Known }).collect();
        Block { cells, marks, grain: whole(dtype) }
    }

    /// `count` cells without value.
    pub fn poison(count: usize, grain: u8) -> Block {
        Block { cells: vec![0; count], marks: vec![Poison; count], grain }
    }

    /// Falls apart into cells of `grain` bytes.
    pub fn refine(&mut self, domain: &dyn Domain, grain: u8) {
        while self.grain > grain {
            self.cells = self
                .cells
                .iter()
                .flat_map(|&cell| {
                    let (low, high) = domain.split(cell, self.grain);
                    [low, high]
                })
                .collect();
            self.marks = self.marks.iter().flat_map(|&mark| [mark, mark]).collect();
            self.grain /= 2;
        }
    }

    /// Cells per element of `dtype`.
    pub fn per_element(&self, dtype: Dtype) -> usize {
        dtype.itemsize() as usize / usize::from(self.grain.max(1))
    }
}

/// The cell size of a fresh storage of this dtype: an element, but at most 8 bytes.
pub fn whole(dtype: Dtype) -> u8 {
    dtype.itemsize().min(8) as u8
}

/// Elements to compute with.
#[derive(Debug)]
pub struct Elements<'a> {
    /// One cell per element, in row-major order.
    pub cells: Cow<'a, [u64]>,
    /// Whether each element is poison; empty where none is.
    pub poison: Vec<bool>,
}

/// Cells of `grain` bytes joined to cells of `whole` bytes.
pub fn joined(domain: &dyn Domain, mut cells: Vec<u64>, mut grain: u8, whole: u8) -> Vec<u64> {
    while grain < whole && grain > 0 {
        grain *= 2;
        cells = cells.chunks_exact(2).map(|pair| domain.join(pair[0], pair[1], grain)).collect();
    }
    cells
}

/// The worst of several marks.
pub fn worst(marks: &[Mark]) -> Mark {
    marks.iter().copied().max_by_key(|&m| m as u8).unwrap_or(Known)
}
