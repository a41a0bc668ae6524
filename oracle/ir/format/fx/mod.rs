//! Printed FX graphs: the text that `GraphModule.print_readable` writes, as in TORCH_TRACE artifacts, TORCH_LOGS and
//! `fx_graph_runnable.py`.
//!
//! # The idea
//!
//! The text is Python. It is read as a module with its sub-modules (`module.rs`, `python.rs`), nodes are made of its
//! statements (`build.rs`), and results of annotations and operators (`results.rs`). What the text does not say is not
//! made up: it is unknown, and [`Printed::notes`] says what is missing and what the graph was taken to be instead.
//!
//! `control_deps`, which carries ordering edges, is read as the operator that it carries, after the nodes that it
//! names.
//!
//! Source: `torch/fx/graph.py` (`_format_target`, `PythonCode`) and `torch/fx/graph_module.py` of PyTorch 2.15.
//!
//! # What it does not do
//!
//! Graphs of Python operators (Dynamo's, and those before decomposition) are errors that say so. Storages of inputs are
//! in the text of a runnable only (`runnable.rs`): without one, inputs are taken not to share memory. Values of
//! constants are in no text.

mod annotation;
mod build;
mod comment;
mod inputs;
mod layout;
mod members;
mod module;
mod python;
mod results;
mod runnable;
mod symbols;
#[cfg(test)]
mod tests;

use crate::analysis::collectives::{Collectives, GroupName};
use crate::expression;
use crate::graph::{Graph, Group, NodeId, Symbol, World};
use crate::limits::Limit;
use crate::ops::Ops;
use crate::words::count;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

pub use members::Members;
pub use runnable::Runnable;

/// The device of a tensor where neither the text nor an input has one.
const DEVICE: &str = "cpu";

/// What is known of a graph besides its text.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Its name.
    pub name: String,
    /// `joint`, `forward`, `backward`, `inference`, or empty.
    pub kind: String,
    /// Symbols that it may use.
    pub symbols: Vec<Symbol>,
    /// Ranks and process groups.
    pub world: World,
    /// Another graph of the same compilation, whose text says more: strides and devices of nodes with the same names.
    pub like: Option<Graph>,
    /// Runnables, of which the one counts whose inputs have the same names. A text that is a runnable has its own.
    pub runnables: Vec<Arc<Runnable>>,
}

/// A graph that was read.
#[derive(Clone, Debug)]
pub struct Printed {
    /// The graph.
    pub graph: Graph,
    /// Descriptors of what it returns, in order; empty where the text has none.
    pub descriptors: Vec<String>,
    /// Process groups that it names, and of which nobody says how many ranks they have.
    pub unknown_groups: Vec<String>,
    /// What else the text does not say, a line each.
    pub notes: Vec<String>,
    /// Whether a runnable says of its inputs what the text does not.
    pub is_completed: bool,
}

impl Printed {
    /// Adds what is known of process groups of which nothing was known when the text was read.
    pub fn add_groups(&mut self, known: &[Group]) {
        self.unknown_groups.retain(|name| match known.iter().find(|group| group.name == *name) {
            Some(group) => {
                self.graph.world.groups.push(group.clone());
                false
            }
            None => true,
        });
    }
}

/// What is wrong with a text, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct FxError {
    /// Line of the text, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for FxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

impl FxError {
    /// An error at a byte of the text.
    fn at(text: &str, at: usize, message: impl Into<String>) -> FxError {
        let mut end = at.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        FxError {
            line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        }
    }
}

/// Whether a text is a printed graph.
pub fn is_printed(text: &str) -> bool {
    text.lines().any(|line| line.contains("class ") && line.trim_end().ends_with("(torch.nn.Module):"))
}

/// The class of a runnable's graph.
const RUNNABLE: &str = "Repro";

/// Where the nodes of the first graph stand; of a text that cannot be read there are none.
pub(super) fn places(text: &str) -> Vec<(String, usize)> {
    let classes = module::classes(text).unwrap_or_default();
    let Some(class) = first(&classes) else { return Vec::new() };
    let inputs = class.inputs.iter().map(|input| (input.name.to_string(), input.at));
    let calls = class.statements.iter().map(|statement| (statement.name.to_string(), statement.at));
    inputs.chain(calls).collect()
}

