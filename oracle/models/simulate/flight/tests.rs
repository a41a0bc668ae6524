//! Dumps of a few ranks: all in order, each way to be wrong, and what is not known.

use super::*;
use crate::case::Case;
use crate::format::text;
use crate::simulate::{Estimates, Programs};

/// A dump: for each launch `GROUP NUMBER OPERATION TYPE IN OUT STATE`, and the groups with their ranks. The first
/// record has the number `lost`.
fn dump(launches: &str, groups: &[(&str, &[u32])], lost: i64) -> FlightDump {
    use crate::format::flight_recorder::RecordedGroup;
    let entry = |(i, line): (usize, &str)| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [group, number, operation, of, from, to, state] = words[..] else { panic!("{line}") };
        let sizes = |word: &str| vec![word.split('x').map(|dim| dim.parse().unwrap()).collect::<Vec<i64>>()];
        let number = number.parse().unwrap();
        Entry {
            record: lost + i as i64,
            group: group.to_string(),
            description: "undefined".to_string(),
            collective: number,
            message: number,
            is_message: operation.starts_with("send") || operation.starts_with("recv"),
            operation: operation.to_string(),
            inputs: sizes(from),
            outputs: sizes(to),
            input_types: vec![of.to_string()],
            output_types: vec![of.to_string()],
            state: match state {
                "done" => State::Completed,
                "started" | "given-up" => State::Started,
                _ => State::Scheduled,
            },
            is_retired: matches!(state, "done" | "given-up" | "ended"),
        }
    };
    let lines = launches.lines().map(str::trim).filter(|line| !line.is_empty());
    let group =
        |(name, ranks): &(&str, &[u32])| RecordedGroup { name: name.to_string(), ranks: ranks.to_vec() };
    FlightDump {
        version: "2.10".to_string(),
        groups: groups.iter().map(group).collect(),
        entries: lines.enumerate().map(entry).collect(),
    }
}

const DP: &[(&str, &[u32])] = &[("dp", &[0, 1])];

fn flights(dumps: &[(u32, FlightDump)]) -> Flights {
    Flights::new(&dumps.iter().cloned().collect())
}

fn two(first: &str, second: &str) -> (Flights, FlightReport) {
    let flights = flights(&[(0, dump(first, DP, 0)), (1, dump(second, DP, 0))]);
    let report = judge(&flights);
    (flights, report)
}

const DONE: &str = "
    dp 1 _all_gather_base Float 4 8 done
    dp 2 all_reduce Float 8 8 done";

#[test]
fn ranks_that_agree_and_are_done_are_in_order() {
    let (_, report) = two(DONE, DONE);
    assert_eq!((report.is_in_order(), report.compared), (Some(true), 2));
    assert_eq!((report.mismatches.len(), report.waits.len(), report.notes.len()), (0, 0, 0));
}

#[test]
fn a_rank_that_waits_is_told_beside_the_others() {
    let waits = format!("{DONE}\n dp 3 _reduce_scatter_base Float 8 4 started");
    let (flights, report) = two(&waits, DONE);
    assert_eq!(report.is_in_order(), None, "a dump is a moment");
    let [wait] = &report.waits[..] else { panic!("{report:?}") };
    assert_eq!((wait.number, flights.group_name(wait.group).as_str()), (3, "group dp"));
    let words: Vec<&str> = wait.parts.iter().map(|part| part.words.as_str()).collect();
    assert_eq!(
        words,
        [
            "_reduce_scatter_base of Float, [8] to [4]: started, not completed",
            "has not come to it; its last on this group is 2, all_reduce of Float, [8] to [8]: completed"
        ]
    );
    let (_, given_up) = two(&waits.replace("started", "given-up"), DONE);
    assert_eq!(given_up.is_in_order(), Some(false), "the watchdog gave it up");
}

