//! Estimates, graphs of ranks, and claims about memory.

use graph_oracle::case::{Case, Claim, ClaimedLife, EstimateTable, Increment, Offset, PassConfig, Program};
use graph_oracle::format::{json, text};
use graph_oracle::graph::Graph;

const GRAPH: &str = "world 4 ranks\nx = input : f32[8]\noutput x\n";

fn parse(text: &str) -> Case {
    text::parse(text).unwrap_or_else(|e| panic!("{}\n{text}", e.render(None)))
}

fn errors(text: &str) -> Vec<String> {
    match text::parse(text) {
        Ok(case) => panic!("this was read:\n{case}"),
        Err(errors) => {
            errors.errors.iter().map(|e| format!("{}:{}: {}", e.line, e.column, e.message)).collect()
        }
    }
}

#[test]
fn whatever_is_held_is_printed_and_read_again() {
    let names: Vec<String> =
        ["a", "t.2", "f32", "two words", "\"", "none", "order", "x'y"].map(String::from).to_vec();
    let steps: Vec<(i64, i64)> = (0..40).map(|i| (i64::MAX - i, i64::MIN + i)).collect();
    let life = |i: usize| ClaimedLife {
        name: names[i].clone(),
        bytes: i as i64 - 1,
        alloc: i.is_multiple_of(2).then_some(i as u32),
        frees: (0..i as u32).collect(),
    };
    let claims = [
        Claim::default(),
        Claim {
            lives: Some(Vec::new()),
            increments: Some(Vec::new()),
            offsets: Some(Vec::new()),
            verifier_runs: Some(Vec::new()),
            steps: Some(Vec::new()),
            order: Some(Vec::new()),
            ..Claim::default()
        },
        Claim {
            order: Some(names.clone()),
            peak: Some(i64::MAX),
            before: Some(i64::MIN),
            steps: Some(steps.clone()),
            lives: Some((0..names.len()).map(life).collect()),
            estimates: names.iter().map(|name| (name.clone(), -1)).collect(),
            increments: Some(vec![
                Increment { order: names.clone(), steps: steps.clone(), potential: Some((names.clone(), 3)) },
                Increment::default(),
            ]),
            offsets: Some(vec![
                Offset { name: names[3].clone(), offset: -8, in_place_of: Some(names[4].clone()) },
                Offset { name: names[0].clone(), offset: 0, in_place_of: None },
            ]),
            after: None,
            verifier_runs: Some(vec![Vec::new(), names.clone(), vec!["a\u{fdd0}b".to_string()]]),
        },
    ];
    let graph = parse(GRAPH).graph;
    for claim in claims {
        let mut pass = PassConfig::new("memory");
        let seconds = names.iter().zip([0.0, -0.0, 1e-5, 1e300, f64::NAN, f64::INFINITY, -1.5, 5e-324]);
        pass.estimates = vec![
            EstimateTable::default(),
            EstimateTable {
                rank: Some(7),
                memory: Some(3e12),
                link: Some(f64::NEG_INFINITY),
                latency: Some(0.1),
                seconds: seconds.map(|(name, seconds)| (name.clone(), seconds)).collect(),
            },
        ];
        let program = |ranks: &[u32]| Program { ranks: ranks.to_vec(), graph: graph.clone() };
        let case = Case {
            pass: Some(pass),
            programs: vec![program(&[1]), program(&[9, 2, 3, 4, 5, 6, 7])],
            claim: Some(Box::new(claim)),
            ..Case::of_graph(graph.clone())
        };
        let printed = case.to_string();
        let again = parse(&printed);
        assert_eq!(again, case, "{printed}");
        assert_eq!(again.to_string(), printed);
    }
}

