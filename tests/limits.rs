//! Every number of a small text, made huge: no panic, no abort, little memory, and an answer soon (docs/limits.md).

#![cfg(unix)]
use crate::traces::trace_of;
use fuzzing::huge_numbers::{self, NUMBERS, numbers, with_number};
use graph_oracle::format::text;
use graph_oracle::gpu;
use graph_oracle::limits::Limit;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// The address space of the process that judges, in KiB. A thread of the test alone maps 64 MiB.
const MEMORY: u64 = 2_000_000;

/// How long one text may take, in a build without optimisation, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the process that judges says what it is at, so that an abort can be told.
const LAST: &str = "HUGE_NUMBERS_LAST";

fn seeds() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/huge_numbers");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Each seed with each of its numbers made huge: as it is, there alone; as it is printed, with every type written,
/// wherever the number stands. By one number of [`NUMBERS`] in turn, or in all ways with `HUGE_NUMBERS=all` in the
/// environment.
fn texts() -> Vec<String> {
    let thorough = std::env::var("HUGE_NUMBERS").is_ok_and(|value| value == "all");
    let mut all = Vec::new();
    for file in seeds() {
        let text = std::fs::read_to_string(&file).unwrap();
        let printed = text::parse(&text).unwrap().to_string();
        for (text, is_printed) in [(text, false), (printed, true)] {
            for (turn, place) in numbers(&text).iter().enumerate() {
                if thorough {
                    for &number in NUMBERS {
                        all.extend(
                            [false, true].map(|everywhere| with_number(&text, place, number, everywhere)),
                        );
                    }
                } else {
                    all.push(with_number(&text, place, NUMBERS[turn % NUMBERS.len()], is_printed));
                }
            }
        }
    }
    all.dedup();
    all
}

/// Asks all that the fuzz target asks, and runs the case on the host's device.
fn check(text: &str) {
    huge_numbers::check(text.as_bytes());
    let options = gpu::passes::Options {
        interleavings: 2,
        repetitions: 1,
        max_elements: 1 << 12,
        ..gpu::passes::Options::default()
    };
    let Ok(case) = text::parse(text) else { return };
    for case in gpu::suite::cases("case", None, &case, Limit::SmokeRanks.standard()).unwrap_or_default() {
        let _ = gpu::passes::smoke(&case, &options, None);
    }
}

/// Runs in a process of its own, with little memory.
#[test]
#[ignore = "run by huge_numbers_are_answered, with little memory"]
fn sweep() {
    let Ok(last) = std::env::var(LAST) else { return };
    let texts = texts();
    let mut bad = std::collections::BTreeMap::new();
    for text in &texts {
        std::fs::write(&last, text).unwrap();
        let start = Instant::now();
        let panicked = std::panic::catch_unwind(|| check(text)).is_err();
        let time = start.elapsed();
        if panicked || time > PATIENCE {
            *bad.entry(panicked).or_insert(0) += 1;
            println!("{time:?}, {}:\n{text}", if panicked { "a panic" } else { "too long" });
        }
    }
    println!("{} texts", texts.len());
    assert!(bad.is_empty(), "{bad:?}");
}

#[test]
fn huge_numbers_are_answered() {
    let last = std::env::temp_dir().join(format!("graph-oracle-{}-last.graph", std::process::id()));
    let output = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MEMORY}; exec \"$@\""), "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["sweep", "--exact", "--ignored", "--nocapture"])
        .env(LAST, &last)
        .output()
        .unwrap();
    let text = std::fs::read_to_string(&last).unwrap_or_default();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complained}\nthe last one:\n{text}");
    let _ = std::fs::remove_file(&last);
}

/// A folder of its own for a test, gone when it ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("graph-oracle-{}-limits-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the program with little memory.
fn run(arguments: &[&dyn AsRef<OsStr>]) -> Output {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        &format!("ulimit -v {MEMORY}; exec \"$@\""),
        "sh",
        env!("CARGO_BIN_EXE_graph-oracle"),
    ]);
    command.args(arguments.iter().map(|argument| argument.as_ref())).output().unwrap()
}

