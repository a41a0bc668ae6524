//! The formats of reports: for people, for machines, and for the tools of others.
//!
//! A command that judges prints all five ([`Format`]). One that has nothing to annotate prints text and JSON
//! ([`ReportFormat`]), and says who prints the others when it is asked for them.

pub(super) mod fuzz;
pub(super) mod runs;
mod sources;
pub(super) mod trace;
pub(super) mod words;

pub(super) use sources::Sources;

use super::{CouldNotRun, print};
use crate::report::results::Results;
use crate::report::{Tool, github, junit, markdown, sarif};
use clap::builder::{EnumValueParser, PossibleValue, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, Command, ValueEnum};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write;

/// The format of a report about what was judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Format {
    /// For people.
    Text,
    /// For machines: docs/report.md.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// JUnit's XML, for whoever counts tests.
    Junit,
    /// Annotations of GitHub Actions, and the summary of its step.
    Github,
}

impl Format {
    /// Whether it tells where things are in files.
    pub(super) fn has_places(self) -> bool {
        matches!(self, Format::Sarif | Format::Junit | Format::Github)
    }

    /// Prints a report. GitHub's summary of the step is written besides.
    pub(super) fn print(
        self,
        out: &mut dyn Write,
        text: impl FnOnce() -> String,
        json: impl FnOnce() -> Value,
        results: impl FnOnce() -> Results,
    ) -> Result<(), CouldNotRun> {
        let printed = match self {
            Format::Text => cut(text()),
            Format::Json => pretty(&json())?,
            Format::Sarif => pretty(&sarif(&results(), TOOL))?,
            Format::Junit => junit(&results()),
            Format::Github => {
                let results = results();
                write_summary(&results)?;
                github(&results)
            }
        };
        print(out, &printed)
    }
}

/// A report for people, whose lines have an end: names may have megabytes.
fn cut(mut text: String) -> String {
    crate::words::cut_lines(&mut text);
    text
}

/// What a SARIF log calls the program.
const TOOL: Tool<'static> =
    Tool { version: env!("CARGO_PKG_VERSION"), commit: super::COMMIT, uri: env!("CARGO_PKG_REPOSITORY") };

fn pretty(value: &Value) -> Result<String, CouldNotRun> {
    Ok(serde_json::to_string_pretty(value).map_err(CouldNotRun::new)? + "\n")
}

/// Bytes that GitHub takes as the summary of one step.
const SUMMARY: u64 = 1 << 20;

/// Adds to the file that GITHUB_STEP_SUMMARY names, as far as there is room in it.
fn write_summary(results: &Results) -> Result<(), CouldNotRun> {
    let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let path = std::path::PathBuf::from(path);
    let written = crate::files::append(&path).and_then(|mut file| {
        let room = SUMMARY.saturating_sub(file.metadata()?.len());
        file.write_all(markdown(results, usize::try_from(room).unwrap_or(0)).as_bytes())
    });
    written
        .map_err(|error| CouldNotRun::new(format_args!("GITHUB_STEP_SUMMARY: {}: {error}", path.display())))
}

/// The format of a report in which there is nothing to annotate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum ReportFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

impl ReportFormat {
    /// The report in this format.
    pub(super) fn render(
        self,
        text: impl FnOnce() -> String,
        json: impl FnOnce() -> Value,
    ) -> Result<String, CouldNotRun> {
        match self {
            ReportFormat::Text => Ok(cut(text())),
            ReportFormat::Json => pretty(&json()),
        }
    }
}

/// Reads a [`ReportFormat`], and says of the other formats who prints them.
#[derive(Clone)]
pub(super) struct TextOrJson;

impl TypedValueParser for TextOrJson {
    type Value = ReportFormat;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<ReportFormat, clap::Error> {
        let known = value.to_str().and_then(|word| Format::from_str(word, false).ok());
        if known.is_some_and(Format::has_places) {
            let (name, value) = (command.get_name(), value.to_string_lossy());
            let why = format!(
                "--format {value}: {name} prints text or json; sarif, junit and github are for check, trace, fuzz, results, \
                 lifecycle and simulate\n"
            );
            return Err(clap::Error::raw(ErrorKind::InvalidValue, why).with_cmd(command));
        }
        EnumValueParser::<ReportFormat>::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(ReportFormat::value_variants().iter().filter_map(ValueEnum::to_possible_value)))
    }
}
