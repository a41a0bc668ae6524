//! Forms as a browser sends them: `key=value&key=value`, with what has a meaning written as `%3D`.

/// The fields of a form, in order; `None` where they are not UTF-8.
pub(super) fn fields(form: &[u8]) -> Option<Vec<(String, String)>> {
    let pieces = form.split(|&byte| byte == b'&').filter(|piece| !piece.is_empty());
    let field = |piece: &[u8]| {
        let at = piece.iter().position(|&byte| byte == b'=').unwrap_or(piece.len());
        let value = piece.get(at + 1..).unwrap_or_default();
        Some((decoded(&piece[..at], true)?, decoded(value, true)?))
    };
    pieces.map(field).collect()
}

/// Text without its escapes. In forms a plus is a space.
pub(super) fn decoded(text: &[u8], is_form: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let digit = |at: usize| text.get(at).and_then(|&digit| char::from(digit).to_digit(16));
        let escaped = digit(at + 1).zip(digit(at + 2)).map(|(high, low)| (16 * high + low) as u8);
        match (byte, escaped) {
            (b'%', Some(value)) => {
                bytes.push(value);
                at += 2;
            }
            (b'+', _) if is_form => bytes.push(b' '),
            _ => bytes.push(byte),
        }
        at += 1;
    }
    String::from_utf8(bytes).ok()
}

/// Text with everything escaped that is no letter, digit or one of `-_.~`, and slashes kept where they are steps of a
/// path.
pub(super) fn encoded(text: &str, keeps_slashes: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for &byte in text.as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            b'/' if keeps_slashes => out.push('/'),
            _ => out += &format!("%{byte:02X}"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_escaped_comes_back() {
        let text = "a=b & c+d\n%\u{202e}/";
        assert_eq!(decoded(encoded(text, false).as_bytes(), true).unwrap(), text);
        let form = format!("x={}&y=a+b&z&=1", encoded(text, true));
        let fields = fields(form.as_bytes()).unwrap();
        let expected = [("x", text), ("y", "a b"), ("z", ""), ("", "1")];
        assert_eq!(fields, expected.map(|(key, value)| (key.to_string(), value.to_string())));
        assert_eq!(super::fields(b"x=%ff"), None);
        assert_eq!(decoded(b"%zz%+4%4", true).unwrap(), "%zz% 4%4");
    }
}
