//! A scheduled program: nodes, the buffers that they make, and who depends on what.
//!
//! Source: `torch._inductor.scheduler.Scheduler.compute_dependencies` of PyTorch 2.15. Nodes are declared with what
//! they read, mutate and make; the dependencies follow.
//!
//! A node that mutates a buffer gives it a new name; later readers of the old name read the new one. The new name is
//! the same memory: [`Program::real`] leads from each such name to the buffer that the memory was allocated for. A
//! mutation comes after every earlier reader of its buffer. That dependency orders only, except where the reader's
//! result is a view of the mutated memory, which then lives until the mutation is done. So each of n mutations of one
//! buffer depends on all users before it, and there are n * n of these: the orders of the reference look at each, so
//! that none may be left out. How many there may be is limited.

use crate::limits::Limit;
use petgraph::unionfind::UnionFind;
use rustc_hash::FxHashSet;

/// A buffer or graph input: an index into [`Program::buffers`].
pub type BufferId = u32;
/// A node: an index into [`Program::nodes`], which is also its place in the order given.
pub type NodeIndex = u32;

/// How a buffer holds memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Layout {
    /// It owns its bytes.
    #[default]
    Owned,
    /// It is no memory: a kernel that only writes others' buffers.
    Nothing,
    /// Several outputs, each a buffer of its own that names this one as its parent.
    MultiOutput,
    /// It is memory that other buffers own.
    Alias,
}

/// A buffer, or a graph input.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Buffer {
    /// Its name.
    pub name: String,
    /// Element count times element size; of an input the whole storage. Symbolic counts by their hint.
    pub bytes: i64,
    /// How it holds memory.
    pub layout: Layout,
    /// The node that makes it; `None` for a graph input.
    pub by: Option<NodeIndex>,
    /// The multi-output parent that it is an element of.
    pub parent: Option<BufferId>,
    /// Buffers whose memory it is, or may be.
    pub aliases: Vec<BufferId>,
    /// The buffer that it is a new name of, as declared.
    pub mutates: Option<BufferId>,
    /// Whether that mutation only orders.
    pub orders_only: bool,
    /// Whether the graph returns it.
    pub output: bool,
    /// Whether it is an input that the caller keeps.
    pub protected: bool,
}

/// Whether a dependency also keeps the buffer alive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// It does.
    Real,
    /// It orders only.
    Fake,
}

/// A dependency on a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Dependency {
    /// On what.
    pub buffer: BufferId,
    /// Of which kind.
    pub kind: Kind,
}

/// A node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What it makes, in order.
    pub outputs: Vec<BufferId>,
    /// Dependencies on other nodes' buffers, each once, in order.
    pub unmet: Vec<Dependency>,
    /// Dependencies on graph inputs.
    pub of_inputs: Vec<Dependency>,
}

/// What a node is declared to do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// What it makes: buffers of the program.
    pub outputs: Vec<BufferId>,
    /// What it reads, by the names that the program gives, whatever was mutated meanwhile.
    pub reads: Vec<BufferId>,
    /// Buffers that must be there before it runs.
    pub after: Vec<BufferId>,
    /// Nodes that define the unbacked symbols that it uses.
    pub symbols: Vec<NodeIndex>,
}

/// A scheduled program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// The nodes in program order.
    pub nodes: Vec<Node>,
    /// Inputs and buffers, each before whatever refers to it.
    pub buffers: Vec<Buffer>,
    /// (new name, buffer that the memory was allocated for), in order of the mutations.
    pub real: Vec<(BufferId, BufferId)>,
}

/// Why there is no program.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProgramFault {
    /// Two buffers have one name.
    #[error("two buffers are called {0:?}")]
    SameName(String),
    /// Nodes depend on each other in a circle: their names.
    #[error("{} depend on each other in a circle", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// An order is not one of the program's nodes.
    #[error("the order has {found} nodes, the program {expected}")]
    NotAPermutation {
        /// Nodes of the program.
        expected: usize,
        /// Distinct nodes of the order.
        found: usize,
    },
    /// A size is negative, or sums do not fit 64 bits.
    #[error("the bytes of {0} are negative or do not fit 64 bits")]
    Bytes(String),
    /// The nodes up to this one have more dependencies than the limit allows.
    #[error("the nodes up to {0} depend on more buffers than the limit allows, {limit}", limit = Limit::Dependences)]
    TooMany(String),
    /// Something refers to a buffer or node that does not exist.
    #[error("{0} refers to a buffer or node that does not exist")]
    Dangling(String),
}

