//! Graphs for the memory passes: what makes the accounting hard, and little else.
//!
//! Views of views, partial writes, names that change, tuples of which elements are dead, outputs that are views of
//! inputs or of each other, collectives with `out=` buffers and in place, results that nobody reads, storages of no
//! bytes, storages that shrink to nothing and grow again, tensors of the host. The graph is written in the text case
//! format and read back, so every case is at once a file.
//!
//! Nothing is read or written that a collective in flight uses, and every collective is waited for, unless
//! [`MemoryCases::never_waited`] asks otherwise.

use super::{Seeded, Source};
use crate::case::{Case, PassConfig};
use crate::format::text;
use crate::graph::Graph;
use crate::memory::METHODS;
use std::fmt::Write;

/// What may occur.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryCases {
    /// The most steps that write nodes.
    pub steps: u32,
    /// Percent of the collectives that nobody waits for.
    pub never_waited: u32,
}

impl Default for MemoryCases {
    /// Some 30 nodes, all collectives waited for.
    fn default() -> MemoryCases {
        MemoryCases { steps: 24, never_waited: 0 }
    }
}

/// A value at hand: a flat f32 tensor.
#[derive(Clone)]
struct Value {
    name: String,
    /// Elements.
    size: u32,
    /// The root whose memory it is.
    root: usize,
    read: bool,
    /// Whether its bytes are all of its root's, in order.
    whole: bool,
}

struct Flight {
    start: String,
    /// Roots that it reads, and those that it writes.
    reads: Vec<usize>,
    writes: Vec<usize>,
    result: Value,
}

struct Writer<'s> {
    source: &'s mut dyn Source,
    text: String,
    values: Vec<Value>,
    flights: Vec<Flight>,
    roots: usize,
    /// Roots that exist outside of the graph.
    inputs: usize,
    next: usize,
    shrunk: Vec<usize>,
}

const RESIZE: &str = "facts inductor.resize_storage_bytes_.default '{\"kind\":\"op\",\"namespace\":\"inductor\",\"schema\":\
                      \"inductor::resize_storage_bytes_(Tensor variable, SymInt new_size) -> ()\",\"is_mutable\":false,\
                      \"mutated_args\":[],\"ret_aliases_arg\":[],\"is_view\":false}'\n";

/// Case number `index` of the campaign `seed`: a graph, and what an implementation with several methods is asked for.
pub fn case(seed: u64, index: u64) -> Case {
    let mut source = Seeded::case(seed, index);
    let graph = MemoryCases::default().graph(&mut source).unwrap_or_default();
    let pass = PassConfig::new("memory").with("method", source.one_of(METHODS));
    Case { pass: Some(pass), ..Case::of_graph(graph) }
}

impl MemoryCases {
    /// The text of a case.
    pub fn text(&self, mut source: impl Source) -> String {
        let mut writer = Writer {
            source: &mut source,
            text: format!("world 2 ranks, groups dp = [0 1]\n{RESIZE}"),
            values: Vec::new(),
            flights: Vec::new(),
            roots: 0,
            inputs: 0,
            next: 0,
            shrunk: Vec::new(),
        };
        writer.inputs();
        let steps = writer.source.length(3, self.steps);
        for _ in 0..steps {
            if !writer.source.step() {
                break;
            }
            writer.step();
        }
        while !writer.flights.is_empty() {
            if self.never_waited > 0 && writer.source.below(100) < self.never_waited {
                writer.flights.pop();
            } else {
                writer.wait();
            }
        }
        writer.output();
        writer.text
    }

    /// A case. `None` only where the text that was written is no graph, which is a defect of the generator.
    pub fn graph(&self, source: impl Source) -> Option<Graph> {
        text::parse(self.text(source)).ok().map(|case| case.graph)
    }
}

