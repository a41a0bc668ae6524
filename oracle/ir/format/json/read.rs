//! Documents and nodes.

use super::keys::{Field, Key, Unknown, Within, keys, next_field};
use super::offsets;
use super::outcome::{Outcome, RankOutcome};
use super::read_blocks::{self, Hole};
use super::read_head::{ByName, ClusterEntry, FactsSeed, GroupItem, RenameEntry, WorldEntry};
use super::read_node::NodesSeed;
use super::read_parts::{Integer, Word};
use super::{Document, FXJSON, GRAPH_ORACLE, Position, ReadError};
use crate::graph::{
    Cluster, Dim, Graph, NodeId, OrderingEdge, Out, Rename, Span, Str, Symbol, Tensor, TensorId, Value,
};
use crate::words::held;
use rustc_hash::FxHashSet;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Bytes of JSON that one node takes in recorded graphs, about; only used to reserve room.
pub(super) const BYTES_PER_NODE: usize = 260;

/// Bytes from which on a document is read by several threads. At half of it, handing out the work costs what it saves.
const LARGE: usize = 1 << 19;

/// Reads a document from JSON text.
pub(super) fn document(text: &[u8]) -> Result<Document, ReadError> {
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(ReadError::new("the file is empty"));
    }
    // Ids and spans are 32-bit; every node and value takes more than one byte of text.
    if u32::try_from(text.len()).is_err() {
        return Err(ReadError::new(format_args!("{} bytes of JSON; at most 4 GiB can be read", text.len())));
    }
    // Checked once here, so that it need not be checked string by string.
    let text = std::str::from_utf8(text).map_err(|error| {
        let at = Position::of(text, error.valid_up_to());
        ReadError { at: Some(at), ..ReadError::new("not UTF-8 text") }
    })?;
    if text.len() >= LARGE
        && crate::threads::count() > 1
        && let Some(document) = read_blocks::document(text, read_blocks::LEAST)
    {
        return Ok(document);
    }
    whole(text)
}

/// Reads a document by one thread from its first byte to the last.
pub(super) fn whole(text: &str) -> Result<Document, ReadError> {
    parse(text, text.len() / BYTES_PER_NODE, None).map_err(|error| ReadError::from_json(&error))
}

/// Reads a document. `nodes` is how many to reserve room for; they may stand elsewhere.
pub(super) fn parse(text: &str, nodes: usize, elsewhere: Option<&Hole<'_>>) -> serde_json::Result<Document> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let seed = DocumentSeed { input: text.as_bytes(), nodes, nested: false, elsewhere };
    let document = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(document)
}

/// A name that is used before it can be resolved.
pub(super) type Mentioned = (Str, Option<usize>);

/// A graph under construction.
pub(super) struct Builder<'i> {
    pub input: &'i [u8],
    pub graph: Graph,
    /// Elements of lists that are still open.
    pub values: Vec<Value>,
    /// Parts of tuples that are still open.
    pub outs: Vec<Out>,
    /// The shape or strides being read.
    pub dims: Vec<Dim>,
    /// The keywords of the node being read.
    pub keywords: FxHashSet<Str>,
    /// Whether a reference could not be resolved when it was read.
    unresolved: bool,
    /// `after` entries: the name that comes before, and the node.
    pub after: Vec<(Mentioned, NodeId)>,
    /// Tensors whose offset is left out, in order.
    pub without_offset: Vec<TensorId>,
    /// The two names of each rename.
    pub renames: Vec<[Mentioned; 2]>,
    /// Name and members of each cluster.
    pub clusters: Vec<(String, Vec<Mentioned>)>,
}

