//! The communication of each process group, in list order: what ranks must agree on.
//!
//! Ranks of a group meet launch by launch. So the launches of one group, in order, must be the same on all its
//! ranks: kind, reduction, dtype, sizes in and out, and the root of a broadcast. The peer of a send or receive is
//! another on every rank and is not compared. Nor are the sizes of an all-to-all: what rank `a` sends to `b` must be
//! what `b` expects from `a` ([`unequal_parts`]). A barrier has no size.
//!
//! A [`Sequences`] owns its data, so that graphs can be compared after one of them is gone.

use super::collectives::{CollectiveCall, Collectives, GroupName};
use crate::graph::{Dtype, Graph, NodeId, Out, Tensor, TensorId};
use crate::ops::Collective;
use rustc_hash::FxHashMap;
use std::fmt;

/// What one launch looks like from outside the rank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launch {
    /// The node that starts it.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// What it does.
    pub kind: Collective,
    /// `sum`, `avg`, ... for reductions.
    pub reduce_op: Option<String>,
    /// Element type of the first tensor sent.
    pub dtype: Option<Dtype>,
    /// Elements sent, of all tensors together; symbolic sizes by their hints.
    pub numel_in: Option<i64>,
    /// Elements of the result.
    pub numel_out: Option<i64>,
    /// Source of a broadcast.
    pub root: Option<i64>,
    /// Of an all-to-all the elements that go to each member of the group, and those that are expected from each.
    pub splits: Option<[Vec<i64>; 2]>,
    /// The shapes of what is sent and of the results, by hints; `None` where one is not known.
    pub shapes: Option<[Vec<Vec<i64>>; 2]>,
}

/// The launches on one group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sequence {
    /// The group: its name, or the name of the node whose value it is.
    pub group: String,
    /// Its launches, in list order.
    pub launches: Vec<Launch>,
}

/// The launches of one graph, by group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sequences {
    /// In order of first use.
    pub groups: Vec<Sequence>,
}

impl Sequences {
    /// Collects the launches of `graph`.
    pub fn new(graph: &Graph, collectives: &Collectives) -> Sequences {
        let mut sequences = Sequences::default();
        let mut known: FxHashMap<String, usize> = FxHashMap::default();
        for call in &collectives.calls {
            let group = match call.group {
                GroupName::Text(name) => name.to_string(),
                GroupName::Node(node) => format!("value of {}", graph.name(node)),
                GroupName::Unknown => "?".to_string(),
            };
            let launch = Launch::new(graph, call);
            match known.get(&group) {
                Some(&at) => sequences.groups[at].launches.push(launch),
                None => {
                    known.insert(group.clone(), sequences.groups.len());
                    sequences.groups.push(Sequence { group, launches: vec![launch] });
                }
            }
        }
        sequences
    }

    /// The launches on `group`; none where it is not used.
    pub fn of(&self, group: &str) -> &[Launch] {
        self.groups.iter().find(|sequence| sequence.group == group).map_or(&[], |s| &s.launches)
    }

    /// The first difference on each group that the two do not use alike, in the order of this one's groups, then
    /// of the other's.
    pub fn differences<'a>(&'a self, other: &'a Sequences) -> Vec<Difference> {
        let own = by_group(self);
        let others = by_group(other);
        let of = |all: &FxHashMap<&str, &'a [Launch]>, group: &str| -> &'a [Launch] {
            all.get(group).copied().unwrap_or(&[])
        };
        let only_other = other.groups.iter().filter(|sequence| !own.contains_key(sequence.group.as_str()));
        let groups = self.groups.iter().chain(only_other).map(|sequence| sequence.group.as_str());
        groups.filter_map(|group| first_difference(group, of(&own, group), of(&others, group))).collect()
    }
}

/// The launches of each group, by its name.
fn by_group(sequences: &Sequences) -> FxHashMap<&str, &[Launch]> {
    sequences.groups.iter().map(|s| (s.group.as_str(), s.launches.as_slice())).collect()
}

impl Launch {
    fn new(graph: &Graph, call: &CollectiveCall) -> Launch {
        let inputs = || call.inputs.iter().filter_map(|&input| graph.tensor_of(input));
        let sum =
            |tensors: Vec<Option<i64>>| tensors.into_iter().try_fold(0i64, |sum, n| sum.checked_add(n?));
        let known = inputs().count() == call.inputs.len();
        let mut results = Vec::new();
        tensors(graph, graph.node(call.node).out, &mut results);
        Launch {
            node: call.node,
            name: graph.name(call.node).to_string(),
            kind: call.kind,
            reduce_op: call.reduce_op.map(str::to_string),
            dtype: inputs().next().map(|t| t.dtype),
            numel_in: known.then(|| sum(inputs().map(|t| graph.numel(t)).collect())).flatten(),
            numel_out: sum(results.iter().map(|&t| graph.numel(graph.tensor(t))).collect())
                .filter(|_| !results.is_empty()),
            root: call.peer.filter(|_| call.kind == Collective::Broadcast),
            splits: splits(graph, call),
            shapes: shapes_of(graph, inputs())
                .filter(|_| known)
                .zip(shapes_of(graph, results.iter().map(|&t| graph.tensor(t))))
                .map(<[_; 2]>::from),
        }
    }

