//! What a value is, in three ways that are held against each other: the domains in which a graph is executed
//! (`execution`, all of which is here too), and the symbolic evaluator, for graphs too large to execute.

pub mod symbolic;

pub use execution::*;
