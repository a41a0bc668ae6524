//! Maximum flow and minimum cut (Dinic, 1970), over 64-bit capacities.
//!
//! The rules use it to certify cuts: the value of a flow bounds every cut from below, so a cut of that value is a
//! minimum one, whoever found it.

/// A capacity that is never reached.
pub(super) const UNLIMITED: u64 = u64::MAX / 4;

/// A flow network.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    /// Edges in pairs: an edge and its reverse, each with what can still flow along it.
    to: Vec<u32>,
    left: Vec<u64>,
    next: Vec<u32>,
    first: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Network {
    /// A network without edges.
    pub(super) fn new(vertices: usize) -> Network {
        Network { first: vec![NONE; vertices], ..Network::default() }
    }

    /// Adds an edge. Ends that do not exist are ignored.
    pub(super) fn edge(&mut self, from: usize, to: usize, capacity: u64) {
        if from < self.first.len() && to < self.first.len() {
            for (a, b, capacity) in [(from, to, capacity.min(UNLIMITED)), (to, from, 0)] {
                self.to.push(b as u32);
                self.left.push(capacity);
                self.next.push(self.first[a]);
                self.first[a] = self.to.len() as u32 - 1;
            }
        }
    }

    /// The value of a maximum flow; `None` if it is unlimited. The residual network stays.
    pub(super) fn max_flow(&mut self, source: usize, sink: usize) -> Option<u64> {
        let n = self.first.len();
        if source >= n || sink >= n || source == sink {
            return None;
        }
        let mut total = 0u64;
        loop {
            let level = self.levels(source, sink);
            if level[sink] == NONE {
                return Some(total);
            }
            total = total.saturating_add(self.block(source, sink, &level));
            if total >= UNLIMITED {
                return None;
            }
        }
    }

    /// The distances from the source of the vertices that are no farther than the sink.
    fn levels(&self, source: usize, sink: usize) -> Vec<u32> {
        let mut level = vec![NONE; self.first.len()];
        level[source] = 0;
        let mut queue = std::collections::VecDeque::from([source]);
        while let Some(v) = queue.pop_front().filter(|_| level[sink] == NONE) {
            let mut edge = self.first[v];
            while edge != NONE {
                let to = self.to[edge as usize] as usize;
                if self.left[edge as usize] > 0 && level[to] == NONE {
                    level[to] = level[v] + 1;
                    queue.push_back(to);
                }
                edge = self.next[edge as usize];
            }
        }
        level
    }

    /// Pushes flow along paths of the level graph until each has a full edge. Returns how much.
    fn block(&mut self, source: usize, sink: usize, level: &[u32]) -> u64 {
        let mut at = self.first.clone();
        let mut path: Vec<u32> = Vec::new();
        let (mut v, mut total) = (source, 0u64);
        loop {
            if v == sink {
                let amount = path.iter().map(|&e| self.left[e as usize]).min().unwrap_or(0);
                for &edge in &path {
                    self.left[edge as usize] -= amount;
                    let back = &mut self.left[edge as usize ^ 1];
                    *back = back.saturating_add(amount).min(2 * UNLIMITED);
                }
                total = total.saturating_add(amount);
                // The way to the first full edge is taken again.
                let full = path.iter().position(|&e| self.left[e as usize] == 0).unwrap_or(0);
                let Some(&edge) = path.get(full) else { return total };
                v = self.to[edge as usize ^ 1] as usize;
                path.truncate(full);
                continue;
            }
            let edge = at[v];
            if edge == NONE {
                // A dead end: nobody comes here again.
                let Some(back) = path.pop() else { return total };
                v = self.to[back as usize ^ 1] as usize;
                at[v] = self.next[at[v] as usize];
                continue;
            }
            let to = self.to[edge as usize] as usize;
            if self.left[edge as usize] > 0 && level[to] == level[v] + 1 {
                path.push(edge);
                v = to;
            } else {
                at[v] = self.next[edge as usize];
            }
        }
    }

    /// After [`Network::max_flow`]: the vertices from which the sink can still be reached. The others are the source
    /// side of the minimum cut that is closest to the sink.
    pub(super) fn reaches(&self, sink: usize) -> Vec<bool> {
        let mut reaches = vec![false; self.first.len()];
        let mut stack = vec![sink];
        reaches[sink] = true;
        while let Some(v) = stack.pop() {
            let mut edge = self.first[v];
            while edge != NONE {
                let from = self.to[edge as usize] as usize;
                if self.left[edge as usize ^ 1] > 0 && !reaches[from] {
                    reaches[from] = true;
                    stack.push(from);
                }
                edge = self.next[edge as usize];
            }
        }
        reaches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least cut by trying every set of vertices that holds the source and not the sink.
    fn least_cut(n: usize, edges: &[(usize, usize, u64)]) -> u64 {
        let cut = |side: usize| -> u64 {
            edges.iter().filter(|e| side >> e.0 & 1 == 1 && side >> e.1 & 1 == 0).map(|e| e.2).sum()
        };
        (0..1usize << n).filter(|side| side & 1 == 1 && side >> (n - 1) & 1 == 0).map(cut).min().unwrap_or(0)
    }

    #[test]
    fn the_flow_is_the_least_cut_and_the_cut_is_closest_to_the_sink() {
        let mut state = 7u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for _ in 0..300 {
            let n = 2 + below(6) as usize;
            let edges: Vec<(usize, usize, u64)> = (0..below(16))
                .map(|_| (below(n as u64) as usize, below(n as u64) as usize, below(5)))
                .collect();
            let mut network = Network::new(n);
            edges.iter().for_each(|&(a, b, c)| network.edge(a, b, c));
            let flow = network.max_flow(0, n - 1);
            assert_eq!(flow, Some(least_cut(n, &edges)), "{edges:?}");
            let sink_side = network.reaches(n - 1);
            let cut: u64 = edges.iter().filter(|e| !sink_side[e.0] && sink_side[e.1]).map(|e| e.2).sum();
            assert_eq!(Some(cut), flow);
            // No minimum cut has a smaller sink side.
            for side in 0..1usize << n {
                let holds = |v: usize| side >> v & 1 == 1;
                if holds(n - 1) && !holds(0) {
                    let value: u64 = edges.iter().filter(|e| !holds(e.0) && holds(e.1)).map(|e| e.2).sum();
                    let inside = (0..n).all(|v| !sink_side[v] || holds(v));
                    assert!(Some(value) > flow || inside, "{edges:?}");
                }
            }
        }
    }

    #[test]
    fn an_unlimited_path_has_no_cut() {
        let mut network = Network::new(2);
        network.edge(0, 1, UNLIMITED);
        assert_eq!(network.max_flow(0, 1), None);
    }
}
