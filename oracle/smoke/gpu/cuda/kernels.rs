//! Kernel parameters as `gpu/kernels/kernels.cu` declares them.

use crate::gpu::device::Trouble;
use crate::gpu::plan::{Kernel, Launch, Part};
use std::ffi::c_void;

/// The most members of a collective that is a reduction.
const MOST: usize = 16;
/// Words of the struct `View`: address, offset, dimensions, sizes, strides.
const VIEW: usize = 3 + 8 + 8;

/// An entry point with its parameters, each a row of 64-bit words.
pub(super) struct Parameters {
    pub entry: String,
    /// How many elements there are to compute.
    pub threads: u64,
    words: Vec<Vec<u64>>,
}

impl Parameters {
    /// The parameters of a launch, with the address of each buffer.
    pub fn new(launch: &Launch, at: &[u64]) -> Result<Parameters, Trouble> {
        let view = |part: &Part| {
            let view = &part.view;
            let mut words = vec![0; VIEW];
            words[0] = at.get(part.buffer as usize).copied().unwrap_or(0);
            words[1] = view.offset as u64;
            words[2] = view.shape.len() as u64;
            for (dim, (&size, &stride)) in view.shape.iter().zip(view.strides.iter()).enumerate() {
                words[3 + dim] = size as u64;
                words[11 + dim] = stride as u64;
            }
            words
        };
        let operand = |parts: &[Part], at: usize| {
            let missing = || Trouble::Failed(format!("{} lacks an operand", launch.kernel.name()));
            parts.get(at).map(view).ok_or_else(missing)
        };
        let (read, to) = (|at| operand(&launch.reads, at), operand(&launch.writes, 0)?);
        let shown = &launch.writes[0].view;
        let (count, size) = (shown.count() as u64, shown.size() as u64);
        let (threads, words) = match launch.kernel {
            Kernel::Copy { from, to: into, count } => {
                (count, vec![to, read(0)?, vec![size], vec![into], vec![from], vec![count]])
            }
            Kernel::Fill(word) => (count, vec![to, vec![size], vec![word], vec![count]]),
            Kernel::Binary(..) => (count, vec![to, read(0)?, read(1)?, vec![count]]),
            Kernel::Cast(..) | Kernel::Unary(..) => (count, vec![to, read(0)?, vec![count]]),
            Kernel::Matmul(_) => {
                let size = |dim: usize| shown.shape.get(dim).map_or(0, |&n| n as u64);
                let inner =
                    launch.reads.first().and_then(|part| part.view.shape.get(1)).map_or(0, |&n| n as u64);
                (count, vec![to, read(0)?, read(1)?, vec![size(0)], vec![inner], vec![size(1)]])
            }
            Kernel::AcrossRanks { from, .. } => {
                let ranks = launch.reads.len();
                if ranks > MOST {
                    return Err(Trouble::CannotRun(format!(
                        "a reduction over {ranks} ranks, the limit is {MOST}"
                    )));
                }
                let mut views = Vec::with_capacity(MOST * VIEW);
                launch.reads.iter().for_each(|part| views.extend(view(part)));
                views.resize(MOST * VIEW, 0);
                (count, vec![to, views, vec![ranks as u64], vec![from], vec![count]])
            }
            Kernel::Interpret => {
                return Err(Trouble::CannotRun("an operator that only the host has".to_string()));
            }
        };
        Ok(Parameters { entry: launch.kernel.name(), threads, words })
    }

    /// The parameters of the kernel that keeps a stream busy.
    pub fn spin(nanoseconds: u64) -> Parameters {
        Parameters { entry: "spin".to_string(), threads: 1, words: vec![vec![nanoseconds]] }
    }

    /// A pointer to each parameter; they point into `self`.
    pub fn pointers(&mut self) -> Vec<*mut c_void> {
        self.words.iter_mut().map(|words| words.as_mut_ptr().cast()).collect()
    }
}