#[test]
fn comments_stay_where_they_stand() {
    let text = format!(
        "{}\n--- rank 1 2  # others\n# above\nx = input : f32[8]  # beside\noutput x\n\n--- claim  # what is said\n\
         # of the peak\npeak 8  # bytes\nlife x 8  # whole\n# the end\n",
        GRAPH.replace("x = ", "pass memory\n# figures\nestimates {x: 1.0}  # all\nx = ")
    );
    assert_eq!(parse(&text).to_string(), text.replace("x = input :", "x = input:"));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let wrong = |rest: &str| errors(&format!("{GRAPH}{rest}"));
    for (rest, told) in [
        ("--- rank", "4:9: expected a rank, found the end of the file"),
        ("--- rank x\n", "4:10: expected a rank, found `x`"),
        ("--- rank 3 to 1\n", "4:10: the range 3 to 1 is empty"),
        ("--- rank 0 to 4294967295\n", "4:10: more than 16777216 ranks in lists"),
        ("--- rank 1 1\n", "4:1: rank 1 is given a graph for the second time"),
        ("--- rank 1\n--- rank 2 to 3 1\n", "5:1: rank 1 is given a graph for the second time"),
        ("--- claim\n--- claim\n", "5:1: this section stands here for the second time"),
        (
            "--- claim rank 1\n",
            "4:1: a section is `--- after`, `--- unrepaired`, `--- forward`, `--- backward`, `--- rank N` or `--- claim`",
        ),
        ("--- claim\npeak\n", "5:5: expected bytes, found the end of the line"),
        ("--- claim\npeak 1\npeak 2\n", "6:1: `peak` stands here for the second time"),
        ("--- claim\npeek 1\n", "5:1: a claim has no line \"peek\""),
        ("--- claim\nx = relu(x)\n", "5:1: a claim has no line \"x\""),
        ("--- claim\nlives []\nlife x 8\n", "6:1: a line above says that there are none"),
        ("--- claim\nlife x 8\nlives []\n", "6:1: `lives` stands here for the second time"),
        ("--- claim\nlife x 99999999999999999999\n", "5:8: an integer that does not fit 64 bits"),
        ("--- claim\nlife x 8 from -1\n", "5:15: expected a step, found -1"),
        ("--- claim\nsteps [(1, 2), (3\n", "5:18: expected `,`, found the end of the line"),
        ("--- claim\noffset x 0 in place y\n", "5:21: expected `of`, found `y`"),
        (
            "--- claim\nincrement order [] steps [] foresees 1\n",
            "5:39: expected `of`, found the end of the line",
        ),
        ("estimates {x: 1.0}\n", "4:1: `estimates` belongs to a pass, and none stands above"),
        (
            "pass schedule\nestimates {x: 1e999}\n",
            "5:15: a number that does not fit a float; infinity is written `inf`",
        ),
        ("pass schedule\nestimates {x: 1, x: 2}\n", "5:18: x stands here for the second time"),
        (
            "pass schedule\nestimates rank 1\nestimates rank 1\n",
            "6:1: these estimates stand here for the second time",
        ),
        (
            "pass schedule\nestimates speed=1\n",
            "5:11: expected `memory=`, `link=`, `latency=` or a table such as `{g0: 1e-5}`",
        ),
        ("--- rank 1\nestimates {x: 1.0}\n", "5:1: `estimates` belongs to a pass, and none stands above"),
        ("pass schedule\n--- rank 1\nestimates {}\n", "6:1: `estimates` must stand before the first section"),
    ] {
        assert_eq!(wrong(rest).first().map(String::as_str), Some(told), "{rest}");
    }
}

