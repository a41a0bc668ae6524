//! reductions
