//! A finding as a folder: the case, the explanation, the graph as exchange JSON, and a program that shows it.
//!
//! `RULE-NUMBER/` (with another number behind, where that is somebody else's) holds `case.graph`, `explanation.txt`,
//! `before.json`, `finding.json`, which says what it is and who did it, and `repro.py` if the candidate can make one; if
//! it cannot, the explanation ends with its reason.

use super::store::free;
use super::{Campaign, CampaignError, Distinct, origin};
use crate::candidates::{Candidate, Reproduce};
use crate::files;
use crate::format::{json, text};
use crate::judge::Ranks;
use crate::judge::candidate::SCRIPT;
use std::path::Path;

impl Campaign<'_> {
    /// Whether findings can be written down where that is asked for: better known before than after hours of work.
    pub(super) fn check_reproductions(&self) -> Result<(), CampaignError> {
        let Some(folder) = &self.reproductions else { return Ok(()) };
        let fails = |error| CampaignError::Reproduction(format!("{}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(fails)?;
        let probe = free(folder, &format!(".writable-{}", std::process::id()), |_| false);
        files::write_inside(folder, &probe, "")
            .and_then(|()| std::fs::remove_file(folder.join(&probe)))
            .map_err(fails)
    }

    /// Writes a finding down, if that is asked for and has not been done.
    pub(super) fn reproduce(&self, finding: &Distinct) -> Result<(), CampaignError> {
        let Some(folder) = &self.reproductions else { return Ok(()) };
        let has_case = |folder: &Path| files::holds(&folder.join("case.graph"), &finding.case);
        let name = free(folder, finding.file_name().trim_end_matches(".graph"), has_case);
        let of_finding = folder.join(&name);
        // The explanation is written last.
        if of_finding.join("explanation.txt").exists() {
            return Ok(());
        }
        let rank = match self.ranks.of_case(finding.number) {
            Ranks::All => 0,
            Ranks::One(number) => number,
        };
        write(folder, &name, finding, rank, self.candidate)
            .map_err(|error| CampaignError::Reproduction(format!("{}: {error}", of_finding.display())))
    }
}

/// `rank` counts modulo the ranks of the world.
fn write(
    above: &Path,
    name: &str,
    finding: &Distinct,
    rank: u32,
    candidate: &dyn Candidate,
) -> std::io::Result<()> {
    let folder = &files::folder_inside(above, name)?;
    files::write_inside(folder, "case.graph", &finding.case)?;
    files::write_inside(folder, origin::RECORD, origin::record(finding, candidate))?;
    let mut explanation = finding.report.clone();
    // A reduced case is text that was just printed.
    if let Ok(case) = text::parse(finding.case.as_bytes()) {
        let mut before = Vec::new();
        json::write(&case.graph, &mut before)?;
        files::write_inside(folder, "before.json", before)?;
        if let Some(pass) = &case.pass {
            let title = finding.kind.as_deref().or_else(|| finding.report.lines().next()).unwrap_or_default();
            let rank = rank % case.graph.world.ranks.unwrap_or(1).max(1);
            let request = Reproduce { graph: &case.graph, pass, rank, rule: &finding.rule, title };
            match candidate.reproduction(&request) {
                Ok(files) => {
                    for (name, text) in files {
                        let place = if name == SCRIPT { folder } else { above };
                        files::write_inside(place, &name, text)?;
                    }
                }
                Err(refusal) => explanation += &format!("\nThere is no repro.py: {}\n", refusal.reason),
            }
        }
    }
    files::write_inside(folder, "explanation.txt", explanation)
}
