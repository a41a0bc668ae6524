//! What crosses from forward to backward, and what goes in and out: inputs, outputs, signatures, order.

use super::super::comm::{faults_of_inputs, faults_of_waiting};
use super::super::graph::{WELL_FORMED_ID, ill_formed};
use super::super::{Checked, Code, Finding, PassKind};
use super::evidence::{BackwardInput, PartitionEvidence, Saved, ValueClass, class_of, is_tangent};
use super::records::{layout, other_layout};
use crate::analysis::topological;
use crate::graph::{Dim, Graph, NodeId, Op, Out, Value};
use crate::ops::Kind;
use crate::rules::AnalyzedGraph;
use rustc_hash::{FxHashMap, FxHashSet};

/// Both parts are graphs at all.
pub(super) fn well_formed(evidence: &PartitionEvidence) -> Checked {
    let mut findings = Vec::new();
    for (side, part) in evidence.parts() {
        if let Some(why) = evidence.joint.graph.world.contradiction(&side.graph.world) {
            let finding = evidence.finding(WELL_FORMED_ID, format!("{part}: {why}"));
            findings.push(finding.contrast("ranks and groups stay as they are", "these are others"));
        }
        for fault in ill_formed(&evidence.joint, side.faults(), PassKind::Partition) {
            findings.push(
                evidence
                    .finding(WELL_FORMED_ID, format!("{part}: {fault}"))
                    .nodes(evidence, fault.node.map(|node| side.graph.name(node)))
                    .contrast("a part is a graph", "this is none"),
            );
        }
    }
    Checked::Findings(findings)
}

/// Everything that backward needs it computes, is handed, or is given by the runtime.
pub(super) fn closed(evidence: &PartitionEvidence) -> Checked {
    const RULE: &str = "partition/bw-closed";
    let mut findings = Vec::new();
    let saved: FxHashSet<&str> = evidence.saved.iter().map(|saved| saved.name.as_str()).collect();
    let backward = evidence.backward.graph;
    for &(id, input) in &evidence.backward_inputs {
        let name = backward.name(id);
        let known = match input {
            BackwardInput::Saved => saved.contains(name),
            BackwardInput::Tangent | BackwardInput::Seed | BackwardInput::State => {
                evidence.joint.graph.find(name).is_some()
            }
            BackwardInput::Generator => true,
        };
        if known {
            continue;
        }
        let computed = match evidence.forward.graph.find(name) {
            Some(_) => "forward computes it and does not save it",
            None => "forward does not have it",
        };
        findings.push(
            evidence
                .finding(RULE, format!("backward takes {name}, which nobody hands to it"))
                .nodes(evidence, [name])
                .contrast(format!("{name} is an input of backward"), computed),
        );
    }
    Checked::Findings(findings)
}

