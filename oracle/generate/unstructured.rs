//! `arbitrary` for generated cases (feature `arbitrary`).
//!
//! ```
//! # #[cfg(feature = "arbitrary")]
//! # {
//! use arbitrary::{Arbitrary, Unstructured};
//! use graph_oracle::candidates::{Reference, judging};
//! use graph_oracle::case::Case;
//! use graph_oracle::judge::{self, Options, Values};
//!
//! let data: Vec<u8> = (0..2000u32).map(|i| (i * 31 % 251) as u8).collect();
//! let case = Case::arbitrary(&mut Unstructured::new(&data)).unwrap();
//! let options = Options { values: Values::Off, ..judging() };
//! assert!(judge::judge(&case, &Reference, &options).is_ok());
//! # }
//! ```

use super::{Config, Generated, Unstructured, generate};
use crate::case::Case;
use arbitrary::Arbitrary;

/// Nodes of a case at most, whatever the data: a bound on the cost of one execution of a fuzz target.
const MAX_NODES: u32 = 400;

impl<'a> Arbitrary<'a> for Generated {
    /// Decodes until the data ends; never fails.
    fn arbitrary(data: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Generated> {
        let mut source = Unstructured::new(data);
        let config = Config { max_nodes: MAX_NODES, ..Config::default() }.swarmed(&mut source);
        Ok(generate(&mut source, &config))
    }

    fn size_hint(_depth: usize) -> (usize, Option<usize>) {
        (0, None)
    }
}

impl<'a> Arbitrary<'a> for Case {
    /// A [`Generated`] case, without expectations.
    fn arbitrary(data: &mut arbitrary::Unstructured<'a>) -> arbitrary::Result<Case> {
        Generated::arbitrary(data).map(Generated::into_case)
    }

    fn size_hint(depth: usize) -> (usize, Option<usize>) {
        Generated::size_hint(depth)
    }
}