/// Its exit status, and everything that it printed.
fn said(arguments: &[&dyn AsRef<OsStr>]) -> (Option<i32>, String) {
    let output = run(arguments);
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

const GRAPH: &str = "x = input : f32[4]\ny = relu(x)\noutput y\n";

#[test]
fn pieces_are_counted_before_they_are_built() {
    let folder = Folder::new("pieces");
    let before = folder.write("before.graph", "x = input : f32[1099511627776]\ny = relu(x)\noutput y\n");
    let after = folder.write(
        "after.graph",
        "x = input : f32[1099511627776]\nt = split(x, 2) : (f32[2], f32[2])\na = t[0] : f32[2]\n\
         y = relu(x)\noutput y\n",
    );
    for pass in ["bucketing", "repair", "schedule"] {
        let (status, text) = said(&[&"check", &pass, &before, &after]);
        assert!(matches!(status, Some(0 | 1 | 3)), "{status:?} {text}");
    }
}

/// What a worker answers is judged like everything else: the campaign goes on.
#[test]
fn a_worker_that_answers_a_huge_graph_ends_no_campaign() {
    let folder = Folder::new("worker");
    let hello = r#"{"type":"hello","protocol":"graph-oracle-worker/1","name":"huge","version":"1","passes":{"repair":{}}}"#;
    let graph = folder.write(
        "answer.graph",
        "x = input : f32[1099511627776]\nt = split(x, 2) : (f32[2], f32[2])\na = t[0] : f32[2]\noutput a\n",
    );
    let json = folder.0.join("answer.json");
    assert_eq!(said(&[&"convert", &graph, &json]).0, Some(0));
    let answer = std::fs::read_to_string(&json).unwrap().replace('\n', " ");
    let script = format!(
        "read line\necho '{hello}'\nwhile read line; do id=$(echo \"$line\" | sed 's/.*\"id\":\\([0-9]*\\).*/\\1/')\n\
         printf '%s' '{{\"type\":\"outcome\",\"id\":'$id',\"repaired\":'\ncat <<'END'\n{answer}}}\nEND\ndone\n"
    );
    let script = folder.write("worker.sh", script);
    let command = format!("sh {}", script.display());
    let arguments: [&dyn AsRef<OsStr>; 8] =
        [&"fuzz", &"repair", &"--worker", &command, &"--cases", &"3", &"--reduce-seconds", &"0"];
    let (status, text) = said(&arguments);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("3 cases"), "{text}");
}

#[test]
fn smoke_counts_first() {
    let folder = Folder::new("smoke");
    let cases = [
        ("compute", "x = input : f32[4]\noutput (x)\n".to_string(), Some(0), "1 clean"),
        (
            "expand",
            "x = input : f32[1, 8]\ny = expand(x, [9223372036854775807, 8]) : f32[2, 8] strides [0, 1]\nz = relu(y)\n\
             output z\n"
                .to_string(),
            Some(3),
            "more elements than can be counted",
        ),
        ("ranks", format!("world 100000 ranks, groups dp = [0 1]\n{GRAPH}"), Some(3), "100000 ranks, the limit is 256"),
        (
            "pass",
            "world 25600 ranks, groups dp = [0 to 25599]\npass bucketing kind=all_gather\nx = input : f32[4]\n\
             g = all_gather(x, dp) : f32[102400]\nw = wait(g) : f32[102400]\noutput w\n"
                .to_string(),
            Some(3),
            "25600 ranks, the limit is 256",
        ),
        ("none", format!("world 0 ranks, groups dp = [0 1]\n{GRAPH}"), Some(3), "no ranks"),
    ];
    for (name, text, wanted, words) in cases {
        let path = folder.write(format!("{name}.graph"), text);
        let (status, text) = said(&[&"smoke", &path]);
        assert_eq!(status, wanted, "{name}: {text}");
        assert!(text.contains(words), "{name}: {text}");
    }
}

