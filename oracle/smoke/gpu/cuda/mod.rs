//! The CUDA driver as a device.
//!
//! The driver is loaded when the program runs, so that one binary works with and without it. Only the raw layers of
//! cudarc are used: its safe layer waits for events by itself, and so would repair what the checks are there to find.
//!
//! Memory comes from a pool of our own, which may reuse memory only where events order it: opportunistic reuse and
//! reuse by dependencies that the driver inserts are off. Buffers with guard bands, and those in an arena, are parts of
//! plain allocations, for the pool decides alone where its buffers lie.
//!
//! # Safety
//!
//! Every pointer that is handed to the driver comes from it, or points to memory that lives until the call returns.
//! What kernels read and write is decided by the plan, and may be out of bounds on purpose: that is a device address,
//! and the driver's to refuse.
#![allow(unsafe_code)]

mod kernels;

use super::device::{Description, Device, FREED, GUARD, GUARD_BYTES, Placement, Trouble, UNWRITTEN, Usage};
use super::plan::{Fnv, Launch};
use super::report::{Finding, Kind};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use kernels::Parameters;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::ptr::null_mut;

/// The kernels: PTX ISA 8.0 for sm_75, which every driver from series 525 on compiles for its device.
pub const PTX: &str = include_str!("../../../../gpu/kernels/kernels.ptx");
/// What they are compiled from.
pub const SOURCE: &str = include_str!("../../../../gpu/kernels/kernels.cu");

/// Words that the driver says, as far as they have a sentence of their own.
fn explain(error: DriverError, doing: &str) -> Trouble {
    use sys::CUresult::*;
    let cannot = |text: String| Trouble::CannotRun(text);
    match error.0 {
        CUDA_ERROR_STUB_LIBRARY => cannot(
            "the libcuda.so that was found is the stub of a toolkit; take its stubs folder out of LD_LIBRARY_PATH"
                .to_string(),
        ),
        CUDA_ERROR_NO_DEVICE => {
            cannot("the CUDA driver finds no device; see nvidia-smi and CUDA_VISIBLE_DEVICES".to_string())
        }
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION => cannot(
            "the CUDA driver is older than PTX ISA 8.0; a driver of series 525 or newer is needed".to_string(),
        ),
        CUDA_ERROR_OUT_OF_MEMORY => cannot(format!("out of device memory while {doing}; smaller cases need less")),
        CUDA_ERROR_SYSTEM_DRIVER_MISMATCH | CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE => {
            cannot(format!("libcuda.so does not fit the kernel driver ({:?}); see nvidia-smi", error.0))
        }
        code => Trouble::Failed(format!("{code:?} while {doing}")),
    }
}

/// The driver with one device.
pub struct Cuda {
    description: Description,
    device: sys::CUdevice,
    module: sys::CUmodule,
    functions: BTreeMap<String, sys::CUfunction>,
    pool: sys::CUmemoryPool,
    streams: Vec<sys::CUstream>,
    events: Vec<sys::CUevent>,
    placement: Placement,
    sizes: Vec<u64>,
    /// The address of each buffer; it is kept after the free, so that a use after free reaches the device.
    at: Vec<u64>,
    in_pool: Vec<bool>,
    /// Plain allocations.
    blocks: Vec<u64>,
    /// What the allocator would count, where the pool is not used.
    counted: Usage,
    graph: Option<(sys::CUgraph, sys::CUgraphExec)>,
}

