//! Traces of an allocator: what is right, each way to be wrong, and what a trace does not show.

use super::*;
use crate::format::memory_snapshot;
use crate::format::objects::{Allowance, read_json};

/// Events as `action address bytes [stream]`, one a line, and blocks that are held at the end as `address bytes`.
fn judge(events: &str, blocks: &[(i64, i64)], reserved: i64) -> DeviceReport {
    let event = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let stream = words.get(3).unwrap_or(&"0");
        format!(r#"{{"action":"{}","addr":{},"size":{},"stream":{stream}}}"#, words[0], words[1], words[2])
    };
    let events: Vec<String> = events.lines().filter(|line| !line.trim().is_empty()).map(event).collect();
    let state = |(address, bytes): &(i64, i64)| {
        format!(
            r#"{{"address":{address},"size":{bytes},"requested_size":{bytes},"state":"active_allocated"}}"#
        )
    };
    let blocks: Vec<String> = blocks.iter().map(state).collect();
    let json = format!(
        r#"{{"segments":[{{"address":0,"total_size":{reserved},"blocks":[{}]}}],"device_traces":[[{}]]}}"#,
        blocks.join(","),
        events.join(",")
    );
    let allowance = Allowance::new(1 << 20);
    let objects = read_json(json.as_bytes(), &allowance).unwrap();
    let snapshot = memory_snapshot::read(objects.root(), &allowance).unwrap();
    snapshot.devices.first().map_or_else(DeviceReport::default, judge_device)
}

fn faults(report: &DeviceReport) -> Vec<String> {
    report.faults.iter().map(ToString::to_string).collect()
}

fn has_note(report: &DeviceReport, words: &str) -> bool {
    report.notes.iter().any(|note| note.contains(words))
}

const RIGHT: &str = "
    segment_alloc 0 4096
    alloc 0 1000
    alloc 1024 500
    free_requested 0 1000
    free_completed 0 1000
    alloc 0 200
    free_requested 1024 500
    free_completed 1024 500";

#[test]
fn what_an_allocator_does_is_right() {
    let report = judge(RIGHT, &[(0, 200)], 4096);
    assert_eq!(faults(&report), [""; 0]);
    assert_eq!(report.held, Peak { bytes: 1500, event: Some(2) });
    assert_eq!(report.in_use, Peak { bytes: 1500, event: Some(2) });
    assert_eq!(report.reserved, Some(Peak { bytes: 4096, event: Some(0) }));
    assert_eq!((report.end, report.at_end.as_slice()), (Sum { blocks: 1, bytes: 200 }, &[5][..]));
    assert_eq!((report.before, report.pending), (Sum::default(), Sum::default()));
    assert_eq!(report.notes, [""; 0]);
}

#[test]
fn memory_that_is_held_is_not_given_away() {
    let report =
        judge("alloc 0 1000\nalloc 512 512 7\nfree_requested 512 512\nfree_completed 512 512", &[], 4096);
    assert_eq!(
        faults(&report),
        [
            "device 0, event 1: 512 bytes at 0x200 are allocated for stream 7 over 1000 bytes at 0x0 (event 0, stream 0), \
          which the program holds"
        ]
    );
    assert_eq!(report.faults[0].kind, FaultKind::AllocatedTwice);
    // Side by side is no overlap; nor is a block of no bytes beside another.
    let beside =
        judge("alloc 0 512\nalloc 512 512\nalloc 1024 0\nfree_requested 0 512\nfree_completed 0 512", &[], 0);
    assert_eq!(faults(&beside), [""; 0]);
}

#[test]
fn what_another_stream_may_use_is_not_given_away() {
    let wrong = "alloc 0 1000\nfree_requested 0 1000\nalloc 0 1000 7\nalloc 5000 1\nfree_completed 5000 1";
    let report = judge(wrong, &[], 4096);
    assert_eq!(
        faults(&report),
        [
            "device 0, event 2: 1000 bytes at 0x0 are allocated for stream 7 over 1000 bytes at 0x0 (event 0, stream 0), \
          whose free is requested (event 1) and not completed: a stream may use them"
        ]
    );
    let right = "alloc 0 1000\nfree_requested 0 1000\nfree_completed 0 1000\nalloc 0 1000 7";
    assert_eq!(faults(&judge(right, &[(0, 1000)], 4096)), [""; 0]);
}

