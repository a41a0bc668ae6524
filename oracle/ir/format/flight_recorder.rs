//! Dumps of PyTorch's flight recorder: the collectives that one rank launched, and how far each came.
//!
//! # The idea
//!
//! Each rank keeps a ring of its last launches and writes it when a collective times out, or on request, as a pickle
//! (`_dump_nccl_trace`, `_dump_fr_trace`) or as JSON. An [`Entry`] is an operation; the operations of a coalesced
//! launch have one sequence number. A dump does not say of which rank it is: its file's name does.
//!
//! Sources: `torch/csrc/distributed/c10d/FlightRecorder.hpp`, `FlightRecorderDetail.hpp`, and
//! `torch/distributed/flight_recorder` of PyTorch 2.15 (version 2.10 of the format).
//!
//! # What it does not do
//!
//! Stacks and times are not read. Versions before 2.3, which have one sequence for collectives and messages, are
//! refused.

use super::objects::{Allowance, Item};
use crate::graph::Dtype;
use crate::limits::Limit;

/// What one rank recorded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlightDump {
    /// The version of the format.
    pub version: String,
    /// The process groups of which the dump knows the ranks.
    pub groups: Vec<RecordedGroup>,
    /// The launches, in order.
    pub entries: Vec<Entry>,
}

/// A process group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedGroup {
    /// Its name.
    pub name: String,
    /// Its ranks, in the order of the group.
    pub ranks: Vec<u32>,
}

/// How far an operation came.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum State {
    /// It was launched, and has not begun.
    Scheduled,
    /// It has begun.
    Started,
    /// It is complete.
    Completed,
}

impl State {
    /// PyTorch's word.
    pub fn name(self) -> &'static str {
        match self {
            State::Scheduled => "scheduled",
            State::Started => "started",
            State::Completed => "completed",
        }
    }
}

/// One operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its number among all that the rank recorded, from 0.
    pub record: i64,
    /// The name of its process group.
    pub group: String,
    /// What the group is called for people.
    pub description: String,
    /// The number of its launch among the collectives of the group.
    pub collective: i64,
    /// The number of its launch among the messages.
    pub message: i64,
    /// Whether it is between two ranks.
    pub is_message: bool,
    /// What it does, without the library: `all_reduce`, `_all_gather_base`, `send 0->1`.
    pub operation: String,
    /// The sizes of what goes in.
    pub inputs: Vec<Vec<i64>>,
    /// The sizes of what comes out.
    pub outputs: Vec<Vec<i64>>,
    /// The element types of what goes in, as PyTorch's C++ names them.
    pub input_types: Vec<String>,
    /// Of what comes out.
    pub output_types: Vec<String>,
    /// How far it came.
    pub state: State,
    /// Whether nobody looks after it any more.
    pub is_retired: bool,
}

/// The names of element types in C++.
const TYPES: &[(&str, Dtype)] = &[
    ("Double", Dtype::F64),
    ("Float", Dtype::F32),
    ("Half", Dtype::F16),
    ("BFloat16", Dtype::BF16),
    ("Float8_e4m3fn", Dtype::F8E4M3),
    ("Float8_e5m2", Dtype::F8E5M2),
    ("ComplexFloat", Dtype::C64),
    ("ComplexDouble", Dtype::C128),
    ("Long", Dtype::I64),
    ("Int", Dtype::I32),
    ("Short", Dtype::I16),
    ("Char", Dtype::I8),
    ("Byte", Dtype::U8),
    ("UInt16", Dtype::U16),
    ("UInt32", Dtype::U32),
    ("UInt64", Dtype::U64),
    ("Bool", Dtype::Bool),
];

/// The element type that PyTorch's C++ calls so.
pub fn dtype(name: &str) -> Option<Dtype> {
    TYPES.iter().find(|(known, _)| *known == name).map(|(_, dtype)| *dtype)
}

/// The elements of tensors with these sizes together; `None` where they do not fit 64 bits.
pub fn elements(sizes: &[Vec<i64>]) -> Option<i64> {
    sizes.iter().try_fold(0i64, |sum, dims| {
        let product = dims.iter().try_fold(1i64, |product, &dim| product.checked_mul(dim));
        sum.checked_add(product?)
    })
}

fn field<'o>(of: Item<'o>, key: &str, at: &str) -> Result<Item<'o>, String> {
    of.get(key).ok_or_else(|| format!("{at}: no {key}"))
}

fn integer(of: Item, key: &str, at: &str) -> Result<i64, String> {
    let value = field(of, key, at)?;
    value
        .integer()
        .ok_or_else(|| format!("{at}.{key}: expected a whole number of 64 bits, found {}", value.kind()))
}

