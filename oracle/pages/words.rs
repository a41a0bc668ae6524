//! Words of others on a page: nothing that they hold may act, hide or turn the direction of writing.

use maud::PreEscaped;
use serde_json::Value;
use std::fmt::Write;

pub use ir::words::visible;

/// The same on one line: line feeds and tabs are written out too.
pub fn line(text: &str) -> String {
    let mut line = visible(text).replace('\n', "\\n").replace('\t', "\\t");
    ir::words::cut(&mut line);
    line
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_hides_is_written_out() {
        assert_eq!(visible("a\u{202e}b\u{0}\u{200b}\nc"), "a\\u202eb\\u0000\\u200b\nc");
        assert_eq!(line("a\nb\tc"), "a\\nb\\tc");
    }

    #[test]
    fn data_does_not_end_its_element() {
        let data = json!(["</script><!--", "\u{2028}", "&amp;"]);
        let safe = json_for_script(&data).0;
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']), "{safe}");
        assert_eq!(serde_json::from_str::<Value>(&safe).unwrap(), data);
    }
}
