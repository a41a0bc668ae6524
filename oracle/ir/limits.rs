//! The limits: how much of anything is accepted, in one table (docs/limits.md).
//!
//! A few bytes of text can ask for 2^40 pieces or for a world of 2^32 ranks. What is counted here is checked before
//! anything is built. A limit that somebody may want higher can be raised: a [`Limits`] is then handed to whoever
//! checks it. The others are fixed, and are asked for where they are checked, as `Limit::Ranks.standard()`.
//!
//! Time has no limit here, nor has what a campaign is told to do: how many cases, for how long.

use std::fmt;

macro_rules! limits {
    ($($variant:ident $name:literal $standard:expr, $most:expr, $unit:literal, $reason:literal;)*) => {
        /// What is limited.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Limit {
            $(#[doc = $reason] $variant,)*
        }

        impl Limit {
            /// All of them, in the order of the table.
            pub const ALL: &'static [Limit] = &[$(Limit::$variant),*];

            const fn row(self) -> Row {
                match self {
                    $(Limit::$variant => Row {
                        name: $name, standard: $standard, most: $most, unit: $unit, reason: $reason,
                    },)*
                }
            }
        }
    };
}

/// A row of the table.
struct Row {
    name: &'static str,
    standard: u64,
    most: u64,
    unit: &'static str,
    reason: &'static str,
}

const MIB: u64 = 1 << 20;

// Name, standard value, the highest that may be asked for, unit, reason.
limits! {
    Text "text" 512 * MIB, 3072 * MIB, "bytes",
        "A file, and what it holds when it is decompressed. A graph of a million nodes takes 200 MB; places in a text are counted in 32 bits.";
    Parts "parts" 48 * MIB, 1 << 32, "parts",
        "What a file of a graph, of events or of process groups holds, and a graph in a trace, counted before it is read: a comma is one part, an opening bracket three, a line four, a line of a graph as PyTorch prints it sixteen. Each takes some 60 bytes.";
    Line "line" 64 * MIB, 64 * MIB, "bytes",
        "A line of a log, which is held as a whole. The longest that PyTorch prints, a signature of some thousand inputs, has less than a megabyte.";
    Hashes "hashes" 1 << 22, 1 << 22, "hashes",
        "Hashes of lists of ranks with which a run compares the names of process groups, for each size that groups have; divided by the size. All names of one size together take a second.";
    Threads "threads" 1024, 1024, "threads",
        "Threads that work at once, whatever RAYON_NUM_THREADS and --jobs say. More than processors gain nothing, and each has a stack.";
    Statement "statement" 1 << 12, 1 << 12, "bytes",
        "One statement of a report: a title, a fact, a name, a note. Of a longer one the middle is left out; a name may have megabytes.";
    Objects "objects" 1 << 25, 1 << 30, "objects",
        "What a dump of a running program holds (a memory snapshot, a flight recorder), counted as often as it is referred to. A snapshot of half a million events with their stacks; each takes some 30 bytes.";
    Brackets "brackets" 256, 256, "levels",
        "Brackets inside brackets in a text case. The reader calls itself at each, and its stack has an end.";
    Json "json" 100, 100, "levels",
        "Objects and lists inside others in exchange JSON, for the same reason.";
    Expression "expression" 64, 64, "levels",
        "Parentheses inside others in a symbolic size, for the same reason.";
    Bodies "bodies" 32, 32, "levels",
        "Higher-order operators inside the bodies of others. The reader and the judge call themselves at each.";
    Expanded "expanded" 1 << 18, 1 << 18, "nodes",
        "Nodes of a graph with each body in the place of its calls. Thirty bodies that run the next one twice have a thousand million.";
    Ranks "ranks" 1 << 20, 1 << 20, "ranks",
        "Ranks of a world. Nobody trains on a million.";
    Groups "groups" 1 << 14, 1 << 14, "names",
        "Names of process groups. A rank is in some tens.";
    Members "members" 1 << 24, 1 << 24, "ranks",
        "Ranks that the lists of all process groups hold together: sixteen groups of a million ranks, a thousand of 16,384.";
    Dimensions "dimensions" 64, 64, "dimensions",
        "Dimensions of a tensor, as in PyTorch.";
    Tensor "tensor" 1 << 50, 1 << 50, "bytes",
        "The elements of one tensor, how far its strides reach, and each number that its record holds. All memory of the largest cluster is less.";
    Pieces "pieces" 1 << 16, 1 << 16, "tensors",
        "Results of one call that its rule lists: pieces of a split, rows of an unbind. With more the rule does not decide.";
    Inferred "inferred" 1 << 12, 1 << 12, "tensors",
        "Results of one call whose types a text case leaves out. More must be written.";
    Definition "definition" 1 << 12, 1 << 12, "nodes",
        "Nodes that the definition of one operator is written out as. An optimiser of some hundred parameters needs them.";
    Elements "elements" 4_000_000, 1 << 32, "elements",
        "What an execution touches, over all ranks and nodes; with more, values are proved and not executed. A fraction of a second.";
    Executed "executed-ranks" 64, 64, "ranks",
        "Ranks of a world whose graphs are executed. The cost grows with their number, and what goes wrong shows on few.";
    Smoke "smoke" 1 << 20, 1 << 32, "elements",
        "What all ranks of a case of smoke hold together.";
    SmokeRanks "smoke-ranks" 256, 1 << 14, "ranks",
        "Ranks of a case of smoke, which share one device.";
    SmokeClocks "smoke-clocks" 1 << 26, 1 << 32, "entries",
        "Entries of the clocks of a case of smoke: every stream, and every event, knows how far each stream is. A rank has a stream, and one more for each group that it uses.";
    StreamClocks "stream-clocks" 1 << 26, 1 << 26, "entries",
        "Calls of a graph times the streams on which they run: each call knows how far each stream is.";
    Dependences "dependences" 1 << 22, 1 << 22, "pairs",
        "Pairs of a node and a buffer in the memory model of Inductor's scheduler, where who writes memory depends on everybody who used it before. With more the reference gives no estimates.";
    Shown "shown" 1 << 18, 1 << 18, "nodes",
        "Nodes of all graphs on one page of --html. Thirty graphs of 8,000; a browser holds more, and nobody reads them.";
    Request "request" 64 * MIB, 512 * MIB, "bytes",
        "The form that a browser sends to serve: two graphs. One of ten thousand nodes has 5 MB, and half as much again as a form.";
    RequestHead "request-head" 1 << 16, 1 << 16, "bytes",
        "The head of a request to serve, in whose address a small case may stand.";
    Listed "listed" 2000, 2000, "entries",
        "Entries of a folder on one page of serve.";
    Seeds "seeds" 1_000_000, 1_000_000, "seeds",
        "Seeds of one score. What each of them came to is kept for the median.";
    Answer "answer" 64 * MIB, 3072 * MIB, "bytes",
        "One answer of a worker. A pass does not make a graph much larger.";
    Store "store" 1024 * MIB, 1024 * MIB, "bytes",
        "The record of a campaign, which takes a line a batch. A million cases take some megabytes.";
}

