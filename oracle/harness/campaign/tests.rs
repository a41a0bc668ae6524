//! Campaigns: the same findings however they are run, stores that survive, and stores that are refused.

use super::{Batch, Campaign, Ending, KnownList, Limit, RankPlan, Summary, merge};
use crate::candidates::{self, Answer, Candidate, CandidateExt, Capabilities, Refusal, Request, judging};
use crate::judge::{Offer, Options, Values};
use crate::reduce::Budget;
use crate::rules::PassKind;
use crate::stop::Stop;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Two batches and a bit.
const CASES: u64 = 36;

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
        options: Options { values: Values::Off, ..judging() },
        reduction: Budget { questions: 8, ..Budget::default() },
        graphs: Vec::new(),
        set: Vec::new(),
        ranks: RankPlan::All,
        batch: 16,
        reproductions: None,
        progress: false,
        stop: Stop::default(),
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
    candidates::find("bucket-direct-dependence").unwrap()
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
    // Killed while the last line was written, before the first batch was done, and while the first line was written.
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for cut in [text.len() - 9, lines[0].len(), 30, 0] {
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
        let batches: Vec<u64> = summary.batches.keys().copied().collect();
        (total.cases, total.useful, total.violated, total.rules.clone(), batches)
    };
    assert_eq!(sums(&merged), sums(&whole));
    // The order does not matter, nor does a store that is given twice.
    assert_eq!(merge(&[paths[1].clone(), paths[0].clone()]).unwrap(), merged);
    assert_eq!(sums(&merge(&[&paths[..], &paths[..1]].concat()).unwrap()), sums(&whole));
    // What is missing is told, whatever order and however often the others are given.
    assert_eq!((merged.missing_shards(), merged.text().contains("partial")), (None, false));
    let half = merge(&[&paths[1..], &paths[1..]].concat()).unwrap();
    assert_eq!(half.missing_shards(), Some((2, vec![0])));
    assert!(half.text().contains("partial: 1 of 2 shards are there; missing: 0/2"), "{}", half.text());
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
    let version = error(&store, &text.replace("graph-oracle-campaign/3", "graph-oracle-campaign/9"));
    assert!(
        version.contains("graph-oracle-campaign/9; this program writes graph-oracle-campaign/3"),
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

/// A store that counts reasons by their words is shown as it is; nothing is added to it.
#[test]
fn a_store_of_the_version_before_is_shown_by_itself() {
    let (mutant, folders) = (mutant(), [Folder::new("version-before"), Folder::new("version-now")]);
    let summaries = folders.each_ref().map(|folder| stored(folder, 16, &*mutant).run().unwrap());
    let store = folders[0].store();
    let text = std::fs::read_to_string(&store).unwrap();
    let old = text.replace("graph-oracle-campaign/3", "graph-oracle-campaign/2");
    std::fs::write(&store, &old).unwrap();
    let [before, now] = folders.each_ref().map(|folder| folder.0.clone());
    assert_eq!(merge(std::slice::from_ref(&before)).unwrap().total, summaries[0].total);
    for error in [
        stored(&folders[0], 40, &*mutant).run().unwrap_err().to_string(),
        merge(&[before.clone(), now.clone()]).unwrap_err().to_string(),
        merge(&[now, before]).unwrap_err().to_string(),
    ] {
        assert!(error.contains("by their words (graph-oracle-campaign/2)"), "{error}");
    }
    assert_eq!(std::fs::read_to_string(&store).unwrap(), old);
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
    assert!(KnownList::parse("{\"rule\": \"x\"}").unwrap_err().starts_with("1:"));
    let both = r#"{"rule": "worker/crash", "shape": "y", "words": ["z"], "link": "l"}"#;
    assert!(KnownList::parse(both).unwrap_err().starts_with("1:1: words are looked at"));
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
        Capabilities::of(&[PassKind::Bucketing])
    }

    fn run(&self, request: &Request) -> Result<Vec<Answer>, Refusal> {
        assert!(request.graph.len().is_multiple_of(2), "an odd number of nodes");
        candidates::Reference.run(request)
    }
}

/// Cuts joint graphs by position in the list, and in no other way.
struct ByPosition(Offer);

impl Candidate for ByPosition {
    fn name(&self) -> &str {
        "by-position"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of(&[PassKind::Partition])
    }

    fn offer(&self, _: PassKind) -> Option<&Offer> {
        Some(&self.0)
    }

