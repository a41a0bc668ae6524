//! For each rule a schedule that it accepts, one that it rejects, and the graph judged against itself.

use super::*;
use crate::format::text;
use crate::graph::{Graph, NodeId, Op};
use crate::rules::Budget;
use crate::simulate::Estimates;

fn graph(source: &str) -> Graph {
    text::parse(source).unwrap_or_else(|e| panic!("{}", e.render(None))).graph
}

/// The graph with its operations in the order of these names.
fn reordered(graph: &Graph, names: &str) -> Graph {
    let find = |name: &str| graph.find(name).unwrap_or_else(|| panic!("{name}"));
    let inputs = graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder);
    let outputs = graph.ids().filter(|&id| graph.node(id).op == Op::Output);
    let order: Vec<NodeId> = inputs.chain(names.split_whitespace().map(find)).chain(outputs).collect();
    graph.clone().reordered(&order)
}

/// The rules that an order breaks, each once.
fn broken(before: &Graph, after: &Graph, promises: Promises) -> Vec<&'static str> {
    let (findings, _) = check_all(&Evidence::new(before, after, promises));
    let mut rules: Vec<_> = findings.iter().flat_map(Finding::all).map(|finding| finding.rule).collect();
    rules.dedup();
    rules
}

fn told(finding: &Finding) -> Vec<String> {
    let mut lines = vec![finding.title.clone()];
    lines.extend(finding.facts.clone());
    lines.extend(finding.expected.clone());
    lines.extend(finding.observed.clone());
    lines
}

const HEAD: &str = "world 4 ranks, groups dp = [0 1 | 2 3], all = [0 1 2 3]
arg0 = input : f32[4]
arg1 = input : f32[4]
";

fn everything() -> Graph {
    graph(&format!(
        "{HEAD}a = relu(arg0)
r = rand([4])
k = neg(a)
m = relu_(a)
g = all_gather(arg1, dp)
w = wait(g)
c = relu(w)
s = reduce_scatter(m, 'sum', all)
q = rand([4])
x = wait(s)
d = relu(arg0) after c
output (k, c, x, r, q, d)"
    ))
}

#[test]
fn a_graph_is_a_schedule_of_itself() {
    let graph = everything();
    let promises = Promises {
        peak: Some(0.0),
        exposed: Some(Budget::Factor(1.0)),
        exposed_gather: Some(1.0),
        displacement: Some(0.0),
        in_flight: Some(1),
        fsdp_in_flight: Some(1),
        one_order: true,
        ..Promises::default()
    };
    let (findings, statuses) = check_all(&Evidence::new(&graph, &graph, promises));
    assert_eq!(findings, []);
    for (id, status) in statuses {
        assert!(matches!(status, RuleStatus::Holds | RuleStatus::NotChecked(_)), "{id}: {status:?}");
    }
    let ids: std::collections::BTreeSet<_> = CATALOGUE.iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), CATALOGUE.len());
}

#[test]
fn a_better_order_is_accepted() {
    let graph = everything();
    let after = reordered(&graph, "g a k m s r w c x q d");
    assert_eq!(broken(&graph, &after, Promises::default()), Vec::<&str>::new());
}

#[test]
fn each_kind_of_order_has_its_rule() {
    let graph = everything();
    let cases = [
        ("k a m g r w c s q x d", "order/producer-before-reader"),
        ("a q k m g w c s r x d", "order/keep-ordering-edges"),
        ("a r m k g w c s q x d", "order/keep-ordering-edges"),
        ("a r d k m g w c s q x", "order/keep-ordering-edges"),
        ("a r k m g c w s q x d", "order/producer-before-reader"),
        ("a r k g w c s m q x d", "comm/in-flight-untouched"),
    ];
    for (names, rule) in cases {
        let after = reordered(&graph, names);
        let rules = broken(&graph, &after, Promises::default());
        assert!(rules.contains(&rule), "{names}: {rules:?}");
    }
    // Another order on one group, seen from one rank only, is in doubt.
    let two = self::graph(&format!(
        "{HEAD}g = all_gather(arg0, dp)\nh = all_gather(arg1, dp)\nv = wait(g)\nw = wait(h)\noutput (v, w)"
    ));
    let after = reordered(&two, "h g v w");
    let (findings, statuses) = check_all(&Evidence::new(&two, &after, Promises::default()));
    assert_eq!(findings, []);
    let status =
        statuses.into_iter().find(|(id, _)| *id == "comm/collective-order-aligned").map(|(_, status)| status);
    assert_eq!(
        status,
        Some(RuleStatus::Undecided(crate::rules::Code::OneRankSeen.because(
            "launch 0 on dp was g and is h; from one rank it cannot be seen whether all ranks decide so"
        )))
    );
}

