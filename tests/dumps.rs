//! What operators bring along: memory snapshots and flight recorders of PyTorch, as pickles and as JSON, and files of
//! other kinds that are named for what they are.

use crate::common::{Scratch, program, text};
use graph_oracle::format::objects::{Allowance, read_json};
use graph_oracle::format::{flight_recorder, memory_snapshot, pickle};
use graph_oracle::lifecycle::judge_device;
use graph_oracle::simulate::flight::{Flights, judge};
use serde_json::{Value, json};

/// A pickle of protocol 2, as Python writes it: every object remembered, and a text that was met before recalled.
fn pickled(value: &Value) -> Vec<u8> {
    struct Writer {
        bytes: Vec<u8>,
        texts: Vec<String>,
        remembered: u32,
    }
    impl Writer {
        fn remember(&mut self) {
            self.bytes.push(b'r');
            self.bytes.extend(self.remembered.to_le_bytes());
            self.remembered += 1;
        }

        fn text(&mut self, text: &str) {
            self.bytes.push(b'X');
            self.bytes.extend((text.len() as u32).to_le_bytes());
            self.bytes.extend(text.as_bytes());
            self.texts.push(text.to_string());
            self.remember();
        }

        fn value(&mut self, value: &Value) {
            match value {
                Value::Null => self.bytes.push(b'N'),
                Value::Bool(truth) => self.bytes.push(if *truth { 0x88 } else { 0x89 }),
                Value::Number(number) => {
                    self.bytes.extend([0x8a, 8]);
                    self.bytes.extend(number.as_i64().unwrap().to_le_bytes());
                }
                Value::String(text) => self.text(text),
                Value::Array(items) => {
                    self.bytes.push(b']');
                    self.remember();
                    self.bytes.push(b'(');
                    items.iter().for_each(|item| self.value(item));
                    self.bytes.push(b'e');
                }
                Value::Object(pairs) => {
                    self.bytes.push(b'}');
                    self.remember();
                    self.bytes.push(b'(');
                    for (key, value) in pairs {
                        self.text(key);
                        self.value(value);
                    }
                    self.bytes.push(b'u');
                }
            }
        }
    }
    let mut writer = Writer { bytes: vec![0x80, 2], texts: Vec::new(), remembered: 0 };
    writer.value(value);
    writer.bytes.push(b'.');
    writer.bytes
}

/// The events of an allocator on one device; `shared` says whether a block is given away while a stream may use it.
fn snapshot(shared: bool) -> Value {
    let frames = json!([{ "filename": "/x/torch/nn.py", "line": 5, "name": "forward" },
                        { "filename": "/home/u/train.py", "line": 12, "name": "step" }]);
    let event = |action: &str, address: i64, bytes: i64, stream: i64| {
        let frames = &frames;
        json!({ "action": action, "addr": address, "size": bytes, "stream": stream, "frames": frames })
    };
    let mut trace = vec![
        event("segment_alloc", 0x7000, 2097152, 0),
        event("alloc", 0x7000, 4096, 0),
        event("alloc", 0x8000, 100, 0),
        event("free_requested", 0x8000, 100, 0),
        event("free_completed", 0x8000, 100, 0),
        event("alloc", 0x8000, 64, 7),
    ];
    if shared {
        trace[4] = event("free_completed", 0x70000, 8, 0);
    }
    json!({
        "segments": [{ "device": 0, "address": 0x7000, "total_size": 2097152, "stream": 0, "segment_type": "small",
            "blocks": [
                { "address": 0x7000, "size": 4096, "requested_size": 4096, "state": "active_allocated" },
                { "address": 0x8000, "size": 512, "requested_size": 64, "state": "active_allocated" },
                { "address": 0x8200, "size": 2092544, "requested_size": 0, "state": "inactive" }] }],
        "device_traces": [trace, []],
        "allocator_settings": {},
    })
}

