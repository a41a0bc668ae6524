//! What is refused, what is saved although a cost says otherwise, and what is drawn twice.

use super::*;

const DROPOUT: &str = "
primals_1 = input : f32[8]
tangents_1 = input : f32[8]
m = rand_like(primals_1) : f32[8] {TAG}
a = mul(primals_1, m) : f32[8]
y = mul(a, a) : f32[8]
g1 = mul(tangents_1, a) : f32[8]
g2 = mul(g1, m) : f32[8]
output (y, g2)
";

/// Draws are never made again, whatever the budget: K11.
#[test]
fn an_untagged_draw_is_saved() {
    let joint = graph(&DROPOUT.replace("{TAG}", ""));
    for words in
        ["method=min-cut budget=0", "method=min-cut budget=0.3 runtime=testing", "method=min-cut bans=none"]
    {
        for method in ["", "method=replay", "method=default"] {
            let config = config(&format!("{words} num_fwd_outputs=1 {method}"));
            let partition = run(&joint, &config).unwrap();
            assert!(saved(&partition).contains(&"m"), "{words} {method}: {:?}", saved(&partition));
            assert!(
                partition.backward.find("m").is_none_or(|m| partition.backward.node(m).op == Op::Placeholder)
            );
        }
    }
}

/// A draw that an earlier partition wrapped is made once, and no other has its numbers: what backward needs of it is
/// saved, results within results too.
#[test]
fn a_wrapped_draw_is_not_made_again() {
    let run_and_save = "higher_order.run_and_save_rng_state(fn(aten.native_dropout.default), primals_1, 0.5, True) \
                        : (u8[16], (f32[8], bool[8]))";
    let joint = graph(&format!(
        "
        primals_1 = input : f32[8]
        tangents_1 = input : f32[8]
        k = {run_and_save}
        v = k[1] : (f32[8], bool[8])
        d = v[0] : f32[8]
        m = v[1] : bool[8]
        l = {run_and_save}
        w = l[1] : (f32[8], bool[8])
        n = w[1] : bool[8]
        y = mul(d, n) : f32[8]
        g1 = mul(tangents_1, m) : f32[8]
        g2 = mul(g1, n) : f32[8]
        output (y, g2)"
    ));
    for method in ["replay", "default", "min-cut"] {
        let partition = run(&joint, &config(&format!("method={method} num_fwd_outputs=1"))).unwrap();
        assert_eq!(saved(&partition), ["m", "n"], "{method}");
        let calls = |name: &str| partition.backward.find(name).is_some();
        assert!(!calls("k") && !calls("l"), "{method}");
    }
}

/// A mask that backward alone draws from an input stays in backward.
#[test]
fn a_draw_of_backward_stays_there() {
    let joint = graph(
        "
        primals_1 = input : f32[8]
        tangents_1 = input : f32[8]
        y = neg(primals_1) : f32[8]
        m = rand_like(primals_1) : f32[8]
        g = mul(tangents_1, m) : f32[8]
        output (y, g)",
    );
    let partition = run(&joint, &config("method=min-cut num_fwd_outputs=1")).unwrap();
    assert_eq!(saved(&partition), ["primals_1"]);
    assert!(partition.forward.find("m").is_none());
}

/// The cheapest cut computes `m` in forward, for `c`, and again in backward, for `g2`: another draw.
#[test]
fn a_draw_is_not_made_on_both_sides() {
    let joint = graph(
        "
        primals_1 = input : f32[4, 4]
        primals_2 = input : f32[4, 1024]
        tangents_1 = input : f32[4, 4]
        y = neg(primals_1) : f32[4, 4]
        m = rand_like(primals_1) : f32[4, 4]
        q = mm(m, primals_2) : f32[4, 1024]
        c = sum(q, [0, 1]) : f32[]
        g1 = mul(tangents_1, c) : f32[4, 4]
        g2 = mul(g1, m) : f32[4, 4]
        output (y, g2)",
    );
    for tag in ["", "MUST_SAVE"] {
        let mut joint = joint.clone();
        let m = joint.find("m").unwrap();
        if !tag.is_empty() {
            marks::set_recompute(&mut joint, m, marks::Recompute::MustSave);
        }
        let partition = run(&joint, &config("method=min-cut num_fwd_outputs=1 static_inputs=0")).unwrap();
        assert_eq!(saved(&partition), ["m", "c"], "{tag}");
    }
    struct Careless;
    impl Strategy for Careless {
        fn unrepeatable(&self, _: &Joint, _: NodeId) -> Option<min_cut::Ban> {
            None
        }
    }
    let partition =
        run_with(&joint, &config("method=min-cut num_fwd_outputs=1 static_inputs=0"), &Careless).unwrap();
    assert_eq!(saved(&partition), ["primals_1", "c"]);
    assert_eq!(partition.recomputed, ["m"]);
}