#[test]
fn the_write_after_read_is_told() {
    let graph = everything();
    let after = reordered(&graph, "a r m k g w c s q x d");
    let (findings, _) = check_all(&Evidence::new(&graph, &after, Promises::default()));
    assert_eq!(
        told(&findings[0]),
        [
            "m now runs before k",
            "k reads the storage of a that m writes later",
            "k stays before m",
            "after, m is at #4 and k is at #5",
        ]
    );
}

#[test]
fn nodes_are_neither_lost_nor_edited() {
    let before = everything();
    let lost = reordered(&before, "a r k m g w c s q x");
    assert_eq!(broken(&before, &lost, Promises::default()), ["order/permutation"]);
    let edited = graph(&text::print_graph(&before).replace("= neg(a)", "= abs(a)"));
    assert_eq!(broken(&before, &edited, Promises::default()), ["order/permutation"]);
    let mut unordered = before.clone();
    unordered.ordering.clear();
    assert_eq!(broken(&before, &unordered, Promises::default()), ["order/keep-ordering-edges"]);
}

#[test]
fn groups_stand_together() {
    let grouped = graph(&format!(
        "{HEAD}a = relu(arg0)\nb = relu(arg1)\nc = neg(arg0)\noutput (a, b, c)\ncluster pair = [a, b]"
    ));
    assert_eq!(broken(&grouped, &grouped, Promises::default()), Vec::<&str>::new());
    let apart = reordered(&grouped, "a c b");
    let (findings, _) = check_all(&Evidence::new(&grouped, &apart, Promises::default()));
    assert_eq!(
        told(&findings[0]),
        [
            "c stands between a and b of group pair",
            "nothing must come between them",
            "the members of a group stand together",
            "a is at #2 and b at #4",
        ]
    );
}

