//! What PyTorch writes, against exact exports of the same graphs (../shared/traces, which its README describes).

use crate::common::recorded::project;
use crate::common::{Scratch, program, text as common_text};
use graph_oracle::candidates::judging;
use graph_oracle::expression::normal_form;
use graph_oracle::format::torch_trace::Source as _;
use graph_oracle::format::{fx, json, torch_trace};
use graph_oracle::graph::{Dim, Graph, NodeId, Op, Out, Value, World};
use graph_oracle::judge::Verdict;
use graph_oracle::trace::{Options, Outcome, judge_folder};
use md5::Digest;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The samples; empty, and a line says so, where they are absent.
fn samples() -> Vec<PathBuf> {
    let project = project();
    let folders = project.ancestors().skip(1).take(2).map(|folder| folder.join("shared/traces"));
    let Some(folder) = folders.into_iter().find(|folder| folder.is_dir()) else {
        println!("skipped 1 test: no traces beside the project (shared/traces)");
        return Vec::new();
    };
    let mut samples: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).collect();
    samples.retain(|path| path.join("truth/index.tsv").is_file());
    samples.sort();
    samples
}

fn unzipped(path: &Path) -> String {
    let mut text = String::new();
    let bytes = std::fs::read(path).unwrap();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    text
}

/// A graph of a sample: its text, what is known of it besides, and the export.
struct Sample {
    place: String,
    text: String,
    truth: Graph,
    /// The graph before, whose text says more, where this is one of overlap scheduling.
    like: Option<String>,
}

fn all() -> Vec<Sample> {
    let mut all = Vec::new();
    for folder in samples() {
        let index = std::fs::read_to_string(folder.join("truth/index.tsv")).unwrap();
        for row in index.lines().skip(1) {
            let columns: Vec<&str> = row.split('\t').collect();
            let [file, number, _, artifact, _, digest, truth] = columns[..] else { panic!("{row}") };
            let trace = unzipped(&folder.join(file));
            let mut reader = torch_trace::Records::new(trace.as_bytes());
            let mut records = Vec::new();
            while let Some(record) = reader.next_record().unwrap() {
                records.extend(Some(record).filter(torch_trace::Record::is_graph));
            }
            records.truncate(number.parse::<usize>().unwrap() + 1);
            let record = records.pop().unwrap();
            let before = records.iter().rfind(|record| record.name() == "before_post_grad_graph");
            let like =
                before.filter(|_| artifact.starts_with("overlap")).and_then(|record| record.payload.clone());
            assert_eq!((record.name(), record.digest()), (artifact, Some(digest)), "{file}");
            let bytes = std::fs::read(folder.join(truth)).unwrap();
            let truth_graph = json::read(&bytes).unwrap().into_graph().unwrap();
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            let place = format!("{name}/{truth}");
            all.push(Sample { place, text: record.payload.unwrap(), truth: truth_graph, like });
        }
    }
    all
}

fn known(sample: &Sample) -> fx::Known {
    let truth = &sample.truth;
    let (symbols, world) = (truth.symbols.clone(), truth.world.clone());
    let (name, kind) = (truth.name.clone(), truth.kind.clone());
    let plain = fx::Known { name, kind, symbols, world, ..fx::Known::default() };
    let like = sample.like.as_ref().map(|text| fx::read(text, &plain).unwrap().graph);
    fx::Known { like, ..plain }
}

/// A value in words, so that graphs with other numbers of things can be compared.
fn words(graph: &Graph, value: Value) -> String {
    let all = |values: &[Value]| values.iter().map(|&v| words(graph, v)).collect::<Vec<_>>().join(", ");
    match value {
        Value::Node(id) => graph.name(id).to_string(),
        Value::Str(s) => format!("{:?}", graph.text(s)),
        Value::List(span) => format!("[{}]", all(graph.values(span))),
        Value::Slice(span) => format!("slice({})", all(graph.values(span))),
        Value::Dict(span) => format!("{{{}}}", all(graph.values(span))),
        Value::Complex(span) => format!("complex({})", all(graph.values(span))),
        Value::Device(s) | Value::MemoryFormat(s) | Value::Layout(s) | Value::Function(s) => {
            graph.text(s).to_string()
        }
        Value::Dangling(s) => format!("dangling {}", graph.text(s)),
        Value::Symbolic(expr) => graph.text(graph.expr(expr).text).to_string(),
        other => format!("{other:?}"),
    }
}

fn dims(graph: &Graph, dims: &[Dim]) -> Vec<String> {
    let dim = |dim: &Dim| match *dim {
        Dim::Static(n) => n.to_string(),
        Dim::Symbolic(expr) => form(graph.text(graph.expr(expr).text)),
    };
    dims.iter().map(dim).collect()
}

fn form(text: &str) -> String {
    normal_form(text).unwrap_or_else(|| text.to_string())
}

