//! Hostile surroundings: pipes and links in the place of files, a full disk, logs that are written over, archives that
//! unpack without end, names that look like lines of a report, children that leave their worker.

#![cfg(unix)]
use crate::common::{Scratch, text};
use crate::traces::{OTHER, SUM, trace_of};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_graph-oracle");

const GRAPH: &str = "x = input : f32[4]\ny = relu(x)\noutput y\n";

/// Runs the program, with a shell's words before it. One that hangs is ended, with status 124.
fn run_after(setup: &str, arguments: &[&str]) -> Output {
    let script = format!("{setup} exec timeout -k 5 60 \"$@\"");
    Command::new("sh").args(["-c", &script, "sh", PROGRAM]).args(arguments).output().unwrap()
}

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let output = run_after("", arguments);
    (output.status.code(), text(&[output.stdout, output.stderr].concat()))
}

fn pipe(scratch: &Scratch, name: &str) -> String {
    let path = scratch.path(name);
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

/// What lies in a folder, by name.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn no_command_waits_for_a_pipe() {
    let scratch = Scratch::new("pipes");
    let graph = scratch.write("g.graph", GRAPH.as_bytes());
    std::fs::create_dir(scratch.0.join("logs")).unwrap();
    let (pipe, _) = (pipe(&scratch, "pipe"), pipe(&scratch, "logs/dedicated_log_torch_trace_rank_0_a.log"));
    for (arguments, words) in [
        (&["trace", &pipe][..], "is no regular file"),
        (&["watch", &pipe], "is no regular file"),
        (&["trace", &scratch.path("logs")], "rank_0_a.log: is no regular file"),
        (&["check", "repair", &graph, "--candidate", "reference", "--html", &pipe], "No such device"),
        (&["show", &graph, "-o", &pipe], "No such device"),
        (&["convert", &graph, &pipe], "No such device"),
        (&["show", &graph, "-o", &scratch.path("logs")], "Is a directory"),
    ] {
        let (status, said) = run(arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    let (status, said) = run(&["watch", &scratch.path("logs"), "--until-idle", "1"]);
    assert_eq!((status, said.contains("rank_0_a.log: is no regular file")), (Some(3), true), "{said}");
    assert_eq!(run(&["show", &graph, "-o", "/dev/null"]).0, Some(0));
    assert!(run(&["show", &graph, "-o", "/dev/stdout"]).1.contains("relu"));
}

#[test]
fn no_link_leads_out_of_a_folder() {
    let scratch = Scratch::new("links");
    let (out, outside) = (scratch.0.join("out"), scratch.path("outside"));
    std::fs::create_dir(&out).unwrap();
    for name in ["campaign.jsonl", "graph-oracle.1", "before.graph"] {
        symlink(&outside, out.join(name)).unwrap();
    }
    let folder = out.display().to_string();
    let (status, said) = run(&["fuzz", "repair", "--cases", "1", "--out", &folder]);
    assert_eq!((status, said.contains("is no regular file")), (Some(2), true), "{said}");
    // The program's own file takes the place of the link.
    assert_eq!(run(&["man", "-o", &folder]).0, Some(0));
    assert!(out.join("graph-oracle.1").symlink_metadata().unwrap().is_file());
    let case = scratch.write("before.graph", format!("pass repair\n{GRAPH}").as_bytes());
    let (status, said) = run(&["keep", &case, &folder, "--worker", "true", "--name", "before"]);
    assert_eq!(status, Some(2), "{said}");
    // A folder of a finding that is a link is passed over.
    let hello = r#"{"type":"hello","protocol":"graph-oracle-worker/1","name":"w","version":"1","passes":{"repair":{}}}"#;
    let worker = format!("read -r line; echo '{hello}'; read -r line; exit 3");
    let findings = ["fuzz", "repair", "--cases", "1", "--reduce-seconds", "0", "--worker", &worker];
    let repro = scratch.0.join("repro");
    let (status, said) = run(&[&findings[..], &["--repro", &repro.display().to_string()]].concat());
    assert_eq!(status, Some(1), "{said}");
    let found = names(&repro).into_iter().find(|name| repro.join(name).is_dir()).unwrap();
    std::fs::remove_dir_all(&repro).unwrap();
    std::fs::create_dir_all(&repro).unwrap();
    std::fs::create_dir(scratch.0.join("elsewhere")).unwrap();
    symlink(scratch.0.join("elsewhere"), repro.join(&found)).unwrap();
    let (status, said) = run(&[&findings[..], &["--repro", &repro.display().to_string()]].concat());
    assert_eq!(status, Some(1), "{said}");
    assert!(repro.join(format!("{found}-2")).join("case.graph").is_file(), "{:?}", names(&repro));
    assert_eq!(names(&scratch.0.join("elsewhere")), Vec::<String>::new());
    assert!(!Path::new(&outside).exists());
    let (status, said) = run(&["show", &case, "-o", &out.join("before.graph").display().to_string()]);
    assert_eq!((status, said.contains("is a link to a file that is not there")), (Some(2), true), "{said}");
    // What the user names may be a link to a file that is there.
    let target = scratch.write("target.graph", b"old");
    symlink(&target, scratch.0.join("link.graph")).unwrap();
    let (status, said) = run(&["show", &case, "-o", &scratch.path("link.graph")]);
    assert_eq!(status, Some(0), "{said}");
    assert!(std::fs::read_to_string(&target).unwrap().contains("relu"));
}

/// A limit on the size of files stands for a full disk.
#[test]
fn a_full_disk_leaves_what_was_there() {
    let scratch = Scratch::new("full");
    let nodes: String = (0..3000).map(|i| format!("y{i} = relu(x)\n")).collect();
    let graph = scratch.write("g.graph", format!("x = input : f32[4]\n{nodes}output y0\n").as_bytes());
    let folder = scratch.0.join("out");
    std::fs::create_dir(&folder).unwrap();
    let kept = |name: &str, text: &str| {
        std::fs::write(folder.join(name), text).unwrap();
        folder.join(name).display().to_string()
    };
    let (json, page, other) =
        (kept("old.json", "old"), kept("old.html", "<!doctype html>old"), kept("old.graph", "old"));
    let new = folder.join("new.json.gz").display().to_string();
    let before = names(&folder);
    for arguments in [
        &["convert", &graph, &json][..],
        &["convert", &graph, &new],
        &["show", &graph, "--html", &page],
        &["show", &graph, "-o", &other],
    ] {
        let output = run_after("ulimit -f 1;", arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("File too large"), "{arguments:?}: {said}");
    }
    assert_eq!(names(&folder), before);
    assert_eq!(std::fs::read_to_string(json).unwrap(), "old");
    assert_eq!(std::fs::read_to_string(page).unwrap(), "<!doctype html>old");
}

/// Two logs of one length, of which the second shows a pass that is wrong.
fn good_and_bad() -> (String, String) {
    let after = |body: &str| trace_of(&[("before_a", SUM), ("after_a", body)]);
    let (good, bad) = (after(SUM), after(OTHER));
    let length = good.len().max(bad.len());
    let padded = |text: String| format!("{text}{}\n", "#".repeat(length - text.len()));
    (padded(good), padded(bad))
}

#[test]
fn a_log_that_is_written_over_is_read_again() {
    let (good, bad) = good_and_bad();
    let late = good.replace("20:08", "20:09") + &bad;
    let rename = |path: &Path, text: &str| {
        let other = path.with_extension("new");
        std::fs::write(&other, text).unwrap();
        std::fs::rename(&other, path).unwrap();
    };
    let in_place = |path: &Path, text: &str| std::fs::write(path, text).unwrap();
    let removed = |path: &Path, text: &str| {
        std::fs::remove_file(path).unwrap();
        std::fs::write(path, text).unwrap();
    };
    // In its middle, with its time of writing as before.
    let within = |path: &Path, text: &str| {
        let times = std::fs::metadata(path).unwrap().modified().unwrap();
        let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.set_modified(times).unwrap();
    };
    let changes: [(&str, &(dyn Fn(&Path, &str) + Sync), &str); 5] = [
        ("in place", &in_place, &bad),
        ("in place, longer", &in_place, &late),
        ("another file", &rename, &bad),
        ("removed", &removed, &bad),
        ("within", &within, &bad),
    ];
    std::thread::scope(|scope| {
        for (number, (name, change, text)) in changes.into_iter().enumerate() {
            let good = &good;
            scope.spawn(move || {
                let scratch = Scratch::new(&format!("over-{number}"));
                let log = scratch.write("a.log", good.as_bytes());
                let watch = std::thread::spawn({
                    let folder = scratch.path("");
                    move || run(&["watch", &folder, "--every", "0.05", "--until-idle", "4", "--verbose"])
                });
                std::thread::sleep(std::time::Duration::from_millis(1500));
                change(Path::new(&log), text);
                let (status, said) = watch.join().unwrap();
                assert_eq!(status, Some(1), "{name}: {said}");
                assert!(said.contains("while it was followed"), "{name}: {said}");
            });
        }
    });
}

/// A file that is renamed is the same file.
#[test]
fn a_log_that_is_renamed_is_not_read_twice() {
    let (good, _) = good_and_bad();
    let scratch = Scratch::new("renamed");
    let log = scratch.write("a.log", good.as_bytes());
    let watch = std::thread::spawn({
        let folder = scratch.path("");
        move || run(&["watch", &folder, "--every", "0.05", "--until-idle", "3", "--verbose"])
    });
    std::thread::sleep(std::time::Duration::from_millis(1000));
    std::fs::rename(&log, scratch.0.join("a.log.1")).unwrap();
    let (status, said) = watch.join().unwrap();
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("1 pair in 1 file: 1 unchanged"), "{said}");
}

fn packed(parts: &[&[u8]]) -> Vec<u8> {
    let pack = |part: &&[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(part).unwrap();
        packed.finish().unwrap()
    };
    parts.iter().flat_map(pack).collect()
}

#[test]
fn an_archive_of_a_log_is_read_up_to_the_limit() {
    let (good, bad) = good_and_bad();
    let blank = vec![b'\n'; 2 << 20];
    for (log, status, verdict) in [(&good, 3, "1 unchanged"), (&bad, 1, "1 violated")] {
        let scratch = Scratch::new("bomb");
        scratch.write("a.log.gz", &packed(&[log.as_bytes(), &blank]));
        let (found, said) = run(&["trace", &scratch.path(""), "--limit", "text=1MiB"]);
        assert_eq!(found, Some(status), "{said}");
        assert!(said.contains("holds more than 1048576 bytes when it is decompressed"), "{said}");
        assert!(said.contains(verdict), "{said}");
        let (found, said) = run(&["trace", &scratch.path("")]);
        assert_eq!(found, Some(if status == 3 { 0 } else { 1 }), "{said}");
    }
}

/// Hashed names are looked up, not searched for one by one.
#[test]
fn unknown_groups_cost_no_more_than_one() {
    let scratch = Scratch::new("hashes");
    let launches: String = (0..300)
        .map(|number| {
            let hash: String = sha1_of(&number.to_string());
            format!(
                "a{number}: \"f32[8][1]cpu\" = torch.ops._c10d_functional.all_gather_into_tensor.default(x, 2, '{hash}')\n\
                 w{number}: \"f32[8][1]cpu\" = torch.ops._c10d_functional.wait_tensor.default(a{number})\n"
            )
        })
        .collect();
    let body = format!("{launches}return (w0,)");
    scratch.write("a.log", trace_of(&[("before_a", &body), ("after_a", &body)]).as_bytes());
    let (status, said) = run(&["trace", &scratch.path("")]);
    assert_eq!(status, Some(0), "{said}");
}

/// Forty hexadecimal digits, as the names of groups have them: two digests of 128 bits would be as good.
fn sha1_of(text: &str) -> String {
    use md5::Digest;
    let digits: String = md5::Md5::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{digits}{}", &digits[..8])
}

#[test]
fn threads_have_a_limit() {
    let scratch = Scratch::new("threads");
    let graph = scratch.write("g.graph", GRAPH.as_bytes());
    let setup = "ulimit -v 4000000; export RAYON_NUM_THREADS=100000;";
    let output = run_after(setup, &["check", "repair", &graph, "--candidate", "reference"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn a_comment_of_any_length_is_read() {
    let scratch = Scratch::new("comment");
    let graph = scratch.write("g.graph", format!("{GRAPH}#{}", "A".repeat(100 << 20)).as_bytes());
    let output = run_after("ulimit -v 1000000;", &["show", &graph, "-o", "/dev/null"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

/// Line breaks of names never begin a line of a report.
#[test]
fn names_are_one_line_in_every_format() {
    let scratch = Scratch::new("forged");
    let name = "%\"y\\n::error::forged\\n##[error]forged\\nSOUND: forged\\u{200b}\\u{feff}\\u{ad}\"";
    let body = |op: &str| format!("x = input : f32[4]\n{name} = {op}(x) : f32[4]\noutput {name}\n");
    let before = scratch.write("before.graph", body("neg").as_bytes());
    let after = scratch.write("after.graph", body("abs").as_bytes());
    let page = scratch.path("page.html");
    let mut all: Vec<Vec<&str>> = vec![
        vec!["check", "memory", &before, "--candidate", "reference"],
        vec!["check", "rewrite", &before, &after, "--verbose"],
        vec!["check", "schedule", &before, &after],
        vec!["check", "repair", &before, &after, "--html", &page],
        vec!["simulate", &before],
        vec!["smoke", &before, "--table"],
        vec!["lifecycle", "--graph", &before],
        vec!["show", &before],
        vec!["show", &before, "--format", "dot"],
        vec!["show", &before, "--format", "svg"],
        vec!["show", &before, "--timeline"],
    ];
    for format in ["json", "sarif", "junit", "github"] {
        all.push(vec!["check", "rewrite", &before, &after, "--format", format]);
    }
    let summary = scratch.path("summary.md");
    let setup = format!("export GITHUB_STEP_SUMMARY='{summary}';");
    for arguments in &all {
        let output = run_after(&setup, arguments);
        check_lines(&format!("{arguments:?}"), &text(&[output.stdout, output.stderr].concat()));
    }
    for file in [page, summary] {
        check_lines(&file, &std::fs::read_to_string(&file).unwrap());
    }
    // What is written for machines is what was read.
    let json = scratch.path("g.json");
    assert_eq!(run(&["convert", &before, &json]).0, Some(0));
    let read: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let plain = "y\n::error::forged\n##[error]forged\nSOUND: forged\u{200b}\u{feff}\u{ad}";
    assert_eq!(read["nodes"][1]["name"], plain);
    let again = scratch.path("again.graph");
    assert_eq!(run(&["convert", &json, &again]).0, Some(0));
    assert!(std::fs::read_to_string(again).unwrap().contains("y\\n::error::forged\\n##"));
}

fn check_lines(what: &str, said: &str) {
    let is_forged = |line: &str| {
        let line = line.trim_start();
        ["::error::forged", "##[error]forged", "SOUND: forged"].iter().any(|start| line.starts_with(start))
    };
    assert!(!said.lines().any(is_forged), "{what}: {said}");
    assert!(!said.contains(['\u{200b}', '\u{feff}', '\u{ad}', '\u{fdd0}']), "{what}: {said}");
    assert!(!said.is_empty(), "{what}: nothing was printed");
}

/// Each of them is placed by what it sends, one after the other and not one inside the other.
#[test]
fn thousands_of_dead_collectives_are_one_bucket() {
    let scratch = Scratch::new("dead-collectives");
    let lines = |line: &str| (0..4_000).map(|i| line.replace('#', &i.to_string())).collect::<String>();
    let (launches, waits) = (lines("a# = all_gather(x, dp) : f32[8]\n"), lines("w# = wait(a#) : f32[8]\n"));
    let graph = format!("world 2 ranks, groups dp = [0 1]\nx = input : f32[4]\n{launches}{waits}output x\n");
    let graph = scratch.write("dead.graph", graph.as_bytes());
    let (status, said) = run(&["check", "bucketing", &graph, "--candidate", "reference"]);
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn long_names_are_cut() {
    let scratch = Scratch::new("long");
    let name = "y".repeat(5 << 20);
    let body = |op: &str| format!("x = input : f32[4]\n{name} = {op}(x) : f32[4]\noutput {name}\n");
    let before = scratch.write("before.graph", body("neg").as_bytes());
    let after = scratch.write("after.graph", body("abs").as_bytes());
    for format in ["text", "json", "sarif", "junit", "github"] {
        let (status, said) = run(&["check", "rewrite", &before, &after, "--format", format]);
        assert_eq!(status, Some(1), "{format}: {}", said.len());
        assert!(said.len() < 200_000, "{format}: {} bytes", said.len());
    }
}

#[test]
fn children_that_leave_the_group_of_a_worker_end_with_it() {
    if Command::new("setsid").arg("true").status().is_err() {
        println!("skipped 1 test: there is no setsid");
        return;
    }
    // The number of seconds tells the children of this test from all others.
    let (left, orphan) = (format!("9{}", std::process::id()), format!("8{}", std::process::id()));
    let hello = r#"{"type":"hello","protocol":"graph-oracle-worker/1","name":"w","version":"1","passes":{"repair":{}}}"#;
    let worker = format!(
        "setsid sleep {left} </dev/null >/dev/null 2>&1 & (setsid sleep {orphan} </dev/null >/dev/null 2>&1 &); \
         read -r line; echo '{hello}'; sleep 60"
    );
    let (status, said) =
        run(&["fuzz", "repair", "--cases", "1", "--worker", &worker, "--worker-seconds", "1"]);
    assert_eq!(status, Some(1), "{said}");
    for seconds in [&left, &orphan] {
        assert!(!is_running(seconds), "sleep {seconds}");
    }
    // The same where the program is killed.
    let mut program = Command::new(PROGRAM);
    program.args(["fuzz", "repair", "--cases", "1", "--worker-seconds", "50", "--worker", &worker]);
    let mut child =
        program.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    wait_for(|| is_running(&left) && is_running(&orphan));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for(|| !is_running(&left) && !is_running(&orphan));
}

/// Waits for what is about to be; the test hangs where it does not come.
fn wait_for(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Whether some process is `sleep` for so many seconds.
fn is_running(seconds: &str) -> bool {
    let wanted = format!("sleep\0{seconds}\0");
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .into_iter()
        .any(|entry| std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == wanted.as_bytes()))
}