/// What n nodes or groups have to do with n others is not kept n times n times.
#[test]
fn small_inputs_need_little_memory() {
    let folder = Folder::new("squares");
    let list = |n: usize, line: &dyn Fn(usize) -> String| (0..n).map(line).collect::<String>();

    let writes = list(8000, &|i| format!("v{i} = view(x, [2, 2])\nw{i} = add_(v{i}, 1)\n"));
    let path = folder.write("writes.graph", format!("x = input : f32[4]\n{writes}output x\n"));
    let (status, text) = said(&[&"check", &"memory", &path, &"--candidate", &"reference", &"--verbose"]);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("memory/estimators-agree: several estimates are not claimed"), "{text}");

    let names = list(5000, &|i| format!("{}g{i} = [0 1]", if i > 0 { ", " } else { "" }));
    let sums = list(5000, &|i| format!("a{i} = all_reduce(x, 'sum', g{i})\nw{i} = wait(a{i})\n"));
    let text = format!("world 2 ranks, groups {names}\nx = input : f32[4]\n{sums}output (w4999)\n");
    let path = folder.write("groups.graph", text);
    let (status, text) = said(&[&"smoke", &path]);
    assert_eq!(status, Some(3), "{text}");
    assert!(text.contains("its 10002 streams and 30000 events have clocks of"), "{text}");

    let inputs = list(400, &|i| format!("x{i} = input : f32[4]\n"));
    let gathers = list(400, &|i| format!("a{i} = all_gather(x{i}, dp)\nw{i} = wait(a{i})\n"));
    let waits = list(400, &|i| format!("{}w{i}", if i > 0 { ", " } else { "" }));
    let text = format!("world 2 ranks, groups dp = [0 1]\n{inputs}{gathers}output ({waits})\n");
    let (path, after) = (folder.write("gathers.graph", text), folder.0.join("after.graph"));
    let (status, text) = said(&[&"run", &"bucketing", &path, &"-o", &after]);
    assert_eq!(status, Some(0), "{text}");
    let length = std::fs::metadata(&after).unwrap().len();
    assert!(length < 400_000, "{length} bytes");
}

#[test]
fn a_world_without_ranks_and_seeds_without_end() {
    let folder = Folder::new("world");
    let path = folder.write("none.graph", format!("world 0 ranks, groups dp = [0 1]\n{GRAPH}"));
    for arguments in [["check", "bucketing", "--candidate", "reference"].as_slice(), &["simulate"]] {
        let mut all: Vec<&dyn AsRef<OsStr>> =
            arguments.iter().map(|word| word as &dyn AsRef<OsStr>).collect();
        all.push(&path);
        let (status, text) = said(&all);
        assert_eq!(status, Some(2), "{text}");
        assert!(text.contains("the world has no ranks"), "{text}");
    }
    let (status, text) = said(&[&"score", &"bucket-direct-dependence", &"--seeds", &"18446744073709551615"]);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("1000000"), "{text}");
}

