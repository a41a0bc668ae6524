//! domains
