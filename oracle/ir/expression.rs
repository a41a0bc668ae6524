//! Symbolic sizes: integer arithmetic in Python's syntax, as sympy prints it.
//!
//! `+`, `-`, `*`, `//`, `%`, `**`, parentheses, `Max`, `Min`, `FloorDiv`, `CleanDiv`, `Mod` and the names of symbols.
//! Division rounds down, as in Python. [`evaluate`] gives an expression's value, [`holds`] says whether a comparison is
//! true, [`normal_form`] gives one spelling for all that are equal as sums of products: PyTorch prints `2*s77 + 1` in one
//! place and `1 + 2 * s77` in another.
//!
//! # What it does not do
//!
//! Anything else, and any number past 64 bits, is no value. The normal form knows no law of division, of remainders or
//! of maxima: what these are made of is brought into normal form, and they themselves are atoms.

use crate::limits::Limit;
use std::collections::BTreeMap;

/// Parentheses and calls may be nested this deep. Sizes nest three or four levels.
const DEEPEST: u32 = Limit::Expression.standard() as u32;

/// Products in one sum: of `(a + b)**64` there would be many.
const MOST_PRODUCTS: usize = 64;

/// Atoms in one product, and bytes of one atom.
const MOST_ATOMS: usize = 64;
const LONGEST: usize = 1 << 12;

/// The value of `text`, with `symbol` telling the values of names; `None` where it has none.
pub fn evaluate(text: &str, symbol: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
    Parser::read(text, &Known(symbol))
}

/// The expression as a sum of products in one order: equal sums have one form. `None` for what is no such expression.
pub fn normal_form(text: &str) -> Option<String> {
    Parser::read(text, &Formal::default()).map(|sum| sum.text())
}

/// The same; what is no such expression stays as it is written.
pub fn spelled(text: &str) -> String {
    normal_form(text).unwrap_or_else(|| text.to_string())
}

/// The same of a stride. A size of 0 counts as 1 there, and then there are no elements: `Max(n, 1)` is `n`.
pub fn spelled_stride(text: &str) -> String {
    let formal = Formal { has_elements: true };
    Parser::read(text, &formal).map_or_else(|| text.to_string(), |sum| sum.text())
}

/// A comparison of integers as sums that are not negative where it holds: each as the sum without its number, and the
/// number. `None` for what is no such comparison.
pub fn at_least_zero(text: &str) -> Option<Vec<(String, i64)>> {
    let formal = Formal::default();
    let mut parser = Parser { rest: text, arithmetic: &formal, depth: 0 };
    let (left, sign, right) = parser.compared()?;
    parser.rest.trim_start().is_empty().then_some(())?;
    let less = |a: &Sum, b: &Sum, by: i64| {
        let mut sum = formal.add(formal.add(b.clone(), formal.negate(a.clone())?)?, formal.number(-by))?;
        let number = sum.0.remove(&Vec::new()).unwrap_or(0);
        Some((sum.text(), number))
    };
    Some(match sign {
        "<=" => vec![less(&left, &right, 0)?],
        ">=" => vec![less(&right, &left, 0)?],
        "<" => vec![less(&left, &right, 1)?],
        ">" => vec![less(&right, &left, 1)?],
        "==" => vec![less(&left, &right, 0)?, less(&right, &left, 0)?],
        _ => return None,
    })
}

/// The names in an expression or a condition that are not called.
pub fn symbols_of(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c == '_' || c.is_alphanumeric();
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            rest = &rest[rest.find(is_part)?..];
            let (word, after) = rest.split_at(rest.find(|c| !is_part(c)).unwrap_or(rest.len()));
            rest = after;
            if word.starts_with(|c: char| c == '_' || c.is_alphabetic()) && !after.starts_with('(') {
                return Some(word);
            }
        }
    })
}

/// Whether a condition holds: `Eq(a, b)`, `Ne(a, b)` and Python's comparisons, and what `&`, `|`, `~`, `And`, `Or` and
/// `Not` make of them. `None` where it has no answer, or is another one.
pub fn holds(text: &str, symbol: &dyn Fn(&str) -> Option<i64>) -> Option<bool> {
    let arithmetic = Known(symbol);
    let mut parser = Parser { rest: text, arithmetic: &arithmetic, depth: 0 };
    let value = parser.any_of()?;
    parser.rest.trim_start().is_empty().then_some(value)
}