/// What a rank recorded of a step of `GRAPH`: its first launches, the last of which is not complete.
fn flight(launches: usize, group: &str) -> Value {
    let all = [
        ("nccl:_all_gather_base", 4, 8),
        ("nccl:all_reduce", 8, 8),
        ("nccl:all_reduce", 8, 8),
        ("nccl:_reduce_scatter_base", 8, 4),
    ];
    let entry = |(i, (name, from, to)): (usize, &(&str, i64, i64))| {
        let is_last = i + 1 == launches;
        json!({
            "record_id": i, "pg_id": 0, "process_group": [group, "fsdp"], "collective_seq_id": i + 1, "p2p_seq_id": 0,
            "op_id": i + 1, "profiling_name": name, "time_created_ns": 1, "input_sizes": [[from]], "input_dtypes": ["Float"],
            "output_sizes": [[to]], "output_dtypes": ["Float"], "state": if is_last { "started" } else { "completed" },
            "retired": !is_last, "timeout_ms": 600000, "is_p2p": false, "frames": [],
        })
    };
    let entries: Vec<Value> = all.iter().take(launches).enumerate().map(entry).collect();
    json!({ "version": "2.10", "pg_config": { (group): { "name": group, "desc": "fsdp", "ranks": "[0, 1]" } },
            "pg_status": {}, "entries": entries })
}

const GRAPH: &str = r#"world 2 ranks, groups dp = [0 1]
x = input : f32[4]
a = all_gather(x, dp)
aw = wait(a)
r = relu(aw)
b = all_reduce(r, "sum", dp)
bw = wait(b)
c = all_reduce(bw, "sum", dp)
cw = wait(c)
s = reduce_scatter(cw, "sum", dp)
sw = wait(s)
output (sw)
"#;

/// Runs the program; its exit status, and what it printed on both streams.
fn run(arguments: &[&str]) -> (i32, String) {
    let output = program(arguments);
    (output.status.code().unwrap(), text(&output.stdout) + &text(&output.stderr))
}

