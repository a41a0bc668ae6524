//! Files on the command line: what they hold is told by their contents, how they are written by their names.

use super::{CouldNotRun, is_stdout, print};
use crate::candidates::Outcome;
use crate::case::Case;
use crate::format::fx;
use crate::format::json::{self, Document};
use crate::format::objects::{self, Allowance, Objects};
use crate::format::recognise::{Kind, recognise, recognise_objects};
use crate::format::{Places, Spot, memory_snapshot, parts, pickle, text, torch_logs, torch_trace};
use crate::graph::{Graph, World};
use crate::judge::Remark;
use crate::limits::{Limit, Limits};
use crate::report::memory::Measured;
use crate::words::held;
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a file holds.
pub(super) enum Input {
    /// A graph.
    Graph(Box<Graph>),
    /// A text case.
    Case(Box<Case>),
    /// What a pass returned, per rank.
    Outcomes(Vec<(Option<u32>, Outcome)>),
}

impl Input {
    /// The case in the file, or that of its graph; `None` of outcomes.
    pub(super) fn into_case(self) -> Option<Case> {
        match self {
            Input::Case(case) => Some(*case),
            Input::Graph(graph) => Some(Case::of_graph(*graph)),
            Input::Outcomes(_) => None,
        }
    }

    /// The graph in the file: a case's graph before the pass, an outcome's first result.
    pub(super) fn into_graph(self, path: &Path) -> Result<Graph, CouldNotRun> {
        match self {
            Input::Graph(graph) => Ok(*graph),
            Input::Case(case) => Ok(case.graph),
            Input::Outcomes(outcomes) => match outcomes.into_iter().next() {
                Some((_, outcome)) => Ok(outcome.repaired),
                None => Err(CouldNotRun::new(format_args!("{}: holds no graph", path.display()))),
            },
        }
    }
}

/// The bytes of a file.
pub(super) fn bytes(path: &Path, limits: &Limits) -> Result<Vec<u8>, CouldNotRun> {
    let most = limits.get(Limit::Text);
    crate::files::read_bytes(path, most).map_err(|error| in_file(path, &error))
}

/// The text of a file.
pub(super) fn words(path: &Path, limits: &Limits) -> Result<String, CouldNotRun> {
    String::from_utf8(bytes(path, limits)?).map_err(|error| in_file(path, &error))
}

/// The bytes of a file, decompressed.
pub(super) fn plain(path: &Path, limits: &Limits) -> Result<Vec<u8>, CouldNotRun> {
    let bytes = bytes(path, limits)?;
    let plain = json::decompressed(&bytes, limits.get(Limit::Text)).map_err(|error| in_file(path, &error))?;
    Ok(plain.unwrap_or(bytes))
}

/// What a file holds, where it is of a kind that is known.
pub(super) fn kind(bytes: &[u8], limits: &Limits) -> Option<Kind> {
    recognise(bytes, limits.get(Limit::Objects))
}

/// Why a file cannot be read where it was given: what it is and what to do with it, where that is known, else `error`.
pub(super) fn unread(path: &Path, bytes: &[u8], limits: &Limits, error: CouldNotRun) -> CouldNotRun {
    let plain = json::decompressed(bytes, limits.get(Limit::Text)).ok().flatten();
    let bytes = plain.as_deref().unwrap_or(bytes);
    if pickle::is_pickle(bytes) {
        return match pickled(path, bytes, limits) {
            Ok(objects) => in_file(path, &recognise_objects(&objects).unwrap_or(Kind::OtherPickle).advice()),
            Err(error) => error,
        };
    }
    match kind(bytes, limits) {
        None | Some(Kind::Graph) => error,
        Some(kind) => in_file(path, &kind.advice()),
    }
}

fn allowance(limits: &Limits) -> Allowance {
    Allowance::new(limits.get(Limit::Objects))
}

