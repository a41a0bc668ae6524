//! Finds in a case the features it has, and what there is to bucket. Linear in the size of the graph.

use super::features::{Feature, Features};
use super::pass::{Pass, Selection};
use super::traits::Traits;
use crate::analysis::collectives::bucket_bytes;
use crate::analysis::{CollectiveCall, Collectives, Edges, GroupName};
use crate::graph::{Dtype, DtypeClass, Graph, Group, NodeId, Op, Out, Tensor, Value};
use crate::ops::{Collective, Kind, Ops, Random, View};

/// What is in a case.
#[derive(Clone, Debug)]
pub struct Survey {
    /// What it has.
    pub features: Features,
    /// Collectives that a pass may bucket.
    pub candidates: usize,
    /// Runs of at least two candidates of one key, adjacent in wait order for their kind, of the kinds that the pass
    /// is to bucket (of all kinds, for a repair).
    pub eligible_buckets: usize,
    /// Whether the pass has something to do, and the graph something to execute.
    pub useful: bool,
}

/// A collective that a pass may bucket.
#[derive(Clone, Copy, Debug)]
struct Member<'a> {
    call: &'a CollectiveCall<'a>,
    wait: NodeId,
    dtype: Dtype,
    bytes: i64,
}

impl<'a> Member<'a> {
    fn key(&self) -> (GroupName<'a>, Option<&'a str>, Dtype) {
        (self.call.group, self.call.reduce_op, self.dtype)
    }
}

impl Survey {
    /// Looks through a graph and what its pass is asked.
    pub fn of(graph: &Graph, pass: &Pass) -> Survey {
        let ops = Ops::of(graph);
        let (edges, collectives) = (Edges::new(graph), Collectives::new(graph, &ops));
        let mut surveyor = Surveyor {
            graph,
            ops: &ops,
            edges: &edges,
            collectives: &collectives,
            found: Features::default(),
        };
        let members = surveyor.members();
        surveyor.world();
        surveyor.launches(&members);
        surveyor.payloads(&members);
        surveyor.nodes();
        Traits::new(graph, &ops, &edges, &collectives).report(&mut surveyor.found);
        let runs = surveyor.runs(&members);
        surveyor.pass(pass, &members, &runs);
        let unsorted = surveyor.order();
        let eligible = runs.iter().filter(|run| match pass {
            Pass::Repair => run.len() >= 2,
            Pass::Bucketing(_) => run.len() >= 2 && pass.buckets(run[0].call.kind),
        });
        let eligible_buckets = eligible.count();
        surveyor.found.add_if(Feature::SeveralBuckets, eligible_buckets >= 2);
        let executes = graph.nodes().iter().any(|node| node.op == Op::Call);
        Survey {
            features: surveyor.found,
            candidates: members.len(),
            eligible_buckets,
            useful: executes && if *pass == Pass::Repair { unsorted } else { eligible_buckets > 0 },
        }
    }
}

struct Surveyor<'a> {
    graph: &'a Graph,
    ops: &'a Ops,
    edges: &'a Edges,
    collectives: &'a Collectives<'a>,
    found: Features,
}