    fn run(&self, _: &Request) -> Result<Vec<Answer>, Refusal> {
        Err(Refusal::new("it is not run here"))
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
    let values = |values: &[&str]| values.iter().map(ToString::to_string).collect::<Vec<_>>();
    let options = [("method", values(&["default"])), ("first", values(&[])), ("checkpoint", values(&[]))];
    let options = options.map(|(key, values)| (key.to_string(), values)).into();
    let by_position = ByPosition(Offer { options, ..Offer::default() });
    let (all, own) = (cases(&candidates::Reference), cases(&by_position));
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
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .join("corpus/real/small_fsdp12_joint.json.gz");
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

fn stored<'a>(folder: &Folder, cases: u64, candidate: &'a dyn Candidate) -> Campaign<'a> {
    Campaign { limit: Limit::Cases(cases), out: Some(folder.0.clone()), batch: 16, ..campaign(candidate) }
}

/// A batch that a limit cut short is made whole when the campaign goes on.
#[test]
fn a_campaign_that_goes_on_with_more_cases_drops_none() {
    let (mutant, folder, other) = (mutant(), Folder::new("more"), Folder::new("at-once"));
    for cases in [21, 40, 37, 69] {
        stored(&folder, cases, &*mutant).run().unwrap();
    }
    let (more, whole) =
        (stored(&folder, 75, &*mutant).run().unwrap(), stored(&other, 75, &*mutant).run().unwrap());
    assert_eq!(more, whole);
    assert_eq!((more.total.cases, more.batches.len()), (75, 5));
    assert!(more.total.violated > 0);
    // Both folders hold the same cases, and none of the batches that were cut short.
    let cases = |folder: &Folder| {
        let mut cases: Vec<String> = std::fs::read_dir(&folder.0)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        cases.sort();
        cases
    };
    assert_eq!(cases(&folder), cases(&other));
    // Of two stores of one campaign the longer batches count, in whatever order they are given.
    let short = Folder::new("shorter");
    stored(&short, 40, &*mutant).run().unwrap();
    let (a, b) = (folder.0.clone(), short.0.clone());
    let one = merge(&[a.clone(), b.clone()]).unwrap();
    assert_eq!(merge(&[b, a]).unwrap(), one);
    assert_eq!(one.total, whole.total);
}

/// What has gone from a store is made again: batches, and the files of cases. What is somebody else's stays.
#[test]
fn what_has_gone_from_a_store_is_made_again() {
    let (mutant, folder) = (mutant(), Folder::new("gone"));
    let whole = stored(&folder, 60, &*mutant).run().unwrap();
    let text = std::fs::read_to_string(folder.store()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    assert_eq!(lines.len(), 5);
    std::fs::write(folder.store(), [lines[0], lines[1], lines[3], lines[4]].concat()).unwrap();
    let finding = &whole.total.found[0];
    let file = folder.0.join(finding.file_name());
    std::fs::remove_file(&file).unwrap();
    assert_eq!(stored(&folder, 60, &*mutant).run().unwrap(), whole);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), finding.case);
    // A file of that name that holds something else is not ours.
    std::fs::write(&file, "mine").unwrap();
    assert_eq!(stored(&folder, 60, &*mutant).run().unwrap(), whole);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    let beside = folder.0.join(finding.file_name().replace(".graph", "-2.graph"));
    assert_eq!(std::fs::read_to_string(&beside).unwrap(), finding.case);
}

