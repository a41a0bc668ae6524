//! Small edits of a right outcome: some change what it means, some do not. The sweep judges all of them.
//!
//! # The idea
//!
//! An oracle that convicts planted bugs of its own may still sleep through others. So each small change that can be
//! made to a real outcome is made, one at a time, and judged. The outcome is taken to be right. Then an edit is *wrong
//! by construction* if what it changes reaches an output, a write to an input, or communication; and it *keeps the
//! meaning* if it only uses a law that holds exactly. The catalogue ([`catalogue`]) has a row for each kind of edit;
//! [`Reading`] holds the structural facts that a row may use to know where its edit is certain. Where they do not
//! suffice, the place is left out and counted. The judge is never asked: the sweep measures it.
//!
//! # What it does not do
//!
//! Two edits at once, and bugs that need a whole algorithm to go wrong: those are the mutants' ([`crate::candidates`]).
//! What is known of values is which inputs they depend on: two values that depend on the same inputs may be equal, and
//! are not exchanged.

mod arithmetic;
mod boundary;
mod communication;
mod insert;
mod kept;
mod loosening;
mod mathematics;
mod memory;
mod operands;
mod packing;
mod reading;
mod records;
mod sources;
mod streams;
mod sweep;
mod table;

pub use loosening::{Loosening, loosening};
pub use reading::{Part, Reading};
pub use sweep::{Edited, Given, Limits, Ranks, Sweep, sweep};
pub use table::{json, lines, text};

use crate::analysis::streams::are_several;
use crate::graph::{Editor, Graph, NodeId};
use crate::rules::PassKind;
use mathematics::MathEdit;

/// How a graph is changed.
pub type Change = Box<dyn Fn(&Graph) -> Graph + Send + Sync>;

/// One place where an edit can be made.
pub struct Place {
    /// The node that is changed.
    pub node: NodeId,
    /// What is changed, in words that allow it to be made by hand.
    pub what: String,
    /// The change. It may be made to the graph of any rank whose nodes are the same.
    pub change: Change,
}

/// The places of one edit in one graph.
#[derive(Default)]
pub struct Places {
    /// Where it is certain.
    pub found: Vec<Place>,
    /// How many were left out, since their construction does not show what the edit does.
    pub left_out: usize,
}

impl Places {
    /// Adds a place where `change` is made to an editor of the graph.
    fn add(
        &mut self,
        node: NodeId,
        what: impl Into<String>,
        change: impl Fn(&mut Editor) + Send + Sync + 'static,
    ) {
        let change = move |graph: &Graph| {
            let mut editor = Editor::new(graph);
            change(&mut editor);
            editor.finish()
        };
        self.found.push(Place { node, what: what.into(), change: Box::new(change) });
    }
}

