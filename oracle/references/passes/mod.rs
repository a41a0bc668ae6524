//! The references: slow-and-obvious where speed does not matter, exact where another implementation must be
//! matched. A pass takes a graph and gives back another one; it never changes its input and never judges.

pub mod bucketing;
pub mod partition;
pub mod repair;
pub mod schedule;
