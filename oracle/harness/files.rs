//! Documents in files, plain or compressed with gzip.

use crate::format::json::{Document, ReadError, read_within, write_document};
use crate::limits::Limit;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::Path;

/// Reads a document from a file. The error names the file.
pub fn read_path(path: impl AsRef<Path>) -> Result<Document, ReadError> {
    let path = path.as_ref();
    let file = || path.display().to_string();
    let most = Limit::Text.standard();
    let bytes = read_bytes(path, most).map_err(|error| ReadError::new(error).in_file(file()))?;
    read_within(&bytes, most).map_err(|error| error.in_file(file()))
}

/// The bytes of a regular file of at most `most` bytes.
///
/// # Errors
/// Where the file cannot be read, is longer, or is a pipe or a device, which may never end.
pub fn read_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Whoever opens a pipe waits for a writer, so this is asked first.
    let about = std::fs::metadata(path)?;
    if about.is_dir() {
        return Err(io::Error::new(ErrorKind::IsADirectory, "is a directory"));
    }
    if !about.is_file() {
        return Err(io::Error::other("is no regular file"));
    }
    let too_long = || io::Error::other(format!("holds more than {most} bytes"));
    if about.len() > most {
        return Err(too_long());
    }
    let mut bytes = Vec::with_capacity(about.len() as usize);
    File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_long()) } else { Ok(bytes) }
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
