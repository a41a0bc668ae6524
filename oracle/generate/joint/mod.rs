//! Joint graphs.

#[cfg(test)]
pub(crate) mod naive;