impl<'i> Builder<'i> {
    pub fn new(input: &'i [u8], nodes: usize) -> Builder<'i> {
        Builder {
            input,
            graph: Graph::with_capacity(nodes),
            values: Vec::new(),
            outs: Vec::new(),
            dims: Vec::new(),
            keywords: FxHashSet::default(),
            unresolved: false,
            after: Vec::new(),
            without_offset: Vec::new(),
            renames: Vec::new(),
            clusters: Vec::new(),
        }
    }

    /// Stores what the stack holds from `start` on.
    pub fn close_values(&mut self, start: usize) -> Span {
        let span = self.graph.push_values(&self.values[start..]);
        self.values.truncate(start);
        span
    }

    /// Stores what the stack holds from `start` on.
    pub fn close_outs(&mut self, start: usize) -> Span {
        let span = self.graph.push_outs(&self.outs[start..]);
        self.outs.truncate(start);
        span
    }

    /// A reference by name.
    pub fn reference(&mut self, name: Str) -> Value {
        match self.graph.named(name) {
            Some(node) => Value::Node(node),
            None => {
                self.unresolved = true;
                Value::Dangling(name)
            }
        }
    }

    /// Puts the nodes that another builder has read behind those of this one.
    pub fn append(&mut self, block: &Builder<'_>) {
        let nodes = self.graph.len() as u32;
        let tensors = self.graph.tensor_count() as u32;
        self.without_offset.extend(block.without_offset.iter().map(|id| TensorId(id.0 + tensors)));
        let strings = self.graph.append(&block.graph);
        self.unresolved |= block.unresolved;
        self.after.extend(
            block
                .after
                .iter()
                .map(|&((before, offset), node)| ((strings[before.index()], offset), NodeId(node.0 + nodes))),
        );
    }

    /// What is wrong with a tensor, if anything is.
    pub fn check_tensor(&self, tensor: &Tensor) -> Result<(), String> {
        let (shape, stride) = (self.graph.dims(tensor.shape), self.graph.dims(tensor.stride));
        if shape.len() != stride.len() {
            return Err(format!("shape has {} dimensions, stride has {}", shape.len(), stride.len()));
        }
        if self.graph.bytes(tensor).is_none() && shape.iter().all(|dim| dim.known().is_some()) {
            return Err("shape has more than 9223372036854775807 bytes".to_string());
        }
        Ok(())
    }

    /// The first node of a mentioned name.
    fn resolve<E: Error>(&self, (name, offset): Mentioned, whose: impl fmt::Display) -> Result<NodeId, E> {
        self.graph.named(name).ok_or_else(|| {
            let message = format!("{whose} names {:?}, but no node has that name", self.graph.text(name));
            match offset.map(|offset| Position::of(self.input, offset)) {
                // serde_json takes the position from the text.
                Some(Position { line, column }) => {
                    E::custom(format_args!("{message} at line {line} column {column}"))
                }
                None => E::custom(message),
            }
        })
    }

    /// Resolves all names. `extra` is what else the document holds.
    fn finish<E: Error>(mut self, mut extra: Vec<(String, String)>) -> Result<Graph, E> {
        if self.unresolved {
            self.graph.resolve_references();
        }
        for &(before, after) in &self.after {
            let before = self.resolve(before, format_args!("node {:?}: after", self.graph.name(after)))?;
            self.graph.ordering.push(OrderingEdge { before, after });
        }
        for &[by, of] in &self.renames {
            let (by, of) = (self.resolve(by, "renames: by")?, self.resolve(of, "renames: of")?);
            self.graph.renames.push(Rename { by, of });
        }
        for (name, members) in &self.clusters {
            let place = format!("cluster {name:?}");
            let members =
                members.iter().map(|&member| self.resolve(member, &place)).collect::<Result<_, E>>()?;
            self.graph.clusters.push(Cluster { name: name.clone(), members });
        }
        for (_, text) in extra.extract_if(.., |(key, _)| key == SUBGRAPHS) {
            let bodies: Bodies = serde_json::from_str(&text).map_err(E::custom)?;
            self.graph.subgraphs.extend(bodies.0);
            self.graph.check_bodies().map_err(E::custom)?;
        }
        offsets::complete(&mut self.graph, &self.without_offset);
        self.graph.extra = extra;
        self.graph.shrink_to_fit();
        Ok(self.graph)
    }
}

/// The key of the bodies of higher-order operators, by attribute: each a list of nodes, or, where it has bodies of its
/// own, an object with `nodes` and `subgraphs`.
const SUBGRAPHS: &str = "subgraphs";

struct Bodies(Vec<(String, Arc<Graph>)>);

impl<'de> Deserialize<'de> for Bodies {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bodies, D::Error> {
        struct Of;
        impl<'de> Visitor<'de> for Of {
            type Value = Bodies;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object that holds a list of nodes for each sub-graph")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Bodies, A::Error> {
                let mut bodies = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    let Body(body) = map
                        .next_value()
                        .map_err(|error| A::Error::custom(format_args!("sub-graph {name:?}: {error}")))?;
                    bodies.push((held(&name).into_owned(), Arc::new(body)));
                }
                Ok(Bodies(bodies))
            }
        }
        deserializer.deserialize_map(Of)
    }
}

