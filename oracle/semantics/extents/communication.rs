//! Communication between ranks.
//!
//! A collective of the `_c10d_functional` family only starts: what it writes is in flight until a wait. What it sends
//! is captured at the start. Collectives of other families are over when they return.

use super::GroupId;
use super::arguments::Call;
use super::evaluation::{Effect, Launch, Payload, Produced, Tensor};
use super::hazard::HazardKind;
use super::key::Tag;
use super::layout;
use super::machine::{Flight, Machine, Reading, Stop};
use super::reason::Reason;
use super::source::{KeyId, Source, Symbol, Traits, ValueId};
use crate::analysis::collectives::{CollectiveCall, GroupName, describe};
use crate::graph::{Out, Value};
use crate::ops::Collective;

/// One tensor of a launch.
struct Part {
    input: Tensor,
    value: ValueId,
}

impl Machine<'_, '_> {
    /// Executes the start of a collective.
    pub(super) fn collective(&mut self, call: &Call<'_>, kind: Collective) -> Result<Produced, Stop> {
        let graph = self.graph;
        let Some(about) = describe(graph, self.ops, self.node) else {
            return Err(Reason::arguments("no collective").into());
        };
        let group = self.group(call, &about);
        let stated = about.group_size;
        let world = self.arena.places.group_size(group);
        if let (Some(stated), Some(world)) = (stated, world)
            && stated != i64::from(world)
        {
            self.hazard(HazardKind::GroupSize { stated, world });
        }
        let size = match stated {
            Some(stated) => u32::try_from(stated).ok(),
            None => world,
        };
        let reduce_op = about.reduce_op.map(|op| self.arena.symbol(op));
        let mut parts = Vec::with_capacity(about.inputs.len());
        // A receipt is given the buffer to receive into.
        let receives = matches!(kind, Collective::Recv | Collective::PointToPoint);
        let reading = if receives { Reading::Moving } else { Reading::Using };
        for &node in &about.inputs {
            let input = self.tensor(node)?;
            let value = self.read(input, Some(node), reading)?;
            parts.push(Part { input, value });
        }
        let payloads =
            parts.iter().map(|part| Payload { value: part.value, dtype: part.input.dtype, result: None });
        let launch = self.eval.launches.len();
        self.eval.launches.push(Launch {
            node: self.node,
            kind,
            group,
            group_size: size,
            reduce_op,
            peer: about.peer,
            payloads: payloads.collect(),
        });
        let key = self.launch_key(call, group)?;
        if call.info.effect {
            self.eval.effects.push(Effect { node: self.node, key, ordered: true });
        }
        let exact = matches!(
            kind,
            Collective::AllGather
                | Collective::ReduceScatter
                | Collective::AllReduce
                | Collective::AllToAll
                | Collective::Broadcast
        );
        if !exact || parts.is_empty() {
            return Ok(self.opaque_launch(call, &about, launch, key)?);
        }
        let outs = match call.index("out") {
            Some(index) => Some(self.nodes(call, index)?),
            None => None,
        };
        let asynchronous = is_asynchronous(&call.schema.namespace);
        let mut items = Vec::with_capacity(parts.len());
        for (index, part) in parts.iter().enumerate() {
            let peer = about.peer;
            let received =
                self.received(call, kind, part, group, size, reduce_op, peer, key, index as u32)?;
            let out = outs.as_ref().and_then(|outs| outs.get(index)).copied();
            let target = match out {
                Some(node) => Some(self.tensor(node)?),
                None if about.in_place => Some(part.input),
                None => None,
            };
            if kind == Collective::AllGather
                && let (Some(target), Some(size)) = (target, size)
            {
                self.check_slot(part.input, target, group, size);
            }
            let mut sizes = None;
            if !self.is_symbolic(part.input) {
                sizes = Some(self.result_sizes(kind, part.input, size)?);
            }
            items.push(self.receive(launch, index, part, target, received, sizes, asynchronous)?);
        }
        match items[..] {
            [one] if !about.coalesced => Ok(one),
            _ => Ok(self.list(&items)),
        }
    }

