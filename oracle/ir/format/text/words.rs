//! The words of the text format: which are constants, which can stand without quotes, and how to quote.

use crate::graph::{Dtype, Group, World};
use rustc_hash::FxHashMap;

/// A word that is a constant in an argument list, so that a node or group with this name needs a mark.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Constant {
    None,
    True,
    False,
    Infinity,
    NaN,
    /// `i64::MAX`, PyTorch's end-of-slice marker.
    End,
    Dtype(Dtype),
    MemoryFormat(&'static str),
    Layout(&'static str),
}

/// Names of `torch.memory_format` that are words.
const MEMORY_FORMATS: [&str; 4] =
    ["contiguous_format", "preserve_format", "channels_last", "channels_last_3d"];

/// Names of `torch.layout` that are words.
const LAYOUTS: [&str; 8] =
    ["strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged", "_mkldnn"];

/// The constant that a word stands for.
pub(super) fn constant(word: &str) -> Option<Constant> {
    let named = |names: &[&'static str]| names.iter().copied().find(|&name| name == word);
    match word {
        "None" => Some(Constant::None),
        "True" => Some(Constant::True),
        "False" => Some(Constant::False),
        "inf" => Some(Constant::Infinity),
        "nan" => Some(Constant::NaN),
        "end" => Some(Constant::End),
        _ => Dtype::parse_short(word)
            .map(Constant::Dtype)
            .or_else(|| named(&MEMORY_FORMATS).map(Constant::MemoryFormat))
            .or_else(|| named(&LAYOUTS).map(Constant::Layout)),
    }
}

/// Whether `name` is a word for a memory format.
pub(super) fn is_memory_format(name: &str) -> bool {
    MEMORY_FORMATS.contains(&name)
}

/// Whether `name` is a word for a layout.
pub(super) fn is_layout(name: &str) -> bool {
    LAYOUTS.contains(&name)
}

/// Length in bytes of the word at the start of `bytes`: letters, digits, `_`, and dots between them; 0 if there
/// is none.
pub(super) fn word_length(bytes: &[u8]) -> usize {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    if !inner(at(0)) || at(0).is_ascii_digit() {
        return 0;
    }
    let mut end = 1;
    loop {
        if inner(at(end)) {
            end += 1;
        } else if at(end) == b'.' && inner(at(end + 1)) {
            end += 2;
        } else {
            return end;
        }
    }
}

/// Whether `text` is one word.
pub(super) fn is_word(text: &str) -> bool {
    !text.is_empty() && word_length(text.as_bytes()) == text.len()
}

/// Whether a byte may stand in a raw word: a size, a rule id, a device, the name of a candidate.
pub(super) fn is_raw_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'/' | b':' | b'+' | b'-' | b'*')
}

/// Whether `text` is one raw word.
fn is_raw(text: &str) -> bool {
    !text.is_empty() && !text.ends_with(':') && text.bytes().all(is_raw_byte)
}

/// `text` as a raw word if it is one, else in quotes.
pub(super) fn raw_or_quoted(text: &str) -> String {
    if is_raw(text) { text.to_string() } else { quote(text) }
}

/// `text` as a word if it is one, else in quotes.
pub(super) fn word_or_quoted(text: &str) -> String {
    if is_word(text) { text.to_string() } else { quote(text) }
}

/// The groups of a world by name, with their sizes: any word may be one.
#[derive(Default)]
pub(super) struct Groups(FxHashMap<String, u32>);

impl Groups {
    pub(super) fn of(world: &World) -> Groups {
        let mut groups = Groups::default();
        world.groups.iter().for_each(|group| groups.add(group));
        groups
    }

    /// Of several groups with one name the first counts.
    pub(super) fn add(&mut self, group: &Group) {
        self.0.entry(group.name.clone()).or_insert(group.size);
    }

    /// How many ranks the group with this name has.
    pub(super) fn size(&self, name: &str) -> Option<u32> {
        self.0.get(name).copied()
    }
}

/// Whether a bare word is the name of one of these groups wherever a value may stand.
pub(super) fn is_bare_group(groups: &Groups, name: &str) -> bool {
    is_word(name) && constant(name).is_none() && groups.size(name).is_some()
}

/// Writes the name of a node: a bare word where that cannot be read otherwise, else with `%`.
pub(super) fn push_node_name(text: &mut String, groups: &Groups, name: &str) {
    if !is_word(name) {
        text.push('%');
        text.push_str(&quote(name));
        return;
    }
    if constant(name).is_some() || groups.size(name).is_some() {
        text.push('%');
    }
    text.push_str(name);
}

/// The name of a node as it is written.
pub(super) fn node_name(groups: &Groups, name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    push_node_name(&mut text, groups, name);
    text
}

/// `text` in quotes: single ones if that saves escaping double ones.
pub(super) fn quote(text: &str) -> String {
    let mark = if text.contains('"') && !text.contains('\'') { '\'' } else { '"' };
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push(mark);
    for c in crate::words::released(text).chars() {
        match c {
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c == mark => quoted.extend(['\\', c]),
            c if crate::words::is_hidden(c) => quoted.push_str(&format!("\\u{{{:x}}}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push(mark);
    quoted
}

/// The one of `names` that `word` is probably a misspelling of: at most a third of its letters differ.
pub(super) fn nearest<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if word.len() > 40 {
        return None;
    }
    let scored = names.map(|name| (distance(word.as_bytes(), name.as_bytes()), name));
    scored.min_by_key(|&(d, _)| d).filter(|&(d, name)| d <= name.len().max(3) / 3).map(|(_, name)| name)
}

/// The number of letters to insert, remove or replace.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
