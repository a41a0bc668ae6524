//! A candidate in another process, which speaks the protocol of docs/protocol.md.
//!
//! # The idea
//!
//! A [`Worker`] is a command and a pool of processes that run it. Whoever judges a case takes a process that is idle,
//! or starts one, sends the graph, and waits for the answer; so there are as many processes as threads that judge. What
//! a process does wrong becomes a [`Failure`] about the case at hand; the process is then ended with all its
//! children, and the next case finds another one.
//!
//! What the worker says in its `hello` narrows what it is asked for: passes, values of options, ranks, operators.
//!
//! # What it does not do
//!
//! It judges nothing, and it asks nothing twice.

mod answer;
mod bits;
mod claim;
pub mod conformance;
mod conversation;
mod descendants;
mod graph_text;
mod message;
mod process;
mod serve;

pub use message::PROTOCOL;
pub use process::Limits;
pub(crate) use serve::panic_message;
pub use serve::serve;

use super::{Answer, Candidate, Capabilities, Origin, Place, Refusal, Reproduce, Request};
use crate::candidates::refusals::not_implemented;
use crate::case::PassConfig;
use crate::family::Gives;
use crate::graph::{Graph, Op};
use crate::judge::Offer;
use crate::judge::candidate::SCRIPT;
use crate::rules::worker::{Class, Failure};
use crate::rules::{Code, PassKind};
use crate::semantics::ExecutionInputs;
use bits::Bits;
use conversation::{Conversation, shown};
use message::{Line, Message, Offered};
use process::{Process, Silence, ending};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Why a worker cannot be used: one line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("worker `{command}`: {why}")]
pub struct StartError {
    command: String,
    why: NoHello,
}

impl StartError {
    /// The last line that the worker wrote on standard error before it ended.
    pub fn last_words(&self) -> Option<&str> {
        self.why.last.as_deref()
    }
}

/// Why there is no hello, and the last words of the process.
#[derive(Clone, PartialEq, Eq, Debug)]
struct NoHello {
    why: String,
    last: Option<String>,
}

impl From<String> for NoHello {
    fn from(why: String) -> NoHello {
        NoHello { why, last: None }
    }
}

impl From<NoHello> for String {
    fn from(none: NoHello) -> String {
        none.to_string()
    }
}

impl fmt::Display for NoHello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)?;
        self.last.iter().try_for_each(|last| write!(f, "; its last words: {last}"))
    }
}

/// What stands before a function where others have a command.
const FUNCTION: &str = "--python ";

/// Where an implementation is of which a campaign says that it `runs` this command, with its limits.
pub fn origin(runs: &str) -> Origin {
    let command = runs.rsplit_once(" (").map_or(runs, |(command, _)| command);
    match command.strip_prefix(FUNCTION) {
        Some(function) => Origin::Function(function.to_string()),
        None => Origin::Command(command.to_string()),
    }
}

/// A candidate in other processes.
pub struct Worker {
    command: String,
    origin: Origin,
    limits: Limits,
    hello: Hello,
    name: String,
    offers: BTreeMap<PassKind, Offer>,
    idle: Mutex<Vec<Process>>,
    next: AtomicU64,
    load: Mutex<Load>,
}

/// What a worker says of itself.
#[derive(Clone, PartialEq, Debug)]
struct Hello {
    name: String,
    version: String,
    bakes_rank: bool,
    keeps_promises: bool,
    repro: bool,
    recycle_after: Option<u64>,
    passes: BTreeMap<String, Offered>,
}

impl Hello {
    /// The terms of each pass that is known here.
    fn offers(&self) -> BTreeMap<PassKind, Offer> {
        let known = self.passes.iter().filter_map(|(name, offered)| Some((PassKind::parse(name)?, offered)));
        known.map(|(pass, offered)| (pass, offered.terms())).collect()
    }
}

