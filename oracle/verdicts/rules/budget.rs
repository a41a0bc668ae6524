//! How much of something a pass may take: an amount, or so many times what it was before.

use crate::case::{PassConfig, Setting};

/// A budget relative to before.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Budget {
    /// At most so much.
    Absolute(f64),
    /// At most so many times what it was before.
    Factor(f64),
}

impl Budget {
    /// The limit, given the value before.
    pub fn limit<T: Quantity>(self, before: T) -> T {
        T::from_f64(match self {
            Budget::Absolute(limit) => limit,
            Budget::Factor(factor) => before.to_f64() * factor,
        })
    }
}

/// What a budget may be about.
pub trait Quantity {
    /// As a float.
    fn to_f64(self) -> f64;
    /// From a float.
    fn from_f64(x: f64) -> Self;
}

impl Quantity for f64 {
    fn to_f64(self) -> f64 {
        self
    }

    fn from_f64(x: f64) -> f64 {
        x
    }
}

impl Quantity for i64 {
    fn to_f64(self) -> f64 {
        self as f64
    }

    fn from_f64(x: f64) -> i64 {
        x as i64
    }
}

/// The budget that an option states.
pub(crate) fn budget(config: &PassConfig, key: &str) -> Result<Option<Budget>, String> {
    config.get(key).map(|setting| budget_of(key, setting)).transpose()
}

/// `1.1x` is a factor of what it was before; a size or a number of seconds is absolute.
pub(super) fn budget_of(key: &str, setting: &Setting) -> Result<Budget, String> {
    let text = setting.word().unwrap_or("");
    let number = |text: &str| text.parse::<f64>().ok().filter(|x| x.is_finite() && *x >= 0.0);
    if let Some(factor) = text.strip_suffix('x').and_then(number) {
        return Ok(Budget::Factor(factor));
    }
    match number(text).or_else(|| setting.size().map(|n| n as f64)) {
        Some(limit) => Ok(Budget::Absolute(limit)),
        None => Err(format!("option {key} should be a factor such as 1.1x or an amount, not {setting}")),
    }
}
