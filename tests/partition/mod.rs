//! Tests of the rules: recorded partitions, and hand-made defects of a sound one.

mod cases;
mod defects;
mod feasible;
mod recorded;
