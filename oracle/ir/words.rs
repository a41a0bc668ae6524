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

#[cfg(test)]
mod tests {
    use super::{count, counts};

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
}
