//! What TORCH_LOGS makes PyTorch write to stderr: graphs among the lines of all processes.
//!
//! # The idea
//!
//! `TORCH_LOGS=aot_graphs,aot_joint_graph,post_grad_graphs` prints graphs. Each of their lines has a prefix,
//! `[rank1]:I1122 20:25:32.880000 18175 torch/x.py:1844] [0/0] [__aot_graphs] `, of which the rank stands only where
//! there is a process group, and the compilation only within one. Lines of one process that follow each other and have
//! the same prefix are one message, and a message that holds a graph is the same [`Record`] that TORCH_TRACE has of it.
//! The records of one process are read at a time; [`processes`] says which there are.
//!
//! Processes that share a pipe tear each other's lines, and nothing says how a message should end. So one in which a
//! line holds two prefixes, or between whose lines something without a prefix stands, is not a record but unreadable.
//!
//! Source: `torch/_logging/_internal.py` (`TorchLogsFormatter`) and `torch/fx/_utils.py` of PyTorch 2.15.
//!
//! # What it does not do
//!
//! The graph before the post-grad passes is not logged, nor are symbols, nor what came from a cache in more than words.
//! `TORCH_LOGS_FORMAT` takes the prefix away, and with it what tells messages apart.

use super::lines::{Line, Lines, append};
use super::torch_trace::{CompileId, Record, Source};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::io::{self, BufRead};

/// A process that wrote lines.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Process {
    /// Its rank, once it had one.
    pub rank: Option<u32>,
    /// Its number in the operating system.
    pub pid: u64,
}

/// Processes of one file. Each is read in a pass of its own.
const MOST_PROCESSES: usize = 1024;

/// The kind of records that come from here.
pub const KIND: &str = "torch_logs";

/// The processes whose graphs a file holds, in the order of their first graphs, and the ranks that wrote other lines
/// only.
///
/// # Errors
/// The file cannot be read, or holds lines of more than a thousand processes.
pub fn processes(input: impl BufRead) -> io::Result<(Vec<Process>, Vec<u32>)> {
    let (mut lines, mut found, mut ranks) = (Lines::new(input), Vec::new(), BTreeSet::new());
    loop {
        lines.skip(has_no_prefix)?;
        let Some(line) = lines.next_line()? else { break };
        let text = uncoloured(&line);
        let Some(prefix) = Prefix::of(&text) else { continue };
        if ranks.len() < MOST_PROCESSES {
            ranks.extend(prefix.process.rank);
        }
        if !begins_graph(prefix.message) {
            continue;
        }
        if !found.contains(&prefix.process) {
            found.push(prefix.process);
        }
        if found.len() > MOST_PROCESSES {
            return Err(io::Error::other(format!("holds graphs of more than {MOST_PROCESSES} processes")));
        }
    }
    ranks.retain(|&rank| found.iter().all(|process| process.rank != Some(rank)));
    Ok((found, ranks.into_iter().collect()))
}

/// Whether a line surely has no prefix, not even one in colour.
fn has_no_prefix(line: &[u8]) -> bool {
    memchr::memmem::find(line, b"__").is_none() && memchr::memchr(b'\x1b', line).is_none()
}

/// Whether a text, which may be cut off anywhere, has a line of such a log.
pub fn is_log(text: &[u8]) -> bool {
    let mut lines = text.split(|&byte| byte == b'\n').filter(|line| !has_no_prefix(line));
    lines.any(|line| {
        let line = Line { number: 0, bytes: line.to_vec(), is_cut: false };
        Prefix::of(&uncoloured(&line)).is_some()
    })
}

/// Whether a text has a line as `TORCH_LOGS_FORMAT=short` prints them: `INFO:torch._functorch.x.__aot_graphs:TRACED
/// GRAPH`.
pub fn is_short(text: &[u8]) -> bool {
    text.split(|&byte| byte == b'\n').any(|line| {
        let is_of_torch = [&b"DEBUG:torch."[..], b"INFO:torch."].iter().any(|start| line.starts_with(start));
        is_of_torch && line.trim_ascii_end().ends_with(b":TRACED GRAPH")
    })
}

/// The records of one process.
#[derive(Debug)]
pub struct Records<R> {
    lines: Lines<R>,
    process: Process,
    unreadable: Vec<usize>,
}