    /// Whether two ranks that launch these two meet, as far as their places in the group do not matter.
    pub fn meets(&self, other: &Launch) -> bool {
        let sizes = |l: &Launch| match l.kind {
            Collective::AllToAll => (l.dtype, None, None),
            Collective::Barrier => (None, None, None),
            _ => (l.dtype, l.numel_in, l.numel_out),
        };
        (self.kind, &self.reduce_op, self.root) == (other.kind, &other.reduce_op, other.root)
            && sizes(self) == sizes(other)
    }
}

/// The shapes of tensors, by hints.
fn shapes_of<'g>(graph: &Graph, tensors: impl Iterator<Item = &'g Tensor>) -> Option<Vec<Vec<i64>>> {
    tensors.map(|tensor| graph.dims(tensor.shape).iter().map(|&dim| graph.hint(dim)).collect()).collect()
}

/// The elements that an all-to-all sends to each member of its group, and those that it expects from each.
fn splits(graph: &Graph, call: &CollectiveCall) -> Option<[Vec<i64>; 2]> {
    let [sent, expected] = call.splits.as_ref()?;
    let tensor = graph.tensor_of(*call.inputs.first()?)?;
    let row = graph.dims(tensor.shape).get(1..)?.iter();
    let row = row.map(|dim| graph.hint(*dim)).try_fold(1i64, |n, dim| n.checked_mul(dim?))?;
    let elements = |rows: &[i64]| rows.iter().map(|n| n.checked_mul(row)).collect::<Option<Vec<i64>>>();
    Some([elements(sent)?, elements(expected)?])
}

/// The first two members of a group between which an all-to-all does not fit: (from, to, elements sent, elements
/// expected). `splits` holds for each member what it sends to each and what it expects from each; members without
/// are not compared, nor are pairs that `compares` leaves out. A size that is missing is 0.
pub fn unequal_parts(
    splits: &[Option<&[Vec<i64>; 2]>],
    compares: impl Fn(usize, usize) -> bool,
) -> Option<(usize, usize, i64, i64)> {
    // Equal parts everywhere are the rule, and need no look at every pair.
    let mut all = splits.iter().flatten().flat_map(|both| both.iter());
    let part = all.clone().find_map(|parts| parts.first());
    if all.all(|parts| parts.len() == splits.len() && parts.iter().all(|n| Some(n) == part)) {
        return None;
    }
    let at = |parts: &[i64], member: usize| parts.get(member).copied().unwrap_or(0);
    let members = || splits.iter().enumerate().filter_map(|(i, both)| Some((i, (*both)?)));
    members().find_map(|(from, [sent, _])| {
        members().filter(|&(to, _)| compares(from, to)).find_map(|(to, [_, expected])| {
            let (sent, expected) = (at(sent, to), at(expected, from));
            (sent != expected).then_some((from, to, sent, expected))
        })
    })
}

impl fmt::Display for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind.name())?;
        if let Some(op) = &self.reduce_op {
            write!(f, " ({op})")?;
        }
        if let Some(root) = self.root {
            write!(f, " from rank {root}")?;
        }
        if let Some(dtype) = self.dtype {
            write!(f, " of {}", dtype.name())?;
        }
        let count = |n: Option<i64>| n.map_or("?".to_string(), |n| n.to_string());
        write!(f, ", {} to {} elements ({})", count(self.numel_in), count(self.numel_out), self.name)
    }
}

/// Where two sequences of one group part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The group.
    pub group: String,
    /// The number of the launch, from 0.
    pub index: usize,
    /// The launch of the first; `None` where it has no more.
    pub first: Option<Launch>,
    /// The launch of the second.
    pub second: Option<Launch>,
}

impl Difference {
    /// In words, with a name for each side.
    pub fn describe(&self, first: &str, second: &str) -> String {
        let describe = |launch: &Option<Launch>| match launch {
            Some(launch) => launch.to_string(),
            None => "none".to_string(),
        };
        format!(
            "group {}: launch {} of {first} is {}, of {second} {}",
            self.group,
            self.index,
            describe(&self.first),
            describe(&self.second)
        )
    }
}

/// The first place where two sequences of launches do not meet.
pub fn first_difference(group: &str, first: &[Launch], second: &[Launch]) -> Option<Difference> {
    let met = first.iter().zip(second).take_while(|(a, b)| a.meets(b)).count();
    if met == first.len() && met == second.len() {
        return None;
    }
    let group = group.to_string();
    Some(Difference { group, index: met, first: first.get(met).cloned(), second: second.get(met).cloned() })
}

/// Whether one list is a permutation of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permuted {
    /// It is not.
    Not,
    /// It is, in the same order.
    Same,
    /// It is, in another order.
    Order {
        /// The first place at which the two differ.
        at: usize,
        /// Where the second has what the first has there.
        elsewhere: usize,
    },
}

