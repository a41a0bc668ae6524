//! Each class of rule on small graphs, pairs that looser ways to shrink get wrong, and recorded graphs.

use super::{Shrinking, Small};
use crate::format::{json, text};
use crate::graph::Graph;
use std::path::{Path, PathBuf};
use std::time::Instant;

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            files(&path, found);
        } else if path.to_string_lossy().ends_with(".json.gz") {
            found.push(path);
        }
    }
    found.sort();
}

fn recorded(path: &Path) -> Option<Graph> {
    json::read(&std::fs::read(path).ok()?).ok()?.into_graph()
}

fn elements(graph: &Graph) -> f64 {
    let tensors = graph.ids().flat_map(|id| graph.tensors_of(graph.node(id).out));
    tensors.filter_map(|tensor| graph.numel(graph.tensor(tensor))).map(|n| n as f64).sum()
}

/// One line for a shrunk graph or a pair.
fn report(name: &str, graphs: &[&Graph]) -> bool {
    let began = Instant::now();
    let found = Shrinking::new(graphs);
    let result = found.as_ref().map_err(String::clone).and_then(|found| Ok((found, found.small(0, 3)?)));
    let seconds = began.elapsed().as_secs_f64();
    let nodes: usize = graphs.iter().map(|graph| graph.len()).sum();
    let before: f64 = graphs.iter().map(|graph| elements(graph)).sum();
    match result {
        Ok((found, first)) => {
            let after: f64 = first.graphs.iter().map(elements).sum();
            let doubts = found.doubts(0);
            println!(
                "ok {name}: {nodes} nodes, {before:.1e} -> {after:.1e}, {} readings, {} kept, {} doubts, {seconds:.2} s {:?}",
                found.readings,
                found.kept.len(),
                doubts.len(),
                first.sizes
            );
            if std::env::var("SHRINK_WORDS").is_ok() {
                println!("   kept {:?}\n   doubts {doubts:?}", found.kept);
            }
            true
        }
        Err(why) => {
            println!("no {name}: {nodes} nodes, {seconds:.2} s: {why}");
            false
        }
    }
}

#[test]
#[ignore = "reads folders outside of the project, named in SHRINK_FOLDERS"]
fn folders() {
    let Ok(folders) = std::env::var("SHRINK_FOLDERS") else { return };
    let mut paths = Vec::new();
    folders.split(':').for_each(|folder| files(Path::new(folder), &mut paths));
    let mut shrunk = 0;
    for path in &paths {
        let Some(graph) = recorded(path) else { continue };
        shrunk += usize::from(report(&path.display().to_string(), &[&graph]));
    }
    println!("{shrunk} of {}", paths.len());
}

#[test]
#[ignore = "reads files outside of the project, named in SHRINK_PAIRS: a,b:c,d,e"]
fn pairs() {
    let Ok(pairs) = std::env::var("SHRINK_PAIRS") else { return };
    for pair in pairs.split(':') {
        let graphs: Vec<Graph> = pair.split(',').filter_map(|path| recorded(Path::new(path))).collect();
        report(pair, &graphs.iter().collect::<Vec<&Graph>>());
    }
}

#[test]
fn recorded_graphs_shrink() {
    let mut paths = Vec::new();
    files(Path::new("../../corpus/real"), &mut paths);
    let mut shrunk = 0;
    for path in &paths {
        let Some(graph) = recorded(path) else { continue };
        for start in [3, 7] {
            match all(&[&graph], start) {
                Ok(readings) => {
                    shrunk += usize::from(start == 3);
                    let same = |small: &Graph| {
                        small.len() == graph.len() && small.ids().all(|id| small.name(id) == graph.name(id))
                    };
                    assert!(readings.iter().flat_map(|small| &small.graphs).all(same));
                }
                Err(why) => assert!(why.contains("readings"), "{}: {why}", path.display()),
            }
        }
    }
    assert!(shrunk >= 48, "{shrunk} of {}", paths.len());
}

fn graph(lines: &str) -> Graph {
    let text = format!("world 4 ranks, groups dp = [0 1 2 3]\n{lines}\n");
    text::parse(&text).unwrap_or_else(|errors| panic!("{text}\n{}", errors.render(None))).graph
}

/// All readings at the sizes from `start`.
fn all(graphs: &[&Graph], start: i64) -> Result<Vec<Small>, String> {
    let found = Shrinking::new(graphs)?;
    (0..found.readings).map(|reading| found.small(reading, start)).collect()
}

