//! Errors, and JSON values as Python objects.

use graph_oracle::words::released;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyList};
use serde_json::Value;
use std::path::PathBuf;

pyo3::create_exception!(
    graph_oracle,
    CannotJudge,
    pyo3::exceptions::PyValueError,
    "What was given cannot be judged; the message says what is wrong with it."
);

pyo3::create_exception!(
    graph_oracle,
    InternalError,
    CannotJudge,
    "graph-oracle itself failed. `case` is the path of a file with what it failed on, or None if none could be written."
);

/// What `run` gives. Everything that computes goes through here: a panic becomes an `InternalError`, which keeps what
/// `case` gives, the path of a file.
pub fn guarded<T>(
    py: Python<'_>,
    case: impl FnOnce() -> PyResult<PathBuf>,
    run: impl FnOnce() -> PyResult<T>,
) -> PyResult<T> {
    caught(run).unwrap_or_else(|panic| {
        let said = format!("graph-oracle itself failed: {panic}");
        let (said, case) = match caught(case) {
            Ok(Ok(path)) => {
                (format!("{said}; please report it with {}", path.display()), Some(path.into_os_string()))
            }
            Ok(Err(why)) => (format!("{said}; its case cannot be written: {why}"), None),
            Err(why) => (format!("{said}; its case cannot be printed: {why}"), None),
        };
        let error = InternalError::new_err(said);
        error.value(py).setattr("case", case)?;
        Err(error)
    })
}

/// What `run` gives, or the message of its panic.
fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    // Of what `run` changes nothing is left half changed: graphs are replaced as a whole.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_string()
    })
}

/// A new file with a text, in the folder for temporary files.
pub fn kept(py: Python<'_>, text: &str) -> PyResult<PathBuf> {
    let keywords = [("mode", "w"), ("encoding", "utf-8"), ("prefix", "graph-oracle-"), ("suffix", ".graph")];
    let keywords = keywords.into_py_dict(py)?;
    keywords.set_item("delete", false)?;
    let file = py.import("tempfile")?.call_method("NamedTemporaryFile", (), Some(&keywords))?;
    file.call_method1("write", (text,))?;
    file.call_method0("close")?;
    file.getattr("name")?.extract()
}

/// An error with a message of ours.
pub fn cannot(why: impl std::fmt::Display) -> PyErr {
    CannotJudge::new_err(why.to_string())
}

/// A JSON value as Python's own objects.
pub fn object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(yes) => yes.into_pyobject(py)?.to_owned().into_any(),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(n), _) => n.into_pyobject(py)?.into_any(),
            (None, Some(n)) => n.into_pyobject(py)?.into_any(),
            (None, None) => number.as_f64().into_pyobject(py)?.into_any(),
        },
        Value::String(text) => released(text).into_pyobject(py)?.into_any(),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(object(py, item)?)?;
            }
            list.into_any()
        }
        Value::Object(fields) => {
            let dict = PyDict::new(py);
            for (key, value) in fields {
                dict.set_item(key, object(py, value)?)?;
            }
            dict.into_any()
        }
    })
}
