//! The forms of printed graphs, and what is wrong with texts.

use super::*;

use crate::graph::{Op, Out, Value};

/// A text without what its lines are indented by here.
fn text(of: &str) -> String {
    let lines = of.lines().skip(1);
    let indent =
        lines.clone().filter(|line| !line.trim().is_empty()).map(|line| line.len() - line.trim_start().len());
    let indent = indent.min().unwrap_or(0);
    lines.map(|line| line.get(indent..).unwrap_or("").to_string() + "\n").collect()
}

fn graph(of: &str) -> Graph {
    read(&text(of), &Known::default()).unwrap_or_else(|error| panic!("{error}\n{of}")).graph
}

fn error(of: &str) -> String {
    read(&text(of), &Known::default()).unwrap_err().to_string()
}

fn names(graph: &Graph) -> Vec<&str> {
    graph.ids().map(|id| graph.name(id)).collect()
}

#[test]
fn a_joint_graph_names_its_inputs_behind_the_signature() {
    let graph = graph(
        r#"
        class inner_f(torch.nn.Module):
            def forward(
                self,
                primals,
                tangents,
            ):
                primals_1: "f32[4][1]cpu"  # PlainAOTInput(idx=0)
                tangents_1: "f32[4][1]cpu"  # TangentAOTInput(output=PlainAOTOutput(idx=0))
                primals_1, primals_2, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)
                # recompute: MUST_SAVE Backward of forward node: File: a.py:1 in f, code: x  # y
                mul: "f32[4][1]cpu" = torch.ops.aten.mul.Tensor(primals_1, tangents_1);  primals_1 = tangents_1 = None
                return pytree.tree_unflatten([
                    mul,  # GradAOTOutput(grad_of=PlainAOTInput(idx=0))
                    None,  # None
                ], self._out_spec)
        "#,
    );
    assert_eq!(names(&graph), ["primals_1", "primals_2", "tangents_1", "mul", "output"]);
    let mul = graph.find("mul").unwrap();
    let tags = graph.tags(mul).unwrap();
    assert_eq!(tags.recompute.map(|text| graph.text(text)), Some("MUST_SAVE"));
    assert_eq!(tags.autograd_backward, Some(true));
    assert_eq!(graph.node(mul).stack.map(|text| graph.text(text)), Some("a.py:1 in f, code: x  # y"));
    let descriptor = graph.node(graph.find("tangents_1").unwrap()).desc.map(|text| graph.text(text));
    assert_eq!(descriptor, Some("TangentAOTInput(output=PlainAOTOutput(idx=0))"));
}

#[test]
fn ordering_edges_are_read_out_of_their_carriers() {
    let graph = graph(
        r#"
        class <lambda>(torch.nn.Module):
            def forward(self, x: "f32[4]", y: "f32[4]"):
                neg: "f32[4]" = torch.ops.aten.neg.default(x)
                subgraph_add = self.subgraph_add
                add: "f32[4]" = torch.ops.higher_order.control_deps((neg,), subgraph_add, x, y);  subgraph_add = None
                return (neg, add)

            class subgraph_add(torch.nn.Module):
                def forward(self, arg_0: "f32[4]", arg_1: "f32[4]"):
                    add: "f32[4]" = torch.ops.aten.add.Tensor(arg_0, arg_1, alpha = 2);  arg_0 = arg_1 = None
                    return add
        "#,
    );
    assert_eq!(names(&graph), ["x", "y", "neg", "add", "output"]);
    let (neg, add) = (graph.find("neg").unwrap(), graph.find("add").unwrap());
    assert_eq!(graph.target(add), "aten.add.Tensor");
    assert_eq!(graph.kwarg(add, "alpha"), Some(Value::Int(2)));
    assert_eq!(graph.ordering, [crate::graph::OrderingEdge { before: neg, after: add }]);
}