#[test]
fn stores_are_not_believed_unchecked() {
    let (mutant, folder) = (mutant(), Folder::new("unchecked"));
    let one = || stored(&folder, 16, &*mutant);
    let whole = one().run().unwrap();
    let text = std::fs::read_to_string(folder.store()).unwrap();
    let refused = |bytes: &[u8], words: &str| {
        std::fs::write(folder.store(), bytes).unwrap();
        for error in [
            one().run().unwrap_err().to_string(),
            merge(std::slice::from_ref(&folder.0)).unwrap_err().to_string(),
        ] {
            assert!(error.contains(words), "expected {words:?} in {error:?}");
        }
        assert_eq!(std::fs::read(folder.store()).unwrap(), bytes);
    };
    refused(
        text.replace("\"cases\":16", "\"cases\":15").as_bytes(),
        "campaign.jsonl:2: the batch is not the one",
    );
    // Counts that no campaign gives, whatever their digest.
    let (first, second) = text.split_once('\n').unwrap();
    let counted = |change: fn(&mut Batch), words: &str| {
        let line: serde_json::Value = serde_json::from_str(second).unwrap();
        let mut batch: Batch = serde_json::from_value(line["batch"].clone()).unwrap();
        change(&mut batch);
        let digest = super::digest::of_value(&batch).unwrap();
        let line = serde_json::json!({"batch": serde_json::to_value(&batch).unwrap(), "digest": digest});
        refused(format!("{first}\n{line}\n").as_bytes(), words);
    };
    counted(|batch| batch.cases = 17, "more cases than a batch has");
    counted(|batch| batch.refused = 16, "more verdicts than cases");
    counted(|batch| batch.found[0].number = 99, "a finding elsewhere");
    counted(|batch| batch.number = u64::MAX, "there is no batch");
    // A tail that was torn within a character is dropped like any other.
    let torn = [text.as_bytes(), b"{\"batch\":{\"number\":1,\"first_crash\":\"\xe2\x82"].concat();
    std::fs::write(folder.store(), torn).unwrap();
    assert_eq!(one().run().unwrap(), whole);
    assert_eq!(std::fs::read_to_string(folder.store()).unwrap(), text);
    refused(&[text.as_bytes(), b"\xff\xfe\n"].concat(), "campaign.jsonl:3: it is not UTF-8");
    // Somebody else's file, with a line end or without.
    for foreign in ["my notes", "{\"version\":", "{\"mine\": 1}\n"] {
        std::fs::write(folder.store(), foreign).unwrap();
        let is_ours = text.starts_with(foreign);
        assert_eq!(one().run().is_ok(), is_ours, "{foreign}");
        if !is_ours {
            assert_eq!(std::fs::read_to_string(folder.store()).unwrap(), foreign);
        }
    }
}

/// What is judged makes a campaign, and not what it is called.
#[test]
fn another_graph_of_the_same_name_is_another_campaign() {
    let folder = Folder::new("same-name");
    let graph = |count: usize| {
        let text = format!(
            "world 2 ranks, groups a = [0 1]\nx = input : f32[4]\n{}output x\n",
            (0..count)
                .map(|i| format!("g{i} = all_gather(x, a) : f32[8]\nw{i} = wait(g{i})\n"))
                .collect::<String>()
        );
        crate::format::text::parse(text.as_bytes()).unwrap().graph
    };
    let of = |count| Campaign {
        graphs: vec![("joint".to_string(), graph(count))],
        ..stored(&folder, 2, &candidates::Reference)
    };
    of(3).run().unwrap();
    of(3).run().unwrap();
    let error = of(4).run().unwrap_err().to_string();
    assert!(error.contains("they differ in: graphs"), "{error}");
    let known = KnownList::parse(r#"{"rule": "bucket/homogeneous", "link": "l"}"#).unwrap();
    let error = Campaign { known, ..of(3) }.run().unwrap_err().to_string();
    assert!(error.contains("they differ in: known"), "{error}");
    let error = Campaign { batch: 8, ..of(3) }.run().unwrap_err().to_string();
    assert!(error.contains("they differ in: batch"), "{error}");
    // What was judged in another way does not merge either.
    let other = Folder::new("same-name-too");
    Campaign { out: Some(other.0.clone()), ..of(4) }.run().unwrap();
    let error = merge(&[folder.0.clone(), other.0.clone()]).unwrap_err().to_string();
    assert!(error.contains("they differ in: graphs"), "{error}");
}

/// Runs another one, and counts: at some case something happens.
struct Counting<'a> {
    inner: &'a dyn Candidate,
    runs: AtomicU64,
    at: u64,
    then: Box<dyn Fn() + Sync + 'a>,
}

impl Candidate for Counting<'_> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { keeps_promises: false, ..self.inner.capabilities() }
    }

    fn run(&self, request: &Request) -> Result<Vec<Answer>, Refusal> {
        request.at_each(|place| {
            if self.runs.fetch_add(1, Ordering::Relaxed) == self.at {
                (self.then)();
            }
            let outcome = self.inner.rewrite(request.graph, request.pass, place.rank);
            outcome.map(Answer::from)
        })
    }
}

