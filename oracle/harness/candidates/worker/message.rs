//! The messages of docs/protocol.md as they are written and read.

use super::bits::Bits;
use super::claim::ClaimText;
use super::graph_text::append_graph;
use crate::case::{EstimateTable, PassConfig, Setting};
use crate::graph::Graph;
use crate::judge::{Offer, OfferedPromise, Without};
use crate::rules::PassKind;
use crate::semantics::{Executed, ExecutedRank, ExecutionInputs};
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// The version that is spoken.
pub const PROTOCOL: &str = "graph-oracle-worker/1";

/// Any message, as read. Keys that no message has are ignored.
#[derive(Deserialize, Debug)]
pub(super) struct Message<'a> {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(borrow)]
    pub id: Option<&'a RawValue>,
    // hello
    pub protocol: Option<String>,
    pub name: Option<String>,
    pub version: Option<String>,
    #[serde(default)]
    pub bakes_rank: bool,
    #[serde(default)]
    pub keeps_promises: bool,
    pub recycle_after: Option<u64>,
    #[serde(default)]
    pub repro: bool,
    pub passes: Option<BTreeMap<String, Offered>>,
    // run, repro
    pub pass: Option<String>,
    pub options: Option<Options<'a>>,
    #[serde(default)]
    pub rank: u32,
    #[serde(default)]
    pub estimates: Vec<Table>,
    #[serde(borrow)]
    pub graph: Option<&'a RawValue>,
    // outcome
    pub seconds: Option<f64>,
    #[serde(borrow)]
    pub repaired: Option<&'a RawValue>,
    #[serde(borrow)]
    pub unrepaired: Option<&'a RawValue>,
    #[serde(borrow)]
    pub forward: Option<&'a RawValue>,
    #[serde(borrow)]
    pub backward: Option<&'a RawValue>,
    pub claim: Option<ClaimText>,
    pub results: Option<Vec<Vec<Option<Bits>>>>,
    // run, outcome
    pub inputs: Option<Vec<BTreeMap<String, Bits>>>,
    // refused
    pub code: Option<String>,
    pub reason: Option<String>,
    #[serde(borrow)]
    pub left_behind: Option<&'a RawValue>,
    // error
    pub error: Option<String>,
    pub message: Option<String>,
    pub traceback: Option<String>,
    // progress
    pub phase: Option<String>,
    // repro
    pub python: Option<String>,
    pub files: Option<BTreeMap<String, String>>,
}

impl<'a> Message<'a> {
    /// Reads a line.
    pub fn read(line: &'a str) -> Result<Message<'a>, String> {
        serde_json::from_str(line).map_err(|error| error.to_string())
    }

    /// The tensors that a request gives, or that an outcome leaves, by rank.
    pub fn inputs(&self) -> Result<Vec<ExecutionInputs>, String> {
        let of_rank = |tensors: &BTreeMap<String, Bits>| {
            tensors.iter().map(|(name, bits)| Ok((name.clone(), bits.read()?))).collect()
        };
        self.inputs.iter().flatten().map(of_rank).collect()
    }

    /// What an execution gave.
    pub fn executed(&self) -> Result<Executed, String> {
        let results = self.results.as_ref().ok_or("the key results is missing")?;
        let mut inputs = self.inputs()?.into_iter();
        let of_rank = |outputs: &Vec<Option<Bits>>| {
            let read = |bits: &Option<Bits>| bits.as_ref().map(Bits::read).transpose();
            let outputs = outputs.iter().map(read).collect::<Result<_, _>>()?;
            Ok(ExecutedRank { outputs, inputs: inputs.next().unwrap_or_default() })
        };
        Ok(Executed { ranks: results.iter().map(of_rank).collect::<Result<_, String>>()? })
    }

    /// The id as a number.
    pub fn number(&self) -> Option<u64> {
        self.id.and_then(|id| id.get().parse().ok())
    }

    /// The id as it is written; `null` where there is none.
    pub fn id_text(&self) -> &'a str {
        self.id.map_or("null", RawValue::get)
    }
}

/// What is promised where the options of a pass have certain values.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub(super) struct Promised {
    /// By option, its values; an option that is not given has the empty one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub when: BTreeMap<String, Vec<String>>,
    /// The promises, as options of the judge.
    pub options: Options<'static>,
}

/// What is offered for a pass.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug, Default)]
pub(super) struct Offered {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ranks: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub promises: Vec<Promised>,
}

impl Offered {
    /// The terms that it states. Words of a later version are passed over: the worker refuses.
    pub fn terms(&self) -> Offer {
        let promise = |Promised { when, options }: &Promised| OfferedPromise {
            when: when.clone(),
            options: options.0.to_vec(),
        };
        Offer {
            options: self.options.clone(),
            max_ranks: self.max_ranks,
            without: self.without.iter().filter_map(|name| Without::parse(name)).collect(),
            promises: self.promises.iter().map(promise).collect(),
        }
    }

    /// The first option of a promise that the judge of `pass` does not have.
    pub fn unknown_promise(&self, pass: &str) -> Option<&str> {
        let known = PassKind::parse(pass).map_or(&[][..], |pass| pass.row().judge_options);
        let keys = self.promises.iter().flat_map(|promised| promised.options.0.iter());
        keys.map(|(key, _)| key.as_str()).find(|key| !known.contains(key))
    }
}

