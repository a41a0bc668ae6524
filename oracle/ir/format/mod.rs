//! How graphs and cases are written down: exchange JSON, text, pictures; and what PyTorch writes about a run.

pub mod dot;
pub mod flight_recorder;
pub mod fx;
pub mod json;
mod lines;
pub mod memory_snapshot;
pub mod objects;
pub mod pickle;
mod picture;
mod places;
pub mod recognise;
pub mod svg;
pub mod text;
pub mod torch_logs;
pub mod torch_trace;
mod window;

pub use places::{Places, Spot};
pub use window::window;

/// Whether a character could steer a terminal or hide in it: control characters but for line feeds and tabs, what turns
/// the direction of writing, and line ends of other kinds.
pub fn is_hidden(c: char) -> bool {
    let turns =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || matches!(c, '\u{2028}' | '\u{2029}') || (c.is_control() && !matches!(c, '\n' | '\t'))
}
