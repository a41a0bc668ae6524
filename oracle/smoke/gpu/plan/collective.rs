//! Collectives as copies and reductions, member by member.
//!
//! Sources: the data movement of `torch/csrc/distributed/c10d/Functional.cpp` and of NCCL's documentation of each
//! collective; a member's part is its position in the group.

use super::kernel::Kernel;
use super::view::View;
use crate::ops::Collective;
use crate::semantics::observe::Start;
use crate::semantics::{RankReduce, Window};

/// A movement into one output of one member.
pub(super) struct Movement {
    pub kernel: Kernel,
    /// Who is read: the position of the member, and the view of its input.
    pub reads: Vec<(usize, Window, View)>,
    /// Which output, and the view of it.
    pub output: usize,
    pub to: View,
}

/// What member `me` of a collective moves into its outputs. `members` are in the order of the group.
pub(super) fn movements(members: &[&Start], me: usize) -> Result<Vec<Movement>, String> {
    let Some(mine) = members.get(me) else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for (output, window) in mine.outputs.iter().enumerate() {
        let to = View::of(window);
        if to.count() == 0 {
            continue;
        }
        let input = |from: usize| -> Result<(Window, View), String> {
            let inputs = &members[from].inputs;
            let window = *inputs.get(output).ok_or("a member gives nothing for an output")?;
            match window.conj {
                true => Err("a collective of a conjugated view".to_string()),
                false => Ok((window, View::of(&window))),
            }
        };
        let mut copy = |from: usize, source: View, start: u64, to: View, at: u64, count: u64| {
            let (window, _) = input(from)?;
            let kernel = Kernel::Copy { from: start, to: at, count };
            if count > 0 {
                all.push(Movement { kernel, reads: vec![(from, window, source)], output, to });
            }
            Ok::<(), String>(())
        };
        match mine.what.kind {
            Collective::AllGather => {
                let mut at = 0;
                for from in 0..members.len() {
                    let (_, source) = input(from)?;
                    copy(from, source, 0, to, at, source.count() as u64)?;
                    at += source.count() as u64;
                }
            }
            // A reduction of one part moves it, zeros with their sign.
            Collective::AllReduce | Collective::ReduceScatter if members.len() == 1 => {
                let (_, source) = input(0)?;
                copy(0, source, 0, to, 0, source.count() as u64)?;
            }
            Collective::AllReduce | Collective::ReduceScatter => {
                let op = mine.what.op.unwrap_or(RankReduce::Sum);
                let from = match mine.what.kind {
                    Collective::ReduceScatter => (me * to.count()) as u64,
                    _ => 0,
                };
                let mut reads = Vec::new();
                for member in 0..members.len() {
                    let (window, view) = input(member)?;
                    reads.push((member, window, view));
                }
                let kernel = Kernel::AcrossRanks { op, dtype: to.dtype, from };
                all.push(Movement { kernel, reads, output, to });
            }
            Collective::AllToAll => {
                let mut at = 0;
                for (from, other) in members.iter().enumerate() {
                    let (_, source) = input(from)?;
                    let row: i64 = source.shape.iter().skip(1).product();
                    let sent = &other.splits.0;
                    let start: i64 = sent.iter().take(me).sum();
                    let count = (sent.get(me).copied().unwrap_or(0) * row) as u64;
                    copy(from, source, (start * row) as u64, to, at, count)?;
                    at += count;
                }
            }
            Collective::Broadcast => {
                let root = usize::try_from(mine.what.root.unwrap_or(0)).unwrap_or(0).min(members.len() - 1);
                let (_, source) = input(root)?;
                copy(root, source, 0, to, 0, source.count() as u64)?;
            }
            Collective::Recv => {
                let (_, source) = input(0)?;
                copy(0, source, 0, to, 0, source.count() as u64)?;
            }
            Collective::ShardDimAllToAll => {
                let (gather, shard) = mine.what.dims.unwrap_or((0, 0));
                let mut at = 0;
                for from in 0..members.len() {
                    let (_, source) = input(from)?;
                    let size = |dim: usize| source.shape.get(dim).copied().unwrap_or(0);
                    let part = size(shard) / members.len() as i64;
                    let source = source.narrow(shard, part * me as i64, part);
                    let length = source.shape.get(gather).copied().unwrap_or(0);
                    let target = to.narrow(gather, at, length);
                    copy(from, source, 0, target, 0, source.count() as u64)?;
                    at += length;
                }
            }
            Collective::Send | Collective::Barrier => {}
            Collective::PointToPoint | Collective::Other => {
                return Err(format!("{} has no movement", mine.what));
            }
        }
    }
    Ok(all)
}

/// A dense view of as many elements: how a communicator's own buffer holds them.
pub(super) fn dense(view: &View) -> View {
    let count = view.count() as i64;
    let dims = |n: i64| crate::semantics::Dims::new(&[n]).unwrap_or_default();
    View { dtype: view.dtype, offset: 0, shape: dims(count), strides: dims(1) }
}
