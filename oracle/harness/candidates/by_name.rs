//! A broken bucketing: it takes collectives in the order of their nodes' names.
//!
//! Everything else is the reference's. Names differ between ranks and between runs of a tracer, so what it chooses does
//! too: the rule `bucket/policy-deterministic` must convict it where the cap cuts a run.

use super::reference::run_bucketing;
use super::{Answer, Candidate, Capabilities, Refusal, Request};
use crate::passes::bucketing::{Context, Key, Member, Run, Strategy, select};
use crate::rules::PassKind;

/// The candidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ByName;

impl Candidate for ByName {
    fn name(&self) -> &str {
        "by-name"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { bakes_rank: true, ..Capabilities::of(&[PassKind::Bucketing]) }
    }

    fn run(&self, request: &Request) -> Result<Vec<Answer>, Refusal> {
        run_bucketing(request, &NameOrder, &|_| {})
    }
}

struct NameOrder;

impl Strategy for NameOrder {
    fn runs(&self, cx: &Context, candidates: Vec<(Key, Member)>) -> Vec<Run> {
        let graph = cx.editor.graph();
        let mut runs = select::runs(cx.config.selection, candidates);
        for run in &mut runs {
            run.sort_by_key(|member| graph.name(member.start).to_string());
        }
        runs
    }

    /// The last member of a bucket by name need not be the last in the list.
    fn anchor(&self, cx: &Context, bucket: &[Member]) -> Option<crate::graph::NodeId> {
        let last = bucket.iter().map(|member| member.start).max()?;
        cx.editor.next(last)
    }
}