/// Backward loses a dead wait, and with it the only reader of the draw: there is nothing to pair.
#[test]
fn a_draw_that_backward_does_not_read_is_not_paired() {
    let joint = graph(
        "
        world 2 ranks, groups dp = [0 1]
        primals_1 = input : f32[4, 4]
        tangents_1 = input : f32[4, 4]
        m = rand_like(primals_1) : f32[4, 4] {recompute: MUST_RECOMPUTE, partitioner_tag: is_forward}
        ag = all_gather(m, dp) : f32[8, 4] {recompute: MUST_RECOMPUTE, partitioner_tag: is_forward}
        w = wait(ag) : f32[8, 4] {recompute: MUST_RECOMPUTE, partitioner_tag: is_forward}
        y = mul(m, primals_1) : f32[4, 4] {partitioner_tag: is_forward}
        g = mul(tangents_1, primals_1) : f32[4, 4] {partitioner_tag: is_backward}
        output (y, g)",
    );
    let partition = run(&joint, &config("method=min-cut num_fwd_outputs=1")).unwrap();
    assert_eq!(returned(&partition.forward), ["y", "primals_1"]);
    assert!(partition.forward.find("m").is_some() && partition.backward.find("m").is_none());
}

#[test]
fn a_tagged_draw_is_paired() {
    let joint = graph(&DROPOUT.replace("TAG", "recompute: MUST_RECOMPUTE"));
    for method in ["min-cut", "replay"] {
        let partition = run(&joint, &config(&format!("method={method} num_fwd_outputs=1"))).unwrap();
        assert_eq!(saved(&partition), ["primals_1"], "{method}");
        assert_eq!(
            names(&partition.forward),
            ["primals_1", "run_and_save_rng_state", "getitem", "getitem_1", "a", "y"],
        );
        assert_eq!(returned(&partition.forward), ["y", "primals_1", "getitem"]);
        assert_eq!(names(&partition.backward)[..3], ["primals_1", "rng_state_output_0", "tangents_1"]);
        let run = partition.backward.find("run_with_rng_state").unwrap();
        assert_eq!(partition.backward.inputs(run).len(), 2);
        let again = retrace::retrace(&partition.forward, &partition.backward, 1).unwrap().joint;
        assert!(crate::analysis::validate::validate(&again).is_empty(), "{method}");
    }
    let words = "method=min-cut num_fwd_outputs=1 graph_safe_random=yes";
    let partition = run(&joint, &config(words)).unwrap();
    assert_eq!(names(&partition.forward)[..2], ["primals_1", "fwd_rng_state_0"]);
    assert_eq!(names(&partition.backward)[..3], ["primals_1", "tangents_1", "bwd_rng_state_0"]);
    assert_eq!(returned(&partition.forward), ["y", "primals_1"]);
}

/// An input that forward writes to: backward would find the new contents. K12.
const OVERWRITTEN: &str = "
primals_1 = input : f32[8]
primals_2 = input : f32[8]
tangents_1 = input : f32[8]
y = sin(primals_1) : f32[8] {TAG}
z = mul(y, primals_2) : f32[8]
n = add(primals_1, 1) : f32[8]
g = mul(tangents_1, y) : f32[8]
w = copy_(primals_1, n) : f32[8] {partitioner_tag: must_be_in_forward}
output (z, g)
";