#[test]
fn values_of_all_kinds() {
    let graph = graph(
        r#"
        class G(torch.nn.Module):
            def forward(self, x: "f32[4][1]cuda:1", mesh, n: "Sym(s17)"):
                """
                val: 'nothing of this is read ('
                """
                f: "f32[4][1]cuda:1" = torch.ops.a.b.c(x, -1, 2.0, -inf, (0.5-2j), 'a;\n#"', [None, True], {'k': (1,)}, slice(0, None, 2), device = device(type='cuda', index=1), dtype = torch.bfloat16, layout = torch.strided, memory_format = torch.channels_last, object = torch.nn.Thing(1))
                floordiv: "Sym((s17//2))" = n // 2
                le: "Sym(s17 <= 4)" = n <= 4
                split = torch.ops.aten.split.Tensor(x, 2)
                getitem: "f32[2][1]cuda:1" = split[1];  split = None
                _tensor_constant0: "i64[2][1]cpu" = self._tensor_constant0
                return [f, getitem, floordiv, le, _tensor_constant0]
        "#,
    );
    let f = graph.find("f").unwrap();
    let words: Vec<String> = graph.args(f).iter().map(|value| format!("{value:?}")).collect();
    assert_eq!(words[1..4], ["Int(-1)", "Float(2.0)", "Float(-inf)"]);
    let Value::Str(escaped) = graph.args(f)[5] else { panic!("{words:?}") };
    assert_eq!(crate::words::released(graph.text(escaped)), "a;\n#\"");
    let Some(Value::Device(device)) = graph.kwarg(f, "device") else { panic!() };
    assert_eq!(graph.text(device), "cuda:1");
    let getitem = graph.find("getitem").unwrap();
    assert_eq!(graph.tensor_of(getitem).map(|tensor| tensor.offset), Some(2));
    assert_eq!(graph.node(graph.find("_tensor_constant0").unwrap()).op, Op::GetAttr);
    assert!(matches!(graph.node(graph.find("le").unwrap()).out, Out::SymBool(_)));
    assert_eq!(graph.symbols.len(), 1);
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let of = |body: &str| {
        error(&format!(
            "\nclass G(torch.nn.Module):\n    def forward(self, x: \"f32[4][1]cpu\"):\n        {body}\n"
        ))
    };
    for (body, words) in [
        ("n = torch.ops.aten.neg.default(x", "line 4"),
        ("n = torch.ops.aten.neg.default(x) x", "line 3, column 43: expected the end of the line"),
        ("n = 'abc", "a string that does not end"),
        ("x += 1", "a statement of Python"),
        ("n = self.mod(x)", "a call of a module"),
        (
            "n: \"f3[4]\" = torch.ops.aten.neg.default(x)\n        return n",
            "the dtype of \"f3[4]\" is not known",
        ),
        (
            "n: \"f32[4][1]cpu\" = torch.ops.aten.neg.default(x);  x = None\n        return x",
            "used after its last use",
        ),
        ("n: \"f32[4][1]cpu\" = torch.ops.aten.neg.default(x)", "does not return"),
        ("return x + 1", "an argument that is computed in place"),
    ] {
        let found = of(body);
        assert!(found.contains(words), "{body}: {found}");
    }
    let deep = format!("n = torch.ops.a.b.c({}", "[".repeat(100_000));
    assert!(of(&deep).contains("brackets inside more than"), "{}", of(&deep));
    let signs = format!("n = torch.ops.a.b.c({}1)", "-".repeat(100_000));
    assert!(of(&signs).contains("brackets inside more than"), "{}", of(&signs));
    assert!(error("\nnothing").contains("this is no printed graph"));
}

/// A runnable of a graph that has one input more than one storage.
const RUNNABLE: &str = r#"
        s17 = 6
        class Repro(torch.nn.Module):
            def forward(self, primals_1, primals_2, primals_3, floordiv, mesh, u0):
                view: "f32[4]" = torch.ops.aten.view.default(primals_2, [4]);  primals_2 = None
                return (view, primals_3)

        def load_args(reader):
            reader.symint(6, expr='s17')  # primals_1
            buf0 = reader.storage(None, 64, device=device(type='cuda', index=1))
            reader.tensor(buf0, (2, 2), storage_offset=4, is_leaf=True)  # primals_2
            reader.tensor(buf0, (s17, 2), (1, s17*2), dtype=torch.float16, requires_grad=True)  # primals_3
            reader.symint(3, expr='(s17//2)')  # floordiv
            reader.opaque('Mesh')  # mesh
            reader.symint(5)  # u0
        load_args._version = 0
        mod = Repro()
        if __name__ == '__main__':
            from torch._dynamo.repro.after_aot import setup_fake_process_groups
            setup_fake_process_groups({'0': {'size': 2, 'rank': 1}, 'broken': {'size': 0}})
        "#;

#[test]
fn a_runnable_says_what_its_inputs_are() {
    let runnable = text(RUNNABLE);
    let printed = read(&runnable, &Known::default()).unwrap();
    let graph = &printed.graph;
    let of = |name: &str| *graph.tensor_of(graph.find(name).unwrap()).unwrap();
    let (two, three) = (of("primals_2"), of("primals_3"));
    assert_eq!((two.storage, two.offset, graph.text(two.device)), (three.storage, 4, "cuda:1"));
    assert!(two.storage.is_some());
    assert_eq!((three.dtype, three.requires_grad, three.offset), (crate::graph::Dtype::F16, Some(true), 0));
    assert_eq!(layout::text_of(graph, graph.dims(two.stride)), ["2", "1"]);
    assert_eq!(layout::text_of(graph, graph.dims(three.stride)), ["1", "2*s17"]);
    // A view begins where its argument does.
    assert_eq!(of("view").offset, 4);
    let hints: Vec<_> = graph.symbols.iter().map(|symbol| (symbol.name.as_str(), symbol.hint)).collect();
    assert_eq!(hints, [("s17", Some(6))]);
    assert!(matches!(graph.node(graph.find("floordiv").unwrap()).out, Out::SymInt(_)));
    assert!(printed.is_completed && printed.notes.iter().any(|note| note.contains("no expressions")));
    let groups = Runnable::read(&runnable).unwrap().unwrap().groups;
    assert_eq!((groups.len(), groups[0].size, groups[0].recorded_rank), (1, 2, Some(1)));
}