impl Parser<'_, Known<'_>> {
    fn any_of(&mut self) -> Option<bool> {
        let mut value = self.all_of()?;
        while self.takes("|") {
            value |= self.all_of()?;
        }
        Some(value)
    }

    fn all_of(&mut self) -> Option<bool> {
        let mut value = self.condition()?;
        while self.takes("&") {
            value &= self.condition()?;
        }
        Some(value)
    }

    fn condition(&mut self) -> Option<bool> {
        if self.takes("~") {
            return self.nested_in(|p| p.condition()).map(|value| !value);
        }
        for (name, is_all) in [("And(", true), ("Or(", false)] {
            if self.takes(name) {
                return self.nested(|p| {
                    let mut values = vec![p.any_of()?];
                    while p.takes(",") {
                        values.push(p.any_of()?);
                    }
                    Some(if is_all { values.iter().all(|&v| v) } else { values.contains(&true) })
                });
            }
        }
        if self.takes("Not(") {
            return self.nested(|p| p.any_of()).map(|value| !value);
        }
        for (name, is_equal) in [("Eq(", true), ("Ne(", false)] {
            if self.takes(name) {
                return self.nested(|p| {
                    let left = p.sum()?;
                    let right = p.takes(",").then(|| p.sum())??;
                    Some((left == right) == is_equal)
                });
            }
        }
        // A parenthesis is part of a comparison, or holds a condition.
        let (before, depth) = (self.rest, self.depth);
        if let Some(value) = self.comparison() {
            return Some(value);
        }
        (self.rest, self.depth) = (before, depth);
        if self.takes("(") { self.nested(|p| p.any_of()) } else { None }
    }

    fn comparison(&mut self) -> Option<bool> {
        let (left, sign, right) = self.compared()?;
        Some(match sign {
            "<=" => left <= right,
            ">=" => left >= right,
            "==" => left == right,
            "!=" => left != right,
            "<" => left < right,
            _ => left > right,
        })
    }
}

/// What an expression is computed in.
trait Arithmetic {
    type Value: Clone;
    fn number(&self, n: i64) -> Self::Value;
    fn symbol(&self, name: &str) -> Option<Self::Value>;
    fn add(&self, a: Self::Value, b: Self::Value) -> Option<Self::Value>;
    fn negate(&self, a: Self::Value) -> Option<Self::Value>;
    fn multiply(&self, a: Self::Value, b: Self::Value) -> Option<Self::Value>;
    fn function(&self, function: Function, a: Self::Value, b: Self::Value) -> Option<Self::Value>;
}

/// Functions of two numbers that are no sums or products.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Function {
    FloorDiv,
    Mod,
    Max,
    Min,
}

/// Numbers.
struct Known<'s>(&'s dyn Fn(&str) -> Option<i64>);

impl Arithmetic for Known<'_> {
    type Value = i64;

    fn number(&self, n: i64) -> i64 {
        n
    }

    fn symbol(&self, name: &str) -> Option<i64> {
        (self.0)(name)
    }

    fn add(&self, a: i64, b: i64) -> Option<i64> {
        a.checked_add(b)
    }

    fn negate(&self, a: i64) -> Option<i64> {
        a.checked_neg()
    }

    fn multiply(&self, a: i64, b: i64) -> Option<i64> {
        a.checked_mul(b)
    }

    fn function(&self, function: Function, a: i64, b: i64) -> Option<i64> {
        match function {
            Function::FloorDiv => floor_div(a, b),
            Function::Mod => floor_mod(a, b),
            Function::Max => Some(a.max(b)),
            Function::Min => Some(a.min(b)),
        }
    }
}

/// Sums of products of atoms.
#[derive(Default)]
struct Formal {
    /// Whether sizes are at least 1.
    has_elements: bool,
}

