//! The memory of the double: one arena of host memory at a made-up address, from which everything is allocated.
//!
//! Addresses start far from zero, and freed memory is handed out again at once, most recently freed first where it fits: a plan
//! that reads what it has freed meets the next owner's data.

use super::kernels::Call;
use super::{INVALID_VALUE, Result, SUCCESS};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The address of the first byte.
const BASE: u64 = 0x7f00_0000_0000;
/// The bytes that there are.
const BYTES: u64 = 64 << 20;
/// What allocations are rounded to.
const GRANULARITY: u64 = 512;

/// Counters of the pool.
#[derive(Clone, Copy, Default)]
pub struct Pool {
    pub used: u64,
    pub high: u64,
}

/// What can be captured.
pub enum Operation {
    Fill { at: u64, word: u32, count: usize },
    Launch(Call),
}

/// The driver.
#[derive(Default)]
pub struct Driver {
    memory: Vec<u8>,
    /// Sizes by address, and whether they are the pool's.
    live: BTreeMap<u64, (u64, bool)>,
    free: Vec<(u64, u64)>,
    top: u64,
    handles: usize,
    pub pool: Pool,
    pub entries: Vec<String>,
    pub capture: Option<Vec<Operation>>,
    pub graph: Vec<Operation>,
    /// Copies from the host that have not arrived: where to, and what.
    pub under_way: Vec<(u64, Vec<u8>)>,
}

static DRIVER: Mutex<Option<Driver>> = Mutex::new(None);

/// The one driver of the process.
pub fn driver() -> Guard {
    let mut guard = DRIVER.lock().unwrap_or_else(PoisonError::into_inner);
    guard.get_or_insert_with(Driver::default);
    Guard(guard)
}

/// The driver while somebody uses it.
pub struct Guard(MutexGuard<'static, Option<Driver>>);

impl std::ops::Deref for Guard {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        match &*self.0 {
            Some(driver) => driver,
            None => unreachable!("made when it was locked"),
        }
    }
}

impl std::ops::DerefMut for Guard {
    fn deref_mut(&mut self) -> &mut Driver {
        self.0.get_or_insert_with(Driver::default)
    }
}

impl Driver {
    pub fn handle(&mut self) -> *mut c_void {
        self.handles += 1;
        self.handles as *mut c_void
    }

    pub fn allocate(&mut self, bytes: usize, in_pool: bool) -> Option<u64> {
        let size = (bytes as u64).div_ceil(GRANULARITY) * GRANULARITY;
        let limit = if super::failure() == "oom" { 64 << 10 } else { BYTES };
        let at = match self.free.iter().rposition(|&(_, free)| free == size) {
            Some(i) => self.free.remove(i).0,
            None => {
                let at = self.top;
                if at + size > limit {
                    return None;
                }
                self.top += size;
                self.memory.resize(self.top as usize, 0);
                BASE + at
            }
        };
        self.live.insert(at, (size, in_pool));
        if in_pool {
            self.pool.used += size;
            self.pool.high = self.pool.high.max(self.pool.used);
        }
        Some(at)
    }

    pub fn free(&mut self, at: u64) -> Result {
        let Some((size, in_pool)) = self.live.remove(&at) else { return INVALID_VALUE };
        if in_pool {
            self.pool.used -= size;
        }
        self.free.push((at, size));
        SUCCESS
    }

    /// Where bytes of the device lie; anything that was ever allocated can be touched.
    fn range(&self, at: u64, bytes: usize) -> Option<std::ops::Range<usize>> {
        let start = at.checked_sub(BASE)? as usize;
        (start + bytes <= self.memory.len()).then_some(start..start + bytes)
    }

    pub fn bytes(&self, at: u64, count: usize) -> Option<&[u8]> {
        Some(&self.memory[self.range(at, count)?])
    }

    pub fn bytes_mut(&mut self, at: u64, count: usize) -> Option<&mut [u8]> {
        let range = self.range(at, count)?;
        Some(&mut self.memory[range])
    }

    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Result {
        match self.bytes_mut(at, bytes.len()) {
            Some(to) => {
                to.copy_from_slice(bytes);
                SUCCESS
            }
            None => INVALID_VALUE,
        }
    }

    /// Lets arrive what is under way.
    pub fn land(&mut self) -> Result {
        for (at, bytes) in std::mem::take(&mut self.under_way) {
            let result = self.write(at, &bytes);
            if result != SUCCESS {
                return result;
            }
        }
        SUCCESS
    }

    pub fn read(&self, at: u64, to: &mut [u8]) -> Result {
        match self.bytes(at, to.len()) {
            Some(bytes) => {
                to.copy_from_slice(bytes);
                SUCCESS
            }
            None => INVALID_VALUE,
        }
    }

    pub fn run(&mut self, operation: &Operation) -> Result {
        match operation {
            &Operation::Fill { at, word, count } => match self.bytes_mut(at, count * 4) {
                Some(bytes) => {
                    bytes.chunks_exact_mut(4).for_each(|chunk| chunk.copy_from_slice(&word.to_le_bytes()));
                    SUCCESS
                }
                None => INVALID_VALUE,
            },
            Operation::Launch(call) => match call.run(self) {
                Some(()) => SUCCESS,
                None => 700,
            },
        }
    }
}