#[test]
fn what_is_launched_differently_is_a_fault() {
    let cases = [
        ("all_reduce Float 8 8", "all_reduce and _all_gather_base", "_all_gather_base Float 8 16"),
        ("all_reduce Float 8 8", "8 and 9 elements goes in", "all_reduce Float 9 9"),
        ("all_reduce Float 8 8", "what goes in is Float and Half", "all_reduce Half 8 8"),
    ];
    for (first, why, second) in cases {
        let (_, report) = two(&format!("dp 1 {first} started"), &format!("dp 1 {second} started"));
        assert_eq!(report.is_in_order(), Some(false));
        let [mismatch] = &report.mismatches[..] else { panic!("{report:?}") };
        let said = mismatch.mismatch.as_ref().unwrap();
        assert!(said.contains(why), "{said}");
        assert!(report.waits.is_empty(), "it is told once");
    }
    // Names of one kind, and shapes of one size, meet.
    let (_, report) = two("dp 1 all_gather Float 4 8 done", "dp 1 _all_gather_base Float 2x2 8 done");
    assert_eq!(report.is_in_order(), Some(true));
    // What each rank sends in an all-to-all is its own.
    let (_, report) = two("dp 1 all_to_all Float 4 8 done", "dp 1 all_to_all Float 6 2 done");
    assert_eq!(report.is_in_order(), Some(true));
}

#[test]
fn what_is_lost_is_not_missing() {
    let late = dump("dp 5 all_reduce Float 8 8 done", DP, 4);
    let early = dump("dp 1 all_reduce Float 8 8 started", DP, 0);
    let report = judge(&flights(&[(0, early.clone()), (1, late.clone())]));
    assert_eq!(report.waits[0].parts[1].words, "not known: its record begins later");
    assert!(
        report.notes[0].contains("rank 1: 4 records before the first are not in its dump"),
        "{:?}",
        report.notes
    );
    // A rank without a dump, and one that used nothing.
    let report = judge(&flights(&[(0, early.clone())]));
    assert_eq!(report.waits[0].parts[1].words, "no dump");
    assert_eq!((report.is_in_order(), &report.missing[..]), (Some(false), &[1][..]));
    let report = judge(&flights(&[(0, early), (1, dump("", DP, 0))]));
    assert_eq!(report.waits[0].parts[1].words, "has not come to it: it launched nothing on this group");
    assert_eq!((report.is_in_order(), report.waits[0].parts[1].is_behind), (None, true));
    // What is complete on every rank that left a dump says nothing of the others.
    let report = judge(&flights(&[(1, late)]));
    assert_eq!((report.is_in_order(), &report.missing[..]), (Some(false), &[0][..]));
}

#[test]
fn a_library_without_progress_says_only_what_has_ended() {
    let ended = DONE.replace("done", "ended");
    let (_, report) = two(&ended, &ended);
    assert_eq!((report.is_in_order(), report.waits.len()), (None, 0));
    assert!(report.notes[0].contains("records no progress"));
    let (_, report) = two(&format!("{ended}\n dp 3 all_reduce Float 8 8 scheduled"), &ended);
    assert_eq!(report.waits[0].number, 3);
}

#[test]
fn coalesced_launches_are_one() {
    let first = "dp 1 _all_gather_base Float 4 8 scheduled\n dp 1 _all_gather_base Float 2 4 scheduled
                 dp 1 coalesced Float 0 0 done";
    let second = "dp 1 all_gather_into_tensor_coalesced Float 6 12 done";
    let (flights, report) = two(first, second);
    let launches = &flights.ranks[&0].launches;
    assert_eq!((launches.len(), launches[0].elements), (1, [Some(6), Some(12)]));
    assert_eq!(report.is_in_order(), Some(true), "{report:?}");
}

/// The ring may begin, and a dump be made, in the middle of a coalesced launch.
#[test]
fn half_a_coalesced_launch_is_no_mismatch() {
    let half = "dp 1 _all_gather_base Float 2 4 scheduled\n dp 1 coalesced Float 0 0 started";
    let whole = format!("dp 1 _all_gather_base Float 4 8 scheduled\n {half}");
    let report = judge(&flights(&[(0, dump(&whole, DP, 0)), (1, dump(half, DP, 1))]));
    assert_eq!(report.mismatches, [], "its beginning is lost");
    let other = "dp 1 all_reduce Float 2 2 scheduled";
    let report = judge(&flights(&[(0, dump(&whole, DP, 0)), (1, dump(other, DP, 1))]));
    assert_eq!(report.mismatches, [], "what is lost may be another");
    let begun = whole.lines().next().unwrap();
    let (_, report) = two(&whole, begun);
    assert_eq!(report.mismatches, [], "the rest is not launched yet");
    let (_, report) = two(&whole, other);
    assert_eq!(report.mismatches.len(), 1, "a sum is no gather");
}