impl Program {
    /// The dependencies of declared nodes. `buffers` must say who makes each one ([`Buffer::by`]).
    pub fn new(buffers: Vec<Buffer>, declared: Vec<Declared>) -> Result<Program, ProgramFault> {
        check_buffers(&buffers, declared.len())?;
        let buffer = |&b: &BufferId| (b as usize) < buffers.len();
        for d in &declared {
            let mut of = d.outputs.iter().chain(&d.reads).chain(&d.after);
            if !of.all(buffer) || d.symbols.iter().any(|&s| s as usize >= declared.len()) {
                return Err(ProgramFault::Dangling(d.name.clone()));
            }
        }
        let mut names = Names::new(&buffers);
        let mut program = Program { nodes: Vec::with_capacity(declared.len()), buffers, real: Vec::new() };
        let outputs: Vec<Vec<BufferId>> = declared.iter().map(|d| d.outputs.clone()).collect();
        let mut left = Limit::Dependences.standard();
        for (index, d) in declared.into_iter().enumerate() {
            let unmet = names.dependencies(&program.buffers, &outputs, index as NodeIndex, &d);
            let rest = left.checked_sub(unmet.len() as u64);
            left = rest.ok_or_else(|| ProgramFault::TooMany(d.name.clone()))?;
            let (mut of_nodes, mut of_inputs) = (Vec::new(), Vec::new());
            for dependency in unmet {
                match program.buffers[dependency.buffer as usize].by {
                    None => of_inputs.push(dependency),
                    Some(by) if by == index as NodeIndex => {}
                    Some(_) => of_nodes.push(dependency),
                }
            }
            for &output in &d.outputs {
                let Some(mutated) = program.buffers[output as usize].mutates else { continue };
                names.rename(mutated, output);
                program.real.push((output, names.real[mutated as usize]));
                names.real[output as usize] = names.real[mutated as usize];
            }
            program.nodes.push(Node { name: d.name, outputs: d.outputs, unmet: of_nodes, of_inputs });
        }
        Ok(program)
    }

    /// A program whose dependencies are known, for example from another implementation.
    pub fn from_dependencies(
        nodes: Vec<Node>,
        buffers: Vec<Buffer>,
        real: Vec<(BufferId, BufferId)>,
    ) -> Result<Program, ProgramFault> {
        check_buffers(&buffers, nodes.len())?;
        let known = |b: BufferId| (b as usize) < buffers.len();
        for node in &nodes {
            let dependencies = node.unmet.iter().chain(&node.of_inputs).map(|dependency| dependency.buffer);
            if !dependencies.chain(node.outputs.iter().copied()).all(known) {
                return Err(ProgramFault::Dangling(node.name.clone()));
            }
        }
        match real.iter().all(|&(m, root)| known(m) && known(root)) {
            true => Ok(Program { nodes, buffers, real }),
            false => Err(ProgramFault::Dangling("a new name".to_string())),
        }
    }
}

/// Whether buffers refer to earlier buffers and existing nodes, and have sizes.
fn check_buffers(buffers: &[Buffer], nodes: usize) -> Result<(), ProgramFault> {
    for (i, b) in buffers.iter().enumerate() {
        let earlier = |&of: &BufferId| (of as usize) < i;
        let refers = b.aliases.iter().chain(&b.parent).all(earlier);
        let mutates = b.mutates.is_none_or(|of| (of as usize) < buffers.len());
        if !refers || !mutates || b.by.is_some_and(|by| by as usize >= nodes) {
            return Err(ProgramFault::Dangling(b.name.clone()));
        }
        if b.bytes < 0 {
            return Err(ProgramFault::Bytes(b.name.clone()));
        }
    }
    Ok(())
}