#[test]
fn a_snapshot_is_judged_from_a_pickle_and_from_json() {
    let scratch = Scratch::new("snapshot");
    let right = snapshot(false);
    let pickle = scratch.write("right.pickle", &pickled(&right));
    let (status, said) = run(&["lifecycle", &pickle]);
    assert_eq!(status, 0, "{said}");
    for words in [
        "device 0: no fault in 6 events",
        "held, at most                  4196  event 2 (/home/u/train.py:12 in step)",
        "reserved, at most           2097152",
        "64  event 5: /home/u/train.py:12 in step",
        "reads and writes are not in a snapshot",
    ] {
        assert!(said.contains(words), "{words:?} in {said}");
    }
    let json = scratch.write("right.json", right.to_string().as_bytes());
    assert_eq!(run(&["lifecycle", &json]), (0, said), "the same from JSON");
    let wrong = scratch.write("wrong.pickle", &pickled(&snapshot(true)));
    let (status, said) = run(&["lifecycle", &wrong]);
    assert_eq!(status, 1, "{said}");
    assert!(
        said.starts_with("device 0, event 5: 64 bytes at 0x8000 are allocated for stream 7 over 100 bytes"),
        "{said}"
    );
    let (status, said) = run(&["lifecycle", &wrong, "--format", "json", "--assert"]);
    let value: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((status, value["devices"][0]["faults"].as_array().unwrap().len()), (1, 1));
    let empty = scratch.write("empty.json", br#"{"segments":[],"device_traces":[[]]}"#);
    assert_eq!(run(&["lifecycle", &empty]).0, 3, "nothing was judged");
}

#[test]
fn a_snapshot_stands_beside_a_graph() {
    let scratch = Scratch::new("beside");
    let graph = scratch.write("x.graph", b"x = input : f32[16]\na = relu(x)\nb = neg(a)\noutput (b)\n");
    let pickle = scratch.write("s.pickle", &pickled(&snapshot(true)));
    let (status, said) = run(&["check", "memory", &graph, "--candidate", "reference", "--snapshot", &pickle]);
    assert_eq!(status, 0, "what a snapshot shows convicts no graph: {said}");
    for words in [
        "measured_peak_bytes             4196",
        "1 of the 2 storages",
        "the snapshot has 1 events that cannot be right",
    ] {
        assert!(said.contains(words), "{words:?} in {said}");
    }
    let (_, said) = run(&[
        "check",
        "memory",
        &graph,
        "--candidate",
        "reference",
        "--snapshot",
        &pickle,
        "--format",
        "json",
    ]);
    let value: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(value["memory"]["snapshot"]["devices"][0]["storages"], 2, "{said}");
    let (status, said) = run(&["lifecycle", &pickle, "--graph", &graph]);
    assert!(status == 1 && said.contains("1 of the 2 storages"), "{said}");
    let (status, said) = run(&["check", "memory", &graph, "--candidate", "reference", "--snapshot", &graph]);
    assert!(status == 2 && said.contains("this is no memory snapshot of PyTorch"), "{said}");
}

#[test]
fn flight_recorders_say_who_waits_where() {
    let scratch = Scratch::new("flight");
    let graph = scratch.write("x.graph", GRAPH.as_bytes());
    std::fs::create_dir_all(scratch.0.join("dumps")).unwrap();
    scratch.write("dumps/fr_0", &pickled(&flight(4, "7")));
    scratch.write("dumps/fr_1.json", flight(2, "7").to_string().as_bytes());
    scratch.write("dumps/notes.txt", b"not a dump");
    let folder = scratch.path("dumps");
    let (status, said) = run(&["simulate", &graph, "--flight", &folder]);
    assert_eq!(status, 3, "{said}");
    for words in [
        "group 7 (fsdp), collective 2: not complete",
        "rank 0: all_reduce of Float, [8] to [8]: completed",
        "rank 1: has not come to it; its last on this group is 2, all_reduce of Float, [8] to [8]: started, not completed",
        "rank 0: 4 in a row of its 4 launches on the graph's groups fit the graph: the last is s (reduce_scatter",
        "after it the graph launches a (all_gather of float32, 4 to 8 elements) on dp, the first of its next run",
        "it waits at 4 of group 7 (fsdp), which is s (",
        "rank 1: 2 in a row of its 2 launches on the graph's groups fit the graph: the last is b (all_reduce",
        "after it the graph launches c (all_reduce",
        "ranks wait; whether they would have gone on, a dump does not say",
        "notes.txt: no rank at the end of its name",
    ] {
        assert!(said.contains(words), "{words:?} in {said}");
    }
    let (status, said) = run(&["simulate", "--flight", &folder, "--format", "json"]);
    let value: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (status, value["waits"].as_array().unwrap().len(), &value["graph"]),
        (3, 2, &json!([])),
        "{said}"
    );

    // Another collective under the same number.
    let other = flight(2, "7").to_string().replace("nccl:all_reduce", "nccl:broadcast");
    scratch.write("dumps/fr_1.json", other.as_bytes());
    let (status, said) = run(&["simulate", "--flight", &folder]);
    assert!(
        status == 1 && said.contains("rank 0 and rank 1 do not launch the same: all_reduce and broadcast"),
        "{said}"
    );

    // A process that died leaves no dump.
    std::fs::remove_file(scratch.path("dumps/fr_1.json")).unwrap();
    let (status, said) = run(&["simulate", "--flight", &folder]);
    assert!(status == 1 && said.starts_with("rank 1: no dump: the process died"), "{said}");
}

/// An allocation that failed is what the snapshot was made for.
#[test]
fn a_snapshot_of_a_job_that_ran_out_of_memory_is_a_violation() {
    let scratch = Scratch::new("oom");
    let event = |action: &str, size: i64| json!({"action": action, "addr": 4096, "size": size, "stream": 0, "frames": []});
    for (last, status) in [("free_requested", 0), ("oom", 1)] {
        let snapshot = json!({"segments": [], "device_traces": [[event("alloc", 64), event(last, 64)]]});
        let file = scratch.write("snapshot.json", snapshot.to_string().as_bytes());
        let (found, said) = run(&["lifecycle", &file]);
        assert_eq!(
            (found, said.contains("event 1: out of memory, 64 bytes")),
            (status, status == 1),
            "{said}"
        );
    }
}

