//! What PyTorch writes besides TORCH_TRACE, and what is wrong with any of it: logs of TORCH_LOGS,
//! `fx_graph_runnable.py`, names of process groups that are hashes, damaged files.

use crate::common::{Scratch, program, text};
use md5::Digest;

const ADD: &str = "add: \"f32[4][1]cpu\" = torch.ops.aten.add.Tensor(x, y)\nreturn (add,)";

/// A printed graph of two inputs.
fn graph(body: &str) -> String {
    let lines: String = body.lines().map(|line| format!("        {line}\n")).collect();
    let inputs = "x: \"f32[4][1]cpu\", y: \"f32[4][1]cpu\"";
    format!("class GraphModule(torch.nn.Module):\n    def forward(self, {inputs}):\n{lines}")
}

/// A message of TORCH_LOGS that holds a graph.
fn message(rank: u32, log: &str, title: &str, graph: &str) -> Vec<String> {
    let lines = ["TRACED GRAPH".to_string(), format!(" ===== {title} =====")];
    let lines = lines.into_iter().chain([format!(" /torch/fx.py {graph}")]);
    let text: String = lines.map(|line| line + "\n").collect();
    let prefix = format!("[rank{rank}]:I1122 20:25:32.880000 {} torch/x.py:1] [0/1] [__{log}]", 100 + rank);
    text.lines().map(|line| format!("{prefix} {line}\n")).collect()
}

/// A record of TORCH_TRACE.
fn record(name: &str, payload: &str) -> String {
    let digest: String = md5::Md5::digest(payload).iter().map(|byte| format!("{byte:02x}")).collect();
    let head = serde_json::json!({
        "artifact": { "name": name, "encoding": "string" },
        "rank": 0, "frame_id": 0, "frame_compile_id": 0, "attempt": 0, "has_payload": digest,
    });
    let lines: String = payload.split('\n').map(|line| format!("\t{line}\n")).collect();
    format!("V1122 20:08:47.934000 8363 torch/x.py:1] {head}\n{lines}")
}

/// What the program says of arguments, and its exit status.
fn said(arguments: &[&str]) -> (String, Option<i32>) {
    let run = program(arguments);
    (text(&run.stdout) + &text(&run.stderr), run.status.code())
}

#[test]
fn logs_of_several_ranks_are_judged() {
    let scratch = Scratch::new("torch-logs");
    let (right, wrong) = (ADD.replace("(x, y)", "(y, x)"), ADD.replace("(x, y)", "(x, x)"));
    let of = |rank, after: &str| {
        let forward = message(rank, "aot_graphs", "Forward graph 3", &graph(ADD));
        [forward, message(rank, "post_grad_graphs", "AFTER POST GRAD", &graph(after))].concat()
    };
    // The lines of two ranks in turn, coloured as on a terminal.
    let (zero, one) = (of(0, &right), of(1, &wrong));
    let lines: String = zero.iter().zip(&one).flat_map(|(a, b)| [a.as_str(), b.as_str()]).collect();
    let log = "epoch 1\n".to_string() + &lines.replace("add:", "\u{1b}[31madd\u{1b}[0m:");
    scratch.write("run.err", log.as_bytes());
    scratch.write("notes.txt", b"nothing of interest");
    let (out, status) = said(&["trace", &scratch.path("")]);
    assert_eq!(status, Some(1), "{out}");
    for words in [
        "aot_forward_graph to after post_grad  0/1    0     sound",
        "aot_forward_graph to after post_grad  0/1    1     violated",
        "2 pairs in 1 file: 1 sound, 1 violated",
        "1 other file passed over",
    ] {
        assert!(out.contains(words), "expected {words:?} in\n{out}");
    }
    // Another rank's line in the middle of one.
    let torn = log.replacen("torch.ops.aten.add.Tensor(y, x)", &format!("torch.ops{}", one[0].trim_end()), 1);
    let (out, _) = said(&["trace", &scratch.write("torn.err", torn.as_bytes())]);
    assert!(out.contains("1 record cannot be read"), "{out}");
    let short = "INFO:torch._functorch.x.__aot_graphs:TRACED GRAPH\n ===== Forward graph 0 =====\n";
    let (out, status) = said(&["trace", &scratch.write("short.err", short.as_bytes())]);
    assert!(status == Some(2) && out.contains("TORCH_LOGS_FORMAT=short"), "{out}");
}

