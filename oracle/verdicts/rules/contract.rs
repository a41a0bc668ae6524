//! `rewrite/policy-*`: what is demanded of a rewrite beyond being right. Each applies only where it is demanded.
//!
//! Most look at the graphs as all rules see them. Names, and whether a graph is the same as another one, are looked at
//! as the graphs were given ([`AsGiven`]): before nodes are given the names that they had before.

use super::partition::returned;
use super::{AnalyzedGraph, Checked, Code, Collectives, Demanded, Evidence, Stage};
use crate::analysis::{CollectiveCall, GroupName};
use crate::graph::{Dim, Graph, NodeId, Op, Tensor, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What is to be said of the graphs as they were given.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AsGiven {
    /// The first input or output with another name: what it is, its name before, and its name after.
    pub renamed: Option<(String, String, String)>,
    /// The first difference that is none of tags.
    pub changed: Option<String>,
    /// The first difference to what a second run gave; `None` where there was none.
    pub second: Option<Option<String>>,
}

impl AsGiven {
    /// Looks at the graphs for what is demanded; `second`: what a second run gave.
    pub fn new(demanded: &Demanded, before: &Graph, after: &Graph, second: Option<&Graph>) -> AsGiven {
        AsGiven {
            renamed: demanded.names.then(|| renamed(before, after)).flatten(),
            changed: match demanded.unchanged {
                true => untagged(before).difference_in_program(&untagged(after)),
                false => None,
            },
            second: second.map(|second| after.difference_in_program(second)),
        }
    }

    /// What is to be said of all ranks: that of the first one of which there is something to say.
    pub fn join(self, other: AsGiven) -> AsGiven {
        AsGiven {
            renamed: self.renamed.or(other.renamed),
            changed: self.changed.or(other.changed),
            second: self.second.or(other.second),
        }
    }
}

/// The names of inputs, or of what the output lists, in order. What is no node has none.
fn names(graph: &Graph, inputs: bool) -> Vec<&str> {
    let name = |value: Value| match value {
        Value::Node(id) if id.index() < graph.len() => graph.name(id),
        _ => "",
    };
    match inputs {
        true => {
            let of = graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder);
            of.map(|id| graph.name(id)).collect()
        }
        false => returned(graph).into_iter().map(name).collect(),
    }
}

fn renamed(before: &Graph, after: &Graph) -> Option<(String, String, String)> {
    [("input", true), ("output", false)].into_iter().find_map(|(what, inputs)| {
        let (old, new) = (names(before, inputs), names(after, inputs));
        let at = (0..old.len().max(new.len())).find(|&at| old.get(at) != new.get(at))?;
        let name = |of: &[&str]| of.get(at).map_or("nothing".to_string(), ToString::to_string);
        Some((format!("{what} {at}"), name(&old), name(&new)))
    })
}

/// The same graph without tags.
fn untagged(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    let ids: Vec<NodeId> = graph.ids().collect();
    ids.into_iter().for_each(|id| graph.node_mut(id).tags = None);
    graph
}

fn not_demanded(what: &str) -> Checked {
    Checked::NotChecked(format!("{what} was not demanded"))
}

/// Nothing but tags differs.
pub(super) fn unchanged(evidence: &Evidence) -> Checked {
    if !evidence.policies.demanded.unchanged {
        return not_demanded("that nothing changes");
    }
    let finding = |what: &String| {
        evidence
            .finding("rewrite/policy-unchanged", Stage::After, "the graph was changed".to_string())
            .expected("nothing but tags differs")
            .observed(what.clone())
    };
    Checked::Findings(evidence.as_given.changed.iter().map(finding).collect())
}

/// A second run gives the same graph.
pub(super) fn deterministic(evidence: &Evidence) -> Checked {
    if !evidence.policies.demanded.deterministic {
        return not_demanded("that two runs agree");
    }
    let Some(second) = &evidence.as_given.second else {
        return Checked::undecided(Code::NoSecondRun, "what a second run gave is not given");
    };
    let finding = |what: &String| {
        evidence
            .finding("rewrite/policy-deterministic", Stage::After, "two runs give two graphs".to_string())
            .expected("the second run gives the same graph")
            .observed(what.clone())
    };
    Checked::Findings(second.iter().map(finding).collect())
}

/// Inputs and outputs keep their names.
pub(super) fn names_kept(evidence: &Evidence) -> Checked {
    if !evidence.policies.demanded.names {
        return not_demanded("that names stay");
    }
    let finding = |(what, old, new): &(String, String, String)| {
        evidence
            .finding("rewrite/policy-names", Stage::After, format!("{what} has another name"))
            .expected(format!("it is called {old}"))
            .observed(format!("it is called {new}"))
    };
    Checked::Findings(evidence.as_given.renamed.iter().map(finding).collect())
}

