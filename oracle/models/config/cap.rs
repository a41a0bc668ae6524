//! Size limits of buckets.
//!
//! A limit is a number of MB (1024 * 1024 bytes) that may depend on the bucket index, or the size that
//! saturates the process group's interconnect. The profiles of the latter are measurements carried by PyTorch
//! 2.15 (`torch._inductor.comm_analysis`); nothing here detects hardware.

use crate::quantity;

/// Bytes of one MB.
const MB: f64 = 1_048_576.0;

/// Where a bucket's size limit comes from.
#[derive(Clone, PartialEq, Debug)]
pub enum Cap {
    /// MB by bucket index; the last number holds for all further indices.
    ByIndex(Vec<f64>),
    /// The size at which a gather on the group reaches 90 % of its bandwidth, between 10 and 500 MB.
    Saturation {
        /// The interconnect; `None`: NVLink of an H100 for groups of up to 8 ranks, else InfiniBand NDR.
        interconnect: Option<Interconnect>,
        /// Factor of that size.
        multiplier: f64,
    },
}

impl Default for Cap {
    /// 2000 MB for every bucket.
    fn default() -> Cap {
        Cap::ByIndex(vec![2000.0])
    }
}

impl Cap {
    /// Parses `2000`, `64MiB`, `10,500MB,1.5GB` or `auto`. A bare number is MB; all else is a
    /// [size](crate::quantity::size).
    pub fn parse(text: &str) -> Result<Cap, String> {
        if text.trim() == "auto" {
            return Ok(Cap::Saturation { interconnect: None, multiplier: 1.0 });
        }
        text.split(',').map(|part| parse_mb(part.trim())).collect::<Result<_, _>>().map(Cap::ByIndex)
    }

    /// The limit in bytes of the bucket with this index, on a group of this size.
    pub fn limit(&self, index: usize, group_size: i64) -> i64 {
        let mb = match self {
            Cap::ByIndex(by_index) => match by_index.get(index).or(by_index.last()) {
                Some(&mb) => mb,
                None => 2000.0,
            },
            Cap::Saturation { interconnect, multiplier } => {
                saturating_mb(*interconnect, *multiplier, group_size)
            }
        };
        // Truncates, and stops at the ends of the range.
        (mb * MB) as i64
    }
}

fn parse_mb(text: &str) -> Result<f64, String> {
    let bare: Option<f64> = text.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0);
    let size = || quantity::size(text).ok().map(|bytes| bytes as f64 / MB);
    bare.or_else(size).ok_or_else(|| {
        format!("cap cannot be {text:?}; it is a size such as 2000 (MB), 64MiB, 1.5GiB or 10k, or auto")
    })
}

/// What connects the ranks of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Interconnect {
    NvlinkV100,
    NvlinkA100,
    NvlinkH100,
    NvlinkB200,
    /// InfiniBand at 200 Gb/s.
    IbHdr,
    /// InfiniBand at 400 Gb/s.
    IbNdr,
    Pcie,
}

impl Interconnect {
    /// All of them with their names.
    pub const ALL: &'static [(&'static str, Interconnect)] = &[
        ("nvlink_v100", Interconnect::NvlinkV100),
        ("nvlink_a100", Interconnect::NvlinkA100),
        ("nvlink_h100", Interconnect::NvlinkH100),
        ("nvlink_b200", Interconnect::NvlinkB200),
        ("ib_hdr", Interconnect::IbHdr),
        ("ib_ndr", Interconnect::IbNdr),
        ("pcie", Interconnect::Pcie),
    ];

    /// Bus bandwidth in GB/s, latency of one ring step and of the start in microseconds, least saturating size
    /// in bytes. Source: `INTERCONNECT_PROFILES`.
    fn profile(self) -> (f64, f64, f64, f64) {
        match self {
            Interconnect::NvlinkV100 => (14.0, 50.0, 10.0, 0.0),
            Interconnect::NvlinkA100 => (22.0, 45.0, 10.0, 0.0),
            Interconnect::NvlinkH100 => (36.0, 40.0, 10.0, 0.0),
            Interconnect::NvlinkB200 => (60.0, 30.0, 10.0, 0.0),
            Interconnect::IbHdr => (11.0, 14.0, 30.0, 75.0 * MB),
            Interconnect::IbNdr => (22.0, 12.0, 30.0, 100.0 * MB),
            Interconnect::Pcie => (10.0, 60.0, 15.0, 0.0),
        }
    }

    /// The smallest gather, in bytes, that reaches 90 % of the bandwidth. Source:
    /// `compute_min_saturation_bytes`.
    pub fn saturating_bytes(self, group_size: i64) -> f64 {
        if group_size <= 1 {
            return 0.0;
        }
        let (bandwidth, hop, start, least) = self.profile();
        let seconds = (start + (group_size - 1) as f64 * hop) * 1e-6;
        let efficiency: f64 = 0.9;
        let bytes = (efficiency / (1.0 - efficiency) * seconds * (bandwidth * 1e9)).trunc();
        bytes.max(least)
    }
}

/// Source: `compute_pre_bucket_cap_mb`.
fn saturating_mb(interconnect: Option<Interconnect>, multiplier: f64, group_size: i64) -> f64 {
    let interconnect = interconnect.unwrap_or(match group_size {
        ..=8 => Interconnect::NvlinkH100,
        _ => Interconnect::IbNdr,
    });
    let mb = multiplier * interconnect.saturating_bytes(group_size) / MB;
    // Not `clamp`: a NaN multiplier gives the floor.
    mb.clamp(10.0, 500.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let limits = |text: &str| {
            let cap = Cap::parse(text).unwrap();
            [0, 1, 2].map(|index| cap.limit(index, 8))
        };
        assert_eq!(limits("2000"), [2_097_152_000; 3]);
        assert_eq!(limits("64MiB,2MB,1GB"), [67_108_864, 2_097_152, 1_073_741_824]);
        assert_eq!(limits("1.5,100B"), [1_572_864, 100, 100]);
        for bad in ["", "x", "-1", "3XB", "inf", "1,,2", "é"] {
            assert!(Cap::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(Cap::ByIndex(vec![f64::MAX]).limit(0, 8), i64::MAX);
    }

    #[test]
    fn saturation_follows_the_profiles() {
        // Values of PyTorch 2.15.
        assert_eq!(Interconnect::NvlinkH100.saturating_bytes(8), 93_960_000.0);
        assert_eq!(Interconnect::IbNdr.saturating_bytes(64), 155_628_000.0);
        assert_eq!(Interconnect::IbNdr.saturating_bytes(16), 104_857_600.0);
        assert_eq!(Cap::parse("auto").unwrap().limit(0, 2), 16_200_000);
        assert_eq!(Cap::parse("auto").unwrap().limit(0, 1), 10_485_760);
        assert_eq!(Cap::parse("auto").unwrap().limit(0, 4096), 524_288_000);
    }
}
