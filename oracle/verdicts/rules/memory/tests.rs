use super::*;
use crate::format::text;
use crate::graph::Graph;
use crate::judge::Verdict;
use crate::judge::judge_memory;
use crate::memory::replay::{Facts, Options, replay_facts};
use crate::rules::RuleStatus;

fn graph(lines: &str) -> Graph {
    text::parse(lines).unwrap_or_else(|e| panic!("{}", e.render(None))).graph
}

const PROGRAM: &str = "\
world 2 ranks, groups dp = [0 1]
x = input : f32[8]
a = relu(x)
v = view(a, [2, 4])
g = all_gather(a, dp)
b = neg(v)
w = wait(g)
n = add_(b, 1)
c = add(n, n)
s = slice(c, 0, 0, 1)
m = mul_(x, 2)
output (s, w)
";

/// The claim that the replay is.
fn honest(graph: &Graph) -> Claim {
    let facts = Facts::new(graph);
    let replay = replay_facts(&facts, Options::default()).unwrap();
    let lives = replay.lives.iter().map(|life| ClaimedLife {
        name: graph.name(life.by).to_string(),
        bytes: life.bytes,
        alloc: life.start,
        frees: life.end.into_iter().collect(),
    });
    let calls = graph.ids().filter(|&id| graph.node(id).op == crate::graph::Op::Call);
    let order: Vec<String> = calls.map(|id| graph.name(id).to_string()).collect();
    let steps: Vec<(i64, i64)> = replay.steps.steps.iter().map(|step| (step.peak, step.after)).collect();
    let (peak, _) = replay.steps.peak();
    let place = |(i, life): (usize, &ClaimedLife)| Offset {
        name: life.name.clone(),
        offset: i as i64 * 1024,
        in_place_of: None,
    };
    let lives: Vec<ClaimedLife> = lives.collect();
    let offsets = lives.iter().enumerate().map(place).collect();
    Claim {
        order: Some(order.clone()),
        peak: Some(peak),
        before: Some(replay.steps.before),
        steps: Some(steps.clone()),
        lives: Some(lives),
        estimates: vec![("one".into(), peak), ("other".into(), peak)],
        increments: Some(vec![Increment { potential: Some((order.clone(), peak)), order, steps }]),
        offsets: Some(offsets),
        after: Some(graph.clone()),
        verifier_runs: Some(vec![vec!["fine".into()]; 3]),
    }
}

fn violated(graph: &Graph, claim: &Claim) -> Vec<&'static str> {
    judge_memory(graph, claim, &MemoryConfig::default()).unwrap().violated_rules()
}

#[test]
fn the_truth_is_sound() {
    let graph = graph(PROGRAM);
    let judgement = judge_memory(&graph, &honest(&graph), &MemoryConfig::default()).unwrap();
    assert_eq!(judgement.verdict, Verdict::Sound);
    assert!(judgement.rules.iter().all(|(_, status)| *status == RuleStatus::Holds), "{:?}", judgement.rules);
}

#[test]
fn a_claim_without_content_is_an_error() {
    let graph = graph(PROGRAM);
    let one = Claim { estimates: vec![("one".into(), 8)], ..Claim::default() };
    for claim in [Claim::default(), one] {
        let why = judge_memory(&graph, &claim, &MemoryConfig::default()).unwrap_err().to_string();
        assert!(why.contains("the claim states nothing that can be judged"), "{why}");
    }
    // a, g, b and c are made and freed, or returned.
    let none = Claim { offsets: Some(Vec::new()), ..Claim::default() };
    assert_eq!(violated(&graph, &none), ["memory/placement-disjoint"]);
}

