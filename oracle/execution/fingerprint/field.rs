//! The two fields that fingerprints lie in, and the homomorphisms between them.
//!
//! # The idea
//!
//! `R` is a product of four small primes, `p` a prime of 61 bits with `R | p - 1`, and `g` an element of order `R` modulo
//! `p`. So `u -> g^u` turns sums modulo `R` into products modulo `p`, as the exponential does, and has an inverse: a
//! discrete logarithm is one table look-up for each small prime (Pohlig and Hellman). Of an element that is no power of `g`
//! the logarithm is that of its part in the group of order `R`; it still turns products into sums.
//!
//! A root modulo `p` exists for one element in two. Modulo a `p` that is 3 modulo 4 the root that is itself a square is
//! taken: then roots of products are products of roots. Sine and cosine need the root of -1, which exists modulo a `p` that
//! is 1 modulo 4: so there are two such primes, and the second one is for graphs with sines and cosines.

use super::super::hash::{mix, text};
use rustc_hash::FxHashMap;
use std::sync::LazyLock;

/// The small primes.
const SMALL: [u64; 4] = [8209, 8219, 8221, 8231];

/// Their product.
pub(super) const R: u64 = 4_565_480_435_215_321;

/// The fields of one kind of trial.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) p: u64,
    /// `(p - 1) / R`.
    cofactor: u64,
    /// The inverse of the cofactor modulo R.
    inverse_of_cofactor: u64,
    /// An element of order R.
    g: u64,
    /// The root of -1, where there is one.
    imaginary: Option<u64>,
    /// For each small prime the logarithms of the elements of that order.
    logarithms: [FxHashMap<u64, u64>; 4],
}

pub(super) fn add(a: u64, b: u64, modulus: u64) -> u64 {
    (a + b) % modulus
}

pub(super) fn neg(a: u64, modulus: u64) -> u64 {
    (modulus - a) % modulus
}

pub(super) fn mul(a: u64, b: u64, modulus: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(modulus)) as u64
}

pub(super) fn pow(a: u64, mut n: u64, modulus: u64) -> u64 {
    let (mut power, mut result) = (a, 1);
    while n > 0 {
        if n & 1 == 1 {
            result = mul(result, power, modulus);
        }
        power = mul(power, power, modulus);
        n >>= 1;
    }
    result
}

/// The inverse, where there is one (Euclid).
pub(super) fn inverse(a: u64, modulus: u64) -> Option<u64> {
    let (mut old, mut now) = ((i128::from(a), 1i128), (i128::from(modulus), 0i128));
    while now.0 != 0 {
        let quotient = old.0 / now.0;
        (old, now) = (now, (old.0 - quotient * now.0, old.1 - quotient * now.1));
    }
    (old.0 == 1).then(|| old.1.rem_euclid(i128::from(modulus)) as u64)
}

/// The fraction of small numbers that an element stands for, if it does.
pub(super) fn fraction(a: u64, modulus: u64) -> Option<(i64, i64)> {
    const MOST: i128 = 1 << 24;
    let (mut old, mut now) = ((i128::from(modulus), 0i128), (i128::from(a), 1i128));
    while now.0 > MOST {
        let quotient = old.0 / now.0;
        (old, now) = (now, (old.0 - quotient * now.0, old.1 - quotient * now.1));
    }
    let (numerator, denominator) = if now.1 < 0 { (-now.0, -now.1) } else { now };
    (denominator > 0 && denominator <= MOST).then_some((numerator as i64, denominator as i64))
}