#[test]
fn a_text_is_completed_by_the_runnable_with_its_inputs() {
    let runnable = Arc::new(Runnable::read(&text(RUNNABLE)).unwrap().unwrap());
    let of = |inputs: &str| {
        format!("class G(torch.nn.Module):\n    def forward(self, {inputs}):\n        return (primals_2,)\n")
    };
    let known = Known { runnables: vec![runnable], ..Known::default() };
    let fits = of(
        "primals_1: \"Sym(s17)\", primals_2: \"f32[2, 2][1, 2]cpu\", primals_3: \"f16[s17, 2]\", floordiv, mesh, u0",
    );
    let printed = read(&fits, &known).unwrap();
    let tensor = |name: &str| *printed.graph.tensor_of(printed.graph.find(name).unwrap()).unwrap();
    let (two, three) = (tensor("primals_2"), tensor("primals_3"));
    // What is printed counts; what is not is the runnable's.
    assert_eq!(layout::text_of(&printed.graph, printed.graph.dims(two.stride)), ["1", "2"]);
    assert_eq!((printed.graph.text(two.device), two.offset, two.storage), ("cpu", 4, three.storage));
    assert_eq!(layout::text_of(&printed.graph, printed.graph.dims(three.stride)), ["1", "2*s17"]);
    let other = read(&of("primals_2: \"f32[2, 2][1, 2]cpu\""), &known).unwrap();
    assert!(!other.is_completed);
    let wrong = read(&fits.replace("f32[2, 2]", "f32[2, 3]"), &known).unwrap();
    assert!(!wrong.is_completed && wrong.notes.iter().any(|note| note.contains("is of another graph")));
}

#[test]
fn damaged_runnables_are_errors_with_a_place() {
    let runnable = text(RUNNABLE);
    for (from, to, words) in [
        ("reader.storage(None, 64,", "reader.storage(None, ", "a storage without a size"),
        ("reader.tensor(buf0, (2, 2)", "reader.tensor(buf7, (2, 2)", "a tensor of which this is not known"),
        ("dtype=torch.float16", "dtype=torch.float3", "a tensor of which this is not known"),
        ("reader.opaque('Mesh')", "exec('Mesh')", "expected a call of the reader"),
        ("reader.symint(5)", "reader.symint(5", "line"),
    ] {
        let damaged = runnable.replace(from, to);
        assert_ne!(damaged, runnable, "{from}");
        let found = Runnable::read(&damaged).unwrap_err().to_string();
        assert!(found.contains(words) && found.starts_with("line "), "{to}: {found}");
    }
    assert_eq!(Runnable::read("nothing").unwrap(), None);
}

#[test]
fn strides_of_symbolic_sizes_are_row_major_or_those_of_the_other_text() {
    let of = |layout: &str| {
        format!(
            "class G(torch.nn.Module):\n    def forward(self, x: \"f32[s17, u0, 2*s3 + 1]{layout}\"):\n        \
             return (x,)\n"
        )
    };
    let strides = |printed: &Printed| {
        let x = printed.graph.tensor_of(printed.graph.find("x").unwrap()).unwrap();
        layout::text_of(&printed.graph, printed.graph.dims(x.stride))
    };
    let plain = read(&of(""), &Known::default()).unwrap();
    let form = |text: &str| crate::expression::normal_form(text).unwrap();
    assert_eq!(strides(&plain), [form("(1 + 2 * s3)*Max(1, u0)"), form("2*s3 + 1"), "1".into()]);
    assert!(plain.notes[0].contains("taken to be row-major"), "{:?}", plain.notes);
    let like =
        read(&of("[1, 7*s17, s17]cuda:0").replace("2*s3 + 1", "1 + 2 * s3"), &Known::default()).unwrap();
    let twin = read(&of(""), &Known { like: Some(like.graph), ..Known::default() }).unwrap();
    assert_eq!(strides(&twin), ["1".to_string(), form("7*s17"), "s17".into()]);
    assert!(twin.notes.is_empty(), "{:?}", twin.notes);
}
