//! Judges a graph before and after a pass of which nothing else is known:
//!
//!     cargo run --example judge_a_pair -- BEFORE AFTER
//!
//! Both are exchange JSON, plain or gzip.

use graph_oracle::candidates::{Outcome, judging};
use graph_oracle::case::PassConfig;
use graph_oracle::files::read_path;
use graph_oracle::graph::Graph;
use graph_oracle::judge::judge_outcomes;
use graph_oracle::report;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [before, after] = &arguments[..] else { return Err("two files: before and after".into()) };
    let (before, after) = (graph(before)?, graph(after)?);

    let outcome = Outcome { unrepaired: None, repaired: after };
    let judgement = judge_outcomes(&before, &PassConfig::new("rewrite"), &[(None, outcome)], &judging())?;

    print!("{}", report::text(&judgement, "", None, false));
    Ok(())
}

fn graph(path: &str) -> Result<Graph, Box<dyn Error>> {
    Ok(read_path(path)?.into_graph().ok_or_else(|| format!("{path} is no graph"))?)
}
