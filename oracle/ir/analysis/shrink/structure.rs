//! Structures of dimensions: pieces one after the other, each a product of digits; and how two of them become one.
//!
//! # The idea
//!
//! A dimension is a [`Leaf`] of a union-find. It is *free*, *linked* to another one, or *refined* into pieces that stand
//! one after the other, each a product of digits, outermost first: `[[a, b], [c]]` is `a * b` elements followed by `c`.
//! A leaf that is free and **kept** has the size that was recorded, for good: it is never refined, a position in it is
//! the number that it is, and what is said to be equal to it is kept as well.
//!
//! # What holds
//!
//! The size of a refined leaf is the sum of the products of its digits, and each of its digits is smaller than it is; so no leaf
//! is part of itself.
//! Each operation keeps that, also where it gives up half way: what it has made equal by then had equal sizes. So whatever
//! small sizes the free leaves are given, the structures are true of them.
//!
//! # What it does not do
//!
//! It has no equations between structures that have no common refinement: these are a [`Misfit`], and whoever meets one keeps
//! the dimensions.

use std::collections::BTreeSet;

/// A dimension, or a part of one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Leaf(u32);

/// Digits, outermost first.
pub type Product = Vec<Leaf>;

/// Why two structures do not become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Misfit(pub &'static str);

/// Success, or a misfit.
pub type Fit<T> = Result<T, Misfit>;

const SIZES: Misfit = Misfit("sizes differ");
const COARSE: Misfit = Misfit("no common refinement");
const LARGE: Misfit = Misfit("too many pieces");

/// Pieces of one dimension at most.
const MOST_PIECES: usize = 4096;
/// Structures inside one another at most.
const MOST_DEPTH: u32 = 100;
/// Boundaries of two sums at most, where both have several pieces.
const MOST_BOUNDARIES: usize = 64;

#[derive(Clone, Debug)]
enum Form {
    Free,
    Linked(Leaf),
    Refined(Vec<Product>),
}

#[derive(Clone, Debug)]
struct Entry {
    size: i64,
    form: Form,
    /// Of a refined leaf: all that it is made of is kept.
    is_kept: bool,
}

/// All dimensions of some graphs.
#[derive(Clone, Debug, Default)]
pub struct Structure {
    entries: Vec<Entry>,
    depth: u32,
}

/// Making.
impl Structure {
    /// A free dimension.
    pub fn leaf(&mut self, size: i64) -> Leaf {
        self.push(size, Form::Free, false)
    }

    /// A dimension that keeps its size.
    pub fn kept(&mut self, size: i64) -> Leaf {
        self.push(size, Form::Free, true)
    }

    fn push(&mut self, size: i64, form: Form, is_kept: bool) -> Leaf {
        self.entries.push(Entry { size, form, is_kept });
        Leaf(self.entries.len() as u32 - 1)
    }

    /// Pieces one after the other.
    pub fn sum(&mut self, mut pieces: Vec<Product>) -> Fit<Leaf> {
        let mut size = 0i64;
        let mut sizes = Vec::with_capacity(pieces.len());
        for piece in &pieces {
            let of_piece = self.total(piece)?;
            size = size.checked_add(of_piece).ok_or(SIZES)?;
            sizes.push(of_piece);
        }
        let mut sizes = sizes.into_iter();
        pieces.retain(|_| sizes.next() != Some(0));
        // So parts are smaller than the whole.
        pieces.iter_mut().for_each(|piece| piece.retain(|&digit| self.size(digit) != 1));
        match &pieces[..] {
            [] => Ok(self.kept(0)),
            [piece] if piece.is_empty() => Ok(self.kept(1)),
            [piece] if piece.len() == 1 => Ok(piece[0]),
            _ if pieces.len() > MOST_PIECES => Err(LARGE),
            _ => Ok(self.push(size, Form::Refined(pieces), false)),
        }
    }

    /// A product as one dimension.
    pub fn product(&mut self, digits: Product) -> Fit<Leaf> {
        self.sum(vec![digits])
    }
}

/// Reading.
impl Structure {
    fn entry(&self, leaf: Leaf) -> &Entry {
        &self.entries[leaf.0 as usize]
    }

    /// The leaf that this one is linked to in the end.
    pub fn root(&self, mut leaf: Leaf) -> Leaf {
        while let Form::Linked(next) = self.entry(leaf).form {
            leaf = next;
        }
        leaf
    }

