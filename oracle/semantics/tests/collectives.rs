//! collectives
