//! Words of others on a page: nothing that they hold may act, hide or turn the direction of writing.

use ir::format::is_hidden;
use maud::PreEscaped;
use serde_json::Value;
use std::fmt::Write;

/// Text of several lines in which every character can be seen: what hides is written as `\u{202e}`.
pub fn visible(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    for c in text.chars() {
        match is_hidden(c) || is_invisible(c) {
            true => write!(seen, "\\u{{{:x}}}", c as u32).unwrap_or_default(),
            false => seen.push(c),
        }
    }
    seen
}

/// The same on one line: line feeds and tabs are written out too.
pub fn line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// Characters without width, and those that no text may hold.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Data for a script, to stand in `<script type="application/json">`: no text in it ends the element, and no character
/// ends a line.
pub fn json_for_script(data: &Value) -> PreEscaped<String> {
    let text = data.to_string();
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                write!(safe, "\\u{:04x}", c as u32).unwrap_or_default();
            }
            c => safe.push(c),
        }
    }
    PreEscaped(safe)
}

/// Bytes in the largest unit of which there is one: `1.57 GiB`.
pub fn bytes(count: i64) -> String {
    const UNITS: [(f64, &str); 4] =
        [(1099511627776.0, "TiB"), (1073741824.0, "GiB"), (1048576.0, "MiB"), (1024.0, "KiB")];
    let size = count as f64;
    match UNITS.iter().find(|(unit, _)| size.abs() >= *unit) {
        Some((unit, name)) => format!("{:.2} {name}", size / unit),
        None => format!("{count} B"),
    }
}

/// Nanoseconds in a unit that fits: `1.250 ms`.
pub fn duration(nanoseconds: u64) -> String {
    let time = nanoseconds as f64;
    match nanoseconds {
        0 => "0".to_string(),
        n if n < 1_000 => format!("{n} ns"),
        n if n < 1_000_000 => format!("{:.1} µs", time / 1e3),
        n if n < 1_000_000_000 => format!("{:.2} ms", time / 1e6),
        _ => format!("{:.3} s", time / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_hides_is_written_out() {
        assert_eq!(visible("a\u{202e}b\u{0}\u{200b}\nc"), "a\\u{202e}b\\u{0}\\u{200b}\nc");
        assert_eq!(line("a\nb\tc"), "a\\nb\\tc");
    }

    #[test]
    fn data_does_not_end_its_element() {
        let data = json!(["</script><!--", "\u{2028}", "&amp;"]);
        let safe = json_for_script(&data).0;
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']), "{safe}");
        assert_eq!(serde_json::from_str::<Value>(&safe).unwrap(), data);
    }

    #[test]
    fn figures_have_units() {
        assert_eq!([0, 1023, 1536, -1 << 31].map(bytes), ["0 B", "1023 B", "1.50 KiB", "-2.00 GiB"]);
        let times = [0, 12, 1_500, 2_500_000, 3_000_000_000].map(duration);
        assert_eq!(times, ["0", "12 ns", "1.5 µs", "2.50 ms", "3.000 s"]);
    }
}
