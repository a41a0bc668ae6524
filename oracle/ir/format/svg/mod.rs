//! A picture of a small graph, drawn without help from another program.
//!
//! Top to bottom is list order, so the picture shows the schedule. Collectives and their waits are filled by
//! kind, process groups are stripes, buckets have a heavy border and say how many tensors they hold, an
//! asynchronous value is a broad line from start to wait, ordering edges are dashed, and what is wrong is red.
//! The same graph gives the same picture, byte for byte.

mod draw;
mod layout;
mod legend;
pub(super) mod style;

use super::picture::Picture;
use crate::graph::{Graph, NodeId};

/// The most nodes that a picture shows, some pages high: beyond it nobody can read it, and a page of HTML serves better.
pub const NODE_LIMIT: usize = 80;
/// The most edges that a picture shows.
pub const EDGE_LIMIT: usize = 2000;

/// A graph is too large for a picture.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a picture of {nodes} nodes and {edges} edges cannot be read (the limit is {NODE_LIMIT} nodes and {EDGE_LIMIT} \
     edges): --html FILE shows all of it as a page, --around NODE a part, for example --around {example}"
)]
pub struct TooLarge {
    /// Nodes of the graph.
    pub nodes: usize,
    /// Edges of the graph.
    pub edges: usize,
    /// A node that is worth looking at: the first collective, else the middle one.
    pub example: String,
}

/// The picture of `graph` as an SVG document.
pub fn svg(graph: &Graph) -> Result<String, TooLarge> {
    // Counted first, so that a large graph costs nothing.
    let mut edges = graph.ordering.len();
    if graph.len() <= NODE_LIMIT {
        edges += graph.ids().map(|id| graph.inputs(id).len()).sum::<usize>();
    } else {
        graph.ids().for_each(|id| graph.for_each_input(id, &mut |_: NodeId| edges += 1));
    }
    if graph.len() > NODE_LIMIT || edges > EDGE_LIMIT {
        return Err(TooLarge { nodes: graph.len(), edges, example: example(graph) });
    }
    Ok(draw::draw(graph, &Picture::new(graph)))
}