/// Outputs have the strides that they had.
pub(super) fn strides_kept(evidence: &Evidence) -> Checked {
    if !evidence.policies.demanded.strides {
        return not_demanded("that strides stay");
    }
    let (before, after) = (evidence.before.graph, evidence.after.graph);
    let (old, new) = (returned(before), returned(after));
    if old.len() != new.len() {
        return Checked::NotChecked("there are other outputs than before".into());
    }
    let (mut findings, mut doubt) = (Vec::new(), None);
    for (position, pair) in old.into_iter().zip(new).enumerate() {
        let (Value::Node(a), Value::Node(b)) = pair else { continue };
        let (Some(old), Some(new)) = (before.tensor_of(a), after.tensor_of(b)) else { continue };
        let (was, is) = (layout(before, old), layout(after, new));
        let known = |graph: &Graph, tensor: &Tensor| {
            graph.sizes(tensor.shape).is_some() && graph.sizes(tensor.stride).is_some()
        };
        if was == is {
            continue;
        }
        if !known(before, old) || !known(after, new) {
            let why = format!("the strides of output {position} are written in different symbols");
            doubt.get_or_insert(Code::SizeNotKnown.because(why));
            continue;
        }
        let words = |layout: &[(String, String)]| {
            let strides: Vec<&str> = layout.iter().map(|(_, stride)| stride.as_str()).collect();
            strides.join(", ")
        };
        findings.push(
            evidence
                .finding(
                    "rewrite/policy-strides",
                    Stage::After,
                    format!("output {position} has other strides than before"),
                )
                .after_nodes(evidence, [b])
                .expected(format!("along more than one element its strides are [{}]", words(&was)))
                .observed(format!("they are [{}]", words(&is))),
        );
    }
    Checked::found(findings, doubt)
}

/// Sizes and strides along more than one element, as texts. A tensor without elements has none.
fn layout(graph: &Graph, tensor: &Tensor) -> Vec<(String, String)> {
    let text = |dim: &Dim| match *dim {
        Dim::Static(n) => n.to_string(),
        Dim::Symbolic(id) => graph.text(graph.expr(id).text).to_string(),
    };
    let (sizes, strides) = (graph.dims(tensor.shape), graph.dims(tensor.stride));
    if sizes.contains(&Dim::Static(0)) {
        return Vec::new();
    }
    let pairs = sizes.iter().zip(strides).filter(|(size, _)| **size != Dim::Static(1));
    pairs.map(|(size, stride)| (text(size), text(stride))).collect()
}

/// What is noted for recomputation stays.
pub(super) fn tags_kept(evidence: &Evidence) -> Checked {
    if !evidence.policies.demanded.tags {
        return not_demanded("that tags stay");
    }
    let noted = |graph: &Graph, id: NodeId| {
        let tags = graph.tags(id);
        let recompute = tags.and_then(|tags| tags.recompute).map(|text| graph.text(text).to_string());
        (recompute, tags.and_then(|tags| tags.ac_graph_id))
    };
    let words = |(recompute, region): &(Option<String>, Option<i64>)| {
        let region = region.map_or(String::new(), |region| format!(", region {region}"));
        format!("{}{region}", recompute.as_deref().unwrap_or("no recompute tag"))
    };
    let (before, after) = (evidence.before.graph, evidence.after.graph);
    let mut findings = Vec::new();
    for (old, new) in evidence.correspondence.survivors() {
        let (was, is) = (noted(before, old), noted(after, new));
        if was == is {
            continue;
        }
        let title = format!("{} has other tags than before", after.name(new));
        findings.push(
            evidence
                .finding("rewrite/policy-tags", Stage::After, title)
                .after_nodes(evidence, [new])
                .expected(format!("before: {}", words(&was)))
                .observed(format!("after: {}", words(&is))),
        );
    }
    Checked::Findings(findings)
}

/// A collective, told apart by what it does and whom it meets: not by its name.
fn described(side: &AnalyzedGraph, call: &CollectiveCall) -> (String, String) {
    let text = super::comm::describe(side.graph, call);
    let group = match call.group {
        GroupName::Text(name) => side.graph.world.groups.iter().find(|group| group.name == name),
        _ => None,
    };
    let ranks =
        group.filter(|group| !group.instances.is_empty()).map(|group| format!("{:?}", group.instances));
    (ranks.unwrap_or_else(|| call.group.to_string()), text)
}