/// What all processes did together.
#[derive(Clone, Copy, Default, Debug)]
struct Load {
    requests: u64,
    starts: u64,
    /// From a request to its answer.
    waited: Duration,
    /// What the answers say was spent inside the implementation.
    inside: f64,
}

impl Worker {
    /// Starts `command`, a line for `sh`, and waits for its hello.
    pub fn start(command: &str, limits: Limits) -> Result<Worker, StartError> {
        Worker::of(Origin::Command(command.to_string()), command, limits)
    }

    /// The same of a command that serves this function of Python.
    pub fn of_function(function: &str, command: &str, limits: Limits) -> Result<Worker, StartError> {
        Worker::of(Origin::Function(function.to_string()), command, limits)
    }

    fn of(origin: Origin, command: &str, limits: Limits) -> Result<Worker, StartError> {
        let fails = |why| StartError { command: command.to_string(), why };
        let (process, hello) = greeted(command, &limits).map_err(fails)?;
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.+".contains(c) { c } else { '_' };
        let name = format!("{}-{}", hello.name, hello.version).chars().map(plain).collect();
        Ok(Worker {
            command: command.to_string(),
            origin,
            limits,
            offers: hello.offers(),
            hello,
            name,
            idle: Mutex::new(vec![process]),
            next: AtomicU64::new(1),
            load: Mutex::new(Load { starts: 1, ..Load::default() }),
        })
    }

    /// A process that waits for a request.
    fn process(&self) -> Result<Process, String> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match idle {
            Some(process) => Ok(process),
            None => {
                self.count(|load| load.starts += 1);
                greeted(&self.command, &self.limits)
                    .map(|(process, _)| process)
                    .map_err(|why| why.to_string())
            }
        }
    }

    /// Takes a process back, unless it has served for long enough.
    fn done(&self, mut process: Process) {
        process.served += 1;
        if self.hello.recycle_after.is_some_and(|most| process.served >= most) {
            say_bye(&mut process);
            process.ends_within(process::END);
            return;
        }
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(process);
    }

    fn count(&self, add: impl FnOnce(&mut Load)) {
        add(&mut self.load.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn offered(&self, pass: &str) -> Option<&Offered> {
        self.hello.passes.get(pass)
    }

    /// What the worker said that it does not take is not asked.
    fn takes(&self, graph: &Graph, pass: &PassConfig) -> Result<(), Refusal> {
        let Some(offered) = self.offered(&pass.name) else {
            return Err(not_implemented(format!("{} does not offer {}", self.name, pass.name)));
        };
        let ranks = graph.world.assume_mesh().and_then(|world| world.ranks).unwrap_or(1);
        if offered.max_ranks.is_some_and(|most| ranks > most) {
            return Err(Refusal::of(Code::NotTaken, format!("{} does not take {ranks} ranks", self.name)));
        }
        let foreign = offered.targets.as_ref().and_then(|targets| {
            let is_foreign = |target: &&str| !targets.iter().any(|known| known == target);
            let calls = graph.ids().filter(|&id| graph.node(id).op == Op::Call);
            calls.map(|id| graph.target(id)).find(is_foreign)
        });
        match foreign {
            Some(target) => {
                Err(Refusal::of(Code::NotTaken, format!("{} does not rebuild {target}", self.name)))
            }
            None => Ok(()),
        }
    }

    /// Sends a request and reads the answer of the type `wanted`.
    fn exchange<T>(
        &self,
        line: Line,
        graph: &Graph,
        wanted: &str,
        read: &dyn Fn(&mut Message) -> Result<T, String>,
    ) -> Result<T, Refusal> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let process = self.process().map_err(|why| {
            let title = "the worker cannot be started again".to_string();
            Refusal::failed(Failure { class: Class::Crash, title, facts: vec![why] })
        })?;
        let mut conversation = Conversation { id, graph, phase: None, limits: &self.limits };
        if let Some(failure) = conversation.unrequested(&process) {
            return Err(conversation.end(process, failure));
        }
        let sent = Instant::now();
        process.send(Line { id, ..line }.bytes(graph));
        let answer = loop {
            let line = match process.receive(sent + self.limits.request) {
                Ok(line) => line,
                Err(Silence::Stopped) => return Err(Refusal::of(Code::Stopped, "a stop was asked for")),
                Err(silence) => break Err(conversation.silence(silence)),
            };
            match conversation.hear(&line, wanted, read) {
                Ok(None) => {}
                Ok(Some(answer)) => break Ok(answer),
                Err(failure) => break Err(failure),
            }
        };
        let waited = sent.elapsed();
        let seconds = answer.as_ref().map_or(0.0, |answer| answer.seconds);
        self.count(|load| {
            load.requests += 1;
            load.waited += waited;
            load.inside += seconds;
        });
        match answer {
            Ok(answer) => {
                self.done(process);
                answer.said
            }
            Err(failure) => {
                let refusal = conversation.end(process, failure);
                Err(refusal)
            }
        }
    }
}

