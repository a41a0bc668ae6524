//! The algebra of structures by brute force: whatever is cut, joined and made equal, sizes stay true at every assignment.

use super::sizes::{Classes, Need, Sizes};
use super::structure::{Leaf, Structure};
use std::collections::{BTreeMap, BTreeSet};

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

/// The size of a dimension where each free leaf has the size that `of` gives.
fn evaluate(structure: &Structure, leaf: Leaf, of: &BTreeMap<Leaf, i64>) -> i64 {
    let root = structure.root(leaf);
    if let Some(&size) = of.get(&root) {
        return size;
    }
    let pieces = structure.pieces(root).expect("few pieces");
    pieces
        .iter()
        .map(|piece| piece.iter().map(|&digit| evaluate(structure, digit, of)).product::<i64>())
        .sum()
}

/// An assignment under which what is kept stays.
fn assignment(structure: &Structure, numbers: &mut Numbers) -> BTreeMap<Leaf, i64> {
    let atoms = structure.all_atoms().into_iter();
    let size = |leaf: Leaf, n: usize| match structure.is_kept(leaf) || structure.size(leaf) <= 1 {
        true => structure.size(leaf),
        false => 2 + n as i64,
    };
    atoms.map(|leaf| (leaf, size(leaf, numbers.below(5)))).collect()
}

/// Two dimensions that were made equal, or a dimension and its parts.
enum Claim {
    Same(Leaf, Leaf),
    Parts(Leaf, Vec<Leaf>),
}

fn step(structure: &mut Structure, numbers: &mut Numbers, dims: &mut Vec<Leaf>, claims: &mut Vec<Claim>) {
    let pick = |numbers: &mut Numbers, dims: &[Leaf]| dims[numbers.below(dims.len())];
    let (a, b) = (pick(numbers, dims), pick(numbers, dims));
    match numbers.below(6) {
        0 => {
            let at = 1 + numbers.below(structure.size(a) as usize) as i64;
            if structure.cut(a, at).is_err() {
                return;
            }
            let size = structure.size(a);
            if let (Ok(low), Ok(high)) = (structure.between(a, 0, at), structure.between(a, at, size)) {
                claims.push(Claim::Parts(a, vec![low, high]));
                dims.extend([low, high]);
            }
        }
        1 if structure.size(a) + structure.size(b) < 300 => {
            if let Ok(sum) = structure.sum(vec![vec![a], vec![b]]) {
                claims.push(Claim::Parts(sum, vec![a, b]));
                dims.push(sum);
            }
        }
        2 if structure.size(a) * structure.size(b) < 300 => {
            if let Ok(product) = structure.product(vec![a, b]) {
                dims.push(product);
            }
        }
        3 | 4 => {
            // Another view of the same number of elements.
            let size = structure.size(a);
            let divisors: Vec<i64> = (1..=size).filter(|n| size % n == 0).collect();
            let outer = divisors[numbers.below(divisors.len())];
            let digits = [structure.leaf(outer), structure.leaf(size / outer)];
            let view = structure.product(digits.to_vec()).expect("small");
            if structure.unify_products(&[a], &digits).is_ok() {
                claims.push(Claim::Same(a, view));
                dims.extend(digits);
            }
        }
        _ => {
            let same: Vec<Leaf> =
                dims.iter().copied().filter(|&d| structure.size(d) == structure.size(a)).collect();
            let other = pick(numbers, &same);
            if structure.unify(a, other).is_ok() {
                claims.push(Claim::Same(a, other));
            }
        }
    }
}

#[test]
fn sizes_stay_true() {
    for seed in 0..1500 {
        let mut numbers = Numbers(seed);
        let mut structure = Structure::default();
        let mut dims: Vec<Leaf> = (0..3).map(|_| structure.leaf(2 + numbers.below(30) as i64)).collect();
        if seed % 3 == 0 {
            dims.push(structure.kept(2 + numbers.below(8) as i64));
        }
        let mut claims = Vec::new();
        for _ in 0..14 {
            step(&mut structure, &mut numbers, &mut dims, &mut claims);
            dims.retain(|&dim| structure.size(dim) > 0);
        }
        let recorded = structure.all_atoms().into_iter().map(|leaf| (leaf, structure.size(leaf))).collect();
        for &dim in &dims {
            assert_eq!(evaluate(&structure, dim, &recorded), structure.size(dim), "seed {seed}");
        }
        for _ in 0..4 {
            let of = assignment(&structure, &mut numbers);
            for claim in &claims {
                let (left, right): (i64, i64) = match claim {
                    Claim::Same(a, b) => (evaluate(&structure, *a, &of), evaluate(&structure, *b, &of)),
                    Claim::Parts(whole, parts) => {
                        let parts = parts.iter().map(|&part| evaluate(&structure, part, &of)).sum();
                        (evaluate(&structure, *whole, &of), parts)
                    }
                };
                assert_eq!(left, right, "seed {seed}");
            }
        }
    }
}

