//! Memory after each step of a list, kept up to date while neighbours change places.
//!
//! For each step: what it allocates (A), what it frees (F), and what is live after its allocations (post-alloc; after
//! its frees that less F). A buffer is freed at its last use. When a group of steps and a neighbour change places, a
//! buffer that both use is freed by the other one of them; everything else only shifts. So a swap costs the group, and
//! afterwards all figures are those of a full recomputation, which the tests demand after every swap.

use super::list::List;
use super::steps::Steps;
use crate::simulate::Buffers;

/// Memory of one list of steps, in bytes.
#[derive(Clone, Debug)]
pub struct Tracker {
    alloc: Vec<i64>,
    free: Vec<i64>,
    post: Vec<i64>,
    /// The buffers that each step uses but does not make.
    uses: Vec<Vec<u32>>,
    /// Bytes of each buffer.
    bytes: Vec<i64>,
    /// The step that frees each buffer.
    last: Vec<Option<u32>>,
    /// The peak at the beginning.
    base: i64,
}

/// What a swap would make of memory.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The most that is live in the steps that move.
    pub potential: i64,
    post: Vec<(u32, i64)>,
    /// (buffer, who frees it before, who frees it then)
    freed: Vec<(u32, u32, u32)>,
}

impl Tracker {
    /// Memory of the steps in the order of their numbers.
    pub fn new(steps: &Steps, buffers: &Buffers) -> Tracker {
        let order: Vec<u32> = (0..steps.len() as u32).collect();
        Tracker::of_order(steps, buffers, &order)
    }

    /// Memory of the steps in an order: the full recomputation.
    pub fn of_order(steps: &Steps, buffers: &Buffers, order: &[u32]) -> Tracker {
        let n = steps.len();
        let mut place = vec![0usize; n];
        order.iter().enumerate().for_each(|(i, &step)| place[step as usize] = i);
        let count = buffers.buffers.len();
        let mut this = Tracker {
            alloc: vec![0; n],
            free: vec![0; n],
            post: vec![0; n],
            uses: vec![Vec::new(); n],
            bytes: Vec::with_capacity(count),
            last: Vec::with_capacity(count),
            base: 0,
        };
        let step = |id: crate::graph::NodeId| steps.step_of.get(id.index()).copied().flatten();
        let mut live = 0i64;
        for (index, buffer) in buffers.buffers.iter().enumerate() {
            let by = buffer.by.and_then(step);
            match by {
                Some(by) => this.alloc[by as usize] += buffer.alloc,
                None => live += buffer.alloc,
            }
            let mut users: Vec<u32> = buffer.users.iter().filter_map(|&user| step(user)).collect();
            users.retain(|&user| Some(user) != by);
            users.sort_unstable();
            users.dedup();
            users.iter().for_each(|&user| this.uses[user as usize].push(index as u32));
            let last =
                users.into_iter().max_by_key(|&user| place[user as usize]).or(by).or(order.first().copied());
            let last = last.filter(|_| !buffer.stays);
            last.into_iter().for_each(|last| this.free[last as usize] += buffer.free);
            this.bytes.push(buffer.free);
            this.last.push(last);
        }
        this.base = live;
        for &step in order {
            live += this.alloc[step as usize];
            this.post[step as usize] = live;
            this.base = this.base.max(live);
            live -= this.free[step as usize];
        }
        this
    }

    /// The peak when the list was taken up.
    pub fn base(&self) -> i64 {
        self.base
    }

    /// The peak now, over all steps.
    pub fn peak(&self) -> i64 {
        self.post.iter().copied().max().unwrap_or(0).max(self.before_all())
    }

    fn before_all(&self) -> i64 {
        if self.post.is_empty() { self.base } else { i64::MIN }
    }

    /// Live bytes after the allocations of each step.
    pub fn post_allocs(&self) -> &[i64] {
        &self.post
    }

    fn delta(&self, step: u32) -> i64 {
        self.alloc[step as usize] - self.free[step as usize]
    }

    /// What becomes of memory if the step before a group goes behind it.
    pub fn raise(
        &self,
        list: &List,
        head: u32,
        tail: u32,
        candidate: u32,
        in_group: &dyn Fn(u32) -> bool,
    ) -> Plan {
        let mut plan = Plan::default();
        for &buffer in &self.uses[candidate as usize] {
            if let Some(last) = self.last[buffer as usize].filter(|&last| in_group(last)) {
                plan.freed.push((buffer, last, candidate));
            }
        }
        let mut shift = -self.delta(candidate);
        let mut after_tail = self.post[tail as usize] - self.free[tail as usize];
        for step in list.from(head) {
            plan.post.push((step, self.post[step as usize] + shift));
            shift += plan
                .freed
                .iter()
                .filter(|freed| freed.1 == step)
                .map(|freed| self.bytes[freed.0 as usize])
                .sum::<i64>();
            if step == tail {
                break;
            }
        }
        after_tail += shift;
        plan.post.push((candidate, after_tail + self.alloc[candidate as usize]));
        plan.potential = plan.post.iter().map(|post| post.1).max().unwrap_or(0);
        plan
    }

    /// What becomes of memory if the step after a group goes in front of it.
    pub fn sink(&self, list: &List, head: u32, tail: u32, candidate: u32) -> Plan {
        let mut plan = Plan::default();
        let mut freed: Vec<(u32, Option<u32>)> = self.uses[candidate as usize]
            .iter()
            .filter(|&&buffer| self.last[buffer as usize] == Some(candidate))
            .map(|&buffer| (buffer, None))
            .collect();
        let group = || {
            let mut done = false;
            list.from(head).take_while(move |&step| !std::mem::replace(&mut done, step == tail))
        };
        if !freed.is_empty() {
            for step in group() {
                for entry in &mut freed {
                    if self.uses[step as usize].binary_search(&entry.0).is_ok() {
                        entry.1 = Some(step);
                    }
                }
            }
        }
        plan.freed.extend(freed.iter().filter_map(|&(buffer, last)| Some((buffer, candidate, last?))));
        let moved: i64 = plan.freed.iter().map(|freed| self.bytes[freed.0 as usize]).sum();
        let before = self.post[head as usize] - self.alloc[head as usize];
        plan.post.push((candidate, before + self.alloc[candidate as usize]));
        let mut shift = self.delta(candidate) + moved;
        for step in group() {
            plan.post.push((step, self.post[step as usize] + shift));
            shift -= plan
                .freed
                .iter()
                .filter(|freed| freed.2 == step)
                .map(|freed| self.bytes[freed.0 as usize])
                .sum::<i64>();
        }
        plan.potential = plan.post.iter().map(|post| post.1).max().unwrap_or(0);
        plan
    }

    /// The swap was made.
    pub fn apply(&mut self, plan: &Plan) {
        for &(step, post) in &plan.post {
            self.post[step as usize] = post;
        }
        for &(buffer, from, to) in &plan.freed {
            let bytes = self.bytes[buffer as usize];
            self.free[from as usize] -= bytes;
            self.free[to as usize] += bytes;
            self.last[buffer as usize] = Some(to);
        }
    }
}

impl Tracker {
    /// The first step at which two trackers of one order differ.
    pub fn difference(&self, other: &Tracker) -> Option<u32> {
        (0..self.post.len())
            .find(|&i| {
                self.post[i] != other.post[i]
                    || self.free[i] != other.free[i]
                    || self.alloc[i] != other.alloc[i]
            })
            .map(|i| i as u32)
    }
}
