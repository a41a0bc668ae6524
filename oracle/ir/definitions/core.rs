//! The functions and operators that definitions are written with.
//!
//! On tensors they do what the Python operators of PyTorch do (`torch/_tensor.py`): a number beside a tensor stays a
//! number, and `1 / x` is `x.reciprocal() * 1`.

use super::evaluate::{Item, Made, Writer, elements, is_true, numel};
use crate::graph::{Dtype, DtypeClass, NodeId, Value};
use crate::ops::shape::promote;

/// A number as an argument.
fn literal(item: &Item) -> Option<Value> {
    Some(match *item {
        Item::Bool(b) => Value::Bool(b),
        Item::Int(n) => Value::Int(n),
        Item::Float(x) => Value::Float(x),
        _ => return None,
    })
}

fn float(item: &Item) -> Made<f64> {
    Ok(match *item {
        Item::Bool(b) => f64::from(b),
        Item::Int(n) => n as f64,
        Item::Float(x) => x,
        ref other => return Err(format!("{other:?} is no number")),
    })
}

fn int(item: &Item) -> Made<i64> {
    match *item {
        Item::Int(n) => Ok(n),
        Item::Bool(b) => Ok(i64::from(b)),
        ref other => Err(format!("{other:?} is no integer")),
    }
}

fn ints(item: &Item) -> Made<Vec<i64>> {
    elements(item.clone())?.iter().map(int).collect()
}

fn list(all: impl IntoIterator<Item = i64>) -> Item {
    Item::List(all.into_iter().map(Item::Int).collect())
}

fn dtype(item: &Item) -> Made<Dtype> {
    match *item {
        Item::Dtype(dtype) => Ok(dtype),
        ref other => Err(format!("{other:?} is no dtype")),
    }
}

fn tensor(item: &Item) -> Made<NodeId> {
    match *item {
        Item::Tensor(node) => Ok(node),
        ref other => Err(format!("{other:?} is no tensor")),
    }
}

fn dims(all: &[i64]) -> Vec<Value> {
    all.iter().map(|&n| Value::Int(n)).collect()
}

/// The operator of Python's sign on tensors.
fn of_sign(sign: &str) -> Option<&'static str> {
    Some(match sign {
        "+" => "aten.add.Tensor",
        "-" => "aten.sub.Tensor",
        "*" => "aten.mul.Tensor",
        "/" => "aten.div.Tensor",
        "//" => "aten.floor_divide.default",
        "%" => "aten.remainder.Tensor",
        "&" => "aten.bitwise_and.Tensor",
        "|" => "aten.bitwise_or.Tensor",
        _ => return None,
    })
}

fn of_comparison(sign: &str) -> Option<&'static str> {
    Some(match sign {
        "<" => "lt",
        "<=" => "le",
        ">" => "gt",
        ">=" => "ge",
        "==" => "eq",
        "!=" => "ne",
        _ => return None,
    })
}

/// The comparison with its operands exchanged.
fn turned(sign: &str) -> &str {
    match sign {
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        ">=" => "<=",
        same => same,
    }
}

/// Integers by Python's rules.
fn of_ints(sign: &str, a: i64, b: i64) -> Made {
    let found = match sign {
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "//" => a.checked_div(b).map(|q| if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q }),
        "%" => a.checked_rem_euclid(b).map(|r| if b < 0 && r != 0 { r + b } else { r }),
        "/" if b != 0 => return Ok(Item::Float(a as f64 / b as f64)),
        _ => None,
    };
    found.map(Item::Int).ok_or_else(|| format!("{a} {sign} {b} has no value"))
}

fn of_floats(sign: &str, a: f64, b: f64) -> Made {
    Ok(Item::Float(match sign {
        "+" => a + b,
        "-" => a - b,
        "*" => a * b,
        "/" if b != 0.0 => a / b,
        "//" if b != 0.0 => (a / b).floor(),
        _ => return Err(format!("{a} {sign} {b} has no value")),
    }))
}

fn of_lists(sign: &str, a: &[Item], b: &Item) -> Made {
    match (sign, b) {
        ("+", Item::List(b)) => Ok(Item::List(a.iter().chain(b).cloned().collect())),
        ("*", Item::Int(times @ 0..=64)) => {
            Ok(Item::List(std::iter::repeat_n(a, *times as usize).flatten().cloned().collect()))
        }
        _ => Err(format!("a list {sign} {b:?}")),
    }
}

