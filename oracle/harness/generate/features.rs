//! What a case has in it: the vocabulary of the distribution gates and of campaign statistics.
//!
//! Features are found in the case itself, not believed of the generator: [`Features::of`] works on any graph with a
//! pass, generated or not.

use std::fmt;

macro_rules! features {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal,)*) => {
        /// Something that a case may have.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Feature { $($(#[doc = $doc])+ $variant),* }

        impl Feature {
            /// All of them.
            pub const ALL: &'static [Feature] = &[$(Feature::$variant),*];

            /// A stable name for reports.
            pub fn name(self) -> &'static str {
                match self { $(Feature::$variant => $name),* }
            }

            /// What it means, in a sentence.
            pub fn doc(self) -> &'static str {
                match self { $(Feature::$variant => concat!($($doc),+)),* }
            }
        }
    };
}

features! {
    /// Two eligible buckets or more: runs of at least two candidates of one key in wait order.
    SeveralBuckets "several-buckets",
    /// Four ranks or more.
    FourRanks "four-ranks",
    /// Collectives on two groups or more.
    SeveralGroups "several-groups",
    /// Two groups in use whose instances cut each other: some ranks in common, not all.
    OverlappingGroups "overlapping-groups",
    /// Two groups in use are the axes of a 2-D mesh.
    Mesh "mesh",
    /// A collective on a group of one rank.
    GroupOfOne "group-of-one",
    /// An all-gather that a pass may bucket.
    AllGather "all-gather",
    /// A reduce-scatter that a pass may bucket.
    ReduceScatter "reduce-scatter",
    /// An all-reduce that a pass may bucket.
    AllReduce "all-reduce",
    /// Two reductions or more (sum, avg, max, min, product).
    SeveralReductions "several-reductions",
    /// Collectives of two dtypes or more.
    SeveralDtypes "several-dtypes",
    /// In wait order: one kind, another kind, the first kind again.
    InterleavedKinds "interleaved-kinds",
    /// In wait order of one kind: a key, another key, the first key again.
    InterruptedRun "interrupted-run",
    /// A wait five nodes or more after its collective.
    LateWait "late-wait",
    /// Waits in another order than their collectives.
    WaitsOutOfOrder "waits-out-of-order",
    /// Two waits for one collective.
    SecondWait "second-wait",
    /// A wait for what a wait gave.
    WaitOfWait "wait-of-wait",
    /// What a wait gave is an output.
    WaitIsOutput "wait-is-output",
    /// What a wait gave has three users or more.
    ManyUsers "many-users",
    /// A node takes what a wait gave twice.
    UsedTwice "used-twice",
    /// A collective depends on another's wait through computation.
    Dependent "dependent",
    /// A collective takes another's wait as it is.
    DirectlyDependent "directly-dependent",
    /// A collective depends on another through a list argument.
    ThroughList "through-list",
    /// A collective depends on another through a keyword argument.
    ThroughKeyword "through-keyword",
    /// A collective depends on another through a view.
    ThroughView "through-view",
    /// A collective depends on another through memory only: no path of edges.
    ThroughMemory "through-memory",
    /// A collective depends on another through an ordering edge.
    ThroughOrdering "through-ordering",
    /// A collective depends on one of another kind.
    AcrossKinds "across-kinds",
    /// A collective depends on one on another group.
    AcrossGroups "across-groups",
    /// The input of a collective is computed.
    ComputedInput "computed-input",
    /// In a run, a user of an early wait stands before the node that makes a late member's input.
    UserBeforeLateInput "user-before-late-input",
    /// Two collectives take one value.
    SharedInput "shared-input",
    /// A gather of a cast that has no other user.
    FoldedCast "folded-cast",
    /// A gather of a cast that has other users.
    CastWithOtherUsers "cast-with-other-users",
    /// A gather of a cast of a cast.
    ChainedCasts "chained-casts",
    /// A gather of a cast from or to integers or bools.
    IntegerCast "integer-cast",
    /// A run of one candidate.
    RunOfOne "run-of-one",
    /// Members of one run differ in size.
    UnevenSizes "uneven-sizes",
    /// A collective of no elements: its first size is 0.
    NoRows "no-rows",
    /// A collective of no elements: an inner size is 0.
    NoInnerElements "no-inner-elements",
    /// A collective of a tensor without dimensions.
    NoDimensions "no-dimensions",
    /// The input of a collective is permuted.
    PermutedInput "permuted-input",
    /// The input of a collective is expanded.
    ExpandedInput "expanded-input",
    /// The input of a collective is a part of something larger, with gaps between its elements.
    GappedInput "gapped-input",
    /// A reduce-scatter of one row per rank.
    OneRowPerRank "one-row-per-rank",
    /// A gather into a buffer given as `out=`.
    OutBuffer "out-buffer",
    /// Another alias of such a buffer is read after the gather.
    OutBufferRead "out-buffer-read",
    /// Three values or more on one storage.
    Aliases "aliases",
    /// An in-place operator.
    InPlace "in-place",
    /// A write to several tensors at once.
    ForeachWrite "foreach-write",
    /// A graph input is written.
    InputWritten "input-written",
    /// A random operator.
    Random "random",
    /// An assertion.
    Assertion "assertion",
    /// A node that computes something nobody uses.
    DeadNode "dead-node",
    /// A collective whose result nobody uses.
    DeadCollective "dead-collective",
    /// An operator with several results, not all of them used.
    UnusedResults "unused-results",
    /// A view is an output.
    ViewIsOutput "view-is-output",
    /// A value is an output twice.
    RepeatedOutput "repeated-output",
    /// The same sequence of four operators or more twice in a row, with a collective in it.
    IdenticalLayers "identical-layers",
    /// A gathered weight in a matrix product, and a matrix product scattered.
    ShardedLayers "sharded-layers",
    /// An all-to-all.
    AllToAll "all-to-all",
    /// A broadcast.
    Broadcast "broadcast",
    /// A coalesced collective.
    Coalesced "coalesced",
    /// An in-place collective.
    InPlaceCollective "in-place-collective",
    /// A barrier.
    Barrier "barrier",
    /// A reduce-scatter of padded blocks.
    PaddedBlocks "padded-blocks",
    /// Ordering edges.
    OrderingEdges "ordering-edges",
    /// An operator that the oracle does not compute.
    Uninterpreted "uninterpreted",
    /// A name that passes use themselves, is no Python identifier, or is very long.
    OddNames "odd-names",
    /// Nodes with modules, stack traces and tags.
    Annotated "annotated",
    /// The first members of a run have exactly the size of the cap.
    CapEqual "cap-equal",
    /// The first members of a run are one byte larger than the cap.
    CapOneOver "cap-one-over",
    /// A candidate alone is larger than the cap.
    SingleAboveCap "single-above-cap",
    /// Caps differ by bucket index.
    CapByIndex "cap-by-index",
    /// A run falls into two buckets or more of at least two members.
    BucketsInRun "buckets-in-run",
    /// One kind is to be bucketed.
    OneKind "one-kind",
    /// Packing by custom operators.
    CustomOps "custom-ops",
    /// Gathers of different dtypes may share a bucket.
    Multidtype "multidtype",
    /// Reduce-scatters are to be coalesced.
    CoalescedMode "coalesced-mode",
    /// Grouping over the whole graph.
    AutoParallel "autoparallel",
    /// A bucket may only span so many nodes.
    SpanLimit "span-limit",
    /// The list is not sorted.
    Unsorted "unsorted",
    /// The graph is cyclic.
    Cyclic "cyclic",
}

