//! A part of a graph that is small enough to look at.

use crate::analysis::Edges;
use crate::graph::{Editor, Graph, NodeId, Op, Span};

/// The nodes at most `radius` edges away from `node`, whatever way the edges run, in list order. What they take
/// from outside stands there as an input with its name and type; what outside takes from them is not shown.
pub fn window(graph: &Graph, node: NodeId, radius: usize) -> Graph {
    let edges = Edges::new(graph);
    let mut near = vec![false; graph.len()];
    near[node.index()] = true;
    let mut rim = vec![node];
    for _ in 0..radius {
        let mut next = Vec::new();
        for id in rim {
            for neighbour in edges.predecessors(id).chain(edges.successors(id)) {
                if !std::mem::replace(&mut near[neighbour.index()], true) {
                    next.push(neighbour);
                }
            }
        }
        rim = next;
        if rim.is_empty() {
            break;
        }
    }
    let mut needed = vec![false; graph.len()];
    for id in graph.ids().filter(|id| near[id.index()]) {
        graph.for_each_input(id, &mut |input: NodeId| needed[input.index()] = true);
    }
    let mut editor = Editor::new(graph);
    for id in graph.ids().filter(|id| !near[id.index()]) {
        if !needed[id.index()] {
            editor.erase(id);
            continue;
        }
        let name = graph.name(id);
        let target = editor.graph_mut().intern_target(name);
        let node = editor.graph_mut().node_mut(id);
        (node.op, node.target) = (Op::Placeholder, target);
        (node.args, node.kwargs) = (Span::EMPTY, Span::EMPTY);
    }
    editor.finish()
}

#[cfg(test)]
mod tests {
    use super::window;
    use crate::format::text;

    fn around(source: &str, name: &str, radius: usize) -> String {
        let case = text::parse(source).unwrap();
        let node = case.graph.find(name).unwrap();
        text::print_graph(&window(&case.graph, node, radius))
    }

    const CHAIN: &str = "\
x = input: f32[4]
a = relu(x): f32[4]
b = neg(a): f32[4]
c = add(b, x): f32[4] after a
d = abs(c): f32[4]
output d
";

    #[test]
    fn what_is_near_is_kept_and_its_inputs_stand_for_the_rest() {
        assert_eq!(around(CHAIN, "b", 0), "a = input : f32[4]\nb = neg(a): f32[4]\n");
        assert_eq!(
            around(CHAIN, "b", 1),
            "x = input    : f32[4]\na = relu(x)  : f32[4]\nb = neg(a)   : f32[4]\nc = add(b, x): f32[4] after a\n"
        );
        // Far enough is everything.
        assert_eq!(around(CHAIN, "b", 9), text::print(&text::parse(CHAIN).unwrap()));
    }
}