/// What forward saves is what backward takes, in the order in which the runtime slices both.
pub(super) fn signature(evidence: &PartitionEvidence) -> Checked {
    const RULE: &str = "partition/signature-match";
    let mut findings = Vec::new();
    let backward = evidence.backward.graph;
    let mut seen: FxHashSet<&str> = FxHashSet::default();
    let mut states = 0;
    for saved in &evidence.saved {
        let name = saved.name.as_str();
        if !seen.insert(name) {
            findings.push(
                evidence
                    .finding(RULE, format!("{name} is saved twice"))
                    .nodes(evidence, [name])
                    .contrast("each saved value has one place", format!("{name} has two")),
            );
        } else if saved.class == ValueClass::Generator {
            states += 1;
        } else if let Some(input) = saved.backward {
            findings.extend(other_type(evidence, saved, input));
        } else {
            findings.push(
                evidence
                    .finding(RULE, format!("forward saves {name}, which backward does not take"))
                    .nodes(evidence, [name])
                    .contrast(format!("{name} is among the saved outputs"), "backward has no such input"),
            );
        }
    }
    let replayed = evidence.backward_inputs.iter().filter(|(id, input)| {
        *input == BackwardInput::Generator && backward.target(*id).contains("rng_state_output_")
    });
    let replayed = replayed.count();
    if replayed != states {
        let title = format!("{states} states of random generators are saved, {replayed} are taken");
        findings
            .push(evidence.finding(RULE, title).contrast("each state is handed over", "the numbers differ"));
    }
    let class_in_forward: FxHashMap<&str, ValueClass> =
        evidence.saved.iter().map(|saved| (saved.name.as_str(), saved.class)).collect();
    let out: Vec<(&str, u8)> =
        evidence.saved.iter().map(|saved| (saved.name.as_str(), forward_place(saved.class))).collect();
    let into: Vec<(&str, u8)> = evidence
        .backward_inputs
        .iter()
        .map(|&(id, input)| {
            let name = backward.name(id);
            let class = class_in_forward.get(name).copied().unwrap_or_else(|| class_of(backward, id));
            (name, backward_place(input, class, backward.target(id)))
        })
        .collect();
    let layouts = [
        ("forward's saved outputs", &out, "tensors, objects, generator states, symbols"),
        ("backward's inputs", &into, "symbols, tensors, objects, generator states, tangents, the rest"),
    ];
    for (what, list, order) in layouts {
        let unsorted = list.windows(2).find(|pair| pair[0].1 > pair[1].1);
        if let Some([first, second]) = unsorted {
            findings.push(
                evidence
                    .finding(RULE, format!("{what}: {} stands behind {}", second.0, first.0))
                    .nodes(evidence, [second.0, first.0])
                    .contrast(
                        format!("the runtime slices {what} by position: {order}"),
                        "here they are mixed",
                    ),
            );
        }
    }
    for class in [ValueClass::Tensor, ValueClass::Opaque, ValueClass::Symbol] {
        let of_class = |name: &&str| class_in_forward.get(name) == Some(&class);
        let taken: FxHashSet<&str> = into.iter().map(|entry| entry.0).collect();
        let a: Vec<&str> =
            out.iter().map(|entry| entry.0).filter(of_class).filter(|name| taken.contains(name)).collect();
        let b: Vec<&str> = into.iter().map(|entry| entry.0).filter(of_class).collect();
        if let Some((x, y)) = a.iter().zip(&b).find(|(x, y)| x != y) {
            findings.push(
                evidence
                    .finding(RULE, format!("{x} is saved where backward takes {y}"))
                    .nodes(evidence, [*x, *y])
                    .contrast(
                        "the runtime hands values over by position",
                        format!("the order is {} in forward and {} in backward", a.join(", "), b.join(", ")),
                    ),
            );
        }
    }
    let unchecked =
        |saved: &&Saved| saved.joint.is_some_and(|id| evidence.tags[id.index()].unchecked_version);
    let tensors = || evidence.saved.iter().filter(|saved| saved.class == ValueClass::Tensor);
    if let (Some(first), Some(late)) =
        (tensors().position(|saved| unchecked(&saved)), tensors().rev().find(|saved| !unchecked(saved)))
        && tensors().position(|saved| saved.name == late.name).is_some_and(|last| last > first)
    {
        let title = format!("{} stands behind a value that is saved without a version check", late.name);
        findings.push(
            evidence
                .finding(RULE, title)
                .nodes(evidence, [late.name.as_str()])
                .contrast("values with a version check come first", "the runtime would check the wrong ones"),
        );
    }
    Checked::Findings(findings)
}

fn forward_place(class: ValueClass) -> u8 {
    match class {
        ValueClass::Tensor | ValueClass::Tuple | ValueClass::Nothing => 0,
        ValueClass::Opaque => 1,
        ValueClass::Generator => 2,
        ValueClass::Symbol => 3,
    }
}

fn backward_place(input: BackwardInput, class: ValueClass, target: &str) -> u8 {
    match input {
        BackwardInput::Saved => match class {
            ValueClass::Symbol => 0,
            ValueClass::Opaque => 2,
            _ => 1,
        },
        BackwardInput::Generator if target.contains("rng_state_output_") => 3,
        BackwardInput::Tangent => 4,
        BackwardInput::Seed => 5,
        BackwardInput::State => 6,
        BackwardInput::Generator => 7,
    }
}