/// The names of buffers as they change, and who uses what.
struct Names {
    renamed: Vec<Option<BufferId>>,
    real: Vec<BufferId>,
    class: Vec<u32>,
    /// Nodes by class of buffers that share memory, in order.
    users: Vec<Vec<NodeIndex>>,
}

impl Names {
    fn new(buffers: &[Buffer]) -> Names {
        let mut shared = UnionFind::<u32>::new(buffers.len());
        for (b, buffer) in buffers.iter().enumerate() {
            // A kernel that writes several buffers does not make them aliases of each other.
            if buffer.layout == Layout::Nothing && buffer.aliases.len() > 1 {
                continue;
            }
            for &alias in &buffer.aliases {
                shared.union(b as u32, alias);
            }
        }
        Names {
            renamed: vec![None; buffers.len()],
            real: (0..buffers.len() as u32).collect(),
            class: (0..buffers.len() as u32).map(|b| shared.find(b)).collect(),
            users: vec![Vec::new(); buffers.len()],
        }
    }

    fn current(&mut self, mut buffer: BufferId) -> BufferId {
        while let Some(next) = self.renamed[buffer as usize] {
            // Halves the way for the next one who asks.
            if let Some(after) = self.renamed[next as usize] {
                self.renamed[buffer as usize] = Some(after);
            }
            buffer = next;
        }
        buffer
    }

    fn rename(&mut self, mutated: BufferId, to: BufferId) {
        let current = self.current(mutated);
        if current != to {
            self.renamed[current as usize] = Some(to);
        }
        if mutated != to {
            self.renamed[mutated as usize] = Some(to);
        }
    }

    fn add_user(&mut self, buffer: BufferId, user: NodeIndex) {
        let current = self.current(buffer);
        let users = &mut self.users[self.class[current as usize] as usize];
        if users.last() != Some(&user) {
            users.push(user);
        }
    }

    fn dependencies(
        &mut self,
        buffers: &[Buffer],
        outputs: &[Vec<BufferId>],
        index: NodeIndex,
        declared: &Declared,
    ) -> Vec<Dependency> {
        let mut found: Vec<Dependency> = Vec::with_capacity(declared.reads.len() + declared.after.len());
        let mut seen = FxHashSet::default();
        let mut add = |found: &mut Vec<Dependency>, buffer: BufferId, kind: Kind| {
            let dependency = Dependency { buffer, kind };
            if seen.insert(dependency) {
                found.push(dependency);
            }
        };
        for &definer in &declared.symbols {
            for &output in &outputs[definer as usize] {
                add(&mut found, output, Kind::Real);
            }
        }
        for &output in &declared.outputs {
            let Some(mutated) = buffers[output as usize].mutates else { continue };
            let current = self.current(mutated);
            if buffers[output as usize].orders_only {
                self.add_user(current, index);
                add(&mut found, current, Kind::Fake);
                continue;
            }
            self.add_user(current, index);
            add(&mut found, current, Kind::Real);
            let root = self.real[mutated as usize];
            let class = self.class[current as usize] as usize;
            let mut users = std::mem::take(&mut self.users[class]);
            // What has one name by now, and is a view of the same, has one from here on: one user stands for all.
            let mut known: FxHashSet<(BufferId, &[BufferId])> = FxHashSet::default();
            users.retain(|&user| {
                let mut is_new = user == index;
                for &made in outputs[user as usize].iter().filter(|_| user != index) {
                    let (other, aliases) = (self.current(made), &buffers[made as usize].aliases);
                    if !known.insert((other, aliases)) {
                        continue;
                    }
                    is_new = true;
                    let is_view = |&of: &BufferId| self.real[of as usize] == root;
                    let kind = if aliases.iter().any(is_view) { Kind::Real } else { Kind::Fake };
                    add(&mut found, other, kind);
                    self.add_user(other, index);
                }
                is_new
            });
            self.users[class] = users;
        }
        for &after in &declared.after {
            self.add_user(after, index);
            let current = self.current(after);
            add(&mut found, current, Kind::Fake);
        }
        for &read in &declared.reads {
            self.add_user(read, index);
            let current = self.current(read);
            add(&mut found, current, Kind::Real);
        }
        found
    }
}
