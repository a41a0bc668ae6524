//! What several files say alike: ranks that run one program write the same texts, which are read and judged once.
//!
//! A graph is what its text and all that was known besides make of it, so both together are its key; what is said of a
//! pair follows from the keys of both graphs and from the process groups that became known since. Nothing depends on
//! which file came first, but for the time that a row says it took.
//!
//! Texts are forgotten when there are too many of them; verdicts are kept.

use super::row::{Cost, Outcome};
use crate::limits::Limit;
use ir::format::fx;
use md5::{Digest, Md5};
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The MD5 of something.
pub(super) type Key = [u8; 16];

/// What became of two graphs.
#[derive(Clone)]
pub(super) struct Judged {
    pub(super) outcome: Outcome,
    pub(super) cost: (Cost, Cost),
    pub(super) launches: (Vec<String>, Vec<String>),
    pub(super) allowed: Option<String>,
    pub(super) notes: Vec<String>,
}

#[derive(Default)]
struct Texts {
    graphs: FxHashMap<Key, Arc<fx::Printed>>,
    bytes: u64,
}

/// Shared by all files of a folder.
#[derive(Default)]
pub(super) struct Cache {
    texts: Mutex<Texts>,
    judged: Mutex<FxHashMap<Key, Judged>>,
    members: Mutex<fx::Members>,
}

/// The key of several parts.
pub(super) fn key(parts: &[&[u8]]) -> Key {
    let mut digest = Md5::new();
    for part in parts {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

/// What another thread left half done is complete in itself: entries are only added.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cache {
    /// Of a run whose world has so many ranks, where that is known.
    pub(super) fn new(ranks: Option<u32>) -> Cache {
        Cache { members: Mutex::new(fx::Members::new(ranks)), ..Cache::default() }
    }

    /// Says of groups with hashed names which ranks they have.
    pub(super) fn find_members(&self, printed: &mut fx::Printed) {
        printed.find_members(&mut lock(&self.members));
    }

    /// The graph of this key, else what `read` gives of a text of so many bytes.
    pub(super) fn text<E>(
        &self,
        key: Key,
        bytes: usize,
        read: impl FnOnce() -> Result<fx::Printed, E>,
    ) -> Result<Arc<fx::Printed>, E> {
        if let Some(known) = lock(&self.texts).graphs.get(&key) {
            return Ok(known.clone());
        }
        let graph = Arc::new(read()?);
        let mut texts = lock(&self.texts);
        texts.bytes += bytes as u64;
        if texts.bytes > Limit::Text.standard() {
            *texts = Texts { graphs: FxHashMap::default(), bytes: bytes as u64 };
        }
        texts.graphs.insert(key, graph.clone());
        Ok(graph)
    }

    /// What is said of the pair of this key, else what `judge` says.
    pub(super) fn judged(&self, key: Key, judge: impl FnOnce() -> Judged) -> Judged {
        if let Some(known) = lock(&self.judged).get(&key) {
            return known.clone();
        }
        let judged = judge();
        lock(&self.judged).insert(key, judged.clone());
        judged
    }
}