/// Each rule is broken by a claim of its own, and no other soundness rule is, or only what follows.
#[test]
fn every_rule_has_its_lie() {
    let graph = graph(PROGRAM);
    type Lie = fn(&mut Claim);
    fn life<'c>(claim: &'c mut Claim, name: &str) -> &'c mut ClaimedLife {
        claim.lives.as_mut().unwrap().iter_mut().find(|life| life.name == name).unwrap()
    }
    /// Numbers are not claimed, so that only lives are compared.
    fn lives_only(claim: &mut Claim) {
        (claim.steps, claim.peak, claim.before) = (None, None, None);
    }
    let lies: &[(&str, Lie)] = &[
        ("memory/alloc-before-use", |c| {
            lives_only(c);
            life(c, "b").alloc = Some(5);
        }),
        // m writes to x, which a reads.
        ("memory/dependences-kept", |c| {
            *c = Claim { order: c.order.take(), ..Claim::default() };
            c.order.as_mut().unwrap().rotate_right(1);
        }),
        // a is freed after its own last use; v, a view of it, is read later, and g is in flight with it.
        ("memory/no-use-after-free", |c| {
            lives_only(c);
            life(c, "a").frees = vec![2];
        }),
        // Only direct outputs are kept, not what they are views of.
        ("memory/protected-never-freed", |c| {
            lives_only(c);
            life(c, "c").frees = vec![7];
        }),
        ("memory/freed-once", |c| {
            lives_only(c);
            life(c, "b").frees = vec![6, 7];
        }),
        ("memory/no-leak", |c| {
            lives_only(c);
            life(c, "b").frees.clear();
        }),
        ("memory/placement-disjoint", |c| {
            // a is done in the step of w, where b still lives.
            c.offsets = Some(vec![
                Offset { name: "a".into(), ..Offset::default() },
                Offset { name: "b".into(), offset: 16, ..Offset::default() },
            ]);
        }),
        ("memory/alias-relation", |c| {
            c.after = Some(super::tests::graph(&PROGRAM.replace("output (s, w)", "output (s, x)")));
        }),
        ("memory/timeline-conservation", |c| c.steps.as_mut().unwrap()[2].1 += 8),
        ("memory/peak-post-alloc", |c| c.peak = Some(1)),
        ("memory/estimate-equals-replay", |c| {
            c.lives = None;
            c.steps.as_mut().unwrap().iter_mut().for_each(|step| step.0 = step.1);
        }),
        ("memory/estimators-agree", |c| c.estimates[1].1 += 1),
        ("memory/incremental-equals-recompute", |c| {
            c.increments.as_mut().unwrap()[0].steps[4].0 += 8;
        }),
        ("memory/peak-after-each-swap", |c| {
            c.increments.as_mut().unwrap()[0].potential.as_mut().unwrap().1 -= 8;
        }),
        ("memory/verifier-idempotent", |c| c.verifier_runs.as_mut().unwrap()[2].push("a leak".into())),
        ("memory/distinct-storages", |c| {
            lives_only(c);
            c.lives.as_mut().unwrap().push(ClaimedLife {
                name: "v".into(),
                bytes: 32,
                alloc: Some(1),
                frees: vec![3],
            });
        }),
        ("memory/input-whole-storage", |c| {
            lives_only(c);
            life(c, "x").bytes = 16;
        }),
    ];
    assert_eq!(
        lies.iter().map(|lie| lie.0).collect::<Vec<_>>(),
        CATALOGUE.iter().map(|r| r.id).collect::<Vec<_>>()
    );
    for (rule, lie) in lies {
        let mut claim = honest(&graph);
        lie(&mut claim);
        let found = violated(&graph, &claim);
        assert!(found.contains(rule), "{rule}: {found:?}");
        let numbers =
            ["memory/timeline-conservation", "memory/peak-post-alloc", "memory/estimate-equals-replay"];
        let other = found.iter().find(|id| *id != rule && !(numbers.contains(id) && numbers.contains(rule)));
        assert_eq!(other, None, "{rule}");
    }
}

#[test]
fn findings_explain_themselves() {
    let graph = graph(PROGRAM);
    let mut claim = honest(&graph);
    (claim.steps, claim.peak, claim.before) = (None, None, None);
    claim.lives.as_mut().unwrap()[1].frees = vec![2];
    let judgement = judge_memory(&graph, &claim, &MemoryConfig::default()).unwrap();
    let Verdict::Violated(findings) = judgement.verdict else { panic!("{:?}", judgement.verdict) };
    assert_eq!(findings[0].title, "a is freed while it is needed");
    assert_eq!(findings[0].observed.as_deref(), Some("by the claim it is freed after step 2 (g)"));
    assert_eq!(findings[0].expected.as_deref(), Some("g is in flight with it until w, in step 4"));
}

#[test]
fn an_order_is_judged_in_that_order() {
    let graph = graph("x = input : f32[8]\na = relu(x)\nb = neg(a)\noutput b\n");
    let order = |names: &[&str]| Claim {
        order: Some(names.iter().map(|name| name.to_string()).collect()),
        ..Claim::default()
    };
    assert_eq!(violated(&graph, &order(&["a", "b"])), [] as [&str; 0]);
    assert_eq!(violated(&graph, &order(&["b", "a"])), ["memory/alloc-before-use"]);
    for wrong in [&["a"][..], &["a", "a", "b"], &["a", "x"]] {
        assert!(judge_memory(&graph, &order(wrong), &MemoryConfig::default()).is_err());
    }
}

#[test]
fn what_may_share_memory_is_undecided() {
    let graph = graph("x = input : f32[8]\na = relu(x)\nu = mystery.op(a) : f32[8]\nb = neg(u)\noutput b\n");
    let mut claim = honest(&graph);
    (claim.steps, claim.peak, claim.before, claim.increments) = (None, None, None, None);
    let free = |claim: &mut Claim, name: &str, step: u32| {
        let lives = claim.lives.as_mut().unwrap();
        lives.iter_mut().find(|life| life.name == name).unwrap().frees = vec![step];
    };
    assert_eq!(violated(&graph, &claim), [] as [&str; 0]);
    // a may be the memory of u, which b reads.
    free(&mut claim, "a", 1);
    let judgement = judge_memory(&graph, &claim, &MemoryConfig::default()).unwrap();
    assert!(matches!(judgement.verdict, Verdict::Undecided(_)), "{:?}", judgement.verdict);
}