#[test]
fn flight_recorders_that_cannot_be_used_say_why() {
    let scratch = Scratch::new("flight-bad");
    let graph = scratch.write("x.graph", GRAPH.as_bytes());
    let dump = scratch.write("fr_0", &pickled(&flight(4, "7")));
    let twice = scratch.write("fr_0.json", flight(2, "7").to_string().as_bytes());
    let nameless = scratch.write("dump.json", flight(2, "7").to_string().as_bytes());
    let other = scratch.write("graph_3", GRAPH.as_bytes());
    let snapshot = scratch.write("snapshot_3", &pickled(&snapshot(false)));
    for (file, words) in [
        (&twice, "it is of rank 0, and so is"),
        (&nameless, "of which rank it is, the end of its name says"),
        (&other, "this is no dump of the flight recorder"),
        (&snapshot, "this is a memory snapshot of PyTorch: graph-oracle lifecycle"),
    ] {
        let (status, said) = run(&["simulate", &graph, "--flight", &dump, file]);
        assert!(status == 2 && said.contains(words), "{words:?} in {said}");
    }
    let (status, said) = run(&["simulate", &dump]);
    assert!(
        status == 2 && said.contains("this is a dump of PyTorch's flight recorder: graph-oracle simulate"),
        "{said}"
    );
}

/// Each command that reads files names what it was given, in one line, with what to do.
#[test]
fn files_of_other_kinds_are_named() {
    let scratch = Scratch::new("kinds");
    let zip = |name: &str| [&b"PK\x03\x04"[..], &[0; 26], name.as_bytes()].concat();
    let kinds: Vec<(&str, Vec<u8>, &str)> = vec![
        ("w.pt", zip("archive/data.pkl"), "what torch.save wrote"),
        ("m.pt2", zip("m/models/model.json"), "an exported program of PyTorch (.pt2)"),
        ("s.pickle", pickled(&snapshot(false)), "a memory snapshot of PyTorch"),
        (
            "o.pickle",
            b"\x80\x04cos\nsystem\n.".to_vec(),
            "this is a pickle: byte 2: needs os.system, and nothing",
        ),
        ("p.json", br#"{"schemaVersion":1,"traceEvents":[]}"#.to_vec(), "a timeline of a profiler"),
        ("h.txt", b"HloModule m\n".to_vec(), "HLO text of XLA"),
        ("i.html", b"<!DOCTYPE html>\n<html></html>".to_vec(), "such as tlparse makes"),
        ("w.safetensors", [&2u64.to_le_bytes()[..], b"{}"].concat(), "safetensors"),
        (
            "t.log",
            b"V1122 20:08:47.934000 8363 torch/x.py:1861] {\"str\":[\"x\",0]}\n".to_vec(),
            "a file of TORCH_TRACE, which holds many graphs: graph-oracle trace judges them",
        ),
    ];
    for (name, bytes, words) in kinds {
        let path = scratch.write(name, &bytes);
        let mut commands =
            vec![vec!["check", "bucketing", &path], vec!["show", &path], vec!["simulate", &path]];
        if name != "s.pickle" {
            commands.push(vec!["lifecycle", &path]);
        }
        for command in commands {
            let (status, said) = run(&command);
            assert!(status == 2 && said.contains(words), "{command:?}: {words:?} in {said}");
            assert_eq!(said.lines().count(), 1, "{command:?}: {said}");
        }
    }
}

/// Any bytes of a dump may be others: there is an answer, and no panic.
#[test]
fn changed_dumps_give_an_answer() {
    let mut state = 3u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    let dumps =
        [pickled(&snapshot(false)), pickled(&flight(4, "dp")), snapshot(true).to_string().into_bytes()];
    for _ in 0..4000 {
        let mut bytes = dumps[draw(dumps.len())].clone();
        for _ in 0..=draw(3) {
            let at = draw(bytes.len());
            match draw(4) {
                0 => bytes.truncate(at + 1),
                1 => bytes[at] = 0xff,
                2 => bytes[at] = draw(256) as u8,
                _ => bytes.insert(at, b"]}(.e0129"[draw(9)]),
            }
        }
        let allowance = Allowance::new(1 << 16);
        let objects = match pickle::is_pickle(&bytes) {
            true => pickle::read(&bytes, &allowance).map_err(|error| error.to_string()),
            false => read_json(&bytes, &allowance),
        };
        let Ok(objects) = objects else { continue };
        if let Ok(snapshot) = memory_snapshot::read(objects.root(), &allowance) {
            for device in &snapshot.devices {
                let report = judge_device(device);
                assert!(report.faults.len() <= report.events);
            }
        }
        if let Ok(dump) = flight_recorder::read(objects.root(), &allowance) {
            let report = judge(&Flights::new(&[(0, dump.clone()), (1, dump)].into()));
            assert_eq!(report.mismatches.len(), 0, "a dump agrees with itself");
        }
    }
}
