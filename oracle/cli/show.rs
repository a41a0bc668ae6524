//! `graph-oracle show` and `graph-oracle convert`.

use super::files::{self, Input};
use super::html::Html;
use super::numbers::within;
use super::{CouldNotRun, Status, print};
use crate::graph::Graph;
use crate::limits::Limits;
use crate::report::memory::{self, MemoryReport};
use crate::rules::PassKind;
use clap::{Args, ValueEnum};
use std::io::Write;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct Show {
    /// The graph: exchange JSON (may be gzip), a .graph case, or a graph as PyTorch prints it.
    graph: PathBuf,
    #[command(flatten)]
    missing: files::Missing,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = ShowFormat::Text)]
    format: ShowFormat,
    /// Show live memory over the steps instead: as a picture (svg), a trace for Perfetto (json) or a report (text).
    #[arg(long, conflicts_with = "around")]
    timeline: bool,
    /// Where to write it; standard output, if not given.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show only what is near this node.
    #[arg(long, value_name = "NODE")]
    around: Option<String>,
    /// How many edges away is near.
    #[arg(long, default_value_t = 3, requires = "around", value_parser = within::<usize>(0, u64::MAX))]
    radius: usize,
    #[command(flatten)]
    html: Html,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ShowFormat {
    /// The text case format.
    Text,
    /// Exchange JSON.
    Json,
    /// Graphviz.
    Dot,
    /// A picture.
    Svg,
}

impl Show {
    pub(super) fn run(&self, limits: &Limits, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        let input = files::read_with(&self.graph, &self.missing, limits)?;
        if self.html.is_wanted() {
            return self.page(input.into_graph(&self.graph)?, out);
        }
        let text = match (&self.around, self.format, input) {
            (_, format, input) if self.timeline => timeline(&input.into_graph(&self.graph)?, format)
                .map_err(|why| CouldNotRun::new(format_args!("{}: {why}", self.graph.display())))?,
            // A case is shown whole, with its pass, expectations and recorded outcome.
            (None, ShowFormat::Text, Input::Case(case)) => case.to_string(),
            (around, format, input) => {
                let graph = self.near(input.into_graph(&self.graph)?, around.as_deref())?;
                render(&graph, format)?
            }
        };
        match &self.output {
            None => print(out, &text)?,
            Some(path) => crate::files::write(path, text)
                .map_err(|error| CouldNotRun::new(format_args!("{}: {error}", path.display())))?,
        }
        Ok(Status::Sound)
    }

    /// What is near a node, where one is named.
    fn near(&self, graph: Graph, around: Option<&str>) -> Result<Graph, CouldNotRun> {
        let Some(name) = around else { return Ok(graph) };
        let node = graph.find(name).ok_or_else(|| {
            CouldNotRun::new(format_args!("{}: there is no node {name:?}", self.graph.display()))
        })?;
        Ok(crate::format::window(&graph, node, self.radius))
    }

    /// Writes the page: of memory over the steps, or of the graph.
    fn page(&self, graph: Graph, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        if self.timeline {
            let report = memory_of(&graph)
                .map_err(|why| CouldNotRun::new(format_args!("{}: {why}", self.graph.display())))?;
            self.html.write(out, || pages::memory::page(&report))?;
        } else {
            let graph = self.near(graph, self.around.as_deref())?;
            self.html.write(out, || pages::show::page(&graph))?;
        }
        Ok(Status::Sound)
    }
}

/// Both counts of memory of a graph that can be executed.
fn memory_of(graph: &Graph) -> Result<MemoryReport<'_>, String> {
    let faults = crate::judge::input_faults(graph, PassKind::Memory);
    match faults.first() {
        Some(fault) => Err(fault.to_string()),
        None => MemoryReport::new(graph).map_err(|fault| fault.to_string()),
    }
}

/// Live memory over the steps.
fn timeline(graph: &Graph, format: ShowFormat) -> Result<String, String> {
    let report = memory_of(graph)?;
    match format {
        ShowFormat::Svg => Ok(memory::svg(&report)),
        ShowFormat::Json => Ok(memory::trace(&report)),
        ShowFormat::Text => Ok(report.text()),
        ShowFormat::Dot => Err("--timeline is shown as svg, json or text".to_string()),
    }
}

fn render(graph: &Graph, format: ShowFormat) -> Result<String, CouldNotRun> {
    match format {
        ShowFormat::Text => Ok(crate::case::Case::of_graph(graph.clone()).to_string()),
        ShowFormat::Json => files::json_text(graph),
        ShowFormat::Dot => Ok(crate::format::dot::dot(graph)),
        ShowFormat::Svg => crate::format::svg::svg(graph).map_err(CouldNotRun::new),
    }
}

#[derive(Args, Debug)]
pub(super) struct Convert {
    /// What to read: exchange JSON (may be gzip), a .graph case, or a graph as PyTorch prints it.
    from: PathBuf,
    /// What to write: the ending says how (.json, .json.gz, .graph, .dot, .svg).
    to: PathBuf,
}

impl Convert {
    pub(super) fn run(&self, limits: &Limits, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        let input = files::read(&self.from, limits)?;
        let ending = self.to.extension().and_then(|e| e.to_str()).unwrap_or("");
        let text = match (ending, input) {
            ("graph", Input::Case(case)) => case.to_string(),
            ("graph", input) => render(&input.into_graph(&self.from)?, ShowFormat::Text)?,
            ("dot", input) => render(&input.into_graph(&self.from)?, ShowFormat::Dot)?,
            ("svg", input) => render(&input.into_graph(&self.from)?, ShowFormat::Svg)?,
            (_, input) => {
                files::write_graph(&input.into_graph(&self.from)?, &self.to, out)?;
                return Ok(Status::Sound);
            }
        };
        crate::files::write(&self.to, text)
            .map_err(|error| CouldNotRun::new(format_args!("{}: {error}", self.to.display())))?;
        Ok(Status::Sound)
    }
}
