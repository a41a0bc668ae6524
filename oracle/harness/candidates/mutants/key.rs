//! Mutants whose keys lack a field.

use crate::graph::NodeId;
use crate::ops::Collective;
use crate::passes::bucketing::{Context, Group, Key, Member, Open, Reason, Refusal, Strategy, member};

/// A group that stands for any.
const ANY: Group = Group::Node(NodeId(0));

fn full(cx: &Context, member: &Member) -> Key {
    Key::of(member, cx.config.mode)
}

/// Everything of one kind shares buckets.
pub(super) struct NoKey;

impl Strategy for NoKey {
    fn key(&self, cx: &Context, member: &Member) -> Key {
        Key { group: ANY, reduce_op: None, dtype: None, ..full(cx, member) }
    }
}

/// The kind is missing.
pub(super) struct WithoutKind;

impl Strategy for WithoutKind {
    fn candidates(&self, cx: &Context, kind: Collective) -> Result<Vec<Member>, Refusal> {
        let mut members = member::in_wait_order(cx, kind)?;
        if kind == Collective::ReduceScatter {
            members.extend(member::in_wait_order(cx, Collective::AllReduce)?);
            members.sort_by_key(|member| member.wait);
        }
        // Not those that a bucket has become.
        members.retain(|member| member.start.index() < cx.facts.dependences.len());
        Ok(members)
    }

    fn key(&self, cx: &Context, member: &Member) -> Key {
        let kind = match member.kind {
            Collective::AllReduce => Collective::ReduceScatter,
            kind => kind,
        };
        Key { kind, ..full(cx, member) }
    }

    /// An all-reduce states no group size.
    fn mismatch(&self, _: &Context, _: &Open, _: &Member) -> Option<Reason> {
        None
    }
}

/// The reduction is missing.
pub(super) struct WithoutReduction;

impl Strategy for WithoutReduction {
    fn key(&self, cx: &Context, member: &Member) -> Key {
        Key { reduce_op: None, ..full(cx, member) }
    }
}

/// The process group is missing.
pub(super) struct WithoutGroup;

impl Strategy for WithoutGroup {
    fn key(&self, cx: &Context, member: &Member) -> Key {
        Key { group: ANY, ..full(cx, member) }
    }
}

/// The dtype is missing.
pub(super) struct WithoutDtype;

impl Strategy for WithoutDtype {
    fn key(&self, cx: &Context, member: &Member) -> Key {
        Key { dtype: None, ..full(cx, member) }
    }
}
