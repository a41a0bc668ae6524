//! One launch of a rank, as it was recorded, and whether two ranks' may be one collective.
//!
//! The operations of a coalesced launch are recorded one by one, with one number, and a mark at the end; together they
//! are one launch. What it does not do: it knows nothing of other launches.

use crate::format::flight_recorder::{Entry, State, dtype, elements};
use crate::graph::Dtype;
use crate::ops::Collective;
use std::collections::BTreeSet;
use std::fmt;

/// One launch of a rank: an operation, or several that were coalesced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launched {
    /// The group: an index into [`Flights::groups`](super::Flights::groups).
    pub group: usize,
    /// Its number on the group, among the collectives or among the messages.
    pub number: i64,
    /// Whether it is between two ranks.
    pub is_message: bool,
    /// What it does, as recorded.
    pub operation: String,
    /// What it does, where that is known.
    pub kind: Option<Collective>,
    /// The element type of what goes in.
    pub dtype: Option<Dtype>,
    /// Elements that go in and come out; `None` where they are not known.
    pub elements: [Option<i64>; 2],
    /// Sizes of what goes in and comes out, for people.
    sizes: [String; 2],
    /// Element types, as recorded.
    types: [BTreeSet<String>; 2],
    /// Whether all tensors on either side have one size.
    is_even: bool,
    /// How many operations are recorded of it.
    operations: usize,
    /// Whether its first operations may be lost, with the beginning of the record.
    may_be_cut: bool,
    /// How far it came.
    pub state: State,
    /// Whether nobody looks after it any more.
    pub is_retired: bool,
}

/// What a launch is, by the recorder's name of it.
fn kind(operation: &str) -> Option<Collective> {
    Some(match operation.split(' ').next()? {
        "all_reduce" | "allreduce_coalesced" => Collective::AllReduce,
        "_all_gather_base"
        | "all_gather"
        | "all_gather_single"
        | "all_gather_into_tensor_coalesced"
        | "allgather_coalesced"
        | "ALLGATHER_coalesced" => Collective::AllGather,
        "_reduce_scatter_base"
        | "reduce_scatter"
        | "reduce_scatter_single"
        | "reduce_scatter_tensor_coalesced"
        | "REDUCE_SCATTER_coalesced" => Collective::ReduceScatter,
        "all_to_all" | "all_to_all_single" => Collective::AllToAll,
        "broadcast" | "_broadcast_oop" => Collective::Broadcast,
        "barrier" | "all_reduce_barrier" => Collective::Barrier,
        "send" => Collective::Send,
        "recv" => Collective::Recv,
        _ => return None,
    })
}

