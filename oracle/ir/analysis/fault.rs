//! What can be wrong with a graph, in types and in words.

use super::edges::EdgeKind;
use crate::graph::{NodeId, WorldFault};
use crate::limits::Limit;
use crate::ops::ArityError;
use crate::ops::shape::ShapeFault;
use std::fmt;

/// Whether a graph with a fault can still be judged as the input of a pass.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// It cannot.
    Fatal,
    /// It can; the fault is told.
    Finding,
}

/// Something wrong with a graph.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// The node that is at fault; `None` where it is the graph as a whole.
    pub node: Option<NodeId>,
    /// Its name.
    pub name: String,
}

impl Fault {
    /// Whether the graph can still be judged.
    pub fn severity(&self) -> Severity {
        self.kind.severity()
    }

    /// Whether the graph cannot be judged as an input.
    pub fn is_fatal(&self) -> bool {
        self.severity() == Severity::Fatal
    }

    /// Whether it is about the order of the list, or about there being none: what a repair pass is there for.
    pub fn concerns_order(&self) -> bool {
        matches!(self.kind.subject(), Subject::Order | Subject::Cycle)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.node {
            Some(node) => write!(f, "{} (position {}): {}", self.name, node.0, self.kind),
            None => write!(f, "{}", self.kind),
        }
    }
}

/// What faults are about: the faults of one subject break the same rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Subject {
    /// Whether the list is a graph at all, and its bodies are.
    Structure,
    /// The order of the list.
    Order,
    /// That no order exists.
    Cycle,
    /// Waits for communication.
    Waiting,
    /// What is recorded of results.
    Records,
}

impl Subject {
    /// All of them.
    pub const ALL: [Subject; 5] =
        [Subject::Structure, Subject::Order, Subject::Cycle, Subject::Waiting, Subject::Records];
}

/// Kinds of faults. The order is that in which faults of one node are told.
#[derive(Clone, PartialEq, Debug)]
pub enum FaultKind {
    /// Ranks and groups.
    World(WorldFault),
    /// A graph has nodes.
    Empty,
    /// A symbol is bounded so that no number is left.
    SymbolRange {
        /// The symbol.
        symbol: String,
        /// Its bounds.
        range: (String, String),
    },
    /// A graph has one output node.
    Outputs {
        /// How many it has.
        count: usize,
    },
    /// Two nodes have one name.
    DuplicateName {
        /// The position of the first.
        first: NodeId,
    },
    /// A reference to a name that no node has.
    Dangling {
        /// The name.
        to: String,
    },
    /// A reference past the end of the list.
    Outside {
        /// The position.
        to: u32,
    },
    /// A reference to a later node, or an ordering edge from one.
    ForwardReference {
        /// The later node.
        to: NodeId,
        /// Its name.
        name: String,
        /// Whether its value is needed or only the order.
        kind: EdgeKind,
    },
    /// A node that takes its own value.
    SelfReference,
    /// An ordering edge from a node to itself.
    OrderedAfterItself,
    /// A cycle of edges: the shortest.
    Cycle {
        /// The nodes, from the one that stands first.
        nodes: Vec<NodeId>,
        /// Their names: `a -> b -> a`.
        chain: String,
        /// The reason of each edge.
        reasons: Vec<String>,
        /// Whether there is no shorter one.
        shortest: bool,
    },
    /// A placeholder after other nodes, or a node after the output.
    Position {
        /// Which of the two, in words.
        statement: &'static str,
    },
    /// The arguments do not fit the operator.
    Arguments(ArityError),
    /// Communication on a group that the world does not have.
    UnknownGroup {
        /// Its name.
        group: String,
    },
    /// Communication that states another size of its group.
    GroupSize {
        /// The group.
        group: String,
        /// As the node states it.
        stated: i64,
        /// As the world has it.
        size: u32,
    },
    /// A size, stride or offset below 0.
    NegativeSize {
        /// Which of them.
        what: &'static str,
        /// Its value.
        value: i64,
    },
    /// A shape and strides of different lengths.
    Rank {
        /// Dimensions of the shape.
        shape: usize,
        /// Number of strides.
        strides: usize,
    },
    /// A tensor of more dimensions than can be.
    Dimensions {
        /// How many.
        count: usize,
    },
    /// A tensor with more bytes than can be, or that reaches further.
    TooLarge {
        /// Its shape.
        shape: String,
    },
    /// A tensor that reaches past the end of its recorded storage.
    OutsideStorage {
        /// Bytes that it needs.
        needs: i64,
        /// Bytes of the storage.
        bytes: i64,
    },
    /// A symbol that the graph does not declare.
    UndeclaredSymbol {
        /// Its name.
        symbol: String,
    },
    /// A wait for something that no collective gives.
    IdleWait {
        /// What it waits for.
        value: String,
    },
    /// A rename or a cluster that cannot be.
    Member {
        /// Why.
        statement: String,
    },
    /// What is recorded of the results is not what the operator gives.
    Shape {
        /// Both sides.
        fault: ShapeFault,
    },
    /// A fault of a body: of its names, its references or its order.
    Body {
        /// The attribute that holds the body.
        attribute: String,
        /// What is wrong with it.
        fault: Box<Fault>,
    },
}

