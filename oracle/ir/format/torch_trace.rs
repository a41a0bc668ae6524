//! TORCH_TRACE files: the records of one process.
//!
//! # The idea
//!
//! A record is a line, `V1122 20:08:47.934000 8363 torch/x.py:1861] {JSON}`, and maybe a payload: the lines that follow
//! and begin with a tab. The first key of the JSON says what it is. Records are read one after the other, from a
//! stream, so that a file may be of any length; payloads are kept of records that somebody may ask for. A line of
//! another form is skipped, and so is a record whose JSON cannot be read: the rest of a damaged file is still worth
//! reading.
//!
//! Source: `torch/_logging/_internal.py` (`TorchLogsFormatter`, `trace_structured`) of PyTorch 2.15.

use super::lines::{Lines, append};
use serde_json::{Map, Value};
use std::io::{self, BufRead};

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
pub struct Record {
    /// Its line in the file, from 1.
    pub line: usize,
    /// Its first key: `aot_joint_graph`, `artifact`, `create_symbol`.
    pub kind: String,
    /// All keys.
    pub fields: Map<String, Value>,
    /// Its payload, without the tabs. Of records that are of no use to us it is passed over: `None`.
    pub payload: Option<String>,
    /// The lines of the file at which those of the payload stand, where they do not follow each other.
    pub lines: Vec<usize>,
}

/// Kinds whose payloads are passed over: most of a file, and nothing about graphs.
const PASSED_OVER: [&str; 4] = ["chromium_event", "dump_file", "inductor_output_code", "compilation_metrics"];

impl Record {
    /// The line of the file at which a line of the payload stands, both from 1.
    pub fn line_of(&self, line: usize) -> usize {
        let listed = line.checked_sub(1).and_then(|index| self.lines.get(index));
        listed.copied().unwrap_or(self.line + line)
    }

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

    /// Whether the payload seems to be a printed graph.
    pub fn is_graph(&self) -> bool {
        let Some(payload) = &self.payload else { return false };
        let first = payload.lines().next().unwrap_or("");
        first.starts_with("class ") && first.ends_with("(torch.nn.Module):")
    }
}

/// Records one after the other, whatever they are read from.
pub trait Source {
    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read on.
    fn next_record(&mut self) -> io::Result<Option<Record>>;

    /// The lines of records that could not be read so far: damaged ones, and those past a limit.
    fn unreadable(&self) -> &[usize];
}

/// The records of a file.
#[derive(Debug)]
pub struct Records<R> {
    lines: Lines<R>,
    unreadable: Vec<usize>,
}

impl<R: BufRead> Records<R> {
    /// The records of a file.
    pub fn new(input: R) -> Records<R> {
        Records { lines: Lines::new(input), unreadable: Vec::new() }
    }

    /// The records of what stands in a file behind this many lines.
    pub fn from_line(input: R, lines: usize) -> Records<R> {
        Records { lines: Lines::behind(input, lines), unreadable: Vec::new() }
    }

    /// The payload that comes next; an empty one where it is not `wanted`, `None` where it is longer than the limits.
    fn payload(&mut self, wanted: bool) -> io::Result<Option<String>> {
        let (mut bytes, mut fits) = (Vec::new(), true);
        loop {
            // Lines of no use are passed over uncopied.
            let is_read = wanted && fits;
            self.lines.skip(|line| !is_read && line.first() == Some(&b'\t'))?;
            let Some(line) = self.lines.next_line()? else { break };
            match line.bytes.strip_prefix(b"\t") {
                Some(text) if wanted && fits => fits = !line.is_cut && append(&mut bytes, text),
                Some(_) => {}
                None => {
                    self.lines.put_back(line);
                    break;
                }
            }
        }
        // The end of its last line is the record's.
        bytes.pop_if(|&mut byte| byte == b'\n');
        let text = || String::from_utf8(bytes).unwrap_or_else(|error| lossy(error.as_bytes()));
        Ok(fits.then(text))
    }
}