impl Permuted {
    /// Compares two lists. n log n.
    pub fn new<K: Ord>(first: &[K], second: &[K]) -> Permuted {
        fn sorted<K: Ord>(of: &[K]) -> Vec<&K> {
            let mut sorted: Vec<&K> = of.iter().collect();
            sorted.sort();
            sorted
        }
        match first.iter().zip(second).position(|(x, y)| x != y) {
            None if first.len() == second.len() => Permuted::Same,
            Some(at) if sorted(first) == sorted(second) => {
                let behind = second[at..].iter().position(|y| *y == first[at]);
                Permuted::Order { at, elsewhere: at + behind.unwrap_or(0) }
            }
            _ => Permuted::Not,
        }
    }
}

fn tensors(graph: &Graph, out: Out, into: &mut Vec<TensorId>) {
    match out {
        Out::Tensor(tensor) => into.push(tensor),
        Out::Tuple(span) | Out::Dict(span) => {
            graph.outs(span).iter().for_each(|&part| tensors(graph, part, into));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text;
    use crate::ops::Ops;

    fn sequences(body: &str) -> Sequences {
        let text =
            format!("world 4 ranks, groups dp = [0 1 2 3], tp = [0 1 | 2 3]\nx = input : f32[4]\n{body}");
        let case = text::parse(&text).unwrap_or_else(|e| panic!("{}", e.render(None)));
        let graph = &case.graph;
        Sequences::new(graph, &Collectives::new(graph, &Ops::of(graph)))
    }

    const FIRST: &str = "g0 = all_gather(x, dp)
r0 = all_reduce(x, 'sum', tp)
g1 = all_gather(x, dp)
output (g0, r0, g1)";

    #[test]
    fn what_is_sent_is_what_is_expected() {
        let of = |body: &str| sequences(&format!("{body}\noutput a")).of("tp")[0].clone();
        // Three rows of the first rank's four go to the second, which sends it one of its own.
        let first = of("a = all_to_all(x, [1, 1], [1, 3], tp) : f32[2]");
        let second = of("a = all_to_all(x, [3, 3], [1, 3], tp) : f32[6]");
        let wrong = of("a = all_to_all(x, [2, 3], [1, 3], tp) : f32[5]");
        assert_eq!(first.splits, Some([vec![1, 3], vec![1, 1]]));
        assert!(first.meets(&second) && first.meets(&wrong));
        let parts =
            |a: &Launch, b: &Launch| unequal_parts(&[a.splits.as_ref(), b.splits.as_ref()], |_, _| true);
        assert_eq!(parts(&first, &second), None);
        assert_eq!(parts(&first, &wrong), Some((0, 1, 3, 2)));
        assert_eq!(unequal_parts(&[first.splits.as_ref(), wrong.splits.as_ref()], |a, b| a == b), None);
        assert_eq!(unequal_parts(&[first.splits.as_ref(), None], |_, _| true), None);
        // Sizes that are not numbers are not known.
        assert_eq!(of("a = all_to_all(x, [sym(\"u0\"), 1], [1, 3], tp) : f32[2]").splits, None);
    }

    #[test]
    fn a_barrier_is_on_its_group_and_has_no_size() {
        let barriers = sequences(
            "y = relu(x)\nz = view(y, [2, 2])\na = c10d.barrier.default(x, \"dp\", [0]) : ?\n\
             b = c10d.barrier.default(z, \"dp\", [0]) : ?\noutput y",
        );
        let [a, b] = barriers.of("dp") else { panic!("{barriers:?}") };
        assert!(a.meets(b) && a.kind == Collective::Barrier);
    }

    #[test]
    fn groups_apart_each_in_list_order() {
        let found = sequences(FIRST);
        let names: Vec<(&str, Vec<&str>)> = found
            .groups
            .iter()
            .map(|s| (s.group.as_str(), s.launches.iter().map(|l| l.name.as_str()).collect()))
            .collect();
        assert_eq!(names, [("dp", vec!["g0", "g1"]), ("tp", vec!["r0"])]);
        assert_eq!(found.of("dp")[0].to_string(), "all_gather of float32, 4 to 16 elements (g0)");
        assert_eq!(found.differences(&found), []);
    }

    #[test]
    fn the_first_difference_of_each_group_is_told() {
        let second = "r0 = all_reduce(x, 'max', tp)
g1 = all_gather(x, dp)
output (r0, g1)";
        let described: Vec<String> = sequences(FIRST)
            .differences(&sequences(second))
            .iter()
            .map(|d| d.describe("rank 0", "rank 1"))
            .collect();
        assert_eq!(
            described,
            [
                "group dp: launch 1 of rank 0 is all_gather of float32, 4 to 16 elements (g1), of rank 1 none",
                "group tp: launch 0 of rank 0 is all_reduce (sum) of float32, 4 to 4 elements (r0), \
                 of rank 1 all_reduce (max) of float32, 4 to 4 elements (r0)",
            ]
        );
    }
}
