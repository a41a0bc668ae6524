use super::case;
use crate::candidates::Reference;
use crate::judge::{self, Options, Verdict};
use std::collections::BTreeMap;

#[test]
fn scratch() {
    let count: u64 = std::env::var("GEN_N").ok().and_then(|n| n.parse().ok()).unwrap_or(1000);
    let seed: u64 = std::env::var("GEN_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(21);
    let mut told: BTreeMap<String, Vec<(usize, u64)>> = BTreeMap::new();
    std::panic::set_hook(Box::new(|_| {}));
    for index in 0..count {
        let made = case(seed, index).into_case();
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| judge::judge(&made, &Reference, &Options::default())));
        let words = match result {
            Err(panic) => vec![format!("PANIC {}", panic.downcast_ref::<String>().cloned().unwrap_or_default())],
            Ok(Err(cannot)) => vec![format!("CANNOT {cannot}")],
            Ok(Ok(judgement)) => match &judgement.verdict {
                Verdict::Sound => vec!["sound".to_string()],
                Verdict::Refused(why) => vec![format!("REFUSED {why}")],
                Verdict::Undecided(why) => why.iter().map(|w| format!("UNDECIDED {w}")).collect(),
                Verdict::Violated(findings) => findings.iter().map(|f| format!("VIOLATED {}", f.rule)).collect(),
            },
        };
        for w in words { told.entry(w).or_default().push((made.graph.len(), index)); }
    }
    let _ = std::panic::take_hook();
    for (what, mut cases) in told {
        cases.sort();
        println!("{:5} {what} {:?}", cases.len(), &cases[..cases.len().min(4)]);
    }
}

#[test]
fn one() {
    let index: u64 = std::env::var("GEN_I").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let seed: u64 = std::env::var("GEN_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(21);
    let made = case(seed, index).into_case();
    println!("{made}");
    println!("{:#?}", judge::judge(&made, &Reference, &Options::default()).map(|j| (j.verdict, j.notes)));
}
