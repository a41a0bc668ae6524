//! The `graph-oracle` program.

fn main() {}
