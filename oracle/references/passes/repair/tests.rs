use super::*;
use crate::graph::Value;
use proptest::prelude::*;

/// A graph of calls `n0, n1, ...`; `uses[i]` are the nodes that node `i` refers to, the even ones at the top
/// level and the odd ones in a nested list.
fn graph_of(uses: &[Vec<usize>]) -> Graph {
    let mut graph = Graph::new("g");
    for i in 0..uses.len() {
        graph.push(&format!("n{i}"), Op::Call, "f");
    }
    for (i, inputs) in uses.iter().enumerate() {
        let mut args = Vec::new();
        for (k, &input) in inputs.iter().enumerate() {
            let node = Value::Node(NodeId(input as u32));
            args.push(if k % 2 == 0 { node } else { graph.list(&[Value::Int(0), node]) });
        }
        let args = graph.push_values(&args);
        graph.node_mut(NodeId(i as u32)).args = args;
    }
    graph
}

fn names(graph: &Graph) -> String {
    graph.ids().map(|id| graph.name(id)).collect::<Vec<_>>().join(" ")
}

/// The rule, read aloud: a list of names moved about by hand.
fn by_hand(uses: &[Vec<usize>]) -> Option<Vec<usize>> {
    let n = uses.len();
    let mut list: Vec<usize> = (0..n).collect();
    let mut pending: Vec<usize> = (0..n).rev().collect();
    let mut ready: Vec<usize> = Vec::new();
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); n];
    let mut cursor: Option<usize> = None;
    while let Some(node) = pending.pop() {
        let missing: Vec<usize> = uses[node].iter().copied().filter(|d| !ready.contains(d)).collect();
        if let Some(&dep) = missing.last() {
            waiting[dep].push(node);
            continue;
        }
        ready.push(node);
        if let Some(cursor) = cursor {
            let at = list.iter().position(|&x| x == cursor)?;
            if list.get(at + 1) != Some(&node) {
                list.retain(|&x| x != node);
                let at = list.iter().position(|&x| x == cursor)?;
                list.insert(at + 1, node);
            }
        }
        cursor = Some(node);
        let woken = std::mem::take(&mut waiting[node]);
        pending.extend(woken.into_iter().rev());
    }
    (ready.len() == n).then_some(list)
}

#[test]
fn the_worked_example() {
    // A, B, C, D: A and B use D, C uses A. Kahn's algorithm would give D A B C.
    let graph = graph_of(&[vec![3], vec![3], vec![0], vec![]]);
    assert_eq!(names(&stable_topological_sort(&graph).unwrap()), "n3 n0 n2 n1");
}

#[test]
fn ordering_edges_order_and_the_output_is_an_ordinary_node() {
    let mut graph = graph_of(&[vec![], vec![], vec![]]);
    graph.node_mut(NodeId(0)).op = Op::Output;
    graph.ordering.push(OrderingEdge { before: NodeId(2), after: NodeId(1) });
    assert_eq!(names(&stable_topological_sort(&graph).unwrap()), "n0 n2 n1");
    let extra = [OrderingEdge { before: NodeId(1), after: NodeId(0) }];
    assert_eq!(names(&stable_topological_sort_with(&graph, &extra).unwrap()), "n2 n1 n0");
    assert_eq!(first_violation(&graph).unwrap().origin, Origin::Ordering);
}

#[test]
fn extra_edges_are_looked_at_first() {
    // n0 uses n1 and must follow n2: it waits for n2 first, then for n1.
    let graph = graph_of(&[vec![1], vec![], vec![], vec![1]]);
    let extra = [OrderingEdge { before: NodeId(2), after: NodeId(0) }];
    assert_eq!(names(&stable_topological_sort_with(&graph, &extra).unwrap()), "n1 n2 n0 n3");
}

#[test]
fn a_cycle_is_told_with_the_origin_of_each_edge() {
    let mut graph = graph_of(&[vec![2, 1], vec![0], vec![], vec![3]]);
    graph.node_mut(NodeId(3)).args = crate::graph::Span::EMPTY;
    graph.ordering.push(OrderingEdge { before: NodeId(3), after: NodeId(2) });
    let key = graph.intern("out");
    graph.node_mut(NodeId(3)).kwargs = graph.push_values(&[Value::Str(key), Value::Node(NodeId(2))]);
    let cycle = stable_topological_sort(&graph).unwrap_err();
    assert_eq!(cycle.to_string(), "no order exists: n1 reads n0 (args[0]); n0 reads n1 (args[1][1])");
    graph.node_mut(NodeId(0)).args = crate::graph::Span::EMPTY;
    let cycle = stable_topological_sort(&graph).unwrap_err();
    assert_eq!(
        cycle.to_string(),
        "no order exists: n3 reads n2 (kwargs[out]); an ordering edge puts n3 before n2"
    );
    graph.ordering.clear();
    let extra = [OrderingEdge { before: NodeId(3), after: NodeId(3) }];
    let cycle = stable_topological_sort_with(&graph, &extra).unwrap_err();
    assert_eq!(cycle.to_string(), "no order exists: an extra edge puts n3 before n3");
}

