//! The value of a symbolic size: integer arithmetic in Python's syntax, as sympy prints it.
//!
//! `+`, `-`, `*`, `//`, `%`, `**`, parentheses, `Max`, `Min`, `FloorDiv`, `CleanDiv`, `Mod` and the names of
//! symbols. Division rounds down, as in Python. Anything else, and any number past 64 bits, is no value.

use crate::limits::Limit;

/// Parentheses and calls may be nested this deep. Sizes nest three or four levels.
const DEEPEST: u32 = Limit::Expression.standard() as u32;

/// The value of `text`, with `symbol` telling the values of names; `None` where it has none.
pub fn evaluate(text: &str, symbol: &dyn Fn(&str) -> Option<i64>) -> Option<i64> {
    let mut parser = Parser { rest: text, symbol, depth: 0 };
    let value = parser.sum()?;
    parser.rest.trim_start().is_empty().then_some(value)
}

struct Parser<'a> {
    rest: &'a str,
    symbol: &'a dyn Fn(&str) -> Option<i64>,
    depth: u32,
}

impl Parser<'_> {
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

    fn sum(&mut self) -> Option<i64> {
        let mut value = self.product()?;
        loop {
            if self.takes("+") {
                value = value.checked_add(self.product()?)?;
            } else if self.takes("-") {
                value = value.checked_sub(self.product()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<i64> {
        let mut value = self.factor()?;
        loop {
            if self.takes("//") {
                value = floor_div(value, self.factor()?)?;
            } else if self.takes("%") {
                value = floor_mod(value, self.factor()?)?;
            } else if self.takes("*") {
                value = value.checked_mul(self.factor()?)?;
            } else {
                return Some(value);
            }
        }
    }

    /// A number, name, call or parenthesis, with signs before it and powers after it.
    fn factor(&mut self) -> Option<i64> {
        let mut negative = false;
        while self.takes("-") {
            negative = !negative;
        }
        let base = self.atom()?;
        let value = match self.takes("**") {
            true => base.checked_pow(u32::try_from(self.atom()?).ok()?)?,
            false => base,
        };
        if negative { value.checked_neg() } else { Some(value) }
    }

    fn atom(&mut self) -> Option<i64> {
        if self.takes("(") {
            return self.nested(|p| p.sum());
        }
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        self.rest = after;
        match word.bytes().next()? {
            b'0'..=b'9' => word.parse().ok(),
            _ if self.takes("(") => self.call(word),
            _ => (self.symbol)(word),
        }
    }

    fn call(&mut self, name: &str) -> Option<i64> {
        type Fold = fn(i64, i64) -> Option<i64>;
        let fold: Fold = match name {
            "Max" => |a, b| Some(a.max(b)),
            "Min" => |a, b| Some(a.min(b)),
            "FloorDiv" | "CleanDiv" => floor_div,
            "Mod" | "PythonMod" => floor_mod,
            _ => return None,
        };
        self.nested(|p| {
            let mut value = p.sum()?;
            while p.takes(",") {
                value = fold(value, p.sum()?)?;
            }
            Some(value)
        })
    }

    /// What stands between an opening and a closing parenthesis.
    fn nested(&mut self, inner: impl FnOnce(&mut Self) -> Option<i64>) -> Option<i64> {
        if self.depth == DEEPEST {
            return None;
        }
        self.depth += 1;
        let value = inner(self)?;
        self.depth -= 1;
        self.takes(")").then_some(value)
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
    fn what_has_no_value() {
        let deep = format!("{}1{}", "(".repeat(5000), ")".repeat(5000));
        for text in
            ["", "x", "1 +", "(1", "1)", "1//0", "9223372036854775807 + 1", "sqrt(4)", "2**99", "1.5", &deep]
        {
            assert_eq!(value(text), None, "{text:.20}");
        }
    }
}
