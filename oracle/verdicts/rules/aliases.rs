//! Which memory outputs share: with inputs, with one another, and with themselves.
//!
//! # The idea
//!
//! Who calls a graph may write to what it returns. Equal values are not enough then: two outputs that come back as one
//! tensor, an input that comes back as a result, or an output whose elements lie on one another are written through. So
//! for every output and every input or other output, it is compared whether the two share a byte before and after.
//! Views of one bucket show bytes of their own, and share nothing. The strides of outputs are compared for partitions,
//! as recorded: PyTorch's buckets hand on columns of a bucket, whose strides are others than those of a result of its
//! own.
//!
//! # What it does not do
//!
//! An output that was copied into an input holds what that input holds in the end. A graph without writes does not say
//! whether the caller takes such an output for a view of the input, as AOTAutograd does of outputs that were views of
//! it, so where it becomes one, that is not decided.
//!
//! Where it is not known on one side what is shared, it is not decided. Where it is known on neither side, both leave
//! it open alike: the operators that are not known are those of the graph before.

use super::{Checked, Code, Finding};
use crate::analysis::bytes::Overlap;
use crate::analysis::storages::{Part, Sharing, Storages};
use crate::graph::{Dim, Graph, NodeId, Op, TensorId, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The id of the rule.
pub(super) const ID: &str = "rewrite/aliases";

/// What the rule states, and why.
pub(super) const STATEMENT: (&str, &str) = (
    "Outputs share bytes with inputs and with one another, and elements of an output with one another, where they did \
     before and nowhere else; of a partition they have the strides that they had before.",
    "Who calls the graph may write to what it returns, and take views of it.",
);

/// Pairs on one storage that are compared at most.
const MOST_PAIRS: usize = 1 << 20;

/// An input, a constant or an output.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum End {
    Input(String),
    Output(usize),
}

impl End {
    fn words(&self, outputs: &[Output]) -> String {
        match self {
            End::Input(name) => format!("input {name}"),
            End::Output(index) => {
                outputs.get(*index).map_or(String::new(), |output| format!("output {}", output.position))
            }
        }
    }
}

/// A tensor that a graph returns.
struct Output {
    /// Its place among the values returned, those that are no tensors included.
    position: usize,
    node: NodeId,
    tensor: Option<TensorId>,
}

/// What the ends of one graph share.
#[derive(Default)]
struct Relation {
    outputs: Vec<Output>,
    shared: BTreeMap<(End, End), Sharing>,
    /// Inputs, and outputs all of which was copied into them.
    copied: BTreeSet<(End, End)>,
}

/// What outputs may share beyond what they did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Leave {
    /// Outputs that shared memory may be copies.
    pub lost: bool,
    /// An output that was copied into an input may be a view of that input.
    pub written: bool,
}

/// Outputs share what they shared before, and what `leave` leaves open. `after` is run as two graphs where `first` is
/// known: the outputs before that position are the first one's, and what both return need not be one tensor any more.
/// `new_finding` makes a finding of a title and the nodes of the graph after concerned.
pub(super) fn aliases_kept(
    before: (&Graph, &Storages),
    after: (&Graph, &Storages),
    first: Option<usize>,
    leave: Leave,
    new_finding: &dyn Fn(String, Vec<NodeId>) -> Finding,
) -> Checked {
    let (Some(old), Some(new)) = (relation(before), relation(after)) else {
        return Checked::undecided(Code::ManyOutputsShare, "too many outputs lie in one storage");
    };
    let positions = |relation: &Relation| relation.outputs.iter().map(|o| o.position).collect::<Vec<_>>();
    if positions(&old) != positions(&new) {
        return Checked::NotChecked("other outputs are tensors than before".into());
    }
    let is_first = |index: usize| first.is_some_and(|first| new.outputs[index].position < first);
    let in_one_graph = |pair: &(End, End)| match pair {
        (End::Output(a), End::Output(b)) => is_first(*a) == is_first(*b),
        _ => true,
    };
    let (mut findings, mut doubt) = (Vec::new(), None);
    let of = |relation: &Relation, pair| relation.shared.get(pair).copied().unwrap_or(Sharing::No);
    let pairs: BTreeSet<&(End, End)> = old.shared.keys().chain(new.shared.keys()).collect();
    for pair in pairs {
        let (a, b) = (pair.0.words(&new.outputs), pair.1.words(&new.outputs));
        let (expected, observed) = match (of(&old, pair), of(&new, pair)) {
            (Sharing::No, Sharing::Must | Sharing::May) if leave.written && old.copied.contains(pair) => {
                continue;
            }
            (Sharing::No, Sharing::Must) if old.copied.contains(pair) => {
                let why = format!(
                    "{b} is a view of {a} now, into which its value was copied: right if the caller takes it for one; \
                     --allow aliases=written says so"
                );
                doubt.get_or_insert(Code::ViewOfWritten.because(why));
                continue;
            }
            (Sharing::No, Sharing::Must) => ("lie apart", "share memory"),
            (was, _) if was != Sharing::No && !in_one_graph(pair) => continue,
            (_, Sharing::No) if leave.lost => continue,
            (Sharing::Must, Sharing::No) => ("share memory", "lie apart"),
            (was, is) if was == is => continue,
            _ => {
                let why = format!("{b} may share memory with {a}, on one side only");
                doubt.get_or_insert(Code::MayShareMemory.because(why));
                continue;
            }
        };
        let node = |end: &End| match end {
            End::Output(index) => Some(new.outputs[*index].node),
            End::Input(_) => None,
        };
        let nodes = [&pair.1, &pair.0].into_iter().filter_map(node).collect();
        let finding = new_finding(format!("{b} and {a} {observed}"), nodes);
        findings.push(
            finding.expected(format!("before, they {expected}")).observed(format!("after, they {observed}")),
        );
    }
    for (a, b) in old.outputs.iter().zip(&new.outputs) {
        let (was, is) = (repeats(before.0, a), repeats(after.0, b));
        if was != is && !(leave.lost && was) {
            let words = |repeats| match repeats {
                true => "elements of it share memory",
                false => "each element has memory of its own",
            };
            let finding = new_finding(format!("output {}: {}", b.position, words(is)), vec![b.node]);
            let (expected, observed) = (format!("before, {}", words(was)), format!("after, {}", words(is)));
            findings.push(finding.expected(expected).observed(observed));
        } else if first.is_some()
            && let Some((was, is)) = other_strides((before.0, a), (after.0, b))
        {
            if after.0.is_guessed(b.node) || before.0.is_guessed(a.node) {
                let name = after.0.name(b.node);
                let why = format!("the strides of {name} are not recorded; they may be those of before");
                doubt.get_or_insert(Code::NotRecorded.because(why));
                continue;
            }
            let finding =
                new_finding(format!("output {} has other strides than before", b.position), vec![b.node]);
            findings.push(
                finding.expected(format!("its strides are {was:?}")).observed(format!("they are {is:?}")),
            );
        }
    }
    Checked::found(findings, doubt)
}

