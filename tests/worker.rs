//! Workers: candidates in other processes, those that behave and those that do not.

#![cfg(unix)]
use graph_oracle::campaign::{Campaign, KnownList, Limit, RankPlan, Summary};
use graph_oracle::candidates::worker::{Limits, Worker, conformance};
use graph_oracle::candidates::{
    self, Answer, Candidate, CandidateExt, Capabilities, Reference, Refusal, Request, judging,
};
use graph_oracle::case::{Case, PassConfig};
use graph_oracle::format::text;
use graph_oracle::judge::{self, Options, Values, Verdict};
use graph_oracle::reduce::Budget;
use graph_oracle::rules::{Code, Finding, PassKind};
use graph_oracle::stop::Stop;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_graph-oracle");

fn served(candidate: &str) -> String {
    format!("'{PROGRAM}' worker --candidate {candidate}")
}

/// A worker that says hello, with further keys, and then runs a script. `$ID` is the id of the request in `$line`,
/// which `ask` reads.
fn script(keys: &str, rest: &str) -> String {
    format!(
        r#"ask() {{ IFS= read -r line || exit 0; ID=${{line#*\"id\":}}; ID=${{ID%%,*}}; }}
IFS= read -r line
echo '{{"type":"hello","protocol":"graph-oracle-worker/1","name":"script","version":"1","passes":{{"bucketing":{{}}}}{keys}}}'
{rest}"#
    )
}

fn limits() -> Limits {
    Limits { request: Duration::from_millis(1500), answer: 1 << 20, ..Limits::default() }
}

fn options() -> Options {
    Options { values: Values::Off, ..judging() }
}

fn campaign(candidate: &dyn Candidate, pass: PassKind, cases: u64) -> Campaign<'_> {
    Campaign {
        pass: Some(pass),
        candidate,
        seed: 3,
        limit: Limit::Cases(cases),
        jobs: 2,
        shard: (0, 1),
        out: None,
        known: KnownList::default(),
        options: options(),
        reduction: Budget { questions: 12, time: Duration::from_secs(600) },
        graphs: Vec::new(),
        set: Vec::new(),
        ranks: RankPlan::All,
        batch: 16,
        reproductions: None,
        progress: false,
        stop: Stop::default(),
    }
}

/// Two gathers.
fn case() -> Case {
    let text = "world 2 ranks, groups dp = [0 1]\n\
                pass bucketing kind=all_gather\n\
                x = input : f32[4]\n\
                g0 = all_gather(x, dp) : f32[8]\n\
                w0 = wait(g0)\n\
                g1 = all_gather(x, dp) : f32[8]\n\
                w1 = wait(g1)\n\
                output (w0, w1)\n";
    text::parse(text.as_bytes()).unwrap()
}

fn finding(verdict: &Verdict) -> &Finding {
    match verdict {
        Verdict::Violated(findings) => &findings[0],
        other => panic!("{other:?}"),
    }
}

fn judged(worker: &Worker) -> Finding {
    finding(&judge::judge(&case(), worker, &options()).unwrap().verdict).clone()
}

#[test]
fn a_worker_finds_what_its_candidate_finds_in_process() {
    for (name, pass, cases) in [
        ("bucket-direct-dependence", PassKind::Bucketing, 4),
        ("partition-saves-tagged", PassKind::Partition, 2),
        ("schedule-reads-in-flight", PassKind::Schedule, 4),
        ("memory-freed-with-base", PassKind::Memory, 6),
    ] {
        let in_process = candidates::find(name).unwrap();
        let worker = Worker::start(&served(name), Limits::default()).unwrap();
        let found = |candidate: &dyn Candidate| -> (Vec<_>, Summary) {
            let summary = campaign(candidate, pass, cases).run().unwrap();
            let distinct = summary.total.found.iter();
            (distinct.map(|f| (f.rule.clone(), f.shape.clone(), f.number, f.nodes)).collect(), summary)
        };
        let ((wanted, a), (got, b)) = (found(&*in_process), found(&worker));
        assert_eq!(got, wanted, "{name}");
        assert_eq!((a.total.rules, a.total.useful), (b.total.rules, b.total.useful), "{name}");
        assert!(!wanted.is_empty(), "{name} is not convicted");
    }
}

