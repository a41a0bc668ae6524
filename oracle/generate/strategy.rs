//! proptest strategies over generated cases (feature `proptest`).
//!
//! A strategy draws a seed and generates; it does not draw choices one by one, because choices do not shrink well: to
//! remove one shifts what the others mean. What a value tree shrinks is the *case*, by proposals of a [`Shrink`].
//!
//! ```
//! # #[cfg(feature = "proptest")]
//! # {
//! use graph_oracle::generate::{Config, strategy};
//! use proptest::prelude::*;
//!
//! proptest!(ProptestConfig::with_cases(16), |(case in strategy::cases(Config::default()))| {
//!     prop_assert!(case.graph.world.faults().is_empty());
//! });
//! # }
//! ```

use super::{Config, Generated, Seeded, generate};
use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use rand_core::Rng;
use std::sync::Arc;

/// Proposes smaller cases. A reducer implements this.
pub trait Shrink: Send + Sync {
    /// Cases smaller than `case`, the most promising first. They need not fail as `case` does: each is tried.
    fn smaller<'a>(&self, case: &'a Generated) -> Box<dyn Iterator<Item = Generated> + 'a>;
}

/// Proposes nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoShrink;

impl Shrink for NoShrink {
    fn smaller<'a>(&self, _case: &'a Generated) -> Box<dyn Iterator<Item = Generated> + 'a> {
        Box::new(std::iter::empty())
    }
}

/// A strategy over generated cases.
#[derive(Clone)]
pub struct Cases {
    config: Config,
    swarm: bool,
    shrink: Arc<dyn Shrink>,
}

impl std::fmt::Debug for Cases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cases")
            .field("config", &self.config)
            .field("swarm", &self.swarm)
            .finish_non_exhaustive()
    }
}

/// Cases of this configuration, a swarm each. They do not shrink until [`Cases::shrunk_by`] says how.
pub fn cases(config: Config) -> Cases {
    Cases { config, swarm: true, shrink: Arc::new(NoShrink) }
}

impl Cases {
    /// Every case with this configuration as it is.
    pub fn without_swarm(self) -> Cases {
        Cases { swarm: false, ..self }
    }

    /// Failing cases are shrunk by the proposals of `shrink`.
    pub fn shrunk_by(self, shrink: impl Shrink + 'static) -> Cases {
        Cases { shrink: Arc::new(shrink), ..self }
    }
}

impl Strategy for Cases {
    type Tree = Tree;
    type Value = Generated;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Cases> {
        let mut source = Seeded::new(runner.rng().next_u64());
        let config = if self.swarm { self.config.clone().swarmed(&mut source) } else { self.config.clone() };
        Ok(Tree {
            accepted: generate(&mut source, &config),
            proposed: None,
            rest: None,
            shrink: self.shrink.clone(),
        })
    }
}

/// A case and what has been tried to make it smaller.
pub struct Tree {
    /// The smallest case known to fail.
    accepted: Generated,
    /// What is tried now.
    proposed: Option<Generated>,
    /// Proposals still to try for `accepted`, last one first.
    rest: Option<Vec<Generated>>,
    shrink: Arc<dyn Shrink>,
}

impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree").field("current", &self.current()).finish_non_exhaustive()
    }
}

impl Tree {
    fn propose(&mut self) -> bool {
        let shrink = self.shrink.clone();
        let rest = self.rest.get_or_insert_with(|| {
            let mut proposals: Vec<Generated> = shrink.smaller(&self.accepted).collect();
            proposals.reverse();
            proposals
        });
        self.proposed = rest.pop();
        self.proposed.is_some()
    }
}

impl ValueTree for Tree {
    type Value = Generated;

    fn current(&self) -> Generated {
        self.proposed.as_ref().unwrap_or(&self.accepted).clone()
    }

    /// The current case fails: it is accepted, and a smaller one is proposed.
    fn simplify(&mut self) -> bool {
        if let Some(proposed) = self.proposed.take() {
            (self.accepted, self.rest) = (proposed, None);
        }
        self.propose()
    }

    /// The current case passes: the next proposal. When there is none left, the smallest failing case is current.
    fn complicate(&mut self) -> bool {
        self.propose() || self.rest.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::test_runner::{Config as RunnerConfig, TestError};

    /// Halves the number of groups that a case has, one after another: a stand-in for a reducer.
    struct FewerGroups;

    impl Shrink for FewerGroups {
        fn smaller<'a>(&self, case: &'a Generated) -> Box<dyn Iterator<Item = Generated> + 'a> {
            let count = case.graph.world.groups.len();
            Box::new((0..count).map(|i| {
                let mut smaller = case.clone();
                smaller.graph.world.groups.remove(i);
                smaller
            }))
        }
    }

    #[test]
    fn trees_shrink_by_proposals() {
        let config = RunnerConfig { failure_persistence: None, ..RunnerConfig::with_cases(64) };
        let mut runner = TestRunner::new(config);
        let strategy = cases(Config { max_groups: 6, ..Config::default() }).shrunk_by(FewerGroups);
        let result = runner.run(&strategy, |case| {
            proptest::prop_assert!(case.graph.world.groups.len() < 2);
            Ok(())
        });
        match result {
            Err(TestError::Fail(_, smallest)) => assert_eq!(smallest.graph.world.groups.len(), 2),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_seed_one_case() {
        let strategy = cases(Config::default());
        let draw = || strategy.new_tree(&mut TestRunner::deterministic()).unwrap().current().into_case();
        assert_eq!(draw().to_string(), draw().to_string());
    }
}