/// By the atoms of each product, sorted, how often it is added.
#[derive(Clone, PartialEq, Eq, Default)]
struct Sum(BTreeMap<Vec<String>, i64>);

impl Sum {
    fn of(atoms: Vec<String>, factor: i64) -> Sum {
        let mut sum = Sum::default();
        if factor != 0 {
            sum.0.insert(atoms, factor);
        }
        sum
    }

    fn known(&self) -> Option<i64> {
        match self.0.len() {
            0 => Some(0),
            1 => self.0.get(&Vec::new()).copied(),
            _ => None,
        }
    }

    /// What each product is but for the factors of `by`; `None` where they are not factors of all.
    fn divided(&self, by: &Sum) -> Option<Sum> {
        let mut divisors = by.0.iter();
        let (Some((atoms, factor)), None) = (divisors.next(), divisors.next()) else { return None };
        let quotient = self.0.iter().map(|(product, n)| {
            let mut left = product.clone();
            for atom in atoms {
                left.remove(left.iter().position(|own| own == atom)?);
            }
            (n.checked_rem(*factor)? == 0).then_some((left, n.checked_div(*factor)?))
        });
        quotient.collect::<Option<_>>().map(Sum)
    }

    /// Products of many atoms first, then what is added, the number last.
    fn text(&self) -> String {
        let mut products: Vec<(&Vec<String>, i64)> = self.0.iter().map(|(atoms, &n)| (atoms, n)).collect();
        products.sort_by_key(|&(atoms, factor)| (std::cmp::Reverse(atoms.len()), factor < 0));
        let mut text = String::new();
        for (atoms, factor) in products {
            let sign = match (text.is_empty(), factor < 0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            let size = factor.unsigned_abs();
            let product = atoms.join("*");
            text += sign;
            text += &match (atoms.is_empty(), size) {
                (true, _) => size.to_string(),
                (false, 1) => product,
                (false, _) => format!("{size}*{product}"),
            };
        }
        if text.is_empty() { String::from("0") } else { text }
    }
}

impl Arithmetic for Formal {
    type Value = Sum;

    fn number(&self, n: i64) -> Sum {
        Sum::of(Vec::new(), n)
    }

    fn symbol(&self, name: &str) -> Option<Sum> {
        Some(Sum::of(vec![name.to_string()], 1))
    }

    fn add(&self, mut a: Sum, b: Sum) -> Option<Sum> {
        for (atoms, factor) in b.0 {
            let sum = a.0.get(&atoms).copied().unwrap_or(0).checked_add(factor)?;
            match sum {
                0 => a.0.remove(&atoms),
                _ => a.0.insert(atoms, sum),
            };
        }
        (a.0.len() <= MOST_PRODUCTS).then_some(a)
    }

    fn negate(&self, a: Sum) -> Option<Sum> {
        self.multiply(self.number(-1), a)
    }

    fn multiply(&self, a: Sum, b: Sum) -> Option<Sum> {
        let mut product = Sum::default();
        for (left, m) in &a.0 {
            for (right, n) in &b.0 {
                if left.len() + right.len() > MOST_ATOMS {
                    return None;
                }
                let mut atoms: Vec<String> = left.iter().chain(right).cloned().collect();
                atoms.sort_unstable();
                product = self.add(product, Sum::of(atoms, m.checked_mul(*n)?))?;
            }
        }
        Some(product)
    }

    fn function(&self, function: Function, a: Sum, b: Sum) -> Option<Sum> {
        if let (Some(a), Some(b)) = (a.known(), b.known()) {
            return Known(&|_| None).function(function, a, b).map(|n| self.number(n));
        }
        if function == Function::FloorDiv
            && let Some(quotient) = a.divided(&b)
        {
            return Some(quotient);
        }
        if function == Function::Max && self.has_elements {
            match (a.known(), b.known()) {
                (Some(1), _) => return Some(b),
                (_, Some(1)) => return Some(a),
                _ => {}
            }
        }
        let (mut a, mut b) = (a.text(), b.text());
        if matches!(function, Function::Max | Function::Min) && a > b {
            std::mem::swap(&mut a, &mut b);
        }
        // A single name or number stands as it is: division goes from left to right.
        let is_single = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let bracketed = |text: &str| match is_single(text) {
            true => text.to_string(),
            false => format!("({text})"),
        };
        let text = match function {
            Function::FloorDiv => format!("({}//{})", bracketed(&a), bracketed(&b)),
            Function::Mod => format!("Mod({a}, {b})"),
            Function::Max => format!("Max({a}, {b})"),
            Function::Min => format!("Min({a}, {b})"),
        };
        if text.len() <= LONGEST { self.symbol(&text) } else { None }
    }
}

struct Parser<'a, A> {
    rest: &'a str,
    arithmetic: &'a A,
    depth: u32,
}

