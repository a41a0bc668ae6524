//! Parts of a text, counted before it is read: what a reader holds grows with them, and not with bytes alone.

use super::fx;
use crate::limits::Limit;

/// Refuses a text of a graph, of events or of process groups with more than `most` parts ([`Limit::Parts`]).
///
/// # Errors
/// What is to be said of such a text, without its name.
pub fn check(bytes: &[u8], most: u64) -> Result<(), String> {
    let line = if std::str::from_utf8(bytes).is_ok_and(fx::is_printed) { 16 } else { 4 };
    let weight = |&byte: &u8| match byte {
        b',' => 1,
        b'(' | b'[' | b'{' => 3,
        b'\n' => line,
        _ => 0,
    };
    match bytes.iter().map(weight).sum::<u64>() > most {
        true => Err(format!("holds more than {most} parts (--limit {}=N allows more)", Limit::Parts.name())),
        false => Ok(()),
    }
}
