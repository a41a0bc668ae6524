//! Random cases: a plan made of plain values, which proptest can shrink, and what it builds.

use super::build::build;
use graph_oracle::case::{
    Case, Comment, Expectation, Expected, Part, PassConfig, Place, Recorded, RecordedGraphs, Setting, Subject,
};
use graph_oracle::graph::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Names that words of the format can be mistaken for, and names that need quotes.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(vec!["x", "y", "g0", "w0", "relu_1", "a.b", "_"]),
        2 => select(vec![
            "None", "f32", "end", "inf", "nan", "strided", "contiguous_format", "dp", "tp", "output", "input",
            "attr", "expect", "pass", "graph", "slice", "sym", "none", "world", "sound", "outcome", "after",
        ]),
    ]
    .prop_map(str::to_string)
    .boxed()
    .prop_union(text().boxed())
}

/// Any text, the awkward ones included.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec![
            "",
            " ",
            "\"",
            "'",
            "\"'",
            "\\",
            "\u{fdd0}",
            "\r\u{fdd0}",
            "a b",
            "#",
            "---",
            "0",
            "-inf",
            "\u{0}",
            "é",
            "{}"
        ])
        .prop_map(str::to_string),
        "[a-z/.:-]{0,6}",
        any::<String>(),
    ]
}

#[derive(Clone, Debug)]
pub enum PlanValue {
    Plain(PlainValue),
    Node(usize),
    Dangling(String),
    List(Vec<PlanValue>),
    Slice(Vec<PlanValue>),
    Dict(Vec<(PlanValue, PlanValue)>),
    Symbolic(PlanExpr),
}

#[derive(Clone, Debug)]
pub enum PlainValue {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Complex(f64, f64),
    Str(String),
    Dtype(Dtype),
    Device(String),
    MemoryFormat(String),
    Layout(String),
    Function(String),
}

pub type PlanExpr = (String, Option<i64>);

fn expr() -> impl Strategy<Value = PlanExpr> {
    let text = prop_oneof![select(vec!["s0", "u0", "sym", "2*s0"]).prop_map(str::to_string), text()];
    (text, option::of(prop_oneof![Just(4), any::<i64>()]))
}

fn int() -> impl Strategy<Value = i64> {
    prop_oneof![0i64..10, any::<i64>(), Just(i64::MAX), Just(i64::MIN), Just(i64::MAX - 1)]
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![
        select(vec![
            0.0,
            -0.0,
            1.0,
            1e16,
            1e-7,
            5e-324,
            f64::MAX,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN
        ]),
        any::<f64>(),
    ]
}

fn value() -> impl Strategy<Value = PlanValue> {
    let plain = prop_oneof![
        Just(PlainValue::None),
        any::<bool>().prop_map(PlainValue::Bool),
        int().prop_map(PlainValue::Int),
        float().prop_map(PlainValue::Float),
        (float(), float()).prop_map(|(a, b)| PlainValue::Complex(a, b)),
        name().prop_map(PlainValue::Str),
        select(Dtype::ALL).prop_map(PlainValue::Dtype),
        prop_oneof![Just("cpu".to_string()), text()].prop_map(PlainValue::Device),
        prop_oneof![Just("preserve_format".to_string()), name()].prop_map(PlainValue::MemoryFormat),
        prop_oneof![Just("strided".to_string()), name()].prop_map(PlainValue::Layout),
        name().prop_map(PlainValue::Function),
    ];
    let leaf = prop_oneof![
        3 => plain.prop_map(PlanValue::Plain),
        3 => any::<usize>().prop_map(PlanValue::Node),
        1 => name().prop_map(PlanValue::Dangling),
        1 => expr().prop_map(PlanValue::Symbolic),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(PlanValue::List),
            vec(inner.clone(), 3).prop_map(PlanValue::Slice),
            vec((inner.clone(), inner), 0..3).prop_map(PlanValue::Dict),
        ]
    })
}

#[derive(Clone, Debug)]
pub enum PlanOut {
    Absent,
    None,
    Tensor(PlanTensor),
    Int(i64),
    SymInt(PlanExpr),
    SymBool(PlanExpr),
    Other(String),
    Tuple(Vec<PlanOut>),
    Dict(Vec<(String, PlanOut)>),
}

#[derive(Clone, Debug)]
pub struct PlanTensor {
    pub shape: Vec<PlanDim>,
    /// `None`: row-major, where that is a number.
    pub stride: Option<Vec<PlanDim>>,
    pub dtype: Dtype,
    pub grad: Option<bool>,
    pub device: String,
    pub storage: Option<u32>,
    pub offset: i64,
    pub bytes: Option<Option<PlanDim>>,
}

