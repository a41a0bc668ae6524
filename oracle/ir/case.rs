//! A case: a graph with its world, a pass with its configuration, and what is expected of it.
//!
//! A case is what a fuzzer makes, a candidate receives, a test states and a bug report shows. It may also hold
//! the outcome that some implementation gave for it, so that a verdict can be repeated without that
//! implementation. The text form is in [`format::text`](crate::format::text); `Debug` and `Display` of a case
//! print it.

mod claim;
mod traced;

pub use claim::{Claim, ClaimedLife, Increment, Offset};
pub use traced::TracedAgain;

use crate::graph::Graph;
use crate::quantity;

/// A graph, a pass, and what is expected.
#[derive(Clone, Default)]
pub struct Case {
    /// The graph as it stands before the pass, with its world.
    pub graph: Graph,
    /// The graphs of ranks that run another one than `graph`, as under pipeline parallelism.
    pub programs: Vec<Program>,
    /// The pass; `None` where a file holds a graph alone.
    pub pass: Option<PassConfig>,
    /// What should be found, in file order.
    pub expectations: Vec<Expectation>,
    /// An outcome that was recorded with the case.
    pub outcome: Option<Recorded>,
    /// The outcome of a partition, where that is what was recorded.
    pub parts: Option<Box<RecordedParts>>,
    /// What was claimed about memory, where that is what was recorded. A graph that came out of it is `outcome`.
    pub claim: Option<Box<Claim>>,
    /// The comments of the file.
    pub comments: Vec<Comment>,
}

impl Case {
    /// A case of one graph and nothing else.
    pub fn of_graph(graph: Graph) -> Case {
        Case { graph, ..Case::default() }
    }

    /// Whether it records what a pass gave.
    pub fn is_recorded(&self) -> bool {
        self.outcome.is_some() || self.parts.is_some() || self.claim.is_some()
    }
}

/// Two cases are equal if they say the same: graphs by [`Graph::difference`], comments place by place.
impl PartialEq for Case {
    fn eq(&self, other: &Case) -> bool {
        fn graphs(case: &Case) -> Vec<(Option<u32>, Option<&Graph>)> {
            let outcome = case.outcome.iter().flat_map(|outcome| outcome.entries());
            let recorded =
                outcome.flat_map(|(rank, g)| [(rank, g.unrepaired.as_ref()), (rank, Some(&g.repaired))]);
            let parts = case.parts.iter().flat_map(|parts| [&parts.forward, &parts.backward]);
            let programs = case.programs.iter().map(|program| &program.graph);
            let more = parts.chain(programs).map(|graph| (None, Some(graph)));
            std::iter::once((None, Some(&case.graph))).chain(recorded).chain(more).collect()
        }
        fn comments(case: &Case) -> Vec<&Comment> {
            let mut comments: Vec<&Comment> = case.comments.iter().collect();
            comments.sort_by_key(|c| (&c.place, c.beside));
            comments
        }
        let (a, b) = (graphs(self), graphs(other));
        self.pass == other.pass
            && self.expectations == other.expectations
            && self.outcome.is_some() == other.outcome.is_some()
            && self.parts.is_some() == other.parts.is_some()
            && self.claim == other.claim
            && self.programs.iter().map(|p| &p.ranks).eq(other.programs.iter().map(|p| &p.ranks))
            && a.len() == b.len()
            && a.iter().zip(&b).all(|(a, b)| {
                a.0 == b.0
                    && match (a.1, b.1) {
                        (Some(a), Some(b)) => a.difference(b).is_none(),
                        (a, b) => a.is_none() && b.is_none(),
                    }
            })
            && comments(self) == comments(other)
    }
}

/// A graph that some ranks run.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The ranks.
    pub ranks: Vec<u32>,
    /// Their graph before the pass. Its world is that of the case.
    pub graph: Graph,
}

