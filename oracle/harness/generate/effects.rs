//! Writes, random draws, assertions: what orders nodes beyond their data edges.

use super::builder::{Builder, Prefix, is_input};
use super::keys::computes;
use super::pool::Var;
use super::source::Source;
use super::target::Target;
use super::types::Type;
use crate::graph::{Dtype, DtypeClass, NodeId, Out, Value};
use crate::ops::Collective;

impl<S: Source> Builder<'_, S> {
    /// An in-place operator.
    pub fn step_write(&mut self) -> bool {
        let found = self.pool.find_writable(self.source, |held| computes(held.ty.dtype));
        let var = match found {
            Some(var) => var,
            None => {
                let dtype = self.keys.arithmetic(self.source, self.config);
                self.new_input(dtype, 1)
            }
        };
        let var = if self.source.percent(30) { self.view_of(var) } else { var };
        if !self.pool.is_writable(var) {
            return false;
        }
        let ty = self.pool.ty(var);
        match self.source.below(6) {
            0 | 1 => match self.apart(var) {
                Some(other) => {
                    let target = self.source.one_of(&[Target::AddInPlace, Target::MulInPlace, Target::Copy]);
                    let args = [self.take(var), self.take(other)];
                    self.alias(Prefix::Mutation, target, &args, &[], ty, var);
                }
                None => {
                    let args = [self.take(var), Value::Int(1)];
                    self.alias(Prefix::Mutation, Target::AddInPlace, &args, &[], ty, var);
                }
            },
            2 => {
                let args = [self.take(var), Value::Int(2)];
                self.alias(Prefix::Mutation, Target::MulInPlace, &args, &[], ty, var);
            }
            3 => {
                let args = [self.take(var), Value::Int(3)];
                self.alias(Prefix::Mutation, Target::FillInPlace, &args, &[], ty, var);
            }
            4 => {
                let target = self.source.one_of(&[Target::ZeroInPlace, Target::ReluInPlace]);
                let args = [self.take(var)];
                self.alias(Prefix::Mutation, target, &args, &[], ty, var);
            }
            _ => {
                let args = [self.take(var)];
                self.alias(Prefix::Mutation, Target::NegInPlace, &args, &[], ty, var);
            }
        }
        true
    }

    /// A value like `var` in another storage.
    fn apart(&mut self, var: Var) -> Option<Var> {
        let held = *self.pool.get(var);
        self.pool.find(self.source, |other| {
            other.storage != held.storage
                && other.ty.dtype == held.ty.dtype
                && other.ty.shape() == held.ty.shape()
        })
    }

    /// Writes a value into a buffer through an alias, then starts a collective on the buffer: no data edge leads
    /// from one to the other.
    pub fn step_through_memory(&mut self) {
        let kind = Collective::AllGather;
        let key = self.keys.key(self.source, self.config, kind);
        let most = self.limit() / key.group.size;
        let fits = |held: &super::pool::Held| {
            held.ty.dtype == key.dtype && held.ty.rank() > 0 && held.ty.numel() <= most
        };
        let waited = self.pool.find(self.source, |held| held.waited && fits(held));
        let value = match waited {
            Some(value) => value,
            None => {
                let input = self.payload(kind, &key);
                let value = self.communicate(kind, &key, input);
                if !fits(self.pool.get(value)) {
                    return;
                }
                value
            }
        };
        let ty = self.pool.ty(value).packed(key.dtype);
        if self.source.percent(35) && ty.shape()[0] >= 1 {
            self.through_pieces(value, &ty, key.dtype);
        } else {
            let buffer = if self.source.percent(30) { self.input(ty) } else { self.filled(&ty) };
            let alias = if self.source.percent(70) { self.whole_view(buffer) } else { buffer };
            let alias_type = self.pool.ty(alias);
            let args = [self.take(alias), self.take(value)];
            self.alias(Prefix::Mutation, Target::Copy, &args, &[], alias_type, alias);
            self.start(kind, &key, buffer);
            return;
        }
        let Some(buffer) = self.pool.vars().next_back() else { return };
        self.start(kind, &key, buffer);
    }

    /// Fills a buffer of two pieces with `_foreach_copy_`; a view of the whole buffer is the last value made.
    fn through_pieces(&mut self, value: Var, ty: &Type, dtype: Dtype) {
        let rows = ty.shape()[0];
        let whole = ty.resized(0, 2 * rows);
        let buffer = self.new_buffer(Target::Empty, &whole);
        let pieces = self.split_with_sizes(buffer, &[rows, rows], 0);
        let (first, second) = (self.item(&pieces, 0), self.item(&pieces, 1));
        let other = self.input(Type::new(dtype, ty.shape()));
        let into = self.take_list(&[first, second]);
        let from = self.take_list(&[value, other]);
        self.call(Prefix::Mutation, Target::ForeachCopy, &[into, from], &[], Out::None);
        let storage = self.pool.get(buffer).storage;
        self.pool.set_fresh(storage, false);
        let taken = self.take(buffer);
        self.alias(Prefix::View, Target::Alias, &[taken], &[], whole, buffer);
    }

    /// A view of all of a contiguous tensor, in its own shape.
    fn whole_view(&mut self, var: Var) -> Var {
        let ty = self.pool.ty(var);
        let value = self.take(var);
        let target = self.source.one_of(&[Target::Alias, Target::Detach]);
        self.alias(Prefix::View, target, &[value], &[], ty, var)
    }

    /// A random operator.
    pub fn step_random(&mut self) {
        let float =
            |held: &super::pool::Held| held.ty.dtype.class() == DtypeClass::Float && computes(held.ty.dtype);
        let var = match self.pool.find(self.source, float) {
            Some(var) => var,
            None => {
                let dtype = self.keys.float(self.source, self.config);
                self.new_input(dtype, 1)
            }
        };
        let ty = self.pool.ty(var);
        match self.source.below(4) {
            0 => {
                let pieces = self.dropout(var);
                self.item(&pieces, 0);
                if self.source.percent(30) {
                    self.item(&pieces, 1);
                }
            }
            1 => {
                let value = self.take(var);
                self.fresh(Prefix::Temporary, Target::RandLike, &[value], &[], ty.elementwise(&[], ty.dtype));
            }
            2 if self.config.in_place > 0 && self.pool.is_writable(var) => {
                let args = [self.take(var), Value::Float(0.5)];
                self.alias(Prefix::Mutation, Target::BernoulliInPlace, &args, &[], ty, var);
            }
            _ => {
                let args = [self.take(var), Value::Float(0.5)];
                self.fresh(Prefix::Temporary, Target::Bernoulli, &args, &[], ty.packed(ty.dtype));
            }
        }
    }

    /// An assertion that always holds, on a number out of a tensor.
    pub fn step_assertion(&mut self) {
        let whole = |held: &super::pool::Held| {
            held.ty.dtype.class() == DtypeClass::Int && computes(held.ty.dtype) && held.ty.is_contiguous()
        };
        let var = match self.pool.find(self.source, whole) {
            Some(var) => var,
            None => self.input(Type::new(Dtype::I64, &[2])),
        };
        let scalar = Type::new(Dtype::I64, &[]);
        let value = self.take(var);
        let sum = self.fresh(Prefix::Temporary, Target::SumAll, &[value], &[], scalar);
        // Three bits of a number are never negative.
        let args = [self.take(sum), Value::Int(7)];
        let bits = self.fresh(Prefix::Temporary, Target::BitwiseAnd, &args, &[], scalar);
        let args = [self.take(bits)];
        let symbol = self.symbol();
        let number = self.graph.intern_expr(symbol);
        let item = self.call(Prefix::Temporary, Target::Item, &args, &[], Out::SymInt(number));
        let text = format!("{} >= 0", self.graph.text(symbol.text));
        let text = self.graph.intern(&text);
        let claim = self.graph.intern_expr(crate::graph::Expr { text, hint: None });
        let args = [Value::Node(item), Value::Int(0)];
        let claim = self.call(Prefix::Temporary, Target::SymGe, &args, &[], Out::SymBool(claim));
        let message = Value::Str(self.graph.intern("a masked sum is not negative"));
        self.call(Prefix::Mutation, Target::AssertScalar, &[Value::Node(claim), message], &[], Out::None);
    }

    /// Overwrites some inputs at the end of the graph.
    pub fn epilogue(&mut self) {
        let inputs: Vec<Var> =
            self.pool.vars().filter(|&var| self.pool.is_input(self.pool.get(var).storage)).collect();
        for &var in inputs.iter().take(2) {
            let held = *self.pool.get(var);
            if !self.pool.is_writable(var) || !is_input(held.node) {
                continue;
            }
            let from = self.pool.find(&mut self.late, |other| {
                other.storage != held.storage && other.ty.shape() == held.ty.shape()
            });
            let Some(from) = from else { continue };
            let args = [self.take(var), self.take(from)];
            self.alias(Prefix::Mutation, Target::Copy, &args, &[], held.ty, var);
        }
    }

    /// An ordering edge from some earlier node to the latest one.
    pub fn add_ordering(&mut self) {
        let reach = self.source.between(1, 10) as usize;
        let (Some(latest), Some(earlier)) = (self.recent(0), self.recent(reach)) else { return };
        self.order(earlier, latest);
    }

    /// An ordering edge from the latest wait to the latest node.
    pub fn order_after_wait(&mut self) {
        let Some(latest) = self.recent(0) else { return };
        let wait: Option<NodeId> = self.landed.last().map(|&(_, wait)| self.pool.get(wait).node);
        if let Some(wait) = wait.filter(|&wait| wait != latest) {
            self.order(wait, latest);
        }
    }
}
