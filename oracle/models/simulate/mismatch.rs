//! Where two ranks of a communicator part.

use super::Operation;
use std::fmt;

/// The first place at which two ranks of a communicator part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// The process group.
    pub group: String,
    /// The two ranks.
    pub ranks: (u32, u32),
    /// The number of the launch on the communicator (of the message, for messages), from 0.
    pub index: usize,
    /// What the first rank launches there; `None` if nothing more.
    pub first: Option<Operation>,
    /// What the second rank launches there.
    pub second: Option<Operation>,
    /// Whether it is a message from the first rank to the second.
    pub is_message: bool,
    /// Of an all-to-all: the elements that the first rank sends to the second, and those that it expects from the
    /// first.
    pub parts: Option<(i64, i64)>,
    /// The two meet, but are not the same collective: the second rank launches the first one's at this place.
    pub elsewhere: Option<usize>,
    /// The communicator: an index.
    pub(super) channel: usize,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b) = self.ranks;
        let group = &self.group;
        if self.is_message {
            let n = self.index;
            return match (&self.first, &self.second) {
                (Some(send), None) => write!(
                    f,
                    "rank {a} sends {} to rank {b} on {group}, which has no receive for it: message {n} from {a} to {b} \
                     has no other end",
                    send.name
                ),
                (None, Some(recv)) => write!(
                    f,
                    "rank {b} receives {} from rank {a} on {group}, which has no send for it: message {n} from {a} to \
                     {b} has no other end",
                    recv.name
                ),
                (Some(send), Some(recv)) => {
                    write!(
                        f,
                        "message {n} from rank {a} to rank {b} on {group} is sent as {send} and received as {recv}"
                    )
                }
                (None, None) => Ok(()),
            };
        }
        if let (Some((sent, expected)), Some(first), Some(second)) = (self.parts, &self.first, &self.second) {
            return write!(
                f,
                "launch {} on {group}: rank {a} sends rank {b} {sent} elements in {}, however rank {b} expects {expected} from \
                 rank {a} in {}",
                self.index, first.name, second.name
            );
        }
        let describe = |rank: u32, operation: &Option<Operation>| match operation {
            Some(operation) => format!("rank {rank} launches {operation}"),
            None => format!("rank {rank} launches nothing more"),
        };
        let (first, second) = (describe(a, &self.first), describe(b, &self.second));
        write!(f, "launch {} on {group}: {first}, however {second}", self.index)?;
        match (self.elsewhere, &self.first) {
            (Some(elsewhere), Some(operation)) => write!(
                f,
                " there, and {} as launch {elsewhere}: the two meet, and their data are mixed up",
                operation.name
            ),
            _ => write!(f, ": the two are taken for one collective, or wait for ever"),
        }
    }
}