/// A boundary stands where the part before it ends, and later boundaries stand later.
#[test]
fn positions_are_sizes_of_what_is_before() {
    for seed in 0..600 {
        let mut numbers = Numbers(seed + 7);
        let mut structure = Structure::default();
        let (rows, columns) =
            (structure.leaf(20 + numbers.below(9) as i64), structure.leaf(5 + numbers.below(9) as i64));
        let group = structure.kept(4);
        let all = structure
            .product(if seed % 2 == 0 { vec![rows, columns] } else { vec![group, columns] })
            .expect("small");
        let size = structure.size(all);
        let mut cuts: Vec<i64> = (0..3).map(|_| numbers.below(size as usize) as i64).collect();
        cuts.iter().for_each(|&at| structure.cut(all, at).expect("few pieces"));
        cuts.sort_unstable();
        cuts.dedup();
        let classes: BTreeSet<i64> = structure.all_atoms().iter().map(|&leaf| structure.size(leaf)).collect();
        let stay: BTreeSet<i64> = classes.iter().copied().filter(|&n| n <= 4).collect();
        let sizes = Sizes::from(&Classes { free: classes.difference(&stay).copied().collect(), stay }, 3);
        let mut last = -1;
        for at in cuts {
            let before = structure.between(all, 0, at).expect("a boundary");
            let place = sizes.position(&structure, all, at).expect("a boundary");
            assert_eq!(place, sizes.size(&structure, before).expect("small"), "seed {seed}");
            assert!(place > last, "seed {seed}");
            last = place;
        }
    }
}

#[test]
fn shapes_of_structure() {
    let mut structure = Structure::default();
    // 4096 rows are 32 heads of 128, and 64 shards of 64.
    let rows = structure.leaf(4096);
    let (heads, width) = (structure.leaf(32), structure.leaf(128));
    structure.unify_products(&[rows], &[heads, width]).expect("digits");
    let (group, shard) = (structure.kept(64), structure.leaf(64));
    structure.unify_products(&[rows], &[group, shard]).expect("digits");
    assert!(structure.is_kept(heads), "half a head is a rank");
    assert!(!structure.is_kept(shard));
    // 6 x 4 = 8 x 3 has no common refinement.
    let digits: Vec<Leaf> = [6, 4, 8, 3].map(|n| structure.leaf(n)).to_vec();
    let fits = structure.unify_products(&digits[..2], &digits[2..]);
    assert!(fits.is_err());
    // A shift by one shatters a dimension, unless it is kept.
    let line = structure.leaf(100);
    structure.cut(line, 1).expect("few pieces");
    structure.cut(line, 99).expect("few pieces");
    let (begin, end) =
        (structure.between(line, 0, 99).expect("cut"), structure.between(line, 1, 100).expect("cut"));
    assert!(structure.unify(begin, end).is_err());
    structure.keep(line);
    structure.keep(begin);
    structure.keep(end);
    structure.unify(begin, end).expect("kept sizes are equal");
}

#[test]
fn sizes_of_two_starts_differ_everywhere() {
    for stay in 0..64i64 {
        let stay: BTreeSet<i64> = (3..9).filter(|n| stay >> (n - 3) & 1 == 1).collect();
        let classes = Classes { free: (10..30).collect(), stay };
        for (low, high) in (0..4).flat_map(|low| (0..4).map(move |high| (low, high))) {
            let (a, b) = (Sizes::from(&classes, 3 + low), Sizes::from(&classes, 7 + high));
            let is_apart = |(a, b): ((i64, i64), (i64, i64))| a.0 == b.0 && a.1 < b.1;
            assert!(a.pairs().zip(b.pairs()).all(is_apart));
            assert!(a.pairs().all(|(_, size)| !classes.stay.contains(&size)));
        }
    }
}

/// A grid of as many values as the degree and one more; no two sizes share a value, and none is one that stays or too small.
#[test]
fn assignments_of_a_proof() {
    let classes = Classes { free: vec![50, 60, 70], stay: BTreeSet::from([4]) };
    let need = |least: i64, degree: usize| Need { least, degree };
    let needs = BTreeMap::from([(50, need(5, 2)), (60, need(0, 0)), (70, need(2, 1))]);
    let all = Sizes::all(&classes, &needs).expect("six");
    let pairs: Vec<Vec<(i64, i64)>> = all.iter().map(|sizes| sizes.pairs().collect()).collect();
    assert_eq!(pairs.len(), 6);
    let of = |at: usize| pairs.iter().map(|pairs| pairs[at].1).collect::<Vec<i64>>();
    assert_eq!(
        (of(0), of(1), of(2)),
        (vec![5, 6, 7, 5, 6, 7], vec![3, 8, 3, 8, 3, 8], vec![9, 9, 9, 10, 10, 10])
    );
    assert_eq!(Sizes::all(&classes, &BTreeMap::new()).map(|all| all.len()), Some(2));
    assert!(Sizes::all(&classes, &BTreeMap::from([(50, need(0, usize::MAX >> 1))])).is_none());
}