impl<R: BufRead> Records<R> {
    /// The records that a process wrote into a file.
    pub fn new(input: R, process: Process) -> Records<R> {
        Records { lines: Lines::new(input), process, unreadable: Vec::new() }
    }

    /// The message that a line begins: its lines, with where they stand.
    fn message(&mut self, first: &Prefix<'_>, at: usize) -> io::Result<Option<Message>> {
        let mut message = Message { name: String::new(), text: Vec::new(), lines: Vec::new() };
        let mut title = vec![first.message.to_string()];
        // Lines that may hold some of this one: they matter only if the message goes on behind them.
        let (mut strays, mut is_whole) = (false, true);
        while let Some(line) = self.lines.next_line()? {
            let text = uncoloured(&line);
            match Prefix::of(&text) {
                Some(prefix) if prefix.is_torn && text.contains(first.key) => is_whole = false,
                Some(prefix) if prefix.is_torn => strays = true,
                Some(prefix) if prefix.process != self.process => {}
                Some(prefix) if prefix.key != first.key || begins_graph(prefix.message) => {
                    self.lines.put_back(line);
                    break;
                }
                Some(prefix) => {
                    is_whole &= !strays && !line.is_cut && !text.contains(char::REPLACEMENT_CHARACTER);
                    let part = match (message.lines.is_empty(), class_of(prefix.message)) {
                        (true, None) => {
                            title.push(prefix.message.to_string());
                            continue;
                        }
                        (true, Some(class)) => class,
                        (false, _) => prefix.message,
                    };
                    message.lines.push(line.number);
                    is_whole = is_whole && append(&mut message.text, part.as_bytes());
                    is_whole = is_whole && append(&mut message.text, b"\n");
                }
                None => strays |= !text.trim().is_empty(),
            }
        }
        if !is_whole {
            self.unreadable.push(at);
            return Ok(None);
        }
        message.name = name_of(&title);
        Ok((!message.lines.is_empty()).then_some(message))
    }
}

impl<R: BufRead> Source for Records<R> {
    fn next_record(&mut self) -> io::Result<Option<Record>> {
        loop {
            self.lines.skip(has_no_prefix)?;
            let Some(line) = self.lines.next_line()? else { return Ok(None) };
            let text = uncoloured(&line);
            let Some(prefix) = Prefix::of(&text) else { continue };
            if prefix.process != self.process || prefix.is_torn || !begins_graph(prefix.message) {
                continue;
            }
            let Some(message) = self.message(&prefix, line.number)? else { continue };
            let id = id_of(prefix.id);
            let mut fields = Map::new();
            fields.insert(KIND.to_string(), json!({ "name": message.name }));
            let keys = ["compiled_autograd_id", "frame_id", "frame_compile_id", "attempt", "rank"];
            let rank = self.process.rank.map(i64::from);
            let values = [id.autograd, id.frame, id.compile, id.attempt, rank];
            let known = keys.into_iter().zip(values).filter_map(|(key, value)| Some((key, value?)));
            fields.extend(known.map(|(key, value)| (key.to_string(), Value::from(value))));
            let text = String::from_utf8_lossy(&message.text).into_owned();
            let payload = Some(text);
            let (kind, line) = (KIND.to_string(), line.number);
            return Ok(Some(Record { line, kind, fields, payload, lines: message.lines }));
        }
    }

    fn unreadable(&self) -> &[usize] {
        &self.unreadable
    }
}

/// A message that holds a graph.
struct Message {
    name: String,
    text: Vec<u8>,
    /// By line of the text its line in the file.
    lines: Vec<usize>,
}

/// A line, with what its prefix says.
struct Prefix<'l> {
    process: Process,
    /// What all lines of a message share: from the time to the name of the log.
    key: &'l str,
    /// The compilation, as in `0/1_2`; empty where there is none.
    id: &'l str,
    /// What stands behind the prefix.
    message: &'l str,
    /// Whether another prefix stands on the line.
    is_torn: bool,
}

