//! Known findings: counted, not reported again.
//!
//! One JSON object a line: `{"rule": ..., "kind": ..., "method": ..., "shape": ..., "link": ...}`. `kind` (part of it), `method`
//! (that the reduced case names) and `shape` may be left out: without all of them every finding of the rule is known. A link says where it is tracked, and is required.

use super::Distinct;
use serde::Deserialize;

/// One known finding.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The rule.
    pub rule: String,
    /// Part of the kind; any, if absent.
    pub kind: Option<String>,
    /// The option `method` of the pass; any, if absent.
    pub method: Option<String>,
    /// The shape; any, if absent.
    pub shape: Option<String>,
    /// Where it is tracked.
    pub link: String,
}

/// The known findings of a campaign.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KnownList(Vec<Known>);

impl KnownList {
    /// Reads a list. The error names the line.
    pub fn parse(text: &str) -> Result<KnownList, String> {
        let mut list = Vec::new();
        for (i, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            list.push(serde_json::from_str(line).map_err(|error| format!("line {}: {error}", i + 1))?);
        }
        Ok(KnownList(list))
    }

    /// Whether a finding is known.
    pub fn holds(&self, finding: &Distinct) -> bool {
        self.0.iter().any(|known| {
            let kind = finding.kind.as_deref().unwrap_or_default();
            known.rule == finding.rule
                && known.kind.as_ref().is_none_or(|part| kind.contains(part))
                && known.method.as_ref().is_none_or(|method| finding.method.as_ref() == Some(method))
                && known.shape.as_ref().is_none_or(|shape| *shape == finding.shape)
        })
    }
}
