//! What follows from a program for planning: sizes, who frees and who follows whom.
//!
//! Source: `torch._inductor.memory` of PyTorch 2.15. Rules of the reference beyond it: an alias is no memory of its
//! own, and its readers are readers of the owner; readers of a mutated input's new names are readers of the input;
//! whoever owns the memory of an output is kept like the output.

use super::program::{BufferId, Kind, Layout, NodeIndex, Program, ProgramFault};
use super::strategy::Strategy;

/// A table of rows of different lengths, in one array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    start: Vec<u32>,
    entries: Vec<u32>,
}

impl Rows {
    /// Rows from (row, entry) pairs; entries keep their order, each is kept once a row.
    fn distinct(rows: usize, pairs: &[(u32, u32)], entries: usize) -> Rows {
        let mut at = vec![0u32; rows + 1];
        for &(row, _) in pairs {
            at[row as usize + 1] += 1;
        }
        for i in 0..rows {
            at[i + 1] += at[i];
        }
        let start = at.clone();
        let mut sorted = vec![0u32; pairs.len()];
        for &(row, entry) in pairs {
            sorted[at[row as usize] as usize] = entry;
            at[row as usize] += 1;
        }
        let mut seen = vec![u32::MAX; entries];
        let mut table =
            Rows { start: Vec::with_capacity(rows + 1), entries: Vec::with_capacity(sorted.len()) };
        for row in 0..rows {
            table.start.push(table.entries.len() as u32);
            for &entry in &sorted[start[row] as usize..start[row + 1] as usize] {
                if std::mem::replace(&mut seen[entry as usize], row as u32) != row as u32 {
                    table.entries.push(entry);
                }
            }
        }
        table.start.push(table.entries.len() as u32);
        table
    }

    /// A row.
    pub fn of(&self, row: u32) -> &[u32] {
        &self.entries[self.start[row as usize] as usize..self.start[row as usize + 1] as usize]
    }
}

/// Bytes that a buffer adds when it is made and gives back when it dies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Size {
    /// Added at the definition.
    pub alloc: i64,
    /// Given back at death.
    pub free: i64,
}

/// What planning knows of a program.
#[derive(Clone, Debug)]
pub struct Planning {
    /// Of each buffer; of a freeable input both are its storage's bytes, of other inputs 0.
    pub sizes: Vec<Size>,
    /// Of each buffer the nodes that keep it alive.
    pub life: Rows,
    /// Of each buffer the nodes that must come after it.
    pub order: Rows,
    /// Of each buffer whether it is never freed: outputs, and who owns their memory.
    pub kept: Vec<bool>,
    /// The inputs that may be freed, in order of their first reader.
    pub freeable: Vec<BufferId>,
    /// Of each node the bytes that it allocates.
    pub size: Vec<i64>,
    /// Of each node those that must come later, in order.
    pub after: Rows,
    /// Of each node those that must come earlier, in order.
    pub before: Rows,
    /// Of each node the buffers and freeable inputs that it keeps alive.
    pub needs: Rows,
    /// Of each node those that make what it depends on.
    pub producers: Rows,
}

impl Planning {
    /// Plans `program` by the reference.
    pub fn new(program: &Program) -> Result<Planning, ProgramFault> {
        Planning::with(program, &super::strategy::Reference)
    }

    /// Plans with other ingredients.
    pub fn with(program: &Program, strategy: &dyn Strategy) -> Result<Planning, ProgramFault> {
        let (nodes, buffers) = (program.nodes.len(), program.buffers.len());
        let mut sizes = sizes(program, strategy)?;
        let (mut life, mut order) = (Vec::new(), Vec::new());
        let (mut first_read, mut producers) = (Vec::new(), Vec::new());
        for (index, node) in program.nodes.iter().enumerate() {
            for dependency in node.unmet.iter().chain(&node.of_inputs) {
                order.push((dependency.buffer, index as u32));
                if dependency.kind == Kind::Real {
                    life.push((dependency.buffer, index as u32));
                }
                let buffer = &program.buffers[dependency.buffer as usize];
                match buffer.by {
                    None if buffer.protected => {}
                    None => first_read.push(dependency.buffer),
                    Some(by) => producers.push((index as u32, by)),
                }
            }
        }
        let merges = merges(program, strategy);
        let (life, order) = (merged(buffers, nodes, &merges, life), merged(buffers, nodes, &merges, order));
        let mut kept: Vec<bool> = program.buffers.iter().map(|b| b.output).collect();
        for &(alias, owner) in merges.iter().rev() {
            kept[owner as usize] |= kept[alias as usize] && strategy.keeps_owners_of_outputs();
        }
        let mut freeable = Vec::new();
        let mut is_freeable = vec![false; buffers];
        for input in first_read {
            if !std::mem::replace(&mut is_freeable[input as usize], true) {
                freeable.push(input);
                let bytes = program.buffers[input as usize].bytes;
                sizes[input as usize] = Size { alloc: bytes, free: bytes };
            }
        }
        let (mut size, mut after, mut needs) = (Vec::with_capacity(nodes), Vec::new(), Vec::new());
        for (index, node) in program.nodes.iter().enumerate() {
            let mut total = 0i64;
            for &output in &node.outputs {
                let too_large = || ProgramFault::Bytes(node.name.clone());
                total = total.checked_add(sizes[output as usize].alloc).ok_or_else(too_large)?;
                after.extend(
                    order.of(output).iter().filter(|&&n| n != index as u32).map(|&n| (index as u32, n)),
                );
                needs.extend(life.of(output).iter().map(|&n| (n, output)));
            }
            size.push(total);
        }
        for &input in &freeable {
            needs.extend(life.of(input).iter().map(|&n| (n, input)));
        }
        let after = Rows::distinct(nodes, &after, nodes);
        let mut before = Vec::with_capacity(after.entries.len());
        for index in 0..nodes as u32 {
            before.extend(after.of(index).iter().map(|&n| (n, index)));
        }
        let before = Rows::distinct(nodes, &before, nodes);
        let needs = Rows::distinct(nodes, &needs, buffers);
        let producers = Rows::distinct(nodes, &producers, nodes);
        Ok(Planning { sizes, life, order, kept, freeable, size, after, before, needs, producers })
    }

