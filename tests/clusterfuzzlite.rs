//! The files for ClusterFuzzLite, as far as they can be checked without the service: which targets are built, and where
//! they and their seeds go. The compiler and the archiver are stood in for.

#![cfg(unix)]
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// The targets: a file each.
fn targets() -> BTreeSet<String> {
    let files = std::fs::read_dir(root().join("fuzz/fuzz_targets")).unwrap();
    let names = files.map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned());
    names.collect()
}

/// Runs build.sh on this checkout with `bin` first in the path.
fn build(folder: &Path, list_only: bool) -> String {
    let sources = folder.join("src");
    std::fs::create_dir_all(&sources).unwrap();
    let checkout = sources.join("graph-oracle");
    if !checkout.exists() {
        std::os::unix::fs::symlink(root(), &checkout).unwrap();
    }
    let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
    let output = Command::new("bash")
        .arg(root().join(".clusterfuzzlite/build.sh"))
        .env("SRC", &sources)
        .env("WORK", folder.join("work"))
        .env("OUT", folder.join("out"))
        .env("PATH", path)
        .env("LIST_ONLY", if list_only { "1" } else { "0" })
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn every_target_is_built_with_its_seeds() {
    let folder = std::env::temp_dir().join(format!("graph-oracle-{}-clusterfuzzlite", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    for part in ["bin", "out"] {
        std::fs::create_dir_all(folder.join(part)).unwrap();
    }
    let listed: BTreeSet<String> = build(&folder, true).lines().map(String::from).collect();
    assert_eq!(listed, targets());
    assert!(listed.len() >= 20);
    // `cargo fuzz build ... --target-dir DIR` and `zip --quiet --junk-paths ARCHIVE FILES...`
    let names: Vec<&str> = listed.iter().map(String::as_str).collect();
    let cargo = format!(
        "mkdir -p \"$6/host/release\"; for name in {}; do echo $name > \"$6/host/release/$name\"; done",
        names.join(" ")
    );
    let zip = "archive=$3; shift 3; ls \"$@\" > \"$archive\"".to_string();
    for (name, script) in [("cargo", cargo), ("zip", zip)] {
        let path = folder.join("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\nset -e\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    build(&folder, false);
    for name in &names {
        let out = folder.join("out");
        assert_eq!(std::fs::read_to_string(out.join(name)).unwrap(), format!("{name}\n"));
        let seeds = std::fs::read_to_string(out.join(format!("{name}_seed_corpus.zip"))).unwrap();
        let wanted = std::fs::read_dir(root().join("corpus").join(name)).unwrap().count();
        assert_eq!(seeds.lines().count(), wanted, "{name}");
        assert!(wanted > 0, "{name} has no seeds");
    }
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn the_service_finds_what_it_needs() {
    assert!(read(".clusterfuzzlite/project.yaml").contains("language: rust"));
    let image = read(".clusterfuzzlite/Dockerfile");
    assert!(
        image.contains("COPY . $SRC/graph-oracle")
            && image.contains("COPY .clusterfuzzlite/build.sh $SRC/build.sh")
    );
}
