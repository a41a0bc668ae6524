//! `--html`: pages are well-formed, hold nothing that acts, load nothing, and are the same for the same data.

use crate::common::{Scratch, program, text};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;

/// Elements that have no end.
const VOID: &[&str] = &["meta", "input", "br", "hr", "img", "link"];

/// A tag of a page: its name, and its attributes as written.
struct Tag {
    name: String,
    attributes: Vec<(String, String)>,
}

/// The tags of a page that begin elements. Each element ends, in the right order; attributes are quoted, and a bare `<`
/// or `&` stands nowhere.
fn elements(page: &str) -> Vec<Tag> {
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a page begins with its type");
    let (mut open, mut tags): (Vec<String>, Vec<Tag>) = (Vec::new(), Vec::new());
    while let Some((before, after)) = rest.split_once('<') {
        assert!(!before.contains('>'), "a bare > in {before:?}");
        for entity in before.split('&').skip(1) {
            assert!(entity.contains(';'), "a bare & before {entity:?}");
        }
        if let Some(name) = after.strip_prefix('/') {
            let (name, after) = name.split_once('>').unwrap();
            assert_eq!(open.pop().as_deref(), Some(name), "what ends was begun last");
            rest = after;
            continue;
        }
        let (tag, after, is_closed) = tag(after);
        rest = after;
        if matches!(&*tag.name, "script" | "style") {
            let (_, after) = rest.split_once(&format!("</{}>", tag.name)).expect("an end");
            rest = after;
        } else if !VOID.contains(&&*tag.name) && !is_closed {
            open.push(tag.name.clone());
        }
        tags.push(tag);
    }
    assert!(open.is_empty(), "elements without an end: {open:?}");
    tags
}

/// Reads a tag behind its `<`; whether it ends in `/>`.
fn tag(text: &str) -> (Tag, &str, bool) {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap();
    let (name, mut rest) = text.split_at(end);
    assert!(!name.is_empty(), "a bare < before {:?}", &text[..text.len().min(40)]);
    let mut attributes = Vec::new();
    loop {
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix("/>") {
            return (Tag { name: name.to_string(), attributes }, after, true);
        }
        if let Some(after) = rest.strip_prefix('>') {
            return (Tag { name: name.to_string(), attributes }, after, false);
        }
        let end = rest.find(['=', ' ', '>']).unwrap();
        let (key, after) = rest.split_at(end);
        rest = after;
        let mut value = String::new();
        if let Some(quoted) = after.strip_prefix("=\"") {
            let (inside, after) = quoted.split_once('"').unwrap();
            (value, rest) = (inside.to_string(), after);
        }
        attributes.push((key.to_string(), value));
    }
}

/// What every page keeps to.
fn holds(page: &str) -> Vec<Tag> {
    let tags = elements(page);
    let ids: Vec<&str> = tags
        .iter()
        .flat_map(|tag| &tag.attributes)
        .filter(|(key, _)| key == "id")
        .map(|(_, id)| &**id)
        .collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "an id twice: {ids:?}");
    for tag in &tags {
        assert!(!matches!(&*tag.name, "iframe" | "object" | "embed" | "link" | "base"), "{}", tag.name);
        for (key, value) in &tag.attributes {
            assert!(!key.starts_with("on"), "{key} acts");
            let refers =
                matches!(&**key, "href" | "src" | "srcset" | "action" | "xlink:href" | "data" | "poster");
            assert!(
                !refers || value.starts_with('#') || value.starts_with('/'),
                "{key}={value} leads elsewhere"
            );
            assert!(!refers || !value.starts_with("//"), "{key}={value} leads elsewhere");
        }
    }
    let style = page.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
    assert!(!style.contains("url(") && !style.contains("@import"), "the style loads something");
    for words in ["fetch(", "XMLHttpRequest", "import(", "new Worker", "sendBeacon", "innerHTML", "eval("] {
        assert!(!page.contains(words), "the script has {words}");
    }
    let hidden = |c: &char| graph_oracle::words::is_hidden(*c);
    assert_eq!(page.chars().find(hidden), None, "a character that hides");
    tags
}

