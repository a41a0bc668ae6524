//! The kernels: what each operator does to the values and the memory of its rank.
//!
//! One file per family. A kernel is a method of [`Rank`]: it takes a step's arguments, computes sizes from the
//! actual inputs, moves cells itself and asks the domain for everything that computes. Sources: the operator of
//! the same name in ATen, where not said otherwise.

mod communicate;
mod create;
mod gather;
mod matmul;
mod moves;
mod opaque;
mod overlap;
mod pack;
mod pointwise;
mod python;
mod reduce;
mod views;

use super::domain::{Outcome, raise};
use super::program::Step;
use super::rank::{Item, Rank};
use crate::graph::NodeId;
use crate::ops::shape::dimension;
use crate::ops::{Kind, Move, Random};

impl<'a> Rank<'a> {
    /// Executes a call that needs no other rank.
    pub(crate) fn call(&mut self, node: NodeId, step: &Step<'a>, kind: Kind) -> Outcome<Item> {
        self.ordered_by_elements(node, step, kind)?;
        match kind {
            Kind::View(view) => self.view(node, step, view),
            Kind::Move(movement) => match movement {
                Move::Index
                | Move::IndexSelect
                | Move::IndexPut
                | Move::Gather
                | Move::Scatter
                | Move::ScatterAdd
                | Move::Embedding => self.indexed(node, step, movement),
                Move::ChunkCat
                | Move::SplitWithSizesCopy
                | Move::PreBucketAllGather
                | Move::PreBucketReduceScatter
                | Move::AllGatherCopyIn => self.pack(node, step, movement),
                _ => self.movement(node, step, movement),
            },
            Kind::Cast => self.cast(node, step),
            Kind::Fill(fill) => self.fill(node, step, fill),
            Kind::Arange => self.arange(node, step),
            Kind::Random(Random::Like | Random::Opaque | Random::Attention) => self.opaque(node, step),
            Kind::Random(random) => self.random(node, step, random),
            Kind::Unary(op) => self.unary(node, step, op),
            Kind::Binary(op) => self.binary(node, step, op),
            Kind::Where | Kind::MaskedFill => self.choose(node, step, kind),
            Kind::Fma => self.fma(node, step),
            Kind::Clamp => self.clamp(node, step),
            Kind::Pointwise => self.elementwise(node, step),
            Kind::Reduce(op) => self.reduce(node, step, op),
            Kind::Cumsum => self.cumsum(node, step),
            Kind::Matmul(op) => self.matmul(node, step, op),
            Kind::GetItem => self.getitem(node, step),
            Kind::Number(op) => self.arithmetic(step, op),
            Kind::SymSize | Kind::SymNumel | Kind::SymStride => self.size(step, kind),
            Kind::Item => self.scalar(step),
            Kind::Assert => self.assert(node, step),
            Kind::Effect => self.effect(node, step),
            Kind::Resize => self.resize(step),
            // Of values it says nothing: a rule looks at the order that it makes.
            Kind::Sync(_) => Ok(Item::None),
            Kind::Opaque | Kind::Unknown => self.opaque(node, step),
            Kind::Collective(_) | Kind::Wait => Err(raise!("communication needs the other ranks")),
        }
    }
}

/// A dimension, counted from the end where it is negative.
pub(crate) fn dim(dim: i64, dims: usize) -> Outcome<usize> {
    Ok(dimension(dim, dims)?)
}