impl Field {
    /// The fields for graphs with sines and cosines, or for those without. Their tables are as large as many graphs: they
    /// are made once.
    pub(super) fn of(turns: bool) -> &'static Field {
        static FIELDS: [LazyLock<Field>; 2] =
            [LazyLock::new(|| Field::new(false)), LazyLock::new(|| Field::new(true))];
        &FIELDS[usize::from(turns)]
    }

    fn new(turns: bool) -> Field {
        let (p, cofactor, inverse_of_cofactor, g, imaginary) = match turns {
            false => (1_451_822_778_398_472_079, 318, 244_066_564_146_731, 688_018_962_968_061_676, None),
            true => (
                1_643_572_956_677_515_561,
                360,
                1_509_144_921_640_620,
                354_311_965_486_833_569,
                Some(1_561_457_402_189_153_065),
            ),
        };
        let logarithms = SMALL.map(|prime| {
            let base = pow(g, R / prime, p);
            let mut power = 1;
            let entry = |exponent| {
                let entry = (power, exponent);
                power = mul(power, base, p);
                entry
            };
            (0..prime).map(entry).collect()
        });
        Field { p, cofactor, inverse_of_cofactor, g, imaginary, logarithms }
    }

    /// An element of each field that stands for a value of which nothing is known but this hash.
    pub(super) fn drawn(&self, hash: u64) -> (u64, u64) {
        (mix(hash, 1) % R, mix(hash, 2) % self.p)
    }

    /// `g^u`.
    pub(super) fn exp(&self, u: u64) -> u64 {
        pow(self.g, u, self.p)
    }

    /// The inverse of [`Field::exp`]; 0 for 0.
    pub(super) fn log(&self, v: u64) -> u64 {
        let part = pow(v, self.cofactor, self.p);
        let mut sum = 0;
        for (prime, logarithms) in SMALL.into_iter().zip(&self.logarithms) {
            let other = R / prime;
            let Some(&digit) = logarithms.get(&pow(part, other, self.p)) else { return 0 };
            let unit = mul(other, inverse(other % prime, prime).unwrap_or(0), R);
            sum = add(sum, mul(digit, unit, R), R);
        }
        mul(sum, self.inverse_of_cofactor, R)
    }

    /// The root that is itself a square; `None` where there is no root, and for all that no root can be chosen for so
    /// that roots of products are products of roots.
    pub(super) fn sqrt(&self, v: u64) -> Option<u64> {
        if self.imaginary.is_some() {
            return None;
        }
        let root = pow(v, self.p.div_ceil(4), self.p);
        (mul(root, root, self.p) == v).then_some(root)
    }

    /// The cosine and the sine of an angle, where there are any.
    pub(super) fn turn(&self, u: u64) -> Option<(u64, u64)> {
        let i = self.imaginary?;
        // Another element of that order: cosines are no sums of exponentials.
        let turned = self.exp(mul(u, text("a turn") % R, R));
        let back = inverse(turned, self.p)?;
        let half = inverse(2, self.p)?;
        let sine = mul(add(turned, neg(back, self.p), self.p), inverse(i, self.p)?, self.p);
        Some((mul(add(turned, back, self.p), half, self.p), mul(sine, half, self.p)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(modulus: u64) -> impl Iterator<Item = u64> {
        (0..200).map(move |i| mix(7, i) % modulus)
    }

    #[test]
    fn exponentials_and_logarithms_are_inverse_homomorphisms() {
        for field in [Field::of(false), Field::of(true)] {
            assert_eq!((field.p - 1) % R, 0);
            for (a, b) in samples(R).zip(samples(R).skip(1)) {
                assert_eq!(field.exp(add(a, b, R)), mul(field.exp(a), field.exp(b), field.p));
                assert_eq!(field.log(field.exp(a)), a);
            }
            for (a, b) in samples(field.p).zip(samples(field.p).skip(1)) {
                assert_eq!(field.log(mul(a, b, field.p)), add(field.log(a), field.log(b), R));
            }
        }
    }

    #[test]
    fn roots_of_products_are_products_of_roots() {
        let field = Field::of(false);
        let squares: Vec<u64> = samples(field.p).filter(|&v| field.sqrt(v).is_some()).collect();
        assert!((60..140).contains(&squares.len()), "{}", squares.len());
        for (&a, &b) in squares.iter().zip(&squares[1..]) {
            let [root, other] = [a, b].map(|v| field.sqrt(v).unwrap());
            assert_eq!(field.sqrt(mul(a, b, field.p)), Some(mul(root, other, field.p)));
        }
    }

    #[test]
    fn turns_add_up() {
        let field = Field::of(true);
        for (a, b) in samples(R).zip(samples(R).skip(1)) {
            let [(c, s), (d, t)] = [a, b].map(|u| field.turn(u).unwrap());
            let (both, _) = field.turn(add(a, b, R)).unwrap();
            assert_eq!(both, add(mul(c, d, field.p), neg(mul(s, t, field.p), field.p), field.p));
        }
    }

    #[test]
    fn fractions_of_small_numbers_are_recognised() {
        for (numerator, denominator) in [(1i64, 1i64), (-2, 1), (99, 100), (-1, 3), (7, 4096)] {
            let in_field = |n: i64| i128::from(n).rem_euclid(i128::from(R)) as u64;
            let quotient = mul(in_field(numerator), inverse(in_field(denominator), R).unwrap(), R);
            assert_eq!(fraction(quotient, R), Some((numerator, denominator)));
        }
        assert!(samples(R).filter(|&a| fraction(a, R).is_some()).count() < 40);
    }

    #[test]
    fn inverses() {
        for a in samples(R).filter(|a| *a != 0) {
            assert!(inverse(a, R).is_none_or(|inverse| mul(a, inverse, R) == 1));
        }
        assert_eq!(inverse(8209, R), None);
        assert_eq!(inverse(0, R), None);
    }
}
