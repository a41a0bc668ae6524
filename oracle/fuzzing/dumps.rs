//! Dumps of a running program, as pickles and as JSON, are read or refused, and judged alike twice.

use crate::format::objects::{Allowance, read_json};
use crate::format::recognise::{recognise, recognise_objects};
use crate::format::{flight_recorder, memory_snapshot, pickle};
use crate::simulate::flight::{Flights, judge};
use models::lifecycle::judge_device;

/// Objects that are held and looked at: little memory, and an answer soon.
const MOST: u64 = 1 << 16;

/// On the bytes of a dump.
pub fn check(data: &[u8]) {
    if let Some(kind) = recognise(data, MOST) {
        assert!(!kind.advice().is_empty());
    }
    let allowance = Allowance::new(MOST);
    let objects = match pickle::is_pickle(data) {
        true => pickle::read(data, &allowance).map_err(|error| {
            assert!(error.offset <= data.len());
            error.to_string()
        }),
        false => read_json(data, &allowance),
    };
    let Ok(objects) = objects else { return };
    let _ = recognise_objects(&objects);
    if let Ok(snapshot) = memory_snapshot::read(objects.root(), &Allowance::new(MOST)) {
        for device in &snapshot.devices {
            let report = judge_device(device);
            assert_eq!(report, judge_device(device));
            assert!(report.faults.len() <= report.events);
        }
    }
    if let Ok(dump) = flight_recorder::read(objects.root(), &Allowance::new(MOST)) {
        let report = judge(&Flights::new(&[(0, dump.clone()), (1, dump)].into()));
        assert_eq!(report.mismatches, [], "a dump agrees with itself");
    }
}
