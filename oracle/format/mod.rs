//! How graphs and cases are written down: exchange JSON, text, pictures.

pub mod json;
mod picture;
pub mod svg;
pub mod text;
