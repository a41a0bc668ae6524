//! What the documentation lists is what the program has. `GRAPH_ORACLE_BLESS=1 cargo test --test docs` rewrites it.

#![allow(missing_docs)]

use graph_oracle::rules::{Severity, statements};
use std::path::PathBuf;

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

const BEGIN: &str = "<!-- the catalogue, written by tests/docs.rs -->\n";
const END: &str = "<!-- end of the catalogue -->\n";

#[test]
fn the_catalogue_in_docs_is_the_catalogue() {
    let mut catalogue = String::from("\n");
    for rule in statements() {
        let severity = match rule.severity {
            Severity::Soundness => "soundness",
            Severity::Policy => "policy",
        };
        let passes: Vec<&str> = rule.passes.iter().map(|pass| pass.name()).collect();
        catalogue += &format!(
            "**`{}`** ({severity}; {}). {} *Why:* {}\n\n",
            rule.id,
            passes.join(", "),
            rule.statement,
            rule.reason
        );
    }
    let path = file("docs/rules.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once(BEGIN).expect("the beginning of the catalogue");
    let (_, tail) = rest.split_once(END).expect("the end of the catalogue");
    let wanted = format!("{head}{BEGIN}{catalogue}{END}{tail}");
    if std::env::var_os("GRAPH_ORACLE_BLESS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    assert!(
        text == wanted || std::env::var_os("GRAPH_ORACLE_BLESS").is_some(),
        "docs/rules.md is out of date"
    );
}

#[test]
fn every_dependency_is_explained() {
    let manifest = std::fs::read_to_string(file("Cargo.toml")).unwrap();
    let docs = std::fs::read_to_string(file("docs/dependencies.md")).unwrap();
    let mut inside = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.contains("dependencies]");
        } else if inside && let Some((name, _)) = line.split_once('=') {
            assert!(docs.contains(name.trim()), "docs/dependencies.md does not explain {}", name.trim());
        }
    }
}

#[test]
fn the_files_that_the_readme_names_exist() {
    let readme = std::fs::read_to_string(file("README.md")).unwrap();
    let named = readme.split(|c: char| c.is_whitespace() || "(),`".contains(c));
    let mut found = 0;
    for name in named.filter(|w| w.starts_with("docs/") || w.starts_with("corpus/")) {
        let name = name.trim_end_matches(['.', ';', ',']);
        assert!(file(name).exists(), "README.md names {name}");
        found += 1;
    }
    assert!(found >= 8, "found {found} names");
}
