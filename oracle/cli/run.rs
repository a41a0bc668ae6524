//! `graph-oracle run`: a candidate alone.

use super::files::{self, Input};
use super::{CouldNotRun, PassOptions, Status, is_stdout, print};
use crate::candidates;
use crate::judge::input_faults;
use crate::rules::{Correspondence, PassKind, Side};
use clap::Args;
use std::io::Write;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct Run {
    /// The pass: bucketing or repair.
    pass: String,
    /// The graph before the pass: exchange JSON (may be gzip) or a .graph case.
    before: PathBuf,
    /// Where to write the result: .json, .json.gz or .graph; - for JSON on standard output.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Where to write the graph as it is before the repair sort.
    #[arg(long, value_name = "FILE")]
    unrepaired: Option<PathBuf>,
    /// Who runs it.
    #[arg(long, default_value = "reference")]
    candidate: String,
    /// The global rank to run as; default: the rank that the graph was recorded on.
    #[arg(long, default_value_t = 0)]
    rank: u32,
    #[command(flatten)]
    options: PassOptions,
}

impl Run {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        let (graph, case_pass) = match files::read(&self.before)? {
            Input::Graph(graph) => (*graph, None),
            Input::Case(case) => (case.graph, case.pass),
            Input::Outcomes(_) => {
                return Err(CouldNotRun::new(format_args!("{}: expected a graph", self.before.display())));
            }
        };
        let config = self.options.config(&self.pass, case_pass.as_ref())?;
        let pass = PassKind::named(&self.pass).map_err(CouldNotRun::new)?;
        let faults = input_faults(&graph, pass);
        if !faults.is_empty() {
            return Err(CouldNotRun::faults(self.before.display(), &faults));
        }
        let candidate = candidates::find(&self.candidate).map_err(CouldNotRun::new)?;
        let outcome = candidate.run(&graph, &config, self.rank).map_err(|refusal| {
            CouldNotRun::new(format_args!("{}: {}", self.before.display(), refusal.reason))
        })?;
        if let (Some(path), Some(unrepaired)) = (&self.unrepaired, &outcome.unrepaired) {
            files::write_graph(unrepaired, path, out)?;
        }
        files::write_graph(&outcome.repaired, &self.output, out)?;
        if is_stdout(&self.output) {
            return Ok(Status::Sound);
        }
        print(out, &summary(&graph, &outcome.repaired))?;
        Ok(Status::Sound)
    }
}

/// What changed, in a few lines.
fn summary(before: &crate::graph::Graph, after: &crate::graph::Graph) -> String {
    let (b, a) = (Side::new(before), Side::new(after));
    let correspondence = Correspondence::new(&b, &a);
    let mut text = format!(
        "{} nodes before, {} after; {} collectives before, {} after\n",
        before.len(),
        after.len(),
        b.collectives.calls.len(),
        a.collectives.calls.len()
    );
    for merge in &correspondence.merges {
        let bucket = &a.collectives.calls[merge.launch];
        let members: Vec<&str> =
            merge.members.iter().map(|&m| before.name(b.collectives.calls[m].node)).collect();
        const SHOWN: usize = 4;
        let shown = members.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
        let more = if members.len() > SHOWN {
            format!(", and {} more", members.len() - SHOWN)
        } else {
            String::new()
        };
        text += &format!(
            "  {} ({} on group {}) replaces {} collectives: {shown}{more}\n",
            after.name(bucket.node),
            bucket.kind.name(),
            bucket.group,
            members.len()
        );
    }
    text
}
