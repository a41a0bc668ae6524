//! Campaigns: the same findings however they are run, stores that survive, and stores that are refused.

use super::{BATCH, Batch, Campaign, KnownList, Limit, RankPlan, Summary, merge};
use crate::candidates::{self, Candidate, Capabilities, Outcome, Refusal};
use crate::case::PassConfig;
use crate::graph::Graph;
use crate::judge::{Options, Values};
use crate::reduce::Budget;
use crate::rules::PassKind;
use std::path::{Path, PathBuf};

/// A batch and a bit.
const CASES: u64 = 560;

fn campaign(candidate: &dyn Candidate) -> Campaign<'_> {
    Campaign {
        pass: Some(PassKind::Bucketing),
        candidate,
        seed: 5,
        limit: Limit::Cases(CASES),
        jobs: 2,
        shard: (0, 1),
        out: None,
        known: KnownList::default(),
        options: Options { values: Values::Off, ..Options::default() },
        reduction: Budget { questions: 40, ..Budget::default() },
        graphs: Vec::new(),
        ranks: RankPlan::All,
        batch: BATCH,
        reproductions: None,
        progress: false,
    }
}

/// A folder that is gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("graph-oracle-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn store(&self) -> PathBuf {
        self.0.join("campaign.jsonl")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn mutant() -> Box<dyn Candidate> {
    candidates::find("K1").unwrap()
}

#[test]
fn the_number_of_jobs_makes_no_difference() {
    let mutant = mutant();
    let run = |jobs| Campaign { jobs, ..campaign(&*mutant) }.run().unwrap();
    let (one, two) = (run(1), run(2));
    assert_eq!(one, two);
    assert!(one.total.violated > 0 && !one.total.found.is_empty(), "{}", one.text());
    assert_eq!(one.total.cases, CASES);
}

#[test]
fn a_killed_campaign_goes_on_where_it_was() {
    let (mutant, folder) = (mutant(), Folder::new("killed"));
    let stored = || Campaign { out: Some(folder.0.clone()), ..campaign(&*mutant) };
    let whole = stored().run().unwrap();
    let text = std::fs::read_to_string(folder.store()).unwrap();
    for finding in &whole.total.found {
        let case = std::fs::read_to_string(folder.0.join(finding.file_name())).unwrap();
        assert_eq!(case, finding.case);
    }
    // Killed while the last line was written, and before the first batch was done.
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for cut in [text.len() - 9, lines[0].len()] {
        std::fs::write(folder.store(), &text[..cut]).unwrap();
        assert_eq!(stored().run().unwrap(), whole, "cut at {cut}");
        assert_eq!(std::fs::read_to_string(folder.store()).unwrap(), text, "cut at {cut}");
    }
    // Nothing is left to do.
    assert_eq!(stored().run().unwrap(), whole);
}

#[test]
fn shards_merge_to_the_whole() {
    let mutant = mutant();
    let whole = campaign(&*mutant).run().unwrap();
    let folders: Vec<Folder> = (0..2).map(|i| Folder::new(&format!("shard{i}"))).collect();
    for (i, folder) in (0..).zip(&folders) {
        let shard = Campaign { shard: (i, 2), out: Some(folder.0.clone()), ..campaign(&*mutant) };
        shard.run().unwrap();
    }
    let paths: Vec<PathBuf> = folders.iter().map(|folder| folder.0.clone()).collect();
    let merged = merge(&paths).unwrap();
    let sums = |summary: &Summary| {
        let total = &summary.total;
        (total.cases, total.useful, total.violated, total.rules.clone(), summary.batches.clone())
    };
    assert_eq!(sums(&merged), sums(&whole));
    // A store that is given twice counts once.
    assert_eq!(sums(&merge(&[&paths[..], &paths[..1]].concat()).unwrap()), sums(&whole));
    // Each shard looks for itself, so together they find at least what one campaign finds.
    assert!(
        whole.total.found.iter().all(|finding| merged.total.found.iter().any(|f| f.rule == finding.rule))
    );
}

