//! pointwise