impl Cuda {
    /// Loads the driver and the kernels.
    ///
    /// # Errors
    /// One line that says what is missing.
    pub fn new() -> Result<Cuda, Trouble> {
        // SAFETY: loads a library and looks at nothing in it.
        if !unsafe { sys::is_culib_present() } {
            return Err(Trouble::CannotRun(
                "no CUDA driver found: libcuda.so.1 could not be loaded. Use --device host.".to_string(),
            ));
        }
        result::init().map_err(|e| explain(e, "starting the driver"))?;
        let count = result::device::get_count().map_err(|e| explain(e, "counting devices"))?;
        if count < 1 {
            return Err(explain(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE), ""));
        }
        let device = result::device::get(0).map_err(|e| explain(e, "opening device 0"))?;
        let name = result::device::get_name(device).map_err(|e| explain(e, "asking for a name"))?;
        let mut version = 0;
        let ptx =
            CString::new(PTX).map_err(|_| Trouble::Failed("the kernels hold a zero byte".to_string()))?;
        // SAFETY: the device is valid; the image ends with a zero byte and outlives the call.
        let (module, pool) = unsafe {
            sys::cuDriverGetVersion(&mut version)
                .result()
                .map_err(|e| explain(e, "asking for the version"))?;
            let supported = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
            let pools = result::device::get_attribute(device, supported)
                .map_err(|e| explain(e, "asking for pools"))?;
            if pools == 0 {
                return Err(Trouble::CannotRun(format!("{name} has no stream-ordered allocator")));
            }
            let context = result::primary_ctx::retain(device).map_err(|e| explain(e, "making a context"))?;
            result::ctx::set_current(context).map_err(|e| explain(e, "making a context"))?;
            let module = result::module::load_data(ptx.as_ptr().cast())
                .map_err(|e| explain(e, "loading the kernels"))?;
            (module, new_pool(device)?)
        };
        let kernels = format!("PTX 8.0 {:016x}", Fnv::of(PTX.as_bytes()));
        let driver = format!("CUDA {}.{}", version / 1000, version % 1000 / 10);
        let mut this = Cuda {
            description: Description { device: name, driver, kernels, granularity: 1 },
            device,
            module,
            functions: BTreeMap::new(),
            pool,
            streams: Vec::new(),
            events: Vec::new(),
            placement: Placement::Allocator,
            sizes: Vec::new(),
            at: Vec::new(),
            in_pool: Vec::new(),
            blocks: Vec::new(),
            counted: Usage::default(),
            graph: None,
        };
        // How the pool rounds is measured, with a buffer of one byte.
        this.begin(1, 0, &[1], &Placement::Allocator)?;
        this.alloc(0, 0, 0)?;
        this.synchronize()?;
        this.description.granularity = this.usage()?.used.max(1);
        Ok(this)
    }

    fn function(&mut self, name: &str) -> Result<sys::CUfunction, Trouble> {
        if let Some(&function) = self.functions.get(name) {
            return Ok(function);
        }
        let entry = CString::new(name).map_err(|_| Trouble::Failed(format!("no kernel {name:?}")))?;
        // SAFETY: the module is loaded.
        let function = unsafe { result::module::get_function(self.module, entry) };
        let function =
            function.map_err(|_| Trouble::CannotRun(format!("the device has no kernel called {name}")))?;
        self.functions.insert(name.to_string(), function);
        Ok(function)
    }

    fn attribute(&self, attribute: sys::CUmemPool_attribute) -> Result<u64, Trouble> {
        let mut value = 0u64;
        // SAFETY: the pool is valid, and these attributes are 64 bits wide.
        unsafe { result::mem_pool::get_attribute(self.pool, attribute, (&raw mut value).cast()) }
            .map_err(|e| explain(e, "asking the pool"))?;
        Ok(value)
    }

    fn fill(&self, stream: sys::CUstream, at: u64, bytes: u64, word: u32) -> Result<(), Trouble> {
        let words = bytes.div_ceil(4) as usize;
        if words == 0 {
            return Ok(());
        }
        // SAFETY: every buffer is rounded up to whole words.
        unsafe { sys::cuMemsetD32Async(at, word, words, stream) }
            .result()
            .map_err(|e| explain(e, "filling memory"))
    }

    fn block(&mut self, bytes: u64) -> Result<u64, Trouble> {
        // SAFETY: a plain allocation.
        let at = unsafe { result::malloc_sync(bytes.max(4) as usize) };
        let at = at.map_err(|e| explain(e, &format!("allocating {bytes} bytes")))?;
        self.blocks.push(at);
        Ok(at)
    }

    fn start(&mut self, stream: u32, parameters: &mut Parameters) -> Result<(), Trouble> {
        let function = self.function(&parameters.entry)?;
        const THREADS: u64 = 128;
        let blocks = parameters.threads.div_ceil(THREADS).clamp(1, 1024) as u32;
        let mut pointers = parameters.pointers();
        // SAFETY: the parameters are those of the entry point, and live until the launch has copied them.
        unsafe {
            result::launch_kernel(
                function,
                (blocks, 1, 1),
                (THREADS as u32, 1, 1),
                0,
                self.streams[stream as usize],
                &mut pointers,
            )
        }
        .map_err(|e| explain(e, &format!("launching {}", parameters.entry)))
    }

    /// Frees everything of the replay before.
    fn release(&mut self) -> Result<(), Trouble> {
        result::ctx::synchronize().map_err(|e| explain(e, "waiting for the device"))?;
        // SAFETY: nothing runs any more, and everything is released once.
        unsafe {
            if let Some((graph, exec)) = self.graph.take() {
                result::graph::exec_destroy(exec).map_err(|e| explain(e, "dropping a graph"))?;
                result::graph::destroy(graph).map_err(|e| explain(e, "dropping a graph"))?;
            }
            for (at, in_pool) in self.at.iter().zip(&mut self.in_pool) {
                if std::mem::take(in_pool) {
                    let stream = self.streams.first().copied().unwrap_or(null_mut());
                    result::free_async(*at, stream).map_err(|e| explain(e, "freeing memory"))?;
                }
            }
            result::ctx::synchronize().map_err(|e| explain(e, "waiting for the device"))?;
            for block in self.blocks.drain(..) {
                result::free_sync(block).map_err(|e| explain(e, "freeing memory"))?;
            }
            for event in self.events.drain(..) {
                result::event::destroy(event).map_err(|e| explain(e, "dropping an event"))?;
            }
            for stream in self.streams.drain(..) {
                result::stream::destroy(stream).map_err(|e| explain(e, "dropping a stream"))?;
            }
        }
        Ok(())
    }
}