fn say_bye(process: &mut Process) {
    process.send(b"{\"type\":\"bye\"}\n".to_vec());
    process.close_input();
}

/// A process that has said hello.
fn greeted(command: &str, limits: &Limits) -> Result<(Process, Hello), NoHello> {
    let mut process =
        Process::start(command, limits).map_err(|error| format!("cannot be started: {error}"))?;
    process.send(message::hello());
    let deadline = Instant::now() + limits.start;
    let line = match process.receive(deadline) {
        Ok(line) => line,
        Err(silence) => {
            let (status, tail) = process.kill();
            let last = tail.lines().map(str::trim).rfind(|line| !line.is_empty());
            let last = last.map(String::from);
            let (why, last) = match (silence, status) {
                (Silence::Late, _) => (format!("no hello within {} s", limits.start.as_secs_f64()), last),
                (Silence::Ended, Some(status)) => (format!("{} before its hello", ending(status)), last),
                (Silence::Ended, None) => ("closes its output before its hello".to_string(), last),
                (Silence::TooLong, _) => {
                    (format!("its first line has more than {} bytes", limits.answer), None)
                }
                (Silence::Stopped, _) => ("a stop was asked for before its hello".to_string(), None),
            };
            return Err(NoHello { why, last });
        }
    };
    let text = String::from_utf8_lossy(&line);
    let message = Message::read(&text).ok().filter(|message| message.kind == "hello");
    let Some(message) = message else {
        return Err(NoHello::from(format!(
            "its first line is no hello, but {}: standard output is for messages, everything else belongs on standard \
             error",
            shown(&line)
        )));
    };
    match message.protocol.as_deref() {
        Some(PROTOCOL) => {}
        found => {
            let found = found.unwrap_or("no protocol");
            return Err(format!("it speaks {found}, this program {PROTOCOL}: update the older one").into());
        }
    }
    let missing = |key: &str| format!("its hello lacks the key {key}");
    let hello = Hello {
        name: message.name.ok_or_else(|| missing("name"))?,
        version: message.version.ok_or_else(|| missing("version"))?,
        bakes_rank: message.bakes_rank,
        keeps_promises: message.keeps_promises,
        repro: message.repro,
        recycle_after: message.recycle_after.filter(|&most| most > 0),
        passes: message.passes.ok_or_else(|| missing("passes"))?,
    };
    for (pass, offered) in &hello.passes {
        if let Some(key) = offered.unknown_promise(pass) {
            return Err(format!("its hello promises {key} of {pass}, which is no option of the judge").into());
        }
    }
    Ok((process, hello))
}

impl Drop for Worker {
    /// Asks all processes to end, and ends those that do not.
    fn drop(&mut self) {
        let idle = std::mem::take(self.idle.get_mut().unwrap_or_else(PoisonError::into_inner));
        let mut idle: Vec<Process> = idle.into_iter().collect();
        idle.iter_mut().for_each(say_bye);
        let patience = if self.limits.stop.is_requested() { process::PATIENCE } else { process::END };
        let deadline = Instant::now() + patience;
        for process in &mut idle {
            process.ends_within(deadline.saturating_duration_since(Instant::now()));
        }
    }
}

