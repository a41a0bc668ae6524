//! The commands of the tutorials do what the tutorials say: each code block below `<!-- run -->` is run by a shell in the
//! root of the repository, with this build's program, and `$OUT` for a folder of the document's own.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The blocks to run, each with the exit status that its mark names.
fn blocks(text: &str) -> Vec<(i32, String)> {
    let mut blocks = Vec::new();
    for part in text.split("<!-- run").skip(1) {
        let (mark, rest) = part.split_once("-->").expect("the end of a mark");
        let status = mark.trim_start_matches(':').trim();
        let status = if status.is_empty() { 0 } else { status.parse().expect("an exit status") };
        let block = rest.trim_start().strip_prefix("```").expect("a block below its mark");
        let (_, block) = block.split_once('\n').expect("lines");
        let (block, _) = block.split_once("\n```").expect("the end of the block");
        blocks.push((status, block.to_string()));
    }
    blocks
}

#[test]
#[ignore = "a campaign: cargo test -- --ignored"]
fn tutorials_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_BIN_EXE_graph-oracle")).parent().expect("a folder").to_path_buf();
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(folder).chain(std::env::split_paths(&paths));
    let paths = std::env::join_paths(paths).expect("a PATH");
    let mut ran = 0;
    for name in ["tutorial_any_language", "tutorial_hang", "tutorial_python"] {
        let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&out);
        std::fs::create_dir_all(&out).expect("a folder");
        let text = std::fs::read_to_string(root.join(format!("docs/{name}.md"))).expect("the tutorial");
        for (status, block) in blocks(&text) {
            let run = Command::new("sh")
                .args(["-ec", &block])
                .current_dir(root)
                .env("PATH", &paths)
                .env("OUT", &out)
                .output()
                .expect("a shell");
            let said = [&run.stdout[..], &run.stderr[..]].map(String::from_utf8_lossy).concat();
            assert_eq!(run.status.code(), Some(status), "{name}:\n{block}\n{said}");
            ran += 1;
        }
    }
    assert!(ran >= 8, "{ran} blocks were run");
}
