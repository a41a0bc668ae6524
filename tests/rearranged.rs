//! Real graphs whose tensors are rearranged on the way: by execution alone, too, they are never equal.
//!
//! In the graphs under corpus/real and in PyTorch's partitions of them, rows are flipped, rolled or transposed where a
//! collective takes its input or gives its result, in graphs without collectives where a matrix product is. In deep
//! chains large numbers overflow on both sides, and NaN equals NaN: that is no evidence.

use crate::common::scale::scaled;
use graph_oracle::analysis::Collectives;
use graph_oracle::candidates::{Outcome, judging};
use graph_oracle::case::PassConfig;
use graph_oracle::files;
use graph_oracle::graph::{Editor, Graph, NodeId, Value};
use graph_oracle::judge::{self, Judgement, Options, Values, Verdict};
use graph_oracle::ops::{Kind, Ops};
use std::path::Path;

fn read(name: &str) -> Graph {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/real").join(format!("{name}.json.gz"));
    files::read_path(&path).unwrap().into_graph().unwrap()
}

fn judged(before: &Graph, pass: &str, after: &[&Graph], values: Values) -> Judgement {
    let config = PassConfig { name: pass.to_string(), options: Vec::new(), estimates: Vec::new() };
    let outcome = |graph: &&Graph| (None, Outcome { unrepaired: None, repaired: (*graph).clone() });
    let outcomes: Vec<(Option<u32>, Outcome)> = after.iter().map(outcome).collect();
    judge::judge_outcomes(before, &config, &outcomes, &Options { values, ..judging() }).unwrap()
}

/// What is done to the first dimension of a tensor, or to both.
#[derive(Clone, Copy, Debug)]
enum Edit {
    Flip,
    Roll,
    Transpose,
}

/// A value, and who reads it rearranged (`None`: all its readers but the output).
type Spot = (NodeId, Option<NodeId>);

/// Inputs and results of collectives, else matrix products.
fn spots(graph: &Graph) -> Vec<Spot> {
    let ops = Ops::of(graph);
    let collectives = Collectives::new(graph, &ops);
    let mut spots: Vec<Spot> = Vec::new();
    for (launch, call) in collectives.calls.iter().enumerate() {
        if !call.in_place {
            spots.extend(call.inputs.iter().map(|&input| (input, Some(call.node))));
        }
        spots.extend(collectives.waits[launch].iter().map(|&wait| (wait, None)));
    }
    if spots.is_empty() {
        let is_product =
            |id: &NodeId| ops.call(graph, *id).is_some_and(|info| matches!(info.kind, Kind::Matmul(_)));
        spots.extend(graph.ids().filter(is_product).map(|id| (id, None)));
    }
    spots
}

fn some(spots: Vec<Spot>) -> Vec<Spot> {
    let last = spots.len().saturating_sub(1);
    // The first, the last, and others at equal distances.
    let count = spots.len().min(scaled(2) as usize);
    (0..count).map(|i| spots[i * last / (count - 1).max(1)]).collect()
}

/// The graph with tensors rearranged; `None` where that changes nothing.
fn rearranged(graph: &Graph, spots: &[Spot], edit: Edit) -> Option<Graph> {
    let mut editor = Editor::new(graph);
    for &(value, reader) in spots {
        let tensor = *graph.tensor_of(value)?;
        let sizes = graph.sizes(tensor.shape)?;
        let (target, is_change) = match edit {
            Edit::Flip => ("aten.flip.default", sizes.first().is_some_and(|&n| n > 1)),
            Edit::Roll => ("aten.roll.default", sizes.first().is_some_and(|&n| n > 1)),
            Edit::Transpose => ("aten.t.default", matches!(sizes[..], [m, n] if m == n && n > 1)),
        };
        if !is_change {
            return None;
        }
        // What is returned or saved stays as it is: backward finds its inputs by their names.
        let mut users = reader.map_or_else(|| editor.users(value).to_vec(), |reader| vec![reader]);
        users.retain(|&user| Some(user) != graph.output());
        if users.is_empty() {
            return None;
        }
        let anchor = reader.or(editor.next(value));
        let new = editor.graph_mut();
        let out = new.contiguous(&sizes, tensor.dtype, tensor.device);
        let args = match edit {
            Edit::Flip => vec![new.int_list(&[0])],
            Edit::Roll => vec![new.int_list(&[1]), new.int_list(&[0])],
            Edit::Transpose => Vec::new(),
        };
        let args: Vec<Value> = std::iter::once(Value::Node(value)).chain(args).collect();
        let mut moved = editor.insert_before(anchor, "rearranged", target, &args, &[], out);
        if matches!(edit, Edit::Transpose) {
            let format = Value::MemoryFormat(editor.graph_mut().intern("contiguous_format"));
            let args = [Value::Node(moved)];
            let kwargs = [("memory_format", format)];
            moved = editor.insert_before(anchor, "dense", "aten.clone.default", &args, &kwargs, out);
        }
        users.iter().for_each(|&user| editor.replace_input(user, value, moved));
    }
    Some(editor.finish())
}