impl Writer<'_> {
    fn name(&mut self, stem: &str) -> String {
        self.next += 1;
        // Without the stroke some would be dtypes, `c64` for one.
        format!("{stem}_{}", self.next)
    }

    fn below(&mut self, n: usize) -> usize {
        self.source.below(n as u32) as usize
    }

    fn inputs(&mut self) {
        for _ in 0..=self.source.below(3) {
            let size = [8, 8, 16, 4, 0][self.below(5)];
            let name = self.name("x");
            let _ = writeln!(self.text, "{name} = input : f32[{size}]");
            self.fresh(name, size);
        }
        self.inputs = self.roots;
    }

    fn fresh(&mut self, name: String, size: u32) -> Value {
        let value = Value { name, size, root: self.roots, read: false, whole: true };
        self.roots += 1;
        self.values.push(value.clone());
        value
    }

    fn written_in_flight(&self, root: usize) -> bool {
        self.shrunk.contains(&root) || self.flights.iter().any(|flight| flight.writes.contains(&root))
    }

    fn in_flight(&self, root: usize) -> bool {
        self.written_in_flight(root) || self.flights.iter().any(|flight| flight.reads.contains(&root))
    }

    /// A value that may be read (or written), more often a late one.
    fn operand(&mut self, fits: &dyn Fn(&Self, &Value) -> bool) -> Option<Value> {
        let fitting: Vec<usize> = (0..self.values.len()).filter(|&i| fits(self, &self.values[i])).collect();
        let back = match self.source.percent(70) {
            true => self.below(fitting.len().min(4)),
            false => self.below(fitting.len()),
        };
        let at = *fitting.get(fitting.len().checked_sub(1 + back)?)?;
        self.values[at].read = true;
        Some(self.values[at].clone())
    }

    fn readable(&mut self) -> Option<Value> {
        self.operand(&|w, value| !w.written_in_flight(value.root))
    }

    fn step(&mut self) {
        match self.source.weighted(&[30, 20, 12, 8, 6, 8, 6, 4, 4, 3, 2]) {
            0 => self.compute(),
            1 => self.view(),
            2 => self.write(),
            3 => self.tuple(),
            4 => self.collective(),
            5 => self.wait(),
            6 => self.in_place_collective(),
            7 => self.out_collective(),
            8 => self.split(),
            9 => self.resize(),
            _ => self.host(),
        }
    }

    fn compute(&mut self) {
        let Some(a) = self.readable() else { return };
        let size = a.size;
        let other = self.operand(&|w, value| value.size == size && !w.written_in_flight(value.root));
        let name = self.name("c");
        let _ = match other.filter(|_| self.source.percent(40)) {
            Some(b) => writeln!(self.text, "{name} = add({}, {})", a.name, b.name),
            None => {
                let op = ["relu", "neg", "clone"][self.below(3)];
                writeln!(self.text, "{name} = {op}({})", a.name)
            }
        };
        self.fresh(name, size);
    }

    /// A value that shows memory of another one.
    fn shown(&mut self, name: String, size: u32, of: &Value, whole: bool) {
        self.values.push(Value { name, size, root: of.root, read: false, whole: of.whole && whole });
    }

    fn view(&mut self) {
        // A view of what is in flight reads nothing, but what is made of it would.
        let Some(a) = self.readable() else { return };
        let name = self.name("v");
        match self.below(3) {
            0 => {
                let _ = writeln!(self.text, "{name} = alias({})", a.name);
                self.shown(name, a.size, &a, true);
            }
            1 => {
                let _ = writeln!(self.text, "{name} = view({}, [{}])", a.name, a.size);
                self.shown(name, a.size, &a, true);
            }
            _ => {
                let from = self.source.below(a.size);
                let to = self.source.between(from, a.size);
                let _ = writeln!(self.text, "{name} = slice({}, 0, {from}, {to})", a.name);
                self.shown(name, to - from, &a, false);
            }
        }
    }

    fn write(&mut self) {
        let Some(a) = self.operand(&|w, value| !w.in_flight(value.root)) else { return };
        let size = a.size;
        let name = self.name("w");
        let other = self.operand(&|w, value| value.size == size && !w.written_in_flight(value.root));
        let _ = match other.filter(|_| self.source.percent(50)) {
            Some(b) => writeln!(self.text, "{name} = copy_({}, {})", a.name, b.name),
            None => writeln!(self.text, "{name} = add_({}, 1)", a.name),
        };
        self.shown(name, size, &a, true);
    }

    fn tuple(&mut self) {
        let Some(a) = self.readable() else { return };
        let name = self.name("t");
        let size = a.size;
        let _ = writeln!(
            self.text,
            "{name} = native_dropout({}, 0.5, True) : (f32[{size}], bool[{size}])",
            a.name
        );
        self.roots += 2;
        if self.source.percent(80) {
            let element = self.name("e");
            let _ = writeln!(self.text, "{element} = {name}[0]");
            let root = self.roots - 2;
            self.values.push(Value { name: element, size: a.size, root, read: false, whole: true });
        }
    }

    fn split(&mut self) {
        let Some(a) = self.operand(&|w, value| value.size >= 4 && !w.written_in_flight(value.root)) else {
            return;
        };
        let name = self.name("s");
        let half = a.size / 2;
        let _ = writeln!(self.text, "{name} = split_with_sizes({}, [{half}, {}])", a.name, a.size - half);
        for (i, size) in [(0, half), (1, a.size - half)] {
            if self.source.percent(70) {
                let element = self.name("e");
                let _ = writeln!(self.text, "{element} = {name}[{i}]");
                self.shown(element, size, &a, false);
            }
        }
    }

    /// A tensor of the host, which does not count where accelerators are in use. Nobody mixes it with the others.
    fn host(&mut self) {
        let (tensor, name) = (self.name("h"), self.name("h"));
        let _ = writeln!(self.text, "{tensor} = empty([8], dtype=f32, device=@cpu) : f32[8] @cpu");
        let _ = writeln!(self.text, "{name} = fill_({tensor}, 0) : f32[8] @cpu");
        self.roots += 1;
    }

    fn collective(&mut self) {
        let Some(a) = self.readable() else { return };
        let name = self.name("g");
        let gather = self.source.percent(60) || a.size % 2 == 1;
        let (op, size) = match gather {
            true => ("all_gather", 2 * a.size),
            false => ("all_reduce", a.size),
        };
        let _ = match gather {
            true => writeln!(self.text, "{name} = {op}({}, dp)", a.name),
            false => writeln!(self.text, "{name} = {op}({}, \"sum\", dp)", a.name),
        };
        let result = Value { name: String::new(), size, root: self.roots, read: false, whole: true };
        self.roots += 1;
        self.flights.push(Flight { start: name, reads: vec![a.root], writes: vec![result.root], result });
    }

    fn in_place_collective(&mut self) {
        let Some(a) = self.operand(&|w, value| !w.in_flight(value.root) && value.root >= w.inputs) else {
            return;
        };
        let name = self.name("r");
        let _ =
            writeln!(self.text, "{name} = _c10d_functional.all_reduce_.default({}, \"sum\", \"dp\")", a.name);
        let result = Value { read: false, ..a.clone() };
        self.flights.push(Flight { start: name, reads: Vec::new(), writes: vec![a.root], result });
    }

    fn out_collective(&mut self) {
        let Some(a) = self.readable() else { return };
        let (buffer, name) = (self.name("b"), self.name("o"));
        let size = 2 * a.size;
        let _ = writeln!(self.text, "{buffer} = empty([{size}], dtype=f32, device=@cuda:0)");
        let _ = writeln!(self.text, "{name} = all_gather_out({}, dp, out={buffer})", a.name);
        let result = Value { name: String::new(), size, root: self.roots, read: false, whole: true };
        self.roots += 1;
        self.flights.push(Flight { start: name, reads: vec![a.root], writes: vec![result.root], result });
    }

    fn wait(&mut self) {
        if self.flights.is_empty() {
            return;
        }
        let at = self.below(self.flights.len());
        let flight = self.flights.remove(at);
        let name = self.name("a");
        let _ = writeln!(self.text, "{name} = wait({})", flight.start);
        self.values.push(Value { name, ..flight.result });
    }

    /// The memory of a whole value goes and comes back, written anew.
    fn resize(&mut self) {
        let fits = |w: &Self, value: &Value| {
            value.whole && value.size > 0 && value.root >= w.inputs && !w.in_flight(value.root)
        };
        let Some(a) = self.operand(&fits) else { return };
        let name = self.name("z");
        let _ = writeln!(self.text, "{name} = inductor.resize_storage_bytes_.default({}, 0) : None", a.name);
        self.shrunk.push(a.root);
        self.compute();
        let name = self.name("z");
        let bytes = 4 * a.size;
        let _ = writeln!(
            self.text,
            "{name} = inductor.resize_storage_bytes_.default({}, {bytes}) : None",
            a.name
        );
        let name = self.name("f");
        let _ = writeln!(self.text, "{name} = fill_({}, 0) : f32[{}]", a.name, a.size);
        self.shrunk.pop();
        self.shown(name, a.size, &a, true);
    }

    fn output(&mut self) {
        let mut returned: Vec<String> = Vec::new();
        for i in 0..self.values.len() {
            let percent = if self.values[i].read { 12 } else { 55 };
            if self.source.percent(percent) {
                returned.push(self.values[i].name.clone());
            }
        }
        if returned.is_empty() {
            returned.extend(self.values.last().map(|value| value.name.clone()));
        }
        let _ = writeln!(self.text, "output ({})", returned.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::in_flight::in_flight;
    use crate::analysis::validate::validate;
    use crate::generate::Seeded;
    use crate::memory::replay::Facts;

    #[test]
    fn cases_draw_every_method() {
        let drawn: std::collections::BTreeSet<String> = (0..200)
            .filter_map(|index| Some(super::case(3, index).pass?.word("method").ok()??.to_string()))
            .collect();
        assert!(METHODS.iter().all(|method| drawn.contains(*method)), "{drawn:?}");
        assert_eq!(drawn.len(), METHODS.len());
    }

    #[test]
    fn cases_are_valid() {
        for case in 0..200 {
            let text = MemoryCases::default().text(Seeded::case(3, case));
            let graph = text::parse(&text).unwrap_or_else(|e| panic!("{}\n{text}", e.render(None))).graph;
            assert_eq!(validate(&graph), [], "{text}");
            let facts = Facts::new(&graph);
            assert_eq!(in_flight(&graph, &facts.ops, &facts.storages, &facts.collectives), [], "{text}");
        }
    }
}
