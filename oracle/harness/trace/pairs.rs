//! The graphs of one file, paired.
//!
//! # Which graphs are a pair
//!
//! - `before_X` and the next `after_X` of the same compilation, whatever X is: TorchTitan's passes, the joint-graph passes;
//! - `overlap_scheduling_graph_before` and `..._after`, `pre_decomp_comms` and `post_decomp_comms`;
//! - `before_post_grad_graph` and the `inductor_post_grad_graph` with the same inputs;
//! - `aot_forward_graph` or `aot_backward_graph` and the `before_post_grad_graph` with the same inputs, and
//!   `aot_inference_graph` and `before_joint_graph`: between them Inductor changes views into reshapes;
//! - `aot_joint_graph`, and its forward and its backward put together again ([`super::triples`]);
//! - what one pass gave and what the next one of the compilation was given, where the texts differ: somebody edited in
//!   between.
//!
//! A graph before without one after means that the pass raised, or that the log ends; it is a row with that reason.

use super::Options;
use super::cache::{Cache, Judged, Key, key};
use super::first::{EmptyLog, ReadGraph};
use super::row::{Cost, Outcome, Row};
use super::runnables::Runnables;
use super::shown::Shown;
use super::together::Kept;
use super::triples::{Triples, joined};
use super::verdict::verdict;
use crate::analysis::collectives::Collectives;
use crate::graph::{Graph, Group, Symbol, World};
use crate::ops::Ops;
use ir::format::fx;
use ir::format::parts;
use ir::format::torch_logs;
use ir::format::torch_trace::{CompileId, Record, Source};
use ir::words::held;
use md5::{Digest, Md5};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a file came to.
#[derive(Default)]
pub(super) struct FileReport {
    pub(super) rows: Vec<Row>,
    pub(super) notes: Vec<String>,
    /// Whether it could not be read to its end.
    pub(super) is_partial: bool,
    /// The graphs of pairs, to be judged together with those of other ranks.
    pub(super) kept: Vec<Kept>,
    /// All graphs, in the order of the file.
    pub(super) graphs: Vec<ReadGraph>,
    /// Whose log it is, if it holds none.
    pub(super) empty: Option<EmptyLog>,
}

impl FileReport {
    pub(super) fn unreadable(file: &Path, error: &io::Error) -> FileReport {
        let notes = vec![format!("{}: {error}", held(&file.display().to_string()))];
        FileReport { notes, is_partial: true, ..FileReport::default() }
    }
}

/// What is waiting for its partner in one compilation, by what it is waiting as.
type Waiting = Vec<(String, Shown)>;

/// How a graph is paired.
enum Part {
    /// The graph before this pass.
    Before(String),
    /// The graph after this pass.
    After(String),
    /// Not paired: why not, where somebody might have expected it.
    Alone(Option<&'static str>),
}

/// Why graphs of Python operators are not judged.
const PYTHON: &str = "a graph of Python operators";

fn part(record: &Record) -> Part {
    let name = record.name();
    match name {
        "overlap_scheduling_graph_before" => Part::Before("overlap_scheduling".into()),
        "overlap_scheduling_graph_after" => Part::After("overlap_scheduling".into()),
        "pre_decomp_comms" => Part::Before("decomp_comms".into()),
        "post_decomp_comms" => Part::After("decomp_comms".into()),
        "before_post_grad_graph" => Part::Before("post_grad".into()),
        "inductor_post_grad_graph" | "after_post_grad_graph" => Part::After("post_grad".into()),
        "before_pre_grad_graph"
        | "after_pre_grad_graph"
        | "dynamo_output_graph"
        | "compiled_autograd_graph"
        | "compiled_autograd_graph_pre_reordering"
        | "optimize_ddp_split_graph" => Part::Alone(Some(PYTHON)),
        _ => match (name.strip_prefix("before_"), name.strip_prefix("after_")) {
            (Some(pass), _) => Part::Before(pass.to_string()),
            (_, Some(pass)) => Part::After(pass.to_string()),
            _ => Part::Alone(None),
        },
    }
}

/// What has been read of a file so far.
pub(super) struct FileJudge<'o> {
    options: &'o Options,
    cache: &'o Cache,
    file: String,
    rank: Option<u32>,
    symbols: FxHashMap<CompileId, Vec<Symbol>>,
    waiting: FxHashMap<CompileId, Waiting>,
    /// Graphs of AOTAutograd that what Inductor begins with is compared with.
    origins: FxHashMap<CompileId, Waiting>,
    triples: Triples,
    /// The last graph that each compilation's passes gave, and the pass.
    results: FxHashMap<CompileId, (String, Shown)>,
    /// What is known of process groups so far.
    groups: Vec<Group>,
    runnables: Runnables,
    /// Pairs with process groups of which nothing is known yet: a runnable may come that says it.
    later: Vec<(String, CompileId, Vec<Shown>)>,
    report: FileReport,
    /// The lines of records that cannot be read.
    unreadable: Vec<usize>,
    /// The rank whose graphs these are, as the first record with one says.
    writer: Option<u32>,
    /// Graphs of other ranks.
    foreign: usize,
    python: usize,
    cached: usize,
}

