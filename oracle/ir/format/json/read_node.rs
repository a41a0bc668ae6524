//! Nodes and their tags.

use super::keys::{Field, Key, Unknown, Within, keys, next_field, raw};
use super::read::Builder;
use super::read_head::Name;
use super::read_out::OutSeed;
use super::read_parts::{Integer, Text, Word};
use super::read_value::{ArgsSeed, KwargsSeed};
use crate::graph::{Graph, Node, NodeId, Op, Out, Span, Str, Tags, TargetId};
use crate::words::held;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// The nodes of a graph.
pub(super) struct NodesSeed<'b, 'i>(pub &'b mut Builder<'i>);

impl<'de> DeserializeSeed<'de> for NodesSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for NodesSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of nodes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(NodeSeed(self.0))?.is_some() {}
        Ok(())
    }
}

keys!(NodeKey {
    Name "name",
    Op "op",
    Target "target",
    Args "args",
    Kwargs "kwargs",
    Out "out",
    Tags "tags",
    Stack "stack",
    Module "module",
    Desc "desc",
    After "after",
});

struct NodeSeed<'b, 'i>(&'b mut Builder<'i>);

impl<'de> DeserializeSeed<'de> for NodeSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for NodeSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a node (an object)")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let builder = self.0;
        let mut parts = Parts::default();
        let result = parts.read_all(builder, &mut map).and_then(|()| parts.finish(builder));
        match parts.name {
            Some(name) => result.map_err(|error| {
                A::Error::custom(format_args!("node {:?}: {error}", builder.graph.text(name)))
            }),
            None => result.within(format_args!("node at index {}", builder.graph.len())),
        }
    }
}

/// The fields of a node, as far as they have been read.
#[derive(Default)]
struct Parts {
    name: Option<Str>,
    op: Option<Op>,
    target: Option<TargetId>,
    args: Span,
    kwargs: Span,
    out: Option<Out>,
    tags: Tags,
    stack: Option<Str>,
    module: Option<Str>,
    desc: Option<Str>,
    unknown: Unknown,
}

impl Parts {
    fn read_all<'de, A: MapAccess<'de>>(
        &mut self,
        builder: &mut Builder<'_>,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let mut seen = 0;
        while let Some(field) = next_field::<NodeKey, A>(map, &mut seen)? {
            match field {
                Field::Known(key) => self.read(builder, key, map)?,
                Field::Unknown(key) => self.unknown.keep(&key, map)?,
            }
        }
        Ok(())
    }

    fn read<'de, A: MapAccess<'de>>(
        &mut self,
        builder: &mut Builder<'_>,
        key: NodeKey,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let graph = &mut builder.graph;
        let result = match key {
            NodeKey::Name => map.next_value_seed(Text(graph)).map(|name| self.name = Some(name)),
            NodeKey::Op => map.next_value_seed(Word(known_op)).map(|op| self.op = Some(op)),
            NodeKey::Target => {
                map.next_value_seed(TargetSeed(graph)).map(|target| self.target = Some(target))
            }
            NodeKey::Args => map.next_value_seed(ArgsSeed(builder)).map(|args| self.args = args),
            NodeKey::Kwargs => map.next_value_seed(KwargsSeed(builder)).map(|kwargs| self.kwargs = kwargs),
            // Its errors name the field.
            NodeKey::Out => return map.next_value_seed(OutSeed(builder)).map(|out| self.out = Some(out)),
            NodeKey::Tags => map.next_value_seed(TagsSeed(graph)).map(|tags| self.tags = tags),
            NodeKey::Stack => map.next_value_seed(Text(graph)).map(|stack| self.stack = Some(stack)),
            NodeKey::Module => map.next_value_seed(Text(graph)).map(|module| self.module = Some(module)),
            NodeKey::Desc => map.next_value_seed(Text(graph)).map(|desc| self.desc = Some(desc)),
            NodeKey::After => map.next_value::<Vec<Name<'de>>>().map(|names| {
                let node = NodeId(builder.graph.len() as u32);
                for name in names {
                    let before = name.mention(builder);
                    builder.after.push((before, node));
                }
            }),
        };
        result.within(key.name())
    }

    fn finish<E: Error>(&mut self, builder: &mut Builder<'_>) -> Result<(), E> {
        let missing = |key: NodeKey| E::custom(format_args!("no {:?}", key.name()));
        let extra = std::mem::take(&mut self.unknown).into_object();
        let node = Node {
            name: self.name.ok_or_else(|| missing(NodeKey::Name))?,
            op: self.op.ok_or_else(|| missing(NodeKey::Op))?,
            target: self.target.ok_or_else(|| missing(NodeKey::Target))?,
            args: self.args,
            kwargs: self.kwargs,
            out: self.out.unwrap_or(Out::Absent),
            tags: builder.graph.intern_tags(std::mem::take(&mut self.tags)),
            stack: self.stack,
            module: self.module,
            desc: self.desc,
            extra: extra.map(|fields| builder.graph.intern(&fields)),
        };
        builder.graph.push_node(node);
        Ok(())
    }
}