/// A write of `x`, and a read of `y` before or behind it.
fn write_and_read(is_read_first: bool) -> String {
    let write = "add_: \"f32[4][1]cpu\" = torch.ops.aten.add_.Tensor(x, 1)";
    let read = "neg: \"f32[4][1]cpu\" = torch.ops.aten.neg.default(y)";
    let (first, second) = if is_read_first { (read, write) } else { (write, read) };
    graph(&format!("{first}\n{second}\nreturn (neg,)"))
}

fn runnable(second: &str) -> String {
    format!(
        "class Repro(torch.nn.Module):\n    def forward(self, x, y):\n        return (x,)\n\ndef load_args(reader):\n    \
         buf0 = reader.storage(None, 32)\n    buf1 = reader.storage(None, 16)\n    reader.tensor(buf0, (4,))  # x\n    \
         reader.tensor({second})  # y\nload_args._version = 0\n"
    )
}

#[test]
fn a_runnable_says_which_inputs_share_memory() {
    let scratch = Scratch::new("runnable");
    let before = scratch.write("before.txt", write_and_read(true).as_bytes());
    let after = scratch.write("after.txt", write_and_read(false).as_bytes());
    let status = |second: &str| {
        let from = scratch.write("runnable.py", runnable(second).as_bytes());
        said(&["check", "rewrite", &before, &after, "--from", &from])
    };
    assert_eq!(said(&["check", "rewrite", &before, &after]).1, Some(0));
    for (second, expected) in [
        ("buf1, (4,)", 0),
        ("buf0, (4,)", 1),
        ("buf0, (4,), storage_offset=2", 1),
        ("buf0, (4,), storage_offset=4", 0),
    ] {
        let (out, status) = status(second);
        assert_eq!(status, Some(expected), "{second}: {out}");
    }
    let (out, code) = status("buf1, (5,)");
    assert!(code == Some(2) && out.contains("that is the runnable of another graph"), "{out}");
    let (out, code) = status("buf9, (4,)");
    assert!(code == Some(2) && out.contains("runnable.py:9:5: load_args"), "{out}");
    let other = scratch.write("other.py", runnable("buf1, (4,)").replace("# y", "# z").as_bytes());
    let (out, code) = said(&["check", "rewrite", &before, &after, "--from", &other]);
    assert!(code == Some(2) && out.contains("the runnable of another graph"), "{out}");
    // In a trace it stands before the graphs.
    for (second, expected) in [("buf1, (4,)", 0), ("buf0, (4,)", 1)] {
        let records = record("fx_graph_runnable", &runnable(second))
            + &record("before_a", &write_and_read(true))
            + &record("after_a", &write_and_read(false));
        let (out, code) = said(&["trace", &scratch.write("trace.log", records.as_bytes())]);
        assert_eq!(code, Some(expected), "{second}: {out}");
    }
}

#[test]
fn a_group_whose_name_is_a_hash_has_members() {
    // The SHA-1 of `0_1_2_3_38`.
    const HASHED: &str = "87a621ab382d3799edf8b3edd049377c6693c3ce";
    let pair = |group: &str| {
        let reduce = format!("torch.ops._c10d_functional.all_reduce.default(x, 'sum', '{group}')");
        let wait = "torch.ops._c10d_functional.wait_tensor.default(r)";
        let body = format!("r: \"f32[4][1]cpu\" = {reduce}\nw: \"f32[4][1]cpu\" = {wait}\nreturn (w,)");
        record("before_a", &graph(&body)) + &record("after_a", &graph(&(body.clone() + "  # all")))
    };
    let scratch = Scratch::new("hashed");
    let path = scratch.write("trace.log", pair(HASHED).as_bytes());
    for arguments in [&["trace", &path, "-v"][..], &["trace", &path, "-v", "--ranks", "4"]] {
        let (out, status) = said(arguments);
        assert_eq!(status, Some(0), "{out}");
        assert!(out.contains("has 4 ranks, 0, 1, 2, 3: its name is their hash"), "{out}");
    }
    let unknown = scratch.write("unknown.log", pair(&HASHED.replace("87a", "87b")).as_bytes());
    let (out, status) = said(&["trace", &unknown]);
    assert!(status == Some(3) && out.contains("is not in the text"), "{out}");
    // A size that only a runnable says, behind the graphs or in a file of its own.
    let runnable = runnable("buf1, (4,)") + "setup_fake_process_groups({'7': {'size': 2, 'rank': 1}})\n";
    let late = scratch.write("late.log", (pair("7") + &record("fx_graph_runnable", &runnable)).as_bytes());
    let (out, status) = said(&["trace", &late]);
    assert_eq!(status, Some(0), "{out}");
    let without = scratch.write("without.log", pair("7").as_bytes());
    let from = scratch.write("runnable.py", runnable.as_bytes());
    assert_eq!(said(&["trace", &without]).1, Some(3));
    assert_eq!(said(&["trace", &without, "--from", &from]).1, Some(0));
}