struct Body(Graph);

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Body, D::Error> {
        struct Of;
        impl<'de> Visitor<'de> for Of {
            type Value = Body;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of nodes, or an object with `nodes` and `subgraphs`")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Body, A::Error> {
                let mut builder = Builder::new(&[], 0);
                NodesSeed(&mut builder).visit_seq(seq)?;
                Ok(Body(builder.finish(Vec::new())?))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Body, A::Error> {
                let (mut builder, mut bodies) = (Builder::new(&[], 0), Bodies(Vec::new()));
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "nodes" => map.next_value_seed(NodesSeed(&mut builder))?,
                        SUBGRAPHS => bodies = map.next_value()?,
                        _ => return Err(A::Error::unknown_field(&key, &["nodes", SUBGRAPHS])),
                    }
                }
                let mut body = builder.finish(Vec::new())?;
                body.subgraphs = bodies.0.into_iter().collect();
                Ok(Body(body))
            }
        }
        deserializer.deserialize_any(Of)
    }
}

keys!(DocumentKey {
    SchemaVersion "schema_version",
    Name "name",
    Kind "kind",
    World "world",
    Groups "groups",
    Symbols "symbols",
    Guards "guards",
    NumNodes "num_nodes",
    Renames "renames",
    Clusters "clusters",
    Ops "ops",
    Nodes "nodes",
    Pass "pass",
    Ranks "ranks",
    Refused "refused",
});

impl DocumentKey {
    /// Keys that only an outcome has; in a graph they are unknown keys.
    fn is_of_outcome(self) -> bool {
        matches!(self, DocumentKey::Pass | DocumentKey::Ranks | DocumentKey::Refused)
    }

    /// Keys that only a graph has.
    const OF_GRAPH: [DocumentKey; 9] = {
        use DocumentKey::*;
        [World, Groups, Symbols, Guards, NumNodes, Renames, Clusters, Ops, Nodes]
    };
}

/// The `kind` of an outcome.
pub(super) const OUTCOME: &str = "outcome";

/// A document, or a graph inside one.
struct DocumentSeed<'i> {
    input: &'i [u8],
    /// How many nodes to reserve room for.
    nodes: usize,
    nested: bool,
    /// The nodes, if they were taken out of the input.
    elsewhere: Option<&'i Hole<'i>>,
}

impl<'de> DeserializeSeed<'de> for DocumentSeed<'_> {
    type Value = Document;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Document, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for DocumentSeed<'_> {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object that holds a graph")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let mut reader = DocumentReader {
            builder: Builder::new(self.input, self.nodes),
            nested: self.nested,
            elsewhere: self.elsewhere,
            seen: 0,
            unknown: Unknown::default(),
            num_nodes: None,
            pass: String::new(),
            ranks: None,
            refused: None,
        };
        while let Some(field) = next_field::<DocumentKey, A>(&mut map, &mut reader.seen)? {
            match field {
                Field::Known(key) if key.is_of_outcome() && !reader.is_outcome() => {
                    reader.unknown.keep(key.name(), &mut map)?;
                }
                Field::Known(key) => reader.read(key, &mut map)?,
                Field::Unknown(key) => reader.unknown.keep(&key, &mut map)?,
            }
        }
        reader.finish()
    }
}

