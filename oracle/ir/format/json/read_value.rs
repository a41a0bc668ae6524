//! Argument values.

use super::keys::{Field, Key, Within, keys, next_field};
use super::read::Builder;
use super::read_dict::{DictSeed, Entry};
use super::read_parts::{Hint, Integer, Text, Word};
use crate::graph::{Dtype, Expr, ExprId, Graph, Span, Str, Value};
use crate::words::held;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

keys!(Form {
    Ref "ref",
    Dtype "dtype",
    Device "device",
    MemoryFormat "memory_format",
    Layout "layout",
    Float "float",
    Complex "complex",
    Slice "slice",
    Sym "sym",
    Hint "hint",
    Dict "dict",
    Fn "fn",
});

/// One argument value.
pub(super) struct ValueSeed<'b, 'i>(pub &'b mut Builder<'i>);

impl<'de> DeserializeSeed<'de> for ValueSeed<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an argument value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::None)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Value, E> {
        Ok(Value::Int(n))
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Value, E> {
        Integer::ANY.visit_u64(n).map(Value::Int)
    }

    fn visit_f64<E: Error>(self, x: f64) -> Result<Value, E> {
        Ok(Value::Float(x))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Str(self.0.graph.intern(&held(text))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Value, A::Error> {
        elements(self.0, seq).map(Value::List)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut seen = 0;
        let form = match next_field::<Form, A>(&mut map, &mut seen)? {
            Some(Field::Known(form)) => form,
            Some(Field::Unknown(key)) => {
                return Err(A::Error::custom(format_args!("unknown argument value {{{key:?}: ...}}")));
            }
            None => return Err(A::Error::custom("unknown argument value {}")),
        };
        let builder = self.0;
        let value = match form {
            Form::Ref => {
                let name = map.next_value_seed(Text(&mut builder.graph))?;
                builder.reference(name)
            }
            Form::Dtype => Value::Dtype(map.next_value_seed(Word(known_dtype))?),
            Form::Device => Value::Device(map.next_value_seed(Text(&mut builder.graph))?),
            Form::MemoryFormat => Value::MemoryFormat(map.next_value_seed(Text(&mut builder.graph))?),
            Form::Layout => Value::Layout(map.next_value_seed(Text(&mut builder.graph))?),
            Form::Fn => Value::Function(map.next_value_seed(Text(&mut builder.graph))?),
            Form::Float => Value::Float(map.next_value_seed(Word(special_float))?),
            Form::Complex => Value::Complex(map.next_value_seed(ComplexSeed(builder))?),
            Form::Slice => Value::Slice(map.next_value_seed(SliceSeed(builder))?),
            Form::Dict => Value::Dict(map.next_value_seed(DictSeed::<Value>::of(builder))?),
            Form::Sym | Form::Hint => {
                return expression(&mut builder.graph, form, &mut seen, &mut map).map(Value::Symbolic);
            }
        };
        match next_field::<Form, A>(&mut map, &mut seen)? {
            None => Ok(value),
            Some(Field::Known(key)) => Err(unexpected(form.name(), key.name())),
            Some(Field::Unknown(key)) => Err(unexpected(form.name(), &key)),
        }
    }
}

fn unexpected<E: Error>(form: &str, key: &str) -> E {
    E::custom(format_args!("unexpected key {key:?} beside {form:?}"))
}

/// An element type by PyTorch's name.
pub(super) fn known_dtype(name: &str) -> Result<Dtype, String> {
    Dtype::parse(name).ok_or_else(|| format!("unknown dtype {name:?}"))
}

fn special_float(text: &str) -> Result<f64, String> {
    match text {
        "inf" => Ok(f64::INFINITY),
        "-inf" => Ok(f64::NEG_INFINITY),
        "nan" => Ok(f64::NAN),
        _ => Err(format!("unknown float {text:?} (known: inf, -inf, nan)")),
    }
}

/// The rest of `{"sym": text, "hint": integer or null}`, of which the key `first` has been read.
fn expression<'de, A: MapAccess<'de>>(
    graph: &mut Graph,
    first: Form,
    seen: &mut u32,
    map: &mut A,
) -> Result<ExprId, A::Error> {
    let (mut text, mut hint) = (None, None);
    let mut key = Some(first);
    while let Some(form) = key {
        match form {
            Form::Sym => text = Some(map.next_value_seed(Text(graph)).within("sym")?),
            Form::Hint => hint = map.next_value_seed(Hint).within("hint")?,
            other => return Err(unexpected("sym", other.name())),
        }
        key = match next_field::<Form, A>(map, seen)? {
            None => None,
            Some(Field::Known(form)) => Some(form),
            Some(Field::Unknown(key)) => return Err(unexpected("sym", &key)),
        };
    }
    symbolic(graph, text, hint)
}

/// A symbolic expression; the text must be there.
pub(super) fn symbolic<E: Error>(
    graph: &mut Graph,
    text: Option<Str>,
    hint: Option<i64>,
) -> Result<ExprId, E> {
    match text {
        Some(text) => Ok(graph.intern_expr(Expr { text, hint })),
        None => Err(E::custom("a symbolic value without \"sym\"")),
    }
}

/// A symbolic expression at a place where there is no other object.
pub(super) struct ExprSeed<'g>(pub &'g mut Graph);

impl ExprSeed<'_> {
    pub(super) fn read<'de, A: MapAccess<'de>>(self, map: &mut A) -> Result<ExprId, A::Error> {
        let mut seen = 0;
        match next_field::<Form, A>(map, &mut seen)? {
            Some(Field::Known(form)) => expression(self.0, form, &mut seen, map),
            Some(Field::Unknown(key)) => Err(unexpected("sym", &key)),
            None => symbolic(self.0, None, None),
        }
    }
}

