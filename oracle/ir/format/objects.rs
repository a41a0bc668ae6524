//! What a dump of a running program holds: numbers, texts, lists and dictionaries, from a pickle or from JSON.
//!
//! # The idea
//!
//! All objects of a file stand in one list and refer to each other by number. So an object that a pickle shares is held
//! once, however often it is referred to, and what refers to itself can be held without harm. Whoever reads looks at an
//! [`Item`], one level at a time. A few bytes of a pickle can stand for more references than anybody could follow: what
//! is followed is paid for from an [`Allowance`].

use crate::limits::Limit;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::cell::Cell;
use std::fmt;

/// One object.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Object {
    None,
    Bool(bool),
    Integer(i64),
    /// A whole number that does not fit 64 bits.
    Wide,
    Float(f64),
    Text(Box<str>),
    Bytes,
    /// A list, a tuple or a set.
    List(Vec<u32>),
    /// In the order of the file. Of equal keys the last one counts.
    Dictionary(Vec<(u32, u32)>),
}

/// The objects of a file.
#[derive(Clone, PartialEq, Debug)]
pub struct Objects {
    pub(super) all: Vec<Object>,
    pub(super) root: u32,
}

/// How many objects may still be made or looked at.
#[derive(Clone, Debug)]
pub struct Allowance {
    most: u64,
    left: Cell<u64>,
}

impl Allowance {
    /// An allowance of so many objects.
    pub fn new(most: u64) -> Allowance {
        Allowance { most, left: Cell::new(most) }
    }

    /// Takes some.
    ///
    /// # Errors
    /// Where so many are not left.
    pub fn take(&self, objects: usize) -> Result<(), String> {
        match self.left.get().checked_sub(objects as u64) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                let (most, name) = (self.most, Limit::Objects.name());
                Err(format!("holds more than {most} objects (--limit {name}=N allows more)"))
            }
        }
    }
}

/// An object of a file.
#[derive(Clone, Copy)]
pub struct Item<'o> {
    all: &'o Objects,
    id: u32,
}

impl Objects {
    /// The object that the file holds.
    pub fn root(&self) -> Item<'_> {
        Item { all: self, id: self.root }
    }
}

impl<'o> Item<'o> {
    fn object(self) -> &'o Object {
        self.all.all.get(self.id as usize).unwrap_or(&Object::None)
    }

    fn other(self, id: u32) -> Item<'o> {
        Item { all: self.all, id }
    }

    /// What kind of object it is, for people.
    pub fn kind(self) -> &'static str {
        match self.object() {
            Object::None => "None",
            Object::Bool(_) => "a truth value",
            Object::Integer(_) | Object::Wide => "a whole number",
            Object::Float(_) => "a number",
            Object::Text(_) => "text",
            Object::Bytes => "bytes",
            Object::List(_) => "a list",
            Object::Dictionary(_) => "a dictionary",
        }
    }

    /// Whether it is `None` or `null`.
    pub fn is_none(self) -> bool {
        matches!(self.object(), Object::None)
    }

    /// A truth value.
    pub fn truth(self) -> Option<bool> {
        match self.object() {
            Object::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// A whole number of 64 bits.
    pub fn integer(self) -> Option<i64> {
        match self.object() {
            Object::Integer(integer) => Some(*integer),
            _ => None,
        }
    }

    /// A text.
    pub fn text(self) -> Option<&'o str> {
        match self.object() {
            Object::Text(text) => Some(text),
            _ => None,
        }
    }

    /// How many items a list has.
    pub fn length(self) -> Option<usize> {
        match self.object() {
            Object::List(items) => Some(items.len()),
            _ => None,
        }
    }

    /// The items of a list; `None` where it is none.
    pub fn items(self) -> Option<impl ExactSizeIterator<Item = Item<'o>> + Clone> {
        match self.object() {
            Object::List(items) => Some(items.iter().map(move |&id| self.other(id))),
            _ => None,
        }
    }

    /// The keys and values of a dictionary; `None` where it is none.
    pub fn pairs(self) -> Option<impl ExactSizeIterator<Item = (Item<'o>, Item<'o>)> + Clone> {
        match self.object() {
            Object::Dictionary(pairs) => {
                Some(pairs.iter().map(move |&(key, value)| (self.other(key), self.other(value))))
            }
            _ => None,
        }
    }

    /// The value of a key of a dictionary.
    pub fn get(self, key: &str) -> Option<Item<'o>> {
        let Object::Dictionary(pairs) = self.object() else { return None };
        let is_it = |&&(id, _): &&(u32, u32)| self.other(id).text() == Some(key);
        pairs.iter().rev().find(is_it).map(|&(_, value)| self.other(value))
    }
}

