//! Positions in an editor's list, so that two nodes can be compared without walking the list.
//!
//! Each node has a number that grows along the list. New nodes take numbers from the gap that they are put
//! into; when a gap is too small, all nodes are numbered afresh.

use crate::graph::{Editor, NodeId};

const GAP: u64 = 1 << 32;

/// Numbers of the nodes of one editor.
#[derive(Clone, Debug)]
pub struct Positions(Vec<u64>);

impl Positions {
    /// Numbers the list.
    pub fn new(editor: &Editor) -> Positions {
        let mut positions = Positions(Vec::new());
        positions.renumber(editor);
        positions
    }

    fn renumber(&mut self, editor: &Editor) {
        self.0.resize(editor.graph().len(), 0);
        let mut next = editor.first();
        let mut at = GAP;
        while let Some(id) = next {
            self.0[id.index()] = at;
            at += GAP;
            next = editor.next(id);
        }
    }

    /// A number that compares as the node's place in the list.
    pub fn of(&self, id: NodeId) -> u64 {
        self.0[id.index()]
    }

    /// Numbers nodes that have just been put, in this order and next to each other, into the list.
    pub fn inserted(&mut self, editor: &Editor, run: &[NodeId]) {
        let (Some(&first), Some(&last)) = (run.first(), run.last()) else { return };
        self.0.resize(editor.graph().len(), 0);
        let low = editor.prev(first).map_or(0, |id| self.of(id));
        let high =
            editor.next(last).map_or(low.saturating_add(GAP * (run.len() as u64 + 1)), |id| self.of(id));
        let step = high.saturating_sub(low) / (run.len() as u64 + 1);
        if step == 0 {
            return self.renumber(editor);
        }
        for (i, id) in run.iter().enumerate() {
            self.0[id.index()] = low + step * (i as u64 + 1);
        }
    }

    /// Numbers a contiguous slice of the list whose nodes have changed places among themselves.
    pub fn permuted(&mut self, editor: &Editor, first: NodeId, count: usize) {
        let run: Vec<NodeId> =
            std::iter::successors(Some(first), |&id| editor.next(id)).take(count).collect();
        let mut numbers: Vec<u64> = run.iter().map(|&id| self.of(id)).collect();
        numbers.sort_unstable();
        for (id, number) in run.iter().zip(numbers) {
            self.0[id.index()] = number;
        }
    }
}
