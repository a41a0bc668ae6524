//! One call as a rule sees it: its arguments by the names of the schema, and what the rule says of them.

use super::positions::{Arithmetic, Law};
use super::structure::{Fit, Leaf, Misfit, Structure};
use super::values::{Count, Counts, Shape, Value};
use crate::graph::{DtypeClass, Graph, NodeId, Out, Value as Argument};
use crate::ops::{Bound, OpInfo};
use std::collections::BTreeMap;

/// What an argument becomes.
#[derive(Clone, Debug)]
pub enum New {
    /// The size of a dimension.
    Size(Leaf),
    /// Several sizes.
    Sizes(Vec<Leaf>),
    /// A size, with a minus.
    Minus(Leaf),
    /// A list of other ones.
    List(Vec<New>),
    /// One size as often as another one says.
    Repeat(Leaf, i64),
    /// The product of some dimensions.
    Product(Vec<Leaf>),
    /// Where a boundary of a dimension stands.
    Position(Leaf, i64),
    /// Strides of a tensor with these dimensions, in the order of the recorded ones.
    Strides(Vec<Leaf>),
    /// A number as it is.
    Int(i64),
}

/// An argument that changes.
#[derive(Clone, Debug)]
pub struct Edit {
    /// The call.
    pub node: NodeId,
    /// The parameter of its schema.
    pub param: usize,
    /// What it becomes.
    pub new: New,
}

/// What is known of all graphs.
#[derive(Debug, Default)]
pub struct State {
    /// All dimensions.
    pub structure: Structure,
    /// What integers count.
    pub counts: Counts,
    /// Process groups by name.
    pub groups: BTreeMap<String, Leaf>,
    /// Dimensions that are reduced together: a mean divides by their product.
    pub reduced: Vec<Vec<Leaf>>,
    /// Those of them by whose product something is divided.
    pub averaged: Vec<Vec<Leaf>>,
}

/// A call.
pub struct Call<'c> {
    /// Its graph.
    pub graph: &'c Graph,
    /// Which node it is.
    pub id: NodeId,
    /// What it calls.
    pub info: &'c OpInfo,
    /// Its arguments.
    pub bound: Bound<'c>,
    /// What the nodes before it return.
    pub values: &'c [Value],
    /// What is known of all graphs.
    pub state: &'c mut State,
    /// What the rule says of the arguments.
    pub edits: Vec<Edit>,
    /// What it does to integers.
    pub arithmetic: Vec<Arithmetic>,
}

const ABSENT: Misfit = Misfit("an argument is absent");

