//! Kernels against PyTorch's eager results, bit for bit, or within the units of the last place that a case states.
//!
//! Runs where GRAPH_ORACLE_PYTHON names a Python with torch: `GRAPH_ORACLE_PYTHON=python cargo test --lib peer`.
//! Elsewhere a line says what was skipped.

mod elementwise;
mod layouts;
mod movement;
mod programs;
mod reductions;

use super::*;
use crate::hash::mix;
use crate::ops::{Kind, rows};

/// Numbers from one seed.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = mix(self.0, 1);
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n.max(1)
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// A value that shows rounding, signs and special cases.
    fn float(&mut self) -> f64 {
        match self.below(12) {
            0 => self.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 0.5, 2.0]),
            1 => (self.below(2000) as f64 - 1000.0) * 37.3,
            _ => (self.below(1 << 20) as f64 / (1 << 17) as f64) - 4.0,
        }
    }

    fn int(&mut self) -> f64 {
        self.below(13) as f64 - 6.0
    }
}

/// Cases under construction.
struct Cases {
    chance: Chance,
    json: Vec<String>,
}

/// What an input holds.
#[derive(Clone, Copy, PartialEq)]
enum Values {
    /// Small integers.
    Ints,
    /// Positive integers: what integers can be divided by.
    NotZero,
    /// Whatever shows rounding, signs and special cases.
    Any,
}

const FLOAT8: [Dtype; 2] = [Dtype::F8E4M3, Dtype::F8E5M2];
const FLOATS: [Dtype; 4] = [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16];
const INTS: [Dtype; 5] = [Dtype::I64, Dtype::I32, Dtype::I16, Dtype::I8, Dtype::U8];

fn everything() -> Vec<Dtype> {
    FLOATS.into_iter().chain(INTS).chain([Dtype::Bool]).collect()
}

impl Cases {
    /// Adds an input of random layout and contents. Elements may lie in one place.
    fn input(&mut self, s: &mut Sketch, dtype: Dtype, shape: &[i64], ints: bool) -> NodeId {
        let values = if ints { Values::Ints } else { Values::Any };
        self.with_values(s, dtype, shape, values, true)
    }

    /// An input that can be written to.
    fn target(&mut self, s: &mut Sketch, dtype: Dtype, shape: &[i64], ints: bool) -> NodeId {
        let values = if ints { Values::Ints } else { Values::Any };
        self.with_values(s, dtype, shape, values, false)
    }

    fn with_values(
        &mut self,
        s: &mut Sketch,
        dtype: Dtype,
        shape: &[i64],
        values: Values,
        overlaps: bool,
    ) -> NodeId {
        let name = format!("x{}", s.graph.len());
        let strides = match self.chance.below(if overlaps { 3 } else { 2 }) {
            0 => layout::contiguous(Dims::new(shape).unwrap()).to_vec(),
            1 => {
                // Dimensions in another order, with gaps.
                let mut order: Vec<usize> = (0..shape.len()).collect();
                (0..shape.len()).for_each(|i| order.swap(i, self.chance.below(shape.len())));
                let mut strides = vec![0; shape.len()];
                let mut step = 1 + self.chance.below(2) as i64;
                for i in order {
                    strides[i] = step;
                    step *= shape[i].max(1);
                }
                strides
            }
            _ => {
                let mut strides = layout::contiguous(Dims::new(shape).unwrap()).to_vec();
                if !strides.is_empty() {
                    let at = self.chance.below(strides.len());
                    strides[at] = 0;
                }
                strides
            }
        };
        let id = s.strided(&name, dtype, shape, &strides);
        let count: i64 = shape.iter().product();
        let mut value = || match values {
            Values::Ints => self.chance.int(),
            Values::Any => self.chance.float(),
            Values::NotZero => 1.0 + self.chance.below(6) as f64,
        };
        let values: Vec<f64> = (0..count).map(|_| value()).collect();
        s.give(&name, 0, dtype, &values);
        id
    }

    /// Ends a case: what the interpreter makes of it, ready to be compared.
    fn done(&mut self, name: String, s: Sketch, outputs: &[NodeId], ulps: u32) {
        self.near(name, s, outputs, ulps, 0.0);
    }