/// A stop loses nothing of what was done, and what was not done is done when the campaign goes on.
#[test]
fn a_campaign_that_is_stopped_keeps_what_it_has() {
    let (mutant, folder, other) = (mutant(), Folder::new("stopped"), Folder::new("unstopped"));
    let counting = |at, stop: Stop| Counting {
        inner: &*mutant,
        runs: AtomicU64::new(0),
        at,
        then: Box::new(move || stop.request(2)),
    };
    let whole =
        Campaign { jobs: 1, ..stored(&other, 64, &counting(u64::MAX, Stop::default())) }.run().unwrap();
    for at in [0, 3, 40] {
        let stop = Stop::default();
        let candidate = counting(at, stop.clone());
        let stopped = Campaign { jobs: 1, stop, ..stored(&folder, 64, &candidate) }.run().unwrap();
        assert_eq!(stopped.ending, Ending::Stopped(2));
        assert!(
            stopped.total.cases < 64 && stopped.text().contains("stopped by signal 2"),
            "{}",
            stopped.text()
        );
        // What the summary says is in the store.
        let merged = merge(std::slice::from_ref(&folder.0)).unwrap();
        assert_eq!((merged.total, merged.ending), (stopped.total, Ending::Whole));
    }
    let on = Campaign { jobs: 1, ..stored(&folder, 64, &counting(u64::MAX, Stop::default())) }.run().unwrap();
    assert_eq!(on, whole);
    // A violation of a batch that was cut short is told too.
    let (stop, fresh) = (Stop::default(), Folder::new("told"));
    let violated = whole.total.first_violation.unwrap();
    let candidate = counting((violated + 1) * 3, stop.clone());
    let told = Campaign { jobs: 1, stop, batch: 64, ..stored(&fresh, 64, &candidate) }.run().unwrap();
    assert_eq!(told.total.violated > 0, !told.total.found.is_empty(), "{}", told.text());
}

/// A place that cannot be written to is told before the work, and one that becomes so after it, with what was found.
#[test]
fn what_cannot_be_written_loses_nothing() {
    let (mutant, folder) = (mutant(), Folder::new("unwritable"));
    std::fs::create_dir_all(&folder.0).unwrap();
    let file = folder.0.join("file");
    std::fs::write(&file, "").unwrap();
    let inside = Campaign { reproductions: Some(file.join("repro")), ..campaign(&*mutant) };
    assert!(inside.run().unwrap_err().to_string().contains("file"));
    let repro = folder.0.join("repro");
    let spoil = || {
        std::fs::remove_dir_all(&repro).unwrap();
        std::fs::write(&repro, "").unwrap();
    };
    let candidate = Counting { inner: &*mutant, runs: AtomicU64::new(0), at: 5, then: Box::new(spoil) };
    let spoiled = Campaign { reproductions: Some(repro.clone()), ..campaign(&candidate) }.run().unwrap();
    assert!(!spoiled.total.found.is_empty(), "{}", spoiled.text());
    assert!(matches!(&spoiled.ending, Ending::Failed(why) if why.contains("repro")), "{:?}", spoiled.ending);
}

/// Gives every graph back as it is.
struct Nothing;

impl Candidate for Nothing {
    fn name(&self) -> &str {
        "nothing"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::of(&[PassKind::Bucketing])
    }

    fn run(&self, request: &Request) -> Result<Vec<Answer>, Refusal> {
        request.once(|_| Ok(request.graph.clone().into()))
    }
}

#[test]
fn a_campaign_in_which_nothing_was_done_judged_nothing() {
    let idle = Campaign { limit: Limit::Cases(40), ..campaign(&Nothing) }.run().unwrap();
    assert_eq!((idle.judged_nothing(), idle.idle()), (true, vec![("bucketing", 40)]), "{}", idle.text());
    let text = idle.text();
    assert!(
        text.contains("nothing was judged of bucketing: it did nothing in any of its 40 cases"),
        "{text}"
    );
    assert!(text.contains("it did nothing where the reference did something; the first is case "), "{text}");
    let reference = candidates::Reference;
    let busy = Campaign { limit: Limit::Cases(40), ..campaign(&reference) }.run().unwrap();
    assert_eq!((busy.judged_nothing(), busy.idle(), busy.total.left), (false, Vec::new(), 0));
    let diff = Campaign { limit: Limit::Cases(40), ..campaign(&Nothing) }.compare(&reference).unwrap();
    assert!(
        diff.acted.0 == 0 && diff.acted.1 > 0 && diff.text().contains("nothing was judged of nothing"),
        "{diff:?}"
    );
    let score = super::score(&Nothing, 2, 10, &judging());
    assert_eq!((score.acted, score.worst()), (0, None));
}