/// The page that a command writes; its exit status is as without one.
fn page_of(arguments: &[&str]) -> String {
    let scratch = Scratch::new(&format!("page-{}", arguments.join("-").replace(['/', ' '], "_").len()));
    let path = scratch.path("page.html");
    let plain = program(arguments);
    let output = program(&[arguments, &["--html", &path]].concat());
    assert_eq!(output.status.code(), plain.status.code(), "{arguments:?}: {}", text(&output.stderr));
    std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{arguments:?}: {}", text(&output.stderr)))
}

#[test]
fn the_page_of_a_check_tells_verdict_findings_and_graphs() {
    let page = page_of(&["check", "bucketing", "corpus/dependent_gathers.graph", "--candidate", "pr158663"]);
    holds(&page);
    let order =
        ["class=\"verdict violated\"", "id=\"figures\"", "id=\"finding-1\"", "id=\"graphs\"", "id=\"rules\""];
    let places: Vec<usize> = order.iter().map(|words| page.find(words).expect(words)).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(page.contains("A collective cannot depend on itself."), "the reason of the rule");
    assert!(page.contains("data-node="), "names lead to the graphs");
}

#[test]
fn a_page_is_the_same_for_the_same_data() {
    let check = ["check", "bucketing", "corpus/dependent_gathers.graph", "--candidate", "pr158663"];
    let without_name = |page: String| page.lines().filter(|line| !line.contains("page.html")).count();
    let scratch = Scratch::new("same-page");
    let path = scratch.path("page.html");
    let again: Vec<String> = (0..2)
        .map(|_| {
            program(&[&check[..], &["--html", &path]].concat());
            std::fs::read_to_string(&path).unwrap()
        })
        .collect();
    assert!(again[0] == again[1]);
    assert!(without_name(again[0].clone()) > 100);
}

/// Names, groups, sources and modules that hold markup, quotes, line ends and turns of the direction of writing.
#[test]
fn hostile_names_do_no_harm() {
    let name = r#"</script><script>alert(1)</script>\"'&<b>\u202e\n\u2028--><!--"#;
    let tensor = r#"{"t":"tensor","shape":[4],"stride":[1],"dtype":"float32","device":"<i>:0"}"#;
    let relu = format!(
        r#"{{"name":"{name}2","op":"call_function","target":"my.{name}","args":[{{"ref":"{name}"}},"{name}"],"out":{tensor},"stack":"File \"{name}\", line 1","module":"{name}"}}"#
    );
    let graph = |output: &str| {
        format!(
            r#"{{"schema_version":"graph-oracle/1","name":"{name}","kind":"forward","source":"t","torch":"","groups":{{}},"symbols":{{}},"num_nodes":3,"ops":{{}},"nodes":[
{{"name":"{name}","op":"placeholder","target":"{name}","out":{tensor}}},
{relu},
{{"name":"output","op":"output","target":"output","args":[[{{"ref":"{output}"}}]]}}]}}"#
        )
    };
    let scratch = Scratch::new("hostile-page");
    let before = scratch.write("a<b>.json", graph(&format!("{name}2")).as_bytes());
    let after = scratch.write("after.json", graph(name).as_bytes());
    let page = page_of(&["check", "rewrite", &before, &after]);
    let tags = holds(&page);
    let is_data =
        |tag: &&Tag| tag.attributes.iter().any(|(key, value)| key == "type" && value == "application/json");
    let scripts: Vec<&Tag> = tags.iter().filter(|tag| tag.name == "script").collect();
    assert_eq!(scripts.iter().filter(|tag| !is_data(tag)).count(), 1, "one script that draws");
    assert!(scripts.len() > 1, "and data");
    assert!(!page.contains("<script>alert"), "markup of a name");
    assert!(page.contains("violated"), "{}", &page[..2000]);
}

