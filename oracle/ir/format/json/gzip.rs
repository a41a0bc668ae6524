//! Documents that are compressed with gzip.

use super::ReadError;
use flate2::bufread;
use flate2::read::MultiGzDecoder;
use std::io::{ErrorKind, Read};

/// The first bytes of gzip data.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Deflate cannot shrink data by more than this factor.
const HIGHEST_RATIO: usize = 1032;

/// The text in gzip data, of at most `most` bytes; `None` if this is not gzip data.
pub fn decompressed(bytes: &[u8], most: u64) -> Result<Option<Vec<u8>>, ReadError> {
    if !bytes.starts_with(&MAGIC) {
        return Ok(None);
    }
    let too_long = || ReadError::new(format_args!("holds more than {most} bytes when it is decompressed"));
    // The last four bytes of gzip data are the length of the text, if nobody tampered with them.
    let stated = bytes.last_chunk().map_or(0, |&length| u32::from_le_bytes(length) as usize);
    let stated = stated.min(bytes.len().saturating_mul(HIGHEST_RATIO));
    if stated as u64 > most {
        return Err(too_long());
    }
    let mut text = Vec::with_capacity(stated);
    match MultiGzDecoder::new(bytes).take(most.saturating_add(1)).read_to_end(&mut text) {
        Ok(_) if text.len() as u64 > most => Err(too_long()),
        Ok(_) => Ok(Some(text)),
        // One member was read, and no other begins behind it.
        Err(_) if ends_in_junk(bytes) => Err(ReadError::new("bad gzip data: bytes follow its end")),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            Err(ReadError::new("truncated gzip data: the file ends too early"))
        }
        Err(error) => Err(ReadError::new(format_args!("bad gzip data: {error}"))),
    }
}

/// Whether what follows the last whole member of gzip data does not begin another one.
fn ends_in_junk(mut bytes: &[u8]) -> bool {
    while bytes.starts_with(&MAGIC) {
        let mut member = bufread::GzDecoder::new(bytes);
        if std::io::copy(&mut member, &mut std::io::sink()).is_err() {
            return false;
        }
        bytes = member.into_inner();
    }
    !bytes.is_empty()
}
