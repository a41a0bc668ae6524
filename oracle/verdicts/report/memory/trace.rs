//! The timeline in the Trace Event Format, for chrome://tracing and Perfetto: a step is a millisecond; the live bytes
//! are counters, each storage is a span from its allocation to its free.

use super::MemoryReport;
use serde_json::{Value, json};

/// How long a step is drawn, in microseconds.
const STEP: u64 = 1000;

/// The trace of a report: a JSON document.
pub fn trace(report: &MemoryReport) -> String {
    let (profile, replay) = (&report.profile.steps, &report.replay.steps);
    let mut events: Vec<Value> = vec![
        json!({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": report.graph.name}}),
        json!({"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "steps"}}),
    ];
    let counter = |ts: u64, profile: i64, replay: i64| json!({"ph": "C", "name": "live bytes", "pid": 1, "ts": ts, "args": {"profile": profile, "replay": replay}});
    for (i, (predicted, step)) in profile.steps.iter().zip(&replay.steps).enumerate() {
        let (ts, name) = (i as u64 * STEP, report.name(step.node));
        events.push(json!({
            "ph": "X", "name": name, "cat": "step", "pid": 1, "tid": 1, "ts": ts, "dur": STEP,
            "args": {"step": i, "target": report.graph.target(step.node), "allocated": step.allocated},
        }));
        events.push(counter(ts, predicted.peak, step.peak));
        events.push(counter(ts + STEP * 9 / 10, predicted.after, step.after));
    }
    let last = replay.steps.len() as u64;
    for (i, life) in report.replay.lives.iter().enumerate().filter(|(_, life)| life.bytes > 0) {
        let from = life.start.map_or(0, u64::from) * STEP;
        let to = life.end.map_or(last, |end| u64::from(end) + 1) * STEP;
        let common = |ph: &str, ts: u64| json!({"ph": ph, "name": report.name(life.by), "cat": "storage", "id": i, "pid": 1, "tid": 2, "ts": ts});
        let mut begin = common("b", from);
        begin["args"] = json!({"bytes": life.bytes, "held": report.replay.held[i].describe(report.graph)});
        events.push(begin);
        events.push(common("e", to));
    }
    // One event a line: diffs and greps stay readable.
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    format!("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n", lines.join(",\n"))
}
