//! Pass 0: the device itself.
//!
//! How its allocator rounds is measured, not assumed; and every kernel is held against the host's over values that are
//! hard to round.

use crate::gpu::device::{Device, Placement, Trouble};
use crate::gpu::host::kernels;
use crate::gpu::plan::{Arithmetic, Function, Kernel, Launch, Part, View};
use crate::gpu::report::{Finding, Kind, PassReport};
use crate::graph::{Dtype, NodeId};
use crate::semantics::{Concrete, Dims, Domain, RankReduce};

/// Checks a device before any plan runs on it.
///
/// # Errors
/// Where the device fails.
pub fn preflight(device: &mut dyn Device) -> Result<PassReport, Trouble> {
    let mut pass = PassReport { name: "preflight", ..PassReport::default() };
    device.begin(1, 1, &[1], &Placement::Allocator)?;
    let empty = device.usage()?.used;
    device.alloc(0, 0, 0)?;
    device.synchronize()?;
    let one = device.usage()?.used.saturating_sub(empty);
    device.free(0, 0, 0)?;
    device.synchronize()?;
    let left = device.usage()?.used;
    if left != empty {
        let finding = Finding::new(Kind::Memory, "memory in use after everything is freed");
        pass.findings.push(finding.with("bytes", (left - empty).to_string()));
    }
    let stated = device.describe().granularity;
    if one != stated {
        let finding = Finding::new(Kind::Memory, "a buffer of one byte");
        pass.findings.push(finding.with("bytes", one.to_string()).with("stated", stated.to_string()));
    }
    let mut tested = 0;
    for (kernel, reads, write) in subjects() {
        tested += 1;
        pass.findings.extend(test(device, kernel, &reads, write)?);
    }
    pass.note =
        format!("one byte takes {one} bytes, {tested} kernels agree with the host's unless told otherwise");
    Ok(pass)
}

fn view(dtype: Dtype, shape: &[i64], strides: &[i64], offset: i64) -> View {
    let dims = |list: &[i64]| Dims::new(list).unwrap_or_default();
    View { dtype, offset, shape: dims(shape), strides: dims(strides) }
}

/// Every kernel with views that are strided, repeated and offset.
fn subjects() -> Vec<(Kernel, Vec<View>, View)> {
    let mut all = Vec::new();
    let shape = [3, 5, 7];
    let plain = |dtype| view(dtype, &shape, &[35, 7, 1], 0);
    for dtype in [Dtype::F32, Dtype::F64, Dtype::BF16, Dtype::I32, Dtype::I64] {
        let turned = view(dtype, &shape, &[1, 3, 15], 2);
        let repeated = view(dtype, &shape, &[0, 7, 1], 1);
        for op in [Arithmetic::Add, Arithmetic::Sub, Arithmetic::Mul] {
            all.push((Kernel::Binary(op, dtype), vec![turned, repeated], plain(dtype)));
        }
        for op in [RankReduce::Sum, RankReduce::Avg] {
            let is_float = matches!(dtype, Dtype::F32 | Dtype::F64 | Dtype::BF16);
            if op == RankReduce::Sum || is_float {
                let kernel = Kernel::AcrossRanks { op, dtype, from: 35 };
                all.push((kernel, vec![plain(dtype); 3], view(dtype, &[70], &[1], 1)));
            }
        }
    }
    for dtype in [Dtype::F32, Dtype::F64, Dtype::BF16] {
        for function in [Function::Relu, Function::Neg] {
            let turned = view(dtype, &shape, &[1, 3, 15], 2);
            all.push((Kernel::Unary(function, dtype), vec![turned], plain(dtype)));
        }
        let (a, b) = (view(dtype, &[6, 9], &[9, 1], 0), view(dtype, &[9, 4], &[1, 9], 0));
        all.push((Kernel::Matmul(dtype), vec![a, b], view(dtype, &[6, 4], &[4, 1], 0)));
    }
    use Dtype::{BF16, F32, F64, I32, I64};
    for (from, to) in [(F32, BF16), (F32, F64), (BF16, F32), (F64, F32), (I64, F32), (I32, F32)] {
        all.push((Kernel::Cast(from, to), vec![view(from, &shape, &[1, 3, 15], 2)], plain(to)));
    }
    for dtype in [Dtype::U8, Dtype::BF16, Dtype::F32, Dtype::F64] {
        let kernel = Kernel::Copy { from: 10, to: 5, count: 60 };
        all.push((kernel, vec![view(dtype, &shape, &[1, 3, 15], 2)], view(dtype, &[10, 9], &[10, 1], 3)));
        all.push((Kernel::Fill(0x1234_5678_9ABC_DEF1), Vec::new(), view(dtype, &[4, 3], &[5, 1], 2)));
    }
    all
}

/// Runs one kernel on the device and on the host.
fn test(
    device: &mut dyn Device,
    kernel: Kernel,
    reads: &[View],
    write: View,
) -> Result<Option<Finding>, Trouble> {
    let views: Vec<View> = reads.iter().copied().chain([write]).collect();
    let sizes: Vec<u64> = views.iter().map(View::end).collect();
    device.begin(1, 1, &sizes, &Placement::Allocator)?;
    let mut operands = Vec::new();
    let mut before = Vec::new();
    for (number, (view, &bytes)) in views.iter().zip(&sizes).enumerate() {
        device.alloc(0, number as u32, 0)?;
        device.synchronize()?;
        let content = content(view.dtype, number as u64, bytes as usize / view.size());
        device.upload(number as u32, &content)?;
        before = kernels::gather(&content, 0, view);
        operands.push((*view, before.clone()));
    }
    operands.pop();
    let part = |(buffer, &view): (usize, &View)| Part { buffer: buffer as u32, view };
    let launch = Launch {
        kernel,
        rank: 0,
        node: NodeId(0),
        reads: reads.iter().enumerate().map(part).collect(),
        writes: vec![part((reads.len(), &write))],
    };
    device.launch(0, &launch, 0)?;
    device.synchronize()?;
    let got = kernels::gather(&device.download(reads.len() as u32)?, 0, &write);
    let expected = kernels::compute(kernel, &operands, &write, before).map_err(Trouble::Failed)?;
    let wrong =
        got.chunks(write.size()).zip(expected.chunks(write.size())).position(|(got, want)| got != want);
    Ok(wrong.map(|element| {
        let bits = |bytes: &[u8]| {
            let each = bytes.chunks(write.size()).nth(element).unwrap_or(&[]);
            each.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        Finding::new(Kind::SelfTest, kernel.name())
            .with("element", element.to_string())
            .with("expected bits", bits(&expected))
            .with("got bits", bits(&got))
    }))
}

/// Values past what the dtype holds exactly, and fractions.
fn content(dtype: Dtype, key: u64, count: usize) -> Vec<u8> {
    let numbers = Concrete { seed: 77, large_every: 3, ..Concrete::default() };
    let size = dtype.itemsize() as usize;
    let third = |cell: u64, at: usize| match dtype {
        Dtype::F32 if at % 2 == 1 => u64::from((f32::from_bits(cell as u32) / 3.0).to_bits()),
        Dtype::F64 if at % 2 == 1 => (f64::from_bits(cell) / 3.0).to_bits(),
        _ => cell,
    };
    let cell = |at: usize| third(numbers.input(key, at as u64, dtype), at).to_le_bytes();
    (0..count).flat_map(|at| cell(at).into_iter().take(size)).collect()
}
