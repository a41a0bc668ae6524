//! Live bytes step by step, from the lives of storages.

use super::ledger::{Entry, Ledger, Resize};
use super::size::NoSize;
use crate::graph::{Graph, NodeId, Op, Str};
use crate::ops::kind_of_device;

/// Which devices count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Devices {
    /// All but the CPU, as in PyTorch.
    #[default]
    Accelerators,
    /// All.
    All,
}

impl Devices {
    /// Accelerators, unless no tensor of the graph is on one.
    pub fn of(graph: &Graph, ledger: &Ledger) -> Devices {
        match ledger.entries.iter().any(|entry| Devices::Accelerators.count(graph, entry.device)) {
            true => Devices::Accelerators,
            false => Devices::All,
        }
    }

    /// Whether a storage on `device` counts.
    pub fn count(self, graph: &Graph, device: Option<Str>) -> bool {
        let is_cpu = |device: Str| kind_of_device(graph.text(device)) == "cpu";
        self == Devices::All || !device.is_some_and(is_cpu)
    }
}

/// Why there is no memory to tell.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MemoryFault {
    /// Storages without a size: the allocating node's name, and why; in list order.
    #[error("{}", describe_unsized(.0))]
    Unsized(Vec<(String, NoSize)>),
    /// The live bytes do not fit 64 bits from this node on.
    #[error("the live bytes do not fit 64 bits at {0}")]
    TooLarge(String),
}

fn describe_unsized(of: &[(String, NoSize)]) -> String {
    const SHOWN: usize = 5;
    let lines: Vec<String> = of.iter().take(SHOWN).map(|(name, why)| format!("{name}: {why}")).collect();
    let more = match of.len() {
        n if n > SHOWN => format!("; and {} more", n - SHOWN),
        _ => String::new(),
    };
    format!("{} storages have no size: {}{more}", of.len(), lines.join("; "))
}

/// The life of a storage: steps are positions in [`Steps::steps`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Life {
    /// The node that allocates it.
    pub by: NodeId,
    /// Its bytes while it lives: the largest of several sizes.
    pub bytes: i64,
    /// The step that allocates it; `None`: it was there before.
    pub start: Option<u32>,
    /// The step at whose end it is freed; `None`: never.
    pub end: Option<u32>,
}

impl Life {
    /// Whether it is live during a step.
    pub fn covers(&self, step: u32) -> bool {
        self.start.is_none_or(|start| start <= step) && self.end.is_none_or(|end| step <= end)
    }
}

/// What happens to memory in one step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepBytes {
    /// The node that runs.
    pub node: NodeId,
    /// Bytes allocated.
    pub allocated: i64,
    /// Live bytes after that.
    pub peak: i64,
    /// Live bytes after the frees.
    pub after: i64,
}

/// Live bytes over the steps of a list: its nodes but inputs, constants and outputs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Steps {
    /// Live bytes before the first step.
    pub before: i64,
    /// The steps.
    pub steps: Vec<StepBytes>,
}

impl Steps {
    /// The most bytes that are live at once, and the first step at which they are; no step where that is before
    /// the first one.
    pub fn peak(&self) -> (i64, Option<u32>) {
        let mut most = (self.before, None);
        for (i, step) in self.steps.iter().enumerate() {
            if step.peak > most.0 {
                most = (step.peak, Some(i as u32));
            }
        }
        most
    }

    /// Live bytes after the last step.
    pub fn end(&self) -> i64 {
        self.steps.last().map_or(self.before, |step| step.after)
    }
}

/// The steps of a list: the position of each node among them, `u32::MAX` for nodes that are none.
pub(super) fn number_steps(graph: &Graph) -> (Vec<NodeId>, Vec<u32>) {
    let mut nodes = Vec::with_capacity(graph.len());
    let mut of = vec![u32::MAX; graph.len()];
    for id in graph.ids() {
        if graph.node(id).op == Op::Call {
            of[id.index()] = nodes.len() as u32;
            nodes.push(id);
        }
    }
    (nodes, of)
}

