//! A double of `libcuda.so.1`: the few entry points that graph-oracle's smoke runner calls, on host memory.
//!
//! It is there so that a machine without a GPU drives the whole CUDA path through the real loader: the test copies it to
//! `libcuda.so.1` in a folder of its own and names that folder in `LD_LIBRARY_PATH`. Every call runs at once, in the order
//! of the calls; captured calls run when the graph is launched. So it is a double of the interface and not a simulator: a
//! missing wait does not show here. That is what the host device is for.
//!
//! One call is late, as it may be on a GPU: what `cuMemcpyHtoD` copies from pageable memory arrives when somebody waits for
//! the context, or copies back. Streams that do not block are not ordered behind it.
//!
//! Kernels are known by name and computed here, in code that shares nothing with the interpreter ([`kernels`]).
//!
//! `FAKECUDA` chooses a failure: `stub` (a toolkit's stub library), `nodevice`, `oldptx` (takes PTX up to 7.8), `oom` (no more
//! than 64 KiB), `wrongmul` (multiplies wrongly).
#![allow(non_snake_case)]
#![allow(clippy::missing_safety_doc)]

mod kernels;
mod memory;

use kernels::Call;
use memory::{Operation, driver};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

type Result = c_int;
const SUCCESS: Result = 0;
const INVALID_VALUE: Result = 1;
const OUT_OF_MEMORY: Result = 2;
const STUB_LIBRARY: Result = 34;
const NO_DEVICE: Result = 100;
const UNSUPPORTED_PTX_VERSION: Result = 222;
const NOT_FOUND: Result = 500;

fn failure() -> String {
    std::env::var("FAKECUDA").unwrap_or_default()
}

/// Writes through a pointer that the caller gives.
unsafe fn give<T>(to: *mut T, value: T) -> Result {
    if to.is_null() {
        return INVALID_VALUE;
    }
    // SAFETY: the caller of the driver's function says so.
    unsafe { to.write_unaligned(value) };
    SUCCESS
}

