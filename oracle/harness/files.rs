//! Files: the one place that opens them (tests/floors.rs), and documents in them.
//!
//! # Reading
//!
//! Only regular files are read: a pipe or a device may never end, and opening a pipe waits for its writer.
//!
//! # Writing
//!
//! A file is written beside its place, under another name, and moved there as a whole. A full disk leaves what was
//! there before, and half of nothing. Where a user names the file, a symbolic link to an existing file is followed, and
//! a device or a pipe is written to as it is. Where the program names it, in a folder that the user gave, a link is
//! replaced and never followed, so nothing is written outside of the folder.

use crate::format::json::{Document, ReadError, read_within, write_document};
use crate::limits::Limit;
use flate2::write::GzEncoder;
use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads a document from a file. The error names the file.
pub fn read_path(path: impl AsRef<Path>) -> Result<Document, ReadError> {
    let path = path.as_ref();
    let file = || path.display().to_string();
    let most = Limit::Text.standard();
    let bytes = read_bytes(path, most).map_err(|error| ReadError::new(error).in_file(file()))?;
    read_within(&bytes, most).map_err(|error| error.in_file(file()))
}

/// Opens a regular file for reading.
///
/// # Errors
/// Where the file cannot be opened, or is a folder, a pipe or a device.
pub fn open(path: &Path) -> io::Result<File> {
    // Opening some devices has effects.
    refuse_special(&std::fs::metadata(path)?)?;
    let file = options().read(true).open(path)?;
    // Another file may have taken its place meanwhile.
    refuse_special(&file.metadata()?)?;
    Ok(file)
}

/// The bytes of a regular file of at most `most` bytes.
///
/// # Errors
/// Where the file cannot be read, is longer, or is no regular file.
pub fn read_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let length = file.metadata()?.len();
    let too_long = || io::Error::other(format!("holds more than {most} bytes"));
    if length > most {
        return Err(too_long());
    }
    let mut bytes = Vec::with_capacity(length as usize);
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_long()) } else { Ok(bytes) }
}

/// Whether a file holds these bytes and nothing else.
pub fn holds(path: &Path, bytes: impl AsRef<[u8]>) -> bool {
    let bytes = bytes.as_ref();
    read_bytes(path, bytes.len() as u64).is_ok_and(|found| found == bytes)
}

/// Opens a file of the program's own for reading and appending; it is created where it is absent, and a link is not
/// followed.
pub fn append(path: &Path) -> io::Result<File> {
    match std::fs::symlink_metadata(path) {
        Ok(about) => refuse_special(&about)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits() as i32;
    let file = options().create(true).read(true).append(true).custom_flags(flags).open(path)?;
    refuse_special(&file.metadata()?)?;
    Ok(file)
}

/// Writes a file that the user named.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut draft = Draft::new(path)?;
    draft.write_all(bytes.as_ref())?;
    draft.finish()
}

/// Writes a file that the program names, in a folder that the user gave: a link in its place is not followed.
pub fn write_inside(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let mut draft = Draft::inside(folder, name)?;
    draft.write_all(bytes.as_ref())?;
    draft.finish()
}

/// Makes a folder inside one that the user gave; a link in its place is refused.
pub fn folder_inside(folder: &Path, name: &str) -> io::Result<PathBuf> {
    let path = folder.join(name);
    match std::fs::create_dir(&path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        Err(_) if !std::fs::symlink_metadata(&path)?.is_dir() => {
            Err(io::Error::new(ErrorKind::NotADirectory, format!("{name:?} is not a folder")))
        }
        _ => Ok(path),
    }
}

/// Writes a document to a file that the user named, compressed with gzip if the name ends in `.gz`. The same document
/// always gives the same bytes.
pub fn write_path(document: &Document, path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    write_draft(document, Draft::new(path)?, path)
}

/// Writes a document to a file that the program names, as [`write_inside`] does.
pub fn write_path_inside(document: &Document, folder: &Path, name: &str) -> io::Result<()> {
    write_draft(document, Draft::inside(folder, name)?, Path::new(name))
}

fn write_draft(document: &Document, mut draft: Draft, name: &Path) -> io::Result<()> {
    if name.extension().is_some_and(|extension| extension == "gz") {
        let mut packed = GzEncoder::new(&mut draft, flate2::Compression::default());
        write_document(document, &mut packed)?;
        packed.finish()?;
    } else {
        write_document(document, &mut draft)?;
    }
    draft.finish()
}

/// A file that is being written. It takes its place when it is finished; one that is not finished is removed.
struct Draft {
    to: BufWriter<File>,
    /// Where it is written, and where it belongs; `None` of a device or a pipe, which is written to as it is.
    places: Option<(PathBuf, PathBuf)>,
}

impl Draft {
    /// A draft of a file that the user named.
    fn new(path: &Path) -> io::Result<Draft> {
        let is_link = std::fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink());
        match std::fs::metadata(path) {
            Ok(about) if !about.is_file() => {
                // This fails for a folder, and for a pipe without a reader.
                let file = options().write(true).open(path)?;
                rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
                Ok(Draft { to: BufWriter::new(file), places: None })
            }
            Ok(about) if is_link => Draft::beside(path.canonicalize()?, Some(about)),
            Ok(about) => Draft::beside(path.to_path_buf(), Some(about)),
            Err(_) if is_link => Err(io::Error::other("is a link to a file that is not there")),
            Err(_) => Draft::beside(path.to_path_buf(), None),
        }
    }

    /// A draft of a file that the program names in a folder.
    fn inside(folder: &Path, name: &str) -> io::Result<Draft> {
        Draft::beside(folder.join(name), None)
    }

    fn beside(target: PathBuf, before: Option<Metadata>) -> io::Result<Draft> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file_and_place = loop {
            let number = COUNT.fetch_add(1, Ordering::Relaxed);
            let place = folder.join(format!(".graph-oracle-{}-{number}.tmp", std::process::id()));
            match options().write(true).create_new(true).open(&place) {
                // Of a process with the same number that was killed.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                file => break file.map(|file| (file, place)),
            }
        };
        let (file, place) = file_and_place?;
        let draft = Draft { to: BufWriter::new(file), places: Some((place, target)) };
        if let Some(before) = before {
            draft.to.get_ref().set_permissions(before.permissions())?;
        }
        Ok(draft)
    }

    /// Puts the file in its place.
    fn finish(mut self) -> io::Result<()> {
        self.to.flush()?;
        if let Some((draft, target)) = &self.places {
            std::fs::rename(draft, target)?;
            self.places = None;
        }
        Ok(())
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some((draft, _)) = &self.places {
            let _ = std::fs::remove_file(draft);
        }
    }
}

/// Options of a file whose opening waits for nobody.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(OFlags::NONBLOCK.bits() as i32);
    options
}

fn refuse_special(about: &Metadata) -> io::Result<()> {
    match (about.is_dir(), about.is_file()) {
        (true, _) => Err(io::Error::new(ErrorKind::IsADirectory, "is a directory")),
        (_, true) => Ok(()),
        _ => Err(io::Error::other("is no regular file")),
    }
}