pub type PlanDim = Result<i64, PlanExpr>;

fn dim() -> impl Strategy<Value = PlanDim> {
    prop_oneof![6 => (0i64..9).prop_map(Ok), 1 => int().prop_map(Ok), 1 => expr().prop_map(Err)]
}

fn tensor() -> impl Strategy<Value = PlanTensor> {
    (
        vec(dim(), 0..4),
        option::weighted(0.3, vec(dim(), 4)),
        select(Dtype::ALL),
        option::weighted(0.3, any::<bool>()),
        prop_oneof![3 => Just("cuda:0".to_string()), 2 => Just("cpu".to_string()), 1 => text()],
        option::of(any::<u32>()),
        prop_oneof![3 => Just(0), 1 => int()],
        option::weighted(0.3, option::of(dim())),
    )
        .prop_map(|(shape, stride, dtype, grad, device, storage, offset, bytes)| PlanTensor {
            shape,
            stride,
            dtype,
            grad,
            device,
            storage,
            offset,
            bytes,
        })
}

fn out() -> impl Strategy<Value = PlanOut> {
    let leaf = prop_oneof![
        1 => Just(PlanOut::Absent),
        1 => Just(PlanOut::None),
        6 => tensor().prop_map(PlanOut::Tensor),
        1 => int().prop_map(PlanOut::Int),
        1 => expr().prop_map(PlanOut::SymInt),
        1 => expr().prop_map(PlanOut::SymBool),
        1 => name().prop_map(PlanOut::Other),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(PlanOut::Tuple),
            vec((text(), inner), 0..3).prop_map(PlanOut::Dict),
        ]
    })
}

#[derive(Clone, Debug)]
pub struct PlanNode {
    pub name: String,
    pub op: Op,
    pub target: Option<String>,
    pub args: Vec<PlanValue>,
    pub kwargs: Vec<(String, PlanValue)>,
    pub out: PlanOut,
    pub tags: Option<PlanTags>,
    pub module: Option<String>,
    pub desc: Option<String>,
}

pub type PlanTags = (
    (Option<String>, Option<String>, Option<String>, Option<String>),
    (Option<i64>, Option<i64>, Option<bool>, Option<bool>),
);

/// A call of something, often a collective whose group size may be left out.
fn call() -> impl Strategy<Value = (Op, Option<String>, Vec<PlanValue>)> {
    let group =
        || select(vec!["dp", "tp", "0"]).prop_map(|g| PlanValue::Plain(PlainValue::Str(g.to_string())));
    let size = || prop_oneof![(0i64..5).prop_map(|n| PlanValue::Plain(PlainValue::Int(n))), group()];
    let target = |t: &str| Some(t.to_string());
    prop_oneof![
        (
            select(vec!["aten.relu.default", "relu", "mylib.f.default", "a.b", "wait", "operator.getitem"]),
            vec(value(), 0..3)
        )
            .prop_map(move |(t, args)| (Op::Call, target(t), args)),
        (any::<usize>(), size(), group()).prop_map(move |(x, size, group)| {
            let target = Some("_c10d_functional.all_gather_into_tensor.default".to_string());
            (Op::Call, target, vec![PlanValue::Node(x), size, group])
        }),
        (any::<usize>(), int()).prop_map(|(x, i)| {
            let index = PlanValue::Plain(PlainValue::Int(i));
            (Op::Call, Some("operator.getitem".to_string()), vec![PlanValue::Node(x), index])
        }),
        (name(), vec(value(), 0..2)).prop_map(|(t, args)| (Op::Call, Some(t), args)),
        (select(vec![Op::Placeholder, Op::GetAttr, Op::Output]), option::of(name()), vec(value(), 0..2))
            .prop_map(|(op, target, args)| (op, target, args)),
        vec(value(), 1).prop_map(|args| (Op::Output, None, args)),
    ]
}

fn node() -> impl Strategy<Value = PlanNode> {
    let tags = (
        (option::of(name()), option::of(text()), option::of(text()), option::of(text())),
        (option::of(int()), option::of(int()), option::of(any::<bool>()), option::of(any::<bool>())),
    );
    (
        name(),
        call(),
        vec((name(), value()), 0..2),
        out(),
        option::weighted(0.2, tags),
        option::weighted(0.1, text()),
        option::weighted(0.1, text()),
    )
        .prop_map(|(name, (op, target, args), kwargs, out, tags, module, desc)| {
            // The statement `output` is the common form of an output.
            let plain = op == Op::Output && target.is_none();
            let name = if plain { "output".to_string() } else { name };
            let kwargs = if plain { Vec::new() } else { kwargs };
            PlanNode { name, op, target, args, kwargs, out, tags, module, desc }
        })
}

