//! Verdicts for people and for machines, from one value: the [`Judgement`](crate::judge::Judgement).

pub mod cost;
mod json;
pub mod memory;
pub mod partition;
pub mod schedule;
mod text;

pub use json::json;
pub use text::text;
