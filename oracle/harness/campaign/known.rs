//! Known findings: counted, not reported again.
//!
//! One JSON object a line: `{"rule": ..., "kind": ..., "method": ..., "words": [...], "brings": [...], "shape": ...,
//! "link": ...}`. A line knows the findings of its rule of which everything else that it says is true, and should say
//! enough that another defect under the same rule is not among them:
//!
//! - `kind`: a part of the finding's kind, where findings of the rule have one ([`worker`]);
//! - `method`: the option of that name that the case gives its pass;
//! - `words`: each of them stands in the finding's explanation;
//! - `brings`: rules whose findings in the same case follow from it, although they name no node of it: wrong values, most often;
//! - `shape`: the shape of the reduced case. It is looked at when a case has been reduced, the others before.
//!
//! A link says where it is tracked, and is required.

use super::{Distinct, digest};
use crate::rules::{Finding, WAYS_AGREE, current_id, statement, worker};
use serde::{Deserialize, Serialize};

/// One known finding.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// The rule.
    pub rule: String,
    /// Part of the kind; any, if absent.
    pub kind: Option<String>,
    /// The option `method` of the pass; any, if absent.
    pub method: Option<String>,
    /// What the explanation says; anything, if empty.
    #[serde(default)]
    pub words: Vec<String>,
    /// Rules whose findings in the same case follow from it.
    #[serde(default)]
    pub brings: Vec<String>,
    /// The shape; any, if absent.
    pub shape: Option<String>,
    /// Where it is tracked.
    pub link: String,
}

impl Known {
    fn is_about(&self, rule: &str, kind: Option<&str>, method: Option<&str>) -> bool {
        self.rule == rule
            && self.kind.as_deref().is_none_or(|part| kind.unwrap_or_default().contains(part))
            && self.method.as_deref().is_none_or(|name| method == Some(name))
    }
}

/// The known findings of a campaign.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KnownList(Vec<Known>);

impl KnownList {
    /// Reads a list. The error names the line.
    pub fn parse(text: &str) -> Result<KnownList, String> {
        let mut list: Vec<Known> = Vec::new();
        for (i, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            let mut known: Known = serde_json::from_str(line).map_err(|error| {
                let (column, text) = (error.column().max(1), error.to_string());
                let words = text.split(" at line ").next().unwrap_or(&text);
                format!("{}:{column}: {words}", i + 1)
            })?;
            for rule in [&known.rule].into_iter().chain(&known.brings) {
                if statement(rule).is_none() && rule != WAYS_AGREE {
                    let column = line.find(rule.as_str()).map_or(1, |at| line[..at].chars().count() + 1);
                    return Err(format!(
                        "{}:{column}: no rule is called {rule:?} (graph-oracle rules)",
                        i + 1
                    ));
                }
            }
            known.rule = current_id(&known.rule).to_string();
            known.brings.iter_mut().for_each(|rule| *rule = current_id(rule).to_string());
            if known.shape.is_some() && !known.words.is_empty() {
                return Err(format!(
                    "{}:1: words are looked at before a case is reduced, and shape after",
                    i + 1
                ));
            }
            list.push(known);
        }
        Ok(KnownList(list))
    }

    /// The digest of what is known, if anything is.
    pub(super) fn digest(&self) -> Option<String> {
        digest::of_value(&self.0).ok().filter(|_| !self.0.is_empty())
    }

    /// What is new among the findings of one case with this option `method`, and where the others are tracked: each
    /// link once, in order.
    pub fn sort<'f>(&self, findings: &'f [Finding], method: Option<&str>) -> (Vec<&'f Finding>, Vec<String>) {
        let lines: Vec<Option<&Known>> = findings.iter().map(|finding| self.line(finding, method)).collect();
        // Where values first part stands above what makes them part.
        let behind =
            findings.iter().filter(|finding| finding.is_cause).flat_map(|finding| &finding.consequences);
        let behind: Vec<&Known> = behind.filter_map(|finding| self.line(finding, method)).collect();
        let known = || lines.iter().copied().flatten().chain(behind.iter().copied());
        let brought =
            |finding: &Finding| known().any(|line| line.brings.iter().any(|rule| rule == finding.rule));
        let new = findings.iter().zip(&lines).filter(|(finding, line)| line.is_none() && !brought(finding));
        let mut links: Vec<String> = known().map(|line| line.link.clone()).collect();
        links.sort_unstable();
        links.dedup();
        (new.map(|(finding, _)| finding).collect(), links)
    }

    /// The line that knows a finding, whatever the shape.
    fn line(&self, finding: &Finding, method: Option<&str>) -> Option<&Known> {
        let text = finding.explanation();
        let says = |known: &Known| known.words.iter().all(|word| text.contains(word.as_str()));
        let knows = |known: &&Known| {
            known.shape.is_none()
                && known.is_about(finding.rule, worker::kind(finding), method)
                && says(known)
        };
        self.0.iter().find(knows)
    }

    /// Whether a reduced finding is known by its shape.
    pub fn holds(&self, finding: &Distinct) -> bool {
        self.0.iter().any(|known| {
            known.shape.as_ref() == Some(&finding.shape)
                && known.is_about(&finding.rule, finding.kind.as_deref(), finding.method.as_deref())
        })
    }
}
