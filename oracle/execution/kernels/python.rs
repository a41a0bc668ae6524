//! Python values: parts of tuples, arithmetic on numbers, sizes, and assertions.

use super::super::domain::{Outcome, raise};
use super::super::hash::mix;
use super::super::number::Number;
use super::super::program::Step;
use super::super::rank::{Item, Rank};
use super::super::run::Effect;
use super::dim;
use crate::graph::{NodeId, Value};
use crate::ops::{Kind, Number as Op};

impl Rank<'_> {
    /// `operator.getitem` on a tuple, list or mapping.
    pub(super) fn getitem(&mut self, node: NodeId, step: &Step) -> Outcome<Item> {
        let [of, key, ..] = step.args;
        let graph = self.program.graph;
        match (self.held(of)?, key) {
            (Some(Item::List(items)), _) => {
                let index = self.int(key)?;
                let at = if index < 0 { index.saturating_add(items.len() as i64) } else { index };
                let item = usize::try_from(at).ok().and_then(|at| items.get(at)).cloned();
                item.ok_or_else(|| raise!("index {index} of {} results", items.len()))
            }
            (Some(Item::Dict(items)), Value::Str(name)) => {
                let item = items.iter().find(|(k, _)| *k == name).map(|(_, item)| item.clone());
                item.ok_or_else(|| raise!("no result is called {:?}", graph.text(name)))
            }
            (Some(&Item::Object(of)), Value::Int(at)) => {
                self.recorded_value(node, graph.node(node).out, mix(of, at as u64), &mut 0, false)
            }
            _ => Err(raise!("has no parts")),
        }
    }

    pub(super) fn arithmetic(&mut self, step: &Step, op: Op) -> Outcome<Item> {
        let numbers: Vec<Number> = match step.args[0] {
            Value::List(span) => {
                self.program.graph.values(span).iter().map(|&v| self.number(v)).collect::<Outcome<_>>()?
            }
            _ => step
                .args
                .iter()
                .take_while(|&&v| v != Value::None)
                .map(|&v| self.number(v))
                .collect::<Outcome<_>>()?,
        };
        Number::apply(op, &numbers).map(Item::Number)
    }

    pub(super) fn size(&mut self, step: &Step, kind: Kind) -> Outcome<Item> {
        let x = self.tensor(step.args[0])?;
        let n = match kind {
            Kind::SymNumel => x.numel() as i64,
            _ => {
                let at = dim(self.int(step.args[1])?, x.shape.len())?;
                let list = if kind == Kind::SymSize { x.shape } else { x.strides };
                *list.get(at).ok_or_else(|| raise!("a tensor without dimensions has no sizes"))?
            }
        };
        Ok(Item::Number(Number::Int(n)))
    }

    /// The value of a tensor of one element. A poison one is a number that nothing else equals.
    pub(super) fn scalar(&mut self, step: &Step) -> Outcome<Item> {
        self.one_number(step).map(Item::Number)
    }

    fn one_number(&mut self, step: &Step) -> Outcome<Number> {
        let x = self.tensor(step.args[0])?;
        if x.numel() != 1 {
            return Err(raise!("a tensor of shape {:?} is not one number", x.shape));
        }
        let domain = self.domain;
        let elements = self.elements(&x)?;
        let number = match elements.poison.first() {
            Some(true) => Number::Term(0x706F_6973_6F6E),
            _ => domain.number(elements.cells[0], x.dtype),
        };
        Ok(number)
    }

    pub(super) fn assert(&mut self, node: NodeId, step: &Step) -> Outcome<Item> {
        let number = match self.item(step.args[0])? {
            Item::Tensor(_) => self.one_number(step)?,
            _ => self.number(step.args[0])?,
        };
        let arguments = mix(number.key(), self.digest(&self.item(step.args[1])?)?.hash);
        self.note_effect(node, arguments, Some(number));
        Ok(Item::None)
    }

    /// An operator that acts on something other than tensors. It reads nothing that it is given.
    pub(super) fn effect(&mut self, node: NodeId, step: &Step) -> Outcome<Item> {
        let arguments = self.arguments(node, step.key)?;
        self.note_effect(node, arguments, None);
        Ok(Item::None)
    }

    pub(super) fn note_effect(&mut self, node: NodeId, arguments: u64, asserted: Option<Number>) {
        let graph = self.program.graph;
        if self.program.redundant_assertions.contains(&node) {
            return;
        }
        let target = graph.target(node).to_string();
        self.effects.push(Effect { node, target, arguments, asserted, unknown: None });
    }
}
