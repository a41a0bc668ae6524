//! Joint graphs.
