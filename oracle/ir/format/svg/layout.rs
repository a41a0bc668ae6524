//! Where things go: rows from list order, an order in each row with few crossings, and coordinates.
//!
//! # The idea
//!
//! Rows follow the list: a node stands in the row of the node before it, or further down if it needs something
//! from that row. So reading a picture from top to bottom is reading the schedule. Inputs stand right above
//! their first user. An edge over several rows has a *bend* in each row between, which takes room like a node:
//! no edge runs under a box.
//!
//! Crossings are reduced by barycentre sweeps. Coordinates minimise, row by row, the squared distance from the
//! mean of the neighbours, under the order and the widths: an isotonic regression, solved exactly by pooling
//! adjacent violators. In the end, bends above one another are made straight where there is room.

use std::collections::BTreeMap;

/// Nodes in one row at most; inputs do not count.
const ROW_LIMIT: usize = 8;
/// Sweeps over all rows.
const ORDER_SWEEPS: usize = 24;
const PLACE_SWEEPS: usize = 40;
const STRAIGHTEN_SWEEPS: usize = 6;
/// Horizontal room between two boxes, and beside a bend.
const BOX_GAP: f64 = 22.0;
const BEND_GAP: f64 = 9.0;
/// How much straighter edges matter than short ones.
const BEND_PULL: f64 = 8.0;

/// A node as the layout sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Box {
    pub(super) width: f64,
    /// Whether it takes no time: it goes above its first user, unless something must stand above it.
    pub(super) floats: bool,
}

/// Where everything is.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Row of each node.
    pub(super) row: Vec<usize>,
    /// Centre of each node.
    pub(super) x: Vec<f64>,
    /// For each edge the x of its bends, in the rows between its upper and its lower end.
    pub(super) bends: Vec<Vec<f64>>,
    pub(super) rows: usize,
}

/// An edge from its upper to its lower end; the upper one comes first in the list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Edges with one upper end and one kind are drawn as one line with branches.
    pub(super) kind: u8,
}

/// Lays out `boxes` in list order.
pub(super) fn layout(boxes: &[Box], edges: &[Edge]) -> Layout {
    let row = assign_rows(boxes, edges);
    let rows = row.iter().max().map_or(0, |r| r + 1);
    let mut chains = Chains::new(boxes, edges, &row, rows);
    chains.reduce_crossings();
    let mut x = chains.place();
    chains.straighten(&mut x);
    let left = (0..x.len()).map(|i| x[i] - chains.width[i] / 2.0).fold(f64::INFINITY, f64::min);
    let x: Vec<f64> = x.iter().map(|x| x - left.min(f64::MAX)).collect();
    let bends = chains.bends.iter().map(|bends| bends.iter().map(|&b| x[b]).collect()).collect();
    Layout { row, x: x[..boxes.len()].to_vec(), bends, rows }
}

fn assign_rows(boxes: &[Box], edges: &[Edge]) -> Vec<usize> {
    let mut above: Vec<Vec<usize>> = vec![Vec::new(); boxes.len()];
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); boxes.len()];
    for &Edge { from, to, .. } in edges {
        above[to].push(from);
        below[from].push(to);
    }
    let floats = |i: usize| boxes[i].floats && above[i].is_empty();
    // One row is kept free above the first one, for its inputs.
    let mut row = vec![1usize; boxes.len()];
    let (mut current, mut in_row) = (1, 0);
    for i in 0..boxes.len() {
        if floats(i) {
            continue;
        }
        let needed = above[i].iter().filter(|&&a| !floats(a)).map(|&a| row[a] + 1).max().unwrap_or(1);
        if needed > current || in_row == ROW_LIMIT {
            (current, in_row) = (needed.max(current + usize::from(in_row == ROW_LIMIT)), 0);
        }
        row[i] = current;
        in_row += 1;
    }
    for i in (0..boxes.len()).filter(|&i| floats(i)) {
        row[i] = below[i].iter().map(|&b| row[b].saturating_sub(1)).min().unwrap_or(0);
    }
    let first = row.iter().copied().min().unwrap_or(0);
    row.iter().map(|r| r - first).collect()
}