impl Launched {
    pub(super) fn of(entries: &[&Entry], group: usize, may_be_cut: bool) -> Option<Launched> {
        let first = entries.first()?;
        // The mark that ends a coalesced launch (`coalesced`, `ALLGATHER_coalesced`) says nothing of what it is.
        let is_mark = |entry: &Entry| {
            let has_sizes = !entry.inputs.is_empty() || !entry.outputs.is_empty();
            entry.operation == "coalesced"
                || (entries.len() > 1 && entry.operation.ends_with("_coalesced") && !has_sizes)
        };
        let real: Vec<&Entry> = entries.iter().copied().filter(|entry| !is_mark(entry)).collect();
        let shown = real.first().unwrap_or(first);
        let all = |sizes: fn(&Entry) -> &Vec<Vec<i64>>| -> Vec<Vec<i64>> {
            real.iter().flat_map(|entry| sizes(entry).iter().cloned()).collect()
        };
        let (inputs, outputs) = (all(|entry| &entry.inputs), all(|entry| &entry.outputs));
        let types = |names: fn(&Entry) -> &Vec<String>| -> BTreeSet<String> {
            real.iter().flat_map(|entry| names(entry).iter().cloned()).collect()
        };
        let is_even = |sizes: &[Vec<i64>]| {
            let mut elements = sizes.iter().map(|dims| elements(std::slice::from_ref(dims)));
            let first = elements.next();
            elements.all(|other| Some(other) == first)
        };
        let kinds: BTreeSet<Option<Collective>> = real.iter().map(|entry| kind(&entry.operation)).collect();
        let kind = match kinds.into_iter().collect::<Vec<_>>()[..] {
            [kind] => kind,
            // Sends and receives that were started together.
            _ if first.is_message => Some(Collective::PointToPoint),
            _ => None,
        };
        let number = if first.is_message { first.message } else { first.collective };
        Some(Launched {
            group,
            number,
            is_message: first.is_message,
            operation: match real.len() {
                0 | 1 => shown.operation.clone(),
                several => format!("{} and {} more", shown.operation, several - 1),
            },
            kind,
            dtype: shown.input_types.first().or(shown.output_types.first()).and_then(|name| dtype(name)),
            elements: [elements(&inputs), elements(&outputs)],
            is_even: is_even(&inputs) && is_even(&outputs),
            operations: real.len(),
            may_be_cut,
            sizes: [shape_words(&inputs), shape_words(&outputs)],
            types: [types(|entry| &entry.input_types), types(|entry| &entry.output_types)],
            // What belongs to one launch is as far as the mark that ends it.
            state: entries.iter().map(|entry| entry.state).max().unwrap_or(State::Scheduled),
            is_retired: entries.iter().any(|entry| entry.is_retired),
        })
    }

    /// Why this one and another rank's cannot be one collective; `None` where they may be.
    pub(super) fn differs(&self, other: &Launched) -> Option<String> {
        if self.may_be_cut || other.may_be_cut {
            return None;
        }
        let base = |launch: &Launched| launch.operation.split(' ').next().unwrap_or("").to_string();
        if self.kind != other.kind || (self.kind.is_none() && base(self) != base(other)) {
            return Some(format!("{} and {}", base(self), base(other)));
        }
        let has_sizes = matches!(
            self.kind,
            Some(
                Collective::AllReduce
                    | Collective::AllGather
                    | Collective::ReduceScatter
                    | Collective::Broadcast
            )
        );
        // Of a coalesced launch that is being made, some operations are recorded and others are not.
        if !has_sizes || self.operations != other.operations {
            return None;
        }
        for (side, what) in [(0, "goes in"), (1, "comes out")] {
            let (own, others) = (&self.types[side], &other.types[side]);
            if own != others && !own.is_empty() && !others.is_empty() {
                let words = |types: &BTreeSet<String>| types.iter().cloned().collect::<Vec<_>>().join(", ");
                return Some(format!("what {what} is {} and {}", words(own), words(others)));
            }
            // Lists of tensors may have a size for each rank.
            if self.is_even
                && other.is_even
                && let [Some(own), Some(others)] = [self.elements[side], other.elements[side]]
                && own != others
            {
                return Some(format!("{own} and {others} elements {what}"));
            }
        }
        None
    }
}

/// `[4, 8], [2]`, of many tensors the first.
fn shape_words(sizes: &[Vec<i64>]) -> String {
    let mut words: Vec<String> = sizes.iter().take(3).map(|dims| format!("{dims:?}")).collect();
    if sizes.len() > 3 {
        words.push(format!("{} more", sizes.len() - 3));
    }
    words.join(", ")
}

/// `_all_gather_base of Float, [4] to [16]`
impl fmt::Display for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.operation)?;
        if let Some(name) = self.types[0].first().or(self.types[1].first()) {
            write!(f, " of {name}")?;
        }
        match [self.sizes[0].as_str(), self.sizes[1].as_str()] {
            ["", ""] => Ok(()),
            ["", to] => write!(f, ", to {to}"),
            [from, ""] => write!(f, ", {from}"),
            [from, to] => write!(f, ", {from} to {to}"),
        }
    }
}
