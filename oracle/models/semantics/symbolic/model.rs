//! The test of all: random programs on four ranks, element by element on every rank, against their runs.
//!
//! The model knows nothing of runs. It keeps each rank's storages as lists of terms and executes the same nodes on
//! them. An evaluation is right if every element of every value, *instantiated* for every rank by the formulas of
//! [`source`](super::source), is the model's term; and a verdict is right if it is the model's.

use super::arena::Arena;
use super::key::{Tag, payload, tag, target, tokens};
use super::layout;
use super::place::PlaceId;
use super::run::pieces;
use super::same::Judge;
use super::source::{Source, SourceId, ValueId};
use super::{Limits, OutputValue, evaluate};
use crate::graph::layout::view_strides;
use crate::graph::{Dtype, Graph, Group, NodeId, Op, Out, Span, Value, World, contiguous_strides};
use crate::ops::{Ops, by_short_name, by_target};
use indexmap::IndexSet;
use proptest::prelude::*;

/// How an element came to be.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Term {
    Poison,
    Input {
        position: u32,
        rank: u32,
        offset: i64,
    },
    Number(i64),
    Cast {
        of: usize,
        to: Dtype,
    },
    Reduced {
        op: String,
        of: Vec<usize>,
    },
    /// A call on tensors, each with its dtype.
    Call {
        target: String,
        of: Vec<(u32, Vec<usize>)>,
        offset: i64,
    },
}

#[derive(Default)]
struct Terms(IndexSet<Term>);

impl Terms {
    fn id(&mut self, mut term: Term) -> usize {
        // Operands of a sum may be exchanged, and the evaluator writes a sum as it was written before.
        if let Term::Call { target, of, .. } = &mut term
            && target == "aten.add.Tensor"
        {
            of.sort();
        }
        self.0.insert_full(term).0
    }

    fn cast(&mut self, of: usize, to: Dtype) -> usize {
        match &self.0[of] {
            Term::Poison => of,
            // The only types here are f32 and bf16: narrowing what was widened gives it back.
            &Term::Cast { of: inner, to: Dtype::F32 } => inner,
            _ => self.id(Term::Cast { of, to }),
        }
    }

    fn reduced(&mut self, op: &str, of: Vec<usize>) -> usize {
        match of.iter().find(|&&t| self.0[t] == Term::Poison) {
            Some(&poison) => poison,
            None => self.id(Term::Reduced { op: op.to_string(), of }),
        }
    }
}

const RANKS: u32 = 4;

/// Two axes, the whole, and a group that crosses the axes.
fn world() -> World {
    let group = |name: &str, instances: &[&[u32]]| Group {
        name: name.into(),
        size: instances[0].len() as u32,
        recorded_rank: None,
        instances: instances.iter().map(|i| i.to_vec()).collect(),
    };
    World {
        ranks: Some(RANKS),
        groups: vec![
            group("dp", &[&[0, 2], &[1, 3]]),
            group("tp", &[&[0, 1], &[2, 3]]),
            group("all", &[&[0, 1, 2, 3]]),
            group("odd", &[&[0, 3], &[2, 1]]),
        ],
    }
}

/// A tensor of the model: the same window on every rank.
#[derive(Clone, Debug)]
struct Seen {
    node: NodeId,
    storage: usize,
    offset: i64,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    dtype: Dtype,
}

struct Model {
    graph: Graph,
    terms: Terms,
    /// By storage, then by rank.
    storages: Vec<Vec<Vec<usize>>>,
    tensors: Vec<Seen>,
}

impl Model {
    fn new() -> Model {
        let mut graph = Graph::new("model");
        graph.world = world();
        Model { graph, terms: Terms::default(), storages: Vec::new(), tensors: Vec::new() }
    }

    fn read(&self, seen: &Seen, rank: u32) -> Vec<usize> {
        let dims: Vec<(i64, i64)> = seen.sizes.iter().copied().zip(seen.strides.iter().copied()).collect();
        let count: i64 = seen.sizes.iter().product();
        (0..count)
            .map(|t| {
                let at = seen.offset + layout::position(&dims, t);
                self.storages[seen.storage][rank as usize][at as usize]
            })
            .collect()
    }