    /// The nodes in a circle of dependencies, if there is one, each depending on the next.
    pub fn cycle(&self) -> Option<Vec<NodeIndex>> {
        const NEW: u8 = 0;
        const OPEN: u8 = 1;
        const DONE: u8 = 2;
        let nodes = self.size.len() as u32;
        let mut state = vec![NEW; nodes as usize];
        let mut path: Vec<(u32, usize)> = Vec::new();
        for root in 0..nodes {
            if state[root as usize] != NEW {
                continue;
            }
            state[root as usize] = OPEN;
            path.push((root, 0));
            while let Some((node, next)) = path.last_mut() {
                let Some(&before) = self.before.of(*node).get(*next) else {
                    state[*node as usize] = DONE;
                    path.pop();
                    continue;
                };
                *next += 1;
                match state[before as usize] {
                    NEW => {
                        state[before as usize] = OPEN;
                        path.push((before, 0));
                    }
                    OPEN => {
                        let from = path.iter().position(|&(n, _)| n == before).unwrap_or(0);
                        let mut circle: Vec<u32> = path[from..].iter().map(|&(n, _)| n).collect();
                        circle.push(before);
                        return Some(circle);
                    }
                    _ => {}
                }
            }
        }
        None
    }
}

/// (name, whose memory it is), in the order of definition: so that from the last to the first everything arrives at
/// the owner.
fn merges(program: &Program, strategy: &dyn Strategy) -> Vec<(BufferId, BufferId)> {
    let mut merges = Vec::new();
    if strategy.merges_renames() {
        merges.extend(program.real.iter().copied().filter(|(m, root)| m != root));
    }
    if strategy.merges_aliases() {
        // Where a chain of aliases has one owner, all of them lead straight to it.
        let mut owner: Vec<BufferId> = (0..program.buffers.len() as u32).collect();
        for (b, buffer) in program.buffers.iter().enumerate() {
            // What a kernel writes is told by its new names.
            if buffer.layout == Layout::Nothing || buffer.mutates.is_some() {
                continue;
            }
            if let ([of], Layout::Alias) = (&buffer.aliases[..], buffer.layout) {
                let of = *of;
                owner[b] = owner[of as usize];
            }
            let owners = buffer.aliases.iter().map(|&of| (b as u32, owner[of as usize]));
            merges.extend(owners.filter(|(alias, owner)| alias != owner));
        }
    }
    merges.sort_by_key(|&(alias, _)| alias);
    merges
}

/// Rows in which the row of each owner holds the rows of its aliases, after its own.
fn merged(buffers: usize, nodes: usize, merges: &[(BufferId, BufferId)], own: Vec<(u32, u32)>) -> Rows {
    let rows = Rows::distinct(buffers, &own, nodes);
    if merges.is_empty() {
        return rows;
    }
    let mut gained: Vec<Vec<u32>> = vec![Vec::new(); buffers];
    for &(alias, owner) in merges.iter().rev() {
        // An alias that two names of one owner share is told twice; rows are made distinct below.
        let inherited = gained[alias as usize].clone();
        gained[owner as usize].extend(rows.of(alias).iter().copied().chain(inherited));
    }
    let mut pairs = Vec::with_capacity(own.len());
    for b in 0..buffers as u32 {
        pairs.extend(rows.of(b).iter().chain(&gained[b as usize]).map(|&n| (b, n)));
    }
    Rows::distinct(buffers, &pairs, nodes)
}

/// The sizes of buffers: table 1.5 of the specification.
fn sizes(program: &Program, strategy: &dyn Strategy) -> Result<Vec<Size>, ProgramFault> {
    let mut renamed = vec![false; program.buffers.len()];
    program.real.iter().for_each(|&(m, _)| renamed[m as usize] = true);
    let mut sizes = vec![Size::default(); program.buffers.len()];
    // Children come after their parents, so from the last to the first every sum is complete when it is passed on.
    let mut of_children = vec![0i64; program.buffers.len()];
    for b in (0..program.buffers.len()).rev() {
        let buffer = &program.buffers[b];
        let own = match buffer.layout {
            // Inputs count where they may be freed.
            _ if buffer.by.is_none() => continue,
            _ if renamed[b] && !strategy.counts_renames() => continue,
            Layout::Nothing => continue,
            Layout::Alias if !strategy.counts_aliases() => continue,
            Layout::MultiOutput => of_children[b],
            Layout::Owned | Layout::Alias => buffer.bytes,
        };
        let free = if buffer.layout == Layout::MultiOutput { 0 } else { own };
        match buffer.parent {
            None => sizes[b] = Size { alloc: own, free },
            Some(parent) => {
                sizes[b] = Size { alloc: 0, free };
                let sum = &mut of_children[parent as usize];
                *sum = sum.checked_add(own).ok_or_else(|| ProgramFault::Bytes(buffer.name.clone()))?;
            }
        }
    }
    Ok(sizes)
}