#[test]
fn what_a_worker_does_wrong_is_a_finding() {
    let table = [
        ("ask; sleep 1000", "worker/hang", "no answer within 1.5 s"),
        (
            r#"ask; echo "{\"type\":\"progress\",\"id\":$ID,\"phase\":\"pass\"}"; sleep 1000"#,
            "worker/hang",
            "no answer within 1.5 s, in phase pass",
        ),
        ("ask; echo garbage; sleep 1000", "worker/garbage", "a line that is no message"),
        (r#"ask; echo '{"type":"dance"}'; sleep 1000"#, "worker/garbage", "a line that is no message"),
        (
            r#"ask; echo "{\"type\":\"outcome\",\"id\":$ID,\"repaired\":[]}"; sleep 1000"#,
            "worker/garbage",
            "an answer that cannot be read: repaired",
        ),
        ("exit 5", "worker/crash", "the process ends with exit status 5"),
        ("ask; echo its last words >&2; kill -SEGV $$", "worker/crash", "the process is ended by SIGSEGV"),
        // Somebody else holds its output open.
        ("ask; sleep 1000 & exit 4", "worker/crash", "the process ends with exit status 4"),
        (
            r#"ask; echo '{"type":"outcome","id":999}'; sleep 1000"#,
            "worker/wrong-id",
            "an answer with another id",
        ),
        ("ask; head -c 100000000 /dev/zero", "worker/oversized", "a line of more than 1048576 bytes"),
        (
            r#"ask; echo "{\"type\":\"error\",\"id\":$ID,\"error\":\"KeyError\",\"message\":\"node g0 has 12\"}"; sleep 1000"#,
            "worker/error",
            "KeyError: node # has #",
        ),
    ];
    // At the same time, as most of them are waited for.
    std::thread::scope(|threads| {
        for (rest, rule, title) in table {
            threads.spawn(move || {
                let worker = Worker::start(&script("", rest), limits()).unwrap();
                let found = judged(&worker);
                assert_eq!(found.rule, rule, "{rest}: {found:?}");
                assert!(found.title.starts_with(title), "{rest}: {found:?}");
                if rest.contains("last words") {
                    assert_eq!(found.facts, ["standard error: its last words"]);
                }
            });
        }
    });
}

/// What a script that raises, and leaves a graph behind, is judged as.
fn raised(pass: &str, case: &str) -> Verdict {
    let rest =
        r#"while ask; do echo "{\"type\":\"error\",\"id\":$ID,\"error\":\"E\",\"message\":\"no\"}"; done"#;
    let script = script("", rest).replace("\"bucketing\":{}", &format!("\"{pass}\":{{}}"));
    let worker = Worker::start(&script, limits()).unwrap();
    judge::judge(&text::parse(case.as_bytes()).unwrap(), &worker, &options()).unwrap().verdict
}

#[test]
fn whoever_raises_has_failed_unless_nobody_could() {
    let joint = "pass partition num_fwd_outputs=1\nprimals_1 = input : f32[4]\ntangents_1 = input : f32[4]\n\
                 y = sin(primals_1) {recompute: MUST_RECOMPUTE, partitioner_tag: TAG}\n\
                 g = mul(tangents_1, y)\noutput (y, g)\n";
    let possible = raised("partition", &joint.replace("TAG", "is_forward"));
    assert_eq!(finding(&possible).rule, "worker/error");
    let Verdict::Refused(why) = raised("partition", &joint.replace("TAG", "must_be_in_forward")) else {
        panic!("not refused")
    };
    assert!(why.message.contains("y is not computed again, since it is tagged must_be_in_forward"), "{why}");
    let list = "pass repair\nx = input : f32[4]\na = add(x, OTHER) : f32[4]\nb = neg(a) : f32[4]\noutput b\n";
    assert_eq!(finding(&raised("repair", &list.replace("OTHER", "x"))).rule, "worker/error");
    let Verdict::Refused(why) = raised("repair", &list.replace("OTHER", "b")) else { panic!("not refused") };
    assert!(why.message.starts_with("the graph has a cycle"), "{why}");
}

#[test]
fn what_a_worker_promises_is_demanded() {
    let promises = |options: &str| {
        let keys = format!(
            "\"bucketing\":{{\"promises\":[{{\"when\":{{\"mode\":[\"\"]}},\"options\":{options}}}]}}"
        );
        Worker::start(&script("", "cat").replace("\"bucketing\":{}", &keys), limits())
    };
    let worker = promises("{\"promises\":[\"cap\"]}").unwrap();
    let asked =
        |pass: PassConfig| worker.promised(&pass).words("promises").unwrap().map(|words| words.join(" "));
    assert_eq!(asked(PassConfig::new("bucketing")).as_deref(), Some("cap"));
    assert_eq!(asked(PassConfig::new("bucketing").with("mode", "custom_ops")), None);
    assert_eq!(asked(PassConfig::new("bucketing").with("promises", "order")).as_deref(), Some("order"));
    let error = promises("{\"kind\":\"all_gather\"}").err().unwrap().to_string();
    assert!(error.contains("promises kind of bucketing, which is no option of the judge"), "{error}");
}

#[test]
fn a_second_answer_is_found_with_the_next_request() {
    let refuse = r#"echo "{\"type\":\"refused\",\"id\":$ID,\"reason\":\"no\"}"; "#;
    let worker =
        Worker::start(&script("", &format!("while ask; do {refuse} {refuse} done")), limits()).unwrap();
    let verdict = judge::judge(&case(), &worker, &options()).unwrap().verdict;
    assert_eq!(verdict, Verdict::Refused(Code::ByWorker.because("no")));
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(judged(&worker).title, "a second answer");
}

#[test]
fn a_worker_declines_with_a_code_of_ours_or_with_a_word_of_its_own() {
    let said = |code: &str| {
        let refuse =
            format!(r#"echo "{{\"type\":\"refused\",\"id\":$ID,\"code\":\"{code}\",\"reason\":\"no\"}}""#);
        let worker = Worker::start(&script("", &format!("while ask; do {refuse}; done")), limits()).unwrap();
        worker.rewrite(&case().graph, &PassConfig::new("bucketing"), 0).unwrap_err().reason
    };
    assert_eq!(said("refused/unsupported"), Code::Unsupported.because("no"));
    assert_eq!(said("too-old").code(), "refused/by-worker/too-old");
    assert_eq!(said("Too old!").code(), "refused/by-worker");
}

#[test]
fn children_of_a_worker_end_with_it() {
    let folder = Folder::new("children");
    std::fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("alive");
    let rest = format!("(sleep 2; touch '{}') & ask; sleep 1000", file.display());
    let worker = Worker::start(&script("", &rest), limits()).unwrap();
    assert_eq!(judged(&worker).rule, "worker/hang");
    std::thread::sleep(Duration::from_secs(2));
    assert!(!file.exists());
}

#[test]
fn a_worker_that_cannot_be_used_is_told_in_one_line() {
    let hello = |protocol: &str, rest: &str| {
        format!("echo '{{\"type\":\"hello\",\"protocol\":\"{protocol}\"{rest}}}'; cat")
    };
    for (command, words) in [
        (
            "no-such-program --at-all".to_string(),
            "ends with exit status 127 before its hello; its last words:",
        ),
        (
            "echo oops >&2; exit 3".to_string(),
            "ends with exit status 3 before its hello; its last words: oops",
        ),
        ("sleep 1000".to_string(), "no hello within 0.7 s"),
        (
            "echo torch 2.15; cat".to_string(),
            "its first line is no hello, but \"torch 2.15\": standard output is for messages",
        ),
        (
            hello("graph-oracle-worker/2", ""),
            "it speaks graph-oracle-worker/2, this program graph-oracle-worker/1",
        ),
        (hello("graph-oracle-worker/1", ""), "its hello lacks the key name"),
    ] {
        let limits = Limits { start: Duration::from_millis(700), ..limits() };
        let error = Worker::start(&command, limits).err().unwrap().to_string();
        assert!(error.contains(words), "{command}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let output = program(&["fuzz", "bucketing", "--worker", "exit 3", "--cases", "1"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, "graph-oracle: worker `exit 3`: ends with exit status 3 before its hello\n");
}

/// Both directions are full at once: a request of megabytes, and as much from a worker that has not read any of it.
#[test]
fn nobody_waits_for_a_reader() {
    let mut lines = String::from("world 2 ranks, groups dp = [0 1]\nx0 = input : f32[4]\n");
    for i in 1..6000 {
        lines += &format!("x{i} = relu(x{}) : f32[4]\n", i - 1);
    }
    lines += "output (x5999)\n";
    let graph = text::parse(lines.as_bytes()).unwrap().graph;
    let padding = r#"for i in 1 2 3 4 5; do printf '{"type":"idle","pad":"'; head -c 900000 /dev/zero | tr '\0' x; echo '"}'; done"#;
    let rest = format!(
        r#"{padding}; head -n 1 > /dev/null; echo '{{"type":"refused","id":1,"reason":"large"}}'; cat > /dev/null"#
    );
    let worker =
        Worker::start(&script("", &rest), Limits { request: Duration::from_secs(20), ..limits() }).unwrap();
    let refusal = worker.rewrite(&graph, &PassConfig::new("bucketing"), 0).unwrap_err();
    assert_eq!((refusal.reason.message.as_str(), refusal.failure), ("large", None));
}

#[test]
fn a_worker_that_asks_for_it_is_started_anew() {
    let refuse = r#"while ask; do echo "{\"type\":\"refused\",\"id\":$ID,\"reason\":\"no\"}"; done"#;
    let worker = Worker::start(&script(",\"recycle_after\":2", refuse), limits()).unwrap();
    for _ in 0..6 {
        let refusal = worker.rewrite(&case().graph, &PassConfig::new("bucketing"), 0).unwrap_err();
        assert_eq!(refusal.reason.message, "no");
    }
    assert!(worker.notes()[0].contains("6 requests to 3 processes"), "{:?}", worker.notes());
}

#[test]
fn a_worker_is_only_asked_for_what_it_takes() {
    let hello = r#"echo '{"type":"hello","protocol":"graph-oracle-worker/1","name":"n","version":"1","passes":{"bucketing":{"max_ranks":2,"options":{"mode":["default"],"selection":["inductor"],"max_topo_span":[]},"targets":["aten.mm.default"]}}}'; cat > /dev/null"#;
    let worker = Worker::start(hello, limits()).unwrap();
    let campaign = campaign(&worker, PassKind::Bucketing, 1);
    let mut spans = 0;
    for number in 0..100 {
        let case = campaign.case(number);
        let pass = case.pass.unwrap();
        assert!(case.graph.world.ranks.unwrap() <= 2);
        assert_eq!(pass.word("mode"), Ok(Some("default")));
        assert_eq!(pass.word("selection"), Ok(Some("inductor")));
        spans += usize::from(pass.get("max_topo_span").is_some());
    }
    assert_eq!(spans, 0);
    let refusal = worker.rewrite(&case().graph, &PassConfig::new("bucketing"), 0).unwrap_err();
    assert!(
        refusal.reason.message.contains("does not rebuild _c10d_functional.all_gather_into_tensor"),
        "{}",
        refusal.reason
    );
}

#[test]
fn different_exceptions_are_different_findings() {
    let rest = r#"while ask; do case $line in
*reduce_scatter*) echo "{\"type\":\"error\",\"id\":$ID,\"error\":\"KeyError\",\"message\":\"no group $ID\"}";;
*all_reduce*) echo "{\"type\":\"error\",\"id\":$ID,\"error\":\"KeyError\",\"message\":\"no reduction $ID\"}";;
*) echo "{\"type\":\"refused\",\"id\":$ID,\"reason\":\"no\"}";;
esac; done"#;
    let worker = Worker::start(&script("", rest), limits()).unwrap();
    let folder = Folder::new("exceptions");
    let summary = Campaign {
        reproductions: Some(folder.0.clone()),
        reduction: Budget { questions: 150, ..Budget::default() },
        ..campaign(&worker, PassKind::Bucketing, 12)
    }
    .run()
    .unwrap();
    let mut kinds: Vec<&str> = summary.total.found.iter().filter_map(|f| f.kind.as_deref()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, ["KeyError: no group #", "KeyError: no reduction #"], "{}", summary.text());
    for finding in &summary.total.found {
        let name = finding.file_name();
        let folder = folder.0.join(name.trim_end_matches(".graph"));
        assert_eq!(std::fs::read_to_string(folder.join("case.graph")).unwrap(), finding.case);
        let explanation = std::fs::read_to_string(folder.join("explanation.txt")).unwrap();
        assert!(
            explanation.ends_with("There is no repro.py: script-1 makes no reproductions\n"),
            "{explanation}"
        );
        assert!(folder.join("before.json").exists());
    }
    // A known kind is not told again.
    let known = r#"{"rule": "worker/error", "kind": "no group", "link": "here"}"#;
    let campaign = Campaign {
        known: KnownList::parse(known).unwrap(),
        reduction: Budget { questions: 150, ..Budget::default() },
        ..campaign(&worker, PassKind::Bucketing, 12)
    };
    let summary = campaign.run().unwrap();
    let is_other = |kind: Option<&str>| kind == Some("KeyError: no reduction #");
    let found = &summary.total.found;
    assert!(summary.total.known_links["here"] > 0 && !found.is_empty(), "{}", summary.text());
    assert!(found.iter().all(|finding| is_other(finding.kind.as_deref())), "{}", summary.text());
}

#[test]
fn a_worker_can_make_a_reproduction() {
    let rest = r#"while ask; do case $line in
*\"repro\"*worker/error*) echo "{\"type\":\"repro\",\"id\":$ID,\"python\":\"print(1)\"}";;
*) echo "{\"type\":\"error\",\"id\":$ID,\"error\":\"KeyError\",\"message\":\"\"}";;
esac; done"#;
    let worker = Worker::start(&script(",\"repro\":true", rest), limits()).unwrap();
    let folder = Folder::new("repro");
    let reproductions = Some(folder.0.clone());
    Campaign { reproductions, ..campaign(&worker, PassKind::Bucketing, 1) }.run().unwrap();
    assert_eq!(std::fs::read_to_string(folder.0.join("worker-error-0/repro.py")).unwrap(), "print(1)");
}

/// What fails on every graph, or never again, is one finding and not one for each case.
#[test]
fn a_worker_that_always_or_seldom_fails_is_one_finding() {
    let worker = Worker::start(&script("", "ask; echo garbage"), limits()).unwrap();
    let summary = campaign(&worker, PassKind::Bucketing, 10).run().unwrap();
    assert_eq!(summary.total.rules["worker/garbage"], 10);
    let nodes: Vec<usize> = summary.total.found.iter().map(|finding| finding.nodes).collect();
    // The empty graph is refused before anybody is asked, so one node is left.
    assert_eq!(nodes, [1], "{}", summary.text());
    // Every process fails at its second request, so none fails when it is asked again.
    let rest =
        r#"ask; echo "{\"type\":\"refused\",\"id\":$ID,\"reason\":\"case $ID is small\"}"; ask; exit 7"#;
    let worker = Worker::start(&script("", rest), limits()).unwrap();
    let once = Campaign { jobs: 1, ..campaign(&worker, PassKind::Bucketing, 9) };
    let summary = once.run().unwrap();
    assert!(summary.total.rules["worker/crash"] >= 4);
    assert!(summary.total.found.len() <= 2, "{}", summary.text());
    assert_eq!(summary.total.refusals.keys().collect::<Vec<_>>(), ["refused/by-worker: case # is small"]);
    for finding in &summary.total.found {
        assert!(finding.report.contains("not in three further runs of the case alone"), "{}", finding.report);
        assert!(finding.report.contains("the process ends with exit status 7"), "{}", finding.report);
    }
}

/// What comes again when the case is run alone is not said to have come once: in other words, with options that the
/// reference does not have.
#[test]
fn failures_that_come_again_are_reduced() {
    let words = r#"echo "{\"type\":\"error\",\"id\":$ID,\"error\":\"E\",\"message\":\"at $(echo $ID$$ | tr 0-9 a-j)\"}"; "#;
    let other_words = script("", &format!("while ask; do {words} done"));
    let own_option = script("", "ask; echo garbage")
        .replace(r#""bucketing":{}"#, r#""bucketing":{"options":{"mode":["mine"]}}"#);
    assert!(own_option.contains("mine"));
    for (command, rule) in [(other_words, "worker/error"), (own_option, "worker/garbage")] {
        let worker = Worker::start(&command, limits()).unwrap();
        let summary = campaign(&worker, PassKind::Bucketing, 6).run().unwrap();
        let found = &summary.total.found;
        assert_eq!((found.len(), summary.total.rules[rule]), (1, 6), "{}", summary.text());
        assert_eq!(found[0].nodes, 1, "{}", found[0].report);
        assert!(!found[0].report.contains("failed like this once"), "{}", found[0].report);
    }
}

/// Nothing is left of a worker, however we end: also of one that hangs and does not see that its input has ended.
#[test]
fn workers_do_not_outlive_the_program() {
    let folder = Folder::new("outlive");
    for (signal, status) in [("INT", Some(130)), ("TERM", Some(143)), ("KILL", None)] {
        std::fs::create_dir_all(&folder.0).unwrap();
        let pids = folder.0.join("pids");
        let rest =
            format!("sleep 1000 & echo $! $$ >> '{}'; ask; while :; do sleep 1000; done", pids.display());
        let mut program = Command::new(PROGRAM)
            .args(["fuzz", "bucketing", "--jobs", "2", "--cases", "400", "--worker", &script("", &rest)])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let read = || std::fs::read_to_string(&pids).unwrap_or_default();
        while read().lines().count() < 2 {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(300));
        let id = program.id().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success());
        let ended = program.wait().unwrap();
        assert_eq!(ended.code(), status, "{signal}");
        let alive = |pid: &&str| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        let read = read();
        let left = || read.split_whitespace().filter(alive).count();
        // Whom a signal has reached may take a while to be gone.
        let is_gone = (0..1500).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            left() == 0
        });
        assert!(is_gone, "{signal}: {} left of {read}", left());
        std::fs::remove_dir_all(&folder.0).unwrap();
    }
}

