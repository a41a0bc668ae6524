//! Mutants of the minimum cut and of what the two sides hand over: other cuts, other weights, symbols and outputs lost.

use crate::graph::NodeId;
use crate::passes::partition::max_flow::CutSide;
use crate::passes::partition::min_cut::Context;
use crate::passes::partition::min_cut::context::{Weight, weight};
use crate::passes::partition::{Joint, PartitionError, Strategy};
use fixedbitset::FixedBitSet;

/// The minimum cut closest to the source.
pub(super) struct SourceSide;
impl Strategy for SourceSide {
    fn cut_side(&self) -> CutSide {
        CutSide::Source
    }
}

/// A tenth more for every other value, as a measurement on another machine may say.
pub(super) struct NoisyWeight;
impl Strategy for NoisyWeight {
    fn weight(&self, cx: &Context, id: NodeId) -> Result<Weight, PartitionError> {
        Ok(match weight(cx, id)? {
            Weight::Finite(weight) if id.index().is_multiple_of(2) => {
                Weight::Finite(weight.saturating_add(weight / 10))
            }
            other => other,
        })
    }
}

/// No node binds a symbol: each was replaced by its value.
pub(super) struct BindsNothing;
impl Strategy for BindsNothing {
    fn bound_symbol<'a>(&self, _: &'a Joint, _: NodeId) -> Option<&'a str> {
        None
    }
}

/// Backward returns what depends on a tangent.
pub(super) struct TangentOutputs;
impl Strategy for TangentOutputs {
    fn claims_output(&self, _: &Joint, closure: &FixedBitSet, id: NodeId) -> bool {
        closure.contains(id.index())
    }
}

/// The counter of products goes on from the layer before, which was this one.
pub(super) struct CountsOn;
impl Strategy for CountsOn {
    fn kept_products(&self, _: &Joint, products: &[NodeId]) -> Vec<NodeId> {
        products.iter().copied().skip(products.len() % 2).step_by(2).collect()
    }
}