impl Writer<'_> {
    pub(super) fn unary(&mut self, sign: &str, value: Item) -> Made {
        match (sign, value) {
            ("not", value) => is_true(&value).map(|b| Item::Bool(!b)),
            ("-", Item::Tensor(x)) => self.call("aten.neg.default", &[Value::Node(x)], &[]),
            ("~", Item::Tensor(x)) => self.call("aten.bitwise_not.default", &[Value::Node(x)], &[]),
            ("-", Item::Int(n)) => n.checked_neg().map(Item::Int).ok_or_else(|| "a number too large".into()),
            ("-", Item::Float(x)) => Ok(Item::Float(-x)),
            (sign, value) => Err(format!("{sign} of {value:?}")),
        }
    }

    pub(super) fn binary(&mut self, sign: &str, a: Item, b: Item) -> Made {
        match sign {
            "is" => return Ok(Item::Bool(a == b)),
            "is not" => return Ok(Item::Bool(a != b)),
            "in" => return elements(b).map(|all| Item::Bool(all.contains(&a))),
            "not in" => return elements(b).map(|all| Item::Bool(!all.contains(&a))),
            _ => {}
        }
        if let Some(word) = of_comparison(sign) {
            return match (&a, &b) {
                (&Item::Tensor(a), &Item::Tensor(b)) => {
                    self.call(&format!("aten.{word}.Tensor"), &[Value::Node(a), Value::Node(b)], &[])
                }
                (&Item::Tensor(x), number) => {
                    let number = literal(number).ok_or("a tensor is compared with no number")?;
                    self.call(&format!("aten.{word}.Scalar"), &[Value::Node(x), number], &[])
                }
                (_, Item::Tensor(_)) => self.binary(turned(sign), b, a),
                _ => compared(sign, &a, &b).map(Item::Bool),
            };
        }
        match (a, b) {
            (Item::Tensor(a), b) => {
                let target = of_sign(sign).ok_or_else(|| format!("tensors have no {sign}"))?;
                let (target, b) = match b {
                    Item::Tensor(b) => (target, Value::Node(b)),
                    number => {
                        let number = literal(&number).ok_or_else(|| format!("a tensor {sign} {number:?}"))?;
                        (if sign == "%" { "aten.remainder.Scalar" } else { target }, number)
                    }
                };
                self.call(target, &[Value::Node(a), b], &[])
            }
            (number, Item::Tensor(x)) => {
                let number = literal(&number).ok_or_else(|| format!("{number:?} {sign} a tensor"))?;
                let x = Value::Node(x);
                match sign {
                    "+" | "*" => self.call(of_sign(sign).unwrap_or_default(), &[x, number], &[]),
                    "-" => self.call("aten.rsub.Scalar", &[x, number], &[]),
                    "/" => {
                        let inverse = tensor(&self.call("aten.reciprocal.default", &[x], &[])?)?;
                        self.call("aten.mul.Tensor", &[Value::Node(inverse), number], &[])
                    }
                    _ => Err(format!("a number {sign} a tensor")),
                }
            }
            (Item::List(a), b) => of_lists(sign, &a, &b),
            (Item::Text(a), Item::Text(b)) if sign == "+" => Ok(Item::Text(a + &b)),
            (a, b) => match (&a, &b) {
                (Item::Int(_) | Item::Bool(_), Item::Int(_) | Item::Bool(_)) => {
                    of_ints(sign, int(&a)?, int(&b)?)
                }
                _ => of_floats(sign, float(&a)?, float(&b)?),
            },
        }
    }

    fn dtype_of(&self, item: &Item) -> Made<Dtype> {
        self.tensor(tensor(item)?).map(|of| of.dtype)
    }

    fn sizes_of(&self, item: &Item) -> Made<Vec<i64>> {
        self.sizes(tensor(item)?)
    }

    /// How many dimensions: of a tensor, of a list of sizes, or as said.
    fn rank_of(&self, item: &Item) -> Made<usize> {
        match item {
            Item::Int(rank) => usize::try_from(*rank).map_err(|_| "a negative rank".into()),
            Item::List(sizes) => Ok(sizes.len()),
            x => Ok(self.sizes_of(x)?.len()),
        }
    }

    /// An operator on one tensor with further arguments.
    fn on(&mut self, target: &str, x: &Item, rest: &[Value]) -> Made {
        let args: Vec<Value> = std::iter::once(Value::Node(tensor(x)?)).chain(rest.iter().copied()).collect();
        self.call(target, &args, &[])
    }

    fn on_list(&mut self, target: &str, x: &Item, all: &[i64]) -> Made {
        let all = self.list(&dims(all));
        self.on(target, x, &[all])
    }

    fn cast(&mut self, x: &Item, to: Dtype) -> Made {
        match x {
            Item::Tensor(_) if self.dtype_of(x)? == to => Ok(x.clone()),
            Item::Tensor(_) => self.on("prims.convert_element_type.default", x, &[Value::Dtype(to)]),
            number => self.full(&[], number, to),
        }
    }

    fn full(&mut self, sizes: &[i64], number: &Item, of: Dtype) -> Made {
        let number = literal(number).ok_or_else(|| format!("{number:?} is no number"))?;
        let sizes = self.list(&dims(sizes));
        self.call("aten.full.default", &[sizes, number], &[("dtype", Value::Dtype(of))])
    }

    /// A tensor of the dtype of another operand, where it is a number.
    fn beside(&mut self, x: &Item, other: &Item) -> Made {
        if matches!(x, Item::Tensor(_)) { Ok(x.clone()) } else { self.full(&[], x, self.dtype_of(other)?) }
    }

    fn reduce(&mut self, target: &str, args: &[Item]) -> Made {
        let (x, keep) = (&args[0], args.get(2).map_or(Ok(false), is_true)?);
        let rank = self.sizes_of(x)?.len();
        let along = axes(args.get(1).unwrap_or(&Item::None), rank)?;
        let given = matches!(args.get(1), Some(Item::List(all)) if all.is_empty());
        let adds = target == "aten.sum.dim_IntList";
        // The sum of one element begins with 0.
        if given && rank > 0 || rank == 0 && !adds {
            return if adds && self.dtype_of(x)? == Dtype::Bool {
                self.cast(x, Dtype::I64)
            } else {
                Ok(x.clone())
            };
        }
        let along = self.list(&dims(&along));
        self.on(target, x, &[along, Value::Bool(keep)])
    }

    /// A function by its name.
    pub(super) fn apply(&mut self, name: &str, args: &[Item]) -> Made {
        let least = match name {
            "where" | "slice" | "gather" | "take" | "index_put" | "full" => 3,
            "pad" | "scatter" | "scatter_add" => 4,
            "range" | "zip" | "min" | "max" => 0,
            "sum" | "count" | "prod" | "amax" | "amin" | "axes" | "size" | "cast" | "down" | "number"
            | "pow" | "maximum" | "minimum" | "matmul" | "view" | "permute" | "expand" | "cat" | "index"
            | "promote" | "npow" | "ints" | "find" | "split" | "atan2" | "dimof" | "placeof" => 2,
            _ => 1,
        };
        if args.len() < least {
            return Err(format!("{name} takes more arguments"));
        }
        if let Some(made) = self.static_function(name, args) {
            return made;
        }
        self.tensor_function(name, args)
    }

    /// Functions of sizes, numbers and dtypes; `None` for another.
    fn static_function(&self, name: &str, args: &[Item]) -> Option<Made> {
        let result = || -> Made<Option<Item>> {
            let count = |n: usize| Item::Int(n as i64);
            Ok(Some(match name {
                "rank" => count(self.sizes_of(&args[0])?.len()),
                "shape" => list(self.sizes_of(&args[0])?),
                "size" => {
                    let (sizes, at) = (self.sizes_of(&args[0])?, int(&args[1])?);
                    let at = if at < 0 { at + sizes.len() as i64 } else { at };
                    let size = usize::try_from(at).ok().and_then(|at| sizes.get(at));
                    Item::Int(*size.ok_or("there is no such dimension")?)
                }
                "numel" => Item::Int(numel(&self.sizes_of(&args[0])?).ok_or("too many elements")?),
                "dtype" => Item::Dtype(self.dtype_of(&args[0])?),
                "isfloat" => Item::Bool(self.dtype_of(&args[0])?.class() == DtypeClass::Float),
                "axes" => list(axes(&args[0], self.rank_of(&args[1])?)?),
                // A dimension of a tensor, of as many sizes or of so many, counted from the front.
                "dimof" => Item::Int(from_front(int(&args[0])?, (self.rank_of(&args[1])? as i64).max(1))?),
                // A place among so many, counted from the front.
                "placeof" => Item::Int(from_front(int(&args[0])?, int(&args[1])?)?),
                "len" => count(elements(args[0].clone())?.len()),
                "range" => {
                    let bounds: Vec<i64> = args.iter().map(int).collect::<Made<_>>()?;
                    let (from, to) = match bounds[..] {
                        [to] => (0, to),
                        [from, to] => (from, to),
                        _ => return Err("a range has one or two bounds".into()),
                    };
                    if to.saturating_sub(from) > 1 << 16 {
                        return Err("a range is too long".into());
                    }
                    list(from..to)
                }
                "zip" => {
                    let all: Vec<Vec<Item>> = args.iter().cloned().map(elements).collect::<Made<_>>()?;
                    let count = all.first().map_or(0, Vec::len);
                    if all.iter().any(|items| items.len() != count) {
                        return Err("lists of several lengths".into());
                    }
                    let row = |at: usize| Item::List(all.iter().map(|items| items[at].clone()).collect());
                    Item::List((0..count).map(row).collect())
                }
                "min" | "max" => {
                    let all = if let [Item::List(all)] = args { all } else { args };
                    let mut best = all.first().ok_or("the least of nothing")?;
                    for item in &all[1..] {
                        let is_less = float(item)? < float(best)?;
                        best = if is_less == (name == "min") { item } else { best };
                    }
                    best.clone()
                }
                "nprod" => Item::Int(numel(&ints(&args[0])?).ok_or("too large a product")?),
                "nsum" => {
                    let sum = ints(&args[0])?.into_iter().try_fold(0i64, i64::checked_add);
                    Item::Int(sum.ok_or("too large a sum")?)
                }
                "nsqrt" => Item::Float(float(&args[0])?.sqrt()),
                "nsignbit" => Item::Bool(float(&args[0])?.is_sign_negative()),
                "nfloor" => Item::Int(float(&args[0])?.floor() as i64),
                "nint" => Item::Int(float(&args[0])? as i64),
                "npow" => Item::Float(float(&args[0])?.powf(float(&args[1])?)),
                "promote" => {
                    let both = promote(dtype(&args[0])?, dtype(&args[1])?);
                    Item::Dtype(both.ok_or("dtypes do not promote")?)
                }
                "opmath" => Item::Dtype(opmath(dtype(&args[0])?)),
                "epsilon" => Item::Float(match dtype(&args[0])? {
                    Dtype::F64 => f64::EPSILON,
                    Dtype::F32 => f64::from(f32::EPSILON),
                    Dtype::F16 => 2f64.powi(-10),
                    Dtype::BF16 => 2f64.powi(-7),
                    other => return Err(format!("{} has no epsilon", other.name())),
                }),
                "ints" => {
                    let n = usize::try_from(int(&args[1])?).map_err(|_| "a negative count")?.min(64);
                    match &args[0] {
                        Item::List(all) if all.len() == 1 => Item::List(vec![all[0].clone(); n]),
                        Item::List(all) if all.len() == n => Item::List(all.clone()),
                        Item::List(_) => return Err("a list of another length".into()),
                        one => Item::List(vec![one.clone(); n]),
                    }
                }
                "letters" => {
                    Item::List(elements(args[0].clone())?.into_iter().filter(|x| *x != text(" ")).collect())
                }
                "split" => match (&args[0], &args[1]) {
                    (Item::Text(of), Item::Text(at)) => Item::List(of.split(at.as_str()).map(text).collect()),
                    _ => return Err("split takes two texts".into()),
                },
                "unique" => {
                    let mut all: Vec<Item> = Vec::new();
                    for item in elements(args[0].clone())? {
                        if !all.contains(&item) {
                            all.push(item);
                        }
                    }
                    Item::List(all)
                }
                "find" => {
                    let at = elements(args[0].clone())?.iter().position(|item| *item == args[1]);
                    count(at.ok_or("it is not in the list")?)
                }
                _ => return Ok(None),
            }))
        };
        result().transpose()
    }

    fn tensor_function(&mut self, name: &str, args: &[Item]) -> Made {
        let x = &args[0];
        match name {
            "abs" | "exp" | "log" | "sqrt" | "sin" | "cos" | "floor" | "trunc" | "sign" | "round" | "erf"
            | "atan" | "lgamma" | "digamma" | "tanh" | "expm1" | "log1p" | "log2" | "exp2" => {
                self.on(&format!("aten.{name}.default"), x, &[])
            }
            "bits" => {
                let integer = match self.dtype_of(x)?.itemsize() {
                    1 => Dtype::I8,
                    2 => Dtype::I16,
                    4 => Dtype::I32,
                    8 => Dtype::I64,
                    _ => return Err("there is no integer of as many bits".into()),
                };
                self.on("aten.view.dtype", x, &[Value::Dtype(integer)])
            }
            "atan2" => {
                let other = Value::Node(tensor(&args[1])?);
                self.on("aten.atan2.default", x, &[other])
            }
            "up" => match self.dtype_of(x)? {
                Dtype::F16 | Dtype::BF16 | Dtype::F8E4M3 | Dtype::F8E5M2 => self.cast(x, Dtype::F32),
                _ => Ok(x.clone()),
            },
            "down" => {
                let to = self.dtype_of(&args[1])?;
                self.cast(x, to)
            }
            "cast" => self.cast(x, dtype(&args[1])?),
            "number" => self.full(&[], x, dtype(&args[1])?),
            "full" => self.full(&ints(x)?, &args[1], dtype(&args[2])?),
            "iota" => self.call("aten.arange.default", &[Value::Int(int(x)?)], &[]),
            "where" => {
                let condition = Value::Node(tensor(x)?);
                let (target, a, b) = match (&args[1], &args[2]) {
                    (&Item::Tensor(a), &Item::Tensor(b)) => {
                        ("aten.where.self", Value::Node(a), Value::Node(b))
                    }
                    (&Item::Tensor(a), b) => (
                        "aten.where.ScalarOther",
                        Value::Node(a),
                        literal(b).ok_or("where takes no such value")?,
                    ),
                    (a, &Item::Tensor(b)) => (
                        "aten.where.ScalarSelf",
                        literal(a).ok_or("where takes no such value")?,
                        Value::Node(b),
                    ),
                    _ => return Err("where chooses between two numbers".into()),
                };
                self.call(target, &[condition, a, b], &[])
            }
            "maximum" | "minimum" => {
                let (a, b) = (self.beside(x, &args[1])?, self.beside(&args[1], x)?);
                let both = promote(self.dtype_of(&a)?, self.dtype_of(&b)?).ok_or("dtypes do not promote")?;
                let (a, b) = (self.cast(&a, both)?, self.cast(&b, both)?);
                self.on(&format!("aten.{name}.default"), &a, &[Value::Node(tensor(&b)?)])
            }
            "pow" => match (x, &args[1]) {
                (_, &Item::Tensor(exponent)) if matches!(x, Item::Tensor(_)) => {
                    self.on("aten.pow.Tensor_Tensor", x, &[Value::Node(exponent)])
                }
                (Item::Tensor(_), number) => {
                    let number = literal(number).ok_or("an exponent is no number")?;
                    self.on("aten.pow.Tensor_Scalar", x, &[number])
                }
                (number, &Item::Tensor(exponent)) => {
                    let number = literal(number).ok_or("a base is no number")?;
                    self.call("aten.pow.Scalar", &[number, Value::Node(exponent)], &[])
                }
                _ => Err("a power of two numbers".into()),
            },
            "sum" | "count" => self.reduce("aten.sum.dim_IntList", args),
            "amax" => self.reduce("aten.amax.default", args),
            "amin" => self.reduce("aten.amin.default", args),
            "prod" => {
                let (mut product, keep) = (x.clone(), args.get(2).map_or(Ok(false), is_true)?);
                let mut along = axes(&args[1], self.sizes_of(x)?.len())?;
                along.sort_unstable();
                for dim in along.into_iter().rev() {
                    product =
                        self.on("aten.prod.dim_int", &product, &[Value::Int(dim), Value::Bool(keep)])?;
                }
                Ok(product)
            }
            "matmul" => {
                let ranks = (self.sizes_of(x)?.len(), self.sizes_of(&args[1])?.len());
                let target = match ranks {
                    (2, 2) => "aten.mm.default",
                    (3, 3) if self.sizes_of(x)?[0] == self.sizes_of(&args[1])?[0] => "aten.bmm.default",
                    _ => "aten.matmul.default",
                };
                self.on(target, x, &[Value::Node(tensor(&args[1])?)])
            }
            "view" if self.sizes_of(x)? == ints(&args[1])? => Ok(x.clone()),
            "view" => self.on_list("aten.reshape.default", x, &ints(&args[1])?),
            "permute" => self.on_list("aten.permute.default", x, &ints(&args[1])?),
            "expand" => self.on_list("aten.expand.default", x, &ints(&args[1])?),
            "slice" => {
                let rest: Vec<Value> =
                    args[1..].iter().map(|n| int(n).map(Value::Int)).collect::<Made<_>>()?;
                self.on("aten.slice.Tensor", x, &rest)
            }
            "pad" => {
                let (rank, dim) = (self.sizes_of(x)?.len(), int(&args[1])? as usize);
                if dim >= rank {
                    return Err("there is no such dimension".into());
                }
                let mut padding = vec![0; 2 * (rank - dim)];
                let last = padding.len() - 2;
                (padding[last], padding[last + 1]) = (int(&args[2])?, int(&args[3])?);
                let padding = self.list(&dims(&padding));
                let value = literal(args.get(4).unwrap_or(&Item::Int(0))).ok_or("padding is no number")?;
                self.on("aten.constant_pad_nd.default", x, &[padding, value])
            }
            "cat" => {
                let parts = elements(x.clone())?;
                let parts: Vec<Value> =
                    parts.iter().map(|x| tensor(x).map(Value::Node)).collect::<Made<_>>()?;
                let parts = self.list(&parts);
                self.call("aten.cat.default", &[parts, Value::Int(int(&args[1])?)], &[])
            }
            "take" => {
                let rest = [Value::Int(int(&args[1])?), Value::Node(tensor(&args[2])?)];
                self.on("aten.index_select.default", x, &rest)
            }
            "gather" => {
                let rest = [Value::Int(int(&args[1])?), Value::Node(tensor(&args[2])?)];
                self.on("aten.gather.default", x, &rest)
            }
            "scatter" | "scatter_add" => {
                let target = if name == "scatter" { "aten.scatter.src" } else { "aten.scatter_add.default" };
                let (at, from) = (Value::Node(tensor(&args[2])?), Value::Node(tensor(&args[3])?));
                self.on(target, x, &[Value::Int(int(&args[1])?), at, from])
            }
            "index" | "index_put" => {
                let of = |item: &Item| match item {
                    Item::None => Ok(Value::None),
                    item => tensor(item).map(Value::Node),
                };
                let indices: Vec<Value> = elements(args[1].clone())?.iter().map(of).collect::<Made<_>>()?;
                let indices = self.list(&indices);
                if name == "index" {
                    return self.on("aten.index.Tensor", x, &[indices]);
                }
                let accumulate = args.get(3).map_or(Ok(false), is_true)?;
                let values = Value::Node(tensor(&args[2])?);
                self.on("aten.index_put.default", x, &[indices, values, Value::Bool(accumulate)])
            }
            _ => Err(format!("{name} is not defined")),
        }
    }
}

