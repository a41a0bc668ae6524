//! Windows of real graphs stand alone; shrunk, they run; edited, they stay valid.

use super::{execution_faults, graph_faults};
use crate::generate::{Seeded, Source, edit, shrink, window};
use crate::graph::{Graph, Op};
use crate::recorded::{beside, files, project, read};

/// The largest file that a debug build reads.
const LARGE: u64 = 6_000;

/// What a window has wrong. Its graph may leave collectives unwaited.
fn window_faults(graph: &Graph) -> Vec<String> {
    let unwaited = |fault: &String| fault.ends_with("is never waited for");
    graph_faults(graph, true).into_iter().filter(|fault| !unwaited(fault)).collect()
}

#[derive(Default, Debug)]
struct Counts {
    windows: usize,
    shrunk: usize,
    edits: usize,
}

impl Counts {
    /// Cuts, shrinks and edits.
    fn check(
        &mut self,
        source: &mut Seeded,
        graph: &Graph,
        start: usize,
        length: usize,
        what: &str,
    ) -> Vec<String> {
        let mut all = Vec::new();
        let mut note = |stage: &str, faults: Vec<String>| {
            all.extend(faults.into_iter().map(|fault| format!("{what} {start} {length} {stage}: {fault}")));
        };
        let Some(cut) = window(graph, start, length) else { return all };
        self.windows += 1;
        note("window", window_faults(&cut));
        let calls = cut.nodes().iter().filter(|node| node.op == Op::Call).count();
        assert!((1..=2 * length).contains(&calls), "{calls} of {length}");
        let Some(small) = shrink(&cut, 2) else { return all };
        self.shrunk += 1;
        note("shrunk", window_faults(&small));
        note("executed", execution_faults(&small));
        assert!(small.world.groups.iter().all(|group| group.size <= 4), "{:?}", small.world);
        let mut last = small;
        for _ in 0..4 {
            let Some((kind, next)) = edit(source, &last) else { continue };
            self.edits += 1;
            note(&format!("{kind:?}"), window_faults(&next));
            note(&format!("{kind:?} executed"), execution_faults(&next));
            last = next;
        }
        all
    }
}

#[test]
fn windows_stand_alone() {
    let own = project().join("corpus/real");
    let mut paths = files(&own);
    assert!(!paths.is_empty());
    paths.extend(beside());
    if cfg!(debug_assertions) {
        paths.retain(|path| std::fs::metadata(path).is_ok_and(|data| data.len() < LARGE));
    }
    let mut source = Seeded::new(9);
    let (mut counts, mut faults) = (Counts::default(), Vec::new());
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let graph = read(&path);
        // More of the graphs of the repository, which are always there.
        let times = if path.starts_with(&own) { 3 } else { 1 };
        for length in [1, 12, 40].repeat(times) {
            let start = source.below(graph.len() as u32) as usize;
            faults.extend(counts.check(&mut source, &graph, start, length, &name));
        }
    }
    println!("{counts:?}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(counts.shrunk * 2 > counts.windows && counts.edits > counts.shrunk, "{counts:?}");
}

/// Shrinking makes a real window small enough to execute.
#[test]
fn sizes_shrink_consistently() {
    let path = project().join("corpus/real/small_fsdp12_joint.json.gz");
    let graph = read(&path);
    let elements = |graph: &Graph| -> i64 {
        graph.ids().filter_map(|id| graph.numel(graph.tensor_of(id)?)).max().unwrap_or(0)
    };
    let cut = window(&graph, graph.len() / 3, 40).unwrap();
    let small = shrink(&cut, 2).unwrap();
    assert_eq!(small.len(), cut.len());
    assert!(elements(&small) * 4 <= elements(&cut), "{} of {}", elements(&small), elements(&cut));
}

/// A window has the bodies that its calls run, and its inputs before everything else.
#[test]
fn bodies_come_along() {
    let text = "world 4 ranks, groups dp = [0 1 2 3]\n\
        x = input : f32[4]\nm = attr region : other(GraphModule)\ny = neg(x) : f32[4]\n\
        r = higher_order.invoke_subgraph(m, \"region\", x, y) : (f32[16])\na = r[0] : f32[16]\noutput a\n\
        body region\n  p = input : f32[4]\n  q = input : f32[4]\n  s = add(p, q) : f32[4]\n  \
        g = all_gather(s, dp) : f32[16]\n  w = wait(g) : f32[16]\n  output (w)\nend\n\
        body unused\n  p = input : f32[4]\n  output (p)\nend\n";
    let graph = crate::format::text::parse(text.as_bytes()).unwrap().graph;
    let cut = window(&graph, 3, 2).unwrap();
    let ops = |graph: &Graph| graph.nodes().iter().map(|node| node.op).collect::<Vec<_>>();
    assert_eq!(ops(&cut)[..3], [Op::Placeholder, Op::Placeholder, Op::GetAttr]);
    assert_eq!(window_faults(&cut), [""; 0]);
    let names: Vec<&str> = cut.subgraphs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["region"]);
    let small = shrink(&cut, 2).unwrap();
    let body = small.subgraph("region").unwrap();
    let gather = body.find("g").unwrap();
    assert!(body.args(gather).contains(&crate::graph::Value::Int(2)), "{:?}", body.args(gather));
}
