//! Events as JSON lines, one object a line:
//!
//! ```text
//! {"event":"alloc","storage":"relu","bytes":64}
//! {"event":"read","storage":"x","range":[0,32]}
//! {"event":"launch","flight":"g","reads":[{"storage":"x"}],"writes":[{"storage":"g","range":[0,64]}]}
//! {"event":"wait","flight":"g"}
//! {"event":"free","storage":"x"}
//! {"event":"step","step":0}
//! {"event":"end"}
//! ```
//!
//! A range that is left out is the whole storage. The last line says that the file is whole. Empty lines are
//! skipped.

use super::event::{Event, Range, Touched};
use serde::{Deserialize, Serialize};

/// A line that is no event.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("event {event} (line {line}): {message}")]
pub struct EventLineError {
    /// Its number among the events, from 1.
    pub event: u64,
    /// The line, from 1.
    pub line: u64,
    /// What is wrong.
    pub message: String,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    Alloc {
        storage: String,
        bytes: i64,
    },
    Free {
        storage: String,
    },
    Read {
        storage: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        range: Option<(i64, i64)>,
    },
    Write {
        storage: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        range: Option<(i64, i64)>,
    },
    Launch {
        flight: String,
        #[serde(default)]
        reads: Vec<Part>,
        #[serde(default)]
        writes: Vec<Part>,
    },
    Wait {
        flight: String,
    },
    Step {
        step: u32,
    },
    End {},
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    storage: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    range: Option<(i64, i64)>,
}

fn touched(storage: String, range: Option<(i64, i64)>) -> Touched {
    Touched { storage, bytes: range.map(|(start, end)| Range { start, end }) }
}

fn part(touched: &Touched) -> Part {
    Part { storage: touched.storage.clone(), range: touched.bytes.map(|range| (range.start, range.end)) }
}

/// Reads the events of a file.
pub fn read_events(text: &[u8]) -> Result<Vec<Event>, EventLineError> {
    let mut events = Vec::new();
    let mut ended = false;
    let mut line = 0;
    let parts = |parts: Vec<Part>| parts.into_iter().map(|part| touched(part.storage, part.range)).collect();
    for bytes in text.split(|&byte| byte == b'\n') {
        line += 1;
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let error = |message| EventLineError { event: events.len() as u64 + 1, line, message };
        if ended {
            return Err(error("there is something after the end mark".to_string()));
        }
        let parsed = serde_json::from_slice(bytes).map_err(|why| {
            let cut = why.is_eof();
            error(if cut {
                "the line is cut off: the file is truncated".to_string()
            } else {
                unreadable(&why)
            })
        })?;
        events.push(match parsed {
            Line::Alloc { storage, bytes } => Event::Alloc { storage, bytes },
            Line::Free { storage } => Event::Free { storage },
            Line::Read { storage, range } => Event::Read(touched(storage, range)),
            Line::Write { storage, range } => Event::Write(touched(storage, range)),
            Line::Launch { flight, reads, writes } => {
                Event::Launch { flight, reads: parts(reads), writes: parts(writes) }
            }
            Line::Wait { flight } => Event::Wait { flight },
            Line::Step { step } => Event::Step { step },
            Line::End {} => {
                ended = true;
                continue;
            }
        });
    }
    if ended {
        return Ok(events);
    }
    let message = "the file ends without an end mark: it is truncated".to_string();
    Err(EventLineError { event: events.len() as u64 + 1, line, message })
}

/// What serde says, in one line and without its own place.
fn unreadable(why: &serde_json::Error) -> String {
    let text = why.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    let text = text.replace('\n', " ");
    if why.column() == 0 { text } else { format!("{text} (column {})", why.column()) }
}

/// The text of a file of events.
pub fn write_events<'e>(events: impl IntoIterator<Item = &'e Event>) -> String {
    let mut text = String::new();
    let parts = |all: &[Touched]| all.iter().map(part).collect::<Vec<Part>>();
    let lines = events.into_iter().map(|event| match event {
        Event::Alloc { storage, bytes } => Line::Alloc { storage: storage.clone(), bytes: *bytes },
        Event::Free { storage } => Line::Free { storage: storage.clone() },
        Event::Read(of) => Line::Read { storage: of.storage.clone(), range: part(of).range },
        Event::Write(of) => Line::Write { storage: of.storage.clone(), range: part(of).range },
        Event::Launch { flight, reads, writes } => {
            Line::Launch { flight: flight.clone(), reads: parts(reads), writes: parts(writes) }
        }
        Event::Wait { flight } => Line::Wait { flight: flight.clone() },
        Event::Step { step } => Line::Step { step: *step },
    });
    for line in lines.chain([Line::End {}]) {
        // Strings and numbers always have a JSON form.
        text.push_str(&serde_json::to_string(&line).unwrap_or_default());
        text.push('\n');
    }
    text
}