fn error(store: &Path, text: &str) -> String {
    let mutant = mutant();
    std::fs::write(store, text).unwrap();
    let folder = store.parent().unwrap().to_path_buf();
    let result = Campaign { limit: Limit::Cases(1), out: Some(folder), ..campaign(&*mutant) }.run();
    // What was there is untouched.
    assert_eq!(std::fs::read_to_string(store).unwrap(), text);
    result.unwrap_err().to_string()
}

#[test]
fn stores_that_are_refused() {
    let (mutant, folder) = (mutant(), Folder::new("refused"));
    let one = Campaign { limit: Limit::Cases(1), out: Some(folder.0.clone()), ..campaign(&*mutant) };
    one.run().unwrap();
    let store = folder.store();
    let text = std::fs::read_to_string(&store).unwrap();
    let (first, second) = text.split_once('\n').unwrap();
    let corrupt = error(&store, &format!("{first}\n{{\"batch\": 3}}\n{second}"));
    assert!(corrupt.contains("campaign.jsonl:2: "), "{corrupt}");
    let garbage = error(&store, "nonsense\n");
    assert!(garbage.contains("campaign.jsonl:1: "), "{garbage}");
    let version = error(&store, &text.replace("graph-oracle-campaign/1", "graph-oracle-campaign/9"));
    assert!(
        version.contains("graph-oracle-campaign/9; this program writes graph-oracle-campaign/1"),
        "{version}"
    );
    let other = error(&store, &text.replace("\"seed\":5", "\"seed\":6"));
    assert!(other.contains("seed 6") && other.contains("this one is") && other.contains("seed 5"), "{other}");
    std::fs::write(&store, &text).unwrap();
    let file = std::fs::File::open(&store).unwrap();
    file.lock().unwrap();
    let busy = one.run().unwrap_err().to_string();
    assert!(busy.contains("in use by another campaign"), "{busy}");
}

#[test]
fn known_findings_are_counted_and_not_told() {
    let mutant = mutant();
    let found = campaign(&*mutant).run().unwrap().total.found;
    let lines: Vec<String> = found
        .iter()
        .map(|f| {
            serde_json::json!({"rule": f.rule, "shape": f.shape, "link": "https://example.org/1"}).to_string()
        })
        .collect();
    let known = KnownList::parse(&format!("# tracked\n{}\n", lines.join("\n"))).unwrap();
    let again = Campaign { known, ..campaign(&*mutant) }.run().unwrap();
    assert!(again.total.known > 0, "{}", again.text());
    assert!(!again.total.found.iter().any(|finding| found.iter().any(|f| f.is_same(finding))));
    assert!(KnownList::parse("{\"rule\": \"x\"}").unwrap_err().starts_with("line 1: "));
    let both = r#"{"rule": "worker/crash", "shape": "y", "words": ["z"], "link": "l"}"#;
    assert!(KnownList::parse(both).unwrap_err().starts_with("line 1: words are looked at"));
}

