//! The printer: one canonical text per case. Parsing it gives the case back.

use super::claim;
use super::line::{Lines, Row};
use super::words::{Groups, node_name, quote, raw_or_quoted, word_or_quoted};
use crate::case::{
    Case, Comment, EstimateTable, Expectation, Expected, Part, PassConfig, Place, Setting, Subject,
};
use crate::graph::{Graph, Group, NodeId, Out, Tensor, World};
use crate::ops;
use rustc_hash::FxHashMap;
use std::fmt::{self, Write};

/// Names and calls longer than this do not push the columns of the other lines apart.
const NAME_COLUMN: usize = 24;
const CALL_COLUMN: usize = 60;

/// Graphs with more nodes are printed without columns: nobody reads them side by side, and a change of one line
/// should not move all others.
const ALIGN_LIMIT: usize = 2000;

/// Runs of consecutive ranks longer than this are written `first to last`.
const LONG_RUN: usize = 4;

pub(super) fn print(case: &Case) -> String {
    let mut comments: FxHashMap<&Place, Vec<&Comment>> = FxHashMap::default();
    for comment in &case.comments {
        comments.entry(&comment.place).or_default().push(comment);
    }
    let device = common_device(case);
    let mut printer = Printer { text: String::new(), comments, device: &device };
    printer.above(&Place::Head);
    printer.part(&case.graph, None, case.pass.as_ref(), Part::Before);
    for (index, expectation) in case.expectations.iter().enumerate() {
        printer.line(&Place::Expectation(index), &format!("expect {expectation}"));
    }
    for (index, program) in case.programs.iter().enumerate() {
        let line = format!("--- rank {}", ranks(&program.ranks));
        printer.section(&case.graph, &program.graph, &line, Part::Program(index));
    }
    for (rank, graphs) in case.outcome.iter().flat_map(|outcome| outcome.entries()) {
        let of = rank.map(|r| format!(" rank {r}")).unwrap_or_default();
        if let Some(unrepaired) = &graphs.unrepaired {
            printer.section(&case.graph, unrepaired, &format!("--- unrepaired{of}"), Part::Unrepaired(rank));
        }
        let refused = graphs.refused.as_ref().map(|why| format!(" refused {}", quote(why)));
        let line = format!("--- after{of}{}", refused.unwrap_or_default());
        printer.section(&case.graph, &graphs.repaired, &line, Part::After(rank));
    }
    if let Some(parts) = &case.parts {
        printer.section(&case.graph, &parts.forward, "--- forward", Part::Forward);
        printer.section(&case.graph, &parts.backward, "--- backward", Part::Backward);
    }
    if let Some(claimed) = &case.claim {
        printer.text.push('\n');
        printer.line(&Place::Section(Part::Claim), "--- claim");
        for (place, line) in claim::lines(claimed) {
            printer.line(&Place::Claim(place), &line);
        }
    }
    printer.above(&Place::End);
    if printer.text.lines().all(|line| line.starts_with('#')) {
        printer.text.push_str("graph \"\"\n");
    }
    printer.text
}

/// The most frequent device of the case's tensors, the first of several.
fn common_device(case: &Case) -> String {
    let outcome = case.outcome.iter().flat_map(|o| o.entries());
    let recorded = outcome.flat_map(|(_, graphs)| graphs.unrepaired.iter().chain([&graphs.repaired]));
    let mut counts: Vec<(&str, usize)> = Vec::new();
    let parts = case.parts.iter().flat_map(|parts| [&parts.forward, &parts.backward]);
    let programs = case.programs.iter().map(|program| &program.graph);
    for graph in std::iter::once(&case.graph).chain(recorded).chain(parts).chain(programs) {
        for node in graph.nodes() {
            for_each_tensor(graph, node.out, &mut |tensor| {
                let device = graph.text(tensor.device);
                match counts.iter_mut().find(|(d, _)| *d == device) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((device, 1)),
                }
            });
        }
    }
    let most = counts.iter().map(|&(_, count)| count).max();
    let device = counts.iter().find(|&&(_, count)| Some(count) == most).map(|&(device, _)| device);
    device.unwrap_or(super::DEFAULT_DEVICE).to_string()
}