impl<'o> FileJudge<'o> {
    /// Of a file of which nothing has been read. `rank`: whose it is, where records do not say it.
    pub(super) fn new(
        path: &Path,
        rank: Option<u32>,
        options: &'o Options,
        cache: &'o Cache,
    ) -> FileJudge<'o> {
        let mut judge = FileJudge {
            options,
            cache,
            file: path.file_name().map_or(String::new(), |name| held(&name.to_string_lossy()).into_owned()),
            rank,
            symbols: FxHashMap::default(),
            waiting: FxHashMap::default(),
            origins: FxHashMap::default(),
            triples: Triples::default(),
            results: FxHashMap::default(),
            groups: options.world.groups.clone(),
            runnables: Runnables::new(options.runnable.clone()),
            later: Vec::new(),
            report: FileReport::default(),
            unreadable: Vec::new(),
            writer: None,
            foreign: 0,
            python: 0,
            cached: 0,
        };
        if let Some(runnable) = &options.runnable {
            judge.learn(&runnable.groups);
        }
        judge
    }

    /// Judges all that these records complete.
    pub(super) fn read(&mut self, records: &mut impl Source) {
        loop {
            match records.next_record() {
                Ok(Some(record)) => self.record(record),
                Ok(None) => break,
                Err(error) => {
                    self.note(format!("cannot be read to its end: {error}"));
                    self.report.is_partial = true;
                    break;
                }
            }
        }
        self.unreadable.extend_from_slice(records.unreadable());
    }

    /// The rows that were added since this was asked last.
    pub(super) fn new_rows(&mut self) -> Vec<Row> {
        self.report.kept.clear();
        std::mem::take(&mut self.report.rows)
    }
}

