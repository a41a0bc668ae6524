//! Bodies of higher-order operators: read with their graphs, and compared.

use crate::common::{Scratch, program, text};

/// A graph with a sub-module `branch_0`, whose body is `inner`; what it calls has the arguments `x` and `y`.
fn printed(body: &[&str], modules: &[(&str, &[&str])]) -> String {
    let mut text = String::from(
        "class GraphModule(torch.nn.Module):\n    def forward(self, x: \"f32[4][1]cpu\", y: \"f32[4][1]cpu\"):\n",
    );
    for line in body {
        text += &format!("        {line}\n");
    }
    for (name, lines) in modules {
        text += &format!(
            "\n    class {name}(torch.nn.Module):\n        def forward(self, a: \"f32[4][1]cpu\", b: \"f32[4][1]cpu\"):\n"
        );
        for line in *lines {
            text += &format!("            {line}\n");
        }
    }
    text
}

const SUM: &[&str] =
    &["add: \"f32[4][1]cpu\" = torch.ops.aten.add.Tensor(a, b);  a = b = None", "return (add,)"];
const EXCHANGED: &[&str] =
    &["c: \"f32[4][1]cpu\" = torch.ops.aten.add.Tensor(b, a);  a = b = None", "return (c,)"];
const PRODUCT: &[&str] =
    &["mul: \"f32[4][1]cpu\" = torch.ops.aten.mul.Tensor(a, b);  a = b = None", "return (mul,)"];

/// A choice between two bodies.
fn cond(names: [&str; 2], bodies: [&[&str]; 2]) -> String {
    let [yes, no] = names;
    let gets = names.map(|name| format!("{name} = self.{name}"));
    let call =
        format!("cond = torch.ops.higher_order.cond(gt, {yes}, {no}, (x, y));  gt = {yes} = {no} = None");
    let body = [
        "sum_1: \"f32[][]cpu\" = torch.ops.aten.sum.default(x)",
        "gt: \"b8[][]cpu\" = torch.ops.aten.gt.Scalar(sum_1, 0);  sum_1 = None",
        &gets[0],
        &gets[1],
        &call,
        "getitem: \"f32[4][1]cpu\" = cond[0];  cond = None",
        "return (getitem,)",
    ];
    printed(&body, &[(yes, bodies[0]), (no, bodies[1])])
}

/// A body that is run once.
fn invoked(name: &str, body: &[&str]) -> String {
    let get = format!("{name} = self.{name}");
    let call =
        format!("run = torch.ops.higher_order.invoke_subgraph({name}, '{name}', x, y);  {name} = None");
    let lines = [&get, &call, "getitem: \"f32[4][1]cpu\" = run[0];  run = None", "return (getitem,)"];
    printed(&lines, &[(name, body)])
}

fn verdict(of: &str, before: &str, after: &str) -> String {
    let scratch = Scratch::new(of);
    let before = scratch.write("before.txt", before.as_bytes());
    let after = scratch.write("after.txt", after.as_bytes());
    let run = program(&["check", "rewrite", &before, &after]);
    let out = text(&run.stdout);
    out.split([' ', ':']).next().unwrap_or("").to_string() + &text(&run.stderr)
}

#[test]
fn branches_are_compared_whatever_they_are_called() {
    let before = cond(["yes", "no"], [SUM, PRODUCT]);
    assert_eq!(verdict("branches", &before, &before), "SOUND");
    assert_eq!(verdict("branches", &before, &cond(["other_0", "other_1"], [EXCHANGED, PRODUCT])), "SOUND");
    for wrong in [[PRODUCT, PRODUCT], [SUM, SUM], [PRODUCT, SUM]] {
        assert_eq!(verdict("branches", &before, &cond(["yes", "no"], wrong)), "VIOLATED", "{wrong:?}");
    }
}