#[test]
fn memory_is_limited() {
    let hello = r#"echo "{\"type\":\"hello\",\"protocol\":\"graph-oracle-worker/1\",\"name\":\"limit\",\"version\":\"$(ulimit -v)\",\"passes\":{}}"; cat"#;
    let limits = Limits { memory: Some(3 << 30), ..limits() };
    assert_eq!(Worker::start(hello, limits).unwrap().name(), "limit-3145728");
}

#[test]
fn the_kit_passes_our_own_worker_and_fails_others() {
    let run = |command: &str, limits: &Limits| {
        let mut told = Vec::new();
        let checks = conformance::test(command, limits, &mut |check| told.push(check.to_string()));
        assert_eq!(told.len(), checks.len());
        checks
    };
    let checks = run(&served("reference"), &Limits::default());
    let failed: Vec<String> = checks.iter().filter(|c| c.result.is_err()).map(ToString::to_string).collect();
    assert_eq!(failed, Vec::<String>::new());
    assert!(checks.len() >= 25, "{}", checks.len());
    // Answers everything alike, with the first id that it sees; ends with its input but not by bye.
    let refuse = r#"while ask; do echo "{\"type\":\"refused\",\"id\":${ID:-null},\"reason\":\"no\"}"; done"#;
    let checks = run(&script("", refuse), &limits());
    let failed: Vec<&str> = checks.iter().filter(|c| c.result.is_err()).map(|c| c.name.as_str()).collect();
    assert_eq!(failed, ["run bucketing", "some pass"]);
    // Gives back whatever graph it is given, asked for or not, and dies where there is none.
    let same = r#"while ask; do case $line in
*'"graph":{'*) graph=${line#*'"graph":'}; printf '%s\n' "{\"type\":\"outcome\",\"id\":$ID,\"repaired\":${graph%?}}";;
*) exit 1;;
esac; done"#;
    let checks = run(&script("", same), &limits());
    let result = |name: &str| checks.iter().find(|check| check.name == name).unwrap().result.clone();
    assert!(result("run bucketing").is_ok() && result("many requests at once").is_ok(), "{checks:?}");
    assert!(result("the input ends in the middle of a line").is_ok(), "{checks:?}");
    assert!(result("an unknown pass").is_err() && result("options that are a number").is_err());
    assert_eq!(result("no graph"), Err("the process ended".into()));
    assert!(result("bye").is_ok());
}