    /// The process group that a call names.
    fn group(&mut self, call: &Call<'_>, about: &CollectiveCall<'_>) -> GroupId {
        let mut name = match about.group {
            GroupName::Text(name) => name.to_string(),
            GroupName::Node(node) => format!("the group {}", self.name_of(node)),
            GroupName::Unknown => String::from("?"),
        };
        // The legacy operators name a group by its ranks; the tag is often empty.
        if let Some(index) = call.index("ranks")
            && let Ok(ranks) = self.ints(call, index)
        {
            name = format!("{name}{ranks:?}");
        }
        self.arena.places.group(&name)
    }

    /// What is started, in words: operator, group and constants, and what is sent.
    fn launch_key(&mut self, call: &Call<'_>, group: GroupId) -> Result<KeyId, Reason> {
        let target = self.target_symbol();
        self.words.0.clear();
        self.words.symbol(Tag::Target, target);
        self.words.put(Tag::Group, group.0);
        // Each receipt takes the next message.
        let receives = matches!(
            call.info.collective(),
            Some(Collective::Recv | Collective::PointToPoint | Collective::Other)
        );
        if receives {
            self.words.put(Tag::Effect, self.received);
            self.received = self.received.wrapping_add(1);
        }
        let noted = self.eval.hazards.len();
        self.encode_bound(call)?;
        // The inputs have been read, and their hazards noted, already.
        self.eval.hazards.truncate(noted);
        Ok(self.take_key())
    }

    /// What a rank receives of one part.
    #[allow(clippy::too_many_arguments)]
    fn received(
        &mut self,
        call: &Call<'_>,
        kind: Collective,
        part: &Part,
        group: GroupId,
        size: Option<u32>,
        op: Option<Symbol>,
        peer: Option<i64>,
        key: KeyId,
        index: u32,
    ) -> Result<ValueId, Stop> {
        let value = part.value;
        let opaque = |this: &mut Self, len: i64| {
            let origin = this.name_symbol(this.node);
            let source = Source::Opaque { key, output: index };
            let source = this.arena.source_of(source, Some(origin), Traits::ASSUMED);
            this.arena.all_of(source, len)
        };
        if self.is_symbolic(part.input) {
            return Ok(opaque(self, 1));
        }
        let needs = |size: Option<u32>| size.ok_or_else(|| Reason::arguments("a group of unknown size"));
        Ok(match (kind, op) {
            (Collective::AllGather, _) => self.arena.gathered(value, group, needs(size)?)?,
            (Collective::ReduceScatter, Some(op)) => {
                self.arena.reduce_scattered(value, op, group, needs(size)?)?
            }
            // The size matters only where it is 1.
            (Collective::AllReduce, Some(op)) => {
                self.arena.reduced(value, op, group, size.unwrap_or(u32::MAX))?
            }
            (Collective::Broadcast, _) => match peer.and_then(|p| u32::try_from(p).ok()) {
                Some(_) if size == Some(1) => value,
                Some(source) => self.arena.moved(value, group, source)?,
                None => return Err(Reason::arguments("no source rank").into()),
            },
            (Collective::AllToAll, _) => match self.even_split(call, part)? {
                Some(parts) => self.arena.exchanged(value, group, parts)?,
                None => {
                    let len = self.recorded_numel()?;
                    opaque(self, len)
                }
            },
            _ => {
                let len = self.recorded_numel()?;
                opaque(self, len)
            }
        })
    }

    fn recorded_numel(&self) -> Result<i64, Stop> {
        let id = self.metadata(0).ok_or(Reason::NoMetadata)?;
        let sizes = self.graph.sizes(self.graph.tensor(id).shape).ok_or(Stop::NotFollowed)?;
        Ok(layout::numel(&sizes).ok_or(Reason::Overflow)?)
    }

