//! How graphs and cases are written down: exchange JSON, text, pictures.

pub mod json;
pub mod text;
