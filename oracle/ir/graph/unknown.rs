//! Fields of a file that this version does not know, where they hang on something smaller than a node.
//!
//! Almost no graph has any, so they lie in a table beside the arenas and cost nothing where they are absent.
//! What hangs on the whole file, on a node or on its tags has its own place: [`Graph::extra`],
//! [`Node::extra`](super::Node::extra), [`Tags::extra`](super::Tags::extra).

use super::{Graph, Str, TensorId};

/// What an unknown field belongs to. Groups and symbols go by name, so that their order may change.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Holder {
    /// A tensor.
    Tensor(TensorId),
    /// A process group, by name.
    Group(Str),
    /// A symbol, by name.
    Symbol(Str),
}

impl Graph {
    /// The unknown fields of `holder`: a JSON object, kept as text.
    pub fn unknown_fields(&self, holder: Holder) -> Option<&str> {
        self.unknown.get(&holder).map(|&json| self.text(json))
    }

    /// Keeps the unknown fields of `holder`: a JSON object as text.
    pub fn set_unknown_fields(&mut self, holder: Holder, json: &str) {
        let json = self.intern(json);
        self.unknown.insert(holder, json);
    }
}