impl<'l> Prefix<'l> {
    fn of(line: &'l str) -> Option<Prefix<'l>> {
        let name = line.find(" [__")?;
        let end = name + line[name..].find(']')? + 1;
        let start = stamp(&line[..name])?;
        // Launchers put prefixes of their own before it.
        let rank = line[..start].strip_suffix("]:").and_then(|before| before.rsplit_once("[rank"));
        let rank = rank.and_then(|(_, rank)| rank.parse().ok());
        let key = &line[start..end];
        let after_time = &line[start + STAMP..name];
        let (pid, place) = after_time.split_once(' ')?;
        let (path, id) = place.split_once(']')?;
        path.rsplit_once(':').filter(|(_, line)| line.bytes().all(|byte| byte.is_ascii_digit()))?;
        let id = id.trim().trim_start_matches('[').trim_end_matches(']');
        let message = line[end..].trim_end_matches(['\n', '\r']);
        let message = message.strip_prefix(' ').unwrap_or(message);
        let is_torn = stamp(place).is_some() || (message.contains(" [__") && stamp(message).is_some());
        Some(Prefix { process: Process { rank, pid: pid.parse().ok()? }, key, id, message, is_torn })
    }
}

/// The length of `I1122 20:25:32.880000 `.
const STAMP: usize = 22;

/// Where the first level with a time stands.
fn stamp(text: &str) -> Option<usize> {
    let is_one = |bytes: &[u8]| {
        let shape = b"L0000 00:00:00.000000 ";
        bytes.iter().zip(shape).all(|(byte, like)| match like {
            b'L' => matches!(byte, b'V' | b'I' | b'W' | b'E' | b'C'),
            b'0' => byte.is_ascii_digit(),
            like => byte == like,
        })
    };
    text.as_bytes().windows(STAMP).position(is_one)
}

/// Whether a message with this first line may hold a graph.
fn begins_graph(message: &str) -> bool {
    message == "TRACED GRAPH" || message.ends_with("graph (from cache)")
}

/// The class that a line begins, behind the name of a file.
fn class_of(line: &str) -> Option<&str> {
    let at = if line.starts_with("class ") { 0 } else { line.find(" class ")? + 1 };
    line.trim_end().ends_with("(torch.nn.Module):").then(|| &line[at..])
}

/// The name that TORCH_TRACE has for a graph, by the lines before it.
fn name_of(title: &[String]) -> String {
    let stated = title.iter().find_map(|line| line.trim().strip_prefix("===== ")?.strip_suffix(" ====="));
    let stated = stated.unwrap_or(title.first().map_or("", |line| line.as_str())).trim();
    let plain = stated.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end();
    match plain {
        "Joint graph" => "aot_joint_graph",
        "Forward graph" => "aot_forward_graph",
        "Backward graph" => "aot_backward_graph",
        "AFTER POST GRAD" => "inductor_post_grad_graph",
        "BEFORE PRE GRAD" => "before_pre_grad_graph",
        "Compiled autograd graph" => "compiled_autograd_graph",
        _ if stated.starts_with("__compiled_fn") => "dynamo_output_graph",
        _ => stated,
    }
    .to_string()
}

/// The compilation of `0/1_2`, or `!0/1/0` of compiled autograd.
fn id_of(text: &str) -> CompileId {
    let (autograd, text) = match text.strip_prefix('!') {
        Some(text) => {
            text.split_once('/').map_or((Some(text), ""), |(autograd, text)| (Some(autograd), text))
        }
        None => (None, text),
    };
    let (frame, text) = text.split_once('/').unwrap_or((text, ""));
    let (compile, attempt) = text.split_once('_').unwrap_or((text, ""));
    let number = |text: &str| text.parse().ok();
    CompileId {
        autograd: autograd.and_then(number),
        frame: number(frame),
        compile: number(compile),
        attempt: number(attempt),
    }
}

/// A line as text, without the colours of a terminal and the line end.
fn uncoloured(line: &Line) -> String {
    let text = String::from_utf8_lossy(&line.bytes);
    let mut parts = text.split('\u{1b}');
    let mut plain = parts.next().unwrap_or("").to_string();
    for part in parts {
        // `ESC [ 0 ; 31 m`
        let code = part
            .strip_prefix('[')
            .map(|code| code.trim_start_matches(|c: char| c == ';' || c.is_ascii_digit()));
        plain += code.map_or(part, |code| code.strip_prefix('m').unwrap_or(code));
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
        epoch 1\n\
        [rank0]:I1122 20:25:32.880000 7 torch/x.py:1] [0/1_2] [__aot_graphs] TRACED GRAPH\n\
        [rank0]:I1122 20:25:32.880000 7 torch/x.py:1] [0/1_2] [__aot_graphs]  ===== Forward graph 3 =====\n\
        [rank1]:V1122 20:25:32.880000 8 torch/x.py:2] [!1/0/0] [__post_grad_graphs] TRACED GRAPH\n\
        [rank0]:I1122 20:25:32.880000 7 torch/x.py:1] [0/1_2] [__aot_graphs]  <eval>.4 class G(torch.nn.Module):\n\
        [rank1]:V1122 20:25:32.880000 8 torch/x.py:2] [!1/0/0] [__post_grad_graphs]  ===== AFTER POST GRAD =====\n\
        [rank0]:I1122 20:25:32.880000 7 torch/x.py:1] [0/1_2] [__aot_graphs]     \u{1b}[31mpass\u{1b}[0m\n\
        [rank0]:I1122 20:25:32.880000 7 torch/x.py:1] [0/1_2] [__aot_graphs] \n\
        [rank1]:V1122 20:25:32.880000 8 torch/x.py:2] [!1/0/0] [__post_grad_graphs]  /a b.py class H(torch.nn.Module):\n\
        [rank0]:I1122 20:25:32.880000 7 torch/x.py:3] [0/1_2] [__aot_graphs] aot_config id: 3\n";

    fn records(text: &str, rank: Option<u32>, pid: u64) -> (Vec<Record>, Vec<usize>) {
        let mut records = Records::new(text.as_bytes(), Process { rank, pid });
        let all = std::iter::from_fn(|| records.next_record().unwrap()).collect();
        (all, records.unreadable().to_vec())
    }

    #[test]
    fn messages_of_processes_are_told_apart() {
        let both = [Process { rank: Some(0), pid: 7 }, Process { rank: Some(1), pid: 8 }];
        let third = "[rank2]:I1122 20:25:32.880000 9 torch/x.py:3] [0/0] [__aot_graphs] aot_config id: 3\n";
        assert_eq!(processes(format!("{third}{FILE}").as_bytes()).unwrap(), (both.to_vec(), vec![2]));
        let (all, unreadable) = records(FILE, Some(0), 7);
        let [forward] = &all[..] else { panic!("{all:?}") };
        assert_eq!(
            (forward.name(), forward.rank(), forward.id().to_string()),
            ("aot_forward_graph", Some(0), "0/1_2".into())
        );
        assert_eq!(forward.payload.as_deref(), Some("class G(torch.nn.Module):\n    pass\n\n"));
        assert_eq!((forward.line, forward.line_of(1), forward.line_of(2)), (2, 5, 7));
        assert!(forward.is_graph() && unreadable.is_empty());
        let (all, _) = records(FILE, Some(1), 8);
        assert_eq!((all[0].name(), all[0].id().to_string()), ("inductor_post_grad_graph", "!1/0/0".into()));
        assert_eq!(all[0].payload.as_deref(), Some("class H(torch.nn.Module):\n"));
        assert!(
            is_log(FILE.as_bytes()) && !is_log(b"I1122 something [__else] \n") && !is_short(FILE.as_bytes())
        );
        assert!(is_short(b"INFO:torch._functorch.x.__aot_graphs:TRACED GRAPH\n"));
    }

    #[test]
    fn torn_messages_are_unreadable() {
        let torn = FILE.replace(
            "    \u{1b}[31mpass\u{1b}[0m\n",
            "    pa[rank1]:V1122 20:25:32.880000 8 torch/x.py:2] [!1/0/0] [__post_grad_graphs] x\nss\n",
        );
        assert_eq!(records(&torn, Some(0), 7), (Vec::new(), vec![2]));
        let stray = FILE.replace("    \u{1b}[31mpass\u{1b}[0m\n", "    pas\nepoch 2\n");
        assert_eq!(records(&stray, Some(0), 7), (Vec::new(), vec![2]));
    }

    #[test]
    fn names_without_a_process_group_and_from_a_cache() {
        let text = "I1122 20:25:32.880000 7 torch/x.py:1] [__aot_graphs] Joint graph (from cache)\n\
            I1122 20:25:32.880000 7 torch/x.py:1] [__aot_graphs] \n\
            I1122 20:25:32.880000 7 torch/x.py:1] [__aot_graphs] class G(torch.nn.Module):\n";
        let (all, _) = records(text, None, 7);
        assert_eq!(
            (all[0].name(), all[0].rank(), all[0].id()),
            ("Joint graph (from cache)", None, CompileId::default())
        );
    }
}