struct DocumentReader<'i> {
    builder: Builder<'i>,
    nested: bool,
    elsewhere: Option<&'i Hole<'i>>,
    seen: u32,
    unknown: Unknown,
    num_nodes: Option<i64>,
    pass: String,
    ranks: Option<Vec<RankOutcome>>,
    refused: Option<String>,
}

impl DocumentReader<'_> {
    fn is_outcome(&self) -> bool {
        self.builder.graph.kind == OUTCOME
    }

    fn has(&self, key: DocumentKey) -> bool {
        self.seen & key.bit() != 0
    }

    fn read<'de, A: MapAccess<'de>>(&mut self, key: DocumentKey, map: &mut A) -> Result<(), A::Error> {
        let builder = &mut self.builder;
        let result = match key {
            DocumentKey::SchemaVersion => map.next_value_seed(Word(known_version)),
            DocumentKey::Name => {
                map.next_value::<String>().map(|name| builder.graph.name = held(&name).into_owned())
            }
            DocumentKey::Kind => map.next_value().map(|kind| builder.graph.kind = kind),
            DocumentKey::World => {
                map.next_value::<WorldEntry>().map(|world| builder.graph.world.ranks = Some(world.ranks))
            }
            DocumentKey::Groups => map.next_value_seed(ByName::<GroupItem>(&mut builder.graph, PhantomData)),
            DocumentKey::Symbols => map.next_value_seed(ByName::<Symbol>(&mut builder.graph, PhantomData)),
            DocumentKey::Guards => map.next_value().map(|guards| builder.graph.guards = guards),
            DocumentKey::NumNodes => map.next_value_seed(Integer::SIZE).map(|n| self.num_nodes = Some(n)),
            DocumentKey::Renames => map.next_value::<Vec<RenameEntry<'de>>>().map(|renames| {
                for rename in renames {
                    let pair = [rename.by.mention(builder), rename.of.mention(builder)];
                    builder.renames.push(pair);
                }
            }),
            DocumentKey::Clusters => map.next_value::<Vec<ClusterEntry<'de>>>().map(|clusters| {
                for cluster in clusters {
                    let members = cluster.members.iter().map(|member| member.mention(builder)).collect();
                    builder.clusters.push((held(&cluster.name).into_owned(), members));
                }
            }),
            DocumentKey::Ops => map.next_value_seed(FactsSeed(&mut builder.graph)),
            // A node says where it is; "nodes" would add nothing.
            DocumentKey::Nodes => {
                match self.elsewhere {
                    Some(hole) => hole.read(builder, map)?,
                    None => map.next_value_seed(NodesSeed(builder))?,
                }
                return self.check_count();
            }
            DocumentKey::Pass => map.next_value().map(|pass| self.pass = pass),
            DocumentKey::Ranks => {
                map.next_value_seed(RanksSeed(builder.input)).map(|ranks| self.ranks = Some(ranks))
            }
            DocumentKey::Refused => map.next_value().map(|reason| self.refused = Some(reason)),
        };
        result.within(key.name())
    }

    fn check_count<E: Error>(&self) -> Result<(), E> {
        match self.num_nodes {
            Some(stated) if self.has(DocumentKey::Nodes) && stated != self.builder.graph.len() as i64 => {
                let found = self.builder.graph.len();
                Err(E::custom(format_args!("num_nodes is {stated}, but there are {found} nodes")))
            }
            _ => Ok(()),
        }
    }

    fn finish<E: Error>(self) -> Result<Document, E> {
        if !self.has(DocumentKey::SchemaVersion) && !self.nested {
            return Err(E::custom(format_args!("no schema_version (known: {FXJSON}, {GRAPH_ORACLE})")));
        }
        if self.is_outcome() {
            return self.finish_outcome();
        }
        if !self.has(DocumentKey::Nodes) {
            return Err(E::custom("a graph without nodes: the key \"nodes\" is missing"));
        }
        self.check_count()?;
        let graph = self.builder.finish(self.unknown.into_fields())?;
        Ok(Document::Graph(Box::new(graph)))
    }

    fn finish_outcome<E: Error>(self) -> Result<Document, E> {
        if self.nested {
            return Err(E::custom("an outcome inside an outcome"));
        }
        if let Some(key) = DocumentKey::OF_GRAPH.into_iter().find(|&key| self.has(key)) {
            return Err(E::custom(format_args!("an outcome has no {:?}", key.name())));
        }
        let extra = self.unknown.into_fields();
        let early = |key: &str| DocumentKey::parse(key).is_some_and(DocumentKey::is_of_outcome);
        if let Some((key, _)) = extra.iter().find(|(key, _)| early(key)) {
            return Err(E::custom(format_args!("{key:?} of an outcome must come after \"kind\"")));
        }
        let result = match (self.ranks, self.refused) {
            (Some(ranks), None) => Ok(ranks),
            (None, Some(reason)) => Err(reason),
            _ => return Err(E::custom("an outcome has either \"ranks\" or \"refused\"")),
        };
        Ok(Document::Outcome(Outcome { name: self.builder.graph.name, pass: self.pass, result, extra }))
    }
}