/// Nodes and bends, tied row by row.
struct Chains {
    /// Of nodes, then of bends.
    width: Vec<f64>,
    nodes: usize,
    /// Items of each row, from left to right.
    rows: Vec<Vec<usize>>,
    /// Neighbours in the row above and in the row below.
    up: Vec<Vec<usize>>,
    down: Vec<Vec<usize>>,
    /// The bends of each edge.
    bends: Vec<Vec<usize>>,
    /// The bends of each line.
    lines: Vec<Vec<usize>>,
}

impl Chains {
    fn new(boxes: &[Box], edges: &[Edge], row: &[usize], rows: usize) -> Chains {
        let nodes = boxes.len();
        let mut chains = Chains {
            width: boxes.iter().map(|b| b.width).collect(),
            nodes,
            rows: vec![Vec::new(); rows],
            up: vec![Vec::new(); nodes],
            down: vec![Vec::new(); nodes],
            bends: Vec::with_capacity(edges.len()),
            lines: Vec::new(),
        };
        for (i, &r) in row.iter().enumerate() {
            chains.rows[r].push(i);
        }
        // The bends of a line so far, by its upper end and kind.
        let mut lines: BTreeMap<(usize, u8), Vec<usize>> = BTreeMap::new();
        for edge in edges {
            let line = lines.entry((edge.from, edge.kind)).or_default();
            let count = row[edge.to].saturating_sub(row[edge.from] + 1);
            while line.len() < count {
                let bend = chains.width.len();
                chains.width.push(0.0);
                chains.up.push(Vec::new());
                chains.down.push(Vec::new());
                chains.rows[row[edge.from] + 1 + line.len()].push(bend);
                chains.tie(line.last().copied().unwrap_or(edge.from), bend);
                line.push(bend);
            }
            let bends = line[..count].to_vec();
            chains.tie(bends.last().copied().unwrap_or(edge.from), edge.to);
            chains.bends.push(bends);
        }
        chains.lines = lines.into_values().collect();
        chains
    }

    fn tie(&mut self, upper: usize, lower: usize) {
        self.down[upper].push(lower);
        self.up[lower].push(upper);
    }

    fn is_bend(&self, item: usize) -> bool {
        item >= self.nodes
    }

    fn positions(&self) -> Vec<usize> {
        let mut position = vec![0; self.width.len()];
        for row in &self.rows {
            for (p, &item) in row.iter().enumerate() {
                position[item] = p;
            }
        }
        position
    }

