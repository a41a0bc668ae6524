use super::*;

/// The bodies of 3.2 to 3.4 on the worked examples, node by node.
#[test]
fn bodies() {
    let gather = graph(
        "groups dp = 2 ranks at 1
         x0 = input: f32[2]
         x1 = input: f32[1, 3]
         g0 = all_gather(x0, 2, \"dp\"): f32[4]
         g1 = all_gather(x1, 2, \"dp\"): f32[2, 3]
         w0 = wait(g0): f32[4]
         w1 = wait(g1): f32[2, 3]
         output (w0, w1)",
    );
    let (gathered, unpack) = (
        "all_gather_into_tensor_out wait_tensor view",
        "split_with_sizes getitem getitem clone _unsafe_view view",
    );
    // One row per rank: the second piece is a view of the gathered rows.
    let default = format!("empty slice view view cat copy_ {gathered} {unpack}");
    let expected = [
        ("default", default.clone()),
        ("coalesced", default),
        ("functional", format!("empty view view cat {gathered} {unpack}")),
        (
            "functional_copy_in",
            format!("empty view view all_gather_copy_in getitem getitem {gathered} {unpack}"),
        ),
        (
            "custom_ops",
            format!(
                "_pre_bucket_all_gather slice {gathered} empty empty view view alias view view alias \
                 split_with_sizes_copy view view"
            ),
        ),
    ];
    for (mode, expected) in expected {
        let result = run(&gather, &format!("kind=all_gather mode={mode}"));
        assert_eq!(operators(&result.graph), expected, "{mode}");
        let slice = result.graph.ids().find(|&id| result.graph.target(id) == "aten.slice.Tensor");
        if let Some(slice) = slice {
            // The slot of rank 1.
            assert_eq!(result.graph.args(slice)[1..], [0, 5, 10].map(Value::Int));
        }
    }
    let scatter = graph(
        "groups dp = 2 ranks
         x0 = input: f32[4]
         x1 = input: f32[2]
         r0 = reduce_scatter(x0, \"sum\", 2, \"dp\"): f32[2]
         r1 = reduce_scatter(x1, \"sum\", 2, \"dp\"): f32[1]
         w0 = wait(r0): f32[2]
         w1 = wait(r1): f32[1]
         output (w0, w1)",
    );
    let tail = "reduce_scatter_tensor wait_tensor split_with_sizes getitem getitem view view";
    let expected = [
        ("default", format!("view view cat view {tail}")),
        ("custom_ops", format!("_pre_bucket_reduce_scatter {tail}")),
        (
            "coalesced",
            "view view reduce_scatter_tensor_coalesced getitem getitem wait_tensor wait_tensor view view"
                .into(),
        ),
    ];
    for (mode, expected) in expected {
        let result = run(&scatter, &format!("kind=reduce_scatter mode={mode}"));
        assert_eq!(operators(&result.graph), expected, "{mode}");
        assert_eq!(result.plan[0].waits.len(), if mode == "coalesced" { 2 } else { 1 });
    }
    let reduce = graph(
        "groups dp = 2 ranks
         x0 = input: f32[2, 2]
         x1 = input: f32[]
         a0 = all_reduce(x0, \"max\", \"dp\"): f32[2, 2]
         a1 = all_reduce(x1, \"max\", \"dp\"): f32[]
         w0 = wait(a0): f32[2, 2]
         w1 = wait(a1): f32[]
         y = view(w1, [1]): f32[1]
         output (w0, y)",
    );
    let result = run(&reduce, "kind=all_reduce");
    let expected = "view view cat all_reduce wait_tensor split_with_sizes getitem getitem view view view";
    assert_eq!(operators(&result.graph), expected);
    // The second result begins behind the first, and what is a view of it does too.
    let y = result.graph.find("y").unwrap();
    assert_eq!(result.graph.tensor_of(y).unwrap().offset, 4);
}

#[test]
fn results_of_the_custom_body_are_read_after_they_are_filled() {
    // g1 is issued after the last member in wait order; u reads an early result. PyTorch puts u before the copy
    // that fills what it reads.
    let before = graph(
        "world 2 ranks, groups dp = [0 1]
         x = input: f32[2]
         g0 = all_gather(x, dp): f32[4]
         w0 = wait(g0): f32[4]
         u = relu(w0): f32[4]
         g2 = all_gather(x, dp): f32[4]
         y = neg(x): f32[2]
         g1 = all_gather(y, dp): f32[4]
         w1 = wait(g1): f32[4]
         w2 = wait(g2): f32[4]
         output (u, w1, w2)",
    );
    let result = run(&before, "mode=custom_ops");
    assert_eq!(members(&result), ["g0 g1 g2"]);
    let (unsorted, after) = (&result.unrepaired, &result.graph);
    let fill = |graph: &Graph| {
        graph.ids().find(|&id| graph.target(id) == "aten.split_with_sizes_copy.out").unwrap().0
    };
    assert!(place(unsorted, "u") < fill(unsorted));
    assert!(place(after, "u") > fill(after));
    assert!(after.ordering.iter().any(|edge| edge.before.0 == fill(after)));
}

#[test]
fn only_casts_that_keep_every_value_are_folded() {
    let two_casts = |first: &str, second: &str| {
        graph(&format!(
            "world 2 ranks, groups dp = [0 1]
             x0 = input: {first}[2]
             x1 = input: {second}[2]
             c0 = cast(x0, f32): f32[2]
             c1 = cast(x1, f32): f32[2]
             g0 = all_gather(c0, dp): f32[4]
             g1 = all_gather(c1, dp): f32[4]
             w0 = wait(g0): f32[4]
             w1 = wait(g1): f32[4]
             output (w0, w1)"
        ))
    };
    let casts = |before: &Graph, mode: &str| {
        let result = run(before, &format!("mode={mode}"));
        assert_eq!(members(&result), ["g0 g1"]);
        operators(&result.graph).matches("convert_element_type").count()
    };
    // As float16, integers beyond 2^11 are lost.
    assert_eq!(casts(&two_casts("i32", "f16"), "default"), 2);
    assert_eq!(casts(&two_casts("i32", "f16"), "custom_ops"), 0);
    assert_eq!(casts(&two_casts("bf16", "f16"), "default"), 0);
    assert_eq!(casts(&two_casts("i64", "i64"), "default"), 0);
    // The concatenation itself is sent: it must have the right dtype.
    assert_eq!(casts(&two_casts("bf16", "f16"), "functional"), 0);
    assert_eq!(casts(&two_casts("bf16", "bf16"), "functional"), 2);
    assert_eq!(casts(&two_casts("bf16", "bf16"), "functional_copy_in"), 0);
    let to_copy = |device: &str| {
        let copy = "aten._to_copy.default(x, dtype=f32, device=@cuda:0)";
        let lines = format!(
            "world 2 ranks, groups dp = [0 1]
             x = input: bf16[2] @{device}
             y = input: f32[2]
             c = {copy}: f32[2]
             g0 = all_gather(c, dp): f32[4]
             g1 = all_gather(y, dp): f32[4]
             w0 = wait(g0): f32[4]
             w1 = wait(g1): f32[4]
             output (w0, w1)"
        );
        operators(&run(&graph(&lines), "").graph).contains("_to_copy")
    };
    assert!(!to_copy("cuda:0"));
    assert!(to_copy("cpu"), "a copy to another device is no cast");
}

#[test]
fn waits_are_folded_first() {
    let before = graph(
        "world 2 ranks, groups dp = [0 1]
         x = input: f32[2]
         g0 = all_gather(x, dp): f32[4]
         w0 = wait(g0): f32[4]
         again = wait(g0): f32[4]
         twice = wait(w0): f32[4]
         g1 = all_gather(x, dp): f32[4]
         w1 = wait(g1): f32[4]
         s = add(again, twice): f32[4]
         output (s, w0, w1)",
    );
    let result = run(&before, "");
    assert_eq!(members(&result), ["g0 g1"]);
    assert_eq!(operators(&result.graph).matches("wait_tensor").count(), 1);
}

#[test]
fn new_nodes_say_where_they_come_from() {
    let mut before = gathers(&[1, 1]);
    for (name, module) in [("g0", "layers.0"), ("g1", "layers.1")] {
        let id = before.find(name).unwrap();
        let (module, stack) = (before.intern(module), before.intern("train.py line 3, in step"));
        let custom = before.intern("{\"stage\":1}");
        let tags = before.intern_tags(crate::graph::Tags { custom: Some(custom), ..Default::default() });
        let node = before.node_mut(id);
        (node.module, node.stack, node.tags) = (Some(module), Some(stack), tags);
    }
    let result = run(&before, "");
    let after = &result.graph;
    let start = after.find(&result.plan[0].collective).unwrap();
    assert_eq!(after.node(start).module.map(|m| after.text(m)), Some("layers.0"));
    let tags = after.tags(start).unwrap();
    assert_eq!(tags.custom.map(|c| after.text(c)), Some("{\"stage\":1}"));
    assert_eq!(
        tags.extra.map(|e| after.text(e)),
        Some(
            "{\"bucketing_custom_sources\":[{\"stage\":1},{\"stage\":1}],\
             \"bucketing_nn_module_stack_sources\":[\"layers.0\",\"layers.1\"],\
             \"bucketing_stack_trace_sources\":[\"train.py line 3, in step\"],\"from_node\":[\"g0\",\"g1\"]}"
        )
    );
    // The others refer to it, so that n members are not named n times.
    let wait = after.find(&result.plan[0].waits[0]).unwrap();
    let tags = after.tags(wait).unwrap();
    assert_eq!(tags.custom.map(|c| after.text(c)), Some("{\"stage\":1}"));
    let told = format!("{{\"from_node\":[\"{}\"]}}", result.plan[0].collective);
    assert_eq!(tags.extra.map(|e| after.text(e)), Some(told.as_str()));
}
