//! What nodes return.

use super::keys::{Field, Key, Unknown, Within, keys, next_field};
use super::read::Builder;
use super::read_dict::{DictSeed, Entry};
use super::read_parts::{Hint, Integer, Text, Word};
use super::read_value::{ExprSeed, known_dtype, symbolic};
use crate::graph::{Dim, DimsId, Dtype, ExprId, Holder, Out, Span, StorageId, Str, Tensor};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

keys!(OutKey {
    T "t",
    Shape "shape",
    Stride "stride",
    Dtype "dtype",
    Device "device",
    Storage "storage",
    Offset "offset",
    StorageBytes "storage_bytes",
    RequiresGrad "requires_grad",
    Value "value",
    Sym "sym",
    Hint "hint",
    Type "type",
    Dict "dict",
});

/// What `t` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Tensor,
    Int,
    SymInt,
    SymBool,
    Other,
}

impl Form {
    const ALL: [(&'static str, Form); 5] = [
        ("tensor", Form::Tensor),
        ("int", Form::Int),
        ("symint", Form::SymInt),
        ("symbool", Form::SymBool),
        ("other", Form::Other),
    ];

    fn parse(text: &str) -> Result<Form, String> {
        Form::ALL.iter().find(|(name, _)| *name == text).map(|&(_, form)| form).ok_or_else(|| {
            format!("unknown kind of result {text:?} (known: tensor, int, symint, symbool, other)")
        })
    }

    /// In words, and its keys.
    fn described(self) -> (&'static str, &'static [OutKey]) {
        use OutKey::*;
        match self {
            Form::Tensor => {
                ("a tensor", &[T, Shape, Stride, Dtype, Device, Storage, Offset, StorageBytes, RequiresGrad])
            }
            Form::Int => ("an int", &[T, Value]),
            Form::SymInt => ("a symint", &[T, Sym, Hint]),
            Form::SymBool => ("a symbool", &[T, Sym, Hint]),
            Form::Other => ("another result", &[T, Type]),
        }
    }
}

/// The fields of a result, as far as they have been read.
#[derive(Default)]
struct Parts {
    form: Option<Form>,
    shape: Option<DimsId>,
    stride: Option<DimsId>,
    dtype: Option<Dtype>,
    device: Option<Str>,
    storage: Option<StorageId>,
    offset: Option<i64>,
    storage_bytes: Option<Dim>,
    requires_grad: Option<bool>,
    value: Option<i64>,
    sym: Option<Str>,
    hint: Option<i64>,
    ty: Option<Str>,
    dict: Option<Span>,
}

/// One result.
pub(super) struct OutSeed<'b, 'i>(pub &'b mut Builder<'i>);

impl<'de> DeserializeSeed<'de> for OutSeed<'_, '_> {
    type Value = Out;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Out, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OutSeed<'_, '_> {
    type Value = Out;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a result (null, an object or a list)")
    }

