//! `graph-oracle run`: a candidate alone.

use super::files::{self, Input};
use super::idle::settings::{self, Reader};
use super::worker::WorkerOptions;
use super::{CouldNotRun, PassOptions, ReportFormat, Status, TextOrJson, Timing, is_stdout, print};
use crate::candidates::{Candidate, CandidateExt, Place, Reference};
use crate::case::PassConfig;
use crate::family::Gives;
use crate::graph::Graph;
use crate::judge::input_faults;
use crate::judge::partition::{forward_outputs, stages, trace_again};
use crate::limits::Limits;
use crate::report::partition::{self, SavedSet};
use crate::rules::{AnalyzedGraph, Correspondence, PassKind};
use clap::Args;
use std::io::Write;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(super) struct Run {
    /// The pass: rewrite, bucketing, repair, partition or schedule.
    pass: String,
    /// The graph before the pass: exchange JSON (may be gzip), a .graph case, or a graph as PyTorch prints it.
    before: PathBuf,
    #[command(flatten)]
    missing: files::Missing,
    /// Where to write the result: .json, .json.gz or .graph; - for JSON on standard output. Of a partition, the folder
    /// for fw.json and bw.json; of a replay with first=METHOD, for first_fw.json, first_bw.json and the second joint
    /// graph joint.json too.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Where to write the graph as it is before the repair sort.
    #[arg(long, value_name = "FILE")]
    unrepaired: Option<PathBuf>,
    /// Who runs it.
    #[arg(long, default_value = "reference")]
    candidate: String,
    #[command(flatten)]
    worker: WorkerOptions,
    /// The global rank to run as; default: the rank that the graph was recorded on.
    #[arg(long, default_value_t = 0)]
    rank: u32,
    /// How the saved values of a partition are printed.
    #[arg(long, value_parser = TextOrJson, default_value = "text")]
    format: ReportFormat,
    /// Tell on standard error how long reading and the pass took.
    #[arg(long)]
    timing: bool,
    #[command(flatten)]
    options: PassOptions,
}

impl Run {
    pub(super) fn run(&self, limits: &Limits, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        let mut timing = Timing::new(self.timing);
        let (graph, case_pass) = match files::read_with(&self.before, &self.missing, limits)? {
            Input::Graph(graph) => (*graph, None),
            Input::Case(case) => (case.graph, case.pass),
            Input::Outcomes(_) => {
                return Err(CouldNotRun::new(format_args!("{}: expected a graph", self.before.display())));
            }
        };
        timing.print("reading");
        let config = self.options.config(&self.pass, case_pass.as_ref())?;
        let pass = PassKind::named(&self.pass).map_err(CouldNotRun::new)?;
        settings::refuse(&config, &self.options.settings()?, Reader::Pass)?;
        let faults = input_faults(&graph, pass);
        if !faults.is_empty() {
            return Err(CouldNotRun::faults(&self.before, &faults));
        }
        let candidate = self.worker.or_named(&self.pass, limits, || self.candidate.clone())?;
        candidate.check_options(&config).map_err(CouldNotRun::new)?;
        timing.print("validating");
        match pass.row().gives {
            Gives::Parts => {
                return self.partition(&graph, &config, candidate.as_ref(), &mut timing, out);
            }
            Gives::Claim => {
                return Err(CouldNotRun::new("memory gives no graph; see graph-oracle check memory"));
            }
            Gives::Executed => {
                return Err(CouldNotRun::new("what an execution gives is no graph"));
            }
            Gives::Graph => {}
        }
        let known = graph.world.assume_mesh().and_then(|world| world.ranks);
        if let Some(ranks) = known.filter(|&ranks| self.rank >= ranks.max(1)) {
            let rank = self.rank;
            return Err(CouldNotRun::new(format_args!(
                "--rank {rank}: the world has {ranks} ranks, from 0 on"
            )));
        }
        let outcome = candidate.rewrite(&graph, &config, self.rank).map_err(|refusal| {
            CouldNotRun::new(format_args!("{}: {}", self.before.display(), refusal.reason))
        })?;
        timing.print("the pass");
        if let Some(path) = &self.unrepaired {
            let unrepaired = outcome.unrepaired.as_ref().ok_or_else(|| {
                let name = candidate.name();
                CouldNotRun::new(format_args!(
                    "--unrepaired: {name} shows no graph before its repair: leave it out"
                ))
            })?;
            files::write_graph(unrepaired, path, out)?;
        }
        files::write_graph(&outcome.repaired, &self.output, out)?;
        if is_stdout(&self.output) {
            return Ok(Status::Sound);
        }
        let text = match pass {
            PassKind::Schedule => moved(&graph, &outcome.repaired),
            _ => summary(&graph, &outcome.repaired),
        };
        print(out, &text)?;
        Ok(Status::Sound)
    }

