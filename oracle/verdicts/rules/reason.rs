//! Why a rule could not be decided, and why a candidate declined: a [`Reason`] has a [`Code`].
//!
//! # The idea
//!
//! A code is a stable word, one for each kind of reason, in one table (docs/report.md). Campaigns count by it, and
//! tools read it; the message beside it is for people. A code does not say which rule was open: the rule's status does.
//!
//! # What it does not do
//!
//! It knows no codes of others. A worker may give its refusals words of its own, which are shown behind
//! `refused/by-worker`; where it gives none, its message is all that tells one kind from another.

use super::worker::blanked;
use crate::graph::Graph;
use crate::semantics::{Failure, Open, OpenKind};
use std::fmt;

macro_rules! codes {
    ($($variant:ident $name:literal $statement:literal;)*) => {
        /// The kind of a reason.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Code {
            $(#[doc = $statement] $variant,)*
        }

        impl Code {
            /// All of them, in the order of the table.
            pub const ALL: &'static [Code] = &[$(Code::$variant),*];

            const fn row(self) -> (&'static str, &'static str) {
                match self {
                    $(Code::$variant => ($name, $statement),)*
                }
            }
        }
    };
}

// Name, statement.
codes! {
    NotCompared "values/not-compared"
        "No evaluator was asked to compare values.";
    TooManyRanks "values/too-many-ranks"
        "The world has more ranks than are executed.";
    TooLarge "values/too-large-to-execute"
        "All ranks together touch more elements than the limit on execution.";
    WorldNotKnown "values/world-not-known"
        "The file does not say what an execution has to know of the world.";
    NotExecuted "values/not-executed"
        "The interpreter does not execute a call.";
    DoesNotRun "values/does-not-run"
        "A graph does not run to its end, and that is no fault of the pass.";
    NotFollowed "values/not-followed"
        "The symbolic evaluator does not follow a value.";
    BodiesDiffer "values/bodies-differ"
        "Bodies of a higher-order operator differ, and are not known to do the same.";
    ViewByRecord "values/view-by-its-record"
        "A view without a rule was executed as it is recorded, whatever its arguments say.";
    DynamicSizes "values/dynamic-sizes"
        "Sizes are symbolic, and equality at a few sizes is no proof.";
    UnknownWrite "values/unknown-write"
        "An operator of which nothing is known may write what it takes.";
    UnknownEffects "values/unknown-effects"
        "One graph calls an operator of which nothing is known more often, or with its operands in another order.";
    UnwrittenMemory "values/unwritten-memory"
        "Results hold memory that nobody is known to have written.";
    TrialsNoProof "values/trials-are-no-proof"
        "Values are equal in all trials, and no law is known by which they are equal everywhere.";
    Rounding "values/rounding"
        "Values differ by roundings alone.";
    Approximate "values/approximate"
        "Values are near one another, as is allowed; that is never called sound.";
    DrawnOperators "values/drawn-operators"
        "Values differ behind operators without a kernel, whose results are drawn.";
    ConstantNotKnown "values/constant-not-known"
        "Only one of the graphs reads a constant, and the file does not say what it holds.";
    ComputedOtherwise "values/computed-otherwise"
        "A value is computed in another way, and whether it is the same is not known.";
    DrawInPlace "values/draw-in-place"
        "A random operator draws in place, so that the graphs cannot be compared with their draws as inputs.";
    DrawsReplaced "values/draws-replaced"
        "Some random operators are called less often and others more, which may draw in their place.";
    LeftBetween "values/left-between-the-parts"
        "What forward leaves in an input until backward writes over it is not known to be right.";
    RanksNotGiven "ranks/not-given"
        "The outcomes of some ranks were not given.";
    OneRankSeen "ranks/one-rank-seen"
        "From one rank it cannot be seen whether all ranks decide alike.";
    CycleBefore "graph/cycle-before"
        "The graph before has a cycle.";
    UncertainDependence "graph/uncertain-dependence"
        "A dependence rests on an unknown operator, or on bytes that may overlap.";
    StreamsNotKnown "graph/streams-not-known"
        "It is not known what events order on several streams, or calls raced before the pass already.";
    UnknownOperator "graph/unknown-operator"
        "Nothing is known of an operator that only one of the graphs calls.";
    OtherUnrepaired "graph/other-unrepaired"
        "The graph before the repair is not that of the result.";
    NotRecorded "graph/not-recorded"
        "Nothing is recorded of a value, and no rule tells it.";
    MayRaise "graph/may-raise"
        "Whether an operator takes what a new call gives it is not known.";
    SizeNotKnown "graph/size-not-known"
        "A size is not known, or is larger than can be counted.";
    MayShareMemory "memory/may-share"
        "Values may or may not share memory.";
    MayBeUnwritten "memory/may-be-unwritten"
        "A call may read memory that nobody has written.";
    ViewOfWritten "memory/view-of-written"
        "An output became a view of an input into which its value was copied.";
    ManyOutputsShare "memory/many-outputs-share"
        "Too many outputs lie in one storage to be looked at in pairs.";
    NoReplay "memory/no-replay"
        "The memory of an order cannot be recomputed.";
    PayloadNotKnown "communication/payload-not-known"
        "It is not known what a launch sends, or packs.";
    NotModelled "communication/not-modelled"
        "The simulator does not model a call.";
    GroupNotKnown "communication/group-not-known"
        "A collective is on another process group, and it is not known whether that has the same ranks.";
    SerialDeadlock "communication/serial-deadlock"
        "Ranks would wait for each other on devices that run one communication at a time.";
    DoesNotFinish "schedule/does-not-finish"
        "Exposed time is known of programs that finish only.";
    ReferenceRefuses "promise/reference-refuses"
        "What is promised is measured by the reference, which refuses.";
    SeveralKinds "promise/several-kinds"
        "Collectives of several kinds were merged one after another, so that their order is not known.";
    NoSecondRun "promise/no-second-run"
        "Two runs are to give the same graph, and the second one's is not given.";
    NoNetwork "partition/no-network"
        "The network that a minimum cut is measured by is not known, or has no finite cut.";
    AddedValueSaved "partition/added-value-saved"
        "Forward saves a tensor that the joint graph does not have, and the network does not weigh it.";
    NoBudgetRange "partition/no-budget-range"
        "A budget is stated, and what it is a share of is not known.";
    Decomposed "partition/decomposed"
        "A saved value's operator was decomposed between the two partitions.";
    NotComposed "partition/not-composed"
        "Forward and backward do not compose.";
    MayHaveNoCut "partition/may-have-no-cut"
        "The implementation raised, and whether the joint graph can be cut is not known.";
    NotComparable "execute/not-comparable"
        "The graph cannot be made comparable with real kernels.";
    ByWorker "refused/by-worker"
        "A worker declined, in words of its own.";
    ByCandidate "refused/by-candidate"
        "A candidate of somebody else declined, in words of its own.";
    Recorded "refused/recorded"
        "The case records a refusal.";
    Stopped "refused/stopped"
        "A stop was asked for while the candidate was at work.";
    NotImplemented "refused/not-implemented"
        "The candidate does not implement what is asked for.";
    NoOutcome "refused/no-outcome"
        "The candidate gave nothing.";
    Options "refused/options"
        "The candidate does not take the options of the pass.";
    NotTaken "refused/not-taken"
        "The candidate said in advance that it does not take such a graph.";
    Input "refused/input"
        "The graph is malformed, or its list is not in order.";
    Cycle "refused/cycle"
        "The graph has a cycle, or the pass would make one.";
    RankOutside "refused/rank-outside-group"
        "The rank is not in the process group.";
    Unsupported "refused/unsupported"
        "The pass does not do this kind of thing.";
    UnknownSize "refused/unknown-size"
        "A size decides, and is not known.";
    NoMergedBody "refused/no-merged-body"
        "No merged collective can be written for the members of a bucket.";
    NoSchedule "refused/no-schedule"
        "The clusters of the graph cannot be kept together.";
    Estimates "refused/estimates"
        "Estimates or budgets are no durations, sizes or shares.";
    NoTangents "refused/no-tangents"
        "The joint graph has no tangents.";
    ContradictoryTags "refused/contradictory-tags"
        "Tags exclude one another.";
    NeitherSavedNorRecomputed "refused/neither-saved-nor-recomputed"
        "A value that backward needs can be neither saved nor recomputed.";
    MisplacedOutput "refused/misplaced-output"
        "An output of one part can only be computed in the other.";
    NoPartition "refused/no-partition"
        "The implementation raised, and the joint graph cannot be cut.";
    NoPlace "refused/no-place"
        "The graph has no place for what the mutant does.";
    CannotExecute "refused/cannot-execute"
        "The interpreter does not execute the graph.";
    NoClaim "refused/no-claim"
        "The memory of the graph cannot be computed.";
}

