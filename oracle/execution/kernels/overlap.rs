//! Calls that write elements which overlap.
//!
//! Where a window shows one element twice, or where a call writes to what it still reads elsewhere, what is left depends
//! on the order in which the operator takes the elements. That is not executed.

use super::super::domain::{Outcome, refuse};
use super::super::layout::{Window, is_injective};
use super::super::program::Step;
use super::super::rank::Rank;
use super::opaque::collect;
use crate::analysis::bytes::{ByteSet, Overlap, meeting};
use crate::graph::{NodeId, Value};
use crate::ops::{Kind, OpInfo};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

impl Rank<'_> {
    /// Refuses a call whose result depends on the order of its elements.
    pub(super) fn ordered_by_elements(&self, node: NodeId, step: &Step, kind: Kind) -> Outcome<()> {
        let Some(info) = step.info.filter(|info| info.writes() && !matches!(kind, Kind::Fill(_))) else {
            return Ok(());
        };
        let windows = self.windows_of(node, info)?;
        if windows.iter().any(|(own, is_written)| *is_written && !is_injective(&own.shape, &own.strides)) {
            return Err(refuse!("{} writes elements that overlap", info.target));
        }
        let mut on_storage: FxHashMap<_, FxHashMap<_, (ByteSet, bool)>> = FxHashMap::default();
        for (window, is_written) in &windows {
            let here = on_storage.entry(window.storage).or_default();
            let lies = (window.offset, &*window.shape, &*window.strides);
            let (_, writes) = match here.entry(lies) {
                // Who takes corresponding elements may write where it reads.
                Entry::Occupied(known) if kind.takes_corresponding() => known.into_mut(),
                Entry::Occupied(known) if (known.get().1 || *is_written) && !known.get().0.is_empty() => {
                    return Err(refuse!("{} writes to what it reads elsewhere", info.target));
                }
                entry => entry.or_insert((bytes(window), false)),
            };
            *writes |= is_written;
        }
        for windows in on_storage.values() {
            let (sets, written): (Vec<ByteSet>, Vec<bool>) = windows.values().copied().unzip();
            let meets =
                |i: usize, j: usize| (written[i] || written[j]) && sets[i].overlap(sets[j]) != Overlap::No;
            if meeting(&sets, &mut |i, j| (!meets(i, j)).then_some(())).is_none() {
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

/// The bytes that a window shows.
fn bytes(of: &Window) -> ByteSet {
    let width = i64::from(of.dtype.itemsize());
    ByteSet::of_window(of.offset.saturating_mul(width), &of.shape, &of.strides, width)
}
