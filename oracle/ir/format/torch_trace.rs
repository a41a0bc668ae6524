//! TORCH_TRACE files: the records of one process.
//!
//! # The idea
//!
//! A record is a line, `V1122 20:08:47.934000 8363 torch/x.py:1861] {JSON}`, and maybe a payload: the lines that follow
//! and begin with a tab. The first key of the JSON says what it is. Lines are looked at once; payloads are copied only
//! when somebody asks for them. A line of another form is skipped, and so is a record whose JSON cannot be read: the rest
//! of a damaged file is still worth reading.
//!
//! Source: `torch/_logging/_internal.py` (`TorchLogsFormatter`, `trace_structured`) of PyTorch 2.15.

use serde_json::{Map, Value};

/// What a record is about: one compilation of one frame.
///
/// The backward graph, which is compiled later, has the ids of its forward graph.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct CompileId {
    /// Of compiled autograd, if it is one.
    pub autograd: Option<i64>,
    /// The frame.
    pub frame: Option<i64>,
    /// How often it was compiled before.
    pub compile: Option<i64>,
    /// How often this compilation was begun before.
    pub attempt: Option<i64>,
}

impl std::fmt::Display for CompileId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(autograd) = self.autograd {
            write!(f, "!{autograd}")?;
        }
        let Some(frame) = self.frame else {
            return if self.autograd.is_none() { f.write_str("-") } else { Ok(()) };
        };
        write!(f, "{}{frame}/", if self.autograd.is_some() { "/" } else { "" })?;
        match self.compile {
            Some(compile) => write!(f, "{compile}")?,
            None => f.write_str("?")?,
        }
        match self.attempt {
            Some(attempt) if attempt > 0 => write!(f, "_{attempt}"),
            _ => Ok(()),
        }
    }
}

/// A record.
#[derive(Clone, PartialEq, Debug)]
pub struct Record<'t> {
    /// Its line in the file, from 1.
    pub line: usize,
    /// Its first key: `aot_joint_graph`, `artifact`, `create_symbol`.
    pub kind: String,
    /// All keys.
    pub fields: Map<String, Value>,
    /// Its payload, as it stands in the file: each line with its tab.
    raw: Option<&'t str>,
}

impl<'t> Record<'t> {
    /// The name of an artifact or a dumped graph; else the kind.
    pub fn name(&self) -> &str {
        self.field("name").and_then(Value::as_str).unwrap_or(&self.kind)
    }

    /// What the first key says under `key`.
    pub fn field(&self, key: &str) -> Option<&Value> {
        self.fields.get(&self.kind)?.get(key)
    }

    /// The compilation that it belongs to.
    pub fn id(&self) -> CompileId {
        let id = |key: &str| self.fields.get(key).and_then(Value::as_i64);
        CompileId {
            autograd: id("compiled_autograd_id"),
            frame: id("frame_id"),
            compile: id("frame_compile_id"),
            attempt: id("attempt"),
        }
    }

    /// The rank that it says it is of.
    pub fn rank(&self) -> Option<u32> {
        self.fields.get("rank").and_then(Value::as_u64).and_then(|rank| u32::try_from(rank).ok())
    }

    /// The MD5 of its payload, as hexadecimal digits.
    pub fn digest(&self) -> Option<&str> {
        self.fields.get("has_payload").and_then(Value::as_str)
    }

    /// Whether it has a payload.
    pub fn has_payload(&self) -> bool {
        self.raw.is_some()
    }

    /// Its payload, without the tabs.
    pub fn payload(&self) -> Option<String> {
        let raw = self.raw?;
        let mut text = String::with_capacity(raw.len());
        for line in raw.split_inclusive('\n') {
            text.push_str(line.strip_prefix('\t').unwrap_or(line));
        }
        // The end of its last line is the record's.
        if text.ends_with('\n') {
            text.pop();
        }
        Some(text)
    }

    /// Whether the payload seems to be a printed graph.
    pub fn is_graph(&self) -> bool {
        let Some(raw) = self.raw else { return false };
        let first = raw.lines().next().unwrap_or("");
        self.kind != "dump_file" && first.starts_with("\tclass ") && first.ends_with("(torch.nn.Module):")
    }
}

