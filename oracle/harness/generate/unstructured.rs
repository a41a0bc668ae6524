//! `arbitrary` for generated cases (feature `arbitrary`).

use super::{Config, Generated, Unstructured, generate};
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
