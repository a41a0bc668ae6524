//! `--html FILE`: the same report as a page, in a file of its own.

use super::CouldNotRun;
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Clone, Debug, Default)]
pub(super) struct Html {
    /// Also write the report as a page: one file of HTML, which needs nothing but itself (docs/pages.md).
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Html {
    /// Whether a page is wanted.
    pub(super) fn is_wanted(&self) -> bool {
        self.html.is_some()
    }

    /// Writes the page where one is wanted.
    pub(super) fn write(&self, page: impl FnOnce() -> String) -> Result<(), CouldNotRun> {
        let Some(path) = &self.html else { return Ok(()) };
        std::fs::write(path, page())
            .map_err(|error| CouldNotRun::new(format_args!("{}: {error}", path.display())))
    }
}
