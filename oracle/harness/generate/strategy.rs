//! proptest strategies over generated cases (feature `proptest`).
//!
//! A strategy draws a seed and generates; it does not draw choices one by one, because choices do not shrink well: to
//! remove one shifts what the others mean. What a value tree shrinks is the *case*, by proposals of a [`Shrink`]: a
//! reducer, which knows graphs. Without one, cases do not shrink.

use super::{Config, Seeded, Shrink, generate};
use crate::case::Case;
use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use rand_core::Rng;

/// Proposes nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoShrink;

impl Shrink for NoShrink {
    type Place = ();

    fn smaller(&self, _case: &Case, _place: &mut ()) -> Option<Case> {
        None
    }
}

/// A strategy over generated cases.
#[derive(Clone, Debug)]
pub struct Cases<S = NoShrink> {
    config: Config,
    swarm: bool,
    shrink: S,
}

/// Cases of this configuration, a swarm each. They do not shrink until [`Cases::shrunk_by`] says how.
pub fn cases(config: Config) -> Cases {
    Cases { config, swarm: true, shrink: NoShrink }
}

impl<S: Shrink> Cases<S> {
    /// Every case with this configuration as it is.
    pub fn without_swarm(self) -> Cases<S> {
        Cases { swarm: false, ..self }
    }

    /// Failing cases are shrunk by the proposals of `shrink`.
    pub fn shrunk_by<T: Shrink>(self, shrink: T) -> Cases<T> {
        Cases { config: self.config, swarm: self.swarm, shrink }
    }
}

impl<S: Shrink + std::fmt::Debug> Strategy for Cases<S> {
    type Tree = Tree<S>;
    type Value = Case;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Cases<S>> {
        let mut source = Seeded::new(runner.rng().next_u64());
        let config = if self.swarm { self.config.clone().swarmed(&mut source) } else { self.config.clone() };
        Ok(Tree {
            smallest: generate(&mut source, &config).into_case(),
            proposed: None,
            place: S::Place::default(),
            found: false,
            ended: false,
            shrink: self.shrink.clone(),
        })
    }
}

/// A case and how far it has been shrunk.
pub struct Tree<S: Shrink> {
    /// The smallest case known to fail.
    smallest: Case,
    /// What is tried now.
    proposed: Option<Case>,
    place: S::Place,
    /// Whether a proposal of this round failed.
    found: bool,
    /// Whether there are no proposals any more.
    ended: bool,
    shrink: S,
}

impl<S: Shrink> std::fmt::Debug for Tree<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tree").field("current", &self.current()).finish_non_exhaustive()
    }
}

impl<S: Shrink> Tree<S> {
    /// Moves to the next proposal, if there is one.
    fn propose(&mut self) -> bool {
        while !self.ended {
            self.proposed = self.shrink.smaller(&self.smallest, &mut self.place);
            if self.proposed.is_some() {
                return true;
            }
            self.ended = !std::mem::take(&mut self.found);
            self.place = S::Place::default();
        }
        false
    }
}

impl<S: Shrink> ValueTree for Tree<S> {
    type Value = Case;

    fn current(&self) -> Case {
        self.proposed.as_ref().unwrap_or(&self.smallest).clone()
    }

    /// The current case fails: it is the smallest one now, and a smaller one is proposed.
    fn simplify(&mut self) -> bool {
        if let Some(proposed) = self.proposed.take() {
            (self.smallest, self.found) = (proposed, true);
        }
        self.propose()
    }

    /// The current case passes: the next proposal. When there is none left, the smallest failing case is current
    /// once more, so that what stands beside it in a tuple of strategies can go on.
    fn complicate(&mut self) -> bool {
        let tried = self.proposed.take().is_some();
        self.propose() || tried
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::test_runner::{Config as RunnerConfig, TestError};

    /// Removes the groups of a case, one at a time: a stand-in for a reducer.
    #[derive(Clone, Debug)]
    struct FewerGroups;

    impl Shrink for FewerGroups {
        type Place = usize;

        fn smaller(&self, case: &Case, place: &mut usize) -> Option<Case> {
            if *place >= case.graph.world.groups.len() {
                return None;
            }
            let mut smaller = case.clone();
            smaller.graph.world.groups.remove(*place);
            *place += 1;
            Some(smaller)
        }
    }

    fn runner() -> TestRunner {
        TestRunner::new(RunnerConfig { failure_persistence: None, ..RunnerConfig::with_cases(64) })
    }

    fn groups(case: &Case) -> usize {
        case.graph.world.groups.len()
    }

    #[test]
    fn trees_shrink_by_proposals() {
        let strategy = cases(Config { max_groups: 6, ..Config::default() }).shrunk_by(FewerGroups);
        let result = runner().run(&strategy, |case| {
            proptest::prop_assert!(groups(&case) < 2);
            Ok(())
        });
        match result {
            Err(TestError::Fail(_, smallest)) => assert_eq!(groups(&smallest), 2),
            other => panic!("{other:?}"),
        }
    }

    /// Shrinking is over when no proposal fails, also where a test fails only now and then.
    #[test]
    fn trees_come_to_an_end() {
        let strategy = cases(Config { max_groups: 6, ..Config::default() }).shrunk_by(FewerGroups);
        for seed in 0..20 {
            let mut tree = strategy.new_tree(&mut runner()).unwrap();
            let (most, mut bits) = (groups(&tree.current()), Seeded::new(seed));
            let mut asked = 0;
            let mut more = tree.simplify();
            while more {
                asked += 1;
                more = if crate::generate::Source::percent(&mut bits, 50) {
                    tree.simplify()
                } else {
                    tree.complicate()
                };
            }
            assert!(asked <= 2 * most * (most + 1), "{asked}");
            assert!(groups(&tree.current()) <= most);
        }
        let mut still = cases(Config::default()).new_tree(&mut runner()).unwrap();
        assert!(!still.simplify() && !still.complicate());
    }

    /// A component of a tuple that has come to its end leaves the others to go on.
    #[test]
    fn trees_shrink_side_by_side() {
        let strategy =
            (cases(Config { max_groups: 6, ..Config::default() }).shrunk_by(FewerGroups), 0..1000u32);
        let result = runner().run(&strategy, |(case, number)| {
            proptest::prop_assert!(groups(&case) < 2 || number < 10);
            Ok(())
        });
        match result {
            Err(TestError::Fail(_, (case, number))) => assert_eq!((groups(&case), number), (2, 10)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_seed_one_case() {
        let strategy = cases(Config::default());
        let draw = || strategy.new_tree(&mut TestRunner::deterministic()).unwrap().current();
        assert_eq!(draw().to_string(), draw().to_string());
    }
}