/// What a node returns, in words. Storages are left out: a text has none.
fn out(graph: &Graph, out: Out) -> String {
    match out {
        Out::Tensor(id) => {
            let tensor = graph.tensor(id);
            let (shape, stride) =
                (dims(graph, graph.dims(tensor.shape)), dims(graph, graph.dims(tensor.stride)));
            let (dtype, device) = (tensor.dtype.name(), graph.text(tensor.device));
            format!("{dtype}{shape:?}{stride:?}{device}+{}", tensor.offset)
        }
        Out::Tuple(span) => {
            let parts: Vec<String> = graph.outs(span).iter().map(|&part| self::out(graph, part)).collect();
            format!("({})", parts.join("; "))
        }
        Out::SymInt(expr) => format!("int {}", form(graph.text(graph.expr(expr).text))),
        Out::SymBool(expr) => format!("bool {}", graph.text(graph.expr(expr).text)),
        Out::Other(_) => "other".to_string(),
        // A call that returns nothing: the export leaves it out.
        Out::None => "Absent".to_string(),
        other => format!("{other:?}"),
    }
}

/// What an export says of the results of a node in words, without those that nobody takes and nothing is said of.
fn expected(read: &Graph, id: NodeId, truth: &Graph, twin: NodeId) -> String {
    let (Out::Tuple(read_parts), Out::Tuple(parts)) = (read.node(id).out, truth.node(twin).out) else {
        return out(truth, truth.node(twin).out);
    };
    let is_taken = |index: usize| {
        let takes = |user: NodeId| read.args(user) == [Value::Node(id), Value::Int(index as i64)];
        read.ids().any(|user| read.target(user) == "operator.getitem" && takes(user))
    };
    let said = |index: usize| read.outs(read_parts).get(index).is_some_and(|&part| part != Out::Absent);
    let words =
        truth.outs(parts).iter().enumerate().map(|(index, &part)| match said(index) || is_taken(index) {
            true => out(truth, part),
            false => out(truth, Out::Absent),
        });
    format!("({})", words.collect::<Vec<_>>().join("; "))
}

fn after(graph: &Graph, id: NodeId) -> Vec<&str> {
    let mut names: Vec<&str> =
        graph.ordering.iter().filter(|edge| edge.after == id).map(|edge| graph.name(edge.before)).collect();
    names.sort_unstable();
    names
}

/// The differences between a graph that was read and its export.
fn differences(read: &Graph, truth: &Graph) -> Vec<String> {
    let mut all = Vec::new();
    if read.len() != truth.len() {
        all.push(format!("{} nodes, expected {}", read.len(), truth.len()));
    }
    for (id, twin) in read.ids().zip(truth.ids()) {
        let mut differ = |what: &str, a: String, b: String| {
            if a != b {
                all.push(format!("{}: {what} {a}, expected {b}", truth.name(twin)));
            }
        };
        let text = |graph: &Graph, id: NodeId| {
            let args: Vec<String> = graph.args(id).iter().map(|&value| words(graph, value)).collect();
            let kwargs = graph.kwargs(id).map(|(key, value)| format!("{key}={}", words(graph, value)));
            let kwargs: Vec<String> = kwargs.collect();
            format!("{} {:?} {} {args:?} {kwargs:?}", graph.name(id), graph.node(id).op, graph.target(id))
        };
        differ("call", text(read, id), text(truth, twin));
        differ("result", out(read, read.node(id).out), expected(read, id, truth, twin));
        differ("after", format!("{:?}", after(read, id)), format!("{:?}", after(truth, twin)));
        let recompute = |graph: &Graph, id: NodeId| {
            let policy = graph.tags(id).and_then(|tags| tags.recompute);
            policy.map(|policy| graph.text(policy).to_string())
        };
        // Comments hold for no inputs.
        let is_input = read.node(id).op == Op::Placeholder;
        if !is_input {
            differ(
                "recompute",
                format!("{:?}", recompute(read, id)),
                format!("{:?}", recompute(truth, twin)),
            );
        }
        if is_input && read.node(id).desc.is_some() {
            let desc = |graph: &Graph, id: NodeId| graph.node(id).desc.map(|d| graph.text(d).to_string());
            differ("descriptor", format!("{:?}", desc(read, id)), format!("{:?}", desc(truth, twin)));
        }
    }
    all
}