    fn visit_unit<E: Error>(self) -> Result<Out, E> {
        Ok(Out::None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Out, A::Error> {
        let builder = self.0;
        let start = builder.outs.len();
        while let Some(out) = seq.next_element_seed(OutSeed(builder))? {
            builder.outs.push(out);
        }
        Ok(Out::Tuple(builder.close_outs(start)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Out, A::Error> {
        let builder = self.0;
        let (mut seen, mut unknown, mut parts) = (0, Unknown::default(), Parts::default());
        while let Some(field) = next_field::<OutKey, A>(&mut map, &mut seen)? {
            match field {
                Field::Known(key) => parts.read(builder, key, &mut map)?,
                Field::Unknown(key) => unknown.keep(&key, &mut map)?,
            }
        }
        parts.finish(builder, seen, unknown)
    }
}

impl Parts {
    fn read<'de, A: MapAccess<'de>>(
        &mut self,
        builder: &mut Builder<'_>,
        key: OutKey,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let result = match key {
            OutKey::T => map.next_value_seed(Word(Form::parse)).map(|form| self.form = Some(form)),
            OutKey::Shape => map.next_value_seed(DimsSeed(builder)).map(|dims| self.shape = Some(dims)),
            OutKey::Stride => map.next_value_seed(DimsSeed(builder)).map(|dims| self.stride = Some(dims)),
            OutKey::Dtype => {
                return map.next_value_seed(Word(known_dtype)).map(|dtype| self.dtype = Some(dtype));
            }
            OutKey::Device => {
                map.next_value_seed(Text(&mut builder.graph)).map(|device| self.device = Some(device))
            }
            OutKey::Storage => {
                map.next_value_seed(Integer::U32).map(|id| self.storage = Some(StorageId(id as u32)))
            }
            OutKey::Offset => map.next_value_seed(Integer::SIZE).map(|offset| self.offset = Some(offset)),
            OutKey::StorageBytes => {
                map.next_value_seed(DimSeed(builder)).map(|bytes| self.storage_bytes = Some(bytes))
            }
            OutKey::RequiresGrad => map.next_value().map(|yes| self.requires_grad = Some(yes)),
            OutKey::Value => map.next_value_seed(Integer::ANY).map(|value| self.value = Some(value)),
            OutKey::Sym => map.next_value_seed(Text(&mut builder.graph)).map(|sym| self.sym = Some(sym)),
            OutKey::Hint => map.next_value_seed(Hint).map(|hint| self.hint = hint),
            OutKey::Type => map.next_value_seed(Text(&mut builder.graph)).map(|ty| self.ty = Some(ty)),
            OutKey::Dict => {
                map.next_value_seed(DictSeed::<Out>::of(builder)).map(|dict| self.dict = Some(dict))
            }
        };
        result.within(key.name())
    }

    fn finish<E: Error>(self, builder: &mut Builder<'_>, seen: u32, unknown: Unknown) -> Result<Out, E> {
        let (what, keys) = match (self.form, self.dict) {
            (Some(form), _) => form.described(),
            (None, Some(_)) => ("a mapping", &[OutKey::Dict][..]),
            (None, None) => return Err(E::custom("a result without \"t\"")),
        };
        let extra = |key: &&OutKey| seen & key.bit() != 0 && !keys.contains(key);
        if let Some(key) = OutKey::ALL.iter().find(extra) {
            return Err(E::custom(format_args!("{what} has no {:?}", key.name())));
        }
        let unknown = unknown.into_object();
        if let (Some(fields), true) = (&unknown, self.form != Some(Form::Tensor)) {
            return Err(E::custom(format_args!("{what} has no fields {fields}")));
        }
        let missing = |key: OutKey| E::custom(format_args!("{what} without {:?}", key.name()));
        match self.form {
            None => Ok(self.dict.map_or(Out::None, Out::Dict)),
            Some(Form::Int) => self.value.map(Out::Int).ok_or_else(|| missing(OutKey::Value)),
            Some(Form::SymInt) => self.expression(builder).map(Out::SymInt),
            Some(Form::SymBool) => self.expression(builder).map(Out::SymBool),
            Some(Form::Other) => self.ty.map(Out::Other).ok_or_else(|| missing(OutKey::Type)),
            Some(Form::Tensor) => {
                let tensor = Tensor {
                    shape: self.shape.ok_or_else(|| missing(OutKey::Shape))?,
                    stride: self.stride.ok_or_else(|| missing(OutKey::Stride))?,
                    dtype: self.dtype.ok_or_else(|| missing(OutKey::Dtype))?,
                    requires_grad: self.requires_grad,
                    device: self.device.ok_or_else(|| missing(OutKey::Device))?,
                    storage: self.storage,
                    offset: self.offset.unwrap_or(0),
                    storage_bytes: self.storage_bytes,
                    is_guessed: false,
                };
                builder.check_tensor(&tensor).map_err(E::custom)?;
                let id = builder.graph.push_tensor(tensor);
                if self.offset.is_none() {
                    builder.without_offset.push(id);
                }
                if let Some(fields) = unknown {
                    builder.graph.set_unknown_fields(Holder::Tensor(id), &fields);
                }
                Ok(Out::Tensor(id))
            }
        }
    }

    fn expression<E: Error>(&self, builder: &mut Builder<'_>) -> Result<ExprId, E> {
        symbolic(&mut builder.graph, self.sym, self.hint)
    }
}

/// Sizes or strides.
struct DimsSeed<'b, 'i>(&'b mut Builder<'i>);

impl<'de> DeserializeSeed<'de> for DimsSeed<'_, '_> {
    type Value = DimsId;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<DimsId, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for DimsSeed<'_, '_> {
    type Value = DimsId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of sizes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<DimsId, A::Error> {
        let builder = self.0;
        builder.dims.clear();
        while let Some(dim) = seq.next_element_seed(DimSeed(builder))? {
            builder.dims.push(dim);
        }
        Ok(builder.graph.intern_dims(&builder.dims))
    }
}

/// A size: an integer or `{"sym", "hint"}`.
struct DimSeed<'b, 'i>(&'b mut Builder<'i>);

impl<'de> DeserializeSeed<'de> for DimSeed<'_, '_> {
    type Value = Dim;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Dim, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for DimSeed<'_, '_> {
    type Value = Dim;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size between 0 and 9223372036854775807, or a symbolic one")
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Dim, E> {
        Integer::SIZE.check(n).map(Dim::Static)
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Dim, E> {
        Integer::SIZE.visit_u64(n).map(Dim::Static)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Dim, A::Error> {
        ExprSeed(&mut self.0.graph).read(&mut map).map(Dim::Symbolic)
    }
}

/// A mapping of results: keys are strings.
impl Entry for Out {
    const NAME: &'static str = "result";

    fn key<'de, A: SeqAccess<'de>>(builder: &mut Builder<'_>, seq: &mut A) -> Result<Option<Out>, A::Error> {
        Ok(seq.next_element_seed(Text(&mut builder.graph))?.map(Out::Key))
    }

    fn entry<'de, A: SeqAccess<'de>>(
        builder: &mut Builder<'_>,
        seq: &mut A,
    ) -> Result<Option<Out>, A::Error> {
        seq.next_element_seed(OutSeed(builder))
    }

    fn open<'b>(builder: &'b mut Builder<'_>) -> &'b mut Vec<Out> {
        &mut builder.outs
    }

    fn close(builder: &mut Builder<'_>, start: usize) -> Span {
        builder.close_outs(start)
    }
}