/// The records of a file.
#[derive(Clone, Debug)]
pub struct Records<'t> {
    rest: &'t str,
    line: usize,
    /// Lines that begin like a record and are none.
    pub unreadable: Vec<usize>,
}

impl<'t> Records<'t> {
    /// The records of the text of a file.
    pub fn new(text: &'t str) -> Records<'t> {
        Records { rest: text, line: 0, unreadable: Vec::new() }
    }

    fn next_line(&mut self) -> Option<&'t str> {
        if self.rest.is_empty() {
            return None;
        }
        let (line, rest) = match memchr::memchr(b'\n', self.rest.as_bytes()) {
            Some(end) => (&self.rest[..end], &self.rest[end + 1..]),
            None => (self.rest, ""),
        };
        self.rest = rest;
        self.line += 1;
        Some(line)
    }

    /// The payload that comes next.
    fn payload(&mut self) -> &'t str {
        let from = self.rest;
        while self.rest.starts_with('\t') {
            self.next_line();
        }
        &from[..from.len() - self.rest.len()]
    }
}

impl<'t> Iterator for Records<'t> {
    type Item = Record<'t>;

    fn next(&mut self) -> Option<Record<'t>> {
        loop {
            let line = self.next_line()?;
            let Some(json) = head(line) else { continue };
            let at = self.line;
            let Ok(Value::Object(fields)) = serde_json::from_str(json) else {
                self.unreadable.push(at);
                continue;
            };
            let Some(kind) = first_key(json) else { continue };
            let raw = fields.contains_key("has_payload").then(|| self.payload());
            return Some(Record { line: at, kind, fields, raw });
        }
    }
}

/// The JSON of a line that is the head of a record: `V1122 20:08:47.934000 8363 path:line] {...}`.
fn head(line: &str) -> Option<&str> {
    let bytes = line.as_bytes();
    let is_head = bytes.len() > 6
        && matches!(bytes[0], b'V' | b'I' | b'W' | b'E' | b'C')
        && bytes[1..5].iter().all(u8::is_ascii_digit)
        && bytes[5] == b' ';
    let at = line.find("] {").filter(|_| is_head)?;
    Some(&line[at + 2..])
}

/// The first key of an object. The map of its fields is sorted.
fn first_key(json: &str) -> Option<String> {
    let mut keys = serde_json::Deserializer::from_str(json.get(1..)?).into_iter::<String>();
    keys.next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "V1122 20:08:47.934000 8363 torch/x.py:1861] {\"aot_joint_graph\": {}, \"rank\": 1, \"frame_id\": 0, \
        \"frame_compile_id\": 2, \"attempt\": 1, \"has_payload\": \"73f4\"}\n\tclass G(torch.nn.Module):\n\t\n\t    b\n\
        V1122 20:08:47.934000 8363 torch/x.py:1] {\"create_symbol\": {\"symbol\": \"s0\", \"val\": \"4\"}}\n\n\
        something else\nV1122 20:08:47.934000 8363 torch/x.py:1] {\"artifact\": {\"name\"\n\tlost\n\
        V1122 20:08:47.934000 8363 torch/x.py:1] {\"artifact\": {\"name\": \"before_a\"}, \"has_payload\": \"1\"}\n\tx";

    #[test]
    fn records_are_read_with_their_payloads() {
        let mut records = Records::new(FILE);
        let joint = records.next().unwrap();
        assert_eq!((joint.line, joint.name(), joint.rank()), (1, "aot_joint_graph", Some(1)));
        assert_eq!((joint.id().to_string(), joint.digest()), ("0/2_1".to_string(), Some("73f4")));
        assert_eq!(joint.payload().as_deref(), Some("class G(torch.nn.Module):\n\n    b"));
        assert!(joint.is_graph());
        let symbol = records.next().unwrap();
        assert_eq!((symbol.kind.as_str(), symbol.payload()), ("create_symbol", None));
        assert_eq!(symbol.field("val").and_then(Value::as_str), Some("4"));
        let artifact = records.next().unwrap();
        assert_eq!((artifact.line, artifact.name()), (10, "before_a"));
        assert_eq!(artifact.payload().as_deref(), Some("x"));
        assert_eq!(records.next(), None);
        assert_eq!(records.unreadable, [8]);
    }
}