    fn find(&mut self, leaf: Leaf) -> Leaf {
        let root = self.root(leaf);
        let mut at = leaf;
        while let Form::Linked(next) = self.entry(at).form {
            self.entries[at.0 as usize].form = Form::Linked(root);
            at = next;
            if at == root {
                break;
            }
        }
        root
    }

    /// The recorded size.
    pub fn size(&self, leaf: Leaf) -> i64 {
        self.entry(leaf).size
    }

    /// How many elements digits give.
    pub fn total(&self, digits: &[Leaf]) -> Fit<i64> {
        digits.iter().try_fold(1i64, |n, &digit| n.checked_mul(self.size(digit))).ok_or(SIZES)
    }

    /// Whether a leaf has no structure.
    pub fn is_free(&self, leaf: Leaf) -> bool {
        matches!(self.entry(self.root(leaf)).form, Form::Free)
    }

    fn is_fixed(&self, leaf: Leaf) -> bool {
        let entry = self.entry(self.root(leaf));
        entry.is_kept && matches!(entry.form, Form::Free)
    }

    /// A product without digits of size 1, what consists of one piece spliced in.
    pub fn digits(&self, product: &[Leaf]) -> Product {
        let mut stack: Vec<Leaf> = product.iter().rev().copied().collect();
        let mut digits = Vec::with_capacity(product.len());
        while let Some(leaf) = stack.pop() {
            let leaf = self.root(leaf);
            if self.size(leaf) == 1 {
                continue;
            }
            match &self.entry(leaf).form {
                Form::Refined(pieces) if pieces.len() == 1 => stack.extend(pieces[0].iter().rev()),
                _ => digits.push(leaf),
            }
        }
        digits
    }

    /// The pieces of a dimension. No outermost digit of them is a sum.
    pub fn pieces(&self, leaf: Leaf) -> Fit<Vec<Product>> {
        self.flatten(vec![vec![leaf]])
    }

    /// Pieces whose outermost digits are no sums: a sum is distributed over the rest of its product.
    pub fn flatten(&self, pieces: Vec<Product>) -> Fit<Vec<Product>> {
        let mut stack: Vec<Product> = pieces.into_iter().rev().collect();
        let mut flat = Vec::with_capacity(stack.len());
        while let Some(piece) = stack.pop() {
            let piece = self.digits(&piece);
            match piece.split_first().map(|(&outer, rest)| (&self.entry(outer).form, rest)) {
                Some((Form::Refined(parts), rest)) => {
                    stack.extend(parts.iter().rev().map(|part| [part, rest].concat()));
                }
                _ => flat.push(piece),
            }
            if stack.len() + flat.len() > MOST_PIECES {
                return Err(LARGE);
            }
        }
        Ok(flat)
    }

    /// The free leaves that a dimension is made of.
    pub fn atoms(&self, leaf: Leaf) -> BTreeSet<Leaf> {
        let (mut atoms, mut seen, mut stack) = (BTreeSet::new(), BTreeSet::new(), vec![leaf]);
        while let Some(leaf) = stack.pop() {
            let leaf = self.root(leaf);
            match &self.entry(leaf).form {
                Form::Refined(pieces) if seen.insert(leaf) => stack.extend(pieces.iter().flatten()),
                Form::Refined(_) => {}
                _ => {
                    atoms.insert(leaf);
                }
            }
        }
        atoms
    }

    /// All free leaves, each once.
    pub fn all_atoms(&self) -> Vec<Leaf> {
        let all = (0..self.entries.len() as u32).map(Leaf);
        all.filter(|&leaf| matches!(self.entry(leaf).form, Form::Free)).collect()
    }

    /// Whether all that a dimension is made of is kept.
    pub fn is_kept(&self, leaf: Leaf) -> bool {
        let leaf = self.root(leaf);
        self.entry(leaf).is_kept
            || self.atoms(leaf).into_iter().all(|atom| self.entry(atom).is_kept || self.size(atom) == 1)
    }
}

/// Changing.
impl Structure {
    /// Keeps a dimension as it is.
    pub fn keep(&mut self, leaf: Leaf) {
        let mut stack = vec![leaf];
        while let Some(leaf) = stack.pop() {
            let leaf = self.find(leaf);
            let entry = &mut self.entries[leaf.0 as usize];
            if !std::mem::replace(&mut entry.is_kept, true)
                && let Form::Refined(pieces) = &entry.form
            {
                stack.extend(pieces.iter().flatten());
            }
        }
    }

