//! What a bucketing pass decided, and why it declined or refused.

use crate::graph::Graph;
use crate::ops::Collective;
use crate::passes::repair::{Cycle, CycleEdge};
use std::fmt;

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Bucketed {
    /// The graph after the final sort.
    pub graph: Graph,
    /// The graph before the final sort. Its list may be unsorted.
    pub unrepaired: Graph,
    /// The buckets, in the order in which they were merged.
    pub plan: Vec<Bucket>,
    /// Candidates that a run held and no bucket could take, with the reason. A candidate that merely stayed
    /// alone is not listed.
    pub declined: Vec<Declined>,
    /// Why the final sort failed; `graph` is then the unsorted graph. Never with the reference strategy, which
    /// refuses instead.
    pub cycle: Option<Cycle>,
}

/// One bucket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bucket {
    /// What its members do.
    pub kind: Collective,
    /// What its members have in common, in words.
    pub key: String,
    /// The names of the members' starts in the graph before, in bucket order.
    pub members: Vec<String>,
    /// The sum of their sizes as the limit counts them.
    pub bytes: i64,
    /// The name of the merged collective.
    pub collective: String,
    /// The names of its waits: one, or one per member of a coalesced launch.
    pub waits: Vec<String>,
}

/// A candidate that was left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Declined {
    /// The name of its start.
    pub node: String,
    /// Why.
    pub reason: Reason,
}

/// Why a candidate was left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// A path connects it with a member of the open bucket, in the graph with the buckets so far contracted.
    Dependent {
        /// The member: its start, or its wait where only the waits are connected.
        member: String,
    },
    /// Something other than its one wait uses its value.
    UsedBeforeWait,
    /// What is recorded of it, or of its wait, contradicts its operator.
    Contradicted {
        /// How.
        why: String,
    },
    /// Nothing is recorded about its input.
    NoInputMetadata,
    /// Sizes or strides, its own or with the bucket's, are negative or beyond 2^48.
    AbsurdSize,
    /// A size is symbolic: the merged body would need arithmetic on sizes as nodes.
    SymbolicSize,
    /// Its input has no dimensions.
    ScalarInput,
    /// The rows of a reduce-scatter's input do not divide among the ranks.
    UnevenRows {
        /// Rows of the input.
        rows: i64,
        /// Ranks.
        group_size: i64,
    },
    /// Its group has another size than the open bucket's.
    GroupSize,
    /// Its device is another than the open bucket's.
    Device,
    /// A piece of the packed buffer would not start at a multiple of its element size.
    Misaligned,
    /// The buffer given as `out=` is read elsewhere, and the merged collective would not write it.
    OutReadElsewhere {
        /// A node that reads it.
        reader: String,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Dependent { member } => write!(f, "a path connects it with {member} of the open bucket"),
            Reason::UsedBeforeWait => f.write_str("its value is used by something other than its one wait"),
            Reason::Contradicted { why } => write!(f, "its record contradicts its operator: {why}"),
            Reason::NoInputMetadata => f.write_str("nothing is recorded about its input"),
            Reason::AbsurdSize => f.write_str("a size or stride is negative or beyond 2^48"),
            Reason::SymbolicSize => f.write_str("a size is symbolic"),
            Reason::ScalarInput => f.write_str("its input has no dimensions"),
            Reason::UnevenRows { rows, group_size } => {
                write!(f, "{rows} rows do not divide among {group_size} ranks")
            }
            Reason::GroupSize => f.write_str("its group has another size than that of the open bucket"),
            Reason::Device => f.write_str("its device is another than that of the open bucket"),
            Reason::Misaligned => {
                f.write_str("a piece of the packed buffer would not start at a multiple of its element size")
            }
            Reason::OutReadElsewhere { reader } => {
                write!(f, "its out= buffer is read by {reader}, and the merged collective would not write it")
            }
        }
    }
}

/// Why there is no result. The input graph is as it was.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Dtypes cannot be mixed in a reduction.
    #[error("reduce-scatters cannot be bucketed in mode custom_ops_multidtype")]
    MultidtypeReduceScatter,
    /// A kind that no bucketing pass handles.
    #[error("{kind} cannot be bucketed")]
    Kind {
        /// Its name.
        kind: &'static str,
    },
    /// The rank does not exist.
    #[error("rank {rank} is outside process group {group:?} of size {size}")]
    Rank {
        /// The group.
        group: String,
        /// The index asked for.
        rank: u32,
        /// Ranks of the group.
        size: i64,
    },
    /// The input is not in topological order.
    #[error("the input list is not sorted: {0}")]
    Unsorted(CycleEdge),
    /// A node refers to a name that no node has.
    #[error("{node} refers to {name:?}, which no node is called")]
    Dangling {
        /// The node.
        node: String,
        /// The name.
        name: String,
    },
    /// A candidate is not what its operator says.
    #[error("{node} {what}")]
    Malformed {
        /// The collective.
        node: String,
        /// What is wrong.
        what: &'static str,
    },
    /// A candidate's size cannot be told.
    #[error("the size of {node} is symbolic and has no hint")]
    NoHint {
        /// The collective.
        node: String,
    },
    /// No merged body can be written for these members.
    #[error("no merged collective can be written for {members}")]
    Body {
        /// Their names.
        members: String,
    },
    /// The merged graph has a cycle.
    #[error(transparent)]
    Cycle(#[from] Cycle),
}
