//! What memory rules see: the graph in the order to run in, the replay of its storages, and the claim.

use crate::analysis::storages::{Part, StorageIndex};
use crate::case::{Claim, ClaimedLife};
use crate::graph::{Graph, NodeId, Op};
use crate::memory::profile::{not_placeholder, recorded_ledger};
use crate::memory::replay::{Facts, Options, replay_ledger};
use crate::memory::strategy::Reference;
use crate::memory::{Devices, Ledger, MemoryFault, Replay, Steps, profile};
use crate::rules::{Checked, Code, Finding, NodeMention, Reason, Stage};
use fixedbitset::FixedBitSet;
use std::collections::BTreeMap;

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
    /// The same, in the order in which it was given.
    pub given: &'a Graph,
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
    /// The nodes of the steps.
    pub calls: Vec<NodeId>,
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
    /// Whether the name can stand for no other storage.
    pub certain: bool,
}

/// The claimed life of each storage that the claim names, by storage.
pub(super) type StorageLives<'c> = BTreeMap<usize, (&'c ClaimedLife, Resolved)>;

impl<'a> MemoryEvidence<'a> {
    /// Gathers the evidence about a graph, given in the first order and run in the second.
    pub fn new(
        [given, graph]: [&'a Graph; 2],
        claim: &'a Claim,
        config: &'a MemoryConfig,
    ) -> MemoryEvidence<'a> {
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
        let calls = graph.ids().filter(|&id| graph.node(id).op == Op::Call).collect();
        MemoryEvidence { graph, given, claim, config, devices, facts, replay, calls, uncertain }
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

    /// The name of the node that makes a storage.
    pub(super) fn owner(&self, storage: usize) -> &str {
        self.graph.name(self.facts.storages.storage(StorageIndex(storage as u32)).by)
    }

    /// Whether it is known what shares a storage.
    pub(super) fn is_certain(&self, storage: usize) -> bool {
        !self.uncertain.contains(storage)
    }

    /// Whether a storage changes its size.
    pub(super) fn has_resizes(&self) -> bool {
        self.replay.as_ref().is_ok_and(|replay| !replay.ledger.resizes.is_empty())
    }

    /// Whether anything is uncertain.
    pub(super) fn has_doubt(&self) -> bool {
        !self.uncertain.is_clear()
    }

    /// The claimed lives, if lives of the run time's storages are claimed.
    pub(super) fn lives(&self) -> Result<&'a [ClaimedLife], Checked> {
        match &self.claim.lives {
            None => Err(not_claimed("the lives of storages")),
            Some(_) if self.config.counting == Counting::Recorded => Err(Checked::NotChecked(
                "the claim counts recorded storages, not those of the run time".into(),
            )),
            Some(lives) => Ok(lives),
        }
    }

    /// The place that a claimed name stands for: a node, and which of its tensors.
    fn place(&self, name: &str) -> Option<(NodeId, usize)> {
        self.graph.find(name).map(|node| (node, 0)).or_else(|| {
            let (node, place) = name.rsplit_once('.')?;
            Some((self.graph.find(node)?, place.parse().ok()?))
        })
    }

    /// The storages that a claimed name may stand for; none if it names no tensor.
    pub(super) fn parts(&self, name: &str) -> &[Part] {
        self.place(name).map_or(&[], |(node, place)| self.facts.storages.parts(node, place))
    }

    /// The storage that a claimed name stands for: the one that begins there, else the only one that it shows.
    /// `None` if the name shows none, or may show several that begin elsewhere.
    pub(super) fn resolve(&self, name: &str) -> Option<Resolved> {
        let (node, place) = self.place(name)?;
        let parts = self.parts(name);
        let begins = |part: &&Part| {
            let info = self.facts.storages.storage(part.storage);
            (info.by, info.place as usize) == (node, place)
        };
        let own = parts.iter().find(begins);
        let part = own.or(if let [part] = parts { Some(part) } else { None })?;
        let certain = part.certain && parts.len() == 1;
        Some(Resolved { storage: part.storage.index(), node, owner: own.is_some(), certain })
    }

    /// One life for each storage, whichever of its names the claim uses. Of several names the one that counts bytes
    /// stands for the storage, of these the one where the storage begins, and of these the first.
    pub(super) fn storage_lives(&self, lives: &'a [ClaimedLife]) -> StorageLives<'a> {
        let mut found = StorageLives::new();
        let rank = |life: &ClaimedLife, resolved: Resolved| (life.bytes > 0, resolved.owner);
        for life in lives {
            let Some(resolved) = self.resolve(&life.name) else { continue };
            let known = found.entry(resolved.storage).or_insert((life, resolved));
            if rank(life, resolved) > rank(known.0, known.1) {
                *known = (life, resolved);
            }
        }
        found
    }

    /// "step 3 (relu)".
    pub(super) fn step(&self, step: u32) -> String {
        match self.calls.get(step as usize) {
            Some(&node) => format!("step {step} ({})", self.graph.name(node)),
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

/// What a rule finds, and why it is undecided where it finds nothing.
#[derive(Default)]
pub(super) struct Found {
    pub findings: Vec<Finding>,
    pub doubt: Option<Reason>,
}

impl Found {
    /// Adds a finding, or a doubt if it holds only where memory is not shared.
    pub(super) fn add(&mut self, is_certain: bool, finding: Finding) {
        match is_certain {
            true => self.findings.push(finding),
            false => self.doubt(&finding.title),
        }
    }

    /// Adds what may be wrong if memory is shared.
    pub(super) fn doubt(&mut self, what: &str) {
        let why = || Code::MayShareMemory.because(format!("{what}; but memory may be shared"));
        self.doubt.get_or_insert_with(why);
    }

    pub(super) fn checked(self) -> Checked {
        Checked::found(self.findings, self.doubt)
    }
}

/// What is known, or the rule is not checked.
macro_rules! known {
    ($found:expr) => {
        match $found {
            Ok(found) => found,
            Err(unchecked) => return unchecked,
        }
    };
}
pub(super) use known;
