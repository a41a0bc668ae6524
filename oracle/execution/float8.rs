//! The two 8-bit floats, rounded to nearest, ties to even, as PyTorch rounds them
//! (`c10/util/Float8_e4m3fn.h`, `c10/util/Float8_e5m2.h`).
//!
//! A float of 8 bits is sign, exponent and mantissa like its larger relatives, subnormals included. `e4m3fn` has
//! no infinity: its largest exponent holds ordinary numbers up to 448, and only the all-ones mantissa is NaN. What
//! is larger than 448, infinity included, becomes 448 (so PyTorch 2.15; earlier versions gave NaN). `e5m2` is the
//! upper half of an `f16`: what rounds past 57344 becomes infinite.

/// The layout of an 8-bit float.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Float8 {
    mantissa_bits: u32,
    bias: i32,
    /// The largest number.
    largest: u8,
    /// What stands for everything that rounds past it: itself, or infinity.
    overflow: u8,
}

/// The NaN that conversions give.
const NAN: u8 = 0x7F;

/// `torch.float8_e4m3fn`.
pub const E4M3FN: Float8 = Float8 { mantissa_bits: 3, bias: 7, largest: 0x7E, overflow: 0x7E };

/// `torch.float8_e5m2`.
pub const E5M2: Float8 = Float8 { mantissa_bits: 2, bias: 15, largest: 0x7B, overflow: 0x7C };

impl Float8 {
    /// The value of a bit pattern.
    pub fn to_f32(self, bits: u8) -> f32 {
        let sign = if bits & 0x80 == 0 { 1.0 } else { -1.0 };
        let magnitude = bits & 0x7F;
        if magnitude > self.largest {
            return if magnitude == self.overflow { sign * f32::INFINITY } else { f32::NAN };
        }
        let exponent = i32::from(magnitude >> self.mantissa_bits);
        let fraction = f32::from(magnitude & ((1 << self.mantissa_bits) - 1));
        let unit = exp2(exponent.max(1) - self.bias - self.mantissa_bits as i32);
        let implicit = if exponent == 0 { 0.0 } else { f32::from(1u8 << self.mantissa_bits) };
        sign * (implicit + fraction) * unit
    }

    /// The nearest 8-bit float.
    pub fn from_f32(self, value: f32) -> u8 {
        let sign = ((value.to_bits() >> 24) & 0x80) as u8;
        let magnitude = value.abs();
        if magnitude.is_nan() {
            return sign | NAN;
        }
        // Steps between neighbours near `magnitude`; below the smallest normal number they stay equal.
        let exponent = (((magnitude.to_bits() >> 23) & 0xFF) as i32 - 127).max(1 - self.bias);
        let steps = magnitude / exp2(exponent - self.mantissa_bits as i32);
        let base = (exponent + self.bias - 1) << self.mantissa_bits;
        // `steps` counts the implicit bit too, which is one step of the exponent.
        let rounded = if steps < 256.0 { base + steps.round_ties_even() as i32 } else { i32::MAX };
        sign | if rounded > i32::from(self.largest) { self.overflow } else { rounded as u8 }
    }
}