impl<'c> Call<'c> {
    /// The name in the schema.
    pub fn name(&self) -> &'c str {
        self.info.schema.as_ref().map_or("", |schema| schema.name.as_str())
    }

    /// The structure.
    pub fn structure(&mut self) -> &mut Structure {
        &mut self.state.structure
    }

    /// The size of a dimension.
    pub fn size(&self, leaf: Leaf) -> i64 {
        self.state.structure.size(leaf)
    }

    fn value(&self, argument: Option<Argument>) -> Option<&'c Value> {
        match argument? {
            Argument::Node(node) => self.values.get(node.index()),
            _ => None,
        }
    }

    /// A tensor.
    pub fn tensor(&self, name: &str) -> Fit<Shape> {
        self.optional(name).ok_or(ABSENT)
    }

    /// A tensor that may be absent.
    pub fn optional(&self, name: &str) -> Option<Shape> {
        self.value(self.bound.named(name))?.tensor().cloned()
    }

    /// The tensor that is the first parameter, whatever its name.
    pub fn first(&self) -> Fit<Shape> {
        self.value(self.bound.given(0)).and_then(Value::tensor).cloned().ok_or(ABSENT)
    }

    /// A list of tensors.
    pub fn list(&self, name: &str) -> Fit<Vec<Shape>> {
        let list = self.bound.list(name).ok_or(ABSENT)?;
        let each = list.iter().map(|&value| self.value(Some(value)).and_then(Value::tensor).cloned());
        each.collect::<Option<Vec<Shape>>>().ok_or(ABSENT)
    }

    /// All tensors that it takes.
    pub fn tensors(&self) -> Vec<Shape> {
        let mut tensors = Vec::new();
        self.graph.for_each_input(self.id, &mut |input| {
            if let Some(value) = self.values.get(input.index()) {
                tensors.extend(value.tensors().into_iter().cloned());
            }
        });
        tensors
    }

    /// An integer.
    pub fn int(&self, name: &str) -> Fit<i64> {
        self.bound.int(name).ok_or(ABSENT)
    }

    /// Integers.
    pub fn ints(&self, name: &str) -> Fit<Vec<i64>> {
        self.bound.ints(name).ok_or(ABSENT)
    }

    /// The dimension of `rank` that an argument names.
    pub fn dim(&self, name: &str, rank: usize) -> Fit<usize> {
        dim_of(self.int(name)?, rank)
    }

    /// The parameter called `name`.
    pub fn param(&self, name: &str) -> Fit<usize> {
        self.info.schema.as_ref().and_then(|schema| schema.param(name)).ok_or(ABSENT)
    }

    /// Says what an argument becomes, if it is given.
    pub fn edit(&mut self, name: &str, new: New) -> Fit<()> {
        let param = self.param(name)?;
        if self.bound.given(param).is_some() {
            self.edits.push(Edit { node: self.id, param, new });
        }
        Ok(())
    }

    /// The group over which it communicates.
    pub fn group(&mut self) -> Fit<Leaf> {
        if let Some(&group) = self.bound.text("group_name").and_then(|name| self.state.groups.get(name)) {
            return Ok(group);
        }
        let size = self.int("group_size")?;
        Ok(self.state.structure.kept(size))
    }

    /// The recorded sizes of the results that are tensors, those of a tuple in order.
    pub fn recorded(&self) -> Vec<Option<Vec<i64>>> {
        let size = |out: Out| match out {
            Out::Tensor(tensor) => self.graph.sizes(self.graph.tensor(tensor).shape),
            _ => None,
        };
        match self.graph.node(self.id).out {
            Out::Tuple(span) => self.graph.outs(span).iter().map(|&out| size(out)).collect(),
            out => vec![size(out)],
        }
    }

    /// The recorded sizes of the only result.
    pub fn recorded_one(&self) -> Fit<Vec<i64>> {
        self.recorded().into_iter().next().flatten().ok_or(Misfit("no recorded sizes"))
    }

    /// New dimensions of the recorded sizes of the only result.
    pub fn fresh(&mut self) -> Fit<Vec<Leaf>> {
        let sizes = self.recorded_one()?;
        Ok(sizes.into_iter().map(|size| self.state.structure.leaf(size)).collect())
    }

    /// The kind of number in the `index`-th result.
    pub fn class(&self, index: usize) -> Option<DtypeClass> {
        self.graph.tensor_at(self.id, index).map(|tensor| tensor.dtype.class())
    }

    /// Makes the dimensions of two tensors of one rank the same.
    pub fn same(&mut self, a: &[Leaf], b: &[Leaf]) -> Fit<()> {
        if a.len() != b.len() {
            return Err(Misfit("ranks differ"));
        }
        a.iter().zip(b).try_for_each(|(&a, &b)| self.state.structure.unify(a, b))
    }

    /// What tensors are broadcast to.
    pub fn broadcast(&mut self, shapes: &[&[Leaf]]) -> Fit<Vec<Leaf>> {
        let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
        let mut result = Vec::with_capacity(rank);
        for place in (1..=rank).rev() {
            let all = shapes.iter().filter_map(|shape| shape.len().checked_sub(place).map(|at| shape[at]));
            let all: Vec<Leaf> = all.collect();
            let mut wide: Option<Leaf> = None;
            for &axis in &all {
                match wide {
                    _ if self.size(axis) == 1 => {}
                    Some(wide) => self.state.structure.unify(wide, axis)?,
                    None => wide = Some(axis),
                }
            }
            result.extend(wide.or(all.first().copied()));
        }
        Ok(result)
    }

    /// Makes the list `have` and the list `want` products of the same elements in the same order. Equal ends first.
    pub fn regroup(&mut self, have: &[Leaf], want: &[Leaf]) -> Fit<()> {
        let structure = &mut self.state.structure;
        if structure.total(have)? != structure.total(want)? || structure.total(have)? == 0 {
            return Err(Misfit("no elements"));
        }
        let (mut have, mut want) = (structure.digits(have), structure.digits(want));
        while let (Some(&a), Some(&b)) = (have.first(), want.first()) {
            if structure.size(a) != structure.size(b) {
                break;
            }
            structure.unify(a, b)?;
            have.remove(0);
            want.remove(0);
        }
        structure.unify_products(&have, &want)
    }

    /// Says that integers are positions of a dimension.
    pub fn index(&mut self, index: &Shape, leaf: Leaf) -> Fit<()> {
        let count = index.count.ok_or(Misfit("indices that are no integers"))?;
        self.state.counts.set(&mut self.state.structure, count, leaf)
    }

    /// Integers that were made by this call in a way that makes them positions of nothing known.
    pub fn made(&mut self, index: usize) -> Option<Count> {
        if self.class(index) != Some(DtypeClass::Int) {
            return None;
        }
        Some(self.computed(Law::Other, Vec::new(), Vec::new(), 0))
    }

    /// Notes arithmetic on integers; the count of its result.
    pub fn computed(
        &mut self,
        law: Law,
        sources: Vec<Option<Count>>,
        constants: Vec<usize>,
        index: usize,
    ) -> Count {
        let result = self.state.counts.fresh();
        let is_integer = self.class(index) == Some(DtypeClass::Int);
        let node = self.id;
        self.arithmetic.push(Arithmetic {
            node,
            law,
            sources,
            constants,
            result,
            is_integer,
            is_done: false,
        });
        result
    }
}

/// The dimension of `rank` that a number names, from the front or from the back.
pub fn dim_of(dim: i64, rank: usize) -> Fit<usize> {
    let rank = rank as i64;
    let at = if dim < 0 { dim.checked_add(rank) } else { Some(dim) };
    at.filter(|at| (0..rank).contains(at)).map(|at| at as usize).ok_or(Misfit("no such dimension"))
}