/// Executes graphs as the interpreter does, but for one bit.
struct OneBit;

impl Candidate for OneBit {
    fn name(&self) -> &str {
        "one-bit"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of(&[PassKind::Execute])
    }

    fn run(&self, request: &Request) -> Result<Vec<Answer>, Refusal> {
        let mut executed = Reference.execute(request.graph, request.pass, request.inputs)?;
        let tensors = executed.ranks.iter_mut().flat_map(|rank| rank.outputs.iter_mut().flatten());
        if let Some(cell) = tensors.flat_map(|tensor| tensor.cells.iter_mut()).next() {
            *cell ^= 1;
        }
        Ok(vec![Answer::Executed(executed)])
    }
}

#[test]
fn the_interpreter_is_held_against_who_executes() {
    let worker = Worker::start(&served("reference"), Limits::default()).unwrap();
    let summary = campaign(&worker, PassKind::Execute, 12).run().unwrap();
    let total = &summary.total;
    let unsound = total.violated + total.refused + total.undecided + total.invalid + total.crashed;
    assert!(total.found.is_empty() && total.cases == 12 && unsound <= 2, "{}", summary.text());
    let summary = campaign(&OneBit, PassKind::Execute, 6).run().unwrap();
    assert!(summary.total.rules["eager/same-outputs"] >= 3, "{}", summary.text());
    assert!(!summary.total.found.is_empty(), "{}", summary.text());
}

