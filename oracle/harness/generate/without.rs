//! A generator's configuration without what a candidate does not take.

use crate::judge::Without;

impl super::Config {
    /// The same with none of what is named.
    pub fn without(mut self, what: &[Without]) -> super::Config {
        for one in what {
            match one {
                Without::Barriers => self.barrier = 0,
                Without::Bodies => self.regions = 0,
                // All ranks run one graph here, and it is no joint graph.
                Without::Messages | Without::Untagged => {}
                Without::OrderingEdges => self.ordering = 0,
                Without::OrderingEdgesInFlight => self.ordering_in_flight = 0,
                Without::RandomDraws => (self.random, self.dropout) = (0, 0),
                Without::Streams => self.streams = 0,
                Without::SymbolicSizes => self.symbolic = 0,
                Without::Uninterpreted => self.uninterpreted = 0,
                Without::Writes => {
                    for knob in
                        [&mut self.write, &mut self.buffer, &mut self.through_memory, &mut self.in_place]
                    {
                        *knob = 0;
                    }
                }
            }
        }
        self
    }

    /// The same with at most so many ranks, where there is a limit.
    pub fn up_to_ranks(mut self, most: Option<u32>) -> super::Config {
        self.max_ranks = most.map_or(self.max_ranks, |most| self.max_ranks.min(most).max(1));
        self.min_ranks = self.min_ranks.min(self.max_ranks);
        self
    }
}

impl super::joint::Config {
    /// The same with none of what is named.
    pub fn without(mut self, what: &[Without]) -> super::joint::Config {
        for one in what {
            match one {
                // There are none.
                Without::Barriers
                | Without::Bodies
                | Without::Messages
                | Without::OrderingEdges
                | Without::OrderingEdgesInFlight
                | Without::Streams
                | Without::Uninterpreted => {}
                // Tags are taken away afterwards (`wanted.rs`).
                Without::Untagged => {}
                Without::RandomDraws => (self.dropout, self.mask) = (0, 0),
                Without::SymbolicSizes => self.symbolic = 0,
                Without::Writes => (self.write, self.early_clear) = (0, 0),
            }
        }
        self
    }

    /// The same with at most so many ranks, where there is a limit.
    pub fn up_to_ranks(mut self, most: Option<u32>) -> super::joint::Config {
        self.ranks = most.map_or(self.ranks, |most| self.ranks.min(most));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Feature, case, schedule};
    use super::*;
    use crate::graph::Graph;

    #[test]
    fn names_are_read_back() {
        for &one in Without::ALL {
            assert_eq!(Without::parse(one.name()), Some(one));
        }
        assert_eq!(Without::parse("snow"), None);
    }

    /// How many of 400 cases have a feature, beside the copies into inputs at the end, which are never left out.
    fn count(without: &[Without], feature: Feature) -> usize {
        let config = Config { epilogue: 0, ..Config::default() }.without(without);
        (0..400).filter(|&i| case(&config, 3, i).survey().features.has(feature)).count()
    }

    #[test]
    fn ordering_edges_need_not_begin_or_end_in_flight() {
        let in_flight = |without: &[Without]| {
            let config = Config::default().without(without);
            let count = |i| {
                let graph = case(&config, 3, i).graph;
                let target = |id| graph.target(id);
                let edges = graph.ordering.iter().filter(|edge| {
                    let is_launch = target(edge.before).starts_with("_c10d_functional.")
                        && !target(edge.before).contains("wait_tensor");
                    is_launch || target(edge.after).contains("wait_tensor")
                });
                (edges.count(), graph.ordering.len())
            };
            (0..300).map(count).fold((0, 0), |(a, b), (c, d)| (a + c, b + d))
        };
        let (some, _) = in_flight(&[]);
        let (none, others) = in_flight(&[Without::OrderingEdgesInFlight]);
        assert!(some > 20 && none == 0 && others > 50, "{some}, {none} of {others}");
    }

    #[test]
    #[ignore = "a campaign: cargo test -- --ignored"]
    fn what_is_left_out_does_not_occur() {
        for (without, features) in [
            (Without::Barriers, &[Feature::Barrier][..]),
            (Without::OrderingEdges, &[Feature::OrderingEdges, Feature::ThroughOrdering]),
            (Without::RandomDraws, &[Feature::Random]),
            (Without::Uninterpreted, &[Feature::Uninterpreted]),
            (Without::Writes, &[Feature::InPlace, Feature::OutBuffer, Feature::InPlaceCollective]),
        ] {
            for &feature in features {
                let (some, none) = (count(&[], feature), count(&[without], feature));
                assert!(some > 4 && none == 0, "{}: {some}, {none} without", feature.name());
            }
        }
        let has = |graph: &Graph, text: &str| graph.ids().any(|id| graph.target(id).contains(text));
        let schedules = |without: &[Without], text: &str| {
            (0..200).filter(|&i| has(&schedule::case_without(1, i, without).graph, text)).count()
        };
        assert!(schedules(&[], "isend") > 4 && schedules(&[Without::Messages], "isend") == 0);
        assert!(schedules(&[], "aten.rand") > 4 && schedules(&[Without::RandomDraws], "aten.rand") == 0);
    }
}