#[test]
fn limits_and_budgets() {
    let before = graph(&format!(
        "{HEAD}g = all_gather(arg0, dp)\nv = wait(g)\na = relu(v)\nb = amax(a, [0], True)\nh = all_gather(arg1, dp)\nw = wait(h)
d = relu(w)\noutput (b, d)"
    ));
    let after = reordered(&before, "g h v w a b d");
    let rules = |promises: Promises| broken(&before, &after, promises);
    assert_eq!(rules(Promises { in_flight: Some(1), ..Promises::default() }), ["comm/in-flight-limit"]);
    assert_eq!(rules(Promises { in_flight: Some(2), ..Promises::default() }), Vec::<&str>::new());
    assert_eq!(rules(Promises { peak: Some(0.1), ..Promises::default() }), ["schedule/peak-within-budget"]);
    assert_eq!(rules(Promises { peak: Some(1.0), ..Promises::default() }), Vec::<&str>::new());
    // Each rank has its own budget, and one order for all ranks keeps that of each.
    let of_ranks = |ranks: &[u32], peaks: &[f64]| {
        let promises = Promises { peak: Some(0.1), peaks: peaks.to_vec(), ..Promises::default() };
        let evidence = Evidence::per_rank(&[(ranks.to_vec(), &before, &after)], promises);
        check_all(&evidence).0.len()
    };
    assert_eq!((of_ranks(&[], &[1.0, 0.1]), of_ranks(&[], &[1.0, 1.0])), (1, 0));
    assert_eq!((of_ranks(&[0], &[1.0, 0.1]), of_ranks(&[1], &[1.0, 0.1])), (0, 1));
    assert_eq!((of_ranks(&[2], &[1.0, 0.1]), of_ranks(&[0, 2], &[1.0, 0.1])), (0, 0));
    assert_eq!((of_ranks(&[], &[1.0, 1.0, 1.0, 1.0, 0.1]), of_ranks(&[0, 1], &[1.0, 0.1])), (0, 1));
    assert_eq!(rules(Promises { displacement: Some(0.1), ..Promises::default() }), ["schedule/displacement"]);
    assert_eq!(rules(Promises { displacement: Some(0.25), ..Promises::default() }), Vec::<&str>::new());
    // Back again more is exposed.
    let estimates = Estimates::table([("g", 1e-3), ("h", 1e-3), ("a", 2e-3), ("b", 0.0), ("d", 0.0)]);
    let exposed = Promises { exposed: Some(Budget::Factor(1.0)), estimates, ..Promises::default() };
    assert_eq!(broken(&before, &after, exposed.clone()), Vec::<&str>::new());
    let hidden = reordered(&before, "g v h a b w d");
    assert_eq!(broken(&before, &hidden, exposed.clone()), Vec::<&str>::new());
    assert_eq!(broken(&hidden, &before, exposed.clone()), ["schedule/exposed-time"]);
    let gather = |seconds| Promises { exposed: None, exposed_gather: Some(seconds), ..exposed.clone() };
    assert_eq!(broken(&before, &hidden, gather(2e-3)), Vec::<&str>::new());
    assert_eq!(broken(&before, &hidden, gather(5e-4)), ["comm/no-exposed-gather"]);
}

#[test]
fn ranks_that_disagree() {
    let before = graph(&format!(
        "{HEAD}g = all_gather(arg0, dp)\nh = all_gather(arg1, dp)\nv = wait(g)\nw = wait(h)\noutput (v, w)"
    ));
    let other = reordered(&before, "h g v w");
    let ranks = [(vec![0, 2, 3], &before, &before), (vec![1], &before, &other)];
    let (findings, _) = check_all(&Evidence::per_rank(&ranks, Promises::default()));
    assert_eq!(findings.len(), 1);
    assert_eq!(
        told(&findings[0]),
        [
            "ranks 0 and 1 disagree on group dp",
            "on rank 1",
            "launch 0 on process group dp (the first is 0)",
            "rank 0 launches g",
            "rank 1 launches h: the two are taken for one collective",
        ]
    );
    let mut evidence = Evidence::new(&before, &before, Promises::default());
    evidence.noisy = vec![(1, other.ids().map(|id| other.name(id).to_string()).collect())];
    evidence.again = vec![("run again".into(), other.ids().map(|id| other.name(id).to_string()).collect())];
    evidence.expected_orders = vec![other.ids().map(|id| other.name(id).to_string()).collect()];
    let (findings, _) = check_all(&evidence);
    let rules: Vec<&str> = findings.iter().flat_map(Finding::all).map(|finding| finding.rule).collect();
    assert_eq!(rules, ["schedule/deterministic", "schedule/rank-noise", "schedule/position-equal-reference"]);
}

/// What a rank computes when is its own business, unless one order is promised; what it launches when is not.
#[test]
fn ranks_that_estimate_otherwise() {
    let before = graph(&format!(
        "{HEAD}g = all_gather(arg0, dp)\nh = all_reduce(arg1, 'sum', all)\na = relu(arg0)\nv = wait(g)\nw = wait(h)\n\
         output (v, w, a)"
    ));
    let broken = |order: &str, one_order: bool| {
        let mut evidence = Evidence::new(&before, &before, Promises { one_order, ..Promises::default() });
        let other = reordered(&before, order);
        evidence.noisy = vec![(1, other.ids().map(|id| other.name(id).to_string()).collect())];
        let (findings, _) = check_all(&evidence);
        findings.iter().flat_map(Finding::all).map(|finding| finding.rule).collect::<Vec<_>>()
    };
    for one_order in [false, true] {
        assert_eq!(broken("g h a v w", one_order), [""; 0]);
        // Launches on two groups, each of which has one.
        assert_eq!(broken("h g a v w", one_order), ["schedule/rank-noise"]);
    }
    assert_eq!(broken("g h w v a", false), [""; 0]);
    assert_eq!(broken("g h w v a", true), ["schedule/rank-order"]);
}