    fn out(&mut self, sizes: &[i64], strides: &[i64], dtype: Dtype) -> Out {
        let device = self.graph.intern("cuda:0");
        let out = self.graph.contiguous(sizes, dtype, device);
        if let Out::Tensor(id) = out {
            let strides = self.graph.intern_sizes(strides);
            self.graph.tensor_mut(id).stride = strides;
        }
        out
    }

    fn node(&mut self, op: Op, target: &str, args: &[Value], out: Out) -> NodeId {
        let name = format!("n{}", self.graph.len());
        let id = self.graph.push(&name, op, target);
        let args = self.graph.push_values(args);
        let node = self.graph.node_mut(id);
        (node.args, node.out) = (args, out);
        id
    }

    fn call(&mut self, short: &str, args: &[Value], out: Out) -> NodeId {
        let target = by_short_name(short).unwrap().target.clone();
        self.node(Op::Call, &target, args, out)
    }

    /// A call whose result is a new tensor with these elements on each rank.
    fn fresh(&mut self, short: &str, args: &[Value], sizes: &[i64], dtype: Dtype, elements: Vec<Vec<usize>>) {
        let strides = contiguous_strides(sizes);
        let out = self.out(sizes, &strides, dtype);
        let node = self.call(short, args, out);
        self.storages.push(elements);
        let storage = self.storages.len() - 1;
        self.tensors.push(Seen { node, storage, offset: 0, sizes: sizes.to_vec(), strides, dtype });
    }

    /// A call whose result is a window on the storage of `of`.
    fn alias(
        &mut self,
        short: &str,
        args: &[Value],
        of: &Seen,
        offset: i64,
        sizes: Vec<i64>,
        strides: Vec<i64>,
    ) {
        let out = self.out(&sizes, &strides, of.dtype);
        let node = self.call(short, args, out);
        self.tensors.push(Seen { node, offset, sizes, strides, ..of.clone() });
    }

    fn input(&mut self, sizes: &[i64], dtype: Dtype) {
        let position = self.tensors.len() as u32;
        let strides = contiguous_strides(sizes);
        let out = self.out(sizes, &strides, dtype);
        let node = self.node(Op::Placeholder, &format!("p{position}"), &[], out);
        let count: i64 = sizes.iter().product();
        let elements = (0..RANKS).map(|rank| {
            (0..count).map(|offset| self.terms.id(Term::Input { position, rank, offset })).collect()
        });
        let elements = elements.collect();
        self.storages.push(elements);
        let storage = self.storages.len() - 1;
        self.tensors.push(Seen { node, storage, offset: 0, sizes: sizes.to_vec(), strides, dtype });
    }

    fn pick(&self, n: u32) -> Seen {
        self.tensors[n as usize % self.tensors.len()].clone()
    }