/// 3 MB of gzip may hold 3 GB.
#[test]
fn reading_has_a_bound() {
    let folder = Folder::new("reading");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let blank = vec![b' '; 1 << 20];
    for _ in 0..64 {
        std::io::Write::write_all(&mut packed, &blank).unwrap();
    }
    let packed = folder.write("bomb.json.gz", packed.finish().unwrap());
    let (status, text) = said(&[&"show", &packed, &"--limit", &"text=63MiB"]);
    assert_eq!(status, Some(2));
    assert!(text.contains("holds more than 66060288 bytes when it is decompressed"), "{text}");
    let (_, text) = said(&[&"show", &packed, &"--limit", &"text=64MiB"]);
    assert!(!text.contains("decompressed"), "{text}");
    let long = folder.write("long.graph", format!("{GRAPH}# {}\n", "x".repeat(5000)));
    let (status, text) = said(&[&"show", &long, &"--limit", &"text=5000"]);
    assert_eq!((status, text.contains("holds more than 5000 bytes")), (Some(2), true), "{text}");
    assert_eq!(said(&[&"show", &long]).0, Some(0));
    // Whatever file it is: a graph, what completes it, and a trace that holds it.
    let printed = "class GraphModule(torch.nn.Module):\n    def forward(self, arg0_1: \"f32[4]\"):\n        \
                   relu: \"f32[4]\" = torch.ops.aten.relu.default(arg0_1)\n        return (relu,)\n";
    let [graph, groups, runnable, log] = [
        ("g.txt", printed.to_string()),
        ("groups.json", format!("[{}]", "[],".repeat(40))),
        ("runnable.py", format!("def load_args(reader):\n    x = [{}]\n", "[],".repeat(40))),
        ("dedicated_log_torch_trace_rank_0_a.log", trace_of(&[("before_a", printed), ("after_a", printed)])),
    ]
    .map(|(name, text)| folder.write(name, text));
    for arguments in [
        &[&"show" as &dyn AsRef<OsStr>, &graph, &"--groups", &groups, &"--limit", &"parts=120"][..],
        &[&"show", &graph, &"--from", &runnable, &"--limit", &"parts=120"],
        &[&"show", &graph, &"--limit", &"parts=70"],
        &[&"trace", &log, &"--verbose", &"--limit", &"parts=70"],
    ] {
        let (_, text) = said(arguments);
        assert!(text.contains("parts (--limit parts=N allows more)"), "{text}");
    }
}

#[test]
fn only_regular_files_are_read() {
    let folder = Folder::new("devices");
    let pipe = folder.0.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let graph = folder.write("g.graph", GRAPH);
    let nothing: [&Path; 2] = [&pipe, Path::new("/dev/zero")];
    for path in nothing {
        let all: [&[&dyn AsRef<OsStr>]; 5] = [
            &[&"show", &path],
            &[&"check", &"repair", &graph, &path],
            &[&"check", &"memory", &graph, &"--candidate", &"reference", &"--order", &path],
            &[&"lifecycle", &path],
            &[&"fuzz", &"repair", &"--cases", &"1", &"--known", &path],
        ];
        for arguments in all {
            let (status, text) = said(arguments);
            assert_eq!(status, Some(2), "{text}");
            assert!(text.contains("is no regular file"), "{text}");
        }
    }
    let store = folder.0.join("store");
    std::fs::create_dir(&store).unwrap();
    std::os::unix::fs::symlink("/dev/zero", store.join("campaign.jsonl")).unwrap();
    let all: [&[&dyn AsRef<OsStr>]; 2] =
        [&[&"results", &store], &[&"fuzz", &"repair", &"--cases", &"1", &"--out", &store]];
    for arguments in all {
        let (status, text) = said(arguments);
        assert!(status == Some(2) && text.contains("is no regular file"), "{text}");
    }
    let (status, text) = said(&[&"show", &folder.0]);
    assert_eq!((status, text.contains("is a directory")), (Some(2), true), "{text}");
}

/// A file name is bytes.
#[test]
fn names_of_files_need_no_encoding() {
    let folder = Folder::new("names");
    let name = |stem: &str, ending: &str| {
        let bytes = [stem.as_bytes(), b"\xff", ending.as_bytes()].concat();
        folder.0.join(OsStr::from_bytes(&bytes))
    };
    let graph = name("g", ".graph");
    std::fs::write(&graph, GRAPH).unwrap();
    let json = name("out", ".json");
    let all: [&[&dyn AsRef<OsStr>]; 5] = [
        &[&"convert", &graph, &json],
        &[&"check", &"repair", &graph, &json],
        &[&"simulate", &graph],
        &[&"smoke", &graph],
        &[&"run", &"repair", &graph, &"-o", &name("repaired", ".json")],
    ];
    for arguments in all {
        let (status, text) = said(arguments);
        assert_eq!(status, Some(0), "{text}");
    }
    assert!(json.exists() && name("repaired", ".json").exists());
    // A stage of three files.
    let joined = [graph.as_os_str(), json.as_os_str(), json.as_os_str()].map(OsStr::as_bytes).join(&b","[..]);
    let (status, text) = said(&[&"check", &"partition", &"--replay", &OsStr::from_bytes(&joined)]);
    assert!(status == Some(2) && !text.contains("No such file"), "{text}");
}