/// Runs an operation now, or keeps it for the graph that is being captured.
fn submit(operation: Operation) -> Result {
    let mut driver = driver();
    match &mut driver.capture {
        Some(capture) => {
            capture.push(operation);
            SUCCESS
        }
        None => driver.run(&operation),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_: c_uint) -> Result {
    match failure().as_str() {
        "stub" => STUB_LIBRARY,
        "nodevice" => NO_DEVICE,
        _ => SUCCESS,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(to: *mut c_int) -> Result {
    unsafe { give(to, 13000) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(to: *mut c_int) -> Result {
    unsafe { give(to, 1) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(to: *mut c_int, ordinal: c_int) -> Result {
    unsafe { give(to, ordinal) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(to: *mut c_char, length: c_int, _: c_int) -> Result {
    let name = c"fakecuda";
    if to.is_null() || (length as usize) < name.to_bytes_with_nul().len() {
        return INVALID_VALUE;
    }
    unsafe { std::ptr::copy_nonoverlapping(name.as_ptr(), to, name.to_bytes_with_nul().len()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(to: *mut c_int, _: c_int, _: c_int) -> Result {
    unsafe { give(to, 1) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(to: *mut *mut c_void, _: c_int) -> Result {
    unsafe { give(to, 1 as *mut c_void) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(_: *mut c_void) -> Result {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> Result {
    driver().land()
}

/// Takes PTX up to version 9.0, as a driver of series 580 does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadData(to: *mut *mut c_void, image: *const c_char) -> Result {
    if image.is_null() {
        return INVALID_VALUE;
    }
    let Ok(text) = unsafe { CStr::from_ptr(image) }.to_str() else { return INVALID_VALUE };
    let version = text.lines().find_map(|line| line.trim().strip_prefix(".version "));
    let version: Option<Vec<u32>> =
        version.map(|v| v.split('.').filter_map(|n| n.trim().parse().ok()).collect());
    let most = if failure() == "oldptx" { vec![7, 8] } else { vec![9, 0] };
    match version {
        Some(version) if version <= most => {}
        _ => return UNSUPPORTED_PTX_VERSION,
    }
    let entry = |line: &str| {
        line.trim().strip_prefix(".visible .entry ").map(|rest| rest.trim_end_matches('(').to_string())
    };
    driver().entries = text.lines().filter_map(entry).collect();
    unsafe { give(to, 1 as *mut c_void) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(
    to: *mut *mut c_void,
    _: *mut c_void,
    name: *const c_char,
) -> Result {
    if name.is_null() {
        return INVALID_VALUE;
    }
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
    match driver().entries.iter().position(|entry| *entry == name) {
        Some(at) => unsafe { give(to, (at + 1) as *mut c_void) },
        None => NOT_FOUND,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernel(
    function: *mut c_void,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: c_uint,
    _: *mut c_void,
    parameters: *mut *mut c_void,
    _: *mut *mut c_void,
) -> Result {
    let Some(entry) = driver().entries.get((function as usize).wrapping_sub(1)).cloned() else {
        return INVALID_VALUE;
    };
    // SAFETY: the caller gives as many parameters as the entry point has.
    match unsafe { Call::read(&entry, parameters) } {
        Some(call) => submit(Operation::Launch(call)),
        None => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemPoolCreate(to: *mut *mut c_void, _: *const c_void) -> Result {
    let mut driver = driver();
    driver.pool = Default::default();
    unsafe { give(to, 1 as *mut c_void) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemPoolDestroy(_: *mut c_void) -> Result {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemPoolSetAttribute(_: *mut c_void, _: c_int, _: *mut c_void) -> Result {
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemPoolGetAttribute(_: *mut c_void, attribute: c_int, to: *mut u64) -> Result {
    let pool = driver().pool;
    let value = match attribute {
        5 => pool.high,
        6 => pool.high,
        7 => pool.used,
        8 => pool.high,
        _ => return INVALID_VALUE,
    };
    unsafe { give(to, value) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocFromPoolAsync(
    to: *mut u64,
    bytes: usize,
    _: *mut c_void,
    _: *mut c_void,
) -> Result {
    match driver().allocate(bytes, true) {
        Some(at) => unsafe { give(to, at) },
        None => OUT_OF_MEMORY,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeAsync(at: u64, _: *mut c_void) -> Result {
    driver().free(at)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(to: *mut u64, bytes: usize) -> Result {
    match driver().allocate(bytes, false) {
        Some(at) => unsafe { give(to, at) },
        None => OUT_OF_MEMORY,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(at: u64) -> Result {
    driver().free(at)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD32Async(at: u64, word: c_uint, count: usize, _: *mut c_void) -> Result {
    submit(Operation::Fill { at, word, count })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const u8, bytes: usize) -> Result {
    // SAFETY: the caller gives so many bytes.
    let bytes = unsafe { std::slice::from_raw_parts(from, bytes) };
    driver().under_way.push((to, bytes.to_vec()));
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut u8, from: u64, bytes: usize) -> Result {
    // SAFETY: the caller has room for so many bytes.
    let to = unsafe { std::slice::from_raw_parts_mut(to, bytes) };
    let mut driver = driver();
    match driver.land() {
        SUCCESS => driver.read(from, to),
        failed => failed,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(to: *mut *mut c_void, _: c_uint) -> Result {
    unsafe { give(to, driver().handle()) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(_: *mut c_void) -> Result {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(_: *mut c_void, _: *mut c_void, _: c_uint) -> Result {
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(to: *mut *mut c_void, _: c_uint) -> Result {
    unsafe { give(to, driver().handle()) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(_: *mut c_void, _: *mut c_void) -> Result {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventDestroy_v2(_: *mut c_void) -> Result {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamBeginCapture_v2(_: *mut c_void, _: c_int) -> Result {
    driver().capture = Some(Vec::new());
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamEndCapture(_: *mut c_void, to: *mut *mut c_void) -> Result {
    let mut driver = driver();
    let Some(capture) = driver.capture.take() else { return INVALID_VALUE };
    driver.graph = capture;
    unsafe { give(to, 1 as *mut c_void) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphInstantiateWithFlags(to: *mut *mut c_void, _: *mut c_void, _: u64) -> Result {
    unsafe { give(to, 1 as *mut c_void) }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphLaunch(_: *mut c_void, _: *mut c_void) -> Result {
    let mut driver = driver();
    let graph = std::mem::take(&mut driver.graph);
    let result = graph.iter().map(|operation| driver.run(operation)).find(|&result| result != SUCCESS);
    driver.graph = graph;
    result.unwrap_or(SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphExecDestroy(_: *mut c_void) -> Result {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGraphDestroy(_: *mut c_void) -> Result {
    SUCCESS
}
