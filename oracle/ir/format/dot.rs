//! A graph for Graphviz.
//!
//! Collectives and waits are filled by kind, their border is the colour of the process group. Broad edges are
//! values in flight, dashed ones order only, red ones are faults: they do not run down the list. Clusters are
//! boxes. The text depends on the graph only.

use super::picture::{Picture, Role, Sketch, Tie, shorten};
use super::svg::style::{self, role_colours};
use crate::graph::{Graph, NodeId};
use std::fmt::Write;

/// Characters of a line of a label at most.
const LINE: usize = 40;

/// `graph` in the DOT language.
pub fn dot(graph: &Graph) -> String {
    let picture = Picture::new(graph);
    let mut text = String::from("digraph {\n");
    let _ = writeln!(text, "  label={}; labelloc=t; fontname=monospace;", quote(&graph.name));
    text.push_str("  node [shape=box style=filled fontname=monospace fontsize=10];\n");
    text.push_str("  edge [arrowsize=0.6];\n");
    for id in graph.ids() {
        let _ = writeln!(text, "  n{} [{}];", id.0, node(graph, id, &picture));
    }
    for (index, cluster) in graph.clusters.iter().enumerate() {
        let _ = write!(text, "  subgraph cluster_{index} {{ label={}; style=dashed;", quote(&cluster.name));
        for member in &cluster.members {
            let _ = write!(text, " n{};", member.0);
        }
        text.push_str(" }\n");
    }
    for &(from, to, tie) in &picture.edges {
        let group = picture.nodes[from.index()].group;
        let _ = writeln!(text, "  n{} -> n{}{};", from.0, to.0, edge(from, to, tie, group));
    }
    let missing =
        picture.nodes.iter().enumerate().flat_map(|(id, sketch)| sketch.missing.iter().map(move |m| (id, m)));
    for (index, (id, name)) in missing.enumerate() {
        let fault = style::FAULT;
        let _ = writeln!(
            text,
            "  m{index} [label={} shape=plaintext style=\"\" fontcolor=\"{fault}\"];",
            quote(name)
        );
        let _ = writeln!(text, "  m{index} -> n{id} [color=\"{fault}\"];");
    }
    text.push_str("}\n");
    text
}

fn node(graph: &Graph, id: NodeId, picture: &Picture) -> String {
    let sketch: &Sketch = &picture.nodes[id.index()];
    let colours = role_colours(sketch.role);
    let mut lines = vec![shorten(graph.name(id), LINE)];
    if sketch.call != graph.name(id) {
        lines.push(shorten(&sketch.call, LINE));
    }
    if !sketch.ty.is_empty() {
        lines.push(shorten(&sketch.ty, LINE));
    }
    lines.extend(sketch.bucket.map(|members| format!("bucket of {members}")));
    let border = sketch.group.map_or(colours.border, style::group_colour);
    let width = match (sketch.bucket, sketch.group) {
        (Some(_), _) => 5,
        (None, Some(_)) => 3,
        (None, None) => 1,
    };
    let mut text = format!(
        "label={} fillcolor=\"{}\" color=\"{border}\" fontcolor=\"{}\" penwidth={width}",
        quote(&lines.join("\n")),
        colours.fill,
        colours.text
    );
    if matches!(sketch.role, Role::Input | Role::Attribute) {
        text.push_str(" style=\"filled,rounded\"");
    }
    text
}

fn edge(from: NodeId, to: NodeId, tie: Tie, group: Option<usize>) -> String {
    let fault = from >= to;
    match tie {
        Tie::Data if fault => format!(" [color=\"{}\"]", style::FAULT),
        Tie::Data => String::new(),
        Tie::Async => {
            let colour =
                if fault { style::FAULT } else { group.map_or(style::DATA_EDGE, style::group_colour) };
            format!(" [color=\"{colour}\" penwidth=4 arrowhead=none]")
        }
        Tie::Order if fault => format!(" [style=dashed color=\"{}\"]", style::FAULT),
        Tie::Order => " [style=dashed]".to_string(),
    }
}

/// A string of the DOT language. Only its quotes need escaping; a backslash would begin one of DOT's own escapes.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => quoted.push('\u{fffd}'),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::dot;
    use crate::format::text;

    #[test]
    fn what_a_graph_says_stands_in_its_text() {
        let source = "\
graph \"a \\\"b\\\" \\\\N\"
world 2 ranks, groups dp = [0 1]
x = input : f32[4]
g = all_gather(x, dp)
y = relu(late) : f32[4]
late = neg(x)
w = wait(g) after y
z = add(w, nowhere) : f32[8]
cluster c = [g, w]
output (y, z)
";
        let text = dot(&text::parse(source).unwrap().graph);
        for line in [
            r#"label="a \"b\" \\N"; labelloc=t; fontname=monospace;"#,
            r#"subgraph cluster_0 { label="c"; style=dashed; n1; n4; }"#,
            r#"n0 -> n1;"#,
            r##"n1 -> n4 [color="#12127d" penwidth=4 arrowhead=none];"##,
            r##"n3 -> n2 [color="#d50000"];"##,
            r#"n2 -> n4 [style=dashed];"#,
            r##"m0 -> n5 [color="#d50000"];"##,
        ] {
            assert!(text.lines().any(|l| l.trim() == line), "{line} is not in\n{text}");
        }
        assert!(
            text.contains(r##"label="g\nall_gather on dp\nf32[8]" fillcolor="#8fc1f2" color="#12127d""##)
        );
    }
}
