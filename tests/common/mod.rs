//! The program as a user runs it, and a folder to run it in. Shared by the tests of the command line.

// Not every test uses all of it.
#![allow(dead_code)]

pub mod recorded;
pub mod scale;

use std::path::PathBuf;
use std::process::{Command, Output};

/// Whether tests write what they compare with: INSTA_UPDATE=always, which snapshots obey too.
pub fn is_blessing() -> bool {
    std::env::var_os("INSTA_UPDATE").is_some_and(|mode| mode == "always")
}

/// Runs the program in the project's folder.
pub fn program(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_graph-oracle"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder that is gone when the test ends.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("graph-oracle-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> String {
        std::fs::write(self.0.join(name), bytes).unwrap();
        self.path(name)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