/// A line knows what its words say and nothing else of the rule.
#[test]
fn another_defect_under_the_same_rule_is_told() {
    let mutant = mutant();
    let campaign = |candidate| Campaign {
        limit: Limit::Cases(48),
        reduction: Budget { questions: 5, ..Budget::default() },
        ..campaign(candidate)
    };
    let all = campaign(&*mutant).run().unwrap().total;
    let rule = &all.found[0].rule;
    let with = |words: &str| {
        let line = format!(r#"{{"rule": "{rule}", "words": [{words}], "link": "there"}}"#);
        let known = KnownList::parse(&line).unwrap();
        Campaign { known, ..campaign(&*mutant) }.run().unwrap().total
    };
    let of_rule = |total: &Batch| total.found.iter().filter(|finding| finding.rule == *rule).count();
    let (nothing, other) = (with(""), with(r#""words that nobody says""#));
    assert_eq!((of_rule(&nothing), nothing.known_links["there"] > 0), (0, true));
    assert_eq!((other.found == all.found, other.known_links.len(), other.known), (true, 0, 0));
    // What comes with it is known with it, and without it is not.
    let rest = all.rules.keys().map(|rule| format!("\"{rule}\"")).collect::<Vec<_>>().join(",");
    let line = |rule: &str| format!(r#"{{"rule": "{rule}", "brings": [{rest}], "link": "there"}}"#);
    let known = |rule: &str| KnownList::parse(&line(rule)).unwrap();
    let brought = Campaign { known: known(rule), ..campaign(&*mutant) }.run().unwrap().total;
    assert!(brought.known >= nothing.known && brought.found.len() <= nothing.found.len());
    let absent = Campaign { known: known("worker/hang"), ..campaign(&*mutant) }.run().unwrap().total;
    assert_eq!((absent.known, absent.found.len()), (0, all.found.len()));
    // The counts are the same whatever is known.
    assert_eq!((nothing.violated, &nothing.rules), (all.violated, &all.rules));
}

/// Panics on every graph with an odd number of nodes.
struct Panics;

impl Candidate for Panics {
    fn name(&self) -> &str {
        "panics"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { passes: vec![PassKind::Bucketing], bakes_rank: false }
    }

    fn run(&self, graph: &Graph, pass: &PassConfig, rank: u32) -> Result<Outcome, Refusal> {
        assert!(graph.len().is_multiple_of(2), "an odd number of nodes");
        candidates::Reference.run(graph, pass, rank)
    }
}

/// Cuts joint graphs by position in the list, and in no other way.
struct ByPosition;

impl Candidate for ByPosition {
    fn name(&self) -> &str {
        "by-position"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { passes: vec![PassKind::Partition], bakes_rank: false }
    }

    fn takes_option(&self, _: PassKind, key: &str, value: &str) -> bool {
        match key {
            "method" => value == "default",
            "first" | "checkpoint" => false,
            _ => true,
        }
    }

    fn run(&self, _: &Graph, _: &PassConfig, _: u32) -> Result<Outcome, Refusal> {
        Err(Refusal::new("it cuts joint graphs"))
    }
}

/// Nobody gets graphs whose tags were made for a method that it does not have.
#[test]
fn joint_graphs_are_made_for_the_methods_that_there_are() {
    let cases = |candidate: &dyn Candidate| -> Vec<String> {
        let campaign = Campaign { pass: Some(PassKind::Partition), ..campaign(candidate) };
        (0..60).map(|number| campaign.case(number).to_string()).collect()
    };
    let any = |cases: &[String], word: &str| cases.iter().any(|case| case.contains(word));
    let (all, own) = (cases(&candidates::Reference), cases(&ByPosition));
    for word in ["method=replay", "method=min-cut", "first=", "checkpoint=", "ap_must_save"] {
        assert!(any(&all, word) && !any(&own, word), "{word}");
    }
    assert!(own.iter().all(|case| case.contains("method=default")));
}

#[test]
fn a_panic_is_a_finding_and_the_campaign_goes_on() {
    let summary = Campaign { limit: Limit::Cases(40), ..campaign(&Panics) }.run().unwrap();
    assert!(summary.total.crashed > 5 && summary.total.cases == 40, "{}", summary.text());
    assert!(summary.total.first_crash.unwrap().contains("an odd number of nodes"));
}

#[test]
fn windows_of_a_real_graph() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/real/small_fsdp12_joint.json.gz");
    let graph = crate::format::json::read(&std::fs::read(path).unwrap()).unwrap().into_graph().unwrap();
    let graphs = vec![("joint".to_string(), graph)];
    let windows = Campaign { graphs, limit: Limit::Cases(60), ..campaign(&candidates::Reference) };
    let names = |number| windows.case(number).graph.name.clone();
    assert_ne!(names(1), campaign(&candidates::Reference).case(1).graph.name);
    assert_eq!(windows.case(7).to_string(), windows.case(7).to_string());
    let summary = windows.run().unwrap();
    assert_eq!((summary.total.violated, summary.total.crashed), (0, 0), "{}", summary.text());
    assert!(summary.title.contains("windows of joint"), "{}", summary.title);
}