/// The objects of a pickle.
fn pickled(path: &Path, bytes: &[u8], limits: &Limits) -> Result<Objects, CouldNotRun> {
    pickle::read(bytes, &allowance(limits)).map_err(|error| match recognise(bytes, 0) {
        Some(kind) if kind != Kind::OtherPickle => in_file(path, &kind.advice()),
        _ => in_file(path, &format_args!("this is a pickle: {error}")),
    })
}

/// The objects of a dump of this kind, a pickle or JSON, of which as many are looked at as may be held; `what` says
/// where such a dump comes from.
pub(super) fn dump(
    path: &Path,
    bytes: &[u8],
    limits: &Limits,
    wanted: Kind,
    what: &str,
) -> Result<(Objects, Allowance), CouldNotRun> {
    let is_pickle = pickle::is_pickle(bytes);
    let objects = match (is_pickle, is_pickle || kind(bytes, limits) == Some(wanted)) {
        (true, _) => pickled(path, bytes, limits)?,
        (false, true) => {
            objects::read_json(bytes, &allowance(limits)).map_err(|error| in_file(path, &error))?
        }
        (false, false) => {
            return Err(unread(path, bytes, limits, in_file(path, &format_args!("this is no {what}"))));
        }
    };
    match recognise_objects(&objects).unwrap_or(Kind::OtherPickle) {
        kind if kind == wanted => Ok((objects, allowance(limits))),
        kind => Err(in_file(path, &kind.advice())),
    }
}

/// A memory snapshot, judged, handed to `look`.
pub(super) fn with_snapshot<T>(
    path: &Path,
    bytes: &[u8],
    limits: &Limits,
    look: impl FnOnce(Measured) -> Result<T, CouldNotRun>,
) -> Result<T, CouldNotRun> {
    let what = "memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot writes one)";
    let (objects, allowance) = dump(path, bytes, limits, Kind::MemorySnapshot, what)?;
    let snapshot =
        memory_snapshot::read(objects.root(), &allowance).map_err(|error| in_file(path, &error))?;
    look(Measured::new(snapshot))
}

/// Where things stand in a file that could be read; of one that cannot be read again nothing is known.
pub(super) fn places(path: &Path) -> Places {
    let most = Limit::Text.most();
    let text = crate::files::read_bytes(path, most).ok().and_then(|bytes| {
        let plain = json::decompressed(&bytes, most).ok()?;
        String::from_utf8(plain.unwrap_or(bytes)).ok()
    });
    text.map(Places::of).unwrap_or_default()
}

/// `FILE:LINE:COLUMN`, as far as it is known where the spot is.
fn placed(path: &Path, places: &Places, spot: &Spot) -> String {
    match places.find(spot) {
        Some(at) => format!("{}:{}:{}", path.display(), at.line, at.column),
        None => path.display().to_string(),
    }
}

/// Where something stands in a file, as far as that is known.
pub(super) fn place_of(path: &Path, spot: &Spot) -> String {
    placed(path, &places(path), spot)
}

/// Adds to notes that are remarks about what a file holds where that stands.
pub(super) fn place_remarks(notes: &mut [String], remarks: &[Remark], path: &Path) {
    let known = if remarks.is_empty() { Places::default() } else { places(path) };
    for note in notes {
        if let Some(remark) = remarks.iter().find(|remark| remark.to_string() == *note) {
            *note = remark.line(|spot| Some(placed(path, &known, spot)));
        }
    }
}

/// What is wrong with a file.
pub(super) fn in_file(path: &Path, error: &dyn std::fmt::Display) -> CouldNotRun {
    CouldNotRun::new(format_args!("{}: {error}", held(&path.display().to_string())))
}

/// Reads a file: gzip or JSON by its first bytes, a graph that PyTorch printed by its class, else a text case.
pub(super) fn read(path: &Path, limits: &Limits) -> Result<Input, CouldNotRun> {
    read_with(path, &Missing::default(), limits)
}

/// What a graph as PyTorch prints it does not say.
#[derive(Args, Debug, Default)]
pub(super) struct Missing {
    /// An fx_graph_runnable.py of the same graph: what it says of inputs, symbols and groups completes a graph as
    /// PyTorch prints it.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Ranks and process groups of a graph as PyTorch prints it: exchange JSON with `world` and `groups`.
    #[arg(long, value_name = "FILE")]
    groups: Option<PathBuf>,
}

