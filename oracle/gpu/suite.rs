//! The built-in suite.