    /// Like [`Cases::done`]; a difference of up to `absolute` is allowed as well.
    fn near(&mut self, name: String, mut s: Sketch, outputs: &[NodeId], ulps: u32, absolute: f64) {
        s.output(outputs);
        let domain = Concrete::default();
        let mut text = Vec::new();
        crate::format::json::write(&s.graph, &mut text).unwrap();
        let graph = String::from_utf8(text).unwrap();
        let ops = Ops::of(&s.graph);
        let options = Options { given: s.given.clone(), ..Options::default() };
        let list = |cells: Vec<String>| format!("[{}]", cells.join(","));
        let result = Program::new(&s.graph, &ops, &s.world).and_then(|program| {
            let inputs = inputs(&program, 0, &domain, &options)?;
            Ok((inputs, run(&[program], &s.world, &domain, &options)?))
        });
        let (inputs, rest) = match result {
            Err(failure) => (Vec::new(), format!("\"failure\":{:?},\"outputs\":[]", failure.to_string())),
            Ok((inputs, run)) => {
                let outputs = run.ranks[0].outputs.iter().map(|(_, leaf)| match leaf {
                    Leaf::Tensor(tensor) => {
                        let cell = |(i, c): (usize, &u64)| match tensor.poison.get(i) {
                            Some(true) => "null".to_string(),
                            _ => c.to_string(),
                        };
                        let cells = tensor.cells.iter().enumerate().map(cell).collect();
                        format!(
                            "{{\"dtype\":{:?},\"shape\":{:?},\"cells\":{}}}",
                            tensor.dtype.name(),
                            tensor.shape,
                            list(cells)
                        )
                    }
                    _ => "null".to_string(),
                });
                (inputs, format!("\"outputs\":{}", list(outputs.collect())))
            }
        };
        let inputs = inputs.iter().filter_map(|input| match &input.value {
            Leaf::Tensor(t) => {
                let cells = t.cells.iter().map(u64::to_string).collect();
                Some(format!("{{\"name\":{:?},\"cells\":{}}}", input.name, list(cells)))
            }
            _ => None,
        });
        self.json.push(format!(
            "{{\"name\":{name:?},\"ulps\":{ulps},\"absolute\":{absolute:?},\"inputs\":{},\"graph\":{graph},{rest}}}",
            list(inputs.collect())
        ));
    }
}

/// What PyTorch refuses on a CPU and the oracle computes: dtypes for which there is no kernel on a CPU, and divisions
/// of integers by zero, which only a CPU notices.
const ONLY_PYTORCH: [&str; 3] = ["not implemented for", "ZeroDivisionError", "Promotion for Float8 Types"];

/// What PyTorch from PyPI does not run on a CPU.
const NOT_ON_A_CPU: [&str; 3] = ["autoparallel.dtype_cast.default", "aten.mm.dtype", "aten.bmm.dtype"];

/// The operators with a kernel that gives one result.
fn computed(kind: Kind) -> bool {
    match kind {
        Kind::View(_)
        | Kind::Move(_)
        | Kind::Fill(_)
        | Kind::Unary(_)
        | Kind::Binary(_)
        | Kind::Reduce(_) => true,
        Kind::Matmul(_) | Kind::Cast | Kind::Arange | Kind::Where | Kind::Clamp | Kind::MaskedFill => true,
        _ => matches!(kind, Kind::Fma | Kind::Cumsum),
    }
}

#[test]
fn kernels_give_what_pytorch_gives() {
    let Some(python) = std::env::var_os("GRAPH_ORACLE_PYTHON") else {
        println!(
            "skipped: the kernels are not compared, there is no Python with torch (GRAPH_ORACLE_PYTHON)"
        );
        return;
    };
    let mut cases = Cases { chance: Chance(7), json: Vec::new() };
    cases.by_schema();
    cases.binary();
    cases.ternary();
    cases.casts();
    cases.reductions();
    cases.products();
    cases.indices();
    cases.moves();
    cases.creation();
    cases.views();
    cases.writes();
    cases.bytes();
    cases.aliases();
    let file = std::env::temp_dir().join(format!("graph-oracle-kernels-{}.json", std::process::id()));
    std::fs::write(&file, format!("[{}]", cases.json.join(",\n"))).unwrap();
    let script =
        std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("tests/peer/kernels.py");
    let output = std::process::Command::new(python).arg(script).arg(&file).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let _ = std::fs::remove_file(&file);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (told, last) = text.trim_end().rsplit_once('\n').unwrap_or(("", text.trim_end()));
    let allowed = |line: &&str| {
        line.contains("raises in PyTorch only") && ONLY_PYTORCH.iter().any(|reason| line.contains(reason))
    };
    let wrong: Vec<&str> = told.lines().filter(|line| !allowed(line)).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.json.len(), wrong.join("\n"));
    let summary: serde_json::Value = serde_json::from_str(last).unwrap();
    println!("{}", summary["summary"]);
    // Every kernel has agreed at least once.
    let agreed: Vec<&str> =
        summary["targets"].as_array().unwrap().iter().filter_map(|target| target.as_str()).collect();
    let missing: Vec<&str> = rows()
        .iter()
        .filter(|info| computed(info.kind) && info.schema.is_some())
        .map(|info| &info.target[..])
        .filter(|target| !agreed.contains(target) && !NOT_ON_A_CPU.contains(target))
        .collect();
    assert!(missing.is_empty(), "{} not compared: {}", missing.len(), missing.join(" "));
}