/// Reads a file. A graph that PyTorch printed is completed by what is missing in it.
pub(super) fn read_with(path: &Path, missing: &Missing, limits: &Limits) -> Result<Input, CouldNotRun> {
    read_contents(path, &bytes(path, limits)?, missing, limits)
}

/// What bytes hold that nobody wrote into a file; `name` is what they are called.
pub(super) fn read_bytes(name: &Path, bytes: &[u8], limits: &Limits) -> Result<Input, CouldNotRun> {
    read_contents(name, bytes, &Missing::default(), limits)
}

fn read_contents(
    path: &Path,
    bytes: &[u8],
    missing: &Missing,
    limits: &Limits,
) -> Result<Input, CouldNotRun> {
    let name = path.display();
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(CouldNotRun::new(format_args!("{name}: the file is empty")));
    }
    let is_gzip = bytes.starts_with(&[0x1f, 0x8b]);
    let plain = json::decompressed(bytes, limits.get(Limit::Text)).map_err(|error| in_file(path, &error))?;
    let bytes = plain.as_deref().unwrap_or(bytes);
    check_parts(path, bytes, limits)?;
    let is_json = bytes.iter().find(|b| !b.is_ascii_whitespace()).is_some_and(|b| matches!(b, b'{' | b'['));
    let is_named_json = path.extension().is_some_and(|ending| ending == "json");
    let printed =
        if is_gzip || is_json || is_named_json { None } else { printed(path, bytes, missing, limits)? };
    if let Some(printed) = printed {
        return Ok(Input::Graph(Box::new(printed.graph)));
    }
    let flags = [("from", &missing.from), ("groups", &missing.groups)];
    if let Some((flag, _)) = flags.into_iter().find(|(_, file)| file.is_some()) {
        let why = format!("--{flag} completes graphs as PyTorch prints them, and this is none");
        return Err(in_file(path, &why));
    }
    if !is_gzip && !is_json && !is_named_json {
        let case = text::parse(bytes).map_err(|errors| {
            let error = CouldNotRun::new(errors.render(Some(&name.to_string())));
            unread(path, bytes, limits, error)
        })?;
        return Ok(Input::Case(Box::new(case)));
    }
    let document = json::read_within(bytes, limits.get(Limit::Text))
        .map_err(|error| unread(path, bytes, limits, CouldNotRun::new(error.in_file(name.to_string()))))?;
    match document {
        Document::Graph(graph) => Ok(Input::Graph(graph)),
        Document::Outcome(outcome) => match outcome.result {
            Ok(ranks) => Ok(Input::Outcomes(
                ranks
                    .into_iter()
                    .map(|r| (Some(r.rank), Outcome { unrepaired: r.unrepaired, repaired: r.repaired }))
                    .collect(),
            )),
            Err(reason) => {
                Err(CouldNotRun::new(format_args!("{name}: the implementation refused: {reason}")))
            }
        },
    }
}

/// Refuses a text with more parts than may be read.
pub(super) fn check_parts(path: &Path, bytes: &[u8], limits: &Limits) -> Result<(), CouldNotRun> {
    parts::check(bytes, limits.get(Limit::Parts)).map_err(|error| in_file(path, &error))
}

