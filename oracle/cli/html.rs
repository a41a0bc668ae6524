//! `--html FILE`: the same report as a page, in a file of its own.

use super::{CouldNotRun, is_stdout, print};
use clap::Args;
use std::io::{Read, Sink, Write};
use std::path::{Path, PathBuf};

#[derive(Args, Clone, Debug, Default)]
pub(super) struct Html {
    /// Also write the report as a page: one file of HTML, which needs nothing but itself (docs/pages.md); `-`: print
    /// that instead.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Html {
    /// Whether a page is wanted.
    pub(super) fn is_wanted(&self) -> bool {
        self.html.is_some()
    }

    /// Whether the page is printed in the place of the report.
    pub(super) fn is_printed(&self) -> bool {
        self.html.as_deref().is_some_and(is_stdout)
    }

    /// Writes the page where one is wanted.
    pub(super) fn write(
        &self,
        out: &mut dyn Write,
        page: impl FnOnce() -> String,
    ) -> Result<(), CouldNotRun> {
        match &self.html {
            None => Ok(()),
            Some(path) if is_stdout(path) => print(out, &page()),
            Some(path) => {
                // Once more: what lies there may have been written by this very run.
                refuse_other(path)?;
                crate::files::write(path, page())
                    .map_err(|error| CouldNotRun::new(format_args!("{}: {error}", path.display())))
            }
        }
    }

    /// Where the report goes: nowhere, if the page stands in its place.
    pub(super) fn beside<'o>(&self, out: &'o mut dyn Write, nowhere: &'o mut Sink) -> &'o mut dyn Write {
        if self.is_printed() { nowhere } else { out }
    }

    /// Prints the report, unless the page stands in its place.
    pub(super) fn print(&self, out: &mut dyn Write, text: &str) -> Result<(), CouldNotRun> {
        if self.is_printed() { Ok(()) } else { print(out, text) }
    }
}

/// Refuses to overwrite a file that is no page: a graph that was meant to be judged, for example.
pub(super) fn refuse_other(path: &Path) -> Result<(), CouldNotRun> {
    const BEGIN: &[u8] = b"<!doctype html>";
    let mut begin = Vec::new();
    // What cannot be read holds nothing that could be lost.
    let file = crate::files::open(path);
    let read = file.and_then(|file| file.take(BEGIN.len() as u64).read_to_end(&mut begin));
    match read {
        Ok(length) if length > 0 && !begin.eq_ignore_ascii_case(BEGIN) => Err(CouldNotRun::new(
            format_args!("{}: is there and is no page: --html would overwrite it", path.display()),
        )),
        _ => Ok(()),
    }
}
