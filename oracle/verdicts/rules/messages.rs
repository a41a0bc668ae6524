//! Messages with ranks whose graphs are not given.
//!
//! # The idea
//!
//! Such a rank sends and receives what it did before the pass, and it met this rank whatever that took. So the messages
//! of each channel stay as they were, and an operation may wait for no more than it did before. One operation *holds*
//! another one of its rank where the second starts only when the first is complete:
//!
//! - the host waits for the first before it launches the second; or
//! - both are messages with one rank, which are taken in launch order; or
//! - one of them is a collective, which a device that runs one communication at a time takes in launch order too.
//!
//! That is what the [simulator](crate::simulate) knows of one rank. A rank that held no less before finishes wherever
//! it did. A pair of operations of which the first did not hold the second is one that another rank may meet in the
//! opposite order, and then both wait for ever: whether it does is not known without its graph. Pairs of two
//! collectives, or with ranks whose graphs are given, are simulated instead.

use super::{AnalyzedGraph, Code, Evidence, Finding, Reason, Stage};
use crate::analysis::{CollectiveCall, GroupName};
use crate::graph::{Dtype, Graph, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// What both ends of a message must agree on: tag, dtype and number of elements.
type Terms = (i64, Option<Dtype>, Option<i64>);

/// A group, a rank of it, and whether messages are sent to that rank.
type Channel<'a> = (&'a str, i64, bool);

/// The messages of each channel, in order: launches with what is sent.
type Messages<'a> = BTreeMap<Channel<'a>, Vec<(usize, Terms)>>;

/// Whether the graph of a member of a group is given.
pub(super) type IsGiven<'f> = &'f dyn Fn(&str, i64) -> bool;

/// The launches before that a collective after stands for; where that is not known it stands for all that no other one
/// does.
pub(super) type Origins<'f> = &'f dyn Fn(usize) -> Option<Vec<usize>>;

/// All messages of a graph; `None` where some are not known.
fn of<'a>(side: &'a AnalyzedGraph) -> Option<Messages<'a>> {
    let mut found = Messages::new();
    for (launch, call) in side.collectives.calls.iter().enumerate() {
        for (channel, terms) in parts(side.graph, call)? {
            found.entry(channel).or_default().push((launch, terms));
        }
    }
    Some(found)
}

/// The messages that a call starts; none of a collective, `None` where they are not known.
fn parts<'a>(graph: &Graph, call: &'a CollectiveCall) -> Option<Vec<(Channel<'a>, Terms)>> {
    let messages = call.messages.as_ref()?;
    match (call.group, messages.is_empty()) {
        (_, true) => Some(Vec::new()),
        (GroupName::Text(group), false) => {
            Some(messages.iter().map(|m| ((group, m.peer, m.sends), m.terms(graph))).collect())
        }
        _ => None,
    }
}

/// Messages with ranks whose graphs are not given that are not as before; and why another rank may wait for ever, if
/// it may.
pub(super) fn kept(
    evidence: &Evidence,
    [before, after]: [&AnalyzedGraph; 2],
    origins: Origins,
    is_given: IsGiven,
) -> (Vec<Finding>, Option<Reason>) {
    let (Some(old), Some(new)) = (of(before), of(after)) else {
        let why = Code::NotModelled.because("messages whose group or partner is not known");
        return (Vec::new(), Some(why));
    };
    let none = Vec::new();
    let mut channels: Vec<_> = old.keys().chain(new.keys()).collect();
    channels.sort_unstable();
    channels.dedup();
    let differs = |channel: &&Channel| {
        let [a, b] = [&old, &new].map(|of| of.get(channel).unwrap_or(&none));
        let at = (0..a.len().max(b.len())).find(|&i| {
            let agree = |(x, y): (&(usize, Terms), &(usize, Terms))| may_agree(x.1, y.1);
            !a.get(i).zip(b.get(i)).is_some_and(agree)
        })?;
        let (group, peer, sends) = **channel;
        let way = if sends { "to" } else { "from" };
        let name = |side: &AnalyzedGraph, launch: usize| {
            side.graph.name(side.collectives.calls[launch].node).to_string()
        };
        let words = |of: Option<&(usize, Terms)>, side: &AnalyzedGraph| match of {
            None => "there is none".to_string(),
            Some(&(launch, (tag, dtype, numel))) => format!(
                "it is {} of {} {} elements, tag {tag}",
                name(side, launch),
                numel.map_or("?".to_string(), |n| n.to_string()),
                dtype.map_or("?", Dtype::name)
            ),
        };
        let title = format!("message {at} {way} rank {peer} of group {group} is not as before");
        let mut finding = evidence
            .finding("rewrite/collectives", Stage::After, title)
            .fact("no graph of such a rank is given, so what it exchanges counts as it was")
            .expected(format!("before, {}", words(a.get(at), before)))
            .observed(format!("after, {}", words(b.get(at), after)));
        let launch = b.get(at).map(|&(launch, _)| evidence.mention(&name(after, launch)));
        finding.nodes = launch.into_iter().collect();
        Some(finding)
    };
    let is_open = |channel: &&&Channel| !is_given(channel.0, channel.1);
    let findings: Vec<Finding> = channels.iter().filter(is_open).filter_map(differs).collect();
    let more = findings.is_empty().then(|| held_more([before, after], [&old, &new], origins, is_given));
    (findings, more.flatten())
}