fn text<'o>(of: Item<'o>, key: &str, at: &str) -> Result<&'o str, String> {
    let value = field(of, key, at)?;
    value.text().ok_or_else(|| format!("{at}.{key}: expected text, found {}", value.kind()))
}

fn list<'o>(of: Item<'o>, at: &str, allowance: &Allowance) -> Result<Vec<Item<'o>>, String> {
    let items = of.items().ok_or_else(|| format!("{at}: expected a list, found {}", of.kind()))?;
    allowance.take(items.len())?;
    Ok(items.collect())
}

/// A list of lists of sizes; older writers put the sizes of one tensor in one list.
fn sizes(of: Item, key: &str, at: &str, allowance: &Allowance) -> Result<Vec<Vec<i64>>, String> {
    let at = format!("{at}.{key}");
    let size = |item: Item| item.integer().filter(|&size| size >= 0).ok_or_else(|| format!("{at}: no size"));
    let tensor = |dims: Item| -> Result<Vec<i64>, String> {
        let dims = list(dims, &at, allowance)?;
        match dims.len() as u64 > Limit::Dimensions.standard() {
            true => Err(format!("{at}: a tensor of {} dimensions", dims.len())),
            false => dims.into_iter().map(size).collect(),
        }
    };
    list(of.get(key).ok_or_else(|| format!("{at}: not there"))?, &at, allowance)?
        .into_iter()
        .map(tensor)
        .collect()
}

/// A list of names, empty where the version does not have them.
fn names(of: Item, key: &str, at: &str, allowance: &Allowance) -> Result<Vec<String>, String> {
    let Some(value) = of.get(key) else { return Ok(Vec::new()) };
    let at = format!("{at}.{key}");
    let name = |item: Item| item.text().map(str::to_string).ok_or_else(|| format!("{at}: expected text"));
    list(value, &at, allowance)?.into_iter().map(name).collect()
}

/// `"[0, 1]"`, as the recorder writes ranks, or a list of numbers.
fn ranks(of: Item, at: &str, allowance: &Allowance) -> Result<Vec<u32>, String> {
    let rank =
        |number: i64| u32::try_from(number).ok().filter(|&rank| u64::from(rank) < Limit::Ranks.standard());
    let wrong = || format!("{at}.ranks: expected ranks such as \"[0, 1]\"");
    let ranks: Option<Vec<u32>> = match (of.text(), of.length()) {
        (Some(text), _) => {
            let inner =
                text.trim().strip_prefix('[').and_then(|text| text.strip_suffix(']')).ok_or_else(wrong)?;
            let words = inner.split(',').map(str::trim).filter(|word| !word.is_empty());
            words.map(|word| word.parse().ok().and_then(rank)).collect()
        }
        (None, Some(_)) => {
            list(of, at, allowance)?.into_iter().map(|item| item.integer().and_then(rank)).collect()
        }
        (None, None) => None,
    };
    let ranks = ranks.ok_or_else(wrong)?;
    allowance.take(ranks.len())?;
    Ok(ranks)
}

/// Reads a dump.
///
/// # Errors
/// Where it has another form; the error says at which item.
pub fn read(root: Item, allowance: &Allowance) -> Result<FlightDump, String> {
    let version = text(root, "version", "the dump")?.to_string();
    let mut dump = FlightDump { version, ..FlightDump::default() };
    if let Some(groups) = root.get("pg_config").and_then(Item::pairs) {
        allowance.take(groups.len())?;
        for (key, group) in groups {
            let name = key.text().ok_or("pg_config: a name that is no text")?;
            let at = format!("pg_config[{name:?}]");
            let ranks = ranks(field(group, "ranks", &at)?, &at, allowance)?;
            dump.groups.push(RecordedGroup { name: name.to_string(), ranks });
        }
    }
    let Some(entries) = root.get("entries") else {
        return Err("the dump has no entries: it was written without collectives".to_string());
    };
    for (i, item) in list(entries, "entries", allowance)?.into_iter().enumerate() {
        dump.entries.push(entry(item, &format!("entries[{i}]"), &dump.version, allowance)?);
    }
    Ok(dump)
}