impl FileJudge<'_> {
    fn note(&mut self, text: String) {
        self.report.notes.push(format!("{}: {text}", self.file));
    }

    fn record(&mut self, record: Record) {
        self.writer = self.writer.or(record.rank());
        match record.kind.as_str() {
            "create_symbol" | "create_unbacked_symbol" => {
                let symbol = symbol(&record);
                self.symbols.entry(record.id()).or_default().extend(symbol);
            }
            // Ids are given again after `torch._dynamo.reset()`: what is known of the compilation before is over.
            "dynamo_start" => {
                let id = record.id();
                self.results.remove(&id);
                self.origins.remove(&id);
                self.triples.remove(&id);
                self.runnables.remove(&id);
            }
            _ if record.name() == "fx_graph_runnable" => self.runnable(&record),
            _ if record.is_graph() => self.graph(&record),
            _ => {}
        }
    }

    /// Keeps what is known of process groups of which nothing was known.
    fn learn(&mut self, groups: &[Group]) {
        let mut known: FxHashSet<String> = self.groups.iter().map(|group| group.name.clone()).collect();
        self.groups.extend(groups.iter().filter(|group| known.insert(group.name.clone())).cloned());
    }

    /// A runnable: it says more of the graphs with its inputs, those to come and those of AOTAutograd, which came
    /// before.
    fn runnable(&mut self, record: &Record) {
        let id = record.id();
        match self.runnables.add(record, self.options.parts) {
            Ok(groups) => self.learn(&groups),
            Err(why) => self.note(why),
        }
        let origins = self.origins.remove(&id).unwrap_or_default();
        let again = origins.into_iter().map(|(name, shown)| match shown.record.clone() {
            Some(record) => (name, Shown { record: Some(record.clone()), ..self.shown(&record, None) }),
            None => (name, shown),
        });
        let again: Waiting = again.collect();
        self.origins.insert(id, again);
    }

    fn graph(&mut self, record: &Record) {
        let id = record.id();
        // Of another process: its records have the same ids.
        if let Some(rank) = record.rank()
            && self.writer != Some(rank)
        {
            self.foreign += 1;
            return;
        }
        let part = part(record);
        if let Part::Alone(Some(_)) = part {
            self.python += 1;
            return;
        }
        let like = match record.name().starts_with("overlap_scheduling") {
            true => self.waiting_as(&id, "post_grad").cloned(),
            false => None,
        };
        let shown = self.shown(record, like.as_ref());
        if let Ok(printed) = &shown.graph {
            self.learn(&printed.graph.world.groups);
        }
        self.report.graphs.push(ReadGraph {
            rank: shown.rank,
            id: id.clone(),
            name: record.name().to_string(),
            graph: shown.graph.clone(),
            file: self.file.clone(),
            key: shown.key,
        });
        let mut origins = Vec::new();
        match record.name() {
            "aot_forward_graph" | "aot_backward_graph" | "aot_inference_graph" => {
                let origin = Shown { record: Some(Arc::new(record.clone())), ..shown.clone() };
                self.origins.entry(id.clone()).or_default().push((record.name().to_string(), origin));
            }
            "before_post_grad_graph" => {
                // In PyTorch 2.8 the joint-graph passes of inference write nothing.
                origins.extend(["aot_forward_graph", "aot_backward_graph", "aot_inference_graph"]);
            }
            "before_joint_graph" => origins.push("aot_inference_graph"),
            _ => {}
        }
        if let Some((name, origin)) = self.origin(&id, &origins, &shown) {
            self.pair(&format!("{name} to {}", record.name()), &id, &origin, &shown);
        }
        if let Some(triple) = self.triples.add(&id, record.name(), &shown) {
            self.now_or_later("partition", &id, triple);
        }
        match part {
            Part::Before(pass) => {
                // Without ids nobody knows whether it is the same graph that goes on.
                if id.frame.is_some()
                    && let Some((last, result)) = self.results.remove(&id)
                    && result.digest != shown.digest
                    && result.inputs().is_some()
                    && result.inputs() == shown.inputs()
                {
                    // A runnable may have come since.
                    let again = result.record.as_ref().map(|record| self.shown(record, None));
                    let result = again.unwrap_or(result);
                    self.pair(&format!("between {last} and {pass}"), &id, &result, &shown);
                }
                self.waiting.entry(id).or_default().push((pass, shown));
            }
            Part::After(pass) => {
                match self.partner(&id, &pass, &shown) {
                    Some(before) => self.pair(&pass, &id, &before, &shown),
                    None if record.kind == torch_logs::KIND => self.logged(&id, &pass, &shown),
                    None if let Err(why) = &shown.graph => {
                        let why = format!("the graph after it cannot be read: {why}");
                        self.alone(&pass, &id, &shown, &why);
                    }
                    None if pass == "post_grad" => self.cached += 1,
                    None => self.alone(&pass, &id, &shown, "there is no graph before it"),
                }
                let result = Shown { record: Some(Arc::new(record.clone())), ..shown };
                self.results.insert(id, (pass, result));
            }
            Part::Alone(_) => {}
        }
    }

    /// A graph of TORCH_LOGS, which has none before the passes: it is judged against that of AOTAutograd.
    fn logged(&mut self, id: &CompileId, pass: &str, shown: &Shown) {
        match self.origin(id, &["aot_forward_graph", "aot_backward_graph"], shown) {
            Some((name, origin)) => self.pair(&format!("{name} to after {pass}"), id, &origin, shown),
            None => {
                self.alone(pass, id, shown, "there is no graph before it: TORCH_LOGS=+aot_graphs prints it")
            }
        }
    }

    /// The last graph that waits as `pass`.
    fn waiting_as(&self, id: &CompileId, pass: &str) -> Option<&Shown> {
        self.waiting.get(id)?.iter().rev().find(|(waiting, _)| waiting == pass).map(|(_, shown)| shown)
    }

    /// The graph of AOTAutograd that Inductor begins with: the one with the same inputs.
    fn origin(&mut self, id: &CompileId, names: &[&str], shown: &Shown) -> Option<(String, Shown)> {
        let origins = self.origins.get_mut(id)?;
        let is_it = |(name, origin): &(String, Shown)| {
            names.contains(&name.as_str()) && origin.inputs().is_some() && origin.inputs() == shown.inputs()
        };
        origins.iter().rposition(is_it).map(|at| origins.remove(at))
    }

    /// The graph before, which no longer waits.
    fn partner(&mut self, id: &CompileId, pass: &str, after: &Shown) -> Option<Shown> {
        let waiting = self.waiting.get_mut(id)?;
        let of_pass = |(waiting, _): &(String, Shown)| waiting == pass;
        // Forward and backward of one compilation wait at the same time: inputs tell them apart. Where a compilation failed, what
        // it left waits for ever, under the same id as that of another attempt: the last one counts.
        let inputs = after.inputs();
        let same = waiting.iter().rposition(|entry| of_pass(entry) && entry.1.inputs() == inputs);
        let is_only = pass != "post_grad"
            || after.graph.is_err() && waiting.iter().filter(|&entry| of_pass(entry)).count() == 1;
        let at = same.or_else(|| waiting.iter().rposition(of_pass).filter(|_| is_only))?;
        Some(waiting.remove(at).1)
    }

    fn shown(&mut self, record: &Record, like: Option<&Shown>) -> Shown {
        let text = record.payload.as_deref().unwrap_or("");
        let digest: Key = Md5::digest(text).into();
        let mut known = fx::Known {
            name: record.name().to_string(),
            kind: String::new(),
            symbols: self.symbols.get(&record.id()).cloned().unwrap_or_default(),
            world: World { ranks: self.options.world.ranks, groups: self.groups.clone() },
            like: None,
            runnables: self.runnables.of(&record.id()),
        };
        let like_key = like.map_or(&[][..], |like| &like.key[..]);
        let key = key(&[&digest, format!("{known:?}").as_bytes(), like_key]);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let graph = match record.digest() {
            // Lines that were lost, or that another process wrote between them.
            Some(stated) if stated != hex => {
                Err(format!("line {}: the text is damaged: its MD5 is another", record.line))
            }
            _ => {
                known.like = like.and_then(|like| Some(like.graph.as_ref().ok()?.graph.clone()));
                let read = || {
                    let parts = parts::check(text.as_bytes(), self.options.parts);
                    parts.map_err(|message| fx::FxError { line: 1, column: 1, message })?;
                    let mut printed = fx::read(text, &known)?;
                    self.cache.find_members(&mut printed);
                    Ok(printed)
                };
                self.cache.text(key, text.len(), read).map_err(|error: fx::FxError| {
                    let line = record.line_of(error.line);
                    format!("line {line}, column {}: {}", error.column, error.message)
                })
            }
        };
        let rank = record.rank().or(self.rank);
        Shown { line: record.line, digest, key, rank, graph, record: None }
    }

    fn alone(&mut self, pass: &str, id: &CompileId, shown: &Shown, why: &str) {
        let outcome = Outcome::NotJudged(why.to_string());
        let row = self.row(pass, id, (shown, None), outcome);
        self.report.rows.push(row);
    }

    fn row(&self, pass: &str, id: &CompileId, of: (&Shown, Option<&Shown>), outcome: Outcome) -> Row {
        Row {
            pass: pass.to_string(),
            id: id.clone(),
            rank: of.0.rank,
            file: self.file.clone(),
            lines: (of.0.line, of.1.map(|after| after.line)),
            outcome,
            time: Duration::ZERO,
            cost: None,
            launches: None,
            allowed: None,
            notes: Vec::new(),
        }
    }

    /// What is known of a graph now: groups may have become known since its text was read.
    fn completed(&self, shown: &Shown) -> Result<Arc<fx::Printed>, String> {
        let mut printed = shown.graph.clone()?;
        if !printed.unknown_groups.is_empty() {
            Arc::make_mut(&mut printed).add_groups(&self.groups);
        }
        match &printed.unknown_groups[..] {
            [] => Ok(printed),
            names => Err(format!(
                "how many ranks process group {} has is not in the text: --groups FILE says it",
                names.join(", ")
            )),
        }
    }

    fn pair(&mut self, pass: &str, id: &CompileId, before: &Shown, after: &Shown) {
        self.now_or_later(pass, id, vec![before.clone(), after.clone()]);
    }

    /// Judges graphs once the process groups of all of them are known: a runnable that says it may come late.
    fn now_or_later(&mut self, pass: &str, id: &CompileId, graphs: Vec<Shown>) {
        let known: FxHashSet<&str> = self.groups.iter().map(|group| group.name.as_str()).collect();
        let is_known = |name: &String| known.contains(name.as_str());
        let read = graphs.iter().filter_map(|shown| shown.graph.as_ref().ok());
        match read.flat_map(|printed| &printed.unknown_groups).all(is_known) {
            true => self.judge(pass, id, &graphs),
            false => self.later.push((pass.to_string(), id.clone(), graphs)),
        }
    }

    /// Judges a graph before and one after, or a joint graph and what it was cut into.
    fn judge(&mut self, pass: &str, id: &CompileId, graphs: &[Shown]) {
        match graphs {
            _ if self.options.reads_only => {}
            [before, after] => self.judge_pair(pass, id, before, after),
            [joint, forward, backward] => self.judge_triple(pass, id, [joint, forward, backward]),
            _ => {}
        }
    }

    fn judge_pair(&mut self, pass: &str, id: &CompileId, before: &Shown, after: &Shown) {
        let mut row = self.row(pass, id, (before, Some(after)), Outcome::Unchanged);
        let started = Instant::now();
        match (&self.completed(before), &self.completed(after)) {
            (Err(why), _) => row.outcome = Outcome::NotJudged(format!("before: {why}")),
            (_, Err(why)) => row.outcome = Outcome::NotJudged(format!("after: {why}")),
            (Ok(old), Ok(new)) => {
                let key = self.key(pass, &[before, after], &[&old.graph, &new.graph]);
                let judged = || {
                    let before_notes = old.notes.iter().map(|note| format!("before: {note}"));
                    let after_notes = new.notes.iter().map(|note| format!("after: {note}"));
                    let notes: Vec<String> = before_notes.chain(after_notes).collect();
                    match before.digest == after.digest {
                        true => with_figures(&old.graph, &new.graph, Outcome::Unchanged, notes),
                        false => self.judged(pass, &old.graph, &new.graph, notes),
                    }
                };
                fill(&mut row, self.cache.judged(key, judged));
                let [before, after] = [(before.digest, old.clone()), (after.digest, new.clone())];
                self.report.kept.push(Kept { row: self.report.rows.len(), before, after });
            }
        }
        row.time = started.elapsed();
        self.report.rows.push(row);
    }

    /// What a verdict on these graphs rests on.
    fn key(&self, pass: &str, shown: &[&Shown], graphs: &[&Graph]) -> Key {
        let worlds: Vec<&World> = graphs.iter().map(|graph| &graph.world).collect();
        let worlds = format!("{worlds:?}");
        let mut parts: Vec<&[u8]> = shown.iter().map(|shown| &shown.key[..]).collect();
        parts.extend([worlds.as_bytes(), pass.as_bytes()]);
        key(&parts)
    }

    fn judge_triple(&mut self, pass: &str, id: &CompileId, shown: [&Shown; 3]) {
        let mut row = self.row(pass, id, (shown[0], Some(shown[1])), Outcome::Unchanged);
        let started = Instant::now();
        let named = |shown: &Shown, name: &str| self.completed(shown).map_err(|why| format!("{name}: {why}"));
        let read = || {
            let joint = named(shown[0], "joint")?;
            let parts = [named(shown[1], "forward")?, named(shown[2], "backward")?];
            let joined = joined(&joint, &parts[0], &parts[1])?;
            Ok((joint, joined))
        };
        match read() {
            Err(why) => row.outcome = Outcome::NotJudged(why),
            Ok((joint, joined)) => {
                let key = self.key(pass, &shown, &[&joint.graph, &joined]);
                fill(
                    &mut row,
                    self.cache.judged(key, || self.judged(pass, &joint.graph, &joined, Vec::new())),
                );
            }
        }
        row.time = started.elapsed();
        self.report.rows.push(row);
    }

    fn judged(&self, pass: &str, before: &Graph, after: &Graph, mut notes: Vec<String>) -> Judged {
        let said = verdict(pass, before, &[(None, after)], self.options);
        notes.extend(said.notes);
        Judged { allowed: said.allowed, ..with_figures(before, after, said.outcome, notes) }
    }

    /// What is left at the end of the file.
    pub(super) fn finish(mut self) -> FileReport {
        for (pass, id, graphs) in std::mem::take(&mut self.later) {
            self.judge(&pass, &id, &graphs);
        }
        let groups = std::mem::take(&mut self.groups);
        let read = self.report.graphs.iter_mut().filter_map(|read| read.graph.as_mut().ok());
        read.filter(|printed| !printed.unknown_groups.is_empty())
            .for_each(|printed| Arc::make_mut(printed).add_groups(&groups));
        if let [first, ..] = self.unreadable[..] {
            let count = ir::words::count(self.unreadable.len(), "record");
            self.note(format!("{count} cannot be read, the first in line {first}"));
        }
        let waiting = std::mem::take(&mut self.waiting);
        let mut waiting: Vec<(CompileId, Waiting)> = waiting.into_iter().collect();
        waiting.sort_by(|a, b| a.0.cmp(&b.0));
        for (id, entries) in waiting {
            for (pass, shown) in entries {
                self.alone(
                    &pass,
                    &id,
                    &shown,
                    "there is no graph after it: the pass raised, or the log ends",
                );
            }
        }
        if self.report.graphs.is_empty() {
            let empty = |rank| EmptyLog { rank, file: self.file.clone() };
            self.report.empty = self.writer.or(self.rank).map(empty);
        }
        if self.foreign > 0 {
            let count = ir::words::count(self.foreign, "graph");
            let rank = self.writer.unwrap_or_default();
            self.note(format!(
                "{count} of other ranks than {rank} stand between its records, and are not judged"
            ));
        }
        if self.python > 0 {
            let count = ir::words::count(self.python, "graph");
            self.note(format!("{count} of Python operators not judged"));
        }
        if self.cached > 0 {
            let count = ir::words::count(self.cached, "graph");
            self.note(format!("{count} from a cache not judged: there is no graph before"));
        }
        self.report
    }
}