#[test]
fn one_name_may_be_several_groups() {
    let of = |rank: u32, ranks: &[u32], size: &str| {
        (rank, dump(&format!("tp 1 all_reduce Float {size} {size} done"), &[("tp", ranks)], 0))
    };
    let flights =
        flights(&[of(0, &[0, 1], "4"), of(1, &[0, 1], "4"), of(2, &[2, 3], "9"), of(3, &[2, 3], "9")]);
    assert_eq!(flights.groups.len(), 2);
    assert_eq!(judge(&flights).is_in_order(), Some(true));
}

fn case() -> Case {
    text::parse(
        br#"world 2 ranks, groups dp = [0 1]
x = input : f32[4]
a = all_gather(x, dp)
aw = wait(a)
r = relu(aw)
b = all_reduce(r, "sum", dp)
bw = wait(b)
c = all_reduce(bw, "sum", dp)
cw = wait(c)
s = reduce_scatter(cw, "sum", dp)
sw = wait(s)
output (sw)
"#,
    )
    .unwrap()
}

const STEP: [&str; 4] = [
    "_all_gather_base Float 4 8",
    "all_reduce Float 8 8",
    "all_reduce Float 8 8",
    "_reduce_scatter_base Float 8 4",
];

/// The record of these launches of the step, one after the other.
fn aligned(steps: impl IntoIterator<Item = &'static str>, group: &str) -> (Flights, Alignment) {
    let lines: Vec<String> =
        steps.into_iter().enumerate().map(|(i, step)| format!("{group} {} {step} done", i + 1)).collect();
    let flights = flights(&[(0, dump(&lines.join("\n"), &[(group, &[0, 1])], 0))]);
    let case = case();
    let programs = Programs::spmd(&case.graph, &Estimates::default());
    let alignment = align(&flights, 0, &programs.programs[0], &programs.world);
    (flights, alignment)
}

#[test]
fn a_record_finds_its_place_in_the_graph() {
    for length in 1..=14 {
        let (_, alignment) = aligned(STEP.iter().copied().cycle().take(length), "dp");
        let [place] = alignment.last[..] else { panic!("{length}: {alignment:?}") };
        assert_eq!((place.launch, place.operation), (length - 1, (length - 1) % 4), "{length}");
        assert_eq!((alignment.fits, alignment.deviates), (length.min(12), None), "{length}");
        assert_eq!(alignment.row.last(), Some(&place));
    }
    // Another name for the same ranks.
    let (_, alignment) = aligned(STEP, "17");
    assert_eq!(alignment.last[0].operation, 3);
}

#[test]
fn what_fits_in_several_places_is_not_decided() {
    let (_, alignment) = aligned([STEP[1]], "dp");
    let operations: Vec<usize> = alignment.last.iter().map(|place| place.operation).collect();
    assert_eq!((operations, alignment.row.len()), (vec![1, 2], 0));
}

#[test]
fn a_launch_that_the_graph_does_not_make_next_is_told() {
    let (_, alignment) = aligned([STEP[0], STEP[1], STEP[2], "all_reduce Float 1 1"], "dp");
    assert_eq!((alignment.last[0].operation, alignment.fits, alignment.deviates), (2, 3, Some(3)));
    let (_, alignment) = aligned([STEP[0], STEP[1], STEP[3]], "dp");
    assert_eq!((alignment.last[0].operation, alignment.deviates), (1, Some(2)));
    let (_, nothing) = aligned(["broadcast Float 1 1"], "dp");
    assert_eq!((nothing.last.len(), nothing.of), (0, 1));
}

#[test]
fn a_group_that_the_graph_does_not_have_is_told() {
    let launches = format!("dp 1 {} done\nworld 1 {} done", STEP[0], STEP[1]);
    let flights = flights(&[(0, dump(&launches, &[("dp", &[0, 1]), ("world", &[0, 1, 2, 3])], 0))]);
    let case = case();
    let programs = Programs::spmd(&case.graph, &Estimates::default());
    let alignment = align(&flights, 0, &programs.programs[0], &programs.world);
    assert_eq!((alignment.unknown_groups.len(), alignment.of, alignment.fits), (1, 1, 1));
}

/// The Z function against its definition.
#[test]
fn the_z_function_is_what_it_says() {
    let mut state = 1u64;
    for _ in 0..200 {
        let text: Vec<u32> = (0..20)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 33) as u32 % 2
            })
            .collect();
        let slow = |i: usize| text[i..].iter().zip(&text).take_while(|(a, b)| a == b).count();
        let expected: Vec<usize> = (0..text.len()).map(|i| if i == 0 { 0 } else { slow(i) }).collect();
        assert_eq!(align::z_function(&text), expected);
    }
}
