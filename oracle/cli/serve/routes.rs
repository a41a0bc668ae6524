//! Which command a request is, and its page.
//!
//! docs/pages.md has the addresses: `/`, `/in/PATH`, `/pair` for two files, `/judge` for what is sent.

use super::CouldNotRun;
use super::folder::Folder;
use super::http::{Request, Response};
use crate::candidates;
use crate::cli::check::outcomes_of;
use crate::cli::files::{self, Input};
use crate::cli::{Command, dispatch, parsed};
use crate::limits::Limits;
use crate::rules::PassKind;
use std::ffi::OsString;
use std::path::Path;

/// What is served.
pub(super) struct Site {
    folder: Option<Folder>,
    limits: Limits,
}

impl Site {
    pub(super) fn new(folder: Option<&Path>, limits: &Limits) -> Result<Site, CouldNotRun> {
        Ok(Site { folder: folder.map(Folder::new).transpose()?, limits: limits.clone() })
    }

    /// The page that is asked for.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub(super) fn answer(&self, request: &Request) -> Result<Response, CouldNotRun> {
        if !matches!(&*request.method, "GET" | "POST") {
            return Err(CouldNotRun::new("only GET and POST are understood"));
        }
        let page = match &*request.path {
            "/" => self.home(request)?,
            "/judge" => self.pasted(request)?,
            "/pair" => self.pair(request)?,
            path => match path.strip_prefix("/in/") {
                Some(path) => self.inside(path, request)?,
                None => return Ok(super::refusal(404, "There is no such page.")),
            },
        };
        Ok(Response::page(page))
    }

    fn home(&self, request: &Request) -> Result<String, CouldNotRun> {
        let folder = self.folder.as_ref().map(|folder| folder.shown("")).transpose()?;
        Ok(pages::serve::home(&form_of(request), folder.as_ref(), &passes(), &names()))
    }

    fn folder(&self) -> Result<&Folder, CouldNotRun> {
        self.folder.as_ref().ok_or_else(|| CouldNotRun::new("no folder is served"))
    }

    /// A folder, a graph or a case below the folder that is served.
    fn inside(&self, path: &str, request: &Request) -> Result<String, CouldNotRun> {
        let (place, given) = (self.folder()?.find(path)?, request.field("as"));
        if place.is_dir() && given.is_none() {
            let folder = self.folder()?.shown(path)?;
            return Ok(pages::serve::home(&form_of(request), Some(&folder), &passes(), &names()));
        }
        let file = || place.clone().into_os_string();
        match given.unwrap_or("check") {
            "graph" => self.command(vec!["show".into(), file()]),
            "memory" => self.command(vec!["show".into(), file(), "--timeline".into()]),
            "simulate" => self.command(vec!["simulate".into(), file()]),
            "results" => self.command(vec!["results".into(), file()]),
            "trace" => self.command(vec!["trace".into(), file()]),
            "check" => match (pass_of(request)?, files::read(&place, &self.limits)?) {
                (Some(pass), _) => self.check(&pass, &[&place], request),
                (None, Input::Case(case)) if case.is_recorded() || request.field("candidate").is_some() => {
                    let pass = case.pass.map_or("rewrite".to_string(), |pass| pass.name);
                    self.check(&pass, &[&place], request)
                }
                _ => self.command(vec!["show".into(), file()]),
            },
            other => Err(CouldNotRun::new(format_args!("nothing is shown as {other:?}"))),
        }
    }

    /// Two files of the folder.
    fn pair(&self, request: &Request) -> Result<String, CouldNotRun> {
        let file = |field: &str| match request.field(field) {
            Some(path) => self.folder()?.find(path),
            None => Err(CouldNotRun::new(format_args!("{field}: no file is chosen"))),
        };
        let pass = pass_of(request)?.unwrap_or_else(|| "rewrite".to_string());
        self.check(&pass, &[&file("before")?, &file("after")?], request)
    }

    fn check(&self, pass: &str, files: &[&Path], request: &Request) -> Result<String, CouldNotRun> {
        let mut arguments: Vec<OsString> = vec!["check".into(), pass.into()];
        arguments.extend(files.iter().map(|file| file.as_os_str().to_os_string()));
        if let Some(candidate) = candidate_of(request)?.filter(|_| files.len() == 1) {
            arguments.extend(["--candidate".into(), candidate.into()]);
        }
        self.command(arguments)
    }

    /// The page that a command of the program writes. Paths are absolute, so that none is taken for a flag.
    fn command(&self, arguments: Vec<OsString>) -> Result<String, CouldNotRun> {
        let (all, command) = page_command(arguments)?;
        let mut page = Vec::new();
        dispatch(&command, &all, &self.limits, &mut page, &mut std::io::sink())?;
        Ok(String::from_utf8_lossy(&page).into_owned())
    }

    /// Graphs that stand in the form, or in the address.
    fn pasted(&self, request: &Request) -> Result<String, CouldNotRun> {
        let missing = || CouldNotRun::new("there is no graph before: paste one, or drop a file");
        let before = request.field("before").ok_or_else(missing)?;
        let before = files::read_bytes(Path::new("BEFORE"), before.as_bytes(), &self.limits)?;
        let after = request.field("after");
        let after = after.map(|text| files::read_bytes(Path::new("AFTER"), text.as_bytes(), &self.limits));
        let pass = match (pass_of(request)?, &before) {
            (Some(pass), _) => pass,
            (None, Input::Case(case)) if case.pass.is_some() => {
                case.pass.as_ref().map_or(String::new(), |pass| pass.name.clone())
            }
            (None, _) => "rewrite".to_string(),
        };
        let mut arguments: Vec<OsString> = ["check", &pass, "BEFORE"].map(OsString::from).into();
        arguments.extend(after.is_some().then(|| "AFTER".into()));
        if let Some(candidate) = candidate_of(request)?.filter(|_| after.is_none()) {
            arguments.extend(["--candidate".into(), candidate.into()]);
        }
        let (all, command) = page_command(arguments)?;
        let Command::Check(check) = command else { return Err(missing()) };
        let outcomes = after.map(|after| Ok(outcomes_of(after?)));
        let mut page = Vec::new();
        check.run_on(Ok(before), outcomes, &all, &self.limits, &mut page)?;
        Ok(String::from_utf8_lossy(&page).into_owned())
    }
}

