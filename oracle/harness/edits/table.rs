//! A sweep in print: a row for each edit, a row for each rule, and a line for each edit that slept or was a wolf.

use super::sweep::{Edited, Said, Sweep};
use super::{Edit, catalogue};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// The edits of one row, or of all rows of a kind.
#[derive(Clone, Debug, Default)]
struct Row {
    tried: usize,
    convicted: usize,
    sound: usize,
    undecided: usize,
    cut_off: usize,
    panicked: usize,
    times: Vec<Duration>,
}

impl Row {
    fn of<'e>(edited: impl Iterator<Item = &'e Edited>) -> Row {
        let mut row = Row::default();
        for one in edited {
            row.tried += 1;
            match one.said {
                Said::Violated(_) => row.convicted += 1,
                Said::Sound => row.sound += 1,
                Said::Undecided(_) => row.undecided += 1,
                Said::CutOff => row.cut_off += 1,
                Said::Panicked => row.panicked += 1,
            }
            row.times.push(one.time);
        }
        row.times.sort_unstable();
        row
    }

    /// The time that this share of the verdicts did not exceed, in seconds.
    fn quantile(&self, share: f64) -> f64 {
        let last = self.times.len().saturating_sub(1);
        self.times.get((last as f64 * share).ceil() as usize).map_or(0.0, Duration::as_secs_f64)
    }

    /// Slept where the edits are wrong, wolf where they are right.
    fn missed(&self, keeps: bool) -> usize {
        if keeps { self.convicted } else { self.sound }
    }

    fn right(&self, keeps: bool) -> usize {
        if keeps { self.sound } else { self.convicted }
    }
}

fn of_edit(sweep: &Sweep, number: usize) -> Row {
    Row::of(sweep.edited.iter().filter(|one| one.edit == number))
}

fn of_kind(sweep: &Sweep, catalogue: &[Edit], keeps: bool) -> Row {
    Row::of(sweep.edited.iter().filter(|one| catalogue[one.edit].keeps == keeps))
}

/// Convictions by the rule that comes first.
fn by_rule<'s>(sweep: &'s Sweep, catalogue: &[Edit], keeps: bool) -> BTreeMap<&'s str, usize> {
    let mut rules = BTreeMap::new();
    for one in sweep.edited.iter().filter(|one| catalogue[one.edit].keeps == keeps) {
        if let Said::Violated(rule) = one.said {
            *rules.entry(rule).or_insert(0) += 1;
        }
    }
    rules
}

fn percent(part: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { 100.0 * part as f64 / of as f64 }
}

/// The tables, as Markdown.
pub fn text(sweep: &Sweep) -> String {
    let catalogue = catalogue();
    let mut text = String::new();
    for keeps in [false, true] {
        let (kind, good, bad) = match keeps {
            false => ("wrong by construction", "convicted", "slept"),
            true => ("right by construction", "sound", "wolf"),
        };
        let _ = writeln!(
            text,
            "| {kind} | places | left out | tried | {good} | undecided | {bad} | cut off | median s | most s |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
        );
        for (number, edit) in catalogue.iter().enumerate().filter(|(_, edit)| edit.keeps == keeps) {
            let row = of_edit(sweep, number);
            let (places, left_out) = (sweep.places.get(number), sweep.left_out.get(number));
            let (places, left_out) = (places.copied().unwrap_or(0), left_out.copied().unwrap_or(0));
            if places + left_out > 0 {
                text += &line(edit.name, Some((places, left_out)), &row, keeps);
            }
        }
        text += &line("all", None, &of_kind(sweep, &catalogue, keeps), keeps);
        text.push('\n');
    }
    text += "| rule that comes first | wrong | right |\n|---|--:|--:|\n";
    let (wrong, right) = (by_rule(sweep, &catalogue, false), by_rule(sweep, &catalogue, true));
    let mut rules: Vec<&str> = wrong.keys().chain(right.keys()).copied().collect();
    rules.sort_by_key(|rule| (std::cmp::Reverse(wrong.get(rule)), *rule));
    rules.dedup();
    for rule in rules {
        let count = |rules: &BTreeMap<&str, usize>| rules.get(rule).copied().unwrap_or(0);
        let _ = writeln!(text, "| {rule} | {} | {} |", count(&wrong), count(&right));
    }
    let (wrong, right) = (of_kind(sweep, &catalogue, false), of_kind(sweep, &catalogue, true));
    let all = Row::of(sweep.edited.iter());
    let own = sweep.right.as_secs_f64();
    let _ = writeln!(
        text,
        "\n{} of {} wrong edits convicted ({:.1}%), {} slept; {} of {} right edits sound, {} wolf.\n\
         A verdict takes {:.3} s (median), {:.3} s (99 of 100), {:.3} s (most); that of the outcome itself {own:.3} s.",
        wrong.convicted,
        wrong.tried,
        percent(wrong.convicted, wrong.tried),
        wrong.sound,
        right.sound,
        right.tried,
        right.convicted,
        all.quantile(0.5),
        all.quantile(0.99),
        all.quantile(1.0),
    );
    if all.panicked > 0 {
        let _ = writeln!(text, "{} verdicts ended in a panic: a fault of graph-oracle.", all.panicked);
    }
    for why in &sweep.undecided {
        let _ = writeln!(text, "The outcome itself is undecided: {why}");
    }
    text
}

