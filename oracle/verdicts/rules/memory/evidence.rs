//! What memory rules see: the graph in the order to run in, the replay of its storages, and the claim.

use crate::case::{Claim, ClaimedLife};
use crate::graph::{Graph, NodeId};
use crate::memory::profile::{not_placeholder, recorded_ledger};
use crate::memory::replay::{Facts, Options, replay_ledger};
use crate::memory::strategy::Reference;
use crate::memory::{Devices, Ledger, MemoryFault, Replay, Steps, profile};
use crate::rules::{Checked, Code, Finding, NodeMention, Stage};
use fixedbitset::FixedBitSet;
use rustc_hash::FxHashMap;

/// By which count claimed numbers are measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Counting {
    /// The storages of the run time.
    #[default]
    Physical,
    /// The storages as recorded, inputs never freed: what PyTorch's profile counts.
    Recorded,
}

/// How claims are judged.
#[derive(Clone, Debug, Default)]
pub struct MemoryConfig {
    /// By which count.
    pub counting: Counting,
    /// Which devices count; accelerators, if the graph uses any, otherwise.
    pub devices: Option<Devices>,
    /// What a symbol without a hint counts as; without it, such sizes leave the numbers undecided.
    pub unbacked: Option<i64>,
    /// The inputs that the caller gives away.
    pub donated: Vec<String>,
}

/// Everything that memory rules see.
pub struct MemoryEvidence<'a> {
    /// The graph, in the order to run in.
    pub graph: &'a Graph,
    /// What is claimed.
    pub claim: &'a Claim,
    /// How to judge it.
    pub config: &'a MemoryConfig,
    /// Which devices count.
    pub devices: Devices,
    /// What follows from the graph.
    pub facts: Facts<'a>,
    /// The storages of the run time.
    pub replay: Result<Replay, MemoryFault>,
    /// Storages that may or may not be shared.
    uncertain: FixedBitSet,
}

/// What a claimed name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Resolved {
    /// The storage.
    pub storage: usize,
    /// The node.
    pub node: NodeId,
    /// Whether the storage begins there.
    pub owner: bool,
}