fn may_agree(a: Terms, b: Terms) -> bool {
    a.0 == b.0
        && (a.1.is_none() || b.1.is_none() || a.1 == b.1)
        && (a.2.is_none() || b.2.is_none() || a.2 == b.2)
}

/// Why a rank may hold what it did not, of two graphs that exchange the same with ranks whose graphs are not given.
pub(super) fn holds_more(sides: [&AnalyzedGraph; 2], origins: Origins, is_given: IsGiven) -> Option<Reason> {
    let (old, new) = (of(sides[0])?, of(sides[1])?);
    held_more(sides, [&old, &new], origins, is_given)
}

/// Part of a launch after, with what it was before.
#[derive(Clone, Copy)]
struct Unit<'a> {
    node: NodeId,
    /// The rank that it exchanges a message with; `None` for collectives.
    pair: Option<(&'a str, i64)>,
    /// Whether the graph of that rank is not given.
    is_open: bool,
    /// Before, its first and last launch, and its last wait.
    launched: [u32; 2],
    done: u32,
}

/// When a launch has been waited for; never, where nothing waits.
fn done(side: &AnalyzedGraph, launch: usize) -> u32 {
    let call = &side.collectives.calls[launch];
    match call.is_done_at_once && !call.kind.is_unmodelled() {
        true => call.node.0,
        false => side.collectives.waits[launch].iter().map(|wait| wait.0).min().unwrap_or(u32::MAX),
    }
}

/// Of some launches before, the first and the last one, and when all have been waited for. What was not there held
/// nothing, and nothing held it.
fn was(before: &AnalyzedGraph, launches: &[usize]) -> ([u32; 2], u32) {
    let at = || launches.iter().map(|&launch| before.collectives.calls[launch].node.0);
    let done = launches.iter().map(|&launch| done(before, launch)).max();
    ([at().min().unwrap_or(0), at().max().unwrap_or(u32::MAX)], done.unwrap_or(u32::MAX))
}