#[test]
fn a_region_keeps_its_place() {
    // n1 n2 n3 are sorted among themselves; n0's use of n4 and n2's use of n5 are none of their business.
    let graph = graph_of(&[vec![4], vec![3], vec![5], vec![2], vec![], vec![]]);
    let mut editor = Editor::new(&graph);
    sort_region(&mut editor, &mut Sorter::default(), &[1, 2, 3].map(NodeId)).unwrap();
    assert_eq!(names(&editor.finish()), "n0 n2 n3 n1 n4 n5");
}

#[test]
fn long_chains_and_wide_nodes_take_linear_time() {
    // Each node uses the next one, and the first uses all of them in list order: a rescan would be quadratic.
    let n = 200_000;
    let mut uses: Vec<Vec<usize>> = (0..n).map(|i| if i + 1 < n { vec![i + 1] } else { vec![] }).collect();
    uses[0] = (1..n).collect();
    let sorted = stable_topological_sort(&graph_of(&uses)).unwrap();
    assert_eq!(sorted.name(NodeId(0)), format!("n{}", n - 1));
    assert_eq!(first_violation(&sorted), None);
    // One ring through all nodes.
    let ring: Vec<Vec<usize>> = (0..n).map(|i| vec![(i + n - 1) % n]).collect();
    assert_eq!(stable_topological_sort(&graph_of(&ring)).unwrap_err().edges.len(), n);
}

/// The length of the shortest cycle, by a search from every node.
fn girth(uses: &[Vec<usize>]) -> Option<usize> {
    (0..uses.len())
        .filter_map(|root| {
            let mut distance = vec![usize::MAX; uses.len()];
            let mut queue = std::collections::VecDeque::from([(root, 0)]);
            while let Some((node, steps)) = queue.pop_front() {
                for &next in &uses[node] {
                    if next == root {
                        return Some(steps + 1);
                    }
                    if distance[next] == usize::MAX {
                        distance[next] = steps + 1;
                        queue.push_back((next, steps + 1));
                    }
                }
            }
            None
        })
        .min()
}

/// Random references among `n` nodes. With `rank`, node `i` may only use nodes of a lower random rank, so the
/// graph has no cycle but the list is shuffled.
fn uses(acyclic: bool) -> impl Strategy<Value = Vec<Vec<usize>>> {
    (1usize..14).prop_flat_map(move |n| {
        let rank = Just((0..n).collect::<Vec<usize>>()).prop_shuffle();
        let raw = prop::collection::vec(prop::collection::vec(0..n, 0..4), n);
        (rank, raw).prop_map(move |(rank, mut raw)| {
            if acyclic {
                for (i, inputs) in raw.iter_mut().enumerate() {
                    inputs.retain(|&j| rank[j] < rank[i]);
                }
            }
            raw
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_order_is_the_rule_read_aloud(uses in uses(true)) {
        let graph = graph_of(&uses);
        let expected: Vec<NodeId> = by_hand(&uses).unwrap().into_iter().map(|i| NodeId(i as u32)).collect();
        prop_assert_eq!(stable_order(&graph).unwrap(), expected);
        let sorted = stable_topological_sort(&graph).unwrap();
        prop_assert_eq!(first_violation(&sorted), None);
        prop_assert_eq!(stable_order(&sorted).unwrap(), sorted.ids().collect::<Vec<_>>());
    }

    #[test]
    fn distinct_inputs_are_the_only_difference_of_the_variant(uses in uses(true)) {
        let mut once = uses.clone();
        for inputs in &mut once {
            let mut seen = Vec::new();
            inputs.retain(|i| !seen.contains(i) && { seen.push(*i); true });
        }
        let expected: Vec<NodeId> = by_hand(&once).unwrap().into_iter().map(|i| NodeId(i as u32)).collect();
        prop_assert_eq!(stable_order_with(&graph_of(&uses), &[]).unwrap(), expected.clone());
        // References stated as extra edges instead: the same order.
        let extra: Vec<OrderingEdge> = (0..once.len())
            .flat_map(|i| once[i].iter().map(move |&j| (j, i)))
            .map(|(j, i)| OrderingEdge { before: NodeId(j as u32), after: NodeId(i as u32) })
            .collect();
        let bare = graph_of(&vec![Vec::new(); uses.len()]);
        prop_assert_eq!(stable_order_with(&bare, &extra).unwrap(), expected.clone());
        // The whole list as a region.
        let mut editor = Editor::new(&graph_of(&uses));
        let list = editor.list();
        sort_region(&mut editor, &mut Sorter::default(), &list).unwrap();
        prop_assert_eq!(editor.list(), expected);
    }

    #[test]
    fn a_cycle_is_a_shortest_one(uses in uses(false)) {
        let graph = graph_of(&uses);
        match stable_order(&graph) {
            Ok(_) => prop_assert_eq!(girth(&uses), None),
            Err(cycle) => {
                prop_assert_eq!(Some(cycle.edges.len()), girth(&uses));
                for (i, edge) in cycle.edges.iter().enumerate() {
                    prop_assert!(uses[edge.to.index()].contains(&edge.from.index()));
                    prop_assert_eq!(edge.to, cycle.edges[(i + 1) % cycle.edges.len()].from);
                }
            }
        }
    }
}
