//! Layers as models have them: sharded parameters gathered, used and their gradients scattered; tensor-parallel
//! products summed over ranks; random bodies repeated.
//!
//! Used by the generator for a few small layers, and by [`layers`](super::layers) for many large ones.

use super::builder::{Builder, Origin, Prefix};
use super::keys::{GroupOf, Key};
use super::pool::Var;
use super::source::Source;
use super::target::Target;
use super::types::Type;
use crate::graph::{Dtype, Value};
use crate::ops::Collective;

/// Module paths of annotated layers; further layers share the last one.
const MODULES: [&str; 4] = ["layers.0", "layers.1", "layers.2", "layers.3"];

/// A layer whose weight is sharded over a group, its rows shared out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sharded {
    pub group: GroupOf,
    /// Of products and messages.
    pub dtype: Dtype,
    /// Of parameters and reduced gradients.
    pub master: Dtype,
    /// Of the weight, gathered: a multiple of the group's size, and the columns of the activation.
    pub shape: [i64; 2],
}

/// What the backward pass of a layer needs of its forward pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Saved {
    pub input: Var,
    pub parameter: Var,
}

impl<S: Source> Builder<'_, S> {
    /// Says that further nodes belong to layer `index`, if this case is annotated.
    pub fn enter_layer(&mut self, index: usize) {
        if self.origin.stack.is_some() {
            let module = self.graph.intern(MODULES[index.min(MODULES.len() - 1)]);
            self.origin = Origin { module: Some(module), ..self.origin };
        }
    }

    /// A few identical layers.
    pub fn step_layers(&mut self) {
        let layers = self.source.between(2, 3) as usize;
        let key = self.keys.key(self.source, self.config, Collective::AllGather);
        let width = key.group.size.max(2);
        let fits = width * width <= self.limit();
        match self.source.below(3) {
            0 if fits => self.sharded_layers(&key, width, layers),
            1 if fits => self.parallel_layers(&key, layers),
            _ => self.repeated_layers(layers),
        }
    }

    /// FSDP: forward over all layers, then backward; gathers may be started one layer ahead.
    fn sharded_layers(&mut self, key: &Key, width: i64, layers: usize) {
        let dtype = self.keys.float(self.source, self.config);
        let master = if self.source.percent(40) { Dtype::F32 } else { dtype };
        let (batch, shape) = (2, [width, width]);
        let spec = Sharded { group: key.group, dtype, master, shape };
        let (ahead, backward, again) =
            (self.source.percent(50), self.source.percent(70), self.source.percent(50));
        let mut activation = self.input(Type::new(dtype, &[batch, width]));
        let mut saved = Vec::with_capacity(layers);
        let parameters: Vec<Var> = (0..layers).map(|_| self.input(spec.shard())).collect();
        if ahead {
            self.gather_weight(&spec, parameters[0]);
        }
        for (i, &parameter) in parameters.iter().enumerate() {
            self.enter_layer(i);
            match parameters.get(i + 1) {
                Some(&next) if ahead => self.gather_weight(&spec, next),
                _ if !ahead => self.gather_weight(&spec, parameter),
                _ => {}
            }
            // With one gather ahead, the layer's own is the last but one in flight.
            let back = if ahead && i + 1 < layers { 2 } else { 1 };
            let weight = self.land(self.flights.len() - back);
            saved.push(Saved { input: activation, parameter });
            activation = self.forward(activation, weight);
        }
        if !backward {
            return;
        }
        let mut gradient = self.input(Type::new(dtype, &[batch, width]));
        for (i, saved) in saved.into_iter().enumerate().rev() {
            self.enter_layer(i);
            gradient = self.backward(&spec, saved, gradient, again);
            if !self.source.percent(self.config.late_wait) {
                self.land(self.flights.len() - 1);
            }
        }
    }

    /// Starts the gather of a layer's weight from its shard.
    pub fn gather_weight(&mut self, spec: &Sharded, parameter: Var) {
        let shard = if spec.master == spec.dtype { parameter } else { self.cast(parameter, spec.dtype) };
        let key = self.keys.sum(spec.group, spec.dtype);
        self.start(Collective::AllGather, &key, shard);
    }

    /// relu(activation @ weight^T).
    pub fn forward(&mut self, activation: Var, weight: Var) -> Var {
        let ty = self.pool.ty(weight).permuted(&[1, 0]);
        let value = self.take(weight);
        let turned = self.alias(Prefix::View, Target::T, &[value], &[], ty, weight);
        let product = self.product(activation, turned);
        let ty = self.pool.ty(product);
        let value = self.take(product);
        self.fresh(Prefix::Temporary, Target::Relu, &[value], &[], ty)
    }

    /// The gradient of a layer's input; starts the reduce-scatter of its weight's gradient. With `gather` the weight
    /// is gathered again.
    pub fn backward(&mut self, spec: &Sharded, saved: Saved, gradient: Var, gather: bool) -> Var {
        let ty = self.pool.ty(gradient).permuted(&[1, 0]);
        let value = self.take(gradient);
        let turned = self.alias(Prefix::View, Target::T, &[value], &[], ty, gradient);
        let mut of_weight = self.product(turned, saved.input);
        let next = if gather {
            self.gather_weight(spec, saved.parameter);
            let weight = self.land(self.flights.len() - 1);
            self.product(gradient, weight)
        } else {
            gradient
        };
        if spec.master != spec.dtype {
            of_weight = self.cast(of_weight, spec.master);
        }
        let key = self.keys.sum(spec.group, spec.master);
        self.start(Collective::ReduceScatter, &key, of_weight);
        next
    }

    /// Tensor parallel: each rank multiplies by its part of the weights, and the parts are summed.
    fn parallel_layers(&mut self, key: &Key, layers: usize) {
        let dtype = self.keys.float(self.source, self.config);
        let key = self.keys.sum(key.group, dtype);
        let mut activation = self.input(Type::new(dtype, &[2, 2]));
        for i in 0..layers {
            self.enter_layer(i);
            activation = self.parallel_layer(&key, activation, [2, 2]);
        }
    }

    /// relu(all_reduce(activation @ a)) with a weight of this shape.
    pub fn parallel_layer(&mut self, key: &Key, activation: Var, shape: [i64; 2]) -> Var {
        let weight = self.input(Type::new(key.dtype, &shape));
        let part = self.product(activation, weight);
        let sum = self.communicate(Collective::AllReduce, key, part);
        let ty = self.pool.ty(sum);
        let value = self.take(sum);
        self.fresh(Prefix::Temporary, Target::Relu, &[value], &[], ty)
    }

    /// One drawn body several times: gather a parameter, add it to what the layer before gave, all-reduce.
    fn repeated_layers(&mut self, layers: usize) {
        let key = self.keys.key(self.source, self.config, Collective::AllGather);
        let key = if super::keys::computes(key.dtype) { key } else { self.keys.sum(key.group, Dtype::F32) };
        let shape = self.shape(1);
        let ty = Type::new(key.dtype, shape.as_slice());
        if ty.rank() == 0 {
            return;
        }
        let (reduces, waits_late, operator) = (
            self.source.percent(50) && key.dtype != Dtype::I16,
            self.source.percent(self.config.late_wait),
            self.source.one_of(&[Target::Add, Target::Maximum, Target::Mul]),
        );
        let mut carried = None;
        for i in 0..layers {
            self.enter_layer(i);
            let parameter = self.input(ty);
            let mut value = self.communicate(Collective::AllGather, &key, parameter);
            if let Some(before) = carried {
                value = self.binary(operator, value, before);
            }
            if reduces {
                let key = self.keys.sum(key.group, key.dtype);
                self.start(Collective::AllReduce, &key, value);
                let number = [self.take(value), Value::Int(2)];
                value = self.fresh(Prefix::Temporary, Target::Mul, &number, &[], self.pool.ty(value));
                if !waits_late {
                    self.land(self.flights.len() - 1);
                }
            }
            carried = Some(value);
        }
    }
}

impl Sharded {
    /// The type of a rank's rows of the weight.
    pub fn shard(&self) -> Type {
        let [rows, columns] = self.shape;
        Type::new(self.master, &[(rows / self.group.size).max(1), columns])
    }
}
