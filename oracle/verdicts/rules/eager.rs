//! The interpreter against somebody who executes graphs with real kernels: PyTorch's eager results.
//!
//! # The idea
//!
//! What the oracle says about values rests on its own interpreter. A candidate that executes graphs judges it: on the
//! same inputs, what a graph returns and leaves in its inputs must be the same on every rank, bit for bit. Where
//! operators have no one right result, [`comparable`](crate::semantics::comparable()) says how far two of them may lie
//! apart.
//!
//! A difference is a fault of graph-oracle or of who executed the graph. Which one it is, people have to find out.
//!
//! # What it does not do
//!
//! Memory that nobody wrote, and what was read of it, has no value: it is not compared. All NaN are one.

use super::{Finding, NodeMention, Promise, RuleStatus, Severity, Stage};
use crate::graph::{Dtype, Graph, NodeId, Value};
use crate::semantics::{Concrete, Domain, Executed, Leaf, Number, RankRun, Rounded, Run, TensorValue};

/// The rules.
pub static CATALOGUE: &[Promise] = &[
    Promise {
        id: "eager/same-outputs",
        statement: "Executed with real kernels, a graph returns on every rank what the interpreter says: dtype, sizes, and \
                    every element, bit for bit where there is one right result.",
        reason: "All that the oracle says about values rests on its interpreter.",
    },
    Promise {
        id: "eager/same-inputs",
        statement: "Executed with real kernels, a graph leaves in its inputs what the interpreter says.",
        reason: "Writes are results too.",
    },
    Promise {
        id: "eager/same-failures",
        statement: "A graph of which the interpreter says that an operator raises is not executed either.",
        reason: "What the interpreter takes for an error it calls a defect of a pass.",
    },
];

/// Two executions of one graph.
pub struct Executions<'a> {
    /// The graph that was executed.
    pub graph: &'a Graph,
    /// What of its last outputs may lie apart.
    pub rounded: &'a [Rounded],
    /// What the interpreter says.
    pub ours: &'a Run,
    /// What the candidate says.
    pub theirs: &'a Executed,
}

/// Findings that are told at most, of one rule.
const SHOWN: usize = 4;