/// Makes objects.
#[derive(Debug)]
pub(super) struct Builder<'a> {
    pub(super) all: Vec<Object>,
    pub(super) allowance: &'a Allowance,
}

/// The numbers of the objects that every file shares.
pub(super) const NONE: u32 = 0;
pub(super) const FALSE: u32 = 1;
pub(super) const TRUE: u32 = 2;

impl<'a> Builder<'a> {
    pub(super) fn new(allowance: &'a Allowance) -> Builder<'a> {
        Builder { all: vec![Object::None, Object::Bool(false), Object::Bool(true)], allowance }
    }

    /// Adds an object; gives its number.
    pub(super) fn add(&mut self, object: Object) -> Result<u32, String> {
        self.allowance.take(1)?;
        let id = u32::try_from(self.all.len()).map_err(|_| "holds more objects than can be counted")?;
        self.all.push(object);
        Ok(id)
    }
}

/// Reads JSON.
///
/// # Errors
/// Where it is no JSON, is nested too deeply for it, or holds more objects than are allowed.
pub fn read_json(bytes: &[u8], allowance: &Allowance) -> Result<Objects, String> {
    let mut builder = Builder::new(allowance);
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let root = Value(&mut builder).deserialize(&mut json).and_then(|root| json.end().map(|()| root));
    let root = root.map_err(|error| error.to_string())?;
    Ok(Objects { all: builder.all, root })
}

/// Makes an object of what comes next. serde_json ends after 128 levels.
struct Value<'v, 'a>(&'v mut Builder<'a>);

impl<'de> DeserializeSeed<'de> for Value<'_, '_> {
    type Value = u32;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u32, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_, '_> {
    type Value = u32;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<u32, E> {
        Ok(NONE)
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<u32, E> {
        Ok(if truth { TRUE } else { FALSE })
    }

    fn visit_i64<E: Error>(self, integer: i64) -> Result<u32, E> {
        self.0.add(Object::Integer(integer)).map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, integer: u64) -> Result<u32, E> {
        self.0.add(i64::try_from(integer).map_or(Object::Wide, Object::Integer)).map_err(E::custom)
    }

    fn visit_f64<E: Error>(self, float: f64) -> Result<u32, E> {
        self.0.add(Object::Float(float)).map_err(E::custom)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u32, E> {
        self.0.add(Object::Text(text.into())).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<u32, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(Value(self.0))? {
            self.0.allowance.take(1).map_err(A::Error::custom)?;
            items.push(item);
        }
        self.0.add(Object::List(items)).map_err(A::Error::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<u32, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = access.next_key_seed(Value(self.0))? {
            pairs.push((key, access.next_value_seed(Value(self.0))?));
        }
        self.0.add(Object::Dictionary(pairs)).map_err(A::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_gives_what_it_says() {
        let text = br#"{"a": [1, -2, 1.5, null, true, "x"], "b": 18446744073709551615, "a": {"c": []}}"#;
        let objects = read_json(text, &Allowance::new(100)).unwrap();
        let root = objects.root();
        assert_eq!(
            root.get("a").unwrap().get("c").unwrap().length(),
            Some(0),
            "the last of equal keys counts"
        );
        assert_eq!(
            (root.get("b").unwrap().kind(), root.get("b").unwrap().integer()),
            ("a whole number", None)
        );
        let first = root.pairs().unwrap().next().unwrap().1;
        let kinds: Vec<&str> = first.items().unwrap().map(Item::kind).collect();
        assert_eq!(kinds, ["a whole number", "a whole number", "a number", "None", "a truth value", "text"]);
        assert_eq!(first.items().unwrap().next().unwrap().integer(), Some(1));
    }

    #[test]
    fn json_that_is_deep_or_large_or_torn_is_refused() {
        let deep = "[".repeat(100_000);
        assert!(
            read_json(deep.as_bytes(), &Allowance::new(1 << 20)).unwrap_err().contains("recursion limit")
        );
        let large = format!("[{}1]", "1,".repeat(100));
        assert!(
            read_json(large.as_bytes(), &Allowance::new(100)).unwrap_err().contains("more than 100 objects")
        );
        assert!(read_json(b"{\"a\": [1", &Allowance::new(100)).unwrap_err().contains("EOF"));
        assert!(read_json(b"{} x", &Allowance::new(100)).unwrap_err().contains("trailing"));
    }
}