impl<'a> MemoryEvidence<'a> {
    /// Gathers the evidence.
    pub fn new(graph: &'a Graph, claim: &'a Claim, config: &'a MemoryConfig) -> MemoryEvidence<'a> {
        let facts = Facts::new(graph);
        let sizes = crate::memory::Sizes::new(graph, config.unbacked);
        let ledger = Ledger::derived(graph, &sizes, &facts.storages);
        let devices = config.devices.unwrap_or_else(|| Devices::of(graph, &ledger));
        let donated = |graph: &Graph, id: NodeId| config.donated.iter().any(|name| name == graph.name(id));
        let mut uncertain = FixedBitSet::with_capacity(ledger.entries.len());
        for &node in &ledger.uncertain {
            ledger.shown(node).iter().for_each(|&storage| uncertain.insert(storage as usize));
        }
        let options = Options { devices, unbacked: config.unbacked, donated: &donated };
        let replay = replay_ledger(&facts, ledger, options, &Reference);
        MemoryEvidence { graph, claim, config, devices, facts, replay, uncertain }
    }

    /// What the replay rests on, for people.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.devices == Devices::All && self.config.devices.is_none() {
            notes.push("no tensor is on an accelerator: the CPU's memory counts".to_string());
        }
        if let Ok(replay) = &self.replay {
            notes.extend(replay.uncounted(self.graph, self.devices));
            let (bytes, step) = replay.steps.peak();
            let at = step.map_or("before the first step".to_string(), |step| {
                format!("at step {step} ({})", self.graph.name(replay.steps.steps[step as usize].node))
            });
            notes.push(format!("the replay peaks with {bytes} bytes {at}"));
            if !replay.assumed.is_empty() {
                let symbol = self.config.unbacked.unwrap_or_default();
                notes.push(format!(
                    "{} storages depend on a symbol without a hint, which counts as {symbol}",
                    replay.assumed.len()
                ));
            }
            if !replay.uncertain.is_empty() {
                notes.push(format!(
                    "{} nodes may or may not share memory: the replay is an upper bound",
                    replay.uncertain.len()
                ));
            }
        }
        notes
    }

    /// The replay, or why there is none.
    pub(super) fn truth(&self) -> Result<&Replay, Checked> {
        self.replay.as_ref().map_err(|why| Checked::undecided(Code::NoReplay, why.to_string()))
    }

    /// The numbers that claims are measured by.
    pub(super) fn measured(&self) -> Result<Steps, Checked> {
        match self.config.counting {
            Counting::Physical => Ok(self.truth()?.steps.clone()),
            Counting::Recorded => {
                let ledger = recorded_ledger(self.graph);
                let found = profile::profile_of(self.graph, &ledger, self.devices, &not_placeholder);
                found
                    .map(|profile| profile.steps)
                    .map_err(|why| Checked::undecided(Code::NoReplay, why.to_string()))
            }
        }
    }

    /// Whether it is known what shares a storage.
    pub(super) fn is_certain(&self, storage: usize) -> bool {
        !self.uncertain.contains(storage)
    }

    /// Whether anything is uncertain.
    pub(super) fn has_doubt(&self) -> bool {
        !self.uncertain.is_clear()
    }

    /// The claimed lives, if lives of the run time's storages are claimed.
    pub(super) fn lives(&self) -> Result<(&Replay, &'a [ClaimedLife]), Checked> {
        let Some(lives) = &self.claim.lives else { return Err(not_claimed("the lives of storages")) };
        if self.config.counting == Counting::Recorded {
            return Err(Checked::NotChecked(
                "the claim counts recorded storages, not those of the run time".into(),
            ));
        }
        Ok((self.truth()?, lives))
    }

    /// The storage that a claimed name stands for.
    pub(super) fn resolve(&self, name: &str) -> Option<Resolved> {
        let exact = self.graph.find(name).map(|node| (node, 0));
        let (node, place) = exact.or_else(|| {
            let (node, place) = name.rsplit_once('.')?;
            Some((self.graph.find(node)?, place.parse::<usize>().ok()?))
        })?;
        let &[part] = self.facts.storages.parts(node, place) else { return None };
        let storage = part.storage.index();
        let info = self.facts.storages.storage(part.storage);
        Some(Resolved { storage, node, owner: info.by == node && info.place as usize == place })
    }

    /// Of each storage the index of the claimed life that speaks for it: its owner's, else the first.
    pub(super) fn speakers(&self, lives: &[ClaimedLife]) -> FxHashMap<usize, usize> {
        let mut speakers: FxHashMap<usize, usize> = FxHashMap::default();
        for (i, life) in lives.iter().enumerate() {
            if let Some(resolved) = self.resolve(&life.name) {
                let slot = speakers.entry(resolved.storage).or_insert(i);
                if resolved.owner {
                    *slot = i;
                }
            }
        }
        speakers
    }

    /// The node of a step.
    pub(super) fn node_of(&self, replay: &Replay, step: u32) -> Option<NodeId> {
        replay.steps.steps.get(step as usize).map(|step| step.node)
    }

    /// "step 3 (relu)".
    pub(super) fn step(&self, replay: &Replay, step: u32) -> String {
        match self.node_of(replay, step) {
            Some(node) => format!("step {step} ({})", self.graph.name(node)),
            None => format!("step {step}"),
        }
    }

    /// A finding about nodes.
    pub(super) fn finding(
        &self,
        rule: &'static str,
        title: String,
        nodes: impl IntoIterator<Item = NodeId>,
    ) -> Finding {
        let severity = super::severity_in(super::CATALOGUE, rule);
        let mut mentions: Vec<NodeMention> = Vec::new();
        for node in nodes {
            let mention =
                NodeMention { name: self.graph.name(node).to_string(), before: Some(node.0), after: None };
            if !mentions.contains(&mention) {
                mentions.push(mention);
            }
        }
        Finding { nodes: mentions, ..Finding::new(rule, severity, Stage::After, title) }
    }
}

/// A rule that needs a statement which was not made.
pub(super) fn not_claimed(what: &str) -> Checked {
    Checked::NotChecked(format!("{what} are not claimed"))
}

/// Findings, or doubts where there are none.
pub(super) fn found(findings: Vec<Finding>, doubts: Vec<String>) -> Checked {
    match (findings.is_empty(), doubts.first()) {
        (true, Some(doubt)) => Checked::undecided(Code::MayShareMemory, doubt),
        _ => Checked::Findings(findings),
    }
}
