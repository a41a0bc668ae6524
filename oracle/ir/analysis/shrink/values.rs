//! What a node returns, as far as sizes go: the dimensions of its tensors, and what integers count.
//!
//! Integers may be *positions* of a dimension: an index, a row number, an offset. Each tensor that may hold some has a
//! [`Count`], which all that shows or moves the same integers shares. Which dimension it counts is often said only later, by
//! the gather that uses it; so arithmetic on integers is noted as [`Arithmetic`](super::positions::Arithmetic) and judged when all is read.

use super::structure::{Fit, Leaf, Misfit, Structure};

/// What some integers count: an entry of [`Counts`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Count(usize);

/// What integers count.
#[derive(Clone, Debug, Default)]
pub struct Counts(Vec<Counted>);

#[derive(Clone, Debug, Default)]
struct Counted {
    link: Option<Count>,
    leaf: Option<Leaf>,
    /// Dimensions whose positions these numbers were computed from, in a way that leaves them no positions.
    from: Vec<Leaf>,
    /// Whether they may be differences of positions, and so negative.
    is_signed: bool,
}

impl Counts {
    /// Integers of which nothing is known yet.
    pub fn fresh(&mut self) -> Count {
        self.0.push(Counted::default());
        Count(self.0.len() - 1)
    }

    fn root(&self, mut count: Count) -> Count {
        while let Some(next) = self.0[count.0].link {
            count = next;
        }
        count
    }

    /// The dimension whose positions they are.
    pub fn leaf(&self, count: Count) -> Option<Leaf> {
        self.0[self.root(count).0].leaf
    }

    /// The dimensions that they were computed from otherwise.
    pub fn from(&self, count: Count) -> &[Leaf] {
        &self.0[self.root(count).0].from
    }

    /// Notes that they were computed from positions of a dimension.
    pub fn add_from(&mut self, count: Count, leaf: Leaf) {
        let root = self.root(count);
        let from = &mut self.0[root.0].from;
        if !from.contains(&leaf) {
            from.push(leaf);
        }
    }

    /// Whether they may be differences of positions.
    pub fn is_signed(&self, count: Count) -> bool {
        self.0[self.root(count).0].is_signed
    }

    /// Notes that they may be differences of positions.
    pub fn set_signed(&mut self, count: Count) {
        let root = self.root(count);
        self.0[root.0].is_signed = true;
    }

    /// Says that integers are positions of a dimension. Positions of a shorter one are positions of its begin.
    pub fn set(&mut self, structure: &mut Structure, count: Count, leaf: Leaf) -> Fit<()> {
        let root = self.root(count);
        let Some(known) = self.0[root.0].leaf else {
            self.0[root.0].leaf = Some(leaf);
            return Ok(());
        };
        let (have, all) = (structure.size(known), structure.size(leaf));
        if have > all {
            return Err(Misfit("positions of a longer dimension"));
        }
        structure.cut(leaf, have)?;
        let begin = structure.between(leaf, 0, have)?;
        structure.unify(known, begin)
    }

    /// Says that two tensors hold the same integers.
    pub fn unify(&mut self, structure: &mut Structure, a: Count, b: Count) -> Fit<()> {
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return Ok(());
        }
        let of_a = std::mem::take(&mut self.0[a.0]);
        self.0[a.0].link = Some(b);
        for leaf in of_a.from {
            self.add_from(b, leaf);
        }
        self.0[b.0].is_signed |= of_a.is_signed;
        match of_a.leaf {
            Some(leaf) => self.set(structure, b, leaf),
            None => Ok(()),
        }
    }
}

/// A tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Its dimensions.
    pub axes: Vec<Leaf>,
    /// What its elements count, if they may.
    pub count: Option<Count>,
}

impl Shape {
    /// A tensor whose elements count nothing.
    pub fn new(axes: Vec<Leaf>) -> Shape {
        Shape { axes, count: None }
    }
}

/// What a node returns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A tensor.
    Tensor(Shape),
    /// A tuple or list.
    List(Vec<Value>),
    /// The size of a dimension, as a number.
    Size(Leaf),
    /// Anything else.
    Other,
}

impl Value {
    /// The tensor, if it is one.
    pub fn tensor(&self) -> Option<&Shape> {
        match self {
            Value::Tensor(shape) => Some(shape),
            _ => None,
        }
    }

    /// All tensors in it.
    pub fn tensors(&self) -> Vec<&Shape> {
        match self {
            Value::Tensor(shape) => vec![shape],
            Value::List(parts) => parts.iter().flat_map(Value::tensors).collect(),
            Value::Size(_) | Value::Other => Vec::new(),
        }
    }
}
