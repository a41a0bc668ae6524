//! Documents in files, plain or compressed with gzip.

use super::{Document, ReadError, read, write_document};
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::Path;

/// The first bytes of gzip data.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Deflate cannot shrink data by more than this factor.
const HIGHEST_RATIO: usize = 1032;

/// The text in gzip data; `None` if this is not gzip data.
pub(super) fn decompressed(bytes: &[u8]) -> Result<Option<Vec<u8>>, ReadError> {
    if !bytes.starts_with(&MAGIC) {
        return Ok(None);
    }
    // The last four bytes of gzip data are the length of the text, if nobody tampered with them.
    let stated = bytes.last_chunk().map_or(0, |&length| u32::from_le_bytes(length) as usize);
    let mut text = Vec::with_capacity(stated.min(bytes.len().saturating_mul(HIGHEST_RATIO)));
    match MultiGzDecoder::new(bytes).read_to_end(&mut text) {
        Ok(_) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            Err(ReadError::new("truncated gzip data: the file ends too early"))
        }
        Err(error) => Err(ReadError::new(format_args!("bad gzip data: {error}"))),
    }
}

/// Reads a document from a file. The error names the file.
pub fn read_path(path: impl AsRef<Path>) -> Result<Document, ReadError> {
    let path = path.as_ref();
    let file = || path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| ReadError::new(error).in_file(file()))?;
    read(&bytes).map_err(|error| error.in_file(file()))
}

/// Writes a document to a file, compressed with gzip if the name ends in `.gz`. The same document always gives
/// the same bytes.
pub fn write_path(document: &Document, path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    let file = BufWriter::new(File::create(path)?);
    if path.extension().is_some_and(|extension| extension == "gz") {
        let mut packed = GzEncoder::new(file, flate2::Compression::default());
        write_document(document, &mut packed)?;
        packed.finish()?.flush()
    } else {
        let mut file = file;
        write_document(document, &mut file)?;
        file.flush()
    }
}
