//! Creation of tensors, and random draws.

use super::super::block::{Block, whole};
use super::super::domain::{Draw, Operand, Outcome, Pointwise, Rounding, raise, refuse};
use super::super::hash::{mix, words};
use super::super::layout::{self, Dims, Window};
use super::super::number::Number;
use super::super::program::Step;
use super::super::rank::{Item, Rank, computed};
use crate::analysis::draws::order_of_filling;
use crate::graph::{Dtype, DtypeClass, NodeId, Value};
use crate::ops::{Binary, Fill, Random};

impl Rank<'_> {
    /// The key of what a node draws on this rank.
    pub(super) fn draw(&self, node: NodeId) -> u64 {
        let draws = &self.program.draws;
        // What draws nothing needs no key of its own.
        let Some(draw) = draws.of(node) else { return 0 };
        let generator = draws.generator(draw).bytes().fold(0x7261, |key, byte| mix(key, u64::from(byte)));
        let key = mix(mix(generator, u64::from(self.rank)), u64::from(draw.position));
        let order = order_of_filling(self.program.graph, node);
        order.map_or(key, |order| words(key, order.into_iter().map(|dim| dim as u64)))
    }

    /// Shape, strides and dtype of a new tensor: those of a tensor argument where no others are given.
    fn new_layout(
        &self,
        like: Option<Window>,
        size: Value,
        stride: Value,
        format: Value,
    ) -> Outcome<(Dims, Option<Dims>)> {
        if size == Value::None {
            let like = like.ok_or_else(|| raise!("needs a size"));
            // A number alone makes a tensor without dimensions.
            return match like {
                Ok(window) => Ok((window.shape, Some(self.preserved_strides(&window, format)))),
                Err(_) => Ok((Dims::default(), None)),
            };
        }
        let shape = self.dims(size)?;
        let strides = match stride {
            Value::None => None,
            _ => Some(self.dims(stride)?).filter(|s| s.len() == shape.len()),
        };
        Ok((shape, strides))
    }

    pub(super) fn fill(&mut self, node: NodeId, step: &Step, fill: Fill) -> Outcome<Item> {
        let [like, size, stride, value, dtype, format, ..] = step.args;
        let like = self.maybe_tensor(like)?;
        let (shape, mut strides) = self.new_layout(like, size, stride, format)?;
        if step.info.and_then(|info| info.schema.as_ref()?.param("physical_layout")).is_some() {
            strides = strides.and_then(|order| layout::in_order(shape, &order));
        }
        let count = self.room(&shape)?;
        let filler = match fill {
            Fill::Full => self.maybe_tensor(value)?,
            _ => None,
        };
        let number = match (fill, filler) {
            (Fill::Ones, _) => Number::Int(1),
            (Fill::Full, None) => self.number(value)?,
            _ => Number::Int(0),
        };
        // `full` takes its dtype from the number, `scalar_tensor` and the others the default one.
        let natural = match like {
            Some(window) => window.dtype,
            None if fill == Fill::Full && size != Value::None => number.dtype(),
            None => Dtype::F32,
        };
        let dtype = self.dtype(dtype).unwrap_or(natural);
        let block = match (fill, filler) {
            (Fill::Empty, _) => {
                let window = self.empty(shape, strides, dtype)?;
                return Ok(Item::Tensor(window));
            }
            (_, Some(window)) => self.moved_to(&window, shape, dtype)?,
            // `scalar_tensor` alone lets a float overflow.
            _ if size == Value::None && like.is_none() && dtype.class() >= DtypeClass::Float => {
                self.repeated(number, dtype, count)
            }
            _ => self.filled(number, dtype, count)?,
        };
        self.deliver(node, step, shape, strides, dtype, block)
    }

    /// Memory without value. Strides may leave gaps, so the storage is as large as they reach.
    pub(super) fn empty(&mut self, shape: Dims, strides: Option<Dims>, dtype: Dtype) -> Outcome<Window> {
        let strides = strides.unwrap_or_else(|| layout::contiguous(shape));
        let mut window = Window {
            storage: super::super::layout::StorageRef(0),
            dtype,
            conj: false,
            offset: 0,
            shape,
            strides,
        };
        let (_, end) = window.extent().ok_or_else(|| raise!("strides {strides:?} for shape {shape:?}"))?;
        let per = dtype.itemsize() as usize / usize::from(whole(dtype));
        let cells = usize::try_from(end).ok().and_then(|end| end.checked_mul(per)).unwrap_or(usize::MAX);
        let cells = self.memory.room(cells)?;
        window.storage = self.memory.allocate(Block::poison(cells, whole(dtype)));
        Ok(window)
    }

    /// Another number of bytes for a storage: those past it hold nothing any more.
    pub(super) fn resize(&mut self, step: &Step) -> Outcome<Item> {
        let [tensor, bytes, ..] = step.args;
        let (tensor, bytes) = (self.tensor(tensor)?, self.int(bytes)?);
        self.memory.set_room(tensor.storage, None);
        let kept = bytes.max(0) / i64::from(tensor.dtype.itemsize().max(1));
        let gone = self.memory.capacity(tensor.storage, tensor.dtype) - kept;
        if gone > 0 {
            let shape = Dims::new(&[gone]).unwrap_or_default();
            let strides = layout::contiguous(shape);
            let rest = Window { conj: false, offset: kept, shape, strides, ..tensor };
            let per = tensor.dtype.itemsize() as usize / usize::from(whole(tensor.dtype));
            let cells = self.room(&rest.shape)? * per;
            self.memory.write(self.domain, &rest, Block::poison(cells, whole(tensor.dtype)))?;
        }
        self.memory.set_room(tensor.storage, Some(bytes.max(0) as u64));
        Ok(Item::None)
    }

    pub(super) fn arange(&mut self, node: NodeId, step: &Step) -> Outcome<Item> {
        let [start, end, by, dtype, ..] = step.args;
        let or = |value: Value, n: i64| match value {
            Value::None => Ok(Number::Int(n)),
            value => self.number(value),
        };
        let (start, end, by) = (or(start, 0)?, self.number(end)?, or(by, 1)?);
        if [start, end, by].iter().any(|n| matches!(n, Number::Term(_))) {
            return Err(refuse!("the length of arange depends on data"));
        }
        let ints = start.int().zip(end.int()).zip(by.int());
        let dtype = self.dtype(dtype).unwrap_or(if ints.is_some() { Dtype::I64 } else { Dtype::F32 });
        if dtype.class() == DtypeClass::Complex {
            return Err(raise!("arange of {}", dtype.name()));
        }
        let length = match ints {
            _ if by.float() == 0.0 => return Err(raise!("arange by 0")),
            _ if (end.float() - start.float()) * by.float() < 0.0 => {
                return Err(raise!("arange from {start:?} to {end:?} by {by:?}"));
            }
            Some(((start, end), by)) => {
                let (span, by) = (i128::from(end) - i128::from(start), i128::from(by));
                let whole = span / by + i128::from(span % by != 0 && (span < 0) == (by < 0));
                i64::try_from(whole.max(0)).unwrap_or(i64::MAX)
            }
            None => ((end.float() - start.float()) / by.float()).ceil().max(0.0) as i64,
        };
        let shape = Dims::default().with_pushed(length).unwrap_or_default();
        let count = self.room(&shape)?;
        let element = |i: usize| match ints {
            Some(((start, _), by)) => Number::Int(start.wrapping_add(by.wrapping_mul(i as i64))),
            None => Number::Float(start.float() + by.float() * i as f64),
        };
        let cells = (0..count).map(|i| self.domain.constant(element(i), dtype)).collect();
        self.deliver(node, step, shape, None, dtype, Block::of_elements(cells, Vec::new(), dtype))
    }

    pub(super) fn random(&mut self, node: NodeId, step: &Step, random: Random) -> Outcome<Item> {
        let [like, size, p, dtype, _, format, ..] = step.args;
        if random == Random::NativeDropout {
            return self.dropout(node, step);
        }
        let like = self.maybe_tensor(like)?;
        let (shape, mut strides) = self.new_layout(like, size, Value::None, format)?;
        if random == Random::Bernoulli {
            // Contiguous whatever the input's strides, unlike `rand_like`.
            strides = None;
        }
        let count = self.room(&shape)?;
        let natural = like.map_or(Dtype::F32, |window| window.dtype);
        let dtype = self.dtype(dtype).unwrap_or(natural);
        let key = self.draw(node);
        let block = match random {
            Random::Rand => self.drawn(Draw::Uniform, key, dtype, count)?,
            Random::Randn => self.drawn(Draw::Normal, key, dtype, count)?,
            _ => {
                // Without `p` the probabilities are the tensor itself.
                let probabilities = match (p, like) {
                    (Value::None, Some(window)) => Some(window),
                    _ => self.maybe_tensor(p)?,
                };
                match probabilities {
                    None => self.drawn(Draw::Bernoulli(self.number(p)?.float()), key, dtype, count)?,
                    Some(window) => {
                        let uniform = self.domain.draw(Draw::Uniform, key, window.dtype, count)?;
                        let ready =
                            self.ready(super::pointwise::Given::Tensor(window), shape, window.dtype)?;
                        let below = Pointwise::Binary(Binary::Lt, Number::Int(1), Rounding::True);
                        let operands = [Operand::Cells(&uniform), ready.operand()];
                        let hit = self.domain.pointwise(below, window.dtype, &operands, count)?;
                        computed(dtype)?;
                        let cells = self.domain.cast(&hit, Dtype::Bool, dtype)?;
                        Block::of_elements(cells, ready.poison().to_vec(), dtype)
                    }
                }
            }
        };
        self.deliver(node, step, shape, strides, dtype, block)
    }

    fn drawn(&self, draw: Draw, key: u64, dtype: Dtype, count: usize) -> Outcome<Block> {
        computed(dtype)?;
        Ok(Block::of_elements(self.domain.draw(draw, key, dtype, count)?, Vec::new(), dtype))
    }

    /// `native_dropout`: (input * mask / (1 - p), mask). Outside training nothing is drawn.
    fn dropout(&mut self, node: NodeId, step: &Step) -> Outcome<Item> {
        let [input, _, p, _, train, ..] = step.args;
        let x = self.tensor(input)?;
        let p = self.number(p)?.float();
        let train = train == Value::None || self.flag(train)?;
        let count = self.room(&x.shape)?;
        let mask = if train {
            // A GPU draws vectors of elements, whose number depends on the dtype that the mask is laid over.
            let key = mix(self.draw(node), x.dtype as u64);
            self.domain.draw(Draw::Bernoulli(1.0 - p), key, Dtype::Bool, count)?
        } else {
            vec![self.domain.constant(Number::Bool(true), Dtype::Bool); count]
        };
        let strides = self.preserved_strides(&x, Value::None);
        let block = if train {
            let domain = self.domain;
            let scale = if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
            let elements = self.elements(&x)?;
            let as_x = domain.cast(&mask, Dtype::Bool, x.dtype)?;
            let mul = Pointwise::Binary(Binary::Mul, Number::Int(1), Rounding::True);
            let operands = [Operand::Cells(&elements.cells), Operand::Cells(&as_x)];
            let kept = domain.pointwise(mul, x.dtype, &operands, count)?;
            let operands = [Operand::Cells(&kept), Operand::Number(Number::Float(scale))];
            let cells = domain.pointwise(mul, x.dtype, &operands, count)?;
            Block::of_elements(cells, elements.poison, x.dtype)
        } else {
            self.moved(&x, x.dtype)?
        };
        let y = self.memory.fresh(x.shape, strides, x.dtype, block);
        let mask = Block::of_elements(mask, Vec::new(), Dtype::Bool);
        let mask = self.fresh(node, 1, x.shape, Dtype::Bool, mask);
        Ok(Item::List(vec![Item::Tensor(y), Item::Tensor(mask)]))
    }
}
