//! Communication between ranks.
//!
//! A collective only starts: what it writes is in flight until a wait. What it sends
//! is captured at the start. What is done when its call is writes at once.
//!
//! What a message brings is a function of its place among those of its sender, whichever operator receives it. That the
//! sender sends what it did before is a question to its own graph.
//!
//! Followed element by element: gathers, reductions, broadcasts, and all-to-alls of equal parts, coalesced or not,
//! functional, in place or into a buffer. Of the others the result is a function of what is sent.

use super::GroupId;
use super::arguments::Call;
use super::evaluation::{Effect, Launch, Payload, Produced, Tensor};
use super::hazard::HazardKind;
use super::key::{Tag, Words};
use super::layout;
use super::machine::{Flight, Machine, Reading, Stop};
use super::reason::Reason;
use super::source::{KeyId, Source, Symbol, ValueId};
use crate::analysis::collectives::{CollectiveCall, GroupName, describe};
use crate::analysis::messages::Message;
use crate::graph::{NodeId, Out, Value};
use crate::ops::{Collective, Kind};

/// One tensor of a launch.
struct Part {
    input: Tensor,
    value: ValueId,
    /// What the ranks send: the same, as far as it is known of the others.
    sent: ValueId,
}

/// A collective being started.
struct Start<'c> {
    call: &'c Call<'c>,
    about: &'c CollectiveCall<'c>,
    kind: Collective,
    group: GroupId,
    size: Option<u32>,
    op: Option<Symbol>,
    /// Index into the evaluation's launches.
    launch: usize,
}

/// What a rank receives, and its sizes.
type Received = (ValueId, Vec<i64>);

impl Machine<'_, '_> {
    /// Executes the start of a collective.
    pub(super) fn collective(&mut self, call: &Call<'_>, kind: Collective) -> Result<Produced, Stop> {
        let graph = self.graph;
        let Some(about) = describe(graph, self.ops, self.node) else {
            return Err(Reason::arguments("no collective").into());
        };
        let group = self.group(call, &about);
        let world = self.arena.places.group_size(group);
        if let (Some(stated), Some(world)) = (about.group_size, world)
            && stated != i64::from(world)
        {
            self.hazard(HazardKind::GroupSize { stated, world });
        }
        // What the node states is what the shapes follow.
        let size = match about.group_size {
            Some(stated) => u32::try_from(stated).ok(),
            None => world,
        };
        let outs = match call.index("out") {
            Some(index) => self.nodes(call, index)?,
            None => Vec::new(),
        };
        let mut parts = Vec::with_capacity(about.inputs.len());
        for (index, &node) in about.inputs.iter().enumerate() {
            let input = self.tensor(node)?;
            // A receipt is given the buffer to receive into.
            let message = about.messages.as_ref().and_then(|messages| messages.get(index));
            let receives = message.is_some_and(|message| !message.sends);
            let reading = if receives { Reading::Moving } else { Reading::Using };
            let value = self.read(input, Some(node), reading)?;
            let lies_in = |&out: &NodeId| self.tensor(out).is_ok_and(|out| out.storage == input.storage);
            let is_own_slot = outs.get(index).is_some_and(lies_in);
            self.has_own_slots |= is_own_slot;
            // Each rank has written its own slot: what lies unwritten beside it on this one is another place on the
            // others.
            let may_be_another_slot = self.has_own_slots && !is_own_slot && size != Some(1);
            let sent = match may_be_another_slot && self.arena.is_partly_unwritten(value) {
                true => self.arena.of_another_graph(value),
                false => value,
            };
            parts.push(Part { input, value, sent });
        }
        let op = about.reduce_op.map(|op| self.arena.symbol(op));
        let payload = |part: &Part| Payload { value: part.sent, dtype: part.input.dtype, result: None };
        let launch = self.eval.launches.len();
        self.eval.launches.push(Launch {
            node: self.node,
            kind,
            group,
            group_size: size,
            reduce_op: op,
            peer: about.peer,
            payloads: parts.iter().map(payload).collect(),
            messages: about.messages.clone().unwrap_or_default(),
        });
        let start = Start { call, about: &about, kind, group, size, op, launch };
        if kind.is_message() {
            let Some(messages) = &about.messages else {
                return Err(Reason::arguments("messages that are not known").into());
            };
            return self.exchange(&start, &parts, messages);
        }
        let mut received = Vec::with_capacity(parts.len());
        for part in &parts {
            match self.follow(&start, part) {
                Ok(Some(one)) => received.push(one),
                Ok(None) => return Ok(self.opaque_launch(&start, &parts)?),
                Err(Stop::Unknown(reason)) if reason.is_contradiction() => {
                    return Ok(self.opaque_launch(&start, &parts)?);
                }
                Err(stop) => return Err(stop),
            }
        }
        if parts.is_empty() {
            return Ok(self.opaque_launch(&start, &parts)?);
        }
        let mut items = Vec::with_capacity(parts.len());
        for (index, (part, received)) in parts.iter().zip(received).enumerate() {
            let target = match outs.get(index) {
                Some(&node) => Some(self.tensor(node)?),
                None if about.in_place => Some(part.input),
                None => None,
            };
            if kind == Collective::AllGather
                && let (Some(target), Some(size)) = (target, size)
            {
                self.check_slot(part.input, target, group, size);
            }
            items.push(self.receive(&start, index, part, target, received)?);
        }
        match items[..] {
            [one] if !about.coalesced => Ok(one),
            _ => Ok(self.list(&items)),
        }
    }