impl FaultKind {
    /// What it is about.
    pub fn subject(&self) -> Subject {
        match self {
            FaultKind::ForwardReference { .. }
            | FaultKind::SelfReference
            | FaultKind::OrderedAfterItself
            | FaultKind::Position { .. } => Subject::Order,
            FaultKind::Cycle { .. } => Subject::Cycle,
            FaultKind::IdleWait { .. } => Subject::Waiting,
            FaultKind::Shape { .. } => Subject::Records,
            FaultKind::World(_)
            | FaultKind::Empty
            | FaultKind::SymbolRange { .. }
            | FaultKind::Outputs { .. }
            | FaultKind::DuplicateName { .. }
            | FaultKind::Dangling { .. }
            | FaultKind::Outside { .. }
            | FaultKind::Arguments(_)
            | FaultKind::UnknownGroup { .. }
            | FaultKind::GroupSize { .. }
            | FaultKind::NegativeSize { .. }
            | FaultKind::Rank { .. }
            | FaultKind::Dimensions { .. }
            | FaultKind::TooLarge { .. }
            | FaultKind::OutsideStorage { .. }
            | FaultKind::UndeclaredSymbol { .. }
            | FaultKind::Member { .. }
            | FaultKind::Body { .. } => Subject::Structure,
        }
    }

    /// Whether the graph can still be judged.
    pub fn severity(&self) -> Severity {
        match self {
            FaultKind::Body { fault, .. } => fault.severity(),
            FaultKind::OutsideStorage { .. }
            | FaultKind::UndeclaredSymbol { .. }
            | FaultKind::IdleWait { .. }
            | FaultKind::Shape { .. }
            | FaultKind::Outputs { count: 0 } => Severity::Finding,
            _ => Severity::Fatal,
        }
    }

