//! Which node after is which node before, where names do not say.
//!
//! # The idea
//!
//! Rules know nodes by their names, since most passes keep them. They need not: inputs are bound by position, and a
//! node is what it computes. So before anything is judged, names are held against structure. Where they fit, nothing
//! happens. Where they do not, nodes are matched anew, and what is judged is the graph after *with the names of
//! before*:
//!
//! - *bottom-up* from the inputs: the same operator with the same attributes on matched arguments is the same node;
//! - *top-down* from the results: what a matched node takes in the place where its twin takes it, and what is the same
//!   operator, is the same node too, whatever its own arguments have become;
//! - nodes that nobody reads, such as writes, by their first matched argument;
//! - calls that take what they took in another order;
//! - what is left between two ends that are both new, such as gathered weights and reduced gradients, by those arguments
//!   that are matched, where the record of the result is the same;
//! - calls of which nothing is known, in list order.
//!
//! Between equal calls what they find in memory decides, then how they are used, then names, then order. Of two accounts
//! of a pass, by names and by structure, the one is taken by which the pass changed less; names win ties. A few passes
//! through both lists, each linear.
//!
//! A pass is right if there is any account by which it is: names are its to choose, and equal calls may stand for one
//! another. So where the likeliest account convicts, others are asked, by structure alone (see [`Account`]).
//!
//! # What it does not do
//!
//! It finds no best matching. It does not look at values: of a pass that is right, whatever it is taken to have changed
//! is proved equal.

use super::AnalyzedGraph;
use super::correspondence::Calls;
use super::equal::{Uses, first_of_equal, kind_of, last_writers, uses};
use crate::graph::{Dtype, Graph, NodeId, Op, TargetId};
use crate::ops::{Kind, by_target};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};

/// Rounds of matching: each finds what the last one made known.
const ROUNDS: usize = 3;

/// Equal calls that are looked through for one whose name is not spoken for.
const MOST_EQUAL: usize = 32;

/// How it is told which node is which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Account {
    /// By names or by structure, whichever has the pass change less.
    Likeliest,
    /// By structure alone. Of equal calls the one that is used alike.
    Use,
    /// By structure alone. Of equal calls the first.
    Order,
    /// As by use, and equal calls are one: a pass may compute twice what was computed once, or once what was computed
    /// twice.
    Once,
}

impl Account {
    /// Those that are asked where the likeliest one convicts.
    pub(crate) const OTHERS: [Account; 3] = [Account::Use, Account::Order, Account::Once];
}

/// The graph after with its nodes named as in the graph before; `None` where its names fit as they are.
pub(crate) fn named_as(before: &Graph, after: &Graph, account: Account) -> Option<Graph> {
    let inputs = |graph: &Graph| -> Vec<NodeId> {
        graph.ids().filter(|&id| graph.node(id).op == Op::Placeholder).collect()
    };
    let (old, new) = (inputs(before), inputs(after));
    let bound = if old.len() == new.len() { old.into_iter().zip(new).collect() } else { Vec::new() };
    Both::new(before, after, Whole::Yes, bound, Vec::new(), account).renamed()
}

/// The same for a part of a graph. `bound` says which node of the whole is handed to which input, `returned` which node
/// of the whole is returned where the part returns one.
pub(super) fn part_named_as(
    whole: &Graph,
    part: &Graph,
    bound: Vec<(NodeId, NodeId)>,
    returned: Vec<(NodeId, NodeId)>,
    account: Account,
) -> Option<Graph> {
    Both::new(whole, part, Whole::No, bound, returned, account).renamed()
}

/// `graph` with the names that the nodes of `original` have in `renamed`.
pub(crate) fn named_through(graph: &Graph, original: &Graph, renamed: &Graph) -> Graph {
    let name = |id: NodeId| {
        let own = graph.name(id);
        original.find(own).map_or(own, |twin| renamed.name(twin)).to_string()
    };
    graph.with_names(name)
}

/// Whether the graph after stands for all of the graph before, or for a part of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    Yes,
    No,
}

/// For each node what it refers to, with repetition, in order.
struct References {
    start: Vec<u32>,
    all: Vec<NodeId>,
}

impl References {
    fn new(graph: &Graph) -> References {
        let (mut start, mut all) = (vec![0], Vec::new());
        for id in graph.ids() {
            // A reference past the end of the list leads to nothing that could be matched.
            graph.for_each_input(id, &mut |input| all.push(input));
            start.push(all.len() as u32);
        }
        References { start, all }
    }

    /// Has every reference lead to the node that stands for its own.
    fn take(&mut self, stands_for: &[NodeId]) {
        for reference in &mut self.all {
            *reference = stands_for.get(reference.index()).copied().unwrap_or(*reference);
        }
    }

    fn of(&self, id: NodeId) -> &[NodeId] {
        &self.all[self.start[id.index()] as usize..self.start[id.index() + 1] as usize]
    }
}

/// What is recorded of a tensor, strides aside.
fn record(graph: &Graph, id: NodeId) -> Option<(Dtype, Option<Vec<i64>>)> {
    graph.tensor_of(id).map(|tensor| (tensor.dtype, graph.sizes(tensor.shape)))
}

