//! The schedulers that are broken, each after a bug that has happened: the reference with one ingredient replaced.

use super::{Scheduler, run_options, run_with};
use crate::analysis::origin::{Hazard, Origin};
use crate::candidates::{Answer, Candidate, Capabilities, Refusal, Request};
use crate::family::Planted;
use crate::graph::{Graph, NodeId, Op};
use crate::ops::Collective;
use crate::passes::schedule::{Config, Facts, Kind, Strategy};
use crate::rules::{PassKind, Reason};
use crate::simulate::{Buffers, EstimateError, Estimates};

/// One mutant.
pub struct Mutant {
    name: &'static str,
    about: &'static str,
    origin: &'static str,
    strategy: &'static (dyn Strategy + Sync),
    /// What it does to the result.
    finish: fn(Graph) -> Graph,
}

impl Mutant {
    /// What is wrong with it, in one line.
    pub fn about(&self) -> &'static str {
        self.about
    }
}

impl Scheduler for Mutant {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&self, graph: &Graph, config: &Config, rank: u32) -> Result<Graph, Reason> {
        run_with(graph, config, rank, self.strategy).map(self.finish).map_err(|refusal| refusal.reason)
    }
}

impl Candidate for Mutant {
    fn name(&self) -> &str {
        self.name
    }

    fn capabilities(&self) -> Capabilities {
        // A mutant promises what the reference promises.
        Capabilities { keeps_promises: true, ..Capabilities::of(&[PassKind::Schedule]) }
    }

    fn run(&self, request: &Request) -> Result<Vec<Answer>, Refusal> {
        request.at_each(|place| {
            let answer = run_options(request.graph, request.pass, place.rank, self.strategy)?;
            Ok(match answer {
                Answer::Graph(outcome) => (self.finish)(outcome.repaired).into(),
                other => other,
            })
        })
    }
}

/// The mutants, as they are scored.
pub(crate) fn planted() -> Vec<Planted> {
    let planted =
        |mutant: Mutant| Planted { about: mutant.about, origin: mutant.origin, candidate: Box::new(mutant) };
    all().into_iter().map(planted).collect()
}

/// All mutants.
pub fn all() -> Vec<Mutant> {
    let finish: fn(Graph) -> Graph = std::convert::identity;
    let mutant = |name, about, origin, strategy| Mutant { name, about, origin, strategy, finish };
    vec![
        mutant(
            "schedule-unordered-messages",
            "messages and barriers do not count as communication",
            "#189454, Megatron#1810",
            &CollectivesOnly as &'static (dyn Strategy + Sync),
        ),
        mutant("schedule-unordered-effects", "the order of effects is not seen", "#188301", &WithoutEffects),
        mutant(
            "schedule-write-before-read",
            "writes after reads are not seen",
            "#162316, #177816, #129980",
            &WithoutWriteAfterRead,
        ),
        mutant(
            "schedule-ordering-on-wait",
            "an ordering edge to a launch is put on its wait",
            "xla#9398",
            &OnTheWait,
        ),
        mutant(
            "schedule-ordering-keeps-memory",
            "an ordering edge counts as a use of memory",
            "#189209",
            &OrderingUses,
        ),
        mutant(
            "schedule-own-estimates",
            "collectives are ordered by estimates of the rank's own",
            "#164226, #167100",
            &OwnEstimates,
        ),
        mutant("schedule-own-budget", "the budget of memory is the rank's own", "xla#7088", &OwnBudget),
        Mutant {
            finish: by_hash,
            ..mutant(
                "schedule-hash-order",
                "neighbours that could stand either way stand in the order of a hash of their names",
                "#164226",
                &crate::passes::schedule::Reference,
            )
        },
        mutant(
            "schedule-reads-in-flight",
            "who reads a wait's result follows the launch only",
            "#115104",
            &OnTheLaunch,
        ),
        mutant(
            "schedule-inputs-freed-early",
            "inputs of a collective count as free after its launch",
            "#108811",
            &InputsFree,
        ),
        mutant(
            "schedule-groups-apart",
            "each group is a stream of its own, ordered by estimates of the rank's own",
            "#166324, xla#19026, torchrec#4149",
            &GroupsApart,
        ),
        mutant("schedule-wrong-sign", "the growth of exposed time has the wrong sign", "#184558", &WrongSign),
    ]
}

/// K7.
struct CollectivesOnly;

fn is_message(facts: &Facts, node: NodeId) -> bool {
    facts.collectives.launch_at(node).is_some_and(|launch| {
        let kind = facts.collectives.calls[launch].kind;
        matches!(kind, Collective::Send | Collective::Recv | Collective::PointToPoint | Collective::Barrier)
    })
}

impl Strategy for CollectivesOnly {
    fn kind(&self, facts: &Facts, node: NodeId) -> Kind {
        match is_message(facts, node) {
            true => Kind::Compute { gemm: false },
            false => Kind::of(facts, node),
        }
    }

    fn edge(&self, _: &Facts, before: NodeId, after: NodeId, origin: Origin) -> Option<(NodeId, NodeId)> {
        (!matches!(origin, Origin::Effect { .. })).then_some((before, after))
    }
}

/// K8a.
struct WithoutEffects;

impl Strategy for WithoutEffects {
    fn edge(&self, _: &Facts, before: NodeId, after: NodeId, origin: Origin) -> Option<(NodeId, NodeId)> {
        (!matches!(origin, Origin::Effect { .. })).then_some((before, after))
    }
}

/// K8b.
struct WithoutWriteAfterRead;

