//! The report for machines: one JSON object, documented in docs/report.md.

use crate::judge::{Judgement, Verdict};
use crate::rules::{Finding, NodeMention, Reason, RuleStatus, Severity};
use serde_json::{Map, Value, json as object};

/// The report as one JSON object.
pub fn json(judgement: &Judgement, subject: &str, replay: Option<&str>) -> Value {
    let mut report = Map::new();
    report.insert("report_version".into(), object!("graph-oracle-report/2"));
    report.insert("subject".into(), object!(subject));
    let verdict = match &judgement.verdict {
        Verdict::Sound => "sound",
        Verdict::Violated(_) => "violated",
        Verdict::Refused(_) => "refused",
        Verdict::Undecided(_) => "undecided",
    };
    report.insert("verdict".into(), object!(verdict));
    match &judgement.verdict {
        Verdict::Sound => {}
        Verdict::Violated(findings) => {
            report.insert("findings".into(), findings.iter().map(finding).collect());
        }
        Verdict::Refused(reason) => {
            report.insert("reasons".into(), object!([self::reason(reason)]));
        }
        Verdict::Undecided(reasons) => {
            report.insert("reasons".into(), reasons.iter().map(reason).collect());
        }
    }
    report.insert("rules".into(), judgement.rules.iter().map(|(id, status)| rule(id, status)).collect());
    report.insert("notes".into(), object!(judgement.notes));
    if let Some(replay) = replay {
        report.insert("replay".into(), object!(replay));
    }
    Value::Object(report)
}

fn reason(reason: &Reason) -> Value {
    object!({"code": reason.code(), "message": reason.message})
}

fn rule(id: &str, status: &RuleStatus) -> Value {
    match status {
        RuleStatus::Holds => object!({"id": id, "status": "holds"}),
        RuleStatus::Violated(n) => object!({"id": id, "status": "violated", "findings": n}),
        RuleStatus::NotChecked(why) => object!({"id": id, "status": "not_checked", "why": why}),
        RuleStatus::Undecided(why) => {
            object!({"id": id, "status": "undecided", "code": why.code(), "why": why.message})
        }
    }
}

fn finding(finding: &Finding) -> Value {
    let severity = match finding.severity {
        Severity::Soundness => "soundness",
        Severity::Policy => "policy",
    };
    let node = |n: &NodeMention| object!({"name": n.name, "before": n.before, "after": n.after});
    object!({
        "rule": finding.rule,
        "severity": severity,
        "stage": finding.stage.name(),
        "title": finding.title,
        "ranks": finding.ranks,
        "nodes": finding.nodes.iter().map(node).collect::<Vec<Value>>(),
        "facts": finding.facts,
        "expected": finding.expected,
        "observed": finding.observed,
        "consequences": finding.consequences.iter().map(self::finding).collect::<Vec<Value>>(),
    })
}