/// A set of features.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Features(u128);

impl Features {
    /// Whether the set has this feature.
    pub fn has(self, feature: Feature) -> bool {
        self.0 & (1 << feature as u32) != 0
    }

    /// Adds a feature.
    pub fn add(&mut self, feature: Feature) {
        self.0 |= 1 << feature as u32;
    }

    /// Adds a feature if `holds`.
    pub(super) fn add_if(&mut self, feature: Feature, holds: bool) {
        self.0 |= u128::from(holds) << feature as u32;
    }

    /// The features in the set.
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.iter().copied().filter(move |&feature| self.has(feature))
    }

    /// How many there are.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Feature::name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of the table in docs/generator.md.
    #[test]
    fn the_documentation_lists_them() {
        let text = include_str!("../../../docs/generator.md");
        let (_, section) = text.split_once("## What a case may have").unwrap();
        let (section, _) = section.split_once("\n## ").unwrap();
        let rows: Vec<&str> = section.lines().filter(|line| line.starts_with("| `")).collect();
        let expected: Vec<String> =
            Feature::ALL.iter().map(|f| format!("| `{}` | {} |", f.name(), f.doc().trim())).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn names_are_distinct_and_fit() {
        let names: std::collections::BTreeSet<&str> = Feature::ALL.iter().map(|f| f.name()).collect();
        assert_eq!(names.len(), Feature::ALL.len());
        assert!(Feature::ALL.len() <= 128);
        let mut set = Features::default();
        set.add(Feature::Mesh);
        set.add(Feature::Cyclic);
        assert_eq!(format!("{set:?}"), "{\"mesh\", \"cyclic\"}");
        assert_eq!((set.len(), set.has(Feature::Mesh), set.has(Feature::Barrier)), (2, true, false));
    }
}
