//! Notices made of what commands say in words.

use crate::report::results::{Level, Located, Notice, Place};

/// A notice of some lines: the first is the title.
pub(in crate::cli) fn notice(rule: &str, level: Level, words: &str, place: Option<Place>) -> Notice {
    let mut lines = words.lines();
    let title = lines.next().unwrap_or("").to_string();
    Notice {
        body: lines.map(String::from).collect(),
        located: Located { place, related: Vec::new() },
        ..Notice::new(rule, level, title)
    }
}