/// A recorded outcome.
#[derive(Clone, Debug)]
pub enum Recorded {
    /// One for all ranks.
    Same(Box<RecordedGraphs>),
    /// One per rank, for an implementation that bakes the rank into its graph.
    PerRank(Vec<(u32, RecordedGraphs)>),
}

impl Recorded {
    /// The graphs with the rank that they are for; `None` where they are for all ranks.
    pub fn entries(&self) -> Vec<(Option<u32>, &RecordedGraphs)> {
        match self {
            Recorded::Same(graphs) => vec![(None, graphs)],
            Recorded::PerRank(ranks) => ranks.iter().map(|(rank, graphs)| (Some(*rank), graphs)).collect(),
        }
    }
}

/// The two parts that a partition made of a joint graph.
#[derive(Clone, Debug)]
pub struct RecordedParts {
    /// The forward graph.
    pub forward: Graph,
    /// The backward graph.
    pub backward: Graph,
}

/// What a pass gave for one rank.
#[derive(Clone, Debug)]
pub struct RecordedGraphs {
    /// The graph before its topological repair, where the implementation showed it.
    pub unrepaired: Option<Graph>,
    /// The final graph; after a refusal the graph that the implementation left behind.
    pub repaired: Graph,
    /// The implementation's reason, if it refused.
    pub refused: Option<String>,
}

/// What one line `expect ...` states.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expectation {
    /// The verdict on what somebody returns.
    Verdict {
        /// Whose outcome is judged.
        of: Subject,
        /// The verdict.
        is: Expected,
    },
    /// The graph itself has a fault of this kind.
    Fault(String),
}

/// Whose outcome is judged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Subject {
    /// The reference implementation.
    Reference,
    /// The outcome recorded in the file.
    Outcome,
    /// A candidate, by name.
    Candidate(String),
}

/// An expected verdict.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expected {
    /// No rule is violated.
    Sound,
    /// At least these rules are violated.
    Violates(Vec<String>),
    /// The candidate declines.
    Refused,
    /// The oracle cannot tell.
    Undecided,
}

/// A pass and its options.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PassConfig {
    /// `bucketing`, `repair`, ...
    pub name: String,
    /// Options in file order; keys are distinct.
    pub options: Vec<(String, Setting)>,
    /// How long nodes take: an explicit input of passes that schedule.
    pub estimates: Vec<EstimateTable>,
}

/// How long nodes take, as one rank or every rank estimates it. What it leaves out is left to whoever reads it.
#[derive(Clone, Debug, Default)]
pub struct EstimateTable {
    /// The rank whose figures these are; `None`: those of all ranks.
    pub rank: Option<u32>,
    /// Bytes per second of memory.
    pub memory: Option<f64>,
    /// Bytes per second of a link.
    pub link: Option<f64>,
    /// Seconds to start a collective.
    pub latency: Option<f64>,
    /// Node names and seconds, in file order.
    pub seconds: Vec<(String, f64)>,
}

/// Numbers are equal if they are the same bits, so that every table equals itself.
impl PartialEq for EstimateTable {
    fn eq(&self, other: &EstimateTable) -> bool {
        let bits = |figure: Option<f64>| figure.map(f64::to_bits);
        let model = |table: &EstimateTable| [table.memory, table.link, table.latency].map(bits);
        let same = |(a, b): (&(String, f64), &(String, f64))| a.0 == b.0 && a.1.to_bits() == b.1.to_bits();
        self.rank == other.rank
            && model(self) == model(other)
            && self.seconds.len() == other.seconds.len()
            && self.seconds.iter().zip(&other.seconds).all(same)
    }
}

impl Eq for EstimateTable {}

/// The value of an option, as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Setting {
    /// A word, number or size.
    Text(String),
    /// A list.
    List(Vec<Setting>),
}

/// An option whose value is not of the kind that the pass reads.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("option {key} of pass {pass} should be {expected}, not {found}")]
pub struct SettingError {
    /// The pass.
    pub pass: String,
    /// The option.
    pub key: String,
    /// What it should be, in words.
    pub expected: &'static str,
    /// What the case says.
    pub found: String,
}