/// A saved value of another dtype, shape or layout than what backward takes.
fn other_type(evidence: &PartitionEvidence, saved: &Saved, input: NodeId) -> Option<Finding> {
    let (forward, backward) = (evidence.forward.graph, evidence.backward.graph);
    let [given, taken] = other_layout((forward, saved.forward), (backward, input))?;
    let sizes = |graph, id| layout(graph, id).map(|[sizes, _]| sizes);
    let is_same_size = sizes(forward, saved.forward) == sizes(backward, input);
    if is_same_size && forward.is_guessed(saved.forward) {
        return None;
    }
    Some(
        evidence
            .finding("partition/signature-match", format!("{} changes on its way to backward", saved.name))
            .nodes(evidence, [saved.name.as_str()])
            .contrast(format!("forward saves {given}"), format!("backward takes {taken}")),
    )
}

/// The calling convention: inputs and outputs of the joint graph, in its order.
pub(super) fn outputs_preserved(evidence: &PartitionEvidence) -> Checked {
    const RULE: &str = "partition/outputs-preserved";
    let (mut findings, mut doubt) = (Vec::new(), None);
    let joint = evidence.joint.graph;
    let is_flat = |graph: &Graph| super::compose::with_flat_output(graph, usize::MAX).is_none();
    for (side, part) in evidence.parts() {
        if is_flat(joint) && !is_flat(side.graph) {
            findings.push(
                evidence.finding(RULE, format!("{part} returns lists in its list of results")).contrast(
                    "the runtime takes values by position, from one list as the joint graph returns",
                    format!("{part} returns lists in it"),
                ),
            );
        }
    }
    let inputs = |graph: &Graph, wanted: &dyn Fn(NodeId) -> bool| -> Vec<String> {
        let inputs = graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder && wanted(id));
        inputs.map(|id| graph.name(id).to_string()).collect()
    };
    let for_backward = |id: NodeId| super::evidence::is_backward_only(joint, id);
    let is_tangent_of = |graph: &Graph, id: NodeId| is_tangent(graph.target(id));
    let forward = evidence.forward.graph;
    let expected = [
        (
            "forward's inputs",
            inputs(joint, &|id| !for_backward(id)),
            inputs(forward, &|id| !super::compose::is_generator_input(forward.target(id))),
        ),
        (
            "backward's tangents",
            inputs(joint, &|id| is_tangent_of(joint, id)),
            inputs(evidence.backward.graph, &|id| is_tangent_of(evidence.backward.graph, id)),
        ),
    ];
    for (what, expected, found) in expected {
        let no_backward = evidence.backward_returns.is_empty() && found.is_empty();
        if expected != found && !(what == "backward's tangents" && no_backward) {
            let differ = expected.iter().zip(&found).find(|(a, b)| a != b);
            let names = differ.map(|(a, b)| vec![a.as_str(), b.as_str()]).unwrap_or_default();
            findings.push(
                evidence
                    .finding(RULE, format!("{what} are not those of the joint graph"))
                    .nodes(evidence, names)
                    .contrast(listed(&expected), listed(&found)),
            );
        }
    }
    let nf = evidence.forward_outputs;
    let parts = [
        ("forward", &evidence.joint_returns[..nf], evidence.forward_returns.as_slice(), &evidence.forward, 0),
        (
            "backward",
            &evidence.joint_returns[nf..],
            evidence.backward_returns.as_slice(),
            &evidence.backward,
            nf,
        ),
    ];
    for (part, expected, found, side, start) in parts {
        let enough =
            if part == "forward" { found.len() >= expected.len() } else { found.len() == expected.len() };
        if !enough {
            let title = format!("{part} returns {} values; {} are expected", found.len(), expected.len());
            findings.push(evidence.finding(RULE, title).contrast(
                format!("the joint graph returns {} values there", expected.len()),
                format!("{part} returns {}", found.len()),
            ));
        }
        for (index, (&a, &b)) in expected.iter().zip(found).enumerate() {
            if !same_output(evidence, side, a, b, start + index) {
                let is_own = is_computed_anew(evidence, part, b) && matches!(a, Value::Node(_));
                let (a, b) = (describe_value(joint, a), describe_value(side.graph, b));
                if is_own && evidence.values.known().is_none() {
                    doubt.get_or_insert_with(|| {
                        format!(
                            "{part} returns {b} at position {index} in place of {a}; whether that is the same is not \
                             known"
                        )
                    });
                    continue;
                }
                findings.push(
                    evidence
                        .finding(RULE, format!("{part} returns {b} at position {index} in place of {a}"))
                        .nodes(evidence, [a.as_str(), b.as_str()])
                        .contrast(
                            format!("the joint graph returns {a} there"),
                            format!("{part} returns {b}"),
                        ),
                );
            }
        }
    }
    Checked::found(findings, doubt.map(|why| Code::ComputedOtherwise.because(why)))
}

