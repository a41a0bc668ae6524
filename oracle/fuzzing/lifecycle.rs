//! The lifecycle verifier takes any file of events: it reads it or says where it cannot, and judges the same run the
//! same way twice.

use models::lifecycle::{Mode, Prediction, Verifier, read_events, write_events};

/// On the text of a file of events.
pub fn check(data: &[u8]) {
    let events = match read_events(data) {
        Ok(events) => events,
        Err(error) => {
            assert!(!error.to_string().contains('\n'));
            return;
        }
    };
    assert_eq!(read_events(write_events(&events).as_bytes()).as_ref(), Ok(&events));
    for verifier in [Verifier::of_safety(Mode::Log), Verifier::new(Prediction::default(), Mode::Log)] {
        let summary = verifier.judge(events.clone());
        assert_eq!(summary, verifier.judge(events.clone()));
        assert!(summary.live <= summary.peak);
    }
    // In assert mode the first fault is the first of all.
    let first = Verifier::of_safety(Mode::Assert).judge(events.clone());
    let all = Verifier::of_safety(Mode::Log).judge(events);
    assert_eq!(first.faults.first(), all.faults.first());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoke() {
        let words = [
            "{\"event\":\"alloc\",\"storage\":\"x\",\"bytes\":8}\n",
            "{\"event\":\"alloc\",\"storage\":\"x\",\"bytes\":-1}\n",
            "{\"event\":\"alloc\",\"storage\":\"y\",\"bytes\":9223372036854775807}\n",
            "{\"event\":\"read\",\"storage\":\"x\",\"range\":[5,3]}\n",
            "{\"event\":\"write\",\"storage\":\"y\"}\n",
            "{\"event\":\"launch\",\"flight\":\"g\",\"reads\":[{\"storage\":\"x\"}]}\n",
            "{\"event\":\"wait\",\"flight\":\"g\"}\n",
            "{\"event\":\"free\",\"storage\":\"x\"}\n",
            "{\"event\":\"step\",\"step\":4294967295}\n",
            "{\"event\":\"step\",\"step\":0}\n",
            "\n",
            "{\"event\"",
        ];
        let mut state = 1u64;
        for _ in 0..2000 {
            let mut text = String::new();
            while !state.is_multiple_of(11) {
                text.push_str(words[(state >> 33) as usize % words.len()]);
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            }
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            text.push_str("{\"event\":\"end\"}");
            check(text.as_bytes());
        }
        check(b"\xff\x00");
    }
}