    /// The process group that a call names.
    fn group(&mut self, call: &Call<'_>, about: &CollectiveCall<'_>) -> GroupId {
        let named = match about.group {
            GroupName::Text(name) => name,
            GroupName::Node(node) => return self.arena.places.group(self.graph.name(node)),
            GroupName::Unknown => "?",
        };
        // The legacy operators name a group by its ranks; the tag is often empty.
        if let Some(index) = call.index("ranks")
            && let Ok(ranks) = self.ints(call, index)
        {
            return self.arena.places.group(&format!("{named}{ranks:?}"));
        }
        self.arena.places.group(named)
    }

    /// Starts messages.
    fn exchange(
        &mut self,
        start: &Start<'_>,
        parts: &[Part],
        messages: &[Message],
    ) -> Result<Produced, Stop> {
        let mut items = Vec::with_capacity(parts.len());
        for (index, (part, message)) in parts.iter().zip(messages).enumerate() {
            let (target, brought) = match message.sends {
                true => {
                    let nothing = self.arena.poison(0);
                    (self.fresh_result(index, nothing, &[0], part.input.dtype)?, nothing)
                }
                false => (part.input, self.brought(start.group, message, part.input)?),
            };
            self.arrive(start, index, Some(part), target, brought)?;
            items.push(self.done(target));
        }
        match items[..] {
            [one] if !start.about.coalesced => Ok(one),
            _ => Ok(self.list(&items)),
        }
    }

    /// What the next message of a peer brings into a buffer.
    fn brought(&mut self, group: GroupId, message: &Message, buffer: Tensor) -> Result<ValueId, Stop> {
        let is_symbolic = self.is_symbolic(buffer);
        if is_symbolic && buffer.path.is_some() {
            return Err(Reason::arguments("a buffer that is a part of a tensor of symbolic sizes").into());
        }
        let number = self.received.entry((group, message.peer)).or_default();
        let count = *number;
        *number = count.wrapping_add(1);
        let name = self.arena.symbol("message");
        let len = match is_symbolic {
            true => 1,
            false => layout::numel(self.eval.sizes(buffer)).ok_or(Reason::Overflow)?,
        };
        self.words.0.clear();
        self.words.symbol(Tag::Target, name);
        self.words.put(Tag::Group, group.0);
        self.words.put(Tag::Effect, count);
        self.words.int(message.peer);
        self.words.int(len);
        self.words.dtype(buffer.dtype);
        let source = Source::Opaque { key: self.take_key(), output: 0 };
        let origin = self.name_symbol(self.node);
        let source = self.arena.source_of(source, origin);
        Ok(self.arena.all_of(source, len))
    }

