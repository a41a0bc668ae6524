//! running
