//! The text case format (`.graph`): one file is a fuzz seed, a test, a bug report and a page of documentation.
//! docs/case_format.md describes it.
//!
//! # The idea
//!
//! One statement a line, one node a statement, in list order. Printing is canonical: parsing and printing again
//! gives the same text, and parsing what was printed gives the same case. Parsing is total: any bytes give a
//! case or errors with line and column. What is wrong with a *graph* (a reference to a later node or to none, a
//! name given twice, a shape that its operator cannot give) parses: it is for
//! [`validate`](crate::analysis) to report.
//!
//! # What it does not carry
//!
//! `stack` and `extra` of nodes, `extra` of graphs, and schema facts about targets that the table of operators
//! knows or that the graph does not use. A reference to the second of two nodes with one name becomes one to
//! the first.

mod claim;
mod error;
mod header;
mod lexer;
mod line;
mod node;
mod parse;
mod print;
mod value;
mod words;

pub use error::{ParseError, ParseErrors};
pub(super) use parse::Mark;

use crate::case::Case;
use crate::graph::{Dim, Dtype, Graph, NodeId, StorageId};
use crate::ops;
use std::fmt;

/// The device of tensors where a file names none.
pub const DEFAULT_DEVICE: &str = "cuda:0";

/// Reads a case. Errors: bytes that are not UTF-8, or all that can be told apart, in file order, 20 at most.
pub fn parse(text: impl AsRef<[u8]>) -> Result<Case, ParseErrors> {
    let bytes = text.as_ref();
    match std::str::from_utf8(bytes) {
        Ok(text) => parse::parse(text),
        Err(error) => {
            let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let message = "a byte that is not UTF-8".to_string();
            Err(ParseErrors {
                errors: vec![ParseError::new(&valid, valid.len(), valid.len(), message, None)],
            })
        }
    }
}

/// The bytes at which statements begin, as far as the text can be read.
pub(super) fn marks(text: &str) -> Vec<(Mark, usize)> {
    parse::marks(text)
}

/// The canonical text of a case.
pub fn print(case: &Case) -> String {
    print::print(case)
}

/// The canonical text of a case that holds `graph` and nothing else.
pub fn print_graph(graph: &Graph) -> String {
    print(&Case::of_graph(graph.clone()))
}

/// The line of one node, as a report shows it.
pub fn node_line(graph: &Graph, node: NodeId) -> String {
    line::Lines::new(graph, DEFAULT_DEVICE).row(node).plain()
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self))
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self))
    }
}

/// The bounds of a symbol where a file names none.
fn default_range() -> (String, String) {
    ("0".to_string(), "int_oo".to_string())
}

/// The size of a storage that is not written: that of the tensor, where the storage is named.
fn default_bytes(storage: Option<StorageId>, shape: &[Dim], dtype: Dtype) -> Option<Dim> {
    storage?;
    let size = i64::from(dtype.itemsize());
    shape.iter().try_fold(size, |n, d| n.checked_mul(d.known()?)).map(Dim::Static)
}

/// The positional argument of `target` that holds the size of the group that the next argument names.
pub(super) fn group_size_position(target: &str) -> Option<usize> {
    let params = &ops::by_target(target)?.schema.as_ref()?.params;
    params.windows(2).position(|pair| pair[0].name == "group_size" && pair[1].name == "group_name")
}