    fn refine(&mut self, leaf: Leaf, pieces: Vec<Product>) {
        self.entries[leaf.0 as usize].form = Form::Refined(pieces);
    }

    fn link(&mut self, from: Leaf, to: Leaf) {
        self.entries[from.0 as usize].form = Form::Linked(to);
    }

    /// Makes `at` a boundary between pieces. In a kept leaf it need not be one.
    pub fn cut(&mut self, leaf: Leaf, at: i64) -> Fit<()> {
        self.cut_product(&[leaf], at)
    }

    fn cut_product(&mut self, product: &[Leaf], at: i64) -> Fit<()> {
        let mut start = 0;
        for piece in self.flatten(vec![product.to_vec()])? {
            let size = self.total(&piece)?;
            if start < at && at < start + size {
                return self.cut_piece(&piece, at - start);
            }
            start += size;
        }
        Ok(())
    }

    /// The same within a product whose outermost digit is free: that is cut around the row, then the row.
    fn cut_piece(&mut self, piece: &[Leaf], at: i64) -> Fit<()> {
        let Some((&outer, rest)) = piece.split_first() else { return Ok(()) };
        let width = self.total(rest)?.max(1);
        let (row, column) = (at / width, at % width);
        if !self.is_fixed(outer) {
            let size = self.size(outer);
            let ends = if column > 0 { [row, row + 1] } else { [row, row] };
            let mut bounds = vec![0, ends[0], ends[1], size];
            bounds.dedup();
            if bounds.len() > 2 {
                let parts = bounds.windows(2).map(|pair| vec![self.leaf(pair[1] - pair[0])]).collect();
                self.refine(outer, parts);
            }
        }
        if column > 0 { self.cut_product(rest, column) } else { Ok(()) }
    }

    /// The part of a dimension from one boundary to another.
    pub fn between(&mut self, leaf: Leaf, start: i64, end: i64) -> Fit<Leaf> {
        if start <= 0 && end >= self.size(leaf) {
            return Ok(leaf);
        }
        let parts = self.slice(&[leaf], start, end)?;
        self.sum(parts)
    }

    fn slice(&mut self, product: &[Leaf], start: i64, end: i64) -> Fit<Vec<Product>> {
        let (mut parts, mut at) = (Vec::new(), 0);
        for piece in self.flatten(vec![product.to_vec()])? {
            let size = self.total(&piece)?;
            let (low, high) = ((start - at).max(0), (end - at).min(size));
            if low == 0 && high == size {
                parts.push(piece);
            } else if low < high {
                parts.extend(self.slice_piece(&piece, low, high)?);
            }
            at += size;
        }
        Ok(parts)
    }

    /// A part of a product whose outermost digit is free and so must be kept: the rest of a row, whole rows, the begin of one.
    fn slice_piece(&mut self, piece: &[Leaf], low: i64, high: i64) -> Fit<Vec<Product>> {
        let Some((&outer, rest)) = piece.split_first() else { return Err(COARSE) };
        let width = self.total(rest)?.max(1);
        let (mut row, column, last, end) = (low / width, low % width, high / width, high % width);
        if !self.is_fixed(outer) {
            return Err(COARSE);
        }
        if row == last {
            return self.slice(rest, column, end);
        }
        let mut parts = Vec::new();
        if column > 0 {
            parts.extend(self.slice(rest, column, width)?);
            row += 1;
        }
        match last - row {
            0 => {}
            1 => parts.push(rest.to_vec()),
            rows => {
                let rows = self.kept(rows);
                parts.push([&[rows], rest].concat());
            }
        }
        if end > 0 {
            parts.extend(self.slice(rest, 0, end)?);
        }
        Ok(parts)
    }

    /// A dimension that consists of one digit is that digit.
    fn canonical(&mut self, leaf: Leaf) -> Leaf {
        let leaf = self.find(leaf);
        if matches!(&self.entry(leaf).form, Form::Refined(pieces) if pieces.len() == 1)
            && let [digit] = self.digits(&[leaf])[..]
            && digit != leaf
        {
            self.link(leaf, digit);
            return digit;
        }
        leaf
    }
}