#[test]
fn limits_are_named_and_bounded() {
    let folder = Folder::new("named");
    let graph = folder.write("g.graph", GRAPH);
    for (limit, words) in [
        ("text", "expected NAME=VALUE"),
        (
            "nope=5",
            "these can be set: text (536870912 bytes), parts (50331648 parts), objects (33554432 objects), elements",
        ),
        ("ranks=5", "ranks is fixed at 1048576 ranks: Ranks of a world"),
        ("text=0", "text can be 1 to"),
        ("text=many", "expected a number"),
    ] {
        let (status, text) = said(&[&"show", &graph, &"--limit", &limit]);
        assert_eq!(status, Some(2), "{text}");
        assert!(text.contains(words), "{limit}: {text}");
    }
}

/// docs/limits.md has the table as it is.
#[test]
fn the_table_of_the_documentation_is_that_of_the_program() {
    let docs = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/limits.md")).unwrap();
    for limit in Limit::ALL {
        let raised = if limit.is_fixed() { "fixed".to_string() } else { limit.most().to_string() };
        let row = format!(
            "| `{}` | {} {} | {raised} | {} |",
            limit.name(),
            limit.standard(),
            limit.unit(),
            limit.reason()
        );
        assert!(docs.contains(&row), "docs/limits.md lacks this row:\n{row}");
    }
}

/// What nothing heeds is said, and what cannot mean anything is refused.
#[test]
fn nothing_is_accepted_in_silence() {
    let folder = Folder::new("silence");
    let cases = [
        ("empty", "graph nothing\n", Some(2), "the graph has no nodes"),
        ("output", "x = input : f32[4]\ny = relu(x)\n", Some(0), "the graph has no output"),
        (
            "estimates",
            "pass repair\nestimates {nope: 1}\nx = input : f32[4]\noutput x\n",
            Some(0),
            "estimates of nodes that are not there are not used: \"nope\"",
        ),
        (
            "tag",
            "x = input : f32[4]\ny = relu(x) {recompute: NOPE}\noutput y\n",
            Some(0),
            "and counts as absent: \"NOPE\" of y",
        ),
        (
            "range",
            "symbol s0 = 4 in 9 to 1\nx = input : f32[s0]\noutput x\n",
            Some(2),
            "no number lies in the range of the symbol s0, 9 to 1",
        ),
        (
            "hint",
            "symbol s0 = 4 in 5 to 9\nx = input : f32[s0]\noutput x\n",
            Some(0),
            "symbols: s0 was 4, outside 5 to 9",
        ),
        (
            "bound",
            "symbol s0 = 4 in low to 9\nx = input : f32[s0]\noutput x\n",
            Some(0),
            "symbols: the bound \"low\" of s0 is no number",
        ),
        (
            "size",
            "symbol s0 = 4\nx = input : f32[sym(\"2*/s0\", 8)]\noutput x\n",
            Some(0),
            "stand for nothing but themselves: \"2*/s0\"",
        ),
    ];
    for (name, text, wanted, words) in cases {
        let path = folder.write(format!("{name}.graph"), text);
        let (status, text) = said(&[&"check", &"repair", &path, &"--candidate", &"reference"]);
        assert_eq!(status, wanted, "{name}: {text}");
        assert!(text.contains(words), "{name}: {text}");
    }
    let before = folder.write("before.graph", GRAPH);
    let (status, text) = said(&[&"check", &"repair", &before, &folder.0.join("empty.graph")]);
    assert_eq!(status, Some(1), "an empty result: {text}");
    let known = folder.write("known.jsonl", "\n{\"rule\": \"nope/rule\", \"link\": \"somewhere\"}\n");
    let (status, text) = said(&[&"fuzz", &"repair", &"--cases", &"1", &"--known", &known]);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("known.jsonl:2:11: no rule is called \"nope/rule\""), "{text}");
}