impl PassConfig {
    /// A pass without options.
    pub fn new(name: impl Into<String>) -> PassConfig {
        PassConfig { name: name.into(), ..PassConfig::default() }
    }

    /// The same with one more option.
    pub fn with(mut self, key: impl Into<String>, value: impl Into<String>) -> PassConfig {
        self.options.push((key.into(), Setting::Text(value.into())));
        self
    }

    /// Gives an option another value, whatever it had.
    pub fn set(&mut self, key: String, value: Setting) {
        self.options.retain(|(known, _)| *known != key);
        self.options.push((key, value));
    }

    /// An option as written.
    pub fn get(&self, key: &str) -> Option<&Setting> {
        self.options.iter().find(|(k, _)| k == key).map(|(_, setting)| setting)
    }

    /// The same without some options.
    pub fn without(mut self, keys: &[&str]) -> PassConfig {
        self.options.retain(|(key, _)| !keys.contains(&key.as_str()));
        self
    }

    /// The options that are not among `known`.
    pub fn unknown(&self, known: &[&str]) -> Vec<&str> {
        self.options.iter().map(|(k, _)| k.as_str()).filter(|k| !known.contains(k)).collect()
    }

    fn read<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        read: impl Fn(&'a Setting) -> Option<T>,
    ) -> Result<Option<T>, SettingError> {
        let Some(setting) = self.get(key) else { return Ok(None) };
        read(setting).map(Some).ok_or_else(|| SettingError {
            pass: self.name.clone(),
            key: key.to_string(),
            expected,
            found: setting.to_string(),
        })
    }

    /// An option as a word.
    pub fn word(&self, key: &str) -> Result<Option<&str>, SettingError> {
        self.read(key, "a word", Setting::word)
    }

    /// An option as an integer.
    pub fn int(&self, key: &str) -> Result<Option<i64>, SettingError> {
        self.read(key, "an integer", Setting::int)
    }

    /// An option as a number.
    pub fn number(&self, key: &str) -> Result<Option<f64>, SettingError> {
        self.read(key, "a number", Setting::number)
    }

    /// An option as numbers; one number counts as a list of one.
    pub fn numbers(&self, key: &str) -> Result<Option<Vec<f64>>, SettingError> {
        self.read(key, "a list of numbers", |setting| setting.items().iter().map(Setting::number).collect())
    }

    /// An option as `true` or `false`.
    pub fn bool(&self, key: &str) -> Result<Option<bool>, SettingError> {
        self.read(key, "true or false", Setting::bool)
    }

    /// An option as a size in bytes. See [`Setting::size`].
    pub fn size(&self, key: &str) -> Result<Option<u64>, SettingError> {
        self.read(key, quantity::SIZES, Setting::size)
    }

    /// An option as sizes in bytes; one size counts as a list of one.
    pub fn sizes(&self, key: &str) -> Result<Option<Vec<u64>>, SettingError> {
        self.read(key, "a list of sizes such as [64MiB, 1.5GiB]", |setting| {
            setting.items().iter().map(Setting::size).collect()
        })
    }

    /// An option as words; one word counts as a list of one.
    pub fn words(&self, key: &str) -> Result<Option<Vec<&str>>, SettingError> {
        self.read(key, "a list of words", |setting| setting.items().iter().map(Setting::word).collect())
    }

    /// An option as integers; one integer counts as a list of one.
    pub fn ints(&self, key: &str) -> Result<Option<Vec<i64>>, SettingError> {
        self.read(key, "a list of integers", |setting| setting.items().iter().map(Setting::int).collect())
    }
}

/// Which of the positions below `count` are in one of these ranges, given by their first and last position.
pub fn covered(mut ranges: Vec<(usize, usize)>, count: usize) -> Vec<bool> {
    ranges.retain(|(first, last)| first <= last);
    ranges.sort_unstable();
    let mut ranges = ranges.into_iter().peekable();
    let mut until = None;
    let is_in = |position: usize| {
        while let Some((_, last)) = ranges.next_if(|&(first, _)| first <= position) {
            until = until.max(Some(last));
        }
        until >= Some(position)
    };
    (0..count).map(is_in).collect()
}