impl Code {
    /// The word that stands for it in reports, stores and messages of workers.
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// What it says, in one line.
    pub const fn statement(self) -> &'static str {
        self.row().1
    }

    /// The code of this name.
    pub fn named(name: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.name() == name)
    }

    /// Whether candidates decline with it.
    pub fn is_refusal(self) -> bool {
        self.name().starts_with("refused/")
    }

    /// A reason of this kind.
    pub fn because(self, message: impl Into<String>) -> Reason {
        Reason { code: self, own_word: None, message: message.into() }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<OpenKind> for Code {
    fn from(kind: OpenKind) -> Code {
        match kind {
            OpenKind::SymbolicSize => Code::DynamicSizes,
            OpenKind::ViewByRecord => Code::ViewByRecord,
            OpenKind::UnknownWrite => Code::UnknownWrite,
            OpenKind::UnwrittenMemory => Code::UnwrittenMemory,
            OpenKind::Rounding => Code::Rounding,
            OpenKind::Drawn => Code::DrawnOperators,
        }
    }
}

/// Why an execution came to no end.
impl From<&Failure> for Code {
    fn from(failure: &Failure) -> Code {
        match failure {
            Failure::TooLarge { .. } => Code::TooLarge,
            Failure::World { .. } => Code::WorldNotKnown,
            Failure::Refused { .. } => Code::NotExecuted,
            Failure::Raises { .. } | Failure::Undefined { .. } | Failure::Apart(_) => Code::DoesNotRun,
        }
    }
}

/// Why a rule could not be decided, or a candidate declined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    /// Its kind.
    pub code: Code,
    /// The word of a worker that has codes of its own.
    pub own_word: Option<String>,
    /// The reason, for people.
    pub message: String,
}

