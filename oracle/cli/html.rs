//! `--html FILE`: the same report as a page, in a file of its own.

use super::{CouldNotRun, is_stdout, print};
use clap::Args;
use std::io::{Sink, Write};
use std::path::PathBuf;

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
            Some(path) => std::fs::write(path, page())
                .map_err(|error| CouldNotRun::new(format_args!("{}: {error}", path.display()))),
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