impl Setting {
    /// The elements of a list; anything else is a list of itself.
    pub fn items(&self) -> &[Setting] {
        match self {
            Setting::Text(_) => std::slice::from_ref(self),
            Setting::List(items) => items,
        }
    }

    /// The text, if this is no list.
    pub fn word(&self) -> Option<&str> {
        match self {
            Setting::Text(text) => Some(text),
            Setting::List(_) => None,
        }
    }

    /// An integer.
    pub fn int(&self) -> Option<i64> {
        self.word()?.parse().ok()
    }

    /// A finite number.
    pub fn number(&self) -> Option<f64> {
        self.word()?.parse().ok().filter(|x: &f64| x.is_finite())
    }

    /// `true` or `false`, also spelled as in Python.
    pub fn bool(&self) -> Option<bool> {
        match self.word()? {
            "true" | "True" => Some(true),
            "false" | "False" => Some(false),
            _ => None,
        }
    }

    /// A size in bytes, or another count that is limited ([`quantity::size`]).
    pub fn size(&self) -> Option<u64> {
        quantity::size(self.word()?).ok()
    }
}

/// A comment of a case file: a line of its own, or the end of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Comment {
    /// What it belongs to.
    pub place: Place,
    /// Whether it stands on the line of what it belongs to rather than on a line above.
    pub beside: bool,
    /// The text after `#` and a space.
    pub text: String,
}

/// What a comment belongs to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// The head of the file.
    Head,
    /// The line with the world.
    World,
    /// The line with the pass.
    Pass,
    /// An estimate table, by index.
    Estimates(usize),
    /// A section line.
    Section(Part),
    /// A line of the claim.
    Claim(ClaimLine),
    /// A node, by name.
    Node(Part, String),
    /// A body, by the attributes that lead to it, and what stands in it.
    Body(Part, String),
    /// A cluster, by name.
    Cluster(Part, String),
    /// An expectation, by index.
    Expectation(usize),
    /// The end of the file.
    End,
}

/// One of the graphs of a case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Part {
    /// The graph before the pass.
    Before,
    /// The graph before the pass of ranks with a program of their own: an index into [`Case::programs`].
    Program(usize),
    /// The outcome before its repair; for one rank or for all.
    Unrepaired(Option<u32>),
    /// The outcome; for one rank or for all.
    After(Option<u32>),
    /// The forward graph of a partition.
    Forward,
    /// The backward graph of a partition.
    Backward,
    /// The claim about memory: no graph, but lines of its own.
    Claim,
}

/// One line of a claim about memory; lines that may stand several times by index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ClaimLine {
    /// The order to run in.
    Order,
    /// The peak.
    Peak,
    /// Live bytes before the first step.
    Before,
    /// Live bytes of the steps.
    Steps,
    /// There are no lives.
    NoLives,
    /// A life.
    Life(usize),
    /// An estimate of the peak.
    Estimate(usize),
    /// There are no increments.
    NoIncrements,
    /// A swap of an incremental tracker.
    Increment(usize),
    /// There are no offsets.
    NoOffsets,
    /// The place of a storage in the arena.
    Offset(usize),
    /// There are no runs.
    NoRuns,
    /// A run of a verifier.
    Run(usize),
}

#[cfg(test)]
mod tests {
    use super::covered;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn covered_positions_are_those_in_a_range(
            ranges in prop::collection::vec((0usize..12, 0usize..12), 0..5), count in 0usize..14
        ) {
            let each = (0..count).map(|i| ranges.iter().any(|&(first, last)| (first..=last).contains(&i)));
            let each: Vec<bool> = each.collect();
            prop_assert_eq!(covered(ranges, count), each);
        }
    }
}
