//! Completions, manual pages and the version.

use crate::common::{Scratch, program, text};
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// What a program says to a text; `None` where there is no such program.
fn told(command: &mut Command, input: &[u8]) -> Option<Output> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    let _ = writer.join();
    Some(output)
}

#[test]
fn bash_reads_its_completions() {
    let script = program(&["completions", "bash"]);
    assert!(script.status.success());
    let said = text(&script.stdout);
    assert!(said.contains("--candidate") && said.contains("sarif"), "{said}");
    match told(Command::new("bash").arg("-n"), &script.stdout) {
        Some(output) => assert!(output.status.success(), "{}", text(&output.stderr)),
        None => println!("skipped 1 test in part: there is no bash"),
    }
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        assert!(text(&program(&["completions", shell]).stdout).contains("worker-test"), "{shell}");
    }
    assert_eq!(program(&["completions", "cmd"]).status.code(), Some(2));
}

#[test]
fn manual_pages_can_be_set() {
    let page = program(&["man"]).stdout;
    assert!(text(&page).contains(".TH graph-oracle 1"), "{}", text(&page));
    let scratch = Scratch::new("man");
    let folder = scratch.path("pages");
    assert!(program(&["man", "-o", &folder]).status.success());
    let mut pages: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    assert!(pages.iter().any(|path| path.ends_with("graph-oracle-check.1")), "{pages:?}");
    assert!(pages.len() > 15, "{pages:?}");
    for path in &pages {
        let page = std::fs::read(path).unwrap();
        let Some(output) = told(Command::new("groff").args(["-man", "-ww", "-Tutf8", "-P-cbou"]), &page)
        else {
            println!("skipped 1 test in part: there is no groff");
            return;
        };
        assert!(output.status.success() && output.stderr.is_empty(), "{path:?}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("SYNOPSIS"), "{path:?}");
    }
}

#[test]
fn the_version_has_its_commit() {
    let said = text(&program(&["--version"]).stdout);
    let version = env!("CARGO_PKG_VERSION");
    let head =
        Command::new("git").args(["rev-parse", "HEAD"]).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let is_repository = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.git")).exists();
    match head {
        Ok(head) if head.status.success() && is_repository => {
            assert_eq!(said, format!("graph-oracle {version} ({})\n", &text(&head.stdout)[..12]));
        }
        _ => assert!(said.starts_with(&format!("graph-oracle {version}")), "{said}"),
    }
}