/// Unification.
impl Structure {
    /// Makes two dimensions one.
    pub fn unify(&mut self, a: Leaf, b: Leaf) -> Fit<()> {
        let (a, b) = (self.canonical(a), self.canonical(b));
        if a == b {
            return Ok(());
        }
        if self.size(a) != self.size(b) {
            return Err(SIZES);
        }
        if self.is_fixed(a) || self.is_fixed(b) {
            self.keep(a);
            self.keep(b);
            return Ok(());
        }
        if self.is_free(a) || self.is_free(b) {
            let (from, to) = if self.is_free(a) { (a, b) } else { (b, a) };
            self.link(from, to);
            return Ok(());
        }
        if self.depth >= MOST_DEPTH {
            return Err(LARGE);
        }
        self.depth += 1;
        let done = self.unify_sums(a, b);
        self.depth -= 1;
        match done {
            Ok(()) => {
                let (a, b) = (self.canonical(a), self.canonical(b));
                if a != b {
                    self.link(a, b);
                }
                Ok(())
            }
            // What is kept has one size, whatever its structure.
            Err(_) if self.is_kept(a) && self.is_kept(b) => Ok(()),
            Err(misfit) => Err(misfit),
        }
    }

    fn boundaries(&self, leaf: Leaf) -> Fit<(Vec<Product>, BTreeSet<i64>)> {
        let pieces = self.pieces(leaf)?;
        let (mut bounds, mut at) = (BTreeSet::new(), 0i64);
        for piece in &pieces {
            at += self.total(piece)?;
            bounds.insert(at);
        }
        Ok((pieces, bounds))
    }

    /// Cuts each of two sums at the boundaries of the other, and makes the pieces equal.
    fn unify_sums(&mut self, a: Leaf, b: Leaf) -> Fit<()> {
        for round in 0..3 {
            let (left, of_left) = self.boundaries(a)?;
            let (right, of_right) = self.boundaries(b)?;
            let all: BTreeSet<i64> = of_left.union(&of_right).copied().collect();
            if of_left == of_right || round == 2 {
                return self.unify_between(a, b, &all);
            }
            match (&left[..], &right[..]) {
                ([one], many) if self.factored(b, many, one)? => return self.unify(a, b),
                (many, [one]) if self.factored(a, many, one)? => return self.unify(a, b),
                ([_], _) | (_, [_]) => {}
                _ if all.len() > MOST_BOUNDARIES => return Err(LARGE),
                _ => {}
            }
            for &at in of_right.difference(&of_left) {
                self.cut(a, at)?;
            }
            for &at in of_left.difference(&of_right) {
                self.cut(b, at)?;
            }
        }
        Err(COARSE)
    }

    /// Makes the parts of two dimensions between boundaries equal.
    fn unify_between(&mut self, a: Leaf, b: Leaf, all: &BTreeSet<i64>) -> Fit<()> {
        let mut start = 0;
        for &end in all {
            let (left, right) = (self.slice(&[a], start, end)?, self.slice(&[b], start, end)?);
            match (&left[..], &right[..]) {
                ([left], [right]) => self.unify_products(left, right)?,
                _ => {
                    let (left, right) = (self.sum(left)?, self.sum(right)?);
                    self.unify(left, right)?;
                }
            }
            start = end;
        }
        Ok(())
    }

    /// Whether the last digit of `product` could be taken out of each of `many` pieces: `a.c + b.c = (a + b).c`. Not where there
    /// are as many pieces as rows, which are cut then.
    fn factored(&mut self, whole: Leaf, many: &[Product], product: &[Leaf]) -> Fit<bool> {
        let Some((&last, outer)) = product.split_last() else { return Ok(false) };
        let size = self.size(last);
        let mut is_possible = !outer.is_empty() && self.is_free(last) && size > 0;
        is_possible &= outer.iter().all(|&digit| !self.is_fixed(digit));
        is_possible &= self.total(outer)? != many.len() as i64;
        for piece in many {
            is_possible &= size > 0 && self.total(piece)? % size == 0;
        }
        if is_possible {
            self.take_out(whole, many, last)?;
        }
        Ok(is_possible)
    }