/// What was seen in a sweep.
#[derive(Default)]
struct Seen {
    convicted: usize,
    undecided: Vec<String>,
    slept: Vec<String>,
}

impl Seen {
    fn note(&mut self, what: String, judgement: &Judgement, rule: &str) {
        let values = judgement.notes.iter().filter(|note| note.starts_with("values by"));
        let notes: Vec<&str> = values.map(String::as_str).collect();
        let notes = notes.join("\n    ");
        match &judgement.verdict {
            Verdict::Violated(findings)
                if findings
                    .iter()
                    .flat_map(|f| f.all())
                    .any(|f| [rule, "rewrite/state"].contains(&f.rule)) =>
            {
                self.convicted += 1
            }
            Verdict::Undecided(why) if why.iter().any(|why| why.message.starts_with(rule)) => {
                self.undecided.push(format!("{what}\n    {notes}"));
            }
            verdict => self.slept.push(format!("{what}: {verdict:?}\n    {notes}")),
        }
    }

    #[track_caller]
    fn check(&self, at_least: usize) {
        println!("{} convicted, undecided:\n{}", self.convicted, self.undecided.join("\n"));
        assert!(self.slept.is_empty(), "{} slept:\n{}", self.slept.len(), self.slept.join("\n"));
        assert!(self.convicted >= at_least, "only {} are convicted", self.convicted);
    }
}

const EDITS: [Edit; 3] = [Edit::Flip, Edit::Roll, Edit::Transpose];

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn rows_of_all_reduce_scatters_flipped() {
    let before = read("small_fsdp12_joint");
    let is_input = |spot: &Spot| {
        let reader = spot.1.map(|reader| before.target(reader));
        reader.is_some_and(|target| target.contains("reduce_scatter"))
    };
    let spots: Vec<Spot> = spots(&before).into_iter().filter(is_input).collect();
    assert_eq!(spots.len(), 12);
    for edit in EDITS {
        let after = rearranged(&before, &spots, edit).unwrap();
        for values in [Values::Auto, Values::ProofFirst, Values::Execute] {
            let mut seen = Seen::default();
            let judgement = judged(&before, "bucketing", &[&after], values);
            seen.note(format!("{edit:?}, {}", values.name()), &judgement, "rewrite/values");
            seen.check(1);
        }
    }
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn rearranged_steps_are_never_equal() {
    let mut seen = Seen::default();
    for name in [
        "small_fsdp12_joint",
        "small_tp_allreduce_joint",
        "small_ddp_step_functional",
        "small_ddp_step_inplace",
        "small_mlp_joint",
        "small_mutation_keepmut_joint",
    ] {
        let before = read(name);
        // Who changes nothing is not convicted.
        let same = judged(&before, "bucketing", &[&before], Values::Execute);
        assert!(matches!(same.verdict, Verdict::Sound), "{name}: {:?}", same.verdict);
        for (edit, spot) in
            EDITS.iter().flat_map(|edit| some(spots(&before)).into_iter().map(move |s| (*edit, s)))
        {
            let Some(after) = rearranged(&before, &[spot], edit) else { continue };
            let judgement = judged(&before, "bucketing", &[&after], Values::Execute);
            let what = format!("{name}: {edit:?} of {} for {:?}", before.name(spot.0), spot.1);
            seen.note(what, &judgement, "rewrite/values");
        }
    }
    seen.check(1);
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn rearranged_partitions_are_never_equal() {
    let mut seen = Seen::default();
    for (joint, parts) in [
        ("small_fsdp12_joint", "small_fsdp12_default"),
        ("small_tp_allreduce_joint", "small_tp_allreduce_mincut"),
        ("small_mlp_joint", "small_mlp_mincut"),
        ("partition/small_mutation_joint", "small_mutation_default"),
        ("partition/small_cnn_joint", "small_cnn_mincut"),
    ] {
        let joint = read(joint);
        let part = |which: &str| read(&format!("partition/{parts}_{which}"));
        let (forward, backward) = (part("fw"), part("bw"));
        let same = judged(&joint, "partition", &[&forward, &backward], Values::Execute);
        assert!(matches!(same.verdict, Verdict::Sound), "{parts}: {:?}", same.verdict);
        for edit in EDITS {
            for (part, in_forward) in [(&forward, true), (&backward, false)] {
                for spot in some(spots(part)) {
                    let Some(after) = rearranged(part, &[spot], edit) else { continue };
                    let after = if in_forward { [&after, &backward] } else { [&forward, &after] };
                    let judgement = judged(&joint, "partition", &after, Values::Execute);
                    let what = format!("{parts}: {edit:?} of {} for {:?}", part.name(spot.0), spot.1);
                    seen.note(what, &judgement, "partition/semantics-equal");
                }
            }
        }
    }
    seen.check(1);
}