/// A pool that reuses memory only where events order it.
///
/// # Safety
/// The device must be valid, and a context current.
unsafe fn new_pool(device: sys::CUdevice) -> Result<sys::CUmemoryPool, Trouble> {
    // SAFETY: zero is a valid value of every field of the properties, and says nothing but defaults.
    let mut properties: sys::CUmemPoolProps = unsafe { std::mem::zeroed() };
    properties.allocType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    let mut pool = null_mut();
    // SAFETY: the properties live until the call returns; attributes 2 and 3 are 32 bits wide, attribute 4 is 64.
    unsafe {
        sys::cuMemPoolCreate(&mut pool, &properties)
            .result()
            .map_err(|e| explain(e, "making a memory pool"))?;
        for attribute in [
            sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
            sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES,
        ] {
            let mut off = 0i32;
            result::mem_pool::set_attribute(pool, attribute, (&raw mut off).cast())
                .map_err(|e| explain(e, "setting up the pool"))?;
        }
        // What was freed stays mapped, so that a use after free reads poison rather than ending the context.
        let mut threshold = u64::MAX;
        let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        result::mem_pool::set_attribute(pool, attribute, (&raw mut threshold).cast())
            .map_err(|e| explain(e, "setting up the pool"))?;
    }
    Ok(pool)
}

impl Device for Cuda {
    fn describe(&self) -> Description {
        self.description.clone()
    }