impl Strategy for WithoutWriteAfterRead {
    fn edge(&self, _: &Facts, before: NodeId, after: NodeId, origin: Origin) -> Option<(NodeId, NodeId)> {
        let is_dropped = matches!(origin, Origin::Storage { hazard: Hazard::WriteAfterRead, .. });
        (!is_dropped).then_some((before, after))
    }
}

/// K8c.
struct OnTheWait;

impl Strategy for OnTheWait {
    fn edge(&self, facts: &Facts, before: NodeId, after: NodeId, origin: Origin) -> Option<(NodeId, NodeId)> {
        let wait =
            facts.collectives.launch_at(after).and_then(|launch| facts.collectives.waits[launch].first());
        match (origin, wait) {
            (Origin::Ordering, Some(&wait)) => Some((before, wait)),
            _ => Some((before, after)),
        }
    }
}

/// K8d.
struct OrderingUses;

impl Strategy for OrderingUses {
    fn buffers(&self, facts: &Facts) -> Buffers {
        let mut buffers = Buffers::new(facts.graph, &facts.edges, &facts.storages);
        for buffer in &mut buffers.buffers {
            let Some(by) = buffer.by else { continue };
            buffer.users.extend(facts.edges.ordered_after(by));
            buffer.users.sort_unstable();
            buffer.users.dedup();
        }
        buffers
    }
}

/// The table of a rank.
fn own(config: &Config, rank: u32) -> Result<Estimates, EstimateError> {
    let tables = config.estimates.len().max(1);
    config.estimates.get(rank as usize % tables).cloned().ok_or(EstimateError::Empty)
}

/// K9.
struct OwnEstimates;

impl Strategy for OwnEstimates {
    fn estimates(&self, config: &Config, rank: u32) -> Result<Estimates, EstimateError> {
        own(config, rank)
    }

    fn chain(&self, _: &Facts, _: &[NodeId]) -> Vec<(NodeId, NodeId)> {
        Vec::new()
    }

    fn raises_shortest_first(&self) -> bool {
        true
    }
}

/// K9b.
struct OwnBudget;

impl Strategy for OwnBudget {
    fn budget(&self, config: &Config, rank: u32) -> f64 {
        config.budgets.get(rank as usize % config.budgets.len().max(1)).copied().unwrap_or(0.0)
    }
}

/// K9c.
fn by_hash(graph: Graph) -> Graph {
    let order = hashed_order(&graph);
    graph.reordered(&order)
}

fn hashed_order(graph: &Graph) -> Vec<NodeId> {
    let mut order: Vec<NodeId> = graph.ids().collect();
    // A member of a cluster has no place of its own.
    if !graph.clusters.is_empty() {
        return order;
    }
    let hash = |id: NodeId| {
        let bytes = graph.name(id).bytes();
        bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    };
    let facts = Facts::new(graph);
    let moves =
        |id: NodeId| graph.node(id).op == Op::Call && matches!(Kind::of(&facts, id), Kind::Compute { .. });
    for at in 1..order.len() {
        let (a, b) = (order[at - 1], order[at]);
        let is_free = moves(a) && moves(b) && !facts.dependences.before(b).any(|(before, _)| before == a);
        if is_free && hash(b) < hash(a) {
            order.swap(at - 1, at);
        }
    }
    order
}

/// K19.
struct OnTheLaunch;

impl Strategy for OnTheLaunch {
    fn edge(&self, facts: &Facts, before: NodeId, after: NodeId, origin: Origin) -> Option<(NodeId, NodeId)> {
        let is_of = |launch: &usize| facts.collectives.waits[*launch].contains(&before);
        let launch = match origin {
            Origin::Data | Origin::Storage { .. } => {
                let mut launches = Vec::new();
                facts.graph.for_each_input(before, &mut |input| {
                    launches.extend(facts.collectives.launch_of_value(input))
                });
                launches.into_iter().find(is_of)
            }
            _ => None,
        };
        match launch {
            Some(launch) => {
                Some((facts.collectives.calls[launch].node, after)).filter(|(launch, after)| launch < after)
            }
            None => Some((before, after)),
        }
    }
}

/// K19b.
struct InputsFree;

impl Strategy for InputsFree {
    fn edge(&self, facts: &Facts, before: NodeId, after: NodeId, origin: Origin) -> Option<(NodeId, NodeId)> {
        let is_wait = facts.collectives.waits.iter().any(|waits| waits.binary_search(&before).is_ok());
        let is_dropped = is_wait && matches!(origin, Origin::Storage { hazard: Hazard::WriteAfterRead, .. });
        (!is_dropped).then_some((before, after))
    }
}

/// K26.
struct GroupsApart;

impl Strategy for GroupsApart {
    fn estimates(&self, config: &Config, rank: u32) -> Result<Estimates, EstimateError> {
        own(config, rank)
    }

    fn chain(&self, facts: &Facts, launches: &[NodeId]) -> Vec<(NodeId, NodeId)> {
        let mut last = std::collections::BTreeMap::new();
        let mut edges = Vec::new();
        for &node in launches {
            let Some(launch) = facts.collectives.launch_at(node) else { continue };
            edges.extend(
                last.insert(facts.collectives.calls[launch].group, node).map(|before| (before, node)),
            );
        }
        edges
    }

    fn raises_shortest_first(&self) -> bool {
        true
    }
}

/// K28.
struct WrongSign;

impl Strategy for WrongSign {
    fn exposes_more(&self, own: (f64, f64), others: &[(f64, f64)]) -> bool {
        let growth = |pair: &(f64, f64)| pair.0 - pair.1;
        growth(&own) + others.iter().map(growth).sum::<f64>() > 0.0
    }
}
