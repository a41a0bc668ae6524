//! Calls that write elements which overlap.
//!
//! Where a window shows one element twice, or where a call writes to what it still reads elsewhere, what is left depends
//! on the order in which the operator takes the elements. That is not executed.

use super::super::domain::{Outcome, refuse};
use super::super::layout::{Window, is_injective};
use super::super::program::Step;
use super::super::rank::Rank;
use super::opaque::collect;
use crate::analysis::bytes::{ByteSet, Overlap};
use crate::graph::{NodeId, Value};
use crate::ops::{Kind, OpInfo};

impl Rank<'_> {
    /// Refuses a call whose result depends on the order of its elements.
    pub(super) fn ordered_by_elements(&self, node: NodeId, step: &Step, kind: Kind) -> Outcome<()> {
        let Some(info) = step.info.filter(|info| info.writes() && !matches!(kind, Kind::Fill(_))) else {
            return Ok(());
        };
        let windows = self.windows_of(node, info)?;
        for (at, (own, _)) in windows.iter().enumerate().filter(|(_, (_, is_written))| *is_written) {
            if !is_injective(&own.shape, &own.strides) {
                return Err(refuse!("{} writes elements that overlap", info.target));
            }
            let reads_elsewhere = windows.iter().enumerate().any(|(index, (other, _))| {
                let is_one =
                    (other.offset, other.shape, other.strides) == (own.offset, own.shape, own.strides);
                index != at
                    && other.storage == own.storage
                    && !(kind.takes_corresponding() && is_one)
                    && meet(own, other)
            });
            if reads_elsewhere {
                return Err(refuse!("{} writes to what it reads elsewhere", info.target));
            }
        }
        Ok(())
    }

    /// The tensors that a call is given, each with whether it writes to it.
    fn windows_of(&self, node: NodeId, info: &OpInfo) -> Outcome<Vec<(Window, bool)>> {
        let graph = self.program.graph;
        let Some(schema) = &info.schema else { return Ok(Vec::new()) };
        let written: Vec<usize> = info.written(graph, node).collect();
        let mut all = Vec::new();
        for (index, param) in schema.params.iter().enumerate() {
            let Some(value @ (Value::Node(_) | Value::List(_))) = graph.argument(node, index, &param.name)
            else {
                continue;
            };
            let mut windows = Vec::new();
            collect(&self.item(value)?, &mut windows);
            all.extend(windows.into_iter().map(|window| (window, written.contains(&index))));
        }
        Ok(all)
    }
}

/// Whether two windows on one storage may have an element in common.
fn meet(one: &Window, other: &Window) -> bool {
    let bytes = |of: &Window| {
        let width = i64::from(of.dtype.itemsize());
        ByteSet::of_window(of.offset.saturating_mul(width), &of.shape, &of.strides, width)
    };
    bytes(one).overlap(bytes(other)) != Overlap::No
}