/// The class of the graph. A runnable has its sub-modules before it.
fn first<'c, 't>(classes: &'c [module::Class<'t>]) -> Option<&'c module::Class<'t>> {
    classes.iter().find(|class| class.name == RUNNABLE).or(classes.first())
}

/// Reads the first graph of a text; other classes are its sub-modules.
///
/// # Errors
/// Text that is no printed graph of ATen operators, with the place.
pub fn read(text: &str, known: &Known) -> Result<Printed, FxError> {
    if text.len() as u64 > Limit::Text.standard() {
        return Err(FxError::at(text, 0, format!("the text is too long: the limit is {}", Limit::Text)));
    }
    let classes = module::classes(text)?;
    let Some(class) = first(&classes) else {
        return Err(FxError::at(
            text,
            0,
            "there is no class of torch.nn.Module here: this is no printed graph",
        ));
    };
    if let Some(own) = Runnable::read(text)? {
        return read_with(text, known, (&classes, class), Some(&own));
    }
    let fits = |runnable: &&Arc<Runnable>| runnable.names().eq(class.inputs.iter().map(|input| input.name));
    let mut is_of_another = false;
    // Ids of compilations are given again after a reset, so the last one is tried first.
    for runnable in known.runnables.iter().rev().filter(fits) {
        match read_with(text, known, (&classes, class), Some(runnable)) {
            Err(error) if error.message.ends_with(inputs::OF_ANOTHER) => is_of_another = true,
            read => return read,
        }
    }
    let mut printed = read_with(text, known, (&classes, class), None)?;
    if is_of_another {
        printed.notes.push("a runnable with inputs of these names is of another graph".to_string());
    }
    Ok(printed)
}

/// Reads a class with what a runnable says of it.
fn read_with(
    text: &str,
    known: &Known,
    (classes, class): (&[module::Class<'_>], &module::Class<'_>),
    runnable: Option<&Runnable>,
) -> Result<Printed, FxError> {
    let symbols = match runnable {
        Some(runnable) => runnable.with_hints(known.symbols.clone()),
        None => known.symbols.clone(),
    };
    let of_bodies = Known { symbols: symbols.clone(), world: known.world.clone(), ..Known::default() };
    let read = FxHashMap::default();
    let mut modules =
        Modules { text, classes, symbols: &symbols, of_bodies: &of_bodies, read, open: Vec::new() };
    let results::Completed { mut graph, guessed, unplaced, has_fixed_numbers, unknown } =
        modules.completed(class, known, runnable, 0)?;
    graph.check_bodies().map_err(|message| FxError::at(text, class.at, message))?;
    graph.symbols = symbols_of(&graph, &symbols);
    let mut notes = Vec::new();
    let unknown_groups;
    let given = runnable.map_or(&[][..], |runnable| &runnable.groups);
    (graph.world, unknown_groups) = world_of(&graph, &known.world, given);
    let names = |nodes: &[NodeId]| -> String {
        let shown: Vec<&str> = nodes.iter().take(3).map(|&id| graph.name(id)).collect();
        let more = if nodes.len() > shown.len() { ", ..." } else { "" };
        format!("{}{more}", shown.join(", "))
    };
    if !guessed.is_empty() {
        notes.push(format!(
            "strides are not printed, and of {} ({}) they are taken to be row-major; FX_GRAPH_SHOW_STRIDE=1 prints them",
            count(guessed.len(), "node"),
            names(&guessed)
        ));
    }
    if !unplaced.is_empty() {
        notes.push(format!(
            "where {} begins in its storage is no number: it is taken to share none",
            names(&unplaced)
        ));
    }
    if has_fixed_numbers {
        notes.push(
            "sizes are those of the run that was recorded: load_args has no expressions of them".to_string(),
        );
    }
    if !unknown.is_empty() {
        let nodes = count(unknown.len(), "node");
        notes.push(format!("nothing is known of what {nodes} returns ({})", names(&unknown)));
    }
    let descriptors = class.descriptors.iter().map(|text| (*text).to_string()).collect();
    let is_completed = runnable.is_some();
    Ok(Printed { graph, descriptors, unknown_groups, notes, is_completed })
}

/// The classes of a text, each of which is read once.
struct Modules<'t, 'c> {
    text: &'t str,
    classes: &'c [module::Class<'t>],
    symbols: &'c [Symbol],
    /// What is known of sub-modules.
    of_bodies: &'c Known,
    /// The graphs of sub-modules, by the place of their classes, each with the nodes that it has where every body
    /// stands in the place of its call.
    read: FxHashMap<usize, Arc<Graph>>,
    /// The places of the classes that are being read.
    open: Vec<usize>,
}