impl Reason {
    /// What a worker declined with: a code of ours, a word of its own, or neither. What is no short word counts as
    /// neither.
    pub fn of_worker(word: Option<&str>, message: impl Into<String>) -> Reason {
        const MOST: usize = 64;
        if let Some(code) = word.and_then(Code::named).filter(|code| code.is_refusal()) {
            return code.because(message);
        }
        let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-/".contains(c);
        let own = word.filter(|word| (1..=MOST).contains(&word.len()) && word.chars().all(is_part));
        Reason { own_word: own.map(String::from), ..Code::ByWorker.because(message) }
    }

    /// Its code in full: with the word of a worker that has codes of its own.
    pub fn code(&self) -> String {
        match &self.own_word {
            Some(word) => format!("{}/{word}", self.code),
            None => self.code.to_string(),
        }
    }

    /// What campaigns count by: the code, and where all there is are words of others, these with the names of `graph`
    /// and with numbers blanked.
    pub fn kind(&self, graph: &Graph) -> String {
        match self.code {
            Code::ByWorker | Code::ByCandidate if self.own_word.is_none() => {
                format!("{}: {}", self.code, blanked(&self.message, graph))
            }
            _ => self.code(),
        }
    }

    /// The same behind some words.
    pub fn behind(self, words: impl fmt::Display) -> Reason {
        Reason { message: format!("{words}{}", self.message), ..self }
    }

    /// What several evaluators lack, as one reason. The last one is asked where those before it cannot tell, so the
    /// code is its.
    pub fn joined(all: &[Reason]) -> Reason {
        let messages: Vec<&str> = all.iter().map(|reason| reason.message.as_str()).collect();
        all.last().map_or(Code::NotCompared, |reason| reason.code).because(messages.join("; "))
    }
}

/// The message alone.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<Open> for Reason {
    fn from(open: Open) -> Reason {
        Code::from(open.kind).because(open.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_words_and_differ() {
        let mut names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        let is_word =
            |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        for name in &names {
            assert!(name.split('/').count() == 2 && name.split('/').all(is_word), "{name}");
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len());
        // A code is no rule.
        assert_eq!(names.into_iter().find(|name| super::super::statement(name).is_some()), None);
    }

    #[test]
    fn a_worker_has_our_codes_words_of_its_own_or_neither() {
        let graph = crate::format::text::parse(b"x = input : f32[4]\noutput (x)\n").unwrap().graph;
        let of = |word| Reason::of_worker(word, "x has 3 users");
        assert_eq!(of(Some("refused/no-tangents")).code, Code::NoTangents);
        assert_eq!(of(Some("out-of-memory")).kind(&graph), "refused/by-worker/out-of-memory");
        // Neither a code that no candidate declines with nor a sentence is a word.
        assert_eq!(of(Some("values/rounding")).code(), "refused/by-worker/values/rounding");
        for none in [None, Some(""), Some("Out of memory")] {
            assert_eq!(of(none).kind(&graph), "refused/by-worker: # has # users");
        }
    }

    #[test]
    fn of_several_evaluators_the_last_one_counts() {
        let [symbolic, concrete] = [Code::NotFollowed.because("a"), Code::TooLarge.because("b")];
        let joined = Reason::joined(&[symbolic, concrete]);
        assert_eq!((joined.code, joined.message.as_str()), (Code::TooLarge, "a; b"));
    }
}
