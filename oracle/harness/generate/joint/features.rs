//! What a joint graph has in it, found by looking at it.

use super::{forward_outputs, returned};
use crate::analysis::{Collectives, Edges};
use crate::case::Case;
use crate::graph::{Dtype, Graph, NodeId, Op, Out, Value};
use crate::ops::{Collective, Kind, Move, Ops};
use std::collections::BTreeMap;

macro_rules! features {
    ($($(#[doc = $doc:literal])+ $name:ident;)*) => {
        /// Something that a joint graph may have.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Feature {
            $($(#[doc = $doc])+ $name,)*
        }

        impl Feature {
            /// All of them.
            pub const ALL: &'static [Feature] = &[$(Feature::$name),*];
        }
    };
}

features! {
    /// Several tangents that are read: several regions of backward.
    SeveralTangents;
    /// A tangent that nobody reads.
    UnusedTangent;
    /// No tangent.
    NoTangent;
    /// A node of the backward region that depends on inputs only.
    PrimalOnlyBackward;
    /// A tuple of which some item is not used.
    Gaps;
    /// A tuple of which an item is used more than once.
    SharedItem;
    /// A random operator without tags.
    PlainRandom;
    /// A random operator that is to be recomputed.
    TaggedRandom;
    /// A buffer written at the end of forward.
    ForwardWrite;
    /// A buffer written at the end of backward.
    BackwardWrite;
    /// A buffer that backward clears, without a gradient.
    Cleared;
    /// A buffer written on both sides.
    BothWrite;
    /// A write to an intermediate value.
    InPlace;
    /// A symbol for a size.
    Symbolic;
    /// An assertion.
    Assertion;
    /// Inputs that live for the whole program.
    Static;
    /// A gather of a parameter that fans out behind its wait.
    FansOut;
    /// A gathered value that is split and put together again.
    Reassembly;
    /// A gather with a cast before it.
    CastGather;
    /// A gather with views behind it.
    ViewedGather;
    /// One parameter gathered twice.
    Duplicate;
    /// MUST_RECOMPUTE on a gather.
    RepeatedGather;
    /// PREFER_RECOMPUTE on a gather.
    PreferredGather;
    /// A sum over ranks in forward.
    ForwardReduce;
    /// MUST_SAVE.
    MustSave;
    /// PREFER_SAVE.
    PreferSave;
    /// MUST_RECOMPUTE on something else than a gather.
    MustRecompute;
    /// PREFER_RECOMPUTE on something else than a gather.
    PreferRecompute;
    /// MUST_SAVE on an item or a tuple.
    TaggedItem;
    /// Several regions of checkpointing.
    Regions;
    /// A user's output that is to be recomputed.
    RecomputedOutput;
    /// A user's output that is a view of an input.
    ViewOutput;
    /// A user's output that backward reads.
    SavedOutput;
    /// A gradient that is an input.
    InputGradient;
    /// A gradient that is a forward value.
    ForwardGradient;
    /// A gradient that is None.
    NoGradient;
    /// An input that nobody reads.
    UnusedInput;
    /// A node that nobody reads.
    Dead;
    /// A constant of the module.
    Constant;
    /// An elementwise chain of over 100 nodes.
    LongChain;
    /// A tag of an earlier partition on a single result.
    Replayed;
    /// A tag of an earlier partition with a list of items.
    ReplayedItems;
    /// A second process group in use.
    SecondGroup;
    /// A whole number, computed from a symbol, that backward reads.
    NumberCrosses;
    /// A fraction, computed from a symbol, that backward reads.
    FractionCrosses;
    /// Equal nodes of forward.
    Twins;
    /// Equal nodes of forward with different tags.
    UnequalTags;
    /// A node of the backward region that is equal to one of forward.
    TwinAcross;
    /// A buffer that is cleared before the first reader of a tangent.
    EarlyClear;
    /// A sum over rows in forward.
    Narrow;
    /// Integers among the values.
    Integers;
    /// A backward hook.
    Hook;
    /// The default method.
    Default;
    /// A minimum cut.
    MinCut;
    /// A minimum cut with a budget.
    Budget;
    /// A replay.
    Replay;
    /// A replay of a first partition that is made first.
    TwoStages;
    /// The pass for activation checkpointing runs first.
    CheckpointPass;
}

/// One look at a case.
struct Look<'a> {
    case: &'a Case,
    graph: &'a Graph,
    ops: Ops,
    edges: Edges,
    collectives: Collectives<'a>,
    late: Vec<bool>,
    values: Vec<Value>,
    forward_outputs: usize,
}

impl Feature {
    /// The features of a case.
    pub fn of(case: &Case) -> Vec<Feature> {
        let graph = &case.graph;
        let ops = Ops::of(graph);
        let edges = Edges::new(graph);
        let mut late = vec![false; graph.len()];
        for id in graph.ids() {
            late[id.index()] = (graph.node(id).op == Op::Placeholder
                && graph.target(id).contains("tangents"))
                || edges.inputs(id).iter().any(|input| late.get(input.index()) == Some(&true));
        }
        let look = Look {
            case,
            graph,
            collectives: Collectives::new(graph, &ops),
            ops,
            edges,
            late,
            values: returned(graph),
            forward_outputs: forward_outputs(case).unwrap_or(0),
        };
        Feature::ALL.iter().copied().filter(|&feature| look.has(feature)).collect()
    }
}

impl Look<'_> {
    fn any(&self, test: impl Fn(NodeId) -> bool) -> bool {
        self.graph.ids().any(test)
    }

    fn count(&self, test: impl Fn(NodeId) -> bool) -> usize {
        self.graph.ids().filter(|&id| test(id)).count()
    }

    fn is(&self, id: NodeId, target: &str) -> bool {
        self.graph.node(id).op == Op::Call && self.graph.target(id) == target
    }

    fn is_input(&self, id: NodeId) -> bool {
        self.graph.node(id).op == Op::Placeholder
    }

    fn is_tangent(&self, id: NodeId) -> bool {
        self.is_input(id) && self.graph.target(id).contains("tangents")
    }

    fn recompute(&self, id: NodeId) -> &str {
        let tag = self.graph.tags(id).and_then(|tags| tags.recompute);
        tag.map_or("", |text| self.graph.text(text))
    }

    fn region(&self, id: NodeId) -> &str {
        let tag = self.graph.tags(id).and_then(|tags| tags.partitioner_tag);
        tag.map_or("", |text| self.graph.text(text))
    }

    fn users(&self, id: NodeId) -> &[NodeId] {
        self.edges.users(id)
    }

    fn is_gather(&self, id: NodeId) -> bool {
        self.ops.call(self.graph, id).and_then(|info| info.collective()) == Some(Collective::AllGather)
    }

    fn shows_gather(&self, id: NodeId) -> bool {
        self.graph.tags(id).and_then(|tags| tags.ac_graph_id) == Some(100_000)
    }

    fn waits(&self, gather: NodeId) -> &[NodeId] {
        match self.collectives.launch_at(gather) {
            Some(launch) => &self.collectives.waits[launch],
            None => &[],
        }
    }

    /// Outputs of the user, or gradients.
    fn outputs(&self, gradients: bool) -> impl Iterator<Item = Value> {
        let (first, second) = self.values.split_at(self.forward_outputs.min(self.values.len()));
        if gradients { second } else { first }.iter().copied()
    }

    fn output_nodes(&self, gradients: bool) -> impl Iterator<Item = NodeId> {
        self.outputs(gradients).filter_map(|value| if let Value::Node(id) = value { Some(id) } else { None })
    }

    fn copies(&self, region: &str) -> impl Iterator<Item = NodeId> {
        let copies = self.graph.ids().filter(|&id| self.is(id, "aten.copy_.default"));
        let of_region: Vec<NodeId> = copies.filter(|&id| self.region(id) == region).collect();
        of_region.into_iter().filter_map(|id| match self.graph.arg(id, 0) {
            Some(Value::Node(to)) => Some(to),
            _ => None,
        })
    }

    fn custom(&self, id: NodeId, text: &str) -> bool {
        let custom = self.graph.tags(id).and_then(|tags| tags.custom);
        custom.is_some_and(|custom| self.graph.text(custom).contains(text))
    }

    fn method(&self, name: &str) -> bool {
        let word = self.case.pass.as_ref().and_then(|pass| pass.word("method").ok().flatten());
        word == Some(name)
    }

    fn option(&self, name: &str) -> bool {
        self.case.pass.as_ref().is_some_and(|pass| pass.get(name).is_some())
    }

    fn kind(&self, id: NodeId) -> Option<Kind> {
        self.ops.call(self.graph, id).map(|info| info.kind)
    }

    fn is_forward(&self, id: NodeId) -> bool {
        self.region(id) == "is_forward"
    }

    /// Whether a number of this kind, computed in forward, is read in backward.
    fn crosses(&self, kind: impl Fn(Out) -> bool) -> bool {
        self.any(|id| {
            let reads = |user: &NodeId| self.late[user.index()] && self.graph.node(*user).op == Op::Call;
            self.graph.node(id).op == Op::Call
                && kind(self.graph.node(id).out)
                && self.users(id).iter().any(reads)
        })
    }

    /// Whether two calls have one target and the same arguments, and are as `test` says, the earlier one first.
    fn twins(&self, test: impl Fn(NodeId, NodeId) -> bool) -> bool {
        let mut known: BTreeMap<String, Vec<NodeId>> = BTreeMap::new();
        for id in self.graph.ids().filter(|&id| self.graph.node(id).op == Op::Call) {
            let key = format!("{} {:?}", self.graph.target(id), self.key(self.graph.args(id)));
            let earlier = known.entry(key).or_default();
            if earlier.iter().any(|&other| test(other, id)) {
                return true;
            }
            earlier.push(id);
        }
        false
    }

    /// Arguments with their lists opened.
    fn key(&self, values: &[Value]) -> Vec<Value> {
        let open = |&value: &Value| match value {
            Value::List(span) => self.graph.values(span).to_vec(),
            value => vec![value],
        };
        values.iter().flat_map(open).collect()
    }

    fn long_chain(&self) -> bool {
        let mut length = vec![0u32; self.graph.len()];
        for id in self.graph.ids() {
            let elementwise = matches!(self.kind(id), Some(Kind::Unary(_)));
            if let (true, [input]) = (elementwise && !self.late[id.index()], self.edges.inputs(id)) {
                length[id.index()] = length[input.index()] + 1;
            }
        }
        length.into_iter().any(|n| n > 100)
    }

    fn has(&self, feature: Feature) -> bool {
        let graph = self.graph;
        match feature {
            Feature::SeveralTangents => {
                self.count(|id| self.is_tangent(id) && !self.users(id).is_empty()) > 1
            }
            Feature::UnusedTangent => self.any(|id| self.is_tangent(id) && self.users(id).is_empty()),
            Feature::NoTangent => !self.any(|id| self.is_tangent(id)),
            Feature::PrimalOnlyBackward => self.any(|id| {
                self.region(id) == "is_backward" && !self.late[id.index()] && !self.users(id).is_empty()
            }),
            Feature::Gaps => self.any(|id| match graph.node(id).out {
                Out::Tuple(span) if graph.node(id).op == Op::Call => self.users(id).len() < span.len(),
                _ => false,
            }),
            Feature::SharedItem => self.any(|id| self.is(id, "operator.getitem") && self.users(id).len() > 1),
            Feature::PlainRandom => self.any(|id| self.ops.draws(graph, id) && self.recompute(id).is_empty()),
            Feature::TaggedRandom => {
                self.any(|id| self.ops.draws(graph, id) && self.recompute(id).ends_with("_RECOMPUTE"))
            }
            Feature::ForwardWrite => self.copies("must_be_in_forward").next().is_some(),
            Feature::BackwardWrite => self.copies("must_be_in_backward").next().is_some(),
            Feature::Cleared => self.any(|id| self.is(id, "aten.zero_.default")),
            Feature::BothWrite => {
                let forward: Vec<NodeId> = self.copies("must_be_in_forward").collect();
                self.copies("must_be_in_backward").any(|to| forward.contains(&to))
            }
            Feature::InPlace => self.any(|id| self.is(id, "aten.add_.Tensor")),
            Feature::Symbolic => graph.has_expressions(),
            Feature::Assertion => self.any(|id| self.kind(id) == Some(Kind::Assert)),
            Feature::Static => self.option("static_inputs"),
            Feature::FansOut => self.any(|id| {
                self.is_gather(id) && self.waits(id).iter().any(|&wait| self.users(wait).len() > 1)
            }),
            Feature::Reassembly => self.any(|id| {
                self.is_gather(id)
                    && self.waits(id).iter().flat_map(|&wait| self.users(wait)).any(|&split| {
                        let items = self.users(split);
                        self.is(split, "aten.split.Tensor")
                            && items
                                .iter()
                                .flat_map(|&item| self.users(item))
                                .any(|&user| self.kind(user) == Some(Kind::Move(Move::Cat)))
                    })
            }),
            Feature::CastGather => self.any(|id| {
                self.is_gather(id)
                    && self.edges.inputs(id).iter().any(|&input| self.kind(input) == Some(Kind::Cast))
            }),
            Feature::ViewedGather => self.any(|id| {
                self.is_gather(id)
                    && self.waits(id).iter().flat_map(|&wait| self.users(wait)).any(|&user| {
                        self.is(user, "aten.permute.default") && self.region(user) == "is_forward"
                    })
            }),
            Feature::Duplicate => self.any(|id| {
                self.is_input(id) && {
                    let through_cast = self.users(id).iter().flat_map(|&user| self.users(user));
                    self.users(id).iter().chain(through_cast).filter(|&&user| self.is_gather(user)).count()
                        > 1
                }
            }),
            Feature::RepeatedGather => {
                self.any(|id| self.is_gather(id) && self.recompute(id) == "MUST_RECOMPUTE")
            }
            Feature::PreferredGather => {
                self.any(|id| self.is_gather(id) && self.recompute(id) == "PREFER_RECOMPUTE")
            }
            Feature::ForwardReduce => self.any(|id| {
                self.kind(id) == Some(Kind::Collective(Collective::AllReduce)) && !self.late[id.index()]
            }),
            Feature::MustSave => self.any(|id| self.recompute(id) == "MUST_SAVE"),
            Feature::PreferSave => self.any(|id| self.recompute(id) == "PREFER_SAVE"),
            Feature::MustRecompute => {
                self.any(|id| self.recompute(id) == "MUST_RECOMPUTE" && !self.shows_gather(id))
            }
            Feature::PreferRecompute => {
                self.any(|id| self.recompute(id) == "PREFER_RECOMPUTE" && !self.shows_gather(id))
            }
            Feature::TaggedItem => self.any(|id| {
                let tuple = matches!(graph.node(id).out, Out::Tuple(_));
                self.recompute(id) == "MUST_SAVE" && (tuple || self.is(id, "operator.getitem"))
            }),
            Feature::Regions => {
                let mut ids: Vec<i64> = graph
                    .ids()
                    .filter_map(|id| graph.tags(id)?.ac_graph_id)
                    .filter(|&id| id != 100_000)
                    .collect();
                ids.sort_unstable();
                ids.dedup();
                ids.len() > 1
            }
            Feature::RecomputedOutput => {
                self.output_nodes(false).any(|id| self.recompute(id).ends_with("_RECOMPUTE"))
            }
            Feature::ViewOutput => self.output_nodes(false).any(|id| {
                self.is(id, "aten.permute.default") && self.edges.inputs(id).iter().any(|&x| self.is_input(x))
            }),
            Feature::SavedOutput => self.output_nodes(false).any(|id| {
                self.users(id).iter().any(|user| self.late[user.index()] && graph.node(*user).op == Op::Call)
            }),
            Feature::InputGradient => {
                self.output_nodes(true).any(|id| self.is_input(id) && !self.is_tangent(id))
            }
            Feature::ForwardGradient => {
                self.output_nodes(true).any(|id| !self.is_input(id) && !self.late[id.index()])
            }
            Feature::NoGradient => self.outputs(true).any(|value| value == Value::None),
            Feature::UnusedInput => {
                self.any(|id| self.is_input(id) && !self.is_tangent(id) && self.users(id).is_empty())
            }
            Feature::Dead => self.any(|id| self.is(id, "aten.cos.default") && self.users(id).is_empty()),
            Feature::Constant => self.any(|id| graph.node(id).op == Op::GetAttr),
            Feature::LongChain => self.long_chain(),
            Feature::Replayed => self.any(|id| self.custom(id, "ap_must_save\": true}")),
            Feature::ReplayedItems => self.any(|id| self.custom(id, "getitem_indices")),
            Feature::SecondGroup => self.collectives.calls.iter().any(|call| call.group.to_string() == "tp"),
            Feature::NumberCrosses => self.crosses(|out| matches!(out, Out::SymInt(_))),
            Feature::FractionCrosses => self.crosses(|out| matches!(out, Out::Other(_))),
            Feature::Twins => self.twins(|a, b| self.is_forward(a) && self.is_forward(b)),
            Feature::UnequalTags => self.twins(|a, b| {
                self.is_forward(a) && self.is_forward(b) && graph.node(a).tags != graph.node(b).tags
            }),
            Feature::TwinAcross => self.twins(|a, b| self.is_forward(a) && self.region(b) == "is_backward"),
            Feature::EarlyClear => {
                let first = graph.ids().find(|&id| self.late[id.index()] && graph.node(id).op == Op::Call);
                first.is_some_and(|first| self.any(|id| self.is(id, "aten.zero_.default") && id < first))
            }
            Feature::Narrow => self.any(|id| self.is(id, "aten.sum.dim_IntList") && self.is_forward(id)),
            Feature::Integers => {
                self.any(|id| graph.tensor_of(id).is_some_and(|tensor| tensor.dtype == Dtype::I64))
            }
            Feature::Hook => self.any(|id| {
                let extra = graph.tags(id).and_then(|tags| tags.extra);
                extra.is_some_and(|extra| graph.text(extra).contains("has_backward_hook"))
            }),
            Feature::Default => self.method("default"),
            Feature::MinCut => self.method("min-cut"),
            Feature::Budget => self.option("budget"),
            Feature::Replay => self.method("replay"),
            Feature::TwoStages => self.option("first"),
            Feature::CheckpointPass => self.option("checkpoint"),
        }
    }
}