/// Whether a part computes a value that the joint graph does not have.
fn is_computed_anew(evidence: &PartitionEvidence, part: &str, value: Value) -> bool {
    let (graph, twins) = match part {
        "forward" => (evidence.forward.graph, &evidence.of_forward),
        _ => (evidence.backward.graph, &evidence.of_backward),
    };
    matches!(value, Value::Node(id) if id.index() < graph.len()
        && graph.node(id).op == Op::Call
        && twins[id.index()].is_none())
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "there are none".to_string() } else { names.join(", ") }
}

fn describe_value(graph: &Graph, value: Value) -> String {
    match value {
        Value::Node(node) if node.index() < graph.len() => graph.name(node).to_string(),
        Value::Dangling(name) => graph.text(name).to_string(),
        Value::None => "None".to_string(),
        Value::Int(n) => n.to_string(),
        other => format!("{other:?}"),
    }
}

/// Whether a part returns what the joint graph returns: the node of that name, or an equal value. A write in place
/// that runs in backward is returned by forward as what it writes to.
fn same_output(evidence: &PartitionEvidence, side: &AnalyzedGraph, a: Value, b: Value, index: usize) -> bool {
    let joint = evidence.joint.graph;
    match (a, b) {
        (Value::Node(x), Value::Node(y)) if y.index() < side.graph.len() => {
            let (x_name, y_name) = (joint.name(x), side.graph.name(y));
            let copied = joint.target(x) == "aten.copy_.default"
                && matches!(joint.arg(x, 0), Some(Value::Node(to)) if joint.name(to) == y_name);
            let equal = || {
                let terms = evidence.terms();
                let (joint, composed) = terms.map(|(a, b)| (&a.returned, &b.returned)).unzip();
                match (joint.and_then(|list| list.get(index)), composed.and_then(|list| list.get(index))) {
                    (Some(a), Some(b)) => a.1 == b.1 && a.2 == b.2,
                    _ => false,
                }
            };
            // However they are called, what the parts return is known to be what the joint graph returns.
            let known = || evidence.values.known() == Some(true);
            x_name == y_name || copied || equal() || known()
        }
        (Value::Node(_), _) | (_, Value::Node(_)) => false,
        (Value::Dangling(_), _) | (_, Value::Dangling(_)) => false,
        _ => describe_value(joint, a) == describe_value(side.graph, b),
    }
}

/// Only tensors, objects and symbols are saved.
pub(super) fn saved_kinds(evidence: &PartitionEvidence) -> Checked {
    const RULE: &str = "partition/saved-kinds";
    let (mut findings, mut unknown) = (Vec::new(), None);
    let forward = evidence.forward.graph;
    for saved in &evidence.saved {
        let name = saved.name.as_str();
        let what = match saved.class {
            _ if forward.node(saved.forward).out == Out::Absent => {
                unknown
                    .get_or_insert_with(|| format!("{name} is saved, and nothing is recorded of what it is"));
                continue;
            }
            ValueClass::Tuple => "a tuple",
            ValueClass::Nothing => "no value",
            ValueClass::Symbol if only_asserted(evidence, saved) => "a condition that is only asserted",
            _ => continue,
        };
        findings.push(
            evidence
                .finding(RULE, format!("{name} is saved, which is {what}"))
                .nodes(evidence, [name])
                .contrast("autograd saves tensors, objects and symbols", format!("{name} is {what}")),
        );
    }
    let constants = evidence.forward_returns.iter().skip(evidence.forward_outputs);
    for value in constants.filter(|value| !matches!(value, Value::Node(_) | Value::Dangling(_))) {
        findings.push(
            evidence
                .finding(RULE, format!("{} is saved", describe_value(forward, *value)))
                .contrast("a saved value is the result of a node", "this is a constant"),
        );
    }
    Checked::found(findings, unknown.map(|why| Code::NotRecorded.because(why)))
}