/// The graph of a file that holds one as PyTorch prints it; `None` where it holds something else. What is missing in
/// the text is told on standard error.
fn printed(
    path: &Path,
    bytes: &[u8],
    missing: &Missing,
    limits: &Limits,
) -> Result<Option<fx::Printed>, CouldNotRun> {
    if torch_trace::is_trace(bytes) {
        return Err(in_file(path, &Kind::TorchTrace.advice()));
    }
    if torch_logs::is_log(bytes) {
        let why = "a log of TORCH_LOGS, which holds many graphs: graph-oracle trace judges them";
        return Err(in_file(path, &why));
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(None) };
    if !fx::is_printed(text) {
        return Ok(None);
    }
    let from = missing.from.as_deref();
    let runnables = match from {
        Some(from) => vec![Arc::new(runnable(from, limits)?)],
        None => Vec::new(),
    };
    let name = path.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    let world = match &missing.groups {
        Some(groups) => world(groups, limits)?,
        None => World::default(),
    };
    let known = fx::Known { name, runnables, world, ..fx::Known::default() };
    let mut read = fx::read(text, &known).map_err(|error| at_place(path, &error))?;
    read.find_members(&mut fx::Members::default());
    if let Some(from) = from.filter(|_| !read.is_completed) {
        let why =
            format!("its inputs are not those of {}: that is the runnable of another graph", from.display());
        return Err(in_file(path, &why));
    }
    if !read.unknown_groups.is_empty() {
        read.notes.push(format!(
            "how many ranks process group {} has is not in the text: --groups FILE or --from RUNNABLE says it",
            read.unknown_groups.join(", ")
        ));
    }
    for note in &read.notes {
        eprintln!("note: {}: {note}", path.display());
    }
    Ok(Some(read))
}

/// What an `fx_graph_runnable.py` says besides its graph.
pub(super) fn runnable(path: &Path, limits: &Limits) -> Result<fx::Runnable, CouldNotRun> {
    let text = words(path, limits)?;
    check_parts(path, text.as_bytes(), limits)?;
    let read = fx::Runnable::read(&text).map_err(|error| at_place(path, &error))?;
    read.ok_or_else(|| in_file(path, &"is no fx_graph_runnable.py: it has no load_args"))
}

fn at_place(path: &Path, error: &fx::FxError) -> CouldNotRun {
    let (line, column) = (error.line, error.column);
    CouldNotRun::new(format_args!("{}:{line}:{column}: {}", path.display(), error.message))
}

/// The ranks and process groups in a file: exchange JSON of which nothing else is read.
pub(super) fn world(path: &Path, limits: &Limits) -> Result<World, CouldNotRun> {
    let text = words(path, limits)?;
    check_parts(path, text.as_bytes(), limits)?;
    let mut document: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| in_file(path, &error))?;
    let Some(object) = document.as_object_mut() else {
        return Err(in_file(path, &"expected an object with \"world\" and \"groups\""));
    };
    object.retain(|key, _| matches!(key.as_str(), "world" | "groups"));
    object.insert("schema_version".into(), json::GRAPH_ORACLE.into());
    object.insert("nodes".into(), serde_json::Value::Array(Vec::new()));
    let document = json::read(document.to_string().as_bytes()).map_err(|error| in_file(path, &error))?;
    Ok(document.into_graph().map(|graph| graph.world).unwrap_or_default())
}

/// A graph as exchange JSON.
pub(super) fn json_text(graph: &Graph) -> Result<String, CouldNotRun> {
    let mut bytes = Vec::new();
    json::write(graph, &mut bytes).map_err(CouldNotRun::new)?;
    String::from_utf8(bytes).map_err(CouldNotRun::new)
}

/// Writes a graph: .graph as text, everything else as exchange JSON (.gz compressed); `-` is standard output.
pub(super) fn write_graph(graph: &Graph, path: &Path, out: &mut dyn Write) -> Result<(), CouldNotRun> {
    if is_stdout(path) {
        return print(out, &json_text(graph)?);
    }
    let written = match path.extension().is_some_and(|ending| ending == "graph") {
        true => crate::files::write(path, text::print_graph(graph)),
        false => crate::files::write_path(&Document::Graph(Box::new(graph.clone())), path),
    };
    written.map_err(|error| CouldNotRun::new(format_args!("{}: {error}", path.display())))
}

/// Writes a graph as exchange JSON into a folder, under a name that the program chose.
pub(super) fn write_graph_inside(graph: &Graph, folder: &Path, name: &str) -> Result<(), CouldNotRun> {
    crate::files::write_path_inside(&Document::Graph(Box::new(graph.clone())), folder, name)
        .map_err(|error| in_file(&folder.join(name), &error))
}
