//! The judge for Python, in the process that compiles: the module `graph_oracle._oracle`.
//!
//! # The idea
//!
//! A graph of `torch.fx` is read as it stands in memory, straight into the oracle's own graph: no JSON, no other
//! process ([`fx`]). torch is not a dependency: what needs to know it is asked of a Python object that is handed in.
//! The verdict goes back as plain Python objects, the same that the JSON report holds.
//!
//! # What it does not do
//!
//! It decides nothing: what a call says is what the command line says of the same graphs.
#![warn(missing_docs)]

mod cases;
mod fx;
mod graph;
mod objects;
mod pair;

use pyo3::prelude::*;

/// As in the program: a case is many small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[pymodule]
mod _oracle {
    #[pymodule_export]
    use super::{
        cases::Shrinking, cases::generate, command, fx::Reader, graph::Graph, objects::CannotJudge,
        objects::InternalError, pair::Pair,
    };

    #[pymodule_init]
    fn limit_threads(_module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        graph_oracle::threads::limit_pool();
        Ok(())
    }
}

/// Runs the command line on the arguments (the program's name first) and returns its exit status.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> PyResult<u8> {
    let run = || {
        let (mut out, mut complain) = (std::io::stdout().lock(), std::io::stderr());
        Ok(graph_oracle::cli::run(&arguments, &mut out, &mut complain) as u8)
    };
    objects::guarded(py, || objects::kept(py, &format!("# {arguments:?}\n")), || py.detach(run))
}