    /// What a rank receives of one part; `None` where that is not followed.
    fn follow(&mut self, start: &Start<'_>, part: &Part) -> Result<Option<Received>, Stop> {
        if self.is_symbolic(part.input) {
            let name = match (start.kind, start.op, start.size) {
                (Collective::AllReduce, Some(_), _) => "all_reduce",
                (Collective::AllGather, _, Some(_)) => "all_gather",
                (Collective::ReduceScatter, Some(_), Some(_)) => "reduce_scatter",
                _ => return Ok(None),
            };
            return Ok(Some((self.exchanged_all(name, start, part), Vec::new())));
        }
        let &Start { group, size, .. } = start;
        let mut sizes = self.sizes(part.input)?;
        let value = part.sent;
        let ranks = || size.ok_or_else(|| Reason::arguments("a group of unknown size"));
        let received = match (start.kind, start.op) {
            (Collective::AllGather, _) => {
                let ranks = ranks()?;
                match sizes.first_mut() {
                    Some(first) => *first = first.checked_mul(i64::from(ranks)).ok_or(Reason::Overflow)?,
                    None => sizes.push(i64::from(ranks)),
                }
                self.arena.gathered(value, group, ranks)?
            }
            (Collective::ReduceScatter, Some(op)) => {
                let ranks = ranks()?;
                let rows = sizes.first().copied().unwrap_or(1);
                match sizes.first_mut() {
                    Some(first) if ranks > 0 && rows % i64::from(ranks) == 0 => *first /= i64::from(ranks),
                    _ => return Err(Reason::Group { ranks: i64::from(ranks), elements: rows }.into()),
                }
                self.arena.reduce_scattered(value, op, group, ranks)?
            }
            // The size matters only where it is 1.
            (Collective::AllReduce, Some(op)) => {
                self.arena.reduced(value, op, group, size.unwrap_or(u32::MAX))?
            }
            (Collective::Broadcast, _) => match start.about.peer.and_then(|p| u32::try_from(p).ok()) {
                Some(_) if size == Some(1) => value,
                Some(source) => self.arena.moved(value, group, source)?,
                None => return Err(Reason::arguments("no source rank").into()),
            },
            (Collective::AllToAll, _) => match self.even_split(start.call, &sizes)? {
                Some(parts) => self.arena.exchanged(value, group, parts)?,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        Ok(Some((received, sizes)))
    }

    /// What a collective on a tensor of symbolic sizes gives, whichever operator starts it: a function of what the ranks of
    /// the group send.
    fn exchanged_all(&mut self, name: &str, start: &Start<'_>, part: &Part) -> ValueId {
        let name = self.arena.symbol(name);
        let mut words = Words::default();
        words.symbol(Tag::Target, name);
        if let Some(op) = start.op {
            words.symbol(Tag::Text, op);
        }
        words.put(Tag::Group, start.group.0);
        words.token(part.sent, part.input.dtype);
        self.arena.opaque_movement(&words, 1, &[part.sent])
    }

    /// The number of equal parts that an all-to-all sends and receives; `None` where they are not equal, or not
    /// known.
    fn even_split(&self, call: &Call<'_>, sizes: &[i64]) -> Result<Option<u32>, Reason> {
        let rows = sizes.first().copied().unwrap_or(1);
        let mut count = None;
        for name in ["output_split_sizes", "input_split_sizes"] {
            let Some(index) = call.index(name) else { return Ok(None) };
            if matches!(call.bound.given(index), None | Some(Value::None)) {
                return Ok(None);
            }
            let lens = match self.ints(call, index) {
                Ok(lens) => lens,
                Err(Stop::NotFollowed) => return Ok(None),
                Err(Stop::Unknown(reason)) => return Err(reason),
            };
            let even = lens.iter().all(|&n| Some(&n) == lens.first())
                && lens.iter().try_fold(0i64, |sum, &n| sum.checked_add(n)) == Some(rows);
            if !even || lens.is_empty() || count.is_some_and(|c| c != lens.len()) {
                return Ok(None);
            }
            count = Some(lens.len());
        }
        Ok(count.and_then(|c| u32::try_from(c).ok()))
    }

    /// Puts what is received where it belongs: into `target`, else into a new tensor.
    fn receive(
        &mut self,
        start: &Start<'_>,
        index: usize,
        part: &Part,
        target: Option<Tensor>,
        (received, sizes): Received,
    ) -> Result<Produced, Stop> {
        let dtype = part.input.dtype;
        let target = match target {
            Some(target) if target.dtype != dtype => {
                return Err(Reason::arguments("a buffer of another dtype than the input").into());
            }
            Some(target) if self.is_symbolic(target) && target.path.is_some() => {
                return Err(Reason::arguments("a buffer that is a part of a tensor of symbolic sizes").into());
            }
            Some(target) => target,
            None => {
                let empty = self.arena.poison(self.arena.len(received));
                match self.is_symbolic(part.input) {
                    true => self.fresh_symbolic(empty, dtype),
                    false => self.fresh_result(index, empty, &sizes, dtype)?,
                }
            }
        };
        self.arrive(start, index, Some(part), target, received)?;
        Ok(self.done(target))
    }

    /// Writes what is received, now or at the wait.
    fn arrive(
        &mut self,
        start: &Start<'_>,
        index: usize,
        part: Option<&Part>,
        target: Tensor,
        received: ValueId,
    ) -> Result<(), Reason> {
        if let Some(payload) = self.eval.launches[start.launch].payloads.get_mut(index) {
            payload.result = Some(received);
        }
        if start.about.is_done_at_once {
            return self.write(target, received);
        }
        // Of a copy the input may change.
        let is_held = |part: &&Part| part.input.storage != target.storage && !start.about.sends_a_copy();
        let input = part.filter(is_held).map(|part| (part.input, part.value));
        self.take_off(Flight { launch: start.launch, target, result: received, input })
    }

    /// A gather into the buffer that holds its input: the input must be the own rank's slot.
    fn check_slot(&mut self, input: Tensor, target: Tensor, group: GroupId, size: u32) {
        if input.storage != target.storage || self.is_symbolic(target) {
            return;
        }
        let (from, to) = self.bytes(input);
        let (low, high) = self.bytes(target);
        if from >= high || low >= to {
            return;
        }
        let width = i64::from(input.dtype.itemsize());
        let found = (from - low) / width;
        let len = ((to - from) / width).max(1);
        let name = self.arena.group_name(group);
        let known = self.own.iter().find(|(group, _)| group == name).map(|&(_, index)| index);
        let rank = known.or_else(|| self.graph.world.group(name)?.recorded_rank);
        let contiguous = layout::is_contiguous(self.eval.sizes(input), self.eval.strides(input));
        let expected = rank.and_then(|rank| len.checked_mul(i64::from(rank)));
        let right = match rank {
            Some(_) => expected == Some(found),
            // A graph that does not say which rank it was made on may be that of any.
            None => found >= 0 && found % len == 0 && found / len < i64::from(size),
        };
        if !right || !contiguous {
            self.hazard(HazardKind::SlotMisplaced { expected, found });
        }
    }

    /// Communication that is not followed: what it gives is a function of what is sent.
    fn opaque_launch(&mut self, start: &Start<'_>, parts: &[Part]) -> Result<Produced, Reason> {
        let graph = self.graph;
        let key = self.launch_key(start)?;
        if start.call.info.effect {
            self.eval.effects.push(Effect { node: self.node, key, ordered: true, certain: true });
        }
        let mut targets = Vec::new();
        for param in start.call.schema.mutated() {
            if matches!(start.call.bound.given(param), None | Some(Value::None)) {
                continue;
            }
            for node in self.nodes(start.call, param)? {
                targets.push(self.tensor(node)?);
            }
        }
        let out = graph.node(self.node).out;
        if targets.is_empty() {
            for id in graph.tensors_of(out) {
                let tensor = *graph.tensor(id);
                let target = match graph.sizes(tensor.shape) {
                    Some(sizes) => {
                        let empty = self.arena.poison(layout::numel(&sizes).ok_or(Reason::Overflow)?);
                        let strides = graph.sizes(tensor.stride);
                        self.fresh(empty, &sizes, strides.as_deref(), tensor.dtype)?
                    }
                    None => {
                        let empty = self.arena.poison(1);
                        self.fresh_symbolic(empty, tensor.dtype)
                    }
                };
                targets.push(target);
            }
        }
        let origin = self.name_symbol(self.node);
        for (index, &target) in targets.iter().enumerate() {
            let source = Source::Opaque { key, output: index as u32 };
            let source = self.arena.source_of(source, origin);
            let count = if self.is_symbolic(target) {
                1
            } else {
                layout::numel(self.eval.sizes(target)).ok_or(Reason::Overflow)?
            };
            let received = self.arena.all_of(source, count);
            self.arrive(start, index, parts.get(index), target, received)?;
        }
        // Where arguments are written, the results are these arguments; a `None` among them has no tensor.
        let mut left = targets.into_iter();
        let all = match out {
            Out::Tuple(span) => graph.outs(span),
            _ => std::slice::from_ref(&out),
        };
        let items: Vec<Produced> = all.iter().map(|&one| self.results_as(one, &mut left)).collect();
        match items[..] {
            [one] if !start.about.coalesced => Ok(one),
            _ => Ok(self.list(&items)),
        }
    }

    /// Results as they are recorded, lists in lists too, of tensors one by one.
    fn results_as(&mut self, out: Out, left: &mut impl Iterator<Item = Tensor>) -> Produced {
        match out {
            Out::Tensor(_) => left.next().map_or(Produced::Nothing, |tensor| self.done(tensor)),
            Out::Tuple(span) => {
                let graph = self.graph;
                let items: Vec<Produced> =
                    graph.outs(span).iter().map(|&one| self.results_as(one, left)).collect();
                self.list(&items)
            }
            _ => Produced::Nothing,
        }
    }

    /// What is started, in words: operator, group and constants, and what is sent.
    fn launch_key(&mut self, start: &Start<'_>) -> Result<KeyId, Reason> {
        let target = self.target_symbol();
        self.words.0.clear();
        self.words.symbol(Tag::Target, target);
        self.words.put(Tag::Group, start.group.0);
        if start.kind.is_unmodelled() {
            self.words.put(Tag::Effect, self.unmodelled);
            self.unmodelled = self.unmodelled.wrapping_add(1);
        }
        let noted = self.eval.hazards.len();
        self.encode_bound(start.call, Kind::Collective(start.kind))?;
        // The inputs have been read, and their hazards noted, already.
        self.eval.hazards.truncate(noted);
        Ok(self.take_key())
    }

    /// Executes a wait: of one tensor, or of several.
    pub(super) fn wait(&mut self, call: &Call<'_>) -> Result<Produced, Stop> {
        let several = call.param(0).is_some_and(|p| p.ty.ends_with(']'));
        let mut items = Vec::new();
        for node in self.nodes(call, 0)? {
            let tensor = self.tensor(node)?;
            self.land(tensor)?;
            items.push(self.done(tensor));
        }
        match items[..] {
            [one] if !several => Ok(one),
            _ => Ok(self.list(&items)),
        }
    }
}
