//! One request and what is heard after it, until the answer or a failure.
//!
//! What becomes of each line is the table of docs/protocol.md.

use super::graph_text::optional_graph;
use super::message::Message;
use super::process::{Limits, Process, Silence, ending};
use crate::candidates::Refusal;
use crate::graph::Graph;
use crate::rules::Reason;
use crate::rules::worker::{Class, Failure, blanked};

/// Lines of standard error or of a traceback that a finding tells.
const SHOWN: usize = 30;

/// An answer: what it says, and the seconds that the implementation took.
pub(super) struct Answer<T> {
    pub said: Result<T, Refusal>,
    pub seconds: f64,
}

/// One request and what is heard after it.
pub(super) struct Conversation<'a> {
    /// The id of the request.
    pub id: u64,
    /// The graph that it is about.
    pub graph: &'a Graph,
    /// What the worker is at, as far as it told.
    pub phase: Option<String>,
    /// The limits of the process.
    pub limits: &'a Limits,
}

impl Conversation<'_> {
    /// A line from the worker: `None` where the answer is still to come.
    pub fn hear<T>(
        &mut self,
        line: &[u8],
        wanted: &str,
        read: &dyn Fn(&mut Message) -> Result<T, String>,
    ) -> Result<Option<Answer<T>>, Failure> {
        let text = std::str::from_utf8(line).map_err(|_| self.garbage(line, "it is not UTF-8"))?;
        let mut message = Message::read(text).map_err(|why| self.garbage(line, &why))?;
        let kind = std::mem::take(&mut message.kind);
        // A request that was not understood has no id.
        let is_ours = message.number() == Some(self.id) || (kind == "error" && message.id_text() == "null");
        let said = match kind.as_str() {
            "idle" => return Ok(None),
            "progress" | "refused" | "error" if !is_ours => return Err(self.wrong_id(message.id_text())),
            answer if answer == wanted && !is_ours => return Err(self.wrong_id(message.id_text())),
            "progress" => {
                self.phase = message.phase;
                return Ok(None);
            }
            "refused" => Err(self.refusal(&message, line)?),
            "error" => Err(Refusal {
                left_behind: self.left_behind(&message, line)?,
                ..Refusal::failed(self.error(&message))
            }),
            answer if answer == wanted => Ok(read(&mut message).map_err(|why| self.unreadable(line, &why))?),
            other => return Err(self.garbage(line, &format!("its type is {other:?}"))),
        };
        Ok(Some(Answer { said, seconds: message.seconds.unwrap_or(0.0) }))
    }

    fn refusal(&self, message: &Message, line: &[u8]) -> Result<Refusal, Failure> {
        let left_behind = self.left_behind(message, line)?;
        let reason = message.reason.as_deref().unwrap_or("no reason is given");
        let reason = Reason::of_worker(message.code.as_deref(), reason);
        Ok(Refusal { reason, left_behind, failure: None })
    }

    fn left_behind(&self, message: &Message, line: &[u8]) -> Result<Option<Box<Graph>>, Failure> {
        let left = optional_graph("left_behind", message.left_behind);
        Ok(left.map_err(|why| self.unreadable(line, &why))?.map(Box::new))
    }

    fn error(&self, message: &Message) -> Failure {
        let name = message.error.as_deref().unwrap_or("an error without a name");
        let what = message.message.as_deref().unwrap_or_default();
        let first = blanked(what, self.graph);
        let title = if first.is_empty() { name.to_string() } else { format!("{name}: {first}") };
        let mut facts: Vec<String> = last_lines(what);
        facts.extend(last_lines(message.traceback.as_deref().unwrap_or_default()));
        Failure { class: Class::Error, title, facts }
    }

    /// What the process said although nothing was asked.
    pub fn unrequested(&self, process: &Process) -> Option<Failure> {
        loop {
            let fail = |class, title: &str, facts| Some(Failure { class, title: title.into(), facts });
            match process.waiting()? {
                Err(silence) => {
                    let facts = vec!["this was before it was asked about the case".to_string()];
                    return Some(Failure { facts, ..self.silence(silence) });
                }
                Ok(line) => {
                    let text = String::from_utf8_lossy(&line);
                    match Message::read(&text) {
                        Ok(message) if message.kind == "idle" => {}
                        Ok(message) if message.id.is_some() => {
                            return fail(Class::WrongId, "a second answer", vec![shown(&line)]);
                        }
                        Ok(_) => return Some(self.garbage(&line, "nothing was asked")),
                        Err(why) => return Some(self.garbage(&line, &why)),
                    }
                }
            }
        }
    }

    pub fn silence(&self, silence: Silence) -> Failure {
        let (class, title) = match silence {
            Silence::Late => {
                let seconds = self.limits.request.as_secs_f64();
                (Class::Hang, format!("no answer within {seconds} s"))
            }
            Silence::Ended => (Class::Crash, "the process ends".to_string()),
            Silence::Stopped => (Class::Hang, "no answer when a stop was asked for".to_string()),
            Silence::TooLong => {
                (Class::Oversized, format!("a line of more than {} bytes", self.limits.answer))
            }
        };
        let title = match self.phase.as_deref() {
            Some(phase) => format!("{title}, in phase {}", blanked(phase, self.graph)),
            None => title,
        };
        Failure { class, title, facts: Vec::new() }
    }

    fn garbage(&self, line: &[u8], why: &str) -> Failure {
        let facts = vec![format!("the line: {}", shown(line)), why.to_string()];
        Failure { class: Class::Garbage, title: "a line that is no message".into(), facts }
    }

    fn unreadable(&self, line: &[u8], why: &str) -> Failure {
        let title = format!("an answer that cannot be read: {}", blanked(why, self.graph));
        let facts = vec![why.to_string(), format!("the line: {}", shown(line))];
        Failure { class: Class::Garbage, title, facts }
    }

    fn wrong_id(&self, id: &str) -> Failure {
        let facts = vec![format!("asked with id {}, answered with id {id}", self.id)];
        Failure { class: Class::WrongId, title: "an answer with another id".into(), facts }
    }

    /// Ends a process that failed; how it ended and what it said last become part of the failure.
    pub fn end(&self, mut process: Process, mut failure: Failure) -> Refusal {
        let (status, tail) = process.kill();
        if let (Class::Crash, Some(status)) = (failure.class, status) {
            failure.title = failure.title.replacen("ends", &ending(status), 1);
        }
        failure.facts.extend(last_lines(&tail).into_iter().map(|line| format!("standard error: {line}")));
        Refusal::failed(failure)
    }
}

/// The last lines of a text that are not empty.
fn last_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(SHOWN)..].iter().map(|line| line.to_string()).collect()
}

/// The beginning of a line.
pub(super) fn shown(line: &[u8]) -> String {
    const MOST: usize = 200;
    let text = String::from_utf8_lossy(&line[..line.len().min(MOST)]);
    let more = if line.len() > MOST { format!("... ({} bytes)", line.len()) } else { String::new() };
    format!("{:?}{more}", text.trim_end())
}