fn only_asserted(evidence: &PartitionEvidence, saved: &Saved) -> bool {
    let Some(id) = saved.joint else { return false };
    let side = &evidence.joint;
    let users = side.edges.users(id);
    matches!(side.graph.node(id).out, Out::SymBool(_))
        && !users.is_empty()
        && users
            .iter()
            .all(|&user| side.ops.call(side.graph, user).is_some_and(|info| info.kind == Kind::Assert))
}

/// Every symbol in the sizes of backward's inputs is bound by an input.
pub(super) fn symbols_bound(evidence: &PartitionEvidence) -> Checked {
    let backward = evidence.backward.graph;
    if !backward.has_expressions() {
        return Checked::Findings(Vec::new());
    }
    let joint = evidence.joint.graph;
    let bound: FxHashSet<&str> =
        evidence.backward_inputs.iter().filter_map(|&(id, _)| bare_symbol(backward, id)).collect();
    let bindable: FxHashMap<&str, NodeId> = joint
        .ids()
        .rev()
        .filter(|&id| {
            let makes = evidence.joint.ops.call(joint, id).is_some_and(|info| info.kind == Kind::Item);
            joint.node(id).op == Op::Placeholder || makes
        })
        .filter_map(|id| Some((bare_symbol(joint, id)?, id)))
        .collect();
    let mut findings = Vec::new();
    let mut told: FxHashSet<&str> = FxHashSet::default();
    for &(id, input) in &evidence.backward_inputs {
        if !matches!(input, BackwardInput::Saved | BackwardInput::Tangent) {
            continue;
        }
        for symbol in symbols_in(backward, id) {
            if let Some(&binder) = bindable.get(symbol)
                && !bound.contains(symbol)
                && told.insert(symbol)
            {
                let (name, binder) = (backward.name(id), joint.name(binder));
                findings.push(
                    evidence
                        .finding("partition/symbols-bound", format!("{symbol} is not handed to backward"))
                        .nodes(evidence, [name, binder])
                        .contrast(
                            format!("the size of {name} depends on {symbol}, which {binder} gives"),
                            format!("{binder} is no input of backward"),
                        ),
                );
            }
        }
    }
    Checked::Findings(findings)
}

/// The symbols in the sizes and strides of a node's tensor, or in its value where that is computed from symbols.
fn symbols_in(graph: &Graph, id: NodeId) -> Vec<&str> {
    let dims = graph.tensor_of(id).into_iter();
    let dims = dims.flat_map(|tensor| graph.dims(tensor.shape).iter().chain(graph.dims(tensor.stride)));
    let sizes = dims.filter_map(|&dim| if let Dim::Symbolic(expr) = dim { Some(expr) } else { None });
    let value = match graph.node(id).out {
        Out::SymInt(expr) if bare_symbol(graph, id).is_none() => Some(expr),
        _ => None,
    };
    sizes.chain(value).flat_map(|expr| symbols_of(graph.text(graph.expr(expr).text))).collect()
}

/// The symbol that a node's value is.
fn bare_symbol(graph: &Graph, id: NodeId) -> Option<&str> {
    let Out::SymInt(expr) = graph.node(id).out else { return None };
    let text = graph.text(graph.expr(expr).text);
    symbols_of(text).next().filter(|&symbol| symbol == text)
}

/// The names in an expression that can be symbols.
fn symbols_of(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| {
        let is_symbol = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
        word.strip_prefix(['s', 'u', 'z']).is_some_and(is_symbol)
    })
}

/// Both lists are in order.
pub(super) fn order_valid(evidence: &PartitionEvidence) -> Checked {
    const RULE: &str = "order/bw-order-valid";
    let mut findings = Vec::new();
    for (side, part) in evidence.parts() {
        for violation in topological::violations(side.graph, &side.edges) {
            let name = side.graph.name(violation.node());
            findings.push(
                evidence
                    .finding(RULE, format!("{part}: {}", violation.describe(side.graph)))
                    .nodes(evidence, [name])
                    .contrast("the list is what is executed", "it is not in order"),
            );
        }
        if evidence.config.promises.getitems_raised {
            findings.extend(strayed_items(evidence, side, part));
        }
    }
    Checked::Findings(findings)
}