fn line(name: &str, places: Option<(usize, usize)>, row: &Row, keeps: bool) -> String {
    let (places, left_out) = match places {
        Some((places, left_out)) => (places.to_string(), left_out.to_string()),
        None => (String::new(), String::new()),
    };
    format!(
        "| {name} | {places} | {left_out} | {} | {} | {} | {} | {} | {:.3} | {:.3} |\n",
        row.tried,
        row.right(keeps),
        row.undecided + row.panicked,
        row.missed(keeps),
        row.cut_off,
        row.quantile(0.5),
        row.quantile(1.0),
    )
}

/// What one edit was and what became of it, in one line.
fn one_line(edit: &Edit, one: &Edited) -> String {
    let said = match &one.said {
        Said::Violated(rule) if edit.keeps => format!("WOLF by {rule}"),
        Said::Violated(rule) => format!("convicted by {rule}"),
        Said::Sound if edit.keeps => "sound".to_string(),
        Said::Sound => "SLEPT".to_string(),
        Said::Undecided(why) => format!("undecided: {}", why.lines().next().unwrap_or_default()),
        Said::CutOff => "cut off".to_string(),
        Said::Panicked => "PANICKED".to_string(),
    };
    format!("{} (graph {}): {}: {said}, {:.3} s", edit.name, one.graph, one.what, one.time.as_secs_f64())
}

/// A line for each edit: those that slept and wolves, those that were not decided or cut off too, or all of them.
pub fn lines(sweep: &Sweep, undecided: bool, all: bool) -> String {
    let catalogue = catalogue();
    let wanted = |one: &&Edited| {
        let is_open = matches!(one.said, Said::Undecided(_) | Said::CutOff | Said::Panicked);
        all || one.slept(&catalogue) || one.is_wolf(&catalogue) || undecided && is_open
    };
    sweep.edited.iter().filter(wanted).map(|one| one_line(&catalogue[one.edit], one) + "\n").collect()
}

/// The same for machines.
pub fn json(sweep: &Sweep) -> Value {
    let catalogue = catalogue();
    let edits: Vec<Value> = catalogue
        .iter()
        .enumerate()
        .filter(|(number, _)| sweep.places.get(*number).is_some_and(|&places| places > 0))
        .map(|(number, edit)| {
            let row = of_edit(sweep, number);
            json!({
                "edit": edit.name,
                "about": edit.about,
                "keeps_meaning": edit.keeps,
                "places": sweep.places[number],
                "left_out": sweep.left_out[number],
                "tried": row.tried,
                "convicted": row.convicted,
                "sound": row.sound,
                "undecided": row.undecided,
                "cut_off": row.cut_off,
                "panicked": row.panicked,
                "median_seconds": row.quantile(0.5),
                "most_seconds": row.quantile(1.0),
            })
        })
        .collect();
    let made: Vec<Value> = sweep
        .edited
        .iter()
        .map(|one| {
            let (said, detail) = match &one.said {
                Said::Violated(rule) => ("violated", Value::from(*rule)),
                Said::Undecided(why) => ("undecided", Value::from(why.as_str())),
                Said::Sound => ("sound", Value::Null),
                Said::CutOff => ("cut off", Value::Null),
                Said::Panicked => ("panicked", Value::Null),
            };
            json!({
                "edit": catalogue[one.edit].name,
                "graph": one.graph,
                "what": one.what,
                "said": said,
                "detail": detail,
                "seconds": one.time.as_secs_f64(),
            })
        })
        .collect();
    let all = Row::of(sweep.edited.iter());
    json!({
        "edits": edits,
        "made": made,
        "seconds": {
            "outcome": sweep.right.as_secs_f64(),
            "median": all.quantile(0.5),
            "p99": all.quantile(0.99),
            "most": all.quantile(1.0),
        },
        "outcome_undecided": sweep.undecided,
    })
}