    /// Cuts a joint graph, writes both parts, and says what is saved between them; twice where a first method is named.
    fn partition(
        &self,
        joint: &Graph,
        config: &PassConfig,
        candidate: &dyn Candidate,
        timing: &mut Timing,
        out: &mut dyn Write,
    ) -> Result<Status, CouldNotRun> {
        let in_file =
            |why: &dyn std::fmt::Display| CouldNotRun::new(format_args!("{}: {why}", self.before.display()));
        std::fs::create_dir_all(&self.output)
            .map_err(|error| CouldNotRun::new(format_args!("{}: {error}", self.output.display())))?;
        let write = |graph: &Graph, name: &str| files::write_graph_inside(graph, &self.output, name);
        let cut = |joint: &Graph, config: &PassConfig| {
            candidate.partition(joint, config, Place::default()).map_err(|refusal| in_file(&refusal.reason))
        };
        let Some((first, second)) = stages(config).map_err(CouldNotRun::new)? else {
            let (forward, backward) = cut(joint, config)?;
            timing.print("the pass");
            write(&forward, "fw.json")?;
            write(&backward, "bw.json")?;
            let saved = partition::saved(joint, &forward, &backward, config).map_err(CouldNotRun::new)?;
            self.print_saved(&[("", saved)], out)?;
            return Ok(Status::Sound);
        };
        let (forward, backward) = cut(joint, &first)?;
        timing.print("the first pass");
        let one = partition::saved(joint, &forward, &backward, &first).map_err(CouldNotRun::new)?;
        write(&forward, "first_fw.json")?;
        write(&backward, "first_bw.json")?;
        let outputs = forward_outputs(joint, &first).map_err(CouldNotRun::new)?;
        let traced = trace_again((candidate, &Reference), joint, (&forward, &backward), outputs)
            .map_err(|refusal| in_file(&refusal.reason))?;
        write(&traced.second, "joint.json")?;
        timing.print("tracing again");
        let (forward, backward) = cut(&traced.second, &second)?;
        timing.print("the second pass");
        write(&forward, "fw.json")?;
        write(&backward, "bw.json")?;
        let two = partition::saved(&traced.second, &forward, &backward, &second).map_err(CouldNotRun::new)?;
        self.print_saved(&[("first", one), ("second", two)], out)?;
        Ok(Status::Sound)
    }

    /// What each partition saves, with its name where there are several.
    fn print_saved(&self, sets: &[(&str, SavedSet)], out: &mut dyn Write) -> Result<(), CouldNotRun> {
        let text = self.format.render(
            || match sets {
                [(_, saved)] => saved.text(),
                _ => sets.iter().map(|(name, saved)| format!("{name} partition: {}", saved.text())).collect(),
            },
            || match sets {
                [(_, saved)] => saved.json(),
                _ => sets.iter().map(|(name, saved)| (name.to_string(), saved.json())).collect(),
            },
        )?;
        print(out, &text)
    }
}

/// How many nodes a schedule moved.
fn moved(before: &Graph, after: &Graph) -> String {
    let moved = before.ids().zip(after.ids()).filter(|&(b, a)| before.name(b) != after.name(a)).count();
    format!("{} nodes, {moved} at another place than before\n", after.len())
}

/// What changed, in a few lines.
fn summary(before: &Graph, after: &Graph) -> String {
    let (b, a) = (AnalyzedGraph::new(before), AnalyzedGraph::new(after));
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
