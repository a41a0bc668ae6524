//! Words of messages.

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

#[cfg(test)]
mod tests {
    use super::{choices, count, counts, near};

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