/// Which node is which.
struct Twins {
    after_of: Vec<Option<NodeId>>,
    before_of: Vec<Option<NodeId>>,
}

impl Twins {
    fn pair(&mut self, old: NodeId, new: NodeId) -> bool {
        let is_free = self.after_of(old).is_none() && self.before_of(new).is_none();
        if is_free && old.index() < self.after_of.len() && new.index() < self.before_of.len() {
            self.after_of[old.index()] = Some(new);
            self.before_of[new.index()] = Some(old);
        }
        is_free
    }

    /// Parts a node after from its twin.
    fn part(&mut self, new: NodeId) {
        if let Some(old) = self.before_of[new.index()].take() {
            self.after_of[old.index()] = None;
        }
    }

    fn after_of(&self, old: NodeId) -> Option<NodeId> {
        self.after_of.get(old.index()).copied().flatten()
    }

    fn before_of(&self, new: NodeId) -> Option<NodeId> {
        self.before_of.get(new.index()).copied().flatten()
    }
}

/// What a pass changed, by one account of which node is which.
#[derive(Clone, Copy, Default)]
struct Changes {
    /// Nodes that are gone or new, arguments that are others, inputs in other places.
    count: usize,
    /// Those among them that another account might explain.
    doubtful: usize,
}

struct Both<'g> {
    before: &'g Graph,
    after: &'g Graph,
    whole: Whole,
    account: Account,
    bound: Vec<(NodeId, NodeId)>,
    /// What a part returns in place of what.
    returned: Vec<(NodeId, NodeId)>,
    old: References,
    new: References,
    calls: Calls<'g>,
    /// For each node after the one that references lead to in its place.
    first_waits: Vec<NodeId>,
    /// The target before of each target after.
    targets: Vec<Option<TargetId>>,
    /// Who writes what, in both graphs: asked where calls are equal.
    analyzed: OnceCell<(AnalyzedGraph<'g>, AnalyzedGraph<'g>)>,
    uses: OnceCell<(Vec<Uses>, Vec<Uses>)>,
}

