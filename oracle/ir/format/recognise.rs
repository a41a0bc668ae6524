//! What a file holds, by its contents: so that what cannot be read where it was given is named for what it is.
//!
//! # The idea
//!
//! One table, a row for each kind of file that somebody may have beside a graph: how it is told, what it is called, and
//! what to do with it. It is asked where a file is none of what a command reads. Signatures are looked for in the
//! bytes, and keys at the top of JSON; of a pickle the top is read, without executing anything.
//!
//! # What it does not do
//!
//! It does not say whether the file is in order.

use super::objects::{Allowance, Item, Objects};
use super::{pickle, torch_trace};
use memchr::memmem;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// What a file holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)]
pub enum Kind {
    Graph,
    Events,
    MemorySnapshot,
    Segments,
    FlightRecorder,
    TorchTrace,
    TorchSave,
    ExportedProgram,
    TorchScript,
    Zip,
    OtherPickle,
    ChromeTrace,
    Safetensors,
    Numpy,
    Hlo,
    Mlir,
    Page,
    InductorCode,
    Elf,
}

/// A row of the table.
struct Row {
    kind: Kind,
    /// What it is called.
    name: &'static str,
    /// What to do with it.
    advice: &'static str,
    /// How it is told.
    is: fn(&Sample) -> bool,
}

const EXPORT: &str = "it holds no FX graph as text: capture one (python -m graph_oracle.pytorch capture), or give \
                      what print_readable() prints";

/// Asked from the first row to the last.
const ROWS: &[Row] = &[
    Row {
        kind: Kind::Graph,
        name: "a graph or an outcome as exchange JSON",
        advice: "check, show and the others read it as a graph",
        is: |sample| sample.has_keys(&["schema_version"]),
    },
    Row {
        kind: Kind::Events,
        name: "events of an executor",
        advice: "graph-oracle lifecycle EVENTS judges them",
        is: |sample| sample.has_keys(&["event"]),
    },
    Row {
        kind: Kind::MemorySnapshot,
        name: "a memory snapshot of PyTorch",
        advice: "graph-oracle lifecycle SNAPSHOT judges it, check memory GRAPH --snapshot SNAPSHOT puts it beside a \
                 graph",
        is: |sample| sample.has_keys(&["segments", "device_traces"]),
    },
    Row {
        kind: Kind::Segments,
        name: "the segments of PyTorch's allocator (torch.cuda.memory_snapshot) without a trace",
        advice: "record with torch.cuda.memory._record_memory_history() and save with _dump_snapshot()",
        is: |sample| sample.has_inner("address") && sample.has_inner("blocks"),
    },
    Row {
        kind: Kind::FlightRecorder,
        name: "a dump of PyTorch's flight recorder",
        advice: "graph-oracle simulate GRAPH... --flight DUMP... holds it beside graphs",
        is: |sample| sample.has_keys(&["version", "entries"]) || sample.has_keys(&["version", "pg_config"]),
    },
    Row {
        kind: Kind::ChromeTrace,
        name: "a timeline of a profiler (chrome trace)",
        advice: "it holds kernels, no graph; for the memory of a run take torch.cuda.memory._dump_snapshot(), for its \
                 communication the flight recorder",
        is: |sample| sample.has_keys(&["traceEvents"]) || (sample.has_inner("ph") && sample.has_inner("ts")),
    },
    Row {
        kind: Kind::TorchTrace,
        name: "a file of TORCH_TRACE, which holds many graphs",
        advice: "graph-oracle trace judges them: give it the folder",
        is: |sample| {
            let head = String::from_utf8_lossy(&sample.bytes[..sample.bytes.len().min(1 << 14)]);
            torch_trace::is_trace(head.as_bytes())
        },
    },
    Row {
        kind: Kind::ExportedProgram,
        name: "an exported program of PyTorch (.pt2)",
        advice: EXPORT,
        is: |sample| {
            sample.is_zip()
                && ["serialized_exported_program", "models/model.json", "archive_format"]
                    .iter()
                    .any(|name| sample.contains(name.as_bytes()))
        },
    },
    Row {
        kind: Kind::TorchScript,
        name: "a TorchScript archive",
        advice: EXPORT,
        is: |sample| sample.is_zip() && sample.contains(b"constants.pkl") && sample.contains(b"/code/"),
    },
    Row {
        kind: Kind::TorchSave,
        name: "what torch.save wrote (weights or a checkpoint)",
        advice: "it holds tensors, no graph; a memory snapshot or a flight recorder is saved with pickle.dump, not with \
                 torch.save",
        is: |sample| (sample.is_zip() && sample.contains(b"data.pkl")) || sample.is_old_save,
    },
    Row {
        kind: Kind::Zip,
        name: "a zip archive",
        advice: "unpack it, and give the file in it",
        is: |sample| sample.is_zip(),
    },
    Row {
        kind: Kind::OtherPickle,
        name: "a pickle",
        advice: "it holds neither a memory snapshot nor a flight recorder, and no other pickle is read",
        is: |sample| pickle::is_pickle(sample.bytes),
    },
    Row {
        kind: Kind::Safetensors,
        name: "safetensors",
        advice: "it holds tensors, no graph",
        is: |sample| {
            let length = sample.bytes.first_chunk().map(|&length| u64::from_le_bytes(length));
            sample.bytes.get(8) == Some(&b'{') && length.is_some_and(|n| n <= sample.bytes.len() as u64 - 8)
        },
    },
    Row {
        kind: Kind::Numpy,
        name: "an array of NumPy",
        advice: "it holds numbers, no graph",
        is: |sample| sample.bytes.starts_with(b"\x93NUMPY"),
    },
    Row {
        kind: Kind::Elf,
        name: "a compiled program or library",
        advice: "give the graph from which it was compiled",
        is: |sample| sample.bytes.starts_with(b"\x7fELF"),
    },
    Row {
        kind: Kind::Hlo,
        name: "HLO text of XLA",
        advice: "it is not read here: give the FX graph",
        is: |sample| sample.begins_with("HloModule"),
    },
    Row {
        kind: Kind::Mlir,
        name: "MLIR (StableHLO)",
        advice: "it is not read here: give the FX graph",
        is: |sample| {
            sample.begins_with("module @")
                || sample.begins_with("module attributes")
                || sample.begins_with("#loc")
        },
    },
    Row {
        kind: Kind::Page,
        name: "a page of HTML, such as tlparse makes",
        advice: "give the folder of TORCH_TRACE from which it was made: graph-oracle trace FOLDER",
        is: |sample| {
            ["<!DOCTYPE html", "<!doctype html", "<html"].iter().any(|begin| sample.begins_with(begin))
        },
    },
    Row {
        kind: Kind::InductorCode,
        name: "code that Inductor wrote (output_code)",
        advice: "give the graph from which it was made: run with TORCH_TRACE=FOLDER, then graph-oracle trace FOLDER",
        is: |sample| sample.begins_with("# AOT ID:"),
    },
];