#[test]
fn nothing_is_computed_from_what_forward_overwrites() {
    let untagged = OVERWRITTEN.replace("{TAG}", "");
    let partition = run(&graph(&untagged), &config("method=min-cut num_fwd_outputs=1")).unwrap();
    assert_eq!(saved(&partition), ["y"]);
    // Without the write, the input is as good.
    let without = untagged.replace("w = copy_(primals_1, n)", "w = copy(primals_1, n)");
    let partition =
        run(&graph(&without), &config("method=min-cut num_fwd_outputs=1 static_inputs=all")).unwrap();
    assert_eq!(saved(&partition), ["primals_1"]);
    // A tag asks for what cannot be.
    let tagged = OVERWRITTEN.replace("TAG", "recompute: MUST_RECOMPUTE");
    let error = run(&graph(&tagged), &config("method=min-cut num_fwd_outputs=1")).unwrap_err();
    assert_eq!(error.problem, Problem::NeitherSavedNorRecomputed);
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "backward needs primals_1, which can be neither saved nor computed again",
            "annotation:",
            "y: must be computed again, says its tag",
            "data dependence:",
            "primals_1: cannot be computed again: is an input",
            "primals_1: cannot be saved: is overwritten in forward after it was read",
            "y: depends on primals_1",
        ]
    );
    let error = run(&graph(&tagged), &config("method=replay num_fwd_outputs=1")).unwrap_err();
    assert_eq!(error.problem, Problem::NeitherSavedNorRecomputed);
    // A replay saves what it cannot compute again, whatever the tags do not say.
    let partition = run(&graph(&untagged), &config("method=replay num_fwd_outputs=1")).unwrap();
    assert_eq!(saved(&partition), ["y"]);
    // Both sides write: backward gets the memory, and computes nothing from its old contents.
    let both = untagged.replace(
        "output (z, g)",
        "b = copy_(primals_1, g) : f32[8] {partitioner_tag: must_be_in_backward}\noutput (z, g)",
    );
    for method in ["min-cut", "replay", "default"] {
        let partition = run(&graph(&both), &config(&format!("method={method} num_fwd_outputs=1"))).unwrap();
        let mut saved = saved(&partition);
        saved.sort_unstable();
        assert_eq!(saved, ["primals_1", "y"], "{method}");
        assert!(partition.backward.find("b").is_some());
    }
}

/// Backward writes to what it was given, and no tangent has to do with it. K13.
#[test]
fn a_write_of_backward_stays_there() {
    let joint = graph(
        "
        primals_1 = input : f32[8]
        primals_2 = input : f32[8]
        tangents_1 = input : f32[8]
        y = sin(primals_1) : f32[8] {partitioner_tag: is_forward}
        z = zeros_like(primals_2) : f32[8] {partitioner_tag: is_backward}
        c = cos(primals_1) : f32[8] {partitioner_tag: is_backward}
        g = mul(tangents_1, c) : f32[8] {partitioner_tag: is_backward}
        w = copy_(primals_2, z) : f32[8] {partitioner_tag: must_be_in_backward}
        output (y, g)",
    );
    for method in ["default", "min-cut", "replay"] {
        let partition = run(&joint, &config(&format!("method={method} num_fwd_outputs=1"))).unwrap();
        assert!(partition.forward.find("w").is_none(), "{method}");
        assert!(partition.backward.find("w").is_some(), "{method}");
    }
}

