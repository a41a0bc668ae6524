//! The keys of a case: on which groups, in which dtypes and with which reductions it communicates.
//!
//! A case has a first key of each kind, which most of its collectives use, so that there is something to bucket;
//! the others make the runs end.

use super::config::Config;
use super::source::Source;
use crate::graph::{Dtype, DtypeClass, Graph, Str, Value, World};
use crate::ops::Collective;

/// The dtypes that occur. Complex numbers and wide unsigned integers do not: NCCL sends neither as such.
pub(super) const DTYPES: [Dtype; 12] = [
    Dtype::F32,
    Dtype::BF16,
    Dtype::F16,
    Dtype::F64,
    Dtype::I64,
    Dtype::I32,
    Dtype::I16,
    Dtype::I8,
    Dtype::U8,
    Dtype::Bool,
    Dtype::F8E4M3,
    Dtype::F8E5M2,
];

/// Pairs of main dtypes; the first one is the plain choice.
const PAIRS: [(Dtype, Dtype); 8] = [
    (Dtype::F32, Dtype::BF16),
    (Dtype::BF16, Dtype::F32),
    (Dtype::F32, Dtype::F32),
    (Dtype::F32, Dtype::F16),
    (Dtype::F16, Dtype::BF16),
    (Dtype::F32, Dtype::I32),
    (Dtype::I64, Dtype::F32),
    (Dtype::F64, Dtype::F32),
];

/// Reductions, as nodes name them.
const REDUCTIONS: [&str; 5] = ["sum", "avg", "max", "min", "product"];

/// Whether operators compute with this dtype. 8-bit floats and bools are only moved and cast.
pub(super) fn computes(dtype: Dtype) -> bool {
    !matches!(dtype, Dtype::F8E4M3 | Dtype::F8E5M2 | Dtype::Bool)
}

/// Whether collectives reduce it.
fn reduces(dtype: Dtype) -> bool {
    computes(dtype) && dtype != Dtype::I16
}

/// A group as nodes name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct GroupOf {
    pub name: Str,
    pub size: i64,
}

/// Where and how a collective communicates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Key {
    pub group: GroupOf,
    pub dtype: Dtype,
    /// Of reductions.
    pub reduce: Value,
}

#[derive(Debug)]
pub(super) struct Keys {
    pub groups: Vec<GroupOf>,
    pub ranks: i64,
    main: (Dtype, Dtype),
    reductions: [Str; REDUCTIONS.len()],
    /// First keys of gathers, reduce-scatters and all-reduces.
    first: [Key; 3],
}

impl Keys {
    pub fn new(source: &mut impl Source, config: &Config, world: &World, graph: &mut Graph) -> Keys {
        let groups: Vec<GroupOf> = world
            .groups
            .iter()
            .map(|group| GroupOf { name: graph.intern(&group.name), size: i64::from(group.size) })
            .collect();
        let main = source.one_of(&PAIRS);
        let reductions = REDUCTIONS.map(|name| graph.intern(name));
        let plain = Key { group: groups[0], dtype: main.0, reduce: Value::Str(reductions[0]) };
        let ranks = i64::from(world.ranks.unwrap_or(1));
        let mut keys = Keys { groups, ranks, main, reductions, first: [plain; 3] };
        for kind in [Collective::AllGather, Collective::ReduceScatter, Collective::AllReduce] {
            let key = keys.other(source, config, kind);
            // Groups of one rank are the exception.
            let group = if key.group.size == 1 { keys.groups[0] } else { key.group };
            keys.first[slot(kind)] = Key { group, ..key };
        }
        keys
    }

    /// One of the two main dtypes, or any.
    pub fn dtype(&self, source: &mut impl Source, config: &Config) -> Dtype {
        if source.percent(config.odd_dtype) {
            return source.one_of(&DTYPES);
        }
        if source.percent(35) { self.main.1 } else { self.main.0 }
    }

    /// A dtype that operators compute with.
    pub fn arithmetic(&self, source: &mut impl Source, config: &Config) -> Dtype {
        let dtype = self.dtype(source, config);
        if computes(dtype) { dtype } else { self.main.0 }
    }

    /// A floating-point dtype that operators compute with.
    pub fn float(&self, source: &mut impl Source, config: &Config) -> Dtype {
        let dtype = self.arithmetic(source, config);
        if dtype.class() == DtypeClass::Float { dtype } else { Dtype::F32 }
    }

    /// The first key of a kind, or another.
    pub fn key(&self, source: &mut impl Source, config: &Config, kind: Collective) -> Key {
        if source.percent(config.first_key) {
            self.first[slot(kind)]
        } else {
            self.other(source, config, kind)
        }
    }

    fn other(&self, source: &mut impl Source, config: &Config, kind: Collective) -> Key {
        let group = source.one_of(&self.groups);
        let mut dtype = self.dtype(source, config);
        if kind != Collective::AllGather && !reduces(dtype) {
            dtype = self.main.0;
        }
        let reduction = if source.percent(50) { source.below(REDUCTIONS.len() as u32) as usize } else { 0 };
        // Integers have no average.
        let reduction = if reduction == 1 && dtype.class() != DtypeClass::Float { 0 } else { reduction };
        Key { group, dtype, reduce: Value::Str(self.reductions[reduction]) }
    }

    /// Sums over `group`.
    pub fn sum(&self, group: GroupOf, dtype: Dtype) -> Key {
        Key { group, dtype, reduce: Value::Str(self.reductions[0]) }
    }
}

fn slot(kind: Collective) -> usize {
    match kind {
        Collective::ReduceScatter => 1,
        Collective::AllReduce => 2,
        _ => 0,
    }
}
