//! Whether a joint graph can be cut at all, whoever cuts it.
//!
//! # The idea
//!
//! What backward reads is at hand there in one of two ways: forward hands it over, or backward computes it from what is
//! at hand. What the user was promised forbids some of that (a value that must be computed again is not handed over),
//! and so does what memory and effects are (an effect happens once; what forward overwrites later has other contents in
//! backward). One walk over the list says what is at hand. Where something that backward returns, or does, is not, the
//! constraints that contradict one another are told.
//!
//! There are two walks. The careful one counts on nothing that is hard to do, such as filling memory in place once
//! more: what it reaches is a plan, so the graph can be cut. What the generous one does not reach cannot be had.
//! Between the two it is not known.
//!
//! # What it does not do
//!
//! It weighs nothing: wishes (PREFER_SAVE, PREFER_RECOMPUTE), costs and budgets forbid nothing. It inserts nothing: a
//! copy of a value that forward overwrites would be another graph.

use super::super::AnalyzedGraph;
use super::compose::{item_of, returned};
use super::config::PartitionConfig;
use super::evidence::{ValueClass, class_of, is_backward_only, live, tangent_dependent};
use super::tags::{NodeTags, Recompute, Region};
use crate::analysis::bytes::Overlap;
use crate::analysis::storages::Touch;
use crate::graph::{NodeId, Op, Value};
use crate::ops::{Collective, Kind, OpInfo};

/// Whether a joint graph can be cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Feasible {
    /// It can.
    Yes,
    /// It cannot: the constraints that contradict one another, a line each.
    No(Vec<String>),
    /// It is not known, with the reason.
    Unknown(String),
}

/// Whether a joint graph, whose list is in order, can be cut. Where it does not say how many of its outputs are
/// forward's, it is not known.
pub fn feasible(joint: &AnalyzedGraph, config: &PartitionConfig) -> Feasible {
    let config = config.clone().or_from_file(joint.graph);
    let Some(forward_outputs) = config.forward_outputs else {
        return Feasible::Unknown(
            "the joint graph does not say how many of its outputs are forward's".into(),
        );
    };
    let question = Question::new(joint);
    if let Some(lines) = question.misplaced(forward_outputs).or_else(|| question.budgets(&config)) {
        return Feasible::No(lines);
    }
    let needed = question.needed(forward_outputs);
    if let Err(lines) = question.plan(false).all(&needed) {
        return Feasible::No(lines);
    }
    match question.plan(true).all(&needed) {
        Ok(()) => Feasible::Yes,
        Err(lines) => Feasible::Unknown(lines.join("; ")),
    }
}

/// A joint graph, and what its tags and data say.
pub struct Question<'a> {
    joint: &'a AnalyzedGraph<'a>,
    tags: Vec<NodeTags>,
    /// What only backward has: it depends on a tangent, or on what must be in backward.
    late: Vec<bool>,
    /// What must be computed again, and what moves or casts nothing else: to save that would save as much. An own tag
    /// MUST_SAVE says otherwise, but for what was gathered.
    repeated: Vec<bool>,
}

