//! Whether two values are the same, where their ids differ.
//!
//! # The idea
//!
//! Equal ids are equal values. Different ids may still be equal values, written differently: a window that could not be
//! flattened against runs. A pair of values is taken apart into runs, a pair of runs into elements or into the inputs
//! of the calls that made them; so the question becomes one about other pairs, of older values. If all that a pair rests
//! on is the same, so is the pair. Anything else is open. Each pair is settled once, and what is known of it is kept for
//! all questions about the arena.
//!
//! # What it does not do
//!
//! It never says that two values differ: what is written otherwise may be the same by a law that is not known here, and
//! inputs for which both graphs differ are what shows a difference (see [`trials`](crate::semantics)).

use super::arena::Arena;
use super::element::Element;
use super::key::inputs_that_differ;
use super::run::Piece;
use super::source::{KeyId, ValueId};
use std::ops::Range;

/// Two things that may be the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Pair {
    Values(ValueId, ValueId),
    Keys(KeyId, KeyId),
    Elements(Element, Element),
}

/// The pairs that two things rest on: they are the same if these are. `None` where nothing tells.
pub(super) type RestsOn = Option<Vec<Pair>>;

/// Where two values are written differently.
pub(super) struct Parting {
    /// The elements, in row-major order.
    pub(super) elements: Range<i64>,
    /// What is there, in words.
    pub(super) found: String,
    /// What was expected.
    pub(super) expected: String,
}

/// What of a pair is being decided.
struct Frame {
    pair: Pair,
    /// Of two values: the pieces that are not looked at yet, the next one last, and of that how far.
    pieces: Vec<(Piece, Piece)>,
    at: i64,
    /// The pairs that it rests on and that are not settled yet.
    open: Vec<Pair>,
}

/// Answers questions about one arena. The arena remembers the answers.
pub(super) struct Judge<'a> {
    pub(super) arena: &'a mut Arena,
}

impl<'a> Judge<'a> {
    pub(super) fn new(arena: &'a mut Arena) -> Judge<'a> {
        Judge { arena }
    }

    /// Whether two values are proved to be the same.
    pub(super) fn values(&mut self, a: ValueId, b: ValueId) -> bool {
        self.settle(Pair::Values(a, b))
    }

    /// Whether two calls are proved to be the same.
    pub(super) fn keys(&mut self, a: KeyId, b: KeyId) -> bool {
        self.settle(Pair::Keys(a, b))
    }

    fn settle(&mut self, pair: Pair) -> bool {
        if let Some(known) = self.known(pair) {
            return known;
        }
        let mut frames: Vec<Frame> = self.open(pair).into_iter().collect();
        while let Some(frame) = frames.last_mut() {
            if let Some(&pair) = frame.open.last() {
                match self.known(pair) {
                    Some(true) => drop(frame.open.pop()),
                    Some(false) => drop(frames.pop()),
                    None => frames.extend(self.open(pair)),
                }
            } else if let Some(&(p, q)) = frame.pieces.last() {
                match self.pieces((p, q), frame.at, &mut frame.open) {
                    Some(at) if at < p.len => frame.at = at,
                    Some(_) => {
                        frame.pieces.pop();
                        frame.at = 0;
                    }
                    None => drop(frames.pop()),
                }
            } else {
                self.arena.settled.insert(frame.pair, true);
                frames.pop();
            }
        }
        self.known(pair).unwrap_or(false)
    }

    /// Begins with a pair; `None` where nothing tells.
    fn open(&mut self, pair: Pair) -> Option<Frame> {
        // Values are made of older ones, so that no pair comes up for itself. Of one that does nothing is known.
        self.arena.settled.insert(pair, false);
        let (mut pieces, mut open) = (Vec::new(), Vec::new());
        match pair {
            Pair::Values(a, b) if self.arena.len(a) != self.arena.len(b) => return None,
            Pair::Values(a, b) => {
                pieces = self.arena.differing(a, b);
                pieces.reverse();
            }
            Pair::Keys(a, b) => open = inputs_that_differ(self.arena.words(a), self.arena.words(b))?,
            Pair::Elements(a, b) => open = self.elements(a, b)?,
        }
        Some(Frame { pair, pieces, at: 0, open })
    }

    /// What is known of a pair.
    pub(super) fn known(&self, pair: Pair) -> Option<bool> {
        match pair {
            Pair::Values(a, b) if a == b => Some(true),
            Pair::Keys(a, b) if a == b => Some(true),
            Pair::Elements(a, b) if a == b => Some(true),
            pair => self.arena.settled.get(&pair).copied(),
        }
    }

    /// The first elements that are not proved to be the same, in words.
    pub(super) fn parting(&mut self, a: ValueId, b: ValueId) -> Option<Parting> {
        let spots = self.arena.differing_at(a, b);
        let mut first = *spots.first()?;
        for (at, expected, found) in spots {
            let (x, y) = (self.arena.piece(expected), self.arena.piece(found));
            if !self.values(x, y) {
                first = (at, expected, found);
                break;
            }
        }
        let (at, expected, found) = first;
        let (words, expected) = self.arena.difference_words(found, expected);
        Some(Parting { elements: at..at + found.len, found: words, expected })
    }
}
