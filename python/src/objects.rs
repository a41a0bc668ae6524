//! Errors, and JSON values as Python objects.

use graph_oracle::words::released;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value;

pyo3::create_exception!(
    graph_oracle,
    CannotJudge,
    pyo3::exceptions::PyValueError,
    "What was given cannot be judged; the message says what is wrong with it."
);

pyo3::create_exception!(
    graph_oracle,
    InternalError,
    pyo3::exceptions::PyRuntimeError,
    "graph-oracle itself failed; the message ends with the case on which it did."
);

/// What `run` gives. A panic becomes an `InternalError` that ends with the case, which `case` gives as text.
pub fn guarded<T>(case: impl FnOnce() -> String, run: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    caught(run).unwrap_or_else(|panic| {
        let case = caught(case).unwrap_or_else(|panic| format!("(cannot be printed: {panic})"));
        let message =
            format!("graph-oracle itself failed: {panic}\nPlease report it with this case:\n{case}");
        Err(InternalError::new_err(message))
    })
}

/// What `run` gives, or the message of its panic.
fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    // What `run` changes is replaced as a whole or not at all.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic without a message")
            .to_string()
    })
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
