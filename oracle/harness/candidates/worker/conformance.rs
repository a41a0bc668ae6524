//! The conformance kit: a worker is driven through right, wrong and hostile exchanges.
//!
//! # The idea
//!
//! A worker that passes can be left alone with a campaign: it answers what is right, declines what is wrong with the id
//! of the request, survives both, and ends when it should. One process serves a group of checks, as in a campaign; a
//! process that fails a check is ended, and the next check gets a new one.
//!
//! # What it does not do
//!
//! Whether results are right is for `fuzz` and `check`. It only asks whether they can be read.

use super::graph_text::append_graph;
use super::message::{Line, Message, Options, line, line_with_graph};
use super::process::{END, Limits, Process, Silence};
use super::{Hello, answer, greeted, shown};
use crate::case::{Case, PassConfig};
use crate::generate::Wanted;
use crate::rules::PassKind;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, Instant};

/// One check.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// What is checked.
    pub name: String,
    /// What was seen, or why it failed.
    pub result: Result<String, String>,
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.result {
            Ok(seen) if seen.is_empty() => write!(f, "ok      {}", self.name),
            Ok(seen) => write!(f, "ok      {}: {seen}", self.name),
            Err(why) => write!(f, "FAILED  {}: {why}", self.name),
        }
    }
}

/// Cases that are tried for a pass until one is not refused.
const TRIES: u64 = 20;
/// Requests that are written before an answer is read.
const BURST: u64 = 32;
/// Bytes of the long line.
const LONG: usize = 10 << 20;
/// Lists within lists.
const DEEP: usize = 100_000;

/// Runs all checks on the worker that `command` starts, and tells each as it is done.
pub fn test(command: &str, limits: &Limits, report: &mut dyn FnMut(&Check)) -> Vec<Check> {
    let mut kit = Kit { command, limits, process: None, next: 1, progress: 0, checks: Vec::new(), report };
    let hello = kit.hello();
    let Some(hello) = hello else { return kit.checks };
    let mut known = None;
    for (name, offered) in &hello.passes {
        // What is executed needs inputs, and is checked below.
        let Some(pass) = PassKind::parse(name).filter(|&pass| pass != PassKind::Execute) else { continue };
        let offers = [(pass, offered.terms())].into();
        let wanted = Wanted { pass: Some(pass), offers: vec![offers], small: true, ..Wanted::default() };
        let found = kit.run_pass(pass, &wanted);
        known = known.or(found);
    }
    if hello.passes.contains_key("execute") {
        kit.execute();
    }
    let Some(case) = known else {
        kit.check("some pass", |_| Err("no pass that is known here gave an outcome".into()));
        return kit.checks;
    };
    if hello.repro {
        kit.repro(&case);
    }
    kit.right(&case);
    kit.wrong(&case);
    kit.hostile(&case);
    kit.endings(&case);
    kit.checks
}

struct Kit<'a> {
    command: &'a str,
    limits: &'a Limits,
    process: Option<Process>,
    next: u64,
    progress: u64,
    checks: Vec<Check>,
    report: &'a mut dyn FnMut(&Check),
}

/// An answer, kept as a tree.
type Answer = Value;