    /// One step of a random program; does nothing where it does not fit.
    fn step(&mut self, (kind, a, b, c): (u32, u32, u32, u32)) {
        let x = self.pick(a);
        let value = Value::Node(x.node);
        let rank = x.sizes.len();
        let count: i64 = x.sizes.iter().product();
        if count > 64 {
            return;
        }
        let each = |model: &Model, seen: &Seen| -> Vec<Vec<usize>> {
            (0..RANKS).map(|r| model.read(seen, r)).collect()
        };
        let elements = each(self, &x);
        match kind {
            0 if rank > 1 => {
                let order: Vec<i64> = (0..rank as i64).rev().collect();
                let list = self.graph.int_list(&order);
                let reversed = |v: &[i64]| v.iter().rev().copied().collect();
                let (sizes, strides) = (reversed(&x.sizes), reversed(&x.strides));
                self.alias("permute", &[value, list], &x, x.offset, sizes, strides);
            }
            1 if rank > 0 => {
                let dim = b as usize % rank;
                let start = i64::from(c) % (x.sizes[dim] + 1);
                let end = x.sizes[dim].min(start + 1 + i64::from(b % 3));
                let mut sizes = x.sizes.clone();
                sizes[dim] = end - start;
                let args = [value, Value::Int(dim as i64), Value::Int(start), Value::Int(end)];
                let offset = x.offset + start * x.strides[dim];
                self.alias("slice", &args, &x, offset, sizes, x.strides.clone());
            }
            2 => {
                // In two rows where the number is even, else flat.
                let sizes = if count % 2 == 0 && b % 2 == 0 { vec![2, count / 2] } else { vec![count] };
                let list = self.graph.int_list(&sizes);
                match view_strides(&x.sizes, &x.strides, &sizes) {
                    Some(strides) => {
                        self.alias("view", &[value, list], &x, x.offset, sizes, strides.into_vec());
                    }
                    None => self.fresh("reshape", &[value, list], &sizes, x.dtype, elements),
                }
            }
            3 => self.fresh("clone", &[value], &x.sizes, x.dtype, elements),
            4 if rank > 0 => {
                let y = self.pick(b);
                let dim = c as usize % rank;
                let fits = y.sizes.len() == rank
                    && y.dtype == x.dtype
                    && (0..rank).all(|d| d == dim || y.sizes[d] == x.sizes[d])
                    && x.sizes != [0]
                    && y.sizes != [0];
                if !fits {
                    return;
                }
                let others = each(self, &y);
                let mut sizes = x.sizes.clone();
                sizes[dim] += y.sizes[dim];
                let outer: i64 = x.sizes[..dim].iter().product();
                let joined = elements.iter().zip(&others).map(|(one, other)| {
                    let (m, n) = (one.len() / outer.max(1) as usize, other.len() / outer.max(1) as usize);
                    (0..outer as usize)
                        .flat_map(|o| [&one[o * m..(o + 1) * m], &other[o * n..(o + 1) * n]].concat())
                        .collect()
                });
                let joined = joined.collect();
                let list = self.graph.list(&[value, Value::Node(y.node)]);
                self.fresh("cat", &[list, Value::Int(dim as i64)], &sizes, x.dtype, joined);
            }
            5 => {
                let times = 1 + i64::from(b % 3);
                let (mut sizes, mut strides) = (x.sizes.clone(), x.strides.clone());
                sizes.insert(0, 1);
                strides.insert(0, 1);
                self.alias(
                    "unsqueeze",
                    &[value, Value::Int(0)],
                    &x,
                    x.offset,
                    sizes.clone(),
                    strides.clone(),
                );
                let one = self.tensors.last().cloned().unwrap();
                sizes[0] = times;
                if times > 1 {
                    strides[0] = 0;
                }
                let list = self.graph.int_list(&sizes);
                self.alias("expand", &[Value::Node(one.node), list], &one, x.offset, sizes, strides);
            }
            6 => {
                let y = self.pick(b);
                // What lies on itself cannot be written.
                if y.sizes != x.sizes || x.strides.iter().zip(&x.sizes).any(|(&s, &n)| s == 0 && n > 1) {
                    return;
                }
                let others = each(self, &y);
                let dims: Vec<(i64, i64)> = x.sizes.iter().copied().zip(x.strides.iter().copied()).collect();
                for (r, other) in others.iter().enumerate() {
                    for (t, &term) in other.iter().enumerate() {
                        let term = if y.dtype == x.dtype { term } else { self.terms.cast(term, x.dtype) };
                        let at = x.offset + layout::position(&dims, t as i64);
                        self.storages[x.storage][r][at as usize] = term;
                    }
                }
                self.alias(
                    "copy_",
                    &[value, Value::Node(y.node)],
                    &x,
                    x.offset,
                    x.sizes.clone(),
                    x.strides.clone(),
                );
            }
            7 => {
                let to = if x.dtype == Dtype::F32 { Dtype::BF16 } else { Dtype::F32 };
                let cast = elements.iter().map(|e| e.iter().map(|&t| self.terms.cast(t, to)).collect());
                let cast = cast.collect();
                self.fresh("cast", &[value, Value::Dtype(to)], &x.sizes, to, cast);
            }
            // Of each element by itself, or of all of them.
            8 => {
                let is_elementwise = b % 2 == 0 || rank == 0;
                let (name, arguments): (&str, &[Value]) = match is_elementwise {
                    true => ("relu", &[value]),
                    false => ("cumprod", &[value, Value::Int(0)]),
                };
                let target = by_short_name(name).unwrap().target.clone();
                let results = elements.iter().map(|e| {
                    let term = |offset: i64| {
                        let (of, offset) = match is_elementwise {
                            true => (vec![e[offset as usize]], 0),
                            false => (e.clone(), offset),
                        };
                        Term::Call { target: target.clone(), of: vec![(x.dtype as u32, of)], offset }
                    };
                    (0..count).map(|offset| self.terms.id(term(offset))).collect()
                });
                let results = results.collect();
                self.fresh(name, arguments, &x.sizes, x.dtype, results);
            }
            // The sum with a tensor that is broadcast.
            16 => {
                let y = self.pick(b);
                let fits = y.dtype == x.dtype && y.sizes.len() <= rank;
                if !fits || !y.sizes.iter().rev().zip(x.sizes.iter().rev()).all(|(&n, &m)| n == m || n == 1) {
                    return;
                }
                let target = by_short_name("add").unwrap().target.clone();
                let others = each(self, &y);
                let results = elements.iter().zip(&others).map(|(e, other)| {
                    let of = |t: i64| {
                        let index = broadcast_index(&y.sizes, &x.sizes, t) as usize;
                        [e[t as usize], other[index]].map(|term| (x.dtype as u32, vec![term])).to_vec()
                    };
                    let term = |t| Term::Call { target: target.clone(), of: of(t), offset: 0 };
                    (0..count).map(|t| self.terms.id(term(t))).collect()
                });
                let results = results.collect();
                self.fresh("add", &[value, Value::Node(y.node)], &x.sizes, x.dtype, results);
            }
            9 if rank > 0 => {
                // Zeros behind the last row.
                let pad = i64::from(b % 3);
                let mut sizes = x.sizes.clone();
                sizes[0] += pad;
                let zero = self.terms.id(Term::Number(0));
                let row: i64 = sizes[1..].iter().product();
                let padded = elements.into_iter().map(|mut e| {
                    e.extend(vec![zero; (pad * row) as usize]);
                    e
                });
                let padded = padded.collect();
                let mut pads = vec![0; 2 * rank];
                pads[2 * rank - 1] = pad;
                let list = self.graph.int_list(&pads);
                self.fresh("pad", &[value, list], &sizes, x.dtype, padded);
            }
            10 => {
                let poison = self.terms.id(Term::Poison);
                let list = self.graph.int_list(&x.sizes);
                let empty = vec![vec![poison; count as usize]; RANKS as usize];
                self.fresh("empty", &[list], &x.sizes, x.dtype, empty);
            }
            _ => self.communicate(kind, &x, &elements, b, c),
        }
    }

