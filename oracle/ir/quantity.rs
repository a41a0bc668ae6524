//! Counts and sizes as people write them: `10000`, `10k`, `1M`, `64MiB`, `1.5GiB`.
//!
//! One reader for flags, limits and options. `k`, `M`, `G` and `T` are powers of 1000. Units of bytes are powers of 1024,
//! with and without the `i`: `MB` is what `MiB` is, as everywhere in PyTorch's bucketing passes. A fraction needs a unit;
//! what is left of it below one is cut off. Nothing is rounded on the way.

/// What is understood, for messages.
pub const COUNTS: &str = "a number such as 10000, 10k, 1.5M or 2G";

/// What is understood where bytes are too, for messages.
pub const SIZES: &str = "a number such as 10000, 10k or 1.5M, or a size such as 64MiB or 1.5GiB";

/// Digits behind the point; more say nothing.
const DIGITS: usize = 18;

/// A count; with a unit of bytes it is none.
///
/// # Errors
/// What is understood.
pub fn count(text: &str) -> Result<u64, String> {
    match read(text) {
        Some(Quantity { value, is_bytes: false }) => Ok(value),
        Some(_) => Err(format!("{text:?} has a unit of bytes; expected {COUNTS}")),
        None => Err(format!("expected {COUNTS}, not {text:?}")),
    }
}

/// A size, or a count of something else that is limited.
///
/// # Errors
/// What is understood.
pub fn size(text: &str) -> Result<u64, String> {
    let read = read(text).map(|quantity| quantity.value);
    read.ok_or_else(|| format!("expected {SIZES}, not {text:?}"))
}

struct Quantity {
    value: u64,
    is_bytes: bool,
}

fn read(text: &str) -> Option<Quantity> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = (text.get(..end)?, text.get(end..)?.trim_start());
    let (unit, is_bytes) = match unit {
        "" => (1, false),
        "k" | "K" => (1_000, false),
        "M" => (1_000_000, false),
        "G" => (1_000_000_000, false),
        "T" => (1_000_000_000_000, false),
        "B" => (1, true),
        "KiB" | "kiB" | "KB" | "kB" => (1 << 10, true),
        "MiB" | "MB" => (1 << 20, true),
        "GiB" | "GB" => (1 << 30, true),
        "TiB" | "TB" => (1_u128 << 40, true),
        _ => return None,
    };
    let (whole, fraction) = match number.split_once('.') {
        None => (number, ""),
        // Of what has no parts.
        Some(_) if unit == 1 && !is_bytes => return None,
        Some((whole, fraction)) => (whole, fraction.get(..DIGITS).unwrap_or(fraction)),
    };
    if whole.is_empty() || fraction.contains('.') || (number.contains('.') && fraction.is_empty()) {
        return None;
    }
    let whole: u128 = whole.parse().ok()?;
    let parts = match fraction {
        "" => 0,
        digits => {
            let below = 10_u128.checked_pow(u32::try_from(digits.len()).ok()?)?;
            digits.parse::<u128>().ok()?.checked_mul(unit)? / below
        }
    };
    let value = u64::try_from(whole.checked_mul(unit)?.checked_add(parts)?).ok()?;
    Some(Quantity { value, is_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        for (text, value) in [
            ("0", 0),
            ("10000", 10_000),
            ("10k", 10_000),
            ("10K", 10_000),
            ("1M", 1_000_000),
            ("1.5M", 1_500_000),
            ("1.2345k", 1_234),
            ("2G", 2_000_000_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(count(text), Ok(value), "{text}");
        }
        for text in [
            "",
            "k",
            ".5k",
            "1.5",
            "1.k",
            "1..5k",
            "-1",
            "1e3",
            "10m",
            "10 000",
            "18446744073709551616",
            "99999999T",
            "éM",
        ] {
            assert!(count(text).unwrap_err().contains(COUNTS), "{text}");
        }
        assert!(count("64MiB").unwrap_err().contains("unit of bytes"));
    }

    #[test]
    fn sizes() {
        for (text, value) in [
            ("64MiB", 64 << 20),
            ("64MB", 64 << 20),
            ("64 MiB", 64 << 20),
            ("1.5GiB", 3 << 29),
            ("1.5B", 1),
            ("2TiB", 2 << 40),
            ("10k", 10_000),
            ("7", 7),
            ("0.1MiB", 104_857),
            ("16777215.999999999999TiB", u64::MAX - 1),
        ] {
            assert_eq!(size(text), Ok(value), "{text}");
        }
        for text in ["64mib", "MiB", "1.5", "16777216TiB", "1.5 Gi", "0x10"] {
            assert!(size(text).unwrap_err().contains(SIZES), "{text}");
        }
    }
}