/// For each node the last node that takes its value.
pub(super) fn last_users(graph: &Graph) -> Vec<Option<NodeId>> {
    let mut last = vec![None; graph.len()];
    for id in graph.ids() {
        graph.for_each_input(id, &mut |input| {
            if let Some(slot) = last.get_mut(input.index()) {
                *slot = Some(id);
            }
        });
    }
    last
}

/// The size of each storage that counts, 0 of the others; whether any size is assumed.
pub(super) fn sizes_of(
    graph: &Graph,
    ledger: &Ledger,
    devices: Devices,
) -> Result<(Vec<i64>, Vec<NodeId>), MemoryFault> {
    let (mut unsized_, mut assumed) = (Vec::new(), Vec::new());
    let mut sizes = Vec::with_capacity(ledger.entries.len());
    for entry in &ledger.entries {
        sizes.push(match entry.bytes {
            _ if !devices.count(graph, entry.device) => 0,
            Ok(bytes) => {
                if bytes.assumed {
                    assumed.push(entry.by);
                }
                bytes.count
            }
            Err(why) => {
                unsized_.push((graph.name(entry.by).to_string(), why));
                0
            }
        });
    }
    for resize in &ledger.resizes {
        if let Err(why) = resize.bytes
            && devices.count(graph, ledger.entries[resize.storage as usize].device)
        {
            unsized_.push((graph.name(resize.node).to_string(), why));
        }
    }
    if unsized_.is_empty() { Ok((sizes, assumed)) } else { Err(MemoryFault::Unsized(unsized_)) }
}

/// Adds up the lives of the storages of a ledger. `lives` is parallel to its entries, with the sizes at
/// allocation; lives of resized storages get the largest of their sizes.
pub(super) fn add_up(
    graph: &Graph,
    ledger: &Ledger,
    devices: Devices,
    lives: &mut [Life],
) -> Result<Steps, MemoryFault> {
    let (nodes, step_of) = number_steps(graph);
    let mut allocated = vec![0i64; nodes.len()];
    let mut freed = vec![0i64; nodes.len()];
    let mut before = 0i64;
    let too_large = |node: NodeId| MemoryFault::TooLarge(graph.name(node).to_string());
    let add = |to: &mut i64, bytes: i64, node: NodeId| {
        *to = to.checked_add(bytes).ok_or_else(|| too_large(node))?;
        Ok(())
    };
    let mut last_size: Vec<i64> = lives.iter().map(|life| life.bytes).collect();
    for Resize { node, storage, bytes } in ledger.resizes.iter().copied() {
        let Entry { device, .. } = ledger.entries[storage as usize];
        let (Ok(bytes), step) = (bytes, step_of[node.index()]) else { continue };
        let life = &mut lives[storage as usize];
        if !devices.count(graph, device) || step == u32::MAX || !life.covers(step) {
            continue;
        }
        let old = std::mem::replace(&mut last_size[storage as usize], bytes.count);
        life.bytes = life.bytes.max(bytes.count);
        let (grows, shrinks) = ((bytes.count - old).max(0), (old - bytes.count).max(0));
        add(&mut allocated[step as usize], grows, node)?;
        add(&mut freed[step as usize], shrinks, node)?;
    }
    for ((life, entry), last) in lives.iter().zip(&ledger.entries).zip(&last_size) {
        let first = match (entry.bytes, life.bytes) {
            (Ok(bytes), most) => bytes.count.min(most),
            (Err(_), _) => 0,
        };
        match life.start {
            None => add(&mut before, first, life.by)?,
            Some(step) => add(&mut allocated[step as usize], first, life.by)?,
        }
        if let Some(step) = life.end {
            add(&mut freed[step as usize], *last, life.by)?;
        }
    }
    let mut steps = Steps { before, steps: Vec::with_capacity(nodes.len()) };
    let mut live = before;
    for (i, &node) in nodes.iter().enumerate() {
        add(&mut live, allocated[i], node)?;
        let peak = live;
        live = live.checked_sub(freed[i]).ok_or_else(|| too_large(node))?;
        steps.steps.push(StepBytes { node, allocated: allocated[i], peak, after: live });
    }
    Ok(steps)
}
