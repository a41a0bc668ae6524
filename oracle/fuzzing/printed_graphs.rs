//! Reading what PyTorch prints is total: graphs, runnables, files of TORCH_TRACE and logs of TORCH_LOGS.

use crate::format::fx::{Known, Runnable, read};
use crate::format::torch_trace::{self, Record, Source};
use crate::format::{text, torch_logs};

/// Payloads of one input that are read: a bound on the cost of one execution.
const MOST_RECORDS: usize = 64;

/// Any bytes give graphs or errors that name a place; the same text gives the same graph, and a graph that was read can
/// be written down.
pub fn check(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        check_text(text);
    }
    check_records(torch_trace::Records::new(data));
    for process in torch_logs::processes(data).unwrap_or_default().0.into_iter().take(4) {
        check_records(torch_logs::Records::new(data, process));
    }
}

fn check_records(mut records: impl Source) {
    let mut seen = 0;
    while let Ok(Some(record)) = records.next_record() {
        seen += 1;
        if seen <= MOST_RECORDS && Record::is_graph(&record) {
            assert!(record.line_of(1) > record.line, "a payload stands behind its head");
            check_text(record.payload.as_deref().unwrap_or(""));
        }
    }
    assert!(records.unreadable().is_sorted(), "records are read in order");
}

fn check_text(printed: &str) {
    let runnable = Runnable::read(printed);
    let known = Known::default();
    match (read(printed, &known), runnable) {
        (Ok(one), Ok(_)) => {
            let two = read(printed, &known).map(|two| two.graph);
            assert_eq!(two.ok().as_ref().map(|two| one.graph.difference(two)), Some(None), "{printed}");
            assert!(!text::print_graph(&one.graph).is_empty(), "a graph has a text");
        }
        (Ok(_), Err(error)) => panic!("the graph of a runnable that cannot be read was read: {error}"),
        (Err(error), _) => {
            let lines = printed.split('\n').count();
            assert!((1..=lines).contains(&error.line) && !error.message.is_empty(), "{error}");
        }
    }
}
