//! Collectives of fully sharded data parallelism, found by their surroundings.
//!
//! - A gather is one if exactly one distinct placeholder is among all its ancestors; attributes do not count.
//! - A reduce-scatter is one if its wait has users, and every node reached forward from the wait, the output
//!   excepted, has exactly one distinct input: branching is allowed, joining is not.
//! - An all-reduce is one if its group is among the groups of such gathers.
//!
//! Source: `torch._inductor.fx_passes.fsdp`. The tests there search anew from each collective; here one sweep
//! answers for all.

use super::member::{Group, Member, Targets};
use crate::graph::{Editor, NodeId, Op, Value};
use crate::ops::Collective;

/// What is known of a node's placeholder ancestors, or of what follows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mark {
    Unseen,
    /// On the stack.
    Open,
    /// No placeholder.
    None,
    /// This one only.
    One(NodeId),
    Many,
}

impl Mark {
    fn join(self, other: Mark) -> Mark {
        match (self, other) {
            (Mark::None | Mark::Unseen | Mark::Open, mark)
            | (mark, Mark::None | Mark::Unseen | Mark::Open) => mark,
            (Mark::One(a), Mark::One(b)) if a == b => Mark::One(a),
            _ => Mark::Many,
        }
    }
}

/// Placeholder ancestors of nodes, computed on demand. The list need not be sorted.
pub struct Ancestry(Vec<Mark>);

impl Ancestry {
    /// Nothing is known yet.
    pub fn new(editor: &Editor) -> Ancestry {
        Ancestry(vec![Mark::Unseen; editor.graph().len()])
    }

    /// Whether exactly one placeholder is among the ancestors of `id`, itself not counted.
    pub fn has_one_placeholder(&mut self, editor: &Editor, id: NodeId) -> bool {
        let graph = editor.graph();
        let mut stack = vec![id];
        while let Some(&at) = stack.last() {
            if self.0[at.index()] == Mark::Open {
                stack.pop();
                let mut mark = Mark::None;
                graph.for_each_input(at, &mut |input| {
                    mark = mark.join(match graph.node(input).op {
                        Op::Placeholder => Mark::One(input),
                        _ => self.0[input.index()],
                    });
                });
                self.0[at.index()] = mark;
            } else if self.0[at.index()] == Mark::Unseen {
                self.0[at.index()] = Mark::Open;
                graph.for_each_input(at, &mut |input| {
                    if self.0[input.index()] == Mark::Unseen && graph.node(input).op != Op::Placeholder {
                        stack.push(input);
                    }
                });
            } else {
                stack.pop();
            }
        }
        matches!(self.0[id.index()], Mark::One(_))
    }
}

/// Whether what follows a node has one input only, computed on demand. The list need not be sorted.
pub struct Chains(Vec<Flow>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flow {
    Unseen,
    /// On the stack.
    Open,
    /// Every node reached has one input.
    Chain,
    Joined,
}

impl Chains {
    /// Nothing is known yet.
    pub fn new(editor: &Editor) -> Chains {
        Chains(vec![Flow::Unseen; editor.graph().len()])
    }

    /// Whether every node reached forward from `wait`, the output excepted, has exactly one distinct input, and
    /// there is something to reach.
    pub fn flow_on(&mut self, editor: &Editor, wait: NodeId) -> bool {
        let graph = editor.graph();
        let mut stack = vec![wait];
        while let Some(&at) = stack.last() {
            let inner = editor.users(at).iter().copied().filter(|&user| graph.node(user).op != Op::Output);
            match self.0[at.index()] {
                Flow::Unseen if inner.clone().all(|user| has_one_input(editor, user)) => {
                    self.0[at.index()] = Flow::Open;
                    stack.extend(inner.filter(|user| self.0[user.index()] == Flow::Unseen));
                }
                Flow::Unseen => self.0[at.index()] = Flow::Joined,
                Flow::Open => {
                    stack.pop();
                    let joined = inner.map(|user| self.0[user.index()]).any(|flow| flow == Flow::Joined);
                    self.0[at.index()] = if joined { Flow::Joined } else { Flow::Chain };
                }
                Flow::Chain | Flow::Joined => {
                    stack.pop();
                }
            }
        }
        !editor.users(wait).is_empty() && self.0[wait.index()] == Flow::Chain
    }
}

fn has_one_input(editor: &Editor, id: NodeId) -> bool {
    let (mut first, mut one) = (None, true);
    editor.graph().for_each_input(id, &mut |input| one &= *first.get_or_insert(input) == input);
    one && first.is_some()
}

/// The groups of FSDP gathers in the order of first appearance, with the number of such gathers, and the group
/// size that the first of them states. Plain gathers are looked at before gathers with `out=`.
pub fn groups(editor: &Editor, targets: &Targets) -> (Vec<(Group, usize)>, Option<i64>) {
    let graph = editor.graph();
    let mut ancestry = Ancestry::new(editor);
    let (mut groups, mut size): (Vec<(Group, usize)>, _) = (Vec::new(), None);
    let list = editor.list();
    for target in [targets.all_gather, targets.all_gather_out] {
        let gathers = list.iter().filter(|&&id| target.is_some() && Targets::calls(graph, id, &[target]));
        for &gather in gathers {
            if !ancestry.has_one_placeholder(editor, gather) {
                continue;
            }
            let Ok(member) = Member::read(graph, Collective::AllGather, gather, gather) else { continue };
            size = size.or(member.group_size);
            match groups.iter_mut().find(|(group, _)| *group == member.group) {
                Some((_, count)) => *count += 1,
                None => groups.push((member.group, 1)),
            }
        }
    }
    (groups, size)
}

/// The FSDP candidates among `members`, which are of one kind.
pub fn keep(editor: &Editor, groups: &[Group], members: &mut Vec<Member>) {
    let mut ancestry = Ancestry::new(editor);
    let mut chains = Chains::new(editor);
    members.retain(|member| match member.kind {
        Collective::AllGather => ancestry.has_one_placeholder(editor, member.start),
        Collective::ReduceScatter => chains.flow_on(editor, member.wait),
        _ => groups.contains(&member.group),
    });
}

/// Whether a value names a group, by text.
pub fn is_named(editor: &Editor, group: Group, names: &[String]) -> bool {
    match group.value() {
        Value::Str(name) => names.iter().any(|n| n == editor.graph().text(name)),
        Value::Node(node) => names.iter().any(|n| n == editor.graph().name(node)),
        _ => false,
    }
}
