//! How graphs and cases are written down: exchange JSON, text, pictures.

pub mod dot;
pub mod json;
mod picture;
pub mod svg;
pub mod text;
mod window;

pub use window::window;
