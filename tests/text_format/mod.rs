//! The text case format: round trips and errors.

mod build;
mod cases;
mod corpus;
mod errors;
mod roundtrip;
mod sections;

/// Snapshots lie in snapshots/ at the root, named by what they show.
fn snapshots() -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(concat!(env!("CARGO_MANIFEST_DIR"), "/snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}