impl Candidate for Worker {
    fn name(&self) -> &str {
        &self.name
    }

    fn origin(&self) -> Origin {
        self.origin.clone()
    }

    fn capabilities(&self) -> Capabilities {
        let Limits { request, start, answer, memory, .. } = &self.limits;
        let memory = memory.map_or("any".to_string(), |bytes| bytes.to_string());
        let (request, start) = (request.as_secs_f64(), start.as_secs_f64());
        let limits = format!("{request} s, {start} s to start, {answer} bytes, {memory} memory");
        Capabilities {
            passes: self.offers.keys().copied().collect(),
            bakes_rank: self.hello.bakes_rank,
            keeps_promises: self.hello.keeps_promises,
            may_decline: true,
            command: Some(match &self.origin {
                Origin::Function(function) => format!("{FUNCTION}{function} ({limits})"),
                _ => format!("{} ({limits})", self.command),
            }),
        }
    }

    /// A graph is requested for each place; anything else once, since that takes long.
    fn run(&self, request: &Request) -> Result<Vec<Answer>, Refusal> {
        let &Request { graph, pass, inputs, .. } = request;
        self.takes(graph, pass)?;
        let gives = PassKind::named(&pass.name).map_err(not_implemented)?.row().gives;
        let of_rank = |inputs: &ExecutionInputs| {
            inputs.iter().map(|(name, tensor)| (name.clone(), Bits::of(tensor))).collect::<BTreeMap<_, _>>()
        };
        let inputs: Vec<BTreeMap<String, Bits>> = inputs.iter().map(of_rank).collect();
        let at = |place: Place| {
            let line = Line { inputs: &inputs, ..Line::run(0, pass, place.rank) };
            self.exchange(line, graph, "outcome", &|message| answer::read(message, gives))
        };
        match gives {
            Gives::Graph => request.at_each(at),
            _ => request.once(at),
        }
    }

    fn offer(&self, pass: PassKind) -> Option<&Offer> {
        self.offers.get(&pass)
    }

    fn reproduction(&self, finding: &Reproduce) -> Result<BTreeMap<String, String>, Refusal> {
        if !self.hello.repro {
            return Err(not_implemented(format!("{} makes no reproductions", self.name)));
        }
        let line = Line {
            kind: "repro",
            rule: Some(finding.rule),
            title: Some(finding.title),
            ..Line::run(0, finding.pass, finding.rank)
        };
        self.exchange(line, finding.graph, "repro", &|message| {
            let whole = message.python.take().ok_or_else(|| "the key python is missing".to_string())?;
            let files = message.files.take().unwrap_or_default();
            // Nothing is written outside of the folder.
            let is_plain = |name: &String| {
                let known = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
                !name.is_empty() && !name.starts_with('.') && name.chars().all(known)
            };
            match files.keys().find(|name| !is_plain(name)) {
                Some(name) => Err(format!("files: {name:?} is no plain file name")),
                None if files.contains_key(SCRIPT) => Ok(files),
                None => Ok(BTreeMap::from([(SCRIPT.to_string(), whole)])),
            }
        })
    }

    fn renew(&self) {
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        drop(idle);
    }

    fn notes(&self) -> Vec<String> {
        let load = *self.load.lock().unwrap_or_else(PoisonError::into_inner);
        let each = |seconds: f64| seconds * 1e3 / load.requests.max(1) as f64;
        let (waited, inside) = (load.waited.as_secs_f64(), load.inside);
        vec![format!(
            "{}: {} requests to {} processes; {:.2} ms each until the answer, {:.2} ms of them inside the implementation",
            self.name,
            load.requests,
            load.starts,
            each(waited),
            each(inside)
        )]
    }
}