fn for_each_tensor(graph: &Graph, out: Out, visit: &mut impl FnMut(&Tensor)) {
    match out {
        Out::Tensor(tensor) => visit(graph.tensor(tensor)),
        Out::Tuple(span) | Out::Dict(span) => {
            for &part in graph.outs(span) {
                for_each_tensor(graph, part, visit);
            }
        }
        _ => {}
    }
}

struct Printer<'a> {
    text: String,
    comments: FxHashMap<&'a Place, Vec<&'a Comment>>,
    device: &'a str,
}

impl Printer<'_> {
    /// The comments above a line.
    fn above(&mut self, place: &Place) {
        let Some(comments) = self.comments.get(place) else { return };
        for comment in comments.iter().filter(|c| !c.beside) {
            for line in comment.text.split('\n') {
                self.text.push_str(if line.is_empty() { "#" } else { "# " });
                self.text.push_str(line);
                self.text.push('\n');
            }
        }
    }

    /// A line with its comments.
    fn line(&mut self, place: &Place, line: &str) {
        self.above(place);
        self.text.push_str(line);
        if let Some(comments) = self.comments.get(place) {
            for comment in comments.iter().filter(|c| c.beside) {
                self.text.push_str(if comment.text.is_empty() { "  #" } else { "  # " });
                self.text.push_str(&comment.text.replace('\n', " "));
            }
        }
        // Another line may have the same name.
        self.comments.remove(place);
        self.text.push('\n');
    }

    fn section(&mut self, before: &Graph, graph: &Graph, line: &str, part: Part) {
        self.text.push('\n');
        self.line(&Place::Section(part), line);
        self.part(graph, Some(before), None, part);
    }

    /// One graph. What it shares with `before` is not repeated.
    fn part(&mut self, graph: &Graph, before: Option<&Graph>, pass: Option<&PassConfig>, part: Part) {
        let plain = Graph::default();
        let base = before.unwrap_or(&plain);
        if (&graph.name, &graph.kind) != (&base.name, &base.kind) {
            let kind = if graph.kind.is_empty() {
                String::new()
            } else {
                format!(" {}", word_or_quoted(&graph.kind))
            };
            let _ = writeln!(self.text, "graph {}{kind}", word_or_quoted(&graph.name));
        }
        if before.is_none() && graph.world != base.world {
            self.line(&Place::World, &world(&graph.world));
        } else if graph.world != base.world {
            let _ = writeln!(self.text, "{}", world(&graph.world));
        }
        if before.is_none() && self.device != super::DEFAULT_DEVICE {
            let _ = writeln!(self.text, "device {}", raw_or_quoted(self.device));
        }
        if graph.symbols != base.symbols {
            self.symbols(graph);
        }
        if graph.guards != base.guards {
            if graph.guards.is_empty() {
                self.text.push_str("guard none\n");
            }
            for guard in &graph.guards {
                let _ = writeln!(self.text, "guard {}", quote(guard));
            }
        }
        for (target, json) in carried_facts(graph) {
            if before.is_none_or(|before| !carried_facts(before).any(|f| f == (target, json))) {
                let _ = writeln!(self.text, "facts {} {}", raw_or_quoted(target), quote(json));
            }
        }
        if let Some(pass) = pass {
            self.line(&Place::Pass, &format!("pass {pass}"));
            for (index, table) in pass.estimates.iter().enumerate() {
                self.line(&Place::Estimates(index), &estimates(table));
            }
        }
        self.nodes(graph, part);
        let groups = Groups::of(&graph.world);
        for cluster in &graph.clusters {
            let members: Vec<String> =
                cluster.members.iter().map(|&m| node_name(&groups, graph.name(m))).collect();
            let line = format!("cluster {} = [{}]", word_or_quoted(&cluster.name), members.join(", "));
            self.line(&Place::Cluster(part, cluster.name.clone()), &line);
        }
        self.bodies(graph, part, &mut Vec::new());
    }

    /// The bodies of sub-modules, each behind the graph that it belongs to; `path` leads to that graph.
    fn bodies<'g>(&mut self, graph: &'g Graph, part: Part, path: &mut Vec<&'g str>) {
        for (attribute, body) in &graph.subgraphs {
            let indent = "  ".repeat(path.len());
            path.push(attribute);
            self.line(
                &Place::Body(part, path.join(" ")),
                &format!("{indent}body {}", word_or_quoted(attribute)),
            );
            for row in self.rows(body) {
                let _ = writeln!(self.text, "{indent}  {row}");
            }
            self.bodies(body, part, path);
            let _ = writeln!(self.text, "{indent}end");
            path.pop();
        }
    }

    fn symbols(&mut self, graph: &Graph) {
        if graph.symbols.is_empty() {
            self.text.push_str("symbol none\n");
        }
        for symbol in &graph.symbols {
            let name = if symbol.name == "none" { quote("none") } else { word_or_quoted(&symbol.name) };
            let _ = write!(self.text, "symbol {name}");
            if let Some(hint) = symbol.hint {
                let _ = write!(self.text, " = {hint}");
            }
            if symbol.range != super::default_range() {
                let (low, high) = &symbol.range;
                let _ = write!(self.text, " in {} to {}", raw_or_quoted(low), raw_or_quoted(high));
            }
            self.text.push_str(if symbol.unbacked { " unbacked\n" } else { "\n" });
        }
    }

    fn nodes(&mut self, graph: &Graph, part: Part) {
        for (id, row) in graph.ids().zip(self.rows(graph)) {
            self.node(graph, id, part, &row);
        }
    }

    /// The lines of the nodes.
    fn rows(&self, graph: &Graph) -> Vec<String> {
        let lines = Lines::new(graph, self.device);
        if graph.len() > ALIGN_LIMIT {
            return graph.ids().map(|id| lines.row(id).plain()).collect();
        }
        let rows: Vec<Row> = graph.ids().map(|id| lines.row(id)).collect();
        let (mut name_width, mut call_width) = (0, 0);
        for row in &rows {
            if let Some(name) = &row.name {
                let (name, call) = (name.chars().count(), row.call.chars().count());
                name_width = name_width.max(if name <= NAME_COLUMN { name } else { 0 });
                call_width = call_width.max(if call <= CALL_COLUMN && !row.ty.is_empty() { call } else { 0 });
            }
        }
        rows.iter().map(|row| row.text(name_width, call_width)).collect()
    }

    fn node(&mut self, graph: &Graph, id: NodeId, part: Part, line: &str) {
        // The text of the place is made only where a comment may ask for it.
        if self.comments.is_empty() {
            self.text.push_str(line);
            self.text.push('\n');
        } else {
            self.line(&Place::Node(part, graph.name(id).to_string()), line);
        }
    }
}

