//! Random graphs that PyTorch has bucketed, in the folder that BUCKETING_PEER names (see
//! `tests/peer/bucketing.py`).
//!
//! Every pair must be equal node for node, before and after the final sort, unless the reference goes further than
//! PyTorch on purpose; then PyTorch's result must be wrong, or PyTorch must have stopped, in the way that the
//! reference's reason says.

use super::compare::difference;
use graph_oracle::analysis::{Edges, check_contraction};
use graph_oracle::candidates::pr158663::Historic;
use graph_oracle::format::json;
use graph_oracle::graph::{Graph, NodeId};
use graph_oracle::passes::bucketing::{Bucketed, Config, Reason, Refusal, bucket, bucket_with};
use std::collections::BTreeMap;

struct Case {
    options: Vec<(String, String)>,
    error: Option<String>,
    candidate: String,
    before: Graph,
    unrepaired: Option<Graph>,
    after: Option<Graph>,
}

fn cases(text: &str) -> impl Iterator<Item = Case> {
    let lines: Vec<&str> = text.lines().collect();
    let graph = |line: &str| json::read(line.as_bytes()).ok().and_then(|document| document.into_graph());
    (0..lines.len() / 4).map(move |i| {
        let head: serde_json::Value = serde_json::from_str(lines[4 * i]).unwrap();
        let options = head["options"].as_object().unwrap().iter();
        Case {
            options: options.map(|(k, v)| (k.clone(), v.as_str().unwrap().to_string())).collect(),
            error: head["error"].as_str().map(str::to_string),
            candidate: head["candidate"].as_str().unwrap().to_string(),
            before: graph(lines[4 * i + 1]).unwrap(),
            unrepaired: graph(lines[4 * i + 2]),
            after: graph(lines[4 * i + 3]),
        }
    })
}

/// Why the reference's result may differ, if it may.
fn intent(case: &Case, ours: &Bucketed) -> Option<&'static str> {
    if case.error.is_some() {
        return Some("PyTorch stopped");
    }
    if ours.declined.iter().any(|d| matches!(d.reason, Reason::Misaligned)) {
        return Some("a piece would be misaligned");
    }
    let theirs = case.after.as_ref()?;
    // PyTorch reads a buffer before the node that fills it.
    let fills = theirs.ids().filter(|&id| theirs.target(id) == "aten.split_with_sizes_copy.out");
    let edges = Edges::new(theirs);
    for fill in fills {
        let mut buffers: Vec<NodeId> = edges.inputs(fill).to_vec();
        // alias -> view.dtype -> view -> empty
        for _ in 0..3 {
            buffers = buffers.iter().flat_map(|&id| edges.inputs(id)).copied().collect();
        }
        let results = buffers.iter().filter(|&&id| theirs.target(id) == "aten.empty.memory_format");
        let early = |&id: &NodeId| id < fill && theirs.target(id) != "aten.view.default";
        for &empty in results {
            let views = edges.users(empty).iter().filter(|&&v| theirs.target(v) == "aten.view.default");
            let mut readers = views.flat_map(|&v| edges.users(v));
            if readers.any(|r| early(r) && theirs.target(*r) != "aten.view.dtype") {
                return Some("PyTorch reads a result before it is filled");
            }
        }
    }
    None
}

/// Whether the cast of some merged gather is lossy in PyTorch: a concatenation of different dtypes.
fn mixes_dtypes(theirs: &Graph) -> bool {
    theirs.ids().any(|id| {
        theirs.target(id) == "aten.cat.default" && {
            let dtypes: Vec<_> =
                theirs.inputs(id).iter().filter_map(|&x| theirs.tensor_of(x)).map(|t| t.dtype).collect();
            dtypes.iter().any(|d| *d != dtypes[0])
        }
    })
}

/// The contracted graph has no cycle, and the list is sorted.
fn is_sound(case: &Case, ours: &Bucketed) -> Result<(), String> {
    let mut groups = Vec::new();
    for bucket in &ours.plan {
        groups.push(bucket.members.iter().map(|name| case.before.find(name).unwrap()).collect::<Vec<_>>());
    }
    check_contraction(&Edges::new(&case.before), &groups).map_err(|_| "a cycle of buckets".to_string())?;
    let fault = graph_oracle::passes::repair::first_violation(&ours.graph);
    fault.map_or(Ok(()), |fault| Err(fault.to_string()))
}

