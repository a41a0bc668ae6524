//! What a node returns: tensors with shape, strides, dtype, device and recorded storage; scalars; tuples.

use super::span::Span;
use super::strings::Str;

macro_rules! dtypes {
    ($($variant:ident $name:literal $size:literal $class:ident),* $(,)?) => {
        /// An element type, with the names of `torch.dtype`.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[allow(missing_docs)]
        pub enum Dtype { $($variant),* }

        impl Dtype {
            /// All of them, in the order of this table.
            pub const ALL: &'static [Dtype] = &[$(Dtype::$variant),*];

            /// PyTorch's name without the `torch.` prefix.
            pub fn name(self) -> &'static str {
                match self { $(Dtype::$variant => $name),* }
            }

            /// Bytes per element.
            pub fn itemsize(self) -> u32 {
                match self { $(Dtype::$variant => $size),* }
            }

            /// The kind of number.
            pub fn class(self) -> DtypeClass {
                match self { $(Dtype::$variant => DtypeClass::$class),* }
            }

            /// The dtype with PyTorch's name `name`.
            pub fn parse(name: &str) -> Option<Dtype> {
                match name { $($name => Some(Dtype::$variant),)* _ => None }
            }
        }
    };
}

dtypes! {
    F64 "float64" 8 Float,
    F32 "float32" 4 Float,
    F16 "float16" 2 Float,
    BF16 "bfloat16" 2 Float,
    F8E4M3 "float8_e4m3fn" 1 Float,
    F8E5M2 "float8_e5m2" 1 Float,
    C64 "complex64" 8 Complex,
    C128 "complex128" 16 Complex,
    I64 "int64" 8 Int,
    I32 "int32" 4 Int,
    I16 "int16" 2 Int,
    I8 "int8" 1 Int,
    U8 "uint8" 1 Int,
    U16 "uint16" 2 Int,
    U32 "uint32" 4 Int,
    U64 "uint64" 8 Int,
    Bool "bool" 1 Bool,
}

/// The four kinds of number between which PyTorch promotes (bool, then int, float, complex).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub enum DtypeClass {
    Bool,
    Int,
    Float,
    Complex,
}

impl Dtype {
    /// Significant bits of its numbers, and the power of two at which their range ends.
    pub fn precision(self) -> (u32, u32) {
        match self {
            Dtype::F64 | Dtype::C128 => (53, 1023),
            Dtype::F32 | Dtype::C64 => (24, 127),
            Dtype::BF16 => (8, 127),
            Dtype::F16 => (11, 15),
            Dtype::F8E5M2 => (3, 15),
            Dtype::F8E4M3 => (4, 8),
            Dtype::I64 => (63, 63),
            Dtype::I32 => (31, 31),
            Dtype::I16 => (15, 15),
            Dtype::I8 => (7, 7),
            Dtype::U64 => (64, 64),
            Dtype::U32 => (32, 32),
            Dtype::U16 => (16, 16),
            Dtype::U8 => (8, 8),
            Dtype::Bool => (1, 1),
        }
    }

    /// The short spelling of the text case format (`f32`, `bf16`, `i64`, `bool`, `f8e4m3`, ...).
    pub fn short(self) -> &'static str {
        match self {
            Dtype::F64 => "f64",
            Dtype::F32 => "f32",
            Dtype::F16 => "f16",
            Dtype::BF16 => "bf16",
            Dtype::F8E4M3 => "f8e4m3",
            Dtype::F8E5M2 => "f8e5m2",
            Dtype::C64 => "c64",
            Dtype::C128 => "c128",
            Dtype::I64 => "i64",
            Dtype::I32 => "i32",
            Dtype::I16 => "i16",
            Dtype::I8 => "i8",
            Dtype::U8 => "u8",
            Dtype::U16 => "u16",
            Dtype::U32 => "u32",
            Dtype::U64 => "u64",
            Dtype::Bool => "bool",
        }
    }

    /// The inverse of [`Dtype::short`].
    pub fn parse_short(name: &str) -> Option<Dtype> {
        Dtype::ALL.iter().copied().find(|d| d.short() == name)
    }
}

/// A size, stride or byte count: a number, or an expression over the graph's symbols.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dim {
    /// A known number.
    Static(i64),
    /// A symbolic expression of the graph, with its hint.
    Symbolic(ExprId),
}

impl Dim {
    /// The number, if it is one.
    pub fn known(self) -> Option<i64> {
        match self {
            Dim::Static(n) => Some(n),
            Dim::Symbolic(_) => None,
        }
    }
}

/// An interned list of [`Dim`]s of one graph (a shape or strides).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DimsId(pub(super) u32);

/// A symbolic expression of one graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ExprId(pub u32);

/// A symbolic expression as recorded: text and the value it had when traced, if any.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Expr {
    /// The expression, in Python syntax.
    pub text: Str,
    /// Its hint.
    pub hint: Option<i64>,
}

/// A tensor of one graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TensorId(pub u32);

/// What is recorded about one tensor value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tensor {
    /// Sizes, in elements.
    pub shape: DimsId,
    /// Strides, in elements.
    pub stride: DimsId,
    /// Element type.
    pub dtype: Dtype,
    /// `requires_grad`, where recorded.
    pub requires_grad: Option<bool>,
    /// Device, for example `cuda:0`.
    pub device: Str,
    /// Recorded storage: equal ids mean that the tracer saw one storage. A second witness only; aliasing
    /// follows from the operator's schema.
    pub storage: Option<StorageId>,
    /// Offset into the storage, in elements.
    pub offset: i64,
    /// Size of the storage in bytes, where recorded.
    pub storage_bytes: Option<Dim>,
    /// Whether nobody recorded its strides and no rule tells them, or those that they follow from. They are row-major
    /// then, or as if those were.
    pub is_guessed: bool,
}

/// A recorded storage id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StorageId(pub u32);

/// What a node returns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Out {
    /// Nothing is recorded.
    Absent,
    /// `None`: also the place of an absent output in a tuple.
    None,
    /// A tensor.
    Tensor(TensorId),
    /// A Python int.
    Int(i64),
    /// A symbolic integer.
    SymInt(ExprId),
    /// A symbolic bool.
    SymBool(ExprId),
    /// Something else, by type name.
    Other(Str),
    /// Several outputs.
    Tuple(Span),
    /// A mapping: `Key` and value alternate.
    Dict(Span),
    /// A key of a mapping.
    Key(Str),
}