/// The schema facts that a text carries: of targets that the graph uses and the table of operators lacks.
fn carried_facts(graph: &Graph) -> impl Iterator<Item = (&str, &str)> {
    let facts = graph.facts.iter().filter(|(target, _)| ops::by_target(target).is_none());
    let used = facts.filter(|(target, _)| uses(graph, target));
    used.map(|(target, json)| (target.as_str(), json.as_str()))
}

/// Whether a node of the graph, or of its bodies, has that target.
fn uses(graph: &Graph, target: &str) -> bool {
    graph.targets().any(|one| one == target) || graph.subgraphs.iter().any(|(_, body)| uses(body, target))
}

fn estimates(table: &EstimateTable) -> String {
    let float = |x: f64| if x.is_nan() { "nan".to_string() } else { format!("{x:?}") };
    let mut line = String::from("estimates");
    if let Some(rank) = table.rank {
        let _ = write!(line, " rank {rank}");
    }
    for (key, figure) in [("memory", table.memory), ("link", table.link), ("latency", table.latency)] {
        if let Some(figure) = figure {
            let _ = write!(line, " {key}={}", float(figure));
        }
    }
    let entry = |(name, seconds): &(String, f64)| {
        format!("{}: {}", node_name(&Groups::default(), name), float(*seconds))
    };
    let entries: Vec<String> = table.seconds.iter().map(entry).collect();
    if !entries.is_empty() || line == "estimates" {
        line.push(' ');
        line += &claim::wrapped('{', &entries, '}');
    }
    line
}

