//! Strings, integers and words from a closed list, read straight into the graph.

use crate::graph::{Graph, Str};
use crate::words::held;
use serde::de::{DeserializeSeed, Deserializer, Error, Visitor};
use std::fmt;

/// A string of the graph's table.
pub(super) struct Text<'g>(pub &'g mut Graph);

impl<'de> DeserializeSeed<'de> for Text<'_> {
    type Value = Str;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Str, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Text<'_> {
    type Value = Str;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Str, E> {
        Ok(self.0.intern(&held(text)))
    }
}

/// A string that `parse` understands or says what is wrong with.
pub(super) struct Word<F>(pub F);

impl<'de, T, F: FnOnce(&str) -> Result<T, String>> DeserializeSeed<'de> for Word<F> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<T, F: FnOnce(&str) -> Result<T, String>> Visitor<'_> for Word<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).map_err(E::custom)
    }
}

/// An integer from a range.
pub(super) struct Integer {
    /// Inclusive.
    pub least: i64,
    /// Inclusive.
    pub most: i64,
}

impl Integer {
    /// Any 64-bit integer.
    pub(super) const ANY: Integer = Integer { least: i64::MIN, most: i64::MAX };
    /// A size, count or offset.
    pub(super) const SIZE: Integer = Integer { least: 0, most: i64::MAX };
    /// A rank or an id.
    pub(super) const U32: Integer = Integer { least: 0, most: u32::MAX as i64 };
    /// Ranks in a group.
    pub(super) const RANKS: Integer = Integer { least: 1, most: u32::MAX as i64 };

    pub(super) fn check<E: Error>(&self, n: i64) -> Result<i64, E> {
        if (self.least..=self.most).contains(&n) {
            return Ok(n);
        }
        Err(self.outside(n))
    }

    fn outside<E: Error>(&self, n: impl fmt::Display) -> E {
        E::custom(format_args!("{n} is not between {} and {}", self.least, self.most))
    }
}

impl<'de> DeserializeSeed<'de> for Integer {
    type Value = i64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<i64, D::Error> {
        deserializer.deserialize_i64(self)
    }
}

impl Visitor<'_> for Integer {
    type Value = i64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an integer between {} and {}", self.least, self.most)
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<i64, E> {
        self.check(n)
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<i64, E> {
        match i64::try_from(n) {
            Ok(n) => self.check(n),
            Err(_) => Err(self.outside(n)),
        }
    }
}

/// An integer or null.
pub(super) struct Hint;

impl<'de> DeserializeSeed<'de> for Hint {
    type Value = Option<i64>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<i64>, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for Hint {
    type Value = Option<i64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an integer or null")
    }

    fn visit_none<E: Error>(self) -> Result<Option<i64>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<i64>, D::Error> {
        Integer::ANY.deserialize(deserializer).map(Some)
    }
}