impl<'t, 'c> Modules<'t, 'c> {
    /// The graph of a class, with the bodies of its higher-order operators; it stands inside `depth` other ones.
    fn completed(
        &mut self,
        class: &'c module::Class<'t>,
        known: &'c Known,
        runnable: Option<&'c Runnable>,
        depth: u64,
    ) -> Result<results::Completed, FxError> {
        if self.open.contains(&class.at) {
            return Err(FxError::at(
                self.text,
                class.at,
                "sub-modules that refer to one another in a circle",
            ));
        }
        if depth > Limit::Bodies.standard() {
            let message = format!("sub-modules inside one another: the limit is {}", Limit::Bodies);
            return Err(FxError::at(self.text, class.at, message));
        }
        // Names of sub-modules are those of one class: others may have the same.
        let own = module::inside(self.classes, class).iter().chain(self.classes);
        let mut built = build::build(self.text, (class, own), known, runnable, self.symbols)?;
        let bodies = std::mem::take(&mut built.bodies);
        let mut completed = results::complete(built, known.like.as_ref());
        self.open.push(class.at);
        for (attribute, body) in bodies {
            if !self.read.contains_key(&body.at) {
                let graph = Arc::new(self.completed(body, self.of_bodies, None, depth + 1)?.graph);
                self.read.insert(body.at, graph);
            }
            completed.graph.subgraphs.push((attribute.to_string(), self.read[&body.at].clone()));
        }
        self.open.pop();
        Ok(completed)
    }
}

/// The symbols that a graph uses, with what is known of them.
fn symbols_of(graph: &Graph, known: &[Symbol]) -> Vec<Symbol> {
    let used: BTreeSet<&str> =
        graph.exprs().flat_map(|expr| expression::symbols_of(graph.text(expr.text))).collect();
    let unbounded = || ("-int_oo".to_string(), "int_oo".to_string());
    used.into_iter()
        .map(|name| {
            let recorded = known.iter().find(|symbol| symbol.name == name).cloned();
            recorded.unwrap_or_else(|| Symbol {
                name: name.to_string(),
                hint: None,
                range: unbounded(),
                unbacked: name.starts_with('u'),
            })
        })
        .collect()
}

/// The world of a graph: what is known of it, and the process groups that its collectives name; and those of which it
/// is not known how many ranks they have.
fn world_of(graph: &Graph, known: &World, given: &[Group]) -> (World, Vec<String>) {
    let ops = Ops::of(graph);
    let mut stated: BTreeMap<&str, Option<u32>> = BTreeMap::new();
    let collectives = Collectives::new(graph, &ops);
    for call in &collectives.calls {
        if let GroupName::Text(name) = call.group {
            let size = stated.entry(name).or_default();
            *size =
                size.or(call.group_size.and_then(|size| u32::try_from(size).ok()).filter(|&size| size > 0));
        }
    }
    let mut world = World { ranks: known.ranks, groups: Vec::new() };
    let mut unknown = Vec::new();
    for (name, size) in stated {
        if let Some(group) = known.groups.iter().chain(given).find(|group| group.name == name) {
            world.groups.push(group.clone());
        } else if let Some(size) = size {
            let name = name.to_string();
            world.groups.push(Group { name, size, recorded_rank: None, instances: Vec::new() });
        } else {
            unknown.push(name.to_string());
        }
    }
    (world, unknown)
}