/// Items that do not stand behind their parent.
fn strayed_items(evidence: &PartitionEvidence, side: &AnalyzedGraph, part: &str) -> Vec<Finding> {
    let graph = side.graph;
    let mut findings = Vec::new();
    let mut last: Option<NodeId> = None;
    for id in graph.ids() {
        match super::compose::item_of(graph, id) {
            // Items of an input stand behind the inputs.
            Some((parent, _)) if graph.node(parent).op == Op::Placeholder => {}
            Some((parent, _)) if last != Some(parent) => findings.push(
                evidence
                    .finding("order/bw-order-valid", format!("{part}: {} strays", graph.name(id)))
                    .nodes(evidence, [graph.name(id), graph.name(parent)])
                    .contrast(
                        "an item stands directly behind what it is an item of",
                        format!("{} is not behind {}", graph.name(id), graph.name(parent)),
                    ),
            ),
            Some(_) => {}
            None => last = Some(id),
        }
    }
    findings
}

/// What is still in flight is not used, and does not cross.
pub(super) fn no_unwaited_crossing(evidence: &PartitionEvidence) -> Checked {
    let mut findings = used_in_flight(evidence);
    let side = &evidence.forward;
    let in_joint: FxHashSet<&str> = evidence
        .joint_returns
        .iter()
        .filter_map(
            |value| if let Value::Node(id) = value { Some(evidence.joint.graph.name(*id)) } else { None },
        )
        .collect();
    for (index, value) in evidence.forward_returns.iter().enumerate() {
        let Value::Node(id) = *value else { continue };
        if id.index() >= side.graph.len() || side.collectives.launch_of_value(id).is_none() {
            continue;
        }
        let name = side.graph.name(id);
        let synchronous = side.ops.call(side.graph, id).is_some_and(|info| {
            matches!(info.kind, Kind::Collective(crate::ops::Collective::ShardDimAllToAll))
        });
        let is_output = index < evidence.forward_outputs;
        if synchronous || (is_output && in_joint.contains(name)) {
            continue;
        }
        let what = if is_output { "returned" } else { "saved" };
        findings.push(
            evidence
                .finding(
                    "comm/no-unwaited-crossing",
                    format!("{name} is {what} before anybody waited for it"),
                )
                .nodes(evidence, [name])
                .contrast(
                    "what leaves the forward graph is complete",
                    format!("{name} is the result of communication that may still be going on"),
                ),
        );
    }
    Checked::Findings(findings)
}

/// Readers of a result that nobody waited for, unless they do so in the joint graph.
fn used_in_flight(evidence: &PartitionEvidence) -> Vec<Finding> {
    let joint = evidence.joint.graph;
    let excused: FxHashSet<&str> =
        faults_of_waiting(&evidence.joint).into_iter().map(|fault| joint.name(fault.node)).collect();
    let mut findings = Vec::new();
    if let Some(composed) = &evidence.composed {
        for fault in faults_of_inputs(&evidence.joint, composed) {
            let names = fault.nodes.iter().map(|&node| composed.graph.name(node));
            findings.push(
                evidence
                    .finding("comm/no-unwaited-crossing", fault.title)
                    .nodes(evidence, names)
                    .contrast(fault.expected, fault.observed),
            );
        }
    }
    for (side, part) in evidence.parts() {
        for fault in faults_of_waiting(side) {
            let name = side.graph.name(fault.node);
            // Waits for values from elsewhere are judged where these leave forward, and to wait again is no use.
            if matches!(fault.kind, "idle" | "twice") || excused.contains(name) {
                continue;
            }
            let names = fault.nodes.iter().map(|&node| side.graph.name(node));
            findings.push(
                evidence
                    .finding("comm/no-unwaited-crossing", format!("{part}: {}", fault.title))
                    .nodes(evidence, names)
                    .contrast(fault.expected, fault.observed),
            );
        }
    }
    findings
}