fn text(text: &str) -> Item {
    Item::Text(text.to_string())
}

/// Numbers, texts and dtypes compared.
fn compared(sign: &str, a: &Item, b: &Item) -> Made<bool> {
    if let (Ok(a), Ok(b)) = (float(a), float(b)) {
        return Ok(match sign {
            "<" => a < b,
            "<=" => a <= b,
            ">" => a > b,
            ">=" => a >= b,
            "==" => a == b,
            _ => a != b,
        });
    }
    match sign {
        "==" => Ok(a == b),
        "!=" => Ok(a != b),
        _ => Err(format!("{a:?} {sign} {b:?}")),
    }
}

/// The dimensions that an argument names, from 0, in order; all of them for `None` and an empty list.
fn axes(dim: &Item, rank: usize) -> Made<Vec<i64>> {
    let count = rank as i64;
    let given = match dim {
        Item::None => return Ok((0..count).collect()),
        Item::List(all) if all.is_empty() => return Ok((0..count).collect()),
        Item::List(_) => ints(dim)?,
        one => vec![int(one)?],
    };
    let mut all = given.into_iter().map(|dim| from_front(dim, count.max(1))).collect::<Made<Vec<i64>>>()?;
    all.sort_unstable();
    if all.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("a dimension stands twice".into());
    }
    all.retain(|_| rank > 0);
    Ok(all)
}

/// One of `count`, counted from the front.
fn from_front(at: i64, count: i64) -> Made<i64> {
    match at {
        at if (0..count).contains(&at) => Ok(at),
        at if at < 0 && at.checked_add(count).is_some_and(|at| at >= 0) => Ok(at + count),
        _ => Err(format!("{at} is none of {count}")),
    }
}

fn opmath(dtype: Dtype) -> Dtype {
    if matches!(dtype, Dtype::F16 | Dtype::BF16) { Dtype::F32 } else { dtype }
}
