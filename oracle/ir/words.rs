//! Words of messages, and how the words of others are shown among them.
//!
//! # Names
//!
//! A name from a file may hold anything, a line that looks like one of ours included. A reader hands a name to [`held`]:
//! its line feeds and tabs become noncharacters, which Unicode sets aside for use inside a program. So every line break
//! of a report is the report's own, whoever formats it. A writer of files hands it to [`released`]. What prints for
//! people hands each character to [`escape`].

use crate::limits::Limit;
use std::borrow::Cow;

/// Characters of names that would be layout, and what stands for them inside the program.
const LAYOUT: [(char, char); 2] = [('\n', '\u{fdd0}'), ('\t', '\u{fdd1}')];

/// A name as it is held: on one line. A noncharacter that stands for a line feed or a tab is replaced itself.
pub fn held(name: &str) -> Cow<'_, str> {
    let is_plain = name.bytes().all(|byte| !matches!(byte, b'\n' | b'\t' | 0xef));
    if is_plain {
        return Cow::Borrowed(name);
    }
    let hold = |c: char| match LAYOUT.iter().find(|(plain, inner)| c == *plain || c == *inner) {
        Some((plain, inner)) if c == *plain => *inner,
        Some(_) => char::REPLACEMENT_CHARACTER,
        None => c,
    };
    Cow::Owned(name.chars().map(hold).collect())
}

/// A name as it was before it was [`held`].
pub fn released(name: &str) -> Cow<'_, str> {
    if !name.contains(LAYOUT.map(|(_, inner)| inner)) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.chars().map(release).collect())
}

fn release(c: char) -> char {
    LAYOUT.iter().find(|(_, inner)| c == *inner).map_or(c, |(plain, _)| *plain)
}

/// How a character is shown that could steer a terminal, hide or pass for layout: as in JSON, `\u001b`. `None` of one
/// that is shown as it is.
pub fn escape(c: char) -> Option<String> {
    is_hidden(c).then(|| {
        let mut units = [0; 2];
        release(c).encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect()
    })
}

/// A text of several lines in which every character can be seen.
pub fn visible(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut seen, c| {
        match escape(c) {
            Some(escaped) => seen.push_str(&escaped),
            None => seen.push(c),
        }
        seen
    })
}

/// Whether a character could steer a terminal or hide in it: control characters but for line feeds and tabs, line ends
/// of other kinds, what turns the direction of writing, what has no width, and noncharacters.
pub fn is_hidden(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Nearly every character.
        ' '..='~' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fdd0}'..='\u{fdef}' => true,
        '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' => true,
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}' => true,
        c => c.is_control() || u32::from(c) & 0xfffe == 0xfffe,
    }
}

/// Cuts the middle out of a statement that is longer than [`Limit::Statement`].
pub fn cut(statement: &mut String) {
    let most = Limit::Statement.standard() as usize;
    if statement.len() <= most {
        return;
    }
    let boundary = |at: &usize| statement.is_char_boundary(*at);
    let from = (0..=most / 2).rev().find(boundary).unwrap_or(0);
    let to = (statement.len() - most / 4..).find(boundary).unwrap_or(statement.len());
    statement.replace_range(from..to, &format!(" [{} left out] ", count(to - from, "byte")));
}

/// A number and the noun that it counts, which takes an `s` in the plural: `1 output`, `2 outputs`.
pub fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Several of them: `1 output, 2 inputs and 0 effects`.
pub fn counts(of: &[(usize, &str)]) -> String {
    let words: Vec<String> = of.iter().map(|&(number, noun)| count(number, noun)).collect();
    match words.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// The longest word that is compared with names.
const LONGEST: usize = 64;

/// The name that somebody meant who wrote another one: the nearest, where a third of its letters or less are others, left
/// out, added or swapped, or the one whose last part it is.
pub fn near<'n>(given: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if given.is_empty() || given.len() > LONGEST {
        return None;
    }
    let given = given.to_lowercase();
    let distance = |name: &str| {
        let last = name.rsplit(['/', '=']).next().unwrap_or(name);
        if last == given { 0 } else { strsim::osa_distance(&given, &name.to_lowercase()) }
    };
    let most = (given.chars().count() / 3).max(1);
    let near = names.into_iter().map(|name| (distance(name), name));
    near.filter(|(distance, name)| *distance <= most && *distance < name.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The end of a message about a name that there is not: what may have been meant, and all that there are.
pub fn choices(given: &str, names: &[&str]) -> String {
    let all = names.join(", ");
    match near(given, names.iter().copied()) {
        Some(name) => format!(": did you mean {name:?}? There are: {all}"),
        None => format!("; there are: {all}"),
    }
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

/// The same of each line.
pub fn cut_lines(text: &mut String) {
    if text.len() > Limit::Statement.standard() as usize {
        let mut lines: Vec<String> = text.split('\n').map(String::from).collect();
        lines.iter_mut().for_each(cut);
        *text = lines.join("\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_line_and_come_back() {
        let name = "a\nb\tc\u{202e}\u{200b}\u{feff}\u{e0041}";
        assert!(!held(name).contains(['\n', '\t']));
        assert_eq!(released(&held(name)), name);
        assert_eq!(visible(&held(name)), "a\\u000ab\\u0009c\\u202e\\u200b\\ufeff\\udb40\\udc41");
        assert_eq!(visible("a\n\tb é"), "a\n\tb é");
        // Nobody else's noncharacter becomes a line break.
        assert_eq!(released(&held("\u{fdd0}")), "\u{fffd}");
    }

    #[test]
    fn statements_are_cut_in_the_middle() {
        let mut text = "é".repeat(100_000) + "end";
        cut(&mut text);
        assert!(text.len() <= Limit::Statement.standard() as usize && text.starts_with("éé"), "{text}");
        assert!(text.ends_with("end") && text.contains(" bytes left out] "), "{text}");
    }

    #[test]
    fn what_is_near_is_what_was_meant() {
        let names = ["bucketing", "repair", "rewrite", "bucket/members-independent", "collectives=same", "k"];
        for (given, meant) in [
            ("bucketng", Some("bucketing")),
            ("bukceting", Some("bucketing")),
            ("Repair", Some("repair")),
            ("members-independent", Some("bucket/members-independent")),
            ("bucket/member-independant", Some("bucket/members-independent")),
            ("same", Some("collectives=same")),
            ("write", None),
            ("nobody", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(near(given, names), meant, "{given}");
        }
        assert_eq!(near(&"bucketing".repeat(10), names), None);
        assert_eq!(choices("repare", &["repair", "a"]), ": did you mean \"repair\"? There are: repair, a");
        assert_eq!(choices("x", &["repair", "a"]), "; there are: repair, a");
    }

    #[test]
    fn one_is_singular_and_all_else_plural() {
        assert_eq!([0, 1, 2].map(|n| count(n, "output")), ["0 outputs", "1 output", "2 outputs"]);
    }

    #[test]
    fn several_are_a_list() {
        let of = [(1, "output"), (2, "input"), (0, "effect")];
        let words = [1, 2, 3].map(|n| counts(&of[..n]));
        assert_eq!(words, ["1 output", "1 output and 2 inputs", "1 output, 2 inputs and 0 effects"]);
    }

    #[test]
    fn figures_have_units() {
        assert_eq!([0, 1023, 1536, -1 << 31].map(super::bytes), ["0 B", "1023 B", "1.50 KiB", "-2.00 GiB"]);
        let times = [0, 12, 1_500, 2_500_000, 3_000_000_000].map(super::duration);
        assert_eq!(times, ["0", "12 ns", "1.5 µs", "2.50 ms", "3.000 s"]);
    }
}
