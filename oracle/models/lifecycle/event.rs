//! What an executor tells.

use std::fmt;

/// Bytes of a storage: from `start` to before `end`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Range {
    /// The first byte.
    pub start: i64,
    /// One past the last byte.
    pub end: i64,
}

impl Range {
    /// Whether two ranges share a byte.
    pub fn meets(self, other: Range) -> bool {
        self.start.max(other.start) < self.end.min(other.end)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.start, self.end)
    }
}

/// A part of a storage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Touched {
    /// The storage's name.
    pub storage: String,
    /// Which bytes; `None`: all of them, or it is not known.
    pub bytes: Option<Range>,
}

/// Something that happens to memory. Storages are told apart by names that the executor gives, each to one
/// storage of a run at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A storage is there from now on.
    Alloc {
        /// Its name.
        storage: String,
        /// Its size.
        bytes: i64,
    },
    /// A storage is there no more.
    Free {
        /// Its name.
        storage: String,
    },
    /// Bytes are read.
    Read(Touched),
    /// Bytes are written.
    Write(Touched),
    /// A collective begins to read and write; it goes on until its wait.
    Launch {
        /// Its name.
        flight: String,
        /// What it reads.
        reads: Vec<Touched>,
        /// What it writes.
        writes: Vec<Touched>,
    },
    /// A collective is done.
    Wait {
        /// Its name.
        flight: String,
    },
    /// A step ends.
    Step {
        /// Its number, from 0.
        step: u32,
    },
}
