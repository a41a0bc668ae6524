//! Live bytes over the steps, as a picture: the replay as an area, the profile as a line, both peaks marked, and the
//! contents of the true peak listed beside. The same graph gives the same picture, byte for byte.

use super::MemoryReport;
use crate::memory::Steps;
use std::fmt::Write;

const LEFT: f64 = 84.0;
const TOP: f64 = 72.0;
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 380.0;
const LIST: f64 = 400.0;
const ROW: f64 = 19.0;

/// Where the steps are drawn, for whoever puts something over the picture: x of the first, and the width of all.
pub const STEPS_AT: (f64, f64) = (LEFT, WIDTH);

/// Where the bytes are drawn: y of the most, and the height of all.
pub const BYTES_AT: (f64, f64) = (TOP, HEIGHT);

const AREA: &str = "#dcecfb";
const CALLER: &str = "#c9dcf0";
const REPLAY: &str = "#1f5f9e";
const PROFILE: &str = "#b35c0c";
const INK: &str = "#1d1d1f";
const QUIET: &str = "#6b6b66";
const GRID: &str = "#e4e4df";

/// The picture of a report.
pub fn svg(report: &MemoryReport) -> String {
    let (profile, replay) = (&report.profile.steps, &report.replay.steps);
    let most = profile.peak().0.max(replay.peak().0).max(1) as f64;
    let unit = Unit::of(most);
    let top = unit.ceiling(most);
    let x = |step: f64| LEFT + WIDTH * step / (replay.steps.len().max(1) as f64);
    let y = |bytes: f64| TOP + HEIGHT * (1.0 - bytes / top);
    let notes = notes(report);
    let height = TOP + HEIGHT + 66.0 + ROW * notes.len() as f64;
    let width = LEFT + WIDTH + LIST + 36.0;
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"ui-sans-serif, system-ui, sans-serif\" font-size=\"12\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    let title = format!("Live memory of {}", report.graph.name);
    text(&mut out, LEFT, 26.0, INK, "font-size=\"17\" font-weight=\"600\"", &title);
    legend(&mut out, LEFT, 48.0, report);
    for i in 0..=4 {
        let bytes = top * f64::from(i) / 4.0;
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{1:.1}\" y2=\"{1:.1}\" stroke=\"{GRID}\"/>",
            LEFT + WIDTH,
            y(bytes)
        );
        text(&mut out, LEFT - 8.0, y(bytes) + 4.0, QUIET, "text-anchor=\"end\"", &unit.text(bytes));
        let step = replay.steps.len() * i as usize / 4;
        text(
            &mut out,
            x(step as f64),
            TOP + HEIGHT + 18.0,
            QUIET,
            "text-anchor=\"middle\"",
            &step.to_string(),
        );
    }
    text(&mut out, LEFT + WIDTH / 2.0, TOP + HEIGHT + 36.0, QUIET, "text-anchor=\"middle\"", "step");
    let line = path(replay, &x, &y);
    let _ = writeln!(
        out,
        "<path d=\"M{LEFT} {0:.1} L{line} L{1:.1} {0:.1} Z\" fill=\"{AREA}\"/>",
        TOP + HEIGHT,
        LEFT + WIDTH
    );
    let caller = callers(report) as f64;
    if caller > 0.0 {
        let _ = writeln!(
            out,
            "<rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{WIDTH}\" height=\"{:.1}\" fill=\"{CALLER}\"/>",
            y(caller),
            TOP + HEIGHT - y(caller)
        );
        let words = format!("the caller's inputs and constants: {}", unit.text(caller));
        text(&mut out, LEFT + 10.0, TOP + HEIGHT - 10.0, QUIET, "", &words);
    }
    let _ = writeln!(out, "<path d=\"M{line}\" fill=\"none\" stroke=\"{REPLAY}\" stroke-width=\"1.5\"/>");
    let line = path(profile, &x, &y);
    let _ = writeln!(
        out,
        "<path d=\"M{line}\" fill=\"none\" stroke=\"{PROFILE}\" stroke-width=\"1.5\" stroke-dasharray=\"5 3\"/>"
    );
    for (steps, colour) in [(replay, REPLAY), (profile, PROFILE)] {
        let (bytes, step) = steps.peak();
        let at = step.map_or(0.0, |step| f64::from(step) + 0.5);
        let _ = writeln!(
            out,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4.5\" fill=\"#ffffff\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            x(at),
            y(bytes as f64)
        );
    }
    if let Some(step) = report.difference.as_ref().and_then(|difference| difference.step) {
        let _ = writeln!(
            out,
            "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"{TOP}\" y2=\"{1}\" stroke=\"#d50000\" stroke-dasharray=\"2 3\"/>",
            x(f64::from(step) + 0.5),
            TOP + HEIGHT
        );
    }
    contents(&mut out, LEFT + WIDTH + 28.0, TOP, report, &unit);
    for (i, note) in notes.iter().enumerate() {
        text(&mut out, LEFT, TOP + HEIGHT + 62.0 + ROW * i as f64, INK, "", note);
    }
    out.push_str("</svg>\n");
    out
}

