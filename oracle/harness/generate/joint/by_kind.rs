//! Things at hand by what they are like, so that a step of a long graph need not look through all of them.

/// Things in the order in which they came, by what makes them alike. There are few kinds.
#[derive(Debug)]
pub(super) struct ByKind<K, T> {
    kinds: Vec<(K, Vec<T>)>,
}

impl<K: PartialEq, T> ByKind<K, T> {
    pub fn new() -> ByKind<K, T> {
        ByKind { kinds: Vec::new() }
    }

    pub fn push(&mut self, kind: K, thing: T) {
        match self.kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, things)) => things.push(thing),
            None => self.kinds.push((kind, vec![thing])),
        }
    }

    /// Those of a kind, in order.
    pub fn of(&self, kind: &K) -> &[T] {
        self.kinds.iter().find(|(known, _)| known == kind).map_or(&[], |(_, things)| things)
    }
}
