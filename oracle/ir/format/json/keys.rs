//! The keys of objects, and what readers of all objects share.

use crate::limits::Limit;
use rustc_hash::FxHashSet;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Nesting that is accepted in kept text. serde_json skips values without a limit, but parses no document that
/// nests deeper than 127; this leaves room for the objects around the text.
const DEEPEST: usize = Limit::Json.standard() as usize;

/// The known keys of one kind of object.
pub(super) trait Key: Copy + 'static {
    /// All of them.
    const ALL: &'static [Self];
    /// The key with this text.
    fn parse(text: &str) -> Option<Self>;
    /// The text of this key.
    fn name(self) -> &'static str;
    /// One bit, distinct among the keys.
    fn bit(self) -> u32;
}

macro_rules! keys {
    ($name:ident { $($variant:ident $text:literal),* $(,)? }) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum $name { $($variant),* }

        impl $crate::format::json::keys::Key for $name {
            const ALL: &'static [Self] = &[$($name::$variant),*];

            fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some($name::$variant),)* _ => None }
            }

            fn name(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }

            fn bit(self) -> u32 {
                1 << self as u32
            }
        }
    };
}
pub(super) use keys;

/// A key as it stands in a file.
pub(super) enum Field<'de, K> {
    Known(K),
    Unknown(Cow<'de, str>),
}

struct FieldSeed<K>(PhantomData<K>);

impl<'de, K: Key> DeserializeSeed<'de> for FieldSeed<K> {
    type Value = Field<'de, K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, K: Key> Visitor<'de> for FieldSeed<K> {
    type Value = Field<'de, K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(K::parse(text).map_or(Field::Unknown(Cow::Borrowed(text)), Field::Known))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(K::parse(text).map_or_else(|| Field::Unknown(Cow::Owned(text.to_string())), Field::Known))
    }
}

/// The next key of an object; `seen` collects the known ones, and a second one of a kind is an error.
pub(super) fn next_field<'de, K: Key, A: MapAccess<'de>>(
    map: &mut A,
    seen: &mut u32,
) -> Result<Option<Field<'de, K>>, A::Error> {
    let field = map.next_key_seed(FieldSeed(PhantomData::<K>))?;
    if let Some(Field::Known(key)) = field {
        if *seen & key.bit() != 0 {
            return Err(A::Error::custom(format_args!("key {:?} twice", key.name())));
        }
        *seen |= key.bit();
    }
    Ok(field)
}

/// The JSON text of the next value of an object.
pub(super) fn raw<'de, A: MapAccess<'de>>(map: &mut A) -> Result<&'de str, A::Error> {
    let text = map.next_value::<&'de RawValue>()?.get();
    if too_deep(text) {
        return Err(A::Error::custom("recursion limit exceeded"));
    }
    Ok(text)
}

/// Whether valid JSON text nests deeper than can be parsed again.
fn too_deep(text: &str) -> bool {
    if text.len() <= DEEPEST {
        return false;
    }
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                if depth > DEEPEST {
                    return true;
                }
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// The fields of one object that this version does not know.
#[derive(Default)]
pub(super) struct Unknown {
    fields: Vec<(String, String)>,
    keys: FxHashSet<String>,
}

impl Unknown {
    /// Keeps the value of `key`.
    pub(super) fn keep<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        if !self.keys.insert(key.to_string()) {
            return Err(A::Error::custom(format_args!("key {key:?} twice")));
        }
        let text = raw(map).within(key)?;
        self.fields.push((key.to_string(), text.to_string()));
        Ok(())
    }

    /// The fields in file order, values as JSON text.
    pub(super) fn into_fields(self) -> Vec<(String, String)> {
        self.fields
    }

    /// The fields as one JSON object; `None` if there are none.
    pub(super) fn into_object(self) -> Option<String> {
        if self.fields.is_empty() {
            return None;
        }
        let fields: Vec<String> = self
            .fields
            .iter()
            .map(|(key, text)| format!("{}:{text}", serde_json::Value::from(&**key)))
            .collect();
        Some(format!("{{{}}}", fields.join(",")))
    }
}

/// Says where an error arose. serde_json finds the position of the inner error in the text of the outer one.
pub(super) trait Within {
    /// Puts `place: ` before the message.
    fn within(self, place: impl fmt::Display) -> Self;
}

impl<T, E: Error> Within for Result<T, E> {
    fn within(self, place: impl fmt::Display) -> Self {
        self.map_err(|error| E::custom(format_args!("{place}: {error}")))
    }
}