impl Kind {
    fn row(self) -> Option<&'static Row> {
        ROWS.iter().find(|row| row.kind == self)
    }

    /// What it is, and what to do with it, in one line.
    pub fn advice(self) -> String {
        self.row().map_or(String::new(), |row| format!("this is {}: {}", row.name, row.advice))
    }
}

/// What a file holds, where it is of a kind that is known. Of a pickle at most so many objects are read.
pub fn recognise(bytes: &[u8], objects: u64) -> Option<Kind> {
    let sample = Sample::new(bytes, objects);
    ROWS.iter().find(|row| (row.is)(&sample)).map(|row| row.kind)
}

/// The same of objects that are read already; `None` where they are none of a dump.
pub fn recognise_objects(objects: &Objects) -> Option<Kind> {
    let (keys, inner) = keys_of(objects);
    let sample = Sample { bytes: &[], keys, inner, is_old_save: false };
    ROWS.iter().find(|row| (row.is)(&sample)).map(|row| row.kind)
}

/// The keys at the top, and those of the first item of a list.
fn keys_of(objects: &Objects) -> (Vec<String>, Vec<String>) {
    let names = |item: Item| -> Vec<String> {
        let pairs = item.pairs().into_iter().flatten().take(MOST_KEYS);
        pairs.filter_map(|(key, _)| key.text().map(str::to_string)).collect()
    };
    let first = objects.root().items().and_then(|mut items| items.next());
    (names(objects.root()), first.map(names).unwrap_or_default())
}

/// What is looked at.
struct Sample<'b> {
    bytes: &'b [u8],
    /// The keys at the top.
    keys: Vec<String>,
    /// The keys of the first item, where there is a list at the top.
    inner: Vec<String>,
    /// The format of torch.save before 1.6: several pickles, the first of which is a number.
    is_old_save: bool,
}

/// How `torch.save` began a file before it wrote archives: 0x1950a86a20f9469cfc6c as a pickle of protocol 2.
const OLD_SAVE: &[u8] = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";

impl<'b> Sample<'b> {
    fn new(bytes: &'b [u8], objects: u64) -> Sample<'b> {
        let (mut keys, mut inner) = (Vec::new(), Vec::new());
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        if matches!(first, Some(b'{' | b'[')) {
            // A file that is torn has the keys before that.
            let _ = serde_json::Deserializer::from_slice(bytes)
                .deserialize_any(Keys { keys: &mut keys, inner: &mut inner });
        } else if pickle::is_pickle(bytes)
            && let Ok(objects) = pickle::read(bytes, &Allowance::new(objects))
        {
            (keys, inner) = keys_of(&objects);
        }
        Sample { bytes, keys, inner, is_old_save: bytes.starts_with(OLD_SAVE) }
    }

    fn has_keys(&self, keys: &[&str]) -> bool {
        keys.iter().all(|key| self.keys.iter().any(|known| known == key))
    }

    fn has_inner(&self, key: &str) -> bool {
        self.inner.iter().any(|known| known == key)
    }

    fn is_zip(&self) -> bool {
        self.bytes.starts_with(b"PK\x03\x04")
    }

    fn contains(&self, needle: &[u8]) -> bool {
        memmem::find(self.bytes, needle).is_some()
    }

    fn begins_with(&self, text: &str) -> bool {
        self.bytes.trim_ascii_start().starts_with(text.as_bytes())
    }
}

/// Keys that are kept.
const MOST_KEYS: usize = 256;

/// Collects the keys at the top of JSON, and those of the first item of a list.
struct Keys<'k> {
    keys: &'k mut Vec<String>,
    inner: &'k mut Vec<String>,
}

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while let Some(key) = access.next_key::<String>()? {
            if self.keys.len() < MOST_KEYS {
                self.keys.push(key);
            }
            access.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        if let Some(First(keys)) = access.next_element::<First>()? {
            *self.inner = keys;
        }
        Ok(())
    }
}

