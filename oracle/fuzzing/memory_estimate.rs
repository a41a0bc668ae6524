//! What the reference states about the memory of a graph is what the rules find, on every graph.

use crate::candidates::memory::MEMORY_CANDIDATES;
use crate::format::text;
use crate::generate::Bytes;
use crate::generate::memory::MemoryCases;
use crate::graph::Graph;
use crate::judge::Verdict;
use crate::judge::judge_memory;
use crate::report::memory::MemoryReport;
use crate::rules::memory::MemoryConfig;

/// Nodes of a graph that is judged: a bound on the cost of one execution.
const MOST_NODES: usize = 300;

/// On a case in text.
pub fn check(data: &[u8]) {
    if let Ok(case) = text::parse(data)
        && case.graph.len() <= MOST_NODES
    {
        reference_is_right(&case.graph);
    }
}

/// On a case made from choices.
pub fn check_choices(data: &[u8]) {
    let text = MemoryCases::default().text(Bytes::new(data));
    let parsed = text::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    reference_is_right(&parsed.graph);
}

/// Panics unless the reference is right about a graph. That it declines, or that aliases are in doubt, is an answer.
fn reference_is_right(graph: &Graph) {
    use crate::analysis::validate::validate;
    if validate(graph).iter().any(|fault| fault.is_fatal()) {
        return;
    }
    let Ok(claim) = MEMORY_CANDIDATES[0].claim(graph) else { return };
    let judged = judge_memory(graph, &claim, &MemoryConfig::default());
    if let Ok(judgement) = judged
        && let Verdict::Violated(findings) = judgement.verdict
    {
        panic!("{findings:#?}");
    }
    if let Ok(report) = MemoryReport::new(graph) {
        let (text, picture) = (report.text(), crate::report::memory::svg(&report));
        assert!(!text.is_empty() && picture.ends_with("</svg>\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Config, Seeded, generate};

    /// Graphs that were not made for memory: point to point, unknown operators, unsorted lists.
    #[test]
    fn smoke() {
        for case in 0..120 {
            let mut source = Seeded::case(5, case);
            let config = Config { repair: if case % 5 == 0 { 100 } else { 0 }, ..Config::default() };
            let config = config.swarmed(&mut source);
            let case = generate(&mut source, &config).into_case();
            check(case.to_string().as_bytes());
        }
        check(b"x = \xff");
        check_choices(&[7; 200]);
        check_choices(b"");
    }
}