/// The elements of a list, stored next to one another: they wait on a stack until the list is complete.
fn elements<'de, A: SeqAccess<'de>>(builder: &mut Builder<'_>, mut seq: A) -> Result<Span, A::Error> {
    let start = builder.values.len();
    while let Some(value) = seq.next_element_seed(ValueSeed(builder))? {
        builder.values.push(value);
    }
    Ok(builder.close_values(start))
}

/// The positional arguments of a node.
pub(super) struct ArgsSeed<'b, 'i>(pub &'b mut Builder<'i>);

impl<'de> DeserializeSeed<'de> for ArgsSeed<'_, '_> {
    type Value = Span;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Span, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ArgsSeed<'_, '_> {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of argument values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Span, A::Error> {
        elements(self.0, seq)
    }
}

/// The keyword arguments of a node.
pub(super) struct KwargsSeed<'b, 'i>(pub &'b mut Builder<'i>);

impl<'de> DeserializeSeed<'de> for KwargsSeed<'_, '_> {
    type Value = Span;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Span, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for KwargsSeed<'_, '_> {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of keyword arguments")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Span, A::Error> {
        let builder = self.0;
        let start = builder.values.len();
        builder.keywords.clear();
        while let Some(key) = map.next_key_seed(Text(&mut builder.graph))? {
            if !builder.keywords.insert(key) {
                return Err(A::Error::custom(format_args!("key {:?} twice", builder.graph.text(key))));
            }
            let value = match map.next_value_seed(ValueSeed(builder)) {
                Ok(value) => value,
                Err(error) => return Err(error).within(builder.graph.text(key)),
            };
            builder.values.extend([Value::Str(key), value]);
        }
        Ok(builder.close_values(start))
    }
}

/// `[real, imaginary]`.
struct ComplexSeed<'b, 'i>(&'b mut Builder<'i>);

impl<'de> DeserializeSeed<'de> for ComplexSeed<'_, '_> {
    type Value = Span;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Span, D::Error> {
        let span = ArgsSeed(self.0).deserialize(deserializer)?;
        match self.0.graph.values(span) {
            [Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)] => Ok(span),
            _ => Err(D::Error::custom("a complex number is a list of two numbers")),
        }
    }
}

/// `[start, stop, step]`.
struct SliceSeed<'b, 'i>(&'b mut Builder<'i>);

impl<'de> DeserializeSeed<'de> for SliceSeed<'_, '_> {
    type Value = Span;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Span, D::Error> {
        let span = ArgsSeed(self.0).deserialize(deserializer)?;
        if span.len() == 3 {
            return Ok(span);
        }
        Err(D::Error::custom(format_args!("a slice has 3 parts, got {}", span.len())))
    }
}

/// A mapping as an argument: keys are values.
impl Entry for Value {
    const NAME: &'static str = "value";

    fn key<'de, A: SeqAccess<'de>>(
        builder: &mut Builder<'_>,
        seq: &mut A,
    ) -> Result<Option<Value>, A::Error> {
        seq.next_element_seed(ValueSeed(builder))
    }

    fn entry<'de, A: SeqAccess<'de>>(
        builder: &mut Builder<'_>,
        seq: &mut A,
    ) -> Result<Option<Value>, A::Error> {
        seq.next_element_seed(ValueSeed(builder))
    }

    fn open<'b>(builder: &'b mut Builder<'_>) -> &'b mut Vec<Value> {
        &mut builder.values
    }

    fn close(builder: &mut Builder<'_>, start: usize) -> Span {
        builder.close_values(start)
    }
}