/// One clear line for each fault; the rest of the file is judged.
#[test]
fn damage_is_one_line_and_the_rest_is_judged() {
    let scratch = Scratch::new("damage");
    let good = record("before_right", &graph(ADD))
        + &record("after_right", &graph(&ADD.replace("(x, y)", "(y, x)")));
    let deep = format!("n = torch.ops.a.b.c({}", "[".repeat(100_000));
    for (what, damage, words) in [
        (
            "half a line",
            "V1122 20:08:47.934000 8363 torch/x.py:1] {\"artifact\": {\"na".to_string(),
            "1 record cannot be read",
        ),
        (
            "NUL bytes",
            record("before_a", "class \0(torch.nn.Module):\n\0\0"),
            "the pass raised, or the log ends",
        ),
        ("another program", "2026-01-01 INFO class X(torch.nn.Module):\n\tat java.lang\n".repeat(9), ""),
        ("an unknown artifact", record("weird", "class of its own\n  x"), ""),
        (
            "a cut graph",
            record("before_a", &graph("n: \"f32[4][1]cpu\" = torch.ops.aten.neg.default(x")),
            "the pass raised",
        ),
        (
            "brackets",
            record("before_a", &graph(&deep)) + &record("after_a", &graph(&deep)),
            "brackets inside more than",
        ),
        (
            "another MD5",
            (record("before_a", &graph(ADD)) + &record("after_a", &graph(ADD))).replacen("add:", "sum:", 1),
            "MD5",
        ),
        (
            "a line too long",
            format!("V1122 20:08:47.934000 8363 torch/x.py:1] {{\"a\": \"{}\"}}\n", "x".repeat(65 << 20)),
            "1 record cannot be read",
        ),
    ] {
        let path = scratch.write("trace.log", (damage + "\n" + &good).as_bytes());
        let (out, status) = said(&["trace", &path]);
        assert!(matches!(status, Some(0 | 3)), "{what}: {out}");
        assert!(out.contains(words) && out.contains("1 sound") && !out.contains("panicked"), "{what}: {out}");
    }
    // Line ends of another system change every payload, and so do bytes that are no UTF-8.
    let (out, status) = said(&["trace", &scratch.write("crlf.log", good.replace('\n', "\r\n").as_bytes())]);
    assert!(status == Some(3) && out.contains("its MD5 is another"), "{out}");
    let mut bytes = good.clone().into_bytes();
    let at = bytes.windows(4).position(|word| word == b"add:").unwrap();
    bytes[at] = 0xff;
    let (out, status) = said(&["trace", &scratch.write("bytes.log", &bytes)]);
    assert!(status == Some(3) && out.contains("its MD5 is another"), "{out}");
    let crlf = scratch.write("crlf.txt", graph(ADD).replace('\n', "\r\n").as_bytes());
    assert_eq!(said(&["check", "rewrite", &crlf, &crlf]).1, Some(0));
}