impl Kit<'_> {
    /// Makes a check. A process that fails it is ended.
    fn check(&mut self, name: &str, run: impl FnOnce(&mut Self) -> Result<String, String>) -> bool {
        let result = run(self);
        if result.is_err() {
            self.process = None;
        }
        let check = Check { name: name.to_string(), result };
        (self.report)(&check);
        self.checks.push(check);
        self.checks.last().is_some_and(|check| check.result.is_ok())
    }

    fn hello(&mut self) -> Option<Hello> {
        let mut hello = None;
        self.check("hello", |kit| {
            let started = Instant::now();
            let (process, found) = greeted(kit.command, kit.limits)?;
            let passes: Vec<&str> = found.passes.keys().map(String::as_str).collect();
            let seen = format!(
                "{} {}, offers {}, after {:.1} s",
                found.name,
                found.version,
                passes.join(", "),
                started.elapsed().as_secs_f64()
            );
            kit.process = Some(process);
            hello = Some(found);
            Ok(seen)
        });
        hello
    }

    /// The process, started again where a check ended it.
    fn process(&mut self) -> Result<&mut Process, String> {
        let process = match self.process.take() {
            Some(process) => process,
            None => greeted(self.command, self.limits)?.0,
        };
        Ok(self.process.insert(process))
    }

    fn send(&mut self, bytes: Vec<u8>) -> Result<(), String> {
        self.process()?.send(bytes);
        Ok(())
    }

    /// The next answer; what may come before it is counted or passed over.
    fn answer(&mut self) -> Result<Answer, String> {
        let deadline = Instant::now() + self.limits.request;
        loop {
            let line = self.process()?.receive(deadline).map_err(|silence| match silence {
                Silence::Late => format!("no answer within {} s", self.limits.request.as_secs_f64()),
                Silence::Ended => "the process ended".to_string(),
                Silence::Stopped => "a stop was asked for".to_string(),
                Silence::TooLong => format!("an answer of more than {} bytes", self.limits.answer),
            })?;
            let text = std::str::from_utf8(&line).map_err(|_| "an answer that is not UTF-8".to_string())?;
            let answer = Message::read(text).map_err(|why| {
                format!("standard output has a line that is no message: {}; {why}", shown(&line))
            })?;
            match answer.kind.as_str() {
                "idle" => {}
                "progress" => {
                    self.progress += 1;
                    if answer.phase.is_none() {
                        return Err("progress without a phase".into());
                    }
                }
                _ => return serde_json::from_str(text).map_err(|error| error.to_string()),
            }
        }
    }

    fn id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Whether an answer is `refused` or `error` and carries `id`.
    fn declined(answer: &Answer, id: &Value) -> Result<String, String> {
        let kind = answer["type"].as_str().unwrap_or_default();
        if kind != "refused" && kind != "error" {
            return Err(format!("expected `refused` or `error`, the answer is {}", brief(answer)));
        }
        if answer.get("id") != Some(id) {
            return Err(format!("expected the id {id}, the answer is {}", brief(answer)));
        }
        let key = if kind == "refused" { "reason" } else { "message" };
        match answer[key].as_str() {
            Some(why) => Ok(format!("{kind}: {}", why.lines().next().unwrap_or_default())),
            None => Err(format!("`{kind}` without the key {key}: {}", brief(answer))),
        }
    }

    /// Whether the answer to a run can be read; `Ok(None)` where it is refused.
    fn outcome(answer: &Answer, pass: PassKind, id: u64) -> Result<Option<String>, String> {
        if answer["id"] != json!(id) {
            return Err(format!("expected the id {id}, the answer is {}", brief(answer)));
        }
        match answer["type"].as_str() {
            Some("refused") => Ok(None),
            Some("outcome") => {
                let text = answer.to_string();
                let mut message = Message::read(&text)?;
                Ok(Some(answer::brief(&answer::read(&mut message, pass.row().gives)?)))
            }
            _ => Err(format!("expected an outcome, the answer is {}", brief(answer))),
        }
    }

    fn request(&mut self, case: &Case) -> (u64, Vec<u8>) {
        let id = self.id();
        let pass = case.pass.clone().unwrap_or_else(|| PassConfig::new("bucketing"));
        (id, Line::run(id, &pass, 0).bytes(&case.graph))
    }

    fn run(&mut self, case: &Case) -> Result<Option<String>, String> {
        let (id, line) = self.request(case);
        self.send(line)?;
        let answer = self.answer()?;
        Self::outcome(&answer, pass_of(case), id)
    }

    /// Whether it still serves, and nothing is left over.
    fn serves(&mut self, case: &Case) -> Result<(), String> {
        match self.run(case) {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err("afterwards it refuses what it took before".into()),
            Err(why) => Err(format!("afterwards: {why}")),
        }
    }

    fn run_pass(&mut self, pass: PassKind, wanted: &Wanted) -> Option<Case> {
        let mut taken = None;
        self.check(&format!("run {}", pass.name()), |kit| {
            for refused in 0..TRIES {
                let case = wanted.case(refused);
                let before = kit.progress;
                if let Some(seen) = kit.run(&case)? {
                    taken = Some(case);
                    let progress = kit.progress - before;
                    return Ok(format!(
                        "{seen}; {refused} cases refused before; {progress} messages of progress"
                    ));
                }
            }
            Err(format!("{TRIES} small cases, and each is refused"))
        });
        taken
    }

    fn execute(&mut self) {
        self.check("run execute", |kit| {
            let text = "world 1 ranks\nx = input : f32[2]\ny = add(x, x)\noutput (y)\n";
            let case = crate::format::text::parse(text.as_bytes()).map_err(|error| error.to_string())?;
            let id = kit.id();
            let request = json!({
                "type": "run", "id": id, "pass": "execute", "options": {}, "rank": 0,
                "inputs": [{"x": {"dtype": "float32", "shape": [2], "bits": ["3f800000", "40000000"]}}],
            });
            kit.send(line_with_graph(&request, &case.graph))?;
            let answer = kit.answer()?;
            let wanted = json!([[{"dtype": "float32", "shape": [2], "bits": ["40000000", "40800000"]}]]);
            match answer["type"] == "outcome" && answer["id"] == json!(id) && answer["results"] == wanted {
                true => Ok("x + x".into()),
                false => Err(format!("expected {wanted} as results, the answer is {}", brief(&answer))),
            }
        });
    }

    fn repro(&mut self, case: &Case) {
        self.check("repro", |kit| {
            let id = kit.id();
            let pass = case.pass.clone().unwrap_or_default();
            let request = Line {
                kind: "repro",
                rule: Some("bucket/contracted-acyclic"),
                title: Some("a test of the worker"),
                ..Line::run(id, &pass, 0)
            };
            kit.send(request.bytes(&case.graph))?;
            let answer = kit.answer()?;
            match answer["python"].as_str() {
                Some(text) if answer["type"] == "repro" && answer["id"] == json!(id) => {
                    Ok(format!("{} lines", text.lines().count()))
                }
                _ => Self::declined(&answer, &json!(id)),
            }
        });
    }

    fn right(&mut self, case: &Case) {
        self.check("the same request twice", |kit| {
            kit.serves(case)?;
            kit.serves(case)?;
            Ok(String::new())
        });
        self.check("unknown keys are ignored", |kit| {
            let (id, mut bytes) = kit.request(case);
            bytes.truncate(bytes.len() - 2);
            bytes.extend_from_slice(b",\"color\":{\"deep\":[1,2]}}\n");
            kit.send(bytes)?;
            let answer = kit.answer()?;
            Self::outcome(&answer, pass_of(case), id)?.ok_or("it is refused")?;
            Ok(String::new())
        });
    }

    /// Sends something wrong, which must be declined, and asks something right afterwards.
    fn declines(&mut self, name: &str, case: &Case, id: Value, bytes: Vec<u8>) {
        self.check(name, |kit| {
            kit.send(bytes)?;
            let answer = kit.answer()?;
            let seen = Self::declined(&answer, &id)?;
            kit.serves(case)?;
            Ok(seen)
        });
    }

    fn wrong(&mut self, case: &Case) {
        let pass = case.pass.clone().unwrap_or_default();
        let options = json!(Options(Cow::Borrowed(&pass.options)));
        let graph = {
            let mut bytes = Vec::new();
            append_graph(&mut bytes, &case.graph);
            serde_json::from_slice::<Value>(&bytes).unwrap_or_default()
        };
        let with = |id: u64, change: &dyn Fn(&mut Value)| {
            let (name, options, graph) = (&pass.name, &options, &graph);
            let mut request = json!({
                "type": "run", "id": id, "pass": name, "options": options, "rank": 0, "graph": graph,
            });
            change(&mut request);
            line(&request)
        };
        let without = |key: &'static str| {
            move |request: &mut Value| {
                if let Some(object) = request.as_object_mut() {
                    object.remove(key);
                }
            }
        };
        let wrong: [(&str, &dyn Fn(&mut Value)); 9] = [
            ("an unknown type", &|request| request["type"] = json!("dance")),
            ("an unknown pass", &|request| request["pass"] = json!("dance")),
            ("no pass", &without("pass")),
            ("no graph", &without("graph")),
            ("a graph that is a number", &|request| request["graph"] = json!(7)),
            ("a graph of another version", &|request| request["graph"]["schema_version"] = json!("other/9")),
            ("nodes that are no list", &|request| request["graph"]["nodes"] = json!({"a": 1})),
            ("an argument that no node is", &|request| {
                if let Some(nodes) = request["graph"]["nodes"].as_array_mut()
                    && let Some(output) = nodes.last_mut()
                {
                    output["args"] = json!([[{"ref": "there is no such node"}]]);
                }
            }),
            ("options that are a number", &|request| request["options"] = json!(7)),
        ];
        for (name, change) in wrong {
            let id = self.id();
            self.declines(name, case, json!(id), with(id, change));
        }
        self.declines("a line that is not JSON", case, Value::Null, b"hello?\n".to_vec());
        self.declines("a list", case, Value::Null, b"[1,2]\n".to_vec());
        self.declines("half a message", case, Value::Null, b"{\"type\":\"run\",\"id\":\n".to_vec());
        self.declines("bytes that are not UTF-8", case, Value::Null, b"\xff\xfe{}\n".to_vec());
    }

    fn hostile(&mut self, case: &Case) {
        self.check("a line of 10 MiB", |kit| {
            let (id, mut bytes) = kit.request(case);
            bytes.truncate(bytes.len() - 2);
            bytes.extend_from_slice(b",\"padding\":\"");
            bytes.resize(bytes.len() + LONG, b'x');
            bytes.extend_from_slice(b"\"}\n");
            kit.send(bytes)?;
            let answer = kit.answer()?;
            Self::outcome(&answer, pass_of(case), id)?.ok_or("it is refused")?;
            Ok(String::new())
        });
        self.check("lists within lists", |kit| {
            let id = kit.id();
            let mut bytes =
                format!("{{\"type\":\"run\",\"id\":{id},\"pass\":\"bucketing\",\"graph\":").into_bytes();
            bytes.resize(bytes.len() + DEEP, b'[');
            bytes.resize(bytes.len() + DEEP, b']');
            bytes.extend_from_slice(b"}\n");
            kit.send(bytes)?;
            let answer = kit.answer()?;
            let id = if answer.get("id") == Some(&Value::Null) { Value::Null } else { json!(id) };
            let seen = Self::declined(&answer, &id)?;
            kit.serves(case)?;
            Ok(seen)
        });
        self.check("many requests at once", |kit| {
            let mut ids = Vec::new();
            for _ in 0..BURST {
                let (id, line) = kit.request(case);
                ids.push(id);
                kit.send(line)?;
            }
            for id in ids {
                let answer = kit.answer()?;
                Self::outcome(&answer, pass_of(case), id)?.ok_or("it refuses what it took before")?;
            }
            Ok(format!("{BURST} answers in order"))
        });
        self.check("nothing is said unrequested", |kit| {
            std::thread::sleep(Duration::from_millis(200));
            while let Some(line) = kit.process()?.waiting() {
                let line = line.map_err(|_| "the process ended")?;
                let message = Message::read(std::str::from_utf8(&line).unwrap_or_default());
                if !message.is_ok_and(|message| message.kind == "idle") {
                    return Err(shown(&line));
                }
            }
            Ok(String::new())
        });
    }

    /// Each with a process of its own, which must end by itself.
    fn endings(&mut self, case: &Case) {
        let (_, request) = self.request(case);
        let half = request[..request.len() / 2].to_vec();
        for (name, last) in [
            ("bye", b"{\"type\":\"bye\"}\n".to_vec()),
            ("the input ends", Vec::new()),
            ("the input ends in the middle of a line", half),
        ] {
            self.check(name, |kit| {
                let process = kit.process()?;
                process.send(last);
                // After bye the input stays open: it is the message that ends the worker.
                if name != "bye" {
                    process.close_input();
                }
                let started = Instant::now();
                let ended = process.ends_within(END);
                kit.process = None;
                match ended {
                    true => Ok(format!("it ends after {:.1} s", started.elapsed().as_secs_f64())),
                    false => Err(format!("it is still there after {} s", END.as_secs())),
                }
            });
        }
    }
}

fn pass_of(case: &Case) -> PassKind {
    case.pass.as_ref().and_then(|pass| PassKind::parse(&pass.name)).unwrap_or(PassKind::Bucketing)
}

/// The beginning of an answer.
fn brief(answer: &Answer) -> String {
    shown(answer.to_string().as_bytes())
}