#[derive(Clone, Debug)]
pub struct PlanGraph {
    pub name: String,
    pub kind: String,
    pub world: World,
    pub symbols: Vec<Symbol>,
    pub nodes: Vec<PlanNode>,
    pub ordering: Vec<(usize, usize)>,
    pub renames: Vec<(usize, usize)>,
    pub clusters: Vec<(String, Vec<usize>)>,
}

fn world() -> impl Strategy<Value = World> {
    let ranks = || {
        prop_oneof![
            Just(vec![0, 1, 2, 3]),
            Just((0..9).collect::<Vec<u32>>()),
            vec(0u32..12, 0..7),
            vec(any::<u32>(), 0..3)
        ]
    };
    let group = (
        prop_oneof![3 => select(vec!["dp", "tp", "0"]).prop_map(str::to_string), 1 => name()],
        prop_oneof![3 => Just(None), 1 => any::<u32>().prop_map(Some)],
        option::weighted(0.2, 0u32..9),
        prop_oneof![1 => Just(Vec::new()), 3 => vec(ranks(), 1..3)],
    )
        .prop_map(|(name, size, recorded_rank, instances)| {
            let first = instances.first().map_or(4, |i: &Vec<u32>| i.len() as u32);
            Group { name, size: size.unwrap_or(first), recorded_rank, instances }
        });
    (option::of(prop_oneof![0u32..9, any::<u32>()]), vec(group, 0..3))
        .prop_map(|(ranks, groups)| World { ranks, groups })
}

fn symbols() -> impl Strategy<Value = Vec<Symbol>> {
    let name = prop_oneof![select(vec!["s0", "u0", "none", "sym"]).prop_map(str::to_string), text()];
    let range = prop_oneof![Just(("0".to_string(), "int_oo".to_string())), (text(), text())];
    let symbol = (name, option::of(prop_oneof![Just(4), int()]), range, any::<bool>());
    vec(symbol.prop_map(|(name, hint, range, unbacked)| Symbol { name, hint, range, unbacked }), 0..3)
}

fn graph() -> impl Strategy<Value = PlanGraph> {
    let pair = (any::<usize>(), any::<usize>());
    (
        (prop_oneof![Just(String::new()), name()], prop_oneof![Just(String::new()), name()]),
        world(),
        symbols(),
        vec(node(), 0..6),
        vec(pair, 0..3),
        vec(pair, 0..2),
        vec((name(), vec(any::<usize>(), 0..3)), 0..2),
    )
        .prop_map(|((name, kind), world, symbols, nodes, ordering, renames, clusters)| PlanGraph {
            name,
            kind,
            world,
            symbols,
            nodes,
            ordering,
            renames,
            clusters,
        })
}

fn setting() -> impl Strategy<Value = Setting> {
    let leaf = prop_oneof![select(vec!["64MiB", "all_gather", "-1"]).prop_map(str::to_string), text()];
    leaf.prop_map(Setting::Text).prop_recursive(2, 6, 3, |inner| vec(inner, 0..3).prop_map(Setting::List))
}

fn pass() -> impl Strategy<Value = PassConfig> {
    (name(), vec((name(), setting()), 0..4)).prop_map(|(name, settings)| {
        let mut pass = PassConfig::new(name);
        for (key, setting) in settings {
            if pass.get(&key).is_none() {
                pass.options.push((key, setting));
            }
        }
        pass
    })
}

fn expectation() -> impl Strategy<Value = Expectation> {
    let expected = prop_oneof![
        Just(Expected::Sound),
        Just(Expected::Refused),
        Just(Expected::Undecided),
        vec(prop_oneof![Just("bucket/homogeneous".to_string()), text()], 1..3).prop_map(Expected::Violates),
    ];
    let subject =
        prop_oneof![Just(Subject::Reference), Just(Subject::Outcome), name().prop_map(Subject::Candidate),];
    prop_oneof![
        4 => (subject, expected).prop_map(|(of, is)| Expectation::Verdict { of, is }),
        1 => name().prop_map(Expectation::Fault),
    ]
}

