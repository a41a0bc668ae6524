//! Merged collectives that are packed wrongly, on few and on many ranks, small and at full size: none may be proved
//! equal.

use super::support::{assert_equal, assert_open, graph, judge};
use graph_oracle::semantics::symbolic::Comparison;

/// A bucket: how many ranks, what is done, and the members, rows of a rank and columns.
struct Bucket<'a> {
    ranks: i64,
    op: &'a str,
    dtype: &'a str,
    members: &'a [(i64, i64)],
    /// Whether what is sent is a function of elements of the inputs.
    computed: bool,
}

/// How the members are packed.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Packing {
    Right,
    /// One member after another, where each rank's chunk should hold a part of every member.
    InSequence,
    /// Each rank gets the chunk of the next.
    NextChunk,
    /// The last member is packed by columns.
    Transposed,
    /// The members change places.
    Exchanged,
}

use Packing::{Exchanged, InSequence, NextChunk, Right, Transposed};

impl Bucket<'_> {
    fn count(&self, i: usize) -> i64 {
        let (rows, columns) = self.members[i];
        self.ranks * rows * columns
    }

    fn head(&self) -> String {
        let ranks: Vec<String> = (0..self.ranks).map(|r| r.to_string()).collect();
        let mut lines = format!("world {} ranks, groups g = [{}] at 0\n", self.ranks, ranks.join(" "));
        let d = self.dtype;
        for (i, &(rows, columns)) in self.members.iter().enumerate() {
            let rows = self.ranks * rows;
            lines += &format!("i{i} = input: {d}[{rows}, {columns}]\n");
            let call = if self.computed { "relu" } else { "clone" };
            lines += &format!("x{i} = {call}(i{i}): {d}[{rows}, {columns}]\n");
        }
        lines
    }

    fn sent(&self, of: &str, len: i64) -> String {
        let part = len / self.ranks;
        match self.op {
            "all_to_all" => {
                let splits = vec![part.to_string(); self.ranks as usize].join(", ");
                format!(
                    "r_{of} = all_to_all({of}, [{splits}], [{splits}], g): {d}[{len}]\nw_{of} = wait(r_{of}): {d}[{len}]\n",
                    d = self.dtype
                )
            }
            op => format!(
                "r_{of} = reduce_scatter({of}, \"{op}\", g): {d}[{part}]\nw_{of} = wait(r_{of}): {d}[{part}]\n",
                d = self.dtype
            ),
        }
    }

    fn is_reduction(&self) -> bool {
        self.op != "all_to_all"
    }

    fn before(&self) -> String {
        let mut lines = self.head();
        let mut outputs = Vec::new();
        for i in 0..self.members.len() {
            let len = self.count(i);
            lines += &format!("f{i} = view(x{i}, [-1]): {}[{len}]\n", self.dtype);
            lines += &self.sent(&format!("f{i}"), len);
            outputs.push(format!("w_f{i}"));
        }
        lines + &format!("output ({})", outputs.join(", "))
    }

    fn after(&self, packing: Packing) -> String {
        let (d, n) = (self.dtype, self.ranks);
        let mut lines = self.head();
        let all: i64 = (0..self.members.len()).map(|i| self.count(i)).sum();
        let part = all / n;
        let mut names: Vec<String> = (0..self.members.len()).map(|i| format!("m{i}")).collect();
        for (i, &(rows, columns)) in self.members.iter().enumerate() {
            let len = rows * columns;
            let mut from = format!("x{i}");
            if packing == Transposed && i + 1 == self.members.len() {
                let sizes = format!("{d}[{columns}, {}]", n * rows);
                lines += &format!(
                    "t = permute(x{i}, [1, 0]): {sizes} strides [1, {columns}]\nc = clone(t, memory_format=contiguous_format): {sizes}\n"
                );
                from = "c".into();
            }
            match packing {
                InSequence => lines += &format!("m{i} = view({from}, [-1]): {d}[{}]\n", n * len),
                _ => lines += &format!("m{i} = view({from}, [{n}, -1]): {d}[{n}, {len}]\n"),
            }
        }
        if packing == Exchanged {
            names.swap(0, 1);
        }
        let names = names.join(", ");
        match packing {
            InSequence => lines += &format!("b = cat([{names}], 0): {d}[{all}]\n"),
            _ => {
                lines += &format!("a = cat([{names}], 1): {d}[{n}, {part}]\nb = view(a, [-1]): {d}[{all}]\n")
            }
        }
        let mut bucket = "b";
        if packing == NextChunk {
            lines += &format!("s = slice(b, 0, {part}, {all}): {d}[{}] offset {part}\n", all - part);
            lines += &format!("h = slice(b, 0, 0, {part}): {d}[{part}]\nk = cat([s, h], 0): {d}[{all}]\n");
            bucket = "k";
        }
        lines += &self.sent(bucket, all);
        let mut outputs = Vec::new();
        let (mut at, received) = (0, format!("w_{bucket}"));
        let rows = if self.is_reduction() { 1 } else { n };
        lines += &format!("v = view({received}, [{rows}, -1]): {d}[{rows}, {part}]\n");
        for i in 0..self.members.len() {
            let len = self.count(i) / n;
            let strides = format!("strides [{part}, 1] offset {at}");
            lines += &format!("p{i} = slice(v, 1, {at}, {}): {d}[{rows}, {len}] {strides}\n", at + len);
            lines += &format!("o{i} = reshape(p{i}, [-1]): {d}[{}]\n", rows * len);
            outputs.push(format!("o{i}"));
            at += len;
        }
        lines + &format!("output ({})", outputs.join(", "))
    }
}