/// If a decline says that a path connects two collectives, then the buckets with both together have a cycle.
fn declines_are_true(case: &Case, ours: &Bucketed) -> bool {
    ours.declined.iter().all(|declined| match &declined.reason {
        Reason::Dependent { member } => {
            let node = |name: &str| case.before.find(name);
            let mut together: Vec<Vec<NodeId>> = Vec::new();
            for bucket in &ours.plan {
                let mut ids: Vec<NodeId> = bucket.members.iter().filter_map(|m| node(m)).collect();
                if ids.contains(&node(member).unwrap_or(NodeId(0))) {
                    ids.push(node(&declined.node).unwrap_or(NodeId(0)));
                }
                together.push(ids);
            }
            if !ours.plan.iter().any(|b| b.members.contains(member)) {
                together.push([member, &declined.node].iter().filter_map(|n| node(n)).collect());
            }
            check_contraction(&Edges::new(&case.before), &together).is_err()
        }
        _ => true,
    })
}

#[test]
fn random_graphs_are_bucketed_as_pytorch_does() {
    let Some(folder) = std::env::var_os("BUCKETING_PEER") else {
        println!("skipped: 1 comparison with PyTorch (BUCKETING_PEER names no folder)");
        return;
    };
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "jsonl"));
    files.sort();
    let mut faults = 0;
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().to_string();
        let text = std::fs::read_to_string(&file).unwrap();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let mut buckets = 0;
        for (i, case) in cases(&text).enumerate() {
            let config = Config::from_options(&case.options).unwrap();
            let what = match bucket(&case.before, &config) {
                _ if case.candidate == "pr158663" => historic(&case, &config),
                Err(refusal) => refused(&case, &refusal),
                Ok(ours) => {
                    buckets += ours.plan.len();
                    judged(&case, &ours)
                }
            };
            let what = what.unwrap_or_else(|difference| {
                faults += 1;
                if faults < 12 {
                    println!("{name} {i} {:?} (PyTorch: {:?})\n  {difference}", case.options, case.error);
                }
                "DIFFERENT".to_string()
            });
            *counts.entry(what).or_default() += 1;
        }
        println!("{name}: {counts:?}, {buckets} buckets");
    }
    assert_eq!(faults, 0);
}

/// The historic candidate, equal before and after the sort, failures of the sort included.
fn historic(case: &Case, config: &Config) -> Result<String, String> {
    let ours = bucket_with(&case.before, config, &Historic).map_err(|refusal| refusal.to_string());
    match (&case.unrepaired, &case.after, ours) {
        (None, _, _) => Ok("stopped before the sort".into()),
        (Some(_), _, Err(refusal)) => Err(format!("refused: {refusal}")),
        (Some(unrepaired), after, Ok(ours)) => {
            let mut found = difference(&ours.unrepaired, unrepaired).map(|d| format!("before the sort, {d}"));
            if let Some(after) = after {
                found =
                    found.or_else(|| difference(&ours.graph, after).map(|d| format!("after the sort, {d}")));
            }
            match found {
                Some(difference) => Err(difference),
                None if ours.cycle.is_some() != after.is_none() => Err("only one of the sorts failed".into()),
                None if after.is_none() => Ok("equal, and the sort fails".into()),
                None => Ok("equal".into()),
            }
        }
    }
}

fn refused(case: &Case, refusal: &Refusal) -> Result<String, String> {
    match &case.error {
        Some(_) => Ok("both refuse".into()),
        None => Err(format!("refused: {refusal}")),
    }
}

fn judged(case: &Case, ours: &Bucketed) -> Result<String, String> {
    is_sound(case, ours)?;
    if !declines_are_true(case, ours) {
        return Err(format!("declined without need: {:?}", ours.declined));
    }
    let differs = match (&case.unrepaired, &case.after) {
        (Some(unrepaired), Some(after)) => difference(&ours.unrepaired, unrepaired)
            .map(|d| format!("before the sort, {d}"))
            .or_else(|| difference(&ours.graph, after).map(|d| format!("after the sort, {d}"))),
        _ => Some(format!("PyTorch stopped: {:?}", case.error)),
    };
    match differs {
        None => Ok("equal".into()),
        Some(difference) => match intent(case, ours) {
            Some(why) => Ok(format!("further: {why}")),
            None if case.after.as_ref().is_some_and(mixes_dtypes) => {
                Ok("further: dtypes mixed by a concatenation".into())
            }
            None => Err(difference),
        },
    }
}