/// Compares two executions: what is found, what became of the rules, and how many elements were compared.
pub fn check(executions: &Executions) -> (Vec<Finding>, Vec<(&'static str, RuleStatus)>, usize) {
    let (mut outputs, mut inputs, mut compared) = (Vec::new(), Vec::new(), 0);
    let Executions { ours, theirs, .. } = executions;
    if ours.ranks.len() != theirs.ranks.len() {
        let title = format!("{} ranks were executed, not {}", theirs.ranks.len(), ours.ranks.len());
        outputs.push(finding("eager/same-outputs", title, None, Vec::new()));
    }
    for (rank, (our, their)) in ours.ranks.iter().zip(&theirs.ranks).enumerate() {
        executions.outputs(rank, our, &their.outputs, &mut outputs, &mut compared);
        for input in our.inputs.iter().filter(|input| !input.attribute) {
            let found = their.inputs.iter().find(|(name, _)| *name == input.name);
            let (Leaf::Tensor(value), Some((_, found))) = (&input.value, found) else { continue };
            let what = format!("input {} of rank {rank} after the run", input.name);
            if let Some((title, facts)) = differ(&what, value, found, &|_, _| None, &mut compared) {
                inputs.push(finding("eager/same-inputs", title, Some(input.name.clone()), facts));
            }
        }
    }
    let status = |found: &Vec<Finding>| match found.len() {
        0 => RuleStatus::Holds,
        n => RuleStatus::Violated(n),
    };
    let statuses = vec![
        ("eager/same-outputs", status(&outputs)),
        ("eager/same-inputs", status(&inputs)),
        ("eager/same-failures", RuleStatus::Holds),
    ];
    outputs.truncate(SHOWN);
    inputs.truncate(SHOWN);
    outputs.append(&mut inputs);
    (outputs, statuses, compared)
}

/// The interpreter says that `node` raises an error, and the candidate gave values.
pub fn raises(
    graph: &Graph,
    node: Option<NodeId>,
    reason: &str,
) -> (Finding, Vec<(&'static str, RuleStatus)>) {
    let name = node.map(|node| graph.name(node).to_string());
    let title = format!("the interpreter says that an operator raises, and it was executed: {reason}");
    let rule = "eager/same-failures";
    (finding(rule, title, name, Vec::new()), vec![(rule, RuleStatus::Violated(1))])
}

fn finding(rule: &'static str, title: String, node: Option<String>, facts: Vec<String>) -> Finding {
    let mention = |name| NodeMention { name, before: None, after: None };
    Finding {
        nodes: node.into_iter().map(mention).collect(),
        facts,
        ..Finding::new(rule, Severity::Soundness, Stage::Before, title)
    }
}

/// How far an element of this dtype and value may lie apart.
type Tolerance<'a> = &'a dyn Fn(Dtype, f64) -> Option<Apart>;

/// What is known about a distance.
enum Apart {
    /// At most so much.
    Within(f64),
    /// Nothing.
    Unknown,
}

impl Executions<'_> {
    fn outputs(
        &self,
        rank: usize,
        our: &RankRun,
        theirs: &[Option<TensorValue>],
        into: &mut Vec<Finding>,
        compared: &mut usize,
    ) {
        if our.outputs.len() != theirs.len() {
            let title = format!("rank {rank} returns {} values, not {}", theirs.len(), our.outputs.len());
            into.push(finding("eager/same-outputs", title, None, Vec::new()));
            return;
        }
        let added =
            self.rounded.iter().map(|one| one.result.max(one.operands.end.saturating_sub(1)) + 1).max();
        let first = our.outputs.len().saturating_sub(added.unwrap_or(0));
        let names = self.names();
        for (index, ((_, leaf), their)) in our.outputs.iter().zip(theirs).enumerate() {
            let name = names.get(index).cloned().flatten();
            let shown = name.as_deref().unwrap_or("?");
            let what = format!("output {index} of rank {rank} ({shown})");
            let (Leaf::Tensor(ours), Some(their)) = (leaf, their) else {
                // Numbers and None are no tensors on the other side.
                if matches!(leaf, Leaf::Tensor(_)) || their.is_some() {
                    let title = format!("{what} is a tensor on one side only");
                    into.push(finding("eager/same-outputs", title, name, Vec::new()));
                }
                continue;
            };
            let rounded = self.rounded.iter().find(|one| first + one.result == index);
            let magnitudes = rounded.map(|one| self.magnitudes(first, one)).unwrap_or_default();
            let tolerance = |dtype: Dtype, value: f64| {
                let rounding = rounded?.rounding;
                Some(rounding.tolerance(dtype, value, &magnitudes).map_or(Apart::Unknown, Apart::Within))
            };
            if let Some((title, facts)) = differ(&what, ours, their, &tolerance, compared) {
                into.push(finding("eager/same-outputs", title, name, facts));
            }
        }
    }

    /// The largest magnitude of each operand, over all ranks.
    fn magnitudes(&self, first: usize, rounded: &Rounded) -> Vec<f64> {
        let of_operand = |operand: usize| {
            let leaves = self.ours.ranks.iter().filter_map(|run| run.outputs.get(first + operand));
            let tensors = leaves.filter_map(|(_, leaf)| match leaf {
                Leaf::Tensor(tensor) => Some(tensor),
                _ => None,
            });
            let cells = tensors.flat_map(|t| t.cells.iter().map(|&cell| number(cell, t.dtype).abs()));
            cells.fold(0.0, |most: f64, x| if x.is_nan() { f64::INFINITY } else { most.max(x) })
        };
        rounded.operands.clone().map(of_operand).collect()
    }

    /// The names of the nodes that are returned.
    fn names(&self) -> Vec<Option<String>> {
        let mut names = Vec::new();
        if let Some(output) = self.graph.output() {
            let mut open: Vec<Value> = self.graph.args(output).iter().rev().copied().collect();
            while let Some(value) = open.pop() {
                match value {
                    Value::List(list) => open.extend(self.graph.values(list).iter().rev()),
                    Value::Node(node) => names.push(Some(self.graph.name(node).to_string())),
                    _ => names.push(None),
                }
            }
        }
        names
    }
}

/// An element as a float.
fn number(cell: u64, dtype: Dtype) -> f64 {
    Domain::number(&Concrete::default(), cell, dtype).float()
}

/// Where two tensors differ: one line, and further facts.
fn differ(
    what: &str,
    ours: &TensorValue,
    theirs: &TensorValue,
    tolerance: Tolerance,
    compared: &mut usize,
) -> Option<(String, Vec<String>)> {
    let kind = |t: &TensorValue| format!("{}{:?}", t.dtype.short(), t.shape);
    if ours.dtype != theirs.dtype || *ours.shape != *theirs.shape || ours.cells.len() != theirs.cells.len() {
        let title =
            format!("{what} is {} for the interpreter and {} when executed", kind(ours), kind(theirs));
        return Some((title, Vec::new()));
    }
    let mut wrong: Vec<(usize, Option<f64>)> = Vec::new();
    for (index, (&a, &b)) in ours.cells.iter().zip(&theirs.cells).enumerate() {
        if ours.poison.get(index).copied().unwrap_or(false) {
            continue;
        }
        let (x, y) = (number(a, ours.dtype), number(b, ours.dtype));
        let apart = tolerance(ours.dtype, x);
        if matches!(apart, Some(Apart::Unknown)) {
            continue;
        }
        *compared += 1;
        if a == b || (x.is_nan() && y.is_nan()) {
            continue;
        }
        match apart {
            Some(Apart::Within(most)) if (x - y).abs() <= most => {}
            Some(Apart::Within(most)) => wrong.push((index, Some(most))),
            _ => wrong.push((index, None)),
        }
    }
    let &(first, most) = wrong.first()?;
    let mut place = Vec::new();
    let per = if ours.dtype == Dtype::C128 { 2 } else { 1 };
    let mut left = (first / per) as i64;
    for &size in ours.shape.iter().rev() {
        place.push(left % size.max(1));
        left /= size.max(1);
    }
    place.reverse();
    let show = |tensor: &TensorValue| match Domain::number(
        &Concrete::default(),
        tensor.cells[first],
        tensor.dtype,
    ) {
        Number::Float(x) => format!("{x:?} (bits {:x})", tensor.cells[first]),
        other => format!("{other:?}"),
    };
    let title = format!("{what} is not what the interpreter says, in {} of its elements", wrong.len());
    let mut facts = vec![format!("element {place:?} is {} when executed", show(theirs))];
    facts.push(match most {
        Some(most) => format!("the interpreter says {}, and the two may lie {most:e} apart", show(ours)),
        None => format!("the interpreter says {}, and there is one right result", show(ours)),
    });
    Some((title, facts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::semantics::Dims;

    fn tensor(dtype: Dtype, cells: &[u64]) -> TensorValue {
        let shape = Dims::new(&[cells.len() as i64]).unwrap();
        TensorValue { dtype, shape, cells: cells.to_vec(), poison: Vec::new(), alias_of: None }
    }

    fn floats(values: &[f32]) -> TensorValue {
        tensor(Dtype::F32, &values.iter().map(|x| u64::from(x.to_bits())).collect::<Vec<_>>())
    }

    #[test]
    fn elements_are_equal_bit_for_bit_or_within_a_distance() {
        let exact: Tolerance = &|_, _| None;
        let near: Tolerance = &|_, _| Some(Apart::Within(0.5));
        let unknown: Tolerance = &|_, _| Some(Apart::Unknown);
        let differs = |a: &TensorValue, b: &TensorValue, how| differ("x", a, b, how, &mut 0).is_some();
        let (a, b, c) = (floats(&[1.0, 2.0]), floats(&[1.0, 2.25]), floats(&[1.0, 3.0]));
        assert!(!differs(&a, &a, exact) && differs(&a, &b, exact));
        assert!(!differs(&a, &b, near) && differs(&a, &c, near) && !differs(&a, &c, unknown));
        // Zero has a sign; NaN has no bits that count.
        assert!(differs(&floats(&[0.0]), &floats(&[-0.0]), exact));
        let nans = [f32::NAN, -f32::NAN].map(|x| floats(&[x]));
        assert!(!differs(&nans[0], &nans[1], exact));
        assert!(differs(&a, &tensor(Dtype::I32, &[1, 2]), exact));
        let poisoned = TensorValue { poison: vec![false, true], ..a };
        assert!(!differs(&poisoned, &b, exact));
    }
}