const SMALL: [(i64, i64); 2] = [(2, 3), (2, 3)];
/// Rows that are padded to the ranks, and members of other sizes.
const UNEVEN: [(i64, i64); 3] = [(3, 2), (1, 5), (3, 4)];

#[track_caller]
fn check(bucket: &Bucket<'_>, packings: &[Packing]) {
    let before = bucket.before();
    assert_equal(&judge(&before, &bucket.after(Right)));
    for &packing in packings {
        let comparison = judge(&before, &bucket.after(packing));
        assert!(
            !matches!(comparison, Comparison::Equal(_)),
            "{packing:?} on {} ranks, {} of {}, {:?} is proved equal",
            bucket.ranks,
            bucket.op,
            bucket.dtype,
            bucket.members
        );
    }
}

#[test]
fn packed_wrongly_on_few_and_many_ranks() {
    for ranks in [2, 4, 8, 64] {
        for op in ["sum", "avg", "max", "all_to_all"] {
            for dtype in ["f32", "bf16"] {
                for computed in [false, true] {
                    for members in [&SMALL[..], &UNEVEN[..]] {
                        let bucket = Bucket { ranks, op, dtype, members, computed };
                        check(&bucket, &[InSequence, NextChunk, Transposed]);
                    }
                    let bucket = Bucket { ranks, op, dtype, members: &SMALL, computed };
                    check(&bucket, &[Exchanged]);
                }
            }
        }
    }
}

/// What is packed has been reduced over another group before, which is no axis beside that of the bucket.
#[test]
fn packed_wrongly_behind_a_group_of_some_ranks() {
    for op in ["sum", "avg"] {
        let bucket = Bucket { ranks: 8, op, dtype: "f32", members: &SMALL, computed: true };
        let behind = |lines: String| {
            let groups = "at 0\ngroups few = [0 1 2 | 3 4 5 | 6 7]\nv0 = input: f32[3, 3]\n";
            let mut lines = lines.replacen("at 0\n", groups, 1);
            for i in 0..SMALL.len() {
                let reduced = format!(
                    "s{i} = all_reduce(i{i}, \"sum\", few): f32[16, 3]\nu{i} = wait(s{i}): f32[16, 3]\nx{i} = mm(u{i}, v0)"
                );
                lines = lines.replace(&format!("x{i} = relu(i{i})"), &reduced);
            }
            lines
        };
        let before = behind(bucket.before());
        assert_equal(&judge(&before, &behind(bucket.after(Right))));
        for packing in [InSequence, NextChunk, Transposed, Exchanged] {
            assert_open(&judge(&before, &behind(bucket.after(packing))), &[]);
        }
    }
}

#[test]
fn packed_wrongly_at_full_size() {
    let members = [(64, 4096), (64, 4096), (224, 4096)];
    for op in ["sum", "avg", "all_to_all"] {
        for computed in [false, true] {
            let bucket = Bucket { ranks: 64, op, dtype: "bf16", members: &members, computed };
            check(&bucket, &[InSequence, NextChunk, Transposed, Exchanged]);
        }
    }
}

/// The own chunk of a gather of many ranks: another rank's, and a transposed one.
#[test]
fn gathers_unpacked_wrongly() {
    for n in [2, 4, 8, 64] {
        let ranks: Vec<String> = (0..n).map(|r: i64| r.to_string()).collect();
        let make = |unpacked: &str| {
            graph(&format!(
                "world {n} ranks, groups g = [{}] at 0\nx = input: f32[2, 3]
                 a = all_gather(x, g): f32[{}, 3]\nw = wait(a): f32[{}, 3]\n{unpacked}",
                ranks.join(" "),
                2 * n,
                2 * n
            ))
        };
        let (rows, last) = (2 * n, 2 * n - 2);
        let right = make("output w");
        let rolled = make(&format!(
            "s = slice(w, 0, 2, {rows}): f32[{last}, 3] offset 6\nh = slice(w, 0, 0, 2): f32[2, 3]
             c = cat([s, h], 0): f32[{rows}, 3]\noutput c"
        ));
        let transposed = make(&format!(
            "t = permute(w, [1, 0]): f32[3, {rows}] strides [1, 3]\nc = clone(t, memory_format=contiguous_format): f32[3, {rows}]
             v = view(c, [{rows}, 3]): f32[{rows}, 3]\noutput v"
        ));
        for wrong in [rolled, transposed] {
            assert_open(&super::support::compared(&right, &wrong), &["of rank"]);
        }
    }
}
