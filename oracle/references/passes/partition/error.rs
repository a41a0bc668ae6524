//! Why a joint graph cannot be partitioned: the constraints that contradict one another, each with its origin.

use std::fmt;

/// What kind of contradiction it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Problem {
    /// The graph is not a joint graph in list order: no output, a reference to a later node, a name twice.
    Malformed,
    /// There is no tangent, so there is no backward part.
    NoTangents,
    /// Tags that exclude one another.
    ContradictoryTags,
    /// A value that backward needs can be neither saved nor computed again.
    NeitherSavedNorRecomputed,
    /// An output of one side can only be computed on the other.
    MisplacedOutput,
    /// A value whose size is not known stands where sizes decide.
    UnknownSize,
    /// An option that the method cannot follow.
    Unsupported,
}

/// Where a constraint comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// A tag or an option: somebody asked for it.
    Annotation,
    /// A rule of the partitioner.
    Heuristic,
    /// A value is needed to compute another.
    DataDependence,
}

impl Origin {
    /// A word for people.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Annotation => "annotation",
            Origin::Heuristic => "heuristic",
            Origin::DataDependence => "data dependence",
        }
    }
}

/// One of the constraints that contradict one another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Constraint {
    /// The node that it is about.
    pub node: String,
    /// Where it comes from.
    pub origin: Origin,
    /// What it says.
    pub text: String,
}

impl Constraint {
    /// A constraint on `node`.
    pub fn new(node: &str, origin: Origin, text: impl Into<String>) -> Constraint {
        Constraint { node: node.to_string(), origin, text: text.into() }
    }
}

/// Why there is no partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionError {
    /// The kind of contradiction.
    pub problem: Problem,
    /// In words.
    pub message: String,
    /// The constraints involved, in the order of the argument.
    pub constraints: Vec<Constraint>,
}

impl PartitionError {
    /// An error whose constraints are added with [`PartitionError::with`].
    pub fn new(problem: Problem, message: impl Into<String>) -> PartitionError {
        PartitionError { problem, message: message.into(), constraints: Vec::new() }
    }

    /// Adds a constraint.
    pub fn with(mut self, node: &str, origin: Origin, text: impl Into<String>) -> PartitionError {
        self.constraints.push(Constraint::new(node, origin, text));
        self
    }
}

impl fmt::Display for PartitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for origin in [Origin::Annotation, Origin::Heuristic, Origin::DataDependence] {
            let of_origin: Vec<_> = self.constraints.iter().filter(|c| c.origin == origin).collect();
            if !of_origin.is_empty() {
                write!(f, "\n  {}:", origin.name())?;
            }
            for constraint in of_origin {
                write!(f, "\n    {}: {}", constraint.node, constraint.text)?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for PartitionError {}