/// The keys of the first item of a list.
struct First(Vec<String>);

impl<'de> serde::Deserialize<'de> for First {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<First, D::Error> {
        let (mut keys, mut inner) = (Vec::new(), Vec::new());
        deserializer.deserialize_any(Keys { keys: &mut keys, inner: &mut inner })?;
        Ok(First(keys))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zip(names: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for name in names {
            bytes.extend(b"PK\x03\x04");
            bytes.extend([0; 26]);
            bytes.extend(name.as_bytes());
        }
        bytes
    }

    #[test]
    fn each_kind_is_told_from_the_others() {
        let safetensors = [&16u64.to_le_bytes()[..], b"{\"__metadata__\":{}}    "].concat();
        let cases: &[(&[u8], Option<Kind>)] = &[
            (b"{\"schema_version\":\"graph-oracle/1\",\"traceEvents\":1}", Some(Kind::Graph)),
            (b"{\"event\":\"end\"}\n{\"event\":\"end\"}", Some(Kind::Events)),
            (b"{\"segments\":[],\"device_traces\":[]}", Some(Kind::MemorySnapshot)),
            (b"\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces]u.", Some(Kind::MemorySnapshot)),
            (b"[{\"address\":1,\"blocks\":[]}]", Some(Kind::Segments)),
            (b"{\"entries\":[],\"version\":\"2.10\"}", Some(Kind::FlightRecorder)),
            (
                b"\x80\x02}(X\x07\0\0\0versionX\x03\0\0\x002.4X\x09\0\0\0pg_config}u.",
                Some(Kind::FlightRecorder),
            ),
            (b"{\"schemaVersion\":1,\"traceEvents\":[]}", Some(Kind::ChromeTrace)),
            (b"[{\"ph\":\"X\",\"ts\":1}]", Some(Kind::ChromeTrace)),
            (b"V1122 20:08:47.934000 8363 torch/x.py:1861] {\"str\":[\"x\",0]}\n", Some(Kind::TorchTrace)),
            (&zip(&["archive/data.pkl", "archive/data/0"]), Some(Kind::TorchSave)),
            (OLD_SAVE, Some(Kind::TorchSave)),
            (&zip(&["m/archive_format", "m/models/model.json"]), Some(Kind::ExportedProgram)),
            (&zip(&["m/data.pkl", "m/code/x.py", "m/constants.pkl"]), Some(Kind::TorchScript)),
            (&zip(&["a.npy"]), Some(Kind::Zip)),
            (b"\x80\x04cos\nsystem\n.", Some(Kind::OtherPickle)),
            (b"\x80\x04].", Some(Kind::OtherPickle)),
            (&safetensors, Some(Kind::Safetensors)),
            (b"\x93NUMPY\x01\0", Some(Kind::Numpy)),
            (b"\x7fELF\x02", Some(Kind::Elf)),
            (b"HloModule m, entry", Some(Kind::Hlo)),
            (b"module @m {", Some(Kind::Mlir)),
            (b"\n<!DOCTYPE html>\n<html>", Some(Kind::Page)),
            (b"# AOT ID: ['0_inference']\n", Some(Kind::InductorCode)),
            (b"graph x\n", None),
            (b"{}", None),
            (b"[]", None),
            (b"[1]", None),
            (b"[[{\"ph\":1,\"ts\":2}]]", None),
            (b"", None),
        ];
        for (bytes, kind) in cases {
            assert_eq!(recognise(bytes, 1000), *kind, "{:?}", String::from_utf8_lossy(bytes));
            if let Ok(objects) = pickle::read(bytes, &Allowance::new(1000)) {
                // What is told by its bytes is not told by its objects.
                let by_objects = kind.filter(|kind| ![Kind::OtherPickle, Kind::TorchSave].contains(kind));
                assert_eq!(recognise_objects(&objects), by_objects);
            }
        }
    }

    #[test]
    fn every_kind_has_a_row_and_one_line() {
        for row in ROWS {
            assert_eq!(row.kind.row().map(|found| found.name), Some(row.name), "one row for each kind");
            assert!(!row.kind.advice().contains('\n') && row.kind.advice().len() < 260);
        }
    }

    #[test]
    fn a_torn_file_is_told_by_what_is_there() {
        assert_eq!(recognise(b"{\"traceEvents\": [{\"ph\"", 1000), Some(Kind::ChromeTrace));
    }
}