    fn take_out(&mut self, whole: Leaf, pieces: &[Product], last: Leaf) -> Fit<()> {
        let mut outers = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let outer = self.total(piece)? / self.size(last);
            let outer = self.leaf(outer);
            self.unify_products(piece, &[outer, last])?;
            outers.push(vec![outer]);
        }
        let outer = self.sum(outers)?;
        let whole = self.find(whole);
        self.refine(whole, vec![vec![outer, last]]);
        Ok(())
    }

    /// Makes two products equal, from the innermost digit outwards.
    pub fn unify_products(&mut self, left: &[Leaf], right: &[Leaf]) -> Fit<()> {
        let (mut p, mut q) = (left.to_vec(), right.to_vec());
        if self.total(&p)? != self.total(&q)? {
            return Err(SIZES);
        }
        if self.total(&p)? == 0 {
            return Err(Misfit("no elements"));
        }
        for _ in 0..MOST_PIECES {
            (p, q) = (self.digits(&p), self.digits(&q));
            let (Some(&a), Some(&b)) = (p.last(), q.last()) else { return Ok(()) };
            if self.size(a) == self.size(b) {
                self.unify(a, b)?;
                p.pop();
                q.pop();
                continue;
            }
            if p.iter().chain(&q).all(|&digit| self.is_kept(digit)) {
                return Ok(());
            }
            if self.size(a) < self.size(b) {
                (p, q) = (q, p);
            }
            self.unify_last(&mut p, &mut q)?;
        }
        Err(LARGE)
    }

    /// One step: the last digit of `p` is the larger one.
    fn unify_last(&mut self, p: &mut Product, q: &mut Product) -> Fit<()> {
        let (Some(&a), Some(&b)) = (p.last(), q.last()) else { return Ok(()) };
        let (large, little) = (self.size(a), self.size(b));
        if !self.is_free(a) {
            let pieces = self.pieces(a)?;
            let mut divides = self.is_free(b) && large % little == 0;
            for piece in &pieces {
                divides &= self.total(piece)? % little == 0;
            }
            return if divides { self.take_out(a, &pieces, b) } else { self.unify_digits(p, q) };
        }
        if large % little == 0 {
            let rest = self.split_off(p, large / little, b);
            // The smaller one is a digit of a kept one.
            if let Some(rest) = rest {
                p.pop();
                p.push(rest);
                q.pop();
            }
            return Ok(());
        }
        let common = gcd(large, little);
        if common == 1 || !self.is_free(b) {
            return Err(COARSE);
        }
        let inner = if self.is_fixed(a) || self.is_fixed(b) { self.kept(common) } else { self.leaf(common) };
        for (list, size) in [(p, large), (q, little)] {
            if self.split_off(list, size / common, inner).is_some() {
                let outer = self.kept(size / common);
                list.pop();
                list.extend([outer, inner]);
            }
        }
        Ok(())
    }

    /// Makes the last digit of a product `outer` times `inner`. A kept one stays as it is, with `inner` kept as well; then
    /// the rest of it is given.
    fn split_off(&mut self, product: &Product, outer: i64, inner: Leaf) -> Option<Leaf> {
        let &last = product.last()?;
        if self.is_fixed(last) {
            self.keep(inner);
            return Some(self.kept(outer));
        }
        let outer = self.leaf(outer);
        self.refine(last, vec![vec![outer, inner]]);
        None
    }

    /// The last digit of `p` is a sum: the inner digits of `q` that make it up.
    fn unify_digits(&mut self, p: &mut Product, q: &mut Product) -> Fit<()> {
        let Some(&sum) = p.last() else { return Ok(()) };
        let size = self.size(sum);
        let (mut inner, mut at) = (1i64, q.len());
        while at > 0 && inner < size {
            at -= 1;
            inner = inner.checked_mul(self.size(q[at])).ok_or(SIZES)?;
        }
        if inner == size {
            let tail = q.split_off(at);
            let tail = self.product(tail)?;
            p.pop();
            return self.unify(sum, tail);
        }
        let over = inner / size;
        let &digit = q.get(at).ok_or(COARSE)?;
        if inner % size != 0 || self.size(digit) % over != 0 || !self.is_free(digit) {
            return Err(COARSE);
        }
        let rest = self.size(digit) / over;
        let pair = if self.is_fixed(digit) {
            [self.kept(over), self.kept(rest)]
        } else {
            [self.leaf(over), self.leaf(rest)]
        };
        if !self.is_fixed(digit) {
            self.refine(digit, vec![pair.to_vec()]);
        }
        q.splice(at..=at, pair);
        Ok(())
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
