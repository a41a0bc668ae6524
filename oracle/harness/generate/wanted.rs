//! What cases are wanted: the pass, who is to take them, and on which terms.
//!
//! # The idea
//!
//! Campaigns, scores and the conformance kit say what is [`Wanted`]; each generator makes a configuration of that, and
//! a case of a seed and a number. Which generator a pass has stands in its row ([`crate::family`]).
//!
//! # What it does not do
//!
//! Refusals say nothing, so what somebody does not take is not made; whether a candidate is right is not asked here.

use super::{Config, Seeded, Source, Without, joint, schedule};
use crate::case::{Case, PassConfig, Setting};
use crate::graph::Graph;
use crate::judge::Offer;
use crate::judge::candidate::Candidate;
use crate::judge::partition::forward_outputs;
use crate::rules::PassKind;
use std::collections::BTreeMap;

/// Windows and grafts that are tried for one case.
const TRIES: u32 = 8;

/// How often nothing says which nodes of a joint graph are of forward and which of backward, in percent.
const UNTAGGED: u32 = 15;

/// The passes that somebody implements, and on which terms.
pub type Offers = BTreeMap<PassKind, Offer>;

/// What cases are wanted.
#[derive(Clone, Default)]
pub struct Wanted<'a> {
    /// The seed.
    pub seed: u64,
    /// The pass; all of them in turn if `None`.
    pub pass: Option<PassKind>,
    /// What each of those who are to take the cases offers; whose passes are taken in turn comes first.
    pub offers: Vec<Offers>,
    /// Options that every case gives its pass, in place of what is generated.
    pub set: &'a [(String, Setting)],
    /// Real graphs, by name: where there are some, cases are windows of them, made small and edited, or grafts of joint
    /// graphs.
    pub graphs: &'a [(String, Graph)],
    /// Whether graphs are as small as they can be and still say something.
    pub small: bool,
}

/// The passes of a candidate, and on which terms.
pub fn offers(candidate: &dyn Candidate) -> Offers {
    let passes = candidate.capabilities().passes.into_iter();
    passes.map(|pass| (pass, candidate.offer(pass).cloned().unwrap_or_default())).collect()
}

impl Wanted<'_> {
    pub(crate) fn offers_for(&self, pass: PassKind) -> impl Iterator<Item = &Offer> {
        self.offers.iter().filter_map(move |offers| offers.get(&pass))
    }

    /// What one or another does not take.
    fn without(&self, pass: PassKind) -> Vec<Without> {
        self.offers_for(pass).flat_map(|offer| offer.without.iter().copied()).collect()
    }

    /// The smallest limit on ranks.
    fn most_ranks(&self, pass: PassKind) -> Option<u32> {
        let small = self.small.then_some(2);
        self.offers_for(pass).filter_map(|offer| offer.max_ranks).chain(small).min()
    }

    /// Whether a pass is wanted, and all implement it.
    fn wants(&self, pass: PassKind) -> bool {
        let implemented = self.offers.iter().all(|offers| offers.contains_key(&pass));
        implemented && self.pass.is_none_or(|only| only == pass)
    }

    /// Graphs for some passes, as far as all take them.
    fn config(&self, passes: &[PassKind]) -> Config {
        let most = passes.iter().filter_map(|&pass| self.most_ranks(pass)).min();
        let wanted = passes.iter().filter(|&&pass| self.wants(pass));
        let without: Vec<Without> = wanted.flat_map(|&pass| self.without(pass)).collect();
        let config = Config::default().up_to_ranks(most).without(&without);
        match self.small {
            true => {
                let min_ranks = config.max_ranks;
                Config { min_nodes: 8, max_nodes: 16, min_ranks, odd_name: 0, ..config }
            }
            false => config,
        }
    }

    /// The joint graphs that all take. Tags are made for a method: what was made for a replay is not put to another
    /// one, which would save what its tags only stop short of. So it is with an option that is `set` to one value.
    fn joints(&self) -> joint::Config {
        let pass = PassKind::Partition;
        let stated =
            |key: &str| self.set.iter().find(|(known, _)| known == key).map(|(_, value)| value.word());
        let takes = |key: &str, values: &[&str]| {
            if let Some(stated) = stated(key) {
                return stated.is_some_and(|stated| values.contains(&stated));
            }
            self.offers_for(pass).all(|offer| values.iter().any(|value| offer.takes(key, value)))
        };
        let mut config =
            joint::Config::default().without(&self.without(pass)).up_to_ranks(self.most_ranks(pass));
        if stated("method") == Some(Some("replay")) {
            config.replay = 100;
        } else if !takes("method", &["replay"]) {
            config.replay = 0;
        }
        match (takes("method", &["default"]), takes("method", &["min-cut"])) {
            (true, false) => config.default_method = 100,
            (false, true) => config.default_method = 0,
            _ => {}
        }
        if !takes("first", &["default", "min-cut"]) {
            config.two_stages = 0;
        }
        if !takes("checkpoint", &["auto", "operators"]) {
            config.checkpoint_pass = 0;
        }
        config
    }

    /// Choices beside those of the generator, so that the graphs of other cases stay what they are.
    fn own_choices(&self, number: u64) -> Seeded {
        Seeded::case(self.seed.rotate_left(32) ^ 0x464f_524d, number)
    }

    /// A graph with some calls written otherwise, now and then.
    fn varied(&self, config: &Config, graph: Graph, number: u64) -> Graph {
        let mut source = self.own_choices(number);
        match source.percent(config.forms) {
            true => super::vary(&mut source, &graph),
            false => graph,
        }
    }

    /// A real joint graph with a few edits that keep it one. `None` where there are no graphs, or the edits that were
    /// tried leave nothing of one. The pass is that of a generated case, but the number of forward outputs is in the
    /// graph's file, and the positions of lasting inputs would be those of another graph.
    fn graft(&self, case: &Case, number: u64) -> Option<Case> {
        let count = u32::try_from(self.graphs.len()).ok().filter(|&count| count > 0)?;
        let mut source = Seeded::case(self.seed, number);
        let mut pass = case.pass.clone()?;
        pass.options.retain(|(key, _)| !["num_fwd_outputs", "static_inputs"].contains(&key.as_str()));
        let graph = (0..TRIES).find_map(|_| {
            let (_, graph) = &self.graphs[source.below(count) as usize];
            let forward_outputs = forward_outputs(graph, &pass).ok()?;
            joint::graft(&mut source, graph, forward_outputs)
        })?;
        Some(Case { pass: Some(pass), ..Case::of_graph(graph) })
    }

    /// A window of a real graph, made small enough to be executed, with a few edits. `None` where there are no graphs,
    /// or the windows tried cannot be made small.
    fn neighbour(&self, number: u64) -> Option<Graph> {
        let count = u32::try_from(self.graphs.len()).ok().filter(|&count| count > 0)?;
        let mut source = Seeded::case(self.seed, number);
        (0..TRIES).find_map(|_| {
            let (_, graph) = &self.graphs[source.below(count) as usize];
            let start = source.below(graph.len() as u32) as usize;
            let window = super::window(graph, start, source.between(10, 80) as usize)?;
            let mut small = super::shrink(&window, 4)?;
            for _ in 0..source.below(4) {
                if let Some((_, edited)) = super::edit(&mut source, &small) {
                    small = edited;
                }
            }
            Some(small)
        })
    }
}