    /// The number of equal parts that an all-to-all sends and receives; `None` where they are not equal.
    fn even_split(&self, call: &Call<'_>, part: &Part) -> Result<Option<u32>, Stop> {
        let mut count = None;
        for name in ["output_split_sizes", "input_split_sizes"] {
            let Some(index) = call.index(name) else { return Ok(None) };
            if call.bound.given(index) == Some(Value::None) {
                return Ok(None);
            }
            let sizes = self.ints(call, index)?;
            let rows = self.sizes(part.input)?.first().copied().unwrap_or(1);
            let even = sizes.iter().all(|&n| Some(&n) == sizes.first())
                && sizes.iter().try_fold(0i64, |sum, &n| sum.checked_add(n)) == Some(rows);
            if !even || sizes.is_empty() || count.is_some_and(|c| c != sizes.len()) {
                return Ok(None);
            }
            count = Some(sizes.len());
        }
        Ok(count.and_then(|c| u32::try_from(c).ok()))
    }

    fn result_sizes(&self, kind: Collective, input: Tensor, size: Option<u32>) -> Result<Vec<i64>, Stop> {
        let mut sizes = self.sizes(input)?;
        let ranks = i64::from(size.unwrap_or(1));
        match kind {
            Collective::AllGather => match sizes.first_mut() {
                Some(first) => *first = first.checked_mul(ranks).ok_or(Reason::Overflow)?,
                None => sizes.push(ranks),
            },
            Collective::ReduceScatter => match sizes.first_mut() {
                Some(first) if ranks > 0 && *first % ranks == 0 => *first /= ranks,
                _ => {
                    let elements = sizes.first().copied().unwrap_or(1);
                    return Err(Reason::Group { ranks, elements }.into());
                }
            },
            Collective::AllToAll => {
                // Even parts keep the shape; for others it is what is recorded.
                let id = self.metadata(0);
                if let Some(recorded) = id.and_then(|id| self.graph.sizes(self.graph.tensor(id).shape)) {
                    sizes = recorded;
                }
            }
            _ => {}
        }
        Ok(sizes)
    }

    /// Puts what is received where it belongs: into `target`, else into a new tensor.
    #[allow(clippy::too_many_arguments)]
    fn receive(
        &mut self,
        launch: usize,
        payload: usize,
        part: &Part,
        target: Option<Tensor>,
        received: ValueId,
        sizes: Option<Vec<i64>>,
        asynchronous: bool,
    ) -> Result<Produced, Stop> {
        let dtype = part.input.dtype;
        let target = match (target, &sizes) {
            (Some(target), _) => {
                if target.dtype != dtype {
                    return Err(Reason::arguments("a buffer of another dtype than the input").into());
                }
                target
            }
            // Sizes that do not hold what is received are a fault of the recorded metadata.
            (None, Some(sizes)) if layout::numel(sizes) == Some(self.arena.len(received)) => {
                let empty = self.arena.poison(self.arena.len(received));
                self.fresh_result(payload, empty, sizes, dtype)?
            }
            (None, Some(sizes)) => {
                let text = format!("{} elements received for sizes {sizes:?}", self.arena.len(received));
                return Err(Reason::arguments(text).into());
            }
            (None, None) => {
                let empty = self.arena.poison(1);
                self.fresh_symbolic(empty, dtype)
            }
        };
        if asynchronous {
            let apart = part.input.storage != target.storage;
            let input = apart.then_some((part.input, part.value));
            self.take_off(Flight { launch, target, result: received, input })?;
        } else {
            self.write(target, received)?;
        }
        self.eval.launches[launch].payloads[payload].result = Some(received);
        Ok(self.done(target))
    }

    /// A gather into the buffer that holds its input: the input must be the own rank's slot.
    fn check_slot(&mut self, input: Tensor, target: Tensor, group: GroupId, size: u32) {
        if input.storage != target.storage || self.is_symbolic(input) || self.is_symbolic(target) {
            return;
        }
        let (from, to) = self.bytes(input);
        let (low, high) = self.bytes(target);
        if from >= high || low >= to {
            return;
        }
        let width = i64::from(input.dtype.itemsize());
        let found = (from - low) / width;
        let len = (to - from) / width;
        let name = self.arena.group_name(group).to_string();
        let rank = self.graph.world.group(&name).and_then(|g| g.recorded_rank);
        let contiguous = layout::is_contiguous(self.eval.sizes(input), self.eval.strides(input));
        let expected = rank.and_then(|rank| len.checked_mul(i64::from(rank)));
        let right = match rank {
            Some(_) => expected == Some(found),
            // A graph that does not say which rank it was made on may be that of any.
            None => found >= 0 && found % len.max(1) == 0 && found / len.max(1) < i64::from(size),
        };
        if !right || !contiguous {
            self.hazard(HazardKind::SlotMisplaced { expected, found });
        }
    }

