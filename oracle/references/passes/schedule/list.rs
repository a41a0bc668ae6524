//! A doubly linked list of steps.

const NONE: u32 = u32::MAX;

/// A list of the steps `0..n`.
#[derive(Clone, Debug)]
pub struct List {
    next: Vec<u32>,
    prev: Vec<u32>,
    first: u32,
}

impl List {
    /// The steps in the order of their numbers.
    pub fn new(n: usize) -> List {
        let link = |i: usize| if i < n { i as u32 } else { NONE };
        List {
            next: (1..=n).map(link).collect(),
            prev: (0..n).map(|i| i.checked_sub(1).map_or(NONE, |i| i as u32)).collect(),
            first: link(0),
        }
    }

    /// The step after another.
    pub fn next(&self, step: u32) -> Option<u32> {
        Some(self.next[step as usize]).filter(|&next| next != NONE)
    }

    /// The step before another.
    pub fn prev(&self, step: u32) -> Option<u32> {
        Some(self.prev[step as usize]).filter(|&prev| prev != NONE)
    }

    /// The steps from `head` to the end.
    pub fn from(&self, head: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(head), |&step| self.next(step))
    }

    /// All steps in order.
    pub fn order(&self) -> Vec<u32> {
        match self.first {
            NONE => Vec::new(),
            first => self.from(first).collect(),
        }
    }

    /// Moves a step to right after another.
    pub fn move_after(&mut self, anchor: u32, step: u32) {
        self.unlink(step);
        let next = self.next[anchor as usize];
        self.link(anchor, step, next);
    }

    /// Moves a step to right before another.
    pub fn move_before(&mut self, anchor: u32, step: u32) {
        self.unlink(step);
        let prev = self.prev[anchor as usize];
        self.link(prev, step, anchor);
    }

    fn unlink(&mut self, step: u32) {
        let (prev, next) = (self.prev[step as usize], self.next[step as usize]);
        if prev == NONE {
            self.first = next
        } else {
            self.next[prev as usize] = next
        }
        if next != NONE {
            self.prev[next as usize] = prev;
        }
    }

    fn link(&mut self, prev: u32, step: u32, next: u32) {
        (self.prev[step as usize], self.next[step as usize]) = (prev, next);
        if prev == NONE {
            self.first = step
        } else {
            self.next[prev as usize] = step
        }
        if next != NONE {
            self.prev[next as usize] = step;
        }
    }
}