fn world(world: &World) -> String {
    let groups: Vec<String> = world.groups.iter().map(group).collect();
    let groups = groups.join(", ");
    match (world.ranks, groups.is_empty()) {
        (None, true) => "world none".to_string(),
        (None, false) => format!("groups {groups}"),
        (Some(1), true) => "world 1 rank".to_string(),
        (Some(ranks), true) => format!("world {ranks} ranks"),
        (Some(1), false) => format!("world 1 rank, groups {groups}"),
        (Some(ranks), false) => format!("world {ranks} ranks, groups {groups}"),
    }
}

fn group(group: &Group) -> String {
    let mut text = format!("{} = ", word_or_quoted(&group.name));
    match group.instances.first() {
        None => {
            let _ = write!(text, "{} ranks", group.size);
        }
        Some(first) => {
            let instances: Vec<String> = group.instances.iter().map(|i| ranks(i)).collect();
            let _ = write!(text, "[{}]", instances.join(" | "));
            if first.len() as u64 != u64::from(group.size) {
                let _ = write!(text, " of {}", group.size);
            }
        }
    }
    if let Some(rank) = group.recorded_rank {
        let _ = write!(text, " at {rank}");
    }
    text
}

fn ranks(ranks: &[u32]) -> String {
    let mut parts = Vec::new();
    for run in ranks.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
        match run {
            [first, .., last] if run.len() > LONG_RUN => parts.push(format!("{first} to {last}")),
            _ => parts.extend(run.iter().map(u32::to_string)),
        }
    }
    parts.join(" ")
}

impl fmt::Display for PassConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", raw_or_quoted(&self.name))?;
        self.options.iter().try_for_each(|(key, setting)| write!(f, " {}={setting}", word_or_quoted(key)))
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Text(text) => write!(f, "{}", raw_or_quoted(text)),
            Setting::List(items) => {
                write!(f, "[")?;
                for (i, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if i > 0 { ", " } else { "" })?;
                }
                write!(f, "]")
            }
        }
    }
}

impl fmt::Display for Expectation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expectation::Fault(kind) => write!(f, "fault {}", raw_or_quoted(kind)),
            Expectation::Verdict { of: Subject::Reference, is } => write!(f, "{is}"),
            Expectation::Verdict { of: Subject::Outcome, is } => write!(f, "outcome {is}"),
            Expectation::Verdict { of: Subject::Candidate(name), is } => match name.as_str() {
                "sound" | "violates" | "refused" | "undecided" | "fault" | "outcome" => {
                    write!(f, "{} {is}", quote(name))
                }
                _ => write!(f, "{} {is}", raw_or_quoted(name)),
            },
        }
    }
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Sound => write!(f, "sound"),
            Expected::Refused => write!(f, "refused"),
            Expected::Undecided => write!(f, "undecided"),
            Expected::Violates(rules) => {
                write!(f, "violates")?;
                rules.iter().try_for_each(|rule| write!(f, " {}", raw_or_quoted(rule)))
            }
        }
    }
}