/// Two groups over the same ranks, crossed: apart they pass each other, waited for at once they do not.
#[test]
fn ranks_that_wait_for_each_other() {
    let before = graph(&format!(
        "{HEAD}g = all_gather(arg0, dp)\nh = all_reduce(arg1, 'sum', all)\nv = wait(g)\nw = wait(h)\noutput (v, w)"
    ));
    let crossed = reordered(&before, "h g v w");
    let ranks = [(vec![0, 2], &before, &before), (vec![1, 3], &before, &crossed)];
    let (findings, _) = check_all(&Evidence::per_rank(&ranks, Promises::default()));
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(
        told(&findings[0]),
        [
            "rank 0, rank 1 wait for each other",
            "rank 0 waits at v for g on dp: rank 1 has g behind h on all in its stream",
            "rank 1 waits at v for h on all: rank 0 has h behind g on dp in its stream",
            "a device runs one communication kernel at a time, in launch order",
            "each goes on when the next one does",
            "neither can go on",
        ]
    );
    assert_eq!(findings[0].rule, "comm/overlapping-groups-ordered");
    let hung = reordered(&before, "h w g v");
    let first = reordered(&before, "g v h w");
    let ranks = [(vec![0, 2], &before, &first), (vec![1, 3], &before, &hung)];
    let (findings, _) = check_all(&Evidence::per_rank(&ranks, Promises::default()));
    assert_eq!(findings[0].rule, "comm/all-ranks-finish");
    assert_eq!(
        told(&findings[0])[1..3],
        [
            "rank 0 waits at v for g on dp: rank 1, at w, has not launched g (launch 0 on dp)",
            "rank 1 waits at w for h on all: rank 0, at v, has not launched h (launch 0 on all)",
        ]
    );
}

/// K7's witness as graphs: the receive of the even ranks is hoisted over their send.
#[test]
fn messages_hoisted_over_messages() {
    let of = |first: &str, second: &str| {
        graph(&format!(
            "world 2 ranks, groups pp = [0 1]\narg0 = input : f32[4]\narg1 = input : f32[4]\nb = barrier(arg0, pp, [0]) : ?\n{first}\n{second}\noutput (v, w)"
        ))
    };
    let even = of("s = send(arg0, 1, 0, pp)\nv = wait(s)", "r = recv(arg1, 1, 0, pp)\nw = wait(r)");
    let odd = of("r = recv(arg1, 0, 0, pp)\nw = wait(r)", "s = send(arg0, 0, 0, pp)\nv = wait(s)");
    let hoisted = reordered(&even, "b r w s v");
    let ranks = [(vec![0], &even, &hoisted), (vec![1], &odd, &odd)];
    let (findings, _) = check_all(&Evidence::per_rank(&ranks, Promises::default()));
    let rules: Vec<&str> = findings.iter().flat_map(Finding::all).map(|finding| finding.rule).collect();
    assert_eq!(rules[0], "comm/all-ranks-finish", "{findings:#?}");
    let right = [(vec![0], &even, &even), (vec![1], &odd, &odd)];
    assert_eq!(check_all(&Evidence::per_rank(&right, Promises::default())).0, []);
}

#[test]
fn the_last_wait_is_moved() {
    let before =
        graph(&format!("{HEAD}g = all_gather(arg0, dp)\nw = wait(g)\na = relu(arg1)\noutput (w, a)"));
    let estimates = Estimates::table([("g", 1e-3), ("a", 1e-4)]);
    let promises = Promises { progress: true, peak: Some(1.0), estimates, ..Promises::default() };
    assert_eq!(broken(&before, &before, promises.clone()), ["schedule/progress"]);
    assert_eq!(broken(&before, &reordered(&before, "g a w"), promises), Vec::<&str>::new());
}