impl<'g> Both<'g> {
    fn new(
        before: &'g Graph,
        after: &'g Graph,
        whole: Whole,
        bound: Vec<(NodeId, NodeId)>,
        returned: Vec<(NodeId, NodeId)>,
        account: Account,
    ) -> Both<'g> {
        let targets = after.targets().map(|text| before.find_target(text)).collect();
        let (old, new) = (References::new(before), References::new(after));
        let calls = Calls::new(before, after);
        let mut both = Both {
            before,
            after,
            whole,
            account,
            bound,
            returned,
            old,
            new,
            calls,
            first_waits: Vec::new(),
            targets,
            analyzed: OnceCell::new(),
            uses: OnceCell::new(),
        };
        // A wait for what has been waited for does nothing.
        let first_waits = |side: &AnalyzedGraph| -> Vec<NodeId> {
            side.graph.ids().map(|id| side.collectives.first_wait(id)).collect()
        };
        let (of_before, of_after) = both.analyzed();
        let (of_before, of_after) = (first_waits(of_before), first_waits(of_after));
        both.old.take(&of_before);
        both.new.take(&of_after);
        both.first_waits = of_after;
        if account == Account::Once {
            both.take_equal_calls_for_one();
        }
        both
    }

    /// Has whoever takes a pure call that is the same as an earlier one take that one, before and after.
    fn take_equal_calls_for_one(&mut self) {
        let (before, after) = self.analyzed();
        let first_before = first_of_equal(before, &|id| self.old.of(id), &|id| self.calls.old(id));
        let first_after = first_of_equal(after, &|id| self.new.of(id), &|id| self.calls.new_one(id));
        self.old.take(&first_before);
        self.new.take(&first_after);
    }

    fn renamed(&self) -> Option<Graph> {
        // Two nodes with one name are a fault, which other names would hide.
        if self.after.ids().any(|id| self.after.find(self.after.name(id)) != Some(id)) {
            return None;
        }
        if self.account != Account::Likeliest {
            return Some(self.with_names_of_before(&self.by_structure()));
        }
        // The caller hands over inputs by position, whatever they are called.
        let is_rebound = self.whole == Whole::Yes
            && self.bound.iter().any(|&(old, new)| self.before.name(old) != self.after.name(new));
        let by_name = if is_rebound { self.by_name_and_place() } else { self.by_name() };
        let told = self.changes(&by_name);
        if told.count == 0 && !is_rebound {
            return None;
        }
        let found = self.better(&by_name, told);
        let is_other = is_rebound || found.is_some();
        let mut twins = found.unwrap_or(by_name);
        let reused = self.reused(&twins);
        for &new in &reused {
            twins.part(new);
        }
        (is_other || !reused.is_empty()).then(|| self.with_names_of_before(&twins))
    }

    /// Nodes that have taken the name of one that is gone: calls of other arguments, which nobody reads where the node
    /// of that name was read.
    fn reused(&self, twins: &Twins) -> Vec<NodeId> {
        let is_call = |new: NodeId| self.after.node(new).op == Op::Call;
        let reads = |new: &NodeId| self.new.of(*new).iter().any(|argument| argument >= new);
        if self.after.ids().any(|new| reads(&new)) {
            return Vec::new();
        }
        let mut is_kept = vec![false; self.after.len()];
        for new in self.after.ids() {
            let Some(old) = twins.before_of(new) else { continue };
            // What is gone may be replaced by what is new and looks like it, but not the launch that is waited for.
            let is_wait = by_target(self.after.target(new)).is_some_and(|info| info.kind == Kind::Wait);
            let replaces =
                |a: NodeId, b| !is_wait && a.index() < self.before.len() && self.has_same_record(a, b);
            let mut arguments = self.old.of(old).iter().zip(self.new.of(new));
            let has_arguments = arguments.all(|(&a, &b)| match (twins.after_of(a), is_kept[b.index()]) {
                (Some(twin), true) => self.is_taken_for(twin, b),
                (Some(twin), false) => !is_kept[twin.index()] && replaces(a, b),
                (None, _) => replaces(a, b),
            });
            is_kept[new.index()] = !is_call(new)
                || self.is_same_call(old, new)
                    && (has_arguments || self.are_exchanged(twins, &is_kept, old, new));
        }
        let mut is_read_before = vec![false; self.before.len()];
        self.old
            .all
            .iter()
            .filter(|id| id.index() < self.before.len())
            .for_each(|id| is_read_before[id.index()] = true);
        let mut is_read_after = vec![false; self.after.len()];
        self.new.all.iter().for_each(|id| is_read_after[id.index()] = true);
        for new in self.after.ids().rev() {
            let Some(old) = twins.before_of(new) else { continue };
            is_kept[new.index()] |= !is_read_before[old.index()] || !is_read_after[new.index()];
            if !is_kept[new.index()] {
                continue;
            }
            let (p, q) = (self.old.of(old), self.new.of(new));
            let in_places = p.len() == q.len() && (self.whole == Whole::Yes || is_call(new));
            for (place, &b) in q.iter().enumerate() {
                let takes_it = || twins.after_of(p[place]).is_some_and(|twin| self.is_taken_for(twin, b));
                is_kept[b.index()] |= !in_places || takes_it();
            }
        }
        self.after.ids().filter(|&new| twins.before_of(new).is_some() && !is_kept[new.index()]).collect()
    }

    /// Whether a node after is what a reference leads to, or a later wait for what that gives.
    fn is_taken_for(&self, twin: NodeId, reference: NodeId) -> bool {
        twin == reference || self.first_waits[twin.index()] == reference
    }

    /// Whether a call takes what it took, all of it kept, in another order.
    fn are_exchanged(&self, twins: &Twins, is_kept: &[bool], old: NodeId, new: NodeId) -> bool {
        let before: Option<Vec<NodeId>> = self.old.of(old).iter().map(|&a| twins.after_of(a)).collect();
        let (mut before, mut after) = (before.unwrap_or_default(), self.new.of(new).to_vec());
        before.sort_unstable();
        after.sort_unstable();
        before == after && after.iter().all(|argument| is_kept[argument.index()])
    }

    /// Another account than by name, where it is better.
    fn better(&self, by_name: &Twins, told: Changes) -> Option<Twins> {
        // Of a pass over a whole graph much may be new; the nodes of a part are those of the whole, but for those that
        // are merged with equal ones, whose readers then read another node.
        let is_call = |&new: &NodeId| self.after.node(new).op == Op::Call;
        let calls: Vec<NodeId> = self.after.ids().filter(is_call).collect();
        let known = calls.iter().filter(|&&new| by_name.before_of(new).is_some()).count();
        let fits = match self.whole {
            Whole::Yes => told.doubtful == 0 && 2 * known >= calls.len(),
            Whole::No => known == calls.len() && 2 * told.count <= calls.len(),
        };
        if fits && self.whole == Whole::Yes {
            return None;
        }
        // Names may fit but for those of the inputs.
        let by_place = self.by_name_and_place();
        let placed = self.changes(&by_place);
        if fits {
            return (placed.count < told.count).then_some(by_place);
        }
        let mut by_structure = self.by_structure();
        self.prefer_names(&mut by_structure, &by_place);
        let found = self.changes(&by_structure);
        // Of equal calls either may be the one that is left.
        let contradicts = |(a, b): (&Option<NodeId>, &Option<NodeId>)| match (*a, *b) {
            (Some(a), Some(b)) => a != b && !self.are_equal_before(a, b),
            _ => false,
        };
        let pairs = || by_place.before_of.iter().zip(&by_structure.before_of);
        let finds_more = || pairs().any(|(name, structure)| name.is_none() && structure.is_some());
        // What is new by structure is new by every account.
        let new = 2 * by_structure.before_of.iter().filter(|twin| twin.is_none()).count();
        let least = placed.count.min(told.count);
        let is_better = found.count < least
            && (pairs().any(contradicts)
                || (finds_more() && 2 * found.count.saturating_sub(new) <= least.saturating_sub(new)));
        match is_better {
            true => Some(by_structure),
            false => (placed.count < told.count).then_some(by_place),
        }
    }

    /// Of equal calls the one of the same name, if that is not spoken for: structure says no more of them than names
    /// do.
    fn prefer_names(&self, twins: &mut Twins, named: &Twins) {
        for new in self.after.ids() {
            let (Some(name), Some(found)) = (named.before_of(new), twins.before_of(new)) else { continue };
            let is_free = name != found && twins.after_of(name).is_none();
            if is_free && self.are_equal_before(name, found) {
                twins.after_of[found.index()] = None;
                twins.after_of[name.index()] = Some(new);
                twins.before_of[new.index()] = Some(name);
            }
        }
    }

    /// Whether two nodes before are the same call of the same values, found in memory of the same state.
    fn are_equal_before(&self, a: NodeId, b: NodeId) -> bool {
        let (one, other) = (self.before.node(a), self.before.node(b));
        one.op == Op::Call
            && (one.op, one.target) == (other.op, other.target)
            && self.calls.old(a) == self.calls.old(b)
            && last_writers(&self.analyzed().0, a, &Some) == last_writers(&self.analyzed().0, b, &Some)
    }

    /// Inputs by position, everything else by name.
    fn by_name_and_place(&self) -> Twins {
        let mut twins = self.nothing_known();
        for &(old, new) in &self.bound {
            twins.pair(old, new);
        }
        self.pair_names(&mut twins);
        twins
    }

    fn pair_names(&self, twins: &mut Twins) {
        for old in self.before.ids() {
            if let Some(new) = self.after.find(self.before.name(old)).filter(|&new| self.may_be(old, new)) {
                twins.pair(old, new);
            }
        }
    }

    fn nothing_known(&self) -> Twins {
        Twins { after_of: vec![None; self.before.len()], before_of: vec![None; self.after.len()] }
    }

    /// Nodes with one name that are the same operator.
    fn by_name(&self) -> Twins {
        let mut twins = self.nothing_known();
        self.pair_names(&mut twins);
        twins
    }

    /// Whether two nodes can be the same by what they are, arguments aside. An input of a part may be any value.
    fn may_be(&self, old: NodeId, new: NodeId) -> bool {
        let (a, b) = (self.before.node(old), self.after.node(new));
        match b.op {
            Op::Placeholder if self.whole == Whole::No => a.op != Op::Output,
            Op::Call => a.op == Op::Call && self.targets[b.target.0 as usize] == Some(a.target),
            op => a.op == op,
        }
    }

    /// Whether two nodes are the same operator with the same attributes, and as many arguments.
    fn is_same_call(&self, old: NodeId, new: NodeId) -> bool {
        self.may_be(old, new)
            && self.before.node(old).op == self.after.node(new).op
            && self.old.of(old).len() == self.new.of(new).len()
            && self.calls.same_constants(old, new)
            && (self.after.node(new).op != Op::GetAttr || self.before.target(old) == self.after.target(new))
    }

    /// Whether two nodes are the same operator on the same arguments.
    fn is_equal(&self, twins: &Twins, old: NodeId, new: NodeId) -> bool {
        let mut arguments = self.old.of(old).iter().zip(self.new.of(new));
        self.is_same_call(old, new) && arguments.all(|(&a, &b)| twins.after_of(a) == Some(b))
    }

    /// The nodes whose writes a node after finds in what it reads, as their twins before; what is new is passed over.
    fn found_by(&self, twins: &Twins, new: NodeId) -> BTreeSet<NodeId> {
        last_writers(&self.analyzed().1, new, &|id| twins.before_of(id))
    }

    /// The same of a node before; what is gone is passed over.
    fn found_before(&self, twins: &Twins, old: NodeId) -> BTreeSet<NodeId> {
        last_writers(&self.analyzed().0, old, &|id| twins.after_of(id).map(|_| id))
    }

    /// Whether the same is recorded of two nodes, strides aside.
    fn is_recorded_alike(&self, old: NodeId, new: NodeId) -> bool {
        record(self.before, old) == record(self.after, new)
    }

    /// How much alike two nodes are used: chains of users that both have, less those that one of them has.
    fn used_alike(&self, old: NodeId, new: NodeId) -> i64 {
        let (before, after) = self.uses.get_or_init(|| {
            let kinds_after = |id: NodeId| self.targets[self.after.node(id).target.0 as usize];
            let before = uses(&self.analyzed().0, &|id| Some(self.before.node(id).target));
            (before, uses(&self.analyzed().1, &kinds_after))
        });
        let (before, after) = (&before[old.index()], &after[new.index()]);
        let both = before.iter().filter(|chain| after.contains(chain)).count() as i64;
        3 * both - (before.len() + after.len()) as i64
    }

    fn analyzed(&self) -> &(AnalyzedGraph<'g>, AnalyzedGraph<'g>) {
        self.analyzed.get_or_init(|| (AnalyzedGraph::new(self.before), AnalyzedGraph::new(self.after)))
    }

    fn changes(&self, twins: &Twins) -> Changes {
        let mut changes = Changes::default();
        let mut add = |count: usize, is_doubtful: bool| {
            changes.count += count;
            changes.doubtful += usize::from(is_doubtful);
        };
        for &(old, new) in &self.bound {
            if twins.before_of(new) != Some(old) {
                add(1, true);
            }
        }
        for new in self.after.ids() {
            let Some(old) = twins.before_of(new) else {
                // What is gone is as many as what is new, but for a number that is the same by every account.
                add(2, false);
                continue;
            };
            let (a, b) = (self.before.node(old), self.after.node(new));
            let (p, q) = (self.old.of(old), self.new.of(new));
            let is_interface = b.op == Op::Placeholder || (b.op == Op::Output && self.whole == Whole::No);
            if is_interface || a.op != b.op {
                continue;
            }
            if p.len() != q.len() || !self.calls.same_constants(old, new) {
                add(1, true);
                continue;
            }
            for (&a, &b) in p.iter().zip(q).filter(|(a, b)| twins.after_of(**a) != Some(**b)) {
                let is_known = twins.after_of(a).is_some() || twins.before_of(b).is_some();
                let is_inside = a.index() < self.before.len() && b.index() < self.after.len();
                add(1, is_known || (is_inside && self.is_same_call(a, b)));
            }
        }
        changes
    }

    fn by_structure(&self) -> Twins {
        let mut twins = self.nothing_known();
        for &(old, new) in &self.bound {
            twins.pair(old, new);
        }
        self.pair_rest_of_interface(&mut twins);
        // Calls before by what they are, and those after.
        let of_before: Vec<u64> =
            self.before.ids().map(|id| kind_of(self.before.node(id).target, &self.calls.old(id))).collect();
        let of_after: Vec<Option<u64>> = self
            .after
            .ids()
            .map(|id| {
                let target = match self.after.node(id).op {
                    Op::Call => self.targets[self.after.node(id).target.0 as usize]?,
                    Op::GetAttr => self.before.find_target(self.after.target(id))?,
                    Op::Placeholder | Op::Output => return None,
                };
                Some(kind_of(target, &self.calls.new_one(id)))
            })
            .collect();
        let mut equal: FxHashMap<u64, VecDeque<NodeId>> = FxHashMap::default();
        let is_made = |id: &NodeId| matches!(self.before.node(*id).op, Op::Call | Op::GetAttr);
        for id in self.before.ids().filter(is_made) {
            let key = key_of(of_before[id.index()], self.old.of(id).iter().copied());
            equal.entry(key).or_default().push_back(id);
        }
        for _ in 0..ROUNDS {
            let known = twins.before_of.iter().flatten().count();
            self.bottom_up(&mut twins, &of_after, &mut equal, false);
            self.top_down(&mut twins);
            self.unread(&mut twins, &of_before, &of_after);
            self.bottom_up(&mut twins, &of_after, &mut equal, true);
            self.top_down(&mut twins);
            self.by_exchanged_arguments(&mut twins, &of_before, &of_after);
            self.by_some_arguments(&mut twins, &of_before, &of_after);
            if twins.before_of.iter().flatten().count() == known {
                break;
            }
        }
        self.rest_in_order(&mut twins, &of_before, &of_after);
        self.bottom_up(&mut twins, &of_after, &mut equal, true);
        if self.goes_by_names() {
            self.rest_by_name(&mut twins);
        }
        twins
    }

    fn goes_by_names(&self) -> bool {
        self.account == Account::Likeliest
    }

    /// The node before of the same name, where names count.
    fn namesake(&self, new: NodeId) -> Option<NodeId> {
        self.before.find(self.after.name(new)).filter(|_| self.goes_by_names())
    }

    /// Calls of which nothing else is known, such as draws, launches and writes that nobody reads: in list order, where
    /// as many that look alike are left on both sides.
    fn rest_in_order(&self, twins: &mut Twins, of_before: &[u64], of_after: &[Option<u64>]) {
        // What a result is recorded as, and of a launch what it packs: the result of a bucket of one tensor and of others
        // without elements looks like that of the launch of the first. A wait is known by what it waits for.
        let looks = |graph: &'g Graph, references: &References, mut id: NodeId| {
            let kind = |id: NodeId| by_target(graph.target(id)).map(|info| info.kind);
            if graph.node(id).op != Op::Call || kind(id) == Some(Kind::Wait) {
                return None;
            }
            let (result, is_launch) = (record(graph, id), matches!(kind(id), Some(Kind::Collective(_))));
            while is_launch
                && let [only] = references.of(id)
                && *only < id
                && kind(*only) != Some(Kind::Wait)
                && !references.of(*only).is_empty()
            {
                id = *only;
            }
            let parts = references.of(id).iter().filter(|part| is_launch && part.index() < graph.len());
            Some((result, parts.map(|&part| record(graph, part)).collect::<Vec<_>>()))
        };
        let mut left: BTreeMap<_, (Vec<NodeId>, Vec<NodeId>)> = BTreeMap::new();
        for old in self.before.ids().filter(|&id| twins.after_of(id).is_none()) {
            if let Some(look) = looks(self.before, &self.old, old) {
                left.entry((of_before[old.index()], look)).or_default().0.push(old);
            }
        }
        for new in self.after.ids().filter(|&id| twins.before_of(id).is_none()) {
            if let Some(key) = of_after[new.index()].zip(looks(self.after, &self.new, new)) {
                left.entry(key).or_default().1.push(new);
            }
        }
        let as_many = left.into_values().filter(|(olds, news)| olds.len() == news.len());
        let mut pairs: Vec<(NodeId, NodeId)> =
            as_many.flat_map(|(olds, news)| news.into_iter().zip(olds)).collect();
        pairs.sort_unstable();
        for (new, old) in pairs {
            if self.fits(twins, old, new) {
                twins.pair(old, new);
            }
        }
    }

    /// Whether two nodes are the same operator, and no argument that is known says otherwise.
    fn fits(&self, twins: &Twins, old: NodeId, new: NodeId) -> bool {
        let mut arguments = self.old.of(old).iter().zip(self.new.of(new));
        twins.after_of(old).is_none()
            && self.is_same_call(old, new)
            && arguments.all(|(&a, &b)| {
                twins.after_of(a).is_none_or(|twin| twin == b)
                    && twins.before_of(b).is_none_or(|twin| twin == a)
            })
    }

    /// Inputs that are bound by nothing, by name; attributes by what they name, where it is named once; the outputs.
    fn pair_rest_of_interface(&self, twins: &mut Twins) {
        let mut attributes: FxHashMap<&str, Option<NodeId>> = FxHashMap::default();
        for old in self.before.ids() {
            match self.before.node(old).op {
                Op::GetAttr => {
                    let named = attributes.entry(self.before.target(old));
                    named.and_modify(|named| *named = None).or_insert(Some(old));
                }
                Op::Placeholder if self.bound.is_empty() => {
                    let named = self.after.find(self.before.name(old));
                    if let Some(new) = named.filter(|&new| self.may_be(old, new)) {
                        twins.pair(old, new);
                    }
                }
                _ => {}
            }
        }
        for new in self.after.ids().filter(|&id| self.after.node(id).op == Op::GetAttr) {
            if let Some(&Some(old)) = attributes.get(self.after.target(new)) {
                twins.pair(old, new);
            }
        }
        if let (Some(old), Some(new)) = (self.before.output(), self.after.output()) {
            twins.pair(old, new);
        }
    }

    /// From arguments to those who take them. Where several calls before are equal, only if `decide`.
    fn bottom_up(
        &self,
        twins: &mut Twins,
        of_after: &[Option<u64>],
        equal: &mut FxHashMap<u64, VecDeque<NodeId>>,
        decide: bool,
    ) {
        equal.values_mut().for_each(|class| class.retain(|&old| twins.after_of(old).is_none()));
        for new in self.after.ids() {
            let Some(kind) = of_after[new.index()].filter(|_| twins.before_of(new).is_none()) else {
                continue;
            };
            let arguments: Option<Vec<NodeId>> =
                self.new.of(new).iter().map(|&argument| twins.before_of(argument)).collect();
            let Some(arguments) = arguments else { continue };
            let Some(class) = equal.get_mut(&key_of(kind, arguments.into_iter())) else { continue };
            if class.len() > 1 && !decide {
                continue;
            }
            let is_open = |old: &NodeId| twins.after_of(*old).is_none() && self.is_equal(twins, *old, new);
            let named = self.namesake(new).filter(is_open);
            // Another node after may have the better right to it, by name.
            let is_spoken_for = |old: NodeId| {
                let namesake = self.after.find(self.before.name(old)).filter(|_| self.goes_by_names());
                namesake.is_some_and(|other| {
                    other != new && twins.before_of(other).is_none() && self.is_equal(twins, old, other)
                })
            };
            while class.front().is_some_and(|&old| twins.after_of(old).is_some()) {
                class.pop_front();
            }
            let near = || class.iter().take(MOST_EQUAL).copied();
            let first = || near().find(|old| is_open(old) && !is_spoken_for(*old));
            // Of equal calls the one that finds in memory what this one finds; among those the one whose value is used
            // alike.
            let by_use = (class.len() > 1).then(|| {
                let state = self.found_by(twins, new);
                let candidates = named.into_iter().chain(near().filter(|old| !is_spoken_for(*old)));
                let finds_it = |old: &NodeId| self.found_before(twins, *old) == state;
                let candidates: Vec<NodeId> = candidates.filter(is_open).filter(finds_it).collect();
                // Of several that are used alike, the first.
                let alike = |&old: &NodeId| {
                    let used_alike = match self.account {
                        Account::Order => 0,
                        _ => self.used_alike(old, new),
                    };
                    (self.is_recorded_alike(old, new), used_alike)
                };
                candidates.into_iter().rev().max_by_key(alike)
            });
            // Where there are too many to look at, names decide nothing.
            let any = || class.front().copied().filter(|old| class.len() > MOST_EQUAL && is_open(old));
            if let Some(old) = by_use.flatten().or(named).or_else(first).or_else(any) {
                twins.pair(old, new);
            }
        }
    }

    /// From those who take a value to the value.
    fn top_down(&self, twins: &mut Twins) {
        let mut votes: Vec<Vec<NodeId>> = vec![Vec::new(); self.after.len()];
        for &(old, new) in self.returned.iter().filter(|(_, new)| new.index() < self.after.len()) {
            votes[new.index()].push(old);
        }
        for new in self.after.ids().rev() {
            if twins.before_of(new).is_none() {
                let mut named = std::mem::take(&mut votes[new.index()]);
                named.retain(|&old| {
                    old.index() < self.before.len()
                        && twins.after_of(old).is_none()
                        && matches!(self.before.node(old).op, Op::Call | Op::GetAttr)
                        && self.is_same_call(old, new)
                });
                named.sort_unstable();
                let own_name = |old: NodeId| self.namesake(new) == Some(old);
                let best = named
                    .chunk_by(|a, b| a == b)
                    .max_by_key(|chunk| (chunk.len(), own_name(chunk[0]), std::cmp::Reverse(chunk[0])));
                if let Some(chunk) = best {
                    twins.pair(chunk[0], new);
                }
            }
            let Some(old) = twins.before_of(new) else { continue };
            // A part returns what it returns in other places.
            if self.whole == Whole::No && self.after.node(new).op == Op::Output {
                continue;
            }
            for (&a, &b) in self.old.of(old).iter().zip(self.new.of(new)) {
                let is_open = twins.after_of(a).is_none() && twins.before_of(b).is_none();
                if is_open && b.index() < votes.len() {
                    votes[b.index()].push(a);
                }
            }
        }
    }

    /// Calls that take what they took, in another order.
    fn by_exchanged_arguments(&self, twins: &mut Twins, of_before: &[u64], of_after: &[Option<u64>]) {
        let key = |kind: u64, mut arguments: Vec<NodeId>| {
            arguments.sort_unstable();
            (arguments.len() > 1).then(|| key_of(kind, arguments.into_iter()))
        };
        let mut open: FxHashMap<u64, VecDeque<NodeId>> = FxHashMap::default();
        for old in self.before.ids().filter(|&id| self.before.node(id).op == Op::Call) {
            let key = key(of_before[old.index()], self.old.of(old).to_vec());
            if let Some(key) = key.filter(|_| twins.after_of(old).is_none()) {
                open.entry(key).or_default().push_back(old);
            }
        }
        for new in self.after.ids() {
            let Some(kind) = of_after[new.index()].filter(|_| twins.before_of(new).is_none()) else {
                continue;
            };
            let arguments: Option<Vec<NodeId>> =
                self.new.of(new).iter().map(|&argument| twins.before_of(argument)).collect();
            let class =
                arguments.and_then(|arguments| key(kind, arguments)).and_then(|key| open.get_mut(&key));
            let Some(class) = class else { continue };
            if class.front().is_some_and(|&old| self.is_same_call(old, new))
                && let Some(old) = class.pop_front()
            {
                twins.pair(old, new);
            }
        }
    }

    /// Calls of which some arguments are known and no known one contradicts, in list order, so that those behind them
    /// are known in turn. Among several the name decides, then order.
    fn by_some_arguments(&self, twins: &mut Twins, of_before: &[u64], of_after: &[Option<u64>]) {
        let key = |kind: u64, place: usize, argument: NodeId| {
            key_of(kind ^ place as u64, std::iter::once(argument))
        };
        let mut open: FxHashMap<u64, VecDeque<NodeId>> = FxHashMap::default();
        for old in self.before.ids().filter(|&id| self.before.node(id).op == Op::Call) {
            if twins.after_of(old).is_some() {
                continue;
            }
            for (place, &argument) in self.old.of(old).iter().enumerate() {
                open.entry(key(of_before[old.index()], place, argument)).or_default().push_back(old);
            }
        }
        for new in self.after.ids() {
            let Some(kind) = of_after[new.index()].filter(|_| twins.before_of(new).is_none()) else {
                continue;
            };
            let known = self.new.of(new).iter().enumerate();
            let first = known.into_iter().find_map(|(place, &b)| Some((place, twins.before_of(b)?)));
            let Some(class) = first.and_then(|(place, a)| open.get_mut(&key(kind, place, a))) else {
                continue;
            };
            while class.front().is_some_and(|&old| twins.after_of(old).is_some()) {
                class.pop_front();
            }
            let fits = |old: &NodeId| self.fits(twins, *old, new) && self.has_same_record(*old, new);
            let named = self.namesake(new).filter(fits);
            let first = || class.iter().take(MOST_EQUAL).copied().find(fits);
            if let Some(old) = named.or_else(first) {
                twins.pair(old, new);
            }
        }
    }

    /// Whether two results are recorded with the same sizes and dtype.
    fn has_same_record(&self, old: NodeId, new: NodeId) -> bool {
        match (self.before.tensor_of(old), self.after.tensor_of(new)) {
            (Some(a), Some(b)) => {
                a.dtype == b.dtype && self.before.sizes(a.shape) == self.after.sizes(b.shape)
            }
            (None, None) => true,
            _ => false,
        }
    }

    /// Nodes that nobody reads, by their first argument that is known.
    fn unread(&self, twins: &mut Twins, of_before: &[u64], of_after: &[Option<u64>]) {
        let is_read = |references: &References, nodes: usize| {
            let mut read = vec![false; nodes];
            references.all.iter().filter(|id| id.index() < nodes).for_each(|id| read[id.index()] = true);
            read
        };
        let (read_before, read_after) =
            (is_read(&self.old, self.before.len()), is_read(&self.new, self.after.len()));
        let key = |kind: u64, mut arguments: &mut dyn Iterator<Item = Option<NodeId>>| {
            let first = (&mut arguments).enumerate().find_map(|(place, known)| Some((place as u64, known?)));
            first.map(|(place, known)| key_of(kind ^ place, std::iter::once(known)))
        };
        let mut open: FxHashMap<u64, Vec<NodeId>> = FxHashMap::default();
        for old in self.before.ids().rev() {
            let is_open = self.before.node(old).op == Op::Call
                && !read_before[old.index()]
                && twins.after_of(old).is_none();
            let mut arguments = self.old.of(old).iter().map(|&a| twins.after_of(a).map(|_| a));
            if let Some(key) = is_open.then(|| key(of_before[old.index()], &mut arguments)).flatten() {
                open.entry(key).or_default().push(old);
            }
        }
        for new in self.after.ids() {
            let Some(kind) = of_after[new.index()] else { continue };
            if read_after[new.index()] || twins.before_of(new).is_some() {
                continue;
            }
            let mut arguments = self.new.of(new).iter().map(|&b| twins.before_of(b));
            let Some(class) = key(kind, &mut arguments).and_then(|key| open.get_mut(&key)) else { continue };
            let named = self.namesake(new);
            let Some(last) = class.len().checked_sub(1) else { continue };
            let near = || (0..class.len()).rev().take(MOST_EQUAL);
            // What is not known yet is at least the same operator.
            let looks_alike = |&place: &usize| {
                let mut arguments = self.old.of(class[place]).iter().zip(self.new.of(new));
                let is_alike = arguments.all(|(&a, &b)| match (twins.after_of(a), twins.before_of(b)) {
                    (None, None) => of_before.get(a.index()).copied() == of_after[b.index()],
                    (twin, _) => twin == Some(b),
                });
                is_alike && self.is_recorded_alike(class[place], new)
            };
            let named = near().find(|&place| Some(class[place]) == named);
            let place = named.or_else(|| near().find(looks_alike)).unwrap_or(last);
            if self.is_same_call(class[place], new) {
                twins.pair(class.remove(place), new);
            }
        }
    }

    /// What is left by name, where names say the same as structure for most.
    fn rest_by_name(&self, twins: &mut Twins) {
        let calls = self.after.ids().filter(|&id| self.after.node(id).op == Op::Call);
        let pairs = calls.filter_map(|new| Some((twins.before_of(new)?, new)));
        let (mut all, mut named) = (0usize, 0usize);
        for (old, new) in pairs {
            all += 1;
            named += usize::from(self.before.name(old) == self.after.name(new));
        }
        if 2 * named < all {
            return;
        }
        self.pair_names(twins);
    }

    /// The graph after with the names of before. New nodes keep theirs, unless somebody else has them now.
    fn with_names_of_before(&self, twins: &Twins) -> Graph {
        // A new node may have the name of one that is gone, where it cannot be taken for that.
        let is_free = |old: NodeId| {
            let new = self.after.find(self.before.name(old));
            twins.after_of(old).is_none() && new.is_none_or(|new| !self.may_be(old, new))
        };
        let named = self.before.ids().filter(|&old| !is_free(old));
        let mut taken: FxHashSet<String> = named.map(|id| self.before.name(id).to_string()).collect();
        let mut names: Vec<String> = Vec::with_capacity(self.after.len());
        for new in self.after.ids() {
            if let Some(old) = twins.before_of(new) {
                names.push(self.before.name(old).to_string());
                continue;
            }
            let own = self.after.name(new);
            let mut name = own.to_string();
            let mut number = 1;
            while !taken.insert(name.clone()) {
                name = format!("{own}_after_{number}");
                number += 1;
            }
            names.push(name);
        }
        let mut graph = self.after.with_names(|id| names[id.index()].clone());
        // The target of an input is its name, too.
        for new in self.after.ids().filter(|&id| self.after.node(id).op == Op::Placeholder) {
            let Some(old) = twins.before_of(new) else { continue };
            let target = match self.before.node(old).op {
                Op::Placeholder => self.before.target(old),
                _ => self.before.name(old),
            };
            let target = graph.intern_target(target);
            graph.node_mut(new).target = target;
        }
        graph
    }
}

/// A number for a call of some kind on these arguments, in the names of before.
fn key_of(kind: u64, arguments: impl Iterator<Item = NodeId>) -> u64 {
    let mut state = FxHasher::default();
    kind.hash(&mut state);
    arguments.for_each(|argument| argument.0.hash(&mut state));
    state.finish()
}
