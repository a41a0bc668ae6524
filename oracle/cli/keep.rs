//! `graph-oracle keep`: a finding as a test of the user's own, for pytest.
//!
//! NAME.graph is the case, test_NAME.py has whoever was found at fault run again on it and demands a sound verdict. So the
//! test fails today, and passes once the pass is mended. Nothing is judged here, and no file of another content is
//! overwritten.

use super::files;
use super::{CouldNotRun, Status, print, python};
use crate::campaign::origin_in;
use crate::candidates::Origin;
use crate::case::{Case, Expectation, Expected, PassConfig};
use crate::limits::Limits;
use crate::rules::{PassKind, statement};
use clap::Args;
use std::io::Write;
use std::path::{Component, Path, PathBuf};

/// Characters of a name at most.
const LONGEST: usize = 80;

#[derive(Args, Debug)]
pub(super) struct Keep {
    /// A folder that --repro wrote, a case in a folder of --out, or any other case: .graph, or a graph as exchange JSON
    /// with --pass.
    finding: PathBuf,
    /// The folder to write the case and the test to.
    tests: PathBuf,
    /// The pass, where the case names none.
    #[arg(long)]
    pass: Option<String>,
    /// Who is to be tested, a command as for fuzz --worker; default: who was found at fault.
    #[arg(long, value_name = "CMD")]
    worker: Option<String>,
    /// Who is to be tested, a function as for fuzz --python; default: who was found at fault.
    #[arg(long, value_name = "FILE.py:FUNCTION", conflicts_with = "worker", value_parser = python::function)]
    python: Option<String>,
    /// What the test is called; default: as the finding.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

impl Keep {
    pub(super) fn run(&self, limits: &Limits, out: &mut dyn Write) -> Result<Status, CouldNotRun> {
        let path = self.case_file()?;
        let case = self.case(&path, limits)?;
        let origin = self.origin(&path)?;
        let name = self.name.clone().unwrap_or_else(|| name_of(&path));
        let name = identifier(&name);
        if name.is_empty() {
            return Err(CouldNotRun::new("--name: a name has letters or digits"));
        }
        std::fs::create_dir_all(&self.tests).map_err(|error| files::in_file(&self.tests, &error))?;
        let rule = broken(&case);
        let kept = Case { expectations: Vec::new(), ..case };
        let mut written = vec![(format!("{name}.graph"), kept.to_string())];
        let call = called(&origin, &self.tests);
        if let Some(call) = &call {
            written.push((format!("test_{name}.py"), test(&name, rule, call)));
        }
        let mut text = write(&self.tests, &written)?;
        text += match call {
            Some(_) => "run it with pytest: it fails now, and passes once the pass is right\n",
            None => "who broke the rule is part of graph-oracle: there is nothing to keep but the case\n",
        };
        print(out, &text)?;
        Ok(Status::Sound)
    }

    /// The file of the case.
    fn case_file(&self) -> Result<PathBuf, CouldNotRun> {
        let folder = &self.finding;
        if !folder.is_dir() {
            return Ok(folder.clone());
        }
        let case = folder.join("case.graph");
        if case.exists() {
            return Ok(case);
        }
        let entries = std::fs::read_dir(folder).map_err(|error| files::in_file(folder, &error))?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut cases: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|ending| ending == "graph")).collect();
        cases.sort();
        match &cases[..] {
            [only] => Ok(only.clone()),
            [] => Err(CouldNotRun::new(format_args!("{}: holds no case", folder.display()))),
            [first, ..] => {
                let (count, folder, first) = (cases.len(), folder.display(), first.display());
                Err(CouldNotRun::new(format_args!(
                    "{folder}: holds {count} cases; name one, such as {first}"
                )))
            }
        }
    }

    /// The case, with its pass.
    fn case(&self, path: &Path, limits: &Limits) -> Result<Case, CouldNotRun> {
        let mut case = files::read(path, limits)?.into_case().ok_or_else(|| {
            CouldNotRun::new(format_args!("{}: holds an outcome; expected a case", path.display()))
        })?;
        if let Some(pass) = &self.pass {
            PassKind::named(pass).map_err(CouldNotRun::new)?;
            if case.pass.as_ref().is_none_or(|config| config.name != *pass) {
                case.pass = Some(PassConfig::new(pass));
            }
        }
        match case.pass {
            Some(_) => Ok(case),
            None => Err(CouldNotRun::new(format_args!("{}: names no pass; give --pass", path.display()))),
        }
    }

    /// Who is to be tested.
    fn origin(&self, path: &Path) -> Result<Origin, CouldNotRun> {
        match (&self.python, &self.worker) {
            (Some(function), _) => return Ok(Origin::Function(function.clone())),
            (_, Some(command)) => return Ok(Origin::Command(command.clone())),
            (None, None) => {}
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        origin_in(folder).map_err(CouldNotRun::new)?.ok_or_else(|| {
            let path = path.display();
            CouldNotRun::new(format_args!(
                "{path}: nothing beside it says who broke the rule; give --python FILE.py:FUNCTION or --worker CMD"
            ))
        })
    }
}

