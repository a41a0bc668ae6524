//! Why one node must come before another, in words.

use super::edges::{EdgeKind, Edges};
use crate::graph::{Graph, NodeId, Span, Value};
use std::fmt::Write;

/// How two accesses of one storage conflict.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Hazard {
    /// The second reads what the first writes.
    ReadAfterWrite,
    /// The second overwrites what the first reads.
    WriteAfterRead,
    /// The second overwrites what the first writes.
    WriteAfterWrite,
}

/// Why one node must come before another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// The second takes the value of the first as an argument.
    Data,
    /// An ordering edge of the graph.
    Ordering,
    /// Both touch one storage, and one of them writes to it.
    Storage {
        /// Which way.
        hazard: Hazard,
        /// The node whose result the storage first was.
        of: NodeId,
        /// Whether the first is the wait that ends a collective's hold on the storage.
        landed: bool,
        /// Whether they certainly touch the same bytes.
        certain: bool,
    },
    /// Both draw random numbers.
    Random {
        /// Whether both certainly do.
        certain: bool,
    },
    /// Both have an effect outside the graph.
    Effect {
        /// Whether both certainly do.
        certain: bool,
    },
    /// Both start communication on one group.
    Communication,
}

impl Origin {
    /// Whether the reason certainly holds: not so where an operator is unknown or bytes may or may not overlap.
    pub fn certain(self) -> bool {
        match self {
            Origin::Data | Origin::Ordering | Origin::Communication => true,
            Origin::Storage { certain, .. } | Origin::Random { certain } | Origin::Effect { certain } => {
                certain
            }
        }
    }

    /// The reason in words, for the nodes `before` and `after`.
    pub fn describe(self, graph: &Graph, before: NodeId, after: NodeId) -> String {
        let (first, second) = (graph.name(before), graph.name(after));
        let may = if self.certain() { "" } else { "may " };
        let verb = |word: &str| match self.certain() {
            true => format!("{word}s"),
            false => format!("may {word}"),
        };
        match self {
            Origin::Data => match argument_path(graph, after, before) {
                Some(path) => format!("{second} reads {first} ({path})"),
                None => format!("{second} reads {first}"),
            },
            Origin::Ordering => format!("an ordering edge puts {first} before {second}"),
            Origin::Storage { hazard, of, landed: true, .. } => {
                let then = match hazard {
                    Hazard::ReadAfterWrite => verb("read"),
                    _ => verb("write"),
                };
                format!(
                    "{first} ends the collective that holds the storage of {}, which {second} {then} later",
                    graph.name(of)
                )
            }
            Origin::Storage { hazard, of, .. } => {
                let of = graph.name(of);
                match hazard {
                    Hazard::ReadAfterWrite => {
                        format!("{first} {} the storage of {of} that {second} reads later", verb("write"))
                    }
                    Hazard::WriteAfterRead => {
                        format!("{first} reads the storage of {of} that {second} {} later", verb("write"))
                    }
                    Hazard::WriteAfterWrite => {
                        format!("{first} and {second} {may}both write the storage of {of}, in this order")
                    }
                }
            }
            Origin::Random { .. } => {
                format!("{first} and {second} {may}both draw random numbers, in this order")
            }
            Origin::Effect { .. } => format!("{first} and {second} {may}both have effects, in this order"),
            Origin::Communication => format!("{first} and {second} communicate on one group, in this order"),
        }
    }
}

/// Edges that know why they are there.
pub trait Origins {
    /// Why `before` must come before `after`, if there is an edge between them: the strongest reason.
    fn origin(&self, before: NodeId, after: NodeId) -> Option<Origin>;

    /// The reason in words.
    fn reason(&self, graph: &Graph, before: NodeId, after: NodeId) -> String {
        match self.origin(before, after) {
            Some(origin) => origin.describe(graph, before, after),
            None => format!("{} comes before {}", graph.name(before), graph.name(after)),
        }
    }
}

impl Origins for Edges {
    fn origin(&self, before: NodeId, after: NodeId) -> Option<Origin> {
        self.kind(before, after).map(|kind| match kind {
            EdgeKind::Data => Origin::Data,
            EdgeKind::Ordering => Origin::Ordering,
        })
    }
}

/// Where `user` first refers to `input`: `args[0]`, `args[0][2]`, `kwargs[out]`.
pub fn argument_path(graph: &Graph, user: NodeId, input: NodeId) -> Option<String> {
    let mut path = String::from("args");
    if find(graph, graph.node(user).args, input, &mut path) {
        return Some(path);
    }
    for (key, value) in graph.kwargs(user) {
        let mut path = format!("kwargs[{key}]");
        if find_value(graph, value, input, &mut path) {
            return Some(path);
        }
    }
    None
}

fn find(graph: &Graph, span: Span, input: NodeId, path: &mut String) -> bool {
    let end = path.len();
    for (i, &value) in graph.values(span).iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(path, "[{i}]");
        if find_value(graph, value, input, path) {
            return true;
        }
        path.truncate(end);
    }
    false
}

fn find_value(graph: &Graph, value: Value, input: NodeId, path: &mut String) -> bool {
    match value {
        Value::Node(node) => node == input,
        Value::List(inner) | Value::Slice(inner) | Value::Dict(inner) => find(graph, inner, input, path),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Op;

    #[test]
    fn paths_lead_through_lists_and_keywords() {
        let mut g = Graph::new("paths");
        let ids: Vec<NodeId> = ["x", "y", "z"].map(|n| g.push(n, Op::Placeholder, n)).to_vec();
        let f = g.push("f", Op::Call, "f");
        let inner = g.list(&[Value::Int(1), Value::Node(ids[1])]);
        let outer = g.list(&[inner, Value::Node(ids[0])]);
        g.node_mut(f).args = g.push_values(&[Value::Int(0), outer]);
        let key = g.intern("out");
        g.node_mut(f).kwargs = g.push_values(&[Value::Str(key), Value::Node(ids[2])]);
        let paths: Vec<_> = ids.iter().map(|&id| argument_path(&g, f, id).unwrap()).collect();
        assert_eq!(paths, ["args[1][1]", "args[1][0][1]", "kwargs[out]"]);
        assert_eq!(argument_path(&g, f, f), None);
        let edges = Edges::new(&g);
        assert_eq!(edges.reason(&g, ids[1], f), "f reads y (args[1][0][1])");
    }
}