#[test]
fn nothing_is_freed_twice() {
    let cases = [
        ("free_requested 0 8\nfree_completed 0 8\nfree_requested 0 8", 3),
        ("free_requested 0 8\nfree_requested 0 8\nfree_completed 0 8", 2),
        ("free_requested 0 8\nfree_completed 0 8\nfree_completed 0 8", 3),
    ];
    for (frees, event) in cases {
        let report = judge(&format!("alloc 0 8\n{frees}"), &[], 0);
        assert_eq!(report.faults.iter().map(|fault| fault.event).collect::<Vec<_>>(), [event], "{frees}");
        assert_eq!(report.faults[0].kind, FaultKind::FreedTwice);
    }
    let again = "alloc 0 8\nfree_requested 0 8\nfree_completed 0 8\nalloc 0 8\nfree_requested 0 8\nfree_completed 0 8";
    assert_eq!(faults(&judge(again, &[], 0)), [""; 0]);
}

/// The ring has lost its beginning: the same trace without its first events gives the same sums.
#[test]
fn a_lost_beginning_is_no_finding() {
    let lines: Vec<&str> = RIGHT.lines().filter(|line| !line.trim().is_empty()).collect();
    for lost in 1..lines.len() {
        let report = judge(&lines[lost..].join("\n"), &[(0, 200)], 4096);
        assert_eq!(faults(&report), [""; 0], "{lost}");
        assert_eq!(report.end, Sum { blocks: 1, bytes: 200 }, "{lost}");
        assert_eq!(report.reserved.unwrap().bytes, 4096, "{lost}");
        let peak = if lost <= 3 { 1500 } else { 700 };
        assert_eq!(report.held.bytes, peak, "{lost}: {report:?}");
        assert_eq!(has_note(&report, "whose allocation the trace does not have"), lost >= 2, "{lost}");
    }
}

#[test]
fn blocks_that_the_trace_does_not_mention_count() {
    let report = judge("alloc 0 100\nfree_requested 0 100\nfree_completed 0 100", &[(8192, 1000)], 65536);
    assert_eq!((report.held.bytes, report.before.bytes, report.end.bytes), (1100, 1000, 1000));
    assert_eq!(report.reserved, Some(Peak { bytes: 65536, event: None }));
}

/// Actions that are left out on purpose make nothing wrong.
#[test]
fn actions_that_are_not_recorded_are_not_missed() {
    let all = "alloc 0 8\nfree_requested 0 8\nfree_completed 0 8\nalloc 0 8\nfree_requested 0 8\nfree_completed 0 8";
    let cases = [
        ("free_completed", "a requested one counts as completed"),
        ("free_requested", "a completed one counts as both"),
        ("free", "overlaps are not judged"),
        ("alloc", "no allocation is recorded"),
    ];
    for (skipped, note) in cases {
        let left: Vec<&str> = all.lines().filter(|line| !line.starts_with(skipped)).collect();
        let report = judge(&left.join("\n"), &[], 0);
        assert_eq!(faults(&report), [""; 0], "{skipped}");
        assert!(has_note(&report, note), "{skipped}: {:?}", report.notes);
    }
}

#[test]
fn a_state_that_does_not_fit_the_trace_is_told() {
    let report = judge("alloc 0 8\nalloc 64 8\nfree_requested 0 8\nfree_completed 0 8", &[(0, 8)], 0);
    assert!(has_note(&report, "2 blocks differ between the end of the trace and the state"), "{report:?}");
    assert_eq!(faults(&report), [""; 0]);
    let unknown = judge("segment_alloc 0 4096\nalloc 0 8", &[], 0);
    assert_eq!(unknown.reserved, None);
}

/// What is still in use by a stream counts until it is not.
#[test]
fn pending_frees_are_in_use() {
    let report = judge(
        "free_completed 9000 50\nalloc 0 100\nfree_requested 0 100\nalloc 512 100\nfree_requested 512 100\nfree_completed 512 100",
        &[],
        0,
    );
    assert_eq!((report.held.bytes, report.in_use.bytes), (100, 200));
    assert_eq!(report.pending, Sum { blocks: 1, bytes: 100 });
    assert_eq!(report.end, Sum::default());
}

#[test]
fn an_empty_trace_says_how_to_record() {
    let report = judge("", &[(0, 8)], 4096);
    assert!(has_note(&report, "_record_memory_history"));
    assert_eq!((report.held.bytes, report.end.bytes), (8, 8));
}
