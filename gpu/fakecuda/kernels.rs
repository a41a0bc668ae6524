//! The kernels of `gpu/kernels/kernels.cu` once more, from their description and not from the interpreter.

use super::memory::Driver;
use std::ffi::c_void;

/// The struct `View` of the kernels.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct View {
    at: u64,
    offset: i64,
    dims: i64,
    size: [i64; 8],
    stride: [i64; 8],
}

impl View {
    fn place(&self, mut i: i64) -> i64 {
        let mut at = self.offset;
        for d in (0..self.dims as usize).rev() {
            at += i % self.size[d] * self.stride[d];
            i /= self.size[d];
        }
        at
    }
}

/// A launch with copies of its parameters.
pub struct Call {
    entry: String,
    views: Vec<View>,
    numbers: Vec<i64>,
}

impl Call {
    /// Copies the parameters of an entry point.
    ///
    /// # Safety
    /// There must be as many as it has.
    pub unsafe fn read(entry: &str, parameters: *mut *mut c_void) -> Option<Call> {
        let family = entry.split('_').next()?;
        // Views, then rows of 16 views, then words.
        let (views, rows, numbers) = match family {
            "add" | "sub" | "mul" => (3, 0, 1),
            "cast" | "relu" | "neg" => (2, 0, 1),
            "matmul" => (3, 0, 3),
            "ranks" => (1, 1, 3),
            "copy" => (2, 0, 4),
            "fill" => (1, 0, 3),
            "spin" => (0, 0, 1),
            _ => return None,
        };
        let mut call = Call { entry: entry.to_string(), views: Vec::new(), numbers: Vec::new() };
        // SAFETY: the caller has checked the counts, and parameters point to their values.
        unsafe {
            for at in 0..views {
                call.views.push((*parameters.add(at)).cast::<View>().read_unaligned());
            }
            for row in 0..rows {
                let first = (*parameters.add(views + row)).cast::<View>();
                (0..16).for_each(|i| call.views.push(first.add(i).read_unaligned()));
            }
            for at in 0..numbers {
                call.numbers.push((*parameters.add(views + rows + at)).cast::<i64>().read_unaligned());
            }
        }
        Some(call)
    }

    /// Runs it; `None` for an address that does not exist.
    pub fn run(&self, driver: &mut Driver) -> Option<()> {
        let words: Vec<&str> = self.entry.split('_').collect();
        match (words[0], words.last().copied()?) {
            ("spin", _) => Some(()),
            ("copy", _) => self.copy(driver),
            ("fill", _) => self.fill(driver),
            ("cast", to) => self.cast(driver, words[1], to),
            (_, "f32") => self.typed::<f32>(driver, words[0], words[1] == "avg"),
            (_, "f64") => self.typed::<f64>(driver, words[0], words[1] == "avg"),
            (_, "bf16") => self.typed::<Bf16>(driver, words[0], words[1] == "avg"),
            (_, "i32") => self.typed::<i32>(driver, words[0], false),
            (_, "i64") => self.typed::<i64>(driver, words[0], false),
            _ => None,
        }
    }

    fn copy(&self, driver: &mut Driver) -> Option<()> {
        let ([to, from], [bytes, start, first, count]) = (&self.views[..], &self.numbers[..]) else {
            return None;
        };
        for i in 0..*count {
            let element = get(driver, from, first + i, *bytes)?;
            set(driver, to, start + i, &element)?;
        }
        Some(())
    }

    fn fill(&self, driver: &mut Driver) -> Option<()> {
        let ([to], [bytes, word, count]) = (&self.views[..], &self.numbers[..]) else { return None };
        (0..*count).try_for_each(|i| set(driver, to, i, &word.to_le_bytes()[..*bytes as usize]))
    }

    fn cast(&self, driver: &mut Driver, from: &str, to: &str) -> Option<()> {
        let ([into, of], [count]) = (&self.views[..], &self.numbers[..]) else { return None };
        for i in 0..*count {
            match (from, to) {
                ("f32", "bf16") => Bf16(load::<f32>(driver, of, i)?).save(driver, into, i)?,
                ("bf16", "f32") => load::<Bf16>(driver, of, i)?.0.save(driver, into, i)?,
                ("f32", "f64") => f64::from(load::<f32>(driver, of, i)?).save(driver, into, i)?,
                ("f64", "f32") => (load::<f64>(driver, of, i)? as f32).save(driver, into, i)?,
                ("i64", "f32") => (load::<i64>(driver, of, i)? as f32).save(driver, into, i)?,
                ("i32", "f32") => (load::<i32>(driver, of, i)? as f32).save(driver, into, i)?,
                _ => return None,
            }
        }
        Some(())
    }