#[test]
fn bad_joints_are_refused_with_their_constraints() {
    let refused = |text: &str, words: &str| run(&graph(text), &config(words)).unwrap_err();
    let words = "method=min-cut num_fwd_outputs=1";
    let no_tangents = "x = input : f32[8]\ny = sin(x) : f32[8]\ng = cos(x) : f32[8]\noutput (y, g)";
    let error = refused(no_tangents, words);
    assert_eq!(error.problem, Problem::NoTangents);
    assert!(error.to_string().contains("g: is a backward output"));
    let partition =
        run(&graph(no_tangents), &config("num_fwd_outputs=1 needs_tangents=no method=min-cut")).unwrap();
    assert_eq!(saved(&partition), ["g"]);

    let forward_needs_tangent = "
        x = input : f32[8]
        tangents_1 = input : f32[8]
        y = mul(x, tangents_1) : f32[8]
        w = copy_(x, y) : f32[8] {partitioner_tag: must_be_in_forward}
        output (x, y)";
    let error = refused(forward_needs_tangent, words);
    assert_eq!(error.problem, Problem::ContradictoryTags);
    let constraints: Vec<String> =
        error.constraints.iter().map(|c| format!("{} {}", c.node, c.text)).collect();
    let expected = [
        "w must be in forward, says its tag",
        "w depends on y",
        "y depends on tangents_1",
        "tangents_1 is a tangent",
    ];
    assert_eq!(constraints, expected);

    let misplaced = "
        x = input : f32[8]
        tangents_1 = input : f32[8]
        y = mul(x, tangents_1) : f32[8]
        output (y, y)";
    assert_eq!(refused(misplaced, words).problem, Problem::MisplacedOutput);
    let checkpointed_effect = "
        primals_1 = input : f32[8]
        tangents_1 = input : f32[8]
        a = sin(primals_1) : f32[8] {recompute: MUST_RECOMPUTE, partitioner_tag: is_forward}
        e = assert_async(a, \"positive\") : None
        y = neg(a) : f32[8] {partitioner_tag: is_forward}
        g = mul(tangents_1, a) : f32[8]
        output (y, g)";
    run(&graph(checkpointed_effect), &config("num_fwd_outputs=1")).unwrap();
    let twice = "x = input : f32[8]\nx = sin(x) : f32[8]\noutput (x)";
    assert_eq!(refused(twice, words).problem, Problem::Malformed);
    let later = "x = input : f32[8]\ny = sin(z) : f32[8]\nz = sin(x) : f32[8]\noutput (y)";
    assert_eq!(refused(later, words).problem, Problem::Malformed);
    assert_eq!(refused("x = input : f32[8]", words).problem, Problem::Malformed);
}

/// A chain of products, each between functions that are cheap to compute again.
fn layers(count: usize) -> String {
    let mut text = String::from("primals_0 = input : f32[4, 4]\ntangents_1 = input : f32[4, 4]\n");
    for i in 1..=count {
        text += &format!("primals_{i} = input : f32[4, 4]\n");
    }
    let mut at = "primals_0".to_string();
    for i in 1..=count {
        text += &format!("p{i} = mm({at}, primals_{i}) : f32[4, 4]\nr{i} = sin(p{i}) : f32[4, 4]\n");
        at = format!("r{i}");
    }
    let mut g = "tangents_1".to_string();
    for i in (1..=count).rev() {
        text += &format!("c{i} = cos(p{i}) : f32[4, 4]\nd{i} = mul({g}, c{i}) : f32[4, 4]\n");
        text += &format!("g{i} = mm(d{i}, primals_{i}) : f32[4, 4]\n");
        g = format!("g{i}");
    }
    text + &format!("output ({at}, {g})\n")
}

/// More memory never saves less, and what is used is within the budget.
#[test]
fn a_budget_is_respected() {
    let joint = graph(&layers(12));
    let bytes = |words: &str| {
        let partition = run(&joint, &config(&format!("method=min-cut num_fwd_outputs=1 {words}"))).unwrap();
        partition.bytes()
    };
    let (least, most) = (bytes("budget=0"), bytes("budget=1"));
    for solver in ["dp", "greedy", "ilp", "hirschberg"] {
        let mut last = least;
        for budget in ["0.1", "0.3", "0.5", "0.8", "1"] {
            let used = bytes(&format!("budget={budget} solver={solver}"));
            assert!(last <= used && used <= most, "{solver} {budget}: {last} {used} {most}");
            last = used;
        }
    }
    assert!(least < most);
}

/// With no memory at all, what must be saved still is. K14.
#[test]
fn tags_hold_without_memory() {
    let text =
        layers(3).replace("r2 = sin(p2) : f32[4, 4]", "r2 = sin(p2) : f32[4, 4] {recompute: MUST_SAVE}");
    let text = text.replace("c3 = cos(p3)", "c3 = mul(p3, r2)");
    let partition = run(&graph(&text), &config("method=min-cut num_fwd_outputs=1 budget=0")).unwrap();
    assert!(saved(&partition).contains(&"r2"), "{:?}", saved(&partition));
    assert!(!partition.recomputed.iter().any(|name| name == "r2"));
}