fn entry(item: Item, at: &str, version: &str, allowance: &Allowance) -> Result<Entry, String> {
    allowance.take(item.pairs().ok_or_else(|| format!("{at}: expected a dictionary"))?.len())?;
    if item.get("collective_seq_id").is_none() {
        return Err(format!(
            "{at}: no collective_seq_id: version {version} of the format is older than what is read (2.3)"
        ));
    }
    let group = list(field(item, "process_group", at)?, at, allowance)?;
    let [Some(name), Some(description)] = [0, 1].map(|i| group.get(i).and_then(|item: &Item| item.text()))
    else {
        return Err(format!("{at}.process_group: expected a name and a description"));
    };
    // What the library is called may hold a colon; what the operation is called does not.
    let full = text(item, "profiling_name", at)?;
    let operation = full.rsplit_once(':').map_or(full, |(_, operation)| operation).to_string();
    let state = match text(item, "state", at)? {
        "scheduled" => State::Scheduled,
        "started" => State::Started,
        "completed" => State::Completed,
        other => return Err(format!("{at}.state: {other:?} is not known")),
    };
    let is_message = match item.get("is_p2p").and_then(Item::truth) {
        Some(truth) => truth,
        None => operation.starts_with("send ") || operation.starts_with("recv "),
    };
    Ok(Entry {
        record: integer(item, "record_id", at)?,
        group: name.to_string(),
        description: description.to_string(),
        collective: integer(item, "collective_seq_id", at)?,
        message: item.get("p2p_seq_id").and_then(Item::integer).unwrap_or(0),
        is_message,
        inputs: sizes(item, "input_sizes", at, allowance)?,
        outputs: sizes(item, "output_sizes", at, allowance)?,
        input_types: names(item, "input_dtypes", at, allowance)?,
        output_types: names(item, "output_dtypes", at, allowance)?,
        state,
        is_retired: item.get("retired").and_then(Item::truth).unwrap_or(false),
        operation,
    })
}

#[cfg(test)]
mod tests {
    use super::super::objects::read_json;
    use super::*;

    fn of(json: &str) -> Result<FlightDump, String> {
        let allowance = Allowance::new(1000);
        let objects = read_json(json.as_bytes(), &allowance).unwrap();
        read(objects.root(), &allowance)
    }

    const ENTRY: &str = r#""record_id":3,"process_group":["0","default_pg"],"collective_seq_id":4,"p2p_seq_id":1,
        "profiling_name":"nccl:_all_gather_base","input_sizes":[[2,3]],"output_sizes":[[4,3]],"input_dtypes":["Float"],
        "output_dtypes":["Float"],"state":"started","retired":true"#;

    fn dump(entry: &str) -> String {
        let config =
            r#"{"0":{"name":"0","desc":"default_pg","ranks":"[0, 1]"},"7":{"ranks":[1]},"8":{"ranks":"[]"}}"#;
        format!(r#"{{"version":"2.10","pg_config":{config},"pg_status":{{}},"entries":[{{{entry}}}]}}"#)
    }

    #[test]
    fn a_dump_is_read() {
        let dump = of(&dump(ENTRY)).unwrap();
        let ranks: Vec<&[u32]> = dump.groups.iter().map(|group| &group.ranks[..]).collect();
        assert_eq!(ranks, [&[0, 1][..], &[1], &[]]);
        let entry = &dump.entries[0];
        assert_eq!((entry.record, entry.collective, entry.message, entry.is_message), (3, 4, 1, false));
        assert_eq!((entry.operation.as_str(), entry.group.as_str()), ("_all_gather_base", "0"));
        assert_eq!((elements(&entry.inputs), elements(&entry.outputs)), (Some(6), Some(12)));
        assert_eq!(
            (entry.state, entry.is_retired, dtype(&entry.input_types[0])),
            (State::Started, true, Some(Dtype::F32))
        );
    }

    #[test]
    fn what_has_another_form_is_refused_with_its_place() {
        let cases = [
            ("{}".to_string(), "the dump: no version"),
            (r#"{"version":"2.4","pg_config":{}}"#.to_string(), "no entries"),
            (dump(""), "entries[0]: no collective_seq_id: version 2.10"),
            (dump(&ENTRY.replace("\"started\"", "\"gone\"")), "entries[0].state: \"gone\" is not known"),
            (dump(&ENTRY.replace("[[2,3]]", "[[2,-3]]")), "entries[0].input_sizes: no size"),
            (
                dump(&ENTRY.replace("[[2,3]]", "[2]")),
                "entries[0].input_sizes: expected a list, found a whole number",
            ),
            (
                dump(&ENTRY.replace("\"record_id\":3", "\"record_id\":1e9")),
                "record_id: expected a whole number",
            ),
            (dump(&ENTRY.replace("[\"0\",\"default_pg\"]", "[0]")), "process_group: expected a name"),
            (dump(ENTRY).replace("[0, 1]", "[0, x]"), "pg_config[\"0\"].ranks: expected ranks"),
            (dump(ENTRY).replace("[0, 1]", "[4294967295]"), "pg_config[\"0\"].ranks: expected ranks"),
        ];
        for (json, why) in cases {
            let error = of(&json).unwrap_err();
            assert!(error.contains(why), "{json}: {error}");
        }
        assert_eq!(elements(&[vec![i64::MAX, 2]]), None);
    }
}