    fn reduce_crossings(&mut self) {
        let mut best = (self.crossings(), self.rows.clone());
        for sweep in 0..ORDER_SWEEPS {
            let mut position = self.positions();
            let downward = sweep % 2 == 0;
            let order: Vec<usize> =
                if downward { (0..self.rows.len()).collect() } else { (0..self.rows.len()).rev().collect() };
            for r in order {
                let mut keyed: Vec<(f64, usize, usize)> = self.rows[r]
                    .iter()
                    .enumerate()
                    .map(|(p, &item)| {
                        let ties = if downward { &self.up[item] } else { &self.down[item] };
                        let key = match ties.len() {
                            0 => p as f64,
                            n => ties.iter().map(|&t| position[t]).sum::<usize>() as f64 / n as f64,
                        };
                        (key, p, item)
                    })
                    .collect();
                keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                for (p, &(_, _, item)) in keyed.iter().enumerate() {
                    position[item] = p;
                }
                self.rows[r] = keyed.into_iter().map(|(_, _, item)| item).collect();
            }
            self.swap_neighbours();
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.rows.clone());
            }
        }
        self.rows = best.1;
    }

    /// Swaps neighbours in a row as long as that removes crossings.
    fn swap_neighbours(&mut self) {
        let mut position = self.positions();
        for r in 0..self.rows.len() {
            for i in 1..self.rows[r].len() {
                let (a, b) = (self.rows[r][i - 1], self.rows[r][i]);
                let count = |left: usize, right: usize| {
                    let pairs = |l: &[usize], r: &[usize]| -> usize {
                        l.iter().map(|&x| r.iter().filter(|&&y| position[x] > position[y]).count()).sum()
                    };
                    pairs(&self.up[left], &self.up[right]) + pairs(&self.down[left], &self.down[right])
                };
                if count(b, a) < count(a, b) {
                    self.rows[r].swap(i - 1, i);
                    (position[a], position[b]) = (i, i - 1);
                }
            }
        }
    }

    fn crossings(&self) -> usize {
        let position = self.positions();
        let mut total = 0;
        for row in &self.rows {
            let mut ends: Vec<(usize, usize)> = Vec::new();
            for &item in row {
                ends.extend(self.down[item].iter().map(|&lower| (position[item], position[lower])));
            }
            ends.sort_unstable();
            let mut lowers: Vec<usize> = Vec::with_capacity(ends.len());
            for (_, lower) in ends {
                // Those already met lie to the left above; the ones to the right below cross.
                let at = lowers.partition_point(|&l| l <= lower);
                total += lowers.len() - at;
                lowers.insert(at, lower);
            }
        }
        total
    }

    fn separation(&self, left: usize, right: usize) -> f64 {
        let gap = if self.is_bend(left) || self.is_bend(right) { BEND_GAP } else { BOX_GAP };
        (self.width[left] + self.width[right]) / 2.0 + gap
    }

    /// The centre of every item.
    fn place(&self) -> Vec<f64> {
        let mut x = vec![0.0; self.width.len()];
        for row in &self.rows {
            let mut at = 0.0;
            for (i, &item) in row.iter().enumerate() {
                at += if i > 0 { self.separation(row[i - 1], item) } else { 0.0 };
                x[item] = at;
            }
            // Rows start centred on one another.
            for &item in row {
                x[item] -= at / 2.0;
            }
        }
        for sweep in 0..PLACE_SWEEPS {
            let downward = sweep % 2 == 0;
            let both = sweep + 8 >= PLACE_SWEEPS;
            let count = self.rows.len();
            for k in 0..count {
                let r = if downward { k } else { count - 1 - k };
                self.place_row(r, &mut x, downward || both, !downward || both);
            }
        }
        x
    }

    /// Moves the items of a row as near to their neighbours above or below as order and widths allow.
    fn place_row(&self, r: usize, x: &mut [f64], up: bool, down: bool) {
        let row = &self.rows[r];
        // Pools of items that touch one another: (weighted sum of wishes, weight, items).
        let mut pools: Vec<(f64, f64, usize)> = Vec::with_capacity(row.len());
        let mut offset = 0.0;
        let mut offsets = Vec::with_capacity(row.len());
        for (i, &item) in row.iter().enumerate() {
            offset += if i > 0 { self.separation(row[i - 1], item) } else { 0.0 };
            offsets.push(offset);
            let (mut sum, mut weight) = (0.0, 0.0);
            let sides = [(up, &self.up[item]), (down, &self.down[item])];
            for &tie in sides.iter().filter(|(use_it, _)| *use_it).flat_map(|(_, ties)| ties.iter()) {
                let pull = if self.is_bend(item) && self.is_bend(tie) { BEND_PULL } else { 1.0 };
                sum += pull * x[tie];
                weight += pull;
            }
            if weight == 0.0 {
                (sum, weight) = (0.01 * x[item], 0.01);
            }
            let mut pool = (sum - offset * weight, weight, 1);
            while let Some(&last) = pools.last() {
                if last.0 / last.1 <= pool.0 / pool.1 {
                    break;
                }
                pools.pop();
                pool = (pool.0 + last.0, pool.1 + last.1, pool.2 + last.2);
            }
            pools.push(pool);
        }
        let mut items = row.iter().zip(&offsets);
        for (sum, weight, count) in pools {
            for (&item, offset) in items.by_ref().take(count) {
                x[item] = sum / weight + offset;
            }
        }
    }

    /// Puts consecutive bends of a line above one another, as many as fit between their neighbours.
    fn straighten(&self, x: &mut [f64]) {
        let position = self.positions();
        let mut row_of = vec![0; self.width.len()];
        for (r, row) in self.rows.iter().enumerate() {
            row.iter().for_each(|&item| row_of[item] = r);
        }
        for _ in 0..STRAIGHTEN_SWEEPS {
            for line in &self.lines {
                let room: Vec<(f64, f64)> = line
                    .iter()
                    .map(|&bend| {
                        let (row, p) = (&self.rows[row_of[bend]], position[bend]);
                        let left = p.checked_sub(1).map(|q| x[row[q]] + self.separation(row[q], bend));
                        let right = row.get(p + 1).map(|&next| x[next] - self.separation(bend, next));
                        (left.unwrap_or(f64::NEG_INFINITY), right.unwrap_or(f64::INFINITY))
                    })
                    .collect();
                let mut start = 0;
                while start < line.len() {
                    let (mut low, mut high, mut end) = (room[start].0, room[start].1, start + 1);
                    while end < line.len() && low.max(room[end].0) <= high.min(room[end].1) {
                        (low, high) = (low.max(room[end].0), high.min(room[end].1));
                        end += 1;
                    }
                    let mean = line[start..end].iter().map(|&b| x[b]).sum::<f64>() / (end - start) as f64;
                    for &bend in &line[start..end] {
                        // Rounding may leave low a little above high.
                        x[bend] = mean.min(high).max(low);
                    }
                    start = end;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Boxes of random width, and random edges down the list.
    fn graphs() -> impl Strategy<Value = (Vec<Box>, Vec<Edge>)> {
        let boxes = proptest::collection::vec((20.0..200.0f64, any::<bool>()), 1..40);
        let edges = proptest::collection::vec((any::<usize>(), any::<usize>(), 0u8..2), 0..80);
        (boxes, edges).prop_map(|(boxes, edges)| {
            let n = boxes.len();
            let edges = edges.into_iter().map(|(a, b, kind)| (a % n, b % n, kind)).filter(|(a, b, _)| a != b);
            let edges = edges.map(|(a, b, kind)| Edge { from: a.min(b), to: a.max(b), kind });
            (boxes.into_iter().map(|(width, floats)| Box { width, floats }).collect(), edges.collect())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn nothing_overlaps_and_edges_run_down((boxes, edges) in graphs()) {
            let layout = layout(&boxes, &edges);
            let mut rows: Vec<Vec<(f64, f64)>> = vec![Vec::new(); layout.rows];
            for (i, b) in boxes.iter().enumerate() {
                rows[layout.row[i]].push((layout.x[i] - b.width / 2.0, layout.x[i] + b.width / 2.0));
            }
            for row in &mut rows {
                row.sort_by(|a, b| a.0.total_cmp(&b.0));
                for pair in row.windows(2) {
                    prop_assert!(pair[0].1 + BOX_GAP.min(2.0 * BEND_GAP) - 0.01 <= pair[1].0, "boxes overlap: {pair:?}");
                }
            }
            for (edge, bends) in edges.iter().zip(&layout.bends) {
                let (upper, lower) = (layout.row[edge.from], layout.row[edge.to]);
                prop_assert!(upper < lower);
                prop_assert_eq!(bends.len(), lower - upper - 1);
                for (k, &x) in bends.iter().enumerate() {
                    let hit = rows[upper + 1 + k].iter().find(|(left, right)| *left < x && x < *right);
                    prop_assert!(hit.is_none(), "an edge at {x} runs under a box {hit:?}");
                }
            }
            prop_assert!(layout.x.iter().chain(layout.bends.iter().flatten()).all(|x| x.is_finite() && *x >= 0.0));
        }

        #[test]
        fn rows_follow_the_list((boxes, edges) in graphs()) {
            let layout = layout(&boxes, &edges);
            let pinned = |i: usize| !boxes[i].floats || edges.iter().any(|e| e.to == i);
            let rows: Vec<usize> = (0..boxes.len()).filter(|&i| pinned(i)).map(|i| layout.row[i]).collect();
            prop_assert!(rows.is_sorted(), "{rows:?}");
        }
    }
}