fn known_version(version: &str) -> Result<(), String> {
    match version {
        FXJSON | GRAPH_ORACLE => Ok(()),
        _ => Err(format!("unknown version {version:?} (known: {FXJSON}, {GRAPH_ORACLE})")),
    }
}

/// The ranks of an outcome.
struct RanksSeed<'i>(&'i [u8]);

impl<'de> DeserializeSeed<'de> for RanksSeed<'_> {
    type Value = Vec<RankOutcome>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for RanksSeed<'_> {
    type Value = Vec<RankOutcome>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects, one per rank")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut ranks: Vec<RankOutcome> = Vec::new();
        let mut seen = FxHashSet::default();
        while let Some(rank) = seq.next_element_seed(RankSeed(self.0)).within(ranks.len())? {
            if !seen.insert(rank.rank) {
                return Err(A::Error::custom(format_args!("rank {} twice", rank.rank)));
            }
            ranks.push(rank);
        }
        Ok(ranks)
    }
}

keys!(RankKey { Rank "rank", Unrepaired "unrepaired", Repaired "repaired" });

struct RankSeed<'i>(&'i [u8]);

impl<'de> DeserializeSeed<'de> for RankSeed<'_> {
    type Value = RankOutcome;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RankOutcome, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RankSeed<'_> {
    type Value = RankOutcome;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a rank and its graphs")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RankOutcome, A::Error> {
        let (mut seen, mut unknown) = (0, Unknown::default());
        let (mut rank, mut unrepaired, mut repaired) = (None, None, None);
        while let Some(field) = next_field::<RankKey, A>(&mut map, &mut seen)? {
            let mut graph = || match map.next_value_seed(DocumentSeed {
                input: self.0,
                nodes: 0,
                nested: true,
                elsewhere: None,
            })? {
                Document::Graph(graph) => Ok(Some(*graph)),
                Document::Outcome(_) => Err(A::Error::custom("an outcome inside an outcome")),
            };
            match field {
                Field::Known(RankKey::Rank) => {
                    rank = Some(map.next_value_seed(Integer::U32).within("rank")? as u32);
                }
                Field::Known(RankKey::Unrepaired) => unrepaired = graph().within("unrepaired")?,
                Field::Known(RankKey::Repaired) => repaired = graph().within("repaired")?,
                Field::Unknown(key) => unknown.keep(&key, &mut map)?,
            }
        }
        let missing = |key: &str| A::Error::custom(format_args!("no {key:?}"));
        Ok(RankOutcome {
            rank: rank.ok_or_else(|| missing("rank"))?,
            unrepaired,
            repaired: repaired.ok_or_else(|| missing("repaired"))?,
            extra: unknown.into_fields(),
        })
    }
}
