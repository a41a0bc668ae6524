//! How graphs and cases are written down: text, pictures.

pub mod text;