/// Whatever is cut off or changed, reading gives a case or errors.
#[test]
fn every_beginning_and_every_change_of_a_byte_is_read_or_refused() {
    let whole = "world 2 ranks, groups dp = [0 1]\npass schedule budget=[0.1, 0.2]\nestimates rank 1 link=1e9 {%\"a b\": 1e-5}\n\
                 x = input : f32[8]\noutput x\n--- rank 1\ny = input : f32[8]\noutput y\n--- claim\norder [x, t.2]\n\
                 steps [(1, 2),\n (3, 4)]\nlife x 8 from 1 freed 2 3\nincrement order [x] steps [(1, 2)] foresees 3 of [x]\n\
                 offset x 0 in place of y\nrun [\"a\", 'b']\nestimate %e 3\n";
    let check = |bytes: &[u8]| {
        if let Ok(case) = text::parse(bytes) {
            let printed = case.to_string();
            assert_eq!(parse(&printed).to_string(), printed);
        }
    };
    check(whole.as_bytes());
    for end in 0..whole.len() {
        check(&whole.as_bytes()[..end]);
        for byte in [b'\n', b' ', b'[', b']', b'"', b'-', b'9', 0] {
            let mut changed = whole.as_bytes().to_vec();
            changed[end] = byte;
            check(&changed);
        }
    }
}

#[test]
fn a_case_without_these_is_what_it_was() {
    let case = Case::of_graph(Graph::new("g"));
    assert_eq!(case, parse(&case.to_string()));
    assert_ne!(case, Case { claim: Some(Box::default()), ..case.clone() });
    assert_ne!(case, Case { programs: vec![Program::default()], ..case.clone() });
}

/// Bodies, one inside another, in the graph before the pass and in the one after it.
const BODIES: &str = "\
x  = input                                  : f32[4]
m  = attr outer                             : other(GraphModule)
y  = higher_order.invoke_subgraph(m, \"a\", x): (f32[4])
y0 = y[0]                                   : f32[4]
output (y0)
body outer  # what it is
  x  = input                                  : f32[4]
  m  = attr inner                             : other(GraphModule)
  y  = higher_order.invoke_subgraph(m, \"b\", x): (f32[4])
  y0 = y[0]                                   : f32[4]
  output (y0)
  body inner
    x = input  : f32[4]
    y = relu(x): f32[4] after x
    output (y)
  end
end
expect sound

--- after
x = input  : f32[4]
y = relu(x): f32[4]
output (y)
body unused
  output ()
end
";

#[test]
fn bodies_are_printed_as_they_were_read() {
    let case = parse(BODIES);
    assert_eq!(case.to_string(), BODIES);
    let outer = case.graph.subgraph("outer").expect("a body");
    let inner = outer.subgraph("inner").expect("a body of the body");
    assert_eq!((case.graph.len(), outer.len(), inner.len()), (5, 5, 3));
    assert_eq!(case.graph.expanded(), 13);
    let mut written = Vec::new();
    json::write(&case.graph, &mut written).expect("written to memory");
    let read = json::read(&written).unwrap_or_else(|e| panic!("{e}")).into_graph().expect("a graph");
    assert_eq!(read.difference(&case.graph), None);
}

#[test]
fn bodies_have_limits() {
    let nested = |levels: usize| {
        let begin: String = (0..levels).map(|n| format!("body b{n}\n")).collect();
        format!("x = input : f32[4]\noutput x\n{begin}{}", "end\n".repeat(levels))
    };
    assert_eq!(parse(&nested(32)).graph.subgraphs.len(), 1);
    assert_eq!(errors(&nested(40)), ["35:1: bodies inside one another: the limit is bodies (32 levels)"]);
    // Each runs the one inside it twice.
    let twice = |levels: usize| {
        let calls = "m = attr b : other(GraphModule)\nu = a.b(m) : None\nv = a.b(m) : None\n";
        let begin: String = (0..levels).map(|_| format!("body b\n{calls}")).collect();
        format!("{calls}output ()\n{begin}{}", "end\n".repeat(levels))
    };
    assert_eq!(parse(&twice(12)).graph.subgraphs.len(), 1);
    let message = "bodies in the places of their calls: the limit is expanded (262144 nodes)";
    assert_eq!(errors(&twice(24)), [format!("125:1: {message}")]);
}
