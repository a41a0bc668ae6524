//! Tells the program the commit that it is built from, for `--version`: what `GRAPH_ORACLE_COMMIT` says, or else what
//! stands in `.git`. No git is run. Without a repository, as in an archive of the sources, there is none to tell.
//!
//! Only this folder's own `.git` is asked, since an archive may lie in somebody else's repository. Changes that are not
//! committed are not seen.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=GRAPH_ORACLE_COMMIT");
    let stated = std::env::var("GRAPH_ORACLE_COMMIT").ok().filter(|commit| !commit.is_empty());
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let commit = stated.or_else(|| commit_of(&folder.join(".git")));
    if let Some(commit) = commit.filter(|commit| commit.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
        println!("cargo:rustc-env=GRAPH_ORACLE_COMMIT={commit}");
        let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
        println!("cargo:rustc-env=GRAPH_ORACLE_VERSION={version} ({commit})");
    }
}

/// The first digits of the commit that is checked out.
fn commit_of(git: &Path) -> Option<String> {
    // In a second work tree `.git` is a file that names the folder.
    let own = match std::fs::read_to_string(git) {
        Ok(text) => git.parent()?.join(text.strip_prefix("gitdir: ")?.trim_end()),
        Err(_) => git.to_path_buf(),
    };
    let head = read(&own.join("HEAD"))?;
    let Some(reference) = head.strip_prefix("ref: ") else { return digits(&head) };
    // Which is where the branches of all work trees are.
    let common = match std::fs::read_to_string(own.join("commondir")) {
        Ok(text) => own.join(text.trim_end()),
        Err(_) => own.clone(),
    };
    if let Some(hash) = read(&common.join(reference)) {
        return digits(&hash);
    }
    // The next commit of a packed branch goes elsewhere, and into the log.
    read(&own.join("logs/HEAD"));
    let packed = read(&common.join("packed-refs"))?;
    let line = packed.lines().find(|line| line.ends_with(&format!(" {reference}")))?;
    digits(line)
}

/// The text of a file that says which commit it is, so that a change of it builds anew; nothing where there is none.
fn read(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    println!("cargo:rerun-if-changed={}", path.display());
    Some(text.trim_end().to_string())
}

fn digits(hash: &str) -> Option<String> {
    let digits = hash.get(..12)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| digits.to_string())
}
