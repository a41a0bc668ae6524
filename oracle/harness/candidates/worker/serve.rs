//! The other side of the protocol: any candidate of this program as a worker.
//!
//! `graph-oracle worker` serves it: a model for workers in other languages, one half of a comparison, and what the
//! driver is tested with.

use super::graph_text::{append_graph, graph as read_graph};
use super::message::{Message, Offered, Table, line};
use super::process::Limits;
use super::{PROTOCOL, Refusal, answer};
use crate::analysis::validate::validate;
use crate::candidates::refusals::{bad_options, not_implemented};
use crate::candidates::{Candidate, CandidateExt, Place, Request};
use crate::case::PassConfig;
use crate::graph::Graph;
use crate::rules::{Code, PassKind};
use crate::semantics::ExecutionInputs;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// Answers requests from `input` on `output` until the input ends or says bye.
pub fn serve(candidate: &dyn Candidate, input: &mut dyn BufRead, output: &mut dyn Write) -> io::Result<()> {
    // A request is larger than the answers that are allowed by default only if something is wrong.
    let limit = 4 * Limits::default().answer as u64;
    loop {
        let mut request = Vec::new();
        (&mut *input).take(limit).read_until(b'\n', &mut request)?;
        if request.last() != Some(&b'\n') {
            return Ok(());
        }
        let Some(answer) = answer(candidate, &request) else { return Ok(()) };
        output.write_all(&answer)?;
        output.flush()?;
    }
}

/// What is read of a message that cannot be read otherwise.
#[derive(Deserialize)]
struct Numbered<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
}

/// The answer to a request; `None` to bye.
fn answer(candidate: &dyn Candidate, request: &[u8]) -> Option<Vec<u8>> {
    let not_understood =
        |id: &str, why: String| failed(id, "NotUnderstood", &why.lines().collect::<Vec<_>>().join(" "));
    let read = std::str::from_utf8(request).map_err(|error| error.to_string());
    let mut message = match read.and_then(Message::read) {
        Ok(message) => message,
        Err(why) => {
            let text = std::str::from_utf8(request).unwrap_or_default();
            let id = serde_json::from_str::<Numbered>(text).ok().and_then(|read| read.id);
            return Some(not_understood(id.map_or("null", RawValue::get), why));
        }
    };
    let id = message.id_text();
    match message.kind.as_str() {
        "bye" => None,
        "hello" => Some(hello(candidate)),
        "run" => Some(match understood(&mut message) {
            Ok((graph, pass, inputs)) => run(candidate, &graph, &pass, message.rank, &inputs, id),
            Err(why) => not_understood(id, why),
        }),
        other => Some(not_understood(id, format!("the type {other:?} is not known"))),
    }
}

fn hello(candidate: &dyn Candidate) -> Vec<u8> {
    let capabilities = candidate.capabilities();
    let passes: BTreeMap<&str, Offered> =
        capabilities.passes.iter().map(|pass| (pass.name(), Offered::default())).collect();
    line(&json!({
        "type": "hello",
        "protocol": PROTOCOL,
        "name": candidate.name(),
        "version": env!("CARGO_PKG_VERSION"),
        "bakes_rank": capabilities.bakes_rank,
        "keeps_promises": capabilities.keeps_promises,
        "passes": passes,
    }))
}

fn understood(message: &mut Message) -> Result<(Graph, PassConfig, Vec<ExecutionInputs>), String> {
    let graph = read_graph("graph", message.graph)?;
    let name = message.pass.clone().ok_or("the key pass is missing")?;
    let options = message.options.as_ref().map_or(Vec::new(), |options| options.0.to_vec());
    let estimates = std::mem::take(&mut message.estimates).into_iter().map(Table::read).collect();
    let inputs = message.inputs()?;
    Ok((graph, PassConfig { name, options, estimates }, inputs))
}

fn run(
    candidate: &dyn Candidate,
    graph: &Graph,
    pass: &PassConfig,
    rank: u32,
    inputs: &[ExecutionInputs],
    id: &str,
) -> Vec<u8> {
    let Some(kind) =
        PassKind::parse(&pass.name).filter(|kind| candidate.capabilities().passes.contains(kind))
    else {
        return refused(id, &not_implemented(format!("{} does not offer {:?}", candidate.name(), pass.name)));
    };
    let is_unfit = |fault: &&crate::analysis::fault::Fault| {
        fault.is_fatal() && !(kind.row().sorts && fault.concerns_order())
    };
    if let Some(fault) = validate(graph).iter().find(is_unfit) {
        return refused(id, &Refusal::of(Code::Input, fault.to_string()));
    }
    if let Err(why) = candidate.check_options(pass) {
        return refused(id, &bad_options(why));
    }
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let started = Instant::now();
        let answers = candidate.run(&Request { graph, pass, places: &[Place { rank, turn: 0 }], inputs })?;
        let seconds = started.elapsed().as_secs_f64();
        let none = || Refusal::of(Code::NoOutcome, format!("{} gave no outcome", candidate.name()));
        Ok((seconds, answer::write(answers.first().ok_or_else(none)?)))
    }));
    match ran {
        Ok(Ok((seconds, parts))) => {
            let mut bytes =
                format!("{{\"type\":\"outcome\",\"id\":{id},\"seconds\":{seconds:.6}").into_bytes();
            for (key, text) in parts {
                bytes.extend_from_slice(format!(",\"{key}\":").as_bytes());
                bytes.extend_from_slice(&text);
            }
            bytes.extend_from_slice(b"}\n");
            bytes
        }
        Ok(Err(refusal)) => refused(id, &refusal),
        Err(panic) => failed(id, "panic", &panic_message(&*panic)),
    }
}

fn refused(id: &str, refusal: &Refusal) -> Vec<u8> {
    let (code, reason) = (json!(refusal.reason.code()), json!(refusal.reason.message));
    let mut bytes =
        format!("{{\"type\":\"refused\",\"id\":{id},\"code\":{code},\"reason\":{reason}").into_bytes();
    if let Some(left) = &refusal.left_behind {
        bytes.extend_from_slice(b",\"left_behind\":");
        append_graph(&mut bytes, left);
    }
    bytes.extend_from_slice(b"}\n");
    bytes
}

fn failed(id: &str, error: &str, message: &str) -> Vec<u8> {
    format!("{{\"type\":\"error\",\"id\":{id},\"error\":{},\"message\":{}}}\n", json!(error), json!(message))
        .into_bytes()
}

/// What a panic said.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| text.to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".to_string())
}