#[test]
fn a_body_that_is_run_once_is_what_it_does() {
    let before = invoked("region", SUM);
    assert_eq!(verdict("body", &before, &invoked("partitioned", EXCHANGED)), "SOUND");
    let inlined = printed(
        &["add: \"f32[4][1]cpu\" = torch.ops.aten.add.Tensor(x, y);  x = y = None", "return (add,)"],
        &[],
    );
    assert_eq!(verdict("body", &before, &inlined), "SOUND");
    assert_eq!(verdict("body", &inlined, &before), "SOUND");
    assert_eq!(verdict("body", &before, &invoked("region", PRODUCT)), "VIOLATED");
}

/// Each module has constants of its own, whatever they are called.
#[test]
fn constants_of_two_bodies_are_two() {
    let plus: &[&str] = &[
        "_tensor_constant0: \"f32[4][1]cpu\" = self._tensor_constant0",
        "add: \"f32[4][1]cpu\" = torch.ops.aten.add.Tensor(a, _tensor_constant0);  a = b = _tensor_constant0 = None",
        "return (add,)",
    ];
    let before = cond(["yes", "no"], [plus, plus]);
    assert_eq!(verdict("constants", &before, &before), "SOUND");
    let swapped = before.replace("gt, yes, no", "gt, no, yes");
    assert_ne!(swapped, before);
    assert_ne!(verdict("constants", &before, &swapped), "SOUND");
}

/// A sub-module that gets itself has no end, and is refused.
#[test]
fn bodies_in_a_circle_are_refused() {
    let body: &[&str] = &[
        "region = self.region",
        "run = torch.ops.higher_order.invoke_subgraph(region, 'region', a, b);  region = None",
        "getitem: \"f32[4][1]cpu\" = run[0];  run = None",
        "return (getitem,)",
    ];
    let circle = invoked("region", body);
    let told = verdict("circle", &circle, &circle);
    assert!(told.contains("sub-modules that refer to one another in a circle"), "{told}");
}

/// Schedules and partitions are compared call by call, and their bodies too.
#[test]
fn other_passes_keep_bodies() {
    let scratch = Scratch::new("passes");
    let write = |name: &str, text: &str| scratch.write(name, text.as_bytes());
    let before = write("before.txt", &cond(["yes", "no"], [SUM, PRODUCT]));
    let wrong = write("wrong.txt", &cond(["yes", "no"], [PRODUCT, PRODUCT]));
    for (after, status) in [(&before, 0), (&wrong, 1)] {
        let run = program(&["check", "schedule", &before, after]);
        assert_eq!(run.status.code(), Some(status), "{}{}", text(&run.stdout), text(&run.stderr));
    }
}

/// A forward whose branch is another one.
#[test]
fn partitions_keep_bodies() {
    let scratch = Scratch::new("parts");
    let write = |name: &str, text: &str| scratch.write(name, text.as_bytes());
    let gradient = "\n        scaled: \"f32[4][1]cpu\" = torch.ops.aten.mul.Tensor(tangents_1, y)\n";
    let joint = cond(["yes", "no"], [SUM, PRODUCT])
        .replacen("\"):", "\", tangents_1: \"f32[4][1]cpu\"):", 1)
        .replacen("\n        return (getitem,)", &format!("{gradient}        return (getitem, scaled)"), 1);
    let forward = |bodies| cond(["yes", "no"], bodies).replacen("(getitem,)", "(getitem, y)", 1);
    let backward = printed(&[gradient.trim(), "return (scaled,)"], &[]).replacen(
        "self, x: \"f32[4][1]cpu\", y: \"f32[4][1]cpu\"",
        "self, y: \"f32[4][1]cpu\", tangents_1: \"f32[4][1]cpu\"",
        1,
    );
    let (joint, backward) = (write("joint.txt", &joint), write("backward.txt", &backward));
    for (bodies, status) in [([SUM, PRODUCT], 0), ([PRODUCT, PRODUCT], 1)] {
        let forward = write("forward.txt", &forward(bodies));
        let run = program(&["check", "partition", &joint, &forward, &backward, "--set", "num_fwd_outputs=1"]);
        assert_eq!(run.status.code(), Some(status), "{}{}", text(&run.stdout), text(&run.stderr));
    }
}
