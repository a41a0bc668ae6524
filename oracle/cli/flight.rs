//! `graph-oracle simulate --flight`: dumps of the flight recorder, rank beside rank and beside the graphs.

use super::files;
use super::formats::runs::one;
use super::formats::words::notice;
use super::{CouldNotRun, Format, Status};
use crate::format::flight_recorder::{self, FlightDump};
use crate::format::recognise::Kind;
use crate::limits::Limits;
use crate::report::results::{Level, Place, Results};
use crate::simulate::flight::{self, Alignment, FlightReport, Flights, Meeting};
use crate::simulate::{Operation, Programs};
use crate::words::held;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Dumps by rank, and the files of folders that were passed over.
struct Dumps {
    by_rank: BTreeMap<u32, FlightDump>,
    passed_over: Vec<String>,
}

/// The rank at the end of a file's name: `nccl_trace_rank_3`, `fr_3.json`, `trace_3.pickle.gz`.
fn rank_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let mut stem = name;
    for ending in [".gz", ".json", ".pickle", ".pkl", ".bin"] {
        stem = stem.strip_suffix(ending).unwrap_or(stem);
    }
    let digits = stem.len() - stem.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    stem[stem.len() - digits..].parse().ok()
}

fn read(path: &Path, limits: &Limits) -> Result<FlightDump, CouldNotRun> {
    let bytes = files::plain(path, limits)?;
    let what = "dump of the flight recorder (TORCH_FR_DUMP_TEMP_FILE names them)";
    let (objects, allowance) = files::dump(path, &bytes, limits, Kind::FlightRecorder, what)?;
    flight_recorder::read(objects.root(), &allowance).map_err(|error| files::in_file(path, &error))
}

impl Dumps {
    fn read(paths: &[PathBuf], limits: &Limits) -> Result<Dumps, CouldNotRun> {
        let mut dumps = Dumps { by_rank: BTreeMap::new(), passed_over: Vec::new() };
        let mut named: BTreeMap<u32, PathBuf> = BTreeMap::new();
        for path in paths {
            let found = match path.is_dir() {
                false => vec![path.clone()],
                true => {
                    let entries = std::fs::read_dir(path).map_err(|error| files::in_file(path, &error))?;
                    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
                    found.retain(|path| path.is_file());
                    found.sort();
                    found
                }
            };
            for file in found {
                let Some(rank) = rank_of(&file) else {
                    if path.is_dir() {
                        let name = file.display().to_string();
                        dumps.passed_over.push(format!("{}: no rank at the end of its name", held(&name)));
                        continue;
                    }
                    let why = "of which rank it is, the end of its name says, as in fr_3 or fr_3.json";
                    return Err(files::in_file(&file, &why));
                };
                if let Some(other) = named.insert(rank, file.clone()) {
                    let why = format_args!("it is of rank {rank}, and so is {}", other.display());
                    return Err(files::in_file(&file, &why));
                }
                dumps.by_rank.insert(rank, read(&file, limits)?);
            }
        }
        match (dumps.by_rank.is_empty(), paths.first()) {
            (true, Some(path)) => Err(files::in_file(path, &"holds no dump whose name ends with a rank")),
            _ => Ok(dumps),
        }
    }
}

/// Judges dumps, and puts them beside what their ranks should run.
pub(super) fn run(
    paths: &[PathBuf],
    programs: Option<&Programs>,
    format: Format,
    limits: &Limits,
    out: &mut dyn Write,
) -> Result<Status, CouldNotRun> {
    let dumps = Dumps::read(paths, limits)?;
    let flights = Flights::new(&dumps.by_rank);
    let mut report = flight::judge(&flights);
    report.notes.extend(dumps.passed_over);
    let aligned: Vec<Aligned> = match programs {
        Some(programs) => flights.ranks.keys().map(|&rank| Aligned::new(&flights, rank, programs)).collect(),
        None => Vec::new(),
    };
    let status = match report.is_in_order() {
        Some(true) => Status::Sound,
        Some(false) => Status::Violated,
        None => Status::Undecided,
    };
    format.print(
        out,
        || text_of(&flights, &report, &aligned),
        || json_of(&flights, &report, &aligned),
        || results_of(&flights, &report, paths.first()),
    )?;
    Ok(status)
}

/// Where a rank is in its program, in lines.
struct Aligned<'p> {
    rank: u32,
    /// The operations that the last launch that fits may be.
    last: Vec<&'p Operation>,
    next: Option<&'p Operation>,
    lines: Vec<String>,
}

/// How many places are listed where several fit.
const LISTED: usize = 4;