/// What a finding is called: by its folder, or by its file.
fn name_of(path: &Path) -> String {
    let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    match (stem(&whole).as_str(), whole.parent()) {
        ("case" | "before", Some(folder)) => {
            folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
        }
        (name, _) => name.to_string(),
    }
}

/// A name as a part of one of Python.
fn identifier(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = name.chars().map(plain).take(LONGEST).collect();
    name.trim_matches('_').to_string()
}

/// The rule that a case says is broken.
fn broken(case: &Case) -> Option<&'static str> {
    let rules = case.expectations.iter().filter_map(|expectation| match expectation {
        Expectation::Verdict { is: Expected::Violates(rules), .. } => rules.first(),
        _ => None,
    });
    rules.filter_map(|rule| statement(rule)).map(|rule| rule.id).next()
}

/// The arguments that say who is tested; `None` for who is part of this program.
fn called(origin: &Origin, tests: &Path) -> Option<String> {
    match origin {
        Origin::Here => None,
        Origin::Command(command) => Some(format!("worker={}", literal(command))),
        Origin::Function(function) => Some(match function.rsplit_once(':') {
            Some((place, name)) if python::is_file(place) => {
                let file = relative(Path::new(place), tests);
                let name = literal(&format!(":{name}"));
                format!("str(HERE / {}) + {name}", literal(&file.to_string_lossy()))
            }
            _ => literal(function),
        }),
    }
}

/// A path as it is seen from a folder that exists.
fn relative(path: &Path, folder: &Path) -> PathBuf {
    let whole = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path));
    let (Ok(path), Ok(folder)) = (whole(path), whole(folder)) else { return path.to_path_buf() };
    let (to, from): (Vec<Component>, Vec<Component>) =
        (path.components().collect(), folder.components().collect());
    let common = to.iter().zip(&from).take_while(|(a, b)| a == b).count();
    let up = from.iter().skip(common).map(|_| Component::ParentDir);
    up.chain(to.iter().skip(common).copied()).collect()
}

/// A string of Python, in ASCII.
fn literal(text: &str) -> String {
    let escaped = |c: char| match c {
        '"' => "\\\"".to_string(),
        '\\' => "\\\\".to_string(),
        ' '..='~' => c.to_string(),
        other => format!("\\U{:08x}", u32::from(other)),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

/// The text of the test.
fn test(name: &str, rule: Option<&str>, call: &str) -> String {
    let broke = rule.map_or(String::new(), |rule| format!(" It broke {rule}."));
    format!(
        "\"\"\"A finding of graph-oracle, written by `graph-oracle keep`.{broke}\"\"\"\n\n\
         from pathlib import Path\n\n\
         from graph_oracle import check_case\n\n\
         HERE = Path(__file__).resolve().parent\n\n\n\
         def test_{name}() -> None:\n    \
             check_case(HERE / \"{name}.graph\", {call}).raise_if_wrong()\n"
    )
}

/// Writes files of these contents, unless one of another content is there. What was done, a line each.
fn write(folder: &Path, files: &[(String, String)]) -> Result<String, CouldNotRun> {
    for (name, text) in files {
        let path = folder.join(name);
        if path.symlink_metadata().is_ok() && !crate::files::holds(&path, text) {
            let path = path.display();
            return Err(CouldNotRun::new(format_args!(
                "{path}: is there already, and is left alone; give --name"
            )));
        }
    }
    let mut done = String::new();
    for (name, text) in files {
        let path = folder.join(name);
        let is_there = crate::files::holds(&path, text);
        if !is_there {
            crate::files::write_inside(folder, name, text).map_err(|error| files::in_file(&path, &error))?;
        }
        done += &format!("{}{}\n", path.display(), if is_there { ": is there already" } else { "" });
    }
    Ok(done)
}