fn small(lines: &[&str], start: i64) -> Vec<Small> {
    let graphs: Vec<Graph> = lines.iter().map(|lines| graph(lines)).collect();
    let graphs: Vec<&Graph> = graphs.iter().collect();
    all(&graphs, start).unwrap_or_else(|why| panic!("{lines:?}: {why}"))
}

/// What is kept, and how many assignments of sizes prove an equality under the first reading, or why none do.
fn proof(lines: &str) -> (Vec<String>, Result<usize, Vec<String>>) {
    let graph = graph(lines);
    let graphs = [&graph];
    let found = Shrinking::new(&graphs).unwrap_or_else(|why| panic!("{lines}: {why}"));
    let number = found.proof(0, true).map(|all| all.filter(Result::is_ok).count());
    (found.kept.clone(), number)
}

/// The only reading of a graph, as text.
fn printed(lines: &str) -> String {
    let readings = small(&[lines], 3);
    assert_eq!(readings.len(), 1, "{lines}");
    let (kept, _) = proof(lines);
    assert!(kept.is_empty(), "{kept:?}");
    text::print_graph(&readings[0].graphs[0]).split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// Each rule: a graph, and what must stand in it at small sizes. (4 is the size of the group, and so of nothing else.)
#[test]
fn rules() {
    let table: &[(&str, &[&str])] = &[
        (
            "x = input : f32[64, 100]\ny = input : f32[100]\nz = add(x, y) : f32[64, 100]\nw = relu(z) : f32[64, 100]\noutput (w)",
            &["y = input : f32[3] z = add(x, y): f32[5, 3]"],
        ),
        (
            "x = input : f32[64, 100]\ny = permute(x, [1, 0]) : f32[100, 64]\nz = unsqueeze(y, 1) : f32[100, 1, 64]\nw = expand(z, [100, 9, 64]) : f32[100, 9, 64]\noutput (w)",
            &["expand(z, [5, 6, 3])"],
        ),
        (
            "x = input : f32[8, 64, 100]\ny = view(x, [512, 100]) : f32[512, 100]\nz = view(y, [8, 6400]) : f32[8, 6400]\noutput (z)",
            &["x = input : f32[3, 5, 6]", "view(x, [15, 6])", "view(y, [3, 30])"],
        ),
        (
            "x = input : f32[512, 100]\ny = view(x, [8, -1, 100]) : f32[8, 64, 100]\noutput (y)",
            &["x = input : f32[15, 6]", "view(x, [3, 5, 6])"],
        ),
        (
            "x = input : f32[10, 20]\ny = input : f32[20, 30]\nb = input : f32[30]\nz = addmm(b, x, y) : f32[10, 30]\noutput (z)",
            &["y = input : f32[6, 3]", "f32[5, 3]"],
        ),
        (
            "x = input : f32[5, 10, 20]\ny = input : f32[5, 20, 30]\nz = bmm(x, y) : f32[5, 10, 30]\noutput (z)",
            &["bmm(x, y): f32[3, 5, 7]"],
        ),
        (
            "x = input : f32[10, 20]\ny = mean(x, [1], True) : f32[10, 1]\nz = sum(x, [0]) : f32[20]\nm = amax(x, [-1]) : f32[10]\noutput (y, z, m)",
            &["f32[3, 1] z", "f32[5] m", "amax(x, [-1]) : f32[3]"],
        ),
        (
            "x = input : f32[100, 9]\ny = slice(x, 0, 30, 70) : f32[40, 9]\nz = narrow(x, 0, 70, 30) : f32[30, 9]\ns = select(x, 0, 30) : f32[9]\noutput (y, z, s)",
            &["slice(x, 0, 5, 12)", "narrow(x, 0, 12, 5)", "select(x, 0, 5)"],
        ),
        (
            "x = input : f32[30, 9]\na, b, c = split(x, 10) : (f32[10, 9], f32[10, 9], f32[10, 9])\ny = add(a, b) : f32[10, 9]\nz = add(y, c) : f32[10, 9]\noutput (z)",
            &["x = input : f32[18, 5]", "split(x, 6)"],
        ),
        (
            "x = input : f32[30, 9]\nl = split_with_sizes(x, [10, 20]) : (f32[10, 9], f32[20, 9])\na = l[0] : f32[10, 9]\nb = l[1] : f32[20, 9]\nc = cat([b, a]) : f32[30, 9]\noutput (c)",
            &["split_with_sizes(x, [5, 6])", "cat([b, a]) : f32[11, 3]"],
        ),
        (
            "x = input : f32[30, 9]\np = pad(x, [0, 0, 5, -10]) : f32[25, 9]\noutput (p)",
            &["x = input : f32[12, 3]", "pad(x, [0, 0, 6, -7]): f32[11, 3]"],
        ),
        (
            "x = input : f32[30, 9]\ny = input : f32[30, 9]\nc = stack([x, y]) : f32[2, 30, 9]\noutput (c)",
            &["f32[2, 5, 3]"],
        ),
        (
            "x = input : f32[30]\nf = full([30, 8], 0.0) : f32[30, 8]\ni = arange(30) : i64[30]\ny = unsqueeze(x, 1) : f32[30, 1]\nz = add(f, y) : f32[30, 8]\noutput (z, i)",
            &["full([3, 5], 0.0)", "arange(3)"],
        ),
        (
            "w = input : f32[1000, 64]\nt = input : i64[5, 7]\ne = embedding(w, t) : f32[5, 7, 64]\noutput (e)",
            &["w = input : f32[7, 6]", "f32[3, 5, 6]"],
        ),
        (
            "x = input : f32[30, 9]\ni = input : i64[30, 5]\ng = gather(x, 1, i) : f32[30, 5]\noutput (g)",
            &["gather(x, 1, i): f32["],
        ),
        (
            "x = input : f32[10, 64]\ns = softmax(x, 1, False) : f32[10, 64]\noutput (s)",
            &["softmax(x, 1, False): f32[3, 5]"],
        ),
        (
            "x = input : f32[10, 64]\nw = input : f32[64]\nl, m, r = native_layer_norm(x, [64], w, None, 1e-5) : (f32[10, 64], f32[10, 1], f32[10, 1])\noutput (l)",
            &["native_layer_norm(x, [5], w, None, 1e-5)"],
        ),
        (
            "x = input : f32[10, 64]\ng = all_gather(x, dp) : f32[40, 64]\nw = wait(g) : f32[40, 64]\nr = reduce_scatter(w, \"sum\", dp) : f32[10, 64]\nv = wait(r) : f32[10, 64]\noutput (v)",
            &["all_gather(x, dp) : f32[12, 5]", "f32[3, 5]"],
        ),
        (
            "x = input : f32[40, 64]\na = all_to_all(x, [10, 10, 10, 10], [10, 10, 10, 10], dp) : f32[40, 64]\nw = wait(a) : f32[40, 64]\noutput (w)",
            &["all_to_all(x, [3, 3, 3, 3], [3, 3, 3, 3], dp): f32[12, 5]"],
        ),
        (
            "x = input : f32[10, 64]\nv, i = topk(x, 6) : (f32[10, 6], i64[10, 6])\noutput (v, i)",
            &["x = input : f32[5, 9]", "topk(x, 3)"],
        ),
    ];
    for (lines, wanted) in table {
        let text = printed(lines);
        assert!(wanted.iter().all(|want| text.contains(want)), "{lines}\n{wanted:?}\n{text}");
    }
}

/// The line of node `name` in graph `at` of a reading, without its result.
fn line(small: &Small, at: usize, name: &str) -> String {
    let text = text::print_graph(&small.graphs[at]);
    let line = text.lines().find(|line| line.starts_with(&format!("{name} "))).expect("a node");
    line.split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// Scalars are read one by one: as the count that they may be, and as constants.
#[test]
fn numbers_that_are_counts() {
    let mean = "x = input : f32[64, 4096]\ny = mean(x, [1]) : f32[64]\noutput (y)";
    let by = |n: &str| {
        format!("x = input : f32[64, 4096]\ns = sum(x, [1]) : f32[64]\ny = div(s, {n}) : f32[64]\noutput (y)")
    };
    for start in [3, 7] {
        let readings = small(&[mean, &by("4096")], start);
        assert_eq!(readings.len(), 2);
        let large = readings[0].sizes.iter().find(|pair| pair.0 == 4096).expect("shrinks").1;
        assert!(line(&readings[0], 1, "y").starts_with("y = div(s, 4096)"));
        assert!(line(&readings[1], 1, "y").starts_with(&format!("y = div(s, {large})")));
        // One that is smaller by one stays so; another dimension's size is another count.
        let readings = small(&[mean, &by("4095")], start);
        assert!(line(&readings[1], 1, "y").starts_with(&format!("y = div(s, {})", large - 1)));
        let readings = small(&[mean, &by("64")], start);
        assert!(readings.iter().all(|small| !line(small, 1, "y").contains(&format!("div(s, {large})"))));
        // A power of two, and a root.
        assert_eq!(small(&[mean, &by("0.000244140625")], start).len(), 2);
    }
    // One is a count, the other one a constant: four readings.
    let before = "x = input : f32[8, 70]\nz = input : f32[8, 90]\na = mul(x, 8) : f32[8, 70]\nm = mean(z, [0]) : f32[90]\noutput (a, m)";
    let after = "x = input : f32[8, 70]\nz = input : f32[8, 90]\nb = mul(x, 8.0) : f32[8, 70]\ns = sum(z, [0]) : f32[90]\nm = div(s, 8) : f32[90]\noutput (b, m)";
    assert_eq!(small(&[before, after], 3).len(), 8);
    // Calls that compute the same read their numbers alike.
    assert_eq!(small(&[before, before], 3).len(), 2);
    // A batch of 2 stays, and its half is a constant.
    let half = "x = input : f32[2, 64]\ns = sum(x, [0]) : f32[64]\ny = mul(s, 0.5) : f32[64]\noutput (y)";
    assert_eq!(small(&[half], 3).len(), 1);
}

/// Pairs that are equal only where a position or a size is lost: their arguments must differ at small sizes.
#[test]
fn positions_stay_apart() {
    let of = |head: &str, last: &str| format!("{head}\n{last}\noutput (y)");
    let pairs = [
        (
            "x = input : f32[256]\nv = view(x, [2, 128]) : f32[2, 128]",
            "y = slice(x, 0, 127, 255) : f32[128]",
            "y = slice(x, 0, 128, 256) : f32[128]",
        ),
        (
            "x = input : f32[9, 5]\ng = all_gather(x, dp) : f32[36, 5]\nw = wait(g) : f32[36, 5]",
            "y = slice(w, 0, 20, 30) : f32[10, 5]",
            "y = slice(w, 0, 19, 29) : f32[10, 5]",
        ),
        (
            "i = arange(4096) : i64[4096]\nr = unsqueeze(i, 1) : i64[4096, 1]\nc = unsqueeze(i, 0) : i64[1, 4096]\nd = sub(r, c) : i64[4096, 4096]",
            "y = lt_scalar(d, 1024) : bool[4096, 4096]",
            "y = lt_scalar(d, 1023) : bool[4096, 4096]",
        ),
        (
            "t = input : i64[16]\nw = input : f32[1000, 6]\ne = embedding(w, t) : f32[16, 6]",
            "y = ge_scalar(t, 500) : bool[16]",
            "y = ge_scalar(t, 501) : bool[16]",
        ),
        (
            "i = arange(4096) : i64[4096]",
            "y = remainder_scalar(i, 1024) : i64[4096]",
            "y = remainder_scalar(i, 512) : i64[4096]",
        ),
        (
            "x = input : f32[5, 100]\nc = cumsum(x, 1) : f32[5, 100]",
            "y = select(c, 1, 99) : f32[5]",
            "y = select(c, 1, 98) : f32[5]",
        ),
        ("x = input : f32[100]", "y = slice(x, 0, 3, 97) : f32[94]", "y = slice(x, 0, 2, 96) : f32[94]"),
    ];
    for (head, before, after) in pairs {
        for start in [3, 7] {
            let readings = small(&[&of(head, before), &of(head, after)], start);
            for reading in &readings {
                assert_ne!(line(reading, 0, "y"), line(reading, 1, "y"), "{head} {:?}", reading.sizes);
                assert!(
                    !line(reading, 0, "y").contains("4096"),
                    "{head} {} {:?}",
                    line(reading, 0, "y"),
                    reading.sizes
                );
            }
        }
    }
    // Less than 1024 and at most 1023 are one window.
    let window = |last: &str| {
        of(
            "i = arange(4096) : i64[4096]\nr = unsqueeze(i, 1) : i64[4096, 1]\nd = sub(r, i) : i64[4096, 4096]",
            last,
        )
    };
    let readings = small(
        &[
            &window("y = lt_scalar(d, 1024) : bool[4096, 4096]"),
            &window("y = le_scalar(d, 1023) : bool[4096, 4096]"),
        ],
        3,
    );
    let number = |at: usize| {
        line(&readings[0], at, "y")
            .split([',', ')'])
            .nth(1)
            .and_then(|n| n.trim().parse::<i64>().ok())
            .expect("a number")
    };
    assert_eq!(number(0), number(1) + 1);
}

/// Equal sizes stay equal, different ones different; 64 x 64 is not 4096 where that is a size of its own.
#[test]
fn sizes_by_structure() {
    let text = printed(
        "x = input : f32[64, 64, 5]\nz = input : f32[4096]\nv = view(x, [4096, 5]) : f32[4096, 5]\ny = sum(z, [0]) : f32[]\noutput (v, y)",
    );
    assert!(text.contains("x = input : f32[3, 3, 5]") || text.contains("x = input : f32[3, 3, 6]"), "{text}");
    assert!(text.contains("view(x, [9, "), "{text}");
    assert!(!text.contains("z = input : f32[9]"), "{text}");
    // What has no rule keeps its dimensions, and every dimension of these sizes.
    let unknown = "x = input : f32[50, 60]\ny = test.unknown(x) : f32[50, 60]\nz = input : f32[60, 70]\nw = relu(z) : f32[60, 70]\noutput (y, w)";
    assert_eq!(proof(unknown).0, ["y (test.unknown)"]);
    assert_eq!(small(&[unknown], 3)[0].sizes, [(70, 3)]);
}

/// How many assignments of sizes prove an equality, and where none do.
#[test]
fn conditions() {
    let yes = [
        (
            "x = input : f32[50, 60]\nw = input : f32[60, 70]\ny = mm(x, w) : f32[50, 70]\nz = relu(y) : f32[50, 70]\noutput (z)",
            2,
        ),
        (
            "x = input : f32[50, 60]\ng = all_gather(x, dp) : f32[200, 60]\nw = wait(g) : f32[200, 60]\nv = view(w, [4, 3000]) : f32[4, 3000]\noutput (v)",
            2,
        ),
        ("x = input : f32[50, 60]\ny = mean(x, [1]) : f32[50]\noutput (y)", 2),
        (
            "w = input : f32[1000, 64]\nt = input : i64[5, 7]\ne = embedding(w, t) : f32[5, 7, 64]\noutput (e)",
            2,
        ),
        // Two coefficients: s - t + 1 vanishes wherever sizes follow one another, but not on a grid.
        ("x = input : f32[50, 60]\ny = mean(x, [0, 1]) : f32[]\noutput (y)", 4),
        // One size twice: a coefficient of degree two.
        ("x = input : f32[50, 50]\ny = mean(x, [0, 1]) : f32[]\noutput (y)", 3),
        // A product of three.
        ("x = input : f32[50, 60]\ny = mean(x, [1]) : f32[50]\nz = pow(y, 3) : f32[50]\noutput (z)", 4),
        // A softmax has no coefficient; one of a difference that is 0 counts its elements, and so does one of a padded row.
        (
            "x = input : f32[50, 60]\nm = amax(x, [1], True) : f32[50, 1]\nd = sub(x, m) : f32[50, 60]\ne = exp(d) : f32[50, 60]\ns = sum(e, [1], True) : f32[50, 1]\ny = div(e, s) : f32[50, 60]\noutput (y)",
            2,
        ),
        (
            "x = input : f32[50, 60]\nd = sub(x, x) : f32[50, 60]\ne = exp(d) : f32[50, 60]\ns = sum(e, [1]) : f32[50]\nt = mul(s, s) : f32[50]\noutput (t)",
            3,
        ),
        (
            "x = input : f32[50, 60]\np = aten.constant_pad_nd.default(x, [0, 9], 0.0) : f32[50, 69]\ne = exp(p) : f32[50, 69]\ns = sum(e, [1]) : f32[50]\nt = mul(s, s) : f32[50]\noutput (t)",
            9,
        ),
        // Places in order, which no sum counts.
        ("x = input : f32[50, 60]\ny = cumsum(x, 1) : f32[50, 60]\noutput (y)", 2),
        ("x = input : f32[50, 50]\ny = tril(x) : f32[50, 50]\ns = sum(y, [1]) : f32[50]\noutput (s)", 2),
        // Written in place.
        ("x = input : f32[50]\ny = mul(x, x) : f32[50]\nz = relu_(y) : f32[50]\noutput (z)", 2),
        (
            "x = input : f32[50, 60]\ny = mul(x, x) : f32[50, 60]\nv = select(y, 0, 0) : f32[60]\nm = mean(x, [0]) : f32[60]\nz = copy_(v, m) : f32[60]\ns = mean(y, [1]) : f32[50]\noutput (s)",
            6,
        ),
    ];
    for (lines, number) in yes {
        assert_eq!(proof(lines).1, Ok(number), "{lines}");
    }
    let no = [
        // Operators of order, positions as numbers, no meaning.
        "x = input : f32[50, 60]\ny = cumsum(x, 1) : f32[50, 60]\ns = sum(y, [1]) : f32[50]\noutput (s)",
        "x = input : f32[50, 60]\ny = cumsum(x, 1) : f32[50, 60]\nz = cumsum(y, 1) : f32[50, 60]\noutput (z)",
        "x = input : f32[50, 50]\ny = flip(x, [1]) : f32[50, 50]\nz = tril(y) : f32[50, 50]\noutput (z)",
        "x = input : f32[50, 60]\nv, i = sort(x) : (f32[50, 60], i64[50, 60])\noutput (v)",
        "x = input : f32[50, 60]\nv, i = topk(x, 7) : (f32[50, 7], i64[50, 7])\noutput (v)",
        "x = input : f32[50]\ni = arange(50) : i64[50]\ny = mul(x, i) : f32[50]\noutput (y)",
        "x = input : f32[50, 60]\ny = softmax(x, 1, False) : f32[50, 60]\noutput (y)",
        "x = input : f32[50, 60]\ny = prod(x, 1) : f32[50]\noutput (y)",
        // A count, and a choice by it.
        "o = ones([50]) : f32[50]\nn = sum(o, [0]) : f32[]\nm = sub(n, 40) : f32[]\ny = relu(m) : f32[]\noutput (y)",
        "x = input : f32[50, 60]\ns = sum(x, [1]) : f32[50]\ny = gt_scalar(s, 40) : bool[50]\noutput (y)",
        // Integers that are written may be positions.
        "x = input : i64[50]\ny = mul(x, x) : i64[50]\nz = relu_(y) : i64[50]\noutput (z)",
    ];
    for lines in no {
        assert!(proof(lines).1.is_err(), "{lines}");
    }
    // What is kept for a proof is the dimension along which elements have an order.
    let order = graph("x = input : f32[50, 60]\ny = flip(x, [1]) : f32[50, 60]\noutput (y)");
    let order = [&order];
    let found = Shrinking::for_proof(&order).expect("shrinks");
    let sizes: Vec<_> =
        found.proof(0, true).expect("a proof").map(|small| small.expect("small").sizes).collect();
    assert_eq!(sizes, [[(50, 3)], [(50, 5)]]);
    // Many matrices of one size: it has as many elements as a term has indices.
    let mut chain = "x = input : f32[50, 50]\n".to_string();
    let mut last = "x".to_string();
    for at in 0..4 {
        chain += &format!("m{at} = mm({last}, {last}) : f32[50, 50]\n");
        last = format!("m{at}");
    }
    let chain = graph(&format!("{chain}output ({last})"));
    let chain = [&chain];
    let found = Shrinking::new(&chain).expect("shrinks");
    let sizes: Vec<_> =
        found.proof(0, true).expect("a proof").map(|small| small.expect("small").sizes).collect();
    assert_eq!(sizes, [[(50, 17)], [(50, 18)]]);
}

#[test]
fn refusals() {
    let symbolic = "symbols s0\nx = input : f32[s0]\noutput (x)";
    let parsed = text::parse(format!("world 1 ranks\n{symbolic}\n")).or_else(|_| text::parse(symbolic));
    if let Ok(case) = parsed {
        assert!(Shrinking::new(&[&case.graph]).is_err());
    }
    let late = graph("y = relu(x) : f32[9]\nx = input : f32[9]\noutput (y)");
    assert!(Shrinking::new(&[&late]).is_err());
    assert!(Shrinking::new(&[]).is_ok_and(|found| found.readings == 1));
    // Recorded shapes that no rule gives are not made to agree.
    let wrong = graph("x = input : f32[50, 60]\ny = relu(x) : f32[50, 61]\noutput (y)");
    assert!(all(&[&wrong], 3).is_err());
}

/// All cases of the corpus, however broken: no panic.
#[test]
fn any_graph() {
    let mut folders = vec![PathBuf::from("../../corpus")];
    let (mut seen, mut shrunk) = (0, 0);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let Ok(bytes) = std::fs::read(&path) else { continue };
            let Ok(case) = text::parse(&bytes) else { continue };
            if case.graph.len() < 1000 {
                seen += 1;
                shrunk += usize::from(all(&[&case.graph, &case.graph], 3).is_ok());
            }
        }
    }
    assert!(seen == 0 || shrunk * 2 > seen, "{shrunk} of {seen}");
}
