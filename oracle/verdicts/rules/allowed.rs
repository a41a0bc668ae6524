//! What a rewrite may do beyond keeping every bit and every draw: `allow=[...]`.

use crate::case::PassConfig;
use crate::rules::aliases::Leave;
use crate::semantics::Numerics;
use crate::words;

/// What is allowed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Allowed {
    /// How far floats may part.
    pub numerics: Numerics,
    /// How far they may part, relative to the larger of the two and 1, where that is by a tolerance.
    pub tolerance: Option<f64>,
    /// Draws may come from another generator, one for one, and unread ones may go.
    pub restreamed: bool,
    /// What outputs may share that they did not, or need not share any more.
    pub(super) aliases: Leave,
    /// Inputs may be added and removed, and are told apart by name.
    pub signature: bool,
}

/// What `allow=` takes beside the levels of numerics.
const OTHERS: [&str; 5] = ["draws=restreamed", "aliases=lost", "aliases=written", "signature", "tolerance=X"];

/// How far floats may part that are [approximate](Numerics::Approximate), where nothing is said.
pub(super) const TOLERANCE: f64 = 1e-2;

impl Allowed {
    /// What the options of a pass allow.
    pub(super) fn from_pass(pass: &PassConfig) -> Result<Allowed, String> {
        let mut allowed = Allowed::default();
        let items = pass.words("allow").map_err(|error| error.to_string())?.unwrap_or_default();
        for (at, &item) in items.iter().enumerate() {
            if items[..at].contains(&item) {
                return Err(format!("allow: {item} is stated twice"));
            }
            allowed.allow(item)?;
        }
        match (allowed.numerics, allowed.tolerance) {
            (Numerics::Precision, None) => {
                Err("allow: precision needs a bound: add tolerance=1e-2, say".to_string())
            }
            (Numerics::Precision | Numerics::Approximate, _) | (_, None) => Ok(allowed),
            _ => Err("allow: tolerance counts for precision and approximate only: leave it out".to_string()),
        }
    }

    fn allow(&mut self, item: &str) -> Result<(), String> {
        let level = item.strip_prefix("numerics=").unwrap_or(item);
        match item.strip_prefix("draws=").unwrap_or(item) {
            "restreamed" => self.restreamed = true,
            "aliases=lost" => self.aliases.lost = true,
            "aliases=written" => self.aliases.written = true,
            "signature" => self.signature = true,
            _ => match (item.strip_prefix("tolerance="), Numerics::named(level)) {
                (Some(text), _) => self.tolerance = Some(tolerance(text)?),
                (None, Some(Numerics::Exact)) => {
                    return Err("allow: numerics are exact if nothing is said: leave it out".to_string());
                }
                (None, Some(level)) if self.numerics == Numerics::Exact => self.numerics = level,
                (None, Some(level)) => {
                    let (less, more) = (level.min(self.numerics), level.max(self.numerics));
                    return Err(format!("allow: {more} takes in {less}: state one of them"));
                }
                (None, None) => {
                    let levels = Numerics::ALL[1..].iter().map(|level| level.name());
                    let known: Vec<&str> = levels.chain(OTHERS).collect();
                    let known = words::choices(item, &known);
                    return Err(format!("nothing is called {item:?} that may be allowed{known}"));
                }
            },
        }
        Ok(())
    }

    /// The options that allow a level, as on the command line.
    pub(super) fn option(level: Numerics) -> String {
        format!("--allow {level}")
    }
}

fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|x| x.is_finite() && *x > 0.0 && *x < 1.0);
    number.ok_or_else(|| format!("allow: tolerance should be a number between 0 and 1, not {text}"))
}