/// What the other commands show; a campaign's finding with its case, a deadlock in words.
#[test]
fn pages_of_other_commands_hold() {
    let joint = "corpus/real/small_fsdp12_joint.json.gz";
    let scratch = Scratch::new("other-pages");
    let waits = |first: &str, second: &str| {
        format!(
            "world 2 ranks, groups a = [0 1], b = [0 1]\nx = input : f32[8]\ng = all_gather(x, {first})\nw = wait(g)\n\
             h = all_gather(x, {second})\nv = wait(h)\noutput (w, v)\n"
        )
    };
    let one = scratch.write("one.graph", waits("a", "b").as_bytes());
    let other = scratch.write("other.graph", waits("b", "a").as_bytes());
    for (arguments, words) in [
        (vec!["show", joint], "id=\"graph-data\""),
        (vec!["show", joint, "--timeline"], "data-memory=\"0\""),
        (vec!["check", "memory", joint, "--candidate", "reference"], "data-memory=\"0\""),
        (vec!["simulate", "tests/cases/schedule/pipeline.graph"], "on pp"),
        (vec!["simulate", &one, &other], "RANKS DO NOT FINISH"),
        (vec!["score", "pr158663", "--seeds", "1"], "ALL CONVICTED"),
        (
            vec!["fuzz", "bucketing", "--candidate", "bucket-no-key", "--cases", "6"],
            "class=\"picture paper\"",
        ),
        (vec!["trace", "corpus/printed_graphs"], "data-filter="),
    ] {
        let page = page_of(&arguments);
        holds(&page);
        assert!(page.contains(words), "{arguments:?}: {words}");
    }
}

/// Text cases of the rules, one of three, judged as they are recorded or by the reference.
#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn cases_of_the_rules_have_pages() {
    let scratch = Scratch::new("case-pages");
    let (mut pages, mut refused) = (0, 0);
    for folder in std::fs::read_dir("tests/cases").unwrap() {
        let folder = folder.unwrap().path();
        let mut cases: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|case| case.unwrap().path()).collect();
        cases.sort();
        for case in cases.into_iter().step_by(3) {
            let text = std::fs::read_to_string(&case).unwrap();
            let Some(pass) = text.lines().find_map(|line| line.strip_prefix("pass ")) else { continue };
            let pass = pass.split_whitespace().next().unwrap();
            let path = scratch.path("page.html");
            let _ = std::fs::remove_file(&path);
            let output = program(&["check", pass, &case.display().to_string(), "--html", &path]);
            match output.status.code() {
                Some(0 | 1 | 3) => {
                    holds(&std::fs::read_to_string(&path).unwrap());
                    pages += 1;
                }
                code => {
                    assert_eq!(code, Some(2), "{}: {output:?}", case.display());
                    assert!(!Path::new(&path).exists(), "{}", case.display());
                    refused += 1;
                }
            }
        }
    }
    assert!(pages > 70 && refused < pages / 4, "{pages} pages, {refused} refused");
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn the_page_of_a_large_pair_is_small() {
    let folder = Path::new("../shared/graphs");
    let [before, after] = ["llama3_8b_bw_64_1d", "llama3_8b_bw_64_1d_after_bucket_ag_rs"]
        .map(|name| folder.join(format!("{name}.json.gz")).display().to_string());
    if !Path::new(&before).exists() {
        println!("skipped: {before} is not here");
        return;
    }
    let page = page_of(&["check", "bucketing", &before, &after]);
    holds(&page);
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
}

/// A server of the corpus, which ends with the test.
struct Server(std::process::Child, String);

impl Server {
    fn start(arguments: &[&str]) -> Server {
        let mut server = std::process::Command::new(env!("CARGO_BIN_EXE_graph-oracle"))
            .args([&["serve", "--port", "0"], arguments].concat())
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").unwrap().trim_end_matches('/').to_string();
        Server(server, address)
    }

