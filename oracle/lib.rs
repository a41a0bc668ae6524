//! graph-oracle: says whether a distributed-training graph pass did its job, and why not.
//!
//! This crate is the whole: what its floors below make public, and the command line.
//! docs/architecture.md shows the floors.
//!
//! # A graph before and after
//!
//! ```
//! use graph_oracle::candidates::{Outcome, judging};
//! use graph_oracle::case::PassConfig;
//! use graph_oracle::format::text;
//! use graph_oracle::judge::{Verdict, judge_outcomes};
//!
//! let graph = |body: &str| {
//!     let text = format!("x = input : f32[4]\n{body}output y\n");
//!     text::parse(text.as_bytes()).unwrap().graph
//! };
//! let judged = |before: &str, after: &str| {
//!     let outcome = Outcome { unrepaired: None, repaired: graph(after) };
//!     judge_outcomes(&graph(before), &PassConfig::new("rewrite"), &[(None, outcome)], &judging()).unwrap()
//! };
//! let before = "a = sin(x)\nb = sin(x)\ny = add(a, b)\n";
//! assert_eq!(judged(before, "a = sin(x)\ny = add(a, a)\n").verdict, Verdict::Sound);
//! assert_eq!(judged(before, "a = sin(x)\ny = add(a, x)\n").violated_rules(), ["rewrite/values"]);
//! ```
//!
//! `examples/` has a program that judges two files, and one that looks for the smallest graph that breaks a pass.
//!
//! # In property tests
//!
//! With the feature `proptest`: cases that shrink, by the reducer that also reduces findings.
//!
//! ```
//! # #[cfg(feature = "proptest")]
//! # {
//! use graph_oracle::candidates::{Reference, judging};
//! use graph_oracle::generate::Config;
//! use graph_oracle::judge::{Options, Values, Verdict, judge};
//! use graph_oracle::reduce;
//! use proptest::prelude::*;
//!
//! proptest!(ProptestConfig::with_cases(16), |(case in reduce::cases(Config::default()))| {
//!     let options = Options { values: Values::Off, ..judging() };
//!     let judgement = judge(&case, &Reference, &options).unwrap();
//!     prop_assert!(!matches!(judgement.verdict, Verdict::Refused(_)));
//! });
//! # }
//! ```
//!
//! # In fuzz targets
//!
//! With the feature `arbitrary`: any bytes are a case.
//!
//! ```
//! # #[cfg(feature = "arbitrary")]
//! # {
//! use arbitrary::{Arbitrary, Unstructured};
//! use graph_oracle::candidates::{Reference, judging};
//! use graph_oracle::generate::Generated;
//! use graph_oracle::judge::{Options, Values, judge};
//!
//! let data: Vec<u8> = (0..2000u32).map(|i| (i * 31 % 251) as u8).collect();
//! let case = Generated::arbitrary(&mut Unstructured::new(&data)).unwrap().into_case();
//! let options = Options { values: Values::Off, ..judging() };
//! assert!(judge(&case, &Reference, &options).is_ok());
//! # }
//! ```
#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod cli;

pub use harness::{campaign, candidates, edits, family, files, generate, reduce, stop, threads, trace};
pub use ir::{analysis, case, definitions, expression, format, graph, limits, ops, quantity, words};
pub use models::{config, lifecycle, memory, semantics, simulate};
pub use references::passes;
pub use smoke::gpu;
pub use verdicts::{judge, report, rules};