impl<'p> Aligned<'p> {
    fn new(flights: &Flights, rank: u32, programs: &'p Programs) -> Aligned<'p> {
        let mut aligned = Aligned { rank, last: Vec::new(), next: None, lines: Vec::new() };
        let program = programs.of_rank.get(rank as usize).and_then(|&program| programs.programs.get(program));
        let (Some(program), Some(of)) = (program, flights.ranks.get(&rank)) else {
            let ranks = programs.of_rank.len();
            aligned.lines.push(format!("the world of the graph has no such rank: it has {ranks}"));
            return aligned;
        };
        let alignment = flight::align(flights, rank, program, &programs.world);
        let operations = &program.operations;
        let on = |operation: &Operation| format!("{operation} on {}", operation.group);
        let launch = |launch: usize| match of.launches.get(launch) {
            Some(launch) => {
                let what = if launch.is_message { "message" } else { "collective" };
                format!("{what} {} of {}, {launch}", launch.number, flights.group_name(launch.group))
            }
            None => "?".to_string(),
        };
        aligned.last = alignment.last.iter().filter_map(|place| operations.get(place.operation)).collect();
        match (&aligned.last[..], alignment.last.first()) {
            ([], _) | (_, None) => {
                let none = match alignment.of {
                    0 => "it launched nothing on the graph's groups".to_string(),
                    of => format!(
                        "none of its last launches is one of the graph's ({of} are on the graph's groups)"
                    ),
                };
                aligned.lines.push(none);
            }
            ([last], Some(place)) => {
                let fits = fits_words(&alignment);
                aligned.lines.push(format!(
                    "{fits}: the last is {}, launched as {}",
                    on(last),
                    launch(place.launch)
                ));
                let next = (place.operation + 1) % operations.len().max(1);
                aligned.next = operations.get(next);
                if let Some(next) = aligned.next {
                    let again = if place.operation + 1 == operations.len() {
                        ", the first of its next run"
                    } else {
                        ""
                    };
                    aligned.lines.push(format!("after it the graph launches {}{again}", on(next)));
                }
            }
            (several, Some(place)) => {
                let shown: Vec<String> = several.iter().take(LISTED).map(|operation| on(operation)).collect();
                let more = several.len().saturating_sub(LISTED);
                let more = if more > 0 { format!(", or {more} more") } else { String::new() };
                let fits = fits_words(&alignment);
                aligned.lines.push(format!(
                    "{fits}, in {} places: the last, {}, may be {}{more}",
                    several.len(),
                    launch(place.launch),
                    shown.join(", or ")
                ));
            }
        }
        if let Some(deviates) = alignment.deviates {
            aligned
                .lines
                .push(format!("it launched {}, which the graph does not launch there", launch(deviates)));
        }
        for launch in flights.waiting(rank) {
            let is_it = |place: &&flight::Place| of.launches.get(place.launch) == Some(launch);
            let operation =
                alignment.row.iter().rev().find(is_it).and_then(|place| operations.get(place.operation));
            if let Some(operation) = operation {
                let (number, group) = (launch.number, flights.group_name(launch.group));
                aligned.lines.push(format!("it waits at {number} of {group}, which is {}", on(operation)));
            }
        }
        for &group in &alignment.unknown_groups {
            aligned.lines.push(format!(
                "{}: the graph has no such group; what it launched there is left out",
                flights.group_name(group)
            ));
        }
        if alignment.without_sizes {
            aligned
                .lines
                .push("sizes of the graph are not known: kinds and groups alone are compared".to_string());
        }
        aligned
    }
}

/// `the last 3 of its 5 launches on the graph's groups fit the graph`
fn fits_words(alignment: &Alignment) -> String {
    let (fits, of) = (alignment.fits, alignment.of);
    let of = if of == 1 { "its launch".to_string() } else { format!("its {of} launches") };
    format!("{fits} in a row of {of} on the graph's groups fit the graph")
}

/// Ranks that did the same, together: `ranks 0, 1, 4`.
fn parts(meeting: &Meeting) -> Vec<(Vec<u32>, &str)> {
    let mut parts: Vec<(Vec<u32>, &str)> = Vec::new();
    for part in &meeting.parts {
        match parts.iter_mut().find(|(_, words)| *words == part.words) {
            Some((ranks, _)) => ranks.push(part.rank),
            None => parts.push((vec![part.rank], &part.words)),
        }
    }
    parts
}

/// `rank 3`, `ranks 0, 1, 2 and 13 more`
fn ranks_words(ranks: &[u32]) -> String {
    const SHOWN: usize = 16;
    let shown: Vec<String> = ranks.iter().take(SHOWN).map(u32::to_string).collect();
    let more = match ranks.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{} {}{more}", if ranks.len() == 1 { "rank" } else { "ranks" }, shown.join(", "))
}

fn text_of(flights: &Flights, report: &FlightReport, aligned: &[Aligned]) -> String {
    let mut text = String::new();
    let mut meeting = |meeting: &Meeting, why: &str| {
        let _ = writeln!(text, "{}, collective {}: {why}", flights.group_name(meeting.group), meeting.number);
        for (ranks, words) in parts(meeting) {
            let _ = writeln!(text, "  {}: {words}", ranks_words(&ranks));
        }
    };
    for mismatch in &report.mismatches {
        meeting(mismatch, mismatch.mismatch.as_deref().unwrap_or(""));
    }
    for wait in &report.waits {
        meeting(wait, &wait_words(wait));
    }
    if let Some(missing) = missing_words(report) {
        text.insert_str(0, &format!("{missing}\n"));
    }
    for message in &report.messages {
        let _ = writeln!(text, "message: {message}");
    }
    for aligned in aligned {
        for (i, line) in aligned.lines.iter().enumerate() {
            let head = format!("rank {}:", aligned.rank);
            let _ = writeln!(text, "{} {line}", if i == 0 { head } else { " ".repeat(head.len()) });
        }
    }
    let (dumps, compared) = (flights.ranks.len(), report.compared);
    let dumps = if dumps == 1 { "1 dump".to_string() } else { format!("{dumps} dumps") };
    let what = match report.is_in_order() {
        Some(true) => "all that is recorded is complete, and the ranks agree",
        Some(false) if !report.mismatches.is_empty() => "the ranks do not launch the same",
        Some(false) if report.waits.iter().any(|wait| wait.is_given_up) => "the watchdog gave up",
        Some(false) => "not every rank left a dump",
        None if report.waits.is_empty() && report.messages.is_empty() => {
            "no rank waits; the dumps do not say more"
        }
        None => "ranks wait; whether they would have gone on, a dump does not say",
    };
    let _ = writeln!(text, "{dumps}, {compared} collectives compared between ranks: {what}");
    for note in &report.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// The ranks without a dump.
fn missing_words(report: &FlightReport) -> Option<String> {
    let why = "no dump: the process died before it wrote one, or the dump was not given";
    (!report.missing.is_empty()).then(|| format!("{}: {why}", ranks_words(&report.missing)))
}

/// How far a collective came at which some rank waits, and for which ranks.
fn wait_words(wait: &Meeting) -> String {
    let state = if wait.is_given_up { "given up by the watchdog" } else { "not complete" };
    let behind: Vec<u32> = wait.parts.iter().filter(|part| part.is_behind).map(|part| part.rank).collect();
    match &behind[..] {
        [] => state.to_string(),
        [_] => format!("{state}: {} has not come to it", ranks_words(&behind)),
        _ => format!("{state}: {} have not come to it", ranks_words(&behind)),
    }
}

/// For the tools of others: a notice for each meeting that is not in order.
fn results_of(flights: &Flights, report: &FlightReport, path: Option<&PathBuf>) -> Results {
    let told = |level: Level, words: &str| notice("flight/in-order", level, words, path.map(Place::file));
    let meeting = |meeting: &Meeting, level: Level, why: &str| {
        let group = flights.group_name(meeting.group);
        let parts =
            parts(meeting).into_iter().map(|(ranks, words)| format!("\n{}: {words}", ranks_words(&ranks)));
        told(level, &format!("{group}, collective {}: {why}{}", meeting.number, parts.collect::<String>()))
    };
    let mismatches = report.mismatches.iter();
    let mismatches =
        mismatches.map(|one| meeting(one, Level::Error, one.mismatch.as_deref().unwrap_or("not the same")));
    let waits = report.waits.iter().map(|wait| match wait.is_given_up {
        true => meeting(wait, Level::Error, &wait_words(wait)),
        false => meeting(wait, Level::Note, &wait_words(wait)),
    });
    let messages = report.messages.iter().map(|message| told(Level::Note, message));
    let missing = missing_words(report).map(|words| told(Level::Error, &words)).into_iter();
    let told = missing.chain(mismatches).chain(waits).chain(messages).collect();
    let name = format!("{} dumps: complete, and the ranks agree", flights.ranks.len());
    let results = one("simulate --flight", &name, "flight/in-order", report.is_in_order(), told);
    Results { notes: report.notes.clone(), ..results }
}

fn json_of(flights: &Flights, report: &FlightReport, aligned: &[Aligned]) -> Value {
    let meeting = |meeting: &Meeting| {
        let parts = parts(meeting).into_iter().map(|(ranks, words)| json!({ "ranks": ranks, "what": words }));
        json!({
            "group": flights.groups.get(meeting.group).map(|group| &group.name),
            "number": meeting.number,
            "mismatch": meeting.mismatch,
            "given_up": meeting.is_given_up,
            "parts": parts.collect::<Vec<_>>(),
        })
    };
    let beside = aligned.iter().map(|aligned| {
        let names: Vec<&str> =
            aligned.last.iter().take(LISTED).map(|operation| operation.name.as_str()).collect();
        json!({
            "rank": aligned.rank,
            "last": names,
            "places": aligned.last.len(),
            "next": aligned.next.map(|operation| &operation.name),
            "lines": aligned.lines,
        })
    });
    json!({
        "flight_version": "graph-oracle-flight/1",
        "in_order": report.is_in_order(),
        "ranks": flights.ranks.keys().collect::<Vec<_>>(),
        "missing": report.missing,
        "compared": report.compared,
        "mismatches": report.mismatches.iter().map(meeting).collect::<Vec<_>>(),
        "waits": report.waits.iter().map(meeting).collect::<Vec<_>>(),
        "messages": report.messages,
        "graph": beside.collect::<Vec<_>>(),
        "notes": report.notes,
    })
}
