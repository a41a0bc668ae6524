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
use crate::analysis::sharing::{Copies, Shared, shared_by};
use crate::analysis::storages::{Part, Sharing, Storages};
use crate::graph::{Dim, Graph, NodeId, Op, TensorId, Value};
use rustc_hash::FxHashMap;
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

/// The outputs of a graph, and the parts of storages that its ends show.
#[derive(Default)]
struct Ends {
    outputs: Vec<Output>,
    parts: BTreeMap<End, Vec<Part>>,
}

/// Ends that show the same before, and the same after: two of them stand for all, whatever they are compared with.
struct Alike<'a> {
    ends: Vec<&'a End>,
    before: &'a [Part],
    after: &'a [Part],
}

impl Alike<'_> {
    fn is_output(&self) -> bool {
        matches!(self.ends[..], [End::Output(_), ..])
    }
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
    let (old, new) = (ends(before), ends(after));
    if !old.outputs.iter().map(|o| o.position).eq(new.outputs.iter().map(|o| o.position)) {
        return Checked::NotChecked("other outputs are tensors than before".into());
    }
    let is_first = |end: &End| match end {
        End::Output(index) => first.map(|first| new.outputs[*index].position < first),
        End::Input(_) => None,
    };
    let alike = alike(&old, &new, &is_first);
    let (Some(was), Some(is)) = (shared(&alike, |a| a.before), shared(&alike, |a| a.after)) else {
        return Checked::undecided(Code::ManyOutputsShare, "too many outputs share bytes of one storage");
    };
    let copies = Copies::of(before.0, before.1);
    let (mut findings, mut doubt) = (Vec::new(), None);
    let of = |shared: &Shared, pair| shared.get(pair).copied().unwrap_or(Sharing::No);
    let pairs: BTreeSet<&(usize, usize)> = was.keys().chain(is.keys()).collect();
    for pair in pairs {
        let (one, other) = (&alike[pair.0], &alike[pair.1]);
        let ends = (one.ends[0], other.ends[usize::from(pair.0 == pair.1)]);
        let (a, b) = (ends.0.words(&new.outputs), ends.1.words(&new.outputs));
        let in_one_graph = !one.is_output() || is_first(ends.0) == is_first(ends.1);
        let is_copied = || !one.is_output() && copies.lead(one.before, other.before);
        let (expected, observed) = match (of(&was, pair), of(&is, pair)) {
            (Sharing::No, Sharing::Must | Sharing::May) if leave.written && is_copied() => continue,
            (Sharing::No, Sharing::Must) if is_copied() => {
                let why = format!(
                    "{b} is a view of {a} now, into which its value was copied: right if the caller takes it for one; \
                     --allow aliases=written says so"
                );
                doubt.get_or_insert(Code::ViewOfWritten.because(why));
                continue;
            }
            (Sharing::No, Sharing::Must) => ("lie apart", "share memory"),
            (was, _) if was != Sharing::No && !in_one_graph => continue,
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
        let nodes = [ends.1, ends.0].into_iter().filter_map(node).collect();
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

fn ends((graph, storages): (&Graph, &Storages)) -> Ends {
    let mut ends = Ends::default();
    for id in graph.ids() {
        let name = match graph.node(id).op {
            Op::Placeholder => graph.name(id),
            Op::GetAttr => graph.target(id),
            _ => continue,
        };
        ends.parts.entry(End::Input(name.to_string())).or_default().extend(storages.all_parts(id));
    }
    for (position, value) in super::partition::returned(graph).into_iter().enumerate() {
        let Value::Node(id) = value else { continue };
        if id.index() >= graph.len() {
            continue;
        }
        for place in 0..storages.places(id) {
            ends.parts.insert(End::Output(ends.outputs.len()), storages.parts(id, place).to_vec());
            ends.outputs.push(Output { position, node: id, tensor: storages.tensor(id, place) });
        }
    }
    ends
}

/// All ends, those together that show the same on both sides and that `is_first` says the same of, in order.
fn alike<'a>(old: &'a Ends, new: &'a Ends, is_first: &dyn Fn(&End) -> Option<bool>) -> Vec<Alike<'a>> {
    let mut known = FxHashMap::default();
    let mut alike: Vec<Alike> = Vec::new();
    let ends: BTreeSet<&End> = old.parts.keys().chain(new.parts.keys()).collect();
    for end in ends {
        let [before, after] = [old, new].map(|side| side.parts.get(end).map_or(&[][..], Vec::as_slice));
        let is_output = matches!(end, End::Output(_));
        let index = *known.entry((is_output, is_first(end), before, after)).or_insert(alike.len());
        match alike.get_mut(index) {
            Some(class) => class.ends.push(end),
            None => alike.push(Alike { ends: vec![end], before, after }),
        }
    }
    alike
}

/// What outputs share with inputs and with each other; `None` where there are too many pairs.
fn shared<'a>(alike: &[Alike<'a>], parts: impl Fn(&Alike<'a>) -> &'a [Part]) -> Option<Shared> {
    // Two of a class, so that they meet each other.
    let two = |(index, class): (usize, &Alike<'a>)| {
        let ends = class.ends.len().min(2);
        parts(class).iter().flat_map(move |&part| std::iter::repeat_n((index, part), ends))
    };
    let shown: Vec<(usize, Part)> = alike.iter().enumerate().flat_map(two).collect();
    let mut shared = shared_by(&shown, MOST_PAIRS)?;
    shared.retain(|&(a, b), _| alike[b].is_output() && (a != b || alike[a].ends.len() > 1));
    Some(shared)
}