    /// Communication that is not followed: its results are functions of what is known of the launch.
    fn opaque_launch(
        &mut self,
        call: &Call<'_>,
        about: &CollectiveCall<'_>,
        launch: usize,
        key: KeyId,
    ) -> Result<Produced, Reason> {
        let graph = self.graph;
        let asynchronous = is_asynchronous(&call.schema.namespace);
        let outs: Vec<Out> = match graph.node(self.node).out {
            Out::Tuple(span) => graph.outs(span).to_vec(),
            out => vec![out],
        };
        let origin = self.name_symbol(self.node);
        let written: Vec<usize> = call.schema.mutated().collect();
        let mut number = 0u32;
        let mut targets = Vec::new();
        for param in written {
            for node in self.nodes(call, param).unwrap_or_default() {
                targets.push(self.tensor(node)?);
            }
        }
        let mut items = Vec::new();
        let in_place = !targets.is_empty();
        for (index, out) in outs.iter().enumerate() {
            let Out::Tensor(id) = *out else {
                items.push(Produced::Nothing);
                continue;
            };
            if in_place {
                items.extend(targets.get(index).map(|&target| self.done(target)));
                continue;
            }
            let tensor = *graph.tensor(id);
            let sizes = graph.sizes(tensor.shape);
            let count = match &sizes {
                Some(sizes) => layout::numel(sizes).ok_or(Reason::Overflow)?,
                None => 1,
            };
            let source = self.opaque_part(key, &mut number, origin);
            let value = self.arena.all_of(source, count);
            let empty = self.arena.poison(count);
            let target = match &sizes {
                Some(sizes) => self.fresh_result(index, empty, sizes, tensor.dtype)?,
                None => self.fresh_symbolic(empty, tensor.dtype),
            };
            self.opaque_arrival(launch, index, target, value, asynchronous)?;
            items.push(self.done(target));
        }
        for (index, &target) in targets.iter().enumerate() {
            let source = self.opaque_part(key, &mut number, origin);
            let count = if self.is_symbolic(target) {
                1
            } else {
                layout::numel(self.eval.sizes(target)).ok_or(Reason::Overflow)?
            };
            let value = self.arena.all_of(source, count);
            self.opaque_arrival(launch, index, target, value, asynchronous)?;
            if let Some(Produced::Tensor(_, content)) = items.get_mut(index) {
                *content = self.content(target);
            }
        }
        match items[..] {
            [one] if !about.coalesced => Ok(one),
            _ => Ok(self.list(&items)),
        }
    }

    fn opaque_part(&mut self, key: KeyId, number: &mut u32, origin: Symbol) -> super::source::SourceId {
        let output = *number;
        *number += 1;
        self.arena.source_of(Source::Opaque { key, output }, Some(origin), Traits::default())
    }

    fn opaque_arrival(
        &mut self,
        launch: usize,
        payload: usize,
        target: Tensor,
        value: ValueId,
        asynchronous: bool,
    ) -> Result<(), Reason> {
        if let Some(payload) = self.eval.launches[launch].payloads.get_mut(payload) {
            payload.result = Some(value);
        }
        if asynchronous {
            self.take_off(Flight { launch, target, result: value, input: None })
        } else {
            self.write(target, value)
        }
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

/// Whether the collectives of a namespace only start, and need a wait.
fn is_asynchronous(namespace: &str) -> bool {
    matches!(namespace, "_c10d_functional" | "c10d_functional" | "_c10d_functional_autograd")
}
