//! `graph-oracle rules`: the catalogue.

use super::{CouldNotRun, ReportFormat, Status, TextOrJson, print};
use crate::rules::{Severity, Statement, statement, statements};
use crate::words::choices;
use clap::Args;
use std::io::Write;

#[derive(Args, Debug)]
pub(super) struct Rules {
    /// The rule to tell about; all, if none is named.
    id: Option<String>,
    /// The format.
    #[arg(long, value_parser = TextOrJson, default_value = "text")]
    format: ReportFormat,
}

impl Rules {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        let chosen: Vec<Statement> = match &self.id {
            None => statements(),
            Some(id) => {
                vec![find(id)?]
            }
        };
        let text = self.format.render(
            || chosen.iter().map(render).collect::<Vec<_>>().join("\n"),
            || {
                let rules: Vec<serde_json::Value> = chosen.iter().map(to_json).collect();
                serde_json::json!({"catalogue_version": "graph-oracle-catalogue/1", "rules": rules})
            },
        )?;
        print(out, &text)?;
        Ok(Status::Sound)
    }
}

/// The rule with this id; those that exist, otherwise.
pub(super) fn find(id: &str) -> Result<Statement, CouldNotRun> {
    statement(id).ok_or_else(|| {
        let ids: Vec<&str> = statements().iter().map(|rule| rule.id).collect();
        CouldNotRun::new(format_args!("unknown rule {id:?}{}", choices(id, &ids)))
    })
}

fn severity(rule: &Statement) -> &'static str {
    match rule.severity {
        Severity::Soundness => "soundness",
        Severity::Policy => "policy",
    }
}

fn passes(rule: &Statement) -> Vec<&'static str> {
    rule.passes.iter().map(|pass| pass.name()).collect()
}

fn render(rule: &Statement) -> String {
    format!(
        "{}  ({}; {})\n  {}\n  Why: {}\n",
        rule.id,
        severity(rule),
        passes(rule).join(", "),
        rule.statement,
        rule.reason
    )
}

fn to_json(rule: &Statement) -> serde_json::Value {
    serde_json::json!({
        "id": rule.id,
        "severity": severity(rule),
        "passes": passes(rule),
        "statement": rule.statement,
        "reason": rule.reason,
    })
}