impl<'a> Question<'a> {
    /// The question about a joint graph.
    pub fn new(joint: &'a AnalyzedGraph<'a>) -> Question<'a> {
        let graph = joint.graph;
        let n = graph.len();
        let tags: Vec<NodeTags> = graph.ids().map(|id| NodeTags::of(graph, id)).collect();
        let (mut late, mut repeated, mut gathered) =
            (tangent_dependent(joint), vec![false; n], vec![false; n]);
        for id in graph.ids() {
            let inputs = graph.inputs(id);
            let tag = &tags[id.index()];
            late[id.index()] |= tag.region == Some(Region::MustBackward)
                || inputs.iter().any(|input| input < &id && late[input.index()]);
            let info = joint.ops.call(graph, id);
            let moves = info.is_some_and(|info| {
                info.is_view() || matches!(info.kind, Kind::GetItem | Kind::Wait | Kind::Cast | Kind::Move(_))
            });
            let any = |set: &[bool]| inputs.iter().any(|input| set[input.index()]);
            gathered[id.index()] = info.is_some_and(|info| info.collective() == Some(Collective::AllGather))
                || (moves && any(&gathered));
            let of_repeated = !inputs.is_empty() && inputs.iter().all(|input| repeated[input.index()]);
            let is_asked_for = tag.recompute == Some(Recompute::MustSave) && !gathered[id.index()];
            repeated[id.index()] = tag.must_be_recomputed() || (moves && of_repeated && !is_asked_for);
        }
        Question { joint, tags, late, repeated }
    }

    fn name(&self, id: NodeId) -> &str {
        self.joint.graph.name(id)
    }

    fn tags(&self, id: NodeId) -> &NodeTags {
        &self.tags[id.index()]
    }

    fn call(&self, id: NodeId) -> Option<&OpInfo> {
        self.joint.ops.call(self.joint.graph, id)
    }

    /// Whether a node has to run in forward, whatever needs it.
    fn belongs_to_forward(&self, id: NodeId) -> bool {
        match self.tags(id).region {
            Some(Region::MustForward) => true,
            Some(Region::MustBackward | Region::Backward) => false,
            _ => !self.late[id.index()],
        }
    }

    /// Whether running a node does something that must not be done again.
    fn has_effect(&self, id: NodeId) -> bool {
        self.call(id).is_some_and(|info| {
            matches!(info.kind, Kind::Effect | Kind::Sync(_))
                || info.writes()
                || (info.kind == Kind::Unknown && info.effect)
                || info.target.contains("with_effects")
        })
    }

    /// What is asked of forward, and needs a tangent.
    fn misplaced(&self, forward_outputs: usize) -> Option<Vec<String>> {
        let graph = self.joint.graph;
        let line = |id: NodeId, asked: &str| {
            let name = self.name(id);
            vec![format!("{name} {asked}"), format!("{name} is computed in backward only")]
        };
        let live = live(self.joint);
        let must = |id: &NodeId| {
            self.tags(*id).region == Some(Region::MustForward) && self.late[id.index()] && live[id.index()]
        };
        if let Some(id) = graph.ids().find(must) {
            return Some(line(id, "is tagged must_be_in_forward"));
        }
        let outputs = returned(graph).into_iter().take(forward_outputs);
        let outputs = outputs.filter_map(|value| self.written(value));
        let late = outputs.into_iter().find(|id| self.late[id.index()])?;
        Some(line(late, "is an output of forward"))
    }

    /// The tensor that a result is: what a node writes and hands back has been there before.
    fn written(&self, value: Value) -> Option<NodeId> {
        let graph = self.joint.graph;
        let mut at = value;
        loop {
            let Value::Node(id) = at else { return None };
            if id.index() >= graph.len() {
                return None;
            }
            let argument = self.call(id).and_then(|info| info.mutated().next());
            match argument.and_then(|argument| graph.arg(id, argument)) {
                Some(Value::Node(destination)) if destination < id => at = Value::Node(destination),
                _ => return Some(id),
            }
        }
    }

    /// Regions with budgets of their own: one joint graph has one budget, which covers what forward computes.
    fn budgets(&self, config: &PartitionConfig) -> Option<Vec<String>> {
        let graph = self.joint.graph;
        let budget = |id: NodeId| self.tags(id).budget;
        let (first, one) = graph.ids().find_map(|id| Some((id, budget(id)?)))?;
        let other = graph.ids().find_map(|id| Some((id, budget(id).filter(|&other| other != one)?)));
        if let Some((second, two)) = other {
            let line =
                |id, budget| format!("{} is in a region with a memory budget of {budget}", self.name(id));
            return Some(vec![line(first, one), line(second, two)]);
        }
        let live = live(self.joint);
        let bare = graph.ids().find(|&id| {
            let is_call = graph.node(id).op == Op::Call && live[id.index()];
            is_call && self.belongs_to_forward(id) && budget(id).is_none()
        });
        let bare = bare.filter(|_| !config.partial_budget)?;
        Some(vec![
            format!("{} is in a region with a memory budget of {one}", self.name(first)),
            format!(
                "{} is in none, and budget_needs_coverage=yes asks that all of forward is",
                self.name(bare)
            ),
        ])
    }

    /// What backward returns, and what it has to do.
    fn needed(&self, forward_outputs: usize) -> Vec<Need> {
        let graph = self.joint.graph;
        let gradients = returned(graph).into_iter().skip(forward_outputs);
        let gradients = gradients.filter_map(|value| match value {
            Value::Node(id) if id.index() < graph.len() => Some(Need::Value(id)),
            _ => None,
        });
        let acts = graph.ids().filter(|&id| self.has_effect(id) && !self.belongs_to_forward(id));
        gradients.chain(acts.map(Need::Act)).collect()
    }

    /// Whether the careful plan has backward compute a value, if it needs it.
    pub fn is_made(&self, id: NodeId) -> bool {
        let is_gone = self.overwritten(id, id).is_some() && self.unrepeatable(id, true).is_none();
        self.unsavable(id, true).is_some() || is_gone
    }

    /// What is at hand in backward.
    fn plan(&self, is_careful: bool) -> Plan<'_> {
        let n = self.joint.graph.len();
        let mut plan = Plan { of: self, is_careful, handed: vec![false; n], made: vec![false; n] };
        for id in self.joint.graph.ids() {
            plan.visit(id);
        }
        plan
    }

    /// Why forward does not hand a value over.
    fn unsavable(&self, id: NodeId, is_careful: bool) -> Option<&'static str> {
        let graph = self.joint.graph;
        let tags = self.tags(id);
        let in_flight = self.joint.collectives.launch_of_value(id).is_some();
        let must = tags.must_be_recomputed() && graph.node(id).op == Op::Call;
        match class_of(graph, id) {
            _ if is_backward_only(graph, id) && graph.node(id).op == Op::Placeholder => None,
            _ if self.late[id.index()] => Some("it is computed in backward only"),
            ValueClass::Tuple | ValueClass::Nothing => Some("it is no single value"),
            _ if tags.written_by_runtime => Some("the runtime writes it after forward"),
            _ if in_flight => Some("it has not been waited for"),
            _ if must && !self.is_boundary(id) && !self.is_of_kept_draw(id) => {
                Some("it is tagged MUST_RECOMPUTE")
            }
            _ if is_careful && self.repeated[id.index()] && !must && graph.node(id).op == Op::Call => {
                Some("it holds what is tagged MUST_RECOMPUTE")
            }
            _ => None,
        }
    }

    /// Whether a value that asks to be computed again is kept: a later region begins there, or a hook hangs on it.
    fn is_boundary(&self, id: NodeId) -> bool {
        let users = self.joint.edges.users(id);
        let asks = |user: &&NodeId| self.tags(**user).asks_to_recompute();
        let is_later = |user: &NodeId| {
            let regions = self.tags(id).region_id.zip(self.tags(*user).region_id);
            regions.is_some_and(|(own, other)| other > own)
        };
        let hangs = self.tags(id).hook && !users.iter().any(|user| asks(&user));
        hangs || users.iter().filter(asks).any(is_later)
    }

    /// Whether a value is an item of a draw that nobody asks to repeat.
    fn is_of_kept_draw(&self, id: NodeId) -> bool {
        let parent = item_of(self.joint.graph, id).map(|(parent, _)| parent);
        parent.is_some_and(|parent| {
            self.joint.ops.draws(self.joint.graph, parent) && !self.tags(parent).asks_to_recompute()
        })
    }

    /// Whether forward has to hand over the memory that views show: those of a tuple to be saved, unless they, or what
    /// they show, are to be computed again.
    fn keeps_memory(&self, id: NodeId) -> bool {
        let shows = |id| self.call(id).is_some_and(|info| info.is_view() || info.kind == Kind::GetItem);
        let input = |id: &NodeId| self.joint.edges.inputs(*id).first().copied().filter(|input| input < id);
        let mut shown = std::iter::successors(Some(id), |at| input(at).filter(|_| shows(*at))).skip(1);
        let mut items = self.joint.edges.users(id).iter();
        self.tags(id).recompute == Some(Recompute::MustSave)
            && shows(id)
            && !shown.any(|base| self.tags(base).must_be_recomputed())
            && !items.all(|&item| self.tags(item).asks_to_recompute())
    }

    /// Why backward does not compute a value.
    fn unrepeatable(&self, id: NodeId, is_careful: bool) -> Option<&'static str> {
        let graph = self.joint.graph;
        let Some(info) = self.call(id) else { return Some("it is an input") };
        if !self.belongs_to_forward(id) {
            return None;
        }
        let tags = self.tags(id);
        let is_free = info.is_view() || info.kind == Kind::GetItem;
        let in_flight = self.joint.collectives.launch_of_value(id).is_some();
        let is_kept = tags.recompute == Some(Recompute::MustSave)
            && class_of(graph, id) == ValueClass::Tensor
            && (is_careful || !is_free)
            && !in_flight;
        match () {
            () if tags.region == Some(Region::MustForward) => Some("it is tagged must_be_in_forward"),
            // What an operator that nobody knows does can perhaps be done again.
            () if self.has_effect(id) && (is_careful || info.kind != Kind::Unknown) => {
                Some("it has an effect, and effects happen once")
            }
            () if is_kept => Some("it is tagged MUST_SAVE"),
            () if is_careful && self.joint.ops.draws(graph, id) && !tags.asks_to_recompute() => {
                Some("it draws random numbers, and nobody asks to draw them again")
            }
            () => None,
        }
    }

    /// The first write of forward, behind `reader`, to memory that `id` shows.
    fn overwritten(&self, id: NodeId, reader: NodeId) -> Option<NodeId> {
        let storages = self.joint.storages();
        let writes = storages.all_parts(id).flat_map(|part| {
            let over = storages.writes_of(part.storage, Some(reader)).filter(|access| {
                access.touch == Touch::Write && access.part.bytes.overlap(part.bytes) != Overlap::No
            });
            over.map(|access| access.node)
        });
        writes.filter(|&write| self.belongs_to_forward(write)).min()
    }

    /// Whether anybody writes memory that a node shows, but for the communication that it is the result of.
    fn is_written(&self, id: NodeId) -> bool {
        let storages = self.joint.storages();
        let mut parts = storages.all_parts(id);
        parts.any(|part| {
            let mut writes = storages.writes_of(part.storage, None);
            writes.any(|access| access.touch == Touch::Write && self.has_effect(access.node))
        })
    }
}