impl Limit {
    /// Its name on the command line and in docs/limits.md.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// What holds where nobody says otherwise.
    pub const fn standard(self) -> u64 {
        self.row().standard
    }

    /// The highest value that may be asked for.
    pub const fn most(self) -> u64 {
        self.row().most
    }

    /// What is counted.
    pub const fn unit(self) -> &'static str {
        self.row().unit
    }

    /// Why there is a limit, and why there.
    pub const fn reason(self) -> &'static str {
        self.row().reason
    }

    /// Whether it can be raised.
    pub const fn is_fixed(self) -> bool {
        self.most() == self.standard()
    }

    /// The limit of this name.
    pub fn named(name: &str) -> Option<Limit> {
        Limit::ALL.iter().copied().find(|limit| limit.name() == name)
    }
}

/// `text (536870912 bytes)`
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} {})", self.name(), self.standard(), self.unit())
    }
}

/// The values that hold in one run of the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limits([u64; Limit::ALL.len()]);

impl Default for Limits {
    fn default() -> Limits {
        let mut values = [0; Limit::ALL.len()];
        for (value, limit) in values.iter_mut().zip(Limit::ALL) {
            *value = limit.standard();
        }
        Limits(values)
    }
}

impl Limits {
    /// The value of a limit.
    pub fn get(&self, limit: Limit) -> u64 {
        self.0[limit as usize]
    }

    /// With another value of a limit.
    ///
    /// # Errors
    /// Where the limit is fixed, or the value is 0 or too high.
    pub fn with(mut self, limit: Limit, value: u64) -> Result<Limits, LimitError> {
        if limit.is_fixed() {
            return Err(LimitError::Fixed(limit));
        }
        if value == 0 || value > limit.most() {
            return Err(LimitError::Range(limit));
        }
        self.0[limit as usize] = value;
        Ok(self)
    }
}

/// Why a limit cannot be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LimitError {
    /// It is fixed.
    #[error("{} is fixed at {} {}: {}", .0.name(), .0.standard(), .0.unit(), .0.reason())]
    Fixed(Limit),
    /// The value is out of range.
    #[error("{} can be 1 to {} {}", .0.name(), .0.most(), .0.unit())]
    Range(Limit),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_raised_within_its_range() {
        let limits = Limits::default();
        assert_eq!(limits.get(Limit::Text), Limit::Text.standard());
        let raised = limits.clone().with(Limit::Text, 1 << 30).unwrap();
        assert_eq!(raised.get(Limit::Text), 1 << 30);
        assert_eq!(raised.get(Limit::Elements), Limit::Elements.standard());
        assert_eq!(limits.clone().with(Limit::Text, u64::MAX), Err(LimitError::Range(Limit::Text)));
        assert_eq!(limits.clone().with(Limit::Text, 0), Err(LimitError::Range(Limit::Text)));
        assert_eq!(limits.with(Limit::Ranks, 5), Err(LimitError::Fixed(Limit::Ranks)));
    }

    #[test]
    fn names_are_distinct_and_values_in_range() {
        for (i, limit) in Limit::ALL.iter().enumerate() {
            assert_eq!(Limit::named(limit.name()), Some(*limit));
            assert_eq!(*limit as usize, i);
            assert!(limit.standard() <= limit.most());
        }
    }
}