/// The options of a pass: in order, the values as strings or lists.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Options<'a>(pub Cow<'a, [(String, Setting)]>);

struct Value<'a>(&'a Setting);

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Setting::Text(text) => to.serialize_str(text),
            Setting::List(items) => to.collect_seq(items.iter().map(Value)),
        }
    }
}

impl Serialize for Options<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (key, setting) in self.0.iter() {
            map.serialize_entry(key, &Value(setting))?;
        }
        map.end()
    }
}

struct Read(Setting);

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Read, D::Error> {
        // Lists of lists end at the reader's own limit of nesting.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Text(String),
            List(Vec<Read>),
        }
        let either = Either::deserialize(from)
            .map_err(|_| D::Error::custom("the value of an option is a string or a list of strings"))?;
        Ok(Read(match either {
            Either::Text(text) => Setting::Text(text),
            Either::List(items) => Setting::List(items.into_iter().map(|item| item.0).collect()),
        }))
    }
}

impl<'de> Deserialize<'de> for Options<'_> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Vec<(String, Setting)>;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object of options")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Read>()? {
                    pairs.push((key, value.0));
                }
                Ok(pairs)
            }
        }
        from.deserialize_map(Pairs).map(|pairs| Options(Cow::Owned(pairs)))
    }
}

/// The driver's greeting.
pub(super) fn hello() -> Vec<u8> {
    let driver = concat!("graph-oracle ", env!("CARGO_PKG_VERSION"));
    line(&serde_json::json!({"type": "hello", "protocol": PROTOCOL, "driver": driver}))
}

/// A message on a line.
pub(super) fn line(message: &impl Serialize) -> Vec<u8> {
    // A value whose keys are strings can always be written.
    let mut bytes = serde_json::to_vec(message).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// What is asked for a graph.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Line<'a> {
    #[serde(rename = "type")]
    pub kind: &'a str,
    pub id: u64,
    pub pass: &'a str,
    #[serde(serialize_with = "as_options")]
    pub options: &'a PassConfig,
    pub rank: u32,
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "as_tables")]
    pub estimates: &'a [EstimateTable],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub inputs: &'a [BTreeMap<String, Bits>],
}

/// An estimate table in a message.
#[derive(Serialize, Deserialize, Debug)]
pub(super) struct Table {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rank: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    link: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency: Option<f64>,
    #[serde(default)]
    seconds: Vec<(String, f64)>,
}

impl Table {
    pub fn read(self) -> EstimateTable {
        let Table { rank, memory, link, latency, seconds } = self;
        EstimateTable { rank, memory, link, latency, seconds }
    }
}

fn as_tables<S: Serializer>(tables: &&[EstimateTable], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(tables.iter().map(|table| {
        let EstimateTable { rank, memory, link, latency, seconds } = table.clone();
        Table { rank, memory, link, latency, seconds }
    }))
}

/// The options that concern the pass. What is promised is the judge's business: a worker need not know of it.
fn as_options<S: Serializer>(pass: &&PassConfig, to: S) -> Result<S::Ok, S::Error> {
    let judges = PassKind::parse(&pass.name).map_or(&[][..], |pass| pass.row().judge_options);
    let own = pass.options.iter().filter(|(key, _)| !judges.contains(&key.as_str()));
    Options(Cow::Owned(own.cloned().collect())).serialize(to)
}

impl<'a> Line<'a> {
    /// A request to run a pass as a global rank.
    pub fn run(id: u64, pass: &'a PassConfig, rank: u32) -> Line<'a> {
        let (kind, estimates) = ("run", &pass.estimates[..]);
        let (rule, title, inputs) = (None, None, &[][..]);
        Line { kind, id, pass: &pass.name, options: pass, rank, estimates, rule, title, inputs }
    }

    /// The request with its graph, on a line.
    pub fn bytes(&self, graph: &Graph) -> Vec<u8> {
        line_with_graph(self, graph)
    }
}

/// A message and, as its last key, a graph, on a line.
pub(super) fn line_with_graph(message: &impl Serialize, graph: &Graph) -> Vec<u8> {
    let mut bytes = line(message);
    // In place of the brace and the end of the line.
    bytes.truncate(bytes.len().saturating_sub(2));
    bytes.extend_from_slice(b",\"graph\":");
    append_graph(&mut bytes, graph);
    bytes.extend_from_slice(b"}\n");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_promised_is_not_sent() {
        let sent = |name: &str, options: &[(&str, &str)]| {
            let mut pass = PassConfig::new(name);
            for (key, value) in options {
                pass = pass.with(*key, *value);
            }
            let text = serde_json::to_value(Line::run(1, &pass, 0)).unwrap();
            text["options"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(
            sent("bucketing", &[("cap", "1MiB"), ("promises", "cap"), ("peak_budget", "1.1x")]),
            ["cap"]
        );
        assert_eq!(
            sent("partition", &[("method", "min-cut"), ("reshard_after_forward", "true")]),
            ["method"]
        );
        assert_eq!(sent("memory", &[("method", "lpmf")]), ["method"]);
    }
}
