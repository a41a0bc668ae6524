use graph_oracle::format::json;
use graph_oracle::ops::{Ops, shape};
fn main() {
    let p = std::env::args().nth(1).unwrap();
    let g = json::read_path(&p).unwrap().into_graph().unwrap();
    for _ in 0..5 {
        let t = std::time::Instant::now();
        let ops = Ops::of(&g);
        let a = t.elapsed();
        let t = std::time::Instant::now();
        let n: usize = g.ids().map(|id| shape::check(&g, &ops, id).len()).sum();
        println!("ops {a:?} check {:?} faults {n}", t.elapsed());
    }
}