impl<'a> Surveyor<'a> {
    /// The candidates in wait order.
    fn members(&self) -> Vec<Member<'a>> {
        let mut members: Vec<Member> = Vec::new();
        for (call, waits) in self.collectives.calls.iter().zip(&self.collectives.waits) {
            let bucketable = matches!(
                call.kind,
                Collective::AllGather | Collective::ReduceScatter | Collective::AllReduce
            );
            if !bucketable || call.coalesced || call.in_place {
                continue;
            }
            let direct = |&&wait: &&NodeId| self.graph.arg(wait, 0) == Some(Value::Node(call.node));
            let (Some(&wait), Some(tensor)) = (waits.iter().find(direct), self.graph.tensor_of(call.node))
            else {
                continue;
            };
            let bytes = bucket_bytes(self.graph, call).unwrap_or(0);
            members.push(Member { call, wait, dtype: tensor.dtype, bytes });
        }
        members.sort_by_key(|member| member.wait);
        members
    }

    /// Runs of one key, kind by kind.
    fn runs(&mut self, members: &[Member<'a>]) -> Vec<Vec<Member<'a>>> {
        let mut runs: Vec<Vec<Member>> = Vec::new();
        for kind in [Collective::AllGather, Collective::ReduceScatter, Collective::AllReduce] {
            let first = runs.len();
            for &member in members.iter().filter(|member| member.call.kind == kind) {
                match runs[first..].last_mut() {
                    Some(run) if run[0].key() == member.key() => run.push(member),
                    _ => runs.push(vec![member]),
                }
            }
            let again = runs[first..].windows(3).any(|three| three[0][0].key() == three[2][0].key());
            self.found.add_if(Feature::InterruptedRun, again);
        }
        for run in &runs {
            self.found.add_if(Feature::RunOfOne, run.len() == 1);
            let uneven = run.iter().any(|member| member.bytes != run[0].bytes);
            self.found.add_if(Feature::UnevenSizes, uneven);
            self.found.add_if(Feature::UserBeforeLateInput, self.user_before_late_input(run));
        }
        runs
    }

    fn user_before_late_input(&self, run: &[Member]) -> bool {
        let mut earliest_user = None;
        for member in run {
            let input = member.call.inputs.first().filter(|&&input| self.graph.node(input).op == Op::Call);
            if let (Some(user), Some(&input)) = (earliest_user, input)
                && user < input
            {
                return true;
            }
            let users = self.edges.users(member.wait).iter().copied();
            earliest_user = earliest_user.into_iter().chain(users).min();
        }
        false
    }

    fn world(&mut self) {
        let world = &self.graph.world;
        self.found.add_if(Feature::FourRanks, world.ranks.is_some_and(|ranks| ranks >= 4));
        let mut used: Vec<&Group> = Vec::new();
        for call in &self.collectives.calls {
            if let GroupName::Text(name) = call.group
                && let Some(group) = world.group(name)
                && !used.iter().any(|other| other.name == group.name)
            {
                used.push(group);
            }
        }
        self.found.add_if(Feature::SeveralGroups, used.len() >= 2);
        self.found.add_if(Feature::GroupOfOne, used.iter().any(|group| group.size == 1));
        for (i, a) in used.iter().enumerate() {
            for b in &used[..i] {
                let common = |x: &Vec<u32>, y: &Vec<u32>| x.iter().filter(|rank| y.contains(rank)).count();
                let pairs = || a.instances.iter().flat_map(|x| b.instances.iter().map(move |y| (x, y)));
                let cut = |(x, y): (&Vec<u32>, &Vec<u32>)| {
                    let common = common(x, y);
                    common > 0 && common < x.len() && common < y.len()
                };
                self.found.add_if(Feature::OverlappingGroups, pairs().any(cut));
                let axes = a.size > 1 && b.size > 1 && pairs().all(|(x, y)| common(x, y) == 1);
                self.found.add_if(Feature::Mesh, axes);
            }
        }
    }

    fn launches(&mut self, members: &[Member]) {
        let (mut reductions, mut dtypes): (Vec<&str>, Vec<Dtype>) = (Vec::new(), Vec::new());
        let mut inputs: Vec<NodeId> = Vec::new();
        for (call, waits) in self.collectives.calls.iter().zip(&self.collectives.waits) {
            let found = &mut self.found;
            match call.kind {
                Collective::AllToAll => found.add(Feature::AllToAll),
                Collective::Broadcast => found.add(Feature::Broadcast),
                Collective::Barrier => found.add(Feature::Barrier),
                _ => {}
            }
            found.add_if(Feature::Coalesced, call.coalesced);
            found.add_if(Feature::InPlaceCollective, call.in_place);
            reductions.extend(call.reduce_op.filter(|op| !reductions.contains(op)));
            dtypes.extend(self.graph.tensor_of(call.node).map(|t| t.dtype).filter(|d| !dtypes.contains(d)));
            for &input in &call.inputs {
                found.add_if(Feature::SharedInput, inputs.contains(&input));
                inputs.push(input);
            }
            found.add_if(Feature::LateWait, waits.first().is_some_and(|wait| wait.0 >= call.node.0 + 5));
            let direct = waits.iter().filter(|&&w| self.graph.arg(w, 0) == Some(Value::Node(call.node)));
            found.add_if(Feature::SecondWait, direct.count() >= 2);
        }
        self.found.add_if(Feature::SeveralReductions, reductions.len() >= 2);
        self.found.add_if(Feature::SeveralDtypes, dtypes.len() >= 2);
        for member in members {
            self.found.add(match member.call.kind {
                Collective::ReduceScatter => Feature::ReduceScatter,
                Collective::AllReduce => Feature::AllReduce,
                _ => Feature::AllGather,
            });
            let users = self.edges.users(member.wait);
            self.found.add_if(Feature::ManyUsers, users.len() >= 3);
            let output = |&user: &NodeId| self.graph.node(user).op == Op::Output;
            self.found.add_if(Feature::WaitIsOutput, users.iter().any(output));
            self.found.add_if(Feature::DeadCollective, users.is_empty());
            for &user in users.iter().filter(|user| !output(user)) {
                let mut times = 0;
                self.graph.for_each_input(user, &mut |input| times += usize::from(input == member.wait));
                self.found.add_if(Feature::UsedTwice, times >= 2);
            }
        }
        for three in members.windows(3) {
            let [a, b, c] = [three[0].call.kind, three[1].call.kind, three[2].call.kind];
            self.found.add_if(Feature::InterleavedKinds, a == c && a != b);
        }
        let unordered = members.windows(2).any(|two| two[0].call.node > two[1].call.node);
        self.found.add_if(Feature::WaitsOutOfOrder, unordered);
    }

    /// What members send.
    fn payloads(&mut self, members: &[Member]) {
        for member in members {
            let Some(&input) = member.call.inputs.first() else { continue };
            self.found.add_if(Feature::ComputedInput, self.graph.node(input).op == Op::Call);
            if let Some(tensor) = self.graph.tensor_of(input) {
                self.shape(member, tensor);
            }
            if member.call.kind == Collective::AllGather {
                self.casts(input);
                self.out_buffer(member);
            } else if member.call.kind == Collective::ReduceScatter {
                let padded = self.is(input, |kind| kind == Kind::Move(crate::ops::Move::Cat))
                    && self
                        .edges
                        .inputs(input)
                        .iter()
                        .any(|&block| self.is(block, |kind| kind == Kind::Move(crate::ops::Move::Pad)));
                self.found.add_if(Feature::PaddedBlocks, padded);
            }
        }
    }

    fn is(&self, node: NodeId, kind: impl Fn(Kind) -> bool) -> bool {
        self.ops.call(self.graph, node).is_some_and(|info| kind(info.kind))
    }

    fn shape(&mut self, member: &Member, tensor: &Tensor) {
        let (Some(shape), Some(stride)) = (self.graph.sizes(tensor.shape), self.graph.sizes(tensor.stride))
        else {
            return;
        };
        let found = &mut self.found;
        match shape.split_first() {
            None => found.add(Feature::NoDimensions),
            Some((&rows, inner)) => {
                found.add_if(Feature::NoRows, rows == 0);
                found.add_if(Feature::NoInnerElements, inner.contains(&0));
                let per_rank = member.call.kind == Collective::ReduceScatter
                    && member.call.group_size == Some(rows)
                    && rows > 1;
                found.add_if(Feature::OneRowPerRank, per_rank);
            }
        }
        if shape.contains(&0) {
            return;
        }
        let wide = || shape.iter().zip(&stride).filter(|&(&size, _)| size > 1).map(|(_, &stride)| stride);
        found.add_if(Feature::ExpandedInput, wide().any(|stride| stride == 0));
        // The elements of a tensor without gaps are as many as lie from its first to its last.
        let reach: i64 = shape.iter().zip(&stride).map(|(&size, &stride)| (size - 1) * stride).sum();
        found.add_if(Feature::GappedInput, reach + 1 > shape.iter().product::<i64>());
        let strides: Vec<i64> = wide().filter(|&stride| stride > 0).collect();
        found.add_if(Feature::PermutedInput, strides.windows(2).any(|two| two[0] < two[1]));
    }

    fn casts(&mut self, input: NodeId) {
        if !self.is(input, |kind| kind == Kind::Cast) {
            return;
        }
        let single = self.edges.users(input).len() == 1;
        self.found.add(if single { Feature::FoldedCast } else { Feature::CastWithOtherUsers });
        let Some(&from) = self.edges.inputs(input).first() else { return };
        self.found.add_if(Feature::ChainedCasts, self.is(from, |kind| kind == Kind::Cast));
        let whole = |node: NodeId| {
            self.graph.tensor_of(node).is_some_and(|tensor| tensor.dtype.class() < DtypeClass::Float)
        };
        self.found.add_if(Feature::IntegerCast, whole(from) || whole(input));
    }

    fn out_buffer(&mut self, member: &Member) {
        let Some(buffer) = member.call.out else { return };
        self.found.add(Feature::OutBuffer);
        // Other views of the buffer, and those who read the buffer or a view after the wait.
        let aliases =
            self.edges.users(buffer).iter().filter(|&&user| self.is(user, |k| matches!(k, Kind::View(_))));
        let read = std::iter::once(&buffer)
            .chain(aliases)
            .any(|&alias| self.edges.users(alias).iter().any(|&user| user > member.wait));
        self.found.add_if(Feature::OutBufferRead, read);
    }

    /// Single nodes.
    fn nodes(&mut self) {
        let output = self.graph.output();
        for id in self.graph.ids() {
            let node = self.graph.node(id);
            self.found.add_if(Feature::Annotated, node.module.is_some() && node.tags.is_some());
            self.found.add_if(Feature::OddNames, is_odd(self.graph.name(id)));
            let Some(info) = self.ops.call(self.graph, id) else { continue };
            let users = self.edges.users(id);
            let writes = info.writes();
            if writes && info.collective().is_none() {
                self.found.add(Feature::InPlace);
                self.found.add_if(Feature::ForeachWrite, info.target.contains("_foreach_"));
                let target = self.edges.inputs(id).first();
                let input = target.is_some_and(|&target| self.graph.node(target).op == Op::Placeholder);
                self.found.add_if(Feature::InputWritten, input);
            }
            match info.kind {
                Kind::Random(Random::Attention) => {}
                Kind::Random(_) => self.found.add(Feature::Random),
                Kind::Assert => self.found.add(Feature::Assertion),
                Kind::Opaque | Kind::Pointwise => self.found.add(Feature::Uninterpreted),
                Kind::Wait => {
                    let waited =
                        self.edges.inputs(id).iter().any(|&of| self.is(of, |kind| kind == Kind::Wait));
                    self.found.add_if(Feature::WaitOfWait, waited);
                }
                Kind::View(View::Conj) => {}
                Kind::View(_) => {
                    self.found.add_if(Feature::ViewIsOutput, output.is_some_and(|out| users.contains(&out)));
                }
                _ => {}
            }
            let computes = !writes && !info.effect && info.collective().is_none() && info.kind != Kind::Wait;
            self.found.add_if(Feature::DeadNode, computes && users.is_empty());
            if let Out::Tuple(parts) = node.out
                && info.collective().is_none()
            {
                let items = users.iter().filter(|&&user| self.is(user, |kind| kind == Kind::GetItem)).count();
                self.found.add_if(Feature::UnusedResults, items < parts.len());
            }
        }
        self.found.add_if(Feature::OrderingEdges, !self.graph.ordering.is_empty());
        if let Some(output) = output {
            let (mut seen, mut repeated) = (vec![false; self.graph.len()], false);
            self.graph.for_each_input(output, &mut |value| {
                repeated |= std::mem::replace(&mut seen[value.index()], true);
            });
            self.found.add_if(Feature::RepeatedOutput, repeated);
        }
    }

    fn pass(&mut self, pass: &Pass, members: &[Member], runs: &[Vec<Member>]) {
        let Pass::Bucketing(bucketing) = pass else { return };
        let found = &mut self.found;
        found.add_if(Feature::OneKind, bucketing.kind.is_some());
        found.add_if(Feature::CustomOps, bucketing.mode.starts_with("custom_ops"));
        found.add_if(Feature::Multidtype, bucketing.mode == "custom_ops_multidtype");
        found.add_if(Feature::CoalescedMode, bucketing.mode == "coalesced");
        if let Selection::AutoParallel { max_topo_span } = bucketing.selection {
            found.add(Feature::AutoParallel);
            found.add_if(Feature::SpanLimit, max_topo_span.is_some());
        }
        found.add_if(Feature::CapByIndex, bucketing.cap.windows(2).any(|two| two[0] != two[1]));
        let Some(&cap) = bucketing.cap.first() else { return };
        let cap = i64::try_from(cap).unwrap_or(i64::MAX);
        let alone = members.iter().any(|m| pass.buckets(m.call.kind) && m.bytes > cap);
        found.add_if(Feature::SingleAboveCap, alone);
        for run in runs.iter().filter(|run| pass.buckets(run[0].call.kind)) {
            let (mut sum, mut count, mut buckets) = (0, 0, 0);
            let mut total = 0;
            for (i, member) in run.iter().enumerate() {
                total += member.bytes;
                found.add_if(Feature::CapEqual, i > 0 && total == cap);
                found.add_if(Feature::CapOneOver, i > 0 && total == cap + 1);
                if count > 0 && sum + member.bytes > cap {
                    buckets += usize::from(count > 1);
                    (sum, count) = (0, 0);
                }
                (sum, count) = (sum + member.bytes, count + 1);
            }
            found.add_if(Feature::BucketsInRun, buckets + usize::from(count > 1) >= 2);
        }
    }

    /// Whether the list is unsorted.
    fn order(&mut self) -> bool {
        let late = |id: NodeId| self.edges.predecessors(id).any(|before| before >= id);
        let unsorted = self.graph.ids().any(late);
        if unsorted {
            self.found.add(Feature::Unsorted);
            self.found.add_if(Feature::Cyclic, petgraph::algo::is_cyclic_directed(self.edges));
        }
        unsorted
    }
}

fn is_odd(name: &str) -> bool {
    name.len() > 100
        || super::builder::ODD_NAMES.contains(&name)
        || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