/// Passes of PyTorch 2.15 and TorchTitan, none known to be wrong.
#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn no_pass_of_the_samples_is_convicted() {
    let (mut sound, mut others) = (0, Vec::new());
    for folder in samples() {
        let options = Options {
            judge: judging(),
            allow: Vec::new(),
            demand: Vec::new(),
            world: World::default(),
            text: u64::MAX,
            parts: u64::MAX,
            runnable: None,
            reads_only: false,
        };
        let report = judge_folder(&folder, &options).unwrap();
        let differ = folder.ends_with("different_ranks");
        assert_eq!(report.rank_findings.len(), usize::from(differ), "{:?}", report.rank_findings);
        // Two of its four ranks were traced.
        let is_partial = folder.ends_with("titan_llama3");
        assert_eq!(report.rank_doubts.len(), usize::from(is_partial), "{:?}", report.rank_doubts);
        for row in &report.rows {
            let place = format!("{}:{} {}", row.file, row.lines.0, row.pass);
            match &row.outcome {
                Outcome::Unchanged => sound += 1,
                Outcome::NotJudged(why) => panic!("{place}: {why}"),
                Outcome::Judged(judgement) => match &judgement.verdict {
                    Verdict::Sound => sound += 1,
                    Verdict::Undecided(_) => others.push(place),
                    verdict => panic!("{place}: {verdict:?}"),
                },
            }
        }
    }
    assert!(others.len() * 8 <= sound, "{sound} sound, undecided: {others:#?}");
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn printed_graphs_are_their_exports() {
    let mut wrong = Vec::new();
    let samples = all();
    for sample in &samples {
        match fx::read(&sample.text, &known(sample)) {
            Ok(printed) => {
                let all = differences(&printed.graph, &sample.truth);
                if !all.is_empty() {
                    wrong.push(format!(
                        "{}: {} differences\n  {}",
                        sample.place,
                        all.len(),
                        all[..all.len().min(6)].join("\n  ")
                    ));
                }
            }
            Err(error) => wrong.push(format!("{}: {error}", sample.place)),
        }
    }
    println!("{} graphs", samples.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), samples.len(), wrong.join("\n"));
}

/// A file of TORCH_TRACE with these records: a name, and the body of a graph.
pub(crate) fn trace_of(records: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (name, body) in records {
        let graph = graph_text(body);
        let digest: String =
            md5::Md5::digest(graph.trim_end()).iter().map(|byte| format!("{byte:02x}")).collect();
        let head = serde_json::json!({
            "artifact": { "name": name, "encoding": "string" },
            "rank": 0, "frame_id": 0, "frame_compile_id": 0, "attempt": 0, "has_payload": digest,
        });
        text += &format!("V1122 20:08:47.934000 8363 torch/x.py:1] {head}\n");
        for line in graph.lines() {
            text += &format!("\t{line}\n");
        }
    }
    text
}

/// A printed graph of two inputs.
fn graph_text(body: &str) -> String {
    let mut text = String::from(
        "class GraphModule(torch.nn.Module):\n    def forward(self, x: \"f32[4][1]cpu\", y: \"f32[4][1]cpu\"):\n",
    );
    for line in body.lines() {
        text += &format!("        {line}\n");
    }
    text
}

pub(crate) const SUM: &str =
    "add: \"f32[4][1]cpu\" = torch.ops.aten.add.Tensor(x, y);  x = y = None\nreturn (add,)";
pub(crate) const OTHER: &str =
    "add: \"f32[4][1]cpu\" = torch.ops.aten.add.Tensor(x, x);  x = None\nreturn (add,)";

