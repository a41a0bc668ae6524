//! What stands above the nodes: world, groups, symbols, schema facts, renames and clusters.

use super::keys::{Field, Key, Unknown, Within, keys, next_field, raw};
use super::read::{Builder, Mentioned};
use super::read_parts::{Hint, Integer};
use crate::graph::{Graph, Group, Holder, Symbol};
use crate::words::held;
use rustc_hash::FxHashSet;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// The ranks of the whole world.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorldEntry {
    pub ranks: u32,
}

/// The name of a node.
#[derive(Deserialize)]
pub(super) struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl Name<'_> {
    /// The name, and where in the input it stands if it is written there without escapes.
    pub(super) fn mention(&self, builder: &mut Builder<'_>) -> Mentioned {
        let offset = match &self.0 {
            Cow::Borrowed(text) => (text.as_ptr() as usize).checked_sub(builder.input.as_ptr() as usize),
            Cow::Owned(_) => None,
        };
        (builder.graph.intern(&held(&self.0)), offset)
    }
}

/// A rename of a mutated buffer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RenameEntry<'a> {
    #[serde(borrow)]
    pub by: Name<'a>,
    #[serde(borrow)]
    pub of: Name<'a>,
}

/// Grouped nodes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClusterEntry<'a> {
    pub name: String,
    #[serde(borrow)]
    pub members: Vec<Name<'a>>,
}

/// Something that a document lists by name, and that may have unknown fields.
pub(super) trait Item: Sized {
    type Key: Key;
    /// What it is, in words.
    const WHAT: &'static str;

    fn new(name: String) -> Self;

    fn read<'de, A: MapAccess<'de>>(&mut self, key: Self::Key, map: &mut A) -> Result<(), A::Error>;

    /// Adds the item to the graph; `unknown` holds its unknown fields.
    fn finish(self, graph: &mut Graph, unknown: Option<String>) -> Result<(), &'static str>;
}

/// All items of one kind.
pub(super) struct ByName<'g, T>(pub &'g mut Graph, pub PhantomData<T>);

impl<'de, T: Item> DeserializeSeed<'de> for ByName<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Item> Visitor<'de> for ByName<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object that holds each {} by name", T::WHAT)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = FxHashSet::default();
        while let Some(name) = map.next_key::<String>()? {
            let place = format!("{} {name:?}", T::WHAT);
            if !names.insert(name.clone()) {
                return Err(A::Error::custom(format_args!("{place} twice")));
            }
            map.next_value_seed(ItemSeed(&mut *self.0, T::new(held(&name).into_owned()))).within(place)?;
        }
        Ok(())
    }
}

struct ItemSeed<'g, T>(&'g mut Graph, T);

impl<'de, T: Item> DeserializeSeed<'de> for ItemSeed<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Item> Visitor<'de> for ItemSeed<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let ItemSeed(graph, mut item) = self;
        let (mut seen, mut unknown) = (0, Unknown::default());
        while let Some(field) = next_field::<T::Key, A>(&mut map, &mut seen)? {
            match field {
                Field::Known(key) => item.read(key, &mut map).within(key.name())?,
                Field::Unknown(key) => unknown.keep(&key, &mut map)?,
            }
        }
        item.finish(graph, unknown.into_object()).map_err(A::Error::custom)
    }
}

keys!(GroupKey { Size "size", Rank "rank", Ranks "ranks" });

/// A process group. The size may be left out where the instances are listed.
pub(super) struct GroupItem {
    name: String,
    size: Option<u32>,
    recorded_rank: Option<u32>,
    instances: Vec<Vec<u32>>,
}

impl Item for GroupItem {
    type Key = GroupKey;
    const WHAT: &'static str = "process group";

    fn new(name: String) -> GroupItem {
        GroupItem { name, size: None, recorded_rank: None, instances: Vec::new() }
    }

    fn read<'de, A: MapAccess<'de>>(&mut self, key: GroupKey, map: &mut A) -> Result<(), A::Error> {
        match key {
            GroupKey::Size => self.size = Some(map.next_value_seed(Integer::RANKS)? as u32),
            GroupKey::Rank => self.recorded_rank = Some(map.next_value_seed(Integer::U32)? as u32),
            GroupKey::Ranks => self.instances = map.next_value()?,
        }
        Ok(())
    }

    fn finish(self, graph: &mut Graph, unknown: Option<String>) -> Result<(), &'static str> {
        let listed = self.instances.first().and_then(|ranks| u32::try_from(ranks.len()).ok());
        let size = match self.size.or(listed) {
            Some(0) => return Err("no \"size\", and its first instance has no ranks"),
            Some(size) => size,
            None => return Err("neither \"size\" nor \"ranks\""),
        };
        if let Some(fields) = unknown {
            let name = graph.intern(&self.name);
            graph.set_unknown_fields(Holder::Group(name), &fields);
        }
        let GroupItem { name, recorded_rank, instances, .. } = self;
        graph.world.groups.push(Group { name, size, recorded_rank, instances });
        Ok(())
    }
}

keys!(SymbolKey { Hint "hint", Range "range", Unbacked "unbacked" });

impl Item for Symbol {
    type Key = SymbolKey;
    const WHAT: &'static str = "symbol";

    fn new(name: String) -> Symbol {
        let range = ("-int_oo".to_string(), "int_oo".to_string());
        Symbol { name, hint: None, range, unbacked: false }
    }

    fn read<'de, A: MapAccess<'de>>(&mut self, key: SymbolKey, map: &mut A) -> Result<(), A::Error> {
        match key {
            SymbolKey::Hint => self.hint = map.next_value_seed(Hint)?,
            SymbolKey::Range => self.range = map.next_value()?,
            SymbolKey::Unbacked => self.unbacked = map.next_value()?,
        }
        Ok(())
    }

    fn finish(self, graph: &mut Graph, unknown: Option<String>) -> Result<(), &'static str> {
        if let Some(fields) = unknown {
            let name = graph.intern(&self.name);
            graph.set_unknown_fields(Holder::Symbol(name), &fields);
        }
        graph.symbols.push(self);
        Ok(())
    }
}

/// Schema facts by target, kept as text.
pub(super) struct FactsSeed<'g>(pub &'g mut Graph);

impl<'de> DeserializeSeed<'de> for FactsSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FactsSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of schema facts by target")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut targets = FxHashSet::default();
        while let Some(target) = map.next_key::<String>()? {
            if !targets.insert(target.clone()) {
                return Err(A::Error::custom(format_args!("target {target:?} twice")));
            }
            let facts = raw(&mut map).within(&target)?;
            if !facts.starts_with('{') {
                return Err(A::Error::custom(format_args!("{target}: facts must be an object")));
            }
            self.0.facts.push((target, facts.to_string()));
        }
        Ok(())
    }
}
