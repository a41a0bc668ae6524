//! Maximum flow and minimum cut (Dinic, 1970), over 64-bit capacities.
//!
//! The rules use it to certify cuts: the value of a flow bounds every cut from below, so a cut of that value is a
//! minimum one, whoever found it.
//!
//! Levels are distances to the sink, so that a path hardly ever runs into a dead end. The arcs of a vertex lie side by
//! side: networks of millions of vertices do not fit any cache.

/// A capacity that is never reached.
pub(super) const UNLIMITED: u64 = u64::MAX / 4;

/// A flow network.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    vertices: usize,
    edges: Vec<(u32, u32, u64)>,
}

const NONE: u32 = u32::MAX;

impl Network {
    /// A network without edges.
    pub(super) fn new(vertices: usize) -> Network {
        Network { vertices, edges: Vec::new() }
    }

    /// Adds an edge. Ends that do not exist are ignored.
    pub(super) fn edge(&mut self, from: usize, to: usize, capacity: u64) {
        if from < self.vertices && to < self.vertices {
            self.edges.push((from as u32, to as u32, capacity.min(UNLIMITED)));
        }
    }

    /// A maximum flow.
    pub(super) fn max_flow(&self, source: usize, sink: usize) -> Flow {
        let mut flow = Flow::new(self);
        flow.value = flow.grow(source, sink);
        flow
    }
}

/// A flow through a network.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// Its value; `None` if it is unlimited.
    pub(super) value: Option<u64>,
    /// Where the arcs of each vertex begin: those of its edges and the reverse of those that end there.
    start: Vec<u32>,
    to: Vec<u32>,
    /// What can still flow along each arc.
    left: Vec<u64>,
    /// The reverse of each arc.
    reverse: Vec<u32>,
}

impl Flow {
    fn new(network: &Network) -> Flow {
        let mut start = vec![0u32; network.vertices + 1];
        for &(from, to, _) in &network.edges {
            start[from as usize + 1] += 1;
            start[to as usize + 1] += 1;
        }
        for v in 0..network.vertices {
            start[v + 1] += start[v];
        }
        let arcs = 2 * network.edges.len();
        let (mut to, mut left, mut reverse) = (vec![0; arcs], vec![0; arcs], vec![0; arcs]);
        let mut next = start.clone();
        let mut arc_of = |v: u32| {
            next[v as usize] += 1;
            next[v as usize] - 1
        };
        for &(a, b, capacity) in &network.edges {
            let (there, back) = (arc_of(a), arc_of(b));
            (to[there as usize], left[there as usize], reverse[there as usize]) = (b, capacity, back);
            (to[back as usize], reverse[back as usize]) = (a, there);
        }
        Flow { value: None, start, to, left, reverse }
    }

    fn arcs(&self, v: usize) -> std::ops::Range<usize> {
        self.start[v] as usize..self.start[v + 1] as usize
    }

    fn grow(&mut self, source: usize, sink: usize) -> Option<u64> {
        let n = self.start.len() - 1;
        if source >= n || sink >= n || source == sink {
            return None;
        }
        let mut total = 0u64;
        loop {
            let level = self.levels(source, sink);
            if level[source] == NONE {
                return Some(total);
            }
            total = total.saturating_add(self.block(source, sink, &level));
            if total >= UNLIMITED {
                return None;
            }
        }
    }

    /// The distances to the sink of the vertices that are no farther than the source.
    fn levels(&self, source: usize, sink: usize) -> Vec<u32> {
        let mut level = vec![NONE; self.start.len() - 1];
        level[sink] = 0;
        let mut queue = std::collections::VecDeque::from([sink]);
        while let Some(v) = queue.pop_front().filter(|_| level[source] == NONE) {
            for arc in self.arcs(v) {
                let from = self.to[arc] as usize;
                if level[from] == NONE && self.left[self.reverse[arc] as usize] > 0 {
                    level[from] = level[v] + 1;
                    queue.push_back(from);
                }
            }
        }
        level
    }

    /// Pushes flow along falling levels until each path has a full arc. Returns how much.
    fn block(&mut self, source: usize, sink: usize, level: &[u32]) -> u64 {
        let mut at = self.start.clone();
        let mut path: Vec<u32> = Vec::new();
        let (mut v, mut total) = (source, 0u64);
        loop {
            if v == sink {
                let amount = path.iter().map(|&arc| self.left[arc as usize]).min().unwrap_or(0);
                for &arc in &path {
                    self.left[arc as usize] -= amount;
                    let back = &mut self.left[self.reverse[arc as usize] as usize];
                    *back = back.saturating_add(amount).min(2 * UNLIMITED);
                }
                total = total.saturating_add(amount);
                // The way to the first full arc is taken again.
                let full = path.iter().position(|&arc| self.left[arc as usize] == 0).unwrap_or(0);
                let Some(&arc) = path.get(full) else { return total };
                v = self.to[self.reverse[arc as usize] as usize] as usize;
                path.truncate(full);
                continue;
            }
            let arc = at[v];
            if arc == self.start[v + 1] {
                // A dead end: nobody comes here again.
                let Some(back) = path.pop() else { return total };
                v = self.to[self.reverse[back as usize] as usize] as usize;
                at[v] += 1;
                continue;
            }
            let to = self.to[arc as usize] as usize;
            if self.left[arc as usize] > 0 && level[to] != NONE && level[to] + 1 == level[v] {
                path.push(arc);
                v = to;
            } else {
                at[v] += 1;
            }
        }
    }

    /// The vertices from which the sink can still be reached. The others are the source side of the minimum cut that
    /// is closest to the sink.
    pub(super) fn reaches(&self, sink: usize) -> Vec<bool> {
        let mut reaches = vec![false; self.start.len() - 1];
        let mut stack = vec![sink];
        reaches[sink] = true;
        while let Some(v) = stack.pop() {
            for arc in self.arcs(v) {
                let from = self.to[arc] as usize;
                if !reaches[from] && self.left[self.reverse[arc] as usize] > 0 {
                    reaches[from] = true;
                    stack.push(from);
                }
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
            let found = network.max_flow(0, n - 1);
            let flow = found.value;
            assert_eq!(flow, Some(least_cut(n, &edges)), "{edges:?}");
            let sink_side = found.reaches(n - 1);
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
        assert_eq!(network.max_flow(0, 1).value, None);
    }
}