/// Whether a tensor shows one element at several places: a stride of 0 along more than one element.
fn repeats(graph: &Graph, output: &Output) -> bool {
    let Some(tensor) = output.tensor.map(|id| graph.tensor(id)) else { return false };
    let (sizes, strides) = (graph.dims(tensor.shape), graph.dims(tensor.stride));
    let many = |size: &Dim| matches!(size, Dim::Static(size) if *size > 1);
    !sizes.contains(&Dim::Static(0))
        && sizes.iter().zip(strides).any(|(size, stride)| many(size) && *stride == Dim::Static(0))
}

/// The strides of two outputs of one shape, where they differ along more than one element.
fn other_strides(was: (&Graph, &Output), is: (&Graph, &Output)) -> Option<(Vec<i64>, Vec<i64>)> {
    let known = |(graph, output): (&Graph, &Output)| {
        let tensor = graph.tensor(output.tensor?);
        Some((graph.sizes(tensor.shape)?, graph.sizes(tensor.stride)?))
    };
    let ((sizes, strides), (new_sizes, new_strides)) = (known(was)?, known(is)?);
    let alike = sizes == new_sizes && strides.len() == new_strides.len() && !sizes.contains(&0);
    let differ = sizes.iter().zip(strides.iter().zip(&new_strides)).any(|(&size, (a, b))| size > 1 && a != b);
    (alike && differ).then_some((strides, new_strides))
}

/// What the inputs and outputs of a graph share; `None` where there are too many pairs.
fn relation((graph, storages): (&Graph, &Storages)) -> Option<Relation> {
    let mut relation = Relation::default();
    // By storage: who shows which bytes of it.
    let mut shown: BTreeMap<u32, Vec<(End, Part)>> = BTreeMap::new();
    for id in graph.ids() {
        let name = match graph.node(id).op {
            Op::Placeholder => graph.name(id),
            Op::GetAttr => graph.target(id),
            _ => continue,
        };
        for &part in storages.all_parts(id) {
            shown.entry(part.storage.0).or_default().push((End::Input(name.to_string()), part));
        }
    }
    for (position, value) in super::partition::returned(graph).into_iter().enumerate() {
        let Value::Node(id) = value else { continue };
        if id.index() >= graph.len() {
            continue;
        }
        for place in 0..storages.places(id) {
            let end = End::Output(relation.outputs.len());
            let tensor = storages.tensor(id, place);
            relation.outputs.push(Output { position, node: id, tensor });
            for &part in storages.parts(id, place) {
                shown.entry(part.storage.0).or_default().push((end.clone(), part));
            }
        }
    }
    let mut pairs = 0usize;
    for ends in shown.values() {
        for (i, (end, part)) in ends.iter().enumerate().filter(|(_, (end, _))| matches!(end, End::Output(_)))
        {
            pairs = pairs.saturating_add(i);
            if pairs > MOST_PAIRS {
                return None;
            }
            for (other, theirs) in ends[..i].iter().filter(|(other, _)| other != end) {
                let sharing = match part.bytes.overlap(theirs.bytes) {
                    Overlap::No => continue,
                    Overlap::Yes if part.certain && theirs.certain => Sharing::Must,
                    _ => Sharing::May,
                };
                let known = relation.shared.entry((other.clone(), end.clone())).or_insert(sharing);
                if sharing == Sharing::Must {
                    *known = sharing;
                }
            }
        }
    }
    for copy in graph.ids().filter(|&id| graph.target(id) == "aten.copy_.default") {
        let [into, from] = &graph.inputs(copy)[..] else { continue };
        let into: BTreeSet<u32> = storages.all_parts(*into).map(|part| part.storage.0).collect();
        let inputs = into.iter().filter_map(|storage| shown.get(storage)).flatten();
        let inputs: Vec<&End> =
            inputs.map(|(end, _)| end).filter(|end| matches!(end, End::Input(_))).collect();
        for from in storages.all_parts(*from) {
            for (output, part) in shown.get(&from.storage.0).into_iter().flatten() {
                if matches!(output, End::Output(_)) && from.bytes.covers(part.bytes) {
                    relation.copied.extend(inputs.iter().map(|&input| (input.clone(), output.clone())));
                }
            }
        }
    }
    Some(relation)
}
