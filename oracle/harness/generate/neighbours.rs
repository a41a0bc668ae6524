//! Communication that is never bucketed: all-to-all, broadcast, coalesced and in-place forms, barriers.
//!
//! All ranks run one graph, so what a node says of sizes and peers holds on every rank: splits of an all-to-all are
//! equal, and there are no messages from rank to rank (a peer that all ranks name is some rank itself).

use super::builder::{Builder, Prefix};
use super::collectives::result;
use super::keys::Key;
use super::pool::Var;
use super::source::Source;
use super::target::Target;
use super::types::Type;
use crate::graph::{Out, Value};
use crate::ops::Collective;

impl<S: Source> Builder<'_, S> {
    pub fn step_neighbour(&mut self) {
        let kind = self.source.weighted(&[3, 2, 3, self.config.in_place]);
        match kind {
            0 => self.all_to_all(),
            1 => self.broadcast(),
            2 => self.coalesced(),
            _ => self.in_place(),
        }
        if kind != 2 && !self.source.percent(self.config.late_wait) {
            self.land(self.flights.len() - 1);
        }
    }

    fn all_to_all(&mut self) {
        let key = self.keys.key(self.source, self.config, Collective::AllGather);
        let group = key.group.size;
        let fits = |ty: &Type| ty.shape().first().is_some_and(|rows| rows % group == 0);
        let found = self.pool.find(self.source, |held| held.ty.dtype == key.dtype && fits(&held.ty));
        let input = match found {
            Some(input) => input,
            None => self.new_input(key.dtype, group),
        };
        let ty = self.pool.ty(input);
        let Some(&rows) = ty.shape().first() else { return self.broadcast() };
        let value = self.take(input);
        let splits = vec![rows / group; group as usize];
        let (output, input_splits) = (self.graph.int_list(&splits), self.graph.int_list(&splits));
        let packed = ty.packed(ty.dtype);
        let out = Out::Tensor(self.tensor(&packed));
        let args = [value, output, input_splits, Value::Str(key.group.name)];
        let node = self.call(Prefix::Communication, Target::AllToAll, &args, &[], out);
        let storage = self.pool.storage();
        let launch = self.launch(&[input], 1);
        self.fly(node, packed, storage, launch, None);
    }

    fn broadcast(&mut self) {
        let key = self.keys.key(self.source, self.config, Collective::AllGather);
        let found = self.pool.find(self.source, |held| held.ty.dtype == key.dtype && held.ty.is_contiguous());
        let input = match found {
            Some(input) => input,
            None => self.new_input(key.dtype, 1),
        };
        let packed = self.pool.ty(input).packed(key.dtype);
        let root = self.source.below(key.group.size as u32);
        let args = [self.take(input), Value::Int(root.into()), Value::Str(key.group.name)];
        let out = Out::Tensor(self.tensor(&packed));
        let node = self.call(Prefix::Communication, Target::Broadcast, &args, &[], out);
        let storage = self.pool.storage();
        let launch = self.launch(&[input], 1);
        self.fly(node, packed, storage, launch, None);
    }

    /// One launch with several values, each with a wait of its own.
    fn coalesced(&mut self) {
        let kind =
            self.source.one_of(&[Collective::AllGather, Collective::ReduceScatter, Collective::AllReduce]);
        let key = self.keys.key(self.source, self.config, kind);
        let count = self.source.between(2, 3) as usize;
        let mut inputs = [Var(0); 3];
        for input in &mut inputs[..count] {
            let mut var = self.payload(kind, &key);
            if !self.pool.ty(var).is_contiguous() {
                // Rows to scatter there must be, even on a group of one.
                let multiple = if kind == Collective::ReduceScatter { key.group.size.max(2) } else { 1 };
                var = self.new_input(key.dtype, multiple);
            }
            *input = var;
        }
        let inputs = &inputs[..count];
        let list = self.take_list(inputs);
        let (size, group) = (Value::Int(key.group.size), Value::Str(key.group.name));
        let (target, args): (_, &[Value]) = match kind {
            Collective::AllGather => (Target::AllGatherCoalesced, &[list, size, group]),
            Collective::ReduceScatter => (Target::ReduceScatterCoalesced, &[list, key.reduce, size, group]),
            _ => (Target::AllReduceCoalesced, &[list, key.reduce, group]),
        };
        let mut outs = [Out::None; 3];
        let mut types = [Type::new(key.dtype, &[]); 3];
        for (i, &input) in inputs.iter().enumerate() {
            types[i] = result(kind, &key, &self.pool.ty(input));
            outs[i] = Out::Tensor(self.tensor(&types[i]));
        }
        let outs = self.graph.push_outs(&outs[..count]);
        let node = self.call(Prefix::Communication, target, args, &[], Out::Tuple(outs));
        let launch = self.launch(inputs, count as u32);
        for (i, ty) in types[..count].iter().enumerate() {
            let out = Out::Tensor(self.tensor(ty));
            let args = [Value::Node(node), Value::Int(i as i64)];
            let item = self.call(Prefix::View, Target::GetItem, &args, &[], out);
            let storage = self.pool.storage();
            self.fly(item, *ty, storage, launch, None);
        }
        if !self.source.percent(self.config.late_wait) {
            for _ in 0..count {
                self.land(self.flights.len() - 1);
            }
        }
    }

    /// An all-reduce that writes its result into its input, whose other aliases show it after the wait.
    fn in_place(&mut self) {
        let key: Key = self.keys.key(self.source, self.config, Collective::AllReduce);
        let found = self
            .pool
            .find_writable(self.source, |held| held.ty.dtype == key.dtype && held.ty.is_contiguous());
        let input = match found {
            Some(input) => input,
            None => self.new_input(key.dtype, 1),
        };
        let ty = self.pool.ty(input);
        let args = [self.take(input), key.reduce, Value::Str(key.group.name)];
        let out = Out::Tensor(self.tensor(&ty));
        let node = self.call(Prefix::Communication, Target::AllReduceInPlace, &args, &[], out);
        let storage = self.pool.get(input).storage;
        let launch = self.launch(&[input], 1);
        self.fly(node, ty, storage, launch, None);
    }

    /// A barrier.
    pub fn step_barrier(&mut self) {
        let key = self.keys.key(self.source, self.config, Collective::AllReduce);
        let token = self.new_buffer(Target::Zeros, &Type::new(crate::graph::Dtype::I32, &[1]));
        self.pool.get_mut(token).output = (false, false);
        let devices = self.graph.int_list(&[0]);
        let args = [self.take(token), Value::Str(key.group.name), devices];
        self.call(Prefix::Communication, Target::Barrier, &args, &[], Out::Absent);
    }
}
