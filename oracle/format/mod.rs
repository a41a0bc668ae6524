//! How graphs and cases are written down: text and pictures.

mod picture;
pub mod svg;
pub mod text;