/// Bytes that are there before the first step and are never freed.
fn callers(report: &MemoryReport) -> i64 {
    let lives = report.replay.lives.iter().filter(|life| life.start.is_none() && life.end.is_none());
    lives.fold(0, |sum, life| sum.saturating_add(life.bytes))
}

/// Where the two part, and why, in lines that fit.
fn notes(report: &MemoryReport) -> Vec<String> {
    let mut notes = report.notes();
    match &report.difference {
        None => notes.push("The profile and the replay agree at every step.".to_string()),
        Some(difference) => {
            notes.push(format!("They part first {} (red line).", difference.describe(report.graph)));
            notes.extend(difference.why.iter().take(2).map(|why| format!("Because {why}.")));
            notes.extend(
                report.peak_causes().into_iter().map(|cause| format!("At the profile's peak {cause}.")),
            );
        }
    }
    const LONGEST: usize = 210;
    let shorten = |note: String| match note.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{} ...", &note[..end]),
        None => note,
    };
    notes.into_iter().map(shorten).collect()
}

fn legend(out: &mut String, left: f64, y: f64, report: &MemoryReport) {
    let mut x = left;
    for (steps, colour, dash, what) in [
        (&report.replay.steps, REPLAY, "", "replay, the storages of the run time"),
        (&report.profile.steps, PROFILE, " stroke-dasharray=\"5 3\"", "profile, as PyTorch counts"),
    ] {
        let _ = writeln!(
            out,
            "<line x1=\"{x}\" x2=\"{}\" y1=\"{1}\" y2=\"{1}\" stroke=\"{colour}\" stroke-width=\"2\"{dash}/>",
            x + 24.0,
            y - 4.0
        );
        let words = format!("{what}: peak {} bytes", thousands(steps.peak().0));
        text(out, x + 30.0, y, INK, "", &words);
        x += 450.0;
    }
}

fn contents(out: &mut String, left: f64, top: f64, report: &MemoryReport, unit: &Unit) {
    let place = report.place(&report.replay.steps, report.replay.steps.peak().1);
    text(out, left, top, INK, "font-weight=\"600\"", "Live at the replay's peak");
    text(out, left, top + ROW, QUIET, "", &place);
    let listed = report.listed();
    // The others together are drawn no longer than the list is wide.
    let most = listed.iter().take(super::LISTED).map(|(bytes, _)| *bytes).max().unwrap_or(1).max(1) as f64;
    for (i, (bytes, what)) in listed.iter().enumerate() {
        let y = top + ROW * (i as f64 * 1.35 + 2.4);
        let _ = writeln!(
            out,
            "<rect x=\"{left}\" y=\"{:.1}\" width=\"{:.1}\" height=\"20\" rx=\"3\" fill=\"{AREA}\"/>",
            y - 14.0,
            (LIST * *bytes as f64 / most).clamp(1.0, LIST)
        );
        const LONGEST: usize = 52;
        let shown: String = match what.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}...", &what[..end]),
            None => what.clone(),
        };
        text(out, left + 70.0, y, INK, "", &shown);
        text(out, left + 62.0, y, REPLAY, "text-anchor=\"end\" font-size=\"11\"", &unit.text(*bytes as f64));
    }
}

/// The most live bytes of each stretch of steps, as the points of a line; stretches are half a pixel at least.
fn path(steps: &Steps, x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) -> String {
    let mut line = format!("{:.1} {:.1}", x(0.0), y(steps.before as f64));
    let stretch = (steps.steps.len() as f64 / (2.0 * WIDTH)).ceil().max(1.0) as usize;
    for (i, chunk) in steps.steps.chunks(stretch).enumerate() {
        let most = chunk.iter().map(|step| step.peak).max().unwrap_or(steps.before);
        let (from, to) = (i * stretch, i * stretch + chunk.len());
        let y = y(most as f64);
        let _ = write!(line, " L{:.1} {y:.1} L{:.1} {y:.1}", x(from as f64), x(to as f64));
    }
    line
}

/// A unit that makes readable numbers.
struct Unit {
    bytes: f64,
    name: &'static str,
}

impl Unit {
    fn of(most: f64) -> Unit {
        const UNITS: [(f64, &str); 4] =
            [(1073741824.0, "GiB"), (1048576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")];
        let (bytes, name) = UNITS.into_iter().find(|(bytes, _)| most >= *bytes).unwrap_or((1.0, "B"));
        Unit { bytes, name }
    }

    /// A round number, not below `most`.
    fn ceiling(&self, most: f64) -> f64 {
        let most = most / self.bytes;
        let magnitude = 10f64.powf(most.log10().floor());
        let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 5.0, 6.0, 8.0, 10.0];
        let round = steps.into_iter().map(|step| step * magnitude).find(|&round| round >= most);
        round.unwrap_or(most) * self.bytes
    }

    fn text(&self, bytes: f64) -> String {
        let number = bytes / self.bytes;
        if number >= 100.0 || number.fract() == 0.0 {
            format!("{number:.0} {}", self.name)
        } else {
            format!("{number:.2} {}", self.name)
        }
    }
}

/// `35,086,222,080`.
fn thousands(n: i64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn text(out: &mut String, x: f64, y: f64, colour: &str, more: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let clean: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\" {more}>{clean}</text>");
}