impl<R: BufRead> Source for Records<R> {
    fn next_record(&mut self) -> io::Result<Option<Record>> {
        loop {
            self.lines.skip(|line| head(line).is_none())?;
            let Some(line) = self.lines.next_line()? else { return Ok(None) };
            let Some(json) = head(&line.bytes) else { continue };
            let at = line.number;
            let (false, Ok(Value::Object(mut fields)), Some(kind)) =
                (line.is_cut, serde_json::from_slice(json), first_key(json))
            else {
                self.unreadable.push(at);
                continue;
            };
            if memchr::memchr(b'\\', json).is_some() {
                fields.values_mut().for_each(hold);
            }
            let wanted = !PASSED_OVER.contains(&kind.as_str());
            let payload = match fields.contains_key("has_payload") {
                true => match self.payload(wanted)? {
                    Some(payload) => Some(payload).filter(|_| wanted),
                    None => {
                        self.unreadable.push(at);
                        continue;
                    }
                },
                false => None,
            };
            return Ok(Some(Record { line: at, kind, fields, payload, lines: Vec::new() }));
        }
    }

    fn unreadable(&self) -> &[usize] {
        &self.unreadable
    }
}

/// Where the last record of a text begins: the records before it are complete. 0 if there is no second one.
pub fn last_head(text: &[u8]) -> usize {
    let mut end = text.len();
    while let Some(at) = memchr::memrchr(b'\n', &text[..end]) {
        if head(&text[at + 1..]).is_some() {
            return at + 1;
        }
        end = at;
    }
    0
}

/// Bytes as text. What is no UTF-8 is replaced, so that the MD5 of the text is another.
fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether a text, which may be cut off anywhere, is that of a TORCH_TRACE file: it has the head of a record.
pub fn is_trace(text: &[u8]) -> bool {
    text.split(|&byte| byte == b'\n').any(|line| head(line).is_some())
}

/// The JSON of a line that is the head of a record: `V1122 20:08:47.934000 8363 path:line] {...}`.
fn head(line: &[u8]) -> Option<&[u8]> {
    let is_head = line.len() > 6
        && matches!(line[0], b'V' | b'I' | b'W' | b'E' | b'C')
        && line[1..5].iter().all(u8::is_ascii_digit)
        && line[5] == b' ';
    if !is_head {
        return None;
    }
    // A text may have further lines.
    let line = &line[..memchr::memchr(b'\n', line).unwrap_or(line.len())];
    // The first bracket ends the place. Text logs have other brackets behind it.
    let at = memchr::memmem::find(line, b"] ").filter(|&at| line.get(at + 2) == Some(&b'{'))?;
    Some(&line[at + 2..])
}

/// Holds each string as names are held.
fn hold(value: &mut Value) {
    match value {
        Value::String(text) => *text = crate::words::held(text).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(hold),
        Value::Object(fields) => fields.values_mut().for_each(hold),
        _ => {}
    }
}

/// The first key of an object. The map of its fields is sorted.
fn first_key(json: &[u8]) -> Option<String> {
    serde_json::Deserializer::from_slice(json.get(1..)?).into_iter::<String>().next()?.ok()
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
        let mut records = Records::new(FILE.as_bytes());
        let mut next = || records.next_record().unwrap();
        let joint = next().unwrap();
        assert_eq!((joint.line, joint.name(), joint.rank()), (1, "aot_joint_graph", Some(1)));
        assert_eq!((joint.id().to_string(), joint.digest()), ("0/2_1".to_string(), Some("73f4")));
        assert_eq!(joint.payload.as_deref(), Some("class G(torch.nn.Module):\n\n    b"));
        assert!(joint.is_graph());
        let symbol = next().unwrap();
        assert_eq!((symbol.kind.as_str(), symbol.payload.as_deref()), ("create_symbol", None));
        assert_eq!(symbol.field("val").and_then(Value::as_str), Some("4"));
        let artifact = next().unwrap();
        assert_eq!((artifact.line, artifact.name()), (10, "before_a"));
        assert_eq!(artifact.payload.as_deref(), Some("x"));
        assert_eq!(next(), None);
        assert_eq!(records.unreadable(), [8]);
        let tail = last_head(FILE.as_bytes());
        assert!(FILE[tail..].starts_with("V1122") && FILE[tail..].contains("before_a"));
        let mut rest = Records::from_line(&FILE.as_bytes()[tail..], 9);
        assert_eq!(rest.next_record().unwrap().map(|record| record.line), Some(10));
        assert_eq!((last_head(b"V1122 20:08:4"), last_head(b"a\nb\n")), (0, 0));
    }
}