fn example(graph: &Graph) -> String {
    let ops = crate::ops::Ops::of(graph);
    let collective =
        graph.ids().find(|&id| ops.call(graph, id).is_some_and(|info| info.collective().is_some()));
    collective
        .or_else(|| graph.ids().nth(graph.len() / 2))
        .map_or(String::new(), |id| graph.name(id).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::text;

    const EVERYTHING: &str = r#"
graph "a <mixture> & \"more\"" forward
world 4 ranks, groups dp = [0 1 | 2 3], tp = [0 2 | 1 3]
x    = input : f32[4]
late = relu(y) : f32[4]
y    = input : f32[4]
g    = all_gather(x, dp)
h    = all_reduce(x, "sum", tp)
k    = mul(x, late)
wg   = wait(g)
wh   = wait(h) after wg
s    = reduce_scatter(wg, "avg", tp)
t    = add_(wh, nowhere) : f32[4]
ws   = wait(s) after k
a2   = all_to_all(wh, [2, 2], [2, 2], dp)
w2   = wait(a2)
z    = neg(z) : f32[4]
b    = broadcast(t, 0, "other") : f32[4]
wb   = wait(b)
%"<&>" = neg(wb) {custom: "]]>"}
output (ws, w2, z, %"<&>")
cluster first = [g, h]
"#;

    fn graph(source: &str) -> Graph {
        text::parse(source).unwrap_or_else(|e| panic!("{}", e.render(None))).graph
    }

    /// The texts between tags; panics unless tags are balanced and nothing but known entities is escaped.
    fn xml_texts(svg: &str) -> Vec<String> {
        let (mut open, mut texts) = (Vec::new(), Vec::new());
        for part in svg.split('<').skip(1) {
            let (tag, text) = part.split_once('>').expect("an unclosed tag");
            let name = tag.trim_end_matches('/').split([' ', '\n']).next().unwrap();
            match name.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name), "{tag}"),
                None if !tag.ends_with('/') => open.push(name),
                None => {}
            }
            let entities = ["&amp;", "&lt;", "&gt;", "&quot;"];
            assert!(
                text.match_indices('&').all(|(i, _)| entities.iter().any(|e| text[i..].starts_with(e))),
                "{text}"
            );
            texts.push(text.to_string());
        }
        assert!(open.is_empty(), "{open:?}");
        texts
    }

    #[test]
    fn everything_is_drawn_and_told() {
        let graph = graph(EVERYTHING);
        let svg = svg(&graph).unwrap();
        let texts = xml_texts(&svg);
        let has = |text: &str| texts.iter().any(|t| t == text);
        for id in graph.ids() {
            assert!(has(&super::super::picture::escape_xml(graph.name(id))), "{} is missing", graph.name(id));
        }
        for word in
            ["group tp = [0 2 | 1 3]", "all_gather on dp", "missing: nowhere", "first", "order only", "fault"]
        {
            assert!(has(word), "{word} is missing");
        }
        // Two edges run up the list (y to late, z to itself), four values are in flight, two edges order only.
        let count = |what: &str| svg.matches(what).count();
        assert_eq!(count("marker-end=\"url(#fault)\""), 2 + 1);
        assert_eq!(count("stroke-opacity=\"0.35\""), 5 + 1);
        assert_eq!(count("marker-end=\"url(#order)\""), 2 + 1);
    }

    #[test]
    fn buckets_are_marked() {
        let before = graph(include_str!("../../../../corpus/all_gather_pair.graph"));
        assert!(!svg(&before).unwrap().contains("bucket"));
        for file in [
            include_str!("../../../../corpus/all_gather_pair.graph"),
            include_str!("../../../../corpus/reduce_scatter_pair.graph"),
        ] {
            let case = text::parse(file).unwrap();
            for (_, graphs) in case.outcome.unwrap().entries() {
                let svg = svg(&graphs.repaired).unwrap();
                assert_eq!(svg.matches(">bucket of 2<").count(), 1);
            }
        }
    }

    #[test]
    fn a_line_from_far_away_names_its_source() {
        let mut source = String::from("x0 = input : f32[4]\ny = neg(x0)\n");
        for i in 0..9 {
            source.push_str(&format!("x{} = relu(x{i})\n", i + 1));
        }
        let count = |source: &str| svg(&graph(source)).unwrap().matches(">y</text>").count();
        assert_eq!(count(&format!("{source}z = add(x9, y)\n")), 2);
        assert_eq!(count(&format!("{source}z = add(x9, x9)\n")), 1);
    }

    #[test]
    fn packing_that_is_not_taken_apart_is_no_bucket() {
        let source = "\
world 2 ranks, groups dp = [0 1]
x = input : f32[4]
y = input : f32[4]
c = cat([x, y])
s = reduce_scatter(c, \"sum\", dp)
w = wait(s)
r = relu(w)
output r
";
        assert!(!svg(&graph(source)).unwrap().contains("bucket"));
        let split = source.replace("relu(w)", "split_with_sizes(w, [2, 2])");
        assert!(svg(&graph(&split)).unwrap().contains(">bucket of 2<"));
    }

    #[test]
    fn a_picture_depends_on_the_graph_only() {
        let svg_of = |source| svg(&graph(source)).unwrap();
        assert_eq!(svg_of(EVERYTHING), svg_of(EVERYTHING));
        // Also on nothing that interning may reorder.
        let again = text::print_graph(&graph(EVERYTHING));
        assert_eq!(svg_of(&again), svg_of(EVERYTHING));
        xml_texts(&svg(&Graph::default()).unwrap());
    }

    #[test]
    fn a_large_graph_is_refused_with_advice() {
        let mut source = String::from("x0 = input : f32[4]\n");
        for i in 0..NODE_LIMIT {
            source.push_str(&format!("x{} = relu(x{i})\n", i + 1));
        }
        let error = svg(&graph(&source)).unwrap_err();
        assert_eq!((error.nodes, error.edges), (NODE_LIMIT + 1, NODE_LIMIT));
        assert!(error.to_string().contains("--around x40"), "{error}");
        assert!(!error.to_string().contains('\n'));
    }
}