    fn communicate(&mut self, kind: u32, x: &Seen, elements: &[Vec<usize>], b: u32, c: u32) {
        let group = self.graph.world.groups[b as usize % 4].clone();
        let size = i64::from(group.size);
        let name = Value::Str(self.graph.intern(&group.name));
        let op = if c.is_multiple_of(2) { "sum" } else { "max" };
        let value = Value::Node(x.node);
        let spelled = Value::Str(self.graph.intern(op));
        let members = |rank: u32| -> (Vec<u32>, usize) {
            let (instance, index) = group.instance_of(rank).unwrap();
            (group.instances[instance].clone(), index)
        };
        let rows = x.sizes.first().copied();
        let part = elements[0].len() / size as usize;
        let divides = rows.is_some_and(|n| n % size == 0);
        let mut sizes = x.sizes.clone();
        let (short, args, got): (&str, Vec<Value>, Vec<Vec<usize>>) = match kind {
            11 if rows.is_some() => {
                sizes[0] *= size;
                let got = (0..RANKS)
                    .map(|r| members(r).0.iter().flat_map(|&m| elements[m as usize].clone()).collect());
                ("all_gather", vec![value, Value::Int(size), name], got.collect())
            }
            12 if divides => {
                sizes[0] /= size;
                let got = (0..RANKS).map(|r| {
                    let (ranks, own) = members(r);
                    (own * part..(own + 1) * part)
                        .map(|t| {
                            self.terms.reduced(op, ranks.iter().map(|&m| elements[m as usize][t]).collect())
                        })
                        .collect()
                });
                ("reduce_scatter", vec![value, spelled, Value::Int(size), name], got.collect())
            }
            13 => {
                let got = (0..RANKS).map(|r| {
                    let ranks = members(r).0;
                    (0..elements[0].len())
                        .map(|t| {
                            self.terms.reduced(op, ranks.iter().map(|&m| elements[m as usize][t]).collect())
                        })
                        .collect()
                });
                ("all_reduce", vec![value, spelled, name], got.collect())
            }
            14 if divides => {
                let got = (0..RANKS).map(|r| {
                    let (ranks, own) = members(r);
                    ranks
                        .iter()
                        .flat_map(|&m| elements[m as usize][own * part..(own + 1) * part].to_vec())
                        .collect()
                });
                let got = got.collect();
                let parts = vec![sizes[0] / size; size as usize];
                let (sent, taken) = (self.graph.int_list(&parts), self.graph.int_list(&parts));
                ("all_to_all", vec![value, sent, taken, name], got)
            }
            15 => {
                let from = c as usize % size as usize;
                let got = (0..RANKS).map(|r| elements[members(r).0[from] as usize].clone());
                ("broadcast", vec![value, Value::Int(from as i64), name], got.collect())
            }
            _ => return,
        };
        self.fresh(short, &args, &sizes, x.dtype, got);
        let started = self.tensors.pop().unwrap();
        let node = Value::Node(started.node);
        self.alias("wait", &[node], &started, 0, started.sizes.clone(), started.strides.clone());
    }
}