fn known_op(text: &str) -> Result<Op, String> {
    const ALL: [Op; 4] = [Op::Placeholder, Op::Call, Op::GetAttr, Op::Output];
    ALL.into_iter().find(|op| op.name() == text).ok_or_else(|| {
        format!("unknown kind of node {text:?} (known: placeholder, call_function, get_attr, output)")
    })
}

struct TargetSeed<'g>(&'g mut Graph);

impl<'de> DeserializeSeed<'de> for TargetSeed<'_> {
    type Value = TargetId;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<TargetId, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for TargetSeed<'_> {
    type Value = TargetId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<TargetId, E> {
        Ok(self.0.intern_target(&held(text)))
    }
}

keys!(TagKey {
    Recompute "recompute",
    AcGraphId "ac_graph_id",
    PartitionerTag "partitioner_tag",
    SeqNr "seq_nr",
    IsGradientAcc "is_gradient_acc",
    AutogradBackward "autograd_backward",
    Custom "custom",
});

struct TagsSeed<'g>(&'g mut Graph);

impl<'de> DeserializeSeed<'de> for TagsSeed<'_> {
    type Value = Tags;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Tags, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for TagsSeed<'_> {
    type Value = Tags;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tags")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tags, A::Error> {
        let graph = self.0;
        let (mut seen, mut unknown, mut tags) = (0, Unknown::default(), Tags::default());
        while let Some(field) = next_field::<TagKey, A>(&mut map, &mut seen)? {
            let key = match field {
                Field::Known(key) => key,
                Field::Unknown(key) => {
                    unknown.keep(&key, &mut map)?;
                    continue;
                }
            };
            let result = match key {
                TagKey::Recompute => map.next_value_seed(Text(graph)).map(|text| tags.recompute = Some(text)),
                TagKey::PartitionerTag => {
                    map.next_value_seed(Text(graph)).map(|text| tags.partitioner_tag = Some(text))
                }
                TagKey::AcGraphId => map.next_value_seed(Integer::ANY).map(|n| tags.ac_graph_id = Some(n)),
                TagKey::SeqNr => map.next_value_seed(Integer::ANY).map(|n| tags.seq_nr = Some(n)),
                TagKey::IsGradientAcc => map.next_value().map(|yes| tags.is_gradient_acc = Some(yes)),
                TagKey::AutogradBackward => map.next_value().map(|yes| tags.autograd_backward = Some(yes)),
                TagKey::Custom => raw(&mut map).map(|text| tags.custom = Some(graph.intern(text))),
            };
            result.within(key.name())?;
        }
        tags.extra = unknown.into_object().map(|fields| graph.intern(&fields));
        Ok(tags)
    }
}
