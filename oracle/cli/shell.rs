//! `graph-oracle completions` and `graph-oracle man`: what a shell and a reader of manuals want to know, written from the
//! same arguments that are parsed.

use super::{Arguments, CouldNotRun, Status, print};
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man as Page;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
pub(super) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "graph-oracle", &mut script);
        print(out, &String::from_utf8_lossy(&script))?;
        Ok(Status::Sound)
    }
}

#[derive(Args, Debug)]
pub(super) struct Man {
    /// A folder for a page for each command; without it, the page of the program is printed.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

impl Man {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        let Some(folder) = &self.output else {
            let mut page = Vec::new();
            Page::new(Arguments::command()).render(&mut page).map_err(CouldNotRun::new)?;
            print(out, &String::from_utf8_lossy(&page))?;
            return Ok(Status::Sound);
        };
        let mut program = Arguments::command().disable_help_subcommand(true);
        program.build();
        let written = std::fs::create_dir_all(folder).and_then(|()| write_pages(&program, folder));
        written.map_err(|error| CouldNotRun::new(format_args!("{}: {error}", folder.display())))?;
        Ok(Status::Sound)
    }
}

/// Writes the page of a command, and those of its own commands.
fn write_pages(command: &Command, folder: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_pages(below, folder)?;
    }
    let (page, mut text) = (Page::new(command.clone()), Vec::new());
    page.render(&mut text)?;
    crate::files::write_inside(folder, &page.get_filename(), text)
}