/// The elements of values on single ranks, by the formulas of the sources.
struct Instances<'a> {
    arena: &'a Arena,
    world: World,
    terms: &'a mut Terms,
}

impl Instances<'_> {
    fn value(&mut self, value: ValueId, t: i64, rank: u32) -> usize {
        let piece = pieces(self.arena.runs(value), t, 1).next().unwrap();
        self.at(piece.source, piece.place, piece.offset, rank)
    }

    fn index(&self, group: super::GroupId, rank: u32) -> (usize, usize) {
        self.world.group(self.arena.group_name(group)).unwrap().instance_of(rank).unwrap()
    }

    fn at(&mut self, source: SourceId, place: PlaceId, mut offset: i64, rank: u32) -> usize {
        let place = self.arena.places.get(place).clone();
        for &(group, scale) in &place.scales {
            offset += scale * self.index(group, rank).1 as i64;
        }
        let mut there = rank;
        for &(group, index) in &place.moves {
            let (instance, _) = self.index(group, there);
            there =
                self.world.group(self.arena.group_name(group)).unwrap().instances[instance][index as usize];
        }
        self.source(source, offset, there)
    }

    fn source(&mut self, source: SourceId, offset: i64, rank: u32) -> usize {
        match self.arena.get(source) {
            Source::Poison => self.terms.id(Term::Poison),
            Source::Placeholder { position } => self.terms.id(Term::Input { position, rank, offset }),
            Source::Constant { key, .. } => {
                let Some((_, &[n])) = tokens(self.arena.words(key)).next() else { panic!("no number") };
                self.terms.id(Term::Number(n as i64))
            }
            Source::Cast { source, to, .. } => {
                let of = self.source(source, offset, rank);
                self.terms.cast(of, to)
            }
            Source::Reduced { op, group, source, place } => {
                let (instance, _) = self.index(group, rank);
                let ranks =
                    self.world.group(self.arena.group_name(group)).unwrap().instances[instance].clone();
                let of = ranks.iter().map(|&member| self.at(source, place, offset, member)).collect();
                self.terms.reduced(self.arena.text(op), of)
            }
            Source::Select { group, table } => {
                let chosen = self.arena.table(table)[self.index(group, rank).1];
                let offset = if chosen.step == 0 { chosen.offset } else { chosen.offset + offset };
                self.at(chosen.source, chosen.place, offset, rank)
            }
            Source::Elsewhere { source, place } => self.at(source, place, offset, rank),
            Source::Window { content, layout } => {
                let t = layout::position(self.arena.layout(layout), offset);
                self.value(content, t, rank)
            }
            Source::Opaque { key, .. } => {
                let words = self.arena.words(key).to_vec();
                let target = self.arena.text(target(&words).unwrap()).to_string();
                let is_elementwise = by_target(&target).unwrap().kind.is_elementwise();
                let mut of = Vec::new();
                // The largest comes first: others are broadcast.
                let mut largest = None;
                for (word, rest) in tokens(&words) {
                    if tag(word) == Some(Tag::Tensor) {
                        let value = ValueId(rest[0] as u32);
                        let sizes: Vec<i64> = rest[1..].iter().map(|&n| n as i64).collect();
                        let index =
                            broadcast_index(&sizes, largest.get_or_insert_with(|| sizes.clone()), offset);
                        let shown = match is_elementwise {
                            true => index..index + 1,
                            false => 0..self.arena.len(value),
                        };
                        let elements = shown.map(|t| self.value(value, t, rank));
                        of.push((payload(word) >> 16, elements.collect()));
                    }
                }
                let offset = if is_elementwise { 0 } else { offset };
                self.terms.id(Term::Call { target, of, offset })
            }
            other => panic!("no formula for {other:?}"),
        }
    }
}