    /// The answer to a request: its status and its body.
    fn ask(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.1).unwrap();
        // Whoever is refused early may close before all is sent.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("X-Content-Type-Options: nosniff"), "{head}");
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_string())
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.1))
    }

    fn post(&self, form: &str, more: &str) -> (u16, String) {
        let length = form.len();
        self.ask(&format!(
            "POST /judge HTTP/1.1\r\nHost: {}\r\n{more}Content-Length: {length}\r\n\r\n{form}",
            self.1
        ))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_shows_a_folder_and_judges_what_is_sent() {
    let server = Server::start(&["corpus"]);
    for path in [
        "/",
        "/in/real",
        "/in/real/small_fsdp12_joint.json.gz?as=graph",
        "/in/real/small_fsdp12_joint.json.gz?as=memory",
    ] {
        let (status, page) = server.get(path);
        assert_eq!(status, 200, "{path}");
        holds(&page);
    }
    // Nothing is recorded in it: it is shown, and judged where an implementation is named.
    assert!(!server.get("/in/dependent_gathers.graph").1.contains("<title>SOUND"));
    let (_, page) = server.get("/in/dependent_gathers.graph?as=check&pass=bucketing&candidate=reference");
    assert!(page.contains("<title>SOUND"));
    let (_, page) = server.get("/in/dependent_gathers.graph?as=check&pass=bucketing&candidate=pr158663");
    assert!(page.contains("<title>VIOLATED"));
    let before = "x%20=%20input%20:%20f32[4]%0Ay%20=%20sin(x)%0Aoutput%20y%0A";
    let (status, page) =
        server.get(&format!("/judge?before={before}&after={}", before.replace("sin", "cos")));
    assert_eq!(status, 200);
    assert!(page.contains("<title>VIOLATED"));
    holds(&page);
    let (status, page) = server.post(&format!("before={before}&after={before}&pass=rewrite"), "");
    assert_eq!(status, 200);
    assert!(page.contains("<title>SOUND"));
}

#[test]
fn a_server_refuses_what_it_should() {
    let server = Server::start(&["tests/cases/bucket", "--limit", "request=1000"]);
    let status = |answer: (u16, String)| {
        holds(&answer.1);
        answer.0
    };
    // Nothing outside of the folder, no flags, no commands.
    assert_eq!(status(server.get("/in/../README.md")), 422);
    assert_eq!(status(server.get("/in/%2e%2e/%2e%2e/Cargo.toml")), 422);
    assert_eq!(status(server.get("/in//etc/passwd")), 422);
    assert_eq!(status(server.get("/judge?before=x&pass=--help")), 422);
    assert_eq!(status(server.get("/judge?before=x&candidate=/bin/true")), 422);
    assert_eq!(status(server.get("/judge?before=<script>alert(1)</script>")), 422);
    assert_eq!(status(server.get("/none")), 404);
    // Another name of this machine, a form of another page.
    assert_eq!(status(server.ask("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")), 403);
    assert_eq!(status(server.ask("GET / HTTP/1.1\r\n\r\n")), 403);
    assert_eq!(status(server.post("before=x", "Origin: http://evil.example\r\n")), 403);
    assert_eq!(status(server.post("before=x", "Origin: null\r\n")), 403);
    // Too long, cut off, no request at all.
    assert_eq!(status(server.post(&"x".repeat(1001), "")), 413);
    assert_eq!(status(server.ask(&format!("GET /{} HTTP/1.1\r\n", "x".repeat(200_000)))), 431);
    assert_eq!(status(server.ask("nonsense\r\n\r\n")), 400);
    assert_eq!(status(server.ask("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")), 411);
    assert_eq!(status(server.ask("DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n")), 403);
}

#[test]
fn a_server_listens_on_this_machine_only() {
    for address in ["0.0.0.0", "::", "192.0.2.1"] {
        let output = program(&["serve", "--address", address]);
        assert_eq!(output.status.code(), Some(2), "{address}");
        assert!(text(&output.stderr).contains("127.0.0.1"), "{}", text(&output.stderr));
    }
}

/// What a page writes to standard output stands there alone.
#[test]
fn a_printed_page_stands_alone() {
    for arguments in [
        vec!["check", "bucketing", "corpus/dependent_gathers.graph", "--candidate", "reference"],
        vec!["simulate", "corpus/dependent_gathers.graph"],
        vec!["score", "pr158663", "--seeds", "1"],
        vec!["fuzz", "bucketing", "--cases", "5"],
    ] {
        let output = program(&[&arguments[..], &["--html", "-"]].concat());
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
        holds(&text(&output.stdout));
    }
    let output = program(&[
        "check",
        "bucketing",
        "corpus/dependent_gathers.graph",
        "--candidate",
        "reference",
        "--html",
        "-",
        "--format",
        "json",
    ]);
    assert_eq!(output.status.code(), Some(2));
}
