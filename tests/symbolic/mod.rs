//! The symbolic evaluator from the outside: hand-built graphs, every packing mode of the bucketing reference, the text
//! cases, and the recorded graphs with faults put in.

mod algebra;
mod cases;
mod edits;
mod modes;
mod payloads;
mod real;
mod scatters;
mod small;
mod support;