    fn typed<T: Element>(&self, driver: &mut Driver, family: &str, average: bool) -> Option<()> {
        let (views, numbers) = (&self.views, &self.numbers);
        let wrong = super::failure() == "wrongmul";
        match family {
            "relu" | "neg" => {
                for i in 0..numbers[0] {
                    let x = load::<T>(driver, &views[1], i)?;
                    let y = match family {
                        "relu" => x.positive(),
                        _ => x.negated(),
                    };
                    y.save(driver, &views[0], i)?;
                }
            }
            "add" | "sub" | "mul" => {
                for i in 0..numbers[0] {
                    let (a, b) = (load::<T>(driver, &views[1], i)?, load::<T>(driver, &views[2], i)?);
                    let c = match family {
                        "add" => a.add(b),
                        "sub" => a.sub(b),
                        _ if wrong => a.mul(b).add(b),
                        _ => a.mul(b),
                    };
                    c.rounded().save(driver, &views[0], i)?;
                }
            }
            "ranks" => {
                let (ranks, from, count) = (numbers[0], numbers[1], numbers[2]);
                for i in 0..count {
                    let mut sum = T::default();
                    for r in 0..ranks {
                        sum = sum.add(load::<T>(driver, &views[1 + r as usize], from + i)?);
                    }
                    if average {
                        sum = sum.over(ranks);
                    }
                    sum.rounded().save(driver, &views[0], i)?;
                }
            }
            "matmul" => {
                let (m, k, n) = (numbers[0], numbers[1], numbers[2]);
                for i in 0..m * n {
                    let mut sum = T::default();
                    for t in 0..k {
                        let a = load::<T>(driver, &views[1], i / n * k + t)?;
                        sum = sum.add(a.mul(load::<T>(driver, &views[2], t * n + i % n)?));
                    }
                    sum.rounded().save(driver, &views[0], i)?;
                }
            }
            _ => return None,
        }
        Some(())
    }
}

fn get(driver: &Driver, view: &View, i: i64, bytes: i64) -> Option<Vec<u8>> {
    let at = view.at.wrapping_add_signed(view.place(i) * bytes);
    driver.bytes(at, bytes as usize).map(<[u8]>::to_vec)
}

fn set(driver: &mut Driver, view: &View, i: i64, element: &[u8]) -> Option<()> {
    let at = view.at.wrapping_add_signed(view.place(i) * element.len() as i64);
    driver.bytes_mut(at, element.len())?.copy_from_slice(element);
    Some(())
}

fn load<T: Element>(driver: &Driver, view: &View, i: i64) -> Option<T> {
    Some(T::from_bytes(&get(driver, view, i, T::BYTES)?))
}

/// Arithmetic of one dtype; between operations a value may be wider than the dtype.
trait Element: Copy + Default {
    const BYTES: i64;
    fn from_bytes(bytes: &[u8]) -> Self;
    fn to_bytes(self) -> Vec<u8>;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn over(self, n: i64) -> Self;
    fn negated(self) -> Self;
    fn positive(self) -> Self;

    fn rounded(self) -> Self {
        self
    }

    fn save(self, driver: &mut Driver, view: &View, i: i64) -> Option<()> {
        set(driver, view, i, &self.to_bytes())
    }
}

/// bf16 as the f32 that is computed with.
#[derive(Clone, Copy, Default)]
struct Bf16(f32);

macro_rules! element {
    ($type:ty, $bytes:literal, $zero:literal, $add:expr, $sub:expr, $mul:expr, $over:expr) => {
        impl Element for $type {
            const BYTES: i64 = $bytes;

            fn from_bytes(bytes: &[u8]) -> Self {
                let mut word = [0; $bytes];
                word.copy_from_slice(bytes);
                <$type>::from_le_bytes(word)
            }

            fn to_bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }

            fn add(self, other: Self) -> Self {
                $add(self, other)
            }

            fn sub(self, other: Self) -> Self {
                $sub(self, other)
            }

            fn mul(self, other: Self) -> Self {
                $mul(self, other)
            }

            fn over(self, n: i64) -> Self {
                $over(self, n)
            }

            fn negated(self) -> Self {
                -self
            }

            fn positive(self) -> Self {
                if self < $zero { $zero } else { self }
            }
        }
    };
}

element!(f32, 4, 0.0, |a, b| a + b, |a, b| a - b, |a, b| a * b, |a, n| a / n as f32);
element!(f64, 8, 0.0, |a, b| a + b, |a, b| a - b, |a, b| a * b, |a, n| a / n as f64);
element!(i32, 4, 0, i32::wrapping_add, i32::wrapping_sub, i32::wrapping_mul, |a, n| a / n as i32);
element!(i64, 8, 0, i64::wrapping_add, i64::wrapping_sub, i64::wrapping_mul, |a, n| a / n);

impl Element for Bf16 {
    const BYTES: i64 = 2;

    fn from_bytes(bytes: &[u8]) -> Self {
        Bf16(f32::from_bits(u32::from(bytes[0]) << 16 | u32::from(bytes[1]) << 24))
    }

    fn to_bytes(self) -> Vec<u8> {
        let bits = self.0.to_bits();
        let kept = match self.0.is_nan() {
            true => 0x7fff,
            // To nearest, ties to even.
            false => ((u64::from(bits) + 0x7fff + u64::from(bits >> 16 & 1)) >> 16) as u16,
        };
        kept.to_le_bytes().to_vec()
    }

    fn add(self, other: Self) -> Self {
        Bf16(self.0 + other.0)
    }

    fn sub(self, other: Self) -> Self {
        Bf16(self.0 - other.0)
    }

    fn mul(self, other: Self) -> Self {
        Bf16(self.0 * other.0)
    }

    fn over(self, n: i64) -> Self {
        Bf16(self.0 / n as f32)
    }

    fn negated(self) -> Self {
        Bf16(-self.0)
    }

    fn positive(self) -> Self {
        if self.0 < 0.0 { Bf16(0.0) } else { self }
    }
}