    /// A name for expectations and reports.
    pub fn name(&self) -> &'static str {
        self.rank().1
    }

    /// The place among the faults of one node.
    pub(super) fn rank(&self) -> (usize, &'static str) {
        match self {
            FaultKind::World(_) => (0, "world"),
            FaultKind::Empty => (1, "empty"),
            FaultKind::SymbolRange { .. } => (1, "symbol-range"),
            FaultKind::Outputs { .. } => (1, "outputs"),
            FaultKind::DuplicateName { .. } => (2, "duplicate-name"),
            FaultKind::Dangling { .. } => (3, "dangling-reference"),
            FaultKind::Outside { .. } => (4, "outside-reference"),
            FaultKind::ForwardReference { .. } => (5, "forward-reference"),
            FaultKind::SelfReference => (6, "self-reference"),
            FaultKind::OrderedAfterItself => (7, "ordered-after-itself"),
            FaultKind::Cycle { .. } => (8, "cycle"),
            FaultKind::Position { .. } => (9, "position"),
            FaultKind::Arguments(_) => (10, "arguments"),
            FaultKind::UnknownGroup { .. } => (11, "unknown-group"),
            FaultKind::GroupSize { .. } => (12, "group-size"),
            FaultKind::NegativeSize { .. } => (13, "negative-size"),
            FaultKind::Rank { .. } => (14, "rank"),
            FaultKind::Dimensions { .. } => (15, "dimensions"),
            FaultKind::TooLarge { .. } => (15, "too-large"),
            FaultKind::OutsideStorage { .. } => (16, "outside-storage"),
            FaultKind::UndeclaredSymbol { .. } => (17, "undeclared-symbol"),
            FaultKind::IdleWait { .. } => (18, "idle-wait"),
            FaultKind::Member { .. } => (19, "member"),
            FaultKind::Shape { .. } => (20, "shape"),
            FaultKind::Body { .. } => (21, "body"),
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::World(fault) => write!(f, "{fault}"),
            FaultKind::Empty => write!(f, "the graph has no nodes"),
            FaultKind::SymbolRange { symbol, range: (low, high) } => {
                write!(f, "no number lies in the range of the symbol {symbol}, {low} to {high}")
            }
            FaultKind::Outputs { count: 0 } => write!(f, "the graph has no output"),
            FaultKind::Outputs { count } => write!(f, "the graph has {count} outputs"),
            FaultKind::DuplicateName { first } => {
                write!(f, "the node at position {} has the same name", first.0)
            }
            FaultKind::Dangling { to } => write!(f, "refers to {to}, which no node is called"),
            FaultKind::Outside { to } => write!(f, "refers to position {to}, past the end of the list"),
            FaultKind::ForwardReference { to, name, kind: EdgeKind::Data } => {
                write!(f, "takes the value of {name}, which comes later (position {})", to.0)
            }
            FaultKind::ForwardReference { to, name, kind: EdgeKind::Ordering } => {
                write!(f, "an ordering edge puts it after {name}, which comes later (position {})", to.0)
            }
            FaultKind::SelfReference => write!(f, "takes its own value"),
            FaultKind::OrderedAfterItself => write!(f, "an ordering edge puts it after itself"),
            FaultKind::Cycle { chain, reasons, shortest, .. } => {
                let which = if *shortest { "the shortest cycle" } else { "a cycle" };
                write!(f, "{which} is {chain}: {}", reasons.join("; "))
            }
            FaultKind::Position { statement } => write!(f, "{statement}"),
            FaultKind::Arguments(error) => write!(f, "{error}"),
            FaultKind::UnknownGroup { group } => {
                write!(f, "communicates on group {group:?}, which the world does not have")
            }
            FaultKind::GroupSize { group, stated, size } => {
                write!(f, "states that group {group:?} has {stated} ranks, but it has {size}")
            }
            FaultKind::NegativeSize { what, value } => write!(f, "{what} {value} is negative"),
            FaultKind::Rank { shape, strides } => {
                write!(f, "recorded with {shape} sizes and {strides} strides")
            }
            FaultKind::Dimensions { count } => {
                write!(f, "has {count} dimensions: at most {}", Limit::Dimensions.standard())
            }
            FaultKind::TooLarge { shape } => {
                write!(
                    f,
                    "{shape} holds, or is recorded to reach over, more than {} bytes",
                    Limit::Tensor.standard()
                )
            }
            FaultKind::OutsideStorage { needs, bytes } => {
                write!(f, "reaches to byte {needs} of a storage of {bytes} bytes")
            }
            FaultKind::UndeclaredSymbol { symbol } => {
                write!(f, "uses the symbol {symbol}, which the graph does not declare")
            }
            FaultKind::IdleWait { value } => {
                write!(f, "waits for {value}, which no collective of this graph gives")
            }
            FaultKind::Member { statement } => write!(f, "{statement}"),
            FaultKind::Shape { fault } => write!(f, "{fault}"),
            FaultKind::Body { attribute, fault } => write!(f, "in the body {attribute}: {fault}"),
        }
    }
}