/// `create_symbol {symbol, val, vr}`; of an unbacked one there is no `val`.
fn symbol(record: &Record) -> Option<Symbol> {
    let text = |key: &str| record.field(key).and_then(Value::as_str);
    let range = text("vr").and_then(|range| {
        let (low, high) = range.strip_prefix('[')?.strip_suffix(']')?.split_once(',')?;
        Some((low.trim().to_string(), high.trim().to_string()))
    });
    Some(Symbol {
        name: text("symbol")?.to_string(),
        hint: text("val").and_then(|value| value.parse().ok()),
        range: range.unwrap_or_else(|| ("-int_oo".to_string(), "int_oo".to_string())),
        unbacked: record.kind == "create_unbacked_symbol",
    })
}

/// An outcome with the figures of both graphs.
fn with_figures(before: &Graph, after: &Graph, outcome: Outcome, notes: Vec<String>) -> Judged {
    let launches = (launches(before), launches(after));
    Judged { outcome, cost: (Cost::of(before), Cost::of(after)), launches, allowed: None, notes }
}

fn fill(row: &mut Row, judged: Judged) {
    row.outcome = judged.outcome;
    row.cost = Some(judged.cost);
    row.launches = Some(judged.launches);
    row.allowed = judged.allowed;
    row.notes = judged.notes;
}

/// What a graph launches, in order: the operator, the reduction, the size of the group, what is sent.
fn launches(graph: &Graph) -> Vec<String> {
    let ops = Ops::of(graph);
    let collectives = Collectives::new(graph, &ops);
    let words = collectives.calls.iter().map(|call| {
        let sent: Vec<String> = call
            .inputs
            .iter()
            .map(|&input| match graph.tensor_of(input).map(|tensor| (tensor.dtype, graph.numel(tensor))) {
                Some((dtype, Some(numel))) => format!("{numel} {}", dtype.short()),
                _ => "?".to_string(),
            })
            .collect();
        let size = call.group_size.map_or(String::new(), |size| format!(" over {size} ranks"));
        let reduction = call.reduce_op.map_or(String::new(), |op| format!(" {op}"));
        format!("{}{reduction}{size} of {}", call.kind.name(), sent.join(" + "))
    });
    words.collect()
}
