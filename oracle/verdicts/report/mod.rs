//! Verdicts for people and for machines, from one value: the [`Judgement`](crate::judge::Judgement).

pub mod cost;
mod described;
mod github;
mod json;
mod junit;
mod markdown;
pub mod memory;
pub mod partition;
pub mod results;
mod sarif;
pub mod schedule;
mod text;

pub use github::github;
pub use json::json;
pub use junit::junit;
pub use markdown::markdown;
pub use sarif::{Tool, sarif};
pub use text::{finding, text, text_pointing};