fn program(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().unwrap()
}

#[test]
fn two_implementations_are_held_against_each_other() {
    let run = |new: &[&str], against: &str| {
        let common = [
            "fuzz",
            "bucketing",
            "--cases",
            "2",
            "--jobs",
            "1",
            "--values",
            "off",
            "--reduce-seconds",
            "0",
            "--against",
            against,
        ];
        let output = program(&[&common, new].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (status, text) = run(&["--worker", &served("bucket-direct-dependence")], "reference");
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("got worse, by cases:") && text.contains("nothing got better"), "{text}");
    assert!(text.contains("worse: bucket/members-independent, reduced to "), "{text}");
    let (status, text) = run(&["--candidate", "reference"], &served("bucket-direct-dependence"));
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("nothing got worse") && text.contains("got better, by cases:"), "{text}");
    let (status, text) =
        run(&["--candidate", "bucket-direct-dependence"], &served("bucket-direct-dependence"));
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("2 cases, 2 judged alike"), "{text}");
}

#[test]
fn a_file_is_checked_and_reduced_with_a_worker() {
    let folder = Folder::new("files");
    std::fs::create_dir_all(&folder.0).unwrap();
    let path = folder.0.join("case.graph");
    let text = "world 2 ranks, groups dp = [0 1]\n\
                pass bucketing kind=all_gather\n\
                x = input : f32[4]\n\
                y = input : f32[4]\n\
                z = neg(y) : f32[4]\n\
                g0 = all_gather(x, dp) : f32[8]\n\
                w0 = wait(g0)\n\
                s = slice(w0, 0, 0, 4) : f32[4]\n\
                g1 = all_gather(s, dp) : f32[8]\n\
                w1 = wait(g1)\n\
                output (w1, z)\n";
    std::fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    let worker = served("bucket-direct-dependence");
    let checked = program(&["check", "bucketing", &path, "--worker", &worker]);
    let said = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert_eq!(checked.status.code(), Some(1), "{said}");
    assert!(
        said.contains("bucket/members-independent") && said.contains("by bucket-direct-dependence-"),
        "{said}"
    );
    let sound = program(&["check", "bucketing", &path, "--worker", &served("reference")]);
    assert_eq!(sound.status.code(), Some(0), "{}", String::from_utf8_lossy(&sound.stdout));
    let reduced = program(&["reduce", &path, "--worker", &worker]);
    let said = String::from_utf8_lossy(&reduced.stdout).into_owned();
    assert_eq!(reduced.status.code(), Some(1), "{said}");
    assert!(said.contains("all_gather") && !said.contains("slice") && !said.contains("neg"), "{said}");
    // With AFTER there is nothing to run.
    let both = program(&["check", "bucketing", &path, &path, "--worker", &worker]);
    assert_eq!(both.status.code(), Some(2));
    // A pass that is not offered.
    let output = program(&["fuzz", "memory", "--worker", &worker]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        said,
        format!(
            "graph-oracle: bucket-direct-dependence-{} does not offer memory; it offers: bucketing\n",
            env!("CARGO_PKG_VERSION")
        )
    );
}

/// A folder that is gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("graph-oracle-worker-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