/// Something that there must be in backward.
#[derive(Clone, Copy, Debug)]
enum Need {
    /// A value.
    Value(NodeId),
    /// What a node does.
    Act(NodeId),
}

/// What is at hand in backward.
struct Plan<'a> {
    of: &'a Question<'a>,
    is_careful: bool,
    /// What forward hands over, and views of it: memory that forward may write.
    handed: Vec<bool>,
    /// What backward computes: memory of its own.
    made: Vec<bool>,
}

impl Plan<'_> {
    fn visit(&mut self, id: NodeId) {
        let of = self.of;
        let graph = of.joint.graph;
        let op = graph.node(id).op;
        if op == Op::Output {
            return;
        }
        // Both parts read attributes of the module.
        self.handed[id.index()] = op == Op::GetAttr || of.unsavable(id, self.is_careful).is_none();
        if of.unrepeatable(id, self.is_careful).is_some() || !self.runs(id) {
            return;
        }
        let inputs = graph.inputs(id);
        let shows = self.shows(id);
        let is_at_hand = |input: &NodeId| self.handed[input.index()];
        if self.is_careful && of.keeps_memory(id) && !inputs.iter().all(is_at_hand) {
            return;
        }
        self.handed[id.index()] |= shows && inputs.iter().any(|input| !self.made[input.index()]);
        let own = !shows || inputs.iter().all(|input| self.made[input.index()]);
        self.made[id.index()] = own && !(self.is_careful && of.is_written(id));
    }

    /// Whether a node reads no memory, but shows that of its inputs.
    fn shows(&self, id: NodeId) -> bool {
        self.of.call(id).is_some_and(|info| info.is_view() || info.kind == Kind::GetItem)
    }

    /// Whether all that a node reads is at hand.
    fn runs(&self, id: NodeId) -> bool {
        self.of.joint.graph.inputs(id).into_iter().all(|input| self.has(input, id))
    }

    /// Whether `reader` finds in `id` what it finds there in the joint graph.
    fn has(&self, id: NodeId, reader: NodeId) -> bool {
        let is_current = || self.shows(reader) || self.of.overwritten(id, reader).is_none();
        self.made[id.index()] || (self.handed[id.index()] && is_current())
    }

    /// Whether there is everything that there must be; the constraints in the way of the first thing that is not.
    fn all(&self, needs: &[Need]) -> Result<(), Vec<String>> {
        for &need in needs {
            match need {
                Need::Value(id) if !self.made[id.index()] && !self.handed[id.index()] => {
                    return Err(self.why(id, None));
                }
                Need::Act(id) if !self.runs(id) => return Err(self.why_not_run(id)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Why a node does not run.
    fn why_not_run(&self, id: NodeId) -> Vec<String> {
        let inputs = self.of.joint.graph.inputs(id);
        match inputs.into_iter().find(|&input| !self.has(input, id)) {
            Some(input) => self.why(input, Some(id)),
            None => Vec::new(),
        }
    }

    /// Why a value is not at hand for `reader`, or as a result: from input to input, to one that backward cannot
    /// compute.
    fn why(&self, id: NodeId, reader: Option<NodeId>) -> Vec<String> {
        let (mut at, mut reader) = (id, reader);
        let mut lines = Vec::new();
        loop {
            let name = self.of.name(at);
            let needed = match reader {
                Some(reader) => format!("backward needs {name}, which {} reads", self.of.name(reader)),
                None => format!("backward returns {name}"),
            };
            let overwritten = reader.and_then(|reader| self.of.overwritten(at, reader));
            let not_saved = match (self.of.unsavable(at, self.is_careful), overwritten) {
                (Some(why), _) => why.to_string(),
                (None, Some(write)) => {
                    format!("{} writes its memory before backward runs", self.of.name(write))
                }
                (None, None) => "its memory is written".to_string(),
            };
            // What backward has to compute anyway is in nobody's way.
            if !self.of.late[at.index()] {
                lines.push(format!("{needed}; it is not saved, since {not_saved}"));
            }
            if let Some(why) = self.of.unrepeatable(at, self.is_careful) {
                lines.push(format!("{name} is not computed again, since {why}"));
                return lines;
            }
            let inputs = self.of.joint.graph.inputs(at);
            match inputs.into_iter().find(|&input| input < at && !self.has(input, at)) {
                Some(input) => (at, reader) = (input, Some(at)),
                None => {
                    lines.push(format!("{name} is not computed again, since its memory is written in place"));
                    return lines;
                }
            }
        }
    }
}
