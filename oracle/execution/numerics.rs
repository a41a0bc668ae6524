//! How far floats may part that are computed in another way: each level takes in all those before it.

use std::fmt;

/// How far floats may part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Numerics {
    /// Not at all: bit for bit.
    #[default]
    Exact,
    /// In the signs of zeros: `x + 0.0` may be `x`.
    ZeroSign,
    /// In the order and grouping of sums, products and quotients.
    Reassociation,
    /// In how a function of real numbers is written: products and sums rounded at once, fused functions.
    Contraction,
    /// In the floats that are computed in: casts may go, or come.
    Precision,
    /// In anything, as far as a tolerance goes.
    Approximate,
}

impl Numerics {
    /// All of them, the strictest first.
    pub const ALL: [Numerics; 6] = [
        Numerics::Exact,
        Numerics::ZeroSign,
        Numerics::Reassociation,
        Numerics::Contraction,
        Numerics::Precision,
        Numerics::Approximate,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Numerics::Exact => "exact",
            Numerics::ZeroSign => "zero-sign",
            Numerics::Reassociation => "reassociation",
            Numerics::Contraction => "contraction",
            Numerics::Precision => "precision",
            Numerics::Approximate => "approximate",
        }
    }

    /// The level with this name.
    pub fn named(name: &str) -> Option<Numerics> {
        Numerics::ALL.into_iter().find(|level| level.name() == name)
    }
}

impl fmt::Display for Numerics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
