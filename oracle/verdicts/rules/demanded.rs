//! What is demanded of a rewrite beyond being right: `demand=[...]`, also called `contracts=[...]`.

use super::budget::{Budget, budget_of};
use crate::case::{PassConfig, Setting};
use crate::words;

/// What is demanded.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Demanded {
    /// Outputs keep their strides.
    pub strides: bool,
    /// Inputs and outputs keep their names.
    pub names: bool,
    /// What is kept of the collectives.
    pub collectives: Option<Collectives>,
    /// Each launch is waited for exactly once.
    pub waits_once: bool,
    /// Each ordering edge that is added orders what nothing else does.
    pub edges_needed: bool,
    /// Nodes keep what is noted for recomputation.
    pub tags: bool,
    /// Nothing but tags is another.
    pub unchanged: bool,
    /// A second run gives the same graph.
    pub deterministic: bool,
    /// Peak memory.
    pub peak: Option<Budget>,
    /// Exposed communication.
    pub exposed: Option<Budget>,
}

/// What is kept of the collectives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Collectives {
    /// Which ones there are, and how often.
    Same,
    /// That, and their order on each group.
    Order,
}

const KEYS: [&str; 11] = [
    "strides",
    "names",
    "collectives=same",
    "collectives=order",
    "waits=once",
    "edges=needed",
    "peak=1.1x",
    "exposed=1x",
    "tags",
    "unchanged",
    "deterministic",
];

/// The two names of the option.
const NAMES: [&str; 2] = ["demand", "contracts"];

impl Demanded {
    /// What the options of a pass demand.
    pub(super) fn from_pass(pass: &PassConfig) -> Result<Demanded, String> {
        let mut demanded = Demanded::default();
        let mut seen: Vec<&str> = Vec::new();
        for name in NAMES {
            for item in pass.words(name).map_err(|error| error.to_string())?.unwrap_or_default() {
                let key = item.split('=').next().unwrap_or(item);
                if seen.contains(&key) {
                    return Err(format!("{name}: {key} is stated twice"));
                }
                seen.push(key);
                demanded.demand(item)?;
            }
        }
        let others =
            seen.iter().find(|key| ["strides", "names", "collectives", "waits", "edges"].contains(key));
        match others {
            Some(other) if demanded.unchanged => {
                Err(format!("demand: what is unchanged keeps its {other} too: leave {other} out"))
            }
            _ => Ok(demanded),
        }
    }

    fn demand(&mut self, item: &str) -> Result<(), String> {
        let amount = |key: &str, text: &str| budget_of(key, &Setting::Text(text.to_string())).map(Some);
        match item.split_once('=') {
            None => match item {
                "strides" => self.strides = true,
                "names" => self.names = true,
                "tags" => self.tags = true,
                "unchanged" => self.unchanged = true,
                "deterministic" => self.deterministic = true,
                _ => return Err(unknown(item)),
            },
            Some(("collectives", "same")) => self.collectives = Some(Collectives::Same),
            Some(("collectives", "order")) => self.collectives = Some(Collectives::Order),
            Some(("waits", "once")) => self.waits_once = true,
            Some(("edges", "needed")) => self.edges_needed = true,
            Some(("peak", text)) => self.peak = amount("peak", text)?,
            Some(("exposed", text)) => self.exposed = amount("exposed", text)?,
            Some(_) => return Err(unknown(item)),
        }
        Ok(())
    }
}

fn unknown(item: &str) -> String {
    format!("nothing is called {item:?} that may be demanded{}", words::choices(item, &KEYS))
}