fn held_more<'e>(
    [before, after]: [&'e AnalyzedGraph; 2],
    [old, new]: [&Messages; 2],
    origins: Origins,
    is_given: IsGiven,
) -> Option<Reason> {
    if !new.keys().any(|channel| !is_given(channel.0, channel.1)) {
        return None;
    }
    let calls = &after.collectives.calls;
    let known: Vec<Option<Vec<usize>>> = (0..calls.len()).map(origins).collect();
    let claimed: BTreeSet<usize> = known.iter().flatten().flatten().copied().collect();
    let rest = (0..before.collectives.calls.len()).filter(|launch| !claimed.contains(launch));
    let rest = rest.filter(|&launch| !before.collectives.calls[launch].kind.is_message());
    let rest = was(before, &rest.collect::<Vec<_>>());
    let mut sent: BTreeMap<Channel, usize> = BTreeMap::new();
    let mut units: Vec<Vec<Unit<'e>>> = Vec::with_capacity(calls.len());
    for (call, known) in calls.iter().zip(known) {
        let parts = parts(after.graph, call)?;
        let collective = || {
            let (launched, done) = known.map_or(rest, |of| was(before, &of));
            Unit { node: call.node, pair: None, is_open: false, launched, done }
        };
        units.push(match parts.is_empty() {
            true => vec![collective()],
            false => Vec::from_iter(parts.into_iter().map(|(channel, _)| {
                let number = sent.entry(channel).or_default();
                let launch = old.get(&channel).and_then(|messages| messages.get(*number));
                *number += 1;
                let (launched, done) = was(before, launch.map(|of| of.0).as_slice());
                let (pair, is_open) = (Some((channel.0, channel.1)), !is_given(channel.0, channel.1));
                Unit { node: call.node, pair, is_open, launched, done }
            })),
        });
    }
    // What happens on the host, in order.
    let waits = (0..calls.len()).map(|launch| (done(after, launch), true, launch));
    let launches = calls.iter().enumerate().map(|(launch, call)| (call.node.0, false, launch));
    let mut events: Vec<(u32, bool, usize)> = waits.chain(launches).collect();
    events.sort_unstable();
    let (mut launched, mut waited): (Holders, Holders) = Default::default();
    for (_, is_wait, launch) in events.into_iter().filter(|event| event.0 < u32::MAX) {
        if is_wait {
            units[launch].iter().for_each(|unit| waited.add(unit, unit.done));
            continue;
        }
        for unit in &units[launch] {
            let own = unit.pair.filter(|_| unit.is_open);
            let waited = [waited.message_but(own), waited.other.filter(|_| unit.is_open)];
            let launched = match (unit.pair, own) {
                (None, _) => [launched.message_but(None), None],
                (_, Some(own)) => [launched.on.get(&own).copied(), launched.collective],
                _ => [None, None],
            };
            let all = waited.map(|of| (of, "waited for")).into_iter();
            let mut all = all.chain(launched.map(|of| (of, "launched")));
            let is_new = |of: &(Option<Holder>, _)| of.0.is_some_and(|of| of.0 >= unit.launched[0]);
            let Some((Some((_, holder)), how)) = all.find(is_new) else { continue };
            let [holder, held] = [holder, unit.node].map(|id| after.graph.name(id));
            return Some(Code::OneRankSeen.because(format!(
                "{holder} is now {how} before {held} is launched: a rank that takes them the other way round would wait for \
                 ever; the graphs of all ranks would decide it"
            )));
        }
        units[launch].iter().for_each(|unit| launched.add(unit, unit.launched[1]));
    }
    None
}

/// A launch after, with when it was launched or waited for before.
type Holder = (u32, NodeId);

/// Of some launches those that came last before.
#[derive(Default)]
struct Holders<'a> {
    /// Of the messages with ranks whose graphs are not given, with each rank, and the last two of different ranks.
    on: BTreeMap<(&'a str, i64), Holder>,
    last: [Option<((&'a str, i64), Holder)>; 2],
    /// Of the collectives, and of all but those messages.
    collective: Option<Holder>,
    other: Option<Holder>,
}

impl<'a> Holders<'a> {
    fn add(&mut self, unit: &Unit<'a>, was: u32) {
        let own = (was, unit.node);
        if let Some(pair) = unit.pair.filter(|_| unit.is_open) {
            let on = self.on.entry(pair).or_insert(own);
            *on = own.max(*on);
            let mut last: Vec<_> = self.last.into_iter().flatten().filter(|of| of.0 != pair).collect();
            last.push((pair, *on));
            last.sort_unstable_by_key(|of| std::cmp::Reverse(of.1));
            self.last = [last.first().copied(), last.get(1).copied()];
            return;
        }
        self.other = self.other.max(Some(own));
        if unit.pair.is_none() {
            self.collective = self.collective.max(Some(own));
        }
    }

    /// The last message that is not with this rank.
    fn message_but(&self, pair: Option<(&str, i64)>) -> Option<Holder> {
        self.last.iter().flatten().find(|of| Some(of.0) != pair).map(|of| of.1)
    }
}
