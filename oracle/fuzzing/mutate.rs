//! A mutator that knows graphs: text is parsed, the graph is edited, and the result printed.

use crate::case::Case;
use crate::format::text;
use crate::generate::{Config, Seeded, Source, case, edit};

/// Another input near `data`: an edited graph, fewer lines, or, where the data is no case, a fresh one. The same data
/// and seed give the same result.
pub fn mutate(data: &[u8], seed: u32) -> Vec<u8> {
    let mut source = Seeded::new(u64::from(seed));
    let Ok(parsed) = text::parse(data) else { return fresh(seed) };
    match source.below(16) {
        0 => fresh(seed),
        1..=3 => without_a_line(data, &mut source),
        _ => {
            let mut graph = parsed.graph.clone();
            for _ in 0..=source.below(3) {
                if let Some((_, edited)) = edit(&mut source, &graph) {
                    graph = edited;
                }
            }
            Case { graph, outcome: None, ..parsed }.to_string().into_bytes()
        }
    }
}

fn fresh(seed: u32) -> Vec<u8> {
    case(&Config::default(), 0, u64::from(seed)).into_case().to_string().into_bytes()
}

fn without_a_line(data: &[u8], source: &mut Seeded) -> Vec<u8> {
    let lines: Vec<&[u8]> = data.split_inclusive(|&byte| byte == b'\n').collect();
    let gone = source.below(lines.len() as u32) as usize;
    lines.iter().enumerate().filter(|(i, _)| *i != gone).flat_map(|(_, line)| line.iter().copied()).collect()
}
