//! A digest of what something holds, so that two of one name are told apart and damage is seen.
//!
//! FNV-1a over 128 bits: the same on every machine and in every release. It guards against accidents, not against an
//! adversary.

use crate::format::json;
use crate::graph::Graph;
use serde::Serialize;
use std::io::{self, Write};

const START: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

struct Digest(u128);

impl Write for Digest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for &byte in bytes {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(PRIME);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The digest of what is written, 32 hexadecimal digits.
fn digest<E>(write: impl FnOnce(&mut Digest) -> Result<(), E>) -> Result<String, E> {
    let mut digest = Digest(START);
    write(&mut digest)?;
    Ok(format!("{:032x}", digest.0))
}

/// The digest of a graph, whatever its file is called and however it is compressed.
///
/// # Errors
/// The graph cannot be written as exchange JSON.
pub fn of_graph(graph: &Graph) -> io::Result<String> {
    digest(|digest| json::write(graph, digest))
}

/// The digest of a value, as it is written to JSON.
pub(super) fn of_value(value: &impl Serialize) -> serde_json::Result<String> {
    digest(|digest| serde_json::to_writer(digest, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_values() {
        let of = |text: &str| digest(|digest| digest.write_all(text.as_bytes())).unwrap();
        assert_eq!(of(""), "6c62272e07bb014262b821756295c58d");
        assert_eq!(of("a"), "d228cb696f1a8caf78912b704e4a8964");
    }
}