#[test]
fn an_offset_that_is_left_out_follows_from_the_operator() {
    let scratch = Scratch::new("offsets");
    let document = |piece: &str| {
        format!(
            r#"{{"schema_version":"graph-oracle/1","nodes":[
            {{"name":"x","op":"placeholder","target":"x","out":{{"t":"tensor","shape":[4,2],"dtype":"float32","device":"cpu","stride":[2,1]}}}},
            {{"name":"s","op":"call_function","target":"aten.split.Tensor","args":[{{"ref":"x"}},2],"out":[
              {{"t":"tensor","shape":[2,2],"dtype":"float32","device":"cpu","stride":[2,1]}},
              {{"t":"tensor","shape":[2,2],"dtype":"float32","device":"cpu","stride":[2,1]}}]}},
            {{"name":"g","op":"call_function","target":"operator.getitem","args":[{{"ref":"s"}},1],"out":{{"t":"tensor","shape":[2,2],"dtype":"float32","device":"cpu","stride":[2,1]}}}},
            {{"name":"v","op":"call_function","target":"aten.select.int","args":[{{"ref":"g"}},0,1],"out":{{"t":"tensor","shape":[2],"dtype":"float32","device":"cpu","stride":[1]{piece}}}}},
            {{"name":"output","op":"output","target":"output","args":[[{{"ref":"v"}}]]}}]}}"#
        )
    };
    let left_out = scratch.write("left_out.json", document("").as_bytes());
    assert_eq!(said(&["check", "rewrite", &left_out, &left_out]).1, Some(0));
    let (json, _) = said(&["show", &left_out, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let of = |at: usize| json["nodes"][at]["out"]["offset"].as_i64();
    assert_eq!((of(0), of(2), of(3)), (Some(0), Some(4), Some(6)));
    // What is stated counts.
    let stated = scratch.write("stated.json", document(",\"offset\":0").as_bytes());
    let (out, status) = said(&["check", "rewrite", &left_out, &stated]);
    assert!(status == Some(1) && out.contains("offset"), "{out}");
}

/// A single graph has its groups from a file too.
#[test]
fn groups_of_a_printed_graph_are_given() {
    let scratch = Scratch::new("given_groups");
    let reduce = "r: \"f32[4][1]cpu\" = torch.ops._c10d_functional.all_reduce.default(x, 'sum', 'dp')";
    let wait = "w: \"f32[4][1]cpu\" = torch.ops._c10d_functional.wait_tensor.default(r)";
    let path = scratch.write("graph.txt", graph(&format!("{reduce}\n{wait}\nreturn (w,)")).as_bytes());
    let (out, code) = said(&["check", "rewrite", &path, &path]);
    assert!(
        code == Some(2) && out.contains("group dp has is not in the text: --groups FILE or --from RUNNABLE"),
        "{out}"
    );
    let groups = scratch.write("groups.json", br#"{"world": {"ranks": 2}, "groups": {"dp": {"size": 2}}}"#);
    let (out, code) = said(&["check", "rewrite", &path, &path, "--groups", &groups]);
    assert_eq!(code, Some(0), "{out}");
    let case = scratch.write("case.graph", b"x = input: f32[4]\noutput x\n");
    let (out, code) = said(&["check", "rewrite", &case, &case, "--groups", &groups]);
    assert!(code == Some(2) && out.contains("--groups completes graphs as PyTorch prints them"), "{out}");
}

/// Inputs that carry one symbol are one number, those of two symbols are not.
#[test]
fn inputs_of_one_symbol_may_trade_places() {
    let scratch = Scratch::new("symbols");
    let text = |symbols: [&str; 2], size: &str| {
        format!(
            "class GraphModule(torch.nn.Module):\n    \
             def forward(self, n: \"Sym({})\", m: \"Sym({})\", x: \"f32[s0][1]cpu\"):\n        \
             full: \"f32[s0][1]cpu\" = torch.ops.aten.full.default([{size}], 2.0, dtype = torch.float32, device = device(type='cpu'), pin_memory = False)\n        \
             mul: \"f32[s0][1]cpu\" = torch.ops.aten.mul.Tensor(x, full);  x = full = None\n        return (mul,)\n",
            symbols[0], symbols[1]
        )
    };
    let verdict = |symbols: [&str; 2]| {
        let before = scratch.write("before.txt", text(symbols, "n").as_bytes());
        let after = scratch.write("after.txt", text(symbols, "m").as_bytes());
        said(&["check", "rewrite", &before, &after])
    };
    let (out, code) = verdict(["s0", "s0"]);
    assert_eq!(code, Some(0), "{out}");
    let (out, code) = verdict(["s0", "s1"]);
    assert_ne!(code, Some(0), "{out}");
}

#[test]
fn operands_of_symbolic_sizes_commute() {
    let scratch = Scratch::new("operands");
    let text = |call: &str| {
        format!(
            "class GraphModule(torch.nn.Module):\n    \
             def forward(self, x: \"f32[s0][1]cpu\", y: \"f32[s0][1]cpu\"):\n        \
             of: \"f32[s0][1]cpu\" = torch.ops.aten.{call}\n        return (of,)\n"
        )
    };
    for (one, other, status) in [
        ("add.Tensor(x, y)", "add.Tensor(y, x)", 0),
        ("mul.Tensor(x, y)", "mul.Tensor(y, x)", 0),
        ("sub.Tensor(x, y)", "sub.Tensor(y, x)", 1),
    ] {
        let before = scratch.write("before.txt", text(one).as_bytes());
        let after = scratch.write("after.txt", text(other).as_bytes());
        let (out, code) = said(&["check", "rewrite", &before, &after]);
        assert!(code == Some(status) || status == 1 && code == Some(3), "{one}: {out}");
    }
}
