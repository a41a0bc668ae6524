//! Mappings, `[[key, entry], ...]`: keys and entries are stored alternating.

use super::read::Builder;
use crate::graph::Span;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// What a mapping holds: arguments or results.
pub(super) trait Entry: Sized {
    /// What an entry is called.
    const NAME: &'static str;
    /// Reads a key.
    fn key<'de, A: SeqAccess<'de>>(builder: &mut Builder<'_>, seq: &mut A) -> Result<Option<Self>, A::Error>;
    /// Reads what belongs to a key.
    fn entry<'de, A: SeqAccess<'de>>(
        builder: &mut Builder<'_>,
        seq: &mut A,
    ) -> Result<Option<Self>, A::Error>;
    /// The stack on which keys and entries wait until the mapping is complete.
    fn open<'b>(builder: &'b mut Builder<'_>) -> &'b mut Vec<Self>;
    /// Stores what the stack holds from `start` on.
    fn close(builder: &mut Builder<'_>, start: usize) -> Span;
}

/// A mapping.
pub(super) struct DictSeed<'b, 'i, T>(&'b mut Builder<'i>, PhantomData<T>);

impl<'b, 'i, T> DictSeed<'b, 'i, T> {
    pub(super) fn of(builder: &'b mut Builder<'i>) -> DictSeed<'b, 'i, T> {
        DictSeed(builder, PhantomData)
    }
}

impl<'de, T: Entry> DeserializeSeed<'de> for DictSeed<'_, '_, T> {
    type Value = Span;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Span, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Entry> Visitor<'de> for DictSeed<'_, '_, T> {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of [key, {}] pairs", T::NAME)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Span, A::Error> {
        let builder = self.0;
        let start = T::open(builder).len();
        while seq.next_element_seed(PairSeed::<T>(builder, PhantomData))?.is_some() {}
        Ok(T::close(builder, start))
    }
}

/// `[key, entry]`, left on the stack.
struct PairSeed<'b, 'i, T>(&'b mut Builder<'i>, PhantomData<T>);

impl<'de, T: Entry> DeserializeSeed<'de> for PairSeed<'_, '_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Entry> Visitor<'de> for PairSeed<'_, '_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a [key, {}] pair", T::NAME)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let builder = self.0;
        let mut parts = 0;
        if let Some(key) = T::key(builder, &mut seq)? {
            T::open(builder).push(key);
            parts += 1;
            if let Some(entry) = T::entry(builder, &mut seq)? {
                T::open(builder).push(entry);
                parts += 1;
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {
            parts += 1;
        }
        match parts {
            2 => Ok(()),
            n => Err(A::Error::custom(format_args!("a [key, {}] pair has 2 parts, got {n}", T::NAME))),
        }
    }
}