/// 2 to a power in the range of normal `f32`s.
fn exp2(power: i32) -> f32 {
    f32::from_bits(((power + 127).clamp(1, 254) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The magnitudes by bit pattern. The first pattern past the largest number continues the scale, and stands
    /// for overflow.
    fn scale(format: Float8) -> Vec<f64> {
        let mut scale: Vec<f64> = (0..=format.largest).map(|bits| f64::from(format.to_f32(bits))).collect();
        let [.., before, last] = scale[..] else { panic!() };
        scale.push(last + (last - before));
        scale
    }

    /// The definition: the number of the scale at the least distance, on a tie the one with an even mantissa.
    fn nearest(format: Float8, scale: &[f64], value: f32) -> u8 {
        let sign = ((value.to_bits() >> 24) & 0x80) as u8;
        let magnitude = f64::from(value.abs()).min(2.0 * scale[scale.len() - 1]);
        // Around the place where the magnitude would be inserted.
        let at = scale.partition_point(|&number| number < magnitude);
        let distance = |bits: usize| (scale[bits] - magnitude).abs();
        let near = (at.saturating_sub(1)..=at).filter(|&bits| bits < scale.len());
        let best = near.min_by(|&a, &b| distance(a).total_cmp(&distance(b)).then((a % 2).cmp(&(b % 2))));
        let best = best.unwrap() as u8;
        sign | if best > format.largest { format.overflow } else { best }
    }

    fn check(format: Float8) {
        let scale = &scale(format);
        // Every number goes to itself.
        for bits in 0..=255u8 {
            let value = format.to_f32(bits);
            if value.is_nan() {
                assert!(format.to_f32(format.from_f32(value)).is_nan());
            } else {
                assert_eq!(format.from_f32(value), bits, "{value}");
            }
        }
        // Every tie between neighbours, and both its sides.
        for bits in 0..format.largest {
            let (low, high) = (format.to_f32(bits), format.to_f32(bits + 1));
            let middle = (low + high) / 2.0;
            for value in [middle.next_down(), middle, middle.next_up()] {
                for value in [value, -value] {
                    assert_eq!(format.from_f32(value), nearest(format, scale, value), "{value}");
                }
            }
        }
        // Every f16 and bf16, and with them magnitudes from far below to far above the range.
        for bits in 0..=u16::MAX {
            for value in [half::f16::from_bits(bits).to_f32(), half::bf16::from_bits(bits).to_f32()] {
                if value.is_finite() {
                    assert_eq!(format.from_f32(value), nearest(format, scale, value), "{value}");
                }
            }
        }
    }

    #[test]
    fn e4m3fn_rounds_to_nearest_even() {
        check(E4M3FN);
        assert_eq!(E4M3FN.to_f32(0x7E), 448.0);
        assert_eq!([464.0, 465.0, 1e9, f32::INFINITY].map(|x| E4M3FN.from_f32(x)), [0x7E; 4]);
        assert_eq!(E4M3FN.from_f32(f32::NEG_INFINITY), 0xFE);
        assert_eq!(E4M3FN.from_f32(f32::NAN), 0x7F);
        assert_eq!(E4M3FN.to_f32(0x01), 2f32.powi(-9));
    }

    #[test]
    fn e5m2_is_the_upper_half_of_f16() {
        check(E5M2);
        for bits in 0..=255u8 {
            let half = half::f16::from_bits(u16::from(bits) << 8).to_f32();
            let value = E5M2.to_f32(bits);
            assert!(value == half || (value.is_nan() && half.is_nan()));
        }
        assert_eq!(E5M2.from_f32(f32::NEG_INFINITY), 0xFC);
        assert_eq!(E5M2.from_f32(61440.0), 0x7C);
        assert_eq!(E5M2.from_f32(61440.0f32.next_down()), 0x7B);
    }

    /// The library that rounds f16 and bf16, against the definition.
    #[test]
    fn halves_round_to_nearest_even() {
        for bits in 0..0x7C00u16 {
            let (low, high) = (half::f16::from_bits(bits).to_f32(), half::f16::from_bits(bits + 1));
            let high = if high.is_infinite() { 65536.0 } else { high.to_f32() };
            let middle = (low + high) / 2.0;
            let even = bits + (bits & 1);
            assert_eq!(half::f16::from_f32(low).to_bits(), bits);
            assert_eq!(half::f16::from_f32(middle).to_bits(), even);
            assert_eq!(half::f16::from_f32(middle.next_down()).to_bits(), bits);
            assert_eq!(half::f16::from_f32(middle.next_up()).to_bits(), bits + 1);
            assert_eq!(half::f16::from_f32(-middle).to_bits(), even | 0x8000);
        }
        for bits in 0..0x7F80u16 {
            // A bf16 is the upper half of an f32, so neighbours and ties are bit patterns.
            let low = u32::from(bits) << 16;
            let even = bits + (bits & 1);
            for (pattern, expected) in
                [(low, bits), (low + 0x7FFF, bits), (low + 0x8000, even), (low + 0x8001, bits + 1)]
            {
                assert_eq!(half::bf16::from_f32(f32::from_bits(pattern)).to_bits(), expected);
            }
        }
    }
}
