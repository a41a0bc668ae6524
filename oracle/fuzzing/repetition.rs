//! One line many times: what the judge does for a graph grows no faster than the graph.
//!
//! A small case in which a line stands ten thousand times under fresh names is long in one way: a chain of writes, views
//! of one storage, users of one value, outputs, symbols, faults. Whoever scans or copies a list once for each of its
//! elements takes sixteen times longer for four times the lines.

use crate::candidates::{Outcome, Reference, judging};
use crate::case::{Case, PassConfig};
use crate::format::text;
use crate::judge::{self, Options, Values};
use std::time::{Duration, Instant};

/// The text at most, in bytes, so that its length is that of the line that is repeated.
const MOST_TEXT: usize = 4096;

/// Ranks of a world at most.
const MOST_RANKS: u32 = 8;

/// Times that the line stands there. Builds for debugging, which are slow and run beside others, look at no clock.
const TIMES: usize = if cfg!(debug_assertions) { 100 } else { 10_000 };

/// What is soon enough, whatever it is compared with.
const SOON: Duration = Duration::from_secs(2);

/// Judges a case with one of its lines a quarter as often, and then as often as is asked for: the one whose number the
/// comment `# repeat 3` gives, or else one by the length of the text.
pub fn check(data: &[u8]) {
    let Some((short, long)) = std::str::from_utf8(data).ok().and_then(repeated) else { return };
    let before = judged(&short);
    let took = judged(&long);
    let is_soon = took < SOON || took < 10 * before;
    assert!(cfg!(debug_assertions) || is_soon, "{before:?} for a quarter of the lines, {took:?} for all");
}

/// The case with one line repeated, a quarter as often and as often as is asked for.
fn repeated(given: &str) -> Option<(Case, Case)> {
    if given.len() > MOST_TEXT {
        return None;
    }
    let lines: Vec<&str> = given.lines().collect();
    let asked = lines.iter().find_map(|line| line.strip_prefix("# repeat ")?.trim().parse::<usize>().ok());
    let at = asked.unwrap_or(given.len()).checked_rem(lines.len())?;
    let case = |times: usize| {
        let again = (0..times).map(|number| renamed(lines[at], number));
        let all = lines[..at].iter().map(|line| line.to_string()).chain(again);
        let all: Vec<String> = all.chain(lines[at..].iter().map(|line| line.to_string())).collect();
        let case = text::parse(all.join("\n").as_bytes()).ok()?;
        (case.graph.world.ranks.unwrap_or(1) <= MOST_RANKS).then_some(case)
    };
    Some((case(TIMES / 4)?, case(TIMES)?))
}

/// The line with a fresh name for the node that it makes, if it makes one.
fn renamed(line: &str, number: usize) -> String {
    let is_word = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match line.split_once('=') {
        Some((name, rest)) if is_word(name.trim()) => format!("{}_{number} ={rest}", name.trim()),
        _ => line.to_string(),
    }
}

/// How long it takes to judge that nothing was changed, and what the reference of the case's pass gives.
fn judged(case: &Case) -> Duration {
    let start = Instant::now();
    let options = Options { values: Values::Symbolic, ..judging() };
    let unchanged = Outcome { unrepaired: None, repaired: case.graph.clone() };
    let _ = judge::judge_outcomes(&case.graph, &PassConfig::new("rewrite"), &[(None, unchanged)], &options);
    if case.pass.is_some() {
        let _ = judge::judge(case, &Reference, &options);
    }
    start.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_repeated_under_fresh_names() {
        let text = "# repeat 2\nx = input : f32[4]\na = neg(x)\noutput a\n";
        let (short, long) = repeated(text).unwrap();
        assert_eq!((short.graph.len(), long.graph.len()), (TIMES / 4 + 3, TIMES + 3));
        assert!(long.graph.find("a_0").is_some() && long.graph.find("a").is_some());
        // What makes no node stands there as it is.
        assert_eq!(
            repeated("# repeat 2\nx = input : f32[4]\noutput x").unwrap().0.graph.len(),
            TIMES / 4 + 2
        );
    }
}