/// The element of a tensor of sizes `own`, broadcast to `sizes`, that element `t` shows.
fn broadcast_index(own: &[i64], sizes: &[i64], mut t: i64) -> i64 {
    let mut place = vec![0; sizes.len()];
    for (d, &size) in sizes.iter().enumerate().rev() {
        place[d] = t % size;
        t /= size;
    }
    let outer = sizes.len() - own.len();
    own.iter().zip(&place[outer..]).fold(0, |at, (&n, &i)| at * n + if n == 1 { 0 } else { i })
}

type Step = (u32, u32, u32, u32);

fn any_program() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0u32..17, 0u32..1000, 0u32..1000, 0u32..1000), 1..24)
}

fn run(program: &[Step]) -> Model {
    let mut model = Model::new();
    model.input(&[4, 3], Dtype::F32);
    model.input(&[8], Dtype::F32);
    model.input(&[2, 2, 2], Dtype::BF16);
    program.iter().for_each(|&step| model.step(step));
    let all: Vec<Value> = model.tensors.iter().map(|seen| Value::Node(seen.node)).collect();
    let list = model.graph.list(&all);
    let output = model.node(Op::Output, "output", &[list], Out::Absent);
    assert_ne!(model.graph.node(output).args, Span::EMPTY);
    model
}

/// Limits that write everything out, and limits that keep every window.
fn limits(flatten: bool) -> Limits {
    let most = if flatten { 1 << 16 } else { 2 };
    Limits { flatten: most.max(64), flatten_other: most, ..Limits::DEFAULT }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn runs_are_the_elements_of_every_rank(program in any_program(), flatten in any::<bool>()) {
        let mut model = run(&program);
        let ops = Ops::of(&model.graph);
        let mut arena = Arena::new(&model.graph.world, limits(flatten));
        let evaluation = evaluate(&mut arena, &model.graph, &ops);
        prop_assert_eq!(evaluation.unknowns().count(), 0, "{:?}", evaluation.unknowns().next());
        let mut values = Vec::new();
        for (output, seen) in evaluation.outputs.iter().zip(&model.tensors) {
            let OutputValue::Tensor(tensor) = &output.value else { panic!("no tensor") };
            prop_assert_eq!(tensor.sizes.as_ref(), Some(&seen.sizes));
            let expected: Vec<Vec<usize>> = (0..RANKS).map(|r| model.read(seen, r)).collect();
            values.push((tensor.value, expected, seen.dtype));
        }
        let mut instances =
            Instances { arena: &arena, world: model.graph.world.clone(), terms: &mut model.terms };
        for (value, expected, _) in &values {
            for rank in 0..RANKS {
                let found: Vec<usize> =
                    (0..instances.arena.len(*value)).map(|t| instances.value(*value, t, rank)).collect();
                prop_assert_eq!(&found, &expected[rank as usize], "rank {}", rank);
            }
        }
        // All pairs of one length.
        let mut judge = Judge::new(&mut arena);
        for (i, (a, x, dtype)) in values.iter().enumerate() {
            for (b, y, other) in &values[i + 1..] {
                if x[0].len() != y[0].len() || dtype != other {
                    continue;
                }
                if judge.values(*a, *b) && x != y {
                    let words = [judge.arena.describe(*a), judge.arena.describe(*b)].join("\n-- against\n");
                    let case = crate::case::Case::of_graph(model.graph.clone());
                    prop_assert!(false, "these are said to be the same:\n{words}\nin\n{case}");
                }
            }
        }
    }
}