/// A command whose page goes where its report would, and its words.
fn page_command(mut arguments: Vec<OsString>) -> Result<(Vec<OsString>, Command), CouldNotRun> {
    arguments.extend(["--html".into(), "-".into()]);
    parsed(arguments)
}

/// The form as the address fills it in.
fn form_of(request: &Request) -> pages::serve::Form {
    let field = |name: &str| request.field(name).unwrap_or("").to_string();
    pages::serve::Form {
        before: field("before"),
        after: field("after"),
        pass: field("pass"),
        candidate: field("candidate"),
    }
}

/// The passes that there are.
fn passes() -> Vec<&'static str> {
    PassKind::ALL.iter().map(|pass| pass.name()).collect()
}

/// The candidates of this program.
fn names() -> Vec<String> {
    candidates::all().iter().map(|candidate| candidate.name().to_string()).collect()
}

fn pass_of(request: &Request) -> Result<Option<String>, CouldNotRun> {
    let pass = request.field("pass").map(PassKind::named).transpose().map_err(CouldNotRun::new)?;
    Ok(pass.map(|pass| pass.name().to_string()))
}

/// A candidate of this program; no worker, which would be a command.
fn candidate_of(request: &Request) -> Result<Option<String>, CouldNotRun> {
    let name = request.field("candidate");
    name.map(|name| candidates::find(name).map(|_| name.to_string())).transpose().map_err(CouldNotRun::new)
}