#[test]
fn a_folder_is_judged_pair_by_pair() {
    let scratch = Scratch::new("trace");
    let swapped = SUM.replace("(x, y)", "(y, x)");
    let text = trace_of(&[
        ("before_right_pass", SUM),
        ("after_right_pass", &swapped),
        ("before_idle_pass", SUM),
        ("after_idle_pass", SUM),
        ("before_wrong_pass", SUM),
        ("after_wrong_pass", OTHER),
        ("before_unread_pass", SUM),
        ("after_unread_pass", &SUM.replace("f32[4][1]cpu\" = torch", "q7[4][1]cpu\" = torch")),
        ("before_damaged_pass", SUM),
        ("after_damaged_pass", &SUM.replace("add:", "damaged:")),
        ("before_lost_pass", SUM),
    ]);
    let text = text.replace("damaged: ", "harmless: ");
    // A record that cannot be read, and a last one that is cut off.
    let text = text + "V1122 20:08:47.934000 8363 torch/x.py:1] {\"artifact\"\n\tlost\nV1122 20:08:4";
    scratch.write("dedicated_log_torch_trace_rank_0_abc.log", text.as_bytes());
    scratch.write("something_else.log", b"nothing");
    let run = program(&["trace", &scratch.path("")]);
    let (out, status) = (common_text(&run.stdout), run.status.code());
    assert_eq!(status, Some(1), "{out}{}", common_text(&run.stderr));
    for words in [
        "right_pass",
        "wrong_pass",
        "rewrite/values: ",
        "after: line 39, column 9: the dtype of \"q7[4][1]cpu\" is not known",
        "there is no graph after it: the pass raised, or the log ends",
        "after: line 46: the text is damaged: its MD5 is another",
        "8 pairs in 1 file: 2 sound, 1 unchanged, 2 violated, 3 not judged",
        "1 record cannot be read, the first in line 56",
        "inputs are taken to be distinct",
    ] {
        assert!(out.contains(words), "expected {words:?} in\n{out}");
    }
    let json = program(&["trace", &scratch.path(""), "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let verdicts: Vec<&str> =
        report["pairs"].as_array().unwrap().iter().map(|pair| pair["verdict"].as_str().unwrap()).collect();
    let between = ["between right_pass and idle_pass", "between wrong_pass and unread_pass"];
    let expected =
        ["sound", "sound", "unchanged", "violated", "violated", "not judged", "not judged", "not judged"];
    assert_eq!(verdicts, expected);
    assert_eq!([&report["pairs"][1]["pass"], &report["pairs"][4]["pass"]], between);
    let none = program(&["trace", env!("CARGO_MANIFEST_DIR")]);
    assert_eq!(none.status.code(), Some(2), "{}", common_text(&none.stderr));
    assert!(common_text(&none.stderr).contains("no file of TORCH_TRACE here"));
}

#[test]
fn ranks_that_part_are_found() {
    let scratch = Scratch::new("trace-ranks");
    let launches = |first: &str, second: &str| {
        let gather = "_c10d_functional.all_gather_into_tensor.default(x, 2, '0')";
        let reduce = "_c10d_functional.all_reduce.default(y, 'sum', '0')";
        let node = |name: &str| match name {
            "g" => format!("g: \"f32[8][1]cpu\" = torch.ops.{gather}"),
            _ => format!("r: \"f32[4][1]cpu\" = torch.ops.{reduce}"),
        };
        let wait = "torch.ops._c10d_functional.wait_tensor.default";
        format!(
            "{}\n{}\nw: \"f32[8][1]cpu\" = {wait}(g);  g = None\nv: \"f32[4][1]cpu\" = {wait}(r);  r = None\nreturn (w, v)",
            node(first),
            node(second)
        )
    };
    let (one, other) = (launches("g", "r"), launches("r", "g"));
    for (rank, after) in [(0, &one), (1, &other)] {
        let text = trace_of(&[("before_order_pass", &one), ("after_order_pass", after)]);
        let text = text.replace("\"rank\":0", &format!("\"rank\":{rank}"));
        scratch.write(&format!("dedicated_log_torch_trace_rank_{rank}_abc.log"), text.as_bytes());
    }
    let run = program(&["trace", &scratch.path("")]);
    let out = common_text(&run.stdout);
    assert_eq!(run.status.code(), Some(1), "{out}");
    let words = "RANKS DIFFER: order_pass of 0/0: launch 0 is all_gather over 2 ranks of 4 f32 on rank 0";
    assert!(out.contains(words), "{out}");
}

/// A joint graph and its parts; `saved` is what forward hands over, and backward multiplies by.
fn triple(saved: &str) -> String {
    let mul = |name: &str, a: &str, b: &str| {
        format!("{name}: \"f32[4][1]cpu\" = torch.ops.aten.mul.Tensor({a}, {b})")
    };
    let joint = format!("{}\n{}\nreturn (m, g)", mul("m", "x", "x"), mul("g", "tangents_1", "x"));
    let forward = format!("{}\nreturn (m, {saved})", mul("m", "x", "x"));
    let backward = format!("{}\nreturn (g,)", mul("g", "tangents_1", saved));
    let text = trace_of(&[
        ("aot_joint_graph", &joint),
        ("aot_forward_graph", &forward),
        ("aot_backward_graph", &backward),
    ]);
    // Backward takes the tangent and what is saved, forward the other input.
    renamed_inputs(&text, saved)
}

/// A trace without the MD5s of its payloads.
fn without_digests(text: &str) -> String {
    let line = |line: &str| {
        let Some(from) = line.find("\"has_payload\":\"") else { return format!("{line}\n") };
        let value = from + "\"has_payload\":".len();
        let end = value + 2 + line[value + 1..].find('"').unwrap_or(0);
        format!("{}true{}\n", &line[..value], &line[end..])
    };
    text.lines().map(line).collect()
}

/// The inputs of the three graphs: `x` and a tangent; `x`; what is saved and the tangent. The MD5s are left out.
fn renamed_inputs(text: &str, saved: &str) -> String {
    let both = "self, x: \"f32[4][1]cpu\", y: \"f32[4][1]cpu\"";
    let one = "self, x: \"f32[4][1]cpu\"";
    let joint = both.replace("y:", "tangents_1:");
    let backward = format!("self, {saved}: \"f32[4][1]cpu\", tangents_1: \"f32[4][1]cpu\"");
    let mut parts = text.split(both);
    let mut out = parts.next().unwrap_or("").to_string();
    for (part, signature) in parts.zip([&joint[..], one, &backward]) {
        out += signature;
        out += part;
    }
    without_digests(&out)
}

#[test]
fn a_joint_graph_is_compared_with_its_parts() {
    for (saved, verdict) in [("x", "sound"), ("m", "violated")] {
        let scratch = Scratch::new("triple");
        scratch.write("dedicated_log_torch_trace_rank_0_abc.log", triple(saved).as_bytes());
        let run = program(&["trace", &scratch.path(""), "--format", "json"]);
        let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        let pairs = report["pairs"].as_array().unwrap();
        assert_eq!(pairs.len(), 1, "{report:#}");
        assert_eq!(
            (&pairs[0]["pass"], &pairs[0]["verdict"]),
            (&"partition".into(), &verdict.into()),
            "{report:#}"
        );
    }
}

/// What passes of a name do is tried where the bits differ; of other passes only what the user allows.
#[test]
fn passes_are_judged_by_what_they_are_made_to_do() {
    let scratch = Scratch::new("contracts");
    let plain = "mm: \"f32[4, 4][4, 1]cpu\" = torch.ops.aten.mm.default(x, x)\n\
                 add: \"f32[4, 4][4, 1]cpu\" = torch.ops.aten.add.Tensor(mm, y);  mm = None\nreturn (add,)";
    let fused = "add: \"f32[4, 4][4, 1]cpu\" = torch.ops.aten.addmm.default(y, x, x)\nreturn (add,)";
    let records = [
        ("before_post_grad_graph", plain),
        ("inductor_post_grad_graph", fused),
        ("before_any_pass", plain),
        ("after_any_pass", fused),
        ("before_annotate_pass", plain),
        ("after_annotate_pass", fused),
    ];
    let text = trace_of(&records);
    let text = without_digests(&text.replace("f32[4][1]cpu", "f32[4, 4][4, 1]cpu"));
    scratch.write("dedicated_log_torch_trace_rank_0_abc.log", text.as_bytes());
    let verdicts = |flags: &[&str]| {
        let folder = scratch.path("");
        let run = program(&[&["trace", &folder, "--format", "json"], flags].concat());
        let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
        let all = report["pairs"].as_array().unwrap().iter();
        let all = all
            .map(|pair| format!("{} {}", pair["pass"].as_str().unwrap(), pair["verdict"].as_str().unwrap()));
        all.filter(|row| !row.starts_with("between")).collect::<Vec<_>>()
    };
    let [post, any, note] = verdicts(&[]).try_into().unwrap();
    assert_eq!(post, "post_grad sound");
    assert!(["any_pass undecided", "any_pass violated"].contains(&any.as_str()), "{any}");
    assert_eq!(note, "annotate_pass violated");
    assert_eq!(verdicts(&["--allow", "reassociation"])[1], "any_pass sound");
    let refused = program(&["trace", &scratch.path(""), "--allow", "anything"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_folder_that_grows_is_followed() {
    let scratch = Scratch::new("watch");
    let (folder, swapped) = (scratch.path(""), SUM.replace("(x, y)", "(y, x)"));
    let text = trace_of(&[("before_a", SUM), ("after_a", &swapped), ("before_b", SUM), ("after_b", OTHER)]);
    let half = text.len() / 2;
    scratch.write("dedicated_log_torch_trace_rank_0_abc.log", &text.as_bytes()[..half]);
    let path = scratch.path("dedicated_log_torch_trace_rank_0_abc.log");
    let rest = text[half..].to_string();
    let writer = std::thread::spawn(move || {
        use std::io::Write;
        std::thread::sleep(std::time::Duration::from_millis(300));
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        for piece in rest.as_bytes().chunks(700) {
            file.write_all(piece).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    let run = program(&["watch", &folder, "--every", "0.05", "--until-idle", "3"]);
    writer.join().unwrap();
    let out = common_text(&run.stdout);
    assert_eq!(run.status.code(), Some(1), "{out}{}", common_text(&run.stderr));
    let rows: Vec<&str> = out.lines().filter(|line| line.contains("rank 0")).collect();
    let words: Vec<&str> = rows.iter().map(|row| row.split(' ').next().unwrap_or("")).collect();
    // The second is between the two passes.
    assert_eq!(words, ["sound", "sound", "violated"], "{out}");
    assert!(out.contains("3 pairs in 1 file: 2 sound, 1 violated"), "{out}");
}

/// What is right on each rank is wrong beside the others: one of two launches alike comes first on one of them.
#[test]
fn ranks_are_judged_together() {
    let scratch = Scratch::new("together");
    let gather = |name: &str, of: &str| {
        format!(
            "{name}: \"f32[8][1]cpu\" = torch.ops._c10d_functional.all_gather_into_tensor.default({of}, 2, '0')"
        )
    };
    let wait = |name: &str, of: &str| {
        format!("{name}: \"f32[8][1]cpu\" = torch.ops._c10d_functional.wait_tensor.default({of})")
    };
    let graph = |launches: [String; 2]| {
        let rest = [wait("v", "a"), wait("w", "b"), "return (v, w)".to_string()];
        launches.into_iter().chain(rest).collect::<Vec<_>>().join("\n")
    };
    let right = graph([gather("a", "x"), gather("b", "y")]);
    let other = graph([gather("b", "y"), gather("a", "x")]);
    for (second, status) in [(&right, 0), (&other, 1)] {
        for (rank, after) in [(0, &right), (1, second)] {
            let text = trace_of(&[("before_a_pass", &right), ("after_a_pass", after)]);
            let text = text.replace("\"rank\":0", &format!("\"rank\":{rank}"));
            scratch.write(&format!("dedicated_log_torch_trace_rank_{rank}_abc.log"), text.as_bytes());
        }
        let run = program(&["trace", &scratch.path("")]);
        let out = common_text(&run.stdout);
        assert_eq!(run.status.code(), Some(status), "{out}");
        let told = out
            .contains("RANKS DIFFER: a_pass of 0/0: rewrite/collectives: ranks 0 and 1 disagree on group 0");
        assert_eq!(told, status == 1, "{out}");
    }
}

/// What ranks run is compared as it was traced, before any pass: who leaves the common order, at which launch and line.
#[test]
fn ranks_that_run_other_programs_are_found() {
    let wait = |name: &str, of: &str, size: u32| {
        format!("{name}: \"f32[{size}][1]cpu\" = torch.ops._c10d_functional.wait_tensor.default({of})")
    };
    let gather = |of: &str| {
        let call = format!("torch.ops._c10d_functional.all_gather_into_tensor.default({of}, 3, '0')");
        format!(
            "# File: /src/train.py:7 in step, code: gather\ng: \"f32[12][1]cpu\" = {call}\n{}",
            wait("v", "g", 12)
        )
    };
    let reduce = |group: &str| {
        let call = format!("torch.ops._c10d_functional.all_reduce.default(x, 'sum', '{group}')");
        format!(
            "# File: /src/train.py:9 in step, code: sum\nr: \"f32[4][1]cpu\" = {call}\n{}",
            wait("w", "r", 4)
        )
    };
    let both = format!("{}\n{}\nreturn (v, w)", gather("x"), reduce("0"));
    let swapped = format!("{}\n{}\nreturn (v, w)", reduce("0"), gather("x"));
    let only = format!("{}\nreturn (v,)", gather("x"));
    let stage = |group: &str| format!("{}\n{}\nreturn (v, w)", gather("x"), reduce(group));
    let [first, second] = ["1", "2"].map(stage);
    let differs = "RANKS DIFFER: rank 2 leaves the common order at launch";
    // The graphs of three ranks: of one frame, or of two.
    let cases: [([Vec<&str>; 3], i32, &[&str]); 5] = [
        ([vec![&both], vec![&both], vec![&both]], 0, &[]),
        (
            [vec![&both], vec![&both], vec![&swapped]],
            1,
            &[
                differs,
                "0 on group 0: it launches r (all_reduce",
                "/src/train.py:9 in step]; ranks 0 and 1 launch g (all_gather",
            ],
        ),
        (
            [vec![&both], vec![&both], vec![&only]],
            1,
            &[differs, "1 on group 0: it launches nothing more; ranks 0 and 1 launch r"],
        ),
        // Stages of a pipeline have groups of their own.
        ([vec![&first], vec![&second], vec![&second]], 0, &[]),
        // The log may end before the frame is compiled.
        (
            [vec![&both, &only], vec![&both, &only], vec![&both]],
            3,
            &["RANKS MAY DIFFER: rank 2 leaves the common order at launch 2"],
        ),
    ];
    let scratch = Scratch::new("trace-programs");
    let groups = scratch.write("groups.json", br#"{"world":{"ranks":3},"groups":{"0":{"ranks":[[0,1,2]]},"1":{"ranks":[[0]]},"2":{"ranks":[[1,2]]}}}"#);
    let folder = scratch.path("logs");
    std::fs::create_dir_all(&folder).unwrap();
    for (ranks, status, told) in cases {
        for (rank, frames) in ranks.iter().enumerate() {
            let frames = frames.iter().enumerate().map(|(frame, body)| {
                let text = trace_of(&[("before_a_pass", body), ("after_a_pass", body)]);
                text.replace("\"rank\":0", &format!("\"rank\":{rank}"))
                    .replace("\"frame_id\":0", &format!("\"frame_id\":{frame}"))
            });
            let name = format!("logs/dedicated_log_torch_trace_rank_{rank}_abc.log");
            scratch.write(&name, frames.collect::<String>().as_bytes());
        }
        let run = program(&["trace", &folder, "--groups", &groups]);
        let out = common_text(&run.stdout) + &common_text(&run.stderr);
        assert_eq!(run.status.code(), Some(status), "{out}");
        assert!(told.iter().all(|words| out.contains(words)), "{told:?} in {out}");
        assert!(status != 0 || !out.contains("DIFFER"), "{out}");
    }
}

/// A rank whose log holds no graph is not compared with the others: that is open, where a group may have it.
#[test]
fn a_rank_without_graphs_is_a_doubt() {
    let wait = "w: \"f32[4][1]cpu\" = torch.ops._c10d_functional.wait_tensor.default(r)\nreturn (w,)";
    let body = |group: &str| {
        let call = format!("torch.ops._c10d_functional.all_reduce.default(x, 'sum', '{group}')");
        let text = format!("r: \"f32[4][1]cpu\" = {call}\n{wait}");
        trace_of(&[("before_a_pass", &text), ("after_a_pass", &text)])
    };
    let alone = |rank: u32| {
        let head = format!("{{\"dynamo_start\":{{}},\"rank\":{rank},\"frame_id\":0,\"frame_compile_id\":0}}");
        format!("V1122 20:08:47.934000 8363 torch/x.py:1] {head}\n")
    };
    let name = |rank: u32| format!("logs/dedicated_log_torch_trace_rank_{rank}_abc.log");
    let doubt = |rank: u32| {
        format!(
            "RANKS MAY DIFFER: rank {rank} is not compared with the others: dedicated_log_torch_trace_rank_{rank}_abc.log \
             holds no graph"
        )
    };
    let scratch = Scratch::new("trace-no-graph");
    let groups = scratch.write(
        "groups.json",
        br#"{"world":{"ranks":3},"groups":{"0":{"ranks":[[0,1,2]]},"1":{"ranks":[[0,1]]}}}"#,
    );
    let folder = scratch.path("logs");
    std::fs::create_dir_all(&folder).unwrap();
    // The group of ranks 0 and 1, what the log of rank 2 holds, and whether it may be a member.
    for (group, log, is_doubt) in [
        ("0", alone(2), true),
        ("0", String::new(), true),
        ("0", "?".to_string(), true),
        ("1", alone(2), false),
    ] {
        for rank in [0, 1] {
            let text = body(group).replace("\"rank\":0", &format!("\"rank\":{rank}"));
            scratch.write(&name(rank), text.as_bytes());
        }
        scratch.write(&name(2), log.as_bytes());
        let runs = [
            program(&["trace", &folder, "--groups", &groups]),
            program(&["watch", &folder, "--groups", &groups, "--every", "0.05", "--until-idle", "0.1"]),
        ];
        for run in runs {
            let out = common_text(&run.stdout) + &common_text(&run.stderr);
            assert_eq!(out.contains(&doubt(2)), is_doubt, "{group} {log}: {out}");
            assert_eq!(run.status.code(), Some(if is_doubt { 3 } else { 0 }), "{out}");
        }
    }
}

/// A rank that the groups name and that has no log is named too. Of one file nothing else is asked.
#[test]
fn a_rank_without_a_log_is_a_doubt() {
    let wait = "w: \"f32[4][1]cpu\" = torch.ops._c10d_functional.wait_tensor.default(r)\nreturn (w,)";
    let call = "r: \"f32[4][1]cpu\" = torch.ops._c10d_functional.all_reduce.default(x, 'sum', '0')";
    let text = format!("{call}\n{wait}");
    let log = trace_of(&[("before_a_pass", &text), ("after_a_pass", &text)]);
    let scratch = Scratch::new("trace-no-log");
    std::fs::create_dir_all(scratch.path("logs")).unwrap();
    let name = |rank: u32| format!("logs/dedicated_log_torch_trace_rank_{rank}_abc.log");
    for rank in [0, 1] {
        scratch.write(&name(rank), log.replace("\"rank\":0", &format!("\"rank\":{rank}")).as_bytes());
    }
    let groups = |ranks: u32, members: &str| {
        let text =
            format!("{{\"world\":{{\"ranks\":{ranks}}},\"groups\":{{\"0\":{{\"ranks\":{members}}}}}}}");
        scratch.write(&format!("groups_{ranks}.json"), text.as_bytes())
    };
    let (two, three) = (groups(2, "[[0,1]]"), groups(3, "[[0,1,2]]"));
    let many = groups(7, "[[0,1],[2,3]]");
    let not_compared = |who: &str, it: &str| {
        format!(
            "RANKS MAY DIFFER: {who} not compared with the others: no log of {it} is here, and the job has {it}"
        )
    };
    for (path, groups, told) in [
        ("logs".to_string(), &two, None),
        ("logs".to_string(), &three, Some(not_compared("rank 2 is", "it"))),
        ("logs".to_string(), &many, Some(not_compared("ranks 2, 3, 4, 5 and 1 other are", "them"))),
        (name(0), &three, None),
    ] {
        let run = program(&["trace", &scratch.path(&path), "--groups", groups]);
        let out = common_text(&run.stdout) + &common_text(&run.stderr);
        assert_eq!(run.status.code(), Some(if told.is_some() { 3 } else { 0 }), "{out}");
        assert!(told.is_none_or(|words| out.contains(&words)), "{out}");
    }
}

/// Every graph of a trace is a file that other commands read, and all ranks together are a program to simulate.
#[test]
fn graphs_are_taken_out_of_a_trace() {
    let scratch = Scratch::new("trace-extract");
    let folder = scratch.path("logs");
    std::fs::create_dir_all(&folder).unwrap();
    let body = |first: &str, second: &str| {
        let call = |name: &str| match name {
            "g" => {
                "g: \"f32[8][1]cpu\" = torch.ops._c10d_functional.all_gather_into_tensor.default(x, 2, '0')"
            }
            _ => "r: \"f32[4][1]cpu\" = torch.ops._c10d_functional.all_reduce.default(y, 'sum', '0')",
        };
        let wait = "torch.ops._c10d_functional.wait_tensor.default";
        let waits = format!("w: \"f32[8][1]cpu\" = {wait}(g)\nv: \"f32[4][1]cpu\" = {wait}(r)");
        format!("{}\n{}\n{waits}\nreturn (w, v)", call(first), call(second))
    };
    let (one, other) = (body("g", "r"), body("r", "g"));
    for (second, status) in [(&one, 0), (&other, 1)] {
        for (rank, body) in [(0, &one), (1, second)] {
            let text = trace_of(&[("before_a_pass", body), ("after_a_pass", body)]);
            let text = text.replace("\"rank\":0", &format!("\"rank\":{rank}"));
            scratch.write(&format!("logs/dedicated_log_torch_trace_rank_{rank}_abc.log"), text.as_bytes());
        }
        let run = program(&["simulate", &folder]);
        assert_eq!(
            run.status.code(),
            Some(status),
            "{}{}",
            common_text(&run.stdout),
            common_text(&run.stderr)
        );
    }
    let out = scratch.path("graphs");
    let run = program(&["trace", &folder, "--extract", &out]);
    let said = common_text(&run.stdout);
    assert!(said.contains("note: 4 graphs written to "), "{said}{}", common_text(&run.stderr));
    let [before, after] = ["before", "after"].map(|name| format!("{out}/rank_1/0_0/{name}_a_pass.json"));
    let run = program(&["check", "rewrite", &before, &after]);
    assert_eq!(run.status.code(), Some(0), "{}{}", common_text(&run.stdout), common_text(&run.stderr));
}

/// What two ranks write alike is said of both.
#[test]
fn equal_texts_have_equal_verdicts() {
    let scratch = Scratch::new("alike");
    for rank in 0..3 {
        let text = trace_of(&[("before_a", SUM), ("after_a", OTHER)])
            .replace("\"rank\":0", &format!("\"rank\":{rank}"));
        scratch.write(&format!("dedicated_log_torch_trace_rank_{rank}_abc.log"), text.as_bytes());
    }
    let run = program(&["trace", &scratch.path(""), "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap();
    let pairs = report["pairs"].as_array().unwrap();
    let ranks: Vec<u64> = pairs.iter().map(|pair| pair["rank"].as_u64().unwrap()).collect();
    assert_eq!(ranks, [0, 1, 2]);
    assert!(
        pairs.iter().all(|pair| pair["verdict"] == "violated" && pair["why"] == pairs[0]["why"]),
        "{report:#}"
    );
}

#[test]
fn a_printed_graph_is_a_graph_for_all_commands() {
    let scratch = Scratch::new("printed");
    let before = scratch.write("before.txt", graph_text(SUM).as_bytes());
    let after = scratch.write("after.txt", graph_text(OTHER).as_bytes());
    let same = program(&["check", "rewrite", &before, &before]);
    assert_eq!(same.status.code(), Some(0), "{}{}", common_text(&same.stdout), common_text(&same.stderr));
    let wrong = program(&["check", "rewrite", &before, &after]);
    assert_eq!(wrong.status.code(), Some(1), "{}", common_text(&wrong.stdout));
    let shown = program(&["show", &before]);
    assert!(common_text(&shown.stdout).contains("add"), "{}", common_text(&shown.stdout));
    let damaged = scratch.write("damaged.txt", graph_text("add: \"f32[4][1]cpu\" = x +").as_bytes());
    let refused = program(&["show", &damaged]);
    assert_eq!(refused.status.code(), Some(2));
    let why = common_text(&refused.stderr);
    assert!(why.contains("damaged.txt:3:"), "{why}");
    let trace = scratch.write("trace.log", trace_of(&[("before_a", SUM)]).as_bytes());
    let refused = program(&["check", "rewrite", &trace, &trace]);
    assert!(common_text(&refused.stderr).contains("graph-oracle trace"), "{}", common_text(&refused.stderr));
}