/// A random case. Comments stand where a text can say so: not above the first line, which is the head's.
pub fn arbitrary_case() -> impl Strategy<Value = Case> {
    let recorded = vec((option::of(any::<u8>()), option::of(graph()), graph()), 0..3);
    let comments = vec((any::<usize>(), any::<bool>(), "[ -~é]{0,12}"), 0..5);
    (graph(), option::of(pass()), vec(expectation(), 0..3), recorded, comments).prop_map(
        |(graph, pass, expectations, recorded, comments)| {
            let mut case = Case { graph: build(&graph), pass, expectations, ..Case::default() };
            case.outcome = outcome(&recorded);
            let places = places(&case);
            for (place, beside, text) in comments {
                let place = &places[place % places.len()];
                let lines_only = matches!(place, Place::Head | Place::End);
                let first = places.get(1) == Some(place);
                if (lines_only && beside) || (first && !beside) {
                    continue;
                }
                // One comment fits beside a line.
                if beside && case.comments.iter().any(|c| c.beside && c.place == *place) {
                    continue;
                }
                case.comments.push(Comment {
                    place: place.clone(),
                    beside,
                    text: text.trim_end().to_string(),
                });
            }
            case
        },
    )
}

type PlanRecorded = (Option<u8>, Option<PlanGraph>, PlanGraph);

fn outcome(recorded: &[PlanRecorded]) -> Option<Recorded> {
    let graphs = |(_, unrepaired, repaired): &PlanRecorded| RecordedGraphs {
        unrepaired: unrepaired.as_ref().map(build),
        repaired: build(repaired),
        refused: unrepaired.is_none().then(|| "because \"of\" this".to_string()),
    };
    let first = recorded.first()?;
    if first.0.is_none() {
        return Some(Recorded::Same(Box::new(graphs(first))));
    }
    let mut ranks: Vec<(u32, RecordedGraphs)> = Vec::new();
    for entry in recorded {
        let rank = u32::from(entry.0.unwrap_or(255));
        if ranks.iter().all(|(r, _)| *r != rank) {
            ranks.push((rank, graphs(entry)));
        }
    }
    Some(Recorded::PerRank(ranks))
}

/// What comments can belong to, in file order: the head, then the lines, then the end.
fn places(case: &Case) -> Vec<Place> {
    let mut places = vec![Place::Head];
    let nodes = |graph: &Graph, part: Part| -> Vec<Place> {
        let mut names: Vec<String> = graph.ids().map(|id| graph.name(id).to_string()).collect();
        let clusters = graph.clusters.iter().map(|c| Place::Cluster(part, c.name.clone()));
        // Names that stand twice would print their comments twice.
        let clusters: Vec<Place> = clusters.collect();
        let once = names.iter().all(|n| names.iter().filter(|m| *m == n).count() == 1);
        names.truncate(if once { names.len() } else { 0 });
        let distinct = clusters.iter().all(|c| clusters.iter().filter(|d| *d == c).count() == 1);
        let clusters = if distinct { clusters } else { Vec::new() };
        names.into_iter().map(|n| Place::Node(part, n)).chain(clusters).collect()
    };
    if case.graph.world != World::default() {
        places.push(Place::World);
    }
    places.extend(case.pass.iter().map(|_| Place::Pass));
    places.extend(nodes(&case.graph, Part::Before));
    places.extend((0..case.expectations.len()).map(Place::Expectation));
    for (rank, graphs) in case.outcome.iter().flat_map(|o| o.entries()) {
        if let Some(unrepaired) = &graphs.unrepaired {
            places.push(Place::Section(Part::Unrepaired(rank)));
            places.extend(nodes(unrepaired, Part::Unrepaired(rank)));
        }
        places.push(Place::Section(Part::After(rank)));
        places.extend(nodes(&graphs.repaired, Part::After(rank)));
    }
    places.push(Place::End);
    places
}

/// Damage to a text.
#[derive(Clone, Debug)]
pub struct Mutation(Vec<(usize, usize, u8)>);

pub fn arbitrary_mutation() -> impl Strategy<Value = Mutation> {
    let byte = prop_oneof![select(b"()[]{},:=@%|?#\"'-\n 0x".to_vec()), any::<u8>()];
    vec((0usize..4, any::<usize>(), byte), 1..4).prop_map(Mutation)
}

impl Mutation {
    pub fn apply(&self, bytes: &mut Vec<u8>) {
        for &(kind, at, byte) in &self.0 {
            let at = at % (bytes.len() + 1);
            match kind {
                0 => bytes.insert(at, byte),
                1 if at < bytes.len() => bytes[at] = byte,
                2 if at < bytes.len() => drop(bytes.remove(at)),
                3 => bytes.truncate(at),
                _ => {}
            }
        }
    }
}