    fn begin(
        &mut self,
        streams: usize,
        events: usize,
        buffers: &[u64],
        placement: &Placement,
    ) -> Result<(), Trouble> {
        self.release()?;
        // SAFETY: the old pool is empty. A new one starts with its counters at zero.
        unsafe {
            result::mem_pool::destroy(self.pool).map_err(|e| explain(e, "dropping a memory pool"))?;
            self.pool = new_pool(self.device)?;
        }
        for _ in 0..streams {
            let stream = result::stream::create(result::stream::StreamKind::NonBlocking);
            self.streams.push(stream.map_err(|e| explain(e, "making a stream"))?);
        }
        // One more event than the plan has, for captures.
        for _ in 0..=events {
            let event = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING);
            self.events.push(event.map_err(|e| explain(e, "making an event"))?);
        }
        self.placement = placement.clone();
        self.sizes = buffers.to_vec();
        self.at = vec![0; buffers.len()];
        self.in_pool = vec![false; buffers.len()];
        self.counted = Usage::default();
        if let Placement::Arena { offsets, bytes } = placement {
            let base = self.block(*bytes)?;
            for (at, offset) in self.at.iter_mut().zip(offsets) {
                *at = base + offset;
            }
            self.counted = Usage { used: *bytes, peak: *bytes, reserved: *bytes };
        }
        Ok(())
    }

    fn alloc(&mut self, stream: u32, buffer: u32, _: usize) -> Result<(), Trouble> {
        let bytes = self.sizes[buffer as usize];
        let words = bytes.div_ceil(4) * 4;
        let stream = self.streams[stream as usize];
        match self.placement {
            Placement::Allocator => {
                // SAFETY: pool and stream are valid.
                let at = unsafe { result::mem_pool::alloc_async(self.pool, words as usize, stream) };
                self.at[buffer as usize] =
                    at.map_err(|e| explain(e, &format!("allocating {bytes} bytes")))?;
                self.in_pool[buffer as usize] = true;
            }
            Placement::Guarded => {
                let base = self.block(words + 2 * GUARD_BYTES)?;
                self.fill(stream, base, words + 2 * GUARD_BYTES, GUARD)?;
                self.at[buffer as usize] = base + GUARD_BYTES;
                self.counted.used += words;
                self.counted.peak = self.counted.peak.max(self.counted.used);
            }
            Placement::Arena { .. } => {}
        }
        // Bytes past the end that only fill up a word are the guard's.
        let at = self.at[buffer as usize];
        self.fill(stream, at, bytes / 4 * 4, UNWRITTEN)
    }

    fn free(&mut self, stream: u32, buffer: u32, _: usize) -> Result<(), Trouble> {
        let (at, bytes) = (self.at[buffer as usize], self.sizes[buffer as usize]);
        let stream = self.streams[stream as usize];
        self.fill(stream, at, bytes / 4 * 4, FREED)?;
        if std::mem::take(&mut self.in_pool[buffer as usize]) {
            // SAFETY: the address comes from the pool, and is freed once.
            unsafe { result::free_async(at, stream) }.map_err(|e| explain(e, "freeing memory"))?;
        }
        if self.placement == Placement::Guarded {
            self.counted.used = self.counted.used.saturating_sub(bytes.div_ceil(4) * 4);
        }
        Ok(())
    }

    fn launch(&mut self, stream: u32, launch: &Launch, _: usize) -> Result<(), Trouble> {
        let mut parameters = Parameters::new(launch, &self.at)?;
        match parameters.threads {
            0 => Ok(()),
            _ => self.start(stream, &mut parameters),
        }
    }

    fn record(&mut self, stream: u32, event: u32, _: usize) -> Result<(), Trouble> {
        // SAFETY: both are valid.
        unsafe { result::event::record(self.events[event as usize], self.streams[stream as usize]) }
            .map_err(|e| explain(e, "recording an event"))
    }

    fn wait(&mut self, stream: u32, event: u32, _: usize) -> Result<(), Trouble> {
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: both are valid.
        unsafe {
            result::stream::wait_event(self.streams[stream as usize], self.events[event as usize], flags)
        }
        .map_err(|e| explain(e, "waiting for an event"))
    }

    fn spin(&mut self, stream: u32, nanoseconds: u64) -> Result<(), Trouble> {
        self.start(stream, &mut Parameters::spin(nanoseconds))
    }

    fn synchronize(&mut self) -> Result<(), Trouble> {
        result::ctx::synchronize().map_err(|e| explain(e, "running the plan"))
    }

    fn upload(&mut self, buffer: u32, bytes: &[u8]) -> Result<(), Trouble> {
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the buffer has at least as many bytes.
        unsafe { result::memcpy_htod_sync(self.at[buffer as usize], bytes) }
            .map_err(|e| explain(e, "copying to the device"))?;
        // The call returns once the bytes are staged. Streams that do not block are not ordered behind their arrival.
        self.synchronize()
    }

    fn download(&mut self, buffer: u32) -> Result<Vec<u8>, Trouble> {
        let mut bytes = vec![0u8; self.sizes[buffer as usize] as usize];
        if !bytes.is_empty() && self.at[buffer as usize] != 0 {
            // SAFETY: the buffer has as many bytes.
            unsafe { result::memcpy_dtoh_sync(&mut bytes, self.at[buffer as usize]) }
                .map_err(|e| explain(e, "copying from the device"))?;
            // The copy is over, but compute-sanitizer orders it before a later free only if somebody waits.
            self.synchronize()?;
        }
        Ok(bytes)
    }

    fn usage(&mut self) -> Result<Usage, Trouble> {
        use sys::CUmemPool_attribute::*;
        match self.placement {
            Placement::Allocator => Ok(Usage {
                used: self.attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?,
                peak: self.attribute(CU_MEMPOOL_ATTR_USED_MEM_HIGH)?,
                reserved: self.attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?,
            }),
            _ => Ok(self.counted),
        }
    }

    fn findings(&mut self) -> Result<Vec<Finding>, Trouble> {
        let mut findings = Vec::new();
        if self.placement != Placement::Guarded {
            return Ok(findings);
        }
        for buffer in 0..self.sizes.len() {
            let (at, size) = (self.at[buffer], self.sizes[buffer]);
            if at == 0 {
                continue;
            }
            let whole = size.div_ceil(4) * 4;
            let mut bytes = vec![0u8; (whole + 2 * GUARD_BYTES) as usize];
            // SAFETY: the guard bands on both sides belong to the block.
            unsafe { result::memcpy_dtoh_sync(&mut bytes, at - GUARD_BYTES) }
                .map_err(|e| explain(e, "copying from the device"))?;
            let word = GUARD.to_le_bytes();
            let changed = |at: &u64| bytes[*at as usize] != word[*at as usize % 4];
            let band = (0..GUARD_BYTES).chain(GUARD_BYTES + size..whole + 2 * GUARD_BYTES).find(changed);
            if let Some(at) = band {
                findings.push(
                    Finding::new(Kind::GuardBroken, format!("buffer {buffer}"))
                        .with("first changed byte", format!("{at} of the buffer with its guard bands"))
                        .with("buffer bytes", size.to_string()),
                );
            }
        }
        Ok(findings)
    }

    fn captures(&self) -> bool {
        true
    }

    fn capture(&mut self) -> Result<(), Trouble> {
        let failed = |e| explain(e, "capturing");
        let (Some(&origin), Some(&fork)) = (self.streams.first(), self.events.last()) else {
            return Err(Trouble::Failed("nothing to capture".to_string()));
        };
        // SAFETY: streams and events are valid. The other streams join the capture by waiting for an event of the
        // first.
        unsafe {
            let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
            result::stream::begin_capture(origin, mode).map_err(failed)?;
            result::event::record(fork, origin).map_err(failed)?;
            for &stream in &self.streams[1..] {
                let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
                result::stream::wait_event(stream, fork, flags).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn captured(&mut self) -> Result<(), Trouble> {
        let failed = |e| explain(e, "capturing");
        let (Some(&origin), Some(&join)) = (self.streams.first(), self.events.last()) else { return Ok(()) };
        // SAFETY: as above; the first stream waits for all others before the capture ends.
        unsafe {
            for &stream in &self.streams[1..] {
                result::event::record(join, stream).map_err(failed)?;
                let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
                result::stream::wait_event(origin, join, flags).map_err(failed)?;
            }
            let graph = result::stream::end_capture(origin).map_err(failed)?;
            let flags = sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
            let exec = result::graph::instantiate(graph, flags).map_err(failed)?;
            self.graph = Some((graph, exec));
        }
        Ok(())
    }

    fn launch_captured(&mut self) -> Result<(), Trouble> {
        let (Some((_, exec)), Some(&stream)) = (self.graph, self.streams.first()) else { return Ok(()) };
        // SAFETY: the graph is instantiated, and the stream valid.
        unsafe { result::graph::launch(exec, stream) }.map_err(|e| explain(e, "launching a graph"))
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // What cannot be released goes with the process.
        let _ = self.release();
    }
}