/// A graph with collectives to be bucketed, or a list to be repaired.
pub(crate) fn bucketing(wanted: &Wanted, _: PassKind, number: u64) -> Case {
    let passes = [PassKind::Bucketing, PassKind::Repair];
    let config = wanted.config(&passes);
    let repair = match passes.map(|pass| wanted.wants(pass)) {
        [true, true] => config.repair,
        [true, false] => 0,
        [false, true] => 100,
        // A pass that it does not implement: every case is refused.
        [false, false] if wanted.pass == Some(PassKind::Repair) => 100,
        [false, false] => 0,
    };
    let config = Config { repair, ..config };
    let case = super::case(&config, wanted.seed, number).into_case();
    match wanted.neighbour(number) {
        // The pass and its options as for a generated case; caps would be those of another graph.
        Some(graph) => {
            let mut pass = case.pass;
            pass.iter_mut().for_each(|pass| pass.options.retain(|(key, _)| key != "cap"));
            Case { pass, ..Case::of_graph(graph) }
        }
        None if case.pass.as_ref().is_some_and(|pass| pass.name == PassKind::Bucketing.name()) => {
            Case { graph: wanted.varied(&config, case.graph, number), ..case }
        }
        None => case,
    }
}

/// A joint graph.
pub(crate) fn partition(wanted: &Wanted, _: PassKind, number: u64) -> Case {
    let case = joint::case(&wanted.joints(), wanted.seed, number);
    let mut case = wanted.graft(&case, number).unwrap_or(case);
    // The default partition takes what is not tagged for backward's.
    let is_cut = case.pass.as_ref().is_some_and(|pass| pass.word("method").ok().flatten() == Some("min-cut"));
    let may_lack_tags = is_cut && !wanted.without(PassKind::Partition).contains(&Without::Untagged);
    if may_lack_tags && wanted.own_choices(number).percent(UNTAGGED) {
        joint::untag(&mut case.graph);
    }
    case
}

/// A graph to be put in another order.
pub(crate) fn schedule(wanted: &Wanted, pass: PassKind, number: u64) -> Case {
    schedule::case_without(wanted.seed, number, &wanted.without(pass))
}

/// A graph to be rewritten.
pub(crate) fn rewrite(wanted: &Wanted, pass: PassKind, number: u64) -> Case {
    let config = Config { repair: 0, ..wanted.config(&[pass]) };
    let generated = || super::case(&config, wanted.seed, number).into_case().graph;
    let graph = wanted.neighbour(number).unwrap_or_else(generated);
    let mut graph = wanted.varied(&config, graph, number);
    // Choices of their own: the graphs of other cases stay what they are.
    let mut source = Seeded::case(wanted.seed.rotate_left(32) ^ 0x5359_4d42, number);
    if source.percent(config.symbolic) {
        graph = super::with_symbol(&mut source, &graph).unwrap_or(graph);
    }
    let mut source = Seeded::case(!wanted.seed, number);
    if source.percent(config.streams) {
        graph = super::spread(&mut source, &graph);
    } else if source.percent(config.regions) {
        graph = super::with_region(&mut source, &graph).unwrap_or(graph);
    }
    Case { pass: Some(PassConfig::new(pass.name())), ..Case::of_graph(graph) }
}

/// A graph to be executed: one of bucketing, and every fourth time a joint graph. Draws come out otherwise for
/// everybody, and what the interpreter does not compute cannot be compared.
pub(crate) fn execution(wanted: &Wanted, pass: PassKind, number: u64) -> Case {
    let left_out = [Without::RandomDraws, Without::Uninterpreted];
    let case = if number % 4 == 3 {
        let config = joint::Config::default().without(&wanted.without(pass)).without(&left_out);
        let config = config.up_to_ranks(wanted.most_ranks(pass));
        joint::case(&joint::Config { symbolic: 0, constant: 0, ..config }, wanted.seed, number)
    } else {
        let config = Config { repair: 0, ..wanted.config(&[pass]).without(&left_out) };
        super::case(&config, wanted.seed, number).into_case()
    };
    Case { pass: Some(PassConfig::new(pass.name())), ..case }
}
