//! Recorded Llama-3 8B graphs before and after PyTorch's passes.

use super::compare::difference;
use graph_oracle::files;
use graph_oracle::graph::Graph;
use graph_oracle::passes::bucketing::{Config, bucket};
use std::path::PathBuf;

/// The folder of recorded graphs, beside the repository or one level up.
fn graphs() -> Option<PathBuf> {
    let project = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    project.ancestors().skip(1).take(2).map(|folder| folder.join("shared/graphs")).find(|p| p.is_dir())
}

fn read(path: PathBuf) -> Graph {
    files::read_path(&path).unwrap().into_graph().unwrap()
}

/// Node for node what PyTorch 2.15 makes of them: each pass followed by its sort, and both passes (in either
/// order) followed by one sort.
#[test]
fn llama_is_bucketed_as_pytorch_does() {
    let Some(folder) = graphs() else {
        println!("skipped: 6 recorded pairs are not here (shared/graphs)");
        return;
    };
    for direction in ["fw", "bw"] {
        let name = format!("llama3_8b_{direction}_64_1d");
        let before = read(folder.join(format!("{name}.json.gz")));
        for (kinds, after) in [
            ("all_gather", "all_gather"),
            ("reduce_scatter", "reduce_scatter"),
            ("all_gather,reduce_scatter", "ag_rs"),
            ("reduce_scatter,all_gather", "ag_rs"),
            ("all", "ag_rs"),
        ] {
            let theirs = read(folder.join(format!("{name}_after_bucket_{after}.json.gz")));
            let config = Config::from_options(&[("kind".into(), kinds.into())]).unwrap();
            let ours = bucket(&before, &config).unwrap();
            if let Some(difference) = difference(&ours.graph, &theirs) {
                panic!("{name}, {kinds}: {difference}");
            }
            assert_eq!(ours.declined, []);
        }
    }
}
