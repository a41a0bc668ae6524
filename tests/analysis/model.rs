//! The slow model: every storage is a set of elements, every access is a set of elements.

use graph_oracle::analysis::Touch;
use graph_oracle::graph::NodeId;
use std::collections::BTreeSet;

/// What a place may show: elements of a storage, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    pub storage: usize,
    pub elements: Vec<usize>,
    pub certain: bool,
    /// Whether exactly these elements; else some of them.
    pub exact: bool,
}

impl Shown {
    pub fn select(&self, choose: &dyn Fn(&[usize]) -> Vec<usize>) -> Shown {
        // What is not known exactly stays as it is.
        let elements = if self.exact { choose(&self.elements) } else { self.elements.clone() };
        Shown { elements, ..self.clone() }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ModelAccess {
    pub node: NodeId,
    pub touch: Touch,
    pub storage: usize,
    pub elements: BTreeSet<usize>,
    pub certain: bool,
    pub version: u32,
    /// The launch that a wait for another one ended.
    in_passing: Option<NodeId>,
}

#[derive(Default)]
pub struct Model {
    /// For each storage: the node and place that allocates it, and its elements.
    pub storages: Vec<(NodeId, usize, usize)>,
    /// For each node, for each place.
    pub shown: Vec<Vec<Vec<Shown>>>,
    pub accesses: Vec<ModelAccess>,
    versions: Vec<u32>,
    /// For each node its inputs.
    pub inputs: Vec<Vec<NodeId>>,
    /// (start, input), and whether it was ended, and by a wait of its own.
    launches: Vec<(NodeId, NodeId, bool, bool)>,
    /// Nodes that draw or have effects; whether that is certain.
    pub random: Vec<(NodeId, bool)>,
    pub effects: Vec<(NodeId, bool)>,
    pub asserts: Vec<NodeId>,
}

impl Model {
    pub fn node(&mut self, id: NodeId, inputs: &[NodeId]) {
        assert_eq!(id.index(), self.shown.len());
        self.shown.push(Vec::new());
        self.inputs.push(inputs.to_vec());
    }

    pub fn fresh(&mut self, id: NodeId, elements: usize) {
        let storage = self.storages.len();
        self.storages.push((id, self.shown[id.index()].len(), elements));
        self.versions.push(0);
        let shown = Shown { storage, elements: (0..elements).collect(), certain: true, exact: true };
        self.shown[id.index()].push(vec![shown]);
    }

    /// What the first place of a node shows.
    pub fn shown(&self, id: NodeId) -> Vec<Shown> {
        self.shown[id.index()].first().cloned().unwrap_or_default()
    }

    pub fn show(&mut self, id: NodeId, shown: Vec<Shown>) {
        self.show_many(id, vec![shown]);
    }

    pub fn show_many(&mut self, id: NodeId, places: Vec<Vec<Shown>>) {
        self.shown[id.index()] = places;
    }

    fn access(&mut self, node: NodeId, touch: Touch, shown: &[Shown], certain: bool) {
        for part in shown {
            let again = |a: &ModelAccess| (a.node, a.touch, a.storage) == (node, Touch::Write, part.storage);
            let first = !self.accesses.iter().any(again);
            let version = &mut self.versions[part.storage];
            *version += u32::from(touch == Touch::Write && first);
            self.accesses.push(ModelAccess {
                node,
                touch,
                storage: part.storage,
                elements: part.elements.iter().copied().collect(),
                certain: part.certain && certain && part.exact,
                version: *version,
                in_passing: None,
            });
        }
    }

    /// What `node` has not touched in this way yet.
    fn untouched(&self, node: NodeId, touch: Touch, of: NodeId, certain: bool) -> Vec<Shown> {
        let known = |part: &Shown| {
            let elements: BTreeSet<usize> = part.elements.iter().copied().collect();
            let certain = part.certain && part.exact && certain;
            self.accesses.iter().any(|a| {
                (a.node, a.touch, a.storage, a.certain) == (node, touch, part.storage, certain)
                    && a.elements == elements
            })
        };
        self.shown(of).into_iter().filter(|part| !known(part)).collect()
    }

    pub fn read(&mut self, node: NodeId, of: NodeId) {
        let shown = self.untouched(node, Touch::Read, of, true);
        self.access(node, Touch::Read, &shown, true);
    }

    pub fn write(&mut self, node: NodeId, of: NodeId, certain: bool) {
        let shown = self.untouched(node, Touch::Write, of, certain);
        self.access(node, Touch::Write, &shown, certain);
    }

    pub fn launch(&mut self, start: NodeId, input: NodeId) {
        self.launches.push((start, input, false, false));
    }

    /// A wait ends `start`, and all that was certainly launched into a storage that `start` certainly shows and has no
    /// wait of its own, before or behind this one.
    pub fn wait(&mut self, wait: NodeId, start: NodeId) {
        let certain = |shown: &[Shown]| -> BTreeSet<usize> {
            shown.iter().filter(|part| part.certain).map(|part| part.storage).collect()
        };
        let storages = certain(&self.shown(start));
        for at in 0..self.launches.len() {
            let (launched, input, is_ended, has_own) = self.launches[at];
            let (is_own, landed) = (launched == start, self.shown(launched));
            let in_passing = !is_own && !is_ended && !certain(&landed).is_disjoint(&storages);
            if !(in_passing || is_own && !has_own) {
                continue;
            }
            if is_own {
                self.accesses.retain(|access| access.in_passing != Some(start));
            }
            let first = self.accesses.len();
            let released = self.shown(input);
            self.access(wait, Touch::Release, &released, true);
            self.access(wait, Touch::Land, &landed, true);
            self.accesses[first..]
                .iter_mut()
                .for_each(|access| access.in_passing = in_passing.then_some(launched));
            self.launches[at] = (launched, input, true, is_own);
        }
    }

    pub fn unknown(&mut self, id: NodeId, inputs: &[NodeId], elements: usize) {
        inputs.iter().for_each(|&input| self.read(id, input));
        inputs.iter().for_each(|&input| self.write(id, input, false));
        let whole = |model: &Model, storage: usize| Shown {
            storage,
            elements: (0..model.storages[storage].2).collect(),
            certain: false,
            exact: false,
        };
        let mut shown: Vec<Shown> = Vec::new();
        for &input in inputs {
            for part in self.shown(input) {
                if !shown.iter().any(|s| s.storage == part.storage) {
                    shown.push(whole(self, part.storage));
                }
            }
        }
        let own = self.storages.len();
        self.storages.push((id, 0, elements));
        self.versions.push(0);
        shown.push(whole(self, own));
        self.show(id, shown);
        self.random.push((id, false));
        self.effects.push((id, false));
    }

    /// Pairs of nodes that conflict in a storage: for certain, and maybe.
    pub fn conflicts(&self) -> (BTreeSet<(u32, u32)>, BTreeSet<(u32, u32)>) {
        let (mut certain, mut maybe) = (BTreeSet::new(), BTreeSet::new());
        for (i, b) in self.accesses.iter().enumerate() {
            for a in &self.accesses[..i] {
                let writes = a.touch.writes() || b.touch.writes();
                if a.storage == b.storage
                    && writes
                    && a.node != b.node
                    && !a.elements.is_disjoint(&b.elements)
                {
                    let set = if a.certain && b.certain { &mut certain } else { &mut maybe };
                    set.insert((a.node.0, b.node.0));
                }
            }
        }
        (certain, maybe)
    }
}

/// Pairs connected by a path along the one set of edges and not along the other.
pub fn differences(
    nodes: usize,
    a: &BTreeSet<(u32, u32)>,
    b: &BTreeSet<(u32, u32)>,
) -> Vec<(usize, usize, bool)> {
    let (a, b) = (closure(nodes, a), closure(nodes, b));
    let pairs = (0..nodes).flat_map(|i| (0..nodes).map(move |j| (i, j)));
    pairs.filter(|&(i, j)| a[i][j] != b[i][j]).map(|(i, j)| (i, j, a[i][j])).collect()
}

/// All pairs connected by a path, for edges from lower to higher numbers.
fn closure(nodes: usize, edges: &BTreeSet<(u32, u32)>) -> Vec<Vec<bool>> {
    let mut reach = vec![vec![false; nodes]; nodes];
    for from in (0..nodes).rev() {
        for &(_, to) in edges.range((from as u32, 0)..(from as u32 + 1, 0)) {
            reach[from][to as usize] = true;
            for further in 0..nodes {
                reach[from][further] |= reach[to as usize][further];
            }
        }
    }
    reach
}
