//! How much of a campaign a test runs: a sample of it, times GRAPH_ORACLE_SCALE.
//!
//! A module of each crate whose tests have campaigns.

/// `count`, or as many times as many as GRAPH_ORACLE_SCALE says.
pub(crate) fn scaled(count: u64) -> u64 {
    let Ok(text) = std::env::var("GRAPH_ORACLE_SCALE") else { return count };
    let scale: u64 = text.parse().expect("GRAPH_ORACLE_SCALE is a number");
    count.saturating_mul(scale)
}