/// How the places of an edit are found.
#[derive(Clone, Copy)]
enum Find {
    /// By a look at the whole graph.
    Graph(fn(&Reading) -> Places),
    /// By a look at each call.
    Call(&'static MathEdit),
}

/// A kind of edit.
pub struct Edit {
    /// Its name.
    pub name: &'static str,
    /// What it changes, in one line.
    pub about: &'static str,
    /// Whether the outcome is still right afterwards.
    pub keeps: bool,
    /// The passes whose outcomes it is made to.
    pub passes: &'static [PassKind],
    /// Where it can be made.
    places: Find,
}

impl Edit {
    /// Where it can be made in a graph. What keeps the meaning on one stream need not on several, except for what
    /// concerns streams alone.
    pub fn places(&self, reading: &Reading) -> Places {
        let is_of_streams = self.name.starts_with("stream-");
        match self.keeps && !is_of_streams && are_several(reading.graph, &reading.ops) {
            true => Places { found: Vec::new(), left_out: 1 },
            false => match self.places {
                Find::Graph(places) => places(reading),
                Find::Call(edit) => edit.places(reading),
            },
        }
    }
}

const ALL: &[PassKind] =
    &[PassKind::Rewrite, PassKind::Bucketing, PassKind::Repair, PassKind::Partition, PassKind::Schedule];
/// Passes that promise more than values: each effect once, each collective once, and the order of conflicts.
const PROMISING: &[PassKind] =
    &[PassKind::Bucketing, PassKind::Repair, PassKind::Partition, PassKind::Schedule];
/// Passes that may put other nodes in the place of those that they are given.
const REWRITING: &[PassKind] = &[PassKind::Rewrite, PassKind::Bucketing, PassKind::Partition];
const REWRITE: &[PassKind] = &[PassKind::Rewrite];
const BUCKETING: &[PassKind] = &[PassKind::Bucketing];
const PARTITION: &[PassKind] = &[PassKind::Partition];
/// Passes that may order as they like.
const ORDERING: &[PassKind] =
    &[PassKind::Rewrite, PassKind::Bucketing, PassKind::Partition, PassKind::Schedule];

/// Passes whose graphs may run on several streams.
const STREAMS: &[PassKind] = &[PassKind::Rewrite, PassKind::Bucketing];

/// All edits: first those that change the meaning, then those that keep it.
pub fn catalogue() -> Vec<Edit> {
    let of_mathematics = mathematics::EDITS.iter().map(|edit| Edit {
        name: edit.name,
        about: edit.about,
        keeps: false,
        passes: REWRITE,
        places: Find::Call(edit),
    });
    let (wrong, right): (Vec<Edit>, Vec<Edit>) = structural().into_iter().partition(|edit| !edit.keeps);
    wrong.into_iter().chain(of_mathematics).chain(right).collect()
}

/// The edits of operands, memory, communication and records, for which generated graphs have places.
pub fn structural() -> Vec<Edit> {
    type Places = fn(&Reading) -> self::Places;
    let edit =
        |name, about, keeps, passes, places| Edit { name, about, keeps, passes, places: Find::Graph(places) };
    let wrong = |name, about, passes, places: Places| edit(name, about, false, passes, places);
    let right = |name, about, passes, places: Places| edit(name, about, true, passes, places);
    vec![
        wrong("operand", "a call takes another value of the same record", ALL, operands::other),
        wrong("operands-exchanged", "the operands of sub, div, ... trade places", ALL, operands::exchanged),
        wrong(
            "untransposed",
            "a reader takes a square matrix before it is transposed",
            ALL,
            operands::untransposed,
        ),
        wrong("piece", "an item of a split is another one of the same record", ALL, operands::piece),
        wrong("window", "a slice or select is off by one", ALL, operands::window),
        wrong("constant", "a number of add, mul, ... is another one", ALL, arithmetic::constant),
        wrong("rounded", "an operand is rounded to bfloat16 on its way", ALL, arithmetic::rounded),
        wrong("drawn-again", "a reader of a random draw takes a second draw", ALL, arithmetic::drawn_again),
        wrong("outputs-exchanged", "two outputs trade places", ALL, boundary::outputs),
        wrong("inputs-exchanged", "two inputs trade places", ALL, boundary::inputs),
        wrong("output-is-input", "an output that was a copy is the input itself", ALL, boundary::aliased),
        wrong(
            "saved-exchanged",
            "two saved values trade places in forward's outputs",
            PARTITION,
            boundary::saved,
        ),
        wrong(
            "wait-dropped",
            "the readers of a wait take the launch's value, and the wait is gone",
            ALL,
            communication::wait_dropped,
        ),
        wrong(
            "wait-bypassed",
            "one reader of a wait takes the launch's value",
            ALL,
            communication::wait_bypassed,
        ),
        wrong("group", "a collective runs on another process group", ALL, communication::group),
        wrong("reduction", "a collective reduces by another operation", ALL, communication::reduction),
        wrong("launched-twice", "a collective is launched a second time", PROMISING, communication::twice),
        wrong(
            "launch-order",
            "one rank alone makes two launches of a group in the other order",
            ALL,
            communication::out_of_step,
        ),
        wrong("members-exchanged", "two members of a packed buffer trade places", ALL, packing::exchanged),
        wrong(
            "member-transposed",
            "a member of a packed buffer is flattened by columns",
            BUCKETING,
            packing::transposed,
        ),
        wrong(
            "not-interleaved",
            "members of a merged reduce-scatter stand one after another",
            BUCKETING,
            packing::in_sequence,
        ),
        wrong(
            "next-rank",
            "each rank's chunk of a packed buffer is the next rank's",
            BUCKETING,
            packing::next_rank,
        ),
        wrong("other-slot", "a gather in place has another rank's slot", BUCKETING, packing::other_slot),
        wrong(
            "conflict-exchanged",
            "of two accesses of the same bytes the later one runs first",
            PROMISING,
            memory::exchanged,
        ),
        wrong(
            "launched-early",
            "a collective sends memory before what it is to send is written there",
            ALL,
            memory::early,
        ),
        wrong("write-dropped", "a write to an input is gone", ALL, memory::dropped),
        wrong("write-doubled", "a write to an input is made twice", PROMISING, memory::doubled),
        wrong(
            "ordering-dropped",
            "an ordering edge is gone that nothing else implies",
            PROMISING,
            memory::ordering,
        ),
        wrong("stream-unordered", "a call that orders streams is gone", STREAMS, streams::unordered),
        wrong("stream-other", "a call runs on another stream", STREAMS, streams::restreamed),
        wrong("stream-event-early", "an event is recorded one call earlier", STREAMS, streams::early),
        wrong("record-shape", "the record of a result has another size", ALL, records::shape),
        wrong("record-stride", "the record of a result has other strides", ALL, records::stride),
        wrong("record-dtype", "the record of a result has another dtype", ALL, records::dtype),
        wrong(
            "record-storage",
            "the record of a new tensor names another tensor's storage",
            ALL,
            records::storage,
        ),
        wrong("record-offset", "the record of a view has another offset", ALL, records::offset),
        right("stream-waits", "a stream waits once more for another", STREAMS, streams::waits),
        right("stream-by-event", "a wait for a stream is one for an event", STREAMS, streams::by_event),
        right("renamed", "calls have other names", REWRITING, kept::renamed),
        right("names-permuted", "calls have one another's names", REWRITING, kept::permuted),
        right("inputs-renamed", "inputs have other names", REWRITING, kept::inputs_renamed),
        right(
            "reordered",
            "another legal order; launches and waits stay in theirs",
            ORDERING,
            kept::reordered,
        ),
        right(
            "neighbours",
            "two neighbours that do not depend on one another trade places",
            ORDERING,
            kept::neighbours,
        ),
        right("cloned", "a reader takes a clone", REWRITING, kept::cloned),
        right("exact-cast", "a reader takes a value cast to a wider dtype and back", REWRITING, kept::cast),
        right("dead-call", "a call that nobody reads is added", REWRITING, kept::dead),
        right("commuted", "the operands of add or mul trade places", REWRITING, kept::commuted),
        right("times-one", "a reader takes a value times 1", REWRITING, kept::times_one),
        right(
            "computed-twice",
            "a reader takes a second call with the same arguments",
            REWRITING,
            kept::twice,
        ),
        right("calls-merged", "two equal calls are one", REWRITING, kept::merged),
        right(
            "padded",
            "a bucket has some elements more, which are cut off again",
            BUCKETING,
            packing::padded,
        ),
    ]
}