/// There are the same collectives as before.
pub(super) fn collectives_kept(evidence: &Evidence) -> Checked {
    let Some(kept) = evidence.policies.demanded.collectives else {
        return not_demanded("that collectives stay");
    };
    // What a group is called says nothing, and is cut out of what is compared.
    fn of(side: &AnalyzedGraph) -> BTreeMap<String, Vec<(String, NodeId)>> {
        let mut groups: BTreeMap<String, Vec<(String, NodeId)>> = BTreeMap::new();
        for call in &side.collectives.calls {
            let (ranks, text) = described(side, call);
            let text = text.replacen(&format!(" on group {}", call.group), "", 1);
            groups.entry(ranks).or_default().push((text, call.node));
        }
        groups
    }
    let (mut old, mut new) = (of(&evidence.before), of(&evidence.after));
    if kept == Collectives::Same {
        old.values_mut().chain(new.values_mut()).for_each(|list| list.sort());
    }
    let groups: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut findings = Vec::new();
    for group in groups {
        let [was, is] = [&old, &new].map(|of| of.get(group).map_or(&[][..], Vec::as_slice));
        let text = |list: &[(String, NodeId)], at: usize| list.get(at).map(|(text, _)| text.clone());
        let Some(at) = (0..was.len().max(is.len())).find(|&at| text(was, at) != text(is, at)) else {
            continue;
        };
        let words = |list, at| text(list, at).unwrap_or_else(|| "nothing more".to_string());
        let (title, place) = match kept {
            Collectives::Same => ("there are other collectives than before", "in some order"),
            Collectives::Order => ("collectives stand in another order, or are others", "in list order"),
        };
        findings.push(
            evidence
                .finding("rewrite/policy-collectives", Stage::After, title.to_string())
                .before_nodes(evidence, was.get(at).map(|(_, node)| *node))
                .after_nodes(evidence, is.get(at).map(|(_, node)| *node))
                .fact(format!("launch {at} on {group}, {place}; {} before and {} after", was.len(), is.len()))
                .expected(format!("before: {}", words(was, at)))
                .observed(format!("after: {}", words(is, at))),
        );
    }
    Checked::Findings(findings)
}

/// Every collective is waited for exactly once.
pub(super) fn waits_once(evidence: &Evidence) -> Checked {
    if !evidence.policies.demanded.waits_once {
        return not_demanded("one wait for each collective");
    }
    let collectives = &evidence.after.collectives;
    let waits = collectives
        .calls
        .iter()
        .enumerate()
        .map(|(at, call)| (call, collectives.own_waits(evidence.after.graph, at)));
    let waited = waits.filter(|(_, waits)| waits.len() != 1);
    let name = |id: NodeId| evidence.after.graph.name(id);
    let of_launch = waited.map(|(call, waits)| {
        evidence
            .finding(
                "rewrite/policy-waits",
                Stage::After,
                format!("{} is waited for {} times", name(call.node), waits.len()),
            )
            .after_nodes(evidence, [call.node].into_iter().chain(waits.iter().copied()))
    });
    let idle = collectives.idle_waits.iter().map(|&wait| {
        evidence
            .finding("rewrite/policy-waits", Stage::After, format!("{} waits for nothing", name(wait)))
            .after_nodes(evidence, [wait])
    });
    let expected = |finding: super::Finding| {
        let observed = finding.title.clone();
        finding.expected("there is exactly one wait for each collective, and no other").observed(observed)
    };
    Checked::Findings(of_launch.chain(idle).map(expected).collect())
}

/// Every ordering edge that is new orders what nothing else does.
pub(super) fn edges_needed(evidence: &Evidence) -> Checked {
    if !evidence.policies.demanded.edges_needed {
        return not_demanded("that ordering edges are needed");
    }
    let (before, after) = (&evidence.before, &evidence.after);
    let twin = |id: NodeId| evidence.correspondence.before_of[id.index()];
    let was_there = |from: NodeId, to: NodeId| match (twin(from), twin(to)) {
        (Some(from), Some(to)) => before.edges.is_ordered(from, to),
        _ => false,
    };
    let name = |id: NodeId| after.graph.name(id);
    let mut findings = Vec::new();
    for to in after.graph.ids() {
        for &from in after.edges.ordered_before(to).iter().filter(|&&from| !was_there(from, to)) {
            let Some(way) = after.path_besides(from, to) else { continue };
            let chain: Vec<&str> = way.iter().map(|&id| name(id)).collect();
            findings.push(
                evidence
                    .finding(
                        "rewrite/policy-edges",
                        Stage::After,
                        format!("the ordering edge from {} to {} is superfluous", name(from), name(to)),
                    )
                    .after_nodes(evidence, [from, to])
                    .expected("an ordering edge that is added orders what nothing else orders")
                    .observed(format!("without it: {}", chain.join(" -> "))),
            );
        }
    }
    Checked::Findings(findings)
}
