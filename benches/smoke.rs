//! One replay of a plan on the host: 4 ranks, some 50 nodes. It should take at most 2 ms.

use criterion::{Criterion, criterion_group, criterion_main};
use graph_oracle::format::text;
use graph_oracle::gpu::device::Placement;
use graph_oracle::gpu::host::Host;
use graph_oracle::gpu::passes::{Case, How, Options, inspect, replay, with_plan};
use std::fmt::Write;

/// Gathers, products and a reduction, 50 nodes.
fn graph() -> String {
    let mut text = "world 4 ranks, groups dp = [0 1 2 3]\nx = input : f32[8, 8]\n".to_string();
    for i in 0..8 {
        let _ = writeln!(text, "p{i} = input : f32[2, 8]");
    }
    let mut last = "x".to_string();
    for i in 0..8 {
        let _ = writeln!(text, "g{i} = all_gather(p{i}, dp) : f32[8, 8]");
        let _ = writeln!(text, "m{i} = mul({last}, x) : f32[8, 8]");
        let _ = writeln!(text, "w{i} = wait(g{i}) : f32[8, 8]");
        let _ = writeln!(text, "y{i} = mm(m{i}, w{i}) : f32[8, 8]");
        let _ = writeln!(text, "a{i} = add(y{i}, m{i}) : f32[8, 8]");
        last = format!("a{i}");
    }
    let _ = writeln!(
        text,
        "s = reduce_scatter({last}, \"sum\", dp) : f32[2, 8]\nz = wait(s) : f32[2, 8]\noutput (z)"
    );
    text
}

fn host(c: &mut Criterion) {
    let case = text::parse(graph()).unwrap_or_else(|errors| panic!("{}", errors.render(None)));
    let case = Case { name: "bench".to_string(), file: None, graphs: vec![case.graph] };
    let result = with_plan(&case, &Options::default(), |plan, observed| {
        c.bench_function("smoke/host replay of 50 nodes on 4 ranks", |b| {
            let mut seed = 0;
            b.iter(|| {
                seed += 1;
                let mut host = Host::new(&plan, observed, Some(seed));
                let replayed = replay(&plan, &mut host, &Placement::Guarded, How::default());
                assert!(replayed.is_ok_and(|replayed| replayed.findings.is_empty()));
            });
        });
        c.bench_function("smoke/inspect 50 nodes on 4 ranks", |b| {
            b.iter(|| assert!(inspect(&plan).is_empty()))
        });
    });
    assert_eq!(result, Ok(()));
}

criterion_group!(benches, host);
criterion_main!(benches);
