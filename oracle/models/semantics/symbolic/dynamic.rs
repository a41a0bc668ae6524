//! Tensors of symbolic sizes.
//!
//! Such a tensor has one element that stands for all of it. A view of one is named by the views that lead to it from
//! its storage; what it shows is a function of that path and of what the storage holds. Equal functions of equal
//! contents are equal; anything else proves nothing, so all of this is marked as assumed.

use super::arena::Arena;
use super::evaluation::Tensor;
use super::key::{Tag, Words};
use super::source::ValueId;

/// The value of a tensor of symbolic sizes, or of a symbolic view, over `content`.
pub(super) fn shown(arena: &mut Arena, tensor: Tensor, content: ValueId) -> ValueId {
    let Some(path) = tensor.path else { return content };
    let mut words = Words::default();
    let name = arena.symbol("view");
    words.symbol(Tag::Target, name);
    words.put(Tag::Number, path.0);
    words.token(content, tensor.dtype);
    arena.opaque_movement(&words, 1, &[content])
}

/// The content of a storage after `value` has been written through `tensor`.
pub(super) fn written(arena: &mut Arena, tensor: Tensor, content: ValueId, value: ValueId) -> ValueId {
    let len = arena.len(content);
    match tensor.path {
        None if len == arena.len(value) => value,
        path => {
            let mut words = Words::default();
            let name = arena.symbol("write");
            words.symbol(Tag::Target, name);
            if let Some(path) = path {
                words.put(Tag::Number, path.0);
            }
            words.token(content, tensor.dtype);
            words.token(value, tensor.dtype);
            arena.opaque_movement(&words, len, &[content, value])
        }
    }
}
