//! Counts and sizes on the command line, all read by [`quantity`]: `10k`, `1M`, `64MiB`.

use crate::quantity;

/// A count.
pub(super) fn count(text: &str) -> Result<u64, String> {
    quantity::count(text)
}

/// A count in a range.
pub(super) fn within<T: TryFrom<u64>>(
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = quantity::count(text)?;
        let taken = if (least..=most).contains(&number) { T::try_from(number).ok() } else { None };
        taken.ok_or_else(|| match number > most {
            true => format!("{number} is not in {least}..={most}: at most {most}"),
            false => format!("{number} is not in {least}..={most}"),
        })
    }
}

/// A size, more than nothing.
pub(super) fn size(text: &str) -> Result<u64, String> {
    match quantity::size(text)? {
        0 => Err("nothing fits into 0 bytes".to_string()),
        size => Ok(size),
    }
}