impl<'a, A: Arithmetic> Parser<'a, A> {
    fn read(text: &'a str, arithmetic: &'a A) -> Option<A::Value> {
        let mut parser = Parser { rest: text, arithmetic, depth: 0 };
        let value = parser.sum()?;
        parser.rest.trim_start().is_empty().then_some(value)
    }

    fn takes(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start();
        match rest.strip_prefix(token) {
            Some(after) => {
                self.rest = after;
                true
            }
            None => false,
        }
    }

    /// The sides of a comparison.
    fn compared(&mut self) -> Option<(A::Value, &'static str, A::Value)> {
        let left = self.sum()?;
        let sign = ["<=", ">=", "==", "!=", "<", ">"].into_iter().find(|sign| self.takes(sign))?;
        Some((left, sign, self.sum()?))
    }

    fn sum(&mut self) -> Option<A::Value> {
        let mut value = self.product()?;
        loop {
            if self.takes("+") {
                value = self.arithmetic.add(value, self.product()?)?;
            } else if self.takes("-") {
                let product = self.product()?;
                value = self.arithmetic.add(value, self.arithmetic.negate(product)?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<A::Value> {
        let mut value = self.factor()?;
        loop {
            if self.takes("//") {
                value = self.arithmetic.function(Function::FloorDiv, value, self.factor()?)?;
            } else if self.takes("%") {
                value = self.arithmetic.function(Function::Mod, value, self.factor()?)?;
            } else if self.takes("*") {
                value = self.arithmetic.multiply(value, self.factor()?)?;
            } else {
                return Some(value);
            }
        }
    }

    /// A number, name, call or parenthesis, with signs before it and powers after it.
    fn factor(&mut self) -> Option<A::Value> {
        let mut negative = false;
        while self.takes("-") {
            negative = !negative;
        }
        let base = self.atom()?;
        let value = match self.takes("**") {
            true => {
                let rest = self.rest.trim_start();
                let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                let times: u32 = rest[..end].parse().ok()?;
                self.rest = &rest[end..];
                self.power(base, times)?
            }
            false => base,
        };
        if negative { self.arithmetic.negate(value) } else { Some(value) }
    }

    fn power(&self, base: A::Value, times: u32) -> Option<A::Value> {
        // More do not fit 64 bits, but for 0, 1 and -1, which nobody raises so far.
        (times <= 64).then_some(())?;
        (0..times)
            .try_fold(self.arithmetic.number(1), |power, _| self.arithmetic.multiply(power, base.clone()))
    }

    fn atom(&mut self) -> Option<A::Value> {
        if self.takes("(") {
            return self.nested(|p| p.sum());
        }
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        self.rest = after;
        match word.bytes().next()? {
            b'0'..=b'9' => word.parse().ok().map(|n| self.arithmetic.number(n)),
            _ if self.takes("(") => self.call(word),
            _ => self.arithmetic.symbol(word),
        }
    }

    fn call(&mut self, name: &str) -> Option<A::Value> {
        let function = match name {
            "Max" => Function::Max,
            "Min" => Function::Min,
            "FloorDiv" | "CleanDiv" => Function::FloorDiv,
            "Mod" | "PythonMod" => Function::Mod,
            _ => return None,
        };
        self.nested(|p| {
            let mut value = p.sum()?;
            while p.takes(",") {
                let next = p.sum()?;
                value = p.arithmetic.function(function, value, next)?;
            }
            Some(value)
        })
    }

    /// What stands between an opening and a closing parenthesis.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let value = self.nested_in(inner)?;
        self.takes(")").then_some(value)
    }

    /// One level deeper, if there may be one.
    fn nested_in<T>(&mut self, inner: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth == DEEPEST {
            return None;
        }
        self.depth += 1;
        let value = inner(self);
        self.depth -= 1;
        value
    }
}

fn floor_div(a: i64, b: i64) -> Option<i64> {
    let (quotient, remainder) = (a.checked_div(b)?, a.checked_rem(b)?);
    Some(if remainder != 0 && (remainder < 0) != (b < 0) { quotient - 1 } else { quotient })
}

fn floor_mod(a: i64, b: i64) -> Option<i64> {
    let remainder = a.checked_rem(b)?;
    Some(if remainder != 0 && (remainder < 0) != (b < 0) { remainder + b } else { remainder })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Option<i64> {
        evaluate(text, &|name| name.strip_prefix('u').and_then(|n| n.parse().ok()))
    }

    #[test]
    fn python_arithmetic() {
        // Values from CPython.
        for (text, expected) in [
            ("45056*(((u10 + u11 + 71)//8))", 45056 * (92 / 8)),
            ("Max(1, u0)*4 - 2", 2),
            ("-7//2", -4),
            ("7 % -3", -2),
            ("2*u3**2", 18),
            ("Min(3, Max(u4, 2), 9)", 3),
            ("FloorDiv(9, 2) - (-1)", 5),
        ] {
            assert_eq!(value(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn comparisons() {
        for (text, expected) in [
            ("Eq(u4, 2*u2)", Some(true)),
            ("Ne(Mod(u6, 4), 0)", Some(true)),
            ("u3 >= 4", Some(false)),
            ("-u3 < u2 - 1", Some(true)),
            ("u2 <= 2", Some(true)),
            ("u2 > 2", Some(false)),
            ("Eq(x, 2)", None),
            ("Eq(u2, 2) & (u3 > 1)", Some(true)),
            ("u2 != 2", Some(false)),
            ("((u2 + 1)*2 == 6) | (u3 > 9)", Some(true)),
            ("Not(And(u2 == 2, Or(u3 > 9, Ne(u4, 4))))", Some(true)),
            ("~(u2 == 2)", Some(false)),
            ("(u2", None),
            ("u2", None),
        ] {
            assert_eq!(
                holds(text, &|name| name.strip_prefix('u').and_then(|n| n.parse().ok())),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn spellings_of_one_sum_have_one_form() {
        for (form, spellings) in [
            ("2*s77 + 1", &["1 + 2 * s77", "s77 + 1 + s77", "2*(s77 + 1) - 1"][..]),
            ("s17 - (s17//2)", &["s17 - ((s17//2))", "s17 - FloorDiv(s17, 2)", "-(s17//2) + s17"]),
            ("s27*s77", &["s77*s27", "s77 * (s27 + 1) - s77"]),
            ("s0*s0 + s0", &["s0**2 + s0", "s0*(1 + s0)"]),
            ("Max(1, s77 + u0)", &["Max(u0 + s77, 1)"]),
            ("Mod(s77, 4)", &["s77 % 4", "PythonMod(s77, 4)"]),
            ("0", &["s0 - s0", "0*s0"]),
            ("4", &["9//2", "Min(4, 7)"]),
        ] {
            for spelling in spellings {
                assert_eq!(normal_form(spelling).as_deref(), Some(form), "{spelling}");
            }
            assert_eq!(normal_form(form).as_deref(), Some(form));
        }
        for other in ["sqrt(s0)", "1.5*s0", "(a + b + c + d + e + f + g + h)**40"] {
            assert_eq!(normal_form(other), None, "{other}");
        }
    }

    #[test]
    fn what_has_no_value() {
        let deep = format!("{}1{}", "(".repeat(5000), ")".repeat(5000));
        for text in
            ["", "x", "1 +", "(1", "1)", "1//0", "9223372036854775807 + 1", "sqrt(4)", "2**99", "1.5", &deep]
        {
            assert_eq!(value(text), None, "{text:.20}");
        }
    }
}
